// SPDX-License-Identifier: Apache-2.0
// The reference formulas against small values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "runtime/reference/reference.h"
#include "runtime/util/memory.h"

using Floats = std::vector<float>;

static void
expect_near(const Floats &found, const Floats &expected, float tolerance = 1e-5f)
{
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); i++)
        EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

// Returns floats [E,N,K] as a weight.
static xm_weight
plain(const Floats &w, uint64_t e, uint64_t n, uint64_t k)
{
    xm_weight out = {};
    out.element = XM_F32;
    out.rank = 3;
    out.experts = e, out.rows = n, out.cols = k;
    out.data = {reinterpret_cast<const uint8_t *>(w.data()), w.size() * sizeof(float)};
    EXPECT_EQ(xm_weight_check(&out), nullptr);
    return out;
}

struct Quantised {
    uint8_t data[4] = {0x21, 0x43, 0x65, 0x87}; // rows 1 2 3 4 / 5 6 7 8
    float scale[4] = {1, 2, 3, 4};
    uint8_t zero_point[2] = {0x21, 0x43}; // 1 2 / 3 4
    xm_weight w = {};
    Quantised()
    {
        w.element = XM_U4;
        w.rank = 2;
        w.experts = 1, w.rows = 2, w.cols = 4, w.group = 2;
        w.data = {data, sizeof(data)};
        w.scale_element = XM_F32;
        w.scale = {reinterpret_cast<const uint8_t *>(scale), sizeof(scale)};
        w.zero_point_element = XM_U4;
        w.zero_point = {zero_point, sizeof(zero_point)};
    }
};

TEST(Weight, RowsAreDequantised)
{
    Quantised q;
    Floats row(4);
    ASSERT_EQ(xm_weight_check(&q.w), nullptr);
    xm_weight_row(&q.w, 0, 0, row.data());
    expect_near(row, {0, 1, 2, 4});
    xm_weight_row(&q.w, 0, 1, row.data());
    expect_near(row, {6, 9, 12, 16});
    EXPECT_EQ(xm_weight_bytes(&q.w), 4u + 16u + 2u);
    // the scales of row 0 are now 1 and 3, its zero points 1 and 3
    q.w.order = XM_SCALE_GROUP_MAJOR;
    xm_weight_row(&q.w, 0, 0, row.data());
    expect_near(row, {0, 1, 0, 3});
    q.w.zero_point_is_scalar = true;
    q.w.zero_point.n = 1;
    xm_weight_row(&q.w, 0, 0, row.data());
    expect_near(row, {0, 1, 6, 9});
}

TEST(Weight, WrongSizesHaveASentence)
{
    Quantised q;
    q.w.cols = 6;
    EXPECT_NE(xm_weight_check(&q.w), nullptr);
    q = Quantised();
    q.w.group = 3;
    EXPECT_NE(xm_weight_check(&q.w), nullptr);
    q = Quantised();
    q.w.scale.n = 8;
    EXPECT_NE(xm_weight_check(&q.w), nullptr);
    q = Quantised();
    q.w.experts = 2;
    EXPECT_NE(xm_weight_check(&q.w), nullptr);
    q = Quantised();
    q.w.rows = UINT64_MAX / 2;
    EXPECT_NE(xm_weight_check(&q.w), nullptr);
}

TEST(Reference, Activations)
{
    EXPECT_NEAR(xm_ref_activation(XM_ACT_SWISH, 1, 1), 0.7310586f, 1e-6f);
    EXPECT_NEAR(xm_ref_activation(XM_ACT_SWISH, 2, 1), 0.8807971f, 1e-6f);
    EXPECT_NEAR(xm_ref_activation(XM_ACT_GELU_ERF, 1, 1), 0.8413447f, 1e-6f);
    EXPECT_NEAR(xm_ref_activation(XM_ACT_GELU_TANH, 1, 1), 0.8411920f, 1e-6f);
    EXPECT_EQ(xm_ref_sigmoid(-200), 0);
    EXPECT_EQ(xm_ref_sigmoid(200), 1);
}

TEST(Reference, MatmulInAllFourOrders)
{
    // a = [1 2 3; 4 5 6], b = [1 0; 2 1; 0 3]
    const Floats a = {1, 2, 3, 4, 5, 6}, at = {1, 4, 2, 5, 3, 6};
    const Floats b = {1, 0, 2, 1, 0, 3}, bt = {1, 2, 0, 0, 1, 3};
    const Floats expected = {5, 11, 14, 23};
    for (int i = 0; i < 4; i++) {
        bool ta = i & 1, tb = i & 2;
        Floats c(4, -1);
        xm_ref_matmul((ta ? at : a).data(), ta, (tb ? bt : b).data(), tb, 2, 2, 3,
                      c.data());
        expect_near(c, expected);
    }
}

