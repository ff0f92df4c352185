/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to bf16 where training did: which places are found, what they become, what stays.
 * Expected numbers are from make_rounding.py.
 */
#include "transformations/passes/router_product.h"
#include "unit_tests/passes/pass_test.h"

namespace
{

/* Runs the pass and returns the number of places that it rounds. A second run must find none. */
uint32_t
rounds(xm_graph *g)
{
    xm_caps caps = {};
    caps.rounds_as_trained = true;
    const bool any = xm_pass_round_as_trained(g, &caps);
    EXPECT_STREQ(g->err.text, "");
    EXPECT_EQ(any, g->n_rounded > 0);
    xm_graph_remove_dead(g);
    expect_valid(g);
    EXPECT_FALSE(xm_pass_round_as_trained(g, &caps)) << print(g);
    return g->n_rounded;
}

void
expect_becomes(const std::string &before, const std::string &after, uint32_t places)
{
    Graph g = parse(before), want = parse(after);
    ASSERT_TRUE(g && want);
    xm_graph_remove_dead(want.get());
    EXPECT_EQ(rounds(g.get()), places);
    EXPECT_EQ(structure(g.get()), structure(want.get())) << print(g.get());
}

void
expect_untouched(const std::string &text)
{
    expect_becomes(text, text, 0);
}

/* ---- rows of a table --------------------------------------------------------------- */

const std::string lookup = R"(
%0 = parameter i64[batch,tokens] name="ids"
%1 = weight f32[8,4] f32 @1
%2 = const i32[] {0}
%3 = gather %1, %0, %2
%4 = const f32[] {53.0659966}
%5 = multiply %3, %4
result %5 name="y")";

TEST(RoundAsTrained, RowsOfATable)
{
    expect_becomes(lookup, R"(
%0 = parameter i64[batch,tokens] name="ids"
%1 = weight f32[8,4] f32 @1
%2 = const i32[] {0}
%3 = gather %1, %0, %2
%4 = const f32[] {53}
%5 = multiply %3, %4
%6 = round_bf16 %5
result %6 name="y")",
                   1);
}

TEST(RoundAsTrained, FactorsOfTablesAreOfBf16)
{
    const struct {
        int hidden;
        float factor;
    } cases[] = {{2816, 53.0f}, {5376, 73.5f}, {2560, 50.5f}, {1536, 39.25f}, {256, 16}};
    for (const auto &c : cases) {
        char number[32];
        snprintf(number, sizeof(number), "%.9g", std::sqrt((double)c.hidden));
        Graph g = parse(replaced(lookup, "53.0659966", number));
        EXPECT_EQ(rounds(g.get()), 1u);
        float factor = 0;
        xm_value *product = xm_in(first(g.get(), XM_OP_ROUND_BF16), 0);
        ASSERT_TRUE(xm_value_is_scalar_const(xm_in(product->node, 1), &factor));
        EXPECT_EQ(factor, c.factor) << c.hidden;
    }
}

TEST(RoundAsTrained, NothingUnlessAsked)
{
    const xm_caps caps = {};
    Graph g = parse(lookup), want = parse(lookup);
    EXPECT_FALSE(xm_pass_round_as_trained(g.get(), nullptr));
    EXPECT_FALSE(xm_pass_round_as_trained(g.get(), &caps));
    EXPECT_EQ(print(g.get()), print(want.get()));
}

TEST(RoundAsTrained, OtherRowsStayAsTheyAre)
{
    const std::string computed =
        replaced(lookup, "gather %1, %0, %2", "gather %7, %0, %2");
    expect_untouched(
        replaced(computed, "%3 =", "%7 = parameter f32[8,4] name=\"t\"\n%3 ="));
    expect_untouched(replaced(replaced(lookup, "gather %1, %0, %2", "gather %1, %8, %2"),
                              "%3 =", "%8 = add %0, %0\n%3 ="));
    expect_untouched(
        replaced(lookup, "const f32[] {53.0659966}", "const f32[4] {1, 2, 3, 4}"));
    expect_untouched(replaced(lookup, "const i32[] {0}", "const i32[] {1}"));
}

/* ---- per-layer embeddings ---------------------------------------------------------- */

