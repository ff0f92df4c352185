/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types on the device: which values are the residual stream, which ops need f32, what a
 * router reads, and that all other values have the inference precision.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{

const std::string layer_head = R"(
%0 = parameter i64[batch,tokens] name="ids"
%1 = weight f32[64,8] f16 @1
%2 = const i64[] {0}
%3 = gather %1, %0, %2
%4 = const f32[8] @4
%5 = weight f32[8,8] f16 @5
%6 = weight f32[4,8] f16 @6
)";

bool
run(xm_graph *g, xm_element precision = XM_F16)
{
    const xm_caps caps = {nullptr, nullptr, nullptr, precision};
    const bool progress = xm_pass_assign_precision(g, &caps);
    EXPECT_STREQ(g->err.text, "");
    expect_valid(g);
    return progress;
}

std::string
type_of(const xm_graph *g, uint32_t number)
{
    xm_for_each_node(n, g)
    {
        if (number >= n->id && number < n->id + n->n_out)
            return xm_element_text(xm_value_stored(&n->out[number - n->id]));
    }
    return "none";
}

/* Fails unless the pass gives the values numbered in `f32` and `f16` these types. */
void
expect_types(const std::string &text, const std::vector<uint32_t> &f32,
             const std::vector<uint32_t> &f16)
{
    Graph g = parse(text);
    ASSERT_TRUE(g);
    run(g.get());
    for (uint32_t v : f32)
        EXPECT_EQ(type_of(g.get(), v), "f32") << "%" << v << "\n" << print(g.get());
    for (uint32_t v : f16)
        EXPECT_EQ(type_of(g.get(), v), "f16") << "%" << v << "\n" << print(g.get());
    EXPECT_FALSE(run(g.get())) << "once is enough";
}

TEST(AssignPrecision, WhatAddsUpOverTheLayersIsF32)
{
    expect_types(layer_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = matmul %10, %5 transpose_b=true
%12 = add %11, %3
%13 = rms_norm %12, %4 epsilon=1e-6
%14 = matmul %13, %5 transpose_b=true
%15 = add %12, %14
%16 = rms_norm %15, %4 epsilon=1e-6
%17 = matmul %16, %6 transpose_b=true
result %17 name="y")",
                 {3, 12, 15, 17}, {10, 11, 13, 14, 16});
}

TEST(AssignPrecision, SumsInsideOfOperationsAre)
{
    expect_types(
        layer_head +
            R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = linear %10, %3, %5, _
%12, %13 = row_chain %11, %4 steps="multiply x0 c0; out add s0 x0; out rms_norm s1 _ 1e-6"
%14 = linear %13, _, %5, _
%15, %16 = row_chain %12, %14, %4)"
            R"( steps="rms_norm x1 c0 1e-6; add x0 s0; out multiply s1 c0; out rms_norm s2 c0 1e-6"
%17 = linear %16, _, %6, _
result %17 name="y")",
        {3, 11, 12, 15, 17}, {10, 13, 14, 16});
}

/* Two branches read one norm and are added one after the other: their sums are a residual stream.
 */
TEST(AssignPrecision, BranchesSideBySideAre)
{
    expect_types(layer_head + R"(
%8 = const f32[] {12}
%9 = multiply %3, %8
%10 = rms_norm %9, %4 epsilon=1e-6
%11 = matmul %10, %5 transpose_b=true
%12 = matmul %10, %5 transpose_b=true
%13 = add %9, %11
%14 = add %13, %12
%15 = add %11, %12
%16 = add %15, %14
%17 = rms_norm %16, %4 epsilon=1e-6
%18 = matmul %17, %6 transpose_b=true
result %18 name="y")",
                 {3, 9, 13, 14, 16}, {10, 11, 12, 15, 17});
}

TEST(AssignPrecision, WhatBecomesOfTheLastSumIs)
{
    expect_types(layer_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = linear %10, %3, %5, _
%12 = const f32[1] {0.5}
%13 = multiply %11, %12
%14 = shape_value i64[2] {batch*tokens, 8}
%15 = reshape %13, %14
%16 = rms_norm %15, %4 epsilon=1e-6
%17 = linear %16, _, %6, _
result %17 name="y")",
                 {3, 11, 13, 15}, {10, 16});
}

/* The residual is a reshape of the value that the branch reads. */
TEST(AssignPrecision, AReshapedSummandCounts)
{
    expect_types(layer_head + R"(
%8 = shape_value i64[2] {batch*tokens, 8}
%9 = reshape %3, %8
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = reshape %10, %8
%12 = matmul %11, %5 transpose_b=true
%13 = add %9, %12
%16 = rms_norm %13, %4 epsilon=1e-6
%17 = matmul %16, %6 transpose_b=true
result %17 name="y")",
                 {3, 9, 13}, {10, 11, 12, 16});
}

TEST(AssignPrecision, AGateIsNoSum)
{
    expect_types(layer_head + R"(
%10 = matmul %3, %5 transpose_b=true
%11 = sigmoid %10
%12 = multiply %3, %11
%17 = matmul %12, %6 transpose_b=true
result %17 name="y")",
                 {17}, {3, 10, 11, 12});
}

