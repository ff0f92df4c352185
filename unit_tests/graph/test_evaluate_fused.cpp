// SPDX-License-Identifier: Apache-2.0
// Compares fused ops with the plain graphs that they replace; each failing allocation.
#include <cmath>
#include <cstring>

#include "unit_tests/graph/evaluate_test.h"

// ---- attention
// ----------------------------------------------------------------------------

struct AttentionCase : Evaluate {
    enum { T = 5, HQ = 4, HKV = 2, D = 4 };
    xm_value *none = xm_none(g);

    xm_value *attention(xm_value *q, xm_value *k, xm_value *v, xm_value *beam = nullptr)
    {
        xm_attr attr = defaults(XM_OP_ATTENTION);
        attr.attention.scale = 0.5f;
        attr.attention.causal = true;
        attr.attention.key_state = "k";
        attr.attention.value_state = "v";
        return op(XM_OP_ATTENTION, {q, k, v, beam ? beam : none, none, none, none},
                  &attr);
    }
    // Returns rows first … first+n-1 of a pattern, as [1,n,heads,D].
    static Tensor rows(unsigned seed, int heads, int first, int n)
    {
        Floats all = pattern(T * heads * D, seed);
        return tensor({1, n, heads, D}, Floats(all.begin() + first * heads * D,
                                               all.begin() + (first + n) * heads * D));
    }
};

TEST_F(AttentionCase, PlainAttentionAgrees)
{
    xm_value *q = in(rows(1, HQ, 0, T)), *k = in(rows(2, HKV, 0, T)),
             *v = in(rows(3, HKV, 0, T));
    const xm_tensor *t = value(attention(q, k, v));
    ASSERT_NE(t, nullptr);
    Floats expected(t->f, t->f + t->n);
    const int64_t order[] = {0, 2, 1, 3};
    auto heads_first = [&](xm_value *x) { return xm_transpose(&b, x, order, 4); };
    // repeats each key head for its two query heads
    auto repeated = [&](xm_value *x) {
        xm_attr attr = defaults(XM_OP_GATHER);
        return op(XM_OP_GATHER, {heads_first(x), axes({0, 0, 1, 1}), scalar(1)}, &attr);
    };
    Floats mask(T * T, 0);
    for (int i = 0; i < T; i++)
        for (int j = i + 1; j < T; j++)
            mask[i * T + j] = -INFINITY;
    xm_value *out =
        op(XM_OP_SDPA, {heads_first(q), repeated(k), repeated(v), in({1, 1, T, T}, mask),
                        xm_const_float(&b, XM_F32, 0.5f)});
    expect_near(value(xm_transpose(&b, out, order, 4)), expected);
}

/* ScaledDotProductAttention-13: with `causal`, query i sees keys 0 ... i, and the mask is
 * ignored. */
TEST_F(AttentionCase, ACausalSdpaIsAlignedToTheFirstKey)
{
    xm_attr attr = defaults(XM_OP_SDPA);
    attr.sdpa.causal = true;
    xm_value *q = in({1, 1, 2, 1}, {0, 0}), *k = in({1, 1, 4, 1}, {1, 2, 3, 4});
    xm_value *v = in({1, 1, 4, 1}, {1, 3, 100, 1000});
    const Floats hides_the_first = {-INFINITY, 0, 0, 0, -INFINITY, 0, 0, 0};
    xm_value *mask = in({1, 1, 2, 4}, hides_the_first);
    expect_near(value(op(XM_OP_SDPA, {q, k, v, mask}, &attr)), {1, 2});
}

TEST_F(AttentionCase, ChunksGiveTheRowsOfTheWhole)
{
    auto dims = [&](int heads) {
        xm_type type = {XM_F32, {4, {}}};
        type.shape.dim[0] = xm_dim_const(1);
        type.shape.dim[1] = xm_dim_symbol(&g->dims, "tokens");
        type.shape.dim[2] = xm_dim_const(heads);
        type.shape.dim[3] = xm_dim_const(D);
        return type;
    };
    xm_value *q = declare(rows(1, HQ, 0, T), dims(HQ));
    xm_value *k = declare(rows(2, HKV, 0, T), dims(HKV));
    xm_value *v = declare(rows(3, HKV, 0, T), dims(HKV));
    xm_value *beam = in(ints({1}, {0}, XM_I32));
    const xm_tensor *t = value(attention(q, k, v, beam));
    ASSERT_NE(t, nullptr);
    Floats whole(t->f, t->f + t->n), chunks;
    states = xm_state_store_create();
    for (int first = 0; first < T; first += 2) {
        int n = std::min<int>(2, T - first);
        kept[0] = rows(1, HQ, first, n);
        kept[1] = rows(2, HKV, first, n);
        kept[2] = rows(3, HKV, first, n);
        ASSERT_EQ(run(), XM_OK) << err.text;
        chunks.insert(chunks.end(), outputs[0]->f, outputs[0]->f + outputs[0]->n);
    }
    expect_near(outputs[0].get(), Floats(whole.end() - (long)outputs[0]->n, whole.end()));
    ASSERT_EQ(chunks.size(), whole.size());
    for (size_t i = 0; i < whole.size(); i++)
        EXPECT_NEAR(chunks[i], whole[i], 1e-6f);
    kept[3] = ints({1}, {1}, XM_I32); // the state has only one row
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_EQ(xm_state_get(states, "k")->dim[1], T) << "a failed run changed a state";
}

