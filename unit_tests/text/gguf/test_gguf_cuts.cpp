// SPDX-License-Identifier: Apache-2.0
// How texts are cut into pieces, by the names in GGUF files: compared with the PyPI package
// tokenizers on the patterns of published tokenizer.json files (make_gguf_text.py); and other
// effects of a name.
#include <map>
#include <set>

#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/json.h"
#include "unit_tests/text/gguf/gguf_text_test.h"

namespace
{

using cuts = std::vector<size_t>; /* bytes of each piece */

class GgufCuts : public testing::Test
{
  protected:
    yyjson_doc *doc = nullptr;

    void SetUp() override
    {
        ASSERT_EQ(xm_json_read(XM_GGUF_TEXT_DIR "/cuts.json", &doc, nullptr), XM_OK);
    }
    void TearDown() override
    {
        yyjson_doc_free(doc);
    }
    yyjson_val *member(const char *name) const
    {
        return yyjson_obj_get(yyjson_doc_get_root(doc), name);
    }
};

cuts
cuts_of(const xm_pre_tokenizer &pre, xm_slice text)
{
    xm_pieces pieces = {}, scratch = {};
    xm_error err = {};
    cuts result;
    xm_pieces_add(&pieces, text);
    EXPECT_EQ(xm_pre_tokenizer_run(&pre, &pieces, &scratch, &err), XM_OK) << err.text;
    for (size_t i = 0; i < pieces.n; i++)
        result.push_back(xm_pieces_get(&pieces, i).n);
    xm_pieces_free(&pieces);
    xm_pieces_free(&scratch);
    return result;
}

cuts
sizes_of(yyjson_val *list)
{
    cuts result;
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(list, i, n, item)
    {
        result.push_back(yyjson_get_uint(item));
    }
    return result;
}

void
check_cuts(const char *name, yyjson_val *texts, yyjson_val *expected)
{
    const xm_gguf_pre_tokenizer *row = nullptr;
    xm_pre_tokenizer pre = {};
    xm_error err = {};
    ASSERT_EQ(xm_gguf_find_pre_tokenizer(xm_slice_of(name, strlen(name)), &row, &err),
              XM_OK);
    if (!row->patterns) {
        ASSERT_EQ(xm_pre_tokenizer_add_white_space(&pre, &err), XM_OK) << err.text;
    }
    for (const char *const *p = row->patterns; p && *p; p++)
        ASSERT_EQ(xm_pre_tokenizer_add_cut(&pre, *p, &err), XM_OK) << name << err.text;
    ASSERT_EQ(yyjson_arr_size(texts), yyjson_arr_size(expected));
    for (size_t i = 0; i < yyjson_arr_size(texts); i++) {
        yyjson_val *text = yyjson_arr_get(texts, i);
        const xm_slice s = {yyjson_get_str(text), yyjson_get_len(text)};
        EXPECT_EQ(cuts_of(pre, s), sizes_of(yyjson_arr_get(expected, i)))
            << name << ": " << yyjson_get_str(text);
    }
    xm_pre_tokenizer_free(&pre);
}

/* A vocabulary of the letters a and b, with a token "ab" that no merge makes. */
gguf::keys
words(const std::string &pre)
{
    gguf::keys k;
    k.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", pre);
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"a", "b", "ab", "\u0120", "<s>", "\u2581", "\n", "\n\n"}));
    k.set("tokenizer.ggml.merges", gguf::LIST, gguf::texts({}));
    k.set("tokenizer.ggml.bos_token_id", 4u);
    return k;
}

} // namespace

TEST_F(GgufCuts, AreThoseOfTheReference)
{
    size_t i, n;
    yyjson_val *name, *expected;
    EXPECT_GT(yyjson_arr_size(member("texts")), 40u);
    yyjson_obj_foreach(member("cuts"), i, n, name, expected)
    {
        check_cuts(yyjson_get_str(name), member("texts"), expected);
    }
    EXPECT_EQ(n, 35u);
}

/* Random emoji, Chinese, digits of many scripts, white space and combining marks. */
TEST(GgufOddCuts, AreThoseOfTheReference)
{
    yyjson_doc *doc = nullptr;
    ASSERT_EQ(xm_json_read(XM_GGUF_TEXT_DIR "/odd.json", &doc, nullptr), XM_OK);
    yyjson_val *root = yyjson_doc_get_root(doc), *name, *expected;
    size_t i, n;
    EXPECT_EQ(yyjson_arr_size(yyjson_obj_get(root, "texts")), 400u);
    yyjson_obj_foreach(yyjson_obj_get(root, "cuts"), i, n, name, expected)
    {
        check_cuts(yyjson_get_str(name), yyjson_obj_get(root, "texts"), expected);
    }
    EXPECT_EQ(n, 3u);
    yyjson_doc_free(doc);
}

/* A row that is added here must also be added in make_gguf_text.py. */
TEST_F(GgufCuts, TheReferenceHasARowForEachOfOurs)
{
    xm_error err = {};
    const xm_gguf_pre_tokenizer *row = nullptr;
    EXPECT_EQ(xm_gguf_find_pre_tokenizer(xm_slice_of("new", 3), &row, &err),
              XM_UNSUPPORTED);
    const std::string sentence = err.text;
    size_t i, n, length = 0;
    yyjson_val *name, *value;
    yyjson_obj_foreach(member("cuts"), i, n, name, value)
    {
        const std::string known = yyjson_get_str(name);
        EXPECT_NE(sentence.find(known), std::string::npos)
            << known << " in: " << sentence;
        length += known.size() + (i ? 2 : 0);
    }
    const size_t start = sentence.find("supported are ") + strlen("supported are ");
    EXPECT_EQ(sentence.find(", and their aliases") - start, length) << sentence;
}

