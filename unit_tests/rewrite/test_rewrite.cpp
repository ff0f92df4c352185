/* SPDX-License-Identifier: Apache-2.0
 *
 * The rewrite engine: what a pattern matches, the order of attempts, and the reasons it gives for
 * a near miss.
 */
#include <list>

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
    /* keeps what patterns point to */
    static std::list<std::vector<const xm_pat *>> lists;
    xm_pat p = {};
    p.kind = XM_PAT_OP;
    p.op = id;
    p.slot = slot;
    in.push_back(nullptr);
    lists.push_back(std::move(in));
    p.in = lists.back().data();
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

/* A pattern for a named operand of a node. */
xm_pat
operand(uint32_t at, const xm_pat *pat)
{
    xm_pat p = op(XM_OP_NONE, {pat});
    p.kind = XM_PAT_AT;
    p.at = at;
    return p;
}

xm_pat
of_kind(enum xm_pat_kind kind, int slot, std::vector<const xm_pat *> in = {})
{
    xm_pat p = op(XM_OP_NONE, in, slot);
    p.kind = kind;
    return p;
}

xm_pat
named(enum xm_pat_rest rest, int slot, enum xm_op id, std::vector<const xm_pat *> in)
{
    xm_pat p = op(id, in, slot);
    p.rest = rest;
    return p;
}

xm_rule
rewrite(const char *name, const xm_pat *find, const xm_pat *replace)
{
    xm_rule r = {};
    r.name = name;
    r.find = find;
    r.replace = replace;
    return r;
}

bool
apply(xm_graph *g, const xm_caps *caps, const xm_rule &rule)
{
    const xm_rule rules[] = {rule, {}};
    return xm_rewrite(g, caps, rules);
}

const char *
near_miss(const xm_rule &rule, xm_graph *g, const xm_caps *caps, xm_node *root)
{
    const xm_rule rules[] = {rule, {}};
    return xm_rewrite_near_miss(rules, g, caps, root);
}

enum { X, Y };
const xm_pat x = var(X), y = var(Y), one = scalar(1.0);

/* exp(x) * (x + y) */
const xm_pat exp_x = op(XM_OP_EXP, {&x});
const xm_pat x_plus_y = op(XM_OP_ADD, {&x, &y});
const xm_pat product_find = op(XM_OP_MULTIPLY, {&exp_x, &x_plus_y});

const std::string text = R"(
    %0 = parameter f32[T] name="a"
    %1 = parameter f32[T] name="b"
    %2 = exp %0
    %3 = add %0, %1
    %4 = multiply %2, %3
    result %4 name="r")";

bool
matches(const std::string &graph, const xm_pat &find = product_find)
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
    any.rest = XM_REST_FREE;
    any.shared = true;
    EXPECT_TRUE(matches(text, any));
}

TEST(Rewrite, ReplacesKeepsNamesAndRemovesWhatIsDead)
{
    const xm_pat swish = op(XM_OP_SWISH, {&x});
    const xm_rule rule = rewrite("test", &product_find, &swish);
    Graph g = parse(replaced(text, "multiply %2, %3", "multiply %2, %3 # \"root\""));
    ASSERT_TRUE(g);
    EXPECT_TRUE(apply(g.get(), nullptr, rule));
    EXPECT_EQ(count(g.get(), XM_OP_EXP) + count(g.get(), XM_OP_ADD), 0);
    ASSERT_TRUE(first(g.get(), XM_OP_SWISH));
    EXPECT_STREQ(first(g.get(), XM_OP_SWISH)->name, "root");
    expect_valid(g.get());
    EXPECT_FALSE(apply(g.get(), nullptr, rule));
}

