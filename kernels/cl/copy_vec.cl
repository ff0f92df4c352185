/* SPDX-License-Identifier: Apache-2.0
 *
 * The strided copy of copy_ref for runs: the innermost dimension is contiguous on both sides.
 * A work-item copies a span of the n0 x n1 x n2 runs of n3 elements, 16 at a time.
 */
#include "span.h"
#include "types.h"

#ifndef BITS
#define BITS 32
#endif

static void
copy_run(__global const STORAGE_BITS(BITS) *src, __global STORAGE_BITS(BITS) *dst,
         ulong n)
{
    ulong i = 0;
    for (; i + 16 <= n; i += 16)
        vstore16(vload16(0, src + i), 0, dst + i);
    for (; i < n; i++)
        dst[i] = src[i];
}

__kernel void
copy_vec(__global const STORAGE_BITS(BITS) *src, __global STORAGE_BITS(BITS) *dst,
         ulong n0, ulong n1, ulong n2, ulong n3, long src_at, long src0, long src1,
         long src2, long src3, long dst_at, long dst0, long dst1, long dst2, long dst3)
{
    const ulong runs = n0 * n1 * n2;
    for (ulong r = span_begin(runs); r < span_end(runs); r++) {
        const long i2 = r % n2, i1 = r / n2 % n1, i0 = r / n2 / n1;
        copy_run(src + src_at + i0 * src0 + i1 * src1 + i2 * src2,
                 dst + dst_at + i0 * dst0 + i1 * dst1 + i2 * dst2, n3);
    }
}
