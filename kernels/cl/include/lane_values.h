/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of V across the lanes of a sub-group: CHUNKS elements in each lane. If the row is whole
 * 32-bit words for every lane (for u4 also 16-bit words), word g belongs to lane g % SG and has
 *
 *     f32    element g
 *     f16    elements 2 g + k
 *     i8     elements 4 g + k
 *     u4     elements g / N * 32 + k / M * 16 + g % N * M + k % M, where N words of 2 M elements
 *            are a pair of blocks
 *
 * In rows of other lengths, element c * SG + lane is element c of the lane.
 */
#include "attention_cache.h"
#include "sub_group_rotation.h"

#define WORD_ELEMENTS_f32 1
#define WORD_ELEMENTS_f16 2
#define WORD_ELEMENTS_i8  4
#define WORD_ELEMENTS_u4  (DV % (SG * 8) ? 4 : 8)
#define WORD_ELEMENTS     PASTE(WORD_ELEMENTS_, V_CACHE)
#define HALF_WORD         (WORD_ELEMENTS / 2)  /* u4: elements of one block in a word */
#define PAIR_WORDS        (16 / HALF_WORD)     /* u4: words of a pair of blocks */

#define CHUNKS   ((DV + SG - 1) / SG) /* elements of V in each lane */
#define IN_WORDS (DV % (SG * WORD_ELEMENTS) == 0)
#define WORDS    (CHUNKS / WORD_ELEMENTS) /* words in each lane */

/* Returns the index in V of the lane's element c. */
static inline uint
value_index(uint c)
{
    const uint lane = get_sub_group_local_id();
#if IN_WORDS
    const uint g = c / WORD_ELEMENTS * SG + lane, k = c % WORD_ELEMENTS;
#if IS_4_BITS(V_CACHE)
    return g / PAIR_WORDS * 32 + k / HALF_WORD * 16 + g % PAIR_WORDS * HALF_WORD +
           k % HALF_WORD;
#else
    return g * WORD_ELEMENTS + k;
#endif
#else
    return c * SG + lane;
#endif
}

/* Whether the lane's element c exists; a constant if DV is a multiple of SG. */
#define IS_VALUE(c) (DV % SG == 0 || value_index(c) < DV)

/* Stores a vector's elements one by one: arrays that are indexed by constants stay in registers. */
static inline void
put_floats(float4 v, float *y)
{
    y[0] = v.x;
    y[1] = v.y;
    y[2] = v.z;
    y[3] = v.w;
}

static inline void
put_words(uint4 v, uint *y)
{
    y[0] = v.x;
    y[1] = v.y;
    y[2] = v.z;
    y[3] = v.w;
}

/* Decodes word `bits`, word w of the lane, into elements. */
static inline void
unpack_word(struct cached v, uint w, uint bits, float *y)
{
#if IS_4_BITS(V_CACHE)
    const uint pair = (w * SG + get_sub_group_local_id()) / PAIR_WORDS;
    const uint bytes = ((__global const ushort *)v.scales)[pair];
    const struct block low = block_u4(bytes & 255), high = block_u4(bytes >> 8);
    const float4 a = levels4(convert_float4(as_uchar4(bits & 0x0f0f0f0f)), low.centre);
    const float4 b = levels4(convert_float4(as_uchar4(bits >> 4 & 0x0f0f0f0f)), high.centre);
#if DV % (SG * 8)
    put_floats((float4)(a.lo * low.scale, b.lo * high.scale), y);
#else
    put_floats(a * low.scale, y);
    put_floats(b * high.scale, y + 4);
#endif
#elif HAS_SCALES(V_CACHE)
    const uint at = (w * SG + get_sub_group_local_id()) * 4 / CACHE_BLOCK;
#if SG == 16
    /* the scales of all lanes are in one word, so that there is one address */
    const uint byte = ((__global const uint *)v.scales)[w] >> at % 4 * 8 & 255;
#else
    const uint byte = v.scales[at];
#endif
    const float scale = block_i8(byte).scale;
    put_floats(convert_float4(as_char4(bits)) * scale, y);
#elif IS_HALF(V_CACHE)
    y[0] = halves(bits).x;
    y[1] = halves(bits).y;
#else
    y[0] = as_float(bits);
#endif
}

/* Returns element c * SG + lane of a value. The byte's position and, except with 32 lanes, the
 * scale depend on c only, so that neighbouring lanes share an address. */
