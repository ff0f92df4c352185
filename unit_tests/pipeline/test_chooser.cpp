/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens for several texts at once: the token chosen for a text depends neither on the other
 * texts nor on threads.
 */
#include "plugin/pipeline/chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "unit_tests/sample.h"

namespace
{

enum { LARGE = 40000, STEPS = 4 }; /* a vocabulary large enough for threads */

/* Texts with a sampler and logits each. */
class Texts
{
  public:
    Texts(size_t n, size_t vocabulary)
        : choices(n), texts(n), samplings(n), results(n), rows(n), n_words(vocabulary)
    {
        std::mt19937 random(7);
        std::normal_distribution<float> normal(0.0f, 2.0f);
        const int32_t prompt[] = {1, 2, 3};
        asked.wants_log_probs = true;
        asked.max_tokens = 100;
        for (size_t i = 0; i < n; i++) {
            xm_sampling &s = samplings[i];
            s.temperature = i % 4 == 3 ? 0.0f : 0.8f;
            s.top_k = i % 3 == 0 ? 50 : 0;
            s.top_p = i % 2 ? 0.9f : 1.0f;
            s.seed = i;
            s.min_p = 0.01f;
            s.repetition_penalty = 1.2f;
            s.presence_penalty = s.frequency_penalty = 0.1f;
            const xm_text_source from = {nullptr, &asked, &samplings[i], nullptr};
            for (size_t k = 0; k < vocabulary; k++)
                rows[i].push_back(normal(random));
            EXPECT_EQ(xm_text_begin(&texts[i], &from, prompt, 3, &results[i], nullptr),
                      XM_OK);
            EXPECT_EQ(xm_text_begin_sampling(&texts[i], vocabulary, nullptr), XM_OK);
            choices[i].text = &texts[i];
            choices[i].row = rows[i].data();
        }
    }
    ~Texts()
    {
        for (xm_text &t : texts)
            xm_text_free(&t);
        for (xm_generation_result &r : results)
            xm_generation_result_free(&r);
    }
    Texts(const Texts &) = delete;

    xm_generation asked = {};
    std::vector<xm_choice> choices;
    std::vector<xm_text> texts;
    std::vector<xm_sampling> samplings;
    std::vector<xm_generation_result> results;
    std::vector<std::vector<float>> rows;
    size_t n_words;
};

/* Chooses STEPS tokens for each text, `together` texts in one call. */
std::vector<std::vector<int32_t>>
choose(Texts &t, size_t together)
{
    std::vector<std::vector<int32_t>> ids(t.choices.size());
    xm_chooser *c = xm_chooser_create();
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < t.choices.size(); i += together) {
            const size_t n = std::min(together, t.choices.size() - i);
            EXPECT_EQ(xm_chooser_run(c, &t.choices[i], n, t.n_words, nullptr), XM_OK);
        }
        for (size_t i = 0; i < t.choices.size(); i++) {
            EXPECT_TRUE(t.choices[i].is_sound);
            EXPECT_EQ(t.choices[i].error.status, XM_OK) << t.choices[i].error.text;
            ids[i].push_back(t.choices[i].id);
            EXPECT_EQ(xm_text_take(t.choices[i].text, t.choices[i].id, nullptr), XM_OK);
        }
    }
    xm_chooser_free(c);
    return ids;
}

TEST(Chooser, ATokenDoesNotDependOnTheTextsBesideIt)
{
    for (size_t vocabulary : {100, (int)LARGE}) {
        Texts alone(9, vocabulary), beside(9, vocabulary), three(9, vocabulary);
        const auto want = choose(alone, 1);
        EXPECT_EQ(choose(beside, 9), want);
        EXPECT_EQ(choose(three, 3), want);
        for (size_t i = 0; i < 9; i++) {
            EXPECT_EQ(beside.results[i].log_probs.n, (size_t)STEPS);
            for (size_t k = 0; k < STEPS; k++)
                EXPECT_EQ(beside.results[i].log_probs.values[k],
                          alone.results[i].log_probs.values[k]);
        }
    }
}

TEST(Chooser, FailuresAreThoseOfTheirTexts)
{
    Texts texts(5, LARGE), sound(5, LARGE);
    const std::vector<int32_t> all_ids = [] {
        std::vector<int32_t> ids;
        for (int32_t i = 0; i < LARGE; i++)
            ids.push_back(i);
        return ids;
    }();
    xm_chooser *c = xm_chooser_create();
    for (size_t at : {0, 17, LARGE - 1}) {
        texts.rows[1].assign(LARGE, 0.0f);
        texts.rows[1][at] = NAN;
        texts.rows[2].assign(LARGE, -INFINITY);
        ASSERT_EQ(xm_sampler_bar(texts.texts[3].own_sampler, all_ids.data(),
                                 all_ids.size(), nullptr),
                  XM_OK);
        ASSERT_EQ(xm_chooser_run(c, texts.choices.data(), 5, LARGE, nullptr), XM_OK);
        ASSERT_EQ(xm_chooser_run(c, sound.choices.data(), 5, LARGE, nullptr), XM_OK);
        EXPECT_FALSE(texts.choices[1].is_sound);
        EXPECT_FALSE(texts.choices[2].is_sound);
        EXPECT_EQ(texts.choices[3].error.status, XM_INVALID);
        for (size_t i : {0, 4})
            EXPECT_EQ(texts.choices[i].id, sound.choices[i].id);
    }
    xm_chooser_free(c);
}

TEST(Chooser, EachTokenHasATime)
{
    Texts texts(3, 100);
    xm_generation_clock clock = {};
    xm_clock_replace([] {
        static double now;
        return now += 1.0;
    });
    texts.asked.clock = &clock;
    texts.rows[1].assign(100, NAN);
    xm_chooser *c = xm_chooser_create();
    EXPECT_EQ(xm_chooser_run(c, texts.choices.data(), 3, 100, nullptr), XM_OK);
    EXPECT_EQ(clock.tokens.n, 2u);
    xm_clock_replace(nullptr);
    xm_generation_clock_free(&clock);
    xm_chooser_free(c);
}

TEST(Chooser, EveryAllocationMayFail)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        Texts texts(4, LARGE);
        xm_error err = {};
        xm_fail_allocation(n);
        xm_chooser *c = xm_chooser_create();
        const xm_status s =
            c ? xm_chooser_run(c, texts.choices.data(), 4, LARGE, &err) : XM_NO_MEMORY;
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        size_t failed = 0;
        for (const xm_choice &choice : texts.choices)
            failed += choice.error.status == XM_NO_MEMORY;
        EXPECT_EQ(s == XM_NO_MEMORY || failed == 1, seen) << n;
        xm_chooser_free(c);
        ASSERT_LT(n, 100u);
    }
}

} // namespace
