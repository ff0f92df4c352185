/* SPDX-License-Identifier: Apache-2.0
 *
 * exp is computed here, in loops that compilers vectorise: a call of the C library's exp for each
 * token of a vocabulary would take longer than choosing a token.
 */
#include "plugin/text/log_sum_exp.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "plugin/text/candidates.h"
#include "runtime/util/compiler.h"

enum { AT_ONCE = 64 }; /* vector lanes: logits summed in parallel */

/* Returns e^x for -700 <= x <= 0, within two units in the last place. x = k ln 2 + r, and e^r is
 * computed by its power series; the first omitted term is below 2^-57. */
static inline double
exp_of(double x)
{
    const double log2_e = 0x1.71547652b82fep+0;
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    const int32_t k = (int32_t)(x * log2_e - 0.5); /* the nearest integer */
    const double r = (x - (double)k * ln2_high) - (double)k * ln2_low;
    const uint64_t bits = (uint64_t)(uint32_t)(k + 1023) << 52;
    double e = 1.0 / 6227020800.0, power;
    e = e * r + 1.0 / 479001600.0;
    e = e * r + 1.0 / 39916800.0;
    e = e * r + 1.0 / 3628800.0;
    e = e * r + 1.0 / 362880.0;
    e = e * r + 1.0 / 40320.0;
    e = e * r + 1.0 / 5040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r + 1.0;
    memcpy(&power, &bits, sizeof(power));
    return e * power;
}

/* Adds exp(row[i] - largest) to sums[i] for AT_ONCE logits, and the number of NaN among them to
 * *n_nan. Exponents below -700 are raised to -700, which is too small to change a sum of at
 * least 1. */
XM_FOR_AVX2_TOO static void
add_exps(const float *row, double largest, double *sums, int *n_nan)
{
    double x[AT_ONCE];
    int nan = 0;
    for (size_t i = 0; i < AT_ONCE; i++)
        x[i] = (double)row[i] - largest;
    for (size_t i = 0; i < AT_ONCE; i++)
        nan += row[i] != row[i];
    for (size_t i = 0; i < AT_ONCE; i++)
        x[i] = x[i] > -700.0 ? x[i] : -700.0;
    for (size_t i = 0; i < AT_ONCE; i++)
        sums[i] += exp_of(x[i]);
    *n_nan += nan;
}

double
xm_log_sum_exp(const float *row, uint64_t n)
{
    const uint64_t whole = n / AT_ONCE * AT_ONCE;
    const int32_t best = xm_find_largest(row, n);
    double sums[AT_ONCE] = {0.0}, sum = 0.0;
    float rest[AT_ONCE];
    int n_nan = 0;
    if (best < 0 || !(row[best] < INFINITY))
        return NAN;
    const double largest = (double)row[best];
    for (uint64_t i = 0; i < AT_ONCE; i++)
        rest[i] = whole + i < n ? row[whole + i] : -INFINITY;
    for (uint64_t i = 0; i < n; i += AT_ONCE)
        add_exps(i < whole ? row + i : rest, largest, sums, &n_nan);
    for (size_t i = 0; i < AT_ONCE; i++)
        sum += sums[i];
    return n_nan > 0 ? NAN : largest + log(sum);
}
