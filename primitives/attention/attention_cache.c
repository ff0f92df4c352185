/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of attention's cache: their layout, copying and reading a page, kernel arguments.
 */
#include "primitives/attention/attention_cache.h"

#include <inttypes.h>

#include "runtime/util/memory.h"

enum { PART_ALIGN = 64, SLAB_PAGES = 1 << XM_KV_SLAB_SHIFT };

/* ---- layout ------------------------------------------------------------------------- */

/* Appends a part of `rows` rows of `width` elements to a page: *begin is its offset; moves *end
 * behind it. False: overflow. */
static bool
add_part(uint64_t rows, uint64_t width, enum xm_element e, uint64_t *begin, uint64_t *end)
{
    uint64_t n = 0, bytes = 0;
    *begin = *end;
    if (!xm_mul_size(rows, width, &n) || !xm_element_bytes(e, n, &bytes) ||
        !xm_add_size(bytes, PART_ALIGN - 1, &bytes))
        return false;
    return xm_add_size(*begin, bytes / PART_ALIGN * PART_ALIGN, end);
}

/* Returns the scales (one byte each) of a row of n elements. */
static uint64_t
scales_of(enum xm_element cache, uint32_t n)
{
    return xm_attention_rotates(cache) ? ((uint64_t)n + XM_KV_BLOCK - 1) / XM_KV_BLOCK
                                       : 0;
}

bool
xm_attention_rotates(enum xm_element cache)
{
    return cache == XM_I8 || cache == XM_U4;
}

uint64_t
xm_attention_row_bytes(enum xm_element cache, uint32_t n)
{
    return (uint64_t)n * xm_element_bits(cache) / 8 + scales_of(cache, n);
}

bool
xm_attention_page(const struct xm_attention_desc *d, struct xm_kv_page *out)
{
    const uint64_t rows = (uint64_t)d->heads_kv * d->page_tokens;
    uint64_t k = 0, end = 0;
    *out = (struct xm_kv_page){0};
    bool fits = add_part(rows, d->d, d->k_cache, &k, &end) &&
                add_part(rows, d->dv, d->v_cache, &out->v, &end) &&
                add_part(rows, scales_of(d->k_cache, d->d), XM_U8, &out->k_scale, &end) &&
                add_part(rows, scales_of(d->v_cache, d->dv), XM_U8, &out->v_scale, &end);
    out->bytes = end;
    return fits;
}

/* ---- pages -------------------------------------------------------------------------- */

/* Finds the slab and byte offset of the page that a page word denotes. XM_INVALID: there is no such
 * page. */
static enum xm_status
find_page(struct xm_buffer *const *slabs, const struct xm_kv_page *page, int32_t word,
          struct xm_buffer **slab, uint64_t *offset, struct xm_error *err)
{
    const uint32_t number = (uint32_t)word >> XM_KV_SLAB_SHIFT,
                   index = (uint32_t)word % SLAB_PAGES;
    *slab = word < 0 ? NULL : slabs[number];
    if (!*slab || !xm_mul_size(index, page->bytes, offset) ||
        xm_buffer_bytes(*slab) < page->bytes ||
        *offset > xm_buffer_bytes(*slab) - page->bytes)
        return xm_fail(err, XM_INVALID,
                       "page number %" PRId32 " is not a page of the KV cache", word);
    return XM_OK;
}

enum xm_status
xm_attention_copy_page(struct xm_buffer *const *slabs, const struct xm_kv_page *page,
                       int32_t from, int32_t to, struct xm_queue *queue,
                       struct xm_error *err)
{
    struct xm_buffer *src = NULL, *dst = NULL;
    uint64_t src_at = 0, dst_at = 0;
    XM_TRY(find_page(slabs, page, from, &src, &src_at, err));
    XM_TRY(find_page(slabs, page, to, &dst, &dst_at, err));
    return from == to ? XM_OK
                      : xm_queue_copy(queue, src, src_at, dst, dst_at, page->bytes, err);
}

enum xm_status
xm_attention_read_page(struct xm_buffer *const *slabs, const struct xm_kv_page *page,
                       int32_t word, uint8_t *out, struct xm_queue *queue,
                       struct xm_error *err)
{
    struct xm_buffer *slab = NULL;
    uint64_t at = 0;
    XM_TRY(find_page(slabs, page, word, &slab, &at, err));
    return xm_queue_read(queue, slab, at, out, page->bytes, err);
}

/* ---- for kernels -------------------------------------------------------------------- */

static const struct xm_buffer *
first_slab(const struct xm_attention_run *a)
{
    uint32_t i = 0;
    while (i + 1 < XM_KV_SLABS && !a->slabs[i])
        i++;
    return a->slabs[i];
}

void
xm_attention_put_cache(struct xm_args *args, const struct xm_operand *operands,
                       const struct xm_attention_run *a)
{
    static const char *const slabs[XM_KV_SLABS] = {"slab0", "slab1", "slab2", "slab3",
                                                   "slab4", "slab5", "slab6", "slab7"};
    static const struct {
        enum xm_attention_operand operand;
        const char *name;
    } tables[] = {
        {XM_ATTENTION_PAST_LENS, "past_lens"},
        {XM_ATTENTION_SUBSEQUENCE_BEGINS, "subsequence_begins"},
        {XM_ATTENTION_BLOCK_INDICES, "block_indices"},
        {XM_ATTENTION_BLOCK_INDICES_BEGINS, "block_indices_begins"},
    };
    const struct xm_buffer *first = first_slab(a);
    for (uint32_t i = 0; i < XM_KV_SLABS; i++)
        xm_put_buffer(args, slabs[i], a->slabs[i] ? a->slabs[i] : first);
    for (size_t i = 0; i < XM_ARRAY_LEN(tables); i++)
        xm_put_buffer(args, tables[i].name, operands[tables[i].operand].buffer);
}

enum xm_status
xm_attention_check_slabs(const struct xm_attention_desc *d,
                         const struct xm_attention_run *a, struct xm_error *err)
{
    struct xm_kv_page page;
    if (!xm_attention_page(d, &page))
        return xm_fail(err, XM_INVALID, "a page of the KV cache is too large");
    if (!a->slabs || !first_slab(a))
        return xm_fail(err, XM_INVALID, "the KV cache has no slab");
    for (uint32_t i = 0; i < XM_KV_SLABS; i++) {
        if (a->slabs[i] && xm_buffer_bytes(a->slabs[i]) < page.bytes)
            return xm_fail(err, XM_INVALID,
                           "slab %u has %" PRIu64 " bytes, a page has %" PRIu64, i,
                           xm_buffer_bytes(a->slabs[i]), page.bytes);
    }
    return XM_OK;
}
