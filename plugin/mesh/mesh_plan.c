/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_plan.h"

#include "runtime/util/memory.h"

/* All ranks map the same file, which the host's memory holds once. */
static void
find_shared_excess(struct xm_mesh_plan *p)
{
    uint64_t needed = 0, mapped = 0, room = UINT64_MAX;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        const struct xm_plan *rank = &p->rank[i];
        const struct xm_memory_need *need = &rank->need;
        if (!rank->room.known || !rank->room.host_is_device)
            continue;
        needed += need->kinds.total_peak;
        if (rank->room.is_for_mapped && need->mapped_weights > mapped)
            mapped = need->mapped_weights;
        room = rank->room.device < room ? rank->room.device : room;
    }
    needed += mapped;
    p->shared_excess = needed > room ? needed - room : 0;
}

static void
find_times(struct xm_mesh_plan *p)
{
    const uint32_t n = p->devices.n;
    p->read_s = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const double bytes = (double)p->rank[i].need.token_weights;
        const double s = p->read_rate[i] > 0.0 ? bytes / p->read_rate[i] : 0.0;
        if (s <= 0.0) {
            p->read_s = 0.0;
            break;
        }
        p->read_s = s > p->read_s ? s : p->read_s;
    }
    p->exchange_s = p->n_exchanges * p->link_latency_s + p->received_bytes / p->link_rate;
}

enum xm_status
xm_mesh_plan(struct xm_mesh_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    const uint32_t n = p->devices.n;
    struct xm_mesh_parts parts = {.devices = &p->devices, .wish = p->wish};
    struct xm_shared_group *group = xm_shared_group_create(n);
    enum xm_status s = group ? XM_OK : xm_no_memory(err, "a plan");
    for (uint32_t i = 0; i < n && s == XM_OK; i++) {
        struct xm_plan *rank = &p->rank[i];
        parts.end = xm_shared_group_rank(group, i);
        rank->replace = xm_mesh_take_part;
        rank->replace_ctx = &parts;
        s = xm_planner_plan(rank, g, err);
        rank->replace = NULL;
        rank->replace_ctx = NULL;
        if (s != XM_OK)
            xm_error_prefix(err, "rank %u", i);
    }
    p->exchange_kinds = parts.exchange_kinds;
    p->n_exchanges = parts.n_exchanges;
    p->exchanged_bytes = parts.exchanged_bytes;
    p->received_bytes = parts.received_bytes;
    xm_free(parts.exchanges);
    xm_shared_group_free(group);
    if (s == XM_OK) {
        find_shared_excess(p);
        find_times(p);
    }
    return s;
}

void
xm_mesh_free_plan(struct xm_mesh_plan *p)
{
    xm_free(p->exchange_kinds);
    p->exchange_kinds = NULL;
    for (uint32_t i = 0; i < p->devices.n; i++)
        xm_planner_free_plan(&p->rank[i]);
}
