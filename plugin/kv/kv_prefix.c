/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv/kv_prefix.h"

#include <string.h>

#include "runtime/util/checksum.h"
#include "runtime/util/memory.h"

enum { FIRST_NODES = 64 };

static const int32_t *
tokens_of(const struct xm_kv_prefixes *p, uint32_t node)
{
    return p->tokens + (uint64_t)node * p->page_tokens;
}

static uint64_t
hash_of(const struct xm_kv_prefixes *p, uint64_t parent, const int32_t *tokens)
{
    return xm_hash_number(parent) ^ xm_checksum(tokens, p->page_tokens * sizeof(*tokens));
}

uint32_t
xm_kv_prefix_find(const struct xm_kv_prefixes *p, uint64_t parent, const int32_t *tokens)
{
    struct xm_hash_probe at = xm_hash_begin(hash_of(p, parent, tokens));
    while (xm_hash_next(&p->index, &at)) {
        if (p->nodes[at.item].parent == parent &&
            memcmp(tokens_of(p, at.item), tokens, p->page_tokens * sizeof(*tokens)) == 0)
            return at.item;
    }
    return 0;
}

/* Doubles the room for nodes; false: no memory. A failure may leave some lists longer than
 * `capacity`, which is harmless. */
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
    if (!words || !xm_hash_reserve(&p->index, n))
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
    xm_hash_add(&p->index, hash_of(p, parent, tokens), i); /* has room since `grow` */
    p->nodes[i] = (struct xm_kv_node){.serial = ++p->last_serial, .parent = parent};
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
    xm_hash_remove(&p->index, hash_of(p, p->nodes[node].parent, tokens_of(p, node)),
                   node);
    p->nodes[node] = (struct xm_kv_node){.next = p->first_free};
    p->first_free = node;
}

void
xm_kv_prefix_free(struct xm_kv_prefixes *p)
{
    xm_free(p->nodes);
    xm_free(p->tokens);
    xm_free(p->words);
    xm_hash_free(&p->index);
    *p = (struct xm_kv_prefixes){.page_tokens = p->page_tokens,
                                 .n_groups = p->n_groups,
                                 .last_serial = p->last_serial};
}
