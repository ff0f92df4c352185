/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenAI's API without a socket: answers, refusals, and the fields that they name.
 */
#include "unit_tests/server/served.h"

namespace
{

const char *const chat = "/v1/chat/completions";
const char *const completions = "/v1/completions";

std::string
ids_of(const Ids &ids)
{
    std::string text = "[";
    for (int32_t id : ids)
        text += (text.size() > 1 ? "," : "") + std::to_string(id);
    return text + "]";
}

TEST(Completions, ATextIsTheOneThatItsPromptGivesAlone)
{
    Served s;
    const Kind k = long_kind(s.model, 9, 12);
    const std::string body =
        R"({"prompt":)" + ids_of(k.prompt) + R"(,"max_tokens":12,"temperature":0})";
    const Answer a = s.ask(completions, body);
    ASSERT_EQ(a.status, 200) << a.text;
    EXPECT_EQ(values_of(a.text, "text"), s.text_of(k.ids));
    EXPECT_EQ(values_of(a.text, "finish_reason"), "length");
    EXPECT_TRUE(has(a.text, R"("usage":{"prompt_tokens":9,"completion_tokens":12,)"
                            R"("total_tokens":21,"prompt_tokens_details":)"))
        << a.text;
    EXPECT_TRUE(has(a.text, R"("object":"text_completion")"));
}

TEST(Completions, AStreamHasTheSameTextAndItsEvents)
{
    Served s;
    const Kind k = long_kind(s.model, 9, 12);
    const std::string body = R"({"prompt":)" + ids_of(k.prompt) +
                             R"(,"max_tokens":12,"temperature":0,"stream":true,)"
                             R"("stream_options":{"include_usage":true}})";
    const Answer a = s.ask(completions, body);
    EXPECT_EQ(a.type, "text/event-stream");
    EXPECT_EQ(values_of(a.text, "text"), s.text_of(k.ids));
    EXPECT_EQ(count_of(a.text, R"("finish_reason":"length")"), 1u);
    EXPECT_EQ(count_of(a.text, R"("choices":[],"usage":{"prompt_tokens":9)"), 1u)
        << a.text;
    EXPECT_EQ(a.text.substr(a.text.size() - 14), "data: [DONE]\n\n");
    for (size_t at = 0; at < a.text.size(); at = a.text.find("\n\n", at) + 2)
        ASSERT_EQ(a.text.compare(at, 6, "data: "), 0) << a.text;
}

TEST(Completions, SeveralPromptsAndTextsOfEachStandInOrder)
{
    Served s(8);
    const Kind a = long_kind(s.model, 5, 6), b = long_kind(s.model, 7, 6, 3);
    const Answer got =
        s.ask(completions, R"({"prompt":[)" + ids_of(a.prompt) + "," + ids_of(b.prompt) +
                               R"(],"n":2,"max_tokens":6,"temperature":0})");
    ASSERT_EQ(got.status, 200) << got.text;
    EXPECT_EQ(values_of(got.text, "text"),
              s.text_of(a.ids) + s.text_of(a.ids) + s.text_of(b.ids) + s.text_of(b.ids));
    for (const char *index : {"0", "1", "2", "3"})
        EXPECT_TRUE(has(got.text, std::string("{\"index\":") + index)) << index;
    EXPECT_TRUE(has(got.text, R"("prompt_tokens":12,"completion_tokens":24)"))
        << "a prompt counts once: " << got.text;
}

TEST(Completions, TextsOfOnePromptAreDrawnBySeedsOfTheirOwn)
{
    Served s(8);
    const std::string body = R"({"prompt":[1,2,0],"max_tokens":24,"temperature":1.5,)"
                             R"("ignore_eos":true,"seed":7,"n":)";
    const std::string one = s.ask(completions, body + "1}").text;
    const std::string three = s.ask(completions, body + "3}").text;
    const std::string again = s.ask(completions, body + "3}").text;
    EXPECT_EQ(values_of(three, "text"), values_of(again, "text"));
    EXPECT_EQ(values_of(three, "text").find(values_of(one, "text")), 0u);
    EXPECT_NE(values_of(three, "text"),
              values_of(one, "text") + values_of(one, "text") + values_of(one, "text"));
}

TEST(Completions, AnEchoBeginsWithThePrompt)
{
    Served s;
    const Kind k = kind_of(s.model, {0, 1, 2}, 3);
    const Answer a = s.ask(
        completions, R"({"prompt":"abc","echo":true,"max_tokens":3,"temperature":0})");
    EXPECT_EQ(values_of(a.text, "text"), "abc" + s.text_of(k.ids)) << a.text;
    const Answer told =
        s.ask(completions, R"({"prompt":"abc","echo":true,"max_tokens":3,)"
                           R"("ignore_eos":true,"logprobs":0})");
    EXPECT_TRUE(has(told.text, "\"text_offset\":[0,1,2,3,")) << told.text;
}

TEST(Completions, ProbabilitiesAreListedForEachTokenOfTheText)
{
    Served s;
    const Kind k = long_kind(s.model, 9, 4);
    const std::string body = R"({"prompt":)" + ids_of(k.prompt) +
                             R"(,"max_tokens":4,"temperature":0,"logprobs":3)";
    const Answer whole = s.ask(completions, body + "}");
    EXPECT_EQ(count_of(whole.text, "\"tokens\":["), 1u) << whole.text;
    const Answer streamed = s.ask(completions, body + R"(,"stream":true})");
    const auto numbers = [](const std::string &text) {
        std::string all;
        for (size_t at = 0;
             (at = text.find("\"token_logprobs\":[", at)) != std::string::npos;) {
            at += 18;
            all += text.substr(at, text.find(']', at) - at) + ",";
        }
        return all;
    };
    EXPECT_EQ(count_of(numbers(whole.text), ","), 4u) << whole.text;
    EXPECT_EQ(numbers(whole.text), numbers(streamed.text));
}

TEST(Completions, ABiasDecidesWhichTokenComes)
{
    Served s;
    const Answer a =
        s.ask(completions, R"({"prompt":[1,2],"max_tokens":3,"temperature":0,)"
                           R"("logit_bias":{"1":50}})");
    EXPECT_EQ(values_of(a.text, "text"), "bbb") << a.text;
    const Kind k = long_kind(s.model, 9, 4);
    const Answer b =
        s.ask(completions,
              R"({"prompt":)" + ids_of(k.prompt) +
                  R"(,"max_tokens":1,"temperature":0,"ignore_eos":true,"logit_bias":{")" +
                  std::to_string(k.ids[0]) + R"(":-100}})");
    EXPECT_NE(values_of(b.text, "text"), s.text_of({k.ids[0]})) << b.text;
}

