/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases with which ggml tests its ops on weights of every type: GET_ROWS, MUL_MAT,
 * MUL_MAT_ID, and three of the last with a gate between them. In each row the squared error must
 * be within ggml's limit times the squared result. Without XM_TEST_ALL=1 one kernel reads every
 * type, and a sample of the other cases runs.
 */
#include <algorithm>

#include "primitives/gather/gather.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"

#include "primitives/tables.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

/* Rows of integers are exact to 2^-16 of the largest in their block, far below ggml's limit. */
const double OF_ROWS = 1e-7, OF_PRODUCTS = 5e-4;

const weight_format f32 = {XM_F32, 0, false}, f16 = {XM_F16, 0, false},
                    bf16 = {XM_BF16, 0, false}, i8 = {XM_I8, 0, false};
const weight_format q4_0 = blocks_of(XM_WEIGHT_Q4_0), q4_k = blocks_of(XM_WEIGHT_Q4_K),
                    mxfp4 = blocks_of(XM_WEIGHT_MXFP4);

std::vector<weight_format>
all_types()
{
    std::vector<weight_format> types = {f32, f16, bf16, i8};
    for (size_t i = 0; i < BLOCK_FORMATS; i++)
        types.push_back(blocks_number(i));
    return types;
}

/* The types that ggml tests most. */
std::vector<weight_format>
base_types()
{
    std::vector<weight_format> types = {f32, f16};
    for (int f :
         {XM_WEIGHT_Q8_0, XM_WEIGHT_Q1_0, XM_WEIGHT_Q2_0, XM_WEIGHT_Q4_0, XM_WEIGHT_Q4_1,
          XM_WEIGHT_Q4_K, XM_WEIGHT_MXFP4, XM_WEIGHT_NVFP4, XM_WEIGHT_IQ2_XXS})
        types.push_back(blocks_of(f));
    return types;
}

::testing::AssertionResult
rows_within(double limit, const std::vector<float> &got, const std::vector<float> &want,
            size_t row)
{
    for (size_t first = 0; first < want.size(); first += row) {
        double norm = 0, error = 0;
        for (size_t i = first; i < first + row; i++) {
            norm += (double)want[i] * want[i];
            error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        }
        if (!(error <= limit * norm))
            return ::testing::AssertionFailure()
                   << "row " << first / row << ": " << error / norm << " of its square";
    }
    return ::testing::AssertionSuccess();
}

float
dot(const float *a, const float *b, size_t n)
{
    float lanes[16] = {};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t j = 0; j < 16; j++)
            lanes[j] += a[i + j] * b[i + j];
    double sum = 0;
    for (float lane : lanes)
        sum += lane;
    for (; i < n; i++)
        sum += (double)a[i] * b[i];
    return (float)sum;
}

/* Returns the experts of each token [tokens][used]; those of a token differ. */
std::vector<int64_t>
random_ids(uint64_t experts, uint64_t used, uint64_t tokens)
{
    std::mt19937 gen(5);
    std::vector<int64_t> all(experts), ids;
    std::iota(all.begin(), all.end(), 0);
    for (uint64_t t = 0; t < tokens; t++) {
        std::shuffle(all.begin(), all.end(), gen);
        ids.insert(ids.end(), all.begin(), all.begin() + (long)used);
    }
    return ids;
}

/* MUL_MAT_ID: a [a_slots][tokens][k] -> [used][tokens][rows]. Each row of weights is decoded
 * once. */
std::vector<float>
products(const xm_weight &w, const std::vector<float> &a, uint64_t a_slots,
         const std::vector<int64_t> &ids, uint64_t used)
{
    const uint64_t tokens = ids.size() / used, k = w.cols;
    std::vector<float> row(k), out(ids.size() * w.rows);
    for (uint64_t e = 0; e < w.experts; e++) {
        for (uint64_t n = 0; n < w.rows; n++) {
            xm_weight_row(&w, e, n, row.data());
            for (size_t i = 0; i < ids.size(); i++) {
                const uint64_t t = i / used, s = i % used;
                const uint64_t from = (a_slots > 1 ? s * tokens : 0) + t;
                if (ids[i] == (int64_t)e)
                    out[(s * tokens + t) * w.rows + n] = dot(&a[from * k], &row[0], k);
            }
        }
    }
    return out;
}

