// SPDX-License-Identifier: Apache-2.0
// The host reference of each op against small values computed by hand; binding of symbols;
// states.
#include <cmath>
#include <cstring>

#include "unit_tests/graph/evaluate_test.h"

TEST_F(Evaluate, ElementwiseBroadcasts)
{
    xm_value *a = in({2, 1}, {1, -2}), *c = in({3}, {10, 20, 30});
    expect_near(value(op(XM_OP_ADD, {a, c})), {11, 21, 31, 8, 18, 28});
    expect_near(value(op(XM_OP_SUBTRACT, {a, c})), {-9, -19, -29, -12, -22, -32});
    expect_near(value(op(XM_OP_DIVIDE, {c, a})), {10, 20, 30, -5, -10, -15});
    expect_near(value(op(XM_OP_MAXIMUM, {a, xm_const_float(&b, XM_F32, 0)})), {1, 0});
    expect_near(value(op(XM_OP_POWER, {a, xm_const_float(&b, XM_F32, 2)})), {1, 4});
    expect_near(value(op(XM_OP_FLOOR_MOD, {a, xm_const_float(&b, XM_F32, 3)})), {1, 1});
    expect_near(value(op(XM_OP_MOD, {a, xm_const_float(&b, XM_F32, 3)})), {1, -2});
}

TEST_F(Evaluate, IntegersDivideAsAsked)
{
    xm_value *a = in(ints({2}, {7, -7})), *c = scalar(2);
    xm_attr attr = defaults(XM_OP_DIVIDE);
    attr.divide.python = true;
    EXPECT_EQ(ints_of(value(op(XM_OP_DIVIDE, {a, c}, &attr))), (Ints{3, -4}));
    attr.divide.python = false;
    EXPECT_EQ(ints_of(value(op(XM_OP_DIVIDE, {a, c}, &attr))), (Ints{3, -3}));
    EXPECT_EQ(ints_of(value(op(XM_OP_MOD, {a, c}))), (Ints{1, -1}));
    EXPECT_EQ(ints_of(value(op(XM_OP_FLOOR_MOD, {a, c}))), (Ints{1, 1}));
    xm_result(&b, "r", op(XM_OP_DIVIDE, {a, in(ints({1}, {0}))}, &attr));
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "divide"), nullptr) << err.text;
}

TEST_F(Evaluate, IntegersWrapAtTheirWidth)
{
    xm_value *a = in(ints({1}, {INT32_MAX}, XM_I32)), *c = in(ints({1}, {1}, XM_I32));
    EXPECT_EQ(ints_of(value(op(XM_OP_ADD, {a, c}))), (Ints{INT32_MIN}));
    EXPECT_EQ(ints_of(value(xm_convert(&b, in(ints({1}, {300})), XM_U8))), (Ints{44}));
    xm_attr sum = defaults(XM_OP_SCATTER_ND_UPDATE);
    sum.scatter.reduction = XM_REDUCTION_SUM;
    EXPECT_EQ(
        ints_of(value(op(XM_OP_SCATTER_ND_UPDATE, {a, in(ints({1, 1}, {0})), c}, &sum))),
        (Ints{INT32_MIN}));
}

TEST_F(Evaluate, RootsOfIntegersAreRoundedDown)
{
    const int64_t k = 3037000499; /* the root of the largest integer */
    const Ints v = {0, 3, 4, k * k, k * k - 1, INT64_MAX, ((int64_t)1 << 62) - 1};
    EXPECT_EQ(ints_of(value(op(XM_OP_SQRT, {in(ints({7}, v))}))),
              (Ints{0, 1, 2, k, k - 1, k, ((int64_t)1 << 31) - 1}));
}

