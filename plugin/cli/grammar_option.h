/* SPDX-License-Identifier: Apache-2.0
 *
 * The options --grammar and --json-schema.
 */
#ifndef XM_PLUGIN_CLI_GRAMMAR_OPTION_H
#define XM_PLUGIN_CLI_GRAMMAR_OPTION_H

#include "plugin/cli/text_out.h"
#include "plugin/text/grammar.h"

/* Makes the grammar of the options, from a text or a file; *out NULL: neither is given. A text with
 * "::=" is a grammar, a text that begins with { is a schema; any other text is a file's path. The
 * caller frees *out with xm_grammar_free(). XM_EXIT_USAGE: both are given, or the text is not
 * valid. XM_EXIT_FILE: the file cannot be read or is not valid. */
int xm_cli_grammar(const struct xm_cli_generation *a, struct xm_grammar **out);

#endif