/* ---- GET_ROWS ---------------------------------------------------------------------- */

struct rows_case {
    weight_format f;
    uint64_t cols, rows, taken, batch;
};

std::vector<rows_case>
rows_cases()
{
    std::vector<rows_case> cases = {{f32, 1, 8, 2, 1}};
    for (const weight_format &f : {f32, q4_0}) {
        cases.push_back({f, 76800, 5, 4, 1});
        if (!sample::is_whole())
            continue;
        cases.push_back({f, 256, 80000, 70000, 2});
        cases.push_back({f, 256, 5, 4, 70000});
    }
    for (const weight_format &f : all_types()) {
        cases.push_back({f, 256, 5, 4, 1});
        if (!sample::is_whole())
            continue;
        cases.push_back({f, 256, 5, 4, 7});
        cases.push_back({view_of(f), 256, 5, 4, 7});
    }
    return cases;
}

class OpGrid : public PrimitiveTest
{
  protected:
    void get_rows(const rows_case &c)
    {
        SCOPED_TRACE(text_of(c.f));
        test_weight w(1, c.rows, c.cols, c.f, 3);
        std::vector<int64_t> ids(c.batch * c.taken);
        std::mt19937 gen(4);
        for (int64_t &id : ids)
            id = (int64_t)(gen() % c.rows);
        tensor id(XM_I32, {(int64_t)c.batch, (int64_t)c.taken}, ids);
        tensor y(XM_F32, {(int64_t)c.batch, (int64_t)c.taken, (int64_t)c.cols});
        const xm_embedding_desc desc = {w.device, XM_I32, XM_F32};
        primitive_ptr p;
        ASSERT_XM_OK(xm_embedding_create(engine, &desc, &p.p, &err));
        const xm_operand operands[] = {id.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(p.p, operands, &run, &err));
        std::vector<float> want(ids.size() * c.cols);
        for (size_t i = 0; i < ids.size(); i++)
            xm_weight_row(&w.host, 0, (uint64_t)ids[i], &want[i * c.cols]);
        EXPECT_TRUE(rows_within(OF_ROWS, y.read(), want, c.cols));
    }
};

TEST_F(OpGrid, GetRows)
{
    const std::vector<rows_case> cases = rows_cases();
    for_rows(xm_embedding_table, cases.size(), 4, [&](const xm_variant &, size_t i) {
        get_rows(cases[i]);
        return true;
    });
}

/* ---- MUL_MAT ----------------------------------------------------------------------- */

struct product_case {
    weight_format f;
    uint64_t rows, cols;
    std::vector<uint64_t> tokens;
};

std::vector<product_case>
product_cases()
{
    std::vector<product_case> cases;
    for (const weight_format &f : all_types())
        cases.push_back({f, 16, 256, {1, 2, 3, 4, 5, 6, 7, 8, 9}});
    for (const weight_format &f : base_types()) {
        cases.push_back({f, 16, 256, {16}});
        cases.push_back({f, 1, 2048, {1, 7, 8, 9, 16, 128, 512}});
        cases.push_back({f, 16, 1024, {1, 16}});
        if (2880 % unit_of(f, 2880) == 0)
            cases.push_back({f, 16, 2880, {1, 16}});
    }
    return cases;
}

