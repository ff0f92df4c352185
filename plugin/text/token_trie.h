/* SPDX-License-Identifier: Apache-2.0
 *
 * A trie of the bytes that the tokens of a vocabulary add to a text.
 *
 *     tokens  a  ab  abc  b        node  0    1    2    3    4
 *                                  byte       a    b    c    b
 *                                  depth 0    1    2    3    1
 *                                  end   5    4    4    4    5     behind the node's subtree
 *
 * Nodes are sorted by their bytes, each before the nodes below it (preorder): a walk goes through
 * one array, and skips a subtree by continuing at its end. The tokens of a subtree are consecutive,
 * too. Special tokens, tokens without text and tokens of more than XM_TRIE_DEEPEST bytes are left
 * out.
 *
 * Each node summarises its subtree, so that a walk can accept a subtree as a whole: whether the
 * bytes are whole characters (except the last of each token), which ASCII characters occur, and the
 * largest number of characters.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_TRIE_H
#define XM_PLUGIN_TEXT_TOKEN_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/text/tokenizer.h"
#include "runtime/util/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_TRIE_DEEPEST = 255 };

struct xm_trie_node {
    uint64_t ascii[2];      /* bit set of the ASCII characters below the node */
    uint32_t end;           /* index of the node behind its subtree */
    uint32_t tokens;        /* index of its subtree's first token; its own comes first */
    uint8_t depth;          /* number of bytes up to the node */
    uint8_t byte;           /* the last of these bytes */
    uint8_t chars;          /* most characters of a token below it */
    bool is_broken : 1;     /* a token below it is not UTF-8 */
    bool has_non_ascii : 1; /* non-ASCII characters occur below it */
};

/* Immutable: threads may share it. */
struct xm_token_trie {
    /* [n_nodes + 1]: the last one only holds the end of the tokens */
    struct xm_trie_node *nodes;
    size_t n_nodes;
    int32_t *tokens; /* ids, sorted by their bytes */
    size_t n_tokens;
    size_t vocab_size; /* of the tokenizer */
    uint32_t *offsets; /* [vocab_size + 1] where an id's bytes begin in `bytes` */
    char *bytes;
    uint64_t *all;  /* bit set of the ids in the trie */
    size_t n_words; /* words of `all`                 */
    size_t longest; /* bytes of the longest token     */
};

/* Creates a trie. `first`: of the bytes that a token adds at the beginning of a text (some
 * tokenizers drop a space there). XM_UNSUPPORTED: the bytes of a token depend on the tokens behind
 * it. */
enum xm_status xm_token_trie_create(const struct xm_tokenizer *tokenizer, bool first,
                                    struct xm_token_trie **out, struct xm_error *err);
void xm_token_trie_free(struct xm_token_trie *trie); /* NULL is allowed */

/* Returns the tokenizer's own trie, which is made at the first request. Any thread may call it. */
enum xm_status xm_tokenizer_trie(const struct xm_tokenizer *tokenizer, bool first,
                                 const struct xm_token_trie **out, struct xm_error *err);

/* Returns the bytes of a token; empty: it is not in the trie. */
static inline struct xm_slice
xm_trie_bytes(const struct xm_token_trie *t, int32_t id)
{
    if (id < 0 || (size_t)id >= t->vocab_size)
        return xm_slice_of(t->bytes, 0);
    return xm_slice_of(t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id]);
}

#ifdef __cplusplus
}
#endif
#endif
