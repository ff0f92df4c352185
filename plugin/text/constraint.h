/* SPDX-License-Identifier: Apache-2.0
 *
 * A constraint follows one text through a grammar: it tells which tokens may come next and whether
 * the text may end.
 *
 *     grammar  ──► automaton with a stack ──┐
 *     vocabulary ──► trie of bytes ─────────┴──► a bit for each token that may follow
 *
 * The state is a set of threads, because a grammar may read a text in several ways: each thread is
 * a state of the automaton and a stack of the open rules. Stacks share their lower parts, and equal
 * threads are stored once. To compute the mask of allowed tokens, the threads with equal stacks
 * become one state of a deterministic automaton, which is made on demand and kept. If a token
 * leaves its rule, the walk over the trie continues with the rules on the stack. Masks are kept,
 * too, by the set of threads. All of this memory is bounded: at a bound a call fails, or kept
 * automata and masks are dropped.
 *
 * A token may begin and end within a character, because the automaton reads bytes.
 */
#ifndef XM_PLUGIN_TEXT_CONSTRAINT_H
#define XM_PLUGIN_TEXT_CONSTRAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/text/grammar.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state of one text. Used by one thread at a time. */
struct xm_constraint;

/* Creates a constraint at the beginning of a text. Grammar and tokenizer must outlive it.
 * XM_INVALID: the grammar names a token that the tokenizer lacks. XM_UNSUPPORTED: the bytes that a
 * token appends depend on the tokens behind it. */
enum xm_status xm_constraint_create(const struct xm_grammar *grammar,
                                    const struct xm_tokenizer *tokenizer,
                                    struct xm_constraint **out, struct xm_error *err);
/* Creates a copy, so that two texts can continue from here. Masks that `from` keeps are not copied:
 * the copy computes them again when it needs them. */
enum xm_status xm_constraint_fork(const struct xm_constraint *from,
                                  struct xm_constraint **out, struct xm_error *err);
void xm_constraint_free(struct xm_constraint *c); /* NULL is allowed */

/* Sets *out to the tokens that may follow: token id is bit id % 64 of word id / 64. End-of-text ids
 * are not set unless the grammar names them as tokens. The words are valid until the next call with
 * `c`; the caller may change them. `first`: the token begins a text (some tokenizers drop a space
 * there). */
struct xm_token_bits {
    uint64_t *words; /* owned by the constraint          */
    size_t n;        /* words; larger ids may not follow */
};
enum xm_status xm_constraint_allowed(struct xm_constraint *c, bool first,
                                     struct xm_token_bits *out, struct xm_error *err);

/* Appends a token to the text. XM_INVALID: the grammar does not allow it; `c` cannot be used
 * afterwards. */
enum xm_status xm_constraint_accept(struct xm_constraint *c, int32_t id, bool first,
                                    struct xm_error *err);
/* Returns whether the grammar names this token (<name> or <[id]>) as one that may come next. */
bool xm_constraint_names(const struct xm_constraint *c, int32_t id);
/* Appends a token as the named token of the grammar, not as its bytes. XM_INVALID: the grammar does
 * not name it here. */
enum xm_status xm_constraint_accept_named(struct xm_constraint *c, int32_t id,
                                          struct xm_error *err);
/* Appends bytes that are not a token. XM_INVALID: the grammar does not allow them. */
enum xm_status xm_constraint_accept_bytes(struct xm_constraint *c, const char *bytes,
                                          size_t n, struct xm_error *err);

/* Returns whether the text so far matches the grammar, so that it may end. */
bool xm_constraint_can_end(const struct xm_constraint *c);
/* Returns whether nothing may follow the text so far. */
bool xm_constraint_is_over(const struct xm_constraint *c);
/* Returns whether the text is still empty. */
bool xm_constraint_is_at_start(const struct xm_constraint *c);

/* Sets *matches to whether a whole text matches. XM_UNSUPPORTED: a limit on the state was
 * reached. */
enum xm_status xm_grammar_matches(const struct xm_grammar *g, const char *text, size_t n,
                                  bool *matches, struct xm_error *err);
/* Returns whether some matching text begins with `text`; false also if that could not be found
 * out. */
bool xm_grammar_may_begin(const struct xm_grammar *g, const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
