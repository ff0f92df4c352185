/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe benchmark_app: groups of shapes, reshaping and batches.
 */
#include "functional_tests/cli/benchmark_test.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/terminal.h"

TEST_P(Benchmark, TakesGroupsOfShapesInTurn)
{
    const auto r =
        bench(small().pair, {"-data_shape", "a[1,2][5,2],b[1,2][5,2]", "-niter", "5",
                             "-layout", "a[NC],b[NC]", "-pcseq"});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    EXPECT_EQ(r.count(), 6.0);
    expect_throughput(r, 18.0); /* three runs of 1 and of 5 rows */
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

/* Runs are rounded up to whole groups only if there are more groups than requests. */
TEST(BenchmarkShapes, OfFewerGroupsThanRequestsMakeNoRounds)
{
    const auto r = on_host(
        small().rows, {"-data_shape", "data[1,16][4,16]", "-niter", "4", "-nireq", "3"});
    expect_complete(r);
    EXPECT_EQ(r.count(), 6.0);
    EXPECT_TRUE(r.says("-niter 4 is rounded up to 6, whole rounds of the requests"));
}

static const Wrong wrong_shapes[] = {
    {{}, 1, "Input data is dynamic. Provide data shapes!"},
    {{"-data_shape", "data[1,17]"}, 1, "takes [?,16], found [1,17]"},
    {{"-data_shape", "data[16]"}, 1, "takes [?,16], found [16]"},
    {{"-data_shape", "other[1,16]"}, 1, "names an input that the model does not have"},
    {{"-layout", "other[NC]"}, 1, "-layout: the model has no input 'other'"},
    {{"-layout", "data[NCHW]"},
     1,
     "'data' has 2 dimensions, which does not match [N,C,H,W]"},
    {{"-b", "4", "-layout", "[DC]"}, 1, "-b 4 needs a layout with N"},
    {{"-shape", "other[1,16]"}, 1, "-shape: the model has no input 'other'"},
    {{"-shape", "data[1,16,1]"}, 1, "-shape: input 'data' has 2 dimensions, found 3"},
    {{"-shape", "data[1,17]"}, 1, "the model cannot be reshaped: "},
    {{"-shape", "data[2..4,16]"}, 1, "Input data is dynamic. Provide data shapes!"},
    {{"-shape", "data[2..4,16]", "-data_shape", "data[5,16]"}, 1, "takes [2..4,16]"},
    {{"-lfile", "-shape", "data[1,16]"}, 1, "compiled directly or imported"},
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

/* The model is reshaped; a static shape needs no -data_shape. */
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
    EXPECT_FALSE(r.says("tensor groups")); /* there is only one */
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
    /* as long as the bounds allow */
    r = bench(language, {"-niter", "1", "-nireq", "1", "-shape", "input_ids[1,4..9]"});
    expect_complete(r);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 9.0);
}
