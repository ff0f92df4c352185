/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about models from their graphs: sums checked by hand, several kinds of layers, a head
 * that shares the embedding table, graphs without these parts.
 */
#include "plugin/model_facts.h"

#include "plugin/readers/openvino_ir.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

Graph
read(const std::string &model)
{
    const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

struct xm_model_facts
facts_of(const Graph &g)
{
    struct xm_model_facts f = {};
    xm_error err = {};
    EXPECT_XM_OK(xm_model_facts(g.get(), &f, &err));
    return f;
}

TEST(ModelFacts, SumsAreThoseOfTheDimensions)
{
    const uint64_t H = 256, E = 16, K = 4, I = 256, heads = 8, kv = 2, D = 64, V = 1536,
                   layers = 2, frequencies = D / 2;
    const uint64_t attention = 2 * H * heads * D + 2 * H * kv * D + 2 * D;
    const uint64_t others =
        layers * (attention + 2 * H + E * H) + 2 * V * H + H + frequencies;
    struct xm_model_facts f = facts_of(read("qwen3moe-tiny/ov/int4_asym_g64"));
    EXPECT_EQ(f.parameters, others + layers * E * 3 * I * H);
    EXPECT_EQ(f.active_parameters, others + layers * K * 3 * I * H);
    EXPECT_EQ(f.hidden, H);
    EXPECT_EQ(f.vocabulary, V);
    EXPECT_EQ(f.layers, layers);
    EXPECT_EQ(f.expert_layers, layers);
    ASSERT_EQ(f.n_experts, 1u);
    EXPECT_EQ(f.experts[0].layers, layers);
    EXPECT_EQ(f.experts[0].experts, E);
    EXPECT_EQ(f.experts[0].top_k, K);
    EXPECT_EQ(f.experts[0].width, I);
    EXPECT_EQ(f.experts[0].shared_width, 0u);
    ASSERT_EQ(f.n_attention, 1u);
    EXPECT_EQ(f.attention[0].heads, heads);
    EXPECT_EQ(f.attention[0].kv_heads, kv);
    EXPECT_EQ(f.attention[0].head_size, D);
    EXPECT_EQ(f.attention[0].value_head_size, D);
    EXPECT_EQ(f.attention[0].window, 0u);
}

TEST(ModelFacts, FormatsAreSortedByTheirBytes)
{
    struct xm_model_facts f = facts_of(read("qwen3moe-tiny/ov/int4_asym_g64"));
    ASSERT_EQ(f.n_formats, 3u);
    EXPECT_STREQ(f.formats[0].text, "u4");
    EXPECT_EQ(f.formats[0].group, 64u);
    EXPECT_TRUE(f.formats[0].has_zero_points);
    EXPECT_STREQ(f.formats[1].text, "u8");
    EXPECT_EQ(f.formats[1].group, UINT64_MAX) << "a scale for each row";
    EXPECT_STREQ(f.formats[2].text, "f32");
    EXPECT_EQ(f.formats[2].group, 0u);
    uint64_t parameters = 0, bytes = 0;
    for (uint32_t i = 0; i < f.n_formats; i++) {
        parameters += f.formats[i].parameters;
        bytes += f.formats[i].bytes;
    }
    EXPECT_EQ(parameters, f.parameters);
    EXPECT_EQ(bytes, f.bytes);
    struct xm_model_facts symmetric = facts_of(read("gpt-oss-tiny/ov/int4_sym_g64"));
    EXPECT_STREQ(symmetric.formats[0].text, "i4");
    EXPECT_FALSE(symmetric.formats[0].has_zero_points);
}

TEST(ModelFacts, KindsOfLayersHaveARowEach)
{
    struct xm_model_facts f = facts_of(read("gemma4-moe-tiny/ov/int4_asym_g32"));
    ASSERT_EQ(f.n_attention, 2u);
    EXPECT_EQ(f.attention[0].layers, 5u);
    EXPECT_EQ(f.attention[0].window, 32u);
    EXPECT_EQ(f.attention[0].head_size, 64u);
    EXPECT_EQ(f.attention[1].layers, 1u);
    EXPECT_EQ(f.attention[1].window, 0u);
    EXPECT_EQ(f.attention[1].head_size, 128u);
    EXPECT_EQ(f.attention[1].kv_heads, 1u);
}

TEST(ModelFacts, LayersThatShareACacheSaySo)
{
    struct xm_model_facts f = facts_of(read("gemma4-e-tiny/ov/int4_asym_g64"));
    uint64_t sharing = 0;
    for (uint32_t i = 0; i < f.n_attention; i++) {
        sharing += f.attention[i].shares_a_cache ? f.attention[i].layers : 0;
        EXPECT_EQ(f.attention[i].kv_heads, 1u);
    }
    EXPECT_EQ(sharing, 3u);
    EXPECT_EQ(f.layers, 6u);
    EXPECT_EQ(f.n_experts, 0u);
    EXPECT_EQ(f.active_parameters, f.parameters);
}

struct xm_weight *
weight_of_shape(const Graph &g, uint64_t rows, uint64_t cols, int which)
{
    xm_for_each_node(n, g.get())
    {
        struct xm_weight *w = &n->attr.weight;
        if (n->op == XM_OP_WEIGHT && w->rows == rows && w->cols == cols && which-- == 0)
            return w;
    }
    return nullptr;
}

/* A file has the bytes of a shared table only once. */
TEST(ModelFacts, AHeadThatIsTheEmbeddingTableIsCountedOnce)
{
    const uint64_t rows = 64, cols = 32;
    Graph apart = parse(small_model()), tied = parse(small_model());
    weight_of_shape(tied, rows, cols, 1)->data.p =
        weight_of_shape(tied, rows, cols, 0)->data.p;
    EXPECT_EQ(facts_of(tied).parameters, facts_of(apart).parameters - rows * cols);
}

TEST(ModelFacts, OfOtherGraphsAreFew)
{
    struct xm_model_facts f = facts_of(parse("%0 = parameter f32[tokens,4] name=\"x\"\n"
                                             "%1 = relu %0\n"
                                             "result %1 name=\"y\"\n"));
    EXPECT_EQ(f.parameters, 0u);
    EXPECT_EQ(f.layers, 0u);
    EXPECT_EQ(f.n_experts + f.n_attention + f.n_formats, 0u);
}

TEST(ModelFacts, NamesFormatsOfBlocks)
{
    const std::string text = "%0 = parameter f32[tokens,256] name=\"x\"\n"
                             "%1 = weight f32[64,256] q4_k @1\n"
                             "%2 = weight f32[256,64] mxfp4 @2\n"
                             "%3 = weight f32[8,256] q4_k @3\n"
                             "%4 = matmul %0, %1 transpose_b=true\n"
                             "%5 = matmul %4, %2 transpose_b=true\n"
                             "%6 = matmul %5, %3 transpose_b=true\n"
                             "result %6 name=\"y\"\n";
    struct xm_model_facts f = facts_of(parse(text.c_str()));
    ASSERT_EQ(f.n_formats, 2u);
    EXPECT_STREQ(f.formats[0].text, "q4_k");
    EXPECT_EQ(f.formats[0].parameters, 72u * 256);
    EXPECT_EQ(f.formats[0].bytes, 72u * 144);
    EXPECT_STREQ(f.formats[1].text, "mxfp4");
    EXPECT_EQ(f.formats[1].bytes, 256u * 2 * 17);
}

/* The facts describe the model, whatever passes the user skips. */
TEST(ModelFacts, DoNotDependOnSwitches)
{
    Graph g = read("qwen3moe-tiny/ov/int4_asym_g64");
    setenv("XM_SKIP", "FuseMOE3GemmCompressed,FoldDequantize", 1);
    setenv("XM_STOP", "FoldConstants", 1);
    struct xm_model_facts f = facts_of(g);
    unsetenv("XM_SKIP");
    unsetenv("XM_STOP");
    EXPECT_EQ(f.n_experts, 1u);
    EXPECT_EQ(f.layers, 2u);
}

TEST(ModelFacts, EveryAllocationMayFail)
{
    Graph g = read("qwen3moe-tiny/ov/int4_asym_g64");
    bool seen = true;
    uint64_t n = 1;
    for (; seen; n += 1 + n / 10) {
        struct xm_model_facts f = {};
        xm_error err = {};
        xm_fail_allocation(n);
        enum xm_status s = xm_model_facts(g.get(), &f, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s != XM_OK, seen) << n << ": " << err.text;
        EXPECT_EQ(f.parameters == 0, seen) << n;
    }
    EXPECT_GT(n, 100u);
}

} // namespace
