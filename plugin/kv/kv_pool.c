/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/kv/kv_pages.h"
#include "runtime/util/memory.h"

enum {
    FIRST_POSITIONS = 256, /* of a group's first slab, if no sequences were announced */
    EXACT_SLABS = 4, /* the first slabs are only as large as announced sequences need */
    LAST_SLABS = 2   /* the last slabs grow so that they reach the budget */
};

/* ---- making and freeing ------------------------------------------------------------- */

/* Puts each layer into the group of its window. Groups are in the order of their first layers. */
static enum xm_status
group_layers(struct xm_kv_pool *pool, const struct xm_kv_need *layers,
             struct xm_error *err)
{
    for (uint32_t i = 0; i < pool->n_layers; i++) {
        uint32_t g = 0;
        while (g < pool->n_groups && pool->groups[g].window != layers[i].window)
            g++;
        if (g == pool->n_groups)
            pool->groups[pool->n_groups++] =
                (struct xm_kv_group){.window = layers[i].window,
                                     .first = XM_KV_NO_PAGE,
                                     .newest = XM_KV_NO_PAGE};
        struct xm_kv_group *group = &pool->groups[g];
        group->n_layers++;
        pool->group_of[i] = g;
        pool->layer_page[i] = layers[i].page_bytes;
        if (!xm_add_size(group->page_bytes, layers[i].page_bytes, &group->page_bytes))
            return xm_fail(err, XM_NO_MEMORY,
                           "the size of a page of the KV cache overflows");
    }
    return XM_OK;
}

enum xm_status
xm_kv_pool_create(const struct xm_kv_pool_desc *desc, struct xm_kv_pool **out,
                  struct xm_error *err)
{
    const size_t n = desc->n_layers + 1;
    struct xm_kv_pool *pool = xm_calloc(1, sizeof(*pool));
    if (!pool || pthread_mutex_init(&pool->lock, NULL)) {
        xm_free(pool);
        return xm_no_memory(err, "a KV pool");
    }
    pool->engine = desc->engine;
    xm_engine_ref(pool->engine);
    pool->page_tokens = desc->page_tokens;
    pool->chunk = desc->chunk;
    pool->budget = desc->budget;
    pool->n_layers = desc->n_layers;
    pool->group_of = xm_calloc(n, sizeof(*pool->group_of));
    pool->layer_page = xm_calloc(n, sizeof(*pool->layer_page));
    pool->groups = xm_calloc(n, sizeof(*pool->groups));
    pool->slabs = xm_calloc(n * XM_KV_SLABS, sizeof(struct xm_buffer *));
    enum xm_status s = XM_OK;
    if (!pool->group_of || !pool->layer_page || !pool->groups || !pool->slabs)
        s = xm_no_memory(err, "a KV pool's lists");
    if (s == XM_OK)
        s = group_layers(pool, desc->layers, err);
    if (s != XM_OK) {
        xm_kv_pool_destroy(pool);
        return s;
    }
    pool->prefixes.page_tokens = pool->page_tokens;
    pool->prefixes.n_groups = pool->n_groups;
    *out = pool;
    return XM_OK;
}

/* Frees all slabs with the states of their pages, and empties the prefix index. */
static void
free_slabs(struct xm_kv_pool *pool)
{
    for (uint32_t i = 0; pool->slabs && i < pool->n_layers * XM_KV_SLABS; i++) {
        xm_buffer_unref(pool->slabs[i]);
        pool->slabs[i] = NULL;
    }
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        struct xm_kv_group *g = &pool->groups[i];
        for (uint32_t k = 0; k < g->n_slabs; k++)
            xm_free(g->slab[k].pages);
        *g = (struct xm_kv_group){.window = g->window,
                                  .page_bytes = g->page_bytes,
                                  .n_layers = g->n_layers,
                                  .first = XM_KV_NO_PAGE,
                                  .newest = XM_KV_NO_PAGE};
    }
    xm_kv_prefix_free(&pool->prefixes);
    pool->bytes = 0;
}

void
xm_kv_pool_trim(struct xm_kv_pool *pool)
{
    bool is_used = false;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t g = 0; g < pool->n_groups; g++)
        is_used |= pool->groups[g].n_free < pool->groups[g].n_pages;
    if (!is_used)
        free_slabs(pool);
    pthread_mutex_unlock(&pool->lock);
}

void
xm_kv_pool_destroy(struct xm_kv_pool *pool)
{
    if (!pool)
        return;
    free_slabs(pool);
    xm_free(pool->slabs);
    xm_free(pool->groups);
    xm_free(pool->layer_page);
    xm_free(pool->group_of);
    pthread_mutex_destroy(&pool->lock);
    xm_engine_unref(pool->engine);
    xm_free(pool);
}

