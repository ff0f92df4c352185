/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the pool: pages, groups, and what sequences do with them. Everything here is called
 * with the pool locked.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_PAGES_H
#define XM_PLUGIN_GPU_KV_KV_PAGES_H

#include <pthread.h>

#include "plugin/gpu/kv/kv_pool.h"
#include "plugin/gpu/kv/kv_prefix.h"
#include "primitives/attention/attention.h"

enum { XM_KV_NO_PAGE = -1 };

struct xm_kv_page_state {
    uint32_t users;         /* sequences; 0: in the list of free pages      */
    uint32_t node;          /* that it is part of; 0: nobody can find it    */
    int32_t before, behind; /* words of its neighbours in that list         */
};

struct xm_kv_slab {
    uint32_t n;
    struct xm_kv_page_state *pages;
};

struct xm_kv_group {
    uint64_t window, page_bytes; /* of all its layers */
    uint32_t n_layers;
    struct xm_kv_slab slab[XM_KV_SLABS];
    uint32_t n_slabs;
    uint64_t n_pages, n_free, n_cached;
    uint64_t expected;     /* pages in all, by xm_kv_pool_expect    */
    uint64_t wanted;       /* above the free ones, by what goes on  */
    int32_t first, newest; /* free pages, longest free first        */
};

struct xm_kv_pool {
    struct xm_engine *engine;
    uint32_t page_tokens;
    uint64_t chunk, budget, bytes;
    pthread_mutex_t lock; /* all below but the sizes */
    uint32_t n_layers, n_groups;
    uint32_t *group_of;   /* by layer */
    uint64_t *layer_page; /* bytes, by layer */
    struct xm_kv_group *groups;
    struct xm_buffer **slabs; /* [layer][XM_KV_SLABS] */
    struct xm_kv_prefixes prefixes;
};

struct xm_kv_page_state *xm_kv_page_of(struct xm_kv_group *g, int32_t word);
/* A page with one user; its former contents can be found no more. The pool grows if it has to and
 * may; XM_NO_MEMORY says what is full, and how large it is. */
enum xm_status xm_kv_take(struct xm_kv_pool *pool, uint32_t group, int32_t *word,
                          struct xm_error *err);
/* So many are about to be taken: a slab that is made for them has room for all. */
void xm_kv_expect_pages(struct xm_kv_pool *pool, uint32_t group, uint64_t n);
/* One user more, of a free page the first; one less. XM_KV_NO_PAGE is allowed. */
void xm_kv_share(struct xm_kv_pool *pool, uint32_t group, int32_t word);
void xm_kv_release(struct xm_kv_pool *pool, uint32_t group, int32_t word);
/* Its contents change: nobody finds it by them any more. */
void xm_kv_forget(struct xm_kv_pool *pool, uint32_t group, int32_t word);

#endif
