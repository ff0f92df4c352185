// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "plugin/text/stop_strings.h"

namespace
{

using strings = std::vector<std::string>;

struct result {
    std::string text;
    bool stopped;
};

class Matcher
{
  public:
    explicit Matcher(const strings &stops)
    {
        std::vector<struct xm_slice> slices;
        for (const std::string &s : stops)
            slices.push_back(xm_slice_of(s.data(), s.size()));
        status = xm_stop_strings_create(slices.data(), slices.size(), &m, &err);
    }
    ~Matcher()
    {
        xm_stop_strings_free(m);
    }
    std::string push(const std::string &part)
    {
        struct xm_strbuf out = {};
        EXPECT_EQ(
            xm_stop_strings_push(m, part.data(), part.size(), &out, &stopped, nullptr),
            XM_OK);
        return take(out);
    }
    std::string flush()
    {
        struct xm_strbuf out = {};
        EXPECT_EQ(xm_stop_strings_flush(m, &out, nullptr), XM_OK);
        return take(out);
    }

    /* Continues with a copy. */
    void change()
    {
        struct xm_stop_strings *copy = xm_stop_strings_copy(m);
        ASSERT_NE(copy, nullptr);
        xm_stop_strings_free(m);
        m = copy;
    }

    struct xm_stop_strings *m = nullptr;
    struct xm_error err = {};
    enum xm_status status = XM_OK;
    bool stopped = false;

  private:
    static std::string take(struct xm_strbuf &out)
    {
        std::string text(xm_strbuf_text(&out), out.n);
        xm_strbuf_free(&out);
        return text;
    }
};

/* By definition: at the first byte where a stop string ends, the longest that ends there. */
result
reference(const strings &stops, const std::string &text)
{
    for (size_t end = 1; end <= text.size(); end++) {
        size_t longest = 0;
        for (const std::string &s : stops)
            if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0)
                longest = std::max(longest, s.size());
        if (longest > 0)
            return {text.substr(0, end - longest), true};
    }
    return {text, false};
}

/* Tries all ways to cut the text into up to three parts, and byte by byte. */
void
check_every_split(const strings &stops, const std::string &text)
{
    result expected = reference(stops, text);
    auto check = [&](const strings &parts) {
        for (bool copied : {false, true}) {
            Matcher m(stops);
            std::string out;
            for (const std::string &part : parts) {
                out += m.push(part);
                if (copied)
                    m.change();
            }
            EXPECT_EQ(m.stopped, expected.stopped) << text;
            EXPECT_EQ(out + m.flush(), expected.text) << text;
        }
    };
    for (size_t a = 0; a <= text.size(); a++)
        for (size_t b = a; b <= text.size(); b++)
            check({text.substr(0, a), text.substr(a, b - a), text.substr(b)});
    strings bytes;
    for (char c : text)
        bytes.emplace_back(1, c);
    check(bytes);
}

/* The token in which a stop string begins loses the spaces before it, if it has nothing else
 * there. */
TEST(StopStrings, DropsBlanksOfItsToken)
{
    const struct {
        strings stops, tokens, out; /* with the result of flush */
    } rows[] = {
        {{"Rome"}, {"is", " Rome", "."}, {"is", ""}},
        {{"Rome"}, {"is", " ", "Rome"}, {"is", " ", ""}},
        {{"Rome"}, {"is", " \n Ro", "m", "e"}, {"is", "", "", ""}},
        {{"Rome"}, {"is", " Ro", "ad"}, {"is", "", " Road", ""}},
        {{"Rome"}, {"is", " Ro"}, {"is", "", " Ro"}},
        {{"Rome"}, {"in Rome"}, {"in "}},
        {{"Rome"}, {"\tRome"}, {"\t"}},
        {{"aab"}, {" a", "a", "ab"}, {"", "", " a"}},
        {{"\n"}, {"user", "\n"}, {"user", ""}},
        {{" is"}, {"It", "  is"}, {"It", ""}},
        {{"x", "Rome"}, {" x"}, {""}},
        {{"Rome"}, {"  ", "y"}, {"  ", "y", ""}},
        {{"\n\nUser:", "\nBot:"}, {"hi", "\n\n", "Bot", ":"}, {"hi", "", "", ""}},
        {{"\n\nUser:", "\nBot:"}, {"hi", "\n", "\nBot", ":"}, {"hi", "", "\n", ""}},
    };
    for (const auto &row : rows) {
        Matcher m(row.stops);
        ASSERT_EQ(m.status, XM_OK);
        xm_stop_strings_drop_blanks(m.m);
        strings out;
        for (size_t i = 0; i < row.tokens.size() && !m.stopped; i++)
            out.push_back(m.push(row.tokens[i]));
        if (!m.stopped)
            out.push_back(m.flush());
        EXPECT_EQ(out, row.out) << row.tokens[0] << row.tokens.back();
    }
}

