/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/token_counts.h"

#include "runtime/util/memory.h"

/* Returns the entry of an id; NULL: there is none. */
static struct xm_token_count *
find_count(const struct xm_token_counts *c, int32_t id)
{
    struct xm_hash_probe p = xm_hash_begin(xm_hash_number((uint32_t)id));
    while (xm_hash_next(&c->by_id, &p))
        if (c->entries[p.item].id == id)
            return &c->entries[p.item];
    return NULL;
}

bool
xm_token_counts_add(struct xm_token_counts *c, int32_t id)
{
    struct xm_token_count *e = find_count(c, id);
    if (e) {
        e->count++;
        return true;
    }
    struct xm_token_count *grown =
        xm_grow(c->entries, &c->capacity, c->n + 1, sizeof(*grown));
    c->entries = grown ? grown : c->entries;
    if (!grown || !xm_hash_add(&c->by_id, xm_hash_number((uint32_t)id), (uint32_t)c->n))
        return false;
    c->entries[c->n++] = (struct xm_token_count){.id = id, .count = 1};
    return true;
}

/* Takes back one occurrence. If the count becomes 0, the last entry moves to the place of the
 * entry. */
void
xm_token_counts_remove(struct xm_token_counts *c, int32_t id)
{
    struct xm_token_count *e = find_count(c, id);
    if (--e->count > 0)
        return;
    const uint32_t last = (uint32_t)--c->n, at = (uint32_t)(e - c->entries);
    xm_hash_remove(&c->by_id, xm_hash_number((uint32_t)id), at);
    if (at == last)
        return;
    *e = c->entries[last];
    xm_hash_move(&c->by_id, xm_hash_number((uint32_t)e->id), last, at);
}

void
xm_token_counts_mark(struct xm_token_counts *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->entries[i].before = c->entries[i].count;
}

void
xm_token_counts_clear(struct xm_token_counts *c)
{
    c->n = 0;
    xm_hash_clear(&c->by_id);
}

void
xm_token_counts_free(struct xm_token_counts *c)
{
    xm_free(c->entries);
    xm_hash_free(&c->by_id);
    *c = (struct xm_token_counts){0};
}
