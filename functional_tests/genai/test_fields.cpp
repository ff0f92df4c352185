/* SPDX-License-Identifier: Apache-2.0
 *
 * The effect of each field of a generation config on a text. The log-probabilities of a text's
 * tokens identify them: they are compared with those of tokens that the test chooses from the
 * model's logits.
 */
#include <algorithm>
#include <set>

#include "functional_tests/api/language_model.h"
#include "functional_tests/genai/genai_test.h"

namespace
{

/* its answer ends by itself */
const std::string question = "What is the capital of France?";
const std::string months = "January, February,";

/* Changes the logits that follow a text whose first n ids are the prompt's. */
using Change = std::function<void(const Ids &text, size_t n, Floats *row)>;

float
log_prob(const Floats &row, int32_t id)
{
    const float largest = *std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (float x : row)
        sum += std::exp((double)x - (double)largest);
    return (float)((double)row[(size_t)id] - (double)largest - std::log(sum));
}

Ids
encode(const std::string &prompt)
{
    return Json(run({"generate", "-m", ir_folder, "-p", prompt, "-n", "1", "--json"}).out)
        .ids("/prompt_ids");
}

void
expect_near(const Floats &found, const Floats &expected)
{
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); i++)
        EXPECT_NEAR(found[i], expected[i], 1e-3f) << "token " << i;
}

class Fields : public GenAi
{
  protected:
    /* Returns the log-probabilities of the likeliest tokens after a prompt, chosen from the
     * changed logits. */
    static Floats chosen(const std::string &prompt, size_t n, const Change &change)
    {
        const LanguageModel model(ir_folder + "/openvino_model.xml");
        const LanguageModel::Sequence s = model.sequence();
        Ids text = encode(prompt), next = text;
        const size_t first = text.size();
        Floats list;
        for (size_t i = 0; i < n; i++) {
            const Floats row = model.run(s, next, 1).row(0);
            Floats changed = row;
            change(text, first, &changed);
            next = {likeliest(changed)};
            list.push_back(log_prob(row, next[0]));
            text.push_back(next[0]);
        }
        return list;
    }
    static Floats said(const std::string &prompt, const Set &set)
    {
        const Config c = make_config([&](auto *c) {
            SET(logprobs, 1);
            SET(ignore_eos, true);
            set(c);
        });
        const Results r = generate(plain, prompt, c);
        return r ? log_probs_of(r.get()) : Floats();
    }
    static size_t length(const Pipe &p, const std::string &prompt, const Set &set)
    {
        const Results r = generate(p, prompt, make_config(set));
        return r ? generated(metrics_of(r.get())) : SIZE_MAX;
    }
    static void refuses(const Pipe &p, const std::string &prompt, const Set &set,
                        const std::string &says)
    {
        Log log;
        generate(p, prompt, make_config(set), nullptr, UNKNOW_EXCEPTION);
        EXPECT_NE(Log::text().find(says), std::string::npos) << Log::text();
    }
};

/* ---- lengths ---- */

TEST_F(Fields, LimitTheTokens)
{
    const size_t prompt = encode(months).size();
    EXPECT_EQ(length(plain, months, [](auto *c) { SET(max_new_tokens, 5); }), 5u);
    EXPECT_EQ(length(plain, months,
                     [&](auto *c) {
                         SET(max_new_tokens, SIZE_MAX);
                         SET(max_length, prompt + 3);
                     }),
              3u);
    EXPECT_EQ(length(plain, months,
                     [&](auto *c) {
                         SET(max_new_tokens, 4);
                         SET(max_length, prompt);
                     }),
              4u)
        << "max_new_tokens wins";
    refuses(
        plain, months,
        [&](auto *c) {
            SET(max_new_tokens, SIZE_MAX);
            SET(max_length, prompt);
        },
        "max_length");
    refuses(
        plain, months, [](auto *c) { SET(max_new_tokens, 0); }, "max_new_tokens is 0");
    EXPECT_EQ(say(months,
                  [](auto *c) {
                      SET(max_new_tokens, 0);
                      SET(echo, true);
                  }),
              months);
}

