/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusing rotary embedding, classifying masks, and turning attention with states into attention on
 * a KV cache.
 */
#include "transformations/passes/mask_kind.h"
#include "transformations/passes/slice_last_token.h"
#include "unit_tests/passes/pass_test.h"

namespace
{

/* ---- masks ---- */

/* Positions of keys %10 [1,1,1,S] and of queries %14 [1,1,T,1], in the ops that exporters write. */
const char *const positions = R"(
%0 = parameter i64[batch,past + tokens] name="attention_mask"
%1 = shape_value i64[] {past}
%2 = shape_value i64[] {past + tokens}
%3 = const i64[] {1}
%4 = const i64[] {0}
%5 = range %4, %2, %3 output_type=i64
%6 = shape_value i64[4] {1, 1, 1, past + tokens}
%10 = reshape %5, %6
%11 = range %1, %2, %3 output_type=i64
%12 = shape_value i64[4] {1, 1, tokens, 1}
%14 = reshape %11, %12
%15 = const f32[] {0}
%16 = const f32[] {-65504}
)";

/* The keys that are not padding, [B,1,1,S]. */
const char *const not_padding = R"(
%20 = convert %0 to=boolean
%21 = shape_value i64[4] {batch, 1, 1, past + tokens}
%22 = reshape %20, %21
)";

/* Classifies the mask %90 of a graph. */
xm_mask_kind
classify(const std::string &rest)
{
    Graph g = parse(std::string(positions) + rest + "result %90 name=\"mask\"\n");
    xm_mask_kind kind = {};
    xm_error err = {};
    if (g) {
        EXPECT_EQ(xm_mask_classify(g.get(), xm_in(g->last, 0), &kind, &err), XM_OK)
            << err.text;
    }
    /* the graph is destroyed here: only NULL or not matters */
    kind.key_mask = kind.key_mask ? (xm_value *)1 : nullptr;
    return kind;
}

TEST(MaskKind, CausalIsRecognised)
{
    xm_mask_kind k = classify("%30 = less_equal %10, %14\n%90 = select %30, %15, %16\n");
    EXPECT_TRUE(k.known && k.causal);
    EXPECT_EQ(k.window, 0);
    EXPECT_EQ(k.key_mask, nullptr);
}

TEST(MaskKind, PaddingComesWithTheKeyMask)
{
    xm_mask_kind k = classify(std::string(not_padding) + "%30 = less_equal %10, %14\n"
                                                         "%31 = bitwise_and %30, %22\n"
                                                         "%90 = select %31, %15, %16\n");
    EXPECT_TRUE(k.known && k.causal);
    EXPECT_NE(k.key_mask, nullptr);
}

struct window_case {
    const char *constant, *compare;
    int64_t window;
};

class Windows : public ::testing::TestWithParam<window_case>
{
};

/* The constant with the window's size may have any rank and sign, and be an inclusive or
 * exclusive bound. */
TEST_P(Windows, AreFoundByTheirConstant)
{
    std::string text = std::string("%29 = ") + GetParam().constant +
                       "\n%30 = less_equal %10, %14\n" + GetParam().compare +
                       "\n%31 = bitwise_and %30, %33\n%90 = select %31, %15, %16\n";
    xm_mask_kind k = classify(text);
    EXPECT_TRUE(k.known && k.causal);
    EXPECT_EQ(k.window, GetParam().window);
}

const char *const after = "%32 = add %14, %29\n%33 = greater %10, %32";
const char *const after_or_at = "%32 = add %14, %29\n%33 = greater_equal %10, %32";
const char *const distance = "%32 = subtract %14, %10\n%33 = less %32, %29";

INSTANTIATE_TEST_SUITE_P(
    MaskKind, Windows,
    ::testing::Values(window_case{"const i64[1,1,1,1] {-32}", after, 32},
                      window_case{"const i64[] {-32}", after, 32},
                      window_case{"const i64[1] {-32}", after_or_at, 33},
                      window_case{"const i64[1,1] {512}", distance, 512},
                      window_case{"const i64[] {4096}", distance, 4096}));

