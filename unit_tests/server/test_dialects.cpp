/* SPDX-License-Identifier: Apache-2.0
 *
 * Anthropic's messages and OpenAI's responses, without a socket.
 */
#include "unit_tests/server/served.h"

namespace
{

const char *const messages = "/v1/messages";
const char *const responses = "/v1/responses";

/* Returns the names of a stream's events in order. */
std::vector<std::string>
events_of(const std::string &text)
{
    std::vector<std::string> names;
    for (size_t at = 0; (at = text.find("event: ", at)) != std::string::npos;) {
        at += 7;
        names.push_back(text.substr(at, text.find('\n', at) - at));
        const std::string data = "\ndata: {\"type\":\"" + names.back() + "\"";
        EXPECT_EQ(text.compare(at + names.back().size(), data.size(), data), 0) << text;
    }
    return names;
}

std::string
squeezed(const std::vector<std::string> &names)
{
    std::string all, last;
    for (const std::string &name : names) {
        all += name == last ? "" : name + " ";
        last = name;
    }
    return all;
}

const std::string hello = R"({"max_tokens":120,"temperature":0,"ignore_eos":true,)"
                          R"("messages":[{"role":"user","content":"abcab"}])";

TEST(Messages, ThoughtsAndTextAreBlocks)
{
    Served s;
    const Answer a = s.ask(messages, hello + "}");
    ASSERT_EQ(a.status, 200) << a.text;
    const Answer same = s.ask("/v1/chat/completions", hello + "}");
    EXPECT_EQ(values_of(a.text, "thinking"), values_of(same.text, "reasoning_content"));
    EXPECT_TRUE(has(a.text, "\"text\":\"" + values_of(same.text, "content") + "\""))
        << a.text;
    EXPECT_EQ(values_of(a.text, "stop_reason"), "max_tokens");
    EXPECT_TRUE(has(a.text, R"("role":"assistant")"));
    EXPECT_TRUE(has(a.text, R"("usage":{"input_tokens":)"));
    EXPECT_TRUE(has(a.text, R"("output_tokens":120)"));
}

TEST(Messages, AStreamHasTheEventsOfTheApiInTheirOrder)
{
    Served s;
    const Answer whole = s.ask(messages, hello + "}");
    const Answer a = s.ask(messages, hello + R"(,"stream":true})");
    const std::string order = squeezed(events_of(a.text));
    EXPECT_EQ(order.find("message_start content_block_start content_block_delta "
                         "content_block_stop "),
              0u)
        << order;
    EXPECT_EQ(order.substr(order.size() - 27), "message_delta message_stop ") << order;
    const size_t n_blocks = count_of(a.text, "event: content_block_start");
    EXPECT_EQ(count_of(a.text, "event: content_block_stop"), n_blocks);
    for (size_t i = 0; i < n_blocks; i++)
        EXPECT_TRUE(
            has(a.text, R"({"type":"content_block_start","index":)" + std::to_string(i)));
    EXPECT_EQ(values_of(a.text, "thinking"), values_of(whole.text, "thinking"));
    EXPECT_EQ(values_of(a.text, "stop_reason"), "max_tokens");
}

TEST(Messages, AStopStringIsTheReasonOfTheEnd)
{
    Served s;
    const Answer whole = s.ask(
        messages,
        R"({"max_tokens":50,"temperature":0,"messages":[{"role":"user","content":"a"}],)"
        R"("grammar":"root ::= \"aabbc\"","stop_sequences":["c","bb"]})");
    EXPECT_EQ(values_of(whole.text, "stop_reason"), "stop_sequence") << whole.text;
    EXPECT_EQ(values_of(whole.text, "stop_sequence"), "bb") << whole.text;
    EXPECT_TRUE(has(whole.text, R"("text":"aa")")) << whole.text;
}

TEST(Messages, BlocksBecomeMessagesOfTheTemplate)
{
    Served s;
    const Answer a =
        s.ask(messages, R"({"max_tokens":1,"system":[{"type":"text","text":"aa"}],
        "messages":[{"role":"user","content":"b"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":""},
            {"type":"text","text":"c"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"###"},
            {"type":"text","text":"xx"}]}]})");
    ASSERT_EQ(a.status, 200) << a.text;
    EXPECT_TRUE(has(a.text, R"("input_tokens":10)"))
        << "aabc###xx and <think>: " << a.text;
}