const std::string per_layer = R"(
%0 = parameter i64[batch,tokens] name="ids"
%1 = parameter f32[batch,tokens,3] name="x"
%2 = weight f32[8,6] f32 @2
%3 = const i32[] {0}
%4 = gather %2, %0, %3
%5 = const f32[] {1.73205078}
%6 = multiply %4, %5
%7 = shape_value i64[4] {batch, tokens, 2, 3}
%8 = reshape %6, %7
%9 = weight f32[6,3] f32 @9
%10 = matmul %1, %9 transpose_b=true
%11 = const f32[] {0.577350259}
%12 = multiply %10, %11
%13 = reshape %12, %7
%14 = const f32[3] {1, 2, 3}
%15 = rms_norm %13, %14 epsilon=1e-06
%16 = add %15, %8
%17 = const f32[] {0.707106769}
%18 = multiply %16, %17
result %18 name="y"
)";

TEST(RoundAsTrained, PerLayerEmbeddings)
{
    expect_becomes(per_layer, R"(
%0 = parameter i64[batch,tokens] name="ids"
%1 = parameter f32[batch,tokens,3] name="x"
%2 = weight f32[8,6] f32 @2
%3 = const i32[] {0}
%4 = gather %2, %0, %3
%5 = const f32[] {1.734375}
%6 = multiply %4, %5
%20 = round_bf16 %6
%7 = shape_value i64[4] {batch, tokens, 2, 3}
%8 = reshape %20, %7
%9 = weight f32[6,3] f32 @9
%10 = matmul %1, %9 transpose_b=true
%11 = const f32[] {0.577350259}
%12 = multiply %10, %11
%21 = round_bf16 %12
%13 = reshape %21, %7
%14 = const f32[3] {1, 2, 3}
%15 = rms_norm %13, %14 epsilon=1e-06
%22 = round_bf16 %15
%16 = add %22, %8
%23 = round_bf16 %16
%17 = const f32[] {0.707106769}
%18 = multiply %23, %17
%24 = round_bf16 %18
result %24 name="y")",
                   1);
}

/* A sum with another user is not the per-layer embedding: only the rows of the table are rounded.
 */
TEST(RoundAsTrained, ASumThatIsReadElsewhereIsNotPerLayer)
{
    Graph g = parse(per_layer + "result %16 name=\"sum\"\n");
    EXPECT_EQ(rounds(g.get()), 1u);
    EXPECT_EQ(count(g.get(), XM_OP_ROUND_BF16), 1);
}

/* ---- a router's input -------------------------------------------------------------- */

const std::string x = R"(
%0 = const f32[2,3] {2.31, 1.12, 0.21, -1.12, -1.7, 2.35}
%1 = const f32[3] {1, 1, 1}
%2 = const f32[3] {1.0234375, 0.4140625, 2.109375}
%3 = const f32[] {0.577350259}
%4 = const f32[1,3] {0.590881884, 0.239059091, 1.21784818}
)";
const std::string router = R"(
%40 = weight f32[4,3] f32 @40
%41 = matmul %30, %40 transpose_b=true
%42, %43 = moe_router %41, _, _ top_k=2
result %42 name="w"
result %43 name="i"
)";
const Floats rounded = {0.921875f,     0.180664062f,  0.172851562f,
                        -0.369140625f, -0.225585938f, 1.59375f};

/* Returns the value that the router's product reads. */
Floats
router_input(xm_graph *g)
{
    xm_node *product = xm_router_product(first(g, XM_OP_MOE_ROUTER));
    EXPECT_NE(product, nullptr);
    xm_builder b = xm_builder_at_end(g);
    xm_result(&b, "x", xm_in(product, 0));
    return evaluate(g)[2];
}

void
expect_rounded_router(const std::string &input)
{
    Graph g = parse(x + input + router);
    EXPECT_EQ(rounds(g.get()), 1u) << print(g.get());
    EXPECT_EQ(router_input(g.get()), rounded) << print(g.get());
}

TEST(RoundAsTrained, ARoutersInput)
{
    expect_rounded_router(R"(
%10 = rms_norm %0, %1 epsilon=1e-06
%11 = multiply %10, %2
%30 = multiply %11, %3)");
}

