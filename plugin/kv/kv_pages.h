/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the pool: pages, groups of layers, and the functions by which sequences take, share and
 * release pages. A page's *word* is an integer that encodes its slab and its number in the slab, as
 * BLOCK_INDICES of attention does (runtime/operations/attention_operation.h). The caller of a
 * function holds the pool's lock.
 */
#ifndef XM_PLUGIN_KV_KV_PAGES_H
#define XM_PLUGIN_KV_KV_PAGES_H

#include <pthread.h>

#include "plugin/kv/kv_pool.h"
#include "plugin/kv/kv_prefix.h"
#include "plugin/kv/kv_sequence.h"
#include "primitives/attention/attention.h"

enum { XM_KV_NO_PAGE = -1 };

struct xm_kv_page_state {
    uint32_t users;         /* sequences that use the page; 0: it is free       */
    uint32_t node;          /* the prefix index's node that has the page; 0: none */
    int32_t before, behind; /* words of its neighbours in the list of free pages */
};

struct xm_kv_slab {
    uint32_t n;
    struct xm_kv_page_state *pages;
};

struct xm_kv_group {
    /* the sliding window of each of its layers, 0: none; bytes of a page in all its layers */
    uint64_t window, page_bytes;
    uint32_t n_layers;
    struct xm_kv_slab slab[XM_KV_SLABS];
    uint32_t n_slabs;
    uint64_t n_pages, n_free, n_cached;
    uint64_t expected; /* pages in use and pages announced by xm_kv_pool_expect */
    uint64_t wanted;   /* pages that a reservation needs beyond the free ones */
    /* Words of the ends of the list of free pages; pages are taken from `first`. Pages that are in
     * the prefix index are added at `newest`, other pages at `first`. */
    int32_t first, newest;
};

struct xm_kv_pool {
    struct xm_engine *engine;
    uint32_t page_tokens;
    uint64_t chunk, budget, bytes;
    pthread_mutex_t lock; /* guards the members below that change */
    uint32_t n_layers, n_groups;
    uint32_t *group_of;   /* [layer]: its group */
    uint64_t *layer_page; /* [layer]: bytes of the layer's part of a page */
    struct xm_kv_group *groups;
    struct xm_buffer **slabs; /* [layer][XM_KV_SLABS] */
    struct xm_kv_prefixes prefixes;
};

struct xm_kv_pool *xm_kv_sequence_pool(const struct xm_kv_sequence *s);
struct xm_kv_page_state *xm_kv_page_of(struct xm_kv_group *g, int32_t word);
/* Takes the first page of the list of free pages, or adds a slab if no page is free. Sets *word to
 * the page, which gets one user and is removed from the prefix index. XM_NO_MEMORY: the budget or
 * the device's memory is used up; the message has the sizes. */
enum xm_status xm_kv_take(struct xm_kv_pool *pool, uint32_t group, int32_t *word,
                          struct xm_error *err);
/* Announces that n pages will be taken, so that a slab that is added for them has room for all. */
void xm_kv_expect_pages(struct xm_kv_pool *pool, uint32_t group, uint64_t n);
/* xm_kv_share adds a user to a page, which may be free. xm_kv_release removes a user; the page is
 * free when it has no user left. XM_KV_NO_PAGE is allowed. */
void xm_kv_share(struct xm_kv_pool *pool, uint32_t group, int32_t word);
void xm_kv_release(struct xm_kv_pool *pool, uint32_t group, int32_t word);
/* Removes a page from the prefix index, because its contents are about to change. */
void xm_kv_forget(struct xm_kv_pool *pool, uint32_t group, int32_t word);

#endif
