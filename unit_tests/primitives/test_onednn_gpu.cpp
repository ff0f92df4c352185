/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's GPU engine on Intel's driver in dry mode (nothing is executed, every call is checked),
 * and its refusals of other devices. ctest runs this program as several chips.
 */
#include <cstdlib>

#include "primitives/linear/linear_library.h"
#include "primitives/onednn/onednn_weight.h"
#include "runtime/dry_run.h"
#include "unit_tests/primitives/weight_fixture.h"

#define EXPECT_XM_OK(expr) EXPECT_EQ(expr, XM_OK) << err.text

namespace
{

class OnednnGpu : public PrimitiveTest
{
  protected:
    void SetUp() override
    {
        PrimitiveTest::SetUp();
        if (IsSkipped())
            return;
        if (!xm_dry_run())
            GTEST_SKIP() << "not in a dry run of Intel's driver";
        if (const char *why = xm_onednn_refuses(engine))
            GTEST_SKIP() << why;
        ASSERT_XM_OK(xm_onednn_open(engine, &onednn, &err));
    }
    void TearDown() override
    {
        xm_onednn_unref(onednn);
        PrimitiveTest::TearDown();
    }

    static xm_onednn_problem dense(uint64_t m)
    {
        xm_onednn_problem p = {};
        p.m = m;
        p.n = p.k = 256;
        p.x = p.w = p.y = XM_F16;
        return p;
    }

    /* Enqueues a dense product with this weight and waits. */
    void multiply(xm_buffer *weight)
    {
        const xm_onednn_problem p = dense(32);
        xm_onednn_matmul *m = nullptr;
        xm_onednn_stream *stream = nullptr;
        tensor x(XM_F16, {32, 256}), y(XM_F16, {32, 256});
        ASSERT_XM_OK(xm_onednn_matmul_get(onednn, &p, &m, &err));
        ASSERT_XM_OK(xm_onednn_begin(onednn, queue, &stream, &err));
        xm_onednn_spans s = {};
        s.arg[XM_ONEDNN_X].buffer = x.buffer();
        s.arg[XM_ONEDNN_W].buffer = weight;
        s.arg[XM_ONEDNN_Y].buffer = y.buffer();
        EXPECT_XM_OK(xm_onednn_matmul_run(m, stream, &s, &err));
        xm_onednn_end(stream);
        EXPECT_XM_OK(xm_queue_finish(queue, &err));
        xm_onednn_matmul_put(m);
    }

    xm_onednn *onednn = nullptr;
};

TEST_F(OnednnGpu, IsOpenOnceForADevice)
{
    xm_onednn *again = nullptr;
    ASSERT_XM_OK(xm_onednn_open(engine, &again, &err));
    EXPECT_EQ(again, onednn);
    xm_onednn_unref(again);
    again = xm_onednn_of(engine);
    EXPECT_EQ(again, onednn);
    xm_onednn_unref(again);
    xm_onednn_unref(onednn);
    onednn = nullptr;
    EXPECT_EQ(xm_onednn_of(engine), nullptr);
}

TEST_F(OnednnGpu, BuildsAMatmulOnceForEqualProblems)
{
    const xm_onednn_problem a = dense(16), b = dense(32);
    xm_onednn_matmul *first = nullptr, *second = nullptr, *other = nullptr;
    ASSERT_XM_OK(xm_onednn_matmul_get(onednn, &a, &first, &err));
    ASSERT_XM_OK(xm_onednn_matmul_get(onednn, &a, &second, &err));
    ASSERT_XM_OK(xm_onednn_matmul_get(onednn, &b, &other, &err));
    EXPECT_EQ(first, second);
    EXPECT_NE(first, other);
    xm_onednn_matmul_put(first);
    xm_onednn_matmul_put(second);
    xm_onednn_matmul_put(other);
}

TEST_F(OnednnGpu, RefusesAProblemWithASentence)
{
    xm_onednn_problem p = dense(16);
    p.x = XM_STRING;
    xm_onednn_matmul *m = nullptr;
    EXPECT_STREQ(xm_onednn_declines(onednn, &p), "oneDNN does not implement this matmul");
    EXPECT_EQ(xm_onednn_matmul_get(onednn, &p, &m, &err), XM_NOT_BUILT);
    EXPECT_EQ(m, nullptr);
}

TEST_F(OnednnGpu, TakesUnifiedSharedMemory)
{
    xm_buffer *weight = nullptr;
    ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_WEIGHT, 256 * 256 * 2, &weight, &err));
    EXPECT_EQ(xm_buffer_kind(weight), XM_MEMORY_USM_DEVICE);
    multiply(weight);
    xm_buffer_unref(weight);
}