class OpGridProduct : public OpGrid
{
  protected:
    /* Multiplies with one primitive, as a program does: the kernels follow the number of tokens. */
    void multiply(const product_case &c, xm_element src)
    {
        SCOPED_TRACE(text_of(c.f) + " K=" + std::to_string(c.cols));
        test_weight w(1, c.rows, c.cols, c.f, 3);
        xm_linear_desc desc = {};
        desc.src = src;
        desc.dst = XM_F32;
        desc.n = 1;
        desc.segment[0].weight = w.device;
        primitive_ptr p;
        ASSERT_XM_OK(xm_linear_create(engine, &desc, &p.p, &err));
        for (uint64_t tokens : c.tokens) {
            tensor x(src, {(int64_t)tokens, (int64_t)c.cols},
                     random_floats(tokens * c.cols, 1));
            tensor y(XM_F32, {(int64_t)tokens, (int64_t)c.rows});
            xm_operand operands[XM_LINEAR_N_OPERANDS] = {};
            operands[XM_LINEAR_X] = x.operand();
            operands[XM_LINEAR_Y] = y.operand();
            planned_run r(p.p, operands, queue);
            ASSERT_XM_OK(xm_primitive_run(p.p, operands, &r.run, &err));
            const std::vector<int64_t> one(tokens, 0);
            /* a single element may be small compared with its summands */
            const uint64_t row = c.rows > 1 ? c.rows : tokens;
            EXPECT_TRUE(rows_within(OF_PRODUCTS, y.read(),
                                    products(w.host, x.rounded(), 1, one, 1), row))
                << tokens << " tokens";
        }
    }
};

TEST_F(OpGridProduct, MulMat)
{
    const std::vector<product_case> cases = product_cases();
    sample::deck deck(cases.size());
    for (const char *family : {"vec", "sg", "gen", "ref"}) {
        SCOPED_TRACE(family);
        setenv("XM_FORCE", family, 1);
        deck.deal(2, [&](size_t i) {
            multiply(cases[i], i % 2 ? XM_F16 : XM_F32);
            return true;
        });
    }
}

/* ---- MUL_MAT_ID -------------------------------------------------------------------- */

struct ids_case {
    weight_format f;
    uint64_t experts, used;
    bool one_slot; /* all experts of a token read the same activations */
    uint64_t rows, tokens, cols;
    float amax = 1; /* largest f32 activation */
};

/* Numbers of tokens around whole tiles, odd rows and columns, many experts, large activations,
 * weights that are part of a larger tensor. */
void
add_edge_cases(std::vector<ids_case> &cases)
{
    for (const weight_format &f : {f32, f16, q4_0, q4_k, mxfp4}) {
        for (uint64_t tokens : {10, 15, 16, 31, 33, 47, 48, 49})
            cases.push_back({f, 8, 2, tokens % 2 == 0, 72, tokens, 256});
        cases.push_back({f, 8, 4, false, 40, 5, 256, 1e5f});
        cases.push_back({view_of(f), 8, 4, true, 40, 33, 256});
        cases.push_back({f, 512, 10, true, 16, 3, 256});
        cases.push_back({f, 1024, 10, false, 8, 7, 256});
        cases.push_back({f, 4, 2, true, 4096, 1, 2048});
    }
    for (const weight_format &f : {f32, f16, bf16})
        for (uint64_t cols : {63, 65})
            for (uint64_t tokens : {1, 17})
                cases.push_back({f, 8, 2, false, 33, tokens, cols});
}

void
add_base_cases(std::vector<ids_case> &cases)
{
    for (const weight_format &f : base_types())
        for (uint64_t experts : {4, 8})
            for (uint64_t used : {1, 2, 4})
                for (bool one_slot : {false, true})
                    for (uint64_t tokens : {1, 4, 5, 17, 32, 129})
                        cases.push_back({f, experts, used, one_slot, 512, tokens, 256});
}

std::vector<ids_case>
ids_cases()
{
    std::vector<ids_case> cases = {{f16, 1, 1, false, 8, 16, 1}};
    add_base_cases(cases);
    add_edge_cases(cases);
    for (const weight_format &f : all_types()) {
        cases.push_back({f, 4, 2, false, 64, 16, 3 * unit_of(f, 1)});
        cases.push_back({f, 4, 2, false, 512, 1, 256});
        cases.push_back({f, 4, 2, false, 512, 32, 256});
    }
    for (bool one_slot : {false, true}) {
        for (const weight_format &f : {f16, bf16}) {
            cases.push_back({f, 16, 16, one_slot, 32, 1024, 16});
            cases.push_back({f, 16, 16, one_slot, 50, 200, 64});
        }
        cases.push_back({f16, 2, 2, one_slot, 32, 8192, 64});
    }
    cases.push_back({mxfp4, 32, 2, false, 2880, 32, 2880});
    cases.push_back({q4_0, 32, 2, false, 2880, 32, 2880});
    return cases;
}