TEST_F(Fields, KeepATextFromEnding)
{
    const auto twenty = [](auto *c) { SET(max_new_tokens, 20); };
    const size_t own = length(chat, question, twenty);
    ASSERT_LT(own, 12u);
    EXPECT_GE(length(chat, question,
                     [](auto *c) {
                         SET(max_new_tokens, 20);
                         SET(min_new_tokens, 12);
                     }),
              12u);
    EXPECT_EQ(length(chat, question,
                     [](auto *c) {
                         SET(max_new_tokens, 20);
                         SET(ignore_eos, true);
                     }),
              20u);
}

/* ---- ends ---- */

TEST_F(Fields, EndATextBeforeStopStringsOrBehindThem)
{
    const std::string whole = say(months, nullptr);
    const std::string stop = whole.substr(whole.size() / 2, 3);
    const size_t at = whole.find(stop);
    const char *stops[] = {nullptr, "", stop.c_str(), "never said"};
    const auto stopping = [&](bool keeps) {
        return [&stops, keeps](ov_genai_generation_config *c) {
            EXPECT_EQ(ov_genai_generation_config_set_stop_strings(c, stops, 4), OK);
            SET(include_stop_str_in_output, keeps);
        };
    };
    for (const bool keeps : {false, true}) {
        Watcher w;
        const std::string text = say(months, stopping(keeps), &w);
        EXPECT_EQ(text, whole.substr(0, at) + (keeps ? stop : ""));
        EXPECT_EQ(w.text(), text) << "nothing of it is shown before";
    }
}

/* The stop string lacks the space that its first token begins with. */
TEST_F(Fields, LeaveOutTheBlankBeforeAStopString)
{
    const char *stop[] = {"Paris"};
    Watcher w;
    const auto stopping = [&](auto *c) {
        ov_genai_generation_config_set_stop_strings(c, stop, 1);
    };
    EXPECT_EQ(text_of(generate(chat, question, make_config(stopping), &w).get()),
              "The capital of France is");
    EXPECT_EQ(w.text(), "The capital of France is");
    EXPECT_EQ(text_of(generate(chat, question, make_config([&](auto *c) {
                                   stopping(c);
                                   SET(num_beams, 2);
                               }))
                          .get()),
              "The capital of France is");
    EXPECT_EQ(text_of(generate(chat, question, make_config([&](auto *c) {
                                   stopping(c);
                                   SET(include_stop_str_in_output, true);
                               }))
                          .get()),
              "The capital of France is Paris");
}

/* The id of the third token ends the text after the second. */
TEST_F(Fields, EndATextAtStopIds)
{
    const Json program(run({"generate", "-m", ir_folder, "-p", months, "-n", "8",
                            "--precision", "f32", "--kv", "f32", "--json"})
                           .out);
    const Ids ids = program.ids("/ids");
    ASSERT_GE(ids.size(), 3u);
    const size_t at = (size_t)(std::find(ids.begin(), ids.end(), ids[2]) - ids.begin());
    const int64_t stop[] = {ids[2], 1000000};
    const auto by_list = [&](auto *c) {
        EXPECT_EQ(ov_genai_generation_config_set_stop_token_ids(c, stop, 2), OK);
    };
    const auto by_eos = [&](auto *c) {
        by_list(c);
        SET(eos_token_id, stop[0]);
    };
    EXPECT_EQ(length(plain, months, by_list), at + 1) << "the end counts";
    EXPECT_EQ(length(plain, months, by_eos), at + 1);
    const std::string text = say(months, by_list), whole = say(months, nullptr);
    EXPECT_EQ(text, whole.substr(0, text.size()));
    EXPECT_LT(text.size(), whole.size());
    EXPECT_EQ(text, say(months, [&](auto *c) { SET(max_new_tokens, at + 1); }))
        << "the end is text";
    const auto drawn = [&](auto *c) {
        by_list(c);
        SET(do_sample, true);
        SET(top_k, 1);
        SET(num_return_sequences, 2);
    };
    EXPECT_EQ(say(months, drawn), text + "\n" + text);
    refuses(
        plain, months, [&](auto *c) { SET(eos_token_id, stop[0]); }, "eos_token_id");
}

/* ---- results ---- */

TEST_F(Fields, PutThePromptInFront)
{
    Watcher w;
    const std::string answer = say(months, nullptr);
    EXPECT_EQ(say(
                  months, [](auto *c) { SET(echo, true); }, &w),
              months + answer);
    EXPECT_EQ(w.text(), months + answer);
    EXPECT_EQ(w.pieces.at(0), months);
}