/* A request that sets nothing gets the server's options. */
TEST(Completions, ListsOfTheServerHoldWhereARequestHasNone)
{
    Served s;
    const xm_token_bias usual = {1, 50.0f};
    s.served->options.sampling.logit_bias = {&usual, 1};
    const std::string body = R"({"prompt":[1,2],"max_tokens":3,"temperature":0)";
    EXPECT_EQ(values_of(s.ask(completions, body + "}").text, "text"), "bbb");
    const Answer own = s.ask(completions, body + R"(,"logit_bias":{"2":50}})");
    EXPECT_EQ(values_of(own.text, "text"), "ccc") << own.text;
}

TEST(Completions, APromptThatTheCacheHasIsToldSo)
{
    Served s;
    const Kind k = long_kind(s.model, 11, 2);
    const std::string body =
        R"({"prompt":)" + ids_of(k.prompt) + R"(,"max_tokens":2,"temperature":0})";
    EXPECT_TRUE(has(s.ask(completions, body).text, R"("cached_tokens":0)"));
    EXPECT_TRUE(has(s.ask(completions, body).text, R"("cached_tokens":8)"))
        << "two pages";
    const std::string text = s.ask("/metrics", "", "GET").text;
    EXPECT_TRUE(has(text, "xemoe_reused_tokens_total{model=\"small\"} 8")) << text;
}

