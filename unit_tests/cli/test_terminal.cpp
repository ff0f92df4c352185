/* SPDX-License-Identifier: Apache-2.0
 *
 * What fits into a line of a terminal, and what a prompt's file loses at its end.
 */
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "plugin/cli/prompt_file.h"
#include "plugin/cli/terminal.h"

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
read(const std::string &content, enum xm_status expected = XM_OK)
{
    std::string path = testing::TempDir() + "xemoe_prompt_" + std::to_string(getpid());
    std::ofstream(path, std::ios::binary) << content;
    struct xm_strbuf out = {};
    struct xm_error err = {};
    EXPECT_EQ(xm_prompt_file_read(path.c_str(), &out, &err), expected) << err.text;
    std::string text(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    unlink(path.c_str());
    return text;
}

TEST(PromptFile, LosesOneNewlineAtItsEnd)
{
    EXPECT_EQ(read("a\nb\n"), "a\nb");
    EXPECT_EQ(read("a\r\n"), "a");
    EXPECT_EQ(read("a\n\n"), "a\n");
    EXPECT_EQ(read("a\r"), "a\r");
    EXPECT_EQ(read("\n"), "");
    EXPECT_EQ(read(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(PromptFile, MissingAndFoldersAreSentences)
{
    struct xm_strbuf out = {};
    struct xm_error err = {};
    EXPECT_EQ(xm_prompt_file_read("/no/such/file", &out, &err), XM_NOT_FOUND);
    EXPECT_NE(std::string(err.text).find("/no/such/file"), std::string::npos);
    err = {};
    EXPECT_EQ(xm_prompt_file_read("/", &out, &err), XM_IO);
    xm_strbuf_free(&out);
}
