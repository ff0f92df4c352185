/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that benchmark_app's flags give by input name, its figures, and the format of its
 * reports.
 */
#include "plugin/benchmark_app/benchmark_config.h"
#include "plugin/benchmark_app/benchmark_out.h"
#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/benchmark_app/benchmark_shapes.h"
#include "plugin/benchmark_app/benchmark_stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace
{

/* ---- shapes ------------------------------------------------------------------------ */

struct Shapes {
    Shapes(const std::string &text, xm_benchmark_brackets kind) : given(text)
    {
        xm_error err = {};
        status = xm_benchmark_shapes_read("-x", given.c_str(), kind, &s, &err);
        sentence = err.text;
    }
    ~Shapes()
    {
        xm_benchmark_shapes_free(&s);
    }
    Shapes(const Shapes &) = delete;
    Shapes &operator=(const Shapes &) = delete;

    /* Returns the shapes as "name[1,3] name[..]". */
    std::string text() const
    {
        xm_strbuf b = {};
        for (size_t i = 0; i < s.n; i++) {
            xm_strbuf_printf(&b, "%s%.*s", i ? " " : "", (int)s.list[i].name.n,
                             s.list[i].name.text);
            xm_benchmark_dims_print(&s.list[i].dims, &b);
        }
        std::string copy = xm_strbuf_text(&b);
        xm_strbuf_free(&b);
        return copy;
    }
    const std::string given;
    xm_benchmark_shapes s = {};
    xm_status status;
    std::string sentence;
};

TEST(BenchmarkShapes, HaveFixedOpenAndBoundedDimensions)
{
    const char *const cases[][2] = {
        {"in1[1,3]", "in1[1,3]"},
        {"in1[1,3],in2[?,1..8]", "in1[1,3] in2[?,1..8]"},
        {"in1[-1, 2.. ] , in2[..4]", "in1[?,2..] in2[0..4]"},
        {"[5]", "[5]"},
        {"[]", "[]"},
        {"x:0[9223372036854775807]", "x:0[9223372036854775807]"},
    };
    for (const auto &c : cases) {
        const Shapes r(c[0], XM_BRACKETS_SHAPE);
        ASSERT_EQ(r.status, XM_OK) << r.sentence;
        EXPECT_EQ(r.text(), c[1]);
    }
}

TEST(BenchmarkShapes, OfGroupsStandBehindOneAnother)
{
    const Shapes r("in1[1,16][4,16],in2[1][4]", XM_BRACKETS_GROUPS);
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    EXPECT_EQ(r.text(), "in1[1,16] in1[4,16] in2[1] in2[4]");
    EXPECT_EQ(xm_benchmark_shapes_count(&r.s, "in1"), 2u);
    EXPECT_EQ(xm_benchmark_shapes_find(&r.s, "in1", 1)->dims.min[0], 4);
    EXPECT_EQ(xm_benchmark_shapes_find(&r.s, "in2", 2), nullptr);
    EXPECT_EQ(xm_benchmark_shapes_find(&r.s, "in3", 0), nullptr);
}

TEST(BenchmarkShapes, WithoutANameAreForAllThatHaveNone)
{
    const Shapes r("[1,16],in2[4]", XM_BRACKETS_GROUPS);
    EXPECT_EQ(xm_benchmark_shapes_find(&r.s, "in1", 0)->dims.rank, 2u);
    EXPECT_EQ(xm_benchmark_shapes_find(&r.s, "in2", 0)->dims.rank, 1u);
}

TEST(BenchmarkShapes, RefuseWhatIsNoneWithASentence)
{
    for (const char *text :
         {"", ",", "in1", "in1,", "in1[1],", "in1[1", "in1]1[", "in1[1,]", "in1[,1]",
          "in1[a]", "in1[-2]", "in1[3..1]", "in1[..]", "in1[1]x", "in1[1][2]",
          "in1[1,1,1,1,1,1,1,1,1]", "in1[9223372036854775808]", "in1[1],in1[2]"}) {
        const Shapes r(text, XM_BRACKETS_SHAPE);
        EXPECT_EQ(r.status, XM_INVALID) << text;
        EXPECT_EQ(r.sentence.rfind("option -x ", 0), 0u) << r.sentence;
    }
    for (const char *text : {"in1[?]", "in1[1..2]", "in1[-1]"})
        EXPECT_EQ(Shapes(text, XM_BRACKETS_GROUPS).status, XM_INVALID) << text;
    EXPECT_EQ(Shapes("in1[]", XM_BRACKETS_LAYOUT).status, XM_INVALID);
}

TEST(BenchmarkShapes, SayWhatFitsThem)
{
    const Shapes open("[?,1..8,3]", XM_BRACKETS_SHAPE);
    const struct {
        const char *text;
        bool fits;
    } cases[] = {{"[5,8,3]", true},   {"[0,1,3]", true},  {"[5,9,3]", false},
                 {"[5,0,3]", false},  {"[5,8,4]", false}, {"[5,8]", false},
                 {"[5,8,3,1]", false}};
    for (const auto &c : cases) {
        const Shapes fixed(c.text, XM_BRACKETS_GROUPS);
        EXPECT_EQ(xm_benchmark_dims_take(&open.s.list[0].dims, &fixed.s.list[0].dims),
                  c.fits)
            << c.text;
        EXPECT_TRUE(xm_benchmark_dims_are_fixed(&fixed.s.list[0].dims));
    }
    EXPECT_FALSE(xm_benchmark_dims_are_fixed(&open.s.list[0].dims));
    EXPECT_TRUE(xm_benchmark_dims_equal(&open.s.list[0].dims, &open.s.list[0].dims));
    const Shapes other("[?,1..9,3]", XM_BRACKETS_SHAPE);
    EXPECT_FALSE(xm_benchmark_dims_equal(&open.s.list[0].dims, &other.s.list[0].dims));
}

TEST(BenchmarkLayout, SaysWhereTheBatchIs)
{
    const struct {
        const char *text;
        uint32_t rank;
        int at;
        bool fits;
    } cases[] = {
        {"[N,C,H,W]", 4, 0, true},   {"[C,H,W,N]", 4, 3, true},
        {"[C,H,W]", 3, -1, true},    {"[N,height,?]", 3, 0, true},
        {"[N,C,H,W]", 2, 0, false},  {"[n,c]", 2, 0, true},
        {"[N,...]", 3, 0, true},     {"[C,...,N]", 4, 3, true},
        {"[C,...,N,H]", 5, 3, true}, {"[C,...,N]", 1, 0, false},
        {"[...]", 0, -1, true},      {"[C,N]", 1, -1, false},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(xm_benchmark_layout_batch(c.text, c.rank), c.at) << c.text;
        EXPECT_EQ(xm_benchmark_layout_fits(c.text, c.rank), c.fits) << c.text;
    }
    EXPECT_EQ(xm_benchmark_layout_batch(nullptr, 2), -1);
    const Shapes r("in1[NCHW],in2[N,C]", XM_BRACKETS_LAYOUT);
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    const xm_slice text = xm_benchmark_shapes_find(&r.s, "in2", 0)->text;
    EXPECT_EQ(std::string(text.text, text.n), "N,C");
}

TEST(BenchmarkValues, AreFoundByName)
{
    const struct {
        const char *text, *name, *value;
    } cases[] = {{"f16", "GPU", "f16"},
                 {"CPU:bf16,GPU:f32", "GPU", "f32"},
                 {"CPU:bf16, GPU : f32 ", "GPU", "f32"},
                 {"CPU:bf16", "GPU", ""},
                 {"CPU:bf16,f32", "GPU", "f32"},
                 {"x:0:f16", "x:0", "f16"},
                 {"in:f16, out:f16", "out", "f16"},
                 {"", "GPU", ""}};
    for (const auto &c : cases) {
        const xm_slice v = xm_benchmark_value_of(c.text, c.name);
        EXPECT_EQ(std::string(v.text, v.n), c.value) << c.text;
    }
}

/* ---- figures ----------------------------------------------------------------------- */

TEST(BenchmarkStats, ThePercentileIsOneOfThem)
{
    std::vector<double> ms = {4, 1, 3, 2};
    const xm_benchmark_latency l = xm_benchmark_latency_of(ms.data(), ms.size(), 50);
    EXPECT_EQ(l.percentile, 2);
    EXPECT_EQ(l.average, 2.5);
    EXPECT_EQ(l.min, 1);
    EXPECT_EQ(l.max, 4);
    std::vector<double> hundred;
    for (int i = 200; i > 0; i--)
        hundred.push_back(i);
    for (uint64_t p : {1u, 50u, 90u, 99u, 100u})
        EXPECT_EQ(xm_benchmark_latency_of(hundred.data(), 200, p).percentile, 2.0 * p);
    double one = 7;
    EXPECT_EQ(xm_benchmark_latency_of(&one, 1, 1).percentile, 7);
}

TEST(BenchmarkStats, IterationsAreWholeRounds)
{
    EXPECT_EQ(xm_benchmark_whole_rounds(5, 4), 8u);
    EXPECT_EQ(xm_benchmark_whole_rounds(8, 4), 8u);
    EXPECT_EQ(xm_benchmark_whole_rounds(5, 3), 6u);
    EXPECT_EQ(xm_benchmark_whole_rounds(UINT64_MAX - 1, 4), UINT64_MAX - 1);
}

std::string
latency_lines(const xm_benchmark_latency &l, uint64_t percent,
              xm_benchmark_latency_labels labels = XM_LATENCY_OF_ALL)
{
    testing::internal::CaptureStdout();
    xm_benchmark_print_latency(&l, percent, labels);
    return testing::internal::GetCapturedStdout();
}

/* The average decides the unit of all four latencies. */
TEST(BenchmarkOut, SmallLatenciesAreInMicroseconds)
{
    EXPECT_EQ(
        latency_lines({2.5, 1.0, 0.25, 123.456}, 50),
        "[ INFO ]    Median:        2.50 ms\n[ INFO ]    Average:       1.00 ms\n"
        "[ INFO ]    Min:           0.25 ms\n[ INFO ]    Max:           123.46 ms\n");
    EXPECT_EQ(latency_lines({2.5, 1.0, 0.25, 123.456}, 50, XM_LATENCY_OF_GROUP),
              "[ INFO ]    Median:     2.50 ms\n[ INFO ]    Average:    1.00 ms\n"
              "[ INFO ]    Min:        0.25 ms\n[ INFO ]    Max:        123.46 ms\n");
    EXPECT_EQ(latency_lines({0.01587, 0.04172, 0.01015, 1.5}, 90),
              "[ INFO ]    90 percentile:     15.87 us\n"
              "[ INFO ]    Average:       41.72 us\n[ INFO ]    Min:           10.15 us\n"
              "[ INFO ]    Max:           1500.00 us\n");
}

/* ---- reports ----------------------------------------------------------------------- */

class Report : public testing::Test
{
  protected:
    void SetUp() override
    {
        xm_benchmark_report_add(&r, XM_REPORT_COMMAND, "-m", "%s", "a;b \"c\"");
        xm_benchmark_report_add(&r, XM_REPORT_SETUP, "API", "%s", "async");
        xm_benchmark_report_add(&r, XM_REPORT_RESULTS, "throughput", "%.2f", 1234.5);
    }
    void TearDown() override
    {
        xm_benchmark_report_free(&r);
        unlink((folder + "/benchmark_report.csv").c_str());
        unlink((folder + "/benchmark_report.json").c_str());
        rmdir(folder.c_str());
    }
    std::string written(bool as_json) const
    {
        xm_error err = {};
        testing::internal::CaptureStdout();
        EXPECT_EQ(xm_benchmark_report_write(&r, folder.c_str(), as_json, &err), XM_OK)
            << err.text;
        const std::string path =
            folder + "/benchmark_report." + (as_json ? "json" : "csv");
        EXPECT_EQ(testing::internal::GetCapturedStdout(),
                  "[ INFO ] Statistics report is stored to " + path + "\n");
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    static std::string make_folder()
    {
        std::string name = testing::TempDir() + "xemoe_report_XXXXXX";
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        return name;
    }
    const std::string folder = make_folder();
    xm_benchmark_report r = {};
};

TEST_F(Report, IsThreeBlocksOfCsv)
{
    EXPECT_EQ(written(false), "Command line parameters\n-m;\"a;b \"\"c\"\"\"\n\n"
                              "Configuration setup\nAPI;async\n\n"
                              "Execution results\nthroughput;1234.50\n\n");
}

TEST_F(Report, IsThreeObjectsOfTexts)
{
    std::string plain;
    for (char letter : written(true))
        plain += letter == '\n' ? "" : std::string(1, letter);
    EXPECT_EQ(plain, R"({    "cmd_options": {        "-m": "a;b \"c\""    },    )"
                     R"("configuration_setup": {        "API": "async"    },    )"
                     R"("execution_results": {        "throughput": "1234.50"    }})");
}

/* A full disk is noticed only when the file is closed. */
TEST(DumpedConfig, SaysThatTheDiskIsFull)
{
    const xm_benchmark_config nothing = {};
    xm_error err = {};
    EXPECT_EQ(xm_benchmark_config_dump(&nothing, "/dev/full", &err), XM_IO);
    EXPECT_STREQ(err.text, "-dump_config: '/dev/full' cannot be written: No space left "
                           "on device");
}

TEST_F(Report, SaysWhereItCannotBeWritten)
{
    xm_error err = {};
    EXPECT_EQ(xm_benchmark_report_write(&r, "/nowhere", false, &err), XM_IO);
    EXPECT_STREQ(err.text, "'/nowhere/benchmark_report.csv' cannot be written: No such "
                           "file or directory");
}

} // namespace
