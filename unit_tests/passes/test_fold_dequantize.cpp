/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_dequantize: every way to write a dequantization becomes one weight with the same values.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{
/* Returns x [T,K] times a weight, which the lines `chain` compute as %9. */
std::string
matmul_by(const std::string &chain, const std::string &k = "8")
{
    return "%0 = parameter f32[T," + k + "] name=\"x\"\n" + chain +
           "\n%10 = matmul %0, %9 transpose_b=true\nresult %10 name=\"r\"\n";
}

/* Runs the pass and returns the only weight. Besides it the graph must have only the matmul, the
 * parameter and the result. */
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

/* Kernels read weights by rows [N,K]. Exporters that do not transpose write [K,N], which the pass
 * transposes. */
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
    /* one scale for each column */
    expect_leaves(xm_pass_fold_dequantize, matmul_by(R"(
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[1,8] @6
        %9 = multiply %2, %6)"));
    /* zero points of other groups than the scales */
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
    /* integers without scales */
    expect_leaves(xm_pass_fold_dequantize,
                  matmul_by("%1 = const i8[4,8] @1\n%9 = convert %1 to=f32"));
    /* three scales in a row */
    expect_leaves(xm_pass_fold_dequantize, matmul_by(R"(
        %1 = const i8[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[4,1] {1, 2, 3, 4}
        %7 = multiply %2, %6
        %8 = multiply %7, %6
        %9 = multiply %8, %6)"));
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

/* ---- floats below 16 bits, codebooks, second scales ------------------------------------ */

TEST(FoldDequantize, SmallFloatsWithExponentsAsScales)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const f4e2m1[4,2,32] @1
        %2 = convert %1 to=f16
        %3 = const f8e8m0[4,2,1] @3
        %4 = convert %3 to=f16
        %7 = multiply %2, %4
        %8 = const i64[2] {4, 64}
        %11 = reshape %7, %8
        %9 = convert %11 to=f32)",
                                                  "64"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_F4E2M1);
    EXPECT_EQ(w->group, 32u);
    EXPECT_EQ(w->scale_element, XM_F8E8M0);
    EXPECT_EQ(w->scale.n, 8u); /* read in place, not copied */
}

TEST(FoldDequantize, SmallFloatsPerRowWithTheConvertBehind)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const f8e5m2[4,8] @1
        %2 = convert %1 to=f32
        %6 = const f32[4,1] @6
        %9 = multiply %6, %2)"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_F8E5M2);
    EXPECT_EQ(w->group, 8u);
    EXPECT_EQ(w->scale_element, XM_F32);
}

