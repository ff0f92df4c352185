/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that follow a grammar: which tokens they choose, when they end, and which parts of an
 * answer the grammar leaves free.
 */
#include <cmath>
#include <set>

#include "plugin/text/constraint.h"
#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, C3 = 4, A9 = 5, X = 7;

struct OwnedGrammar {
    explicit OwnedGrammar(const std::string &text)
    {
        xm_error err = {};
        EXPECT_EQ(xm_grammar_parse(text.data(), text.size(), &g, &err), XM_OK)
            << err.text;
    }
    ~OwnedGrammar()
    {
        xm_grammar_free(g);
    }
    OwnedGrammar(const OwnedGrammar &) = delete;
    bool matches(const std::string &text) const
    {
        bool result = false;
        EXPECT_EQ(xm_grammar_matches(g, text.data(), text.size(), &result, nullptr),
                  XM_OK);
        return result;
    }
    xm_grammar *g = nullptr;
};

class TextGrammar : public ::testing::Test
{
  protected:
    /* Generates with a grammar and a model that prefers `answer` after the prompt. */
    xm_status wish(const OwnedGrammar &g, const Ids &answer, const Ids &prompt = {X})
    {
        model.script = saying(answer, prompt.size());
        s.run.grammar = g.g;
        return s.generate(prompt);
    }
    ScriptedModel model{saying({}, 1)};
    SmallPackage package;
    Session s{model, package.p};
};

TEST_F(TextGrammar, ATextMatchesAndEndsWithTheGrammar)
{
    const OwnedGrammar g("root ::= \"ab\" [#x] \"é\"");
    ASSERT_EQ(wish(g, {C, C, X, C3, A9, A}), XM_OK) << s.err.text;
    EXPECT_EQ(s.ids(), Ids({A, B, X, C3, A9}));
    EXPECT_EQ(s.text(), "abxé");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    /* where the model's token is not allowed, the lowest allowed id is chosen */
    ASSERT_EQ(wish(g, {}), XM_OK);
    EXPECT_EQ(s.text(), "ab#é");
}