TEST(Rewrite, AppliesRulesUntilNothingChanges)
{
    const xm_pat inner = op(XM_OP_ABS, {&x}), twice = op(XM_OP_ABS, {&inner});
    const xm_pat once = op(XM_OP_ABS, {&x});
    const xm_rule rule = rewrite("abs", &twice, &once);
    Graph g = parse(R"(
        %0 = parameter f32[T] name="a"
        %1 = abs %0
        %2 = abs %1
        %3 = abs %2
        %4 = abs %3
        result %4 name="r")");
    ASSERT_TRUE(g);
    EXPECT_TRUE(apply(g.get(), nullptr, rule));
    EXPECT_EQ(count(g.get(), XM_OP_ABS), 1) << print(g.get());
}

TEST(Rewrite, NamesTheConditionThatFailed)
{
    xm_rule rules[] = {rewrite("refused", &product_find, &exp_x)};
    rules[0].condition = [](xm_match *m) {
        m->why = "the moon is not full";
        return false;
    };
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_FALSE(apply(g.get(), nullptr, rules[0]));
    std::string why =
        near_miss(rules[0], g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY));
    EXPECT_EQ(why, "rule 'refused': the moon is not full");
}

TEST(Rewrite, NamesTheNodeThatDidNotMatch)
{
    const xm_rule rule = rewrite("product", &product_find, &exp_x);
    Graph g = parse(replaced(text, "%2 = exp %0", "%2 = tanh %0"));
    ASSERT_TRUE(g);
    std::string why = near_miss(rule, g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY));
    EXPECT_EQ(why, "rule 'product': %2 tanh '': the pattern requires exp here");
    g = parse(text);
    EXPECT_STREQ(near_miss(rule, g.get(), nullptr, first(g.get(), XM_OP_MULTIPLY)), "");
}

/* ---- operands by name --------------------------------------------------------------- */

namespace
{
enum { END = Y + 1, BRANCH, W, BIAS };
const xm_pat end_x = var(X), weight = of_kind(XM_PAT_CONST, W),
             bias = of_kind(XM_PAT_MAYBE, BIAS), absent = of_kind(XM_PAT_ABSENT, -1);

const std::string product = R"(
    %0 = parameter f32[T,8] name="a"
    %1 = parameter f32[T,16] name="b"
    %2 = weight f32[16,8] f32 @2
    %3 = const f32[16] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)";
const std::string branch = product + R"(
    %4 = matmul %0, %2 transpose_b=true # "product"
    %5 = shape_value i64[3] {1, T, 16}
    %6 = reshape %4, %5
    %7 = reshape %1, %5
    %8 = add %6, %7 # "sum"
    result %8 name="r")";

/* b + x W^T; the product may be reshaped before b is added; b becomes its bias. */
const xm_pat linear = of_kind(XM_PAT_LINEAR, END, {&end_x, &weight, &bias});
const xm_pat through = of_kind(XM_PAT_THROUGH, -1, {&linear});
const xm_pat addend = var(BRANCH);
const xm_pat sum = op(XM_OP_ADD, {&addend, &through});
const xm_pat like_end = of_kind(XM_PAT_LIKE, END, {&addend});
const xm_pat at_addend = operand(XM_LINEAR_ADDEND, &like_end);
const xm_pat joined = named(XM_REST_FREE, END, XM_OP_LINEAR, {&at_addend});

xm_rule
join()
{
    return rewrite("join", &sum, &joined);
}
} // namespace

