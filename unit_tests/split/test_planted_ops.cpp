// SPDX-License-Identifier: Apache-2.0
// A new op is split over devices by what its row of ops.def says, and nothing else. This program is
// built with the ops of planted/ops.def, which the code of transformations/split has never seen.
#include "unit_tests/split/split_test.h"

namespace
{

// A feed-forward of x [tokens,32], with one line, "%6 = OP %5", between its products, and one,
// "%9 = OP %8", behind them; "" stands for an op that does nothing.
std::string
feed_forward(const std::string &between, const std::string &behind)
{
    return R"(
        %0 = parameter f32[tokens,32] name="x"
        %1 = weight f32[48,32] f32 @1
        %2 = weight f32[32,48] f32 @2
        %3 = const f32[32] @3
        %5 = matmul %0, %1 transpose_b=true
        %6 = )" +
           (between.empty() ? "negative" : between) + R"( %5
        %8 = matmul %6, %2 transpose_b=true
        %9 = )" +
           (behind.empty() ? "negative" : behind) + R"( %8
        %10 = add %9, %0
        %11 = rms_norm %10, %3 epsilon=0.001
        result %11)";
}

// The number of columns of the op's result on the first of two ranks.
int64_t
columns_on_rank_0(const Graph &g, xm_op op)
{
    xm_rank_group *group = xm_shared_group_create(2);
    int64_t columns = 0;
    const std::vector<Graph> list = parts(plan(g, tensor(2)), group, 2);
    xm_for_each_node(n, list.at(0).get())
    {
        if (n->op == op)
            columns = n->out[0].type.shape.dim[1].n;
    }
    xm_rank_group_free(group);
    return columns;
}

// Elementwise ops work on each rank's columns, linear or not; the others have a whole row.
TEST(PlantedOp, BetweenProductsIsSplitAsItsRowSays)
{
    for (const auto &[name, op, columns] : {std::tuple("twice", XM_OP_TWICE, 24),
                                            {"square", XM_OP_SQUARE, 24},
                                            {"centre", XM_OP_CENTRE, 48},
                                            {"sorted", XM_OP_SORTED, 48}}) {
        const std::string lines = feed_forward(name, "");
        EXPECT_EQ(columns_on_rank_0(parse(lines), op), columns) << name;
        expect_whole_in_all_ways(lines);
    }
}

// A linear op is applied to summands, another one to their sum.
TEST(PlantedOp, BehindProductsIsAppliedToSummandsIfItIsLinear)
{
    const Strings delayed = {"sum of add for rms_norm"};
    for (const auto &[name, wanted] : {std::pair("twice", delayed),
                                       {"centre", delayed},
                                       {"square", Strings{"sum of matmul for square"}},
                                       {"sorted", Strings{"sum of matmul for sorted"}}}) {
        const std::string lines = feed_forward("", name);
        EXPECT_EQ(exchanges(plan(parse(lines), tensor(2))), wanted) << name;
        expect_whole_in_all_ways(lines);
    }
}

} // namespace
