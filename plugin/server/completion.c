/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/completion.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/number.h"

/* ---- begin and end --------------------------------------------------------------------------- */

static void
free_text(struct xm_completion_text *t)
{
    xm_strbuf_free(&t->text);
    xm_strbuf_free(&t->thought);
    xm_token_list_free(&t->told);
    xm_generation_result_free(&t->result);
}

static void
free_completion(void *work)
{
    struct xm_completion *c = work;
    for (size_t i = 0; c->texts && i < c->n_texts; i++)
        free_text(&c->texts[i]);
    for (size_t i = 0; i < c->n_prompts; i++)
        xm_token_list_free(&c->prompts[i]);
    xm_free(c->texts);
    xm_free(c->prompts);
    xm_wish_free(&c->wish);
    yyjson_doc_free(c->body);
    xm_free(c);
}

/* Called with the exchange's lock. */
static void
cancel_texts(void *work)
{
    struct xm_completion *c = work;
    for (size_t i = 0; c->texts && i < c->n_texts; i++)
        if (c->texts[i].job && !c->texts[i].is_over)
            xm_served_cancel(c->model, c->texts[i].job);
}

/* Makes an unpredictable id, because a client that could guess the id of another client's answer
 * could take that answer for its own. */
static void
make_id(struct xm_completion *c)
{
    unsigned char bytes[12] = {0};
    const uint64_t number = __atomic_add_fetch(&c->x->server->n_ids, 1, __ATOMIC_RELAXED);
    size_t n = (size_t)snprintf(c->id, sizeof(c->id), "%s", c->dialect->prefix);
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        memcpy(bytes, &number, sizeof(number));
    for (size_t i = 0; i < sizeof(bytes); i++)
        n += (size_t)snprintf(c->id + n, sizeof(c->id) - n, "%02x", bytes[i]);
}

static struct xm_completion *
create(struct xm_exchange *x, struct xm_served *m, const struct xm_dialect *dialect,
       struct xm_refusal *r)
{
    struct xm_completion *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        xm_refuse(r, 503, NULL, NULL, "out of memory for the request");
        return NULL;
    }
    c->x = x;
    c->model = m;
    c->dialect = dialect;
    c->created = (int64_t)time(NULL);
    c->start = xm_now();
    make_id(c);
    xm_wish_init(&c->wish, m);
    xm_exchange_lock(x);
    x->work = c;
    x->cancel = cancel_texts;
    x->free_work = free_completion;
    xm_exchange_unlock(x);
    return c;
}

static struct xm_completion *
open_completion(struct xm_exchange *x, const struct xm_dialect *dialect,
                struct xm_refusal *r)
{
    yyjson_doc *body;
    if (!xm_body_read(x, &body, r))
        return NULL;
    struct xm_served *m = xm_body_model(x, yyjson_doc_get_root(body), r);
    struct xm_completion *c = m ? create(x, m, dialect, r) : NULL;
    if (c)
        c->body = body;
    else
        yyjson_doc_free(body);
    return c;
}

static bool
check_template(struct xm_completion *c, struct xm_refusal *r)
{
    c->is_chat = c->dialect->is_chat;
    return !c->is_chat || xm_served_takes_messages(c->model, r);
}

/* ---- prompts -------------------------------------------------------------------------------- */

static bool
check_prompt(const struct xm_completion *c, size_t n, const char *where,
             struct xm_refusal *r)
{
    const uint64_t context = c->model->options.context;
    if (n == 0)
        return xm_refuse(r, 400, where, "invalid_value", "the prompt is empty");
    return xm_generation_room(context, n) > 0 ||
           xm_refuse(r, 400, where, "context_length_exceeded",
                     "the prompt has %zu token%s, which leaves no room in a context of "
                     "%" PRIu64,
                     n, xm_plural(n), context);
}

