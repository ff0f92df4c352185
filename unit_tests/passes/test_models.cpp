/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline on whole models: ops are fused, the graph stays valid, and the logits of a short
 * prompt stay the same, whatever passes are skipped.
 */
#include <algorithm>
#include <map>

#include "plugin/readers/openvino_ir.h"
#include "runtime/reference/reference_row_chain.h"
#include "transformations/passes/keep_past.h"
#include "unit_tests/passes/pass_test.h"

namespace
{
Graph
read(const std::string &model)
{
    std::string path = std::string(XM_MODELS_DIR) + "/" + model + "/openvino_model.xml";
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err), XM_OK) << err.text;
    return Graph(g, xm_graph_destroy);
}

xm_tensor *
tensor(enum xm_element e, std::vector<int64_t> dim, const std::vector<int64_t> &v)
{
    xm_tensor *t = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_tensor_create(&t, e, (uint32_t)dim.size(), dim.data(), &err), XM_OK);
    for (uint64_t i = 0; t && i < t->n; i++)
        t->i[i] = v[i];
    return t;
}

std::vector<int64_t>
counting(int64_t from, int64_t n)
{
    std::vector<int64_t> v;
    for (int64_t i = 0; i < n; i++)
        v.push_back(from + i);
    return v;
}

/* Returns the logits of `ids`, which follow `past` tokens in the states (NULL: no states). */
std::vector<Floats>
logits(const xm_graph *g, const std::vector<int64_t> &ids = {17, 400, 23, 951, 1202},
       xm_state_store *states = nullptr, int64_t past = 0)
{
    const char *names[] = {"input_ids", "attention_mask", "position_ids", "beam_idx"};
    int64_t n = (int64_t)ids.size();
    xm_tensor *in[] = {tensor(XM_I64, {1, n}, ids),
                       tensor(XM_I64, {1, past + n}, std::vector<int64_t>(past + n, 1)),
                       tensor(XM_I64, {1, n}, counting(past, n)),
                       tensor(XM_I32, {1}, {0})};
    xm_error err = {};
    xm_tensor *out = nullptr;
    xm_eval e = {};
    e.graph = g;
    e.input_names = names;
    e.inputs = in;
    e.n_inputs = 4;
    e.states = states;
    EXPECT_EQ(xm_evaluate(&e, &out, 1, &err), XM_OK) << err.text;
    std::vector<Floats> values(1);
    if (out)
        values[0].assign(out->f, out->f + out->n);
    xm_tensor_destroy(out);
    for (xm_tensor *t : in)
        xm_tensor_destroy(t);
    return values;
}

/* Returns the logits of a prompt and of two tokens after it, one by one. */
std::vector<Floats>
decode(const xm_graph *g)
{
    xm_state_store *states = xm_state_store_create();
    auto all = logits(g, {17, 400, 23}, states, 0);
    all.push_back(logits(g, {951}, states, 3)[0]);
    all.push_back(logits(g, {1202}, states, 4)[0]);
    xm_state_store_destroy(states);
    return all;
}

/* Replaces states by inputs and results, as models exported without states have them. */
void
take_states_away(xm_graph *g)
{
    xm_for_each_node_safe(n, g)
    {
        xm_builder b = xm_builder_before(g, n);
        const std::string state =
            n->op == XM_OP_READ_VALUE || n->op == XM_OP_ASSIGN ? n->attr.name.name : "";
        const size_t cut = state.find("present");
        if (n->op == XM_OP_READ_VALUE) {
            const std::string name = state.substr(0, cut);
            xm_value_replace(g, &n->out[0],
                             xm_parameter(&b, name.c_str(), &n->out[0].type));
            xm_node_remove(g, n);
        } else if (n->op == XM_OP_ASSIGN) {
            xm_result(&b, state.substr(cut).c_str(), xm_in(n, 0));
            xm_node_remove(g, n);
        }
    }
    xm_graph_remove_dead(g);
}

class Models : public ::testing::TestWithParam<const char *>
{
};

