/* SPDX-License-Identifier: Apache-2.0
 *
 * The variants of choose compared with the host's sampler: equal logits, seed and number of
 * choices give the same token, whatever other texts the launch has.
 */
#include "primitives/choose/choose.h"

#include "plugin/text/sampler.h"
#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

enum { CHOICES = 6, HOST_TOKENS = 5 };

using floats = std::vector<float>;
using Ids = std::vector<int32_t>;

/* Returns logits as models give them, or unusual ones: ties, excluded tokens, a peak. */
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

/* The settings and token counts of a text that the device gets. */
struct Start {
    xm_token_choice how = {};
    std::vector<xm_token_count> counts;
    Ids ring, barred;
    xm_seen_tokens seen() const
    {
        return {counts.data(), counts.size(), ring.data(), barred.data(), barred.size()};
    }
};

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
    /* Returns the next n tokens of each text, chosen on the device, which also writes them where
     * the next run reads them. All rows of logits have one length. */
    std::vector<Ids> on_device(const std::vector<floats> &rows,
                               const std::vector<Start> &texts, size_t n,
                               xm_element e = XM_I64)
    {
        const int64_t t = (int64_t)rows.size(), v = (int64_t)rows[0].size();
        const std::vector<int64_t> of_texts = {1, t};
        std::vector<int64_t> positions, pasts;
        std::vector<xm_token_choice> how;
        floats logits;
        xm_choose_desc desc = {e, e, false, false, false, false};
        uint64_t room = 0;
        for (size_t i = 0; i < texts.size(); i++) {
            how.push_back(texts[i].how);
            xm_choose_add(&desc, &how[i]);
            logits.insert(logits.end(), rows[i].begin(), rows[i].end());
            positions.push_back(100 + (int64_t)i);
            pasts.push_back(70 - (int64_t)i);
            room = std::max(room, xm_choose_seen_bytes((uint64_t)v, how[i].window));
        }
        tensor row(XM_F32, {1, t, v}, logits),
            state(XM_U8, {t, (int64_t)sizeof(xm_token_choice)}),
            seen(XM_U8, {t, (int64_t)room}),
            parts(XM_U8, {t, (int64_t)xm_choose_parts_bytes((uint64_t)v)}),
            chosen(XM_I32, {t, XM_CHOOSE_SLOTS}), ids(e, of_texts),
            position(e, of_texts, positions), past(XM_I32, {t}, pasts);
        primitive_ptr choose;
        EXPECT_EQ(xm_choose_create(engine, &desc, &choose.p, &err), XM_OK) << err.text;
        const xm_operand o[] = {row.operand(),
                                state.operand(),
                                desc.adjusts ? seen.operand() : xm_operand{},
                                parts.operand(),
                                chosen.operand(),
                                ids.operand(),
                                position.operand(),
                                past.operand()};
        EXPECT_EQ(xm_queue_write(run.queue, state.operand().buffer, 0, how.data(),
                                 how.size() * sizeof(how[0]), &err),
                  XM_OK);
        std::vector<uint8_t> counts(texts.size() * room);
        for (size_t i = 0; i < texts.size(); i++) {
            const xm_seen_tokens tokens = texts[i].seen();
            if (how[i].adjusts)
                xm_choose_fill_seen(&counts[i * room], (uint64_t)v, &how[i], &tokens);
        }
        EXPECT_EQ(xm_queue_write(run.queue, seen.operand().buffer, 0, counts.data(),
                                 counts.size(), &err),
                  XM_OK);
        std::vector<Ids> got(texts.size());
        for (size_t k = 0; k < n; k++) {
            /* Penalties change the logits in place; here they are written again for each choice. */
            EXPECT_EQ(xm_queue_write(run.queue, row.operand().buffer, 0, logits.data(),
                                     logits.size() * sizeof(float), &err),
                      XM_OK);
            EXPECT_EQ(xm_primitive_run(choose.p, o, &run, &err), XM_OK) << err.text;
            const floats slots = chosen.read(), next = ids.read(), at = position.read(),
                         before = past.read();
            for (size_t i = 0; i < texts.size(); i++) {
                const size_t slot = (how[i].n + k) % XM_CHOOSE_SLOTS;
                got[i].push_back((int32_t)slots[i * XM_CHOOSE_SLOTS + slot]);
                EXPECT_EQ(next[i], (float)got[i].back());
                EXPECT_EQ(at[i], (float)(positions[i] + (int64_t)k + 1));
                EXPECT_EQ(before[i], (float)(pasts[i] + (int64_t)k + 1));
            }
        }
        return got;
    }
    Ids on_device(const floats &logits, const xm_token_choice &how, size_t n,
                  xm_element e = XM_I64)
    {
        Start start;
        start.how = how;
        return on_device(std::vector<floats>{logits}, {start}, n, e)[0];
    }
    /* Returns the next n tokens chosen on the host, after `skipped` choices. */
    Ids on_host(const floats &logits, const xm_sampling &s, size_t n, size_t skipped,
                xm_token_choice *how)
    {
        xm_sampler_scratch *scratch = xm_sampler_scratch_create(logits.size());
        xm_sampler_free(sampler);
        EXPECT_EQ(xm_sampler_create(&s, logits.size(), &sampler, &err), XM_OK);
        for (size_t i = 0; i < skipped; i++)
            xm_sampler_skip(sampler);
        xm_seen_tokens none;
        EXPECT_TRUE(xm_sampler_on_device(sampler, how, &none));
        Ids want(n);
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
    /* Begins a text whose penalties count a prompt and tokens that the host chose. Tokens in
     * `barred` must not come. `want`: its next n tokens by the host. */
    Start begin_text(const floats &logits, const xm_sampling &s, size_t n, Ids &want,
                     const Ids &barred = {})
    {
        std::mt19937 r((uint32_t)s.seed);
        Ids prompt(r() % 40);
        Start start;
        for (int32_t &id : prompt)
            id = (int32_t)(r() % std::min<size_t>(logits.size(), 50));
        xm_sampler_scratch *scratch = xm_sampler_scratch_create(logits.size());
        xm_sampler_free(sampler);
        EXPECT_EQ(xm_sampler_create(&s, logits.size(), &sampler, &err), XM_OK);
        EXPECT_EQ(xm_sampler_begin(sampler, prompt.data(), prompt.size(), &err), XM_OK);
        want.resize(n);
        for (size_t i = 0; i < n + HOST_TOKENS; i++) {
            int32_t id;
            if (i == HOST_TOKENS) { /* the device begins here */
                xm_seen_tokens seen;
                EXPECT_TRUE(xm_sampler_on_device(sampler, &start.how, &seen));
                start.how.adjusts |= !barred.empty();
                start.counts.assign(seen.counts, seen.counts + seen.n);
                if (seen.ring)
                    start.ring.assign(seen.ring, seen.ring + start.how.in_window);
                start.barred = barred;
            }
            EXPECT_EQ(xm_sampler_bar(sampler, barred.data(), barred.size(), &err), XM_OK);
            EXPECT_EQ(xm_sampler_next(sampler, scratch, logits.data(), &id, &err), XM_OK);
            EXPECT_EQ(xm_sampler_accept(sampler, &id, 1, &err), XM_OK);
            if (i >= HOST_TOKENS)
                want[i - HOST_TOKENS] = id;
        }
        xm_sampler_scratch_free(scratch);
        return start;
    }
    void expect_same_text(const floats &logits, const xm_sampling &s, size_t n,
                          const Ids &barred = {})
    {
        SCOPED_TRACE(std::to_string(logits.size()) + " logits, window " +
                     std::to_string(s.last_n) + ", repetition " +
                     std::to_string(s.repetition_penalty) + ", seed " +
                     std::to_string(s.seed));
        Ids want;
        const Start start = begin_text(logits, s, n, want, barred);
        ASSERT_EQ(on_device(std::vector<floats>{logits}, {start}, n)[0], want);
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

/* Choices that depend only on the seed and the number of the choice. */
TEST_F(Choose, AllChoicesOfATextAreTheHosts)
{
    force_rows(0, 0);
    expect_same({1.0f, 3.0f, 0.5f, 2.0f, 2.5f}, sampling(1.0f, 0, 1.0f, 0.0f, 9), 2000);
    expect_same({1.0f, 3.0f, 0.5f, 2.0f, 2.5f}, sampling(2.0f, 4, 0.9f, 0.0f, 9), 2000);
}

/* Returns the chi-square statistic of how often each id was drawn, against the softmax of the
 * logits. */
double
chi_square(const std::vector<Ids> &drawn, const floats &logits)
{
    std::vector<double> p(logits.size()), n(logits.size());
    double sum = 0, all = 0, chi = 0;
    for (const Ids &ids : drawn)
        for (int32_t id : ids)
            n.at((size_t)id)++, all++;
    for (size_t i = 0; i < p.size(); i++)
        sum += p[i] = std::exp((double)logits[i]);
    for (size_t i = 0; i < p.size(); i++)
        chi += (n[i] - all * p[i] / sum) * (n[i] - all * p[i] / sum) / (all * p[i] / sum);
    return chi;
}

/* For a thousand texts with different seeds the device draws the same tokens as the host, in
 * proportions that fit the softmax. Uses the last variant of the table, which is fast on PoCL with
 * few logits. */
TEST_F(Choose, AMillionDrawsAreTheHostsAndOfTheSoftmax)
{
    enum { TEXTS = 1000, DRAWS = 1000 };
    const floats logits = {1.0f, 3.0f, 0.5f, 2.0f, 2.5f};
    std::vector<Start> starts(TEXTS);
    std::vector<Ids> want;
    force_rows(0, xm_choose_tables[1].n - 1);
    for (uint64_t i = 0; i < TEXTS; i++)
        want.push_back(on_host(logits, sampling(1.0f, 0, 1.0f, 0.0f, 77 + i), DRAWS, 0,
                               &starts[i].how));
    const auto got = on_device(std::vector<floats>(TEXTS, logits), starts, DRAWS);
    EXPECT_EQ(got, want);
    EXPECT_LT(chi_square(got, logits), 20.0) << "4 degrees of freedom: p < 0.0005";
}

/* Returns logits so close that a penalty changes the best one. */
floats
flat_row(size_t n, uint32_t seed)
{
    std::mt19937 r(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    floats row(n);
    for (float &x : row)
        x = normal(r) * (r() % 3 ? 0.3f : 1.0f);
    for (size_t i = 0; i < n; i += 1 + n / 50) /* a few tokens that come often */
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
                        /* the two best tokens, and an id that does not exist */
                        if (seed % 4 == 0)
                            expect_same_text(row, s, 20, {0, 1, (int32_t)n});
                    }
        }
}

/* Barred tokens never come, with or without penalties. */
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

/* Texts of all kinds in one launch: each gets the token that it gets alone, also beside a text
 * whose logits are NaN. */
TEST_F(Choose, TextsOfABatchDoNotSeeEachOther)
{
    std::vector<xm_sampling> kinds;
    for (uint64_t i = 0; i < 9; i++) {
        xm_sampling s =
            sampling(i % 3 ? 0.7f + 0.2f * (float)i : 0.0f, i % 4 == 1 ? 30 : 0,
                     i % 5 == 2 ? 0.9f : 1.0f, i == 7 ? 0.05f : 0.0f, 1000 * i + 3);
        if (i % 2) {
            s.repetition_penalty = 1.2f;
            s.frequency_penalty = 0.2f;
            s.last_n = i == 3 ? 0 : (int)(3 * i);
        }
        kinds.push_back(s);
    }
    for (size_t take = 0; take < xm_choose_tables[1].n; take++)
        for (size_t best = 0; best < xm_choose_tables[0].n; best++) {
            force_rows(best, take);
            SCOPED_TRACE(getenv("XM_FORCE"));
            for (const size_t n : {31, 1025, 3001}) {
                std::vector<floats> rows;
                std::vector<Start> starts;
                std::vector<Ids> want;
                for (size_t i = 0; i < kinds.size(); i++) {
                    rows.push_back(flat_row(n, (uint32_t)(i + n)));
                    want.emplace_back();
                    starts.push_back(begin_text(rows[i], kinds[i], 12, want[i],
                                                i == 4 ? Ids{0, 1} : Ids{}));
                }
                rows[5][n / 2] = NAN;
                want[5].assign(12, -1);
                EXPECT_EQ(on_device(rows, starts, 12), want) << n;
                /* a text without draws and penalties beside one with them */
                EXPECT_EQ(on_device({rows[0], rows[1]}, {starts[0], starts[1]}, 12),
                          (std::vector<Ids>{want[0], want[1]}));
            }
        }
}

/* NaN in the logits is reported; excluded tokens (-inf) are not. */
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
