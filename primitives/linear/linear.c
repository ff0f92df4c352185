/* SPDX-License-Identifier: Apache-2.0
 *
 * linear: three tables, by how many tokens there are.
 *
 *   linear_few   up to 4 tokens: reading the weights is what it costs
 *   linear_many  up to 127
 *   linear_long  from 128 on: arithmetic is what it costs; a host library may be better
 *
 * All rows are chosen and built at creation: nothing is compiled when a prompt gets
 * longer.
 */
#include "primitives/linear/linear.h"

#include <stdio.h>

#include "primitives/args.h"
#include "primitives/linear/onednn_linear.h"
#include "primitives/tables.h"
#include "runtime/util/memory.h"

enum { FEW, MANY, LONG, N_CLASSES = XM_LINEAR_N_TABLES };
enum { FEW_TOKENS = 4, MANY_TOKENS = 127, TILE = 16, GEMM_ROWS = 8 };

enum method {
    METHOD_REF,
    METHOD_GEMV,
    METHOD_GEMM,
    METHOD_ONEDNN,
    METHOD_GEMV_GEN,
    METHOD_GEMM_GEN,
    METHOD_GEMV_SG,
    METHOD_GEMM_SG,
    N_METHODS
};
/* Rows of a work-group of linear_gemv_gen; work-items, rows and tokens of linear_gemm_gen's */
enum { GEN_ROWS = 4, GEN_GEMM_ITEMS = 128, GEN_TILE = 64 };
/* Rows of a sub-group of linear_gemv_sg; 32-bit words that linear_gemm_sg reads at a time. */
enum { SG_ROWS = 4, SG_WORDS = 8 };

struct problem {
    const struct xm_weight *weight;
    enum xm_element src, dst;
    bool without_onednn; /* the user's word */
};

struct linear {
    struct xm_primitive base;
    struct xm_device_weight *weight;
    struct xm_buffer *bias;
    enum xm_element src, dst;
    size_t row[N_CLASSES];
    bool needed[N_METHODS];
    struct xm_kernel *ref, *prepare, *gemv, *pack, *gemm, *gemv_gen, *gemm_gen;
    struct xm_kernel *gemv_sg, *pack_sg, *gemm_sg;
    struct xm_onednn_linear *onednn;
};

static const char *
not_in_planes(const void *problem)
{
    return xm_weight_not_in_planes(((const struct problem *)problem)->weight);
}

static const char *
not_in_words(const void *problem)
{
    return xm_weight_not_in_words(((const struct problem *)problem)->weight, 1);
}

static const char *
not_in_steps(const void *problem)
{
    return xm_weight_not_in_words(((const struct problem *)problem)->weight, SG_WORDS);
}

static const char *
onednn_refuses(const void *problem)
{
    const struct problem *p = problem;
    return p->without_onednn ? "GPU_USE_ONEDNN=NO"
                             : xm_onednn_linear_refuses(p->weight, p->src, p->dst);
}

/* clang-format off */
static const struct xm_variant few_rows[] = {
    {"linear_gemv_vec",    XM_FAMILY_VEC,  0, not_in_planes},
    {"linear_gemv_sg",     XM_FAMILY_SG,   0, not_in_words},
    {"linear_gemv_gen",    XM_FAMILY_GEN,  0, NULL},
    {"linear_ref",         XM_FAMILY_ANY,  0, NULL},
};
static const struct xm_variant many_rows[] = {
    {"linear_gemm_vec",    XM_FAMILY_VEC,  0, not_in_planes},
    {"linear_gemm_sg",     XM_FAMILY_SG,   XM_CAP_SG_SHORT, not_in_steps},
    {"linear_gemm_gen",    XM_FAMILY_GEN,  0, NULL},
    {"linear_ref",         XM_FAMILY_ANY,  0, NULL},
};
static const struct xm_variant long_rows[] = {
    {"linear_gemm_onednn", XM_FAMILY_HOST, 0, onednn_refuses},
    {"linear_gemm_vec",    XM_FAMILY_VEC,  0, not_in_planes},
    {"linear_gemm_sg",     XM_FAMILY_SG,   XM_CAP_SG_SHORT, not_in_steps},
    {"linear_gemm_gen",    XM_FAMILY_GEN,  0, NULL},
    {"linear_ref",         XM_FAMILY_ANY,  0, NULL},
};
const struct xm_variant_table xm_linear_tables[XM_LINEAR_N_TABLES] = {
    {"linear_few",  few_rows,  XM_ARRAY_LEN(few_rows)},
    {"linear_many", many_rows, XM_ARRAY_LEN(many_rows)},
    {"linear_long", long_rows, XM_ARRAY_LEN(long_rows)},
};
/* What each row of those tables is. */
static const enum method methods[N_CLASSES][XM_ARRAY_LEN(long_rows)] = {
    {METHOD_GEMV, METHOD_GEMV_SG, METHOD_GEMV_GEN, METHOD_REF},
    {METHOD_GEMM, METHOD_GEMM_SG, METHOD_GEMM_GEN, METHOD_REF},
    {METHOD_ONEDNN, METHOD_GEMM, METHOD_GEMM_SG, METHOD_GEMM_GEN, METHOD_REF},
};
/* clang-format on */

