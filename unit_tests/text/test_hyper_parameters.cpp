/* SPDX-License-Identifier: Apache-2.0
 *
 * Dimensions from config.json: several names for one value, nested objects, and files without
 * useful values.
 */
#include "plugin/text/hyper_parameters.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

namespace
{

class HyperParameters : public ::testing::Test
{
  protected:
    HyperParameters()
        : folder(testing::TempDir() + "xemoe_config_" + std::to_string(getpid())),
          file(folder + "/config.json")
    {
        mkdir(folder.c_str(), 0700);
    }
    ~HyperParameters() override
    {
        unlink(file.c_str());
        rmdir(folder.c_str());
    }
    xm_status load()
    {
        err = {};
        return xm_hyper_parameters_load(folder.c_str(), &h, &err);
    }
    xm_status load(const std::string &json)
    {
        std::ofstream(file, std::ios::binary) << json;
        return load();
    }
    const std::string folder, file;
    xm_hyper_parameters h = {};
    xm_error err = {};
};

TEST_F(HyperParameters, OfATrainedModel)
{
    const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
    ASSERT_EQ(xm_hyper_parameters_load(model.c_str(), &h, &err), XM_OK) << err.text;
    EXPECT_STREQ(h.model_type, "qwen3_moe");
    EXPECT_STREQ(h.architecture, "Qwen3MoeForCausalLM");
    EXPECT_EQ(h.context, 2048u);
    EXPECT_EQ(h.layers, 2u);
    EXPECT_EQ(h.experts, 16u);
    EXPECT_EQ(h.top_k, 4u);
    EXPECT_EQ(h.expert_width, 256u);
    EXPECT_EQ(h.window, 0u) << "null";
}

/* In a model of text and images the values of the text part take precedence. */
TEST_F(HyperParameters, OfTheTextInsideCountFirst)
{
    ASSERT_EQ(load(R"({"model_type": "outer", "hidden_size": 7, "vocab_size": 11,
                       "text_config": {"model_type": "inner", "hidden_size": 64,
                                       "n_positions": 8192.0}})"),
              XM_OK);
    EXPECT_STREQ(h.model_type, "outer");
    EXPECT_EQ(h.hidden, 64u);
    EXPECT_EQ(h.vocabulary, 11u);
    EXPECT_EQ(h.context, 8192u);
}

TEST_F(HyperParameters, AWindowThatIsNotUsedIsNone)
{
    ASSERT_EQ(load(R"({"sliding_window": 4096, "use_sliding_window": false})"), XM_OK);
    EXPECT_EQ(h.window, 0u);
    ASSERT_EQ(load(R"({"sliding_window": 4096})"), XM_OK);
    EXPECT_EQ(h.window, 4096u);
}

TEST_F(HyperParameters, WhatIsNoCountIsNotSaid)
{
    for (const char *value : {"-1", "0", "1.5", "1e300", "-1e300", "18446744073709551615",
                              "4294967296", "\"2048\"", "[2048]", "{}", "null", "true"}) {
        const std::string json =
            std::string(R"({"max_position_embeddings": )") + value + "}";
        ASSERT_EQ(load(json), XM_OK) << json;
        EXPECT_EQ(h.context, 0u) << json;
    }
    ASSERT_EQ(load(R"({"model_type": 5, "architectures": "x", "text_config": [1]})"),
              XM_OK);
    EXPECT_STREQ(h.model_type, "");
    EXPECT_STREQ(h.architecture, "");
}

/* The names are printed on terminals. */
TEST_F(HyperParameters, NamesAreShortAndHarmless)
{
    ASSERT_EQ(load("{\"model_type\": \"a\\u001b[31m\\nb\", \"architectures\": [\"" +
                   std::string(5000, 'x') + "\"]}"),
              XM_OK);
    EXPECT_STREQ(h.model_type, "a?[31m?b");
    EXPECT_LT(strlen(h.architecture), sizeof(h.architecture));
}

TEST_F(HyperParameters, DamagedFilesAreErrors)
{
    EXPECT_EQ(load(), XM_NOT_FOUND);
    for (const char *json : {"", "[]", "5", "{\"hidden_size\": 5", "\xff"}) {
        EXPECT_EQ(load(json), XM_INVALID) << json;
        EXPECT_EQ(h.hidden, 0u);
        EXPECT_NE(std::string(err.text).find("config.json"), std::string::npos)
            << err.text;
    }
    unlink(file.c_str());
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0); /* a FIFO, which opening would wait for */
    EXPECT_EQ(load(), XM_IO);
}

} // namespace
