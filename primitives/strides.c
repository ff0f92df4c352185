/* SPDX-License-Identifier: Apache-2.0
 *
 * Index spaces: collapsing, bounds, and walking the dimensions a kernel has no loop for.
 */
#include "primitives/strides.h"

#include <string.h>

static bool
joins(const struct xm_space *s, uint32_t outer, uint32_t inner)
{
    for (uint32_t o = 0; o < s->n_operands; o++) {
        if (s->stride[o][outer] != s->stride[o][inner] * s->extent[inner])
            return false;
    }
    return true;
}

static void
move_dim(struct xm_space *s, uint32_t to, uint32_t from)
{
    s->extent[to] = s->extent[from];
    for (uint32_t o = 0; o < s->n_operands; o++)
        s->stride[o][to] = s->stride[o][from];
}

void
xm_space_collapse(struct xm_space *s)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        if (s->extent[d] == 1)
            continue;
        if (n > 0 && joins(s, n - 1, d)) {
            int64_t outer = s->extent[n - 1];
            move_dim(s, n - 1, d);
            s->extent[n - 1] *= outer;
            continue;
        }
        move_dim(s, n++, d);
    }
    s->rank = n;
}

uint64_t
xm_space_points(const struct xm_space *s)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        n *= (uint64_t)s->extent[d];
    return n;
}

/* Raises a smaller rank to XM_SPACE_KERNEL_RANK with outer dimensions of extent 1. */
static void
pad(struct xm_space *s)
{
    if (s->rank >= XM_SPACE_KERNEL_RANK)
        return;
    uint32_t shift = XM_SPACE_KERNEL_RANK - s->rank;
    for (uint32_t d = XM_SPACE_KERNEL_RANK; d-- > shift;)
        move_dim(s, d, d - shift);
    for (uint32_t d = 0; d < shift; d++) {
        s->extent[d] = 1;
        for (uint32_t o = 0; o < s->n_operands; o++)
            s->stride[o][d] = 0;
    }
    s->rank = XM_SPACE_KERNEL_RANK;
}

static const char *const dims[XM_SPACE_KERNEL_RANK] = {"0", "1", "2", "3"};

void
xm_put_extents(struct xm_args *a, const struct xm_space *s)
{
    for (uint32_t d = 0; d < XM_SPACE_KERNEL_RANK; d++)
        xm_put(a, "n", dims[d], xm_arg_i64(s->extent[d]));
}

void
xm_put_offset(struct xm_args *a, const char *name, const struct xm_space *s, uint32_t o)
{
    xm_put(a, name, "_at", xm_arg_i64(s->offset[o]));
}

void
xm_put_strides(struct xm_args *a, const char *name, const struct xm_space *s, uint32_t o)
{
    for (uint32_t d = 0; d < XM_SPACE_KERNEL_RANK; d++)
        xm_put(a, name, dims[d], xm_arg_i64(s->stride[o][d]));
}

bool
xm_space_inside(const struct xm_space *s, uint32_t o, uint64_t elements)
{
    int64_t low = s->offset[o], high = s->offset[o];
    if (xm_space_points(s) == 0)
        return true;
    for (uint32_t d = 0; d < s->rank; d++) {
        int64_t reach = (s->extent[d] - 1) * s->stride[o][d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    return low >= 0 && (uint64_t)high < elements;
}

void
xm_space_walk_begin(struct xm_space_walk *w, const struct xm_space *whole)
{
    memset(w, 0, sizeof(*w));
    w->whole = *whole;
    w->done = xm_space_points(whole) == 0;
}

/* Moves to the next index of the outer dimensions, the last dimension fastest; false after the last
 * index. */
static bool
advance(struct xm_space_walk *w, uint32_t n_outer)
{
    for (uint32_t d = n_outer; d-- > 0;) {
        if (++w->at[d] < w->whole.extent[d])
            return true;
        w->at[d] = 0;
    }
    return false;
}

bool
xm_space_walk_next(struct xm_space_walk *w, struct xm_space *piece)
{
    const struct xm_space *s = &w->whole;
    uint32_t n_outer =
        s->rank > XM_SPACE_KERNEL_RANK ? s->rank - XM_SPACE_KERNEL_RANK : 0;
    if (w->done)
        return false;
    *piece = *s;
    piece->rank = s->rank - n_outer;
    for (uint32_t d = n_outer; d < s->rank; d++)
        move_dim(piece, d - n_outer, d);
    for (uint32_t o = 0; o < s->n_operands; o++) {
        for (uint32_t d = 0; d < n_outer; d++)
            piece->offset[o] += w->at[d] * s->stride[o][d];
    }
    pad(piece);
    w->done = !advance(w, n_outer);
    return true;
}
