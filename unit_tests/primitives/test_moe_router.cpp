/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/moe/moe.h"

#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

class Router : public PrimitiveTest
{
  protected:
    /* Returns false if the device cannot run this variant. */
    bool force_row(size_t v)
    {
        const xm_variant &row = xm_moe_route_table.rows[v];
        const xm_moe_routing routing = {XM_ROUTING_SOFTMAX, 1, true, 0.0f, 1.0f, 0.0f};
        if (xm_variant_refusal(&row, xm_engine_info(engine), &routing))
            return false;
        force("moe_route", row.name);
        return true;
    }

    void check(const xm_moe_routing &r, uint64_t tokens, uint64_t experts, bool extras,
               const std::vector<float> &values)
    {
        SCOPED_TRACE(std::string(xm_routing_text(r.kind)) +
                     " E=" + std::to_string(experts) + " K=" + std::to_string(r.top_k));
        int64_t t = (int64_t)tokens, e = (int64_t)experts, k = (int64_t)r.top_k;
        tensor logits(XM_F32, {t, e}, values);
        tensor bias(XM_F32, {e}, random_floats(experts, 4));
        tensor scale(XM_F32, {e}, random_floats(experts, 5));
        tensor weights(XM_F32, {t, k}), ids(XM_I32, {t, k});
        const xm_router_desc desc = {r, extras ? bias.buffer() : nullptr,
                                     extras ? scale.buffer() : nullptr};
        primitive_ptr router;
        ASSERT_XM_OK(xm_router_create(engine, &desc, &router.p, &err));
        const xm_operand operands[] = {logits.operand(), weights.operand(),
                                       ids.operand()};
        ASSERT_XM_OK(xm_primitive_run(router.p, operands, &run, &err));
        std::vector<float> want(tokens * r.top_k);
        std::vector<int32_t> want_ids(tokens * r.top_k);
        ASSERT_EQ(xm_ref_moe_route(&r, values.data(),
                                   extras ? bias.rounded().data() : nullptr,
                                   extras ? scale.rounded().data() : nullptr, tokens,
                                   experts, want.data(), want_ids.data()),
                  XM_OK);
        EXPECT_EQ(ids.read_ints(),
                  std::vector<int64_t>(want_ids.begin(), want_ids.end()));
        EXPECT_TRUE(rows_match(weights.read(), want, r.top_k, XM_F32));
    }
};

TEST_F(Router, EveryVariantAgreesWithTheReference)
{
    for_rows(xm_moe_route_table, XM_ROUTING_COUNT, 1,
             [&](const xm_variant &, size_t kind) {
                 for (uint32_t k : sample::of<uint32_t>({1, 3, 8}, 1)) {
                     xm_moe_routing r = {(xm_routing)kind, k, k != 3, 1e-6f, 2.5f, 0.0f};
                     check(r, 5, 8, true, random_floats(5 * 8, k));
                     r.normalise = true;
                     for (float least : {0.3f, 1.25f}) { /* more than some sums */
                         r.least_sum = least;
                         check(r, 5, 8, false, random_floats(5 * 8, k));
                     }
                     r.least_sum = 0.0f;
                     check(r, 2, 129, false, random_floats(2 * 129, k));
                 }
                 return true;
             });
}

TEST_F(Router, TiesGoToTheLowerExpert)
{
    xm_moe_routing r = {XM_ROUTING_SOFTMAX, 4, true, 0.0f, 1.0f, 0.0f};
    for (size_t v = 0; v < xm_moe_route_table.n; v++) {
        if (!force_row(v))
            continue;
        check(r, 1, 6, false, {1, 2, 1, 2, 1, 1});
    }
}

TEST_F(Router, GivesValidIdsForNaN)
{
    xm_moe_routing routing = {XM_ROUTING_SOFTMAX, 3, true, 0.0f, 1.0f, 0.0f};
    tensor logits(XM_F32, {1, 4}, std::vector<float>(4, std::nanf("")));
    const xm_router_desc desc = {routing, nullptr, nullptr};
    for (size_t v = 0; v < xm_moe_route_table.n; v++) {
        if (!force_row(v))
            continue;
        SCOPED_TRACE(xm_moe_route_table.rows[v].name);
        tensor weights(XM_F32, {1, 3}), ids(XM_I32, {1, 3});
        primitive_ptr router;
        ASSERT_XM_OK(xm_router_create(engine, &desc, &router.p, &err));
        const xm_operand operands[] = {logits.operand(), weights.operand(),
                                       ids.operand()};
        ASSERT_XM_OK(xm_primitive_run(router.p, operands, &run, &err));
        EXPECT_EQ(ids.read_ints(), (std::vector<int64_t>{0, 1, 2}));
    }
}

} // namespace
