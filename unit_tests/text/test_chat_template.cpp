// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "functional_tests/common/folder.h"
#include "unit_tests/text/chat_test.h"

namespace
{

/* The golden file also names the special tokens that it was made with. */
void
check_model(const std::string &name)
{
    std::string folder = XM_MODELS_DIR "/" + name;
    Template tmpl;
    Tokenizer tokenizer = Tokenizer::file(folder + "/tokenizer.json");
    ASSERT_EQ(xm_chat_template_load(folder.c_str(), &tmpl.t, &tmpl.err), XM_OK)
        << tmpl.err.text;
    check_conversations(tmpl, tokenizer, folder + "/golden/chat.json", true);
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

/* Returns the text rendered with a folder of these files. */
static std::string
rendered(const std::vector<std::pair<const char *, const char *>> &files)
{
    const Folder folder("chat_template");
    Template tmpl;
    for (const auto &file : files)
        folder.write(file.first, file.second);
    EXPECT_EQ(xm_chat_template_load(folder.path.c_str(), &tmpl.t, &tmpl.err), XM_OK)
        << tmpl.err.text;
    return tmpl.t ? tmpl.render(hello, false) : "";
}

TEST(ChatTemplate, IsInTheFirstPlaceThatHasOne)
{
    std::vector<std::pair<const char *, const char *>> files = {
        {"processor_config.json", R"({"chat_template":"processor"})"},
        {"tokenizer_config.json", R"({"chat_template":"tokenizer"})"},
        {"chat_template.json", R"({"chat_template":"json"})"},
        {"chat_template.jinja", "jinja"},
        {"openvino_tokenizer.xml",
         R"(<?xml version="1.0"?><net name="t" version="11"><layers>
            <layer id="0"><rt_info><chat_template value="no"/></rt_info></layer></layers>
            <rt_info><other><chat_template value="no"/></other>
            <chat_template value="ir &lt;{{ messages[0].content }}&gt;&#10;!"/></rt_info></net>)"}};
    const char *const expected[] = {"ir <hi>\n!", "jinja", "json", "tokenizer",
                                    "processor"};
    for (const char *text : expected) {
        EXPECT_EQ(rendered(files), text);
        files.pop_back();
    }
}

TEST(ChatTemplate, OfATokenizersIrThatCannotBeReadIsElsewhere)
{
    const char *const irs[] = {
        "",
        "<net>",
        "no xml",
        "<net><rt_info/></net>",
        "<net><rt_info><chat_template value=\"{{ nope\"/></rt_info></net>",
        "<net><rt_info><chat_template value=\"\"/></rt_info></net>",
        "<rt_info><chat_template value=\"no\"/></rt_info>",
        ("<!DOCTYPE net [<!ENTITY a \"x\">]><net><rt_info><chat_template value=\"&a;\"/>"
         "</rt_info></net>")};
    for (const char *ir : irs)
        EXPECT_EQ(
            rendered({{"openvino_tokenizer.xml", ir}, {"chat_template.jinja", "jinja"}}),
            "jinja")
            << ir;
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
