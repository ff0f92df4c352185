/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels make of activations that they multiply as 8-bit integers
 * (kernels/cl/include/bytes.h): rows whose every `factor` columns are rounded to 127 steps each way
 * of their largest. Off by 1/254 of that at most.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_QUANTISE_H
#define XM_UNIT_TESTS_PRIMITIVES_QUANTISE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/util/element.h"

/* Each number as the nearest that bf16 has: what kernels with tiles of AMX multiply. */
inline std::vector<float>
in_bf16(std::vector<float> x)
{
    for (float &v : x)
        v = xm_bf16_to_float(xm_float_to_bf16(v));
    return x;
}

/* x of rows of `cols`; a factor of 0: as it is. */
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
