/* SPDX-License-Identifier: Apache-2.0
 *
 * A model on every chip of the tables, as far as this machine's device can act as it
 * (XM_DEVICE_AS): the results of the configuration rules, whether experts are fused, the kernels
 * that are used, and that the text stays the reference's. Prints the table that it checks. For
 * unfused experts each chip skips one of the passes that fuse them, or each of them if all cases
 * are asked for. unit_tests/runtime/test_config.cpp tests every chip with every kind of program
 * and every setting.
 */
#include "functional_tests/common/cases.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

namespace
{

/* Written by hand from facts about the chips. oneDNN runs fused experts from xe_lp on, unfused
 * ones only with matrix engines; the KV cache is i8 without matrix engines; integrated chips from
 * xe2 on share memory with the host. */
struct Chip {
    const char *name, *fused, *unfused, *kv, *copy;
};
/* clang-format off */
const std::vector<Chip> chips = {
    {"skl",     "NO",  "NO",  "i8",  "YES"},
    {"kbl",     "NO",  "NO",  "i8",  "YES"},
    {"cfl",     "NO",  "NO",  "i8",  "YES"},
    {"bxt",     "NO",  "NO",  "i8",  "YES"},
    {"glk",     "NO",  "NO",  "i8",  "YES"},
    {"cml",     "NO",  "NO",  "i8",  "YES"},
    {"icl",     "NO",  "NO",  "i8",  "YES"},
    {"ehl",     "NO",  "NO",  "i8",  "YES"},
    {"tgl",     "YES", "NO",  "i8",  "YES"},
    {"rkl",     "YES", "NO",  "i8",  "YES"},
    {"adl_s",   "YES", "NO",  "i8",  "YES"},
    {"adl_p",   "YES", "NO",  "i8",  "YES"},
    {"adl_n",   "YES", "NO",  "i8",  "YES"},
    {"dg1",     "YES", "NO",  "i8",  "YES"},
    {"xe_hp",   "YES", "YES", "f16", "YES"},
    {"dg2",     "YES", "YES", "f16", "YES"},
    {"dg2_g11", "YES", "YES", "f16", "YES"},
    {"dg2_g12", "YES", "YES", "f16", "YES"},
    {"pvc",     "YES", "YES", "f16", "YES"},
    {"mtl_u",   "YES", "NO",  "i8",  "YES"},
    {"mtl_h",   "YES", "NO",  "i8",  "YES"},
    {"arl_h",   "YES", "YES", "f16", "YES"},
    {"bmg",     "YES", "YES", "f16", "YES"},
    {"lnl",     "YES", "YES", "f16", "NO"},
    {"ptl",     "YES", "YES", "f16", "NO"},
    {"nvl_s",   "YES", "YES", "f16", "NO"},
    {"nvl_u",   "YES", "YES", "f16", "NO"},
    {"nvl_p",   "YES", "YES", "f16", "NO"},
    {"cri",     "YES", "YES", "f16", "YES"},
};
/* clang-format on */

const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny";
const char *const moe_passes[] = {"FuseVectorizedMOE3GEMM", "ConvertMOEToMOECompressed",
                                  "FuseMOE3GemmCompressed"};

/* Returns the word after `before` in a text; "" if absent. */
std::string
word_after(const std::string &text, const std::string &before)
{
    size_t at = text.find(before);
    if (at == std::string::npos)
        return "";
    at += before.size();
    return text.substr(at, text.find_first_of(": \n", at) - at);
}

/* Returns the kernel that a step used, from the output of XM_DEBUG=dispatch. */
std::string
taken(const std::string &log, const std::string &step)
{
    const std::string head = "dispatch: " + step + ": ";
    for (size_t at = log.find(head); at != std::string::npos;
         at = log.find(head, at + 1)) {
        std::string line = log.substr(at, log.find('\n', at) - at);
        if (line.find("refused") == std::string::npos)
            return line.substr(head.size());
    }
    return "";
}

Words
as(const Chip &c, const Words &more = {})
{
    Words settings = {std::string("XM_DEVICE_AS=") + c.name};
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
}

Outcome
generate(const Words &settings)
{
    return run({"generate", "-m", tiny + "/ov/int4_asym_g64", "-p",
                "Paris is the capital of", "-n", "8", "--json"},
               settings);
}

class Chips : public testing::TestWithParam<Chip>
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
};

