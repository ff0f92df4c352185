/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusions that run after attention and experts are fused: the inputs of attention, biases,
 * residual sums, products of one value.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{

/* ---- attention's inputs ---- */

/* Returns a layer of attention. `inputs` are the lines that define %20 (q), %21 (k) and %22 (v),
 * all [B,T,H,8]. */
std::string
attention(const std::string &inputs,
          const std::string &operands = "%20, %21, %22, _, _, _, _",
          const std::string &more = "")
{
    return R"(
%0 = parameter f32[batch,tokens,4,8] name="q"
%1 = parameter f32[batch,tokens,2,8] name="k"
%2 = parameter f32[batch,tokens,2,8] name="v"
%3 = parameter f32[1,tokens,6] name="cos"
%4 = parameter f32[1,tokens,6] name="sin"
%5 = const f32[8] {1, 2, 3, 4, 5, 6, 7, 8}
%6 = const f32[1,1,1,8] {8, 7, 6, 5, 4, 3, 2, 1}
%7 = const f32[8] {1, 1, 1, 1, 1, 1, 1, 1}
)" + inputs +
           "\n%30 = attention " + operands +
           " scale=0.5 causal=true key_state=\"k\" value_state=\"v\" " + more + "\n" +
           "result %30 name=\"y\"\n";
}

const std::string normed_and_rotated = R"(
%10 = rms_norm %0, %5 epsilon=0.001
%20 = rope %10, %3, %4
%11 = rms_norm %1, %6 epsilon=0.001
%21 = rope %11, %3, %4
%22 = rms_norm %2, %7 epsilon=0.001)";

TEST(FuseAttentionInputs, TakesNormsAndTheRotation)
{
    expect_rewrites(xm_pass_fuse_attention_inputs, attention(normed_and_rotated),
                    attention("%8 = const f32[8] {8, 7, 6, 5, 4, 3, 2, 1}",
                              "%0, %1, %2, _, _, _, _, %3, %4, %5, %8, %7",
                              "epsilon=0.001"));
}

TEST(FuseAttentionInputs, TakesWhatThereIs)
{
    expect_rewrites(xm_pass_fuse_attention_inputs,
                    attention("%20 = rope %0, %3, %4\n%21 = rope %1, %3, %4\n"
                              "%22 = sin %2"),
                    attention("%22 = sin %2", "%0, %1, %22, _, _, _, _, %3, %4"));
    expect_rewrites(xm_pass_fuse_attention_inputs,
                    attention("%20 = sin %0\n%21 = rms_norm %1, %5 epsilon=0.001\n"
                              "%22 = sin %2"),
                    attention("%20 = sin %0\n%22 = sin %2",
                              "%20, %1, %22, _, _, _, _, _, _, _, %5", "epsilon=0.001"));
}

TEST(FuseAttentionInputs, TablesMayBeReshapedTwice)
{
    Graph g = parse(attention("%12 = shape_value i64[3] {1, tokens, 6}\n"
                              "%13 = reshape %3, %12\n%14 = reshape %3, %12\n"
                              "%20 = rope %0, %13, %4\n%21 = rope %1, %14, %4\n"
                              "%22 = sin %2"));
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 0);
}

TEST(FuseAttentionInputs, KAndVMayComeFromOneValue)
{
    expect_rewrites(
        xm_pass_fuse_attention_inputs,
        attention("%20 = rope %0, %3, %4\n%11 = rms_norm %1, %6 epsilon=0.001\n"
                  "%21 = rope %11, %3, %4\n%22 = rms_norm %1, %7 epsilon=0.001"),
        attention("%8 = const f32[8] {8, 7, 6, 5, 4, 3, 2, 1}",
                  "%0, %1, %1, _, _, _, _, %3, %4, _, %8, %7", "epsilon=0.001"));
}

/* v is a norm of %1; k is the same norm times the row of factors %6, then rotated. */
TEST(FuseAttentionInputs, KAndVMayShareANorm)
{
    const std::string after =
        attention("%8 = const f32[8] {8, 7, 6, 5, 4, 3, 2, 1}",
                  "%0, %1, %1, _, _, _, _, %3, %4, _, %8, %7", "epsilon=0.001");
    for (const char *product : {"%22, %6", "%6, %22"})
        expect_rewrites(xm_pass_fuse_attention_inputs,
                        attention("%20 = rope %0, %3, %4\n%22 = rms_norm %1, %7 "
                                  "epsilon=0.001\n%11 = multiply " +
                                  std::string(product) + "\n%21 = rope %11, %3, %4"),
                        after);
}

