/* SPDX-License-Identifier: Apache-2.0
 *
 * Grammars of answers that call tools: which calls they admit; and texts drawn from a grammar are
 * parsed into calls whose arguments match their schemas.
 */
#include <algorithm>
#include <array>
#include <random>

#include "plugin/text/constraint.h"
#include "plugin/text/tool_arguments.h"
#include "plugin/text/tool_grammar.h"
#include "runtime/util/memory.h"
#include "unit_tests/sample.h"
#include "unit_tests/text/grammar_test.h"

namespace
{

/* A syntax for calls: the tokenizer's marker tokens, and what the template contains. */
struct Way {
    std::string tmpl;
    std::vector<std::string> marks;
};

using Ids = ::ids;

const Way json = {"{# <tool_call> </tool_call> #}", {"<tool_call>", "</tool_call>"}};
const Way coder = {"{# <tool_call> </tool_call> <function= #}",
                   {"<tool_call>", "</tool_call>"}};
const Way harmony = {"{# <|channel|> <|message|> #}",
                     {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
                      "<|end|>", "<|return|>", "<|call|>"}};
const Way gemma = {
    "{# <|channel> <channel|> #}",
    {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|\"|>"}};

std::string
escaped(const std::string &text)
{
    std::string out;
    for (char c : text)
        out += c == '"' || c == '\\' ? std::string("\\") + c
               : c == '\n'           ? "\\n"
                                     : std::string(1, c);
    return out;
}

/* A tokenizer of all printable ASCII characters and the line feed. */
std::string
tokenizer_of(const Way &way)
{
    std::string vocab = R"("\n":0)", added;
    for (int c = ' '; c < 0x7f; c++)
        vocab += ",\"" + escaped(std::string(1, (char)c)) +
                 "\":" + std::to_string(c - ' ' + 1);
    for (size_t i = 0; i < way.marks.size(); i++)
        added += (i ? "," : "") + std::string("{\"id\":") + std::to_string(200 + i) +
                 ",\"content\":\"" + escaped(way.marks[i]) + "\",\"special\":false}";
    return R"({"model":{"type":"BPE","vocab":{)" + vocab +
           R"(},"merges":[]},"decoder":{"type":"Fuse"},"added_tokens":[)" + added + "]}";
}

struct Declared {
    std::string name, schema; /* "": no schema */
    bool strict = false;
};

class Calling
{
  public:
    Calling(const Way &way, std::vector<Declared> some, bool must_call = true,
            bool one = false)
        : tokenizer(tokenizer_of(way)), declared(std::move(some))
    {
        EXPECT_EQ(tokenizer.status, XM_OK) << tokenizer.err.text;
        EXPECT_EQ(
            xm_chat_template_parse(way.tmpl.data(), way.tmpl.size(), &tmpl, nullptr),
            XM_OK);
        for (const Declared &d : declared) {
            docs.push_back(yyjson_read(d.schema.data(), d.schema.size(), 0));
            tools.push_back({xm_slice_of(d.name.data(), d.name.size()),
                             yyjson_doc_get_root(docs.back()), d.strict});
        }
        choice = {{tools.data(), tools.size()}, must_call, one};
        status = xm_tool_grammar(&choice, tokenizer.t, tmpl, &g, &to_blame, &err);
    }
    ~Calling()
    {
        xm_grammar_free(g);
        xm_chat_template_free(tmpl);
        for (yyjson_doc *doc : docs)
            yyjson_doc_free(doc);
    }
    Calling(const Calling &) = delete;

    /* Returns whether the grammar admits the text; markers in it are tokens. */
    bool admits(const std::string &text)
    {
        EXPECT_EQ(status, XM_OK) << err.text;
        xm_constraint *c = nullptr;
        xm_error why = {};
        if (xm_constraint_create(g, tokenizer.t, &c, &why) != XM_OK) {
            ADD_FAILURE() << why.text;
            return false;
        }
        bool good = true;
        for (size_t at = 0; good && at < text.size();) {
            const int32_t mark = mark_at(text, at);
            const std::string spelled =
                mark >= 0 ? xm_tokenizer_token_text(tokenizer.t, mark, nullptr) : "";
            good =
                (mark >= 0 ? xm_constraint_accept_named(c, mark, &why)
                           : xm_constraint_accept_bytes(c, &text[at], 1, &why)) == XM_OK;
            at += mark >= 0 ? spelled.size() : 1;
        }
        good = good && xm_constraint_can_end(c);
        xm_constraint_free(c);
        return good;
    }