TEST(MaskKind, WithoutCausalityItIsStillAMask)
{
    xm_mask_kind k =
        classify(std::string(not_padding) + "%30 = shape_value i64[4] "
                                            "{batch, 1, tokens, past + tokens}\n"
                                            "%31 = broadcast %22, %30 mode=numpy\n"
                                            "%90 = select %31, %15, %16\n");
    EXPECT_TRUE(k.known);
    EXPECT_FALSE(k.causal);
}

TEST(MaskKind, ChunksAreNotTakenForWindows)
{
    /* ^Each query sees the keys of its own block of 32. Near the end of a block this looks like a
     * window. */
    xm_mask_kind k = classify("%29 = const i64[] {32}\n"
                              "%27 = divide %10, %29\n%28 = divide %14, %29\n"
                              "%33 = equal %27, %28\n"
                              "%30 = less_equal %10, %14\n"
                              "%31 = bitwise_and %30, %33\n%90 = select %31, %15, %16\n");
    EXPECT_FALSE(k.known);
}

TEST(MaskKind, AConstantThatCannotBeProbedLeavesItUnknown)
{
    EXPECT_FALSE(classify("%29 = const i64[] {1000000}\n%32 = subtract %14, %10\n"
                          "%33 = less %32, %29\n%30 = less_equal %10, %14\n"
                          "%31 = bitwise_and %30, %33\n%90 = select %31, %15, %16\n")
                     .known);
}

TEST(MaskKind, ASlopedBiasIsNotAMask)
{
    EXPECT_FALSE(classify("%30 = subtract %10, %14\n%90 = convert %30 to=f32\n").known);
}

TEST(MaskKind, OtherInputsLeaveItUnknown)
{
    EXPECT_FALSE(classify("%50 = parameter f32[1,1,tokens,past + tokens] name=\"bias\"\n"
                          "%30 = less_equal %10, %14\n%91 = select %30, %15, %16\n"
                          "%90 = add %91, %50\n")
                     .known);
}

/* Evaluating the mask needs an input whose sizes do not fit: the mask is unknown. */
TEST(MaskKind, AnInputThatIsNoKeyMaskLeavesItUnknown)
{
    EXPECT_FALSE(classify("%50 = parameter i64[batch,tokens] name=\"position_ids\"\n"
                          "%51 = shape_value i64[4] {batch, 1, tokens, 1}\n"
                          "%52 = reshape %50, %51\n"
                          "%30 = less_equal %10, %52\n%90 = select %30, %15, %16\n")
                     .known);
}

/* ---- rope ---- */

std::string
rope_text(const char *upper, const char *negate)
{
    return std::string(R"(
%0 = parameter f32[batch,2,tokens,8] name="x"
%1 = parameter f32[batch,1,tokens,8] name="cos"
%2 = parameter f32[batch,1,tokens,8] name="sin"
%3 = const i64[1] {4}
%4 = const i64[1] {9223372036854775807}
%5 = const i64[1] {1}
%6 = const i64[1] {3}
%7 = const i64[1] {0}
%8 = const f32[] {-1}
)") + upper +
           R"(
%11 = slice %0, %7, %3, %5, %6
)" + negate +
           R"(
%13 = concat %12, %11 axis=3
%14 = multiply %0, %1
%15 = multiply %13, %2
%16 = add %15, %14
result %16 name="y"
)";
}

const char *const upper_half = "%10 = slice %0, %3, %4, %5, %6";

TEST(FuseRope, TakesBothSpellingsOfMinus)
{
    for (const char *negate : {"%12 = multiply %8, %10", "%12 = negative %10"}) {
        Graph g = parse(rope_text(upper_half, negate));
        ASSERT_TRUE(g);
        /* the results are equal, too */
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rope));
        EXPECT_EQ(count(g.get(), XM_OP_ROPE), 1);
        EXPECT_EQ(count(g.get(), XM_OP_SLICE), 0);
    }
}

