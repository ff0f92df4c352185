/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of a session: the text that it gives out, and why a run ends.
 */
#include <thread>

#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, HASH = 3, C3 = 4, A9 = 5, X = 7;

/* A session whose model answers the prompt "x" with given tokens. */
class Said : public ::testing::Test
{
  protected:
    void say(const Ids &answer)
    {
        model.script = saying(answer, 1);
        EXPECT_EQ(s.generate(Ids{X}), XM_OK) << s.err.text;
    }
    void stop_at(const std::vector<std::string> &texts)
    {
        stop_texts = texts;
        stops.clear();
        for (const auto &text : stop_texts)
            stops.push_back(xm_slice_of(text.data(), text.size()));
        s.run.stops = stops.data();
        s.run.n_stops = stops.size();
    }

    ScriptedModel model{saying({}, 1)};
    SmallPackage package;
    Session s{model, package.p};
    std::vector<std::string> stop_texts;
    std::vector<xm_slice> stops;
};

TEST_F(Said, EndsWhereTheModelEndsIt)
{
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A, B, C})) << "without the id that ends";
    EXPECT_EQ(s.text(), "abc");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    EXPECT_EQ(s.pieces.size(), 3u);
    EXPECT_EQ(s.pieces[1].id, B);
    EXPECT_EQ(s.pieces[1].text, "b");
}

TEST_F(Said, GoesOnBehindTheEndWhenAsked)
{
    s.run.ignore_ends = true;
    s.run.max_tokens = 5;
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A, B, C, IM_END, IM_END}));
    EXPECT_EQ(s.got.finish, XM_FINISH_LENGTH);
}

TEST_F(Said, EndsWithTheContext)
{
    s.run.context = 3;
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A, B}));
    EXPECT_EQ(s.got.finish, XM_FINISH_CONTEXT);
    s.run.max_tokens = 2;
    say({A, B, C});
    EXPECT_EQ(s.got.finish, XM_FINISH_LENGTH);
}

TEST_F(Said, NeedsRoomBehindThePrompt)
{
    s.run.context = 1;
    EXPECT_EQ(s.generate(Ids{X}), XM_INVALID);
    EXPECT_STREQ(s.err.text,
                 "the prompt has 1 token, which leaves no room in a context of 1");
    EXPECT_EQ(model.runs, 0);
}

TEST_F(Said, StopsAtATextAcrossTokens)
{
    stop_at({"b##"});
    say({A, B, HASH, HASH, C});
    EXPECT_EQ(s.text(), "a");
    EXPECT_EQ(s.shown(), "a");
    EXPECT_EQ(s.got.finish, XM_FINISH_STOP);
    EXPECT_EQ(s.ids(), Ids({A, B, HASH, HASH}));
    for (const auto &piece : s.pieces)
        EXPECT_EQ(piece.text, piece.id == A ? "a" : "") << piece.id;
}

TEST_F(Said, WhatOnlyBeganAsAStopComes)
{
    stop_at({"##", "bx"});
    say({A, B, HASH, C, HASH});
    EXPECT_EQ(s.text(), "ab#c#");
    EXPECT_EQ(s.shown(), "ab#c#");
    EXPECT_EQ(s.pieces.back().id, -1);
    EXPECT_EQ(s.pieces.back().text, "#");
}

TEST_F(Said, AnEmptyStopIsRefused)
{
    stop_at({""});
    EXPECT_EQ(s.generate(Ids{X}), XM_INVALID);
    EXPECT_TRUE(s.pieces.empty());
    EXPECT_EQ(model.runs, 0);
}

TEST_F(Said, PiecesAreWholeCharacters)
{
    say({A, C3, A9, B});
    EXPECT_EQ(s.text(), "a\xc3\xa9"
                        "b");
    EXPECT_EQ(s.shown(), s.text());
    EXPECT_EQ(s.pieces[1].text, "") << "half of a character";
    EXPECT_EQ(s.pieces[1].part, XM_ANSWER_NOTHING);
}

TEST_F(Said, ACharacterThatIsCutShowsAsOne)
{
    s.run.max_tokens = 2;
    say({A, C3, A9});
    EXPECT_EQ(s.text(), "a\xef\xbf\xbd");
    EXPECT_EQ(s.shown(), s.text());
    EXPECT_EQ(s.pieces.back().id, -1);
}

TEST_F(Said, SpecialTokensAreTextWhenAsked)
{
    say({A, SPECIAL, B});
    EXPECT_EQ(s.text(), "ab");
    s.run.keep_special = true;
    say({A, SPECIAL, B});
    EXPECT_EQ(s.text(), "a<s>b");
}

TEST_F(Said, ThoughtsOfAnswersAreApart)
{
    s.run.is_answer = true;
    stop_at({"b"});
    say({THINK, B, A, END_THINK, C, B, A});
    EXPECT_EQ(s.shown(XM_ANSWER_THOUGHT), "ba") << "stops are not looked for in thoughts";
    EXPECT_EQ(s.shown(), "c");
    EXPECT_EQ(s.text(), "c");
    EXPECT_EQ(s.pieces[0].part, XM_ANSWER_NOTHING) << "the mark";
    s.run.is_answer = false;
    say({THINK, A, END_THINK, C});
    EXPECT_EQ(s.text(), "<think>a</think>c");
}

/* Bytes that are held back when a marker token comes belong to the part before it. */
TEST_F(Said, PartsDoNotShareACharacter)
{
    s.run.is_answer = true;
    say({THINK, B, C3, END_THINK, A9, C});
    EXPECT_EQ(s.shown(XM_ANSWER_THOUGHT), "b\xef\xbf\xbd");
    EXPECT_EQ(s.text(), "\xef\xbf\xbd"
                        "c");
}

