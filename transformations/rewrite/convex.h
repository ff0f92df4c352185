/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds sets of nodes that can each become one operation.
 *
 *     a -> b -> c        {a, b, c} is convex: no path leaves it and comes back.
 *     a -> x -> c        {a, c} is not convex: as one operation it would wait for x, and x for
 *     a -> c             its result.
 *
 * Sets grow edge by edge, in the graph's order: the sets of a node and of the node of one of its
 * operands are joined if the union is convex, if no two sets then depend on each other, and if the
 * caller's `fits` accepts it. The result depends on the graph only. At the end no edge is left that
 * could join two sets, provided that `fits` never accepts a set after refusing a subset of it.
 *
 * Nodes of kind XM_CONVEX_PASSED, such as reshapes, are transparent: their readers count as readers
 * of their operand.
 *
 * A join examines at most XM_CONVEX_REACH nodes and operands between the two sets, else it is
 * refused. So the cost is linear in the number of edges.
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
    /* Whether these nodes, in the graph's order, may be one set. */
    bool (*fits)(void *ctx, const struct xm_convex *c, struct xm_node *const *member,
                 uint32_t n);
    uint32_t most; /* most members of a set, at most XM_CONVEX_MOST */
};

/* Finds the sets. They are valid until the graph changes. NULL: no memory, reported in
 * graph->err. */
struct xm_convex *xm_convex_grow(struct xm_graph *g, const struct xm_convex_rules *rules);
void xm_convex_destroy(struct xm_convex *c); /* NULL is allowed */

/* Lists the members of n's set in the graph's order; returns their number, 0: n is in no set. */
uint32_t xm_convex_members(const struct xm_convex *c, const struct xm_node *n,
                           struct xm_node *member[XM_CONVEX_MOST]);
/* The value from which v is computed by PASSED nodes only; v itself if there are none. */
struct xm_value *xm_convex_source(const struct xm_convex *c, struct xm_value *v);
/* The number of operands that read v, directly or through PASSED nodes. */
uint32_t xm_convex_reads(const struct xm_convex *c, const struct xm_value *v);

#ifdef __cplusplus
}
#endif
#endif
