/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that are wrapped to the width of the terminal: where they break, and where they continue.
 */
#include "plugin/program_util/lines.h"

#include <gtest/gtest.h>

#include <string>

namespace
{

std::string
wrap(const std::string &line, size_t columns)
{
    xm_strbuf out = {};
    xm_lines_wrap(line.data(), line.size(), columns, &out);
    const std::string text(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return text;
}

const std::string row = "scratch          3.1 MiB  one buffer a request, for all";

TEST(Lines, ThatFitAreAsTheyAre)
{
    EXPECT_EQ(wrap(row, row.size()), row);
    EXPECT_EQ(wrap("", 10), "");
    EXPECT_EQ(wrap("  a  b  ", 6), "  a  b  ") << "spaces at the end take no room";
}

TEST(Lines, GoOnBelowTheirLastColumnWhereThatHasRoom)
{
    EXPECT_EQ(wrap(row, 50), "scratch          3.1 MiB  one buffer a request,\n"
                             "                          for all");
    EXPECT_EQ(wrap(row, 49), "scratch          3.1 MiB\n"
                             "                 one buffer a request, for all")
        << "23 columns behind the last one are too few: below the one before";
    EXPECT_EQ(wrap(row, 40), "scratch          3.1 MiB\n"
                             "  one buffer a request, for all");
}

TEST(Lines, WithoutColumnsGoOnTwoColumnsIn)
{
    EXPECT_EQ(wrap("memory 21.5 GiB, cache 3 MiB", 20), "memory 21.5 GiB,\n"
                                                        "  cache 3 MiB");
    EXPECT_EQ(wrap("    a word after a word", 15), "    a word\n"
                                                   "      after a\n"
                                                   "      word");
}

TEST(Lines, BreakWithinAWordThatIsTooLong)
{
    EXPECT_EQ(wrap("abcdefghijklmnop", 10), "abcdefghij\n  klmnop");
    EXPECT_EQ(wrap("äöüäöüäöü", 6), "äöüäöü\n  äöü") << "whole characters";
    EXPECT_EQ(wrap("abcdef", 2), "ab\ncd\nef") << "no room for an indent";
    EXPECT_EQ(wrap("漢字漢字漢字", 7), "漢字漢\n  字漢\n  字");
}

/* Spaces between columns that are wider than the terminal end a line and start none. */
TEST(Lines, HaveNoLineOfSpaces)
{
    EXPECT_EQ(wrap("f32" + std::string(40, ' ') + "6.12 KiB", 30), "f32\n  6.12 KiB");
    EXPECT_EQ(wrap("ab  cd" + std::string(40, ' ') + "ef", 12), "ab  cd\n  ef");
}

/* "82.4 %" is one column and goes to the next line as a whole. */
TEST(Lines, BreakBetweenColumnsBeforeWords)
{
    EXPECT_EQ(wrap("u4  zero points    3.58 MiB   82.4 %", 35),
              "u4  zero points    3.58 MiB\n"
              "    82.4 %");
    EXPECT_EQ(wrap("a word and", 6), "a word\n  and") << "a space is where the line ends";
}

TEST(Lines, OfATableAreStackedWhereItsColumnsDoNotFit)
{
    static const xm_table_column columns[] = {
        {"ranks", -5}, {"device", -8}, {"weights", 9}, {"", 11}};
    const xm_table table = {columns, 4};
    const char *const rows[2][4] = {{"0-1", "a380", "8137.9", "too little"},
                                    {"2", "b70", "1.5", ""}};
    const auto print = [&](size_t width) {
        char *text = nullptr;
        size_t n = 0;
        FILE *file = open_memstream(&text, &n);
        xm_lines o = xm_lines_to(file);
        o.columns = width;
        xm_table_head(&o, &table);
        for (const auto &row : rows)
            xm_table_row(&o, &table, row);
        xm_lines_end(&o);
        fclose(file);
        const std::string all(text, n);
        free(text);
        return all;
    };
    const std::string whole = "ranks device     weights\n"
                              "0-1   a380        8137.9  too little\n"
                              "2     b70            1.5\n";
    EXPECT_EQ(print(SIZE_MAX), whole);
    EXPECT_EQ(print(36), whole);
    EXPECT_EQ(print(35), "ranks 0-1, device a380, weights\n"
                         "  8137.9, too little\n"
                         "ranks 2, device b70, weights 1.5\n");
}

TEST(Lines, OfAFileAreNotBroken)
{
    char *text = nullptr;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);
    ASSERT_NE(file, nullptr);
    xm_lines o = xm_lines_to(file);
    EXPECT_EQ(o.columns, SIZE_MAX);
    xm_lines_add(&o, "%s", std::string(300, 'x').c_str());
    xm_lines_add(&o, " y\nz %d", 7);
    o.columns = 3; /* columns already used on the next line */
    xm_lines_add(&o, "%d\n12345\n\nlast", 8);
    xm_lines_end(&o);
    fclose(file);
    EXPECT_EQ(std::string(text, n),
              std::string(300, 'x') + " y\nz\n78\n123\n45\n\nlas\nt");
    free(text);
}

} // namespace
