/* SPDX-License-Identifier: Apache-2.0
 *
 * Which engines a plugin shares, opens again, and releases.
 */
#include "plugin/gpu/open_engines.h"

#include "runtime/fake/fake.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

int opened;

xm_status
open_fake(size_t index, const xm_config *config, const xm_shared_cl *share,
          xm_engine **out, xm_error *err)
{
    xm_device_info info = {};
    EXPECT_EQ(share, nullptr) << "the fake has no context that could be shared";
    info.base_align = 64;
    info.max_alloc_bytes = 1 << 20;
    if (index == 9)
        return xm_fail(err, XM_NOT_FOUND, "there is no device 9");
    opened++;
    return xm_fake_engine_create(&info, config, out, err);
}

constexpr uint64_t some_bytes = 4096;

class OpenEngines : public testing::Test
{
  protected:
    void SetUp() override
    {
        opened = 0;
        xm_config_init(&config);
        xm_open_engines_init(&list, open_fake, nullptr);
    }

    void TearDown() override
    {
        xm_open_engines_free(&list);
    }

    xm_engine *get(uint32_t index)
    {
        xm_engine *e = nullptr;
        EXPECT_XM_OK(xm_open_engines_get(&list, index, &config, &e, &err));
        return e;
    }

    /* Allocates memory of the engine, as a user of it would. */
    xm_buffer *take_memory(xm_engine *e)
    {
        xm_buffer *b = nullptr;
        EXPECT_XM_OK(xm_buffer_create(e, XM_USE_DEVICE, some_bytes, &b, &err));
        return b;
    }

    void lose(xm_engine *e)
    {
        xm_error why = {};
        xm_buffer *b = nullptr;
        xm_fake_lose(e, XM_FAKE_ALLOC, 1);
        EXPECT_EQ(xm_buffer_create(e, XM_USE_DEVICE, 64, &b, &why), XM_LOST);
    }

    /* Returns the bytes in use by the listed engines of a device. */
    uint64_t bytes(uint32_t index)
    {
        uint64_t sum = 0;
        xm_memory_stats m;
        xm_open_engines_memory(&list, index, &m);
        for (uint64_t now : m.now)
            sum += now;
        return sum;
    }

    xm_open_engines list;
    xm_config config;
    xm_error err = {};
};

TEST_F(OpenEngines, AreSharedByThoseWhoAskForTheSame)
{
    xm_engine *a = get(0), *b = get(0), *other_device = get(1);
    config.profiling = !config.profiling;
    xm_engine *other_options = get(0);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, other_device);
    EXPECT_NE(a, other_options);
    EXPECT_EQ(opened, 3);
    for (xm_engine *e : {a, b, other_device, other_options})
        xm_engine_unref(e);
    config.profiling = !config.profiling;
    b = get(0); /* kept for later users */
    EXPECT_EQ(opened, 3);
    xm_engine_unref(b);
}

/* A lost engine is freed by its last user, which a leak sanitizer checks. */
TEST_F(OpenEngines, AreLetGoOnceTheirDeviceIsLost)
{
    xm_engine *elsewhere = get(1);
    xm_buffer *there = take_memory(elsewhere);
    for (int i = 1; i <= 3; i++) {
        xm_engine *e = get(0);
        xm_buffer *held = take_memory(e);
        EXPECT_EQ(opened, 1 + i);
        EXPECT_EQ(bytes(0), some_bytes);
        lose(e);
        EXPECT_EQ(bytes(0), 0u);
        xm_engine *anew = get(0);
        EXPECT_NE(anew, e);
        EXPECT_FALSE(xm_engine_is_lost(anew));
        xm_engine_unref(e);
        xm_buffer_unref(held); /* the last user of the lost engine */
        lose(anew);
        xm_engine_unref(anew); /* freed by the next round's get */
        opened--;
    }
    EXPECT_EQ(bytes(1), some_bytes); /* the other device keeps its memory */
    xm_buffer_unref(there);
    xm_engine_unref(elsewhere);
}

TEST_F(OpenEngines, SayWhatFailsAndServeTheNext)
{
    xm_error why = {};
    xm_engine *e = nullptr;
    EXPECT_EQ(xm_open_engines_get(&list, 9, &config, &e, &why), XM_NOT_FOUND);
    EXPECT_STREQ(why.text, "there is no device 9");
    why = {};
    xm_fail_allocation(1);
    EXPECT_EQ(xm_open_engines_get(&list, 0, &config, &e, &why), XM_NO_MEMORY);
    xm_fail_allocation(0);
    xm_engine_unref(get(0));
}

} // namespace
