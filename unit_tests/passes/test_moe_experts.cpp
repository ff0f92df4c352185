/* SPDX-License-Identifier: Apache-2.0
 *
 * The expert block: fused into moe, then compressed, or lowered to gather_matmul.
 */
#include "transformations/pipeline.h"
#include "unit_tests/passes/moe_text.h"
#include "unit_tests/passes/pass_test.h"

namespace
{
xm_node *
fuse(Graph &g, const std::string &text)
{
    g = parse(text);
    if (!g)
        return nullptr;
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_vectorized_moe_3gemm)) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_TILE), 0);
    EXPECT_EQ(count(g.get(), XM_OP_SCATTER_ELEMENTS_UPDATE), 0);
    return first(g.get(), XM_OP_MOE);
}

/* Returns the reason why the block was not fused. */
std::string
near_miss(xm_graph *g)
{
    return xm_rewrite_near_miss(xm_rules_fuse_vectorized_moe_3gemm, g, nullptr,
                                first(g, XM_OP_REDUCE_SUM));
}

Graph
none()
{
    return Graph(nullptr, xm_graph_destroy);
}
} // namespace

TEST(FuseVectorizedMoe, TakesThreeMatmuls)
{
    expect_rewrites(xm_pass_fuse_vectorized_moe_3gemm, three_gemm_block(),
                    routing_parameters() + expert_weights() +
                        R"(
        %50 = moe %0, %1, %5, _, _, %6, %7, %8, _, _, _, _, _, _)"
                        R"( hidden_size=8 inter_size=4 num_expert=4 top_k=2
        result %50 name="y")");
}

TEST(FuseVectorizedMoe, TakesTheFourDimensionalTail)
{
    Graph g = none();
    xm_node *moe = fuse(g, three_gemm_block_4d());
    ASSERT_TRUE(moe);
    EXPECT_EQ(moe->attr.moe.limit, 0);
    EXPECT_EQ(moe->attr.moe.up_add, 0);
    EXPECT_EQ(count(g.get(), XM_OP_RESHAPE), 1); /* the one that restores [1,T,8] */
}

TEST(FuseVectorizedMoe, TakesEveryOrderAndActivation)
{
    Graph g = none();
    EXPECT_TRUE(fuse(g, replaced(three_gemm_block(), "%17, %27", "%27, %17")));
    xm_node *moe = fuse(g, replaced(three_gemm_block(), "glu %13, %14",
                                    "glu %13, %14 activation=gelu_tanh"));
    ASSERT_TRUE(moe);
    EXPECT_EQ(moe->attr.moe.activation, XM_ACT_GELU_TANH);
}

TEST(FuseVectorizedMoe, TakesTwoMatmulsWithBiasAndClamp)
{
    Graph g = none();
    xm_node *moe = fuse(g, two_gemm_block());
    ASSERT_TRUE(moe);
    EXPECT_EQ(moe->attr.moe.up_add, 1);
    EXPECT_FLOAT_EQ(moe->attr.moe.beta, 1.702f);
    EXPECT_FLOAT_EQ(moe->attr.moe.limit, 0.5f);
    EXPECT_EQ(moe->attr.moe.inter, 4);
}

TEST(FuseVectorizedMoe, TakesGateAndUpInAnyOrder)
{
    const std::string split = "\n%82 = const i64[] {-1}\n%90, %91 = split %61, %82 n=2";
    const std::string lengths = "\n%82 = const i64[] {2}\n%83 = const i64[2] {4, 4}\n"
                                "%90, %91 = variadic_split %61, %82, %83";
    const struct {
        std::string parts;
        const char *gate, *up;
        xm_gate_up form;
    } cases[] = {
        {columns(), "%70", "%66", XM_GATE_UP_INTERLEAVED},
        {columns(), "%66", "%70", XM_UP_GATE_INTERLEAVED},
        {halves("%65, %63", "%63, %81"), "%70", "%66", XM_GATE_UP_STACKED},
        {halves("%65, %63", "%63, %81"), "%66", "%70", XM_UP_GATE_STACKED},
        {split, "%90", "%91", XM_GATE_UP_STACKED},
        {lengths, "%91", "%90", XM_UP_GATE_STACKED},
    };
    for (const auto &c : cases) {
        std::string text = two_gemm_block(c.parts);
        text = replaced(text, "clamp %66", std::string("clamp ") + c.up);
        text = replaced(text, "minimum %70", std::string("minimum ") + c.gate);
        SCOPED_TRACE(text);
        Graph g = none();
        xm_node *moe = fuse(g, text);
        ASSERT_TRUE(moe);
        EXPECT_EQ(moe->attr.moe.gate_up, c.form);
    }
}

