// SPDX-License-Identifier: Apache-2.0
// Each component of a tokenizer file on small vocabularies, compared with the reference's
// definition.
#include <cstring>

#include "plugin/text/regex.h"
#include "plugin/text/unicode_form.h"
#include "runtime/util/utf8.h"
#include "unit_tests/text/text_test.h"

namespace
{

using texts = std::vector<std::string>;

/* A model of every printable ASCII character, some others and <0xHH>, without merges: tokens are
 * the characters of the pieces, so that a suffix of whole words shows where words end. */
std::string
character_model()
{
    std::string vocab;
    int id = 0;
    for (char c = ' '; c <= '~'; c++) {
        std::string s = c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        vocab += "\"" + s + "\":" + std::to_string(id++) + ",";
        vocab += "\"" + s + "|\":" + std::to_string(id++) + ",";
    }
    vocab += "\"\u2581\":" + std::to_string(id++) + ",";
    vocab += "\"\u2581|\":" + std::to_string(id++);
    return "\"end_of_word_suffix\":\"|\",\"merges\":[],\"vocab\":{" + vocab + "}";
}

/* Returns the pieces that a pre-tokenizer makes of a text. */
texts
cut(const std::string &pre_tokenizer, const std::string &text)
{
    Tokenizer t(tokenizer_json(character_model(), "\"pre_tokenizer\":" + pre_tokenizer));
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
    texts result;
    std::string piece;
    if (t.status != XM_OK)
        return result;
    for (const std::string &token : t.pieces(text)) {
        piece += token;
        if (token.size() > 1 && token.back() == '|') {
            piece.pop_back();
            result.push_back(piece);
            piece.clear();
        }
    }
    EXPECT_EQ(piece, "");
    return result;
}

std::string
split(const char *behavior, const char *invert = "false")
{
    return std::string(R"({"type":"Split","pattern":{"String":"-"},"behavior":")") +
           behavior + "\",\"invert\":" + invert + "}";
}

std::string
normalize(enum xm_unicode_form form, const std::string &text)
{
    struct xm_strbuf out = {};
    xm_unicode_normalize(form, xm_slice_of(text.data(), text.size()), &out, nullptr);
    std::string result(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return result;
}

std::string
repair(const std::string &text)
{
    struct xm_strbuf out = {};
    xm_utf8_repair(xm_slice_of(text.data(), text.size()), &out);
    std::string result(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return result;
}

texts
match(const std::string &pattern, const std::string &text)
{
    struct xm_regex *regex = nullptr;
    struct xm_span_list list = {};
    struct xm_error err = {};
    texts result;
    xm_regex_create(xm_slice_of(pattern.data(), pattern.size()), &regex, &err);
    EXPECT_EQ(err.status, XM_OK) << err.text;
    if (regex && xm_regex_spans(regex, xm_slice_of(text.data(), text.size()), &list,
                                &err) == XM_OK)
        for (size_t i = 0; i < list.n; i++)
            if (list.spans[i].is_match)
                result.push_back(text.substr(list.spans[i].start,
                                             list.spans[i].end - list.spans[i].start));
    xm_span_list_free(&list);
    xm_regex_free(regex);
    return result;
}

enum xm_status
pattern_status(const std::string &pattern)
{
    struct xm_regex *regex = nullptr;
    enum xm_status status =
        xm_regex_create(xm_slice_of(pattern.data(), pattern.size()), &regex, nullptr);
    xm_regex_free(regex);
    return status;
}

const char fffd[] = "\xef\xbf\xbd";

} // namespace

TEST(Split, DelimitersGoWhereTheBehaviorSays)
{
    const std::string text = "the-final--countdown";
    EXPECT_EQ(cut(split("Removed"), text), texts({"the", "final", "countdown"}));
    EXPECT_EQ(cut(split("Isolated"), text),
              texts({"the", "-", "final", "-", "-", "countdown"}));
    EXPECT_EQ(cut(split("MergedWithPrevious"), text),
              texts({"the-", "final-", "-", "countdown"}));
    EXPECT_EQ(cut(split("MergedWithNext"), text),
              texts({"the", "-final", "-", "-countdown"}));
    EXPECT_EQ(cut(split("Contiguous"), text),
              texts({"the", "-", "final", "--", "countdown"}));
}

TEST(Split, InvertedItKeepsOnlyTheDelimiters)
{
    EXPECT_EQ(cut(split("Removed", "true"), "a-b--"), texts({"-", "-", "-"}));
}

TEST(Split, DelimitersAtTheEdges)
{
    EXPECT_EQ(cut(split("MergedWithPrevious"), "-a-"), texts({"-", "a-"}));
    EXPECT_EQ(cut(split("MergedWithNext"), "-a-"), texts({"-a", "-"}));
    EXPECT_EQ(cut(split("Removed"), "--"), texts());
}

TEST(PreTokenizer, DigitsTogetherOrOneByOne)
{
    EXPECT_EQ(cut(R"({"type":"Digits","individual_digits":true})", "a12b"),
              texts({"a", "1", "2", "b"}));
    EXPECT_EQ(cut(R"({"type":"Digits","individual_digits":false})", "a12b"),
              texts({"a", "12", "b"}));
}

TEST(PreTokenizer, WhitespaceKeepsWordsAndSigns)
{
    EXPECT_EQ(cut(R"({"type":"Whitespace"})", "Hi, you!! x"),
              texts({"Hi", ",", "you", "!!", "x"}));
    EXPECT_EQ(cut(R"({"type":"WhitespaceSplit"})", "Hi, you!! x"),
              texts({"Hi,", "you!!", "x"}));
}

TEST(PreTokenizer, PunctuationIsIsolatedByDefault)
{
    EXPECT_EQ(cut(R"({"type":"Punctuation"})", "a,b$"), texts({"a", ",", "b", "$"}));
}

TEST(PreTokenizer, OneCharacterDelimits)
{
    EXPECT_EQ(cut(R"({"type":"CharDelimiterSplit","delimiter":"x"})", "axbx"),
              texts({"a", "b"}));
}

TEST(PreTokenizer, MetaspaceMarksSpaces)
{
    EXPECT_EQ(cut(R"({"type":"Metaspace","replacement":"▁"})", "a b"),
              texts({"▁a", "▁b"}));
    EXPECT_EQ(
        cut(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})", "a b"),
        texts({"a", "▁b"}));
    EXPECT_EQ(cut(R"({"type":"Metaspace","replacement":"▁","split":false})", "a b"),
              texts({"▁a▁b"}));
}

TEST(PreTokenizer, SequenceCutsThePiecesOfTheStepBefore)
{
    EXPECT_EQ(cut(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
                  R"({"type":"Digits","individual_digits":true}]})",
                  "a1 2b"),
              texts({"a", "1", "2", "b"}));
}

TEST(Bpe, MergesByRankThenFromTheLeft)
{
    Tokenizer t(tokenizer_json(R"("vocab":{"a":0,"b":1,"aa":2,"ab":3},)"
                               R"("merges":["a a","a b"])"));
    EXPECT_EQ(t.encode("aaab"), ids({2, 3}));
    EXPECT_EQ(t.encode("aaaab"), ids({2, 2, 1}));
}

TEST(Bpe, OfSeveralMergesOfAPairTheLastCounts)
{
    const std::string vocab = R"("vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4},)";
    EXPECT_EQ(
        Tokenizer(tokenizer_json(vocab + R"("merges":["a b","b c"])")).encode("abc"),
        ids({3, 2}));
    Tokenizer twice(tokenizer_json(vocab + R"("merges":["a b","b c","a b"])"));
    EXPECT_EQ(twice.encode("abc"), ids({0, 4}));
}

