// SPDX-License-Identifier: Apache-2.0
// Tokenizers and templates from real GGUF files compared with reference implementations: ids and
// texts of 260 strings, five conversations, end tokens, dimensions.
#include <map>

#include "plugin/text/end_tokens.h"
#include "unit_tests/text/chat_test.h"
#include "unit_tests/text/gguf/gguf_text_test.h"
#include "unit_tests/text/golden.h"

namespace
{

/* Returns the path of a golden file; models with the same tokenizer share it. */
std::string
golden_of(const gguf::model &m, const char *file)
{
    const std::string name = m.name;
    return std::string(XM_MODELS_DIR "/") +
           (name == "gemma4-e-tiny" ? "gemma4-moe-tiny" : name) + "/golden/" + file;
}

class GgufGolden : public testing::TestWithParam<gguf::model>
{
  protected:
    gguf::reading file{gguf::model_file(GetParam())};
    Tokenizer tokenizer = gguf::tokenizer_of(file);
    std::vector<golden> items = read_golden(golden_of(GetParam(), "tokenizer.json"));

    void SetUp() override
    {
        ASSERT_EQ(tokenizer.status, XM_OK) << tokenizer.err.text;
        ASSERT_EQ(items.size(), 260u);
    }
    /* Returns the ids with the special tokens around them, which normalization does not change. */
    ids with_special(const golden &g) const
    {
        ids all = g.with_special;
        const size_t before = all.size() - g.plain.size();
        all.resize(before);
        all.insert(all.end(), g.unnormalized.begin(), g.unnormalized.end());
        return all;
    }
};

} // namespace

TEST_P(GgufGolden, EncodesAsTheReference)
{
    for (const golden &g : items) {
        EXPECT_EQ(tokenizer.encode(g.text), g.unnormalized) << g.text;
        EXPECT_EQ(tokenizer.encode(g.text, true), with_special(g)) << g.text;
    }
}

TEST_P(GgufGolden, DecodesAsTheReference)
{
    for (const golden &g : items) {
        EXPECT_EQ(tokenizer.decode(g.plain), g.decoded);
        EXPECT_EQ(tokenizer.decode(g.with_special, true), g.decoded_skip_special);
    }
}

TEST_P(GgufGolden, AMegabyteInOneWordTakesNoMinute)
{
    EXPECT_GT(tokenizer.encode(std::string(1 << 20, 'x')).size(), 0u);
    EXPECT_GT(tokenizer.encode(std::string(1 << 20, ' ')).size(), 0u);
    EXPECT_GT(tokenizer.encode(std::string(1 << 20, '\n')).size(), 0u);
    EXPECT_EQ(tokenizer.status, XM_OK);
}

TEST_P(GgufGolden, TheChatTemplateMakesWhatTheReferenceMakes)
{
    Template tmpl;
    ASSERT_EQ(xm_gguf_chat_template(file.g, &tmpl.t, &tmpl.err), XM_OK) << tmpl.err.text;
    check_conversations(tmpl, tokenizer, golden_of(GetParam(), "chat.json"), false);
}

TEST_P(GgufGolden, TextsEndWhereTheModelsConfigurationSays)
{
    const std::map<std::string, ids> ends = {
        {"qwen3moe-tiny", {1502, 1500}},
        {"gpt-oss-tiny", {1452, 1451, 1458}}, /* not <|end|>, which only ends a message */
        {"gemma4-moe-tiny", {1, 9}},
        {"gemma4-e-tiny", {1, 9}},
    };
    xm_generation_config c;
    xm_error err = {};
    ASSERT_EQ(xm_gguf_generation(file.g, &c, &err), XM_OK) << err.text;
    EXPECT_EQ(c.sampling.temperature, 0.0f) << "nothing is recommended";
    EXPECT_EQ(c.n_eos, 1u);
    xm_generation_config_add_ends(&c, tokenizer.t);
    EXPECT_EQ(ids(c.eos, c.eos + c.n_eos), ends.at(GetParam().name));
}

TEST_P(GgufGolden, ThereIsARowForEachTokenThatIsUsed)
{
    const std::map<std::string, size_t> tokens = {{"qwen3moe-tiny", 1505},
                                                  {"gpt-oss-tiny", 1459},
                                                  {"gemma4-moe-tiny", 1803},
                                                  {"gemma4-e-tiny", 1803}};
    EXPECT_EQ(xm_tokenizer_vocab_size(tokenizer.t), tokens.at(GetParam().name));
    EXPECT_STREQ(xm_tokenizer_kind(tokenizer.t), "BPE");
}

INSTANTIATE_TEST_SUITE_P(Models, GgufGolden, testing::ValuesIn(gguf::models),
                         [](const testing::TestParamInfo<gguf::model> &row) {
                             std::string name = row.param.name;
                             for (char &c : name)
                                 c = c == '-' ? '_' : c;
                             return name;
                         });
