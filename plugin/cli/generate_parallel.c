/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe generate --parallel: prints complete texts, in the order of their prompts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/costs.h"
#include "plugin/cli/generate.h"
#include "plugin/cli/kernels.h"
#include "plugin/pipeline/parallel.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/rate.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/number.h"

struct texts {
    const struct xm_cli_model *m;
    const struct xm_generate_args *a;
    struct xm_cli_ids prompts;
    struct xm_error *refused; /* owned, [prompts.n]; XM_OK: the prompt was not refused */
    struct xm_generation_result *results; /* owned, [n] */
    bool *is_complete;                    /* owned, [n] */
    const struct xm_prompt_lines *lines;  /* of the prompts; empty with --ids */
    /* The prompts are lines or rows of a file, and each makes one text. False: one prompt makes as
     * many texts as requested. */
    bool is_list;
    size_t n, n_complete, next; /* next: the next text to write */
    struct xm_costs costs;
    struct xm_profile profile;
};

/* ---- prompts ----------------------------------------------------------------------- */

static size_t
prompt_of(const struct texts *t, size_t text)
{
    return t->is_list ? text : 0;
}

/* Returns the line of the file with the prompt of a text; 0: the prompt is not a line. */
static size_t
line_of(const struct texts *t, size_t text)
{
    const size_t prompt = prompt_of(t, text);
    return prompt < t->lines->n ? t->lines->list[prompt].number : 0;
}

static enum xm_status
make_prompts(struct texts *t, size_t n, struct xm_error *err)
{
    t->prompts.rows = xm_calloc(n, sizeof(*t->prompts.rows));
    t->refused = xm_calloc(n, sizeof(*t->refused));
    t->prompts.n = t->prompts.rows ? n : 0;
    return t->prompts.rows && t->refused ? XM_OK : xm_no_memory(err, "%zu prompts", n);
}

/* Checks an encoded prompt. One that could not be encoded is left empty. In a list, a prompt that
 * is too long for the context is refused; a single prompt is checked by check_room. */
static void
check_encoded(struct texts *t, size_t i, enum xm_status s)
{
    struct xm_token_list *row = &t->prompts.rows[i];
    struct xm_error *why = &t->refused[i];
    if (s == XM_OK && row->n == 0)
        s = xm_fail(why, XM_INVALID, "the prompt is empty");
    else if (s == XM_OK && t->is_list)
        xm_generate_check_prompt(t->m, t->a, row->n, why);
    if (s != XM_OK)
        xm_token_list_clear(row);
}

static int
encode_lines(struct texts *t)
{
    const struct xm_prompt_lines *lines = t->lines;
    struct xm_error err = {0};
    if (make_prompts(t, lines->n, &err) != XM_OK)
        return xm_cli_failed(&err);
    for (size_t i = 0; i < lines->n; i++)
        check_encoded(t, i,
                      xm_generate_encode(t->m, t->a, &lines->list[i].text,
                                         &t->prompts.rows[i], &t->refused[i]));
    return XM_EXIT_OK;
}

static int
encode_ids(struct texts *t)
{
    struct xm_error err = {0};
    struct xm_cli_ids ids = {0};
    int code = xm_cli_ids_read(t->a->ids, UINT64_MAX, &ids);
    if (code == XM_EXIT_OK && make_prompts(t, ids.n, &err) != XM_OK)
        code = xm_cli_failed(&err);
    for (size_t i = 0; code == XM_EXIT_OK && i < ids.n; i++) {
        const struct xm_prompt prompt = {
            .kind = XM_PROMPT_IDS, .ids = ids.rows[i].ids, .n = ids.rows[i].n};
        check_encoded(t, i,
                      xm_prompt_encode(t->m->package, &prompt,
                                       xm_compiled_vocabulary(t->m->compiled),
                                       &t->prompts.rows[i], &t->refused[i]));
    }
    xm_cli_ids_free(&ids);
    return code;
}

