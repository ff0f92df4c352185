/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes blocks whose nibbles are indices of a table of numbers to halves (block_steps.h).
 */

/* ---- floats of 4 bits ---------------------------------------------------------------------- */

/* Moves floats of 4 bits (sign, two exponent bits, one mantissa bit) to the top bits of bytes; with
 * a low byte of 0 they are halves 2^14 times too small. */
#define LOW_FLOATS(v)  (((v) << 4 & 0x80808080u) | ((v) << 1 & 0x0e0e0e0eu))
#define HIGH_FLOATS(v) (((v) & 0x80808080u) | ((v) >> 3 & 0x0e0e0e0eu))

#define TOP_BYTES(q, at) (MOVED(q, 8 - (at)) & 0xff00ff00u)

#ifdef FORMAT_mxfp4
#define STEP_PLACE_mxfp4 2
#define SPAN_K_mxfp4     32
#define STEP_mxfp4(span, s) (2 * (span) + (s))

static inline float
mxfp4_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint byte = at % 2 * 2 + 17 * span, shift = byte % 4 * 8;
    uint w[5], q[4], low[4], high[4];
    load_words(data, at / 2 + byte / 4, 5, w);
    shift_words(w, 4, shift + 8, q);
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        low[i] = LOW_FLOATS(q[i]);
        high[i] = HIGH_FLOATS(q[i]);
    }
    b[0] = multiplied_step(STEP_OF(TOP_BYTES, low), 0x1p14f);
    b[1] = multiplied_step(STEP_OF(TOP_BYTES, high), 0x1p14f);
    return 2.0f * mxfp4_factor(w[0] >> shift & 255); /* mxfp4_factor is for doubled numbers */
}

NO_SUMS(mxfp4)
#endif

#ifdef FORMAT_nvfp4
#define STEP_PLACE_nvfp4 4
#define SPAN_K_nvfp4     64
#define STEP_nvfp4(span, s) (4 * (span) + (s))

/* A span is a block. Scales have four significant bits and numbers two, so that their products are
 * exact in halves. The scale is multiplied in two steps, because 2^14 times a scale may exceed a
 * half. */
static inline float
nvfp4_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint w[9];
    load_words(data, at + 9 * span, 9, w);
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        const uint d = w[0] >> 8 * s & 127;
        const float factor = half_bits((ushort)(d == 127 ? 0 : d << 7)) * 256.0f;
        const uint bytes[4] = {LOW_FLOATS(w[1 + 2 * s]), LOW_FLOATS(w[2 + 2 * s]),
                               HIGH_FLOATS(w[1 + 2 * s]), HIGH_FLOATS(w[2 + 2 * s])};
        b[s] = multiplied_step(
            multiplied_step(STEP_OF(TOP_BYTES, bytes), factor * 0x1p7f), 0x1p7f);
    }
    return 1.0f;
}

NO_SUMS(nvfp4)
#endif

/* ---- the numbers of IQ4 -------------------------------------------------------------------- */

#if defined(FORMAT_iq4_nl) || defined(FORMAT_iq4_xs)
/* Makes a step of the low nibbles of four words and one of the high nibbles; bytes are the numbers
 * + 127. */
static inline void
iq4_steps(const uint q[4], int8 *b)
{
    uint low[4], high[4];
    const uint4 v = vload4(0, q), r = iq4_nibbles(v);
    vstore4(iq4_bytes(v << 4, r), 0, low);
    vstore4(iq4_bytes(v, r >> 4), 0, high);
    b[0] = scaled_step(STEP_OF(BYTES_AS_HALVES, low), 1.0f, 1024.0f + 127.0f);
    b[1] = scaled_step(STEP_OF(BYTES_AS_HALVES, high), 1.0f, 1024.0f + 127.0f);
}
#endif

#ifdef FORMAT_iq4_nl
#define STEP_PLACE_iq4_nl 4
#define SPAN_K_iq4_nl     32
#define STEP_iq4_nl(span, s) (2 * (span) + (s))

static inline float
iq4_nl_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[4];
    const float d = load_paired(data, at, span, 4, q);
    iq4_steps(q, b);
    return d;
}

NO_SUMS(iq4_nl)
#endif

#ifdef FORMAT_iq4_xs
#define STEP_PLACE_iq4_xs 4
#define SPAN_K_iq4_xs     32
#define STEP_iq4_xs(span, s) (2 * (span) + (s))

static inline float
iq4_xs_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint head[2], q[4];
    load_words(data, at, 2, head);
    load_words(data, at + 2 + 4 * span, 4, q);
    iq4_steps(q, b);
    const uint scale = (head[1] >> 4 * span & 15) | (head[0] >> (12 + 2 * span) & 0x30);
    return half_of(head[0], 0) * ((float)scale - 32.0f);
}

NO_SUMS(iq4_xs)
#endif