/* ---- the list of free pages ----------------------------------------------------------- */

struct xm_kv_page_state *
xm_kv_page_of(struct xm_kv_group *g, int32_t word)
{
    const uint32_t mask = (1u << XM_KV_SLAB_SHIFT) - 1;
    return &g->slab[(uint32_t)word >> XM_KV_SLAB_SHIFT].pages[(uint32_t)word & mask];
}

/* Removes the page between `before` and `behind` from the list of free pages: links these two to
 * each other. */
static void
link_neighbours(struct xm_kv_group *g, int32_t before, int32_t behind)
{
    if (before == XM_KV_NO_PAGE)
        g->first = behind;
    else
        xm_kv_page_of(g, before)->behind = behind;
    if (behind == XM_KV_NO_PAGE)
        g->newest = before;
    else
        xm_kv_page_of(g, behind)->before = before;
}

static void
unlink_page(struct xm_kv_group *g, int32_t word)
{
    const struct xm_kv_page_state *page = xm_kv_page_of(g, word);
    link_neighbours(g, page->before, page->behind);
    g->n_free--;
    g->n_cached -= page->node != 0;
}

/* Adds a page to the list of free pages: at the end, where it is taken last, if the prefix index
 * has the page, so that prompts can still find it; otherwise at the beginning. */
static void
link_page(struct xm_kv_group *g, int32_t word)
{
    struct xm_kv_page_state *page = xm_kv_page_of(g, word);
    page->before = page->node ? g->newest : XM_KV_NO_PAGE;
    page->behind = page->node ? XM_KV_NO_PAGE : g->first;
    if (page->before == XM_KV_NO_PAGE)
        g->first = word;
    else
        xm_kv_page_of(g, page->before)->behind = word;
    if (page->behind == XM_KV_NO_PAGE)
        g->newest = word;
    else
        xm_kv_page_of(g, page->behind)->before = word;
    g->n_free++;
    g->n_cached += page->node != 0;
}

/* ---- slabs --------------------------------------------------------------------------- */

/* Returns by how many pages a group may grow if the groups share the budget in proportion to their
 * bytes in use. Layers with a window need fewer pages than layers that keep all positions, but how
 * many fewer depends on the sequences. */
static uint64_t
share_of(const struct xm_kv_pool *pool, const struct xm_kv_group *g)
{
    double used = 0.0;
    for (uint32_t i = 0; i < pool->n_groups; i++)
        used += (double)(pool->groups[i].n_pages - pool->groups[i].n_free) *
                (double)pool->groups[i].page_bytes;
    const double part = used > 0.0 ? (double)(g->n_pages - g->n_free) / used : 0.0;
    const double pages = (double)pool->budget * part;
    return pages > (double)g->n_pages ? (uint64_t)pages - g->n_pages : 0;
}

/* Returns the number of pages of a group's next slab, at most what the budget leaves. The first
 * EXACT_SLABS slabs have the announced pages. Other slabs double the group's pages, even if fewer
 * were announced, because a group can have only XM_KV_SLABS slabs. The last LAST_SLABS slabs grow
 * by equal factors up to the group's share of a bounded budget. */
static uint64_t
next_slab(const struct xm_kv_pool *pool, const struct xm_kv_group *g)
{
    const uint64_t left = (pool->budget - pool->bytes) / g->page_bytes;
    const uint64_t first = (FIRST_POSITIONS + pool->page_tokens - 1) / pool->page_tokens;
    const uint32_t slabs_left = XM_KV_SLABS - g->n_slabs;
    const uint64_t now = g->n_pages;
    const bool is_bounded = pool->budget < UINT64_MAX;
    const uint64_t share = is_bounded ? share_of(pool, g) : 0;
    const uint64_t expected = g->expected > now ? g->expected - now : 0;
    const bool is_exact = expected && g->n_slabs < EXACT_SLABS;
    uint64_t pages = expected > g->wanted ? expected : g->wanted;
    if (!is_exact && now) {
        const double all = (double)now + (double)share;
        const double growth = pow(all / (double)now, 1.0 / slabs_left) - 1.0;
        const uint64_t even = slabs_left > LAST_SLABS || !is_bounded
                                  ? now
                                  : (uint64_t)((double)now * growth) + 1;
        pages = pages > even ? pages : even;
    } else if (!is_exact) {
        pages = pages > first ? pages : first;
    }
    if (slabs_left == 1 && is_bounded)
        pages = pages > share ? pages : share;
    const uint64_t most = (uint64_t)1 << XM_KV_SLAB_SHIFT;
    pages = pages < left ? pages : left;
    return pages < most ? pages : most;
}