/* Refuses to continue a begun text if the model's answer begins with a thought or a header. */
static bool
check_begun(const struct xm_completion *c, const struct xm_token_list *ids,
            const char *where, struct xm_refusal *r)
{
    const struct xm_package *p = c->model->package;
    struct xm_answer a;
    struct xm_error why = {0};
    xm_answer_init(&a, p->tokenizer, p->chat_template);
    const enum xm_status s = xm_answer_begin(&a, ids->ids, ids->n, &why);
    const bool is_text = xm_answer_is_in_text(&a);
    xm_answer_free(&a);
    if (s != XM_OK)
        return xm_refuse_for(r, &why);
    return is_text ||
           xm_refuse(r, 400, where, "unsupported_parameter",
                     "the last message comes from the assistant and cannot be continued, "
                     "because this model's answers begin with reasoning or a header");
}

bool
xm_completion_add(struct xm_completion *c, const struct xm_prompt *prompt,
                  const char *where, struct xm_refusal *r)
{
    struct xm_error why = {0};
    struct xm_token_list *grown =
        xm_realloc(c->prompts, (c->n_prompts + 1) * sizeof(*grown));
    if (!grown)
        return xm_refuse(r, 503, NULL, NULL, "out of memory for the prompts");
    c->prompts = grown;
    c->where = where;
    struct xm_token_list *ids = &grown[c->n_prompts++];
    *ids = (struct xm_token_list){NULL, 0, 0};
    if (xm_prompt_encode(c->model->package, prompt, c->model->vocabulary, ids, &why) ==
        XM_OK)
        return check_prompt(c, ids->n, where, r) &&
               (prompt->n_begun == 0 || check_begun(c, ids, where, r));
    return xm_refuse_at(r, where, "invalid_prompt", &why);
}

/* ---- the answer ----------------------------------------------------------------------------- */

void
xm_completion_event(struct xm_completion *c, const char *event, struct xm_json_out *j)
{
    struct xm_strbuf out = {0};
    if (event)
        xm_strbuf_printf(&out, "event: %s\n", event);
    xm_strbuf_add(&out, "data: ");
    const bool is_whole = xm_json_write(j, &out);
    xm_strbuf_add(&out, "\n\n");
    xm_json_end(j);
    if (!is_whole || !xm_strbuf_ok(&out))
        xm_refuse(&c->failure, 503, NULL, NULL, "out of memory for the answer");
    else
        xm_exchange_add(c->x, out.text, out.n);
    xm_strbuf_free(&out);
}

struct xm_usage
xm_completion_usage(const struct xm_completion *c)
{
    struct xm_usage u = {0, 0, 0};
    const size_t each = c->n_prompts ? c->n_texts / c->n_prompts : 0;
    for (size_t i = 0; i < c->n_texts; i++) {
        const struct xm_completion_text *t = &c->texts[i];
        u.made += t->result.ids.n -
                  (t->n_forced < t->result.ids.n ? t->n_forced : t->result.ids.n);
        if (each && i % each == 0) { /* texts of one prompt count it once */
            u.prompt += t->prompt->n;
            u.reused += t->result.reused;
        }
    }
    return u;
}

void
xm_completion_call_id(const struct xm_completion_text *t, size_t call,
                      struct xm_strbuf *out)
{
    const char *number = t->of->id + strlen(t->of->dialect->prefix);
    xm_strbuf_printf(out, "call_%s_%zu_%zu", number, t->index, call);
}

bool
xm_completion_token(const struct xm_completion *c, int32_t id, struct xm_strbuf *out)
{
    const struct xm_package *p = c->model->package;
    return !p || !p->tokenizer ||
           (xm_tokenizer_decode(p->tokenizer, &id, 1, false, out, NULL) == XM_OK &&
            xm_strbuf_ok(out));
}

static void
begin_stream(struct xm_completion *c)
{
    if (c->has_begun || !c->wish.stream || c->failure.status)
        return;
    c->has_begun = true;
    xm_exchange_begin_stream(c->x, XM_TYPE_EVENTS);
    if (c->dialect->begin)
        c->dialect->begin(c);
}

