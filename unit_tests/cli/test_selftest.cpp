/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of selftest: the comparison of two texts, and the words that choose parts.
 */
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "plugin/cli/selftest.h"

namespace
{

/* Returns what selftest prints about two texts; "" if they are the same. */
std::string
compare(const char *result, const char *before)
{
    yyjson_doc *a = yyjson_read(result, strlen(result), 0);
    yyjson_doc *b = before ? yyjson_read(before, strlen(before), 0) : nullptr;
    struct xm_strbuf out = {};
    const bool same = xm_selftest_is_same_text(
        yyjson_doc_get_root(a), b ? yyjson_doc_get_root(b) : nullptr, &out);
    const std::string said(xm_strbuf_text(&out), out.n);
    EXPECT_EQ(same, said.empty()) << said;
    xm_strbuf_free(&out);
    yyjson_doc_free(a);
    yyjson_doc_free(b);
    return said;
}

TEST(SelftestTexts, AreComparedByTheirIds)
{
    EXPECT_EQ(compare(R"({"ids": [1, 2, 3], "seconds": 1})",
                      R"({"ids": [1, 2, 3], "seconds": 2})"),
              "");
    const std::string differ =
        "; its token ids differ from those of the same text with replays, from token ";
    EXPECT_EQ(compare(R"({"ids": [1, 2, 4]})", R"({"ids": [1, 2, 3]})"),
              differ + "3 of 3 on");
    EXPECT_EQ(compare(R"({"ids": [9, 2, 3]})", R"({"ids": [1, 2, 3]})"),
              differ + "1 of 3 on");
    EXPECT_EQ(compare(R"({"ids": [1, 2]})", R"({"ids": [1, 2, 3]})"),
              differ + "3 of 3 on");
    EXPECT_EQ(compare(R"({"ids": [1, 2, 3, 4]})", R"({"ids": [1, 2, 3]})"),
              differ + "4 of 4 on");
}

/* Two texts without ids are not equal: a comparison that could not be made is a failure. */
TEST(SelftestTexts, WithoutIdsAreNotTheSame)
{
    const std::string none =
        "; the token ids of two texts cannot be compared, because one is missing";
    EXPECT_EQ(compare(R"({"ids": []})", R"({"ids": []})"), none);
    EXPECT_EQ(compare(R"({"ids": [1]})", R"({"other": 1})"), none);
    EXPECT_EQ(compare(R"({"ids": [1]})", nullptr), none);
    EXPECT_EQ(compare("{}", R"({"ids": [1]})"), none);
}

/* Each word that shells complete chooses a part. */
TEST(SelftestParts, AreChosenByTheirWords)
{
    struct xm_strbuf words = {};
    xm_selftest_add_words(&words);
    std::istringstream list(xm_strbuf_text(&words));
    size_t n = 0;
    for (std::string word; list >> word; n++) {
        bool any = false;
        for (size_t i = 0; i < xm_selftest_n_parts; i++)
            any |= xm_selftest_is_wanted(&xm_selftest_parts[i], false, word.c_str());
        EXPECT_TRUE(any) << word;
    }
    const std::string all = std::string(" ") + xm_strbuf_text(&words);
    for (const char *word : {" steps ", " q4_k ", " speed ", " u4 ", " replays "})
        EXPECT_NE(all.find(word), std::string::npos) << all;
    EXPECT_EQ(all.find(" steps ", all.find(" steps ") + 1), std::string::npos) << all;
    EXPECT_GT(n, 10u);
    xm_strbuf_free(&words);
}

} // namespace
