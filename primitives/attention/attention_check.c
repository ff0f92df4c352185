/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of attention's descriptor and operands, and copying pages.
 */
#include "primitives/attention/attention_check.h"

#include <inttypes.h>

#include "primitives/stage.h"

const char *
xm_attention_supports(const struct xm_device_info *device,
                      const struct xm_attention_desc *desc)
{
    (void)device; /* the reference runs everywhere */
    if (desc->heads_kv == 0 || desc->heads_q == 0 || desc->heads_q % desc->heads_kv != 0)
        return "the key heads do not divide the query heads";
    if (desc->d == 0 || desc->dv == 0 || desc->d > 1024 || desc->dv > 1024)
        return "a head dimension is 0 or above 1024";
    if (desc->page_tokens == 0)
        return "pages hold no tokens";
    if (desc->element != XM_F16 && desc->element != XM_F32)
        return "queries are not f16 or f32";
    if (desc->cache != XM_F16 && desc->cache != XM_F32 && desc->cache != XM_I8)
        return "the cache is not f16, f32 or i8";
    return NULL;
}

/* Whether `o` is [n, a, b, c] for some n. */
static bool
has_dims(const struct xm_operand *o, uint64_t a, uint64_t b, uint64_t c)
{
    return o->rank == 4 && (uint64_t)o->dim[1] == a && (uint64_t)o->dim[2] == b &&
           (uint64_t)o->dim[3] == c;
}

enum xm_status
xm_attention_shape(const struct xm_attention_desc *d, const struct xm_operand *operands,
                   uint64_t past, struct xm_attention_shape *out, struct xm_error *err)
{
    const struct xm_operand *q = &operands[XM_ATTENTION_Q];
    const struct xm_operand *table = &operands[XM_ATTENTION_TABLE];
    if (q->rank != 4 || q->dim[0] < 0 || q->dim[1] < 0 ||
        (uint64_t)q->dim[2] != d->heads_q || (uint64_t)q->dim[3] != d->d)
        return xm_fail(err, XM_INVALID, "q is not [B, T, %u, %u]", d->heads_q, d->d);
    if (table->rank != 2 || table->dim[0] != q->dim[0] || table->dim[1] < 0)
        return xm_fail(err, XM_INVALID, "the block table is not [%" PRId64 ", pages]",
                       q->dim[0]);
    *out = (struct xm_attention_shape){(uint64_t)q->dim[0], (uint64_t)q->dim[1], past,
                                       (uint64_t)table->dim[1]};
    if (out->batch > INT32_MAX || out->tokens > INT32_MAX || out->max_pages > INT32_MAX ||
        past > INT64_MAX / 2)
        return xm_fail(err, XM_INVALID, "a dimension of attention is above 2^31 - 1");
    if ((past + out->tokens + d->page_tokens - 1) / d->page_tokens > out->max_pages)
        return xm_fail(err, XM_INVALID,
                       "%" PRIu64 " positions do not fit a block table of %" PRIu64
                       " pages of %u",
                       past + out->tokens, out->max_pages, d->page_tokens);
    return XM_OK;
}

static enum xm_status
check_cache(const struct xm_attention_desc *d, const struct xm_operand *operands,
            bool is_v, struct xm_error *err)
{
    const char *name = is_v ? "v_cache" : "k_cache";
    const struct xm_operand *cache =
        &operands[is_v ? XM_ATTENTION_V_CACHE : XM_ATTENTION_K_CACHE];
    const struct xm_operand *scale =
        &operands[is_v ? XM_ATTENTION_V_SCALE : XM_ATTENTION_K_SCALE];
    XM_TRY(xm_operand_check(cache, name, d->cache, err));
    if (!has_dims(cache, d->heads_kv, d->page_tokens, is_v ? d->dv : d->d))
        return xm_fail(err, XM_INVALID, "%s is not [pages, %u, %u, %u]", name,
                       d->heads_kv, d->page_tokens, is_v ? d->dv : d->d);
    if (d->cache != XM_I8)
        return XM_OK;
    XM_TRY(xm_operand_check(scale, is_v ? "v_scale" : "k_scale", XM_F32, err));
    uint64_t rows = xm_operand_rows(cache);
    if (xm_operand_elements(scale) != rows)
        return xm_fail(err, XM_INVALID, "%s has %" PRIu64 " scales for %" PRIu64 " rows",
                       name, xm_operand_elements(scale), rows);
    return XM_OK;
}

