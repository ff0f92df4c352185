/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouping row-wise ops into chains: what joins a group, which results leave it, where it ends.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{

const std::string values = R"(
%0 = parameter f32[batch,tokens,4] name="r"
%1 = parameter f32[batch,tokens,4] name="a"
%2 = parameter f32[batch,tokens,4] name="b"
%3 = const f32[4] {1, 2, 3, 4}
%4 = const f32[1,1,4] {4, 3, 2, 1}
%5 = const f32[4] {1, 1, 1, 1}
%6 = const f32[1,1,1] {0.5}
%7 = const f32[] {3}
)";

/* Runs the pass, expects this number of chains, and returns the steps of the first; "" without
 * one. */
std::string
steps_of(const std::string &text, int chains = 1)
{
    Graph g = parse(values + text);
    bool any = run_pass(g.get(), xm_pass_fuse_row_chain);
    EXPECT_EQ(count(g.get(), XM_OP_ROW_CHAIN), chains) << print(g.get());
    EXPECT_EQ(any, chains > 0);
    const xm_node *n = first(g.get(), XM_OP_ROW_CHAIN);
    return n ? n->attr.row_chain.steps : "";
}

TEST(FuseRowChain, TakesASumAndItsNorm)
{
    expect_rewrites(xm_pass_fuse_row_chain, values + R"(
%10 = add %0, %1
%11 = rms_norm %10, %3 epsilon=0.5
result %10 name="s"
result %11 name="m")",
                    values + R"(
%10, %11 = row_chain %0, %1, %3 steps="out add x0 x1; out rms_norm s0 c0 0.5"
result %10 name="s"
result %11 name="m")");
}

TEST(FuseRowChain, OnlyWhatOthersReadLeaves)
{
    EXPECT_EQ(steps_of(R"(
%10 = rms_norm %1, %3 epsilon=0.5
%11 = add %0, %10
%12 = rms_norm %11, %5 epsilon=0.25
%13 = multiply %4, %12
%14 = multiply %12, %6
%15 = sin %13
result %15 name="y"
result %14 name="z")"),
              "rms_norm x0 c0 0.5; add x1 s0; rms_norm s1 _ 0.25; out multiply s2 c1; "
              "out multiply s2 c2");
}

TEST(FuseRowChain, ConstantsAreRowsAndNumbers)
{
    EXPECT_EQ(steps_of("%10 = multiply %7, %0\n%11 = add %10, %4\n"
                       "%12 = rms_norm %11, %7 epsilon=0\nresult %12 name=\"y\""),
              "multiply x0 c0; add s0 c1; out rms_norm s1 c0 0");
}

TEST(FuseRowChain, PassesReshapesThatKeepTheRows)
{
    expect_rewrites(xm_pass_fuse_row_chain, values + R"(
%8 = shape_value i64[2] {batch*tokens, 4}
%9 = parameter f32[batch*tokens,4] name="c"
%10 = add %0, %1
%11 = reshape %10, %8
%12 = rms_norm %11, %3 epsilon=0.5
%13 = add %12, %9
%14 = sin %13
result %14 name="y"
result %10 name="s")",
                    values + R"(
%9 = parameter f32[batch*tokens,4] name="c"
%8 = shape_value i64[3] {batch, tokens, 4}
%10 = reshape %9, %8
%11, %12 = row_chain %0, %1, %10, %3 steps="out add x0 x1; rms_norm s0 c0 0.5; out add s1 x2"
%13 = shape_value i64[2] {batch*tokens, 4}
%14 = reshape %12, %13
%15 = sin %14
result %15 name="y"
result %11 name="s")");
}

/* The second group reads a result of the first through two reshapes that cancel out. */
TEST(FuseRowChain, ReadsAnotherGroupWhereItsRowsAre)
{
    Graph g = parse(values + R"(
%8 = shape_value i64[2] {batch*tokens, 4}
%9 = shape_value i64[3] {batch, tokens, 4}
%10 = add %0, %1
%11 = reshape %10, %8
%12 = rms_norm %11, %3 epsilon=0.5
%13 = reshape %12, %9
%14 = sin %13
%15 = rms_norm %14, %3 epsilon=0.5
%16 = add %13, %15
result %16 name="y")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_row_chain));
    ASSERT_EQ(count(g.get(), XM_OP_ROW_CHAIN), 2);
    const xm_node *second = xm_in(g->last, 0)->node;
    EXPECT_EQ(xm_in(second, 0)->node->op, XM_OP_SIN) << print(g.get());
    EXPECT_EQ(xm_in(second, 1)->node->op, XM_OP_ROW_CHAIN) << print(g.get());
}