TEST(Messages, RefusalsHaveTheFormOfTheApi)
{
    Served s;
    struct {
        const char *body, *part;
        int status;
    } const rows[] = {
        {R"({"messages":[{"role":"user","content":"a"}]})", "'max_tokens' is missing",
         400},
        {R"({"max_tokens":1})", "'messages'", 400},
        {R"({"max_tokens":1,"messages":[{"role":"system","content":"a"}]})",
         "messages[0]", 400},
        {R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]})",
         "is 'image', expected text", 400},
        {R"({"max_tokens":1,"messages":[{"role":"user","content":[5]}]})",
         "'messages[0].content[0]' is 5", 400},
        {R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"tools":[{}]})",
         "'tools[0].name' is missing", 400},
        {R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"stop_sequences":[""]})",
         "'stop_sequences[0]'", 400},
        {R"({"max_tokens":1,"model":"x","messages":[{"role":"user","content":"a"}]})",
         "not_found_error", 404},
    };
    for (const auto &row : rows) {
        const Answer a = s.ask(messages, row.body);
        EXPECT_EQ(a.status, row.status) << a.text;
        EXPECT_EQ(a.text.find(R"({"type":"error","error":{"type":")"), 0u) << a.text;
        EXPECT_TRUE(has(a.text, row.part)) << a.text;
    }
    s.model.run_fails_in = 4;
    const Answer a = s.ask(messages, hello + R"(,"stream":true})");
    EXPECT_TRUE(has(a.text, "event: error\ndata: {\"type\":\"error\"")) << a.text;
}

/* ---- calls of tools ----------------------------------------------------------------------- */

/* A model with a token that is a tool call. Biases decide which tokens it generates. */
class Calls : public ::testing::Test
{
  protected:
    Answer ask(const char *path, const std::string &more)
    {
        return s.ask(path,
                     R"({"max_tokens":20,"temperature":0,"tools":[{"type":"function",)"
                     R"("name":"f","function":{"name":"f"}}],)"
                     R"("messages":[{"role":"user","content":"a"}],)"
                     R"("logit_bias":)" +
                         biases + more + "}");
    }
    static std::string tokenizer()
    {
        return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"#":3,"<0xC3>":4,
            "<0xA9>":5,"{\"name\": \"f\", \"arguments\": {\"x\": 1}}":6,"x":7},"merges":[]},
            "decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]},
            "added_tokens":[{"id":8,"content":"<|im_end|>","special":true},
                            {"id":9,"content":"<tool_call>","special":false},
                            {"id":10,"content":"</tool_call>","special":false},
                            {"id":11,"content":"<s>","special":true}]})";
    }
    Served s{4, 64, 512, tokenizer(),
             "{{ messages[0].content }}{# tools <tool_call> </tool_call> #}"};
    /* Penalties let no token come twice: <tool_call>, the call, </tool_call>, the end. */
    const std::string biases =
        R"({"9":90,"6":80,"10":70,"8":60},"presence_penalty":1000)";
};

