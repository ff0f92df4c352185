/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of xemoe benchmark_app, and the properties that it sets.
 */
#include "plugin/benchmark_app/benchmark_args.h"
#include "plugin/benchmark_app/benchmark_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using Words = std::vector<std::string>;

/* Reads a command line, with "-m model" in front. */
class Args
{
  public:
    explicit Args(const Words &more, bool with_model = true)
        : words(with_model ? Words{"benchmark_app", "-m", "model"}
                           : Words{"benchmark_app"})
    {
        words.insert(words.end(), more.begin(), more.end());
        for (std::string &word : words)
            pointers.push_back(word.data());
        xm_error err = {};
        status = xm_benchmark_args_read(static_cast<int>(pointers.size()),
                                        pointers.data(), &a, &err);
        sentence = err.text;
    }
    ~Args()
    {
        xm_benchmark_args_free(&a);
    }
    Args(const Args &) = delete;
    Args &operator=(const Args &) = delete;

    std::string given() const
    {
        std::string text;
        for (size_t i = 0; i < a.n_given; i++)
            text += std::string(a.given[i].flag) + "=" + a.given[i].value + "|";
        return text;
    }

    xm_benchmark_args a = {};
    xm_status status;
    std::string sentence;

  private:
    Words words;
    std::vector<char *> pointers;
};

TEST(BenchmarkArgs, HaveDefaults)
{
    const Args r({});
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    EXPECT_STREQ(r.a.model, "model");
    EXPECT_STREQ(r.a.device, "CPU");
    EXPECT_EQ(r.a.niter, XM_BENCHMARK_UNSAID);
    EXPECT_EQ(r.a.seconds, XM_BENCHMARK_UNSAID);
    EXPECT_EQ(r.a.percentile, 50u);
    EXPECT_EQ(r.a.nireq, 0u);
    EXPECT_EQ(r.a.pc, XM_SWITCH_UNSAID);
    EXPECT_EQ(r.a.hint, nullptr);
}

/* A flag has one dash or two, a short or a long name, and its value may follow a '='. */
TEST(BenchmarkArgs, HaveTwoNamesAndFourSpellings)
{
    for (const Words &words :
         {Words{"-niter", "7"}, Words{"--niter", "7"}, Words{"--number_iterations", "7"},
          Words{"-number_iterations=7"}, Words{"--niter=7"}}) {
        const Args r(words);
        ASSERT_EQ(r.status, XM_OK) << r.sentence;
        EXPECT_EQ(r.a.niter, 7u) << words[0];
        EXPECT_EQ(r.given(), "m=model|niter=7|");
    }
}

TEST(BenchmarkArgs, SwitchesStandAloneOrTakeAValue)
{
    EXPECT_EQ(Args({"-pc"}).a.pc, XM_SWITCH_ON);
    EXPECT_EQ(Args({"-pc", "-niter", "1"}).a.pc, XM_SWITCH_ON);
    EXPECT_EQ(Args({"-pc", "false", "-niter", "1"}).a.pc, XM_SWITCH_OFF);
    EXPECT_EQ(Args({"--pc=No"}).a.pc, XM_SWITCH_OFF);
    EXPECT_EQ(Args({"-inference_only", "TRUE"}).a.inference_only, XM_SWITCH_ON);
    EXPECT_EQ(Args({"-inference_only", "0"}).a.inference_only, XM_SWITCH_OFF);
    EXPECT_EQ(Args({"-pc=maybe"}).sentence,
              "option -pc takes true or false, found 'maybe'");
    EXPECT_EQ(Args({"-pc", "maybe"}).sentence, "'maybe' is one word too many");
    EXPECT_EQ(Args({"-pc", "-pcseq", "yes"}).given(), "m=model|pc=|pcseq=yes|");
}

