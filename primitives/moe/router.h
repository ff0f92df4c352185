/* SPDX-License-Identifier: Apache-2.0
 *
 * The routing step, for the router primitive and for moe.
 */
#ifndef XM_PRIMITIVES_MOE_ROUTER_H
#define XM_PRIMITIVES_MOE_ROUTER_H

#include "primitives/args.h"
#include "primitives/moe/moe.h"
#include "primitives/variant.h"

struct xm_router_steps {
    struct xm_moe_routing routing;
    struct xm_buffer *bias, *expert_scale; /* referenced; NULL: none */
    struct xm_pick pick;
    struct xm_kernel *kernel;
};

/* On failure fini is still to be called. */
enum xm_status xm_router_steps_init(struct xm_router_steps *r, struct xm_engine *engine,
                                    const struct xm_router_desc *desc,
                                    struct xm_error *err);
void xm_router_steps_fini(struct xm_router_steps *r);
const char *xm_router_steps_name(const struct xm_router_steps *r);
/* Enqueues: logits [tokens, experts] f32 -> weights f32, ids i32, both [tokens, top_k].
 */
enum xm_status xm_router_steps_run(const struct xm_router_steps *r,
                                   const struct xm_buffer *logits,
                                   struct xm_buffer *weights, struct xm_buffer *ids,
                                   uint64_t tokens, uint64_t experts,
                                   struct xm_queue *queue, struct xm_error *err);

#endif
