/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampling parameters that change logits against their formulas in double precision: dry,
 * logit_bias and bad_words.
 */
#include <algorithm>
#include <set>
#include <string>

#include "unit_tests/text/sampling_test.h"

namespace
{

/* DRY by the definition in dry.h: for each earlier position, how long the text before it matches
 * the end of the text. */
void
penalise_dry(Row &r, const xm_sampling &s, const ids &text)
{
    const std::set<int32_t> breakers(s.dry_breakers.ids,
                                     s.dry_breakers.ids + s.dry_breakers.n);
    const int allowed = s.dry_allowed_length ? s.dry_allowed_length : 2;
    const double base = s.dry_base > 0.0f ? (double)s.dry_base : 1.75;
    const size_t seen =
        s.dry_last_n ? std::min(text.size(), (size_t)s.dry_last_n) : text.size();
    const ids w(text.end() - (ptrdiff_t)seen, text.end());
    std::vector<int> longest(r.l.size(), 0);
    for (size_t at = 1; at < w.size(); at++) { /* position of the token after the match */
        int n = 0;
        while ((size_t)n < at && w[at - 1 - (size_t)n] == w[w.size() - 1 - (size_t)n] &&
               !breakers.count(w[at - 1 - (size_t)n]))
            n++;
        longest[(size_t)w[at]] = std::max(longest[(size_t)w[at]], n);
    }
    for (size_t i = 0; i < r.l.size(); i++)
        if (longest[i] >= allowed)
            r.l[i] -= (double)s.dry_multiplier * std::pow(base, longest[i] - allowed);
}

using Penalties = Parameters;

TEST_F(Penalties, DryByItsDefinition)
{
    int compared = 0, changed = 0;
    for (int i = 0; i < 4000; i++) {
        const size_t n = 3 + pick(6);
        const floats logits = row(n);
        ids text(pick(70)), breakers;
        for (int32_t &id : text)
            id = (int32_t)pick(i % 4 ? n : 2);
        for (size_t id = 0; id < n; id++)
            if (pick(6) == 0)
                breakers.push_back((int32_t)id);
        xm_sampling s = drawn();
        s.seed = random();
        s.dry_multiplier = (float)real(0.1, 2.0);
        s.dry_base = i % 5 ? (float)real(1.0, 2.5) : 0.0f;
        s.dry_allowed_length = (int)pick(6);
        s.dry_last_n = pick(3) ? 0 : 1 + (int)pick(80);
        s.dry_breakers = {breakers.data(), breakers.size()};
        Row r, plain;
        r.l.assign(logits.begin(), logits.end());
        plain = r;
        penalise_dry(r, s, text);
        r.softmax(1.0);
        plain.softmax(1.0);
        changed += r.l != plain.l;
        Sampler sampler(s, n);
        const size_t prompt = text.empty() ? 0 : pick(text.size());
        sampler.begin(ids(text.begin(), text.begin() + (ptrdiff_t)prompt));
        for (size_t k = prompt; k < text.size(); k++)
            sampler.accept(text[k]);
        for (uint64_t k = 0; k < 3; k++) {
            const int32_t want = expected(r, random_bits(s.seed, k));
            const int32_t got = sampler.next(logits);
            if (want < 0)
                continue;
            ASSERT_EQ(got, want) << i;
            compared++;
        }
    }
    EXPECT_GT(compared, 11000);
    EXPECT_GT(changed, 1000);
}

/* A long repetition makes a token unlikely, not impossible, because it may be the only one. */
TEST_F(Penalties, DryLeavesLogitsFinite)
{
    xm_sampling s = drawn();
    s.dry_multiplier = 5.0f;
    s.dry_base = 4.0f;
    Sampler sampler(s, 2);
    sampler.begin(ids(3000, 1));
    EXPECT_EQ(sampler.next({-INFINITY, 1.0f}), 1);
    EXPECT_EQ(sampler.next({-1e30f, 1.0f}), 0);
}

TEST_F(Penalties, LogitBias)
{
    for (int i = 0; i < 3000; i++) {
        const floats logits = row(2 + pick(40));
        std::vector<xm_token_bias> biases;
        for (size_t k = pick(5); k > 0; k--)
            biases.push_back({(int32_t)pick(logits.size()),
                              pick(4) ? (float)real(-8.0, 8.0) : -100.0f});
        xm_sampling s = drawn();
        s.seed = random();
        s.logit_bias = {biases.data(), biases.size()};
        Row r;
        r.l.assign(logits.begin(), logits.end());
        for (const xm_token_bias &b : biases)
            r.l[(size_t)b.id] += b.bias > -100.0f ? (double)b.bias : -infinity;
        if (*std::max_element(r.l.begin(), r.l.end()) == -infinity)
            continue;
        r.softmax(1.0);
        Sampler sampler(s, logits.size());
        biases.assign(biases.size(), {0, 50.0f}); /* the sampler has copied them */
        const int32_t want = expected(r, random_bits(s.seed, 0));
        const int32_t got = sampler.next(logits);
        if (want >= 0) {
            ASSERT_EQ(got, want) << i;
        }
    }
}

TEST_F(Penalties, BiasesMustBeOfTokens)
{
    const xm_token_bias far = {7, 1.0f}, nan = {1, NAN}, inf = {1, INFINITY},
                        bars = {1, -INFINITY};
    xm_sampling s = drawn();
    xm_sampler *sampler = nullptr;
    for (const xm_token_bias *b : {&far, &nan, &inf}) {
        xm_error err = {};
        s.logit_bias = {b, 1};
        EXPECT_EQ(xm_sampler_create(&s, 7, &sampler, &err), XM_INVALID);
        EXPECT_NE(std::string(err.text).find("logit_bias"), std::string::npos)
            << err.text;
    }
    s.logit_bias = {&bars, 1};
    EXPECT_EQ(Sampler(s, 7).next({0, 1, 0, 0, -1, -1, -1}) == 1, false);
    const xm_token_bias most = {1, 3e38f};
    s.logit_bias = {&most, 1};
    EXPECT_EQ(Sampler(s, 2).next({INFINITY, 3e38f}), 0) << "no bias makes it infinite";
}

TEST_F(Penalties, BadWordsByTheirDefinition)
{
    int barred = 0;
    for (int i = 0; i < 3000; i++) {
        const size_t n = 3 + pick(3);
        const floats logits = row(n);
        std::vector<ids> words(1 + pick(4));
        ids text(pick(9)), flat;
        for (int32_t &id : text)
            id = (int32_t)pick(n);
        for (ids &w : words) {
            for (size_t k = 1 + pick(3); k > 0; k--)
                w.push_back((int32_t)pick(n));
            flat.insert(flat.end(), w.begin(), w.end());
            flat.push_back(-1);
        }
        xm_sampling s;
        xm_sampling_init(&s);
        s.bad_words = {flat.data(), flat.size()};
        int32_t want = -1;
        for (int32_t id = 0; id < (int32_t)n; id++) {
            ids with = text;
            with.push_back(id);
            const bool is_bad =
                std::any_of(words.begin(), words.end(), [&](const ids &w) {
                    return w.size() <= with.size() &&
                           std::equal(w.rbegin(), w.rend(), with.rbegin());
                });
            barred += is_bad;
            if (!is_bad && (want < 0 || logits[(size_t)id] > logits[(size_t)want]))
                want = id;
        }
        Sampler sampler(s, n);
        sampler.begin(text);
        if (want >= 0) {
            ASSERT_EQ(sampler.next(logits), want) << i;
        }
    }
    EXPECT_GT(barred, 1000);
}

} // namespace
