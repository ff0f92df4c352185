/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe selftest: its report, what it says of wrong results and of parts that do not end, and what
 * it leaves behind.
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
    EXPECT_TRUE(contains(o.out, "\nok      steps, u4, f32 ")) << o.out;
    EXPECT_TRUE(contains(o.out, "\n2 of 2 parts are good.")) << o.out;
    const Json json(report());
    EXPECT_EQ(json.text("/parts/0/part"), "making u4");
    EXPECT_EQ(json.text("/parts/1/part"), "steps, u4, f32");
    EXPECT_EQ(json.number("/parts/1/result/over"), 0);
    EXPECT_GT(json.number("/parts/1/result/compared"), 10);
    EXPECT_EQ(json.number("/good"), 2);
    EXPECT_FALSE(yyjson_get_bool(json.at("/stopped")));
    EXPECT_FALSE(contains(report(), folder.path)) << "a path of the user's";
    EXPECT_TRUE(left_nothing());
}

/* By a kernel that writes nothing. */
TEST_F(Selftest, FindsWhatIsWrong)
{
    const Folder kernels("selftest_kernels");
    std::string text = read_file(XM_KERNELS_DIR "/rms_norm_vec.cl");
    const size_t body = text.find('{', text.find("__kernel"));
    ASSERT_NE(body, text.npos);
    kernels.write("rms_norm_vec.cl", text.insert(body + 1, " return;"));
    const Outcome o = selftest({"--only", "u4, f32"}, {"XM_KERNEL_DIR=" + kernels.path});
    EXPECT_EQ(o.code, 5) << o.err;
    EXPECT_TRUE(contains(o.out, "\nFAILED  steps, u4, f32 ")) << o.out;
    EXPECT_TRUE(contains(o.out, "steps differ from the reference: rms_norm ")) << o.out;
    EXPECT_TRUE(contains(o.out, "\n1 of 2 parts are good.")) << o.out;
    const Json json(report());
    EXPECT_EQ(json.number("/failed"), 1);
    EXPECT_EQ(json.number("/parts/1/exit_code"), 5);
    EXPECT_GT(json.number("/parts/1/result/over"), 0);
    EXPECT_TRUE(left_nothing());
}

TEST_F(Selftest, EndsPartsThatTakeTooLong)
{
    const Outcome o = selftest({"--only", "u4, f32", "--limit", "1"});
    EXPECT_EQ(o.code, 5) << o.err;
    EXPECT_TRUE(
        contains(o.out, "FAILED  steps, u4, f32           did not end within 1 s"))
        << o.out;
    EXPECT_FALSE(yyjson_get_bool(Json(report()).at("/parts/1/good")));
    EXPECT_TRUE(left_nothing());
}

/* A text is that of a run in which nothing is replayed; both are run. */
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
    EXPECT_TRUE(contains(o.out, "This is a dry run: nothing was executed, and 15 parts"))
        << o.out;
    EXPECT_EQ(Json(report()).number("/left_out"), 15);
}

/* The report has what was done. */
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
    EXPECT_EQ(json.number("/good") + json.number("/left_out"), 16);
    EXPECT_TRUE(contains(t.raw(), "Stopped after ")) << t.raw();
    EXPECT_TRUE(contains(t.raw(), " of 16 parts. ")) << t.raw();
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
    Mistake{"There", {"-o", "/dev/null"}, 2, "'/dev/null' is there already"},
    Mistake{"Folder", {"-o", "/nowhere/report.json"}, 3, "'/nowhere/report.json'"},
    Mistake{"Device", {"-d", "GPU.7"}, 4, "GPU.7"},
    Mistake{"Limit", {"--limit", "0"}, 2, "--limit"}), mistake_name);
/* clang-format on */

} // namespace
