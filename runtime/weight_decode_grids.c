/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of ggml's IQ formats. A code selects an entry of a grid (a table), which gives the
 * magnitudes of 4 or 8 neighbouring columns; signs are stored beside the code. An entry has a few
 * bits for each column: an index into the grid's list of magnitudes (`sizes`). The comment at a
 * function is the layout of a block, then the value of a column. */
#include "kernels/cl/include/iq_grids.h"
#include "runtime/util/element.h"
#include "runtime/weight_decode.h"

struct grid {
    const uint16_t *entries;
    int columns, bits; /* columns of an entry; bits of a column in it */
    int8_t sizes[8];
};

/* clang-format off */
static const uint16_t iq2_xxs[] = {IQ2_XXS_GRID}, iq2_xs[] = {IQ2_XS_GRID}, iq2_s[] = {IQ2_S_GRID};
static const uint16_t iq3_xxs[] = {IQ3_XXS_GRID}, iq3_s[] = {IQ3_S_GRID}, iq1_s[] = {IQ1_S_GRID};
static const struct grid grid2_xxs = {iq2_xxs, 8, 2, {8, 25, 43}};
static const struct grid grid2_xs  = {iq2_xs,  8, 2, {8, 25, 43}};
static const struct grid grid2_s   = {iq2_s,   8, 2, {8, 25, 43}};
static const struct grid grid3_xxs = {iq3_xxs, 4, 4, {4, 12, 20, 28, 36, 44, 52, 62}};
static const struct grid grid3_s   = {iq3_s,   4, 4, {1, 3, 5, 7, 9, 11, 13, 15}};
static const struct grid grid1     = {iq1_s,   8, 2, {-1, 0, 1}};
/* clang-format on */

static int
size_of(const struct grid *g, int entry, int column)
{
    return g->sizes[g->entries[entry] >> column * g->bits & ((1 << g->bits) - 1)];
}

/* Decodes an entry: magnitude times `factor` for each column, negative if the column's bit in
 * `signs` is set. */
static void
put_signed(const struct grid *g, int entry, int signs, float factor, float *out)
{
    for (int j = 0; j < g->columns; j++) {
        const int size = size_of(g, entry, j);
        out[j] = factor * (float)(signs >> j & 1 ? -size : size);
    }
}

/* Sets bit 7, the sign of the eighth column, to the parity of the other seven (even parity). */
static int
even_signs(uint32_t seven)
{
    int odd = 0;
    for (int j = 0; j < 7; j++)
        odd ^= seven >> j & 1;
    return (int)(seven & 127) | odd << 7;
}

static uint32_t
word_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int
nibble(const uint8_t *p, int i)
{
    return p[i / 2] >> i % 2 * 4 & 15;
}

/* { f16 d; { u8 entry[4]; u32 signs }[8] }: d (scale + 1/2) / 4 times signed magnitudes. A u32 has
 * 7 signs for each of 4 entries, and in its 4 highest bits the scale of these 32 columns. */
void
xm_decode_iq2_xxs(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 32; j++) {
        const uint8_t *q = block + 2 + j / 4 * 8;
        const uint32_t signs = word_at(q + 4);
        const float factor = d * (0.5f + (float)(signs >> 28)) * 0.25f;
        put_signed(&grid2_xxs, q[j % 4], even_signs(signs >> j % 4 * 7), factor,
                   out + 8 * j);
    }
}

/* { f16 d; u16 qs[32]; u8 scales[8] }: as IQ2_XXS. Each u16 has a code of 9 bits and 7 signs; each
 * nibble of `scales` is the scale of 16 columns. */
void
xm_decode_iq2_xs(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 32; j++) {
        const int q = block[2 + 2 * j] | block[3 + 2 * j] << 8;
        const float factor = d * (0.5f + (float)nibble(block + 66, j / 2)) * 0.25f;
        put_signed(&grid2_xs, q & 511, even_signs((uint32_t)q >> 9), factor, out + 8 * j);
    }
}