/* f32 holds integers up to 2^24, and f64 up to 2^53. */
TEST_F(Evaluate, IntegersBeyondThoseOfFloatsAreExact)
{
    const int64_t f32 = 1 << 24, f64 = (int64_t)1 << 53;
    const Ints v = {f32, f32 + 1, f64 + 1, f64, -f64 - 1};
    xm_value *x = in(ints({5}, v)), *turned = in(ints({5}, {f32 + 1, f32, f64, f64, 0}));
    EXPECT_EQ(ints_of(value(op(XM_OP_MAXIMUM, {x, turned}))),
              (Ints{f32 + 1, f32 + 1, f64 + 1, f64, 0}));
    EXPECT_EQ(ints_of(value(op(XM_OP_MINIMUM, {x, turned}))),
              (Ints{f32, f32, f64, f64, -f64 - 1}));
    EXPECT_EQ(ints_of(value(op(XM_OP_GREATER, {x, turned}))), (Ints{0, 1, 1, 0, 0}));
    EXPECT_EQ(ints_of(value(op(XM_OP_EQUAL, {x, turned}))), (Ints{0, 0, 0, 1, 0}));
    xm_attr attr = {};
    EXPECT_EQ(ints_of(value(op(XM_OP_CUM_SUM, {x, scalar(0)}, &attr))),
              (Ints{f32, 2 * f32 + 1, 2 * f32 + 2 + f64, 2 * f32 + 2 + 2 * f64,
                    2 * f32 + 1 + f64}));
    EXPECT_EQ(ints_of(value(op(XM_OP_REDUCE_MAX, {x, axes({0})}, &attr))),
              (Ints{f64 + 1}));
    EXPECT_EQ(ints_of(value(op(XM_OP_REDUCE_MIN, {x, axes({0})}, &attr))),
              (Ints{-f64 - 1}));
    const auto clamped = [&](double min, double max) {
        attr.clamp.min = min;
        attr.clamp.max = max;
        return ints_of(value(op(XM_OP_CLAMP, {x}, &attr)));
    };
    EXPECT_EQ(clamped(f32 + 1, INT32_MAX),
              (Ints{f32 + 1, f32 + 1, INT32_MAX, INT32_MAX, f32 + 1}));
    EXPECT_EQ(clamped(-INFINITY, 1e300), v);
    xm_value *power = op(XM_OP_POWER, {in(ints({6}, {3, 3, -3, 2, -1, 0})),
                                       in(ints({6}, {39, 41, 39, -1, -3, -1}))});
    EXPECT_EQ(ints_of(value(power)),
              (Ints{4052555153018976267, (int64_t)(4052555153018976267u * 9),
                    -4052555153018976267, 0, -1, 0}));
}

TEST_F(Evaluate, ConvertTruncatesAndBooleansAreNotZero)
{
    xm_value *x = in({4}, {1.9f, -1.9f, 0, 0.5f});
    EXPECT_EQ(ints_of(value(xm_convert(&b, x, XM_I64))), (Ints{1, -1, 0, 0}));
    xm_value *flags = xm_convert(&b, x, XM_BOOL);
    EXPECT_EQ(ints_of(value(flags)), (Ints{1, 1, 0, 1}));
    EXPECT_EQ(ints_of(value(xm_op1(&b, XM_OP_LOGICAL_NOT, flags))), (Ints{0, 0, 1, 0}));
    xm_value *less = op(XM_OP_LESS, {x, xm_const_float(&b, XM_F32, 0.25f)});
    EXPECT_EQ(ints_of(value(less)), (Ints{0, 1, 1, 0}));
    EXPECT_EQ(ints_of(value(op(XM_OP_BITWISE_AND, {flags, less}))), (Ints{0, 1, 0, 0}));
    expect_near(value(op(XM_OP_SELECT, {less, x, xm_const_float(&b, XM_F32, 7)})),
                {7, -1.9f, 0, 7});
}

