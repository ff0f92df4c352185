/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of attention's descriptor and operands.
 */
#include "primitives/attention/attention_check.h"

#include <inttypes.h>

#include "primitives/attention/attention_cache.h"
#include "primitives/stage.h"

/* Kernels count in 31 bits: positions, rounded up to whole tiles; rows of all heads of q, k and v,
 * plus a tile for each sequence. */
enum { MOST_POSITIONS = INT32_MAX - 4096, MOST_TILE_ROWS = 64 };

static const char *
why_not_cached(enum xm_element cache, uint32_t n)
{
    if (cache == XM_U4 && n % (2 * XM_KV_BLOCK) != 0)
        return "a 4-bit KV cache needs heads whose size is a multiple of 32";
    if (cache != XM_F16 && cache != XM_F32 && cache != XM_I8 && cache != XM_U4)
        return "the KV cache is not f16, f32, i8 or u4";
    return NULL;
}

const char *
xm_attention_supports(const struct xm_device_info *device,
                      const struct xm_attention_desc *desc)
{
    (void)device; /* the reference runs everywhere */
    if (desc->heads_kv == 0 || desc->heads_q == 0 || desc->heads_q % desc->heads_kv != 0)
        return "the number of query heads is not a multiple of the number of key heads";
    if (desc->d == 0 || desc->dv == 0 || desc->d > 1024 || desc->dv > 1024)
        return "a head size is 0 or above 1024";
    if (desc->page_tokens == 0)
        return "pages of the KV cache have no tokens";
    if (desc->element != XM_F16 && desc->element != XM_F32)
        return "queries are not f16 or f32";
    const char *why = why_not_cached(desc->k_cache, desc->d);
    return why ? why : why_not_cached(desc->v_cache, desc->dv);
}

/* Returns whether `o` has the shape [n, a, b, c] for some n. */
static bool
has_dims(const struct xm_operand *o, uint64_t a, uint64_t b, uint64_t c)
{
    return o->rank == 4 && (uint64_t)o->dim[1] == a && (uint64_t)o->dim[2] == b &&
           (uint64_t)o->dim[3] == c;
}

/* Checks that the sequences' rows follow each other without gaps and are all of q's, and that
 * positions are within bounds. Sets s->most_keys. */
static enum xm_status
check_sequences(struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_attention_run *a = s->run;
    int64_t end = 0;
    for (uint32_t i = 0; i < a->n_sequences; i++) {
        const int64_t begin = a->subsequence_begins[i], past = a->past_lens[i];
        const int64_t keys = past + a->subsequence_begins[i + 1] - begin;
        if (begin != end)
            return xm_fail(err, XM_INVALID,
                           "the tokens of sequence %" PRIu32 " begin at %" PRId64
                           ", but the tokens before it end at %" PRId64,
                           i, begin, end);
        end = a->subsequence_begins[i + 1];
        if (end < begin)
            return xm_fail(err, XM_INVALID, "sequence %" PRIu32 " has %" PRId64 " tokens",
                           i, end - begin);
        if (past < 0 || keys > MOST_POSITIONS)
            return xm_fail(err, XM_INVALID,
                           "sequence %" PRIu32 " would reach position %" PRId64
                           ", at most %d is supported",
                           i, past < 0 ? past : keys, MOST_POSITIONS);
        s->most_keys = (uint64_t)keys > s->most_keys ? (uint64_t)keys : s->most_keys;
    }
    if ((uint64_t)end != s->rows)
        return xm_fail(err, XM_INVALID,
                       "the sequences have %" PRId64 " tokens, but q has %" PRIu64, end,
                       s->rows);
    return XM_OK;
}

enum xm_status
xm_attention_shape(const struct xm_attention_desc *d, const struct xm_operand *operands,
                   const struct xm_attention_run *a, struct xm_attention_shape *out,
                   struct xm_error *err)
{
    const struct xm_operand *q = &operands[XM_ATTENTION_Q];
    if (q->rank != 4 || q->dim[0] < 0 || q->dim[1] < 0 ||
        (uint64_t)q->dim[2] != d->heads_q || (uint64_t)q->dim[3] != d->d)
        return xm_fail(err, XM_INVALID, "q is not [B, T, %u, %u]", d->heads_q, d->d);
    if (q->dim[0] > INT32_MAX || q->dim[1] > INT32_MAX ||
        q->dim[0] * q->dim[1] > INT32_MAX ||
        (uint64_t)(q->dim[0] * q->dim[1]) * (d->heads_q + 2 * (uint64_t)d->heads_kv) +
                (uint64_t)a->n_sequences * MOST_TILE_ROWS >
            INT32_MAX)
        return xm_fail(err, XM_INVALID, "a dimension of attention is above 2^31 - 1");
    *out = (struct xm_attention_shape){
        .batch = (uint64_t)q->dim[0],
        .tokens = (uint64_t)q->dim[1],
        .rows = (uint64_t)(q->dim[0] * q->dim[1]),
        .sequences = a->n_sequences,
        .run = a,
    };
    return check_sequences(out, err);
}