/* Without operands k and v, the layer reads the K and V of another layer's cache. */
TEST(FuseAttentionInputs, WithoutKAndVThereIsOnlyQ)
{
    std::string text = attention("%20 = sin %0\n%21 = sin %1\n%22 = sin %2");
    Graph g = parse(text + R"(
%40 = rms_norm %30, %5 epsilon=0.001
%41 = rope %40, %3, %4
%42 = attention %41, _, _, _, _, _, _ scale=0.5 causal=true key_state="k" value_state="v"
result %42 name="z")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE) + count(g.get(), XM_OP_RMS_NORM), 0);
}

TEST(FuseAttentionInputs, LeavesTwoDifferentRotationsAndTheNormsBeforeThem)
{
    expect_leaves(
        xm_pass_fuse_attention_inputs,
        attention("%10 = rms_norm %0, %5 epsilon=0.001\n%20 = rope %10, %3, %4\n"
                  "%21 = rope %1, %4, %3\n%22 = sin %2"));
    expect_leaves(xm_pass_fuse_attention_inputs,
                  attention("%20 = rope %0, %3, %4\n%21 = sin %1\n%22 = sin %2"));
}

/* Fused attention norms before it rotates, so that a rotation before a norm is not fused. */
TEST(FuseAttentionInputs, LeavesRotationsBelowANorm)
{
    Graph g =
        parse(attention("%10 = rope %0, %3, %4\n%20 = rms_norm %10, %5 epsilon=0.001\n"
                        "%21 = rope %1, %3, %4\n%22 = sin %2"));
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 2);
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 0);
}

TEST(FuseAttentionInputs, AsksWhetherAttentionTakesThem)
{
    xm_caps caps = {};
    caps.can_run = [](const void *, enum xm_op op, const union xm_attr *,
                      xm_value *const *in, uint32_t, const char **why) {
        *why = "no norms here";
        return op != XM_OP_ATTENTION || xm_is_none(in[XM_ATTENTION_Q_GAMMA]);
    };
    Graph g = parse(attention(normed_and_rotated));
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs, &caps));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 0);
    /* q's norm; those of k and v were fused */
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 1);
}

TEST(FuseAttentionInputs, LeavesWhatOthersRead)
{
    Graph g = parse(attention(normed_and_rotated) + "result %20 name=\"also\"\n");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs)); /* fuses v's norm */
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 2);
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 2);
}

TEST(FuseAttentionInputs, LeavesANormThatOthersRead)
{
    expect_leaves(xm_pass_fuse_attention_inputs,
                  attention("%20 = rms_norm %0, %5 epsilon=0.001\n%21 = sin %1\n"
                            "%22 = sin %2") +
                      "result %20 name=\"also\"\n");
}

TEST(FuseAttentionInputs, LeavesANormOfAnotherEpsilon)
{
    Graph g = parse(
        attention(replaced(normed_and_rotated, "%7 epsilon=0.001", "%7 epsilon=0.1")));
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_attention_inputs));
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 1);
}

/* ---- products ---- */

const std::string products = R"(
%0 = parameter f32[batch,tokens,8] name="x"
%1 = parameter f32[batch,tokens,16] name="r"
%2 = weight f32[16,8] u4 group=4 scale=f16 zp=u4 @2
%3 = weight f32[16,8] u4 group=4 scale=f16 zp=u4 @3
%4 = weight f32[24,8] u4 group=4 scale=f16 zp=u4 @4
%5 = weight f32[24,8] f32 @5
%6 = const f32[1,1,16] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
%7 = const f32[16] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)";

TEST(FuseLinearBias, TakesARow)
{
    for (const char *sum : {"%9 = add %8, %6", "%9 = add %6, %8"})
        expect_rewrites(xm_pass_fuse_linear_bias,
                        products + "%8 = matmul %0, %2 transpose_b=true\n" + sum +
                            "\nresult %9 name=\"y\"",
                        products + "%9 = linear %0, _, %2, %7\nresult %9 name=\"y\"");
}

TEST(FuseLinearBias, LeavesOtherSums)
{
    const std::string product = products + "%8 = matmul %0, %2 transpose_b=true\n";
    for (const char *sum : {"%9 = add %8, %1\n", /* not constant */
                            "%10 = const f32[] {1}\n%9 = add %8, %10\n", /* not a row */
                            "%9 = add %8, %6\nresult %8 name=\"z\"\n"}) /* another user */
        expect_leaves(xm_pass_fuse_linear_bias, product + sum + "result %9 name=\"y\"");
}