TEST_F(Evaluate, ComparesAndCombinesEveryPair)
{
    struct {
        xm_op op;
        // for 1, 2, 3, NaN compared with 2; for flags 00, 01, 10, 11
        Ints of_order, of_flags;
    } cases[] = {
        {XM_OP_EQUAL, {0, 1, 0, 0}, {1, 0, 0, 1}},
        {XM_OP_NOT_EQUAL, {1, 0, 1, 1}, {0, 1, 1, 0}},
        {XM_OP_LESS, {1, 0, 0, 0}, {0, 1, 0, 0}},
        {XM_OP_LESS_EQUAL, {1, 1, 0, 0}, {1, 1, 0, 1}},
        {XM_OP_GREATER, {0, 0, 1, 0}, {0, 0, 1, 0}},
        {XM_OP_GREATER_EQUAL, {0, 1, 1, 0}, {1, 0, 1, 1}},
        {XM_OP_LOGICAL_AND, {}, {0, 0, 0, 1}},
        {XM_OP_LOGICAL_OR, {}, {0, 1, 1, 1}},
        {XM_OP_LOGICAL_XOR, {}, {0, 1, 1, 0}},
    };
    xm_value *x = in({4}, {1, 2, 3, NAN}), *two = in({1}, {2});
    xm_value *p = in(ints({4}, {0, 0, 1, 1}, XM_BOOL)),
             *q = in(ints({4}, {0, 1, 0, 1}, XM_BOOL));
    for (const auto &c : cases) {
        EXPECT_EQ(ints_of(value(op(c.op, {p, q}))), c.of_flags) << xm_op_info(c.op)->text;
        if (!c.of_order.empty()) {
            EXPECT_EQ(ints_of(value(op(c.op, {x, two}))), c.of_order)
                << xm_op_info(c.op)->text;
        }
    }
}

TEST_F(Evaluate, TransposeThereAndBackIsTheSame)
{
    Floats v = pattern(24, 1);
    const int64_t order[] = {2, 0, 1}, back[] = {1, 2, 0};
    xm_value *t = xm_transpose(&b, in({2, 3, 4}, v), order, 3);
    const xm_tensor *turned = value(t);
    ASSERT_NE(turned, nullptr);
    EXPECT_EQ(turned->f[1 * 6 + 1 * 3 + 2], v[1 * 12 + 2 * 4 + 1]);
    expect_near(value(xm_transpose(&b, t, back, 3)), v, 0);
}

TEST_F(Evaluate, SplitThenConcatIsTheSame)
{
    Floats v = pattern(24, 2);
    xm_value *operands[] = {in({2, 6, 2}, v), scalar(1), axes({1, 2, 3})};
    xm_node *split = xm_node_build(&b, XM_OP_VARIADIC_SPLIT, nullptr, operands, 3);
    ASSERT_NE(split, nullptr) << g->err.text;
    xm_attr attr = {};
    attr.axis.axis = -2;
    expect_near(
        value(op(XM_OP_CONCAT, {&split->out[0], &split->out[1], &split->out[2]}, &attr)),
        v, 0);
}

