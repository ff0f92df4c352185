// SPDX-License-Identifier: Apache-2.0
// Memory of a process that loads and runs a model of 0.25 GB: at most its weights, 10 % of them
// and 64 MiB more than the same program with a small model, which has the same kernels. And the
// predictions of 'xemoe plan'.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "functional_tests/common/cases.h"
#include "functional_tests/common/prediction.h"

namespace
{

constexpr double SLACK_MIB = 64.0;
const Words big = {"--experts", "64", "--moe-intermediate", "640"};
const Words small = {"--experts", "8", "--moe-intermediate", "128"};
/* Settings with the rules of a GPU that has memory of its own: weights are copied. */
const Words copying = {"XM_DEVICE_AS=dg2", "XM_FORCE=vec"};
const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

struct Memory {
    double weights, loaded, peak; /* MiB */
};

/* A model in the test's temporary folder, removed with the object. */
class SyntheticModel
{
  public:
    SyntheticModel(const Words &dimensions, const std::string &name)
        : folder(testing::TempDir() + "xemoe_memory_" + std::to_string(getpid()) + name)
    {
        Words words = {"make-model", "-o",         folder,      "--hidden",   "1024",
                       "--layers",   "4",          "--top-k",   "8",          "--heads",
                       "8",          "--kv-heads", "2",         "--head-dim", "128",
                       "--vocab",    "1000",       "--weights", "u4",         "--group",
                       "128"};
        words.insert(words.end(), dimensions.begin(), dimensions.end());
        Outcome made = run(words);
        EXPECT_EQ(made.code, 0) << made.err;
    }
    ~SyntheticModel()
    {
        std::filesystem::remove_all(folder);
    }

    /* Measures a run that builds no kernels, because compilers take memory; runs again if the
     * first run built some. */
    Memory measure(const Words &settings) const
    {
        Json j = generate_json(folder, 100, 4, {}, settings);
        if (j.number("/kernels_built") + j.number("/launches_built") > 0)
            j = generate_json(folder, 100, 4, {}, settings);
        return {j.number("/memory/weights") / 1048576.0,
                j.number("/memory/peak_rss_after_load_mb"),
                j.number("/memory/peak_rss_mb")};
    }

    const std::string folder;
};

TEST(Weights, LieWhereTheOptionSays)
{
    const auto allocated = [](const char *command, const char *way) {
        Words words = {command, tiny, "--weights", way, "--json"};
        if (command == std::string("generate"))
            words.insert(words.end(), {"-p", "Paris", "-n", "1"});
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 0) << o.err;
        const Json j(o.out);
        return j.number("/memory/allocated") / j.number("/memory/weights");
    };
    for (const char *command : {"generate", "plan"})
        EXPECT_GE(allocated(command, "copy"), 1.0) << command;
    EXPECT_LT(allocated("generate", "map"), 0.5);
    EXPECT_EQ(allocated("generate", "auto"), allocated("generate", "map"))
        << "a processor";
}

/* This holds also if the device has a copy of the weights: pages of the file are released once
 * they are copied. */
TEST(Memory, PeakIsTheWeightsAndLittleMore)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const SyntheticModel small_one(small, "small"), big_one(big, "big");
    for (const Words &settings : some(std::vector<Words>{{}, copying}, 1)) {
        const Memory less = small_one.measure(settings);
        const Memory more = big_one.measure(settings);
        ASSERT_GT(less.loaded, 0.0);
        ASSERT_GT(more.weights, 250.0);
        double base = less.peak - less.weights;
        double most = base + more.weights * 1.1 + SLACK_MIB;
        printf("base %.0f MiB, weights %.0f MiB: loaded with %.0f MiB, peak %.0f MiB, at "
               "most %.0f MiB\n",
               base, more.weights, more.loaded, more.peak, most);
        EXPECT_LE(more.loaded, most);
        EXPECT_LE(more.peak, most);
    }
}

