/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the limit of reading, for GPUs: neighbouring work-items read neighbouring 16 bytes.
 * `words` are 64 bytes each.
 */
__kernel void
limit_read_gen(__global const uint4 *memory, __global uint4 *sums, ulong words)
{
    uint4 sum = 0;
    for (ulong i = get_global_id(0); i < words * 4; i += get_global_size(0))
        sum += memory[i];
    sums[get_global_id(0)] = sum;
}
