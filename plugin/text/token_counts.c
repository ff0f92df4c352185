/* SPDX-License-Identifier: Apache-2.0
 *
 * An entry whose count has gone to 0 keeps its id, so that others behind it are found; the next
 * growth drops it.
 */
#include "plugin/text/token_counts.h"

#include <string.h>

#include "runtime/util/memory.h"

enum { LEAST = 16 };

static bool
is_empty(const struct xm_token_count *e)
{
    return e->id < 0;
}

/* The entry of the id, or the empty one that it would get. */
static struct xm_token_count *
find_count(const struct xm_token_counts *c, int32_t id)
{
    size_t at = ((uint32_t)id * 2654435769u) & (c->capacity - 1);
    while (!is_empty(&c->entries[at]) && c->entries[at].id != id)
        at = (at + 1) & (c->capacity - 1);
    return &c->entries[at];
}

static size_t
count_live(const struct xm_token_counts *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->capacity; i++)
        n += c->entries[i].count > 0;
    return n;
}

static void
make_empty(struct xm_token_counts *c)
{
    for (size_t i = 0; i < c->capacity; i++)
        c->entries[i] = (struct xm_token_count){.id = -1};
    c->used = 0;
}

/* Room for one more where three quarters are used: twice as many as there are counts, at least. */
static bool
make_room(struct xm_token_counts *c)
{
    struct xm_token_counts grown = {.capacity = LEAST};
    if (4 * (c->used + 1) <= 3 * c->capacity)
        return true;
    for (const size_t live = count_live(c) + 1; grown.capacity < 2 * live;)
        grown.capacity *= 2;
    grown.entries = xm_calloc(grown.capacity, sizeof(*grown.entries));
    if (!grown.entries)
        return false;
    make_empty(&grown);
    for (size_t i = 0; i < c->capacity; i++) {
        if (c->entries[i].count == 0)
            continue;
        *find_count(&grown, c->entries[i].id) = c->entries[i];
        grown.used++;
    }
    xm_free(c->entries);
    *c = grown;
    return true;
}

bool
xm_token_counts_add(struct xm_token_counts *c, int32_t id)
{
    if (!make_room(c))
        return false;
    struct xm_token_count *e = find_count(c, id);
    c->used += is_empty(e);
    e->id = id;
    e->count++;
    return true;
}

void
xm_token_counts_remove(struct xm_token_counts *c, int32_t id)
{
    find_count(c, id)->count--;
}

void
xm_token_counts_mark(struct xm_token_counts *c)
{
    for (size_t i = 0; i < c->capacity; i++)
        c->entries[i].before = c->entries[i].count;
}

void
xm_token_counts_clear(struct xm_token_counts *c)
{
    make_empty(c);
}

void
xm_token_counts_free(struct xm_token_counts *c)
{
    xm_free(c->entries);
    *c = (struct xm_token_counts){0};
}
