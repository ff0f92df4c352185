/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the KV pool of a program: which layers it caches, and how much memory it may use.
 */
#include "plugin/lower/program.h"
#include "plugin/memory_planner.h"
#include "runtime/util/memory.h"

enum { LEFT_FREE = 8 }; /* 1/8 of the free memory is left for activations and others */

/* Returns the most bytes that the pool may use. On a counting engine there is no limit, because a
 * plan counts what is asked for, whether there is room for it or not. */
static uint64_t
budget_of(const struct xm_program *p)
{
    struct xm_memory_stats in_use;
    struct xm_memory_room room;
    if (p->config.kv_memory)
        return (uint64_t)p->config.kv_memory << 20;
    if (xm_engine_only_counts(p->engine))
        return UINT64_MAX;
    xm_engine_memory_stats(p->engine, &in_use);
    xm_planner_room(xm_engine_info(p->engine), &in_use, &room);
    return room.known ? room.device - room.device / LEFT_FREE : UINT64_MAX;
}

enum xm_status
xm_program_create_kv_pool(struct xm_program *p, bool counts_positions,
                          struct xm_error *err)
{
    if (p->n_kv == 0 && !p->host_states && !counts_positions)
        return XM_OK;
    struct xm_kv_need *needs = xm_calloc(p->n_kv + 1, sizeof(*needs));
    if (!needs)
        return xm_no_memory(err, "the list of cached layers");
    for (uint32_t i = 0; i < p->n_kv; i++)
        needs[i] = (struct xm_kv_need){p->kv[i].page_bytes, p->kv[i].window};
    const struct xm_kv_pool_desc desc = {.engine = p->engine,
                                         .page_tokens = p->config.kv_block_tokens,
                                         .layers = needs,
                                         .n_layers = p->n_kv,
                                         .chunk = p->config.ubatch,
                                         .budget = budget_of(p)};
    const enum xm_status s = xm_kv_pool_create(&desc, &p->kv_pool, err);
    xm_free(needs);
    return s;
}