TEST(GgufNames, SayWhetherAWordThatIsATokenIsOne)
{
    EXPECT_EQ(gguf::tokenizer_of(words("qwen2")).encode("ab"), ids({0, 1}));
    EXPECT_EQ(gguf::tokenizer_of(words("llama-bpe")).encode("ab"), ids({2}));
    EXPECT_EQ(gguf::tokenizer_of(words("chatglm-bpe")).encode("ab"), ids({0, 1}));
    for (const char *name : {"tekken", "glm4", "glm5", "granite-embed-multi-97m"})
        EXPECT_EQ(gguf::tokenizer_of(words(name)).encode("ab"), ids({2})) << name;
}

TEST(GgufNames, SayWhetherBosStandsBeforeATextUnlessAKeyDoes)
{
    EXPECT_EQ(gguf::tokenizer_of(words("qwen2")).encode("a", true), ids({0}));
    for (const char *name : {"llama3", "jina-v5-nano", "chameleon"})
        EXPECT_EQ(gguf::tokenizer_of(words(name)).encode("a", true), ids({4, 0})) << name;
    gguf::keys k = words("llama3").set_flag("tokenizer.ggml.add_bos_token", false);
    EXPECT_EQ(gguf::tokenizer_of(k).encode("a", true), ids({0}));
    k = words("qwen2").set_flag("tokenizer.ggml.add_bos_token", true);
    EXPECT_EQ(gguf::tokenizer_of(k).encode("a", true), ids({4, 0}));
}

/* A file older than the key has the default. */
TEST(GgufNames, AreDefaultWhereThereIsNone)
{
    const std::string text = "a b1234 ab";
    const auto cut = gguf::tokenizer_of(words("default")).encode(text);
    gguf::keys k = words("qwen2").drop("tokenizer.ggml.pre");
    EXPECT_EQ(gguf::tokenizer_of(k).encode(text), cut);
}

TEST(GgufNames, SayHowSpacesAreWritten)
{
    EXPECT_EQ(gguf::tokenizer_of(words("gpt-2")).encode("a b"), ids({0, 3, 1}));
    EXPECT_EQ(gguf::tokenizer_of(words("sarvam-moe")).encode("a b\n\n"),
              ids({0, 5, 1, 6, 6}));
}

TEST(GgufNames, WhiteSpaceMayBeNoPartOfWords)
{
    gguf::keys k = words("whitespace");
    EXPECT_EQ(gguf::tokenizer_of(k).encode(" a  b\nA"), ids({0, 1}));
    k.set_flag("tokenizer.ggml.normalizer.lowercase", true);
    EXPECT_EQ(gguf::tokenizer_of(k).encode("a b A"), ids({0, 1, 0}));
    k = words("qwen2").set("tokenizer.ggml.model", "whitespace");
    EXPECT_EQ(gguf::tokenizer_of(k).encode("a b\u00e9a"), ids({0, 1, 0}));
    EXPECT_EQ(gguf::tokenizer_of(k).decode({0, 1}), "a b");
}

/* For Gemma 4 the BOS token does not depend on its key, and a run of empty lines is one word. */
TEST(GgufNames, OfGemma4IsTheKindItself)
{
    gguf::keys k = words("qwen2").set("tokenizer.ggml.model", "gemma4");
    k.set_flag("tokenizer.ggml.add_bos_token", false);
    Tokenizer t = gguf::tokenizer_of(k);
    EXPECT_EQ(t.encode("a b", true), ids({4, 0, 5, 1}));
    EXPECT_EQ(t.encode("ab\n\na\n\n\n"), ids({0, 1, 7, 0, 6, 6, 6}));
    k = words("gemma4").set_flag("tokenizer.ggml.add_bos_token", false);
    EXPECT_EQ(gguf::tokenizer_of(k).encode("\n\n", true), ids({4, 7}));
}

/* Each id has its text; encoding gives the first id with a text. */
TEST(GgufNames, TokensMayHaveEqualTexts)
{
    gguf::keys k = words("llama-bpe");
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"a", "b", "ab", "a", "<s>", "ab", "<s>"}));
    k.set("tokenizer.ggml.token_type", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 1, 3, 1, 3}));
    k.set("tokenizer.ggml.merges", gguf::LIST, gguf::texts({"a b"}));
    Tokenizer t = gguf::tokenizer_of(k);
    EXPECT_EQ(t.encode("ab a<s>"), ids({2, 0, 4}));
    EXPECT_EQ(t.decode({3, 5, 0, 2, 6}, true), "aabaab");
    EXPECT_EQ(xm_tokenizer_id_of(t.t, "a"), 0);
    EXPECT_TRUE(xm_tokenizer_is_special(t.t, 6));
}

/* So many texts that the hash table grows several times. */
TEST(GgufNames, OfManyEqualTextsTheFirstIsFound)
{
    std::vector<std::string> tokens = {"a", "b", "ab", "\u0120", "<s>"};
    for (int i = 0; i < 3000; i++)
        tokens.push_back("w" + std::to_string(i % 1000));
    gguf::keys k = words("llama-bpe");
    k.set("tokenizer.ggml.tokens", gguf::LIST, gguf::texts(tokens));
    Tokenizer t = gguf::tokenizer_of(k);
    for (int i = 0; i < 1000; i++)
        ASSERT_EQ(xm_tokenizer_id_of(t.t, ("w" + std::to_string(i)).c_str()), 5 + i);
    EXPECT_EQ(t.decode({5 + 2999}), "w999");
}
