/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls that requests force, restrict or return, in each API.
 */
#include "unit_tests/server/served.h"

namespace
{

const char *const chat = "/v1/chat/completions";
const char *const messages = "/v1/messages";
const char *const responses = "/v1/responses";

enum { FIRST_MARK = 100, N_IDS = 110 };

/* A tokenizer of printable letters, a line feed and these marker tokens. */
std::string
tokenizer(const std::vector<std::string> &marks)
{
    std::string vocab = R"("\n":0)", added;
    for (char c = ' '; c < 0x7f; c++)
        vocab += ",\"" + std::string(c == '"' || c == '\\' ? "\\" : "") + c +
                 "\":" + std::to_string(c - ' ' + 1);
    for (size_t i = 0; i < marks.size(); i++)
        added += R"(,{"id":)" + std::to_string(FIRST_MARK + i) + R"(,"content":")" +
                 marks[i] + R"(","special":false})";
    return R"({"model":{"type":"BPE","vocab":{)" + vocab +
           R"(},"merges":[]},"decoder":{"type":"Fuse"},"added_tokens":[)"
           R"({"id":96,"content":"<|im_end|>","special":true},)"
           R"({"id":97,"content":"<s>","special":true})" +
           added + "]}";
}

/* A model with random logits that prefers ends of texts, strings and objects to other letters. */
class Tools : public ::testing::Test
{
  protected:
    static std::string bias(char c, int by)
    {
        return "\"" + std::to_string(c - ' ' + 1) + "\":" + std::to_string(by);
    }
    static std::string common(const std::string &seed = "1")
    {
        return R"({"max_tokens":600,"max_output_tokens":600,)" + sampling(seed);
    }
    static std::string sampling(const std::string &seed)
    {
        return R"("temperature":1,"seed":)" + seed + R"(,"logit_bias":{)" + bias('"', 6) +
               "," + bias('}', 6) + R"(,"96":6,"0":6})";
    }
    static std::string function(const std::string &name, const std::string &more = "")
    {
        return R"("name":")" + name +
               R"(","parameters":{"type":"object","properties":{)"
               R"("city":{"type":"string"},"days":{"type":"integer","minimum":1,)"
               R"("maximum":9}},"required":["city"]})" +
               more;
    }
    static std::string chat_body(const std::string &more, const std::string &seed = "1",
                                 const std::string &strict = "")
    {
        return common(seed) +
               R"(,"messages":[{"role":"user","content":"a"}],"tools":[)"
               R"({"type":"function","function":{)" +
               function("f", strict) + R"(}},{"type":"function","function":{)" +
               function("g") + "}}]" + more + "}";
    }
    static std::string anthropic_body(const std::string &choice,
                                      const std::string &seed = "1")
    {
        return common(seed) +
               R"(,"messages":[{"role":"user","content":"a"}],"tools":[)"
               R"({"name":"f","input_schema":{"type":"object","properties":{"n":{"type":)"
               R"("boolean"}},"required":["n"]}},{"name":"g","input_schema":{}}])"
               R"(,"tool_choice":)" +
               choice + "}";
    }
    static std::string responses_body(const std::string &more)
    {
        return common() + R"(,"input":"a","tools":[{"type":"function",)" + function("f") +
               "}]" + more + "}";
    }
    /* Fails unless the arguments of each call are an object with a city, and days from 1 to 9. */
    static void check_arguments(const std::string &text)
    {
        const std::string begin = R"("arguments":")";
        for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
            at += begin.size();
            std::string json;
            for (; at < text.size() && text[at] != '"'; at++) {
                at += text[at] == '\\';
                json += text[at];
            }
            if (json.empty())
                continue; /* a call that has just begun */
            EXPECT_EQ(json.find(R"({"city":")"), 0u) << json;
            const size_t days = json.rfind(R"("days":)");
            if (days != std::string::npos && json[json.size() - 2] != '"') {
                EXPECT_TRUE(std::isdigit(json[days + 7])) << json;
            }
        }
    }

    static constexpr const char *tmpl =
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}"
        "({{ c.function.name }}){% endfor %}{% endfor %}"
        "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{# <think> "
        "</think> "
        "<tool_call> #}";
    Served s{4,    64,
             2048, tokenizer({"<think>", "</think>", "<tool_call>", "</tool_call>"}),
             tmpl, N_IDS};
};