TEST_F(Calls, AreOfAChatsMessage)
{
    const Answer whole = ask("/v1/chat/completions", "");
    ASSERT_EQ(whole.status, 200) << whole.text;
    EXPECT_TRUE(has(whole.text, R"("content":null)")) << whole.text;
    EXPECT_TRUE(
        has(whole.text, R"("type":"function","function":{"name":"f","arguments":")"))
        << whole.text;
    EXPECT_TRUE(has(whole.text, R"("tool_calls":[{"id":"call_)")) << whole.text;
    EXPECT_TRUE(has(whole.text, R"("finish_reason":"tool_calls")")) << whole.text;
    const Answer streamed = ask("/v1/chat/completions", R"(,"stream":true)");
    EXPECT_TRUE(has(streamed.text, R"("delta":{"tool_calls":[{"index":0,"id":"call_)"))
        << streamed.text;
    EXPECT_TRUE(has(streamed.text, R"("finish_reason":"tool_calls")"));
}

TEST_F(Calls, AreBlocksOfAMessage)
{
    const Answer whole = ask("/v1/messages", "");
    ASSERT_EQ(whole.status, 200) << whole.text;
    EXPECT_TRUE(has(whole.text, R"("content":[{"type":"tool_use","id":"call_)"))
        << whole.text;
    EXPECT_TRUE(has(whole.text, R"("name":"f","input":{"x":1}})")) << whole.text;
    EXPECT_TRUE(has(whole.text, R"("stop_reason":"tool_use")")) << whole.text;
    const Answer streamed = ask("/v1/messages", R"(,"stream":true)");
    EXPECT_TRUE(has(streamed.text, R"("type":"input_json_delta","partial_json":"{\"x\")"))
        << streamed.text;
    EXPECT_EQ(squeezed(events_of(streamed.text)),
              "message_start content_block_start content_block_delta content_block_stop "
              "message_delta message_stop ");
    EXPECT_TRUE(has(streamed.text, R"("stop_reason":"tool_use")"));
}

const std::string input =
    R"({"max_output_tokens":120,"temperature":0,"ignore_eos":true,"input":)";

TEST(Responses, ATextAndAConversationAreInputs)
{
    Served s;
    const Answer a = s.ask(responses, input + "\"abcab\"}");
    ASSERT_EQ(a.status, 200) << a.text;
    const Answer same = s.ask("/v1/chat/completions", hello + "}");
    EXPECT_TRUE(has(a.text, R"("type":"output_text","text":")" +
                                values_of(same.text, "content") + "\""))
        << a.text;
    EXPECT_TRUE(has(a.text, R"("status":"incomplete")")) << a.text;
    EXPECT_TRUE(has(a.text, R"("reason":"max_output_tokens")"));
    const Answer b = s.ask(
        responses,
        R"({"max_output_tokens":1,"instructions":"a","input":[{"role":"user","content":
            [{"type":"input_text","text":"b"}]},{"role":"assistant","content":
            [{"type":"output_text","text":"c"}]},{"role":"developer","content":"x"}]})");
    EXPECT_TRUE(has(b.text, R"("input_tokens":5)")) << b.text;
}

TEST(Responses, AStreamHasTheEventsOfTheApiInTheirOrder)
{
    Served s;
    const Answer a = s.ask(responses, input + R"("abcab","stream":true})");
    const std::string order = squeezed(events_of(a.text));
    const std::string begin = "response.created response.in_progress "
                              "response.output_item.added response.content_part.added ";
    const std::string end = "response.output_text.done response.content_part.done "
                            "response.output_item.done response.incomplete ";
    EXPECT_EQ(order.find(begin), 0u) << order;
    EXPECT_EQ(order.substr(order.size() - end.size()), end) << order;
    const size_t n = events_of(a.text).size();
    for (size_t i = 0; i < n; i++)
        EXPECT_TRUE(has(a.text, "\"sequence_number\":" + std::to_string(i) + ","))
            << i << " of " << n;
    const Answer whole = s.ask(responses, input + "\"abcab\"}");
    EXPECT_TRUE(has(whole.text, "\"text\":\"" + values_of(a.text, "delta") + "\""));
}

TEST(Responses, RefusalsNameTheField)
{
    Served s;
    for (const char *body :
         {R"({"input":[]})", R"({"input":5})", R"({})",
          R"({"input":"a","tools":[{"type":"x"}]})",
          R"({"input":[{"type":"function_call","arguments":"{}"}]})",
          R"({"input":[{"type":"item_reference","id":"x"}]})",
          R"({"input":"a","previous_response_id":"r"})", R"({"input":[{"type":"item"}]})",
          R"({"input":"a","text":{"format":{"type":"xml"}}})"}) {
        const Answer a = s.ask(responses, body);
        EXPECT_EQ(a.status, 400) << body << a.text;
        EXPECT_FALSE(has(a.text, "\"param\":null")) << a.text;
    }
}

#if !defined(__SANITIZE_THREAD__)
TEST(Dialects, AnAllocationThatFailsEndsOneRequest)
{
    Served s;
    const std::pair<const char *, std::string> rows[] = {
        {messages, R"({"max_tokens":3,"seed":1,"ignore_eos":true,"system":"a","messages":[
            {"role":"user","content":[{"type":"text","text":"b"}]},{"role":"assistant","content":
            [{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]}],
            "tools":[{"name":"f","input_schema":{}}]})"},
        {messages,
         R"({"max_tokens":3,"seed":1,"ignore_eos":true,"stream":true,"messages":[
            {"role":"user","content":"b"}]})"},
        {responses,
         R"({"input":[{"role":"user","content":"a"}],"instructions":"b","seed":1,
            "max_output_tokens":3,"ignore_eos":true,"stream":true})"},
        {"/v1/completions", R"({"prompt":["a",[1,2]],"n":2,"seed":1,"max_tokens":2,
            "logprobs":2,"logit_bias":{"1":1},"bad_words":["c"],"ignore_eos":true})"},
        {"/apply-template", R"({"messages":[{"role":"user","content":"a"}],
            "chat_template_kwargs":{"x":1}})"},
        {"/tokenize", R"({"content":"abc","with_pieces":true})"},
        {"/metrics", ""}};
    for (const auto &row : rows) {
        const char *method = row.second.empty() ? "GET" : "POST";
        for (uint64_t n = 1;; n++) {
            xm_fail_allocation(n);
            const Answer a = s.ask(row.first, row.second, method);
            const bool was_seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            if (!was_seen)
                break;
            ASSERT_TRUE(a.status == 0 || a.status == 200 || a.status == 503)
                << row.first << n << ": " << a.status << a.text;
            ASSERT_LT(n, 5000u);
        }
        EXPECT_EQ(s.ask(row.first, row.second, method).status, 200) << row.first;
    }
}
#endif

} // namespace
