/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings of launches on the fake engine. test_ocl_engine.cpp tests the driver's part.
 */
#include <gtest/gtest.h>

#include <string>

#include "runtime/counting/counting.h"
#include "runtime/fake/fake.h"
#include "runtime/recording.h"

namespace
{

class Recordings : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 1 << 20;
        info.base_align = 64;
        info.caps = XM_CAP_HOST_VISIBLE;
        snprintf(info.name, sizeof(info.name), "fake chip");
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK);
        ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK);
        ASSERT_EQ(xm_engine_kernel(engine, "add", "", &kernel, &err), XM_OK);
        ASSERT_TRUE(xm_fake_kernel(engine, "add", add, nullptr));
        ASSERT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, 4, &buffer, &err), XM_OK);
        ASSERT_EQ(xm_queue_fill(queue, buffer, 0, 0, 4, &err), XM_OK);
        ASSERT_EQ(xm_recording_create(queue, &rec, &err), XM_OK) << err.text;
    }
    void TearDown() override
    {
        xm_queue_destroy(queue);
        xm_recording_destroy(rec);
        xm_buffer_unref(buffer);
        EXPECT_EQ(bytes_now(), 0u);
        xm_engine_unref(engine);
    }
    static void add(const xm_fake_launch *launch, void *)
    {
        auto *bytes = static_cast<uint8_t *>(xm_fake_bytes(launch, 0));
        bytes[0] = (uint8_t)(bytes[0] + launch->args[1].value.i32);
    }
    xm_status launch(uint32_t n, uint64_t global = 8, uint64_t local = 4)
    {
        const xm_arg args[] = {xm_arg_buffer(buffer), xm_arg_uint(n)};
        const xm_launch l = {{global, 1, 1}, {local, 1, 1}};
        return xm_queue_run(queue, kernel, args, 2, &l, &err);
    }
    uint8_t value()
    {
        uint8_t out = 0;
        EXPECT_EQ(xm_queue_read(queue, buffer, 0, &out, 1, &err), XM_OK) << err.text;
        return out;
    }
    uint64_t rebound() const
    {
        return xm_fake_calls(engine, XM_FAKE_REBIND);
    }
    uint64_t bytes_now() const
    {
        xm_memory_stats stats;
        xm_engine_memory_stats(engine, &stats);
        return stats.total_now;
    }
    xm_error err = {};
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_kernel *kernel = nullptr;
    xm_buffer *buffer = nullptr;
    xm_recording *rec = nullptr;
};

TEST_F(Recordings, RepeatLaunchesWithTheirArguments)
{
    xm_queue_record(queue, rec);
    ASSERT_EQ(launch(1), XM_OK) << err.text;
    ASSERT_EQ(launch(10), XM_OK);
    xm_queue_record(queue, nullptr);
    ASSERT_EQ(launch(100), XM_OK);
    EXPECT_EQ(value(), 111);
    EXPECT_EQ(xm_recording_launches(rec), 2u);
    EXPECT_EQ(xm_recording_missed(rec), 0u);
    uint64_t waits, before, after;
    xm_queue_counts(queue, &waits, &before);
    xm_fake_clear_launches(engine);
    xm_queue_label(queue, 7);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 2, &err), XM_OK) << err.text;
    EXPECT_EQ(value(), 122);
    ASSERT_EQ(xm_queue_replay(queue, rec, 1, 1, &err), XM_OK);
    EXPECT_EQ(value(), 132);
    xm_queue_counts(queue, &waits, &after);
    EXPECT_EQ(after - before, 3u);
    size_t n;
    const xm_fake_launch *l = xm_fake_launches(engine, &n);
    ASSERT_EQ(n, 3u);
    EXPECT_EQ(l->label, 7u);
    EXPECT_EQ(l->launch.global[0], 8u);
    EXPECT_EQ(l->launch.local[0], 4u);
    EXPECT_EQ(xm_recording_launches(rec), 2u); /* a replay is not recorded again */
}

