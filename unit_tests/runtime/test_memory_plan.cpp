/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning offsets from lifetimes, and the buffer pool on the fake engine.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/fake/fake.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

namespace
{

bool
overlap(const xm_plan_item &a, const xm_plan_item &b)
{
    bool lives = a.first <= b.last && b.first <= a.last;
    bool bytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    return a.block == b.block && lives && bytes && a.bytes && b.bytes;
}

void
expect_valid(const std::vector<xm_plan_item> &items, const xm_plan &plan,
             uint64_t max_block, uint32_t alignment)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan.n_blocks; i++) {
        EXPECT_LE(plan.block_bytes[i], max_block);
        total += plan.block_bytes[i];
    }
    EXPECT_EQ(total, plan.total_bytes);
    for (size_t i = 0; i < items.size(); i++) {
        EXPECT_EQ(items[i].offset % alignment, 0u);
        if (items[i].bytes) {
            ASSERT_LT(items[i].block, plan.n_blocks);
            EXPECT_LE(items[i].offset + items[i].bytes, plan.block_bytes[items[i].block]);
        }
        for (size_t j = i + 1; j < items.size(); j++)
            EXPECT_FALSE(overlap(items[i], items[j])) << i << " and " << j;
    }
}

/* Plans a copy of the items and returns them with the total. */
std::vector<xm_plan_item>
planned(std::vector<xm_plan_item> items, uint64_t max_block, uint32_t alignment,
        uint64_t *total)
{
    xm_plan plan;
    xm_error err = {};
    EXPECT_EQ(xm_plan_make(items.data(), uint32_t(items.size()), max_block, alignment,
                           &plan, &err),
              XM_OK)
        << err.text;
    expect_valid(items, plan, max_block, alignment);
    *total = plan.total_bytes;
    xm_plan_free(&plan);
    return items;
}

xm_plan_item
item(uint64_t bytes, uint32_t first, uint32_t last)
{
    return {bytes, first, last, 0, 0};
}

TEST(Plan, ValuesThatTakeTurnsShareBytes)
{
    uint64_t total;
    planned({item(1000, 0, 1), item(1000, 2, 3), item(500, 4, 5)}, 1 << 20, 1, &total);
    EXPECT_EQ(total, 1000u);
    planned({item(1000, 0, 2), item(1000, 2, 3)}, 1 << 20, 1, &total);
    EXPECT_EQ(total, 2000u); /* step 2 uses both */
}

TEST(Plan, FillsTheSmallestGap)
{
    /* When the last item is placed, the bytes of the second item (400) and of the fourth (200)
     * are free during its life. */
    uint64_t total;
    auto items = planned({item(500, 0, 9), item(400, 0, 4), item(300, 0, 9),
                          item(200, 0, 4), item(190, 0, 9), item(150, 5, 9)},
                         1 << 20, 1, &total);
    EXPECT_EQ(items[5].offset, items[3].offset);
    EXPECT_EQ(total, 1590u);
}

TEST(Plan, CutsIntoBlocksBelowTheLargestAllocation)
{
    uint64_t total;
    auto items =
        planned({item(600, 0, 1), item(600, 0, 1), item(300, 0, 1)}, 1000, 64, &total);
    EXPECT_NE(items[0].block, items[1].block);
    EXPECT_EQ(items[2].block, 0u);
    EXPECT_EQ(total, 640u + 300u + 600u);
}

TEST(Plan, RefusesWhatNoBlockCanHold)
{
    xm_plan_item items[] = {item(2000, 0, 1)};
    xm_plan plan;
    xm_error err = {};
    EXPECT_EQ(xm_plan_make(items, 1, 1000, 64, &plan, &err), XM_NO_MEMORY);
    EXPECT_NE(std::string(err.text).find("2000 bytes"), std::string::npos);
    xm_plan_free(&plan);
    err = {};
    items[0] = item(10, 3, 2);
    EXPECT_EQ(xm_plan_make(items, 1, 1000, 64, &plan, &err), XM_INVALID);
    xm_plan_free(&plan);
}

TEST(Plan, NothingNeedsNothing)
{
    uint64_t total;
    planned({}, 1000, 64, &total);
    EXPECT_EQ(total, 0u);
    planned({item(0, 0, 5)}, 1000, 64, &total);
    EXPECT_EQ(total, 0u);
}

TEST(Plan, RandomLifetimesNeverOverlapAndThePlanIsTheSameEveryTime)
{
    std::mt19937 random(7);
    for (size_t round = 0; round < 60; round++) {
        std::vector<xm_plan_item> items;
        for (size_t i = 0; i < 5 + round; i++) {
            uint32_t first = random() % 50;
            items.push_back(item(random() % 5000, first, first + random() % 10));
        }
        uint64_t total, again;
        auto a = planned(items, 6000, 64, &total);
        auto b = planned(items, 6000, 64, &again);
        EXPECT_EQ(total, again);
        for (size_t i = 0; i < a.size(); i++)
            EXPECT_EQ(a[i].offset, b[i].offset);
        uint64_t sum = 0;
        for (const auto &x : items)
            sum += (x.bytes + 63) / 64 * 64;
        EXPECT_LE(total, sum);
    }
}

