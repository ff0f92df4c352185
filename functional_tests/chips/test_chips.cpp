/* SPDX-License-Identifier: Apache-2.0
 *
 * A model on every chip that the tables know, as far as this machine's device can stand in for it
 * (XM_DEVICE_AS): what the rules of the configuration say, whether the experts are fused, which
 * kernels are taken, and that the text stays the reference's. Prints the table that it checks.
 * The rules for dense and unfused models are checked in unit_tests/runtime/test_config.cpp.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

namespace
{

/* By hand, from what the chips are: xe_lp and later run fused experts with oneDNN; the KV cache
 * is i8 without matrix engines; integrated chips from xe2 on share their memory with the host. */
struct Chip {
    const char *name, *onednn, *kv, *copy;
};
/* clang-format off */
const Chip chips[] = {
    {"skl",     "NO",  "i8",  "YES"},
    {"kbl",     "NO",  "i8",  "YES"},
    {"cfl",     "NO",  "i8",  "YES"},
    {"bxt",     "NO",  "i8",  "YES"},
    {"glk",     "NO",  "i8",  "YES"},
    {"cml",     "NO",  "i8",  "YES"},
    {"icl",     "NO",  "i8",  "YES"},
    {"ehl",     "NO",  "i8",  "YES"},
    {"tgl",     "YES", "i8",  "YES"},
    {"rkl",     "YES", "i8",  "YES"},
    {"adl_s",   "YES", "i8",  "YES"},
    {"adl_p",   "YES", "i8",  "YES"},
    {"adl_n",   "YES", "i8",  "YES"},
    {"dg1",     "YES", "i8",  "YES"},
    {"xe_hp",   "YES", "f16", "YES"},
    {"dg2",     "YES", "f16", "YES"},
    {"dg2_g11", "YES", "f16", "YES"},
    {"dg2_g12", "YES", "f16", "YES"},
    {"pvc",     "YES", "f16", "YES"},
    {"mtl_u",   "YES", "i8",  "YES"},
    {"mtl_h",   "YES", "i8",  "YES"},
    {"arl_h",   "YES", "f16", "YES"},
    {"bmg",     "YES", "f16", "YES"},
    {"lnl",     "YES", "f16", "NO"},
    {"ptl",     "YES", "f16", "NO"},
};
/* clang-format on */

const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny";
const char *const moe_passes[] = {"FuseVectorizedMOE3GEMM", "ConvertMOEToMOECompressed",
                                  "FuseMOE3GemmCompressed"};

/* The word behind `before` in a text; "" when it is not there. */
std::string
word_after(const std::string &text, const std::string &before)
{
    size_t at = text.find(before);
    if (at == std::string::npos)
        return "";
    at += before.size();
    return text.substr(at, text.find_first_of(": \n", at) - at);
}

/* The kernel that a step took, from what XM_DEBUG=dispatch says. */
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
    EXPECT_EQ(onednn, c.onednn);
    EXPECT_EQ(queue, "in_order");
    EXPECT_EQ(kv, c.kv);
    EXPECT_EQ(copy, c.copy);
    EXPECT_EQ(word_after(rules, "INFERENCE_PRECISION_HINT = "), "f16");
    for (const char *pass : moe_passes)
        EXPECT_NE(o.out.find("\"" + std::string(pass) + "\""), std::string::npos) << pass;
    EXPECT_FALSE(few.empty() || many.empty()) << "no kernel for the fused experts";
    EXPECT_EQ(Json(o.out).text("/text").rfind(" France.", 0), 0u) << o.out;
}

TEST_P(Chips, RunTheExpertsUnfused)
{
    Outcome o = generate(as(GetParam(), {"XM_SKIP=FuseVectorizedMOE3GEMM"}));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).text("/text").rfind(" France.", 0), 0u) << o.out;
}

INSTANTIATE_TEST_SUITE_P(All, Chips, testing::ValuesIn(chips),
                         [](const testing::TestParamInfo<Chip> &info) {
                             return std::string(info.param.name);
                         });

} // namespace
