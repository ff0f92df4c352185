/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake engine, and the code that all engines share.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "runtime/counting/counting.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"

namespace
{

class FakeEngine : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 1 << 20;
        info.base_align = 64;
        info.max_work_group = 256;
        info.local_bytes = 1024;
        info.caps = XM_CAP_HOST_VISIBLE;
        snprintf(info.name, sizeof(info.name), "fake chip");
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK);
        ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK);
    }
    void TearDown() override
    {
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }
    xm_error err = {};
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
};

void
double_bytes(const xm_fake_launch *launch, void *ctx)
{
    auto *bytes = static_cast<uint8_t *>(xm_fake_bytes(launch, 0));
    for (int i = 0; i < launch->args[1].value.i32; i++)
        bytes[i] = uint8_t(bytes[i] * 2);
    ++*static_cast<int *>(ctx);
}

TEST_F(FakeEngine, RecordsAndExecutesLaunches)
{
    int calls = 0;
    ASSERT_TRUE(xm_fake_kernel(engine, "double", double_bytes, &calls));
    xm_buffer *b = nullptr;
    ASSERT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, 4, &b, &err), XM_OK);
    const uint8_t in[4] = {1, 2, 3, 4};
    ASSERT_EQ(xm_queue_write(queue, b, 0, in, 4, &err), XM_OK);
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "double", "-DX=1", &k, &err), XM_OK);
    const xm_arg args[] = {xm_arg_buffer(b), xm_arg_uint(3)};
    const xm_launch launch = {{8, 0, 0}, {4, 0, 0}};
    ASSERT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_OK) << err.text;
    uint8_t out[4];
    ASSERT_EQ(xm_queue_read(queue, b, 0, out, 4, &err), XM_OK);
    EXPECT_EQ(out[2], 6);
    EXPECT_EQ(out[3], 4);
    EXPECT_EQ(calls, 1);
    size_t n;
    const xm_fake_launch *l = xm_fake_launches(engine, &n);
    ASSERT_EQ(n, 1u);
    EXPECT_STREQ(l->kernel, "double");
    EXPECT_STREQ(l->defines, "-DX=1");
    EXPECT_EQ(l->launch.global[1], 1u);
    EXPECT_EQ(l->launch.local[2], 1u);
    EXPECT_EQ(l->args[0].buffer, b);
    EXPECT_EQ(l->label, XM_NO_LABEL);
    xm_queue_label(queue, 5);
    ASSERT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_OK) << err.text;
    l = xm_fake_launches(engine, &n);
    EXPECT_EQ(l[1].label, 5u);
    xm_fake_clear_launches(engine);
    xm_fake_launches(engine, &n);
    EXPECT_EQ(n, 0u);
    xm_buffer_unref(b);
}

/* Makes one call of each kind; returns the first failure. */
xm_status
use_everything(xm_engine *engine, xm_error *err)
{
    xm_queue *q = nullptr;
    xm_buffer *b = nullptr, *v = nullptr, *w = nullptr;
    xm_kernel *k = nullptr;
    char bytes[64] = {};
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    xm_status s = xm_queue_create(engine, &q, err);
    if (s == XM_OK)
        s = xm_buffer_create(engine, XM_USE_HOST, 128, &b, err);
    if (s == XM_OK)
        s = xm_buffer_from_host(engine, bytes, 64, &w, err);
    if (s == XM_OK)
        s = xm_buffer_view(b, 64, 64, &v, err);
    if (s == XM_OK)
        s = xm_engine_kernel(engine, "k", "", &k, err);
    if (s == XM_OK)
        s = xm_queue_write(q, b, 0, bytes, 64, err);
    if (s == XM_OK)
        s = xm_queue_fill(q, v, 0, 1, 64, err);
    if (s == XM_OK)
        s = xm_queue_copy(q, b, 0, v, 0, 64, err);
    if (s == XM_OK)
        s = xm_queue_run(q, k, nullptr, 0, &launch, err);
    if (s == XM_OK)
        s = xm_queue_run_host(
            q, "nothing", [](void *, xm_error *) { return XM_OK; }, nullptr, 0, err);
    if (s == XM_OK)
        s = xm_queue_read(q, b, 0, bytes, 64, err);
    if (s == XM_OK)
        s = xm_queue_flush(q, err);
    if (s == XM_OK)
        s = xm_queue_finish(q, err);
    xm_buffer_unref(v);
    xm_buffer_unref(w);
    xm_buffer_unref(b);
    xm_queue_destroy(q);
    return s;
}

