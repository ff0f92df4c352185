/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe bench: the tests that run, their output, and llama-bench's options.
 */
#include <algorithm>

#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;
static const std::string model = models + "/qwen3moe-tiny/ov/int4_asym_g64";

static Words
bench(const Words &more)
{
    Words words = {"bench", "-m", model, "-d", "0", "-r", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

class Bench : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static Json run_json(const Words &more)
    {
        Words words = {"bench", "-r", "2", "-o", "json"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.err, "");
        return Json(o.out);
    }
};

/* Returns "pp, tg @ depth" of each test, in order. */
static std::vector<std::string>
tests_of(const Json &json, size_t n)
{
    std::vector<std::string> list;
    for (size_t i = 0; i < n; i++) {
        const std::string at = "/" + std::to_string(i) + "/";
        std::ostringstream text;
        text << json.number(at + "n_prompt") << "," << json.number(at + "n_gen") << "@"
             << json.number(at + "n_depth") << " b" << json.number(at + "n_batch")
             << " ub" << json.number(at + "n_ubatch") << " " << json.text(at + "type_k");
        list.push_back(text.str());
    }
    return list;
}

TEST_F(Bench, RunsEveryCombinationInLlamaBenchsOrder)
{
    const Json json = run_json({"-m", model, "-p", "0,4-8*2", "-n", "2", "-pg", "8,2",
                                "-d", "0,16", "-ub", "4,512", "-b", "8"});
    std::vector<std::string> expected;
    for (const char *ub : {"4", "512"})
        for (const char *depth : {"0", "16"})
            for (const char *test : {"4,0", "8,0", "0,2", "8,2"})
                expected.push_back(std::string(test) + "@" + depth + " b8 ub" + ub + " " +
                                   json.text("/0/type_k"));
    ASSERT_EQ(yyjson_arr_size(json.at("")), expected.size());
    EXPECT_EQ(tests_of(json, expected.size()), expected);
    for (size_t i = 0; i < expected.size(); i++) {
        const std::string at = "/" + std::to_string(i) + "/";
        const double tokens = json.number(at + "n_prompt") + json.number(at + "n_gen");
        ASSERT_EQ(yyjson_arr_size(json.at(at + "samples_ns")), 2u);
        const double a = json.number(at + "samples_ns/0"),
                     b = json.number(at + "samples_ns/1");
        EXPECT_GT(a, 0);
        EXPECT_NEAR(json.number(at + "avg_ns"), (a + b) / 2, 1);
        EXPECT_NEAR(json.number(at + "avg_ts"), tokens * 5e8 * (1 / a + 1 / b), 1e-3);
    }
}

TEST_F(Bench, SaysWhatItRan)
{
    const Json json = run_json({"-m", model, "-p", "4", "-n", "0", "-ctk", "f16,q4_0,u8",
                                "-ctv", "q8_0", "-dev", "GPU"});
    EXPECT_EQ(json.text("/0/model_filename"), model);
    EXPECT_EQ(json.text("/0/model_type"), "qwen3_moe 7.74M.A3.02M u4");
    EXPECT_EQ(json.number("/0/model_n_params"), 7743008);
    EXPECT_EQ(json.text("/0/backends"), "OpenCL");
    EXPECT_EQ(json.text("/0/devices"), "GPU");
    EXPECT_NE(json.text("/0/device_name"), "");
    EXPECT_NE(json.text("/0/driver_version"), "");
    EXPECT_EQ(json.text("/0/type_k"), "f16");
    EXPECT_EQ(json.text("/1/type_k"), "q4_0");
    EXPECT_EQ(json.text("/1/type_v"), "q8_0");
    EXPECT_EQ(json.text("/2/type_k"), "q8_0") << "ours as llama-bench names it";
    EXPECT_EQ(json.text("/0/test_time").size(),
              std::string("2026-01-02T03:04:05Z").size());
}

/* The cache has room for only one run and a few tokens. */
TEST_F(Bench, EachRunBeginsWhereTheFirstDid)
{
    const Outcome o =
        run(bench({"-p", "700", "-n", "20", "-d", "200", "-r", "4", "--kv-memory", "1"}));
    EXPECT_EQ(o.code, 0) << o.err;
    const Outcome larger = run(bench({"-p", "2100", "-n", "0", "--kv-memory", "1"}));
    EXPECT_EQ(larger.code, 4) << "it has no more: " << larger.err;
    const Outcome deep =
        run(bench({"-p", "4", "-n", "0", "-d", "2100", "--kv-memory", "1"}));
    EXPECT_EQ(deep.code, 4) << "the depth is in the cache: " << deep.err;
}

/* The tokens of all texts count. */
TEST_F(Bench, TextsDecodeTogether)
{
    for (const char *name :
         {"/qwen3moe-tiny/ov/int4_asym_g64", "/gpt-oss-tiny/ov/int4_sym_g64"}) {
        const Json json = run_json({"-m", models + name, "-p", "0", "-n", "4,2", "-np",
                                    "1,3", "-d", "200", "-b", "64"});
        const struct {
            double gen, parallel;
        } tests[] = {{4, 1}, {4, 3}, {2, 1}, {2, 3}};
        for (int i = 0; i < 4; i++) {
            const std::string at = "/" + std::to_string(i) + "/";
            EXPECT_EQ(json.number(at + "n_gen"), tests[i].gen);
            EXPECT_EQ(json.number(at + "n_parallel"), tests[i].parallel);
            EXPECT_NEAR(json.number(at + "samples_ts/0") *
                            json.number(at + "samples_ns/0"),
                        1e9 * tests[i].gen * tests[i].parallel, 1e4);
        }
    }
    const Outcome o =
        run(bench({"-p", "0", "-n", "4", "-np", "3", "-d", "900", "--kv-memory", "1"}));
    EXPECT_EQ(o.code, 4) << "the cache has room for two of them: " << o.err;
}

/* Window layers lose earlier positions, so that the cache is filled again for each run. */
TEST_F(Bench, ModelsWithWindowsRunBehindADepth)
{
    for (const char *name :
         {"/gemma4-moe-tiny/ov/int4_asym_g32", "/gpt-oss-tiny/ov/int4_sym_g64",
          "/gemma4-e-tiny/ov/int4_asym_g64"}) {
        const Outcome o = run({"bench", "-m", models + name, "-p", "100", "-n", "4", "-d",
                               "200", "-r", "2", "-o", "jsonl"});
        EXPECT_EQ(o.code, 0) << name << ": " << o.err;
        EXPECT_EQ(count(o.out, "\n"), 2u) << name;
    }
}

TEST_F(Bench, SeveralModelsAndDevicesGoOneAfterTheOther)
{
    const std::string other = models + "/qwen3moe-tiny/ov/int8_asym";
    const Json json = run_json(
        {"-m", model + "," + other, "-dev", "GPU,REFERENCE", "-p", "2", "-n", "0"});
    std::vector<std::string> seen;
    for (const char *i : {"/0", "/1", "/2", "/3"})
        seen.push_back(json.text(std::string(i) + "/model_filename") + " " +
                       json.text(std::string(i) + "/backends"));
    EXPECT_EQ(seen, (std::vector<std::string>{model + " OpenCL", model + " REFERENCE",
                                              other + " OpenCL", other + " REFERENCE"}));
}

TEST_F(Bench, WhatCannotBeLoadedIsLeftOut)
{
    const Outcome o = run({"bench", "-m", "/nowhere," + model, "-p", "2", "-n", "2", "-r",
                           "1", "-o", "json"});
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(o.err, "xemoe: cannot open '/nowhere': No such file or directory\n");
    EXPECT_EQ(yyjson_arr_size(Json(o.out).at("")), 2u) << o.out;
}

TEST_F(Bench, OfNoModelThereIsNoTable)
{
    for (const char *format : {"md", "json"}) {
        const Outcome o = run({"bench", "-m", "/nowhere", "-o", format});
        EXPECT_EQ(o.code, 3);
        EXPECT_EQ(o.err, "xemoe: cannot open '/nowhere': No such file or directory\n");
        EXPECT_EQ(o.out, "") << format;
    }
}

TEST_F(Bench, StandardErrorTakesASecondForm)
{
    const Outcome o = run(bench({"-p", "2", "-n", "0", "-o", "csv", "-oe", "jsonl"}));
    EXPECT_EQ(o.code, 0);
    EXPECT_EQ(o.out.rfind("build_commit,", 0), 0u) << o.out;
    EXPECT_EQ(o.err.rfind("{\"build_commit\"", 0), 0u) << o.err;
}

TEST_F(Bench, NumbersHaveAPointInACommaLocale)
{
    const CommaLocale locale;
    REQUIRE_COMMA_LOCALE(locale);
    const Words settings = {"LOCPATH=" + locale.path(),
                            std::string("LC_ALL=") + CommaLocale::name};
    const std::regex speed(" [0-9]+\\.[0-9]{2} ± [0-9]+\\.[0-9]{2} \\|\n");
    Outcome o = run(bench({"-p", "8", "-n", "0"}), settings);
    EXPECT_TRUE(std::regex_search(o.out, speed)) << o.out;
    o = run(bench({"-p", "8", "-n", "0", "-o", "jsonl"}), settings);
    EXPECT_GT(Json(o.out).number("/avg_ts"), 0.0) << o.out;
}

/* ---- on a terminal ----------------------------------------------------------------- */

TEST_F(Bench, ATerminalShowsTheTableAndForAWhileWhatGoesOn)
{
    Terminal t(bench({"-p", "8", "-n", "2", "--device", "CPU"}), {}, 140);
    EXPECT_EQ(t.finish(), 0) << t.text();
    EXPECT_TRUE(contains(t.raw(), "test 1 of 2: pp8: warming up")) << t.raw();
    EXPECT_TRUE(contains(t.raw(), "test 2 of 2: tg2: run 2 of 2")) << t.raw();
    const std::vector<std::string> rows = t.screen.rows();
    ASSERT_EQ(rows.size(), 6u) << t.text();
    EXPECT_EQ(rows[0].rfind("| model ", 0), 0u);
    EXPECT_EQ(rows[3].rfind("| qwen3_moe", 0), 0u);
    EXPECT_EQ(rows[5].rfind("build: xemoe ", 0), 0u);
}

TEST_F(Bench, ProgressStaysOnLinesOfItsOwn)
{
    const Outcome o = run(bench({"-p", "8", "-n", "0", "-d", "4", "--progress"}));
    EXPECT_EQ(o.err, "xemoe: test 1 of 2: pp8: warming up\n"
                     "xemoe: test 1 of 2: pp8: run 1 of 2\n"
                     "xemoe: test 1 of 2: pp8: run 2 of 2\n"
                     "xemoe: test 2 of 2: pp8 @ d4: filling the cache\n"
                     "xemoe: test 2 of 2: pp8 @ d4: warming up\n"
                     "xemoe: test 2 of 2: pp8 @ d4: run 1 of 2\n"
                     "xemoe: test 2 of 2: pp8 @ d4: run 2 of 2\n");
    const Outcome bare = run(bench({"-p", "8", "-n", "0", "--no-warmup", "--progress"}));
    EXPECT_FALSE(contains(bare.err, "warming up")) << bare.err;
}

TEST_F(Bench, CtrlCEndsTheTestsAndTheList)
{
    Program p({"bench", "-m", model, "-p", "0", "-n", "4,1000000", "-r", "1", "-o",
               "json", "--progress"});
    p.wait_for_errors("test 2 of 2: tg1000000: run 1 of 1\n");
    p.interrupt();
    const Outcome o = p.finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_TRUE(ends_with(o.err, ": run 1 of 1\nxemoe: stopped by Ctrl-C\n")) << o.err;
    EXPECT_EQ(yyjson_arr_size(Json(o.out).at("")), 1u) << o.out;
}

TEST_F(Bench, CtrlCWhileItCoolsOffLeavesNoResult)
{
    Program p({"bench", "-m", model, "-p", "2,4", "-n", "0", "-r", "1", "--delay",
               "1000000", "-o", "json", "--progress"});
    p.wait_for_errors("waiting before the test\n");
    p.interrupt();
    const Outcome o = p.finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_TRUE(ends_with(o.err, "xemoe: stopped by Ctrl-C\n")) << o.err;
    EXPECT_EQ(o.err.rfind("xemoe: test 1 of 2: waiting before the test\n", 0), 0u)
        << o.err;
    EXPECT_EQ(o.out, "");
}

/* ---- options ----------------------------------------------------------------------- */

TEST_F(Bench, WhatIsSoAnywayMayBeAskedFor)
{
    const Outcome o = run(
        bench({"-p",     "2",          "-n",        "0", "-ngl",  "99",   "-fa",   "1",
               "-sm",    "none,layer", "-mg",       "0", "-nkvo", "0",    "-mmp",  "1",
               "-ncmoe", "0",          "-ts",       "0", "-dio",  "0",    "-embd", "0",
               "-nopo",  "0",          "--no-host", "0", "-lm",   "mmap", "-ot",   ""}));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
}

/* Runs as a GPU, with a GPU's facts for the processor. */
TEST_F(Bench, ThreadsAreIgnoredOnAGpuWithASentence)
{
    const Outcome o = run({"bench", "-m", model, "-p", "2", "-n", "0", "-r", "1", "-t",
                           "8", "--poll", "50", "-dev", "GPU,GPU", "-o", "json"},
                          {"XM_DEVICE_AS=tgl"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(
        o.err, "xemoe: option --threads has no effect on a GPU and is ignored\nxemoe: "
               "option --poll has no effect on a GPU and is ignored\n"))
        << o.err;
    EXPECT_EQ(count(o.err, "is ignored"), 2u) << "once, not for each device: " << o.err;
    EXPECT_EQ(Json(o.out).number("/1/n_threads"), 0);
}

class BenchMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(BenchMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"bench"});
}