uint64_t
multiplications(const ids_case &c)
{
    return c.used * c.tokens * c.rows * c.cols;
}

std::vector<float>
activations(const ids_case &c, xm_element src)
{
    std::vector<float> v =
        random_floats((c.one_slot ? 1 : c.used) * c.tokens * c.cols, 1);
    for (float &x : v)
        x *= src == XM_F32 ? c.amax : 1;
    return v;
}

/* The operands of MUL_MAT_ID other than weights. */
struct id_operands {
    std::vector<int64_t> ids;
    tensor a, id, out;
    id_operands(const ids_case &c, xm_element src)
        : ids(random_ids(c.experts, c.used, c.tokens)),
          a(src, {c.one_slot ? 1 : (int64_t)c.used, (int64_t)c.tokens, (int64_t)c.cols},
            activations(c, src)),
          id(XM_I32, {(int64_t)c.tokens, (int64_t)c.used}, ids),
          out(XM_F32, {(int64_t)c.used, (int64_t)c.tokens, (int64_t)c.rows})
    {
    }
};

class OpGridIds : public OpGrid
{
  protected:
    bool multiply(const ids_case &c, xm_element src)
    {
        SCOPED_TRACE(text_of(c.f) + ", " + std::to_string(c.used) + " of " +
                     std::to_string(c.experts) + ", " + std::to_string(c.rows) + " x " +
                     std::to_string(c.cols) + ", tokens " + std::to_string(c.tokens));
        test_weight w(c.experts, c.rows, c.cols, c.f, 3);
        const xm_gather_matmul_desc desc = {w.device, nullptr, src, XM_F32, XM_I32};
        primitive_ptr p;
        xm_error error = {};
        const xm_status status = xm_gather_matmul_create(engine, &desc, &p.p, &error);
        if (status == XM_UNSUPPORTED)
            return false; /* the forced variant does not take it */
        EXPECT_EQ(status, XM_OK) << error.text;
        id_operands o(c, src);
        const xm_operand operands[] = {o.a.operand(), o.id.operand(), o.out.operand()};
        planned_run r(p.p, operands, queue);
        EXPECT_EQ(xm_primitive_run(p.p, operands, &r.run, &error), XM_OK) << error.text;
        EXPECT_TRUE(rows_within(
            OF_PRODUCTS, o.out.read(),
            products(w.host, o.a.rounded(), c.one_slot ? 1 : c.used, o.ids, c.used),
            c.rows));
        return true;
    }
};

TEST_F(OpGridIds, MulMatId)
{
    enum { FEW = 8, LONG_FOR_REF = 1 << 26 };
    std::vector<ids_case> cases = ids_cases();
    if (!sample::is_whole()) {
        cases.erase(std::remove_if(
                        cases.begin(), cases.end(),
                        [](const ids_case &c) { return multiplications(c) > 1 << 24; }),
                    cases.end());
        cases = sample::of(cases, FEW);
    }
    for_rows(xm_gather_matmul_table, cases.size(), 1, [&](const xm_variant &v, size_t i) {
        const bool is_ref = v.family == XM_FAMILY_ANY;
        if (is_ref && multiplications(cases[i]) > LONG_FOR_REF)
            return false;
        return multiply(cases[i], i % 2 ? XM_F16 : XM_F32);
    });
}

/* ---- MUL_MAT_ID_FUSION ------------------------------------------------------------- */

/* Experts with gate, up and down, whose results are weighted and added up. */
class OpGridExperts : public OpGrid
{
  protected:
    struct experts_case {
        weight_format f;
        uint64_t experts, used, inter, hidden;
        std::vector<uint64_t> tokens;
    };

