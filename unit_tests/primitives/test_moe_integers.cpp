/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts whose activations are multiplied as integers: in 8 bits, or in 16.
 */
#include "unit_tests/primitives/moe_fixture.h"

namespace
{

/* Each block format as gate, up (beside another) and down, whole and as a view. The last block of
 * down is half if the format allows it. */
TEST_F(Moe, BlocksOfEveryFormatMeetIntegers)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    setenv("XM_FORCE", "vec", 1);
    for (const weight_format &f : some_blocks()) {
        const uint64_t inter = unit_of(f, 0) == 32 ? 96 : 256;
        problem p = {"f16", 1, 3, 256, inter, 2, beside(f, 256, 1), f};
        p.element = XM_F16;
        p.biased = 7;
        const std::string few_used = check(p);
        EXPECT_NE(few_used.find("moe_gate_up_vnni"), std::string::npos) << few_used;
        EXPECT_NE(few_used.find("moe_down_vnni"), std::string::npos) << few_used;
        /* Experts of few tokens, then of many. */
        p.tokens = 4;
        const std::string some_used = check(p);
        EXPECT_NE(some_used.find("moe_gemm_gate_up_vnni"), std::string::npos)
            << some_used;
        p.tokens = 37;
        const std::string used = check(p);
        EXPECT_NE(used.find("moe_gemm_gate_up_vnni"), std::string::npos) << used;
        EXPECT_NE(used.find("moe_gemm_down_vnni"), std::string::npos) << used;
    }
}

/* Experts of one or two tokens, which read rows of weights one by one; of three or four; and of
 * many; all with 8-bit activations. */
TEST_F(Moe, ExpertsOfFewTokensAndOfManyMeetBytes)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    const std::vector<weight_format> formats = {
        q4_0, q4_k, q6_k, mxfp4, blocks_of(XM_WEIGHT_Q2_K), u4g32, u4g128, i8g32, u8g32};
    const bool has_amx = xm_device_has(xm_engine_info(engine), XM_CAP_AMX);
    for (const weight_format &f : sample::of(formats, 5)) {
        for (uint64_t tokens : {3, 6, 8, 23, 24, 37}) {
            problem p = {"f16", tokens, 4, 256, 256, 2, f, f};
            p.element = XM_F16;
            x_factor = unit_of(f, 256) == 256 ? 128 : 32;
            is_amx = has_amx && tokens * p.top_k >= 12 * p.experts;
            const std::string used = check(p), with = is_amx ? "_amx" : "_bytes";
            for (const char *step : {"moe_gather", "moe_gemm_gate_up", "moe_gemm_down"})
                EXPECT_NE(used.find(step + with), std::string::npos) << used;
        }
    }
}

/* Formats with minimums beside formats with zero points, in one kernel. */
TEST_F(Moe, MultipliersOfTwoKindsMeetBytes)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    x_factor = 128;
    for (xm_weight_format f : {XM_WEIGHT_Q5_K, XM_WEIGHT_Q2_K}) {
        for (uint64_t tokens : {1, 6, 37}) {
            problem p = {"f16", tokens, 4, 256, 256, 2, blocks_of(f), q4_k};
            p.element = XM_F16;
            EXPECT_NE(up_of(p).blocks, p.gate.blocks);
            EXPECT_NE(check(p).find("_bytes"), std::string::npos);
        }
    }
}

/* Up to a fifth as many slots as experts are multiplied one by one; more are sorted by expert. */
TEST_F(Moe, FewTokensEndWhereExpertsAreShared)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    for (uint64_t tokens : {3, 4}) {
        problem p = {"f16", tokens, 16, 256, 256, 1, q4_0, q4_0};
        p.element = XM_F16;
        x_factor = 32;
        const bool is_sorted = check(p).find("moe_sort") != std::string::npos;
        EXPECT_EQ(is_sorted, tokens == 4);
    }
}

/* Formats whose stored integers matrix engines multiply, on the emulated instruction. */
TEST_F(Moe, StoredIntegersMeetBytes)
{
    const weight_format formats[] = {u4g128,
                                     i4g64,
                                     i8g32,
                                     q4_0,
                                     q8_0,
                                     q4_k,
                                     view_of(q4_k),
                                     with_factors(q8_0),
                                     q6_k,
                                     blocks_of(XM_WEIGHT_Q5_0),
                                     blocks_of(XM_WEIGHT_NVFP4),
                                     blocks_of(XM_WEIGHT_IQ4_XS)};
    if (!xm_device_really_has(xm_engine_info(engine),
                              XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE))
        GTEST_SKIP() << "no sub-groups of a required size";
    setenv("XM_FORCE", "moe_gate_up=moe_gate_up_dpas,moe_down=moe_down_dpas", 1);
    optimise(false);
    for (const weight_format &f :
         sample::of<weight_format>({std::begin(formats), std::end(formats)}, 4)) {
        const uint64_t unit = std::max<uint64_t>(unit_of(f, 128), 64);
        problem p = {"f16", 1, 5, 3 * unit, unit, 3, f, f};
        p.element = XM_F16;
        p.biased = 15;
        const std::string used = check(p);
        EXPECT_NE(used.find("moe_gate_up_dpas"), std::string::npos) << used;
        EXPECT_NE(used.find("moe_down_dpas"), std::string::npos) << used;
    }
}

} // namespace
