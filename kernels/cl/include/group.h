/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over a one-dimensional work-group of ITEMS work-items, by halving in local memory. All
 * work-items must call them together, and all get the results. `parts` may be used again at once:
 * every function begins with a barrier.
 *
 * PoCL 6 miscompiles barriers in loops that may run zero times: some builds of the same source left
 * elements unwritten. Therefore a loop with barriers whose number of turns is known only at launch
 * must be a do-while.
 */
#ifndef ITEMS
#define ITEMS 64 /* a power of two; the launch's local size */
#endif
#if ITEMS & (ITEMS - 1)
#error "ITEMS is a power of two"
#endif

/* Replaces values[0 .. n) by their sums over the work-group; `parts` has n * ITEMS floats. */
static void
group_sums(__local float *parts, float *values, uint n)
{
    const uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint v = 0; v < n; v++)
        parts[v * ITEMS + me] = values[v];
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint v = 0; me < left && v < n; v++)
            parts[v * ITEMS + me] += parts[v * ITEMS + me + left];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint v = 0; v < n; v++)
        values[v] = parts[v * ITEMS];
}

static inline float
group_sum(__local float *parts, float value)
{
    group_sums(parts, &value, 1);
    return value;
}

static inline float
group_max(__local float *parts, float value)
{
    const uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    parts[me] = value;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left)
            parts[me] = fmax(parts[me], parts[me + left]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return parts[0];
}
