/* SPDX-License-Identifier: Apache-2.0
 *
 * Vocabularies of the types Unigram and WordPiece: compared with the PyPI packages sentencepiece
 * and tokenizers on a small vocabulary of each (make_gguf_text.py); and damaged ones.
 */
#include "runtime/util/json.h"
#include "unit_tests/text/gguf/gguf_text_test.h"
#include "unit_tests/text/golden.h"

namespace
{

struct sample {
    std::string text, decoded;
    ids encoded;
};

std::vector<sample>
samples_of(const std::string &name)
{
    std::vector<sample> all;
    yyjson_doc *doc = nullptr;
    EXPECT_EQ(
        xm_json_read((XM_GGUF_TEXT_DIR "/" + name + ".json").c_str(), &doc, nullptr),
        XM_OK);
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, item)
    {
        all.push_back(
            {text_of(item, "text"), text_of(item, "decoded"), ids_of(item, "ids")});
    }
    yyjson_doc_free(doc);
    EXPECT_GT(all.size(), 100u);
    return all;
}

std::string
file_of(const std::string &name)
{
    std::ifstream stream(XM_GGUF_TEXT_DIR "/" + name + ".gguf", std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

ids
around(ids inner, const ids &before, const ids &after)
{
    inner.insert(inner.begin(), before.begin(), before.end());
    inner.insert(inner.end(), after.begin(), after.end());
    return inner;
}

/* ids:  pad 0, end 1, ? 2, ▁ 3, a 4, b 5, ▁a 6, ab 7, ▁ab 8 */
gguf::keys
pieces()
{
    gguf::keys k;
    k.set("tokenizer.ggml.model", "t5");
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "\u2581a", "ab",
                       "\u2581ab"}));
    k.set("tokenizer.ggml.scores", gguf::LIST,
          gguf::numbers<float>(gguf::F32, {0, 0, 0, -2, -2, -2, -5, -3, -9}));
    k.set("tokenizer.ggml.token_type", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {3, 3, 2, 1, 1, 1, 1, 1, 1}));
    k.set("tokenizer.ggml.eos_token_id", 1u).set("tokenizer.ggml.unknown_token_id", 2u);
    return k;
}

/* ids:  ? 0, [CLS] 1, [SEP] 2, ▁un 3, aff 4, able 5, able! 6, ▁un! 7, ▁! 8 */
gguf::keys
words()
{
    gguf::keys k;
    k.set("tokenizer.ggml.model", "bert");
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"[UNK]", "[CLS]", "[SEP]", "\u2581un", "aff", "able", "a",
                       "\u2581\u4e00", "\u2581!"}));
    k.set("tokenizer.ggml.token_type", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {3, 3, 3, 1, 1, 1, 1, 1, 1}));
    k.set("tokenizer.ggml.unknown_token_id", 0u).set("tokenizer.ggml.cls_token_id", 1u);
    k.set("tokenizer.ggml.seperator_token_id", 2u);
    return k;
}

} // namespace

TEST(GgufUnigram, EncodesAndDecodesAsTheReference)
{
    gguf::reading file(file_of("unigram"));
    Tokenizer t = gguf::tokenizer_of(file);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_STREQ(xm_tokenizer_kind(t.t), "Unigram");
    for (const sample &s : samples_of("unigram")) {
        EXPECT_EQ(t.encode(s.text), s.encoded) << s.text;
        EXPECT_EQ(t.encode(s.text, true), around(s.encoded, {}, {1})) << s.text;
    }
}

TEST(GgufUnigram, TakesTheBestCutOfAll)
{
    Tokenizer t =
        gguf::tokenizer_of(pieces().set_flag("tokenizer.ggml.add_space_prefix", false));
    EXPECT_EQ(t.encode("ab"), ids({7}));
    EXPECT_EQ(t.encode(" ab"), ids({3, 7})) << "-5 before -7 and -9";
    EXPECT_EQ(t.encode("a\u00e9\u00e9b"), ids({4, 2, 5}))
        << "unknown ones in a row are one";
    EXPECT_EQ(t.encode("</s>"), ids({1})) << "control tokens are found first";
}

