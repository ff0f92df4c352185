/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusing the router, the shared expert, and both with the experts into one op.
 */
#include "unit_tests/passes/moe_text.h"
#include "unit_tests/passes/pass_test.h"

namespace
{
/* Returns logits %2 of 4 experts, the lines `routing`, and a moe op that reads the weights and
 * ids named by `choice`. */
std::string
routed(const std::string &routing, const std::string &choice = "%40, %5",
       const std::string &op = "moe", const std::string &more = "")
{
    return "%0 = parameter f32[T,8] name=\"x\"\n%2 = parameter f32[T,4] name=\"logits\"\n"
           "%3 = const i64[] {2}\n%33 = const i64[1] {1}\n" +
           expert_weights() + "\n" + routing + "\n%50 = " + op + " %0, " + choice +
           ", _, _, %6, %7, %8, _, _, _, _, _, _ hidden_size=8 inter_size=4 num_expert=4 "
           "top_k=2" +
           more + "\nresult %50 name=\"y\"\n";
}

const char *softmax_topk = R"(
    %30 = softmax %2 axis=1
    %4, %5 = topk %30, %3 axis=1 mode=max sort=value)";

const std::string normalised = std::string(softmax_topk) + R"(
    %34 = reduce_sum %4, %33 keep_dims=true
    %40 = divide %4, %34)";

const std::string chosen_sigmoid = R"(
    %30 = sigmoid %2
    %31 = const f32[1,4] {0.5, -0.25, 0.125, 0}
    %32 = add %30, %31
    %4, %5 = topk %32, %3 axis=1 mode=max sort=value
    %41 = gather_elements %30, %5 axis=1
    %34 = reduce_sum %41, %33 keep_dims=true
    %35 = const f32[1,1] {0.001}
    %36 = add %34, %35
    %40 = divide %41, %36)";

xm_moe_routing
router(const std::string &text)
{
    Graph g = parse(text);
    xm_moe_routing none = {};
    if (!g)
        return none;
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router)) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_TOPK), 0) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_MOE_ROUTER), 1) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_DIVIDE) + count(g.get(), XM_OP_GATHER), 0);
    xm_node *n = first(g.get(), XM_OP_MOE_ROUTER);
    return n ? n->attr.router : none;
}
} // namespace

TEST(FuseMoeRouter, TakesSoftmaxWithAndWithoutNormalisation)
{
    expect_rewrites(xm_pass_fuse_moe_router, routed(normalised),
                    routed("%40, %41 = moe_router %2, _, _ top_k=2", "%40, %41"));
    xm_moe_routing r = router(routed(softmax_topk, "%4, %5"));
    EXPECT_EQ(r.kind, XM_ROUTING_SOFTMAX);
    EXPECT_FALSE(r.normalise);
}

TEST(FuseMoeRouter, TakesSoftmaxOfTheChosen)
{
    xm_moe_routing r = router(routed(R"(
    %4, %5 = topk %2, %3 axis=1 mode=max sort=value
    %40 = softmax %4 axis=1)"));
    EXPECT_EQ(r.kind, XM_ROUTING_SOFTMAX_TOPK);
    EXPECT_EQ(r.top_k, 2);
}

TEST(FuseMoeRouter, TakesSigmoidWithAndWithoutBias)
{
    xm_moe_routing r = router(routed(chosen_sigmoid));
    EXPECT_EQ(r.kind, XM_ROUTING_SIGMOID_BIAS);
    EXPECT_TRUE(r.normalise);
    EXPECT_FLOAT_EQ(r.epsilon, 0.001f);
    r = router(routed(replaced(chosen_sigmoid, "topk %32", "topk %30")));
    EXPECT_EQ(r.kind, XM_ROUTING_SIGMOID_BIAS);
    r = router(routed(R"(
    %30 = sigmoid %2
    %4, %5 = topk %30, %3 axis=1 mode=max sort=value)",
                      "%4, %5"));
    EXPECT_EQ(r.kind, XM_ROUTING_SIGMOID_BIAS);
    EXPECT_FALSE(r.normalise);
}

