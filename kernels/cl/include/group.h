/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over a work-group of ITEMS work-items in a row, by halving in local memory.
 * All work-items call them together and all get the results. `parts` may be used again at
 * once: every function begins with a barrier.
 *
 * A loop with barriers whose count of turns is known at launch only is to run at least once: one
 * that may be passed by makes its barriers conditional, and PoCL 6 has compiled two of the like
 * now and then, from the same text, into kernels that leave elements unwritten.
 */
#ifndef ITEMS
#define ITEMS 64 /* a power of two; the launch's local size */
#endif
#if ITEMS & (ITEMS - 1)
#error "ITEMS is a power of two"
#endif

/* values[0 .. n) become their sums; n * ITEMS floats of local memory. */
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