/* A server for a model that writes in gpt-oss's format. */
struct Harmony : Served {
    Harmony()
        : Served(4, 64, 2048,
                 tokenizer({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
                            "<|end|>", "<|return|>", "<|call|>"}),
                 "{{ messages[0].content }}{# tools <|channel|> <|message|> #}<|start|>",
                 N_IDS)
    {
    }
};

TEST_F(Tools, RequiredCallsAreMade)
{
    size_t n_calls = 0;
    bool saw_f = false, saw_g = false, saw_thought = false;
    for (int seed = 1; seed <= 24; seed++) {
        const Answer a =
            s.ask(chat, chat_body(R"(,"tool_choice":"required")", std::to_string(seed)));
        ASSERT_EQ(a.status, 200) << a.text;
        if (has(a.text, R"("finish_reason":"length")"))
            continue;
        EXPECT_TRUE(has(a.text, R"("finish_reason":"tool_calls")")) << a.text;
        EXPECT_TRUE(has(a.text, R"("content":null)")) << a.text;
        check_arguments(a.text);
        n_calls += count_of(a.text, R"("id":"call_)");
        saw_f |= has(a.text, R"("name":"f")");
        saw_g |= has(a.text, R"("name":"g")");
        saw_thought |= has(a.text, R"("reasoning_content":")");
    }
    EXPECT_GT(n_calls, 12u);
    EXPECT_TRUE(saw_f && saw_g);
    EXPECT_TRUE(saw_thought) << "a model that thinks may do so first";
}

TEST_F(Tools, OneCallAtMostIsMadeWhereParallelOnesAreNotWanted)
{
    size_t several = 0;
    for (int seed = 1; seed <= 24; seed++) {
        const auto ask = [&](const char *more) {
            return s.ask(chat,
                         chat_body(std::string(R"(,"tool_choice":"required")") + more,
                                   std::to_string(seed)));
        };
        several += count_of(ask("").text, R"("id":"call_)") > 1;
        EXPECT_LE(count_of(ask(R"(,"parallel_tool_calls":false)").text, R"("id":"call_)"),
                  1u);
    }
    EXPECT_GT(several, 0u);
}

