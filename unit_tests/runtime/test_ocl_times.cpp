/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of an OpenCL queue: sums by label and kernel, traces, and launches that are not
 * measured.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "runtime/label_times.h"
#include "runtime/multiply_rate.h"
#include "runtime/util/clock.h"

/* Replaces the OpenCL loader's function: a driver that measured a launch and does not return the
 * times. */
static bool refuses_times;
static uint64_t released_events;

extern "C" cl_int
clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size, void *value,
                        size_t *size_out)
{
    static const auto real = reinterpret_cast<decltype(&clGetEventProfilingInfo)>(
        dlsym(RTLD_NEXT, "clGetEventProfilingInfo"));
    if (refuses_times)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return real(event, what, size, value, size_out);
}

extern "C" cl_int
clReleaseEvent(cl_event event)
{
    static const auto real =
        reinterpret_cast<decltype(&clReleaseEvent)>(dlsym(RTLD_NEXT, "clReleaseEvent"));
    released_events++;
    return real(event);
}

namespace
{

using Key = std::pair<uint32_t, std::string>;
struct Sum {
    uint64_t runs = 0, ns = 0, unmeasured = 0;
};
bool
operator==(const Sum &x, const Sum &y)
{
    return x.runs == y.runs && x.ns == y.ns && x.unmeasured == y.unmeasured;
}
using Sums = std::map<Key, Sum>;

void
add_sum(void *ctx, const xm_launch_times *t)
{
    Sum &s = (*static_cast<Sums *>(ctx))[{t->label, t->kernel}];
    s.runs += t->runs;
    s.ns += t->ns;
    s.unmeasured += t->unmeasured;
}

void
add_span(void *ctx, const xm_launch_span *span)
{
    static_cast<std::vector<xm_launch_span> *>(ctx)->push_back(*span);
}

class OclTimes : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info *infos;
        size_t n = 0;
        ASSERT_EQ(xm_engine_list(&infos, &n, &err), XM_OK) << err.text;
        if (n == 0)
            GTEST_SKIP() << "no OpenCL device";
        open({{"PERF_COUNT", "YES"}});
    }
    void TearDown() override
    {
        xm_buffer_unref(a);
        xm_buffer_unref(b);
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
        a = b = nullptr;
        queue = nullptr;
        engine = nullptr;
    }
    void open(const std::vector<std::pair<const char *, const char *>> &properties)
    {
        xm_config config;
        xm_config_init(&config);
        TearDown();
        for (auto &p : properties)
            ASSERT_EQ(xm_config_set(&config, p.first, p.second, &err), XM_OK);
        ASSERT_EQ(xm_engine_create(0, &config, &engine, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_buffer_create(engine, XM_USE_HOST, BYTES, &a, &err), XM_OK);
        ASSERT_EQ(xm_buffer_create(engine, XM_USE_HOST, BYTES, &b, &err), XM_OK);
    }
    /* Runs a kernel b = a. */
    void launch()
    {
        xm_kernel *k = nullptr;
        ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "-DPER_ITEM=4", &k, &err), XM_OK)
            << err.text;
        const xm_arg args[] = {xm_arg_buffer(a), xm_arg_i64(0), xm_arg_buffer(b),
                               xm_arg_i64(0), xm_arg_i64(BYTES)};
        const xm_launch launch = {{BYTES / 4, 1, 1}, {0, 0, 0}};
        ASSERT_EQ(xm_queue_run(queue, k, args, 5, &launch, &err), XM_OK) << err.text;
    }
    Sums sums(xm_status want = XM_OK)
    {
        Sums s;
        EXPECT_EQ(xm_queue_profile(queue, add_sum, &s, &err), want) << err.text;
        return s;
    }
    std::vector<xm_launch_span> trace(uint64_t *dropped)
    {
        std::vector<xm_launch_span> spans;
        EXPECT_EQ(xm_queue_trace(queue, add_span, &spans, dropped, &err), XM_OK)
            << err.text;
        return spans;
    }

    static const int BYTES = 1 << 12;
    xm_error err = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_buffer *a = nullptr, *b = nullptr;
};

/* Two queues share their times. They remain when one queue is destroyed or reset. */
TEST_F(OclTimes, AreSharedByQueues)
{
    xm_label_times *shared = xm_label_times_create(2);
    xm_queue *other = nullptr;
    ASSERT_NE(shared, nullptr);
    ASSERT_EQ(xm_queue_create(engine, &other, &err), XM_OK) << err.text;
    std::swap(queue, other);
    for (int i = 0; i < 2; i++) {
        xm_queue_share_times(queue, shared);
        xm_queue_label(queue, 1);
        xm_label_times_add_run(shared, 1);
        launch();
        launch();
        xm_queue_label(queue, 2); /* a label beyond the last */
        xm_label_times_add_run(shared, 2);
        launch();
        std::swap(queue, other);
    }
    uint64_t ns = 0;
    for (int i = 0; i < 2; i++) {
        Sums s = sums();
        ns += s[{1, "copy_bytes"}].ns;
        xm_queue_reset_profile(queue);
        std::swap(queue, other);
    }
    xm_queue_destroy(other);
    EXPECT_EQ(xm_label_times_mean_ns(shared, 1), ns / 2) << "two runs of two launches";
    EXPECT_EQ(xm_label_times_mean_ns(shared, 0), 0u) << "it has not run";
    EXPECT_EQ(xm_label_times_mean_ns(shared, 2), 0u) << "there is no such label";
    xm_label_times_destroy(shared);
}

