/* SPDX-License-Identifier: Apache-2.0
 *
 * The launches of a set of experts: one list of arguments for each step, whatever row runs it.
 * Tokens are sorted into tiles on the device; launches are sized for the most tiles possible, and
 * work-groups of tiles that do not exist return at once.
 */
#include "primitives/moe/experts.h"

#include "primitives/moe/onednn_experts.h"
#include "primitives/moe/router.h"

/* ---- arguments --------------------------------------------------------------------- */

static bool
is_interleaved(enum xm_gate_up g)
{
    return g == XM_GATE_UP_INTERLEAVED || g == XM_UP_GATE_INTERLEAVED;
}

/* Returns a view of half 0 or 1 (gate or up) of a weight that holds both; a weight of only one of
 * them is returned whole. xm_moe_experts_refuse has checked that the rows can be divided. */
static struct xm_weight
half_of(const struct xm_weight *both, enum xm_gate_up g, uint64_t half)
{
    struct xm_weight w = *both;
    if (is_interleaved(g))
        (void)xm_weight_alternate_rows(&w, half);
    else if (g != XM_GATE_UP_APART)
        (void)xm_weight_slice_rows(&w, half * (both->rows / 2), both->rows / 2);
    return w;
}

/* Appends the arguments of GATE_UP_PARAMETERS of kernels/cl/include/gate_up.h. */
static void
put_expert(const struct xm_moe_call *c, struct xm_args *a)
{
    const struct xm_moe_attr *attr = &c->m->desc.attr;
    const enum xm_gate_up order = attr->gate_up;
    const struct xm_expert_rows *r = &c->rows;
    const bool apart = order == XM_GATE_UP_APART;
    const struct xm_device_weight *with_up = apart ? r->up : r->gate;
    const uint32_t up_first =
                       order == XM_UP_GATE_INTERLEAVED || order == XM_UP_GATE_STACKED,
                   i_count = (uint32_t)c->m->inter,
                   second = apart                   ? 0
                            : is_interleaved(order) ? 1
                                                    : i_count;
    const struct xm_weight gate = half_of(&r->gate->host, order, up_first),
                           up = half_of(&with_up->host, order, !up_first);
    xm_put_view(a, "gate", r->gate, &gate);
    xm_put_view(a, "up", with_up, &up);
    xm_put_buffer(a, "bias_gate", r->bias_gate);
    xm_put_buffer(a, "bias_up", apart ? r->bias_up : r->bias_gate);
    xm_put_uint4(a, "bias_steps", apart ? i_count : 2 * i_count,
                 is_interleaved(order) ? 2 : 1, up_first ? second : 0,
                 up_first ? 0 : second);
    xm_put_buffer(a, "factor", r->factor);
    xm_put_float(a, "beta", attr->beta);
    xm_put_float(a, "limit", attr->limit);
}

static void
put_gate_up(const struct xm_moe_call *c, struct xm_args *a)
{
    const struct xm_router_desc router = xm_moe_router_desc(&c->m->desc);
    put_expert(c, a);
    xm_put_buffer(a, "x", c->input);
    if (c->routing) {
        xm_router_put(&router, c->routing, a);
    } else {
        xm_put_buffer(a, "ids", c->rows_ids);
        xm_put_uint(a, "top_k", c->m->top_k);
    }
    xm_put_buffer(a, "h", c->part[XM_FEW_H]);
    xm_put_buffer(a, "prepared", c->part[XM_FEW_H_PREPARED]);
    xm_put_uint(a, "i_count", c->m->inter);
    xm_put_uint(a, "k_count", c->m->hidden);
}

static void
put_down(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_weight(a, "w", c->rows.down);
    xm_put_buffer(a, "h", c->input);
    xm_put_buffer(a, "ids", c->rows_ids);
    xm_put_buffer(a, "weights", c->weights);
    xm_put_buffer(a, "bias", c->rows.bias_down);
    xm_put_buffer(a, "add", c->add);
    xm_put_buffer(a, "y", c->out);
    xm_put_uint(a, "n_count", c->m->hidden);
    xm_put_uint(a, "k_count", c->m->inter);
    xm_put_uint(a, "top_k", c->m->top_k);
}

