/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: the chunk's K and V are written to their pages (attention_inputs.h), then every
 * query row reads the pages. At most DECODE_TOKENS tokens go the way of decode: where they are too
 * little work for the device, the keys are cut into partitions whose results are joined
 * (attention_partitions.h); more tokens are work enough without.
 */
#include "primitives/attention/attention.h"

#include <stdio.h>
#include <string.h>

#include "primitives/args.h"
#include "primitives/attention/attention_inputs.h"
#include "primitives/attention/attention_partitions.h"
#include "primitives/matrix_engine.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"

enum {
    DECODE_TOKENS = 4,
    PROMPT_ROWS = 64,       /* rows of a tile of attention_prompt_vec, about            */
    PROMPT_GROUP_ROWS = 16, /* and of attention_prompt_gen                            */
    MATRIX_TILE = 16,       /* of attention_prompt_dpas                                 */
    MATRIX_READ = 64,       /* elements of K that it reads at once                      */
    MATRIX_VALUES = 128,    /* elements of V that the rows of a sub-group of it sum     */
    SUB_GROUP_VALUES = 256  /* elements of V that the rows of a sub-group sum           */
};

/* A sub-group has the sums of its rows in registers. */
static const char *
wide_values(const void *problem)
{
    const struct xm_attention_desc *d = problem;
    return d && d->dv > SUB_GROUP_VALUES ? "a head of V is above 256 elements" : NULL;
}

/* Matrix engines take halves in whole tiles: of dimensions, of values, of neighbours in a page. */
static const char *
not_in_tiles(const void *problem)
{
    const struct xm_attention_desc *d = problem;
    if (!d)
        return NULL;
    if (d->element != XM_F16 || d->cache != XM_F16)
        return "matrix engines take queries and caches of f16";
    if (d->d % MATRIX_READ || d->dv % MATRIX_TILE || d->page_tokens % MATRIX_TILE)
        return "the heads or the pages are not whole tiles of matrix engines";
    return wide_values(d);
}

