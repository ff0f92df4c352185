/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of a set of experts: arguments and sizes, family by family. Tokens are sorted
 * into tiles on the device; launches are sized by the most tiles that could be, and tiles
 * that are not return at once.
 */
#include "primitives/moe/experts_steps.h"

#include "primitives/matrix_engine.h"
#include "primitives/moe/onednn_experts.h"

/* Rows of a sub-group of the sg kernels, for few tokens and of moe_combine_sg. */
enum { SG_ROWS = 4, SG_COMBINE_ROWS = 64 };
enum { SHORT_ROWS = 64 }; /* rows of weights of a work-item of moe_gemm_down_vnni */

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static enum xm_family
family_of(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_moe_row(m, step)->family;
}

/* The reference kernels take the number of rows from the launch, the others from an argument. */
static bool
takes_rows(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return family_of(m, step) != XM_FAMILY_ANY;
}

/* k of a block of what a weight meets. */
static uint64_t
block_of(const struct xm_weight *w)
{
    return (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w);
}

/* Enqueues a step over x by y: work-items, sub-groups of the sg kernels, or work-groups of the
 * gen kernels. */
static enum xm_status
run_step(const struct xm_moe_call *c, enum xm_moe_step step, const struct xm_args *a,
         uint64_t x, uint64_t y)
{
    if (family_of(c->m, step) == XM_FAMILY_SG)
        return xm_args_run_sub_groups(a, c->queue, c->m->kernel[step], x, y, 1, c->err);
    if (family_of(c->m, step) == XM_FAMILY_GEN)
        return xm_args_run_groups(a, c->queue, c->m->kernel[step], XM_GROUP_ITEMS, x, y,
                                  1, c->err);
    return xm_args_run(a, c->queue, c->m->kernel[step], xm_moe_is_vec(c->m, step), x, y,
                       1, c->err);
}

/* Rows of a sub-group; moe_gather_sg takes a block. */
static uint64_t
sub_group_rows(enum xm_moe_step step, uint64_t block)
{
    switch (step) {
    case XM_MOE_GATE_UP:
    case XM_MOE_DOWN:
        return SG_ROWS;
    case XM_MOE_GATHER:
        return block;
    case XM_MOE_COMBINE:
        return SG_COMBINE_ROWS;
    default:
        return XM_SUB_GROUP;
    }
}

/* Units of a step over `rows` rows: `per_item` rows a work-item of a vector kernel, `per_group`
 * a work-group of a gen kernel, one a work-item of the reference. */
static uint64_t
row_units(const struct xm_moe_call *c, enum xm_moe_step step, uint64_t rows,
          uint64_t per_item, uint64_t per_group)
{
    switch (family_of(c->m, step)) {
    case XM_FAMILY_VEC:
        return divide_up(rows, per_item);
    case XM_FAMILY_GEN:
        return divide_up(rows, per_group);
    case XM_FAMILY_SG:
        return divide_up(rows, sub_group_rows(step, per_item));
    default:
        return rows;
    }
}

static bool
is_interleaved(enum xm_gate_up g)
{
    return g == XM_GATE_UP_INTERLEAVED || g == XM_UP_GATE_INTERLEAVED;
}

/* Which of the two halves of a weight that has both comes first. */
static bool
is_up_first(enum xm_gate_up g)
{
    return g == XM_UP_GATE_INTERLEAVED || g == XM_UP_GATE_STACKED;
}

/* A half as a view; xm_moe_experts_refuse has seen that the rows are pairs. */
static struct xm_weight
half_of(const struct xm_weight *both, enum xm_gate_up g, uint64_t second)
{
    struct xm_weight w = *both;
    if (is_interleaved(g))
        (void)xm_weight_alternate_rows(&w, second);
    else
        (void)xm_weight_slice_rows(&w, second * (both->rows / 2), both->rows / 2);
    return w;
}

/* GATE_UP_PARAMETERS of kernels/cl/include/gate_up.h. */
static void
add_gate_up(const struct xm_moe_call *c, struct xm_args *a)
{
    const struct xm_moe_attr *attr = &c->m->desc.attr;
    const struct xm_expert_rows *r = &c->rows;
    const uint32_t i_count = (uint32_t)c->m->inter, up_first = is_up_first(attr->gate_up);
    const bool apart = attr->gate_up == XM_GATE_UP_APART;
    uint32_t step = 1, second = i_count;
    if (apart) {
        second = 0;
        xm_args_weight(a, r->gate);
        xm_args_weight(a, r->up);
    } else {
        const struct xm_weight gate = half_of(&r->gate->host, attr->gate_up, up_first);
        const struct xm_weight up = half_of(&r->gate->host, attr->gate_up, !up_first);
        xm_args_view(a, r->gate, &gate);
        xm_args_view(a, r->gate, &up);
    }
    if (is_interleaved(attr->gate_up)) {
        step = 2;
        second = 1;
    }
    xm_args_buffer(a, r->bias_gate);
    xm_args_buffer(a, apart ? r->bias_up : r->bias_gate);
    xm_args_uint4(a, apart ? i_count : 2 * i_count, step, up_first ? second : 0,
                  up_first ? 0 : second);
    xm_args_float(a, attr->beta);
    xm_args_float(a, attr->limit);
}

