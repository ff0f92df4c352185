/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe benchmark_app: the lines that tools read, its limits, shapes and files, and how it fails.
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

/* Before and behind step 6. */
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

/* No comma for a point, in lines and reports. */
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

/* Of a terminal, with nothing that an earlier run has kept, of kernels that are soonest built. */
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
    EXPECT_EQ(r.all("\\[ WARNING \\] -niter 7 becomes 9: .*requests").size(), 1u);
}

/* The shortest of some runs, up to the first that is below the limit: other programs may take the
 * processor during a run. */
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

/* With a number and a time both are reached. */
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

/* ---- shapes ------------------------------------------------------------------------ */

TEST_P(Benchmark, TakesGroupsOfShapesInTurn)
{
    const auto r =
        bench(small().pair, {"-data_shape", "a[1,2][5,2],b[1,2][5,2]", "-niter", "5",
                             "-layout", "a[NC],b[NC]", "-pcseq"});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    EXPECT_EQ(r.count(), 6.0);
    expect_throughput(r, 18.0); /* three times 1 and 5 rows */
    EXPECT_TRUE(r.says("[ INFO ] Defined 2 tensor groups:\n"
                       "[ INFO ] \t a: [1,2] b: [1,2]\n[ INFO ] \t a: [5,2] b: [5,2]\n"));
    EXPECT_TRUE(r.says("[ INFO ] Benchmarking in full mode (inputs filling are included "
                       "in measurement loop).\n"));
    EXPECT_TRUE(r.says("[ INFO ] Latency for each data shape group:\n[ INFO ] 1. "));
    EXPECT_EQ(r.all("\\[ INFO \\]    Median: .*").size(), 3u);
    EXPECT_EQ(r.all("\\[ INFO \\] 2\\. a: \\[5,2\\] b: \\[5,2\\]").size(), 1u);
    for (const char *label :
         {"Median:     ", "Average:    ", "Min:        ", "Max:        "})
        EXPECT_EQ(
            r.all("\\[ INFO \\]    " + std::string(label) + "[0-9]+\\.[0-9]{2} [mu]s")
                .size(),
            2u)
            << label;
}

