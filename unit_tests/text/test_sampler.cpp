// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plugin/text/sampler.h"
#include "runtime/util/memory.h"

namespace
{

struct Scratch {
    struct xm_sampler_scratch *s = xm_sampler_scratch_create(1000);
    ~Scratch()
    {
        xm_sampler_scratch_free(s);
    }
} scratch;

const uint64_t seed = 1;
int draws = 20000;

xm_sampling
sampling_of(float temperature, int top_k, float top_p)
{
    xm_sampling s = {};
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.seed = seed;
    return s;
}

/* Returns how often each token is drawn. */
std::vector<int>
histogram(const std::vector<float> &logits, float temperature, int top_k, float top_p)
{
    std::vector<int> counts(logits.size());
    const xm_sampling sampling = sampling_of(temperature, top_k, top_p);
    struct xm_sampler *s = nullptr;
    EXPECT_EQ(xm_sampler_create(&sampling, logits.size(), &s, nullptr), XM_OK);
    for (int i = 0; s && i < draws; i++) {
        int32_t id = -1;
        EXPECT_EQ(xm_sampler_next(s, scratch.s, logits.data(), &id, nullptr), XM_OK);
        counts.at((size_t)id)++;
    }
    xm_sampler_free(s);
    return counts;
}

/* Returns chi-square of counts against probabilities. Tokens of probability 0 must not occur. */
double
chi_square(const std::vector<int> &counts, const std::vector<double> &p)
{
    double sum = 0;
    for (size_t i = 0; i < p.size(); i++) {
        double expected = p[i] * draws, d = counts[i] - expected;
        if (expected == 0)
            EXPECT_EQ(counts[i], 0) << i;
        else
            sum += d * d / expected;
    }
    return sum;
}

std::vector<double>
softmax(const std::vector<float> &logits, double temperature, std::vector<bool> keep)
{
    std::vector<double> p(logits.size());
    double sum = 0;
    for (size_t i = 0; i < p.size(); i++)
        sum += p[i] = keep[i] ? std::exp(logits[i] / temperature) : 0.0;
    for (double &x : p)
        x /= sum;
    return p;
}

int32_t
greedy(const std::vector<float> &logits, struct xm_error *err = nullptr)
{
    const xm_sampling sampling = sampling_of(0.0f, 0, 1.0f);
    struct xm_sampler *s = nullptr;
    int32_t id = -1;
    xm_sampler_create(&sampling, logits.size(), &s, nullptr);
    if (xm_sampler_next(s, scratch.s, logits.data(), &id, err) != XM_OK)
        id = -1;
    xm_sampler_free(s);
    return id;
}

const std::vector<float> five = {1.0f, 3.0f, 0.5f, 2.0f, 2.5f};
const double bound = 20.0; /* chi-square, 4 degrees of freedom: p < 0.0005 */

} // namespace

TEST(Sampler, GreedyTakesTheLowestIdOfEqualLogits)
{
    EXPECT_EQ(greedy({1, 5, 5, 2}), 1);
    EXPECT_EQ(greedy({-3, -3}), 0);
}

TEST(Sampler, NanIsNeverChosen)
{
    EXPECT_EQ(greedy({NAN, 1, NAN, 2}), 3);
    std::vector<int> counts = histogram({NAN, 0, NAN, 0}, 1.0f, 0, 0.9f);
    EXPECT_EQ(counts[0] + counts[2], 0);
}

TEST(Sampler, NoTokenToChooseIsAnError)
{
    struct xm_error err = {};
    EXPECT_EQ(greedy({NAN, NAN}, &err), -1);
    EXPECT_EQ(err.status, XM_INVALID);
    EXPECT_NE(strstr(err.text, "NaN"), nullptr);
    EXPECT_EQ(greedy({-INFINITY, -INFINITY}), -1);
}

TEST(Sampler, InfinityWins)
{
    EXPECT_EQ(greedy({1, INFINITY, 3}), 1);
    EXPECT_EQ(histogram({1, INFINITY, 3}, 1.0f, 0, 1.0f)[1], draws);
}

TEST(Sampler, DrawsFromTheSoftmax)
{
    std::vector<bool> all(5, true);
    EXPECT_LT(chi_square(histogram(five, 1.0f, 0, 1.0f), softmax(five, 1.0, all)), bound);
    EXPECT_LT(chi_square(histogram(five, 0.5f, 0, 1.0f), softmax(five, 0.5, all)), bound);
    EXPECT_LT(chi_square(histogram(five, 2.0f, 0, 1.0f), softmax(five, 2.0, all)), bound);
}

TEST(Sampler, AMillionDrawsAreOfTheSoftmax)
{
    draws = 1000000;
    std::vector<bool> three = {false, true, false, true, true};
    EXPECT_LT(chi_square(histogram(five, 0.7f, 3, 1.0f), softmax(five, 0.7, three)),
              bound);
    draws = 20000;
}

