/* SPDX-License-Identifier: Apache-2.0
 *
 * Each sampling parameter that filters tokens, compared with its formula in double precision on
 * the probabilities of random rows; and properties of every row of sampling.def. Parameters that
 * change logits are tested in test_sampling_penalties.cpp.
 */
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "runtime/util/memory.h"
#include "unit_tests/text/sampling_test.h"

namespace
{

void
keep_k(Row &r, int k)
{
    const std::vector<size_t> list = r.order([&](size_t i) { return -r.l[i]; });
    for (size_t i = (size_t)k; k > 0 && i < list.size(); i++)
        r.p[list[i]] = 0.0;
    r.renormalise();
}

void
keep_nucleus(Row &r, double top_p)
{
    r.keep_first(r.order([&](size_t i) { return -r.p[i]; }), top_p);
}

void
keep_min_p(Row &r, double min_p)
{
    const double most = *std::max_element(r.p.begin(), r.p.end());
    for (double &x : r.p)
        if (x > 0.0 && r.is_below(x, min_p * most))
            x = 0.0;
    r.renormalise();
}

void
keep_typical(Row &r, double mass)
{
    double entropy = 0.0;
    for (const double x : r.p)
        entropy -= x > 0.0 ? x * std::log(x) : 0.0;
    const doubles p = r.p;
    r.keep_first(r.order([&](size_t i) { return std::fabs(-std::log(p[i]) - entropy); }),
                 mass);
}

void
keep_sigma(Row &r, double n)
{
    double mean = 0.0, square = 0.0;
    for (const double x : r.l)
        mean += x / (double)r.l.size();
    for (const double x : r.l)
        square += (x - mean) * (x - mean) / (double)r.l.size();
    const double least =
        *std::max_element(r.l.begin(), r.l.end()) - n * std::sqrt(square);
    for (double &x : r.l)
        if (r.is_below(x, least))
            x = -infinity;
}

void
exclude_top(Row &r, double threshold)
{
    std::vector<size_t> top;
    for (const size_t i : r.order([&](size_t k) { return -r.p[k]; }))
        if (!r.is_below(r.p[i], threshold))
            top.push_back(i);
    for (size_t i = 0; i + 1 < top.size(); i++)
        r.p[top[i]] = 0.0;
    r.renormalise();
}

void
keep_surprise(Row &r, double most)
{
    const size_t best = (size_t)(std::max_element(r.p.begin(), r.p.end()) - r.p.begin());
    for (size_t i = 0; i < r.p.size(); i++)
        if (r.p[i] > 0.0 && r.is_below(most, -std::log2(r.p[i])) && i != best)
            r.p[i] = 0.0;
    r.renormalise();
}

TEST_F(Parameters, TopK)
{
    expect_formula([&](xm_sampling &s) { s.top_k = 1 + (int)pick(20); }, nothing,
                   [](Row &r, const xm_sampling &s) { keep_k(r, s.top_k); });
}

TEST_F(Parameters, TopP)
{
    expect_formula(
        [&](xm_sampling &s) { s.top_p = (float)real(0.05, 0.99); }, nothing,
        [](Row &r, const xm_sampling &s) { keep_nucleus(r, (double)s.top_p); });
}

TEST_F(Parameters, MinP)
{
    expect_formula([&](xm_sampling &s) { s.min_p = (float)real(0.001, 0.9); }, nothing,
                   [](Row &r, const xm_sampling &s) { keep_min_p(r, (double)s.min_p); });
}

TEST_F(Parameters, TypicalP)
{
    expect_formula(
        [&](xm_sampling &s) { s.typical_p = (float)real(0.05, 0.99); }, nothing,
        [](Row &r, const xm_sampling &s) { keep_typical(r, (double)s.typical_p); });
}

TEST_F(Parameters, TypicalPBehindTopKAndBeforeMinP)
{
    expect_formula(
        [&](xm_sampling &s) {
            s.typical_p = (float)real(0.3, 0.99);
            s.top_k = 2 + (int)pick(30);
            s.min_p = (float)real(0.0, 0.3);
        },
        nothing,
        [](Row &r, const xm_sampling &s) {
            keep_k(r, s.top_k);
            keep_typical(r, (double)s.typical_p);
            keep_min_p(r, (double)s.min_p);
        });
}

TEST_F(Parameters, TopNSigma)
{
    int compared = 0;
    for (int i = 0; i < 3000; i++) {
        const floats logits = row(2 + pick(300));
        xm_sampling s = drawn();
        s.seed = random();
        s.top_n_sigma = (float)real(0.1, 3.0);
        Row r;
        r.l.assign(logits.begin(), logits.end());
        keep_sigma(r, (double)s.top_n_sigma);
        r.softmax(1.0);
        Sampler sampler(s, logits.size());
        for (uint64_t n = 0; n < 4; n++) {
            const int32_t got = sampler.next(logits);
            const int32_t want = expected(r, random_bits(s.seed, n));
            if (r.margin < 1e-9 || want < 0)
                continue;
            ASSERT_EQ(got, want) << i;
            compared++;
        }
    }
    EXPECT_GT(compared, 6000);
}

TEST_F(Parameters, TopNSigmaCountsWhatIsFinite)
{
    xm_sampling s = drawn();
    s.top_n_sigma = 2.0f; /* 1, -1 and 1 are exactly within two standard deviations */
    const floats logits = {1.0f, -1.0f, -INFINITY, NAN, 1.0f, -1.0f};
    std::set<int32_t> seen;
    Sampler sampler(s, logits.size());
    for (int i = 0; i < 300; i++)
        seen.insert(sampler.next(logits));
    EXPECT_EQ(seen, (std::set<int32_t>{0, 1, 4, 5}));
    s.top_n_sigma = 1.9f;
    Sampler fewer(s, logits.size());
    for (int i = 0; i < 300; i++)
        EXPECT_EQ(fewer.next(logits) % 4, 0);
    const floats infinite = {1.0f, INFINITY, 0.0f};
    EXPECT_EQ(fewer.next({1.0f, INFINITY, 0.0f, 0.0f, 0.0f, 0.0f}), 1);
}

TEST_F(Parameters, Xtc)
{
    expect_formula(
        [&](xm_sampling &s) {
            s.xtc_probability = 1.0f;
            s.xtc_threshold = (float)real(0.01, 0.5);
        },
        nothing,
        [](Row &r, const xm_sampling &s) { exclude_top(r, (double)s.xtc_threshold); });
}

TEST_F(Parameters, XtcBehindMinPAndItsOwnDefault)
{
    expect_formula(
        [&](xm_sampling &s) {
            s.xtc_probability = 1.0f;
            s.min_p = (float)real(0.02, 0.3);
            s.top_k = (int)pick(2) * 15;
        },
        nothing,
        [](Row &r, const xm_sampling &s) {
            keep_k(r, s.top_k);
            keep_min_p(r, (double)s.min_p);
            exclude_top(r, (double)0.1f);
        });
}

/* The likeliest two of four tokens are removed together or not at all. */
TEST_F(Parameters, XtcComesAsOftenAsItSays)
{
    const floats logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f),
                           std::log(0.1f)};
    xm_sampling s = drawn();
    s.xtc_probability = 0.3f;
    s.xtc_threshold = 0.15f;
    Sampler sampler(s, 4);
    const int draws = 40000;
    std::vector<int> counts(4);
    for (int i = 0; i < draws; i++)
        counts[(size_t)sampler.next(logits)]++;
    const double with = 0.3, without = 0.7;
    const double want[] = {without * 0.4, without * 0.3, without * 0.2 + with * 2 / 3,
                           without * 0.1 + with / 3};
    for (size_t i = 0; i < 4; i++)
        EXPECT_NEAR(counts[i] / (double)draws, want[i], 0.012) << i;
    s.xtc_threshold = 0.51f; /* two tokens cannot both exceed it */
    s.xtc_probability = 1.0f;
    Sampler never(s, 4);
    int firsts = 0;
    for (int i = 0; i < 1000; i++)
        firsts += never.next(logits) == 0;
    EXPECT_GT(firsts, 300);
}