TEST(FuseRope, TakesTokensBeforeHeads)
{
    std::string text = rope_text(upper_half, "%12 = negative %10");
    text = replaced(text, "f32[batch,2,tokens,8]", "f32[batch,tokens,2,8]");
    for (int table = 0; table < 2; table++)
        text = replaced(text, "f32[batch,1,tokens,8]", "f32[batch,tokens,1,8]");
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rope));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE), 1);
    EXPECT_EQ(count(g.get(), XM_OP_TRANSPOSE), 0);
}

/* Returns a rotation written as two halves, with tables for one half. `split` defines the halves
 * %10 and %11. */
std::string
pairs_text(const std::string &split)
{
    return R"(
%0 = parameter f32[batch,2,tokens,8] name="x"
%1 = parameter f32[batch,1,tokens,4] name="cos"
%2 = parameter f32[batch,1,tokens,4] name="sin"
%3 = const i64[] {-1}
%4 = const i64[2] {4, 4}
%5 = const i64[2] {2, 6}
)" + split +
           R"(
%13 = multiply %10, %1
%14 = multiply %11, %2
%15 = subtract %13, %14
%16 = multiply %11, %1
%17 = multiply %10, %2
%18 = add %16, %17
%19 = concat %15, %18 axis=-1
result %19 name="y"
)";
}

TEST(FuseRope, TakesPairsOfASplit)
{
    for (const char *split :
         {"%10, %11 = split %0, %3 n=2", "%10, %11 = variadic_split %0, %3, %4"}) {
        Graph g = parse(pairs_text(split));
        ASSERT_TRUE(g);
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rope));
        EXPECT_EQ(count(g.get(), XM_OP_ROPE), 1);
        EXPECT_EQ(count(g.get(), XM_OP_CONCAT), 2); /* of the tables */
        EXPECT_EQ(count(g.get(), XM_OP_MULTIPLY), 0);
    }
}

TEST(FuseRope, LeavesOtherPairsAlone)
{
    std::string text = pairs_text("%10, %11 = split %0, %3 n=2");
    expect_leaves(xm_pass_fuse_rope,
                  replaced(text, "%14 = multiply %11, %2", "%14 = multiply %11, %1"));
    expect_leaves(xm_pass_fuse_rope,
                  replaced(text, "subtract %13, %14", "subtract %14, %13"));
}

TEST(FuseRope, LeavesOtherHalvesAlone)
{
    expect_leaves(xm_pass_fuse_rope, rope_text("%17 = const i64[1] {2}\n"
                                               "%18 = const i64[1] {6}\n"
                                               "%10 = slice %0, %17, %18, %5, %6",
                                               "%12 = negative %10"));
}

/* Returns a rotation of the first six of ten columns. `rest` defines %30, the result with the
 * other columns. */
std::string
part_text(const std::string &rest)
{
    return R"(
%0 = parameter f32[batch,2,tokens,10] name="x"
%1 = parameter f32[batch,1,tokens,6] name="cos"
%2 = parameter f32[batch,1,tokens,6] name="sin"
%3 = const i64[1] {3}
%4 = const i64[1] {9223372036854775807}
%5 = const i64[1] {1}
%6 = const i64[1] {0}
%7 = const i64[1] {6}
%8 = const i64[1] {7}
%9 = slice %0, %6, %7, %5, %3
%10 = slice %9, %3, %4, %5, %3
%11 = slice %9, %6, %3, %5, %3
%12 = negative %10
%13 = concat %12, %11 axis=3
%14 = multiply %9, %1
%15 = multiply %13, %2
%16 = add %15, %14
)" + rest + R"(
result %30 name="y"
)";
}

TEST(FuseRope, TakesTheFirstColumns)
{
    const std::string text = part_text("%20 = slice %0, %7, %4, %5, %3\n"
                                       "%30 = concat %16, %20 axis=-1\n");
    std::string before = replaced(text, "[batch,2,tokens,10]", "[batch,tokens,2,10]");
    for (int table = 0; table < 2; table++)
        before = replaced(before, "[batch,1,tokens,6]", "[batch,tokens,1,6]");
    for (const std::string &layout : {text, before}) {
        Graph g = parse(layout);
        ASSERT_TRUE(g);
        /* the results are equal, too */
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rope));
        EXPECT_EQ(count(g.get(), XM_OP_ROPE), 1);
        EXPECT_EQ(count(g.get(), XM_OP_SLICE), 0) << print(g.get());
        EXPECT_EQ(count(g.get(), XM_OP_CONCAT), 0) << print(g.get());
    }
}