/* An integrated GPU reads the pages of a mapped file through a cl_mem. */
TEST_F(OnednnGpu, TakesMappedWeightsWhereTheyLie)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_UNIFIED))
        GTEST_SKIP() << "not an integrated GPU";
    xm_config config;
    xm_config_init(&config);
    ASSERT_XM_OK(xm_config_set(&config, "XM_COPY_WEIGHTS", "NO", &err));
    xm_engine *in_place = nullptr;
    xm_queue *own_queue = nullptr;
    ASSERT_XM_OK(xm_engine_create(0, &config, &in_place, &err));
    ASSERT_XM_OK(xm_queue_create(in_place, &own_queue, &err));
    xm_onednn *own = nullptr;
    ASSERT_XM_OK(xm_onednn_open(in_place, &own, &err));
    EXPECT_NE(own, onednn) << "another engine of ours is another context";
    const size_t bytes = 2 * 256 * 256 * 2;
    void *pages = aligned_alloc(4096, bytes);
    xm_buffer *weights = nullptr, *x = nullptr, *y = nullptr;
    ASSERT_XM_OK(xm_buffer_from_host(in_place, pages, bytes, &weights, &err));
    ASSERT_EQ(xm_buffer_kind(weights), XM_MEMORY_MAPPED);
    ASSERT_XM_OK(xm_buffer_create(in_place, XM_USE_DEVICE, 32 * 256 * 2, &x, &err));
    ASSERT_XM_OK(xm_buffer_create(in_place, XM_USE_DEVICE, 32 * 256 * 2, &y, &err));
    const xm_onednn_problem p = dense(32);
    xm_onednn_matmul *m = nullptr;
    xm_onednn_stream *stream = nullptr;
    ASSERT_XM_OK(xm_onednn_matmul_get(own, &p, &m, &err));
    ASSERT_XM_OK(xm_onednn_begin(own, own_queue, &stream, &err));
    xm_onednn_spans s = {};
    s.arg[XM_ONEDNN_X].buffer = x;
    s.arg[XM_ONEDNN_W] = {weights, bytes / 2}; /* the second expert's weight */
    s.arg[XM_ONEDNN_Y].buffer = y;
    EXPECT_XM_OK(xm_onednn_matmul_run(m, stream, &s, &err));
    xm_onednn_end(stream);
    EXPECT_XM_OK(xm_queue_finish(own_queue, &err));
    xm_onednn_matmul_put(m);
    xm_onednn_unref(own);
    xm_buffer_unref(x);
    xm_buffer_unref(y);
    xm_buffer_unref(weights);
    xm_queue_destroy(own_queue);
    xm_engine_unref(in_place);
    free(pages);
}

TEST_F(OnednnGpu, RunsALinearOfAnyNumberOfTokens)
{
    test_weight w(1, 256, 256, {XM_U4, 64, true}, 3);
    if (xm_onednn_weight_can_turn(xm_engine_info(engine), &w.host)) {
        ASSERT_XM_OK(xm_onednn_weight_turn(engine, w.device, &err));
    }
    const xm_weight &on_device = w.device->host;
    const char *why =
        xm_onednn_gpu_linear_refuses(engine, &on_device, XM_F16, XM_F16, nullptr);
    if (xm_engine_info(engine)->arch <= XM_ARCH_XE_LP) {
        EXPECT_STREQ(why, "oneDNN's compressed matmul is reference code on xe_lp");
        return;
    }
    ASSERT_STREQ(why, nullptr);
    EXPECT_STREQ(
        xm_onednn_gpu_linear_refuses(engine, &on_device, XM_F32, XM_F32, nullptr),
        "oneDNN's GPU engine is used only for f16 activations");
    void *linear = nullptr;
    const xm_library_desc desc = {w.device, nullptr, XM_F16, XM_F16, nullptr, 0};
    ASSERT_XM_OK(xm_onednn_gpu_linear.create(engine, &desc, &linear, &err));
    for (uint64_t tokens : {5, 100, 530}) {
        tensor x(XM_F16, {(int64_t)tokens, 256}), y(XM_F16, {(int64_t)tokens, 256});
        xm_primitive p = {nullptr, engine};
        uint64_t bytes = xm_onednn_gpu_linear.scratch(linear, &p, tokens);
        xm_run r = {};
        r.queue = queue;
        if (bytes) {
            ASSERT_XM_OK(
                xm_buffer_create(engine, XM_USE_DEVICE, bytes, &r.scratch, &err));
        }
        xm_scratch s;
        xm_scratch_begin(&s, &p, &r);
        const xm_library_call call = {x.buffer(), y.buffer(), {}, tokens};
        EXPECT_XM_OK(xm_onednn_gpu_linear.run(linear, &call, &s, queue, &err));
        EXPECT_XM_OK(xm_queue_finish(queue, &err));
        xm_scratch_end(&s);
        xm_buffer_unref(r.scratch);
    }
    xm_onednn_gpu_linear.destroy(linear);
}

