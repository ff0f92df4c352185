/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of the scratch of a run: a view that is taken again is not created again.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "primitives/primitive.h"
#include "runtime/fake/fake.h"

namespace
{

enum { SCRATCH = 1 << 14, ALIGN = 64 };

class Scratch : public testing::Test
{
  protected:
    void SetUp() override
    {
        xm_device_info info = {};
        info.kind = XM_DEVICE_CPU;
        info.caps = XM_CAP_HOST_VISIBLE;
        info.max_alloc_bytes = 1 << 20;
        info.base_align = ALIGN;
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK);
        primitive.engine = engine;
        ASSERT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, SCRATCH, &run.scratch, &err),
                  XM_OK);
        run.views = &views;
    }
    void TearDown() override
    {
        xm_kept_views_free(&views);
        xm_buffer_unref(run.scratch);
        EXPECT_EQ(now(), 0u);
        xm_engine_unref(engine);
    }
    uint64_t now()
    {
        xm_memory_stats stats;
        xm_engine_memory_stats(engine, &stats);
        return stats.total_now;
    }
    /* Returns how many views a step creates that takes these sizes; `want` is its status. */
    uint64_t made(const std::vector<uint64_t> &sizes, xm_status want = XM_OK)
    {
        const uint64_t before = xm_fake_calls(engine, XM_FAKE_VIEW);
        xm_scratch s;
        xm_status status = XM_OK;
        uint64_t at = 0;
        xm_scratch_begin(&s, &primitive, &run);
        for (size_t i = 0; i < sizes.size() && status == XM_OK; i++) {
            xm_buffer *view = nullptr;
            xm_error why = {};
            status = xm_scratch_take(&s, sizes[i], &view, &why);
            if (status != XM_OK)
                break;
            EXPECT_EQ(xm_buffer_bytes(view), sizes[i]);
            EXPECT_EQ((char *)xm_buffer_host_ptr(view),
                      (char *)xm_buffer_host_ptr(run.scratch) + at);
            at += (sizes[i] + ALIGN - 1) / ALIGN * ALIGN;
        }
        xm_scratch_end(&s);
        EXPECT_EQ(status, want);
        return xm_fake_calls(engine, XM_FAKE_VIEW) - before;
    }

    xm_engine *engine = nullptr;
    xm_primitive primitive = {};
    xm_kept_views views = {};
    xm_run run = {};
    xm_error err = {};
};

TEST_F(Scratch, PlacesThatAreTakenAgainAreMadeOnce)
{
    EXPECT_EQ(made({100, 200}), 2u);
    for (int layer = 0; layer < 3; layer++)
        EXPECT_EQ(made({100, 200}), 0u);
    EXPECT_EQ(made({100, 100}), 1u) << "another size, at the second place";
    EXPECT_EQ(made({64, 200}), 2u) << "another size; another place for the second";
    EXPECT_EQ(made({100, 200, 100}), 1u);
}

/* The oldest view is dropped. */
TEST_F(Scratch, OnlyTheLastOnesAreKept)
{
    for (uint64_t i = 1; i <= XM_KEPT_VIEWS; i++)
        EXPECT_EQ(made({i}), 1u);
    EXPECT_EQ(made({1}), 0u);
    EXPECT_EQ(made({XM_KEPT_VIEWS + 1}), 1u);
    EXPECT_EQ(made({2}), 0u);
    EXPECT_EQ(made({1}), 1u);
}

TEST_F(Scratch, NoneIsKeptWhereNobodyHoldsThem)
{
    run.views = nullptr;
    EXPECT_EQ(made({100, 200}), 2u);
    EXPECT_EQ(made({100, 200}), 2u);
}

TEST_F(Scratch, AViewThatFailsIsNotKept)
{
    xm_fake_fail(engine, XM_FAKE_VIEW, 1);
    made({100}, XM_DEVICE);
    xm_fake_fail(engine, XM_FAKE_VIEW, 0);
    EXPECT_EQ(made({100}), 1u);
    EXPECT_EQ(made({SCRATCH, 1}, XM_INVALID), 1u) << "more than there is";
}

/* Views of another scratch buffer are not reused. */
TEST_F(Scratch, FreedViewsHoldNoMemory)
{
    made({100, 200});
    xm_kept_views_free(&views);
    xm_buffer_unref(run.scratch);
    EXPECT_EQ(now(), 0u);
    ASSERT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, SCRATCH, &run.scratch, &err),
              XM_OK);
    EXPECT_EQ(made({100, 200}), 2u);
}

} // namespace
