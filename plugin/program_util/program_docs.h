/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates man pages, shell completion and docs/reference.md from the tables of options that parse
 * command lines.
 *
 * Each program describes its own commands. A completion file of a shell consists of a head, a part
 * for each command, and a tail. `xemoe make-docs` joins them; it reads the parts of other programs
 * from standard input.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_PROGRAM_DOCS_H
#define XM_PLUGIN_PROGRAM_UTIL_PROGRAM_DOCS_H

#include "plugin/program_util/command_line.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_cli_described {
    /* the command's name; "bench --kernels" is the command `bench` with this flag */
    const char *name;
    const char *summary; /* a phrase without a final period */
    const char *example; /* command lines, one on each line; NULL: none */
    const struct xm_cli_spec *spec;
};

/* Appends the command's part of a file of this kind: "bash", "zsh", "fish", "man" or "reference".
 * Returns false: there is no such kind. */
bool xm_describe(const char *kind, const struct xm_cli_described *c,
                 struct xm_strbuf *out);
/* Appends text for roff, with its control and escape characters escaped. */
void xm_describe_roff(const char *text, struct xm_strbuf *out);
/* Prints the part of `kind` of a program with a single command; returns an exit code. */
int xm_describe_print(const char *kind, const struct xm_cli_described *c);

#ifdef __cplusplus
}
#endif
#endif
