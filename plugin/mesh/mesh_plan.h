/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a mesh: of each rank the memory that its part takes, what a token exchanges, and how
 * many tokens a second memory and links allow.
 */
#ifndef XM_PLUGIN_MESH_MESH_PLAN_H
#define XM_PLUGIN_MESH_MESH_PLAN_H

#include "plugin/memory_planner.h"
#include "plugin/mesh/mesh_part.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mesh_plan {
    /* Set by the caller: */
    struct xm_mesh_devices devices;
    struct xm_split_wish wish;          /* xm_mesh_wish: as a run splits */
    struct xm_plan rank[XM_MOST_RANKS]; /* of each what xm_planner_plan asks for */
    double read_rate
        [XM_MOST_RANKS]; /* bytes a second of each device's memory; 0: not known */
    double link_rate, link_latency_s; /* bytes a second between devices; of a message */
    /* Set by xm_mesh_plan: */
    char *exchange_kinds; /* xm_split_print_kinds; owned: xm_mesh_free_plan */
    uint32_t n_exchanges;
    uint64_t exchanged_bytes; /* of a token */
    double received_bytes;    /* of them, what a rank receives of the others */
    /* Bytes missing where ranks that each would fit take one memory, the host's. */
    uint64_t shared_excess;
    /* Seconds that a token takes at least: read_s, the slowest rank's reading of weights (0: a
     * memory's rate is not known); exchange_s, the latency of each message and the bytes that a
     * rank receives. */
    double read_s, exchange_s;
};

/* As xm_planner_plan, for all ranks. Does not own `g`. */
enum xm_status xm_mesh_plan(struct xm_mesh_plan *p, const struct xm_graph *g,
                            struct xm_error *err);
void xm_mesh_free_plan(struct xm_mesh_plan *p); /* the members, not *p */

#ifdef __cplusplus
}
#endif
#endif