/* clang-format off */
static const struct xm_variant decode_variants[] = {
    { "attention_decode_vec",  XM_FAMILY_VEC, 0, NULL },
    { "attention_decode_sg",   XM_FAMILY_SG,  0, wide_values },
    { "attention_decode_gen",  XM_FAMILY_GEN, 0, NULL },
    { "attention_decode_ref",  XM_FAMILY_ANY, 0, NULL },
};
static const struct xm_variant combine_variants[] = {
    { "attention_combine_vec", XM_FAMILY_VEC, 0, NULL },
    { "attention_combine_sg",  XM_FAMILY_SG,  0, NULL },
    { "attention_combine_gen", XM_FAMILY_GEN, 0, NULL },
    { "attention_combine_ref", XM_FAMILY_ANY, 0, NULL },
};
static const struct xm_variant prompt_variants[] = {
    { "attention_prompt_vec",  XM_FAMILY_VEC, 0, NULL },
    { "attention_prompt_sg",   XM_FAMILY_SG,  0, wide_values },
    /* behind the other until it has been measured on engines: only XM_FORCE takes it */
    { "attention_prompt_dpas", XM_FAMILY_SG,  XM_CAP_DPAS, not_in_tiles },
    { "attention_prompt_gen",  XM_FAMILY_GEN, 0, NULL },
    { "attention_prompt_ref",  XM_FAMILY_ANY, 0, NULL },
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

static uint32_t
prompt_tile_tokens(const struct xm_attention_desc *d)
{
    uint32_t group = d->heads_q / d->heads_kv;
    return group < PROMPT_ROWS ? PROMPT_ROWS / group : 1;
}

/* Rows of a tile of attention_decode_gen: the heads of one token that share K and V. */
static uint32_t
decode_group_rows(const struct xm_attention_desc *d)
{
    uint32_t group = d->heads_q / d->heads_kv;
    return group < PROMPT_GROUP_ROWS ? group : PROMPT_GROUP_ROWS;
}

/* Rows of a sub-group of attention_decode_sg and attention_prompt_sg. */
static uint32_t
sub_group_rows(const struct xm_attention_desc *d)
{
    return d->dv > 128 ? 1 : d->dv > 64 ? 2 : 4;
}

/* Tiles of `rows` rows (token, head) that share one head of K and V. */
static uint64_t
group_tiles(const struct xm_attention_desc *d, const struct xm_attention_shape *s,
            uint64_t rows)
{
    uint64_t all = s->tokens * (d->heads_q / d->heads_kv);
    return s->batch * d->heads_kv * ((all + rows - 1) / rows);
}

/* What decode runs with: a row, its units of work for a partition, the partitions. */
struct decoding {
    struct xm_choice choice;
    uint64_t units;
    struct xm_attention_partitions partitions;
};

static uint64_t
decode_units(const struct xm_attention_desc *d, const struct xm_attention_shape *s,
             enum xm_family family)
{
    switch (family) {
    case XM_FAMILY_VEC:
        return s->batch * d->heads_kv;
    case XM_FAMILY_GEN:
        return group_tiles(d, s, decode_group_rows(d));
    case XM_FAMILY_SG:
        return group_tiles(d, s, sub_group_rows(d));
    default:
        return s->batch * s->tokens * d->heads_q;
    }
}

/* Only keys that the first token's window reaches are cut up. */
static enum xm_status
choose_decoding(const struct attention *a, const struct xm_attention_shape *s,
                struct decoding *out, struct xm_error *err)
{
    const struct xm_attention_desc *d = &a->desc;
    uint64_t first = 0;
    if (d->window && s->past + 1 > d->window)
        first = s->past + 1 - d->window;
    XM_TRY(xm_stage_choose(&a->decode, d, &out->choice, err));
    out->units = decode_units(d, s, out->choice.row->family);
    out->partitions = xm_attention_cut_keys(xm_engine_info(a->base.engine), out->units,
                                            first, s->past + s->tokens);
    return XM_OK;
}

/* Bytes of decode's partial results; one partition has none. */
static uint64_t
partial_bytes(const struct xm_attention_desc *d, const struct xm_attention_shape *s,
              const struct decoding *decoding)
{
    uint64_t rows = s->batch * s->tokens * d->heads_q, n = decoding->partitions.n;
    return n > 1 ? rows * n * (d->dv + 2) * sizeof(float) : 0;
}

/* ATTENTION_PARAMETERS of kernels/cl/include/attention.h. */
static void
add_parameters(const struct attention *a, const struct xm_operand *operands,
               const struct xm_attention_shape *s, struct xm_args *args)
{
    static const int read[] = {XM_ATTENTION_Q,        XM_ATTENTION_K_CACHE,
                               XM_ATTENTION_V_CACHE,  XM_ATTENTION_K_SCALE,
                               XM_ATTENTION_V_SCALE,  XM_ATTENTION_TABLE,
                               XM_ATTENTION_KEY_MASK, XM_ATTENTION_MASK};
    const struct xm_operand *mask = &operands[XM_ATTENTION_MASK];
    const struct xm_operand *key_mask = &operands[XM_ATTENTION_KEY_MASK];
    uint64_t head = s->tokens * (s->past + s->tokens); /* elements of one head's mask */
    bool heads = mask->buffer && mask->dim[1] != 1,
         batch = mask->buffer && mask->dim[0] != 1;
    for (size_t i = 0; i < XM_ARRAY_LEN(read); i++)
        xm_args_buffer(args, operands[read[i]].buffer);
    xm_args_buffer(args, a->desc.sinks);
    xm_args_uint(args, s->tokens);
    xm_args_ulong(args, s->past);
    xm_args_uint(args, s->max_pages);
    xm_args_uint(args, key_mask->buffer ? xm_element_bits(key_mask->element) / 8 : 0);
    xm_args_uint(args, mask->buffer ? xm_element_bits(mask->element) : 0);
    xm_args_ulong(args, batch ? head * (uint64_t)mask->dim[1] : 0);
    xm_args_ulong(args, heads ? head : 0);
    xm_args_float(args, a->desc.scale);
    xm_args_float(args, a->desc.soft_cap);
    xm_args_ulong(args, a->desc.window);
}

/* xm_stage_run, but a unit of the sg rows is a sub-group. */
static enum xm_status
run_units(const struct xm_stage *s, const struct xm_choice *c, uint64_t units,
          const struct xm_args *args, const struct xm_run *run, struct xm_error *err)
{
    if (c->row->family == XM_FAMILY_SG)
        return xm_args_run_sub_groups(args, run->queue, c->kernel, units, 1, 1, err);
    return xm_stage_run(s, c, units, args->arg, args->n, run, err);
}

/* attention_prompt_dpas: a sub-group makes a row a lane, and a part of their values. */
static enum xm_status
run_matrix_prompt(const struct attention *a, const struct xm_attention_shape *s,
                  const struct xm_args *args, struct xm_kernel *kernel,
                  const struct xm_run *run, struct xm_error *err)
{
    uint32_t lanes = xm_matrix_lanes(xm_engine_info(a->base.engine));
    uint64_t parts = (a->desc.dv + MATRIX_VALUES - 1) / MATRIX_VALUES;
    return xm_args_run_lanes(args, run->queue, kernel, lanes,
                             group_tiles(&a->desc, s, lanes) * parts, 1, 1, err);
}

static enum xm_status
enqueue_prompt(const struct attention *a, const struct xm_operand *operands,
               const struct xm_attention_shape *s, const struct xm_run *run,
               struct xm_error *err)
{
    struct xm_args args = {.n = 0};
    struct xm_choice choice;
    uint32_t tile = prompt_tile_tokens(&a->desc);
    XM_TRY(xm_stage_choose(&a->prompt, &a->desc, &choice, err));
    add_parameters(a, operands, s, &args);
    xm_args_buffer(&args, operands[XM_ATTENTION_OUT].buffer);
    xm_args_uint(&args, s->batch);
    if (choice.row->caps & XM_CAP_DPAS)
        return run_matrix_prompt(a, s, &args, choice.kernel, run, err);
    uint64_t units = s->batch * a->desc.heads_q * s->tokens;
    if (choice.row->family == XM_FAMILY_VEC)
        units = s->batch * a->desc.heads_kv * ((s->tokens + tile - 1) / tile);
    else if (choice.row->family == XM_FAMILY_GEN)
        units = group_tiles(&a->desc, s, PROMPT_GROUP_ROWS);
    else if (choice.row->family == XM_FAMILY_SG)
        units = group_tiles(&a->desc, s, sub_group_rows(&a->desc));
    return run_units(&a->prompt, &choice, units, &args, run, err);
}

/* Joins the partitions of `partial`. */
static enum xm_status
enqueue_combine(const struct attention *a, const struct xm_operand *operands,
                const struct xm_attention_shape *s, uint64_t partitions,
                const struct xm_buffer *partial, const struct xm_run *run,
                struct xm_error *err)
{
    struct xm_args args = {.n = 0};
    struct xm_choice choice;
    uint64_t rows = s->batch * s->tokens * a->desc.heads_q;
    xm_args_buffer(&args, partial);
    xm_args_buffer(&args, a->desc.sinks);
    xm_args_buffer(&args, operands[XM_ATTENTION_OUT].buffer);
    xm_args_ulong(&args, rows);
    xm_args_uint(&args, partitions);
    XM_TRY(xm_stage_choose(&a->combine, NULL, &choice, err));
    return run_units(&a->combine, &choice, rows, &args, run, err);
}

/* `partial` NULL: one partition. */
static enum xm_status
enqueue_decode(const struct attention *a, const struct xm_operand *operands,
               const struct xm_attention_shape *s, const struct decoding *decoding,
               const struct xm_buffer *partial, const struct xm_run *run,
               struct xm_error *err)
{
    const struct xm_attention_partitions *p = &decoding->partitions;
    struct xm_args args = {.n = 0};
    add_parameters(a, operands, s, &args);
    xm_args_buffer(&args, operands[XM_ATTENTION_OUT].buffer);
    xm_args_buffer(&args, partial);
    xm_args_uint(&args, s->batch);
    xm_args_ulong(&args, p->first_key);
    xm_args_ulong(&args, p->keys);
    xm_args_uint(&args, p->n);
    XM_TRY(run_units(&a->decode, &decoding->choice, decoding->units * p->n, &args, run,
                     err));
    return partial ? enqueue_combine(a, operands, s, p->n, partial, run, err) : XM_OK;
}

/* Scratch: q as attention reads it (NULL: as it is), and decode's partial results (NULL: none). */
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
    struct taken taken;
    bool decodes = s->tokens <= DECODE_TOKENS;
    uint64_t partial = 0;
    if (decodes) {
        XM_TRY(choose_decoding(a, s, &decoding, err));
        partial = partial_bytes(&a->desc, s, &decoding);
    }
    XM_TRY(take_scratch(a, operands, s, partial, scratch, &taken, err));
    memcpy(o, operands, sizeof(o));
    XM_TRY(xm_attention_take_inputs(&a->inputs, &a->desc, o, s, taken.q, run, err));
    if (taken.q)
        o[XM_ATTENTION_Q].buffer = taken.q;
    return decodes ? enqueue_decode(a, o, s, &decoding, taken.partial, run, err)
                   : enqueue_prompt(a, o, s, run, err);
}

