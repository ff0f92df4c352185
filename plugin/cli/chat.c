/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe chat: a conversation on the terminal.
 *
 * Each turn gives the conversation to the session: of answers only what was said, not what was
 * thought, as templates have it. The session feeds what it does not hold already.
 */
#include "plugin/cli/chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/kernels.h"
#include "plugin/cli/line_input.h"
#include "plugin/cli/text_out.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/log.h"

struct args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *system;
    uint64_t tokens;
    bool show_thinking;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 's', "system", XM_CLI_TEXT,  AT(system), "TEXT", "what the model is told before the conversation" },
    { 0,   "chat-template", XM_CLI_TEXT, AT(generation.target.chat_template), "FILE", "a Jinja template in the place of the model's" },
    { 'n', "tokens", XM_CLI_LIMIT, AT(tokens), "N",    "at most N tokens an answer (512); -1: what the context holds" },
    { 0,   "show-thinking", XM_CLI_FLAG, AT(show_thinking), NULL, "show what the model thinks before it answers" },
};
#undef AT
/* clang-format on */

struct chat {
    const struct args *args;
    struct xm_cli_model *model;
    struct xm_session *session;
    struct xm_conversation conversation;
    bool interactive; /* a person types                            */
    bool refused;     /* a message that does not fit               */
    bool stopped;     /* by Ctrl-C, where nobody types             */
};

/* ---- the prompt of a turn ---- */

static enum xm_status
render(struct chat *c, struct xm_token_list *ids, struct xm_error *err)
{
    char *messages = xm_conversation_messages(&c->conversation, err);
    if (!messages)
        return err->status;
    const struct xm_prompt prompt = {.kind = XM_PROMPT_MESSAGES, .text = messages};
    xm_token_list_clear(ids);
    enum xm_status s = xm_prompt_encode(
        c->model->package, &prompt, xm_compiled_vocabulary(c->model->compiled), ids, err);
    xm_free(messages);
    return s;
}

/* 0: without bounds. */
static uint64_t
context_of(const struct chat *c)
{
    const uint64_t given = c->args->generation.context;
    return given ? given : c->model->package->facts.context;
}

/* Renders as many of the last turns as leave room for an answer: a quarter of the context, or
 * what an answer may take at most. *fits: the last turn alone does. */
static enum xm_status
fit(struct chat *c, struct xm_token_list *prompt, bool *fits, struct xm_error *err)
{
    const uint64_t context = context_of(c), quarter = context / 4;
    const uint64_t reserve = c->args->tokens < quarter ? c->args->tokens : quarter;
    const size_t first = c->conversation.first;
    XM_TRY(render(c, prompt, err));
    while (context && prompt->n + reserve > context &&
           xm_conversation_leave_out(&c->conversation))
        XM_TRY(render(c, prompt, err));
    *fits = xm_generation_room(context, prompt->n) > 0;
    if (!*fits)
        c->conversation.first = first; /* the message is refused, the others stay */
    else if (c->conversation.first != first)
        fprintf(stderr,
                "xemoe: the conversation has outgrown the context of %" PRIu64
                " tokens: its oldest %zu messages are left out from here on\n",
                context, c->conversation.first - first);
    return XM_OK;
}

/* ---- a turn ---- */

/* Why an answer ends that the model has not ended. */
static void
tell_limit(const struct chat *c, enum xm_finish finish)
{
    if (finish == XM_FINISH_CONTEXT)
        fprintf(stderr, "xemoe: the context of %" PRIu64 " tokens is full\n",
                context_of(c));
    else if (finish == XM_FINISH_LENGTH)
        fprintf(stderr, "xemoe: the answer was cut after %" PRIu64 " tokens (-n)\n",
                c->args->tokens);
}

