/* SPDX-License-Identifier: Apache-2.0
 *
 * Models on Intel's GPU driver, run dry: two kinds of models on one chip, one kind on each of
 * three others; --all runs all combinations.
 */
#include "functional_tests/common/cases.h"
#include "functional_tests/dry_run/lean.h"

namespace
{

/* clang-format off */
const std::vector<Kind> kinds = {
    {"qwen3moe-tiny/ov/int4_asym_g64",     2, 2 * A_LAYER + OUTSIDE_LAYERS, 3, true},
    {"qwen3moe-tiny/ov/int4_sym_g64",      2, 2 * A_LAYER + OUTSIDE_LAYERS, 3, true},
    {"qwen3moe-tiny/ov/int8_asym",         2, 2 * A_LAYER + OUTSIDE_LAYERS, 3, true},
    {"qwen3moe-tiny/ov/int4_asym_g128_r1", 2, 2 * A_LAYER + OUTSIDE_LAYERS, 3, true},
    {"gemma4-moe-tiny/ov/int4_asym_g32",   6, 76, 3, true},
    {"gpt-oss-tiny/ov/int4_sym_g64",       4, 4 * A_LAYER + OUTSIDE_LAYERS, 3, true},
    {"gemma4-e-tiny/ov/int4_asym_g64",     6, 81, 0, false},
};
/* clang-format on */

using Case = std::tuple<const char *, Kind>;

class DryRun : public testing::TestWithParam<Case>
{
};

TEST_P(DryRun, TokensAreLean)
{
    const Chip &c = chip(std::get<0>(GetParam()));
    const Kind &kind = std::get<1>(GetParam());
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    expect_chip(c);
    expect_lean(c, kind, std::string(XM_MODELS_DIR "/") + kind.name);
}

/* The next run of four texts and the choice of its tokens are enqueued before the host waits for
 * the last tokens. So there is one more choice before the first such wait. */
TEST(DryRunTexts, ThatRunTogetherAreAsLeanAsOne)
{
    constexpr int WARM_UP = 1; /* choices */
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const Chip &c = chip("dg2");
    const Kind &kind = kinds[0];
    expect_chip(c);
    for (const char *temperature : {"0", "0.8"}) {
        SCOPED_TRACE(temperature);
        Seen s = generate(c, std::string(XM_MODELS_DIR "/") + kind.name, "short",
                          {"--parallel", "4", "--temp", temperature, "--top-p", "0.9"});
        print(c, kind.name, "texts", s);
        expect_calls_succeed(s);
        ASSERT_EQ(s.runs(), (size_t)TOKENS);
        EXPECT_LE(s.run(2, "kernels"), kind.kernels + A_CHOICE);
        for (size_t i = 3; i < s.runs(); i++) {
            SCOPED_TRACE("token " + std::to_string(i));
            EXPECT_EQ(s.run(i, "kernels") + A_CHOICE, s.run(2, "kernels"));
            EXPECT_EQ(s.run(i, "waits"), 1);
            EXPECT_EQ(s.run(i, "events"), 1);
            EXPECT_LE(s.run(i, "flushes"), 4);
            for (const char *none : {"builds", "allocations", "frees"})
                EXPECT_EQ(s.run(i, none), 0) << none;
        }
        EXPECT_EQ(s.run(TOKENS - 1, "objects"), 0);
        EXPECT_LT(s.run(TOKENS - 1, "arguments"), 0.02 * s.run(2, "arguments"));
        EXPECT_EQ(s.counted.number("/names/choose_take_gen"), TOKENS - 2 + WARM_UP);
    }
}

/* Routing, lookup and fetch are three more kernels a layer; waits and reads stay the same. */
TEST(DryRunExperts, ACacheOfThemKeepsTokensLean)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const Chip &c = chip("dg2");
    Kind kind = kinds[0];
    kind.kernels += 3 * kind.layers;
    expect_chip(c);
    Seen s = generate(c, std::string(XM_MODELS_DIR "/") + kind.name, "long",
                      {"--offload", "100", "--expert-cache", "2"});
    ASSERT_EQ(s.runs(), static_cast<size_t>(TOKENS));
    print(c, kind.name, "cached", s);
    expect_clean_calls(s);
    expect_lean_tokens(s, kind, "long");
    EXPECT_GT(s.said.number("/memory/host_weights"), 3e6);
    EXPECT_GT(s.said.number("/memory/expert_cache"), 1e6);
    EXPECT_LE(s.said.number("/memory/expert_cache"), 2 * 1048576.0);
    EXPECT_GT(s.said.number("/expert_cache/slots"), 8);
    EXPECT_EQ(s.said.number("/expert_cache/hits"), 0) << "nothing was computed";
    for (const char *name : {"moe_cache_lookup_gen", "moe_cache_fetch_gen"})
        EXPECT_EQ(s.counted.number(std::string("/names/") + name),
                  kind.layers * (TOKENS - 1));
    EXPECT_EQ(s.counted.number("/memory/total_peak"),
              s.said.number("/memory/allocated_peak"));
    EXPECT_EQ(s.counted.number("/memory/total"), 0) << "not freed";
}

