/* SPDX-License-Identifier: Apache-2.0
 *
 * A single text with logits that the test makes: the tokens it chooses, when it ends, what it
 * gives out.
 */
#include "plugin/pipeline/text.h"

#include <cmath>
#include <limits>
#include <map>

#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, HASH = 3, C3 = 4, A9 = 5, X = 7;

/* A text with its options, and the pieces that it gave out. */
class OneText : public ::testing::Test
{
  protected:
    OneText()
    {
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_TOKENIZER, &err), XM_OK);
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_CHAT_TEMPLATE, &err), XM_OK);
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_GENERATION, &err), XM_OK);
        asked.max_tokens = 100;
        asked.ctx = this;
        asked.on_piece = [](const xm_piece *piece, void *ctx) {
            OneText *self = static_cast<OneText *>(ctx);
            self->pieces.push_back(std::string(piece->text, piece->n));
            self->shown[piece->part] += self->pieces.back();
            return --self->pieces_left != 0;
        };
        sampling.top_p = 1.0f;
    }
    ~OneText() override
    {
        drop();
        xm_sampler_scratch_free(scratch);
        xm_sampler_free(kept);
    }
    void drop()
    {
        xm_text_free(&text);
        xm_generation_result_free(&out);
        pieces.clear();
        shown.clear();
    }
    xm_status begin(const Ids &prompt)
    {
        const xm_text_source from = {has_package ? package.p : nullptr, &asked, &sampling,
                                     keeps ? &kept : nullptr};
        drop();
        err = {};
        const xm_status s =
            xm_text_begin(&text, &from, prompt.data(), prompt.size(), &out, &err);
        if (s == XM_OK) {
            EXPECT_EQ(xm_text_begin_sampling(&text, VOCABULARY, &err), XM_OK);
        }
        return s;
    }
    int32_t choose(const std::vector<float> &row)
    {
        int32_t id = -1;
        EXPECT_EQ(xm_text_choose(&text, scratch, row.data(), row.size(), &id, &err),
                  XM_OK)
            << err.text;
        return id;
    }
    void take(const std::vector<float> &row)
    {
        ASSERT_FALSE(text.is_over);
        EXPECT_EQ(xm_text_take(&text, choose(row), &err), XM_OK) << err.text;
    }
    /* Feeds these tokens until the text is over, then ends it. */
    void say(const Ids &ids)
    {
        for (size_t i = 0; i < ids.size() && !text.is_over; i++)
            take(only(ids[i]));
        EXPECT_EQ(xm_text_end(&text, &err), XM_OK) << err.text;
    }
    Ids ids() const
    {
        return Ids(out.ids.ids, out.ids.ids + out.ids.n);
    }
    Ids tokens() const
    {
        return Ids(text.tokens.ids, text.tokens.ids + text.tokens.n);
    }
    std::string whole() const
    {
        return std::string(xm_strbuf_text(&out.text), out.text.n);
    }

    SmallPackage package;
    xm_generation asked = {};
    xm_sampling sampling = {};
    xm_sampler *kept = nullptr;
    xm_sampler_scratch *scratch = xm_sampler_scratch_create(VOCABULARY);
    bool has_package = true, keeps = false;
    xm_text text = {};
    xm_generation_result out = {};
    std::vector<std::string> pieces;
    std::map<int, std::string> shown;
    int pieces_left = 0;
    xm_error err = {};
};

TEST_F(OneText, EndsWithAnIdThatIsNoTokenOfIt)
{
    ASSERT_EQ(begin({X, B}), XM_OK);
    say({A, C, IM_END});
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_STOP);
    EXPECT_EQ(ids(), Ids({A, C}));
    EXPECT_EQ(tokens(), Ids({X, B, A, C})) << "what the model is fed";
    EXPECT_EQ(whole(), "ac");
    EXPECT_EQ(xm_text_left(&text), 0u);
}

TEST_F(OneText, EndsAtItsLengthOrAtTheContext)
{
    asked.max_tokens = 3;
    ASSERT_EQ(begin({X, X}), XM_OK);
    take(only(A));
    EXPECT_EQ(xm_text_left(&text), 2u);
    take(only(A));
    EXPECT_FALSE(text.is_over);
    take(only(A));
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_LENGTH);

    asked.context = 4;
    ASSERT_EQ(begin({X, X}), XM_OK);
    say({A, B, C});
    EXPECT_EQ(ids(), Ids({A, B}));
    EXPECT_EQ(out.finish, XM_FINISH_CONTEXT);

    asked.context = 2;
    EXPECT_EQ(begin({X, X}), XM_INVALID);
    EXPECT_STREQ(err.text, "the prompt has 2 tokens, which leaves no room in a "
                           "context of 2");
}

TEST_F(OneText, OfNoTokensIsOverAtOnce)
{
    asked.max_tokens = 0;
    ASSERT_EQ(begin({X}), XM_OK);
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_LENGTH);
}