/* The constant has as many elements as a row, or rows as long as one, but differs from token to
 * token. */
TEST(FuseLinearBias, LeavesWhatDiffersFromRowToRow)
{
    for (const char *constant : {"f32[2,1] {1, 2}", "f32[2,2] {1, 2, 3, 4}"})
        expect_leaves(xm_pass_fuse_linear_bias, std::string(R"(
%0 = parameter f32[2,8] name="x"
%1 = weight f32[2,8] f32 @1
%2 = matmul %0, %1 transpose_b=true
%3 = const )") + constant + R"(
%4 = add %2, %3
result %4 name="y")");
}

TEST(FuseResidualAdd, JoinsTheProduct)
{
    for (const char *sum : {"%9 = add %8, %1", "%9 = add %1, %8"})
        expect_rewrites(xm_pass_fuse_residual_add,
                        products + "%8 = matmul %0, %2 transpose_b=true\n" + sum +
                            "\nresult %9 name=\"y\"",
                        products + "%9 = linear %0, %1, %2, _\nresult %9 name=\"y\"");
    expect_rewrites(
        xm_pass_fuse_residual_add,
        products + "%8 = linear %0, _, %2, %7\n%9 = add %1, %8\nresult %9 name=\"y\"",
        products + "%9 = linear %0, %1, %2, %7\nresult %9 name=\"y\"");
}

TEST(FuseResidualAdd, PassesReshapes)
{
    expect_rewrites(xm_pass_fuse_residual_add, products + R"(
%10 = shape_value i64[2] {batch*tokens, 8}
%11 = reshape %0, %10
%12 = matmul %11, %2 transpose_b=true
%13 = shape_value i64[3] {batch, tokens, 16}
%14 = reshape %12, %13
%15 = add %1, %14
result %15 name="y")",
                    products + R"(
%10 = shape_value i64[2] {batch*tokens, 8}
%11 = reshape %0, %10
%20 = shape_value i64[2] {batch*tokens, 16}
%21 = reshape %1, %20
%22 = linear %11, %21, %2, _
%23 = shape_value i64[3] {batch, tokens, 16}
%24 = reshape %22, %23
result %24 name="y")");
}

TEST(FuseResidualAdd, LeavesOtherSums)
{
    const std::string product = products + "%8 = matmul %0, %2 transpose_b=true\n";
    for (const char *sum :
         /* one row for all */
         {"%9 = add %8, %6\n",
          /* repeats over the batch */
          "%10 = parameter f32[1,tokens,16] name=\"s\"\n%9 = add %8, %10\n",
          "%9 = add %8, %1\nresult %8 name=\"z\"\n"}) /* another user */
        expect_leaves(xm_pass_fuse_residual_add, product + sum + "result %9 name=\"y\"");
    expect_leaves(xm_pass_fuse_residual_add, R"(
%0 = parameter f32[2,8] name="x"
%1 = weight f32[2,8] f32 @1
%2 = const f32[2,2] {1, 2, 3, 4}
%3 = matmul %0, %1 transpose_b=true
%4 = add %2, %3
result %4 name="y")");
    expect_leaves(xm_pass_fuse_residual_add,
                  products + "%8, %9 = linear %0, _, %2, _, %3, _\n"
                             "%11 = add %1, %8\nresult %11 name=\"y\"");
}

/* A device that runs only 4-bit weights. */
bool
only_quantised(const void *, enum xm_op, const union xm_attr *,
               struct xm_value *const *in, uint32_t n_in, const char **why_not)
{
    for (uint32_t i = XM_LINEAR_W; i < n_in; i += XM_LINEAR_SEGMENT) {
        if (in[i]->node->attr.weight.element != XM_U4) {
            *why_not = "not 4 bit";
            return false;
        }
    }
    return true;
}

TEST(FuseLinearGLU, JoinsGateAndUp)
{
    expect_rewrites(xm_pass_fuse_linear_glu, products + R"(
%10 = matmul %0, %2 transpose_b=true
%11 = linear %0, _, %3, %7
%12 = glu %10, %11 activation=gelu_tanh
result %12 name="y")",
                    products + R"(
%12 = linear %0, _, %2, _, %3, %7 glu=true activation=gelu_tanh
result %12 name="y")");
}

