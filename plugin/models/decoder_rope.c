/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary position embedding: the frequencies of the pairs (i, i + R/2), and the rotation of a
 * head's first R columns.
 *
 *     f_i = base^(-2i/R) / factor_i          factor_i: from rope_freqs, if the model has it
 *     linear: f_i / s
 *     YaRN (Peng et al., arXiv:2309.00071): f_i for pairs that turn often within the original
 *     context, f_i / s for pairs that turn rarely, a ramp between; cosines and sines are
 *     multiplied by 0.1 ln(s) + 1 and by the file's attention factor
 */
#include <inttypes.h>
#include <math.h>

#include "plugin/models/decoder_graph.h"

/* Returns the index (a fraction) of the pair that turns `turns` times within the original
 * context. */
static double
pair_of_turns(const struct xm_decoder *d, const struct xm_decoder_attention *a,
              float turns)
{
    const double pi = 3.14159265358979323846;
    return a->rope_dim *
           log((double)d->rope_scaling.original_context / ((double)turns * 2.0 * pi)) /
           (2.0 * log((double)a->rope_base));
}

/* Returns the weight of the original frequency of pair i: 1: it is kept, 0: it is divided by s. */
static double
yarn_share(const struct xm_decoder *d, const struct xm_decoder_attention *a, uint32_t i)
{
    double low = pair_of_turns(d, a, d->rope_scaling.beta_fast);
    double high = pair_of_turns(d, a, d->rope_scaling.beta_slow);
    if (!(d->traits & XM_TRAIT_YARN_UNTRUNCATED)) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0.0);
    high = fmin(high, (double)a->rope_dim - 1.0);
    const double ramp = ((double)i - low) / fmax(0.001, high - low);
    return 1.0 - fmin(1.0, fmax(0.0, ramp));
}

/* Returns the frequency of pair i in double precision: positions multiply its error, so it is
 * rounded to f32 only once, at the end. */
static double
frequency(const struct xm_decoder *d, const struct xm_decoder_attention *a, uint32_t i)
{
    const double f = pow((double)a->rope_base, -2.0 * i / a->rope_dim);
    double share = 0.0;
    if (d->rope_scaling.kind == XM_ROPE_UNSCALED)
        return f;
    if (d->rope_scaling.kind == XM_ROPE_YARN)
        share = yarn_share(d, a, i);
    return f * share + f / (double)d->rope_scaling.factor * (1.0 - share);
}

/* Returns the number by which cosines and sines are multiplied: YaRN's times the file's. */
static float
attention_factor(const struct xm_decoder *d)
{
    if (d->traits & XM_TRAIT_LATENT) /* the scale of the scores includes it */
        return 1.0f;
    const bool has_own =
        d->rope_scaling.kind == XM_ROPE_YARN && d->rope_scaling.factor > 1.0f;
    const float own = has_own ? 0.1f * logf(d->rope_scaling.factor) + 1.0f : 1.0f;
    const float besides = d->rope_scaling.attention_factor;
    return besides != 0.0f ? own * besides : own;
}

static bool
has_factors(const struct xm_decoder *d, enum xm_attention_kind kind)
{
    return xm_decoder_has(d, XM_TENSOR_ROPE_FREQS, 0) &&
           (kind == XM_ATTENTION_FULL || !(d->traits & XM_TRAIT_FACTORS_OF_FULL_LAYERS));
}

/* Returns the frequencies, f32 [1,R/2,1]. */
static struct xm_value *
frequencies(struct xm_decoder_graph *s, enum xm_attention_kind kind)
{
    const struct xm_decoder_attention *a = &s->d->attention[kind];
    const uint32_t pairs = a->rope_dim / 2;
    const bool is_divided = has_factors(s->d, kind);
    const uint64_t bytes = (uint64_t)pairs * sizeof(float);
    float *f = xm_arena_alloc(&s->g->arena, (size_t)bytes);
    struct xm_value *factors =
        is_divided ? xm_dg_tensor(s, XM_TENSOR_ROPE_FREQS, 0) : NULL;
    if (!f || (is_divided && !factors))
        return NULL;
    for (uint32_t i = 0; i < pairs; i++) {
        double x = frequency(s->d, a, i);
        if (is_divided)
            x /= (double)xm_load_float(XM_F32, factors->node->attr.data.bytes, i);
        f[i] = (float)x;
        if (!isfinite(f[i])) {
            xm_fail(&s->g->err, XM_INVALID,
                    "rotary positions: the frequency of pair %" PRIu32 " is %g", i,
                    (double)f[i]);
            return NULL;
        }
    }
    const struct xm_type column = {
        XM_F32, {3, {xm_dim_const(1), xm_dim_const(pairs), xm_dim_const(1)}}};
    return xm_const(&s->b, &column, (struct xm_data){(const uint8_t *)f, bytes});
}