/* The draws use the same random numbers with XTC and without. */
TEST_F(Parameters, XtcTakesNoRandomNumbersFromTheDraws)
{
    const floats logits = row(50);
    xm_sampling s = drawn();
    s.seed = 5;
    Sampler plain(s, 50);
    s.xtc_probability = 1.0f;
    s.xtc_threshold = 0.5f;
    const double most = *std::max_element(logits.begin(), logits.end());
    floats flat(50, (float)most); /* no token has half of the probability */
    Sampler with(s, 50);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(with.next(flat), plain.next(flat));
}

/* The formula's m follows the choices of a text, whose tokens are the formula's. */
TEST_F(Parameters, Mirostat)
{
    int compared = 0;
    for (int i = 0; i < 300; i++) {
        xm_sampling s = drawn();
        s.mirostat = 2;
        s.seed = random();
        s.temperature = (float)real(0.5, 1.5);
        s.mirostat_tau = i % 3 ? (float)real(0.5, 6.0) : 0.0f;
        s.mirostat_eta = i % 3 ? (float)real(0.01, 0.5) : 0.0f;
        s.top_k = (int)pick(3); /* these have no effect */
        s.min_p = 0.5f;
        const double tau = i % 3 ? (double)s.mirostat_tau : 5.0;
        const double eta = i % 3 ? (double)s.mirostat_eta : (double)0.1f;
        double most = 2 * tau;
        Sampler sampler(s, 200);
        sampler.begin({});
        for (uint64_t n = 0; n < 40; n++) {
            const floats logits = row(200);
            Row r;
            r.l.assign(logits.begin(), logits.end());
            r.softmax((double)s.temperature);
            keep_surprise(r, most);
            const int32_t want = expected(r, random_bits(s.seed, n));
            const int32_t got = sampler.next(logits);
            if (r.margin < 1e-5 || want < 0)
                break;
            ASSERT_EQ(got, want) << i << " at " << n;
            most -= eta * (-std::log2(r.p[(size_t)want]) - tau);
            compared++;
        }
    }
    EXPECT_GT(compared, 9000);
}

