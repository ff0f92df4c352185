/* SPDX-License-Identifier: Apache-2.0
 *
 * Units: 128 columns of weights as bytes, in two vectors of 64 bytes, in the order of a unit of
 * activations (shorts.h, bytes.h).
 *
 * A unit is four sub-blocks of 32 columns. Each has four lanes of every vector, so that a scale of
 * 32 columns is a scale of lanes: byte i of lane 4 b + j of q[h] is column 32 b + 16 h + 4 j + i.
 */
#if defined(SHORTS) && SHORTS
#define UNITS
typedef uchar uchar64 __attribute__((ext_vector_type(64)));
#define UNIT_COLUMNS 128

struct unit {
    uint16 q[2];       /* unsigned bytes: the integers plus the format's zero point */
    float16 factor[2]; /* scales of q[0] and q[1] */
    float8 minimum;    /* of each 16 columns; 0 for formats without minimums */
    /* Set by Q2_K to Q6_K, for INTEGER_FACTORS (block_shorts.h): a weight in a run of 16 columns is
     * d.x multiplier q - d.y taken. */
    short8 multiplier, taken;
    float2 d;
};

/* Loads 64 bytes by one instruction: compilers split loads whose result is shuffled. */
static inline uint16
load_whole(__global const uchar *p)
{
    uint16 v = ((__global const loose_uint16 *)p)->v;
#ifdef __AVX512F__
    __asm__("" : "+vr"(v));
#endif
    return v;
}

/* SPREAD4, SPREAD2: elements of v from `first` (a constant) on, each in four or two lanes.
 * QUARTERS: quarters of v. Each is one shuffle; vector literals of parts would be one instruction
 * for each part. */
#define SPREAD4(v, first)                                                                \
    __builtin_shufflevector(v, v, (first), (first), (first), (first), (first) + 1,       \
                            (first) + 1, (first) + 1, (first) + 1, (first) + 2,          \
                            (first) + 2, (first) + 2, (first) + 2, (first) + 3,          \
                            (first) + 3, (first) + 3, (first) + 3)
#define SPREAD2(v, first)                                                                \
    __builtin_shufflevector(v, v, (first), (first), (first) + 1, (first) + 1,            \
                            (first) + 2, (first) + 2, (first) + 3, (first) + 3)
#define QUARTER(n) 4 * (n), 4 * (n) + 1, 4 * (n) + 2, 4 * (n) + 3
#define QUARTERS_OF(v, w, a, b, c, d)                                                    \
    __builtin_shufflevector(v, w, QUARTER(a), QUARTER(b), QUARTER(c), QUARTER(d))
#define QUARTERS(v, a, b, c, d) QUARTERS_OF(v, v, a, b, c, d)
#endif
