/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside primitives/moe: what a kernel needs that routes its token itself.
 */
#ifndef XM_PRIMITIVES_MOE_ROUTER_H
#define XM_PRIMITIVES_MOE_ROUTER_H

#include "primitives/args.h"
#include "primitives/moe/moe.h"

/* ROUTING_PARAMETERS of kernels/cl/include/routing.h; o: the operands of moe_router. */
void xm_router_put(const struct xm_router_desc *d, const struct xm_operand *o,
                   struct xm_args *a);
/* What the routing is, as options of a kernel; characters written, as xm_defines_print. */
size_t xm_router_defines(const struct xm_router_desc *d, char *out, size_t n);
/* Which of the experts there are: OWN_EXPERTS of kernels/cl/include/own_experts.h; as above. */
size_t xm_router_own_defines(int64_t first, int64_t own, char *out, size_t n);
/* The router of a mixture of experts. */
struct xm_router_desc xm_moe_router_desc(const struct xm_moe_desc *d);
/* Whether kernels that read the experts may route as the router would: its row is one with
 * `routes`, and XM_FORCE does not ask for a row of it. */
bool xm_router_may_join(const struct xm_primitive *router);

#endif
