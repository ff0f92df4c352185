/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: the run's K and V are written to their pages (attention_inputs.h), then every query
 * row reads the pages. The leading sequences that have at most XM_FEW_TOKENS tokens each run the
 * decode stage: if they are too little work for the device, their keys are cut into partitions
 * whose results a second launch combines (attention_partitions.h). All later sequences run the
 * prompt stage, which has enough work without partitions.
 */
#include "primitives/attention/attention.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "primitives/args.h"
#include "primitives/attention/attention_cache.h"
#include "primitives/attention/attention_inputs.h"
#include "primitives/attention/attention_partitions.h"
#include "primitives/form.h"
#include "primitives/matrix_engine.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"

enum {
    /* rows (tokens * heads) of a tile of attention_prompt_vec, about */
    PROMPT_ROWS = 64,
    /* most rows of a tile of attention_prompt_gen and attention_decode_gen */
    PROMPT_GROUP_ROWS = 16,
    MATRIX_FEW_ROWS = 8, /* rows of a tile of attention_decode_dpas                  */
    /* head elements and page positions that matrix engines read come in multiples of this */
    MATRIX_TILE = 16,
    /* elements of K that kernels for matrix engines read at once */
    MATRIX_READ = 64,
    /* elements of V that one sub-group of those kernels sums */
    MATRIX_VALUES = 128,
    /* most elements of V that one sub-group of sg kernels sums */
    SUB_GROUP_VALUES = 256
};

/* Refuses wide heads, because a sub-group keeps the sums of its rows in registers. */
static const char *
wide_values(const void *problem)
{
    const struct xm_attention_desc *d = problem;
    return d && d->dv > SUB_GROUP_VALUES ? "a value head has more than 256 elements"
                                         : NULL;
}

/* Refuses what is not whole tiles of halves: heads of K and V, positions of a page. */
static const char *
not_in_tiles(const void *problem)
{
    const struct xm_attention_desc *d = problem;
    if (!d)
        return NULL;
    if (d->element != XM_F16 || d->k_cache == XM_F32 || d->v_cache == XM_F32)
        return "matrix engines need f16 queries and a KV cache of at most 16 bits";
    if (!(d->scale > 0.0f))
        return "the scale of the scores is not above 0";
    if (d->d % MATRIX_READ || d->dv % MATRIX_TILE || d->page_tokens % MATRIX_TILE)
        return "the heads or the pages are not a multiple of the tiles of matrix engines";
    return wide_values(d);
}

