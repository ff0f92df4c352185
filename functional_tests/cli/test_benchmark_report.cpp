/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that xemoe benchmark_app writes: reports and counters, as CSV, as JSON and on standard
 * output.
 */
#include <algorithm>

#include "functional_tests/cli/benchmark_test.h"
#include "functional_tests/common/files.h"

INSTANTIATE_TEST_SUITE_P(Devices, Benchmark, testing::Values("CPU", "REFERENCE"));

/* ---- reports ----------------------------------------------------------------------- */

using Cells = std::vector<std::string>;

static std::vector<Cells>
read_csv(const std::string &path, char separator = ';')
{
    std::vector<Cells> rows;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) {
        Cells row;
        std::istringstream cells(line);
        for (std::string cell; std::getline(cells, cell, separator);)
            row.push_back(cell);
        rows.push_back(row);
    }
    return rows;
}

static const Cells setup_names = {"topology",
                                  "target device",
                                  "API",
                                  "inference_only",
                                  "precision",
                                  "batch size",
                                  "number of iterations",
                                  "number of parallel infer requests",
                                  "duration (ms)"};
static const Cells result_names = {"read model time (ms)",
                                   "compile model time (ms)",
                                   "first inference time (ms)",
                                   "total execution time (ms)",
                                   "total number of iterations",
                                   "latency (ms)",
                                   "avg latency",
                                   "min latency",
                                   "max latency",
                                   "throughput"};

/* Returns the blocks of benchmark_report.csv, by title. */
static std::map<std::string, std::vector<Cells>>
read_report(const std::string &path)
{
    std::map<std::string, std::vector<Cells>> blocks;
    std::string title;
    for (const Cells &row : read_csv(path)) {
        if (row.empty())
            title.clear();
        else if (title.empty())
            title = row[0];
        else
            blocks[title].push_back(row);
    }
    return blocks;
}

static Cells
names_of(const std::vector<Cells> &rows)
{
    Cells names;
    for (const Cells &row : rows)
        names.push_back(row[0]);
    return names;
}

TEST_P(Benchmark, WritesAReport)
{
    const Folder folder("benchmark_report_" + device());
    const auto r = bench(small().mlp, {"-niter", "6", "-nireq", "2", "-report_type",
                                       "no_counters", "-report_folder", folder.path});
    expect_complete(r);
    EXPECT_EQ(folder.names(), std::set<std::string>{"benchmark_report.csv"});
    EXPECT_TRUE(r.says("[ INFO ] Statistics report is stored to " +
                       folder / "benchmark_report.csv\n"));
    const std::string text = read_file(folder / "benchmark_report.csv");
    EXPECT_EQ(text.substr(text.size() - 2), "\n\n"); /* after each block */
    auto report = read_report(folder / "benchmark_report.csv");
    const std::vector<Cells> &command = report["Command line parameters"];
    EXPECT_EQ(names_of(command),
              (Cells{"-m", "-d", "-niter", "-nireq", "-report_type", "-report_folder"}));
    EXPECT_EQ(command[2], (Cells{"-niter", "6"}));
    const std::vector<Cells> &setup = report["Configuration setup"];
    ASSERT_EQ(names_of(setup), setup_names);
    EXPECT_EQ(setup[0][1], "mlp");
    EXPECT_EQ(setup[1][1], device());
    EXPECT_EQ(setup[2][1], "async");
    EXPECT_EQ(setup[6][1], "6");
    EXPECT_EQ(setup[7][1], "2");
    const std::vector<Cells> &results = report["Execution results"];
    ASSERT_EQ(names_of(results), result_names);
    EXPECT_EQ(results[4][1], "6");
    EXPECT_NEAR(std::stod(results[3][1]), r.duration_ms(), 0.011);
    EXPECT_NEAR(std::stod(results[9][1]), r.throughput(), 0.011);
    EXPECT_NEAR(std::stod(results[6][1]), r.latency().at("Average"), 0.011);
}

TEST(BenchmarkReport, SaysTheSameAsJson)
{
    const Folder folder("benchmark_json");
    const auto r = on_host(small().mlp,
                           {"-niter", "4", "-json_stats", "-report_type", "no_counters",
                            "-latency_percentile", "75", "-report_folder", folder.path});
    ASSERT_EQ(r.outcome.code, 0);
    const Json j(read_file(folder / "benchmark_report.json"));
    EXPECT_EQ(j.text("/cmd_options/-niter"), "4");
    for (const std::string &name : setup_names)
        EXPECT_EQ(yyjson_is_str(j.at("/configuration_setup/" + name)),
                  name != "inference_only")
            << name;
    EXPECT_TRUE(yyjson_is_true(j.at("/configuration_setup/inference_only")));
    EXPECT_EQ(j.text("/cmd_options/-json_stats"), "") << "it was given without a value";
    EXPECT_EQ(j.text("/execution_results/total number of iterations"), "4");
    EXPECT_NE(j.text("/execution_results/latency (75 percentile) (ms)"), "");
    EXPECT_NEAR(std::stod(j.text("/execution_results/throughput")), r.throughput(),
                0.011);
}