TEST(Reference, LinearReadsTheWeightRowByRow)
{
    Quantised q;
    const Floats x = {1, 1, 1, 1, 1, 0, 0, 2}, bias = {100, 200};
    Floats y(4);
    ASSERT_EQ(xm_ref_linear(x.data(), 2, &q.w, 0, bias.data(), y.data()), XM_OK);
    expect_near(y, {107, 243, 108, 238});
}

TEST(Reference, RmsNorm)
{
    const Floats x = {3, 4}, gamma = {1, 10};
    Floats y(2);
    xm_ref_rms_norm(x.data(), gamma.data(), 1, 2, 0, y.data());
    expect_near(y, {3 / std::sqrt(12.5f), 40 / std::sqrt(12.5f)});
    xm_ref_rms_norm(x.data(), nullptr, 1, 2, 12.5f, y.data());
    expect_near(y, {0.6f, 0.8f});
}

TEST(Reference, RopeTurnsPairsAndCopiesTheRest)
{
    const Floats x = {1, 2, 3, 4, 9}, cos = {0, 1, 0, 1}, sin = {1, 0, 1, 0};
    Floats y(5);
    xm_ref_rope(x.data(), cos.data(), sin.data(), 1, 1, 5, 4, y.data());
    expect_near(y, {-3, 2, 1, 4, 9});
}

TEST(Reference, SoftmaxOverTheMiddle)
{
    const Floats x = {0, 1000, std::log(3.0f), 1000};
    Floats y(4);
    xm_ref_softmax(x.data(), 1, 2, 2, y.data());
    expect_near(y, {0.25f, 0.5f, 0.75f, 0.5f});
}

TEST(Reference, TopKTakesTiesInOrderAndNansLast)
{
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Floats x = {nan, 2, 5, 2, 5, nan};
    Floats values(6);
    std::vector<int32_t> ids(6);
    xm_ref_topk(x.data(), 1, 6, 6, true, values.data(), ids.data());
    EXPECT_EQ(ids, (std::vector<int32_t>{2, 4, 1, 3, 0, 5}));
    xm_ref_topk(x.data(), 1, 6, 6, false, values.data(), ids.data());
    EXPECT_EQ(ids, (std::vector<int32_t>{1, 3, 2, 4, 0, 5}));
}

// Attention of two positions with one head of size 1; all scores are equal unless the test sets
// them.
static Floats
attend(struct xm_ref_attention a, const Floats &v)
{
    static const Floats zeros(16, 0);
    Floats out(a.tokens * a.heads_q, -1);
    a.keys = v.size();
    a.heads_kv = a.d = a.dv = 1;
    a.q = a.k = zeros.data();
    a.v = v.data();
    a.out = out.data();
    EXPECT_EQ(xm_ref_attention(&a), XM_OK);
    return out;
}

TEST(Reference, AttentionSeesWhatItMay)
{
    struct xm_ref_attention a = {};
    a.tokens = 2, a.heads_q = 1, a.past = 1, a.scale = 1;
    expect_near(attend(a, {3, 6, 9}), {6, 6});
    a.causal = true;
    expect_near(attend(a, {3, 6, 9}), {4.5f, 6});
    a.window = 1;
    expect_near(attend(a, {3, 6, 9}), {6, 9});
    a.window = 0;
    const int64_t key_mask[] = {0, 0, 1};
    a.key_mask = key_mask;
    expect_near(attend(a, {3, 6, 9}), {0, 9}); // the first row sees no key
}

TEST(Reference, AttentionSinksAndMasks)
{
    struct xm_ref_attention a = {};
    a.tokens = 1, a.heads_q = 2, a.scale = 1;
    const Floats sinks = {0, std::log(2.0f)};
    a.sinks = sinks.data();
    expect_near(attend(a, {3, 6}), {3, 2.25f});
    a.sinks = nullptr;
    const Floats mask = {0, -INFINITY, std::log(2.0f), 0};
    a.mask = mask.data();
    a.mask_heads = 2;
    expect_near(attend(a, {3, 6}), {3, 4});
}

