/* SPDX-License-Identifier: Apache-2.0
 *
 * How the hidden states of a text are pooled, from the files of sentence-transformers.
 */
#include "plugin/text/pooling.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "functional_tests/common/folder.h"

namespace
{

class Pooling : public testing::Test
{
  protected:
    xm_status load()
    {
        err = {};
        pooling = XM_POOLING_LAST;
        return xm_pooling_load(folder.path.c_str(), &pooling, &err);
    }
    xm_status load(const std::string &json)
    {
        mkdir((folder / "1_Pooling").c_str(), 0700);
        folder.write("1_Pooling/config.json", json);
        return load();
    }
    bool says(const std::string &part) const
    {
        return std::string(err.text).find(part) != std::string::npos;
    }
    Folder folder{"pooling"};
    xm_pooling pooling = XM_POOLING_LAST;
    xm_error err = {};
};

TEST_F(Pooling, IsTheLastTokensWithoutAFile)
{
    pooling = XM_POOLING_MEAN;
    EXPECT_EQ(xm_pooling_load(folder.path.c_str(), &pooling, &err), XM_OK) << err.text;
    EXPECT_EQ(pooling, XM_POOLING_LAST);
}

TEST_F(Pooling, IsReadInBothForms)
{
    const struct {
        const char *json;
        xm_pooling pooling;
    } rows[] = {
        {R"({"word_embedding_dimension":1024,"pooling_mode_cls_token":false,
             "pooling_mode_mean_tokens":false,"pooling_mode_lasttoken":true})",
         XM_POOLING_LAST},
        {R"({"pooling_mode_mean_tokens":true,"pooling_mode_lasttoken":false})",
         XM_POOLING_MEAN},
        {R"({"pooling_mode":"lasttoken"})", XM_POOLING_LAST},
        {R"({"pooling_mode":"mean"})", XM_POOLING_MEAN},
    };
    for (const auto &row : rows) {
        EXPECT_EQ(load(row.json), XM_OK) << err.text;
        EXPECT_EQ(pooling, row.pooling) << row.json;
    }
}

TEST_F(Pooling, OfOtherKindsIsRefusedByName)
{
    EXPECT_EQ(load(R"({"pooling_mode_cls_token":true})"), XM_UNSUPPORTED);
    EXPECT_TRUE(says("'cls'")) << err.text;
    EXPECT_EQ(load(R"({"pooling_mode":"max"})"), XM_UNSUPPORTED);
    EXPECT_TRUE(says("'max'")) << err.text;
    EXPECT_EQ(load(R"({"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true})"),
              XM_UNSUPPORTED);
    EXPECT_TRUE(says("'mean' and 'max'")) << err.text;
    EXPECT_EQ(load(R"({"pooling_mode":"of its own"})"), XM_UNSUPPORTED);
    EXPECT_EQ(load("{}"), XM_UNSUPPORTED);
    EXPECT_EQ(load("[1"), XM_INVALID);
}

TEST_F(Pooling, ModulesBehindItAreRefused)
{
    folder.write("modules.json", R"([
        {"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
        {"idx":1,"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
        {"idx":2,"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}])");
    EXPECT_EQ(load(R"({"pooling_mode":"mean"})"), XM_OK) << err.text;
    EXPECT_EQ(pooling, XM_POOLING_MEAN);
    folder.write("modules.json", R"([
        {"idx":2,"path":"2_Dense","type":"sentence_transformers.models.Dense"}])");
    EXPECT_EQ(load(), XM_UNSUPPORTED);
    EXPECT_TRUE(says("'Dense'")) << err.text;
}

TEST_F(Pooling, NamesOfOptions)
{
    EXPECT_TRUE(xm_pooling_of("last", &pooling));
    EXPECT_EQ(pooling, XM_POOLING_LAST);
    EXPECT_TRUE(xm_pooling_of("mean", &pooling));
    EXPECT_EQ(pooling, XM_POOLING_MEAN);
    EXPECT_FALSE(xm_pooling_of("cls", &pooling));
}

} // namespace
