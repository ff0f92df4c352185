/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of top-k: by value, ties by the lower index, a NaN behind all numbers.
 */
#ifndef LARGEST
#define LARGEST 1
#endif
#ifndef INTEGER
#define INTEGER 0 /* 1: the elements are integers */
#endif

#if INTEGER
#define VALUE     long
#define IS_NAN(v) false
#else
#define VALUE     float
#define IS_NAN(v) isnan(v)
#endif

/* Returns whether value a at index i is ordered before value b at index j. */
static inline bool
stands_before(VALUE a, ulong i, VALUE b, ulong j)
{
    const bool nan_a = IS_NAN(a), nan_b = IS_NAN(b);
    if (nan_a != nan_b)
        return nan_b;
    if (nan_a || a == b)
        return i < j;
    return LARGEST ? a > b : a < b;
}
