/* SPDX-License-Identifier: Apache-2.0
 *
 * If a model is split by experts, a device has only some of a layer's experts.
 *
 *   OWN_EXPERTS   for kernels that route: how many experts it has, from FIRST_EXPERT on; 0: all.
 *                 Ids count from FIRST_EXPERT; the slot of another device's expert has id -1 and
 *                 weight 0
 *   PARTIAL       for kernels that read ids: 1: some may be -1. Such a slot adds nothing. Every
 *                 moe_gate_up kernel stores zeros as its row of h, so that a moe_down kernel may
 *                 multiply the row by any finite weights
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
#define NOWHERE UINT_MAX /* its place among the sorted rows: none */

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