/* Creates the buffers of a group's next slab, one for each layer: all or, on failure, none. */
static enum xm_status
create_buffers(struct xm_kv_pool *pool, uint32_t group, uint64_t pages,
               struct xm_error *err)
{
    const uint32_t slab = pool->groups[group].n_slabs;
    enum xm_status s = XM_OK;
    uint32_t i = 0;
    for (; i < pool->n_layers && s == XM_OK; i++) {
        if (pool->group_of[i] == group)
            s = xm_buffer_create(pool->engine, XM_USE_DEVICE, pages * pool->layer_page[i],
                                 &pool->slabs[i * XM_KV_SLABS + slab], err);
    }
    for (uint32_t k = 0; s != XM_OK && k < i; k++) {
        if (pool->group_of[k] != group)
            continue;
        xm_buffer_unref(pool->slabs[k * XM_KV_SLABS + slab]);
        pool->slabs[k * XM_KV_SLABS + slab] = NULL;
    }
    if (s != XM_OK)
        xm_error_prefix(err, "%" PRIu64 " more pages of the KV cache", pages);
    return s;
}

static enum xm_status
refuse(const struct xm_kv_pool *pool, const struct xm_kv_group *g, struct xm_error *err)
{
    const double mib = 1048576.0;
    return xm_fail(
        err, XM_NO_MEMORY,
        "the KV cache is full: %.1f of %.1f MiB are allocated, and all %" PRIu64
        " pages of %u positions are in use; run shorter or fewer sequences, or set a "
        "larger XM_KV_MEMORY",
        (double)pool->bytes / mib, (double)pool->budget / mib, g->n_pages,
        pool->page_tokens);
}

/* Returns `pages`, or fewer if a layer's buffer would be larger than the device's largest
 * allocation. */
static uint64_t
allocatable(const struct xm_kv_pool *pool, uint32_t group, uint64_t pages)
{
    const uint64_t most = xm_engine_info(pool->engine)->max_alloc_bytes;
    for (uint32_t i = 0; i < pool->n_layers; i++) {
        if (pool->group_of[i] == group && most / pool->layer_page[i] < pages)
            pages = most / pool->layer_page[i];
    }
    return pages;
}

static enum xm_status
grow(struct xm_kv_pool *pool, uint32_t group, struct xm_error *err)
{
    struct xm_kv_group *g = &pool->groups[group];
    const uint64_t pages =
        g->n_slabs < XM_KV_SLABS ? allocatable(pool, group, next_slab(pool, g)) : 0;
    if (pages == 0)
        return refuse(pool, g, err);
    struct xm_kv_page_state *list = xm_calloc(pages, sizeof(*list));
    if (!list)
        return xm_no_memory(err, "a list of %" PRIu64 " pages of the KV cache", pages);
    enum xm_status s = create_buffers(pool, group, pages, err);
    if (s != XM_OK) {
        xm_free(list);
        return s;
    }
    const uint32_t slab = g->n_slabs++;
    g->slab[slab] = (struct xm_kv_slab){(uint32_t)pages, list};
    g->n_pages += pages;
    pool->bytes += pages * g->page_bytes;
    for (uint64_t i = pages; i-- > 0;) /* so that page 0 of the slab is taken first */
        link_page(g, (int32_t)(slab << XM_KV_SLAB_SHIFT | (uint32_t)i));
    return XM_OK;
}

/* ---- pages --------------------------------------------------------------------------- */

void
xm_kv_forget(struct xm_kv_pool *pool, uint32_t group, int32_t word)
{
    struct xm_kv_page_state *page = xm_kv_page_of(&pool->groups[group], word);
    if (page->node)
        xm_kv_prefix_forget(&pool->prefixes, page->node, group);
    page->node = 0;
}

enum xm_status
xm_kv_take(struct xm_kv_pool *pool, uint32_t group, int32_t *word, struct xm_error *err)
{
    struct xm_kv_group *g = &pool->groups[group];
    if (g->first == XM_KV_NO_PAGE)
        XM_TRY(grow(pool, group, err));
    *word = g->first;
    unlink_page(g, *word);
    xm_kv_forget(pool, group, *word);
    xm_kv_page_of(g, *word)->users = 1;
    return XM_OK;
}

void
xm_kv_expect_pages(struct xm_kv_pool *pool, uint32_t group, uint64_t n)
{
    struct xm_kv_group *g = &pool->groups[group];
    g->wanted = n > g->n_free ? n - g->n_free : 0;
}

void
xm_kv_share(struct xm_kv_pool *pool, uint32_t group, int32_t word)
{
    if (word == XM_KV_NO_PAGE)
        return;
    struct xm_kv_page_state *page = xm_kv_page_of(&pool->groups[group], word);
    if (page->users++ == 0)
        unlink_page(&pool->groups[group], word);
}

