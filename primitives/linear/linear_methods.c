/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of linear. Those for few tokens multiply all segments in one launch, and make a
 * gated unit of them there; those for many turn x into tiles once and multiply segment by segment.
 */
#include "primitives/linear/linear_methods.h"

#include <stdio.h>
#include <string.h>

#include "primitives/args.h"
#include "primitives/matrix_engine.h"

enum { TILE = 16, GEMM_ROWS = 8 };
/* Rows of a work-group of linear_gemv_gen; work-items, rows and tokens of linear_gemm_gen's */
enum { GEN_ROWS = 4, GEN_GEMM_ITEMS = 128, GEN_TILE = 64 };
enum { VNNI_ROWS = 64, VNNI_TOKENS = 48 }; /* of a work-item of linear_gemm_vnni */
enum { SG_ROWS = 4 };                      /* rows of a sub-group of linear_gemv_sg */

static const struct xm_weight *
weight_of(const struct xm_linear *l, uint32_t i)
{
    return &l->desc.segment[i].weight->host;
}

/* Columns and the form of x, which all segments share. */
static const struct xm_weight *
any_weight(const struct xm_linear *l)
{
    return weight_of(l, 0);
}

static struct xm_buffer *
x_of(const struct xm_linear_call *c)
{
    return c->operands[XM_LINEAR_X].buffer;
}

/* ---- few tokens: all segments at once ------------------------------------------------ */

/* Blocks of `rows` rows, counted through the results (kernels/cl/include/segments.h). */
static uint64_t
blocks_of(const struct xm_linear *l, uint64_t rows)
{
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < xm_linear_results(l); i++)
        blocks += (weight_of(l, i)->rows + rows - 1) / rows;
    return blocks;
}

static void
add_segments(const struct xm_linear_call *c, struct xm_args *a)
{
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_linear_segment *s = &c->l->desc.segment[i];
        xm_args_weight(a, s->weight);
        xm_args_buffer(a, s->bias);
        xm_args_buffer(a, c->operands[XM_LINEAR_Y + i].buffer);
        xm_args_uint(a, s->weight->host.rows);
    }
}

/* What is added or multiplied: its step from token to token, where it begins. */
static void
add_other(const struct xm_linear_call *c, struct xm_args *a)
{
    uint64_t rows = any_weight(c->l)->rows, slices = c->l->desc.slices;
    xm_args_buffer(a, c->operands[XM_LINEAR_ADDEND].buffer);
    xm_args_uint(a, rows * (slices ? slices : 1));
    xm_args_uint(a, rows * c->l->desc.slice);
}

static struct xm_args
gemv_args(const struct xm_linear_call *c)
{
    struct xm_args a = {.n = 0};
    add_segments(c, &a);
    xm_args_buffer(&a, x_of(c));
    add_other(c, &a);
    xm_args_uint(&a, any_weight(c->l)->cols);
    return a;
}

static enum xm_status
run_gemv_gen(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_args a = gemv_args(c);
    return xm_args_run_groups(&a, c->run->queue, c->way->product[0], XM_GROUP_ITEMS,
                              blocks_of(c->l, GEN_ROWS), c->tokens, 1, err);
}

static enum xm_status
run_gemv_sg(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_args a = gemv_args(c);
    return xm_args_run_sub_groups(&a, c->run->queue, c->way->product[0],
                                  blocks_of(c->l, SG_ROWS), c->tokens, 1, err);
}

static uint64_t
planes_bytes(const struct xm_linear *l, uint64_t tokens)
{
    const struct xm_weight *w = any_weight(l);
    return xm_scratch_bytes(&l->base, xm_weight_planes_bytes(w, tokens)) +
           xm_scratch_bytes(&l->base, xm_weight_sums_bytes(w, tokens));
}