TEST(FoldDequantize, SmallFloatsWithoutScales)
{
    Graph g = none();
    const struct xm_weight *w = fold(g, matmul_by(R"(
        %1 = const f8e4m3[4,8] @1
        %9 = convert %1 to=f32)"));
    ASSERT_TRUE(w);
    EXPECT_EQ(w->element, XM_F8E4M3);
    EXPECT_EQ(w->group, 0u);
}

TEST(FoldDequantize, ScalesThatNoKernelReadsAreCopiedAsFloats)
{
    for (const char *type : {"nf4", "f64", "f4e2m1"}) {
        Graph g = none();
        const struct xm_weight *w = fold(g, matmul_by(std::string(R"(
        %1 = const nf4[4,8] @1
        %2 = convert %1 to=f32
        %3 = const )") + type + R"([4,1] @3
        %4 = convert %3 to=f32
        %9 = multiply %2, %4)"));
        ASSERT_TRUE(w);
        EXPECT_EQ(w->scale_element, XM_F32);
        EXPECT_EQ(w->scale.n, 16u);
    }
}

TEST(FoldDequantize, IndicesOfACodebook)
{
    for (const char *type : {"u4", "i4"}) {
        Graph g = none();
        const struct xm_weight *w = fold(g, matmul_by(std::string(R"(
        %1 = const f8e4m3[16] @1
        %2 = convert %1 to=f16
        %3 = const )") + type + R"([4,2,16] @3
        %4 = convert %3 to=i32
        %5 = const i64[] {0}
        %6 = gather %2, %4, %5
        %7 = const f16[4,2,1] @7
        %11 = multiply %6, %7
        %8 = const i64[2] {4, 32}
        %12 = reshape %11, %8
        %9 = convert %12 to=f32)",
                                                      "32"));
        ASSERT_TRUE(w);
        EXPECT_EQ(w->element, XM_U4);
        ASSERT_TRUE(w->codebook.p);
        EXPECT_EQ(w->group, 16u);
        std::vector<float> row(32);
        xm_weight_row(w, 0, 3, row.data());
        const uint64_t index = (uint64_t)xm_load_int(XM_U4, w->data.p, 3 * 32 + 17);
        EXPECT_EQ(row[17], xm_load_float(XM_F32, w->codebook.p, index) *
                               xm_weight_scale_at(w, 0, 3, 1));
    }
}

/* Elements beyond the end of a short table are zero. */
TEST(FoldDequantize, ACodebookMayBeShort)
{
    Graph g = parse(matmul_by(R"(
        %1 = const f32[3] {0.5, 1, -2}
        %3 = const u4[4,8] @3
        %4 = convert %3 to=i64
        %5 = const i64[] {0}
        %9 = gather %1, %4, %5)"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(xm_pass_fold_dequantize(g.get(), nullptr));
    const xm_node *n = first(g.get(), XM_OP_WEIGHT);
    ASSERT_TRUE(n);
    const struct xm_weight *w = &n->attr.weight;
    EXPECT_EQ(xm_load_float(XM_F32, w->codebook.p, 2), -2.0f);
    EXPECT_EQ(xm_load_float(XM_F32, w->codebook.p, 3), 0.0f);
}

TEST(FoldDequantize, OtherGathersAreNoCodebooks)
{
    const char *const others[] = {R"(
        %1 = const f32[17] @1
        %3 = const u4[4,8] @3
        %4 = convert %3 to=i64
        %5 = const i64[] {0}
        %9 = gather %1, %4, %5)",
                                  R"(
        %1 = const f32[15] @1
        %3 = const i4[4,8] @3
        %4 = convert %3 to=i64
        %5 = const i64[] {0}
        %9 = gather %1, %4, %5)",
                                  R"(
        %1 = const f32[16] @1
        %3 = const u8[4,8] @3
        %4 = convert %3 to=i64
        %5 = const i64[] {0}
        %9 = gather %1, %4, %5)"};
    for (const char *other : others) {
        Graph g = parse(matmul_by(other));
        ASSERT_TRUE(g);
        EXPECT_FALSE(xm_pass_fold_dequantize(g.get(), nullptr)) << print(g.get());
    }
}

namespace
{
/* Fails unless the weight has the values that the graph computes for %9. */
void
expect_same_rows(const struct xm_weight *w, const std::string &chain)
{
    Graph g = parse(chain + "\nresult %9 name=\"w\"\n");
    ASSERT_TRUE(g);
    const xm_node *result = nullptr;
    xm_for_each_node(n, g.get())
    {
        if (n->op == XM_OP_RESULT)
            result = n;
    }
    ASSERT_TRUE(result);
    xm_eval e = {};
    e.graph = g.get();
    xm_tensor *t = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_evaluate_value(&e, xm_in(result, 0), &t, &err), XM_OK) << err.text;
    std::vector<float> row(w->cols);
    for (uint64_t r = 0; r < w->experts * w->rows; r++) {
        xm_weight_row(w, r / w->rows, r % w->rows, row.data());
        for (uint64_t i = 0; i < w->cols; i++) {
            const float want = t->f[r * w->cols + i];
            EXPECT_NEAR(row[i], want, 1e-6f * std::fabs(want)) << r << " " << i;
        }
    }
    xm_tensor_destroy(t);
}
} // namespace

/* NVFP4 in an IR: scales for 16 columns each and one for the tensor, multiplied in either order. */
TEST(FoldDequantize, ASecondScaleIsAFactor)
{
    const char *const chains[] = {R"(
        %1 = const f4e2m1[4,2,16] @1
        %2 = convert %1 to=f32
        %3 = const f8e4m3[4,2,1] @3
        %4 = convert %3 to=f32
        %5 = multiply %2, %4
        %6 = const f32[] {0.375}
        %7 = multiply %5, %6
        %8 = const i64[2] {4, 32}
        %9 = reshape %7, %8)",
                                  R"(
        %1 = const f4e2m1[4,2,16] @1
        %2 = convert %1 to=f32
        %3 = const f8e4m3[4,2,1] @3
        %4 = convert %3 to=f32
        %6 = const f32[1] {0.375}
        %5 = multiply %6, %4
        %7 = multiply %2, %5
        %8 = const i64[2] {4, 32}
        %9 = reshape %7, %8)",
                                  R"(
        %1 = const f4e2m1[4,2,16] @1
        %2 = convert %1 to=f32
        %3 = const f8e4m3[4,2,1] @3
        %4 = convert %3 to=f32
        %5 = multiply %2, %4
        %8 = const i64[2] {4, 32}
        %7 = reshape %5, %8
        %6 = const f32[1,1] {0.375}
        %9 = multiply %7, %6)"};
    for (const char *chain : chains) {
        Graph g = none();
        const struct xm_weight *w = fold(g, matmul_by(chain, "32"));
        ASSERT_TRUE(w);
        EXPECT_EQ(w->group, 16u);
        EXPECT_EQ(w->scale_element, XM_F8E4M3);
        EXPECT_EQ(w->scale.n, 8u);
        ASSERT_EQ(w->factor.n, sizeof(float));
        EXPECT_EQ(xm_weight_factor_at(w, 0), 0.375f);
        expect_same_rows(w, chain);
    }
}