/* ---- few tokens -------------------------------------------------------------------- */

static enum xm_status
few_gate_up(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = xm_moe_is_vec(m, XM_MOE_GATE_UP);
    if (vec)
        XM_TRY(xm_form_make(xm_moe_form(m, XM_MOE_GATE_UP), m->prepare_x,
                            &m->desc.experts.gate->host, c->batch->x, c->batch->tokens,
                            c->part[XM_FEW_X], c->queue, c->err));
    uint64_t per_item = xm_rows_per_item(xm_engine_info(m->engine), m->inter, c->slots);
    struct xm_args a = {.n = 0};
    add_gate_up(c, &a);
    xm_args_buffer(&a, vec ? c->part[XM_FEW_X] : c->batch->x);
    xm_args_buffer(&a, c->ids);
    xm_args_buffer(&a, c->part[XM_FEW_H]);
    if (takes_rows(m, XM_MOE_GATE_UP))
        xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->top_k);
    if (vec)
        xm_args_uint(&a, per_item);
    return run_step(c, XM_MOE_GATE_UP, &a,
                    row_units(c, XM_MOE_GATE_UP, m->inter, per_item, XM_MOE_GEN_ROWS),
                    c->slots);
}

static enum xm_status
few_down(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = xm_moe_is_vec(m, XM_MOE_DOWN);
    if (vec)
        XM_TRY(xm_form_make(xm_moe_form(m, XM_MOE_DOWN), m->prepare_h,
                            &m->desc.experts.down->host, c->part[XM_FEW_H], c->slots,
                            c->part[XM_FEW_H_PREPARED], c->queue, c->err));
    uint64_t per_item =
        xm_rows_per_item(xm_engine_info(m->engine), m->hidden, c->batch->tokens);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, c->rows.down);
    xm_args_buffer(&a, c->part[vec ? XM_FEW_H_PREPARED : XM_FEW_H]);
    xm_args_buffer(&a, c->ids);
    xm_args_buffer(&a, c->batch->weights);
    xm_args_buffer(&a, c->rows.bias_down);
    xm_args_buffer(&a, c->batch->add);
    xm_args_buffer(&a, c->batch->out);
    if (takes_rows(m, XM_MOE_DOWN))
        xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->top_k);
    if (vec)
        xm_args_uint(&a, per_item);
    return run_step(c, XM_MOE_DOWN, &a,
                    row_units(c, XM_MOE_DOWN, m->hidden, per_item, XM_MOE_GEN_ROWS),
                    c->batch->tokens);
}

/* ---- many tokens ------------------------------------------------------------------- */

static enum xm_status
many_sort(const struct xm_moe_call *c)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->batch->ids);
    xm_args_buffer(&a, c->part[XM_MANY_FIRST]);
    xm_args_buffer(&a, c->part[XM_MANY_TILE_EXPERT]);
    xm_args_buffer(&a, c->part[XM_MANY_SOURCE]);
    xm_args_buffer(&a, c->part[XM_MANY_PLACE]);
    xm_args_buffer(&a, c->part[XM_MANY_NEXT]);
    xm_args_uint(&a, c->slots);
    xm_args_uint(&a, c->m->experts);
    xm_args_uint(&a, c->tiles);
    if (family_of(c->m, XM_MOE_SORT) == XM_FAMILY_SG)
        return xm_args_run_groups(&a, c->queue, c->m->kernel[XM_MOE_SORT],
                                  XM_SUB_GROUP_ITEMS, c->m->experts, 1, 1, c->err);
    bool gen = family_of(c->m, XM_MOE_SORT) == XM_FAMILY_GEN;
    return run_step(c, XM_MOE_SORT, &a, gen ? c->m->experts : 1, 1);
}

/* A step of the matrix engines over x sub-groups by y. */
static enum xm_status
run_matrix(const struct xm_moe_call *c, enum xm_moe_step step, const struct xm_args *a,
           uint64_t x, uint64_t y)
{
    uint32_t lanes = xm_matrix_lanes(xm_engine_info(c->m->engine));
    return xm_args_run_lanes(a, c->queue, c->m->kernel[step], lanes, x, y, 1, c->err);
}

