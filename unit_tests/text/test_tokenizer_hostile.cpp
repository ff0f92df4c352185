// SPDX-License-Identifier: Apache-2.0
// Invalid files, patterns that never end, and memory that runs out: always an error text, never a
// crash, a hang or a leak.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugin/text/generation_config.h"
#include "runtime/util/memory.h"
#include "unit_tests/text/text_test.h"

namespace
{

struct bad_file {
    const char *name;
    std::string json;
    enum xm_status status;
    const char *word; /* a word that the error text must contain */
};

std::string
with(const std::string &rest)
{
    return tokenizer_json(small_model, rest);
}

std::string
nested(const char *type, const char *list, int depth)
{
    std::string s = R"({"type":"NFC"})";
    for (int i = 0; i < depth; i++)
        s = std::string("{\"type\":\"") + type + "\",\"" + list + "\":[" + s + "]}";
    return s;
}

const std::vector<bad_file> bad_files = {
    {"NoText", "", XM_INVALID, "JSON"},
    {"CutOff", R"({"model":)", XM_INVALID, "JSON"},
    {"Array", "[]", XM_INVALID, "object"},
    {"NoModel", "{}", XM_INVALID, "model"},
    {"ModelIsText", R"({"model":"BPE"})", XM_INVALID, "model"},
    {"OtherModel", R"({"model":{"type":"WordLevel","vocab":{}}})", XM_UNSUPPORTED,
     "WordLevel"},
    {"NoVocab", R"({"model":{"type":"BPE","merges":[]}})", XM_INVALID, "vocab"},
    {"NoMerges", R"({"model":{"type":"BPE","vocab":{}}})", XM_INVALID, "merges"},
    {"VocabIsList", tokenizer_json(R"("vocab":[],"merges":[])"), XM_INVALID, "vocab"},
    {"IdIsText", tokenizer_json(R"("vocab":{"a":"0"},"merges":[])"), XM_INVALID, "'a'"},
    {"IdIsReal", tokenizer_json(R"("vocab":{"a":0.5},"merges":[])"), XM_INVALID, "'a'"},
    {"IdIsNegative", tokenizer_json(R"("vocab":{"a":-1},"merges":[])"), XM_INVALID, "-1"},
    {"IdIsHuge", tokenizer_json(R"("vocab":{"a":4194304},"merges":[])"), XM_INVALID,
     "4194304"},
    {"IdIsHuger", tokenizer_json(R"("vocab":{"a":18446744073709551615},"merges":[])"),
     XM_INVALID, "'a'"},
    {"IdTwice", tokenizer_json(R"("vocab":{"a":0,"b":0},"merges":[])"), XM_INVALID,
     "'b'"},
    {"TextTwice", tokenizer_json(R"("vocab":{"a":0,"a":1},"merges":[])"), XM_INVALID,
     "'a'"},
    {"MergeOfNothing", tokenizer_json(R"("vocab":{"a":0},"merges":[""])"), XM_INVALID,
     "merge 0"},
    {"MergeOfThree", tokenizer_json(R"("vocab":{"a":0},"merges":["a a a"])"), XM_INVALID,
     "merge 0"},
    {"MergeOfNumbers", tokenizer_json(R"("vocab":{"a":0},"merges":[[1,2]])"), XM_INVALID,
     "merge 0"},
    {"MergeOfUnknown", tokenizer_json(R"("vocab":{"a":0},"merges":["a x"])"), XM_INVALID,
     "'x'"},
    {"MergeToUnknown", tokenizer_json(R"("vocab":{"a":0},"merges":["a a"])"), XM_INVALID,
     "'aa'"},
    {"MergeShorterThanPrefix",
     tokenizer_json(R"("vocab":{"a":0},"merges":["a a"],)"
                    R"("continuing_subword_prefix":"##")"),
     XM_INVALID, "prefix"},
    {"UnkIsUnknown", tokenizer_json(R"("vocab":{},"merges":[],"unk_token":"?")"),
     XM_INVALID, "unk_token"},
    {"Dropout", tokenizer_json(R"("vocab":{},"merges":[],"dropout":0.1)"), XM_UNSUPPORTED,
     "dropout"},
    {"FlagIsText", tokenizer_json(R"("vocab":{},"merges":[],"fuse_unk":"yes")"),
     XM_INVALID, "fuse_unk"},
    {"NormalizerIsText", with(R"("normalizer":"NFC")"), XM_INVALID, "normalizer"},
    {"NormalizerWithoutType", with(R"("normalizer":{})"), XM_INVALID, "type"},
    {"OtherNormalizer", with(R"("normalizer":{"type":"Nmt"})"), XM_UNSUPPORTED, "Nmt"},
    {"NormalizersTooDeep",
     with("\"normalizer\":" + nested("Sequence", "normalizers", 1000)), XM_UNSUPPORTED,
     "deep"},
    {"NormalizersOneTooDeep",
     with("\"normalizer\":" + nested("Sequence", "normalizers", 9)), XM_UNSUPPORTED,
     "sequences are nested deeper than 8 levels"},
    {"PreTokenizersTooDeep",
     with("\"pre_tokenizer\":" + nested("Sequence", "pretokenizers", 1000)),
     XM_UNSUPPORTED, "deep"},
    {"DecodersTooDeep", with("\"decoder\":" + nested("Sequence", "decoders", 1000)),
     XM_UNSUPPORTED, "deep"},
    {"PostProcessorsTooDeep",
     with("\"post_processor\":" + nested("Sequence", "processors", 1000)), XM_UNSUPPORTED,
     "deep"},
    {"PrependNothing", with(R"("normalizer":{"type":"Prepend"})"), XM_INVALID, "prepend"},
    {"ReplaceNothing",
     with(R"("normalizer":{"type":"Replace","pattern":{},"content":"x"})"), XM_INVALID,
     "pattern"},
    {"ReplaceEmpty",
     with(R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":"x"})"),
     XM_UNSUPPORTED, "empty"},
    {"BadPattern",
     with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},)"
          R"("behavior":"Isolated"})"),
     XM_INVALID, "(a"},
    {"BadBehavior",
     with(R"("pre_tokenizer":{"type":"Split","pattern":{"String":"a"},)"
          R"("behavior":"Sideways"})"),
     XM_INVALID, "behavior"},
    {"HugeRepeat",
     with(R"("pre_tokenizer":{"type":"Split","pattern":)"
          R"({"Regex":"(?:(?:a{1,60000}){1,60000}){1,60000}"},"behavior":"Isolated"})"),
     XM_INVALID, "regular expression"},
    {"OtherPreTokenizer", with(R"("pre_tokenizer":{"type":"UnicodeScripts"})"),
     XM_UNSUPPORTED, "UnicodeScripts"},
    {"LongReplacement",
     with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"abcdefghijkl"})"),
     XM_INVALID, "replacement"},
    {"OtherScheme",
     with(R"("pre_tokenizer":{"type":"Metaspace","prepend_scheme":"sometimes"})"),
     XM_INVALID, "prepend_scheme"},
    {"OtherDecoder", with(R"("decoder":{"type":"CTC"})"), XM_UNSUPPORTED, "CTC"},
    {"ReplaceBehindFuse",
     with(R"("decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},)"
          R"({"type":"Replace","pattern":{"String":"a"},"content":"b"}]})"),
     XM_UNSUPPORTED, "Replace"},
    {"OtherPostProcessor", with(R"("post_processor":{"type":"Magic"})"), XM_UNSUPPORTED,
     "Magic"},
    {"TemplateWithoutText",
     with(R"("post_processor":{"type":"TemplateProcessing","single":[]})"), XM_INVALID,
     "Sequence"},
    {"TemplateWithUnknownToken",
     with(R"("post_processor":{"type":"TemplateProcessing","single":)"
          R"([{"SpecialToken":{"id":"S"}},{"Sequence":{}}],"special_tokens":{}})"),
     XM_INVALID, "'S'"},
    {"TemplateWithUnknownId",
     with(R"("post_processor":{"type":"RobertaProcessing","cls":["a",77],)"
          R"("sep":["b",1]})"),
     XM_INVALID, "77"},
    {"AddedIsObject", with(R"("added_tokens":{})"), XM_INVALID, "added_tokens"},
    {"AddedIsNumber", with(R"("added_tokens":[3])"), XM_INVALID, "added token 0"},
    {"AddedWithoutId", with(R"("added_tokens":[{"content":"x"}])"), XM_INVALID, "id"},
    {"AddedWithoutText", with(R"("added_tokens":[{"id":9}])"), XM_INVALID, "content"},
    {"AddedIdTaken", with(R"("added_tokens":[{"id":0,"content":"x"}])"), XM_INVALID,
     "'x'"},
    {"AddedIdHuge", with(R"("added_tokens":[{"id":2000000000,"content":"x"}])"),
     XM_INVALID, "2000000000"},
};