TEST(RoundAsTrained, FactorsThatTheNormHasAreTakenOutAgain)
{
    expect_rounded_router(R"(
%10 = rms_norm %0, %2 epsilon=1e-06
%30 = multiply %3, %10)");
}

TEST(RoundAsTrained, FactorsThatAreOneAreTakenApart)
{
    expect_rounded_router(R"(
%10 = rms_norm %0, %1 epsilon=1e-06
%30 = multiply %10, %4)");
    expect_rounded_router(R"(
%10 = rms_norm %0, %4 epsilon=1e-06
%11 = shape_value i64[2] {2, 3}
%30 = reshape %10, %11)");
}

/* Factors that were folded may have been rounded to f16. */
TEST(RoundAsTrained, FoldedFactorsMayHaveBeenRounded)
{
    const std::string halves =
        replaced(x, "f32[1,3] {0.590881884, 0.239059091, 1.21784818}",
                 "f16[3] {0.59082031, 0.23901367, 1.21777344}");
    Graph g = parse(halves + R"(
%10 = rms_norm %0, %4 epsilon=1e-06
%11 = shape_value i64[2] {2, 3}
%30 = reshape %10, %11)" +
                    router);
    EXPECT_EQ(rounds(g.get()), 1u);
    EXPECT_EQ(router_input(g.get()), rounded) << print(g.get());
}

/* A row of factors that is not s n^-1/2 is multiplied once, as it is. */
TEST(RoundAsTrained, OtherFactorsStayOne)
{
    Graph g = parse(replaced(x, "1.21784818", "1.2212345") + R"(
%10 = rms_norm %0, %1 epsilon=1e-06
%30 = multiply %10, %4)" +
                    router);
    EXPECT_EQ(rounds(g.get()), 1u);
    EXPECT_EQ(count(g.get(), XM_OP_ROUND_BF16), 2);
}

TEST(RoundAsTrained, WhoElseReadsTheNormReadsWhatItWas)
{
    Graph g = parse(x + R"(
%10 = rms_norm %0, %1 epsilon=1e-06
%30 = multiply %10, %4
%12 = multiply %10, %2)" +
                    router + "result %12 name=\"experts\"\n");
    const Floats before = evaluate(g.get())[2];
    EXPECT_EQ(rounds(g.get()), 1u);
    EXPECT_EQ(evaluate(g.get())[2], before);
}

TEST(RoundAsTrained, NormsThatAreNotTheRoutersStay)
{
    const char *const inputs[] = {
        "%10 = rms_norm %0, %2 epsilon=1e-06\n%30 = multiply %10, %3\nresult %10 "
        "name=\"h\"",
        "%30 = rms_norm %0, %2 epsilon=1e-06\nresult %30 name=\"h\"",
        "%30 = rms_norm %0, %1 epsilon=1e-06",
        "%10 = rms_norm %0, %1 epsilon=1e-06\n%30 = multiply %10, %4\nresult %30 "
        "name=\"h\"",
        "%10 = abs %0\n%30 = multiply %10, %4",
    };
    for (const char *input : inputs) {
        SCOPED_TRACE(input);
        expect_untouched(x + input + router);
    }
}

/* ---- later passes ---------------------------------------------------------------------- */

TEST(RoundAsTrained, ChainsTakeTheRoundingsAlong)
{
    Graph g = parse(replaced(x, "const f32[2,3] {2.31, 1.12, 0.21, -1.12, -1.7, 2.35}",
                             "parameter f32[T,3] name=\"x\"") +
                    R"(
%10 = rms_norm %0, %2 epsilon=1e-06
%30 = multiply %3, %10)" +
                    router);
    EXPECT_EQ(rounds(g.get()), 1u);
    const auto before = evaluate(g.get());
    EXPECT_TRUE(xm_pass_fuse_row_chain(g.get(), nullptr));
    ASSERT_EQ(count(g.get(), XM_OP_ROW_CHAIN), 1);
    EXPECT_STREQ(first(g.get(), XM_OP_ROW_CHAIN)->attr.row_chain.steps,
                 "rms_norm x0 _ 9.99999997e-07; round_bf16 s0 _; multiply s1 c0; "
                 "round_bf16 s2 _; multiply s3 c1; out round_bf16 s4 _");
    EXPECT_EQ(evaluate(g.get()), before);
}

} // namespace