TEST(Reference, Routing)
{
    const Floats logits = {0, std::log(2.0f), std::log(5.0f)}, scale = {1, 10, 100};
    Floats w(2);
    std::vector<int32_t> ids(2);
    xm_moe_routing r = {XM_ROUTING_SOFTMAX, 2, false, 0, 1, 0};
    auto route = [&](const float *bias, const float *expert_scale) {
        EXPECT_EQ(xm_ref_moe_route(&r, logits.data(), bias, expert_scale, 1, 3, w.data(),
                                   ids.data()),
                  XM_OK);
        return w;
    };
    expect_near(route(nullptr, nullptr), {0.625f, 0.25f});
    EXPECT_EQ(ids, (std::vector<int32_t>{2, 1}));
    r.normalise = true;
    expect_near(route(nullptr, scale.data()), {500.0f / 7, 20.0f / 7}, 1e-3f);
    r.least_sum = 0.5f; // below the sum, so without effect
    expect_near(route(nullptr, scale.data()), {500.0f / 7, 20.0f / 7}, 1e-3f);
    r.least_sum = 2;
    expect_near(route(nullptr, nullptr), {0.3125f, 0.125f});
    r.kind = XM_ROUTING_SOFTMAX_TOPK, r.normalise = false, r.scale = 7;
    expect_near(route(nullptr, nullptr), {5, 2});
    r.kind = XM_ROUTING_SIGMOID_BIAS, r.scale = 1;
    const Floats bias = {10, 0, 0}; // affects the choice, not the weights
    expect_near(route(bias.data(), nullptr), {0.5f, 5.0f / 6});
    EXPECT_EQ(ids, (std::vector<int32_t>{0, 2}));
    r.kind = XM_ROUTING_SQRT_SOFTPLUS; // log(1 + e^log(n)) = log(1 + n)
    expect_near(route(bias.data(), nullptr),
                {std::sqrt(std::log(2.0f)), std::sqrt(std::log(6.0f))});
    EXPECT_EQ(ids, (std::vector<int32_t>{0, 2}));
    r.top_k = 4;
    EXPECT_EQ(
        xm_ref_moe_route(&r, logits.data(), nullptr, nullptr, 1, 3, w.data(), ids.data()),
        XM_INVALID);
}

TEST(Reference, ExpertsAreWeightedAndAddedUp)
{
    const Floats gate = {1, 2}, up = {1, 1}, down = {1, 10}; // E = 2, H = I = 1
    xm_weight g = plain(gate, 2, 1, 1), u = plain(up, 2, 1, 1), d = plain(down, 2, 1, 1);
    const xm_moe_weights m = {&g, &u, &d, nullptr, nullptr, nullptr, nullptr};
    xm_moe_attr a = {};
    a.beta = 1;
    const Floats x = {1, 2}, weights = {0.5f, 0.25f, 1, 0};
    std::vector<int32_t> ids = {1, 0, 0, 1};
    Floats y(2);
    auto swish = [](float v) { return xm_ref_activation(XM_ACT_SWISH, 1, v); };
    ASSERT_EQ(xm_ref_moe(&a, &m, x.data(), weights.data(), ids.data(), 2, 2, y.data()),
              XM_OK);
    expect_near(y, {0.5f * 10 * swish(2) + 0.25f * swish(1), swish(2) * 2});
    ids[3] = 2;
    EXPECT_EQ(xm_ref_moe(&a, &m, x.data(), weights.data(), ids.data(), 2, 2, y.data()),
              XM_INVALID);
}

TEST(Reference, ClampedExpert)
{
    const Floats gate_up = {1, 0, 0, 1}, down = {2}, bias = {0, 1}, bias_down = {100};
    xm_weight g = plain(gate_up, 1, 2, 2), d = plain(down, 1, 1, 1);
    d.rows = 1;
    const xm_moe_weights m = {&g,      nullptr,          &d,     bias.data(),
                              nullptr, bias_down.data(), nullptr};
    xm_moe_attr a = {};
    a.gate_up = XM_GATE_UP_INTERLEAVED;
    a.beta = 1.5f;
    a.limit = 7;
    a.up_add = 1;
    const Floats x = {9, -20}, one = {1};
    const int32_t id = 0;
    Floats y(1);
    ASSERT_EQ(xm_ref_moe(&a, &m, x.data(), one.data(), &id, 1, 1, y.data()), XM_OK);
    expect_near(y, {2 * (7 * xm_ref_sigmoid(10.5f) * -6) + 100}, 1e-3f);
}

TEST(Reference, EveryWeightOfAnExpertHasItsBias)
{
    const Floats w = {1, 2}, bg = {1, 3}, bu = {10, 30}, bd = {100, 300}; // E = 2
    xm_weight weight = plain(w, 2, 1, 1);
    const xm_moe_weights m = {&weight,   &weight,   &weight, bg.data(),
                              bu.data(), bd.data(), nullptr};
    xm_moe_attr a = {};
    a.beta = 1;
    const Floats x = {5}, one = {1};
    const int32_t id = 1;
    Floats y(1);
    ASSERT_EQ(xm_ref_moe(&a, &m, x.data(), one.data(), &id, 1, 1, y.data()), XM_OK);
    expect_near(y, {2 * (13 * xm_ref_sigmoid(13) * 40) + 300}, 1e-2f);
}