/* More reshapes than a recursive search has stack for. */
TEST(FuseRowChain, PassesAnyNumberOfReshapes)
{
    enum { RESHAPES = 60000 };
    std::string text = values + "%8 = shape_value i64[2] {batch*tokens, 4}\n"
                                "%9 = shape_value i64[3] {batch, tokens, 4}\n"
                                "%10 = add %0, %1\n";
    int last = 10;
    for (int i = 0; i < RESHAPES; i++, last++)
        text += "%" + std::to_string(last + 1) + " = reshape %" + std::to_string(last) +
                (i % 2 ? ", %9\n" : ", %8\n");
    const std::string v = "%" + std::to_string(last), y = "%" + std::to_string(last + 1);
    text += y + " = rms_norm " + v + ", %3 epsilon=0.5\nresult " + y + " name=\"y\"";
    Graph g = parse(text);
    ASSERT_TRUE(xm_pass_fuse_row_chain(g.get(), nullptr));
    EXPECT_STREQ(first(g.get(), XM_OP_ROW_CHAIN)->attr.row_chain.steps,
                 "add x0 x1; out rms_norm s0 c0 0.5");
}

TEST(FuseRowChain, OtherWidthsAreOtherGroups)
{
    EXPECT_EQ(steps_of(R"(
%8 = shape_value i64[4] {batch, tokens, 2, 2}
%9 = const f32[2] {1, 2}
%10 = add %0, %1
%11 = rms_norm %10, %3 epsilon=0.5
%12 = reshape %11, %8
%13 = rms_norm %12, %9 epsilon=0.5
%14 = multiply %13, %6
result %14 name="y")",
                       2),
              "add x0 x1; out rms_norm s0 c0 0.5");
}

/* The residual sum is read again after an op that reads its norm: two groups with one value
 * between them. */
const std::string layer = R"(
%10 = rms_norm %1, %3 epsilon=0.5
%11 = add %0, %10
%12 = rms_norm %11, %4 epsilon=0.5
%13 = sin %12
%14 = rms_norm %13, %3 epsilon=0.5
%15 = add %11, %14
%16 = multiply %15, %6
%17 = rms_norm %16, %3 epsilon=0.5
%18 = cos %17
result %18 name="y"
result %16 name="h")";

TEST(FuseRowChain, APathOutAndBackEndsAGroup)
{
    const std::string after = R"(
%40 = const f32[4] {4, 3, 2, 1}
%10, %11 = row_chain %1, %0, %3, %40 steps="FIRST"
%12 = sin %11
%41 = const f32[1] {0.5}
%13, %14 = row_chain %12, %10, %3, %41 steps="SECOND"
%15 = cos %14
result %15 name="y"
result %13 name="h")";
    const char *first = "rms_norm x0 c0 0.5; out add x1 s0; out rms_norm s1 c1 0.5";
    const char *second = "rms_norm x0 c0 0.5; add x1 s0; out multiply s1 c1; "
                         "out rms_norm s2 c0 0.5";
    expect_rewrites(xm_pass_fuse_row_chain, values + layer,
                    values + replaced(replaced(after, "FIRST", first), "SECOND", second));
}

/* Each of {10, 14, 16} and {11, 15, 17} could be one group. With both, each would need a result
 * of the other. */
TEST(FuseRowChain, GroupsDoNotWaitForEachOther)
{
    EXPECT_EQ(steps_of(R"(
%10 = rms_norm %0, %3 epsilon=0.5
%11 = rms_norm %1, %3 epsilon=0.5
%12 = sin %10
%13 = sin %11
%14 = rms_norm %13, %3 epsilon=0.5
%15 = rms_norm %12, %3 epsilon=0.5
%16 = add %10, %14
%17 = add %11, %15
result %16 name="y"
result %17 name="z")",
                       2),
              "out rms_norm x0 c0 0.5; rms_norm x1 c0 0.5; out add s0 s1");
}

