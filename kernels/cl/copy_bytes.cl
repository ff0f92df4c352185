/* SPDX-License-Identifier: Apache-2.0
 *
 *     dst[dst_at + i] = src[src_at + i],  0 <= i < n
 *
 * Copies bytes at any offset: clEnqueueCopyBuffer copies whole buffers, this kernel copies from and
 * to any offset inside them, in the order of the queue. A work-item copies PER_ITEM
 * neighbouring bytes; the launch has at least n / PER_ITEM, rounded up, work-items. Each
 * byte is read and written once; the ranges must not overlap.
 */
#include "index.h"

#ifndef PER_ITEM
#define PER_ITEM 16 /* bytes that one work-item copies */
#endif

__kernel void
copy_bytes(__global const uchar *src, ulong src_at, __global uchar *dst, ulong dst_at, ulong n)
{
    const ulong first = flat_id() * PER_ITEM;
    const ulong end = min(first + PER_ITEM, n);
    for (ulong i = first; i < end; i++)
        dst[dst_at + i] = src[src_at + i];
}
