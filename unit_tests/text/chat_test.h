/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates, and five conversations that the reference implementation rendered with them.
 */
#ifndef XM_UNIT_TESTS_TEXT_CHAT_TEST_H
#define XM_UNIT_TESTS_TEXT_CHAT_TEST_H

#include <cstdlib>

#include "plugin/text/chat_template.h"
#include "runtime/util/json.h"
#include "unit_tests/text/text_test.h"

class Template
{
  public:
    Template() = default;
    Template(const Template &) = delete;
    ~Template()
    {
        xm_chat_template_free(t);
    }
    std::string render(const std::string &messages, bool prompt, const char *extra = NULL)
    {
        struct xm_strbuf out = {};
        err = {};
        status = xm_chat_template_render(t, messages.c_str(), prompt, extra, &out, &err);
        std::string text(xm_strbuf_text(&out), out.n);
        xm_strbuf_free(&out);
        return text;
    }

    struct xm_chat_template *t = nullptr;
    struct xm_error err = {};
    enum xm_status status = XM_OK;
};

inline std::string
text_of(yyjson_val *value)
{
    return std::string(yyjson_get_str(value), yyjson_get_len(value));
}

inline ids
ids_of(yyjson_val *array)
{
    ids result;
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(array, i, n, item)
    {
        result.push_back((int32_t)yyjson_get_int(item));
    }
    return result;
}

inline void
check_conversation(Template &tmpl, Tokenizer &tokenizer, yyjson_val *conversation,
                   const char *extra)
{
    char *messages = yyjson_val_write(yyjson_obj_get(conversation, "messages"), 0, NULL);
    for (bool prompt : {false, true}) {
        std::string text = tmpl.render(messages, prompt, extra);
        EXPECT_EQ(tmpl.status, XM_OK) << tmpl.err.text;
        const char *rendered = prompt ? "rendered_gen" : "rendered";
        EXPECT_EQ(text, text_of(yyjson_obj_get(conversation, rendered)));
        const char *tokens = prompt ? "ids_gen" : "ids";
        EXPECT_EQ(tokenizer.encode(text), ids_of(yyjson_obj_get(conversation, tokens)));
    }
    free(messages);
}

/* Compares all conversations of a golden file. `tells_bos`: the template gets the golden file's
 * BOS token; else it uses its own. */
inline void
check_conversations(Template &tmpl, Tokenizer &tokenizer, const std::string &golden,
                    bool tells_bos)
{
    yyjson_doc *doc = nullptr;
    ASSERT_EQ(xm_json_read(golden.c_str(), &doc, &tmpl.err), XM_OK);
    yyjson_val *root = yyjson_doc_get_root(doc), *conversation;
    yyjson_val *bos = yyjson_obj_get(root, "bos_token");
    std::string extra = tells_bos && yyjson_is_str(bos)
                            ? "{\"bos_token\": \"" + text_of(bos) + "\"}"
                            : "{}";
    yyjson_val *all = yyjson_obj_get(root, "conversations");
    EXPECT_EQ(yyjson_arr_size(all), 5u);
    size_t i, n;
    yyjson_arr_foreach(all, i, n, conversation)
    {
        check_conversation(tmpl, tokenizer, conversation, extra.c_str());
    }
    yyjson_doc_free(doc);
}

#endif