TEST(FuseVectorizedMoe, LeavesOtherPartsOfOneProduct)
{
    const struct {
        std::string text;
        const char *why;
    } cases[] = {
        {two_gemm_block(columns("%65", "%65")), "neither the halves"},
        {two_gemm_block(halves("%65, %63", "%65, %63")), "neither the halves"},
        {replaced(two_gemm_block(), "result %50", "result %66 name=\"z\"\nresult %50"),
         "operations other than gate and up read"},
        {replaced(two_gemm_block(), "result %50", "result %61 name=\"z\"\nresult %50"),
         "operations other than gate and up read"},
        {replaced(two_gemm_block(), "%61 = add %13, %60", "%61 = multiply %13, %60"),
         "not a product of the tiled tokens with a bias"},
    };
    for (const auto &c : cases) {
        Graph g = parse(c.text);
        ASSERT_TRUE(g);
        EXPECT_FALSE(run_pass(g.get(), xm_pass_fuse_vectorized_moe_3gemm));
        std::string why = near_miss(g.get());
        EXPECT_NE(why.find(c.why), std::string::npos) << why;
    }
}

/* A change to a block that can be fused, and a part of the reason why it then is not. */
struct Refusal {
    const char *from, *to, *why;
};

class Refused : public ::testing::TestWithParam<Refusal>
{
};

TEST_P(Refused, IsLeftAloneWithAReason)
{
    Graph g = parse(replaced(three_gemm_block(), GetParam().from, GetParam().to));
    ASSERT_TRUE(g);
    EXPECT_FALSE(run_pass(g.get(), xm_pass_fuse_vectorized_moe_3gemm));
    std::string why = near_miss(g.get());
    EXPECT_NE(why.find(GetParam().why), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(
    Conditions, Refused,
    ::testing::Values(
        Refusal{"const f32[] {0}", "const f32[] {1}", "not scattered into zeros"},
        Refusal{"%1, %23", "%1, %23 reduction=sum", "with a reduction"},
        Refusal{"%30, %31", "%30, %31 keep_dims=true", "not run over the experts alone"},
        Refusal{"%31 = const i64[1] {0}", "%31 = const i64[1] {1}",
                "not run over the experts alone"},
        Refusal{"result %50", "result %12 name=\"z\"\nresult %50",
                "operations other than gate and up"},
        Refusal{"result %50", "result %16 name=\"z\"\nresult %50", "several readers"},
        Refusal{"result %50", "result %27 name=\"z\"\nresult %50", "several readers"},
        Refusal{"%14 = matmul %12", "%80 = exp %12\n%14 = matmul %80",
                "requires to be the same"},
        Refusal{"%6 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @6",
                "%6 = parameter f32[4,4,8] name=\"w\"", "not a constant of rank 3"},
        Refusal{"glu %13, %14", "add %13, %14", "requires glu"}));

/* ---- convert_moe_to_moe_compressed ------------------------------------------------- */

namespace
{
std::string
moe(const std::string &weights)
{
    return routing_parameters() + weights +
           R"(
        %50 = moe %0, %1, %5, _, _, %6, %7, %8, _, _, _, _, _, _)"
           R"( hidden_size=8 inter_size=4 num_expert=4 top_k=2
        result %50 name="y")";
}
} // namespace

TEST(ConvertMoeToMoeCompressed, FillsGroupAndZeroPoints)
{
    Graph g = parse(moe(expert_weights()));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_convert_moe_to_moe_compressed));
    const xm_node *n = first(g.get(), XM_OP_MOE_COMPRESSED);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.moe.group, 4);
    EXPECT_TRUE(n->attr.moe.has_zp);
}

