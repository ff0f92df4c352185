/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of answers: channels and tags, however the text between the marks is cut.
 */
#include "plugin/text/answer.h"
#include "unit_tests/text/text_test.h"

namespace
{

const char *const harmony[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
                               "<|end|>",     "<|return|>",  "<|call|>"};
const char *const think[] = {"<think>", "</think>"};
const char *const gemma[] = {"<|channel>", "<channel|>"};

/* A tokenizer with these marks, letters for the prompts, and a turn's end. */
template <size_t N>
std::string
tokenizer_with(const char *const (&marks)[N])
{
    std::string added = R"({"id":90,"content":"<|im_end|>","special":true})";
    for (size_t i = 0; i < N; i++)
        added += R"(,{"id":)" + std::to_string(100 + i) + R"(,"content":")" + marks[i] +
                 R"(","special":false})";
    return tokenizer_json(small_model, "\"added_tokens\":[" + added + "]");
}

struct Parts {
    std::string text, thought;
    bool complete = false;
    bool operator==(const Parts &o) const
    {
        return text == o.text && thought == o.thought && complete == o.complete;
    }
};

std::ostream &
operator<<(std::ostream &out, const Parts &p)
{
    return out << "text '" << p.text << "' thought '" << p.thought << "'"
               << (p.complete ? " complete" : "");
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

    /* The stream, whose text comes in pieces of so many bytes, the first of them shorter. */
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
                xm_answer_take(&a, xm_tokenizer_id_of(tokenizer.t, mark.c_str()));
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
        note(parts, xm_answer_end(&a, &out), out);
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

    static void note(Parts &parts, xm_answer_part part, struct xm_strbuf &out)
    {
        std::string text(xm_strbuf_text(&out), out.n);
        EXPECT_EQ(part == XM_ANSWER_NOTHING, text.empty());
        if (part == XM_ANSWER_TEXT)
            parts.text += text;
        else
            parts.thought += text;
        xm_strbuf_free(&out);
    }

    static void push(xm_answer *a, Parts &parts, const std::string &text)
    {
        struct xm_strbuf out = {};
        note(parts, xm_answer_text(a, text.data(), text.size(), &out), out);
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
        {"", "{}", false});
    a.expect(open,
             " to=functions.f<|channel|>commentary<|constrain|>json<|message|>{}<|call|>",
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

/* A model that was not trained on channels answers at once. */
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

/* Templates of models that always think end with the tag. */
TEST(Answer, APromptMayHaveOpenedAThought)
{
    Answer a(think, "<think></think>");
    a.expect("ab<think> ", "Hm.</think>Rome.", {"Rome.", "Hm.", false});
    a.expect("ab<think>  </think> ", "\nRome.", {"Rome.", "", false});
    /* What a user has typed ends with the turn. */
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

} // namespace