/* An empty value counts as not given: scripts pass unset variables so. */
TEST(BenchmarkArgs, EmptyValuesAreNotSaid)
{
    const Args r({"-shape", "", "-data_shape", "", "-layout", "", "-report_folder", "",
                  "-dump_config", "", "-load_config", "", "--cache_dir="});
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    for (const char *text : {r.a.shape, r.a.data_shape, r.a.layout, r.a.report_folder,
                             r.a.dump_config, r.a.load_config, r.a.cache_dir})
        EXPECT_EQ(text, nullptr);
    EXPECT_EQ(Args({"-d", ""}).sentence,
              "option -d needs a value: DEVICE, found an empty one");
    EXPECT_EQ(Args({"-shape", "[1]", "-shape", ""}).a.shape, nullptr);
}

TEST(BenchmarkArgs, HaveTheLongNamesOfOpenVino)
{
    EXPECT_EQ(Args({"--batch_size", "3"}).a.batch, 3u);
    EXPECT_EQ(Args({"--maximum_inference_rate", "2.5"}).a.max_irate, 2.5);
    EXPECT_EQ(Args({"--perf_counts_sort", "sort"}).given(), "m=model|pcsort=sort|");
    EXPECT_EQ(Args({"--path_to_cldnn_config", "x.xml"}).sentence,
              "option -c: custom kernels are not supported; all kernels are built in");
}

TEST(BenchmarkArgs, ZeroSecondsAndThreadsAreNotSaid)
{
    const Args r({"-t", "0", "-nthreads", "0"});
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    EXPECT_EQ(r.a.seconds, XM_BENCHMARK_UNSAID);
    EXPECT_EQ(r.a.nthreads, XM_BENCHMARK_UNSAID);
    EXPECT_EQ(r.given(), "m=model|t=0|nthreads=0|");
}