/* As in GenAI: the prompt, once, for any number of texts. */
TEST_F(Fields, PutThePromptAloneWithoutNewTokens)
{
    const Set several[] = {[](auto *c) { SET(num_return_sequences, 1); },
                           [](auto *c) {
                               SET(do_sample, true);
                               SET(num_return_sequences, 3);
                           },
                           [](auto *c) {
                               SET(num_beams, 4);
                               SET(num_return_sequences, 2);
                           }};
    for (const Set &set : several) {
        const Config c = make_config([&](auto *c) {
            set(c);
            SET(echo, true);
            SET(max_new_tokens, 0);
        });
        EXPECT_EQ(text_of(generate(plain, "Paris is the", c).get()), "Paris is the");
    }
}

TEST_F(Fields, GiveProbabilitiesOfTheLogits)
{
    const auto nothing = [](const Ids &, size_t, Floats *) {};
    expect_near(said(months, [](auto *) {}), chosen(months, 8, nothing));
    const Results r = generate(plain, months, make_config());
    EXPECT_TRUE(log_probs_of(r.get()).empty());
}

TEST_F(Fields, GiveSeveralTextsThatAreThoseOfTheirSeeds)
{
    const auto draw = [](size_t seed, size_t n) {
        return [=](ov_genai_generation_config *c) {
            SET(do_sample, true);
            SET(temperature, 1.5f);
            SET(rng_seed, seed);
            SET(num_return_sequences, n);
        };
    };
    std::string joined;
    for (size_t i = 0; i < 3; i++)
        joined += (i ? "\n" : "") + say(months, draw(7 + i, 1));
    EXPECT_EQ(say(months, draw(7, 3)), joined);
    const Pipe reference = open_pipe(folder->path, "REFERENCE");
    const auto two = [&](auto *c) {
        draw(7, 2)(c);
        SET(max_new_tokens, 3);
    };
    EXPECT_EQ(text_of(generate(reference, months, make_config(two)).get()),
              say(months, two))
        << "one after the other, where they cannot be made together";
    Watcher w;
    generate(plain, months, make_config(draw(7, 2)), &w, UNKNOW_EXCEPTION);
}

/* ---- choice of the next token ---- */

TEST_F(Fields, DivideWhatHasOccurred)
{
    const float penalty = 1.7f;
    expect_near(said(months, [&](auto *c) { SET(repetition_penalty, penalty); }),
                chosen(months, 8, [&](const Ids &text, size_t, Floats *row) {
                    for (const int32_t id : std::set<int32_t>(text.begin(), text.end())) {
                        float &x = (*row)[(size_t)id];
                        x = x > 0.0f ? x / penalty : x * penalty;
                    }
                }));
}

TEST_F(Fields, TakeAwayFromWhatIsNewAndHasOccurred)
{
    const float once = 1.25f, each = 0.75f;
    expect_near(said(months,
                     [&](auto *c) {
                         SET(presence_penalty, once);
                         SET(frequency_penalty, each);
                     }),
                chosen(months, 8, [&](const Ids &text, size_t n, Floats *row) {
                    const Ids fresh(text.begin() + (long)n, text.end());
                    for (const int32_t id : std::set<int32_t>(fresh.begin(), fresh.end()))
                        (*row)[(size_t)id] -= once;
                    for (const int32_t id : fresh)
                        (*row)[(size_t)id] -= each;
                }));
}

void
bar_pairs(const Ids &text, Floats *row)
{
    for (size_t i = 0; i + 1 < text.size(); i++)
        if (text[i] == text.back())
            (*row)[(size_t)text[i + 1]] = -INFINITY;
}

TEST_F(Fields, LetPairsOccurOnce)
{
    expect_near(said(months, [](auto *c) { SET(no_repeat_ngram_size, 2); }),
                chosen(months, 8, [](const Ids &text, size_t, Floats *row) {
                    bar_pairs(text, row);
                }));
}