static int
class_of(uint64_t tokens)
{
    return tokens <= FEW_TOKENS ? FEW : tokens <= MANY_TOKENS ? MANY : LONG;
}

static enum method
method_for(const struct linear *l, uint64_t tokens)
{
    int c = class_of(tokens);
    return methods[c][l->row[c]];
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

/* ---- creation --------------------------------------------------------------------- */

static enum xm_status
build_kernels(struct linear *l, struct xm_error *err)
{
    struct xm_engine *engine = l->base.engine;
    const struct xm_weight *w = &l->weight->host;
    const char *src = xm_element_text(l->src), *dst = xm_element_text(l->dst);
    if (l->needed[METHOD_REF])
        XM_TRY(xm_weight_kernel(engine, "linear_ref", w, &l->ref, err,
                                "-DSRC=%s -DDST=%s", src, dst));
    if (l->needed[METHOD_GEMV]) {
        XM_TRY(xm_weight_kernel(engine, "linear_prepare_vec", w, &l->prepare, err,
                                "-DSRC=%s", src));
        XM_TRY(xm_weight_kernel(engine, "linear_gemv_vec", w, &l->gemv, err, "-DDST=%s",
                                dst));
    }
    if (l->needed[METHOD_GEMM]) {
        int integers = xm_weight_takes_integers(w, l->src);
        XM_TRY(xm_weight_kernel(engine, "linear_pack_vec", w, &l->pack, err,
                                "-DSRC=%s -DI16=%d", src, integers));
        XM_TRY(xm_weight_kernel(engine, "linear_gemm_vec", w, &l->gemm, err,
                                "-DDST=%s -DROWS=%d -DI16=%d", dst, GEMM_ROWS, integers));
    }
    if (l->needed[METHOD_GEMV_GEN])
        XM_TRY(xm_weight_kernel(engine, "linear_gemv_gen", w, &l->gemv_gen, err,
                                "-DSRC=%s -DDST=%s -DROWS=%d", src, dst, GEN_ROWS));
    if (l->needed[METHOD_GEMM_GEN])
        XM_TRY(xm_weight_kernel(engine, "linear_gemm_gen", w, &l->gemm_gen, err,
                                "-DSRC=%s -DDST=%s -DITEMS=%d", src, dst,
                                GEN_GEMM_ITEMS));
    if (l->needed[METHOD_GEMV_SG])
        XM_TRY(xm_weight_kernel(engine, "linear_gemv_sg", w, &l->gemv_sg, err,
                                "-DSRC=%s -DDST=%s -DROWS=%d", src, dst, SG_ROWS));
    if (l->needed[METHOD_GEMM_SG]) { /* the tiles are of the activations' type */
        XM_TRY(xm_weight_kernel(engine, "linear_pack_sg", w, &l->pack_sg, err,
                                "-DSRC=%s -DTILE=%s", src, src));
        XM_TRY(xm_weight_kernel(engine, "linear_gemm_sg", w, &l->gemm_sg, err,
                                "-DTILE=%s -DDST=%s", src, dst));
    }
    if (l->needed[METHOD_ONEDNN])
        XM_TRY(xm_onednn_linear_create(engine, l->weight, l->bias, l->src, l->dst,
                                       &l->onednn, err));
    return XM_OK;
}

static enum xm_status
choose_rows(struct linear *l, struct xm_error *err)
{
    const struct xm_config *config = xm_engine_config(l->base.engine);
    const struct problem problem = {&l->weight->host, l->src, l->dst,
                                    xm_config_user_set(config, XM_OPTION_use_onednn) &&
                                        config->use_onednn == XM_NO};
    for (int c = 0; c < N_CLASSES; c++) {
        XM_TRY(xm_variant_choose(xm_linear_tables[c].rows, xm_linear_tables[c].n,
                                 xm_linear_tables[c].step, xm_engine_info(l->base.engine),
                                 &problem, &l->row[c], err));
        l->needed[methods[c][l->row[c]]] = true;
    }
    return XM_OK;
}

static void
linear_destroy(struct xm_primitive *p)
{
    struct linear *l = (struct linear *)p;
    xm_onednn_linear_destroy(l->onednn);
    xm_device_weight_unref(l->weight);
    xm_buffer_unref(l->bias);
    xm_engine_unref(l->base.engine);
    xm_free(l);
}

/* ---- scratch and runs -------------------------------------------------------------- */

static uint64_t
packed_bytes(const struct linear *l, uint64_t tokens)
{
    return xm_align_up(tokens, TILE) * xm_weight_padded_cols(&l->weight->host) *
           sizeof(float);
}

static enum xm_status
linear_plan(const struct xm_primitive *p, const struct xm_operand *operands,
            uint64_t *scratch_bytes, struct xm_error *err)
{
    const struct linear *l = (const struct linear *)p;
    const struct xm_weight *w = &l->weight->host;
    uint64_t tokens = xm_operand_rows(&operands[XM_LINEAR_X]);
    (void)err;
    *scratch_bytes = 0;
    switch (method_for(l, tokens)) {
    case METHOD_GEMV:
        *scratch_bytes = xm_scratch_bytes(p, xm_weight_planes_bytes(w, tokens)) +
                         xm_scratch_bytes(p, xm_weight_sums_bytes(w, tokens));
        break;
    case METHOD_GEMM:
    case METHOD_GEMM_SG:
        *scratch_bytes = xm_scratch_bytes(p, packed_bytes(l, tokens));
        break;
    case METHOD_ONEDNN:
        *scratch_bytes = xm_onednn_linear_scratch(l->onednn, p, tokens);
        break;
    default:
        break;
    }
    return XM_OK;
}

/* Arguments of the kernels that need nothing prepared. */
static struct xm_args
plain_args(const struct linear *l, const struct xm_operand *o)
{
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, l->weight);
    xm_args_buffer(&a, o[XM_LINEAR_X].buffer);
    xm_args_buffer(&a, l->bias);
    xm_args_buffer(&a, o[XM_LINEAR_Y].buffer);
    xm_args_uint(&a, l->weight->host.rows);
    xm_args_uint(&a, l->weight->host.cols);
    return a;
}