TEST(ConvertMoeToMoeCompressed, SaysGroupZeroForMixedFormats)
{
    Graph g = parse(moe(replaced(expert_weights(),
                                 "%7 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4",
                                 "%7 = weight f32[4,4,8] u8 group=8 scale=f16")));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_convert_moe_to_moe_compressed));
    EXPECT_EQ(first(g.get(), XM_OP_MOE_COMPRESSED)->attr.moe.group, 0);
}

TEST(ConvertMoeToMoeCompressed, TakesFloatsAsTheyAreStored)
{
    const std::string u4 = " u4 group=4 scale=f16 zp=u4";
    std::string text = moe(expert_weights());
    for (int i = 0; i < 3; i++)
        text.replace(text.find(u4), u4.size(), " f16");
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_convert_moe_to_moe_compressed));
    const xm_node *n = first(g.get(), XM_OP_MOE_COMPRESSED);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.moe.group, 0);
    EXPECT_FALSE(n->attr.moe.has_zp);
}

TEST(ConvertMoeToMoeCompressed, LeavesComputedWeights)
{
    expect_leaves(xm_pass_convert_moe_to_moe_compressed,
                  moe(replaced(expert_weights(),
                               "%7 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @7",
                               "%7 = parameter f32[4,4,8] name=\"up\"")));
}

/* ---- lower_unfused_moe ------------------------------------------------------------- */

namespace
{
void
expect_lowered(const std::string &text, int matmuls)
{
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_lower_unfused_moe)) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), matmuls);
    EXPECT_EQ(count(g.get(), XM_OP_TILE) + count(g.get(), XM_OP_MOE) +
                  count(g.get(), XM_OP_MOE_COMPRESSED),
              0)
        << print(g.get());
}
} // namespace

TEST(LowerUnfusedMoe, TakesEveryTiledBlock)
{
    expect_lowered(three_gemm_block(), 3);
    expect_lowered(three_gemm_block_4d(), 3);
    expect_lowered(two_gemm_block(), 2);
}

TEST(LowerUnfusedMoe, GivesGatherMatmulIdsOfOneType)
{
    Graph g = parse(
        replaced(three_gemm_block(), "sort=value", "sort=value index_element_type=i64"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_lower_unfused_moe));
    EXPECT_EQ(xm_in(first(g.get(), XM_OP_GATHER_MATMUL), 2)->type.element, XM_I32);
    EXPECT_EQ(count(g.get(), XM_OP_CONVERT), 1);
}

TEST(LowerUnfusedMoe, TakesFormsThatNoFusionKnows)
{
    /* an unknown gate, a swish with beta, gate and up of the same columns */
    expect_lowered(replaced(three_gemm_block(), "glu %13, %14", "add %13, %14"), 3);
    expect_lowered(
        replaced(
            three_gemm_block(), "%16 = glu %13, %14",
            "%80 = const f32[] {1.5}\n%81 = swish %13, %80\n%16 = multiply %81, %14"),
        3);
    expect_lowered(two_gemm_block(columns("%65", "%65")), 2);
}

/* The activation's clamp, offset and biases are written out with any activation and layout. */
TEST(LowerUnfusedMoe, WritesOutWhatAnExpertDoes)
{
    const std::string biases = R"(
        %91 = const f32[4,4] {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8}
        %92 = const f32[4,1,4] {4, 3, 2, 1, 0, -1, -2, -3, 5, 5, 5, 5, 6, 7, 8, 9}
        %93 = const f32[4,8] {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1)"
                               R"(, 1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1})";
    const std::string text =
        replaced(moe(expert_weights() + biases), "%8, _, _, _, _, _, _ ",
                 "%8, %91, %93, _, _, _, _, _, %92 ");
    for (const char *more : {"", " expert_alpha=0.75", " up_add=0.5",
                             " expert_alpha=0.75 up_add=-0.5 activation=gelu_tanh"})
        expect_lowered(replaced(text, "top_k=2", std::string("top_k=2") + more), 3);
}

