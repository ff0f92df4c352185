/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of rotary embedding: graphs that become one op, and graphs that stay.
 */
#include "unit_tests/passes/pass_test.h"

namespace
{

const std::string head = R"(
%0 = parameter i64[batch,tokens] name="position_ids"
)";

/* Frequencies as a column, and the product transposed, as exporters write it. */
const std::string turned = head + R"(
%1 = const f32[1,3,1] {1, 0.5, 0.25}
%2 = shape_value i64[3] {batch, 1, tokens}
%3 = reshape %0, %2
%4 = convert %3 to=f32
%5 = matmul %1, %4
%6 = const i64[3] {0, 2, 1}
%7 = transpose %5, %6
)";

const std::string rows = head + R"(
%2 = shape_value i64[3] {batch, tokens, 1}
%3 = reshape %0, %2
%4 = convert %3 to=f32
%1 = const f32[1,1,3] {1, 0.5, 0.25}
)";

const std::string results = R"(
result %20 name="cos"
result %21 name="sin"
)";

void
expect_tables(const std::string &text, const std::string &attributes, int reshapes = 0)
{
    SCOPED_TRACE(text);
    Graph g = parse(text);
    /* the results are equal, too */
    ASSERT_TRUE(run_pass(g.get(), xm_pass_fuse_rope_tables));
    EXPECT_EQ(count(g.get(), XM_OP_ROPE_TABLES), 1);
    for (xm_op op : {XM_OP_COS, XM_OP_SIN, XM_OP_MATMUL, XM_OP_MULTIPLY, XM_OP_CONCAT,
                     XM_OP_TRANSPOSE, XM_OP_CONVERT})
        EXPECT_EQ(count(g.get(), op), 0) << print(g.get());
    EXPECT_EQ(count(g.get(), XM_OP_RESHAPE), reshapes) << print(g.get());
    EXPECT_NE(print(g.get()).find(attributes), std::string::npos) << print(g.get());
}

TEST(FuseRoPETables, TakesEverySpellingOfTheAngles)
{
    expect_tables(turned + "%20 = cos %7\n%21 = sin %7" + results, "rope_tables %0, ");
    expect_tables(rows + "%5 = multiply %4, %1\n%20 = cos %5\n%21 = sin %5" + results,
                  "rope_tables %0, ");
    expect_tables(rows + "%5 = multiply %1, %4\n%20 = cos %5\n%21 = sin %5" + results,
                  "rope_tables %0, ");
    expect_tables(rows + "%5 = matmul %4, %1\n%20 = cos %5\n%21 = sin %5" + results,
                  "rope_tables %0, ");
}

TEST(FuseRoPETables, DoublesAndScales)
{
    const std::string doubled = turned + "%8 = concat %7, %7 axis=-1\n";
    expect_tables(doubled + "%20 = cos %8\n%21 = sin %8" + results, "twice=true");
    expect_tables(doubled + R"(
%9 = const f32[] {1.5}
%10 = cos %8
%11 = sin %8
%20 = multiply %10, %9
%21 = multiply %9, %11)" +
                      results,
                  "scale=1.5 twice=true");
    expect_tables(turned + R"(
%9 = const f32[1,1,1] {0.5}
%10 = cos %7
%11 = sin %7
%12 = multiply %10, %9
%13 = multiply %11, %9
%14 = shape_value i64[4] {batch, 1, tokens, 3}
%15 = reshape %12, %14
%16 = reshape %13, %14
%20 = concat %15, %15 axis=3
%21 = concat %16, %16 axis=3)" +
                      results,
                  "scale=0.5 twice=true", 2);
}

TEST(FuseRoPETables, TakesASineThatIsReadBeforeTheCosine)
{
    expect_tables(turned + "%20 = sin %7\n%8 = exp %20\n%21 = cos %7" + results +
                      "result %8 name=\"more\"\n",
                  "rope_tables %0, ");
}

TEST(FuseRoPETables, EndsWhereSomebodyElseReads)
{
    expect_leaves(xm_pass_fuse_rope_tables,
                  turned +
                      "%20 = cos %7\n%10 = sin %7\n%21 = concat %10, %10 axis=2\n"
                      "%22 = concat %20, %20 axis=2" +
                      results + "result %22 name=\"both\"\n");
}

TEST(FuseRoPETables, LeavesOthersAlone)
{
    const std::string tables = "\n%20 = cos %7\n%21 = sin %7" + results;
    /* one of the tables is missing */
    expect_leaves(xm_pass_fuse_rope_tables,
                  turned + "%20 = cos %7\nresult %20 name=\"c\"");
    /* the tables are scaled by different numbers */
    expect_leaves(xm_pass_fuse_rope_tables, turned +
                                                "%9 = const f32[] {2}\n%20 = cos %7\n"
                                                "%10 = sin %7\n"
                                                "%21 = multiply %10, %9" +
                                                results);
    /* the frequencies are not constant */
    expect_leaves(xm_pass_fuse_rope_tables, head + R"(
%1 = parameter f32[1,3,1] name="f"
%2 = shape_value i64[3] {batch, 1, tokens}
%3 = reshape %0, %2
%4 = convert %3 to=f32
%5 = matmul %1, %4
%6 = const i64[3] {0, 2, 1}
%7 = transpose %5, %6)" + tables);
    /* the positions are not integers */
    expect_leaves(xm_pass_fuse_rope_tables, R"(
%0 = parameter f32[batch,1,tokens] name="p"
%1 = const f32[1,3,1] {1, 0.5, 0.25}
%5 = matmul %1, %0
%6 = const i64[3] {0, 2, 1}
%7 = transpose %5, %6)" + tables);
    /* the angles are repeated along another axis */
    expect_leaves(xm_pass_fuse_rope_tables,
                  turned + "%8 = concat %7, %7 axis=1\n%20 = cos %8\n%21 = sin %8" +
                      results);
}

} // namespace