void
PrintTo(const Chip &c, std::ostream *out)
{
    *out << c.name;
}

TEST_P(Chips, FuseTheExpertsAndGiveTheReferencesText)
{
    const Chip &c = GetParam();
    std::string rules = run({"devices", "--rules"}, as(c)).out;
    Outcome o = generate(as(c, {"XM_DEBUG=dispatch"}));
    ASSERT_EQ(o.code, 0) << o.err;
    std::string onednn = word_after(rules, "GPU_USE_ONEDNN = ");
    std::string queue = word_after(rules, "GPU_QUEUE_TYPE = ");
    std::string kv = word_after(rules, "KV_CACHE_PRECISION = ");
    std::string copy = word_after(rules, "XM_COPY_WEIGHTS = ");
    std::string few = taken(o.err, "moe_gate_up"), many = taken(o.err, "moe_gemm_down");
    printf("%-8s onednn %-3s queue %s kv %-3s copy %-3s | %s, %s\n", c.name,
           onednn.c_str(), queue.c_str(), kv.c_str(), copy.c_str(), few.c_str(),
           many.c_str());
    EXPECT_EQ(onednn, c.fused);
    EXPECT_EQ(queue, "in_order");
    EXPECT_EQ(kv, c.kv);
    EXPECT_EQ(copy, c.copy);
    EXPECT_EQ(word_after(rules, "INFERENCE_PRECISION_HINT = "), "f16");
    for (const char *pass : moe_passes)
        EXPECT_NE(o.out.find("\"" + std::string(pass) + "\""), std::string::npos) << pass;
    EXPECT_FALSE(few.empty() || many.empty()) << "no kernel for the fused experts";
    EXPECT_EQ(Json(o.out).text("/text").rfind(" France.", 0), 0u) << o.out;
}

class Unfused : public testing::TestWithParam<std::tuple<Chip, const char *>>
{
};

/* Skips the first or the last of the passes, as on a device without a kernel for its op. */
TEST_P(Unfused, ExpertsRunOnTheChip)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[c, pass] = GetParam();
    const Words settings = as(c, {std::string("XM_SKIP=") + pass});
    Outcome o = generate(settings);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("\"LowerUnfusedMoE\""), std::string::npos) << o.out;
    EXPECT_EQ(o.out.find("\"FuseMOE3GemmCompressed\""), std::string::npos) << o.out;
    EXPECT_EQ(Json(o.out).text("/text").rfind(" France.", 0), 0u) << o.out;
    std::string rules = run({"info", "-v", tiny + "/ov/int4_asym_g64"}, settings).out;
    const char no_engine[] = "GPU_USE_ONEDNN = NO: oneDNN's GPU engine cannot be used on";
    const std::string onednn = word_after(rules, "GPU_USE_ONEDNN = ");
    EXPECT_TRUE(onednn == c.unfused || rules.find(no_engine) != std::string::npos)
        << rules;
}

const std::vector<const char *> skipped = {moe_passes[0], moe_passes[2]};
INSTANTIATE_TEST_SUITE_P(All, Unfused,
                         testing::ValuesIn(dealt(some(chips, 9), skipped, 1)),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param).name) + "_" +
                                    std::get<1>(info.param);
                         });

INSTANTIATE_TEST_SUITE_P(All, Chips, testing::ValuesIn(chips),
                         [](const testing::TestParamInfo<Chip> &info) {
                             return std::string(info.param.name);
                         });

} // namespace