TEST_F(OclTimes, AreSumsByLabelAndKernel)
{
    launch();
    for (uint32_t label = 0; label < 3; label++) {
        xm_queue_label(queue, label);
        for (uint32_t i = 0; i <= label; i++)
            launch();
    }
    ASSERT_EQ(xm_queue_fill(queue, a, 0, 1, BYTES, &err), XM_OK);
    ASSERT_EQ(xm_queue_copy(queue, a, 0, b, 0, BYTES, &err), XM_OK);
    Sums s = sums();
    EXPECT_EQ(s.size(), 6u);
    EXPECT_EQ((s[{XM_NO_LABEL, "copy_bytes"}].runs), 1u);
    for (uint32_t label = 0; label < 3; label++) {
        EXPECT_EQ((s[{label, "copy_bytes"}].runs), label + 1);
        EXPECT_GT((s[{label, "copy_bytes"}].ns), 0u);
    }
    EXPECT_EQ((s[{2, "fill"}].runs), 1u);
    EXPECT_EQ((s[{2, "copy"}].runs), 1u);
    EXPECT_EQ(sums(), s) << "until they are reset";
    xm_queue_reset_profile(queue);
    EXPECT_EQ(sums().size(), 0u);
}

TEST_F(OclTimes, KeepOrderOnAnOutOfOrderQueue)
{
    open({{"PERF_COUNT", "YES"}, {"GPU_QUEUE_TYPE", "out_of_order"}});
    std::vector<uint8_t> out(BYTES);
    for (int i = 1; i <= 10; i++) {
        ASSERT_EQ(xm_queue_fill(queue, a, 0, uint8_t(i), BYTES, &err), XM_OK);
        launch();
    }
    ASSERT_EQ(xm_queue_read(queue, b, 0, out.data(), BYTES, &err), XM_OK);
    EXPECT_EQ(out, std::vector<uint8_t>(BYTES, 10));
    EXPECT_EQ((sums()[{XM_NO_LABEL, "copy_bytes"}].runs), 10u);
}

/* 2000 runs of a model need no more memory than 200. */
TEST_F(OclTimes, OfManyRunsTakeNoMoreMemory)
{
    const auto run = [&](int times) {
        for (int i = 0; i < times; i++) {
            for (uint32_t label = 0; label < 4; label++) {
                xm_queue_label(queue, label);
                launch();
            }
            ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK) << err.text;
        }
    };
    run(200);
    const size_t before = mallinfo2().uordblks;
    released_events = 0;
    run(2000);
    EXPECT_EQ(released_events, 8000u);
    EXPECT_LT(mallinfo2().uordblks, before + (64 << 10));
    EXPECT_EQ((sums()[{3, "copy_bytes"}].runs), 2200u);
}

TEST_F(OclTimes, SayWhatTheDriverRefuses)
{
    launch();
    ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK) << err.text;
    launch();
    refuses_times = true;
    Sums s = sums(XM_DEVICE);
    refuses_times = false;
    EXPECT_EQ((s[{XM_NO_LABEL, "copy_bytes"}].runs), 2u);
    EXPECT_EQ((s[{XM_NO_LABEL, "copy_bytes"}].unmeasured), 1u);
    EXPECT_GT((s[{XM_NO_LABEL, "copy_bytes"}].ns), 0u) << "what was measured is told";
    EXPECT_STREQ(err.text, "clGetEventProfilingInfo gave CL_PROFILING_INFO_NOT_AVAILABLE "
                           "(-7): kernel runs whose times the driver does not report: 1");
    xm_queue_reset_profile(queue);
    launch();
    EXPECT_EQ((sums()[{XM_NO_LABEL, "copy_bytes"}].runs), 1u);
}

/* At most this many events are kept between two waits; further launches are not measured. */
TEST_F(OclTimes, CountWhatGoesUnmeasured)
{
    const uint64_t most = 1 << 16;
    uint64_t dropped;
    ASSERT_EQ(xm_queue_begin_trace(queue, &err), XM_OK) << err.text;
    for (uint64_t i = 0; i < most + 5; i++)
        ASSERT_EQ(xm_queue_fill(queue, a, 0, 1, 1, &err), XM_OK);
    Sums s = sums();
    EXPECT_EQ((s[{XM_NO_LABEL, "fill"}].runs), most + 5);
    EXPECT_EQ((s[{XM_NO_LABEL, "fill"}].unmeasured), 5u);
    EXPECT_EQ(trace(&dropped).size(), most);
    EXPECT_EQ(dropped, 5u);
}

