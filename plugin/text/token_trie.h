/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a vocabulary as a trie of the bytes that they append to a text.
 *
 *     tokens  a  ab  abc  b        node  0    1    2    3    4
 *                                  byte       a    b    c    b
 *                                  depth 0    1    2    3    1
 *                                  end   5    4    4    4    5     behind the node's subtree
 *
 * Nodes stand in the order of their bytes, a node before those below it (preorder): a walk goes
 * through one array, and leaves out a subtree by going on at its end. The tokens of a subtree stand
 * side by side, too. Special tokens, tokens without text and those of more than XM_TRIE_DEEPEST
 * bytes are not in it.
 *
 * Of each node it is known what comes below it, so that a walk need not look at subtrees that are
 * accepted as a whole: whether the bytes there are whole characters but for the last of each token,
 * which ASCII characters there are, and how many characters at most.
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
    uint64_t ascii[2];      /* characters below 128 that begin below it       */
    uint32_t end;           /* the node behind its subtree                    */
    uint32_t tokens;        /* the first token of its subtree, its own first   */
    uint8_t depth;          /* bytes                                          */
    uint8_t byte;           /* the last of them                               */
    uint8_t chars;          /* characters of the longest token below it       */
    bool is_broken : 1;     /* a token below it is no UTF-8               */
    bool has_non_ascii : 1; /* characters from U+0080 on begin below it   */
};

/* Immutable: threads may share it. */
struct xm_token_trie {
    struct xm_trie_node
        *nodes; /* [n_nodes + 1]: the last one ends the tokens of those before */
    size_t n_nodes;
    int32_t *tokens; /* ids in the order of their bytes */
    size_t n_tokens;
    size_t vocab_size; /* of the tokenizer                                */
    uint32_t *offsets; /* [vocab_size + 1] of an id's bytes in `bytes`    */
    char *bytes;
    uint64_t *all;  /* a bit for each id that is in it */
    size_t n_words; /* of `all`                        */
    size_t longest; /* bytes of the longest token      */
};

/* With `first`, the bytes are those of a token that begins the text: some tokenizers drop a space
 * there. XM_UNSUPPORTED: what a token appends depends on tokens behind it. */
enum xm_status xm_token_trie_create(const struct xm_tokenizer *tokenizer, bool first,
                                    struct xm_token_trie **out, struct xm_error *err);
void xm_token_trie_free(struct xm_token_trie *trie); /* NULL is allowed */

/* The tokenizer's own, made when it is first asked for; any thread. */
enum xm_status xm_tokenizer_trie(const struct xm_tokenizer *tokenizer, bool first,
                                 const struct xm_token_trie **out, struct xm_error *err);

/* The bytes of a token; none: it is not in the trie. */
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
