/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of sequences with equal lengths.
 */
#include "unit_tests/primitives/attention_fixture.h"

namespace
{

std::vector<problem>
problems(bool prompt)
{
    std::vector<problem> all;
    const int64_t prompt_tokens[] = {5, 17, 33}, few_tokens[] = {1, 2, 4};
    for (int64_t past : {0, 1, 31, 32, 33, 100})
        for (int64_t t : prompt ? prompt_tokens : few_tokens)
            all.push_back(make("plain", past % 2 ? 3 : 1, t, past));
    const int64_t t = prompt ? 17 : 2;
    problem p = make("window", 1, t, 100);
    p.window = 8;
    all.push_back(p);
    p.window = 32;
    p.t = prompt ? 33 : 1;
    all.push_back(p);
    p = make("f16 cache, one head", 3, t, 33);
    p.heads_q = p.heads_kv = 1;
    p.d = 128;
    p.dv = 80;
    p.element = p.cache = XM_F16;
    p.page = 32;
    all.push_back(p);
    p = make("uneven heads, odd dimensions", 1, t, 31);
    p.heads_q = 6;
    p.heads_kv = 3;
    p.d = 80;
    p.dv = 20;
    p.sinks = true;
    p.soft_cap = 2.0f;
    all.push_back(p);
    p = make("masks", 3, t, 33);
    p.keys = key_mask::i64;
    p.mask = add_mask::full_f16;
    all.push_back(p);
    p.causal = false;
    p.keys = key_mask::i32;
    p.mask = add_mask::shared_f32;
    p.sinks = true;
    all.push_back(p);
    p = make("long, one head", 1, 1, 600); /* decode cuts these keys into partitions */
    p.heads_q = p.heads_kv = 1;
    p.cache = XM_F16;
    p.sinks = true;
    if (!prompt)
        all.push_back(p);
    return all;
}

/* Returns a problem with a cache of i8, where each row of K and V has a scale. */
problem
in_eight_bits(int64_t t, int64_t past)
{
    problem p = make("i8 cache", past > 200 ? 1 : 3, t, past);
    p.cache = XM_I8;
    p.keys = key_mask::u8;
    return p;
}

/* Changes the problem to one that kernels for matrix engines take. */
problem
in_tiles(problem p, xm_element cache = XM_F16)
{
    p.d = (p.d + 63) / 64 * 64;
    p.dv = (p.dv + 15) / 16 * 16;
    p.element = XM_F16;
    p.cache = cache;
    return p;
}

TEST_F(Attention, EveryPromptVariantAgreesWithTheReference)
{
    const std::vector<problem> all = problems(true);
    for_rows(xm_attention_prompt_table, all.size(), 2,
             [&](const xm_variant &row, size_t i) {
                 check(row.caps & XM_CAP_DPAS ? in_tiles(all[i]) : all[i]);
                 return true;
             });
}

void
force_matrix_engines()
{
    optimise(false);
    setenv(
        "XM_FORCE",
        "attention_prompt=attention_prompt_dpas,attention_decode=attention_decode_dpas",
        1);
}

/* Head sizes that are one or several parts, queries that do not fill the lanes, soft caps, sinks,
 * padding; few tokens, whose keys are cut into partitions, and a prompt. */
TEST_F(Attention, MatrixEnginesTakeHeadsOfEverySize)
{
    if (!xm_device_really_has(xm_engine_info(engine),
                              XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE))
        GTEST_SKIP() << "no sub-groups of a required size";
    force_matrix_engines();
    const std::pair<uint32_t, uint32_t> heads[] = {{256, 256}, {192, 144}};
    sample::deck(2 * std::size(heads)).deal(1, [&](size_t i) {
        const auto &[d, dv] = heads[i / 2];
        problem p = in_tiles(i % 2 ? make("prompt", 1, 5, 33) : make("few", 1, 2, 300));
        p.d = d;
        p.dv = dv;
        p.heads_q = 3;
        p.heads_kv = 1;
        p.sinks = d % 128 == 0;
        p.soft_cap = dv % 128 ? 3.0f : 0.0f;
        p.keys = d % 128 ? key_mask::none : key_mask::i64;
        p.pads_left = true; /* tiles with padding come first */
        check(p);
        return true;
    });
}

/* Scores that grow so that the running maximum changes often; windows, pages of whole tiles,
 * caches of every type, equal and mixed. For caches with rotated keys, q is rotated and rounded
 * to f16, so that scores are closer there. */
TEST_F(Attention, MatrixEnginesFollowTheLargestScore)
{
    if (!xm_device_really_has(xm_engine_info(engine),
                              XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE))
        GTEST_SKIP() << "no sub-groups of a required size";
    force_matrix_engines();
    const struct {
        const char *name;
        xm_element k, v;
        float scale;
    } caches[] = {{"f16", XM_F16, XM_F16, 1.0f},
                  {"f16 and u4", XM_F16, XM_U4, 1.0f},
                  {"i8", XM_I8, XM_I8, 0.0f},
                  {"u4", XM_U4, XM_U4, 0.0f},
                  {"i8 and f16", XM_I8, XM_F16, 0.0f}};
    sample::deck(2 * std::size(caches)).deal(2, [&](size_t i) {
        const auto &of = caches[i / 2];
        problem p = i % 2 ? make(of.name, 1, 21, 300) : make(of.name, 1, 2, 300);
        p = in_tiles(p, of.k);
        p.v_cache = of.v;
        p.page = 32;
        p.window = i % 3 ? 0 : 150;
        p.scale = of.scale;
        check(p);
        return true;
    });
}

TEST_F(Attention, MatrixEnginesRefuseWhatIsNotInTiles)
{
    const xm_variant *row = nullptr; /* the table of decode has the same function */
    for (size_t v = 0; v < xm_attention_prompt_table.n; v++)
        if (xm_attention_prompt_table.rows[v].caps & XM_CAP_DPAS)
            row = &xm_attention_prompt_table.rows[v];
    ASSERT_NE(row, nullptr);
    xm_attention_desc good = {};
    good.d = good.dv = 128;
    good.page_tokens = 32;
    good.scale = 1.0f;
    good.element = good.k_cache = good.v_cache = XM_F16;
    EXPECT_EQ(row->refuses(&good), nullptr);
    const std::pair<const char *, void (*)(xm_attention_desc &)> wrong[] = {
        {"f16 queries", [](xm_attention_desc &d) { d.element = XM_F32; }},
        {"at most 16 bits", [](xm_attention_desc &d) { d.k_cache = XM_F32; }},
        {"at most 16 bits", [](xm_attention_desc &d) { d.v_cache = XM_F32; }},
        {"above 0", [](xm_attention_desc &d) { d.scale = -1.0f; }},
        {"above 0", [](xm_attention_desc &d) { d.scale = NAN; }},
        {"multiple of the tiles", [](xm_attention_desc &d) { d.d = 80; }},
        {"multiple of the tiles", [](xm_attention_desc &d) { d.dv = 20; }},
        {"multiple of the tiles", [](xm_attention_desc &d) { d.page_tokens = 8; }},
        {"more than 256", [](xm_attention_desc &d) { d.dv = 272; }},
    };
    for (const auto &[why, change] : wrong) {
        xm_attention_desc d = good;
        change(d);
        ASSERT_NE(row->refuses(&d), nullptr) << why;
        EXPECT_NE(std::string(row->refuses(&d)).find(why), std::string::npos);
    }
}

TEST_F(Attention, EveryDecodeVariantAgreesWithTheReference)
{
    const std::vector<problem> all = problems(false);
    for_rows(xm_attention_decode_table, all.size(), 3,
             [&](const xm_variant &row, size_t i) {
                 check(row.caps & XM_CAP_DPAS ? in_tiles(all[i]) : all[i]);
                 return true;
             });
}

/* check() compares the prepared rows. Heads that are one part, and two heads that form one part. */
TEST_F(Attention, FewTokensArePreparedForTheirReader)
{
    if (xm_engine_info(engine)->kind != XM_DEVICE_CPU)
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (uint32_t dv : {64, 128}) {
        for (int64_t past : {0, 600}) {
            for (int64_t tokens : {1, 3}) {
                problem p = make("prepared", 1, tokens, past);
                p.element = p.cache = XM_F16;
                p.heads_q = 2;
                p.heads_kv = 1;
                p.dv = dv;
                rows_prepared = 0;
                check(p);
                EXPECT_GE(rows_prepared, (uint64_t)tokens);
            }
        }
    }
}

TEST_F(Attention, EveryCombineVariantJoinsPartitions)
{
    for (size_t v = 0; v < xm_attention_combine_table.n; v++) {
        const xm_variant *row = &xm_attention_combine_table.rows[v];
        if (xm_variant_refusal(row, xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(row->name);
        force("attention_combine", row->name);
        problem p = make("long", 1, 1, 600);
        p.heads_q = p.heads_kv = 1; /* so little work is cut on every device */
        p.sinks = true;
        p.dv = 20;
        check(p);
        p.window = 400;
        p.cache = XM_I8;
        check(p);
    }
}

TEST_F(Attention, EveryVariantReadsTheScaleOfEachRow)
{
    for_rows(xm_attention_prompt_table, 1, 1, [&](const xm_variant &row, size_t) {
        const problem p = in_eight_bits(17, 100);
        check(row.caps & XM_CAP_DPAS ? in_tiles(p, XM_I8) : p);
        return true;
    });
    const int64_t pasts[] = {100, 600}; /* decode cuts one of them */
    for_rows(xm_attention_decode_table, std::size(pasts), 2,
             [&](const xm_variant &row, size_t i) {
                 const problem p = in_eight_bits(2, pasts[i]);
                 check(row.caps & XM_CAP_DPAS ? in_tiles(p, XM_I8) : p);
                 return true;
             });
}

TEST(AttentionPartitions, AreAsManyAsTheDeviceNeedsAndNoneIsShort)
{
    static const struct {
        xm_device_kind kind;
        uint32_t compute_units;
        uint64_t units, read, keys, n;
    } cuts[] = {
        /* two work-items a core without cutting */
        {XM_DEVICE_CPU, 2, 4, 100000, 100000, 1},
        {XM_DEVICE_CPU, 2, 1, 255, 256, 1},
        {XM_DEVICE_CPU, 2, 1, 256, 128, 2},
        {XM_DEVICE_CPU, 2, 1, 4096, 1024, 4},
        {XM_DEVICE_CPU, 16, 4, 4096, 512, 8},
        {XM_DEVICE_GPU, 96, 16, 1, 32, 1},
        {XM_DEVICE_GPU, 96, 16, 127, 128, 1},
        {XM_DEVICE_GPU, 96, 16, 128, 64, 2},
        {XM_DEVICE_GPU, 96, 16, 1000, 96, 11}, /* multiples of 32 keys */
        {XM_DEVICE_GPU, 96, 16, 1 << 20, 43712, 24},
        {XM_DEVICE_GPU, 512, 16, 1 << 20, 16384, 64}, /* limited by the size of scratch */
        {XM_DEVICE_GPU, 96, 400, 1 << 20, 1 << 20, 1},
        /* a driver that reports no compute units */
        {XM_DEVICE_OTHER, 0, 1, 1000, 1024, 1},
    };
    for (const auto &c : cuts) {
        SCOPED_TRACE(std::to_string(c.compute_units) + " compute units, " +
                     std::to_string(c.units) + " units, keys to " +
                     std::to_string(c.read));
        xm_device_info device = {};
        device.kind = c.kind;
        device.compute_units = c.compute_units;
        xm_attention_partitions p = xm_attention_cut_keys(&device, c.units, c.read);
        EXPECT_EQ(p.keys, c.keys);
        EXPECT_EQ(p.n, c.n);
        for (uint64_t more : {0, 1, 31, 32, 1000, 100000})
            EXPECT_LE(p.n, xm_attention_most_partitions(&device, c.units, c.read + more));
    }
}

TEST_F(Attention, OnePartitionTakesNoScratch)
{
    problem p = make("short", 1, 1, 0);
    create(p);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = {nullptr, XM_F32, 4, {1, 1, p.heads_q, p.d}};
    for (int64_t past : {0, 63, 126}) {
        const sequences s({{past, 1}});
        uint64_t bytes = 1;
        ASSERT_XM_OK(xm_primitive_plan(attention.p, o, &s.run, &bytes, &err));
        EXPECT_EQ(bytes, 0u);
    }
}

const xm_element caches[] = {XM_F32, XM_F16, XM_I8};

TEST_F(Attention, EveryCacheWriterKeepsRows)
{
    for_rows(xm_attention_inputs_table, std::size(caches), 1,
             [&](const xm_variant &, size_t i) {
                 problem p = make(xm_element_text(caches[i]), 2, 5, 17);
                 p.cache = caches[i];
                 p.d = 72;
                 p.dv = 20;
                 p.element = p.cache == XM_F16 ? XM_F16 : XM_F32;
                 check(p);
                 return true;
             });
}

TEST_F(Attention, EveryVariantNormsAndRotatesItsInputs)
{
    for_rows(xm_attention_inputs_table, std::size(caches), 1,
             [&](const xm_variant &, size_t i) {
                 problem p = make(xm_element_text(caches[i]), 2, 3, 0);
                 p.cache = caches[i];
                 p.element = p.cache == XM_F16 ? XM_F16 : XM_F32;
                 p.dv = 40;
                 p.q_norm = p.k_norm = true;
                 p.rotated = 64;
                 check_inputs(p);
                 p.t = 9; /* takes the kernels for prompts */
                 p.d = 36;
                 p.rotated = 20;
                 p.v_norm = p.shared_tables = true;
                 check_inputs(p);
                 return true;
             });
}

TEST_F(Attention, EveryVariantTakesPartOfTheInputs)
{
    for_rows(xm_attention_inputs_table, 2, 1, [&](const xm_variant &, size_t i) {
        problem p = make("rotated only", 1, 1, 0);
        p.rotated = 32;
        if (i == 1) {
            p.name = "q normed only, K and V of another layer";
            p.rotated = 0;
            p.q_norm = true;
            p.keeps_cache = true;
        }
        check_inputs(p);
        return true;
    });
}

TEST_F(Attention, ChunkedPromptEqualsTheWholePrompt)
{
    problem p = make("chunked", 2, 40, 0);
    create(p);
    std::vector<float> q = random_floats((size_t)(p.b * p.t * p.heads_q * p.d), 4);
    state whole(p), parts(p);
    std::vector<float> want = chunk(whole, p.lengths(), q);
    for (auto [first, n] : {std::pair<int64_t, int64_t>{0, 17}, {17, 3}, {20, 20}}) {
        std::vector<float> rows = part(q, p, p.t, p.heads_q * p.d, first, n);
        EXPECT_TRUE(rows_match(chunk(parts, {{first, n}, {first, n}}, rows),
                               part(want, p, p.t, p.heads_q * p.dv, first, n), p.dv,
                               XM_F32));
    }
}

TEST_F(Attention, ARowThatSeesNothingIsZero)
{
    for (int64_t t : {int64_t{1}, decode_tokens + 1}) {
        problem p = make("nothing seen", 1, t, 0);
        create(p);
        state s(p);
        std::vector<float> q = random_floats((size_t)(t * p.heads_q * p.d), 4);
        tensor keys(XM_I64, {1, t}, std::vector<int64_t>((size_t)t, 0));
        std::vector<float> got = chunk(s, p.lengths(), q, &keys);
        EXPECT_EQ(got, std::vector<float>(got.size(), 0.0f));
    }
}

TEST_F(Attention, ScratchOfDecodeIsBoundedAndThatOfPromptIsNone)
{
    problem p = make("plan", 1, 1, 0);
    create(p);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = {nullptr, XM_F32, 4, {1, 1, p.heads_q, p.d}};
    uint64_t bytes = 0, before = 0;
    for (int64_t past : {100, 1000, 1030, 100000, 10000000}) {
        const sequences s({{past, 1}});
        ASSERT_XM_OK(xm_primitive_plan(attention.p, o, &s.run, &bytes, &err));
        EXPECT_LE(bytes, 64u * p.heads_q * (p.dv + 2) * 4 + 4096);
        EXPECT_GE(bytes, before);
        before = bytes;
    }
    o[XM_ATTENTION_Q].dim[1] = 512;
    const sequences s({{100000, 512}});
    ASSERT_XM_OK(xm_primitive_plan(attention.p, o, &s.run, &bytes, &err));
    EXPECT_EQ(bytes, 0u);
}

} // namespace