TEST_F(FakeEngine, EveryCallCanBeMadeToFailAndLeavesNothing)
{
    uint64_t n = 1;
    for (;; n++) {
        /* A new engine, so that the kernel is built each time. */
        xm_engine *e = nullptr;
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &e, &err), XM_OK);
        xm_fake_fail(e, XM_FAKE_ANY, n);
        xm_error first = {};
        xm_status status = use_everything(e, &first);
        bool failed = xm_fake_failed(e);
        xm_memory_stats stats;
        xm_engine_memory_stats(e, &stats);
        EXPECT_EQ(stats.total_now, 0u);
        xm_engine_unref(e);
        if (!failed) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_NE(status, XM_OK) << n;
        EXPECT_NE(std::string(first.text).find("fake device fails"), std::string::npos);
    }
    EXPECT_EQ(n, 14u); /* each of thirteen calls failed once */
}

TEST_F(FakeEngine, EveryHostAllocationCanFail)
{
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        xm_engine *e = nullptr;
        xm_error first = {};
        xm_status status = xm_fake_engine_create(&info, nullptr, &e, &first);
        if (status == XM_OK)
            status = use_everything(e, &first);
        xm_engine_unref(e);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << n;
        EXPECT_NE(first.text[0], 0);
    }
}

TEST_F(FakeEngine, ChecksLocalMemoryAndScalarSizes)
{
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "k", "", &k, &err), XM_OK);
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    const xm_arg local[] = {xm_arg_local(1000), xm_arg_local(25)};
    EXPECT_EQ(xm_queue_run(queue, k, local, 2, &launch, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text,
                 "kernel 'k': 1025 bytes of local memory, but fake chip has 1024");
    err = {};
    xm_arg scalar = xm_arg_uint(1);
    scalar.bytes = 3;
    EXPECT_EQ(xm_queue_run(queue, k, &scalar, 1, &launch, &err), XM_INVALID);
}

/* A kernel would compute with a truncated number. */
TEST_F(FakeEngine, RefusesANumberThatItsKernelCannotHold)
{
    xm_kernel *k = nullptr;
    ASSERT_EQ(xm_engine_kernel(engine, "k", "", &k, &err), XM_OK);
    const xm_launch launch = {{1, 1, 1}, {1, 1, 1}};
    xm_arg args[] = {xm_arg_u64(UINT64_MAX), xm_arg_uint(INT32_MAX)};
    EXPECT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_OK) << err.text;
    for (uint64_t v : {(uint64_t)1 << 31, ((uint64_t)1 << 32) + 5}) {
        args[1] = xm_arg_uint(v);
        err = {};
        EXPECT_EQ(xm_queue_run(queue, k, args, 2, &launch, &err), XM_UNSUPPORTED);
        EXPECT_EQ(std::string(err.text), "kernel 'k': argument 1 is " +
                                             std::to_string(v) + ", above 2147483647");
    }
    size_t n;
    xm_fake_launches(engine, &n);
    EXPECT_EQ(n, 1u) << "a refused launch is no launch";
}

