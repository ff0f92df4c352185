/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of answers: channels and tags, however the text between the marker tokens is cut into
 * pieces.
 */
#include <regex>

#include "plugin/text/answer.h"
#include "unit_tests/text/text_test.h"

namespace
{

const char *const harmony[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
                               "<|end|>",     "<|return|>",  "<|call|>"};
const char *const think[] = {"<think>", "</think>", "<tool_call>", "</tool_call>"};
const char *const calls_only[] = {"<tool_call>", "</tool_call>"};
const char *const gemma[] = {"<|channel>",   "<channel|>", "<|tool_call>",
                             "<tool_call|>", "<|\"|>",     "<|tool_response>"};

/* A tokenizer with these marker tokens, letters for the prompts, and a token that ends a turn. */
template <size_t N>
std::string
tokenizer_with(const char *const (&marks)[N])
{
    std::string added = R"({"id":90,"content":"<|im_end|>","special":true})";
    for (size_t i = 0; i < N; i++)
        added += R"(,{"id":)" + std::to_string(100 + i) + R"(,"content":")" +
                 std::regex_replace(marks[i], std::regex("\""), "\\\"") +
                 R"(","special":false})";
    return tokenizer_json(small_model, "\"added_tokens\":[" + added + "]");
}

struct Parts {
    std::string text, thought;
    bool complete = false;
    std::string calls; /* a line for each call: name and arguments */
    bool operator==(const Parts &o) const
    {
        return text == o.text && thought == o.thought && complete == o.complete &&
               calls == o.calls;
    }
};

std::ostream &
operator<<(std::ostream &out, const Parts &p)
{
    return out << "text '" << p.text << "' thought '" << p.thought << "' calls '"
               << p.calls << "'" << (p.complete ? " complete" : "");
}

class Answer
{
  public:
    template <size_t N>
    Answer(const char *const (&marks)[N], const std::string &text)
        : tokenizer(tokenizer_with(marks)), spellings(marks, marks + N)
    {
        EXPECT_EQ(tokenizer.status, XM_OK) << tokenizer.err.text;
        EXPECT_EQ(xm_chat_template_parse(text.data(), text.size(), &tmpl, &err), XM_OK);
    }
    ~Answer()
    {
        xm_chat_template_free(tmpl);
    }

    bool has_format()
    {
        xm_answer a;
        xm_answer_init(&a, tokenizer.t, tmpl);
        return a.format != nullptr;
    }

    /* Parses the stream in pieces of `piece` bytes; the first piece has `first` bytes. */
    Parts parse(const std::string &prompt, const std::string &stream, size_t piece,
                size_t first)
    {
        Parts parts;
        xm_answer a;
        xm_answer_init(&a, tokenizer.t, tmpl);
        ids before = tokenizer.encode(prompt);
        EXPECT_EQ(xm_answer_begin(&a, before.data(), before.size(), &err), XM_OK);
        size_t room = first;
        for (size_t at = 0; at < stream.size();) {
            std::string mark = mark_at(stream, at);
            if (!mark.empty()) {
                struct xm_strbuf out = {};
                const int32_t id = xm_tokenizer_id_of(tokenizer.t, mark.c_str());
                const xm_answer_part part = xm_answer_take(&a, id, &out);
                note(a, parts, part, out);
                at += mark.size();
                continue;
            }
            size_t n = 0;
            while (n < room && at + n < stream.size() && mark_at(stream, at + n).empty())
                n++;
            push(&a, parts, stream.substr(at, n));
            at += n;
            room = piece;
        }
        struct xm_strbuf out = {};
        const xm_answer_part part = xm_answer_end(&a, &out);
        note(a, parts, part, out);
        parts.complete = a.complete;
        xm_answer_free(&a);
        return parts;
    }

    void expect(const std::string &prompt, const std::string &stream, const Parts &parts)
    {
        for (size_t piece = 1; piece <= stream.size() + 1; piece++)
            for (size_t first = 1; first <= piece; first++)
                ASSERT_EQ(parse(prompt, stream, piece, first), parts)
                    << stream << " in pieces of " << piece << ", first " << first;
    }

  private:
    Tokenizer tokenizer;
    std::vector<std::string> spellings;
    struct xm_chat_template *tmpl = nullptr;
    struct xm_error err = {};

    std::string mark_at(const std::string &stream, size_t at) const
    {
        for (const std::string &s : spellings)
            if (stream.compare(at, s.size(), s) == 0)
                return s;
        return "";
    }

