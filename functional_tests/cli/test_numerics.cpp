/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify --numerics: the effect of rounding as in training.
 */
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;

class Numerics : public testing::Test
{
  protected:
    Folder folder{"numerics"};

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static Outcome verify(const std::string &model, const Words &more)
    {
        Words words = {"verify", "--numerics", "-m", model};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
};

TEST_F(Numerics, OfBothFormats)
{
    const std::string gguf = folder / "model.gguf";
    ASSERT_EQ(
        run({"make-model", "--arch", "gemma4-e", "--format", "gguf", "-o", gguf}).code,
        0);
    for (const std::string &model : {gguf, models + "/gemma4-e-tiny/ov/int4_asym_g64"}) {
        const Outcome o = verify(model, {"--ids", "5,7,9", "--json"});
        ASSERT_EQ(o.code, 0) << o.err;
        const Json report(o.out);
        EXPECT_EQ(report.number("/rounded_places"), 2) << model;
        EXPECT_EQ(report.number("/positions"), 3);
        EXPECT_GT(report.number("/nmse"), 0);
        EXPECT_LT(report.number("/nmse"), 1e-2);
        EXPECT_GT(report.number("/kld_mean"), 0);
        EXPECT_GT(report.number("/max_difference"), 0);
        EXPECT_EQ(report.number("/same_top"), 3);
    }
}

TEST_F(Numerics, AModelWithoutThePlacesSaysSo)
{
    const Outcome o =
        verify(models + "/qwen3moe-tiny/ov/int4_asym_g64", {"--ids", "5,7"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("the model has no value that XM_NUMERICS=bf16 rounds"),
              std::string::npos)
        << o.out;
    EXPECT_NE(o.out.find("NMSE 0.00e+00"), std::string::npos) << o.out;
}

/* The environment variable applies to every command; --numerics still compares with no rounding. */
TEST_F(Numerics, OfTheEnvironment)
{
    const std::string model = models + "/gemma4-e-tiny/ov/int4_asym_g64";
    const auto logits = [&](const Words &environment) {
        const std::string file = folder / "logits.npy";
        const Outcome o = run(
            {"logits", "-m", model, "--ids", "5,7,9", "--precision", "f32", "-o", file},
            environment);
        EXPECT_EQ(o.code, 0) << o.err;
        return read_file(file);
    };
    const std::string plain = logits({});
    EXPECT_EQ(logits({"XM_NUMERICS=f32"}), plain);
    EXPECT_NE(logits({"XM_NUMERICS=bf16"}), plain);
    const Outcome unknown =
        run({"logits", "-m", model, "--ids", "5"}, {"XM_NUMERICS=foo"});
    EXPECT_EQ(unknown.code, 2);
    EXPECT_NE(unknown.err.find("xemoe: XM_NUMERICS"), std::string::npos) << unknown.err;
    const Outcome o =
        run({"verify", "--numerics", "-m", model, "--ids", "5,7,9", "--json"},
            {"XM_NUMERICS=bf16"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_GT(Json(o.out).number("/nmse"), 0);
}

TEST_F(Numerics, OfTheEnvironmentHoldForWhatIsOnlyShown)
{
    const std::string model = models + "/gemma4-e-tiny/ov/int4_asym_g64";
    for (const Words &words :
         {Words{"info", model, "-v"}, Words{"info", model}, Words{"plan", model},
          Words{"logits", model, "--ids", "1"}}) {
        SCOPED_TRACE(words[0]);
        const Outcome wrong = run(words, {"XM_NUMERICS=foo"});
        EXPECT_EQ(wrong.code, 2);
        EXPECT_EQ(
            wrong.err.rfind("xemoe: XM_NUMERICS is 'foo': expected one of f32, bf16", 0),
            0u)
            << wrong.err;
    }
    for (const char *value : {"f32", "bf16"}) {
        const std::string setting = std::string("XM_NUMERICS=") + value;
        const std::string changes =
            setting == "XM_NUMERICS=bf16" ? "changed" : "no change";
        const Outcome info = run({"info", model, "-v"}, {setting});
        EXPECT_EQ(info.code, 0) << info.err;
        EXPECT_TRUE(std::regex_search(info.out, std::regex("RoundAsTrained +" + changes)))
            << info.out;
        EXPECT_EQ(run({"plan", model}, {setting}).code % 4, 0);
    }
}

TEST_F(Numerics, TheReferenceHasThemToo)
{
    const Outcome o = verify(models + "/gemma4-moe-tiny/ov/int4_asym_g32",
                             {"--ids", "5,7", "-d", "REFERENCE"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("7 values are rounded to bf16"), std::string::npos) << o.out;
}

TEST_F(Numerics, StandsAlone)
{
    const std::string model = models + "/qwen3moe-tiny/ov/int4_asym_g64";
    const Outcome decode = verify(model, {"--decode", "3"});
    EXPECT_EQ(decode.code, 2);
    EXPECT_NE(decode.err.find("--numerics runs only the given tokens"),
              std::string::npos);
    const Outcome against = verify(model, {"--ids", "1", "--against", "x.npy"});
    EXPECT_EQ(against.code, 2);
    EXPECT_NE(against.err.find("give only one of --against and --numerics"),
              std::string::npos);
}