TEST(Bpe, BothSpellingsOfMergesAreTheSame)
{
    Tokenizer strings(tokenizer_json(small_model));
    Tokenizer arrays(tokenizer_json(
        R"("vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4},"merges":[["a","b"],["ab","c"]])"));
    EXPECT_EQ(strings.encode("abcab"), ids({4, 3}));
    EXPECT_EQ(arrays.encode("abcab"), ids({4, 3}));
}

TEST(Bpe, AModelWithoutATypeIsTakenForOne)
{
    Tokenizer t(R"({"model":{"vocab":{"a":0},"merges":[]}})");
    EXPECT_EQ(t.encode("aa"), ids({0, 0}));
}

TEST(Bpe, IgnoreMergesTakesWholeWords)
{
    const std::string model = R"("vocab":{"a":0,"b":1,"ab":2},"merges":[])";
    EXPECT_EQ(Tokenizer(tokenizer_json(model)).encode("ab"), ids({0, 1}));
    EXPECT_EQ(Tokenizer(tokenizer_json(model + ",\"ignore_merges\":true")).encode("ab"),
              ids({2}));
}

TEST(Bpe, UnknownCharactersVanishOrBecomeUnk)
{
    const std::string model = R"("vocab":{"a":0,"?":1},"merges":[])";
    const std::string unk = model + R"(,"unk_token":"?")";
    EXPECT_EQ(Tokenizer(tokenizer_json(model)).encode("axya"), ids({0, 0}));
    EXPECT_EQ(Tokenizer(tokenizer_json(unk)).encode("axya"), ids({0, 1, 1, 0}));
    EXPECT_EQ(Tokenizer(tokenizer_json(unk + ",\"fuse_unk\":true")).encode("axyax"),
              ids({0, 1, 0, 1}));
}

