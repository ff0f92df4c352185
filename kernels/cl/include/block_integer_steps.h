/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans made from a format's integers (blocks.h), for formats without a span of their own
 * (block_steps.h). If the format has small integer scales (<name>_scale), these are multiplied into
 * the halves, exactly, so that 64 columns share a factor. Else a span is the columns that share the
 * factor of <name>_integers.
 */


/* Returns a step of 16 integers times a factor of at most 31. */
static inline int8
integer_step(char16 integers, uint factor)
{
    uint q[4];
    vstore4(as_uint4(integers), 0, q);
    return scaled_step(STEP_OF(SIGNED_BYTES, q), (float)factor, 1024.0f + 128.0f);
}

/* Returns the step with the signs flipped whose bits are set. */
static inline int8
signed_step(int8 step, uint signs)
{
    /* moves bits k and k + 2 to k and k + 16, because columns k and k + 2 share a word */
    const uint pairs = signs | signs << 14;
    uint b[8];
    vstore8(as_uint8(step), 0, b);
#pragma unroll
    for (uint c = 0; c < 8; c++)
        b[c] ^= pairs << (15 - c / 2 * 4 - c % 2) & 0x80008000u;
    return as_int8(vload8(0, b));
}

/* Returns a step of the magnitudes of two entries of IQ2, times a factor. The bits make halves 256
 * + q, then 1024 + magnitude: 8 + 17.375 q is rounded to 8, 25, 43. */
static inline int8
iq2_step(uint2 entry, uint factor)
{
    uint b[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const uint e = c < 4 ? entry.x : entry.y;
        /* columns k and k + 2 as above */
        b[c] = (MOVED(e | e << 12, 2 - c % 4 / 2 * 8 - c % 2 * 2) & 0x000c000cu) |
               0x5c005c00u;
    }
    const int8 sizes = as_int8(
        halves_mad(vload8(0, b), twice(17.375f), twice(1032.0f - 17.375f * 256.0f)));
    return scaled_step(sizes, (float)factor, 1024.0f);
}

#if defined(FORMAT_iq3_xxs) || defined(FORMAT_iq3_s)
/* Returns the numbers n of four entries of IQ3 as halves 2^(10 - at) + n; `bits` are the halves of
 * n = 0. */
static inline uint8
iq3_halves(uint4 entry, int at, uint bits)
{
    /* pairs columns k and k + 2 as above; one multiplication, because a shift and an or are two
     * instructions */
    const uint4 pairs = entry * 257u;
    const uint mask = 0x00070007u << at;
    uint8 halves;
    halves.even = (pairs << at & mask) | bits;
    halves.odd = ((at > 4 ? pairs << (at - 4) : pairs) & mask) | bits;
    return halves;
}

/* Halves 64 + n, then 1024 + half the magnitude: 1.5 + 4.148 n is rounded to 2 6 10 … 26 31. */
static inline int8
iq3_xxs_step(uint4 entry, uint factor)
{
    const uint8 halves = halves_mad(iq3_halves(entry, 4, 0x54005400u), twice(4.1484375f),
                                    twice(1025.5f - 4.1484375f * 64.0f));
    return scaled_step(as_int8(halves), (float)(2 * factor), 1024.0f);
}

/* Halves 16 + n, then the magnitudes 2 n + 1 times the factor: exact. */
static inline int8
iq3_s_step(uint4 entry, uint factor)
{
    return scaled_step(as_int8(iq3_halves(entry, 6, 0x4c004c00u)), (float)(2 * factor), 15.5f);
}
#endif

