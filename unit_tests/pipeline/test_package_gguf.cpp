/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files as model packages: which file a path means, and what is read from it.
 */
#include <gtest/gtest.h>

#include <filesystem>

#include "functional_tests/common/folder.h"
#include "plugin/pipeline/package.h"
#include "runtime/util/memory.h"
#include "unit_tests/text/gguf/gguf_text_test.h"

namespace
{

namespace fs = std::filesystem;

/* A model with a tokenizer of three bytes. */
gguf::keys
small_model_keys()
{
    gguf::keys k;
    k.set("general.architecture", "toy");
    k.set("toy.context_length", 64u);
    k.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-2");
    k.set("tokenizer.ggml.tokens", gguf::LIST, gguf::texts({"a", "b", "ab", "<|end|>"}));
    k.set("tokenizer.ggml.token_type", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {1, 1, 1, 3}));
    k.set("tokenizer.ggml.merges", gguf::LIST, gguf::texts({"a b"}));
    k.set("tokenizer.ggml.eos_token_id", 1u);
    k.set("tokenizer.chat_template", "{{ eos_token }}{{ messages[0].content }}");
    return k;
}

class GgufPackage : public testing::Test
{
  protected:
    ~GgufPackage() override
    {
        xm_package_close(p);
        xm_graph_destroy(g);
    }
    std::string write(const std::string &name, const std::string &bytes)
    {
        folder.write(name, bytes);
        return folder / name;
    }
    void open(const std::string &path)
    {
        xm_package_close(p);
        err = {};
        ASSERT_EQ(xm_package_open(path.c_str(), &p, &err), XM_OK) << err.text;
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

    Folder folder{"package_gguf"};
    const std::string small = small_model_keys().bytes();
    xm_package *p = nullptr;
    xm_graph *g = nullptr;
    xm_error err = {};
};

} // namespace

TEST_F(GgufPackage, HasAllOfATrainedModel)
{
    const std::string path = write("model.gguf", gguf::model_file(gguf::models[0]));
    open(path);
    EXPECT_STREQ(p->reader->name, "GGUF");
    EXPECT_EQ(p->tokenizer, nullptr) << "nobody has asked yet";
    for (int part = 0; part < XM_PACKAGE_N_PARTS; part++)
        EXPECT_EQ(read((xm_package_part)part), XM_OK) << err.text;
    EXPECT_EQ(xm_tokenizer_vocab_size(p->tokenizer), 1505u);
    EXPECT_TRUE(xm_chat_template_mentions(p->chat_template, "<|im_start|>"));
    EXPECT_STREQ(p->facts.model_type, "qwen3moe");
    EXPECT_EQ(p->facts.context, 2048u);
    EXPECT_TRUE(xm_generation_config_is_eos(&p->generation, 1502)) << "as the file says";
    EXPECT_TRUE(xm_generation_config_is_eos(&p->generation, 1500)) << "by its spelling";
    EXPECT_EQ(xm_package_file_bytes(p), fs::file_size(path));
}

/* The first four bytes identify a GGUF file, not its name. */
TEST_F(GgufPackage, IsAFileThatBeginsWithItsFourBytes)
{
    open(write("model", small));
    EXPECT_STREQ(p->reader->name, "GGUF");
    for (const char *other : {"GGU", "", "GGUf\3", "<net GGUF"}) {
        open(write("other", other));
        EXPECT_STREQ(p->reader->name, "OpenVINO IR") << other;
    }
    open(folder / "missing.gguf");
    EXPECT_STREQ(p->reader->name, "OpenVINO IR") << "which says that it is not there";
}

TEST_F(GgufPackage, IsTheOneModelInAFolder)
{
    write("mmproj-model-f16.gguf", "no model");
    write("vision-mmproj.gguf", "no model");
    write("notes.txt", "");
    write("model.gguf.part", "no model");
    EXPECT_EQ(xm_package_open(folder.path.c_str(), &p, &err), XM_NOT_FOUND);
    EXPECT_TRUE(says("openvino_model.xml") && says(".gguf")) << err.text;
    write("model.gguf", small);
    open(folder.path);
    EXPECT_STREQ(p->reader->name, "GGUF");
    ASSERT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    EXPECT_EQ(p->facts.context, 64u);
    EXPECT_EQ(xm_package_file_bytes(p), small.size());
}

TEST_F(GgufPackage, OfSeveralInAFolderNamesTwo)
{
    for (const char *name : {"d.gguf", "b-Q4_0.gguf", "c-00002-of-00002.gguf",
                             "b-Q8_0.gguf", "c-00001-of-00002.gguf"})
        write(name, small);
    open(folder.path);
    for (int part = 0; part < XM_PACKAGE_N_PARTS; part++) {
        EXPECT_EQ(read((xm_package_part)part), XM_INVALID);
        EXPECT_TRUE(says("'b-Q4_0.gguf'") && says("'b-Q8_0.gguf'") && says(folder.path))
            << err.text;
    }
    err = {};
    EXPECT_EQ(xm_package_read_graph(p, nullptr, &g, &err), XM_INVALID);
    EXPECT_TRUE(says("'b-Q4_0.gguf'")) << err.text;
    EXPECT_EQ(xm_package_file_bytes(p), 0u);
}

