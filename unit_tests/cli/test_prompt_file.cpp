/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut off at the end of a prompt file, and files with one prompt a line.
 */
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "plugin/cli/prompt_file.h"

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

TEST(PromptFile, LosesAByteOrderMark)
{
    EXPECT_EQ(read("\xef\xbb\xbf\"a\"\n"), "\"a\"");
    EXPECT_EQ(read("\xef\xbb\xbf"), "");
    EXPECT_EQ(read("\xef\xbb"), "\xef\xbb");
    EXPECT_EQ(read("a\xef\xbb\xbf"), "a\xef\xbb\xbf");
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

static std::vector<std::string>
split(const std::string &content, struct xm_error *err)
{
    struct xm_strbuf text = {};
    struct xm_prompt_lines lines = {};
    xm_strbuf_add_n(&text, content.data(), content.size());
    xm_prompt_lines_split(&text, "p.txt", &lines, err);
    std::vector<std::string> list;
    for (size_t i = 0; i < lines.n; i++)
        list.emplace_back(xm_strbuf_text(&lines.list[i].text), lines.list[i].text.n);
    xm_prompt_lines_free(&lines);
    xm_strbuf_free(&text);
    return list;
}

TEST(PromptLines, AreTextsOrJsonStrings)
{
    using Texts = std::vector<std::string>;
    struct xm_error err = {};
    EXPECT_EQ(split("", &err), Texts());
    EXPECT_EQ(split("\n\r\n\n", &err), Texts());
    EXPECT_EQ(split(" \n\t \t\r\n", &err), Texts());
    EXPECT_EQ(split("\" \"\n", &err), Texts({" "}));
    EXPECT_EQ(split("a", &err), Texts({"a"}));
    EXPECT_EQ(split("a\n\n b \r\n", &err), Texts({"a", " b "}));
    EXPECT_EQ(split("\"a\\nb\"\r\nc \"d\"\n", &err), Texts({"a\nb", "c \"d\""}));
    EXPECT_EQ(split("\"a\\u0000b\"", &err), Texts({std::string("a\0b", 3)}));
    EXPECT_EQ(split("[1]\n\"\"", &err), Texts({"[1]", ""}));
    EXPECT_EQ(split("\"a\" \t\n\"\\\"b\\\"\"", &err), Texts({"a", "\"b\""}));
    EXPECT_EQ(err.status, XM_OK) << err.text;
}

TEST(PromptLines, KnowTheirNumbers)
{
    struct xm_strbuf text = {};
    struct xm_prompt_lines lines = {};
    struct xm_error err = {};
    xm_strbuf_add(&text, "a\n\n \n\"b\"\n\t\nc\n");
    ASSERT_EQ(xm_prompt_lines_split(&text, "p.txt", &lines, &err), XM_OK);
    ASSERT_EQ(lines.n, 3u);
    EXPECT_EQ(lines.list[0].number, 1u);
    EXPECT_EQ(lines.list[1].number, 4u);
    EXPECT_EQ(lines.list[2].number, 6u);
    EXPECT_EQ(lines.n_blank, 4u)
        << "the last line break was dropped by whoever read the file";
    EXPECT_EQ(lines.first_blank, 2u);
    EXPECT_STREQ(lines.name, "p.txt");
    ASSERT_EQ(xm_prompt_lines_add(&lines, " ", 1, &err), XM_OK);
    EXPECT_EQ(lines.list[3].number, 0u) << "no line of the file";
    xm_prompt_lines_free(&lines);
    xm_strbuf_free(&text);
}

TEST(PromptLines, AreTextsWhereTheyGoOnBehindQuotes)
{
    for (const std::string line : {"\"", "\"a", "\"a\" b", "\"a\\", "\"a\\\"",
                                   "\"Come,\" he said. \"Now.\"", "\"\"\""}) {
        struct xm_error err = {};
        EXPECT_EQ(split("x\n" + line + "\r\ny", &err),
                  (std::vector<std::string>{"x", line, "y"}));
        EXPECT_EQ(err.status, XM_OK) << err.text;
    }
}

TEST(PromptLines, ADamagedStringIsNamed)
{
    for (const char *damaged : {"\"\\x\"", "\"\xff\"", "\"\\u12\" "}) {
        struct xm_error err = {};
        split(std::string("a\n\n") + damaged + "\nb", &err);
        EXPECT_EQ(err.status, XM_INVALID) << damaged;
        EXPECT_EQ(std::string(err.text).rfind(
                      "p.txt, line 3: a line in quotes is a JSON string: ", 0),
                  0u)
            << err.text;
    }
}