static void
answer_whole(struct xm_completion *c)
{
    struct xm_json_out j;
    struct xm_strbuf text = {0};
    xm_json_begin(&j);
    c->dialect->whole(c, &j);
    if (xm_json_write(&j, &text))
        xm_exchange_answer(c->x, 200, XM_TYPE_JSON, text.text, text.n);
    else
        xm_refuse(&c->failure, 503, NULL, NULL, "out of memory for the answer");
    xm_json_end(&j);
    xm_strbuf_free(&text);
}

/* Answers a failure: in the stream if it has begun, else with an HTTP status. */
static void
answer_failure(struct xm_completion *c)
{
    struct xm_strbuf text = {0};
    if (c->has_begun) {
        c->dialect->fail(c, &c->failure);
        xm_exchange_end(c->x);
        return;
    }
    xm_refusal_print(&c->failure, c->x->route->form, &text);
    xm_exchange_answer(c->x, c->failure.status, XM_TYPE_JSON, xm_strbuf_text(&text),
                       text.n);
    xm_strbuf_free(&text);
}

static void
finish_answer(struct xm_completion *c)
{
    if (!c->failure.status && c->wish.stream) {
        begin_stream(c);
        c->dialect->finish(c);
        if (!c->failure.status)
            xm_exchange_end(c->x);
    } else if (!c->failure.status) {
        answer_whole(c);
    }
    if (c->failure.status)
        answer_failure(c);
}

/* ---- a text; called by the thread that runs the steps -------------------------------------- */

static void
note_token(struct xm_completion_text *t)
{
    const double now = xm_now();
    const bool is_first = t->last_token == 0.0;
    xm_metrics_add_token(&t->of->model->metrics, is_first,
                         now - (is_first ? t->of->start : t->last_token));
    t->last_token = now;
}

/* Notes which tokens' probabilities are part of the answer: not those of thoughts and marks. The
 * probabilities of a character's first tokens are sent with its last token. */
static void
note_told(struct xm_completion_text *t, const struct xm_piece *piece)
{
    const struct xm_completion *c = t->of;
    const size_t n = piece->so_far->ids.n;
    if (!c->wish.wants_log_probs || piece->part == XM_ANSWER_NOTHING)
        return;
    for (size_t i = t->n_told; piece->part == XM_ANSWER_TEXT && i < n; i++)
        if (!xm_token_list_add(&t->told, (int32_t)i))
            xm_refuse(&t->of->failure, 503, NULL, NULL, "out of memory for the text");
    t->n_told = n;
}

static void
take_piece(struct xm_completion_text *t, const struct xm_piece *piece)
{
    struct xm_completion *c = t->of;
    struct xm_strbuf *to = piece->part == XM_ANSWER_THOUGHT ? &t->thought : &t->text;
    const struct xm_text_part part = {piece->part, piece->text, piece->n, piece->so_far,
                                      piece->call};
    begin_stream(c);
    note_told(t, piece);
    if (piece->part == XM_ANSWER_NOTHING || piece->n == 0)
        return;
    if (c->echo && piece->so_far->ids.n == t->n_forced)
        t->echoed += piece->n;
    if (piece->part != XM_ANSWER_CALL)
        xm_strbuf_add_n(to, piece->text, piece->n);
    if (!xm_strbuf_ok(to))
        xm_refuse(&c->failure, 503, NULL, NULL, "out of memory for the text");
    else if (c->wish.stream && !c->failure.status)
        c->dialect->part(t, &part);
}

static bool
on_piece(const struct xm_piece *piece, void *ctx)
{
    struct xm_completion_text *t = ctx;
    struct xm_completion *c = t->of;
    if (piece->id >= 0 && piece->so_far->ids.n > t->n_forced)
        note_token(t);
    xm_exchange_lock(c->x);
    take_piece(t, piece);
    const bool goes_on = !c->x->is_gone && !c->failure.status;
    xm_exchange_unlock(c->x);
    return goes_on;
}

