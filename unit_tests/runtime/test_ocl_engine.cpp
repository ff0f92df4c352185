/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL engine on the first device; without one the tests are skipped, and say so.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine.h"
#include "runtime/kernel_cache.h"
#include "runtime/recording.h"

/* From runtime/ocl/ocl.h, a header for C only. */
extern "C" {
const char *xm_ocl_error_text(int code);
xm_status xm_ocl_fail(xm_error *err, int code, const char *call, const char *fmt, ...);
xm_status xm_ocl_fail_wait(xm_error *err, int code, const char *call, const char *fmt,
                           ...);
}

namespace
{

class OclEngine : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info *infos;
        size_t n = 0;
        ASSERT_EQ(xm_engine_list(&infos, &n, &err), XM_OK) << err.text;
        if (n == 0)
            GTEST_SKIP() << "no OpenCL device";
        ASSERT_EQ(xm_engine_create(0, nullptr, &engine, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK) << err.text;
    }
    void TearDown() override
    {
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }
    xm_buffer *make(uint64_t bytes, xm_buffer_use use = XM_USE_DEVICE)
    {
        xm_buffer *b = nullptr;
        EXPECT_EQ(xm_buffer_create(engine, use, bytes, &b, &err), XM_OK) << err.text;
        return b;
    }
    std::vector<uint8_t> read(const xm_buffer *b)
    {
        std::vector<uint8_t> out(xm_buffer_bytes(b));
        EXPECT_EQ(xm_queue_read(queue, b, 0, out.data(), out.size(), &err), XM_OK)
            << err.text;
        return out;
    }
    /* Runs the kernel dst[dst_at + i] = src[src_at + i]. */
    xm_status copy_bytes(xm_buffer *src, int64_t src_at, xm_buffer *dst, int64_t dst_at,
                         int64_t n, uint64_t local = 0)
    {
        xm_kernel *k = nullptr;
        EXPECT_EQ(xm_engine_kernel(engine, "copy_bytes", "-DPER_ITEM=4", &k, &err), XM_OK)
            << err.text;
        const xm_arg args[] = {xm_arg_buffer(src), xm_arg_i64(src_at), xm_arg_buffer(dst),
                               xm_arg_i64(dst_at), xm_arg_i64(n)};
        const xm_launch launch = {{uint64_t(n + 3) / 4, 1, 1}, {local, 0, 0}};
        return xm_queue_run(queue, k, args, 5, &launch, &err);
    }

    xm_error err = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
};

std::vector<uint8_t>
pattern(size_t n)
{
    std::vector<uint8_t> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = uint8_t(i * 7 + 3);
    return v;
}

TEST_F(OclEngine, WritesCopiesFillsAndReads)
{
    xm_buffer *a = make(1000), *b = make(1000, XM_USE_HOST);
    std::vector<uint8_t> in = pattern(1000);
    EXPECT_EQ(xm_queue_write(queue, a, 0, in.data(), 1000, &err), XM_OK) << err.text;
    EXPECT_EQ(xm_queue_fill(queue, b, 0, 0xab, 1000, &err), XM_OK) << err.text;
    if (xm_buffer_kind(a) == xm_buffer_kind(b)) {
        EXPECT_EQ(xm_queue_copy(queue, a, 100, b, 10, 50, &err), XM_OK) << err.text;
    }
    std::vector<uint8_t> out = read(b);
    EXPECT_EQ(out[9], 0xab);
    if (xm_buffer_kind(a) == xm_buffer_kind(b)) {
        EXPECT_EQ(out[10], in[100]);
        EXPECT_EQ(out[59], in[149]);
    }
    EXPECT_EQ(out[60], 0xab);
    xm_buffer_unref(a);
    xm_buffer_unref(b);
}

