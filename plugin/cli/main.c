/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe COMMAND …: finds the subcommand in a table and runs it.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"

/* clang-format off */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
    const char *summary;
} commands[] = {
    { "devices",    xm_cli_devices,    "the devices there are, and what is known of them" },
    { "info",       xm_cli_info,       "what a model file holds, and what it compiles to" },
    { "plan",       xm_cli_plan,       "what a model will take, and whether that fits" },
    { "compile",    xm_cli_compile,    "write a compiled model, which loads sooner" },
    { "generate",   xm_cli_generate,   "continue a text" },
    { "chat",       xm_cli_chat,       "a conversation on the terminal" },
    { "logits",     xm_cli_logits,     "logits of every position, as an .npy file" },
    { "bench",      xm_cli_bench,      "tokens a second, as llama-bench measures them" },
    { "benchmark_app", xm_cli_benchmark_app, "inferences a second, as OpenVINO's benchmark_app measures them" },
    { "perplexity", xm_cli_perplexity, "perplexity of a text, and how far two models are apart" },
    { "verify",     xm_cli_verify,     "compare each step with the host reference, or logits with another program's" },
    { "opt",        xm_cli_opt,        "run single passes on a graph in text form" },
    { "make-model", xm_cli_make_model, "write a synthetic model of any dimensions" },
};
/* clang-format on */

static void
print_help(FILE *to)
{
    fputs(
        "usage: xemoe COMMAND [options]\n\n"
        "Runs Mixture-of-Experts language models from OpenVINO IR and GGUF files through "
        "OpenCL.\n\n",
        to);
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++)
        fprintf(to, "  %-15s%s\n", commands[i].name, commands[i].summary);
    fprintf(to,
            "\n'xemoe COMMAND --help' lists a command's options; 'xemoe --version'.\n"
            "XM_DEBUG=help lists the switches for debugging.\n\n%s",
            xm_cli_exit_help());
}

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    struct xm_error err = {0};
    const int begun = xm_cli_start();
    if (begun != XM_EXIT_OK)
        return begun;
    if (xm_core_check_force(&err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    if (!name) {
        print_help(stderr);
        return XM_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_help(stdout);
        return xm_cli_flush();
    }
    if (strcmp(name, "--version") == 0) {
        printf("xemoe %s\n", XM_VERSION);
        return xm_cli_flush();
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    return xm_cli_usage("there is no command '%s'; see 'xemoe --help'", name);
}