TEST(Named, MatchesAnyOperandsAndTellsAbsentOnesApart)
{
    const xm_pat at_x = operand(XM_LINEAR_X, &end_x),
                 at_w = operand(XM_LINEAR_W, &weight);
    const xm_pat no_bias = operand(XM_LINEAR_BIAS, &absent);
    const xm_pat maybe_bias = operand(XM_LINEAR_BIAS, &bias);
    auto one = [](enum xm_pat_rest rest, std::vector<const xm_pat *> in) {
        return named(rest, -1, XM_OP_LINEAR, in);
    };
    const std::string bare = product + "%4 = linear %0, _, %2, _\nresult %4 name=\"r\"";
    const std::string biased = replaced(bare, "%2, _", "%2, %3");
    const std::string added = replaced(bare, "%0, _", "%0, %1");
    EXPECT_TRUE(matches(bare, one(XM_REST_FREE, {&at_w})));
    EXPECT_TRUE(matches(biased, one(XM_REST_FREE, {&at_w, &at_x})));
    EXPECT_TRUE(matches(bare, one(XM_REST_ABSENT, {&at_x, &at_w})));
    EXPECT_FALSE(matches(biased, one(XM_REST_ABSENT, {&at_x, &at_w})));
    EXPECT_FALSE(matches(added, one(XM_REST_ABSENT, {&at_x, &at_w, &maybe_bias})));
    EXPECT_TRUE(matches(biased, one(XM_REST_ABSENT, {&at_x, &at_w, &maybe_bias})));
    EXPECT_TRUE(matches(bare, one(XM_REST_ABSENT, {&at_x, &at_w, &maybe_bias})));
    EXPECT_FALSE(matches(biased, one(XM_REST_FREE, {&no_bias})));
    const xm_pat at_other = operand(XM_LINEAR_ADDEND, &addend);
    EXPECT_FALSE(matches(bare, one(XM_REST_FREE, {&at_w, &at_other})));
    EXPECT_TRUE(matches(added, one(XM_REST_FREE, {&at_w, &at_other})));
}

TEST(Named, ExchangesTheOperandsOfWhatCommutes)
{
    const xm_pat first = operand(0, &exp_x), second = operand(1, &x_plus_y);
    const xm_pat find = named(XM_REST_FREE, -1, XM_OP_MULTIPLY, {&second, &first});
    EXPECT_TRUE(matches(text, find));
    EXPECT_TRUE(matches(replaced(text, "%2, %3", "%3, %2"), find));
    EXPECT_FALSE(matches(replaced(text, "multiply %2, %3", "divide %3, %2"),
                         named(XM_REST_FREE, -1, XM_OP_DIVIDE, {&first, &second})));
}

TEST(Linear, IsAMatmulOrALinearOfAStoredMatrixAndNothingElse)
{
    const std::string end = "\nresult %4 name=\"r\"";
    for (const char *yes : {"%4 = matmul %0, %2 transpose_b=true",
                            "%4 = linear %0, _, %2, _", "%4 = linear %0, _, %2, %3"})
        EXPECT_TRUE(matches(product + yes + end, linear)) << yes;
    for (const char *no :
         {"%4 = linear %0, %1, %2, _", "%4 = linear %0, %1, %2, _ glu=true",
          "%4, %5 = linear %0, _, %2, _, %2, _",
          "%4 = linear %0, _, %2, _, %2, _ glu=true",
          "%9 = parameter f32[16,8] name=\"w\"\n%4 = matmul %0, %9 transpose_b=true"})
        EXPECT_FALSE(matches(product + no + end, linear)) << no;
    xm_pat without = of_kind(XM_PAT_LINEAR, END, {&end_x, &weight, &absent});
    EXPECT_FALSE(matches(product + "%4 = linear %0, _, %2, %3" + end, without));
    EXPECT_TRUE(matches(product + "%4 = linear %0, _, %2, _" + end, without));
}

TEST(Through, StopsAtReshapesThatOthersRead)
{
    EXPECT_TRUE(matches(branch, sum));
    EXPECT_TRUE(matches(replaced(branch, "add %6, %7", "add %7, %6"), sum));
    const std::string front =
        replaced(branch, "result %8", "result %6 name=\"s\"\nresult %8");
    EXPECT_FALSE(matches(front, sum));
}

/* ---- replacements -------------------------------------------------------------------- */

