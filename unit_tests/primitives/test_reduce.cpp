/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/reduce/reduce.h"

#include <limits>

#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/harness.h"

namespace
{

class Reduce : public PrimitiveTest
{
  protected:
    static double join(xm_reduce_fn fn, double a, double b)
    {
        switch (fn) {
        case XM_REDUCE_FN_MAX:
            return a > b ? a : b;
        case XM_REDUCE_FN_MIN:
            return a < b ? a : b;
        case XM_REDUCE_FN_PROD:
            return a * b;
        default:
            return a + b;
        }
    }
    /* Reduces x[3,4,5,6] over axes 1 and 2. */
    void check(xm_reduce_fn fn, xm_element element, const std::vector<float> &values)
    {
        SCOPED_TRACE((int)fn);
        tensor x(element, {3, 4, 5, 6}, values), y(element, {3, 6});
        xm_reduce_desc desc = {fn, 1, 2, element, element};
        primitive_ptr reduce;
        ASSERT_XM_OK(xm_reduce_create(engine, &desc, &reduce.p, &err));
        const xm_operand operands[] = {x.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(reduce.p, operands, &run, &err));
        std::vector<float> in = x.rounded(), want;
        for (size_t o = 0; o < 3; o++)
            for (size_t i = 0; i < 6; i++) {
                double v = in[o * 120 + i];
                for (size_t n = 1; n < 20; n++)
                    v = join(fn, v, in[o * 120 + n * 6 + i]);
                v = fn == XM_REDUCE_FN_MEAN ? v / 20 : v;
                want.push_back(xm_element_is_int(element) ? (float)(int64_t)v : (float)v);
            }
        EXPECT_TRUE(rows_match(y.read(), want, 6, element));
    }
};

TEST_F(Reduce, EveryFunctionAgreesWithItsFormula)
{
    std::vector<float> small = random_floats(360, 1), whole;
    for (size_t i = 0; i < 360; i++)
        whole.push_back((float)((i * 7) % 5) - 1.0f);
    const xm_element elements[] = {XM_F32, XM_F16, XM_I64};
    const std::vector<size_t> steps = sample::of<size_t>({0, 1, 2}, 1);
    for (size_t fn = 0; fn < XM_REDUCE_FN_COUNT; fn++) {
        for (size_t step : steps) {
            const xm_element e = elements[(fn + step) % std::size(elements)];
            check((xm_reduce_fn)fn, e, e == XM_I64 ? whole : small);
        }
    }
}

TEST_F(Reduce, OfNoElementsIsWhatChangesNothing)
{
    const float infinity = std::numeric_limits<float>::infinity();
    const struct {
        xm_reduce_fn fn;
        float value;
    } cases[] = {{XM_REDUCE_FN_SUM, 0},
                 {XM_REDUCE_FN_MEAN, 0},
                 {XM_REDUCE_FN_PROD, 1},
                 {XM_REDUCE_FN_MAX, -infinity},
                 {XM_REDUCE_FN_MIN, infinity}};
    for (const auto &c : cases) {
        tensor x(XM_F32, {0, 3}), y(XM_F32, {3});
        xm_reduce_desc desc = {c.fn, 0, 1, XM_F32, XM_F32};
        primitive_ptr reduce;
        ASSERT_XM_OK(xm_reduce_create(engine, &desc, &reduce.p, &err));
        const xm_operand operands[] = {x.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(reduce.p, operands, &run, &err));
        EXPECT_EQ(y.read(), std::vector<float>(3, c.value)) << (int)c.fn;
    }
}

TEST_F(Reduce, OfNoIntegersIsABoundOfTheType)
{
    const struct {
        xm_reduce_fn fn;
        xm_element e;
        float value;
    } cases[] = {{XM_REDUCE_FN_SUM, XM_I32, 0},
                 {XM_REDUCE_FN_PROD, XM_I64, 1},
                 {XM_REDUCE_FN_MAX, XM_I32, -2147483648.0f},
                 {XM_REDUCE_FN_MIN, XM_I32, 2147483648.0f}, /* the nearest f32 */
                 {XM_REDUCE_FN_MAX, XM_I64, -9223372036854775808.0f},
                 {XM_REDUCE_FN_MAX, XM_U8, 0},
                 {XM_REDUCE_FN_MIN, XM_U8, 255}};
    for (const auto &c : cases) {
        tensor x(c.e, {0, 3}), y(c.e, {3});
        xm_reduce_desc desc = {c.fn, 0, 1, c.e, c.e};
        primitive_ptr reduce;
        ASSERT_XM_OK(xm_reduce_create(engine, &desc, &reduce.p, &err));
        const xm_operand operands[] = {x.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(reduce.p, operands, &run, &err));
        EXPECT_EQ(y.read(), std::vector<float>(3, c.value)) << xm_element_text(c.e);
    }
}

TEST_F(Reduce, RefusesAxesThatAreNotThere)
{
    tensor x(XM_F32, {3, 4}), y(XM_F32, {3});
    xm_reduce_desc desc = {XM_REDUCE_FN_SUM, 1, 2, XM_F32, XM_F32};
    primitive_ptr reduce;
    ASSERT_XM_OK(xm_reduce_create(engine, &desc, &reduce.p, &err));
    const xm_operand operands[] = {x.operand(), y.operand()};
    EXPECT_EQ(xm_primitive_run(reduce.p, operands, &run, &err), XM_INVALID);
}

class Softmax : public PrimitiveTest
{
  protected:
    void check(uint32_t axis, xm_element src, xm_element dst)
    {
        SCOPED_TRACE(axis);
        const int64_t dims[] = {3, 5, 37};
        tensor x(src, {3, 5, 37}, random_floats(555, 1)), y(dst, {3, 5, 37});
        xm_softmax_desc desc = {axis, src, dst};
        primitive_ptr softmax;
        ASSERT_XM_OK(xm_softmax_create(engine, &desc, &softmax.p, &err));
        const xm_operand operands[] = {x.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(softmax.p, operands, &run, &err));
        uint64_t outer = 1, inner = 1;
        for (uint32_t d = 0; d < 3; d++)
            (d < axis ? outer : inner) *= d == axis ? 1 : (uint64_t)dims[d];
        std::vector<float> want(555);
        xm_ref_softmax(x.rounded().data(), outer, (uint64_t)dims[axis], inner,
                       want.data());
        EXPECT_TRUE(rows_match(y.read(), want, 37, dst));
    }
};

TEST_F(Softmax, EveryVariantAgreesWithTheReference)
{
    for (size_t v = 0; v < xm_softmax_table.n; v++) {
        const xm_variant any_shape = {xm_softmax_table.rows[v].name,
                                      xm_softmax_table.rows[v].family, 0, nullptr};
        bool last_axis_only = xm_softmax_table.rows[v].refuses != nullptr;
        if (xm_variant_refusal(&any_shape, xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(xm_softmax_table.rows[v].name);
        force("softmax", xm_softmax_table.rows[v].name);
        for (uint32_t axis = last_axis_only ? 2 : 0; axis < 3; axis++) {
            check(axis, XM_F32, XM_F32);
            check(axis, XM_F16, XM_F16);
        }
    }
}

class Topk : public PrimitiveTest
{
  protected:
    void check(int64_t n, int64_t k, bool largest, xm_element src, xm_element ids)
    {
        SCOPED_TRACE("n " + std::to_string(n) + " k " + std::to_string(k));
        std::vector<float> values = random_floats((size_t)(3 * n), 1);
        for (float &f : values) /* makes many ties */
            f = std::floor(f * 8);
        tensor x(src, {3, n}, values), v(src, {3, k}), id(ids, {3, k});
        xm_topk_desc desc = {largest, src, src, ids};
        primitive_ptr topk;
        ASSERT_XM_OK(xm_topk_create(engine, &desc, &topk.p, &err));
        const xm_operand operands[] = {x.operand(), v.operand(), id.operand()};
        ASSERT_XM_OK(xm_primitive_run(topk.p, operands, &run, &err));
        std::vector<float> want((size_t)(3 * k));
        std::vector<int32_t> want_ids((size_t)(3 * k));
        xm_ref_topk(values.data(), 3, (uint64_t)n, (uint64_t)k, largest, want.data(),
                    want_ids.data());
        EXPECT_EQ(v.read(), want);
        EXPECT_EQ(id.read_ints(), std::vector<int64_t>(want_ids.begin(), want_ids.end()));
    }
};

TEST_F(Topk, EveryVariantAgreesWithTheReferenceAndBreaksTiesByIndex)
{
    for (size_t v = 0; v < xm_topk_table.n; v++) {
        SCOPED_TRACE(xm_topk_table.rows[v].name);
        force("topk", xm_topk_table.rows[v].name);
        check(1, 1, true, XM_F32, XM_I32);
        check(40, 8, true, XM_F32, XM_I64);
        check(40, 40, false, XM_F16, XM_I32);
        check(33, 5, true, XM_I32, XM_I32);
        check(129, 7, true, XM_F32, XM_I32);
    }
}

} // namespace
