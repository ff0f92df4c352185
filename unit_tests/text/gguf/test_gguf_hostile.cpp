// SPDX-License-Identifier: Apache-2.0
// Keys that are invalid, missing or of another type, and memory that runs out: the result is an
// error text that names the key, never a crash, a hang or a leak.
#include <cmath>
#include <cstring>

#include "runtime/util/memory.h"
#include "unit_tests/text/gguf/gguf_text_test.h"

namespace
{

using gguf::keys;

const char *const model_key = "tokenizer.ggml.model";
const char *const tokens_key = "tokenizer.ggml.tokens";
const char *const types_key = "tokenizer.ggml.token_type";
const char *const merges_key = "tokenizer.ggml.merges";
const char *const scores_key = "tokenizer.ggml.scores";

/* A file of either kind with all parts that a tokenizer can have, so that every allocation is
 * tested. */
keys
rich(const std::string &model)
{
    keys k;
    k.set("general.architecture", "toy");
    k.set(model_key, model).set("tokenizer.ggml.pre", "deepseek-v3");
    k.set(tokens_key, gguf::LIST,
          gguf::texts({"a", "b", "ab", "?", "<0xC3>", "<0xA9>", "\u2581", "<s>", "N"}));
    k.set(types_key, gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 2, 6, 6, 1, 3, 4}));
    k.set(scores_key, gguf::LIST,
          gguf::numbers<float>(gguf::F32, {-1, -1, -0.5f, 0, 0, 0, -3, 0, 0}));
    k.set(merges_key, gguf::LIST, gguf::texts({"a b"}));
    k.set("tokenizer.ggml.bos_token_id", 7u).set("tokenizer.ggml.unknown_token_id", 3u);
    k.set("tokenizer.ggml.eos_token_id", 7u);
    k.set_flag("tokenizer.ggml.add_bos_token", true);
    k.set("tokenizer.ggml.suppress_tokens", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {3}));
    k.set("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
    return k;
}

struct bad_keys {
    const char *name;
    keys file;
    enum xm_status status;
    std::vector<std::string> words; /* words that the error text must contain */
};

keys
gpt2()
{
    return rich("gpt2");
}

keys
llama()
{
    return rich("llama");
}

std::string
many(uint64_t n)
{
    return gguf::list(gguf::TEXT, n, std::string(n * 8, '\0'));
}

