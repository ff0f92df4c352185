/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls in each syntax: which texts are calls and which are not.
 */
#include "plugin/text/tool_calls.h"

#include <yyjson.h>

#include <random>

#include "runtime/util/memory.h"
#include "unit_tests/sample.h"
#include "unit_tests/text/text_test.h"

namespace
{

/* Returns a call as "name arguments"; "" if the text is not a call. */
std::string
parse(xm_call_form form, const std::string &text, const std::string &name = "")
{
    xm_tool_calls calls = {};
    xm_error err = {};
    std::string result;
    const xm_status s =
        xm_tool_calls_parse(&calls, form, xm_slice_of(name.data(), name.size()),
                            xm_slice_of(text.data(), text.size()), nullptr, &err);
    EXPECT_EQ(s == XM_OK, calls.n == 1) << text;
    EXPECT_TRUE(s == XM_OK || s == XM_INVALID) << err.text;
    EXPECT_EQ(s == XM_OK, err.text[0] == '\0');
    if (s == XM_OK)
        result = calls.list[0].name + std::string(" ") + calls.list[0].arguments;
    xm_tool_calls_free(&calls);
    return result;
}

std::string
nested(const std::string &open, const std::string &close, int n)
{
    std::string text;
    for (int i = 0; i < n; i++)
        text += open;
    for (int i = 0; i < n; i++)
        text += close;
    return text;
}

TEST(ToolCalls, Json)
{
    const auto json = [](const std::string &s) { return parse(XM_CALL_JSON, s); };
    EXPECT_EQ(json(R"({"name": "f", "arguments": {"a": 1, "b": [true, null]}})"),
              R"(f {"a":1,"b":[true,null]})");
    EXPECT_EQ(json("\n {\"arguments\": {}, \"name\": \"f\"} \n"), "f {}");
    EXPECT_EQ(json(R"({"name": "f"})"), "f {}");
    EXPECT_EQ(json(R"({"name": "f", "parameters": {"x": "y"}})"), R"(f {"x":"y"})");
    EXPECT_EQ(json(R"({"name": "f", "arguments": "{\"x\": 2}"})"), R"(f {"x":2})")
        << "in a string";
    EXPECT_EQ(
        json(R"({"name": "f", "arguments": {"n": 123456789012345678901234567890.50}})"),
        R"(f {"n":123456789012345678901234567890.50})")
        << "numbers stay as they are";
    EXPECT_EQ(json("{\"name\": \"f\", \"arguments\": {\"t\": \"\\u00e9\\n\\\"\"}}"),
              "f {\"t\":\"\xc3\xa9\\n\\\"\"}");
    for (const char *none :
         {"", "hello", "[]", "{}", "1", R"({"name": ""})", R"({"name": 3})",
          R"({"name": "f g"})", R"({"name": "f", "arguments": [1]})",
          R"({"name": "f", "arguments": "x"})", R"({"name": "f", "arguments": null})",
          R"({"name": "f", "arguments": {"a": 1})", R"({"name": "f"} x)",
          R"({"name": "f"}{"name": "g"})", R"({'name': 'f'})",
          R"({"name": "f\"", "arguments": {}})",
          R"({"name": "f", "arguments": {"a": NaN}})"})
        EXPECT_EQ(json(none), "") << none;
    EXPECT_EQ(json("{\"name\": \"" + std::string(XM_LONGEST_TOOL_NAME + 1, 'f') + "\"}"),
              "");
    EXPECT_NE(json("{\"name\": \"" + std::string(XM_LONGEST_TOOL_NAME, 'f') + "\"}"), "");
    EXPECT_EQ(json("{\"name\": \"f\", \"arguments\": {\"t\": \"\xff\"}}"), "");
}

TEST(ToolCalls, NamedByTheHeader)
{
    EXPECT_EQ(parse(XM_CALL_NAMED, R"({ "a": 1 })", "f"), R"(f {"a":1})");
    EXPECT_EQ(parse(XM_CALL_NAMED, " \n", "f"), "f {}");
    EXPECT_EQ(parse(XM_CALL_NAMED, "{}", ""), "");
    EXPECT_EQ(parse(XM_CALL_NAMED, "{}", "f\n"), "");
    EXPECT_EQ(parse(XM_CALL_NAMED, "3", "f"), "");
    EXPECT_EQ(parse(XM_CALL_NAMED, "{\"a\"", "f"), "");
    EXPECT_EQ(parse(XM_CALL_NONE, "{}", "f"), "");
}

