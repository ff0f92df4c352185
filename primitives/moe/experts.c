/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of experts: choosing and building the kernels of its steps, laying out scratch.
 *
 * Few tokens (up to xm_moe_experts_few slots) go through two products
 * row by row; more are sorted into tiles of 16 tokens of one expert (experts_steps.c). What
 * the steps for many tokens hand over to each other has a form; where the chosen rows do not
 * agree on it, because XM_FORCE or the compiler took one away, they are chosen again without
 * the form of the odd one.
 */
#include "primitives/moe/experts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "primitives/matrix_engine.h"
#include "primitives/moe/experts_steps.h"
#include "primitives/moe/onednn_experts.h"
#include "primitives/onednn/onednn.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"

/* Tokens of an expert up to which the steps for few tokens run. Steps for many that decode a weight
 * once for all its tokens pay as soon as one expert in some has two. */
enum { FEW_PER_EXPERT = 4, EXPERTS_PER_SHARED = 4 };
/* What the counters of moe_sort_gen may take of local memory; 32-bit words that the sg
 * products read at a time. */
enum { GEN_SORT_EXPERTS = 4096, SG_WORDS = 4 };

static const char *
not_in_steps(const void *problem)
{
    return xm_weight_not_in_words(((const struct xm_product *)problem)->weight, SG_WORDS);
}

static const char *
too_many_experts(const void *problem)
{
    return ((const struct xm_moe_problem *)problem)->m->experts > GEN_SORT_EXPERTS
               ? "local memory has no room for a counter of each expert"
               : NULL;
}

/* The steps between are of integers together or not at all. */
static const char *
shorts_refuse(const void *problem)
{
    const struct xm_moe_experts *m = ((const struct xm_moe_problem *)problem)->m;
    if (!(m->forms >> XM_FORM_SHORT_PAIRS & 1))
        return "a step beside it does not know rows of integers";
    const char *why = xm_weight_not_in_shorts(xm_moe_gate(m), m->desc.src);
    return why ? why : xm_weight_not_in_shorts(xm_moe_down(m), m->desc.src);
}

static const char *
bytes_refuse(const void *problem)
{
    const struct xm_moe_experts *m = ((const struct xm_moe_problem *)problem)->m;
    if (!m->desc.factor)
        return "activations stay in 16 bits";
    if (!(m->forms >> XM_FORM_BYTES & 1))
        return "a step beside it does not know rows of bytes";
    const char *why = xm_weight_not_in_bytes(xm_moe_gate(m), m->desc.src);
    return why ? why : xm_weight_not_in_bytes(xm_moe_down(m), m->desc.src);
}

/* What refuses the first of gate, up and down. */
static const char *
any_refused(const struct xm_moe_experts *m,
            const char *(*refuse)(const struct xm_weight *w, enum xm_element src))
{
    const struct xm_device_weight *up = m->desc.experts.up;
    const char *why = refuse(xm_moe_gate(m), m->desc.src);
    if (!why && up)
        why = refuse(&up->host, m->desc.src);
    return why ? why : refuse(xm_moe_down(m), m->desc.src);
}

static const char *
matrix_refuses(const void *problem)
{
    const struct xm_moe_experts *m = ((const struct xm_moe_problem *)problem)->m;
    return m->forms >> XM_FORM_STEPS & 1
               ? any_refused(m, xm_matrix_refuses)
               : "a step beside it does not know tiles of steps";
}

/* Of few tokens; up is gate's neighbour in one kernel. */
static const char *
matrix_rows_refuse(const void *problem)
{
    const struct xm_moe_problem *p = problem;
    const struct xm_device_weight *up = p->m ? p->m->desc.experts.up : NULL;
    const char *why = xm_matrix_rows_refuse(p->product.weight, p->product.src);
    if (!why && up && p->product.weight == xm_moe_gate(p->m))
        why = xm_matrix_rows_refuse(&up->host, p->product.src);
    return why;
}

static const char *
onednn_refuses(const void *problem)
{
    const struct xm_moe_experts *m = ((const struct xm_moe_problem *)problem)->m;
    if (!(m->forms >> XM_FORM_ROWS & 1))
        return "a step beside it does not know plain rows";
    return xm_onednn_experts_refuse(m->engine, &m->desc);
}