TEST_F(OclTimes, TraceHasEachLaunchInOrder)
{
    uint64_t dropped;
    launch();
    ASSERT_EQ(xm_queue_begin_trace(queue, &err), XM_OK) << err.text;
    const double start = xm_now();
    for (uint32_t i = 0; i < 5; i++) {
        xm_queue_label(queue, i);
        launch();
        ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK) << err.text;
        xm_queue_add_host(queue, "host reference", xm_now(), xm_now() + 1e-6);
    }
    const double wall = xm_now() - start;
    const auto spans = trace(&dropped);
    EXPECT_EQ(dropped, 0u);
    ASSERT_EQ(spans.size(), 10u);
    for (size_t i = 0; i < spans.size(); i++) {
        EXPECT_EQ(spans[i].label, i / 2);
        EXPECT_STREQ(spans[i].kernel, i % 2 ? "host reference" : "copy_bytes");
        EXPECT_LE(spans[i].queued, spans[i].start);
        EXPECT_LE(spans[i].start, spans[i].end);
    }
    for (size_t i = 0; i + 2 < spans.size(); i += 2)
        EXPECT_LE(spans[i].end, spans[i + 2].start);
    EXPECT_LE(double(spans[9].end - spans[0].start), 1e9 * wall + 1e5)
        << "the host's spans are on the device's clock";
}

TEST_F(OclTimes, TraceKeepsTheLastLaunches)
{
    uint64_t dropped;
    ASSERT_EQ(xm_queue_begin_trace(queue, &err), XM_OK) << err.text;
    for (uint32_t i = 0; i < XM_TRACE_LAUNCHES + 3; i++) {
        xm_queue_label(queue, i % 16);
        xm_queue_add_host(queue, "nothing", 1.0, 1.0);
    }
    const auto spans = trace(&dropped);
    EXPECT_EQ(dropped, 3u);
    ASSERT_EQ(spans.size(), size_t(XM_TRACE_LAUNCHES));
    EXPECT_EQ(spans[0].label, 3u);
    EXPECT_EQ(spans.back().label, 2u) << "XM_TRACE_LAUNCHES is a multiple of 16";
}

/* As oneDNN does: launches of its own in our queue. */
TEST_F(OclTimes, OfForeignLaunchesAreOfThemAll)
{
    xm_queue_label(queue, 7);
    launch();
    xm_queue_begin_native(queue);
    launch();
    launch();
    xm_queue_end_native(queue, "foreign");
    launch();
    Sums s = sums();
    EXPECT_EQ((s[{7, "foreign"}].runs), 1u);
    EXPECT_GT((s[{7, "foreign"}].ns), 0u);
    EXPECT_LT((s[{7, "foreign"}].ns), 1000000000u);
}

TEST_F(OclTimes, AreNotTakenUnlessAskedFor)
{
    uint64_t dropped;
    open({});
    launch();
    EXPECT_FALSE(xm_queue_measures(queue));
    EXPECT_EQ(sums().size(), 0u);
    EXPECT_EQ(xm_queue_begin_trace(queue, &err), XM_INVALID);
    EXPECT_STREQ(
        err.text,
        "there is no trace: the queue does not measure its launches (PERF_COUNT)");
    EXPECT_EQ(trace(&dropped).size(), 0u);
}

/* ---- limits ---- */

TEST_F(OclTimes, MultiplyAddsHaveALimit)
{
    double rate = 0;
    ASSERT_EQ(xm_multiply_rate(engine, XM_F16, 0.05, &rate, &err), XM_OK) << err.text;
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e16);
}

/* The kernel that measures GPUs; CPU devices do not use it. */
TEST_F(OclTimes, TheLimitsKernelMultipliesAndAdds)
{
    const uint32_t steps = 3, items = 8;
    xm_kernel *k = nullptr;
    float got[items];
    ASSERT_EQ(xm_engine_kernel(engine, "limit_multiply_gen", "-DUSE_HALF=0", &k, &err),
              XM_OK)
        << err.text;
    const xm_arg args[] = {xm_arg_buffer(a), xm_arg_uint(steps)};
    const xm_launch launch = {{items, 1, 1}, {items, 1, 1}};
    ASSERT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_queue_read(queue, a, 0, got, sizeof(got), &err), XM_OK) << err.text;
    for (uint32_t item = 0; item < items; item++) {
        double want = 0;
        for (int i = 0; i < 16; i++) {
            double sum = i + (int)item;
            for (uint32_t n = 0; n < steps; n++)
                sum = sum * 0.999 + 0.001;
            want += sum;
        }
        EXPECT_NEAR(got[item], want, 1e-4 * want) << item;
    }
}

} // namespace
