/* SPDX-License-Identifier: Apache-2.0
 *
 * The share of one work-item when few of them divide n units among themselves: contiguous
 * ranges [span_begin, span_end) that differ by at most one unit.
 */
static inline ulong
span_begin(ulong n)
{
    return n * get_global_id(0) / get_global_size(0);
}

static inline ulong
span_end(ulong n)
{
    return n * (get_global_id(0) + 1) / get_global_size(0);
}
