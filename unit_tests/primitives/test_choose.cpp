/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows of choose take, against the host's sampler: the same logits, seed and number of
 * choices give the same token.
 */
#include "primitives/choose/choose.h"

#include "plugin/text/sampler.h"
#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

enum { CHOICES = 6 };

using floats = std::vector<float>;

/* As models give them, and rows that they hardly give: ties, excluded tokens, a peak. */
floats
make_row(size_t n, uint32_t kind)
{
    std::mt19937 r(kind + (uint32_t)n);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const float spread = std::vector<float>{1.0f, 3.0f, 1e-6f, 40.0f, 1e37f}[kind % 5];
    floats row(n);
    for (size_t i = 0; i < n; i++) {
        row[i] = normal(r) * spread;
        if (kind % 3 == 1)
            row[i] = std::round(row[i]);
        if (kind % 4 == 3 && r() % 2)
            row[i] = -INFINITY;
        if (kind % 7 == 6)
            row[i] = r() % 2 ? 0.0f : -0.0f;
    }
    row[r() % n] = spread;
    return row;
}

xm_sampling
sampling(float temperature, int top_k, float top_p, float min_p, uint64_t seed)
{
    xm_sampling s = {};
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.min_p = min_p;
    s.seed = seed;
    return s;
}

class Choose : public PrimitiveTest
{
  protected:
    void TearDown() override
    {
        xm_sampler_free(sampler);
        PrimitiveTest::TearDown();
    }
    void force_rows(size_t best, size_t take)
    {
        const std::string both = std::string("choose_best=") +
                                 xm_choose_tables[0].rows[best].name +
                                 ",choose_take=" + xm_choose_tables[1].rows[take].name;
        setenv("XM_FORCE", both.c_str(), 1);
        optimise_for(xm_choose_tables[1].rows[take]);
    }
    /* The next `n` tokens by the device, which has them where the next run reads them. */
    std::vector<int32_t> on_device(const floats &logits, const xm_token_choice &how,
                                   size_t n, xm_element e = XM_I64,
                                   const xm_seen_tokens &tokens = {})
    {
        const int64_t v = (int64_t)logits.size();
        tensor row(XM_F32, {1, 1, v}, logits), state(XM_U8, {(int64_t)sizeof(how)}),
            seen(XM_U8, {(int64_t)xm_choose_seen_bytes((uint64_t)v, how.window)}),
            parts(XM_U8, {(int64_t)xm_choose_parts_bytes((uint64_t)v)}),
            chosen(XM_I32, {XM_CHOOSE_SLOTS}), ids(e, {1, 1}),
            position(e, {1, 1}, std::vector<int64_t>{100}),
            past(XM_I32, {1}, std::vector<int64_t>{70});
        const xm_choose_desc desc = xm_choose_desc_of(&how, e, e);
        primitive_ptr choose;
        EXPECT_EQ(xm_choose_create(engine, &desc, &choose.p, &err), XM_OK) << err.text;
        const xm_operand o[] = {row.operand(),
                                state.operand(),
                                how.adjusts ? seen.operand() : xm_operand{},
                                parts.operand(),
                                chosen.operand(),
                                ids.operand(),
                                position.operand(),
                                past.operand()};
        EXPECT_EQ(xm_choose_begin(run.queue, state.operand().buffer,
                                  seen.operand().buffer, (uint64_t)v, &how, &tokens,
                                  &err),
                  XM_OK)
            << err.text;
        std::vector<int32_t> got;
        for (size_t i = 0; i < n; i++) {
            /* Penalties change them, and a run makes them anew. */
            EXPECT_EQ(xm_queue_write(run.queue, row.operand().buffer, 0, logits.data(),
                                     logits.size() * sizeof(float), &err),
                      XM_OK);
            EXPECT_EQ(xm_primitive_run(choose.p, o, &run, &err), XM_OK) << err.text;
            const floats slots = chosen.read();
            got.push_back((int32_t)slots[(how.n + i) % XM_CHOOSE_SLOTS]);
            EXPECT_EQ(ids.read()[0], (float)got.back());
        }
        EXPECT_EQ(position.read()[0], 100.0f + (float)n);
        EXPECT_EQ(past.read()[0], 70.0f + (float)n);
        return got;
    }
    /* The same by the host, behind `skipped` tokens. */
    std::vector<int32_t> on_host(const floats &logits, const xm_sampling &s, size_t n,
                                 size_t skipped, xm_token_choice *how)
    {
        xm_sampler_scratch *scratch = xm_sampler_scratch_create(logits.size());
        xm_sampler_free(sampler);
        EXPECT_EQ(xm_sampler_create(&s, logits.size(), &sampler, &err), XM_OK);
        for (size_t i = 0; i < skipped; i++)
            xm_sampler_skip(sampler);
        xm_seen_tokens none;
        EXPECT_TRUE(xm_sampler_on_device(sampler, how, &none));
        std::vector<int32_t> want(n);
        for (int32_t &id : want)
            EXPECT_EQ(xm_sampler_next(sampler, scratch, logits.data(), &id, &err), XM_OK);
        xm_sampler_scratch_free(scratch);
        return want;
    }
    void expect_same(const floats &logits, const xm_sampling &s, size_t n = CHOICES)
    {
        SCOPED_TRACE(std::to_string(logits.size()) + " logits, temperature " +
                     std::to_string(s.temperature) + ", top_k " +
                     std::to_string(s.top_k) + ", top_p " + std::to_string(s.top_p) +
                     ", min_p " + std::to_string(s.min_p));
        xm_token_choice how;
        const auto want = on_host(logits, s, n, logits.size() % 3, &how);
        ASSERT_EQ(on_device(logits, how, n), want);
    }
    /* A text whose penalties see the tokens of a prompt, some that the host has taken, and those
     * that the device takes; the tokens `barred` never come. */
    void expect_same_text(const floats &logits, const xm_sampling &s, size_t n,
                          const std::vector<int32_t> &barred = {})
    {
        SCOPED_TRACE(std::to_string(logits.size()) + " logits, window " +
                     std::to_string(s.last_n) + ", repetition " +
                     std::to_string(s.repetition_penalty) + ", seed " +
                     std::to_string(s.seed));
        std::mt19937 r((uint32_t)s.seed);
        std::vector<int32_t> prompt(r() % 40), want(n + 5);
        for (int32_t &id : prompt)
            id = (int32_t)(r() % std::min<size_t>(logits.size(), 50));
        xm_sampler_scratch *scratch = xm_sampler_scratch_create(logits.size());
        xm_sampler_free(sampler);
        EXPECT_EQ(xm_sampler_create(&s, logits.size(), &sampler, &err), XM_OK);
        EXPECT_EQ(xm_sampler_begin(sampler, prompt.data(), prompt.size(), &err), XM_OK);
        std::vector<int32_t> got;
        for (size_t i = 0; i < want.size(); i++) {
            xm_token_choice how;
            xm_seen_tokens seen;
            if (i == 5) { /* from here on by the device, too */
                EXPECT_TRUE(xm_sampler_on_device(sampler, &how, &seen));
                seen.barred = barred.data();
                seen.n_barred = barred.size();
                how.adjusts |= !barred.empty();
                got = on_device(logits, how, n, XM_I64, seen);
            }
            EXPECT_EQ(xm_sampler_bar(sampler, barred.data(), barred.size(), &err), XM_OK);
            EXPECT_EQ(xm_sampler_next(sampler, scratch, logits.data(), &want[i], &err),
                      XM_OK);
            EXPECT_EQ(xm_sampler_accept(sampler, &want[i], 1, &err), XM_OK);
        }
        xm_sampler_scratch_free(scratch);
        ASSERT_EQ(got, std::vector<int32_t>(want.begin() + 5, want.end()));
    }
    xm_sampler *sampler = nullptr;
};

