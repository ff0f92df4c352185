// SPDX-License-Identifier: Apache-2.0
//
// Templates in the style of published models, and what jinja2 makes of a set of conversations
// with them. chat_templates/expected.jsonl is written by tools/compare_templates --record: its
// first line holds the conversations, each other one is [file, conversation, text], with null for
// a text that jinja2 does not make.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "plugin/text/chat_template.h"
#include "runtime/util/json.h"

namespace
{

const std::string folder = XM_SOURCE_DIR "/unit_tests/text/chat_templates/";

std::string
read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/* Returns the JSON of a value; of an object on request without its messages. */
std::string
json_of(yyjson_val *value, bool without_messages)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(nullptr);
    yyjson_mut_val *copy = yyjson_val_mut_copy(doc, value);
    if (without_messages)
        yyjson_mut_obj_remove_key(copy, "messages");
    char *text = yyjson_mut_val_write(copy, 0, nullptr);
    std::string out = text ? text : "";
    free(text);
    yyjson_mut_doc_free(doc);
    return out;
}

struct chat_template {
    struct xm_chat_template *tmpl = nullptr;
    struct xm_error err = {};

    explicit chat_template(const std::string &text)
    {
        static const char tokens[] =
            "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}}";
        yyjson_doc *doc = nullptr;
        EXPECT_EQ(xm_json_parse(tokens, sizeof(tokens) - 1, &doc, &err), XM_OK);
        EXPECT_EQ(xm_chat_template_parse(text.data(), text.size(), &tmpl, &err), XM_OK)
            << err.text;
        if (tmpl)
            xm_chat_template_set_tokens(tmpl, doc);
        else
            yyjson_doc_free(doc);
    }
    ~chat_template()
    {
        xm_chat_template_free(tmpl);
    }
};

void
check(const std::string &name, yyjson_val *conversation, bool prompt,
      yyjson_val *expected)
{
    chat_template t(read(folder + name));
    struct xm_strbuf out = {};
    ASSERT_NE(t.tmpl, nullptr) << name;
    const std::string messages = json_of(yyjson_obj_get(conversation, "messages"), false);
    const enum xm_status s =
        xm_chat_template_render(t.tmpl, messages.c_str(), prompt,
                                json_of(conversation, true).c_str(), &out, &t.err);
    if (yyjson_is_null(expected)) {
        EXPECT_EQ(s, XM_INVALID) << name << messages;
    } else {
        EXPECT_EQ(s, XM_OK) << name << messages << "\n" << t.err.text;
        EXPECT_EQ(std::string(xm_strbuf_text(&out), out.n), yyjson_get_str(expected))
            << name << messages;
    }
    xm_strbuf_free(&out);
}

} // namespace

TEST(ChatTemplates, MakeWhatJinjaMakesOfThem)
{
    std::ifstream file(folder + "expected.jsonl");
    yyjson_doc *conversations = nullptr;
    std::set<std::string> names;
    size_t rows = 0;
    for (std::string line; std::getline(file, line); rows++) {
        struct xm_error err = {};
        yyjson_doc *doc = nullptr;
        ASSERT_EQ(xm_json_parse(line.data(), line.size(), &doc, &err), XM_OK) << err.text;
        if (!conversations) {
            conversations = doc;
            continue;
        }
        yyjson_val *row = yyjson_doc_get_root(doc);
        const std::string name = yyjson_get_str(yyjson_arr_get(row, 0));
        const std::string chat = yyjson_get_str(yyjson_arr_get(row, 1));
        yyjson_val *conversation =
            yyjson_obj_get(yyjson_doc_get_root(conversations), chat.c_str());
        check(name, conversation, chat != "ends with an answer", yyjson_arr_get(row, 2));
        names.insert(name);
        yyjson_doc_free(doc);
    }
    yyjson_doc_free(conversations);
    EXPECT_GE(names.size(), 25u);
    EXPECT_GE(rows, 500u);
}
