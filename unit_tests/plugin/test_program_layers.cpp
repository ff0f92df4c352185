/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the layers of a program begin and end, which layers are alike, and the texts that
 * describe steps. The programs are compiled for a GPU on an engine that only counts.
 */
#include <algorithm>
#include <set>

#include "plugin/gpu/describe.h"
#include "plugin/gpu/planner.h"
#include "plugin/lower/program_layers.h"
#include "plugin/readers/openvino_ir.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

/* A program with its texts and layers. */
class Compiled
{
  public:
    explicit Compiled(const std::string &model)
    {
        const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
        const xm_device_info info = counted_device(XM_DEVICE_GPU);
        xm_graph *g = nullptr;
        xm_program *p = nullptr;
        xm_config config;
        xm_config_init(&config);
        EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
        EXPECT_XM_OK(xm_planner_compile_open(&info, &config, g, &p, &err));
        program.reset(p);
        EXPECT_XM_OK(xm_program_describe(p, &texts, &err));
        std::vector<const char *> signatures;
        for (uint32_t i = 0; i < texts.n; i++)
            signatures.push_back(xm_strbuf_text(&texts.steps[i].signature));
        EXPECT_XM_OK(xm_program_find_layers(p, signatures.data(), &layers, &err));
    }
    ~Compiled()
    {
        xm_program_layers_free(&layers);
        xm_program_texts_free(&texts);
    }
    std::vector<std::string> ops(uint32_t block) const
    {
        std::vector<std::string> list;
        for (uint32_t i = 0; i < program->n_steps; i++) {
            if (layers.block[i] == block)
                list.push_back(program->steps[i].op);
        }
        return list;
    }
    /* Returns the first step of an op. */
    const xm_step_text &step(const std::string &op) const
    {
        uint32_t i = 0;
        while (i + 1 < program->n_steps && program->steps[i].op != op)
            i++;
        EXPECT_EQ(program->steps[i].op, op);
        return texts.steps[i];
    }
    std::vector<uint32_t> kinds() const
    {
        return std::vector<uint32_t>(layers.kind, layers.kind + layers.n);
    }

    Program program{nullptr, xm_program_unref};
    xm_program_texts texts = {};
    xm_program_layers layers = {};
    xm_error err = {};
};

using Ops = std::vector<std::string>;
using Kinds = std::vector<uint32_t>;

TEST(ProgramLayers, AreTheSameStepsAgainAndAgain)
{
    Compiled c("qwen3moe-tiny/ov/int4_asym_g64");
    const Ops layer = {"rms_norm",
                       "linear",
                       "attention",
                       "linear",
                       "row_chain",
                       "matmul",
                       "moe_3gemm_fused_compressed"};
    EXPECT_EQ(c.ops(0), (Ops{"gather", "rope_tables"})) << "all layers read the tables";
    EXPECT_EQ(c.ops(1), layer);
    EXPECT_EQ(c.ops(2), layer);
    EXPECT_EQ(c.ops(3), (Ops{"rms_norm", "gather", "matmul"}));
    EXPECT_EQ(c.kinds(), (Kinds{0, 0})) << "the files order q, k and v differently";
}

TEST(ProgramLayers, WithAndWithoutAWindowAreTwoKinds)
{
    Compiled c("gpt-oss-tiny/ov/int4_sym_g64");
    EXPECT_EQ(c.kinds(), (Kinds{0, 1, 0, 1}));
}

/* The last layer's final norms are one step, and the only global layer has rotation tables of its
 * own. */
TEST(ProgramLayers, TheLastMayHaveStepsThatNoOtherHas)
{
    Compiled c("gemma4-moe-tiny/ov/int4_asym_g32");
    EXPECT_EQ(c.kinds(), (Kinds{0, 1, 1, 1, 1, 5}));
    const Ops last = c.ops(6), behind = c.ops(7);
    ASSERT_FALSE(last.empty());
    EXPECT_EQ(last.front(), "linear");
    EXPECT_EQ(last.back(), "row_chain");
    EXPECT_EQ(behind.front(), "gather");
    EXPECT_EQ(std::set<std::string>(last.begin(), last.end()).count("rope_tables"), 1u);
}

