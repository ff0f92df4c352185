/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/eltwise/eltwise.h"

#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

int64_t
I(double x)
{
    return (int64_t)x;
}

/* Returns the result of a function of eltwise.def, computed on the host. */
double
formula(xm_eltwise_fn fn, bool integer, double a, double b, double c, double p0,
        double p1)
{
    (void)integer;
    switch (fn) {
#define FUNCTION(id, n, expression)                                                      \
    case XM_FN_##id:                                                                     \
        return (double)(expression);
#include "primitives/eltwise/eltwise.def"
    default:
        return 0;
    }
}

const char *const names[] = {
#define FUNCTION(id, n, expression) #id,
#include "primitives/eltwise/eltwise.def"
};

bool
is_bitwise(int fn)
{
    return fn >= XM_FN_BITWISE_AND && fn <= XM_FN_BITWISE_NOT;
}

std::vector<float>
positive(size_t n, uint32_t seed)
{
    std::vector<float> v = random_floats(n, seed);
    for (float &f : v)
        f = std::fabs(f) * 3 + 0.05f;
    return v;
}

/* Returns operands; most functions get values above 0. */
std::vector<float>
operands_of(xm_eltwise_fn fn, size_t n, uint32_t seed)
{
    std::vector<float> v = positive(n, seed);
    const bool below_1 =
        fn == XM_FN_ASIN || fn == XM_FN_ACOS || fn == XM_FN_ATANH || fn == XM_FN_TAN;
    for (float &f : v)
        f = below_1 ? f / 4 : fn == XM_FN_ACOSH ? f + 1 : f;
    return v;
}

class Eltwise : public PrimitiveTest
{
  protected:
    /* Runs f on n elements. All operands and the result have one type, except a boolean result or
     * condition. */
    void check(xm_eltwise_fn fn, xm_element e, xm_element result,
               const std::vector<float> *values)
    {
        SCOPED_TRACE(names[fn]);
        const size_t n = 37;
        xm_element first = fn == XM_FN_SELECT ? XM_BOOL : e;
        tensor a(first, {(int64_t)n}, values[0]), b(e, {(int64_t)n}, values[1]);
        tensor c(e, {(int64_t)n}, values[2]), y(result, {(int64_t)n});
        xm_eltwise_desc desc = {fn, 0.5f, 2.0f, first, e, e, result};
        primitive_ptr eltwise;
        ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
        const xm_operand operands[] = {a.operand(), b.operand(), c.operand(),
                                       y.operand()};
        ASSERT_XM_OK(xm_primitive_run(eltwise.p, operands, &run, &err));
        std::vector<float> va = a.rounded(), vb = b.rounded(), vc = c.rounded(), want(n);
        bool integer = !xm_element_is_float(e) && fn < XM_FN_SQRT;
        for (size_t i = 0; i < n; i++) {
            double v = formula(fn, integer, va[i], vb[i], vc[i], 0.5, 2.0);
            want[i] = xm_element_is_float(result) ? (float)v : (float)I(v);
        }
        EXPECT_TRUE(rows_match(y.read(), want, n, result));
    }

    void check_glu(xm_activation act, xm_element e)
    {
        tensor gate(e, {3, 35}, random_floats(105, 1));
        tensor up(e, {3, 35}, random_floats(105, 2)), y(e, {3, 35});
        xm_glu_desc desc = {act, e};
        primitive_ptr glu;
        ASSERT_XM_OK(xm_glu_create(engine, &desc, &glu.p, &err));
        const xm_operand operands[] = {gate.operand(), up.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(glu.p, operands, &run, &err));
        std::vector<float> g = gate.rounded(), u = up.rounded(), want(105);
        for (size_t i = 0; i < want.size(); i++)
            want[i] = xm_ref_activation(act, 1.0f, g[i]) * u[i];
        EXPECT_TRUE(rows_match(y.read(), want, 35, e));
    }
};

TEST_F(Eltwise, EveryFunctionAgreesWithItsFormulaInFloat)
{
    std::vector<xm_eltwise_fn> functions;
    for (int fn = 0; fn < XM_FN_COUNT; fn++) {
        if (!is_bitwise(fn) && fn != XM_FN_SELECT)
            functions.push_back((xm_eltwise_fn)fn);
    }
    for_rows(xm_eltwise_table, functions.size(), functions.size() / xm_eltwise_table.n,
             [&](const xm_variant &, size_t i) {
                 const std::vector<float> values[] = {operands_of(functions[i], 37, 1),
                                                      positive(37, 2), positive(37, 3)};
                 check(functions[i], XM_F32, XM_F32, values);
                 return true;
             });
}

