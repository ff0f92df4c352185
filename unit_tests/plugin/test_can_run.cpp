/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers that passes get about fused ops: for each op a node that can run, and changes that
 * make it refused.
 */
#include <functional>

#include "plugin/lower/program.h"
#include "unit_tests/passes/pass_test.h"

namespace
{
const std::string values = R"(
%0 = parameter f32[T,8] name="x"
%1 = parameter f32[T,8] name="y"
%2 = parameter i32[T,2] name="ids"
%3 = parameter i64[1,T] name="positions"
%4 = parameter f32[1,T,4,8] name="q"
%5 = parameter f32[1,T,2,8] name="k"
%6 = parameter f32[1,T,8] name="table"
%7 = parameter f32[T,2] name="weights"
%8 = parameter f32[T,4] name="logits"
%9 = parameter f32[1,T,8] name="slots"
%10 = const f32[8] {1, 2, 3, 4, 5, 6, 7, 8}
%11 = weight f32[16,8] u4 group=4 scale=f16 zp=u4 @11
%12 = weight f32[16,16] f32 @12
%13 = weight f32[4,4,8] f32 @13
%14 = weight f32[4,4,8] f32 @14
%15 = weight f32[4,8,4] f32 @15
%16 = weight f32[6,8] f32 @16
%17 = weight f32[8,6] f32 @17
)";
const std::string experts = "%13, %14, %15, _, _, %16, %16, %17, _ hidden_size=8 "
                            "inter_size=4 num_expert=4 top_k=2 num_shared_expert=1";

struct Case {
    enum xm_op op;
    std::string line; /* a node that can run */
    const char *why;  /* the reason after `spoil` changed the node */
    std::function<void(xm_node *n, xm_graph *g)> spoil;
};

xm_value *
value(xm_graph *g, const char *name)
{
    return &xm_graph_parameter(g, name)->out[0];
}

void
read_ids(xm_node *n, xm_graph *g)
{
    xm_node_set_in(n, 0, value(g, "ids"));
}

const Case cases[] = {
    {XM_OP_RMS_NORM, "%20 = rms_norm %0, %10 epsilon=1", "neither f16 nor f32", read_ids},
    {XM_OP_ROW_CHAIN, "%20 = row_chain %0, %1 steps=\"out add x0 x1\"",
     "not a valid row chain",
     [](xm_node *n, xm_graph *) { n->attr.row_chain.steps = "out add x0"; }},
    {XM_OP_ROPE, "%20 = rope %4, %6, %6", "neither f16 nor f32", read_ids},
    {XM_OP_ROPE_TABLES, "%20, %21 = rope_tables %3, %10", "neither i64 nor i32",
     [](xm_node *n, xm_graph *g) { xm_node_set_in(n, 0, value(g, "x")); }},
    {XM_OP_GLU, "%20 = glu %0, %1", "unknown activation",
     [](xm_node *n, xm_graph *) { n->attr.glu.activation = XM_ACT_COUNT; }},
    {XM_OP_ATTENTION,
     "%20 = attention %4, %5, %5, _, _, _, _ scale=0.5 key_state=\"k\" value_state=\"v\"",
     "not a multiple",
     [](xm_node *n, xm_graph *) {
         n->in[XM_ATTENTION_K].value->type.shape.dim[2] = xm_dim_const(3);
     }},
    {XM_OP_LINEAR, "%20 = linear %0, _, %11, _", "not a stored weight",
     [](xm_node *n, xm_graph *g) { xm_node_set_in(n, XM_LINEAR_W, value(g, "x")); }},
    {XM_OP_GATHER_MATMUL, "%20 = gather_matmul %9, %13, %2, _", "this element type",
     [](xm_node *n, xm_graph *) { xm_in(n, 1)->node->attr.weight.element = XM_I64; }},
    {XM_OP_MOE_COMPRESSED, "%20 = moe_compressed %0, %7, %2, _, _, " + experts,
     "not constants",
     [](xm_node *n, xm_graph *g) { xm_node_set_in(n, XM_MOE_W_GATE, value(g, "x")); }},
    {XM_OP_MOE_ROUTER, "%20, %21 = moe_router %8, _, _ top_k=2", "above the number",
     [](xm_node *n, xm_graph *) { n->attr.router.top_k = 5; }},
    {XM_OP_MOE_3GEMM_FUSED_COMPRESSED,
     "%20 = moe_3gemm_fused_compressed %0, %8, _, _, _, " + experts, "top_k",
     [](xm_node *n, xm_graph *) { n->attr.moe.routing.top_k = 5; }},
};

bool
can_run(const xm_node *n, const char **why)
{
    const xm_device_info device = {};
    const xm_config config = {};
    const xm_caps caps = xm_program_caps(&device, &config, nullptr);
    std::vector<xm_value *> in;
    for (uint32_t i = 0; i < n->n_in; i++)
        in.push_back(xm_in(n, i));
    return xm_can_run(&caps, n->op, &n->attr, in.data(), n->n_in, why);
}
} // namespace

TEST(CanRun, AnswersForEveryFusedOp)
{
    for (int op = 0; op < XM_OP_COUNT; op++) {
        bool asked = false;
        for (const Case &c : cases)
            asked |= c.op == op;
        EXPECT_EQ(asked, (xm_op_info((enum xm_op)op)->flags & XM_OPF_FUSED) != 0)
            << xm_op_info((enum xm_op)op)->text;
    }
}

TEST(CanRun, TellsWhatRunsFromWhatDoesNot)
{
    for (const Case &c : cases) {
        SCOPED_TRACE(c.line);
        const char *why = nullptr;
        Graph g = parse(values + c.line + "\nresult %20 name=\"r\"");
        ASSERT_TRUE(g);
        xm_node *n = first(g.get(), c.op);
        EXPECT_TRUE(can_run(n, &why)) << why;
        EXPECT_EQ(why, nullptr);
        c.spoil(n, g.get());
        ASSERT_FALSE(can_run(n, &why));
        EXPECT_NE(std::string(why).find(c.why), std::string::npos) << why;
    }
}

/* An op without a row in the table of fused ops cannot run. */
TEST(CanRun, RefusesWhatIsInNoRow)
{
    const char *why = nullptr;
    Graph g = parse(values + "%20 = add %0, %1\nresult %20 name=\"r\"");
    EXPECT_FALSE(can_run(first(g.get(), XM_OP_ADD), &why));
    EXPECT_STREQ(why, "the device does not support this operation");
}

/* Two products become one op only if their weight formats fit together: equal formats of
 * elements, or any block formats. */
TEST(CanRun, AsksWhichWeightsGoTogether)
{
    const char *why = nullptr;
    Graph g = parse(values + "%20, %21 = linear %0, _, %11, _, %16, _\n"
                             "result %20 name=\"r\"");
    EXPECT_FALSE(can_run(first(g.get(), XM_OP_LINEAR), &why));
    for (const char *other : {"q6_k", "q4_k", "f16"}) {
        SCOPED_TRACE(other);
        g = parse(std::string("%0 = parameter f32[T,256] name=\"x\"\n"
                              "%1 = weight f32[16,256] q4_k @1\n"
                              "%2 = weight f32[8,256] ") +
                  other +
                  " @2\n%3, %4 = linear %0, _, %1, _, %2, _\n"
                  "result %3 name=\"r\"");
        ASSERT_TRUE(g);
        EXPECT_EQ(can_run(first(g.get(), XM_OP_LINEAR), &why), *other == 'q');
    }
}