TEST(FuseRowChain, TwoBranchesMeet)
{
    EXPECT_EQ(steps_of(R"(
%10 = sin %1
%11 = rms_norm %10, %3 epsilon=0.5
%12 = cos %2
%13 = rms_norm %12, %4 epsilon=0.125
%14 = add %11, %13
%15 = rms_norm %14, %3 epsilon=0.5
%16 = add %0, %15
result %16 name="y")"),
              "rms_norm x0 c0 0.5; rms_norm x1 c1 0.125; add s0 s1; rms_norm s2 c0 0.5; "
              "out add x2 s3");
}

/* Returns a chain of n products and a norm at its end. */
std::string
long_chain(int n)
{
    std::string text, last = "%0";
    for (int i = 0; i < n; i++) {
        std::string next = "%" + std::to_string(20 + i);
        text += next + " = multiply " + last + ", %6\n";
        last = next;
    }
    return text + "%19 = rms_norm " + last + ", %3 epsilon=0.5\nresult %19 name=\"y\"";
}

TEST(FuseRowChain, TooManyStepsAreTwoGroups)
{
    steps_of(long_chain(XM_CHAIN_STEPS - 1));
    Graph g = parse(values + long_chain(XM_CHAIN_STEPS));
    /* a norm alone is no group */
    EXPECT_FALSE(run_pass(g.get(), xm_pass_fuse_row_chain));
}

TEST(FuseRowChain, NoMoreOperandsConstantsAndResultsThanKernelsTake)
{
    std::string sums, constants, results = "%10 = rms_norm %0, %3 epsilon=0.5\n";
    std::string sum = "%0", product = "%0";
    for (int i = 0; i < 12; i++) {
        std::string n = std::to_string(20 + 3 * i), a = "%" + n,
                    b = "%" + std::to_string(21 + 3 * i),
                    c = "%" + std::to_string(22 + 3 * i);
        sums += a + " = parameter f32[batch,tokens,4] name=\"p" + n + "\"\n" + b +
                " = add " + sum + ", " + a + "\n";
        sum = b;
        constants += a + " = const f32[4] {1, 2, 3, " + n + "}\n" + b + " = multiply " +
                     product + ", " + a + "\n";
        product = b;
        results += a + " = multiply %10, " + (i % 2 ? "%4\n" : "%6\n") + c + " = sin " +
                   a + "\nresult " + c + " name=\"y" + n + "\"\n";
    }
    const std::string end = "\n%19 = rms_norm ",
                      y = ", %3 epsilon=0.5\nresult %19 name=\"y\"";
    for (const std::string &text :
         {sums + end + sum + y, constants + end + product + y, results}) {
        Graph g = parse(values + text);
        EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_row_chain));
        xm_for_each_node(n, g.get())
        {
            xm_row_chain c;
            if (n->op != XM_OP_ROW_CHAIN)
                continue;
            EXPECT_EQ(xm_row_chain_parse(n->attr.row_chain.steps, &c, nullptr), XM_OK);
            EXPECT_GE(c.n_steps, 2u);
        }
    }
}

TEST(FuseRowChain, LeavesWhatHasKernelsOfItsOwn)
{
    for (const char *text :
         {"%10 = rms_norm %0, %3 epsilon=0.5\nresult %10 name=\"y\"", /* one step */
          "%10 = add %0, %1\n%11 = multiply %10, %6\nresult %11 name=\"y\"", /* no norm */
          /* a norm whose factors are computed */
          "%9 = parameter f32[4] name=\"g\"\n%10 = add %0, %1\n"
          "%11 = rms_norm %10, %9 epsilon=0.5\nresult %11 name=\"y\"",
          /* broadcast along another axis, or by a computed value */
          "%9 = parameter f32[batch,tokens,1] name=\"g\"\n%10 = multiply %0, %9\n"
          "%11 = rms_norm %10, %3 epsilon=0.5\nresult %11 name=\"y\"",
          "%9 = parameter f32[1,1,4] name=\"g\"\n%10 = multiply %0, %9\n"
          "%11 = rms_norm %10, %3 epsilon=0.5\nresult %11 name=\"y\"",
          /* the constant has more dimensions */
          "%9 = const f32[1,1,1,4] {1, 2, 3, 4}\n%10 = multiply %0, %9\n"
          "%11 = rms_norm %10, %3 epsilon=0.5\nresult %11 name=\"y\"",
          /* the width is unknown */
          "%9 = parameter f32[batch,T] name=\"x\"\n%10 = multiply %9, %9\n"
          "%11 = rms_norm %10, %7 epsilon=0.5\nresult %11 name=\"y\"",
          /* a reshape that splits the rows */
          "%8 = shape_value i64[3] {batch, tokens, 4}\n"
          "%9 = parameter f32[batch,tokens,2,2] name=\"x\"\n%10 = multiply %9, %6\n"
          "%11 = reshape %10, %8\n%12 = rms_norm %11, %3 epsilon=0.5\n"
          "result %12 name=\"y\"",
          /* integers */
          "%9 = parameter i32[batch,4] name=\"x\"\n%10 = add %9, %9\n"
          "%11 = convert %10 to=f32\n%12 = rms_norm %11, %3 epsilon=0.5\n"
          "result %12 name=\"y\""})
        expect_leaves(xm_pass_fuse_row_chain, values + text);
}