TEST_F(Fields, SampleAsTheSeedSays)
{
    const auto draw = [](size_t seed) {
        return [=](ov_genai_generation_config *c) {
            SET(do_sample, true);
            SET(temperature, 1.5f);
            SET(rng_seed, seed);
        };
    };
    std::set<std::string> texts;
    for (size_t seed = 0; seed < 5; seed++) {
        texts.insert(say(months, draw(seed)));
        EXPECT_EQ(say(months, draw(seed)), say(months, draw(seed)));
    }
    EXPECT_GT(texts.size(), 2u);
}

/* Each of these settings leaves only the likeliest token. */
TEST_F(Fields, NarrowWhatIsSampled)
{
    const std::string greedy = say(months, nullptr);
    const Set narrow[] = {
        [](auto *c) { SET(top_k, 1); },
        [](auto *c) { SET(top_p, 1e-6f); },
        [](auto *c) { SET(min_p, 0.999999f); },
        [](auto *c) { SET(temperature, 1e-3f); },
    };
    for (const Set &set : narrow) {
        EXPECT_EQ(say(months,
                      [&](auto *c) {
                          SET(do_sample, true);
                          SET(temperature, 3.0f);
                          SET(rng_seed, 3);
                          set(c);
                      }),
                  greedy);
    }
    EXPECT_EQ(say(months,
                  [](auto *c) {
                      SET(temperature, 5.0f);
                      SET(top_k, 0);
                      SET(top_p, 7.0f);
                      SET(min_p, 3.0f);
                      SET(rng_seed, 9);
                  }),
              greedy)
        << "without do_sample they have no say";
}

/* ---- drafted tokens ---- */

/* Returns the number of runs of the model, from the duration of each and of all. */
size_t
runs(const Results &r)
{
    const Metrics m = metrics_of(r.get());
    const Value all = value(m, ov_genai_perf_metrics_get_inference_duration);
    return (size_t)std::lround(all.mean / value(m, ov_genai_perf_metrics_get_ipot).mean);
}

TEST_F(Fields, GuessTokensForTheSameTextInFewerRuns)
{
    const std::string again =
        "January, February, March. January, February, March. January,";
    const auto forty = [](auto *c) {
        SET(max_new_tokens, 40);
        SET(ignore_eos, true);
    };
    const auto guessing = [&](auto *c) {
        forty(c);
        SET(num_assistant_tokens, 4);
        SET(max_ngram_size, 2);
    };
    ov_genai_llm_pipeline *p = nullptr;
    ASSERT_EQ(ov_genai_llm_pipeline_create(
                  folder->path.c_str(), "CPU", 6, &p, "INFERENCE_PRECISION_HINT", "f32",
                  "KV_CACHE_PRECISION", "f32", "prompt_lookup", "YES"),
              OK);
    const Pipe looks_up(p);
    const Results without = generate(plain, again, make_config(forty));
    Watcher w;
    const Results with = generate(plain, again, make_config(guessing), &w);
    const Results by_property = generate(looks_up, again, make_config(forty));
    EXPECT_EQ(runs(without), 40u);
    for (const Results *r : {&with, &by_property}) {
        EXPECT_EQ(text_of(r->get()), text_of(without.get()));
        EXPECT_EQ(generated(metrics_of(r->get())), 40u);
        EXPECT_LT(runs(*r), 40u);
    }
    EXPECT_EQ(w.text(), text_of(without.get()));
    EXPECT_EQ(say(months, guessing), say(months, forty));
    const Pipe reference = open_pipe(folder->path, "REFERENCE");
    const auto six = [&](auto *c) {
        guessing(c);
        SET(max_new_tokens, 6);
    };
    EXPECT_EQ(
        text_of(generate(reference, again, make_config(six)).get()),
        text_of(without.get())
            .substr(0, text_of(generate(plain, again, make_config(six)).get()).size()));
}

/* Fields of beam search and of draft models have no effect without either. */
TEST_F(Fields, HaveNoSayWithoutWhatTheyAreFor)
{
    const std::string greedy = say(months, nullptr);
    const Set idle[] = {
        [](auto *c) { SET(num_beams, 0); },
        [](auto *c) {
            SET(num_beam_groups, 3);
            SET(diversity_penalty, 2.0f);
            SET(length_penalty, 9.0f);
        },
        [](auto *c) { SET(num_assistant_tokens, 4); },
        [](auto *c) { SET(assistant_confidence_threshold, 0.5f); },
    };
    for (const Set &set : idle)
        EXPECT_EQ(say(months, set), greedy);
    const auto drawn = [](auto *c) {
        SET(do_sample, true);
        SET(rng_seed, 3);
    };
    EXPECT_EQ(say(months,
                  [&](auto *c) {
                      drawn(c);
                      SET(num_assistant_tokens, 4);
                      SET(max_ngram_size, 2);
                  }),
              say(months, drawn));
}

