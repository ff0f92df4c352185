// SPDX-License-Identifier: Apache-2.0
// WordPiece models of tokenizer.json: compared with the PyPI package tokenizers on two files
// (gguf/make_gguf_text.py), and the members of the components one by one.
#include "runtime/util/json.h"
#include "unit_tests/text/golden.h"

namespace
{

/* ids:  ? 0, un 1, ##aff 2, ##able 3, un? 4, 一 5, . 6, ' 7, s 8, ##a 9, É 10, e 11 */
std::string
wordpiece_json(const std::string &model, const std::string &rest = "")
{
    return R"({"model":{"type":"WordPiece",)" + model +
           R"("vocab":{"[UNK]":0,"un":1,"##aff":2,"##able":3,"U":4,"一":5,".":6,"'":7,)"
           R"("s":8,"##a":9,"É":10,"e":11,"é":12}})" +
           (rest.empty() ? "" : ",") + rest + "}";
}

const char *const bert_pre = R"("pre_tokenizer":{"type":"BertPreTokenizer"})";

std::string
bert_json(const std::string &normalizer)
{
    return wordpiece_json("", R"("normalizer":{"type":"BertNormalizer")" +
                                  (normalizer.empty() ? "" : "," + normalizer) + "}," +
                                  bert_pre);
}

class WordPieceGolden : public testing::TestWithParam<std::pair<const char *, size_t>>
{
};

} // namespace

TEST_P(WordPieceGolden, EncodesAndDecodesAsTheReference)
{
    const auto [name, n_ends] = GetParam();
    const std::string path =
        std::string(XM_SOURCE_DIR "/unit_tests/text/gguf/data/") + name;
    Tokenizer t = Tokenizer::file(path + ".tokenizer.json");
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_STREQ(xm_tokenizer_kind(t.t), "WordPiece");
    yyjson_doc *doc = nullptr;
    ASSERT_EQ(xm_json_read((path + ".json").c_str(), &doc, nullptr), XM_OK);
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, item)
    {
        const std::string text = text_of(item, "text");
        const ids expected = ids_of(item, "ids");
        ids around = expected;
        around.insert(around.begin(), xm_tokenizer_id_of(t.t, "[CLS]"));
        around.insert(around.end(), n_ends, xm_tokenizer_id_of(t.t, "[SEP]"));
        EXPECT_EQ(t.encode(text), expected) << text;
        EXPECT_EQ(t.encode(text, true), around) << text;
        EXPECT_EQ(t.decode(expected, true), text_of(item, "decoded")) << text;
    }
    EXPECT_GT(n, 400u);
    yyjson_doc_free(doc);
}

INSTANTIATE_TEST_SUITE_P(Files, WordPieceGolden,
                         testing::Values(std::make_pair("bert", 1),
                                         std::make_pair("bert-cased", 2)),
                         [](const auto &row) {
                             return std::string(row.index ? "Cased" : "Uncased");
                         });

TEST(WordPiece, PrefixAndLongestWordAreTheFiles)
{
    Tokenizer t(wordpiece_json("", bert_pre));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("unaffable.aff"), ids({1, 2, 3, 6, 0})) << "aff begins no word";
    EXPECT_EQ(t.encode("un" + std::string(98, 'a')).size(), 99u);
    EXPECT_EQ(t.encode("un" + std::string(99, 'a')), ids({0})) << "101 characters";
    Tokenizer other(wordpiece_json(
        R"("continuing_subword_prefix":"","max_input_chars_per_word":3,"unk_token":"U",)",
        bert_pre));
    ASSERT_EQ(other.status, XM_OK) << other.err.text;
    EXPECT_EQ(other.encode("uns uns."), ids({1, 8, 1, 8, 6}));
    EXPECT_EQ(other.encode("unss aff"), ids({4, 4}));
}

TEST(WordPiece, NeedsTheUnknownTokenForUnknownWordsOnly)
{
    Tokenizer t(wordpiece_json(R"("unk_token":"<unk>",)", bert_pre));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("un"), ids({1}));
    t.encode("zz");
    EXPECT_EQ(t.status, XM_INVALID);
    EXPECT_NE(std::string(t.err.text).find("'zz' has parts that are not"),
              std::string::npos)
        << t.err.text;
}