static const Words groups = {"-data_shape", "data[1,16][4,16]", "-niter", "4", "-pcseq"};

TEST(BenchmarkReport, HasTheLatenciesOfGroups)
{
    const Folder folder("benchmark_groups");
    ASSERT_EQ(on_host(small().rows, groups + Words{"-report_type", "no_counters",
                                                   "-report_folder", folder.path})
                  .outcome.code,
              0);
    auto report = read_report(folder / "benchmark_report.csv");
    const std::vector<Cells> &results = report["Execution results"];
    Cells names = result_names;
    for (int g = 0; g < 2; g++)
        names.insert(names.end() - 1,
                     {"group", "avg latency", "min latency", "max latency"});
    ASSERT_EQ(names_of(results), names);
    EXPECT_EQ(results[9][1], "data: [1,16]");
    EXPECT_EQ(results[13][1], "data: [4,16]");
    EXPECT_LE(std::stod(results[11][1]), std::stod(results[12][1]));
}

TEST(BenchmarkReport, HasAnObjectOfEachGroupInJson)
{
    const Folder folder("benchmark_json_groups");
    ASSERT_EQ(
        on_host(small().rows, groups + Words{"-report_type", "no_counters", "-json_stats",
                                             "-report_folder", folder.path})
            .outcome.code,
        0);
    const Json j(read_file(folder / "benchmark_report.json"));
    EXPECT_EQ(yyjson_arr_size(j.at("/execution_results/groups")), 2u);
    EXPECT_EQ(j.text("/configuration_setup/batch size"), "1");
    EXPECT_EQ(j.text("/execution_results/groups/0/group"), "data: [1,16]");
    EXPECT_EQ(j.text("/execution_results/groups/1/group"), "data: [4,16]");
    EXPECT_NE(j.text("/execution_results/groups/1/max latency"), "");
    EXPECT_NE(j.text("/execution_results/throughput"), "");
}

TEST(BenchmarkReport, HasTheBatchAsItIsPrinted)
{
    const Folder folder("benchmark_batch");
    const auto r =
        on_host(language, {"-niter", "1", "-nireq", "1", "-layout", "input_ids[NC]",
                           "-report_type", "no_counters", "-report_folder", folder.path});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] Model batch size: ?\n"));
    EXPECT_TRUE(contains(read_file(folder / "benchmark_report.csv"), "\nbatch size;?\n"));
}

TEST(BenchmarkReport, HasTheErrorOfARunThatFailed)
{
    const Folder folder("benchmark_error");
    const auto r = on_host(
        small().rows, {"-report_type", "no_counters", "-report_folder", folder.path});
    EXPECT_EQ(r.outcome.code, 1);
    auto report = read_report(folder / "benchmark_report.csv");
    const std::vector<Cells> &results = report["Execution results"];
    ASSERT_FALSE(results.empty());
    EXPECT_EQ(names_of(results), (Cells{"read model time (ms)", "error"}))
        << "shapes are checked before the model is compiled";
    EXPECT_EQ(results.back(),
              (Cells{"error", "Input data is dynamic. Provide data shapes!"}));
    EXPECT_TRUE(report["Configuration setup"].empty()) << "nothing was set up";
}

/* The path is checked before the model is read. */
TEST(BenchmarkReport, HasTheErrorOfAGraphThatCannotBeWritten)
{
    const Folder folder("benchmark_no_graph");
    const auto r = on_host(
        small().mlp, {"-niter", "2", "-report_type", "no_counters", "-report_folder",
                      folder.path, "-exec_graph_path", folder / "missing/graph.xml"});
    EXPECT_EQ(r.outcome.code, 1) << r.outcome.out;
    auto blocks = read_report(folder / "benchmark_report.csv");
    EXPECT_EQ(names_of(blocks["Execution results"]), (Cells{"error"}));
}

