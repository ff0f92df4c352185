/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that returns hidden states instead of logits.
 */
#include "transformations/passes/gather_hidden_states.h"
#include "transformations/passes/slice_last_token.h"
#include "unit_tests/passes/pass_test.h"

namespace
{

const std::vector<xm_binding> with_samples = {
    {"batch", 1}, {"tokens", 5}, {"samples", 3}};

std::string
result_name(const xm_graph *g)
{
    return g->last->op == XM_OP_RESULT ? g->last->attr.name.name : "";
}

/* Returns a graph whose hidden states are %4. `rest` adds results. */
Graph
model(const std::string &rest)
{
    return parse(R"(
%0 = parameter i64[batch,tokens] name="input_ids"
%1 = const f32[4,2] {0.5, 1, -1, 2, 3, -2, 0.25, 4}
%2 = const i64[] {0}
%3 = gather %1, %0, %2
%4 = tanh %3
%5 = const f32[3,2] {1, 2, 3, 4, 5, 6}
)" + rest);
}

const char *const head = "%6 = matmul %4, %5 transpose_b=true\n";

/* Fails unless the graph returns the hidden states [samples,H] of the sampled tokens, which are
 * tanh of their rows of the table. */
void
expect_hidden_rows(const xm_graph *g)
{
    const Floats table = {0.5, 1, -1, 2, 3, -2, 0.25, 4};
    std::vector<const xm_tensor *> in;
    std::vector<int64_t> ids, samples;
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_PARAMETER)
            continue;
        const xm_tensor *t =
            random_tensor(n->out[0].type, (uint32_t)in.size() + 1, with_samples);
        (std::string(n->attr.name.name) == "input_ids" ? ids : samples)
            .assign(t->i, t->i + t->n);
        in.push_back(t);
    }
    for (const xm_tensor *t : in)
        xm_tensor_destroy(const_cast<xm_tensor *>(t));
    const std::vector<Floats> got = evaluate(g, with_samples);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(samples.size(), 3u);
    ASSERT_EQ(got[0].size(), 6u);
    for (size_t i = 0; i < 6; i++) {
        const size_t id = (size_t)ids[(size_t)samples[i / 2]];
        EXPECT_NEAR(got[0][i], std::tanh(table[id * 2 + i % 2]), 1e-6) << i;
    }
}

TEST(HiddenStates, TakeThePlaceOfLogits)
{
    Graph g = model(std::string(head) + "result %6 name=\"logits\"\n");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    expect_valid(g.get());
    EXPECT_EQ(result_name(g.get()), "last_hidden_state");
    EXPECT_EQ(count(g.get(), XM_OP_RESULT), 1);
    EXPECT_EQ(count(g.get(), XM_OP_MATMUL), 0);
    EXPECT_TRUE(xm_dim_is(xm_in(g->last, 0)->type.shape.dim[2], 2));
    expect_hidden_rows(g.get());
}

TEST(HiddenStates, StandBeforeElementwiseStepsBehindTheHead)
{
    Graph g = model(std::string(head) + R"(
%7 = const f32[] {30}
%8 = divide %6, %7
%9 = tanh %8
result %9 name="logits"
)");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    expect_hidden_rows(g.get());
}

TEST(HiddenStates, ComeBehindAnExpandedWeight)
{
    Graph g = model(R"(
%6 = const f16[3,2] {1, 2, 3, 4, 5, 6}
%7 = convert %6 to=f32
%8 = const f32[3,1] {2, 3, 4}
%9 = multiply %7, %8
%10 = matmul %4, %9 transpose_b=true
result %10 name="logits"
)");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    expect_hidden_rows(g.get());
}

TEST(HiddenStates, AreLeftWhereTheFileGivesThem)
{
    for (const char *name : {"last_hidden_state", "token_embeddings"}) {
        Graph g = model(std::string("result %4 name=\"") + name + "\"\n");
        EXPECT_TRUE(xm_graph_gives_hidden_states(g.get()));
        ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
        expect_valid(g.get());
        expect_hidden_rows(g.get());
    }
}