/* Plain rows, and where each expert's end, if oneDNN wants to know. */
static enum xm_status
onednn_gather(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool ends = xm_onednn_experts_want_ends(m->onednn);
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->batch->x);
    xm_args_buffer(&a, c->part[XM_MANY_TILE_EXPERT]);
    xm_args_buffer(&a, c->part[XM_MANY_SOURCE]);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    xm_args_buffer(&a, c->part[XM_MANY_FIRST]);
    xm_args_buffer(&a, ends ? c->part[XM_MANY_SCRATCHPAD] : NULL);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->top_k);
    xm_args_uint(&a, m->experts);
    return run_step(c, XM_MOE_GATHER, &a, m->hidden, c->tiles * XM_MOE_TILE);
}

static enum xm_status
many_gather(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    const struct xm_weight *gate = &m->desc.experts.gate->host;
    uint64_t padded = xm_weight_padded_cols(gate);
    struct xm_args a = {.n = 0};
    if (xm_moe_form(m, XM_MOE_GATHER) == XM_FORM_ROWS)
        return onednn_gather(c);
    xm_args_buffer(&a, c->batch->x);
    xm_args_buffer(&a, c->part[XM_MANY_TILE_EXPERT]);
    xm_args_buffer(&a, c->part[XM_MANY_SOURCE]);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->top_k);
    if (xm_moe_form(m, XM_MOE_GATHER) == XM_FORM_SHORTS)
        return run_step(c, XM_MOE_GATHER, &a, c->tiles * XM_MOE_TILE, 1);
    if (xm_moe_form(m, XM_MOE_GATHER) == XM_FORM_PAIRS)
        return run_matrix(c, XM_MOE_GATHER, &a, divide_up(m->hidden, XM_MATRIX_PACK_K),
                          c->tiles * XM_MOE_TILE /
                              xm_matrix_lanes(xm_engine_info(m->engine)));
    return run_step(c, XM_MOE_GATHER, &a,
                    row_units(c, XM_MOE_GATHER, padded, block_of(gate), XM_GROUP_ITEMS),
                    c->tiles);
}

/* Where the rows of each expert are. */
static void
add_places(const struct xm_moe_call *c, bool shorts, bool by_expert, struct xm_args *a)
{
    xm_args_buffer(a, c->part[by_expert ? XM_MANY_FIRST : XM_MANY_TILE_EXPERT]);
    if (shorts)
        xm_args_buffer(a, c->part[XM_MANY_SOURCE]);
}

static struct xm_onednn_batch
onednn_batch(const struct xm_moe_call *c)
{
    bool wanted = xm_onednn_experts_scratchpad(c->m->onednn) > 0;
    return (struct xm_onednn_batch){.first = *c->first,
                                    .tokens = c->batch->tokens,
                                    .tiles = c->tiles,
                                    .xy = c->part[XM_MANY_XY],
                                    .gh = c->part[XM_MANY_H],
                                    .scratchpad =
                                        wanted ? c->part[XM_MANY_SCRATCHPAD] : NULL,
                                    .queue = c->queue};
}

static enum xm_status
onednn_gate_up(const struct xm_moe_call *c)
{
    XM_TRY(xm_onednn_experts_read(c->m->onednn, c->part[XM_MANY_FIRST], c->tiles,
                                  c->queue, c->first, c->err));
    const struct xm_onednn_batch b = onednn_batch(c);
    return xm_onednn_experts_gate_up(c->m->onednn, &b, c->err);
}

static enum xm_status
onednn_down(const struct xm_moe_call *c)
{
    const struct xm_onednn_batch b = onednn_batch(c);
    return xm_onednn_experts_down(c->m->onednn, &b, c->err);
}

/* Where the tiles of each expert begin, and which expert a tile has. */
static void
add_tiles(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_args_buffer(a, c->part[XM_MANY_FIRST]);
    xm_args_buffer(a, c->part[XM_MANY_TILE_EXPERT]);
}

static enum xm_status
matrix_gate_up(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    struct xm_args a = {.n = 0};
    add_gate_up(c, &a);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    add_tiles(c, &a);
    xm_args_buffer(&a, c->part[XM_MANY_H]);
    xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->hidden);
    return run_matrix(c, XM_MOE_GEMM_GATE_UP, &a, divide_up(m->inter, XM_MATRIX_ROWS / 2),
                      c->tiles);
}

