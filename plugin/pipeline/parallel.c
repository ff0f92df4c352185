/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/parallel_run.h"

#include "runtime/util/clock.h"

enum { PROMPT_PARTS = 4 }; /* of a chunk: one is for prompts, however many texts decode */

/* ---- life ---------------------------------------------------------------------------- */

enum xm_status
xm_parallel_create(struct xm_compiled *compiled, struct xm_package *package,
                   struct xm_parallel **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_parallel *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_no_memory(err, "texts in parallel");
    p->compiled = compiled;
    xm_compiled_ref(compiled);
    p->package = package;
    p->chooser = xm_chooser_create();
    enum xm_status s = p->chooser ? xm_compiled_create_batch(compiled, &p->batch, err)
                                  : xm_no_memory(err, "texts in parallel");
    if (s == XM_OK)
        *out = p;
    else
        xm_parallel_destroy(p);
    return s;
}

void
xm_parallel_destroy(struct xm_parallel *p)
{
    if (!p)
        return;
    xm_compiled_destroy_batch(p->batch);
    xm_chooser_free(p->chooser);
    xm_compiled_unref(p->compiled);
    xm_free(p);
}

struct xm_infer *
xm_parallel_request(struct xm_parallel *p)
{
    return p->batch->control;
}

/* ---- a run -------------------------------------------------------------------------------- */

/* What has been done so far. */
struct done {
    double seconds, built;
    struct xm_request_stats stats;
};

static struct done
done_by(const struct xm_parallel *p)
{
    const struct xm_infer *control = p->batch->control;
    struct xm_compiled_stats stats;
    struct done d = {.seconds = xm_now()};
    p->compiled->ops->stats(p->compiled, &stats);
    d.built = stats.builds.seconds;
    control->ops->stats(control, &d.stats);
    return d;
}

/* What a run is made of. */
struct feed {
    uint32_t n;
    uint64_t tokens;
    bool has_prompts;
};

/* A step ends when its tokens have been chosen and its texts passed on. */
static void
add_times(struct xm_texts_run *r, const struct done *before, const struct feed *f)
{
    struct xm_generation_times *t = r->times;
    const struct done now = done_by(r->p);
    const double built = now.built - before->built;
    const double seconds = now.seconds - before->seconds - built;
    t->build_s += built;
    *(f->has_prompts ? &t->prompt_s : &t->decode_s) += seconds > 0.0 ? seconds : 0.0;
    *(f->has_prompts ? &t->prompt_tokens : &t->decode_tokens) += f->tokens;
    if (f->has_prompts)
        t->prompt_multiply_adds += now.stats.multiply_adds - before->stats.multiply_adds;
    else
        t->decode_weight_bytes += now.stats.weight_bytes - before->stats.weight_bytes;
}

static void
add_row(struct xm_texts_run *r, struct xm_place *p, uint64_t n, struct feed *f)
{
    p->piece = n;
    p->row = f->n;
    r->rows[f->n++] = (struct xm_batch_row){p->sequence, p->ids, n, n == p->n ? 1 : 0};
    f->tokens += n;
    f->has_prompts |= p->is_prompt;
}

/* What the cache has of a prompt that nothing has been fed of. */
static enum xm_status
take_over(struct xm_texts_run *r, struct xm_place *p, struct xm_error *err)
{
    if (xm_place_past(p))
        return XM_OK;
    XM_TRY(p->sequence->ops->match(p->sequence, p->ids, p->n, err));
    const uint64_t past = xm_place_past(p);
    p->ids += past;
    p->n -= past;
    if (p->again.n == 0)
        r->out[p->text].reused = past;
    return XM_OK;
}

static bool
is_to_read(const struct xm_place *p)
{
    return xm_place_has_unread_prompt(p) && p->piece == 0;
}

/* Texts that decode go along in each run; prompts, in the order of their texts, share what is left
 * of a chunk, so that none waits for a long one to be read. */
static enum xm_status
choose_pieces(struct xm_texts_run *r, struct feed *f, struct xm_error *err)
{
    const uint64_t chunk = r->p->batch->chunk;
    const uint64_t least = chunk / PROMPT_PARTS + 1;
    struct xm_place *p;
    *f = (struct feed){0};
    for (size_t i = 0; i < r->asked->places; i++) {
        p = &r->places[i];
        p->piece = 0;
        if (xm_place_runs(p) && !p->is_prompt)
            add_row(r, p, p->n, f);
    }
    uint64_t room = f->tokens + least < chunk ? chunk - f->tokens : least;
    while (room && (p = xm_places_oldest(r, is_to_read))) {
        XM_TRY(take_over(r, p, err));
        add_row(r, p, p->n < room ? p->n : room, f);
        room -= p->piece;
    }
    return XM_OK;
}

static void
advance(struct xm_texts_run *r)
{
    for (size_t i = 0; i < r->asked->places; i++) {
        struct xm_place *p = &r->places[i];
        p->ids += p->piece;
        p->n -= p->piece;
        p->has_logits = p->piece > 0 && p->n == 0;
    }
}

/* ---- a cache that is full ------------------------------------------------------------------ */

