/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on the sizes with which ggml tests FLASH_ATTN_EXT (test-backend-ops), by its measure
 * and limit: in each row the power of the error is at most 5e-4 of that of the result. The
 * reference reads the stored keys and values of 4-bit caches.
 */
#include "unit_tests/primitives/attention_fixture.h"

namespace
{

const double MOST = 5e-4;

const struct {
    uint32_t d, dv;
} heads[] = {{40, 40},   {64, 64},   {72, 72},   {80, 80},   {96, 96},  {128, 128},
             {192, 128}, {256, 256}, {320, 320}, {512, 512}, {576, 512}};
const uint32_t groups[] = {1, 4, 12};
const xm_element caches[] = {XM_F32, XM_F16, XM_I8, XM_U4};
const int64_t keys[] = {113, 512, 1024}, few_rows[] = {1, 3}, many_rows[] = {32, 75};

/* Combinations for which kernels are built anew. */
const size_t n_shapes = std::size(heads) * std::size(groups) * std::size(caches);
/* Runs of each: 3 numbers of keys, 2 of rows; with and without a mask, sinks, a soft cap. */
const size_t n_runs = 3 * 2 * 2 * 2 * 2;

problem
problem_of(size_t shape, size_t way, bool prompt)
{
    problem p = make("grid", 1, (prompt ? many_rows : few_rows)[way % 2], 0);
    const auto &h = heads[shape % std::size(heads)];
    shape /= std::size(heads);
    p.d = h.d;
    p.dv = h.dv;
    p.heads_kv = 2;
    p.heads_q = 2 * groups[shape % std::size(groups)];
    p.cache = caches[shape / std::size(groups)];
    p.element = p.cache == XM_F16 ? XM_F16 : XM_F32;
    p.page = 32;
    p.causal = false;
    p.mask = way / 2 % 2 ? add_mask::shared_f32 : add_mask::none;
    p.sinks = way / 4 % 2;
    p.soft_cap = way / 8 % 2 ? 10.0f : 0.0f;
    p.past = keys[way / 16] - p.t;
    return p;
}

xm_attention_desc
desc_of(const problem &p)
{
    xm_attention_desc d = {};
    d.heads_q = p.heads_q;
    d.heads_kv = p.heads_kv;
    d.d = p.d;
    d.dv = p.dv;
    d.page_tokens = p.page;
    d.element = p.element;
    d.k_cache = p.cache;
    d.v_cache = p.value_cache();
    return d;
}

double
nmse(const float *got, const float *want, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        difference += std::pow((double)got[i] - (double)want[i], 2);
        size += std::pow((double)want[i], 2);
    }
    return difference / size;
}

class AttentionGrid : public Attention
{
  protected:
    void check_rows(const problem &p)
    {
        SCOPED_TRACE("D " + std::to_string(p.d) + " DV " + std::to_string(p.dv) +
                     " heads " + std::to_string(p.heads_q) + " rows " +
                     std::to_string(p.t) + " past " + std::to_string(p.past) + " " +
                     xm_element_text(p.cache) + (p.sinks ? " sinks" : "") +
                     (p.soft_cap != 0 ? " cap" : ""));
        create(p);
        state s(p);
        const question ask(p);
        fill(s);
        const std::vector<float> got = chunk(s, p.lengths(), ask.q, nullptr,
                                             ask.mask_tensor.get()),
                                 want = reference(s, ask.q, ask.keys, ask.mask);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); i += p.dv)
            ASSERT_LE(nmse(&got[i], &want[i], p.dv), MOST) << "row " << i / p.dv;
    }

    /* Each variant takes a few shapes and one run of each; with XM_TEST_ALL=1 it takes all
     * shapes. */
    void check_grid(const xm_variant_table &table, bool prompt)
    {
        enum { FEW = 3 };
        std::vector<size_t> all(n_shapes);
        std::iota(all.begin(), all.end(), 0);
        const std::vector<size_t> shapes = sample::of(all, FEW);
        size_t taken = 0;
        for_rows(table, shapes.size(), 1, [&](const xm_variant &row, size_t i) {
            const size_t shape = shapes[i];
            problem p = problem_of(shape, (shape * 29 + taken * 7) % n_runs, prompt);
            if (row.caps & XM_CAP_DPAS)
                p.element = XM_F16;
            const xm_attention_desc d = desc_of(p);
            const char *why = xm_attention_supports(xm_engine_info(engine), &d);
            EXPECT_TRUE(!why || p.cache == XM_U4) << why;
            if (why) /* no variant takes heads that are not whole 4-bit blocks */
                return true;
            if (row.refuses && row.refuses(&d))
                return false;
            taken++;
            check_rows(p);
            return true;
        });
    }
};

TEST_F(AttentionGrid, EveryDecodeVariantStaysBelowTheBound)
{
    check_grid(xm_attention_decode_table, false);
}

TEST_F(AttentionGrid, EveryPromptVariantStaysBelowTheBound)
{
    check_grid(xm_attention_prompt_table, true);
}

} // namespace
