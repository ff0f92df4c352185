/* SPDX-License-Identifier: Apache-2.0
 *
 * Units (units.h) of weights in groups that are whole sub-blocks of 32 columns. They are multiplied
 * by 8-bit activations (bytes.h), or become bf16 (bf16_gemm.h). Sign bits are flipped (OFFSET,
 * planes.h).
 */
#include "turn.h"

#if GROUP && (X_BYTES || X_PAIRS)
#define UNIT_BITS (PLANES == 8 ? 4 : 8)

/* Every other quarter of vector a, then of b. */
#define OTHER_QUARTERS(a, b, first)                                                      \
    __builtin_shufflevector(a, b, QUARTER(first), QUARTER((first) + 2),                  \
                            QUARTER((first) + 4), QUARTER((first) + 6))

/* Decodes columns 128 b … of a row that begins at `row`; those behind its end are undefined. */
static inline void
group_unit(__global const uchar *row, uint b, uint k_count, struct unit *u)
{
#if PLANES == 8
    const uint16 words = block_words(row, b, k_count);
    const uchar64 low = __builtin_astype(words & 0x0f0f0f0fu, uchar64);
    const uchar64 high = __builtin_astype(words >> 4u & 0x0f0f0f0fu, uchar64);
    u->q[0] = __builtin_astype(LOW_BYTES(low, high), uint16);
    u->q[1] = __builtin_astype(HIGH_BYTES(low, high), uint16);
#else
    const uint16 a = block_words(row, 2 * b, k_count);
    const bool has_more = (2 * b + 1) * BLOCK < k_count;
    const uint16 c = has_more ? block_words(row, 2 * b + 1, k_count) : 0;
    u->q[0] = OTHER_QUARTERS(a, c, 0);
    u->q[1] = OTHER_QUARTERS(a, c, 1);
#endif
}

/* Returns the group of sub-block s of unit b; the last group behind the row's end. */
static inline uint
group_of(uint b, uint s, uint groups)
{
    return min((b * UNIT_COLUMNS + s * 32) / GROUP, groups - 1);
}

/* Scales and zero points of the four sub-blocks of a unit. */
struct group_factors {
    float4 scale;
    int4 zero;
};

/* Loads those of unit b of stored row n. */
static inline void
group_factors(const struct weight *w, ulong n, uint b, struct group_factors *out)
{
    const uint groups = group_count(w);
    float scale[4];
    int zero[4];
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        const bool same = GROUP % UNIT_COLUMNS == 0 && s;
        const uint g = group_of(b, s, groups);
        scale[s] = same ? scale[0] : weight_scale(w, n, g);
        zero[s] = same ? zero[0] : (int)weight_zero_point(w, n, g) + OFFSET;
    }
    out->scale = vload4(0, scale);
    out->zero = vload4(0, zero);
}
#endif