/* A factor between activation and down; I = 2. The second expert is chosen. */
TEST(Reference, AnExpertMayHaveAFactor)
{
    const Floats up = {3, 4, 3, 4}, down = {1, 10, 1, 10}, f = {9, 9, 0.5f, -2}; // E = 2
    const xm_weight g = plain(up, 2, 2, 1), d = plain(down, 2, 1, 2);
    const xm_moe_weights m = {&g, &g, &d, nullptr, nullptr, nullptr, f.data()};
    xm_moe_attr a = {};
    a.beta = 1;
    const Floats x = {1}, one = {1};
    const int32_t id = 1;
    Floats y(1);
    ASSERT_EQ(xm_ref_moe(&a, &m, x.data(), one.data(), &id, 1, 1, y.data()), XM_OK);
    expect_near(y, {0.5f * 9 * xm_ref_sigmoid(3) - 20 * 16 * xm_ref_sigmoid(4)}, 1e-3f);
}

/* I = 2: gate multiplies x by 1 and 2, up by 10 and 100. */
TEST(Reference, GateAndUpOfOneWeightInAnyOrder)
{
    const std::map<xm_gate_up, Floats> orders = {
        {XM_GATE_UP_INTERLEAVED, {1, 10, 2, 100}},
        {XM_GATE_UP_STACKED, {1, 2, 10, 100}},
        {XM_UP_GATE_INTERLEAVED, {10, 1, 100, 2}},
        {XM_UP_GATE_STACKED, {10, 100, 1, 2}}};
    const Floats down = {1, 1}, x = {1, -1}, one = {1, 1};
    const std::vector<int32_t> ids = {0, 0};
    for (const auto &[form, rows] : orders) {
        SCOPED_TRACE(xm_gate_up_text(form));
        xm_weight g = plain(rows, 1, 4, 1), d = plain(down, 1, 1, 2);
        const xm_moe_weights m = {&g, nullptr, &d, nullptr, nullptr, nullptr, nullptr};
        xm_moe_attr a = {};
        a.beta = 1;
        a.gate_up = form;
        Floats y(2);
        ASSERT_EQ(xm_ref_moe(&a, &m, x.data(), one.data(), ids.data(), 2, 1, y.data()),
                  XM_OK);
        for (int t = 0; t < 2; t++)
            EXPECT_NEAR(y[t], 10 * xm_ref_sigmoid(x[t]) + 200 * xm_ref_sigmoid(2 * x[t]),
                        1e-3f);
    }
}

TEST(Reference, GatherMatmulTakesTheSlotsExpert)
{
    const Floats w = {1, 10, 100}, bias = {0, 1, 2}; // E = 3, N = K = 1
    xm_weight weight = plain(w, 3, 1, 1);
    const std::vector<int32_t> ids = {2, 0, 1, 2}; // [T=2, K=2]
    const Floats shared = {3, 5}, own = {1, 2, 3, 4};
    Floats out(4);
    ASSERT_EQ(xm_ref_gather_matmul(shared.data(), 1, &weight, ids.data(), nullptr, 2, 2,
                                   out.data()),
              XM_OK);
    expect_near(out, {300, 50, 3, 500});
    ASSERT_EQ(xm_ref_gather_matmul(own.data(), 2, &weight, ids.data(), bias.data(), 2, 2,
                                   out.data()),
              XM_OK);
    expect_near(out, {102, 21, 3, 402});
}

TEST(Reference, EveryAllocationMayFail)
{
    const Floats w = {1, 2};
    xm_weight weight = plain(w, 2, 1, 1);
    const xm_moe_weights m = {&weight, &weight, &weight, nullptr,
                              nullptr, nullptr, nullptr};
    const xm_moe_attr attr = {};
    const Floats x = {1}, weights = {1, 1};
    const int32_t ids[] = {0, 1};
    for (uint64_t n = 1;; n++) {
        float y[2];
        xm_fail_allocation(n);
        enum xm_status a = xm_ref_moe(&attr, &m, x.data(), weights.data(), ids, 1, 2, y);
        enum xm_status b = XM_OK;
        if (a == XM_OK)
            b = xm_ref_gather_matmul(x.data(), 1, &weight, ids, nullptr, 1, 2, y);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen)
            break;
        EXPECT_EQ(a == XM_OK ? b : a, XM_NO_MEMORY) << "allocation " << n;
    }
}