    /* Draws a random text of the grammar; it prefers structural characters, so that it ends. */
    Ids draw(std::mt19937 &random)
    {
        Ids ids;
        std::string text;
        xm_constraint *c = nullptr;
        xm_error why = {};
        EXPECT_EQ(xm_constraint_create(g, tokenizer.t, &c, &why), XM_OK) << why.text;
        while (ids.size() < 20000 && !(xm_constraint_can_end(c) &&
                                       (xm_constraint_is_over(c) || random() % 2 == 0))) {
            std::vector<int32_t> all, marks, ends, likely;
            xm_token_bits bits = {};
            if (xm_constraint_allowed(c, false, &bits, &why) != XM_OK)
                break;
            for (int32_t id = 0; id < 210; id++) {
                const bool is_named = xm_constraint_names(c, id);
                if (is_named)
                    marks.push_back(id);
                if (id >= 200 || !(bits.words[id / 64] >> id % 64 & 1))
                    continue;
                all.push_back(id);
                if (letter(id) == closing(text))
                    ends.push_back(id);
                if (strchr("\"}]", letter(id)))
                    likely.push_back(id);
            }
            const std::vector<int32_t> &from =
                !marks.empty() && (all.empty() || random() % 3) ? marks
                : !ends.empty() && random() % 4                 ? ends
                : !likely.empty() && random() % 2               ? likely
                                                                : all;
            if (from.empty())
                break;
            ids.push_back(from[random() % from.size()]);
            text += letter(ids.back());
            const xm_status s = &from == &marks
                                    ? xm_constraint_accept_named(c, ids.back(), &why)
                                    : xm_constraint_accept(c, ids.back(), false, &why);
            EXPECT_EQ(s, XM_OK) << why.text;
        }
        EXPECT_TRUE(xm_constraint_can_end(c)) << spelled(ids);
        xm_constraint_free(c);
        return ids;
    }
    std::string spelled(const Ids &ids) const
    {
        std::string text;
        for (int32_t id : ids)
            text += xm_tokenizer_token_text(tokenizer.t, id, nullptr);
        return text;
    }

    /* Returns the calls of an answer, each as "name arguments". */
    std::vector<std::string> calls_of(const Ids &ids)
    {
        xm_answer a;
        xm_strbuf out = {};
        std::vector<std::string> calls;
        xm_answer_init(&a, tokenizer.t, tmpl);
        a.tools = &choice.tools;
        for (int32_t id : ids) {
            const char *text = xm_tokenizer_token_text(tokenizer.t, id, nullptr);
            if (xm_answer_is_mark(&a, id))
                xm_answer_take(&a, id, &out);
            else
                xm_answer_text(&a, text, strlen(text), &out);
        }
        xm_answer_end(&a, &out);
        for (size_t i = 0; i < a.calls.n; i++)
            calls.push_back(a.calls.list[i].name + std::string(" ") +
                            a.calls.list[i].arguments);
        xm_strbuf_free(&out);
        xm_answer_free(&a);
        return calls;
    }

    Tokenizer tokenizer;
    std::vector<Declared> declared;
    xm_chat_template *tmpl = nullptr;
    std::vector<yyjson_doc *> docs;
    std::vector<xm_tool> tools;
    xm_tool_choice choice = {};
    xm_grammar *g = nullptr;
    const xm_tool *to_blame = nullptr;
    xm_error err = {};
    xm_status status = XM_OK;

  private:
    static char letter(int32_t id)
    {
        return id >= 200 ? '?' : id ? (char)(id - 1 + ' ') : '\n';
    }
    /* Returns the next letter of the string that ends a parameter. */
    static char closing(const std::string &text)
    {
        const std::string end = "\n</parameter>";
        size_t n = std::min(text.size(), end.size() - 1);
        while (n > 0 && text.compare(text.size() - n, n, end, 0, n) != 0)
            n--;
        return end[n];
    }
    int32_t mark_at(const std::string &text, size_t at) const
    {
        for (int32_t id = 200; id < 210; id++) {
            const char *mark = xm_tokenizer_token_text(tokenizer.t, id, nullptr);
            if (mark && text.compare(at, strlen(mark), mark) == 0)
                return id;
        }
        return -1;
    }
};

const Declared weather = {
    "weather",
    R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer",)"
    R"("minimum":1,"maximum":9}},"required":["city"]})"};
const Declared now = {"now", ""};

TEST(ToolGrammar, AJsonCallIsBetweenItsMarks)
{
    Calling c(json, {weather, now});
    EXPECT_TRUE(c.admits("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
                         "\"Rome\", \"days\": 3}}\n</tool_call>"));
    EXPECT_TRUE(c.admits("\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": "
                         "{}}\n</tool_call>"));
    EXPECT_TRUE(
        c.admits("<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n"
                 "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"));
    for (const char *text :
         {"", "Hello", "\n\n",
          "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
          "5}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a\", "
          "\"days\": "
          "10}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a\", "
          "\"more\": "
          "1}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": 1}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call> and more",
          "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}"})
        EXPECT_FALSE(c.admits(text)) << text;
}

