/* SPDX-License-Identifier: Apache-2.0
 *
 * The share of each work-item if a few work-items divide n units: contiguous ranges
 * [span_begin, span_end), whose lengths differ by at most one unit.
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