static enum xm_status
run_gemv_gen(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
             const struct xm_run *run, struct xm_error *err)
{
    const struct xm_args a = plain_args(l, o);
    uint64_t blocks = (l->weight->host.rows + GEN_ROWS - 1) / GEN_ROWS;
    return xm_args_run_groups(&a, run->queue, l->gemv_gen, XM_GROUP_ITEMS, blocks, tokens,
                              1, err);
}

static enum xm_status
run_gemm_gen(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
             const struct xm_run *run, struct xm_error *err)
{
    struct xm_args a = plain_args(l, o);
    xm_args_uint(&a, tokens);
    return xm_args_run_groups(&a, run->queue, l->gemm_gen, GEN_GEMM_ITEMS,
                              (l->weight->host.rows + GEN_TILE - 1) / GEN_TILE,
                              (tokens + GEN_TILE - 1) / GEN_TILE, 1, err);
}

static enum xm_status
run_gemv_sg(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
            const struct xm_run *run, struct xm_error *err)
{
    const struct xm_args a = plain_args(l, o);
    uint64_t blocks = (l->weight->host.rows + SG_ROWS - 1) / SG_ROWS;
    return xm_args_run_sub_groups(&a, run->queue, l->gemv_sg, blocks, tokens, 1, err);
}

static enum xm_status
run_gemm_sg(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
            const struct xm_run *run, struct xm_scratch *s, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    uint64_t block = (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w);
    uint64_t n_tiles = (tokens + TILE - 1) / TILE;
    struct xm_buffer *tiles;
    XM_TRY(xm_scratch_take(s, packed_bytes(l, tokens), &tiles, err));

    struct xm_args pack = {.n = 0};
    xm_args_buffer(&pack, o[XM_LINEAR_X].buffer);
    xm_args_buffer(&pack, tiles);
    xm_args_uint(&pack, tokens);
    xm_args_uint(&pack, w->cols);
    XM_TRY(xm_args_run_sub_groups(&pack, run->queue, l->pack_sg,
                                  xm_weight_padded_cols(w) / block, n_tiles, 1, err));

    struct xm_args gemm = {.n = 0};
    xm_args_weight(&gemm, l->weight);
    xm_args_buffer(&gemm, tiles);
    xm_args_buffer(&gemm, l->bias);
    xm_args_buffer(&gemm, o[XM_LINEAR_Y].buffer);
    xm_args_uint(&gemm, w->rows);
    xm_args_uint(&gemm, w->cols);
    xm_args_uint(&gemm, tokens);
    return xm_args_run_sub_groups(&gemm, run->queue, l->gemm_sg,
                                  (w->rows + XM_SUB_GROUP - 1) / XM_SUB_GROUP, n_tiles, 1,
                                  err);
}

