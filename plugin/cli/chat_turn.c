/* SPDX-License-Identifier: Apache-2.0
 *
 * A turn of a chat: the prompt, the answer, and messages about it.
 *
 *     messages ──► the last ones that have room ──► prompt ──► answer ──► a new message
 *
 * Room is the context, or the memory of the KV cache, which is known after it was full once. A turn
 * that fails leaves the conversation as it was before its message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plugin/cli/chat.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/tuner_process.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

/* ---- the prompt of a turn ---- */

static enum xm_status
render(struct xm_chat *c, struct xm_token_list *ids, struct xm_error *err)
{
    char *messages = xm_conversation_messages(&c->conversation, err);
    if (!messages)
        return err->status;
    const struct xm_prompt prompt = {.kind = XM_PROMPT_MESSAGES, .text = messages};
    xm_token_list_clear(ids);
    enum xm_status s = xm_prompt_encode(
        c->model->package, &prompt, xm_compiled_vocabulary(c->model->compiled), ids, err);
    if (s != XM_OK)
        xm_cli_name_template(c->model, &c->args->generation.target, err);
    xm_free(messages);
    return s;
}

uint64_t
xm_chat_context(const struct xm_chat *c)
{
    const uint64_t trained = c->model->package->facts.context;
    const uint64_t given = xm_cli_context(c->args->generation.context, trained);
    return given ? given : trained;
}

/* Returns the smaller bound of prompt and answer together, its name, and the option that sets it;
 * 0: there is no bound. */
static uint64_t
bound(const struct xm_chat *c, const char **name, const char **option)
{
    const uint64_t context = xm_chat_context(c), memory = c->memory_tokens;
    const bool by_memory = memory && (!context || memory < context);
    *name = by_memory ? "KV cache" : "context";
    *option = by_memory ? "--kv-memory" : "-c";
    return by_memory ? memory : context;
}

/* Renders as many of the last turns as leave room for an answer: a quarter of the bound, or the
 * maximum length of an answer if that is less. XM_INVALID: the last turn alone has no room. */
static enum xm_status
fit(struct xm_chat *c, struct xm_token_list *prompt, struct xm_error *err)
{
    const char *name, *option;
    const uint64_t room = bound(c, &name, &option), quarter = room / 4;
    const uint64_t reserve = c->args->tokens < quarter ? c->args->tokens : quarter;
    const size_t first = c->conversation.first;
    XM_TRY(render(c, prompt, err));
    while (room && prompt->n + reserve > room &&
           xm_conversation_leave_out(&c->conversation))
        XM_TRY(render(c, prompt, err));
    if (xm_generation_room(room, prompt->n) == 0) {
        /* the message is refused; the others stay in the prompt */
        c->conversation.first = first;
        return xm_fail(err, XM_INVALID,
                       "the message makes a prompt of %zu tokens, which leaves no room "
                       "in a %s of %" PRIu64 " tokens: it is not sent; give a larger %s",
                       prompt->n, name, room, option);
    }
    const size_t n = c->conversation.first - first;
    if (n)
        xm_say("the conversation no longer fits into the %s of %" PRIu64
               " tokens: its oldest %zu message%s left out from now on; give a larger %s "
               "to keep more",
               name, room, n, n == 1 ? " is" : "s are", option);
    return XM_OK;
}

/* ---- the answer ---- */

/* The destination of pieces. */
struct output {
    struct xm_text_out text; /* first: xm_cli_piece_out writes it */
    double first;            /* time of the first token; 0: none yet */
};

static bool
on_piece(const struct xm_piece *piece, void *ctx)
{
    struct output *o = ctx;
    if (o->first == 0.0)
        o->first = xm_now();
    return xm_cli_piece_out(piece, &o->text);
}

