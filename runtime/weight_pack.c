/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/weight_pack.h"

#include <string.h>

#include "runtime/util/memory.h"

/* One of a weight's arrays (data, scales, zero points): bits of a row of the view, bits of a stored
 * row, and the bit of the stored row at which the view begins. */
struct stream {
    const struct xm_bytes *from;
    struct xm_bytes *to;
    uint64_t row_bits, stored_bits, first_bit;
};

enum { STREAMS = 3 };

static struct stream
stream_of(const struct xm_bytes *from, struct xm_bytes *to, uint64_t bits,
          const struct xm_weight *w, uint64_t unit)
{
    return (struct stream){from, to, bits * (w->cols / unit),
                           bits * (xm_weight_row_cols(w) / unit),
                           bits * (w->view.first_col / unit)};
}

/* Lists the arrays that have a part for each row; returns their number. */
static size_t
find_streams(const struct xm_weight *w, struct xm_weight *out, struct stream *list)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    size_t n = 0;
    list[n++] = xm_weight_is_blocks(w)
                    ? stream_of(&w->data, &out->data, 8 * (uint64_t)f->block_bytes, w,
                                f->block_cols)
                    : stream_of(&w->data, &out->data, xm_element_bits(w->element), w, 1);
    if (w->group)
        list[n++] = stream_of(&w->scale, &out->scale, xm_element_bits(w->scale_element),
                              w, w->group);
    if (w->zero_point.p && !w->zero_point_is_scalar)
        list[n++] = stream_of(&w->zero_point, &out->zero_point,
                              xm_element_bits(w->zero_point_element), w, w->group);
    return n;
}

const char *
xm_weight_pack_sizes(const struct xm_weight *w, struct xm_weight *out)
{
    struct stream list[STREAMS];
    const uint64_t rows = w->experts * w->rows;
    if (w->group && w->order != XM_SCALE_ROW_MAJOR)
        return "the scales of a row are not contiguous";
    *out = *w;
    out->view = (struct xm_weight_view){0};
    const size_t n = find_streams(w, out, list);
    for (size_t i = 0; i < n; i++)
        list[i].to->n = (rows * list[i].row_bits + 7) / 8;
    if (w->factor.p)
        out->factor.n = w->experts * sizeof(float);
    return NULL;
}

/* Copies n bits. They need not begin or end at whole bytes, because elements may have fewer than 8
 * bits. */
static void
copy_bits(uint8_t *to, uint64_t at, const uint8_t *from, uint64_t first, uint64_t n)
{
    if (at % 8 == 0 && first % 8 == 0 && n % 8 == 0) {
        memcpy(to + at / 8, from + first / 8, (size_t)(n / 8));
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t s = first + i, t = at + i;
        const uint8_t bit = from[s / 8] >> (s % 8) & 1;
        to[t / 8] = (uint8_t)((to[t / 8] & ~(1u << (t % 8))) | (unsigned)bit << (t % 8));
    }
}

static void
copy_stream(const struct xm_weight *w, const struct stream *s, uint8_t *to)
{
    uint64_t at = 0;
    for (uint64_t e = 0; e < w->experts; e++) {
        for (uint64_t r = 0; r < w->rows; r++, at += s->row_bits) {
            const uint64_t stored = w->view.first_row + e * xm_weight_expert_rows(w) + r;
            copy_bits(to, at, s->from->p, stored * s->stored_bits + s->first_bit,
                      s->row_bits);
        }
    }
}

enum xm_status
xm_weight_pack(const struct xm_weight *w, struct xm_weight *out, void **bytes,
               struct xm_error *err)
{
    struct stream list[STREAMS];
    const char *why = xm_weight_pack_sizes(w, out);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "a slice of a weight: %s", why);
    const size_t n = find_streams(w, out, list);
    uint64_t all = out->factor.p ? xm_align_up(out->factor.n, 64) : 0, at = 0;
    for (size_t i = 0; i < n; i++)
        all += xm_align_up(list[i].to->n, 64);
    uint8_t *to = xm_calloc(1, (size_t)(all ? all : 1));
    if (!to)
        return xm_no_memory(err, "a slice of a weight");
    for (size_t i = 0; i < n; i++) {
        copy_stream(w, &list[i], to + at);
        list[i].to->p = to + at;
        at += xm_align_up(list[i].to->n, 64);
    }
    for (uint64_t e = 0; e < w->experts && w->factor.p; e++) {
        const float factor = xm_weight_factor_at(w, e);
        memcpy(to + at + e * sizeof(factor), &factor, sizeof(factor));
    }
    if (w->factor.p)
        out->factor.p = to + at;
    *bytes = to;
    return XM_OK;
}