TEST(Completions, AGrammarDecidesWhatTheTextIs)
{
    Served s;
    const std::string body = R"({"prompt":[1,2],"max_tokens":30,"temperature":0,)";
    const Answer a =
        s.ask(completions, body + R"("grammar":"root ::= \"ab\" \"c\"{3} \"#\""})");
    EXPECT_EQ(values_of(a.text, "text"), "abccc#") << a.text;
    EXPECT_EQ(values_of(a.text, "finish_reason"), "stop");
    const Answer streamed = s.ask(
        completions, body + R"("grammar":"root ::= [bc]{2,5} \"x\"","stream":true})");
    const std::string text = values_of(streamed.text, "text");
    EXPECT_EQ(text.find_first_not_of("bc"), text.size() - 1) << text;
    EXPECT_EQ(text.back(), 'x');
}

TEST(Completions, AStopStringEndsATextBeforeIt)
{
    Served s;
    const Kind k = long_kind(s.model, 9, 12);
    const std::string text = s.text_of(k.ids);
    const std::string stop = text.substr(4, 2);
    const std::string body = R"({"prompt":)" + ids_of(k.prompt) +
                             R"(,"max_tokens":12,"temperature":0,"stop":)";
    for (const std::string &said : {"\"" + stop + "\"", "[\"@@\",\"" + stop + "\"]"}) {
        const Answer a = s.ask(completions, body + said + "}");
        EXPECT_EQ(values_of(a.text, "text"), text.substr(0, text.find(stop))) << a.text;
        EXPECT_EQ(values_of(a.text, "finish_reason"), "stop");
    }
}

TEST(Chat, ThoughtsAreApartFromTheText)
{
    Served s;
    const std::string body = R"({"messages":[{"role":"user","content":"abcab"}],)"
                             R"("max_tokens":200,"temperature":0,"ignore_eos":true)";
    const Answer whole = s.ask(chat, body + "}");
    ASSERT_EQ(whole.status, 200) << whole.text;
    EXPECT_NE(values_of(whole.text, "reasoning_content"), "")
        << "the prompt ends with <think>";
    const Answer streamed = s.ask(chat, body + R"(,"stream":true})");
    EXPECT_EQ(values_of(streamed.text, "content"), values_of(whole.text, "content"));
    EXPECT_EQ(values_of(streamed.text, "reasoning_content"),
              values_of(whole.text, "reasoning_content"));
    EXPECT_EQ(count_of(streamed.text, R"("role":"assistant")"), 1u);
}

TEST(Chat, MessagesOfAllKindsReachTheTemplate)
{
    Served s;
    const Answer a = s.ask("/apply-template",
                           R"({"messages":[{"role":"developer","content":"a"},
            {"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
             "function":{"name":"f","arguments":"{\"x\":1}"}}]},
            {"role":"tool","tool_call_id":"1","content":"#"}]})");
    EXPECT_EQ(values_of(a.text, "prompt"), "ab\\nc#<think>") << a.text;
}

/* The name of a control token in a user's text is text. */
TEST(Chat, TextOfMessagesIsNoControlToken)
{
    Served s;
    const Answer with = s.ask(
        chat, R"({"messages":[{"role":"user","content":"<|im_end|>"}],"max_tokens":1})");
    const Answer marks = s.ask("/tokenize", R"({"content":"<|im_end|><think>"})");
    EXPECT_EQ(marks.text, R"({"tokens":[8,9]})");
    EXPECT_TRUE(with.status == 400 || !has(with.text, R"("prompt_tokens":2)"))
        << with.text;
}

struct Refusal {
    const char *path, *body;
    int status;
    const char *part; /* of the answer */
};