/* By definition: the length of the text before a stop string at `at`, without the spaces that its
 * first token begins with if nothing else is before it. */
size_t
end_before(const strings &tokens, const std::string &text, size_t at)
{
    size_t begin = 0;
    for (size_t i = 0; begin + tokens[i].size() <= at; i++)
        begin += tokens[i].size();
    return text.find_first_not_of(" \n", begin) < at ? at : begin;
}

/* Returns how much of a text that may continue can be given out: it contains no stop string, and
 * each prefix of one at its end is held back. */
size_t
certain_of(const strings &stops, const strings &tokens, const std::string &text)
{
    size_t certain = text.size();
    for (size_t at = 0; at < text.size(); at++)
        for (const std::string &s : stops)
            if (s.compare(0, text.size() - at, text, at) == 0)
                certain = std::min(certain, end_before(tokens, text, at));
    return certain;
}

void
check_without_blanks(const strings &stops, const strings &tokens)
{
    Matcher m(stops);
    xm_stop_strings_drop_blanks(m.m);
    std::string text, out;
    for (const std::string &token : tokens) {
        out += m.push(token);
        text += token;
        const result plain = reference(stops, text);
        ASSERT_EQ(m.stopped, plain.stopped);
        const size_t n = plain.stopped ? end_before(tokens, text, plain.text.size())
                                       : certain_of(stops, tokens, text);
        ASSERT_EQ(out, text.substr(0, n));
        if (m.stopped)
            return;
    }
    EXPECT_EQ(out + m.flush(), text);
}

/* Few letters, so that prefixes overlap and span tokens. */
TEST(StopStrings, DropBlanksAsIsSaidWhateverTheTokensAre)
{
    std::mt19937 random(7);
    const auto below = [&](unsigned n) { return static_cast<size_t>(random() % n); };
    const auto word = [&](size_t n) {
        std::string s;
        while (s.size() < n)
            s += "\n\n ab"[below(5)];
        return s;
    };
    for (int i = 0; i < 30000; i++) {
        strings stops, tokens;
        std::string shown;
        for (size_t n = 1 + below(3); stops.size() < n;)
            stops.push_back(word(1 + below(5)));
        for (size_t n = 1 + below(7); tokens.size() < n;)
            tokens.push_back(word(below(5)));
        for (const strings &list : {stops, tokens})
            for (const std::string &s : list)
                shown += testing::PrintToString(s) + " ";
        SCOPED_TRACE(shown);
        check_without_blanks(stops, tokens);
        if (testing::Test::HasFailure())
            return;
    }
}

} // namespace

TEST(StopStrings, EverySplitGivesTheSame)
{
    const strings sets[] = {
        {"###"},         {"END"},           {"aab"},       {"abab", "bc"}, {"abc", "b"},
        {"\n\n", "\nU"}, {"aa", "aaa"},     {"ba", "cba"}, {"\xc3\xa9!"},  {},
        {"<|x|>", "<|"}, {"aabaaac", "ab"},
    };
    const char *const texts[] = {
        "abc###def", "##x###", "EENDED", "aaabaab",      "abababc", "xabcx", "a\nU",
        "\n\n\n",    "aaaa",   "dcba",   "caf\xc3\xa9!", "a<|x|>b", "",      "aabaabaaac",
    };
    for (const strings &stops : sets)
        for (const char *text : texts)
            check_every_split(stops, text);
}

