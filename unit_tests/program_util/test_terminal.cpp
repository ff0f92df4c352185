/* SPDX-License-Identifier: Apache-2.0
 *
 * Text cut or filled to the width of a terminal.
 */
#include "plugin/program_util/terminal.h"

#include <gtest/gtest.h>

#include <string>

static std::string
fit(const std::string &text, size_t columns)
{
    return text.substr(0, xm_terminal_fit(text.data(), text.size(), columns));
}

TEST(Terminal, WholeCharactersFit)
{
    EXPECT_EQ(fit("abc", 3), "abc");
    EXPECT_EQ(fit("abcd", 3), "abc");
    EXPECT_EQ(fit("äöü", 2), "äö");
    EXPECT_EQ(fit("日本語", 5), "日本") << "two columns each";
    EXPECT_EQ(fit("a\xff\xff", 2), "a\xff") << "what is no character takes a column";
    EXPECT_EQ(fit("", 0), "");
}

static std::string
wrap(const std::string &text, size_t columns)
{
    struct xm_strbuf out = {};
    xm_terminal_wrap(text.c_str(), columns, &out);
    const std::string lines = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return lines;
}

/* Returns a text broken line after line. */
static std::string
first_lines(const std::string &text, size_t columns)
{
    std::string lines;
    for (size_t at = 0, n, skip; at < text.size(); at += skip) {
        n = xm_terminal_first_line(text.data() + at, text.size() - at, columns, &skip);
        lines += text.substr(at, n) + "|";
    }
    return lines;
}

TEST(Terminal, FirstLinesAreBrokenAtSpacesElseWithinWords)
{
    EXPECT_EQ(first_lines("one two three", 8), "one two|three|");
    EXPECT_EQ(first_lines("one two", 7), "one two|");
    EXPECT_EQ(first_lines("unbreakable word", 5), "unbre|akabl|e|word|");
    EXPECT_EQ(first_lines("日本 語", 3), "日|本|語|") << "two columns each";
    EXPECT_EQ(first_lines("日本", 1), "日|本|") << "one character at least";
    EXPECT_EQ(first_lines("", 5), "");
}

TEST(Terminal, LinesAreBrokenAtSpaces)
{
    EXPECT_EQ(wrap("one two three\nfour\n", 8), "one two\nthree\nfour\n");
    EXPECT_EQ(wrap("one two", 7), "one two") << "it fits";
    EXPECT_EQ(wrap("  one two three", 9), "  one two\n  three");
    EXPECT_EQ(wrap("äöü äöü", 4), "äöü\näöü") << "columns, not bytes";
    EXPECT_EQ(wrap("unbreakable word", 5), "unbreakable word");
    EXPECT_EQ(wrap("", 5), "");
}

/* Help texts are broken for 80 columns. On narrower terminals paragraphs are filled again:
 * breaking each line separately would leave short lines. */
TEST(Terminal, ParagraphsAreFilledWhereTheyDoNotFit)
{
    const std::string text = "usage: x\n\none two three\nfour five\nsix\n\n  a row\n";
    EXPECT_EQ(wrap(text, 13), text);
    EXPECT_EQ(wrap(text, 10), "usage: x\n\none two\nthree four\nfive six\n\n  a row\n");
    EXPECT_EQ(wrap("one two\nthree", 5), "one\ntwo\nthree\n") << "the last line's end";
}

TEST(Terminal, DescriptionsGoOnBelowTheirBegin)
{
    EXPECT_EQ(wrap("  -n, --tokens N    at most N new tokens", 34),
              "  -n, --tokens N    at most N new\n"
              "                    tokens");
    EXPECT_EQ(wrap("  example: xemoe generate model.gguf", 20),
              "  example: xemoe generate model.gguf")
        << "to be copied";
}
