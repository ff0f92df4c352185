/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN: what its engines have in common is tested on the CPU engine, where results can be
 * compared; the GPU engine's own parts are tested in test_onednn_gpu.cpp.
 */
#include "primitives/onednn/onednn_matmul.h"
#include "primitives/onednn/onednn_weight.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

TEST(OnednnPieces, CoverAllRowsOnceOrMoreAndNoneBeyond)
{
    const uint32_t least = 2, most = 7;
    for (uint64_t rows = 4; rows < 700; rows++) {
        uint64_t done = 0;
        size_t n = 0;
        while (done < rows) {
            const xm_onednn_piece p = xm_onednn_piece_at(rows, done, least, most);
            ASSERT_GE(p.power, least);
            ASSERT_LE(p.power, most);
            ASSERT_LE(p.first, done) << rows << " rows: a gap";
            const uint64_t end = p.first + xm_onednn_piece_rows(p.power);
            ASSERT_LE(end, rows) << "beyond the last row";
            ASSERT_GT(end, done);
            done = end;
            n++;
        }
        EXPECT_LE(n, rows / xm_onednn_piece_rows(most) + 2);
    }
}

TEST(OnednnPieces, OfTilesBeginAtTiles)
{
    for (uint64_t rows = 16; rows < 2000; rows += 16) {
        for (uint64_t done = 0; done < rows;) {
            const xm_onednn_piece p = xm_onednn_piece_at(rows, done, 4, 9);
            EXPECT_EQ(p.first % 16, 0u);
            done = p.first + xm_onednn_piece_rows(p.power);
        }
    }
}

TEST(Onednn, ReferenceCodeIsKnownByItsName)
{
    for (const char *name : {"ref:any", "ocl:ref:any", "ocl:ref_grouped:any", "gemm:ref"})
        EXPECT_TRUE(xm_onednn_is_reference(name)) << name;
    for (const char *name : {"jit:gemm:any", "ocl:with_po:any", "brg_matmul:avx512_core",
                             "gemm:jit:f32", "ocl:prefetch:any", ""})
        EXPECT_FALSE(xm_onednn_is_reference(name)) << name;
}

xm_weight
quantised(xm_element element, uint64_t group)
{
    static const uint8_t byte = 0;
    xm_weight w = {};
    w.element = element;
    w.experts = 128;
    w.rows = 768;
    w.cols = 2048;
    w.group = group;
    w.order = XM_SCALE_GROUP_MAJOR;
    w.scale_element = XM_F16;
    w.zero_point_element = element;
    w.zero_point = {&byte, 1};
    return w;
}

TEST(OnednnWeight, IsRefusedByWhatTheDeviceIs)
{
    const struct {
        xm_arch arch;
        bool refused;
    } rows[] = {{XM_ARCH_UNKNOWN, true}, {XM_ARCH_GEN9, true},    {XM_ARCH_XE_LP, true},
                {XM_ARCH_XE_HP, false},  {XM_ARCH_XE_HPG, false}, {XM_ARCH_XE_HPC, false},
                {XM_ARCH_XE2, false},    {XM_ARCH_XE3, false}};
    xm_device_info device = {};
    device.base_align = 128;
    for (const auto &r : rows) {
        SCOPED_TRACE(xm_arch_text(r.arch));
        device.arch = r.arch;
        const xm_weight w = quantised(XM_U4, 128);
        const char *why = xm_onednn_weight_refuses(&device, &w);
        EXPECT_EQ(why != nullptr, r.refused) << why;
        if (r.refused) {
            EXPECT_STREQ(why, "oneDNN's compressed matmul is reference code on xe_lp");
        }
        xm_weight dense = quantised(XM_F16, 0);
        dense.zero_point = {nullptr, 0};
        EXPECT_STREQ(xm_onednn_weight_refuses(&device, &dense), nullptr);
    }
}

TEST(OnednnWeight, IsRefusedByItsFormat)
{
    xm_device_info device = {};
    device.base_align = 128;
    device.arch = XM_ARCH_XE_HPG;
    for (xm_element e : {XM_U4, XM_I4, XM_U8, XM_I8}) {
        const xm_weight w = quantised(e, 128);
        EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w), nullptr);
    }
    xm_weight w = quantised(XM_NF4, 128);
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "oneDNN does not support small floats, codebooks and scales of experts");
    w = quantised(XM_U4, 128);
    w.zero_point_element = XM_F16;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "oneDNN needs zero points of 4 or 8 bits");
    w = quantised(XM_F32, 0);
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "oneDNN multiplies f16 activations with f16 or integer weights");
    w = quantised(XM_U4, 128);
    w.rows = 100;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "the experts' weights are not aligned for oneDNN");
    w.experts = 1;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w), nullptr);
    w.rows = 101;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "oneDNN needs rows of whole bytes");
}

