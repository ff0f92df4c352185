/* SPDX-License-Identifier: Apache-2.0
 *
 * Generation configs: defaults, files, and which values are allowed together.
 */
#include <cmath>
#include <functional>
#include <numeric>

#include "functional_tests/common/folder.h"
#include "unit_tests/genai/genai_test.h"

#include "runtime/util/memory.h"

namespace
{

Config
config()
{
    ov_genai_generation_config *c = nullptr;
    EXPECT_EQ(ov_genai_generation_config_create(&c), OK);
    return Config(c);
}

TEST(GenerationConfig, HasDefaults)
{
    const Config c = config();
    size_t most = 0;
    EXPECT_EQ(ov_genai_generation_config_get_max_new_tokens(c.get(), &most), OK);
    EXPECT_EQ(most, SIZE_MAX);
    EXPECT_EQ(c->max_length, SIZE_MAX);
    EXPECT_EQ(c->top_k, SIZE_MAX);
    EXPECT_EQ(c->no_repeat_ngram_size, SIZE_MAX);
    EXPECT_EQ(c->eos_token_id, -1);
    EXPECT_EQ(c->temperature, 1.0f);
    EXPECT_EQ(c->top_p, 1.0f);
    EXPECT_EQ(c->repetition_penalty, 1.0f);
    EXPECT_EQ(c->length_penalty, 1.0f);
    EXPECT_EQ(c->num_beams, 1u);
    EXPECT_EQ(c->num_beam_groups, 1u);
    EXPECT_EQ(c->num_return_sequences, 1u);
    EXPECT_EQ(c->stop_criteria, HEURISTIC);
    EXPECT_FALSE(c->do_sample || c->echo || c->ignore_eos ||
                 c->include_stop_str_in_output);
    EXPECT_EQ(c->logprobs + c->rng_seed + c->min_new_tokens, 0u);
}

using Set = std::function<void(ov_genai_generation_config *)>;

struct Rule {
    const char *says; /* a part of the error text; NULL: the config is valid */
    Set set;
};

#define SET(name, value) ov_genai_generation_config_set_##name(c, value)
#define RULE(says, ...)                                                                  \
    Rule                                                                                 \
    {                                                                                    \
        says, [](ov_genai_generation_config *c) { __VA_ARGS__; }                         \
    }

const int64_t five[] = {5};
const int64_t negative[] = {5, -1};
const char *stop[] = {nullptr, "", "end"};

const Rule rules[] = {
    RULE(nullptr, (void)c),
    RULE("nothing would end the text", SET(max_new_tokens, SIZE_MAX)),
    RULE(nullptr, SET(max_new_tokens, SIZE_MAX), SET(max_length, 9)),
    RULE(nullptr, SET(max_new_tokens, SIZE_MAX),
         ov_genai_generation_config_set_stop_token_ids(c, five, 1)),
    RULE("nothing would end the text", SET(max_new_tokens, SIZE_MAX),
         SET(ignore_eos, true),
         ov_genai_generation_config_set_stop_token_ids(c, five, 1)),
    RULE("ignore_eos is true, expected false, unless max_new_tokens or max_length is set",
         SET(max_new_tokens, SIZE_MAX), SET(ignore_eos, true),
         ov_genai_generation_config_set_stop_strings(c, stop, 3)),
    RULE(nullptr, SET(max_new_tokens, SIZE_MAX), SET(max_length, 9),
         SET(ignore_eos, true)),
    RULE("one of stop_token_ids is negative",
         ov_genai_generation_config_set_stop_token_ids(c, negative, 2)),
    RULE(nullptr, SET(max_new_tokens, SIZE_MAX),
         ov_genai_generation_config_set_stop_strings(c, stop, 3)),
    RULE("nothing would end the text", SET(max_new_tokens, SIZE_MAX),
         ov_genai_generation_config_set_stop_strings(c, stop, 2)),
    RULE("eos_token_id is 5, expected one of stop_token_ids", SET(eos_token_id, 5)),
    RULE(nullptr, SET(eos_token_id, 5),
         ov_genai_generation_config_set_stop_token_ids(c, five, 1)),
    RULE(nullptr, SET(min_new_tokens, 10)),
    RULE("min_new_tokens is 11, expected at most max_new_tokens, which is 10",
         SET(min_new_tokens, 11)),
    RULE("max_new_tokens is 0, expected at least 1, unless echo is set",
         SET(max_new_tokens, 0)),
    RULE(nullptr, SET(max_new_tokens, 0), SET(echo, true)),
    RULE("repetition_penalty is 0, expected above 0", SET(repetition_penalty, 0.0f)),
    RULE("repetition_penalty is nan, expected a finite number",
         SET(repetition_penalty, NAN)),
    RULE("temperature is inf, expected a finite number", SET(temperature, INFINITY)),
    RULE("top_p is -inf", SET(top_p, -INFINITY)),
    RULE("min_p is nan", SET(min_p, NAN)),
    RULE("presence_penalty is inf", SET(presence_penalty, INFINITY)),
    RULE("assistant_confidence_threshold is nan",
         SET(assistant_confidence_threshold, NAN)),
    RULE("presence_penalty is 2.1, expected within -2..2", SET(presence_penalty, 2.1f)),
    RULE("presence_penalty", SET(presence_penalty, -2.1f)),
    RULE("frequency_penalty", SET(frequency_penalty, 2.1f)),
    RULE(nullptr, SET(presence_penalty, 2.0f), SET(frequency_penalty, -2.0f)),
    RULE(nullptr, SET(temperature, 0.0f), SET(top_p, 7.0f)),
    RULE("temperature is 0, expected above 0 with do_sample", SET(do_sample, true),
         SET(temperature, 0.0f)),
    RULE("top_p", SET(do_sample, true), SET(top_p, 0.0f)),
    RULE("top_p is 1.1, expected above 0 and at most 1 with do_sample",
         SET(do_sample, true), SET(top_p, 1.1f)),
    RULE("min_p is 1, expected at least 0 and below 1", SET(do_sample, true),
         SET(min_p, 1.0f)),
    RULE("min_p is -0.1", SET(do_sample, true), SET(min_p, -0.1f)),
    RULE(nullptr, SET(do_sample, true), SET(min_p, 0.0f)),
    RULE("num_beams is 2, expected 1 with do_sample", SET(do_sample, true),
         SET(num_beams, 2)),
    RULE("repetition_penalty", SET(num_beams, 2), SET(repetition_penalty, 1.1f)),
    RULE("num_return_sequences is 3, expected at most num_beams, which is 2",
         SET(num_beams, 2), SET(num_return_sequences, 3)),
    RULE("num_beams is 3, expected a multiple of num_beam_groups, which is 2",
         SET(num_beams, 3), SET(num_beam_groups, 2)),
    RULE("diversity_penalty", SET(num_beams, 4), SET(num_beam_groups, 2)),
    RULE(nullptr, SET(num_beams, 4), SET(num_beam_groups, 2),
         SET(diversity_penalty, 1.0f)),
    RULE(nullptr, SET(num_beams, 2)),
    RULE(nullptr, SET(num_beams, 2), SET(num_return_sequences, 2)),
    RULE("length_penalty is nan", SET(num_beams, 2), SET(length_penalty, NAN)),
    RULE("diversity_penalty is inf", SET(num_beams, 2), SET(diversity_penalty, INFINITY)),
    RULE("stop_criteria is 3, expected EARLY", SET(stop_criteria, (StopCriteria)3)),
    RULE("num_return_sequences is 2, expected 1 without do_sample",
         SET(num_return_sequences, 2)),
    RULE(nullptr, SET(num_return_sequences, 2), SET(do_sample, true)),
    RULE("num_return_sequences is 0, expected at least 1", SET(num_return_sequences, 0)),
    RULE("num_beams is 1025, expected at most 1024", SET(num_beams, 1025)),
    RULE(nullptr, SET(num_beams, 1024)),
    RULE(nullptr, SET(num_beams, 0)),
    RULE(nullptr, SET(num_beam_groups, 3), SET(diversity_penalty, 1.0f)),
    RULE(nullptr, SET(num_beam_groups, 0)),
    RULE("num_beam_groups is 0, expected at least 1", SET(num_beams, 2),
         SET(num_beam_groups, 0)),
    RULE("diversity_penalty is 1, expected 0 with num_beams above 1 and without "
         "num_beam_groups",
         SET(num_beams, 2), SET(diversity_penalty, 1.0f)),
    RULE("presence_penalty is 1, expected 0 with num_beams", SET(num_beams, 2),
         SET(presence_penalty, 1.0f)),
    RULE("frequency_penalty is 1, expected 0 with num_beams", SET(num_beams, 2),
         SET(frequency_penalty, 1.0f)),
    RULE("no_repeat_ngram_size is 0, expected at least 1 with num_beams",
         SET(num_beams, 2), SET(no_repeat_ngram_size, 0)),
    RULE(nullptr, SET(no_repeat_ngram_size, 0)),
    RULE(nullptr, SET(num_assistant_tokens, 3)),
    RULE("max_ngram_size is 3, expected 0 without num_assistant_tokens",
         SET(max_ngram_size, 3)),
    RULE(nullptr, SET(num_assistant_tokens, 3), SET(max_ngram_size, 3)),
    RULE(nullptr, SET(num_assistant_tokens, 3), SET(max_ngram_size, 3),
         SET(do_sample, true)),
    RULE("num_assistant_tokens is 3, expected 0 with num_beams or num_return_sequences "
         "above 1",
         SET(num_assistant_tokens, 3), SET(max_ngram_size, 3), SET(num_beams, 2)),
    RULE("config: assistant_confidence_threshold is 0.4, expected 0 with num_beams or "
         "num_return_sequences above 1",
         SET(assistant_confidence_threshold, 0.4f), SET(num_return_sequences, 2),
         SET(do_sample, true)),
    RULE(nullptr, SET(assistant_confidence_threshold, -0.4f), SET(num_beams, 2)),
    RULE(nullptr, SET(assistant_confidence_threshold, 0.4f)),
    RULE("num_assistant_tokens is 3, expected 0 with an assistant_confidence_threshold",
         SET(assistant_confidence_threshold, 0.4f), SET(num_assistant_tokens, 3)),
    RULE(nullptr, SET(stop_criteria, EARLY), SET(length_penalty, 3.0f),
         SET(no_repeat_ngram_size, 2), SET(logprobs, 1), SET(echo, true),
         SET(include_stop_str_in_output, true), SET(top_k, 3), SET(rng_seed, 4)),
};

TEST(GenerationConfig, SaysWhatDoesNotGoTogether)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        const Rule &r = rules[i];
        Log log;
        const Config c = config();
        ov_genai_generation_config_set_max_new_tokens(c.get(), 10);
        r.set(c.get());
        EXPECT_EQ(ov_genai_generation_config_validate(c.get()),
                  r.says ? UNKNOW_EXCEPTION : OK)
            << "rule " << i;
        EXPECT_NE(log.text.find(r.says ? r.says : ""), std::string::npos)
            << "rule " << i << ": " << log.text;
        EXPECT_EQ(log.text.empty(), !r.says) << log.text;
    }
}

