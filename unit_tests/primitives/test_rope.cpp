/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/rope/rope.h"

#include <cmath>

#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/harness.h"

namespace
{

struct problem {
    int64_t b, t, heads, d, r;
    bool shared_tables, in_place;
    xm_element element;
};

const problem problems[] = {
    {1, 1, 1, 64, 64, true, false, XM_F32},  {2, 3, 4, 128, 128, true, false, XM_F16},
    {3, 5, 2, 80, 80, false, false, XM_F32}, {2, 7, 3, 128, 64, false, true, XM_F16},
    {1, 17, 8, 64, 22, true, true, XM_F32},  {2, 2, 1, 20, 0, true, false, XM_F32},
};

class Rope : public PrimitiveTest
{
  protected:
    void check(const problem &p)
    {
        SCOPED_TRACE("D " + std::to_string(p.d) + " R " + std::to_string(p.r));
        size_t n = (size_t)(p.b * p.t * p.heads * p.d);
        int64_t table_b = p.shared_tables ? 1 : p.b;
        size_t n_table = (size_t)(table_b * p.t * p.r);
        tensor x(p.element, {p.b, p.t, p.heads, p.d}, random_floats(n, 1));
        tensor cos(XM_F32, {table_b, p.t, p.r}, random_floats(n_table, 2));
        tensor sin(XM_F32, {table_b, p.t, p.r}, random_floats(n_table, 3));
        tensor other(p.element, {p.b, p.t, p.heads, p.d});
        tensor &y = p.in_place ? x : other;
        std::vector<float> in = x.rounded(), want(n);
        std::vector<float> c = cos.rounded(), s = sin.rounded();
        xm_rope_desc desc = {p.element};
        primitive_ptr rope;
        ASSERT_XM_OK(xm_rope_create(engine, &desc, &rope.p, &err));
        const xm_operand operands[] = {x.operand(), cos.operand(), sin.operand(),
                                       y.operand()};
        ASSERT_XM_OK(xm_primitive_run(rope.p, operands, &run, &err));
        size_t sequence = n / (size_t)p.b;
        for (int64_t b = 0; b < p.b; b++) {
            size_t table = p.shared_tables ? 0 : (size_t)(b * p.t * p.r);
            xm_ref_rope(&in[(size_t)b * sequence], c.data() + table, s.data() + table,
                        (uint64_t)p.t, (uint64_t)p.heads, (uint64_t)p.d, (uint64_t)p.r,
                        &want[(size_t)b * sequence]);
        }
        EXPECT_TRUE(rows_match(y.read(), want, (size_t)p.d, p.element));
    }
};

TEST_F(Rope, EveryVariantAgreesWithTheReference)
{
    for_rows(xm_rope_table, std::size(problems), 3, [&](const xm_variant &, size_t i) {
        check(problems[i]);
        return true;
    });
}

TEST_F(Rope, RefusesTablesOfAnotherLength)
{
    tensor x(XM_F32, {1, 4, 2, 64}), cos(XM_F32, {1, 3, 64}), sin(XM_F32, {1, 3, 64});
    xm_rope_desc desc = {XM_F32};
    primitive_ptr rope;
    ASSERT_XM_OK(xm_rope_create(engine, &desc, &rope.p, &err));
    const xm_operand operands[] = {x.operand(), cos.operand(), sin.operand(),
                                   x.operand()};
    EXPECT_EQ(xm_primitive_run(rope.p, operands, &run, &err), XM_INVALID);
}

class RopeTables : public PrimitiveTest
{
  protected:
    void check(xm_element element, bool twice, const xm_variant &row)
    {
        SCOPED_TRACE(row.name);
        const int64_t b = 2, t = 5, r = 11, columns = twice ? 2 * r : r;
        const std::vector<int64_t> at = {0, 1, 2, 3, 4, 0, 7, 500, 32767, 131071};
        std::vector<float> frequencies, c(at.size() * columns), s(c.size());
        for (int64_t i = 0; i < r; i++)
            frequencies.push_back(powf(10000.0f, -(float)i / r));
        tensor positions(element, {b, t}, at);
        tensor f(XM_F32, {r}, frequencies);
        tensor cos(XM_F32, {b, t, columns}), sin(XM_F32, {b, t, columns});
        xm_rope_tables_desc desc = {f.operand().buffer, (uint32_t)r, element, 0.75f,
                                    twice};
        primitive_ptr tables;
        ASSERT_XM_OK(xm_rope_tables_create(engine, &desc, &tables.p, &err));
        const xm_operand operands[] = {positions.operand(), cos.operand(), sin.operand()};
        ASSERT_XM_OK(xm_primitive_run(tables.p, operands, &run, &err));
        xm_ref_rope_tables(at.data(), frequencies.data(), at.size(), (uint64_t)r, 0.75f,
                           twice, c.data(), s.data());
        EXPECT_TRUE(rows_match(cos.read(), c, (size_t)columns, XM_F32));
        EXPECT_TRUE(rows_match(sin.read(), s, (size_t)columns, XM_F32));
    }
};

TEST_F(RopeTables, EveryVariantAgreesWithTheReference)
{
    for (size_t v = 0; v < xm_rope_tables_table.n; v++) {
        force("rope_tables", xm_rope_tables_table.rows[v].name);
        for (bool twice : {false, true}) {
            check(XM_I64, twice, xm_rope_tables_table.rows[v]);
            check(XM_I32, twice, xm_rope_tables_table.rows[v]);
        }
    }
}

TEST_F(RopeTables, RefusesTablesOfAnotherSize)
{
    tensor positions(XM_I64, {1, 4}), f(XM_F32, {8});
    tensor cos(XM_F32, {1, 4, 16}), sin(XM_F32, {1, 4, 8});
    xm_rope_tables_desc desc = {f.operand().buffer, 8, XM_I64, 1.0f, true};
    primitive_ptr tables;
    ASSERT_XM_OK(xm_rope_tables_create(engine, &desc, &tables.p, &err));
    const xm_operand operands[] = {positions.operand(), cos.operand(), sin.operand()};
    EXPECT_EQ(xm_primitive_run(tables.p, operands, &run, &err), XM_INVALID);
}

} // namespace
