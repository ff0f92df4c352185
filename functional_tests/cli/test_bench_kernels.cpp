/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe bench --kernels: its problems, its output, and invalid problems.
 */
#include <set>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/text.h"

static const char small[] = "linear N=64 K=256 T=1 u4 g128 f16";

static Words
kernels(const Words &more)
{
    Words words = {"bench", "--kernels", "--seconds", "0.001"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/* Writes a file with these lines and returns its path. */
static std::string
problems(const Folder &folder, const std::string &lines)
{
    folder.write("problems.txt", lines);
    return folder / "problems.txt";
}

TEST(BenchKernels, ListsTheProblemsThatItTakesItself)
{
    const Outcome all = run(kernels({"--list"}));
    EXPECT_EQ(all.code, 0) << all.err;
    EXPECT_EQ(all.err, "");
    const Outcome some = run(kernels({"--list", "--filter", "q4_k"}));
    EXPECT_GT(count(some.out, "\n"), 2u) << some.out;
    EXPECT_EQ(count(some.out, "\n"), count(all.out, "q4_k"));
    Folder folder("kernels");
    const Outcome same =
        run(kernels({"--list", "-f", problems(folder, "# all\n\n" + all.out)}));
    EXPECT_EQ(same.code, 0) << same.err;
    EXPECT_EQ(same.out, all.out) << "its lines are what it reads";
    EXPECT_EQ(run(kernels({"--list", "-f", "-"}), {}, folder / "problems.txt").out,
              all.out);
}

TEST(BenchKernels, TimesEachFamilyOnce)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Folder folder("kernels");
    const std::string file = problems(
        folder, std::string(small) + "\nmoe E=8 K=2 H=256 I=256 T=2 q4_0 f16 # small\n");
    const Outcome o = run(kernels({"--all", "--json", "-f", file}));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    const Json json(o.out);
    EXPECT_GT(json.number("/read_bytes_per_second"), 0);
    EXPECT_GT(json.number("/flops"), 0);
    std::set<std::string> seen;
    const size_t n = yyjson_arr_size(json.at("/results"));
    ASSERT_GE(n, 4u) << o.out;
    for (size_t i = 0; i < n; i++) {
        const std::string at = "/results/" + std::to_string(i) + "/";
        const double seconds = json.number(at + "seconds");
        std::string run = json.text(at + "problem");
        const double bytes = run == small ? 64 * 256 * (4 + 20.0 / 128) / 8
                                          : 4.0 * 3 * 256 * 256 * 18 / 32;
        EXPECT_NEAR(json.number(at + "bytes_per_second") * seconds, bytes, 1e-6 * bytes);
        for (size_t k = 0; k < yyjson_arr_size(json.at(at + "kernels")); k++)
            run += " " + json.text(at + "kernels/" + std::to_string(k));
        EXPECT_TRUE(seen.insert(run).second) << run << " is told twice";
    }
    EXPECT_TRUE(contains(*seen.begin(), "linear_")) << *seen.begin();
}

TEST(BenchKernels, RefusalsDoNotNameAVariableThatTheUserHasNotSet)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Folder folder("kernels");
    const std::string file = problems(folder, "linear N=64 K=256 T=16 q4_k f32\n");
    const Outcome o = run(kernels({"-f", file}));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.find("XM_FORCE"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("linear_gemm_vnni cannot run: f32"), std::string::npos) << o.out;
}

class BenchKernelsMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(BenchKernelsMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"bench", "--kernels"});
}

static const Mistake mistakes[] = {
    {"Option", {"--secnds", "1"}, 2, "did you mean --seconds? See '"},
    {"Word", {"model.gguf"}, 2, "model.gguf"},
    {"ListOfJson", {"--list", "--json"}, 2, "--list cannot be combined"},
    {"NoTime", {"--seconds", "0"}, 2, "option --seconds takes a number above 0"},
    {"NoFile", {"--list", "-f", "absent.txt"}, 3, "'absent.txt' cannot be read"},
    {"Folder", {"--list", "-f", "/"}, 3, "'/' cannot be read"},
    {"NoneLeftToTime", {"--filter", "q9"}, 2, "no problem contains 'q9'"},
    {"NoneLeft", {"--list", "--filter", "q9"}, 2, "no problem contains 'q9'"},
    {"Device", {"--device", "GPU.99"}, 4, "there is no device 'GPU.99'"},
    {"DeviceName", {"--device", "TPU"}, 4, "there is no device 'TPU'"},
};
INSTANTIATE_TEST_SUITE_P(CommandLine, BenchKernelsMistakes, testing::ValuesIn(mistakes),
                         mistake_name);

struct Line {
    const char *text, *says;
};

TEST(BenchKernels, NamesTheLineThatIsNoProblem)
{
    const Line lines[] = {
        {"lnear N=1", "expected linear, moe or attention"},
        {"linear N=64 K=256 T=1 u4 g128", "expected the element types"},
        {"linear N=64 T=1 u4 g128 f16", "a size of the problem is missing"},
        {"linear N=-64 K=256 T=1 u4 g128 f16", "'N=-64' is neither"},
        {"linear N=64 K=200 T=1 q4_k f16", "the group does not divide the columns"},
        {"moe E=2 K=3 H=256 I=256 T=1 u4 g128 f16",
         "K, the chosen experts, is above E, all experts"},
    };
    Folder folder("kernels");
    for (const Line &line : lines) {
        const std::string file =
            problems(folder, "# one\n" + std::string(line.text) + "\n");
        const Outcome o = run(kernels({"--list", "-f", file}));
        EXPECT_EQ(o.code, 3) << o.err;
        EXPECT_TRUE(contains(o.err, "problems.txt', line 2: ")) << o.err;
        EXPECT_TRUE(contains(o.err, line.says)) << o.err;
    }
    const std::string file = problems(folder, std::string(2000, 'x'));
    const Outcome o = run(kernels({"--list", "-f", file}));
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_TRUE(contains(o.err, "line 1: the line has more than 127 bytes")) << o.err;
}
