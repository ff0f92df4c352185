/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/linear/linear.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

class Matmul : public PrimitiveTest
{
  protected:
    void check(const std::vector<int64_t> &a_batch, const std::vector<int64_t> &b_batch,
               const std::vector<int64_t> &c_batch, bool ta, bool tb)
    {
        const int64_t m = 5, n = 7, k = 19;
        auto with = [](std::vector<int64_t> d, int64_t x, int64_t y) {
            d.push_back(x);
            d.push_back(y);
            return d;
        };
        auto count = [](const std::vector<int64_t> &d) {
            int64_t c = 1;
            for (int64_t x : d)
                c *= x;
            return (size_t)c;
        };
        tensor a(XM_F32, with(a_batch, ta ? k : m, ta ? m : k),
                 random_floats(count(a_batch) * m * k, 1));
        tensor b(XM_F16, with(b_batch, tb ? n : k, tb ? k : n),
                 random_floats(count(b_batch) * k * n, 2));
        tensor c(XM_F32, with(c_batch, m, n));
        const xm_matmul_desc desc = {ta, tb, XM_F32, XM_F16, XM_F32};
        primitive_ptr matmul;
        ASSERT_XM_OK(xm_matmul_create(engine, &desc, &matmul.p, &err));
        const xm_operand operands[] = {a.operand(), b.operand(), c.operand()};
        planned_run r(matmul.p, operands, queue);
        ASSERT_XM_OK(xm_primitive_run(matmul.p, operands, &r.run, &err));
        std::vector<float> want(c.size()), va = a.rounded(), vb = b.rounded();
        /* at most two leading dimensions, which are indexed by hand */
        int64_t outer = c_batch.size() > 1 ? c_batch[0] : 1, inner = c_batch.back();
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t i = 0; i < inner; i++) {
                auto at = [&](const std::vector<int64_t> &d) {
                    int64_t d1 = d.size() > 0 ? d.back() : 1;
                    int64_t d0 = d.size() > 1 ? d[0] : 1;
                    return (d0 == 1 ? 0 : o) * d1 + (d1 == 1 ? 0 : i);
                };
                xm_ref_matmul(va.data() + at(a_batch) * m * k, ta,
                              vb.data() + at(b_batch) * k * n, tb, m, n, k,
                              want.data() + (o * inner + i) * m * n);
            }
        }
        EXPECT_TRUE(rows_match(c.read(), want, n, XM_F32));
    }
};

TEST_F(Matmul, EveryVariantAgreesWithTheReference)
{
    struct batched {
        std::vector<int64_t> a, b, c;
        bool ta, tb;
    };
    const batched cases[] = {{{3}, {3}, {3}, false, false},
                             {{3}, {}, {3}, false, true},
                             {{2, 3}, {2, 1}, {2, 3}, true, false},
                             {{1, 3}, {2, 1}, {2, 3}, true, true},
                             {{2, 1}, {3}, {2, 3}, false, true}};
    for_rows(xm_matmul_table, std::size(cases), 2, [&](const xm_variant &, size_t i) {
        const batched &c = cases[i];
        check(c.a, c.b, c.c, c.ta, c.tb);
        return true;
    });
}

} // namespace