/* The message comes before the results, so that throughput stays the last line. */
TEST(BenchmarkReport, IsSaidBeforeTheResults)
{
    const Folder folder("benchmark_report_order");
    const auto r = on_host(small().mlp, {"-niter", "1", "-report_type", "no_counters",
                                         "-report_folder", folder.path});
    ASSERT_EQ(r.outcome.code, 0);
    EXPECT_TRUE(r.says("[ INFO ] Statistics report is stored to " +
                       folder / "benchmark_report.csv\n[ INFO ] Execution Devices:"));
    EXPECT_TRUE(contains(r.lines.back(), "[ INFO ] Throughput:   "));
}

static const Cells counter_names = {"layerName", "execStatus",    "layerType",
                                    "execType",  "realTime (ms)", "cpuTime (ms)"};

/* Checks a table of counters from row `at` on: header, layers, sums. Returns the row after it. */
static size_t
expect_counters(const std::vector<Cells> &rows, size_t at)
{
    double sum = 0.0;
    EXPECT_EQ(rows.at(at), counter_names);
    for (at++; at < rows.size() && rows[at].at(0) != "Total"; at++) {
        EXPECT_EQ(rows[at].size(), 6u);
        EXPECT_TRUE(std::regex_match(
            rows[at][1], std::regex("Status\\.(EXECUTED|NOT_RUN|OPTIMIZED_OUT)")));
        EXPECT_NE(rows[at][2], "");
        sum += std::stod(rows[at][4]);
    }
    EXPECT_LT(at, rows.size());
    if (at < rows.size()) {
        EXPECT_EQ(rows[at].size(), 6u);
        EXPECT_NEAR(std::stod(rows[at].at(4)), sum, 0.001 * static_cast<double>(at));
        EXPECT_GT(std::stod(rows[at].at(4)), 0.0);
    }
    return at + 1;
}

static BenchmarkRun
counted(const Folder &folder, const Words &more)
{
    return BenchmarkRun(Words{"-m", language, "-d", "CPU", "-niter", "2", "-nireq", "2",
                              "-report_folder", folder.path} +
                        more);
}

TEST(BenchmarkCounters, AreWrittenAsCsv)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_counters");
    auto r = counted(folder, {"-report_type", "average_counters"});
    expect_complete(r);
    const std::string average = folder / "benchmark_average_counters_report.csv";
    EXPECT_TRUE(r.says("[ INFO ] Performance counters report is stored to " + average));
    EXPECT_FALSE(r.says("layerType:")); /* only -pc prints the table */
    auto rows = read_csv(average);
    const auto expect_end = [&rows](size_t at) { /* an empty line */
                                                 ASSERT_LT(at, rows.size());
                                                 EXPECT_TRUE(rows[at].empty());
    };
    expect_end(expect_counters(rows, 0));
    expect_complete(counted(folder, {"-report_type", "detailed_counters"}));
    rows = read_csv(folder / "benchmark_detailed_counters_report.csv");
    const size_t first = expect_counters(rows, 0);
    expect_end(first);
    const size_t second = expect_counters(rows, first + 1);
    expect_end(second);
    EXPECT_EQ(second + 1, rows.size());
}

TEST(BenchmarkCounters, AreWrittenAsJson)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_json_counters");
    expect_complete(counted(folder, {"-report_type", "average_counters", "-json_stats"}));
    const Json average(read_file(folder / "benchmark_average_counters_report.json"));
    EXPECT_EQ(average.text("/report_type"), "average");
    double sum = 0.0;
    size_t i, n;
    yyjson_val *node;
    yyjson_arr_foreach(average.at("/avg_performance/nodes"), i, n, node)
    {
        for (const char *key : {"name", "node_type", "status", "exec_type"})
            EXPECT_TRUE(yyjson_is_str(yyjson_obj_get(node, key))) << key;
        const char *real = yyjson_get_str(yyjson_obj_get(node, "real_time"));
        ASSERT_NE(real, nullptr);
        EXPECT_TRUE(std::regex_match(real, std::regex("\\d+\\.\\d{3}"))) << real;
        sum += std::strtod(real, nullptr);
        EXPECT_TRUE(yyjson_is_str(yyjson_obj_get(node, "cpu_time")));
    }
    EXPECT_GT(sum, 0.0);
    EXPECT_NEAR(std::stod(average.text("/avg_performance/total_real_time")), sum,
                1e-3 * static_cast<double>(n + 1));
    expect_complete(
        counted(folder, {"-report_type", "detailed_counters", "-json_stats"}));
    const Json detailed(read_file(folder / "benchmark_detailed_counters_report.json"));
    EXPECT_EQ(detailed.text("/report_type"), "detailed");
    EXPECT_EQ(yyjson_arr_size(detailed.at("/detailed_performance")), 2u);
    EXPECT_GT(std::stod(detailed.text("/detailed_performance/1/total_real_time")), 0.0);
}

