/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of experts: choosing and building the kernels of its steps, and enqueueing them.
 *
 * Few tokens (up to FEW_PER_EXPERT slots an expert on average) go through two products
 * row by row; more are sorted into tiles of 16 tokens of one expert. The host never sees
 * the routing: launches are sized by the most tiles that could be, and tiles that are not
 * return at once.
 */
#include "primitives/moe/experts.h"

#include <stdio.h>
#include <string.h>

#include "primitives/tables.h"
#include "runtime/util/memory.h"

enum { TILE = 16, GEMM_ROWS = 8, FEW_PER_EXPERT = 4 };
/* Rows of a work-group of the gen kernels, for few tokens and for a tile; what the counters of
 * moe_sort_gen may take of local memory. */
enum { GEN_ROWS = 4, GEN_TILE_ROWS = 64, GEN_SORT_EXPERTS = 4096 };
/* Rows of a sub-group of the sg kernels, for few tokens and of moe_combine_sg; 32-bit words
 * that their products read at a time. */
enum { SG_ROWS = 4, SG_COMBINE_ROWS = 64, SG_WORDS = 4 };

static const char *
not_in_planes(const void *problem)
{
    return xm_weight_not_in_planes(problem);
}

static const char *
not_in_words(const void *problem)
{
    return xm_weight_not_in_words(problem, 1);
}

static const char *
not_in_steps(const void *problem)
{
    return xm_weight_not_in_words(problem, SG_WORDS);
}

static const char *
too_many_experts(const void *problem)
{
    return ((const struct xm_weight *)problem)->experts > GEN_SORT_EXPERTS
               ? "local memory has no room for a counter of each expert"
               : NULL;
}

