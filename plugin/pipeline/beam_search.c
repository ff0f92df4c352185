/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements beam search. Each beam is a text (text.h), and a branch (branches.h) that runs the
 * model for it. A beam with several continuations is forked.
 */
#include "plugin/pipeline/beam_search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/pipeline/branches.h"
#include "plugin/pipeline/text.h"
#include "runtime/dry_run.h"

enum { TRIED = 2 }; /* continuations that a group considers, for each of its beams */

/* A text being generated, with its result. The text points to the result; therefore both keep their
 * address while beams move. */
struct written {
    struct xm_text text;
    struct xm_generation_result result;
};

struct beam {
    struct written *written; /* owned; NULL: it was moved */
    size_t branch;
    double score; /* sum of log-probabilities */
};

struct candidate {
    size_t beam; /* of the group */
    int32_t id;
    double score;
};

struct finished {
    struct written *written; /* owned */
    double score;            /* with length penalty */
};

struct group {
    struct beam *beams; /* [width] */
    size_t n_beams;
    struct finished *texts; /* [width] */
    size_t n_texts;
    bool is_over;
};

struct search {
    struct xm_text_source source; /* of all texts */
    struct xm_generation asked;
    const struct xm_beam_wish *wish;
    struct xm_branches *branches;
    size_t width;                /* beams of a group  */
    size_t length;               /* new tokens so far */
    struct group *groups;        /* [wish->groups] */
    struct beam *memory;         /* memory of all groups' beams */
    struct finished *texts;      /* memory of all groups' texts */
    struct candidate *tried;     /* [TRIED * width] candidates of the current group */
    struct xm_branch_step *next; /* [wish->beams] the next branches */
    size_t n_next;
    float *row;                 /* [vocabulary] log-probabilities after a beam */
    struct xm_token_list taken; /* tokens that earlier groups have chosen in this step */
};

/* ---- texts of beams ---------------------------------------------------------------------- */

static void
free_written(struct written *w)
{
    if (!w)
        return;
    xm_text_free(&w->text);
    xm_generation_result_free(&w->result);
    xm_free(w);
}

static enum xm_status
begin_text(const struct search *s, struct written **out, struct xm_error *err)
{
    const struct xm_prompt *prompt = &s->asked.prompt;
    struct written *w = *out = xm_calloc(1, sizeof(*w));
    return w ? xm_text_begin(&w->text, &s->source, prompt->ids, prompt->n, &w->result,
                             err)
             : xm_no_memory(err, "a beam search");
}

static enum xm_status
fork_text(const struct written *from, struct written **out, struct xm_error *err)
{
    struct written *w = *out = xm_calloc(1, sizeof(*w));
    return w ? xm_text_fork(&from->text, &w->text, &w->result, err)
             : xm_no_memory(err, "a beam search");
}

static void
free_beams(struct group *g)
{
    for (size_t i = 0; i < g->n_beams; i++)
        free_written(g->beams[i].written);
    g->n_beams = 0;
}

/* ---- candidates -------------------------------------------------------------------------- */

/* Sets s->row to the log-probabilities after a beam, without barred tokens and with the diversity
 * penalty for tokens of earlier groups. */
static enum xm_status
weigh(const struct search *s, const struct beam *b, const float *logits,
      uint64_t vocabulary, struct xm_error *err)
{
    const struct xm_token_list *t = &b->written->text.tokens;
    XM_TRY(xm_text_weigh(&b->written->text, logits, vocabulary, s->row, err));
    for (size_t i = 0; i < s->taken.n; i++)
        s->row[s->taken.ids[i]] -= s->wish->diversity;
    xm_bar_ngrams(t->ids, t->n, s->wish->no_repeat_ngram, s->row, (size_t)vocabulary);
    return XM_OK;
}

/* Inserts a candidate into the list, best first; at equal scores the earlier one stays first. */
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

