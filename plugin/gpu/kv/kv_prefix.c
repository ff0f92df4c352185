/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/kv/kv_prefix.h"

#include <string.h>

#include "runtime/util/memory.h"

enum { FIRST_NODES = 64 };

static const int32_t *
tokens_of(const struct xm_kv_prefixes *p, uint32_t node)
{
    return p->tokens + (uint64_t)node * p->page_tokens;
}

/* FNV-1a over the parent and the tokens, a word at a time. */
static uint64_t
hash_of(uint64_t parent, const int32_t *tokens, uint32_t n)
{
    uint64_t h = 0xcbf29ce484222325u ^ parent;
    for (uint32_t i = 0; i < n; i++)
        h = (h * 0x100000001b3u) ^ (uint32_t)tokens[i];
    h *= 0x100000001b3u;
    return h ^ h >> 32; /* buckets are chosen by the low bits */
}

static uint32_t *
bucket_of(const struct xm_kv_prefixes *p, uint64_t hash)
{
    return &p->buckets[hash & (p->n_buckets - 1)];
}

uint32_t
xm_kv_prefix_find(const struct xm_kv_prefixes *p, uint64_t parent, const int32_t *tokens)
{
    const uint64_t hash = hash_of(parent, tokens, p->page_tokens);
    for (uint32_t i = p->n_buckets ? *bucket_of(p, hash) : 0; i; i = p->nodes[i].next) {
        if (p->nodes[i].hash == hash && p->nodes[i].parent == parent &&
            memcmp(tokens_of(p, i), tokens, p->page_tokens * sizeof(*tokens)) == 0)
            return i;
    }
    return 0;
}

/* As many buckets as nodes: all find their new ones. */
static bool
rehash(struct xm_kv_prefixes *p, uint32_t n_buckets)
{
    uint32_t *buckets = xm_calloc(n_buckets, sizeof(*buckets));
    if (!buckets)
        return false;
    xm_free(p->buckets);
    p->buckets = buckets;
    p->n_buckets = n_buckets;
    for (uint32_t i = 1; i < p->n; i++) {
        if (p->nodes[i].serial) {
            uint32_t *bucket = bucket_of(p, p->nodes[i].hash);
            p->nodes[i].next = *bucket;
            *bucket = i;
        }
    }
    return true;
}

/* Each list may be longer than `capacity` after a failure: nothing is lost. */
static bool
grow(struct xm_kv_prefixes *p)
{
    const uint32_t n = p->capacity ? 2 * p->capacity : FIRST_NODES;
    if (p->capacity > UINT32_MAX / 2)
        return false;
    struct xm_kv_node *nodes = xm_realloc(p->nodes, n * sizeof(*nodes));
    p->nodes = nodes ? nodes : p->nodes;
    int32_t *tokens =
        nodes ? xm_realloc(p->tokens, (size_t)n * p->page_tokens * sizeof(*tokens))
              : NULL;
    p->tokens = tokens ? tokens : p->tokens;
    int32_t *words =
        tokens ? xm_realloc(p->words, (size_t)n * p->n_groups * sizeof(*words)) : NULL;
    p->words = words ? words : p->words;
    if (!words || !rehash(p, n))
        return false;
    p->capacity = n;
    p->n = p->n ? p->n : 1; /* node 0 is none */
    return true;
}

uint32_t
xm_kv_prefix_add(struct xm_kv_prefixes *p, uint64_t parent, const int32_t *tokens)
{
    uint32_t i = p->first_free;
    if (!i && p->n == p->capacity && !grow(p))
        return 0;
    if (i)
        p->first_free = p->nodes[i].next;
    else
        i = p->n++;
    const uint64_t hash = hash_of(parent, tokens, p->page_tokens);
    uint32_t *bucket = bucket_of(p, hash);
    p->nodes[i] = (struct xm_kv_node){++p->last_serial, parent, hash, *bucket};
    *bucket = i;
    memcpy(p->tokens + (uint64_t)i * p->page_tokens, tokens,
           p->page_tokens * sizeof(*tokens));
    for (uint32_t g = 0; g < p->n_groups; g++)
        xm_kv_prefix_words(p, i)[g] = -1;
    return i;
}

void
xm_kv_prefix_forget(struct xm_kv_prefixes *p, uint32_t node, uint32_t group)
{
    int32_t *words = xm_kv_prefix_words(p, node);
    words[group] = -1;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        if (words[g] >= 0)
            return;
    }
    uint32_t *at = bucket_of(p, p->nodes[node].hash);
    while (*at != node)
        at = &p->nodes[*at].next;
    *at = p->nodes[node].next;
    p->nodes[node] = (struct xm_kv_node){.next = p->first_free};
    p->first_free = node;
}

void
xm_kv_prefix_free(struct xm_kv_prefixes *p)
{
    xm_free(p->nodes);
    xm_free(p->tokens);
    xm_free(p->words);
    xm_free(p->buckets);
    *p = (struct xm_kv_prefixes){.page_tokens = p->page_tokens,
                                 .n_groups = p->n_groups,
                                 .last_serial = p->last_serial};
}
