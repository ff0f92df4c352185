/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe benchmark_app: the lines that tools parse, its limits and files, and language models.
 */
#include <utility>

#include "functional_tests/cli/benchmark_test.h"
#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/terminal.h"

INSTANTIATE_TEST_SUITE_P(Devices, Benchmark, testing::Values("CPU", "REFERENCE"));

/* ---- the lines --------------------------------------------------------------------- */

TEST_P(Benchmark, PrintsTheElevenSteps)
{
    const auto r = bench(small().mlp,
                         {"-niter", "4", "-hint", "latency", "-infer_precision", "f32"});
    expect_complete(r);
    EXPECT_EQ(r.steps(), all_steps);
    EXPECT_EQ(r.count(), 4.0);
    expect_throughput(r, 4.0);
    EXPECT_GT(r.took_ms("Read model"), 0.0);
    EXPECT_GT(r.took_ms("Compile model"), 0.0);
    EXPECT_GT(r.took_ms("First inference"), 0.0);
    EXPECT_TRUE(r.says("[Step 10/11] Measuring performance (Start inference "
                       "synchronously, limits: 4 iterations)\n"));
    EXPECT_TRUE(r.says("[ INFO ] Benchmarking in inference only mode (inputs filling "
                       "are not included in measurement loop).\n"));
    EXPECT_TRUE(r.says("[ INFO ] Model batch size: 1\n"));
    EXPECT_TRUE(r.says("[ INFO ] Fill input 'data' with random values \n"));
    EXPECT_EQ(
        r.all("\\[ WARNING \\] No input files were given for input 'data'!\\. .*").size(),
        1u);
    EXPECT_EQ(r.all("\\[ INFO \\]   NETWORK_NAME: mlp").size(), 1u);
    EXPECT_FALSE(r.says("SUPPORTED_PROPERTIES"));
    EXPECT_FALSE(r.says("XM_ACCEPTED_PROPERTIES"));
    EXPECT_FALSE(r.says("tensor groups"));
    const double begin =
        r.number("\\[ INFO \\] Start of compilation memory usage: Peak (\\d+) KB");
    const double end =
        r.number("\\[ INFO \\] End of compilation memory usage: Peak (\\d+) KB");
    EXPECT_NEAR(r.number("\\[ INFO \\] Compile model ram used (\\d+) KB"), end - begin,
                1.0);
}

TEST_P(Benchmark, NamesTheBuildAndTheDevice)
{
    const auto r = bench(small().mlp, {"-niter", "1"});
    EXPECT_EQ(r.all("\\[ INFO \\] Build \\.{33} \\d+\\.\\d+.*").size(), 2u);
    EXPECT_TRUE(r.says("[ INFO ] OpenVINO:\n[ INFO ] Build ....."));
    EXPECT_TRUE(r.says("[ INFO ] Device info:\n[ INFO ] " + device()));
    EXPECT_EQ(
        r.all("\\[ INFO \\] Execution Devices:\\['" + device() + "(\\.0)?'\\]").size(),
        1u)
        << r.outcome.out;
}

/* Before and after step 6. */
TEST_P(Benchmark, ListsTheModelsTensors)
{
    const auto r = bench(small().pair, {"-niter", "1", "-data_shape", "[3,2]"});
    const std::string block = "[ INFO ] Model inputs:\n"
                              "[ INFO ]     a (node: a_node) : f32 / [...] / [?,2]\n"
                              "[ INFO ]     b (node: b_node) : f32 / [...] / [?,2]\n"
                              "[ INFO ] Model outputs:\n"
                              "[ INFO ]     y (node: y_node) : f32 / [...] / [?,2]\n"
                              "[ INFO ]     z (node: z_node) : f32 / [...] / [?,2]\n";
    EXPECT_EQ(count(r.outcome.out, block), 2u) << r.outcome.out;
    EXPECT_TRUE(r.says("[ INFO ] Original model I/O parameters:\n" + block));
    EXPECT_TRUE(r.says("[Step 6/11] Configuring input of the model\n" + block));
}

TEST_P(Benchmark, PrintsAnotherPercentileInPlaceOfTheMedian)
{
    const auto r = bench(small().mlp, {"-niter", "20", "-latency_percentile", "90"});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    EXPECT_EQ(r.all("\\[ INFO \\]    90 percentile:     [0-9.]+ (ms|us)").size(), 1u);
    EXPECT_EQ(r.latency().count("Median"), 0u);
}