enum xm_status
xm_attention_plan(const struct xm_primitive *p, const struct xm_operand *operands,
                  const struct xm_attention_run *a, uint64_t *scratch_bytes,
                  struct xm_error *err)
{
    const struct attention *s = (const struct attention *)p;
    struct xm_attention_shape shape;
    XM_TRY(xm_attention_shape(&s->desc, operands, a->past, &shape, err));
    *scratch_bytes = 0;
    if (xm_attention_changes_q(&s->desc, operands))
        *scratch_bytes = xm_scratch_bytes(p, xm_attention_q_bytes(&s->desc, &shape));
    if (shape.batch == 0 || shape.tokens == 0 || shape.tokens > DECODE_TOKENS)
        return XM_OK;
    struct decoding decoding;
    XM_TRY(choose_decoding(s, &shape, &decoding, err));
    uint64_t partial = partial_bytes(&s->desc, &shape, &decoding);
    *scratch_bytes += partial ? xm_scratch_bytes(p, partial) : 0;
    return XM_OK;
}

enum xm_status
xm_attention_enqueue(const struct xm_primitive *p, const struct xm_operand *operands,
                     const struct xm_attention_run *a, const struct xm_run *run,
                     struct xm_error *err)
{
    const struct attention *s = (const struct attention *)p;
    struct xm_attention_shape shape;
    XM_TRY(xm_attention_shape(&s->desc, operands, a->past, &shape, err));
    XM_TRY(xm_attention_check(&s->desc, operands, &shape, err));
    if (shape.batch == 0 || shape.tokens == 0)
        return XM_OK;
    struct xm_scratch scratch;
    xm_scratch_begin(&scratch, p, run);
    enum xm_status status = enqueue(s, operands, &shape, &scratch, run, err);
    xm_scratch_end(&scratch);
    return status;
}