TEST(FuseLinearGLU, TakesAFactor)
{
    expect_rewrites(
        xm_pass_fuse_linear_glu,
        products + "%8 = linear %0, _, %2, %7\n%9 = glu %8, %1\nresult %9 name=\"y\"",
        products + "%9 = linear %0, %1, %2, %7 glu=true\nresult %9 name=\"y\"");
}

const std::string sliced = products + R"(
%20 = parameter f32[batch,tokens,3,16] name="e"
%21 = const i64[] {2}
%22 = const i64[] {-2}
%23 = const i64[] {1}
%8 = matmul %0, %2 transpose_b=true
)";

TEST(FuseLinearGLU, ReadsASliceInPlace)
{
    for (const char *axis : {"%21", "%22"})
        expect_rewrites(xm_pass_fuse_linear_glu,
                        sliced + "%9 = gather %20, %21, " + axis +
                            "\n%10 = glu %8, %9\nresult %10 name=\"y\"",
                        sliced + "%10 = linear %0, %20, %2, _ glu=true slice=2\n"
                                 "result %10 name=\"y\"");
    expect_rewrites(xm_pass_fuse_linear_glu,
                    sliced + "%9 = gather %20, %22, %21\n%10 = glu %8, %9\n"
                             "result %10 name=\"y\"",
                    sliced + "%10 = linear %0, %20, %2, _ glu=true slice=1\n"
                             "result %10 name=\"y\"");
}

TEST(FuseLinearGLU, TakesOtherGathersAsTheyAre)
{
    /* Gathers along the axis before the tokens, and with an index that is known only in a run. */
    expect_rewrites(xm_pass_fuse_linear_glu, products + R"(
%20 = parameter f32[batch,5,tokens,16] name="e"
%21 = const i64[] {2}
%22 = const i64[] {1}
%8 = matmul %0, %2 transpose_b=true
%9 = gather %20, %21, %22
%10 = glu %8, %9
result %10 name="y")",
                    products + R"(
%20 = parameter f32[batch,5,tokens,16] name="e"
%21 = const i64[] {2}
%22 = const i64[] {1}
%9 = gather %20, %21, %22
%10 = linear %0, %9, %2, _ glu=true
result %10 name="y")");
    expect_rewrites(xm_pass_fuse_linear_glu,
                    sliced + "%24 = parameter i64[] name=\"i\"\n"
                             "%9 = gather %20, %24, %21\n%10 = glu %8, %9\n"
                             "result %10 name=\"y\"",
                    sliced + "%24 = parameter i64[] name=\"i\"\n"
                             "%9 = gather %20, %24, %21\n"
                             "%10 = linear %0, %9, %2, _ glu=true\n"
                             "result %10 name=\"y\"");
}

TEST(FuseLinearGLU, ProductsThatCannotBeJoinedMultiplyOneAfterTheOther)
{
    xm_caps caps = {};
    caps.can_run = only_quantised;
    Graph g = parse(products + R"(
%8 = weight f32[16,8] f32 @8
%10 = matmul %0, %2 transpose_b=true
%11 = matmul %0, %8 transpose_b=true
%12 = glu %10, %11
result %12 name="y")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_linear_glu, &caps));
    const xm_node *n = first(g.get(), XM_OP_LINEAR);
    ASSERT_NE(n, nullptr);
    EXPECT_EQ(n->in[XM_LINEAR_FACTOR].value->node->op, XM_OP_MATMUL);
    EXPECT_EQ(count(g.get(), XM_OP_GLU), 0);
}

TEST(FuseLinearGLU, LeavesGatesThatAreNoProductOrOfUseElsewhere)
{
    expect_leaves(xm_pass_fuse_linear_glu,
                  products + "%8 = sin %1\n%9 = matmul %0, %2 transpose_b=true\n"
                             "%10 = glu %8, %9\nresult %10 name=\"y\"");
    expect_leaves(xm_pass_fuse_linear_glu,
                  products + "%8 = matmul %0, %2 transpose_b=true\n%9 = glu %8, %1\n"
                             "result %8 name=\"a\"\nresult %9 name=\"b\"");
    expect_leaves(xm_pass_fuse_linear_glu,
                  products + "%8 = linear %0, %1, %2, _\n%9 = glu %8, %1\n"
                             "result %9 name=\"y\"");
    expect_leaves(xm_pass_fuse_linear_glu,
                  products + "%8 = matmul %0, %2 transpose_b=true\n"
                             "%10 = parameter f32[1,tokens,16] name=\"s\"\n"
                             "%9 = glu %8, %10\nresult %9 name=\"y\"");
}

