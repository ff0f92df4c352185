/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a mesh: of each rank the memory that its part takes, what a token exchanges, and how
 * long a prompt and a token take; what to change where it does not fit.
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
    struct xm_mesh_devices devices;     /* of all nodes, one node's together */
    struct xm_split_wish wish;          /* xm_mesh_wish: as a run splits */
    struct xm_plan rank[XM_MOST_RANKS]; /* of each what xm_planner_plan asks for */
    struct xm_cluster cluster;          /* whose nodes and links they are */
    bool wants_advice;                  /* where it does not fit */
    /* Set by xm_mesh_plan: */
    char *exchange_kinds; /* xm_split_print_kinds; owned: xm_mesh_free_plan */
    uint32_t n_exchanges;
    uint64_t exchanged_bytes;                            /* of a token */
    struct xm_exchange_work exchanged, exchanged_chosen; /* as in struct xm_mesh_parts */
    /* Bytes missing where ranks of a node that each would fit take one memory, the host's. */
    uint64_t shared_excess;
    /* Changes that alone are enough for all ranks; none where shared memory is what is missing. */
    struct xm_plan_advice advice[XM_PLAN_N_CHANGES];
    size_t n_advice;
};

/* Whether every rank has its room, and those of a node together. */
bool xm_mesh_plan_fits(const struct xm_mesh_plan *p);

/* The wish's rates, and the latency of c->local, as a run of these devices has them: measured ones
 * (mesh_rates.h). Before xm_mesh_plan; of one node. */
void xm_mesh_plan_rates(struct xm_mesh_plan *p, const char *cache_dir);
/* Replaces the rates that the ranks have alone by those that they have beside each other, where
 * these are known: devices of a node that have one memory, and run at once. Behind xm_mesh_plan. */
void xm_mesh_plan_take_together(const struct xm_mesh_plan *p, const char *cache_dir,
                                struct xm_rates *rates);
/* Keeps what a prompt and a token behind it took on all ranks, for later plans; `rates` are those
 * of the ranks alone. Of devices with one memory it is what they lose to each other, else what
 * messages take: two cards read as fast as one. Nothing where that cannot be told. */
void xm_mesh_plan_keep(struct xm_mesh_plan *p, const struct xm_rates *rates,
                       const char *cache_dir, double prompt_s, double token_s);

/* What a prompt and a token behind it take, by the ranks' `rates`: the slowest rank's seconds, by
 * layer all ranks' (of a prompt's chunks, which follow each other through the ranks, the slowest
 * one's), and those of exchanges. */
void xm_mesh_forecast(const struct xm_mesh_plan *p, const struct xm_rates *rates,
                      struct xm_run_seconds *prompt, struct xm_run_seconds *token);

/* As xm_planner_plan, for all ranks. Does not own `g`. */
enum xm_status xm_mesh_plan(struct xm_mesh_plan *p, const struct xm_graph *g,
                            struct xm_error *err);
void xm_mesh_free_plan(struct xm_mesh_plan *p); /* the members, not *p */

#ifdef __cplusplus
}
#endif
#endif
