/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks as integers, for products with VNNI: 64 columns are 16 words, each four
 * neighbours, as of weights of 8 bits. So they meet a block of 16-bit activations (shorts.h).
 */
typedef short short32 __attribute__((ext_vector_type(32)));
#define AS_SHORTS(v) __builtin_astype(v, short32)

#if BLOCKS && SHORTS
/* Columns that share a factor and a minimum in every weight of the kernel; whether any has
 * minimums. */
#if PASTE(FACTORS_, FORMAT0) || PASTE(FACTORS_, FORMAT1) || PASTE(FACTORS_, FORMAT2)
#define FACTOR_K 16
#else
#define FACTOR_K 32
#endif
#if PASTE(MINIMUMS_, FORMAT0) || PASTE(MINIMUMS_, FORMAT1) || PASTE(MINIMUMS_, FORMAT2)
#define MINIMUMS 1
#else
#define MINIMUMS 0
#endif

static inline uint
format_columns(const uint format)
{
#define FORMAT_COLUMNS(format) PASTE(COLUMNS_, format)
    return BY_FORMAT(format, FORMAT_COLUMNS);
}

static inline uint
format_bytes(const uint format)
{
#define FORMAT_BYTES(format) PASTE(BYTES_, format)
    return BY_FORMAT(format, FORMAT_BYTES);
}

/* The bytes from one row to the next; where those of a row begin. */
static inline ulong
blocks_step(const uint format, const struct weight *w)
{
    return w->view.x / format_columns(format) * format_bytes(format);
}

static inline __global const uchar *
blocks_begin(const uint format, const struct weight *w, ulong row)
{
    return w->data + row * blocks_step(format, w) +
           w->view.y / format_columns(format) * format_bytes(format);
}

/* Columns k … k + 63 of a row that begins at `row`, those behind k_count 0: their integers, and
 * factor and minimum of each 16. */
__attribute__((always_inline)) static inline int16
block_integers(const uint format, __global const uchar *row, uint k, uint k_count,
               float2 f[4])
{
    const uint columns = format_columns(format);
    char16 q[4];
#pragma unroll
    for (uint c = 0; c < 4; c++, k += 16) {
        __global const uchar *block = row + (ulong)(k / columns) * format_bytes(format);
#define INTEGERS(format) PASTE(format, _integers)(block, k % columns / 16, f + c)
        q[c] = 0;
        f[c] = 0;
        if (columns >= 64 || k < k_count)
            q[c] = BY_FORMAT(format, INTEGERS);
    }
    return (int16)(as_int4(q[0]), as_int4(q[1]), as_int4(q[2]), as_int4(q[3]));
}

/* Numbers i and i + 2 of each word as a pair of 16 bits; i is 0 or 1. */
static inline int16
byte_pairs(int16 words, uint i)
{
    const short32 v = AS_SHORTS(words);
    return __builtin_astype((i ? v : v << (short)8) >> (short)8, int16);
}
#endif