TEST_F(Eltwise, EveryFunctionAgreesWithItsFormulaInIntegers)
{
    std::vector<float> values[3];
    for (int i = 0; i < 37; i++) {
        values[0].push_back((float)(i % 9 - 4));
        values[1].push_back((float)(i % 5 + 1) * (i % 2 ? 1.0f : -1.0f));
        values[2].push_back((float)i);
    }
    sample::deck deck(XM_FN_SQRT);
    deck.deal(XM_FN_SQRT / 2, [&](size_t fn) {
        if (fn != XM_FN_POWER)
            check((xm_eltwise_fn)fn, fn % 2 ? XM_I64 : XM_I32, XM_I64, values);
        return true;
    });
    for (float &v : values[1])
        v = std::fabs(v);
    check(XM_FN_POWER, XM_I32, XM_I32, values);
    check(XM_FN_SELECT, XM_F16, XM_F16, values);
    check(XM_FN_LESS, XM_F16, XM_BOOL, values);
    check(XM_FN_LOGICAL_NOT, XM_BOOL, XM_BOOL, values);
    values[0] = values[1];
    check(XM_FN_SQRT, XM_I32, XM_F32, values);
}

uint32_t
bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* Every bf16 number and f32 numbers between it and the next: ties and their neighbours, zeros,
 * subnormals, infinities, NaN. */
TEST_F(Eltwise, RoundsToBf16BitByBit)
{
    std::vector<float> values;
    for (uint32_t high = 0; high < 0x10000; high++) {
        for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
            const uint32_t bits = high << 16 | low;
            float f;
            memcpy(&f, &bits, sizeof(f));
            values.push_back(f);
        }
    }
    const int64_t n = (int64_t)values.size();
    const xm_eltwise_desc desc = {XM_FN_ROUND_BF16, 0,          0,     XM_F32,
                                  XM_DYNAMIC,       XM_DYNAMIC, XM_F32};
    for (const char *row : {"eltwise_flat_vec", "eltwise_ref"}) {
        force("eltwise", row);
        tensor a(XM_F32, {n}, values), y(XM_F32, {n});
        primitive_ptr eltwise;
        ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
        const xm_operand operands[] = {a.operand(), {}, {}, y.operand()};
        ASSERT_XM_OK(xm_primitive_run(eltwise.p, operands, &run, &err));
        const std::vector<float> got = y.read();
        for (size_t i = 0; i < got.size(); i++)
            ASSERT_EQ(bits_of(got[i]), (uint32_t)xm_float_to_bf16(values[i]) << 16)
                << row << " of " << std::hex << bits_of(values[i]);
    }
}

TEST_F(Eltwise, IntegerDivisionByZeroGivesZero)
{
    tensor a(XM_I64, {2}, std::vector<int64_t>{7, INT64_MIN});
    tensor b(XM_I64, {2}, std::vector<int64_t>{0, -1}), y(XM_I64, {2});
    xm_eltwise_desc desc = {XM_FN_DIVIDE, 0, 0, XM_I64, XM_I64, XM_DYNAMIC, XM_I64};
    primitive_ptr eltwise;
    ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
    const xm_operand operands[] = {a.operand(), b.operand(), {}, y.operand()};
    ASSERT_XM_OK(xm_primitive_run(eltwise.p, operands, &run, &err));
    EXPECT_EQ(y.read_ints(), (std::vector<int64_t>{0, INT64_MIN}));
}

TEST_F(Eltwise, ConvertsBetweenAllTypes)
{
    const std::vector<xm_element> types = {XM_F16, XM_F32, XM_I32,
                                           XM_I64, XM_U8,  XM_BOOL};
    const std::vector<size_t> steps = sample::of<size_t>({0, 1, 2, 3, 4, 5}, 2);
    const std::vector<float> values = {0.0f, 1.0f, 2.75f, 100.5f, 0.4f};
    for (size_t f = 0; f < types.size(); f++) {
        for (size_t step : steps) { /* each type on each side */
            const xm_element from = types[f], to = types[(f + step) % types.size()];
            SCOPED_TRACE(std::string(xm_element_text(from)) + " -> " +
                         xm_element_text(to));
            tensor a(from, {5}, values), y(to, {5}), want(to, {5}, a.rounded());
            xm_eltwise_desc desc = {XM_FN_CONVERT, 0,          0, from,
                                    XM_DYNAMIC,    XM_DYNAMIC, to};
            primitive_ptr eltwise;
            ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
            const xm_operand operands[] = {a.operand(), {}, {}, y.operand()};
            ASSERT_XM_OK(xm_primitive_run(eltwise.p, operands, &run, &err));
            EXPECT_EQ(y.read(), want.rounded());
        }
    }
}