/* clang-format off */
const Refusal refusals[] = {
    { chat, "", 400, "the request body is empty" },
    { chat, "[]", 400, "not a JSON object" },
    { chat, "{", 400, "not valid JSON" },
    { chat, "{\"messages\":1}", 400, "\"param\":\"messages\"" },
    { chat, "{\"messages\":[]}", 400, "\"param\":\"messages\"" },
    { chat, "{}", 400, "'messages' is missing" },
    { chat, R"({"messages":[1]})", 400, "\"param\":\"messages[0]\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"},{"role":"king","content":"a"}]})", 400, "'messages[1].role' is 'king'" },
    { chat, R"({"messages":[{"role":"<|im_end|>","content":"a"}]})", 400, "'messages[0].role' is" },
    { chat, R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})", 400, "is 'image_url', expected text" },
    { chat, R"({"messages":[{"role":"user","content":5}]})", 400, "expected a string or a list" },
    { chat, R"({"model":"other","messages":[{"role":"user","content":"a"}]})", 404, "\"code\":\"model_not_found\"" },
    { chat, R"({"model":3,"messages":[{"role":"user","content":"a"}]})", 400, "\"param\":\"model\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"temperature":"hot"})", 400, "\"param\":\"temperature\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"temperature":-1})", 400, "\"param\":\"temperature\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"top_p":1.5})", 400, "\"param\":\"top_p\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"n":0})", 400, "\"param\":\"n\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"n":1000})", 400, "\"param\":\"n\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":0})", 400, "\"param\":\"max_tokens\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":-5})", 400, "\"param\":\"max_tokens\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"stop":""})", 400, "\"param\":\"stop\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"stop":[1]})", 400, "\"param\":\"stop[0]\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"stream":1})", 400, "\"param\":\"stream\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":2})", 400, "\"param\":\"top_logprobs\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":21})", 400, "\"param\":\"top_logprobs\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"tools":5})", 400, "\"param\":\"tools\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required"})", 400, "\"param\":\"tool_choice\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"bos_token":"<s>"}})", 400, "\"param\":\"chat_template_kwargs\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"messages":[]}})", 400, "\"param\":\"chat_template_kwargs\"" },
    { chat, R"({"messages":[{"role":"user","content":"a"}],"functions":[{}]})", 400, "\"param\":\"functions\"" },
    { completions, R"({})", 400, "\"param\":\"prompt\"" },
    { completions, R"({"prompt":[]})", 400, "\"param\":\"prompt\"" },
    { completions, R"({"prompt":""})", 400, "the prompt is empty" },
    { completions, R"({"prompt":[1,-1]})", 400, "\"param\":\"prompt[1]\"" },
    { completions, R"({"prompt":[[1],"a",2]})", 400, "\"param\":\"prompt[2]\"" },
    { completions, R"({"prompt":"a","logit_bias":{"x":1}})", 400, "\"param\":\"logit_bias\"" },
    { completions, R"({"prompt":"a","logit_bias":{"99":1}})", 400, "logit_bias" },
    { completions, R"({"prompt":"a","bad_words":"b"})", 400, "\"param\":\"bad_words\"" },
    { completions, R"({"prompt":"a","grammar":"root ::= ("})", 400, "\"param\":\"grammar\"" },
    { completions, R"({"prompt":"a","grammar":5})", 400, "\"param\":\"grammar\"" },
    { completions, R"({"prompt":"a","grammar":"root ::= [a]","json_schema":{}})", 400, "cannot be combined" },
    { completions, R"({"prompt":"a","response_format":{"type":"xml"}})", 400, "\"param\":\"response_format.type\"" },
    { completions, R"({"prompt":"a","response_format":{"type":"json_schema"}})", 400, "expected a JSON Schema" },
    { completions, R"({"prompt":"a","response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nothing"}}}})", 400, "JSON Schema, /type: expected" },
    { completions, R"({"prompt":"a","guided_regex":"a"})", 400, "\"param\":\"guided_regex\"" },
    { completions, R"({"prompt":"a","suffix":"b"})", 400, "\"param\":\"suffix\"" },
    { completions, R"({"prompt":"a","logprobs":99})", 400, "\"param\":\"logprobs\"" },
    { completions, R"({"prompt":"a","best_of":3})", 400, "\"param\":\"best_of\"" },
    { completions, R"({"prompt":"a","best_of":1,"max_tokens":1})", 200, "" },
    { completions, R"({"prompt":"a","max_tokens":-1,"n_predict":1})", 200, "" },
    { completions, R"({"prompt":"a","repeat_last_n":64,"presence_penalty":1,"max_tokens":1})", 200, "" },
    { completions, R"({"prompt":"a","stop_token_ids":[1]})", 400, "\"param\":\"stop_token_ids\"" },
    { completions, R"({"prompt":"a","structured_outputs":{"json":{}}})", 400, "\"param\":\"structured_outputs\"" },
    { completions, R"({"prompt":"a","n":128})", 400, "can run and wait on this server" },
    { "/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"any"}})", 400, "tool_choice" },
    { "/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"n":2})", 400, "'n' is 2, expected 1" },
    { chat, R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"b"}]})", 200, "" },
    { "/tokenize", R"({"content":1})", 400, "\"param\":\"content\"" },
    { completions, R"({"prompt":"a","max_tokens":2.0,"ignore_eos":true})", 200, "\"completion_tokens\":2" },
    { "/detokenize", R"({"tokens":["a"]})", 400, "\"param\":\"tokens[0]\"" },
    { "/v1/nothing", "{}", 404, "\"code\":\"unknown_url\"" },
};
/* clang-format on */

