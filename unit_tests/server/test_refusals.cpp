/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid values in requests: each refusal names the place of the value, the value, and what is
 * expected.
 */
#include "plugin/text/sampling.h"
#include "unit_tests/server/served.h"

namespace
{

const char *const chat = "/v1/chat/completions";
const char *const completions = "/v1/completions";
const char *const messages = "/v1/messages";
const char *const responses = "/v1/responses";

/* Returns a valid body without its first brace: a member inserted before it wins. */
std::string
rest_of(const std::string &path)
{
    const std::string list = R"("messages":[{"role":"user","content":"a"}]})";
    return path == completions         ? R"("max_tokens":1,"prompt":"a"})"
           : path == responses         ? R"("max_output_tokens":1,"input":"a"})"
           : path == "/tokenize"       ? R"("content":"a"})"
           : path == "/detokenize"     ? R"("tokens":[1]})"
           : path == "/apply-template" ? list
                                       : R"("max_tokens":1,)" + list;
}

struct Row {
    const char *paths; /* separated by spaces */
    const char *members;
    const char *place, *shown; /* of the invalid value */
    const char *expected;      /* the expected value, or its beginning */
};

const char *const all = "/v1/chat/completions /v1/completions /v1/messages /v1/responses";
const char *const with_messages =
    "/v1/chat/completions /v1/messages /apply-template /v1/messages/count_tokens";
const char *const with_tools = "/v1/chat/completions /v1/responses /v1/messages "
                               "/apply-template /v1/messages/count_tokens";

/* clang-format off */
const Row rows[] = {
    /* ---- all endpoints ---- */
    { all, R"("model":3)", "model", "3", "a string" },
    { all, R"("stream":"yes")", "stream", "'yes'", "true or false" },
    { all, R"("stream_options":[])", "stream_options", "an empty list", "an object" },
    { all, R"("stream_options":{"include_usage":1})", "stream_options.include_usage", "1", "true or false" },
    { all, R"("max_tokens":-5)", "max_tokens", "-5", "a whole number from " },
    { all, R"("max_tokens":1.5)", "max_tokens", "1.5", "a whole number from " },
    { all, R"("max_tokens":"12")", "max_tokens", "'12'", "a whole number from " },
    { all, R"("max_tokens":1e400)", "", "", "" },
    { all, R"("max_completion_tokens":-2)", "max_completion_tokens", "-2", "a whole number from " },
    { all, R"("max_completion_tokens":18446744073709551616)", "max_completion_tokens", "18446744073709552000.0", "a whole number from " },
    { all, R"("n_predict":[5])", "n_predict", "a list", "a whole number from " },
    { all, R"("min_tokens":-1)", "min_tokens", "-1", "a whole number from 0" },
    { all, R"("ignore_eos":1)", "ignore_eos", "1", "true or false" },
    { all, R"("n":0)", "n", "0", "a whole number from 1 to 128" },
    { all, R"("n":129)", "n", "129", "a whole number from 1 to 128" },
    { all, R"("best_of":3)", "best_of", "3", "1" },
    { all, R"("stop":5)", "stop", "5", "a string that is not empty" },
    { all, R"("stop":"")", "stop", "''", "a string that is not empty" },
    { all, R"("stop":["a",{}])", "stop[1]", "an empty object", "a string that is not empty" },
    { all, R"("response_format":"json")", "response_format", "'json'", "an object" },
    { all, R"("response_format":{"type":"xml"})", "response_format.type", "'xml'", "text, json_object or json_schema" },
    { all, R"("response_format":{})", "response_format.type", "missing", "text, json_object or json_schema" },
    { all, R"("response_format":{"type":"json_schema"})", "response_format.schema", "missing", "a JSON Schema" },
    { all, R"("response_format":{"type":"json_schema","json_schema":{"schema":[]}})", "response_format.json_schema.schema", "an empty list", "a JSON Schema" },
    { all, R"("json_schema":5)", "json_schema", "5", "a JSON Schema" },
    { all, R"("guided_json":"{}")", "guided_json", "'{}'", "a JSON Schema" },
    { all, R"("grammar":{})", "grammar", "an empty object", "a string" },
    { all, R"("guided_grammar":7)", "guided_grammar", "7", "a string" },
    { all, R"("top_k":1.5)", "top_k", "1.5", "a whole number from 0" },
    { all, R"("top_p":2)", "top_p", "2", "a number from 0 to 1" },
    { all, R"("repeat_penalty":"x")", "repeat_penalty", "'x'", "a number from 0\"" },
    { all, R"("seed":0.5)", "seed", "0.5", "a whole number of 64 bits" },
    { all, R"("bad_words":"b")", "bad_words", "'b'", "a list of texts" },
    { all, R"("logit_bias":5)", "logit_bias", "5", "an object that maps token ids to numbers" },
    /* ---- some endpoints ---- */
    { chat, R"("logprobs":2)", "logprobs", "2", "true or false" },
    { chat, R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "21", "a whole number from 0 to 20" },
    { completions, R"("logprobs":true)", "logprobs", "true", "a whole number from 0 to 20" },
    { completions, R"("logprobs":-1)", "logprobs", "-1", "a whole number from 0 to 20" },
    { completions, R"("echo":"a")", "echo", "'a'", "true or false" },
    { completions, R"("prompt":null)", "prompt", "null", "a string, a list of token ids" },
    { completions, R"("prompt":{"a":1})", "prompt", "an object", "a string, a list of token ids" },
    { completions, R"("prompt":["a",5])", "prompt[1]", "5", "a string, a list of token ids" },
    { completions, R"("prompt":[1,"a"])", "prompt[1]", "'a'", "a token id" },
    { completions, R"("prompt":[1,-1])", "prompt[1]", "-1", "a token id" },
    { completions, R"("prompt":["a",[1,2.5]])", "prompt[1][1]", "2.5", "a token id" },
    { messages, R"("stop_sequences":[""])", "stop_sequences[0]", "''", "a string that is not empty" },
    { messages, R"("max_tokens":null)", "max_tokens", "null", "a whole number from 1" },
    { messages, R"("max_tokens":-1)", "max_tokens", "-1", "a whole number from 1" },
    { messages, R"("system":5)", "system", "5", "a string or a list of parts" },
    { messages, R"("system":[{"type":"image"}])", "system[0].type", "'image'", "text" },
    { responses, R"("max_output_tokens":0)", "max_output_tokens", "0", "a whole number from 1" },
    { responses, R"("text":"a")", "text", "'a'", "an object" },
    { responses, R"("text":{"format":{"type":"a"}})", "text.format.type", "'a'", "text, json_object or json_schema" },
    { responses, R"("instructions":5)", "instructions", "5", "a string" },
    { responses, R"("instructions":["a"])", "instructions", "a list", "a string" },
    { responses, R"("instructions":{"a":1})", "instructions", "an object", "a string" },
    { "/tokenize", R"("content":null)", "content", "null", "a string" },
    { "/tokenize", R"("add_special":1)", "add_special", "1", "true or false" },
    { "/tokenize", R"("with_pieces":1)", "with_pieces", "1", "true or false" },
    { "/tokenize", R"("parse_special":1)", "parse_special", "1", "true or false" },
    { "/detokenize", R"("tokens":"a")", "tokens", "'a'", "a list of token ids" },
    { "/detokenize", R"("tokens":[1,"a"])", "tokens[1]", "'a'", "a token id" },
    { "/detokenize", R"("tokens":[4294967296])", "tokens[0]", "4294967296", "a token id below 2147483648" },
    /* ---- tools ---- */
    { with_tools, R"("tools":5)", "tools", "5", "a list of tools" },
    { with_tools, R"("tools":[5])", "tools[0]", "5", "an object" },
    { with_tools, R"("tools":[{"type":"web_search"}])", "tools[0].type", "'web_search'", "'" },
    { chat, R"("tools":[{}])", "tools[0].type", "missing", "'function'" },
    { chat, R"("tools":[{"type":"function"}])", "tools[0].function", "missing", "an object" },
    { chat, R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name", "missing", "a name of 1 to 256 bytes" },
    { chat, R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name", "'a b'", "a name of 1 to 256 bytes" },
    { chat, R"("tools":[{"type":"function","function":{"name":"f","strict":1}}])", "tools[0].function.strict", "1", "true or false" },
    { chat, R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])", "tools[0].function.parameters", "an empty list", "a JSON Schema" },
    { responses, R"("tools":[{"type":"function","name":5}])", "tools[0].name", "5", "a name of 1 to 256 bytes" },
    { messages, R"("tools":[{"name":"f","input_schema":5}])", "tools[0].input_schema", "5", "a JSON Schema" },
    { with_tools, R"("tool_choice":5)", "tool_choice", "5", "auto, none, required" },
    { with_tools, R"("tool_choice":"f")", "tool_choice", "'f'", "auto, none, required (Anthropic: any), or an object that names a function" },
    { with_tools, R"("tool_choice":{})", "tool_choice.type", "missing", "auto, none, required" },
    { with_tools, R"("tool_choice":{"type":"tool"})", "tool_choice.name", "missing", "the name of one of the tools" },
    { with_tools, R"("tool_choice":{"type":"function","function":{"name":["x"]}})", "tool_choice.function.name", "a list", "the name of one of the tools" },
    { with_tools, R"("tool_choice":{"type":"tool","name":{"a":1}})", "tool_choice.name", "an object", "the name of one of the tools" },
    { with_tools, R"("tool_choice":{"type":"function","name":"g"})", "tool_choice.name", "'g'", "the name of one of the tools" },
    { with_tools, R"("tool_choice":{"type":"function","function":{"name":"g"}})", "tool_choice.function.name", "'g'", "the name of one of the tools" },
    { with_tools, R"("parallel_tool_calls":1)", "parallel_tool_calls", "1", "true or false" },
    { with_tools, R"("tool_choice":{"type":"auto","disable_parallel_tool_use":1})", "tool_choice.disable_parallel_tool_use", "1", "true or false" },
    /* ---- messages ---- */
    { with_messages, R"("messages":null)", "messages", "null", "a list of messages" },
    { with_messages, R"("messages":[])", "messages", "an empty list", "a list of messages" },
    { with_messages, R"("messages":[5])", "messages[0]", "5", "an object with 'role' and 'content'" },
    { with_messages, R"("messages":[{"content":"a"}])", "messages[0].role", "missing", "" },
    { with_messages, R"("messages":[{"role":"user","content":"a"},{"role":"king","content":"a"}])", "messages[1].role", "'king'", "" },
    { with_messages, R"("messages":[{"role":"user"}])", "messages[0].content", "missing", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":null}])", "messages[0].content", "null", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":5}])", "messages[0].content", "5", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":{}}])", "messages[0].content", "an empty object", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":[]}])", "messages[0].content", "an empty list", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":["a"]}])", "messages[0].content[0]", "'a'", "a" },
    { with_messages, R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text", "missing", "a string" },
    { with_messages, R"("messages":[{"role":"user","content":[{"type":"text","text":null}]}])", "messages[0].content[0].text", "null", "a string" },
    { with_messages, R"("messages":[{"role":"user","content":[{"text":"a"}]}])", "messages[0].content[0].type", "missing", "text" },
    { with_messages, R"("messages":[{"role":"user","content":[{"type":"image_url"}]}])", "messages[0].content[0].type", "'image_url'", "text" },
    { with_messages, R"("messages":[{"role":"assistant"}])", "messages[0].content", "missing", "a string or a list" },
    { with_messages, R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":null}])", "messages[1].content", "null", "a string or a list" },
    { with_messages, R"("chat_template_kwargs":[])", "chat_template_kwargs", "an empty list", "an object" },
    { with_messages, R"("continue_final_message":0)", "continue_final_message", "0", "true or false" },
    { chat, R"("messages":[{"role":"tool","tool_call_id":"c"}])", "messages[0].content", "missing", "a string or a list" },
    { chat, R"("messages":[{"role":"tool","tool_call_id":5,"content":"a"}])", "messages[0].tool_call_id", "5", "a string" },
    { chat, R"("messages":[{"role":"user","name":5,"content":"a"}])", "messages[0].name", "5", "a string" },
    { chat, R"("messages":[{"role":"assistant","reasoning_content":[],"content":"a"}])", "messages[0].reasoning_content", "an empty list", "a string" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[]}])", "messages[0].content", "missing", "a string or a list" },
    { chat, R"("messages":[{"role":"assistant","content":"a","tool_calls":{}}])", "messages[0].tool_calls", "an empty object", "a list of calls" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[5]}])", "messages[0].tool_calls[0]", "5", "an object" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[{"function":"f"}]}])", "messages[0].tool_calls[0].function", "'f'", "an object" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[{"function":{}}]}])", "messages[0].tool_calls[0].function.name", "missing", "the name of a tool" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"f"}}]}])", "messages[0].tool_calls[0].id", "7", "a string" },
    { chat, R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":5}}]}])", "messages[0].tool_calls[0].function.arguments", "5", "an object, or a string with a JSON object" },
    { messages, R"("messages":[{"role":"user","content":[{"type":"tool_use","name":"f"}]}])", "messages[0].content[0].type", "'tool_use'", "text or tool_result of a user" },
    { messages, R"("messages":[{"role":"assistant","content":[{"type":"tool_result"}]}])", "messages[0].content[0].type", "'tool_result'", "text, tool_use or thinking of an assistant" },
    { messages, R"("messages":[{"role":"assistant","content":[{"type":"thinking"}]}])", "messages[0].content[0].thinking", "missing", "a string" },
    { messages, R"("messages":[{"role":"assistant","content":[{"type":"tool_use","input":{}}]}])", "messages[0].content[0].name", "missing", "the name of a tool" },
    { messages, R"("messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":5}]}])", "messages[0].content[0].input", "5", "an object" },
    { messages, R"("messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":5}]}])", "messages[0].content[0].tool_use_id", "5", "a string" },
    { messages, R"("messages":[{"role":"user","content":[{"type":"tool_result","content":5}]}])", "messages[0].content[0].content", "5", "a string or a list of parts" },
    /* ---- input ---- */
    { responses, R"("input":null)", "input", "null", "a string, or a list of messages" },
    { responses, R"("input":[])", "input", "an empty list", "a string, or a list of messages" },
    { responses, R"("input":[5])", "input[0]", "5", "a message, an object" },
    { responses, R"("input":[{"type":"item_reference"}])", "input[0].type", "'item_reference'", "message, function_call" },
    { responses, R"("input":[{"role":"king","content":"a"}])", "input[0].role", "'king'", "user, assistant, system or developer" },
    { responses, R"("input":[{"role":"user"}])", "input[0].content", "missing", "a string or a list of parts" },
    { responses, R"("input":[{"role":"user","content":[]}])", "input[0].content", "an empty list", "a string or a list of parts" },
    { responses, R"("input":[{"role":"user","content":[{"type":"input_image"}]}])", "input[0].content[0].type", "'input_image'", "input_text" },
    { responses, R"("input":[{"type":"function_call","arguments":"{}"}])", "input[0].name", "missing", "the name of a tool" },
    { responses, R"("input":[{"type":"function_call","name":"f","call_id":5}])", "input[0].call_id", "5", "a string" },
    { responses, R"("input":[{"type":"function_call","name":"f","arguments":5}])", "input[0].arguments", "5", "an object" },
    { responses, R"("input":[{"type":"function_call_output","call_id":"c"}])", "input[0].output", "missing", "a string or a list of parts" },
    { responses, R"("input":[{"type":"function_call_output","call_id":5,"output":"a"}])", "input[0].call_id", "5", "a string" },
};
/* clang-format on */