TEST(FuseRope, LeavesOtherPartsAlone)
{
    for (const char *rest : {/* the unrotated columns first */
                             "%20 = slice %0, %7, %4, %5, %3\n"
                             "%30 = concat %20, %16 axis=-1\n",
                             /* a column is missing */
                             "%20 = slice %0, %8, %4, %5, %3\n"
                             "%30 = concat %16, %20 axis=-1\n",
                             /* the columns come from another value */
                             "%19 = exp %0\n%20 = slice %19, %7, %4, %5, %3\n"
                             "%30 = concat %16, %20 axis=-1\n"}) {
        Graph g = parse(part_text(rest));
        ASSERT_TRUE(g);
        /* the rotation of six columns */
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_rope));
        EXPECT_EQ(count(g.get(), XM_OP_CONCAT), 1) << print(g.get());
    }
}

/* ---- attention ---- */

/* One layer with grouped heads and states; `mask` defines the mask %80. */
std::string
attention_text(const std::string &mask, const char *result = "%72 = transpose %71, %70")
{
    std::string text = positions;
    text += R"(
%40 = parameter f32[batch,tokens,4,8] name="q"
%41 = parameter f32[batch,tokens,2,8] name="k"
%42 = parameter f32[batch,tokens,2,8] name="v"
%43 = parameter i32[batch] name="beam_idx"
%70 = const i64[4] {0, 2, 1, 3}
%44 = transpose %40, %70
%45 = transpose %41, %70
%46 = transpose %42, %70
%47 = const i64[] {0}
%48 = shape_value i64[4] {batch, 2, 0, 8}
%49 = broadcast %15, %48 mode=numpy
%50 = read_value f32[batch,2,past,8] %49 variable="k"
%51 = read_value f32[batch,2,past,8] %49 variable="v"
%52 = gather %50, %43, %47
%53 = gather %51, %43, %47
%54 = concat %52, %45 axis=2
%55 = concat %53, %46 axis=-2
%68 = assign %54 variable="k"
%69 = assign %55 variable="v"
%56 = shape_value i64[5] {batch, 2, 1, past + tokens, 8}
%57 = shape_value i64[5] {batch, 2, 2, past + tokens, 8}
%58 = shape_value i64[4] {batch, 4, past + tokens, 8}
%59 = reshape %54, %56
%60 = broadcast %59, %57 mode=bidirectional
%61 = reshape %60, %58
%62 = reshape %55, %56
%63 = broadcast %62, %57 mode=bidirectional
%64 = reshape %63, %58
%65 = const f32[] {0.25}
)";
    return text + mask + "%71 = sdpa %44, %61, %64, %80, %65\n" + result +
           "\nresult %72 name=\"y\"\n";
}

const char *const causal_mask = "%30 = less_equal %10, %14\n%80 = select %30, %15, %16\n";

TEST(SdpaToPagedAttention, TakesStatesGroupedHeadsAndTheMask)
{
    Graph g = parse(attention_text(causal_mask));
    EXPECT_TRUE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    expect_valid(g.get());
    const xm_node *n = first(g.get(), XM_OP_ATTENTION);
    ASSERT_NE(n, nullptr);
    EXPECT_TRUE(n->attr.attention.causal);
    EXPECT_FLOAT_EQ(n->attr.attention.scale, 0.25f);
    EXPECT_STREQ(n->attr.attention.key_state, "k");
    EXPECT_EQ(xm_in(n, XM_ATTENTION_K)->node->op,
              XM_OP_PARAMETER); /* no transposes are left */
    for (enum xm_op op : {XM_OP_SDPA, XM_OP_READ_VALUE, XM_OP_ASSIGN, XM_OP_TRANSPOSE,
                          XM_OP_CONCAT, XM_OP_SELECT})
        EXPECT_EQ(count(g.get(), op), 0) << xm_op_info(op)->text;
}