TEST(ToolGrammar, TextMayStandBeforeOrInPlaceOfCallsThatAreNotForced)
{
    const std::string call =
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    Calling c(json, {now}, false, true);
    EXPECT_TRUE(c.admits(""));
    EXPECT_TRUE(c.admits("Just {text}.\n"));
    EXPECT_TRUE(c.admits("I look.\n" + call));
    EXPECT_FALSE(c.admits(call + "\n" + call)) << "one at most";
    EXPECT_FALSE(c.admits(call + "text"));
    Calling several(json, {now}, false, false);
    EXPECT_TRUE(several.admits("a" + call + "\n" + call));
    Calling one(json, {now}, true, true);
    EXPECT_TRUE(one.admits(call));
    EXPECT_FALSE(one.admits(call + "\n" + call));
}

/* If calls are optional, only calls of strict tools must match their schemas. */
TEST(ToolGrammar, StrictToolsKeepTheirSchemas)
{
    Declared strict = weather;
    strict.name = "strict";
    strict.strict = true;
    Calling c(json, {weather, strict}, false);
    const auto call = [](const char *name) {
        return std::string("<tool_call>\n{\"name\": \"") + name +
               "\", \"arguments\": {\"x\": [1]}}\n</tool_call>";
    };
    EXPECT_TRUE(c.admits(call("weather")));
    EXPECT_FALSE(c.admits(call("strict")));
    for (const Way &way : {coder, gemma}) {
        Calling other(way, {weather, strict}, false);
        EXPECT_EQ(other.status, XM_OK) << other.err.text;
    }
    Calling named(coder, {weather}, false);
    EXPECT_TRUE(named.admits("<tool_call>\n<function=weather>\n<parameter=x>\n1\n"
                             "</parameter>\n</function>\n</tool_call>"));
    Calling braces(gemma, {weather}, false);
    EXPECT_TRUE(
        braces.admits("<|tool_call>call:weather{x:[1,{y:<|\"|>a<|\"|>}]}<tool_call|>"));
}

TEST(ToolGrammar, ParametersAreOfTheCoder)
{
    Calling c(coder, {weather, now});
    const std::string begin = "<tool_call>\n<function=weather>\n",
                      end = "</function>\n</tool_call>";
    const auto city = [](const std::string &value) {
        return "<parameter=city>\n" + value + "\n</parameter>\n";
    };
    const std::string days = "<parameter=days>\n3\n</parameter>\n";
    EXPECT_TRUE(c.admits(begin + city("Rome") + days + end));
    EXPECT_TRUE(c.admits(begin + city("a < b </p> <</parameter \n\n</parameter") + end));
    EXPECT_TRUE(c.admits("<tool_call>\n<function=now>\n" + end));
    EXPECT_FALSE(c.admits(begin + days + end)) << "city is required";
    EXPECT_FALSE(c.admits(begin + city("a</parameter>b") + end));
    EXPECT_FALSE(
        c.admits(begin + city("a") + "<parameter=days>\nx\n</parameter>\n" + end));
    EXPECT_FALSE(c.admits(begin + city("a") + city("b") + end));
    EXPECT_FALSE(c.admits(begin + city("a") + "<parameter=x>\n1\n</parameter>\n" + end));
}

/* A value that may be a string or another type is written without quotes. */
TEST(ToolGrammar, ParametersOfSeveralTypesStandAsTheyAre)
{
    Calling c(coder,
              {{"f", R"({"type":"object","properties":{"u":{"type":["string","null"]},
              "n":{"type":["integer","null"]},"c":{"const":"a b"},"o":{"type":"object",
              "properties":{"k":{"type":"boolean"}},"additionalProperties":false}}})"}});
    const auto admits = [&](const std::string &key, const std::string &value) {
        return c.admits("<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
                        "\n</parameter>\n</function>\n</tool_call>");
    };
    EXPECT_TRUE(admits("u", "any text"));
    EXPECT_TRUE(admits("u", "null"));
    EXPECT_TRUE(admits("n", "null"));
    EXPECT_FALSE(admits("n", "text"));
    EXPECT_TRUE(admits("c", "a b"));
    EXPECT_FALSE(admits("c", "\"a b\""));
    EXPECT_TRUE(admits("o", "{\"k\": true}"));
    EXPECT_FALSE(admits("o", "{\"k\": 1}"));
}

