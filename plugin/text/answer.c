/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/answer.h"

#include <string.h>

#include "runtime/util/memory.h"
#include "runtime/util/slice.h"

/* What a mark does. */
enum action {
    NO_MARK,
    BEGIN_HEADER,  /* the message header follows, up to BEGIN_BODY */
    BEGIN_CHANNEL, /* the header's channel and recipient follow */
    BEGIN_REST,    /* the rest of the header is ignored */
    /* the message's text follows; the channel says whether it is thought */
    BEGIN_BODY,
    END_MESSAGE, /* another message may follow, beginning with a header */
    BEGIN_THOUGHT,
    BEGIN_NAMED_THOUGHT, /* a thought whose first line is a name */
    BEGIN_TEXT,
    BEGIN_CALL,
    END_CALL,
    CALL_TEXT, /* appears only inside calls, as their text */
    END_ANSWER /* the model waits for the tool's answer */
};

enum state { IN_TEXT, IN_THOUGHT, IN_HEADER, IN_REST, IN_NAME, IN_CALL, BETWEEN };

struct mark {
    const char *spelling;
    enum action action;
};

/* clang-format off */
struct xm_answer_format {
    enum state first; /* the state before any mark */
    enum xm_call_form form;
    /* the first n_needed marks must be in the tokenizer and in the template */
    size_t n_needed;
    struct mark marks[XM_MAX_ANSWER_MARKS];
};

static const struct xm_answer_format formats[] = {
    /* gpt-oss: "harmony" */
    { IN_HEADER, XM_CALL_NAMED, 2, {
        { "<|channel|>",   BEGIN_CHANNEL },
        { "<|message|>",   BEGIN_BODY },
        { "<|start|>",     BEGIN_HEADER },
        { "<|constrain|>", BEGIN_REST },
        { "<|end|>",       END_MESSAGE },
        { "<|return|>",    END_MESSAGE },
        { "<|call|>",      END_MESSAGE },
    } },
    /* Gemma 4 */
    { IN_TEXT, XM_CALL_BRACES, 2, {
        { "<|channel>",       BEGIN_NAMED_THOUGHT },
        { "<channel|>",       BEGIN_TEXT },
        { "<|tool_call>",     BEGIN_CALL },
        { "<tool_call|>",     END_CALL },
        { "<|\"|>",           CALL_TEXT },
        { "<|tool_response>", END_ANSWER },
    } },
    /* Qwen 3, DeepSeek and many more */
    { IN_TEXT, XM_CALL_JSON, 2, {
        { "<think>",      BEGIN_THOUGHT },
        { "</think>",     BEGIN_TEXT },
        { "<tool_call>",  BEGIN_CALL },
        { "</tool_call>", END_CALL },
    } },
    /* Qwen and others, models without thoughts */
    { IN_TEXT, XM_CALL_JSON, 2, {
        { "<tool_call>",  BEGIN_CALL },
        { "</tool_call>", END_CALL },
    } },
};
/* clang-format on */

/* The channel whose messages are for the user. A message without a channel is for the user, too. */
static const char text_channel[] = "final";
/* Longest message header in bytes. A longer one is treated as text or, if the model has generated a
 * mark, dropped. */
enum { LONGEST_HEADER = 256 };

/* ---- which format ------------------------------------------------------------------ */

static bool
has_marks(const struct xm_answer_format *f, const struct xm_tokenizer *tokenizer,
          const struct xm_chat_template *tmpl)
{
    for (size_t i = 0; i < f->n_needed; i++) {
        if (xm_tokenizer_id_of(tokenizer, f->marks[i].spelling) < 0 ||
            !xm_chat_template_mentions(tmpl, f->marks[i].spelling))
            return false;
    }
    return true;
}

void
xm_answer_init(struct xm_answer *a, const struct xm_tokenizer *tokenizer,
               const struct xm_chat_template *tmpl)
{
    *a = (struct xm_answer){.tokenizer = tokenizer};
    for (size_t i = 0; i < XM_ARRAY_LEN(formats) && !a->format; i++) {
        if (has_marks(&formats[i], tokenizer, tmpl))
            a->format = &formats[i];
    }
    for (size_t i = 0; i < XM_MAX_ANSWER_MARKS; i++) {
        const char *spelling = a->format ? a->format->marks[i].spelling : NULL;
        a->ids[i] = spelling ? xm_tokenizer_id_of(tokenizer, spelling) : -1;
    }
    a->state = a->format ? (int)a->format->first : IN_TEXT;
}