/* sqrt(softplus(x)) takes two ops, but is recognized in each form that a sigmoid is. */
TEST(FuseMoeRouter, TakesSqrtSoftplusWithAndWithoutBias)
{
    const std::string scores = "%29 = softplus %2\n%30 = sqrt %29";
    const std::string chosen = replaced(chosen_sigmoid, "%30 = sigmoid %2", scores);
    xm_moe_routing r = router(routed(chosen));
    EXPECT_EQ(r.kind, XM_ROUTING_SQRT_SOFTPLUS);
    EXPECT_TRUE(r.normalise);
    r = router(routed(replaced(chosen, "topk %32", "topk %30")));
    EXPECT_EQ(r.kind, XM_ROUTING_SQRT_SOFTPLUS);
    r = router(
        routed(scores + "\n%4, %5 = topk %30, %3 axis=1 mode=max sort=value", "%4, %5"));
    EXPECT_EQ(r.kind, XM_ROUTING_SQRT_SOFTPLUS);
    EXPECT_FALSE(r.normalise);
}

/* Forms of w / sum(w) that exporters write: each divisor is tested with each way of dividing. */
TEST(FuseMoeRouter, TakesEverySpellingOfTheNormalisation)
{
    const std::string number = "\n%60 = const f32[1,1] {";
    const struct {
        std::string text; /* the lines that compute the divisor %36 from the sum %34 */
        float epsilon, least;
    } sums[] = {
        {number + "0.75}\n%36 = add %34, %60", 0.75f, 0},
        {number + "0.75}\n%36 = maximum %60, %34", 0, 0.75f},
        {"\n%36 = clamp %34 min=0.75 max=inf", 0, 0.75f},
        {"\n%36 = clamp %34 min=0.75 max=2", 0, 0.75f},
    };
    const std::string divisions[] = {
        "\n%40 = divide %W, %36",
        "\n%61 = const f32[] {-1}\n%62 = power %36, %61\n%40 = multiply %W, %62",
        "\n%61 = const f32[1,1] {1}\n%62 = divide %61, %36\n%40 = multiply %62, %W",
    };
    const std::pair<const char *, const char *> choices[] = {{R"(
    %30 = softmax %2 axis=1
    %4, %5 = topk %30, %3 axis=1 mode=max sort=value)",
                                                              "%4"},
                                                             {R"(
    %4, %5 = topk %2, %3 axis=1 mode=max sort=value
    %41 = softmax %4 axis=1)",
                                                              "%41"},
                                                             {R"(
    %30 = sigmoid %2
    %4, %5 = topk %30, %3 axis=1 mode=max sort=value)",
                                                              "%4"}};
    for (const auto &[choice, weights] : choices) {
        for (std::string division : divisions) {
            const std::string sum =
                std::string("\n%34 = reduce_sum ") + weights + ", %33 keep_dims=true";
            division = replaced(division, "%W", weights);
            for (const auto &s : sums) {
                SCOPED_TRACE(choice + sum + s.text + division);
                const xm_moe_routing r = router(routed(choice + sum + s.text + division));
                EXPECT_TRUE(r.normalise);
                EXPECT_FLOAT_EQ(r.epsilon, s.epsilon);
                EXPECT_FLOAT_EQ(r.least_sum, s.least);
            }
            EXPECT_TRUE(router(routed(choice + sum + replaced(division, "%36", "%34")))
                            .normalise);
        }
    }
}

TEST(FuseMoeRouter, LeavesSumsThatAreClampedFromAbove)
{
    Graph g = parse(routed(std::string(softmax_topk) + R"(
    %34 = reduce_sum %4, %33 keep_dims=true
    %36 = clamp %34 min=0.25 max=1.5
    %40 = divide %4, %36)"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router));
    EXPECT_EQ(count(g.get(), XM_OP_DIVIDE), 1);
}

TEST(FuseMoeRouter, TakesScales)
{
    std::string text = replaced(normalised, "%40 = divide", "%41 = divide") + R"(
    %42 = const f32[4] {1, 2, 3, 4}
    %43 = const i64[] {0}
    %44 = gather %42, %5, %43
    %45 = multiply %41, %44
    %46 = const f32[] {2.5}
    %47 = multiply %45, %46
    %48 = const f32[1] {2}
    %40 = multiply %48, %47)";
    Graph g = parse(routed(text));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router));
    xm_node *n = first(g.get(), XM_OP_MOE_ROUTER);
    ASSERT_TRUE(n);
    EXPECT_FLOAT_EQ(n->attr.router.scale, 5.0f);
    EXPECT_FALSE(xm_is_none(xm_in(n, 2)));
    EXPECT_EQ(count(g.get(), XM_OP_MULTIPLY), 0);
}