/* An empty word ends at its '\0', even if the bytes behind it spell a flag. */
TEST(BenchmarkArgs, AnEmptyWordIsNoFlag)
{
    char memory[] = "\0niter=5", program[] = "benchmark_app", m[] = "-m", model[] = "x";
    char *words[] = {program, m, model, memory};
    xm_benchmark_args a = {};
    xm_error err = {};
    EXPECT_EQ(xm_benchmark_args_read(4, words, &a, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "'' is one word too many");
    EXPECT_EQ(a.niter, XM_BENCHMARK_UNSAID);
    xm_benchmark_args_free(&a);
}

TEST(BenchmarkArgs, FilesGoUpToTheNextFlag)
{
    const Args r({"-i", "a:x.npy", "b:y.bin,z.bin", "-niter", "3"});
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    ASSERT_EQ(r.a.files.n, 2u);
    EXPECT_STREQ(r.a.files.list[0], "a:x.npy");
    EXPECT_STREQ(r.a.files.list[1], "b:y.bin,z.bin");
    EXPECT_EQ(r.given(), "m=model|i=a:x.npy b:y.bin,z.bin|niter=3|");
    const Args attached({"--paths_to_input=x.npy", "-pc"});
    ASSERT_EQ(attached.a.files.n, 1u);
    EXPECT_STREQ(attached.a.files.list[0], "x.npy");
    EXPECT_EQ(Args({"-i", "-pc"}).sentence, "option -i needs a value: FILES");
}

TEST(BenchmarkArgs, TheLastValueCounts)
{
    const Args r({"-niter", "3", "-t", "2", "-niter", "9"});
    EXPECT_EQ(r.a.niter, 9u);
    EXPECT_EQ(r.given(), "m=model|niter=9|t=2|");
}

TEST(BenchmarkArgs, MistakesNameTheFlag)
{
    const struct {
        Words words;
        const char *sentence;
    } cases[] = {
        {{"-api", "both"}, "option -api takes one of sync async, found 'both'"},
        {{"-api", "syn"}, "option -api takes one of sync async, found 'syn'"},
        {{"-api", ""}, "option -api takes one of sync async, found ''"},
        {{"-niter", "-3"}, "option -niter takes a whole number from 0, found '-3'"},
        {{"-niter", "2.5"}, "option -niter takes a whole number from 0, found '2.5'"},
        {{"-niter", "18446744073709551615"},
         "option -niter takes a whole number from 0 below 2^64 - 1, "
         "found '18446744073709551615'"},
        {{"-t", "-1"}, "option -t takes a whole number from 0, found '-1'"},
        {{"-nthreads", "x"}, "option -nthreads takes a whole number from 0, found 'x'"},
        {{"-t"}, "option -t needs a value: S"},
        {{"-t", "-pc"}, "option -t needs a value: S"},
        {{"-max_irate", "1,5"},
         "option -max_irate takes a number from 0, found '1,5': write '.' as the decimal "
         "point"},
        {{"-max_irate", "-1"}, "option -max_irate takes a number from 0, found '-1'"},
        {{"-latency_percentile", "101"},
         "option -latency_percentile takes a number from 1 to 100, found 101"},
        {{"-latency_percentile", "0"},
         "option -latency_percentile takes a whole number from 1, found '0'"},
        {{"-t", "18446744073709552"},
         "option -t takes fewer seconds than 18446744073709552"},
        {{"-report_type", "all"},
         "option -report_type takes one of no_counters average_counters "
         "detailed_counters, found 'all'"},
        {{"-exec_graph_path", ""},
         "option -exec_graph_path needs a value: FILE, found an empty one"},
        {{"-foo"}, "there is no option -foo"},
        {{"foo"}, "'foo' is one word too many"},
        {{""}, "'' is one word too many"},
        {{"-c", "x.xml"},
         "option -c: custom kernels are not supported; all kernels are built in"},
        {{"-imean", "1"},
         "option -mean_values: preprocessing of inputs is not supported"},
    };
    for (const auto &c : cases) {
        const Args r(c.words);
        EXPECT_EQ(r.status, XM_INVALID);
        EXPECT_EQ(r.sentence, c.sentence);
    }
    EXPECT_EQ(Args({}, false).sentence, "which model? Give -m PATH");
    EXPECT_EQ(Args({"-use_device_mem"}).a.device_memory, XM_SWITCH_ON);
}

TEST(BenchmarkArgs, HelpNeedsNothingElse)
{
    const Args r({"-h", "-foo"}, false);
    EXPECT_EQ(r.status, XM_OK);
    EXPECT_EQ(r.a.help, XM_SWITCH_ON);
    xm_strbuf text = {};
    xm_benchmark_args_help(&text);
    EXPECT_NE(std::string(xm_strbuf_text(&text)).find("-niter, --number_iterations N\n"),
              std::string::npos);
    xm_strbuf_free(&text);
}

/* ---- properties -------------------------------------------------------------------- */

/* The properties that a command line sets; text() lists them in order as "device key value
 * source". */
struct Config {
    explicit Config(const Words &words) : args(words)
    {
        xm_error err = {};
        EXPECT_EQ(args.status, XM_OK) << args.sentence;
        status = xm_benchmark_config_make(&args.a, &c, &err);
        sentence = err.text;
    }
    ~Config()
    {
        xm_benchmark_config_free(&c);
    }
    Config(const Config &) = delete;
    Config &operator=(const Config &) = delete;
    std::string text() const
    {
        std::string s;
        for (size_t i = 0; i < c.n; i++)
            s += std::string(c.list[i].device) + " " + c.list[i].key + " " +
                 c.list[i].value + " " + (c.list[i].source ? c.list[i].source : "none") +
                 "|";
        return s;
    }
    Args args;
    xm_benchmark_config c = {};
    xm_status status;
    std::string sentence;
};

TEST(BenchmarkConfig, ADeviceGetsAHint)
{
    EXPECT_EQ(Config({}).text(), "CPU PERFORMANCE_HINT THROUGHPUT none|");
    EXPECT_EQ(Config({"-hint", "latency"}).text(), "CPU PERFORMANCE_HINT LATENCY -hint|");
    EXPECT_EQ(Config({"-hint", "ctput"}).text(),
              "CPU PERFORMANCE_HINT CUMULATIVE_THROUGHPUT -hint|");
    EXPECT_EQ(Config({"-hint", "none"}).text(), "");
    EXPECT_EQ(Config({"-api", "sync"}).text(), "CPU PERFORMANCE_HINT LATENCY none|");
    EXPECT_EQ(Config({"-api", "async"}).text(), "CPU PERFORMANCE_HINT THROUGHPUT none|");
    EXPECT_EQ(Config({"-api", "sync", "-hint", "tput"}).text(),
              "CPU PERFORMANCE_HINT THROUGHPUT -hint|");
    EXPECT_EQ(Config({"-nstreams", "2"}).text(), "CPU NUM_STREAMS 2 -nstreams|");
}

TEST(BenchmarkConfig, RequestsAreAPropertyToo)
{
    EXPECT_EQ(Config({"-nireq", "3", "-hint", "none"}).text(),
              "CPU PERFORMANCE_HINT_NUM_REQUESTS 3 -nireq|");
    EXPECT_EQ(Config({"-nireq", "0", "-hint", "none"}).text(), "");
}

TEST(BenchmarkConfig, ValuesMayBeForADevice)
{
    const Config c({"-d", "MULTI:GPU.1,CPU", "-hint", "none", "-infer_precision",
                    "CPU:f32,GPU.1:f16", "-nstreams", "CPU:4", "-pin", "NO", "-nthreads",
                    "3", "-cdir", "a,b"});
    EXPECT_EQ(c.text(), "CPU NUM_STREAMS 4 -nstreams|"
                        "GPU.1 INFERENCE_NUM_THREADS 3 -nthreads|"
                        "CPU INFERENCE_NUM_THREADS 3 -nthreads|"
                        "GPU.1 ENABLE_CPU_PINNING NO -pin|CPU ENABLE_CPU_PINNING NO -pin|"
                        "GPU.1 INFERENCE_PRECISION_HINT f16 -infer_precision|"
                        "CPU INFERENCE_PRECISION_HINT f32 -infer_precision|"
                        "GPU.1 CACHE_DIR a,b -cdir|CPU CACHE_DIR a,b -cdir|");
    const Config wrong({"-d", "CPU", "-infer_precision", "GPU:f16"});
    EXPECT_EQ(wrong.status, XM_INVALID);
    EXPECT_EQ(wrong.sentence, "option -infer_precision: Incorrect device name 'GPU': -d "
                              "has no such device");
    const Config more({"-d", "CPU", "-nstreams", "CPU:2, GPU:4"});
    EXPECT_EQ(more.status, XM_INVALID);
    EXPECT_EQ(more.sentence,
              "option -nstreams: Incorrect device name 'GPU': -d has no such device");
    EXPECT_EQ(Config({"-nstreams", ","}).sentence,
              "option -nstreams names none of the devices of -d, found ','");
}

TEST(BenchmarkConfig, FindsTheDevicesOfAList)
{
    const struct {
        const char *device, *names;
    } rows[] = {
        {"GPU.1", "GPU.1|"},
        {"FOO:CPU", "FOO:CPU|"},
        {"HETERO:GPU.1,CPU", "GPU.1|CPU|"},
        {"MULTI:CPU(2),GPU(4)", "CPU|GPU|"},
        {"BATCH:GPU(4)", "GPU|"},
        {"AUTO:GPU,", "GPU|"},
        {"AUTO:-GPU,CPU", "CPU|"},
        {"AUTO:-CPU", "AUTO:-CPU|"},
        {"AUTO:", "AUTO:|"},
        {"AUTO", "AUTO|"},
    };
    for (const auto &row : rows) {
        const Config config({"-d", row.device});
        std::string names;
        for (size_t i = 0; i < config.c.n_devices; i++)
            names += std::string(config.c.devices[i]) + "|";
        EXPECT_EQ(names, row.names) << row.device;
    }
}

TEST(BenchmarkConfig, CountersAskForMeasurement)
{
    for (const Words &words : {Words{"-pc"}, Words{"-pcsort", "sort"},
                               Words{"-report_type", "average_counters"},
                               Words{"-report_type", "detailed_counters"}})
        EXPECT_EQ(Config(words).text(),
                  "CPU PERF_COUNT YES -pc|CPU PERFORMANCE_HINT THROUGHPUT none|");
    for (const Words &words :
         {Words{"-pc", "false"}, Words{"-report_type", "no_counters"}})
        EXPECT_EQ(Config(words).text(), "CPU PERFORMANCE_HINT THROUGHPUT none|");
}

class ConfigFile : public testing::Test
{
  protected:
    void TearDown() override
    {
        unlink(path.c_str());
    }
    void write(const std::string &text) const
    {
        std::ofstream(path) << text;
    }
    std::string read() const
    {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    const std::string path =
        testing::TempDir() + "xemoe_benchmark_" + std::to_string(getpid()) + ".json";
};

TEST_F(ConfigFile, IsLoadedAndFlagsWin)
{
    write(R"({"CPU": {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 2,
              "PERF_COUNT": true, "INFERENCE_PRECISION_HINT": "f16"}})");
    EXPECT_EQ(Config({"-load_config", path}).text(),
              "CPU PERFORMANCE_HINT LATENCY -load_config|CPU NUM_STREAMS 2 -load_config|"
              "CPU PERF_COUNT YES -load_config|"
              "CPU INFERENCE_PRECISION_HINT f16 -load_config|");
    EXPECT_EQ(
        Config({"-load_config", path, "-hint", "tput", "-infer_precision", "f32"}).text(),
        "CPU PERFORMANCE_HINT THROUGHPUT -hint|CPU NUM_STREAMS 2 -load_config|"
        "CPU PERF_COUNT YES -load_config|"
        "CPU INFERENCE_PRECISION_HINT f32 -infer_precision|");
}

