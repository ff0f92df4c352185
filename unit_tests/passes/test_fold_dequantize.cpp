/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_dequantize: every spelling of a dequantisation becomes one weight with the same
 * values.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{
/* x [T,K] times a weight spelled by `chain`, whose last value is %9. */
std::string
matmul_by(const std::string &chain, const std::string &k = "8")
{
    return "%0 = parameter f32[T," + k + "] name=\"x\"\n" + chain +
           "\n%10 = matmul %0, %9 transpose_b=true\nresult %10 name=\"r\"\n";
}

/* The only weight after the pass; nothing but it and the matmul is left. */
const struct xm_weight *
fold(Graph &g, const std::string &text)
{
    g = parse(text);
    if (!g)
        return nullptr;
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize)) << print(g.get());
    xm_node *n = first(g.get(), XM_OP_WEIGHT);
    EXPECT_TRUE(n) << print(g.get());
    EXPECT_EQ(g->n_nodes, 4u) << print(g.get());
    return n ? &n->attr.weight : nullptr;
}

Graph
none()
{
    return Graph(nullptr, xm_graph_destroy);
}
} // namespace

TEST(FoldDequantize, GroupedWithZeroPoint)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const u4[4,2,16] @1
        %2 = convert %1 to=f16
        %3 = const u4[4,2,1] @3
        %4 = convert %3 to=f16
        %5 = subtract %2, %4
        %6 = const f16[4,2,1] @6
        %7 = multiply %5, %6
        %8 = const i64[2] {4, 32}
        %11 = reshape %7, %8
        %9 = convert %11 to=f32)",
                                                  "32"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_U4);
    EXPECT_EQ(w->group, 16u);
    EXPECT_EQ(w->rows, 4u);
    EXPECT_EQ(w->cols, 32u);
    EXPECT_EQ(w->zero_point_element, XM_U4);
    EXPECT_FALSE(w->zero_point_is_scalar);
    EXPECT_EQ(w->scale_element, XM_F16);
}

TEST(FoldDequantize, SymmetricWithoutReshapePerRow)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f16
        %6 = const f16[4,1] @6
        %7 = multiply %6, %2
        %9 = convert %7 to=f32)"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_I8);
    EXPECT_EQ(w->group, 8u);
    EXPECT_FALSE(w->zero_point.p);
}

TEST(FoldDequantize, NoTrailingConvertAndConvertedScale)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const u8[4,8] @1
        %2 = convert %1 to=f32
        %3 = const u8[4,1] @3
        %4 = convert %3 to=f32
        %5 = subtract %2, %4
        %6 = const f16[4,1] @6
        %8 = convert %6 to=f32
        %9 = multiply %5, %8)"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->zero_point_element, XM_U8);
    EXPECT_EQ(w->scale_element, XM_F16);
}

TEST(FoldDequantize, ZeroPointWithoutConvertOfItsOwn)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const u8[4,8] @1
        %2 = convert %1 to=f16
        %3 = const f16[4,1] {3, 4, 5, 6}
        %5 = subtract %2, %3
        %6 = const f16[4,1] {1, 2, 3, 4}
        %7 = multiply %5, %6
        %9 = convert %7 to=f32)"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->zero_point_element, XM_F16);
}

TEST(FoldDequantize, ScalarZeroPointAndScalarScale)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const u8[4,8] @1
        %2 = convert %1 to=f32
        %3 = const u8[] {128}
        %4 = convert %3 to=f32
        %5 = subtract %2, %4
        %6 = const f32[1,1] {0.25}
        %9 = multiply %5, %6)"));
    ASSERT_TRUE(w);
    EXPECT_TRUE(w->zero_point_is_scalar);
    EXPECT_EQ(w->group, 8u);
}

