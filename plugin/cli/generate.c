/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe generate: continues a prompt token by token, or several prompts in parallel.
 */
#include "plugin/cli/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/conversation.h"
#include "plugin/cli/costs.h"
#include "plugin/cli/grammar_option.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/plan_command.h"
#include "plugin/cli/tuner_process.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

enum { MOST_PARALLEL = 1 << 10 };

/* clang-format off */
#define AT(member) offsetof(struct xm_generate_args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The text", "xemoe generate model.gguf -f prompts.txt -n 64 --parallel 4"),
    { 'p', "prompt",      XM_CLI_TEXT,  AT(prompt),      "TEXT", "the text to continue; the names of control tokens in it become these tokens" },
    { 'f', "file",        XM_CLI_WORD,  AT(file),        "FILE", "a file with the text to continue; -: standard input" },
    { 0,   "ids",         XM_CLI_WORD,  AT(ids),         "IDS",  "token ids to continue: 1,2,3 or @FILE (.npy or text)" },
    { 0,   "chat",        XM_CLI_FLAG,  AT(chat),        NULL,   "render the text as a user's message with the model's chat template" },
    { 's', "system",      XM_CLI_TEXT,  AT(system),      "TEXT", "with --chat: the system message, instructions to the model before the message", "system-prompt -sys" },
    { 0,   "chat-template", XM_CLI_WORD, AT(generation.target.chat_template), "FILE", "with --chat: a file with a Jinja template to use instead of the model's", "chat-template-file" },
    { 'n', "tokens",      XM_CLI_LIMIT, AT(tokens),      "N",    "at most N new tokens (128); -1: up to the end of the text or of the context", "n-predict predict" },
    { 0,   "parallel",    XM_CLI_COUNT, AT(parallel),    "N",    "generate at most N texts at a time, one for each line of FILE; or N texts for the prompt of -p or --ids", "-np" },
    XM_CLI_PREFIX_CACHE_ROWS(AT(prefixes)),
    { 0,   "ignore-eos",  XM_CLI_FLAG,  AT(ignore_eos),  NULL,   "continue after tokens that end the text" },
    XM_CLI_GROUP("What is written", "xemoe generate model.gguf -p Hello --profile --profile-out trace.json"),
    { 0,   "special",     XM_CLI_FLAG,  AT(special),     NULL,   "also write special tokens", "-sp" },
    { 'v', "verbose",     XM_CLI_FLAG,  AT(verbose),     NULL,   "print times, passes and memory on standard error" },
    { 0,   "profile",     XM_CLI_FLAG,  AT(profile),     NULL,   "print the time of steps and kernels on standard error" },
    { 0,   "profile-out", XM_CLI_WORD,  AT(profile_out), "FILE", "write each kernel launch to a file for chrome://tracing or ui.perfetto.dev" },
};
#undef AT
/* clang-format on */

static const char no_text[] = "the model has no tokenizer, so there is no text";

bool
xm_generate_is_drawn(const struct xm_generate_args *a)
{
    return a->sampling.temperature > 0.0f;
}

