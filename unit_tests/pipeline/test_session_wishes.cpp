/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a generation: other end tokens, a least length, the stop string or the prompt as
 * part of the text, log-probabilities, times.
 */
#include <cmath>

#include "plugin/text/log_sum_exp.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, HASH = 3, X = 7;

class Wishes : public ::testing::Test
{
  protected:
    ~Wishes() override
    {
        xm_generation_clock_free(&clock);
    }
    /* Makes the model answer the prompt "x" with these tokens. */
    void say(const Ids &answer)
    {
        model.script = saying(answer, 1);
        EXPECT_EQ(s.generate(Ids{X}), XM_OK) << s.err.text;
    }
    void end_with(const Ids &ids)
    {
        ends = ids;
        s.run.ends = ends.data();
        s.run.n_ends = ends.size();
        s.run.has_ends = true;
    }

    ScriptedModel model{saying({}, 1)};
    SmallPackage package;
    Session s{model, package.p};
    Ids ends;
    const xm_slice stop = xm_slice_of("b#", 2);
    xm_generation_clock clock = {};
};

TEST_F(Wishes, EndsOfItsOwnAreTheOnlyOnes)
{
    end_with({C, HASH});
    s.run.max_tokens = 4;
    say({A, B, HASH, A});
    EXPECT_EQ(s.ids(), Ids({A, B}));
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    end_with({});
    say({A, B});
    EXPECT_EQ(s.ids(), Ids({A, B, IM_END, IM_END})) << "the package's are none";
    s.run.ignore_ends = true;
    end_with({A});
    say({A, B});
    EXPECT_EQ(s.ids(), Ids({A, B, IM_END, IM_END}));
}

TEST_F(Wishes, TheEndIsTextWhereItIsKept)
{
    s.run.keep_end = true;
    end_with({C, IM_END});
    say({A, B, C});
    EXPECT_EQ(s.text(), "abc");
    EXPECT_EQ(s.shown(), "abc");
    EXPECT_EQ(s.ids(), Ids({A, B})) << "none of the ids";
    say({A, B});
    EXPECT_EQ(s.text(), "ab") << "a special token is none";
    s.run.keep_end = false;
    say({A, B, C});
    EXPECT_EQ(s.text(), "ab");
}

TEST_F(Wishes, NothingEndsBeforeTheLeastLength)
{
    s.run.min_tokens = 3;
    s.run.max_tokens = 9;
    say({A});
    EXPECT_EQ(s.ids(), Ids({A, A, A})) << "the next likeliest, where the end is barred";
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    s.run.ignore_ends = true;
    s.run.max_tokens = 4;
    say({A});
    EXPECT_EQ(s.ids(), Ids({A, A, A, IM_END})) << "barred where it ends nothing, too";
}

/* Suppressing an id beyond the vocabulary has no effect. */
TEST_F(Wishes, WhatThePackageSuppressesNeverComes)
{
    for (int32_t id : {A, C, 100000})
        ASSERT_TRUE(xm_token_list_add(&package.p->generation.suppressed, id));
    s.run.max_tokens = 3;
    say({A, C, A});
    for (const int32_t id : s.ids())
        EXPECT_TRUE(id != A && id != C) << id;
    s.run.min_tokens = 2;
    say({B, A, B});
    EXPECT_EQ(s.ids(), Ids({B, B, B})) << "with the ends barred as well";
}

TEST_F(Wishes, TheStopStringIsKept)
{
    s.run.stops = &stop;
    s.run.n_stops = 1;
    say({A, B, HASH, C});
    EXPECT_EQ(s.text(), "a");
    s.run.keep_stop = true;
    say({A, B, HASH, C});
    EXPECT_EQ(s.text(), "ab#");
    EXPECT_EQ(s.shown(), "ab#");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
}

TEST_F(Wishes, ThePromptComesFirst)
{
    s.run.echo = true;
    model.script = saying({C}, 3);
    EXPECT_EQ(s.generate(Ids{SPECIAL, A, B}), XM_OK);
    EXPECT_EQ(s.text(), "abc") << "special tokens are left out";
    EXPECT_EQ(s.shown(), "abc");
    ASSERT_EQ(s.pieces.size(), 2u);
    EXPECT_EQ(s.pieces[0].text, "ab");
    EXPECT_EQ(s.pieces[0].id, -1);
    EXPECT_EQ(s.ids(), Ids({C})) << "the prompt's are none";
    s.on_piece = [] { return false; };
    EXPECT_EQ(s.generate(Ids{A, B, B}), XM_OK);
    EXPECT_EQ(s.text(), "ab"
                        "b");
    EXPECT_EQ(s.got.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(s.ids(), Ids());
}

TEST_F(Wishes, LogProbabilitiesAreOfTheRow)
{
    s.run.wants_log_probs = true;
    say({A, B});
    const double e = std::exp(1.0);
    ASSERT_EQ(s.got.log_probs.n, 2u) << "none of the end";
    for (size_t i = 0; i < 2; i++)
        EXPECT_NEAR(s.got.log_probs.values[i], std::log(e / (e + VOCABULARY - 1)), 1e-6);
    s.run.wants_log_probs = false;
    say({A, B});
    EXPECT_EQ(s.got.log_probs.n, 0u);
    const float large[] = {1000.0f, -INFINITY, 1000.0f};
    EXPECT_NEAR(large[2] - xm_log_sum_exp(large, 3), std::log(0.5), 1e-12);
}

TEST_F(Wishes, TheClockHasEachTokenAndRun)
{
    s.run.clock = &clock;
    say({A, B});
    ASSERT_EQ(clock.tokens.n, 3u) << "the end is one";
    EXPECT_EQ(clock.runs.n, 3u);
    EXPECT_LE(clock.tokens.s[0], clock.tokens.s[2]);
    EXPECT_GE(clock.runs.s[1], 0.0);
    EXPECT_GT(clock.detokenise_s, 0.0);
    EXPECT_EQ(clock.tokenise_s, 0.0);
    EXPECT_FALSE(clock.has_template || clock.failed);
}

TEST(PromptClock, KnowsTemplateAndTokenizer)
{
    SmallPackage package;
    xm_generation_clock clock = {};
    xm_token_list ids = {};
    xm_prompt prompt = {};
    prompt.clock = &clock;
    prompt.kind = XM_PROMPT_TEXT;
    prompt.text = "abc";
    prompt.n = 3;
    EXPECT_EQ(xm_prompt_encode(package.p, &prompt, VOCABULARY, &ids, nullptr), XM_OK);
    EXPECT_GT(clock.tokenise_s, 0.0);
    EXPECT_FALSE(clock.has_template);
    prompt.kind = XM_PROMPT_MESSAGES;
    prompt.text = "[{\"content\":\"a\"}]";
    EXPECT_EQ(xm_prompt_encode(package.p, &prompt, VOCABULARY, &ids, nullptr), XM_OK);
    EXPECT_TRUE(clock.has_template);
    EXPECT_GT(clock.template_s, 0.0);
    xm_token_list_free(&ids);
}

} // namespace
