/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of AMX: eight registers of 16 rows of 16 32-bit words.
 *
 *   AMX  1: the processor has tiles and products of bf16, and the operating system lets the process
 *        use them; 0: they are emulated
 *
 * A kernel declares TILES, then calls tiles_begin before it uses a tile and tiles_end before it
 * returns. Tiles are numbered 0 to 7. Addresses point to words; the distance from one row to the
 * next (`step`) is in words.
 *
 *     TILE_MULTIPLY(c, a, b)   c[m][n] += sum_k a[m][k] b[k / 2][n][k % 2]   c f32, a, b bf16
 */
#include "round_bf16.h"

#ifndef AMX
#define AMX 0
#endif

#if AMX
#define TILES

/* Palette 1; tiles of 16 rows of 64 bytes. */
static inline void
tiles_begin(void)
{
    const ulong8 config = (ulong8)(1, 0, 0x0040004000400040ul, 0x0040004000400040ul, 0, 0,
                                   0x1010101010101010ul, 0);
    __asm__ volatile("ldtilecfg (%0)" : : "r"(&config) : "memory");
}

static inline void
tiles_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : : : "memory")
#define TILE_LOAD(t, p, step)                                                            \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                     \
                     :                                                                   \
                     : "r"(p), "r"((ulong)(step)*4)                                      \
                     : "memory")
#define TILE_STORE(t, p, step)                                                           \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                                 \
                     :                                                                   \
                     : "r"(p), "r"((ulong)(step)*4)                                      \
                     : "memory")
#define TILE_MULTIPLY(c, a, b)                                                           \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : : "memory")
#else
typedef uint tile_register[16][16];
#define TILES tile_register tiles[8]

static inline void
tiles_begin(void)
{
}

static inline void
tiles_end(void)
{
}

#define TILE_WORDS(expression)                                                           \
    for (uint m = 0; m < 16; m++)                                                        \
        for (uint n = 0; n < 16; n++)                                                    \
            expression;
#define TILE_ZERO(t)           TILE_WORDS(tiles[t][m][n] = 0)
#define TILE_LOAD(t, p, step)  TILE_WORDS(tiles[t][m][n] = as_uint((p)[m * (step) + n]))
#define TILE_STORE(t, p, step) TILE_WORDS((p)[m * (step) + n] = as_float(tiles[t][m][n]))
#define TILE_MULTIPLY(c, a, b) multiply_tiles(tiles[c], tiles[a], tiles[b])

static inline void
multiply_tiles(tile_register c, tile_register a, tile_register b)
{
    for (uint m = 0; m < 16; m++) {
        float16 sum = as_float16(vload16(0, c[m]));
#pragma unroll 1
        for (uint k = 0; k < 16; k++) {
            const uint16 v = vload16(0, b[k]);
            sum += as_float(a[m][k] << 16) * as_float16(v << 16u);
            sum += as_float(a[m][k] & 0xffff0000u) * as_float16(v & 0xffff0000u);
        }
        vstore16(as_uint16(sum), 0, c[m]);
    }
}
#endif

/* Returns 32 numbers as bf16, two a word: first those of `low`, then those of `high`. */
static inline uint16
bf16_words(float16 low, float16 high)
{
#if AMX && defined(__AVX512F__)
    uint16 words;
    __asm__("vcvtne2ps2bf16 %1,%2,%0" : "=vr"(words) : "vr"(low), "vr"(high));
    return words;
#else
    const uint16 a = as_uint16(ROUND_BF16(float16, low)),
                 b = as_uint16(ROUND_BF16(float16, high));
    return (uint16)(a.even >> 16u | a.odd, b.even >> 16u | b.odd);
#endif
}

/* Returns words of two bf16: lane i has even[i] in its low half and odd[i] in its high half. */
static inline uint16
bf16_pairs(float16 even, float16 odd)
{
    return as_uint16(ROUND_BF16(float16, even)) >> 16u |
           as_uint16(ROUND_BF16(float16, odd));
}