TEST(FuseMoeRouter, KeepsIdsThatOthersRead)
{
    Graph g = parse(
        routed(replaced(normalised, "sort=value", "sort=value index_element_type=i64")) +
        "result %5 name=\"ids\"\n");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router));
    /* the one that restores i64 for the result */
    EXPECT_EQ(count(g.get(), XM_OP_CONVERT), 1);
}

TEST(FuseMoeRouter, LeavesOtherChoices)
{
    const std::string text = routed(normalised);
    expect_leaves(xm_pass_fuse_moe_router,
                  replaced(text, "softmax %2 axis=1", "softmax %2 axis=0"));
    expect_leaves(xm_pass_fuse_moe_router, replaced(text, "mode=max", "mode=min"));
    expect_leaves(xm_pass_fuse_moe_router, replaced(text, "sort=value", "sort=index"));
    expect_leaves(xm_pass_fuse_moe_router,
                  replaced(text, "result %50", "result %30 name=\"z\"\nresult %50"));
    /* no experts */
    expect_leaves(xm_pass_fuse_moe_router, R"(
        %2 = parameter f32[T,4] name="logits"
        %3 = const i64[] {2}
        %30 = softmax %2 axis=1
        %4, %5 = topk %30, %3 axis=1 mode=max sort=value
        result %4 name="w"
        result %5 name="ids")");
}

TEST(FuseMoeRouter, DoesNotNormaliseOverAnotherAxisOrForOthers)
{
    Graph g = parse(replaced(routed(normalised), "i64[1] {1}", "i64[1] {0}"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router));
    EXPECT_EQ(count(g.get(), XM_OP_DIVIDE), 1);
    g = parse(routed(normalised) + "result %4 name=\"z\"\n");
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_router));
    EXPECT_EQ(count(g.get(), XM_OP_DIVIDE), 1);
}

/* ---- fuse_moe_shared_expert -------------------------------------------------------- */

namespace
{
std::string
with_shared(const std::string &tail, const std::string &more = "")
{
    return routing_parameters() + expert_weights() +
           R"(
        %40 = weight f32[6,8] u8 group=8 scale=f16 @40
        %41 = weight f32[6,8] u8 group=8 scale=f16 @41
        %42 = weight f32[8,6] u8 group=6 scale=f16 @42
        %43 = weight f32[1,8] f32 @43
        %50 = moe_compressed %0, %1, %5, _, _, %6, %7, %8, _, _, _, _, _, _)"
           R"( hidden_size=8 inter_size=4 num_expert=4 top_k=2 group_size=4 has_zp=true)" +
           more + R"(
        %51 = matmul %0, %40 transpose_b=true
        %52 = matmul %0, %41 transpose_b=true
        %53 = glu %51, %52
        %54 = matmul %53, %42 transpose_b=true)" +
           tail + "\nresult %60 name=\"y\"\n";
}

void
expect_shared(const std::string &text, bool gated)
{
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_shared_expert)) << print(g.get());
    xm_node *n = first(g.get(), XM_OP_MOE_COMPRESSED);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.moe.shared, 1);
    EXPECT_EQ(!xm_is_none(xm_in(n, XM_MOE_SHARED_GATE_GATE)), gated);
    EXPECT_EQ(count(g.get(), XM_OP_ADD), 0);
    EXPECT_EQ(count(g.get(), XM_OP_MATMUL), 0);
}

const char *gate = R"(
        %55 = matmul %0, %43 transpose_b=true
        %56 = sigmoid %55
        %57 = multiply %56, %54)";
} // namespace

TEST(FuseMoeSharedExpert, TakesBothOrdersWithAndWithoutGate)
{
    expect_shared(with_shared("\n%60 = add %50, %54"), false);
    expect_shared(with_shared("\n%60 = add %54, %50"), false);
    expect_shared(with_shared(std::string(gate) + "\n%60 = add %50, %57"), true);
    expect_shared(with_shared(std::string(gate) + "\n%60 = add %57, %50"), true);
}

TEST(FuseMoeSharedExpert, LooksThroughReshapes)
{
    expect_shared(with_shared(std::string(gate) + R"(
        %61 = shape_value i64[3] {1, T, 8}
        %62 = reshape %50, %61
        %63 = reshape %57, %61
        %60 = add %62, %63)"),
                  true);
}