void
PrintTo(const bad_file &file, std::ostream *out)
{
    *out << file.name;
}

class BadTokenizerFile : public testing::TestWithParam<bad_file>
{
};

/* A file with all parts that a small tokenizer can have, so that every allocation is tested. */
const std::string rich = tokenizer_json(
    R"("vocab":{"a":0,"b":1,"ab":2,"?":3,"<0xC3>":4,"<0xA9>":5,"▁":6},)"
    R"("merges":["a b"],"unk_token":"?","byte_fallback":true)",
    R"("added_tokens":[{"id":7,"content":"<s>","special":true},)"
    R"({"id":8,"content":"N","normalized":true}],)"
    R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},)"
    R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]},)"
    R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split",)"
    R"("pattern":{"Regex":"\\s"},"behavior":"MergedWithNext"},{"type":"Digits"}]},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":)"
    R"({"id":"s"}},{"Sequence":{"id":"A"}}],"special_tokens":{"s":{"ids":[7]}}},)"
    R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace",)"
    R"("pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},)"
    R"({"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})");
const std::string rich_text = "ab \xff\xc3\xa9<s>e\u0301N1a";

enum xm_status
round_trip(struct xm_error *err)
{
    struct xm_tokenizer *t = nullptr;
    struct xm_token_list list = {};
    struct xm_strbuf out = {};
    enum xm_status status = xm_tokenizer_load_memory(rich.data(), rich.size(), &t, err);
    if (status == XM_OK)
        status =
            xm_tokenizer_encode(t, rich_text.data(), rich_text.size(), true, &list, err);
    if (status == XM_OK)
        status = xm_tokenizer_decode(t, list.ids, list.n, false, &out, err);
    if (status == XM_OK) {
        /* Byte tokens are emitted before a pending unknown character, as in the reference. */
        EXPECT_EQ(std::string(xm_strbuf_text(&out), out.n), "<s>ab é?<s>éN?a");
    }
    xm_strbuf_free(&out);
    xm_token_list_free(&list);
    xm_tokenizer_free(t);
    return status;
}

} // namespace