/* Finds and encodes the prompts. In a list each prompt may be refused; a single one is refused
 * before anything runs. */
static int
find_prompts(struct texts *t)
{
    const int code = t->a->ids ? encode_ids(t) : encode_lines(t);
    return code == XM_EXIT_OK && !t->is_list && t->refused[0].status != XM_OK
               ? xm_cli_failed(&t->refused[0])
               : code;
}

/* Checks the room for the longest prompt. */
static int
check_room(const struct texts *t)
{
    size_t longest = 0;
    for (size_t i = 0; i < t->prompts.n; i++) {
        const size_t n = t->prompts.rows[i].n;
        longest = t->refused[i].status == XM_OK && n > longest ? n : longest;
    }
    return longest ? xm_generate_check_room(t->m, t->a, longest) : XM_EXIT_OK;
}

/* ---- texts ------------------------------------------------------------------------- */

/* Writes a text as generate does; after it a NUL, or on a terminal before it a heading line. */
static void
write_result(const struct texts *t, size_t i)
{
    const struct xm_generation_result *r = &t->results[i];
    const bool has_text = t->m->package->tokenizer != NULL;
    struct xm_text_out o;
    xm_text_out_begin(&o, has_text, true);
    xm_progress_clear();
    if (o.on_terminal)
        printf("--- %zu of %zu ---\n", i + 1, t->n);
    if (has_text)
        xm_cli_piece_out(
            &(struct xm_piece){-1, XM_ANSWER_TEXT, xm_strbuf_text(&r->text), r->text.n},
            &o);
    for (size_t k = 0; !has_text && k < r->ids.n; k++)
        xm_cli_piece_out(&(struct xm_piece){r->ids.ids[k], XM_ANSWER_NOTHING, "", 0}, &o);
    xm_text_out_finish(&o, true);
    if (!o.on_terminal)
        putchar('\0');
}

/* Writes complete texts; a text waits until those of earlier prompts are written. */
static void
on_text(size_t text, void *ctx)
{
    struct texts *t = ctx;
    t->is_complete[text] = true;
    t->n_complete++;
    for (; t->next < t->n && t->is_complete[t->next]; t->next++) {
        if (!t->a->generation.target.json)
            write_result(t, t->next);
    }
    xm_progress_show("%zu of %zu texts", t->n_complete, t->n);
}

static void
on_run(bool has_prompts, void *ctx)
{
    struct texts *t = ctx;
    xm_profile_take(&t->profile, has_prompts ? XM_PROFILE_PROMPT : XM_PROFILE_DECODE);
}

static enum xm_status
run_parallel(struct texts *t, struct xm_scheduler *p, const struct xm_parallel_run *run,
             struct xm_error *err)
{
    struct xm_infer *request = xm_scheduler_request(p);
    XM_TRY(xm_generate_begin_profile(t->a, request, &t->profile, err));
    xm_cli_catch_interrupt(request);
    xm_progress_show("reading prompts");
    xm_cli_show_builds();
    enum xm_status s = xm_parallel_generate(p, run, t->results, &t->costs.times, err);
    xm_cli_hide_builds();
    xm_cli_release_interrupt();
    xm_progress_clear();
    xm_costs_find(t->m, request, &t->costs);
    return s == XM_OK ? xm_generate_end_profile(t->m, t->a, &t->profile, &t->costs, err)
                      : s;
}