const xm_sampling greedy = sampling(0.0f, 0, 1.0f, 0.0f, 0);

TEST_F(Choose, EveryRowTakesTheHostsGreedyToken)
{
    for (size_t take = 0; take < xm_choose_tables[1].n; take++)
        for (size_t best = 0; best < xm_choose_tables[0].n; best++) {
            force_rows(best, take);
            SCOPED_TRACE(getenv("XM_FORCE"));
            for (const size_t n : {1, 31, 512, 1025, 32000, 151936})
                for (uint32_t kind = 0; kind < 12; kind++)
                    expect_same(make_row(n, kind), greedy, 1);
        }
}

TEST_F(Choose, EveryRowDrawsTheHostsToken)
{
    const xm_sampling list[] = {
        sampling(1.0f, 0, 1.0f, 0.0f, 1),    sampling(0.7f, 0, 0.9f, 0.0f, 2),
        sampling(1.5f, 40, 1.0f, 0.0f, 3),   sampling(0.8f, 20, 0.95f, 0.0f, 4),
        sampling(1.0f, 0, 1.0f, 0.05f, 5),   sampling(2.0f, 3, 0.5f, 0.1f, 6),
        sampling(0.01f, 0, 0.99f, 0.0f, 7),  sampling(50.0f, 0, 0.3f, 0.0f, 8),
        sampling(1.0f, 1000, 0.9f, 0.0f, 9), sampling(1.0f, 0, 0.0f, 0.0f, 10),
        sampling(1.0f, 1, 1.0f, 1.0f, 11),   sampling(3.0f, 400, 0.999f, 1e-4f, 12)};
    for (size_t take = 0; take < xm_choose_tables[1].n; take++) {
        force_rows(0, take);
        SCOPED_TRACE(getenv("XM_FORCE"));
        const bool is_slow = take + 1 == xm_choose_tables[1].n;
        for (const size_t n : {1, 31, 512, 1025, 4000, 32000, 151936})
            for (uint32_t i = 0; i < 12; i++)
                if (!is_slow || n < 5000 || i % 6 == 3)
                    expect_same(make_row(n, i + 5 * (uint32_t)n), list[(i + n) % 12],
                                is_slow ? 2 : CHOICES);
    }
}