static enum xm_status
refuse_plan(const struct xm_primitive *p, const struct xm_operand *operands,
            uint64_t *scratch_bytes, struct xm_error *err)
{
    (void)p, (void)operands, (void)scratch_bytes;
    return xm_fail(err, XM_INVALID, "attention needs past: use xm_attention_plan");
}

static enum xm_status
refuse_run(const struct xm_primitive *p, const struct xm_operand *operands,
           const struct xm_run *run, struct xm_error *err)
{
    (void)p, (void)operands, (void)run;
    return xm_fail(err, XM_INVALID, "attention needs past: use xm_attention_enqueue");
}

static void
describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
         size_t out_bytes)
{
    const struct attention *a = (const struct attention *)p;
    const char *first = "";
    if (operands[XM_ATTENTION_K].rank || xm_attention_changes_q(&a->desc, operands))
        first = xm_stage_describe(&a->inputs, NULL);
    if (operands[XM_ATTENTION_Q].dim[1] > DECODE_TOKENS)
        snprintf(out, out_bytes, "%s%s%s", first, *first ? " " : "",
                 xm_stage_describe(&a->prompt, &a->desc));
    else
        snprintf(out, out_bytes, "%s%s%s %s", first, *first ? " " : "",
                 xm_stage_describe(&a->decode, &a->desc),
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

static const struct xm_primitive_ops ops = {"attention", refuse_plan, refuse_run,
                                            describe, destroy};

static enum xm_status
build(struct attention *a, struct xm_error *err)
{
    const struct xm_attention_desc *d = &a->desc;
    struct xm_engine *engine = a->base.engine;
    char shape[XM_STAGE_DEFINES], defines[XM_STAGE_DEFINES];
    xm_defines_print(shape, sizeof(shape),
                     "-DSRC=%s -DCACHE=%s -DCACHE_SCALED=%d -DD=%u -DDV=%u -DHEADS_Q=%u "
                     "-DHEADS_KV=%u -DPAGE_TOKENS=%u -DCAUSAL=%d",
                     xm_element_text(d->element), xm_element_text(d->cache),
                     d->cache == XM_I8, d->d, d->dv, d->heads_q, d->heads_kv,
                     d->page_tokens, d->causal);
    XM_TRY(xm_stage_build(&a->inputs, engine, &xm_attention_inputs_table, shape, err));
    XM_TRY(xm_stage_build(&a->combine, engine, &xm_attention_combine_table, shape, err));
    xm_defines_print(defines, sizeof(defines),
                     "%s -DTILE_TOKENS=%d -DROWS=%u -DQUERY_ROWS=%u", shape,
                     DECODE_TOKENS, decode_group_rows(d), sub_group_rows(d));
    XM_TRY(xm_stage_build(&a->decode, engine, &xm_attention_decode_table, defines, err));
    xm_defines_print(defines, sizeof(defines),
                     "%s -DTILE_TOKENS=%u -DROWS=%d -DQUERY_ROWS=%u", shape,
                     prompt_tile_tokens(d), PROMPT_GROUP_ROWS, sub_group_rows(d));
    return xm_stage_build(&a->prompt, engine, &xm_attention_prompt_table, defines, err);
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