    static void note(const xm_answer &a, Parts &parts, xm_answer_part part,
                     struct xm_strbuf &out)
    {
        std::string text(xm_strbuf_text(&out), out.n);
        EXPECT_EQ(part == XM_ANSWER_NOTHING, text.empty());
        if (part == XM_ANSWER_CALL) {
            ASSERT_GT(a.calls.n, 0u);
            const xm_tool_call &call = a.calls.list[a.calls.n - 1];
            const std::string name = call.name, arguments = call.arguments;
            EXPECT_EQ(text,
                      "{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}");
            parts.calls += name + " " + arguments + "\n";
        } else if (part == XM_ANSWER_TEXT) {
            parts.text += text;
        } else {
            parts.thought += text;
        }
        xm_strbuf_free(&out);
    }

    static void push(xm_answer *a, Parts &parts, const std::string &text)
    {
        struct xm_strbuf out = {};
        const xm_answer_part part = xm_answer_text(a, text.data(), text.size(), &out);
        note(*a, parts, part, out);
    }
};

const char *const harmony_template = "<|channel|> <|message|>";

TEST(Answer, ChannelsAreThoughtsAndText)
{
    Answer a(harmony, harmony_template);
    const std::string open = "<|start|>ab";
    a.expect(open, "<|channel|>final<|message|>Rome.<|return|>", {"Rome.", "", true});
    a.expect(open,
             "<|channel|>analysis<|message|>Hm.\n<|end|>"
             "<|start|>assistant<|channel|>final<|message|>\nRome.",
             {"\nRome.", "Hm.\n", false});
    a.expect(
        open,
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        {"", "", true, "f {}\n"});
    a.expect(open,
             " to=functions.f<|channel|>commentary<|constrain|>json<|message|>{}<|call|>",
             {"", "", true, "f {}\n"});
    a.expect(open, "<|channel|>commentary to=browser.open<|message|>{}<|call|>",
             {"", "{}", false});
    a.expect(open, "<|message|>Rome.<|end|>", {"Rome.", "", true});
    a.expect(open, "<|channel|>fin", {"", "", false});
}

TEST(Answer, EndsWhereTheModelGoesOnAsTheUser)
{
    Answer a(harmony, harmony_template);
    a.expect("<|start|>ab",
             "<|channel|>analysis<|message|>Hm.<|end|><|start|>user<|message|>And Rome?",
             {"", "Hm.", true});
    a.expect("<|start|>ab",
             "<|channel|>analysis<|message|>Hm.<|end|>"
             "<|start|>functions.f to=assistant<|channel|>commentary<|message|>{}",
             {"", "Hm.", true});
}

/* A model that was not trained on channels answers without markers. */
TEST(Answer, WithoutAnyMarkItIsText)
{
    Answer a(harmony, harmony_template);
    a.expect("<|start|>ab", "Rome it is.", {"Rome it is.", "", false});
    std::string longer(600, 'x');
    EXPECT_EQ(a.parse("<|start|>ab", longer, 7, 3), (Parts{longer, "", false}));
}

TEST(Answer, APromptMayHaveOpenedAMessage)
{
    Answer a(harmony, harmony_template);
    a.expect("<|start|>ab<|channel|>abc<|message|>", "Hm.<|end|>", {"", "Hm.", false});
    a.expect("<|start|>ab<|message|>", "Rome.<|end|>", {"Rome.", "", true});
}

TEST(Answer, TagsEncloseThoughts)
{
    Answer a(think, "<think></think>");
    a.expect("ab", "<think>\nHm.\n</think>\n\nRome.\n", {"Rome.\n", "Hm.\n", false});
    a.expect("ab", "Rome.", {"Rome.", "", false});
    a.expect("ab", "\nRome.", {"\nRome.", "", false});
    a.expect("ab", "<think>Hm.", {"", "Hm.", false});
    a.expect("ab", "a < b </thinking> <b>", {"a < b </thinking> <b>", "", false});
}

/* The prompt of a model that always thinks ends with the opening tag. */
TEST(Answer, APromptMayHaveOpenedAThought)
{
    Answer a(think, "<think></think>");
    a.expect("ab<think> ", "Hm.</think>Rome.", {"Rome.", "Hm.", false});
    a.expect("ab<think>  </think> ", "\nRome.", {"Rome.", "", false});
    /* A tag in the user's message does not count after the end of the turn. */
    a.expect("ab<think> <|im_end|>ab", "Rome.", {"Rome.", "", false});
}