/* { f16 d; u8 qs[32], signs[32], qh[8], scales[8] }: as IQ2_XS. Codes have 10 bits, two of them in
 * qh; all 8 signs are stored. */
void
xm_decode_iq2_s(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 32; j++) {
        const int high = block[66 + j / 4] >> j % 4 * 2 & 3;
        const float factor = d * (0.5f + (float)nibble(block + 74, j / 2)) * 0.25f;
        put_signed(&grid2_s, block[2 + j] | high << 8, block[34 + j], factor,
                   out + 8 * j);
    }
}

/* { f16 d; u8 qs[64]; u32 signs[8] }: d (scale + 1/2) / 2 times signed magnitudes. An entry has 4
 * columns; a u32 has the signs and scale of 32 columns as in IQ2_XXS. */
void
xm_decode_iq3_xxs(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 64; j++) {
        const uint32_t word = word_at(block + 66 + j / 8 * 4);
        const float factor = d * (0.5f + (float)(word >> 28)) * 0.5f;
        const int signs = even_signs(word >> j % 8 / 2 * 7);
        put_signed(&grid3_xxs, block[2 + j], signs >> j % 2 * 4, factor, out + 4 * j);
    }
}

/* { f16 d; u8 qs[64], qh[8], signs[32], scales[4] }: d (1 + 2 scale) times signed magnitudes. Codes
 * have 9 bits, one of them in qh; each nibble of `scales` is the scale of 32 columns. */
void
xm_decode_iq3_s(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 64; j++) {
        const int high = block[66 + j / 8] >> j % 8 & 1;
        const float factor = d * (float)(1 + 2 * nibble(block + 106, j / 8));
        put_signed(&grid3_s, block[2 + j] | high << 8, nibble(block + 74, j), factor,
                   out + 4 * j);
    }
}

/* Decodes an entry of IQ1: adds 1/8 to each value of the grid (-1, 0 or 1), or subtracts it if
 * `less`. */
static void
put_shifted(int entry, bool less, float factor, float *out)
{
    for (int j = 0; j < 8; j++)
        out[j] = factor * ((float)size_of(&grid1, entry, j) + (less ? -0.125f : 0.125f));
}

/* { f16 d; u8 qs[32]; u16 qh[8] }: d (1 + 2 scale) (value ± 1/8). A u16 of qh belongs to 32
 * columns: 3 high bits of each of 4 codes, 3 bits of scale, and the sign of the 1/8. */
void
xm_decode_iq1_s(const uint8_t *block, float *out)
{
    const float d = xm_load_float(XM_F16, block, 0);
    for (int j = 0; j < 32; j++) {
        const uint8_t *q = block + 34 + j / 4 * 2;
        const int high = q[0] | q[1] << 8;
        put_shifted(block[2 + j] | (high >> j % 4 * 3 & 7) << 8, high >> 15,
                    d * (float)(2 * (high >> 12 & 7) + 1), out + 8 * j);
    }
}

/* { u8 qs[32], qh[16]; u16 scales[4] }: as IQ1_S. A nibble of qh belongs to 8 columns: 3 high bits
 * of the code, and the sign of the 1/8. The high nibbles of the four `scales` are the f16 d, their
 * other bits scales of 3 bits for 16 columns each. */
void
xm_decode_iq1_m(const uint8_t *block, float *out)
{
    uint16_t scales[4], half = 0;
    for (int i = 0; i < 4; i++) {
        scales[i] = (uint16_t)(block[48 + 2 * i] | block[49 + 2 * i] << 8);
        half = (uint16_t)(half | scales[i] >> 12 << 4 * i);
    }
    const float d = xm_load_float(XM_F16, (const uint8_t *)&half, 0);
    for (int j = 0; j < 32; j++) {
        const int high = nibble(block + 32, j),
                  scale = scales[j / 8] >> j % 8 / 2 * 3 & 7;
        put_shifted(block[j] | (high & 7) << 8, high >> 3, d * (float)(2 * scale + 1),
                    out + 8 * j);
    }
}