const std::vector<bad_keys> bad = {
    {"NoModel", gpt2().drop(model_key), XM_NOT_FOUND, {model_key}},
    {"ModelIsNumber", gpt2().set(model_key, 3u), XM_INVALID, {model_key}},
    {"OtherModel",
     gpt2().set(model_key, "rwkv"),
     XM_UNSUPPORTED,
     {"'rwkv'", "gpt2", "llama", "gemma4", "bert", "t5"}},
    {"LongModel",
     gpt2().set(model_key, std::string(9999, 'm')),
     XM_UNSUPPORTED,
     {"gpt2"}},
    {"NoTokens", gpt2().drop(tokens_key), XM_INVALID, {tokens_key}},
    {"TokensAreText", gpt2().set(tokens_key, "a"), XM_INVALID, {tokens_key}},
    {"TokensAreNumbers",
     gpt2().set(tokens_key, gguf::LIST, gguf::numbers<int32_t>(gguf::I32, {1})),
     XM_INVALID,
     {tokens_key, "i32"}},
    {"TokensAreNone",
     gpt2().set(tokens_key, gguf::LIST, gguf::texts({})),
     XM_INVALID,
     {tokens_key, "found 0"}},
    {"TokensAreTooMany",
     gpt2().set(tokens_key, gguf::LIST, many((1 << 22) + 1)),
     XM_INVALID,
     {tokens_key, "4194305"}},
    {"ModelIsNone",
     gpt2().set(model_key, "none"),
     XM_NOT_FOUND,
     {model_key, "it has no tokenizer"}},
    {"TypesAreFewer",
     gpt2().set(types_key, gguf::LIST, gguf::numbers<int32_t>(gguf::I32, {1, 1})),
     XM_INVALID,
     {types_key, "9 tokens", "found 2"}},
    {"TypesAreTexts",
     gpt2().set(types_key, gguf::LIST, many(9)),
     XM_INVALID,
     {types_key}},
    {"TypeIsUnknown",
     gpt2().set(types_key, gguf::LIST,
                gguf::numbers<int32_t>(gguf::I32, {1, 1, 7, 1, 1, 1, 1, 1, 1})),
     XM_INVALID,
     {"token 2", "found 7"}},
    {"TypeIsNegative",
     gpt2().set(types_key, gguf::LIST,
                gguf::numbers<int32_t>(gguf::I32, {1, -1, 1, 1, 1, 1, 1, 1, 1})),
     XM_INVALID,
     {types_key}},
    {"OtherPre",
     gpt2().set("tokenizer.ggml.pre", "gpt-9"),
     XM_UNSUPPORTED,
     {"tokenizer.ggml.pre", "'gpt-9'", "qwen2"}},
    {"NoMerges", gpt2().drop(merges_key), XM_INVALID, {merges_key}},
    {"MergesAreNumbers",
     gpt2().set(merges_key, gguf::LIST, gguf::numbers<int32_t>(gguf::I32, {1})),
     XM_INVALID,
     {merges_key}},
    {"MergeOfNothing",
     gpt2().set(merges_key, gguf::LIST, gguf::texts({"a b", ""})),
     XM_INVALID,
     {merges_key, "merge 1"}},
    {"MergeOfOne",
     gpt2().set(merges_key, gguf::LIST, gguf::texts({"ab"})),
     XM_INVALID,
     {"merge 0"}},
    {"MergeOfOneAndNothing",
     gpt2().set(merges_key, gguf::LIST, gguf::texts({"a "})),
     XM_INVALID,
     {"merge 0"}},
    {"MergeOfUnknown",
     gpt2().set(merges_key, gguf::LIST, gguf::texts({"a x"})),
     XM_INVALID,
     {"merge 0", "'x'"}},
    {"MergeToUnknown",
     gpt2().set(merges_key, gguf::LIST, gguf::texts({"b a"})),
     XM_INVALID,
     {"merge 0", "'ba'"}},
    {"ScoresAreMore",
     llama().set(scores_key, gguf::LIST,
                 gguf::numbers(gguf::F32, std::vector<float>(10))),
     XM_INVALID,
     {scores_key, "9 tokens", "found 10"}},
    {"ScoreIsNoNumber",
     llama().set(scores_key, gguf::LIST,
                 gguf::numbers<float>(gguf::F32, {0, 0, NAN, 0, 0, 0, 0, 0, 0})),
     XM_INVALID,
     {scores_key, "NaN"}},
    {"BosBeyondTheList",
     gpt2().set("tokenizer.ggml.bos_token_id", 9u),
     XM_INVALID,
     {"tokenizer.ggml.bos_token_id", "9"}},
    {"EosIsHuge",
     gpt2().set("tokenizer.ggml.eos_token_id", UINT32_MAX),
     XM_INVALID,
     {"tokenizer.ggml.eos_token_id", "4294967295"}},
    {"UnknownIsText",
     llama().set("tokenizer.ggml.unknown_token_id", "?"),
     XM_INVALID,
     {"tokenizer.ggml.unknown_token_id"}},
    {"BosIsNotSaid",
     gpt2().drop("tokenizer.ggml.bos_token_id"),
     XM_INVALID,
     {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"}},
    {"BosIsUnused",
     gpt2().set(types_key, gguf::LIST,
                gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 2, 6, 6, 1, 5, 4})),
     XM_INVALID,
     {"tokenizer.ggml.bos_token_id", "7"}},
    {"FlagIsNumber",
     gpt2().set("tokenizer.ggml.add_bos_token", 1u),
     XM_INVALID,
     {"tokenizer.ggml.add_bos_token"}},
    {"FlagIsNumberToo",
     llama().set("tokenizer.ggml.add_space_prefix", 1u),
     XM_INVALID,
     {"tokenizer.ggml.add_space_prefix"}},
};

