/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts echoed with log-probabilities, answers that the client has begun, counting tokens, and
 * prompts without room.
 */
#include "unit_tests/server/served.h"

namespace
{

const char *const chat = "/v1/chat/completions";
const char *const completions = "/v1/completions";

/* Returns the items of a list that is a member of JSON text. */
std::vector<std::string>
list_of(const std::string &json, const std::string &key)
{
    std::vector<std::string> items;
    size_t at = json.find("\"" + key + "\":[");
    if (at == std::string::npos)
        return items;
    at += key.size() + 4;
    std::string item;
    for (int depth = 0; depth > 0 || json[at] != ']'; at++) {
        depth += json[at] == '{' || json[at] == '[';
        depth -= json[at] == '}' || json[at] == ']';
        if (json[at] == ',' && depth == 0) {
            items.push_back(item);
            item.clear();
        } else {
            item += json[at];
        }
    }
    if (!item.empty())
        items.push_back(item);
    return items;
}

/* ---- echoed prompts ------------------------------------------------------------------------- */

/* The tokens of an echoed prompt have the probabilities that they would have as generated tokens.
 */
TEST(EchoedPrompts, HaveTheProbabilitiesOfTheirTokens)
{
    Served s;
    const Kind k = long_kind(s.model, 1, 6);
    Ids all = k.prompt;
    all.insert(all.end(), k.ids.begin(), k.ids.end());
    const auto ids = [](const Ids &list) {
        std::string text = "[";
        for (int32_t id : list)
            text += (text.size() > 1 ? "," : "") + std::to_string(id);
        return text + "]";
    };
    const Answer made = s.ask(completions, R"({"prompt":)" + ids(k.prompt) +
                                               R"(,"max_tokens":6,"temperature":0,)"
                                               R"("logprobs":2})");
    const std::string begin =
        R"({"prompt":)" + ids(all) + R"(,"temperature":0,"logprobs":2)";
    const Answer told = s.ask(completions, begin + R"(,"echo":true,"max_tokens":0})");
    ASSERT_EQ(told.status, 200) << told.text;
    std::vector<std::string> expected = list_of(made.text, "token_logprobs");
    ASSERT_EQ(expected.size(), 6u);
    expected.insert(expected.begin(), "null");
    EXPECT_EQ(list_of(told.text, "token_logprobs"), expected) << told.text;
    expected = list_of(made.text, "top_logprobs");
    expected.insert(expected.begin(), "null");
    EXPECT_EQ(list_of(told.text, "top_logprobs"), expected) << told.text;
    EXPECT_EQ(values_of(told.text, "text"), s.text_of(all));
    EXPECT_EQ(list_of(told.text, "text_offset").front(), "0");
    EXPECT_TRUE(has(told.text, R"("prompt_tokens":7,"completion_tokens":0,)"))
        << told.text;
    EXPECT_EQ(values_of(told.text, "finish_reason"), "length");
    /* generated tokens after an echo equal those of the prompt alone; in one answer and streamed */
    const Answer more = s.ask(completions, begin + R"(,"echo":true,"max_tokens":4})");
    const Answer alone = s.ask(completions, begin + R"(,"max_tokens":4})");
    EXPECT_EQ(values_of(more.text, "text"),
              s.text_of(all) + values_of(alone.text, "text"));
    std::vector<std::string> both = list_of(told.text, "token_logprobs");
    for (const std::string &p : list_of(alone.text, "token_logprobs"))
        both.push_back(p);
    EXPECT_EQ(list_of(more.text, "token_logprobs"), both);
    EXPECT_TRUE(has(more.text, R"("prompt_tokens":7,"completion_tokens":4,)"))
        << more.text;
    const Answer streamed =
        s.ask(completions, begin + R"(,"echo":true,"max_tokens":4,"stream":true})");
    EXPECT_EQ(values_of(streamed.text, "text"), values_of(more.text, "text"));
    EXPECT_EQ(list_of(streamed.text, "token_logprobs"),
              list_of(told.text, "token_logprobs"))
        << "the first part is the prompt: " << streamed.text;
}

/* End tokens and stop strings inside the prompt end nothing. */
TEST(EchoedPrompts, AreNotEndedByWhatIsInThem)
{
    Served s;
    const Answer a = s.ask(
        completions, R"({"prompt":[0,8,1,2],"echo":true,"logprobs":0,"max_tokens":3,)"
                     R"("ignore_eos":true,"stop":["b"],"temperature":0})");
    ASSERT_EQ(a.status, 200) << a.text;
    EXPECT_EQ(values_of(a.text, "text").find("abc"), 0u) << a.text;
    EXPECT_GE(list_of(a.text, "token_logprobs").size(), 4u) << a.text;
    EXPECT_EQ(list_of(a.text, "text_offset")[2], "1") << "special tokens have no text";
    const Answer told = s.ask(
        completions, R"({"prompt":[0,8,1,2],"echo":true,"logprobs":0,"max_tokens":0})");
    EXPECT_EQ(list_of(told.text, "token_logprobs").size(), 4u) << told.text;
}

TEST(EchoedPrompts, OfOneTokenHaveNoProbability)
{
    Served s;
    const std::string body =
        R"({"prompt":[1],"echo":true,"logprobs":1,"temperature":0,"max_tokens":)";
    const Answer a = s.ask(completions, body + "0}");
    EXPECT_EQ(list_of(a.text, "token_logprobs"), std::vector<std::string>{"null"})
        << a.text;
    EXPECT_EQ(values_of(a.text, "text"), "b");
    EXPECT_EQ(list_of(s.ask(completions, body + "2}").text, "token_logprobs").size(), 3u);
}

/* For a model whose vocabulary is known only from its logits. */
TEST(EchoedPrompts, OfIdsThatTheLogitsLackAreRefused)
{
    Served s;
    const Answer a = s.ask(
        completions, R"({"prompt":[2,31],"max_tokens":1,"echo":true,"logprobs":1})");
    EXPECT_EQ(a.status, 400) << a.text;
    EXPECT_TRUE(has(a.text, "token id 31 is not in the vocabulary of 12")) << a.text;
}

TEST(Completions, NoNewTokensMayBeWanted)
{
    Served s;
    const Answer a = s.ask(completions, R"({"prompt":"abc","max_tokens":0})");
    EXPECT_EQ(a.status, 200) << a.text;
    EXPECT_EQ(values_of(a.text, "text"), "");
    EXPECT_EQ(values_of(a.text, "finish_reason"), "length");
    EXPECT_EQ(
        s.ask(chat, R"({"max_tokens":0,"messages":[{"role":"user","content":"a"}]})")
            .status,
        400);
}

/* ---- answers that the client has begun --------------------------------------------------------
 */

TEST(BegunAnswers, GoOnBehindTheLastMessage)
{
    Served s{4, 64, 512, "", "{% for m in messages %}{{ m.content }}x{% endfor %}#"};
    const std::string user = R"([{"role":"user","content":"ab"})";
    const auto prompt = [&](const std::string &more) {
        return values_of(
            s.ask("/apply-template", R"({"messages":)" + user + more + "}").text,
            "prompt");
    };
    EXPECT_EQ(prompt("]"), "abx#");
    EXPECT_EQ(prompt(R"(,{"role":"assistant","content":"c"}])"), "abx#c");
    EXPECT_EQ(prompt(R"(,{"role":"assistant","content":"c"}],)"
                     R"("continue_final_message":false)"),
              "abxcx#");
    EXPECT_EQ(
        prompt(R"(,{"role":"assistant","content":"c"},{"role":"user","content":""}])"),
        "abxcxx#");
    EXPECT_EQ(prompt(R"(,{"role":"assistant","content":""}])"), "abxx#");
    EXPECT_EQ(values_of(s.ask("/apply-template",
                              R"({"messages":[{"role":"assistant","content":"c"}]})")
                            .text,
                        "prompt"),
              "cx#")
        << "a conversation has a message at least";
    /* The answer contains only the new text, which equals that of the same prompt. */
    const std::string more = R"(,"temperature":0,"max_tokens":9,"ignore_eos":true})";
    const Answer begun =
        s.ask(chat, R"({"messages":)" + user + R"(,{"role":"assistant","content":"c"}])" +
                        more);
    const Answer same = s.ask(completions, R"({"prompt":"abx#c")" + more);
    ASSERT_EQ(begun.status, 200) << begun.text;
    EXPECT_EQ(values_of(begun.text, "content"), values_of(same.text, "text"));
    const Answer third =
        s.ask("/v1/messages", R"({"messages":)" + user +
                                  R"(,{"role":"assistant","content":"c"}])" + more);
    EXPECT_TRUE(has(third.text, "\"text\":\"" + values_of(same.text, "text") + "\""))
        << third.text;
}

/* Control tokens in the begun answer are plain text, too. */
TEST(BegunAnswers, HaveNoControlTokens)
{
    Served s{4, 64, 512, "", "{% for m in messages %}{{ m.content }}{% endfor %}"};
    const std::string body =
        R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},)"
        R"({"role":"assistant","content":"<s>"}]})";
    const Answer a = s.ask(chat, body);
    EXPECT_EQ(a.status, 200) << a.text;
    EXPECT_FALSE(has(a.text, R"("prompt_tokens":2,)")) << "a and <s>: " << a.text;
}