TEST_F(OneText, HoldsBackWhatMayBeAStopString)
{
    const xm_slice stop = xm_slice_of("b#", 2);
    asked.stops = &stop;
    asked.n_stops = 1;
    ASSERT_EQ(begin({X}), XM_OK);
    take(only(A));
    take(only(B));
    EXPECT_EQ(whole(), "a") << "b may begin it";
    take(only(B));
    EXPECT_EQ(whole(), "ab");
    take(only(HASH));
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_STOP);
    EXPECT_EQ(whole(), "ab");

    ASSERT_EQ(begin({X}), XM_OK);
    say({A, B});
    EXPECT_EQ(whole(), "ab") << "the end decides";
    EXPECT_EQ(pieces, std::vector<std::string>({"a", "", "b"}));
}

TEST_F(OneText, ShowsWholeCharacters)
{
    ASSERT_EQ(begin({X}), XM_OK);
    say({C3, A9, B, C3});
    const std::vector<std::string> want = {"", "", std::string("\xC3\xA9") + "b", "",
                                           "\xEF\xBF\xBD"};
    EXPECT_EQ(pieces, want);
}

TEST_F(OneText, OfAChatKeepsThoughtsApart)
{
    asked.is_answer = true;
    ASSERT_EQ(begin({X, THINK}), XM_OK);
    say({A, END_THINK, B});
    EXPECT_EQ(shown[XM_ANSWER_THOUGHT], "a");
    EXPECT_EQ(shown[XM_ANSWER_TEXT], "b");
    EXPECT_EQ(whole(), "b");
}

TEST_F(OneText, OfAChatHasTheCallsOfTools)
{
    const xm_slice stop = xm_slice_of("b#", 2);
    asked.is_answer = true;
    asked.stops = &stop;
    asked.n_stops = 1;
    ASSERT_EQ(begin({X}), XM_OK);
    for (const int32_t id :
         Ids({A, B, TOOL_CALL, CALL_OF_F, END_TOOL_CALL, TOOL_CALL, CALL_OF_F,
              END_TOOL_CALL, TOOL_CALL, A, END_TOOL_CALL, C}))
        ASSERT_EQ(xm_text_take(&text, id, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_text_end(&text, &err), XM_OK);
    ASSERT_EQ(out.calls.n, 2u);
    for (size_t i = 0; i < 2; i++) {
        EXPECT_STREQ(out.calls.list[i].name, "f");
        EXPECT_STREQ(out.calls.list[i].arguments, "{}");
    }
    const std::string call = "{\"name\": \"f\", \"arguments\": {}}";
    EXPECT_EQ(shown[XM_ANSWER_CALL], call + call);
    EXPECT_EQ(whole(), "ab<tool_call>a</tool_call>c") << "what is no call is text";
    EXPECT_EQ(pieces[4], "b")
        << "what may have begun a stop string comes before the call";
    EXPECT_EQ(pieces[5], call);
    EXPECT_FALSE(text.is_over);
}

/* A tool call that the length limit cuts off counts if it is complete; else it is plain text. */
TEST_F(OneText, MayEndInACall)
{
    asked.is_answer = true;
    ASSERT_EQ(begin({X}), XM_OK);
    ASSERT_EQ(xm_text_take(&text, TOOL_CALL, &err), XM_OK);
    ASSERT_EQ(xm_text_take(&text, CALL_OF_F, &err), XM_OK);
    ASSERT_EQ(xm_text_end(&text, &err), XM_OK);
    EXPECT_EQ(out.calls.n, 1u);
    EXPECT_EQ(whole(), "");
    ASSERT_EQ(begin({X}), XM_OK);
    ASSERT_EQ(xm_text_take(&text, TOOL_CALL, &err), XM_OK);
    ASSERT_EQ(xm_text_take(&text, A, &err), XM_OK);
    ASSERT_EQ(xm_text_end(&text, &err), XM_OK);
    EXPECT_EQ(out.calls.n, 0u);
    EXPECT_EQ(whole(), "<tool_call>a");
}

TEST_F(OneText, EveryAllocationOfACallMayFail)
{
    asked.is_answer = true;
    for (uint64_t n = 1;; n++) {
        ASSERT_EQ(begin({X}), XM_OK);
        xm_error why = {};
        xm_status s = XM_OK;
        xm_fail_allocation(n);
        for (const int32_t id : Ids({TOOL_CALL, CALL_OF_F, END_TOOL_CALL}))
            s = s == XM_OK ? xm_text_take(&text, id, &why) : s;
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ASSERT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << n;
        if (!seen)
            break;
    }
}

TEST_F(OneText, BeginsWithAnEchoThatMayEndIt)
{
    asked.echo = true;
    ASSERT_EQ(begin({X, B}), XM_OK);
    EXPECT_EQ(pieces, std::vector<std::string>({"xb"}));
    say({A, IM_END});
    EXPECT_EQ(whole(), "xba");

    pieces_left = 1;
    ASSERT_EQ(begin({X, B}), XM_OK);
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_CANCELLED);
}