/* In a dry run only oneDNN's reference code takes groups, and only in f16. */
TEST_F(OnednnGpu, MultipliesGroupsOfRowsInOneCall)
{
    enum { GROUPS = 8, MOST = 640 };
    xm_onednn_problem gate = dense(MOST);
    gate.groups = GROUPS;
    if (const char *why = xm_onednn_declines(onednn, &gate)) {
        EXPECT_STREQ(why, "this oneDNN was built without grouped memory");
        GTEST_SKIP() << why;
    }
    xm_onednn_problem up = gate;
    up.times = true;
    gate.activated = true;
    gate.activation = XM_ACT_SWISH;
    gate.beta = 1;
    tensor x(XM_F16, {MOST, 256}), g(XM_F16, {MOST, 256}), h(XM_F16, {MOST, 256}),
        w(XM_F16, {GROUPS, 256, 256}), ends(XM_I32, {GROUPS});
    xm_onednn_stream *stream = nullptr;
    ASSERT_XM_OK(xm_onednn_begin(onednn, queue, &stream, &err));
    for (const xm_onednn_problem *p : {&gate, &up}) {
        xm_onednn_matmul *m = nullptr;
        ASSERT_XM_OK(xm_onednn_matmul_get(onednn, p, &m, &err));
        xm_onednn_spans s = {};
        s.arg[XM_ONEDNN_X].buffer = x.buffer();
        s.arg[XM_ONEDNN_W].buffer = w.buffer();
        s.arg[XM_ONEDNN_ENDS].buffer = ends.buffer();
        s.arg[XM_ONEDNN_TIMES].buffer = p == &up ? g.buffer() : nullptr;
        s.arg[XM_ONEDNN_Y].buffer = p == &up ? h.buffer() : g.buffer();
        s.most_rows = 128;
        EXPECT_XM_OK(xm_onednn_matmul_run(m, stream, &s, &err));
        s.arg[XM_ONEDNN_ENDS].buffer = nullptr;
        EXPECT_EQ(xm_onednn_matmul_run(m, stream, &s, &err), XM_DEVICE) << "no ends";
        err = {};
        xm_onednn_matmul_put(m);
    }
    xm_onednn_end(stream);
    EXPECT_XM_OK(xm_queue_finish(queue, &err));
    gate.w = XM_U4;
    gate.group = 96;
    EXPECT_STREQ(xm_onednn_declines(onednn, &gate),
                 "oneDNN's grouped matmul needs a group size that is a power of two");
}

TEST(OnednnElsewhere, IsRefusedWithASentence)
{
    if (!device::get().engine)
        GTEST_SKIP() << device::get().why;
    const xm_device_info *d = xm_engine_info(device::get().engine);
    if (d->kind == XM_DEVICE_GPU && d->vendor_id == 0x8086)
        GTEST_SKIP() << "this is an Intel GPU";
    xm_error err = {};
    xm_onednn *onednn = nullptr;
    EXPECT_EQ(xm_onednn_open(device::get().engine, &onednn, &err), XM_UNSUPPORTED);
    const char *why = xm_onednn_refuses(device::get().engine);
    ASSERT_NE(why, nullptr);
    EXPECT_STREQ(err.text, why);
    EXPECT_EQ(onednn, nullptr);
    test_weight w(1, 256, 256, {XM_F16, 0, false}, 3);
    EXPECT_STREQ(xm_onednn_gpu_linear_refuses(device::get().engine, &w.host, XM_F16,
                                              XM_F16, nullptr),
                 why);
}

} // namespace