/* The text keeps what it has; its sequence begins anew with that. */
static enum xm_status
suspend(struct xm_texts_run *r, struct xm_place *p, struct xm_error *err)
{
    const struct xm_token_list *prompt = xm_texts_prompt(r, p->text);
    const struct xm_token_list *made = &r->out[p->text].ids;
    xm_compiled_destroy_sequence(p->sequence);
    p->sequence = NULL;
    xm_token_list_clear(&p->again);
    if (!xm_token_list_add_n(&p->again, prompt->ids, prompt->n) ||
        !xm_token_list_add_n(&p->again, made->ids, made->n))
        return xm_no_memory(err, "the tokens");
    p->ids = p->again.ids;
    p->n = p->again.n;
    p->is_prompt = true;
    return XM_OK;
}

static struct xm_place *
newest_that_runs(const struct xm_texts_run *r)
{
    struct xm_place *found = NULL;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct xm_place *p = &r->places[i];
        if (xm_place_runs(p) && (!found || p->text > found->text))
            found = p;
    }
    return found;
}

/* The newest text waits for others to end; one that has no room alone has failed. */
static enum xm_status
make_room(struct xm_texts_run *r, const struct xm_error *why, struct xm_error *err)
{
    struct xm_place *p = newest_that_runs(r);
    if (xm_places_count(r, xm_place_runs) > 1)
        return suspend(r, p, err);
    xm_texts_fail(r, p, why);
    return XM_OK;
}

/* Texts that wait go on one by one, as others end. */
static enum xm_status
resume_text(struct xm_texts_run *r, struct xm_error *err)
{
    struct xm_place *p = xm_places_oldest(r, xm_place_waits);
    if (!p || (!r->has_ended && xm_places_count(r, xm_place_runs)))
        return XM_OK;
    r->has_ended = false;
    return xm_compiled_create_sequence(r->p->compiled, &p->sequence, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Runs what texts and prompts have to feed; *f: what that was, nothing where the cache was full. */
static enum xm_status
feed(struct xm_texts_run *r, struct feed *f, struct xm_error *err)
{
    struct xm_error why = {0};
    XM_TRY(choose_pieces(r, f, err));
    const double start = xm_clock_start(r->asked->each.clock);
    const enum xm_status s = r->p->batch->ops->run(r->p->batch, r->rows, f->n, &why);
    xm_clock_add_run(r->asked->each.clock, start);
    if (s == XM_NO_MEMORY) {
        f->tokens = 0;
        return make_room(r, &why, err);
    }
    if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    advance(r);
    if (r->asked->on_run)
        r->asked->on_run(f->has_prompts, r->asked->ctx);
    return XM_OK;
}

static bool
is_over(const struct xm_texts_run *r)
{
    return xm_places_count(r, xm_place_runs) + xm_places_count(r, xm_place_waits) == 0 &&
           r->next == r->asked->n_texts;
}

/* Whether other texts begin as forks of this one: it has read the prompt of all, and made
 * nothing. */
static bool
is_to_be_forked(const struct xm_texts_run *r, const struct xm_place *p)
{
    return r->asked->n_prompts == 1 && p->has_logits && r->out[p->text].ids.n == 0;
}

static enum xm_status
step(struct xm_texts_run *r, struct xm_error *err)
{
    const struct done before = done_by(r->p);
    struct feed f = {0};
    XM_TRY(resume_text(r, err));
    XM_TRY(xm_texts_fill_places(r, err));
    if (xm_places_count(r, xm_place_runs))
        XM_TRY(feed(r, &f, err));
    for (size_t i = 0; i < r->asked->places; i++) {
        if (is_to_be_forked(r, &r->places[i]))
            XM_TRY(xm_texts_fork(r, &r->places[i], err));
    }
    XM_TRY(xm_texts_choose(r, err));
    add_times(r, &before, &f);
    return XM_OK;
}

static enum xm_status
make_texts(struct xm_texts_run *r, struct xm_error *err)
{
    XM_TRY(xm_texts_announce(r, err));
    while (!is_over(r))
        XM_TRY(step(r, err));
    return XM_OK;
}

enum xm_status
xm_parallel_generate(struct xm_parallel *p, const struct xm_parallel_run *asked,
                     struct xm_generation_result *out, struct xm_generation_times *times,
                     struct xm_error *err)
{
    struct xm_texts_run r = {.p = p,
                             .asked = asked,
                             .out = out,
                             .times = times,
                             .has_text = p->package && p->package->tokenizer,
                             .places = xm_calloc(asked->places, sizeof(*r.places)),
                             .rows = xm_calloc(asked->places, sizeof(*r.rows)),
                             .choices = xm_calloc(asked->places, sizeof(*r.choices)),
                             .choosing = xm_calloc(asked->places, sizeof(*r.choosing))};
    struct xm_error why = {0};
    enum xm_status s = XM_NO_MEMORY;
    *times = (struct xm_generation_times){0};
    if (r.places && r.rows && r.choices && r.choosing)
        s = make_texts(&r, &why);
    else
        xm_fail(&why, s, "out of memory for %zu texts in parallel", asked->places);
    if (s == XM_CANCELLED) {
        why = (struct xm_error){0};
        s = xm_texts_cancel(&r, &why);
    }
    for (size_t i = 0; r.places && i < asked->places; i++)
        xm_place_close(&r.places[i]);
    xm_free(r.places);
    xm_free(r.rows);
    xm_free(r.choices);
    xm_free(r.choosing);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}