TEST_F(OneText, IsOverWhenNobodyWantsItsPieces)
{
    pieces_left = 2;
    ASSERT_EQ(begin({X}), XM_OK);
    take(only(A));
    EXPECT_FALSE(text.is_over);
    take(only(B));
    EXPECT_TRUE(text.is_over);
    EXPECT_EQ(out.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(ids(), Ids({A, B}));
    pieces_left = 1;
    ASSERT_EQ(begin({X}), XM_OK);
    asked.keep_end = true;
    take(only(IM_END));
    EXPECT_EQ(out.finish, XM_FINISH_STOP) << "an end is an end";
}

TEST_F(OneText, NothingEndsItBeforeTheLeastLength)
{
    asked.min_tokens = 2;
    ASSERT_EQ(begin({X}), XM_OK);
    say({IM_END, IM_END, IM_END});
    EXPECT_EQ(ids(), Ids({A, A})) << "the lowest of equal ones";
    EXPECT_EQ(out.finish, XM_FINISH_STOP);
}

/* A text has its own random numbers and penalties: a text in between changes nothing. */
TEST_F(OneText, DrawsWithItsOwnSeed)
{
    sampling.temperature = 1.0f;
    sampling.repetition_penalty = 1.3f;
    sampling.seed = 17;
    asked.ignore_ends = true;
    has_package = false;
    std::vector<Ids> runs;
    for (uint64_t seed : {17, 17, 18}) {
        sampling.seed = seed;
        ASSERT_EQ(begin({X}), XM_OK);
        for (int i = 0; i < 40; i++)
            take(rambling(tokens()));
        runs.push_back(ids());
    }
    EXPECT_EQ(runs[0], runs[1]);
    EXPECT_NE(runs[0], runs[2]);
}

TEST_F(OneText, MayContinueTheRandomNumbersOfTheOneBefore)
{
    const std::vector<float> even(VOCABULARY, 0.0f);
    sampling.temperature = 1.0f;
    asked.ignore_ends = true;
    has_package = false;
    asked.max_tokens = 20;
    ASSERT_EQ(begin({X}), XM_OK);
    while (!text.is_over)
        take(even);
    const Ids both = ids();
    keeps = true;
    asked.max_tokens = 10;
    Ids joined;
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(begin({X}), XM_OK);
        while (!text.is_over)
            take(even);
        const Ids half = ids();
        joined.insert(joined.end(), half.begin(), half.end());
    }
    EXPECT_EQ(joined, both);
}

TEST_F(OneText, NotesTheChosenAndTheLikeliestTokens)
{
    asked.wants_log_probs = true;
    asked.n_likeliest = 3;
    ASSERT_EQ(begin({X}), XM_OK);
    std::vector<float> row(VOCABULARY, -std::numeric_limits<float>::infinity());
    row[B] = row[C] = 1.0f;
    row[X] = 1.0f + std::log(2.0f);
    take(row);
    row[A] = 1.0f; /* B, C and A are equal: the lowest two ids are listed */
    take(row);
    take(only(IM_END));
    ASSERT_EQ(out.log_probs.n, 2u) << "the end has none";
    EXPECT_NEAR(out.log_probs.values[0], std::log(0.5), 1e-6);
    EXPECT_NEAR(out.log_probs.values[1], std::log(0.4), 1e-6);
    ASSERT_EQ(out.likeliest.n, 6u);
    const int32_t want[] = {X, B, C, X, A, B};
    const double p[] = {0.5, 0.25, 0.25, 0.4, 0.2, 0.2};
    for (int i = 0; i < 6; i++) {
        EXPECT_EQ(out.likeliest.values[i].id, want[i]) << i;
        EXPECT_NEAR(out.likeliest.values[i].log_prob, std::log(p[i]), 1e-6) << i;
    }
}

TEST_F(OneText, HasNoMoreLikelyTokensThanTheVocabulary)
{
    asked.n_likeliest = VOCABULARY + 1;
    ASSERT_EQ(begin({X}), XM_OK);
    take(only(C));
    EXPECT_EQ(out.log_probs.n, 0u);
    ASSERT_EQ(out.likeliest.n, (size_t)VOCABULARY + 1);
    EXPECT_EQ(out.likeliest.values[0].id, C);
    EXPECT_EQ(out.likeliest.values[1].id, A);
    EXPECT_EQ(out.likeliest.values[VOCABULARY - 1].id, SPECIAL);
    EXPECT_EQ(out.likeliest.values[VOCABULARY].id, -1);
}