/* ---- every row of the table ----------------------------------------------------------------- */

/* All parameters that are off at 0, with values that have an effect. */
struct Everything {
    const std::vector<xm_token_bias> biases = {{1, 2.0f}, {2, -100.0f}};
    const ids breakers = {3}, words = {4, -1, 5, 6, -1};
    xm_sampling s = drawn();

    Everything()
    {
        s.top_k = 30;
        s.top_p = 0.9f;
        s.min_p = 0.01f;
        s.typical_p = 0.95f;
        s.top_n_sigma = 2.5f;
        s.xtc_probability = 0.5f;
        s.xtc_threshold = 0.2f;
        s.mirostat = 2;
        s.mirostat_tau = 3.0f;
        s.mirostat_eta = 0.2f;
        s.seed = 11;
        s.repetition_penalty = 1.1f;
        s.presence_penalty = 0.1f;
        s.frequency_penalty = 0.1f;
        s.last_n = 20;
        s.dry_multiplier = 0.8f;
        s.dry_base = 1.5f;
        s.dry_allowed_length = 3;
        s.dry_last_n = 50;
        s.no_repeat_ngram = 4;
        s.logit_bias = {biases.data(), biases.size()};
        s.dry_breakers = {breakers.data(), breakers.size()};
        s.bad_words = {words.data(), words.size()};
    }
};

size_t
bytes_of(const xm_sampling_row &row)
{
    switch (row.kind) {
    case XM_SAMPLING_REAL:
        return sizeof(float);
    case XM_SAMPLING_WHOLE:
    case XM_SAMPLING_COUNT:
        return sizeof(int);
    case XM_SAMPLING_SEED:
        return sizeof(uint64_t);
    case XM_SAMPLING_BIAS:
        return sizeof(xm_bias_view);
    default:
        return sizeof(xm_token_view);
    }
}

TEST_F(Parameters, ADeviceChoosesOnlyByWhatItKnows)
{
    const std::set<std::string> known = {"temperature",
                                         "top_k",
                                         "top_p",
                                         "min_p",
                                         "seed",
                                         "repetition_penalty",
                                         "presence_penalty",
                                         "frequency_penalty",
                                         "last_n"};
    /* These have no effect without another parameter, which the host evaluates. */
    const std::set<std::string> depends = {
        "xtc_threshold", "mirostat_tau",       "mirostat_eta", "dry_base",
        "dry_last_n",    "dry_allowed_length", "dry_breakers"};
    const Everything all;
    xm_token_choice choice;
    for (const xm_sampling_row &row : xm_sampling_rows) {
        xm_sampling s = drawn();
        std::memcpy((char *)&s + row.offset, (const char *)&all.s + row.offset,
                    bytes_of(row));
        const bool is_known = known.count(row.member) || depends.count(row.member);
        EXPECT_EQ(xm_sampling_on_device(&s, 100, &choice), is_known) << row.member;
    }
}