TEST(LowerUnfusedMoe, TakesMoeAndMoeCompressed)
{
    expect_lowered(moe(expert_weights()), 3);
    std::string compressed =
        replaced(moe(expert_weights()), "= moe ", "= moe_compressed ");
    expect_lowered(replaced(compressed, "top_k=2",
                            "top_k=2 group_size=4 has_zp=true activation=gelu_erf"),
                   3);
    expect_lowered(replaced(compressed, "top_k=2", "top_k=2 expert_beta=1.5"), 3);
    Graph g = parse(two_gemm_block());
    ASSERT_TRUE(g);
    xm_pass_fuse_vectorized_moe_3gemm(g.get(), nullptr);
    EXPECT_EQ(count(g.get(), XM_OP_MOE), 1);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_lower_unfused_moe));
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 2);
}

/* The graph keeps one note for each block that was lowered. */
TEST(LowerUnfusedMoe, NotesWhichFusionLeftTheBlockAndWhy)
{
    const struct {
        std::string text;
        const char *why;
    } cases[] = {
        {replaced(three_gemm_block(), "glu %13, %14", "add %13, %14"),
         "FuseVectorizedMOE3GEMM: rule"},
        {replaced(moe(expert_weights()), "= moe ", "= moe_compressed "),
         "FuseMOE3GemmCompressed: the pass is excluded"},
        {moe(expert_weights()), "ConvertMOEToMOECompressed: the pass is excluded"},
    };
    for (const auto &c : cases) {
        Graph g = parse(c.text);
        ASSERT_TRUE(g);
        EXPECT_TRUE(run_pass(g.get(), xm_pass_lower_unfused_moe));
        ASSERT_TRUE(g->notes);
        EXPECT_EQ(g->notes->next, nullptr);
        EXPECT_NE(std::string(g->notes->text).find(c.why), std::string::npos)
            << g->notes->text;
    }
}

TEST(LowerUnfusedMoe, WritesTheSharedExpertOut)
{
    std::string text = replaced(moe(expert_weights()), "%50 = moe ", R"(
        %40 = weight f32[6,8] u8 group=8 scale=f16 @40
        %41 = weight f32[6,8] u8 group=8 scale=f16 @41
        %42 = weight f32[8,6] u8 group=6 scale=f16 @42
        %43 = weight f32[1,8] f32 @43
        %50 = moe_compressed )");
    text = replaced(text, "%8, _, _, _, _, _, _ ", "%8, _, _, %40, %41, %42, %43 ");
    expect_lowered(replaced(text, "top_k=2", "top_k=2 num_shared_expert=1"), 3);
}

/* Elementwise ops between the tiled tokens and the sum: before gate and up, between activation
 * and down, after down. */
TEST(LowerUnfusedMoe, TakesOperationsOfRowsAnywhere)
{
    const std::string constants = R"(
        %80 = const f32[4,1,8] {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8,)"
                                  R"( 2, 1, 2, 1, 2, 1, 2, 1, 3, 1, 3, 1, 3, 1, 3, 1}
        %81 = const f32[4,1,4] {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8}
        %82 = const f32[1,1,4] {4, 3, 2, 1}
        %83 = const i64[1] {2}
        %84 = parameter f32[1,T,1] name="token"
        %85 = parameter f32[4,T,4] name="each"
        %86 = const f32[4,1,1] {1, 2, 3, 4}
        %87 = parameter f32[T,1] name="row"
        %88 = weight f32[4,4] f32 @88
        %9 = )";
    const struct {
        const char *place, *to;
        int matmuls;
    } cases[] = {
        {"%13 = matmul %12", "%89 = multiply %12, %80\n%13 = matmul %89", 3},
        {"%14 = matmul %12", "%89 = subtract %80, %12\n%14 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = divide %16, %81\n%17 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = multiply %82, %16\n%17 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = multiply %16, %84\n%17 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = add %16, %85\n%17 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = multiply %16, %87\n%17 = matmul %89", 3},
        {"%17 = matmul %16", "%89 = softmax %16 axis=2\n%17 = matmul %89", 3},
        {"%17 = matmul %16",
         "%78 = reduce_mean %16, %83 keep_dims=true\n%89 = subtract %16, %78\n"
         "%17 = matmul %89",
         3},
        {"%17 = matmul %16", "%89 = matmul %16, %88 transpose_b=true\n%17 = matmul %89",
         3},
        {"%17 = matmul %16",
         "%78, %79 = split %16, %83 n=2\n%89 = concat %79, %78 axis=2\n%17 = matmul %89",
         3},
        {"%17 = matmul %16,", "%90 = matmul %16,", 3},
        {"%17 = matmul %16", "%89 = tanh %16\n%17 = matmul %89", 3},
    };
    for (const auto &c : cases) {
        std::string text = replaced(three_gemm_block(), "%9 = ", constants);
        text = replaced(text, c.place, c.to);
        if (strstr(c.to, "%90"))
            text = replaced(text, "%20 = const",
                            "%91 = exp %90\n%92 = multiply %91, %80\n"
                            "%17 = multiply %92, %86\n%20 = const");
        SCOPED_TRACE(c.to);
        expect_lowered(text, c.matmuls);
    }
}

