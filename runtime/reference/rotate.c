/* SPDX-License-Identifier: Apache-2.0
 *
 * The Walsh-Hadamard transform of heads that are cached in few bits (Ashkboos et al. 2024, QuaRot):
 * it spreads a few large elements over all elements of a block, which then need fewer bits.
 */
#include <math.h>

#include "runtime/reference/reference.h"

enum { LEAST_BLOCK = 16, MOST_BLOCK = 128 };

uint64_t
xm_ref_rotation(uint64_t n)
{
    uint64_t block = 1;
    while (n % (2 * block) == 0 && block < MOST_BLOCK)
        block *= 2;
    return block < LEAST_BLOCK ? 1 : block;
}

static void
rotate_block(float *x, uint64_t n)
{
    const float factor = 1.0f / sqrtf((float)n);
    for (uint64_t step = 1; step < n; step *= 2) {
        for (uint64_t i = 0; i < n; i++) {
            if (i & step)
                continue;
            const float low = x[i], high = x[i + step];
            x[i] = low + high;
            x[i + step] = low - high;
        }
    }
    for (uint64_t i = 0; i < n; i++)
        x[i] *= factor;
}

void
xm_ref_rotate(float *x, uint64_t rows, uint64_t n)
{
    const uint64_t block = n ? xm_ref_rotation(n) : 1;
    for (uint64_t i = 0; block > 1 && i < rows * n; i += block)
        rotate_block(x + i, block);
}