TEST_F(OclEngine, RefusesRangesOutsideTheBuffer)
{
    xm_buffer *a = make(100);
    char bytes[8] = {};
    EXPECT_EQ(xm_queue_write(queue, a, 96, bytes, 8, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("past the end"), std::string::npos) << err.text;
    err = {};
    EXPECT_EQ(xm_queue_read(queue, a, UINT64_MAX, bytes, 8, &err), XM_INVALID);
    xm_buffer_unref(a);
}

TEST_F(OclEngine, RefusesBuffersOverTheLimit)
{
    xm_buffer *b = nullptr;
    EXPECT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, uint64_t(1) << 60, &b, &err),
              XM_NO_MEMORY);
    EXPECT_NE(std::string(err.text).find("largest allocation"), std::string::npos);
    EXPECT_EQ(b, nullptr);
    err = {};
    EXPECT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, 0, &b, &err), XM_INVALID);
}

TEST_F(OclEngine, ViewsOfViewsShareTheBytesAndKeepTheirRootAlive)
{
    uint32_t align = xm_engine_info(engine)->base_align;
    xm_buffer *root = make(8 * align), *view = nullptr, *inner = nullptr;
    ASSERT_EQ(xm_queue_fill(queue, root, 0, 0, 8 * align, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_buffer_view(root, 2 * align, 4 * align, &view, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_buffer_view(view, align, align, &inner, &err), XM_OK) << err.text;
    xm_buffer_ref(root);
    xm_buffer_unref(view);
    xm_buffer_unref(root);
    EXPECT_EQ(xm_queue_fill(queue, inner, 0, 9, align, &err), XM_OK) << err.text;
    std::vector<uint8_t> out = read(root);
    EXPECT_EQ(out[3 * align - 1], 0);
    EXPECT_EQ(out[3 * align], 9);
    EXPECT_EQ(out[4 * align - 1], 9);
    EXPECT_EQ(out[4 * align], 0);
    xm_buffer_unref(root);
    EXPECT_EQ(read(inner)[0], 9); /* only the view holds the memory now */
    xm_buffer_unref(inner);
}

TEST_F(OclEngine, RefusesUnalignedAndOverlongViews)
{
    xm_buffer *root = make(1024), *view = nullptr;
    EXPECT_EQ(xm_buffer_view(root, 1, 8, &view, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("multiple of"), std::string::npos);
    err = {};
    EXPECT_EQ(xm_buffer_view(root, 0, 1025, &view, &err), XM_INVALID);
    EXPECT_EQ(view, nullptr);
    xm_buffer_unref(root);
}

TEST_F(OclEngine, UsesHostBytesInPlaceAtAnOddAddress)
{
    if (xm_engine_config(engine)->copy_weights != XM_NO ||
        !xm_device_has(xm_engine_info(engine), XM_CAP_HOST_VISIBLE))
        GTEST_SKIP() << "the device copies weights";
    std::vector<uint8_t> file = pattern(5000);
    xm_buffer *weight = nullptr;
    ASSERT_EQ(xm_buffer_from_host(engine, file.data() + 13, 4000, &weight, &err), XM_OK);
    EXPECT_EQ(xm_buffer_kind(weight), XM_MEMORY_MAPPED);
    EXPECT_EQ(xm_buffer_host_ptr(weight), file.data() + 13);
    xm_memory_stats stats;
    xm_engine_memory_stats(engine, &stats);
    EXPECT_EQ(stats.now[XM_MEMORY_MAPPED], 4000u);
    EXPECT_EQ(stats.total_now, 0u);
    xm_buffer *out = make(4000);
    ASSERT_EQ(copy_bytes(weight, 0, out, 0, 4000), XM_OK) << err.text;
    EXPECT_EQ(read(out), std::vector<uint8_t>(file.begin() + 13, file.begin() + 4013));
    xm_buffer_unref(out);
    xm_buffer_unref(weight);
}

TEST_F(OclEngine, CopiesHostBytesWhenTheConfigSaysSo)
{
    xm_config config;
    xm_config_init(&config);
    ASSERT_EQ(xm_config_set(&config, "XM_COPY_WEIGHTS", "YES", &err), XM_OK);
    xm_engine *copying = nullptr;
    ASSERT_EQ(xm_engine_create(0, &config, &copying, &err), XM_OK) << err.text;
    std::vector<uint8_t> file = pattern(300);
    xm_buffer *weight = nullptr;
    ASSERT_EQ(xm_buffer_from_host(copying, file.data() + 1, 256, &weight, &err), XM_OK);
    EXPECT_NE(xm_buffer_kind(weight), XM_MEMORY_MAPPED);
    EXPECT_NE(xm_buffer_host_ptr(weight), file.data() + 1);
    xm_engine_unref(copying); /* the buffer keeps the engine alive */
    xm_buffer_unref(weight);
}

TEST_F(OclEngine, RunsKernelsOverOddOffsetsAndViews)
{
    uint32_t align = xm_engine_info(engine)->base_align;
    xm_buffer *a = make(4 * align), *b = make(4 * align), *view = nullptr;
    std::vector<uint8_t> in = pattern(4 * align);
    ASSERT_EQ(xm_queue_write(queue, a, 0, in.data(), in.size(), &err), XM_OK);
    ASSERT_EQ(xm_queue_fill(queue, b, 0, 0xee, 4 * align, &err), XM_OK);
    ASSERT_EQ(xm_buffer_view(a, align, 2 * align, &view, &err), XM_OK);
    ASSERT_EQ(copy_bytes(view, 3, b, 7, 21), XM_OK) << err.text;
    std::vector<uint8_t> out = read(b);
    EXPECT_EQ(out[6], 0xee);
    EXPECT_EQ(out[7], in[align + 3]);
    EXPECT_EQ(out[27], in[align + 23]);
    EXPECT_EQ(out[28], 0xee);
    xm_buffer_unref(view);
    xm_buffer_unref(a);
    xm_buffer_unref(b);
}

TEST_F(OclEngine, BuildsAKernelOnce)
{
    xm_kernel *a = nullptr, *b = nullptr, *c = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "", &a, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "", &b, &err), XM_OK);
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "-DPER_ITEM=8", &c, &err), XM_OK);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    EXPECT_EQ(xm_engine_kernels_built(engine), 2u);
}