/* With one expert, a row shared by all experts and a row of the expert look the same. */
TEST(LowerUnfusedMoe, TakesABlockOfOneExpert)
{
    expect_lowered(R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,1] name="weights"
        %2 = parameter f32[T,1] name="scores"
        %3 = const i64[] {1}
        %4, %5 = topk %2, %3 axis=1 mode=max sort=value
        %6 = weight f32[1,4,8] f32 @6
        %8 = weight f32[1,8,4] f32 @8
        %9 = const i64[2] {1, 1}
        %10 = tile %0, %9
        %11 = shape_value i64[3] {1, T, 8}
        %12 = reshape %10, %11
        %13 = matmul %12, %6 transpose_b=true
        %14 = const f32[1,1,4] {1, 2, 3, 4}
        %15 = multiply %13, %14
        %16 = tanh %15
        %17 = matmul %16, %8 transpose_b=true
        %20 = const f32[] {0}
        %21 = shape_value i64[2] {T, 1}
        %22 = broadcast %20, %21
        %23 = const i64[] {1}
        %24 = scatter_elements_update %22, %5, %1, %23
        %25 = const i64[2] {1, 0}
        %26 = transpose %24, %25
        %28 = shape_value i64[3] {1, T, 1}
        %27 = reshape %26, %28)" +
                       sum(),
                   2);
}

/* A softmax over the tokens between the matmuls cannot be lowered: what it reads is computed for
 * every expert. */
TEST(LowerUnfusedMoe, LeavesTheRestToEveryExpertWithANote)
{
    Graph g = parse(replaced(three_gemm_block(), "%16 = glu %13, %14",
                             "%80 = softmax %13 axis=1\n%16 = glu %80, %14"));
    ASSERT_TRUE(g);
    auto before = evaluate(g.get());
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
    expect_close(before, evaluate(g.get()));
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 2);
    ASSERT_TRUE(g->notes);
    EXPECT_NE(std::string(g->notes->text).find("computes every token"), std::string::npos)
        << g->notes->text;
}

/* ---- factors ----------------------------------------------------------------------- */

namespace
{
/* Parses a block in which the GLU is replaced by the lines `unit`, which may use a constant %80,
 * and runs the pipeline. Returns the fused experts; the results must stay equal. */
xm_node *
fuse_factored(Graph &g, const std::string &block, const std::string &constant,
              const std::string &unit)
{
    std::string text = replaced(block, "%9 = ", "%80 = " + constant + "\n%9 = ");
    const char *from = block.find("glu") != std::string::npos ? "%16 = glu %13, %14"
                                                              : "%75 = multiply %69, %74";
    g = parse(replaced(text, from, unit));
    if (!g)
        return nullptr;
    auto before = evaluate(g.get());
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
    expect_close(before, evaluate(g.get()));
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 0) << print(g.get());
    return first(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
}

const std::string per_expert =
    "const f32[4,1,4] {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8}";
} // namespace

