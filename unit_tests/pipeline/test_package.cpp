/* SPDX-License-Identifier: Apache-2.0
 *
 * Model packages: when each file is read, and the error texts for missing and damaged files.
 */
#include "plugin/pipeline/package.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "functional_tests/common/folder.h"

namespace
{

const std::string trained = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

class Package : public ::testing::Test
{
  protected:
    ~Package() override
    {
        xm_package_close(p);
        xm_graph_destroy(g);
    }
    std::string write(const std::string &name, const std::string &text)
    {
        folder.write(name, text);
        return folder / name;
    }
    void open(const std::string &path)
    {
        err = {};
        ASSERT_EQ(xm_package_open(path.c_str(), &p, &err), XM_OK) << err.text;
    }
    /* Opens a folder with a file of the graph's name, whose content opening does not read. */
    void open_folder()
    {
        write("openvino_model.xml", "no graph");
        open(folder.path);
    }
    xm_status read(enum xm_package_part part)
    {
        err = {};
        return xm_package_read(p, part, &err);
    }
    bool says(const std::string &part) const
    {
        return std::string(err.text).find(part) != std::string::npos;
    }

    Folder folder{"package"};
    xm_package *p = nullptr;
    xm_graph *g = nullptr;
    xm_error err = {};
};

TEST_F(Package, HasAllOfATrainedModel)
{
    open(trained);
    EXPECT_STREQ(p->reader->name, "OpenVINO IR");
    EXPECT_EQ(p->tokenizer, nullptr) << "nobody has asked yet";
    for (int part = 0; part < XM_PACKAGE_N_PARTS; part++)
        EXPECT_EQ(read((xm_package_part)part), XM_OK) << err.text;
    EXPECT_EQ(xm_tokenizer_vocab_size(p->tokenizer), 1505u);
    EXPECT_TRUE(xm_chat_template_mentions(p->chat_template, "<|im_start|>"));
    EXPECT_EQ(p->facts.context, 2048u);
    EXPECT_TRUE(xm_generation_config_is_eos(&p->generation, 1502)) << "as the file says";
    EXPECT_TRUE(xm_generation_config_is_eos(&p->generation, 1500)) << "by its spelling";
    ASSERT_EQ(xm_package_read_graph(p, nullptr, &g, &err), XM_OK) << err.text;
    struct stat xml, bin;
    ASSERT_EQ(stat((trained + "/openvino_model.xml").c_str(), &xml), 0);
    ASSERT_EQ(stat((trained + "/openvino_model.bin").c_str(), &bin), 0);
    EXPECT_EQ(xm_package_file_bytes(p), (uint64_t)(xml.st_size + bin.st_size));
}

TEST_F(Package, OfAnXmlHasWhatLiesBesideIt)
{
    open(trained + "/openvino_model.xml");
    EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    EXPECT_EQ(p->facts.context, 2048u);
    ASSERT_EQ(xm_package_read_graph(p, nullptr, &g, &err), XM_OK) << err.text;
}

TEST_F(Package, AFolderWithoutAModelIsRefused)
{
    EXPECT_EQ(xm_package_open(folder.path.c_str(), &p, &err), XM_NOT_FOUND);
    EXPECT_EQ(p, nullptr);
    EXPECT_TRUE(says(folder.path) && says("openvino_model.xml")) << err.text;
}

TEST_F(Package, AFileThatIsNotThereIsNamed)
{
    const std::string path = folder.path + "/none.xml";
    EXPECT_EQ(xm_package_graph_of(path.c_str(), nullptr, &g, &err), XM_NOT_FOUND);
    EXPECT_TRUE(says(path)) << err.text;
    err = {};
    open_folder();
    EXPECT_NE(xm_package_read_graph(p, nullptr, &g, &err), XM_OK);
    EXPECT_TRUE(says("openvino_model.xml")) << err.text;
    EXPECT_EQ(g, nullptr);
}

TEST_F(Package, PartsThatAreMissingAreNotFound)
{
    open_folder();
    EXPECT_EQ(read(XM_PACKAGE_TOKENIZER), XM_NOT_FOUND);
    EXPECT_TRUE(says("tokenizer.json")) << err.text;
    EXPECT_EQ(read(XM_PACKAGE_CHAT_TEMPLATE), XM_NOT_FOUND);
    EXPECT_TRUE(says("chat_template.jinja")) << err.text;
    EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_NOT_FOUND);
    EXPECT_TRUE(says("config.json")) << err.text;
    EXPECT_EQ(read(XM_PACKAGE_GENERATION), XM_OK) << err.text;
    EXPECT_EQ(p->generation.n_eos, 0u);
    EXPECT_EQ(p->generation.bos, -1);
}