static enum xm_status
generate(struct texts *t, struct xm_error *err)
{
    const struct xm_generate_args *a = t->a;
    const struct xm_cli_stops stops = xm_cli_stops(&a->generation);
    const struct xm_parallel_run run = {.prompts = t->prompts.rows,
                                        .n_prompts = t->prompts.n,
                                        .refused = t->refused,
                                        .n_texts = t->n,
                                        .slots = a->parallel < t->n ? a->parallel : t->n,
                                        .each = xm_generate_wish(t->m, a, &stops),
                                        .sampling = a->sampling,
                                        .on_text = on_text,
                                        .on_run = on_run,
                                        .ctx = t};
    struct xm_scheduler *p = NULL;
    struct xm_prefix_store *store = NULL;
    XM_TRY(xm_cli_prefix_cache_open(&a->prefixes, t->m->compiled, &store, err));
    enum xm_status s = xm_scheduler_create(t->m->compiled, t->m->package, &p, err);
    if (s == XM_OK) {
        xm_scheduler_set_prefix_store(p, store);
        xm_prefix_store_hold(store);
        s = run_parallel(t, p, &run, err);
    }
    xm_scheduler_destroy(p);
    xm_prefix_store_close(store);
    return s;
}

/* ---- costs --------------------------------------------------------------------------------- */

static double
seconds_of(const struct texts *t)
{
    return t->costs.times.prompt_s + t->costs.times.decode_s;
}

static uint64_t
new_tokens(const struct texts *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->results[i].ids.n;
    return n;
}

static double
tokens_per_s(const struct texts *t)
{
    return xm_rate((double)new_tokens(t), seconds_of(t));
}

static void
add_text(const struct texts *t, size_t i, struct xm_json_out *j, yyjson_mut_val *list)
{
    const struct xm_generation_result *r = &t->results[i];
    const struct xm_token_list *prompt = &t->prompts.rows[prompt_of(t, i)];
    const char *finish = xm_generate_finish_text(r->finish);
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    if (line_of(t, i))
        xm_json_add_whole(j, o, "line", line_of(t, i));
    xm_json_add_ids(j, o, "prompt_ids", prompt->ids, prompt->n);
    xm_json_add_whole(j, o, "reused", r->reused);
    xm_json_add_ids(j, o, "ids", r->ids.ids, r->ids.n);
    if (t->m->package->tokenizer)
        xm_json_add_text(j, o, "text", xm_strbuf_text(&r->text), r->text.n);
    xm_json_add_text(j, o, "finish", finish, strlen(finish));
    if (r->finish == XM_FINISH_FAILED)
        xm_json_add_text(j, o, "error", r->error.text, strlen(r->error.text));
    if (xm_generate_is_drawn(t->a))
        xm_json_add_whole(j, o, "seed", t->a->sampling.seed + i);
}

static enum xm_status
print_json(struct texts *t, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "texts");
    for (size_t i = 0; i < t->n; i++)
        add_text(t, i, &j, list);
    xm_json_add_bool(&j, NULL, "cancelled", xm_cli_interrupted());
    xm_json_add_whole(&j, NULL, "parallel", t->a->parallel);
    xm_json_add_whole(&j, NULL, "tokens", new_tokens(t));
    xm_json_add_real(&j, NULL, "seconds", seconds_of(t));
    if (tokens_per_s(t) > 0.0)
        xm_json_add_real(&j, NULL, "tokens_per_s", tokens_per_s(t));
    xm_costs_add_json(&j, t->m, &t->costs);
    if (t->a->profile)
        xm_profile_add_json(&t->profile, &t->costs, &j);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static void
print_costs(const struct texts *t)
{
    if (t->a->verbose)
        xm_costs_print(t->m, &t->costs);
    if (t->a->verbose && xm_generate_is_drawn(t->a))
        fprintf(stderr, "seed:    %" PRIu64 ", increased by one for each text\n",
                t->a->sampling.seed);
    if (!t->a->verbose && !xm_terminal_is(STDERR_FILENO))
        return;
    fprintf(stderr,
            "texts:   %zu, %" PRIu64 " at a time: %" PRIu64
            " token%s, %.3f s with the prompts",
            t->n, t->a->parallel, new_tokens(t), xm_plural(new_tokens(t)), seconds_of(t));
    if (tokens_per_s(t) > 0.0)
        fprintf(stderr, ", %.2f tokens/s", tokens_per_s(t));
    fputc('\n', stderr);
}