static enum xm_status
write_answer(struct chat *c, const struct xm_token_list *prompt,
             struct xm_generation_result *result, struct xm_error *err)
{
    const struct xm_cli_stops stops = xm_cli_stops(&c->args->generation);
    struct xm_text_out o;
    const struct xm_generation run = {
        .prompt = {.kind = XM_PROMPT_IDS, .ids = prompt->ids, .n = prompt->n},
        .max_tokens = c->args->tokens,
        .context = context_of(c),
        .stops = stops.list,
        .n_stops = stops.n,
        .is_answer = true,
        .on_piece = xm_cli_piece_out,
        .ctx = &o};
    xm_text_out_begin(&o, true, !c->args->generation.target.json);
    o.show_thoughts = c->args->show_thinking;
    struct xm_infer *request = xm_session_request(c->session);
    xm_cli_catch_interrupt(request);
    xm_cli_show_reading(request, "reading",
                        prompt->n -
                            xm_session_reusable(c->session, prompt->ids, prompt->n));
    xm_cli_show_builds();
    enum xm_status s = xm_session_run(c->session, &run, result, err);
    xm_cli_hide_builds();
    /* Always: the line is ended, and styles with it, before a sentence says what failed. */
    xm_text_out_finish(&o, s == XM_OK);
    return s;
}

/* Templates want turn by turn: a message without an answer would not be one. */
static enum xm_status
note_answer(struct chat *c, const struct xm_generation_result *r, struct xm_error *err)
{
    if (xm_cli_interrupted() && !r->text.n) {
        xm_conversation_pop(&c->conversation);
        if (c->interactive)
            fputs("(stopped before the answer began: the message is taken back)\n",
                  stderr);
        return XM_OK;
    }
    return xm_conversation_add(&c->conversation, "assistant", xm_strbuf_text(&r->text),
                               r->text.n, err);
}

static void
refuse(struct chat *c, size_t n)
{
    fprintf(stderr,
            "xemoe: the message makes a prompt of %zu tokens, which leaves no room in a "
            "context of %" PRIu64 ": it is not sent\n",
            n, context_of(c));
    xm_conversation_pop(&c->conversation);
    c->refused = true;
}

static enum xm_status
answer(struct chat *c, struct xm_error *err)
{
    struct xm_token_list prompt = {0};
    struct xm_generation_result result = {0};
    bool fits = false;
    enum xm_status s = fit(c, &prompt, &fits, err);
    if (s == XM_OK && !fits) {
        refuse(c, prompt.n);
    } else if (s == XM_OK) {
        s = write_answer(c, &prompt, &result, err);
        if (s == XM_OK)
            tell_limit(c, result.finish);
        if (s == XM_OK)
            s = note_answer(c, &result, err);
    }
    xm_generation_result_free(&result);
    xm_token_list_free(&prompt);
    return s;
}

/* ---- the loop ---- */

/* Ctrl-C stops the answer, and where nobody is there to go on, the conversation. */
static enum xm_status
take_turn(struct chat *c, struct xm_error *err)
{
    enum xm_status s = answer(c, err);
    if (c->interactive)
        xm_cli_note_interrupt();
    else
        xm_cli_release_interrupt();
    if (s == XM_OK)
        c->stopped = xm_cli_interrupted() && !c->interactive;
    if (c->interactive)
        xm_cli_forget_interrupt();
    return s;
}

/* One line: a command, or a message to answer. */
static enum xm_status
take_line(struct chat *c, const struct xm_strbuf *line, bool *end, struct xm_error *err)
{
    enum xm_chat_next next = XM_CHAT_ANSWER;
    if (!line->n)
        return XM_OK;
    if (!xm_chat_command(&c->conversation, xm_strbuf_text(line), &next))
        XM_TRY(xm_conversation_add(&c->conversation, "user", xm_strbuf_text(line),
                                   line->n, err));
    if (next == XM_CHAT_ANSWER)
        XM_TRY(take_turn(c, err));
    *end = next == XM_CHAT_END || c->stopped;
    return XM_OK;
}

/* The second Ctrl-C in a row at an empty line ends. */
static bool
is_enough(const struct xm_strbuf *line, bool again)
{
    xm_cli_forget_interrupt();
    if (again && !line->n)
        return true;
    fputs("(Ctrl-C again or Ctrl-D ends)\n", stderr);
    return false;
}

