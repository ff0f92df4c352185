/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe COMMAND …: finds the subcommand in a table and runs it.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/commands.h"
#include "plugin/cli/job.h"
#include "plugin/program_util/terminal.h"
#include "runtime/collective_mpi.h"

static void
print_help(FILE *to)
{
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text,
                  "usage: xemoe COMMAND [options]\n\n"
                  "Runs Mixture-of-Experts language models from OpenVINO IR and GGUF "
                  "files through OpenCL.\n\n");
    for (size_t i = 0; i < xm_cli_n_commands; i++)
        xm_strbuf_printf(&text, "  %-15s%s\n", xm_cli_commands[i].name,
                         xm_cli_commands[i].summary);
    xm_strbuf_add(&text,
                  "\n'xemoe help COMMAND' lists the options of a command; 'xemoe "
                  "--version' prints the\nversion. XM_DEBUG=help lists the flags for "
                  "debugging; XM_MODEL is the default\nmodel.\n\nexit codes:\n");
    for (size_t i = 0; i < xm_cli_n_exit_codes; i++)
        xm_strbuf_printf(&text, "  %-7s%s\n", xm_cli_exit_codes[i].name,
                         xm_cli_exit_codes[i].text);
    xm_terminal_print(to, xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

/* Runs "xemoe help COMMAND". */
static int
help_of(char *name)
{
    char help[] = "--help";
    char *argv[] = {name, help, NULL};
    const struct xm_cli_command *command = xm_cli_command_find(name);
    return command ? command->run(2, argv) : xm_cli_no_command(name);
}

static int
run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const int code = xm_cli_check_environment();
    if (code != XM_EXIT_OK)
        return code;
    if (!name) {
        print_help(stderr);
        return XM_EXIT_USAGE;
    }
    if (strcmp(name, "make-docs") == 0)
        return xm_cli_make_docs(argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 && argc > 2)
        return help_of(argv[2]);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_help(stdout);
        return xm_cli_flush();
    }
    if (strcmp(name, "--version") == 0) {
        printf("xemoe %s\n", XM_VERSION);
        return xm_cli_flush();
    }
    const struct xm_cli_command *command = xm_cli_command_find(name);
    return command ? command->run(argc - 1, argv + 1) : xm_cli_no_command(name);
}

/* Whether this process prints no results: in an MPI job, whose processes all do the same, only the
 * first one prints. */
static bool
is_silent(void)
{
    uint32_t rank;
    return xm_mpi_ranks(&rank) > 1 && rank > 0;
}

int
main(int argc, char **argv)
{
    int code = xm_cli_start();
    if (code == XM_EXIT_OK && is_silent() && !freopen("/dev/null", "w", stdout))
        code = XM_EXIT_FAILED;
    if (code != XM_EXIT_OK)
        return code;
    code = run(argc, argv);
    if (code == XM_EXIT_OK)
        xm_mpi_job_end();
    xm_mpi_end(code);
    return code;
}