TEST_F(Evaluate, SlicesStepBothWays)
{
    xm_value *x = in({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    expect_near(
        value(op(XM_OP_SLICE, {x, axes({1}), axes({100}), axes({2}), axes({-1})})),
        {1, 3, 5, 7});
    expect_near(
        value(op(XM_OP_SLICE, {x, axes({-1}), axes({-100}), axes({-2}), axes({1})})),
        {3, 1, 7, 5});
    xm_attr attr = defaults(XM_OP_STRIDED_SLICE);
    attr.strided_slice.begin_mask = "1,0";
    attr.strided_slice.end_mask = "1,0";
    attr.strided_slice.shrink_axis_mask = "0,1";
    expect_near(value(op(XM_OP_STRIDED_SLICE,
                         {x, axes({0, -1}), axes({0, 0}), axes({1, 1})}, &attr)),
                {3, 7});
}

TEST_F(Evaluate, TileAndBroadcastRepeat)
{
    xm_value *x = in({2}, {1, 2});
    expect_near(value(op(XM_OP_TILE, {x, axes({2, 2})})), {1, 2, 1, 2, 1, 2, 1, 2});
    expect_near(value(op(XM_OP_BROADCAST, {x, axes({2, 2})})), {1, 2, 1, 2});
}

TEST_F(Evaluate, GathersAndScatters)
{
    xm_value *x = in({2, 3}, {0, 1, 2, 3, 4, 5}), *ids = in(ints({2}, {-1, 0}));
    xm_attr attr = defaults(XM_OP_GATHER);
    expect_near(value(op(XM_OP_GATHER, {x, ids, scalar(1)}, &attr)), {2, 0, 5, 3});
    attr.gather.batch_dims = 1;
    expect_near(value(op(XM_OP_GATHER, {x, in(ints({2, 1}, {1, 2})), scalar(1)}, &attr)),
                {1, 5});
    // a dimension between those of the batch and the axis
    xm_value *cube = in({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    expect_near(
        value(op(XM_OP_GATHER, {cube, in(ints({2, 1}, {1, 2})), scalar(2)}, &attr)),
        {1, 4, 8, 11});
    attr.gather.batch_dims = 0;
    expect_near(value(op(XM_OP_GATHER,
                         {weight({2, 3}, {0, 1, 2, 3, 4, 5}), ids, scalar(0)}, &attr)),
                {3, 4, 5, 0, 1, 2});
    xm_attr axis = {};
    axis.axis.axis = 1;
    xm_value *places = in(ints({2, 2}, {0, 0, 2, 1}));
    expect_near(value(op(XM_OP_GATHER_ELEMENTS, {x, places}, &axis)), {0, 0, 5, 4});
    xm_attr scatter = defaults(XM_OP_SCATTER_ELEMENTS_UPDATE);
    xm_value *updates = in({2, 2}, {10, 20, 30, 40});
    auto scattered = [&](int reduction, bool use_init) {
        scatter.scatter.reduction = reduction;
        scatter.scatter.use_init_val = use_init;
        return value(
            op(XM_OP_SCATTER_ELEMENTS_UPDATE, {x, places, updates, scalar(1)}, &scatter));
    };
    expect_near(scattered(XM_REDUCTION_NONE, true), {20, 1, 2, 3, 40, 30});
    expect_near(scattered(XM_REDUCTION_SUM, true), {30, 1, 2, 3, 44, 35});
    expect_near(scattered(XM_REDUCTION_SUM, false), {30, 1, 2, 3, 40, 30});
    expect_near(scattered(XM_REDUCTION_MEAN, true), {10, 1, 2, 3, 22, 17.5f});
    xm_result(&b, "bad", op(XM_OP_GATHER, {x, in(ints({1}, {2})), scalar(0)}, &attr));
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "index 2 is outside"), nullptr) << err.text;
}

TEST_F(Evaluate, ReductionsAlsoOfNothing)
{
    xm_value *x = in({2, 3}, {1, 2, 3, 4, 5, 6});
    xm_attr keep = {};
    keep.reduce.keep_dims = true;
    expect_near(value(op(XM_OP_REDUCE_SUM, {x, axes({0})}, &keep)), {5, 7, 9});
    expect_near(value(op(XM_OP_REDUCE_MEAN, {x, axes({-1})}, &keep)), {2, 5});
    expect_near(value(op(XM_OP_REDUCE_MAX, {x, axes({0, 1})}, &keep)), {6});
    expect_near(value(op(XM_OP_REDUCE_SUM, {in({2, 0}, {}), axes({1})}, &keep)), {0, 0});
    xm_value *n = in(ints({2, 2}, {2, 3, 4, 5}));
    EXPECT_EQ(ints_of(value(op(XM_OP_REDUCE_PROD, {n, axes({1})}, &keep))),
              (Ints{6, 20}));
    xm_value *none = in(ints({1, 0}, {}, XM_I32)), *bytes = in(ints({1, 0}, {}, XM_U8));
    const auto one = [&](xm_op o, xm_value *v) {
        return ints_of(value(op(o, {v, axes({1})}, &keep)));
    };
    EXPECT_EQ(one(XM_OP_REDUCE_MAX, none), (Ints{INT32_MIN}));
    EXPECT_EQ(one(XM_OP_REDUCE_MIN, none), (Ints{INT32_MAX}));
    EXPECT_EQ(one(XM_OP_REDUCE_MAX, bytes), (Ints{0}));
    EXPECT_EQ(one(XM_OP_REDUCE_MIN, bytes), (Ints{255}));
}

/* A range of floats has a number of elements that no shape bounds, so that evaluating limits it. */
TEST_F(Evaluate, RangesHaveAnEnd)
{
    xm_attr attr = defaults(XM_OP_RANGE);
    attr.convert.element = XM_I64;
    const auto range = [&](float stop, float step) {
        return op(XM_OP_RANGE, {in({}, {1}), in({}, {stop}), in({}, {step})}, &attr);
    };
    EXPECT_EQ(ints_of(value(range(8, 3))), (Ints{1, 4, 7}));
    EXPECT_EQ(ints_of(value(range(-8, 3))), Ints());
    xm_result(&b, "long", range(1e10f, 2));
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "a range of 5000000000 elements, at most 134217728"),
              nullptr)
        << err.text;
}

