/* SPDX-License-Identifier: Apache-2.0
 *
 * ROWS rows of weights times one activation row, by a work-group whose ITEMS work-items divide k:
 *
 *     sum_g scale[g] (sum_{k in g} q[k] x[k] - zp[g] sum_{k in g} x[k])
 *
 * A work-item reads runs of WORDS words, neighbouring work-items neighbouring runs. A run is in one
 * group. x is staged in local memory, a chunk of ITEMS runs at a time: element i of work-item m's
 * run is at i * (ITEMS + 1) + m, so that neither writes nor reads have bank conflicts.
 *
 *     for each chunk:  stage_chunk, then add_rows for every weight that is multiplied by x
 */
#include "group.h"
#include "words.h"

#ifndef ROWS
#define ROWS 4 /* rows of weights of a work-group */
#endif

#if BLOCKS
#define RUN 16
#elif GROUP % WORD_VALUES /* groups that are not whole words */
#define WORDS 0
#define RUN   8
#else
#if GROUP % (4 * WORD_VALUES) == 0
#define WORDS 4
#elif GROUP % (2 * WORD_VALUES) == 0
#define WORDS 2
#else
#define WORDS 1
#endif
#define RUN (WORDS * WORD_VALUES)
#endif

#define CHUNK        (ITEMS * RUN)
#define CHUNK_FLOATS (RUN * (ITEMS + 1)) /* local memory of a chunk */

static void
stage_chunk(__local float *chunk, __global const STORAGE(SRC) *x, uint first,
            uint k_count)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < CHUNK; i += ITEMS) {
        const uint k = first + i;
        chunk[i % RUN * (ITEMS + 1) + i / RUN] = k < k_count ? LOAD(SRC, x, k) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Adds to sum this work-item's share of a chunk's products with the stored rows from `row` on,
 * times `factor`. Rows from `end` on repeat row end - 1. */
static void
add_rows(const struct weight *w, ulong row, ulong end, uint first,
         __local const float *chunk, float factor, float *sum)
{
    const uint me = get_local_id(0), k = first + me * RUN;
    if (k >= w->k_count)
        return;
#if BLOCKS
    for (uint r = 0; r < ROWS; r++) {
        float v[RUN], dot = 0.0f;
        vstore16(weights_at(w, min(row + r, end - 1), k), 0, v);
#pragma unroll
        for (uint i = 0; i < RUN; i++)
            dot += v[i] * chunk[i * (ITEMS + 1) + me];
        sum[r] += factor * dot;
    }
    return;
#elif WORDS
    if (is_words(w, RUN)) {
        uint words[ROWS][WORDS];
        float dot[ROWS], x_sum = 0.0f;
        for (uint r = 0; r < ROWS; r++) {
            read_words(w, min(row + r, end - 1), k, WORDS, words[r]);
            dot[r] = 0.0f;
        }
        for (uint i = 0; i < RUN; i++) {
            const float v = chunk[i * (ITEMS + 1) + me];
            x_sum += v;
            for (uint r = 0; r < ROWS; r++)
                dot[r] += WORD_VALUE(words[r][i / WORD_VALUES], i % WORD_VALUES) * v;
        }
        for (uint r = 0; r < ROWS; r++) {
            const ulong n = min(row + r, end - 1);
            const uint g = k / group_size(w);
            sum[r] += factor * weight_scale(w, n, g) *
                      (dot[r] - weight_zero_point(w, n, g) * x_sum);
        }
        return;
    }
#endif
    for (uint i = 0; i < RUN && k + i < w->k_count; i++) {
        const float v = factor * chunk[i * (ITEMS + 1) + me];
        for (uint r = 0; r < ROWS; r++)
            sum[r] += weight_at(w, min(row + r, end - 1), k + i) * v;
    }
}