    /* Returns sum_s weight[s] down(silu(gate x) up x). */
    static std::vector<float> expected(const experts_case &c, const test_weight *w,
                                       const std::vector<float> &x,
                                       const std::vector<int64_t> &ids,
                                       const std::vector<float> &weights)
    {
        std::vector<float> h = products(w[0].host, x, 1, ids, c.used);
        const std::vector<float> up = products(w[1].host, x, 1, ids, c.used);
        for (size_t i = 0; i < h.size(); i++)
            h[i] = xm_ref_activation(XM_ACT_SWISH, 1.0f, h[i]) * up[i];
        const std::vector<float> down = products(w[2].host, h, c.used, ids, c.used);
        const uint64_t tokens = ids.size() / c.used;
        std::vector<float> y(tokens * c.hidden, 0.0f);
        for (size_t i = 0; i < down.size(); i++) {
            const uint64_t s = i / c.hidden / tokens, t = i / c.hidden % tokens;
            y[t * c.hidden + i % c.hidden] += weights[t * c.used + s] * down[i];
        }
        return y;
    }

    void run_tokens(const experts_case &c, const test_weight *w, xm_primitive *p,
                    uint64_t n)
    {
        const int64_t tokens = (int64_t)n, hidden = (int64_t)c.hidden,
                      used = (int64_t)c.used;
        const std::vector<int64_t> ids = random_ids(c.experts, c.used, n);
        tensor x(XM_F16, {tokens, hidden}, random_floats(n * c.hidden, 1));
        tensor weights(XM_F32, {tokens, used}, random_floats(n * c.used, 2));
        tensor id(XM_I32, {tokens, used}, ids), y(XM_F32, {tokens, hidden});
        xm_operand operands[XM_MOE_N_OPERANDS] = {};
        operands[XM_MOE_HIDDEN] = x.operand();
        operands[XM_MOE_ROUTING] = weights.operand();
        operands[XM_MOE_IDS] = id.operand();
        operands[XM_MOE_OUT] = y.operand();
        planned_run r(p, operands, queue);
        ASSERT_XM_OK(xm_primitive_run(p, operands, &r.run, &err));
        EXPECT_TRUE(rows_within(OF_PRODUCTS, y.read(),
                                expected(c, w, x.rounded(), ids, weights.rounded()),
                                c.hidden))
            << n << " tokens";
    }

    void check(const experts_case &c)
    {
        SCOPED_TRACE(text_of(c.f) + ", experts " + std::to_string(c.experts));
        const test_weight w[] = {{c.experts, c.inter, c.hidden, c.f, 3},
                                 {c.experts, c.inter, c.hidden, c.f, 4},
                                 {c.experts, c.hidden, c.inter, c.f, 5}};
        xm_moe_desc desc = {};
        desc.attr.routing.top_k = (uint32_t)c.used;
        desc.attr.activation = XM_ACT_SWISH;
        desc.attr.beta = 1.0f;
        desc.attr.routing.scale = 1.0f;
        desc.experts.gate = w[0].device;
        desc.experts.up = w[1].device;
        desc.experts.down = w[2].device;
        desc.by_ids = desc.ids_valid = true;
        desc.src = XM_F16;
        desc.dst = desc.add = XM_F32;
        primitive_ptr p;
        ASSERT_XM_OK(xm_moe_create(engine, &desc, &p.p, &err));
        for (uint64_t tokens : c.tokens)
            run_tokens(c, w, p.p, tokens);
    }
};

TEST_F(OpGridExperts, MulMatIdWithAGateAndWeights)
{
    for (const weight_format &f : sample::of(all_types(), 2))
        check({f, 16, 4, 256, 512, {1, 4, 64}});
    for (const weight_format &f : sample::of<weight_format>({f32, f16, q4_0, q4_k}, 1))
        check({f, 128, 8, 256, 256, {1, 5}});
    if (!sample::is_whole())
        return;
    for (const weight_format &f : {f32, f16, q4_0, q4_k})
        check({f, 128, 8, 768, 2048, {1, 4, 512}});
}

} // namespace
