// SPDX-License-Identifier: Apache-2.0
//
// Penalties and min_p against their formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugin/text/sampler.h"
#include "runtime/util/memory.h"

namespace
{

using floats = std::vector<float>;
using ids = std::vector<int32_t>;

struct Scratch {
    struct xm_sampler_scratch *s = xm_sampler_scratch_create(10);
    ~Scratch()
    {
        xm_sampler_scratch_free(s);
    }
} scratch;

class Sampler
{
  public:
    Sampler(struct xm_sampling sampling, size_t n)
    {
        status = xm_sampler_create(&sampling, n, &s, &err);
    }
    ~Sampler()
    {
        xm_sampler_free(s);
    }
    void accept(const ids &tokens)
    {
        EXPECT_EQ(xm_sampler_accept(s, tokens.data(), tokens.size(), nullptr), XM_OK);
    }
    int32_t next(const floats &logits)
    {
        int32_t id = -1;
        EXPECT_EQ(xm_sampler_next(s, scratch.s, logits.data(), &id, nullptr), XM_OK);
        return id;
    }
    std::vector<int> histogram(const floats &logits, int draws)
    {
        std::vector<int> counts(logits.size());
        for (int i = 0; i < draws; i++)
            counts.at((size_t)next(logits))++;
        return counts;
    }

    struct xm_sampler *s = nullptr;
    struct xm_error err = {};
    enum xm_status status = XM_OK;
};

struct xm_sampling
off()
{
    struct xm_sampling s = {};
    s.top_p = 1.0f;
    s.seed = 3;
    return s;
}

/* Compares shares of draws with probabilities, within five standard deviations. */
void
expect_shares(const std::vector<int> &counts, const std::vector<double> &weights)
{
    double sum = 0, draws = 0;
    for (size_t i = 0; i < weights.size(); i++) {
        sum += weights[i];
        draws += counts[i];
    }
    for (size_t i = 0; i < weights.size(); i++) {
        double p = weights[i] / sum;
        EXPECT_NEAR(counts[i] / draws, p, 5 * std::sqrt(p * (1 - p) / draws)) << i;
    }
}

const int draws = 20000;

} // namespace

TEST(SamplerExtra, MinPKeepsWhatIsLikelyEnough)
{
    const floats logits = {0.0f, std::log(0.5f), std::log(0.25f), std::log(0.2f)};
    struct xm_sampling sampling = off();
    sampling.temperature = 1.0f;
    sampling.min_p = 0.24f;
    expect_shares(Sampler(sampling, 4).histogram(logits, draws), {1, 0.5, 0.25, 0});
    sampling.temperature = 0.5f; /* squares the weights before min_p */
    expect_shares(Sampler(sampling, 4).histogram(logits, draws), {1, 0.25, 0, 0});
    sampling.min_p = 1.0f;
    EXPECT_EQ(Sampler(sampling, 4).histogram(logits, 100)[0], 100);
}

TEST(SamplerExtra, MinPWorksBehindTopKAndTopP)
{
    const floats logits = {0.0f, std::log(0.5f), std::log(0.25f), std::log(0.2f)};
    struct xm_sampling sampling = off();
    sampling.temperature = 1.0f;
    sampling.min_p = 0.1f;
    sampling.top_k = 3;
    expect_shares(Sampler(sampling, 4).histogram(logits, draws), {1, 0.5, 0.25, 0});
    sampling.top_p = 0.6f; /* 1 of 1.75 is below 0.6, 1.5 of 1.75 above */
    expect_shares(Sampler(sampling, 4).histogram(logits, draws), {1, 0.5, 0, 0});
}

TEST(SamplerExtra, RepetitionPenaltyDividesOrMultiplies)
{
    struct xm_sampling sampling = off();
    sampling.repetition_penalty = 2.0f;
    Sampler s(sampling, 3);
    EXPECT_EQ(s.next({4.0f, 2.1f, -1.0f}), 0);
    s.accept({0});
    EXPECT_EQ(s.next({4.0f, 2.1f, -1.0f}), 1); /* 4 / 2 < 2.1 */
    EXPECT_EQ(s.next({4.4f, 2.1f, -1.0f}), 0); /* 4.4 / 2 > 2.1 */
    s.accept({0, 0});                          /* repeated tokens count once */
    EXPECT_EQ(s.next({4.4f, 2.1f, -1.0f}), 0);
    EXPECT_EQ(s.next({-1.0f, -1.9f, -5.0f}), 1); /* -1 * 2 < -1.9 */
    EXPECT_EQ(s.next({-1.0f, -2.1f, -5.0f}), 0);
}