TEST(ToolGrammar, HarmonyHasMessagesBeforeTheCall)
{
    Calling c(harmony, {weather, now});
    const std::string thought = "<|channel|>analysis<|message|><|end|><|start|>assistant";
    const std::string call =
        "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}";
    EXPECT_TRUE(c.admits(call));
    EXPECT_TRUE(c.admits(thought + call));
    EXPECT_TRUE(c.admits(thought + thought + call));
    EXPECT_FALSE(c.admits(thought));
    EXPECT_FALSE(c.admits(call + call));
    const std::string answer = "<|channel|>final<|message|>Hello.";
    EXPECT_FALSE(c.admits(answer));
    Calling free(harmony, {now}, false);
    EXPECT_TRUE(free.admits(answer));
    EXPECT_TRUE(free.admits(thought + answer));
    EXPECT_TRUE(free.admits(call));
    EXPECT_FALSE(free.admits("Hello."));
}

TEST(ToolGrammar, BracesHaveQuotesOfTheirOwn)
{
    const Declared f = {
        "f",
        R"({"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/p"},
        "minItems":1,"maxItems":2},"b":{"anyOf":[{"type":"boolean"},{"type":"null"}]},
        "c":{"enum":["x",7]},"d":{}},"required":["b"],"$defs":{"p":{"type":"object",
        "properties":{"x":{"type":"number"},"s":{"type":"string"}},"required":["x"]}}})"};
    Calling c(gemma, {f, now});
    const auto call = [](const std::string &arguments) {
        return "<|tool_call>call:f{" + arguments + "}<tool_call|>";
    };
    const std::string q = "<|\"|>";
    EXPECT_TRUE(c.admits(call("b:true")));
    EXPECT_TRUE(c.admits(call("a:[{x:1}],b:null")));
    EXPECT_TRUE(c.admits(
        call("a:[{x:1.5,s:" + q + "a, {b}" + q + "},{x:2}],b:null,c:" + q + "x" + q)));
    EXPECT_TRUE(c.admits(call("b:null,c:7,d:[" + q + "a" + q + ",{k:[]}]")));
    EXPECT_TRUE(c.admits(call("b:null") + call("b:null")));
    EXPECT_TRUE(c.admits("<|tool_call>call:now{}<tool_call|>"));
    for (const std::string &arguments : std::vector<std::string>{
             "", "b:1", "a:[],b:null", "a:[{x:1},{x:1},{x:1}],b:null", "a:[{}],b:null",
             "b:null,c:8", "b:null,c:" + q + "y" + q, "b:null,e:1", "b:null,a:[{x:1}]",
             "b: null"})
        EXPECT_FALSE(c.admits(call(arguments))) << arguments;
}

/* ---- drawn texts ---------------------------------------------------------------------------- */

TEST(ToolGrammar, TextsThatAreDrawnAreCallsThatMatch)
{
    const std::vector<Declared> declared = {
        weather,
        {"mixed",
         R"({"type":"object","properties":{"s":{"type":"string"},"n":{"type":"number"},
          "i":{"type":"integer","minimum":-50,"maximum":50},"b":{"type":"boolean"},
          "e":{"enum":["one","two","3"]},"l":{"type":"array","items":{"type":"integer"},
          "maxItems":3},"o":{"type":"object","properties":{"k":{"type":"string"}},
          "required":["k"],"additionalProperties":false}},"required":["s","e"],
          "additionalProperties":false})"}};
    std::mt19937 &random = sample::random();
    for (const Way &way : {json, coder, harmony, gemma}) {
        Calling c(way, declared);
        ASSERT_EQ(c.status, XM_OK) << c.err.text;
        std::vector<Grammar> schemas;
        for (const Declared &d : declared)
            schemas.push_back(Grammar::schema(d.schema));
        int n[2] = {0, 0};
        for (int i = 0; i < 60; i++) {
            const Ids ids = c.draw(random);
            const std::vector<std::string> calls = c.calls_of(ids);
            EXPECT_GT(calls.size(), 0u) << c.spelled(ids);
            for (const std::string &call : calls) {
                const size_t which = call.compare(0, 8, "weather ") == 0 ? 0 : 1;
                const std::string arguments = call.substr(call.find(' ') + 1);
                EXPECT_TRUE(schemas[which].matches(arguments))
                    << call << " of " << c.spelled(ids);
                n[which]++;
            }
        }
        EXPECT_GT(n[0], 5);
        EXPECT_GT(n[1], 5);
    }
}

