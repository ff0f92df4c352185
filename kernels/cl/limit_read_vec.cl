/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit of reading: every work-item adds up its share of the memory.
 * `words` are 64 bytes each.
 */
#include "span.h"

__kernel void
limit_read_vec(__global const uint16 *memory, __global uint16 *sums, ulong words)
{
    uint16 a = 0, b = 0, c = 0, d = 0;
    ulong i = span_begin(words);
    const ulong end = span_end(words);
    for (; i + 4 <= end; i += 4) {
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch)
        for (uint j = 0; j < 4; j++)
            __builtin_prefetch((const void *)(memory + i + 32 + j), 0, 3);
#endif
        a += memory[i];
        b += memory[i + 1];
        c += memory[i + 2];
        d += memory[i + 3];
    }
    for (; i < end; i++)
        a += memory[i];
    sums[get_global_id(0)] = a + b + c + d;
}