TEST_F(AttentionCase, ALayerCanReadAnothersState)
{
    xm_value *q = in(rows(1, HQ, 0, T)), *k = in(rows(2, HKV, 0, T)),
             *v = in(rows(3, HKV, 0, T));
    xm_value *first = attention(q, k, v), *second = attention(q, none, none);
    xm_result(&b, "a", first);
    xm_result(&b, "b", second);
    ASSERT_EQ(run(), XM_OK) << err.text;
    expect_near(outputs[1].get(), Floats(outputs[0]->f, outputs[0]->f + outputs[0]->n),
                0);
}

// ---- mixture of experts
// -------------------------------------------------------------------

struct MoeCase : Evaluate {
    enum { T = 5, H = 8, I = 4, E = 4, K = 2 };
    Floats x = pattern(T * H, 1), gate = pattern(E * I * H, 2),
           up = pattern(E * I * H, 3);
    Floats down = pattern(E * H * I, 4), logits = pattern(T * E, 5);
    xm_value *none = xm_none(g);

    xm_attr attributes(xm_op o)
    {
        xm_attr attr = defaults(o);
        attr.moe.hidden = H, attr.moe.inter = I, attr.moe.experts = E;
        attr.moe.routing.top_k = K;
        return attr;
    }
    xm_node *router(xm_value *l)
    {
        xm_attr attr = defaults(XM_OP_MOE_ROUTER);
        attr.router.top_k = K;
        xm_value *operands[] = {l, none, none};
        return xm_node_build(&b, XM_OP_MOE_ROUTER, &attr, operands, 3);
    }
    std::vector<xm_value *> operands(xm_value *hidden, xm_value *routing, xm_value *ids)
    {
        std::vector<xm_value *> v(XM_MOE_N_IN, none);
        v[XM_MOE_HIDDEN] = hidden;
        v[XM_MOE_ROUTING] = routing;
        v[XM_MOE_IDS] = ids;
        v[XM_MOE_W_GATE] = weight({E, I, H}, gate);
        v[XM_MOE_W_UP] = weight({E, I, H}, up);
        v[XM_MOE_W_DOWN] = weight({E, H, I}, down);
        return v;
    }
    // Computes every expert for every token; routing weights are scattered over all experts.
    Floats tiled(xm_value *hidden, xm_node *route)
    {
        xm_value *all =
            op(XM_OP_TILE, {op(XM_OP_UNSQUEEZE, {hidden, axes({0})}), axes({E, 1, 1})});
        xm_value *act = xm_op1(&b, XM_OP_SWISH,
                               xm_matmul(&b, all, weight({E, I, H}, gate), false, true));
        xm_value *mid = xm_op2(&b, XM_OP_MULTIPLY, act,
                               xm_matmul(&b, all, weight({E, I, H}, up), false, true));
        xm_value *out = xm_matmul(&b, mid, weight({E, H, I}, down), false, true);
        xm_attr attr = defaults(XM_OP_SCATTER_ELEMENTS_UPDATE);
        xm_value *dense =
            op(XM_OP_SCATTER_ELEMENTS_UPDATE,
               {in({T, E}, Floats(T * E, 0)), &route->out[1], &route->out[0], scalar(1)},
               &attr);
        const int64_t order[] = {1, 0};
        xm_value *column =
            op(XM_OP_UNSQUEEZE, {xm_transpose(&b, dense, order, 2), axes({-1})});
        xm_attr reduce = {};
        const xm_tensor *t =
            value(op(XM_OP_REDUCE_SUM,
                     {xm_op2(&b, XM_OP_MULTIPLY, out, column), axes({0})}, &reduce));
        return t ? Floats(t->f, t->f + t->n) : Floats();
    }
};