TEST_F(ConfigFile, HasASentenceForEachMistake)
{
    const char *const cases[][2] = {
        {"[]", "is not a JSON object of devices"},
        {R"({"CPU": 3})", "'CPU' is not an object of properties"},
        {R"({"CPU": {"A": [1]}})", "'A' of device CPU is not a text or a number"},
    };
    for (const auto &c : cases) {
        write(c[0]);
        const Config r({"-load_config", path});
        EXPECT_NE(r.status, XM_OK) << c[0];
        EXPECT_EQ(r.sentence.rfind("-load_config: ", 0), 0u) << r.sentence;
        EXPECT_NE(r.sentence.find(c[1]), std::string::npos) << r.sentence;
    }
    unlink(path.c_str());
    EXPECT_EQ(Config({"-load_config", path}).sentence.rfind("-load_config: ", 0), 0u);
}

TEST_F(ConfigFile, IsDumpedSoThatItLoads)
{
    xm_error err = {};
    const Config c(
        {"-d", "MULTI:CPU,GPU", "-hint", "latency", "-infer_precision", "GPU:f16"});
    ASSERT_EQ(xm_benchmark_config_dump(&c.c, path.c_str(), &err), XM_OK) << err.text;
    std::string plain;
    for (char letter : read())
        plain += isspace(letter) ? "" : std::string(1, letter);
    EXPECT_EQ(plain, R"({"GPU":{"INFERENCE_PRECISION_HINT":"f16","PERFORMANCE_HINT":)"
                     R"("LATENCY"},"CPU":{"PERFORMANCE_HINT":"LATENCY"}})");
    const Config again({"-d", "MULTI:CPU,GPU", "-load_config", path});
    EXPECT_STREQ(xm_benchmark_config_value(&again.c, "GPU", "INFERENCE_PRECISION_HINT"),
                 "f16");
    EXPECT_STREQ(xm_benchmark_config_value(&again.c, "CPU", "PERFORMANCE_HINT"),
                 "LATENCY");
    EXPECT_EQ(xm_benchmark_config_dump(&c.c, "/nowhere/x.json", &err), XM_IO);
    EXPECT_EQ(std::string(err.text).rfind("-dump_config: '/nowhere/x.json' cannot be "
                                          "written",
                                          0),
              0u)
        << err.text;
}

} // namespace