static enum xm_status
converse(struct chat *c, struct xm_line_input *in, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_OK;
    bool end = false, again = false;
    if (c->interactive) {
        xm_cli_note_interrupt();
        fputs("Type a message; /help lists commands, Ctrl-D ends.\n", stderr);
    }
    while (s == XM_OK && !end) {
        switch (xm_line_input_read(in, &line, err)) {
        case XM_LINE_TEXT:
            s = take_line(c, &line, &end, err);
            again = false;
            break;
        case XM_LINE_INTERRUPTED:
            end = is_enough(&line, again);
            again = true;
            break;
        case XM_LINE_END:
            end = true;
            break;
        case XM_LINE_FAILED:
            s = err->status;
            break;
        }
    }
    xm_strbuf_free(&line);
    return s;
}

static enum xm_status
print_json(const struct chat *c, const struct xm_sampling *sampling, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_conversation_add_json(&c->conversation, true, &j);
    if (sampling->temperature > 0.0f)
        xm_json_add_whole(&j, NULL, "seed", sampling->seed);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static enum xm_status
chat(struct chat *c, const struct xm_sampling *sampling, struct xm_error *err)
{
    struct xm_line_input *in = NULL;
    char warning[XM_CLI_WARNING];
    const char *system = c->args->system;
    XM_TRY(xm_session_create(c->model->compiled, c->model->package, &c->session, err));
    xm_session_set_sampling(c->session, sampling);
    if (xm_cli_beyond_training(c->args->generation.context,
                               c->model->package->facts.context, warning))
        xm_log(XM_LOG_WARNING, "%s", warning);
    if (system)
        XM_TRY(
            xm_conversation_add(&c->conversation, "system", system, strlen(system), err));
    XM_TRY(xm_line_input_create(c->interactive, &in, err));
    enum xm_status s = converse(c, in, err);
    xm_line_input_free(in);
    if (s == XM_OK && c->args->generation.target.json)
        s = print_json(c, sampling, err);
    return s;
}

static int
exit_code(const struct chat *c)
{
    int code = xm_cli_flush();
    if (code == XM_EXIT_OK && c->stopped) {
        xm_cli_say_interrupted();
        return XM_EXIT_CANCELLED;
    }
    return code == XM_EXIT_OK && c->refused && !c->interactive ? XM_EXIT_FAILED : code;
}

static int
run_model(struct xm_cli_model *m, const struct args *a,
          const struct xm_sampling *sampling)
{
    struct xm_error err = {0};
    struct chat c = {.args = a, .model = m};
    c.interactive = xm_terminal_is(STDIN_FILENO) && xm_terminal_is(STDERR_FILENO);
    enum xm_status s = chat(&c, sampling, &err);
    xm_session_destroy(c.session);
    xm_conversation_free(&c.conversation);
    return s == XM_OK ? exit_code(&c) : xm_cli_failed(&err);
}

int
xm_cli_chat(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe chat MODEL [-s TEXT] [-n N] [options]",
        .about = "A conversation: each line of standard input is a message (a backslash "
                 "at its\n"
                 "end goes on in the next one), the answer is written as it comes. /help "
                 "lists\n"
                 "commands, /exit or the end of input ends; Ctrl-C stops an answer. What "
                 "no longer\n"
                 "fits into the context is left out, oldest first. With --json the "
                 "conversation is\n"
                 "printed at the end.\n",
        .common = xm_cli_generation_options,
        .n_common = XM_CLI_N_GENERATION_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
    };
    struct args a = {.generation = {.top_p = 1.0f}, .tokens = 512};
    struct xm_compile_options compile = {.sampled_logits = true};
    struct xm_sampling sampling;
    struct xm_cli_model m;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = xm_cli_sampling(&a.generation, &sampling);
    a.generation.target.warm_up = XM_CLI_WARM_UP_PROMPT;
    a.generation.target.needs_tokenizer = "chat needs it, put the file there";
    a.generation.target.needs_chat_template = true;
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.generation.target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    code = run_model(&m, &a, &sampling);
    xm_cli_model_close(&m);
    return code;
}
