/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes before the fusions: shapes, constants, ops without effect, normal forms.
 */
#include "unit_tests/passes/pass_test.h"

/* ---- fold_shape_values ------------------------------------------------------------- */

TEST(FoldShapeValues, ReplacesAShapeChainByItsResult)
{
    expect_rewrites(xm_pass_fold_shape_values, R"(
        %0 = parameter f32[batch,tokens,8] name="x"
        %1 = shape_of %0
        %2 = const i64[1] {1}
        %3 = const i64[] {0}
        %4 = gather %1, %2, %3
        %5 = const i64[2] {8, 1}
        %7 = parameter f32[batch,8*tokens] name="y"
        %8 = const i64[] {0}
        %9 = gather %1, %8, %3
        %10 = const i64[1] {1}
        %13 = reshape %9, %10
        %11 = concat %13, %4, %5 axis=0
        %12 = reshape %7, %11
        result %12 name="r")",
                    R"(
        %0 = parameter f32[batch,tokens,8] name="x"
        %7 = parameter f32[batch,8*tokens] name="y"
        %11 = shape_value i64[4] {batch, tokens, 8, 1}
        %12 = reshape %7, %11
        result %12 name="r")");
}

TEST(FoldShapeValues, DropsAConstantThatOnlyAShapeReads)
{
    expect_rewrites(xm_pass_fold_shape_values, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const f32[3,8] @1
        %2 = shape_of %1
        %3 = const i64[] {1}
        %4 = const i64[] {0}
        %5 = gather %2, %3, %4
        %6 = convert %5 to=f32
        %7 = multiply %0, %6
        result %7 name="r")",
                    R"(
        %0 = parameter f32[T,8] name="x"
        %5 = const i64[] {8}
        %6 = convert %5 to=f32
        %7 = multiply %0, %6
        result %7 name="r")");
}

TEST(FoldShapeValues, LeavesSymbolsBesidesMinusOne)
{
    Graph g = parse(R"(
        %0 = parameter f32[batch,tokens,8] name="x"
        %1 = shape_of %0
        %2 = const i64[1] {0}
        %3 = const i64[] {0}
        %4 = gather %1, %2, %3
        %5 = const i64[1] {-1}
        %6 = concat %4, %5 axis=0
        %7 = reshape %0, %6
        result %7 name="r")");
    ASSERT_TRUE(g);
    run_pass(g.get(), xm_pass_fold_shape_values);
    EXPECT_EQ(count(g.get(), XM_OP_CONCAT), 1);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_normalise_spelling));
    EXPECT_EQ(count(g.get(), XM_OP_CONCAT), 0) << print(g.get());
}

TEST(FoldShapeValues, LeavesWhatDependsOnData)
{
    expect_leaves(xm_pass_fold_shape_values, R"(
        %0 = parameter i64[2] name="x"
        %1 = const i64[] {0}
        %2 = gather %0, %1, %1
        result %2 name="r")");
}

/* ---- fold_constants ---------------------------------------------------------------- */

TEST(FoldConstants, EvaluatesSmallConstantSubgraphs)
{
    expect_rewrites(xm_pass_fold_constants, R"(
        %0 = parameter f32[T,2] name="x"
        %1 = const u8[2] {3, 5}
        %2 = convert %1 to=f32
        %3 = const f32[2] {1, 1}
        %4 = subtract %2, %3
        %5 = multiply %0, %4
        result %5 name="r")",
                    R"(
        %0 = parameter f32[T,2] name="x"
        %4 = const f32[2] {2, 4}
        %5 = multiply %0, %4
        result %5 name="r")");
}

TEST(FoldConstants, LeavesWeightsAndLargeConstants)
{
    expect_leaves(xm_pass_fold_constants, R"(
        %0 = parameter f32[T,256] name="x"
        %1 = const f32[128,256] @1
        %2 = const f32[] {2}
        %3 = multiply %1, %2
        %4 = matmul %0, %3 transpose_b=true
        %5 = weight f32[4,4] u8 group=4 scale=f16 @5
        %6 = multiply %5, %2
        result %4 name="r"
        result %6 name="s")");
}

/* ---- remove_no_ops ----------------------------------------------------------------- */

TEST(RemoveNoOps, RemovesEachKind)
{
    expect_rewrites(xm_pass_remove_no_ops, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = shape_value i64[2] {T, 8}
        %2 = reshape %0, %1
        %3 = broadcast %2, %1
        %4 = const i64[2] {1, 1}
        %5 = tile %3, %4
        %6 = const i64[2] {0, 1}
        %7 = transpose %5, %6
        %8 = convert %7 to=f32
        %9 = const i64[2] {0, 0}
        %10 = slice %8, %9, %1, %4, %6
        %11 = exp %10
        result %11 name="r")",
                    R"(
        %0 = parameter f32[T,8] name="x"
        %11 = exp %0
        result %11 name="r")");
}

