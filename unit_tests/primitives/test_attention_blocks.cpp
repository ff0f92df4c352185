/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on caches of 4 bits, and on caches with different types of keys and values.
 */
#include <algorithm>

#include "unit_tests/primitives/attention_fixture.h"

namespace
{

/* Types of keys and values. */
const std::pair<xm_element, xm_element> types[] = {
    {XM_U4, XM_U4},  {XM_F16, XM_U4}, {XM_U4, XM_F16}, {XM_I8, XM_U4},
    {XM_U4, XM_F32}, {XM_F32, XM_I8}, {XM_U4, XM_I8},
};

std::string
name_of(const std::pair<xm_element, xm_element> &t)
{
    return std::string(xm_element_text(t.first)) + " " + xm_element_text(t.second);
}

problem
of_types(problem p, size_t i)
{
    p.cache = types[i % std::size(types)].first;
    p.v_cache = types[i % std::size(types)].second;
    return p;
}

/* Changes the problem for variants for matrix engines: f16 in tiles. */
problem
for_row(const xm_variant &row, problem p)
{
    if (!(row.caps & XM_CAP_DPAS))
        return p;
    p.d = (p.d + 63) / 64 * 64;
    p.element = XM_F16;
    for (xm_element *e : {&p.cache, &p.v_cache})
        *e = *e == XM_F32 ? XM_F16 : *e;
    return p;
}

/* ---- contents of the cache ----------------------------------------------------------------- */

/* A copy of the bytes of all slabs. */
struct stored {
    std::vector<uint8_t> slab[XM_KV_SLABS];