TEST(FoldDequantize, FourDimensionsToThreeForExperts)
{
    Graph g = parse(R"(
        %0 = parameter f32[2,T,32] name="x"
        %1 = const u4[2,4,2,16] @1
        %2 = convert %1 to=f16
        %6 = const f16[2,4,2,1] @6
        %7 = multiply %2, %6
        %8 = const i64[3] {2, 4, 32}
        %9 = reshape %7, %8
        %11 = convert %9 to=f32
        %10 = matmul %0, %11 transpose_b=true
        result %10 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    const xm_node *n = first(g.get(), XM_OP_WEIGHT);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.weight.experts, 2u);
    EXPECT_EQ(n->attr.weight.group, 16u);
}

TEST(FoldDequantize, FoldsASharedChainOnce)
{
    Graph g = parse(R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[4,1] @6
        %7 = multiply %2, %6
        %8 = matmul %0, %7 transpose_b=true
        %9 = exp %0
        %10 = matmul %9, %7 transpose_b=true
        result %8 name="r"
        result %10 name="s")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    EXPECT_EQ(count(g.get(), XM_OP_WEIGHT), 1) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_CONST), 0);
}

TEST(FoldDequantize, EmbeddingOfAGather)
{
    Graph g = parse(R"(
        %0 = parameter i64[batch,tokens] name="ids"
        %1 = const u8[6,8] @1
        %2 = convert %1 to=f16
        %6 = const f16[6,1] @6
        %7 = multiply %2, %6
        %8 = convert %7 to=f32
        %9 = const i64[] {0}
        %10 = gather %8, %0, %9
        result %10 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    EXPECT_EQ(xm_in(first(g.get(), XM_OP_GATHER), 0)->node->op, XM_OP_WEIGHT);
}

TEST(FoldDequantize, PlainConstantsOfMatmuls)
{
    Graph g = none();
    const struct xm_weight *w =
        fold(g, matmul_by("%1 = const f16[4,8] @1\n%9 = convert %1 to=f32"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_F16);
    EXPECT_EQ(w->group, 0u);
    w = fold(g, matmul_by("%9 = const f32[4,8] @1"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_F32);
}

TEST(FoldDequantize, TurnsAMatmulByATransposedWeight)
{
    Graph g = parse(R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[4,1] @6
        %7 = multiply %2, %6
        %8 = const i64[2] {1, 0}
        %9 = transpose %7, %8
        %10 = matmul %0, %9
        result %10 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    EXPECT_TRUE(first(g.get(), XM_OP_MATMUL)->attr.matmul.transpose_b);
    EXPECT_EQ(count(g.get(), XM_OP_TRANSPOSE), 0);
    EXPECT_EQ(count(g.get(), XM_OP_WEIGHT), 1);
}

TEST(FoldDequantize, LeavesSmallVectorsForFoldConstants)
{
    const char *text = R"(
        %0 = parameter i64[T,2] name="ids"
        %1 = const u8[4] {1, 2, 3, 4}
        %2 = convert %1 to=f16
        %3 = const u8[4] {1, 1, 1, 1}
        %4 = convert %3 to=f16
        %5 = subtract %2, %4
        %6 = const f16[4] {1, 2, 3, 4}
        %7 = multiply %5, %6
        %8 = convert %7 to=f32
        %9 = const i64[] {0}
        %10 = gather %8, %0, %9
        result %10 name="r")";
    expect_leaves(xm_pass_fold_dequantize, text);
    expect_rewrites(xm_pass_fold_constants, text, R"(
        %0 = parameter i64[T,2] name="ids"
        %8 = const f32[4] {0, 2, 6, 12}
        %9 = const i64[] {0}
        %10 = gather %8, %0, %9
        result %10 name="r")");
}

TEST(FoldDequantize, WidensLargeBiasesButNoMatrix)
{
    Graph g = parse(R"(
        %0 = parameter f32[4,T,8192] name="x"
        %1 = const f16[4,1,8192] @1
        %2 = convert %1 to=f32
        %3 = add %0, %2
        result %3 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    EXPECT_EQ(count(g.get(), XM_OP_CONVERT), 0);
    EXPECT_EQ(first(g.get(), XM_OP_CONST)->out[0].type.element, XM_F32);
}

/* Kernels read rows of weights: exporters that multiply by columns write [K,N]. */
TEST(FoldDequantize, TurnsAPlainConstantThatIsNotTransposed)
{
    for (const char *constant : {"%2 = const f32[40,33] @1", "%2 = const f16[40,33] @1",
                                 "%1 = const f16[40,33] @1\n%2 = convert %1 to=f32",
                                 "%1 = const bf16[40,33] @1\n%2 = convert %1 to=f32"}) {
        const std::string type =
            std::string(constant).find("%2 = const f16") == 0 ? "f16" : "f32";
        Graph g = parse("%0 = parameter " + type + "[T,40] name=\"x\"\n" + constant +
                        "\n%3 = matmul %0, %2\nresult %3 name=\"r\"\n");
        ASSERT_TRUE(g) << constant;
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize)) << constant;
        EXPECT_TRUE(first(g.get(), XM_OP_MATMUL)->attr.matmul.transpose_b);
        ASSERT_EQ(count(g.get(), XM_OP_WEIGHT), 1) << constant;
        const struct xm_weight &w = first(g.get(), XM_OP_WEIGHT)->attr.weight;
        EXPECT_EQ(w.rows, 33u);
        EXPECT_EQ(w.cols, 40u);
        EXPECT_EQ(count(g.get(), XM_OP_CONST), 0) << constant;
    }
}

TEST(FoldDequantize, LeavesAConstantToItsOtherUsersAndProductsOfAnotherKind)
{
    Graph g = parse(R"(
        %0 = parameter f32[8,8] name="x"
        %1 = const f32[8,8] @1
        %2 = matmul %0, %1
        %3 = add %2, %1
        result %3 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    EXPECT_EQ(count(g.get(), XM_OP_CONST), 1);
    EXPECT_EQ(count(g.get(), XM_OP_WEIGHT), 1);
    expect_leaves(xm_pass_fold_dequantize, R"(
        %0 = parameter f32[8,T] name="x"
        %1 = const f32[8,4] @1
        %2 = matmul %0, %1 transpose_a=true
        result %2 name="r")");
    expect_leaves(xm_pass_fold_dequantize, R"(
        %0 = parameter f32[2,T,8] name="x"
        %1 = const f32[2,8,4] @1
        %2 = matmul %0, %1
        result %2 name="r")");
}

TEST(FoldDequantize, LeavesWhatAWeightCannotSay)
{
    /* a scale for each column */
    expect_leaves(xm_pass_fold_dequantize, matmul_by(R"(
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[1,8] @6
        %9 = multiply %2, %6)"));
    /* zero points in other groups than the scales */
    expect_leaves(xm_pass_fold_dequantize, matmul_by(R"(
        %1 = const u8[4,2,4] @1
        %2 = convert %1 to=f32
        %3 = const u8[4,1,1] {1, 2, 3, 4}
        %4 = convert %3 to=f32
        %5 = subtract %2, %4
        %6 = const f32[4,2,1] {1, 2, 3, 4, 5, 6, 7, 8}
        %7 = multiply %5, %6
        %8 = const i64[2] {4, 8}
        %9 = reshape %7, %8)"));
    /* integers without a scale */
    expect_leaves(xm_pass_fold_dequantize,
                  matmul_by("%1 = const i8[4,8] @1\n%9 = convert %1 to=f32"));
    /* scaled twice */
    expect_leaves(xm_pass_fold_dequantize, matmul_by(R"(
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[4,1] {1, 2, 3, 4}
        %7 = multiply %2, %6
        %9 = multiply %7, %6)"));
}

TEST(FoldDequantize, LargeLeftoversAreRefused)
{
    Graph g = parse(R"(
        %0 = parameter f32[T,2048] name="x"
        %1 = const i8[1024,2048] @1
        %2 = convert %1 to=f32
        %6 = const f32[1,2048] @6
        %9 = multiply %2, %6 # "odd"
        %10 = matmul %0, %9 transpose_b=true
        result %10 name="r")");
    ASSERT_TRUE(g);
    std::string why = run_pipeline(g.get(), nullptr, nullptr);
    EXPECT_NE(why.find("after fold_dequantize"), std::string::npos) << why;
}
