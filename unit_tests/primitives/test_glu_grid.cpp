/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases with which ggml tests products of few tokens followed by a bias, a gate and a gated
 * activation (MUL_MAT_VEC_FUSION): dense weights, and 8 of 16 experts by their ids. In each row
 * the squared error must be within ggml's limit times the squared result. Without XM_TEST_ALL=1 a
 * sample of the cases runs.
 */
#include "primitives/gather/gather.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"

#include "unit_tests/primitives/weight_fixture.h"

namespace
{

const double MOST = 5e-3;
enum { N = 32, K = 256, EXPERTS = 16, USED = 8 };

struct glu_case {
    weight_format f;
    bool biased, gated;
    xm_activation activation; /* of the gate */
    int64_t tokens;
};

std::vector<glu_case>
glu_cases(bool by_ids)
{
    std::vector<weight_format> types = {{XM_F32, 0, false}, {XM_F16, 0, false}};
    for (int f :
         {XM_WEIGHT_Q8_0, XM_WEIGHT_Q1_0, XM_WEIGHT_Q2_0, XM_WEIGHT_Q4_0, XM_WEIGHT_Q4_1,
          XM_WEIGHT_Q4_K, XM_WEIGHT_MXFP4, XM_WEIGHT_NVFP4, XM_WEIGHT_IQ2_XXS})
        types.push_back(blocks_of(f));
    std::vector<glu_case> cases;
    for (const weight_format &f : types) {
        cases.push_back({f, true, false, XM_ACT_SWISH, 1});
        for (xm_activation a : {XM_ACT_SWISH, XM_ACT_GELU_TANH})
            for (bool biased : {false, true})
                for (int64_t tokens : {1, 2, 4, 8})
                    if (tokens == 1 || (!biased && !by_ids))
                        cases.push_back({f, biased, true, a, tokens});
    }
    return cases;
}

/* Returns x [tokens,K] times the weight of one expert, plus its bias. */
std::vector<double>
product(const xm_weight &w, uint64_t expert, const float *x, const float *bias)
{
    std::vector<float> row(w.cols);
    std::vector<double> y(w.rows);
    for (uint64_t n = 0; n < w.rows; n++) {
        xm_weight_row(&w, expert, n, row.data());
        double sum = bias ? (double)bias[n] : 0;
        for (uint64_t k = 0; k < w.cols; k++)
            sum += (double)row[k] * (double)x[k];
        y[n] = sum;
    }
    return y;
}

std::vector<double>
gated(const glu_case &c, std::vector<double> gate, const std::vector<double> &up)
{
    for (size_t i = 0; i < gate.size(); i++)
        gate[i] = (double)xm_ref_activation(c.activation, 1.0f, (float)gate[i]) * up[i];
    return gate;
}

::testing::AssertionResult
is_near(const float *got, const std::vector<double> &want)
{
    double norm = 0, error = 0;
    for (size_t i = 0; i < want.size(); i++) {
        norm += want[i] * want[i];
        error += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
    }
    if (error <= MOST * norm)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << error / norm << " of its square";
}

class GluGrid : public PrimitiveTest
{
  protected:
    static std::string name(const glu_case &c)
    {
        return text_of(c.f) + (c.biased ? ", bias" : "") + (c.gated ? ", gate " : "") +
               (c.gated ? xm_activation_text(c.activation) : "") + ", tokens " +
               std::to_string(c.tokens);
    }

    void check_dense(const glu_case &c, xm_element src)
    {
        SCOPED_TRACE(name(c));
        const test_weight gate(1, N, K, c.f, 3), up(1, N, K, c.f, 4);
        const std::vector<float> gate_bias = random_floats(N, 5),
                                 up_bias = random_floats(N, 6);
        tensor b0(XM_F32, {N}, gate_bias), b1(XM_F32, {N}, up_bias);
        tensor x(src, {c.tokens, K}, random_floats((size_t)c.tokens * K, 1)),
            y(XM_F32, {c.tokens, N});
        xm_linear_desc desc = {};
        desc.src = src;
        desc.dst = XM_F32;
        desc.is_glu = c.gated;
        desc.activation = c.activation;
        desc.n = c.gated ? 2 : 1;
        desc.segment[0] = {gate.device, c.biased ? b0.buffer() : nullptr};
        if (c.gated)
            desc.segment[1] = {up.device, c.biased ? b1.buffer() : nullptr};
        primitive_ptr p;
        ASSERT_XM_OK(xm_linear_create(engine, &desc, &p.p, &err));
        xm_operand operands[XM_LINEAR_N_OPERANDS] = {};
        operands[XM_LINEAR_X] = x.operand();
        operands[XM_LINEAR_Y] = y.operand();
        planned_run r(p.p, operands, queue);
        ASSERT_XM_OK(xm_primitive_run(p.p, operands, &r.run, &err));
        const std::vector<float> in = x.rounded(), got = y.read();
        for (int64_t t = 0; t < c.tokens; t++) {
            const float *row = &in[(size_t)t * K];
            std::vector<double> want =
                product(gate.host, 0, row, c.biased ? gate_bias.data() : nullptr);
            if (c.gated)
                want =
                    gated(c, want,
                          product(up.host, 0, row, c.biased ? up_bias.data() : nullptr));
            EXPECT_TRUE(is_near(&got[(size_t)t * N], want)) << "token " << t;
        }
    }

