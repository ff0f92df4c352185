/* SPDX-License-Identifier: Apache-2.0
 *
 * A device may have some of a layer's experts only, where a model is split between its experts.
 *
 *   OWN_EXPERTS   for kernels that route: how many it has, from FIRST_EXPERT on; 0: all. Ids are
 *                 numbers among these; the slot of another expert has id -1 and weight 0
 *   PARTIAL       for kernels that read ids: 1: some may be -1. Such a slot adds nothing. Each
 *                 moe_gate_up kernel stores zeros as its row of h, which moe_down kernels may
 *                 multiply by anything finite, whichever of them go together
 */
#ifndef OWN_EXPERTS
#define OWN_EXPERTS 0
#endif
#ifndef FIRST_EXPERT
#define FIRST_EXPERT 0
#endif
#ifndef PARTIAL
#define PARTIAL 0
#endif

#define ABSENT  -1       /* id of a slot whose expert is not here */
#define NOWHERE UINT_MAX /* its place among the sorted rows */

#if PARTIAL
#define IS_ABSENT(id) ((int)(id) < 0)
#else
#define IS_ABSENT(id) 0
#endif

#if OWN_EXPERTS
#define IS_OWN(id) ((id) >= FIRST_EXPERT && (id) < FIRST_EXPERT + OWN_EXPERTS)
#define OWN_ID(id) (IS_OWN(id) ? (id) - FIRST_EXPERT : ABSENT)
#else
#define IS_OWN(id) 1
#define OWN_ID(id) (id)
#endif
