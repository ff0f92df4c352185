/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole model with oneDNN's GPU engine on Intel's driver in dry mode (docs/onednn.md): where
 * the engine is opened, which problems it gets, and which kernels run if it refuses.
 */
#include "functional_tests/common/cases.h"
#include "functional_tests/dry_run/lean.h"

namespace
{

const char *const model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
const char *const left_alone = "oneDNN's compressed matmul is reference code on xe_lp: "
                               "xemoe's own kernels multiply quantised weights";

class DryOnednn : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
    }

    /* Generates after a prompt of many tokens and returns both outputs. */
    static std::string generate(const char *chip_name, Words settings = {})
    {
        std::string prompt;
        for (int i = 0; i < 60; i++)
            prompt += "the quick brown fox ";
        Settings all = dry(chip(chip_name));
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

/* ---- whole models -------------------------------------------------------------------- */

/* A chip and a model; "": two layers with the sizes of Qwen3-30B-A3B, whose weights are holes in
 * a file. */
using ChipAndModel = std::tuple<const char *, const char *>;

class DryOnednnModels : public testing::TestWithParam<ChipAndModel>
{
  protected:
    void SetUp() override
    {
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
        folder = std::string(XM_MODELS_DIR "/") + std::get<1>(GetParam());
        if (*std::get<1>(GetParam()))
            return;
        folder = made = testing::TempDir() + "xemoe_onednn_" + std::to_string(getpid());
        Outcome o = run(
            {"make-model",         "-o",  made,        "--blank", "--hidden",   "2048",
             "--layers",           "2",   "--experts", "128",     "--top-k",    "8",
             "--moe-intermediate", "768", "--heads",   "32",      "--kv-heads", "4",
             "--head-dim",         "128", "--vocab",   "4096",    "--group",    "32"});
        ASSERT_EQ(o.code, 0) << o.err;
    }
    void TearDown() override
    {
        if (!made.empty())
            std::filesystem::remove_all(made);
    }

    std::string folder, made;
};

/* The first run is the prompt; the token after it may enlarge the KV cache. */
void
expect_one_wait_a_token(const Seen &s)
{
    ASSERT_EQ(s.runs(), static_cast<size_t>(TOKENS));
    for (size_t i = 1; i < s.runs(); i++) {
        EXPECT_EQ(s.run(i, "builds"), 0) << "run " << i;
        if (i == 1)
            continue;
        EXPECT_EQ(s.run(i, "waits"), 1) << "run " << i;
        EXPECT_LE(s.run(i, "flushes"), 4) << "run " << i;
        EXPECT_EQ(s.run(i, "allocations"), 0) << "run " << i;
    }
}

/* The weights are held once, with their scales. If oneDNN may run a step, the plan counts the
 * larger of its rows and our own kernels' scratch. */
void
expect_planned_memory(const Seen &s, const Json &plan)
{
    const double peak = s.said.number("/memory/allocated_peak");
    const double beside = s.said.number("/memory/kv_cache") +
                          s.said.number("/memory/activations") +
                          s.said.number("/memory/scratch");
    EXPECT_EQ(s.counted.number("/memory/total_peak"), peak);
    EXPECT_LE(peak, 1.10 * s.said.number("/memory/weights") + beside + 1048576.0);
    EXPECT_GE(plan.number("/memory/allocated_peak"), peak);
    EXPECT_LE(plan.number("/memory/allocated_peak"), 1.03 * peak + 1048576.0);
    EXPECT_EQ(s.counted.number("/memory/total"), 0) << "not freed";
}

TEST_P(DryOnednnModels, CostWhatWasPlannedAndOneWaitAToken)
{
    const Chip &c = chip(std::get<0>(GetParam()));
    const Seen s = generate(c, folder, "long");
    ASSERT_EQ(s.outcome.code, 0);
    print(c, folder, "long", s);
    expect_calls_succeed(s);
    expect_one_wait_a_token(s);
    Outcome plan = run(
        {"plan", folder, "-c", std::to_string(LONG_PROMPT + TOKENS), "--json"}, dry(c));
    ASSERT_EQ(plan.code, 0) << plan.err;
    expect_planned_memory(s, Json(plan.out));
}

const char *const sparse = "qwen3moe-tiny/ov/int4_asym_g64";
const char *const dense = "gemma4-e-tiny/ov/int4_asym_g64";

/* On Xe-LP, where our own kernels multiply, one of two models. */
std::vector<ChipAndModel>
cases()
{
    std::vector<ChipAndModel> list = {{"dg2", sparse}, {"dg2", dense}, {"dg2", ""}};
    const std::vector<const char *> xe_lp = {"tgllp"}, models = {sparse, ""};
    for (const ChipAndModel &one : dealt(xe_lp, models, 1))
        list.push_back(one);
    return list;
}

INSTANTIATE_TEST_SUITE_P(Chips, DryOnednnModels, testing::ValuesIn(cases()));

/* ---- one model in detail --------------------------------------------------------------- */

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

/* Meteor Lake's facts over the same driver: generated code for compressed weights, no DPAS. */
TEST_F(DryOnednn, CarriesThePromptOfFusedExpertsOnAChipWithoutDpas)
{
    const std::string text = generate("dg2", {"XM_DEVICE_AS=mtl_u"});
    EXPECT_EQ(count(text, opened), 1u);
    EXPECT_GT(count(text, executed), 0u);
    EXPECT_GT(count(text, "linear_long: linear_gemm_onednn_gpu\n"), 0u);
    EXPECT_GT(count(text, "moe_gemm_gate_up: moe_gemm_gate_up_onednn\n"), 0u);
    EXPECT_GT(count(text, "moe_gemm_down: moe_gemm_down_onednn\n"), 0u);
    EXPECT_EQ(count(text, "_dpas\n"), 0u);
}

TEST_F(DryOnednn, IsNotOpenedForADenseModelOnAChipWithoutDpas)
{
    const char *const whole = XM_MODELS_DIR "/gemma4-e-tiny/ov/int4_asym_g64";
    Settings settings = dry(chip("dg2"));
    settings.push_back("XM_DEVICE_AS=mtl_u");
    Outcome o = run({"info", whole, "-v"}, settings);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(
        o.out.find(
            "GPU_USE_ONEDNN = NO: the device has no DPAS and runs no fused MoE layers"),
        std::string::npos)
        << o.out;
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
    EXPECT_EQ(count(text, "xemoe: " + std::string(left_alone)), 1u) << "-v says why";
}

/* Two prompts of different lengths: the second needs nothing that was not compiled for the first.
 */
TEST_F(DryOnednn, CompilesNothingForAnotherLengthOfPrompt)
{
    const std::string stem =
        testing::TempDir() + "xemoe_lengths_" + std::to_string(getpid());
    std::ofstream lines(stem + ".txt");
    for (int words : {12, 40, 150, 600}) {
        for (int i = 0; i < words; i++)
            lines << "fox ";
        lines << '\n';
    }
    lines.close();
    Settings settings = dry(chip("dg2"));
    settings.push_back("OPENCL_LAYERS=" XM_COUNTING_LAYER);
    settings.push_back("XM_OPENCL_COUNT=" + stem + ".json");
    Program chat({"chat", "-m", model, "-n", "2"}, settings, stem + ".txt");
    EXPECT_EQ(chat.finish().code, 0) << chat.errors();
    const Json counted(read_file(stem + ".json"));
    const size_t runs = yyjson_arr_size(counted.at("/runs"));
    double least = 1e9, most = 0;
    bool prompt_was = false;
    for (size_t i = 0; i < runs; i++) {
        const std::string run = "/runs/" + std::to_string(i);
        if (counted.number(run + "/flushes") == 0)
            continue; /* belongs to loading */
        if (prompt_was) {
            EXPECT_EQ(counted.number(run + "/builds"), 0) << "run " << i;
        }
        prompt_was = true;
        least = std::min(least, counted.number(run + "/kernels"));
        most = std::max(most, counted.number(run + "/kernels"));
    }
    EXPECT_GT(most, 2 * least) << "the prompts had no lengths of their own";
    unlink((stem + ".txt").c_str());
    unlink((stem + ".json").c_str());
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