void
xm_answer_free(struct xm_answer *a)
{
    xm_strbuf_free(&a->header);
    xm_strbuf_free(&a->call);
    xm_strbuf_free(&a->tool);
    xm_tool_calls_free(&a->calls);
    *a = (struct xm_answer){0};
}

/* ---- marks ------------------------------------------------------------------------- */

static enum action
action_of(const struct xm_answer *a, int32_t id)
{
    for (size_t i = 0; a->format && i < XM_MAX_ANSWER_MARKS; i++) {
        if (a->ids[i] == id && id >= 0)
            return a->format->marks[i].action;
    }
    return NO_MARK;
}

bool
xm_answer_is_mark(const struct xm_answer *a, int32_t id)
{
    return action_of(a, id) != NO_MARK;
}

static void
begin(struct xm_answer *a, enum state state)
{
    a->state = (int)state;
    a->at_start = true;
    xm_strbuf_clear(&a->header);
}

/* Returns whether the first word of the header, such as "final" or "commentary to=functions.f", is
 * `word`. An empty header counts as the default: true. */
static bool
header_says(const struct xm_answer *a, const char *word)
{
    const char *name = xm_strbuf_text(&a->header);
    name += strspn(name, " \n");
    size_t n = strcspn(name, " \n");
    return n == 0 || (n == strlen(word) && memcmp(name, word, n) == 0);
}

static bool
is_for_user(const struct xm_answer *a)
{
    return !a->has_channel || header_says(a, text_channel);
}

/* Returns whether the model has begun a message in another role than "assistant": it invents the
 * words of the user or of a tool, which are not shown. */
static bool
is_by_others(const struct xm_answer *a)
{
    return a->has_role && !a->has_channel && !header_says(a, "assistant");
}

/* ---- calls --------------------------------------------------------------------------- */

/* Copies the tool's name from a header such as "commentary to=functions.f" to a->tool. */
static void
note_tool(struct xm_answer *a)
{
    static const char to[] = "to=functions.";
    const char *name = strstr(xm_strbuf_text(&a->header), to);
    if (!name)
        return;
    name += sizeof(to) - 1;
    xm_strbuf_clear(&a->tool);
    xm_strbuf_add_n(&a->tool, name, strcspn(name, " \t\n<"));
}

static void
begin_call(struct xm_answer *a, enum xm_call_form form, int32_t mark)
{
    begin(a, IN_CALL);
    a->form = form;
    a->call_mark = mark;
    xm_strbuf_clear(&a->call);
}

static void
add_spelling(const struct xm_answer *a, int32_t id, struct xm_strbuf *out)
{
    const char *spelling =
        id >= 0 ? xm_tokenizer_token_text(a->tokenizer, id, NULL) : NULL;
    if (spelling)
        xm_strbuf_add(out, spelling);
}

/* Appends the call in `text` to a->calls. If the length limit ended the answer, a call that breaks
 * off is accepted, too. */
static enum xm_status
parse_call(struct xm_answer *a, struct xm_slice text)
{
    struct xm_error why = {0};
    const struct xm_slice tool = xm_slice_of(xm_strbuf_text(&a->tool), a->tool.n);
    enum xm_status s = XM_INVALID;
    if (!a->is_cut || !xm_strbuf_is_blank(&a->call))
        s = xm_tool_calls_parse(&a->calls, a->form, tool, text, a->tools, &why);
    if (s != XM_INVALID || !a->is_cut)
        return s;
    why = (struct xm_error){0};
    return xm_tool_calls_parse_cut(&a->calls, a->form, tool, text, a->tools, &why);
}

/* Ends the call. `mark` is the mark that ended it; -1: none did. Appends the call as JSON text or,
 * if it cannot be parsed, its text and marks; returns which of these. */
static enum xm_answer_part
end_call(struct xm_answer *a, int32_t mark, struct xm_strbuf *out)
{
    const struct xm_slice text = xm_slice_of(xm_strbuf_text(&a->call), a->call.n);
    const enum xm_status s = parse_call(a, text);
    begin(a, IN_TEXT);
    out->failed |= s == XM_NO_MEMORY || a->call.failed || a->tool.failed;
    if (s == XM_OK) {
        xm_tool_call_add_json(&a->calls.list[a->calls.n - 1], out);
        return XM_ANSWER_CALL;
    }
    if (s == XM_NOT_FOUND) /* the text breaks off before the tool's name */
        return XM_ANSWER_NOTHING;
    add_spelling(a, a->call_mark, out);
    xm_strbuf_add_n(out, text.text, text.n);
    if (a->call_mark >= 0)
        add_spelling(a, mark, out);
    a->at_start = false;
    return out->n > 0 ? XM_ANSWER_TEXT : XM_ANSWER_NOTHING;
}

