// SPDX-License-Identifier: Apache-2.0
// Compares the set of live handles with a std::map.
#include "plugin/api/handles.h"

#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace
{

const void *
address(size_t i)
{
    return reinterpret_cast<const void *>(uintptr_t{0x7f0000001000} + 16 * i);
}

TEST(Handles, AreOfOneKind)
{
    int x;
    EXPECT_FALSE(xm_api_is(nullptr, XM_API_CORE));
    EXPECT_FALSE(xm_api_is(&x, XM_API_CORE));
    EXPECT_FALSE(xm_api_handle_drop(&x, XM_API_CORE));
    ASSERT_TRUE(xm_api_handle_add(&x, XM_API_CORE));
    EXPECT_TRUE(xm_api_is(&x, XM_API_CORE));
    EXPECT_FALSE(xm_api_is(&x, XM_API_MODEL));
    EXPECT_FALSE(xm_api_handle_drop(&x, XM_API_MODEL));
    EXPECT_TRUE(xm_api_handle_drop(&x, XM_API_CORE));
    EXPECT_FALSE(xm_api_is(&x, XM_API_CORE));
}

TEST(Handles, AreCounted)
{
    int x;
    ASSERT_TRUE(xm_api_handle_add(&x, XM_API_TENSOR));
    ASSERT_TRUE(xm_api_handle_add(&x, XM_API_TENSOR));
    EXPECT_TRUE(xm_api_handle_drop(&x, XM_API_TENSOR));
    EXPECT_TRUE(xm_api_is(&x, XM_API_TENSOR));
    EXPECT_TRUE(xm_api_handle_drop(&x, XM_API_TENSOR));
    EXPECT_FALSE(xm_api_is(&x, XM_API_TENSOR));
    EXPECT_FALSE(xm_api_handle_drop(&x, XM_API_TENSOR));
}

// Removing an entry of the hash table moves its neighbours with the same home slot: all must
// still be found.
TEST(Handles, ComeAndGoInAnyOrder)
{
    std::mt19937 random(7);
    std::map<size_t, int> model;
    for (int step = 0; step < 40000; step++) {
        // adds up to hundreds of handles, then removes them, repeatedly
        const size_t i = random() % 700;
        const bool add = (step / 4000) % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0;
        if (add) {
            ASSERT_TRUE(xm_api_handle_add(address(i), XM_API_PORT));
            model[i]++;
        } else {
            const auto found = model.find(i);
            ASSERT_EQ(xm_api_handle_drop(address(i), XM_API_PORT), found != model.end());
            if (found != model.end() && --found->second == 0)
                model.erase(found);
        }
        if (step % 101 == 0) {
            for (size_t k = 0; k < 700; k++)
                ASSERT_EQ(xm_api_is(address(k), XM_API_PORT), model.count(k) != 0) << k;
        }
    }
    for (const auto &[i, n] : model) {
        for (int k = 0; k < n; k++)
            ASSERT_TRUE(xm_api_handle_drop(address(i), XM_API_PORT));
    }
}

TEST(Handles, OfManyThreads)
{
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; t++) {
        threads.emplace_back([t] {
            for (size_t i = 0; i < 2000; i++) {
                const void *mine = address(4 * (i % 97) + t);
                EXPECT_TRUE(xm_api_handle_add(mine, XM_API_CORE));
                EXPECT_TRUE(xm_api_is(mine, XM_API_CORE));
                EXPECT_TRUE(xm_api_handle_drop(mine, XM_API_CORE));
                EXPECT_FALSE(xm_api_is(mine, XM_API_CORE));
            }
        });
    }
    for (std::thread &t : threads)
        t.join();
}

} // namespace