TEST_F(Package, DamagedPartsNameTheirFile)
{
    const struct {
        xm_package_part part;
        const char *file, *text;
    } cases[] = {
        {XM_PACKAGE_TOKENIZER, "tokenizer.json", "{\"model\": 5}"},
        {XM_PACKAGE_TOKENIZER, "tokenizer.json", "\xff"},
        {XM_PACKAGE_CHAT_TEMPLATE, "chat_template.jinja", "{% for %}"},
        {XM_PACKAGE_CHAT_TEMPLATE, "tokenizer_config.json", "["},
        {XM_PACKAGE_GENERATION, "generation_config.json", "{\"eos_token_id\": -5}"},
        {XM_PACKAGE_GENERATION, "generation_config.json", "[]"},
        {XM_PACKAGE_GENERATION, "config.json", "{\"eos_token_id\": \"x\"}"},
        {XM_PACKAGE_FACTS, "config.json", "{"},
    };
    for (const auto &c : cases) {
        open_folder();
        const std::string path = write(c.file, c.text);
        EXPECT_NE(read(c.part), XM_OK) << c.file << c.text;
        EXPECT_NE(err.status, XM_NOT_FOUND) << c.file << c.text;
        EXPECT_TRUE(says(path)) << err.text;
        EXPECT_EQ(p->tokenizer, nullptr);
        unlink(path.c_str());
        xm_package_close(p);
        p = nullptr;
    }
}

/* A damaged tokenizer is reported only when the tokenizer is needed. */
TEST_F(Package, GenerationDoesNotNeedATokenizer)
{
    open_folder();
    write("tokenizer.json", "{");
    write("generation_config.json", "{\"eos_token_id\": 7}");
    EXPECT_EQ(read(XM_PACKAGE_GENERATION), XM_OK) << err.text;
    EXPECT_EQ(p->generation.n_eos, 1u);
    EXPECT_EQ(read(XM_PACKAGE_TOKENIZER), XM_INVALID);
}

TEST_F(Package, EachPartIsReadOnce)
{
    open_folder();
    const std::string path = write("config.json", "{\"max_position_embeddings\": 64}");
    EXPECT_EQ(read(XM_PACKAGE_TOKENIZER), XM_NOT_FOUND);
    EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    unlink(path.c_str());
    EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    EXPECT_EQ(p->facts.context, 64u);
    write("tokenizer.json", "{}");
    EXPECT_EQ(read(XM_PACKAGE_TOKENIZER), XM_NOT_FOUND);
}

std::string
port(int id, const std::string &precision, const std::string &dims,
     const std::string &names = "")
{
    return "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision +
           "\" names=\"" + names + "\">" + dims + "</port>";
}

std::string
layer(int id, const std::string &type, const std::string &data, const std::string &in,
      const std::string &out)
{
    return "<layer id=\"" + std::to_string(id) + "\" name=\"l" + std::to_string(id) +
           "\" type=\"" + type + "\" version=\"opset1\"><data " + data + "/><input>" +
           in + "</input><output>" + out + "</output></layer>";
}

std::string
edge(int from, int from_port, int to, int to_port)
{
    return "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" +
           std::to_string(from_port) + "\" to-layer=\"" + std::to_string(to) +
           "\" to-port=\"" + std::to_string(to_port) + "\"/>";
}

/* Returns a model with one cache, whose input is named by its tensor. */
std::string
stateless()
{
    const std::string two = "<dim>-1</dim><dim>-1</dim>",
                      four = "<dim>-1</dim><dim>1</dim><dim>-1</dim><dim>1</dim>",
                      axes = port(1, "I64", "<dim>2</dim>");
    return "<?xml version=\"1.0\"?><net name=\"s\" version=\"11\"><layers>" +
           layer(0, "Parameter", "shape=\"?,?\" element_type=\"i64\"", "",
                 port(0, "I64", two, "input_ids")) +
           layer(1, "Parameter", "shape=\"?,1,?,1\" element_type=\"f32\"", "",
                 port(0, "FP32", four, "other,past_key_values.0.key")) +
           layer(2, "Const", "element_type=\"i64\" shape=\"2\" offset=\"0\" size=\"16\"",
                 "", port(0, "I64", "<dim>2</dim>")) +
           layer(3, "Convert", "destination_type=\"f32\"", port(0, "I64", two),
                 port(1, "FP32", two)) +
           layer(4, "Unsqueeze", "", port(0, "FP32", two) + axes, port(2, "FP32", four)) +
           layer(5, "Concat", "axis=\"2\"", port(0, "FP32", four) + port(1, "FP32", four),
                 port(2, "FP32", four, "present.0.key")) +
           layer(6, "Result", "", port(0, "FP32", two), "") +
           layer(7, "Result", "", port(0, "FP32", four), "") + "</layers><edges>" +
           edge(0, 0, 3, 0) + edge(3, 1, 4, 0) + edge(2, 0, 4, 1) + edge(1, 0, 5, 0) +
           edge(4, 2, 5, 1) + edge(3, 1, 6, 0) + edge(5, 2, 7, 0) + "</edges></net>";
}

