/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside plans: programs on a counting engine, and what they take.
 *
 *   graph ──► program ──► requests of a context ──► bytes by kind        on a counting engine
 */
#ifndef XM_PLUGIN_GPU_PLANNER_H
#define XM_PLUGIN_GPU_PLANNER_H

#include "plugin/gpu/program.h"
#include "plugin/gpu/request.h"
#include "plugin/memory_planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles `g` for a device as its plugin would, on a counting engine. Takes `g` over, also on
 * failure. */
enum xm_status xm_planner_compile(const struct xm_device_info *info,
                                  const struct xm_config *config, struct xm_graph *g,
                                  struct xm_program **out, struct xm_error *err);
/* The same; the program keeps its graph, for those who look into it. */
enum xm_status xm_planner_compile_open(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       struct xm_program **out, struct xm_error *err);
/* What such a program and requests of it take. A request gets a prompt of all but one position
 * and then one token, as text generation does. */
enum xm_status xm_planner_count(struct xm_program *p, const struct xm_plan_wish *wish,
                                struct xm_memory_need *out, struct xm_error *err);

/* One run of a request with `tokens` more tokens of one sequence; their ids are zeros. */
enum xm_status xm_planner_feed(struct xm_request *r, int64_t tokens,
                               struct xm_error *err);

/* A program of `p`'s rewritten graph, which stays p's, on an engine that only counts. */
enum xm_status xm_planner_lower(const struct xm_program *p, struct xm_graph *g,
                                struct xm_program **out, struct xm_error *err);
/* Such a program whose engine has seen all kernels, and of a program for text the launches of a
 * prompt of XM_WARM_UP_TOKENS tokens and of a token behind it. NULL: it cannot be made. */
struct xm_program *xm_planner_count_builds(const struct xm_program *p,
                                           struct xm_graph *g);

/* MiB of what a program without an expert cache leaves that one may take (XM_EXPERT_CACHE); 0 where
 * the host's memory is the device's, which would gain nothing. */
uint32_t xm_planner_expert_cache(const struct xm_memory_need *need,
                                 const struct xm_memory_room *room);
/* The largest context, up to `most`, whose requests fit; 0: none does. */
enum xm_status xm_planner_largest_context(struct xm_program *p,
                                          const struct xm_memory_room *room,
                                          uint64_t requests, uint64_t most, uint64_t *out,
                                          struct xm_error *err);

/* Before lowering: whether the rewritten `g` fits on p's device. Experts that do not are left
 * on the host (p->config.offload_ratio) unless the user said how many, twice as many when the size
 * of their cache (p->config.expert_cache) is open, which then gets what is left; a chunk that wants
 * larger buffers than the device allocates is halved (p->config.ubatch). XM_NO_MEMORY when even
 * one token of context is too much, with what would help. */
enum xm_status xm_planner_fit(struct xm_program *p, struct xm_graph *g,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
