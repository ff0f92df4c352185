/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files on Intel's GPU driver, run dry: a token launches as many kernels as with the same
 * checkpoint's IR, and the device holds the file's weights once, in their blocks. XM_TEST_ALL=1
 * runs every file on every chip.
 */
#include <algorithm>

#include "functional_tests/common/gguf.h"
#include "functional_tests/dry_run/lean.h"

namespace
{

/* as: the rules of another chip, which driver 22.43 does not know. */
struct Target {
    const char *name, *chip, *as;
};
/* clang-format off */
const std::vector<Target> targets_of_22_43 = {
    {"tgllp", "tgllp", ""},
    {"dg2",   "dg2",   ""},
    {"mtl",   "dg2",   "mtl_u"},
    {"pvc",   "pvc",   ""},
};
const std::vector<Target> targets_of_current = {
    {"lnl",   "lnl",   ""},
    {"mtl",   "mtl",   ""},
    {"arl",   "arl",   ""},
    {"bmg",   "bmg",   ""},
    {"ptl",   "ptl",   ""},
};
/* clang-format on */

void
PrintTo(const Target &t, std::ostream *out)
{
    *out << t.name;
}

Seen
generate_as(const Target &t, const std::string &model, const std::string &prompt)
{
    const Words as = {std::string("XM_DEVICE_AS=") + t.as};
    Seen s = generate(chip(t.chip), model, prompt, {}, *t.as ? as : Words());
    EXPECT_NE(s.outcome.err.find("dry run"), std::string::npos) << s.outcome.err;
    EXPECT_EQ(s.runs(), static_cast<size_t>(TOKENS));
    return s;
}

/* Compares the launches with the IR's. In gemma4-moe-tiny `down` of each dense MLP has 352
 * columns. For 4-bit elements this is no whole number of steps of linear_gemm_sg, so that prompts
 * of the IR use linear_gemm_gen. The file's 8-bit blocks fit, and a kernel packs their
 * activations first. */
void
expect_same_launches(const Seen &s, const Seen &ir, const GgufFile &file)
{
    ASSERT_EQ(s.runs(), ir.runs());
    const double packed = file.model == std::string("gemma4-moe-tiny") ? 6 : 0;
    EXPECT_LE(s.run(0, "kernels"), ir.run(0, "kernels") + packed);
    for (size_t i = 1; i < s.runs(); i++) {
        EXPECT_EQ(s.run(i, "kernels"), ir.run(i, "kernels")) << "run " << i;
        EXPECT_EQ(s.run(i, "waits"), ir.run(i, "waits")) << "run " << i;
    }
}

/* Checks the memory on the device apart from what runs need: the weights, once. */
void
expect_weights_once(const Seen &s, const GgufFile &file)
{
    const double size = static_cast<double>(std::filesystem::file_size(file.path()));
    double weights = s.counted.number("/memory/total_peak");
    for (const char *other : {"kv_cache", "activations", "scratch", "inputs_and_results"})
        weights -= s.said.number(std::string("/memory/") + other);
    EXPECT_LE(weights, 1.10 * size);
    EXPECT_GE(weights, 0.90 * size);
    EXPECT_EQ(s.counted.number("/memory/total"), 0) << "not freed";
}

using Case = std::tuple<Target, GgufFile>;

class DryGguf : public testing::TestWithParam<Case>
{
};

TEST_P(DryGguf, RunsAsTheIrDoes)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const auto &[target, file] = GetParam();
    expect_chip(chip(target.chip));
    for (const char *prompt : prompts) {
        SCOPED_TRACE(prompt);
        const Seen s = generate_as(target, file.path(), prompt);
        const Seen ir = generate_as(target, file.ir_path(), prompt);
        if (s.outcome.code != 0 || ir.outcome.code != 0)
            return;
        print(chip(target.chip), file.path().substr(strlen(XM_MODELS_DIR) + 1), prompt,
              s);
        expect_calls_succeed(s);
        expect_same_launches(s, ir, file);
        expect_weights_once(s, file);
    }
}

std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    const GgufFile &file = std::get<1>(info.param);
    std::string name =
        std::string(std::get<0>(info.param).name) + "_" + file.model + "_" + file.type;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

/* Returns the cases: on 22.43 two files with one target each, on the current driver one. */
std::vector<Case>
cases()
{
    const auto &targets = is_current_driver() ? targets_of_current : targets_of_22_43;
    const size_t n = std::size(gguf_files), n_targets = targets.size();
    const size_t taken = test_all() ? n : is_current_driver() ? 1 : 2;
    const size_t first = test_seed() % n_targets;
    std::vector<Case> list;
    for (size_t i = 0; i < taken; i++) {
        const GgufFile &file = gguf_files[(test_seed() + i) % n];
        for (size_t t = 0; t < n_targets; t++)
            if (test_all() || t == (first + i) % n_targets)
                list.emplace_back(targets[t], file);
    }
    return list;
}

INSTANTIATE_TEST_SUITE_P(Chips, DryGguf, testing::ValuesIn(cases()), case_name);

} // namespace