TEST_P(Models, PassAndStayValid)
{
    Graph g = read(GetParam());
    ASSERT_TRUE(g);
    auto before = logits(g.get());
    EXPECT_EQ(run_pipeline(g.get(), "", nullptr), "");
    expect_valid(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_TILE), 0);
    EXPECT_EQ(count(g.get(), XM_OP_SCATTER_ELEMENTS_UPDATE), 0);
    expect_close(before, logits(g.get()), 1e-4f);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Models,
    ::testing::Values("qwen3moe-tiny/ov/int4_asym_g64", "qwen3moe-tiny/ov/int4_sym_g64",
                      "qwen3moe-tiny/ov/int8_asym", "qwen3moe-tiny/ov/int4_asym_g128_r1",
                      "gemma4-moe-tiny/ov/int4_asym_g32",
                      "gemma4-e-tiny/ov/int4_asym_g64", "gpt-oss-tiny/ov/int4_sym_g64"));

/* An export without states computes the same after keep_past made states of its caches. */
TEST(Stateless, BecomesTheModelWithStates)
{
    Graph g = read("qwen3moe-tiny/ov/int4_asym_g64");
    auto want = decode(g.get());
    take_states_away(g.get());
    ASSERT_EQ(count(g.get(), XM_OP_READ_VALUE), 0);
    ASSERT_TRUE(xm_pass_keep_past(g.get())) << g->err.text;
    expect_valid(g.get());
    expect_close(want, decode(g.get()));
    EXPECT_EQ(run_pipeline(g.get(), "", nullptr), "");
    EXPECT_EQ(count(g.get(), XM_OP_ATTENTION), 2);
    expect_close(want, decode(g.get()), 1e-4f);
}

class FusedModels : public ::testing::TestWithParam<const char *>
{
};

TEST_P(FusedModels, EndInOneOpForEachLayer)
{
    Graph g = read(GetParam());
    ASSERT_TRUE(g);
    EXPECT_EQ(run_pipeline(g.get(), "", nullptr), "");
    EXPECT_EQ(count(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED), 2) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_TOPK), 0);
    /* attention has the norms of its heads */
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 5);
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 0);
    EXPECT_EQ(count(g.get(), XM_OP_ADD), 0);
    EXPECT_EQ(count(g.get(), XM_OP_LINEAR), 4);
    EXPECT_EQ(count(g.get(), XM_OP_MATMUL), 3); /* routers and the head */
    EXPECT_EQ(count(g.get(), XM_OP_ROPE_TABLES), 1);
}

INSTANTIATE_TEST_SUITE_P(Files, FusedModels,
                         ::testing::Values("qwen3moe-tiny/ov/int4_asym_g64",
                                           "qwen3moe-tiny/ov/int4_sym_g64",
                                           "qwen3moe-tiny/ov/int8_asym",
                                           "qwen3moe-tiny/ov/int4_asym_g128_r1"));

TEST(OtherModels, EndInWhatTheirExpertsAllow)
{
    Graph gelu = read("gemma4-moe-tiny/ov/int4_asym_g32");
    EXPECT_EQ(run_pipeline(gelu.get(), "", nullptr), "");
    EXPECT_EQ(count(gelu.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED), 6);
    Graph clamped = read("gpt-oss-tiny/ov/int4_sym_g64");
    EXPECT_EQ(run_pipeline(clamped.get(), "", nullptr), "");
    EXPECT_EQ(count(clamped.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED), 4);
    EXPECT_EQ(count(clamped.get(), XM_OP_MOE_ROUTER), 0);
}

/* The figures that are stated beside the limits of a chain. */
TEST(OtherModels, HaveTheLargestRowChains)
{
    Graph g = read("gemma4-moe-tiny/ov/int4_asym_g32");
    EXPECT_EQ(run_pipeline(g.get(), "", nullptr), "");
    xm_row_chain most = {};
    xm_for_each_node(n, g.get())
    {
        xm_row_chain c;
        if (n->op != XM_OP_ROW_CHAIN)
            continue;
        ASSERT_EQ(xm_row_chain_parse(n->attr.row_chain.steps, &c, nullptr), XM_OK);
        most.n_x = std::max(most.n_x, c.n_x);
        most.n_c = std::max(most.n_c, c.n_c);
        most.n_y = std::max(most.n_y, c.n_y);
        most.n_steps = std::max(most.n_steps, c.n_steps);
    }
    EXPECT_EQ(most.n_x, 3u);
    EXPECT_EQ(most.n_c, 5u);
    EXPECT_EQ(most.n_y, 4u);
    EXPECT_EQ(most.n_steps, 7u);
}