/* Parameters in Qwen3-Coder's syntax have no types in the text: the schema determines them. */
TEST(ToolGrammar, TheSchemaSaysTheTypesOfParameters)
{
    const Declared f = {
        "f",
        R"({"type":"object","properties":{"s":{"type":"string"},"i":{"type":"integer"},
        "u":{"anyOf":[{"type":"string"},{"type":"null"}]},"r":{"$ref":"#/$defs/t"},
        "e":{"enum":["1",2]},"n":{"type":["number","string"]},"x":{}},
        "$defs":{"t":{"type":"string"}},"additionalProperties":{"$ref":"#/$defs/t"}})"};
    Calling c(coder, {f});
    const auto parse = [&](const std::string &key, const std::string &value) {
        const std::string text = "<function=f>\n<parameter=" + key + ">\n" + value +
                                 "\n</parameter>\n</function>";
        xm_tool_calls calls = {};
        EXPECT_EQ(xm_tool_calls_parse(&calls, XM_CALL_JSON, {},
                                      xm_slice_of(text.data(), text.size()),
                                      &c.choice.tools, nullptr),
                  XM_OK);
        const std::string arguments = calls.n ? calls.list[0].arguments : "";
        xm_tool_calls_free(&calls);
        return arguments;
    };
    EXPECT_EQ(parse("s", "5"), R"({"s":"5"})");
    EXPECT_EQ(parse("s", "{\"a\": 1}"), R"({"s":"{\"a\": 1}"})");
    EXPECT_EQ(parse("i", "5"), R"({"i":5})");
    EXPECT_EQ(parse("i", "5.5"), R"({"i":"5.5"})") << "of no declared type";
    EXPECT_EQ(parse("u", "null"), R"({"u":null})");
    EXPECT_EQ(parse("u", "5"), R"({"u":"5"})");
    EXPECT_EQ(parse("r", "true"), R"({"r":"true"})");
    EXPECT_EQ(parse("e", "2"), R"({"e":2})");
    EXPECT_EQ(parse("n", "1e5"), R"({"n":1e5})");
    EXPECT_EQ(parse("x", "[1]"), R"({"x":[1]})");
    EXPECT_EQ(parse("not_there", "7"), R"({"not_there":"7"})");
}

/* A schema with many references to itself has more paths at each level. The search for the types
 * of its instances stops after some steps, and then assumes all types. */
TEST(ToolGrammar, TypesAreLookedForInABoundedNumberOfSteps)
{
    const std::string loop =
        R"({"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"type":"object"}]})";
    for (const Way &way : {json, harmony})
        EXPECT_EQ(Calling(way, {{"f", loop}}).status, XM_OK);
    for (const Way &way : {coder, gemma})
        EXPECT_NE(Calling(way, {{"f", loop}}).status, XM_OK);
    const auto types_of = [](const std::string &schema, unsigned *left) {
        yyjson_doc *doc = yyjson_read(schema.data(), schema.size(), 0);
        const xm_tool tool = {{}, yyjson_doc_get_root(doc), false};
        const unsigned types = xm_tool_argument_types(&tool, xm_slice_of("a", 1), left);
        yyjson_doc_free(doc);
        return types;
    };
    unsigned left = XM_TYPES_STEPS;
    const std::string begin = R"({"properties":{"a":{"anyOf":[)", end = "]}}}";
    const unsigned object = types_of(begin + R"({"type":"object"})" + end, &left);
    const unsigned string = types_of(begin + R"({"enum":["a","b"]})" + end, &left);
    EXPECT_EQ(XM_TYPES_STEPS - left, 2 * (1u + 2 * 64) + 2);
    EXPECT_NE(object, string);
    unsigned few = 2;
    const unsigned any = types_of(begin + R"({"type":"object"})" + end, &few);
    EXPECT_EQ(any & (object | string), object | string);
    EXPECT_EQ(few, 0u);
    EXPECT_EQ(types_of(begin + R"({"type":"object"})" + end, &few), any);
    const std::string self = R"({"$ref":"#/properties/a"})";
    left = XM_TYPES_STEPS;
    EXPECT_EQ(types_of(begin + self + "," + self + "," + self + end, &left), any);
    EXPECT_EQ(left, 0u);
}

/* ---- refusals ------------------------------------------------------------------------------- */