/* clang-format off */
static const struct xm_variant gate_up_rows[] = {
    {"moe_gate_up_vec",      XM_FAMILY_VEC, 0, not_in_planes},
    {"moe_gate_up_sg",       XM_FAMILY_SG,  0, not_in_words},
    {"moe_gate_up_gen",      XM_FAMILY_GEN, 0, NULL},
    {"moe_gate_up_ref",      XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant down_rows[] = {
    {"moe_down_vec",         XM_FAMILY_VEC, 0, not_in_planes},
    {"moe_down_sg",          XM_FAMILY_SG,  0, not_in_words},
    {"moe_down_gen",         XM_FAMILY_GEN, 0, NULL},
    {"moe_down_ref",         XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant sort_rows[] = {
    {"moe_sort_gen",         XM_FAMILY_GEN, 0, too_many_experts},
    {"moe_sort_ref",         XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant gather_rows[] = {
    {"moe_gather_vec",       XM_FAMILY_VEC, 0, NULL},
    {"moe_gather_sg",        XM_FAMILY_SG,  0, NULL},
    {"moe_gather_gen",       XM_FAMILY_GEN, 0, NULL},
    {"moe_gather_ref",       XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant gemm_gate_up_rows[] = {
    {"moe_gemm_gate_up_vec", XM_FAMILY_VEC, 0, not_in_planes},
    {"moe_gemm_gate_up_sg",  XM_FAMILY_SG,  0, not_in_steps},
    {"moe_gemm_gate_up_gen", XM_FAMILY_GEN, 0, NULL},
    {"moe_gemm_gate_up_ref", XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant gemm_down_rows[] = {
    {"moe_gemm_down_vec",    XM_FAMILY_VEC, 0, not_in_planes},
    {"moe_gemm_down_sg",     XM_FAMILY_SG,  0, not_in_steps},
    {"moe_gemm_down_gen",    XM_FAMILY_GEN, 0, NULL},
    {"moe_gemm_down_ref",    XM_FAMILY_ANY, 0, NULL},
};
static const struct xm_variant combine_rows[] = {
    {"moe_combine_vec",      XM_FAMILY_VEC, 0, NULL},
    {"moe_combine_sg",       XM_FAMILY_SG,  0, NULL},
    {"moe_combine_ref",      XM_FAMILY_ANY, 0, NULL},
};
#define TABLE(step, rows) {step, rows, XM_ARRAY_LEN(rows)}
const struct xm_variant_table xm_moe_tables[XM_MOE_N_TABLES] = {
    [XM_MOE_GATE_UP]      = TABLE("moe_gate_up",      gate_up_rows),
    [XM_MOE_DOWN]         = TABLE("moe_down",         down_rows),
    [XM_MOE_SORT]         = TABLE("moe_sort",         sort_rows),
    [XM_MOE_GATHER]       = TABLE("moe_gather",       gather_rows),
    [XM_MOE_GEMM_GATE_UP] = TABLE("moe_gemm_gate_up", gemm_gate_up_rows),
    [XM_MOE_GEMM_DOWN]    = TABLE("moe_gemm_down",    gemm_down_rows),
    [XM_MOE_COMBINE]      = TABLE("moe_combine",      combine_rows),
};
/* clang-format on */

static bool
is_clamped(const struct xm_moe_experts *m)
{
    return m->desc.expert == XM_EXPERT_GEMM2_BIAS_SWIGLU_CLAMP;
}

static enum xm_family
family_of(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return xm_moe_tables[step].rows[m->row[step]].family;
}

static bool
is_vec(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return family_of(m, step) == XM_FAMILY_VEC;
}

/* The reference kernels take the number of rows from the launch, the others from an argument. */
static bool
takes_rows(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    return family_of(m, step) != XM_FAMILY_ANY;
}

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* ---- what can be a set ------------------------------------------------------------- */

static const char *
readable(const struct xm_weight *gate, const struct xm_weight *up,
         const struct xm_weight *down)
{
    const char *why = xm_weight_unreadable(gate);
    if (!why && up)
        why = xm_weight_unreadable(up);
    return why ? why : xm_weight_unreadable(down);
}

const char *
xm_moe_experts_refuse(enum xm_expert expert, const struct xm_weight *gate,
                      const struct xm_weight *up, const struct xm_weight *down)
{
    bool clamped = expert == XM_EXPERT_GEMM2_BIAS_SWIGLU_CLAMP;
    if (expert != XM_EXPERT_GEMM3_SWIGLU && !clamped)
        return "unknown form of expert";
    if (!gate || !down || (!clamped && !up))
        return "a weight of the experts is missing";
    if (clamped && (up || gate->rows % 2 != 0))
        return "the interleaved form has one gate weight of even rows";
    const char *why = readable(gate, up, down);
    if (why)
        return why;
    if (gate->experts != down->experts || (up && up->experts != gate->experts))
        return "the weights disagree on the number of experts";
    if (up && (up->rows != gate->rows || up->cols != gate->cols))
        return "gate and up differ in size";
    if (up && !xm_weight_same_format(gate, up))
        return "gate and up differ in format";
    if (down->rows != gate->cols || down->cols != gate->rows / (clamped ? 2 : 1))
        return "the down projection does not fit gate and up";
    return NULL;
}

/* ---- creation ---------------------------------------------------------------------- */

static enum xm_status
choose_rows(struct xm_moe_experts *m, struct xm_error *err)
{
    for (int s = 0; s < XM_MOE_N_STEPS; s++) {
        bool down = s == XM_MOE_DOWN || s == XM_MOE_GEMM_DOWN;
        const struct xm_weight *w = down ? &m->desc.down->host : &m->desc.gate->host;
        XM_TRY(xm_variant_choose(xm_moe_tables[s].rows, xm_moe_tables[s].n,
                                 xm_moe_tables[s].step, xm_engine_info(m->engine), w,
                                 &m->row[s], err));
    }
    return XM_OK;
}

/* The kernel of a step that reads a weight. */
static enum xm_status
build(struct xm_moe_experts *m, enum xm_moe_step step, const struct xm_device_weight *w,
      const char *defines, struct xm_error *err)
{
    return xm_weight_kernel(m->engine, xm_moe_tables[step].rows[m->row[step]].name,
                            &w->host, &m->kernel[step], err, "%s", defines);
}

/* Whether both sides of a tile in scratch, `writer` and `reader` of `w`, know integers. */
static int
integers_between(const struct xm_moe_experts *m, enum xm_moe_step writer,
                 enum xm_moe_step reader, const struct xm_device_weight *w)
{
    return is_vec(m, writer) && is_vec(m, reader) &&
           xm_weight_takes_integers(&w->host, m->desc.src);
}

static enum xm_status
build_gate_up(struct xm_moe_experts *m, struct xm_error *err)
{
    char defines[128];
    int in = integers_between(m, XM_MOE_GATHER, XM_MOE_GEMM_GATE_UP, m->desc.gate);
    int out = integers_between(m, XM_MOE_GEMM_GATE_UP, XM_MOE_GEMM_DOWN, m->desc.down);
    const struct xm_device_weight *gate = m->desc.gate;
    const char *src = xm_element_text(m->desc.src);
    snprintf(defines, sizeof(defines), "-DSRC=%s -DACT=%d -DCLAMPED=%d -DROWS=%d", src,
             (int)m->desc.activation, is_clamped(m), GEN_ROWS);
    XM_TRY(build(m, XM_MOE_GATE_UP, gate, defines, err));
    snprintf(defines, sizeof(defines),
             "-DACT=%d -DCLAMPED=%d -DROWS=%d -DI16=%d -DOUT_PLANES=%u -DOUT_I16=%d",
             (int)m->desc.activation, is_clamped(m), GEMM_ROWS, in,
             xm_weight_planes(&m->desc.down->host), out);
    XM_TRY(build(m, XM_MOE_GEMM_GATE_UP, gate, defines, err));
    snprintf(defines, sizeof(defines), "-DSRC=%s -DI16=%d", src, in);
    XM_TRY(build(m, XM_MOE_GATHER, gate, defines, err));
    if (!is_vec(m, XM_MOE_GATE_UP))
        return XM_OK;
    return xm_weight_kernel(m->engine, "linear_prepare_vec", &gate->host, &m->prepare_x,
                            err, "-DSRC=%s", src);
}

static enum xm_status
build_down(struct xm_moe_experts *m, struct xm_error *err)
{
    char defines[64];
    snprintf(defines, sizeof(defines), "-DDST=%s -DADD=%s -DROWS=%d",
             xm_element_text(m->desc.dst), xm_element_text(m->desc.add), GEN_ROWS);
    XM_TRY(build(m, XM_MOE_DOWN, m->desc.down, defines, err));
    XM_TRY(xm_engine_kernel(
        m->engine, xm_moe_tables[XM_MOE_COMBINE].rows[m->row[XM_MOE_COMBINE]].name,
        defines, &m->kernel[XM_MOE_COMBINE], err));
    snprintf(defines, sizeof(defines), "-DROWS=%d -DI16=%d", GEMM_ROWS,
             integers_between(m, XM_MOE_GEMM_GATE_UP, XM_MOE_GEMM_DOWN, m->desc.down));
    XM_TRY(build(m, XM_MOE_GEMM_DOWN, m->desc.down, defines, err));
    if (!is_vec(m, XM_MOE_DOWN))
        return XM_OK;
    return xm_weight_kernel(m->engine, "linear_prepare_vec", &m->desc.down->host,
                            &m->prepare_h, err, "-DSRC=f32");
}

static void
reference(const struct xm_moe_experts_desc *d)
{
    xm_device_weight_ref(d->gate);
    if (d->up)
        xm_device_weight_ref(d->up);
    xm_device_weight_ref(d->down);
    if (d->bias_gate)
        xm_buffer_ref(d->bias_gate);
    if (d->bias_down)
        xm_buffer_ref(d->bias_down);
}

enum xm_status
xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                    const struct xm_moe_experts_desc *desc, struct xm_error *err)
{
    memset(m, 0, sizeof(*m));
    m->engine = engine;
    m->desc = *desc;
    reference(desc);
    m->experts = desc->gate->host.experts;
    m->hidden = desc->down->host.rows;
    m->inter = desc->down->host.cols;
    XM_TRY(choose_rows(m, err));
    XM_TRY(build_gate_up(m, err));
    XM_TRY(build_down(m, err));
    char defines[32];
    snprintf(defines, sizeof(defines), "-DEXPERTS=%llu", (unsigned long long)m->experts);
    return xm_engine_kernel(engine,
                            xm_moe_tables[XM_MOE_SORT].rows[m->row[XM_MOE_SORT]].name,
                            defines, &m->kernel[XM_MOE_SORT], err);
}

void
xm_moe_experts_fini(struct xm_moe_experts *m)
{
    xm_device_weight_unref(m->desc.gate);
    xm_device_weight_unref(m->desc.up);
    xm_device_weight_unref(m->desc.down);
    xm_buffer_unref(m->desc.bias_gate);
    xm_buffer_unref(m->desc.bias_down);
}

/* ---- sizes ------------------------------------------------------------------------- */

static bool
is_few(const struct xm_moe_experts *m, uint64_t tokens)
{
    return tokens * m->desc.top_k <= FEW_PER_EXPERT * m->experts;
}

/* Every expert's last tile may be nearly empty. */
static uint64_t
max_tiles(const struct xm_moe_experts *m, uint64_t slots)
{
    uint64_t partial = slots < m->experts ? slots : m->experts;
    return (slots + partial * (TILE - 1)) / TILE;
}

/* Bytes of the scratch of a run; the order of enum is the order of taking. */
enum { FEW_X, FEW_X_SUMS, FEW_H, FEW_H_PLANES, FEW_H_SUMS, FEW_N };
enum {
    MANY_FIRST,
    MANY_TILE_EXPERT,
    MANY_SOURCE,
    MANY_PLACE,
    MANY_NEXT,
    MANY_XY,
    MANY_H,
    MANY_N
};
enum { MAX_PARTS = 8 };

static uint32_t
few_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    const struct xm_weight *gate = &m->desc.gate->host, *down = &m->desc.down->host;
    uint64_t slots = tokens * m->desc.top_k;
    bool x = is_vec(m, XM_MOE_GATE_UP), h = is_vec(m, XM_MOE_DOWN);
    bytes[FEW_X] = x ? xm_weight_planes_bytes(gate, tokens) : 0;
    bytes[FEW_X_SUMS] = x ? xm_weight_sums_bytes(gate, tokens) : 0;
    bytes[FEW_H] = slots * m->inter * sizeof(float);
    bytes[FEW_H_PLANES] = h ? xm_weight_planes_bytes(down, slots) : 0;
    bytes[FEW_H_SUMS] = h ? xm_weight_sums_bytes(down, slots) : 0;
    return FEW_N;
}

static uint32_t
many_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    uint64_t slots = tokens * m->desc.top_k, tiles = max_tiles(m, slots);
    uint64_t x = xm_weight_padded_cols(&m->desc.gate->host);
    bytes[MANY_FIRST] = (m->experts + 1) * sizeof(uint32_t);
    bytes[MANY_TILE_EXPERT] = tiles * sizeof(int32_t);
    bytes[MANY_SOURCE] = tiles * TILE * sizeof(int32_t);
    bytes[MANY_PLACE] = slots * sizeof(uint32_t);
    bytes[MANY_NEXT] = m->experts * sizeof(uint32_t);
    /* The gathered rows are dead when the down projection writes its own. */
    bytes[MANY_XY] = tiles * TILE * sizeof(float) * (x > m->hidden ? x : m->hidden);
    bytes[MANY_H] =
        tiles * TILE * sizeof(float) * xm_weight_padded_cols(&m->desc.down->host);
    return MANY_N;
}

static uint32_t
part_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    return is_few(m, tokens) ? few_sizes(m, tokens, bytes) : many_sizes(m, tokens, bytes);
}

uint64_t
xm_moe_experts_scratch(const struct xm_moe_experts *m, const struct xm_primitive *p,
                       uint64_t tokens)
{
    uint64_t bytes[MAX_PARTS], sum = 0;
    uint32_t n = part_sizes(m, tokens, bytes);
    for (uint32_t i = 0; i < n; i++)
        sum += xm_scratch_bytes(p, bytes[i]);
    return sum;
}

/* ---- few tokens -------------------------------------------------------------------- */

/* One call's context. */
struct call {
    const struct xm_moe_experts *m;
    const struct xm_moe_batch *batch;
    uint64_t slots;
    struct xm_buffer *part[MAX_PARTS];
    struct xm_queue *queue;
    struct xm_error *err;
};

/* Enqueues a step over x by y: work-items, sub-groups of the sg kernels, or work-groups of the
 * gen kernels. */
static enum xm_status
run_step(const struct call *c, enum xm_moe_step step, const struct xm_args *a, uint64_t x,
         uint64_t y)
{
    if (family_of(c->m, step) == XM_FAMILY_SG)
        return xm_args_run_sub_groups(a, c->queue, c->m->kernel[step], x, y, 1, c->err);
    if (family_of(c->m, step) == XM_FAMILY_GEN)
        return xm_args_run_groups(a, c->queue, c->m->kernel[step], XM_GROUP_ITEMS, x, y,
                                  1, c->err);
    return xm_args_run(a, c->queue, c->m->kernel[step], is_vec(c->m, step), x, y, 1,
                       c->err);
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
row_units(const struct call *c, enum xm_moe_step step, uint64_t rows, uint64_t per_item,
          uint64_t per_group)
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

static enum xm_status
prepare(const struct call *c, struct xm_kernel *kernel, const struct xm_buffer *rows_in,
        uint64_t rows, uint64_t cols, const struct xm_buffer *planes,
        const struct xm_buffer *sums)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, rows_in);
    xm_args_buffer(&a, planes);
    xm_args_buffer(&a, sums);
    xm_args_uint(&a, cols);
    return xm_args_run(&a, c->queue, kernel, true, rows, 1, 1, c->err);
}

static enum xm_status
few_gate_up(const struct call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = is_vec(m, XM_MOE_GATE_UP);
    if (vec)
        XM_TRY(prepare(c, m->prepare_x, c->batch->x, c->batch->tokens, m->hidden,
                       c->part[FEW_X], c->part[FEW_X_SUMS]));
    uint64_t per_item = xm_rows_per_item(xm_engine_info(m->engine), m->inter, c->slots);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.gate);
    xm_args_weight(&a, m->desc.up);
    xm_args_buffer(&a, vec ? c->part[FEW_X] : c->batch->x);
    if (vec)
        xm_args_buffer(&a, c->part[FEW_X_SUMS]);
    xm_args_buffer(&a, c->batch->ids);
    xm_args_buffer(&a, m->desc.bias_gate);
    xm_args_buffer(&a, c->part[FEW_H]);
    if (takes_rows(m, XM_MOE_GATE_UP))
        xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->desc.top_k);
    if (vec)
        xm_args_uint(&a, per_item);
    xm_args_float(&a, m->desc.beta);
    xm_args_float(&a, m->desc.limit);
    return run_step(c, XM_MOE_GATE_UP, &a,
                    row_units(c, XM_MOE_GATE_UP, m->inter, per_item,
                              is_clamped(m) ? GEN_ROWS / 2 : GEN_ROWS),
                    c->slots);
}

static enum xm_status
few_down(const struct call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = is_vec(m, XM_MOE_DOWN);
    if (vec)
        XM_TRY(prepare(c, m->prepare_h, c->part[FEW_H], c->slots, m->inter,
                       c->part[FEW_H_PLANES], c->part[FEW_H_SUMS]));
    uint64_t per_item =
        xm_rows_per_item(xm_engine_info(m->engine), m->hidden, c->batch->tokens);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.down);
    xm_args_buffer(&a, c->part[vec ? FEW_H_PLANES : FEW_H]);
    if (vec)
        xm_args_buffer(&a, c->part[FEW_H_SUMS]);
    xm_args_buffer(&a, c->batch->ids);
    xm_args_buffer(&a, c->batch->weights);
    xm_args_buffer(&a, m->desc.bias_down);
    xm_args_buffer(&a, c->batch->add);
    xm_args_buffer(&a, c->batch->out);
    if (takes_rows(m, XM_MOE_DOWN))
        xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->desc.top_k);
    if (vec)
        xm_args_uint(&a, per_item);
    return run_step(c, XM_MOE_DOWN, &a,
                    row_units(c, XM_MOE_DOWN, m->hidden, per_item, GEN_ROWS),
                    c->batch->tokens);
}

/* ---- many tokens ------------------------------------------------------------------- */

static enum xm_status
many_sort(const struct call *c)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->batch->ids);
    xm_args_buffer(&a, c->part[MANY_FIRST]);
    xm_args_buffer(&a, c->part[MANY_TILE_EXPERT]);
    xm_args_buffer(&a, c->part[MANY_SOURCE]);
    xm_args_buffer(&a, c->part[MANY_PLACE]);
    xm_args_buffer(&a, c->part[MANY_NEXT]);
    xm_args_uint(&a, c->slots);
    xm_args_uint(&a, c->m->experts);
    xm_args_uint(&a, max_tiles(c->m, c->slots));
    bool gen = family_of(c->m, XM_MOE_SORT) == XM_FAMILY_GEN;
    return run_step(c, XM_MOE_SORT, &a, gen ? c->m->experts : 1, 1);
}