TEST(Sampler, TopKKeepsTheKMostLikely)
{
    std::vector<bool> three = {false, true, false, true, true};
    EXPECT_LT(chi_square(histogram(five, 1.0f, 3, 1.0f), softmax(five, 1.0, three)),
              bound);
    EXPECT_EQ(histogram(five, 1.0f, 1, 1.0f)[1], draws);
    EXPECT_LT(chi_square(histogram(five, 1.0f, 99, 1.0f),
                         softmax(five, 1.0, std::vector<bool>(5, true))),
              bound);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt)
{
    /* Probabilities 0.46, 0.28, 0.17, 0.06, 0.04: two tokens reach 0.7, three reach 0.75. */
    std::vector<bool> two = {false, true, false, false, true};
    std::vector<bool> three = {false, true, false, true, true};
    EXPECT_LT(chi_square(histogram(five, 1.0f, 0, 0.7f), softmax(five, 1.0, two)), bound);
    EXPECT_LT(chi_square(histogram(five, 1.0f, 0, 0.75f), softmax(five, 1.0, three)),
              bound);
    EXPECT_EQ(histogram(five, 1.0f, 0, 1e-6f)[1], draws);
    EXPECT_EQ(histogram(five, 1.0f, 0, 0.0f)[1], draws);
}

TEST(Sampler, TopPIsOfWhatTopKLeaves)
{
    /* Of the best two tokens the first has 0.62 and reaches 0.6 alone; of all five it would not. */
    EXPECT_EQ(histogram(five, 1.0f, 2, 0.6f)[1], draws);
}

TEST(Sampler, EqualLogitsAreKeptFromTheLowestId)
{
    std::vector<int> counts = histogram({2, 2, 2, 2}, 1.0f, 2, 1.0f);
    EXPECT_EQ(counts[2] + counts[3], 0);
    EXPECT_GT(counts[0], 0);
    EXPECT_GT(counts[1], 0);
}

TEST(Sampler, ASeedIsASequence)
{
    xm_sampling sampling = sampling_of(1.0f, 0, 1.0f);
    sampling.seed = 42;
    std::vector<float> flat(1000, 0.0f);
    std::vector<int32_t> first, second;
    for (std::vector<int32_t> *out : {&first, &second}) {
        struct xm_sampler *s = nullptr;
        ASSERT_EQ(xm_sampler_create(&sampling, flat.size(), &s, nullptr), XM_OK);
        for (int i = 0; i < 5; i++) {
            int32_t id = 0;
            xm_sampler_next(s, scratch.s, flat.data(), &id, nullptr);
            out->push_back(id);
        }
        xm_sampler_free(s);
    }
    EXPECT_EQ(first, second);
}

TEST(Sampler, SettingsThatMeanNothingAreRefused)
{
    struct xm_sampler *s = nullptr;
    const struct {
        float temperature, top_p;
    } bad[] = {{-1.0f, 1.0f}, {NAN, 1.0f},   {INFINITY, 1.0f},
               {1.0f, 1.5f},  {1.0f, -0.1f}, {1.0f, NAN}};
    struct xm_sampling sampling = {};
    for (const auto &b : bad) {
        sampling.temperature = b.temperature;
        sampling.top_p = b.top_p;
        EXPECT_EQ(xm_sampler_create(&sampling, 5, &s, nullptr), XM_INVALID);
    }
    sampling.temperature = sampling.top_p = 1.0f;
    EXPECT_EQ(xm_sampler_create(&sampling, 0, &s, nullptr), XM_INVALID);
    xm_sampler_free(s);
}

/* A table of all tokens for each text would take gigabytes. */
TEST(Sampler, ATextKeepsLittleWhateverTheVocabulary)
{
    xm_sampling sampling = sampling_of(1.0f, 3, 0.9f);
    sampling.min_p = 0.1f;
    sampling.repetition_penalty = 1.1f;
    sampling.presence_penalty = 0.2f;
    sampling.frequency_penalty = 0.3f;
    sampling.last_n = 64;
    const int32_t prompt[] = {3, 4, INT32_MAX - 1, 3};
    std::vector<struct xm_sampler *> texts(100);
    for (struct xm_sampler *&s : texts) {
        ASSERT_EQ(xm_sampler_create(&sampling, INT32_MAX, &s, nullptr), XM_OK);
        ASSERT_EQ(xm_sampler_begin(s, prompt, 4, nullptr), XM_OK);
    }
    for (struct xm_sampler *s : texts)
        xm_sampler_free(s);
}

TEST(Sampler, AllocatesOnlyWhenItIsCreated)
{
    const xm_sampling sampling = sampling_of(1.0f, 3, 0.9f);
    struct xm_sampler *s = nullptr;
    xm_fail_allocation(1);
    EXPECT_EQ(xm_sampler_create(&sampling, 5, &s, nullptr), XM_NO_MEMORY);
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        struct xm_sampler_scratch *made = xm_sampler_scratch_create(5);
        const bool seen = xm_fail_allocation_seen();
        EXPECT_EQ(made == nullptr, seen);
        xm_sampler_scratch_free(made);
        if (!seen)
            break;
    }
    xm_fail_allocation(0);
    ASSERT_EQ(xm_sampler_create(&sampling, 5, &s, nullptr), XM_OK);
    xm_fail_allocation(1);
    int32_t id = -1;
    EXPECT_EQ(xm_sampler_next(s, scratch.s, five.data(), &id, nullptr), XM_OK);
    EXPECT_FALSE(xm_fail_allocation_seen());
    xm_fail_allocation(0);
    xm_sampler_free(s);
}