TEST(FuseRowChain, OfHalfPrecisionToo)
{
    Graph g = parse(R"(
%0 = parameter f16[batch,4] name="r"
%1 = parameter f16[batch,4] name="a"
%2 = const f32[4] {1, 2, 3, 4}
%3 = add %0, %1
%4 = rms_norm %3, %2 epsilon=0.5
result %4 name="y")");
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_row_chain));
    EXPECT_EQ(first(g.get(), XM_OP_ROW_CHAIN)->out[0].type.element, XM_F16);
}

bool
can_run_few(const void *, enum xm_op op, const union xm_attr *attr, xm_value *const *,
            uint32_t, const char **why_not)
{
    *why_not = "too many results";
    return op == XM_OP_ROW_CHAIN && xm_row_chain_results(attr->row_chain.steps) < 2;
}

TEST(FuseRowChain, GrowsAsFarAsItCanBeRun)
{
    const xm_caps caps = {nullptr, can_run_few, nullptr, XM_DYNAMIC};
    Graph g = parse(values + layer);
    EXPECT_TRUE(run_pass(g.get(), xm_pass_fuse_row_chain, &caps));
    std::vector<std::string> steps;
    xm_for_each_node(n, g.get())
    {
        if (n->op == XM_OP_ROW_CHAIN)
            steps.push_back(n->attr.row_chain.steps);
    }
    EXPECT_EQ(steps, std::vector<std::string>(
                         {"rms_norm x0 c0 0.5; out add x1 s0",
                          "rms_norm x0 c0 0.5; add x1 s0; out multiply s1 c1"}));
    Graph h = parse(values + "%10 = add %0, %1\n%11 = rms_norm %10, %3 epsilon=0.5\n"
                             "result %10 name=\"x\"\nresult %11 name=\"y\"");
    EXPECT_FALSE(run_pass(h.get(), xm_pass_fuse_row_chain, &caps));
}

TEST(FuseRowChain, IsSkippedByName)
{
    for (const char *name : {"FuseRowChain", "fuse_row_chain"}) {
        Graph g = parse(values + layer);
        EXPECT_EQ(run_pipeline(g.get(), name, nullptr), "");
        EXPECT_EQ(count(g.get(), XM_OP_ROW_CHAIN), 0);
    }
    Graph g = parse(values + layer);
    EXPECT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
    EXPECT_EQ(count(g.get(), XM_OP_ROW_CHAIN), 2);
}

/* The shape function names the error of a chain written by hand. */
TEST(FuseRowChain, GraphTextIsChecked)
{
    const struct {
        const char *line, *sentence;
    } cases[] = {
        {"%10 = row_chain %0, %1 steps=\"out add x0\"", "step 0"},
        {"%10 = row_chain %0 steps=\"out add x0 x1\"", "read 2 rows and 0 constants"},
        {"%10 = row_chain %0, %1 steps=\"out add x0 c0\"", "rank"},
        {"%10 = row_chain %0, %3 steps=\"out add x0 x1\"", "rank"},
        {"%10, %11 = row_chain %0, %1 steps=\"out add x0 x1\"", "1 results"},
        {"%9 = const f32[3] {1, 2, 3}\n%10 = row_chain %0, %9 steps=\"out add x0 c0\"",
         "is 3, not 4"},
    };
    for (const auto &one : cases) {
        xm_graph *g = nullptr;
        xm_error err = {};
        std::string text = "graph \"test\"\n" + values + one.line;
        EXPECT_NE(xm_graph_parse(text.c_str(), &g, &err), XM_OK) << one.line;
        EXPECT_NE(std::string(err.text).find(one.sentence), std::string::npos)
            << one.line << ": " << err.text;
        xm_graph_destroy(g);
    }
}

} // namespace
