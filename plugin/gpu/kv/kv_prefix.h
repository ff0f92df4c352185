/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pages hold which beginnings: a hash of whole pages. A node stands for the tokens of one
 * page behind those of its parent; it has the page of each group that holds them. Tokens are
 * compared, never only their hash.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_PREFIX_H
#define XM_PLUGIN_GPU_KV_KV_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

struct xm_kv_node {
    uint64_t serial; /* never given twice; 0: the node is free */
    uint64_t parent; /* serial; 0: these are the first tokens */
    uint64_t hash;
    uint32_t next; /* of its bucket, or of the free nodes; 0: the last */
};

/* Zeroed but for the first two: empty. Node 0 is none. */
struct xm_kv_prefixes {
    uint32_t page_tokens, n_groups;
    struct xm_kv_node *nodes;
    int32_t *tokens; /* [node][page_tokens] */
    int32_t *words; /* [node][n_groups]; < 0: no page of that group holds them any more */
    uint32_t n, capacity, first_free;
    uint32_t *buckets;
    uint32_t n_buckets; /* a power of two */
    uint64_t last_serial;
};

/* 0: there is none. */
uint32_t xm_kv_prefix_find(const struct xm_kv_prefixes *p, uint64_t parent,
                           const int32_t *tokens);
/* A node without pages; 0: no memory for one, and nothing is lost but that it could be found. */
uint32_t xm_kv_prefix_add(struct xm_kv_prefixes *p, uint64_t parent,
                          const int32_t *tokens);
static inline int32_t *
xm_kv_prefix_words(const struct xm_kv_prefixes *p, uint32_t node)
{
    return p->words + (uint64_t)node * p->n_groups;
}
/* A group's page has other contents now. A node without pages is free. */
void xm_kv_prefix_forget(struct xm_kv_prefixes *p, uint32_t node, uint32_t group);
void xm_kv_prefix_free(struct xm_kv_prefixes *p);

#endif
