/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files through the program: their own tokenizers, perplexity, text by each family of
 * kernels, and a whole model as one program.
 */
#include <algorithm>
#include <filesystem>

#include "functional_tests/common/folder.h"
#include "functional_tests/common/gguf.h"
#include "functional_tests/common/kernels.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

class Gguf : public testing::TestWithParam<GgufFile>
{
  protected:
    const GgufFile file = GetParam();

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
};

/* Without "chat", whose text already contains the begin token. No device is needed. */
TEST_P(Gguf, TextsBecomeTheReferencesIds)
{
    for (const char *name : {"short", "reverse", "long", "nonascii", "arith"}) {
        const GgufPrompt prompt(file, name);
        Outcome o = run({"generate", "-m", file.path(), "-d", "REFERENCE", "-p",
                         prompt.text, "-n", "1", "--json"});
        ASSERT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(Json(o.out).ids("/prompt_ids"), prompt.ids) << name;
    }
}

/* For some files only; test_api_gguf checks the logits of every position of each file. */
using GgufPerplexity = Gguf;

TEST_P(GgufPerplexity, IsTheReferences)
{
    Outcome o = run({"perplexity", "-m", file.path(), "--json", "--by-row", "--ids",
                     "@" + file.folder() + "/golden/ppl_tokens.npy"});
    ASSERT_EQ(o.code, 0) << o.err;
    const double want = file.perplexity();
    EXPECT_GT(want, 1.0);
    EXPECT_NEAR(Json(o.out).number("/ppl"), want, 0.005 * want);
}