    explicit stored(const state &s)
    {
        for (size_t i = 0; i < XM_KV_SLABS; i++)
            if (s.slab[i])
                for (int64_t byte : s.slab[i]->read_ints())
                    slab[i].push_back((uint8_t)byte);
    }
};

/* Where the cache holds a position of a sequence for one head. */
struct spot {
    size_t slab;
    uint64_t page, row;
};

spot
find(const state &s, size_t sequence, int64_t position, uint32_t head)
{
    const int64_t word = s.pages[sequence][(size_t)(position / s.p.page)];
    return {(size_t)(word >> XM_KV_SLAB_SHIFT),
            (uint64_t)(word & ((1 << XM_KV_SLAB_SHIFT) - 1)) * s.page.bytes,
            head * s.p.page + (uint64_t)position % s.p.page};
}

/* Where the keys or the values lie in a page. */
struct part_of_page {
    xm_element cache;
    uint32_t n;
    uint64_t values, scales;
};

/* Compares the block at element i of a row with the block that the host quantizes from x, then
 * overwrites its bytes with the initial ones. */
void
take_block(uint8_t *slab, const part_of_page &p, const spot &at, size_t i, const float *x)
{
    const size_t n = std::min<size_t>(16, p.n - i);
    uint8_t *byte = slab + p.scales + at.row * ((p.n + 15) / 16) + i / 16;
    if (p.cache == XM_I8) {
        uint8_t *values = slab + p.values + at.row * p.n + i;
        const block_16 want = quantise_i8(x, n);
        ASSERT_EQ(want.byte, *byte);
        for (size_t k = 0; k < n; k++)
            ASSERT_EQ(want.q[k], (int8_t)values[k]) << "element " << i + k;
        memset(values, 0xff, n);
    } else {
        uint8_t *values = slab + p.values + (at.row * p.n + i / 32 * 32) / 2;
        const block_16 want = quantise_u4(x);
        ASSERT_EQ(want.byte, *byte);
        for (size_t k = 0; k < 16; k++) {
            const int shift = i % 32 / 16 * 4;
            ASSERT_EQ(want.q[k], values[k] >> shift & 15) << "element " << i + k;
            values[k] = (uint8_t)(values[k] | 15 << shift);
        }
    }
    *byte = 0xff;
}

/* Returns a row that lies at `slab`, decoded by the host reference. */
std::vector<float>
read_row(const uint8_t *slab, const part_of_page &p, const spot &at)
{
    std::vector<float> x(p.n);
    xm_ref_cached_row(p.cache,
                      slab + p.values + at.row * p.n * xm_element_bits(p.cache) / 8,
                      slab + p.scales + at.row * ((p.n + 15) / 16), p.n, x.data());
    return x;
}

/* Compares the rows x with the stored ones: rotated, and with the bits that the host computes.
 * Then overwrites their bytes with the initial ones, so that any other write shows. */
void
take_rows(stored &bytes, const state &s, std::vector<float> x, const part_of_page &p)
{
    const std::vector<float> all = cached(x, p.cache, p.n);
    xm_ref_rotate(x.data(), x.size() / p.n, p.n);
    const float *row = x.data();
    for (size_t i = 0; i < s.first.size(); i++) {
        const length l = s.p.lengths()[i];
        for (int64_t j = 0; j < l.past + l.tokens; j++) {
            for (uint32_t head = 0; head < s.p.heads_kv; head++, row += p.n) {
                SCOPED_TRACE("position " + std::to_string(j));
                const spot at = find(s, i, j, head);
                uint8_t *slab = bytes.slab[at.slab].data() + at.page;
                const auto want = all.begin() + (row - x.data());
                ASSERT_EQ(read_row(slab, p, at), std::vector<float>(want, want + p.n));
                for (size_t k = 0; k < p.n; k += 16) {
                    take_block(slab, p, at, k, row + k);
                    if (testing::Test::HasFatalFailure())
                        return;
                }
            }
        }
    }
}

/* Replaces some rows by special ones: two largest elements of opposite sign; zeros; a single
 * element; so small that scales are lowest or zero; so large that scales are at their limit. */
void
add_odd_rows(std::vector<float> &x, size_t n)
{
    for (size_t i = 0; i < x.size(); i++) {
        const size_t row = i / n % 14, at = i % n;
        if (row == 1 && (at == 7 || at == 24))
            x[i] = at == 7 ? 2.0f : -2.0f;
        if (row == 3 && (at == 3 || at == 19))
            x[i] = at == 3 ? -2.0f : 2.0f;
        if (row == 5)
            x[i] = at % 2 ? 0.0f : -0.0f;
        if (row == 7 && at != 17)
            x[i] = 0.0f;
        if (row == 9)
            x[i] *= 1e-5f;
        if (row == 11)
            x[i] *= 1e-7f;
        if (row == 13)
            x[i] *= 6e3f;
    }
}

/* Heads of several rotated blocks, of one that is not rotated, and of one that ends within a
 * block. */
TEST_F(Attention, EveryCacheWriterStoresRotatedBlocks)
{
    const struct {
        xm_element element, k, v;
        uint32_t d, dv;
    } cases[] = {
        {XM_F32, XM_U4, XM_U4, 96, 128},
        {XM_F16, XM_U4, XM_I8, 64, 80},
        {XM_F32, XM_I8, XM_I8, 100, 48},
        {XM_F16, XM_I8, XM_U4, 144, 256},
    };
    for_rows(xm_attention_inputs_table, std::size(cases), 2,
             [&](const xm_variant &, size_t i) {
                 problem p = make_ragged("blocks", {{17, 5}, {0, 3}, {40, 1}});
                 p.element = cases[i].element;
                 p.cache = cases[i].k;
                 p.v_cache = cases[i].v;
                 p.d = cases[i].d;
                 p.dv = cases[i].dv;
                 create(p);
                 state s(p);
                 add_odd_rows(s.k, p.d);
                 add_odd_rows(s.v, p.dv);
                 s.round(s.k, p.cache);
                 s.round(s.v, p.v_cache);
                 fill(s);
                 chunk(s, p.lengths(), question(p).q);
                 stored bytes(s);
                 take_rows(bytes, s, s.k, {p.cache, p.d, 0, s.page.k_scale});
                 take_rows(bytes, s, s.v, {p.v_cache, p.dv, s.page.v, s.page.v_scale});
                 for (const auto &slab : bytes.slab)
                     EXPECT_EQ(slab, std::vector<uint8_t>(slab.size(), 0xff))
                         << "what is nobody's was written";
                 return true;
             });
}

TEST_F(Attention, EveryCacheWriterKeepsRowsOfTwoTypes)
{
    for_rows(xm_attention_inputs_table, std::size(types), 2,
             [&](const xm_variant &, size_t i) {
                 problem p = of_types(make("types", 2, 5, 17), i);
                 SCOPED_TRACE(name_of(types[i]));
                 p.d = 96;
                 p.dv = 32;
                 check(p);
                 return true;
             });
}

TEST_F(Attention, EveryVariantNormsAndRotatesWhatBecomesBlocks)
{
    for_rows(xm_attention_inputs_table, 2, 1, [&](const xm_variant &, size_t i) {
        problem p = make("blocks", 2, 3, 0);
        p.cache = XM_U4;
        p.element = i ? XM_F16 : XM_F32;
        p.d = 128;
        p.q_norm = p.k_norm = p.v_norm = true;
        p.rotated = 64;
        check_inputs(p);
        return true;
    });
}

/* ---- results of attention ------------------------------------------------------------------ */

std::vector<problem>
problems()
{
    std::vector<problem> all;
    for (int64_t t : {1, 2, 5, 33})
        for (int64_t past : {0, 33, 600}) /* decode cuts some of these */
            all.push_back(make("plain", past == 33 ? 3 : 1, t, past));
    problem p = make("window", 1, 17, 100);
    p.window = 20;
    all.push_back(p);
    p.t = 1;
    p.sinks = true;
    all.push_back(p);
    for (int64_t t : {1, 9}) {
        p = make("wide heads, soft cap", 1, t, 40);
        p.d = p.dv = 256;
        p.heads_q = 3;
        p.heads_kv = 1;
        p.soft_cap = 2.0f;
        p.element = XM_F16;
        all.push_back(p);
        p = make("widest heads, soft cap", 1, t, 40);
        p.d = p.dv = 512;
        p.sinks = true;
        all.push_back(p);
        p = make("masks", 3, t, 33);
        p.d = 96;
        p.dv = 32;
        p.keys = key_mask::i64;
        p.mask = add_mask::full_f16;
        all.push_back(p);
        p = make("no causality", 1, t, 31);
        p.d = 160;
        p.dv = 96;
        p.causal = false;
        p.page = 48;
        all.push_back(p);
    }
    for (const auto &lengths :
         {std::vector<length>{{0, 7}, {3, 1}, {40, 2}, {700, 1}, {129, 33}, {5, 0}},
          std::vector<length>{{700, 1}, {3, 1}, {600, 4}, {129, 2}}}) {
        all.push_back(make_ragged("ragged", lengths));
        p = make_ragged("ragged, one head, padding", lengths);
        p.heads_q = p.heads_kv = 1;
        p.keys = key_mask::u8;
        all.push_back(p);
        p = make_ragged("ragged, window", lengths);
        p.window = 20;
        p.gives_up_pages = true;
        all.push_back(p);
    }
    return all;
}

TEST_F(Attention, EveryVariantReadsBlocksAndTwoTypes)
{
    const std::vector<problem> all = problems();
    const size_t n = all.size() * std::size(types);
    auto check_case = [&](const xm_variant &row, size_t i) {
        const problem p = of_types(all[i / std::size(types)], i);
        SCOPED_TRACE(name_of(types[i % std::size(types)]));
        const bool is_prompt =
            std::any_of(p.ragged.begin(), p.ragged.end(),
                        [](const length &l) { return l.tokens > decode_tokens; }) ||
            (p.ragged.empty() && p.t > decode_tokens);
        if (!sample::is_whole() && is_prompt != (strstr(row.name, "prompt") != nullptr))
            return false;
        if (row.refuses && p.dv > 256) /* sub-group variants, which sum in registers */
            return false;
        check(for_row(row, p));
        return true;
    };
    for (const xm_variant_table *t :
         {&xm_attention_prompt_table, &xm_attention_decode_table})
        for (size_t v = 0; v < t->n; v++) {
            xm_variant any_shape = t->rows[v];
            any_shape.refuses = nullptr;
            if (xm_variant_refusal(&any_shape, xm_engine_info(engine), nullptr))
                continue;
            SCOPED_TRACE(t->rows[v].name);
            force(t->step, t->rows[v].name);
            sample::deck(n).deal(1, [&](size_t i) { return check_case(t->rows[v], i); });
        }
}

/* Heads whose lanes read whole words of one, two, four or eight elements, and other heads; keys
 * in whole parts of 16 bytes, and others. Values are rotated back when partitions are combined,
 * or by the kernel itself if there is one partition. */
TEST_F(Attention, SubGroupsReadRowsInWordsAndByElements)
{
    static const struct {
        xm_element k, v;
        uint32_t d, dv;
    } cases[] = {{XM_F16, XM_F16, 64, 128}, {XM_I8, XM_I8, 128, 128},
                 {XM_U4, XM_U4, 64, 128},   {XM_U4, XM_I8, 96, 256},
                 {XM_F16, XM_U4, 20, 256},  {XM_F32, XM_I8, 30, 80},
                 {XM_I8, XM_U4, 64, 64}};
    const char *row = "attention_decode_sg";
    const xm_variant_table &t = xm_attention_decode_table;
    const xm_variant *variant =
        std::find_if(t.rows, t.rows + t.n,
                     [&](const xm_variant &v) { return strcmp(v.name, row) == 0; });
    ASSERT_NE(variant, t.rows + t.n);
    if (xm_variant_refusal(variant, xm_engine_info(engine), nullptr))
        GTEST_SKIP() << "the device has no sub-groups";
    force(t.step, row);
    for (const auto &c : cases)
        for (int64_t past : {40, 600}) { /* decode cuts one of them */
            problem p = make("layout", 1, 1, past);
            p.heads_q = p.heads_kv = 1;
            p.element = XM_F16;
            p.cache = c.k;
            p.v_cache = c.v;
            p.d = c.d;
            p.dv = c.dv;
            SCOPED_TRACE(std::string(xm_element_text(c.k)) + " " + xm_element_text(c.v) +
                         " " + std::to_string(c.d) + " " + std::to_string(c.dv));
            check(p);
        }
}

/* Rows that no query sees hold NaN: padding, and positions that were never written. */
TEST_F(Attention, WhatNobodySeesMayBeAnything)
{
    const xm_element caches[] = {XM_U4, XM_I8, XM_F16};
    auto check_hidden_rows = [&](const xm_variant &row, size_t i) {
        problem p = make("hidden", 2, strstr(row.name, "prompt") ? 9 : 2, 50);
        p.cache = caches[i];
        p.keys = key_mask::i32;
        p = for_row(row, p);
        create(p);
        state s(p);
        const question ask(p);
        fill(s);
        const size_t stride = ask.keys.size() / 2;
        const struct {
            uint64_t at, bytes;
        } parts[] = {{0, p.d * xm_element_bits(p.cache) / 8},
                     {s.page.v, p.dv * xm_element_bits(p.cache) / 8},
                     {s.page.k_scale, p.d / 16},
                     {s.page.v_scale, p.dv / 16}};
        for (size_t b = 0; b < 2; b++)
            for (int64_t j = 0; j < p.past; j++)
                for (uint32_t h = 0; h < p.heads_kv && !ask.keys[b * stride + (size_t)j];
                     h++) {
                    const spot at = find(s, b, j, h);
                    for (size_t k = 0; k < (p.cache == XM_F16 ? 2 : 4); k++)
                        EXPECT_EQ(
                            xm_queue_fill(queue, s.slabs[at.slab],
                                          at.page + parts[k].at + at.row * parts[k].bytes,
                                          0xff, parts[k].bytes, &err),
                            XM_OK)
                            << err.text;
                }
        EXPECT_TRUE(rows_of_norm(chunk(s, p.lengths(), ask.q, ask.key_tensor.get()),
                                 reference(s, ask.q, ask.keys, {}), p.dv, p.element));
        return true;
    };
    for_rows(xm_attention_prompt_table, std::size(caches), 1, check_hidden_rows);
    for_rows(xm_attention_decode_table, std::size(caches), 1, check_hidden_rows);
}

TEST(AttentionCache, TakesHeadsOfWholeBlocks)
{
    static const struct {
        uint32_t d, dv;
        xm_element k, v;
        const char *why;
    } cases[] = {
        {64, 96, XM_U4, XM_U4, nullptr},
        {80, 96, XM_F16, XM_U4, nullptr},
        {80, 64, XM_U4, XM_U4, "multiple of 32"},
        {64, 80, XM_F16, XM_U4, "multiple of 32"},
        {80, 80, XM_I8, XM_I8, nullptr},
        {64, 64, XM_I4, XM_F16, "not f16, f32, i8 or u4"},
        {64, 64, XM_F16, XM_BF16, "not f16, f32, i8 or u4"},
    };
    for (const auto &c : cases) {
        xm_attention_desc d = {};
        d.heads_q = d.heads_kv = d.page_tokens = 1;
        d.d = c.d;
        d.dv = c.dv;
        d.element = XM_F16;
        d.k_cache = c.k;
        d.v_cache = c.v;
        const char *why = xm_attention_supports(nullptr, &d);
        ASSERT_EQ(why == nullptr, c.why == nullptr) << c.d << " " << c.dv;
        if (why) {
            EXPECT_NE(std::string(why).find(c.why), std::string::npos) << why;
        }
    }
}

} // namespace
