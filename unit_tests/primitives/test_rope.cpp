/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/rope/rope.h"

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
    for (size_t v = 0; v < xm_rope_table.n; v++) {
        if (xm_variant_refusal(&xm_rope_table.rows[v], xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(xm_rope_table.rows[v].name);
        force("rope", xm_rope_table.rows[v].name);
        for (const problem &p : problems)
            check(p);
    }
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

} // namespace