TEST(ToolCalls, Functions)
{
    const auto function = [](const std::string &s) { return parse(XM_CALL_JSON, s); };
    EXPECT_EQ(function("<function=f>\n</function>"), "f {}");
    EXPECT_EQ(
        function("<function=f>\n<parameter=a>\nx\ny\n\n</parameter>\n</function>\n"),
        R"(f {"a":"x\ny\n"})");
    EXPECT_EQ(
        function("<function=f><parameter=a>1</parameter><parameter=b>[1, 2]</parameter>"
                 "<parameter=c>true</parameter><parameter=d>\"q\"</parameter>"
                 "<parameter=e></parameter><parameter=f>1 2</parameter></function>"),
        R"(f {"a":1,"b":[1,2],"c":true,"d":"\"q\"","e":"","f":"1 2"})");
    EXPECT_EQ(function("<function=f><parameter=a><b> </c></parameter></function>"),
              R"(f {"a":"<b> </c>"})");
    for (const char *none :
         {"<function=f>", "<function=>\n</function>", "<function=f></function>x",
          "<function=f>x</function>", "<function=f><parameter=a>1</function>",
          "<function=f><parameter=>1</parameter></function>",
          "<function=f><parameter=a</function>", "<function=f</function>"})
        EXPECT_EQ(function(none), "") << none;
}

TEST(ToolCalls, Braces)
{
    const auto braces = [](const std::string &s) { return parse(XM_CALL_BRACES, s); };
    EXPECT_EQ(braces("call:f{}"), "f {}");
    EXPECT_EQ(braces(" call:f { } "), "f {}");
    EXPECT_EQ(braces("call:f{a:<|\"|>x, {y}: \"z\"\\n<|\"|>,b:-1.50e3,c:true,d:null}"),
              R"(f {"a":"x, {y}: \"z\"\\n","b":-1.50e3,"c":true,"d":null})");
    EXPECT_EQ(braces("call:f{a:[1,<|\"|>b<|\"|>,[],{c:{d:2}}],<|\"|>k e<|\"|>:false}"),
              R"(f {"a":[1,"b",[],{"c":{"d":2}}],"k e":false})");
    EXPECT_EQ(braces("call:f{a : word two , \"b\": \"J\\u0053ON, }\"}"),
              R"(f {"a":"word two","b":"JSON, }"})");
    EXPECT_EQ(braces("call:f{a:<|\"|><|\"|>}"), R"(f {"a":""})");
    EXPECT_EQ(braces(R"(call:f{a:"x\"y, }",b:"z\\"})"), R"(f {"a":"x\"y, }","b":"z\\"})");
    for (const char *none : {"",
                             "call:f",
                             "call:{}",
                             "f{}",
                             "call:f{",
                             "call:f{a}",
                             "call:f{a:}",
                             "call:f{:1}",
                             "call:f{a:1,}",
                             "call:f{,}",
                             "call:f{a:1}}",
                             "call:f{a:1}x",
                             "call:f{a:[1}",
                             "call:f{a:<|\"|>x}",
                             "call:f{a:\"x}",
                             "call:f{a:1 b:2",
                             "call:f g{}",
                             "call:f{a:[1,]}",
                             "call:f{a:<|\"|>x<|\"|>y}",
                             "call:f[1]"})
        EXPECT_EQ(braces(none), "") << none;
}

/* Returns an incomplete call as "name arguments"; "": the name is incomplete; "none": no call can
 * begin so. */