TEST(Refusals, NameTheField)
{
    Served s;
    for (const Refusal &row : refusals) {
        const Answer a = s.ask(row.path, row.body);
        EXPECT_EQ(a.status, row.status) << row.body << ": " << a.text;
        EXPECT_TRUE(has(a.text, row.part)) << row.body << ": " << a.text;
        if (row.status != 200) {
            EXPECT_TRUE(has(a.text, "\"error\":{\"type\":\"")) << a.text;
        }
    }
}

TEST(Refusals, APromptBeyondTheContextIsTold)
{
    Served s(4, 64, 8);
    const Answer a = s.ask(completions, R"({"prompt":[1,1,1,1,1,1,1,1,1]})");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "context_length_exceeded")) << a.text;
    const Answer b = s.ask(completions, R"({"prompt":[1,1,1,1],"max_tokens":100,)"
                                        R"("ignore_eos":true})");
    EXPECT_TRUE(has(b.text, R"("completion_tokens":4)")) << b.text;
    EXPECT_EQ(values_of(b.text, "finish_reason"), "length");
}

TEST(Refusals, PathsOfTheMachineAreCut)
{
    xm_error why = {};
    xm_refusal r = {};
    xm_fail(&why, XM_IO, "'/srv/models/a.gguf' and /etc/x: no, a/b and / stay");
    EXPECT_FALSE(xm_refuse_for(&r, &why));
    EXPECT_STREQ(r.text, "'…/a.gguf' and …/x: no, a/b and …/ stay");
    EXPECT_EQ(r.status, 500);
}

TEST(Refusals, DeepJsonIsNotRead)
{
    Served s;
    const Answer a = s.ask(chat, R"({"messages":)" + std::string(100000, '['));
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "nested deeper than 64 levels")) << a.text;
    const Answer b =
        s.ask(chat, R"({"max_tokens":1,"messages":[{"role":"user","content":"\")" +
                        std::string(100, '[') + "\"}]}");
    EXPECT_EQ(b.status, 200) << "they stand in a text: " << b.text;
}

TEST(Refusals, AQueueThatIsFullSaysSo)
{
    Served s(1, 1);
    std::atomic<bool> holds{true};
    s.model.on_run = [&] {
        while (holds)
            std::this_thread::yield();
    };
    const std::string body = R"({"prompt":[1],"max_tokens":2,"ignore_eos":true})";
    std::vector<std::thread> clients;
    std::atomic<int> good{0}, busy{0};
    for (int i = 0; i < 6; i++)
        clients.emplace_back([&] {
            const Answer a = s.ask(completions, body);
            good += a.status == 200;
            busy += a.status == 429;
            if (busy == 4)
                holds = false;
        });
    for (std::thread &t : clients)
        t.join();
    EXPECT_EQ(good + busy, 6);
    EXPECT_GE(busy, 4) << "one has the slot, and one may wait";
    EXPECT_GE(good, 1);
    const Answer m = s.ask("/metrics", "", "GET");
    EXPECT_TRUE(has(m.text, "xemoe_refused_requests_total{model=\"small\"} " +
                                std::to_string(busy)))
        << m.text;
}

