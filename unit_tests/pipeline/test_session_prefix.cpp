/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts that begin like the text a session holds: only the rest is fed, and the answer is that
 * of a new session.
 */
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

const Ids first = {1, 2, 3, 4, 5};

Ids
joined(Ids a, const Ids &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Ids
answer_of_a_new_session(const Ids &prompt, const xm_sampling &sampling)
{
    ScriptedModel model(rambling);
    Session s(model);
    s.run.max_tokens = 8;
    xm_session_set_sampling(s.s, &sampling);
    EXPECT_EQ(s.generate(prompt), XM_OK) << s.err.text;
    return s.ids();
}

/* Returns the number of ids of the second prompt that were reused. */
uint64_t
check(const Ids &second, const xm_sampling &sampling, bool can_truncate)
{
    ScriptedModel model(rambling);
    model.can_truncate = can_truncate;
    Session s(model);
    s.run.max_tokens = 8;
    xm_session_set_sampling(s.s, &sampling);
    EXPECT_EQ(s.generate(first), XM_OK) << s.err.text;
    if (sampling.temperature > 0)
        xm_session_set_sampling(s.s, &sampling); /* restarts the random numbers */
    EXPECT_EQ(s.generate(second), XM_OK) << s.err.text;
    EXPECT_EQ(s.ids(), answer_of_a_new_session(second, sampling));
    EXPECT_EQ(s.got.times.prompt_tokens, second.size() - s.got.reused);
    return s.got.reused;
}

xm_sampling
sampling(float temperature, float repetition = 0.0f)
{
    xm_sampling s = {};
    s.temperature = temperature;
    s.top_p = 1.0f;
    s.seed = 7;
    s.repetition_penalty = repetition;
    s.frequency_penalty = repetition ? 0.1f : 0.0f;
    return s;
}

TEST(SessionPrefix, GoesOnBehindItsOwnAnswer)
{
    const Ids answer = answer_of_a_new_session(first, sampling(0));
    const Ids second = joined(joined(first, answer), {9, 8});
    EXPECT_EQ(check(second, sampling(0), true), first.size() + answer.size() - 1)
        << "all but the last id, which was never fed";
}

TEST(SessionPrefix, GoesBackToWherePromptsPart)
{
    EXPECT_EQ(check({1, 2, 3, 7, 7, 7}, sampling(0), true), 3u);
    EXPECT_EQ(check({7, 1, 2}, sampling(0), true), 0u);
}

TEST(SessionPrefix, FeedsOneIdOfTheSamePrompt)
{
    EXPECT_EQ(check(first, sampling(0), true), first.size() - 1);
    EXPECT_EQ(check({1, 2}, sampling(0), true), 1u);
}

TEST(SessionPrefix, BeginsAnewWhereTheDeviceCannotGoBack)
{
    EXPECT_EQ(check({1, 2, 3, 7, 7, 7}, sampling(0), false), 0u);
}

/* Penalties count exactly the tokens that the model sees: also the part of the prompt that is not
 * fed again, but not an answer that was cut off. */
TEST(SessionPrefix, PenaltiesSeeTheWholePromptAndNothingElse)
{
    EXPECT_EQ(check({1, 2, 3, 7, 7, 7}, sampling(0, 1.5f), true), 3u);
    EXPECT_EQ(check(first, sampling(0, 1.5f), true), first.size() - 1);
}

/* The model prefers A and then B; a frequency penalty alternates them by their counts. */
TEST(SessionPrefix, PenaltiesAreOfThisPromptAndItsAnswer)
{
    ScriptedModel model([](const Ids &) {
        std::vector<float> logits(VOCABULARY, 0.0f);
        logits[0] = 1.0f;
        logits[1] = 0.8f;
        return logits;
    });
    Session s(model);
    xm_sampling frequency = sampling(0);
    frequency.frequency_penalty = 0.3f;
    xm_session_set_sampling(s.s, &frequency);
    s.run.max_tokens = 4;
    EXPECT_EQ(s.generate(Ids{7}), XM_OK);
    EXPECT_EQ(s.ids(), Ids({0, 1, 0, 1}));
    EXPECT_EQ(s.generate(Ids{7, 6}), XM_OK);
    EXPECT_EQ(s.ids(), Ids({0, 1, 0, 1})) << "what was taken back is forgotten";
    EXPECT_EQ(s.generate(Ids{7, 0, 6}), XM_OK);
    EXPECT_EQ(s.ids(), Ids({1, 0, 1, 0}));
    EXPECT_EQ(s.generate(Ids{7, 0, 6}), XM_OK);
    EXPECT_EQ(s.ids(), Ids({1, 0, 1, 0})) << "what is not fed again counts, too";
}

TEST(SessionPrefix, ASeedGivesTheSameAnswer)
{
    EXPECT_EQ(check(first, sampling(1.0f), true), first.size() - 1);
}

/* Without a new seed the random numbers continue: the second answer differs. */
TEST(SessionPrefix, TheNextAnswerIsAnotherOne)
{
    ScriptedModel model(rambling);
    Session s(model);
    const xm_sampling drawn = sampling(2.0f);
    xm_session_set_sampling(s.s, &drawn);
    EXPECT_EQ(s.generate(first), XM_OK);
    const Ids one = s.ids();
    EXPECT_EQ(s.generate(first), XM_OK);
    EXPECT_NE(s.ids(), one);
}

/* A run that is cancelled in its prompt leaves the states as they were. */
TEST(SessionPrefix, HoldsAfterARunThatFailed)
{
    ScriptedModel model(rambling);
    Session s(model);
    s.run.max_tokens = 8;
    EXPECT_EQ(s.generate(first), XM_OK);
    xm_session_cancel(s.s);
    EXPECT_EQ(s.generate(joined(first, {7, 7})), XM_OK);
    EXPECT_EQ(s.got.finish, XM_FINISH_CANCELLED);
    xm_session_resume(s.s);
    const Ids second = joined(first, {7, 8});
    EXPECT_EQ(s.generate(second), XM_OK);
    EXPECT_EQ(s.got.reused, first.size());
    EXPECT_EQ(s.ids(), answer_of_a_new_session(second, sampling(0)));
}

} // namespace