TEST(Replacement, IsTheSameNodeWithOtherOperandsInTheTypeOfTheRoot)
{
    for (const char *made : {"%4 = matmul %0, %2 transpose_b=true",
                             "%4 = linear %0, _, %2, _", "%4 = linear %0, _, %2, %3"}) {
        Graph g = parse(replaced(branch, "%4 = matmul %0, %2 transpose_b=true", made));
        auto before = evaluate(g.get());
        const xm_rule rule = join();
        ASSERT_TRUE(apply(g.get(), nullptr, rule));
        expect_valid(g.get());
        expect_close(before, evaluate(g.get()));
        EXPECT_EQ(count(g.get(), XM_OP_ADD) + count(g.get(), XM_OP_MATMUL), 0);
        const xm_node *n = first(g.get(), XM_OP_LINEAR);
        ASSERT_TRUE(n);
        EXPECT_STREQ(n->name, "sum");
        EXPECT_EQ(n->n_in, (uint32_t)XM_LINEAR_BIAS + 1);
    }
}

TEST(Replacement, KeepsTheNameOfWhatItChangesWhereTheRuleSaysSo)
{
    Graph g = parse(branch);
    xm_rule rule = join();
    rule.keeps_name = true;
    ASSERT_TRUE(apply(g.get(), nullptr, rule));
    EXPECT_STREQ(first(g.get(), XM_OP_LINEAR)->name, "product");
}

TEST(Replacement, SetsAttributesBesideThoseThatAreKept)
{
    const xm_pat found = named(XM_REST_FREE, END, XM_OP_MOE, {&at_addend});
    xm_pat any = found, again = found;
    any.in = again.in = nullptr;
    again.op = XM_OP_MOE_COMPRESSED;
    xm_rule rule = rewrite("again", &any, &again);
    rule.attr = [](const xm_match *, union xm_attr *attr) { attr->moe.group = 7; };
    Graph g = parse(R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,2] name="weights"
        %2 = parameter i32[T,2] name="ids"
        %3 = weight f32[4,4,8] f32 @3
        %4 = weight f32[4,4,8] f32 @4
        %5 = weight f32[4,8,4] f32 @5
        %6 = moe %0, %1, %2, _, _, %3, %4, %5, _, _, _, _, _, _ hidden_size=8)"
                    R"( inter_size=4 num_expert=4 top_k=2
        result %6 name="y")");
    ASSERT_TRUE(apply(g.get(), nullptr, rule));
    const xm_node *n = first(g.get(), XM_OP_MOE_COMPRESSED);
    ASSERT_TRUE(n);
    EXPECT_EQ(n->attr.moe.group, 7);
    EXPECT_EQ(n->attr.moe.routing.top_k, 2);
    EXPECT_EQ(xm_in(n, XM_MOE_W_DOWN)->type.shape.dim[1].n, 8);
    EXPECT_TRUE(xm_is_none(xm_in(n, XM_MOE_ADDEND)));
}

TEST(Replacement, LeavesNoTraceOfWhatCannotBeRun)
{
    xm_caps caps = {};
    caps.can_run = [](const void *, enum xm_op id, const union xm_attr *,
                      xm_value *const *in, uint32_t n_in, const char **why) {
        EXPECT_EQ(id, XM_OP_LINEAR);
        EXPECT_EQ(n_in, (uint32_t)XM_LINEAR_BIAS + 1);
        EXPECT_FALSE(xm_is_none(in[XM_LINEAR_ADDEND]));
        *why = "nobody adds here";
        return false;
    };
    Graph g = parse(branch);
    const std::string before = print(g.get());
    const uint32_t next_id = g->next_id;
    const xm_rule rule = join();
    EXPECT_FALSE(apply(g.get(), &caps, rule));
    EXPECT_STREQ(near_miss(rule, g.get(), &caps, first(g.get(), XM_OP_ADD)),
                 "rule 'join': nobody adds here");
    EXPECT_STREQ(near_miss(rule, g.get(), nullptr, first(g.get(), XM_OP_ADD)), "");
    EXPECT_EQ(print(g.get()), before);
    EXPECT_EQ(g->next_id, next_id);
}

/* The sum of two products: one that already has a bias cannot take another, so that the other
 * order is tried. */