TEST_P(BadTokenizerFile, IsRefusedWithASentence)
{
    const bad_file &bad = GetParam();
    Tokenizer t(bad.json);
    EXPECT_EQ(t.status, bad.status) << t.err.text;
    EXPECT_EQ(t.t, nullptr);
    EXPECT_NE(strstr(t.err.text, bad.word), nullptr) << t.err.text;
    EXPECT_EQ(strncmp(t.err.text, "tokenizer", 9), 0) << t.err.text;
}

INSTANTIATE_TEST_SUITE_P(Table, BadTokenizerFile, testing::ValuesIn(bad_files),
                         [](const testing::TestParamInfo<bad_file> &row) {
                             return row.param.name;
                         });

TEST(HostilePattern, BacktrackingWithoutEndIsAnError)
{
    Tokenizer t(with(R"("pre_tokenizer":{"type":"Split","pattern":)"
                     R"({"Regex":"(?:a+)+(?=b)$"},"behavior":"Isolated"})"));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    t.encode(std::string(5000, 'a') + "c");
    EXPECT_EQ(t.status, XM_INVALID);
    EXPECT_NE(strstr(t.err.text, "limit"), nullptr) << t.err.text;
    EXPECT_EQ(strstr(t.err.text, "''"), nullptr) << "which pattern? " << t.err.text;
}

TEST(HostilePattern, EmptyMatchesEnd)
{
    Tokenizer t(with(R"("pre_tokenizer":{"type":"Split","pattern":)"
                     R"({"Regex":"x*"},"behavior":"Isolated"})"));
    EXPECT_EQ(t.encode("abc"), ids({0, 1, 2}));
}

TEST(HostileFile, SequencesMayBeNestedToALimit)
{
    Tokenizer t(with("\"normalizer\":" + nested("Sequence", "normalizers", 8)));
    EXPECT_EQ(t.encode("a"), ids({0}));
}

TEST(HostileFile, EveryPrefixOfARealOneIsRefused)
{
    for (size_t n = 0; n + 1 < rich.size(); n++) {
        Tokenizer t(rich.substr(0, n));
        ASSERT_NE(t.status, XM_OK);
    }
}

TEST(HostileFile, AnyByteChangedNeverCrashes)
{
    const char other[] = {'"', '{', '}', '[', ']', '-', '9', ',', '\0', '\xff'};
    for (size_t i = 0; i < rich.size(); i++)
        for (char c : other) {
            std::string json = rich;
            json[i] = c;
            Tokenizer t(json);
            if (t.status == XM_OK) {
                t.encode(rich_text, true);
            }
        }
}

TEST(Memory, EveryAllocationMayFail)
{
    struct xm_error none = {};
    ASSERT_EQ(round_trip(&none), XM_OK) << none.text;
    bool seen = true;
    int failures = 0;
    for (uint64_t n = 1; seen; n++) {
        struct xm_error err = {};
        xm_fail_allocation(n);
        enum xm_status status = round_trip(&err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        /* The just-in-time compiler is optional: without it reading succeeds. */
        ASSERT_TRUE(status == XM_NO_MEMORY || status == XM_OK) << n << ": " << err.text;
        failures += status == XM_NO_MEMORY;
    }
    EXPECT_GT(failures, 30);
}

TEST(HostileConfig, IdsThatAreNone)
{
    struct xm_generation_config m;
    struct xm_error err = {};
    char folder_template[] = "/tmp/xm_text_XXXXXX";
    ASSERT_NE(mkdtemp(folder_template), nullptr);
    std::string folder = folder_template;
    std::string path = folder + "/generation_config.json";
    const char *const bad[] = {R"({"eos_token_id":"x"})", R"({"eos_token_id":[-1]})",
                               R"({"pad_token_id":1e9})", R"([1])", R"({)"};
    for (const char *text : bad) {
        err = {};
        FILE *file = fopen(path.c_str(), "w");
        ASSERT_NE(file, nullptr);
        fputs(text, file);
        fclose(file);
        EXPECT_EQ(xm_generation_config_load(folder.c_str(), &m, &err), XM_INVALID)
            << text;
        EXPECT_NE(strstr(err.text, "generation_config.json"), nullptr) << err.text;
    }
    remove(path.c_str());
    remove(folder.c_str());
}
