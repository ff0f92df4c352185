/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a KV cache of few bits: the KL divergence from the same model with a cache of f32,
 * over the scored rows of a text.
 */
#include <cstring>
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"

static const std::string models = XM_MODELS_DIR;

class CacheTypes : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    Folder folder{"cache_types"};
    const std::string base = folder / "base";

    static Outcome in_f32(const std::string &model, const Words &more)
    {
        Words words = {"perplexity", "-m", model, "--precision", "f32", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    static Json json_of(const Outcome &o)
    {
        EXPECT_EQ(o.code, 0) << o.err;
        return Json(o.out);
    }
    /* Stores the model's log-probabilities with a cache of f32, for `chunks` chunks of this text;
     * returns its perplexity. */
    double keep(const std::string &model, const std::string &text, const char *context,
                const char *chunks) const
    {
        return json_of(
                   in_f32(model,
                          {"--kv", "f32", "--ids",
                           "@" + models + "/" + text + "/golden/ppl_tokens.npy", "-c",
                           context, "--chunks", chunks, "--kl-divergence-base", base}))
            .number("/ppl/value");
    }
    Json compare(const std::string &model, const char *cache) const
    {
        return json_of(in_f32(
            model, {"--kv", cache, "--kl-divergence", "--kl-divergence-base", base}));
    }
};

/* Heads of 64 and of 128 elements, and no experts, which rounding could exchange. With i8, a
 * scale twice the least possible gives four times the divergence. */
TEST_F(CacheTypes, OfFewBitsCostLittle)
{
    const std::string model = models + "/gemma4-e-tiny/gguf/gemma4-e-tiny-Q4_0.gguf";
    keep(model, "gemma4-e-tiny", "256", "3");
    const struct {
        const char *cache;
        double least, most;
    } cases[] = {{"u4", 1e-4, 1.5e-3}, {"i8", 1e-6, 6e-6}};
    for (const auto &c : cases) {
        const double kld = compare(model, c.cache).number("/kld/value");
        EXPECT_GE(kld, c.least) << c.cache << ": nothing was rounded";
        EXPECT_LE(kld, c.most) << c.cache;
    }
}

/* Multiplies element i of a head, and the element that is rotated with it, in the norm of keys,
 * and divides both in the norm of queries, so that scores stay the same. */
static void
write_model_of_large_keys(const std::string &from, const Folder &folder, size_t i,
                          float times)
{
    const std::string xml = read_file(from + "/openvino_model.xml");
    std::string bin = read_file(from + "/openvino_model.bin");
    /* the norms in the order of the file */
    const bool is_key[] = {false, true, true, false};
    const std::regex norm(
        "element_type=\"f32\" shape=\"1, 1, 1, 64\" offset=\"([0-9]+)\" size=\"256\"");
    size_t n = 0;
    for (std::sregex_iterator at(xml.begin(), xml.end(), norm), end; at != end;
         ++at, n++) {
        ASSERT_LT(n, std::size(is_key));
        for (size_t element : {i, i + 32}) {
            char *p = &bin[std::stoul((*at)[1]) + element * sizeof(float)];
            float gamma;
            memcpy(&gamma, p, sizeof(gamma));
            gamma *= is_key[n] ? times : 1.0f / times;
            memcpy(p, &gamma, sizeof(gamma));
        }
    }
    ASSERT_EQ(n, std::size(is_key));
    folder.write("openvino_model.xml", xml);
    folder.write("openvino_model.bin", bin);
}

/* Keys of large models have such elements. Without the rotation they would take the bits of the
 * other elements of their block: u4 would give 0.08, and with i8 half of the rows would exceed
 * 3e-5. For i8 the median is bounded, because a token that the router sends to another expert
 * dominates the mean. */
TEST_F(CacheTypes, OfFewBitsKeepTheNeighboursOfLargeElements)
{
    const std::string from = models + "/qwen3moe-tiny/ov/int4_asym_g64";
    ASSERT_NO_FATAL_FAILURE(write_model_of_large_keys(from, folder, 5, 16.0f));
    const double as_it_was = keep(from, "qwen3moe-tiny", "128", "4");
    ASSERT_NEAR(keep(folder.path, "qwen3moe-tiny", "128", "4"), as_it_was,
                1e-4 * as_it_was);
    EXPECT_LE(compare(folder.path, "u4").number("/kld/value"), 0.035);
    EXPECT_LE(compare(folder.path, "i8").number("/kld_quantiles/median"), 1e-5);
}

/* The logits of this model are so steep that 4-bit keys turn some tokens to other positions: the
 * error against exact keys exceeds the result. The prompt takes several pages, and most of it has
 * left the windows of 32 positions when the next tokens are decoded. */
TEST_F(CacheTypes, OfFewBitsAreVerifiedByWhatTheyHold)
{
    const std::string model = models + "/gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf";
    std::string ids = "5";
    for (int id = 6; id < 155; id++)
        ids += "," + std::to_string(id);
    const struct {
        const char *cache;
        double least, most; /* errors of the worst stored row */
    } cases[] = {{"u4", 0.06, 0.08}, {"i8", 4e-3, 8e-3}};
    for (const auto &c : cases) {
        const Json json(
            run({"verify", "-m", model, "--kv", c.cache, "--ids", ids, "--json"}).out);
        EXPECT_EQ(json.number("/over"), 0) << c.cache;
        size_t i, n, n_attention = 0;
        yyjson_val *step;
        yyjson_arr_foreach(json.at("/steps"), i, n, step)
        {
            if (strcmp(yyjson_get_str(yyjson_obj_get(step, "op")), "attention") != 0)
                continue;
            n_attention++;
            const double error = yyjson_get_real(yyjson_obj_get(step, "error"));
            ASSERT_TRUE(yyjson_get_str(yyjson_obj_get(step, "part"))) << "a result";
            EXPECT_GE(error, c.least) << c.cache << ": nothing was rounded";
            EXPECT_LE(error, c.most) << c.cache;
        }
        EXPECT_EQ(n_attention, 4u);
    }
}