/* What follows from the seed and the number alone, many times over. */
TEST_F(Choose, AllChoicesOfATextAreTheHosts)
{
    force_rows(0, 0);
    expect_same({1.0f, 3.0f, 0.5f, 2.0f, 2.5f}, sampling(1.0f, 0, 1.0f, 0.0f, 9), 2000);
    expect_same({1.0f, 3.0f, 0.5f, 2.0f, 2.5f}, sampling(2.0f, 4, 0.9f, 0.0f, 9), 2000);
}

/* Logits so close that a penalty moves the best one. */
floats
flat_row(size_t n, uint32_t seed)
{
    std::mt19937 r(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    floats row(n);
    for (float &x : row)
        x = normal(r) * (r() % 3 ? 0.3f : 1.0f);
    for (size_t i = 0; i < n; i += 1 + n / 50) /* a few that come again and again */
        row[i] = 3.0f + 0.2f * normal(r);
    return row;
}

TEST_F(Choose, EveryRowSeesTheTokensThatTheHostSees)
{
    const struct {
        float repetition, presence, frequency;
        int last_n;
        bool only_new;
    } list[] = {{1.3f, 0.0f, 0.0f, 0, false},   {1.1f, 0.4f, 0.3f, 0, false},
                {0.0f, 0.7f, 0.2f, 0, true},    {1.2f, 0.1f, 0.4f, 0, true},
                {1.5f, 0.0f, 0.0f, 7, false},   {0.0f, 0.6f, 0.5f, 1, false},
                {1.05f, 0.0f, 0.2f, 64, false}, {0.8f, -0.3f, -0.1f, 12, false},
                {1e-38f, 0.0f, 0.0f, 9, false}, {3.0f, 1e6f, 1e6f, 3, false}};
    uint64_t seed = 0;
    for (size_t take = 0; take < xm_choose_tables[1].n; take++)
        for (size_t best = 0; best < xm_choose_tables[0].n; best++) {
            force_rows(best, take);
            SCOPED_TRACE(getenv("XM_FORCE"));
            for (const auto &p : list)
                for (const size_t n : {31, 1025, 3000})
                    for (const float temperature : {0.0f, 0.8f}) {
                        xm_sampling s = sampling(temperature, seed % 2 ? 30 : 0,
                                                 seed % 3 ? 0.9f : 1.0f, 0.0f, seed);
                        s.repetition_penalty = p.repetition;
                        s.presence_penalty = p.presence;
                        s.frequency_penalty = p.frequency;
                        s.last_n = p.last_n;
                        s.only_new = p.only_new;
                        const floats row = flat_row(n, (uint32_t)seed);
                        seed++;
                        expect_same_text(row, s, 20);
                        if (seed % 4 == 0) /* the two best, and one that there is not */
                            expect_same_text(row, s, 20, {0, 1, (int32_t)n});
                    }
        }
}

/* Of ids that must not come none does, with or without penalties. */
TEST_F(Choose, BarredTokensNeverCome)
{
    for (size_t best = 0; best < xm_choose_tables[0].n; best++)
        for (const float temperature : {0.0f, 2.0f}) {
            force_rows(best, 0);
            SCOPED_TRACE(getenv("XM_FORCE"));
            floats row = flat_row(2000, 5);
            row[1999] = 9.0f;
            row[0] = 8.0f;
            expect_same_text(row, sampling(temperature, 0, 1.0f, 0.0f, 3), 30,
                             {-1, 1999, 0, 2000});
        }
}

/* A token that is no part of a distribution is told; what is excluded is not. */
TEST_F(Choose, UnsoundLogitsGiveNoToken)
{
    xm_token_choice drawing;
    on_host(make_row(2003, 1), sampling(1.0f, 30, 0.9f, 0.1f, 1), 1, 0, &drawing);
    for (size_t take = 0; take < xm_choose_tables[1].n; take++)
        for (size_t best = 0; best < xm_choose_tables[0].n; best++) {
            force_rows(best, take);
            SCOPED_TRACE(getenv("XM_FORCE"));
            for (const float bad : {NAN, INFINITY, -INFINITY})
                for (const size_t at : {0, 17, 1023, 1024, 2002}) {
                    floats row = make_row(2003, 1);
                    row[at] = bad;
                    for (const xm_token_choice &how : {xm_token_choice{}, drawing}) {
                        const auto got = on_device(row, how, 1, XM_I32);
                        EXPECT_EQ(got[0] < 0, bad != -INFINITY) << bad << " at " << at;
                        EXPECT_NE(got[0], (int32_t)at);
                    }
                }
            for (const xm_token_choice &how : {xm_token_choice{}, drawing})
                EXPECT_EQ(on_device(floats(40, -INFINITY), how, 1)[0], -1);
        }
}

} // namespace