/* ---- cancelling ---- */

TEST_F(Said, EndsWhenNobodyWantsMore)
{
    s.on_piece = [&] { return s.pieces.back().id != B; };
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A, B}));
    EXPECT_EQ(s.got.finish, XM_FINISH_CANCELLED);
}

TEST_F(Said, IsCancelledFromAnotherThread)
{
    s.on_piece = [&] {
        std::thread([&] { xm_session_cancel(s.s); }).join();
        return true;
    };
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A})) << "the run behind it ended";
    EXPECT_EQ(s.got.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(s.text(), "a");
    s.on_piece = nullptr;
    say({A, B, C});
    EXPECT_EQ(s.got.finish, XM_FINISH_CANCELLED) << "until somebody resumes";
    EXPECT_EQ(s.ids(), Ids());
    xm_session_resume(s.s);
    say({A, B, C});
    EXPECT_EQ(s.ids(), Ids({A, B, C}));
}

TEST_F(Said, ComesAsFarAsTheDeviceGoes)
{
    stop_at({"bc"});
    model.script = saying({A, B, C}, 1);
    model.fails_at = 2;
    EXPECT_EQ(s.generate(Ids{X}), XM_DEVICE);
    EXPECT_STREQ(s.err.text, "the device is gone");
    EXPECT_EQ(s.shown(), "ab") << "what a stop held back, too";
    say({A, B, C});
    EXPECT_EQ(s.text(), "a");
}

/* ---- kinds of prompts ---- */

TEST_F(Said, ToATextOrMessages)
{
    model.script = saying({A}, 2);
    ASSERT_EQ(s.generate(XM_PROMPT_TEXT, "xb"), XM_OK) << s.err.text;
    EXPECT_EQ(s.prompt(), Ids({X, B}));
    EXPECT_EQ(s.text(), "a");
    s.run.is_answer = true;
    ASSERT_EQ(s.generate(XM_PROMPT_MESSAGES, R"([{"role":"user","content":"x"}])"), XM_OK)
        << s.err.text;
    EXPECT_EQ(s.prompt(), Ids({X, THINK}));
    EXPECT_EQ(s.shown(XM_ANSWER_THOUGHT), "a") << "the prompt has opened it";
    EXPECT_EQ(s.text(), "");
}

TEST_F(Said, ToControlTokensOnlyOutsideOfMessages)
{
    const int32_t start = 11;
    model.script = saying({A}, 2);
    ASSERT_EQ(s.generate(XM_PROMPT_TEXT, "x<s>b"), XM_OK) << s.err.text;
    EXPECT_EQ(s.prompt(), Ids({X, start, B}));
    ASSERT_EQ(s.generate(XM_PROMPT_MESSAGES, R"([{"role":"user","content":"x<s>b"}])"),
              XM_OK)
        << s.err.text;
    EXPECT_EQ(s.prompt(), Ids({X, B, THINK})) << "the vocabulary has no '<', 's' and '>'";
}

TEST_F(Said, NothingToIdsThatTheModelHasNot)
{
    for (int32_t id : {-1, (int32_t)VOCABULARY}) {
        EXPECT_EQ(s.generate(Ids{X, id}), XM_INVALID);
        EXPECT_NE(strstr(s.err.text, "is not in the vocabulary of 12"), nullptr)
            << s.err.text;
    }
    model.result.type.shape.dim[0] = xm_dim_const(7);
    EXPECT_EQ(s.generate(XM_PROMPT_TEXT, "ax"), XM_INVALID);
    EXPECT_STREQ(s.err.text,
                 "the tokenizer.json beside the model gives the token id 7, but the "
                 "model has 7 tokens: the tokenizer belongs to another model");
    EXPECT_EQ(model.runs, 0);
}

TEST_F(Said, NothingToNothing)
{
    EXPECT_EQ(s.generate(Ids{}), XM_INVALID);
    EXPECT_EQ(s.generate(XM_PROMPT_TEXT, ""), XM_INVALID);
    EXPECT_STREQ(s.err.text, "there are no tokens to run");
}

TEST(Session, OfATemplateThatWritesNothingFails)
{
    ScriptedModel model(rambling);
    SmallPackage package("");
    Session s(model, package.p);
    EXPECT_EQ(s.generate(XM_PROMPT_MESSAGES, "[]"), XM_INVALID);
    EXPECT_STREQ(s.err.text,
                 "the model's chat template renders the conversation as an empty text");
}

TEST(Session, WithoutATokenizerHasIds)
{
    ScriptedModel model(saying({A, B, IM_END}, 1));
    Session s(model);
    s.run.max_tokens = 3;
    EXPECT_EQ(s.generate(Ids{X}), XM_OK) << s.err.text;
    EXPECT_EQ(s.ids(), Ids({A, B, IM_END})) << "nobody says which ids end a text";
    EXPECT_EQ(s.pieces.size(), 3u);
    EXPECT_EQ(s.pieces[0].id, A);
    EXPECT_EQ(s.text(), "");
    EXPECT_EQ(s.generate(XM_PROMPT_TEXT, "x"), XM_INVALID);
}

TEST(Session, RefusesADamagedTokenizer)
{
    ScriptedModel model(rambling);
    SmallPackage package;
    package.folder.write("tokenizer.json", "{");
    xm_session *s = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_session_create(&model.base, package.p, &s, &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "tokenizer.json"), nullptr) << err.text;
    EXPECT_EQ(s, nullptr);
}

} // namespace
