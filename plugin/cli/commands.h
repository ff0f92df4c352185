/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of subcommands, and the tables of exit codes and environment variables for the help
 * text.
 */
#ifndef XM_PLUGIN_CLI_COMMANDS_H
#define XM_PLUGIN_CLI_COMMANDS_H

#include "plugin/cli/cli.h"

struct xm_cli_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
    const char *summary;
    const char *example; /* NULL: none */
};
extern const struct xm_cli_command xm_cli_commands[];
extern const size_t xm_cli_n_commands;
const struct xm_cli_command *xm_cli_command_find(const char *name);
/* Prints "there is no command 'genrate': did you mean 'generate'?" and returns XM_EXIT_USAGE. */
int xm_cli_no_command(const char *name);

struct xm_cli_fact {
    const char *name, *text;
};
extern const struct xm_cli_fact xm_cli_exit_codes[], xm_cli_environment[];
extern const size_t xm_cli_n_exit_codes, xm_cli_n_environment;

/* XM_EXIT_USAGE: the value of one of these variables is wrong. Opens no device. */
int xm_cli_check_environment(void);

/* xemoe make-docs KIND [FOLDER]: a hidden command with which the build makes man pages, completion
 * and docs/reference.md. */
int xm_cli_make_docs(int argc, char **argv);

#endif
