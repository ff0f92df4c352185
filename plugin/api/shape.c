/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, dimensions and ranks: structs that callers pass by value.
 */
#include <string.h>

#include "plugin/api/api.h"

/* ---- static shapes ----------------------------------------------------------------- */

ov_status_e
ov_shape_create(const int64_t rank, const int64_t *dims, ov_shape_t *shape)
{
    if (!shape || rank <= 0)
        return INVALID_C_PARAM;
    for (int64_t i = 0; dims && i < rank; i++) {
        if (dims[i] < 0)
            return INVALID_C_PARAM;
    }
    int64_t *copy = xm_calloc((size_t)rank, sizeof(*copy));
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a shape of rank %lld",
                           (long long)rank);
    if (dims)
        memcpy(copy, dims, (size_t)rank * sizeof(*copy));
    *shape = (ov_shape_t){.rank = rank, .dims = copy};
    return OK;
}

ov_status_e
ov_shape_free(ov_shape_t *shape)
{
    if (!shape)
        return INVALID_C_PARAM;
    xm_free(shape->dims);
    *shape = (ov_shape_t){0, NULL};
    return OK;
}

/* ---- dimensions and ranks ---------------------------------------------------------- */

bool
ov_dimension_is_dynamic(const ov_dimension_t dim)
{
    bool is_zero = dim.min == 0 && dim.max == 0;
    return is_zero || dim.min == -1 || dim.min != dim.max;
}

bool
ov_rank_is_dynamic(const ov_rank_t rank)
{
    return ov_dimension_is_dynamic(rank);
}

/* ---- partial shapes ---------------------------------------------------------------- */

static bool
is_valid_dimension(ov_dimension_t d)
{
    return (d.min == -1 && d.max == -1) || (d.min >= 0 && d.min <= d.max);
}

static ov_status_e
create_partial(ov_rank_t rank, const ov_dimension_t *dims, ov_partial_shape_t *out)
{
    ov_partial_shape_t shape = {.rank = rank, .dims = NULL};
    int64_t n = rank.max;
    if (n > 0) {
        shape.dims = xm_calloc((size_t)n, sizeof(*shape.dims));
        if (!shape.dims)
            return xm_api_fail(GENERAL_ERROR, "out of memory for a shape of rank %lld",
                               (long long)n);
        memcpy(shape.dims, dims, (size_t)n * sizeof(*dims));
    }
    *out = shape;
    return OK;
}

ov_status_e
ov_partial_shape_create(const int64_t rank, const ov_dimension_t *dims,
                        ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj || rank < 0 || (rank > 0 && !dims))
        return INVALID_C_PARAM;
    for (int64_t i = 0; i < rank; i++) {
        if (!is_valid_dimension(dims[i]))
            return INVALID_C_PARAM;
    }
    return create_partial((ov_rank_t){rank, rank}, dims, partial_shape_obj);
}

ov_status_e
ov_partial_shape_create_dynamic(const ov_rank_t rank, const ov_dimension_t *dims,
                                ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj)
        return INVALID_C_PARAM;
    if (!ov_rank_is_dynamic(rank))
        return ov_partial_shape_create(rank.max, dims, partial_shape_obj);
    if (dims || !is_valid_dimension(rank))
        return INVALID_C_PARAM;
    *partial_shape_obj = (ov_partial_shape_t){.rank = rank, .dims = NULL};
    return OK;
}

ov_status_e
ov_partial_shape_create_static(const int64_t rank, const int64_t *dims,
                               ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj || !dims || rank < 0)
        return INVALID_C_PARAM;
    ov_shape_t shape = {.rank = rank, .dims = (int64_t *)dims};
    return ov_shape_to_partial_shape(shape, partial_shape_obj);
}

void
ov_partial_shape_free(ov_partial_shape_t *partial_shape)
{
    if (!partial_shape)
        return;
    xm_free(partial_shape->dims);
    *partial_shape = (ov_partial_shape_t){.rank = {0, 0}, .dims = NULL};
}

bool
ov_partial_shape_is_dynamic(const ov_partial_shape_t partial_shape)
{
    bool is_scalar = partial_shape.rank.min == 0 && partial_shape.rank.max == 0;
    if (!is_scalar && ov_rank_is_dynamic(partial_shape.rank))
        return true;
    for (int64_t i = 0; i < partial_shape.rank.max; i++) {
        if (ov_dimension_is_dynamic(partial_shape.dims[i]))
            return true;
    }
    return false;
}

ov_status_e
ov_partial_shape_to_shape(const ov_partial_shape_t partial_shape, ov_shape_t *shape)
{
    if (!shape)
        return INVALID_C_PARAM;
    if (ov_partial_shape_is_dynamic(partial_shape))
        return PARAMETER_MISMATCH;
    int64_t rank = partial_shape.rank.max;
    ov_shape_t result = {.rank = rank, .dims = NULL};
    if (rank > 0 && ov_shape_create(rank, NULL, &result) != OK)
        return GENERAL_ERROR;
    for (int64_t i = 0; i < rank; i++)
        result.dims[i] = partial_shape.dims[i].max;
    *shape = result;
    return OK;
}

ov_status_e
ov_shape_to_partial_shape(const ov_shape_t shape, ov_partial_shape_t *partial_shape)
{
    if (!partial_shape || shape.rank < 0 || (shape.rank > 0 && !shape.dims))
        return INVALID_C_PARAM;
    for (int64_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0)
            return INVALID_C_PARAM;
    }
    ov_partial_shape_t result = {.rank = {shape.rank, shape.rank}, .dims = NULL};
    if (shape.rank > 0) {
        result.dims = xm_calloc((size_t)shape.rank, sizeof(*result.dims));
        if (!result.dims)
            return xm_api_fail(GENERAL_ERROR, "out of memory for a shape of rank %lld",
                               (long long)shape.rank);
    }
    for (int64_t i = 0; i < shape.rank; i++)
        result.dims[i] = (ov_dimension_t){shape.dims[i], shape.dims[i]};
    *partial_shape = result;
    return OK;
}

static void
print_dimension(struct xm_strbuf *b, ov_dimension_t d)
{
    if (d.max == -1 && d.min <= 0)
        xm_strbuf_add(b, "?");
    else if (d.min == d.max)
        xm_strbuf_printf(b, "%lld", (long long)d.min);
    else
        xm_strbuf_printf(b, "%lld..%lld", (long long)d.min, (long long)d.max);
}

const char *
ov_partial_shape_to_string(const ov_partial_shape_t partial_shape)
{
    struct xm_strbuf b = {0};
    char *text = NULL;
    bool is_scalar = partial_shape.rank.min == 0 && partial_shape.rank.max == 0;
    if (!is_scalar && ov_rank_is_dynamic(partial_shape.rank)) {
        xm_strbuf_add(&b, "?");
    } else {
        xm_strbuf_add(&b, "{");
        for (int64_t i = 0; i < partial_shape.rank.max; i++) {
            xm_strbuf_add(&b, i ? "," : "");
            print_dimension(&b, partial_shape.dims[i]);
        }
        xm_strbuf_add(&b, "}");
    }
    xm_api_give_text(&b, &text);
    return text;
}
