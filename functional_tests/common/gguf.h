/* SPDX-License-Identifier: Apache-2.0
 *
 * The GGUF files among the test models and their expected results: the prompts, and for each the
 * results of the model with the decoded weights (dequant_*), and those of llama.cpp, which also
 * rounds activations to 8 bits (llamacpp_*).
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_GGUF_H
#define XM_FUNCTIONAL_TESTS_COMMON_GGUF_H

#include "functional_tests/common/cases.h"
#include "functional_tests/common/files.h"

struct GgufFile {
    const char *model, *type, *ir; /* ir: the same checkpoint as an IR */

    std::string folder() const
    {
        return std::string(XM_MODELS_DIR "/") + model;
    }
    std::string path() const
    {
        return folder() + "/gguf/" + model + "-" + type + ".gguf";
    }
    std::string ir_path() const
    {
        return folder() + "/ov/" + ir;
    }
    Safetensors golden(const std::string &source) const
    {
        return Safetensors(folder() + "/golden/" + source + "_" + type + ".safetensors");
    }
    double perplexity() const
    {
        const Json summary(read_file(folder() + "/golden/summary.json"));
        return summary.number(std::string("/dequant_") + type + "/ppl");
    }
};

/* clang-format off */
inline const std::vector<GgufFile> gguf_files = {
    {"qwen3moe-tiny",   "Q4_K_M",    "int4_asym_g64"},
    {"gemma4-moe-tiny", "Q4_K_M",    "int4_asym_g32"},
    {"gemma4-e-tiny",   "Q4_0",      "int4_asym_g64"},
    {"gpt-oss-tiny",    "MXFP4_MOE", "int4_sym_g64"},
    {"qwen3moe-tiny",   "Q2_K",      "int4_asym_g64"},
    {"qwen3moe-tiny",   "IQ4_NL",    "int4_asym_g64"},
};
/* clang-format on */
/* The first files, one of each family. */
inline const std::vector<GgufFile> gguf_families(gguf_files.begin(),
                                                 gguf_files.begin() + 4);

inline const char *const gguf_prompts[] = {"short",    "reverse", "long",
                                           "nonascii", "chat",    "arith"};

inline void
PrintTo(const GgufFile &file, std::ostream *out)
{
    *out << file.model << " " << file.type;
}

inline std::string
gguf_name(const testing::TestParamInfo<GgufFile> &info)
{
    std::string name = std::string(info.param.model) + "_" + info.param.type;
    for (char &c : name)
        c = isalnum((unsigned char)c) ? c : '_';
    return name;
}

struct GgufPrompt {
    std::string text;
    Ids ids;

    GgufPrompt(const GgufFile &file, const std::string &name)
    {
        const Json list(read_file(file.folder() + "/golden/prompts.json"));
        for (size_t i = 0; i < std::size(gguf_prompts); i++) {
            const std::string at = "/" + std::to_string(i);
            if (list.text(at + "/name") != name)
                continue;
            text = list.text(at + "/text");
            ids = list.ids(at + "/ids");
        }
        EXPECT_FALSE(ids.empty()) << name;
    }
};

#endif