/* With one head, exporters may reshape instead of transposing. */
TEST(SdpaToPagedAttention, TakesOneHeadThatIsReshaped)
{
    std::string text = attention_text(causal_mask);
    const std::pair<const char *, const char *> one_head[] = {
        {"tokens,2,8]", "tokens,1,8]"},
        {"{batch, 2, 0,", "{batch, 1, 0,"},
        {"[batch,2,past", "[batch,1,past"},
        {"{batch, 2, 1, past", "{batch, 1, 1, past"},
        {"{batch, 2, 2, past", "{batch, 1, 4, past"},
        {"= transpose %41, %70", "= reshape %41, %79"},
        {"= transpose %42, %70", "= reshape %42, %79"},
        {"%44 = ", "%79 = shape_value i64[4] {batch, 1, tokens, 8}\n%44 = "}};
    for (const auto &[from, to] : one_head)
        for (size_t at = 0; (at = text.find(from, at)) != text.npos;
             at += std::string(to).size())
            text.replace(at, std::string(from).size(), to);
    Graph g = parse(text);
    EXPECT_TRUE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    expect_valid(g.get());
    const xm_node *n = first(g.get(), XM_OP_ATTENTION);
    ASSERT_NE(n, nullptr);
    EXPECT_EQ(xm_in(n, XM_ATTENTION_K)->node->op, XM_OP_PARAMETER);
    EXPECT_EQ(xm_in(n, XM_ATTENTION_V)->node->op, XM_OP_PARAMETER);
    EXPECT_EQ(count(g.get(), XM_OP_TRANSPOSE) + count(g.get(), XM_OP_RESHAPE), 0);
}

TEST(SdpaToPagedAttention, KeepsAMaskThatItDoesNotKnow)
{
    Graph g =
        parse(attention_text("%30 = subtract %10, %14\n%80 = convert %30 to=f32\n"));
    EXPECT_TRUE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    expect_valid(g.get());
    const xm_node *n = first(g.get(), XM_OP_ATTENTION);
    ASSERT_NE(n, nullptr);
    EXPECT_FALSE(n->attr.attention.causal);
    EXPECT_FALSE(xm_is_none(xm_in(n, XM_ATTENTION_MASK)));
}

/* Evaluates three tokens, then two more with the states that the first run left. Returns the
 * results of the second run. */
std::vector<Floats>
continued(const xm_graph *g)
{
    std::unique_ptr<xm_state_store, decltype(&xm_state_store_destroy)> states(
        xm_state_store_create(), xm_state_store_destroy);
    evaluate(g, {{"batch", 2}, {"tokens", 3}, {"past", 0}}, states.get());
    return evaluate(g, {{"batch", 2}, {"tokens", 2}, {"past", 3}}, states.get());
}

/* The pass may change the layer or not; with a past, the results must stay equal. */
void
expect_same_on_a_past(const std::string &text)
{
    std::string own = replaced(replaced(text, "concat %52", "concat %50"), "concat %53",
                               "concat %51"); /* beam indices are ignored */
    Graph before = parse(own), after = parse(own);
    ASSERT_TRUE(before && after);
    xm_pass_sdpa_to_paged_attention(after.get(), nullptr);
    EXPECT_STREQ(after->err.text, "");
    expect_close(continued(before.get()), continued(after.get()));
}

/* A mask made from position ids: a parameter with two dimensions, like the key mask, but not one.
 */
const char *const mask_of_ids = R"(
%81 = parameter i64[batch,tokens] name="position_ids"
%82 = reshape %81, %12
%30 = less_equal %10, %82
%80 = select %30, %15, %16
)";

TEST(SdpaToPagedAttention, MeansTheSameOnAPast)
{
    for (const char *mask :
         {causal_mask, "%30 = subtract %10, %14\n%80 = convert %30 to=f32\n"})
        expect_same_on_a_past(attention_text(mask));
}

