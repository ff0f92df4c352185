// SPDX-License-Identifier: Apache-2.0
// Tokenizer files in published styles compared with the reference implementation on 260 strings:
// ids, ids with special tokens, decoded text; and the streaming decoder.
#include <cstring>

#include "plugin/text/end_tokens.h"
#include "plugin/text/generation_config.h"
#include "unit_tests/text/golden.h"
#include "unit_tests/text/text_test.h"

namespace
{

bool
is_whole_utf8(const std::string &s)
{
    size_t left = 0;
    for (unsigned char c : s) {
        if (left > 0 && (c & 0xc0) != 0x80)
            return false;
        if (left > 0)
            left--;
        else
            left = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    }
    return left == 0;
}

class TokenizerGolden : public testing::TestWithParam<const char *>
{
  protected:
    std::string folder = std::string(XM_MODELS_DIR "/") + GetParam();
    Tokenizer tokenizer = Tokenizer::file(folder + "/tokenizer.json");
    std::vector<golden> items = read_golden(folder + "/golden/tokenizer.json");

    void SetUp() override
    {
        ASSERT_EQ(tokenizer.status, XM_OK) << tokenizer.err.text;
        ASSERT_EQ(items.size(), 260u);
    }
};

} // namespace

TEST_P(TokenizerGolden, EncodesAsTheReference)
{
    for (const golden &g : items) {
        EXPECT_EQ(tokenizer.encode(g.text), g.plain) << g.text;
        EXPECT_EQ(tokenizer.encode(g.text, true), g.with_special) << g.text;
    }
}

TEST_P(TokenizerGolden, DecodesAsTheReference)
{
    for (const golden &g : items) {
        EXPECT_EQ(tokenizer.decode(g.plain), g.decoded);
        EXPECT_EQ(tokenizer.decode(g.with_special, true), g.decoded_skip_special);
    }
}

TEST_P(TokenizerGolden, StreamsWholeCharactersThatAddUpToTheDecodedText)
{
    for (const golden &g : items) {
        struct xm_detokenizer d;
        struct xm_strbuf part = {};
        std::string all;
        xm_detokenizer_init(&d, tokenizer.t, false);
        for (int32_t id : g.plain) {
            xm_strbuf_clear(&part);
            ASSERT_EQ(xm_detokenizer_push(&d, id, &part, nullptr), XM_OK);
            all.append(xm_strbuf_text(&part), part.n);
            ASSERT_TRUE(is_whole_utf8(all)) << g.text;
        }
        xm_strbuf_clear(&part);
        ASSERT_EQ(xm_detokenizer_flush(&d, &part, nullptr), XM_OK);
        all.append(xm_strbuf_text(&part), part.n);
        EXPECT_EQ(all, g.decoded);
        xm_strbuf_free(&part);
        xm_detokenizer_free(&d);
    }
}

TEST_P(TokenizerGolden, EverySplitOfTheIdsDecodesToWholeCharacters)
{
    for (const golden &g : items)
        for (size_t cut = 0; cut <= g.plain.size(); cut++) {
            ids head(g.plain.begin(), g.plain.begin() + (ptrdiff_t)cut);
            ids tail(g.plain.begin() + (ptrdiff_t)cut, g.plain.end());
            struct xm_detokenizer d;
            struct xm_strbuf out = {};
            xm_detokenizer_init(&d, tokenizer.t, false);
            for (int32_t id : head)
                xm_detokenizer_push(&d, id, &out, nullptr);
            ASSERT_TRUE(is_whole_utf8(std::string(xm_strbuf_text(&out), out.n)));
            for (int32_t id : tail)
                xm_detokenizer_push(&d, id, &out, nullptr);
            xm_detokenizer_flush(&d, &out, nullptr);
            ASSERT_EQ(std::string(xm_strbuf_text(&out), out.n), g.decoded);
            xm_strbuf_free(&out);
            xm_detokenizer_free(&d);
        }
}

TEST_P(TokenizerGolden, EveryTokenIsFoundByItsText)
{
    for (size_t id = 0; id < xm_tokenizer_vocab_size(tokenizer.t); id++) {
        size_t n = 0;
        const char *text = xm_tokenizer_token_text(tokenizer.t, (int32_t)id, &n);
        ASSERT_NE(text, nullptr);
        if (strlen(text) == n) {
            EXPECT_EQ(xm_tokenizer_id_of(tokenizer.t, text), (int32_t)id);
        }
    }
    EXPECT_EQ(xm_tokenizer_token_text(tokenizer.t, -1, nullptr), nullptr);
    EXPECT_EQ(xm_tokenizer_token_text(tokenizer.t, INT32_MAX, nullptr), nullptr);
    EXPECT_EQ(xm_tokenizer_id_of(tokenizer.t, "no such token"), -1);
}

TEST_P(TokenizerGolden, AMegabyteInOneWordTakesNoMinute)
{
    EXPECT_GT(tokenizer.encode(std::string(1 << 20, 'x')).size(), 0u);
    EXPECT_EQ(tokenizer.status, XM_OK);
    EXPECT_GT(tokenizer.encode(std::string(1 << 20, ' ')).size(), 0u);
    EXPECT_EQ(tokenizer.status, XM_OK);
}

INSTANTIATE_TEST_SUITE_P(Models, TokenizerGolden,
                         testing::Values("qwen3moe-tiny", "gpt-oss-tiny",
                                         "gemma4-moe-tiny"),
                         [](const testing::TestParamInfo<const char *> &row) {
                             std::string name = row.param;
                             for (char &c : name)
                                 c = c == '-' ? '_' : c;
                             return name;
                         });