TEST_F(Parameters, EveryNumberHasItsRange)
{
    for (const xm_sampling_row &row : xm_sampling_rows) {
        if (!xm_sampling_is_number(&row))
            continue;
        const bool is_real = row.kind == XM_SAMPLING_REAL;
        for (const double x : {row.least - 1.0, row.most * 2.0, (double)NAN, 1e300}) {
            xm_sampling s = drawn();
            xm_error err = {};
            if (!is_real || (x > 1e39) || (row.most > 1e37 && x > row.least))
                continue;
            xm_sampling_set(&s, &row, x);
            EXPECT_EQ(xm_sampling_check(&s, &err), XM_INVALID) << row.member << " " << x;
            EXPECT_EQ(std::string(err.text).find(row.member), 0u) << err.text;
        }
        EXPECT_FALSE(xm_sampling_takes(&row, (double)NAN)) << row.member;
        EXPECT_FALSE(xm_sampling_takes(&row, row.least - 1.0)) << row.member;
        EXPECT_TRUE(xm_sampling_takes(&row, row.least)) << row.member;
        EXPECT_TRUE(xm_sampling_takes(&row, row.unsaid)) << row.member;
        EXPECT_EQ(xm_sampling_takes(&row, 0.5), is_real) << row.member;
    }
    xm_sampling s = drawn();
    xm_error err = {};
    s.mirostat = 1;
    EXPECT_EQ(xm_sampling_check(&s, &err), XM_INVALID);
    err = {};
    s.mirostat = 3;
    EXPECT_EQ(xm_sampling_check(&s, &err), XM_INVALID);
}

/* Texts with all parameters, interleaved on one scratch memory, equal each text alone. */
TEST_F(Parameters, ATextDependsOnNoOther)
{
    for (const int mirostat : {0, 2}) {
        Everything all;
        all.s.mirostat = mirostat;
        const size_t n = 300;
        std::vector<floats> rows;
        for (int i = 0; i < 60; i++)
            rows.push_back(row(n));
        Sampler a(all.s, n), b(all.s, n), alone(all.s, n);
        alone.begin({1, 2, 3});
        a.begin({1, 2, 3});
        b.begin({9, 9, 9, 9});
        for (const floats &logits : rows) {
            int32_t of_a = -1, of_b = -1;
            ASSERT_EQ(
                xm_sampler_next(a.sampler, a.scratch, logits.data(), &of_a, nullptr),
                XM_OK);
            ASSERT_EQ(
                xm_sampler_next(b.sampler, a.scratch, logits.data(), &of_b, nullptr),
                XM_OK);
            ASSERT_EQ(alone.next(logits), of_a);
            a.accept(of_a);
            alone.accept(of_a);
            b.accept(of_b);
        }
    }
}

TEST_F(Parameters, AChoiceAllocatesNothing)
{
    const Everything all;
    Sampler sampler(all.s, 300);
    sampler.begin({1, 2, 3, 1, 2, 3, 1, 2});
    const floats logits = row(300);
    xm_fail_allocation(1);
    for (int i = 0; i < 20; i++)
        sampler.next(logits);
    EXPECT_FALSE(xm_fail_allocation_seen());
    xm_fail_allocation(0);
}

TEST_F(Parameters, EveryAllocationMayFail)
{
    const Everything all;
    const ids text(300, 1);
    for (uint64_t n = 1;; n++) {
        xm_sampler *s = nullptr;
        xm_error err = {};
        xm_fail_allocation(n);
        xm_status status = xm_sampler_create(&all.s, 50, &s, &err);
        if (status == XM_OK)
            status = xm_sampler_begin(s, text.data(), text.size(), &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_sampler_free(s);
        EXPECT_EQ(status, seen ? XM_NO_MEMORY : XM_OK) << n;
        if (!seen)
            break;
    }
}

/* A new text begins like the first, except for its random numbers. */
TEST_F(Parameters, ATextBeginsAnew)
{
    xm_sampling s = drawn();
    s.mirostat = 2;
    s.mirostat_tau = 1.0f;
    s.mirostat_eta = 1.0f;
    const size_t n = 64;
    floats logits(n, 0.0f); /* each has 6 bits, and tokens above the limit go */
    Sampler sampler(s, n);
    for (int i = 0; i < 50; i++)
        sampler.next(logits);
    sampler.begin({});
    logits[5] = 1.2f; /* likeliest with 5 bits: since 2 tau is 2, only it remains */
    EXPECT_EQ(sampler.next(logits), 5);
}

} // namespace
