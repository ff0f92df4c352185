/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the GenAI C API share: owning pointers to handles, and pipelines of the small
 * models on a CPU device.
 */
#ifndef XM_FUNCTIONAL_TESTS_GENAI_GENAI_TEST_H
#define XM_FUNCTIONAL_TESTS_GENAI_GENAI_TEST_H

#include <functional>
#include <memory>

#include "functional_tests/api/api_test.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "openvino/genai/c/llm_pipeline.h"
#include "xemoe/xemoe.h"

using Config =
    std::unique_ptr<ov_genai_generation_config, Free<ov_genai_generation_config_free>>;
using History = std::unique_ptr<ov_genai_chat_history, Free<ov_genai_chat_history_free>>;
using Container =
    std::unique_ptr<ov_genai_json_container, Free<ov_genai_json_container_free>>;
using Metrics = std::unique_ptr<ov_genai_perf_metrics,
                                Free<ov_genai_decoded_results_perf_metrics_free>>;
using Pipe = std::unique_ptr<ov_genai_llm_pipeline, Free<ov_genai_llm_pipeline_free>>;
using Results =
    std::unique_ptr<ov_genai_decoded_results, Free<ov_genai_decoded_results_free>>;

inline const std::string ir_folder = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
inline const std::string gguf_file =
    XM_MODELS_DIR "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf";

/* Sets fields of a config: SET(max_new_tokens, 3). */
using Set = std::function<void(ov_genai_generation_config *c)>;
#define SET(name, value)                                                                 \
    EXPECT_EQ(ov_genai_generation_config_set_##name(c, value), OK) << #name

inline Config
make_config(const Set &set = nullptr)
{
    ov_genai_generation_config *c = nullptr;
    EXPECT_EQ(ov_genai_generation_config_create(&c), OK);
    EXPECT_EQ(ov_genai_generation_config_set_max_new_tokens(c, 8), OK);
    if (set)
        set(c);
    return Config(c);
}

inline Container
make_json(const std::string &text)
{
    ov_genai_json_container *c = nullptr;
    EXPECT_EQ(ov_genai_json_container_create_from_json_string(&c, text.c_str()),
              OV_GENAI_JSON_CONTAINER_OK)
        << text;
    return Container(c);
}

/* Returns the history of a JSON array of messages. */
inline History
make_history(const std::string &messages = "[]")
{
    ov_genai_chat_history *h = nullptr;
    const Container all = make_json(messages);
    EXPECT_EQ(ov_genai_chat_history_create_from_json_container(&h, all.get()),
              OV_GENAI_CHAT_HISTORY_OK);
    return History(h);
}

inline std::string
text_of(const ov_genai_decoded_results *r)
{
    size_t size = 0;
    EXPECT_EQ(ov_genai_decoded_results_get_string(r, nullptr, &size), OK);
    if (size == 0)
        return "";
    std::string text(size, '?');
    EXPECT_EQ(ov_genai_decoded_results_get_string(r, text.data(), &size), OK);
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return text;
}

inline Floats
log_probs_of(const ov_genai_decoded_results *r, size_t text = 0)
{
    const float *values = nullptr;
    size_t n = 0;
    EXPECT_EQ(xm_genai_results_logprobs(r, text, &values, &n), OK);
    return n ? Floats(values, values + n) : Floats();
}

inline Metrics
metrics_of(const ov_genai_decoded_results *r)
{
    ov_genai_perf_metrics *m = nullptr;
    EXPECT_EQ(ov_genai_decoded_results_get_perf_metrics(r, &m), OK);
    return Metrics(m);
}

struct Value {
    float mean = NAN, std = NAN;
};

template <typename Get>
Value
value(const Metrics &m, Get get)
{
    Value v;
    EXPECT_EQ(get(m.get(), &v.mean, &v.std), OK);
    return v;
}

/* Returns the number of tokens that were generated. */
inline size_t
generated(const Metrics &m)
{
    size_t n = 0;
    EXPECT_EQ(ov_genai_perf_metrics_get_num_generation_tokens(m.get(), &n), OK);
    return n;
}

/* Records the pieces that a streamer gets; `answer` returns the status for piece number i. */
struct Watcher {
    std::vector<std::string> pieces;
    std::function<ov_genai_streaming_status_e(size_t)> answer;

    static ov_genai_streaming_status_e see(const char *text, void *args)
    {
        Watcher *w = static_cast<Watcher *>(args);
        w->pieces.push_back(text);
        return w->answer ? w->answer(w->pieces.size() - 1)
                         : OV_GENAI_STREAMING_STATUS_RUNNING;
    }
    streamer_callback callback()
    {
        return {see, this};
    }
    std::string text() const
    {
        std::string all;
        for (const std::string &piece : pieces)
            all += piece;
        return all;
    }
};

/* Collects the log, which contains the error texts. */
class Log
{
  public:
    Log()
    {
        text().clear();
        ov_util_set_log_callback([](const char *line) { text() += line; });
    }
    ~Log()
    {
        ov_util_reset_log_callback();
    }
    Log(const Log &) = delete;
    static std::string &text()
    {
        static std::string all;
        return all;
    }
};

/* Opens a pipeline in f32, in which a row alone and among others agree closely. */
inline Pipe
open_pipe(const std::string &path, const char *device = "CPU")
{
    ov_genai_llm_pipeline *p = nullptr;
    EXPECT_EQ(ov_genai_llm_pipeline_create(path.c_str(), device, 4, &p,
                                           "INFERENCE_PRECISION_HINT", "f32",
                                           "KV_CACHE_PRECISION", "f32"),
              OK);
    return Pipe(p);
}

inline Results
generate(const Pipe &p, const std::string &prompt, const Config &c,
         Watcher *watcher = nullptr, ov_status_e expected = OK)
{
    ov_genai_decoded_results *r = nullptr;
    const streamer_callback callback =
        watcher ? watcher->callback() : streamer_callback{};
    EXPECT_EQ(ov_genai_llm_pipeline_generate(p.get(), prompt.c_str(), c.get(),
                                             watcher ? &callback : nullptr, &r),
              expected);
    return Results(r);
}

inline Results
generate(const Pipe &p, const History &h, const Config &c)
{
    ov_genai_decoded_results *r = nullptr;
    EXPECT_EQ(ov_genai_llm_pipeline_generate_with_history(p.get(), h.get(), c.get(),
                                                          nullptr, &r),
              OK);
    return Results(r);
}

/* Opens the model with its chat template, and as a folder of links without it. */
class GenAi : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        if (!chat) {
            folder = std::make_unique<Folder>("genai_without_template");
            for (const char *name :
                 {"openvino_model.xml", "openvino_model.bin", "tokenizer.json",
                  "generation_config.json", "config.json", "tokenizer_config.json"})
                std::filesystem::create_symlink(ir_folder + "/" + name, *folder / name);
            chat = open_pipe(ir_folder);
            plain = open_pipe(folder->path);
        }
        ASSERT_TRUE(chat && plain);
    }
    static void TearDownTestSuite()
    {
        chat.reset();
        plain.reset();
        folder.reset();
    }

    /* Generates with the model that has no template. */
    static std::string say(const std::string &prompt, const Set &set,
                           Watcher *watcher = nullptr)
    {
        const Results r = generate(plain, prompt, make_config(set), watcher);
        return r ? text_of(r.get()) : "";
    }

    static inline std::unique_ptr<Folder> folder;
    static inline Pipe chat, plain;
};

#endif
