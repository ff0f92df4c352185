/* SPDX-License-Identifier: Apache-2.0
 *
 * Rope, softmax and the choice of experts on the sizes with which ggml tests its backends
 * (test-backend-ops), by its measure: the power of the error relative to that of the result,
 * against formulas in double precision. Also heads of 256 and 512 whose frequencies are mostly
 * divided away.
 */
#include <algorithm>
#include <numeric>

#include "primitives/moe/moe.h"
#include "primitives/reduce/reduce.h"
#include "primitives/rope/rope.h"
#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

const double MOST = 1e-7, MOST_OF_SOFTMAX = 1e-6;

double
nmse(const std::vector<float> &got, const std::vector<double> &want)
{
    double difference = 0, size = 0;
    EXPECT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size() && i < want.size(); i++) {
        const double d = (double)got[i] - want[i];
        difference += d * d;
        size += want[i] * want[i];
    }
    return difference / size;
}

/* ---- rope ---------------------------------------------------------------------------- */

/* Heads of size d, whose first r elements are rotated. The first `kept` frequencies are
 * unchanged, the others divided by 1e30. */
struct rope_case {
    int64_t d, r, heads, tokens, kept;
};

const rope_case ropes[] = {
    {128, 128, 32, 2, 64},  {128, 128, 40, 2, 64},  {128, 128, 52, 2, 64},
    {128, 128, 64, 2, 64},  {64, 64, 1, 2, 32},     {64, 64, 8, 2, 32},
    {64, 64, 71, 2, 32},    {64, 64, 128, 2, 32},   {80, 20, 32, 2, 10},
    {80, 32, 32, 2, 16},    {80, 80, 32, 2, 40},    {16, 16, 16, 8192, 8},
    {36, 36, 16, 2457, 18}, {128, 128, 8, 512, 64}, {256, 256, 8, 7, 128},
    {256, 256, 8, 7, 64},   {512, 512, 4, 7, 64},   {512, 512, 4, 7, 256},
    {512, 128, 4, 7, 64},
};

/* Factors of positions and of cosines and sines; the element type; whether y is x. */
struct rope_way {
    float frequency, scale;
    xm_element element;
    bool in_place;
};

const rope_way rope_ways[] = {
    {1.0f, 1.0f, XM_F32, false},      {1.0f, 1.0f, XM_F16, true},
    {1.4245f, 1.4245f, XM_F32, true}, {1.4245f, 1.0f, XM_F16, false},
    {1.0f, 1.4245f, XM_F32, false},
};

class RopeGrid : public PrimitiveTest
{
  protected:
    void check(const rope_case &c, const rope_way &w)
    {
        SCOPED_TRACE("D " + std::to_string(c.d) + " R " + std::to_string(c.r) +
                     " heads " + std::to_string(c.heads));
        const int64_t pairs = c.r / 2;
        std::vector<float> frequencies;
        std::vector<int64_t> at((size_t)c.tokens);
        for (int64_t i = 0; i < pairs; i++)
            frequencies.push_back(w.frequency *
                                  powf(10000.0f, -2.0f * (float)i / (float)c.r) /
                                  (i < c.kept ? 1.0f : 1e30f));
        std::iota(at.begin(), at.end(), 3);
        tensor f(XM_F32, {pairs}, frequencies), positions(XM_I64, {1, c.tokens}, at);
        tensor cos(XM_F32, {1, c.tokens, c.r}), sin(XM_F32, {1, c.tokens, c.r});
        const xm_rope_tables_desc tables_desc = {f.buffer(), (uint32_t)pairs, XM_I64,
                                                 w.scale, true};
        primitive_ptr tables, rope;
        ASSERT_XM_OK(xm_rope_tables_create(engine, &tables_desc, &tables.p, &err));
        const xm_operand t[] = {positions.operand(), cos.operand(), sin.operand()};
        ASSERT_XM_OK(xm_primitive_run(tables.p, t, &run, &err));

        const size_t n = (size_t)(c.tokens * c.heads * c.d);
        tensor x(w.element, {1, c.tokens, c.heads, c.d}, random_floats(n, 1)),
            other(w.element, {1, c.tokens, c.heads, c.d});
        const std::vector<float> in = x.rounded();
        tensor &y = w.in_place ? x : other;
        const xm_rope_desc desc = {w.element};
        ASSERT_XM_OK(xm_rope_create(engine, &desc, &rope.p, &err));
        const xm_operand o[] = {x.operand(), cos.operand(), sin.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(rope.p, o, &run, &err));

        std::vector<double> want(in.begin(), in.end());
        for (int64_t row = 0; row < c.tokens * c.heads; row++)
            for (int64_t i = 0; i < pairs; i++) {
                const double angle =
                    (double)at[(size_t)(row / c.heads)] * (double)frequencies[(size_t)i];
                const size_t a = (size_t)(row * c.d + i), b = a + (size_t)pairs;
                want[a] = w.scale * (in[a] * std::cos(angle) - in[b] * std::sin(angle));
                want[b] = w.scale * (in[b] * std::cos(angle) + in[a] * std::sin(angle));
            }
        EXPECT_LE(nmse(y.read(), want), MOST);
    }
};