static enum xm_status
many_gather(const struct call *c)
{
    const struct xm_moe_experts *m = c->m;
    const struct xm_weight *gate = &m->desc.gate->host;
    uint64_t padded = xm_weight_padded_cols(gate);
    uint64_t block = (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(gate);
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->batch->x);
    xm_args_buffer(&a, c->part[MANY_TILE_EXPERT]);
    xm_args_buffer(&a, c->part[MANY_SOURCE]);
    xm_args_buffer(&a, c->part[MANY_XY]);
    xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->desc.top_k);
    return run_step(c, XM_MOE_GATHER, &a,
                    row_units(c, XM_MOE_GATHER, padded, block, XM_GROUP_ITEMS),
                    max_tiles(m, c->slots));
}

static enum xm_status
many_gate_up(const struct call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = is_vec(m, XM_MOE_GEMM_GATE_UP);
    bool sg = family_of(m, XM_MOE_GEMM_GATE_UP) == XM_FAMILY_SG;
    uint64_t padded = xm_weight_padded_cols(&m->desc.down->host);
    uint64_t per_item = xm_row_blocks_per_item(
        xm_engine_info(m->engine), padded, m->experts,
        (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(&m->desc.down->host));
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.gate);
    xm_args_weight(&a, m->desc.up);
    xm_args_buffer(&a, c->part[MANY_XY]);
    xm_args_buffer(&a, c->part[vec ? MANY_FIRST : MANY_TILE_EXPERT]);
    xm_args_buffer(&a, m->desc.bias_gate);
    xm_args_buffer(&a, c->part[MANY_H]);
    xm_args_uint(&a, m->inter);
    xm_args_uint(&a, m->hidden);
    if (vec)
        xm_args_uint(&a, per_item);
    xm_args_float(&a, m->desc.beta);
    xm_args_float(&a, m->desc.limit);
    return run_step(
        c, XM_MOE_GEMM_GATE_UP, &a,
        row_units(c, XM_MOE_GEMM_GATE_UP, padded, per_item, GEN_TILE_ROWS / 2),
        vec ? m->experts : max_tiles(m, c->slots) * (sg ? 2 : 1)); /* half tiles */
}

