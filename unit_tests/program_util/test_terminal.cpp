/* SPDX-License-Identifier: Apache-2.0
 *
 * What fits into a line of a terminal.
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