TEST_F(Tools, ANamedFunctionIsCalledOnce)
{
    for (int seed = 1; seed <= 12; seed++) {
        const Answer a = s.ask(
            chat,
            chat_body(R"(,"tool_choice":{"type":"function","function":{"name":"f"}})",
                      std::to_string(seed)));
        EXPECT_LE(count_of(a.text, R"("id":"call_)"), 1u) << a.text;
    }
    for (const char *name : {"f", "g"}) {
        const Answer a = s.ask(
            chat, chat_body(R"(,"tool_choice":{"type":"function","function":{"name":")" +
                            std::string(name) + "\"}}"));
        EXPECT_EQ(count_of(a.text, "\"function\":{\"name\":\"" + std::string(name)), 1u)
            << a.text;
        EXPECT_EQ(count_of(a.text, R"("id":"call_)"), 1u) << a.text;
        check_arguments(a.text);
        const Answer streamed =
            s.ask(chat, chat_body(R"(,"stream":true,"tool_choice":{"type":"function",)"
                                  R"("function":{"name":")" +
                                  std::string(name) + "\"}}"));
        EXPECT_TRUE(
            has(streamed.text, R"("delta":{"tool_calls":[{"index":0,"id":"call_)"))
            << streamed.text;
        EXPECT_TRUE(has(streamed.text, R"("finish_reason":"tool_calls")"));
    }
}

/* A model that begins a call and then prefers any letters. */
TEST_F(Tools, StrictFunctionsKeepTheirSchemasWhereCallsAreFree)
{
    const auto ask = [&](const char *strict, int seed) {
        std::string body = chat_body("", std::to_string(seed), strict);
        const std::string begin = "\"logit_bias\":{";
        body.insert(body.find(begin) + begin.size(), "\"102\":50,");
        return s.ask(chat, body);
    };
    for (int seed = 1; seed <= 8; seed++) {
        const Answer free = ask("", seed), strict = ask(R"(,"strict":true)", seed);
        EXPECT_EQ(count_of(free.text, R"("id":"call_)"), 0u) << free.text;
        if (!has(strict.text, R"("finish_reason":"length")")) {
            EXPECT_GE(count_of(strict.text, R"("id":"call_)"), 1u) << strict.text;
        }
    }
}

/* Thoughts are messages before the call, free in content, which end with their marker. */
TEST_F(Tools, AHarmonyMayThinkBeforeItCalls)
{
    Harmony other;
    size_t n_calls = 0, n_thoughts = 0;
    for (int seed = 1; seed <= 12; seed++) {
        std::string body =
            chat_body(R"(,"tool_choice":"required")", std::to_string(seed));
        const std::string begin = "\"logit_bias\":{";
        body.insert(body.find(begin) + begin.size(), "\"104\":4,");
        const Answer a = other.ask(chat, body);
        ASSERT_EQ(a.status, 200) << a.text;
        if (has(a.text, R"("finish_reason":"length")"))
            continue;
        EXPECT_EQ(count_of(a.text, R"("id":"call_)"), 1u) << a.text;
        check_arguments(a.text);
        n_calls++;
        n_thoughts += has(a.text, R"("reasoning_content":")");
    }
    EXPECT_GT(n_calls, 4u);
    EXPECT_GT(n_thoughts, 0u);
}

TEST_F(Tools, AnthropicsChoicesForceCalls)
{
    const Answer any = s.ask(messages, anthropic_body(R"({"type":"any"})"));
    EXPECT_TRUE(has(any.text, R"("type":"tool_use","id":"call_)")) << any.text;
    EXPECT_TRUE(has(any.text, R"("stop_reason":"tool_use")")) << any.text;
    const Answer tool = s.ask(
        messages,
        anthropic_body(R"({"type":"tool","name":"f","disable_parallel_tool_use":true})"));
    EXPECT_EQ(count_of(tool.text, R"("type":"tool_use")"), 1u) << tool.text;
    EXPECT_TRUE(has(tool.text, R"("name":"f","input":{"n":)")) << tool.text;
    for (int seed = 1; seed <= 12; seed++) {
        const Answer one = s.ask(
            messages, anthropic_body(R"({"type":"any","disable_parallel_tool_use":true})",
                                     std::to_string(seed)));
        EXPECT_LE(count_of(one.text, R"("type":"tool_use")"), 1u) << one.text;
    }
    const Answer none = s.ask(messages, anthropic_body(R"({"type":"none"})"));
    EXPECT_EQ(none.status, 200) << none.text;
    EXPECT_FALSE(has(none.text, R"("type":"tool_use")"));
}

TEST_F(Tools, ResponsesHaveCallsAsItems)
{
    const std::string must = R"(,"tool_choice":{"type":"function","name":"f"})";
    const Answer a = s.ask(responses, responses_body(must));
    ASSERT_EQ(a.status, 200) << a.text;
    EXPECT_TRUE(has(a.text, R"("output":[{"id":"fc_)")) << a.text;
    EXPECT_TRUE(
        has(a.text, R"("type":"function_call","status":"completed","call_id":"call_)"))
        << a.text;
    EXPECT_TRUE(has(a.text, R"("tool_choice":{"type":"function","name":"f"})")) << a.text;
    EXPECT_EQ(count_of(a.text, R"("type":"message")"), 0u);
    check_arguments(a.text);
    const Answer streamed = s.ask(responses, responses_body(must + R"(,"stream":true)"));
    std::string order;
    for (size_t at = 0; (at = streamed.text.find("event: ", at)) != std::string::npos;) {
        at += 7;
        order += streamed.text.substr(at, streamed.text.find('\n', at) - at) + " ";
    }
    EXPECT_EQ(order, "response.created response.in_progress response.output_item.added "
                     "response.function_call_arguments.delta "
                     "response.function_call_arguments.done response.output_item.done "
                     "response.completed ");
    EXPECT_TRUE(has(streamed.text, R"("status":"in_progress","call_id":"call_)"));
    check_arguments(streamed.text);
}

/* Text before a call: the message is item 1 of the answer, the call item 2. */
TEST_F(Tools, ResponsesCountItemsInTheirOrder)
{
    const std::string body =
        R"({"input":"a","max_output_tokens":60,"temperature":0,"presence_penalty":1000,)"
        R"("tools":[{"type":"function","name":"f","parameters":{}}],"logit_bias":{"40":99,)"
        R"("102":90,"105":80,"103":70,"96":60})";
    Served other{4,
                 64,
                 2048,
                 tokenizer({"<think>", "</think>", "<tool_call>", "</tool_call>", "",
                            R"({\"name\": \"f\"})"}),
                 tmpl,
                 N_IDS};
    const Answer whole = other.ask(responses, body + "}");
    EXPECT_TRUE(has(whole.text, R"("output":[{"id":"msg_)")) << whole.text;
    EXPECT_TRUE(has(whole.text, R"(},{"id":"fc_)")) << whole.text;
    const Answer streamed = other.ask(responses, body + R"(,"stream":true})");
    EXPECT_TRUE(has(streamed.text, R"("output_index":1,"item":{"id":"fc_)"))
        << streamed.text;
    EXPECT_EQ(count_of(streamed.text, R"("output_index":0,"item":{"id":"msg_)"), 2u)
        << streamed.text;
    EXPECT_TRUE(has(streamed.text, R"("output":[{"id":"msg_)"));
}

TEST_F(Tools, ResponsesReadCallsAndTheirOutputsBack)
{
    const std::string body =
        R"({"max_output_tokens":1,"input":[{"role":"user","content":"ab"},)"
        R"({"type":"reasoning","id":"r","summary":[]},)"
        R"({"type":"function_call","call_id":"c","name":"ff","arguments":"{}"},)"
        R"({"type":"function_call_output","call_id":"c","output":"xyz"}]})";
    const Answer a = s.ask(responses, body);
    ASSERT_EQ(a.status, 200) << a.text;
    EXPECT_TRUE(has(a.text, R"("input_tokens":9)")) << "ab(ff)xyz: " << a.text;
}

TEST_F(Tools, TheTemplateHasThemInOneForm)
{
    const auto prompt = [&](const char *path, const std::string &body) {
        const Answer a = s.ask(path, body);
        EXPECT_EQ(a.status, 200) << a.text;
        const size_t at = a.text.find("input_tokens\":");
        return at == std::string::npos ? a.text : a.text.substr(at + 14, 1);
    };
    EXPECT_TRUE(has(prompt("/apply-template", chat_body("")), R"("prompt":"a[f][g]")"));
    EXPECT_TRUE(has(prompt("/apply-template", chat_body(R"(,"tool_choice":"none")")),
                    R"("prompt":"a")"));
    EXPECT_EQ(prompt(messages, anthropic_body(R"({"type":"auto"})")), "7");
    EXPECT_EQ(prompt(messages, anthropic_body(R"({"type":"none"})")), "1");
    EXPECT_EQ(prompt(responses, responses_body("")), "4");
}

/* ---- calls cut off by the length limit
 * ---------------------------------------------------------- */

/* Returns the body with a lower limit of tokens. */
std::string
with_tokens(std::string body, size_t n)
{
    for (size_t at; (at = body.find(":600,")) != std::string::npos;)
        body.replace(at, 5, ":" + std::to_string(n) + ",");
    return body;
}

std::string
unquoted(const std::string &json)
{
    std::string text;
    for (size_t i = 0; i < json.size() && json[i] != '"'; i++) {
        i += json[i] == '\\';
        text += json[i];
    }
    return text;
}

/* Returns the first non-empty string member of this name. */
std::string
text_of(const std::string &json, const std::string &key)
{
    const std::string begin = "\"" + key + "\":\"";
    std::string text;
    for (size_t at = 0; text.empty() && (at = json.find(begin, at)) != std::string::npos;)
        text = unquoted(json.substr(at += begin.size()));
    return text;
}

TEST_F(Tools, ACallThatItsLengthCutsHasTheArgumentsThatCame)
{
    const std::string body =
        chat_body(R"(,"tool_choice":{"type":"function","function":{"name":"f"}})", "2");
    const std::string whole = text_of(s.ask(chat, body).text, "arguments");
    ASSERT_GT(whole.size(), 12u);
    size_t n_cut = 0, longest = 0;
    for (size_t n = 1; n < 60 && longest < whole.size(); n++) {
        const Answer a = s.ask(chat, with_tokens(body, n));
        const Answer streamed =
            s.ask(chat, with_tokens(body, n).insert(1, R"("stream":true,)"));
        const std::string cut = text_of(a.text, "arguments");
        EXPECT_EQ(a.status, 200) << a.text;
        EXPECT_FALSE(has(a.text, "tool_call>")) << "no raw text: " << a.text;
        EXPECT_FALSE(has(streamed.text, "tool_call>")) << streamed.text;
        EXPECT_EQ(whole.compare(0, cut.size(), cut), 0) << cut << " of " << whole;
        EXPECT_EQ(text_of(streamed.text, "arguments"), cut) << streamed.text;
        EXPECT_GE(cut.size(), longest);
        EXPECT_TRUE(has(a.text, R"("finish_reason":"length")")) << a.text;
        EXPECT_TRUE(has(streamed.text, R"("finish_reason":"length")")) << streamed.text;
        EXPECT_EQ(count_of(a.text, R"("name":"f")"),
                  count_of(streamed.text, R"("name":"f")"));
        n_cut += has(a.text, R"("name":"f")");
        longest = cut.size();
    }
    EXPECT_EQ(longest, whole.size());
    EXPECT_GT(n_cut, 8u);
}

TEST_F(Tools, ACutCallOfAHarmonyHasNoRawTextEither)
{
    Harmony other;
    const std::string body =
        chat_body(R"(,"tool_choice":{"type":"function","function":{"name":"f"}})", "2");
    const std::string whole = text_of(other.ask(chat, body).text, "arguments");
    ASSERT_GT(whole.size(), 12u);
    size_t n_cut = 0;
    for (size_t n = 1; n < 90; n++) {
        const Answer a = other.ask(chat, with_tokens(body, n));
        const std::string cut = text_of(a.text, "arguments");
        EXPECT_EQ(whole.compare(0, cut.size(), cut), 0) << cut << " of " << whole;
        EXPECT_EQ(text_of(a.text, "content"), "") << a.text;
        n_cut += has(a.text, R"("name":"f")") && cut.size() < whole.size();
    }
    EXPECT_GT(n_cut, 8u);
}

TEST_F(Tools, ACutCallOfAnthropicsHasItsWholeMembersAndStopsByTokens)
{
    const std::string body =
        anthropic_body(R"({"type":"tool","name":"f","disable_parallel_tool_use":true})");
    const std::string whole =
        text_of(s.ask(messages, std::string(body).insert(1, R"("stream":true,)")).text,
                "partial_json");
    ASSERT_GT(whole.size(), 5u);
    size_t n_cut = 0;
    for (size_t n = 1; n < 60; n++) {
        const std::string few = with_tokens(body, n);
        const Answer a = s.ask(messages, few);
        const Answer streamed =
            s.ask(messages, std::string(few).insert(1, R"("stream":true,)"));
        const std::string cut = text_of(streamed.text, "partial_json");
        EXPECT_FALSE(has(a.text + streamed.text, "tool_call>")) << a.text;
        EXPECT_EQ(whole.compare(0, cut.size(), cut), 0) << cut << " of " << whole;
        EXPECT_EQ(has(a.text, R"("stop_reason":"max_tokens")"),
                  has(streamed.text, R"("stop_reason":"max_tokens")"));
        n_cut += has(a.text, R"("name":"f","input":{})") &&
                 has(a.text, R"("stop_reason":"max_tokens")");
    }
    EXPECT_GT(n_cut, 5u) << "an input is an object, also of a call that was cut";
}

TEST_F(Tools, ACutCallOfResponsesIsIncomplete)
{
    const std::string body =
        responses_body(R"(,"tool_choice":{"type":"function","name":"f"})");
    size_t n_cut = 0;
    for (size_t n = 1; n < 40; n++) {
        const std::string few = with_tokens(body, n);
        const Answer a = s.ask(responses, few);
        const Answer streamed =
            s.ask(responses, std::string(few).insert(1, R"("stream":true,)"));
        EXPECT_FALSE(has(a.text + streamed.text, "tool_call>")) << a.text;
        EXPECT_EQ(has(streamed.text, "event: response.incomplete"),
                  has(a.text, R"("incomplete_details":{"reason":"max_output_tokens"})"));
        if (!has(a.text, R"("incomplete_details":{"reason":"max_output_tokens"})"))
            continue;
        const bool is_cut =
            has(a.text, R"("type":"function_call","status":"incomplete")");
        n_cut += is_cut;
        EXPECT_TRUE(is_cut || has(a.text, R"("role":"assistant","status":"incomplete")"))
            << a.text;
        EXPECT_EQ(has(streamed.text, R"("type":"function_call","status":"incomplete")"),
                  is_cut)
            << streamed.text;
    }
    EXPECT_GT(n_cut, 8u);
}

/* ---- refusals ------------------------------------------------------------------------------- */

TEST_F(Tools, RefusalsNameTheField)
{
    const std::string says = R"({"messages":[{"role":"user","content":"a"}])";
    const std::string tool =
        R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}])";
    const struct {
        std::string body;
        const char *param, *part;
    } rows[] = {
        {says + R"(,"tool_choice":"required"})", "tool_choice", "there are no tools"},
        {says + tool + R"(,"tool_choice":"required","grammar":"root ::= [a]"})",
         "tool_choice", "cannot be combined"},
        {says + R"(,"tool_choice":"required","tools":[{"type":"function","function":)"
                R"({"name":"f","parameters":{"properties":{"a":{"contains":{}}}}}}]})",
         "tools[0].function.parameters",
         "'tools[0].function.parameters': the arguments of 'f': JSON Schema, "
         "/properties/a/contains: the keyword 'contains'"},
        {says + R"(,"tools":[{"type":"function","function":{"name":"f"}},{"type":)"
                R"("function","function":{"name":"g","strict":true,"parameters":)"
                R"({"properties":{"a":{"type":"integer","minimum":2,"maximum":1}},)"
                R"("required":["a"]}}}]})",
         "tools[1].function.parameters",
         "JSON Schema, /properties/a: no value is valid for its keywords 'type', "
         "'minimum', 'maximum'"},
    };
    for (const auto &row : rows) {
        const Answer a = s.ask(chat, row.body);
        EXPECT_EQ(a.status, 400) << row.body << a.text;
        EXPECT_TRUE(has(a.text, "\"param\":\"" + std::string(row.param) + "\""))
            << row.body << a.text;
        EXPECT_TRUE(has(a.text, row.part)) << row.body << a.text;
    }
}

TEST(ToolsRefused, WhereTheTemplateKnowsNoneOrNoCalls)
{
    const std::string body =
        R"({"max_tokens":2,"messages":[{"role":"user","content":"a"}],"tools":[{"type":)"
        R"("function","function":{"name":"f"}}],"tool_choice":)";
    Served none{4, 64, 512, "", "{{ messages[0].content }}"};
    const Answer a = none.ask(chat, body + "\"auto\"}");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "does not support tools")) << a.text;
    EXPECT_EQ(none.ask(chat, body + "\"none\"}").status, 200);
    Served no_calls{4, 64, 512, "", "{{ messages[0].content }}{{ tools }}"};
    const Answer b = no_calls.ask(chat, body + "\"required\"}");
    EXPECT_EQ(b.status, 400);
    EXPECT_TRUE(has(b.text, "tool calls cannot be forced")) << b.text;
    EXPECT_EQ(no_calls.ask(chat, body + "\"auto\"}").status, 200);
}

} // namespace
