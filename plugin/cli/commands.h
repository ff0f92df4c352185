/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands, and what is said once for all of them: exit codes and environment variables.
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
/* "there is no command 'genrate': did you mean 'generate'?"; XM_EXIT_USAGE. */
int xm_cli_no_command(const char *name);

struct xm_cli_fact {
    const char *name, *text;
};
extern const struct xm_cli_fact xm_cli_exit_codes[], xm_cli_environment[];
extern const size_t xm_cli_n_exit_codes, xm_cli_n_environment;

/* xemoe make-docs KIND [FOLDER]: hidden; the build and tests call it. */
int xm_cli_make_docs(int argc, char **argv);

#endif