static const char *const counter_row =
    "(.{20}) (Status\\.\\w+) +layerType: .{20,} execType: .{20,} realTime \\(ms\\): "
    "([0-9.]+) +cpuTime \\(ms\\): ([0-9.]+) +";

TEST(BenchmarkCounters, ArePrinted)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_pc");
    const auto r = counted(folder, {"-pc"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] Performance counts for 0-th infer request\n"));
    EXPECT_TRUE(r.says("[ INFO ] Performance counts for 1-th infer request\n"));
    EXPECT_GT(r.all(counter_row).size(), 10u) << r.outcome.out;
    EXPECT_EQ(r.all("Total time:     [0-9.]+ milliseconds").size(), 2u);
    EXPECT_EQ(r.all("Total CPU time: [0-9.]+ milliseconds").size(), 2u);
    EXPECT_TRUE(folder.names().empty());
}

static std::vector<double>
times_of(const BenchmarkRun &r)
{
    std::vector<double> list;
    for (const auto &row : r.all(std::string(counter_row) + "proportion: (.{8})"))
        list.push_back(std::stod(row[2]));
    return list;
}

TEST(BenchmarkCounters, AreSorted)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    for (const char *sort : {"sort", "no_sort", "simple_sort"}) {
        const Folder folder(std::string("benchmark_") + sort);
        const auto r =
            BenchmarkRun({"-m", language, "-d", "CPU", "-niter", "1", "-pcsort", sort,
                          "-report_type", "no_counters", "-report_folder", folder.path});
        expect_complete(r);
        EXPECT_TRUE(r.says("Performance counts sorted for 0-th infer request\n"));
        const std::vector<double> times = times_of(r);
        ASSERT_GT(times.size(), 5u) << r.outcome.out;
        EXPECT_EQ(std::is_sorted(times.rbegin(), times.rend()),
                  std::string(sort) != "no_sort");
        EXPECT_NEAR(r.number("Total proportion: ([0-9.]+) % "), 100.0, 0.1);
        EXPECT_EQ(r.all("Total time:       [0-9.]+ milliseconds").size(), 1u);
        EXPECT_EQ(r.all("Total CPU time:   [0-9.]+ milliseconds").size(), 1u);
        EXPECT_EQ(r.says("N/A%"), false) << sort;
        EXPECT_EQ(folder.names(), (std::set<std::string>{"benchmark_report.csv",
                                                         "benchmark_sorted_report.csv"}));
        const auto rows = read_csv(folder / "benchmark_sorted_report.csv", ',');
        EXPECT_GE(rows.size(), times.size() + 2);
    }
}

TEST(BenchmarkCounters, AreSortedInJson)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_sorted_json");
    expect_complete(counted(
        folder, {"-pcsort", "sort", "-report_type", "average_counters", "-json_stats"}));
    EXPECT_EQ(
        folder.names(),
        (std::set<std::string>{"benchmark_average_counters_report.json",
                               "benchmark_report.json", "benchmark_sorted_report.json"}));
    const Json j(read_file(folder / "benchmark_sorted_report.json"));
    EXPECT_EQ(j.text("/report_type"), "sorted");
    EXPECT_GT(yyjson_arr_size(j.at("/avg_performance/nodes")), 1u);
    EXPECT_TRUE(contains(j.text("/avg_performance/nodes/0/%"), "%"));
    EXPECT_TRUE(yyjson_is_str(j.at("/avg_performance/nodes/0/real_time")));
    EXPECT_TRUE(yyjson_is_str(j.at("/avg_performance/total_cpu_time")));
}

TEST(BenchmarkCounters, AreNoFilesWithoutAReport)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("benchmark_sorted_only");
    const auto r = counted(folder, {"-pcsort", "sort"});
    expect_complete(r);
    EXPECT_TRUE(r.says("Performance counts sorted for 0-th infer request\n"));
    EXPECT_TRUE(folder.names().empty());
}

TEST(BenchmarkCounters, OfADeviceThatHasNoneAreSaidToBeMissing)
{
    const auto r = on_host(small().mlp, {"-niter", "1", "-pc"});
    EXPECT_EQ(r.outcome.code, 0);
    EXPECT_NE(r.says("There are no performance counters"), r.says("Total time:"))
        << r.outcome.out;
}
