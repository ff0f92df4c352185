/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a model's inputs and results in benchmark_app's flags and lines: any name of the
 * tensor, or that of its node; and lines that scripts search for.
 */
#include "functional_tests/cli/benchmark_test.h"

/* s = softmax(877), an input that is also named attention_mask; t = softmax of an input without a
 * name; a result without a name; [?,?] each. */
static SmallIr
many_names()
{
    SmallIr ir("names");
    const SmallIr::Dims any = {-1, -1};
    const auto a = ir.parameter("877,attention_mask", any), b = ir.parameter("", any);
    ir.result(ir.op("s", "SoftMax", "axis=\"1\"", {a}, any));
    ir.result(ir.op("", "SoftMax", "axis=\"1\"", {b}, any));
    return ir;
}

class BenchmarkNames : public testing::Test
{
  protected:
    Folder folder{"benchmark_names"};
    std::string model = many_names().save(folder / "names");
    std::string mask = folder / "mask.npy", other = folder / "other.npy";

    void SetUp() override
    {
        std::ofstream(mask, std::ios::binary)
            << npy("<f4", "1, 3", std::string(3 * 4, '\0'));
        std::ofstream(other, std::ios::binary)
            << npy("<f4", "2, 5", std::string(10 * 4, '\0'));
    }
    BenchmarkRun bench(const Words &flags) const
    {
        return on_host(model, Words{"-niter", "2", "-nireq", "1"} + flags);
    }
};

TEST_F(BenchmarkNames, AreThoseOfTensorsAndNodes)
{
    const std::string b = "_node";
    for (const std::string a : {"877", "attention_mask"}) {
        auto r = bench({"-shape", a + "[1,7]," + b + "[2,3]"});
        expect_complete(r);
        EXPECT_TRUE(r.says("Reshaping model: '877': [1,7], '_node': [2,3]\n"));
        r = bench({"-data_shape", a + "[1,7][2,7]," + b + "[2,3][4,4]"});
        expect_complete(r);
        EXPECT_TRUE(r.says("877: [1,7] _node: [2,3]\n")) << r.outcome.out;
        EXPECT_TRUE(r.says("877: [2,7] _node: [4,4]\n")) << r.outcome.out;
        r = bench({"-layout", b + "[CN]," + a + "[NC]", "-b", "2", "-shape",
                   a + "[?,7]," + b + "[3,?]"});
        expect_complete(r);
        EXPECT_TRUE(r.says("Reshaping model: '877': [2,7], '_node': [3,2]\n"));
        r = bench({"-i", a + ":" + mask + "," + b + ":" + other});
        expect_complete(r);
        r = bench({"-i", b + ":" + other, a + ":" + mask});
        expect_complete(r);
        r = bench({"-iop", a + ":f32, " + b + ":f32", "-data_shape", "[2,2]"});
        expect_complete(r);
        r = bench({"-ip", a + ":f16", "-data_shape", "[2,2]"});
        expect_complete(r);
    }
}

TEST_F(BenchmarkNames, OfNoInputAreRefused)
{
    for (const char *flag : {"-shape", "-data_shape", "-layout"}) {
        const auto r = bench({flag, "nope[1,2]", "-b", "1"});
        EXPECT_EQ(r.outcome.code, 1) << flag;
        EXPECT_TRUE(r.says("nope")) << r.outcome.out;
    }
    EXPECT_TRUE(bench({"-ip", "s:f32"}).says("-ip: the model has no node 's'"));
    EXPECT_TRUE(bench({"-i", "s:" + mask}).says("-i: there is neither an input 's'"));
}

