// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "functional_tests/common/folder.h"
#include "plugin/text/chat_template.h"
#include "plugin/text/json.h"
#include "unit_tests/text/text_test.h"

namespace
{

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

std::string
text_of(yyjson_val *value)
{
    return std::string(yyjson_get_str(value), yyjson_get_len(value));
}

ids
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

void
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

/* The golden file also says which template and special tokens it was made with. */
void
check_model(const std::string &name)
{
    std::string folder = XM_MODELS_DIR "/" + name;
    Template tmpl;
    Tokenizer tokenizer = Tokenizer::file(folder + "/tokenizer.json");
    ASSERT_EQ(xm_chat_template_load(folder.c_str(), &tmpl.t, &tmpl.err), XM_OK)
        << tmpl.err.text;
    yyjson_doc *doc = nullptr;
    ASSERT_EQ(xm_json_read((folder + "/golden/chat.json").c_str(), &doc, &tmpl.err),
              XM_OK);
    yyjson_val *root = yyjson_doc_get_root(doc), *conversation;
    yyjson_val *bos = yyjson_obj_get(root, "bos_token");
    std::string extra =
        yyjson_is_str(bos) ? "{\"bos_token\": \"" + text_of(bos) + "\"}" : "{}";
    yyjson_val *all = yyjson_obj_get(root, "conversations");
    EXPECT_EQ(yyjson_arr_size(all), 5u);
    size_t i, n;
    yyjson_arr_foreach(all, i, n, conversation)
    {
        check_conversation(tmpl, tokenizer, conversation, extra.c_str());
    }
    yyjson_doc_free(doc);
}

const char *const hello = R"([{"role":"user","content":"hi"}])";

} // namespace

TEST(ChatTemplate, GptOssTiny)
{
    check_model("gpt-oss-tiny");
}

TEST(ChatTemplate, Gemma4MoeTiny)
{
    check_model("gemma4-moe-tiny");
}

TEST(ChatTemplate, Qwen3MoeTiny)
{
    check_model("qwen3moe-tiny");
}

TEST(ChatTemplate, FileComesBeforeConfigAndTokensFromConfig)
{
    const Folder folder("chat_template");
    Template tmpl;
    folder.write("chat_template.jinja", "{{ bos_token }}{{ messages[0].content }}"
                                        "{{ eos_token }}{{ pad_token }}{{ tools }}\n");
    folder.write("tokenizer_config.json",
                 R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"pad_token":null,)"
                 R"("chat_template":"other"})");
    ASSERT_EQ(xm_chat_template_load(folder.path.c_str(), &tmpl.t, &tmpl.err), XM_OK);
    EXPECT_EQ(tmpl.render(hello, false), "<s>hi</s>None");
    EXPECT_EQ(tmpl.render(hello, false, R"({"eos_token":"!","tools":[1]})"), "<s>hi![1]");
}

TEST(ChatTemplate, ConfigHoldsATextOrAList)
{
    const char *const configs[] = {
        R"({"chat_template":"D{{ add_generation_prompt }}"})",
        R"({"chat_template":[{"name":"tool_use","template":"T"},)"
        R"({"name":"default","template":"D{{ add_generation_prompt }}"}]})",
    };
    for (const char *config : configs) {
        const Folder folder("chat_template");
        Template tmpl;
        folder.write("tokenizer_config.json", config);
        ASSERT_EQ(xm_chat_template_load(folder.path.c_str(), &tmpl.t, &tmpl.err), XM_OK);
        EXPECT_EQ(tmpl.render(hello, true), "DTrue");
    }
}

TEST(ChatTemplate, NoTemplateIsNotFound)
{
    for (const char *config : {"{}", "[]", R"({"chat_template":[{"name":"x"}]})"}) {
        const Folder folder("chat_template");
        Template tmpl;
        folder.write("tokenizer_config.json", config);
        EXPECT_EQ(xm_chat_template_load(folder.path.c_str(), &tmpl.t, &tmpl.err),
                  XM_NOT_FOUND);
        EXPECT_NE(strstr(tmpl.err.text, "chat_template"), nullptr);
    }
    Template tmpl;
    EXPECT_EQ(xm_chat_template_load("/nonexistent", &tmpl.t, &tmpl.err), XM_NOT_FOUND);
}

TEST(ChatTemplate, ErrorsNameTheirPlace)
{
    const Folder folder("chat_template");
    Template tmpl;
    folder.write("chat_template.jinja", "\n{{ nope");
    EXPECT_EQ(xm_chat_template_load(folder.path.c_str(), &tmpl.t, &tmpl.err), XM_INVALID);
    EXPECT_NE(strstr(tmpl.err.text, "chat_template.jinja': line 2, column 1"), nullptr)
        << tmpl.err.text;

    const std::string text = "{{ raise_exception('only ' ~ messages[0].role) }}";
    ASSERT_EQ(xm_chat_template_parse(text.data(), text.size(), &tmpl.t, nullptr), XM_OK);
    tmpl.render(hello, false);
    EXPECT_EQ(tmpl.status, XM_INVALID);
    EXPECT_STREQ(tmpl.err.text, "chat template: line 1, column 19: only user");
    for (const char *bad : {"{}", "[", "", "null"}) {
        tmpl.render(bad, false);
        EXPECT_EQ(tmpl.status, XM_INVALID);
        EXPECT_NE(strstr(tmpl.err.text, "messages of a chat"), nullptr);
    }
    tmpl.render(hello, false, "[]");
    EXPECT_NE(strstr(tmpl.err.text, "variables of a chat"), nullptr);
}

TEST(ChatTemplate, EveryAllocationMayFail)
{
    std::string folder = XM_MODELS_DIR "/qwen3moe-tiny";
    for (uint64_t n = 1;; n++) {
        Template tmpl;
        xm_fail_allocation(n);
        enum xm_status status = xm_chat_template_load(folder.c_str(), &tmpl.t, &tmpl.err);
        if (status == XM_OK) {
            tmpl.render(hello, true, R"({"a":1})");
            status = tmpl.status;
        }
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(status, XM_OK);
            break;
        }
        EXPECT_EQ(status, XM_NO_MEMORY) << n;
    }
}
