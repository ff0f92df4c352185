/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, dimensions and ranks: structs that callers pass by value.
 */
#include "plugin/api/api.h"

/* ---- static shapes ----------------------------------------------------------------- */

ov_status_e
ov_shape_create(const int64_t rank, const int64_t *dims, ov_shape_t *shape)
{
    if (!shape || rank <= 0)
        return xm_api_refuse(__func__);
    /* before `dims` is read, because a wrong, huge rank fails here */
    int64_t *copy = xm_calloc((size_t)rank, sizeof(*copy));
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a shape of rank %lld",
                           (long long)rank);
    for (int64_t i = 0; dims && i < rank; i++) {
        if (dims[i] < 0) {
            xm_free(copy);
            return xm_api_refuse(__func__);
        }
        copy[i] = dims[i];
    }
    *shape = (ov_shape_t){.rank = rank, .dims = copy};
    return OK;
}

ov_status_e
ov_shape_free(ov_shape_t *shape)
{
    if (!shape)
        return xm_api_refuse(__func__);
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

/* Whether the bounds are valid. A lower bound of -1 means 0. */
static bool
is_valid_dimension(ov_dimension_t d)
{
    return (d.min == -1 && d.max >= -1) || (d.min >= 0 && d.min <= d.max);
}

/* Sets a constant rank and allocates its dimensions. */
static ov_status_e
create_partial(int64_t rank, ov_partial_shape_t *out)
{
    *out = (ov_partial_shape_t){.rank = {rank, rank}, .dims = NULL};
    if (rank == 0)
        return OK;
    out->dims = xm_calloc((size_t)rank, sizeof(*out->dims));
    if (!out->dims)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a shape of rank %lld",
                           (long long)rank);
    return OK;
}

static bool
is_scalar(ov_partial_shape_t s)
{
    return s.rank.min == 0 && s.rank.max == 0;
}

/* Whether a shape has a constant rank but no dimensions, as callers that fill in the struct may
 * pass. */
static bool
lacks_dimensions(ov_partial_shape_t s)
{
    return !is_scalar(s) && !ov_rank_is_dynamic(s.rank) && (s.rank.max < 0 || !s.dims);
}

ov_status_e
ov_partial_shape_create(const int64_t rank, const ov_dimension_t *dims,
                        ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj || rank < 0 || (rank > 0 && !dims))
        return xm_api_refuse(__func__);
    ov_partial_shape_t result;
    ov_status_e status = create_partial(rank, &result);
    for (int64_t i = 0; status == OK && i < rank; i++) {
        if (!is_valid_dimension(dims[i])) {
            ov_partial_shape_free(&result);
            return xm_api_refuse(__func__);
        }
        result.dims[i] = dims[i];
    }
    if (status == OK)
        *partial_shape_obj = result;
    return status;
}

ov_status_e
ov_partial_shape_create_dynamic(const ov_rank_t rank, const ov_dimension_t *dims,
                                ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj)
        return xm_api_refuse(__func__);
    if (!ov_rank_is_dynamic(rank))
        return ov_partial_shape_create(rank.max, dims, partial_shape_obj);
    if (!is_valid_dimension(rank)) /* the dimensions have no meaning and are not read */
        return xm_api_refuse(__func__);
    *partial_shape_obj = (ov_partial_shape_t){.rank = rank, .dims = NULL};
    return OK;
}

ov_status_e
ov_partial_shape_create_static(const int64_t rank, const int64_t *dims,
                               ov_partial_shape_t *partial_shape_obj)
{
    if (!partial_shape_obj || !dims || rank < 0)
        return xm_api_refuse(__func__);
    ov_shape_t shape = {.rank = rank, .dims = (int64_t *)dims};
    ov_status_e status = ov_shape_to_partial_shape(shape, partial_shape_obj);
    if (status != OK) /* so that the caller can free it, as with OpenVINO */
        *partial_shape_obj = (ov_partial_shape_t){.rank = {0, 0}, .dims = NULL};
    return status;
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
    if (is_scalar(partial_shape))
        return false;
    if (ov_rank_is_dynamic(partial_shape.rank) || lacks_dimensions(partial_shape))
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
    if (!shape || lacks_dimensions(partial_shape))
        return xm_api_refuse(__func__);
    if (ov_partial_shape_is_dynamic(partial_shape)) {
        /* so that the caller can free it, as with OpenVINO: some programs do so without setting it
         * before */
        if (!ov_rank_is_dynamic(partial_shape.rank))
            *shape = (ov_shape_t){0, NULL};
        return PARAMETER_MISMATCH;
    }
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
        return xm_api_refuse(__func__);
    ov_partial_shape_t result;
    ov_status_e status = create_partial(shape.rank, &result);
    for (int64_t i = 0; status == OK && i < shape.rank; i++) {
        if (shape.dims[i] < 0) {
            ov_partial_shape_free(&result);
            return xm_api_refuse(__func__);
        }
        result.dims[i] = (ov_dimension_t){shape.dims[i], shape.dims[i]};
    }
    if (status == OK)
        *partial_shape = result;
    return status;
}

/* Appends a dimension: "?", "7", "1..20", "..20", "1..". */
static void
print_dimension(struct xm_strbuf *b, ov_dimension_t d)
{
    const bool is_open = d.max == -1 || d.max == INT64_MAX;
    if (is_open && d.min <= 0) {
        xm_strbuf_add(b, "?");
    } else if (d.min == d.max) {
        xm_strbuf_printf(b, "%lld", (long long)d.min);
    } else {
        if (d.min > 0)
            xm_strbuf_printf(b, "%lld", (long long)d.min);
        xm_strbuf_add(b, "..");
        if (!is_open)
            xm_strbuf_printf(b, "%lld", (long long)d.max);
    }
}

const char *
ov_partial_shape_to_string(const ov_partial_shape_t partial_shape)
{
    struct xm_strbuf b = {0};
    char *text = NULL;
    if (lacks_dimensions(partial_shape))
        return NULL;
    if (!is_scalar(partial_shape) && ov_rank_is_dynamic(partial_shape.rank)) {
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