static enum xm_status
run_gemv_vec(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_weight *w = any_weight(c->l);
    struct xm_buffer *planes, *sums;
    uint64_t rows = 0;
    XM_TRY(
        xm_scratch_take(c->scratch, xm_weight_planes_bytes(w, c->tokens), &planes, err));
    XM_TRY(xm_scratch_take(c->scratch, xm_weight_sums_bytes(w, c->tokens), &sums, err));
    struct xm_args prepare = {.n = 0};
    xm_args_buffer(&prepare, x_of(c));
    xm_args_buffer(&prepare, planes);
    xm_args_buffer(&prepare, sums);
    xm_args_uint(&prepare, w->cols);
    XM_TRY(xm_args_run(&prepare, c->run->queue, c->way->prepare, true, c->tokens, 1, 1,
                       err));

    for (uint32_t i = 0; i < xm_linear_results(c->l); i++)
        rows += weight_of(c->l, i)->rows;
    uint64_t per_item = xm_rows_per_item(xm_engine_info(c->l->base.engine), rows, 1);
    struct xm_args gemv = {.n = 0};
    add_segments(c, &gemv);
    xm_args_buffer(&gemv, planes);
    xm_args_buffer(&gemv, sums);
    add_other(c, &gemv);
    xm_args_uint(&gemv, w->cols);
    xm_args_uint(&gemv, c->tokens);
    xm_args_uint(&gemv, per_item);
    return xm_args_run(&gemv, c->run->queue, c->way->product[0], true,
                       blocks_of(c->l, per_item), 1, 1, err);
}

/* ---- any number of tokens: one segment after the other -------------------------------- */

static uint64_t
packed_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return xm_align_up(tokens, TILE) * xm_weight_padded_cols(any_weight(l)) *
           sizeof(float);
}

static uint64_t
tiles_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return xm_scratch_bytes(&l->base, packed_bytes(l, tokens));
}

static struct xm_args
pack_args(const struct xm_linear_call *c, const struct xm_buffer *tiles)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, x_of(c));
    xm_args_buffer(&a, tiles);
    xm_args_uint(&a, c->tokens);
    xm_args_uint(&a, any_weight(c->l)->cols);
    return a;
}

/* The product of segment i with x, as it is or in tiles. */
static struct xm_args
product_args(const struct xm_linear_call *c, uint32_t i, const struct xm_buffer *x)
{
    const struct xm_linear_segment *s = &c->l->desc.segment[i];
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, s->weight);
    xm_args_buffer(&a, x);
    xm_args_buffer(&a, s->bias);
    xm_args_buffer(&a, c->operands[XM_LINEAR_Y + i].buffer);
    xm_args_uint(&a, s->weight->host.rows);
    xm_args_uint(&a, s->weight->host.cols);
    xm_args_uint(&a, c->tokens);
    return a;
}

static uint64_t
tile_blocks(const struct xm_linear *l)
{
    const struct xm_weight *w = any_weight(l);
    return xm_weight_padded_cols(w) / ((uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w));
}

static enum xm_status
run_gemm_gen(const struct xm_linear_call *c, struct xm_error *err)
{
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_args a = product_args(c, i, x_of(c));
        XM_TRY(xm_args_run_groups(&a, c->run->queue, c->way->product[i], GEN_GEMM_ITEMS,
                                  (weight_of(c->l, i)->rows + GEN_TILE - 1) / GEN_TILE,
                                  (c->tokens + GEN_TILE - 1) / GEN_TILE, 1, err));
    }
    return XM_OK;
}

static enum xm_status
run_gemm_sg(const struct xm_linear_call *c, struct xm_error *err)
{
    uint64_t n_tiles = (c->tokens + TILE - 1) / TILE;
    struct xm_buffer *tiles;
    XM_TRY(xm_scratch_take(c->scratch, packed_bytes(c->l, c->tokens), &tiles, err));
    const struct xm_args pack = pack_args(c, tiles);
    XM_TRY(xm_args_run_sub_groups(&pack, c->run->queue, c->way->prepare,
                                  tile_blocks(c->l), n_tiles, 1, err));
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_args a = product_args(c, i, tiles);
        uint64_t groups = (weight_of(c->l, i)->rows + XM_SUB_GROUP - 1) / XM_SUB_GROUP;
        XM_TRY(xm_args_run_sub_groups(&a, c->run->queue, c->way->product[i], groups,
                                      n_tiles, 1, err));
    }
    return XM_OK;
}