void
PrintTo(const bad_keys &file, std::ostream *out)
{
    *out << file.name;
}

class BadGgufKeys : public testing::TestWithParam<bad_keys>
{
};

const std::string rich_text = "ab \xff\xc3\xa9<s>e\u0301N1a?";

/* Uses the tokenizer, template and facts of a file once. */
enum xm_status
use_all(const xm_gguf *g, struct xm_error *err)
{
    xm_tokenizer *t = nullptr;
    xm_chat_template *c = nullptr;
    xm_generation_config generation = {};
    xm_hyper_parameters facts;
    xm_token_list list = {};
    xm_strbuf out = {};
    xm_gguf_facts(g, &facts);
    enum xm_status s = xm_gguf_tokenizer(g, &t, err);
    EXPECT_EQ(t != nullptr, s == XM_OK);
    if (s == XM_OK)
        s = xm_tokenizer_encode(t, rich_text.data(), rich_text.size(), true, &list, err);
    if (s == XM_OK)
        s = xm_tokenizer_decode(t, list.ids, list.n, false, &out, err);
    for (size_t i = 0; i < list.n; i++)
        EXPECT_LT((size_t)list.ids[i], xm_tokenizer_vocab_size(t));
    if (s == XM_OK)
        s = xm_gguf_generation(g, &generation, err);
    if (s == XM_OK)
        s = xm_gguf_chat_template(g, &c, err);
    EXPECT_EQ(c != nullptr, c && s == XM_OK);
    if (s == XM_OK)
        s = xm_chat_template_render(c, R"([{"content":"x"}])", true, nullptr, &out, err);
    xm_generation_config_free(&generation);
    xm_chat_template_free(c);
    xm_strbuf_free(&out);
    xm_token_list_free(&list);
    xm_tokenizer_free(t);
    return s;
}

} // namespace

TEST_P(BadGgufKeys, AreRefusedWithASentence)
{
    const bad_keys &b = GetParam();
    Tokenizer t = gguf::tokenizer_of(b.file);
    EXPECT_EQ(t.status, b.status) << t.err.text;
    for (const std::string &word : b.words)
        EXPECT_NE(strstr(t.err.text, word.c_str()), nullptr)
            << word << " in: " << t.err.text;
}

INSTANTIATE_TEST_SUITE_P(Table, BadGgufKeys, testing::ValuesIn(bad),
                         [](const testing::TestParamInfo<bad_keys> &row) {
                             return row.param.name;
                         });

/* Texts from a file are printed on terminals. */
TEST(HostileGguf, SentencesHaveNoControlCharacters)
{
    const std::string bad_text = "\x1b[2J\n\xc2\x9b\xff", shown = "'?[2J??\xef\xbf\xbd'";
    for (const keys &k :
         {gpt2().set(model_key, bad_text), gpt2().set("tokenizer.ggml.pre", bad_text),
          gpt2().set(merges_key, gguf::LIST, gguf::texts({"a " + bad_text}))}) {
        Tokenizer t = gguf::tokenizer_of(k);
        EXPECT_NE(t.status, XM_OK);
        EXPECT_NE(strstr(t.err.text, shown.c_str()), nullptr) << t.err.text;
    }
}

TEST(HostileGguf, TheFilesOfTheTableAreRightWithoutTheirMistake)
{
    for (const char *model : {"gpt2", "llama", "gemma4"}) {
        xm_error err = {};
        gguf::reading file(rich(model).bytes());
        EXPECT_EQ(use_all(file.g, &err), XM_OK) << model << ": " << err.text;
    }
}

TEST(HostileGguf, TokensWithoutATextAndUnusedOnesAreHoles)
{
    keys k = gpt2().set(types_key, gguf::LIST,
                        gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 5, 0, 1, 1, 3, 5}));
    k.set(tokens_key, gguf::LIST,
          gguf::texts({"a", "b", "ab", "[PAD3]", "x", "", "", "<s>", "[PAD8]"}));
    k.drop("tokenizer.ggml.unknown_token_id");
    Tokenizer t = gguf::tokenizer_of(k);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(xm_tokenizer_vocab_size(t.t), 8u);
    EXPECT_EQ(t.decode({0, 3, 4, 5, 6, 8, 1}), "ab");
    EXPECT_EQ(xm_tokenizer_id_of(t.t, "[PAD3]"), -1);
}