TEST_F(Evaluate, MeanAndVarianceBecomeNoughtAndOne)
{
    xm_value *x = in({2, 3}, {1, 2, 3, 4, 8, 12});
    xm_attr attr = {};
    expect_near(value(op(XM_OP_MVN, {x, axes({-1})}, &attr)), {-1, 0, 1, -4, 0, 4});
    attr.mvn.scaled = true;
    attr.mvn.epsilon = 1.0f / 3;
    expect_near(value(op(XM_OP_MVN, {x, axes({1})}, &attr)),
                {-1, 0, 1, -1.2060454f, 0, 1.2060454f});
    attr.mvn.epsilon_mode = XM_EPSILON_OUTSIDE_SQRT;
    attr.mvn.epsilon = 1.5f;
    expect_near(value(op(XM_OP_MVN, {x, axes({0})}, &attr)),
                {-0.5f, -2 / 3.0f, -0.75f, 0.5f, 2 / 3.0f, 0.75f});
    expect_near(value(op(XM_OP_MVN, {in({2, 0}, {}), axes({1})}, &attr)), {});
}

TEST_F(Evaluate, SumsAlongAxesAndOneHot)
{
    xm_attr attr = {};
    xm_value *x = in({1, 3}, {1, 2, 3});
    expect_near(value(op(XM_OP_CUM_SUM, {x, scalar(1)}, &attr)), {1, 3, 6});
    attr.cum_sum.exclusive = attr.cum_sum.reverse = true;
    expect_near(value(op(XM_OP_CUM_SUM, {x, scalar(1)}, &attr)), {5, 3, 0});
    xm_attr last = {};
    last.axis.axis = -1;
    xm_value *hot = op(XM_OP_ONE_HOT,
                       {in(ints({2}, {1, 3})), scalar(3), xm_const_float(&b, XM_F32, 1),
                        xm_const_float(&b, XM_F32, 0)},
                       &last);
    expect_near(value(hot), {0, 1, 0, 0, 0, 0});
}

TEST_F(Evaluate, TopKAlongAnyAxis)
{
    xm_attr attr = defaults(XM_OP_TOPK);
    attr.topk.axis = 0;
    attr.topk.sort = XM_SORT_VALUE;
    attr.topk.element = XM_I32;
    xm_value *operands[] = {in({3, 2}, {1, 9, 7, 9, 5, 0}), scalar(2)};
    xm_node *top = xm_node_build(&b, XM_OP_TOPK, &attr, operands, 2);
    ASSERT_NE(top, nullptr) << g->err.text;
    expect_near(value(&top->out[0]), {7, 9, 5, 9});
    EXPECT_EQ(ints_of(value(&top->out[1])), (Ints{1, 0, 2, 1}));
    attr.topk.sort = XM_SORT_INDEX;
    attr.topk.smallest = 1;
    top = xm_node_build(&b, XM_OP_TOPK, &attr, operands, 2);
    EXPECT_EQ(ints_of(value(&top->out[1])), (Ints{0, 0, 2, 2}));
}