    /* Compares the products of experts without a gate. */
    void check_ids(const glu_case &c)
    {
        SCOPED_TRACE(name(c));
        const test_weight w(EXPERTS, N, K, c.f, 3);
        const std::vector<float> bias = random_floats(EXPERTS * N, 5);
        tensor b(XM_F32, {EXPERTS, N}, bias), x(XM_F32, {1, 1, K}, random_floats(K, 1)),
            id(XM_I32, {1, USED}, ids), y(XM_F32, {USED, 1, N});
        const xm_gather_matmul_desc desc = {w.device, b.buffer(), XM_F32, XM_F32, XM_I32};
        primitive_ptr p;
        ASSERT_XM_OK(xm_gather_matmul_create(engine, &desc, &p.p, &err));
        const xm_operand operands[] = {x.operand(), id.operand(), y.operand()};
        planned_run r(p.p, operands, queue);
        ASSERT_XM_OK(xm_primitive_run(p.p, operands, &r.run, &err));
        const std::vector<float> in = x.rounded(), got = y.read();
        for (size_t s = 0; s < USED; s++) {
            const size_t e = (size_t)ids[s];
            EXPECT_TRUE(is_near(&got[s * N], product(w.host, e, in.data(), &bias[e * N])))
                << "expert " << e;
        }
    }

    /* Compares gated experts: their results are multiplied by a third weight and added up. */
    void check_gated_ids(const glu_case &c)
    {
        SCOPED_TRACE(name(c));
        const test_weight gate(EXPERTS, N, K, c.f, 3), up(EXPERTS, N, K, c.f, 4),
            down(EXPERTS, K, N, {XM_F16, 0, false}, 7);
        const std::vector<float> gate_bias = random_floats(EXPERTS * N, 5),
                                 up_bias = random_floats(EXPERTS * N, 6),
                                 weights = random_floats(USED, 2);
        tensor b0(XM_F32, {EXPERTS, N}, gate_bias), b1(XM_F32, {EXPERTS, N}, up_bias),
            x(XM_F16, {1, K}, random_floats(K, 1)), routing(XM_F32, {1, USED}, weights),
            id(XM_I32, {1, USED}, ids), y(XM_F32, {1, K});
        xm_moe_desc desc = {};
        desc.attr.routing.top_k = USED;
        desc.attr.routing.scale = 1.0f;
        desc.attr.activation = c.activation;
        desc.attr.beta = 1.0f;
        desc.experts.gate = gate.device;
        desc.experts.up = up.device;
        desc.experts.down = down.device;
        if (c.biased) {
            desc.experts.bias_gate = b0.buffer();
            desc.experts.bias_up = b1.buffer();
        }
        desc.by_ids = desc.ids_valid = true;
        desc.src = XM_F16;
        desc.dst = desc.add = XM_F32;
        primitive_ptr p;
        ASSERT_XM_OK(xm_moe_create(engine, &desc, &p.p, &err));
        xm_operand operands[XM_MOE_N_OPERANDS] = {};
        operands[XM_MOE_HIDDEN] = x.operand();
        operands[XM_MOE_ROUTING] = routing.operand();
        operands[XM_MOE_IDS] = id.operand();
        operands[XM_MOE_OUT] = y.operand();
        planned_run r(p.p, operands, queue);
        ASSERT_XM_OK(xm_primitive_run(p.p, operands, &r.run, &err));
        const std::vector<float> in = x.rounded();
        std::vector<double> want(K, 0.0);
        for (size_t s = 0; s < USED; s++) {
            const size_t e = (size_t)ids[s];
            const auto h = gated(
                c,
                product(gate.host, e, in.data(), c.biased ? &gate_bias[e * N] : nullptr),
                product(up.host, e, in.data(), c.biased ? &up_bias[e * N] : nullptr));
            const std::vector<float> inner(h.begin(), h.end());
            const auto z = product(down.host, e, inner.data(), nullptr);
            for (size_t i = 0; i < K; i++)
                want[i] += (double)weights[s] * z[i];
        }
        EXPECT_TRUE(is_near(y.read().data(), want));
    }

    const std::vector<int64_t> ids = {3, 15, 0, 8, 7, 12, 1, 10};
};

TEST_F(GluGrid, DenseWeights)
{
    const std::vector<glu_case> cases = glu_cases(false);
    sample::deck deck(cases.size());
    for (const char *family : {"vec", "sg", "gen", "ref"}) {
        SCOPED_TRACE(family);
        setenv("XM_FORCE", family, 1);
        deck.deal(3, [&](size_t i) {
            check_dense(cases[i], i % 2 ? XM_F16 : XM_F32);
            return true;
        });
    }
}

TEST_F(GluGrid, ExpertsByIds)
{
    for (const glu_case &c : sample::of(glu_cases(true), 4)) {
        if (c.gated)
            check_gated_ids(c);
        else
            check_ids(c);
    }
}

} // namespace