static void
put_sort(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_buffer(a, "ids", c->ids);
    xm_put_buffer(a, "first_tile", c->part[XM_MANY_FIRST]);
    xm_put_buffer(a, "tile_expert", c->part[XM_MANY_TILE_EXPERT]);
    xm_put_buffer(a, "source", c->part[XM_MANY_SOURCE]);
    xm_put_buffer(a, "place", c->part[XM_MANY_PLACE]);
    xm_put_buffer(a, "next", c->part[XM_MANY_NEXT]);
    xm_put_uint(a, "slots", c->slots);
    xm_put_uint(a, "experts", c->m->experts);
    xm_put_uint(a, "max_tiles", c->tiles);
}

/* If a row for oneDNN gathers, it also writes where each expert's rows end, if oneDNN needs
 * that. */
static void
put_gather(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_buffer(a, "x", c->x);
    xm_put_buffer(a, "tile_expert", c->part[XM_MANY_TILE_EXPERT]);
    xm_put_buffer(a, "source", c->part[XM_MANY_SOURCE]);
    xm_put_buffer(a, "rows", c->part[XM_MANY_XY]);
    xm_put_uint(a, "k_count", c->m->hidden);
    xm_put_uint(a, "top_k", c->m->top_k);
    if (xm_moe_row(c->m, XM_MOE_GATHER)->form != XM_FORM_ROWS)
        return;
    xm_put_buffer(a, "first_tile", c->part[XM_MANY_FIRST]);
    xm_put_buffer(a, "ends",
                  xm_onednn_experts_want_ends(c->m->onednn) ? c->part[XM_MANY_SCRATCHPAD]
                                                            : NULL);
    xm_put_uint(a, "experts", c->m->experts);
}

/* Appends the tables that say where the rows of each expert are. */
static void
put_places(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_buffer(a, "first_tile", c->part[XM_MANY_FIRST]);
    xm_put_buffer(a, "tile_expert", c->part[XM_MANY_TILE_EXPERT]);
    xm_put_buffer(a, "source", c->part[XM_MANY_SOURCE]);
}

static void
put_gemm_gate_up(const struct xm_moe_call *c, struct xm_args *a)
{
    put_expert(c, a);
    xm_put_buffer(a, "x", c->part[XM_MANY_XY]);
    put_places(c, a);
    xm_put_buffer(a, "h", c->part[XM_MANY_H]);
    xm_put_uint(a, "i_count", c->m->inter);
    xm_put_uint(a, "k_count", c->m->hidden);
}

static void
put_gemm_down(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_weight(a, "w", c->rows.down);
    xm_put_buffer(a, "h", c->part[XM_MANY_H]);
    put_places(c, a);
    xm_put_buffer(a, "bias", c->rows.bias_down);
    xm_put_buffer(a, "y", c->part[XM_MANY_XY]);
    xm_put_uint(a, "n_count", c->m->hidden);
    xm_put_uint(a, "k_count", c->m->inter);
}

static void
put_combine(const struct xm_moe_call *c, struct xm_args *a)
{
    xm_put_buffer(a, "y", c->part[XM_MANY_XY]);
    xm_put_buffer(a, "place", c->part[XM_MANY_PLACE]);
    xm_put_buffer(a, "weights", c->weights);
    xm_put_buffer(a, "add", c->add);
    xm_put_buffer(a, "out", c->out);
    xm_put_uint(a, "n_count", c->m->hidden);
    xm_put_uint(a, "top_k", c->m->top_k);
}

static void (*const put[XM_MOE_N_STEPS])(const struct xm_moe_call *c,
                                         struct xm_args *a) = {
    [XM_MOE_GATE_UP] = put_gate_up,
    [XM_MOE_DOWN] = put_down,
    [XM_MOE_SORT] = put_sort,
    [XM_MOE_GATHER] = put_gather,
    [XM_MOE_GEMM_GATE_UP] = put_gemm_gate_up,
    [XM_MOE_GEMM_DOWN] = put_gemm_down,
    [XM_MOE_COMBINE] = put_combine,
};