static enum xm_status
run_ref(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
        const struct xm_run *run, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    const struct xm_args a = plain_args(l, o);
    return xm_args_run(&a, run->queue, l->ref, false, w->rows, tokens, 1, err);
}

static enum xm_status
run_gemv(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
         const struct xm_run *run, struct xm_scratch *s, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    struct xm_buffer *planes, *sums;
    XM_TRY(xm_scratch_take(s, xm_weight_planes_bytes(w, tokens), &planes, err));
    XM_TRY(xm_scratch_take(s, xm_weight_sums_bytes(w, tokens), &sums, err));

    struct xm_args prepare = {.n = 0};
    xm_args_buffer(&prepare, o[XM_LINEAR_X].buffer);
    xm_args_buffer(&prepare, planes);
    xm_args_buffer(&prepare, sums);
    xm_args_uint(&prepare, w->cols);
    XM_TRY(xm_args_run(&prepare, run->queue, l->prepare, true, tokens, 1, 1, err));

    uint64_t per_item = xm_rows_per_item(xm_engine_info(l->base.engine), w->rows, 1);
    struct xm_args gemv = {.n = 0};
    xm_args_weight(&gemv, l->weight);
    xm_args_buffer(&gemv, planes);
    xm_args_buffer(&gemv, sums);
    xm_args_buffer(&gemv, l->bias);
    xm_args_buffer(&gemv, o[XM_LINEAR_Y].buffer);
    xm_args_uint(&gemv, w->rows);
    xm_args_uint(&gemv, w->cols);
    xm_args_uint(&gemv, tokens);
    xm_args_uint(&gemv, per_item);
    return xm_args_run(&gemv, run->queue, l->gemv, true,
                       (w->rows + per_item - 1) / per_item, 1, 1, err);
}

