/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tokens the filters keep, and which token is drawn, compared with the definition in
 * candidates.h carried out step by step: sort, cumulate, draw. The reference shares only the
 * function for a token's weight.
 */
#include "plugin/text/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "plugin/text/token_weight.h"
#include "runtime/util/memory.h"
#include "unit_tests/sample.h"

namespace
{

using floats = std::vector<float>;

__extension__ typedef unsigned __int128 wide;

const float inf = std::numeric_limits<float>::infinity();
const float nan_ = std::numeric_limits<float>::quiet_NaN();

xm_sampling
filter(float temperature, int top_k, float top_p, float min_p)
{
    xm_sampling s = {};
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.min_p = min_p;
    return s;
}

struct Token {
    float logit;
    int32_t id;
    int64_t weight;
};

int64_t
sum_of(const std::vector<Token> &tokens)
{
    int64_t sum = 0;
    for (const Token &t : tokens)
        sum += t.weight;
    return sum;
}

/* Keeps the fewest first tokens whose weights reach the share p of the sum. */
void
keep_first(std::vector<Token> &tokens, float p)
{
    const wide share = (wide)std::ldexp((double)p, 32);
    const int64_t enough = std::max<int64_t>(
        1, (int64_t)(((wide)sum_of(tokens) * share + UINT32_MAX) >> 32));
    int64_t sum = 0;
    size_t n = 0;
    while (n < tokens.size() && sum < enough)
        sum += tokens[n++].weight;
    tokens.resize(n);
}

/* `off`: an offset of the mean, which is a sum of rounded numbers whose last bit depends on their
 * order. */
void
keep_typical(std::vector<Token> &tokens, float p, int off)
{
    const float largest = tokens.front().logit;
    const auto below = [&](const Token &t) {
        return t.logit == largest ? 0.0f : largest - t.logit;
    };
    double moment = 0;
    for (const Token &t : tokens)
        if (t.weight > 0)
            moment += (double)t.weight * (double)below(t);
    float mean = (float)(moment / (double)sum_of(tokens));
    mean = off ? std::nextafter(mean, off < 0 ? -inf : inf) : mean;
    std::sort(tokens.begin(), tokens.end(), [&](const Token &a, const Token &b) {
        const float x = std::fabs(below(a) - mean), y = std::fabs(below(b) - mean);
        return x != y ? x < y : a.id < b.id;
    });
    keep_first(tokens, p);
    std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
}

void
exclude(std::vector<Token> &tokens, float threshold)
{
    const double least = std::max(1.0, (double)threshold * (double)sum_of(tokens));
    size_t n = 0;
    while (n < tokens.size() && (double)tokens[n].weight >= least)
        n++;
    if (threshold <= 0.5f && n > 1)
        tokens.erase(tokens.begin(), tokens.begin() + (ptrdiff_t)(n - 1));
}

/* Returns the tokens that the filters keep, in the order of ids. */
std::vector<Token>
reference(const floats &logits, const xm_sampling &f, bool excludes, int off)
{
    std::vector<Token> tokens;
    for (size_t i = 0; i < logits.size(); i++)
        if (logits[i] > -inf)
            tokens.push_back({logits[i], (int32_t)i, 0});
    std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    if (f.top_k > 0 && (size_t)f.top_k < tokens.size())
        tokens.resize((size_t)f.top_k);
    const float largest = tokens.front().logit, steps = xm_weight_steps(f.temperature);
    const float most = std::ldexp(1.0f, xm_weight_bits(logits.size()));
    for (Token &t : tokens)
        t.weight =
            (int64_t)(xm_weight_share(t.logit == largest ? 0 : largest - t.logit, steps) *
                      most);
    if (f.typical_p > 0.0f && f.typical_p < 1.0f)
        keep_typical(tokens, f.typical_p, off);
    if (f.top_p < 1.0f)
        keep_first(tokens, f.top_p);
    int64_t largest_left = 0;
    for (const Token &t : tokens)
        largest_left = std::max(largest_left, t.weight);
    const double least = (double)f.min_p * (double)(float)largest_left;
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(),
                                [&](const Token &t) {
                                    return t.weight == 0 || (double)t.weight < least;
                                }),
                 tokens.end());
    if (excludes && f.xtc_probability > 0.0f)
        exclude(tokens, f.xtc_threshold);
    std::sort(tokens.begin(), tokens.end(),
              [](const Token &a, const Token &b) { return a.id < b.id; });
    return tokens;
}