TEST(Answer, NamedTagsLoseTheirName)
{
    Answer a(gemma, "<|channel> <channel|>");
    a.expect("ab", "<|channel>thought\nHm.\n<channel|>Rome.", {"Rome.", "Hm.\n", false});
    a.expect("ab", "<|channel>thought\n<channel|>Rome.", {"Rome.", "", false});
    a.expect("ab", "Rome.", {"Rome.", "", false});
}

TEST(Answer, TheTokenizerAndTheTemplateMustHaveTheMarks)
{
    EXPECT_TRUE(Answer(think, "<think></think>").has_format());
    EXPECT_FALSE(Answer(think, "{{ messages }}").has_format());
    EXPECT_FALSE(Answer(gemma, "<think></think>").has_format());
    EXPECT_FALSE(Answer(harmony, "<|channel|>").has_format());
    Answer plain(think, "{{ messages }}");
    EXPECT_EQ(plain.parse("ab", "x", 1, 1), (Parts{"x", "", false}));
}

/* ---- calls of tools ------------------------------------------------------------------ */

const char *const weather = R"({"city":"Rome","days":3})";

TEST(Answer, HarmonysCallsAreMessagesToFunctions)
{
    Answer a(harmony, harmony_template);
    const std::string open = "<|start|>ab", call = std::string("get_weather ") + weather;
    a.expect(open,
             "<|channel|>analysis<|message|>Hm.<|end|>"
             "<|start|>assistant<|channel|>commentary to=functions.get_weather "
             "<|constrain|>json<|message|>{\"city\": \"Rome\", \"days\": 3}<|call|>",
             {"", "Hm.", true, call + "\n"});
    /* <|call|> ends the text before it arrives here */
    a.expect(open,
             "<|start|>assistant to=functions.get_weather<|channel|>commentary"
             "<|message|>{\"city\":\"Rome\",\"days\":3}",
             {"", "", false, call + "\n"});
    a.expect(open, "<|channel|>commentary to=functions.now<|message|><|call|>",
             {"", "", true, "now {}\n"});
    /* an invalid or broken-off call is text */
    a.expect(open, "<|channel|>commentary to=functions.f<|message|>{\"a\": <|call|>",
             {"{\"a\": ", "", true});
    a.expect(open, "<|channel|>commentary to=functions.f<|message|>{\"a\"",
             {"{\"a\"", ""});
    a.expect(open, "<|channel|>commentary to=functions.f<|message|>[1]<|call|>",
             {"[1]", "", true});
    /* the next message is separate */
    a.expect(open,
             "<|channel|>commentary to=functions.f<|message|>{}"
             "<|start|>assistant<|channel|>final<|message|>Rome.<|return|>",
             {"Rome.", "", true, "f {}\n"});
}

TEST(Answer, QwensCallsAreJsonBetweenMarks)
{
    const std::string one = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                            "{\"city\": \"Rome\", \"days\": 3}}\n</tool_call>",
                      made = std::string("get_weather ") + weather + "\n";
    Answer with_thoughts(think, "<think></think> <tool_call></tool_call>");
    Answer without(calls_only, "<tool_call></tool_call>");
    for (Answer *a : {&with_thoughts, &without}) {
        a->expect("ab", one, {"", "", false, made});
        a->expect("ab", "I look.\n\n" + one, {"I look.\n\n", "", false, made});
        a->expect("ab", "<tool_call>{\"name\":\"f\"}", {"", "", false, "f {}\n"});
        a->expect("ab", "<tool_call>{\"name\":\"f\"", {"<tool_call>{\"name\":\"f\"", ""});
        a->expect("ab", "<tool_call>hello</tool_call> you",
                  {"<tool_call>hello</tool_call> you", ""});
        a->expect("ab", "<tool_call></tool_call>", {"<tool_call></tool_call>", ""});
        a->expect("ab", "<tool_call>{\"name\":\"<tool_call>\"}</tool_call>",
                  {"<tool_call>{\"name\":\"<tool_call>\"}</tool_call>", ""});
    }
    with_thoughts.expect("ab<think> ", "Hm.</think>\n\n" + one, {"", "Hm.", false, made});
    with_thoughts.expect("ab<think> ", "Hm.\n" + one, {"", "Hm.\n", false, made});
    with_thoughts.expect("ab",
                         "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"<think>\"}}"
                         "</tool_call>",
                         {"", "", false, "f {\"x\":\"<think>\"}\n"});
    without.expect("ab", "a</tool_call>b", {"ab", ""});
}

