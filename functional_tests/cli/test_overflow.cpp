/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations beyond the range of f16. The residual stream is f32 and may have any size. A
 * product beyond that range is an error that names the remedy, never NaN with exit code 0.
 */
#include <cmath>
#include <cstdint>
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace fs = std::filesystem;

static const std::string original = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* A copy of the model with one weight matrix multiplied by 2^20. */
class LoudModel
{
  public:
    explicit LoudModel(const std::string &weight)
        : folder(testing::TempDir() + "xemoe_loud_" + std::to_string(getpid()))
    {
        fs::remove_all(folder);
        fs::copy(original, folder);
        scale(weight);
    }

    ~LoudModel()
    {
        fs::remove_all(folder);
    }

    const std::string folder;

    Outcome logits(const std::string &precision) const
    {
        return run({"logits", "-m", folder, "--ids", "5,6,7", "-o",
                    folder + "/" + precision + ".npy", "--precision", precision});
    }
    std::vector<float> read(const std::string &precision) const
    {
        return parse_npy(read_file(folder + "/" + precision + ".npy")).data;
    }

  private:
    void scale(const std::string &weight) const
    {
        const std::string xml = read_file(folder + "/openvino_model.xml");
        size_t at = xml.find("\"self.model." + weight + ".weight/scale\"");
        ASSERT_NE(at, std::string::npos);
        at = xml.find("offset=\"", at);
        const size_t offset = std::stoul(xml.substr(at + 8));
        at = xml.find("size=\"", at);
        std::vector<uint16_t> scales(std::stoul(xml.substr(at + 6)) / 2);
        std::fstream bin(folder + "/openvino_model.bin",
                         std::ios::in | std::ios::out | std::ios::binary);
        bin.seekg((std::streamoff)offset);
        bin.read((char *)scales.data(), (std::streamsize)scales.size() * 2);
        for (uint16_t &f16 : scales) {
            const unsigned exponent = (f16 >> 10 & 31) + 20;
            f16 = (uint16_t)((f16 & 0x83ff) | (exponent < 30 ? exponent : 30) << 10);
        }
        bin.seekp((std::streamoff)offset);
        bin.write((const char *)scales.data(), (std::streamsize)scales.size() * 2);
        ASSERT_TRUE(bin.good());
    }
};

class Overflow : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    static void expect_refusal(const Words &words)
    {
        Outcome o = run(words);
        EXPECT_EQ(o.code, 1) << o.out.substr(0, 100);
        EXPECT_NE(o.err.find("are not finite"), std::string::npos) << o.err;
        EXPECT_NE(o.err.find("--precision f32"), std::string::npos) << o.err;
        EXPECT_EQ(o.out.find("nan"), std::string::npos) << o.out;
    }
};

/* The norm of every block divides by the factor again; only epsilon makes a difference. */
TEST_F(Overflow, TheResidualStreamHasRoom)
{
    const LoudModel model("embed_tokens");
    for (const char *precision : {"f16", "f32"}) {
        Outcome o = model.logits(precision);
        ASSERT_EQ(o.code, 0) << o.err;
    }
    const std::vector<float> f16 = model.read("f16"), f32 = model.read("f32");
    ASSERT_EQ(f16.size(), f32.size());
    double difference = 0.0, size = 0.0;
    for (size_t i = 0; i < f32.size(); i++) {
        ASSERT_TRUE(std::isfinite(f16[i]) && std::isfinite(f32[i])) << i;
        difference += ((double)f16[i] - f32[i]) * ((double)f16[i] - f32[i]);
        size += (double)f32[i] * f32[i];
    }
    EXPECT_LT(difference, 1e-5 * size);
}

/* V is cached as f16 without a norm before. */
TEST_F(Overflow, OfAProductIsAnErrorThatNamesF32)
{
    const LoudModel model("layers.0.self_attn.v_proj");
    expect_refusal({"logits", "-m", model.folder, "--ids", "5,6,7", "-o",
                    model.folder + "/f16.npy", "--precision", "f16"});
    EXPECT_FALSE(fs::exists(model.folder + "/f16.npy"))
        << "nothing is written of what is wrong";
    expect_refusal({"perplexity", "-m", model.folder, "--by-row", "--ids", "5,6,7",
                    "--precision", "f16"});
    expect_refusal({"generate", "-m", model.folder, "-p", "Paris is", "-n", "4",
                    "--precision", "f16"});
    for (const char *texts : {"1", "2"}) {
        const Outcome bench = run({"bench", "-m", model.folder, "-p", "0", "-n", "2",
                                   "-np", texts, "-r", "1", "--precision", "f16"});
        EXPECT_EQ(bench.code, 1) << bench.out;
        EXPECT_NE(bench.err.find("are not finite"), std::string::npos) << bench.err;
    }
    const std::string lines = model.folder + "/lines";
    std::ofstream(lines) << "Paris is\nWhat?\n";
    Outcome chat =
        run({"chat", "-m", model.folder, "-n", "4", "--precision", "f16"}, {}, lines);
    EXPECT_EQ(chat.code, 1) << chat.err;
    EXPECT_EQ(count(chat.err, "xemoe: the message is removed\n"), 2u) << chat.err;
    Outcome verify = run({"verify", "-m", model.folder, "--ids", "5,6,7", "--decode", "0",
                          "--precision", "f16"});
    EXPECT_EQ(verify.code, 5);
    const size_t worst = verify.out.find("inf of");
    ASSERT_NE(worst, std::string::npos) << verify.out;
    EXPECT_NE(verify.out.substr(worst, verify.out.find('\n', worst) - worst)
                  .find("linear '__module.model.layers.0.self_attn"),
              std::string::npos)
        << "all steps behind it are wrong as well: " << verify.out;
    ASSERT_EQ(model.logits("f32").code, 0) << "f32 helps";
    for (float logit : model.read("f32"))
        ASSERT_TRUE(std::isfinite(logit));
}