TEST(AssignPrecision, OtherSumsAreNot)
{
    /* No residual: the sum of two products, an activation written in single ops, a table row plus
     * a value computed from another row. */
    expect_types(layer_head + R"(
%10 = matmul %3, %5 transpose_b=true
%11 = matmul %3, %5 transpose_b=true
%12 = add %10, %11
%13 = multiply %12, %12
%14 = multiply %13, %12
%15 = add %12, %14
%16 = tanh %15
%17 = gather %1, %0, %2
%18 = add %17, %16
%19 = matmul %18, %6 transpose_b=true
result %19 name="y")",
                 {19}, {3, 10, 11, 12, 13, 14, 15, 16, 17, 18});
}

TEST(AssignPrecision, ResultsReachBackToProductsAndNorms)
{
    expect_types(layer_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = matmul %10, %6 transpose_b=true
%12 = const f32[] {30}
%13 = divide %11, %12
%14 = tanh %13
%15 = softmax %14 axis=-1
%16 = tanh %11
%17 = relu %3
result %15 name="y"
result %17 name="z")",
                 {11, 13, 14, 15, 17, 3}, {10, 16});
}

/* Values from integers are f32, because integers may exceed f16. Constants are f32 on the device,
 * whatever type the file has. */
TEST(AssignPrecision, WhatComesFromIntegersAndConstantsIsF32)
{
    expect_types(layer_head + R"(
%7 = const f16[8] @7
%8 = shape_value i64[2] {1, 8}
%9 = reshape %7, %8
%10 = convert %0 to=f32
%11 = shape_value i64[3] {batch, tokens, 1}
%12 = reshape %10, %11
%13 = convert %9 to=f32
%14 = multiply %12, %13
%15 = matmul %14, %6 transpose_b=true
result %15 name="y")",
                 {9, 10, 12, 15}, {13, 14});
}

TEST(AssignPrecision, PositionsAndTheirTablesAreF32)
{
    expect_types(R"(
%0 = parameter i64[batch,tokens] name="positions"
%1 = parameter i64[batch,tokens] name="ids"
%2 = weight f32[64,32] f16 @2
%3 = const i64[] {0}
%4 = gather %2, %1, %3
%5 = shape_value i64[4] {batch, tokens, 4, 8}
%6 = reshape %4, %5
%7 = convert %0 to=f32
%8 = shape_value i64[3] {batch, tokens, 1}
%9 = reshape %7, %8
%10 = const f32[1,1,8] @10
%11 = multiply %9, %10
%12 = cos %11
%13 = sin %11
%14 = rope %6, %12, %13
%15 = convert %1 to=i32
result %15 name="y"
%16 = shape_value i64[3] {batch, tokens, 32}
%17 = reshape %14, %16
%18 = weight f32[4,32] f16 @18
%19 = matmul %17, %18 transpose_b=true
result %19 name="z")",
                 {7, 9, 11, 12, 13, 19}, {4, 6, 14, 17});
}

/* ---- routers ---- */

const std::string experts_head = layer_head + R"(
%7 = weight f32[4,4,8] f16 @7
%8 = weight f32[4,8,4] f16 @8
)";
const std::string experts = ", _, _, _, %7, %7, %8, _, _, _, _, _, _ hidden_size=8 "
                            "inter_size=4 num_expert=4 top_k=2\n";

TEST(AssignPrecision, ARoutersNormHasAResultOfItsOwn)
{
    Graph g = parse(experts_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = shape_value i64[2] {batch*tokens, 8}
%12 = reshape %10, %11
%13 = matmul %12, %6 transpose_b=true
%14 = moe_3gemm_fused_compressed %12, %13)" +
                    experts + R"(result %14 name="y")");
    ASSERT_TRUE(g);
    const std::vector<Floats> before = evaluate(g.get());
    EXPECT_TRUE(run(g.get()));
    const xm_node *chain = first(g.get(), XM_OP_ROW_CHAIN);
    const xm_node *moe = first(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
    ASSERT_TRUE(chain) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_RMS_NORM), 0);
    ASSERT_EQ(chain->n_out, 2u);
    EXPECT_EQ(xm_value_stored(&chain->out[0]), XM_F16);
    EXPECT_EQ(xm_value_stored(&chain->out[1]), XM_F32);
    EXPECT_EQ(xm_value_stored(xm_in(moe, XM_MOE_HIDDEN)), XM_F16);
    EXPECT_EQ(xm_value_stored(xm_in(moe, XM_MOE_ROUTING)), XM_F32);
    const xm_node *product = first(g.get(), XM_OP_MATMUL);
    EXPECT_EQ(xm_value_stored(xm_in(product, 0)), XM_F32);
    EXPECT_EQ(evaluate(g.get()), before);
    EXPECT_FALSE(run(g.get()));
}

/* Routing by the ids of a softmax's top-k, with fused experts and with one product for each
 * expert. */