TEST_F(RopeGrid, EveryVariantStaysBelowTheBound)
{
    const size_t ways = std::size(rope_ways);
    for_rows(xm_rope_table, std::size(ropes) * ways, 8,
             [&](const xm_variant &, size_t i) {
                 check(ropes[i / ways], rope_ways[i % ways]);
                 return true;
             });
}

/* ---- softmax ------------------------------------------------------------------------- */

const int64_t softmax_lengths[] = {1,    2,    15,   16,   17,   31,   33,    100,
                                   1023, 1024, 1025, 2880, 4096, 8193, 200001};

class SoftmaxGrid : public PrimitiveTest
{
  protected:
    /* `hidden`: every third element of a row is -inf. */
    void check(int64_t n, float size, bool hidden, xm_element e)
    {
        SCOPED_TRACE(std::to_string(n) + " of " + xm_element_text(e));
        const int64_t rows = n > 10000 ? 2 : 7;
        std::vector<float> values = random_floats((size_t)(rows * n), 1);
        for (size_t i = 0; i < values.size(); i++)
            values[i] = hidden && i % (size_t)n % 3 == 1 ? -INFINITY : values[i] * size;
        tensor x(e, {rows, n}, values), y(e, {rows, n});
        const std::vector<float> in = x.rounded();
        const xm_softmax_desc desc = {1, e, e};
        primitive_ptr softmax;
        ASSERT_XM_OK(xm_softmax_create(engine, &desc, &softmax.p, &err));
        const xm_operand o[] = {x.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(softmax.p, o, &run, &err));
        std::vector<double> want(in.size());
        for (int64_t r = 0; r < rows; r++) {
            const float *row = &in[(size_t)(r * n)];
            const double most = *std::max_element(row, row + n);
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += std::exp(row[i] - most);
            for (int64_t i = 0; i < n; i++)
                want[(size_t)(r * n + i)] = std::exp(row[i] - most) / sum;
        }
        EXPECT_LE(nmse(y.read(), want), MOST_OF_SOFTMAX);
    }
};

TEST_F(SoftmaxGrid, EveryVariantStaysBelowTheBound)
{
    const size_t lengths = std::size(softmax_lengths);
    for_rows(xm_softmax_table, lengths * 8, 12, [&](const xm_variant &, size_t i) {
        const int64_t n = softmax_lengths[i / 8];
        /* in longer rows f16 results would be too small to be exact */
        const xm_element e = i & 1 && n < 8000 ? XM_F16 : XM_F32;
        check(n, i & 2 ? 10.0f : 1.0f, i & 4, e);
        return true;
    });
}

/* ---- the choice of experts ------------------------------------------------------------ */

struct choice_case {
    int64_t experts, tokens, top_k;
};

const choice_case choices[] = {
    {8, 22, 4},    {31, 22, 8},   {32, 22, 8},   {40, 22, 8},  {71, 22, 8},
    {128, 1, 128}, {129, 1, 128}, {160, 4, 160}, {256, 22, 6}, {288, 22, 8},
};