TEST(BenchmarkLines, HaveTheirWidths)
{
    const auto r = on_host(small().mlp, {"-niter", "4", "-api", "sync"});
    EXPECT_EQ(r.all("\\[ INFO \\] Count: {12}4 iterations").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\] Duration: {9}[0-9]+\\.[0-9]{2} ms").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\] Throughput: {3}[0-9]+\\.[0-9]{2} FPS").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]    Median: {8}[0-9]+\\.[0-9]{2} [mu]s").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]    Average: {7}[0-9]+\\.[0-9]{2} [mu]s").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]    Min: {11}[0-9]+\\.[0-9]{2} [mu]s").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]    Max: {11}[0-9]+\\.[0-9]{2} [mu]s").size(), 1u);
}

/* Numbers have a decimal point in lines and reports, not a comma. */
TEST(BenchmarkLines, HavePointsInEveryLocale)
{
    const CommaLocale locale;
    REQUIRE_COMMA_LOCALE(locale);
    const Folder folder("benchmark_locale");
    const BenchmarkRun r({"-m", small().mlp, "-d", "REFERENCE", "-niter", "2",
                          "-max_irate", "999.5", "-report_type", "no_counters",
                          "-report_folder", folder.path},
                         {"LC_ALL=de_DE.UTF-8", "LOCPATH=" + locale.path()});
    expect_complete(r);
    EXPECT_FALSE(contains(read_file(folder / "benchmark_report.csv"), ","));
}

/* On a terminal, without cached kernels, with the kernels that build fastest. */
TEST(BenchmarkProgress, CountsTheKernelsThatAreBuilt)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Words words = {"benchmark_app", "-m", language, "-d", "CPU", "-niter", "2"};
    for (const bool shown : {true, false}) {
        const Folder folder("benchmark_progress");
        Terminal t(words + Words{"-progress", shown ? "yes" : "no"},
                   {"XM_FORCE=ref", "XDG_CACHE_HOME=" + folder.path,
                    "POCL_CACHE_DIR=" + folder.path});
        if (shown) {
            t.wait_for("compiling " + language.substr(0, 20), 300);
            t.wait_for_match("building kernel [0-9]+ of [0-9]+: ", 300);
            t.wait_for("Compile model took", 300);
            t.wait_for("first inference", 300);
            t.wait_for_match("building (kernel |for a launch of a new size: )", 300);
        }
        EXPECT_EQ(t.finish(300), 0) << t.raw();
        EXPECT_FALSE(contains(t.text(), "building kernel")) << "it is wiped away";
        EXPECT_EQ(contains(t.raw(), "building kernel"), shown);
    }
}

/* ---- limits ------------------------------------------------------------------------ */

TEST_P(Benchmark, KeepsSeveralRequestsBusy)
{
    const auto r = bench(small().mlp, {"-niter", "7", "-nireq", "3"});
    expect_complete(r);
    EXPECT_EQ(r.count(), 9.0);
    EXPECT_TRUE(r.says("(Start inference asynchronously, 3 inference requests, limits: "
                       "9 iterations)"));
    EXPECT_EQ(r.all("\\[ WARNING \\] -niter 7 is rounded up to 9, .*requests").size(),
              1u);
}

/* Returns the shortest time of several runs, up to the first below the limit, because other
 * programs may use the processor during a run. */
template <typename Run>
static double
shortest_ms(double limit_ms, Run run_once)
{
    double least = run_once();
    for (int i = 1; i < 10 && least >= limit_ms; i++)
        least = std::min(least, run_once());
    return least;
}

TEST_P(Benchmark, RunsForATime)
{
    const double ms = shortest_ms(5000.0, [] {
        const auto r = bench(small().mlp, {"-t", "1", "-nireq", "7"});
        expect_complete(r);
        EXPECT_TRUE(r.says("limits: 1000 ms duration)"));
        EXPECT_EQ(static_cast<uint64_t>(r.count()) % 7, 0u);
        return r.duration_ms();
    });
    EXPECT_GE(ms, 1000.0);
    EXPECT_LT(ms, 5000.0);
}

/* With a number and a time both limits must be reached. */
TEST(BenchmarkLimits, HoldBoth)
{
    const auto slow = on_host(small().mlp, {"-t", "1", "-niter", "3"});
    expect_complete(slow);
    EXPECT_TRUE(slow.says("limits: 1000 ms duration, 3 iterations)"));
    EXPECT_GE(slow.duration_ms(), 1000.0);
    EXPECT_GT(slow.count(), 3.0);
    const auto capped =
        on_host(small().mlp, {"-t", "1", "-niter", "8", "-max_irate", "5"});
    expect_complete(capped);
    EXPECT_EQ(capped.count(), 8.0);
    EXPECT_GE(capped.duration_ms(), 1400.0);
}