TEST_F(TextGrammar, TheModelEndsItWhereTheGrammarCan)
{
    const OwnedGrammar g("root ::= \"a\" (\"b\" \"c\")*");
    ASSERT_EQ(wish(g, {IM_END, IM_END}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "a");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    ASSERT_EQ(wish(g, {A, B, IM_END, IM_END}), XM_OK);
    EXPECT_EQ(s.text(), "abc") << "there is no end behind b";
    s.run.min_tokens = 4;
    ASSERT_EQ(wish(g, {A, B, C, IM_END, IM_END, IM_END}), XM_OK);
    EXPECT_EQ(s.text(), "abcbc");
    s.run.min_tokens = 0;
    s.run.ignore_ends = true;
    s.run.max_tokens = 5;
    ASSERT_EQ(wish(g, {IM_END, IM_END}), XM_OK);
    EXPECT_EQ(s.text(), "abcbc");
    EXPECT_EQ(s.got.finish, XM_FINISH_LENGTH);
    const OwnedGrammar ends("root ::= \"a\"");
    ASSERT_EQ(wish(ends, {IM_END}), XM_OK);
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP) << "nothing else can follow";
    /* before min_tokens, if only the end is allowed */
    s.run.ignore_ends = false;
    s.run.min_tokens = 4;
    const OwnedGrammar cut("root ::= \"a\" \"q\"?");
    ASSERT_EQ(wish(cut, {A, A}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "a") << "no token has a q";
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
}

/* An end token may have a text that the grammar allows: it still ends the text. */
TEST_F(TextGrammar, AnEndIsNoLetterOfTheText)
{
    const OwnedGrammar g("root ::= \"a\" [bc] \"#\"?");
    const Ids ends = {C};
    s.run.ends = ends.data();
    s.run.n_ends = 1;
    s.run.has_ends = true;
    ASSERT_EQ(wish(g, {A, C, C}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "ab");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
}

TEST_F(TextGrammar, EndsByLackOfTokensWhereNoIdEndsATextAtAll)
{
    const OwnedGrammar g("root ::= \"a\" \"q\"?");
    s.run.ignore_ends = true;
    ASSERT_EQ(wish(g, {A, B}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "a");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
}

TEST_F(TextGrammar, AGrammarThatTheVocabularyCannotSpellFails)
{
    const OwnedGrammar g("root ::= \"aq\"");
    EXPECT_EQ(wish(g, {A, B}), XM_INVALID);
    EXPECT_STREQ(
        s.err.text,
        "after 1 token of the text, the grammar allows no token of the vocabulary");
}

TEST_F(TextGrammar, DrawnTextsMatchWithAndWithoutGuesses)
{
    const OwnedGrammar g("root ::= item (\"#\" item){0,12}\nitem ::= [abc]{1,3} | \"x\" "
                         "item \"x\" | \"é\"");
    model.script = rambling;
    model.gives_all = true;
    s.run.grammar = g.g;
    xm_sampling sampling = {};
    sampling.temperature = 1.0f;
    sampling.top_p = 1.0f;
    std::set<std::string> seen;
    for (uint64_t seed = 0; seed < 60; seed++) {
        std::string texts[2];
        for (size_t guesses : {0u, 4u}) {
            sampling.seed = seed;
            xm_session_set_sampling(s.s, &sampling);
            s.run.guesses = guesses;
            s.run.guess_by = 1;
            s.run.max_tokens = 400;
            ASSERT_EQ(s.generate(Ids{X}), XM_OK) << s.err.text;
            texts[guesses > 0] = s.text();
            EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
            EXPECT_TRUE(g.matches(s.text())) << s.text();
        }
        EXPECT_EQ(texts[0], texts[1]);
        seen.insert(texts[0]);
    }
    EXPECT_GT(seen.size(), 30u);
}

TEST_F(TextGrammar, ThoughtsOfAnAnswerAreFree)
{
    const OwnedGrammar g("root ::= \"b\" \"<think>\"? \"c\"");
    s.run.is_answer = true;
    /* The prompt has begun a thought. In it the end token is not chosen; after it, no marker
     * token. */
    ASSERT_EQ(wish(g, {A, X, IM_END, END_THINK, A, THINK, C}, {X, THINK}), XM_OK)
        << s.err.text;
    EXPECT_EQ(s.ids(), Ids({A, X, A, END_THINK, B, C}));
    EXPECT_EQ(s.text(), "bc");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    /* The model may begin with a thought or not. */
    ASSERT_EQ(wish(g, {THINK, A, END_THINK, THINK, B, C}, {X}), XM_OK) << s.err.text;
    EXPECT_EQ(s.ids(), Ids({THINK, A, END_THINK, B, C}));
    ASSERT_EQ(wish(g, {B, THINK, C}, {X}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "bc");
    /* In a text that is not an answer, markers are plain letters. */
    s.run.is_answer = false;
    ASSERT_EQ(wish(g, {B, THINK, C}, {X}), XM_OK) << s.err.text;
    EXPECT_EQ(s.text(), "b<think>c");
}

TEST_F(TextGrammar, ProbabilitiesAreTheModelsOwn)
{
    const OwnedGrammar g("root ::= \"b\"");
    s.run.wants_log_probs = true;
    ASSERT_EQ(wish(g, {A}), XM_OK) << s.err.text;
    ASSERT_EQ(s.got.log_probs.n, 1u);
    EXPECT_NEAR(s.got.log_probs.values[0], -std::log(11.0 + std::exp(1.0)), 1e-5)
        << "of b, which is one of eleven tokens that are less likely";
}

TEST_F(TextGrammar, NeedsATokenizer)
{
    ScriptedModel bare{saying({}, 1)};
    Session other{bare};
    const OwnedGrammar g("root ::= \"a\"");
    other.run.grammar = g.g;
    EXPECT_EQ(other.generate(Ids{X}), XM_UNSUPPORTED);
    EXPECT_STREQ(other.err.text, "a grammar needs a tokenizer, but the model has none");
}

TEST_F(TextGrammar, FailsCleanlyWithoutMemory)
{
    const OwnedGrammar g("root ::= \"a\" [bc]{2} \"#\"");
    for (uint64_t n = 1; n < 5000; n++) {
        ScriptedModel other{saying({B, B, B, B}, 1)};
        Session t{other, package.p};
        t.run.grammar = g.g;
        xm_fail_allocation(n);
        const xm_status status = t.generate(Ids{X});
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_TRUE(status == XM_OK || (seen && status == XM_NO_MEMORY)) << t.err.text;
        if (!seen) {
            EXPECT_EQ(t.text(), "abb#");
            return;
        }
    }
    ADD_FAILURE() << "there is no end of allocations";
}

} // namespace
