/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a problem by memory descriptors and attributes of oneDNN; see onednn_matmul.h.
 */
#include "primitives/onednn/onednn_matmul.h"

#include <string.h>

#include "primitives/onednn/onednn_grouped.h"
#include "primitives/onednn/onednn_guard.h"
#include "runtime/util/compiler.h"
#include "runtime/util/log.h"

/* masks of the dimensions [k,n] along which scales differ */
enum { ROWS_AND_COLUMNS = 3, COLUMNS = 2 };

static dnnl_data_type_t
type_of(enum xm_element e)
{
    /* Other types are dnnl_data_type_undef, which is 0. */
    static const dnnl_data_type_t types[XM_ELEMENT_COUNT] = {
        [XM_F32] = dnnl_f32, [XM_F16] = dnnl_f16, [XM_BF16] = dnnl_bf16,
        [XM_U4] = dnnl_u4,   [XM_I4] = dnnl_s4,   [XM_U8] = dnnl_u8,
        [XM_I8] = dnnl_s8};
    return types[e];
}

/* ---- memory descriptors ------------------------------------------------------------- */

static dnnl_status_t
matrix(dnnl_memory_desc_t *out, uint64_t rows, uint64_t cols, uint64_t row_step,
       uint64_t col_step, enum xm_element e)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t steps = {(dnnl_dim_t)row_step, (dnnl_dim_t)col_step};
    return dnnl_memory_desc_create_with_strides(out, 2, dims, type_of(e), steps);
}

/* Describes one such matrix (groups 0), or `groups` of them one after another. */
static dnnl_status_t
matrices(dnnl_memory_desc_t *out, uint64_t groups, uint64_t rows, uint64_t cols,
         uint64_t row_step, uint64_t col_step, enum xm_element e)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)groups, (dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t steps = {(dnnl_dim_t)(rows * cols), (dnnl_dim_t)row_step,
                               (dnnl_dim_t)col_step};
    return groups ? dnnl_memory_desc_create_with_strides(out, 3, dims, type_of(e), steps)
                  : matrix(out, rows, cols, row_step, col_step, e);
}

/* Describes the rows [m, cols], undivided or divided into groups. */
static dnnl_status_t
rows_of(const struct xm_onednn_problem *p, uint64_t cols, uint64_t step,
        enum xm_element e, dnnl_memory_desc_t *out)
{
    if (!p->groups)
        return matrix(out, p->m, cols, step, 1, e);
    return step == cols ? xm_onednn_grouped_desc(out, p->m, cols, p->groups, type_of(e))
                        : dnnl_unimplemented;
}

/* Describes scales or zero points of W: [k / group, n]; [n] if there is one for each column. */
static dnnl_status_t
quantiser(const struct xm_onednn_problem *p, enum xm_element e, dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)p->n}, steps = {1};
    uint64_t n_scales = p->k / p->group;
    if (n_scales == 1 && !p->groups)
        return dnnl_memory_desc_create_with_strides(out, 1, dims, type_of(e), steps);
    return matrices(out, p->groups, n_scales, p->n, p->n, 1, e);
}

static dnnl_status_t
one(enum xm_element e, dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {1}, steps = {1};
    return dnnl_memory_desc_create_with_strides(out, 1, dims, type_of(e), steps);
}

static bool
is_present(const struct xm_onednn_problem *p, enum xm_onednn_arg arg)
{
    switch (arg) {
    case XM_ONEDNN_SCALE:
        return p->group != 0;
    case XM_ONEDNN_ZERO_POINT:
        return p->group != 0 && p->zero_point != XM_DYNAMIC;
    case XM_ONEDNN_BIAS:
        return p->bias;
    case XM_ONEDNN_TIMES:
        return p->times;
    case XM_ONEDNN_ENDS:
        return false; /* passed as a part of each grouped argument */
    default:
        return true;
    }
}

/* Creates the descriptor of any argument except the scratchpad. */
static dnnl_status_t
describe_arg(const struct xm_onednn_problem *p, enum xm_onednn_arg arg,
             dnnl_memory_desc_t *out)
{
    switch (arg) {
    case XM_ONEDNN_X:
        return rows_of(p, p->k, p->k, p->x, out);
    case XM_ONEDNN_W:
        return matrices(out, p->groups, p->k, p->n, 1, p->k, p->w);
    case XM_ONEDNN_SCALE:
        return quantiser(p, p->scale, out);
    case XM_ONEDNN_ZERO_POINT:
        return p->one_zero_point ? one(p->zero_point, out)
                                 : quantiser(p, p->zero_point, out);
    case XM_ONEDNN_BIAS:
        return p->groups ? dnnl_unimplemented : matrix(out, 1, p->n, p->n, 1, XM_F32);
    case XM_ONEDNN_TIMES:
        return rows_of(p, p->n, p->times_step ? p->times_step : p->n, p->y, out);
    default:
        return rows_of(p, p->n, p->y_step ? p->y_step : p->n, p->y, out);
    }
}