/* Returns OpenAI's reason for the end. A text that was stopped because the cache is full has
 * "length", as if the context were full. */
static const char *
finish_of(const struct xm_generation_result *r)
{
    const bool is_full =
        r->finish == XM_FINISH_FAILED && r->error.status == XM_NO_MEMORY && r->ids.n > 0;
    return r->finish == XM_FINISH_STOP ? (r->calls.n ? "tool_calls" : "stop")
           : r->finish == XM_FINISH_LENGTH || r->finish == XM_FINISH_CONTEXT || is_full
               ? "length"
               : NULL;
}

static void
note_end(struct xm_completion_text *t)
{
    const struct xm_generation_result *r = &t->result;
    const struct xm_metrics_text text = {.prompt = t->prompt->n,
                                         .reused = r->reused,
                                         .end = t->finish ? XM_ENDED_WHOLE
                                                : r->finish == XM_FINISH_FAILED
                                                    ? XM_ENDED_FAILED
                                                    : XM_ENDED_CANCELLED};
    xm_metrics_add_text(&t->of->model->metrics, &text);
}

static void
note_failure(struct xm_completion_text *t)
{
    struct xm_completion *c = t->of;
    if (t->result.no_room && t->result.ids.n == 0)
        xm_refuse(&c->failure, 400, c->where, "context_length_exceeded",
                  "the prompt has %zu token%s and does not fit into the KV cache",
                  t->prompt->n, xm_plural(t->prompt->n));
    else if (t->result.finish == XM_FINISH_FAILED)
        xm_refuse_for(&c->failure, &t->result.error);
    else
        xm_refuse(&c->failure, 503, NULL, NULL, "the server is stopping");
    cancel_texts(c);
}

static void
end_text(struct xm_completion_text *t)
{
    struct xm_completion *c = t->of;
    t->is_over = true;
    t->finish = finish_of(&t->result);
    note_end(t);
    if (!t->finish) {
        note_failure(t);
    } else if (c->wish.stream && !c->failure.status) {
        begin_stream(c);
        c->dialect->end(t);
    }
    if (--c->n_left == 0)
        finish_answer(c);
}

static void
on_end(struct xm_generation_result *result, void *ctx)
{
    struct xm_completion_text *t = ctx;
    struct xm_exchange *x = t->of->x;
    xm_exchange_lock(x);
    t->result = *result;
    *result = (struct xm_generation_result){0};
    end_text(t);
    xm_exchange_unlock(x);
    xm_exchange_unref(x); /* may free the text */
}

/* ---- the jobs ------------------------------------------------------------------------------- */