/* Returns whether a mark belongs to the text of the call in progress. */
static bool
is_in_call(const struct xm_answer *a, enum action action)
{
    return a->state == IN_CALL && action != END_CALL && action != END_MESSAGE &&
           action != BEGIN_HEADER && action != END_ANSWER;
}

/* ---- a mark -------------------------------------------------------------------------- */

static void
begin_body(struct xm_answer *a)
{
    a->complete |= is_by_others(a);
    note_tool(a);
    if (a->tool.n > 0)
        begin_call(a, a->format->form, -1);
    else
        begin(a, is_for_user(a) ? IN_TEXT : IN_THOUGHT);
    a->at_start = false; /* newlines at the start of a message are kept */
}

static void
act(struct xm_answer *a, enum action action, int32_t id, bool was_call)
{
    switch (action) {
    case NO_MARK:
    case CALL_TEXT:
    case END_CALL:
        break;
    case BEGIN_HEADER:
        begin(a, IN_HEADER);
        a->has_channel = false;
        a->has_role = !a->replaying; /* roles in the prompt are not checked */
        xm_strbuf_clear(&a->tool);
        break;
    case BEGIN_CHANNEL:
        a->complete |= is_by_others(a);
        note_tool(a);
        begin(a, IN_HEADER);
        a->has_channel = true;
        break;
    case BEGIN_REST:
        a->state = IN_REST;
        break;
    case BEGIN_BODY:
        begin_body(a);
        break;
    case END_MESSAGE:
        a->complete |= a->state == IN_TEXT || was_call;
        begin(a, BETWEEN);
        xm_strbuf_clear(&a->tool);
        break;
    case BEGIN_THOUGHT:
        begin(a, IN_THOUGHT);
        break;
    case BEGIN_NAMED_THOUGHT:
        begin(a, IN_NAME);
        break;
    case BEGIN_TEXT:
        begin(a, IN_TEXT);
        break;
    case BEGIN_CALL:
        begin_call(a, a->format->form, id);
        break;
    case END_ANSWER:
        a->complete |= !a->replaying;
        break;
    }
}

enum xm_answer_part
xm_answer_take(struct xm_answer *a, int32_t id, struct xm_strbuf *out)
{
    const enum action action = action_of(a, id);
    const bool was_call = a->state == IN_CALL;
    enum xm_answer_part part = XM_ANSWER_NOTHING;
    a->seen_mark = true;
    if (is_in_call(a, action)) {
        if (a->call.n <= XM_LONGEST_CALL)
            add_spelling(a, id, &a->call);
        return part;
    }
    if (was_call)
        part = end_call(a, id, out);
    act(a, action, id, was_call);
    if (a->replaying)
        xm_strbuf_clear(out);
    return a->replaying ? XM_ANSWER_NOTHING : part;
}

/* ---- the end of a prompt ----------------------------------------------------------- */

/* Returns the position of the mark that begins the part that the prompt leaves open; n: none is
 * open. With message headers this is the last mark that begins a header. With tags it is the last
 * tag, unless a special token, such as an end of turn, follows it. */
static size_t
find_open(const struct xm_answer *a, const int32_t *prompt, size_t n)
{
    bool has_headers = a->format->first == IN_HEADER;
    for (size_t i = n; i > 0; i--) {
        enum action action = action_of(a, prompt[i - 1]);
        if (has_headers ? action == BEGIN_HEADER : action != NO_MARK)
            return i - 1;
        if (!has_headers && xm_tokenizer_is_special(a->tokenizer, prompt[i - 1]))
            break;
    }
    return n;
}

enum xm_status
xm_answer_begin(struct xm_answer *a, const int32_t *prompt, size_t n,
                struct xm_error *err)
{
    struct xm_strbuf text = {0}, unused = {0};
    enum xm_status s = XM_OK;
    if (!a->format)
        return XM_OK;
    begin(a, a->format->first);
    xm_strbuf_clear(&a->call);
    xm_strbuf_clear(&a->tool);
    xm_tool_calls_free(&a->calls);
    a->has_role = a->has_channel = a->complete = a->at_start = false;
    const size_t open = find_open(a, prompt, n);
    a->replaying = true;
    for (size_t i = open; i < n && s == XM_OK; i++) {
        xm_strbuf_clear(&text);
        if (xm_answer_is_mark(a, prompt[i]))
            (void)xm_answer_take(a, prompt[i], &unused);
        else if ((s = xm_tokenizer_decode(a->tokenizer, &prompt[i], 1, true, &text,
                                          err)) == XM_OK)
            xm_answer_text(a, xm_strbuf_text(&text), text.n, &unused);
    }
    a->seen_mark = a->replaying = false;
    a->at_start = open < n && a->format->first == IN_TEXT;
    if (!a->has_channel)
        xm_strbuf_clear(&a->header); /* the role, which is part of the prompt */
    xm_strbuf_free(&text);
    xm_strbuf_free(&unused);
    return s;
}