TEST_F(OclEngine, SaysHowManyArgumentsAKernelTakes)
{
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "", &k, &err), XM_OK);
    const xm_arg args[] = {xm_arg_uint(1), xm_arg_uint(2)};
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    EXPECT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "kernel 'copy_bytes' takes 5 arguments, found 2");
}

TEST_F(OclEngine, NamesTheArgumentThatDoesNotFit)
{
    xm_buffer *a = make(64);
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "", &k, &err), XM_OK);
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    xm_arg args[] = {xm_arg_buffer(a), xm_arg_uint(0), xm_arg_buffer(a), xm_arg_i64(0),
                     xm_arg_i64(0)};
    EXPECT_NE(xm_queue_run(queue, k, args, 5, &launch, &err), XM_OK);
    EXPECT_STREQ(
        err.text,
        "kernel 'copy_bytes': argument 1 (ulong src_at) must have 8 bytes, found 4");
    err = {};
    args[1] = xm_arg_buffer(a);
    EXPECT_NE(xm_queue_run(queue, k, args, 5, &launch, &err), XM_OK);
    EXPECT_STREQ(err.text, "kernel 'copy_bytes': argument 1 (ulong src_at) must be a "
                           "scalar, found a buffer");
    xm_buffer_unref(a);
}

TEST_F(OclEngine, NamesTheArgumentThatIsCalledOtherwise)
{
    xm_buffer *a = make(64);
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "", &k, &err), XM_OK);
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    xm_arg args[] = {xm_arg_buffer(a), xm_arg_u64(0), xm_arg_buffer(a), xm_arg_u64(32),
                     xm_arg_u64(8)};
    args[0].name = "src";
    args[1].name = "dst";
    args[1].suffix = "_at";
    args[3].name = "dst";
    args[3].suffix = "_at";
    EXPECT_EQ(xm_queue_run(queue, k, args, 5, &launch, &err), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "kernel 'copy_bytes': argument 1 must be 'src_at', found 'dst_at'");
    args[1].name = "src";
    EXPECT_EQ(xm_queue_run(queue, k, args, 5, &launch, &err), XM_OK) << err.text;
    xm_buffer_unref(a);
}