static void
note_times(struct xm_chat *c, const struct xm_generation_result *result, double first_s)
{
    const struct xm_generation_times *t = &result->times;
    c->last = *t;
    c->first_s = first_s;
    c->n_answers++;
    c->all.prompt_s += t->prompt_s;
    c->all.decode_s += t->decode_s;
    c->all.build_s += t->build_s;
    c->all.prompt_tokens += t->prompt_tokens;
    c->all.reused_tokens += t->reused_tokens;
    c->all.decode_tokens += t->decode_tokens;
    c->all.prompt_multiply_adds += t->prompt_multiply_adds;
    c->all.decode_weight_bytes += t->decode_weight_bytes;
}

/* Waits a moment for the reader of a pipe, as in "xemoe chat | tee log". It often writes to the
 * terminal that is also standard error, so that the answer should be there before the next
 * messages. */
static void
await_reader(void)
{
    enum { STEP_MS = 5, MOST_MS = 200 };
    const struct timespec step = {0, STEP_MS * 1000000};
    struct stat st;
    int left = 1;
    if (fstat(STDOUT_FILENO, &st) != 0 || !S_ISFIFO(st.st_mode))
        return;
    for (int ms = 0; ms < MOST_MS && left > 0; ms += STEP_MS) {
        nanosleep(&step, NULL);
        if (ioctl(STDOUT_FILENO, FIONREAD, &left) != 0)
            return;
    }
    nanosleep(&step, NULL); /* the pipe is empty: the reader is writing */
}

static enum xm_status
write_answer(struct xm_chat *c, const struct xm_token_list *prompt,
             struct xm_generation_result *result, struct xm_error *err)
{
    const struct xm_cli_stops stops = xm_cli_stops(&c->args->generation);
    struct output o = {.first = 0.0};
    const double start = xm_now();
    const struct xm_generation run = {
        .prompt = {.kind = XM_PROMPT_IDS, .ids = prompt->ids, .n = prompt->n},
        .max_tokens = c->args->tokens,
        .context = xm_chat_context(c),
        .stops = stops.list,
        .n_stops = stops.n,
        .is_answer = true,
        .grammar = c->args->grammar,
        .on_piece = on_piece,
        .ctx = &o};
    xm_text_out_begin(&o.text, true, !c->args->generation.target.json);
    o.text.show_thoughts = c->args->show_thinking;
    struct xm_infer *request = xm_session_request(c->session);
    xm_cli_catch_interrupt(request);
    xm_cli_show_reading(request, "reading",
                        prompt->n -
                            xm_session_reusable(c->session, prompt->ids, prompt->n));
    xm_cli_show_builds();
    enum xm_status s = xm_session_run(c->session, &run, result, err);
    xm_cli_hide_builds();
    /* always, so that line and styles are ended before an error is printed */
    xm_text_out_finish(&o.text, s == XM_OK);
    xm_prefix_store_say(c->prefixes);
    if (c->interactive)
        await_reader();
    if (o.first > 0.0)
        note_times(c, result, o.first - start);
    return s;
}

/* ---- messages about the answer ---- */

/* Prints why an answer ended, if the model did not end it. */
static void
tell_limit(const struct xm_chat *c, enum xm_finish finish)
{
    if (finish == XM_FINISH_CONTEXT)
        xm_say("the context of %" PRIu64 " tokens is full; give a larger -c for longer "
               "conversations",
               xm_chat_context(c));
    else if (finish == XM_FINISH_LENGTH)
        xm_say("the answer was cut after %" PRIu64 " token%s (-n)", c->args->tokens,
               xm_plural(c->args->tokens));
}

/* Prints the speed of the tokens after the first one, which belongs to the prompt. */
static void
tell_speed(const struct xm_chat *c, const struct xm_generation_result *result)
{
    const double rate = xm_costs_decode_rate(&c->last);
    const bool dim = xm_terminal_has_styles(STDERR_FILENO);
    if (!c->interactive || !result->ids.n)
        return;
    fprintf(stderr, "%s(%zu token%s", dim ? XM_STYLE_DIM : "", result->ids.n,
            xm_plural(result->ids.n));
    if (rate > 0.0)
        fprintf(stderr, ", %.1f tokens/s", rate);
    fprintf(stderr, ", first token after %.2f s)%s\n", c->first_s,
            dim ? XM_STYLE_NOT_DIM : "");
}