TEST(Decoding, ContinuesFromTheStates)
{
    for (const char *model :
         {"qwen3moe-tiny/ov/int4_asym_g64", "gemma4-moe-tiny/ov/int4_asym_g32",
          "gpt-oss-tiny/ov/int4_sym_g64"}) {
        SCOPED_TRACE(model);
        Graph g = read(model);
        ASSERT_TRUE(g);
        auto before = decode(g.get());
        EXPECT_EQ(run_pipeline(g.get(), "", nullptr), "");
        expect_close(before, decode(g.get()), 1e-4f);
    }
}

/* Skips passes around the experts. test_pipeline.cpp skips every set of them on one block. */
class SkippedPasses : public ::testing::TestWithParam<const char *>
{
};

TEST_P(SkippedPasses, EndInAGraphThatMeansTheSame)
{
    const char *model = GetParam();
    const char *sets[] = {"fuse_glu",
                          "FuseVectorizedMOE3GEMM",
                          "ConvertMOEToMOECompressed",
                          "fuse_moe_router",
                          "FuseMOE3GemmCompressed",
                          "fuse_glu,fuse_vectorized_moe_3gemm,fuse_moe_router",
                          "fuse_rms_norm,fuse_rope,sdpa_to_paged_attention"};
    auto want = logits(read(model).get());
    for (const char *skip : sets) {
        SCOPED_TRACE(skip);
        Graph g = read(model);
        ASSERT_EQ(run_pipeline(g.get(), skip, nullptr), "");
        expect_close(want, logits(g.get()), 1e-4f);
    }
}

INSTANTIATE_TEST_SUITE_P(Files, SkippedPasses,
                         ::testing::Values("qwen3moe-tiny/ov/int4_asym_g64",
                                           "gpt-oss-tiny/ov/int4_sym_g64"));

/* ---- devices that lack one fused op ---- */

std::vector<int>
fused_ops()
{
    std::vector<int> ops;
    for (int op = 0; op < XM_OP_COUNT; op++) {
        if (xm_op_info((enum xm_op)op)->flags & XM_OPF_FUSED)
            ops.push_back(op);
    }
    return ops;
}

bool
all_but_one(const void *ctx, enum xm_op op, const union xm_attr *, xm_value *const *,
            uint32_t, const char **why_not)
{
    *why_not = "this machine does not have it";
    return op != *(const int *)ctx;
}

/* A model after the pipeline on a device that has every op, and its logits before the pipeline. */
struct whole {
    Graph fused{nullptr, xm_graph_destroy};
    std::vector<Floats> want;
};

const whole &
whole_of(const std::string &model)
{
    static std::map<std::string, whole> all;
    whole &w = all[model];
    if (!w.fused) {
        w.fused = read(model);
        w.want = logits(w.fused.get());
        EXPECT_EQ(run_pipeline(w.fused.get(), "", nullptr), "");
    }
    return w;
}

class Without : public ::testing::TestWithParam<int>
{
};

/* Without the missing op the graph gives the same logits. Models that do not use the op give the
 * graph that PassAndStayValid runs, and are not evaluated again. */
TEST_P(Without, TheFusedOpTheGraphMeansTheSame)
{
    const int missing = GetParam();
    const xm_caps caps = {nullptr, all_but_one, &missing};
    int made = 0;
    for (const char *model :
         {"qwen3moe-tiny/ov/int4_asym_g64", "gemma4-moe-tiny/ov/int4_asym_g32",
          "gpt-oss-tiny/ov/int4_sym_g64"}) {
        SCOPED_TRACE(model);
        const whole &with = whole_of(model);
        Graph without = read(model);
        ASSERT_EQ(run_pipeline(without.get(), "", nullptr, &caps), "");
        made += count(with.fused.get(), (enum xm_op)missing);
        EXPECT_EQ(count(without.get(), (enum xm_op)missing), 0);
        expect_valid(without.get());
        if (print(without.get()) != print(with.fused.get()))
            expect_close(with.want, logits(without.get()), 1e-4f);
    }
    /* These ops are fused into others at the end, so that no graph may have one. */
    const bool ends = missing == XM_OP_ROPE || missing == XM_OP_GLU ||
                      missing == XM_OP_MOE_COMPRESSED || missing == XM_OP_MOE_ROUTER ||
                      missing == XM_OP_GATHER_MATMUL;
    EXPECT_TRUE(made > 0 || ends) << "no model has one to be without";
}

INSTANTIATE_TEST_SUITE_P(Ops, Without, ::testing::ValuesIn(fused_ops()),
                         [](const ::testing::TestParamInfo<int> &info) {
                             return xm_op_info((enum xm_op)info.param)->text;
                         });
} // namespace