TEST(Answer, TwoCallsAreTwo)
{
    Answer a(think, "<think></think> <tool_call></tool_call>");
    a.expect("ab",
             "<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}"
             "</tool_call>Done.",
             {"Done.", "", false, "f {}\ng {}\n"});
    Answer g(gemma, "<|channel> <channel|>");
    g.expect("ab",
             "<|tool_call>call:f{}<tool_call|><|tool_call>call:g{a:1}<tool_call|>"
             "<|tool_response>",
             {"", "", true, "f {}\ng {\"a\":1}\n"});
}

TEST(Answer, QwenCodersCallsAreTags)
{
    Answer a(calls_only, "<tool_call></tool_call>");
    const std::string call = "<tool_call>\n<function=edit>\n<parameter=path>\na b.c\n"
                             "</parameter>\n<parameter=line>\n12\n</parameter>\n"
                             "</function>\n</tool_call>";
    EXPECT_EQ(a.parse("ab", "x" + call, 1, 1),
              (Parts{"x", "", false, "edit {\"path\":\"a b.c\",\"line\":12}\n"}));
    EXPECT_EQ(a.parse("ab", call, 7, 3), a.parse("ab", call, 1, 1));
    EXPECT_EQ(a.parse("ab", call.substr(0, 70), 7, 3),
              (Parts{call.substr(0, 70), "", false}));
}

TEST(Answer, GemmasCallsHaveQuotesOfTheirOwn)
{
    Answer a(gemma, "<|channel> <channel|>");
    a.expect("ab",
             "<|channel>thought\nHm.<channel|>Yes.<|tool_call>call:get_weather{city:"
             "<|\"|>Rome<|\"|>,days:3}<tool_call|><|tool_response>",
             {"Yes.", "Hm.", true, std::string("get_weather ") + weather + "\n"});
    a.expect("ab", "<|tool_call>call:f{a:<|\"|>x<tool_call|>",
             {"<|tool_call>call:f{a:<|\"|>x<tool_call|>", ""});
    a.expect("ab", "<|tool_call>call:f{a:1", {"<|tool_call>call:f{a:1", ""});
    a.expect("ab", "a<|\"|>b", {"ab", ""});
}

TEST(Answer, AnEndlessCallIsText)
{
    Answer a(calls_only, "<tool_call></tool_call>");
    const std::string longer(XM_LONGEST_CALL + 1000, 'x');
    const Parts parts = a.parse("ab", "<tool_call>" + longer + "</tool_call>y", 1000, 7);
    EXPECT_EQ(parts.text.size(), longer.size() + 12);
    EXPECT_EQ(parts.text.substr(0, 12), "<tool_call>x");
    EXPECT_EQ(parts.calls, "");
}

/* The marker tokens of the small models' own tokenizer; each arrives alone. */
TEST(Answer, RecordedCallsOfASmallModel)
{
    Tokenizer t =
        Tokenizer::file(std::string(XM_MODELS_DIR) + "/gpt-oss-tiny/tokenizer.json");
    ASSERT_EQ(t.status, XM_OK);
    xm_chat_template *tmpl = nullptr;
    xm_error err = {};
    const std::string source = "<|channel|><|message|>";
    ASSERT_EQ(xm_chat_template_parse(source.data(), source.size(), &tmpl, &err), XM_OK);
    const ids prompt = t.encode("<|start|>assistant");
    const ids stream = t.encode("<|channel|>analysis<|message|>The weather.<|end|>"
                                "<|start|>assistant<|channel|>commentary to=functions."
                                "get_weather <|constrain|>json<|message|>"
                                "{\"city\":\"Rome\"}<|call|>");
    xm_answer a;
    xm_answer_init(&a, t.t, tmpl);
    ASSERT_EQ(xm_answer_begin(&a, prompt.data(), prompt.size(), &err), XM_OK);
    std::string thought;
    for (const int32_t id : stream) {
        xm_strbuf out = {};
        const std::string text = t.decode({id});
        const xm_answer_part part =
            xm_answer_is_mark(&a, id)
                ? xm_answer_take(&a, id, &out)
                : xm_answer_text(&a, text.data(), text.size(), &out);
        EXPECT_NE(part, XM_ANSWER_TEXT);
        if (part == XM_ANSWER_THOUGHT)
            thought += xm_strbuf_text(&out);
        xm_strbuf_free(&out);
    }
    EXPECT_EQ(thought, "The weather.");
    ASSERT_EQ(a.calls.n, 1u);
    EXPECT_EQ(std::string(a.calls.list[0].name), "get_weather");
    EXPECT_EQ(std::string(a.calls.list[0].arguments), "{\"city\":\"Rome\"}");
    EXPECT_TRUE(a.complete);
    xm_answer_free(&a);
    xm_chat_template_free(tmpl);
}

} // namespace
