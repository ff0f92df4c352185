/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations as kernels quantize them to 8-bit integers (kernels/cl/include/bytes.h): in each
 * row every group of `factor` columns is rounded to 127 steps on both sides of zero, scaled by
 * the largest magnitude of the group. The error is at most 1/254 of that magnitude.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_QUANTISE_H
#define XM_UNIT_TESTS_PRIMITIVES_QUANTISE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/util/element.h"

/* Rounds each number to bf16, as kernels that multiply AMX tiles do. */
inline std::vector<float>
in_bf16(std::vector<float> x)
{
    for (float &v : x)
        v = xm_bf16_to_float(xm_float_to_bf16(v));
    return x;
}

/* Returns x, rows of `cols` columns, after quantizing groups of `factor` columns; factor 0:
 * unchanged. */
inline std::vector<float>
quantised(std::vector<float> x, uint64_t cols, uint32_t factor)
{
    for (uint64_t row = 0; factor && row < x.size(); row += cols) {
        for (uint64_t k = 0; k < cols; k += factor) {
            const uint64_t end = std::min<uint64_t>(k + factor, cols);
            float largest = 0;
            for (uint64_t i = k; i < end; i++)
                largest = std::fmax(largest, std::fabs(x[row + i]));
            for (uint64_t i = k; i < end && largest > 0; i++)
                x[row + i] =
                    std::nearbyint(x[row + i] * (127.0f / largest)) * (largest / 127.0f);
        }
    }
    return x;
}

#endif