static enum xm_status
many_down(const struct call *c)
{
    const struct xm_moe_experts *m = c->m;
    bool vec = is_vec(m, XM_MOE_GEMM_DOWN);
    uint64_t per_item = xm_row_blocks_per_item(xm_engine_info(m->engine), m->hidden,
                                               m->experts, GEMM_ROWS);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, m->desc.down);
    xm_args_buffer(&a, c->part[MANY_H]);
    xm_args_buffer(&a, c->part[vec ? MANY_FIRST : MANY_TILE_EXPERT]);
    xm_args_buffer(&a, m->desc.bias_down);
    xm_args_buffer(&a, c->part[MANY_XY]);
    if (takes_rows(m, XM_MOE_GEMM_DOWN))
        xm_args_uint(&a, m->hidden);
    xm_args_uint(&a, m->inter);
    if (vec)
        xm_args_uint(&a, per_item);
    return run_step(c, XM_MOE_GEMM_DOWN, &a,
                    row_units(c, XM_MOE_GEMM_DOWN, m->hidden, per_item, GEN_TILE_ROWS),
                    vec ? m->experts : max_tiles(m, c->slots));
}

static enum xm_status
many_combine(const struct call *c)
{
    struct xm_args a = {.n = 0};
    xm_args_buffer(&a, c->part[MANY_XY]);
    xm_args_buffer(&a, c->part[MANY_PLACE]);
    xm_args_buffer(&a, c->batch->weights);
    xm_args_buffer(&a, c->batch->add);
    xm_args_buffer(&a, c->batch->out);
    if (takes_rows(c->m, XM_MOE_COMBINE))
        xm_args_uint(&a, c->m->hidden);
    xm_args_uint(&a, c->m->desc.top_k);
    return run_step(c, XM_MOE_COMBINE, &a,
                    row_units(c, XM_MOE_COMBINE, c->m->hidden, c->m->hidden, 1),
                    c->batch->tokens);
}