int32_t
draw(const std::vector<Token> &tokens, uint64_t bits)
{
    int64_t left = (int64_t)((wide)bits * (wide)sum_of(tokens) >> 64);
    for (const Token &t : tokens) {
        if (left < t.weight)
            return t.id;
        left -= t.weight;
    }
    return -1;
}

std::string
text_of(const floats &logits, const xm_sampling &f)
{
    return std::to_string(logits.size()) + " logits, temperature " +
           std::to_string(f.temperature) + ", top_k " + std::to_string(f.top_k) +
           ", top_p " + std::to_string(f.top_p) + ", min_p " + std::to_string(f.min_p) +
           ", typical_p " + std::to_string(1e6f * f.typical_p) + "e-6" + ", xtc " +
           std::to_string(f.xtc_probability) + " from " + std::to_string(f.xtc_threshold);
}

class Candidates : public ::testing::Test
{
  protected:
    static constexpr size_t largest_row = 20000;
    void SetUp() override
    {
        c = xm_candidates_create(largest_row);
        ASSERT_NE(c, nullptr);
    }
    void TearDown() override
    {
        xm_candidates_free(c);
    }
    /* Returns random numbers that distinguish tokens: just below and at the bound between two
     * remaining tokens, for up to 40 of them, and some at random. */
    std::vector<uint64_t> points(const std::vector<Token> &staying)
    {
        std::vector<uint64_t> numbers = {0, UINT64_MAX, uniform(random)};
        int64_t passed = 0, sum = sum_of(staying);
        for (size_t i = 0; i < staying.size() && i < 40; i++) {
            passed += staying[i].weight;
            /* the least number whose point is not below the bound */
            const uint64_t at = (uint64_t)((((wide)passed << 64) - 1) / (wide)sum + 1);
            numbers.push_back(passed < sum ? at : UINT64_MAX);
            numbers.push_back(at - 1);
        }
        return numbers;
    }
    /* Compares, with scratch memory of exactly the row's size. */
    void expect_equal(const floats &logits, const xm_sampling &f)
    {
        SCOPED_TRACE(text_of(logits, f));
        const int32_t best = xm_find_largest(logits.data(), logits.size());
        ASSERT_GE(best, 0);
        xm_candidates *own = xm_candidates_create(logits.size());
        const uint64_t xtc_random = uniform(random);
        const bool excludes =
            (double)(xtc_random >> 11) * 0x1p-53 < (double)f.xtc_probability;
        std::vector<Token> want = reference(logits, f, excludes, 0);
        const std::vector<uint64_t> numbers = points(want);
        std::vector<int32_t> drawn;
        for (uint64_t bits : numbers) {
            xm_draw d = {bits, xtc_random, 0, 0};
            drawn.push_back(
                xm_candidates_draw(own, logits.data(), logits.size(), best, &f, &d));
        }
        const auto is_equal = [&](const std::vector<Token> &tokens) {
            for (size_t i = 0; i < numbers.size(); i++)
                if (drawn[i] != draw(tokens, numbers[i]))
                    return false;
            return true;
        };
        for (int off : {-1, 1})
            if (f.typical_p > 0.0f && f.typical_p < 1.0f && !is_equal(want))
                want = reference(logits, f, excludes, off);
        for (size_t i = 0; i < numbers.size(); i++)
            ASSERT_EQ(drawn[i], draw(want, numbers[i]))
                << "at " << numbers[i] << " of " << want.size() << " tokens";
        xm_candidates_free(own);
    }

    std::mt19937 &random = sample::random();
    std::uniform_int_distribution<uint64_t> uniform;
    xm_candidates *c = nullptr;
};

size_t
pick(std::mt19937 &r, size_t n)
{
    return r() % n;
}