TEST(OnednnWeight, IsTurnedWhereNothingElseKeepsOnednnFromIt)
{
    xm_device_info device = {};
    device.base_align = 128;
    device.arch = XM_ARCH_XE_HPG;
    xm_weight w = quantised(XM_U4, 128);
    EXPECT_FALSE(xm_onednn_weight_can_turn(&device, &w)) << "it is";
    w.order = XM_SCALE_ROW_MAJOR;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "the scales are not in the order that oneDNN needs");
    EXPECT_TRUE(xm_onednn_weight_can_turn(&device, &w));
    device.arch = XM_ARCH_XE_LP;
    EXPECT_FALSE(xm_onednn_weight_can_turn(&device, &w));
    device.arch = XM_ARCH_XE_HPG;
    w.group = w.cols;
    EXPECT_FALSE(xm_onednn_weight_can_turn(&device, &w)) << "one order is as the other";
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w), nullptr);
    w.zero_point_is_scalar = true;
    EXPECT_STREQ(xm_onednn_weight_refuses(&device, &w),
                 "oneDNN needs 8 bits for a zero point of the whole weight");
    EXPECT_TRUE(xm_onednn_weight_can_turn(&device, &w));
}

/* ---- the CPU engine ------------------------------------------------------------------ */

class OnednnOnCpu : public PrimitiveTest
{
  protected:
    void SetUp() override
    {
        PrimitiveTest::SetUp();
        if (IsSkipped())
            return;
        if (dnnl_engine_get_count(dnnl_cpu) == 0)
            GTEST_SKIP() << "this oneDNN has no CPU engine";
        if (!xm_device_has(xm_engine_info(engine), XM_CAP_HOST_VISIBLE))
            GTEST_SKIP() << "the host cannot read the device's memory";
        ASSERT_EQ(dnnl_engine_create(&cpu, dnnl_cpu, 0), dnnl_success);
        ASSERT_EQ(dnnl_stream_create(&stream, cpu, dnnl_stream_default_flags),
                  dnnl_success);
    }
    void TearDown() override
    {
        dnnl_stream_destroy(stream);
        dnnl_engine_destroy(cpu);
        PrimitiveTest::TearDown();
    }

    /* Returns the bytes of values in an element type. */
    static std::vector<uint8_t> packed(const std::vector<float> &values, xm_element e)
    {
        std::vector<uint8_t> bytes(values.size() * xm_element_bits(e) / 8);
        for (size_t i = 0; i < values.size(); i++)
            xm_store_float(e, bytes.data(), i, values[i]);
        return bytes;
    }
    static std::vector<float> unpacked(const std::vector<uint8_t> &bytes, xm_element e)
    {
        std::vector<float> values(bytes.size() * 8 / xm_element_bits(e));
        for (size_t i = 0; i < values.size(); i++)
            values[i] = xm_load_float(e, bytes.data(), i);
        return values;
    }
    static void *host_of(const xm_onednn_span &span)
    {
        return span.buffer ? (char *)xm_buffer_host_ptr(span.buffer) + span.offset
                           : nullptr;
    }

    /* Runs `problem` with each expert of a weight and compares with the formulas. */
    void check(xm_onednn_problem problem, const weight_format &format, uint64_t experts)
    {
        SCOPED_TRACE(text_of(format));
        const uint64_t m = problem.m, n = 24, k = 128;
        test_weight w(experts, n, k, format, 5);
        if (format.group) {
            ASSERT_XM_OK(xm_onednn_weight_turn(engine, w.device, &err));
        }
        const xm_onednn_problem of_weight = xm_onednn_weight_problem(&w.device->host);
        problem.n = of_weight.n;
        problem.k = of_weight.k;
        problem.w = of_weight.w;
        problem.group = of_weight.group;
        problem.scale = of_weight.scale;
        problem.zero_point = of_weight.zero_point;
        problem.one_zero_point = of_weight.one_zero_point;
        dnnl_primitive_desc_t pd = xm_onednn_describe(cpu, &problem);
        ASSERT_NE(pd, nullptr) << "oneDNN does not take the problem";
        dnnl_primitive_t primitive = nullptr;
        ASSERT_EQ(dnnl_primitive_create(&primitive, pd), dnnl_success);
        auto x = packed(random_floats(m * k, 1), problem.x);
        const uint64_t step = problem.times_step ? problem.times_step : n;
        auto times = packed(random_floats(m * step, 2), problem.y);
        auto bias = random_floats(n, 3);
        std::vector<uint8_t> scratchpad(xm_onednn_scratchpad_bytes(pd) + 64);
        for (uint64_t e = 0; e < experts; e++) {
            SCOPED_TRACE("expert " + std::to_string(e));
            std::vector<uint8_t> y(m * n * xm_element_bits(problem.y) / 8, 0xff);
            xm_onednn_spans spans = {};
            xm_onednn_weight_spans(w.device, e, &spans);
            xm_onednn_handles handles = {};
            for (int a : {XM_ONEDNN_W, XM_ONEDNN_SCALE, XM_ONEDNN_ZERO_POINT})
                handles.arg[a].at = host_of(spans.arg[a]);
            handles.arg[XM_ONEDNN_X].at = x.data();
            handles.arg[XM_ONEDNN_TIMES].at = times.data();
            handles.arg[XM_ONEDNN_BIAS].at = bias.data();
            handles.arg[XM_ONEDNN_Y].at = y.data();
            handles.arg[XM_ONEDNN_SCRATCHPAD].at = scratchpad.data();
            ASSERT_EQ(
                xm_onednn_execute(primitive, cpu, stream, &problem, &handles, nullptr),
                dnnl_success);
            ASSERT_EQ(dnnl_stream_wait(stream), dnnl_success);
            std::vector<float> want(m * n);
            ASSERT_EQ(xm_ref_linear(unpacked(x, problem.x).data(), m, &w.host, e,
                                    problem.bias ? bias.data() : nullptr, want.data()),
                      XM_OK);
            auto factor = unpacked(times, problem.y);
            for (size_t i = 0; i < want.size(); i++) {
                if (problem.activated)
                    want[i] =
                        xm_ref_activation(problem.activation, problem.beta, want[i]);
                if (problem.times)
                    want[i] *= factor[i / n * step + i % n];
            }
            EXPECT_TRUE(
                rows_close(unpacked(y, problem.y), want, n, tolerance_type(problem)));
        }
        dnnl_primitive_destroy(primitive);
        dnnl_primitive_desc_destroy(pd);
    }