/* Values that all layers compute from the tokens are computed once, within the first layer. */
TEST(ProgramLayers, WhatLayersShareStandsBefore)
{
    Compiled c("gemma4-e-tiny/ov/int4_asym_g64");
    const Ops before = c.ops(0);
    EXPECT_EQ(std::count(before.begin(), before.end(), "gather"), 2);
    EXPECT_EQ(std::count(before.begin(), before.end(), "rope_tables"), 2);
    EXPECT_EQ(c.layers.n, 6u);
    for (uint32_t i = 1; i <= 6; i++) {
        Ops layer = c.ops(i);
        EXPECT_EQ(layer.size(), 10u) << i;
        EXPECT_EQ(layer[1], "attention") << i;
        EXPECT_EQ(layer.back(), "row_chain") << i;
    }
}

TEST(ProgramLayers, ThereAreNoneWithoutAttention)
{
    const xm_device_info info = counted_device(XM_DEVICE_GPU);
    xm_program *p = nullptr;
    xm_error err = {};
    xm_config config;
    xm_config_init(&config);
    Graph g = parse("%0 = parameter f32[tokens,4] name=\"x\"\n"
                    "%1 = tanh %0\n"
                    "result %1 name=\"y\"\n");
    ASSERT_XM_OK(xm_planner_compile_open(&info, &config, g.release(), &p, &err));
    Program program(p, xm_program_unref);
    std::vector<const char *> signatures(p->n_steps, "");
    xm_program_layers layers = {};
    EXPECT_XM_OK(xm_program_find_layers(p, signatures.data(), &layers, &err));
    EXPECT_EQ(layers.n, 0u);
    EXPECT_EQ(layers.block[0], 0u);
    xm_program_layers_free(&layers);
}

TEST(Describe, KernelsDependOnTheTokens)
{
    Compiled c("qwen3moe-tiny/ov/int4_asym_g64");
    const xm_step_text &moe = c.step("moe_3gemm_fused_compressed");
    EXPECT_NE(std::string(xm_strbuf_text(&moe.token)).find("moe_down"),
              std::string::npos);
    EXPECT_EQ(std::string(xm_strbuf_text(&moe.token)).find("moe_sort"),
              std::string::npos);
    EXPECT_NE(std::string(xm_strbuf_text(&moe.prompt)).find("moe_sort"),
              std::string::npos);
    EXPECT_STREQ(xm_strbuf_text(&moe.detail), "16 experts, 4 for a token, width 256\n");
    EXPECT_STREQ(xm_strbuf_text(&moe.weights), "[16, 256, 256] u4, groups of 64\n"
                                               "[16, 256, 256] u4, groups of 64\n"
                                               "[16, 256, 256] u4, groups of 64\n");
    EXPECT_EQ(c.texts.prompt_tokens, 512u);
}

TEST(Describe, AttentionHasItsHeadsAndWindow)
{
    Compiled c("gpt-oss-tiny/ov/int4_sym_g64");
    EXPECT_EQ(std::string(xm_strbuf_text(&c.step("attention").detail))
                  .rfind("8 heads of 64, 2 KV heads\nsliding window of 32\n", 0),
              0u);
}

TEST(Describe, EveryAllocationMayFail)
{
    Compiled c("qwen3moe-tiny/ov/int4_asym_g64");
    std::vector<const char *> signatures;
    for (uint32_t i = 0; i < c.texts.n; i++)
        signatures.push_back(xm_strbuf_text(&c.texts.steps[i].signature));
    bool seen = true;
    uint64_t n = 1;
    for (; seen; n += 1 + n / 10) {
        xm_program_texts texts = {};
        xm_program_layers layers = {};
        xm_error err = {};
        xm_fail_allocation(n);
        enum xm_status s = xm_program_describe(c.program.get(), &texts, &err);
        if (s == XM_OK)
            s = xm_program_find_layers(c.program.get(), signatures.data(), &layers, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s != XM_OK, seen) << n << ": " << err.text;
        EXPECT_EQ(err.text[0] != 0, s != XM_OK) << n;
        xm_program_layers_free(&layers);
        xm_program_texts_free(&texts);
    }
    EXPECT_GT(n, 50u);
}

} // namespace