static enum xm_status
run_gemm_dpas(const struct xm_linear_call *c, struct xm_error *err)
{
    uint32_t lanes = xm_matrix_lanes(xm_engine_info(c->l->base.engine));
    uint64_t n_tiles = (c->tokens + TILE - 1) / TILE;
    uint64_t units = (any_weight(c->l)->cols + XM_MATRIX_PACK_K - 1) / XM_MATRIX_PACK_K;
    struct xm_buffer *tiles;
    XM_TRY(xm_scratch_take(c->scratch, packed_bytes(c->l, c->tokens), &tiles, err));
    const struct xm_args pack = pack_args(c, tiles);
    XM_TRY(xm_args_run_lanes(&pack, c->run->queue, c->way->prepare, lanes, units,
                             n_tiles * TILE / lanes, 1, err));
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_args a = product_args(c, i, tiles);
        uint64_t blocks =
            (weight_of(c->l, i)->rows + XM_MATRIX_ROWS - 1) / XM_MATRIX_ROWS;
        XM_TRY(xm_args_run_lanes(&a, c->run->queue, c->way->product[i], lanes, blocks,
                                 (c->tokens + 2 * lanes - 1) / (2 * lanes), 1, err));
    }
    return XM_OK;
}

static enum xm_status
run_gemm_vec(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(c->l->base.engine);
    struct xm_buffer *tiles;
    XM_TRY(xm_scratch_take(c->scratch, packed_bytes(c->l, c->tokens), &tiles, err));
    const struct xm_args pack = pack_args(c, tiles);
    XM_TRY(xm_args_run(&pack, c->run->queue, c->way->prepare, true, tile_blocks(c->l),
                       (c->tokens + TILE - 1) / TILE, 1, err));
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        struct xm_args a = product_args(c, i, tiles);
        uint64_t rows = weight_of(c->l, i)->rows;
        uint64_t per_item = xm_row_blocks_per_item(device, rows, 1, GEMM_ROWS);
        xm_args_uint(&a, per_item);
        XM_TRY(xm_args_run(&a, c->run->queue, c->way->product[i], true,
                           (rows + per_item - 1) / per_item, 1, 1, err));
    }
    return XM_OK;
}

/* Rows of integers take less than the tiles that they are counted as. */
static enum xm_status
run_gemm_vnni(const struct xm_linear_call *c, struct xm_error *err)
{
    struct xm_buffer *rows;
    XM_TRY(xm_scratch_take(c->scratch, packed_bytes(c->l, c->tokens), &rows, err));
    struct xm_args pack = {.n = 0};
    xm_args_buffer(&pack, x_of(c));
    xm_args_buffer(&pack, rows);
    xm_args_uint(&pack, any_weight(c->l)->cols);
    XM_TRY(
        xm_args_run(&pack, c->run->queue, c->way->prepare, true, c->tokens, 1, 1, err));
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_args a = product_args(c, i, rows);
        uint64_t blocks = (weight_of(c->l, i)->rows + VNNI_ROWS - 1) / VNNI_ROWS;
        XM_TRY(xm_args_run(&a, c->run->queue, c->way->product[i], true, blocks,
                           (c->tokens + VNNI_TOKENS - 1) / VNNI_TOKENS, 1, err));
    }
    return XM_OK;
}

static enum xm_status
run_ref(const struct xm_linear_call *c, struct xm_error *err)
{
    for (uint32_t i = 0; i < c->l->desc.n; i++) {
        const struct xm_linear_segment *s = &c->l->desc.segment[i];
        struct xm_args a = {.n = 0};
        xm_args_weight(&a, s->weight);
        xm_args_buffer(&a, x_of(c));
        xm_args_buffer(&a, s->bias);
        xm_args_buffer(&a, c->operands[XM_LINEAR_ADDEND].buffer);
        xm_args_buffer(&a, c->operands[XM_LINEAR_Y + i].buffer);
        xm_args_uint(&a, s->weight->host.rows);
        xm_args_uint(&a, s->weight->host.cols);
        XM_TRY(xm_args_run(&a, c->run->queue, c->way->product[i], false,
                           s->weight->host.rows, c->tokens, 1, err));
    }
    return XM_OK;
}