/* clang-format off */
static const struct xm_variant gate_up_rows[] = {
    {"moe_gate_up_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}, {XM_SLOTS, 1}}, XM_FORM_SHORTS, "moe_gate_up_vec",
     .emits = true},
    {"moe_gate_up_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}, {XM_SLOTS, 1}}, XM_FORM_PLANES, .emits = true},
    {"moe_gate_up_dpas", XM_FAMILY_SG, XM_CAP_DPAS, matrix_rows_refuse,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_SLOTS, 1}, .split = 4}},
    {"moe_gate_up_dp4a", XM_FAMILY_SG, XM_CAP_DP4A, matrix_rows_refuse,
     {XM_LANES, XM_DOT_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_SLOTS, 1}, .split = 4},
     .kernel = "moe_gate_up_dpas"},
    {"moe_gate_up_sg", XM_FAMILY_SG, 0, xm_product_not_in_words, {XM_LANES, 0, {XM_ROWS, 4}, {XM_SLOTS, 1}}},
    {"moe_gate_up_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 4}, {XM_SLOTS, 1}}},
    {"moe_gate_up_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ROWS}, {XM_SLOTS, 1}}},
};
static const struct xm_variant down_rows[] = {
    {"moe_down_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}, XM_FORM_SHORTS, "moe_down_vec"},
    {"moe_down_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}, XM_FORM_PLANES},
    {"moe_down_dpas", XM_FAMILY_SG, XM_CAP_DPAS, matrix_rows_refuse,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_TOKENS, 1}, .split = 16}},
    {"moe_down_dp4a", XM_FAMILY_SG, XM_CAP_DP4A, matrix_rows_refuse,
     {XM_LANES, XM_DOT_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_TOKENS, 1}, .split = 16},
     .kernel = "moe_down_dpas"},
    {"moe_down_sg", XM_FAMILY_SG, 0, xm_product_not_in_words, {XM_LANES, 0, {XM_ROWS, 4}, {XM_TOKENS, 1}}},
    {"moe_down_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 4}, {XM_TOKENS, 1}}},
    {"moe_down_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}}},
};
static const struct xm_variant sort_rows[] = {
    {"moe_sort_sg", XM_FAMILY_SG, 0, too_many_experts,
     {XM_GROUP, XM_SUB_GROUP_ITEMS, {XM_EXPERTS}}},
    {"moe_sort_gen", XM_FAMILY_GEN, 0, too_many_experts, {XM_GROUP, XM_GROUP_ITEMS, {XM_EXPERTS}}},
    {"moe_sort_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ONE}}},
};
static const struct xm_variant gather_rows[] = {
    {"moe_gather_rows_ref", XM_FAMILY_ONEDNN, 0, onednn_refuses,
     {XM_ITEM, 0, {XM_COLS}, {XM_SLOTS, 1}}, XM_FORM_ROWS},
    {"moe_gather_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_VNNI, bytes_refuse,
     {XM_ALONE, 0, {XM_SLOTS}}, XM_FORM_BYTES, "moe_gather_vnni"},
    {"moe_gather_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, shorts_refuse,
     {XM_ALONE, 0, {XM_SLOTS}}, XM_FORM_SHORT_PAIRS},
    {"moe_gather_vec", XM_FAMILY_VEC, 0, NULL,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_dpas", XM_FAMILY_SG, XM_CAP_DPAS, matrix_refuses,
     {XM_GROUP, XM_STEPS_ITEMS, {XM_COLS, XM_SUPER_COLS}, {XM_SLOTS, XM_STEPS_TOKENS}},
     XM_FORM_STEPS},
    {"moe_gather_sg", XM_FAMILY_SG, 0, NULL,
     {XM_LANES, 0, {XM_BLOCKS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_COLS, XM_GROUP_ITEMS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_COLS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
};
/* Columns are h's, up to the end of its last block. */
static const struct xm_variant gemm_gate_up_rows[] = {
    {"moe_gemm_gate_up_onednn", XM_FAMILY_ONEDNN, 0, onednn_refuses, .form = XM_FORM_ROWS},
    {"moe_gemm_gate_up_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_VNNI, bytes_refuse,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_EXPERTS, 1}}, XM_FORM_BYTES, "moe_gemm_gate_up_vnni"},
    {"moe_gemm_gate_up_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, shorts_refuse,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_EXPERTS, 1}}, XM_FORM_SHORT_PAIRS},
    {"moe_gemm_gate_up_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_COLS, 0, XM_SHARED}, {XM_EXPERTS, 1}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_dpas", XM_FAMILY_SG, XM_CAP_DPAS, matrix_refuses,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_SPLIT, XM_PER_LANE}, {XM_SLOTS, XM_TILE},
      .split = XM_MATRIX_SPLIT},
     XM_FORM_STEPS, .large_grf = true},
    {"moe_gemm_gate_up_sg", XM_FAMILY_SG, 0, not_in_steps,
     {XM_LANES, 0, {XM_COLS, XM_SUB_GROUP}, {XM_SLOTS, XM_TILE / 2}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_COLS, 32}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_COLS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
};
static const struct xm_variant gemm_down_rows[] = {
    {"moe_gemm_down_onednn", XM_FAMILY_ONEDNN, 0, onednn_refuses, .form = XM_FORM_ROWS},
    {"moe_gemm_down_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_VNNI, bytes_refuse,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_EXPERTS, 1}}, XM_FORM_BYTES, "moe_gemm_down_vnni"},
    {"moe_gemm_down_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, shorts_refuse,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_EXPERTS, 1}}, XM_FORM_SHORT_PAIRS},
    {"moe_gemm_down_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 8, XM_SHARED}, {XM_EXPERTS, 1}}, XM_FORM_TILES},
    {"moe_gemm_down_dpas", XM_FAMILY_SG, XM_CAP_DPAS, matrix_refuses,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_ROWS, XM_PER_LANE}, {XM_SLOTS, XM_TILE}},
     XM_FORM_STEPS, .large_grf = true},
    {"moe_gemm_down_sg", XM_FAMILY_SG, 0, not_in_steps,
     {XM_LANES, 0, {XM_ROWS, XM_SUB_GROUP}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gemm_down_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 64}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gemm_down_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_ROWS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
};
static const struct xm_variant combine_rows[] = {
    {"moe_combine_vec", XM_FAMILY_VEC, 0, NULL, {XM_ALONE, 0, {XM_TOKENS}}},
    {"moe_combine_sg", XM_FAMILY_SG, 0, NULL,
     {XM_LANES, 0, {XM_ROWS, 4, XM_PER_LANE}, {XM_TOKENS, 1}}},
    {"moe_combine_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}}},
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

/* ---- what can be a set ------------------------------------------------------------- */

static const char *
readable(const struct xm_moe_weights *w)
{
    const char *why = xm_weight_unreadable(w->gate);
    if (!why && w->up)
        why = xm_weight_unreadable(w->up);
    return why ? why : xm_weight_unreadable(w->down);
}

const char *
xm_moe_experts_refuse(enum xm_gate_up gate_up, const struct xm_moe_weights *w)
{
    const struct xm_weight *gate = w->gate, *up = w->up, *down = w->down;
    bool apart = gate_up == XM_GATE_UP_APART;
    if (gate_up >= XM_GATE_UP_COUNT)
        return "unknown order of gate and up";
    if (!gate || !down || (apart && !up))
        return "a weight of the experts is missing";
    if (!apart && (up || gate->rows % 2 != 0))
        return "gate and up in one weight have as many rows each";
    struct xm_weight half = *gate;
    const char *why = readable(w);
    if (!why && (gate_up == XM_GATE_UP_INTERLEAVED || gate_up == XM_UP_GATE_INTERLEAVED))
        why = xm_weight_alternate_rows(&half, 0);
    if (why)
        return why;
    if (gate->experts != down->experts || (up && up->experts != gate->experts))
        return "the weights disagree on the number of experts";
    if (up && (up->rows != gate->rows || up->cols != gate->cols))
        return "gate and up differ in size";
    if (up && xm_weight_cannot_join(gate, up))
        return "gate and up differ in format";
    if (down->rows != gate->cols || down->cols != gate->rows / (apart ? 1 : 2))
        return "the down projection does not fit gate and up";
    return NULL;
}

struct xm_rows_form
xm_moe_reads(struct xm_engine *engine, const struct xm_weight *gate, enum xm_element src)
{
    const struct xm_moe_problem problem = {{gate, src, 0}, NULL};
    struct xm_pick pick = {&xm_moe_tables[XM_MOE_GATE_UP], &problem,
                           xm_product_class(&problem.product)};
    size_t row;
    const bool known =
        xm_variant_prepare(&pick, engine, NULL) == XM_OK &&
        xm_variant_pick(&pick, xm_engine_info(engine), &problem, &row, NULL) == XM_OK;
    return xm_form_of(known ? gate_up_rows[row].form : XM_FORM_ROWS, gate, src);
}

/* ---- creation ---------------------------------------------------------------------- */

/* The form of what a row hands over: one that reads integers writes them. */
static uint32_t
forms_in_dispute(const struct xm_moe_experts *m)
{
    uint32_t gather = 1u << xm_moe_row(m, XM_MOE_GATHER)->form;
    uint32_t gate_up = 1u << xm_moe_row(m, XM_MOE_GEMM_GATE_UP)->form;
    uint32_t down = 1u << xm_moe_row(m, XM_MOE_GEMM_DOWN)->form;
    if (gather == gate_up && gate_up == down)
        return 0;
    const uint32_t forms = (gather | gate_up | down) & ~(1u << XM_FORM_TILES),
                   bytes = 1u << XM_FORM_BYTES;
    return forms & bytes ? bytes : forms; /* integers of 16 bits may be what all know */
}

/* Of h as gate and up write it, and down reads it: whole blocks and groups a work-item; 0: plain.
 *
 * So few work-items must not leave compute units idle: the last of them end at most an eighth later
 * than they would if the work could be divided at will. That is for one token; where it holds, it
 * holds for more. Otherwise h is prepared by a launch of its own. */
uint64_t
xm_moe_h_part(const struct xm_moe_experts *m)
{
    const struct xm_rows_form form = xm_moe_form(m, XM_MOE_DOWN);
    const uint32_t units = xm_engine_info(m->engine)->compute_units;
    if (!xm_moe_row(m, XM_MOE_GATE_UP)->emits || !xm_rows_are_prepared(&form))
        return 0;
    const uint64_t part = xm_prepared_part(&form, 1),
                   most = part < m->inter ? part : m->inter;
    const uint64_t items = xm_align_up(m->inter, part) / part * m->top_k;
    const uint64_t done_at_once = xm_align_up(items, units ? units : 1) * most;
    return 8 * done_at_once <= 9 * m->inter * m->top_k ? part : 0;
}

/* What the kernels of gate and up are told of an expert (kernels/cl/include/gate_up.h). */
static size_t
expert_options(const struct xm_moe_experts *m, char *out, size_t n)
{
    const struct xm_moe_attr *a = &m->desc.attr;
    uint32_t up_add;
    memcpy(&up_add, &a->up_add, sizeof(up_add));
    return xm_defines_print(
        out, n, "-DACT=%d -DCLAMPED=%d -DUP_ADD=%" PRIu32 " -DBIASED=%d -DFACTORED=%d",
        (int)a->activation, a->limit > 0, up_add,
        m->desc.experts.bias_gate || m->desc.experts.bias_up,
        m->desc.experts.factor != NULL);
}

/* Options of all kernels of a step besides their weights' and their rows'. */
static void
options_of(const struct xm_moe_experts *m, enum xm_moe_step step, char *out, size_t n)
{
    const struct xm_rows_form rows = xm_moe_form(m, XM_MOE_GATHER),
                              h = xm_moe_form(m, XM_MOE_DOWN),
                              gemm_h = xm_moe_form(m, XM_MOE_GEMM_DOWN);
    const char *src = xm_element_text(m->desc.src), *dst = xm_element_text(m->desc.dst);
    size_t used = 0;
    out[0] = '\0';
    switch (step) {
    case XM_MOE_GATE_UP:
        used = expert_options(m, out, n);
        used += xm_defines_print(out + used, n - used, " -DSRC=%s", src);
        if (xm_moe_h_part(m))
            xm_form_defines(&h, "FORM", out + used, n - used);
        return;
    case XM_MOE_GEMM_GATE_UP:
        used = expert_options(m, out, n);
        xm_defines_print(
            out + used, n - used,
            " -DOUT_PLANES=%u -DOUT_SUMS=%llu -DOUT_KIND=%u -DOUT_GROUP=%llu",
            gemm_h.planes, (unsigned long long)gemm_h.group, xm_form_kind(&gemm_h),
            (unsigned long long)xm_moe_down(m)->group);
        return;
    case XM_MOE_GATHER:
        used = xm_defines_print(out, n, "-DSRC=%s", src);
        xm_form_defines(&rows, "FORM", out + used, n - used);
        return;
    case XM_MOE_SORT:
        xm_defines_print(out, n, "-DEXPERTS=%llu", (unsigned long long)m->experts);
        return;
    case XM_MOE_DOWN:
    case XM_MOE_COMBINE:
        xm_defines_print(out, n, "-DDST=%s -DADD=%s", dst, xm_element_text(m->desc.add));
        return;
    default: /* moe_gemm_down */
        return;
    }
}

/* The weights that the kernel of a step knows; none: n is 0. */
static struct xm_kernel_weights
weights_of(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    const struct xm_weight *w = xm_moe_weight(m, step);
    const struct xm_device_weight *up = m->desc.experts.up;
    if (step == XM_MOE_SORT || step == XM_MOE_COMBINE)
        return (struct xm_kernel_weights){.n = 0};
    if (w == xm_moe_down(m))
        return xm_one_weight(w);
    return (struct xm_kernel_weights){{w, up ? &up->host : w}, 2};
}

/* The kernel that brings x or h into the form that a row for few tokens reads; none for h that
 * comes in it. */
static enum xm_status
build_prepare(struct xm_moe_experts *m, enum xm_moe_step step, struct xm_error *err)
{
    m->prepare[step] = NULL;
    if (step != XM_MOE_GATE_UP && (step != XM_MOE_DOWN || xm_moe_h_part(m)))
        return XM_OK;
    const struct xm_rows_form form = xm_moe_form(m, step);
    return xm_form_kernel(m->engine, &form, step == XM_MOE_DOWN ? XM_F32 : m->desc.src,
                          xm_moe_weight(m, step), &m->prepare[step], err);
}

static enum xm_status
build_step(void *ctx, size_t i, struct xm_error *err)
{
    struct xm_moe_experts *m = ctx;
    enum xm_moe_step step = (enum xm_moe_step)i;
    const struct xm_variant *row = xm_moe_row(m, step);
    const struct xm_kernel_weights w = weights_of(m, step);
    char options[XM_WEIGHT_DEFINES], all[XM_KERNEL_DEFINES];
    if (forms_in_dispute(m))
        return XM_OK; /* to be chosen again */
    if (xm_moe_is_onednn(row, step))
        return m->onednn ? XM_OK
                         : xm_onednn_experts_create(m->engine, &m->desc, &m->onednn, err);
    XM_TRY(build_prepare(m, step, err));
    options_of(m, step, options, sizeof(options));
    xm_defines_print(all, sizeof(all), "%s%s", options,
                     xm_variant_defines(row, xm_engine_info(m->engine)).text);
    if (!w.n)
        return xm_engine_kernel(m->engine, xm_variant_kernel(row), all, &m->kernel[step],
                                err);
    return xm_weight_kernel(m->engine, xm_variant_kernel(row), w, &m->kernel[step], err,
                            "%s", all);
}

static enum xm_status
choose_and_build(struct xm_moe_experts *m, struct xm_error *err)
{
    for (int s = 0; s < XM_MOE_N_STEPS; s++) {
        m->problem[s] = (struct xm_moe_problem){
            {xm_moe_weight(m, (enum xm_moe_step)s), m->desc.src, m->desc.factor}, m};
        m->pick[s] = (struct xm_pick){&xm_moe_tables[s], &m->problem[s],
                                      xm_product_class(&m->problem[s].product)};
    }
    m->forms = UINT32_MAX;
    for (;;) {
        XM_TRY(xm_variant_build(m->pick, XM_MOE_N_STEPS, m->engine, build_step, m, err));
        uint32_t dispute = forms_in_dispute(m);
        if (!dispute)
            return XM_OK;
        m->forms &= ~dispute;
    }
}

static void
reference(const struct xm_expert_rows *e)
{
    xm_device_weight_ref(e->gate);
    if (e->up)
        xm_device_weight_ref(e->up);
    xm_device_weight_ref(e->down);
    struct xm_buffer *const rows[] = {e->bias_gate, e->bias_up, e->bias_down, e->factor};
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (rows[i])
            xm_buffer_ref(rows[i]);
    }
}

enum xm_status
xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                    const struct xm_moe_desc *desc, struct xm_error *err)
{
    memset(m, 0, sizeof(*m));
    m->engine = engine;
    m->desc = *desc;
    reference(&desc->experts);
    m->experts = desc->experts.gate->host.experts;
    m->hidden = desc->experts.down->host.rows;
    m->inter = desc->experts.down->host.cols;
    m->top_k = (uint64_t)desc->attr.routing.top_k;
    return choose_and_build(m, err);
}

void
xm_moe_experts_fini(struct xm_moe_experts *m)
{
    xm_onednn_experts_destroy(m->onednn);
    xm_device_weight_unref(m->desc.experts.gate);
    xm_device_weight_unref(m->desc.experts.up);
    xm_device_weight_unref(m->desc.experts.down);
    xm_buffer_unref(m->desc.experts.bias_gate);
    xm_buffer_unref(m->desc.experts.bias_up);
    xm_buffer_unref(m->desc.experts.bias_down);
    xm_buffer_unref(m->desc.experts.factor);
}

/* ---- sizes ------------------------------------------------------------------------- */

uint64_t
xm_moe_experts_few(const struct xm_moe_experts *m)
{
    const struct xm_weight *down = xm_moe_down(m);
    const enum xm_form form = xm_moe_row(m, XM_MOE_GEMM_GATE_UP)->form;
    /* As moe_gemm_down_vnni: blocks of h have whole groups. */
    const bool knows_sums =
        xm_weight_is_blocks(down) ||
        (down->group && XM_PLANE_BLOCK * xm_weight_planes(down) % down->group == 0);
    const bool decodes_once =
        form == XM_FORM_BYTES || (knows_sums && form == XM_FORM_SHORT_PAIRS);
    const uint64_t shared = m->experts / EXPERTS_PER_SHARED;
    if (!decodes_once)
        return FEW_PER_EXPERT * m->experts;
    return shared > m->top_k ? shared : m->top_k;
}

static bool
is_few(const struct xm_moe_experts *m, uint64_t tokens)
{
    return tokens * m->top_k <= xm_moe_experts_few(m);
}

/* Every expert's last tile may be nearly empty. */
static uint64_t
max_tiles(const struct xm_moe_experts *m, uint64_t slots)
{
    uint64_t partial = slots < m->experts ? slots : m->experts;
    return (slots + partial * (XM_TILE - 1)) / XM_TILE;
}

/* `rows` rows in the form that a step reads. */
static uint64_t
form_bytes(const struct xm_moe_experts *m, enum xm_moe_step step, uint64_t rows)
{
    const struct xm_rows_form form = xm_moe_form(m, step);
    return xm_form_bytes(&form, xm_moe_weight(m, step)->cols, rows);
}

static uint32_t
few_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    uint64_t slots = tokens * m->top_k;
    bytes[XM_FEW_X] = form_bytes(m, XM_MOE_GATE_UP, tokens);
    bytes[XM_FEW_H] = slots * m->inter * sizeof(float);
    bytes[XM_FEW_H_PREPARED] = form_bytes(m, XM_MOE_DOWN, slots);
    return XM_FEW_N;
}

/* Whether a plan is made for a device on which oneDNN may take the place of kernels that read tiles
 * of steps, which are smaller than its plain rows. */
static bool
counts_for_onednn(const struct xm_moe_experts *m, enum xm_form form)
{
    return form == XM_FORM_STEPS && xm_engine_only_counts(m->engine) &&
           xm_engine_config(m->engine)->use_onednn == XM_YES &&
           xm_onednn_could_open(xm_engine_info(m->engine));
}

/* What a step reads of many tokens; of plain rows there may be two, of halves. */
static uint64_t
rows_bytes(const struct xm_moe_experts *m, enum xm_moe_step step, uint64_t places)
{
    const enum xm_form form = xm_moe_row(m, step)->form;
    return form == XM_FORM_ROWS || (counts_for_onednn(m, form) &&
                                    !xm_weight_is_blocks(xm_moe_weight(m, step)))
               ? places * xm_weight_padded_cols(xm_moe_weight(m, step)) * sizeof(float)
               : form_bytes(m, step, places);
}

static uint32_t
many_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    uint64_t slots = tokens * m->top_k, tiles = max_tiles(m, slots);
    const uint64_t places = tiles * XM_TILE;
    const uint64_t x = rows_bytes(m, XM_MOE_GEMM_GATE_UP, places);
    const uint64_t y = places * m->hidden * sizeof(float);
    bytes[XM_MANY_FIRST] = (m->experts + 1) * sizeof(uint32_t);
    bytes[XM_MANY_TILE_EXPERT] = tiles * sizeof(int32_t);
    bytes[XM_MANY_SOURCE] = places * sizeof(int32_t);
    bytes[XM_MANY_PLACE] = slots * sizeof(uint32_t);
    bytes[XM_MANY_NEXT] = m->experts * sizeof(uint32_t);
    /* The gathered rows are dead when the down projection writes its own. */
    bytes[XM_MANY_XY] = x > y ? x : y;
    bytes[XM_MANY_H] = rows_bytes(m, XM_MOE_GEMM_DOWN, places);
    bytes[XM_MANY_SCRATCHPAD] = m->onednn ? xm_onednn_experts_scratchpad(m->onednn) : 0;
    return XM_MANY_N;
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
    uint64_t bytes[XM_MOE_MAX_PARTS], sum = 0;
    uint32_t n = part_sizes(m, tokens, bytes);
    for (uint32_t i = 0; i < n; i++)
        sum += xm_scratch_bytes(p, bytes[i]);
    return sum;
}

/* ---- a run ------------------------------------------------------------------------- */

/* The steps of a run are neighbours in enum xm_moe_step. */
static int
first_step(const struct xm_moe_experts *m, uint64_t tokens)
{
    return is_few(m, tokens) ? XM_MOE_GATE_UP : XM_MOE_SORT;
}

static int
end_step(const struct xm_moe_experts *m, uint64_t tokens)
{
    return is_few(m, tokens) ? XM_MOE_SORT : XM_MOE_N_STEPS;
}

/* Few tokens may read a cache's slots in place of the experts. */
static enum xm_status
fill_cache(struct xm_moe_call *c)
{
    const struct xm_expert_cache *cache = c->batch->cache;
    if (!is_few(c->m, c->batch->tokens) || !cache ||
        !xm_expert_cache_holds(cache, c->slots))
        return XM_OK;
    c->rows = cache->rows;
    c->ids = cache->table[XM_EXPERT_SLOT_IDS];
    return xm_expert_cache_fill(cache, c->batch->ids, c->slots, c->queue, c->err);
}

enum xm_status
xm_moe_experts_run(const struct xm_moe_experts *m, const struct xm_moe_batch *batch,
                   struct xm_scratch *scratch, struct xm_queue *queue,
                   struct xm_error *err)
{
    uint64_t slots = batch->tokens * m->top_k;
    struct xm_moe_call c = {.m = m,
                            .batch = batch,
                            .slots = slots,
                            .tiles = max_tiles(m, slots),
                            .rows = m->desc.experts,
                            .ids = batch->ids,
                            .queue = queue,
                            .err = err};
    struct xm_scratch own = *scratch; /* gives back what it takes */
    uint64_t bytes[XM_MOE_MAX_PARTS];
    uint32_t n = part_sizes(m, batch->tokens, bytes);
    enum xm_status status = fill_cache(&c);
    own.n_views = 0;
    for (uint32_t i = 0; i < n && status == XM_OK; i++)
        status = xm_scratch_take(&own, bytes[i], &c.part[i], err);
    int end = end_step(m, batch->tokens);
    for (int s = first_step(m, batch->tokens); s < end && status == XM_OK; s++)
        status = xm_moe_step_run(&c, (enum xm_moe_step)s);
    xm_scratch_end(&own);
    xm_free(c.first);
    return status;
}

void
xm_moe_experts_describe(const struct xm_moe_experts *m, uint64_t tokens, char *out,
                        size_t out_bytes)
{
    for (int s = first_step(m, tokens); s < end_step(m, tokens); s++) {
        size_t used = strlen(out);
        snprintf(out + used, out_bytes - used, "%s%s", used ? " " : "",
                 xm_moe_row(m, (enum xm_moe_step)s)->name);
    }
}