TEST(AssignPrecision, WhoChoosesByIdsReadsF32)
{
    const std::string routing = experts_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%11 = shape_value i64[2] {batch*tokens, 8}
%12 = reshape %10, %11
%13 = matmul %12, %6 transpose_b=true
%14 = softmax %13 axis=-1
%15 = const i64[] {2}
%16, %17 = topk %14, %15 axis=-1 mode=max sort=value
)";
    const std::string fused = "%18 = moe_3gemm_fused_compressed %12, ";
    const std::string of_ids = experts.substr(3) + "result %18 name=\"y\"";
    const std::string apart = R"(
%20 = const i64[] {0}
%21 = unsqueeze %12, %20
%18 = gather_matmul %21, %7, %17, _
result %18 name="y")";
    for (const std::string &text :
         {routing + fused + "%16, %17" + of_ids,
          "%9 = parameter f32[T,2] name=\"w\"" + routing + fused + "%9, %17" + of_ids,
          routing + apart}) {
        Graph g = parse(text);
        ASSERT_TRUE(g);
        run(g.get());
        const xm_node *product = first(g.get(), XM_OP_MATMUL);
        EXPECT_EQ(count(g.get(), XM_OP_ROW_CHAIN), 1) << text;
        EXPECT_EQ(xm_value_stored(xm_in(product, 0)), XM_F32);
        for (uint32_t v : {13, 14})
            EXPECT_EQ(type_of(g.get(), v), "f32") << "%" << v;
        EXPECT_EQ(type_of(g.get(), 12), "f16");
    }
}

TEST(AssignPrecision, AFullChainsNormStays)
{
    const std::string steps = "steps=\"out rms_norm x0 c0 1e-6; out add x0 s0; "
                              "out multiply x0 c0; out multiply s0 c0\"";
    expect_types(layer_head + "%10, %11, %12, %13 = row_chain %3, %4 " + steps + R"(
%14 = matmul %10, %6 transpose_b=true
%15, %16 = moe_router %14, _, _ top_k=2
%17 = matmul %10, %5 transpose_b=true
result %15 name="weights"
result %17 name="y"
result %11 name="a"
result %12 name="b"
result %13 name="c")",
                 {11, 12, 13, 14}, {10});
}

TEST(AssignPrecision, AChainsNormHasAnotherResult)
{
    Graph g = parse(layer_head + R"(
%10, %11 = row_chain %3, %4 steps="out multiply x0 c0; out rms_norm s0 c0 1e-6"
%14 = matmul %11, %6 transpose_b=true
%15, %16 = moe_router %14, _, _ top_k=2
result %15 name="weights"
%17 = matmul %11, %5 transpose_b=true
result %17 name="y"
result %10 name="z")");
    const std::vector<Floats> before = evaluate(g.get());
    run(g.get());
    const xm_node *chain = first(g.get(), XM_OP_ROW_CHAIN);
    ASSERT_EQ(chain->n_out, 3u);
    EXPECT_EQ(xm_value_stored(&chain->out[1]), XM_F16);
    EXPECT_EQ(xm_value_stored(&chain->out[2]), XM_F32);
    EXPECT_EQ(xm_in(first(g.get(), XM_OP_MATMUL), 0), &chain->out[2]);
    EXPECT_EQ(evaluate(g.get()), before);
}

TEST(AssignPrecision, ANormThatOnlyARouterReadsIsF32)
{
    expect_types(layer_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%14 = matmul %10, %6 transpose_b=true
%15, %16 = moe_router %14, _, _ top_k=2
result %15 name="weights")",
                 {10, 14, 15}, {3});
}

/* ---- what stays ---- */

TEST(AssignPrecision, InF32NothingIsToBeDone)
{
    const std::string text = layer_head + R"(
%10 = rms_norm %3, %4 epsilon=1e-6
%14 = matmul %10, %6 transpose_b=true
%15, %16 = moe_router %14, _, _ top_k=2
%17 = matmul %10, %5 transpose_b=true
result %15 name="weights"
result %17 name="y")";
    for (xm_element precision : {XM_F32, XM_DYNAMIC}) {
        Graph g = parse(text);
        const std::string before = print(g.get());
        EXPECT_FALSE(run(g.get(), precision));
        EXPECT_EQ(print(g.get()), before);
    }
    Graph g = parse(text);
    EXPECT_FALSE(xm_pass_assign_precision(g.get(), nullptr));
}

/* Each sum searches how its other operand is computed. Each search is short, and the total is
 * bounded. */
TEST(AssignPrecision, ManySumsEndInTime)
{
    std::string text = layer_head;
    uint32_t last = 3;
    for (uint32_t i = 0; i < 3000; i++) {
        text += "%" + std::to_string(10 + 2 * i) + " = tanh %" + std::to_string(last) +
                "\n%" + std::to_string(11 + 2 * i) + " = add %3, %" +
                std::to_string(10 + 2 * i) + "\n";
        last = 11 + 2 * i;
    }
    Graph g = parse(text + "result %" + std::to_string(last) + " name=\"y\"");
    ASSERT_TRUE(g);
    run(g.get());
    EXPECT_EQ(type_of(g.get(), 3), "f32") << "a result reaches back to it";
}

} // namespace