TEST(ToolGrammar, RefusalsNameToolAndKeyword)
{
    const auto refused = [](const Way &way, const std::string &schema) {
        Calling c(way, {{"f", schema}});
        EXPECT_NE(c.status, XM_OK) << schema;
        return std::string(c.err.text);
    };
    EXPECT_EQ(
        refused(json, R"({"type":"object","properties":{"a":{"not":{"pattern":"a"}}}})")
            .find("the arguments of 'f': JSON Schema, /properties/a"),
        0u);
    for (const Way &way : {json, coder, harmony, gemma}) {
        const std::string text = refused(way, R"({"type":"string"})");
        EXPECT_NE(text.find("arguments of a tool are an object"), std::string::npos)
            << text;
    }
    for (const Way &way : {coder, gemma}) {
        for (const char *schema :
             {R"({"type":"object","anyOf":[{}]})", R"({"$ref":"#"})",
              R"({"type":"object","properties":{"a b":{}}})",
              R"({"type":"object","properties":{"a":{"allOf":[{},{}]}}})",
              R"({"type":"object","properties":{"a":{"$ref":"#/nowhere"}}})",
              R"({"type":"object","properties":{},"required":["a"]})",
              R"({"type":"object","properties":{"a":{"enum":["</parameter><|\"|>"]}}})"})
            EXPECT_EQ(refused(way, schema).find("the arguments of 'f': JSON Schema"), 0u)
                << schema;
    }
    const char *const loop =
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})";
    EXPECT_NE(refused(gemma, loop).find("refers to itself"), std::string::npos);
    const Way none = {"{# no calls #}", {"<think>", "</think>"}};
    EXPECT_NE(refused(none, "{}").find("tool calls cannot be forced"), std::string::npos);
}

/* In both syntaxes that write strings without quotes. */
TEST(ToolGrammar, StringsHaveTheirPatterns)
{
    const struct {
        const char *schema;
        std::vector<const char *> good, bad;
    } rows[] = {
        {R"({"type":"string","pattern":"^[A-Z]{2}-\\d+$"})",
         {"AB-1", "XY-007"},
         {"ab-1", "AB-", "AB-1x", ""}},
        {R"({"type":"string","pattern":"a.c"})",
         {"abc", "xx a\"c\\n"},
         {"ac", "<abc", "a<c"}},
        {R"({"type":"string","pattern":"^[^x]*$","maxLength":3})",
         {"", "a\"\\"},
         {"abcd", "ax", "<"}},
        {R"({"type":"string","format":"date"})", {"2026-02-28"}, {"2026-02-30", "soon"}},
        {R"({"type":"string","maxLength":2})", {"longer", "<"}, {}},
        {R"({"type":"string"})", {"a <b> c"}, {}},
    };
    const std::pair<const Way *, std::array<const char *, 2>> ways[] = {
        {&coder,
         {"<tool_call>\n<function=f>\n<parameter=a>\n",
          "\n</parameter>\n</function>\n</tool_call>"}},
        {&gemma, {"<|tool_call>call:f{a:<|\"|>", "<|\"|>}<tool_call|>"}}};
    for (const auto &[way, around] : ways)
        for (const auto &row : rows) {
            const std::string schema = std::string(R"({"properties":{"a":)") +
                                       row.schema + R"(},"required":["a"]})";
            Calling f(*way, {{"f", schema}});
            for (const char *text : row.good)
                EXPECT_TRUE(f.admits(around[0] + std::string(text) + around[1]))
                    << schema << " " << text;
            for (const char *text : row.bad)
                EXPECT_FALSE(f.admits(around[0] + std::string(text) + around[1]))
                    << schema << " " << text;
        }
}

/* The size of all tools together is checked when the automaton is made; its limit is reached
 * before that of the trees. */
TEST(ToolGrammar, NamesTheToolThatIsTooLarge)
{
    std::string list = "0";
    for (int i = 1; i < 280000; i++)
        list += "," + std::to_string(i);
    const std::string small = R"({"properties":{"a":{"enum":[1,2]}}})",
                      large = R"({"properties":{"a":{"enum":[)" + list + "]}}}";
    for (const Way *way : {&json, &coder, &harmony, &gemma}) {
        const Calling all(*way, {{"f", small}, {"g", large}, {"h", small}});
        EXPECT_EQ(all.status, XM_UNSUPPORTED);
        EXPECT_EQ(all.to_blame, &all.tools[1]);
        EXPECT_STREQ(all.err.text,
                     "the grammar is too large: it needs more than 262144 states");
    }
}

struct Keyword {
    const char *schema, *path;
};

/* Keywords for an argument that may be a string, which Qwen3-Coder's syntax checks, too: none may
 * be ignored silently. */