/* Returns the candidates of a dry run, which has no logits: all beams continue, with the first
 * ids. */
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
        XM_TRY(weigh(s, b, logits, vocabulary, err));
        for (uint64_t id = 0; id < vocabulary; id++) {
            const struct candidate c = {i, (int32_t)id, b->score + (double)s->row[id]};
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

/* Adds a text that ends in this step to the group's finished texts; owns it from now on. */
static void
finish(const struct search *s, struct group *g, struct written *w, double sum)
{
    const double score = score_of(s, sum, s->length);
    struct finished *at = &g->texts[g->n_texts];
    if (g->n_texts == s->width) {
        at = worst_of(g);
        if (!(score > at->score)) {
            free_written(w);
            return;
        }
        free_written(at->written);
    } else {
        g->n_texts++;
    }
    *at = (struct finished){w, score};
}

/* Finishes the beams that have the maximum length. */
static void
finish_beams(const struct search *s, struct group *g)
{
    for (size_t i = 0; i < g->n_beams; i++) {
        finish(s, g, g->beams[i].written, g->beams[i].score);
        g->beams[i].written = NULL;
    }
    g->is_over = true;
}

/* Whether a group has finished. `best`: the sum of the best beam at the start of the step. As in
 * OpenVINO GenAI, the comparison uses that beam's length before the step, so that a group continues
 * for one step after its last finished text. */
static bool
is_over(const struct search *s, const struct group *g, double best)
{
    const bool grows = s->wish->stop == XM_BEAM_NEVER && s->wish->length_penalty > 0.0f;
    if (g->n_beams == 0)
        return true;
    const size_t length = grows ? (size_t)g->beams[0].written->text.most : s->length - 1;
    if (g->n_texts < s->width || s->wish->stop == XM_BEAM_EARLY)
        return g->n_texts == s->width;
    return length > 0 && worst_of(g)->score >= score_of(s, best, length);
}

/* ---- a step -------------------------------------------------------------------------------- */

/* Returns the text of a candidate's beam: the text itself, or a fork if later candidates need it
 * too. */
static enum xm_status
branch_text(const struct search *s, struct group *g, size_t rank, size_t n_tried,
            struct written **out, struct xm_error *err)
{
    struct beam *from = &g->beams[s->tried[rank].beam];
    for (size_t i = rank + 1; i < n_tried; i++)
        if (s->tried[i].beam == s->tried[rank].beam)
            return fork_text(from->written, out, err);
    *out = from->written;
    from->written = NULL;
    return XM_OK;
}

/* Makes a finished text of the candidate, or a beam at the end of `beams`. */
static enum xm_status
take_candidate(struct search *s, struct group *g, size_t rank, size_t n_tried,
               struct beam *beams, size_t *n, struct xm_error *err)
{
    const struct candidate *c = &s->tried[rank];
    const size_t branch = g->beams[c->beam].branch;
    struct written *w = NULL;
    uint64_t vocabulary;
    const float *logits = s->branches->ops->logits(s->branches, branch, &vocabulary);
    enum xm_status status = branch_text(s, g, rank, n_tried, &w, err);
    if (status == XM_OK)
        status = xm_text_take_from(&w->text, logits, vocabulary, c->id, err);
    if (status != XM_OK) {
        free_written(w);
    } else if (!w->text.is_over || w->result.finish != XM_FINISH_STOP) {
        s->next[s->n_next] = (struct xm_branch_step){branch, c->id};
        beams[(*n)++] = (struct beam){w, s->n_next++, c->score};
    } else if (rank < s->width) {
        finish(s, g, w, c->score);
    } else {
        free_written(w);
    }
    return status;
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
    const double best = g->beams[0].score; /* beams are in the order of their scores */
    size_t n_tried, n = 0;
    XM_TRY(find_candidates(s, g, &n_tried, err));
    s->length++;
    enum xm_status status = XM_OK;
    for (size_t i = 0; i < n_tried && n < s->width && status == XM_OK; i++)
        status = take_candidate(s, g, i, n_tried, beams, &n, err);
    free_beams(g);
    memcpy(g->beams, beams, n * sizeof(*beams));
    g->n_beams = n;
    g->is_over = is_over(s, g, best);
    if (!g->is_over && g->beams[0].written->text.is_over)
        finish_beams(s, g);
    s->length--;
    return status == XM_OK ? take_taken(s, first, err) : status;
}

/* Removes branches of finished groups; the others move up. */
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
    xm_clock_add_token(s->asked.clock);
    compact(s);
    if (s->n_next == 0)
        return XM_OK;
    const double start = xm_clock_start(s->asked.clock);
    const enum xm_status status =
        s->branches->ops->go_on(s->branches, s->next, s->n_next, err);
    xm_clock_add_run(s->asked.clock, start);
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Returns the best finished text that ranks below `above`; at equal scores the order of groups
 * decides. */
static struct finished *
best_below(const struct search *s, const struct finished *above)
{
    struct finished *best = NULL;
    for (size_t i = 0; i < s->wish->groups; i++) {
        const struct group *g = &s->groups[i];
        for (size_t k = 0; k < g->n_texts; k++) {
            struct finished *t = &g->texts[k];
            const bool is_below = !above || t->score < above->score ||
                                  (t->score == above->score && t > above);
            if (is_below && (!best || t->score > best->score))
                best = t;
        }
    }
    return best;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static enum xm_status
begin(struct search *s, uint64_t *reused, struct xm_error *err)
{
    const struct xm_prompt *prompt = &s->asked.prompt;
    uint64_t vocabulary = 0;
    const double start = xm_clock_start(s->asked.clock);
    XM_TRY(s->branches->ops->begin(s->branches, prompt->ids, prompt->n, reused, err));
    xm_clock_add_run(s->asked.clock, start);
    s->branches->ops->logits(s->branches, 0, &vocabulary);
    s->row = xm_calloc((size_t)vocabulary, sizeof(*s->row));
    return s->row ? XM_OK : xm_no_memory(err, "a beam search");
}

/* Each group begins with one beam, which is the prompt. */
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
        g->n_beams = 1;
        XM_TRY(begin_text(s, &g->beams[0].written, err));
    }
    return XM_OK;
}

