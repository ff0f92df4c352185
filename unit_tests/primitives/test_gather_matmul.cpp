/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/moe/moe.h"

#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

const weight_format u4g32 = {XM_U4, 32, true}, i8row = {XM_I8, UINT64_MAX, false},
                    f16 = {XM_F16, 0, false};
const weight_format q4_0 = blocks_of(XM_WEIGHT_Q4_0), q6_k = blocks_of(XM_WEIGHT_Q6_K),
                    mxfp4 = blocks_of(XM_WEIGHT_MXFP4);

class GatherMatmul : public PrimitiveTest
{
  protected:
    bool check(const weight_format &f, xm_element src, uint64_t n, uint64_t k,
               uint64_t a_slots, xm_element ids_element, bool has_bias)
    {
        SCOPED_TRACE(text_of(f));
        const uint64_t experts = 5, tokens = 3, slots = 2;
        test_weight w(experts, n, k, f, 3);
        tensor a(src, {(int64_t)a_slots, (int64_t)tokens, (int64_t)k},
                 random_floats(a_slots * tokens * k, 1));
        const std::vector<int64_t> chosen = {4, 0, 2, 2, 1, 4};
        tensor ids(ids_element, {(int64_t)tokens, (int64_t)slots}, chosen);
        tensor bias(XM_F32, {(int64_t)experts, (int64_t)n},
                    random_floats(experts * n, 2));
        tensor out(XM_F32, {(int64_t)slots, (int64_t)tokens, (int64_t)n});
        const xm_gather_matmul_desc desc = {w.device, has_bias ? bias.buffer() : nullptr,
                                            src, XM_F32, ids_element};
        primitive_ptr p;
        xm_error error = {};
        xm_status status = xm_gather_matmul_create(engine, &desc, &p.p, &error);
        if (status == XM_UNSUPPORTED)
            return false;
        EXPECT_EQ(status, XM_OK) << error.text;
        const xm_operand operands[] = {a.operand(), ids.operand(), out.operand()};
        planned_run r(p.p, operands, queue);
        EXPECT_EQ(xm_primitive_run(p.p, operands, &r.run, &error), XM_OK) << error.text;
        std::vector<float> want(out.size());
        std::vector<int32_t> i32(chosen.begin(), chosen.end());
        EXPECT_EQ(xm_ref_gather_matmul(a.rounded().data(), a_slots, &w.host, i32.data(),
                                       has_bias ? bias.rounded().data() : nullptr, tokens,
                                       slots, want.data()),
                  XM_OK);
        EXPECT_TRUE(rows_close(out.read(), want, n, src));
        return true;
    }
};

TEST_F(GatherMatmul, EveryVariantAgreesWithTheReference)
{
    std::set<std::string> left = rows_to_cover(xm_gather_matmul_table);
    const struct {
        weight_format f;
        xm_element src;
        uint64_t n, k, slots;
        xm_element ids;
        bool has_bias;
    } cases[] = {{u4g32, XM_F32, 33, 96, 1, XM_I32, true},
                 {u4g32, XM_F16, 33, 96, 1, XM_I32, true},
                 {i8row, XM_F32, 21, 320, 2, XM_I64, false},
                 {i8row, XM_F16, 70, 320, 2, XM_I64, true},
                 {f16, XM_F32, 8, 50, 2, XM_I32, true},
                 {view_of(u4g32), XM_F32, 33, 96, 1, XM_I32, true},
                 {q4_0, XM_F32, 21, 96, 1, XM_I32, true},
                 {view_of(q6_k), XM_F32, 33, 256, 2, XM_I32, false},
                 {mxfp4, XM_F32, 8, 320, 2, XM_I64, true}};
    for_rows(xm_gather_matmul_table, std::size(cases), 1,
             [&](const xm_variant &row, size_t i) {
                 const auto &c = cases[i];
                 bool ran = check(c.f, c.src, c.n, c.k, c.slots, c.ids, c.has_bias);
                 if (ran)
                     left.erase(row.name);
                 return ran;
             });
    EXPECT_TRUE(left.empty()) << *left.begin() << " was never run";
}

} // namespace
