/* SPDX-License-Identifier: Apache-2.0
 *
 * Missing and invalid arguments of each function, and pipelines that cannot be created.
 */
#include "functional_tests/genai/genai_test.h"

namespace
{

/* One object of each kind. */
struct Arguments {
    Config config = make_config();
    Container json = make_json("{}"), list = make_json("[]");
    History history = make_history("[{}]");
    Results results;
    Metrics metrics;
    /* NULL handles. */
    ov_genai_generation_config *no_config = nullptr;
    ov_genai_json_container *no_json = nullptr;
    ov_genai_chat_history *no_history = nullptr;
    ov_genai_decoded_results *no_results = nullptr;
    ov_genai_perf_metrics *no_metrics = nullptr;
    ov_genai_llm_pipeline *no_pipe = nullptr;

    Arguments()
    {
        ov_genai_decoded_results *r = nullptr;
        EXPECT_EQ(ov_genai_decoded_results_create(&r), OK);
        results.reset(r);
        metrics = metrics_of(r);
    }
    ~Arguments()
    {
        EXPECT_EQ(no_config, nullptr);
        EXPECT_EQ(no_json, nullptr);
        EXPECT_EQ(no_history, nullptr);
        EXPECT_EQ(no_results, nullptr);
        EXPECT_EQ(no_metrics, nullptr);
        EXPECT_EQ(no_pipe, nullptr);
    }
};

struct Call {
    const char *text;
    int status;
};
#define CALL(function, ...)                                                              \
    Call                                                                                 \
    {                                                                                    \
#function "(" #__VA_ARGS__ ")", (int)ov_genai_##function(__VA_ARGS__)            \
    }

void
expect(int status, const std::vector<Call> &calls)
{
    for (const Call &c : calls)
        EXPECT_EQ(c.status, status) << c.text;
}

TEST(Arguments, AreMissedByContainers)
{
    Arguments a;
    char text[9];
    size_t n = sizeof(text);
    expect(OV_GENAI_JSON_CONTAINER_INVALID_PARAM,
           {CALL(json_container_create, nullptr),
            CALL(json_container_create_from_json_string, nullptr, "1"),
            CALL(json_container_create_from_json_string, &a.no_json, nullptr),
            CALL(json_container_create_object, nullptr),
            CALL(json_container_create_array, nullptr),
            CALL(json_container_to_json_string, nullptr, text, &n),
            CALL(json_container_to_json_string, a.json.get(), text, nullptr),
            CALL(json_container_copy, nullptr, &a.no_json),
            CALL(json_container_copy, a.json.get(), nullptr)});
    ov_genai_json_container_free(nullptr);
}

TEST(Arguments, AreMissedByHistories)
{
    Arguments a;
    ov_genai_chat_history *h = a.history.get();
    size_t n = 0;
    int empty = 0;
    expect(OV_GENAI_CHAT_HISTORY_INVALID_PARAM,
           {CALL(chat_history_create, nullptr),
            CALL(chat_history_create_from_json_container, nullptr, a.list.get()),
            CALL(chat_history_create_from_json_container, &a.no_history, nullptr),
            CALL(chat_history_push_back, nullptr, a.json.get()),
            CALL(chat_history_push_back, h, nullptr),
            CALL(chat_history_pop_back, nullptr),
            CALL(chat_history_get_messages, nullptr, &a.no_json),
            CALL(chat_history_get_messages, h, nullptr),
            CALL(chat_history_get_message, nullptr, 0, &a.no_json),
            CALL(chat_history_get_message, h, 0, nullptr),
            CALL(chat_history_get_first, nullptr, &a.no_json),
            CALL(chat_history_get_first, h, nullptr),
            CALL(chat_history_get_last, nullptr, &a.no_json),
            CALL(chat_history_get_last, h, nullptr),
            CALL(chat_history_clear, nullptr),
            CALL(chat_history_size, nullptr, &n),
            CALL(chat_history_size, h, nullptr),
            CALL(chat_history_empty, nullptr, &empty),
            CALL(chat_history_empty, h, nullptr),
            CALL(chat_history_set_tools, nullptr, a.list.get()),
            CALL(chat_history_set_tools, h, nullptr),
            CALL(chat_history_get_tools, nullptr, &a.no_json),
            CALL(chat_history_get_tools, h, nullptr),
            CALL(chat_history_set_extra_context, nullptr, a.json.get()),
            CALL(chat_history_set_extra_context, h, nullptr),
            CALL(chat_history_get_extra_context, nullptr, &a.no_json),
            CALL(chat_history_get_extra_context, h, nullptr)});
    ov_genai_chat_history_free(nullptr);
}

TEST(Arguments, AreMissedByConfigs)
{
    Arguments a;
    ov_genai_generation_config *c = a.config.get();
    const int64_t id = 1;
    const char *stop = "x";
    size_t n = 0;
    expect(INVALID_C_PARAM,
           {CALL(generation_config_create, nullptr),
            CALL(generation_config_create_from_json, nullptr, &a.no_config),
            CALL(generation_config_create_from_json, "x", nullptr),
            CALL(generation_config_set_max_new_tokens, nullptr, 1),
            CALL(generation_config_set_max_length, nullptr, 1),
            CALL(generation_config_set_ignore_eos, nullptr, true),
            CALL(generation_config_set_min_new_tokens, nullptr, 1),
            CALL(generation_config_set_echo, nullptr, true),
            CALL(generation_config_set_logprobs, nullptr, 1),
            CALL(generation_config_set_stop_strings, nullptr, &stop, 1),
            CALL(generation_config_set_stop_strings, c, nullptr, 1),
            CALL(generation_config_set_include_stop_str_in_output, nullptr, true),
            CALL(generation_config_set_stop_token_ids, nullptr, &id, 1),
            CALL(generation_config_set_stop_token_ids, c, nullptr, 1),
            CALL(generation_config_set_num_beam_groups, nullptr, 1),
            CALL(generation_config_set_num_beams, nullptr, 1),
            CALL(generation_config_set_diversity_penalty, nullptr, 1.0f),
            CALL(generation_config_set_length_penalty, nullptr, 1.0f),
            CALL(generation_config_set_num_return_sequences, nullptr, 1),
            CALL(generation_config_set_no_repeat_ngram_size, nullptr, 1),
            CALL(generation_config_set_stop_criteria, nullptr, EARLY),
            CALL(generation_config_set_temperature, nullptr, 1.0f),
            CALL(generation_config_set_top_p, nullptr, 1.0f),
            CALL(generation_config_set_top_k, nullptr, 1),
            CALL(generation_config_set_min_p, nullptr, 0.0f),
            CALL(generation_config_set_do_sample, nullptr, true),
            CALL(generation_config_set_repetition_penalty, nullptr, 1.0f),
            CALL(generation_config_set_presence_penalty, nullptr, 1.0f),
            CALL(generation_config_set_frequency_penalty, nullptr, 1.0f),
            CALL(generation_config_set_rng_seed, nullptr, 1),
            CALL(generation_config_set_assistant_confidence_threshold, nullptr, 0.1f),
            CALL(generation_config_set_num_assistant_tokens, nullptr, 1),
            CALL(generation_config_set_max_ngram_size, nullptr, 1),
            CALL(generation_config_set_eos_token_id, nullptr, 1),
            CALL(generation_config_get_max_new_tokens, nullptr, &n),
            CALL(generation_config_get_max_new_tokens, c, nullptr),
            CALL(generation_config_validate, nullptr)});
    ov_genai_generation_config_free(nullptr);
}

TEST(Arguments, AreMissedByMetrics)
{
    Arguments a;
    ov_genai_perf_metrics *m = a.metrics.get();
    float mean = 0.0f, std = 0.0f;
    size_t n = 0;
    expect(INVALID_C_PARAM, {CALL(perf_metrics_get_load_time, nullptr, &mean),
                             CALL(perf_metrics_get_load_time, m, nullptr),
                             CALL(perf_metrics_get_num_generation_tokens, nullptr, &n),
                             CALL(perf_metrics_get_num_generation_tokens, m, nullptr),
                             CALL(perf_metrics_get_num_input_tokens, nullptr, &n),
                             CALL(perf_metrics_get_num_input_tokens, m, nullptr),
                             CALL(perf_metrics_add_in_place, nullptr, m),
                             CALL(perf_metrics_add_in_place, m, nullptr)});
    using Get = ov_status_e (*)(const ov_genai_perf_metrics *, float *, float *);
    for (const Get get :
         {ov_genai_perf_metrics_get_ttft, ov_genai_perf_metrics_get_tpot,
          ov_genai_perf_metrics_get_ipot, ov_genai_perf_metrics_get_throughput,
          ov_genai_perf_metrics_get_inference_duration,
          ov_genai_perf_metrics_get_generate_duration,
          ov_genai_perf_metrics_get_tokenization_duration,
          ov_genai_perf_metrics_get_detokenization_duration,
          ov_genai_perf_metrics_get_chat_template_duration}) {
        EXPECT_EQ(get(nullptr, &mean, &std), INVALID_C_PARAM);
        EXPECT_EQ(get(m, nullptr, &std), INVALID_C_PARAM);
        EXPECT_EQ(get(m, &mean, nullptr), INVALID_C_PARAM);
    }
}

TEST(Arguments, AreMissedByResults)
{
    Arguments a;
    char text[9];
    size_t n = sizeof(text);
    const float *values = nullptr;
    expect(INVALID_C_PARAM,
           {CALL(decoded_results_create, nullptr),
            CALL(decoded_results_get_perf_metrics, nullptr, &a.no_metrics),
            CALL(decoded_results_get_perf_metrics, a.results.get(), nullptr),
            CALL(decoded_results_get_string, nullptr, text, &n),
            CALL(decoded_results_get_string, a.results.get(), text, nullptr)});
    EXPECT_EQ(xm_genai_results_logprobs(nullptr, 0, &values, &n), INVALID_C_PARAM);
    EXPECT_EQ(xm_genai_results_logprobs(a.results.get(), 0, nullptr, &n),
              INVALID_C_PARAM);
    EXPECT_EQ(xm_genai_results_logprobs(a.results.get(), 0, &values, nullptr),
              INVALID_C_PARAM);
    EXPECT_EQ(xm_genai_results_logprobs(a.results.get(), 0, &values, &n), OUT_OF_BOUNDS);
    ov_genai_decoded_results_free(nullptr);
    ov_genai_decoded_results_perf_metrics_free(nullptr);
}

class PipelineArguments : public GenAi
{
};

TEST_F(PipelineArguments, AreMissed)
{
    Arguments a;
    Watcher w;
    const streamer_callback callback = w.callback(), none = {nullptr, nullptr};
    ov_genai_llm_pipeline *p = plain.get();
    const char *dir = ir_folder.c_str(), *key = "ATTENTION_BACKEND", *no_text = nullptr;
    const auto *c = a.config.get();
    auto *h = a.history.get();
    expect(INVALID_C_PARAM,
           {CALL(llm_pipeline_create, nullptr, "CPU", 0, &a.no_pipe),
            CALL(llm_pipeline_create, dir, nullptr, 0, &a.no_pipe),
            CALL(llm_pipeline_create, dir, "CPU", 0, nullptr),
            CALL(llm_pipeline_create, dir, "CPU", 1, &a.no_pipe, key),
            CALL(llm_pipeline_create, dir, "CPU", 2, &a.no_pipe, key, no_text),
            CALL(llm_pipeline_create, dir, "CPU", 2, &a.no_pipe, no_text, "PA"),
            CALL(llm_pipeline_create, dir, "CPU", SIZE_MAX - 1, &a.no_pipe),
            CALL(llm_pipeline_generate, nullptr, "x", c, nullptr, &a.no_results),
            CALL(llm_pipeline_generate, p, nullptr, c, nullptr, &a.no_results),
            CALL(llm_pipeline_generate, p, "x", c, nullptr, nullptr),
            CALL(llm_pipeline_generate, p, "x", c, &none, &a.no_results),
            CALL(llm_pipeline_generate_with_history, nullptr, h, c, &callback, nullptr),
            CALL(llm_pipeline_generate_with_history, p, nullptr, c, &callback, nullptr),
            CALL(llm_pipeline_generate_with_history, p, h, c, nullptr, nullptr),
            CALL(llm_pipeline_generate_with_history, p, h, c, &none, &a.no_results),
            CALL(llm_pipeline_start_chat, nullptr),
            CALL(llm_pipeline_finish_chat, nullptr),
            CALL(llm_pipeline_get_generation_config, nullptr, &a.no_config),
            CALL(llm_pipeline_get_generation_config, p, nullptr),
            CALL(llm_pipeline_set_generation_config, nullptr, a.config.get()),
            CALL(llm_pipeline_set_generation_config, p, nullptr)});
    ov_genai_llm_pipeline_free(nullptr);
    EXPECT_TRUE(w.pieces.empty());
}

TEST_F(PipelineArguments, ThatAreWrongAreSaidInTheLogAndAsTheLastFailure)
{
    Folder empty("genai_empty");
    Folder bare("genai_bare");
    for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
        std::filesystem::create_symlink(ir_folder + "/" + name, bare / name);
    const struct {
        std::string path, device, key, value, says;
    } cases[] = {
        {"/no/such/folder", "CPU", "ATTENTION_BACKEND", "PA",
         "cannot open '/no/such/folder': No such file or directory"},
        {"/no/such.gguf", "CPU", "ATTENTION_BACKEND", "PA",
         "cannot open '/no/such.gguf': No such file or directory"},
        {"/no/such.xml", "CPU", "ATTENTION_BACKEND", "PA",
         "cannot open '/no/such.xml': No such file or directory"},
        {empty.path, "CPU", "ATTENTION_BACKEND", "PA", "openvino_model.xml"},
        {bare.path, "CPU", "ATTENTION_BACKEND", "PA", "tokenizer.json"},
        {ir_folder, "NOPE", "ATTENTION_BACKEND", "PA", "NOPE"},
        {ir_folder, "CPU", "ATTENTION_BACKEND", "FAST", "PA or SDPA"},
        {ir_folder, "CPU", "prompt_lookup", "maybe", "YES or NO"},
        {ir_folder, "CPU", "NO_SUCH_KEY", "1", "NO_SUCH_KEY"},
        {ir_folder, "CPU", "INFERENCE_PRECISION_HINT", "i3", "i3"},
    };
    for (const auto &c : cases) {
        ov_genai_llm_pipeline *p = nullptr;
        Log log;
        EXPECT_EQ(ov_genai_llm_pipeline_create(c.path.c_str(), c.device.c_str(), 2, &p,
                                               c.key.c_str(), c.value.c_str()),
                  UNKNOW_EXCEPTION)
            << c.says;
        EXPECT_EQ(p, nullptr);
        EXPECT_NE(Log::text().find(c.says), std::string::npos) << Log::text();
        EXPECT_NE(last_error().find(c.says), std::string::npos) << last_error();
        Log again;
        EXPECT_EQ(ov_genai_llm_pipeline_create(nullptr, "CPU", 0, &p), INVALID_C_PARAM);
        EXPECT_NE(last_error().find(c.says), std::string::npos) << last_error();
    }
}

TEST_F(PipelineArguments, ThatAreWrongAreNotInTheLogAtLevelNone)
{
    const Core core = make_core();
    ov_genai_llm_pipeline *p = nullptr;
    for (const char *level : {"LOG_ERROR", "LOG_NONE"}) {
        ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "LOG_LEVEL", level), OK);
        Log log;
        EXPECT_EQ(ov_genai_llm_pipeline_create("/no/such/folder", "CPU", 0, &p),
                  UNKNOW_EXCEPTION);
        EXPECT_EQ(Log::text().empty(), std::string(level) == "LOG_NONE") << level;
    }
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "LOG_LEVEL", "LOG_WARNING"), OK);
}

