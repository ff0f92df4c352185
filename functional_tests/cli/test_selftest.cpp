/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe selftest: its report, its messages about wrong results and parts that do not end, and the
 * files it leaves.
 */
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/kernels.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

class Selftest : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        std::filesystem::create_directories(folder / "temporary");
    }
    Words words(const Words &more) const
    {
        Words all = {"selftest", "-o", folder / "report.json"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    Outcome selftest(const Words &more, Words settings = {}) const
    {
        settings.push_back("TMPDIR=" + folder / "temporary");
        return run(words(more), settings);
    }
    std::string report() const
    {
        return read_file(folder / "report.json");
    }
    bool left_nothing() const
    {
        return std::filesystem::is_empty(folder / "temporary");
    }
    Folder folder{"selftest"};
};

TEST_F(Selftest, ReportsWhatEachPartFound)
{
    Outcome o = selftest({"--only", "devices"});
    EXPECT_EQ(o.code, 0) << o.err << o.out;
    EXPECT_GT(Json(report()).number("/parts/0/result/devices/0/units"), 0);
    o = selftest({"--only", "u4, f32", "--force"});
    ASSERT_EQ(o.code, 0) << o.err << o.out;
    EXPECT_TRUE(contains(o.out, "\n2 of 2  ok      steps, u4, f32 ")) << o.out;
    EXPECT_TRUE(contains(o.out, "; 2 parts\n1 of 2  ok      making u4\n")) << o.out;
    EXPECT_TRUE(contains(o.out, "\n2 of 2 parts passed.")) << o.out;
    EXPECT_TRUE(contains(o.out, "but no paths or names of your system.\n")) << o.out;
    const Json json(report());
    EXPECT_EQ(json.text("/parts/0/part"), "making u4");
    EXPECT_EQ(json.text("/parts/1/part"), "steps, u4, f32");
    EXPECT_EQ(json.number("/parts/1/result/over"), 0);
    EXPECT_GT(json.number("/parts/1/result/compared"), 10);
    EXPECT_GT(yyjson_arr_size(json.at("/parts/1/result/kernels")), 10u);
    EXPECT_EQ(json.number("/good"), 2);
    EXPECT_FALSE(yyjson_get_bool(json.at("/stopped")));
    EXPECT_FALSE(contains(report(), folder.path)) << "a path of the user's";
    EXPECT_TRUE(left_nothing());
}

/* A broken kernel writes nothing. */
TEST_F(Selftest, FindsWhatIsWrong)
{
    const Folder kernels("selftest_kernels");
    std::string text = read_file(XM_KERNELS_DIR "/rms_norm_vec.cl");
    const size_t body = text.find('{', text.find("__kernel"));
    ASSERT_NE(body, text.npos);
    kernels.write("rms_norm_vec.cl", text.insert(body + 1, " return;"));
    const Outcome o = selftest({"--only", "u4, f32"}, {"XM_KERNEL_DIR=" + kernels.path});
    EXPECT_EQ(o.code, 5) << o.err;
    EXPECT_TRUE(contains(o.out, "\n2 of 2  FAILED  steps, u4, f32 ")) << o.out;
    EXPECT_TRUE(contains(o.out, "steps differ from the reference: rms_norm ")) << o.out;
    EXPECT_TRUE(contains(o.out, "\n1 of 2 parts passed.")) << o.out;
    const Json json(report());
    EXPECT_EQ(json.number("/failed"), 1);
    EXPECT_EQ(json.number("/parts/1/exit_code"), 5);
    EXPECT_GT(json.number("/parts/1/result/over"), 0);
    EXPECT_EQ(json.text("/device"), "GPU");
    EXPECT_TRUE(contains(report(), "\"XM_KERNEL_DIR\"")) << "without the path";
    EXPECT_FALSE(contains(report(), kernels.path));
    EXPECT_TRUE(left_nothing());
}

/* As if a driver froze the computer: the report has the parts before. */
TEST_F(Selftest, TheReportIsWrittenAfterEachPart)
{
    Terminal t(words({"--quick"}), {"TMPDIR=" + folder / "temporary"});
    t.wait_for("steps, u4", 60);
    t.signal(SIGKILL);
    t.finish(60);
    const Json json(report());
    EXPECT_EQ(json.text("/parts/0/part"), "devices");
    EXPECT_TRUE(yyjson_get_bool(json.at("/stopped")));
    EXPECT_GE(json.number("/good"), 1);
    EXPECT_EQ(json.number("/good") + json.number("/left_out"), 14);
}

/* A driver call fails: the part that fails names the call, also in the report. */
TEST_F(Selftest, TellsOfADriversFailures)
{
    const struct {
        const char *call, *nth;
        bool must_fail; /* else the program may work without the call */
    } list[] = {{"clCreateCommandQueueWithProperties", "1", true},
                {"clBuildProgram", "3", false},
                {"clCreateKernel", "4", true},
                {"clCreateBuffer", "3", false},
                {"clCreateSubBuffer", "2", true},
                {"clSetKernelArg", "100", true},
                {"clEnqueueNDRangeKernel", "17", true},
                {"clFlush", "2", true},
                {"clFinish", "9", true}};
    for (const auto &c : list) {
        const std::string fault = std::string(c.call) + ":" + c.nth;
        SCOPED_TRACE(fault);
        const Outcome o =
            selftest({"--only", "u4, f32", "--force"},
                     {"OPENCL_LAYERS=" XM_FAULT_LAYER, "XM_OPENCL_FAIL=" + fault});
        const Json json(report());
        const double code = json.number("/parts/1/exit_code");
        EXPECT_EQ(json.text("/parts/1/part"), "steps, u4, f32");
        if (code == 0 && !c.must_fail) {
            EXPECT_EQ(o.code, 0) << o.out;
            continue;
        }
        EXPECT_EQ(o.code, 5) << o.out;
        EXPECT_EQ(code, 4);
        EXPECT_TRUE(contains(json.text("/parts/1/said"), c.call))
            << json.text("/parts/1/said");
        EXPECT_TRUE(contains(o.out, "2 of 2  FAILED  steps, u4, f32 ")) << o.out;
        EXPECT_TRUE(left_nothing());
    }
}

TEST_F(Selftest, EndsPartsThatTakeTooLong)
{
    /* With a cache of the driver, kernels would be ready in time. */
    const Outcome o = selftest({"--only", "u4, f32", "--limit", "1"},
                               {"POCL_CACHE_DIR=" + folder / "driver"});
    EXPECT_EQ(o.code, 5) << o.err;
    EXPECT_TRUE(
        contains(o.out, "FAILED  steps, u4, f32           did not end within 1 s"))
        << o.out;
    EXPECT_FALSE(yyjson_get_bool(Json(report()).at("/parts/1/good")));
    EXPECT_TRUE(left_nothing());
}

/* The text equals that of a run without replays; both runs are made. */
TEST_F(Selftest, ComparesATextThatIsReplayed)
{
    const Outcome o = selftest({"--only", "without replays"});
    ASSERT_EQ(o.code, 0) << o.out << o.err;
    const Json json(report());
    EXPECT_EQ(json.text("/parts/0/part"), "making u4");
    EXPECT_EQ(json.text("/parts/1/part"), "a text");
    EXPECT_EQ(json.text("/parts/2/part"), "without replays");
    EXPECT_EQ(json.text("/parts/2/setting"), "XM_REPLAY=NO");
    EXPECT_EQ(json.ids("/parts/2/result/ids"), json.ids("/parts/1/result/ids"));
    EXPECT_EQ(json.ids("/parts/2/result/ids").size(), 32u);
}

TEST_F(Selftest, LeavesOutWhatADryRunCannotSay)
{
    const Outcome o = selftest({"--quick"}, {"XM_DRY_RUN=1"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "This is a dry run: nothing was executed, and 13 parts"))
        << o.out;
    EXPECT_EQ(Json(report()).number("/left_out"), 13);
}

/* Lines wrap only at the terminal's width. */
TEST_F(Selftest, FitsTheTerminal)
{
    for (unsigned short columns : {40, 60, 200}) {
        SCOPED_TRACE(columns);
        Terminal t(words({"--only", "u4, f32", "--force"}),
                   {"TMPDIR=" + folder / "temporary"}, columns);
        EXPECT_TRUE(t.wait_for("part 1 of 2: making u4"));
        EXPECT_EQ(t.finish(60), 0) << t.raw();
        for (const std::string &row : t.screen.rows())
            EXPECT_LT(row.size(), columns) << row;
        EXPECT_TRUE(contains(t.raw(), "2 of 2  ok      steps, u4, f32")) << t.text();
        EXPECT_EQ(contains(t.raw(), "passed. The report '" + folder.path +
                                        "/report.json' has all figures"),
                  columns == 200)
            << t.text();
    }
}

/* The report contains the parts that were done. */
TEST_F(Selftest, CtrlCKeepsWhatWasDone)
{
    Terminal t(words({"--quick"}), {"TMPDIR=" + folder / "temporary"});
    t.wait_for("steps, u4", 60);
    t.type("\003");
    EXPECT_EQ(t.finish(60), 130) << t.raw();
    const Json json(report());
    EXPECT_EQ(json.text("/parts/0/part"), "devices");
    EXPECT_TRUE(yyjson_get_bool(json.at("/stopped")));
    EXPECT_GE(json.number("/good"), 1);
    EXPECT_EQ(json.number("/good") + json.number("/left_out"), 14);
    EXPECT_TRUE(contains(t.raw(), "Stopped after ")) << t.raw();
    EXPECT_TRUE(contains(t.raw(), " of 14 parts. ")) << t.raw();
    EXPECT_TRUE(left_nothing());
}

TEST_F(Selftest, SIGTERMLeavesNothing)
{
    Program p(words({"--only", "u4, f32"}), {"TMPDIR=" + folder / "temporary"});
    while (left_nothing())
        usleep(1000);
    p.send(SIGTERM);
    EXPECT_EQ(p.finish().code, 128 + SIGTERM);
    EXPECT_TRUE(left_nothing());
}

class SelftestMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(SelftestMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"selftest"});
}

/* clang-format off */
INSTANTIATE_TEST_SUITE_P(CommandLine, SelftestMistakes, testing::Values(
    Mistake{"Part", {"--only", "nothing"}, 2, "no part of the test has 'nothing'"},
    Mistake{"There", {"-o", "/dev/null"}, 2, "'/dev/null' exists already"},
    Mistake{"Folder", {"-o", "/nowhere/report.json"}, 3, "'/nowhere/report.json'"},
    Mistake{"Device", {"-d", "GPU.7"}, 4, "GPU.7"},
    Mistake{"Mesh", {"-d", "CPU,CPU"}, 2, "option -d: selftest tests one device"},
    Mistake{"Limit", {"--limit", "0"}, 2, "--limit"}), mistake_name);
/* clang-format on */

} // namespace
