/* SPDX-License-Identifier: Apache-2.0
 *
 * Grammars that a generated text must match: context-free, over the bytes of UTF-8 text.
 *
 *     GBNF text    root ::= "[" item ("," item)* "]"      ──┐
 *                  item ::= [0-9]{1,3}                      ├──► struct xm_grammar
 *     JSON Schema  {"type": "array", "items": …}          ──┘
 *
 * GBNF is the notation of llama.cpp: rules, literals, character classes, groups, alternatives and
 * repetitions; <name> and <[id]> are tokens of the vocabulary (docs/structured_output.md). The
 * whole text must match the rule "root". A grammar does not depend on a vocabulary and keeps no
 * state of a text: constraint.h matches texts with it.
 *
 * Every text that a grammar accepts as a beginning can be continued to a matching text, because
 * parts of the grammar that no text can match are removed. A grammar that matches no text at all is
 * refused, and so is left recursion.
 */
#ifndef XM_PLUGIN_TEXT_GRAMMAR_H
#define XM_PLUGIN_TEXT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest source of a grammar or schema, in bytes. */
enum { XM_GRAMMAR_MOST_BYTES = 1 << 22 };

/* A compiled grammar. Immutable: threads may share it. */
struct xm_grammar;

/* Parses a grammar of n bytes of GBNF. On XM_INVALID and XM_UNSUPPORTED the error message has line
 * and column, both from 1. Free *out with xm_grammar_free(); it keeps no reference to the
 * source. */
enum xm_status xm_grammar_parse(const char *gbnf, size_t n, struct xm_grammar **out,
                                struct xm_error *err);

/* Makes the grammar of the JSON texts that are valid for a JSON Schema (draft 2020-12) of n bytes.
 * It accepts only valid texts, but not all of them: properties come in the schema's order, white
 * space is bounded. XM_UNSUPPORTED: the error message has the JSON pointer of the keyword that
 * cannot be expressed as a grammar. */
enum xm_status xm_grammar_from_schema(const char *json, size_t n, struct xm_grammar **out,
                                      struct xm_error *err);

void xm_grammar_free(struct xm_grammar *g); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