static enum xm_status
check_masks(const struct xm_attention_desc *d, const struct xm_operand *operands,
            const struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_operand *key_mask = &operands[XM_ATTENTION_KEY_MASK];
    const struct xm_operand *mask = &operands[XM_ATTENTION_MASK];
    uint64_t keys = s->past + s->tokens;
    if (key_mask->buffer) {
        enum xm_element e = key_mask->element;
        if (e != XM_I64 && e != XM_I32 && e != XM_U8 && e != XM_BOOL)
            return xm_fail(err, XM_INVALID, "the key mask is %s, not i64, i32 or u8",
                           xm_element_text(e));
        XM_TRY(xm_operand_check(key_mask, "key_mask", e, err));
        if (xm_operand_elements(key_mask) != s->batch * keys)
            return xm_fail(err, XM_INVALID,
                           "the key mask has %" PRIu64 " elements, expected %" PRIu64,
                           xm_operand_elements(key_mask), s->batch * keys);
    }
    if (!mask->buffer)
        return XM_OK;
    if (mask->element != XM_F16 && mask->element != XM_F32)
        return xm_fail(err, XM_INVALID, "the mask is %s, not f16 or f32",
                       xm_element_text(mask->element));
    XM_TRY(xm_operand_check(mask, "mask", mask->element, err));
    bool heads = mask->dim[1] == 1 || (uint64_t)mask->dim[1] == d->heads_q;
    bool batch = mask->dim[0] == 1 || (uint64_t)mask->dim[0] == s->batch;
    if (!batch || !heads || !has_dims(mask, (uint64_t)mask->dim[1], s->tokens, keys))
        return xm_fail(err, XM_INVALID,
                       "the mask is not [B|1, heads|1, %" PRIu64 ", %" PRIu64 "]",
                       s->tokens, keys);
    return XM_OK;
}

/* The tables of the rotation, and the norms' factors. */
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
            return xm_fail(err, XM_INVALID, "a norm has fewer factors than a head");
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
    if (cos->dim[2] % 2 != 0 || (uint64_t)cos->dim[2] > d->d)
        return xm_fail(err, XM_INVALID, "%" PRId64 " rotated dimensions of a head of %u",
                       cos->dim[2], d->d);
    return XM_OK;
}

enum xm_status
xm_attention_check(const struct xm_attention_desc *d, const struct xm_operand *operands,
                   const struct xm_attention_shape *s, struct xm_error *err)
{
    const struct xm_operand *k = &operands[XM_ATTENTION_K],
                            *v = &operands[XM_ATTENTION_V];
    const struct xm_operand *out = &operands[XM_ATTENTION_OUT];
    XM_TRY(xm_operand_check(&operands[XM_ATTENTION_Q], "q", d->element, err));
    XM_TRY(xm_operand_check(&operands[XM_ATTENTION_TABLE], "table", XM_I32, err));
    XM_TRY(xm_operand_check(out, "out", d->element, err));
    if (xm_operand_elements(out) != s->batch * s->tokens * d->heads_q * d->dv)
        return xm_fail(err, XM_INVALID, "out is not [%" PRIu64 ", %" PRIu64 ", %u, %u]",
                       s->batch, s->tokens, d->heads_q, d->dv);
    if (k->buffer) {
        XM_TRY(xm_operand_check(k, "k", d->element, err));
        XM_TRY(xm_operand_check(v, "v", d->element, err));
        if (!has_dims(k, s->tokens, d->heads_kv, d->d) ||
            !has_dims(v, s->tokens, d->heads_kv, d->dv) ||
            (uint64_t)k->dim[0] != s->batch || (uint64_t)v->dim[0] != s->batch)
            return xm_fail(err, XM_INVALID, "k or v is not [B, T, %u, D] like q",
                           d->heads_kv);
    }
    XM_TRY(check_inputs(d, operands, s, err));
    XM_TRY(check_cache(d, operands, false, err));
    XM_TRY(check_cache(d, operands, true, err));
    if (d->sinks && xm_buffer_bytes(d->sinks) < d->heads_q * sizeof(float))
        return xm_fail(err, XM_INVALID, "there are fewer sinks than query heads");
    return check_masks(d, operands, s, err);
}

enum xm_status
xm_attention_copy_page(const struct xm_operand *cache, uint32_t from, uint32_t to,
                       struct xm_queue *queue, struct xm_error *err)
{
    uint64_t pages = cache->rank ? (uint64_t)cache->dim[0] : 0, bytes = 0;
    if (from >= pages || to >= pages)
        return xm_fail(err, XM_INVALID, "page %u to %u in a cache of %" PRIu64 " pages",
                       from, to, pages);
    XM_TRY(xm_operand_check(cache, "cache", cache->element, err));
    if (from == to)
        return XM_OK;
    xm_element_bytes(cache->element, xm_operand_elements(cache) / pages, &bytes);
    return xm_queue_copy(queue, cache->buffer, from * bytes, cache->buffer, to * bytes,
                         bytes, err);
}