/* ---- a run ------------------------------------------------------------------------- */

static enum xm_status
run_steps(const struct call *c)
{
    if (is_few(c->m, c->batch->tokens)) {
        XM_TRY(few_gate_up(c));
        return few_down(c);
    }
    XM_TRY(many_sort(c));
    XM_TRY(many_gather(c));
    XM_TRY(many_gate_up(c));
    XM_TRY(many_down(c));
    return many_combine(c);
}

enum xm_status
xm_moe_experts_run(const struct xm_moe_experts *m, const struct xm_moe_batch *batch,
                   struct xm_scratch *scratch, struct xm_queue *queue,
                   struct xm_error *err)
{
    struct call c = {m, batch, batch->tokens * m->desc.top_k, {NULL}, queue, err};
    struct xm_scratch own = *scratch; /* gives back what it takes */
    uint64_t bytes[MAX_PARTS];
    uint32_t n = part_sizes(m, batch->tokens, bytes);
    enum xm_status status = XM_OK;
    own.n_views = 0;
    for (uint32_t i = 0; i < n && status == XM_OK; i++)
        status = xm_scratch_take(&own, bytes[i], &c.part[i], err);
    if (status == XM_OK)
        status = run_steps(&c);
    xm_scratch_end(&own);
    return status;
}

void
xm_moe_experts_describe(const struct xm_moe_experts *m, uint64_t tokens, char *out,
                        size_t out_bytes)
{
    int first = is_few(m, tokens) ? XM_MOE_GATE_UP : XM_MOE_SORT;
    int end = is_few(m, tokens) ? XM_MOE_SORT : XM_MOE_N_STEPS;
    for (int s = first; s < end; s++) {
        size_t used = strlen(out);
        snprintf(out + used, out_bytes - used, " %s",
                 xm_moe_tables[s].rows[m->row[s]].name);
    }
}
