/* SPDX-License-Identifier: Apache-2.0
 *
 *     dst[dst_at + sum i_d dst_stride_d] = src[src_at + sum i_d src_stride_d]
 *
 * over n0 x n1 x n2 x n3 points. A work-item copies one element of BITS bits.
 */
#include "types.h"

#ifndef BITS
#define BITS 32
#endif

__kernel void
copy_ref(__global const STORAGE_BITS(BITS) *src, __global STORAGE_BITS(BITS) *dst,
         ulong n0, ulong n1, ulong n2, ulong n3, long src_at, long src0, long src1,
         long src2, long src3, long dst_at, long dst0, long dst1, long dst2, long dst3)
{
    const ulong at = get_global_id(0);
    const long i3 = at % n3, i2 = at / n3 % n2, i1 = at / n3 / n2 % n1;
    const long i0 = at / n3 / n2 / n1;
    dst[dst_at + i0 * dst0 + i1 * dst1 + i2 * dst2 + i3 * dst3] =
        src[src_at + i0 * src0 + i1 * src1 + i2 * src2 + i3 * src3];
}