TEST(WordPiece, AWordLongerThanWeCutIsRefusedWhenLoading)
{
    EXPECT_EQ(Tokenizer(wordpiece_json(R"("max_input_chars_per_word":256,)")).status,
              XM_OK);
    Tokenizer t(wordpiece_json(R"("max_input_chars_per_word":257,)"));
    EXPECT_EQ(t.status, XM_UNSUPPORTED);
    EXPECT_NE(std::string(t.err.text).find("'max_input_chars_per_word' is 257"),
              std::string::npos)
        << t.err.text;
}

TEST(BertNormalizer, MembersSayWhatIsDone)
{
    EXPECT_EQ(Tokenizer(bert_json("")).encode("UN\u0007aff\u4e00e\u0301\u00c9"),
              ids({1, 2, 5, 0})); /* no piece for the rest of "ee" */
    EXPECT_EQ(Tokenizer(bert_json("")).encode("\u00c9 \u00e9 e"), ids({11, 11, 11}));
    const std::string cased = R"("lowercase":false)";
    EXPECT_EQ(Tokenizer(bert_json(cased)).encode("U \u00c9 un"), ids({4, 10, 1}))
        << "accents stay with capital letters";
    EXPECT_EQ(
        Tokenizer(bert_json(cased + R"(,"strip_accents":true)")).encode("\u00e9 e\u0301"),
        ids({11, 11}));
    EXPECT_EQ(Tokenizer(bert_json(R"("strip_accents":false)")).encode("\u00c9 U"),
              ids({12, 0}));
    EXPECT_EQ(Tokenizer(bert_json(R"("strip_accents":null)")).encode("\u00c9"),
              ids({11}));
    EXPECT_EQ(Tokenizer(bert_json(R"("handle_chinese_chars":false)")).encode("un\u4e00"),
              ids({0}));
    EXPECT_EQ(Tokenizer(bert_json(R"("clean_text":false)")).encode("un\u0007aff"),
              ids({0}));
}

/* In the reference the third-last block of Chinese characters begins 256 characters too late. */
TEST(BertNormalizer, LeavesTheCharactersThatTheReferenceLeaves)
{
    Tokenizer t(bert_json(""));
    EXPECT_EQ(t.encode("un\U0002b820"), ids({0}));
    EXPECT_EQ(t.encode("un\U0002b920"), ids({1, 0}));
    EXPECT_EQ(t.encode("un\U0002b81f"), ids({1, 0}));
    EXPECT_EQ(t.encode("un\u200baff\ufffd"), ids({1, 2}));
    EXPECT_EQ(t.encode("un\u3000un\u00a0un"), ids({1, 1, 1}));
}

TEST(Decoder, WordPieceJoinsWordsAndCleansUp)
{
    const std::string decoder = R"("decoder":{"type":"WordPiece","prefix":"##")";
    Tokenizer t(wordpiece_json("", decoder + "}"));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.decode({2, 2, 3, 1, 6, 7, 8}), "##affaffable un. ' s");
    EXPECT_EQ(t.decode({1, 1}), "un un");
    Tokenizer plain(wordpiece_json("", decoder + R"(,"cleanup":false})"));
    EXPECT_EQ(plain.decode({1, 9, 6, 7}), "una . '");
    Tokenizer bare(wordpiece_json("", R"("decoder":{"type":"WordPiece"})"));
    EXPECT_EQ(bare.status, XM_INVALID);
    EXPECT_NE(std::string(bare.err.text).find("'prefix'"), std::string::npos);
}

TEST(Decoder, WordPieceCleansEachTokenInTheReferencesOrder)
{
    const std::string added =
        R"("decoder":{"type":"WordPiece","prefix":"##"},"added_tokens":[)"
        R"({"id":20,"content":"a ' .b"},{"id":21,"content":"n't"},)"
        R"({"id":22,"content":"do not x 've 're 'm 's ,?"},{"id":23,"content":"c ' d !"}])";
    Tokenizer t(wordpiece_json("", added));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.decode({20, 21, 22, 23}), "a '.bn't don't x've're'm's,? c'd!");
}