TEST(Failures, ADeviceThatFailsIsToldAndServesOn)
{
    Served s;
    const std::string body = R"({"prompt":[1,2],"max_tokens":9,"ignore_eos":true)";
    s.model.run_fails_in = 0;
    const Answer first = s.ask(completions, body + "}");
    EXPECT_EQ(first.status, 500);
    EXPECT_TRUE(has(first.text, "the device is gone")) << first.text;
    s.model.run_fails_in = 3;
    const Answer streamed = s.ask(completions, body + R"(,"stream":true})");
    EXPECT_EQ(streamed.status, 200);
    EXPECT_TRUE(has(streamed.text, R"(data: {"error":{"type":"server_error")"))
        << streamed.text;
    const Answer after = s.ask(completions, body + "}");
    EXPECT_EQ(after.status, 200) << after.text;
    EXPECT_EQ(s.ask("/health", "", "GET").status, 200);
}

/* When one text of a request fails, the others are cancelled. */
TEST(Failures, ATextThatFailsEndsThoseOfItsRequest)
{
    Served s;
    s.model.nan_every = 1000;
    Ids bad, good;
    for (uint32_t seed = 0; bad.empty() || good.empty(); seed++) {
        uint32_t state = digest((int32_t)seed);
        Ids prompt;
        for (int i = 0; i < 5; i++, state = digest(1, state))
            prompt.push_back((int32_t)(state >> 8) % VOCABULARY);
        const Kind k = kind_of(s.model, prompt, 100);
        if (k.status == XM_NOT_FINITE && k.ids.empty())
            bad = prompt;
        else if (k.status == XM_OK)
            good = prompt;
    }
    s.model.on_run = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    const Answer a =
        s.ask(completions, R"({"prompt":[)" + ids_of(good) + "," + ids_of(bad) +
                               R"(],"max_tokens":400,"ignore_eos":true})");
    EXPECT_EQ(a.status, 500) << a.text;
    const std::string text = s.ask("/metrics", "", "GET").text;
    EXPECT_TRUE(has(text, "texts_cancelled_total{model=\"small\"} 1")) << text;
    EXPECT_TRUE(has(text, "texts_failed_total{model=\"small\"} 1")) << text;
}

TEST(Failures, AFullCacheEndsATextThatHasBegun)
{
    Served s;
    s.model.pages = 3;
    const Answer a =
        s.ask(completions, R"({"prompt":[1,2],"max_tokens":50,"ignore_eos":true})");
    EXPECT_EQ(a.status, 200) << a.text;
    EXPECT_EQ(values_of(a.text, "finish_reason"), "length");
    const Answer b = s.ask(completions, R"({"prompt":[1,2,1,1,1,1,1,1,1,1,1,1,1,1,1]})");
    EXPECT_EQ(b.status, 400) << b.text;
}

#if !defined(__SANITIZE_THREAD__)
/* Each allocation fails once: the answer reports it, or is complete. */
TEST(Failures, AnAllocationThatFailsEndsOneRequest)
{
    const std::string bodies[] = {
        R"({"messages":[{"role":"user","content":"abc"}],"max_tokens":3,"seed":1,
            "logprobs":true,"top_logprobs":2,"ignore_eos":true,"grammar":"root ::= [a-z]+"})",
        R"({"messages":[{"role":"user","content":"abc"}],"max_tokens":3,"seed":1,
            "stream":true,"ignore_eos":true})"};
    Served s;
    for (const std::string &body : bodies) {
        int failed = 0;
        for (uint64_t n = 1;; n++) {
            xm_fail_allocation(n);
            const Answer a = s.ask(chat, body);
            const bool was_seen = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            if (!was_seen)
                break;
            failed += a.status != 200 || has(a.text, "error");
            ASSERT_TRUE(a.status == 0 || a.status == 200 || a.status == 503)
                << n << ": " << a.status << a.text;
            ASSERT_LT(n, 5000u);
        }
        EXPECT_GT(failed, 20);
        EXPECT_EQ(s.ask(chat, body).status, 200);
    }
}
#endif

/* ---- access -----------------------------------------------------------------------------------
 */

