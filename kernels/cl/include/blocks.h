/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks: what kernels know of a format is its sizes, COLUMNS_<name> and BYTES_<name>,
 * and one or two functions of format_<name>.h for the block at an address:
 *
 *     float16 <name>_values(block, i)       numbers 16 i … 16 i + 15
 *     char16 <name>_integers(block, i, &f)  the same as q f.x - f.y, for activations that are
 *                                           integers, too (block_shorts.h)
 *
 * VALUES_OF_INTEGERS defines the first by the second, if that is no slower. Scales f.x and minimums
 * f.y (if MINIMUMS_<name>) are for 32 columns; for 16 if FACTORS_<name> is 16. A format whose
 * scales are one scale of the block times small integers has three functions instead, from which
 * INTEGERS_OF_SCALED defines the two above; SCALED_<name> is 1:
 *
 *     char16 <name>_numbers(block, i)       integers q of columns 16 i … 16 i + 15
 *     uint <name>_scale(block, i)           their integer scale, 1 to 31; |scale q| is at most
 *                                           2048
 *     float <name>_factor(block)            the block's scale
 *
 * If signs and magnitudes are stored apart, NUMBERS_OF_SIZES defines <name>_numbers:
 *
 *     char16 <name>_sizes(block, i)
 *     uint <name>_signs(block, i)           16 bits, the first column's the lowest
 *
 * ENTRIES_<name> is 1 if NUMBERS_OF_ENTRIES defines the magnitudes by grid entries of IQ2
 * (iq_numbers.h):
 *
 *     uint2 <name>_entries(block, i)
 *
 * FOURS_<name> is 1 if magnitudes are grid entries of IQ3, four numbers 0 to 7 in nibbles:
 *
 *     uint4 <name>_fours(block, i)
 *
 * Weights of one kernel may differ in format: weight.format says which of FORMAT0, FORMAT1, FORMAT2
 * it is, mostly a constant after inlining. If all have one format, only FORMAT0 is defined.
 */
#ifdef FORMAT2
#define FORMATS 3
#elif defined(FORMAT1)
#define FORMATS 2
#define FORMAT2 FORMAT0
#else
#define FORMATS 1
#define FORMAT1 FORMAT0
#define FORMAT2 FORMAT0
#endif

/* Expands what(name) for the name of a weight's format. */
#define BY_FORMAT(format, what)                                                          \
    (FORMATS > 2 && (format) == 2   ? what(FORMAT2)                                      \
     : FORMATS > 1 && (format) == 1 ? what(FORMAT1)                                      \
                                    : what(FORMAT0))

#define VALUES_OF_INTEGERS(name)                                                         \
    static inline float16 name##_values(__global const uchar *block, uint i)             \
    {                                                                                    \
        float2 f;                                                                        \
        const char16 q = name##_integers(block, i, &f);                                  \
        return convert_float16(q) * f.x - f.y;                                           \
    }

