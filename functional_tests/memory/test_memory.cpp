// SPDX-License-Identifier: Apache-2.0
// Memory of a process that loads and runs a model of 0.5 GB: at most its weights, 10 % of
// them and 64 MiB above the same program with a small model, which has the same kernels.
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

namespace
{

constexpr double SLACK_MIB = 64.0;
const Words big = {"--experts", "128", "--moe-intermediate", "640"};
const Words small = {"--experts", "8", "--moe-intermediate", "128"};

struct Memory {
    double weights, loaded, peak; /* MiB */
};

/* A model in the test's temporary folder, gone with the test. */
class SyntheticModel
{
  public:
    explicit SyntheticModel(const Words &dimensions)
        : folder(testing::TempDir() + "xemoe_memory_" + std::to_string(getpid()))
    {
        Words words = {"make-model", "-o",         folder,      "--hidden",   "1024",
                       "--layers",   "4",          "--top-k",   "8",          "--heads",
                       "8",          "--kv-heads", "2",         "--head-dim", "128",
                       "--vocab",    "1000",       "--weights", "u4",         "--group",
                       "128"};
        words.insert(words.end(), dimensions.begin(), dimensions.end());
        Outcome made = run(words);
        EXPECT_EQ(made.code, 0) << made.err;
    }
    ~SyntheticModel()
    {
        std::filesystem::remove_all(folder);
    }

    /* Twice: the first run may have to build kernels, and compilers take memory. */
    Memory measure() const
    {
        generate();
        Json j(generate().out);
        auto figure = [&](const char *name) {
            return yyjson_get_num(j.at(std::string("/memory/") + name));
        };
        return {figure("weights") / 1048576.0, figure("peak_rss_after_load_mb"),
                figure("peak_rss_mb")};
    }

  private:
    std::string folder;

    Outcome generate() const
    {
        std::string ids = "1"; /* enough for the router to choose every expert */
        for (int i = 1; i < 200; i++)
            ids += "," + std::to_string(i * 37 % 1000);
        Outcome o = run({"generate", "-m", folder, "--ids", ids, "-n", "4",
                         "--ignore-eos", "--json"});
        EXPECT_EQ(o.code, 0) << o.err;
        return o;
    }
};

TEST(Memory, PeakIsTheWeightsAndLittleMore)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Memory less = SyntheticModel(small).measure(), more = SyntheticModel(big).measure();
    ASSERT_GT(less.loaded, 0.0);
    ASSERT_GT(more.weights, 500.0);
    double base = less.peak - less.weights;
    double most = base + more.weights * 1.1 + SLACK_MIB;
    printf(
        "base %.0f MiB, weights %.0f MiB: loaded with %.0f MiB, peak %.0f MiB, at most "
        "%.0f MiB\n",
        base, more.weights, more.loaded, more.peak, most);
    EXPECT_LE(more.loaded, most);
    EXPECT_LE(more.peak, most);
}

} // namespace
