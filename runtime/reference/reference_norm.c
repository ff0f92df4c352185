/* SPDX-License-Identifier: Apache-2.0
 *
 * Root mean square normalisation (Zhang and Sennrich 2019), the mean in f64.
 */
#include <math.h>

#include "runtime/reference/reference.h"

void
xm_ref_rms_norm(const float *x, const float *gamma, uint64_t rows, uint64_t n,
                float epsilon, float *y)
{
    for (uint64_t r = 0; r < rows; r++, x += n, y += n) {
        double sum = 0.0;
        for (uint64_t i = 0; i < n; i++)
            sum += (double)x[i] * (double)x[i];
        float scale = (float)(1.0 / sqrt(sum / (double)n + (double)epsilon));
        for (uint64_t i = 0; i < n; i++)
            y[i] = x[i] * scale * (gamma ? gamma[i] : 1.0f);
    }
}