/* An engine without memory counts the same bytes of each kind as one with memory. */
TEST_F(FakeEngine, IsCountedAlike)
{
    const char bytes[64] = {};
    for (uint32_t caps : {0u, (uint32_t)XM_CAP_HOST_VISIBLE,
                          (uint32_t)(XM_CAP_USM_HOST | XM_CAP_USM_DEVICE)}) {
        xm_device_info gpu = info;
        gpu.kind = XM_DEVICE_GPU;
        gpu.caps = caps;
        xm_engine *engines[2] = {};
        xm_memory_stats stats[2];
        ASSERT_EQ(xm_fake_engine_create(&gpu, nullptr, &engines[0], &err), XM_OK);
        ASSERT_EQ(xm_counting_engine_create(&gpu, nullptr, &engines[1], &err), XM_OK);
        EXPECT_FALSE(xm_engine_only_counts(engines[0]));
        EXPECT_TRUE(xm_engine_only_counts(engines[1]));
        for (int i = 0; i < 2; i++) {
            xm_buffer *list[5] = {};
            ASSERT_EQ(xm_buffer_create(engines[i], XM_USE_HOST, 1, &list[0], &err),
                      XM_OK);
            ASSERT_EQ(xm_buffer_create(engines[i], XM_USE_DEVICE, 10, &list[1], &err),
                      XM_OK);
            ASSERT_EQ(xm_buffer_from_host(engines[i], bytes, 20, &list[2], &err), XM_OK);
            ASSERT_EQ(xm_buffer_view(list[1], 0, 5, &list[3], &err), XM_OK);
            xm_buffer_unref(list[1]);
            xm_engine_memory_stats(engines[i], &stats[i]);
            for (xm_buffer *b : {list[0], list[2], list[3]})
                xm_buffer_unref(b);
        }
        for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
            EXPECT_EQ(stats[0].now[k], stats[1].now[k]) << k;
            EXPECT_EQ(stats[0].buffers[k], stats[1].buffers[k]) << k;
        }
        EXPECT_EQ(stats[1].total_peak, 31u);
        EXPECT_EQ(stats[1].largest, 20u);
        xm_engine_unref(engines[0]);
        xm_engine_unref(engines[1]);
    }
}

/* Weights that stay on the host do not count as device memory on any kind of device. */
TEST_F(FakeEngine, KeepsHostWeightsOutOfTheDevice)
{
    const char bytes[64] = {};
    const struct {
        uint32_t caps;
        xm_memory_kind kind;
    } devices[] = {{0, XM_MEMORY_CL_HOST},
                   {XM_CAP_HOST_VISIBLE, XM_MEMORY_MAPPED},
                   {XM_CAP_USM_HOST | XM_CAP_USM_DEVICE, XM_MEMORY_USM_HOST}};
    for (auto &d : devices) {
        xm_device_info gpu = info;
        gpu.kind = XM_DEVICE_GPU;
        gpu.caps = d.caps;
        xm_engine *e = nullptr;
        xm_buffer *b = nullptr;
        ASSERT_EQ(xm_counting_engine_create(&gpu, nullptr, &e, &err), XM_OK);
        ASSERT_EQ(xm_buffer_on_host(e, bytes, 64, &b, &err), XM_OK);
        EXPECT_EQ(xm_buffer_kind(b), d.kind) << xm_memory_kind_text(d.kind);
        xm_buffer_unref(b);
        xm_engine_unref(e);
    }
}

TEST_F(FakeEngine, ChoosesMemoryKindsLikeTheDevice)
{
    xm_device_info gpu = info;
    gpu.kind = XM_DEVICE_GPU;
    gpu.caps = XM_CAP_USM_HOST | XM_CAP_USM_DEVICE;
    xm_engine *e = nullptr;
    ASSERT_EQ(xm_fake_engine_create(&gpu, nullptr, &e, &err), XM_OK);
    const char bytes[64] = {};
    xm_buffer *host = nullptr, *device = nullptr, *weight = nullptr, *mapped = nullptr;
    ASSERT_EQ(xm_buffer_create(e, XM_USE_HOST, 64, &host, &err), XM_OK);
    ASSERT_EQ(xm_buffer_create(e, XM_USE_DEVICE, 64, &device, &err), XM_OK);
    ASSERT_EQ(xm_buffer_from_host(e, bytes, 64, &weight, &err), XM_OK);
    ASSERT_EQ(xm_buffer_from_host(engine, bytes, 64, &mapped, &err), XM_OK);
    EXPECT_EQ(xm_buffer_kind(host), XM_MEMORY_USM_HOST);
    EXPECT_EQ(xm_buffer_kind(device), XM_MEMORY_USM_DEVICE);
    EXPECT_EQ(xm_buffer_host_ptr(device), nullptr);
    EXPECT_EQ(xm_buffer_kind(weight), XM_MEMORY_USM_DEVICE);
    EXPECT_EQ(xm_buffer_kind(mapped), XM_MEMORY_MAPPED);
    EXPECT_STREQ(xm_memory_kind_text(XM_MEMORY_USM_DEVICE), "usm_device");
    for (xm_buffer *b : {host, device, weight, mapped})
        xm_buffer_unref(b);
    xm_engine_unref(e);
}

} // namespace