static enum xm_status
matrix_down(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.experts.down);
    xm_args_buffer(&a, c->part[XM_MANY_H]);
    add_tiles(c, &a);
    xm_args_buffer(&a, m->desc.experts.bias_down);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->inter);
    return run_matrix(c, XM_MOE_GEMM_DOWN, &a, divide_up(m->hidden, XM_MATRIX_ROWS),
                      c->tiles);
}

static enum xm_status
many_gate_up(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    const struct xm_weight *down = &m->desc.experts.down->host;
    if (xm_moe_form(m, XM_MOE_GEMM_GATE_UP) == XM_FORM_PAIRS)
        return matrix_gate_up(c);
    if (family_of(m, XM_MOE_GEMM_GATE_UP) == XM_FAMILY_ONEDNN)
        return onednn_gate_up(c);
    bool vec = xm_moe_is_vec(m, XM_MOE_GEMM_GATE_UP);
    bool shorts = xm_moe_form(m, XM_MOE_GEMM_GATE_UP) == XM_FORM_SHORTS;
    bool sg = family_of(m, XM_MOE_GEMM_GATE_UP) == XM_FAMILY_SG;
    uint64_t padded = xm_weight_padded_cols(down);
    uint64_t per_item = shorts ? block_of(down)
                               : xm_row_blocks_per_item(xm_engine_info(m->engine), padded,
                                                        m->experts, block_of(down));
    struct xm_args a = {.n = 0};
    add_gate_up(c, &a);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    add_places(c, shorts, vec, &a);
    xm_args_buffer(&a, c->part[XM_MANY_H]);
    xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->hidden);
    if (vec && !shorts)
        xm_args_uint(&a, per_item);
    return run_step(
        c, XM_MOE_GEMM_GATE_UP, &a,
        row_units(c, XM_MOE_GEMM_GATE_UP, padded, per_item, XM_MOE_GEN_TILE_ROWS / 2),
        vec ? m->experts : c->tiles * (sg ? 2 : 1)); /* half tiles */
}

static enum xm_status
many_down(const struct xm_moe_call *c)
{
    const struct xm_moe_experts *m = c->m;
    if (xm_moe_form(m, XM_MOE_GEMM_DOWN) == XM_FORM_PAIRS)
        return matrix_down(c);
    if (family_of(m, XM_MOE_GEMM_DOWN) == XM_FAMILY_ONEDNN)
        return onednn_down(c);
    bool vec = xm_moe_is_vec(m, XM_MOE_GEMM_DOWN);
    bool shorts = xm_moe_form(m, XM_MOE_GEMM_DOWN) == XM_FORM_SHORTS;
    uint64_t per_item = shorts
                            ? SHORT_ROWS
                            : xm_row_blocks_per_item(xm_engine_info(m->engine), m->hidden,
                                                     m->experts, XM_MOE_GEMM_ROWS);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.experts.down);
    xm_args_buffer(&a, c->part[XM_MANY_H]);
    add_places(c, shorts, vec, &a);
    xm_args_buffer(&a, m->desc.experts.bias_down);
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    if (takes_rows(m, XM_MOE_GEMM_DOWN))
        xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->inter);
    if (vec && !shorts)
        xm_args_uint(&a, per_item);
    return run_step(
        c, XM_MOE_GEMM_DOWN, &a,
        row_units(c, XM_MOE_GEMM_DOWN, m->hidden, per_item, XM_MOE_GEN_TILE_ROWS),
        vec ? m->experts : c->tiles);
}

static enum xm_status
many_combine(const struct xm_moe_call *c)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->part[XM_MANY_XY]);
    xm_args_buffer(&a, c->part[XM_MANY_PLACE]);
    xm_args_buffer(&a, c->batch->weights);
    xm_args_buffer(&a, c->batch->add);
    xm_args_buffer(&a, c->batch->out);
    if (takes_rows(c->m, XM_MOE_COMBINE))
        xm_args_uint(&a, c->m->hidden);
    xm_args_uint(&a, c->m->top_k);
    return run_step(c, XM_MOE_COMBINE, &a,
                    row_units(c, XM_MOE_COMBINE, c->m->hidden, c->m->hidden, 1),
                    c->batch->tokens);
}

/* ---- the table --------------------------------------------------------------------- */

const xm_moe_step_fn xm_moe_step_fns[XM_MOE_N_STEPS] = {
    [XM_MOE_GATE_UP] = few_gate_up,
    [XM_MOE_DOWN] = few_down,
    [XM_MOE_SORT] = many_sort,
    [XM_MOE_GATHER] = many_gather,
    [XM_MOE_GEMM_GATE_UP] = many_gate_up,
    [XM_MOE_GEMM_DOWN] = many_down,
    [XM_MOE_COMBINE] = many_combine,
};