static uint64_t
plus(uint64_t a, size_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static struct xm_job
job_of(struct xm_completion_text *t)
{
    const struct xm_completion *c = t->of;
    const struct xm_wish *w = &c->wish;
    struct xm_job job = {.prompt = t->prompt->ids,
                         .n_prompt = t->prompt->n - t->n_forced,
                         .sampling = w->sampling,
                         .asked = {.max_tokens = plus(w->max_tokens, t->n_forced),
                                   .min_tokens = plus(w->min_tokens, t->n_forced),
                                   .forced = t->prompt->ids + 1,
                                   .n_forced = t->n_forced,
                                   .context = c->model->options.context,
                                   .stops = w->stops,
                                   .n_stops = w->n_stops,
                                   .ignore_ends = w->ignores_ends,
                                   .is_answer = c->is_chat,
                                   .echo = c->echo,
                                   .grammar = w->grammar,
                                   .grammar_has_marks = w->grammar_has_marks,
                                   .tools = &w->tools.may_call,
                                   .wants_log_probs = w->wants_log_probs,
                                   .n_likeliest = w->wants_log_probs ? w->likeliest : 0,
                                   .on_piece = on_piece,
                                   .ctx = t},
                         .on_end = on_end,
                         .ctx = t};
    job.sampling.seed += t->index;
    return job;
}

/* Makes the texts. The caller holds the lock. */
static bool
make_texts(struct xm_completion *c, struct xm_refusal *r)
{
    const uint64_t n = c->n_prompts * c->wish.n;
    if (n > XM_MOST_TEXTS)
        return xm_refuse(r, 400, "n", "out_of_range",
                         "the request asks for %" PRIu64
                         " texts, at most %d are supported",
                         n, XM_MOST_TEXTS);
    const struct xm_served_options *o = &c->model->options;
    if (o->most_waiting && n > o->slots + o->most_waiting)
        return xm_refuse(r, 400, "n", "out_of_range",
                         "the request asks for %" PRIu64
                         " texts, but at most %zu can run and wait on this server",
                         n, o->slots + o->most_waiting);
    c->texts = xm_calloc((size_t)n, sizeof(*c->texts));
    if (!c->texts)
        return xm_refuse(r, 503, NULL, NULL, "out of memory for the texts");
    c->n_texts = c->n_left = (size_t)n;
    for (size_t i = 0; i < c->n_texts; i++) {
        c->texts[i].of = c;
        c->texts[i].index = i;
        c->texts[i].prompt = &c->prompts[i / (size_t)c->wish.n];
        if (c->echo && c->wish.wants_log_probs)
            c->texts[i].n_forced = c->texts[i].prompt->n - 1;
    }
    return true;
}

/* Handles that the texts from `first` on were refused. Earlier texts are cancelled and end first.
 * The caller holds the lock. */
static bool
refuse_rest(struct xm_completion *c, size_t first, const struct xm_error *why,
            struct xm_refusal *r)
{
    xm_metrics_add_refused(&c->model->metrics);
    if (first == 0)
        return xm_refuse_for(r, why);
    xm_refuse_for(&c->failure, why);
    cancel_texts(c);
    for (size_t i = first; i < c->n_texts; i++)
        c->texts[i].is_over = true;
    c->n_left -= c->n_texts - first;
    if (c->n_left == 0)
        finish_answer(c);
    return true;
}

static bool
submit_texts(struct xm_completion *c, struct xm_refusal *r)
{
    for (size_t i = 0; i < c->n_texts; i++) {
        struct xm_error why = {0};
        struct xm_job job = job_of(&c->texts[i]);
        if (i == 0) {
            job.most_waiting = c->model->options.most_waiting;
            job.n_more = c->n_texts - 1;
        }
        xm_exchange_ref(c->x);
        if (xm_served_submit(c->model, &job, &c->texts[i].job, &why) == XM_OK)
            continue;
        xm_refs_drop(&c->x->refs); /* not the last reference: the caller has one */
        return refuse_rest(c, i, &why, r);
    }
    return true;
}

/* Starts the texts under the lock, so that texts which end meanwhile, and clients which leave, wait
 * until all are submitted. */
static bool
start_texts(struct xm_completion *c, struct xm_refusal *r)
{
    xm_exchange_lock(c->x);
    const bool good = c->x->is_gone ? xm_refuse(r, 503, NULL, NULL, "the client has gone")
                                    : make_texts(c, r) && submit_texts(c, r);
    xm_exchange_unlock(c->x);
    return good;
}

static bool
begin(struct xm_exchange *x, const struct xm_dialect *dialect, struct xm_refusal *r)
{
    struct xm_completion *c = open_completion(x, dialect, r);
    if (!c)
        return false;
    yyjson_val *body = yyjson_doc_get_root(c->body);
    return check_template(c, r) && dialect->read_wish(c, body, r) &&
           dialect->add_prompts(c, body, r) && start_texts(c, r);
}

void
xm_completion_answer(struct xm_exchange *x, const struct xm_dialect *dialect)
{
    struct xm_refusal r = {0};
    if (!begin(x, dialect, &r))
        xm_refusal_answer(&r, x);
}
