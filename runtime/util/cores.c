/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "runtime/util/cores.h"

#include <sched.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == sizeof(((struct xm_cores_before *)0)->bits),
               "the system's set of cores");

static bool
is_in_set(struct xm_cores c)
{
    return c.n > 0 && c.first < CPU_SETSIZE && c.n <= CPU_SETSIZE - c.first;
}

bool
xm_cores_are_ours(struct xm_cores c)
{
    cpu_set_t ours;
    bool all = is_in_set(c) && sched_getaffinity(0, sizeof(ours), &ours) == 0;
    for (uint32_t i = 0; i < c.n && all; i++)
        all = CPU_ISSET(c.first + i, &ours);
    return all;
}

void
xm_cores_enter(struct xm_cores c, struct xm_cores_before *before)
{
    cpu_set_t set;
    before->is_bound = is_in_set(c) && sched_getaffinity(0, sizeof(set), &set) == 0;
    if (!before->is_bound)
        return;
    memcpy(before->bits, &set, sizeof(set));
    CPU_ZERO(&set);
    for (uint32_t i = 0; i < c.n; i++)
        CPU_SET(c.first + i, &set);
    before->is_bound = sched_setaffinity(0, sizeof(set), &set) == 0;
}

void
xm_cores_leave(const struct xm_cores_before *before)
{
    cpu_set_t set;
    if (!before->is_bound)
        return;
    memcpy(&set, before->bits, sizeof(set));
    (void)sched_setaffinity(0, sizeof(set), &set);
}