TEST(Plan, SaysWhatGenerateTakes)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const std::vector<std::string> models = {
        XM_MODELS_DIR "/gemma4-moe-tiny/ov/int4_asym_g32",
        XM_MODELS_DIR "/gpt-oss-tiny/ov/int4_sym_g64", tiny};
    const std::vector<int> contexts = {100, 700};
    for (const auto &[model, context] : dealt(some(models, 2), contexts, 1))
        expect_prediction(model, context);
    struct Run {
        int context;
        Words options, settings;
    };
    const std::vector<Run> runs = {
        {300, {"--ubatch", "64"}, {}},
        {100, {"--kv", "i8"}, {}},
        {100, {"-ctk", "f16", "-ctv", "q4_0"}, {}},
        {100, {"--offload", "50"}, copying},
        {100, {"--offload", "100", "--expert-cache", "2"}, copying}};
    for (const Run &r : some(runs, 2))
        expect_prediction(tiny, r.context, r.options, r.settings);
    const SyntheticModel synthetic(small, "small");
    expect_prediction(synthetic.folder, 150, {});
}

/* One layer of a model of 30B and a prompt of eight chunks: of 4096 tokens with XM_TEST_ALL=1,
 * else of 128, with fewer experts and a smaller vocabulary. */
TEST(Plan, SaysWhatALongPromptTakes)
{
    const bool is_whole = test_all();
    const int chunk = is_whole ? 4096 : 128, positions = 8 * chunk;
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const std::string file =
        testing::TempDir() + "xemoe_long_" + std::to_string(getpid()) + ".gguf";
    Words make = {"make-model", "-o", file, "--arch", "qwen3-30b-a3b", "--layers", "1"};
    if (!is_whole)
        make.insert(make.end(), {"--experts", "16", "--vocab", "1024"});
    const Outcome made = run(make);
    ASSERT_EQ(made.code, 0) << made.err;
    const Words options = {"--ubatch", std::to_string(chunk)};
    Words words = {"plan", file, "-c", std::to_string(positions), "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const Json plan(run(words).out),
        real = generate_json(file, positions - 1, 2, options);
    std::filesystem::remove(file);
    const double said = plan.number("/memory/allocated_peak"),
                 is = real.number("/memory/allocated_peak");
    printf("%d positions: %.1f MiB planned, %.1f MiB taken, %.0f MiB resident\n",
           positions, said / 1048576.0, is / 1048576.0,
           real.number("/memory/peak_rss_mb"));
    EXPECT_GT(is, 0.0);
    EXPECT_NEAR(said, is, 0.10 * is);
}

/* layers x heads x (d + dv) x bytes for each position that is kept, in whole pages of 32. */
class PlannedCache : public testing::TestWithParam<const char *>
{
};

/* Returns the bytes of an element with its share of the scales: i8 has a scale of 4 bytes for 64
 * elements, u4 one of 2 bytes for 32. */
double
bytes_of(const std::string &cache)
{
    return cache == "f16" ? 2.0 : cache == "i8" ? 1.0 + 4.0 / 64.0 : 18.0 / 32.0;
}

TEST_P(PlannedCache, SaysWhatEachGroupOfLayersKeeps)
{
    const std::string model = XM_MODELS_DIR "/gpt-oss-tiny/ov/int4_sym_g64";
    const double position = 2 * 2 * (64 + 64) * bytes_of(GetParam()); /* of two layers */
    const double window = 32, chunk = 512, page = 32;
    const double kept = page * (std::floor((window + chunk + page - 2) / page) + 1);
    for (double context : {200000.0, 100.0}) {
        Words words = {"plan",        model,
                       "--device-as", "bmg",
                       "--kv",        GetParam(),
                       "--memory",    "10000",
                       "-c",          std::to_string(static_cast<int>(context))};
        Outcome text = run(words);
        words.push_back("--json");
        Outcome o = run(words);
        ASSERT_EQ(o.code, 0) << o.err;
        Json plan(o.out);
        const double all = page * std::ceil(context / page), some = std::min(all, kept);
        ASSERT_EQ(yyjson_arr_size(plan.at("/kv_groups")), 2u) << o.out;
        for (const auto &[group, sees, positions] :
             {std::tuple{"/kv_groups/0", window, some}, {"/kv_groups/1", 0.0, all}}) {
            const std::string g = group;
            EXPECT_EQ(plan.number(g + "/window"), sees);
            EXPECT_EQ(plan.number(g + "/layers"), 2.0);
            EXPECT_EQ(plan.number(g + "/positions"), positions);
            EXPECT_EQ(plan.number(g + "/sequence_bytes"), position * positions);
            const std::string line = std::to_string(static_cast<int>(positions));
            EXPECT_NE(text.out.find("2 layers, " + line + " positions"),
                      std::string::npos)
                << text.out;
        }
        EXPECT_EQ(plan.number("/memory/kv_cache"), position * (some + all));
        EXPECT_EQ(plan.text("/kv_cache"), GetParam());
    }
}
INSTANTIATE_TEST_SUITE_P(Types, PlannedCache, testing::Values("f16", "i8", "u4"));

TEST(Plan, NamesTheTypesOfKeysAndValues)
{
    const Words words = {"plan", tiny, "--device-as", "bmg", "-c", "100"};
    for (const auto &[options, types] : std::vector<std::pair<Words, std::string>>{
             {{"--cache-type-k", "q8_0"}, "i8 and f16"},
             {{"-ctk", "f16", "-ctv", "q4_0"}, "f16 and u4"},
             {{"--kv", "q4_0", "-ctv", "f32"}, "u4 and f32"},
             {{"-ctk", "q4_0", "-ctv", "u4"}, "u4"}}) {
        Words all = words;
        all.insert(all.end(), options.begin(), options.end());
        Outcome o = run(all);
        ASSERT_EQ(o.code, 0) << o.err;
        EXPECT_NE(o.out.find("KV cache " + types + ","), std::string::npos) << o.out;
    }
    Outcome wrong = run({"plan", tiny, "-ctv", "q4_1"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("option -ctv"), std::string::npos) << wrong.err;
}

TEST(Plan, TakesNoMoreForTheCacheThanItMay)
{
    Words words = {"plan", tiny,   "--device-as", "bmg", "--memory",    "10000",
                   "-c",   "2000", "--kv",        "f16", "--kv-memory", "64"};
    EXPECT_EQ(run(words).code, 0);
    words.back() = "1";
    Outcome o = run(words);
    EXPECT_EQ(o.code, 4);
    EXPECT_NE(o.err.find("the KV cache is full"), std::string::npos) << o.err;
}

/* For a chip that is not present; the advice is checked. */
TEST(Plan, SaysWhatToChange)
{
    Words words = {"plan", tiny, "-c", "20000", "--device-as", "bmg", "--memory", "24"};
    Outcome o = run(words);
    ASSERT_EQ(o.code, 4) << o.err;
    EXPECT_NE(o.err.find("xemoe: the model does not fit on bmg"), std::string::npos)
        << o.err;
    EXPECT_NE(o.out.find("it does not fit"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("it would fit with --context"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("MiB of the device's memory"), std::string::npos) << o.out;
    words.push_back("--json");
    Json plan(run(words).out);
    EXPECT_EQ(plan.text("/advice/0/option"), "--context");
    EXPECT_GT(plan.number("/needed"), 24.0 * 1048576.0);
    words[3] = plan.text("/advice/0/value");
    Outcome fits = run(words);
    EXPECT_EQ(fits.code, 0) << fits.err;
    Json less(fits.out);
    EXPECT_TRUE(yyjson_is_true(less.at("/fits")));
    EXPECT_EQ(less.number("/missing"), 0.0);
    Outcome endless = run({"plan", tiny, "--device-as", "bmg", "-c", "100000000"});
    EXPECT_EQ(endless.code, 2);
    EXPECT_NE(endless.err.find("option --context"), std::string::npos) << endless.err;
    EXPECT_EQ(run({"plan", tiny, "--kv", "i5"}).code, 2);
}

/* "needed" refers to the memory that the plan is compared with. */
TEST(Plan, CountsExpertsOnTheHostApart)
{
    Outcome o = run({"plan", tiny, "--device-as", "bmg", "--memory", "13", "--offload",
                     "100", "-c", "4096"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("it fits"), std::string::npos) << o.out;
    size_t at = o.out.find("needed");
    ASSERT_NE(at, std::string::npos) << o.out;
    EXPECT_LE(std::stod(o.out.substr(at + 6)), 13.0) << o.out;
    Words words = {"plan", tiny, "--device-as", "bmg", "--memory", "13", "-c", "4096"};
    const char *by_itself = "without --offload, generate leaves";
    EXPECT_NE(run(words).out.find(by_itself), std::string::npos) << run(words).out;
    words.insert(words.end(), {"--offload", "0"});
    EXPECT_EQ(run(words).out.find(by_itself), std::string::npos);
}

/* A CPU device reads weights in the mapped file: they count, and what does not fit is reported. */
TEST(Plan, WantsRoomForMappedWeights)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Words words = {"plan", tiny, "-c", "100", "--memory", "100", "--json"};
    Json all(run(words).out);
    if (all.number("/memory/mapped_weights") == 0.0)
        GTEST_SKIP() << "the device copies weights";
    EXPECT_GT(all.number("/needed"), all.number("/memory/mapped_weights") +
                                         all.number("/memory/allocated_peak") - 1.0);
    words[5] = std::to_string((int)(all.number("/needed") / 1048576.0) - 1);
    Outcome o = run(words);
    EXPECT_EQ(o.code, 4) << o.err;
    EXPECT_TRUE(yyjson_is_false(Json(o.out).at("/fits")));
    words[5] = "4";
    EXPECT_GT(Json(run(words).out).number("/disk_per_token"), 0.0);
    words.pop_back();
    o = run(words);
    EXPECT_NE(o.out.find("read from the disk again and again"), std::string::npos)
        << o.out;
    EXPECT_NE(o.err.find("does not fit"), std::string::npos) << o.err;
}

/* config.json says 2048. */
TEST(Plan, WarnsOfAContextThatTheModelWasNotTrainedFor)
{
    const char *warning = "exceeds the 2048 for which the model was trained";
    Words words = {"plan", tiny, "--device-as", "bmg", "--memory", "10000"};
    Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("context 2048, "), std::string::npos) << o.out;
    EXPECT_EQ(o.out.find(warning), std::string::npos) << o.out;
    words.insert(words.end(), {"-c", "1000"});
    EXPECT_NE(run(words).out.find(
                  "a context of 2048, the largest for which the model was trained"),
              std::string::npos);
    words.back() = "100000";
    o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find(warning), std::string::npos) << o.out;
    EXPECT_EQ(o.out.find("so does a context"), std::string::npos) << o.out;
    words.push_back("--json");
    EXPECT_EQ(Json(run(words).out).number("/trained_context"), 2048.0);
}

/* A buffer larger than any device allocates: no figures, an error text and the same exit code. */
TEST(Plan, CannotEvenCountSomeContexts)
{
    Outcome o =
        run({"plan", tiny, "--device-as", "bmg", "-c", "1000000", "--memory", "100000"},
            {"XM_SKIP=SDPAToPagedAttention"});
    EXPECT_EQ(o.code, 4) << o.out;
    EXPECT_NE(o.err.find("does not fit: a value of"), std::string::npos) << o.err;
}

/* Unfused attention has a buffer that grows with the context, beyond what the device can allocate
 * at once. */
TEST(Plan, FindsTheLargestContextBelowTheLargestBuffer)
{
    Outcome o =
        run({"plan", tiny, "--device-as", "bmg", "--memory", "100000", "-c", "100"},
            {"XM_SKIP=SDPAToPagedAttention"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("it fits; so does a context of"), std::string::npos) << o.out;
}

TEST(Cache, OfBytesHardlyChangesThePerplexity)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    auto perplexity = [](const char *kv) {
        const std::string rows = XM_MODELS_DIR "/qwen3moe-tiny/golden/ppl_tokens.npy";
        Outcome o = run({"perplexity", "-m", tiny, "--by-row", "--ids", "@" + rows,
                         "--rows", "10", "--kv", kv, "--json"});
        EXPECT_EQ(o.code, 0) << o.err;
        return Json(o.out).number("/ppl");
    };
    double f16 = perplexity("f16"), i8 = perplexity("i8");
    EXPECT_GT(f16, 1.0);
    EXPECT_NE(i8, f16) << "the property has no effect";
    EXPECT_NEAR(i8, f16, 0.01 * f16);
}

} // namespace
