/* SPDX-License-Identifier: Apache-2.0
 *
 * Which products kernels and oneDNN take, and with which sentences they refuse the others.
 */
#include "primitives/device_weight.h"
#include "primitives/linear/linear_library.h"
#include "primitives/linear/linear_rows.h"
#include "primitives/matrix_engine.h"
#include "primitives/onednn/onednn_weight.h"
#include "unit_tests/primitives/linear_fixture.h"

namespace
{

const weight_format f32 = {XM_F32, 0, false}, u4_groups = {XM_U4, 32, true},
                    u4_one_zero = {XM_U4, 64, true, XM_F32, false, true};

class LinearSupport : public PrimitiveTest
{
};

TEST_F(LinearSupport, RefusesElementTypesWithASentence)
{
    weight_format f = {XM_F32, 0, false};
    test_weight w(1, 8, 64, f, 1);
    xm_weight other = w.host;
    other.element = XM_U2;
    const xm_device_info *info = xm_engine_info(engine);
    EXPECT_EQ(xm_linear_supports(info, &w.host, XM_F32, XM_F16), nullptr);
    EXPECT_NE(xm_linear_supports(info, &other, XM_F32, XM_F32), nullptr);
    EXPECT_NE(xm_linear_supports(info, &w.host, XM_I32, XM_F32), nullptr);
}

bool
has_avx512()
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

/* Which types oneDNN may multiply, whatever the processor has: quantized weights never, dense
 * ones as f32. bf16 only if weights are bf16 and the two bf16 parts of an f16 activation keep its
 * 11 bits; for that oneDNN needs AVX-512 or more. */
TEST_F(LinearSupport, OnednnRoundsNoOperandOnAnyProcessor)
{
    const uint32_t bf16 = XM_CAP_BF16;
    const xm_onednn_operands f32s = {XM_F32, 1}, parts = {XM_BF16, 2},
                             none = {XM_DYNAMIC, 0};
    const struct {
        weight_format weight;
        xm_element src;
        uint32_t caps;
        xm_onednn_operands want; /* none: oneDNN is refused */
    } cases[] = {
        {{XM_F32, 0, false}, XM_F32, 0, f32s},
        {{XM_F32, 0, false}, XM_F16, 0, f32s},
        {{XM_F32, 0, false}, XM_F32, bf16, f32s},
        {{XM_F32, 0, false}, XM_F16, bf16, f32s},
        {{XM_F16, 0, false}, XM_F32, bf16, f32s},
        {{XM_F16, 0, false}, XM_F16, bf16, f32s},
        {{XM_BF16, 0, false}, XM_F16, 0, f32s},
        {{XM_BF16, 0, false}, XM_F32, 0, f32s},
        {{XM_BF16, 0, false}, XM_F32, bf16, f32s},
        {{XM_BF16, 0, false}, XM_F16, bf16, parts},
        {{XM_U4, 32, true}, XM_F16, 0, none},
        {{XM_U4, 32, true}, XM_F16, bf16, none},
        {{XM_I8, 32, false, XM_BF16}, XM_F16, bf16, none},
        {blocks_of(XM_WEIGHT_Q4_K), XM_F16, bf16, none},
        {blocks_of(XM_WEIGHT_Q8_0), XM_F32, bf16, none},
    };
    test_weight dense(1, 64, 2048, f32, 1);
    xm_device_info device = *xm_engine_info(engine);
    if (xm_onednn_linear_refuses(&device, &dense.host, XM_F32))
        GTEST_SKIP() << "this build has no oneDNN CPU engine";
    for (const auto &c : cases) {
        SCOPED_TRACE(text_of(c.weight) + (c.caps ? " with" : " without") +
                     " products of bf16, x of " + xm_element_text(c.src));
        test_weight w(1, 64, 2048, c.weight, 1);
        device.caps = (device.caps & ~bf16) | c.caps;
        const char *why = xm_onednn_linear_refuses(&device, &w.host, c.src);
        EXPECT_EQ(why == nullptr, c.want.parts > 0) << (why ? why : "not refused");
        if (why)
            continue;
        const xm_onednn_operands got = xm_onednn_linear_operands(&device, &w.host, c.src);
        const bool is_left = c.want.parts == 2 && !has_avx512() && got.parts == 1;
        const xm_onednn_operands want = is_left ? f32s : c.want;
        EXPECT_EQ(got.element, want.element);
        EXPECT_EQ(got.parts, want.parts);
    }
}

TEST_F(LinearSupport, SegmentsAreOfOneFormatAndWithoutAddend)
{
    test_weight a(1, 8, 64, u4_groups, 1), b(1, 16, 64, u4_groups, 2),
        wider(1, 8, 128, u4_groups, 3), finer(1, 8, 64, u4_one_zero, 4);
    EXPECT_EQ(xm_linear_cannot_join(&a.host, &b.host), nullptr);
    EXPECT_NE(xm_linear_cannot_join(&a.host, &wider.host), nullptr);
    EXPECT_NE(xm_linear_cannot_join(&a.host, &finer.host), nullptr);
    test_weight q4_k(1, 8, 256, blocks_of(XM_WEIGHT_Q4_K), 5),
        q6_k(1, 8, 256, blocks_of(XM_WEIGHT_Q6_K), 6),
        u4(1, 8, 256, u4_groups, 7); /* kernels read any two block formats */
    EXPECT_EQ(xm_linear_cannot_join(&q4_k.host, &q6_k.host), nullptr);
    EXPECT_NE(xm_linear_cannot_join(&q4_k.host, &u4.host), nullptr);
    xm_linear_desc desc = describe(a, XM_F32, XM_F32);
    desc.n = 2;
    desc.segment[1].weight = wider.device;
    primitive_ptr linear;
    EXPECT_EQ(xm_linear_create(engine, &desc, &linear.p, &err), XM_UNSUPPORTED);
    desc.segment[1].weight = b.device;
    desc.has_addend = true;
    EXPECT_EQ(xm_linear_create(engine, &desc, &linear.p, &err), XM_UNSUPPORTED);
}

/* One launch multiplies by all weights of a product: the variant is refused if it cannot read one
 * of them. */
TEST_F(LinearSupport, EveryWeightOfAProductIsAsked)
{
    test_weight blocks(1, 32, 256, blocks_of(XM_WEIGHT_Q4_K), 1),
        integers(1, 32, 256, {XM_U8, 0, false}, 1);
    for (auto *refuses :
         {xm_product_not_in_planes, xm_product_not_in_words, xm_product_not_in_shorts,
          xm_product_not_in_bytes, xm_product_not_in_steps, xm_product_not_in_shares,
          xm_product_not_in_lanes}) {
        xm_product p = {{{&blocks.host, &blocks.host}, 2}, XM_F16, 32, nullptr};
        EXPECT_EQ(refuses(&p), nullptr) << refuses(&p);
        p.weights.w[1] = &integers.host;
        EXPECT_NE(refuses(&p), nullptr);
    }
}

/* Variants that read bytes in words or in whole groups refuse weights that they cannot read, and
 * say why. */
TEST_F(LinearSupport, RowsRefuseBlocksAndViewsWithASentence)
{
    const weight_format f16 = {XM_F16, 0, false}, u4g64 = {XM_U4, 64, true, XM_F16, true};
    test_weight blocks(1, 8, 512, blocks_of(XM_WEIGHT_Q4_K), 1);
    test_weight odd(1, 8, 512, view_of(f16), 1), groups(1, 8, 512, view_of(u4g64), 1);
    const xm_device_info *info = xm_engine_info(engine);
    EXPECT_EQ(xm_matrix_refuses(&blocks.host, XM_F16), nullptr);
    EXPECT_STREQ(xm_matrix_refuses(&odd.host, XM_F16),
                 "the columns are not a whole number of 32-bit words");
    EXPECT_EQ(xm_matrix_refuses(&groups.host, XM_F16), nullptr);
    EXPECT_EQ(xm_weight_not_in_shorts(&blocks.host, XM_F16), nullptr);
    EXPECT_STREQ(xm_weight_not_in_shorts(&blocks.host, XM_F32),
                 "f32 activations would lose precision as integers");
    EXPECT_STREQ(xm_weight_not_in_words(&odd.host, 1),
                 "the columns are not a whole number of 32-bit words");
    test_weight plain(1, 8, 512, {XM_I8, 0, false}, 1);
    EXPECT_STREQ(xm_weight_not_in_words(&plain.host, 1),
                 "integers without scales are read element by element");
    EXPECT_STREQ(xm_weight_not_in_planes(&plain.host),
                 xm_weight_not_in_words(&plain.host, 1));
    EXPECT_STREQ(xm_onednn_weight_refuses(info, &blocks.host),
                 "oneDNN does not support block formats");
    for (const test_weight *w : {&odd, &groups})
        EXPECT_STREQ(xm_onednn_weight_refuses(info, &w->host),
                     "oneDNN does not support slices of weights");
    for (xm_element src : {XM_F16, XM_F32})
        EXPECT_NE(xm_onednn_linear_refuses(info, &blocks.host, src), nullptr);
}

TEST_F(LinearSupport, GatedUnitsAreOfTwoWeightsOrOneAndAFactor)
{
    test_weight a(1, 8, 64, u4_groups, 1), b(1, 8, 64, u4_groups, 2),
        longer(1, 16, 64, u4_groups, 3);
    const xm_linear_desc unit = [&] {
        xm_linear_desc d = describe(a, XM_F32, XM_F32);
        d.is_glu = true;
        d.slices = 2;
        return d;
    }();
    primitive_ptr linear;
    auto refused = [&](xm_linear_desc d) {
        return xm_linear_create(engine, &d, &linear.p, &err) == XM_UNSUPPORTED;
    };
    xm_linear_desc desc = unit;
    desc.n = 2;
    desc.segment[1].weight = longer.device;
    EXPECT_TRUE(refused(desc));
    desc.n = 3;
    desc.segment[1].weight = desc.segment[2].weight = b.device;
    EXPECT_TRUE(refused(desc));
    desc = unit;
    desc.slice = 2;
    EXPECT_TRUE(refused(desc));
    desc = unit;
    desc.has_addend = true;
    EXPECT_TRUE(refused(desc));

    err = {};
    ASSERT_XM_OK(xm_linear_create(engine, &unit, &linear.p, &err));
    tensor x(XM_F32, {1, 64}), y(XM_F32, {1, 8}), factor(XM_F32, {1, 8});
    const xm_operand operands[XM_LINEAR_N_OPERANDS] = {x.operand(), factor.operand(),
                                                       y.operand()};
    EXPECT_EQ(xm_primitive_run(linear.p, operands, &run, &err), XM_INVALID);
}

TEST_F(LinearSupport, ForcingAnUnknownVariantFails)
{
    force("linear_few", "linear_nothing");
    test_weight w(1, 8, 64, u4_groups, 1);
    const xm_linear_desc desc = describe(w, XM_F32, XM_F32);
    primitive_ptr linear;
    EXPECT_EQ(xm_linear_create(engine, &desc, &linear.p, &err), XM_NOT_FOUND);
}

} // namespace