TEST_F(PipelineArguments, OfTextsThatAreTooLittleRoom)
{
    const Results r = generate(plain, "Paris is the", make_config());
    const std::string text = text_of(r.get());
    std::string room(text.size() + 1, '?');
    size_t n = text.size();
    EXPECT_EQ(ov_genai_decoded_results_get_string(r.get(), room.data(), &n),
              OUT_OF_BOUNDS);
    EXPECT_EQ(room, std::string(text.size() + 1, '?'));
    EXPECT_EQ(n, text.size() + 1);
    EXPECT_EQ(last_error(), "the text needs " + std::to_string(n) +
                                " bytes, but the buffer has " +
                                std::to_string(text.size()));
    EXPECT_EQ(ov_genai_decoded_results_get_string(r.get(), room.data(), &n), OK);
    EXPECT_EQ(room.c_str(), text);
}

/* Clients write as many bytes as the returned size says. */
TEST_F(PipelineArguments, OfTextsThatAreSmallerThanTheirBuffer)
{
    const Results r = generate(plain, "Paris is the", make_config());
    const std::string text = text_of(r.get());
    std::string room(text.size() + 100, '?');
    size_t n = room.size();
    EXPECT_EQ(ov_genai_decoded_results_get_string(r.get(), room.data(), &n), OK);
    EXPECT_EQ(n, text.size() + 1);
    EXPECT_EQ(room.substr(0, n), text + '\0');
}

} // namespace
