/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a mesh: the memory that each rank's part takes, the bytes that ranks exchange for a
 * token, how long a prompt and a token take, and what to change if the model does not fit.
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
    struct xm_mesh_devices devices; /* of all nodes; the devices of a node are adjacent */
    struct xm_split_wish wish;      /* xm_mesh_wish: how a run splits the model */
    struct xm_plan rank[XM_MOST_RANKS]; /* with the members that xm_planner_plan needs */
    struct xm_cluster cluster;          /* the nodes of these devices and their links */
    bool wants_advice; /* find changes by which a model fits that does not */
    /* Set by xm_mesh_plan: */
    char *exchange_kinds; /* xm_split_print_kinds; owned: xm_mesh_free_plan */
    uint32_t n_exchanges;
    uint64_t exchanged_bytes;                            /* for each token */
    struct xm_exchange_work exchanged, exchanged_chosen; /* as in struct xm_mesh_parts */
    /* Missing bytes if the ranks of a node share the host's memory and need more together than it
     * has, even if each rank alone would fit; the largest of all nodes. */
    uint64_t shared_excess;
    /* Changes, each of which alone makes all ranks fit; none if shared_excess is not 0. */
    struct xm_plan_advice advice[XM_PLAN_N_CHANGES];
    size_t n_advice;
};

/* Returns whether every rank fits in its device's memory, and the ranks of each node together in
 * the memory that they share. */
bool xm_mesh_plan_fits(const struct xm_mesh_plan *p);

/* Sets p->wish's rate of reading to that of these devices and p->cluster.local's latency to the
 * measured one (mesh_rates.h), as a run would; a rate that is not known stays. Call it before
 * xm_mesh_plan, for meshes of one node only. */
void xm_mesh_plan_rates(struct xm_mesh_plan *p, const char *cache_dir);
/* Ranks that share one memory and run at the same time slow each other down. For such ranks:
 * replaces each measured rate of a device alone by its rate beside the others, if that is known.
 * Call it after xm_mesh_plan. */
void xm_mesh_plan_take_together(const struct xm_mesh_plan *p, const char *cache_dir,
                                struct xm_rates *rates);
/* Derives from the duration of a prompt and of the token after it why they took longer than the
 * rates of each rank alone (`rates`) explain, and stores that for later plans. For devices that
 * share one memory it stores by how much they slow each other down; for others, or if that does not
 * explain the prompt, the latency of messages, because two cards read as fast as one. Stores
 * nothing if a rate in `rates` is not measured, or by layer. */
void xm_mesh_plan_keep(struct xm_mesh_plan *p, const struct xm_rates *rates,
                       const char *cache_dir, double prompt_s, double token_s);

/* Predicts the seconds of a prompt and of the token after it from the ranks' `rates`: the time of
 * the slowest rank plus the time of the exchanges. By layer, the ranks' times add up; but the
 * chunks of a prompt follow each other through the ranks, so that each chunk after the first adds
 * only the slowest rank's time. Zeros: a rank's time is not known. */
void xm_mesh_forecast(const struct xm_mesh_plan *p, const struct xm_rates *rates,
                      struct xm_run_seconds *prompt, struct xm_run_seconds *token);

/* Plans all ranks as xm_planner_plan plans one. Does not own `g`. */
enum xm_status xm_mesh_plan(struct xm_mesh_plan *p, const struct xm_graph *g,
                            struct xm_error *err);
void xm_mesh_free_plan(struct xm_mesh_plan *p); /* the members, not *p */

#ifdef __cplusplus
}
#endif
#endif
