/* SPDX-License-Identifier: Apache-2.0
 *
 * gather_matmul: multiplies each (token, slot) by the weights of its expert, row by row; no
 * sorting, no scratch except for converted activations.
 */
#include <stdio.h>

#include "primitives/moe/moe.h"
#include "primitives/product.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

struct gather_matmul {
    struct xm_primitive base;
    struct xm_gather_matmul_desc desc; /* its weight and bias are referenced */
    struct xm_product product;
    struct xm_pick pick;
    struct xm_converter a;
    struct xm_kernel *kernel;
};

/* clang-format off */
static const struct xm_variant rows[] = {
    {"gather_matmul_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}, {XM_SLOTS, 1}},
     XM_FORM_SHORTS, "gather_matmul_vec"},
    {"gather_matmul_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}, {XM_SLOTS, 1}},
     XM_FORM_PLANES},
    {"gather_matmul_sg", XM_FAMILY_SG, 0, xm_product_not_in_words,
     {XM_LANES, 0, {XM_ROWS, 4}, {XM_TOKENS, 1}, {XM_SLOTS, 1}}},
    {"gather_matmul_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 4}, {XM_TOKENS, 1}, {XM_SLOTS, 1}}},
    {"gather_matmul_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}, {XM_SLOTS, 1}}},
};
/* clang-format on */
const struct xm_variant_table xm_gather_matmul_table = XM_TABLE("gather_matmul", rows);

const char *
xm_gather_matmul_supports(const struct xm_device_info *device, const struct xm_weight *w)
{
    (void)device; /* gather_matmul_ref runs anywhere */
    return xm_weight_unreadable(w);
}

/* Sizes of one run. */
struct sizes {
    uint64_t tokens, slots, a_slots;
};

static struct sizes
sizes_of(const struct xm_operand *o)
{
    const struct xm_operand *a = &o[XM_GATHER_MATMUL_A], *ids = &o[XM_GATHER_MATMUL_IDS];
    struct sizes s = {xm_operand_rows(ids), (uint64_t)ids->dim[ids->rank - 1], 0};
    s.a_slots = s.tokens ? xm_operand_rows(a) / s.tokens : 0;
    return s;
}

static enum xm_status
gather_matmul_plan(const struct xm_primitive *p, const struct xm_operand *o,
                   const struct xm_attention_run *sequences, uint64_t *scratch_bytes,
                   struct xm_error *err)
{
    const struct gather_matmul *g = (const struct gather_matmul *)p;
    uint64_t rows_of_a = xm_operand_rows(&o[XM_GATHER_MATMUL_A]);
    (void)sequences, (void)err;
    *scratch_bytes = g->a.kernel ? xm_converter_scratch(&g->a, p, rows_of_a) : 0;
    return XM_OK;
}

static enum xm_status
multiply(const struct gather_matmul *g, const struct xm_operand *o, const struct sizes *s,
         const struct xm_run *run, struct xm_scratch *scratch, struct xm_error *err)
{
    const struct xm_weight *w = &g->desc.weight->host;
    const struct xm_activations given = {.plain = o[XM_GATHER_MATMUL_A].buffer,
                                         .n = s->a_slots * s->tokens};
    const struct xm_counts counts = {
        .n = {[XM_ROWS] = w->rows, [XM_TOKENS] = s->tokens, [XM_SLOTS] = s->slots},
        .block = 1};
    struct xm_buffer *activations;
    struct xm_args a = {.n = 0};
    XM_TRY(xm_converter_run(&g->a, &given, scratch, run->queue, &activations, err));
    xm_put_weight(&a, "w", g->desc.weight);
    xm_put_buffer(&a, "a", activations);
    xm_put_buffer(&a, "ids", o[XM_GATHER_MATMUL_IDS].buffer);
    xm_put_buffer(&a, "bias", g->desc.bias);
    xm_put_buffer(&a, "out", o[XM_GATHER_MATMUL_OUT].buffer);
    xm_put_uint(&a, "experts", w->experts);
    xm_put_uint(&a, "n_count", w->rows);
    xm_put_uint(&a, "k_count", w->cols);
    xm_put_uint(&a, "a_slots", s->a_slots);
    return xm_launch(&rows[g->pick.row].launch, g->kernel, &counts, &a, run->queue, err);
}

static enum xm_status
gather_matmul_run(const struct xm_primitive *p, const struct xm_operand *o,
                  const struct xm_run *run, struct xm_error *err)
{
    const struct gather_matmul *g = (const struct gather_matmul *)p;
    const struct sizes s = sizes_of(o);
    if (s.tokens == 0 || s.slots == 0)
        return XM_OK;
    if (s.a_slots == 0 || s.a_slots > INT32_MAX)
        return xm_fail(err, XM_INVALID,
                       "the activations have %llu slots, expected 1 to 2^31 - 1",
                       (unsigned long long)s.a_slots);
    struct xm_scratch scratch;
    xm_scratch_begin(&scratch, p, run);
    enum xm_status status = multiply(g, o, &s, run, &scratch, err);
    xm_scratch_end(&scratch);
    return status;
}

static void
gather_matmul_describe(const struct xm_primitive *p, const struct xm_operand *o,
                       char *out, size_t out_bytes)
{
    (void)o;
    snprintf(out, out_bytes, "%s",
             rows[((const struct gather_matmul *)p)->pick.row].name);
}

static void
gather_matmul_destroy(struct xm_primitive *p)
{
    struct gather_matmul *g = (struct gather_matmul *)p;
    xm_device_weight_unref(g->desc.weight);
    xm_buffer_unref(g->desc.bias);
    xm_primitive_free(p);
}

static const struct xm_primitive_ops gather_matmul_ops = {
    "gather_matmul",        gather_matmul_plan,    gather_matmul_run,
    gather_matmul_describe, gather_matmul_destroy, XM_ROLES(xm_roles_2_1)};

static enum xm_status
build(void *ctx, size_t i, struct xm_error *err)
{
    struct gather_matmul *g = ctx;
    const struct xm_variant *row = &rows[g->pick.row];
    (void)i;
    XM_TRY(xm_converter_build(g->base.engine, &g->product, row, g->desc.src, &g->a, err));
    return xm_product_kernel(g->base.engine, &g->product, row, g->product.weights,
                             &g->kernel, err, "-DSRC=%s -DDST=%s -DIDS=%s",
                             xm_element_text(g->desc.src), xm_element_text(g->desc.dst),
                             xm_element_text(g->desc.ids));
}

static const char *
not_supported(const struct xm_gather_matmul_desc *d)
{
    if ((d->src != XM_F16 && d->src != XM_F32) || (d->dst != XM_F16 && d->dst != XM_F32))
        return "activations are neither f16 nor f32";
    if (d->ids != XM_I32 && d->ids != XM_I64)
        return "ids are neither i32 nor i64";
    return xm_weight_unreadable(&d->weight->host);
}

enum xm_status
xm_gather_matmul_create(struct xm_engine *engine,
                        const struct xm_gather_matmul_desc *desc,
                        struct xm_primitive **out, struct xm_error *err)
{
    const char *why = not_supported(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "gather_matmul: %s", why);
    struct gather_matmul *g =
        xm_primitive_new(sizeof(*g), &gather_matmul_ops, engine, err);
    if (!g)
        return XM_NO_MEMORY;
    g->desc = *desc;
    xm_device_weight_ref(desc->weight);
    if (desc->bias)
        xm_buffer_ref(desc->bias);
    g->product = (struct xm_product){.weights = xm_one_weight(&desc->weight->host),
                                     .src = desc->src};
    g->pick = (struct xm_pick){.table = &xm_gather_matmul_table, .problem = &g->product};
    enum xm_status status = xm_variant_build(&g->pick, 1, engine, build, g, err);
    if (status != XM_OK) {
        gather_matmul_destroy(&g->base);
        return status;
    }
    *out = &g->base;
    return XM_OK;
}
