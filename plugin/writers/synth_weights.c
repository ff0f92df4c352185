/* SPDX-License-Identifier: Apache-2.0
 *
 * Random constants, written into the file as they are made.
 *
 *     w = (q - zp) scale,  q uniform over its range, scale so that a row of k has unit gain
 */
#include <math.h>
#include <string.h>

#include "plugin/writers/synth.h"

enum { PROGRESS_BYTES = 1 << 20 };

/* xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators") */
static uint64_t
next(struct xm_synth *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return s->random * 0x2545f4914f6cdd1dull;
}

static void
fill_random(struct xm_synth *s, uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i += sizeof(uint64_t)) {
        uint64_t r = next(s), room = n - i;
        memcpy(p + i, &r, room < sizeof(r) ? (size_t)room : sizeof(r));
        if (s->progress && i % PROGRESS_BYTES == 0)
            s->progress(s->bin.used - room, s->all_bytes, s->ctx);
    }
}

static struct xm_value *
constant(struct xm_synth *s, const char *name, enum xm_element e, uint32_t rank,
         const uint64_t *dims, uint8_t **bytes)
{
    struct xm_type type = {.element = e, .shape.rank = rank};
    uint64_t n = 1, n_bytes = 0;
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dim[i] = xm_dim_const((int64_t)dims[i]);
        n *= dims[i];
    }
    if (!xm_element_bytes(e, n, &n_bytes))
        return NULL;
    *bytes = xm_bin_file_take(&s->bin, n_bytes, 64, s->err);
    if (!*bytes)
        return NULL;
    struct xm_builder b = s->b;
    b.name = name;
    return xm_const(&b, &type, (struct xm_data){*bytes, n_bytes});
}

/* Random f16 values in (0.75, 1.25) times `scale`. */
static void
fill_scales(struct xm_synth *s, uint8_t *p, uint64_t n, float scale)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i++)
        xm_store_float(XM_F16, p, i,
                       scale * (0.75f + 0.5f * (float)(next(s) >> 40) * 0x1p-24f));
}

/* Uniform f16 values in (-a, a), standard deviation a / sqrt(3). */
static void
fill_f16(struct xm_synth *s, uint8_t *p, uint64_t n, float a)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i++) {
        xm_store_float(XM_F16, p, i,
                       a * (2.0f * (float)(next(s) >> 40) * 0x1p-24f - 1.0f));
        if (s->progress && i % PROGRESS_BYTES == 0)
            s->progress(s->bin.used - 2 * (n - i), s->all_bytes, s->ctx);
    }
}

static struct xm_value *
to_f16(struct xm_synth *s, struct xm_value *x)
{
    return xm_convert(&s->b, x, XM_F16);
}

/* The zero points: the middle of the range, give or take one. */
static struct xm_value *
zero_points(struct xm_synth *s, const char *name, enum xm_element e, uint32_t rank,
            const uint64_t *dims, uint64_t n)
{
    uint8_t *bytes = NULL;
    struct xm_value *zp = constant(s, name, e, rank, dims, &bytes);
    for (uint64_t i = 0; zp && i < n && !s->m->blank; i += 1 + (e == XM_U4)) {
        if (e == XM_U4)
            bytes[i / 2] = (uint8_t)(0x77 + (next(s) & 0x11));
        else
            bytes[i] = (uint8_t)(127 + (next(s) & 1));
    }
    return zp;
}

struct xm_value *
xm_synth_weight(struct xm_synth *s, const char *name, uint32_t experts, uint32_t n,
                uint32_t k, enum xm_element e, uint32_t group)
{
    bool has_zero = e == XM_U4 || e == XM_U8;
    uint32_t g = group ? group : k, lead = experts ? 1 : 0;
    uint64_t dims[4] = {experts, n, k, 1}, scales[4] = {experts, n, 1, 1};
    uint32_t rank = 2;
    uint8_t *bytes = NULL;
    if (group && e != XM_F16) {
        dims[2] = scales[2] = k / g;
        dims[3] = g;
        rank = 3;
    }
    uint64_t count = (uint64_t)(experts ? experts : 1) * n * (k / g);
    const uint64_t *from = experts ? dims : dims + 1,
                   *scale_from = experts ? scales : scales + 1;
    struct xm_value *w = constant(s, name, e, rank + lead, from, &bytes);
    if (!w)
        return NULL;
    if (e == XM_F16) {
        fill_f16(s, bytes, count * g, sqrtf(3.0f / (float)k));
        return xm_convert(&s->b, w, XM_F32);
    }
    fill_random(s, bytes, w->node->attr.data.n_bytes);
    float spread = (float)(1 << xm_element_bits(e)) / sqrtf(12.0f);
    struct xm_value *zp =
        has_zero ? zero_points(s, "", e, rank + lead, scale_from, count) : NULL;
    struct xm_value *scale = constant(s, "", XM_F16, rank + lead, scale_from, &bytes);
    if (!scale)
        return NULL;
    fill_scales(s, bytes, count, 1.0f / (spread * sqrtf((float)k)));
    struct xm_value *x = to_f16(s, w);
    if (has_zero)
        x = xm_op2(&s->b, XM_OP_SUBTRACT, x, to_f16(s, zp));
    x = xm_op2(&s->b, XM_OP_MULTIPLY, x, scale);
    const int64_t target[3] = {experts, n, k};
    if (group)
        x = xm_synth_reshape(s, x, false, (int)(2 + lead), target + 1 - lead);
    return xm_convert(&s->b, x, XM_F32);
}

struct xm_value *
xm_synth_filled(struct xm_synth *s, uint32_t rank, uint32_t n, float value)
{
    uint64_t dims[XM_MAX_RANK];
    uint8_t *bytes = NULL;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i + 1 == rank ? n : 1;
    struct xm_value *v = constant(s, "", XM_F32, rank, dims, &bytes);
    for (uint32_t i = 0; v && i < n; i++)
        xm_store_float(XM_F32, bytes, i, value);
    return v;
}

struct xm_value *
xm_synth_int(struct xm_synth *s, enum xm_element e, int64_t v)
{
    return xm_const_ints(&s->b, e, &v, -1);
}

struct xm_value *
xm_synth_ints(struct xm_synth *s, enum xm_element e, int n, const int64_t *v)
{
    return xm_const_ints(&s->b, e, v, n);
}
