/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of experts: choosing and building the kernels of its steps, laying out scratch.
 *
 * For few tokens (up to xm_moe_experts_few slots) two products read the experts' rows for each
 * slot; more tokens are sorted into tiles of 16 tokens of one expert (experts_steps.c). The steps
 * for many tokens must agree on the form of the activations that they pass on. If the chosen rows
 * do not, because XM_FORCE or the compiler excluded some, all are chosen again without the form
 * that they disagree on.
 */
#include "primitives/moe/experts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "primitives/matrix_engine.h"
#include "primitives/moe/onednn_experts.h"
#include "primitives/moe/router.h"
#include "primitives/onednn/onednn.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"

/* FEW_PER_EXPERT: average tokens of an expert up to which the steps for few tokens run. Steps for
 * many tokens that decode a weight once for all its tokens pay off earlier: as soon as about one
 * expert in EXPERTS_PER_SHARED has two tokens. */
enum { FEW_PER_EXPERT = 4, EXPERTS_PER_SHARED = 5 };
/* Most experts whose counters moe_sort_sg and moe_sort_gen keep in local memory; 32-bit words that
 * the sg products read at a time. */
enum { GEN_SORT_EXPERTS = 4096, SG_WORDS = 4 };
/* Most router scores that a lane of moe_gate_up keeps in registers when it routes. */
enum { SCORES_PER_LANE = 32 };

static const char *
not_in_runs(const void *product)
{
    return xm_product_not_in_runs(product, SG_WORDS);
}

/* Refuses different formats of gate and up, because sub-groups decode both with the same code. */
static const char *
gate_up_not_in_shares(const void *product)
{
    const struct xm_kernel_weights *w = &((const struct xm_product *)product)->weights;
    return w->w[0]->format == w->w[1]->format ? xm_product_not_in_shares(product)
                                              : "gate and up have different formats";
}

static const struct xm_moe_experts *
experts_of(const void *product)
{
    return ((const struct xm_product *)product)->of;
}

static const char *
too_many_experts(const void *product)
{
    return experts_of(product)->experts > GEN_SORT_EXPERTS
               ? "local memory is too small for one counter for each expert"
               : NULL;
}

static const char *
onednn_refuses(const void *product)
{
    const struct xm_moe_experts *m = experts_of(product);
    return xm_onednn_experts_refuse(m->engine, &m->desc);
}