TEST(RemoveNoOps, LeavesWhatMovesElements)
{
    expect_leaves(xm_pass_remove_no_ops, R"(
        %0 = parameter f32[4,4] name="x"
        %1 = const i64[2] {1, 0}
        %2 = transpose %0, %1
        %3 = const i64[1] {-1}
        %4 = const i64[1] {-5}
        %5 = const i64[1] {0}
        %6 = slice %2, %3, %4, %3, %5
        result %6 name="r")");
}

/* ---- normalise_spelling ------------------------------------------------------------ */

TEST(NormaliseSpelling, MergesReshapesAndUnsqueezes)
{
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[batch,tokens,8] name="x"
        %1 = const i64[2] {-1, 8}
        %2 = reshape %0, %1
        %3 = const i64[1] {0}
        %4 = unsqueeze %2, %3
        result %4 name="r")",
                    R"(
        %0 = parameter f32[batch,tokens,8] name="x"
        %1 = shape_value i64[3] {1, batch*tokens, 8}
        %2 = reshape %0, %1
        result %2 name="r")");
}

TEST(NormaliseSpelling, DropsReshapesThatUndoEachOther)
{
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const i64[1] {0}
        %2 = unsqueeze %0, %1
        %3 = squeeze %2, %1
        %4 = exp %3
        result %4 name="r")",
                    R"(
        %0 = parameter f32[T,8] name="x"
        %4 = exp %0
        result %4 name="r")");
}

TEST(NormaliseSpelling, WritesRootsOneWay)
{
    const char *want = R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,8] name="v"
        %2 = exp %1
        %3 = const f32[] {1}
        %4 = sqrt %2
        %5 = divide %3, %4
        %6 = multiply %0, %5
        result %6 name="r")";
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,8] name="v"
        %2 = exp %1
        %3 = const f32[1,1] {-0.5}
        %4 = power %2, %3
        %5 = multiply %0, %4
        result %5 name="r")",
                    want);
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,8] name="v"
        %2 = exp %1
        %4 = sqrt %2
        %5 = divide %0, %4
        result %5 name="r")",
                    want);
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,8] name="v"
        %2 = exp %1
        %3 = const f32[] {0.5}
        %4 = power %2, %3
        %5 = divide %0, %4
        result %5 name="r")",
                    want);
}

TEST(NormaliseSpelling, WritesSquaresAndSwishOneWay)
{
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,8] name="x"
        %1 = multiply %0, %0
        %2 = sigmoid %1
        %3 = multiply %2, %1
        %4 = const f32[] {1}
        %5 = swish %3, %4
        result %5 name="r")",
                    R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const f32[] {2}
        %2 = power %0, %1
        %3 = swish %2
        %5 = swish %3
        result %5 name="r")");
}

TEST(NormaliseSpelling, WritesMeanAndVarianceOut)
{
    const std::string text = R"(
        %0 = parameter f32[batch,T,8] name="x"
        %1 = const i64[1] {-1}
        %2 = mvn %0, %1 epsilon=0.01
        result %2 name="r")";
    expect_rewrites(xm_pass_normalise_spelling, text, R"(
        %0 = parameter f32[batch,T,8] name="x"
        %1 = const i64[1] {-1}
        %2 = reduce_mean %0, %1 keep_dims=true
        %3 = subtract %0, %2
        %4 = const f32[] {2}
        %5 = power %3, %4
        %6 = reduce_mean %5, %1 keep_dims=true
        %7 = const f32[] {0.01}
        %8 = add %6, %7
        %9 = const f32[] {1}
        %10 = sqrt %8
        %11 = divide %9, %10
        %12 = multiply %3, %11
        result %12 name="r")");
    for (const char *spelling :
         {"epsilon=0.01 epsilon_mode=outside_sqrt", "epsilon=0 scaled=false"}) {
        Graph g = parse(replaced(text, "epsilon=0.01", spelling));
        EXPECT_TRUE(run_pass(g.get(), xm_pass_normalise_spelling));
        EXPECT_EQ(count(g.get(), XM_OP_MVN), 0) << print(g.get());
    }
}