/* Returns the config of a file with this text. */
Config
config_of(const std::string &text, ov_status_e expected = OK)
{
    const Folder folder("generation_config");
    folder.write("generation_config.json", text);
    ov_genai_generation_config *c = nullptr;
    EXPECT_EQ(ov_genai_generation_config_create_from_json(
                  (folder.path + "/generation_config.json").c_str(), &c),
              expected)
        << text;
    return Config(c);
}

TEST(GenerationConfig, ReadsEveryFieldOfAFile)
{
    const Config c = config_of(
        R"({"max_new_tokens":1,"max_length":2,"ignore_eos":true,"min_new_tokens":3,
            "echo":true,"logprobs":4,"include_stop_str_in_output":true,"num_beam_groups":5,
            "num_beams":6,"diversity_penalty":0.5,"length_penalty":2,
            "num_return_sequences":7,"no_repeat_ngram_size":8,"temperature":0.25,
            "top_p":0.75,"top_k":9,"min_p":0.125,"do_sample":true,
            "repetition_penalty":1.5,"presence_penalty":-1,"frequency_penalty":1,
            "rng_seed":10,"assistant_confidence_threshold":0.5,"num_assistant_tokens":11,
            "max_ngram_size":12,"early_stopping":"never","eos_token_id":[13,14],
            "stop_token_ids":[15],"stop_strings":["a","b"],"transformers_version":"4"})");
    ASSERT_TRUE(c);
    const size_t sizes[] = {c->max_new_tokens,
                            c->max_length,
                            c->min_new_tokens,
                            c->logprobs,
                            c->num_beam_groups,
                            c->num_beams,
                            c->num_return_sequences,
                            c->no_repeat_ngram_size,
                            c->top_k,
                            c->rng_seed,
                            c->num_assistant_tokens,
                            c->max_ngram_size};
    for (size_t i = 0; i < 12; i++)
        EXPECT_EQ(sizes[i], i + 1);
    EXPECT_TRUE(c->ignore_eos && c->echo && c->include_stop_str_in_output &&
                c->do_sample);
    EXPECT_EQ(c->diversity_penalty, 0.5f);
    EXPECT_EQ(c->length_penalty, 2.0f);
    EXPECT_EQ(c->temperature, 0.25f);
    EXPECT_EQ(c->top_p, 0.75f);
    EXPECT_EQ(c->min_p, 0.125f);
    EXPECT_EQ(c->repetition_penalty, 1.5f);
    EXPECT_EQ(c->presence_penalty, -1.0f);
    EXPECT_EQ(c->frequency_penalty, 1.0f);
    EXPECT_EQ(c->assistant_confidence_threshold, 0.5f);
    EXPECT_EQ(c->stop_criteria, NEVER);
    EXPECT_EQ(c->eos_token_id, 13);
    for (int64_t id : {13, 14, 15})
        EXPECT_TRUE(xm_genai_config_has_stop_id(c.get(), id)) << id;
    ASSERT_EQ(c->n_stops, 2u);
    EXPECT_STREQ(c->stops[1], "b");
}