/* The attribute `causal` of sdpa aligns to the first key: query i sees keys 0 ... i, however many
 * there are (OpenVINO, ScaledDotProductAttention-13). Attention on a cache aligns to the last
 * key. So the pass must leave it. */
TEST(SdpaToPagedAttention, LeavesACausalOneOnStatesAlone)
{
    std::string text = replaced(attention_text(causal_mask), "%64, %80, %65",
                                "%64, %80, %65 causal=true");
    expect_same_on_a_past(text);
    Graph g = parse(text);
    EXPECT_FALSE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    EXPECT_EQ(count(g.get(), XM_OP_SDPA), 1);
}

TEST(SdpaToPagedAttention, AMaskOfPositionIdsStaysAnOperand)
{
    std::string text = replaced(attention_text(mask_of_ids), "{1, 1, tokens, 1}",
                                "{batch, 1, tokens, 1}");
    expect_same_on_a_past(text);
    Graph g = parse(text);
    EXPECT_TRUE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    EXPECT_STREQ(g->err.text, "");
    const xm_node *n = first(g.get(), XM_OP_ATTENTION);
    ASSERT_NE(n, nullptr);
    EXPECT_EQ(xm_in(n, XM_ATTENTION_MASK)->node->op, XM_OP_SELECT);
    EXPECT_TRUE(xm_is_none(xm_in(n, XM_ATTENTION_KEY_MASK)));
}

TEST(SdpaToPagedAttention, HeadMajorUsersGetATranspose)
{
    Graph g = parse(attention_text(causal_mask, "%72 = sqrt %71"));
    EXPECT_TRUE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
    expect_valid(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_TRANSPOSE), 1);
}

TEST(SdpaToPagedAttention, LeavesAttentionWithoutStatesAlone)
{
    Graph g = parse(R"(
%0 = parameter f32[batch,4,tokens,8] name="q"
%1 = parameter f32[batch,4,tokens,8] name="k"
%2 = sdpa %0, %1, %1 causal=true
result %2 name="y"
)");
    EXPECT_FALSE(xm_pass_sdpa_to_paged_attention(g.get(), nullptr));
}

/* ---- the last token ---- */

TEST(SliceLastToken, SlicesBeforeTheHead)
{
    Graph g = parse(R"(
%0 = parameter f32[batch,tokens,8] name="x"
%1 = weight f32[16,8] f32 @1
%2 = matmul %0, %1 transpose_b=true
%3 = const f32[] {30}
%4 = divide %2, %3
%5 = tanh %4
result %5 name="logits"
)");
    EXPECT_TRUE(xm_pass_slice_last_token(g.get()));
    expect_valid(g.get());
    EXPECT_TRUE(xm_dim_is(xm_in(g->last, 0)->type.shape.dim[1], 1));
    EXPECT_FALSE(xm_pass_slice_last_token(g.get()));
}

TEST(SliceLastToken, OrGathersThoseThatAnInputSays)
{
    Graph g = parse(R"(
%0 = parameter f32[batch,tokens,8] name="x"
%1 = weight f32[16,8] f32 @1
%2 = matmul %0, %1 transpose_b=true
result %2 name="logits"
)");
    EXPECT_TRUE(xm_pass_gather_sampled_tokens(g.get()));
    expect_valid(g.get());
    xm_dim rows = xm_in(g->last, 0)->type.shape.dim[1];
    ASSERT_EQ(xm_dim_symbols(rows), 1u);
    EXPECT_STREQ(xm_dim_symbol_name(rows, 0), "samples");
    EXPECT_FALSE(xm_pass_gather_sampled_tokens(g.get()));
}

TEST(SliceLastToken, LeavesAHeadWithOtherUsersAlone)
{
    Graph g = parse(R"(
%0 = parameter f32[batch,tokens,8] name="x"
%1 = weight f32[16,8] f32 @1
%2 = matmul %0, %1 transpose_b=true
result %2 name="logits"
result %2 name="again"
)");
    EXPECT_FALSE(xm_pass_slice_last_token(g.get()));
}

} // namespace