/* ---- attributes --------------------------------------------------------------------- */

static dnnl_status_t
set_zero_points(dnnl_primitive_attr_t a, const struct xm_onednn_problem *p, int mask,
                int n_dims, const dnnl_dims_t group)
{
    if (p->zero_point == XM_DYNAMIC)
        return dnnl_success;
    return dnnl_primitive_attr_set_zero_points(
        a, DNNL_ARG_WEIGHTS, p->one_zero_point ? 0 : mask, p->one_zero_point ? 0 : n_dims,
        group, type_of(p->zero_point));
}

/* Sets one scale and zero point for each column, or for each group of k in a column. */
static dnnl_status_t
set_quantisation(dnnl_primitive_attr_t a, const struct xm_onednn_problem *p)
{
    const dnnl_dims_t group = {(dnnl_dim_t)p->group, 1};
    int n_dims = p->group == p->k ? 0 : 2, mask = n_dims ? ROWS_AND_COLUMNS : COLUMNS;
    if (p->groups)
        mask = mask << 1 | 1; /* over [groups,k,n] */
    dnnl_status_t status = dnnl_primitive_attr_set_scales(
        a, DNNL_ARG_WEIGHTS, mask, n_dims, group, type_of(p->scale));
    if (status == dnnl_success)
        status = set_zero_points(a, p, mask, n_dims, group);
    if (status != dnnl_success)
        return status;
    /* Integer weights are converted to x's type and multiplied in that type. */
    dnnl_fpmath_mode_t mode = p->x == XM_F16    ? dnnl_fpmath_mode_f16
                              : p->x == XM_BF16 ? dnnl_fpmath_mode_bf16
                                                : dnnl_fpmath_mode_strict;
    return dnnl_primitive_attr_set_fpmath_mode_v2(a, mode, true);
}

static dnnl_status_t
append_activation(dnnl_post_ops_t ops, const struct xm_onednn_problem *p)
{
    switch (p->activation) {
    case XM_ACT_SWISH:
        return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_swish, p->beta, 0);
    case XM_ACT_GELU_TANH:
        return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_gelu_tanh, 0, 0);
    case XM_ACT_GELU_ERF:
        return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_gelu_erf, 0, 0);
    default:
        return dnnl_unimplemented;
    }
}

static dnnl_status_t
append_product(dnnl_post_ops_t ops, const struct xm_onednn_problem *p)
{
    dnnl_memory_desc_t times = NULL;
    dnnl_status_t status = describe_arg(p, XM_ONEDNN_TIMES, &times);
    if (status == dnnl_success)
        status = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, times);
    dnnl_memory_desc_destroy(times);
    return status;
}

static dnnl_status_t
set_post_ops(dnnl_primitive_attr_t a, const struct xm_onednn_problem *p)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success && p->activated)
        status = append_activation(ops, p);
    if (status == dnnl_success && p->times)
        status = append_product(ops, p);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(a, ops);
    dnnl_post_ops_destroy(ops);
    return status;
}

/* The caller provides the scratchpad, because oneDNN would use one for all queues of a thread. */
static dnnl_status_t
create_attributes(dnnl_primitive_attr_t *out, const struct xm_onednn_problem *p)
{
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && p->group)
        status = set_quantisation(*out, p);
    return status == dnnl_success ? set_post_ops(*out, p) : status;
}

void
xm_onednn_be_quiet(void)
{
    if (!xm_env("ONEDNN_VERBOSE") && !xm_env("DNNL_VERBOSE"))
        dnnl_set_verbose(0);
}

/* ---- descriptions ------------------------------------------------------------------- */

dnnl_primitive_desc_t
xm_onednn_describe(dnnl_engine_t engine, const struct xm_onednn_problem *p)
{
    static const enum xm_onednn_arg args[] = {XM_ONEDNN_X, XM_ONEDNN_W, XM_ONEDNN_BIAS,
                                              XM_ONEDNN_Y};
    dnnl_memory_desc_t desc[XM_ONEDNN_ARG_COUNT] = {NULL};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = create_attributes(&attributes, p);
    for (size_t i = 0; i < XM_ARRAY_LEN(args) && status == dnnl_success; i++) {
        if (is_present(p, args[i]))
            status = describe_arg(p, args[i], &desc[args[i]]);
    }
    if (status == dnnl_success &&
        xm_onednn_try_describe(&pd, engine, desc[XM_ONEDNN_X], desc[XM_ONEDNN_W],
                               desc[XM_ONEDNN_BIAS], desc[XM_ONEDNN_Y],
                               attributes) != dnnl_success)
        pd = NULL;
    dnnl_primitive_attr_destroy(attributes);
    for (size_t i = 0; i < XM_ARRAY_LEN(desc); i++)
        dnnl_memory_desc_destroy(desc[i]);
    return pd;
}