TEST(GgufUnigram, NamesWhatIsWrong)
{
    const std::pair<gguf::keys, const char *> cases[] = {
        {pieces().drop("tokenizer.ggml.scores"),
         "key 'tokenizer.ggml.scores' is missing"},
        {pieces().set("tokenizer.ggml.scores", gguf::LIST,
                      gguf::numbers<float>(gguf::F32, {0})),
         "expected a value for each of 9 tokens, found 1"},
        {pieces().set("tokenizer.ggml.precompiled_charsmap", gguf::LIST,
                      gguf::numbers<uint8_t>(gguf::U8, {8, 0, 0, 0, 1})),
         "'precompiled_charsmap' of 5 bytes has a trie of 8"},
        {pieces().set("tokenizer.ggml.precompiled_charsmap", gguf::LIST,
                      gguf::numbers<float>(gguf::F32, {1})),
         "key 'tokenizer.ggml.precompiled_charsmap': expected bytes"},
        {pieces().set("tokenizer.ggml.token_type", gguf::LIST,
                      gguf::numbers<int32_t>(gguf::I32, {3, 3, 3, 3, 3, 3, 3, 3, 3})),
         "no token is a normal or user-defined piece"},
    };
    for (const auto &[keys, words] : cases) {
        Tokenizer t = gguf::tokenizer_of(keys);
        EXPECT_NE(t.status, XM_OK);
        EXPECT_TRUE(strstr(t.err.text, words)) << t.err.text;
    }
}

TEST(GgufWordPiece, EncodesAndDecodesAsTheReference)
{
    gguf::reading file(file_of("bert"));
    Tokenizer t = gguf::tokenizer_of(file);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_STREQ(xm_tokenizer_kind(t.t), "WordPiece");
    const ids cls = {xm_tokenizer_id_of(t.t, "[CLS]")},
              sep = {xm_tokenizer_id_of(t.t, "[SEP]")};
    for (const sample &s : samples_of("bert")) {
        EXPECT_EQ(t.encode(s.text), s.encoded) << s.text;
        EXPECT_EQ(t.encode(s.text, true), around(s.encoded, cls, sep)) << s.text;
        EXPECT_EQ(t.decode(s.encoded, true), s.decoded) << s.text;
    }
}

TEST(GgufWordPiece, TakesTheLongestPieces)
{
    Tokenizer t = gguf::tokenizer_of(words());
    EXPECT_EQ(t.encode("unaffable!"), ids({3, 4, 5, 8}));
    EXPECT_EQ(t.encode("unaff"), ids({3, 4}));
    EXPECT_EQ(t.encode("aff"), ids({0})) << "it begins no word";
    EXPECT_EQ(t.encode("unaffx un"), ids({0, 3})) << "all of the word is unknown";
    EXPECT_EQ(t.encode("UN\u4e00un"), ids({3, 7, 3}));
    EXPECT_EQ(t.encode("un" + std::string(98, 'a')).size(), 99u);
    EXPECT_EQ(t.encode("un" + std::string(99, 'a')), ids({0})) << "101 characters";
    Tokenizer cased = gguf::tokenizer_of(
        words().set_flag("tokenizer.ggml.normalizer.lowercase", false));
    EXPECT_EQ(cased.encode("UN"), ids({0}));
    Tokenizer alone =
        gguf::tokenizer_of(words().set_flag("tokenizer.ggml.add_sep_token", false));
    EXPECT_EQ(alone.encode("un", true), ids({1, 3}));
}

TEST(GgufWordPiece, NeedsAnUnknownTokenForUnknownWords)
{
    Tokenizer t = gguf::tokenizer_of(words().drop("tokenizer.ggml.unknown_token_id"));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("un"), ids({3}));
    xm_token_list list = {};
    xm_error err = {};
    EXPECT_EQ(xm_tokenizer_encode(t.t, "zz", 2, false, &list, &err), XM_INVALID);
    EXPECT_TRUE(strstr(err.text, "'zz' has parts that are not in the vocabulary"))
        << err.text;
    xm_token_list_free(&list);
}