class TopkMoeGrid : public PrimitiveTest
{
  protected:
    void check(const choice_case &c, const xm_moe_routing &r, bool biased)
    {
        SCOPED_TRACE(std::string(xm_routing_text(r.kind)) + " E " +
                     std::to_string(c.experts) + " K " + std::to_string(c.top_k) +
                     (biased ? " bias" : "") + (r.normalise ? " normalised" : ""));
        const size_t e = (size_t)c.experts, k = (size_t)c.top_k;
        const std::vector<float> values = random_floats((size_t)c.tokens * e, 1),
                                 biases = random_floats(e, 2);
        tensor logits(XM_F32, {c.tokens, c.experts}, values),
            bias(XM_F32, {c.experts}, biases), weights(XM_F32, {c.tokens, c.top_k}),
            ids(XM_I32, {c.tokens, c.top_k});
        const xm_router_desc desc = {r, biased ? bias.buffer() : nullptr, nullptr};
        primitive_ptr router;
        ASSERT_XM_OK(xm_router_create(engine, &desc, &router.p, &err));
        const xm_operand o[] = {logits.operand(), weights.operand(), ids.operand()};
        ASSERT_XM_OK(xm_primitive_run(router.p, o, &run, &err));
        const std::vector<int64_t> got_ids = ids.read_ints();
        const std::vector<float> got = weights.read();
        for (size_t t = 0; t < (size_t)c.tokens; t++) {
            std::vector<double> scores = scores_of(&values[t * e], e, r.kind), of_k;
            std::vector<double> order = scores;
            for (size_t i = 0; biased && i < e; i++)
                order[i] += (double)biases[i];
            std::vector<int64_t> all(e);
            std::iota(all.begin(), all.end(), 0);
            std::sort(all.begin(), all.end(), [&](int64_t a, int64_t b) {
                return order[(size_t)a] > order[(size_t)b];
            });
            all.resize(k);
            for (int64_t i : all)
                of_k.push_back(scores[(size_t)i]);
            finish(of_k, r);
            EXPECT_EQ(std::vector<int64_t>(got_ids.begin() + (long)(t * k),
                                           got_ids.begin() + (long)((t + 1) * k)),
                      all);
            EXPECT_LE(
                nmse({got.begin() + (long)(t * k), got.begin() + (long)((t + 1) * k)},
                     of_k),
                MOST);
        }
    }

  private:
    static std::vector<double> scores_of(const float *logits, size_t n, xm_routing kind)
    {
        std::vector<double> s(logits, logits + n);
        double sum = 0;
        for (double &x : s) {
            x = kind == XM_ROUTING_SIGMOID_BIAS    ? 1 / (1 + std::exp(-x))
                : kind == XM_ROUTING_SQRT_SOFTPLUS ? std::sqrt(std::log1p(std::exp(x)))
                : kind == XM_ROUTING_SOFTMAX       ? std::exp(x)
                                                   : x;
            sum += x;
        }
        for (double &x : s)
            x = kind == XM_ROUTING_SOFTMAX ? x / sum : x;
        return s;
    }
    static void finish(std::vector<double> &w, const xm_moe_routing &r)
    {
        double sum = 0;
        for (double &x : w) {
            x = r.kind == XM_ROUTING_SOFTMAX_TOPK ? std::exp(x) : x;
            sum += x;
        }
        for (double &x : w)
            x *= (r.normalise || r.kind == XM_ROUTING_SOFTMAX_TOPK ? 1 / sum : 1) *
                 (double)r.scale;
    }
};

TEST_F(TopkMoeGrid, EveryVariantStaysBelowTheBound)
{
    /* each routing form, and once more, with a bias, the first form that takes one; all of them
     * with and without normalisation and a scale */
    const size_t ways = 4 * (XM_ROUTING_COUNT + 1);
    for_rows(xm_moe_route_table, std::size(choices) * ways, 20,
             [&](const xm_variant &row, size_t i) {
                 const size_t way = i % ways, kind = way / 4;
                 const choice_case &c = choices[i / ways];
                 const bool biased = kind == XM_ROUTING_COUNT;
                 const xm_moe_routing r = {biased ? XM_ROUTING_SIGMOID_BIAS
                                                  : (xm_routing)kind,
                                           c.top_k,
                                           (way & 1) != 0,
                                           0.0f,
                                           way & 2 ? 2.0f : 1.0f,
                                           0.0f};
                 const xm_router_desc desc = {r, nullptr, nullptr};
                 if (row.refuses && row.refuses(&desc))
                     return false;
                 check(c, r, biased);
                 return true;
             });
}

} // namespace
