/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and single values of a weight. Reading goes through the element table, one
 * element at a time: this is the reference, devices have kernels.
 */
#include "runtime/weight.h"

#include "runtime/util/memory.h"

uint64_t
xm_weight_bytes(const struct xm_weight *w)
{
    return w->data.n + w->scale.n + w->zero_point.n;
}

/* Whether `b` holds exactly n elements of type e. */
static bool
holds(const struct xm_bytes *b, enum xm_element e, uint64_t n)
{
    uint64_t bytes;
    return xm_element_bytes(e, n, &bytes) && b->n == bytes && (b->p || bytes == 0);
}

static const char *
check_quantisation(const struct xm_weight *w)
{
    uint64_t n;
    if (w->cols % w->group != 0)
        return "the group does not divide the columns";
    if (!xm_mul_size(w->experts * w->rows, xm_weight_groups(w), &n))
        return "the number of scales overflows";
    if (!xm_element_is_float(w->scale_element) || !xm_element_readable(w->scale_element))
        return "the scales are of no readable float type";
    if (!holds(&w->scale, w->scale_element, n))
        return "the scales' bytes do not agree with the dimensions";
    if (!w->zero_point.p)
        return NULL;
    if (!xm_element_readable(w->zero_point_element))
        return "the zero points are of no readable type";
    if (!holds(&w->zero_point, w->zero_point_element, w->zero_point_is_scalar ? 1 : n))
        return "the zero points' bytes do not agree with the dimensions";
    return NULL;
}

const char *
xm_weight_check(const struct xm_weight *w)
{
    uint64_t n;
    if (w->rank < 1 || w->rank > 3)
        return "the rank is not 1, 2 or 3";
    if ((w->rank < 3 && w->experts != 1) || (w->rank < 2 && w->rows != 1))
        return "a size beyond the rank is not 1";
    if (!xm_mul_size(w->experts, w->rows, &n) || !xm_mul_size(n, w->cols, &n))
        return "the number of elements overflows";
    if (!xm_element_readable(w->element))
        return "the element type is not readable";
    if (!holds(&w->data, w->element, n))
        return "the data's bytes do not agree with the dimensions";
    return xm_weight_is_quantised(w) ? check_quantisation(w) : NULL;
}

bool
xm_weight_same_format(const struct xm_weight *a, const struct xm_weight *b)
{
    if (a->element != b->element || a->group != b->group)
        return false;
    if (!xm_weight_is_quantised(a))
        return true;
    if (a->scale_element != b->scale_element || a->order != b->order)
        return false;
    if (!a->zero_point.p || !b->zero_point.p)
        return !a->zero_point.p && !b->zero_point.p;
    return a->zero_point_element == b->zero_point_element &&
           a->zero_point_is_scalar == b->zero_point_is_scalar;
}

static uint64_t
scale_index(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    uint64_t groups = xm_weight_groups(w);
    return w->order == XM_SCALE_GROUP_MAJOR ? (e * groups + g) * w->rows + n
                                            : (e * w->rows + n) * groups + g;
}

float
xm_weight_scale_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    if (!xm_weight_is_quantised(w))
        return 1.0f;
    return xm_load_float(w->scale_element, w->scale.p, scale_index(w, e, n, g));
}

float
xm_weight_zero_point_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    if (!xm_weight_is_quantised(w) || !w->zero_point.p)
        return 0.0f;
    uint64_t i = w->zero_point_is_scalar ? 0 : scale_index(w, e, n, g);
    return xm_load_float(w->zero_point_element, w->zero_point.p, i);
}

void
xm_weight_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out)
{
    uint64_t first = (e * w->rows + n) * w->cols;
    for (uint64_t k = 0; k < w->cols; k++)
        out[k] = xm_load_float(w->element, w->data.p, first + k);
    if (!xm_weight_is_quantised(w))
        return;
    for (uint64_t g = 0; g < xm_weight_groups(w); g++) {
        float scale = xm_weight_scale_at(w, e, n, g);
        float zero_point = xm_weight_zero_point_at(w, e, n, g);
        float *group = out + g * w->group;
        for (uint64_t k = 0; k < w->group; k++)
            group[k] = (group[k] - zero_point) * scale;
    }
}