const char *
xm_onednn_implementation(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_status_t status =
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && name ? name : "";
}

/* Reference code is "ref:any" of the CPU engine, "ocl:ref:any" of the GPU engine. */
bool
xm_onednn_is_reference(const char *implementation)
{
    for (const char *at = implementation; at; at = strchr(at, ':')) {
        at += *at == ':';
        if (strncmp(at, "ref", 3) == 0)
            return true;
    }
    return false;
}

static const_dnnl_memory_desc_t
scratchpad_desc(const_dnnl_primitive_desc_t pd)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
}

uint64_t
xm_onednn_scratchpad_bytes(const_dnnl_primitive_desc_t pd)
{
    const_dnnl_memory_desc_t desc = scratchpad_desc(pd);
    return desc ? dnnl_memory_desc_get_size(desc) : 0;
}

/* ---- execution ---------------------------------------------------------------------- */

/* Returns oneDNN's number of an argument. */
static int
name_of(const struct xm_onednn_problem *p, enum xm_onednn_arg arg)
{
    static const int names[XM_ONEDNN_ARG_COUNT] = {
        [XM_ONEDNN_X] = DNNL_ARG_SRC,
        [XM_ONEDNN_W] = DNNL_ARG_WEIGHTS,
        [XM_ONEDNN_SCALE] = DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
        [XM_ONEDNN_ZERO_POINT] = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS,
        [XM_ONEDNN_BIAS] = DNNL_ARG_BIAS,
        [XM_ONEDNN_Y] = DNNL_ARG_DST,
        [XM_ONEDNN_SCRATCHPAD] = DNNL_ARG_SCRATCHPAD,
    };
    if (arg == XM_ONEDNN_TIMES)
        return DNNL_ARG_ATTR_MULTIPLE_POST_OP(p->activated) | DNNL_ARG_SRC_1;
    return names[arg];
}

/* Creates memory from one handle, or from two: rows and `ends`, where their groups end. */
static dnnl_status_t
make_memory(dnnl_memory_t *out, const_dnnl_memory_desc_t desc, dnnl_engine_t engine,
            const struct xm_onednn_handle *at, const struct xm_onednn_handle *ends,
            xm_onednn_make_memory make)
{
    if (ends)
        return xm_onednn_rows_memory(out, desc, engine, at, ends);
    if (at->kind == XM_ONEDNN_HOST)
        return dnnl_memory_create(out, desc, engine, at->at);
    return make ? make(out, desc, engine, at) : dnnl_invalid_arguments;
}

static bool
has_rows(enum xm_onednn_arg arg)
{
    return arg == XM_ONEDNN_X || arg == XM_ONEDNN_TIMES || arg == XM_ONEDNN_Y;
}

static dnnl_status_t
make_arg(dnnl_exec_arg_t *out, dnnl_primitive_t primitive, dnnl_engine_t engine,
         const struct xm_onednn_problem *p, enum xm_onednn_arg arg,
         const struct xm_onednn_handles *handles, xm_onednn_make_memory make)
{
    dnnl_memory_desc_t own = NULL;
    const_dnnl_memory_desc_t desc = NULL;
    const_dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = arg == XM_ONEDNN_SCRATCHPAD
                               ? dnnl_primitive_get_primitive_desc(primitive, &pd)
                               : describe_arg(p, arg, &own);
    if (status == dnnl_success) {
        desc = pd ? scratchpad_desc(pd) : own;
        status = make_memory(
            &out->memory, desc, engine, &handles->arg[arg],
            p->groups && has_rows(arg) ? &handles->arg[XM_ONEDNN_ENDS] : NULL, make);
    }
    out->arg = name_of(p, arg);
    dnnl_memory_desc_destroy(own);
    return status;
}

dnnl_status_t
xm_onednn_execute(dnnl_primitive_t primitive, dnnl_engine_t engine, dnnl_stream_t stream,
                  const struct xm_onednn_problem *p,
                  const struct xm_onednn_handles *handles, xm_onednn_make_memory make)
{
    dnnl_exec_arg_t args[XM_ONEDNN_ARG_COUNT] = {{0, NULL}};
    dnnl_status_t status = dnnl_success;
    int n = 0;
    for (int a = 0; a < XM_ONEDNN_ARG_COUNT && status == dnnl_success; a++) {
        if (!is_present(p, (enum xm_onednn_arg)a) || !handles->arg[a].at)
            continue;
        status = make_arg(&args[n++], primitive, engine, p, (enum xm_onednn_arg)a,
                          handles, make);
    }
    /* args has room, because ENDS took no place of its own. */
    if (status == dnnl_success && p->groups && handles->most_rows)
        status = xm_onednn_most_rows(&args[n++], handles->most_rows);
    if (status == dnnl_success)
        status = xm_onednn_try_execute(primitive, stream, n, args);
    for (int i = 0; i < n; i++)
        dnnl_memory_destroy(args[i].memory);
    return status;
}
