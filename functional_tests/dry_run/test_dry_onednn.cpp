/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole model through oneDNN's GPU engine on Intel's driver in dry mode (docs/onednn.md):
 * where it is opened, what it is given, and who serves where it refuses.
 */
#include "functional_tests/dry_run/dry_run.h"

namespace
{

const char *const model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

class DryOnednn : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!XM_ONEDNN_HAS_GPU)
            GTEST_SKIP() << "built without oneDNN's GPU engine";
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
    }

    /* Generates after a prompt of many tokens; both outputs. */
    static std::string generate(const char *chip_name, Words settings = {})
    {
        std::string prompt;
        for (int i = 0; i < 60; i++)
            prompt += "the quick brown fox ";
        Words all = dry(chip(chip_name));
        all.push_back("XM_DEBUG=dispatch");
        all.push_back("ONEDNN_VERBOSE=profile_exec");
        all.insert(all.end(), settings.begin(), settings.end());
        Outcome o = run({"generate", "-m", model, "-p", prompt, "-n", "2", "-v"}, all);
        EXPECT_EQ(o.code, 0) << o.err;
        return o.out + o.err;
    }
    static size_t count(const std::string &text, const std::string &what)
    {
        size_t n = 0;
        for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at++)
            n++;
        return n;
    }
};

const char *const opened = ": GPU engine on ";
const char *const executed = "exec,gpu,matmul";

TEST_F(DryOnednn, CarriesThePromptWhereItMultipliesCompressedWeights)
{
    const std::string text = generate("dg2");
    EXPECT_EQ(count(text, opened), 1u);
    EXPECT_GT(count(text, executed), 0u);
    EXPECT_GT(count(text, "linear_long: linear_gemm_onednn_gpu\n"), 0u);
    EXPECT_GT(count(text, "moe_gather: moe_gather_rows_ref\n"), 0u);
    EXPECT_GT(count(text, "moe_gemm_gate_up: moe_gemm_gate_up_onednn\n"), 0u);
    EXPECT_GT(count(text, "moe_gemm_down: moe_gemm_down_onednn\n"), 0u);
}

TEST_F(DryOnednn, IsOpenOnXeLpAndLeavesCompressedWeightsToOurKernels)
{
    const std::string text = generate("tgllp");
    EXPECT_EQ(count(text, opened), 1u);
    EXPECT_EQ(count(text, executed), 0u);
    EXPECT_GT(count(text,
                    "moe_gemm_gate_up_onednn refused: oneDNN's compressed matmul is "
                    "reference code on xe_lp"),
              0u);
    EXPECT_GT(count(text, "moe_gemm_gate_up: moe_gemm_gate_up_sg\n"), 0u);
}

TEST_F(DryOnednn, IsNotOpenedBeforeXeLp)
{
    const std::string text = generate("icllp");
    EXPECT_EQ(count(text, opened), 0u);
    EXPECT_EQ(count(text, executed), 0u);
}

TEST_F(DryOnednn, GivesWayToAForcedFamily)
{
    const std::string text = generate("dg2", {"XM_FORCE=sg"});
    EXPECT_EQ(count(text, opened), 1u);
    EXPECT_EQ(count(text, executed), 0u);
}

} // namespace
