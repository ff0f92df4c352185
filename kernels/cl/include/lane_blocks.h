/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks, one row in each lane, multiplied as the integers that the file has
 * (lane_rows.h). A format defines
 *
 *     LANE_K_<name>                              columns of a unit
 *     PLACE_<name>                               the unit of places in lane_rows, in bytes: rows
 *                                                begin at multiples of it
 *     void <name>_add(rows, x, k, factor, sum)   does what add_unit does (lane_rows.h); for blocks
 *                                                of 32 columns PAIRS_ADD defines it (lane_pairs.h)
 *
 * Rows begin and end at places; the host refuses other rows (primitives/matrix_engine.c).
 */

/* Extracts n words that begin `shift` bits (0 to 32) behind the first bit of n + 1 words. */
static inline void
realign(const uint *from, uint shift, const uint n, uint *words)
{
    const uint mask = shift ? 0xffffffffu << (32 - shift) : 0;
    uint last = rotate(from[0], 32 - shift);
#pragma unroll
    for (uint i = 0; i < n; i++) {
        const uint next = rotate(from[i + 1], 32 - shift);
        words[i] = bitselect(last, next, mask);
        last = next;
    }
}

/* Loads n words from half word `at` of the data on; reads at most `reads` words of memory. */
static inline void
load_unaligned(__global const uchar *data, uint at, const uint n, const uint reads,
               uint *words)
{
    __global const uint *from = (__global const uint *)data + at / 2;
    uint read[33];
#pragma unroll
    for (uint i = 0; i <= n; i++)
        read[i] = from[min(i, reads - 1)];
    realign(read, at % 2 * 16, n, words);
}

#include "lane_k_blocks.h"
#include "lane_k_planes.h"
#include "lane_pairs.h"
#include "lane_tables.h"

#ifdef CODES
#include "lane_codes.h"
#else
/* ---- any format -------------------------------------------------------------------------- */

static inline uint
unit_columns(const uint format)
{
#define LANE_COLUMNS(format) PASTE(LANE_K_, format)
    return BY_FORMAT(format, LANE_COLUMNS);
}

static inline void
find_row(const uint format, struct lane_rows *rows, uint i, ulong row)
{
#define LANE_WORD(format)                                                                \
    (uint)((row * (rows->w->view.x / PASTE(COLUMNS_, format)) +                          \
            rows->w->view.y / PASTE(COLUMNS_, format)) *                                 \
           PASTE(BYTES_, format) / PASTE(PLACE_, format))
    rows->word[i] = BY_FORMAT(format, LANE_WORD);
}

static inline void
find_expert(const uint format, struct lane_rows *rows, uint expert)
{
#define LANE_WORDS(format)                                                               \
    rows->w->view.x / PASTE(COLUMNS_, format) * PASTE(BYTES_, format) /                  \
        PASTE(PLACE_, format)
    rows->words = expert * (rows->w->view.z * (BY_FORMAT(format, LANE_WORDS)));
}

#define ADD_FORMAT(format) PASTE(format, _add)(rows, x, k, factor, sum)
static inline void
add_unit(const uint format, const struct lane_rows *rows, __global const STORAGE(SRC) * x,
         uint k, float factor, float sum[ROW_BLOCKS])
{
    if (FORMATS > 2 && format == 2)
        ADD_FORMAT(FORMAT2);
    else if (FORMATS > 1 && format == 1)
        ADD_FORMAT(FORMAT1);
    else
        ADD_FORMAT(FORMAT0);
}
#endif
