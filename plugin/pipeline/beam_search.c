/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of all beams are a tree: a beam is its last token, each knows the one before.
 */
#include "plugin/pipeline/beam_search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/pipeline/branches.h"
#include "plugin/pipeline/text_stream.h"
#include "plugin/text/sampler.h"
#include "runtime/dry_run.h"

enum { TRIED = 2 }; /* ways to go on that a group looks at, for each of its beams */

#define NO_TOKEN SIZE_MAX

struct token {
    size_t before; /* NO_TOKEN: the prompt */
    int32_t id;
    float log_prob; /* in the row, whatever was taken from it */
};

struct beam {
    size_t last; /* token  */
    size_t branch;
    double score; /* a sum */
    /* owned, with stop strings: where its text is in them */
    struct xm_text_stream *stream;
};

struct candidate {
    size_t beam; /* of the group */
    int32_t id;
    float log_prob;
    double score;
};

struct finished {
    size_t last, length;
    double score; /* with the length penalty */
    enum xm_finish finish;
    bool has_end; /* the last token is none of the ids */
};

struct group {
    struct beam *beams; /* [width] */
    size_t n_beams;
    struct finished *texts; /* [width] */
    size_t n_texts;
    bool is_over;
};

struct search {
    const struct xm_package *package; /* may be NULL */
    const struct xm_generation *asked;
    const struct xm_beam_wish *wish;
    struct xm_branches *branches;
    size_t width;  /* beams of a group  */
    uint64_t most; /* new tokens        */
    size_t length; /* new tokens so far */
    struct token *tokens;
    size_t n_tokens, room;
    struct group *groups;        /* [wish->groups]                                */
    struct beam *memory;         /* of the groups' beams                          */
    struct finished *texts;      /* of the groups' texts                          */
    struct candidate *tried;     /* [TRIED * width] of the group that chooses     */
    struct xm_branch_step *next; /* [wish->beams] how branches go on              */
    size_t n_next;
    float *row;                 /* [vocabulary] log-probabilities of a beam       */
    struct xm_token_list text;  /* of a beam                                      */
    struct xm_token_list taken; /* by the groups before, in this step             */
};

/* ---- texts of beams ---------------------------------------------------------------------- */

/* Appends the ids that end with a token, `length` of them. */
static bool
add_ids(const struct search *s, size_t last, size_t length, struct xm_token_list *out)
{
    const size_t first = out->n;
    for (size_t i = 0; i < length; i++)
        if (!xm_token_list_add(out, 0))
            return false;
    for (size_t i = length; i-- > 0; last = s->tokens[last].before)
        out->ids[first + i] = s->tokens[last].id;
    return true;
}

/* `end` comes behind the ids; -1: nothing does. */
static enum xm_status
add_text(const struct search *s, const struct xm_token_list *ids, int32_t end,
         struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_text_stream stream = {0};
    const size_t n = ids->n + (end >= 0);
    enum xm_status status =
        xm_text_stream_begin(&stream, s->package->tokenizer, s->asked, err);
    for (size_t i = 0; i < n && status == XM_OK; i++) {
        status = xm_text_stream_push(&stream, i < ids->n ? ids->ids[i] : end, err);
        xm_strbuf_add_n(out, xm_strbuf_text(&stream.text), stream.text.n);
    }
    if (status == XM_OK)
        status = xm_text_stream_finish(&stream, err);
    xm_strbuf_add_n(out, xm_strbuf_text(&stream.text), stream.text.n);
    xm_text_stream_free(&stream);
    return status == XM_OK && !xm_strbuf_ok(out) ? xm_no_memory(err, "a beam search")
                                                 : status;
}

static bool
has_text(const struct search *s)
{
    return s->package && s->package->tokenizer;
}

static void
free_stream(struct xm_text_stream *stream)
{
    if (stream)
        xm_text_stream_free(stream);
    xm_free(stream);
}

static void
free_streams(struct group *g)
{
    for (size_t i = 0; i < g->n_beams; i++) {
        free_stream(g->beams[i].stream);
        g->beams[i].stream = NULL;
    }
}