TEST_F(MoeCase, FusedFormsAgreeWithTheTiledGraph)
{
    xm_value *hidden = in({T, H}, x), *l = in({T, E}, logits);
    xm_node *route = router(l);
    ASSERT_NE(route, nullptr) << g->err.text;
    Floats expected = tiled(hidden, route);
    for (xm_op o : {XM_OP_MOE, XM_OP_MOE_COMPRESSED}) {
        xm_attr attr = attributes(o);
        expect_near(value(op(o, operands(hidden, &route->out[0], &route->out[1]), &attr)),
                    expected);
    }
    xm_attr attr = attributes(XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
    expect_near(
        value(op(XM_OP_MOE_3GEMM_FUSED_COMPRESSED, operands(hidden, l, none), &attr)),
        expected);
}

TEST_F(MoeCase, TheSharedExpertIsAdded)
{
    xm_value *hidden = in({T, H}, x), *l = in({T, E}, logits);
    xm_attr attr = attributes(XM_OP_MOE_3GEMM_FUSED_COMPRESSED);
    const xm_op fused = XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    const xm_tensor *t = value(op(fused, operands(hidden, l, none), &attr));
    Floats routed(t->f, t->f + t->n);
    Floats w = pattern(I * H, 9), d = pattern(H * I, 10), gg = pattern(H, 11);
    xm_value *mid = xm_op2(
        &b, XM_OP_MULTIPLY,
        xm_op1(&b, XM_OP_SWISH, xm_matmul(&b, hidden, weight({I, H}, w), false, true)),
        xm_matmul(&b, hidden, weight({I, H}, w), false, true));
    xm_value *shared = xm_matmul(&b, mid, weight({H, I}, d), false, true);
    xm_value *g1 =
        xm_op1(&b, XM_OP_SIGMOID, xm_matmul(&b, hidden, weight({1, H}, gg), false, true));
    attr.moe.shared = 1;
    for (bool gated : {false, true}) {
        t = value(gated ? xm_op2(&b, XM_OP_MULTIPLY, shared, g1) : shared);
        Floats expected = routed;
        for (size_t i = 0; i < expected.size(); i++)
            expected[i] += t->f[i];
        std::vector<xm_value *> v = operands(hidden, l, none);
        v[XM_MOE_SHARED_GATE] = v[XM_MOE_SHARED_UP] = weight({I, H}, w);
        v[XM_MOE_SHARED_DOWN] = weight({H, I}, d);
        v[XM_MOE_SHARED_GATE_GATE] = gated ? weight({1, H}, gg) : none;
        expect_near(value(op(fused, v, &attr)), expected);
    }
}

TEST_F(MoeCase, GatherMatmulIsMatmulOfTheChosen)
{
    xm_value *hidden = op(XM_OP_UNSQUEEZE, {in({T, H}, x), axes({0})});
    const xm_tensor *t =
        value(xm_matmul(&b, hidden, weight({E, I, H}, gate), false, true));
    Floats all(t->f, t->f + t->n), expected;
    const Ints ids = {0, 3, 2, 1, 1, 0, 3, 3, 2, 0};
    for (int s = 0; s < K; s++)
        for (int i = 0; i < T * I; i++)
            expected.push_back(all[(size_t)ids[i / I * K + s] * T * I + i]);
    xm_value *chosen = in(ints({T, K}, ids));
    xm_value *w = weight({E, I, H}, gate);
    expect_near(value(op(XM_OP_GATHER_MATMUL, {hidden, w, chosen, none})), expected);
    kept.back() = ints({T, K}, Ints(T * K, E));
    EXPECT_EQ(run(), XM_INVALID);
    EXPECT_NE(strstr(err.text, "gather_matmul"), nullptr) << err.text;
}

TEST_F(MoeCase, EveryAllocationMayFail)
{
    xm_value *hidden = in({T, H}, x), *l = in({T, E}, logits);
    xm_node *route = router(l);
    xm_attr attr = attributes(XM_OP_MOE);
    xm_value *y = op(XM_OP_MOE, operands(hidden, &route->out[0], &route->out[1]), &attr);
    states = xm_state_store_create();
    ASSERT_NE(xm_assign(&b, "s", y), nullptr);
    xm_result(&b, "r", xm_op2(&b, XM_OP_ADD, y, hidden));
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        xm_status status = run();
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(status, XM_OK) << err.text;
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << "allocation " << n << ": " << err.text;
        EXPECT_EQ(xm_state_get(states, "s"), nullptr) << "allocation " << n;
    }
}
