/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "plugin/bench_kernels/bench.h"

/* Largest squared error of a row, relative to its squares. Activations of 8 bits cause about 1e-4;
 * one wrong scale among the blocks of a row causes more than 1e-2. */
#define MOST_ERROR 1e-3

bool
xm_bench_results_agree(const float *got, const float *want, uint64_t rows, uint64_t cols)
{
    for (uint64_t r = 0; r < rows; r++, got += cols, want += cols) {
        double error = 0.0, squares = 0.0;
        for (uint64_t c = 0; c < cols; c++) {
            const double d = (double)got[c] - (double)want[c];
            error += d * d;
            squares += (double)want[c] * (double)want[c];
        }
        if (isfinite(squares) && !(error <= MOST_ERROR * squares))
            return false;
    }
    return true;
}