/* Appends the answer to the conversation, even an empty one, because templates expect turns to
 * alternate. */
static enum xm_status
note_answer(struct xm_chat *c, const struct xm_generation_result *r, struct xm_error *err)
{
    if (xm_cli_interrupted() && !r->text.n) {
        xm_conversation_pop(&c->conversation);
        if (c->interactive)
            fputs("(stopped before the answer began: the message is removed)\n", stderr);
        return XM_OK;
    }
    return xm_conversation_add(&c->conversation, "assistant", xm_strbuf_text(&r->text),
                               r->text.n, err);
}

/* ---- a turn ---- */

/* Handles missing memory for a prompt: a shorter one may fit, so older turns will be left out.
 * Returns whether there are older turns. */
static bool
makes_room(struct xm_chat *c, size_t prompt, const struct xm_error *why)
{
    const size_t first = c->conversation.first;
    if (why->status != XM_NO_MEMORY || prompt < 2 ||
        !xm_conversation_leave_out(&c->conversation))
        return false;
    c->conversation.first = first; /* fit prints how many are left out */
    c->memory_tokens = prompt - 1;
    return true;
}

/* Ends an answer that has begun where memory ends, as if the context were full. */
static bool
ends_here(struct xm_chat *c, const struct xm_generation_result *r,
          const struct xm_error *why)
{
    if (why->status != XM_NO_MEMORY || !r->text.n)
        return false;
    c->memory_tokens = r->prompt.n + r->ids.n;
    xm_say("%s: the answer ends here", why->text);
    return true;
}

static enum xm_status
answer(struct xm_chat *c, struct xm_generation_result *result, struct xm_error *err)
{
    struct xm_token_list prompt = {0};
    struct xm_error why = {0};
    enum xm_status s = fit(c, &prompt, &why);
    if (s == XM_OK)
        s = write_answer(c, &prompt, result, &why);
    while (s == XM_NO_MEMORY && !result->text.n && makes_room(c, prompt.n, &why)) {
        why = (struct xm_error){0};
        s = fit(c, &prompt, &why);
        if (s == XM_OK)
            s = write_answer(c, &prompt, result, &why);
    }
    xm_token_list_free(&prompt);
    const bool cut = s != XM_OK && ends_here(c, result, &why);
    if (s != XM_OK && !cut)
        return xm_fail(err, s, "%s", why.text);
    if (!cut)
        tell_limit(c, result->finish);
    tell_speed(c, result);
    return note_answer(c, result, err);
}

/* Ctrl-C stops the answer, and, if nobody types, the conversation. */
void
xm_chat_take_turn(struct xm_chat *c)
{
    struct xm_generation_result result = {0};
    struct xm_error err = {0};
    enum xm_status s = answer(c, &result, &err);
    if (s == XM_OK && !xm_cli_interrupted())
        (void)xm_cli_tuner_run(c->model->tuner, false,
                               c->interactive ? STDIN_FILENO : -1);
    if (c->interactive)
        xm_cli_note_interrupt();
    else
        xm_cli_release_interrupt();
    if (s != XM_OK) {
        xm_cli_failed(&err);
        xm_say("the message is removed");
        xm_conversation_fail(&c->conversation, &result.text,
                             err.text[0] ? err.text : xm_status_text(s));
        c->failed = true;
        c->lost = s == XM_LOST;
    }
    c->stopped = xm_cli_interrupted() && !c->interactive;
    if (c->interactive)
        xm_cli_forget_interrupt();
    xm_generation_result_free(&result);
}

void
xm_chat_find_costs(const struct xm_chat *c, struct xm_costs *costs)
{
    costs->times = c->all;
    xm_costs_find(c->model, xm_session_request(c->session), costs);
}