struct shapes {
    std::vector<int64_t> a, b, y;
    const char *kernel;
};
const shapes broadcasts[] = {
    {{4, 33}, {4, 33}, {4, 33}, "eltwise_flat_vec"},
    {{4, 33}, {1}, {4, 33}, "eltwise_flat_vec"},
    {{4, 33}, {33}, {4, 33}, "eltwise_flat_vec"},
    {{4, 33}, {4, 1}, {4, 33}, "eltwise_flat_vec"},
    {{3, 1, 5, 1}, {4, 1, 40}, {3, 4, 5, 40}, "eltwise_flat_vec"},
    {{2, 3}, {2, 1}, {2, 3}, "eltwise_ref"},
    {{2, 1, 2, 1, 2, 1, 2}, {1, 3, 1, 3, 1, 3, 1}, {2, 3, 2, 3, 2, 3, 2}, "eltwise_ref"},
    {{}, {}, {}, "eltwise_ref"},
    {{2500}, {2500}, {2500}, "eltwise_flat_vec"},
    {{0, 4}, {4}, {0, 4}, "none"},
};

size_t
elements(const std::vector<int64_t> &dims)
{
    size_t n = 1;
    for (int64_t d : dims)
        n *= (size_t)d;
    return n;
}

/* Returns the element of an operand of `dims` that element `at` of the broadcast result reads. */
size_t
under(size_t at, const std::vector<int64_t> &dims, const std::vector<int64_t> &y)
{
    size_t index = 0, step = 1;
    for (size_t d = y.size(), left = at, k = dims.size(); d-- > 0;) {
        size_t i = left % (size_t)y[d];
        left /= (size_t)y[d];
        if (k == 0)
            break;
        k--;
        index += (dims[k] == 1 ? 0 : i) * step;
        step *= (size_t)dims[k];
    }
    return index;
}

TEST_F(Eltwise, BroadcastsEveryOperand)
{
    const bool cpu = xm_engine_info(engine)->kind == XM_DEVICE_CPU;
    xm_eltwise_desc desc = {XM_FN_SUBTRACT, 0, 0, XM_F32, XM_F16, XM_DYNAMIC, XM_F32};
    primitive_ptr eltwise;
    ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
    for (const shapes &s : broadcasts) {
        tensor a(XM_F32, s.a, random_floats(elements(s.a), 1));
        tensor b(XM_F16, s.b, random_floats(elements(s.b), 2)), y(XM_F32, s.y);
        const xm_operand operands[] = {a.operand(), b.operand(), {}, y.operand()};
        char kernel[64];
        xm_primitive_describe(eltwise.p, operands, kernel, sizeof(kernel));
        if (cpu) {
            EXPECT_STREQ(kernel, s.kernel);
        }
        ASSERT_XM_OK(xm_primitive_run(eltwise.p, operands, &run, &err));
        std::vector<float> va = a.rounded(), vb = b.rounded(), want(y.size());
        for (size_t i = 0; i < want.size(); i++)
            want[i] = va[under(i, s.a, s.y)] - vb[under(i, s.b, s.y)];
        EXPECT_TRUE(rows_match(y.read(), want, 1, XM_F32));
    }
}

TEST_F(Eltwise, RefusesShapesThatDoNotBroadcast)
{
    tensor a(XM_F32, {4, 3}), b(XM_F32, {2, 3}), y(XM_F32, {4, 3});
    xm_eltwise_desc desc = {XM_FN_ADD, 0, 0, XM_F32, XM_F32, XM_DYNAMIC, XM_F32};
    primitive_ptr eltwise;
    ASSERT_XM_OK(xm_eltwise_create(engine, &desc, &eltwise.p, &err));
    const xm_operand operands[] = {a.operand(), b.operand(), {}, y.operand()};
    EXPECT_EQ(xm_primitive_run(eltwise.p, operands, &run, &err), XM_INVALID);
}

TEST_F(Eltwise, SupportsSaysWhy)
{
    xm_eltwise_desc desc = {XM_FN_BITWISE_NOT, 0,          0,     XM_F32,
                            XM_DYNAMIC,        XM_DYNAMIC, XM_F32};
    EXPECT_NE(xm_eltwise_supports(&desc), nullptr);
    desc.fn = XM_FN_ABS;
    EXPECT_EQ(xm_eltwise_supports(&desc), nullptr);
    desc.a = XM_F64;
    EXPECT_NE(xm_eltwise_supports(&desc), nullptr);
}

TEST_F(Eltwise, GluVariantsAgreeWithTheReference)
{
    for_rows(xm_glu_table, 2 * XM_ACT_COUNT, 4, [&](const xm_variant &, size_t i) {
        check_glu((xm_activation)(i / 2), i % 2 ? XM_F16 : XM_F32);
        return true;
    });
}

} // namespace