int
count(const xm_graph *g, enum xm_op op)
{
    int n = 0;
    xm_for_each_node(node, g) n += node->op == op;
    return n;
}

/* For generation, caches become states; the graph alone stays as in the file, with known lengths.
 */
TEST_F(Package, KeepsTheCachesOfAStatelessModel)
{
    write("openvino_model.xml", stateless());
    const int64_t axes[] = {1, 3};
    write("openvino_model.bin", std::string((const char *)axes, sizeof(axes)));
    ASSERT_EQ(xm_package_graph_of(folder.path.c_str(), nullptr, &g, &err), XM_OK)
        << err.text;
    EXPECT_EQ(count(g, XM_OP_PARAMETER), 2);
    EXPECT_EQ(count(g, XM_OP_RESULT), 2);
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_CONCAT)
            continue;
        const xm_shape &past = xm_in(n, 0)->type.shape;
        EXPECT_TRUE(xm_dim_is_symbol(past.dim[0], "batch"));
        EXPECT_TRUE(xm_dim_is_symbol(past.dim[2], "past"));
    }
    xm_graph_destroy(g);
    g = nullptr;
    open(folder.path);
    ASSERT_EQ(xm_package_read_graph(p, nullptr, &g, &err), XM_OK) << err.text;
    EXPECT_EQ(count(g, XM_OP_PARAMETER), 1);
    EXPECT_EQ(count(g, XM_OP_READ_VALUE), 1);
    EXPECT_EQ(count(g, XM_OP_ASSIGN), 1);
    EXPECT_EQ(count(g, XM_OP_RESULT), 1);
}

class Defaults : public Package
{
  protected:
    const xm_generation_config &of(const std::string &json)
    {
        xm_package_close(p);
        open_folder();
        write("generation_config.json", json);
        EXPECT_EQ(read(XM_PACKAGE_GENERATION), XM_OK) << err.text;
        return p->generation;
    }
};

TEST_F(Defaults, AreWhatTheAuthorsRecommend)
{
    const xm_generation_config &c =
        of(R"({"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8,
               "min_p": 0.05, "repetition_penalty": 1.1, "max_new_tokens": 300})");
    EXPECT_FLOAT_EQ(c.sampling.temperature, 0.7f);
    EXPECT_EQ(c.sampling.top_k, 20);
    EXPECT_FLOAT_EQ(c.sampling.top_p, 0.8f);
    EXPECT_FLOAT_EQ(c.sampling.min_p, 0.05f);
    EXPECT_FLOAT_EQ(c.sampling.repetition_penalty, 1.1f);
    EXPECT_EQ(c.max_tokens, 300u);
}

TEST_F(Defaults, HaveIdsThatAreNeverChosen)
{
    const auto suppressed = [this](const std::string &json) {
        const xm_token_list &l = of(json).suppressed;
        return std::vector<int32_t>(l.ids, l.ids + l.n);
    };
    using list = std::vector<int32_t>;
    EXPECT_EQ(suppressed(R"({"suppress_tokens": [5, -1, 4194303]})"), list({5, 4194303}));
    EXPECT_EQ(suppressed(R"({"suppress_tokens": null})"), list());
    EXPECT_EQ(suppressed("{}"), list());
    for (const char *bad : {R"({"suppress_tokens": 5})", R"({"suppress_tokens": ["a"]})",
                            R"({"suppress_tokens": [4194304]})"}) {
        xm_package_close(p);
        open_folder();
        write("generation_config.json", bad);
        EXPECT_EQ(read(XM_PACKAGE_GENERATION), XM_INVALID) << bad;
        EXPECT_NE(std::string(err.text).find("'suppress_tokens'"), std::string::npos)
            << err.text;
    }
}

TEST_F(Defaults, WithoutSamplingTheLikeliestTokenIsTaken)
{
    const xm_generation_config &c =
        of(R"({"temperature": 0.7, "repetition_penalty": 1.1})");
    EXPECT_EQ(c.sampling.temperature, 0.0f);
    EXPECT_FLOAT_EQ(c.sampling.repetition_penalty, 1.1f) << "holds without sampling, too";
    EXPECT_EQ(of(R"({"do_sample": true})").sampling.temperature, 1.0f);
}

TEST_F(Defaults, WhatIsOutOfRangeIsNotSaid)
{
    const xm_generation_config &c =
        of(R"({"do_sample": true, "temperature": -1, "top_k": -5, "top_p": 1.5,
               "min_p": "0.1", "repetition_penalty": 0, "max_new_tokens": 1e300})");
    EXPECT_EQ(c.sampling.temperature, 1.0f);
    EXPECT_EQ(c.sampling.top_k, 0);
    EXPECT_EQ(c.sampling.top_p, 1.0f);
    EXPECT_EQ(c.sampling.min_p, 0.0f);
    EXPECT_EQ(c.sampling.repetition_penalty, 0.0f) << "off";
    EXPECT_EQ(c.max_tokens, 0u);
}

} // namespace
