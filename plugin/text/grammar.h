/* SPDX-License-Identifier: Apache-2.0
 *
 * A grammar that a generated text must match: context-free, over the bytes of UTF-8 text.
 *
 *     GBNF text    root ::= "[" item ("," item)* "]"      ──┐
 *                  item ::= [0-9]{1,3}                      ├──► struct xm_grammar
 *     JSON Schema  {"type": "array", "items": …}          ──┘
 *
 * GBNF is the notation of llama.cpp: rules, literals, character classes, groups, alternatives and
 * repetitions; <name> and <[id]> are tokens of the vocabulary (docs/structured_output.md). The rule
 * "root" is the whole text. A grammar knows no vocabulary and no text: constraint.h matches texts.
 *
 * Each beginning that a grammar admits has an end: parts that no text can match are removed. A
 * grammar with no text at all is refused, and so is left recursion.
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

/* Immutable: threads may share it. */
struct xm_grammar;

/* Makes a grammar of n bytes of GBNF. XM_INVALID, XM_UNSUPPORTED: the sentence has line and
 * column, both from 1. Free *out with xm_grammar_free(); it keeps no reference to the text. */
enum xm_status xm_grammar_parse(const char *gbnf, size_t n, struct xm_grammar **out,
                                struct xm_error *err);

/* Makes the grammar of the JSON texts that are valid for a JSON Schema (draft 2020-12). Each text
 * that it admits is a valid instance. Properties come in the schema's order, white space is
 * bounded. XM_UNSUPPORTED: the sentence has the JSON pointer of the keyword that has no grammar. */
enum xm_status xm_grammar_from_schema(const char *json, size_t n, struct xm_grammar **out,
                                      struct xm_error *err);

void xm_grammar_free(struct xm_grammar *g); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
