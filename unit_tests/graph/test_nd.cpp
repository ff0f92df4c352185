// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "transformations/graph/evaluate.h"
#include "transformations/graph/text.h"

namespace
{

// Returns the elements of result 0 of a graph without parameters, floats or integers.
std::vector<double>
evaluate(const char *text, std::vector<int64_t> *dims = nullptr)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    xm_tensor *out = nullptr;
    std::vector<double> values;
    EXPECT_EQ(xm_graph_parse(text, &g, &err), XM_OK) << err.text;
    if (!g)
        return values;
    xm_eval e = {};
    e.graph = g;
    EXPECT_EQ(xm_evaluate(&e, &out, 1, &err), XM_OK) << err.text;
    for (uint64_t i = 0; out && i < out->n; i++)
        values.push_back(out->f ? out->f[i] : (double)out->i[i]);
    if (out && dims)
        dims->assign(out->dim, out->dim + out->rank);
    xm_tensor_destroy(out);
    xm_graph_destroy(g);
    return values;
}

std::string
error_of(const char *text)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    xm_tensor *out = nullptr;
    if (xm_graph_parse(text, &g, &err) == XM_OK) {
        xm_eval e = {};
        e.graph = g;
        EXPECT_NE(xm_evaluate(&e, &out, 1, &err), XM_OK);
    }
    xm_tensor_destroy(out);
    xm_graph_destroy(g);
    return err.text;
}

using Values = std::vector<double>;

// x[-1, ..., ::-2, new]: every second element of the last row, from its end.
TEST(StridedSlice, TakesAllMasksAtOnce)
{
    std::vector<int64_t> dims;
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const i64[2,1,5] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
%1 = const i64[4] {-1, 0, 0, 0}
%2 = const i64[4] {0, 0, 0, 0}
%3 = const i64[4] {1, 1, -2, 1}
%4 = strided_slice %0, %1, %2, %3 begin_mask="0,0,1,0" end_mask="0,0,1,0" )"
                       R"(new_axis_mask="0,0,0,1" shrink_axis_mask="1" ellipsis_mask="0,1"
result %4 name="y"
)",
                       &dims),
              (Values{9, 7, 5}));
    EXPECT_EQ(dims, (std::vector<int64_t>{1, 3, 1}));
}

TEST(NonZero, GivesThePlacesRowByRow)
{
    std::vector<int64_t> dims;
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[2,3] {0, 1, 0, 2, 0, 3}
%1 = non_zero %0
result %1 name="y"
)",
                       &dims),
              (Values{0, 1, 1, 1, 0, 2}));
    EXPECT_EQ(dims, (std::vector<int64_t>{2, 3}));
}

TEST(NonZero, OfZerosIsEmpty)
{
    std::vector<int64_t> dims;
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const i64[2] {0, 0}
%1 = non_zero %0
result %1 name="y"
)",
                       &dims),
              (Values{}));
    EXPECT_EQ(dims, (std::vector<int64_t>{1, 0}));
}

TEST(GatherNd, WholeTuplesGiveElements)
{
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[2,2] {1, 2, 3, 4}
%1 = const i64[2,2] {1, 0, -1, -1}
%2 = gather_nd %0, %1
result %2 name="y"
)"),
              (Values{3, 4}));
}

TEST(GatherNd, ShortTuplesGiveSlices)
{
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[3,2] {1, 2, 3, 4, 5, 6}
%1 = const i64[2,1] {2, 0}
%2 = gather_nd %0, %1
result %2 name="y"
)"),
              (Values{5, 6, 1, 2}));
}

TEST(GatherNd, BatchDimensionsGoTogether)
{
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[2,2] {1, 2, 3, 4}
%1 = const i64[2,1] {1, 0}
%2 = gather_nd %0, %1 batch_dims=1
result %2 name="y"
)"),
              (Values{2, 3}));
}

TEST(GatherNd, IndicesOutsideAreRefused)
{
    EXPECT_NE(error_of(R"(graph "g"
%0 = const f32[2] {1, 2}
%1 = const i64[1,1] {2}
%2 = gather_nd %0, %1
result %2 name="y"
)")
                  .find("index 2"),
              std::string::npos);
}

TEST(ScatterNdUpdate, ReplacesAndAdds)
{
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[3] {1, 2, 3}
%1 = const i64[2,1] {2, 2}
%2 = const f32[2] {10, 20}
%3 = scatter_nd_update %0, %1, %2
result %3 name="y"
)"),
              (Values{1, 2, 20}));
    EXPECT_EQ(evaluate(R"(graph "g"
%0 = const f32[3] {1, 2, 3}
%1 = const i64[2,1] {2, 2}
%2 = const f32[2] {10, 20}
%3 = scatter_nd_update %0, %1, %2 reduction=sum
result %3 name="y"
)"),
              (Values{1, 2, 33}));
}

TEST(ScatterNdUpdate, UpdatesMustFit)
{
    EXPECT_FALSE(error_of(R"(graph "g"
%0 = const f32[3,2] {1, 2, 3, 4, 5, 6}
%1 = const i64[1,1] {0}
%2 = const f32[1,3] {1, 2, 3}
%3 = scatter_nd_update %0, %1, %2
result %3 name="y"
)")
                     .empty());
}

} // namespace