static uint64_t
onednn_bytes(const struct xm_linear *l, uint64_t tokens)
{
    uint64_t most = 0; /* the segments share it: they run one after the other */
    for (uint32_t i = 0; i < l->desc.n; i++) {
        uint64_t bytes = xm_onednn_linear_scratch(l->onednn[i], &l->base, tokens);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What is left of the scratch, for each segment again; views in it are the caller's. */
static struct xm_scratch
rest_of_scratch(const struct xm_linear_call *c)
{
    struct xm_scratch rest = *c->scratch;
    rest.n_views = 0;
    return rest;
}

static enum xm_status
run_onednn(const struct xm_linear_call *c, struct xm_error *err)
{
    enum xm_status status = XM_OK;
    for (uint32_t i = 0; i < c->l->desc.n && status == XM_OK; i++) {
        struct xm_scratch own = rest_of_scratch(c);
        status = xm_onednn_linear_run(c->l->onednn[i], x_of(c),
                                      c->operands[XM_LINEAR_Y + i].buffer, c->tokens,
                                      &own, c->run->queue, err);
        xm_scratch_end(&own);
    }
    return status;
}

/* Of y, and of what a gate is multiplied by. */
static uint64_t
y_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return tokens * weight_of(l, 0)->rows * (xm_element_bits(l->desc.dst) / 8);
}

static uint64_t
onednn_gpu_bytes(const struct xm_linear *l, uint64_t tokens)
{
    uint64_t most = 0; /* shared, as above */
    for (uint32_t i = 0; i < l->desc.n; i++) {
        uint64_t bytes = xm_onednn_gpu_linear_scratch(l->onednn_gpu[i], &l->base);
        most = bytes > most ? bytes : most;
    }
    if (l->desc.is_glu && l->desc.n == 2)
        most += xm_scratch_bytes(&l->base, y_bytes(l, tokens));
    return most;
}

/* The product of one segment; `times` of a gate. */
static enum xm_status
run_onednn_gpu_segment(const struct xm_linear_call *c, uint32_t i, struct xm_buffer *y,
                       struct xm_onednn_span times, struct xm_error *err)
{
    const struct xm_onednn_gpu_linear_call call = {x_of(c), y, times, c->tokens};
    struct xm_scratch own = rest_of_scratch(c);
    enum xm_status status =
        xm_onednn_gpu_linear_run(c->l->onednn_gpu[i], &call, &own, c->run->queue, err);
    xm_scratch_end(&own);
    return status;
}

/* y = act(x W_0^T) up, with up from segment 1 or from outside; the rest is post-ops. */
static enum xm_status
run_onednn_gpu_glu(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_linear_desc *d = &c->l->desc;
    const struct xm_onednn_span none = {NULL, 0};
    struct xm_onednn_span up = {c->operands[XM_LINEAR_FACTOR].buffer,
                                d->slice * weight_of(c->l, 0)->rows *
                                    (xm_element_bits(d->dst) / 8)};
    if (d->n == 2) {
        up.offset = 0;
        XM_TRY(xm_scratch_take(c->scratch, y_bytes(c->l, c->tokens), &up.buffer, err));
        XM_TRY(run_onednn_gpu_segment(c, 1, up.buffer, none, err));
    }
    return run_onednn_gpu_segment(c, 0, c->operands[XM_LINEAR_Y].buffer, up, err);
}

static enum xm_status
run_onednn_gpu(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_onednn_span none = {NULL, 0};
    if (c->l->desc.is_glu)
        return run_onednn_gpu_glu(c, err);
    for (uint32_t i = 0; i < c->l->desc.n; i++)
        XM_TRY(
            run_onednn_gpu_segment(c, i, c->operands[XM_LINEAR_Y + i].buffer, none, err));
    return XM_OK;
}

static uint64_t
no_bytes(const struct xm_linear *l, uint64_t tokens)
{
    (void)l, (void)tokens;
    return 0;
}

/* ---- the table ------------------------------------------------------------------------ */

/* Build options of a kernel. */
enum {
    SRC = 1 << 0,
    DST = 1 << 1,
    TILES = 1 << 2,    /* TILE: element of the tiles, that of the activations */
    INTEGERS = 1 << 3, /* VNNI, SHORTS: dot products of integers */
    SEGMENTS = 1 << 4, /* SEGMENTS, GLU, ACT: how many, what becomes of them */
    ENGINES = 1 << 5   /* SG, MATRIX_ENGINE: those of the device */
};

/* clang-format off */
static const struct xm_linear_method methods[] = {
    {"linear_gemv_vec", {"linear_prepare_vec", SRC, 0, 0}, {"linear_gemv_vec", DST | SEGMENTS, 0, 0},              true,  true,  planes_bytes, run_gemv_vec},
    {"linear_gemv_vnni", {"linear_prepare_vec", SRC | INTEGERS, 0, 0}, {"linear_gemv_vec", DST | SEGMENTS | INTEGERS, 0, 0}, true,  true,  planes_bytes, run_gemv_vec},
    {"linear_gemv_sg",  {NULL, 0, 0, 0},                   {"linear_gemv_sg", SRC | DST | SEGMENTS, SG_ROWS, 0},   true,  true,  no_bytes,     run_gemv_sg},
    {"linear_gemv_gen", {NULL, 0, 0, 0},                   {"linear_gemv_gen", SRC | DST | SEGMENTS, GEN_ROWS, 0}, true,  true,  no_bytes,     run_gemv_gen},
    {"linear_gemm_vec", {"linear_pack_vec", SRC, 0, 0},     {"linear_gemm_vec", DST, GEMM_ROWS, 0},                false, false, tiles_bytes,  run_gemm_vec},
    {"linear_gemm_vnni", {"linear_pack_vnni", SRC, 0, 0},  {"linear_gemm_vnni", DST | INTEGERS, 0, 0},             false, false, tiles_bytes,  run_gemm_vnni},
    {"linear_gemm_sg",  {"linear_pack_sg", SRC | TILES, 0, 0}, {"linear_gemm_sg", DST | TILES, 0, 0},              false, false, tiles_bytes,  run_gemm_sg},
    {"linear_gemm_dpas", {"linear_pack_dpas", ENGINES, 0, 0}, {"linear_gemm_dpas", DST | ENGINES, 0, 0},           false, false, tiles_bytes,  run_gemm_dpas},
    {"linear_gemm_gen", {NULL, 0, 0, 0},                   {"linear_gemm_gen", SRC | DST, 0, GEN_GEMM_ITEMS},      false, false, no_bytes,     run_gemm_gen},
    {"linear_gemm_onednn", {NULL, 0, 0, 0},                {NULL, 0, 0, 0},                                        false, false, onednn_bytes, run_onednn},
    {"linear_gemm_onednn_gpu", {NULL, 0, 0, 0},            {NULL, 0, 0, 0},                                        false, true,  onednn_gpu_bytes, run_onednn_gpu},
    {"linear_ref",      {NULL, 0, 0, 0},                   {"linear_ref", SRC | DST, 0, 0},                        true,  false, no_bytes,     run_ref},
};
/* clang-format on */

const struct xm_linear_method *
xm_linear_method(const char *name)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    }
    return NULL;
}