/* ---- what oneDNN multiplies --------------------------------------------------------- */

bool
xm_moe_is_onednn(const struct xm_variant *row, enum xm_moe_step step)
{
    return row->family == XM_FAMILY_ONEDNN &&
           (step == XM_MOE_GEMM_GATE_UP || step == XM_MOE_GEMM_DOWN);
}

static enum xm_status
run_onednn(struct xm_moe_call *c, enum xm_moe_step step)
{
    const bool gate_up = step == XM_MOE_GEMM_GATE_UP;
    if (gate_up)
        XM_TRY(xm_onednn_experts_read(c->m->onednn, c));
    return gate_up ? xm_onednn_experts_gate_up(c->m->onednn, c)
                   : xm_onednn_experts_down(c->m->onednn, c);
}

/* ---- launches ---------------------------------------------------------------------- */

static uint64_t
blocks_of_h(const struct xm_moe_experts *m)
{
    const struct xm_rows_form h = xm_moe_form(m, XM_MOE_GEMM_DOWN);
    const uint64_t block = (uint64_t)XM_PLANE_BLOCK * h.planes;
    return xm_align_up(m->inter, block) / block;
}

/* Returns the sizes of a step's launch. Gate and up for many tokens write h up to the end of its
 * last block, because down reads whole blocks. */
static struct xm_counts
counts_of(const struct xm_moe_call *c, enum xm_moe_step step)
{
    const struct xm_moe_experts *m = c->m;
    const bool few = step < XM_MOE_SORT, writes_blocks = step == XM_MOE_GEMM_GATE_UP;
    struct xm_counts n =
        xm_counts_of(writes_blocks ? xm_moe_down(m) : xm_moe_gate(m), c->tokens);
    if (writes_blocks)
        n.n[XM_BLOCKS] = blocks_of_h(m);
    n.n[XM_ROWS] = step == XM_MOE_GATE_UP || writes_blocks ? m->inter : m->hidden;
    if (step == XM_MOE_GATE_UP)
        n.block = xm_moe_h_part(m) ? xm_moe_h_part(m) : 1;
    n.n[XM_SLOTS] = few ? c->slots : c->tiles * XM_TILE;
    n.n[XM_EXPERTS] = m->experts;
    return n;
}

/* Sets c->input to what a step for few tokens reads, x or h, in the form of its row. For gate and
 * up it also takes the buffer into which they write prepared h, if they do. */
static enum xm_status
take_input(struct xm_moe_call *c, enum xm_moe_step step)
{
    const struct xm_moe_experts *m = c->m;
    struct xm_activations a = {.plain = c->x,
                               .n = c->tokens,
                               .prepared = c->prepared,
                               .given = m->desc.prepared};
    if (step >= XM_MOE_SORT)
        return XM_OK;
    if (step == XM_MOE_DOWN && c->part[XM_FEW_H_PREPARED]) {
        c->input = c->part[XM_FEW_H_PREPARED];
        return XM_OK;
    }
    if (step == XM_MOE_DOWN)
        a = (struct xm_activations){.plain = c->part[XM_FEW_H], .n = c->slots};
    else if (xm_moe_h_part(m))
        XM_TRY(xm_converter_take(&m->x[XM_MOE_DOWN], c->slots, c->scratch,
                                 &c->part[XM_FEW_H_PREPARED], c->err));
    return xm_converter_run(&m->x[step], &a, c->scratch, c->queue, &c->input, c->err);
}

enum xm_status
xm_moe_step_run(struct xm_moe_call *c, enum xm_moe_step step)
{
    const struct xm_variant *row = xm_moe_row(c->m, step);
    const struct xm_counts counts = counts_of(c, step);
    struct xm_args a = {.n = 0};
    if (xm_moe_is_onednn(row, step))
        return run_onednn(c, step);
    XM_TRY(take_input(c, step));
    put[step](c, &a);
    const bool routes = step == XM_MOE_GATE_UP && c->routing;
    return xm_launch(&row->launch, routes ? c->m->routes : c->m->kernel[step], &counts,
                     &a, c->queue, c->err);
}