TEST(BegunAnswers, AreRefusedWhereAThoughtComesFirst)
{
    Served s; /* the template ends with <think> */
    const Answer a =
        s.ask(chat, R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},)"
                    R"({"role":"assistant","content":"b"}]})");
    EXPECT_EQ(a.status, 400) << a.text;
    EXPECT_TRUE(has(a.text, "\"param\":\"messages\"")) << a.text;
    EXPECT_TRUE(has(a.text, "cannot be continued")) << a.text;
}

/* ---- counting tokens --------------------------------------------------------------------------
 */

TEST(CountedTokens, AreThoseThatTheMessageWouldHave)
{
    Served s;
    const std::string body =
        R"({"system":"aa","messages":[{"role":"user","content":"bcb"}])";
    const Answer counted = s.ask("/v1/messages/count_tokens", body + "}");
    const Answer made = s.ask("/v1/messages", body + R"(,"max_tokens":1})");
    EXPECT_EQ(counted.status, 200);
    EXPECT_EQ(counted.text, R"({"input_tokens":6})");
    EXPECT_TRUE(has(made.text, R"("input_tokens":6)")) << made.text;
    for (const char *bad :
         {"{}", "{", R"({"messages":[{"role":"user","content":5}]})",
          R"({"messages":[{"role":"user","content":"a"}],"tools":5})"}) {
        const Answer a = s.ask("/v1/messages/count_tokens", bad);
        EXPECT_EQ(a.status, 400) << a.text;
        EXPECT_EQ(a.text.find(R"({"type":"error")"), 0u) << a.text;
    }
    EXPECT_EQ(s.ask("/v1/messages/count_tokens",
                    R"({"model":"x","messages":[{"role":"user","content":"a"}]})")
                  .status,
              404);
}