static enum xm_status
check_tables(const struct xm_operand *operands, const struct xm_attention_shape *s,
             struct xm_error *err)
{
    const struct {
        enum xm_attention_operand operand;
        const char *name;
        uint64_t n; /* 0: any */
    } tables[] = {
        {XM_ATTENTION_PAST_LENS, "past_lens", s->sequences},
        {XM_ATTENTION_SUBSEQUENCE_BEGINS, "subsequence_begins", s->sequences + 1},
        {XM_ATTENTION_BLOCK_INDICES, "block_indices", 0},
        {XM_ATTENTION_BLOCK_INDICES_BEGINS, "block_indices_begins", s->sequences + 1},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(tables); i++) {
        const struct xm_operand *o = &operands[tables[i].operand];
        XM_TRY(xm_operand_check(o, tables[i].name, XM_I32, err));
        if (o->rank != 1 || (tables[i].n && (uint64_t)o->dim[0] != tables[i].n))
            return xm_fail(err, XM_INVALID, "%s is not a list of %" PRIu64 " numbers",
                           tables[i].name, tables[i].n);
    }
    return XM_OK;
}

/* Returns whether each sequence has `tokens` tokens. */
static bool
have_tokens(const struct xm_attention_run *a, uint64_t tokens)
{
    for (uint32_t i = 0; i < a->n_sequences; i++) {
        if (a->subsequence_begins[i + 1] - a->subsequence_begins[i] != (int64_t)tokens)
            return false;
    }
    return true;
}

static bool
have_same_past(const struct xm_attention_run *a)
{
    for (uint32_t i = 1; i < a->n_sequences; i++) {
        if (a->past_lens[i] != a->past_lens[0])
            return false;
    }
    return true;
}

static enum xm_status
check_key_mask(const struct xm_operand *o, const struct xm_attention_shape *s,
               struct xm_error *err)
{
    const enum xm_element e = o->element;
    if (e != XM_I64 && e != XM_I32 && e != XM_U8 && e != XM_BOOL)
        return xm_fail(err, XM_INVALID, "the key mask is %s, not i64, i32 or u8",
                       xm_element_text(e));
    XM_TRY(xm_operand_check(o, "key_mask", e, err));
    if (o->rank != 2 || (uint64_t)o->dim[0] != s->sequences ||
        (uint64_t)o->dim[1] < s->most_keys)
        return xm_fail(err, XM_INVALID,
                       "the key mask is not [%" PRIu64 ", %" PRIu64 " or more]",
                       s->sequences, s->most_keys);
    return XM_OK;
}

static enum xm_status
check_mask(const struct xm_attention_desc *d, const struct xm_operand *o,
           const struct xm_attention_shape *s, struct xm_error *err)
{
    const uint64_t tokens = s->rows / s->sequences;
    if (o->element != XM_F16 && o->element != XM_F32)
        return xm_fail(err, XM_INVALID, "the mask is %s, not f16 or f32",
                       xm_element_text(o->element));
    XM_TRY(xm_operand_check(o, "mask", o->element, err));
    if (!have_tokens(s->run, tokens) || !have_same_past(s->run))
        return xm_fail(err, XM_INVALID, "a mask needs sequences of equal length");
    bool heads = o->dim[1] == 1 || (uint64_t)o->dim[1] == d->heads_q;
    bool batch = o->dim[0] == 1 || (uint64_t)o->dim[0] == s->sequences;
    if (!batch || !heads || !has_dims(o, (uint64_t)o->dim[1], tokens, s->most_keys))
        return xm_fail(err, XM_INVALID,
                       "the mask is not [B|1, heads|1, %" PRIu64 ", %" PRIu64 "]", tokens,
                       s->most_keys);
    return XM_OK;
}

