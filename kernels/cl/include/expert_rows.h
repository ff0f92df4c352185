/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns the end of the rows that moe_sort gave to an expert. They begin at first_tile[expert] *
 * 16; the last tile may be partly empty.
 */
static inline uint
expert_end(__global const uint *first_tile, __global const int *source, ulong expert)
{
    uint end = first_tile[expert + 1] * 16;
    while (end > first_tile[expert] * 16 && source[end - 1] < 0)
        end--;
    return end;
}
