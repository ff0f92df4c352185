/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights read as 32-bit words, and activations reordered to match them.
 *
 * A block is 16 words of one row (64 bytes when quantised). Word i of a block has PLANES
 * neighbouring columns: 8 of 4 bits, 4 of 8 bits, 1 of a float type. Plane j has column j of every
 * word, so that one mask yields 16 weights without a shuffle. The activations are reordered once,
 * instead of the weights each time:
 *
 *     k = block * 16 PLANES + i * PLANES + j   is at   block * 16 PLANES + j * 16 + i
 *
 * Rows are padded with zeros to whole blocks. PLANES follows WEI (weights.h).
 */
#include "vector.h"
#include "weights.h"

#ifndef SHORTS
#define SHORTS 0 /* 1: the activations are 16-bit integers (shorts.h) */
#endif
#ifndef X_BYTES
#define X_BYTES 0 /* 1: the activations are 8-bit integers (bytes.h); SHORTS is 1, too */
#endif
#ifndef X_COLUMNS
#define X_COLUMNS 32 /* columns of 8-bit integers that share a scale: 32 or 128 */
#endif
#ifndef X_PAIRS
#define X_PAIRS 0 /* 1: the activations are tiles of bf16 (bf16_tiles.h); SHORTS is 1, too */
#endif
#if BLOCKS
#define PLANES (SHORTS ? 8 : 1) /* 8: units (block_units.h); 1: plain rows */
#else
#define PLANES_u4   8
#define PLANES_i4   8
#define PLANES_u8   4
#define PLANES_i8   4
#define PLANES_f16  1
#define PLANES_bf16 1
#define PLANES_f32  1
#define PLANES      PASTE(PLANES_, WEI)
#endif

/* A signed weight is read as unsigned with its sign bit flipped, which is the weight + OFFSET. */
#define OFFSET_u4 0
#define OFFSET_i4 8
#define OFFSET_u8 0
#define OFFSET_i8 128
#define OFFSET    PASTE(OFFSET_, WEI)
#define FLIP_u4   0u
#define FLIP_i4   0x88888888u
#define FLIP_u8   0u
#define FLIP_i8   0x80808080u
#define FLIP      PASTE(FLIP_, WEI)

#define SIZE_f16  2
#define SIZE_bf16 2
#define SIZE_f32  4
#define SIZE(T)   PASTE(SIZE_, T) /* bytes of a float type */
/* Integers without scales are read one by one. */
#define SIZE_u4 0
#define SIZE_i4 0
#define SIZE_u8 0
#define SIZE_i8 0

#define BLOCK (16 * PLANES) /* columns of a block */
/* Columns of each sum of x behind a prepared row: those that share a zero point or a minimum; 0: no
 * sums. */
#define SUM_K (X_BYTES ? 0 : BLOCKS && SHORTS ? 16 : GROUP)
/* The kind of prepared rows (prepared.h). */
#define X_KIND (X_BYTES ? 3 : BLOCKS && SHORTS ? 2 : SHORTS)
/* Whether tiles multiply bytes of weights by bytes of x (byte_gemm.h). */
#define BYTE_TILES (X_BYTES || (BLOCKS && (BYTE_DOTS || BYTE_MADDS)))

static inline uint
plane_position(uint k, uint planes)
{
    const uint in_block = k % (16 * planes);
    return k - in_block + in_block % planes * 16 + in_block / planes;
}

static inline float16
floats_f16(__global const uchar *p)
{
    return load_halves(p);
}

static inline float16
floats_bf16(__global const uchar *p)
{
    return as_float16(convert_uint16(((__global const loose_ushort16 *)p)->v) << 16u);
}

static inline float16
floats_f32(__global const uchar *p)
{
    return as_float16(((__global const loose_uint16 *)p)->v);
}

/* 16 neighbouring floats of type T at any address. */
#define FLOATS(T, p) PASTE(floats_, T)(p)

/* Prefetches a line of memory. (prefetch() of OpenCL does nothing on PoCL; the built-in takes a
 * pointer of any address space, which OpenCL C 1.2 does not have.) */
static inline void
prefetch_line(__global const uchar *p)
{
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch) &&                       \
    __OPENCL_C_VERSION__ >= 200
    __builtin_prefetch((const void *)p, 0, 2);
#else
    prefetch(p, 64);
#endif
}

#if GROUP
/* Returns the words of block b of a row with sign bits flipped; words behind the row's end are
 * 0. */
static inline uint16
block_words(__global const uchar *row, uint b, uint k_count)
{
    __global const uchar *p = row + (ulong)b * 64;
    const uint left = k_count / PLANES - b * 16;
    if (left >= 16)
        return ((__global const loose_uint16 *)p)->v ^ FLIP;
    uint words[16];
    for (uint i = 0; i < 16; i++)
        words[i] = i < left ? as_uint(vload4(i, p)) ^ FLIP : 0;
    return vload16(0, words);
}

/* Sets `out` to a value that every group g of a row has, spread over the lanes of block b: lane i
 * belongs to group (b * BLOCK + i * PLANES) / GROUP. */
#define SPREAD(out, expression)                                                          \
    do {                                                                                 \
        float lanes_[16];                                                                \
        _Pragma("unroll") for (uint i_ = 0; i_ < 16; i_++)                               \
        {                                                                                \
            const uint g = min((b * BLOCK + i_ * PLANES) / GROUP, groups - 1);           \
            lanes_[i_] = (expression);                                                   \
        }                                                                                \
        out = vload16(0, lanes_);                                                        \
    } while (0)

/* Returns the scale of each lane of block b of a row. */
static inline float16
block_scales(const struct weight *w, ulong row, uint b)
{
#if GROUP % BLOCK == 0
    return (float16)weight_scale(w, row, b / (GROUP / BLOCK));
#else
    const uint groups = group_count(w);
    float16 s;
    SPREAD(s, weight_scale(w, row, g));
    return s;
#endif
}

/* Returns the zero point of each lane, for words with flipped sign bits. */
static inline float16
block_zero_points(const struct weight *w, ulong row, uint b)
{
#if !HAS_ZP || ZP_SCALAR || GROUP % BLOCK == 0
    return (float16)(weight_zero_point(w, row, b * BLOCK / GROUP) + OFFSET);
#else
    const uint groups = group_count(w);
    float16 z;
    SPREAD(z, weight_zero_point(w, row, g));
    return z + OFFSET;
#endif
}
#endif

#if !BLOCKS
/* Returns the address of a row. */
static inline __global const uchar *
row_bytes(const struct weight *w, ulong row)
{
#if GROUP
    return w->data + row_begin(w, row) / PLANES * 4;
#else
    return w->data + row_begin(w, row) * SIZE(WEI);
#endif
}
#endif