TEST(Tokenizer, KnowsItsSpecialTokens)
{
    Tokenizer t = Tokenizer::file(XM_MODELS_DIR "/qwen3moe-tiny/tokenizer.json");
    int32_t end = xm_tokenizer_id_of(t.t, "<|im_end|>");
    int32_t think = xm_tokenizer_id_of(t.t, "<think>");
    EXPECT_EQ(end, 1502);
    EXPECT_TRUE(xm_tokenizer_is_special(t.t, end));
    // an added token that is not special
    EXPECT_FALSE(xm_tokenizer_is_special(t.t, think));
    EXPECT_FALSE(xm_tokenizer_is_special(t.t, 99999));
    EXPECT_EQ(xm_tokenizer_vocab_size(t.t), 1505u);
}

TEST(Tokenizer, PaddingIdsDecodeToNothing)
{
    Tokenizer t = Tokenizer::file(XM_MODELS_DIR "/qwen3moe-tiny/tokenizer.json");
    EXPECT_EQ(t.decode({0, 1530, -7, INT32_MAX, 0}), "!!");
}

TEST(Tokenizer, UnfinishedCharacterIsReplacedAtTheFlush)
{
    Tokenizer t = Tokenizer::file(XM_MODELS_DIR "/qwen3moe-tiny/tokenizer.json");
    ids all = t.encode("\xf0\x9d\x94\x98"); // one letter of four bytes
    ASSERT_GT(all.size(), 1u);
    all.pop_back();
    EXPECT_EQ(t.decode(all), "\xef\xbf\xbd");
}

TEST(Tokenizer, MissingFileIsNotFound)
{
    Tokenizer t = Tokenizer::file(XM_MODELS_DIR "/no_such_model/tokenizer.json");
    EXPECT_EQ(t.status, XM_NOT_FOUND);
    EXPECT_NE(strstr(t.err.text, "no_such_model"), nullptr) << t.err.text;
}

TEST(Tokenizer, AFolderIsNoFile)
{
    EXPECT_EQ(Tokenizer::file(XM_MODELS_DIR).status, XM_IO);
}

TEST(ModelIds, OneEndOfTextOrSeveral)
{
    struct xm_generation_config m;
    struct xm_error err = {};
    ASSERT_EQ(xm_generation_config_load(XM_MODELS_DIR "/qwen3moe-tiny", &m, &err), XM_OK);
    EXPECT_EQ(ids(m.eos, m.eos + m.n_eos), ids({1502}));
    EXPECT_EQ(m.bos, -1);
    EXPECT_EQ(m.pad, 1500);
    ASSERT_EQ(xm_generation_config_load(XM_MODELS_DIR "/gemma4-moe-tiny", &m, &err),
              XM_OK);
    EXPECT_EQ(ids(m.eos, m.eos + m.n_eos), ids({1, 9}));
    EXPECT_EQ(m.bos, 2);
    EXPECT_EQ(m.pad, 0);
    EXPECT_TRUE(xm_generation_config_is_eos(&m, 9));
    EXPECT_FALSE(xm_generation_config_is_eos(&m, 2));
}

/* End tokens named by the configuration come first, then added tokens that end a text. */
TEST(ModelIds, EndsThatTheTokenizerKnows)
{
    const struct {
        const char *model;
        ids ends;
    } cases[] = {
        {"/qwen3moe-tiny", {1502, 1500}},
        {"/gemma4-moe-tiny", {1, 9}},
        /* not <|end|>, which only ends a message */
        {"/gpt-oss-tiny", {1451, 1452, 1458}},
    };
    for (const auto &c : cases) {
        struct xm_generation_config m;
        struct xm_error err = {};
        Tokenizer t =
            Tokenizer::file(std::string(XM_MODELS_DIR) + c.model + "/tokenizer.json");
        ASSERT_EQ(xm_generation_config_load(
                      (std::string(XM_MODELS_DIR) + c.model).c_str(), &m, &err),
                  XM_OK);
        xm_generation_config_add_ends(&m, t.t);
        EXPECT_EQ(ids(m.eos, m.eos + m.n_eos), c.ends) << c.model;
    }
}

static ids
known_ends(const std::string &added_tokens)
{
    struct xm_generation_config m = {};
    Tokenizer t(tokenizer_json(small_model, "\"added_tokens\":[" + added_tokens + "]"));
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
    xm_generation_config_add_ends(&m, t.t);
    return ids(m.eos, m.eos + m.n_eos);
}

static std::string
added(int id, const std::string &text, bool special)
{
    return "{\"id\":" + std::to_string(id) + ",\"content\":\"" + text +
           "\",\"special\":" + (special ? "true" : "false") + "}";
}

TEST(ModelIds, OnlySpecialTokensEndAText)
{
    EXPECT_EQ(known_ends(added(50, "<|im_end|>", true)), ids({50}));
    EXPECT_EQ(known_ends(added(50, "<|im_end|>", false)), ids());
    EXPECT_EQ(known_ends(added(50, "<|tool_response>", true)), ids({50}));
    EXPECT_EQ(known_ends(added(50, "[e~[", true)), ids({50}));
    EXPECT_EQ(known_ends(added(50, "<|end|>", true)), ids({50}));
    EXPECT_EQ(
        known_ends(added(50, "<|end|>", true) + "," + added(51, "<|return|>", true)),
        ids({51}));
}

TEST(ModelIds, NoFilesAreNoIds)
{
    struct xm_generation_config m;
    struct xm_error err = {};
    ASSERT_EQ(xm_generation_config_load(XM_MODELS_DIR "/no_such_model", &m, &err), XM_OK);
    EXPECT_EQ(m.n_eos, 0u);
    EXPECT_EQ(m.bos, -1);
    EXPECT_EQ(m.pad, -1);
    EXPECT_EQ(err.status, XM_OK);
}
