/* SPDX-License-Identifier: Apache-2.0
 *
 * Two layers with the sizes of Qwen3-30B-A3B on Intel's driver, run dry: on an integrated chip,
 * and on one with memory of its own. The weights are holes in a sparse file: no kernel reads
 * them, but every byte is allocated and copied.
 */
#include "functional_tests/dry_run/lean.h"

namespace
{

const Kind qwen3 = {"2 layers of Qwen3-30B-A3B", 2, 2 * A_LAYER + OUTSIDE_LAYERS, 3,
                    true};

class DryLarge : public testing::TestWithParam<const char *>
{
};

TEST_P(DryLarge, TokensAreLean)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    std::string folder = testing::TempDir() + "xemoe_dry_" + std::to_string(getpid());
    Outcome made =
        run({"make-model",         "-o",  folder,      "--blank", "--hidden",   "2048",
             "--layers",           "2",   "--experts", "128",     "--top-k",    "8",
             "--moe-intermediate", "768", "--heads",   "32",      "--kv-heads", "4",
             "--head-dim",         "128", "--vocab",   "4096",    "--group",    "128"});
    ASSERT_EQ(made.code, 0) << made.err;
    expect_lean(chip(GetParam()), qwen3, folder);
    std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Chips, DryLarge, testing::Values("tgllp", "dg1"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
