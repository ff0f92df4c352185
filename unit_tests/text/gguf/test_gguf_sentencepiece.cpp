// SPDX-License-Identifier: Apache-2.0
// Vocabularies whose pieces merge by score: compared with the PyPI package sentencepiece on two
// small ones (make_gguf_text.py); and the effects of a file's keys.
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

/* ids:  ? 0, begin 1, end 2, ▁ 3, a 4, b 5, bb 6, ab 7, ▁a 8 */
gguf::keys
small()
{
    gguf::keys k;
    k.set("tokenizer.ggml.model", "llama");
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"?", "<s>", "</s>", "\u2581", "a", "b", "bb", "ab", "\u2581a"}));
    k.set("tokenizer.ggml.scores", gguf::LIST,
          gguf::numbers<float>(gguf::F32, {0, 0, 0, -9, -9, -9, -1, -1, -3}));
    k.set("tokenizer.ggml.token_type", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {2, 3, 3, 1, 1, 1, 1, 1, 1}));
    return k;
}

} // namespace

TEST(GgufSentencePiece, EncodesAndDecodesAsTheReference)
{
    gguf::reading file(file_of("spm-bytes"));
    Tokenizer t = gguf::tokenizer_of(file);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    for (const sample &s : samples_of("spm-bytes")) {
        EXPECT_EQ(t.encode(s.text), s.encoded) << s.text;
        EXPECT_EQ(t.decode(s.encoded), s.decoded);
        ids with_bos = s.encoded;
        with_bos.insert(with_bos.begin(), 1);
        EXPECT_EQ(t.encode(s.text, true), with_bos) << s.text;
        EXPECT_EQ(t.decode(with_bos, true), s.decoded);
    }
}

/* Without byte tokens, without a space before the text, and with runs of spaces merged to one. */
TEST(GgufSentencePiece, EncodesAsTheReferenceWithTheUnknownToken)
{
    gguf::reading file(file_of("spm-unknown"));
    Tokenizer t = gguf::tokenizer_of(file);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    for (const sample &s : samples_of("spm-unknown"))
        EXPECT_EQ(t.encode(s.text), s.encoded) << s.text;
}

TEST(GgufSentencePiece, MergesTheBestScoreFirstAndOfEqualOnesTheFirst)
{
    Tokenizer t =
        gguf::tokenizer_of(small().set_flag("tokenizer.ggml.add_space_prefix", false));
    EXPECT_EQ(t.encode("abb"), ids({7, 5}));
    EXPECT_EQ(t.encode("bbab"), ids({6, 7}));
    EXPECT_EQ(t.encode(" ab"), ids({3, 7}))
        << "ab before the worse score of a space and a";
    EXPECT_EQ(t.encode(" a"), ids({8}));
}

/* Without scores the leftmost pair merges first. */
TEST(GgufSentencePiece, AFileMayHaveNoScores)
{
    gguf::keys k = small().drop("tokenizer.ggml.scores");
    Tokenizer t =
        gguf::tokenizer_of(k.set_flag("tokenizer.ggml.add_space_prefix", false));
    EXPECT_EQ(t.encode("bbab"), ids({6, 7}));
    EXPECT_EQ(t.encode(" ab"), ids({8, 5}));
}

/* A piece may contain characters that are not pieces. */
TEST(GgufSentencePiece, CharactersOfAPieceNeedNotBePieces)
{
    gguf::keys k = small();
    k.set("tokenizer.ggml.tokens", gguf::LIST,
          gguf::texts({"?", "<s>", "</s>", "\u2581", "x", "y", "cd", "bb", "\u2581a"}));
    Tokenizer t =
        gguf::tokenizer_of(k.set_flag("tokenizer.ggml.add_space_prefix", false));
    EXPECT_EQ(t.encode("xcdy"), ids({4, 6, 5}));
    EXPECT_EQ(t.encode("xdcccy"), ids({4, 0, 5})) << "unknown ones in a row are one";
    EXPECT_EQ(t.encode("dxd"), ids({0, 4, 0}));
}

TEST(GgufSentencePiece, ASpaceStandsBeforeEachTextBetweenSpecialTokens)
{
    Tokenizer t = gguf::tokenizer_of(small());
    EXPECT_EQ(t.encode("a"), ids({8}));
    EXPECT_EQ(t.encode("a<s>b", true), ids({1, 8, 1, 3, 5}));
    EXPECT_EQ(t.encode("", true), ids({1}));
    EXPECT_EQ(t.decode({8, 5}), "ab") << "which the decoder takes away again";
    EXPECT_EQ(t.decode({5, 8}), "b a");
    EXPECT_EQ(t.decode({1, 5, 2, 0}, true), "b");
}

TEST(GgufSentencePiece, KeysSayWhatStandsAroundATextAndWhatOfSpacesStays)
{
    gguf::keys k = small();
    k.set_flag("tokenizer.ggml.add_bos_token", false);
    k.set_flag("tokenizer.ggml.add_eos_token", true);
    k.set_flag("tokenizer.ggml.remove_extra_whitespaces", true);
    Tokenizer t = gguf::tokenizer_of(k);
    EXPECT_EQ(t.encode("  b   b ", true), ids({3, 5, 3, 5, 2}));
    k.set("tokenizer.ggml.eos_token_id", 1u);
    k.set("tokenizer.ggml.bos_token_id", 2u).drop("tokenizer.ggml.add_bos_token");
    Tokenizer other = gguf::tokenizer_of(k);
    EXPECT_EQ(other.encode("b", true), ids({2, 3, 5, 1}));
}
