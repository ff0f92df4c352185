// SPDX-License-Identifier: Apache-2.0
//
// A table of templates with the results of Jinja 3.1.6 in the configuration of chat templates
// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, plain tojson). The
// first line of the file holds the variables; each other line is [source, text], or [source,
// null] if Jinja fails. Most templates were drawn from a grammar of expressions and statements.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "plugin/text/jinja/jinja.h"
#include "runtime/util/json.h"

namespace
{

struct rows {
    yyjson_doc *variables = nullptr;
    std::vector<yyjson_doc *> all;

    rows()
    {
        std::ifstream file(XM_SOURCE_DIR "/unit_tests/text/jinja_reference.jsonl");
        for (std::string line; std::getline(file, line);) {
            struct xm_error err = {};
            yyjson_doc *doc = nullptr;
            if (xm_json_parse(line.data(), line.size(), &doc, &err) != XM_OK)
                ADD_FAILURE() << err.text << ": " << line;
            else if (!variables)
                variables = doc;
            else
                all.push_back(doc);
        }
    }
    ~rows()
    {
        yyjson_doc_free(variables);
        for (yyjson_doc *doc : all)
            yyjson_doc_free(doc);
    }
};

std::string
text_of(yyjson_val *value)
{
    return std::string(yyjson_get_str(value), yyjson_get_len(value));
}

enum xm_status
render(const std::string &source, yyjson_val *object, std::string &text, std::string &why)
{
    std::vector<struct xm_jinja_variable> variables;
    struct xm_jinja_template *tmpl = nullptr;
    struct xm_error err = {};
    struct xm_strbuf out = {};
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, n, key, value)
    {
        variables.push_back(
            {xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)), value, false});
    }
    enum xm_status s = xm_jinja_parse(source.data(), source.size(), &tmpl, &err);
    if (s == XM_OK)
        s = xm_jinja_render(tmpl, variables.data(), variables.size(), nullptr, &out,
                            nullptr, &err);
    text.assign(xm_strbuf_text(&out), out.n);
    why = err.text;
    xm_strbuf_free(&out);
    xm_jinja_free(tmpl);
    return s;
}

} // namespace

TEST(JinjaReference, EachRowIsAsJinjaHasIt)
{
    rows table;
    ASSERT_GT(table.all.size(), 400u);
    for (yyjson_doc *row : table.all) {
        const std::string source = text_of(yyjson_arr_get(yyjson_doc_get_root(row), 0));
        yyjson_val *expected = yyjson_arr_get(yyjson_doc_get_root(row), 1);
        std::string text, why;
        const enum xm_status s =
            render(source, yyjson_doc_get_root(table.variables), text, why);
        if (yyjson_is_null(expected)) {
            EXPECT_EQ(s, XM_INVALID) << source << "\nmade " << text;
            EXPECT_FALSE(why.empty()) << source;
        } else {
            EXPECT_EQ(s, XM_OK) << source << "\n" << why;
            EXPECT_EQ(text, text_of(expected)) << source;
        }
    }
}
