/* SPDX-License-Identifier: Apache-2.0
 *
 * Dot product for the references. It adds eight partial sums, always in the same order: a compiler
 * may turn them into vector instructions although it must not reorder floats. */
#ifndef XM_RUNTIME_REFERENCE_DOT_H
#define XM_RUNTIME_REFERENCE_DOT_H

#include <stdint.h>

static inline float
xm_ref_dot(const float *a, const float *b, uint64_t n)
{
    float part[8] = {0};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++)
            part[j] += a[i + j] * b[i + j];
    }
    for (; i < n; i++)
        part[i % 8] += a[i] * b[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) +
           ((part[2] + part[6]) + (part[3] + part[7]));
}

#endif