xm_request
get(const char *path)
{
    xm_request q = {};
    q.method = "GET";
    q.path = path;
    return q;
}

TEST(Access, OnLoopbackTheHostHeaderNamesLoopback)
{
    Served s;
    s.server.host = "here";
    for (const char *host :
         {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:1", "here:9"}) {
        xm_request q = get("/health");
        q.host = host;
        EXPECT_EQ(s.ask(q, "").status, 200) << host;
    }
    for (const char *host :
         {"evil.example", "localhost.evil.example", "", "[::1", "127.0.0.2"}) {
        xm_request q = get("/health");
        q.host = host;
        EXPECT_EQ(s.ask(q, "").status, 403) << host;
    }
    s.server.host = nullptr;
    xm_request q = get("/health");
    q.host = "any.example";
    EXPECT_EQ(s.ask(q, "").status, 200);
}

TEST(Access, KeysAreReadAndAskedFor)
{
    Folder folder{"keys"};
    folder.write("keys", "# ours\n\nfirst-key\r\n  second-key\n");
    xm_keys keys = {};
    xm_error err = {};
    ASSERT_EQ(xm_keys_read((folder / "keys").c_str(), &keys, &err), XM_OK) << err.text;
    EXPECT_EQ(keys.n, 2u);
    Served s;
    s.server.keys = &keys;
    EXPECT_EQ(s.ask("/v1/models", "", "GET").status, 401);
    EXPECT_EQ(s.ask("/health", "", "GET").status, 200) << "anybody may ask";
    xm_request q = get("/v1/models");
    for (const char *said : {"Bearer first-key", "bearer second-key"}) {
        q.authorization = said;
        EXPECT_EQ(s.ask(q, "").status, 200) << said;
    }
    for (const char *said : {"Bearer first-ke", "Bearer first-keyy", "Bearer ",
                             "first-key", "Bearer # ours", "Bearer FIRST-KEY"}) {
        q.authorization = said;
        EXPECT_EQ(s.ask(q, "").status, 401) << said;
    }
    q.authorization = nullptr;
    q.api_key = "second-key";
    EXPECT_EQ(s.ask(q, "").status, 200) << "as Anthropic's clients say it";
    xm_keys_free(&keys);
    for (const char *text : {"", "# none\n", "two words\n", "caf\xc3\xa9\n"}) {
        folder.write("keys", text);
        err = {};
        EXPECT_EQ(xm_keys_read((folder / "keys").c_str(), &keys, &err), XM_INVALID)
            << text;
        EXPECT_TRUE(has(err.text, "keys")) << err.text;
    }
    err = {};
    EXPECT_EQ(xm_keys_read((folder / "no").c_str(), &keys, &err), XM_NOT_FOUND);
}

TEST(Access, BodiesAreJsonAndNotTooLarge)
{
    Served s;
    xm_request q = get("/v1/completions");
    EXPECT_EQ(s.ask(q, "").status, 405);
    q.method = "POST";
    for (const char *type :
         {"text/plain", "application/jsonp", "application/x-www-form-urlencoded"}) {
        q.content_type = type;
        EXPECT_EQ(s.ask(q, "{}").status, 415) << type;
    }
    q.content_type = nullptr;
    EXPECT_EQ(s.ask(q, "{}").status, 415);
    q.content_type = "Application/JSON; charset=utf-8";
    EXPECT_EQ(s.ask(q, "{}").status, 400);
    EXPECT_EQ(s.ask(q, std::string(s.server.most_body + 1, ' ')).status, 413);
}

TEST(Access, PagesOfOtherOriginsAskWhereTheyMay)
{
    xm_server s = {};
    EXPECT_EQ(xm_server_allows_origin(&s, "https://a.example"), nullptr);
    s.cors_origin = "https://a.example";
    EXPECT_STREQ(xm_server_allows_origin(&s, "https://a.example"), "https://a.example");
    EXPECT_EQ(xm_server_allows_origin(&s, "https://b.example"), nullptr);
    EXPECT_EQ(xm_server_allows_origin(&s, nullptr), nullptr);
    s.cors_origin = "*";
    EXPECT_STREQ(xm_server_allows_origin(&s, "https://b.example"), "*");
}

TEST(Access, OriginsAreSchemesHostsAndPorts)
{
    for (const char *good :
         {"*", "null", "https://a.example", "http://localhost:3000", "http://[::1]:80",
          "http://[::1]", "https://A.example:65535", "tauri://localhost"})
        EXPECT_TRUE(xm_server_is_origin(good)) << good;
    for (const char *bad : {"",
                            "foo",
                            "a.example",
                            "a.example:80",
                            "https://",
                            "://a",
                            "https://a.example/",
                            "https://a.example/path",
                            "https://a.example:",
                            "https://a.example:0",
                            "https://a.example:65536",
                            "https://a.example:8x",
                            "https://a b",
                            "https://u@a",
                            "https://:80",
                            "https://[::1",
                            "https://[]",
                            "https://[::1]x",
                            "**",
                            "Null",
                            "https://a,https://b",
                            "h1ttp://a"}) {
        EXPECT_FALSE(xm_server_is_origin(bad)) << bad;
    }
    xm_server s = {};
    s.cors_origin = "https://A.example";
    EXPECT_STREQ(xm_server_allows_origin(&s, "https://a.example"), "https://a.example");
}

TEST(Access, AServerThatStopsTakesNoTexts)
{
    Served s;
    xm_flag_set(&s.server.is_draining, true);
    EXPECT_EQ(s.ask(chat, "{}").status, 503);
    EXPECT_TRUE(has(s.ask("/health", "", "GET").text, "stopping"));
}

/* ---- others --------------------------------------------------------------------------------- */

TEST(Routes, TokensAndTexts)
{
    Served s;
    EXPECT_EQ(s.ask("/tokenize", R"({"content":"abc#"})").text,
              R"({"tokens":[0,1,2,3]})");
    EXPECT_EQ(s.ask("/tokenize", R"({"content":"ab","with_pieces":true})").text,
              R"({"tokens":[{"id":0,"piece":"a"},{"id":1,"piece":"b"}]})");
    EXPECT_EQ(s.ask("/detokenize", R"({"tokens":[0,1,8]})").text,
              R"({"content":"ab<|im_end|>"})");
    EXPECT_TRUE(has(s.ask("/v1/models", "", "GET").text, R"("id":"small")"));
    EXPECT_EQ(s.ask("/v1/models/small?x", "", "GET").text.find(R"({"id":"small")"), 0u);
    EXPECT_EQ(s.ask("/v1/models/large", "", "GET").status, 404);
    EXPECT_EQ(s.ask("/v1/models/", "", "GET").status, 404);
    EXPECT_EQ(s.ask("/v1/models/small", "{}", "POST").status, 405);
    EXPECT_TRUE(has(s.ask("/props", "", "GET").text, R"("slots":4)"));
    EXPECT_TRUE(has(s.ask("/", "", "GET").text, "<!DOCTYPE html>"));
    EXPECT_EQ(s.ask("/", "", "GET").type, "text/html; charset=utf-8");
    EXPECT_EQ(s.ask("/health?x=1", "", "HEAD").status, 200);
    EXPECT_EQ(s.ask("/v1/models", "", "OPTIONS").status, 204);
}

TEST(Metrics, CountWhatWasDone)
{
    Served s;
    s.ask(completions, R"({"prompt":[1,2,1],"max_tokens":5,"ignore_eos":true})");
    const std::string text = s.ask("/metrics", "", "GET").text;
    for (const char *line :
         {"xemoe_prompt_tokens_total{model=\"small\"} 3",
          "xemoe_generated_tokens_total{model=\"small\"} 5",
          "xemoe_texts_whole_total{model=\"small\"} 1",
          "xemoe_first_token_seconds_count{model=\"small\"} 1",
          "xemoe_between_tokens_seconds_count{model=\"small\"} 4",
          "xemoe_between_tokens_seconds_bucket{model=\"small\",le=\"+Inf\"} 4",
          "# TYPE xemoe_first_token_seconds histogram"})
        EXPECT_TRUE(has(text, line)) << line << "\n" << text;
}

} // namespace