const Keyword keywords[] = {
    {R"({"not":{}})", "not"},
    {R"({"type":"string","if":{},"else":{}})", "if"},
    {R"({"enum":["a"],"not":{}})", "not"},
    {R"({"anyOf":[{"type":"string"}],"not":{}})", "not"},
    {R"({"type":["string","array"],"prefixItems":[{}]})", "prefixItems"},
    {R"({"type":["string","array"],"uniqueItems":true})", "uniqueItems"},
    {R"({"type":["string","array"],"contains":{}})", "contains"},
    {R"({"type":["string","object"],"minProperties":1})", "minProperties"},
    {R"({"type":["string","object"],"patternProperties":{}})", "patternProperties"},
    {R"({"type":["string","object"],"dependentRequired":{}})", "dependentRequired"},
    {R"({"enum":["a",5],"minimum":3})", "minimum"},
    {R"({"enum":["a"],"minLength":3})", "minLength"},
    {R"({"enum":["a"],"const":"a"})", "enum"},
    {R"({"anyOf":[{}],"required":["a"]})", "required"},
    {R"({"anyOf":[{}],"oneOf":[{}]})", "oneOf"},
    {R"({"anyOf":[{"type":"string"},{"type":"null"}],"type":"string"})", "type"},
    {R"({"anyOf":5})", "anyOf"},
    {R"({"oneOf":[{"type":"string"},{"type":"string"}]})", "oneOf"},
    {R"({"$ref":"#/$defs/s","items":{}})", "items"},
    {R"({"$ref":"#/$defs/s","type":"null"})", "type"},
};

TEST(ToolGrammar, KeywordsWithoutAGrammarAreRefusedByName)
{
    for (const Way &way : {coder, gemma})
        for (const Keyword &k : keywords) {
            Calling c(way, {{"f", std::string(R"({"properties":{"a":)") + k.schema +
                                      R"(},"$defs":{"s":{"type":"string"}}})"}});
            EXPECT_NE(c.status, XM_OK) << k.schema;
            const std::string where =
                std::string("JSON Schema, /properties/a/") + k.path + ":";
            EXPECT_NE(std::string(c.err.text).find(where), std::string::npos)
                << k.schema << ": " << c.err.text;
        }
    for (const Way &way : {json, coder, harmony, gemma})
        for (const std::string keyword :
             {R"("not":{"pattern":"a"})", R"("if":{"pattern":"a"},"then":{})",
              R"("dependentSchemas":{})", R"("dependentRequired":{})",
              R"("propertyNames":{"maxLength":1})"}) {
            Calling c(way, {{"f", R"({"properties":{"a":{}},)" + keyword + "}"}});
            const std::string where =
                "JSON Schema, /" + keyword.substr(1, keyword.find(':') - 2) + ":";
            EXPECT_NE(std::string(c.err.text).find(where), std::string::npos)
                << keyword << ": " << c.err.text;
        }
}

/* Values that are not strings are JSON in Qwen3-Coder's syntax, with all keywords. */
TEST(ToolGrammar, ParametersThatAreNoStringsHaveAllKeywordsOfJson)
{
    Calling c(coder, {{"f", R"({"properties":{"n":{"type":"integer","enum":[1,2,"3"]},
        "l":{"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"boolean"}},
        "o":{"$ref":"#/$defs/o"}},"$defs":{"o":{"type":"object","allOf":[{"properties":
        {"o":{"$ref":"#/$defs/o"}}}]}}})"}});
    const auto admits = [&](const std::string &key, const std::string &value) {
        return c.admits("<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
                        "\n</parameter>\n</function>\n</tool_call>");
    };
    EXPECT_TRUE(admits("n", "1"));
    EXPECT_FALSE(admits("n", "3"));
    EXPECT_FALSE(admits("n", "\"3\""));
    EXPECT_TRUE(admits("l", "[null,true]"));
    EXPECT_FALSE(admits("l", "[true]"));
    EXPECT_TRUE(admits("o", R"({"o":{"o":{}}})"));
    EXPECT_FALSE(admits("o", R"({"o":{"o":1}})"));
}

/* Only declared properties are allowed, in each syntax and in nested objects, unless the schema
 * has additionalProperties; their names must differ from declared ones. */
TEST(ToolGrammar, AdditionalPropertiesAreWrittenWhereTheSchemaHasThem)
{
    struct Case {
        std::string schema, json, parameters, braces;
        bool admits;
    };
    const auto parameter = [](const char *key, const char *v) {
        return std::string("<parameter=") + key + ">\n" + v + "\n</parameter>\n";
    };
    const std::string a = R"("properties":{"a":{"type":"integer"},"ab":{}})";
    const std::string open = "{" + a + R"(,"additionalProperties":true})";
    const std::string typed = "{" + a + R"(,"additionalProperties":{"type":"boolean"}})";
    const std::string closed = "{" + a + R"(,"additionalProperties":false})";
    const auto one = [&](const std::string &schema, const char *key, const char *v,
                         bool admits) {
        return Case{schema, std::string("{\"") + key + "\": " + v + "}",
                    parameter(key, v), std::string("{") + key + ":" + v + "}", admits};
    };
    const std::vector<Case> cases = {
        one("{" + a + "}", "a", "1", true),
        one("{" + a + "}", "c", "1", false),
        one(closed, "c", "1", false),
        one(open, "a", "1", true),
        one(open, "c", "1", true),
        one(open, "abc", "1", true),
        one(open, "b", "true", true),
        one(open, "a", "true", false),
        {open, R"({"a": 1, "c": 2, "d": 3})",
         parameter("a", "1") + parameter("c", "2") + parameter("d", "3"), "{a:1,c:2,d:3}",
         true},
        one(typed, "c", "true", true),
        one(typed, "c", "1", false),
        one(R"({"properties":{},"additionalProperties":true})", "c", "1", true),
        one(R"({"properties":{},"additionalProperties":{}})", "c", "1", true),
        one(R"({"properties":{}})", "c", "1", false),
        {R"({"properties":{}})", "{}", "", "{}", true},
        {R"({"additionalProperties":false})", "{}", "", "{}", true},
        one(R"({"additionalProperties":false})", "c", "1", false),
        one(R"({"type":"object"})", "c", "1", true),
        one(R"({"additionalProperties":{"type":"null"}})", "c", "null", true),
        one(R"({"additionalProperties":{"type":"null"}})", "c", "1", false),
        {R"({"properties":{"o":{"type":"object",)" + a + "}}}", R"({"o": {"c": 1}})",
         parameter("o", R"({"c": 1})"), "{o:{c:1}}", false},
        {R"({"properties":{"o":{"type":"object","additionalProperties":true,)" + a +
             "}}}",
         R"({"o": {"c": 1}})", parameter("o", R"({"c": 1})"), "{o:{c:1}}", true},
    };
    for (const Case &k : cases) {
        EXPECT_EQ(Calling(json, {{"f", k.schema}})
                      .admits("<tool_call>\n{\"name\": \"f\", \"arguments\": " + k.json +
                              "}\n</tool_call>"),
                  k.admits)
            << k.schema << k.json;
        EXPECT_EQ(Calling(coder, {{"f", k.schema}})
                      .admits("<tool_call>\n<function=f>\n" + k.parameters +
                              "</function>\n</tool_call>"),
                  k.admits)
            << k.schema << k.parameters;
        EXPECT_EQ(Calling(gemma, {{"f", k.schema}})
                      .admits("<|tool_call>call:f" + k.braces + "<tool_call|>"),
                  k.admits)
            << k.schema << k.braces;
    }
}

/* Arguments are an object even if the schema allows other values. */
TEST(ToolGrammar, ArgumentsAreAnObject)
{
    for (const char *schema :
         {R"({"type":["object","string"]})", R"({"description":"any"})",
          R"({"anyOf":[{"type":"string"},{"type":"object"}]})",
          R"({"$ref":"#/$defs/a","$defs":{"a":{"type":["object","string"]}}})"}) {
        Calling c(harmony, {{"f", schema}});
        const std::string begin =
            "<|channel|>commentary to=functions.f <|constrain|>json<|message|>";
        EXPECT_TRUE(c.admits(begin + "{}")) << schema;
        EXPECT_TRUE(c.admits(begin + R"({"a": 1})")) << schema;
        EXPECT_FALSE(c.admits(begin + "\"a\"")) << schema;
    }
}

TEST(ToolGrammar, ValuesBesideATypeAreOfIt)
{
    Calling c(gemma, {{"f", R"({"properties":{"a":{"type":"string","enum":["x",7]},
        "b":{"type":"array","minItems":3,"maxItems":2},"c":{"type":["null","boolean"],
        "anyOf":[{"type":"null"}]}}})"}});
    const auto call = [](const std::string &arguments) {
        return "<|tool_call>call:f{" + arguments + "}<tool_call|>";
    };
    EXPECT_TRUE(c.admits(call("a:<|\"|>x<|\"|>")));
    EXPECT_FALSE(c.admits(call("a:7")));
    EXPECT_TRUE(c.admits(call("c:null")));
    EXPECT_FALSE(c.admits(call("b:[1,2,3]")));
    EXPECT_FALSE(c.admits(call("b:[1,2]")));
}

TEST(ToolGrammar, EveryAllocationMayFail)
{
    const Declared f = {
        "f", R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array",
        "items":{"type":"integer"}},"c":{"enum":["x"]}},"required":["a"]})"};
    for (const Way &way : {json, coder, harmony, gemma}) {
        Calling c(way, {f, now});
        for (uint64_t n = 1;; n++) {
            xm_grammar *g = nullptr;
            xm_error err = {};
            xm_fail_allocation(n);
            const xm_status s =
                xm_tool_grammar(&c.choice, c.tokenizer.t, c.tmpl, &g, nullptr, &err);
            const bool seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            EXPECT_TRUE(s == XM_OK || (seen && s == XM_NO_MEMORY)) << err.text;
            EXPECT_EQ(s == XM_OK, g != nullptr);
            xm_grammar_free(g);
            if (!seen)
                break;
            ASSERT_LT(n, 20000u);
        }
    }
}

} // namespace
