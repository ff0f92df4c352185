/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside primitives/moe: arguments and build options of a kernel that also routes its token.
 */
#ifndef XM_PRIMITIVES_MOE_ROUTER_H
#define XM_PRIMITIVES_MOE_ROUTER_H

#include "primitives/args.h"
#include "primitives/moe/moe.h"

/* Appends the arguments of ROUTING_PARAMETERS of kernels/cl/include/routing.h; o: the operands of
 * moe_router. */
void xm_router_put(const struct xm_router_desc *d, const struct xm_operand *o,
                   struct xm_args *a);
/* Writes a kernel's build options for the kind of routing; returns the characters written. */
size_t xm_router_defines(const struct xm_router_desc *d, char *out, size_t n);
/* Writes the build options FIRST_EXPERT and OWN_EXPERTS of kernels/cl/include/own_experts.h, or
 * nothing if own is 0 (all experts are here); returns the characters written. */
size_t xm_router_own_defines(int64_t first, int64_t own, char *out, size_t n);
/* Returns the descriptor of the router of a moe primitive. */
struct xm_router_desc xm_moe_router_desc(const struct xm_moe_desc *d);
/* Returns whether moe_gate_up may route in place of this router: the router's row has `routes`, and
 * XM_FORCE names no row of moe_route. */
bool xm_router_may_join(const struct xm_primitive *router);

#endif