TEST(FuseMoeSharedExpert, LeavesOtherSums)
{
    auto leaves = [](const std::string &text) {
        expect_leaves(xm_pass_fuse_moe_shared_expert, text);
    };
    const std::string text = with_shared("\n%60 = add %50, %54");
    leaves(replaced(text, "%51 = matmul %0",
                    /* other tokens than the experts' */
                    "%70 = exp %0\n%51 = matmul %70"));
    leaves(replaced(replaced(text, "%51 = matmul %0", "%70 = exp %0\n%51 = matmul %70"),
                    "%52 = matmul %0", "%52 = matmul %70"));
    leaves(replaced(text, "glu %51, %52", "glu %51, %52 activation=gelu_erf"));
    leaves(text + "result %54 name=\"z\"\n");
    leaves(text + "result %50 name=\"z\"\n");
    leaves(replaced(text, "add %50, %54", "multiply %50, %54"));
    leaves(replaced(text, "add %50, %54", "add %50, %0"));
}

TEST(FuseMoeSharedExpert, AsksWhetherItCanRun)
{
    xm_caps caps = {};
    caps.can_run = [](const void *, enum xm_op, const union xm_attr *attr,
                      xm_value *const *, uint32_t, const char **why) {
        *why = "no shared experts here";
        return attr->moe.shared == 0;
    };
    Graph g = parse(with_shared("\n%60 = add %50, %54"));
    ASSERT_TRUE(g);
    EXPECT_FALSE(run_pass(g.get(), xm_pass_fuse_moe_shared_expert, &caps));
}

/* ---- fuse_moe_3gemm_compressed ----------------------------------------------------- */

namespace
{
std::string
compressed(const std::string &router)
{
    return routed(router, "%40, %41", "moe_compressed", " group_size=4 has_zp=true");
}
} // namespace

TEST(FuseMoe3GemmCompressed, JoinsRouterAndExperts)
{
    Graph g = parse(compressed(R"(
        %60 = const f32[4] {1, 2, 3, 4}
        %40, %41 = moe_router %2, %60, _ top_k=2 routing=sigmoid_bias epsilon=0.5 scale=2)"));
    ASSERT_TRUE(g);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_3gemm_compressed));
    xm_node *n = first(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.moe.routing.kind, XM_ROUTING_SIGMOID_BIAS);
    EXPECT_FLOAT_EQ(n->attr.moe.routing.epsilon, 0.5f);
    EXPECT_FLOAT_EQ(n->attr.moe.routing.scale, 2.0f);
    EXPECT_FALSE(xm_is_none(xm_in(n, XM_MOE_ROUTER_BIAS)));
    EXPECT_TRUE(xm_is_none(xm_in(n, XM_MOE_IDS)));
    EXPECT_EQ(count(g.get(), XM_OP_MOE_ROUTER), 0);
}

/* The experts are fused with any routing; then they read its weights and ids. */
TEST(FuseMoe3GemmCompressed, TakesAnyRoutingByItsIds)
{
    const std::string text = compressed("%42, %43 = moe_router %2, _, _ top_k=2\n"
                                        "%40, %41 = moe_router %2, _, _ top_k=2");
    for (const std::string &t :
         {routed(normalised, "%40, %5", "moe_compressed"),
          text + "result %40 name=\"z\"\n", text + "result %41 name=\"z\"\n",
          replaced(text, "moe_compressed %0, %40, %41", "moe_compressed %0, %40, %43")}) {
        Graph g = parse(t);
        ASSERT_TRUE(g);
        const xm_node *before = first(g.get(), XM_OP_MOE_COMPRESSED);
        const xm_value *weights = xm_in(before, XM_MOE_ROUTING),
                       *ids = xm_in(before, XM_MOE_IDS);
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_moe_3gemm_compressed));
        const xm_node *n = first(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
        ASSERT_TRUE(n) << print(g.get());
        EXPECT_EQ(xm_in(n, XM_MOE_ROUTING), weights);
        EXPECT_EQ(xm_in(n, XM_MOE_IDS), ids);
    }
}

TEST(FuseMoe3GemmCompressed, AsksWhetherItCanRun)
{
    xm_caps caps = {};
    caps.can_run = [](const void *, enum xm_op op, const union xm_attr *,
                      xm_value *const *, uint32_t, const char **why) {
        *why = "no fused op here";
        return op != XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    };
    Graph g = parse(compressed("%40, %41 = moe_router %2, _, _ top_k=2"));
    ASSERT_TRUE(g);
    EXPECT_FALSE(run_pass(g.get(), xm_pass_fuse_moe_3gemm_compressed, &caps));
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr, &caps), "");
    EXPECT_EQ(count(g.get(), XM_OP_GATHER_MATMUL), 3);
}
