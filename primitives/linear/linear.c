/* SPDX-License-Identifier: Apache-2.0
 *
 * linear: three tables, by the number of tokens.
 *
 *   linear_few   up to 4 tokens: the time is that of reading the weights
 *   linear_many  up to 127 tokens
 *   linear_long  from 128 tokens on: the time is that of arithmetic; a host library may be faster
 *
 * A row of each table is chosen and built at creation, so that nothing is compiled when a prompt
 * gets longer. linear_rows.h runs a row.
 */
#include "primitives/linear/linear.h"

#include <stdio.h>

#include "primitives/device_weight.h"
#include "primitives/linear/linear_rows.h"
#include "primitives/matrix_engine.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

enum { FEW, MANY, LONG };
enum { MANY_TOKENS = 127 };
enum { SG_WORDS = 8 }; /* 32-bit words that linear_gemm_sg reads at a time */

static const char *
not_in_runs(const void *product)
{
    return xm_product_not_in_runs(product, SG_WORDS);
}

/* Returns whether the user set GPU_USE_ONEDNN=NO. */
static bool
is_without_onednn(const struct xm_linear *l)
{
    const struct xm_config *c = xm_engine_config(l->base.engine);
    return xm_config_user_set(c, XM_OPTION_use_onednn) && c->use_onednn == XM_NO;
}

static const char *
onednn_refuses(const void *product)
{
    const struct xm_linear *l = ((const struct xm_product *)product)->of;
    const char *why = is_without_onednn(l) ? "GPU_USE_ONEDNN=NO" : NULL;
    for (uint32_t i = 0; i < l->desc.n && !why; i++)
        why = xm_onednn_linear_refuses(xm_engine_info(l->base.engine),
                                       xm_linear_weight(l, i), l->desc.src);
    return why;
}

static const char *
onednn_gpu_refuses(const void *product)
{
    const struct xm_linear *l = ((const struct xm_product *)product)->of;
    const char *why = is_without_onednn(l) ? "GPU_USE_ONEDNN=NO" : NULL;
    for (uint32_t i = 0; i < l->desc.n && !why; i++) {
        const struct xm_library_gate gate = xm_linear_gate(&l->desc);
        why = xm_onednn_gpu_linear_refuses(l->base.engine, xm_linear_weight(l, i),
                                           l->desc.src, l->desc.dst,
                                           l->desc.is_glu && i == 0 ? &gate : NULL);
    }
    return why;
}

/* clang-format off */
/* A row that joins computes the results of all weights in one launch; other rows need a launch for
 * each weight. */
