/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounds of a dimension of an input in OpenVINO's notation: "256"; "?" or "-1" (any number);
 * "1..10"; "2.."; "..7".
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_BOUNDS_H
#define XM_TRANSFORMATIONS_GRAPH_BOUNDS_H

#include "runtime/util/strbuf.h"
#include "transformations/graph/type.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_node;

struct xm_bound {
    int64_t min, max; /* max -1: unbounded */
};

static inline bool
xm_bound_is_fixed(struct xm_bound b)
{
    return b.min == b.max;
}

static inline bool
xm_bound_has(struct xm_bound b, int64_t n)
{
    return n >= b.min && (b.max < 0 || n <= b.max);
}

/* Parses n characters; spaces around the bounds are allowed. False: they are no bounds. */
bool xm_bound_parse(const char *text, size_t n, struct xm_bound *out);
void xm_bound_print(struct xm_bound b, struct xm_strbuf *out);
/* Parses bounds of a shape, "?,1..8,256"; "" is a scalar. Returns NULL, or the reason of a
 * failure. */
const char *xm_bounds_parse(const char *text, struct xm_bound *out, uint32_t *rank);

/* Sets out[i] to the bounds of each dimension of a parameter: a constant dimension's number, or the
 * bounds in its attribute `bounds`. */
void xm_parameter_bounds(const struct xm_node *n, struct xm_bound *out);

#ifdef __cplusplus
}
#endif
#endif