TEST_F(OclEngine, ChecksWorkGroupSizes)
{
    xm_buffer *a = make(64), *b = make(64);
    EXPECT_EQ(copy_bytes(a, 0, b, 0, 36, 2), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("not a multiple of local size 2"),
              std::string::npos)
        << err.text;
    err = {};
    uint64_t huge = xm_engine_info(engine)->max_work_group * 2;
    EXPECT_EQ(copy_bytes(a, 0, b, 0, int64_t(huge * 4), huge), XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("has at most"), std::string::npos) << err.text;
    err = {};
    EXPECT_EQ(copy_bytes(a, 0, b, 0, 0), XM_INVALID);
    xm_buffer_unref(a);
    xm_buffer_unref(b);
}

/* "Out of resources" means lack of room in a call that enqueues, and a hang in a call that waits.
 */
TEST(OclErrors, TellALostDeviceFromALackOfRoom)
{
    static const struct {
        int code;
        xm_status enqueues, waits;
    } cases[] = {
        {-2 /* device not available */, XM_LOST, XM_LOST},
        {-5 /* out of resources */, XM_NO_MEMORY, XM_LOST},
        {-6 /* out of host memory */, XM_NO_MEMORY, XM_NO_MEMORY},
        {-4 /* mem object allocation failure */, XM_NO_MEMORY, XM_NO_MEMORY},
        {-52 /* invalid kernel args */, XM_DEVICE, XM_DEVICE},
    };
    for (const auto &c : cases) {
        xm_error err = {};
        EXPECT_EQ(xm_ocl_fail(nullptr, c.code, "clFinish", "it"), c.enqueues) << c.code;
        EXPECT_EQ(xm_ocl_fail_wait(&err, c.code, "clFinish", "%s", "a device"), c.waits);
        EXPECT_EQ(std::string(err.text), std::string("clFinish gave ") +
                                             xm_ocl_error_text(c.code) + " (" +
                                             std::to_string(c.code) + "): a device");
    }
}

TEST_F(OclEngine, GivesTheLineOfTheBuildLog)
{
    xm_kernel *k = nullptr;
    EXPECT_EQ(
        xm_engine_kernel(engine, "copy_bytes", "-DPER_ITEM=no_such_thing", &k, &err),
        XM_NOT_BUILT);
    EXPECT_EQ(k, nullptr);
    EXPECT_NE(std::string(err.text).find("CL_BUILD_PROGRAM_FAILURE"), std::string::npos);
    EXPECT_NE(std::string(err.text).find("no_such_thing"), std::string::npos) << err.text;
    err = {};
    EXPECT_EQ(xm_engine_kernel(engine, "no_such_kernel", "", &k, &err), XM_NOT_FOUND);
    EXPECT_NE(std::string(err.text).find("no_such_kernel.cl"), std::string::npos);
}

struct increment {
    uint8_t *bytes;
    size_t n;
};

xm_status
add_one(void *ctx, xm_error *)
{
    auto *c = static_cast<increment *>(ctx);
    for (size_t i = 0; i < c->n; i++)
        c->bytes[i]++;
    return XM_OK;
}

xm_status
fail_with(void *ctx, xm_error *err)
{
    return xm_fail(err, XM_NO_MEMORY, "the host function fails with %d",
                   *static_cast<int *>(ctx));
}