TEST(SamplerExtra, PresenceAndFrequencySubtract)
{
    struct xm_sampling sampling = off();
    sampling.presence_penalty = 1.0f;
    sampling.frequency_penalty = 0.5f;
    Sampler s(sampling, 2);
    s.accept({0, 0, 0}); /* 3 * 0.5 + 1 = 2.5 */
    EXPECT_EQ(s.next({2.4f, 0.0f}), 1);
    EXPECT_EQ(s.next({2.6f, 0.0f}), 0);
    s.accept({1}); /* 0.5 + 1 = 1.5 */
    EXPECT_EQ(s.next({1.1f, 0.0f}), 0);
    EXPECT_EQ(s.next({0.9f, 0.0f}), 1);
}

TEST(SamplerExtra, PenaltiesShapeTheDistribution)
{
    struct xm_sampling sampling = off();
    sampling.temperature = 1.0f;
    sampling.repetition_penalty = 1.5f;
    sampling.presence_penalty = 0.2f;
    sampling.frequency_penalty = 0.1f;
    Sampler s(sampling, 3);
    s.accept({0, 2, 2});
    expect_shares(s.histogram({1.5f, 0.7f, -0.4f}, draws),
                  {std::exp(1.5 / 1.5 - 0.1 - 0.2), std::exp(0.7),
                   std::exp(-0.4 * 1.5 - 2 * 0.1 - 0.2)});
}

TEST(SamplerExtra, TheWindowForgetsTheOldest)
{
    struct xm_sampling sampling = off();
    sampling.presence_penalty = 1.0f;
    sampling.last_n = 3;
    Sampler s(sampling, 6);
    ids window;
    for (int32_t i = 0; i < 40; i++) {
        int32_t id = i * 7 % 6 % 5;
        s.accept({id});
        window.push_back(id);
        if (window.size() > 3)
            window.erase(window.begin());
        /* Token 5 is never accepted: it wins only against tokens in the window. */
        for (int32_t t = 0; t < 5; t++) {
            floats logits(6, -10.0f);
            logits[(size_t)t] = 0.5f;
            logits[5] = 0.0f;
            bool seen = std::count(window.begin(), window.end(), t) > 0;
            EXPECT_EQ(s.next(logits), seen ? 5 : t) << i;
        }
    }
    xm_sampler_forget(s.s);
    EXPECT_EQ(s.next({0.5f, 0, 0, 0, 0, 0}), 0);
    s.accept({0});
    EXPECT_EQ(s.next({0.5f, 0, 0, 0, 0, 0}), 1);
}

TEST(SamplerExtra, ForeignIdsAreIgnoredAndLogitsStayUntouched)
{
    struct xm_sampling sampling = off();
    sampling.presence_penalty = 5.0f;
    Sampler s(sampling, 2);
    s.accept({-1, 2, 1000000, 0});
    const floats logits = {1.0f, 0.0f};
    EXPECT_EQ(s.next(logits), 1);
    EXPECT_EQ(logits, (floats{1.0f, 0.0f}));
}

TEST(SamplerExtra, MinusInfinityAndNanStayImpossible)
{
    struct xm_sampling sampling = off();
    sampling.repetition_penalty = 1.3f;
    sampling.frequency_penalty = -2.0f;
    Sampler s(sampling, 3);
    s.accept({0, 1, 1});
    EXPECT_EQ(s.next({-INFINITY, NAN, -3.0f}), 2);
}

TEST(SamplerExtra, NextAllocatesNothing)
{
    struct xm_sampling sampling = off();
    sampling.repetition_penalty = 1.3f;
    Sampler s(sampling, 3);
    s.accept({0, 1, 1});
    xm_fail_allocation(1);
    EXPECT_EQ(s.next({1, 2, 3}), 2);
    EXPECT_FALSE(xm_fail_allocation_seen());
    xm_fail_allocation(0);
}

TEST(SamplerExtra, BadParametersAreRefused)
{
    const struct {
        float xm_sampling::*field;
        float value;
        const char *name;
    } bad[] = {
        {&xm_sampling::min_p, -0.1f, "min_p"},
        {&xm_sampling::min_p, 1.1f, "min_p"},
        {&xm_sampling::min_p, NAN, "min_p"},
        {&xm_sampling::repetition_penalty, -1.0f, "repetition_penalty"},
        {&xm_sampling::repetition_penalty, INFINITY, "repetition_penalty"},
        {&xm_sampling::presence_penalty, NAN, "presence_penalty"},
        {&xm_sampling::frequency_penalty, INFINITY, "frequency_penalty"},
    };
    for (const auto &b : bad) {
        struct xm_sampling sampling = off();
        sampling.*b.field = b.value;
        Sampler s(sampling, 3);
        EXPECT_EQ(s.status, XM_INVALID) << b.name;
        EXPECT_NE(std::string(s.err.text).find(b.name), std::string::npos) << s.err.text;
    }
}