static inline float
value_element(struct cached v, uint c)
{
    const uint lane = get_sub_group_local_id();
    const struct block b =
        BLOCK(V_CACHE, v, c * SG + (SG == 32 ? lane / CACHE_BLOCK * CACHE_BLOCK : 0));
#if !IS_4_BITS(V_CACHE)
    return UNSCALED(V_CACHE, v, min(c * SG + lane, DV - 1u), b) * b.scale;
#elif SG == 32
    const uint q = v.values[c * 16 + lane % 16] >> lane / 16 * 4 & 15;
    return level((float)q, b.centre) * b.scale;
#else
    const uchar q = v.values[c * SG / 32 * 16 + c * SG % 16 + lane];
    return level((float)(q >> packed_shift(c * SG) & 15), b.centre) * b.scale;
#endif
}

/* Reads the lane's words of a row. */
static inline void
read_words(__global const uint *p, uint *bits)
{
#if IS_4_BITS(V_CACHE) && DV % (SG * 8)
#pragma unroll
    for (uint w = 0; w < WORDS; w++)
        bits[w] = ((__global const ushort *)p)[w * SG + get_sub_group_local_id()];
#elif WORDS % 4 == 0
#pragma unroll
    for (uint w = 0; w < WORDS; w += 4)
        put_words(intel_sub_group_block_read4(p + w * SG), bits + w);
#elif WORDS == 2
    const uint2 v = intel_sub_group_block_read2(p);
    bits[0] = v.x;
    bits[1] = v.y;
#else
#pragma unroll
    for (uint w = 0; w < WORDS; w++)
        bits[w] = intel_sub_group_block_read(p + w * SG);
#endif
}

/* Reads the lane's elements of a value. If not `weighs` (its weight is 0), they are any finite
 * numbers, because memory that was never written may be NaN. */
static inline void
read_value(struct cached v, bool weighs, float *y)
{
#if IN_WORDS
    uint bits[WORDS];
    read_words((__global const uint *)v.values, bits);
#pragma unroll
    for (uint w = 0; w < WORDS; w++)
        unpack_word(v, w, HAS_SCALES(V_CACHE) || weighs ? bits[w] : 0, y + w * WORD_ELEMENTS);
#else
#pragma unroll
    for (uint c = 0; c < CHUNKS; c++)
        y[c] = weighs && IS_VALUE(c) ? value_element(v, c) : 0.0f;
#endif
}

/* ---- rotation ----------------------------------------------------------------------- */

#if IN_WORDS
/* LANE_STRIDE: stride `step` of a row in lanes; CHUNK_STRIDE: in elements of a lane; 0: the stride
 * is of the other kind. */
#if IS_4_BITS(V_CACHE)
#define LANE_STRIDE(step)                                                                \
    ((step) < HALF_WORD || (step) == 16 ? 0                                              \
     : (step) < 16                      ? (step) / HALF_WORD                             \
                                        : (step) / WORD_ELEMENTS % SG)
#define CHUNK_STRIDE(step)                                                               \
    ((step) == 16 ? HALF_WORD : (step) < HALF_WORD ? (step) : (step) / SG)
#else
#define LANE_STRIDE(step)  ((step) / WORD_ELEMENTS % SG)
#define CHUNK_STRIDE(step) ((step) < WORD_ELEMENTS ? (step) : (step) / SG)
#endif

/* The stride is a constant, so that no branch remains around the exchange between lanes. */
#define ROTATE_STEP(y, step)                                                             \
    if ((step) < VALUE_ROTATION && LANE_STRIDE(step))                                    \
        rotate_step_across(y, CHUNKS, LANE_STRIDE(step));                                \
    else if ((step) < VALUE_ROTATION)                                                    \
        rotate_step_within(y, CHUNKS, CHUNK_STRIDE(step))
#endif

/* Like rotate_lanes, for a row in the order of read_value. */
static inline void
rotate_value(float *y)
{
#if !IN_WORDS
    rotate_lanes(y, CHUNKS, VALUE_ROTATION);
#elif VALUE_ROTATION > 1
    ROTATE_STEP(y, 1);
    ROTATE_STEP(y, 2);
    ROTATE_STEP(y, 4);
    ROTATE_STEP(y, 8);
    ROTATE_STEP(y, 16);
    ROTATE_STEP(y, 32);
    ROTATE_STEP(y, 64);
#pragma unroll
    for (uint c = 0; c < CHUNKS; c++)
        y[c] *= ROOT_OF(VALUE_ROTATION);
#endif
}
