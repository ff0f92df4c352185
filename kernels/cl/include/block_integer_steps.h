/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of any format by its integers (blocks.h), for formats that have none of their own
 * (block_steps.h). Integers times small ones (<name>_scale) are multiplied as halves, exactly, so
 * that 64 columns share a factor. Else a span is the columns that share the factor of
 * <name>_integers; minimums are taken off by products with sums.
 */


/* A step of 16 integers, times a factor of at most 31. */
static inline int8
integer_step(char16 integers, uint factor)
{
    uint q[4];
    vstore4(as_uint4(integers), 0, q);
    return scaled_step(STEP_OF(SIGNED_BYTES, q), (float)factor, 1024.0f + 128.0f);
}

/* A step of 16 sizes, times a factor, with signs. */
static inline int8
size_step(char16 sizes, uint signs, uint factor)
{
    /* bits k and k + 2 at k and k + 16, where columns k and k + 2 are a pair */
    const uint pairs = signs | signs << 14;
    uint q[4], b[8];
    vstore4(as_uint4(sizes), 0, q);
    vstore8(as_uint8(scaled_step(STEP_OF(BYTES_AS_HALVES, q), (float)factor, 1024.0f)), 0,
            b);
#pragma unroll
    for (uint c = 0; c < 8; c++)
        b[c] ^= pairs << (15 - c / 2 * 4 - c % 2) & 0x80008000u;
    return as_int8(vload8(0, b));
}

/* The block that has column k of the super-block at place `at`. */
#define BLOCK_OF_COLUMN(name, k)                                                         \
    (data + ((ulong)at * 2 + (k) / COLUMNS_##name * BYTES_##name))

#define STEPS_IN_ORDER(name, columns)                                                    \
    enum { STEP_PLACE_##name = 2, SPAN_K_##name = columns };                             \
    static inline uint STEP_##name(uint span, const uint s)                              \
    {                                                                                    \
        return (columns) / 16 * span + s;                                                \
    }

#define NUMBER_STEP(name) integer_step(name##_numbers(block, i), name##_scale(block, i))
#define SIZE_STEP(name)                                                                  \
    size_step(name##_sizes(block, i), name##_signs(block, i), name##_scale(block, i))

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

/* The spans of FORMAT0, FORMAT1. */
#if PASTE(SPAN_K_, FORMAT0)
#elif PASTE(MINIMUMS_, FORMAT0)
#error "a format with minimums has spans and sums of its own"
#elif PASTE(SIZES_, FORMAT0)
SPANS_BY(SPANS_OF_SCALED, FORMAT0, SIZE_STEP)
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
#elif PASTE(SIZES_, FORMAT1)
SPANS_BY(SPANS_OF_SCALED, FORMAT1, SIZE_STEP)
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