TEST(FoldDequantize, ASecondScaleOfEachExpertIsItsFactor)
{
    const std::string chain = R"(
        %1 = const f4e2m1[2,4,2,16] @1
        %2 = convert %1 to=f32
        %3 = const f8e4m3[2,4,2,1] @3
        %4 = convert %3 to=f32
        %5 = multiply %2, %4
        %6 = const f32[2,1,1,1] {0.375, 3}
        %7 = multiply %5, %6
        %8 = const i64[3] {2, 4, 32}
        %9 = reshape %7, %8)";
    Graph g = parse("%0 = parameter f32[2,T,32] name=\"x\"\n" + chain +
                    "\n%10 = matmul %0, %9 transpose_b=true\nresult %10 name=\"r\"\n");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fold_dequantize));
    const xm_node *n = first(g.get(), XM_OP_WEIGHT);
    ASSERT_TRUE(n);
    EXPECT_EQ(xm_weight_factor_at(&n->attr.weight, 0), 0.375f);
    EXPECT_EQ(xm_weight_factor_at(&n->attr.weight, 1), 3.0f);
    expect_same_rows(&n->attr.weight, chain);
}

/* Second scales that a weight has no place for: one for each row beside scales of groups, and one
 * of integers, which have zero points instead of factors. They are multiplied into the scales. */
TEST(FoldDequantize, OtherSecondScalesAreMultipliedIntoACopy)
{
    const char *const chains[] = {R"(
        %1 = const f4e2m1[4,2,16] @1
        %2 = convert %1 to=f32
        %3 = const f8e4m3[4,2,1] @3
        %4 = convert %3 to=f32
        %5 = multiply %2, %4
        %8 = const i64[2] {4, 32}
        %7 = reshape %5, %8
        %6 = const f32[4,1] {0.375, 1, 2, 3}
        %9 = multiply %7, %6)",
                                  R"(
        %1 = const u4[4,2,16] @1
        %2 = convert %1 to=f32
        %12 = const u4[4,2,1] @12
        %13 = convert %12 to=f32
        %11 = subtract %2, %13
        %3 = const f16[4,2,1] @3
        %4 = convert %3 to=f32
        %5 = multiply %11, %4
        %6 = const f32[] {0.375}
        %7 = multiply %5, %6
        %8 = const i64[2] {4, 32}
        %9 = reshape %7, %8)"};
    for (const char *chain : chains) {
        Graph g = none();
        const struct xm_weight *w = fold(g, matmul_by(chain, "32"));
        ASSERT_TRUE(w);
        EXPECT_EQ(w->group, 16u);
        EXPECT_EQ(w->scale_element, XM_F32);
        EXPECT_FALSE(w->factor.p);
        expect_same_rows(w, chain);
    }
}

/* As in OpenVINO: a table that is read as f16 is rounded to f16; a matrix that only products read
 * is not. */
TEST(FoldDequantize, TablesOfNf4ReadAsF16AreRounded)
{
    struct {
        const char *type;
        bool is_table, is_rounded;
    } const cases[] = {{"f16", true, true}, {"f16", false, false}, {"f32", true, false}};
    for (const auto &c : cases) {
        SCOPED_TRACE(std::string(c.type) + (c.is_table ? " table" : ""));
        const std::string type = c.type;
        Graph g = parse("%0 = parameter i64[T] name=\"ids\"\n"
                        "%14 = parameter f32[T,32] name=\"x\"\n"
                        "%1 = const nf4[8,32] @1\n"
                        "%2 = convert %1 to=" +
                        type +
                        "\n%6 = const f32[8,1] {1, 1, 1, 1, 1, 1, 1, 1}\n"
                        "%13 = convert %6 to=" +
                        type +
                        "\n%7 = multiply %2, %13\n"
                        "%9 = convert %7 to=f32\n"
                        "%8 = const i64[] {0}\n" +
                        (c.is_table ? "%10 = gather %9, %0, %8\n"
                                      "%11 = matmul %10, %9 transpose_b=true\n"
                                    : "%11 = matmul %14, %9 transpose_b=true\n") +
                        "result %11 name=\"r\"\n");
        ASSERT_TRUE(g);
        EXPECT_TRUE(xm_pass_fold_dequantize(g.get(), nullptr));
        const xm_node *n = first(g.get(), XM_OP_WEIGHT);
        ASSERT_TRUE(n);
        const struct xm_weight &w = n->attr.weight;
        std::vector<float> row(32);
        xm_weight_row(&w, 0, 3, row.data());
        for (uint64_t k = 0; k < 32; k++) {
            const float exact = xm_load_float(XM_NF4, w.data.p, 3 * 32 + k);
            EXPECT_EQ(row[k],
                      c.is_rounded ? xm_half_to_float(xm_float_to_half(exact)) : exact);
        }
    }
}