/* On a device with memory of its own; this includes experts with gate and up in one tensor. */
TEST_P(Gguf, WeightsAreCopiedOnce)
{
    Outcome o = run({"plan", file.path(), "-c", "128", "--device-as", "dg2", "--memory",
                     "1000", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const double size = (double)std::filesystem::file_size(file.path());
    EXPECT_LE(Json(o.out).number("/memory/weights"), 1.05 * size);
    EXPECT_GE(Json(o.out).number("/memory/weights"), 0.90 * size);
}

INSTANTIATE_TEST_SUITE_P(Files, Gguf, testing::ValuesIn(some(gguf_files, 2)), gguf_name);

const std::vector<GgufFile> all_files(std::begin(gguf_files), std::end(gguf_files));
INSTANTIATE_TEST_SUITE_P(Files, GgufPerplexity, testing::ValuesIn(some(all_files, 1)),
                         gguf_name);

/* Matrix engines are emulated. The prompt has many tokens for each expert. Sub-groups convert
 * weights alone, or share the converted weights. */
TEST(GgufFiles, ExpertsOnMatrixEnginesGiveTheSameIds)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const std::string row = some(std::vector<std::string>{"dpas", "dpas_shared"}, 1)[0],
                      forced = "XM_FORCE=moe_gather=moe_gather_dpas,"
                               "moe_gemm_gate_up=moe_gemm_gate_up_" +
                               row + ",moe_gemm_down=moe_gemm_down_" + row;
    const Words words = {"generate",
                         "-m",
                         gguf_files[0].path(),
                         "-p",
                         "Paris is the capital of France. The city on the river Seine is "
                         "the capital of France, and France is in the west of Europe.",
                         "-n",
                         "8",
                         "--ignore-eos",
                         "--json",
                         "--precision",
                         "f16"};
    const Outcome usual = run(words), o = run(words, {forced, list_kernels});
    ASSERT_EQ(usual.code, 0) << usual.err;
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/ids"), Json(usual.out).ids("/ids"));
    EXPECT_NE(o.err.find("moe_gemm_down_dpas"), std::string::npos) << o.err;
}

/* llama.cpp needs these keys; 0 means that the part does not exist. */
TEST(GgufFiles, ThatAreSyntheticHaveTheKeysOfOtherReaders)
{
    const Folder folder("keys");
    const struct {
        const char *arch, *key;
    } rows[] = {
        {"mixtral", "llama.feed_forward_length u32 512"},
        {"olmoe", "olmoe.feed_forward_length u32 256"},
        {"dots1", "dots1.expert_shared_count u32 2"},
        {"dots1", "dots1.feed_forward_length u32 [512,256,256]"},
        {"gemma4", "gemma4.embedding_length_per_layer_input u32 0"},
        {"gemma4-e", "gemma4.embedding_length_per_layer_input u32 64"},
    };
    for (const auto &row : rows) {
        const std::string model = folder / std::string(row.arch) + ".gguf";
        ASSERT_EQ(run({"make-model", "-o", model, "--arch", row.arch, "--force"}).code,
                  0);
        const std::string said = run({"info", model, "--metadata"}).out;
        std::string words; /* separated by single spaces */
        for (const char c : said)
            if (c != ' ' || (!words.empty() && words.back() != ' '))
                words += c;
        EXPECT_TRUE(contains(words, row.key)) << row.key << " in:\n" << said;
    }
}

/* A file with an unknown way to cut texts: ids still work. */
TEST(GgufText, ThatCannotBeCutIsAWarningOfItsOwnLine)
{
    const Folder folder("cuts");
    const std::string model = folder / "model.gguf", known = "gpt-2", other = "gpt-x";
    ASSERT_EQ(run({"make-model", "-o", model}).code, 0);
    std::string bytes = read_file(model);
    const size_t at = bytes.find(known);
    ASSERT_NE(at, std::string::npos);
    folder.write("model.gguf", bytes.replace(at, known.size(), other));
    Terminal t({"generate", "-m", model, "-d", "REFERENCE", "--ids", "5", "-n", "1"}, {},
               200);
    EXPECT_EQ(t.finish(), 0) << t.text();
    const std::vector<std::string> rows = t.screen.rows();
    ASSERT_GE(rows.size(), 1u);
    EXPECT_EQ(rows[0].rfind("xemoe: warning: texts cannot be used, only token ids: ", 0),
              0u)
        << t.text();
    EXPECT_TRUE(contains(t.text(), other)) << t.text();
    EXPECT_FALSE(contains(t.text(), "the model has no tokenizer")) << t.text();
    EXPECT_EQ(rows.back().find_first_not_of("0123456789"), std::string::npos)
        << "an id: " << t.text();
}

/* ---- a model is one program ------------------------------------------------------------ */

using OneProgram = Gguf;

/* This includes routing and experts between a sliding layer and a global one. */
TEST_P(OneProgram, RunsEveryStepOnTheDevice)
{
    Outcome o = run({"info", "-v", file.path()});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(count(o.out, "steps ("), 1u) << o.out;
    EXPECT_TRUE(contains(o.out, "steps (0 on the host):")) << o.out;
    EXPECT_EQ(count(o.out, " = attention (cache) "), 6u);
}

INSTANTIATE_TEST_SUITE_P(Gemma, OneProgram, testing::Values(gguf_files[1], gguf_files[2]),
                         gguf_name);

/* ---- each family of kernels ------------------------------------------------------------ */

/* Puts the IR and its kind's common tokenizer into a folder, and returns the path. */
std::string
ir_with_tokenizer(const GgufFile &file, const Folder &folder)
{
    const std::filesystem::path tokenizer =
        XM_MODELS_DIR "/gemma4-moe-tiny/tokenizer.json";
    for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
        std::filesystem::create_symlink(file.ir_path() + "/" + name, folder / name);
    std::filesystem::create_symlink(tokenizer, folder / "tokenizer.json");
    return folder.path;
}

using Case = std::tuple<GgufFile, const char *>; /* file, family */
/* generated by both models */
const std::string paris = " France.<eos><bos><|turn>user\nWhat is the capital of\n";

class Paris : public testing::TestWithParam<Case>
{
};

TEST_P(Paris, IsTheCapitalOfFrance)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[file, family] = GetParam();
    const Folder folder("ir");
    const bool experts = file.model == std::string("gemma4-moe-tiny");
    /* Products of many tokens may use another family's kernels if a width does not fit this one's
     * tiles. */
    Words steps = {"attention_inputs", "attention_prompt", "attention_decode",
                   "row_chain",
                   family == std::string("ref") ? "linear_ref" : "linear_gemv"};
    if (experts)
        steps.insert(steps.end(), {"moe_gate_up", "moe_down"});
    for (const std::string &model : {file.path(), ir_with_tokenizer(file, folder)}) {
        SCOPED_TRACE(model);
        Outcome o = run({"generate", "-m", model, "-p", "Paris is the capital of", "-n",
                         "12", "--ignore-eos", "--precision", "f32", "--special"},
                        {std::string("XM_FORCE=") + family, list_kernels});
        ASSERT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.out, paris);
        expect_family(o, family, steps);
    }
}

std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    std::string name = std::get<0>(info.param).model;
    name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
    return name + "_" + std::get<1>(info.param);
}

const std::vector<const char *> families = {"vec", "gen", "ref", "sg"};

INSTANTIATE_TEST_SUITE_P(
    Families, Paris,
    testing::ValuesIn(dealt(some(std::vector{gguf_files[1], gguf_files[2]}, 1), families,
                            1)),
    case_name);

} // namespace