/* The stream of the prompt, whose text no stop string ends. NULL: nobody asks for stop strings. */
static enum xm_status
begin_stream(const struct search *s, struct xm_text_stream **out, struct xm_error *err)
{
    *out = NULL;
    if (s->asked->n_stops == 0 || !has_text(s))
        return XM_OK;
    struct xm_text_stream *stream = xm_calloc(1, sizeof(*stream));
    if (!stream)
        return xm_no_memory(err, "a beam search");
    *out = stream;
    return xm_text_stream_begin(stream, s->package->tokenizer, s->asked, err);
}

/* The stream behind one more token, in *out; its `stopped`: a stop string is complete. */
static enum xm_status
continue_stream(const struct xm_text_stream *from, int32_t id,
                struct xm_text_stream **out, struct xm_error *err)
{
    *out = NULL;
    if (!from)
        return XM_OK;
    struct xm_text_stream *stream = xm_calloc(1, sizeof(*stream));
    if (!stream)
        return xm_no_memory(err, "a beam search");
    *out = stream;
    XM_TRY(xm_text_stream_copy(from, stream, err));
    return xm_text_stream_push(stream, id, err);
}

/* ---- which tokens may come --------------------------------------------------------------- */

static enum xm_status
bar_ngrams(struct search *s, const struct beam *b, uint64_t vocabulary,
           struct xm_error *err)
{
    const struct xm_prompt *prompt = &s->asked->prompt;
    if (s->wish->no_repeat_ngram == 0)
        return XM_OK;
    xm_token_list_clear(&s->text);
    if (!xm_token_list_add_n(&s->text, prompt->ids, prompt->n) ||
        !add_ids(s, b->last, s->length, &s->text))
        return xm_no_memory(err, "a beam search");
    xm_bar_ngrams(s->text.ids, s->text.n, s->wish->no_repeat_ngram, s->row,
                  (size_t)vocabulary);
    return XM_OK;
}

/* The row of a beam, with what is barred and what the groups before have taken. */
static enum xm_status
weigh(struct search *s, const struct beam *b, const float *logits, double sum,
      uint64_t vocabulary, struct xm_error *err)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    for (uint64_t i = 0; i < vocabulary; i++)
        s->row[i] = (float)((double)logits[i] - sum);
    for (size_t i = 0; i < s->taken.n; i++)
        s->row[s->taken.ids[i]] -= s->wish->diversity;
    xm_generation_barred(s->package, s->asked, s->length, barred);
    for (size_t i = 0; i < XM_BARRED_LISTS; i++)
        xm_bar_tokens(barred[i].ids, barred[i].n, s->row, (size_t)vocabulary);
    return bar_ngrams(s, b, vocabulary, err);
}

/* Into the list, which is in order, best first; of equal ones the first stays in front. */
static void
try_candidate(struct search *s, size_t *n, const struct candidate *c)
{
    const size_t most = TRIED * s->width;
    size_t at = *n;
    if (at == most && !(c->score > s->tried[most - 1].score))
        return;
    at -= at == most;
    *n = at + 1;
    for (; at > 0 && c->score > s->tried[at - 1].score; at--)
        s->tried[at] = s->tried[at - 1];
    s->tried[at] = *c;
}

/* Of a dry run, which computes no logits: all beams go on, with the first ids. */
static size_t
make_candidates(const struct search *s, const struct group *g)
{
    uint64_t vocabulary;
    size_t n = 0;
    s->branches->ops->logits(s->branches, g->beams[0].branch, &vocabulary);
    for (; n < TRIED * s->width && n < vocabulary; n++)
        s->tried[n] = (struct candidate){.beam = n % g->n_beams, .id = (int32_t)n};
    return n;
}

static enum xm_status
find_candidates(struct search *s, const struct group *g, size_t *n, struct xm_error *err)
{
    uint64_t vocabulary;
    *n = xm_dry_run() ? make_candidates(s, g) : 0;
    for (size_t i = 0; i < g->n_beams && !xm_dry_run(); i++) {
        const struct beam *b = &g->beams[i];
        const float *logits =
            s->branches->ops->logits(s->branches, b->branch, &vocabulary);
        const double sum = xm_log_sum_exp(logits, vocabulary);
        XM_TRY(weigh(s, b, logits, sum, vocabulary, err));
        for (uint64_t id = 0; id < vocabulary; id++) {
            const struct candidate c = {i, (int32_t)id, (float)((double)logits[id] - sum),
                                        b->score + (double)s->row[id]};
            if (c.score > -INFINITY)
                try_candidate(s, n, &c);
        }
    }
    return XM_OK;
}

