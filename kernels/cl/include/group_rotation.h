/* SPDX-License-Identifier: Apache-2.0
 *
 * rotation.h for a row of n elements in local memory, by a work-group of ITEMS.
 */
#include "group.h"
#include "rotation.h"

/* Rotates blocks of b elements; b is at most `most`, a constant. Every work-item passes the
 * barriers of all strides below `most`, because b may differ among them. Begins and ends with a
 * barrier. */
static void
rotate_local(__local float *y, int n, int b, int most)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < most; step *= 2) {
        for (int i = get_local_id(0); step < b && i < n; i += ITEMS)
            if (!(i & step)) {
                const float low = y[i], high = y[i + step];
                y[i] = low + high;
                y[i + step] = low - high;
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = get_local_id(0); b > 1 && i < n; i += ITEMS)
        y[i] *= ROOT_OF(b);
    barrier(CLK_LOCAL_MEM_FENCE);
}