/* A result with the name of hidden states is preferred to one that looks like logits. */
TEST(HiddenStates, OfThatNameComeBeforeOthers)
{
    Graph g =
        model(std::string(head) +
              "result %6 name=\"projected\"\nresult %4 name=\"token_embeddings\"\n");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    EXPECT_EQ(count(g.get(), XM_OP_RESULT), 1);
    expect_hidden_rows(g.get());
}

TEST(HiddenStates, KeepTheStepsThatWriteStates)
{
    Graph g = model(std::string(head) + R"(
%7 = shape_value i64[3] {batch, 0, 2}
%8 = const f32[] {0}
%9 = broadcast %8, %7
%10 = read_value f32[batch,past,2] %9 variable="s"
%11 = concat %10, %4 axis=1
%12 = assign %11 variable="s"
result %6 name="logits"
)");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    EXPECT_EQ(count(g.get(), XM_OP_ASSIGN), 1);
}

TEST(HiddenStates, AreF32)
{
    Graph g = model(R"(
%6 = convert %4 to=f16
%7 = const f16[3,2] {1, 2, 3, 4, 5, 6}
%8 = matmul %6, %7 transpose_b=true
result %8 name="logits"
)");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    EXPECT_EQ(g->last->out[0].type.element, XM_F32);
}

TEST(HiddenStates, AreRefusedWhereThereAreNone)
{
    const std::string without[] = {
        "result %4 name=\"logits\"\n", /* no product */
        "%6 = matmul %4, %4 transpose_b=true\nresult %6 "
        "name=\"scores\"\n", /* not with a weight */
        "%6 = const i64[] {1}\n%7 = reduce_mean %4, %6\nresult %7 "
        "name=\"last_hidden_state\"\n", /* not one row a token */
    };
    for (const std::string &rest : without) {
        Graph g = model(rest);
        EXPECT_FALSE(xm_graph_gives_hidden_states(g.get())) << rest;
        EXPECT_FALSE(xm_pass_gather_hidden_states(g.get())) << rest;
        EXPECT_EQ(g->err.status, XM_UNSUPPORTED) << rest;
        EXPECT_NE(std::string(g->err.text).find("no hidden states"), std::string::npos);
    }
}

/* 2^64 paths lead from the head to the constant: the search must not follow each. */
TEST(HiddenStates, AreSoughtInBoundedTime)
{
    std::string rest;
    for (int i = 5; i < 69; i++) {
        const std::string v = "%" + std::to_string(i);
        rest += "%" + std::to_string(i + 1) + " = add " + v + ", " + v + "\n";
    }
    Graph g = model(
        rest + "%70 = matmul %4, %69 transpose_b=true\nresult %70 name=\"logits\"\n");
    EXPECT_FALSE(xm_pass_gather_hidden_states(g.get()));
    EXPECT_EQ(g->err.status, XM_UNSUPPORTED);
}

/* Later passes that also choose rows of the results must find nothing to do. */
TEST(HiddenStates, AreChosenOnce)
{
    Graph g = model(std::string(head) + "result %6 name=\"logits\"\n");
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get()));
    EXPECT_FALSE(xm_pass_gather_sampled_tokens(g.get()));
    EXPECT_FALSE(xm_pass_slice_last_token(g.get()));
}

TEST(Vocabulary, IsTheSmallestTableThatIdsIndex)
{
    EXPECT_EQ(xm_graph_vocabulary(model("result %4 name=\"x\"\n").get()), 4u);
    EXPECT_EQ(xm_graph_vocabulary(model(R"(
%6 = convert %0 to=i32
%7 = const i64[] {0}
%8 = gather %5, %6, %7
result %4 name="x"
result %8 name="y"
)")
                                      .get()),
              3u);
    EXPECT_EQ(xm_graph_vocabulary(parse(R"(
%0 = parameter f32[batch,tokens,8] name="inputs_embeds"
result %0 name="x"
)")
                                      .get()),
              UINT64_MAX);
}

} // namespace