std::string
parse_cut(xm_call_form form, const std::string &text, const xm_tools *tools = nullptr)
{
    xm_tool_calls calls = {};
    xm_error err = {};
    std::string result;
    const xm_status s =
        xm_tool_calls_parse_cut(&calls, form, xm_slice_of("f", 1),
                                xm_slice_of(text.data(), text.size()), tools, &err);
    EXPECT_EQ(s == XM_OK, calls.n == 1) << text;
    EXPECT_TRUE(s == XM_OK || s == XM_INVALID || s == XM_NOT_FOUND) << err.text;
    if (s == XM_OK) {
        EXPECT_TRUE(calls.list[0].is_cut);
        result = calls.list[0].name + std::string(" ") + calls.list[0].arguments;
    }
    xm_tool_calls_free(&calls);
    return s == XM_INVALID ? "none" : result;
}

/* A tool f whose argument "a" is a string. */
struct StringTool {
    yyjson_doc *doc;
    xm_tool tool;
    xm_tools tools{&tool, 1};
    StringTool()
    {
        const std::string schema = R"({"properties":{"a":{"type":"string"}}})";
        doc = yyjson_read(schema.data(), schema.size(), 0);
        tool = {xm_slice_of("f", 1), yyjson_doc_get_root(doc), false};
    }
    ~StringTool()
    {
        yyjson_doc_free(doc);
    }
    StringTool(const StringTool &) = delete;
};

/* Wherever the text is cut, its arguments are a prefix of those of the whole call, and grow with
 * the text. */
TEST(ToolCalls, ACutCallHasWhatHasComeOfIt)
{
    const StringTool f;
    const struct {
        xm_call_form form;
        std::string text;
    } rows[] = {
        {XM_CALL_JSON, R"({"name": "f", "arguments": {"a":"x\"} yé","b":[1,{"c":2}]}})"},
        {XM_CALL_JSON, R"({"arguments": {"a":"name"}, "name": "f"})"},
        {XM_CALL_JSON, "<function=f>\n<parameter=a>\nx\ny\n</parameter>\n<parameter=b>\n"
                       "[1]\n</parameter>\n<parameter=a>\n</\n</parameter>\n</function>"},
        {XM_CALL_NAMED, R"({"a":"x","b":{"c":[null]}})"},
        {XM_CALL_BRACES, "call:f{a:<|\"|>x, }<|\"|>,b:[1,{c:true}],d:word}"},
    };
    for (const auto &row : rows) {
        xm_tool_calls calls = {};
        xm_error err = {};
        ASSERT_EQ(xm_tool_calls_parse(&calls, row.form, xm_slice_of("f", 1),
                                      xm_slice_of(row.text.data(), row.text.size()),
                                      &f.tools, &err),
                  XM_OK)
            << row.text << err.text;
        const std::string whole = std::string("f ") + calls.list[0].arguments;
        xm_tool_calls_free(&calls);
        std::string before;
        for (size_t n = 0; n < row.text.size(); n++) {
            if (row.form == XM_CALL_BRACES && n > 0 && strchr("<|\"", row.text[n - 1]))
                continue; /* marker tokens are never split */
            const std::string cut = parse_cut(row.form, row.text.substr(0, n), &f.tools);
            EXPECT_EQ(whole.compare(0, cut.size(), cut), 0)
                << row.text.substr(0, n) << ": " << cut << " of " << whole;
            EXPECT_GE(cut.size(), before.size()) << row.text.substr(0, n);
            before = cut;
        }
        EXPECT_GE(before.size() + 8, whole.size()) << before << " of " << whole;
    }
}

