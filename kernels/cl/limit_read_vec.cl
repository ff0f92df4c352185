/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the limit of reading: every work-item adds up its share of the memory, which may begin
 * at any address. `words` are 64 bytes each.
 */
#include "span.h"

typedef struct __attribute__((packed)) {
    uint16 v;
} loose_uint16;

__kernel void
limit_read_vec(__global const loose_uint16 *memory, __global uint16 *sums, ulong words)
{
    uint16 a = 0, b = 0, c = 0, d = 0;
    ulong i = span_begin(words);
    const ulong end = span_end(words);
    for (; i + 4 <= end; i += 4) {
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch)
        for (uint j = 0; j < 4; j++)
            __builtin_prefetch((const void *)(memory + i + 32 + j), 0, 3);
#endif
        a += memory[i].v;
        b += memory[i + 1].v;
        c += memory[i + 2].v;
        d += memory[i + 3].v;
    }
    for (; i < end; i++)
        a += memory[i].v;
    sums[get_global_id(0)] = a + b + c + d;
}