/* Moves the text to the caller's *out. After a failure *out stays empty, and the text is freed with
 * the search. */
static enum xm_status
give(struct finished *t, uint64_t reused, struct xm_generation_result *out,
     struct xm_error *err)
{
    XM_TRY(xm_text_end(&t->written->text, err));
    *out = t->written->result;
    out->reused = reused;
    t->written->result = (struct xm_generation_result){0};
    return XM_OK;
}

static enum xm_status
search_all(struct search *s, struct xm_generation_result *out, size_t *n,
           struct xm_error *err)
{
    struct finished *text = NULL;
    uint64_t reused;
    XM_TRY(make_groups(s, err));
    XM_TRY(begin(s, &reused, err));
    do
        XM_TRY(step(s, s->memory + s->wish->beams, err));
    while (s->n_next > 0);
    for (; *n < s->wish->returned && (text = best_below(s, text)); ++*n)
        XM_TRY(give(text, reused, &out[*n], err));
    return *n ? XM_OK
              : xm_fail(err, XM_INVALID,
                        "no token can be chosen: all tokens are barred%s",
                        s->asked.grammar ? " or not allowed by the grammar" : "");
}

static enum xm_status
check(const struct xm_generation *asked, struct xm_error *err)
{
    const uint64_t most = xm_generation_most(asked, asked->prompt.n);
    if (asked->prompt.n > 0 && most > 0)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "a beam search needs a prompt and new tokens, found a prompt of %zu "
                   "tokens and new tokens of %" PRIu64,
                   asked->prompt.n, most);
}

static void
free_groups(struct search *s)
{
    for (size_t i = 0; s->groups && i < s->wish->groups; i++) {
        struct group *g = &s->groups[i];
        free_beams(g);
        for (size_t k = 0; k < g->n_texts; k++)
            free_written(g->texts[k].written);
    }
}

enum xm_status
xm_beam_search(struct xm_compiled *compiled, const struct xm_package *package,
               const struct xm_generation *asked, const struct xm_beam_wish *wish,
               struct xm_generation_result *out, size_t *n, struct xm_error *err)
{
    struct search s = {.asked = *asked, .wish = wish};
    s.asked.n_forced = 0; /* beams choose all of their tokens */
    s.source = (struct xm_text_source){.package = package, .asked = &s.asked};
    s.asked.on_piece = NULL;
    s.asked.is_answer = false; /* thoughts are part of the text */
    *n = 0;
    XM_TRY(check(asked, err));
    XM_TRY(xm_branches_create(compiled, &s.branches, err));
    const enum xm_status status = search_all(&s, out, n, err);
    xm_branches_destroy(s.branches);
    free_groups(&s);
    xm_free(s.groups);
    xm_free(s.memory);
    xm_free(s.texts);
    xm_free(s.tried);
    xm_free(s.next);
    xm_free(s.row);
    xm_token_list_free(&s.taken);
    return status;
}