/* A result has the name of the node that computes it. */
TEST_F(BenchmarkNames, AreInTheLines)
{
    const auto r = bench({"-data_shape", "[3,2]"});
    expect_complete(r);
    EXPECT_TRUE(
        r.says("[ INFO ]     ***NO_NAME*** (node: _node) : f32 / [...] / [?,?]\n"
               "[ INFO ] Model outputs:\n"
               "[ INFO ]     s (node: s_node) : f32 / [...] / [?,?]\n"
               "[ INFO ]     ***NO_NAME*** (node: _node) : f32 / [...] / [?,?]\n"))
        << r.outcome.out;
    EXPECT_TRUE(r.says("[ INFO ] Fill input '_node' with random values \n"));
}

/* ---- a batch without a layout ------------------------------------------------------ */

TEST(BenchmarkBatch, IsTheFirstDimensionWhereNoLayoutSaysOtherwise)
{
    auto r = on_host(small().mlp, {"-b", "5", "-niter", "4"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ WARNING ] -b: no layout says which dimension of input 'data' "
                       "is the batch: the first one is used\n"));
    EXPECT_TRUE(r.says("[ INFO ] Model batch size: 5\n"));
    EXPECT_TRUE(r.says("[ INFO ] Reshaping model: 'data': [5,16]\n"));
    EXPECT_TRUE(r.says("data (node: data_node) : f32 / [N,...] / [5,16]\n"));
    expect_throughput(r, 5.0 * r.count());
    /* an input with a layout takes the batch from there */
    r = on_host(small().pair, {"-b", "3", "-layout", "b[CN]", "-shape", "b[2,2]",
                               "-niter", "1", "-nireq", "1"});
    EXPECT_TRUE(r.says("Reshaping model: 'a': [3,2], 'b': [2,3]\n")) << r.outcome.out;
    EXPECT_EQ(r.all("\\[ WARNING \\] -b: no layout .* input 'a' .*").size(), 1u);
    EXPECT_EQ(r.all("\\[ WARNING \\] -b: no layout .* input 'b' .*").size(), 0u);
    r = on_host(small().mlp, {"-b", "5", "-layout", "[DC]", "-niter", "1"});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("-b 5 needs a layout with N"));
}

/* ---- lines ------------------------------------------------------------------------- */

TEST(BenchmarkLines, AreThereForScripts)
{
    auto r = on_host(small().mlp, {"-niter", "0"});
    EXPECT_TRUE(r.says("Model compiled successfully"));
    EXPECT_TRUE(r.says("Skipping inference due to -niter 0"));
    EXPECT_TRUE(r.says("(skipped)"));
    EXPECT_FALSE(r.says("FPS"));
    r = on_host(small().mlp, {"-niter", "1", "-no_warmup"});
    EXPECT_TRUE(r.says("Skipping warmup inference due to -no_warmup flag"));
    EXPECT_FALSE(r.says("First inference took"));
    r = BenchmarkRun({"-h"});
    EXPECT_TRUE(r.says("-no_warmup"));
    EXPECT_TRUE(r.says("Skip warmup inference"));
    EXPECT_TRUE(r.says("niter 0"));
}

/* The properties show the hint and the streams that were set, though nothing depends on them. */
TEST(BenchmarkLines, HaveThePropertiesThatScriptsRead)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    auto r = BenchmarkRun({"-m", small().mlp, "-d", "CPU", "-niter", "1"});
    EXPECT_EQ(r.all("\\[ INFO \\]   PERFORMANCE_HINT: THROUGHPUT").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]   NUM_STREAMS: \\d+").size(), 1u);
    EXPECT_EQ(r.all("\\[ INFO \\]   INFERENCE_NUM_THREADS: \\d+").size(), 1u);
    r = BenchmarkRun({"-m", small().mlp, "-d", "CPU", "-niter", "1", "-hint", "none",
                      "-nstreams", "3", "-nthreads", "2"});
    EXPECT_EQ(r.all("\\[ INFO \\]   NUM_STREAMS: 3").size(), 1u) << r.outcome.out;
    EXPECT_EQ(r.all("\\[ INFO \\]   INFERENCE_NUM_THREADS: 2").size(), 1u);
}
