/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs small models dry on every chip that Intel's current driver knows, first with an empty cache
 * of the driver's compiler, then again with what the first run left in it. A decoded token must
 * need no more kernels, copies and flushes than the table below allows. With --all each model runs
 * on each chip, else one model on one chip. test_devices.cpp checks the features of chips,
 * test_dry_run.cpp prompts of many tokens.
 */
#include <sys/resource.h>

#include <algorithm>

#include "functional_tests/common/cases.h"
#include "functional_tests/dry_run/lean.h"

namespace
{

/* The most copies and flushes of a token, including its choice, on any chip; and of a whole run the
 * most objects (kernels, sub-buffers and queues) that are made, and MiB of device memory. */
struct Model {
    Kind kind;
    double copies, flushes, objects, mib;
};
/* clang-format off */
const std::vector<Model> models = {
    {{"qwen3moe-tiny/ov/int4_asym_g64",   2, 2 * A_LAYER + OUTSIDE_LAYERS, 3, true}, 1, 2, 59,  4.5},
    {{"gpt-oss-tiny/ov/int4_sym_g64",     4, 4 * A_LAYER + OUTSIDE_LAYERS, 3, true}, 1, 2, 77,  4.9},
    {{"gemma4-moe-tiny/ov/int4_asym_g32", 6, 76,                           3, true}, 1, 3, 122, 6.3},
};
/* clang-format on */

void
PrintTo(const Model &model, std::ostream *out)
{
    *out << model.kind.name;
}

/* Returns the processor time of all child processes that have ended. */
double
seconds_of_programs()
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

long
files_in(const std::string &folder)
{
    return std::distance(std::filesystem::recursive_directory_iterator(folder), {});
}

class DryChips : public testing::TestWithParam<std::tuple<std::string, Model>>
{
  protected:
    void SetUp() override
    {
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
        cache = testing::TempDir() + "xemoe_chips_" + std::to_string(getpid());
        std::filesystem::create_directory(cache);
    }

    void TearDown() override
    {
        if (!cache.empty())
            std::filesystem::remove_all(cache);
    }

    std::string cache; /* folder in which the driver keeps compiled kernels */
};

/* Expects that the last token and the whole run stay within the model's limits. */
void
expect_no_more(const Seen &s, const Model &model)
{
    const size_t last = s.runs() - 1;
    EXPECT_LE(s.run(last, "kernels"), model.kind.kernels);
    EXPECT_LE(s.run(last, "copies"), model.copies);
    EXPECT_LE(s.run(last, "flushes"), model.flushes);
    EXPECT_EQ(s.run(last, "objects"), 0);
    EXPECT_LE(s.counted.number("/objects"), model.objects);
    EXPECT_LE(s.counted.number("/memory/total_peak") / 1048576.0, model.mib);
}

/* Prints a row for the table of chips in docs/intel_gpu.md; cold, warm: seconds of processor time
 * of the two runs. */
void
print_row(const Chip &c, const Seen &s, const Model &model, double cold, double warm)
{
    const size_t last = s.runs() - 1;
    printf("| %s | %s | %.0f + %.0f | %.0f | %.0f | %.0f | %.2f | %.1f | %.1f |\n",
           c.name, model.kind.name, s.run(last, "kernels"), s.run(last, "copies"),
           s.run(last, "flushes"), s.run(last, "waits"), s.counted.number("/objects"),
           s.counted.number("/memory/total_peak") / 1048576.0, cold, warm);
}

/* The second run adds no file to the cache, because it finds there all kernels that the driver
 * compiled in the first run. */
TEST_P(DryChips, TokensAskNoMoreThanTheyDid)
{
    const Chip &c = chip(std::get<0>(GetParam()));
    const Model &model = std::get<1>(GetParam());
    const std::string path = std::string(XM_MODELS_DIR "/") + model.kind.name;
    double cold = 0;
    long kept = 0;
    expect_chip(c);
    for (const bool is_warm : {false, true}) {
        SCOPED_TRACE(is_warm ? "warm" : "cold");
        const double before = seconds_of_programs();
        const Seen s = generate(c, path, "short", {}, {"NEO_CACHE_DIR=" + cache});
        const double took = seconds_of_programs() - before;
        if (s.outcome.code != 0 || s.runs() == 0)
            return;
        expect_clean_calls(s);
        expect_lean_tokens(s, model.kind, "short");
        expect_lean_memory(s, model.kind, path);
        expect_no_more(s, model);
        if (!is_warm) {
            cold = took;
            kept = files_in(cache);
            EXPECT_GT(kept, 0);
        } else {
            EXPECT_EQ(files_in(cache), kept);
            print_row(c, s, model, cold, took);
        }
    }
}

std::vector<std::string>
chips_of_driver()
{
    std::vector<std::string> names;
    for (const Chip &c : chips) {
        if (c.driver == driver())
            names.push_back(c.name);
    }
    return names;
}

std::string
case_name(const testing::TestParamInfo<std::tuple<std::string, Model>> &info)
{
    std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).kind.name;
    name.resize(name.find('/'));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, DryChips,
                         testing::ValuesIn(dealt(some(chips_of_driver(), 1), models, 1)),
                         case_name);

} // namespace
