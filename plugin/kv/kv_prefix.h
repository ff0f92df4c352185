/* SPDX-License-Identifier: Apache-2.0
 *
 * An index that finds pages of the KV cache by the tokens in the page and all tokens before it, to
 * reuse prefixes of prompts. The index is a set of nodes. A node stands for the tokens of one page,
 * which follow the tokens of the parent node; for each group of layers it has the page that caches
 * these tokens. A lookup compares the tokens, not only their hash.
 */
#ifndef XM_PLUGIN_KV_KV_PREFIX_H
#define XM_PLUGIN_KV_KV_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/hash_index.h"

struct xm_kv_node {
    uint64_t serial; /* never used for a second node; 0: the node is free */
    uint64_t parent; /* the parent's serial; 0: the tokens are the first of a prompt */
    uint32_t next;   /* of a free node: the next one; 0: none */
};

/* The index. It is empty if all members but the first two are zero. Node number 0 means "none". */
struct xm_kv_prefixes {
    uint32_t page_tokens, n_groups;
    struct xm_kv_node *nodes;
    int32_t *tokens; /* [node][page_tokens] */
    /* [node][n_groups]: the page of a group; < 0: none caches the tokens now */
    int32_t *words;
    uint32_t n, capacity, first_free;
    struct xm_hash_index index; /* of nodes, by parent and tokens */
    uint64_t last_serial;
};

/* Returns the node with these page_tokens tokens whose parent has serial `parent`; 0: there is
 * none. */
uint32_t xm_kv_prefix_find(const struct xm_kv_prefixes *p, uint64_t parent,
                           const int32_t *tokens);
/* Adds a node with these tokens and parent, without pages, and returns it; 0: no memory, so the
 * prefix cannot be found later. */
uint32_t xm_kv_prefix_add(struct xm_kv_prefixes *p, uint64_t parent,
                          const int32_t *tokens);
/* A node's pages: [n_groups]. */
static inline int32_t *
xm_kv_prefix_words(const struct xm_kv_prefixes *p, uint32_t node)
{
    return p->words + (uint64_t)node * p->n_groups;
}
/* Removes a group's page from a node, because the page gets other contents. A node without pages is
 * freed. */
void xm_kv_prefix_forget(struct xm_kv_prefixes *p, uint32_t node, uint32_t group);
void xm_kv_prefix_free(struct xm_kv_prefixes *p);

#endif