TEST_F(OclEngine, RunsHostFunctionsInQueueOrder)
{
    xm_buffer *a = make(256, XM_USE_HOST), *b = make(256, XM_USE_HOST);
    auto *host = static_cast<uint8_t *>(xm_buffer_host_ptr(a));
    if (!host)
        GTEST_SKIP() << "no host pointer on this device";
    for (int i = 0; i < 20; i++) {
        increment ctx = {host, 256};
        ASSERT_EQ(xm_queue_fill(queue, a, 0, uint8_t(i), 256, &err), XM_OK);
        ASSERT_EQ(xm_queue_run_host(queue, "add_one", add_one, &ctx, sizeof(ctx), &err),
                  XM_OK)
            << err.text;
        ctx = {nullptr, 0}; /* the call has copied it */
        ASSERT_EQ(copy_bytes(a, 0, b, 0, 256), XM_OK) << err.text;
        ASSERT_EQ(xm_queue_fill(queue, a, 0, 0, 256, &err), XM_OK);
    }
    EXPECT_EQ(read(b), std::vector<uint8_t>(256, 20));
    xm_buffer_unref(a);
    xm_buffer_unref(b);
}

struct gate {
    std::atomic<bool> *open, *passed;
};

xm_status
wait_at_gate(void *ctx, xm_error *)
{
    auto *g = static_cast<gate *>(ctx);
    while (!*g->open)
        std::this_thread::yield();
    *g->passed = true;
    return XM_OK;
}

/* The first call must not wait, or it would hang here. The second waits for what was enqueued
 * before the first call, but not for the second gate. */
TEST_F(OclEngine, KeepsPaceWithTheDevice)
{
    if (!xm_device_really_has(xm_engine_info(engine), XM_CAP_NATIVE_KERNEL))
        GTEST_SKIP() << "the device has no native kernels";
    std::atomic<bool> open[2] = {}, passed[2] = {};
    gate first = {&open[0], &passed[0]}, second = {&open[1], &passed[1]};
    ASSERT_EQ(xm_queue_run_host(queue, "gate", wait_at_gate, &first, sizeof(first), &err),
              XM_OK);
    ASSERT_EQ(xm_queue_keep_pace(queue, &err), XM_OK) << err.text;
    EXPECT_FALSE(passed[0]);
    ASSERT_EQ(
        xm_queue_run_host(queue, "gate", wait_at_gate, &second, sizeof(second), &err),
        XM_OK);
    open[0] = true;
    ASSERT_EQ(xm_queue_keep_pace(queue, &err), XM_OK) << err.text;
    EXPECT_TRUE(passed[0]);
    EXPECT_FALSE(passed[1]);
    open[1] = true;
    ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK) << err.text;
    EXPECT_TRUE(passed[1]);
}

/* The next wait returns the first failure; later waits return none. */
TEST_F(OclEngine, AWaitFailsWithWhatAHostFunctionSays)
{
    xm_buffer *a = make(256);
    std::vector<uint8_t> bytes(256);
    const std::function<xm_status(xm_error *)> waits[] = {
        [&](xm_error *e) { return xm_queue_finish(queue, e); },
        [&](xm_error *e) { return xm_queue_read(queue, a, 0, bytes.data(), 256, e); }};
    for (const auto &wait : waits) {
        for (int i : {1, 2})
            ASSERT_EQ(xm_queue_run_host(queue, "fail", fail_with, &i, sizeof(i), &err),
                      XM_OK)
                << err.text;
        xm_error first = {}, second = {};
        EXPECT_EQ(wait(&first), XM_NO_MEMORY);
        EXPECT_STREQ(first.text, "the host function fails with 1");
        EXPECT_EQ(wait(&second), XM_OK) << second.text;
    }
    xm_buffer_unref(a);
}

TEST_F(OclEngine, FreesMemoryOnlyAfterTheCommandsThatUseIt)
{
    xm_buffer *b = make(1 << 20);
    for (int i = 0; i < 50; i++) {
        xm_buffer *a = make(1 << 20);
        ASSERT_EQ(xm_queue_fill(queue, a, 0, uint8_t(i), 1 << 20, &err), XM_OK);
        ASSERT_EQ(copy_bytes(a, 0, b, 0, 1 << 20), XM_OK) << err.text;
        xm_buffer_unref(a);
    }
    EXPECT_EQ(read(b)[12345], 49);
    xm_buffer_unref(b);
}

