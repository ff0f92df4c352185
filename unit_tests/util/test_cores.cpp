/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding a thread to cores, and restoring its earlier cores.
 */
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

#include "runtime/util/cores.h"

namespace
{

cpu_set_t
allowed()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    return set;
}

uint32_t
first_allowed()
{
    const cpu_set_t set = allowed();
    uint32_t i = 0;
    while (i + 1 < CPU_SETSIZE && !CPU_ISSET(i, &set))
        i++;
    return i;
}

/* The cores of other threads do not change. */
TEST(Cores, AreThoseOfTheThreadUntilItLeaves)
{
    const cpu_set_t before = allowed();
    std::thread([&] {
        xm_cores_before was;
        xm_cores_enter({first_allowed(), 1}, &was);
        const cpu_set_t inside = allowed();
        EXPECT_EQ(CPU_COUNT(&inside), 1);
        EXPECT_TRUE(CPU_ISSET(first_allowed(), &inside));
        xm_cores_leave(&was);
        const cpu_set_t after = allowed();
        EXPECT_TRUE(CPU_EQUAL(&after, &before));
    }).join();
    const cpu_set_t here = allowed();
    EXPECT_TRUE(CPU_EQUAL(&here, &before));
}

TEST(Cores, OfNoneOrThatThereAreNotLeaveAllAsItIs)
{
    const cpu_set_t before = allowed();
    for (const xm_cores c : {xm_cores{0, 0},
                             {CPU_SETSIZE, 1},
                             {CPU_SETSIZE - 1, 1},
                             {CPU_SETSIZE - 1, 2},
                             {UINT32_MAX, UINT32_MAX}}) {
        xm_cores_before was;
        EXPECT_FALSE(xm_cores_are_ours(c)) << c.first << " " << c.n;
        xm_cores_enter(c, &was);
        const cpu_set_t inside = allowed();
        EXPECT_TRUE(CPU_EQUAL(&inside, &before));
        xm_cores_leave(&was);
    }
    EXPECT_TRUE(xm_cores_are_ours({first_allowed(), 1}));
}

} // namespace
