/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers in the formats of weights.
 */
#include <math.h>
#include <string.h>

#include "plugin/writers/synth.h"
#include "runtime/util/random.h"

enum { PROGRESS_BYTES = 1 << 20 };

uint64_t
xm_synth_next(struct xm_synth *s)
{
    return xm_random_next(&s->random);
}

float
xm_synth_uniform(struct xm_synth *s)
{
    return 2.0f * (float)(xm_synth_next(s) >> 40) * 0x1p-24f - 1.0f;
}

static void
show(struct xm_synth *s, uint64_t left)
{
    if (s->progress)
        s->progress(s->bin.used - left, s->all_bytes, s->ctx);
}

void
xm_synth_fill(struct xm_synth *s, uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i += sizeof(uint64_t)) {
        uint64_t r = xm_synth_next(s), room = n - i;
        memcpy(p + i, &r, room < sizeof(r) ? (size_t)room : sizeof(r));
        if (i % PROGRESS_BYTES == 0)
            show(s, room);
    }
}

void
xm_synth_fill_floats(struct xm_synth *s, enum xm_element e, uint8_t *p, uint64_t n,
                     float a)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i++) {
        xm_store_float(e, p, i, a * xm_synth_uniform(s));
        if (i % PROGRESS_BYTES == 0)
            show(s, (n - i) * xm_element_bits(e) / 8);
    }
}

static bool
is_bias(enum xm_decoder_tensor t)
{
    const char *name = xm_tensor_infos[t].name;
    const size_t n = strlen(name);
    return t == XM_TENSOR_ATTN_SINKS || t == XM_TENSOR_SHEXP_SWITCH ||
           (n > 5 && strcmp(name + n - 5, ".bias") == 0);
}

void
xm_synth_vector(struct xm_synth *s, enum xm_decoder_tensor t, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++) {
        /* only the first quarter of the pairs is rotated */
        if (t == XM_TENSOR_ROPE_FREQS)
            out[i] = i < n / 4 ? 1.0f : 1e30f;
        else
            out[i] = is_bias(t) ? 0.1f * xm_synth_uniform(s) : 1.0f;
    }
}

/* ---- blocks -------------------------------------------------------------------------- */

/* The byte offsets of a block's scale and of its minimum, which is set to `minimum` times the scale
 * so that the mean of the numbers is 0. SCALE_BYTE: the scale is an exponent of one byte. */
enum { NO_MINIMUM = -1, SCALE_BYTE = -2 };
static const struct scales {
    enum xm_weight_format format;
    int at, minimum_at;
    float minimum; /* minimum / scale */
} all_scales[] = {
    {XM_WEIGHT_Q4_0, 0, NO_MINIMUM, 0},   {XM_WEIGHT_Q4_1, 0, 2, -7.5f},
    {XM_WEIGHT_Q5_0, 0, NO_MINIMUM, 0},   {XM_WEIGHT_Q5_1, 0, 2, -15.5f},
    {XM_WEIGHT_Q8_0, 0, NO_MINIMUM, 0},   {XM_WEIGHT_Q2_K, 80, 82, 1.5f},
    {XM_WEIGHT_Q3_K, 108, NO_MINIMUM, 0}, {XM_WEIGHT_Q4_K, 0, 2, 7.5f},
    {XM_WEIGHT_Q5_K, 0, 2, 15.5f},        {XM_WEIGHT_Q6_K, 208, NO_MINIMUM, 0},
    {XM_WEIGHT_IQ4_NL, 0, NO_MINIMUM, 0}, {XM_WEIGHT_IQ4_XS, 0, NO_MINIMUM, 0},
    {XM_WEIGHT_MXFP4, 0, SCALE_BYTE, 0},
};

static const struct scales *
scales_of(enum xm_weight_format f)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(all_scales); i++) {
        if (all_scales[i].format == f)
            return &all_scales[i];
    }
    return NULL;
}

bool
xm_synth_has_blocks(enum xm_weight_format f)
{
    return scales_of(f) != NULL;
}

static void
set_scale(const struct scales *c, uint8_t *block, float scale)
{
    if (c->minimum_at == SCALE_BYTE) {
        block[c->at] = (uint8_t)(127 + (int)lrintf(log2f(scale)));
        return;
    }
    xm_store_float(XM_F16, block + c->at, 0, scale);
    if (c->minimum_at != NO_MINIMUM)
        xm_store_float(XM_F16, block + c->minimum_at, 0, scale * c->minimum);
}

/* Returns the standard deviation of the numbers in random blocks whose scale is 1. */
static float
deviation(struct xm_synth *s, const struct scales *c)
{
    enum { SAMPLES = 64, MAX_BLOCK = 256 };
    const struct xm_weight_format_info *f = &xm_weight_formats[c->format];
    uint8_t block[MAX_BLOCK];
    float x[MAX_BLOCK];
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        for (uint32_t j = 0; j < f->block_bytes; j++)
            block[j] = (uint8_t)(xm_synth_next(s) >> 56);
        set_scale(c, block, 1.0f);
        f->decode(block, x);
        for (uint32_t j = 0; j < f->block_cols; j++)
            sum += (double)x[j] * (double)x[j];
    }
    return (float)sqrt(sum / (SAMPLES * (double)f->block_cols));
}

void
xm_synth_fill_blocks(struct xm_synth *s, enum xm_weight_format f, uint8_t *p,
                     uint64_t rows, uint64_t cols)
{
    const struct scales *c = scales_of(f);
    const struct xm_weight_format_info *info = &xm_weight_formats[f];
    const uint64_t blocks = rows * (cols / info->block_cols);
    if (s->m->blank)
        return;
    const float scale = 1.0f / (deviation(s, c) * sqrtf((float)cols));
    xm_synth_fill(s, p, blocks * info->block_bytes);
    for (uint64_t i = 0; i < blocks; i++)
        set_scale(c, p + i * info->block_bytes,
                  scale * (1.0f + 0.25f * xm_synth_uniform(s)));
}
