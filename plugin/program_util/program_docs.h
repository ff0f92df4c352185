/* SPDX-License-Identifier: Apache-2.0
 *
 * Man pages, completion and the reference, made from the tables that command lines are parsed by.
 *
 * Each program describes its own commands. A shell's file is a head, a part of each command, and a
 * tail; xemoe's make-docs puts them together, with the parts of other programs from its standard
 * input.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_PROGRAM_DOCS_H
#define XM_PLUGIN_PROGRAM_UTIL_PROGRAM_DOCS_H

#include "plugin/program_util/command_line.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_cli_described {
    const char *name;    /* of the command                   */
    const char *summary; /* half a sentence                  */
    const char *example; /* command lines, one a line; NULL: none */
    const struct xm_cli_spec *spec;
};

/* The part of a command in a file of this kind: "bash", "zsh", "fish", "man" or "reference". False:
 * there is no such kind. */
bool xm_describe(const char *kind, const struct xm_cli_described *c,
                 struct xm_strbuf *out);
/* For roff: what would be a command or an escape is text. */
void xm_describe_roff(const char *text, struct xm_strbuf *out);
/* The main of such a program: `kind` of its only command to standard output; an exit code. */
int xm_describe_print(const char *kind, const struct xm_cli_described *c);

#ifdef __cplusplus
}
#endif
#endif