/* Returns logits as models give them, or unusual ones. */
floats
make_row(std::mt19937 &r, size_t n)
{
    std::normal_distribution<float> normal(0.0f, 1.0f);
    floats row(n);
    const float spread =
        std::vector<float>{0.0f, 1e-6f, 0.1f, 1.0f, 3.0f, 10.0f, 1e4f, 1e38f}[pick(r, 8)];
    const size_t kind = pick(r, 8);
    for (float &x : row)
        x = normal(r) * spread;
    for (size_t i = 0; i < n; i++) {
        if (kind == 1) /* makes ties */
            row[i] = std::round(row[i]);
        if (kind == 2 && pick(r, 2))
            row[i] = -inf;
        if (kind == 3 && pick(r, 3) == 0)
            row[i] = nan_;
        if (kind == 4) /* ascending, so that a threshold changes all the time */
            row[i] = (float)i * spread;
        if (kind == 5)
            row[i] = pick(r, 2) ? 0.0f : -0.0f;
        if (kind >= 6 && i % 32 == 0) /* the tokens that thresholds are guessed from */
            row[i] += (kind == 6 ? 5.0f : -5.0f) * spread;
    }
    switch (pick(r, 8)) {
    case 0:
        std::fill(row.begin(), row.end(), -inf);
        row[pick(r, n)] = -3.0f; /* only one finite logit */
        break;
    case 1:
        row[pick(r, n)] = 100.0f;
        break;
    case 2:
        row[pick(r, n)] = inf;
        row[pick(r, n)] = inf;
        break;
    case 3:
        row[pick(r, n)] = std::numeric_limits<float>::max();
        row[pick(r, n)] = -std::numeric_limits<float>::max();
        break;
    default:
        break;
    }
    return row;
}

xm_sampling
make_filter(std::mt19937 &r, size_t n)
{
    const float temperatures[] = {1.0f, 0.7f, 1e-3f, 1e-38f, 1e-45f, 2.0f, 50.0f, 1e30f};
    const int ks[] = {0, 1, 2, 40, (int)n - 1, (int)n, (int)n + 1, (int)n / 2, -1, 3000};
    const float ps[] = {1.0f, 0.0f, 1e-7f, 0.5f, 0.9f, 0.95f, 0.999999f, 1e-30f};
    const float mins[] = {0.0f, 0.0f, 0.0f, 0.05f, 0.5f, 1.0f, 1e-20f};
    const float typical[] = {0.0f, 1.0f, 0.2f, 0.9f, 0.95f, 1e-7f};
    const float thresholds[] = {1e-6f, 0.01f, 0.1f, 0.3f, 0.5f, 0.6f};
    xm_sampling s = filter(temperatures[pick(r, 8)], ks[pick(r, 10)], ps[pick(r, 8)],
                           mins[pick(r, 7)]);
    if (pick(r, 3) == 0)
        s.typical_p = typical[pick(r, 6)];
    if (pick(r, 3) == 0)
        s.xtc_probability = pick(r, 2) ? 1.0f : 0.5f;
    s.xtc_threshold = thresholds[pick(r, 6)];
    return s;
}

TEST_F(Candidates, AreThoseOfTheDefinition)
{
    const size_t sizes[] = {1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 1000};
    for (int i = 0; i < 6000; i++) {
        const size_t n = sizes[pick(random, 11)];
        const floats row = make_row(random, n);
        if (xm_find_largest(row.data(), n) >= 0)
            expect_equal(row, make_filter(random, n));
        if (HasFatalFailure())
            return;
    }
}

/* Rows that top_k processes in several parts. */
TEST_F(Candidates, OfLongRowsToo)
{
    for (int i = 0; i < 60; i++) {
        const size_t n = 5000 + pick(random, largest_row - 5000);
        const floats row = make_row(random, n);
        if (xm_find_largest(row.data(), n) >= 0)
            expect_equal(row, make_filter(random, n));
        if (HasFatalFailure())
            return;
    }
}