static enum xm_status
run_gemm(const struct linear *l, const struct xm_operand *o, uint64_t tokens,
         const struct xm_run *run, struct xm_scratch *s, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    uint64_t block = (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w);
    struct xm_buffer *tiles;
    XM_TRY(xm_scratch_take(s, packed_bytes(l, tokens), &tiles, err));

    struct xm_args pack = {.n = 0};
    xm_args_buffer(&pack, o[XM_LINEAR_X].buffer);
    xm_args_buffer(&pack, tiles);
    xm_args_uint(&pack, tokens);
    xm_args_uint(&pack, w->cols);
    XM_TRY(xm_args_run(&pack, run->queue, l->pack, true, xm_weight_padded_cols(w) / block,
                       (tokens + TILE - 1) / TILE, 1, err));

    uint64_t per_item =
        xm_row_blocks_per_item(xm_engine_info(l->base.engine), w->rows, 1, GEMM_ROWS);
    struct xm_args gemm = {.n = 0};
    xm_args_weight(&gemm, l->weight);
    xm_args_buffer(&gemm, tiles);
    xm_args_buffer(&gemm, l->bias);
    xm_args_buffer(&gemm, o[XM_LINEAR_Y].buffer);
    xm_args_uint(&gemm, w->rows);
    xm_args_uint(&gemm, w->cols);
    xm_args_uint(&gemm, tokens);
    xm_args_uint(&gemm, per_item);
    return xm_args_run(&gemm, run->queue, l->gemm, true,
                       (w->rows + per_item - 1) / per_item, 1, 1, err);
}

static enum xm_status
linear_run(const struct xm_primitive *p, const struct xm_operand *operands,
           const struct xm_run *run, struct xm_error *err)
{
    const struct linear *l = (const struct linear *)p;
    uint64_t tokens = xm_operand_rows(&operands[XM_LINEAR_X]);
    if (tokens == 0 || l->weight->host.rows == 0)
        return XM_OK;
    if (tokens > INT32_MAX)
        return xm_fail(err, XM_UNSUPPORTED, "%llu tokens at once, at most 2^31 - 1",
                       (unsigned long long)tokens);
    struct xm_scratch s;
    enum xm_status status;
    xm_scratch_begin(&s, p, run);
    switch (method_for(l, tokens)) {
    case METHOD_GEMV:
        status = run_gemv(l, operands, tokens, run, &s, err);
        break;
    case METHOD_GEMM:
        status = run_gemm(l, operands, tokens, run, &s, err);
        break;
    case METHOD_ONEDNN:
        status = xm_onednn_linear_run(l->onednn, operands[XM_LINEAR_X].buffer,
                                      operands[XM_LINEAR_Y].buffer, tokens, &s,
                                      run->queue, err);
        break;
    case METHOD_GEMV_SG:
        status = run_gemv_sg(l, operands, tokens, run, err);
        break;
    case METHOD_GEMM_SG:
        status = run_gemm_sg(l, operands, tokens, run, &s, err);
        break;
    case METHOD_GEMV_GEN:
        status = run_gemv_gen(l, operands, tokens, run, err);
        break;
    case METHOD_GEMM_GEN:
        status = run_gemm_gen(l, operands, tokens, run, err);
        break;
    default:
        status = run_ref(l, operands, tokens, run, err);
    }
    xm_scratch_end(&s);
    return status;
}

static void
linear_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                char *out, size_t out_bytes)
{
    const struct linear *l = (const struct linear *)p;
    int c = class_of(xm_operand_rows(&operands[XM_LINEAR_X]));
    snprintf(out, out_bytes, "%s", xm_linear_tables[c].rows[l->row[c]].name);
}

static const struct xm_primitive_ops linear_ops = {"linear", linear_plan, linear_run,
                                                   linear_describe, linear_destroy};

enum xm_status
xm_linear_create(struct xm_engine *engine, const struct xm_linear_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    const char *why = xm_linear_supports(xm_engine_info(engine), &desc->weight->host,
                                         desc->src, desc->dst);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "linear: %s", why);
    struct linear *l = xm_calloc(1, sizeof(*l));
    if (!l)
        return xm_fail(err, XM_NO_MEMORY, "no memory for a linear primitive");
    l->base.ops = &linear_ops;
    l->base.engine = engine;
    xm_engine_ref(engine);
    l->weight = desc->weight;
    xm_device_weight_ref(l->weight);
    l->bias = desc->bias;
    if (l->bias)
        xm_buffer_ref(l->bias);
    l->src = desc->src;
    l->dst = desc->dst;
    enum xm_status status = choose_rows(l, err);
    if (status == XM_OK)
        status = build_kernels(l, err);
    if (status != XM_OK) {
        linear_destroy(&l->base);
        return status;
    }
    *out = &l->base;
    return XM_OK;
}