TEST(ToolCalls, ACutCallByItsForm)
{
    const StringTool f;
    const struct {
        xm_call_form form;
        const char *text, *expected;
    } rows[] = {
        {XM_CALL_JSON, "", ""},
        {XM_CALL_JSON, "\n{\"na", ""},
        {XM_CALL_JSON, R"({"name": "f)", ""},
        {XM_CALL_JSON, R"({"name": "f")", "f "},
        {XM_CALL_JSON, R"({"name": "f", "arguments": {"a": "Ro )", R"(f {"a":"Ro )"},
        {XM_CALL_JSON, R"({"name": "f", "parameters": {"a": 12)", R"(f {"a":12)"},
        {XM_CALL_JSON, R"({"name": "f", "arguments": {"a": 1} )", R"(f {"a":1})"},
        {XM_CALL_JSON, R"({"name": "f g", "arg)", "none"},
        {XM_CALL_JSON, R"({"name": 3, "arg)", "none"},
        {XM_CALL_JSON, R"({"name": "f", "arguments": [1)", "none"},
        {XM_CALL_JSON, R"({"name": "f"} x)", "none"},
        {XM_CALL_JSON, "{name", "none"},
        {XM_CALL_JSON, "hello", "none"},
        {XM_CALL_JSON, "<func", ""},
        {XM_CALL_JSON, "<function=f", ""},
        {XM_CALL_JSON, "<function=f>\n<para", "f {"},
        {XM_CALL_JSON, "<function=f><parameter=a>\nRome\n</par", R"(f {"a":"Rome)"},
        {XM_CALL_JSON, "<function=f><parameter=b>\n12", "f {"},
        {XM_CALL_JSON, "<function=f>x>", "none"},
        {XM_CALL_NAMED, "", "f "},
        {XM_CALL_NAMED, R"({"a": [)", R"(f {"a":[)"},
        {XM_CALL_NAMED, "3", "none"},
        {XM_CALL_BRACES, "cal", ""},
        {XM_CALL_BRACES, "call:f", ""},
        {XM_CALL_BRACES, "call:f{days:12", R"(f {"days":)"},
        {XM_CALL_BRACES, "call:f{a:<|\"|>Ro<", R"(f {"a":"Ro<)"},
        {XM_CALL_BRACES, "call:f{a:[1}", "none"},
        {XM_CALL_BRACES, "hello", "none"},
        {XM_CALL_NONE, "{", "none"},
    };
    for (const auto &row : rows)
        EXPECT_EQ(parse_cut(row.form, row.text, &f.tools), row.expected) << row.text;
    EXPECT_EQ(parse_cut(XM_CALL_NAMED, "{\"a\":" + std::string(300000, '[')), "none");
    for (const char *text : {"{hello world", "{\"a\": 1} x", "{\"a\": {\"b\": \"}\"}} {"})
        EXPECT_EQ(parse_cut(XM_CALL_NAMED, text), "none") << text;
}

TEST(ToolCalls, ACutCallIsClosedBehindItsLastWholeMember)
{
    const struct {
        const char *cut, *closed;
    } rows[] = {{"", "{}"},
                {"{", "{}"},
                {"{\"a\": 1", "{}"},
                {R"({"a": 1, )", R"({"a": 1})"},
                {R"({"a": [1, {"b": "},"}], "c": "x, y)", R"({"a": [1, {"b": "},"}]})"},
                {R"({"a": 1})", R"({"a": 1})"},
                {R"({"a": 1} )", R"({"a": 1})"}};
    for (const auto &row : rows) {
        xm_strbuf text = {};
        xm_strbuf_add(&text, row.cut);
        xm_tool_call_close(&text);
        EXPECT_STREQ(xm_strbuf_text(&text), row.closed) << row.cut;
        xm_strbuf_free(&text);
    }
}

TEST(ToolCalls, DepthAndLengthAreBounded)
{
    const int most = XM_DEEPEST_CALL;
    EXPECT_NE(parse(XM_CALL_BRACES, "call:f{a:" + nested("[", "]", most - 1) + "}"), "");
    EXPECT_EQ(parse(XM_CALL_BRACES, "call:f{a:" + nested("[", "]", most) + "}"), "");
    EXPECT_EQ(parse(XM_CALL_BRACES, "call:f{a:" + nested("[", "]", 300000) + "}"), "");
    EXPECT_EQ(parse(XM_CALL_BRACES, "call:f" + std::string(500000, '{')), "");
    EXPECT_NE(parse(XM_CALL_NAMED, "{\"a\":" + nested("[", "]", most - 1) + "}", "f"),
              "");
    EXPECT_EQ(parse(XM_CALL_NAMED, "{\"a\":" + nested("[", "]", most) + "}", "f"), "");
    EXPECT_EQ(parse(XM_CALL_NAMED, "{\"a\":\"" + std::string(1000, '[') + "\"}", "f"),
              "f {\"a\":\"" + std::string(1000, '[') + "\"}");
    const std::string longest =
        "{\"a\":\"" + std::string(XM_LONGEST_CALL - 8, 'x') + "\"}";
    EXPECT_NE(parse(XM_CALL_NAMED, longest, "f"), "");
    EXPECT_EQ(parse(XM_CALL_NAMED, longest + " ", "f"), "");
    xm_tool_calls calls = {};
    for (int i = 0; i <= XM_MOST_CALLS; i++) {
        xm_error err = {};
        EXPECT_EQ(xm_tool_calls_parse(&calls, XM_CALL_NAMED, xm_slice_of("f", 1),
                                      xm_slice_of("{}", 2), nullptr, &err),
                  i < XM_MOST_CALLS ? XM_OK : XM_INVALID);
    }
    EXPECT_EQ(calls.n, (size_t)XM_MOST_CALLS);
    xm_tool_calls_free(&calls);
}

