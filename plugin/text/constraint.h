/* SPDX-License-Identifier: Apache-2.0
 *
 * Where one text stands in a grammar: which tokens may come next, and whether it may end.
 *
 *     grammar  ──► automaton with a stack ──┐
 *     vocabulary ──► trie of bytes ─────────┴──► a bit for each token that may follow
 *
 * The state is a set of threads, because a grammar may read a text in several ways: each thread is
 * a state of the automaton and a stack of the rules that are open. Stacks share their lower parts,
 * and equal threads are one. For the mask, threads of one stack become a state of a deterministic
 * automaton that is made as it is needed and kept; where a token leaves its rule, the walk goes on
 * with the stack. Masks are kept by the set of threads, too. All of this is bounded: at a bound a
 * call fails, or what was kept is dropped.
 *
 * A token may begin and end within a character.
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

/* At the beginning of a text. Grammar and tokenizer must outlive it. XM_INVALID: the grammar names
 * a token that the tokenizer lacks. XM_UNSUPPORTED: what the tokenizer's tokens append is not known
 * one by one. */
enum xm_status xm_constraint_create(const struct xm_grammar *grammar,
                                    const struct xm_tokenizer *tokenizer,
                                    struct xm_constraint **out, struct xm_error *err);
/* A copy, so that two texts can continue from here. It has none of the masks that `from` keeps:
 * they are computed again as they are needed. `from` was made by one of these two functions. */
enum xm_status xm_constraint_fork(const struct xm_constraint *from,
                                  struct xm_constraint **out, struct xm_error *err);
void xm_constraint_free(struct xm_constraint *c); /* NULL is allowed */

/* The tokens that may follow, by id: bit i % 64 of word i / 64. Ids that end a text are not among
 * them unless the grammar has them as tokens. Valid until the next call with `c`; the caller may
 * change the bits. `first`: the token begins a text (some tokenizers drop a space there). */
struct xm_token_bits {
    uint64_t *words; /* owned by the constraint                 */
    size_t n;        /* words; ids beyond them may not follow   */
};
enum xm_status xm_constraint_allowed(struct xm_constraint *c, bool first,
                                     struct xm_token_bits *out, struct xm_error *err);

/* Takes a token of the text. XM_INVALID: the grammar does not allow it; `c` cannot be used then. */
enum xm_status xm_constraint_accept(struct xm_constraint *c, int32_t id, bool first,
                                    struct xm_error *err);
/* Whether the grammar names this token as one that may come next. */
bool xm_constraint_names(const struct xm_constraint *c, int32_t id);
/* Takes a token as the one that the grammar names, not as its letters. XM_INVALID: it does not. */
enum xm_status xm_constraint_accept_named(struct xm_constraint *c, int32_t id,
                                          struct xm_error *err);
/* Takes bytes of no token. */
enum xm_status xm_constraint_accept_bytes(struct xm_constraint *c, const char *bytes,
                                          size_t n, struct xm_error *err);

/* The text so far matches the grammar. */
bool xm_constraint_can_end(const struct xm_constraint *c);
/* Nothing may follow it. */
bool xm_constraint_is_over(const struct xm_constraint *c);
/* Nothing of it has come yet. */
bool xm_constraint_is_at_start(const struct xm_constraint *c);

/* Whether a whole text matches. XM_UNSUPPORTED: it would need more threads than are allowed. */
enum xm_status xm_grammar_matches(const struct xm_grammar *g, const char *text, size_t n,
                                  bool *matches, struct xm_error *err);
/* Whether some text that matches begins so; false also where that is not known. */
bool xm_grammar_may_begin(const struct xm_grammar *g, const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
