/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory on Intel's driver, run dry: a run takes the memory that 'xemoe plan' predicts, for each
 * kind, on an integrated chip and on one with memory of its own.
 */
#include <algorithm>

#include "functional_tests/common/prediction.h"
#include "functional_tests/dry_run/dry_run.h"

namespace
{

using Case = std::tuple<const char *, const char *>;

class DryPlan : public testing::TestWithParam<Case>
{
};

TEST_P(DryPlan, SaysWhatARunTakes)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const Settings settings = dry(chip(std::get<0>(GetParam())));
    const std::string model = std::string(XM_MODELS_DIR "/") + std::get<1>(GetParam());
    for (int context : {100, 700})
        expect_prediction(model, context, {}, settings);
}

std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    std::string model = std::get<1>(info.param);
    model = model.substr(0, model.find("-tiny"));
    model.erase(std::remove(model.begin(), model.end(), '-'), model.end());
    return std::get<0>(info.param) + ("_" + model);
}

INSTANTIATE_TEST_SUITE_P(
    Models, DryPlan,
    testing::Combine(testing::Values("tgllp", "dg2"),
                     testing::Values("qwen3moe-tiny/ov/int4_asym_g64",
                                     "gemma4-moe-tiny/ov/int4_asym_g32",
                                     "gpt-oss-tiny/ov/int4_sym_g64")),
    case_name);

} // namespace