/* ---- finished texts ---------------------------------------------------------------------- */

static double
score_of(const struct search *s, double sum, size_t length)
{
    return sum / pow((double)length, (double)s->wish->length_penalty);
}

static struct finished *
worst_of(const struct group *g)
{
    struct finished *worst = g->texts;
    for (size_t i = 1; i < g->n_texts; i++)
        if (g->texts[i].score < worst->score)
            worst = &g->texts[i];
    return worst;
}

static void
finish(const struct search *s, struct group *g, const struct finished *text)
{
    struct finished *at = &g->texts[g->n_texts];
    if (g->n_texts == s->width) {
        at = worst_of(g);
        if (!(text->score > at->score))
            return;
    } else {
        g->n_texts++;
    }
    *at = *text;
}

/* Beams that are as long as they may be. */
static void
finish_beams(const struct search *s, struct group *g)
{
    for (size_t i = 0; i < g->n_beams; i++) {
        const struct beam *b = &g->beams[i];
        const struct finished text = {.last = b->last,
                                      .length = s->length,
                                      .score = score_of(s, b->score, s->length),
                                      .finish = s->most < s->asked->max_tokens
                                                    ? XM_FINISH_CONTEXT
                                                    : XM_FINISH_LENGTH};
        finish(s, g, &text);
    }
    g->is_over = true;
}

/* `best`: the sum of the best beam that the step began with. GenAI asks whether that one, as it
 * was, would be among the finished texts; so a group goes on for a step behind its last text. */
static bool
is_over(const struct search *s, const struct group *g, double best)
{
    const bool grows = s->wish->stop == XM_BEAM_NEVER && s->wish->length_penalty > 0.0f;
    const size_t length = grows ? (size_t)s->most : s->length - 1;
    if (g->n_beams == 0)
        return true;
    if (g->n_texts < s->width || s->wish->stop == XM_BEAM_EARLY)
        return g->n_texts == s->width;
    return length > 0 && worst_of(g)->score >= score_of(s, best, length);
}

/* ---- a step -------------------------------------------------------------------------------- */

static enum xm_status
add_token(struct search *s, const struct candidate *c, size_t before, size_t *out,
          struct xm_error *err)
{
    struct token *grown = xm_grow(s->tokens, &s->room, s->n_tokens + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "a beam search");
    s->tokens = grown;
    *out = s->n_tokens++;
    grown[*out] = (struct token){before, c->id, c->log_prob};
    return XM_OK;
}

static bool
is_end(const struct search *s, int32_t id)
{
    return xm_generation_is_end(s->package, s->asked, id);
}

/* The candidate of this rank: a finished text, or a beam at the end of `beams`. */
static enum xm_status
take_candidate(struct search *s, struct group *g, size_t rank, struct beam *beams,
               size_t *n, struct xm_error *err)
{
    const struct candidate *c = &s->tried[rank];
    const struct beam *from = &g->beams[c->beam];
    const bool has_end = is_end(s, c->id);
    struct xm_text_stream *stream = NULL;
    size_t last;
    XM_TRY(add_token(s, c, from->last, &last, err));
    const enum xm_status status =
        has_end ? XM_OK : continue_stream(from->stream, c->id, &stream, err);
    if (status == XM_OK && !has_end && !(stream && stream->stopped)) {
        s->next[s->n_next] = (struct xm_branch_step){from->branch, c->id};
        beams[(*n)++] = (struct beam){last, s->n_next++, c->score, stream};
        return XM_OK;
    }
    free_stream(stream);
    if (status != XM_OK)
        return status;
    const struct finished text = {.last = last,
                                  .length = s->length,
                                  .score = score_of(s, c->score, s->length),
                                  .finish = XM_FINISH_STOP,
                                  .has_end = has_end};
    if (rank < s->width)
        finish(s, g, &text);
    return XM_OK;
}