static const Mistake mistakes[] = {
    {"NoModel", {}, 2, "MODEL is missing"},
    {"NothingToRun", {"-m", model, "-p", "0", "-n", "0"}, 2, "nothing to run"},
    {"Range", {"-m", model, "-p", "8-1"}, 2, "option -p takes whole numbers from 0"},
    {"NoBatch", {"-m", model, "-b", "0"}, 2, "option -b takes whole numbers from 1"},
    {"NoRuns", {"-m", model, "-r", "0"}, 2, "option -r takes a whole number from 1"},
    {"Pair", {"-m", model, "-pg", "512"}, 2, "option -pg takes two numbers"},
    {"Form", {"-m", model, "-o", "xml"}, 2, "option -o takes md, csv, json"},
    {"Type",
     {"-m", model, "-ctk", "q9", "-ctv", "q9"},
     2,
     "option -ctk takes one of f32 f16 i8 u8 q8_0 u4 i4 q4_0, found 'q9'"},
    {"Ubatch", {"-m", model, "-ub", "100000"}, 2, "option -ub is 100000: expected 1 to"},
    {"Offload", {"-m", model, "--offload", "101"}, 2, "option --offload is 101: "},
    {"Layers",
     {"-m", model, "-ngl", "20"},
     2,
     "all layers are on the device; found '20'"},
    {"LayersList", {"-m", model, "-ngl", "99,0"}, 2, "found '99,0'"},
    {"Attention", {"-m", model, "-fa", "off"}, 2, "--flash-attn takes auto, on or 1"},
    {"ExpertsOnCpu", {"-m", model, "-ncmoe", "4"}, 2, "--offload"},
    {"Override", {"-m", model, "-ot", "exps=CPU"}, 2, "--override-tensor takes nothing"},
    {"Threads", {"-m", model, "-dev", "CPU", "-t", "1000"}, 2, "compute unit"},
    {"Poll", {"-m", model, "-dev", "CPU", "--poll", "50"}, 2, "--poll"},
    {"ThreadsOfTheReference", {"-m", model, "-dev", "REFERENCE", "-t", "8"}, 2, "1 here"},
    {"Device", {"-m", model, "-dev", "CPU,TPU"}, 4, "option --device is 'TPU'"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, BenchMistakes, testing::ValuesIn(mistakes),
                         mistake_name);

TEST_F(Bench, TimesHowTokensAreChosen)
{
    const Outcome o =
        run({"bench", "--sampling", "-m", model, "--seconds", "0.001", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json j(o.out);
    EXPECT_GT(j.number("/step_ms"), 0.0);
    EXPECT_EQ(j.text("/sampling/0/sampler"), "greedy");
    EXPECT_EQ(j.number("/sampling/0/vocabulary"), 1536.0) << "the model's";
    EXPECT_EQ(j.number("/sampling/0/texts"), 1.0);
    EXPECT_EQ(j.number("/sampling/1/texts"), 16.0);
    EXPECT_GT(j.number("/sampling/1/ms"), 0.0);
    EXPECT_NEAR(j.number("/sampling/1/step_share"),
                j.number("/sampling/1/ms") / j.number("/step_ms"), 1e-9);
    EXPECT_TRUE(contains(run({"bench", "--sampling", "--second", "1"}).err,
                         "See 'xemoe bench --sampling --help'"));
    const Outcome table = run({"bench", "--sampling", model, "--seconds", "0.001"});
    EXPECT_EQ(table.code, 0) << table.err;
    for (const char *text : {"1536 tokens, peaked rows", "1536 tokens, flat rows",
                             "typical 0.9", "of a step", "1 text", "16 texts"})
        EXPECT_TRUE(contains(table.out, text)) << text;
}