TEST_F(OneText, ADeviceChoosesOnlyWhatItCan)
{
    xm_token_choice how = {};
    xm_seen_tokens seen = {};
    ASSERT_EQ(begin({X}), XM_OK);
    EXPECT_TRUE(xm_text_on_device(&text, &how, &seen));
    EXPECT_TRUE(xm_text_will_be_on_device(&text, VOCABULARY, &how));
    EXPECT_FALSE(xm_text_will_be_on_device(&text, UINT64_MAX, &how)) << "not known";
    xm_text_chosen_on_device(&text);
    EXPECT_EQ(xm_text_take(&text, B, &err), XM_OK);
    EXPECT_EQ(ids(), Ids({B}));
    asked.wants_log_probs = true;
    EXPECT_FALSE(xm_text_on_device(&text, &how, &seen));
    asked.wants_log_probs = false;
    asked.n_likeliest = 1;
    EXPECT_FALSE(xm_text_on_device(&text, &how, &seen));
    asked.n_likeliest = 0;
    asked.guesses = 1;
    EXPECT_FALSE(xm_text_on_device(&text, &how, &seen));
    asked.guesses = 0;
    asked.min_tokens = 2;
    EXPECT_FALSE(xm_text_on_device(&text, &how, &seen)) << "one token so far";
    EXPECT_TRUE(xm_text_will_be_on_device(&text, VOCABULARY, &how)) << "later it can";
    EXPECT_EQ(xm_text_take(&text, B, &err), XM_OK);
    EXPECT_TRUE(xm_text_on_device(&text, &how, &seen));
}

/* A token chosen on the device uses up a random number, so that the host's next choice takes the
 * one after it. */
TEST_F(OneText, ADeviceThatChoosesTakesARandomNumber)
{
    const std::vector<float> even(VOCABULARY, 0.0f);
    sampling.temperature = 1.0f;
    asked.ignore_ends = true;
    has_package = false;
    ASSERT_EQ(begin({X}), XM_OK);
    for (int i = 0; i < 8; i++)
        take(even);
    const Ids want = ids();
    ASSERT_EQ(begin({X}), XM_OK);
    for (size_t i = 0; i < want.size(); i += 2) {
        xm_text_chosen_on_device(&text);
        EXPECT_EQ(xm_text_take(&text, want[i], &err), XM_OK);
        take(even);
    }
    EXPECT_EQ(ids(), want);
}

TEST_F(OneText, ADeviceKnowsTheIdsThatNeverCome)
{
    xm_token_choice how = {};
    xm_seen_tokens seen = {};
    ASSERT_EQ(begin({X}), XM_OK);
    ASSERT_TRUE(xm_text_on_device(&text, &how, &seen));
    EXPECT_FALSE(how.adjusts);
    EXPECT_EQ(seen.n_barred, 0u);
    ASSERT_TRUE(xm_token_list_add(&package.p->generation.suppressed, B));
    ASSERT_TRUE(xm_text_on_device(&text, &how, &seen));
    EXPECT_TRUE(how.adjusts);
    ASSERT_EQ(seen.n_barred, 1u);
    EXPECT_EQ(seen.barred[0], B);
    how.adjusts = false;
    ASSERT_TRUE(xm_text_will_be_on_device(&text, VOCABULARY, &how));
    EXPECT_TRUE(how.adjusts);
    EXPECT_NE(choose(only(B)), B) << "nor here";
}

TEST_F(OneText, EveryAllocationMayFail)
{
    const xm_slice stop = xm_slice_of("b#", 2);
    asked.stops = &stop;
    asked.n_stops = asked.n_likeliest = 1;
    asked.wants_log_probs = asked.is_answer = asked.echo = true;
    sampling.repetition_penalty = 1.2f;
    bool seen = true;
    uint64_t n = 1;
    for (; seen; n++) {
        const xm_text_source from = {package.p, &asked, &sampling, nullptr};
        const Ids prompt = {X, THINK};
        int32_t id = 0;
        drop();
        err = {};
        xm_fail_allocation(n);
        xm_status s =
            xm_text_begin(&text, &from, prompt.data(), prompt.size(), &out, &err);
        if (s == XM_OK)
            s = xm_text_begin_sampling(&text, VOCABULARY, &err);
        for (int32_t next : Ids{A, END_THINK, B, C}) {
            const std::vector<float> row = only(next);
            if (s == XM_OK)
                s = xm_text_choose(&text, scratch, row.data(), row.size(), &id, &err);
            if (s == XM_OK)
                s = xm_text_take(&text, id, &err);
        }
        if (s == XM_OK)
            s = xm_text_end(&text, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << n << ": " << err.text;
        ASSERT_LT(n, 100u);
    }
    EXPECT_GT(n, 8u);
    EXPECT_EQ(whole(), "x<think>bc") << "the last had all";
}

} // namespace