/* A folder with parts of two splits, or a part and a whole file, is refused: which model is meant
 * is unknown. */
TEST_F(GgufPackage, OnlyPartsOfOneSplitAreOneModel)
{
    const std::string part = "m-00001-of-00002.gguf";
    for (const char *other : {"m.gguf", "m-00001-of-00003.gguf", "m-1-of-2.gguf"}) {
        SCOPED_TRACE(other);
        write(part, small);
        write(other, small);
        open(folder.path);
        EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_INVALID);
        EXPECT_TRUE(says(std::string("'") + other + "'") && says("'" + part + "'"))
            << err.text;
        fs::remove(folder / other);
        open(folder.path);
        EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    }
}

/* A folder that also has an IR is read as IR. */
TEST_F(GgufPackage, LeavesAFolderWithAnIrAlone)
{
    write("model.gguf", small);
    write("openvino_model.xml", "<net/>");
    open(folder.path);
    EXPECT_STREQ(p->reader->name, "OpenVINO IR");
}

TEST_F(GgufPackage, IsAnyPartOfAFileThatIsSplit)
{
    const std::string parts = XM_GGUF_DIR "/split-0000";
    uint64_t bytes = 0;
    for (const char *part : {"1", "2", "3"}) {
        const std::string name = std::string("split-0000") + part + "-of-00003.gguf";
        fs::copy_file(parts + part + "-of-00003.gguf", folder / name);
        bytes += fs::file_size(folder / name);
    }
    for (const std::string &path : {folder / "split-00002-of-00003.gguf", folder.path}) {
        open(path);
        EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
        EXPECT_EQ(p->facts.layers, 5u) << "of the first part";
        EXPECT_EQ(xm_package_file_bytes(p), bytes);
    }
}

TEST_F(GgufPackage, PartsThatAreMissingAreNotFound)
{
    open(write("model.gguf", gguf::keys().set("general.architecture", "toy").bytes()));
    EXPECT_EQ(read(XM_PACKAGE_TOKENIZER), XM_NOT_FOUND);
    EXPECT_TRUE(says("tokenizer.ggml.model") && says("model.gguf")) << err.text;
    EXPECT_EQ(read(XM_PACKAGE_CHAT_TEMPLATE), XM_NOT_FOUND);
    EXPECT_TRUE(says("tokenizer.chat_template") && says("model.gguf")) << err.text;
    EXPECT_EQ(read(XM_PACKAGE_GENERATION), XM_OK) << err.text;
    EXPECT_EQ(p->generation.n_eos, 0u);
    EXPECT_EQ(p->generation.bos, -1);
    EXPECT_EQ(read(XM_PACKAGE_FACTS), XM_OK) << err.text;
    EXPECT_EQ(p->facts.context, 0u);
}

TEST_F(GgufPackage, DamageNamesTheFile)
{
    open(write("model.gguf", small.substr(0, small.size() - 3)));
    for (int part = 0; part < XM_PACKAGE_N_PARTS; part++) {
        EXPECT_NE(read((xm_package_part)part), XM_OK);
        EXPECT_NE(err.status, XM_NOT_FOUND);
        EXPECT_TRUE(says("model.gguf")) << err.text;
    }
    EXPECT_EQ(xm_package_file_bytes(p), 0u);
    open(write("model.gguf", small_model_keys()
                                 .set("tokenizer.chat_template", "{% for %}")
                                 .set("tokenizer.ggml.eos_token_id", 4u)
                                 .bytes()));
    for (xm_package_part part :
         {XM_PACKAGE_TOKENIZER, XM_PACKAGE_CHAT_TEMPLATE, XM_PACKAGE_GENERATION}) {
        EXPECT_EQ(read(part), XM_INVALID);
        EXPECT_TRUE(says("model.gguf': key 'tokenizer.")) << err.text;
    }
}

TEST_F(GgufPackage, TakesNoWeightsBesides)
{
    open(write("model.gguf", small));
    EXPECT_EQ(xm_package_read_graph(p, "other.bin", &g, &err), XM_INVALID);
    EXPECT_TRUE(says("model.gguf") && says("other.bin")) << err.text;
    EXPECT_EQ(g, nullptr);
}

TEST_F(GgufPackage, EveryAllocationMayFail)
{
    const std::string path = write("model.gguf", small);
    int failures = 0;
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_error why = {};
        xm_package_close(p);
        p = nullptr;
        xm_fail_allocation(n);
        xm_status s = xm_package_open(path.c_str(), &p, &why);
        for (int part = 0; s == XM_OK && part < XM_PACKAGE_N_PARTS; part++)
            s = xm_package_read(p, (xm_package_part)part, &why);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        /* Compiled patterns and optional facts can be missing: then reading succeeds. */
        ASSERT_TRUE(s == XM_NO_MEMORY || s == XM_OK) << n << ": " << why.text;
        failures += s == XM_NO_MEMORY;
    }
    EXPECT_GT(failures, 30);
}