TEST(HostileGguf, TheFirstPartOfAMergeMayBeginWithASpace)
{
    keys k = gpt2().set(
        tokens_key, gguf::LIST,
        gguf::texts({"a", " ", " a", "?", "<0xC3>", "<0xA9>", "x", "<s>", "N"}));
    Tokenizer t = gguf::tokenizer_of(k.set(merges_key, gguf::LIST, gguf::texts({"  a"})));
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
}

TEST(HostileGguf, AnUnusedTokenIsNotTheUnknownOne)
{
    keys k = llama().set("tokenizer.ggml.unknown_token_id", 8u);
    EXPECT_EQ(gguf::tokenizer_of(k).encode("x").back(), 8);
    k.set(types_key, gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 2, 6, 6, 1, 3, 5}));
    EXPECT_EQ(gguf::tokenizer_of(k).encode("xa"), ids({6, 0}));
}

/* Some files have an invalid id here, and nothing uses it. */
TEST(HostileGguf, APaddingTokenBeyondTheListIsNone)
{
    gguf::reading file(gpt2().set("tokenizer.ggml.padding_token_id", 9u).bytes());
    xm_generation_config c;
    xm_error err = {};
    EXPECT_EQ(use_all(file.g, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_gguf_generation(file.g, &c, &err), XM_OK) << err.text;
    EXPECT_EQ(c.pad, -1);
    EXPECT_EQ(c.bos, 7);
    xm_generation_config_free(&c);
}

/* Tokens of length 1, 2, 3 …: each merges with the next one. */
TEST(HostileGguf, PiecesThatGrowByOneTakeNoMinute)
{
    enum { LONGEST = 1500 };
    std::vector<std::string> tokens;
    std::vector<float> scores;
    for (int n = 1; n <= LONGEST; n++) {
        tokens.push_back(std::string((size_t)n, 'a'));
        scores.push_back((float)n);
    }
    keys k;
    k.set(model_key, "llama").set(tokens_key, gguf::LIST, gguf::texts(tokens));
    k.set(scores_key, gguf::LIST, gguf::numbers<float>(gguf::F32, scores));
    k.set_flag("tokenizer.ggml.add_space_prefix", false);
    Tokenizer t = gguf::tokenizer_of(k);
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.decode(t.encode(std::string(100000, 'a'))), std::string(100000, 'a'));
}

TEST(HostileGguf, AnyByteChangedNeverCrashes)
{
    for (const char *model : {"gpt2", "llama"}) {
        const std::string right = rich(model).bytes();
        for (size_t i = 0; i < right.size(); i++)
            for (char c : {'\0', '\1', '\7', 'a', ' ', '\x80', '\xff'}) {
                std::string wrong = right;
                wrong[i] = c;
                gguf::reading file(wrong);
                xm_error err = {};
                if (file.status == XM_OK) {
                    ASSERT_EQ(use_all(file.g, &err), err.status);
                }
            }
    }
}

TEST(HostileGguf, EveryAllocationMayFail)
{
    for (const char *model : {"gpt2", "llama", "gemma4", "whitespace"}) {
        gguf::reading file(rich(model).bytes());
        bool seen = true;
        int failures = 0;
        for (uint64_t n = 1; seen; n++) {
            xm_error err = {};
            xm_fail_allocation(n);
            enum xm_status s = use_all(file.g, &err);
            seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            /* Compiled patterns and facts are optional: without them reading succeeds. */
            ASSERT_TRUE(s == XM_NO_MEMORY || s == XM_OK) << n << ": " << err.text;
            failures += s == XM_NO_MEMORY;
        }
        EXPECT_GT(failures, 30) << model;
    }
}
