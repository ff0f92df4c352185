/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search on models with sequences, and on a request that computes all beams.
 */
#include <algorithm>
#include <numeric>
#include <set>

#include "functional_tests/genai/genai_test.h"

namespace
{

const std::string months = "January, February,";
const std::string question = "What is the capital of France?";

class Beams : public GenAi
{
  protected:
    /* Searches for texts of exactly 8 tokens. */
    static Results search(const Pipe &p, const Set &set,
                          const std::string &prompt = months)
    {
        return generate(p, prompt, make_config([&](auto *c) {
                            SET(ignore_eos, true);
                            SET(logprobs, 1);
                            set(c);
                        }));
    }
    static double sum(const Results &r, size_t text)
    {
        const Floats list = log_probs_of(r.get(), text);
        return std::accumulate(list.begin(), list.end(), 0.0);
    }
};

Set
beams(size_t n, size_t returned)
{
    return [=](ov_genai_generation_config *c) {
        SET(num_beams, n);
        SET(num_return_sequences, returned);
    };
}

TEST_F(Beams, AreAtLeastAsLikelyAsTheLikeliestTokens)
{
    const Results greedy = search(plain, [](auto *) {});
    const Results r = search(plain, beams(4, 4));
    EXPECT_GE(sum(r, 0), sum(greedy, 0) - 1e-3);
    for (size_t i = 1; i < 4; i++) {
        EXPECT_EQ(log_probs_of(r.get(), i).size(), 8u);
        EXPECT_LE(sum(r, i), sum(r, i - 1) + 1e-4) << "the best come first";
    }
    EXPECT_EQ(generated(metrics_of(r.get())), 8u) << "of a text";
}

TEST_F(Beams, ComeOutAsManyAsAreWanted)
{
    const std::string all = text_of(search(plain, beams(4, 3)).get());
    const std::string best = text_of(search(plain, beams(4, 1)).get());
    EXPECT_EQ(all.substr(0, best.size() + 1), best + "\n");
    EXPECT_NE(all, best + "\n" + best + "\n" + best);
}

TEST_F(Beams, AreTheSameWithoutSequences)
{
    const Pipe reference = open_pipe(folder->path, "REFERENCE");
    const auto many = [](auto *c) {
        beams(8, 8)(c);
        SET(length_penalty, 0.0f);
        SET(max_new_tokens, 6);
    };
    const std::string open = "A quiet"; /* has many likely continuations */
    const Results here = search(plain, many, open), there = search(reference, many, open);
    EXPECT_EQ(text_of(here.get()), text_of(there.get()));
    for (size_t i = 0; i < 8; i++)
        EXPECT_NEAR(sum(here, i), sum(there, i), 1e-3);
}

TEST_F(Beams, OfGroupsBeginDifferently)
{
    const Results r = search(plain, [](auto *c) {
        beams(4, 4)(c);
        SET(num_beam_groups, 4);
        SET(diversity_penalty, 100.0f);
    });
    std::set<float> first;
    for (size_t i = 0; i < 4; i++)
        first.insert(log_probs_of(r.get(), i).at(0));
    EXPECT_EQ(first.size(), 4u);
}

TEST_F(Beams, RepeatNoNgrams)
{
    const std::string text = text_of(search(plain, [](auto *c) {
                                         beams(3, 1)(c);
                                         SET(no_repeat_ngram_size, 1);
                                         SET(max_new_tokens, 20);
                                     }).get());
    EXPECT_EQ(std::count(text.begin(), text.end(), ','), 0)
        << "the prompt has it: " << text;
}

TEST_F(Beams, EndAsTheLengthPenaltySays)
{
    const auto length = [](float penalty, StopCriteria stop) {
        return text_of(generate(chat, question, make_config([=](auto *c) {
                                    beams(4, 1)(c);
                                    SET(max_new_tokens, 30);
                                    SET(length_penalty, penalty);
                                    SET(stop_criteria, stop);
                                }))
                           .get())
            .size();
    };
    for (const StopCriteria stop : {EARLY, HEURISTIC, NEVER})
        EXPECT_LE(length(-30.0f, stop), length(30.0f, stop)) << stop;
    EXPECT_LT(length(-30.0f, NEVER), length(30.0f, NEVER));
    EXPECT_LE(length(30.0f, EARLY), length(30.0f, NEVER));
}

TEST_F(Beams, StopAtStringsAndIds)
{
    const char *stop[] = {", "};
    const std::string text =
        text_of(generate(plain, "Monday", make_config([&](auto *c) {
                             beams(3, 1)(c);
                             ov_genai_generation_config_set_stop_strings(c, stop, 1);
                         }))
                    .get());
    EXPECT_EQ(text.find(", "), std::string::npos) << text;
    const std::string answer = text_of(generate(chat, question, make_config([](auto *c) {
                                                    beams(4, 1)(c);
                                                    SET(max_new_tokens, 30);
                                                }))
                                           .get());
    EXPECT_EQ(answer, "The capital of France is Paris.");
}

TEST_F(Beams, AnswerInChats)
{
    const Config c = make_config([](auto *c) {
        beams(3, 2)(c);
        SET(echo, true);
        SET(max_new_tokens, 30);
    });
    const Config one = make_config([](auto *c) { SET(echo, true); });
    ASSERT_EQ(ov_genai_llm_pipeline_start_chat(chat.get()), OK);
    const std::string both = text_of(generate(chat, question, c).get());
    const std::string next = text_of(generate(chat, "Why?", one).get());
    ASSERT_EQ(ov_genai_llm_pipeline_finish_chat(chat.get()), OK);
    const std::string begin = "user\n" + question + "\nassistant\n";
    const std::string first = both.substr(0, both.find("\nuser\n", begin.size()));
    EXPECT_EQ(next.substr(0, first.size() + 1), first + "\n") << "the best is kept";
}

TEST_F(Beams, AreNotStreamed)
{
    Watcher w;
    Log log;
    generate(plain, months, make_config(beams(2, 1)), &w, UNKNOW_EXCEPTION);
    EXPECT_NE(Log::text().find("streamer"), std::string::npos);
    EXPECT_TRUE(w.pieces.empty());
}

} // namespace
