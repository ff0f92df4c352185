/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of sequences with different lengths in one run: rows of all sequences in a row, pages
 * in several slabs.
 */
#include <algorithm>

#include "unit_tests/primitives/attention_fixture.h"

namespace
{

/* Lengths {past, tokens}: decode may cut two of them; one has no past, one no tokens; prompts do
 * not fill tiles. */
const std::vector<length> mixed = {{0, 7}, {3, 1}, {40, 2}, {700, 1}, {129, 33}, {5, 0}};
const std::vector<length> decodes_first = {{3, 1},  {700, 1},  {40, 2}, {0, 4},
                                           {31, 0}, {129, 33}, {0, 7}};
const std::vector<length> decodes_only = {{700, 1}, {3, 1}, {600, 4}, {129, 2}};

const std::vector<length> cut = {{900, 1}, {2, 1}, {300, 1}};

std::vector<problem>
ragged_problems()
{
    std::vector<problem> all;
    for (const auto &lengths : {mixed, decodes_first, decodes_only})
        all.push_back(make_ragged("ragged", lengths));
    problem p = make_ragged("one group of heads, f16, no causality", decodes_first);
    p.heads_q = 3;
    p.heads_kv = 1;
    p.element = p.cache = XM_F16;
    p.causal = false;
    all.push_back(p);
    p = make_ragged("window", {{700, 1}, {600, 3}, {3, 2}, {200, 9}, {0, 40}, {64, 7}});
    p.window = 20;
    p.gives_up_pages = true;
    all.push_back(p);
    p.window = 300; /* decode cuts it */
    p.heads_q = p.heads_kv = 1;
    p.sinks = true;
    all.push_back(p);
    p = make_ragged("cut, of which some have little", cut);
    p.heads_q = p.heads_kv = 1;
    all.push_back(p);
    p = make_ragged("key mask, sinks, soft cap", mixed);
    p.keys = key_mask::i32;
    p.sinks = true;
    p.soft_cap = 2.0f;
    p.dv = 40;
    all.push_back(p);
    p = make_ragged("large pages", decodes_first);
    p.page = 48;
    p.keys = key_mask::i64;
    all.push_back(p);
    p = make_ragged("one length, all rows in one batch", {{33, 5}, {33, 5}, {33, 5}});
    p.mask = add_mask::full_f16;
    all.push_back(p);
    return all;
}

/* Returns the problem with a cache of i8. */
problem
in_eight_bits(problem p)
{
    p.cache = XM_I8;
    return p;
}

problem
in_tiles(problem p)
{
    p.d = p.dv = 64;
    p.element = p.cache = XM_F16;
    return p;
}

TEST_F(Attention, EveryPromptVariantTakesSequencesOfAnyLength)
{
    const std::vector<problem> all = ragged_problems();
    for_rows(xm_attention_prompt_table, all.size(), 2,
             [&](const xm_variant &row, size_t i) {
                 check(row.caps & XM_CAP_DPAS ? in_tiles(all[i]) : all[i]);
                 return true;
             });
}

TEST_F(Attention, EveryDecodeVariantTakesSequencesOfAnyLength)
{
    const std::vector<problem> all = ragged_problems();
    for_rows(xm_attention_decode_table, all.size(), 2,
             [&](const xm_variant &row, size_t i) {
                 check(row.caps & XM_CAP_DPAS ? in_tiles(all[i]) : all[i]);
                 return true;
             });
}

TEST_F(Attention, EveryVariantReadsRaggedScales)
{
    const std::vector<problem> all = sample::of(ragged_problems(), 2);
    auto check_scaled = [&](const xm_variant &row, size_t i) {
        if (!(row.caps & XM_CAP_DPAS))
            check(in_eight_bits(all[i]));
        return true;
    };
    for_rows(xm_attention_prompt_table, all.size(), 1, check_scaled);
    for_rows(xm_attention_decode_table, all.size(), 1, check_scaled);
    for_rows(xm_attention_inputs_table, all.size(), 1, check_scaled);
}

/* A partition beyond the keys of a sequence adds nothing to the result, whatever scratch holds. */
TEST_F(Attention, EveryCombineVariantTakesEmptyPartitions)
{
    for (size_t v = 0; v < xm_attention_combine_table.n; v++) {
        const xm_variant *row = &xm_attention_combine_table.rows[v];
        if (xm_variant_refusal(row, xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(row->name);
        force("attention_combine", row->name);
        problem p = make_ragged("empty partitions", cut);
        p.heads_q = p.heads_kv = 1; /* so little work is cut on every device */
        check(p);
        check_hidden(p);
        p.sinks = true;
        p.dv = 20;
        check(p);
    }
}

/* Keys without a page are left out; slab 0 is missing, too. */
TEST_F(Attention, EveryVariantLeavesKeysWithoutAPageOut)
{
    auto check_gap = [&](const xm_variant &row, size_t) {
        problem p = make_ragged("a page is missing", {{40, 2}, {50, 5}});
        if (row.caps & XM_CAP_DPAS)
            p = in_tiles(p);
        create(p);
        state s(p);
        const question ask(p);
        std::vector<int64_t> keys(2 * 55, 1);
        fill(s);
        EXPECT_EQ(s.slabs[0], nullptr);
        s.pages[0][1] = s.pages[1][2] = -1;
        std::fill_n(keys.begin() + 16, 16, 0);
        std::fill_n(keys.begin() + 55 + 32, 16, 0);
        EXPECT_TRUE(rows_of_norm(chunk(s, p.lengths(), ask.q),
                                 reference(s, ask.q, keys, {}), p.dv, p.element));
        return true;
    };
    for_rows(xm_attention_prompt_table, 1, 1, check_gap);
    for_rows(xm_attention_decode_table, 1, 1, check_gap);
}

/* The result of a sequence does not depend on the others; its bits are equal if the same kernel
 * cuts its keys into the same partitions. */
TEST_F(Attention, ASequenceGivesWhatItGivesAlone)
{
    for (const auto &lengths : {mixed, decodes_first}) {
        problem p = make_ragged("alone", lengths);
        p.cache = XM_F16;
        p.window = 500;
        create(p);
        state s(p);
        const question ask(p);
        fill(s);
        const std::vector<float> got = chunk(s, lengths, ask.q);
        const size_t in = p.heads_q * p.d, out = p.heads_q * p.dv;
        size_t begin = 0;
        for (size_t i = 0; i < lengths.size(); begin += (size_t)lengths[i++].tokens) {
            const size_t end = begin + (size_t)lengths[i].tokens;
            const bool is_short = lengths[i].tokens <= decode_tokens;
            if (begin == end)
                continue;
            SCOPED_TRACE("sequence " + std::to_string(i));
            const std::vector<float> q(ask.q.begin() + (long)(begin * in),
                                       ask.q.begin() + (long)(end * in)),
                there(got.begin() + (long)(begin * out), got.begin() + (long)(end * out)),
                alone = chunk(batch(s, {lengths[i]}, {i}), q);
            if (is_short)
                EXPECT_TRUE(rows_of_norm(there, alone, p.dv, XM_F32));
            else
                EXPECT_EQ(there, alone);
        }
    }
    problem p = make_ragged("none is cut", {{3, 1}, {40, 2}, {100, 4}, {0, 1}});
    create(p);
    state s(p);
    const question ask(p);
    fill(s);
    const std::vector<float> got = chunk(s, p.ragged, ask.q);
    std::vector<float> each;
    size_t begin = 0;
    for (size_t i = 0; i < p.ragged.size(); i++) {
        const size_t n = (size_t)p.ragged[i].tokens * p.heads_q * p.d;
        const auto at = ask.q.begin() + (long)begin;
        const std::vector<float> one =
            chunk(batch(s, {p.ragged[i]}, {i}), std::vector<float>(at, at + (long)n));
        each.insert(each.end(), one.begin(), one.end());
        begin += n;
    }
    EXPECT_EQ(got, each);
}

/* Each row of a ragged run has its own row of the tables; sequences begin where others ended. */
TEST_F(Attention, EveryVariantNormsAndRotatesRaggedInputs)
{
    for_rows(xm_attention_inputs_table, 1, 1, [&](const xm_variant &, size_t) {
        problem p = make_ragged("inputs", {{0, 1}, {0, 6}, {0, 0}, {0, 17}});
        p.q_norm = p.k_norm = p.v_norm = true;
        p.rotated = 32;
        check_inputs(p);
        return true;
    });
}

TEST_F(Attention, FewRowsOfSeveralSequencesArePrepared)
{
    if (xm_engine_info(engine)->kind != XM_DEVICE_CPU)
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (int64_t past : {0, 600}) {
        problem p = make_ragged("prepared", {{past, 1}, {7, 2}, {past, 1}});
        p.element = p.cache = XM_F16;
        p.heads_q = 2;
        p.heads_kv = 1;
        p.dv = 128;
        rows_prepared = 0;
        check(p);
        EXPECT_GE(rows_prepared, 4u);
    }
}

/* ---- pages -------------------------------------------------------------------------- */

TEST(AttentionPage, HasItsPartsAt64Bytes)
{
    static const struct {
        uint32_t heads, d, dv, tokens;
        xm_element cache;
        xm_kv_page page;
    } pages[] = {
        {2, 64, 64, 16, XM_F16, {4096, 8192, 8192, 8192}},
        {1, 3, 5, 3, XM_F32, {64, 128, 128, 128}},
        {3, 7, 10, 4, XM_I8, {128, 256, 320, 384}},
        {3, 64, 32, 4, XM_U4, {384, 576, 640, 704}},
    };
    for (const auto &c : pages) {
        xm_attention_desc d = {};
        d.heads_kv = c.heads;
        d.d = c.d;
        d.dv = c.dv;
        d.page_tokens = c.tokens;
        d.k_cache = d.v_cache = c.cache;
        xm_kv_page page = {};
        EXPECT_TRUE(xm_attention_page(&d, &page));
        EXPECT_EQ(page.v, c.page.v);
        EXPECT_EQ(page.k_scale, c.page.k_scale);
        EXPECT_EQ(page.v_scale, c.page.v_scale);
        EXPECT_EQ(page.bytes, c.page.bytes);
        d.heads_kv = d.page_tokens = UINT32_MAX;
        EXPECT_FALSE(xm_attention_page(&d, &page));
    }
}

TEST_F(Attention, CopiesAPage)
{
    const xm_kv_page page = {64, 128, 128, 128};
    tensor a(XM_U8, {128}, std::vector<int64_t>(128, 3)),
        b(XM_U8, {256}, std::vector<int64_t>(256, 5));
    xm_buffer *slabs[XM_KV_SLABS] = {nullptr, a.buffer(), nullptr, b.buffer()};
    const int32_t of_a = 1 << XM_KV_SLAB_SHIFT, of_b = 3 << XM_KV_SLAB_SHIFT;
    ASSERT_XM_OK(xm_attention_copy_page(slabs, &page, of_a, of_b + 1, queue, &err));
    std::vector<int64_t> want(256, 5);
    std::fill_n(want.begin() + 128, 128, 3);
    EXPECT_EQ(b.read_ints(), want);
    for (int32_t word : {-1, 0, of_a + 1, of_b + 2, 7 << XM_KV_SLAB_SHIFT}) {
        xm_error why = {};
        EXPECT_EQ(xm_attention_copy_page(slabs, &page, word, of_b, queue, &why),
                  XM_INVALID);
        EXPECT_EQ(xm_attention_copy_page(slabs, &page, of_b, word, queue, nullptr),
                  XM_INVALID);
        EXPECT_NE(std::string(why.text).find("not a page of the KV cache"),
                  std::string::npos);
    }
}

/* ---- refusals ----------------------------------------------------------------------- */

/* Two sequences of 3 and 4 positions before 2 tokens each, and members to make them invalid. */
struct asked {
    std::vector<length> lengths = {{3, 2}, {4, 2}};
    int64_t q_rows = 4, key_mask = 0, tables = 4;
    bool masked = false, has_slabs = true;
    int32_t begins_at = 0;
};

TEST_F(Attention, RefusesSequencesThatDoNotFit)
{
    static const struct {
        const char *why;
        void (*change)(asked &);
    } wrong[] = {
        {"the sequences have 4 tokens, but q has 5", [](asked &a) { a.q_rows = 5; }},
        {"the tokens of sequence 0 begin at 1", [](asked &a) { a.begins_at = 1; }},
        {"sequence 1 has -1 tokens", [](asked &a) { a.lengths[1].tokens = -1; }},
        {"sequence 1 would reach position -4", [](asked &a) { a.lengths[1].past = -4; }},
        {"at most 2147479551", [](asked &a) { a.lengths[0].past = INT32_MAX - 4096; }},
        {"the key mask is not [2, 6 or more]", [](asked &a) { a.key_mask = 5; }},
        {"needs sequences of equal length", [](asked &a) { a.masked = true; }},
        {"cos and sin are not", [](asked &a) { a.tables = 3; }},
        {"the KV cache has no slab", [](asked &a) { a.has_slabs = false; }},
    };
    const problem p = make_ragged("wrong", asked().lengths);
    create(p);
    state s(p);
    const batch good(s, p.ragged, {0, 1});
    for (const auto &w : wrong) {
        SCOPED_TRACE(w.why);
        asked a;
        w.change(a);
        xm_buffer *const none[XM_KV_SLABS] = {};
        sequences host(a.lengths, a.has_slabs ? s.slabs : none);
        host.begins[0] = a.begins_at;
        tensor q(p.element, {1, a.q_rows, p.heads_q, p.d}),
            out(p.element, {1, a.q_rows, p.heads_q, p.dv}), cos(XM_F32, {1, a.tables, 8}),
            key_mask(XM_I32, {2, a.key_mask}), mask(XM_F32, {1, 1, 2, 6});
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        good.operands(o);
        o[XM_ATTENTION_Q] = q.operand();
        o[XM_ATTENTION_OUT] = out.operand();
        o[XM_ATTENTION_COS] = o[XM_ATTENTION_SIN] = cos.operand();
        if (a.key_mask)
            o[XM_ATTENTION_KEY_MASK] = key_mask.operand();
        if (a.masked)
            o[XM_ATTENTION_MASK] = mask.operand();
        xm_error why = {};
        run.sequences = &host.run;
        EXPECT_EQ(xm_primitive_run(attention.p, o, &run, &why), XM_INVALID);
        EXPECT_NE(std::string(why.text).find(w.why), std::string::npos) << why.text;
    }
}

/* A table [1, T] may serve several sequences only if each of them has T tokens. */
TEST_F(Attention, SharesTablesBetweenSequencesOfOneLengthOnly)
{
    const problem p = make_ragged("shared tables", {{0, 1}, {0, 3}});
    create(p);
    state s(p);
    const batch sequences(s, p.ragged, {0, 1});
    tensor q(p.element, {2, 2, p.heads_q, p.d}), out(p.element, {2, 2, p.heads_q, p.dv}),
        cos(XM_F32, {1, 2, 8});
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    sequences.operands(o);
    o[XM_ATTENTION_Q] = q.operand();
    o[XM_ATTENTION_OUT] = out.operand();
    o[XM_ATTENTION_COS] = o[XM_ATTENTION_SIN] = cos.operand();
    run.sequences = &sequences.host.run;
    EXPECT_EQ(xm_primitive_run(attention.p, o, &run, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("sequences of equal length"), std::string::npos)
        << err.text;
}

} // namespace
