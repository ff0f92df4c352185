/* SPDX-License-Identifier: Apache-2.0
 *
 * The model family that is recognized from a graph: of the test models, and of their graphs with
 * one layer changed.
 */
#include "plugin/model_family.h"

#include "plugin/readers/openvino_ir.h"
#include "transformations/pipeline.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

Graph
fused(const std::string &model)
{
    const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    const xm_caps any = {};
    xm_pipeline_options aside = {};
    xm_graph *g = nullptr;
    xm_error err = {};
    aside.is_aside = true;
    EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    EXPECT_XM_OK(xm_pipeline_run(g, &any, &aside, nullptr, nullptr, &err));
    return Graph(g, xm_graph_destroy);
}

xm_node *
last_of(const Graph &g, xm_op op)
{
    xm_node *last = nullptr;
    xm_for_each_node(n, g.get())
    {
        last = n->op == op ? n : last;
    }
    return last;
}

const char gpt_oss[] = "gpt-oss-tiny/ov/int4_sym_g64";
const char gemma4[] = "gemma4-moe-tiny/ov/int4_asym_g32";

} // namespace

TEST(ModelFamily, IsNamedWhereNoOtherHasSuchLayers)
{
    EXPECT_STREQ(xm_model_family(fused(gpt_oss).get()), "gpt_oss");
    EXPECT_STREQ(xm_model_family(fused(gemma4).get()), "gemma4_text");
    EXPECT_EQ(xm_model_family(fused("qwen3moe-tiny/ov/int4_asym_g64").get()), nullptr);
    EXPECT_EQ(xm_model_family(fused("gemma4-e-tiny/ov/int4_asym_g64").get()), nullptr)
        << "it has no experts";
}

TEST(ModelFamily, EveryLayerHasToBeOfIt)
{
    const xm_op attention = XM_OP_ATTENTION, experts = XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    const struct {
        const char *model;
        xm_op op;
        void (*change)(xm_node *n, xm_value *none);
    } rows[] = {
        {gpt_oss, attention,
         [](xm_node *n, xm_value *none) { n->in[XM_ATTENTION_SINKS].value = none; }},
        {gpt_oss, experts, [](xm_node *n, xm_value *) { n->attr.moe.limit = 0; }},
        {gpt_oss, experts, [](xm_node *n, xm_value *) { n->attr.moe.up_add = 0; }},
        {gpt_oss, experts,
         [](xm_node *n, xm_value *) { n->attr.moe.activation = XM_ACT_GELU_TANH; }},
        {gpt_oss, experts,
         [](xm_node *n, xm_value *none) { n->in[XM_MOE_BIAS_GATE].value = none; }},
        {gemma4, attention,
         [](xm_node *n, xm_value *) { n->attr.attention.scale = 0.125f; }},
        {gemma4, experts,
         [](xm_node *n, xm_value *) { n->attr.moe.activation = XM_ACT_SWISH; }},
        {gemma4, experts,
         [](xm_node *n, xm_value *none) { n->in[XM_MOE_EXPERT_SCALE].value = none; }},
    };
    for (const auto &row : rows) {
        Graph g = fused(row.model);
        row.change(last_of(g, row.op), xm_none(g.get()));
        EXPECT_EQ(xm_model_family(g.get()), nullptr) << row.model << &row - rows;
    }
}