TEST(FuseLinearGLU, AUnitIsNoProductOfTheOtherPasses)
{
    const std::string unit = products + "%9 = linear %0, _, %2, _, %3, _ glu=true\n";
    expect_leaves(xm_pass_fuse_residual_add,
                  unit + "%10 = add %9, %1\nresult %10 name=\"y\"");
    expect_leaves(xm_pass_fuse_linear_siblings,
                  unit + "%10 = matmul %0, %4 transpose_b=true\nresult %9 name=\"y\"\n"
                         "result %10 name=\"z\"");
}

TEST(FuseLinearSiblings, JoinsUpToThree)
{
    expect_rewrites(xm_pass_fuse_linear_siblings, products + R"(
%12 = weight f32[40,8] u4 group=4 scale=f16 zp=u4 @12
%10 = matmul %0, %2 transpose_b=true
%11 = sin %10
%13 = linear %0, _, %3, %7
%14 = matmul %0, %4 transpose_b=true
%15 = matmul %0, %12 transpose_b=true
result %11 name="a"
result %13 name="b"
result %14 name="c"
result %15 name="d")",
                    products + R"(
%12 = weight f32[40,8] u4 group=4 scale=f16 zp=u4 @12
%20, %21, %22 = linear %0, _, %2, _, %3, %7, %4, _
%11 = sin %20
%15 = matmul %0, %12 transpose_b=true
result %11 name="a"
result %21 name="b"
result %22 name="c"
result %15 name="d")");
}

TEST(FuseLinearSiblings, WeightsMayStandBehindTheFirstProduct)
{
    Graph g = parse(products + R"(
%10 = matmul %0, %2 transpose_b=true
%11 = sin %10
%12 = weight f32[40,8] u4 group=4 scale=f16 zp=u4 @12
%13 = matmul %0, %12 transpose_b=true
result %11 name="a"
result %13 name="b")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_linear_siblings));
    EXPECT_EQ(count(g.get(), XM_OP_MATMUL), 0);
}

TEST(FuseLinearSiblings, AsksTheMachine)
{
    xm_caps caps = {};
    caps.can_run = only_quantised;
    Graph g = parse(products + R"(
%10 = matmul %0, %2 transpose_b=true
%11 = matmul %0, %5 transpose_b=true
%12 = matmul %0, %4 transpose_b=true
result %10 name="a"
result %11 name="b"
result %12 name="c")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_linear_siblings, &caps));
    const xm_node *n = first(g.get(), XM_OP_LINEAR);
    ASSERT_NE(n, nullptr);
    EXPECT_EQ(n->n_out, 2u);
    EXPECT_EQ(count(g.get(), XM_OP_MATMUL), 1);
}

TEST(FuseLinearSiblings, LeavesLonelyProductsAndThoseWithAnAddend)
{
    expect_leaves(xm_pass_fuse_linear_siblings,
                  products + "%10 = matmul %0, %2 transpose_b=true\n%11 = sin %0\n"
                             "result %10 name=\"a\"\nresult %11 name=\"b\"");
    expect_leaves(xm_pass_fuse_linear_siblings,
                  products + "%10 = matmul %0, %2 transpose_b=true\n"
                             "%11 = linear %0, %1, %3, _\n"
                             "result %10 name=\"a\"\nresult %11 name=\"b\"");
}

/* ---- the experts ---- */

TEST(FuseResidualAdd, JoinsTheExperts)
{
    const std::string experts = R"(
%0 = parameter f32[T,8] name="x"
%1 = parameter f32[T,4] name="logits"
%2 = parameter f32[T,8] name="r"
%3 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @3
%4 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @4
%5 = weight f32[4,8,4] u4 group=4 scale=f16 zp=u4 @5
)";
    const std::string sizes = "hidden_size=8 inter_size=4 num_expert=4 top_k=2\n";
    expect_rewrites(xm_pass_fuse_residual_add,
                    experts +
                        "%6 = moe_3gemm_fused_compressed %0, %1, _, _, _, %3, %4, "
                        "%5, _, _, _, _, _, _ " +
                        sizes + "%7 = add %2, %6\nresult %7 name=\"y\"",
                    experts +
                        "%7 = moe_3gemm_fused_compressed %0, %1, _, _, _, %3, %4, "
                        "%5, _, _, _, _, _, _, %2 " +
                        sizes + "result %7 name=\"y\"");
}

} // namespace