class Pool : public ::testing::Test
{
  protected:
    void open(uint64_t budget)
    {
        xm_device_info info = {};
        snprintf(info.name, sizeof(info.name), "fake");
        info.kind = XM_DEVICE_GPU;
        info.max_alloc_bytes = 1 << 20;
        info.caps = XM_CAP_USM_HOST | XM_CAP_USM_DEVICE;
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK);
        ASSERT_EQ(xm_pool_create(engine, budget, &pool, &err), XM_OK);
    }
    void TearDown() override
    {
        xm_pool_destroy(pool);
        xm_memory_stats stats;
        xm_engine_memory_stats(engine, &stats);
        EXPECT_EQ(stats.total_now, 0u);
        xm_engine_unref(engine);
    }
    xm_buffer *acquire(uint64_t bytes, xm_pool_use use = XM_POOL_SHARED)
    {
        xm_buffer *b = nullptr;
        EXPECT_EQ(xm_pool_acquire(pool, bytes, use, &b, &err), XM_OK) << err.text;
        return b;
    }
    xm_pool_stats stats()
    {
        xm_pool_stats s;
        xm_pool_get_stats(pool, &s);
        return s;
    }
    xm_error err = {};
    xm_engine *engine = nullptr;
    xm_pool *pool = nullptr;
};

TEST_F(Pool, SharedBuffersGoToTheNextOne)
{
    open(0);
    xm_buffer *a = acquire(10000);
    EXPECT_EQ(xm_buffer_kind(a), XM_MEMORY_USM_DEVICE);
    xm_pool_release(pool, a);
    EXPECT_EQ(acquire(9000), a);
    xm_buffer *b = acquire(9000);
    EXPECT_NE(a, b); /* a is still in use */
    EXPECT_EQ(stats().reused, 1u);
    EXPECT_EQ(stats().now_bytes, 12288u * 2);
    xm_pool_release(pool, a);
    xm_pool_release(pool, b);
    EXPECT_EQ(stats().idle_bytes, 12288u * 2);
}

TEST_F(Pool, FortyEightLayersNeedOneBuffer)
{
    open(0);
    for (int layer = 0; layer < 48; layer++)
        xm_pool_release(pool, acquire(500000));
    EXPECT_EQ(stats().peak_bytes, 503808u);
}

TEST_F(Pool, PrivateBuffersAreNeverHandedOn)
{
    open(0);
    xm_buffer *a = acquire(4096, XM_POOL_PRIVATE);
    EXPECT_EQ(xm_buffer_kind(a), XM_MEMORY_USM_HOST);
    xm_pool_release(pool, a);
    EXPECT_EQ(stats().now_bytes, 0u);
    xm_pool_release(pool, acquire(4096));
    acquire(4096, XM_POOL_PRIVATE);
    EXPECT_EQ(stats().reused, 0u);
}

TEST_F(Pool, AHugeIdleBufferDoesNotServeASmallRequest)
{
    open(0);
    xm_buffer *big = acquire(400000);
    xm_pool_release(pool, big);
    EXPECT_NE(acquire(4096), big);
}

TEST_F(Pool, TheBudgetSaysWhatWouldFit)
{
    open(100000);
    xm_buffer *a = acquire(40960), *b = nullptr;
    EXPECT_EQ(xm_pool_acquire(pool, 81920, XM_POOL_SHARED, &b, &err), XM_NO_MEMORY);
    EXPECT_EQ(b, nullptr);
    EXPECT_STREQ(err.text, "scratch memory of 81920 bytes does not fit: 40960 of the "
                           "budget of 100000 bytes are in use, 59040 are free");
    err = {};
    xm_pool_release(pool, a);
    acquire(81920); /* the idle buffer was freed for it */
    EXPECT_EQ(stats().now_bytes, 81920u);
}

TEST_F(Pool, FreesIdleMemoryWhenTheDeviceHasNoMore)
{
    open(0);
    xm_buffer *idle = acquire(4096);
    xm_pool_release(pool, idle);
    xm_fake_fail(engine, XM_FAKE_ALLOC, 1);
    acquire(8192);
    EXPECT_TRUE(xm_fake_failed(engine));
    EXPECT_EQ(stats().now_bytes, 8192u);
    xm_buffer *b = nullptr;
    xm_fake_fail(engine, XM_FAKE_ALLOC, 1);
    EXPECT_EQ(xm_pool_acquire(pool, 8192, XM_POOL_SHARED, &b, &err), XM_NO_MEMORY);
    EXPECT_EQ(stats().now_bytes, 8192u);
}

} // namespace
