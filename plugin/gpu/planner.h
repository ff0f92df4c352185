/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory plans: programs are compiled and run on a counting engine (runtime/counting), whose
 * statistics then have the size of every buffer.
 *
 *   graph ──► program ──► requests of a context ──► bytes by kind        on a counting engine
 */
#ifndef XM_PLUGIN_GPU_PLANNER_H
#define XM_PLUGIN_GPU_PLANNER_H

#include "plugin/gpu/request.h"
#include "plugin/lower/program.h"
#include "plugin/memory_planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles `g` for a device as its plugin would, on a counting engine. Owns `g` from now on, also
 * on failure. */
enum xm_status xm_planner_compile(const struct xm_device_info *info,
                                  const struct xm_config *config, struct xm_graph *g,
                                  struct xm_program **out, struct xm_error *err);
/* As xm_planner_compile, but the program keeps its graph, for callers that read it. */
enum xm_status xm_planner_compile_open(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       struct xm_program **out, struct xm_error *err);
/* As xm_planner_compile, with the caller's compile options. */
enum xm_status xm_planner_compile_with(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       const struct xm_compile_options *options,
                                       struct xm_program **out, struct xm_error *err);
/* Counts the memory of a program on a counting engine and of its requests. Each request runs a
 * prompt of all positions of the context but one, and then one token, as text generation does. */
enum xm_status xm_planner_count(struct xm_program *p, const struct xm_plan_wish *wish,
                                struct xm_memory_need *out, struct xm_error *err);

/* Counts the work (bytes moved, multiply-adds) of a run of the prompt that `wish` describes and of
 * the run of one token after it. Leaves both zero if p has no sequences. */
enum xm_status xm_planner_count_work(struct xm_program *p,
                                     const struct xm_plan_wish *wish,
                                     struct xm_run_work *prompt,
                                     struct xm_run_work *token, struct xm_error *err);
/* Returns the name, a static string, of the format that most bytes of p's weights have. */
const char *xm_planner_weight_format(const struct xm_program *p);

/* Runs request r once with `tokens` more tokens of one sequence; their ids are zeros. */
enum xm_status xm_planner_feed(struct xm_request *r, int64_t tokens,
                               struct xm_error *err);

/* Lowers p's rewritten graph `g`, which p keeps, on a counting engine. */
enum xm_status xm_planner_lower(const struct xm_program *p, struct xm_graph *g,
                                struct xm_program **out, struct xm_error *err);
/* Lowers p's rewritten graph `g` on a counting engine, which then has counted all kernels of the
 * program and, for a language model, those that choose the likeliest token. If the driver keeps
 * files (XM_CAP_DRIVER_FILES), it has also counted the launches of a prompt of XM_WARM_UP_TOKENS
 * tokens, of one token after it and of the choice of the next token. NULL: failure. */
struct xm_program *xm_planner_count_builds(const struct xm_program *p,
                                           struct xm_graph *g);

/* Returns the size in MiB that an expert cache (XM_EXPERT_CACHE) may have in the device memory that
 * a program with this need leaves free, at most the size of its experts in host memory. 0: the
 * device uses the host's memory, where a cache gains nothing, or no expert is in host memory. */
uint32_t xm_planner_expert_cache(const struct xm_memory_need *need,
                                 const struct xm_memory_room *room);
/* Sets *out to the largest context, at most `most` positions, for which the program and `requests`
 * requests fit into `room`; 0: none fits. */
enum xm_status xm_planner_largest_context(struct xm_program *p,
                                          const struct xm_memory_room *room,
                                          uint64_t requests, uint64_t most, uint64_t *out,
                                          struct xm_error *err);

/* Before lowering: changes options of p->config that the user has not set, so that the rewritten
 * `g` fits on p's device.
 *   offload_ratio  is set so that the experts that do not fit on the device stay in host memory;
 *                  twice as many if the size of the expert cache is not set, either
 *   expert_cache   then gets the device memory that is left
 *   ubatch         is halved while the chunk needs a buffer that the device does not allocate, also
 *                  if the user has set it
 * XM_NO_MEMORY: even a context of one token does not fit; the message says what would help. */
enum xm_status xm_planner_fit(struct xm_program *p, struct xm_graph *g,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