TEST_F(Recordings, HoldTheirBuffers)
{
    xm_buffer *view = nullptr;
    ASSERT_EQ(xm_buffer_view(buffer, 0, 4, &view, &err), XM_OK);
    std::swap(view, buffer);
    xm_queue_record(queue, rec);
    ASSERT_EQ(launch(3), XM_OK);
    xm_queue_record(queue, nullptr);
    xm_buffer_unref(buffer); /* frees the view */
    buffer = view;
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_OK);
    EXPECT_EQ(value(), 6);
    xm_buffer_unref(buffer); /* the recording still holds a view of it */
    buffer = nullptr;
    EXPECT_EQ(bytes_now(), 4u);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_OK);
}

TEST_F(Recordings, MissAllOtherCommands)
{
    uint8_t byte = 0;
    xm_queue_record(queue, rec);
    EXPECT_EQ(xm_queue_fill(queue, buffer, 0, 0, 1, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 1u);
    EXPECT_EQ(xm_queue_write(queue, buffer, 0, &byte, 1, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 2u);
    EXPECT_EQ(xm_queue_copy(queue, buffer, 0, buffer, 1, 1, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 3u);
    EXPECT_EQ(xm_queue_read(queue, buffer, 0, &byte, 1, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 4u);
    const auto nothing = [](void *, xm_error *) { return XM_OK; };
    EXPECT_EQ(xm_queue_run_host(queue, "nothing", nothing, nullptr, 0, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 5u);
    xm_queue_native(queue);
    EXPECT_EQ(xm_recording_missed(rec), 6u);
    EXPECT_EQ(xm_recording_launches(rec), 0u);
    xm_queue_record(queue, nullptr);
    EXPECT_EQ(xm_queue_fill(queue, buffer, 0, 0, 1, &err), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 6u);
}

/* A launch that cannot be recorded is enqueued, but missing in the recording. */
TEST_F(Recordings, MissALaunchThatCannotBeRecorded)
{
    xm_queue_record(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    xm_fake_fail(engine, XM_FAKE_BIND, 1);
    ASSERT_EQ(launch(2), XM_OK) << err.text;
    ASSERT_EQ(launch(4), XM_OK);
    xm_queue_record(queue, nullptr);
    EXPECT_TRUE(xm_fake_failed(engine));
    EXPECT_EQ(value(), 7);
    EXPECT_EQ(xm_recording_missed(rec), 1u);
    EXPECT_EQ(xm_recording_launches(rec), 2u);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 2, &err), XM_OK);
    EXPECT_EQ(value(), 12);
}

TEST_F(Recordings, AreTruncated)
{
    xm_queue_record(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    ASSERT_EQ(launch(2), XM_OK);
    xm_recording_truncate(rec, 1);
    ASSERT_EQ(launch(4), XM_OK);
    xm_queue_record(queue, nullptr);
    EXPECT_EQ(xm_recording_launches(rec), 2u);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 2, &err), XM_OK);
    EXPECT_EQ(value(), 12);
}

/* Only arguments that differ are bound again; the size is that of the launch. */
TEST_F(Recordings, LaunchesTakeThePlaceOfOthers)
{
    xm_queue_repeat(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    ASSERT_EQ(launch(10), XM_OK);
    xm_queue_record(queue, nullptr);
    const uint64_t bound = xm_fake_calls(engine, XM_FAKE_BIND);
    for (int i = 0; i < 2; i++) {
        xm_queue_repeat(queue, rec);
        ASSERT_EQ(launch(1), XM_OK) << err.text;
        ASSERT_EQ(launch(20, 16), XM_OK);
        xm_queue_record(queue, nullptr);
        EXPECT_EQ(rebound(), 1u);
    }
    EXPECT_EQ(value(), 11 + 21 + 21);
    size_t n;
    const xm_fake_launch *l = xm_fake_launches(engine, &n);
    EXPECT_EQ(l[n - 1].launch.global[0], 16u);
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_BIND), bound);
    EXPECT_EQ(xm_recording_launches(rec), 2u);
    EXPECT_EQ(xm_recording_missed(rec), 0u);
}

/* The recording releases the buffer that a launch no longer has, and holds the new one. */
TEST_F(Recordings, ALaunchGetsOtherBuffers)
{
    xm_queue_repeat(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    xm_queue_record(queue, nullptr);
    xm_buffer_unref(buffer);
    ASSERT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, 4, &buffer, &err), XM_OK);
    ASSERT_EQ(xm_queue_fill(queue, buffer, 0, 0, 4, &err), XM_OK);
    EXPECT_EQ(bytes_now(), 8u);
    xm_queue_patch(queue, rec, 0, 1);
    ASSERT_EQ(launch(2), XM_OK);
    xm_queue_record(queue, nullptr);
    EXPECT_EQ(value(), 2);
    EXPECT_EQ(bytes_now(), 4u);
    xm_buffer_unref(buffer);
    buffer = nullptr;
    EXPECT_EQ(bytes_now(), 4u);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_OK);
}