static const struct xm_variant few_rows[] = {
    {"linear_gemv_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}}, XM_FORM_BYTES, "linear_gemv_vec", .joins = true},
    {"linear_gemv_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}}, XM_FORM_SHORTS, "linear_gemv_vec", .joins = true},
    {"linear_gemv_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}}, XM_FORM_PLANES, .joins = true},
    {"linear_gemv_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_lanes,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_TOKENS, 1}, .split = 8}, .joins = true},
    {"linear_gemv_dp4a", XM_FAMILY_SG, XM_CAP_DP4A, xm_product_not_in_lanes,
     {XM_LANES, XM_DOT_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_TOKENS, 1}, .split = 8},
     .kernel = "linear_gemv_dpas", .joins = true},
    {"linear_gemv_sg", XM_FAMILY_SG, 0, xm_product_not_in_words,
     {XM_LANES, 0, {XM_ROWS, 4}, {XM_TOKENS, 1}}, .joins = true},
    {"linear_gemv_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 4}, {XM_TOKENS, 1}}, .joins = true},
    {"linear_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}}, .joins = true},
};
static const struct xm_variant long_rows[] = {
    {"linear_gemm_onednn", XM_FAMILY_HOST, 0, onednn_refuses},
    /* linear_many begins with this row */
    {"linear_gemm_onednn_gpu", XM_FAMILY_ONEDNN, 0, onednn_gpu_refuses},
    {"linear_gemm_amx", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_AMX, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_TOKENS, 128}}, XM_FORM_BF16_TILES},
    {"linear_gemm_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_TOKENS, 48}}, XM_FORM_BYTES, "linear_gemm_vnni"},
    {"linear_gemm_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_TOKENS, 48}}, XM_FORM_SHORT_PAIRS},
    {"linear_gemm_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 8, XM_SHARED}}, XM_FORM_TILES},
    {"linear_gemm_dpas_shared", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_shares,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_ROWS, XM_PER_LANE},
      {XM_TOKENS, XM_MATRIX_SHARES * XM_MATRIX_TOKENS}, .split = XM_MATRIX_SHARES},
     XM_FORM_STEPS, "linear_gemm_dpas", .shares = true, .large_grf = true},
    {"linear_gemm_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_steps,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_ROWS, XM_PER_LANE}, {XM_TOKENS, XM_MATRIX_TOKENS}},
     XM_FORM_STEPS, .large_grf = true},
    {"linear_gemm_sg", XM_FAMILY_SG, XM_CAP_SG_SHORT, not_in_runs,
     {XM_LANES, 0, {XM_ROWS, XM_SUB_GROUP}, {XM_TOKENS, XM_TILE}}, XM_FORM_LANE_TILES},
    {"linear_gemm_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, 128, {XM_ROWS, 64}, {XM_TOKENS, 64}}},
    {"linear_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}}, .joins = true},
};
const struct xm_variant_table xm_linear_tables[XM_LINEAR_N_TABLES] = {
    {"linear_few",  few_rows,  XM_ARRAY_LEN(few_rows)},
    {"linear_many", long_rows + 1, XM_ARRAY_LEN(long_rows) - 1},
    {"linear_long", long_rows, XM_ARRAY_LEN(long_rows)},
};
/* clang-format on */

static const struct xm_linear_way *
way_for(const struct xm_linear *l, uint64_t tokens)
{
    return &l->way[tokens <= XM_FEW_TOKENS ? FEW : tokens <= MANY_TOKENS ? MANY : LONG];
}

const char *
xm_linear_supports(const struct xm_device_info *device, const struct xm_weight *w,
                   enum xm_element src, enum xm_element dst)
{
    (void)device; /* linear_ref runs anywhere */
    if ((src != XM_F16 && src != XM_F32) || (dst != XM_F16 && dst != XM_F32))
        return "activations are neither f16 nor f32";
    if (w->experts != 1)
        return "the weight has several experts";
    return xm_weight_unreadable(w);
}

struct xm_rows_form
xm_linear_reads(struct xm_engine *engine, const struct xm_weight *w, enum xm_element src,
                uint32_t factor)
{
    return xm_product_reads(engine, &xm_linear_tables[FEW], w, src, factor);
}

const char *
xm_linear_cannot_join(const struct xm_weight *a, const struct xm_weight *b)
{
    return xm_weight_cannot_join(a, b);
}

const char *
xm_linear_cannot_gate(const struct xm_weight *gate, const struct xm_weight *up)
{
    return gate->rows == up->rows ? xm_linear_cannot_join(gate, up)
                                  : "the weights have different numbers of rows";
}

/* ---- creation --------------------------------------------------------------------- */

struct building {
    struct xm_linear *l;
    struct xm_pick picks[XM_LINEAR_N_TABLES];
};

static enum xm_status
build_way(void *ctx, size_t i, struct xm_error *err)
{
    struct building *b = ctx;
    struct xm_linear_way *way = &b->l->way[i];
    way->row = &xm_linear_tables[i].rows[b->picks[i].row];
    return xm_linear_build(b->l, way, err);
}

static enum xm_status
build_ways(struct xm_linear *l, struct xm_error *err)
{
    struct building b = {.l = l};
    l->product = (struct xm_product){
        .weights.n = l->desc.n, .src = l->desc.src, .factor = l->desc.factor, .of = l};
    for (uint32_t i = 0; i < l->desc.n; i++)
        l->product.weights.w[i] = xm_linear_weight(l, i);
    for (size_t c = 0; c < XM_LINEAR_N_TABLES; c++)
        b.picks[c] = xm_product_pick(&xm_linear_tables[c], &l->product);
    XM_TRY(xm_variant_build(b.picks, XM_LINEAR_N_TABLES, l->base.engine, build_way, &b,
                            err));
    return xm_linear_after_create(l, err);
}

static void
linear_destroy(struct xm_primitive *p)
{
    struct xm_linear *l = (struct xm_linear *)p;
    for (uint32_t i = 0; i < l->desc.n; i++) {
        xm_device_weight_unref(l->desc.segment[i].weight);
        xm_buffer_unref(l->desc.segment[i].bias);
    }
    for (size_t c = 0; c < XM_LINEAR_N_TABLES; c++)
        xm_linear_library_release(&l->way[c]);
    xm_linear_after_destroy(&l->after);
    xm_primitive_free(p);
}

/* ---- scratch and runs -------------------------------------------------------------- */

static enum xm_status
linear_plan(const struct xm_primitive *p, const struct xm_operand *operands,
            const struct xm_attention_run *sequences, uint64_t *scratch_bytes,
            struct xm_error *err)
{
    const struct xm_linear *l = (const struct xm_linear *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_LINEAR_X]);
    const struct xm_linear_way *way = way_for(l, tokens);
    (void)sequences, (void)err;
    *scratch_bytes = xm_linear_scratch(l, way, tokens);
    if (!xm_linear_gates(way->row))
        *scratch_bytes += xm_linear_after_bytes(l, tokens);
    return XM_OK;
}

/* Checks the type and size of the addend or of the GLU's factor, because kernels trust them. */
static enum xm_status
check_other(const struct xm_linear *l, const struct xm_operand *operands,
            struct xm_error *err)
{
    const struct xm_linear_desc *d = &l->desc;
    const struct xm_operand *o = &operands[XM_LINEAR_ADDEND];
    bool is_factor = d->is_glu && d->n == 1;
    const char *name = is_factor ? "factor" : "addend";
    if (!is_factor && !d->has_addend)
        return XM_OK;
    XM_TRY(xm_operand_check(o, name, d->dst, err));
    uint64_t want = xm_operand_elements(&operands[XM_LINEAR_Y]) *
                    (is_factor ? d->slices : (uint64_t)1);
    return xm_operand_check_elements(o, name, want, err);
}

static enum xm_status
linear_run(const struct xm_primitive *p, const struct xm_operand *operands,
           const struct xm_run *run, struct xm_error *err)
{
    const struct xm_linear *l = (const struct xm_linear *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_LINEAR_X]);
    const struct xm_linear_way *way = way_for(l, tokens);
    if (tokens == 0)
        return XM_OK;
    if (tokens > INT32_MAX)
        return xm_fail(err, XM_UNSUPPORTED,
                       "%llu tokens in one run, at most 2^31 - 1 are supported",
                       (unsigned long long)tokens);
    XM_TRY(check_other(l, operands, err));
    struct xm_scratch s;
    xm_scratch_begin(&s, p, run);
    const struct xm_linear_call call = {l, way, operands, tokens, run, &s};
    enum xm_status status = xm_linear_after_run(&call, err);
    xm_scratch_end(&s);
    return status;
}

static void
linear_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                char *out, size_t out_bytes)
{
    const struct xm_linear *l = (const struct xm_linear *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_LINEAR_X]);
    snprintf(out, out_bytes, "%s", way_for(l, tokens)->row->name);
}

static const uint8_t linear_roles[XM_LINEAR_N_OPERANDS] = {
    [XM_LINEAR_X] = XM_ROLE_IN,
    [XM_LINEAR_ADDEND] = XM_ROLE_IN,
    [XM_LINEAR_PREPARED] = XM_ROLE_IN | XM_ROLE_FORM,
    [XM_LINEAR_Y] = XM_ROLE_OUT,
    XM_ROLE_OUT,
    XM_ROLE_OUT};
static const struct xm_primitive_ops linear_ops = {
    "linear",        linear_plan,    linear_run,
    linear_describe, linear_destroy, XM_ROLES(linear_roles)};

static const char *
why_not_glu(const struct xm_linear_desc *d)
{
    uint64_t rows = d->segment[0].weight->host.rows;
    if (d->has_addend || d->n > 2)
        return "a gated unit cannot have an addend or more than two weights";
    if (d->n == 2)
        return xm_linear_cannot_gate(&d->segment[0].weight->host,
                                     &d->segment[1].weight->host);
    if (d->slice >= d->slices)
        return "the slice of a gated unit's multiplier does not exist";
    return rows > INT32_MAX / d->slices
               ? "the rows of a gated unit's multiplier are too long"
               : NULL;
}

static const char *
why_not(const struct xm_engine *engine, const struct xm_linear_desc *d)
{
    const char *why = NULL;
    if (d->n < 1 || d->n > XM_LINEAR_SEGMENTS || (d->has_addend && d->n != 1))
        return "it has no weight, too many weights, or several weights and an addend";
    for (uint32_t i = 0; i < d->n && !why; i++) {
        const struct xm_weight *w = &d->segment[i].weight->host;
        why = xm_linear_supports(xm_engine_info(engine), w, d->src, d->dst);
        if (!why)
            why = xm_linear_cannot_join(&d->segment[0].weight->host, w);
    }
    return why || !d->is_glu ? why : why_not_glu(d);
}

enum xm_status
xm_linear_create(struct xm_engine *engine, const struct xm_linear_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    const char *why = why_not(engine, desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "linear: %s", why);
    struct xm_linear *l = xm_primitive_new(sizeof(*l), &linear_ops, engine, err);
    if (!l)
        return XM_NO_MEMORY;
    l->desc = *desc;
    for (uint32_t i = 0; i < desc->n; i++) {
        xm_device_weight_ref(desc->segment[i].weight);
        if (desc->segment[i].bias)
            xm_buffer_ref(desc->segment[i].bias);
    }
    enum xm_status status = build_ways(l, err);
    if (status != XM_OK) {
        linear_destroy(&l->base);
        return status;
    }
    *out = &l->base;
    return XM_OK;
}
