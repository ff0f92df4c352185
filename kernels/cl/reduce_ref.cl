/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[o,i] = f over n of x[o,n,i]        REDUCE: 0 sum, 1 mean, 2 max, 3 min, 4 product
 *
 * A work-item computes one element of y. Floats are accumulated in f32, integers in int64; a mean
 * of integers truncates. If n is 0, sum and mean are 0, the product is 1, the maximum is the least
 * number of the type (floats: -inf), the minimum its largest (floats: +inf).
 */
#include "types.h"

#ifndef REDUCE
#define REDUCE 0 /* enum xm_reduce_fn */
#endif
#ifndef INTEGER
#define INTEGER 0 /* 1: SRC is an integer */
#endif
#ifndef DST_IS_INTEGER
#define DST_IS_INTEGER 0
#endif

#if INTEGER
#define VALUE long
#else
#define VALUE float
#endif

#if !DST_IS_INTEGER
#define RESULT(v) (float)(v)
#elif INTEGER
#define RESULT(v) (v)
#else
#define RESULT(v) convert_long_sat(v)
#endif

#define UNUSED_BITS (64 - 8 * sizeof(STORAGE(SRC)))
#define IS_SIGNED   ((STORAGE(SRC))-1 < 0)
#if REDUCE == 2 && INTEGER
#define OF_NONE (IS_SIGNED ? LONG_MIN >> UNUSED_BITS : 0L)
#elif REDUCE == 2
#define OF_NONE (-INFINITY)
#elif REDUCE == 3 && INTEGER
#define OF_NONE (IS_SIGNED ? LONG_MAX >> UNUSED_BITS : (long)(ULONG_MAX >> UNUSED_BITS))
#elif REDUCE == 3
#define OF_NONE INFINITY
#else
#define OF_NONE (VALUE)(REDUCE == 4)
#endif

static VALUE
join(VALUE a, VALUE b)
{
#if REDUCE == 0 || REDUCE == 1
    return a + b;
#elif REDUCE == 2
    return a > b ? a : b;
#elif REDUCE == 3
    return a < b ? a : b;
#elif REDUCE == 4
    return a * b;
#else
#error "REDUCE is 0 to 4"
#endif
}

__kernel void
reduce_ref(__global const STORAGE(SRC) *x, __global STORAGE(DST) *y, ulong n, ulong inner)
{
    const ulong id = get_global_id(0), at = id / inner * n * inner + id % inner;
    VALUE v = n ? LOAD(SRC, x, at) : OF_NONE;
    for (ulong i = 1; i < n; i++)
        v = join(v, LOAD(SRC, x, at + i * inner));
#if REDUCE == 1
    v /= (VALUE)max(n, 1ul);
#endif
    STORE(DST, y, id, RESULT(v));
}