/* ---- text -------------------------------------------------------------------------- */

static enum xm_answer_part
body_text(struct xm_answer *a, const char *text, size_t n, struct xm_strbuf *out)
{
    size_t at = 0;
    while (a->at_start && at < n && text[at] == '\n')
        at++;
    if (at == n)
        return XM_ANSWER_NOTHING;
    a->at_start = false;
    xm_strbuf_add_n(out, text + at, n - at);
    return a->state == IN_TEXT ? XM_ANSWER_TEXT : XM_ANSWER_THOUGHT;
}

static enum xm_answer_part
header_text(struct xm_answer *a, const char *text, size_t n, struct xm_strbuf *out)
{
    if (a->header.n + n <= LONGEST_HEADER) {
        xm_strbuf_add_n(&a->header, text, n);
        return XM_ANSWER_NOTHING;
    }
    if (a->seen_mark) /* a damaged header: a valid one is shorter */
        return XM_ANSWER_NOTHING;
    a->state = IN_TEXT;
    xm_strbuf_add_n(out, xm_strbuf_text(&a->header), a->header.n);
    xm_strbuf_add_n(out, text, n);
    return XM_ANSWER_TEXT;
}

bool
xm_answer_begins_thought(const struct xm_answer *a, int32_t id)
{
    const enum action action = action_of(a, id);
    return action == BEGIN_THOUGHT || action == BEGIN_NAMED_THOUGHT;
}

bool
xm_answer_begins_text(const struct xm_answer *a, int32_t id)
{
    return action_of(a, id) == BEGIN_TEXT;
}

bool
xm_answer_is_in_thought(const struct xm_answer *a)
{
    return a->state == IN_THOUGHT || a->state == IN_NAME;
}

/* NAMED calls begin with a message header; the others begin with a mark, which some tokenizers
 * lack. */
enum xm_call_form
xm_answer_call_form(const struct xm_answer *a)
{
    bool has_calls = a->format && a->format->form == XM_CALL_NAMED;
    for (size_t i = 0; a->format && i < XM_MAX_ANSWER_MARKS; i++)
        has_calls |= a->format->marks[i].action == BEGIN_CALL && a->ids[i] >= 0;
    return has_calls ? a->format->form : XM_CALL_NONE;
}

bool
xm_answer_is_in_text(const struct xm_answer *a)
{
    return a->state == IN_TEXT;
}

/* Appends to the text of the call in progress. A call longer than XM_LONGEST_CALL ends here and
 * becomes text. */
static enum xm_answer_part
call_text(struct xm_answer *a, const char *text, size_t n, struct xm_strbuf *out)
{
    xm_strbuf_add_n(&a->call, text, n);
    out->failed |= a->call.failed;
    return a->call.n > XM_LONGEST_CALL ? end_call(a, -1, out) : XM_ANSWER_NOTHING;
}

enum xm_answer_part
xm_answer_text(struct xm_answer *a, const char *text, size_t n, struct xm_strbuf *out)
{
    if (a->complete)
        return XM_ANSWER_NOTHING;
    const char *newline = memchr(text, '\n', n);
    switch ((enum state)a->state) {
    case IN_TEXT:
    case IN_THOUGHT:
        return body_text(a, text, n, out);
    case IN_HEADER:
        return header_text(a, text, n, out);
    case IN_NAME:
        if (!newline)
            return XM_ANSWER_NOTHING;
        begin(a, IN_THOUGHT);
        return body_text(a, newline, n - (size_t)(newline - text), out);
    case IN_CALL:
        return call_text(a, text, n, out);
    case IN_REST:
    case BETWEEN:
        break;
    }
    return XM_ANSWER_NOTHING;
}

enum xm_answer_part
xm_answer_end(struct xm_answer *a, struct xm_strbuf *out)
{
    if (a->state == IN_CALL && !a->complete)
        return end_call(a, -1, out);
    if (a->state != IN_HEADER || a->seen_mark || a->has_channel || a->header.n == 0)
        return XM_ANSWER_NOTHING;
    xm_strbuf_add_n(out, xm_strbuf_text(&a->header), a->header.n);
    xm_strbuf_clear(&a->header);
    return XM_ANSWER_TEXT;
}
