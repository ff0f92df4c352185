/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of generate in which each allocation fails once: the call returns an error, nothing
 * leaks, and the next call works as if the failure had not been. And pipelines that are freed by
 * their streamer.
 */
#include <functional>

#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "unit_tests/genai/genai_test.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

/* A pipeline over a scripted model. */
class WithoutMemory : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        xm_error err = {};
        xm_log_set_sink([](xm_log_level, const char *, void *) {}, nullptr);
        for (const xm_package_part part :
             {XM_PACKAGE_TOKENIZER, XM_PACKAGE_CHAT_TEMPLATE, XM_PACKAGE_GENERATION})
            ASSERT_EQ(xm_package_read(package.p, part, &err), XM_OK) << err.text;
        model.gives_all = true;
        pthread_mutex_init(&pipe.lock, nullptr);
        pipe.package = package.p;
        pipe.compiled = &model.base;
        xm_genai_config_init(&pipe.config);
        ASSERT_TRUE(xm_api_handle_add(&pipe, XM_API_PIPELINE));
        ASSERT_EQ(ov_genai_generation_config_create(&config), OK);
        EXPECT_EQ(ov_genai_generation_config_set_max_new_tokens(config, 6), OK);
    }
    void TearDown() override
    {
        EXPECT_EQ(ov_genai_llm_pipeline_finish_chat(&pipe), OK);
        EXPECT_TRUE(xm_api_handle_drop(&pipe, XM_API_PIPELINE));
        xm_genai_config_clear(&pipe.config);
        ov_genai_generation_config_free(config);
        pthread_mutex_destroy(&pipe.lock);
        xm_log_set_sink(nullptr, nullptr);
    }
    std::string say(const char *prompt, ov_status_e *status)
    {
        ov_genai_decoded_results *r = nullptr;
        std::string text;
        *status = ov_genai_llm_pipeline_generate(&pipe, prompt, config, nullptr, &r);
        EXPECT_EQ(*status == OK, r != nullptr);
        for (size_t i = 0; r && i < r->n; i++)
            text += xm_strbuf_text(&r->texts[i].text) + std::string("\n");
        ov_genai_decoded_results_free(r);
        return text;
    }
    void expect_recovery()
    {
        ov_status_e status;
        const std::string expected = say("abca", &status);
        ASSERT_EQ(status, OK);
        for (uint64_t n = 1;; n++) {
            xm_session_destroy(pipe.session);
            pipe.session = nullptr;
            xm_fail_allocation(n);
            const std::string text = say("abca", &status);
            const bool seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            EXPECT_EQ(status, seen ? UNKNOW_EXCEPTION : OK) << n;
            EXPECT_EQ(text, seen ? "" : expected) << n;
            EXPECT_EQ(say("abca", &status), expected) << "after " << n;
            if (!seen || HasFailure())
                break;
        }
    }

    ScriptedModel model{rambling};
    SmallPackage package{"{% for m in messages %}{{ m.content }}x{% endfor %}"};
    ov_genai_llm_pipeline pipe = {};
    ov_genai_generation_config *config = nullptr;
};

TEST_F(WithoutMemory, GreedyTextsFail)
{
    const char *stop[] = {"zz"};
    EXPECT_EQ(ov_genai_generation_config_set_echo(config, true), OK);
    EXPECT_EQ(ov_genai_generation_config_set_logprobs(config, 1), OK);
    EXPECT_EQ(ov_genai_generation_config_set_stop_strings(config, stop, 1), OK);
    EXPECT_EQ(ov_genai_generation_config_set_num_assistant_tokens(config, 3), OK);
    EXPECT_EQ(ov_genai_generation_config_set_max_ngram_size(config, 2), OK);
    expect_recovery();
}

TEST_F(WithoutMemory, SampledTextsFail)
{
    EXPECT_EQ(ov_genai_generation_config_set_do_sample(config, true), OK);
    EXPECT_EQ(ov_genai_generation_config_set_num_return_sequences(config, 2), OK);
    EXPECT_EQ(ov_genai_generation_config_set_frequency_penalty(config, 0.5f), OK);
    expect_recovery();
}

TEST_F(WithoutMemory, BeamsFail)
{
    EXPECT_EQ(ov_genai_generation_config_set_num_beams(config, 4), OK);
    EXPECT_EQ(ov_genai_generation_config_set_num_beam_groups(config, 2), OK);
    EXPECT_EQ(ov_genai_generation_config_set_diversity_penalty(config, 0.5f), OK);
    EXPECT_EQ(ov_genai_generation_config_set_num_return_sequences(config, 3), OK);
    expect_recovery();
}

/* A template that could not be read for lack of memory is read again on the next request. */
TEST_F(WithoutMemory, TemplatesAreReadLater)
{
    xm_package *p = package.p;
    for (uint64_t n = 1;; n++) {
        xm_error err = {};
        xm_chat_template_free(p->chat_template);
        p->chat_template = nullptr;
        p->outcome[XM_PACKAGE_CHAT_TEMPLATE] = {};
        xm_fail_allocation(n);
        const xm_status s = xm_package_read(p, XM_PACKAGE_CHAT_TEMPLATE, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << n << ": " << err.text;
        err = {};
        ASSERT_EQ(xm_package_read(p, XM_PACKAGE_CHAT_TEMPLATE, &err), XM_OK) << err.text;
        EXPECT_NE(p->chat_template, nullptr);
        if (!seen)
            break;
    }
}

/* A turn of a chat that fails is not added to its messages. */
TEST_F(WithoutMemory, TurnsOfAChatFail)
{
    ov_status_e status;
    for (uint64_t n = 1;; n++) {
        ASSERT_EQ(ov_genai_llm_pipeline_start_chat(&pipe), OK);
        say("ab", &status);
        ASSERT_EQ(status, OK);
        xm_fail_allocation(n);
        say("c", &status);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(status, seen ? UNKNOW_EXCEPTION : OK) << n;
        EXPECT_EQ(pipe.chat->n, seen ? 2u : 4u) << n;
        if (!seen || HasFailure())
            break;
    }
}

class Freed : public WithoutMemory
{
};

/* The streamer frees the pipeline during a run: the pipeline is used until the run ends, and then
 * freed. */
TEST_F(Freed, PipelinesEndBehindTheirRun)
{
    auto *own = static_cast<ov_genai_llm_pipeline *>(xm_calloc(1, sizeof(pipe)));
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&own->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    xm_genai_config_init(&own->config);
    std::swap(own->package, pipe.package);
    package.p = nullptr;
    own->compiled = &model.base;
    xm_compiled_ref(own->compiled);
    ASSERT_TRUE(xm_api_handle_add(own, XM_API_PIPELINE));
    ASSERT_EQ(ov_genai_llm_pipeline_start_chat(own), OK);
    const streamer_callback frees = {[](const char *, void *p) {
                                         ov_genai_llm_pipeline_free(
                                             static_cast<ov_genai_llm_pipeline *>(p));
                                         return OV_GENAI_STREAMING_STATUS_RUNNING;
                                     },
                                     own};
    EXPECT_EQ(ov_genai_llm_pipeline_generate(own, "ab", config, &frees, nullptr), OK);
    EXPECT_EQ(ov_genai_llm_pipeline_generate(own, "ab", config, &frees, nullptr),
              INVALID_C_PARAM);
}

} // namespace