static enum xm_status
print_json(const struct xm_cli_model *m, const struct xm_generate_args *a,
           const struct xm_costs *c, struct xm_profile *p,
           const struct xm_generation_result *r, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_ids(&j, NULL, "prompt_ids", r->prompt.ids, r->prompt.n);
    xm_json_add_ids(&j, NULL, "ids", r->ids.ids, r->ids.n);
    if (m->package->tokenizer)
        xm_json_add_text(&j, NULL, "text", xm_strbuf_text(&r->text), r->text.n);
    else
        xm_json_add_text(&j, NULL, "note", no_text, sizeof(no_text) - 1);
    const char *finish = xm_generate_finish_text(r->finish);
    xm_json_add_text(&j, NULL, "finish", finish, strlen(finish));
    xm_json_add_bool(&j, NULL, "cancelled", xm_cli_interrupted());
    if (xm_generate_is_drawn(a))
        xm_json_add_whole(&j, NULL, "seed", a->sampling.seed);
    xm_costs_add_json(&j, m, c);
    if (a->profile)
        xm_profile_add_json(p, c, &j);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* ---- the run ----------------------------------------------------------------------- */

uint64_t
xm_generate_context(const struct xm_cli_model *m, const struct xm_generate_args *a)
{
    const uint64_t given =
        xm_cli_context(a->generation.context, m->package->facts.context);
    return given ? given : a->tokens == UINT64_MAX ? m->package->facts.context : 0;
}

enum xm_status
xm_generate_check_prompt(const struct xm_cli_model *m, const struct xm_generate_args *a,
                         uint64_t n, struct xm_error *err)
{
    const uint64_t trained = m->package->facts.context;
    const uint64_t given = xm_cli_context(a->generation.context, trained);
    const uint64_t context = xm_generate_context(m, a);
    if (!given && trained && n > trained)
        return xm_fail(err, XM_INVALID,
                       "the prompt has %" PRIu64
                       " tokens, but the model was trained for %" PRIu64
                       ": give -c %" PRIu64 " to continue it anyway",
                       n, trained, n + (a->tokens < XM_CLI_MOST_TOKENS ? a->tokens : 1));
    if (!xm_generation_room(context, n))
        return xm_fail(err, XM_INVALID,
                       "the prompt has %" PRIu64
                       " token%s, which leaves no room in a context of %" PRIu64
                       " token%s: give a larger -c",
                       n, xm_plural(n), context, xm_plural(context));
    return XM_OK;
}

int
xm_generate_check_room(const struct xm_cli_model *m, const struct xm_generate_args *a,
                       uint64_t n)
{
    struct xm_error err = {0};
    char warning[XM_CLI_WARNING];
    if (xm_generate_check_prompt(m, a, n, &err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    const uint64_t room = xm_generation_room(xm_generate_context(m, a), n);
    const uint64_t most = room < a->tokens ? room : a->tokens;
    const uint64_t whole = most < UINT64_MAX - n ? n + most : UINT64_MAX;
    if (xm_cli_beyond_training(whole, m->package->facts.context, warning))
        xm_log(XM_LOG_WARNING, "%s", warning);
    return XM_EXIT_OK;
}

struct xm_generation
xm_generate_wish(const struct xm_cli_model *m, const struct xm_generate_args *a,
                 const struct xm_cli_stops *stops)
{
    return (struct xm_generation){.max_tokens = a->tokens,
                                  .context = xm_generate_context(m, a),
                                  .stops = stops->list,
                                  .n_stops = stops->n,
                                  .ignore_ends = a->ignore_eos,
                                  .keep_special = a->special,
                                  .is_answer = a->chat && a->grammar,
                                  .grammar = a->grammar};
}

const char *
xm_generate_finish_text(enum xm_finish finish)
{
    static const char *const texts[] = {[XM_FINISH_STOP] = "stop",
                                        [XM_FINISH_LENGTH] = "length",
                                        [XM_FINISH_CONTEXT] = "context",
                                        [XM_FINISH_CANCELLED] = "cancelled",
                                        [XM_FINISH_FAILED] = "failed"};
    return texts[finish];
}

void
xm_generate_say_full(uint64_t context, size_t texts)
{
    if (texts == 1)
        xm_say("the context of %" PRIu64 " tokens is full: the text ends here; give a "
               "larger -c for a longer one",
               context);
    else if (texts)
        xm_say("the context of %" PRIu64
               " tokens was full for %zu texts; give a larger -c for longer ones",
               context, texts);
}

enum xm_status
xm_generate_begin_profile(const struct xm_generate_args *a, struct xm_infer *r,
                          struct xm_profile *p, struct xm_error *err)
{
    if (a->profile_out)
        XM_TRY(xm_trace_check(a->profile_out, err));
    return a->generation.target.measures
               ? xm_profile_begin(p, r, a->profile_out != NULL, err)
               : XM_OK;
}

enum xm_status
xm_generate_end_profile(const struct xm_cli_model *m, const struct xm_generate_args *a,
                        struct xm_profile *p, struct xm_costs *c, struct xm_error *err)
{
    struct xm_strbuf device = {0};
    if (a->verbose || a->profile)
        xm_costs_measure_reading(m, a->profile, c);
    if (a->profile)
        xm_costs_measure_multiplying(m, c);
    if (!a->profile_out)
        return XM_OK;
    xm_cli_model_device(m, &device);
    const enum xm_status s =
        xm_trace_write(p, xm_strbuf_text(&device), a->profile_out, err);
    xm_strbuf_free(&device);
    return s;
}

/* The destination of pieces. */
struct output {
    struct xm_text_out text;
    struct xm_profile *profile;
};

/* Before the first piece only the prompt has run, so that its profile is taken then. */
static bool
on_piece(const struct xm_piece *piece, void *ctx)
{
    struct output *o = ctx;
    if (!o->profile->has_prompt)
        xm_profile_take(o->profile, XM_PROFILE_PROMPT);
    return xm_cli_piece_out(piece, &o->text);
}

static enum xm_status
run_session(struct xm_cli_model *m, const struct xm_generate_args *a,
            struct xm_session *session, const struct xm_generation *run,
            struct xm_generation_result *result, struct xm_costs *costs, struct output *o,
            struct xm_error *err)
{
    struct xm_profile *profile = o->profile;
    struct xm_infer *request = xm_session_request(session);
    XM_TRY(xm_generate_begin_profile(a, request, profile, err));
    xm_session_set_sampling(session, &a->sampling);
    xm_cli_catch_interrupt(request);
    xm_cli_show_reading(request, "reading a prompt of", run->prompt.n);
    xm_cli_show_builds();
    enum xm_status s = xm_session_run(session, run, result, err);
    xm_cli_hide_builds();
    xm_cli_release_interrupt();
    xm_text_out_finish(&o->text, s == XM_OK); /* later messages begin on a new line */
    xm_profile_take(profile, profile->has_prompt ? XM_PROFILE_DECODE : XM_PROFILE_PROMPT);
    costs->times = result->times;
    xm_costs_find(m, request, costs);
    return s == XM_OK ? xm_generate_end_profile(m, a, profile, costs, err) : s;
}

static enum xm_status
generate(struct xm_cli_model *m, const struct xm_generate_args *a,
         const struct xm_token_list *prompt, struct xm_generation_result *result,
         struct xm_costs *costs, struct xm_profile *profile, struct xm_error *err)
{
    const struct xm_cli_stops stops = xm_cli_stops(&a->generation);
    struct output o = {.profile = profile};
    struct xm_generation run = xm_generate_wish(m, a, &stops);
    run.prompt =
        (struct xm_prompt){.kind = XM_PROMPT_IDS, .ids = prompt->ids, .n = prompt->n};
    run.on_piece = on_piece;
    run.ctx = &o;
    struct xm_session *session = NULL;
    xm_text_out_begin(&o.text, m->package->tokenizer != NULL, !a->generation.target.json);
    const bool is_missing =
        xm_package_read(m->package, XM_PACKAGE_TOKENIZER, NULL) == XM_NOT_FOUND;
    if (is_missing && o.text.stream)
        xm_say("there is no %s: token ids are written instead of text",
               m->package->reader->tokenizer);
    struct xm_prefix_store *store = NULL;
    XM_TRY(xm_cli_prefix_cache_open(&a->prefixes, m->compiled, &store, err));
    enum xm_status s = xm_session_create(m->compiled, m->package, &session, err);
    if (s == XM_OK) {
        xm_session_set_prefix_store(session, store);
        xm_prefix_store_hold(store);
        s = run_session(m, a, session, &run, result, costs, &o, err);
    }
    xm_session_destroy(session);
    xm_prefix_store_close(store);
    return s;
}

int
xm_generate_end(void)
{
    int code = xm_cli_flush();
    if (code != XM_EXIT_OK || !xm_cli_interrupted())
        return code;
    xm_cli_say_interrupted();
    return XM_EXIT_CANCELLED;
}

/* For a mesh: prints if one of its devices alone would be faster, if that can be forecast. */
static void
say_alone(const struct xm_cli_model *m, const struct xm_generate_args *a,
          const struct xm_generation_result *r)
{
    const struct xm_cli_target *t = &a->generation.target;
    const struct xm_plan_args plan = {
        .chip = {.device = t->device, .context = r->prompt.n + r->ids.n + 1},
        .split = t->split,
        .messages = t->messages,
        .parallel = 1,
        .prompt = r->prompt.n};
    struct xm_strbuf cache = {0};
    struct xm_config config;
    uint32_t rank;
    if (xm_plan_is_mesh(&plan) && xm_mpi_ranks(&rank) <= 1 &&
        xm_cli_target_config(t, &config, NULL) == XM_OK &&
        xm_cli_cache_open(t->cache_dir, &cache, NULL) == XM_OK)
        xm_plan_say_alone(&plan, &config, m->package, xm_strbuf_text(&cache));
    xm_strbuf_free(&cache);
}

static int
report(const struct xm_cli_model *m, const struct xm_generate_args *a,
       const struct xm_costs *c, struct xm_profile *p,
       const struct xm_generation_result *r)
{
    struct xm_error err = {0};
    xm_generate_say_full(xm_generate_context(m, a), r->finish == XM_FINISH_CONTEXT);
    if (a->generation.target.json && print_json(m, a, c, p, r, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (a->verbose) {
        xm_costs_print(m, c);
        say_alone(m, a, r);
        if (xm_generate_is_drawn(a))
            fprintf(stderr, "seed:    %" PRIu64 "\n", a->sampling.seed);
    }
    if (a->profile)
        xm_profile_print(p, c);
    return xm_generate_end();
}

static int
run_prompt(struct xm_cli_model *m, const struct xm_generate_args *a,
           const struct xm_token_list *prompt)
{
    struct xm_error err = {0};
    struct xm_costs costs = {0};
    struct xm_generation_result result = {0};
    struct xm_profile profile = {0};
    enum xm_status s = generate(m, a, prompt, &result, &costs, &profile, &err);
    int code = s == XM_OK ? report(m, a, &costs, &profile, &result) : xm_cli_failed(&err);
    xm_profile_free(&profile);
    xm_generation_result_free(&result);
    return code;
}

/* Returns the conversation that --chat makes of a prompt. */
static char *
messages_of(const struct xm_generate_args *a, const struct xm_strbuf *text,
            struct xm_error *err)
{
    struct xm_conversation c = {0};
    enum xm_status s = XM_OK;
    if (a->system)
        s = xm_conversation_add(&c, "system", a->system, strlen(a->system), err);
    if (s == XM_OK)
        s = xm_conversation_add(&c, "user", xm_strbuf_text(text), text->n, err);
    char *messages = s == XM_OK ? xm_conversation_messages(&c, err) : NULL;
    xm_conversation_free(&c);
    return messages;
}

enum xm_status
xm_generate_encode(const struct xm_cli_model *m, const struct xm_generate_args *a,
                   const struct xm_strbuf *text, struct xm_token_list *out,
                   struct xm_error *err)
{
    const uint64_t vocabulary = xm_cli_vocabulary(m);
    struct xm_prompt prompt = {
        .kind = XM_PROMPT_TEXT, .text = xm_strbuf_text(text), .n = text->n};
    char *messages = a->chat ? messages_of(a, text, err) : NULL;
    if (a->chat && !messages)
        return err->status;
    if (messages)
        prompt = (struct xm_prompt){.kind = XM_PROMPT_MESSAGES, .text = messages};
    const enum xm_status s = xm_prompt_encode(m->package, &prompt, vocabulary, out, err);
    if (s != XM_OK)
        xm_cli_name_template(m, &a->generation.target, err);
    xm_free(messages);
    return s;
}

static int
encode_chat(const struct xm_cli_model *m, const struct xm_generate_args *a,
            const struct xm_strbuf *text, struct xm_token_list *out)
{
    struct xm_error err = {0};
    return xm_generate_encode(m, a, text, out, &err) == XM_OK ? XM_EXIT_OK
                                                              : xm_cli_failed(&err);
}

static int
encode(const struct xm_cli_model *m, const struct xm_generate_args *a,
       const struct xm_strbuf *text, struct xm_token_list *out)
{
    return a->chat ? encode_chat(m, a, text, out)
                   : xm_cli_prompt(m, a->ids, xm_strbuf_text(text), text->n, out);
}

/* What check_early checks: the options, and, without --parallel, the prompt. */
struct early {
    const struct xm_generate_args *a;
    const struct xm_strbuf *text;
};

/* Refuses wrong token ids and a prompt that is too long before the model is compiled, which takes
 * time. */
static int
check_early(const struct xm_cli_model *m, const void *ctx)
{
    const struct early *e = ctx;
    struct xm_token_list prompt = {0};
    struct xm_error err = {0};
    xm_progress_clear();
    int code = xm_cli_check_biased(m, &e->a->generation);
    if (code != XM_EXIT_OK || e->a->parallel)
        return code;
    code = encode(m, e->a, e->text, &prompt);
    if (code == XM_EXIT_OK && xm_generate_check_prompt(m, e->a, prompt.n, &err) != XM_OK)
        code = xm_cli_usage("%s", err.text);
    xm_token_list_free(&prompt);
    return code;
}

static int
run_model(struct xm_cli_model *m, const struct xm_generate_args *a,
          const struct xm_strbuf *text)
{
    struct xm_token_list prompt = {0};
    int code = encode(m, a, text, &prompt);
    if (code == XM_EXIT_OK)
        code = xm_generate_check_room(m, a, prompt.n);
    if (code == XM_EXIT_OK)
        code = run_prompt(m, a, &prompt);
    xm_token_list_free(&prompt);
    return code;
}

/* Reads the prompt from -p, -f or a pipe; nothing with --ids. */
static int
read_prompt(const struct xm_generate_args *a, struct xm_strbuf *text)
{
    struct xm_error err = {0};
    int given = (a->prompt != NULL) + (a->file != NULL) + (a->ids != NULL);
    if (given > 1)
        return xm_cli_usage("give only one prompt: -p TEXT, -f FILE or --ids IDS");
    if (given == 0 && xm_terminal_is(STDIN_FILENO))
        return xm_cli_usage("give a prompt: one of -p TEXT, -f FILE and --ids IDS");
    if (a->ids)
        return xm_cli_ids_check(a->ids, a->parallel == 0);
    if (a->prompt)
        xm_strbuf_add(text, a->prompt);
    else if (xm_prompt_file_read(a->file ? a->file : "-", text, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (a->chat && text->n && xm_strbuf_is_blank(text))
        return xm_cli_usage(
            "the message contains only spaces: there is nothing to answer");
    if (text->n)
        return XM_EXIT_OK;
    if (a->file)
        return xm_cli_usage("%s is empty: there is nothing to continue",
                            xm_prompt_file_name(a->file));
    return given ? xm_cli_usage("the prompt is empty: there is nothing to continue")
                 : xm_cli_usage("standard input is empty: write a prompt to it, or give "
                                "one of -p TEXT, -f FILE and --ids IDS");
}

/* Makes the prompts of --parallel: each line of a file, or the text of -p as one prompt, whatever
 * it contains. */
static int
split_prompts(const struct xm_generate_args *a, const struct xm_strbuf *text,
              struct xm_prompt_lines *out)
{
    struct xm_error err = {0};
    const char *name = xm_prompt_file_name(a->file ? a->file : "-");
    if (!a->parallel || a->ids)
        return XM_EXIT_OK;
    enum xm_status s = a->prompt ? xm_prompt_lines_add(out, text->text, text->n, &err)
                                 : xm_prompt_lines_split(text, name, out, &err);
    if (s != XM_OK)
        return xm_cli_failed(&err);
    if (out->n == 0)
        return xm_cli_usage("%s: no line contains a prompt", name);
    xm_prompt_lines_say_blank(out);
    return XM_EXIT_OK;
}

/* Sets a temperature if other sampling options are given without one, because their user wants
 * sampling. */
static void
settle_temperature(const struct xm_cli_model *m, struct xm_generate_args *a)
{
    const char *option = xm_cli_sampling_option(&a->generation);
    const float recommended = m->package->generation.sampling.temperature;
    const bool is_recommended = recommended > 0.0f;
    if (!option)
        return;
    a->sampling.temperature = is_recommended ? recommended : XM_CLI_DEFAULT_TEMPERATURE;
    xm_say("tokens are drawn at random because of --%s, at temperature %g%s%s; give "
           "--temp 0 for the likeliest tokens",
           option, (double)a->sampling.temperature, is_recommended ? " of " : "",
           is_recommended ? m->package->reader->sampling : "");
}

static int
run_prompts(struct xm_generate_args *a, const struct xm_strbuf *text,
            const struct xm_prompt_lines *lines)
{
    const struct xm_compile_options compile = {.sampled_logits = true};
    const struct early early = {a, text};
    struct xm_error err = {0};
    struct xm_cli_model m;
    a->generation.target.needs_tokenizer = a->ids ? NULL : XM_CLI_IDS_INSTEAD;
    a->generation.target.warm_up = XM_CLI_WARM_UP_TOKEN;
    a->generation.target.tunes = true;
    a->generation.target.check = check_early;
    a->generation.target.check_ctx = &early;
    int code = xm_cli_model_open(&m, &a->generation.target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    settle_temperature(&m, a);
    if (xm_cli_sampling_lists(&a->generation, m.package, &a->lists, &a->sampling, &err) !=
        XM_OK)
        code = xm_cli_usage("%s", err.text);
    else
        code = a->parallel ? xm_generate_parallel(&m, a, lines) : run_model(&m, a, text);
    if (code == XM_EXIT_OK) {
        (void)xm_cli_tuner_run(m.tuner, false, -1);
        /* Ctrl-C ended only the measuring: the text is complete */
        xm_cli_forget_interrupt();
    }
    xm_cli_model_close(&m);
    return code;
}

static int
run(struct xm_generate_args *a)
{
    struct xm_strbuf text = {0};
    struct xm_prompt_lines lines = {0};
    int code = a->generation.target.model ? read_prompt(a, &text) : XM_EXIT_OK;
    if (code == XM_EXIT_OK && a->generation.target.model)
        code = split_prompts(a, &text, &lines);
    if (code == XM_EXIT_OK)
        code = run_prompts(a, &text, &lines);
    xm_sampling_lists_free(&a->lists);
    xm_prompt_lines_free(&lines);
    xm_strbuf_free(&text);
    return code;
}

/* Checks --chat and the options that require it. */
static int
check_chat(struct xm_generate_args *a)
{
    const char *alone = a->system                            ? "--system"
                        : a->generation.target.chat_template ? "--chat-template"
                                                             : NULL;
    uint64_t number;
    const bool is_seed =
        /* a number: probably meant as llama.cpp's -s, the seed */
        a->system && xm_parse_whole(a->system, &number);
    a->generation.target.needs_chat_template = a->chat;
    if (!a->chat && alone)
        return xm_cli_usage("option %s can only be used with --chat%s", alone,
                            is_seed ? "; the seed is --seed" : "");
    return a->chat && a->ids
               ? xm_cli_usage(
                     "option --chat needs a text and cannot be combined with --ids")
               : XM_EXIT_OK;
}

/* Refuses options that the device REFERENCE lacks before the model is read. */
static int
check_device(const struct xm_generate_args *a)
{
    const char *device = a->generation.target.device;
    int code = XM_EXIT_OK;
    if (a->profile || a->profile_out)
        code = xm_cli_refuse_reference(device, a->profile ? "--profile" : "--profile-out",
                                       "does not measure its steps; use -d GPU or CPU");
    if (code == XM_EXIT_OK && a->parallel)
        code = xm_cli_refuse_reference(device, "--parallel", "runs one text at a time");
    return code;
}

int
xm_cli_generate(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe generate MODEL (-p TEXT | -f FILE | --ids IDS) [-n N] [options]",
        .about =
            "Continues a prompt and writes the text while it is generated, until it "
            "ends.\nWithout -p, -f and --ids the prompt is read from a pipe. Ctrl-C "
            "stops between\ntokens.\n\nWith --chat the prompt is one message of a user, "
            "and the text is the model's\nanswer; control tokens in the message are "
            "ordinary text.\n\n--parallel N continues the prompts of FILE or a pipe, one "
            "per line, at most N at\na time; a file with one line gives one text. A line "
            "in quotes is a JSON string;\nblank lines are skipped. For a prompt on the "
            "command line it writes N texts,\nwhich differ if tokens are drawn at random "
            "(--temp). Each text is written when\nit is complete, in the order of the "
            "prompts, and followed by a NUL unless\nstandard output is a terminal.\n",
        .common = xm_cli_generation_options,
        .n_common = XM_CLI_N_GENERATION_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
    };
    struct xm_generate_args a = {.tokens = 128};
    struct xm_error err = {0};
    bool done;
    xm_cli_generation_open(&a.generation);
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (xm_cli_sampling(&a.generation, &a.sampling, &err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    if (a.parallel > MOST_PARALLEL)
        return xm_cli_usage("option --parallel takes at most %d texts, found %" PRIu64,
                            MOST_PARALLEL, a.parallel);
    code = check_device(&a);
    if (code == XM_EXIT_OK)
        code = check_chat(&a);
    if (code == XM_EXIT_OK)
        code = xm_cli_prefix_cache_check(&a.prefixes, a.generation.target.device);
    if (code != XM_EXIT_OK)
        return code;
    if (a.profile_out && strcmp(a.profile_out, "-") == 0)
        return xm_cli_usage("option --profile-out needs a file, because the text goes to "
                            "standard output");
    code = xm_cli_grammar(&a.generation, &a.grammar);
    if (code != XM_EXIT_OK)
        return code;
    a.generation.target.measures = a.profile || a.profile_out;
    if (a.verbose)
        xm_log_set_level(XM_LOG_INFO);
    code = run(&a);
    xm_grammar_free(a.grammar);
    return code;
}