TEST(NormaliseSpelling, LeavesMeanAndVarianceAsAMeanAndAnRmsNorm)
{
    Graph g = parse(R"(
        %0 = parameter f32[T,8] name="x"
        %1 = const i64[1] {1}
        %2 = mvn %0, %1 epsilon=0.01
        result %2 name="r")");
    EXPECT_EQ(run_pipeline(g.get(), nullptr, "fuse_rms_norm"), "");
    EXPECT_EQ(count(g.get(), XM_OP_REDUCE_MEAN), 1);
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 1) << print(g.get());
}

TEST(NormaliseSpelling, MakesAxesPositiveAndDropsIndexConverts)
{
    expect_rewrites(xm_pass_normalise_spelling, R"(
        %0 = parameter f32[T,4] name="x"
        %1 = parameter f32[4] name="s"
        %2 = softmax %0 axis=-1
        %3 = const i64[] {2}
        %4, %5 = topk %2, %3 axis=-1 mode=max sort=value index_element_type=i64
        %6 = convert %5 to=i32
        %7 = const i64[] {0}
        %8 = gather %1, %6, %7
        %9 = concat %8, %4 axis=-1
        %10 = convert_like %9, %0
        result %10 name="r")",
                    R"(
        %0 = parameter f32[T,4] name="x"
        %1 = parameter f32[4] name="s"
        %2 = softmax %0 axis=1
        %3 = const i64[] {2}
        %4, %5 = topk %2, %3 axis=1 mode=max sort=value index_element_type=i64
        %7 = const i64[] {0}
        %8 = gather %1, %5, %7
        %9 = concat %8, %4 axis=1
        result %9 name="r")");
}

/* ---- fuse_rms_norm ----------------------------------------------------------------- */

static const std::string rms = R"(
    %0 = parameter f32[batch,tokens,4] name="x"
    %1 = const f32[1,1,1] {2}
    %2 = power %0, %1
    %3 = const i64[1] {-1}
    %4 = reduce_mean %2, %3 keep_dims=true
    %5 = const f32[1,1,1] {0.001}
    %6 = add %4, %5
    %7 = sqrt %6
    %8 = const f32[1,1,1] {1}
    %9 = divide %8, %7
    %10 = multiply %0, %9
    %11 = const f32[1,1,4] {1, 2, 3, 4}
    %12 = multiply %11, %10
    result %12 name="r")";

TEST(FuseRmsNorm, TakesGammaInEitherOrder)
{
    const char *want = R"(
    %0 = parameter f32[batch,tokens,4] name="x"
    %1 = const f32[4] {1, 2, 3, 4}
    %2 = rms_norm %0, %1 epsilon=0.001
    result %2 name="r")";
    expect_rewrites(xm_pass_fuse_rms_norm, rms, want);
    expect_rewrites(xm_pass_fuse_rms_norm,
                    replaced(rms, "multiply %11, %10", "multiply %10, %11"), want);
    expect_rewrites(xm_pass_fuse_rms_norm,
                    replaced(rms, "multiply %0, %9", "multiply %9, %0"), want);
    expect_rewrites(xm_pass_fuse_rms_norm, replaced(rms, "add %4, %5", "add %5, %4"),
                    want);
}

TEST(FuseRmsNorm, TakesANormWithoutGamma)
{
    expect_rewrites(xm_pass_fuse_rms_norm, replaced(rms, "result %12", "result %10"), R"(
    %0 = parameter f32[batch,tokens,4] name="x"
    %1 = const f32[4] {1, 1, 1, 1}
    %2 = rms_norm %0, %1 epsilon=0.001
    result %2 name="r")");
}

TEST(FuseRmsNorm, LooksThroughAConvertBeforeGamma)
{
    std::string text = replaced(rms, "const f32[1,1,4]", "const f16[1,1,4]");
    text = replaced(text, "%12 = multiply %11, %10",
                    "%13 = convert %10 to=f16\n%12 = multiply %11, %13");
    Graph g = parse(text);
    ASSERT_TRUE(g);
    xm_pass_fuse_rms_norm(g.get(), nullptr);
    xm_graph_remove_dead(g.get());
    expect_valid(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 1);
    EXPECT_EQ(count(g.get(), XM_OP_MULTIPLY), 0) << print(g.get());
}

TEST(FuseRmsNorm, LeavesOtherFormulas)
{
    expect_leaves(xm_pass_fuse_rms_norm, replaced(rms, "{2}", "{4}"));
    expect_leaves(xm_pass_fuse_rms_norm, replaced(rms, "i64[1] {-1}", "i64[1] {1}"));
    expect_leaves(xm_pass_fuse_rms_norm, replaced(rms, "divide %8, %7", "divide %7, %8"));
    std::string other_x = replaced(rms, "%1 = const", "%20 = exp %0\n%1 = const");
    expect_leaves(xm_pass_fuse_rms_norm, replaced(other_x, "power %0", "power %20"));
    expect_leaves(xm_pass_fuse_rms_norm, rms + "\nresult %9 name=\"s\"");
}