TEST(BenchmarkLimits, CapTheRate)
{
    for (const char *api : {"sync", "async"}) {
        const double ms = shortest_ms(2000.0, [api] {
            const auto r =
                on_host(small().mlp, {"-niter", "11", "-max_irate", "50", "-api", api});
            expect_complete(r);
            return r.duration_ms();
        });
        EXPECT_GE(ms, 200.0) << api;
        EXPECT_LT(ms, 2000.0) << api;
    }
}

TEST(BenchmarkLimits, NoIterationsOnlyCompile)
{
    const Folder folder("benchmark_zero");
    const auto r = on_host(small().mlp, {"-niter", "0", "-report_type", "no_counters",
                                         "-report_folder", folder.path});
    EXPECT_EQ(r.outcome.code, 0);
    EXPECT_EQ(r.steps(), "1 2 3 4 5 6 7 8s 9s 10s 11 ");
    EXPECT_GT(r.took_ms("Compile model"), 0.0);
    EXPECT_TRUE(r.says(
        "[ INFO ] Model compiled successfully. Skipping inference due to -niter 0.\n"));
    EXPECT_FALSE(r.says("Throughput"));
    EXPECT_TRUE(
        contains(read_file(folder / "benchmark_report.csv"), "compile model time"));
}

TEST(BenchmarkLimits, DependOnTheHint)
{
    EXPECT_TRUE(on_host(small().mlp, {"-niter", "1", "-hint", "latency"})
                    .says("Start inference synchronously"));
    EXPECT_TRUE(on_host(small().mlp, {"-niter", "1", "-hint", "latency", "-api", "async",
                                      "-nireq", "1"})
                    .says("Start inference asynchronously, 1 inference requests"));
    EXPECT_TRUE(on_host(small().mlp, {"-niter", "1", "-hint", "tput"})
                    .says("Start inference asynchronously"));
}

TEST(BenchmarkLimits, LeaveOutTheFirstInference)
{
    const auto r = on_host(small().mlp, {"-niter", "2", "-no_warmup"});
    expect_complete(r);
    EXPECT_FALSE(r.says("First inference took"));
    EXPECT_TRUE(r.says("[ INFO ] Skipping warmup inference due to -no_warmup flag\n"));
}

TEST(BenchmarkLimits, EndWithCtrlC)
{
    for (const Words &more :
         {Words{"-api", "sync"}, Words{"-nireq", "4"}, Words{"-max_irate", "0.0001"}}) {
        Program p(Words{"benchmark_app", "-m", small().mlp, "-d", "REFERENCE"} + more);
        p.wait_for_output("First inference took");
        p.interrupt();
        const Outcome o = p.finish();
        EXPECT_EQ(o.code, 130) << more[0];
        EXPECT_EQ(o.err, "xemoe: stopped by Ctrl-C\n") << more[0];
        EXPECT_FALSE(contains(o.out, "Throughput"));
    }
}

/* ---- files ------------------------------------------------------------------------- */

