/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of nodes that can each become one operation.
 *
 *     a -> b -> c        {a, b, c} is convex: no path leaves it and comes back.
 *     a -> x -> c        {a, c} is not when x is outside: as one operation it would
 *     a -> c             wait for itself.
 *
 * Sets grow edge by edge, in the graph's order: a node and the maker of an operand become one
 * set, or their sets do, where that is convex, no two sets wait for each other, and the
 * caller's `fits` has nothing against it. So the outcome is the same whenever the graph is, and
 * no edge is left that could still join two sets, as long as `fits` never takes a refusal back.
 *
 * Nodes that depend on one operand alone may be passed: what reads them reads that (reshapes).
 *
 * Each join looks at XM_CONVEX_REACH nodes and operands at most, those that stand between the
 * two sets; nodes further apart stay so. The cost is linear in the graph's edges.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_CONVEX_H
#define XM_TRANSFORMATIONS_REWRITE_CONVEX_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_CONVEX_REACH = 8192, XM_CONVEX_MOST = 64 };

struct xm_convex;

enum xm_convex_kind { XM_CONVEX_OUTSIDE, XM_CONVEX_MEMBER, XM_CONVEX_PASSED };

struct xm_convex_rules {
    void *ctx;
    enum xm_convex_kind (*kind)(const struct xm_node *n);
    /* Whether these members, in the graph's order, may be one set. */
    bool (*fits)(void *ctx, const struct xm_convex *c, struct xm_node *const *member,
                 uint32_t n);
    uint32_t most; /* members of a set, at most XM_CONVEX_MOST */
};

/* NULL: out of memory, in graph->err. What it says is about the graph as it is now. */
struct xm_convex *xm_convex_grow(struct xm_graph *g, const struct xm_convex_rules *rules);
void xm_convex_destroy(struct xm_convex *c); /* NULL is allowed */

/* The members of n's set in the graph's order, how many they are; 0: n is in none. */
uint32_t xm_convex_members(const struct xm_convex *c, const struct xm_node *n,
                           struct xm_node *member[XM_CONVEX_MOST]);
/* What v is made of, below nodes that are passed. */
struct xm_value *xm_convex_source(const struct xm_convex *c, struct xm_value *v);
/* How many operands read v, or a passed node below which it is. */
uint32_t xm_convex_reads(const struct xm_convex *c, const struct xm_value *v);

#ifdef __cplusplus
}
#endif
#endif