std::vector<std::string>
words_of(const std::string &text)
{
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

void
check(Served &s, const std::string &path, const Row &row)
{
    const std::string body = "{" + std::string(row.members) + "," + rest_of(path);
    const Answer a = s.ask(path, body);
    EXPECT_EQ(a.status, 400) << path << " " << body << a.text;
    if (!row.place[0]) /* the body is not JSON */
        return;
    EXPECT_TRUE(has(a.text, "\"'" + std::string(row.place) + "' is " + row.shown +
                                ", expected " + row.expected))
        << path << " " << body << a.text;
    if (path.find("/v1/messages") != 0) {
        EXPECT_TRUE(has(a.text, "\"param\":\"" + std::string(row.place) + "\""))
            << path << " " << body << a.text;
    }
}

TEST(Refusals, SayWhereAValueIsWhatItIsAndWhatIsTaken)
{
    Served s;
    for (const Row &row : rows)
        for (const std::string &path : words_of(row.paths))
            check(s, path, row);
    for (const char *path : {chat, completions, messages, responses, "/tokenize",
                             "/detokenize", "/apply-template"})
        EXPECT_EQ(s.ask(path, "{" + rest_of(path)).status, 200) << path;
}

TEST(Refusals, IdsAreBelowTheVocabulary)
{
    Served s;
    s.served->vocabulary = VOCABULARY;
    const std::string first = std::to_string(VOCABULARY),
                      last = std::to_string(VOCABULARY - 1);
    const Answer a = s.ask("/detokenize", R"({"tokens":[0,)" + first + "]}");
    EXPECT_TRUE(has(a.text, "'tokens[1]' is 12, expected a token id below 12")) << a.text;
    EXPECT_EQ(s.ask("/detokenize", R"({"tokens":[0,)" + last + "]}").status, 200);
    const std::string body = R"({"prompt":"a","max_tokens":1,"logit_bias":{")";
    const Answer b = s.ask(completions, body + first + "\":1}}");
    EXPECT_TRUE(has(b.text, "'logit_bias' has the token id 12, expected ids below 12"))
        << b.text;
    EXPECT_TRUE(has(b.text, R"("param":"logit_bias")")) << b.text;
    EXPECT_EQ(s.ask(completions, body + last + "\":1}}").status, 200);
}