/* clang-format off */
static const struct xm_variant gate_up_rows[] = {
    {"moe_gate_up_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}, {XM_SLOTS, 1}}, XM_FORM_BYTES, "moe_gate_up_vec",
     .emits = true},
    {"moe_gate_up_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}, {XM_SLOTS, 1}}, XM_FORM_SHORTS, "moe_gate_up_vec",
     .emits = true},
    {"moe_gate_up_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}, {XM_SLOTS, 1}}, XM_FORM_PLANES, .emits = true},
    {"moe_gate_up_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_lanes,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_SLOTS, 1}, .split = 4},
     .routes = true},
    {"moe_gate_up_dp4a", XM_FAMILY_SG, XM_CAP_DP4A, xm_product_not_in_lanes,
     {XM_LANES, XM_DOT_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_SLOTS, 1}, .split = 4},
     .kernel = "moe_gate_up_dpas", .routes = true},
    {"moe_gate_up_sg", XM_FAMILY_SG, 0, xm_product_not_in_words,
     {XM_LANES, 0, {XM_ROWS, 4}, {XM_SLOTS, 1}}, .routes = true},
    {"moe_gate_up_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_ROWS, 4}, {XM_SLOTS, 1}}},
    {"moe_gate_up_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ROWS}, {XM_SLOTS, 1}}},
};
static const struct xm_variant down_rows[] = {
    {"moe_down_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}, XM_FORM_BYTES, "moe_down_vec"},
    {"moe_down_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}, XM_FORM_SHORTS, "moe_down_vec"},
    {"moe_down_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}, XM_FORM_PLANES},
    {"moe_down_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_lanes,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_INTEGER_ROWS}, {XM_TOKENS, 1}, .split = 16}},
    {"moe_down_dp4a", XM_FAMILY_SG, XM_CAP_DP4A, xm_product_not_in_lanes,
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
    {"moe_gather_amx", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_AMX, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_SLOTS, XM_TILE}}, XM_FORM_BF16_TILES},
    {"moe_gather_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_SLOTS}}, XM_FORM_BYTES, "moe_gather_vnni"},
    {"moe_gather_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_SLOTS}}, XM_FORM_SHORT_PAIRS},
    {"moe_gather_vec", XM_FAMILY_VEC, 0, NULL,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_steps,
     {XM_GROUP, XM_STEPS_ITEMS, {XM_COLS, XM_SUPER_COLS}, {XM_SLOTS, XM_STEPS_TOKENS}},
     XM_FORM_STEPS},
    {"moe_gather_sg", XM_FAMILY_SG, 0, NULL,
     {XM_LANES, 0, {XM_BLOCKS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_COLS, XM_GROUP_ITEMS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gather_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_COLS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
};
/* XM_COLS are the columns of h, rounded up to whole blocks. */
static const struct xm_variant gemm_gate_up_rows[] = {
    {"moe_gemm_gate_up_onednn", XM_FAMILY_ONEDNN, 0, onednn_refuses, .form = XM_FORM_ROWS},
    {"moe_gemm_gate_up_amx", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_AMX, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_EXPERTS, 1}}, XM_FORM_BF16_TILES},
    {"moe_gemm_gate_up_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_EXPERTS, 1}}, XM_FORM_BYTES, "moe_gemm_gate_up_vnni"},
    {"moe_gemm_gate_up_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_BLOCKS}, {XM_EXPERTS, 1}}, XM_FORM_SHORT_PAIRS},
    {"moe_gemm_gate_up_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_COLS, 0, XM_SHARED}, {XM_EXPERTS, 1}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_dpas_shared", XM_FAMILY_SG, XM_CAP_DPAS, gate_up_not_in_shares,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_SUM_COLS}, {XM_SLOTS, XM_TILE},
      .split = XM_MATRIX_SHARES},
     XM_FORM_STEPS, "moe_gemm_gate_up_dpas", .shares = true, .large_grf = true},
    {"moe_gemm_gate_up_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_steps,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_SPLIT, XM_PER_LANE}, {XM_SLOTS, XM_TILE},
      .split = XM_MATRIX_SPLIT},
     XM_FORM_STEPS, .large_grf = true},
    {"moe_gemm_gate_up_sg", XM_FAMILY_SG, 0, not_in_runs,
     {XM_LANES, 0, {XM_COLS, XM_SUB_GROUP}, {XM_SLOTS, XM_TILE / 2}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_COLS, 32}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
    {"moe_gemm_gate_up_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_COLS}, {XM_SLOTS, XM_TILE}}, XM_FORM_TILES},
};
static const struct xm_variant gemm_down_rows[] = {
    {"moe_gemm_down_onednn", XM_FAMILY_ONEDNN, 0, onednn_refuses, .form = XM_FORM_ROWS},
    {"moe_gemm_down_amx", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS | XM_CAP_AMX, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_EXPERTS, 1}}, XM_FORM_BF16_TILES},
    {"moe_gemm_down_bytes", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_bytes,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_EXPERTS, 1}}, XM_FORM_BYTES, "moe_gemm_down_vnni"},
    {"moe_gemm_down_vnni", XM_FAMILY_VEC, XM_CAP_SHORT_PAIRS, xm_product_not_in_shorts,
     {XM_ALONE, 0, {XM_ROWS, 64}, {XM_EXPERTS, 1}}, XM_FORM_SHORT_PAIRS},
    {"moe_gemm_down_vec", XM_FAMILY_VEC, 0, xm_product_not_in_planes,
     {XM_ALONE, 0, {XM_ROWS, 8, XM_SHARED}, {XM_EXPERTS, 1}}, XM_FORM_TILES},
    {"moe_gemm_down_dpas_shared", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_shares,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_ROWS, XM_PER_LANE}, {XM_SLOTS, XM_TILE},
      .split = XM_MATRIX_SHARES},
     XM_FORM_STEPS, "moe_gemm_down_dpas", .shares = true, .large_grf = true},
    {"moe_gemm_down_dpas", XM_FAMILY_SG, XM_CAP_DPAS, xm_product_not_in_steps,
     {XM_LANES, XM_MATRIX_LANES, {XM_ROWS, XM_MATRIX_ROWS, XM_PER_LANE}, {XM_SLOTS, XM_TILE}},
     XM_FORM_STEPS, .large_grf = true},
    {"moe_gemm_down_sg", XM_FAMILY_SG, 0, not_in_runs,
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
        return "a weight of the experts is absent";
    if (!apart && (up || gate->rows % 2 != 0))
        return "the joint weight of gate and up has an odd number of rows";
    struct xm_weight half = *gate;
    const char *why = readable(w);
    if (!why && (gate_up == XM_GATE_UP_INTERLEAVED || gate_up == XM_UP_GATE_INTERLEAVED))
        why = xm_weight_alternate_rows(&half, 0);
    if (why)
        return why;
    if (gate->experts != down->experts || (up && up->experts != gate->experts))
        return "the weights disagree on the number of experts";
    if (up && (up->rows != gate->rows || up->cols != gate->cols))
        return "the gate and up projections differ in size";
    if (up && xm_weight_cannot_join(gate, up))
        return "the gate and up projections differ in format";
    if (down->rows != gate->cols || down->cols != gate->rows / (apart ? 1 : 2))
        return "the size of the down projection does not match gate and up";
    return NULL;
}

struct xm_rows_form
xm_moe_reads(struct xm_engine *engine, const struct xm_weight *gate, enum xm_element src,
             uint32_t factor)
{
    return xm_product_reads(engine, &xm_moe_tables[XM_MOE_GATE_UP], gate, src, factor);
}

/* ---- creation ---------------------------------------------------------------------- */

/* Steps that pass rows to each other and must agree on one form (except that of moe_gemm_down's
 * results). */
static const enum xm_moe_step sharing[] = {XM_MOE_GATHER, XM_MOE_GEMM_GATE_UP,
                                           XM_MOE_GEMM_DOWN};

/* Returns the forms, one bit each, to exclude because the rows of `sharing` disagree; 0: they
 * agree. */
static uint32_t
forms_in_dispute(const struct xm_moe_experts *m)
{
    /* Forms for some weights only; they are excluded first, so that 16-bit integers remain. */
    static const enum xm_form ways[] = {XM_FORM_BF16_TILES, XM_FORM_BYTES};
    uint32_t forms = 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(sharing); i++)
        forms |= 1u << xm_moe_row(m, sharing[i])->form;
    if ((forms & (forms - 1)) == 0)
        return 0;
    forms &= ~(1u << XM_FORM_TILES);
    for (size_t i = 0; i < XM_ARRAY_LEN(ways); i++)
        if (forms & 1u << ways[i])
            return 1u << ways[i];
    return forms;
}

/* Returns whole blocks and groups of h, so that gate and up can write h in the form that down
 * reads; 0: not worth it, then a separate launch converts h. Larger parts mean fewer work-items,
 * which must not leave compute units idle: the last ones may end at most an eighth later than with
 * perfectly divided work. This is computed for one token; what holds for one token holds for
 * more. */
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

/* Writes the options that describe an expert to the kernels of gate and up
 * (kernels/cl/include/gate_up.h). */
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

/* Writes the options of a step's kernel other than those of its weights and its row. */
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

/* Returns whether moe_gate_up can route: each slot of a token is a lane of a sub-group, and each
 * lane keeps its scores in registers (kernels/cl/include/route_lanes.h). */
static bool
can_route(const struct xm_moe_experts *m)
{
    const struct xm_variant *row = xm_moe_row(m, XM_MOE_GATE_UP);
    const uint64_t lanes = xm_launch_lanes(&row->launch, xm_engine_info(m->engine));
    return m->may_route && row->routes && m->top_k <= lanes &&
           m->all <= SCORES_PER_LANE * lanes;
}

/* Tells a step that the experts of some slots may be on another rank
 * (kernels/cl/include/own_experts.h). The steps between sort and combine never see such slots. */
static void
add_part_option(const struct xm_moe_experts *m, enum xm_moe_step step, char *options,
                size_t n)
{
    const bool meets_slots = step == XM_MOE_GATE_UP || step == XM_MOE_DOWN ||
                             step == XM_MOE_SORT || step == XM_MOE_COMBINE;
    const size_t used = strlen(options);
    if (meets_slots && xm_moe_is_part(&m->desc.attr))
        xm_defines_print(options + used, n - used, " -DPARTIAL=1");
}

/* Builds the chosen row of gate and up once more, as a kernel that also routes. */
static enum xm_status
build_routes(struct xm_moe_experts *m, const char *options, struct xm_error *err)
{
    char routing[XM_STAGE_DEFINES];
    const struct xm_router_desc router = xm_moe_router_desc(&m->desc);
    m->routes = NULL;
    if (!can_route(m))
        return XM_OK;
    xm_router_defines(&router, routing, sizeof(routing));
    return xm_product_kernel(
        m->engine, &m->product[XM_MOE_GATE_UP], xm_moe_row(m, XM_MOE_GATE_UP),
        m->product[XM_MOE_GATE_UP].weights, &m->routes, err,
        "%s -DROUTES=1 -DEXPERTS=%" PRIu64 " %s", options, m->all, routing);
}

static bool
is_down(enum xm_moe_step step)
{
    return step == XM_MOE_DOWN || step == XM_MOE_GEMM_DOWN;
}

static struct xm_kernel_weights
weights_of(const struct xm_moe_experts *m, enum xm_moe_step step)
{
    const struct xm_device_weight *up = m->desc.experts.up;
    if (is_down(step))
        return xm_one_weight(xm_moe_down(m));
    return (struct xm_kernel_weights){{xm_moe_gate(m), up ? &up->host : xm_moe_gate(m)},
                                      2};
}

/* Builds the converter of x or h into the form that the row for few tokens reads. If gate and up
 * write h in that form, the converter has no kernel. */
static enum xm_status
build_converter(struct xm_moe_experts *m, enum xm_moe_step step, struct xm_error *err)
{
    if (step >= XM_MOE_SORT)
        return XM_OK;
    if (step == XM_MOE_DOWN && xm_moe_h_part(m)) {
        m->x[step] = (struct xm_converter){xm_moe_form(m, step), xm_moe_down(m), NULL};
        return XM_OK;
    }
    return xm_converter_build(m->engine, &m->product[step], xm_moe_row(m, step),
                              step == XM_MOE_DOWN ? XM_F32 : m->desc.src, &m->x[step],
                              err);
}

static enum xm_status
build_step(void *ctx, size_t i, struct xm_error *err)
{
    struct xm_moe_experts *m = ctx;
    enum xm_moe_step step = (enum xm_moe_step)i;
    const struct xm_variant *row = xm_moe_row(m, step);
    char options[XM_WEIGHT_DEFINES];
    if (forms_in_dispute(m))
        return XM_OK; /* the rows will be chosen again */
    if (xm_moe_is_onednn(row, step))
        return m->onednn ? XM_OK
                         : xm_onednn_experts_create(m->engine, &m->desc, &m->onednn, err);
    XM_TRY(build_converter(m, step, err));
    options_of(m, step, options, sizeof(options));
    add_part_option(m, step, options, sizeof(options));
    if (step == XM_MOE_GATE_UP)
        XM_TRY(build_routes(m, options, err));
    if (step != XM_MOE_SORT && step != XM_MOE_COMBINE)
        return xm_product_kernel(m->engine, &m->product[step], row,
                                 m->product[step].weights, &m->kernel[step], err, "%s",
                                 options);
    char all[XM_KERNEL_DEFINES];
    xm_defines_print(all, sizeof(all), "%s%s", options,
                     xm_variant_defines(row, xm_engine_info(m->engine)).text);
    return xm_engine_kernel(m->engine, xm_variant_kernel(row), all, &m->kernel[step],
                            err);
}

/* Chooses and builds rows that read and write none of `not_forms`, until they agree on a form. */
static enum xm_status
choose_and_build(struct xm_moe_experts *m, uint32_t not_forms, struct xm_error *err)
{
    for (int s = 0; s < XM_MOE_N_STEPS; s++) {
        m->product[s] = (struct xm_product){weights_of(m, (enum xm_moe_step)s),
                                            m->desc.src, m->desc.factor, m};
        m->pick[s] = xm_product_pick(&xm_moe_tables[s], &m->product[s]);
        m->pick[s].not_forms = not_forms;
    }
    for (;;) {
        XM_TRY(xm_variant_build(m->pick, XM_MOE_N_STEPS, m->engine, build_step, m, err));
        uint32_t dispute = forms_in_dispute(m);
        if (!dispute)
            return XM_OK;
        for (size_t i = 0; i < XM_ARRAY_LEN(sharing); i++)
            m->pick[sharing[i]].not_forms |= dispute;
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

static enum xm_status
init_set(struct xm_moe_experts *m, struct xm_engine *engine,
         const struct xm_moe_desc *desc, bool may_route, uint32_t not_forms,
         struct xm_error *err)
{
    memset(m, 0, sizeof(*m));
    m->may_route = may_route;
    m->engine = engine;
    m->desc = *desc;
    reference(&desc->experts);
    m->experts = desc->experts.gate->host.experts;
    m->hidden = desc->experts.down->host.rows;
    m->inter = desc->experts.down->host.cols;
    m->all = xm_moe_is_part(&desc->attr) ? (uint64_t)desc->attr.experts : m->experts;
    m->top_k = (uint64_t)desc->attr.routing.top_k;
    return choose_and_build(m, not_forms, err);
}

/* Builds m->sparse if the set has AMX tiles; NULL if no other row can run, because XM_FORCE names
 * these. */
static enum xm_status
init_sparse(struct xm_moe_experts *m, struct xm_error *err)
{
    const uint32_t tiles = 1u << XM_FORM_BF16_TILES;
    if (xm_moe_row(m, XM_MOE_GEMM_GATE_UP)->form != XM_FORM_BF16_TILES)
        return XM_OK;
    m->sparse = xm_calloc(1, sizeof(*m->sparse));
    if (!m->sparse)
        return xm_no_memory(err, "the kernels of experts");
    const enum xm_status status =
        init_set(m->sparse, m->engine, &m->desc, m->may_route, tiles, err);
    if (status != XM_UNSUPPORTED)
        return status;
    xm_moe_experts_fini(m->sparse);
    xm_free(m->sparse);
    m->sparse = NULL;
    return XM_OK;
}

enum xm_status
xm_moe_experts_init(struct xm_moe_experts *m, struct xm_engine *engine,
                    const struct xm_moe_desc *desc, bool may_route, struct xm_error *err)
{
    XM_TRY(init_set(m, engine, desc, may_route, 0, err));
    return init_sparse(m, err);
}

void
xm_moe_experts_fini(struct xm_moe_experts *m)
{
    if (m->sparse)
        xm_moe_experts_fini(m->sparse);
    xm_free(m->sparse);
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
    /* The condition of moe_gemm_down_vnni: a block of h is whole groups. */
    const bool knows_sums =
        xm_weight_is_blocks(down) ||
        (down->group && XM_PLANE_BLOCK * xm_weight_planes(down) % down->group == 0);
    const bool decodes_once = form == XM_FORM_BYTES || form == XM_FORM_BF16_TILES ||
                              (knows_sums && form == XM_FORM_SHORT_PAIRS);
    const uint64_t shared = m->all / EXPERTS_PER_SHARED;
    if (!decodes_once)
        return FEW_PER_EXPERT * m->all;
    return shared > m->top_k ? shared : m->top_k;
}

/* Returns the set that runs `tokens` tokens: m->sparse if tiles of 16 tokens would be mostly empty.
 * Decoding a weight's rows for a tile takes the same time however many tokens it has. */
static const struct xm_moe_experts *
set_for(const struct xm_moe_experts *m, uint64_t tokens)
{
    enum { TOKENS_OF_TILES = 12 }; /* least average tokens of an expert */
    return m->sparse && tokens * m->top_k < TOKENS_OF_TILES * m->all ? m->sparse : m;
}

static bool
is_few(const struct xm_moe_experts *m, uint64_t tokens)
{
    return tokens * m->top_k <= xm_moe_experts_few(m);
}

/* Returns the most tiles of 16 tokens that `slots` slots can fill: the last tile of every expert
 * may be nearly empty. */
static uint64_t
max_tiles(const struct xm_moe_experts *m, uint64_t slots)
{
    uint64_t partial = slots < m->experts ? slots : m->experts;
    return (slots + partial * (XM_TILE - 1)) / XM_TILE;
}

/* Returns the bytes of `rows` rows in the form that a step reads. */
static uint64_t
form_bytes(const struct xm_moe_experts *m, enum xm_moe_step step, uint64_t rows)
{
    const struct xm_rows_form form = xm_moe_form(m, step);
    return xm_form_bytes(&form, m->product[step].weights.w[0]->cols, rows);
}

static uint32_t
few_sizes(const struct xm_moe_experts *m, uint64_t tokens, uint64_t *bytes)
{
    uint64_t slots = tokens * m->top_k;
    bytes[XM_FEW_H] = slots * m->inter * sizeof(float);
    return XM_FEW_N;
}

/* Returns whether a plan is made without a device for one on which oneDNN may run instead of
 * kernels that read XM_FORM_STEPS. oneDNN's plain rows need more scratch than these tiles. */
static bool
counts_for_onednn(const struct xm_moe_experts *m, enum xm_form form)
{
    return form == XM_FORM_STEPS && xm_engine_only_counts(m->engine) &&
           xm_engine_config(m->engine)->use_onednn == XM_YES &&
           xm_onednn_could_open(xm_engine_info(m->engine));
}

/* Returns the bytes of what a step for many tokens reads. Plain rows (of oneDNN) may be two f16
 * rows, g and h. */
static uint64_t
rows_bytes(const struct xm_moe_experts *m, enum xm_moe_step step, uint64_t places)
{
    const enum xm_form form = xm_moe_row(m, step)->form;
    const struct xm_weight *w = m->product[step].weights.w[0];
    return form == XM_FORM_ROWS || (counts_for_onednn(m, form) && !xm_weight_is_blocks(w))
               ? places * xm_weight_padded_cols(w) * sizeof(float)
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
    /* x and y share the bytes: the gathered rows x are no longer needed when the down projection
     * writes y. */
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
xm_moe_experts_scratch(const struct xm_moe_experts *all, const struct xm_primitive *p,
                       uint64_t tokens)
{
    const struct xm_moe_experts *m = set_for(all, tokens);
    uint64_t bytes[XM_MOE_MAX_PARTS], sum = 0;
    uint32_t n = part_sizes(m, tokens, bytes);
    for (uint32_t i = 0; i < n; i++)
        sum += xm_scratch_bytes(p, bytes[i]);
    if (is_few(m, tokens))
        sum += xm_converter_scratch(&m->x[XM_MOE_GATE_UP], p, tokens) +
               xm_converter_scratch(&m->x[XM_MOE_DOWN], p, tokens * m->top_k);
    return sum;
}

bool
xm_moe_experts_route(const struct xm_moe_experts *m, uint64_t tokens)
{
    return m->routes && tokens <= XM_FEW_TOKENS && is_few(m, tokens);
}

/* ---- a run ------------------------------------------------------------------------- */

/* The steps of a run are consecutive in enum xm_moe_step, from first_step to end_step - 1. */
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

/* If few tokens run and the call has a cache that can hold their experts, fetches the missing
 * experts and lets the steps read the cache's slots. */
static enum xm_status
fill_cache(struct xm_moe_call *c)
{
    if (!is_few(c->m, c->tokens) || !c->cache ||
        !xm_expert_cache_holds(c->cache, c->slots))
        return XM_OK;
    c->rows = c->cache->rows;
    c->rows_ids = c->cache->table[XM_EXPERT_SLOT_IDS];
    return xm_expert_cache_fill(c->cache, c->ids, c->slots, c->queue, c->err);
}

enum xm_status
xm_moe_experts_run(const struct xm_moe_experts *all, const struct xm_moe_call *given)
{
    const struct xm_moe_experts *m = set_for(all, given->tokens);
    struct xm_moe_call c = *given;
    /* a copy, so that the caller's scratch is unchanged afterwards */
    struct xm_scratch own = *given->scratch;
    uint64_t bytes[XM_MOE_MAX_PARTS];
    const uint32_t n = part_sizes(m, c.tokens, bytes);
    c.m = m;
    c.slots = c.tokens * m->top_k;
    c.tiles = max_tiles(m, c.slots);
    c.rows = m->desc.experts;
    c.rows_ids = c.ids;
    c.scratch = &own;
    own.n_views = 0;
    enum xm_status status = fill_cache(&c);
    for (uint32_t i = 0; i < n && status == XM_OK; i++)
        status = xm_scratch_take(&own, bytes[i], &c.part[i], c.err);
    const int end = end_step(m, c.tokens);
    for (int s = first_step(m, c.tokens); s < end && status == XM_OK; s++)
        status = xm_moe_step_run(&c, (enum xm_moe_step)s);
    xm_scratch_end(&own);
    xm_free(c.first);
    return status;
}

void
xm_moe_experts_describe(const struct xm_moe_experts *all, uint64_t tokens, char *out,
                        size_t out_bytes)
{
    const struct xm_moe_experts *m = set_for(all, tokens);
    for (int s = first_step(m, tokens); s < end_step(m, tokens); s++) {
        size_t used = strlen(out);
        snprintf(out + used, out_bytes - used, "%s%s", used ? " " : "",
                 xm_moe_row(m, (enum xm_moe_step)s)->name);
    }
}
