/* SPDX-License-Identifier: Apache-2.0
 *
 * The rewrite engine: what a pattern matches, in which orders, and what it says when it does
 * not.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{
xm_pat
var(int slot)
{
    xm_pat p = {};
    p.kind = XM_PAT_VAR;
    p.slot = slot;
    return p;
}

xm_pat
op(enum xm_op id, std::vector<const xm_pat *> in, int slot = -1)
{
    xm_pat p = {};
    p.kind = XM_PAT_OP;
    p.op = id;
    p.slot = slot;
    for (size_t i = 0; i < in.size(); i++)
        p.in[i] = in[i];
    return p;
}

xm_pat
scalar(double number)
{
    xm_pat p = {};
    p.kind = XM_PAT_SCALAR;
    p.slot = -1;
    p.number = number;
    return p;
}

enum { X, Y };
const xm_pat x = var(X), y = var(Y), one = scalar(1.0);

/* exp(x) * (x + y) */
const xm_pat exp_x = op(XM_OP_EXP, {&x});
const xm_pat x_plus_y = op(XM_OP_ADD, {&x, &y});
const xm_pat product = op(XM_OP_MULTIPLY, {&exp_x, &x_plus_y});

const std::string text = R"(
    %0 = parameter f32[T] name="a"
    %1 = parameter f32[T] name="b"
    %2 = exp %0
    %3 = add %0, %1
    %4 = multiply %2, %3
    result %4 name="r")";

bool
matches(const std::string &graph, const xm_pat &find = product)
{
    Graph g = parse(graph);
    xm_match m = {};
    m.graph = g.get();
    return g && xm_match_value(&m, &find, xm_in(g->last, 0));
}
} // namespace

TEST(Match, BindsASlotToOneValueInEveryOrder)
{
    EXPECT_TRUE(matches(text));
    EXPECT_TRUE(matches(replaced(text, "%2, %3", "%3, %2")));
    EXPECT_TRUE(matches(replaced(text, "add %0, %1", "add %1, %0")));
    EXPECT_TRUE(matches(
        replaced(replaced(text, "%2, %3", "%3, %2"), "add %0, %1", "add %1, %0")));
    EXPECT_FALSE(matches(replaced(text, "add %0, %1", "add %1, %1")));
}

TEST(Match, ExchangesOnlyWhatCommutes)
{
    const xm_pat difference = op(XM_OP_SUBTRACT, {&exp_x, &x});
    const std::string minus = replaced(text, "multiply %2, %3", "subtract %2, %0");
    EXPECT_TRUE(matches(minus, difference));
    EXPECT_FALSE(matches(replaced(minus, "%2, %0", "%0, %2"), difference));
}

TEST(Match, WantsOneUseOfInnerNodesUnlessShared)
{
    const std::string twice = "\n%5 = exp %2\nresult %5 name=\"s\"\nresult %4 name=\"t\"";
    EXPECT_FALSE(matches(text + twice));
    xm_pat shared = exp_x;
    shared.shared = true;
    EXPECT_TRUE(matches(text + twice, op(XM_OP_MULTIPLY, {&shared, &x_plus_y})));
}

TEST(Match, ComparesScalarsAndLeavesSlotsOnFailure)
{
    const xm_pat plus_one = op(XM_OP_ADD, {&x, &one});
    const std::string sum = R"(
        %0 = parameter f32[T] name="a"
        %1 = const f32[1] {1}
        %2 = add %1, %0
        result %2 name="r")";
    EXPECT_TRUE(matches(sum, plus_one));
    EXPECT_FALSE(matches(replaced(sum, "{1}", "{1.01}"), plus_one));
    Graph g = parse(replaced(sum, "{1}", "{2}"));
    xm_match m = {};
    m.graph = g.get();
    EXPECT_FALSE(xm_match_value(&m, &plus_one, xm_in(g->last, 0)));
    EXPECT_EQ(m.slot[X], nullptr);
}

TEST(Match, TakesOpaqueNodesWithoutTheirOperands)
{
    xm_pat any = {};
    any.kind = XM_PAT_OP;
    any.op = XM_OP_MULTIPLY;
    any.slot = X;
    any.opaque = any.shared = true;
    EXPECT_TRUE(matches(text, any));
}

TEST(Rewrite, ReplacesKeepsNamesAndRemovesWhatIsDead)
{
    const xm_pat swish = op(XM_OP_SWISH, {&x});
    const xm_rule rule = {"test", &product, &swish, nullptr, nullptr};
    Graph g = parse(replaced(text, "multiply %2, %3", "multiply %2, %3 # \"root\""));
    ASSERT_TRUE(g);
    EXPECT_TRUE(xm_rewrite(g.get(), nullptr, &rule, 1));
    EXPECT_EQ(count(g.get(), XM_OP_EXP) + count(g.get(), XM_OP_ADD), 0);
    ASSERT_TRUE(first(g.get(), XM_OP_SWISH));
    EXPECT_STREQ(first(g.get(), XM_OP_SWISH)->name, "root");
    expect_valid(g.get());
    EXPECT_FALSE(xm_rewrite(g.get(), nullptr, &rule, 1));
}

TEST(Rewrite, AppliesRulesUntilNothingChanges)
{
    const xm_pat inner = op(XM_OP_ABS, {&x}), twice = op(XM_OP_ABS, {&inner});
    const xm_pat once = op(XM_OP_ABS, {&x});
    const xm_rule rule = {"abs", &twice, &once, nullptr, nullptr};
    Graph g = parse(R"(
        %0 = parameter f32[T] name="a"
        %1 = abs %0
        %2 = abs %1
        %3 = abs %2
        %4 = abs %3
        result %4 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(xm_rewrite(g.get(), nullptr, &rule, 1));
    EXPECT_EQ(count(g.get(), XM_OP_ABS), 1) << print(g.get());
}

TEST(Rewrite, NamesTheConditionThatFailed)
{
    const xm_rule rules[] = {
        {"refused", &product, &x, nullptr,
         [](xm_match *m) {
             m->why = "the moon is not full";
             return false;
         }},
    };
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_FALSE(xm_rewrite(g.get(), nullptr, rules, 1));
    std::string why =
        xm_rewrite_near_miss(rules, 1, g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY));
    EXPECT_EQ(why, "rule 'refused': the moon is not full");
}

TEST(Rewrite, NamesTheNodeThatDidNotMatch)
{
    const xm_rule rule = {"product", &product, &x, nullptr, nullptr};
    Graph g = parse(replaced(text, "%2 = exp %0", "%2 = tanh %0"));
    ASSERT_TRUE(g);
    std::string why =
        xm_rewrite_near_miss(&rule, 1, g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY));
    EXPECT_EQ(why, "rule 'product': %2 tanh '': the pattern wants exp here");
    g = parse(text);
    EXPECT_STREQ(
        xm_rewrite_near_miss(&rule, 1, g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY)),
        "");
}

TEST(CanRun, EverythingWithoutCaps)
{
    const char *why;
    xm_caps caps = {};
    EXPECT_TRUE(xm_can_run(nullptr, XM_OP_MOE, nullptr, nullptr, 0, &why));
    EXPECT_TRUE(xm_can_run(&caps, XM_OP_MOE, nullptr, nullptr, 0, &why));
}