void
xm_kv_release(struct xm_kv_pool *pool, uint32_t group, int32_t word)
{
    if (word == XM_KV_NO_PAGE)
        return;
    struct xm_kv_page_state *page = xm_kv_page_of(&pool->groups[group], word);
    if (--page->users == 0)
        link_page(&pool->groups[group], word);
}

/* ---- questions ----------------------------------------------------------------------- */

uint32_t
xm_kv_pool_groups(const struct xm_kv_pool *pool)
{
    return pool->n_groups;
}

uint32_t
xm_kv_pool_group_of(const struct xm_kv_pool *pool, uint32_t layer)
{
    return pool->group_of[layer];
}

void
xm_kv_pool_slabs(struct xm_kv_pool *pool, uint32_t layer, struct xm_buffer **out)
{
    pthread_mutex_lock(&pool->lock);
    memcpy(out, pool->slabs + (size_t)layer * XM_KV_SLABS, XM_KV_SLABS * sizeof(*out));
    pthread_mutex_unlock(&pool->lock);
}

uint64_t
xm_kv_pool_pages_for(const struct xm_kv_pool *pool, uint32_t group, uint64_t positions)
{
    const uint64_t window = pool->groups[group].window;
    const uint64_t tokens = pool->page_tokens;
    const uint64_t all = positions / tokens + (positions % tokens > 0);
    /* a window and a chunk, the first position of which is the last of its page */
    const uint64_t kept = (window + pool->chunk + tokens - 2) / tokens + 1;
    return window && kept < all ? kept : all;
}

/* Announces that `pages` more pages than those in use will be needed. Ignores a sum that overflows
 * 64 bits. */
static void
expect_pages(struct xm_kv_group *g, uint64_t pages)
{
    if (xm_add_size(pages, g->n_pages - g->n_free, &pages) && pages > g->expected)
        g->expected = pages;
}

void
xm_kv_pool_expect(struct xm_kv_pool *pool, uint64_t sequences, uint64_t positions)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        uint64_t pages = 0;
        if (xm_mul_size(sequences, xm_kv_pool_pages_for(pool, i, positions), &pages))
            expect_pages(&pool->groups[i], pages);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Sets *pages to the pages of a group that n sequences need; returns false if the sum overflows. */
static bool
pages_for_each(const struct xm_kv_pool *pool, uint32_t group, const uint64_t *positions,
               size_t n, uint64_t *pages)
{
    bool fits = true;
    *pages = 0;
    for (size_t k = 0; k < n && fits; k++)
        fits =
            xm_add_size(*pages, xm_kv_pool_pages_for(pool, group, positions[k]), pages);
    return fits;
}

void
xm_kv_pool_expect_each(struct xm_kv_pool *pool, const uint64_t *positions, size_t n)
{
    uint64_t pages;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_groups; i++) {
        if (pages_for_each(pool, i, positions, n, &pages))
            expect_pages(&pool->groups[i], pages);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool
xm_kv_pool_has_room(struct xm_kv_pool *pool, const uint64_t *positions, size_t n)
{
    uint64_t pages, bytes, left;
    bool fits = true;
    pthread_mutex_lock(&pool->lock);
    left = pool->budget - pool->bytes;
    for (uint32_t i = 0; i < pool->n_groups && fits; i++) {
        const struct xm_kv_group *g = &pool->groups[i];
        fits = pages_for_each(pool, i, positions, n, &pages);
        if (!fits || pages <= g->n_free)
            continue;
        fits = xm_mul_size(pages - g->n_free, g->page_bytes, &bytes) && bytes <= left;
        left -= fits ? bytes : 0;
    }
    pthread_mutex_unlock(&pool->lock);
    return fits;
}

void
xm_kv_pool_expect_none(struct xm_kv_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_groups; i++)
        pool->groups[i].expected = 0;
    pthread_mutex_unlock(&pool->lock);
}

void
xm_kv_pool_stats(struct xm_kv_pool *pool, uint32_t group, struct xm_kv_group_stats *out)
{
    pthread_mutex_lock(&pool->lock);
    const struct xm_kv_group *g = &pool->groups[group];
    *out = (struct xm_kv_group_stats){.window = g->window,
                                      .layers = g->n_layers,
                                      .page_bytes = g->page_bytes,
                                      .pages = g->n_pages,
                                      .used = g->n_pages - g->n_free,
                                      .cached = g->n_cached};
    pthread_mutex_unlock(&pool->lock);
}

uint64_t
xm_kv_pool_bytes(struct xm_kv_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const uint64_t bytes = pool->bytes;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}