TEST(SamplerExtra, EveryAllocationMayFail)
{
    struct xm_sampling sampling = off();
    sampling.presence_penalty = 1.0f;
    sampling.last_n = 100;
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        Sampler s(sampling, 3);
        const ids tokens(40, 1);
        enum xm_status status = s.status;
        if (status == XM_OK)
            status = xm_sampler_accept(s.s, tokens.data(), tokens.size(), nullptr);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << n;
    }
}

TEST(SamplerExtra, PenaltiesOfNewTokensLeaveThePromptAlone)
{
    struct xm_sampling sampling = off();
    sampling.presence_penalty = 1.5f;
    sampling.frequency_penalty = 0.5f;
    sampling.only_new = true;
    Sampler s(sampling, 3);
    const ids prompt = {2, 2, 2};
    ASSERT_EQ(xm_sampler_begin(s.s, prompt.data(), prompt.size(), nullptr), XM_OK);
    EXPECT_EQ(s.next({0, 1, 2}), 2);
    s.accept({2});
    EXPECT_EQ(s.next({0, 1, 2}), 1) << "2 - 0.5 - 1.5";
    ASSERT_EQ(xm_sampler_begin(s.s, prompt.data(), prompt.size(), nullptr), XM_OK);
    EXPECT_EQ(s.next({0, 1, 2}), 2) << "a new text";
    sampling.only_new = false;
    Sampler all(sampling, 3);
    ASSERT_EQ(xm_sampler_begin(all.s, prompt.data(), prompt.size(), nullptr), XM_OK);
    EXPECT_EQ(all.next({0, 1, 2}), 1);
}

TEST(SamplerExtra, RepetitionStillSeesThePrompt)
{
    struct xm_sampling sampling = off();
    sampling.repetition_penalty = 4.0f;
    sampling.only_new = true;
    Sampler s(sampling, 3);
    const ids prompt = {2};
    ASSERT_EQ(xm_sampler_begin(s.s, prompt.data(), prompt.size(), nullptr), XM_OK);
    EXPECT_EQ(s.next({0, 1, 2}), 1);
}

TEST(SamplerExtra, PenaltiesOfNewTokensHaveNoWindow)
{
    struct xm_sampling sampling = off();
    sampling.only_new = true;
    sampling.last_n = 4;
    Sampler s(sampling, 3);
    EXPECT_EQ(s.status, XM_INVALID);
    EXPECT_NE(std::string(s.err.text).find("last_n"), std::string::npos) << s.err.text;
}

TEST(SamplerExtra, BarredTokensDoNotComeOnce)
{
    Sampler s(off(), 3);
    const ids barred = {2, -1, 99};
    EXPECT_EQ(xm_sampler_bar(s.s, barred.data(), barred.size(), nullptr), XM_OK);
    EXPECT_EQ(s.next({0, 1, 2}), 1);
    EXPECT_EQ(s.next({0, 1, 2}), 2) << "only the next call";
    const ids all = {0, 1, 2};
    int32_t id;
    EXPECT_EQ(xm_sampler_bar(s.s, all.data(), all.size(), nullptr), XM_OK);
    EXPECT_EQ(xm_sampler_next(s.s, scratch.s, floats{1, 2, 3}.data(), &id, nullptr),
              XM_INVALID);
}

TEST(SamplerExtra, NGramsComeOnce)
{
    struct xm_sampling sampling = off();
    for (uint32_t n = 1; n <= 3; n++) {
        sampling.no_repeat_ngram = (int)n;
        Sampler s(sampling, 3);
        ids text = {2, 2};
        ASSERT_EQ(xm_sampler_begin(s.s, text.data(), text.size(), nullptr), XM_OK);
        while (text.size() < (n == 1 ? 4u : 8u)) {
            /* By definition: the likeliest token that does not repeat an n-gram of the text. */
            int32_t expected = 2;
            const auto is_there = [&](int32_t last) {
                ids run(text.end() - (n - 1), text.end());
                run.push_back(last);
                return std::search(text.begin(), text.end(), run.begin(), run.end()) !=
                       text.end();
            };
            while (expected > 0 && is_there(expected))
                expected--;
            if (is_there(expected))
                break;
            EXPECT_EQ(s.next({0, 1, 2}), expected) << n << " at " << text.size();
            text.push_back(expected);
            s.accept({expected});
        }
        EXPECT_GT(text.size(), 2u);
    }
}

TEST(SamplerExtra, EveryAllocationOfBarsMayFail)
{
    struct xm_sampling sampling = off();
    sampling.frequency_penalty = 1.0f;
    sampling.only_new = true;
    sampling.no_repeat_ngram = 2;
    const ids text(40, 1);
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        Sampler s(sampling, 3);
        enum xm_status status = s.status;
        if (status == XM_OK)
            status = xm_sampler_begin(s.s, text.data(), text.size(), nullptr);
        if (status == XM_OK)
            status = xm_sampler_bar(s.s, text.data(), 1, nullptr);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << n;
    }
}