#define INTEGERS_OF_SCALED(name)                                                         \
    static inline char16 name##_integers(__global const uchar *block, uint i, float2 *f) \
    {                                                                                    \
        *f = (float2)(name##_factor(block) * (float)name##_scale(block, i), 0.0f);       \
        return name##_numbers(block, i);                                                 \
    }                                                                                    \
    VALUES_OF_INTEGERS(name)

/* Returns the 16 bytes at any address. */
static inline uchar16
block_bytes16(__global const uchar *p)
{
    return vload16(0, p);
}

/* Returns 16 bits at any address; block_uint 32 bits, block_half a half. */
static inline uint
block_ushort(__global const uchar *p)
{
    return as_ushort(vload2(0, p));
}

static inline uint
block_uint(__global const uchar *p)
{
    return as_uint(vload4(0, p));
}

static inline float
block_half(__global const uchar *p)
{
    return half_bits((ushort)block_ushort(p));
}

/* Returns 16 bits as bytes, the lowest bit first: 255 for a bit that is set, else 0. Compilers of
 * GPUs process each byte of a vector alone; words of four bytes take a fourth of the
 * instructions. */
static inline uchar16
spread_bits(uint bits)
{
#ifdef SG
    const uint4 four = (uint4)bits >> (uint4)(0, 4, 8, 12) & 15;
    const uint4 ones = (four | four << 7 | four << 14 | four << 21) & 0x01010101u;
    return as_uchar16((ones << 8) - ones);
#else
    const uchar16 bytes = (uchar16)((uchar8)(uchar)bits, (uchar8)(uchar)(bits >> 8));
    const uchar8 bit = (uchar8)(1, 2, 4, 8, 16, 32, 64, 128);
    return as_uchar16((bytes & (uchar16)(bit, bit)) != (uchar16)0);
#endif
}

/* Returns 16 numbers of 2 bits as bytes, the lowest first. */
static inline uchar16
spread_pairs(uint pairs)
{
#ifdef SG
    const uint4 four = (uint4)pairs >> (uint4)(0, 8, 16, 24) & 255;
    const uint4 two = (four | four << 12) & 0x000f000fu;
    return as_uchar16((two | two << 6) & 0x03030303u);
#else
    const uchar4 b = as_uchar4(pairs), shift = (uchar4)(0, 2, 4, 6);
    const uchar16 bytes = (uchar16)((uchar4)b.x, (uchar4)b.y, (uchar4)b.z, (uchar4)b.w);
    return bytes >> (uchar16)(shift, shift, shift, shift) & (uchar)3;
#endif
}

/* Returns q - 1 for bytes q below 128. */
static inline char16
less_one(uchar16 q)
{
    return as_char16((as_uint4(q) + 0x7f7f7f7fu) ^ 0x80808080u);
}

/* Returns table[q] for each q, which is below 16. */
static inline char16
look_up_bytes(char16 table, uchar16 q)
{
#ifdef __SSSE3__ /* one instruction that compilers do not find */
    typedef char bytes __attribute__((vector_size(16)));
    return __builtin_astype(__builtin_ia32_pshufb128(__builtin_astype(table, bytes),
                                                     __builtin_astype(q, bytes)),
                            char16);
#else
    char numbers[16], v[16];
    uchar index[16];
    vstore16(table, 0, numbers);
    vstore16(q, 0, index);
    for (uint i = 0; i < 16; i++)
        v[i] = numbers[index[i]];
    return vload16(0, v);
#endif
}

#include "block_units.h"
#include "fp4_numbers.h"
#include "iq4_numbers.h"
#include "iq_grids.h"
#include "iq_numbers.h"
#include "k_scales.h"

#include "format_*.h"

#define FORMAT_VALUES(format, w, row, k)                                                 \
    PASTE(format, _values)                                                               \
    ((w)->data + ((row) * ((w)->view.x / PASTE(COLUMNS_, format)) +                      \
                  ((w)->view.y + (k)) / PASTE(COLUMNS_, format)) *                       \
                     PASTE(BYTES_, format),                                              \
     ((w)->view.y + (k)) % PASTE(COLUMNS_, format) / 16)

/* Returns weights k … k + 15 of a row; k is a multiple of 16, `format` the weight's format. */
static inline float16
weights_of_format(const uint format, const struct weight *w, ulong row, uint k)
{
#define VALUES(format) FORMAT_VALUES(format, w, row, k)
    return BY_FORMAT(format, VALUES) * weight_factor(w, row);
}

static inline float16
weights_at(const struct weight *w, ulong row, uint k)
{
    return weights_of_format(w->format, w, row, k);
}

/* Returns weight k of a row. */
static inline float
weight_at(const struct weight *w, ulong row, uint k)
{
    float v[16];
    vstore16(weights_at(w, row, k / 16 * 16), 0, v);
    return v[k % 16];
}
