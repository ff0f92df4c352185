/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/perplexity.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

enum { PIECE = 512 }; /* tokens per feed, which bounds the memory for logits */

struct run {
    const struct xm_chunks *chunks;
    const struct xm_scorer *scorer;
    struct xm_token_runner *runner;
    int32_t *ids; /* of the current chunk */
    double start;
    bool has_printed; /* the scorer's text about a chunk */
    /* an incomplete line is on the terminal, so that no other line is printed */
    bool line_stands;
};

/* ---- progress ------------------------------------------------------------------------------ */

enum { DURATION = 48 };
static void
duration_text(double seconds, char out[DURATION])
{
    const uint64_t s = (uint64_t)(seconds + 0.5), minutes = s / 60;
    if (minutes >= 60)
        snprintf(out, DURATION, "%" PRIu64 " h %" PRIu64 " min", minutes / 60,
                 minutes % 60);
    else if (minutes)
        snprintf(out, DURATION, "%" PRIu64 " min %" PRIu64 " s", minutes, s % 60);
    else
        snprintf(out, DURATION, "%" PRIu64 " s", s);
}

static void
show_progress(const struct run *r, uint32_t done)
{
    char left[DURATION];
    const uint32_t n = r->chunks->n;
    if (r->line_stands)
        return;
    if (done == 0) {
        xm_progress_show("chunk 1 of %" PRIu32, n);
        return;
    }
    duration_text((xm_now() - r->start) / done * (n - done), left);
    xm_progress_show("chunk %" PRIu32 " of %" PRIu32 ", %s left", done + 1, n, left);
}

/* Prints the estimated duration now if values will be printed on an incomplete line, because
 * nothing else can be printed then. */
static void
say_duration(const struct run *r)
{
    char all[DURATION];
    const double seconds = xm_now() - r->start;
    duration_text(seconds * r->chunks->n, all);
    xm_say("%.2f s per chunk: %s for %" PRIu32 " chunk%s", seconds, all, r->chunks->n,
           xm_plural(r->chunks->n));
}

static void
tell_chunk(struct run *r, uint32_t done)
{
    const struct xm_scorer *s = r->scorer;
    xm_progress_clear();
    if (!s->chunk)
        return;
    const bool stands = s->leaves_line_open && xm_terminal_is(STDOUT_FILENO);
    if (stands && !r->line_stands && xm_terminal_has_escapes(STDERR_FILENO))
        say_duration(r);
    r->line_stands = stands;
    xm_cli_line_is_open(s->leaves_line_open);
    r->has_printed = true;
    s->chunk(s->ctx, done);
    fflush(stdout);
}

/* ---- a chunk ----------------------------------------------------------------------- */

/* Scores the positions of tokens [begin, end), which have been fed. */
static enum xm_status
score_piece(const struct run *r, uint32_t chunk, uint32_t begin, uint32_t end,
            struct xm_error *err)
{
    const uint32_t context = r->chunks->context, first = context / 2;
    const uint32_t from = begin > first ? begin : first;
    uint64_t vocabulary;
    if (from >= end)
        return XM_OK;
    const float *logits = xm_cli_logits_of(r->runner, end - from, &vocabulary, err);
    if (!logits)
        return err->status;
    for (uint32_t at = from; at < end && at + 1 < context; at++, logits += vocabulary)
        XM_TRY(r->scorer->position(r->scorer->ctx, chunk, at - first, logits, vocabulary,
                                   r->ids[at + 1], err));
    return XM_OK;
}

static enum xm_status
run_chunk(const struct run *r, uint32_t chunk, struct xm_error *err)
{
    const struct xm_chunks *c = r->chunks;
    const uint32_t first = c->context / 2;
    memcpy(r->ids, c->tokens + (size_t)chunk * c->context, c->context * sizeof(*r->ids));
    if (c->has_first)
        r->ids[0] = c->first;
    xm_token_runner_truncate(r->runner, 0);
    for (uint32_t begin = 0, end; begin < c->context; begin = end) {
        end = c->context - begin < PIECE ? c->context : begin + PIECE;
        const uint32_t scored = end <= first ? 1 : end - (begin > first ? begin : first);
        XM_TRY(xm_token_runner_feed(r->runner, r->ids + begin, end - begin, scored, err));
        XM_TRY(score_piece(r, chunk, begin, end, err));
    }
    return XM_OK;
}

static enum xm_status
run_all(struct run *r, struct xm_error *err)
{
    xm_token_runner_expect(r->runner, r->chunks->context);
    r->start = xm_now();
    for (uint32_t i = 0; i < r->chunks->n; i++) {
        show_progress(r, i);
        if (xm_cli_interrupted())
            return xm_fail(err, XM_CANCELLED, "stopped before chunk %" PRIu32, i + 1);
        XM_TRY(run_chunk(r, i, err));
        tell_chunk(r, i + 1);
    }
    return XM_OK;
}

enum xm_status
xm_chunks_run(const struct xm_cli_model *m, const struct xm_chunks *chunks,
              const struct xm_scorer *scorer, struct xm_error *err)
{
    struct run r = {.chunks = chunks, .scorer = scorer};
    r.ids = xm_calloc(chunks->context, sizeof(*r.ids));
    enum xm_status s = r.ids ? xm_token_runner_create(m->compiled, &r.runner, err)
                             : xm_no_memory(err, "tokens");
    if (s == XM_OK) {
        xm_cli_catch_interrupt(xm_token_runner_request(r.runner));
        s = run_all(&r, err);
        xm_cli_release_interrupt();
    }
    xm_progress_clear();
    if (r.has_printed && scorer->chunk && scorer->leaves_line_open)
        putchar('\n');
    xm_cli_line_is_open(false);
    xm_token_runner_destroy(r.runner);
    xm_free(r.ids);
    return s;
}