/* A launch that does not fit the recording is enqueued without it, as are later launches. */
TEST_F(Recordings, ALaunchThatDoesNotFitIsMissed)
{
    xm_queue_repeat(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    ASSERT_EQ(launch(2), XM_OK);
    xm_queue_patch(queue, rec, 0, 1);
    ASSERT_EQ(launch(4), XM_OK);
    ASSERT_EQ(launch(8), XM_OK); /* the second recorded launch has another kernel */
    EXPECT_EQ(xm_recording_missed(rec), 1u);
    xm_queue_patch(queue, rec, 0, 2);
    ASSERT_EQ(launch(16, 8, 2), XM_OK);
    ASSERT_EQ(launch(32), XM_OK);
    EXPECT_EQ(xm_recording_missed(rec), 3u);
    xm_kernel *other = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "other", "", &other, &err), XM_OK);
    std::swap(kernel, other);
    xm_queue_patch(queue, rec, 0, 2);
    ASSERT_EQ(launch(64), XM_OK); /* no effect */
    EXPECT_EQ(xm_recording_missed(rec), 4u);
    std::swap(kernel, other);
    xm_queue_record(queue, nullptr);
    EXPECT_EQ(value(), 63);
    EXPECT_EQ(xm_recording_launches(rec), 2u);
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 2, &err), XM_OK);
    EXPECT_EQ(value(), 63 + 4 + 2);
}

TEST_F(Recordings, AnArgumentThatFailsIsBoundTheNextTime)
{
    xm_queue_repeat(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    xm_fake_fail(engine, XM_FAKE_REBIND, 1);
    xm_queue_repeat(queue, rec);
    EXPECT_NE(launch(2), XM_OK);
    xm_fake_fail(engine, XM_FAKE_REBIND, 0);
    for (int i = 0; i < 2; i++) {
        xm_queue_repeat(queue, rec);
        EXPECT_EQ(launch(1), XM_OK) << err.text;
        EXPECT_EQ(rebound(), 2u) << "what failed is not known";
    }
    xm_queue_record(queue, nullptr);
    EXPECT_EQ(value(), 3);
}

TEST_F(Recordings, FailOnALostDevice)
{
    xm_queue_record(queue, rec);
    ASSERT_EQ(launch(1), XM_OK);
    xm_queue_record(queue, nullptr);
    xm_fake_lose(engine, XM_FAKE_RUN, 1);
    EXPECT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_LOST);
    err = {};
    EXPECT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_LOST);
}

TEST(RecordingsOfOthers, AreRefusedWhereNothingRuns)
{
    xm_error err = {};
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_recording *rec = nullptr;
    snprintf(info.name, sizeof(info.name), "a chip");
    ASSERT_EQ(xm_counting_engine_create(&info, nullptr, &engine, &err), XM_OK);
    ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK);
    EXPECT_EQ(xm_recording_create(queue, &rec, &err), XM_UNSUPPORTED);
    EXPECT_EQ(rec, nullptr);
    EXPECT_NE(std::string(err.text).find("a chip"), std::string::npos);
    xm_queue_destroy(queue);
    xm_engine_unref(engine);
}

} // namespace