/* Checks the sizes of the cos and sin tables and of the norms' gammas. */
static enum xm_status
check_inputs(const struct xm_attention_desc *d, const struct xm_operand *operands,
             const struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_operand *cos = &operands[XM_ATTENTION_COS],
                            *sin = &operands[XM_ATTENTION_SIN];
    const struct {
        const struct xm_buffer *gamma;
        uint32_t n;
    } norms[] = {{d->q_gamma, d->d}, {d->k_gamma, d->d}, {d->v_gamma, d->dv}};
    for (size_t i = 0; i < XM_ARRAY_LEN(norms); i++) {
        if (norms[i].gamma &&
            xm_buffer_bytes(norms[i].gamma) < norms[i].n * sizeof(float))
            return xm_fail(err, XM_INVALID,
                           "the weight of a norm has fewer elements than a head");
    }
    if (!cos->buffer && !sin->buffer)
        return XM_OK;
    XM_TRY(xm_operand_check(cos, "cos", XM_F32, err));
    XM_TRY(xm_operand_check(sin, "sin", XM_F32, err));
    if (cos->rank != 3 || sin->rank != 3 || cos->dim[2] != sin->dim[2] ||
        xm_operand_elements(cos) != xm_operand_elements(sin) ||
        (uint64_t)cos->dim[1] != s->tokens ||
        (cos->dim[0] != 1 && (uint64_t)cos->dim[0] != s->batch))
        return xm_fail(err, XM_INVALID, "cos and sin are not [B|1, %" PRIu64 ", R]",
                       s->tokens);
    if (cos->dim[0] != (int64_t)s->batch && !have_tokens(s->run, s->tokens))
        return xm_fail(err, XM_INVALID,
                       "cos and sin of one batch row need sequences of equal length");
    if (cos->dim[2] % 2 != 0 || (uint64_t)cos->dim[2] > d->d)
        return xm_fail(err, XM_INVALID, "%" PRId64 " rotated dimensions of a head of %u",
                       cos->dim[2], d->d);
    return XM_OK;
}

static enum xm_status
check_keys(const struct xm_attention_desc *d, const struct xm_operand *operands,
           const struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_operand *k = &operands[XM_ATTENTION_K],
                            *v = &operands[XM_ATTENTION_V];
    if (!k->buffer)
        return XM_OK;
    XM_TRY(xm_operand_check(k, "k", d->element, err));
    XM_TRY(xm_operand_check(v, "v", d->element, err));
    if (!has_dims(k, s->tokens, d->heads_kv, d->d) ||
        !has_dims(v, s->tokens, d->heads_kv, d->dv) || (uint64_t)k->dim[0] != s->batch ||
        (uint64_t)v->dim[0] != s->batch)
        return xm_fail(err, XM_INVALID, "k or v is not [B, T, %u, D] like q",
                       d->heads_kv);
    return XM_OK;
}

enum xm_status
xm_attention_check(const struct xm_attention_desc *d, const struct xm_operand *operands,
                   const struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_operand *out = &operands[XM_ATTENTION_OUT],
                            *mask = &operands[XM_ATTENTION_MASK],
                            *key_mask = &operands[XM_ATTENTION_KEY_MASK];
    XM_TRY(xm_operand_check(&operands[XM_ATTENTION_Q], "q", d->element, err));
    XM_TRY(xm_operand_check(out, "out", d->element, err));
    if (xm_operand_elements(out) != s->rows * d->heads_q * d->dv)
        return xm_fail(err, XM_INVALID, "out is not [%" PRIu64 ", %" PRIu64 ", %u, %u]",
                       s->batch, s->tokens, d->heads_q, d->dv);
    XM_TRY(check_tables(operands, s, err));
    XM_TRY(check_keys(d, operands, s, err));
    XM_TRY(check_inputs(d, operands, s, err));
    XM_TRY(xm_attention_check_slabs(d, s->run, err));
    if (d->sinks && xm_buffer_bytes(d->sinks) < d->heads_q * sizeof(float))
        return xm_fail(err, XM_INVALID,
                       "there are fewer attention sinks than query heads");
    if (key_mask->buffer)
        XM_TRY(check_key_mask(key_mask, s, err));
    return mask->buffer ? check_mask(d, mask, s, err) : XM_OK;
}
