/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt lookup: where drafted tokens come from, and that texts are equal with fewer runs.
 */
#include "plugin/pipeline/prompt_lookup.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, HASH = 3, X = 7;

Ids
guess(const Ids &text, size_t longest, size_t most)
{
    const xm_guess g = xm_prompt_lookup(text.data(), text.size(), longest, most);
    return g.n ? Ids(g.ids, g.ids + g.n) : Ids();
}

TEST(PromptLookup, IsWhatCameBehindTheLastTokens)
{
    EXPECT_EQ(guess({A, B, C, X, A, B}, 2, 9), Ids({C, X, A, B}));
    EXPECT_EQ(guess({A, B, C, X, A, B}, 2, 1), Ids({C}));
    EXPECT_EQ(guess({A, C, B, A, X, B, A}, 1, 1), Ids({X})) << "the latest place";
    EXPECT_EQ(guess({A, B, C, X, B, HASH, A, B}, 2, 1), Ids({C})) << "the longest";
    EXPECT_EQ(guess({A, B, C, X, B, HASH, A, B}, 1, 1), Ids({HASH}));
    EXPECT_EQ(guess({A, A, A}, 3, 9), Ids({A}));
    EXPECT_EQ(guess({A, B, C}, 3, 9), Ids());
    EXPECT_EQ(guess({A}, 3, 9), Ids());
    EXPECT_EQ(guess({}, 3, 9), Ids());
    EXPECT_EQ(guess({A, A}, 0, 9), Ids());
    EXPECT_EQ(guess({A, A}, 2, 0), Ids());
}

/* Returns logits that repeat the prompt, except for every ninth token. */
std::vector<float>
mostly_again(const Ids &state)
{
    const int32_t round[] = {A, B, C, HASH};
    return state.size() % 9 == 0 ? rambling(state) : only(round[state.size() % 4]);
}

struct Outcome {
    Ids ids, state;
    std::string text;
    xm_finish finish;
    int runs;
    bool operator==(const Outcome &o) const
    {
        return ids == o.ids && text == o.text && finish == o.finish;
    }
};

class Guesses : public ::testing::Test
{
  protected:
    Outcome outcome(const Ids &prompt, size_t guesses, size_t by)
    {
        Session s(model, package.p);
        if (sampling.temperature > 0.0f || sampling.repetition_penalty > 0.0f)
            xm_session_set_sampling(s.s, &sampling);
        s.run.max_tokens = most;
        s.run.guesses = guesses;
        s.run.guess_by = by;
        s.run.context = context;
        model.runs = 0;
        EXPECT_EQ(s.generate(prompt), XM_OK) << s.err.text;
        return {s.ids(), model.state, s.text(), s.got.finish, model.runs};
    }
    void expect_same(const Ids &prompt, bool is_faster)
    {
        const Outcome without = outcome(prompt, 0, 0);
        for (const size_t guesses : {1, 3, 10})
            for (const size_t by : {1, 2, 4}) {
                const Outcome with = outcome(prompt, guesses, by);
                EXPECT_EQ(with.text, without.text) << guesses << " by " << by;
                EXPECT_TRUE(with == without) << guesses << " by " << by;
                EXPECT_LE(with.state.size(), without.state.size() + 1)
                    << "guesses that came to nothing are not kept";
                if (is_faster) {
                    EXPECT_LT(with.runs, without.runs) << guesses << " by " << by;
                }
            }
    }

    ScriptedModel model{mostly_again};
    SmallPackage package;
    xm_sampling sampling = {};
    uint64_t most = 40, context = 0;
    const Ids prompt = {A, B, C, HASH, A, B, C, HASH};
};

TEST_F(Guesses, ChangeNothingButTheRuns)
{
    model.gives_all = true;
    expect_same(prompt, true);
    for (most = 1; most < 9; most++)
        expect_same(prompt, false);
    most = 40;
    context = 21;
    expect_same(prompt, true);
}

TEST_F(Guesses, ThatAreAllWrongChangeNothing)
{
    model.gives_all = true;
    model.script = rambling;
    expect_same({A, B, A, B, X, A, B}, false);
}

TEST_F(Guesses, AreForDrawnAndPenalisedTextsTheSameToo)
{
    model.gives_all = true;
    sampling.top_p = 1.0f;
    sampling.temperature = 0.7f;
    sampling.repetition_penalty = 1.2f;
    sampling.seed = 11;
    expect_same(prompt, false);
}

TEST_F(Guesses, NeedLogitsOfEachToken)
{
    expect_same(prompt, false);
    model.can_truncate = false;
    expect_same(prompt, false);
}

TEST_F(Guesses, NeedNoWayBack)
{
    model.gives_all = true;
    model.can_truncate = false;
    expect_same(prompt, true);
}

TEST_F(Guesses, OfARunThatFailsAreForgotten)
{
    model.gives_all = true;
    const Ids expected = outcome(prompt, 0, 0).ids;
    Session s(model, package.p);
    s.run.max_tokens = most;
    s.run.guesses = 4;
    s.run.guess_by = 2;
    for (int fails_at = 1; fails_at < 8; fails_at++) {
        model.runs = 0;
        model.fails_at = fails_at;
        EXPECT_EQ(s.generate(prompt), XM_DEVICE);
        const Ids so_far = s.ids();
        model.fails_at = -1;
        EXPECT_EQ(s.generate(prompt), XM_OK) << s.err.text;
        EXPECT_TRUE(std::equal(so_far.begin(), so_far.end(), s.ids().begin()));
        EXPECT_EQ(s.ids(), expected);
    }
}

/* A session holds only the tokens of the text, not rejected drafts, so that a chat continues from
 * the text. */
TEST_F(Guesses, AreNoPartOfWhatIsHeld)
{
    model.gives_all = true;
    for (const uint64_t n : {2, 5, 7, 12}) {
        Session s(model, package.p);
        s.run.max_tokens = n;
        s.run.guesses = 4;
        s.run.guess_by = 2;
        ASSERT_EQ(s.generate(prompt), XM_OK);
        Ids next = prompt;
        const Ids answer = s.ids();
        next.insert(next.end(), answer.begin(), answer.end());
        next.push_back(X);
        s.run.guesses = 0;
        ASSERT_EQ(s.generate(next), XM_OK);
        EXPECT_EQ(Ids(model.state.begin(), model.state.begin() + (long)next.size()),
                  next);
        most = n;
        EXPECT_EQ(s.ids(), outcome(next, 0, 0).ids);
    }
}

} // namespace