TEST_F(Evaluate, TopKComparesIntegersAsIntegers)
{
    const int64_t big = (int64_t)1 << 53, f32 = 1 << 24;
    xm_attr attr = defaults(XM_OP_TOPK);
    attr.topk.axis = 0;
    attr.topk.sort = XM_SORT_VALUE;
    attr.topk.element = XM_I32;
    xm_value *operands[] = {in(ints({6}, {f32, f32 + 1, big, -big, big + 1, -big - 1})),
                            scalar(6)};
    for (const bool smallest : {false, true}) {
        attr.topk.smallest = smallest;
        xm_node *top = xm_node_build(&b, XM_OP_TOPK, &attr, operands, 2);
        ASSERT_NE(top, nullptr) << g->err.text;
        Ints order = {4, 2, 1, 0, 3, 5};
        if (smallest)
            std::reverse(order.begin(), order.end());
        EXPECT_EQ(ints_of(value(&top->out[1])), order);
    }
}

TEST_F(Evaluate, MatmulBroadcastsBatchesAndTakesWeights)
{
    Floats w = pattern(2 * 3 * 4, 3), x = pattern(2 * 5 * 4, 4);
    xm_value *vx = in({2, 5, 4}, x);
    const xm_tensor *t = value(xm_matmul(&b, vx, in({2, 3, 4}, w), false, true));
    ASSERT_NE(t, nullptr);
    Floats expected(t->f, t->f + t->n);
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum += x[(5 + 2) * 4 + k] * w[(3 + 1) * 4 + k];
    EXPECT_NEAR(expected[(5 + 2) * 3 + 1], sum, 1e-5f);
    expect_near(value(xm_matmul(&b, vx, weight({2, 3, 4}, w), false, true)), expected);
    const int64_t turn[] = {0, 2, 1};
    xm_value *turned = xm_transpose(&b, in({2, 3, 4}, w), turn, 3);
    expect_near(value(xm_matmul(&b, vx, turned, false, false)), expected);
    Floats w2(w.begin(), w.begin() + 12);
    const xm_tensor *plain = value(xm_matmul(&b, vx, in({4, 3}, w2), false, false));
    Floats plain_expected(plain->f, plain->f + plain->n);
    expect_near(value(xm_matmul(&b, vx, weight({4, 3}, w2), false, false)),
                plain_expected);
}

TEST_F(Evaluate, MatmulOfVectorsAndOfNothing)
{
    xm_value *v = in({2}, {1, 2}), *m = in({2, 2}, {1, 2, 3, 4});
    expect_near(value(xm_matmul(&b, v, m, false, false)), {7, 10});
    expect_near(value(xm_matmul(&b, m, v, false, false)), {5, 11});
    const xm_tensor *none = value(xm_matmul(&b, in({0, 2}, {}), m, false, false));
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(none->n, 0u);
    EXPECT_EQ(none->dim[1], 2);
}

TEST_F(Evaluate, SymbolsAreBoundByTheShapes)
{
    xm_type ids = {XM_I64, {1, {xm_dim_symbol(&g->dims, "tokens")}}}, mask = ids;
    xm_dim whole =
        xm_dim_add(&g->dims, xm_dim_symbol(&g->dims, "past"), ids.shape.dim[0]);
    mask.shape.dim[0] = whole;
    declare(ints({5}, {0, 0, 0, 0, 0}), mask);
    declare(ints({2}, {0, 0}), ids);
    const xm_dim wanted[] = {xm_dim_symbol(&g->dims, "past"), whole};
    EXPECT_EQ(ints_of(value(xm_shape_value(&b, XM_I64, wanted, 2))), (Ints{3, 5}));
    declare(ints({3}, {0, 0, 0}), ids);
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "tokens"), nullptr) << err.text;
}

TEST_F(Evaluate, InputsAreCheckedByNameAndType)
{
    xm_value *x = in({1}, {1});
    xm_result(&b, "r", x);
    names[0] = "other";
    EXPECT_EQ(run(), XM_NOT_FOUND);
    EXPECT_NE(strstr(err.text, "'other'"), nullptr) << err.text;
    names[0] = "p0";
    kept[0] = ints({1}, {1});
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "f32[1]"), nullptr) << err.text;
    kept.clear();
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "has no tensor"), nullptr) << err.text;
}