/* Changed, cut and mixed calls: a call always has valid JSON arguments. */
TEST(ToolCalls, HostileCallsAreNone)
{
    const std::string seeds[] = {
        R"({"name": "f", "arguments": {"a": [1, "x\u00e9"], "b": {"c": null}}})",
        "<function=f><parameter=a>\n[1]\n</parameter><parameter=b>x</parameter></"
        "function>",
        "call:f{a:<|\"|>x<|\"|>,b:[1,{c:true}],<|\"|>d<|\"|>:2}"};
    std::mt19937 &random = sample::random();
    int taken = 0;
    for (int i = 0; i < 60000; i++) {
        std::string text = seeds[random() % 3];
        for (int k = (int)(random() % 4); k > 0; k--) {
            const size_t at = random() % text.size();
            switch (random() % 4) {
            case 0:
                text[at] = (char)random();
                break;
            case 1:
                text.erase(at, 1 + random() % 5);
                break;
            case 2:
                text.insert(at, 1, "{}[]\"\\:,<>|\0\n"[random() % 13]);
                break;
            default:
                text.insert(at, seeds[random() % 3].substr(random() % 20, random() % 9));
            }
            if (text.empty())
                text = " ";
        }
        for (const xm_call_form form : {XM_CALL_JSON, XM_CALL_NAMED, XM_CALL_BRACES}) {
            const std::string call = parse(form, text, "f");
            parse_cut(form, text);
            if (call.empty())
                continue;
            taken++;
            const std::string arguments = call.substr(call.find(' ') + 1);
            yyjson_doc *doc = yyjson_read(arguments.data(), arguments.size(), 0);
            EXPECT_TRUE(yyjson_is_obj(yyjson_doc_get_root(doc))) << text << ": " << call;
            EXPECT_EQ(arguments.find('\n'), std::string::npos) << call;
            yyjson_doc_free(doc);
        }
    }
    EXPECT_GT(taken, 5000);
}

TEST(ToolCalls, EveryAllocationMayFail)
{
    const std::pair<xm_call_form, std::string> texts[] = {
        {XM_CALL_JSON, R"({"name": "f", "arguments": "{\"x\": 2}"})"},
        {XM_CALL_JSON, "<function=f><parameter=a>[1]</parameter></function>"},
        {XM_CALL_NAMED, "{\"a\": 1}"},
        {XM_CALL_BRACES, "call:f{a:[1,<|\"|>b<|\"|>],c:word}"}};
    for (const auto &t : texts) {
        for (uint64_t n = 1;; n++) {
            xm_tool_calls calls = {}, copies = {};
            xm_error err = {};
            xm_fail_allocation(n);
            xm_status s = xm_tool_calls_parse(
                &calls, t.first, xm_slice_of("f", 1),
                xm_slice_of(t.second.data(), t.second.size()), nullptr, &err);
            if (s == XM_OK)
                s = xm_tool_calls_add(&copies, &calls.list[0], &err);
            EXPECT_EQ(copies.n, s == XM_OK ? 1u : 0u);
            xm_tool_calls_free(&calls);
            if (s == XM_OK)
                s = xm_tool_calls_parse_cut(
                    &calls, t.first, xm_slice_of("f", 1),
                    xm_slice_of(t.second.data(), t.second.size() - 3), nullptr, &err);
            const bool seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            xm_tool_calls_free(&calls);
            xm_tool_calls_free(&copies);
            ASSERT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << t.second << " " << n << err.text;
            if (!seen)
                break;
        }
    }
}

} // namespace
