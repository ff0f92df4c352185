/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe tune: what it keeps of a model's steps, that later commands take it, and what is refused.
 */
#include <map>
#include <regex>
#include <set>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string gguf =
    std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf";

class Tune : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    Outcome tune(const Words &more = {})
    {
        Words words = {"tune", gguf, "--seconds", "0.0001", "--cache-dir", folder.path};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    Outcome generate(const Words &more = {})
    {
        Words words = {"generate", gguf, "-p",          "hello",
                       "-n",       "8",  "--cache-dir", folder.path};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, {"XM_DEBUG=dispatch"});
    }
    Folder folder{"tune"};
};

TEST_F(Tune, KeepsARowOfEachStepForLaterRuns)
{
    const Outcome before = generate();
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_FALSE(contains(before.err, "(measured)"));
    const Outcome o = tune({"--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    const Json json(o.out);
    std::map<std::string, int> kept;
    std::set<std::string> steps;
    const size_t n = yyjson_arr_size(json.at("/results"));
    for (size_t i = 0; i < n; i++) {
        const std::string at = "/results/" + std::to_string(i);
        EXPECT_GT(json.number(at + "/seconds"), 0);
        kept[json.text(at + "/problem")] += yyjson_get_bool(json.at(at + "/kept"));
        steps.insert(json.text(at + "/step"));
    }
    for (const auto &[problem, times] : kept)
        EXPECT_EQ(times, 1) << problem;
    const std::set<std::string> all = {
        "attention_decode", "attention_prompt", "linear_few",       "linear_long",
        "linear_many",      "moe_down",         "moe_gemm_gate_up", "moe_gate_up"};
    EXPECT_EQ(steps, all);
    const Outcome after = generate();
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(after.out, before.out) << "greedy texts do not change";
    for (const std::string &step : all)
        EXPECT_TRUE(std::regex_search(after.err,
                                      std::regex(step + ": [a-z0-9_]+ \\(measured\\)")))
            << step;
    EXPECT_FALSE(contains(generate({"--no-tune"}).err, "(measured)"));
}

TEST_F(Tune, RefusesDryRuns)
{
    const Outcome o = run({"tune", gguf, "--cache-dir", folder.path}, {"XM_DRY_RUN=1"});
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_TRUE(contains(o.err, "times mean nothing")) << o.err;
    EXPECT_EQ(o.out, "");
}

class TuneMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(TuneMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"tune"});
}

const Mistake mistakes[] = {
    {"NoModel", {}, 2, "MODEL is missing"},
    {"Absent", {"absent.gguf"}, 3, "absent.gguf"},
    {"NoTime", {gguf, "--seconds", "0"}, 2, "option --seconds takes a number above 0"},
    {"TooMuchTime", {gguf, "--seconds", "1e9"}, 2, "at most 3600"},
    {"Type", {gguf, "--kv", "u3"}, 2, "--kv"},
    {"Device", {gguf, "-d", "GPU.99"}, 4, "GPU.99"},
    {"Folder", {gguf, "--cache-dir", "/proc/none"}, 3, "option --cache-dir"},
};
INSTANTIATE_TEST_SUITE_P(CommandLine, TuneMistakes, testing::ValuesIn(mistakes),
                         mistake_name);

} // namespace