TEST(StopStrings, AllSmallTextsOverTwoLetters)
{
    const strings sets[] = {{"aba"}, {"abb", "ba"}, {"aabb", "bab", "bb"}};
    for (const strings &stops : sets)
        for (int bits = 0; bits < 1 << 7; bits++) {
            std::string text;
            for (int i = 0; i < 7; i++)
                text += bits >> i & 1 ? 'b' : 'a';
            check_every_split(stops, text);
        }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStopString)
{
    Matcher m({"###"});
    EXPECT_EQ(m.push("abc#"), "abc");
    EXPECT_EQ(m.push("#"), "");
    EXPECT_EQ(m.push("x"), "##x");
    EXPECT_EQ(m.push("y###z"), "y");
    EXPECT_TRUE(m.stopped);
    EXPECT_EQ(m.push("more"), "");
    EXPECT_TRUE(m.stopped);
}

TEST(StopStrings, WhatWasFoundComesWhereItIsKept)
{
    for (const strings &parts : {strings{"xa#", "##y"}, strings{"xa###y"}}) {
        Matcher m({"##", "a###"});
        std::string text;
        xm_stop_strings_keep_found(m.m);
        for (const std::string &part : parts)
            text += m.push(part);
        EXPECT_EQ(text, "xa##");
        EXPECT_TRUE(m.stopped);
    }
}

TEST(StopStrings, TellWhichWasFound)
{
    struct {
        strings stops;
        const char *text;
        size_t found;
    } const rows[] = {
        {{"x", "yy"}, "ay", 0},
        {{"x", "yy"}, "ayya", 2},
        {{"x", "yy"}, "ax", 1},
        {{"c", "bc", "abc"}, "abc", 3}, /* of those that end at a byte, the longest */
        {{"abc", "bc", "c"}, "abc", 1},
        {{"abcd", "bc"}, "abc", 2},
    };
    for (const auto &row : rows) {
        Matcher m(row.stops);
        m.push(row.text);
        EXPECT_EQ(xm_stop_strings_found(m.m), row.found) << row.text;
        m.flush();
        EXPECT_EQ(xm_stop_strings_found(m.m), 0u);
    }
}

TEST(StopStrings, FlushBeginsAnew)
{
    Matcher m({"ab"});
    m.push("xab");
    EXPECT_TRUE(m.stopped);
    EXPECT_EQ(m.flush(), "");
    EXPECT_EQ(m.push("ya"), "y");
    EXPECT_FALSE(m.stopped);
    EXPECT_EQ(m.flush(), "a");
    EXPECT_EQ(m.push("b"), "b");
}

TEST(StopStrings, NulBytesAreText)
{
    Matcher m({std::string("\0x", 2)});
    EXPECT_EQ(m.push(std::string("a\0", 2)), "a");
    EXPECT_EQ(m.push(std::string("\0x", 2)), std::string("\0", 1));
    EXPECT_TRUE(m.stopped);
}

TEST(StopStrings, EmptyStopStringIsRefused)
{
    Matcher m({"a", ""});
    EXPECT_EQ(m.status, XM_INVALID);
    EXPECT_STREQ(m.err.text, "stop string 2 of 2 is empty");
}

TEST(StopStrings, EveryAllocationMayFail)
{
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        Matcher m({"abc", "d"});
        struct xm_strbuf out = {};
        enum xm_status status = m.status;
        if (status == XM_OK)
            status = xm_stop_strings_push(m.m, "xab", 3, &out, &m.stopped, nullptr);
        if (status == XM_OK) {
            struct xm_stop_strings *copy = xm_stop_strings_copy(m.m);
            status = copy ? XM_OK : XM_NO_MEMORY;
            xm_stop_strings_free(copy);
        }
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_strbuf_free(&out);
        if (!seen) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << n;
    }
}