TEST_F(OclEngine, CountsWaitsKernelsAndMemory)
{
    xm_buffer *a = make(4096), *b = make(4096);
    ASSERT_EQ(xm_queue_fill(queue, a, 0, 1, 4096, &err), XM_OK);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(copy_bytes(a, 0, b, 0, 4096), XM_OK);
    uint64_t waits, kernels;
    xm_queue_counts(queue, &waits, &kernels);
    EXPECT_EQ(waits, 0u);
    EXPECT_EQ(kernels, 3u);
    ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK);
    read(b);
    xm_queue_counts(queue, &waits, &kernels);
    EXPECT_EQ(waits, 2u);
    xm_buffer_unref(a);
    xm_memory_stats stats;
    xm_engine_memory_stats(engine, &stats);
    EXPECT_EQ(stats.total_now, 4096u);
    EXPECT_EQ(stats.total_peak, 8192u);
    EXPECT_EQ(stats.allocations, 2u);
    xm_buffer_unref(b);
}

void
copy_many(xm_engine *engine, uint8_t value, bool *right)
{
    xm_error err = {};
    xm_queue *queue = nullptr;
    xm_buffer *a = nullptr, *b = nullptr;
    xm_kernel *k = nullptr;
    *right = xm_queue_create(engine, &queue, &err) == XM_OK &&
             xm_buffer_create(engine, XM_USE_DEVICE, 64, &a, &err) == XM_OK &&
             xm_buffer_create(engine, XM_USE_DEVICE, 64, &b, &err) == XM_OK &&
             xm_engine_kernel(engine, "copy_bytes", "", &k, &err) == XM_OK &&
             xm_queue_fill(queue, a, 0, value, 64, &err) == XM_OK;
    const xm_arg args[] = {xm_arg_buffer(a), xm_arg_i64(0), xm_arg_buffer(b),
                           xm_arg_i64(0), xm_arg_i64(64)};
    const xm_launch launch = {{4, 1, 1}, {1, 1, 1}};
    for (int i = 0; i < 50 && *right; i++) {
        uint8_t out[64] = {};
        *right = xm_queue_fill(queue, b, 0, 0, 64, &err) == XM_OK &&
                 xm_queue_run(queue, k, args, 5, &launch, &err) == XM_OK &&
                 xm_queue_read(queue, b, 0, out, 64, &err) == XM_OK && out[63] == value;
    }
    xm_buffer_unref(a);
    xm_buffer_unref(b);
    xm_queue_destroy(queue);
}

TEST_F(OclEngine, QueuesOfTwoThreadsShareAKernel)
{
    bool right[2] = {};
    std::thread one(copy_many, engine, uint8_t(1), &right[0]);
    std::thread two(copy_many, engine, uint8_t(2), &right[1]);
    one.join();
    two.join();
    EXPECT_TRUE(right[0]);
    EXPECT_TRUE(right[1]);
    EXPECT_EQ(xm_engine_kernels_built(engine), 1u);
}