TEST(Factors, OfExpertsBecomeAnOperandWhereverTheyStand)
{
    const std::string units[] = {
        "%81 = swish %13\n%82 = multiply %81, %80\n%16 = multiply %82, %14",
        "%81 = swish %13\n%82 = multiply %80, %81\n%16 = multiply %14, %82",
        "%81 = swish %13\n%82 = multiply %14, %80\n%16 = multiply %81, %82",
        "%81 = swish %13\n%82 = divide %14, %80\n%16 = multiply %81, %82",
        "%81 = swish %13\n%82 = multiply %14, %81\n%16 = divide %82, %80",
        "%81 = sigmoid %13\n%82 = multiply %13, %80\n%83 = multiply %81, %82\n"
        "%16 = multiply %83, %14",
        "%81 = gelu %13\n%82 = multiply %81, %80\n%83 = multiply %14, %80\n"
        "%16 = multiply %82, %83",
        "%81 = glu %13, %14\n%16 = multiply %81, %80",
    };
    for (const std::string &unit : units) {
        SCOPED_TRACE(unit);
        Graph g = none();
        xm_node *moe = fuse_factored(g, three_gemm_block(), per_expert, unit);
        ASSERT_TRUE(moe);
        ASSERT_GT(moe->n_in, (uint32_t)XM_MOE_FACTOR);
        EXPECT_EQ(xm_in(moe, XM_MOE_FACTOR)->type.shape.rank, 3u);
    }
}

TEST(Factors, OfTwoMatmulsAreTakenToo)
{
    const char *units[] = {
        "%82 = multiply %74, %80\n%75 = multiply %82, %69",
        "%82 = multiply %80, %69\n%75 = multiply %82, %74",
        "%82 = multiply %69, %74\n%75 = multiply %80, %82",
        "%82 = multiply %69, %74\n%75 = divide %82, %80",
    };
    for (const char *unit : units) {
        SCOPED_TRACE(unit);
        Graph g = none();
        xm_node *moe = fuse_factored(g, two_gemm_block(), per_expert, unit);
        ASSERT_TRUE(moe);
        EXPECT_GT(moe->n_in, (uint32_t)XM_MOE_FACTOR);
    }
}

/* Factors shared by all experts, of each expert, and one for everything. */
TEST(Factors, BroadcastToEveryExpertAndColumn)
{
    const char *constants[] = {"const f32[1,1,4] {1, 2, 3, 4}",
                               "const f32[4] {1, 2, 3, 4}",
                               "const f32[4,1,1] {1, 2, 3, 4}", "const f32[] {0.25}"};
    for (const char *constant : constants) {
        SCOPED_TRACE(constant);
        Graph g = none();
        xm_node *moe = fuse_factored(g, three_gemm_block(), constant,
                                     "%81 = glu %13, %14\n%16 = multiply %81, %80");
        ASSERT_TRUE(moe);
        ASSERT_GT(moe->n_in, (uint32_t)XM_MOE_FACTOR);
        const xm_shape &s = xm_in(moe, XM_MOE_FACTOR)->type.shape;
        EXPECT_TRUE(xm_dim_is(s.dim[0], 4) && xm_dim_is(s.dim[2], 4));
    }
}

/* A factor before the activation, which is not linear, cannot be moved into the experts: the
 * block is lowered. */
TEST(Factors, StayInFrontOfTheActivation)
{
    Graph g = parse(
        replaced(replaced(three_gemm_block(), "%9 = ", "%80 = " + per_expert + "\n%9 = "),
                 "%16 = glu %13, %14", "%81 = multiply %13, %80\n%16 = glu %81, %14"));
    ASSERT_TRUE(g);
    auto before = evaluate(g.get());
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
    expect_close(before, evaluate(g.get()));
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 3);
}

TEST(Factors, GoIntoTheExpertsFromBehindTheRouting)
{
    Graph g = parse(replaced(three_gemm_block(), "%30 = multiply %17, %27", R"(
        %80 = const f32[1,1,8] {1, 2, 3, 4, 5, 6, 7, 8}
        %81 = multiply %17, %27
        %30 = multiply %81, %80)"));
    ASSERT_TRUE(g);
    auto before = evaluate(g.get());
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
    expect_close(before, evaluate(g.get()));
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 3) << print(g.get());
}

TEST(LowerUnfusedMoe, WritesOutTheFactor)
{
    const std::string factor =
        "\n%90 = const f32[4,1,4] {1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1, 2, 2, 2, 2}";
    expect_lowered(replaced(moe(expert_weights() + factor), "%8, _, _, _, _, _, _ ",
                            "%8, _, _, _, _, _, _, _, _, %90 "),
                   3);
}