/* The contents of scratch after a call do not affect the next one. */
TEST_F(Candidates, ScratchMemoryRemembersNothing)
{
    floats row = make_row(random, 1000), other = make_row(random, largest_row);
    row[0] = other[0] = 0.0f;
    xm_sampling filters[] = {filter(1.0f, 0, 1.0f, 0.0f), filter(1.0f, 50, 1.0f, 0.0f),
                             filter(1.0f, 0, 0.9f, 0.0f), filter(2.0f, 9, 0.5f, 0.1f),
                             filter(1.0f, 0, 1.0f, 0.0f), filter(1.0f, 0, 0.8f, 0.0f)};
    filters[4].mirostat = 2;
    filters[5].typical_p = 0.7f;
    filters[5].xtc_probability = 1.0f;
    xm_draw d = {(uint64_t)77 << 56, 0, 3.0, 0.0}, far = {(uint64_t)1 << 63, 0, 3.0, 0.0};
    for (const auto &f : filters) {
        for (const auto &before : filters) {
            const int32_t best = xm_find_largest(row.data(), row.size());
            const auto of_row = [&] {
                return xm_candidates_draw(c, row.data(), row.size(), best, &f, &d);
            };
            const int32_t want = of_row();
            xm_candidates_draw(c, other.data(), other.size(),
                               xm_find_largest(other.data(), other.size()), &before,
                               &far);
            EXPECT_EQ(of_row(), want);
        }
    }
}

TEST_F(Candidates, NoneAreAmongNumbersThatCannotBeChosen)
{
    for (size_t n : {1, 15, 16, 40}) {
        EXPECT_EQ(xm_find_largest(floats(n, -inf).data(), n), -1);
        EXPECT_EQ(xm_find_largest(floats(n, nan_).data(), n), -1);
        floats row(n, nan_);
        row[n - 1] = -1e38f;
        EXPECT_EQ(xm_find_largest(row.data(), n), (int32_t)n - 1);
    }
}

TEST_F(Candidates, EveryAllocationMayFail)
{
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        xm_candidates *made = xm_candidates_create(100);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(made == nullptr, seen);
        xm_candidates_free(made);
        if (!seen)
            break;
        ASSERT_LT(n, 100u);
    }
}

/* ---- weights ---- */

TEST(TokenWeight, NeverRisesAsTheLogitFalls)
{
    /* Tries each fraction of the exponent, and the step to the next halving. */
    const float steps = 1.0f;
    float before = xm_weight_share(0.0f, steps);
    EXPECT_EQ(before, 1.0f);
    int rises = 0;
    for (int i = 1; i <= 2 << XM_WEIGHT_FRACTION; i++) {
        const float share = xm_weight_share((float)i, steps);
        rises += share > before;
        before = share;
    }
    EXPECT_EQ(rises, 0);
    EXPECT_EQ(before, 0.25f);
}

TEST(TokenWeight, IsTheExponentialFunction)
{
    for (float temperature : {0.3f, 1.0f, 2.5f}) {
        for (float d = 0.0f; d < 11.0f * temperature; d += 0.0137f)
            EXPECT_NEAR(xm_weight_share(d, xm_weight_steps(temperature)) /
                            std::exp(-(double)d / temperature),
                        1.0, 0x1p-19)
                << d << " at " << temperature;
    }
    const float steps = xm_weight_steps(1.0f);
    EXPECT_LE(xm_weight_share(1000.0f, steps), 0x1p-64);
    EXPECT_LE(xm_weight_share(inf, steps), 0x1p-64);
    EXPECT_LE(xm_weight_share(nan_, steps), 0x1p-64);
    EXPECT_EQ(xm_weight_share(0.0f, xm_weight_steps(1e-45f)), 1.0f);
    EXPECT_LE(xm_weight_share(1.0f, xm_weight_steps(1e-45f)), 0x1p-64);
}

TEST(TokenWeight, SumsOfAVocabularyHaveRoom)
{
    for (uint64_t n : {1ull, 2ull, 3ull, 1024ull, 262144ull, (1ull << 31) - 1}) {
        const int bits = xm_weight_bits(n);
        EXPECT_GE(bits, 31);
        EXPECT_LT(std::ldexp((double)n, bits), std::ldexp(1.0, 62));
    }
}

} // namespace