/* Segments first ... end - 1. */
static struct xm_kernel_weights
weights_of(const struct xm_linear *l, uint32_t first, uint32_t end)
{
    struct xm_kernel_weights weights = {.n = end - first};
    for (uint32_t i = first; i < end; i++)
        weights.w[i - first] = weight_of(l, i);
    return weights;
}

static enum xm_status
build_kernel(const struct xm_linear *l, const struct xm_linear_kernel *k,
             struct xm_kernel_weights weights, struct xm_kernel **out,
             struct xm_error *err)
{
    const char *src = xm_element_text(l->desc.src), *dst = xm_element_text(l->desc.dst);
    struct xm_strbuf options = {0};
    if (!k->name)
        return XM_OK;
    if (k->options & SRC)
        xm_strbuf_printf(&options, " -DSRC=%s", src);
    if (k->options & DST)
        xm_strbuf_printf(&options, " -DDST=%s", dst);
    if (k->options & TILES)
        xm_strbuf_printf(&options, " -DTILE=%s", src);
    if (k->options & INTEGERS)
        xm_strbuf_printf(&options, " -DVNNI=1 -DSHORTS=1");
    if (k->options & SEGMENTS)
        xm_strbuf_printf(&options, " -DSEGMENTS=%u", l->desc.n);
    if ((k->options & SEGMENTS) && l->desc.is_glu)
        xm_strbuf_printf(&options, " -DGLU=1 -DACT=%d", (int)l->desc.activation);
    if (k->options & ENGINES)
        xm_strbuf_printf(&options, " -DSG=%u -DMATRIX_ENGINE=%d",
                         xm_matrix_lanes(xm_engine_info(l->base.engine)),
                         xm_matrix_is_real(xm_engine_info(l->base.engine)));
    if (k->rows)
        xm_strbuf_printf(&options, " -DROWS=%d", k->rows);
    if (k->items)
        xm_strbuf_printf(&options, " -DITEMS=%d", k->items);
    enum xm_status status = XM_NO_MEMORY;
    if (xm_strbuf_ok(&options))
        status = xm_weight_kernel(l->base.engine, k->name, weights, out, err, "%s",
                                  xm_strbuf_text(&options));
    else
        xm_fail(err, status, "out of memory for a kernel's options");
    xm_strbuf_free(&options);
    return status;
}