TEST(FuseRmsNorm, KeepsANormThatSeveralReadWithoutGamma)
{
    Graph g = parse(rms + "\nresult %10 name=\"s\"");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rms_norm));
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 1);
    EXPECT_EQ(count(g.get(), XM_OP_MULTIPLY), 1);
}

/* ---- hoist_factors ----------------------------------------------------------------- */

namespace
{
const std::string two_values = R"(
        %0 = parameter f32[T,4] name="a"
        %1 = parameter f32[T,4] name="b"
        %2 = parameter f32[T,1] name="r"
        %3 = const f32[1,4] {1, 2, 4, 8}
        %4 = const f32[4] {2, 2, 0.5, 0.5})";
}

TEST(HoistFactors, MovesThemBehindProducts)
{
    expect_rewrites(xm_pass_hoist_factors, two_values + R"(
        %5 = multiply %3, %0
        %6 = multiply %1, %5
        result %6 name="y")",
                    two_values + R"(
        %5 = multiply %0, %1
        %6 = multiply %5, %3
        result %6 name="y")");
    expect_rewrites(xm_pass_hoist_factors, two_values + R"(
        %5 = multiply %0, %3
        %6 = multiply %5, %4
        result %6 name="y")",
                    two_values + R"(
        %5 = const f32[1,4] {2, 4, 2, 4}
        %6 = multiply %0, %5
        result %6 name="y")");
    expect_rewrites(xm_pass_hoist_factors, two_values + R"(
        %5 = divide %0, %3
        result %5 name="y")",
                    two_values + R"(
        %5 = const f32[1,4] {1, 0.5, 0.25, 0.125}
        %6 = multiply %0, %5
        result %6 name="y")");
}

/* Factors of rows or columns stay, because norms multiply by them; so do products with other
 * users, and constants. */
TEST(HoistFactors, LeavesOtherProducts)
{
    for (const char *rest : {
             "%5 = multiply %0, %2\n%6 = multiply %5, %3\nresult %6 name=\"y\"",
             "%5 = multiply %0, %3\n%6 = multiply %5, %2\nresult %6 name=\"y\"",
             "%5 = multiply %0, %3\n%6 = multiply %5, %1\nresult %6 name=\"y\"\n"
             "result %5 name=\"z\"",
             "%5 = const f32[] {2}\n%6 = multiply %0, %5\n%7 = multiply %6, %1\n"
             "result %7 name=\"y\"",
             "%5 = const f32[] {2}\n%6 = divide %0, %5\nresult %6 name=\"y\"",
             "%5 = divide %3, %0\nresult %5 name=\"y\"",
         })
        expect_leaves(xm_pass_hoist_factors, two_values + "\n" + rest);
}

/* ---- fuse_glu ---------------------------------------------------------------------- */

TEST(FuseGlu, TakesEachActivationInEitherOrder)
{
    const std::string text = R"(
        %0 = parameter f32[T,8] name="g"
        %1 = parameter f32[T,8] name="u"
        %2 = swish %0
        %3 = multiply %2, %1
        result %3 name="r")";
    const std::string want = R"(
        %0 = parameter f32[T,8] name="g"
        %1 = parameter f32[T,8] name="u"
        %2 = glu %0, %1
        result %2 name="r")";
    expect_rewrites(xm_pass_fuse_glu, text, want);
    expect_rewrites(xm_pass_fuse_glu, replaced(text, "%2, %1", "%1, %2"), want);
    expect_rewrites(xm_pass_fuse_glu,
                    replaced(text, "swish %0", "gelu %0 approximation=TANH"),
                    replaced(want, "%0, %1", "%0, %1 activation=gelu_tanh"));
    expect_rewrites(xm_pass_fuse_glu, replaced(text, "swish %0", "gelu %0"),
                    replaced(want, "%0, %1", "%0, %1 activation=gelu_erf"));
}

TEST(FuseGlu, LeavesBroadcastsAndSharedActivations)
{
    expect_leaves(xm_pass_fuse_glu, R"(
        %0 = parameter f32[T,1] name="g"
        %1 = parameter f32[T,8] name="u"
        %2 = swish %0
        %3 = multiply %2, %1
        result %3 name="r")");
    expect_leaves(xm_pass_fuse_glu, R"(
        %0 = parameter f32[T,8] name="g"
        %1 = parameter f32[T,8] name="u"
        %2 = swish %0
        %3 = multiply %2, %1
        result %3 name="r"
        result %2 name="s")");
}
