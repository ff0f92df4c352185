/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations beyond the range of f16: an error that names the way out, never NaN with exit code 0.
 */
#include <cmath>
#include <cstdint>
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

namespace fs = std::filesystem;

static const std::string original = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* A copy of the model whose embeddings are 2^20 times as large: the residual stream passes 65504
 * from its first layer on, while the norm of every block takes the factor away again. */
class LoudModel
{
  public:
    LoudModel() : folder(testing::TempDir() + "xemoe_loud_" + std::to_string(getpid()))
    {
        fs::remove_all(folder);
        fs::copy(original, folder);
        scale_embeddings();
    }

    ~LoudModel()
    {
        fs::remove_all(folder);
    }

    const std::string folder;

  private:
    void scale_embeddings() const
    {
        const std::string xml = read_file(folder + "/openvino_model.xml");
        size_t at = xml.find("\"self.model.embed_tokens.weight/scale\"");
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
    static inline std::unique_ptr<LoudModel> model;

    static void SetUpTestSuite()
    {
        model = std::make_unique<LoudModel>();
    }
    static void TearDownTestSuite()
    {
        model.reset();
    }
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

TEST_F(Overflow, OfF16IsAnErrorThatNamesF32)
{
    const std::string npy = model->folder + "/logits.npy";
    expect_refusal({"logits", "-m", model->folder, "--ids", "5,6,7", "-o", npy,
                    "--precision", "f16"});
    EXPECT_FALSE(fs::exists(npy)) << "nothing is written of what is wrong";
    expect_refusal(
        {"perplexity", "-m", model->folder, "--ids", "5,6,7", "--precision", "f16"});
    expect_refusal({"generate", "-m", model->folder, "-p", "Paris is", "-n", "4",
                    "--precision", "f16"});
}

TEST_F(Overflow, F32HasRoom)
{
    const std::string npy = model->folder + "/logits.npy";
    Outcome o = run({"logits", "-m", model->folder, "--ids", "5,6,7", "-o", npy,
                     "--precision", "f32"});
    ASSERT_EQ(o.code, 0) << o.err;
    for (float logit : parse_npy(read_file(npy)).data)
        ASSERT_TRUE(std::isfinite(logit));
}
