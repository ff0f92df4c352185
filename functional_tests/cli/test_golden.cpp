/* SPDX-License-Identifier: Apache-2.0
 *
 * The program on trained models, compared with the reference implementation's results for the
 * same files (functional_tests/models/…/golden).
 */
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "functional_tests/common/cases.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/kernels.h"
#include "functional_tests/common/program.h"

static const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny";

static const std::vector<const char *> variants = {"int4_asym_g64", "int4_sym_g64",
                                                   "int8_asym", "int4_asym_g128_r1"};
static const std::vector<const char *> prompts = {"short",    "reverse", "long",
                                                  "nonascii", "chat",    "arith"};

static std::string
model(const std::string &variant)
{
    return tiny + "/ov/" + variant;
}

static Safetensors
golden(const std::string &variant)
{
    return Safetensors(tiny + "/golden/openvino_" + variant + ".safetensors");
}

/* A prompt: its token ids as --ids takes them, its text, and the number of ids. */
struct Prompt {
    std::string ids, text;
    size_t n = 0;

    explicit Prompt(const std::string &name)
    {
        Json list(read_file(tiny + "/golden/prompts.json"));
        for (size_t i = 0; i < prompts.size(); i++) {
            std::string at = "/" + std::to_string(i);
            if (list.text(at + "/name") != name)
                continue;
            text = list.text(at + "/text");
            for (int32_t id : list.ids(at + "/ids")) {
                ids += (n++ ? "," : "") + std::to_string(id);
            }
        }
        EXPECT_FALSE(ids.empty()) << name;
    }
};

static Matrix
logits(const std::string &variant, const std::string &ids, const Words &options)
{
    Words words = {"logits", "-m", model(variant), "--ids", ids, "-o", "-"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    return parse_npy(o.out);
}

/* ---- each file, each prompt -------------------------------------------------------- */

using Case = std::tuple<const char *, const char *>; /* variant, prompt */

class Golden : public testing::TestWithParam<Case>
{
  protected:
    std::string variant = std::get<0>(GetParam()), prompt = std::get<1>(GetParam());

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    void expect_logits(const char *precision, double tolerance)
    {
        Prompt p(prompt);
        Matrix m = logits(variant, p.ids, {"--precision", precision});
        ASSERT_EQ(m.rows, p.n);
        expect_golden_positions(m, golden(variant), prompt, precision);
        Floats expected = golden(variant).get<float>(prompt + ".last_logits");
        EXPECT_LE(nmse(m.row(m.rows - 1), expected), tolerance);
    }
};

static std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

TEST_P(Golden, GreedyIdsAreTheReferences)
{
    Prompt p(prompt);
    Outcome o = run({"generate", "-m", model(variant), "--ids", p.ids, "-n", "32",
                     "--ignore-eos", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/ids"), golden(variant).get<int32_t>(prompt + ".greedy"));
}

TEST_P(Golden, LogitsInHalfPrecision)
{
    expect_logits("f16", 1e-3);
}

TEST_P(Golden, LogitsInFullPrecision)
{
    expect_logits("f32", 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Golden,
                         testing::ValuesIn(dealt(some(variants, 3), prompts, 1)),
                         case_name);

/* ---- each file --------------------------------------------------------------------- */

class GoldenFile : public testing::TestWithParam<const char *>
{
  protected:
    std::string variant = GetParam();
};

TEST_P(GoldenFile, PerplexityIsTheReferences)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = run({"perplexity", "-m", model(variant), "--json", "--by-row", "--ids",
                     "@" + tiny + "/golden/ppl_tokens.npy"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json summary(read_file(tiny + "/golden/summary.json"));
    double own = summary.number("/openvino_" + variant + "/ppl");
    /* The older export has no golden perplexity; quantization changes it by less than a percent. */
    double expected = own > 0.0 ? own : summary.number("/hf_f32/ppl");
    EXPECT_NEAR(Json(o.out).number("/ppl"), expected,
                (own > 0.0 ? 0.005 : 0.01) * expected);
    EXPECT_EQ(Json(o.out).number("/tokens"), 2550);
}

TEST_P(GoldenFile, TheReferenceDeviceGivesTheSameLogits)
{
    Prompt p("reverse");
    Matrix m = logits(variant, p.ids, {"--device", "REFERENCE"});
    ASSERT_EQ(m.rows, p.n);
    EXPECT_LE(nmse(m.row(m.rows - 1), golden(variant).get<float>("reverse.last_logits")),
              1e-6);
}

INSTANTIATE_TEST_SUITE_P(Tiny, GoldenFile, testing::ValuesIn(some(variants, 2)),
                         [](const testing::TestParamInfo<const char *> &info) {
                             return std::string(info.param);
                         });

/* The types of values and of the cache. */
struct Types {
    const char *values, *kv;
};

class GoldenSteps : public testing::TestWithParam<std::tuple<const char *, Types>>
{
};

TEST_P(GoldenSteps, AgreeWithTheHostReference)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[variant, types] = GetParam();
    Outcome o =
        run({"verify", "-m", model(variant), "--precision", types.values, "--kv",
             types.kv, "--json", "-p", Prompt("nonascii").text, "--ubatch", "40"});
    ASSERT_EQ(o.code, 0) << o.err << o.out;
    Json json(o.out);
    EXPECT_EQ(json.number("/compared"), yyjson_arr_size(json.at("/steps")));
    EXPECT_GE(json.number("/compared"), 18);
}

static const std::vector<Types> all_types = {
    {"f16", "f16"}, {"f16", "i8"}, {"f16", "u4"}, {"f32", "f32"}, {"f32", "u4"}};

INSTANTIATE_TEST_SUITE_P(Tiny, GoldenSteps,
                         testing::ValuesIn(dealt(some(variants, 3), all_types, 1)),
                         [](const auto &info) {
                             const Types types = std::get<1>(info.param);
                             return std::string(std::get<0>(info.param)) + "_" +
                                    types.values + "_" + types.kv;
                         });

/* ---- settings that must not change results ------------------------------------------ */

TEST(Chunks, OfAnySizeGiveTheSameLogits)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Prompt p("nonascii");
    Matrix whole = logits("int4_asym_g64", p.ids, {"--precision", "f32"});
    float largest = 0.0f;
    for (float x : whole.data)
        largest = std::max(largest, std::fabs(x));
    for (const char *ubatch : {"1", "3", "512"}) {
        Matrix m =
            logits("int4_asym_g64", p.ids, {"--precision", "f32", "--ubatch", ubatch});
        ASSERT_EQ(m.data.size(), whole.data.size());
        float worst = 0.0f;
        for (size_t i = 0; i < m.data.size(); i++)
            worst = std::max(worst, std::fabs(m.data[i] - whole.data[i]));
        EXPECT_LE(worst, 1e-4f * largest) << "ubatch " << ubatch;
    }
}

class SkippedPass : public testing::TestWithParam<Case>
{
};

TEST_P(SkippedPass, LeavesTheTextAsItIs)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[pass, variant] = GetParam();
    Outcome o = run(
        {"generate", "-m", model(variant), "-p", "Paris is the capital of", "-n", "12"},
        {std::string("XM_SKIP=") + pass});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.rfind(" France.", 0), 0u) << o.out;
}

static const std::vector<const char *> passes = {"FuseVectorizedMOE3GEMM",
                                                 "ConvertMOEToMOECompressed",
                                                 "FuseMoERouter",
                                                 "FuseMOE3GemmCompressed",
                                                 "FuseRoPE",
                                                 "FuseRoPETables",
                                                 "FuseAttentionInputs",
                                                 "FuseResidualAdd",
                                                 "FuseLinearGLU",
                                                 "FuseLinearSiblings"};
/* Exports by two versions, with different graph patterns. */
static const std::vector<const char *> exports = {"int4_asym_g64", "int4_asym_g128_r1"};

INSTANTIATE_TEST_SUITE_P(Passes, SkippedPass,
                         testing::ValuesIn(dealt(some(passes, 2), exports, 1)),
                         case_name);

/* ---- families of kernels ----------------------------------------------------------------- */

/* Fails unless the kernels of a family give the reference's ids. */
static void
expect_golden_ids(const std::string &family, const std::string &precision,
                  Words settings = {})
{
    settings.push_back("XM_FORCE=" + family);
    settings.push_back(list_kernels);
    Outcome o =
        run({"generate", "-m", model("int4_asym_g64"), "--ids", Prompt("reverse").ids,
             "-n", "32", "--ignore-eos", "--json", "--precision", precision},
            settings);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/ids"),
              golden("int4_asym_g64").get<int32_t>("reverse.greedy"));
    expect_family(o, family,
                  {"linear_", "attention_inputs", "attention_prompt", "attention_decode",
                   "moe_route", "moe_gate_up", "moe_down", "rms_norm"});
}