/* The address of the block with column k of the super-block at place `at`. */
#define BLOCK_OF_COLUMN(name, k)                                                         \
    (data + ((ulong)at * 2 + (k) / COLUMNS_##name * BYTES_##name))

#define STEPS_IN_ORDER(name, columns)                                                    \
    enum { STEP_PLACE_##name = 2, SPAN_K_##name = columns };                             \
    static inline uint STEP_##name(uint span, const uint s)                              \
    {                                                                                    \
        return (columns) / 16 * span + s;                                                \
    }

#define NUMBER_STEP(name) integer_step(name##_numbers(block, i), name##_scale(block, i))
#define ENTRY_STEP(name)                                                                 \
    signed_step(iq2_step(name##_entries(block, i), name##_scale(block, i)),              \
                name##_signs(block, i))

#define FOURS_STEP(name)                                                                 \
    signed_step(name##_step(name##_fours(block, i), name##_scale(block, i)),             \
                name##_signs(block, i))

#define SPANS_OF_SCALED(name, STEP)                                                      \
    STEPS_IN_ORDER(name, COLUMNS_##name < 64 ? 32 : 64)                                  \
    static inline float name##_span(__global const uchar *data, uint at, uint span,      \
                                    int8 *b)                                             \
    {                                                                                    \
        const uint k = span * SPAN_K_##name;                                             \
        __global const uchar *block = BLOCK_OF_COLUMN(name, k);                          \
        _Pragma("unroll") for (uint s = 0; s < SPAN_K_##name / 16; s++)                  \
        {                                                                                \
            const uint i = k % COLUMNS_##name / 16 + s;                                  \
            b[s] = STEP(name);                                                           \
        }                                                                                \
        return name##_factor(block);                                                     \
    }                                                                                    \
    NO_SUMS(name)

#define SPANS_OF_INTEGERS(name, columns)                                                 \
    STEPS_IN_ORDER(name, columns)                                                        \
    static inline float name##_span(__global const uchar *data, uint at, uint span,      \
                                    int8 *b)                                             \
    {                                                                                    \
        const uint k = span * (columns);                                                 \
        __global const uchar *block = BLOCK_OF_COLUMN(name, k);                          \
        float2 f;                                                                        \
        _Pragma("unroll") for (uint s = 0; s < (columns) / 16; s++)                      \
        {                                                                                \
            const char16 q = name##_integers(block, k % COLUMNS_##name / 16 + s, &f);    \
            b[s] = integer_step(q, 1);                                                   \
        }                                                                                \
        return f.x;                                                                      \
    }                                                                                    \
    NO_SUMS(name)

#define SPANS_BY(how, name, what) how(name, what)

/* Defines the spans of FORMAT0 and FORMAT1, unless they have their own. */
#if PASTE(SPAN_K_, FORMAT0)
#elif PASTE(MINIMUMS_, FORMAT0)
#error "a format with minimums has spans and sums of its own"
#elif PASTE(ENTRIES_, FORMAT0)
SPANS_BY(SPANS_OF_SCALED, FORMAT0, ENTRY_STEP)
#elif PASTE(FOURS_, FORMAT0)
SPANS_BY(SPANS_OF_SCALED, FORMAT0, FOURS_STEP)
#elif PASTE(SCALED_, FORMAT0)
SPANS_BY(SPANS_OF_SCALED, FORMAT0, NUMBER_STEP)
#elif PASTE(FACTORS_, FORMAT0)
SPANS_BY(SPANS_OF_INTEGERS, FORMAT0, 16)
#else
SPANS_BY(SPANS_OF_INTEGERS, FORMAT0, 32)
#endif
#if FORMATS > 1
#if PASTE(SPAN_K_, FORMAT1)
#elif PASTE(MINIMUMS_, FORMAT1)
#error "a format with minimums has spans and sums of its own"
#elif PASTE(ENTRIES_, FORMAT1)
SPANS_BY(SPANS_OF_SCALED, FORMAT1, ENTRY_STEP)
#elif PASTE(FOURS_, FORMAT1)
SPANS_BY(SPANS_OF_SCALED, FORMAT1, FOURS_STEP)
#elif PASTE(SCALED_, FORMAT1)
SPANS_BY(SPANS_OF_SCALED, FORMAT1, NUMBER_STEP)
#elif PASTE(FACTORS_, FORMAT1)
SPANS_BY(SPANS_OF_INTEGERS, FORMAT1, 16)
#else
SPANS_BY(SPANS_OF_INTEGERS, FORMAT1, 32)
#endif
#endif
#if FORMATS > 2
#error "kernels of steps take weights of two formats"
#endif
