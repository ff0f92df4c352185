/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory plans: programs are compiled and run on a counting engine (runtime/counting), whose
 * statistics then have the size of every buffer.
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
/* The same, for callers that read the program's graph: the program keeps it. */
enum xm_status xm_planner_compile_open(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       struct xm_program **out, struct xm_error *err);
/* The same with options of the caller's. */
enum xm_status xm_planner_compile_with(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       const struct xm_compile_options *options,
                                       struct xm_program **out, struct xm_error *err);
/* Counts the memory of such a program and its requests. Each request runs a prompt of all but one
 * position of the context and then one token, as text generation does. */
enum xm_status xm_planner_count(struct xm_program *p, const struct xm_plan_wish *wish,
                                struct xm_memory_need *out, struct xm_error *err);

/* Counts what the wish's prompt and a token do; nothing where p has no sequences. */
enum xm_status xm_planner_count_work(struct xm_program *p,
                                     const struct xm_plan_wish *wish,
                                     struct xm_run_work *prompt,
                                     struct xm_run_work *token, struct xm_error *err);
/* The name of the format that most bytes of p's weights have; static. */
const char *xm_planner_weight_format(const struct xm_program *p);

/* One run of a request with `tokens` more tokens of one sequence; their ids are zeros. */
enum xm_status xm_planner_feed(struct xm_request *r, int64_t tokens,
                               struct xm_error *err);

/* Lowers p's rewritten graph `g`, which p keeps, on a counting engine. */
enum xm_status xm_planner_lower(const struct xm_program *p, struct xm_graph *g,
                                struct xm_program **out, struct xm_error *err);
/* The same; the counting engine then also has all kernels of the program and, for a language model,
 * those that choose the likeliest token, and the launches of a prompt of XM_WARM_UP_TOKENS tokens,
 * of one token after it and of the choice of the next. NULL: failure. */
struct xm_program *xm_planner_count_builds(const struct xm_program *p,
                                           struct xm_graph *g);

/* The size in MiB that an expert cache (XM_EXPERT_CACHE) may have in the device memory that a
 * program of this need leaves, at most the bytes of its experts in host memory. 0: the device uses
 * the host's memory, where a cache gains nothing, or no expert is in host memory. */
uint32_t xm_planner_expert_cache(const struct xm_memory_need *need,
                                 const struct xm_memory_room *room);
/* The largest context, up to `most`, whose requests fit; 0: none does. */
enum xm_status xm_planner_largest_context(struct xm_program *p,
                                          const struct xm_memory_room *room,
                                          uint64_t requests, uint64_t most, uint64_t *out,
                                          struct xm_error *err);

/* Before lowering: changes options of p->config that the user has not set, so that the rewritten
 * `g` fits on p's device.
 *   offload_ratio  leaves the experts that do not fit in host memory; twice as many if the size of
 *                  the expert cache is not set, either
 *   expert_cache   then gets the device memory that is left
 *   ubatch         is halved while the chunk needs a buffer that the device does not allocate, also
 *                  if the user has set it
 * XM_NO_MEMORY: even a context of one token does not fit; the sentence says what would help. */
enum xm_status xm_planner_fit(struct xm_program *p, struct xm_graph *g,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