TEST(Bpe, BytesStandInForUnknownCharacters)
{
    Tokenizer t(tokenizer_json(R"("vocab":{"a":0,"<0xC3>":1,"<0xA9>":2,"?":3},)"
                               R"("merges":[],"byte_fallback":true,"unk_token":"?")",
                               R"("decoder":{"type":"ByteFallback"})"));
    EXPECT_EQ(t.encode("aé"), ids({0, 1, 2}));
    EXPECT_EQ(t.encode("aß"), ids({0, 3})); // one of its bytes has no token
    EXPECT_EQ(t.decode({0, 1, 2, 0}), "aéa");
    EXPECT_EQ(t.decode({1, 0, 2}), std::string(fffd) + "a" + fffd);
    // the whole run of byte tokens is invalid
    EXPECT_EQ(t.decode({1, 2, 2}), std::string(fffd) + fffd + fffd);
}

TEST(Bpe, PrefixAndSuffixMarkPlacesInTheWord)
{
    Tokenizer t(tokenizer_json(R"("vocab":{"a":0,"#b":1,"#c!":2,"a#":3,"ab":4,"abc!":5},)"
                               R"("merges":["a #b","ab #c!"],"end_of_word_suffix":"!",)"
                               R"("continuing_subword_prefix":"#")"));
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("abc"), ids({5}));
}

TEST(AddedTokens, LongestOfThoseThatBeginFirst)
{
    Tokenizer t(tokenizer_json(
        small_model,
        R"("added_tokens":[{"id":6,"content":"<x"},{"id":7,"content":"<x>"},)"
        R"({"id":8,"content":"x>y"}])"));
    EXPECT_EQ(t.encode("a<x>y"), ids({0, 7}));
    EXPECT_EQ(t.encode("<x<x>"), ids({6, 7}));
}

TEST(AddedTokens, TakeWhiteSpaceWithThem)
{
    Tokenizer t(tokenizer_json(
        small_model, R"("added_tokens":[{"id":6,"content":"<l>","lstrip":true},)"
                     R"({"id":7,"content":"<r>","rstrip":true}])"));
    EXPECT_EQ(t.encode("a  <l> b"), ids({0, 6, 5, 1}));
    EXPECT_EQ(t.encode("a <r>  b"), ids({0, 5, 7, 1}));
    EXPECT_EQ(t.encode("<r>  <l>"), ids({7, 6}));
}

TEST(AddedTokens, SingleWordsStandAlone)
{
    Tokenizer t(tokenizer_json(
        small_model, R"("added_tokens":[{"id":6,"content":"ab","single_word":true}])"));
    EXPECT_EQ(t.status, XM_INVALID); // "ab" is token 3 of the model
    Tokenizer u(tokenizer_json(
        small_model, R"("added_tokens":[{"id":3,"content":"ab","single_word":true}])"));
    EXPECT_EQ(u.encode("abc"), ids({4}));
    EXPECT_EQ(u.encode("ab c"), ids({3, 5, 2}));
}

TEST(AddedTokens, NormalizedOnesAreFoundInNormalizedText)
{
    Tokenizer t(tokenizer_json(small_model,
                               R"("normalizer":{"type":"Lowercase"},"added_tokens":[)"
                               R"({"id":6,"content":"X","normalized":true},)"
                               R"({"id":7,"content":"Y","normalized":false}])"));
    EXPECT_EQ(t.encode("AXxYyB"), ids({0, 6, 6, 7, 1}));
}

TEST(Normalizer, StepsWorkInOrder)
{
    Tokenizer t(tokenizer_json(
        small_model, R"("normalizer":{"type":"Sequence","normalizers":[)"
                     R"({"type":"Strip"},{"type":"NFD"},{"type":"StripAccents"},)"
                     R"({"type":"Replace","pattern":{"Regex":"[0-9]+"},"content":"b"},)"
                     R"({"type":"Prepend","prepend":"c"}]})"));
    EXPECT_EQ(t.encode(" á123a "), ids({2, 3, 0}));
    EXPECT_EQ(t.encode("  "), ids());
}

TEST(UnicodeForm, ComposesAndDecomposes)
{
    EXPECT_EQ(normalize(XM_NFC, "e\u0301"), "é");
    EXPECT_EQ(normalize(XM_NFD, "é"), "e\u0301");
    EXPECT_EQ(normalize(XM_NFKC, "ﬁ²"), "fi2");
    EXPECT_EQ(normalize(XM_NFKD, "한"), "\u1112\u1161\u11ab");
    // combining marks are sorted
    EXPECT_EQ(normalize(XM_NFC, "q\u0307\u0323"), "q\u0323\u0307");
    EXPECT_EQ(normalize(XM_NFC, std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(UnicodeForm, AMillionMarksInTheWrongOrderTakeNoMinute)
{
    std::string marks = "a";
    for (int i = 0; i < 250000; i++)
        marks += "\u0301\u0327";
    EXPECT_EQ(normalize(XM_NFD, marks).size(), marks.size());
}

TEST(Utf8, EveryIllFormedPartBecomesOneReplacement)
{
    EXPECT_EQ(repair("a\x80z"), std::string("a") + fffd + "z");
    EXPECT_EQ(repair("\xe4\xb8"), fffd);                                // cut off
    EXPECT_EQ(repair("\xc0\xaf"), std::string(fffd) + fffd);            // overlong
    EXPECT_EQ(repair("\xed\xa0\x80"), std::string(fffd) + fffd + fffd); // surrogate
    EXPECT_EQ(repair("\xf0\x9f\x98z"), std::string(fffd) + "z");
    EXPECT_EQ(repair("\xf4\x90\x80\x80"), std::string(fffd) + fffd + fffd + fffd);
    EXPECT_EQ(repair("é中😀"), "é中😀");
}

TEST(Utf8, WhatIsShownHasNoControlCharactersAndIsCutBehindACharacter)
{
    const auto shown = [](const std::string &s, size_t bytes) {
        std::string out(bytes, 'x');
        xm_utf8_show(xm_slice_of(s.data(), s.size()), &out[0], bytes);
        return std::string(out.c_str());
    };
    EXPECT_EQ(shown("a\x1b\n\x7f\u0085\u00a0b", 64), "a????\u00a0b");
    EXPECT_EQ(shown(std::string("a\0b", 3), 64), "a?b");
    EXPECT_EQ(shown("a\xff\xe2\x82", 64), "a\ufffd\ufffd");
    EXPECT_EQ(shown("\u20ac\u20ac", 6), "\u20ac");
    EXPECT_EQ(shown("\u20ac\u20ac", 7), "\u20ac\u20ac");
    EXPECT_EQ(shown("\u20ac", 1), "");
    EXPECT_EQ(shown("", 1), "");
    EXPECT_EQ(strlen(xm_utf8_shown(xm_slice_of(nullptr, 0)).text), 0u);
}

TEST(Utf8, BadInputIsEncodedAsReplacements)
{
    Tokenizer t = Tokenizer::file(XM_MODELS_DIR "/qwen3moe-tiny/tokenizer.json");
    EXPECT_EQ(t.encode("a\xff\xe4z"), t.encode(std::string("a") + fffd + fffd + "z"));
}

TEST(Regex, WhiteSpaceIsUnicodes)
{
    EXPECT_EQ(match("\\s", " \u0085\u3000"), texts({" ", "\u0085", "\u3000"}));
    EXPECT_EQ(match("[^\\s]", "\u180e\u200b"), texts({"\u180e", "\u200b"}));
}

TEST(Regex, WordsAndTheirEdgesAreOnigurumas)
{
    EXPECT_EQ(match("\\w+", "ab_\u0301½-é"), texts({"ab_\u0301½", "é"}));
    EXPECT_EQ(match("\\b.", "e\u0301-"), texts({"e", "-"}));
}

TEST(Regex, ScriptsLeaveSharedPunctuationOut)
{
    EXPECT_EQ(match("\\p{Han}+", "中文。字"), texts({"中文", "字"}));
    EXPECT_EQ(match("\\p{^Han}", "中a"), texts({"a"}));
}

TEST(Regex, RubysSpellings)
{
    EXPECT_EQ(match("[[:alpha:]_]+", "aⅧ_-\u0bbf"), texts({"aⅧ_", "\u0bbf"}));
    EXPECT_EQ(match("[^[:space:][:digit:]]+", "a1 \u180e"), texts({"a", "\u180e"}));
    EXPECT_EQ(match("\\h+", "xAf9g"), texts({"Af9"}));
    EXPECT_EQ(match("\\u00e9", "aé"), texts({"é"}));
    EXPECT_EQ(match("a{,2}b", "aaab"), texts({"aab"}));
    // $ matches at the end of any line
    EXPECT_EQ(match("a$", "a\nba"), texts({"a", "a"}));
    EXPECT_EQ(match("[]a]+", "a]b"), texts({"a]"}));
}

TEST(Regex, CaseIsFoldedAsInTheReference)
{
    EXPECT_EQ(match("(?i:'s)", "'S's'\u017f"), texts({"'S", "'s", "'\u017f"}));
}

/* The characters that the PyPI package tokenizers 0.23.3 finds with each pattern. */
TEST(Regex, ClassesAreSetsOfSets)
{
    const std::string text = "abcdefxyzABZ0189_-&[]^ \n.é中";
    const struct {
        const char *pattern, *found;
    } rows[] = {
        {"[a-z&&[^b]]", "acdefxyz"},
        {"[^a-z&&[^b]]", "bABZ0189_-&[]^ \n.é中"},
        {"[a-c[xy]]", "abcxy"},
        {"[^a-c[xy]]", "defzABZ0189_-&[]^ \n.é中"},
        {"[\\W]", "-&[]^ \n."},
        {"[^\\W]", "abcdefxyzABZ0189_é中"},
        {"[\\Wa]", "a-&[]^ \n."},
        {"[\\H]", "xyzZ_-&[]^ \n.é中"},
        {"[a-f&&b-z&&[^d]]", "bcef"},
        {"[a&&]", ""},
        {"[&&a]", ""},
        {"[a&&b]", ""},
        {"[a&b]", "ab&"},
        {"[a&&&b]", ""},
        {"[a-z&&^b]", "b"},
        {"[a-z&&[^a-c]x]", "defxyz"},
        {"[[a-c]&&[b-d]]", "bc"},
        {"[[^a]]", "bcdefxyzABZ0189_-&[]^ \n.é中"},
        {"[^[^a]]", "a"},
        {"[a[^b-z]]", "aABZ0189_-&[]^ \n.é中"},
        {"[\\p{L}&&[^\\p{Han}]]", "abcdefxyzABZé"},
        {"[\\S&&[^a]]", "bcdefxyzABZ0189_-&[]^.é中"},
        {"[a-c&&[:alpha:]]", "abc"},
        {"[^]a]", "bcdefxyzABZ0189_-&[^ \n.é中"},
        {"[[a]-z]", "az-"},
        {"[a-z-[b]]", "abcdefxyz-"},
        {"[+--]", "-"},
        {"[a-z--b]", "abcdefxyzABZ0189_-[]^."},
        {"[a-z&&&&b]", ""},
    };
    for (auto &row : rows) {
        std::string found;
        for (const std::string &c : match(row.pattern, text))
            found += c;
        EXPECT_EQ(found, row.found) << row.pattern;
    }
    EXPECT_EQ(match("[a-z&&[^b]]+", "abcd"), texts({"a", "cd"}));
}

TEST(Regex, WhatCannotBeTranslatedIsRefused)
{
    EXPECT_EQ(pattern_status("[\\R]"), XM_UNSUPPORTED);
    EXPECT_EQ(pattern_status("[\\B]"), XM_UNSUPPORTED);
    EXPECT_EQ(pattern_status("[a"), XM_INVALID);
    EXPECT_EQ(pattern_status("[a[b]"), XM_INVALID);
    EXPECT_EQ(pattern_status("[]"), XM_INVALID);
    EXPECT_EQ(pattern_status(std::string(17, '[') + "a" + std::string(17, ']')),
              XM_UNSUPPORTED);
    EXPECT_EQ(pattern_status(std::string(16, '[') + "a" + std::string(16, ']')), XM_OK);
    EXPECT_EQ(pattern_status("\\y"), XM_UNSUPPORTED);
    EXPECT_EQ(pattern_status("(a"), XM_INVALID);
    EXPECT_EQ(pattern_status("a\\"), XM_INVALID);
    EXPECT_EQ(pattern_status("\\p{Nothing}"), XM_INVALID);
    EXPECT_EQ(pattern_status("[[:nothing:]]"), XM_INVALID);
    EXPECT_EQ(pattern_status("\\u00"), XM_INVALID);
}

TEST(Decoder, StripsAndReplaces)
{
    Tokenizer t(tokenizer_json(
        R"("vocab":{"▁a":0,"▁":1,"b":2},"merges":[])",
        R"("decoder":{"type":"Sequence","decoders":[)"
        R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
        R"({"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":1}]})"));
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.decode({0, 0, 2}), "a ab");
    EXPECT_EQ(t.decode({1, 1, 2, 1, 1}), " b ");
    EXPECT_EQ(t.decode({1}), "");
}

TEST(Decoder, MetaspaceDropsTheFirstSpace)
{
    Tokenizer t(tokenizer_json(R"("vocab":{"▁a":0,"b":1},"merges":[])",
                               R"("decoder":{"type":"Metaspace","replacement":"▁"})"));
    EXPECT_EQ(t.decode({0, 1, 0}), "ab a");
}

TEST(Decoder, WithoutOneTokensAreJoinedBySpaces)
{
    EXPECT_EQ(Tokenizer(tokenizer_json(small_model)).decode({0, 3, 2}), "a ab c");
}

TEST(PostProcessor, LaterOnesGoAround)
{
    Tokenizer t(tokenizer_json(
        small_model,
        R"("post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},)"
        R"({"type":"RobertaProcessing","cls":["a",0],"sep":["b",1]},)"
        R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"S"}},)"
        R"({"Sequence":{"id":"A"}}],"special_tokens":{"S":{"ids":[2,3]}}}]})"));
    EXPECT_EQ(t.encode("abc", true), ids({2, 3, 0, 4, 1}));
    EXPECT_EQ(t.encode("", true), ids({2, 3, 0, 1}));
    EXPECT_EQ(t.encode("abc", false), ids({4}));
}