/* Other launches bind other arguments to the same kernel in between. */
TEST_F(OclEngine, RecordedLaunchesKeepTheirArguments)
{
    xm_buffer *a = make(64), *b = make(64), *c = make(64);
    xm_recording *rec = nullptr;
    ASSERT_EQ(xm_recording_create(queue, &rec, &err), XM_OK) << err.text;
    xm_queue_record(queue, rec);
    ASSERT_EQ(copy_bytes(a, 0, b, 8, 16), XM_OK) << err.text;
    xm_queue_record(queue, nullptr);
    ASSERT_EQ(copy_bytes(a, 0, c, 0, 64), XM_OK);
    ASSERT_EQ(xm_recording_launches(rec), 1u);
    for (uint8_t value : {3, 4}) {
        ASSERT_EQ(xm_queue_fill(queue, a, 0, value, 64, &err), XM_OK);
        ASSERT_EQ(xm_queue_fill(queue, b, 0, 0, 64, &err), XM_OK);
        ASSERT_EQ(xm_queue_fill(queue, c, 0, 0, 64, &err), XM_OK);
        ASSERT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_OK) << err.text;
        const std::vector<uint8_t> got = read(b);
        for (size_t i = 0; i < 64; i++)
            ASSERT_EQ(got[i], i >= 8 && i < 24 ? value : 0) << i;
        EXPECT_EQ(read(c)[0], 0);
    }
    xm_buffer_unref(a);
    xm_buffer_unref(b);
    /* the recording holds them */
    ASSERT_EQ(xm_queue_replay(queue, rec, 0, 1, &err), XM_OK);
    ASSERT_EQ(xm_queue_finish(queue, &err), XM_OK);
    xm_recording_destroy(rec);
    xm_buffer_unref(c);
}

/* Builds and runs one kernel on a new engine with this cache. */
xm_build_stats
build_and_run(const std::string &dir)
{
    xm_build_stats stats = {};
    xm_error err = {};
    xm_config config;
    xm_engine *e = nullptr;
    xm_config_init(&config);
    EXPECT_EQ(xm_config_set(&config, "CACHE_DIR", dir.c_str(), &err), XM_OK);
    EXPECT_EQ(xm_engine_create(0, &config, &e, &err), XM_OK) << err.text;
    bool right = false;
    if (e) {
        copy_many(e, 7, &right);
        xm_engine_build_stats(e, &stats);
    }
    EXPECT_TRUE(right);
    xm_engine_unref(e);
    return stats;
}

class KernelCache : public OclEngine
{
  protected:
    void SetUp() override
    {
        OclEngine::SetUp();
        if (IsSkipped())
            return;
        uint32_t kept = XM_CAP_BINARIES | XM_CAP_DRIVER_FILES;
        if (!(xm_engine_info(engine)->caps & kept))
            GTEST_SKIP() << "the driver gives nothing to keep";
        char name[] = "/tmp/xm_binaries_XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        dir = name;
    }
    void TearDown() override
    {
        if (!dir.empty())
            std::filesystem::remove_all(dir);
        OclEngine::TearDown();
    }
    std::vector<std::filesystem::path> entries() const
    {
        std::vector<std::filesystem::path> found;
        for (const auto &f : std::filesystem::directory_iterator(dir))
            found.push_back(f.path());
        return found;
    }
    /* As in another process: everything must come from the cache. */
    void expect_loaded()
    {
        xm_build_stats s = build_and_run(dir);
        EXPECT_EQ(s.built, 0u);
        EXPECT_EQ(s.loaded, 1u);
        EXPECT_EQ(s.launches, 0u);
        EXPECT_EQ(s.cache_bytes, 0u);
    }
    std::string dir;
};

TEST_F(KernelCache, TheSecondEngineBuildsNothing)
{
    xm_build_stats first = build_and_run(dir);
    EXPECT_EQ(first.built, 1u);
    EXPECT_GT(first.cache_bytes, 0u);
    EXPECT_GT(first.seconds, 0.0);
    EXPECT_EQ(entries().size(), 1u);
    expect_loaded();
}

TEST_F(KernelCache, DriversThatKeepFilesDoNotReadTheSourceAgain)
{
    if (!(xm_engine_info(engine)->caps & XM_CAP_DRIVER_FILES))
        GTEST_SKIP() << "the driver gives binaries";
    build_and_run(dir);
    ASSERT_EQ(entries().size(), 1u);
    std::ifstream entry(entries()[0], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(entry), {}};
    EXPECT_NE(bytes.find("input.bc"), std::string::npos);
    expect_loaded();
}