/* Makes the cosines and sines of position times frequency, [B,1,T,R]. */
static bool
make_tables(struct xm_decoder_graph *s, enum xm_attention_kind kind)
{
    static const int64_t order[3] = {0, 2, 1};
    struct xm_builder *b = &s->b;
    const float factor = attention_factor(s->d);
    struct xm_value *positions =
        xm_convert(b, xm_dg_unsqueeze(s, s->positions, 1), XM_F32);
    struct xm_value *angle = xm_op2(
        b, XM_OP_TRANSPOSE, xm_matmul(b, frequencies(s, kind), positions, false, false),
        xm_const_ints(b, XM_I32, order, 3));
    struct xm_value *twice[2] = {angle, angle};
    struct xm_value *angles = xm_dg_concat(s, -1, twice, 2);
    struct xm_value *cos = xm_op1(b, XM_OP_COS, angles);
    struct xm_value *sin = xm_op1(b, XM_OP_SIN, angles);
    if (factor != 1.0f) {
        cos = xm_dg_scale(s, cos, factor);
        sin = xm_dg_scale(s, sin, factor);
    }
    s->cos[kind] = xm_dg_unsqueeze(s, cos, 1);
    s->sin[kind] = xm_dg_unsqueeze(s, sin, 1);
    return s->cos[kind] && s->sin[kind];
}

/* Uses the tables of another kind of attention if its frequencies are the same. False: there is
 * none. */
static bool
share_tables(struct xm_decoder_graph *s, enum xm_attention_kind kind)
{
    const struct xm_decoder_attention *a = &s->d->attention[kind];
    for (int other = 0; other < XM_ATTENTION_KINDS; other++) {
        const struct xm_decoder_attention *b = &s->d->attention[other];
        if (!s->cos[other] || a->rope_dim != b->rope_dim ||
            a->rope_base != b->rope_base ||
            has_factors(s->d, kind) != has_factors(s->d, (enum xm_attention_kind)other))
            continue;
        s->cos[kind] = s->cos[other];
        s->sin[kind] = s->sin[other];
        return true;
    }
    return false;
}

/* Rotates all columns of x. */
static struct xm_value *
rotate_whole(struct xm_decoder_graph *s, enum xm_attention_kind kind, struct xm_value *x)
{
    struct xm_builder *b = &s->b;
    const int64_t half = s->d->attention[kind].rope_dim / 2;
    struct xm_value *minus = xm_const_float(b, XM_F32, -1.0f);
    struct xm_value *halves[2] = {
        xm_op2(b, XM_OP_MULTIPLY, xm_dg_slice(s, x, 3, half, INT64_MAX), minus),
        xm_dg_slice(s, x, 3, 0, half)};
    struct xm_value *turned =
        xm_op2(b, XM_OP_MULTIPLY, xm_dg_concat(s, -1, halves, 2), s->sin[kind]);
    return xm_op2(b, XM_OP_ADD, xm_op2(b, XM_OP_MULTIPLY, x, s->cos[kind]), turned);
}

struct xm_value *
xm_dg_rotate(struct xm_decoder_graph *s, enum xm_attention_kind kind, struct xm_value *x,
             uint32_t columns)
{
    const struct xm_decoder_attention *a = &s->d->attention[kind];
    if (!s->cos[kind] && !share_tables(s, kind) && !make_tables(s, kind))
        return NULL;
    if (a->rope_dim == columns)
        return rotate_whole(s, kind, x);
    struct xm_value *parts[2] = {
        rotate_whole(s, kind, xm_dg_slice(s, x, 3, 0, a->rope_dim)),
        xm_dg_slice(s, x, 3, a->rope_dim, INT64_MAX)};
    return xm_dg_concat(s, -1, parts, 2);
}