/* ---- files ---- */

TEST_F(Fields, ComeFromAFile)
{
    Folder files("genai_config");
    files.write("some.json",
                R"({"max_new_tokens":3,"echo":true,"stop_strings":"zz","unknown":[1]})");
    ov_genai_generation_config *c = nullptr;
    ASSERT_EQ(
        ov_genai_generation_config_create_from_json((files / "some.json").c_str(), &c),
        OK);
    const Config owner(c);
    const Results r = generate(plain, months, owner);
    EXPECT_EQ(text_of(r.get()).substr(0, months.size()), months);
    EXPECT_EQ(generated(metrics_of(r.get())), 3u);
    c = nullptr;
    EXPECT_EQ(
        ov_genai_generation_config_create_from_json((files / "none.json").c_str(), &c),
        UNKNOW_EXCEPTION);
    EXPECT_EQ(c, nullptr);
}

/* ---- combinations of fields ---- */

TEST_F(Fields, ThatDoNotGoTogetherAreRefusedByAll)
{
    static const int64_t negative = -3;
    const struct {
        Set set;
        const char *says;
    } cases[] = {
        {[](auto *c) { SET(min_new_tokens, 9); }, "min_new_tokens"},
        {[](auto *c) { SET(repetition_penalty, 0.0f); }, "repetition_penalty"},
        {[](auto *c) { SET(presence_penalty, 2.5f); }, "presence_penalty"},
        {[](auto *c) { SET(frequency_penalty, -2.5f); }, "frequency_penalty"},
        {[](auto *c) {
             SET(do_sample, true);
             SET(temperature, 0.0f);
         },
         "temperature"},
        {[](auto *c) {
             SET(do_sample, true);
             SET(temperature, INFINITY);
         },
         "temperature is inf, expected a finite number"},
        {[](auto *c) { SET(num_beams, 100000); }, "num_beams is 100000"},
        {[](auto *c) {
             SET(do_sample, true);
             SET(top_p, 0.0f);
         },
         "top_p"},
        {[](auto *c) {
             SET(do_sample, true);
             SET(num_beams, 2);
         },
         "num_beams"},
        {[](auto *c) {
             SET(num_beams, 2);
             SET(num_return_sequences, 3);
         },
         "num_return_sequences"},
        {[](auto *c) {
             SET(num_beams, 2);
             SET(repetition_penalty, 1.1f);
         },
         "repetition_penalty"},
        {[](auto *c) {
             SET(num_beams, 4);
             SET(num_beam_groups, 2);
         },
         "diversity_penalty"},
        {[](auto *c) { SET(eos_token_id, 5); }, "eos_token_id"},
        {[](auto *c) { SET(num_return_sequences, 2); }, "do_sample"},
        {[](auto *c) {
             SET(assistant_confidence_threshold, 0.5f);
             SET(num_assistant_tokens, 3);
         },
         "assist"},
        {[](auto *c) {
             SET(num_beams, 2);
             SET(presence_penalty, 0.5f);
         },
         "presence_penalty"},
        {[](auto *c) { ov_genai_generation_config_set_stop_token_ids(c, &negative, 1); },
         "stop_token_ids"},
    };
    for (const auto &one : cases) {
        const Config c = make_config(one.set);
        EXPECT_EQ(ov_genai_generation_config_validate(c.get()), UNKNOW_EXCEPTION)
            << one.says;
        EXPECT_EQ(ov_genai_llm_pipeline_set_generation_config(plain.get(), c.get()),
                  UNKNOW_EXCEPTION)
            << one.says;
        refuses(plain, months, one.set, one.says);
    }
    const Config endless = make_config([](auto *c) { SET(max_new_tokens, SIZE_MAX); });
    EXPECT_EQ(ov_genai_generation_config_validate(endless.get()), UNKNOW_EXCEPTION)
        << "alone it has no end";
    EXPECT_EQ(ov_genai_generation_config_validate(make_config().get()), OK);
}

} // namespace