/* Caches of fewer bits with sub-group kernels: they build, and need no more launches. */
class DryCaches : public testing::TestWithParam<const char *>
{
};

TEST_P(DryCaches, OfFourBitsKeepTokensLean)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const Chip &c = chip(GetParam());
    const Kind &kind = kinds[5];
    const std::string model = std::string(XM_MODELS_DIR "/") + kind.name;
    expect_chip(c);
    double f16 = 0;
    for (const auto &[k, v, share] : {std::tuple{"f16", "f16", 1.0},
                                      {"q4_0", "q4_0", 18.0 / 64.0},
                                      {"f16", "q4_0", 0.5 + 9.0 / 64.0}}) {
        SCOPED_TRACE(std::string(k) + " " + v);
        Seen s = generate(c, model, "long", {"-ctk", k, "-ctv", v});
        expect_clean_calls(s);
        expect_lean_tokens(s, kind, "long");
        EXPECT_EQ(s.outcome.err.find("does not build"), std::string::npos)
            << s.outcome.err;
        for (const std::string step :
             {"attention_inputs", "attention_decode", "attention_prompt"})
            EXPECT_GT(s.counted.number("/names/" + step + "_sg") +
                          s.counted.number("/names/" + step + "_dpas"),
                      0)
                << step;
        const double bytes = s.said.number("/memory/kv_cache");
        f16 = share == 1.0 ? bytes : f16;
        EXPECT_EQ(bytes, share * f16);
    }
}
const std::vector<const char *> of_sub_groups = {"tgllp", "dg2", "pvc"};
INSTANTIATE_TEST_SUITE_P(Chips, DryCaches, testing::ValuesIn(some(of_sub_groups, 1)));

std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    std::string name =
        std::get<0>(info.param) + std::string("_") + std::get<1>(info.param).name;
    for (char &letter : name) {
        if (!isalnum(letter))
            letter = '_';
    }
    return name;
}

/* A model of each family. Chips that only 22.43 supports run two of them. */
const std::vector<Kind> families = {kinds[0], kinds[4], kinds[5], kinds[6]};
const std::vector<Kind> two = {kinds[0], kinds[5]};

std::vector<Case>
cases()
{
    using Chips = std::vector<const char *>;
    const bool is_current = is_current_driver();
    const Chips first = {is_current ? "lnl" : "tgllp"};
    const Chips others =
        is_current ? Chips{"tgllp", "mtl", "dg2", "arl", "bmg", "ptl", "pvc", "nvl-u"}
                   : Chips{"skl", "icllp", "dg1", "dg2", "pvc"};
    std::vector<Case> list = dealt(first, is_current ? families : kinds, 2);
    for (const Case &other : dealt(some(others, 3), is_current ? families : two, 1))
        list.push_back(other);
    return list;
}

INSTANTIATE_TEST_SUITE_P(Chips, DryRun, testing::ValuesIn(cases()), case_name);

const char *const left_alone = "oneDNN's compressed matmul is reference code on xe_lp: "
                               "xemoe's own kernels multiply quantised weights";

/* If the program was built without oneDNN's GPU engine, this is the reason. */
TEST(DryRules, SayWhyOnednnLeavesQuantisedWeightsAlone)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    Outcome o = run({"info", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64", "-v"},
                    dry(chip("tgllp")));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(o.out.find(left_alone) != std::string::npos ||
                o.out.find("this build has no oneDNN GPU engine") != std::string::npos)
        << o.out;
    o = run({"info", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64", "-v"},
            dry(chip("dg2")));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.find(left_alone), std::string::npos);
}

/* Another process builds no kernel. On another chip the error names the chip of the file. */
TEST(DryCompile, KeepsTheDriversBinariesForOneChip)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const std::string blob =
        testing::TempDir() + "xemoe_dry_" + std::to_string(getpid()) + ".xmblob";
    const Settings settings = dry(chip("tgllp"));
    Outcome o = run({"compile", std::string(XM_MODELS_DIR "/") + kinds[0].name, "-o",
                     blob, "--cache-dir", "none"},
                    settings);
    ASSERT_EQ(o.code, 0) << o.err;
    const Words words = {"generate", "-m",           blob, "--ids",       "1,2,3", "-n",
                         "2",        "--ignore-eos", "-v", "--cache-dir", "none"};
    o = run(words, settings);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.err.find("kernels: 0 built, "), std::string::npos) << o.err;
    o = run(words, dry(chip("dg1")));
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_NE(o.err.find("the model was compiled for device "), std::string::npos)
        << o.err;
    std::filesystem::remove(blob);
}

} // namespace
