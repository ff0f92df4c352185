/* SPDX-License-Identifier: Apache-2.0
 *
 * Other families of models than the one everything is tried with: sliding windows next to
 * full attention, heads of two sizes, sinks, biases, a dense path beside the experts.
 * Prompts longer than the window and than a chunk show what short ones hide.
 */
#include <cmath>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

struct Kin {
    const char *name, *variant, *prompt;
};

void
PrintTo(const Kin &k, std::ostream *out)
{
    *out << k.name << " " << k.prompt;
}

class Family : public testing::TestWithParam<Kin>
{
  protected:
    std::string folder = std::string(XM_MODELS_DIR "/") + GetParam().name;

    std::string ids() const
    {
        Json list(read_file(folder + "/golden/prompts.json"));
        std::string text;
        for (int i = 0; i < 6; i++) {
            std::string at = "/" + std::to_string(i);
            if (list.text(at + "/name") != GetParam().prompt)
                continue;
            for (int32_t id : list.ids(at + "/ids"))
                text += (text.empty() ? "" : ",") + std::to_string(id);
        }
        EXPECT_FALSE(text.empty());
        return text;
    }

    void expect_logits(const Words &options, double tolerance, const Words &settings = {})
    {
        Words words = {"logits", "-m",  folder + "/ov/" + GetParam().variant,
                       "--ids",  ids(), "-o",
                       "-"};
        words.insert(words.end(), options.begin(), options.end());
        Outcome o = run(words, settings);
        ASSERT_EQ(o.code, 0) << o.err;
        Matrix m = parse_npy(o.out);
        Safetensors golden(folder + "/golden/openvino_" + GetParam().variant +
                           ".safetensors");
        Floats want = golden.get<float>(std::string(GetParam().prompt) + ".last_logits");
        EXPECT_LE(nmse(m.row(m.rows - 1), want), tolerance);
    }

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
};

TEST_P(Family, LogitsAreTheReferences)
{
    expect_logits({"--precision", "f32"}, 1e-5);
}

TEST_P(Family, LogitsInChunksToo)
{
    expect_logits({"--precision", "f32", "--ubatch", "50"}, 1e-5);
}

/* Experts with gate and up in one weight, biases and a clamped activation. */
using Kernels = Family;

TEST_P(Kernels, OfEveryFamilyGiveTheReferencesLogits)
{
    for (const char *family : {"ref", "gen", "sg"}) {
        SCOPED_TRACE(family);
        expect_logits({"--precision", "f32"}, 1e-5, {std::string("XM_FORCE=") + family});
    }
}

TEST_P(Kernels, OfUnfusedExpertsToo)
{
    expect_logits({"--precision", "f32"}, 1e-5, {"XM_SKIP=FuseMOE3GemmCompressed"});
}

/* Norms on both sides of attention and experts. */
using Norms = Family;

TEST_P(Norms, InChainsOfEveryFamilyGiveTheReferencesLogits)
{
    for (const char *family : {"ref", "gen", "sg"}) {
        SCOPED_TRACE(family);
        expect_logits({"--precision", "f32"}, 1e-5,
                      {std::string("XM_FORCE=row_chain=row_chain_") + family});
    }
}

TEST_P(Norms, StepByStepToo)
{
    expect_logits({"--precision", "f32"}, 1e-5, {"XM_SKIP=FuseRowChain"});
}

static std::string
kin_name(const testing::TestParamInfo<Kin> &info)
{
    std::string name = std::string(info.param.name) + "_" + info.param.prompt;
    for (char &c : name)
        c = isalnum((unsigned char)c) ? c : '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, Family,
                         testing::Values(Kin{"gemma4-moe-tiny", "int4_asym_g32", "short"},
                                         Kin{"gemma4-moe-tiny", "int4_asym_g32", "long"},
                                         Kin{"gemma4-moe-tiny", "int4_asym_g32",
                                             "nonascii"},
                                         Kin{"gpt-oss-tiny", "int4_sym_g64", "short"},
                                         Kin{"gpt-oss-tiny", "int4_sym_g64", "long"},
                                         Kin{"gpt-oss-tiny", "int4_sym_g64", "nonascii"}),
                         kin_name);

INSTANTIATE_TEST_SUITE_P(Tiny, Kernels,
                         testing::Values(Kin{"gpt-oss-tiny", "int4_sym_g64", "short"},
                                         Kin{"gpt-oss-tiny", "int4_sym_g64", "nonascii"}),
                         kin_name);

INSTANTIATE_TEST_SUITE_P(Tiny, Norms,
                         testing::Values(Kin{"gemma4-moe-tiny", "int4_asym_g32",
                                             "nonascii"}),
                         kin_name);
