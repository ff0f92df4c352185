/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar of --grammar and --json-schema.
 */
#ifndef XM_PLUGIN_CLI_GRAMMAR_OPTION_H
#define XM_PLUGIN_CLI_GRAMMAR_OPTION_H

#include "plugin/cli/text_out.h"
#include "plugin/text/grammar.h"

/* Makes the grammar that the options ask for, from a text or a file; NULL: neither is given. A text
 * with "::=" is a grammar, one that begins with { a schema; all else is the path of a file. Free
 * *out with xm_grammar_free(). XM_EXIT_USAGE: both are given, or the text is none; XM_EXIT_FILE:
 * the file cannot be read, or has none. */
int xm_cli_grammar(const struct xm_cli_generation *a, struct xm_grammar **out);

#endif
