/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products: y = x w^T + b with a stored weight, dequantised one row at a time, and
 * the batched product of two float matrices.
 */
#include <string.h>

#include "runtime/reference/dot.h"
#include "runtime/reference/reference.h"
#include "runtime/util/memory.h"

enum xm_status
xm_ref_linear(const float *x, uint64_t tokens, const struct xm_weight *w, uint64_t expert,
              const float *bias, float *y)
{
    uint64_t bytes;
    float *row = xm_mul_size(w->cols, sizeof(*row), &bytes) ? xm_malloc(bytes) : NULL;
    if (!row)
        return XM_NO_MEMORY;
    for (uint64_t n = 0; n < w->rows; n++) {
        float b = bias ? bias[n] : 0.0f;
        xm_weight_row(w, expert, n, row);
        for (uint64_t t = 0; t < tokens; t++)
            y[t * w->rows + n] = xm_ref_dot(x + t * w->cols, row, w->cols) + b;
    }
    xm_free(row);
    return XM_OK;
}

/* c[M,N] += op(a) b, with b stored K x N: adds multiples of rows of b, which are contiguous in b
 * and c. */
static void
matmul_rows(const float *a, bool transpose_a, const float *b, uint64_t m, uint64_t n,
            uint64_t k, float *c)
{
    for (uint64_t i = 0; i < m; i++) {
        float *c_row = c + i * n;
        for (uint64_t j = 0; j < k; j++) {
            float s = transpose_a ? a[j * m + i] : a[i * k + j];
            const float *b_row = b + j * n;
            for (uint64_t l = 0; l < n; l++)
                c_row[l] += s * b_row[l];
        }
    }
}

/* c[M,N] = op(a) b^T, b stored N x K. */
static void
matmul_dots(const float *a, bool transpose_a, const float *b, uint64_t m, uint64_t n,
            uint64_t k, float *c)
{
    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t l = 0; l < n; l++) {
            const float *b_row = b + l * k;
            float sum = 0.0f;
            if (!transpose_a) {
                c[i * n + l] = xm_ref_dot(a + i * k, b_row, k);
                continue;
            }
            for (uint64_t j = 0; j < k; j++)
                sum += a[j * m + i] * b_row[j];
            c[i * n + l] = sum;
        }
    }
}

void
xm_ref_matmul(const float *a, bool transpose_a, const float *b, bool transpose_b,
              uint64_t m, uint64_t n, uint64_t k, float *c)
{
    if (m == 0 || n == 0)
        return;
    if (transpose_b) {
        matmul_dots(a, transpose_a, b, m, n, k, c);
    } else {
        memset(c, 0, m * n * sizeof(*c));
        matmul_rows(a, transpose_a, b, m, n, k, c);
    }
}