TEST(Rewrite, TriesOrdersUntilTheConditionHolds)
{
    for (const char *operands : {"%4, %5", "%5, %4"}) {
        Graph g = parse(product +
                        "%4 = linear %0, _, %2, %3\n%5 = linear %0, _, %2, _\n"
                        "%6 = add " +
                        operands + "\nresult %6 name=\"r\"");
        xm_rule rule = join();
        rule.condition = [](xm_match *m) {
            m->why = "it has a bias";
            return m->slot[BIAS] == nullptr;
        };
        ASSERT_TRUE(apply(g.get(), nullptr, rule));
        expect_valid(g.get());
        const xm_node *end = xm_in(g->last, 0)->node;
        EXPECT_TRUE(xm_is_none(xm_in(end, XM_LINEAR_BIAS)));
        EXPECT_FALSE(
            xm_is_none(xm_in(xm_in(end, XM_LINEAR_ADDEND)->node, XM_LINEAR_BIAS)));
    }
}

TEST(Rewrite, DoesTheRestOnceTheReplacementStands)
{
    const xm_pat swish = op(XM_OP_SWISH, {&x});
    xm_rule rule = rewrite("test", &product_find, &swish);
    static const xm_value *seen;
    seen = nullptr;
    rule.then = [](xm_builder *, xm_match *m, xm_value *value) {
        EXPECT_EQ(m->root->out[0].n_uses, 1u);
        seen = value;
    };
    Graph g = parse(text);
    ASSERT_TRUE(apply(g.get(), nullptr, rule));
    EXPECT_EQ(seen, xm_in(g->last, 0));
}

TEST(NearMiss, SaysWhichOperandIsAbsentOrTooMuch)
{
    const xm_pat at_bias = operand(XM_LINEAR_BIAS, &absent),
                 at_w = operand(XM_LINEAR_W, &weight);
    const xm_pat found = named(XM_REST_FREE, -1, XM_OP_LINEAR, {&at_w, &at_bias});
    const xm_pat other = named(XM_REST_FREE, -1, XM_OP_LINEAR, {&at_w, &at_addend});
    const xm_pat swish = op(XM_OP_SWISH, {&x});
    Graph g = parse(product + "%4 = linear %0, _, %2, %3\nresult %4 name=\"r\"");
    xm_rule rule = rewrite("bare", &found, &swish);
    xm_node *n = first(g.get(), XM_OP_LINEAR);
    EXPECT_STREQ(near_miss(rule, g.get(), nullptr, n),
                 "rule 'bare': %4 linear '': operand 3 is present, but the pattern "
                 "requires it to be absent");
    rule.find = &other;
    EXPECT_STREQ(near_miss(rule, g.get(), nullptr, n),
                 "rule 'bare': %4 linear '': operand 1 is absent");
}

TEST(FusedBuild, AsksFirst)
{
    xm_caps none = {}, all = {};
    none.can_run = [](const void *, enum xm_op, const union xm_attr *, xm_value *const *,
                      uint32_t, const char **) { return false; };
    Graph g = parse(branch);
    xm_builder b = xm_builder_at_end(g.get());
    xm_value *in[] = {&g->first->out[0], &g->first->out[0]};
    const uint32_t n_nodes = g->n_nodes;
    EXPECT_EQ(xm_fused_build(&b, &none, XM_OP_GLU, nullptr, in, 2), nullptr);
    EXPECT_EQ(g->n_nodes, n_nodes);
    EXPECT_EQ(g->err.status, XM_OK);
    EXPECT_NE(xm_fused_build(&b, &all, XM_OP_GLU, nullptr, in, 2), nullptr);
}

TEST(CanRun, EverythingWithoutCaps)
{
    const char *why;
    xm_caps caps = {};
    EXPECT_TRUE(xm_can_run(nullptr, XM_OP_MOE, nullptr, nullptr, 0, &why));
    EXPECT_TRUE(xm_can_run(&caps, XM_OP_MOE, nullptr, nullptr, 0, &why));
}