static enum xm_status
take_taken(struct search *s, size_t first, struct xm_error *err)
{
    for (size_t i = first; i < s->n_next; i++)
        if (!xm_token_list_add(&s->taken, s->next[i].id))
            return xm_no_memory(err, "a beam search");
    return XM_OK;
}

static enum xm_status
step_group(struct search *s, struct group *g, struct beam *beams, struct xm_error *err)
{
    const size_t first = s->n_next;
    const double best = g->beams[0].score; /* candidates are in order */
    size_t n_tried, n = 0;
    XM_TRY(find_candidates(s, g, &n_tried, err));
    s->length++;
    enum xm_status status = XM_OK;
    for (size_t i = 0; i < n_tried && n < s->width && status == XM_OK; i++)
        status = take_candidate(s, g, i, beams, &n, err);
    free_streams(g);
    memcpy(g->beams, beams, n * sizeof(*beams));
    g->n_beams = n;
    g->is_over = is_over(s, g, best);
    if (s->length == s->most && !g->is_over)
        finish_beams(s, g);
    s->length--;
    return status == XM_OK ? take_taken(s, first, err) : status;
}

/* Branches of groups that are over end; those of the others move up. */
static void
compact(struct search *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->wish->groups; i++) {
        struct group *g = &s->groups[i];
        for (size_t k = 0; k < g->n_beams && !g->is_over; k++) {
            s->next[n] = s->next[g->beams[k].branch];
            g->beams[k].branch = n++;
        }
    }
    s->n_next = n;
}