class KernelFamily : public testing::TestWithParam<Case>
{
};

TEST_P(KernelFamily, GivesTheReferencesIds)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    expect_golden_ids(std::get<0>(GetParam()), std::get<1>(GetParam()));
}

static const std::vector<const char *> families = {"ref", "gen", "sg"},
                                       precisions = {"f16", "f32"};

INSTANTIATE_TEST_SUITE_P(Tiny, KernelFamily,
                         testing::ValuesIn(dealt(families, precisions, 1)), case_name);

/* Returns the folder of Intel's OpenCL CPU runtime, which tools/test also looks for there. */
static std::filesystem::path
intel_cpu_runtime()
{
    const char *folder = getenv("INTEL_OCL_DIR"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    std::filesystem::path root =
        folder  ? std::filesystem::path(folder)
        : cache ? std::filesystem::path(cache) / "intel-opencl-cpu"
                : std::filesystem::path(home ? home : "/") / ".cache/intel-opencl-cpu";
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(root, error), end; at != end;
         at.increment(error)) {
        if (at->path().filename() == "libintelocl.so")
            return at->path();
    }
    return {};
}

/* This runtime has f16 arithmetic and all sub-group functions of Intel's GPUs. */
TEST(IntelCpuRuntime, GivesTheReferencesIdsWithSubGroups)
{
    std::filesystem::path library = intel_cpu_runtime();
    if (library.empty())
        GTEST_SKIP() << "Intel's OpenCL CPU runtime is not installed (set INTEL_OCL_DIR)";
    std::filesystem::path vendors =
        testing::TempDir() + "xemoe_vendors_" + std::to_string(getpid());
    std::filesystem::create_directories(vendors);
    std::ofstream(vendors / "intel.icd") << library.string() << "\n";
    for (const char *precision : precisions)
        expect_golden_ids("sg", precision,
                          {"OCL_ICD_VENDORS=" + vendors.string(),
                           "LD_LIBRARY_PATH=" + library.parent_path().string()});
    std::filesystem::remove_all(vendors);
}