/* Prints a sentence for each failed text. Returns XM_EXIT_DEVICE if all of them failed because the
 * cache has no room. */
static int
say_failures(const struct texts *t)
{
    int code = XM_EXIT_OK;
    for (size_t i = 0; i < t->n; i++) {
        struct xm_error why = t->results[i].error;
        if (t->results[i].finish != XM_FINISH_FAILED)
            continue;
        if (line_of(t, i))
            xm_error_prefix(&why, "%s, line %zu", t->lines->name, line_of(t, i));
        else
            xm_error_prefix(&why, "text %zu of %zu", i + 1, t->n);
        const bool had_no_room = xm_cli_failed(&why) == XM_EXIT_DEVICE;
        code = had_no_room && code != XM_EXIT_FAILED ? XM_EXIT_DEVICE : XM_EXIT_FAILED;
    }
    return code;
}

static int
report(struct texts *t)
{
    struct xm_error err = {0};
    size_t n_full = 0;
    for (size_t i = 0; i < t->n; i++)
        n_full += t->results[i].finish == XM_FINISH_CONTEXT;
    xm_generate_say_full(xm_generate_wish(t->m, t->a, &(struct xm_cli_stops){0}).context,
                         n_full);
    if (t->a->generation.target.json && print_json(t, &err) != XM_OK)
        return xm_cli_failed(&err);
    print_costs(t);
    if (t->a->profile)
        xm_profile_print(&t->profile, &t->costs);
    const int code = xm_generate_end();
    return code == XM_EXIT_OK ? say_failures(t) : code;
}

/* ---- the command --------------------------------------------------------------------- */

/* Prints a note if the number of texts differs from what --parallel suggests, or if the texts are
 * equal. */
static void
say_count(const struct texts *t)
{
    if (t->is_list && t->n == 1 && t->a->parallel > 1)
        xm_say("%s has one prompt, which gives one text; for a prompt given with -p, "
               "--parallel %" PRIu64 " writes %" PRIu64 " texts",
               t->a->ids ? t->a->ids + 1 : t->lines->name, t->a->parallel,
               t->a->parallel);
    if (!t->is_list && t->n > 1 && !xm_generate_is_drawn(t->a))
        xm_say("the %zu texts of the prompt are the same, because each has the likeliest "
               "tokens; give --temp 0.8 to draw tokens at random",
               t->n);
}

static int
run_texts(struct texts *t)
{
    struct xm_error err = {0};
    t->n = t->is_list ? t->prompts.n : t->a->parallel;
    say_count(t);
    t->results = xm_calloc(t->n, sizeof(*t->results));
    t->is_complete = xm_calloc(t->n, sizeof(*t->is_complete));
    enum xm_status s =
        t->results && t->is_complete ? XM_OK : xm_no_memory(&err, "%zu texts", t->n);
    if (s == XM_OK)
        s = generate(t, &err);
    int code = s == XM_OK ? report(t) : xm_cli_failed(&err);
    for (size_t i = 0; t->results && i < t->n; i++)
        xm_generation_result_free(&t->results[i]);
    xm_profile_free(&t->profile);
    xm_free(t->results);
    xm_free(t->is_complete);
    return code;
}

int
xm_generate_parallel(struct xm_cli_model *m, const struct xm_generate_args *a,
                     const struct xm_prompt_lines *lines)
{
    struct texts t = {.m = m, .a = a, .lines = lines};
    t.is_list = a->ids ? a->ids[0] == '@' : lines->name != NULL;
    if (!m->compiled->ops->create_batch)
        return xm_cli_usage("option --parallel: this device runs one text at a time");
    int code = find_prompts(&t);
    if (code == XM_EXIT_OK)
        code = check_room(&t);
    if (code == XM_EXIT_OK)
        code = run_texts(&t);
    xm_cli_ids_free(&t.prompts);
    xm_free(t.refused);
    return code;
}