TEST(Refusals, NameEachParameterOfSampling)
{
    Served s;
    for (const xm_sampling_row &sampling : xm_sampling_rows)
        for (const std::string &name : words_of(sampling.json ? sampling.json : ""))
            for (const char *path : {chat, completions, messages, responses}) {
                const std::string members = "\"" + name + "\":true";
                check(s, path, {path, members.c_str(), name.c_str(), "true", ""});
            }
}

/* A message of the assistant that calls a tool may have no text. */
TEST(Messages, OfTheAssistantMayHaveNoContent)
{
    Served s{4, 64, 512, "", "{% for m in messages %}{{ m.content }}{% endfor %}"};
    const std::string user = R"({"messages":[{"role":"user","content":"a"},)";
    for (
        const char *message :
        {R"({"role":"assistant","tool_calls":[{"id":"c","type":"function","function":)"
         R"({"name":"f","arguments":"{}"}}]})",
         R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]})",
         R"({"role":"assistant","content":"","tool_calls":[]})",
         R"({"role":"assistant","content":[],"tool_calls":[{"function":{"name":"f"}}]})",
         R"({"role":"assistant","reasoning_content":"b"})",
         R"({"role":"user","content":""})"}) {
        const Answer a = s.ask("/apply-template", user + message + "]}");
        EXPECT_EQ(a.status, 200) << message << a.text;
    }
    const Answer a =
        s.ask("/v1/messages",
              R"({"max_tokens":1,"system":[],"messages":[{"role":"user","content":[)"
              R"({"type":"tool_result","tool_use_id":"c","content":[]},)"
              R"({"type":"text","text":"a"}]}]})");
    EXPECT_EQ(a.status, 200) << a.text;
}

} // namespace