TEST_F(Evaluate, AssignTakesEffectAfterTheRun)
{
    states = xm_state_store_create();
    xm_type type = {XM_F32, {1, {xm_dim_symbol(&g->dims, "past")}}};
    xm_value *old = xm_read_value(&b, "s", &type, xm_none(g));
    xm_attr attr = {};
    xm_value *grown = op(XM_OP_CONCAT, {old, in({2}, {1, 2})}, &attr);
    ASSERT_NE(xm_assign(&b, "s", grown), nullptr);
    xm_result(&b, "old", old);
    ASSERT_EQ(run(), XM_OK) << err.text;
    EXPECT_EQ(outputs[0]->n, 0u);
    ASSERT_EQ(run(), XM_OK) << err.text;
    expect_near(outputs[0].get(), {1, 2});
    expect_near(xm_state_get(states, "s"), {1, 2, 1, 2});
    xm_state_store_reset(states);
    EXPECT_EQ(xm_state_get(states, "s"), nullptr);
}

TEST_F(Evaluate, NormRopeAndGlu)
{
    xm_attr attr = {};
    expect_near(value(op(XM_OP_RMS_NORM, {in({1, 2}, {3, 4}), in({2}, {1, 10})}, &attr)),
                {3 / std::sqrt(12.5f), 40 / std::sqrt(12.5f)});
    xm_value *rope = op(XM_OP_ROPE, {in({1, 1, 2, 3}, {1, 2, 9, 3, 4, 8}),
                                     in({1, 1, 2}, {0, 0}), in({1, 1, 2}, {1, 1})});
    expect_near(value(rope), {-2, 1, 9, -4, 3, 8});
    xm_attr glu = defaults(XM_OP_GLU);
    expect_near(value(op(XM_OP_GLU, {in({1}, {1}), in({1}, {2})}, &glu)), {1.4621172f});
}

TEST(TensorBytes, RoundTripInEveryStorableType)
{
    const int64_t dim[] = {5};
    for (xm_element e : {XM_F16, XM_BF16, XM_F32, XM_F64, XM_I4, XM_U4, XM_I8, XM_U8,
                         XM_I32, XM_I64, XM_BOOL, XM_U2}) {
        uint8_t bytes[40] = {}, back[40] = {};
        xm_tensor *t = nullptr;
        ASSERT_EQ(xm_tensor_create(&t, e, 1, dim, nullptr), XM_OK);
        for (int i = 0; i < 5; i++)
            t->f ? (void)(t->f[i] = (float)(i % 2)) : (void)(t->i[i] = i % 2);
        xm_tensor_to_bytes(t, bytes);
        xm_tensor_destroy(t);
        ASSERT_EQ(xm_tensor_from_bytes(&t, e, 1, dim, bytes, nullptr), XM_OK);
        EXPECT_EQ(t->f ? t->f[3] : (float)t->i[3], 1) << xm_element_text(e);
        xm_tensor_to_bytes(t, back);
        EXPECT_EQ(memcmp(bytes, back, sizeof(bytes)), 0) << xm_element_text(e);
        xm_tensor_destroy(t);
    }
}

TEST(TensorBytes, HostileSizesAreRefused)
{
    xm_tensor *t = nullptr;
    xm_error err = {};
    const int64_t huge[] = {INT64_MAX, INT64_MAX, 4}, negative[] = {-1},
                  empty[] = {INT64_MAX, 0};
    EXPECT_EQ(xm_tensor_create(&t, XM_F32, 3, huge, &err), XM_NO_MEMORY);
    EXPECT_EQ(xm_tensor_create(&t, XM_F32, 1, negative, nullptr), XM_INVALID);
    EXPECT_EQ(xm_tensor_create(&t, XM_STRING, 0, nullptr, nullptr), XM_UNSUPPORTED);
    EXPECT_EQ(xm_tensor_create(&t, XM_F32, 9, huge, nullptr), XM_UNSUPPORTED);
    ASSERT_EQ(xm_tensor_create(&t, XM_F32, 2, empty, nullptr), XM_OK);
    EXPECT_EQ(t->n, 0u);
    xm_tensor_destroy(t);
}
