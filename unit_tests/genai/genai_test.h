/* SPDX-License-Identifier: Apache-2.0
 *
 * Owning pointers to handles of the GenAI API, a capture of the log, and JSON to and from text.
 */
#ifndef XM_UNIT_TESTS_GENAI_GENAI_TEST_H
#define XM_UNIT_TESTS_GENAI_GENAI_TEST_H

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "plugin/genai/genai.h"
#include "runtime/util/log.h"

template <auto free_function> struct Free {
    template <typename T> void operator()(T *p) const
    {
        free_function(p);
    }
};
using Json = std::unique_ptr<ov_genai_json_container, Free<ov_genai_json_container_free>>;
using History = std::unique_ptr<ov_genai_chat_history, Free<ov_genai_chat_history_free>>;
using Config =
    std::unique_ptr<ov_genai_generation_config, Free<ov_genai_generation_config_free>>;

/* Collects in `text` what is logged while the object lives. */
class Log
{
  public:
    Log()
    {
        xm_log_set_sink([](xm_log_level, const char *line,
                           void *ctx) { static_cast<Log *>(ctx)->text += line; },
                        this);
    }
    ~Log()
    {
        xm_log_set_sink(nullptr, nullptr);
    }
    Log(const Log &) = delete;
    std::string text;
};

inline Json
json(const std::string &text)
{
    ov_genai_json_container *c = nullptr;
    EXPECT_EQ(ov_genai_json_container_create_from_json_string(&c, text.c_str()),
              OV_GENAI_JSON_CONTAINER_OK)
        << text;
    return Json(c);
}

inline std::string
text_of(const ov_genai_json_container *c)
{
    size_t n = 0;
    EXPECT_EQ(ov_genai_json_container_to_json_string(c, nullptr, &n),
              OV_GENAI_JSON_CONTAINER_OK);
    std::string text(n, '?');
    EXPECT_EQ(ov_genai_json_container_to_json_string(c, &text[0], &n),
              OV_GENAI_JSON_CONTAINER_OK);
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return text;
}

#endif