/* Returns the newest program in PoCL's folder. */
std::filesystem::path
newest_program(const std::filesystem::path &pocl)
{
    std::filesystem::path newest;
    auto at = std::filesystem::file_time_type::min();
    for (const auto &f : std::filesystem::recursive_directory_iterator(pocl)) {
        if (f.path().filename() != "last_accessed" || f.last_write_time() < at ||
            !std::filesystem::exists(f.path().parent_path() / "program.bc"))
            continue;
        at = f.last_write_time();
        newest = f.path().parent_path();
    }
    return newest;
}

TEST_F(KernelCache, AnotherProgramsFilesAreNotTaken)
{
    const char *pocl = getenv("POCL_CACHE_DIR");
    if (!(xm_engine_info(engine)->caps & XM_CAP_DRIVER_FILES) || !pocl)
        GTEST_SKIP() << "no folder of PoCL's that is known";
    build_and_run(dir);
    /* as another process would leave it during our build */
    const std::filesystem::path planted = std::filesystem::path(pocl) / "ZZ/PLANTED";
    std::filesystem::create_directories(planted.parent_path());
    std::filesystem::copy(newest_program(pocl), planted,
                          std::filesystem::copy_options::recursive);
    std::filesystem::last_write_time(planted / "last_accessed",
                                     std::filesystem::file_time_type::clock::now() +
                                         std::chrono::hours(1));
    xm_config config;
    xm_engine *e = nullptr;
    xm_kernel *kernel = nullptr;
    const std::string other = dir + "/other";
    xm_config_init(&config);
    EXPECT_EQ(xm_config_set(&config, "CACHE_DIR", other.c_str(), &err), XM_OK);
    ASSERT_EQ(xm_engine_create(0, &config, &e, &err), XM_OK) << err.text;
    EXPECT_EQ(xm_engine_kernel(e, "moe_combine_ref", "-DDST=f16", &kernel, &err), XM_OK)
        << err.text;
    xm_engine_unref(e);
    EXPECT_FALSE(std::filesystem::exists(other) && !std::filesystem::is_empty(other))
        << "files of another program are not kept as this one's";
    std::filesystem::remove_all(planted);
}

TEST_F(KernelCache, DamagedEntriesAreBuiltAndStoredAgain)
{
    build_and_run(dir);
    ASSERT_EQ(entries().size(), 1u);
    const std::filesystem::path entry = entries()[0];
    const uintmax_t bytes = std::filesystem::file_size(entry);
    for (uintmax_t left : {bytes - 1, bytes / 2, uintmax_t(10), uintmax_t(0)}) {
        SCOPED_TRACE(left);
        std::filesystem::resize_file(entry, left);
        EXPECT_EQ(build_and_run(dir).built, 1u);
        expect_loaded();
    }
    std::ofstream(entry, std::ios::binary) << std::string(bytes, 'x');
    EXPECT_EQ(build_and_run(dir).built, 1u);
    expect_loaded();
}

TEST_F(KernelCache, WhatTheDriverDoesNotTakeIsBuiltAndStoredAgain)
{
    const char foreign[] = "a whole entry, but of another driver";
    build_and_run(dir);
    ASSERT_EQ(entries().size(), 1u);
    uint64_t words[2] = {};
    const std::string name = entries()[0].stem().string();
    ASSERT_EQ(sscanf(name.c_str(), "%16" SCNx64 "%16" SCNx64, &words[1], &words[0]), 2);
    const xm_kernel_key key = {{words[0], words[1]}};
    ASSERT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, foreign, sizeof(foreign)));
    EXPECT_EQ(build_and_run(dir).built, 1u);
    expect_loaded();
}

TEST_F(OclEngine, RefusesADeviceThatIsNotThere)
{
    xm_engine *none = nullptr;
    EXPECT_EQ(xm_engine_create(1000, nullptr, &none, &err), XM_NOT_FOUND);
    EXPECT_EQ(none, nullptr);
}

} // namespace