TEST_P(Benchmark, TakesInputsFromFiles)
{
    const Folder folder("benchmark_inputs_" + device());
    folder.write("a.npy", npy("<f4", "3, 2", std::string(24, '\0')));
    folder.write("a64.npy", npy("<f8", "3, 2", std::string(48, '\0')));
    folder.write("b.bin", std::string(24, '\0'));
    folder.write("short.bin", std::string(20, '\0'));
    folder.write("wide.npy", npy("<f4", "3, 3", std::string(36, '\0')));
    folder.write("ints.npy", npy("<i8", "3, 2", std::string(48, '\0')));
    folder.write("turned.npy", npy("<f4", "2, 3", std::string(24, '\0')));
    folder.write("flat.npy", npy("<f4", "6,", std::string(24, '\0')));
    auto go = [&](const Words &files) {
        return bench(small().pair, Words{"-niter", "2", "-nireq", "1", "-data_shape",
                                         "b[3,2]", "-layout", "[NC]", "-i"} +
                                       files);
    };
    auto r = go({"a:" + folder / "a.npy", "b:" + folder / "b.bin"});
    expect_complete(r);
    EXPECT_FALSE(r.says("random values"));
    EXPECT_TRUE(r.says("[ INFO ] Fill input 'a' from files\n"));
    expect_throughput(r, 6.0); /* the file's shape */
    expect_complete(go({folder / "a64.npy," + folder / "a.npy", folder / "b.bin"}));
    r = go({"a:" + folder / "a.npy", "b:" + folder / "short.bin"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("it has 20 bytes, but input 'b' takes 24")) << r.outcome.out;
    r = go({"a:" + folder / "wide.npy"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("takes [?,2], found [3,3]")) << r.outcome.out;
    for (const auto &[file, shape] :
         {std::pair{"turned.npy", "[2,3]"}, std::pair{"flat.npy", "[6]"}}) {
        r = go({"a:" + folder / "a.npy", "b:" + folder / file});
        EXPECT_EQ(r.outcome.code, 1);
        EXPECT_TRUE(
            r.says("its shape is " + std::string(shape) + ", but input 'b' takes [3,2]"))
            << r.outcome.out;
    }
    r = go({"a:" + folder / "ints.npy"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("it holds i64, but input 'a' takes f32")) << r.outcome.out;
}

/* Files of 3 rows and of 1: in full mode a request reads them in turn, otherwise it keeps the
 * first. */
TEST_P(Benchmark, KeepsTheInputsOfARequestInInferenceOnlyMode)
{
    const Folder folder("benchmark_kept_" + device());
    folder.write("3.npy", npy("<f4", "3, 2", std::string(24, '\0')));
    folder.write("1.npy", npy("<f4", "1, 2", std::string(8, '\0')));
    const std::string files = folder / "3.npy," + folder / "1.npy";
    auto go = [&](const Words &more) {
        const auto r = bench(small().pair, Words{"-niter", "4", "-layout", "[NC]", "-i",
                                                 "a:" + files, "b:" + files} +
                                               more);
        expect_complete(r);
        return r;
    };
    expect_throughput(go({"-nireq", "1", "-inference_only", "false"}), 8.0);
    expect_throughput(go({"-nireq", "1", "-inference_only"}), 12.0);
    expect_throughput(go({"-api", "sync", "-inference_only"}), 12.0);
    expect_throughput(go({"-nireq", "1", "-inference_only", "-no_warmup"}), 12.0);
}

/* ---- the graph that runs, and the memory of tensors ----------------------------------- */

TEST_P(Benchmark, WritesTheGraphThatRuns)
{
    const Folder folder("benchmark_graph_" + device());
    const std::string path = folder / "graph.xml";
    auto r = bench(small().mlp, {"-niter", "1", "-exec_graph_path", path});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] The runtime model is stored to " + path + "\n"));
    const std::string graph = read_file(path);
    EXPECT_TRUE(contains(graph, "<net name=\"mlp\""));
    EXPECT_TRUE(contains(graph, "execType="));
    r = bench(small().mlp, {"-niter", "0", "-exec_graph_path", folder / "again.xml"});
    EXPECT_EQ(r.outcome.code, 0);
    EXPECT_EQ(read_file(folder / "again.xml").size() > 0, true);
    r = bench(small().mlp, {"-niter", "1", "-exec_graph_path", "/nonexistent/graph.xml"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_EQ(r.all("\\[ ERROR \\] -exec_graph_path: .*/nonexistent/graph.xml.*").size(),
              1u)
        << r.outcome.out;
}

/* The device GPU is any OpenCL device, which has contexts. */
TEST(BenchmarkMemory, MayBeTheDevices)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const char *const sentence =
        "[ INFO ] Inputs are in host memory that the device reads";
    const Words flags = {"-d", "GPU", "-use_device_mem", "-nireq", "2", "-niter", "6"};
    auto r = BenchmarkRun(Words{"-m", small().mlp} + flags);
    expect_complete(r);
    EXPECT_TRUE(r.says(sentence));
    r = BenchmarkRun(Words{"-m", small().pair, "-data_shape", "a[1,2][3,2],b[1,2][3,2]"} +
                     flags);
    expect_complete(r);
    EXPECT_EQ(r.count(), 6.0);
    r = BenchmarkRun(Words{"-m", language, "-data_shape", "input_ids[1,8][2,4]"} + flags);
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 48.0);
}

TEST(BenchmarkMemory, IsTheHostsOfDevicesWithoutContexts)
{
    const auto r = on_host(small().mlp, {"-niter", "1", "-use_device_mem"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_EQ(r.all("\\[ ERROR \\] -use_device_mem: .*no remote contexts").size(), 1u);
}

/* ---- language models --------------------------------------------------------------- */

TEST_P(Benchmark, KnowsLanguageModels)
{
    const auto r =
        bench(language, {"-niter", "2", "-nireq", "1", "-data_shape", "input_ids[2,8]"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] The model is a language model: "));
    EXPECT_FALSE(r.says("random values"));
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 32.0);
    EXPECT_NEAR(r.number("\\[ INFO \\] Token throughput: ([0-9.]+) tokens/s"),
                16.0 * r.throughput(), 0.2);
}

TEST_P(Benchmark, TakesGroupsOfTokens)
{
    const auto r = bench(
        language, {"-niter", "4", "-nireq", "2", "-data_shape", "input_ids[1,8][1,3]"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 22.0);
}

/* Inputs without a file take the shape of the one with a file. */
TEST_P(Benchmark, TakesTheTokensOfAFile)
{
    const Folder folder("benchmark_tokens_" + device());
    std::string ids;
    for (char i = 1; i <= 8; i++)
        ids += i + std::string(7, '\0');
    folder.write("ids.npy", npy("<i8", "1, 8", ids));
    folder.write("rows.npy", npy("<i8", "2, 4", ids));
    folder.write("ids.bin", ids);
    const std::pair<std::string, double> files[] = {
        {"input_ids:" + folder / "ids.npy", 16.0},
        {"input_ids:" + folder / "rows.npy", 16.0},
        {"input_ids:" + folder / "ids.bin", 16.0},
        {"position_ids:" + folder / "ids.bin", 16.0},
        {"input_ids:" + folder / "ids.npy," + folder / "rows.npy", 16.0},
    };
    for (const auto &[file, tokens] : files) {
        const auto r = bench(language, {"-niter", "2", "-nireq", "1", "-i", file});
        expect_complete(r);
        EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), tokens) << file;
        EXPECT_FALSE(r.says("1 x 16 tokens")) << file;
    }
    const auto both = bench(language, {"-niter", "2", "-nireq", "1", "-data_shape",
                                       "input_ids[1,4]", "-i", files[0].first});
    EXPECT_EQ(both.outcome.code, 1);
    EXPECT_TRUE(both.says(", but input 'input_ids' takes [1,4]")) << both.outcome.out;
}

/* Integers of other types are accepted if all values fit. */
TEST(BenchmarkFiles, AreNotCutToTheInputsType)
{
    const Folder folder("benchmark_cut");
    const std::string zero(8, '\0'), high = std::string(7, '\0') + "\x80";
    const struct {
        const char *input, *type;
        std::string bytes;
        const char *sentence; /* NULL: accepted */
    } rows[] = {
        {"beam_idx", "<i8", zero, nullptr},
        {"beam_idx", "|u1", std::string(1, '\0'), nullptr},
        {"beam_idx", "<i8", std::string(4, '\0') + "\1" + std::string(3, '\0'),
         "its element 0 is 4294967296, but input 'beam_idx' takes i32"},
        {"beam_idx", "<u4", "\xff\xff\xff\xff",
         "its element 0 is 4294967295, but input 'beam_idx' takes i32"},
        {"input_ids", "<u8", zero, nullptr},
        {"input_ids", "<u8", high,
         "its element 0 is 9223372036854775808, but input 'input_ids' takes i64"},
    };
    for (const auto &row : rows) {
        const bool is_beam = std::string(row.input) == "beam_idx";
        folder.write("x.npy", npy(row.type, is_beam ? "1," : "1, 1", row.bytes));
        const auto r =
            on_host(language, {"-niter", "1", "-i",
                               std::string(row.input) + ":" + folder / "x.npy"});
        EXPECT_EQ(r.outcome.code, row.sentence ? 1 : 0) << row.type << r.outcome.out;
        if (row.sentence) {
            EXPECT_TRUE(r.says(row.sentence)) << r.outcome.out;
        }
    }
}

TEST_P(Benchmark, ReadsGgufFiles)
{
    const auto r = bench(models + "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf",
                         {"-niter", "1", "-nireq", "1"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 16.0);
}

TEST(BenchmarkModels, MayBeCompiledOnes)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_blob");
    const std::string blob = folder / "tiny.blob";
    const Outcome o = run({"compile", language, "-o", blob, "-d", "CPU"});
    ASSERT_EQ(o.code, 0) << o.err;
    const BenchmarkRun r({"-m", blob, "-d", "CPU", "-niter", "2", "-nireq", "1"});
    expect_complete(r);
    EXPECT_EQ(r.steps(), "1 2 3 4s 5s 6s 7 8 9 10 11 ");
    EXPECT_GT(r.took_ms("Import model"), 0.0);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 32.0);
}
