/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks as 8-bit integers, for products with VNNI: 64 columns are 16 words of four
 * neighbouring columns, in the order of a block of 16-bit activations (shorts.h).
 */
#if BLOCKS && SHORTS
/* FACTOR_K: columns that share a scale and a minimum in every weight of the kernel. MINIMUMS:
 * whether any of its formats has minimums. */
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
/* UNIT_BITS: the most bits of an integer of a unit, of all formats of the kernel. */
#define BITS_BELOW(n)                                                                    \
    (PASTE(BITS_, FORMAT0) && PASTE(BITS_, FORMAT0) < n &&                               \
     (FORMATS < 2 || (PASTE(BITS_, FORMAT1) && PASTE(BITS_, FORMAT1) < n)) &&            \
     (FORMATS < 3 || (PASTE(BITS_, FORMAT2) && PASTE(BITS_, FORMAT2) < n)))
#if BITS_BELOW(5)
#define UNIT_BITS 4
#elif BITS_BELOW(6)
#define UNIT_BITS 5
#elif BITS_BELOW(7)
#define UNIT_BITS 6
#else
#define UNIT_BITS 8
#endif
/* Whether integer scales of weights multiply sums of integers before these become floats. This
 * needs one scale of x for 128 columns; UNIT_BITS < 8 restricts the formats of 256 columns to Q2_K
 * … Q6_K. */
#define INTEGER_FACTORS                                                                  \
    (BYTE_PRODUCTS && X_BYTES && UNIT_BITS < 8 && X_COLUMNS == 128 &&                    \
     PASTE(COLUMNS_, FORMAT0) == 256 && PASTE(COLUMNS_, FORMAT1) == 256 &&               \
     PASTE(COLUMNS_, FORMAT2) == 256)

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

/* Returns the bytes from one row to the next; blocks_begin, the address of a row's first block. */
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

/* Returns the integers of columns k … k + 63 of a row that begins at `row`, and in f[] scale and
 * minimum of each 16; 0 for columns behind k_count. */
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

#ifdef UNITS
/* Returns the zero point that is subtracted from a unit's integers. */
static inline uint
format_zero(const uint format)
{
#if PASTE(UNIT_, FORMAT0)
#define ZERO0 PASTE(ZERO_, FORMAT0)
#else
#define ZERO0 128
#endif
#if PASTE(UNIT_, FORMAT1)
#define ZERO1 PASTE(ZERO_, FORMAT1)
#else
#define ZERO1 128
#endif
#if PASTE(UNIT_, FORMAT2)
#define ZERO2 PASTE(ZERO_, FORMAT2)
#else
#define ZERO2 128
#endif
    return FORMATS > 2 && format == 2 ? ZERO2 : FORMATS > 1 && format == 1 ? ZERO1 : ZERO0;
}

/* Decodes columns k … k + 127 of a row that begins at `row` into a unit, 16 at a time; 0 behind
 * k_count. */
__attribute__((always_inline)) static inline void
unit_of_pieces(const uint format, __global const uchar *row, uint k, uint k_count,
               struct unit *u)
{
    int4 q[2][4];
    float factor[2][4], minimum[8];
#pragma unroll
    for (uint b = 0; b < 2; b++) {
        float2 f[4];
        const int16 v = block_integers(format, row, k + 64 * b, k_count, f);
        q[0][2 * b] = v.s0123;
        q[1][2 * b] = v.s4567;
        q[0][2 * b + 1] = v.s89ab;
        q[1][2 * b + 1] = v.scdef;
#pragma unroll
        for (uint c = 0; c < 4; c++) {
            factor[c % 2][2 * b + c / 2] = f[c].x;
            minimum[4 * b + c] = f[c].y;
        }
    }
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        u->factor[h] = SPREAD4(vload4(0, factor[h]), 0);
        u->q[h] = with_zero(as_uint16((int16)(q[h][0], q[h][1], q[h][2], q[h][3])),
                            format_zero(format));
    }
    u->minimum = vload8(0, minimum);
}

/* Returns the bytes of the block or blocks that a unit is in. */
static inline uint
unit_bytes(const uint format)
{
    const uint columns = format_columns(format);
    return columns < UNIT_COLUMNS ? UNIT_COLUMNS / columns * format_bytes(format)
                                  : format_bytes(format);
}

#define UNIT_OF_PIECES(row, k) unit_of_pieces(format, row, k, (k) + UNIT_COLUMNS, u)
#define UNIT_OF_FORMAT(name, row, k)                                                     \
    PASTE(name, _unit)                                                                   \
    (row + (ulong)((k) / format_columns(format)) * format_bytes(format),                 \
     (k) % format_columns(format) / UNIT_COLUMNS, u)
#if PASTE(UNIT_, FORMAT0)
#define UNIT0 UNIT_OF_FORMAT(FORMAT0, row, k)
#else
#define UNIT0 UNIT_OF_PIECES(row, k)
#endif
#if PASTE(UNIT_, FORMAT1)
#define UNIT1 UNIT_OF_FORMAT(FORMAT1, row, k)
#else
#define UNIT1 UNIT_OF_PIECES(row, k)
#endif
#if PASTE(UNIT_, FORMAT2)
#define UNIT2 UNIT_OF_FORMAT(FORMAT2, row, k)
#else
#define UNIT2 UNIT_OF_PIECES(row, k)
#endif

/* Decodes columns k … k + 127, all of which the row must have; `format` is a constant. */
__attribute__((always_inline)) static inline void
unit_at(const uint format, __global const uchar *row, uint k, struct unit *u)
{
    u->minimum = 0.0f;
    if (FORMATS > 2 && format == 2)
        UNIT2;
    else if (FORMATS > 1 && format == 1)
        UNIT1;
    else
        UNIT0;
}
#endif
#endif
