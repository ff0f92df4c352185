/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe benchmark_app on Intel's driver, run dry: all steps with their lines, reports and
 * counters, which list the kernels that the chip would run, without times.
 */
#include "functional_tests/cli/benchmark_run.h"
#include "functional_tests/dry_run/dry_run.h"

namespace
{

const std::string language = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* A chip, and a kernel of its own that the products of a prompt use. */
using Case = std::tuple<const char *, const char *>;

class DryBenchmark : public testing::TestWithParam<Case>
{
  protected:
    void SetUp() override
    {
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
        expect_chip(chip(std::get<0>(GetParam())));
    }
    static BenchmarkRun bench(const Words &flags)
    {
        Words words = {"-d", "GPU"};
        words.insert(words.end(), flags.begin(), flags.end());
        return BenchmarkRun(words, dry(chip(std::get<0>(GetParam()))));
    }
};

TEST_P(DryBenchmark, ReportsARun)
{
    const Folder folder("dry_benchmark");
    const auto r =
        bench({"-m", language, "-niter", "4", "-nireq", "2", "-data_shape",
               "input_ids[1,16][1,1]", "-pcseq", "-pc", "-report_type",
               "detailed_counters", "-json_stats", "-report_folder", folder.path});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out << r.outcome.err;
    EXPECT_EQ(r.steps(), all_steps);
    EXPECT_EQ(r.count(), 4.0);
    expect_throughput(r, 4.0);
    EXPECT_EQ(r.number("\\[ INFO \\] Tokens:\\s+(\\d+) tokens"), 34.0);
    EXPECT_EQ(r.all("\\[ INFO \\] Execution Devices:\\['GPU\\.0'\\]").size(), 1u);
    EXPECT_TRUE(r.says("[ WARNING ] The device reports no times: all are 0\n"));
    const Json report(read_file(folder / "benchmark_report.json"));
    EXPECT_EQ(report.text("/configuration_setup/target device"), "GPU");
    EXPECT_EQ(report.text("/execution_results/total number of iterations"), "4");
    const std::string counters =
        read_file(folder / "benchmark_detailed_counters_report.json");
    const Json layers(counters);
    EXPECT_EQ(yyjson_arr_size(layers.at("/detailed_performance")), 2u);
    EXPECT_EQ(layers.text("/detailed_performance/0/total_real_time"), "0.000");
    EXPECT_TRUE(contains(counters, "moe_gate_up_"));
}

/* With one group of shapes the counters are those of a prompt. */
TEST_P(DryBenchmark, NamesTheChipsKernels)
{
    const Folder folder("dry_benchmark_csv");
    const auto r =
        bench({"-m", language, "-niter", "1", "-nireq", "1", "-pcsort", "sort",
               "-report_type", "average_counters", "-report_folder", folder.path});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out << r.outcome.err;
    EXPECT_TRUE(contains(read_file(folder / "benchmark_average_counters_report.csv"),
                         std::get<1>(GetParam())));
    EXPECT_EQ(folder.names().size(), 3u);
}

TEST_P(DryBenchmark, ReshapesSmallModels)
{
    const Folder folder("dry_benchmark_small");
    const auto r = bench({"-m", small_mlp(2).save(folder / "mlp"), "-niter", "3", "-hint",
                          "latency", "-layout", "[NC]", "-b", "5"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] Reshaping model: 'data': [5,16]\n"));
    expect_throughput(r, 15.0);
}

/* A chip without matrix engines and one with them. */
INSTANTIATE_TEST_SUITE_P(Chips, DryBenchmark,
                         testing::Values(Case{"tgllp", "linear_gemm_sg"},
                                         Case{"dg2", "linear_gemm_dpas"}),
                         [](const testing::TestParamInfo<Case> &info) {
                             return std::string(std::get<0>(info.param));
                         });

} // namespace