TEST(GenerationConfig, ReadsOneIdAndOneStringAndNothing)
{
    const Config c = config_of(
        R"({"eos_token_id":7,"stop_strings":"x","early_stopping":true,"top_k":null})");
    ASSERT_TRUE(c);
    EXPECT_EQ(c->eos_token_id, 7);
    EXPECT_TRUE(xm_genai_config_has_stop_id(c.get(), 7));
    EXPECT_EQ(c->n_stops, 1u);
    EXPECT_EQ(c->stop_criteria, EARLY);
    EXPECT_EQ(c->top_k, SIZE_MAX);
    EXPECT_EQ(config_of("{}")->eos_token_id, -1);
    EXPECT_EQ(config_of("{\"top_k\":-1}")->top_k, SIZE_MAX);
}

TEST(GenerationConfig, RefusesDamagedFiles)
{
    for (const char *text :
         {"", "[]", "{\"top_k\":-2}", "{\"top_p\":\"x\"}", "{\"do_sample\":1}",
          "{\"eos_token_id\":\"a\"}", "{\"eos_token_id\":[1,-1]}", "{\"stop_strings\":7}",
          "{\"stop_strings\":[\"a\",null]}", "{\"early_stopping\":\"whenever\"}",
          "{\"early_stopping\":1}",
          "{\"stop_strings\":[\"a\"],\"eos_token_id\":[1,2.5]}"}) {
        Log log;
        EXPECT_FALSE(config_of(text, UNKNOW_EXCEPTION)) << text;
        EXPECT_NE(log.text.find("generation_config.json"), std::string::npos) << log.text;
    }
    Log log;
    ov_genai_generation_config *c = nullptr;
    EXPECT_EQ(ov_genai_generation_config_create_from_json("/no/such/file", &c),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(c, nullptr);
}

/* The longest list that is allowed, then longer lists, whose further ids are not read. */
TEST(GenerationConfig, RefusesListsOfIdsWithoutEnd)
{
    const size_t most = 4096;
    std::vector<int64_t> ids(most + 1);
    std::iota(ids.begin(), ids.end(), 7);
    const Config c = config();
    EXPECT_EQ(ov_genai_generation_config_set_stop_token_ids(c.get(), ids.data(), most),
              OK);
    Log log;
    EXPECT_EQ(
        ov_genai_generation_config_set_stop_token_ids(c.get(), ids.data(), most + 1),
        UNKNOW_EXCEPTION);
    EXPECT_EQ(c->n_stop_ids, most) << "it is as it was";
    EXPECT_NE(log.text.find("4096 stop token ids; the first one too many is 4103"),
              std::string::npos)
        << log.text;
    std::string list = "{\"eos_token_id\":[0";
    for (int i = 1; i < 200000; i++)
        list += "," + std::to_string(i);
    EXPECT_FALSE(config_of(list + "]}", UNKNOW_EXCEPTION));
    EXPECT_NE(log.text.find("generation_config.json': there are more than 4096"),
              std::string::npos)
        << log.text;
}

TEST(GenerationConfig, CopiesListsWhatever)
{
    const Config c = config_of(R"({"eos_token_id":[1,2],"stop_strings":["a","b"]})");
    for (uint64_t n = 1;; n++) {
        ov_genai_generation_config copy = {};
        xm_error err = {};
        xm_fail_allocation(n);
        const xm_status s = xm_genai_config_copy(c.get(), &copy, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (seen) {
            EXPECT_EQ(s, XM_NO_MEMORY);
            continue;
        }
        EXPECT_EQ(s, XM_OK);
        EXPECT_EQ(copy.n_stop_ids, 2u);
        EXPECT_EQ(copy.n_stops, 2u);
        EXPECT_NE(copy.stops[0], c->stops[0]);
        xm_genai_config_clear(&copy);
        break;
    }
}

#define NULL_OF(kind, name, its_default)                                                 \
    EXPECT_EQ(ov_genai_generation_config_set_##name(nullptr, its_default),               \
              INVALID_C_PARAM)                                                           \
        << #name;

TEST(GenerationConfig, RefusesMissingArguments)
{
    const Config c = config();
    ov_genai_generation_config *out = nullptr;
    size_t n;
#define FIELD(kind, name, its_default) NULL_OF(kind, name, its_default)
#include "plugin/genai/generation_fields.def"
    for (ov_status_e s :
         {ov_genai_generation_config_create(nullptr),
          ov_genai_generation_config_create_from_json(nullptr, &out),
          ov_genai_generation_config_create_from_json("x", nullptr),
          ov_genai_generation_config_set_stop_criteria(nullptr, EARLY),
          ov_genai_generation_config_set_eos_token_id(nullptr, 1),
          ov_genai_generation_config_set_stop_strings(nullptr, stop, 1),
          ov_genai_generation_config_set_stop_strings(c.get(), nullptr, 1),
          ov_genai_generation_config_set_stop_token_ids(nullptr, five, 1),
          ov_genai_generation_config_set_stop_token_ids(c.get(), nullptr, 1),
          ov_genai_generation_config_get_max_new_tokens(nullptr, &n),
          ov_genai_generation_config_get_max_new_tokens(c.get(), nullptr),
          ov_genai_generation_config_validate(nullptr)})
        EXPECT_EQ(s, INVALID_C_PARAM);
    ov_genai_generation_config_free(nullptr);
}

} // namespace