static enum xm_status
step(struct search *s, struct beam *beams, struct xm_error *err)
{
    s->n_next = 0;
    xm_token_list_clear(&s->taken);
    for (size_t i = 0; i < s->wish->groups; i++)
        if (!s->groups[i].is_over)
            XM_TRY(step_group(s, &s->groups[i], beams, err));
    s->length++;
    xm_clock_add_token(s->asked->clock);
    compact(s);
    if (s->n_next == 0)
        return XM_OK;
    const double start = xm_clock_start(s->asked->clock);
    const enum xm_status status =
        s->branches->ops->go_on(s->branches, s->next, s->n_next, err);
    xm_clock_add_run(s->asked->clock, start);
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Of equal ones the order of groups decides. */
static const struct finished *
best_below(const struct search *s, const struct finished *above)
{
    const struct finished *best = NULL;
    for (size_t i = 0; i < s->wish->groups; i++) {
        const struct group *g = &s->groups[i];
        for (size_t k = 0; k < g->n_texts; k++) {
            const struct finished *t = &g->texts[k];
            const bool is_below = !above || t->score < above->score ||
                                  (t->score == above->score && t > above);
            if (is_below && (!best || t->score > best->score))
                best = t;
        }
    }
    return best;
}

static bool
add_log_probs(const struct search *s, const struct finished *t, size_t n,
              struct xm_log_probs *out)
{
    size_t at = t->last;
    out->values = xm_calloc(n ? n : 1, sizeof(*out->values));
    out->n = out->capacity = out->values ? n : 0;
    if (t->has_end)
        at = s->tokens[at].before;
    for (size_t i = out->n; i-- > 0; at = s->tokens[at].before)
        out->values[i] = s->tokens[at].log_prob;
    return out->values != NULL;
}

static enum xm_status
give(const struct search *s, const struct finished *t, struct xm_generation_result *out,
     struct xm_error *err)
{
    const size_t n = t->length - t->has_end;
    const size_t last = t->has_end ? s->tokens[t->last].before : t->last;
    const int32_t end = t->has_end && s->asked->keep_end ? s->tokens[t->last].id : -1;
    out->finish = t->finish;
    if (!add_ids(s, last, n, &out->ids) ||
        (s->asked->wants_log_probs && !add_log_probs(s, t, n, &out->log_probs)))
        return xm_no_memory(err, "a beam search");
    if (!has_text(s))
        return XM_OK;
    XM_TRY(xm_generation_echo(s->package, s->asked, s->asked->prompt.ids,
                              s->asked->prompt.n, &out->text, err));
    return add_text(s, &out->ids, end, &out->text, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static enum xm_status
begin(struct search *s, uint64_t *reused, struct xm_error *err)
{
    const struct xm_prompt *prompt = &s->asked->prompt;
    uint64_t vocabulary = 0;
    const double start = xm_clock_start(s->asked->clock);
    XM_TRY(s->branches->ops->begin(s->branches, prompt->ids, prompt->n, reused, err));
    xm_clock_add_run(s->asked->clock, start);
    s->branches->ops->logits(s->branches, 0, &vocabulary);
    s->row = xm_calloc((size_t)vocabulary, sizeof(*s->row));
    return s->row ? XM_OK : xm_no_memory(err, "a beam search");
}

/* Each group begins with one beam, the prompt. */
static enum xm_status
make_groups(struct search *s, struct xm_error *err)
{
    const size_t beams = s->wish->beams, groups = s->wish->groups;
    s->width = beams / groups;
    s->groups = xm_calloc(groups, sizeof(*s->groups));
    s->memory = xm_calloc(beams + s->width, sizeof(*s->memory));
    s->texts = xm_calloc(beams, sizeof(*s->texts));
    s->tried = xm_calloc(s->width, TRIED * sizeof(*s->tried));
    s->next = xm_calloc(beams, sizeof(*s->next));
    if (!s->groups || !s->memory || !s->texts || !s->tried || !s->next)
        return xm_no_memory(err, "%zu beams", beams);
    for (size_t i = 0; i < groups; i++) {
        struct group *g = &s->groups[i];
        g->beams = s->memory + i * s->width;
        g->texts = s->texts + i * s->width;
        g->beams[0] = (struct beam){.last = NO_TOKEN};
        g->n_beams = 1;
        XM_TRY(begin_stream(s, &g->beams[0].stream, err));
    }
    return XM_OK;
}

static enum xm_status
search_all(struct search *s, struct xm_generation_result *out, size_t *n,
           struct xm_error *err)
{
    const struct finished *text = NULL;
    uint64_t reused;
    XM_TRY(make_groups(s, err));
    XM_TRY(begin(s, &reused, err));
    do
        XM_TRY(step(s, s->memory + s->wish->beams, err));
    while (s->n_next > 0);
    while (*n < s->wish->returned && (text = best_below(s, text))) {
        out[*n].reused = reused;
        XM_TRY(give(s, text, &out[(*n)++], err));
    }
    return *n ? XM_OK
              : xm_fail(err, XM_INVALID, "no token can be chosen: all are barred");
}

static enum xm_status
find_most(struct search *s, struct xm_error *err)
{
    const struct xm_generation *asked = s->asked;
    if (asked->grammar)
        return xm_fail(err, XM_UNSUPPORTED,
                       "beams are not chosen by a grammar: take one beam");
    s->most = xm_generation_most(asked, asked->prompt.n);
    if (asked->prompt.n > 0 && s->most > 0)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "a beam search has a prompt and new tokens: it has %zu and %" PRIu64,
                   asked->prompt.n, s->most);
}

enum xm_status
xm_beam_search(struct xm_compiled *compiled, const struct xm_package *package,
               const struct xm_generation *asked, const struct xm_beam_wish *wish,
               struct xm_generation_result *out, size_t *n, struct xm_error *err)
{
    struct search s = {.package = package, .asked = asked, .wish = wish};
    *n = 0;
    XM_TRY(find_most(&s, err));
    XM_TRY(xm_branches_create(compiled, &s.branches, err));
    const enum xm_status status = search_all(&s, out, n, err);
    xm_branches_destroy(s.branches);
    for (size_t i = 0; s.groups && i < wish->groups; i++)
        free_streams(&s.groups[i]);
    xm_free(s.groups);
    xm_free(s.memory);
    xm_free(s.texts);
    xm_free(s.tried);
    xm_free(s.next);
    xm_free(s.tokens);
    xm_free(s.row);
    xm_token_list_free(&s.text);
    xm_token_list_free(&s.taken);
    return status;
}