TEST(BenchmarkShapes, OfSeveralGroupsNeedAsyncMode)
{
    const auto r = on_host(
        small().rows, {"-data_shape", "data[1,16][4,16]", "-niter", "2", "-api", "sync"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("[ ERROR ] Benchmarking of the model with dynamic shapes is "
                       "available for async API only. Please use -api async -hint "
                       "latency -nireq 1 to emulate sync behavior.\n"));
    const auto one = on_host(
        small().rows, {"-data_shape", "data[4,16]", "-niter", "2", "-api", "sync"});
    expect_complete(one);
    EXPECT_EQ(one.count(), 2.0);
}

TEST(BenchmarkShapes, OfSeveralGroupsAreFilledInTheLoop)
{
    const Words flags = {"-data_shape", "data[1,16][4,16]", "-niter", "2"};
    const auto r = on_host(small().rows, flags + Words{"-inference_only"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(
        r.says("[ ERROR ] Benchmarking dynamic model available with input filling "
               "in measurement loop only!\n"))
        << r.outcome.out;
    expect_complete(on_host(small().rows, flags + Words{"-inference_only", "false"}));
    expect_complete(on_host(
        small().rows, {"-data_shape", "data[4,16]", "-niter", "2", "-inference_only"}));
}

/* Rounds are of the groups only where these are more than the requests. */
TEST(BenchmarkShapes, OfFewerGroupsThanRequestsMakeNoRounds)
{
    const auto r = on_host(
        small().rows, {"-data_shape", "data[1,16][4,16]", "-niter", "4", "-nireq", "3"});
    expect_complete(r);
    EXPECT_EQ(r.count(), 6.0);
    EXPECT_TRUE(r.says("-niter 4 becomes 6: whole rounds of the requests"));
}

struct Wrong {
    Words flags;
    int code;
    const char *sentence; /* a part of it */
};

static const Wrong wrong_shapes[] = {
    {{}, 1, "Input data is dynamic. Provide data shapes!"},
    {{"-data_shape", "data[1,17]"}, 1, "takes [?,16], found [1,17]"},
    {{"-data_shape", "data[16]"}, 1, "takes [?,16], found [16]"},
    {{"-data_shape", "other[1,16]"}, 1, "names an input that the model does not have"},
    {{"-layout", "other[NC]"}, 1, "-layout: the model has no input 'other'"},
    {{"-layout", "data[NCHW]"}, 1, "'data' has 2 dimensions, which is not [N,C,H,W]"},
    {{"-b", "4", "-layout", "[DC]"}, 1, "-b 4 needs a layout with N"},
    {{"-shape", "other[1,16]"}, 1, "-shape: the model has no input 'other'"},
    {{"-shape", "data[1,16,1]"}, 1, "-shape: input 'data' has 2 dimensions, found 3"},
    {{"-shape", "data[1,17]"}, 1, "the model cannot be reshaped: "},
    {{"-shape", "data[2..4,16]"}, 1, "Input data is dynamic. Provide data shapes!"},
    {{"-shape", "data[2..4,16]", "-data_shape", "data[5,16]"}, 1, "takes [2..4,16]"},
    {{"-lfile", "-shape", "data[1,16]"}, 1, "compiled or imported at once"},
};

TEST(BenchmarkShapes, ThatDoNotFitAreErrors)
{
    for (const Wrong &w : wrong_shapes) {
        const auto r = on_host(small().rows, w.flags + Words{"-niter", "1"});
        const auto errors = r.all("\\[ ERROR \\] (.*)");
        EXPECT_EQ(r.outcome.code, w.code) << w.sentence;
        ASSERT_EQ(errors.size(), 1u) << r.outcome.out;
        EXPECT_TRUE(contains(errors[0][0], w.sentence)) << errors[0][0];
        EXPECT_FALSE(r.says("Throughput"));
    }
}

/* The model gets the shape; a static one needs no -data_shape. */
TEST_P(Benchmark, ReshapesTheModel)
{
    const Folder folder("benchmark_reshape_" + device());
    auto r = bench(small().rows,
                   {"-shape", "data[4,16]", "-niter", "2", "-nireq", "1", "-report_type",
                    "no_counters", "-report_folder", folder.path});
    expect_complete(r);
    EXPECT_TRUE(r.says(
        "[ INFO ] Model batch size: 1\n[ INFO ] Reshaping model: 'data': [4,16]\n"));
    EXPECT_GE(r.took_ms("Reshape model"), 0.0);
    EXPECT_TRUE(r.says("data (node: data_node) : f32 / [...] / [4,16]\n"));
    EXPECT_TRUE(r.says("prob (node: prob_node) : f32 / [...] / [4,8]\n"));
    EXPECT_TRUE(contains(read_file(folder / "benchmark_report.csv"),
                         "\nreshape model time (ms);"));
    r = bench(small().rows, {"-shape", "data[2..4,16]", "-data_shape", "data[2,16][4,16]",
                             "-niter", "2", "-nireq", "1"});
    expect_complete(r);
    EXPECT_TRUE(r.says("Reshaping model: 'data': [2..4,16]\n"));
    r = bench(small().mlp, {"-shape", "[?,16]", "-data_shape", "[7,16]", "-niter", "1",
                            "-nireq", "1", "-layout", "[NC]"});
    expect_complete(r);
    EXPECT_FALSE(r.says("tensor groups")); /* as there is one */
    expect_throughput(r, 7.0);
}

TEST_P(Benchmark, TakesABatch)
{
    auto r = bench(small().mlp, {"-layout", "data[NC]", "-b", "5", "-niter", "4"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] Reshaping model: 'data': [5,16]\n"));
    EXPECT_TRUE(r.says("[ INFO ] Model batch size: 5\n"));
    expect_throughput(r, 5.0 * r.count());
    r = bench(small().pair, {"-layout", "[N,...]", "-b", "3", "-niter", "2"});
    expect_complete(r);
    EXPECT_TRUE(r.says("Reshaping model: 'a': [3,2], 'b': [3,2]\n"));
    EXPECT_TRUE(r.says("a (node: a_node) : f32 / [N,...] / [3,2]\n"));
}

TEST_P(Benchmark, ReshapesLanguageModels)
{
    auto r = bench(language, {"-niter", "1", "-nireq", "1", "-shape",
                              "input_ids[1,8],attention_mask[1,8],position_ids[1,8],"
                              "beam_idx[1]"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 8.0);
    r = bench(language,
              {"-niter", "1", "-nireq", "1", "-b", "2", "-layout",
               "input_ids[NC],attention_mask[NC],position_ids[NC],beam_idx[N]"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 32.0);
    expect_throughput(r, 2.0);
    /* as many as the bounds allow */
    r = bench(language, {"-niter", "1", "-nireq", "1", "-shape", "input_ids[1,4..9]"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 9.0);
}

/* ---- flags ------------------------------------------------------------------------- */

struct Accepted {
    Words flags;
    const char *line; /* a part of the output */
};

static const Accepted accepted[] = {
    {{"-hint", "none"}, "Throughput:"},
    {{"-hint", "ctput"}, "Throughput:"},
    {{"-hint", "cumulative_throughput"}, "Throughput:"},
    {{"--perf_hint", "throughput"}, "Throughput:"},
    {{"-nstreams", "2", "-hint", "none"}, "Throughput:"},
    {{"-nstreams", "REFERENCE:1", "-hint", "none"}, "Throughput:"},
    {{"-nthreads", "2"}, "Throughput:"},
    {{"-nthreads", "0"}, "Throughput:"},
    {{"-t", "0"}, " iterations)"},
    {{"-pin", "NO"}, "Throughput:"},
    {{"-infer_precision", "REFERENCE:f32"}, "Throughput:"},
    {{"-infer_precision", "bf16"}, "INFERENCE_PRECISION_HINT: f32"},
    {{"-infer_precision", "dynamic"}, "Throughput:"},
    {{"-infer_precision", "undefined"}, "Throughput:"},
    {{"-ip", "f32", "-op", "FP32"}, "Throughput:"},
    {{"-iop", "data:f32, prob:f32"}, "Throughput:"},
    {{"-ip", "f16"}, "data (node: data_node) : f16 / "},
    {{"-ip", "u8"}, "Throughput:"},
    {{"-op", "f16"}, "prob (node: prob_node) : f16 / "},
    {{"-iop", "data:f16, prob:f64"}, "data (node: data_node) : f16 / "},
    {{"-iop", "prob:f64"}, "prob (node: prob_node) : f64 / "},
    {{"-ip", "u8", "-iop", "data:f16"}, "data (node: data_node) : f16 / "},
    {{"-iop", "prob:f16", "-op", "f64"}, "prob (node: prob_node) : f16 / "},
    {{"-inference_only", "false"}, "Benchmarking in full mode"},
    {{"-inference_only"}, "Benchmarking in inference only mode"},
    {{"-lfile"}, "[Step 4/11] Reading model files (skipped)"},
    {{"-layout", "data[NC]"}, "data (node: data_node) : f32 / [N,C] / [2,16]"},
    {{"-layout", "[NC]"}, "[ INFO ] Model batch size: 2"},
    {{"-layout", "data[NC]", "-b", "2"}, "[ INFO ] Model batch size: 2"},
    {{"-shape", "data[2,16]"}, "Throughput:"},
    {{"-progress", "false"}, "Throughput:"},
    {{"-pc", "false"}, "Throughput:"},
};

TEST(BenchmarkFlags, AreAccepted)
{
    for (const Accepted &a : accepted) {
        const auto r = on_host(small().mlp, Words{"-niter", "1"} + a.flags);
        EXPECT_EQ(r.outcome.code, 0) << a.flags[0] << r.outcome.out << r.outcome.err;
        EXPECT_TRUE(r.says(a.line)) << a.flags[0] << "\n" << r.outcome.out;
    }
}

static const Wrong refused[] = {
    {{"-c", "x.xml"}, 2, "option -c: custom kernels"},
    {{"-mean_values", "[1]"}, 2, "option -mean_values: "},
    {{"-scale_values", "[1]"}, 2, "option -scale_values: "},
    {{"-imean", "[1]"}, 2, "option -mean_values: "},
    {{"-hint", "fast"}, 2, "option -hint takes one of"},
    {{"-api", "both"}, 2, "option -api takes one of"},
    {{"-niter", "-1"}, 2, "option -niter takes a whole number"},
    {{"-niter", "many"}, 2, "option -niter takes a whole number"},
    {{"-t", "-1"}, 2, "option -t takes a whole number from 0"},
    {{"-latency_percentile", "101"}, 2, "option -latency_percentile takes"},
    {{"-latency_percentile", "0"}, 2, "option -latency_percentile takes"},
    {{"-max_irate", "-1"}, 2, "option -max_irate takes"},
    {{"-pcsort", "up"}, 2, "option -pcsort takes one of"},
    {{"-report_type", "all"}, 2, "option -report_type takes one of"},
    {{"-pin", "MAYBE"}, 2, "option -pin takes one of"},
    {{"-i"}, 2, "option -i needs a value"},
    {{"-nope"}, 2, "there is no option -nope"},
    {{"word"}, 2, "'word' is one word too many"},
    {{"-shape", "data[a,b]"}, 2, "option -shape takes shapes as"},
    {{"-shape", "data[1,16"}, 2, "option -shape takes shapes as"},
    {{"-data_shape", "data[?,16]"}, 2, "option -data_shape takes"},
    {{"-data_shape", "data[1,16"}, 2, "option -data_shape takes"},
    {{"-data_shape", "data[1,16],data[2,16]"}, 2, "names 'data' twice"},
    {{"-layout", "data"}, 2, "option -layout takes layouts as"},
    {{"-layout", "data[NN]"}, 2, "option -layout: "},
    {{"-ip", "zz"}, 2, "option -ip takes types as f32 and i64, and 'zz' is none"},
    {{"-op", "prob:"}, 2, "option -op takes types as f32 and i64, and '' is none"},
    {{"-iop", "data:f32, prob:zz"}, 2, "option -iop takes types"},
    {{"-nireq", "4294967296"}, 2, "option -nireq takes a whole number up to 4294967295"},
    {{"-nthreads", "4294967296"}, 2, "option -nthreads takes a whole number up to"},
    {{"-infer_precision", "zz"}, 2, "option -infer_precision takes types"},
    {{"-infer_precision", "CPU:f32"}, 2, "Incorrect device name 'CPU'"},
};

TEST(BenchmarkFlags, ThatAreWrongAreTheCommandLines)
{
    for (const Wrong &w : refused) {
        const auto r = on_host("/nonexistent.xml", w.flags); /* not read as yet */
        EXPECT_EQ(r.outcome.code, w.code) << w.sentence;
        EXPECT_EQ(r.outcome.out, "") << w.sentence;
        EXPECT_TRUE(contains(r.outcome.err, w.sentence)) << r.outcome.err;
    }
    EXPECT_EQ(BenchmarkRun(Words{}).outcome.code, 2);
}

static const Wrong failures[] = {
    {{"-ip", "u4"}, 1, "-ip u4: 'data_node' of type f32 cannot have tensors of type u4"},
    {{"-ip", "f16", "-lfile"},
     1,
     "-ip f16: 'data' is of type f32, and a compiled model's tensors are not converted"},
    {{"-iop", "data:f32, nope:f32"}, 1, "-iop: the model has no node 'nope'"},
    {{"-ip", "prob:f32"}, 1, "-ip: the model has no node 'prob'"},
    {{"-iop", "prob:string"}, 1, "-iop string: "},
    {{"-report_folder", "/nonexistent"}, 1, "there is no folder '/nonexistent'"},
    {{"-load_config", "/nonexistent.json"}, 1, "/nonexistent.json"},
    {{"-extensions", "/nonexistent.so"}, 1, "-extensions: "},
    {{"-extensions", XM_PROGRAM}, 1, "is not loaded"},
    {{"-d", "NOPE"}, 1, "NOPE"},
    {{"-m", "/nonexistent.xml"}, 1, "-m: there is no file '/nonexistent.xml'"},
};

TEST(BenchmarkFlags, ThatCannotBeMetEndTheRun)
{
    for (const Wrong &w : failures) {
        const auto r = on_host(small().mlp, Words{"-niter", "1"} + w.flags);
        const auto errors = r.all("\\[ ERROR \\] (.*)");
        EXPECT_EQ(r.outcome.code, w.code) << w.sentence << r.outcome.out;
        EXPECT_EQ(r.outcome.err, "") << w.sentence;
        ASSERT_EQ(errors.size(), 1u) << w.sentence << r.outcome.out;
        EXPECT_TRUE(contains(errors[0][0], w.sentence)) << errors[0][0];
    }
    const BenchmarkRun r({"-m", "/nonexistent.xml"});
    EXPECT_FALSE(r.says("[ WARNING ]")) << r.outcome.out;
}

/* The code is that of all failures. */
TEST(BenchmarkFlags, SayThatStandardOutputIsFull)
{
    for (const Words &flags : {Words{"-h"}, Words{"-m", small().mlp, "-d", "REFERENCE",
                                                  "-niter", "1", "-nireq", "1"}}) {
        Program p(BenchmarkRun::with_command(flags), {}, "/dev/null", "/dev/full");
        const Outcome o = p.finish();
        EXPECT_EQ(o.code, 1) << o.err;
        EXPECT_TRUE(contains(o.err, "xemoe: standard output: ")) << o.err;
    }
}

/* Those of openvino_tokenizers are built in. */
TEST(BenchmarkFlags, TakeExtensions)
{
    const Folder folder("benchmark_extensions");
    folder.write("libopenvino_tokenizers.so", "\x7f"
                                              "ELF");
    const std::string path = folder / "libopenvino_tokenizers.so";
    const auto r =
        on_host(small().mlp, {"-niter", "1", "-extensions", path + "," + path});
    expect_complete(r);
    EXPECT_EQ(count(r.outcome.out, "[ INFO ] Operations of " + path + " are built in\n"),
              2u);
}

TEST(BenchmarkFlags, WarnWhereADeviceHasNoHint)
{
    const std::string warning =
        "[ WARNING ] -hint: PERFORMANCE_HINT has no effect on device ";
    const Words flags = {"-niter", "1", "-hint", "latency", "-nireq", "1"};
    const auto r = on_host(small().mlp, flags);
    expect_complete(r);
    EXPECT_TRUE(r.says(warning + "REFERENCE\n")) << r.outcome.out;
    EXPECT_FALSE(r.says("PERFORMANCE_HINT_NUM_REQUESTS"));
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto cl = BenchmarkRun(Words{"-m", small().mlp, "-d", "CPU"} + flags);
    expect_complete(cl);
    EXPECT_FALSE(cl.says(warning)) << cl.outcome.out;
    EXPECT_FALSE(cl.says("[ WARNING ] -nireq"));
}

TEST(BenchmarkFlags, TakeOnlyWhatTheDeviceTakes)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const BenchmarkRun r(
        {"-m", small().mlp, "-d", "CPU", "-niter", "1", "-infer_precision", "u3"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_EQ(r.all("\\[ ERROR \\] -infer_precision: .*").size(), 1u) << r.outcome.out;
}

/* As the C API takes them. */
TEST(BenchmarkFlags, TakeListsOfDevices)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const char *const alone = "xemoe: warning: device HETERO:CPU,REFERENCE runs on CPU "
                              "alone: the other devices of the list are not used\n";
    const std::pair<const char *, std::string> cases[] = {
        {"AUTO", ""},
        {"AUTO:-GPU", ""},
        {"MULTI:CPU(2)", ""},
        {"HETERO:CPU,REFERENCE", alone}};
    for (const auto &[device, warning] : cases) {
        BenchmarkRun r({"-m", small().mlp, "-d", device, "-niter", "1", "-hint",
                        "latency", "-infer_precision", "f32"});
        EXPECT_EQ(std::exchange(r.outcome.err, ""), warning);
        expect_complete(r);
        EXPECT_TRUE(r.says("  INFERENCE_PRECISION_HINT: f32\n")) << device;
    }
}

TEST(BenchmarkFlags, HelpEndsWithTheDevices)
{
    const BenchmarkRun r({"-h"});
    EXPECT_EQ(r.outcome.code, 0);
    ASSERT_FALSE(r.lines.empty());
    EXPECT_TRUE(std::regex_match(r.lines.back(),
                                 std::regex("Available target devices: (  [A-Z0-9.]+)+")))
        << r.lines.back();
    for (const char *flag :
         {"-niter", "--number_iterations", "-pcsort", "-exec_graph_path"})
        EXPECT_TRUE(r.says(flag)) << flag;
}

/* Keys of OpenVINO's properties by device; flags win over the file. */
TEST_P(Benchmark, WritesAndReadsPropertiesOfDevices)
{
    const Folder folder("benchmark_config_" + device());
    const std::string path = folder / "dump.json";
    auto r = bench(small().mlp, {"-niter", "1", "-hint", "latency", "-infer_precision",
                                 "f32", "-dump_config", path});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    const Json dumped(read_file(path));
    EXPECT_EQ(dumped.text("/" + device() + "/PERFORMANCE_HINT"), "LATENCY");
    EXPECT_EQ(dumped.text("/" + device() + "/INFERENCE_PRECISION_HINT"), "f32");
    r = bench(small().mlp, {"-niter", "1", "-load_config", path});
    EXPECT_TRUE(r.says("Start inference synchronously")) << r.outcome.out;
    EXPECT_FALSE(r.says("No performance hint"));
    EXPECT_FALSE(r.says("PERFORMANCE_HINT has no effect"));
    r = bench(small().mlp, {"-niter", "1", "-load_config", path, "-hint", "tput"});
    EXPECT_TRUE(r.says("Start inference asynchronously")) << r.outcome.out;
    folder.write("bad.json", "[1]");
    r = bench(small().mlp, {"-niter", "1", "-load_config", folder / "bad.json"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("[ ERROR ] -load_config"));
}

/* A file that was just written is heeded without a word, also where nobody asked for the hint. */
TEST_P(Benchmark, ReadsWhatItHasWritten)
{
    const Folder folder("benchmark_dumped_" + device());
    const std::string path = folder / "dump.json";
    auto r = bench(small().mlp, {"-niter", "1", "-nireq", "3", "-dump_config", path});
    expect_complete(r);
    r = bench(small().mlp, {"-niter", "1", "-load_config", path});
    expect_complete(r);
    EXPECT_EQ(count(r.outcome.out, "-load_config"), 0u) << r.outcome.out;
    EXPECT_TRUE(r.says("asynchronously, 3 inference requests, limits: 3 iterations"));
    r = bench(small().mlp, {"-niter", "1", "-load_config", path, "-nireq", "2"});
    EXPECT_TRUE(r.says("asynchronously, 2 inference requests, limits: 2 iterations"));
}

TEST_P(Benchmark, FailsWhereAFileHasWhatNoDeviceHas)
{
    const Folder folder("benchmark_unknown_" + device());
    folder.write("nope.json", R"({")" + device() + R"(": {"NOPE": "1"}})");
    const auto r =
        bench(small().mlp, {"-niter", "1", "-load_config", folder / "nope.json"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("[ ERROR ] -load_config: Unsupported property NOPE"))
        << r.outcome.out;
    EXPECT_FALSE(r.says("has no effect"));
}

TEST(BenchmarkFlags, CacheWhatTheDeviceCompiled)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_cache");
    for (const char *flag : {"-cdir", "-cache_dir"}) {
        const BenchmarkRun r(
            {"-m", small().mlp, "-d", "CPU", "-niter", "1", flag, folder.path});
        expect_complete(r);
        EXPECT_FALSE(folder.names().empty());
        EXPECT_TRUE(r.says("  CACHE_DIR: " + folder.path)) << r.outcome.out;
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
    expect_throughput(r, 6.0); /* the file has its shape */
    expect_complete(go({folder / "a64.npy," + folder / "a.npy", folder / "b.bin"}));
    r = go({"a:" + folder / "a.npy", "b:" + folder / "short.bin"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("it has 20 bytes, and input 'b' takes 24")) << r.outcome.out;
    r = go({"a:" + folder / "wide.npy"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("takes [?,2], found [3,3]")) << r.outcome.out;
    for (const auto &[file, shape] :
         {std::pair{"turned.npy", "[2,3]"}, std::pair{"flat.npy", "[6]"}}) {
        r = go({"a:" + folder / "a.npy", "b:" + folder / file});
        EXPECT_EQ(r.outcome.code, 1);
        EXPECT_TRUE(
            r.says("its shape is " + std::string(shape) + ", and input 'b' takes [3,2]"))
            << r.outcome.out;
    }
    r = go({"a:" + folder / "ints.npy"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("it holds i64, and input 'a' takes f32")) << r.outcome.out;
}

/* Files of 3 rows and of 1: in full mode a request gets them in turn, else it keeps the first. */
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

/* ---- what runs, and where its tensors are ------------------------------------------- */

TEST_P(Benchmark, WritesTheGraphThatRuns)
{
    const Folder folder("benchmark_graph_" + device());
    const std::string path = folder / "graph.xml";
    auto r = bench(small().mlp, {"-niter", "1", "-exec_graph_path", path});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] The graph that runs is stored to " + path + "\n"));
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

/* GPU stands for any OpenCL device, which has contexts by that name. */
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

/* What has no file has the shape of the one that is given. */
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
    EXPECT_TRUE(both.says(", and input 'input_ids' takes [1,4]")) << both.outcome.out;
}

/* Integers of other types are taken where they fit. */
TEST(BenchmarkFiles, AreNotCutToTheInputsType)
{
    const Folder folder("benchmark_cut");
    const std::string zero(8, '\0'), high = std::string(7, '\0') + "\x80";
    const struct {
        const char *input, *type;
        std::string bytes;
        const char *sentence; /* NULL: it is taken */
    } rows[] = {
        {"beam_idx", "<i8", zero, nullptr},
        {"beam_idx", "|u1", std::string(1, '\0'), nullptr},
        {"beam_idx", "<i8", std::string(4, '\0') + "\1" + std::string(3, '\0'),
         "its number 0 is 4294967296, and input 'beam_idx' takes i32"},
        {"beam_idx", "<u4", "\xff\xff\xff\xff",
         "its number 0 is 4294967295, and input 'beam_idx' takes i32"},
        {"input_ids", "<u8", zero, nullptr},
        {"input_ids", "<u8", high,
         "its number 0 is 9223372036854775808, and input 'input_ids' takes i64"},
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