TEST(Tokenize, SpecialTokensAreTextWhereTheyAreNotToBeParsed)
{
    Served s;
    EXPECT_EQ(s.ask("/tokenize", R"({"content":"a<s>"})").text, R"({"tokens":[0,11]})");
    const Answer a = s.ask("/tokenize", R"({"content":"a<s>","parse_special":false})");
    EXPECT_EQ(a.status, 200) << a.text;
    EXPECT_FALSE(has(a.text, "11")) << a.text;
    EXPECT_EQ(s.ask("/tokenize", R"({"content":"a","parse_special":1})").status, 400);
}

/* ---- no room -------------------------------------------------------------------------------- */

TEST(NoRoom, APromptLargerThanTheCacheIsTheClientsError)
{
    Served s{4, 64, 0};
    s.model.pages = 4; /* of four positions each */
    const std::string text(40, 'a');
    const Answer a = s.ask(completions, R"({"max_tokens":1,"prompt":")" + text + "\"}");
    EXPECT_EQ(a.status, 400) << a.text;
    EXPECT_TRUE(has(a.text, R"("param":"prompt")")) << a.text;
    EXPECT_TRUE(has(a.text, "the prompt has 40 tokens")) << a.text;
    EXPECT_TRUE(has(a.text, R"("code":"context_length_exceeded")")) << a.text;
    const Answer b =
        s.ask(chat, R"({"max_tokens":1,"messages":[{"role":"user","content":")" + text +
                        "\"}]}");
    EXPECT_EQ(b.status, 400) << b.text;
    EXPECT_TRUE(has(b.text, R"("param":"messages")")) << b.text;
    const Answer fits = s.ask(completions, R"({"max_tokens":1,"prompt":"aaa"})");
    EXPECT_EQ(fits.status, 200) << fits.text;
}

/* A request for several texts is accepted or refused as a whole. */
TEST(NoRoom, ARequestOfSeveralTextsIsRefusedBeforeAnyOfThemRuns)
{
    Served s{1, 4, 512};
    std::mutex mutex;
    std::condition_variable wake;
    bool is_open = false, has_come = false;
    s.model.on_run = [&] {
        std::unique_lock<std::mutex> lock(mutex);
        has_come = true;
        wake.notify_all();
        wake.wait(lock, [&] { return is_open; });
    };
    const std::string body =
        R"({"prompt":"a","max_tokens":2,"ignore_eos":true,"temperature":0,"n":)";
    std::thread other([&] { EXPECT_EQ(s.ask(completions, body + "3}").status, 200); });
    {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return has_come; });
    }
    std::vector<int> statuses;
    std::thread late([&] { statuses.push_back(s.ask(completions, body + "3}").status); });
    late.join(); /* it is answered while nothing runs */
    EXPECT_EQ(statuses, std::vector<int>{429});
    {
        std::lock_guard<std::mutex> lock(mutex);
        is_open = true;
        wake.notify_all();
    }
    other.join();
    s.model.on_run = nullptr;
}

} // namespace