/* clang-format off */
static const struct xm_variant decode_variants[] = {
    {"attention_decode_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_TOKEN_TILES}},
     .emits = true},
    {"attention_decode_dpas", XM_FAMILY_SG, XM_CAP_DPAS, not_in_tiles,
     {XM_LANES, XM_MATRIX_LANES, {XM_MATRIX_TILES}}, .large_grf = true},
    {"attention_decode_sg", XM_FAMILY_SG, 0, wide_values, {XM_LANES, 0, {XM_LANE_TILES}}},
    {"attention_decode_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_GROUP_TILES}}},
    {"attention_decode_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_QUERIES}}},
};
static const struct xm_variant combine_variants[] = {
    {"attention_combine_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN}, .emits = true},
    {"attention_combine_sg", XM_FAMILY_SG, 0, NULL, {XM_LANES}},
    {"attention_combine_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS}},
    {"attention_combine_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
static const struct xm_variant prompt_variants[] = {
    {"attention_prompt_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_TOKEN_TILES}}},
    {"attention_prompt_dpas", XM_FAMILY_SG, XM_CAP_DPAS, not_in_tiles,
     {XM_LANES, XM_MATRIX_LANES, {XM_MATRIX_TILES}}, .large_grf = true},
    {"attention_prompt_sg", XM_FAMILY_SG, 0, wide_values, {XM_LANES, 0, {XM_LANE_TILES}}},
    {"attention_prompt_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_GROUP_TILES}}},
    {"attention_prompt_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_QUERIES}}},
};
const struct xm_variant_table xm_attention_decode_table = {
    "attention_decode", decode_variants, XM_ARRAY_LEN(decode_variants)};
const struct xm_variant_table xm_attention_combine_table = {
    "attention_combine", combine_variants, XM_ARRAY_LEN(combine_variants)};
const struct xm_variant_table xm_attention_prompt_table = {
    "attention_prompt", prompt_variants, XM_ARRAY_LEN(prompt_variants)};
/* clang-format on */

struct attention {
    struct xm_primitive base;
    struct xm_attention_desc desc;
    struct xm_stage inputs, decode, combine, prompt;
};

/* The size of a tile: tokens in vec kernels; rows (tokens of all query heads that share a head of K
 * and V) in gen kernels and in kernels for matrix engines. */
struct tiles {
    uint32_t tokens, rows, matrix_rows;
};

static struct tiles
prompt_tiles(const struct attention *a)
{
    uint32_t group = a->desc.heads_q / a->desc.heads_kv;
    return (struct tiles){group < PROMPT_ROWS ? PROMPT_ROWS / group : 1,
                          PROMPT_GROUP_ROWS,
                          xm_matrix_lanes(xm_engine_info(a->base.engine))};
}

static struct tiles
decode_tiles(const struct attention *a)
{
    uint32_t group = a->desc.heads_q / a->desc.heads_kv;
    return (struct tiles){XM_FEW_TOKENS,
                          group < PROMPT_GROUP_ROWS ? group : PROMPT_GROUP_ROWS,
                          MATRIX_FEW_ROWS};
}

/* Returns the rows of a sub-group of attention_decode_sg and attention_prompt_sg. */
static uint32_t
sub_group_rows(const struct xm_attention_desc *d)
{
    return d->dv > 128 ? 1 : d->dv > 64 ? 2 : 4;
}

/* ---- sequences ---------------------------------------------------------------------- */

/* The n sequences of a launch, from `first` on, and the number of their tokens. */
struct stretch {
    const struct xm_attention_run *run;
    uint32_t first, n;
    uint64_t rows;
};

static uint64_t
tokens_of(const struct xm_attention_run *a, uint32_t sequence)
{
    return (uint64_t)(a->subsequence_begins[sequence + 1] -
                      a->subsequence_begins[sequence]);
}

static struct stretch
stretch_of(const struct xm_attention_run *a, uint32_t first, uint32_t end)
{
    return (struct stretch){
        a, first, end - first,
        (uint64_t)(a->subsequence_begins[end] - a->subsequence_begins[first])};
}

/* Divides the sequences of a run: the leading ones with at most XM_FEW_TOKENS tokens decode; all
 * later ones are prompts. */
static void
part_sequences(const struct xm_attention_run *a, struct stretch *decodes,
               struct stretch *prompts)
{
    uint32_t n = 0;
    while (n < a->n_sequences && tokens_of(a, n) <= XM_FEW_TOKENS)
        n++;
    *decodes = stretch_of(a, 0, n);
    *prompts = stretch_of(a, n, a->n_sequences);
}

/* Returns the most keys that a sequence of s reads. The window of its first token bounds the past
 * positions. */
static uint64_t
most_keys_read(const struct xm_attention_desc *d, const struct stretch *s)
{
    uint64_t most = 0;
    for (uint32_t i = s->first; i < s->first + s->n; i++) {
        const uint64_t tokens = tokens_of(s->run, i),
                       past = (uint64_t)s->run->past_lens[i];
        const uint64_t before = d->window && past > d->window - 1 ? d->window - 1 : past;
        if (tokens && before + tokens > most)
            most = before + tokens;
    }
    return most;
}

/* ---- units of work ------------------------------------------------------------------ */

/* The units of work of a kernel: a unit is m query rows of one head of K and V, of which each token
 * has `per`; `times` is the number of such heads, or of their parts. */
struct tiling {
    uint64_t per, m, times;
};

static struct tiling
tiling_of(const struct attention *a, struct tiles tiles, enum xm_axis axis)
{
    const struct xm_attention_desc *d = &a->desc;
    const uint32_t group = d->heads_q / d->heads_kv;
    const uint64_t value_parts = (d->dv + MATRIX_VALUES - 1) / MATRIX_VALUES;
    switch (axis) {
    case XM_TOKEN_TILES:
        return (struct tiling){1, tiles.tokens, d->heads_kv};
    case XM_GROUP_TILES:
        return (struct tiling){group, tiles.rows, d->heads_kv};
    case XM_LANE_TILES:
        return (struct tiling){group, sub_group_rows(d), d->heads_kv};
    case XM_MATRIX_TILES:
        return (struct tiling){group, tiles.matrix_rows, d->heads_kv * value_parts};
    default: /* XM_QUERIES */
        return (struct tiling){d->heads_q, 1, 1};
    }
}

/* Returns the number of unit indices in the kernels' numbering (tile_slots of
 * kernels/cl/include/attention.h); some have no rows. */
static uint64_t
slots(const struct tiling *t, const struct stretch *s)
{
    return t->times * ((s->rows * t->per + s->n * (t->m - 1)) / t->m);
}

/* Returns the number of units that have rows. */
static uint64_t
filled_slots(const struct tiling *t, const struct stretch *s)
{
    uint64_t n = 0;
    for (uint32_t i = s->first; i < s->first + s->n; i++)
        n += (tokens_of(s->run, i) * t->per + t->m - 1) / t->m;
    return t->times * n;
}

/* The choices for a decode launch: a row, its units of work, the partitions. */
struct decoding {
    struct xm_choice choice;
    struct xm_counts counts;
    struct xm_attention_partitions partitions;
    uint64_t most; /* most partitions for as many keys or fewer */
};

static enum xm_status
choose_decoding(const struct attention *a, const struct stretch *s, struct decoding *out,
                struct xm_error *err)
{
    const struct xm_attention_desc *d = &a->desc;
    const struct xm_device_info *device = xm_engine_info(a->base.engine);
    const uint64_t keys = most_keys_read(d, s);
    XM_TRY(xm_stage_choose(&a->decode, NULL, &out->choice, err));
    const enum xm_axis axis = out->choice.row->launch.x.axis;
    const struct tiling t = tiling_of(a, decode_tiles(a), axis);
    const uint64_t filled = filled_slots(&t, s);
    out->partitions = xm_attention_cut_keys(device, filled, keys);
    out->most = xm_attention_most_partitions(device, filled, keys);
    out->counts = (struct xm_counts){.n = {0}};
    /* with XM_TOKEN_TILES each sequence is one tile, numbered without gaps */
    out->counts.n[axis] =
        out->partitions.n * (axis == XM_TOKEN_TILES ? filled : slots(&t, s));
    return XM_OK;
}

/* Returns the bytes of decode's partial results; 0 for one partition, which writes the result
 * itself. */
static uint64_t
partial_bytes(const struct xm_attention_desc *d, const struct stretch *s,
              uint64_t partitions)
{
    return partitions > 1
               ? s->rows * d->heads_q * partitions * (d->dv + 2) * sizeof(float)
               : 0;
}

/* ---- arguments ---------------------------------------------------------------------- */

static uint64_t
bits_of(const struct xm_operand *o)
{
    return o->buffer ? xm_element_bits(o->element) : 0;
}

/* Appends the arguments of ATTENTION_PARAMETERS of kernels/cl/include/attention.h. */
static void
add_parameters(const struct attention *a, const struct xm_operand *operands,
               const struct stretch *s, struct xm_args *args)
{
    const struct xm_operand *mask = &operands[XM_ATTENTION_MASK];
    const struct xm_operand *key_mask = &operands[XM_ATTENTION_KEY_MASK];
    const uint64_t window = a->desc.window > INT32_MAX ? 0 : a->desc.window;
    uint64_t head = mask->buffer ? (uint64_t)(mask->dim[2] * mask->dim[3]) : 0;
    bool heads = mask->buffer && mask->dim[1] != 1,
         batch = mask->buffer && mask->dim[0] != 1;
    xm_put_buffer(args, "q", operands[XM_ATTENTION_Q].buffer);
    xm_attention_put_cache(args, operands, s->run);
    xm_put_uint(args, "first_sequence", s->first);
    xm_put_uint(args, "sequences", s->n);
    xm_put_buffer(args, "key_mask", key_mask->buffer);
    xm_put_buffer(args, "mask", mask->buffer);
    xm_put_buffer(args, "sinks", a->desc.sinks);
    xm_put_uint(args, "key_mask_bytes", bits_of(key_mask) / 8);
    xm_put_ulong(args, "key_mask_stride",
                 key_mask->buffer ? (uint64_t)key_mask->dim[1] : 0);
    xm_put_uint(args, "mask_bits", bits_of(mask));
    xm_put_ulong(args, "mask_batch", batch ? head * (uint64_t)mask->dim[1] : 0);
    xm_put_ulong(args, "mask_head", heads ? head : 0);
    xm_put_float(args, "scale", a->desc.scale);
    xm_put_float(args, "soft_cap", a->desc.soft_cap);
    xm_put_uint(args, "window", window);
}

static enum xm_status
enqueue_prompt(const struct attention *a, const struct xm_operand *operands,
               const struct stretch *s, const struct xm_run *run, struct xm_error *err)
{
    struct xm_choice choice;
    struct xm_args args = {.n = 0};
    struct xm_counts counts = {.n = {0}};
    XM_TRY(xm_stage_choose(&a->prompt, NULL, &choice, err));
    const enum xm_axis axis = choice.row->launch.x.axis;
    const struct tiling t = tiling_of(a, prompt_tiles(a), axis);
    counts.n[axis] = slots(&t, s);
    add_parameters(a, operands, s, &args);
    xm_put_buffer(&args, "out", operands[XM_ATTENTION_OUT].buffer);
    return xm_launch(&choice.row->launch, choice.kernel, &counts, &args, run->queue, err);
}

/* ---- prepared rows ----------------------------------------------------------------- */

/* Returns how many heads fill a part of a prepared row that can be written independently, so that
 * decode and combine can write it. 0: no prepared form, or the query heads that share K and V are
 * not whole such parts. */
static uint32_t
heads_of_part(const struct xm_attention_desc *d)
{
    if (!xm_rows_are_prepared(&d->prepared))
        return 0;
    const uint64_t part = xm_prepared_part(&d->prepared, d->dv);
    const uint64_t heads = part / d->dv;
    return d->heads_q / d->heads_kv % heads == 0 ? (uint32_t)heads : 0;
}

bool
xm_attention_emits(const struct xm_primitive *attention)
{
    const struct attention *a = (const struct attention *)attention;
    return heads_of_part(&a->desc) && xm_stage_emits(&a->decode, NULL) &&
           xm_stage_emits(&a->combine, NULL);
}

/* Returns the buffer into which decode writes prepared rows; NULL: it writes none. */
static const struct xm_buffer *
prepared_of(const struct attention *a, const struct xm_operand *operands)
{
    const struct xm_operand *q = &operands[XM_ATTENTION_Q];
    const uint64_t cols = (uint64_t)a->desc.heads_q * a->desc.dv;
    return heads_of_part(&a->desc)
               ? xm_prepared_target(&a->desc.prepared, &operands[XM_ATTENTION_PREPARED],
                                    cols, (uint64_t)(q->dim[0] * q->dim[1]))
               : NULL;
}

/* ---- decode ------------------------------------------------------------------------ */

/* Enqueues the kernel that combines the partial results of all partitions. */
static enum xm_status
enqueue_combine(const struct attention *a, const struct xm_operand *operands,
                const struct stretch *s, uint64_t partitions,
                const struct xm_buffer *partial, const struct xm_run *run,
                struct xm_error *err)
{
    struct xm_args args = {.n = 0};
    const uint64_t rows = s->rows * a->desc.heads_q;
    xm_put_buffer(&args, "partial", partial);
    xm_put_buffer(&args, "sinks", a->desc.sinks);
    xm_put_buffer(&args, "out", operands[XM_ATTENTION_OUT].buffer);
    xm_put_ulong(&args, "rows", rows);
    xm_put_uint(&args, "partitions", partitions);
    xm_put_buffer(&args, "prepared", prepared_of(a, operands));
    return xm_stage_go(&a->combine, NULL, rows, &args, run, err);
}

/* Enqueues decode and, if there are several partitions, their combination. `partial` NULL: one
 * partition. */
static enum xm_status
enqueue_decode(const struct attention *a, const struct xm_operand *operands,
               const struct stretch *s, const struct decoding *decoding,
               const struct xm_buffer *partial, const struct xm_run *run,
               struct xm_error *err)
{
    const struct xm_attention_partitions *p = &decoding->partitions;
    const struct xm_choice *c = &decoding->choice;
    struct xm_args args = {.n = 0};
    add_parameters(a, operands, s, &args);
    xm_put_buffer(&args, "out", operands[XM_ATTENTION_OUT].buffer);
    xm_put_buffer(&args, "partial", partial);
    xm_put_uint(&args, "partition_keys", p->keys);
    xm_put_uint(&args, "partitions", p->n);
    xm_put_buffer(&args, "prepared", prepared_of(a, operands));
    XM_TRY(
        xm_launch(&c->row->launch, c->kernel, &decoding->counts, &args, run->queue, err));
    return partial ? enqueue_combine(a, operands, s, p->n, partial, run, err) : XM_OK;
}

/* Scratch of a run: q normed and rotated (NULL: q is read unchanged), and decode's partial results
 * (NULL: none). */
struct taken {
    struct xm_buffer *q, *partial;
};

static enum xm_status
take_scratch(const struct attention *a, const struct xm_operand *operands,
             const struct xm_attention_shape *s, uint64_t partial,
             struct xm_scratch *scratch, struct taken *out, struct xm_error *err)
{
    *out = (struct taken){NULL, NULL};
    if (xm_attention_changes_q(&a->desc, operands))
        XM_TRY(xm_scratch_take(scratch, xm_attention_q_bytes(&a->desc, s), &out->q, err));
    return partial ? xm_scratch_take(scratch, partial, &out->partial, err) : XM_OK;
}

static enum xm_status
enqueue(const struct attention *a, const struct xm_operand *operands,
        const struct xm_attention_shape *s, struct xm_scratch *scratch,
        const struct xm_run *run, struct xm_error *err)
{
    struct xm_operand o[XM_ATTENTION_N_OPERANDS];
    struct decoding decoding;
    struct stretch decodes, prompts;
    struct taken taken;
    uint64_t partial = 0;
    part_sequences(s->run, &decodes, &prompts);
    if (decodes.rows) {
        XM_TRY(choose_decoding(a, &decodes, &decoding, err));
        partial = partial_bytes(&a->desc, &decodes, decoding.partitions.n);
    }
    XM_TRY(take_scratch(a, operands, s, partial, scratch, &taken, err));
    memcpy(o, operands, sizeof(o));
    XM_TRY(xm_attention_take_inputs(&a->inputs, &a->desc, o, s, taken.q, run, err));
    if (taken.q)
        o[XM_ATTENTION_Q].buffer = taken.q;
    if (decodes.rows)
        XM_TRY(enqueue_decode(a, o, &decodes, &decoding, taken.partial, run, err));
    return prompts.rows ? enqueue_prompt(a, o, &prompts, run, err) : XM_OK;
}

static enum xm_status
plan(const struct xm_primitive *p, const struct xm_operand *operands,
     const struct xm_attention_run *a, uint64_t *scratch_bytes, struct xm_error *err)
{
    const struct attention *s = (const struct attention *)p;
    struct xm_attention_shape shape;
    struct stretch decodes, prompts;
    struct decoding decoding;
    XM_TRY(xm_attention_shape(&s->desc, operands, a, &shape, err));
    *scratch_bytes = 0;
    if (shape.rows == 0)
        return XM_OK;
    part_sequences(a, &decodes, &prompts);
    if (xm_attention_changes_q(&s->desc, operands))
        *scratch_bytes = xm_scratch_bytes(p, xm_attention_q_bytes(&s->desc, &shape));
    if (decodes.rows == 0)
        return XM_OK;
    XM_TRY(choose_decoding(s, &decodes, &decoding, err));
    uint64_t partial = partial_bytes(&s->desc, &decodes, decoding.most);
    *scratch_bytes += partial ? xm_scratch_bytes(p, partial) : 0;
    return XM_OK;
}

static enum xm_status
run_attention(const struct xm_primitive *p, const struct xm_operand *operands,
              const struct xm_run *run, struct xm_error *err)
{
    const struct attention *s = (const struct attention *)p;
    struct xm_attention_shape shape;
    XM_TRY(xm_attention_shape(&s->desc, operands, run->sequences, &shape, err));
    if (shape.rows == 0)
        return XM_OK;
    XM_TRY(xm_attention_check(&s->desc, operands, &shape, err));
    struct xm_scratch scratch;
    xm_scratch_begin(&scratch, p, run);
    enum xm_status status = enqueue(s, operands, &shape, &scratch, run, err);
    xm_scratch_end(&scratch);
    return status;
}

static void
describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
         size_t out_bytes)
{
    const struct attention *a = (const struct attention *)p;
    const struct xm_operand *q = &operands[XM_ATTENTION_Q],
                            *past = &operands[XM_ATTENTION_PAST_LENS];
    const char *first = "";
    if (operands[XM_ATTENTION_K].rank || xm_attention_changes_q(&a->desc, operands))
        first = xm_stage_describe(&a->inputs, NULL);
    if (q->dim[0] * q->dim[1] > XM_FEW_TOKENS * past->dim[0])
        snprintf(out, out_bytes, "%s%s%s", first, *first ? " " : "",
                 xm_stage_describe(&a->prompt, NULL));
    else
        snprintf(out, out_bytes, "%s%s%s %s", first, *first ? " " : "",
                 xm_stage_describe(&a->decode, NULL),
                 xm_stage_describe(&a->combine, NULL));
}

static void
destroy(struct xm_primitive *p)
{
    struct xm_attention_desc *d = &((struct attention *)p)->desc;
    xm_buffer_unref(d->sinks);
    xm_buffer_unref(d->q_gamma);
    xm_buffer_unref(d->k_gamma);
    xm_buffer_unref(d->v_gamma);
    xm_primitive_free(p);
}

static const uint8_t roles[] = {[XM_ATTENTION_Q] = XM_ROLE_IN,
                                [XM_ATTENTION_K] = XM_ROLE_IN,
                                [XM_ATTENTION_V] = XM_ROLE_IN,
                                [XM_ATTENTION_KEY_MASK] = XM_ROLE_IN,
                                [XM_ATTENTION_MASK] = XM_ROLE_IN,
                                [XM_ATTENTION_COS] = XM_ROLE_IN,
                                [XM_ATTENTION_SIN] = XM_ROLE_IN,
                                [XM_ATTENTION_PAST_LENS] = XM_ROLE_IN,
                                [XM_ATTENTION_SUBSEQUENCE_BEGINS] = XM_ROLE_IN,
                                [XM_ATTENTION_BLOCK_INDICES] = XM_ROLE_IN,
                                [XM_ATTENTION_BLOCK_INDICES_BEGINS] = XM_ROLE_IN,
                                [XM_ATTENTION_PREPARED] = XM_ROLE_OUT | XM_ROLE_FORM,
                                [XM_ATTENTION_OUT] = XM_ROLE_OUT};
static const struct xm_primitive_ops ops = {"attention", plan,    run_attention,
                                            describe,    destroy, XM_ROLES(roles)};

struct xm_problem_class
xm_attention_class(const struct xm_attention_desc *d)
{
    struct xm_problem_class c;
    snprintf(c.text, sizeof(c.text),
             "%" PRIu32 " heads of %" PRIu32 " and %" PRIu32 ", %" PRIu32
             " of K in %s and V in %s, %s",
             d->heads_q, d->d, d->dv, d->heads_kv, xm_element_text(d->k_cache),
             xm_element_text(d->v_cache), xm_element_text(d->element));
    return c;
}

/* Builds the kernel of the decode or prompt stage. */
static enum xm_status
build_tiled(const struct attention *a, const char *shape, struct tiles tiles,
            const struct xm_variant_table *table, struct xm_stage *out,
            struct xm_error *err)
{
    char defines[XM_STAGE_DEFINES];
    xm_defines_print(defines, sizeof(defines),
                     "%s -DTILE_TOKENS=%u -DROWS=%u -DQUERY_ROWS=%u", shape, tiles.tokens,
                     tiles.rows, sub_group_rows(&a->desc));
    out->pick.problems = xm_attention_class(&a->desc);
    return xm_stage_build_for(out, a->base.engine, table, &a->desc, defines, err);
}

static enum xm_status
build(struct attention *a, struct xm_error *err)
{
    const struct xm_attention_desc *d = &a->desc;
    struct xm_engine *engine = a->base.engine;
    const uint32_t heads = heads_of_part(d);
    char shape[XM_STAGE_DEFINES], form[64] = "", formed[XM_STAGE_DEFINES];
    xm_defines_print(shape, sizeof(shape),
                     "-DSRC=%s -DK_CACHE=%s -DV_CACHE=%s -DD=%u -DDV=%u -DHEADS_Q=%u "
                     "-DHEADS_KV=%u -DPAGE_TOKENS=%u -DCAUSAL=%d",
                     xm_element_text(d->element), xm_element_text(d->k_cache),
                     xm_element_text(d->v_cache), d->d, d->dv, d->heads_q, d->heads_kv,
                     d->page_tokens, d->causal);
    XM_TRY(xm_stage_build_for(&a->inputs, engine, &xm_attention_inputs_table, d, shape,
                              err));
    if (heads)
        xm_form_defines(&d->prepared, "FORM", form, sizeof(form));
    xm_defines_print(formed, sizeof(formed), "%s%s -DHEADS_EACH=%u", shape, form,
                     heads ? heads : 1);
    XM_TRY(xm_stage_build_for(&a->combine, engine, &xm_attention_combine_table, d, formed,
                              err));
    XM_TRY(build_tiled(a, formed, decode_tiles(a), &xm_attention_decode_table, &a->decode,
                       err));
    return build_tiled(a, shape, prompt_tiles(a), &xm_attention_prompt_table, &a->prompt,
                       err);
}

enum xm_status
xm_attention_create(struct xm_engine *engine, const struct xm_attention_desc *desc,
                    struct xm_primitive **out, struct xm_error *err)
{
    const char *why = xm_attention_supports(xm_engine_info(engine), desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "attention: %s", why);
    struct attention *a = xm_primitive_new(sizeof(*a), &ops, engine, err);
    if (!a)
        return XM_NO_MEMORY;
    a->desc = *desc;
    struct xm_buffer *const kept[] = {desc->sinks, desc->q_gamma, desc->k_gamma,
                                      desc->v_gamma};
    for (size_t i = 0; i < XM_ARRAY_LEN(kept); i++) {
        if (kept[i])
            xm_buffer_ref(kept[i]);
    }
    enum xm_status status = build(a, err);
    if (status != XM_OK) {
        destroy(&a->base);
        return status;
    }
    *out = &a->base;
    return XM_OK;
}
