/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe benchmark_app: accepted flags, and failures for invalid ones.
 */
#include "functional_tests/cli/benchmark_test.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/terminal.h"

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
    {{"-ip", "zz"}, 2, "option -ip takes element types such as f32 and i64, found 'zz'"},
    {{"-op", "prob:"}, 2, "option -op takes element types such as f32 and i64, found ''"},
    {{"-iop", "data:f32, prob:zz"}, 2, "option -iop takes element types"},
    {{"-nireq", "4294967296"}, 2, "option -nireq takes a whole number up to 4294967295"},
    {{"-nthreads", "4294967296"}, 2, "option -nthreads takes a whole number up to"},
    {{"-infer_precision", "zz"}, 2, "option -infer_precision takes element types"},
    {{"-infer_precision", "CPU:f32"}, 2, "Incorrect device name 'CPU'"},
};

TEST(BenchmarkFlags, ThatAreWrongAreTheCommandLines)
{
    for (const Wrong &w : refused) {
        /* the model is not read yet */
        const auto r = on_host("/nonexistent.xml", w.flags);
        EXPECT_EQ(r.outcome.code, w.code) << w.sentence;
        EXPECT_EQ(r.outcome.out, "") << w.sentence;
        EXPECT_TRUE(contains(r.outcome.err, w.sentence)) << r.outcome.err;
    }
    EXPECT_EQ(BenchmarkRun(Words{}).outcome.code, 2);
}

static const Wrong failures[] = {
    {{"-ip", "u4"},
     1,
     "-ip u4: 'data_node' has element type f32 and cannot take tensors of element type "
     "u4"},
    {{"-ip", "f16", "-lfile"},
     1,
     "-ip f16: 'data' has type f32, and tensors of a compiled model are not converted"},
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

/* The exit code is that of every failure. */
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

/* The operations of openvino_tokenizers are built in. */
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

/* Lists are accepted as by the C API. */
TEST(BenchmarkFlags, TakeListsOfDevices)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const char *const alone =
        "xemoe: warning: device HETERO:CPU,REFERENCE uses CPU alone: the other devices "
        "of the list are not used; MESH: with the same list splits the model over them\n";
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

/* The file has OpenVINO's keys by device; flags take precedence over it. */
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

/* A file that was just written is accepted without a warning, also if the performance hint was
 * not given. */
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