    /* Weights are converted to bf16 for bf16 activations. */
    static xm_element tolerance_type(const xm_onednn_problem &p)
    {
        return p.x == XM_BF16 ? XM_BF16 : p.y;
    }

    dnnl_engine_t cpu = nullptr;
    dnnl_stream_t stream = nullptr;
};

const weight_format formats[] = {
    {XM_U4, 32, true},
    {XM_U4, UINT64_MAX, true},
    {XM_U4, 64, true, XM_F32, false, true}, /* one zero point for all */
    {XM_U4, 32, true, XM_F16, true},        /* scales already in oneDNN's order */
    {XM_U4, 32, false, XM_BF16},
    {XM_I4, 32, false},
    {XM_I4, 64, true},
    {XM_U8, 64, true},
    {XM_I8, UINT64_MAX, false, XM_F32},
    {XM_I8, 32, true},
};

xm_onednn_problem
problem_of(xm_element x, xm_element y)
{
    xm_onednn_problem p = {};
    p.m = 16;
    p.x = x;
    p.y = y;
    return p;
}

TEST_F(OnednnOnCpu, MultipliesQuantisedWeightsOfEveryFormat)
{
    for (const weight_format &f : formats)
        check(problem_of(XM_F32, XM_F32), f, 1);
}

TEST_F(OnednnOnCpu, FindsTheScalesOfEveryExpert)
{
    for (const weight_format &f : formats)
        check(problem_of(XM_F32, XM_F32), f, 3);
}

TEST_F(OnednnOnCpu, AddsABias)
{
    xm_onednn_problem p = problem_of(XM_F32, XM_F32);
    p.bias = true;
    for (const weight_format &f : formats)
        check(p, f, 1);
}

TEST_F(OnednnOnCpu, AppliesEveryActivation)
{
    xm_onednn_problem p = problem_of(XM_F32, XM_F32);
    p.activated = true;
    p.beta = 1.7f;
    for (int a = 0; a < XM_ACT_COUNT; a++) {
        p.activation = (xm_activation)a;
        check(p, formats[0], 1);
    }
}

TEST_F(OnednnOnCpu, MultipliesByAnotherMatrix)
{
    xm_onednn_problem p = problem_of(XM_F32, XM_F32);
    p.times = true;
    check(p, formats[0], 1);
    check(p, formats[5], 2);
    p.activated = true; /* the activation applies before the product */
    p.beta = 1;
    check(p, formats[0], 1);
    p.times_step = 72; /* three times the columns that are read */
    check(p, formats[0], 1);
}

TEST_F(OnednnOnCpu, TakesHalfPrecisionActivations)
{
    xm_onednn_problem p = problem_of(XM_BF16, XM_BF16);
    if (dnnl_primitive_desc_t pd = [&] {
            xm_onednn_problem probe = p;
            probe.n = probe.k = 64;
            probe.w = XM_BF16;
            return xm_onednn_describe(cpu, &probe);
        }())
        dnnl_primitive_desc_destroy(pd);
    else
        GTEST_SKIP() << "oneDNN has no bf16 on this processor";
    for (const weight_format &f : formats)
        check(p, f, 1);
    p.y = XM_F32;
    p.bias = true;
    check(p, formats[0], 2);
}

TEST_F(OnednnOnCpu, MultipliesDenseWeights)
{
    check(problem_of(XM_F32, XM_F32), {XM_F32, 0, false}, 2);
}

} // namespace