static enum xm_status
build_onednn(struct xm_linear *l, struct xm_error *err)
{
    for (uint32_t i = 0; i < l->desc.n; i++) {
        const struct xm_linear_segment *s = &l->desc.segment[i];
        if (!l->onednn[i])
            XM_TRY(xm_onednn_linear_create(l->base.engine, s->weight, s->bias,
                                           l->desc.src, xm_linear_product(&l->desc),
                                           l->desc.dst, &l->onednn[i], err));
    }
    return XM_OK;
}

static enum xm_status
build_onednn_gpu(struct xm_linear *l, struct xm_error *err)
{
    for (uint32_t i = 0; i < l->desc.n; i++) {
        const struct xm_linear_segment *s = &l->desc.segment[i];
        const struct xm_onednn_gate gate = xm_linear_onednn_gate(&l->desc);
        const struct xm_onednn_gpu_linear_desc desc = {
            .weight = s->weight,
            .bias = s->bias,
            .dst = l->desc.dst,
            .gate = l->desc.is_glu && i == 0 ? &gate : NULL,
            .chunk = l->desc.chunk};
        if (!l->onednn_gpu[i])
            XM_TRY(xm_onednn_gpu_linear_create(l->base.engine, &desc, &l->onednn_gpu[i],
                                               err));
    }
    return XM_OK;
}

enum xm_status
xm_linear_build(struct xm_linear *l, struct xm_linear_way *way, struct xm_error *err)
{
    if (way->method->run == run_onednn)
        return build_onednn(l, err);
    if (way->method->run == run_onednn_gpu)
        return build_onednn_gpu(l, err);
    const struct xm_linear_kernel *product = &way->method->product;
    const uint32_t n = l->desc.n;
    XM_TRY(
        build_kernel(l, &way->method->prepare, weights_of(l, 0, 1), &way->prepare, err));
    if (product->options & SEGMENTS)
        return build_kernel(l, product, weights_of(l, 0, n), &way->product[0], err);
    for (uint32_t i = 0; i < n; i++)
        XM_TRY(build_kernel(l, product, weights_of(l, i, i + 1), &way->product[i], err));
    return XM_OK;
}
