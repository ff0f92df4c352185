/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights read as 32-bit words in the order of the file, for kernels whose work-items divide k.
 * Word i of a row has WORD_VALUES neighbouring weights, the first in its lowest bits. Words are
 * read if rows and groups are whole words; otherwise elements are read one by one.
 */
#include "weights.h"

#if BLOCKS
#define WORD_VALUES 1 /* not read */
#else
#define WORD_VALUES_u4   8
#define WORD_VALUES_i4   8
#define WORD_VALUES_u8   4
#define WORD_VALUES_i8   4
#define WORD_VALUES_f16  2
#define WORD_VALUES_bf16 2
#define WORD_VALUES_f32  1
#define WORD_VALUES      PASTE(WORD_VALUES_, WEI)

static inline float
word_u4(uint w, uint i)
{
    return (float)((w >> (4 * i)) & 15u);
}

static inline float
word_i4(uint w, uint i)
{
    return (float)(as_int(w << (28 - 4 * i)) >> 28);
}

static inline float
word_u8(uint w, uint i)
{
    return (float)((w >> (8 * i)) & 255u);
}

static inline float
word_i8(uint w, uint i)
{
    return (float)(as_int(w << (24 - 8 * i)) >> 24);
}

static inline float
word_f16(uint w, uint i)
{
    return half_bits((ushort)(w >> (16 * i)));
}

static inline float
word_bf16(uint w, uint i)
{
    return as_float(i ? w & 0xffff0000u : w << 16);
}

static inline float
word_f32(uint w, uint i)
{
    return as_float(w);
}

/* Weight i of a word, before zero point and scale. */
#define WORD_VALUE(w, i) PASTE(word_, WEI)(w, i)

/* Returns whether the view's rows are whole runs of `run` weights, each of which begins at a
 * word. */
static inline bool
is_words(const struct weight *w, uint run)
{
    return w->k_count % run == 0 && (w->view.x | w->view.y) % WORD_VALUES == 0;
}

/* Loads `n` words from weight k of a row on, which must begin a word. */
static inline void
read_words(const struct weight *w, ulong row, uint k, uint n, uint *words)
{
    __global const uint *p =
        (__global const uint *)(w->data + (row_begin(w, row) + k) / WORD_VALUES * 4);
    for (uint i = 0; i < n; i++)
        words[i] = p[i];
}
#endif
