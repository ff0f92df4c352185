/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe chat: a conversation on the terminal.
 *
 * Each turn renders the whole conversation with the model's template. The tokens that the cache
 * holds already (the longest common beginning) are kept, only the rest is fed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/json_out.h"
#include "plugin/cli/progress.h"
#include "plugin/cli/text_out.h"
#include "plugin/text/chat_template.h"

struct args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *system;
    uint64_t tokens;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 's', "system", XM_CLI_TEXT,  AT(system), "TEXT", "what the model is told before the conversation" },
    { 'n', "tokens", XM_CLI_COUNT, AT(tokens), "N",    "at most N tokens an answer (512)" },
};
#undef AT
/* clang-format on */

struct chat {
    const struct args *args;
    struct xm_cli_model *model;
    struct xm_chat_template *template;
    struct xm_generator *generator;
    struct xm_json_out history;  /* {"messages": […]}            */
    yyjson_mut_val *messages;    /* that array                  */
    struct xm_token_list cached; /* what the states hold        */
};

/* ---- the conversation ---- */

static void
add_message(struct chat *c, const char *role, const char *text, size_t n)
{
    yyjson_mut_val *message = xm_json_add_object(&c->history, c->messages, NULL);
    xm_json_add_text(&c->history, message, "role", role, strlen(role));
    xm_json_add_text(&c->history, message, "content", text, n);
}

static void
begin_history(struct chat *c)
{
    xm_json_begin(&c->history);
    c->messages = xm_json_add_array(&c->history, NULL, "messages");
    if (c->args->system)
        add_message(c, "system", c->args->system, strlen(c->args->system));
}

static enum xm_status
render(struct chat *c, struct xm_token_list *ids, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    char *messages = xm_json_value_text(c->messages);
    if (!messages)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the conversation");
    enum xm_status s =
        xm_chat_template_render(c->template, messages, true, NULL, &text, err);
    if (s == XM_OK)
        s = xm_tokenizer_encode(c->model->tokenizer, xm_strbuf_text(&text), text.n, false,
                                ids, err);
    xm_free(messages);
    xm_strbuf_free(&text);
    return s;
}

/* ---- a turn ---- */

/* How many of the tokens the states hold already; one at least is left to feed. */
static size_t
reusable(const struct chat *c, const struct xm_token_list *ids)
{
    size_t n = 0;
    while (n < c->cached.n && n + 1 < ids->n && c->cached.ids[n] == ids->ids[n])
        n++;
    return n;
}

static void
rewind_to(struct chat *c, size_t past)
{
    struct xm_infer *r = xm_generator_request(c->generator);
    if (past < c->cached.n && r->ops->truncate)
        r->ops->truncate(r, past);
    else if (past < c->cached.n)
        xm_generator_reset(c->generator);
}

/* The states hold the prompt and those new tokens that were fed. */
static enum xm_status
note_cached(struct chat *c, const struct xm_token_list *prompt,
            const struct xm_token_list *new, struct xm_error *err)
{
    struct xm_infer *r = xm_generator_request(c->generator);
    xm_token_list_clear(&c->cached);
    if (!xm_token_list_add_n(&c->cached, prompt->ids, prompt->n) ||
        !xm_token_list_add_n(&c->cached, new->ids, new->n))
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the tokens");
    uint64_t past = r->ops->past(r);
    c->cached.n = past < c->cached.n ? (size_t)past : c->cached.n;
    return XM_OK;
}

static enum xm_status
answer_tokens(struct chat *c, const struct xm_token_list *prompt, struct xm_text_out *o,
              struct xm_error *err)
{
    struct xm_token_list new = {0};
    struct xm_generation_times times;
    struct xm_infer *r = xm_generator_request(c->generator);
    rewind_to(c, reusable(c, prompt));
    size_t past = (size_t)r->ops->past(r);
    struct xm_generation run = {.prompt = prompt->ids + past,
                                .n_prompt = prompt->n - past,
                                .max_tokens = c->args->tokens,
                                .stop_ids = c->model->ids.eos,
                                .n_stop = (uint32_t)c->model->ids.n_eos,
                                .on_token = xm_text_out_token,
                                .ctx = o};
    xm_progress_show("reading %zu tokens", prompt->n - past);
    enum xm_status s = xm_generator_run(c->generator, &run, &new, &times, err);
    xm_progress_clear();
    if (s == XM_CANCELLED && xm_cli_interrupted()) {
        err->status = s = XM_OK; /* the answer ends here */
        err->text[0] = '\0';
    }
    if (s == XM_OK)
        s = note_cached(c, prompt, &new, err);
    xm_token_list_free(&new);
    return s;
}

static enum xm_status
answer(struct chat *c, struct xm_error *err)
{
    struct xm_token_list prompt = {0};
    struct xm_text_out o;
    XM_TRY(xm_text_out_begin(&o, c->model->tokenizer, &c->args->generation.stops,
                             !c->args->generation.target.json, true, true, err));
    enum xm_status s = render(c, &prompt, err);
    if (s == XM_OK)
        s = answer_tokens(c, &prompt, &o, err);
    if (s == XM_OK && xm_text_out_finish(&o) != XM_OK)
        s = xm_fail(err, o.err.status, "%s", o.err.text);
    if (s == XM_OK)
        add_message(c, "assistant", xm_strbuf_text(&o.text), o.text.n);
    xm_text_out_end(&o);
    xm_token_list_free(&prompt);
    return s;
}

/* ---- the loop ---- */

/* A line without its end; false at the end of the input. */
static bool
read_line(struct xm_strbuf *line)
{
    char part[256];
    xm_strbuf_clear(line);
    if (isatty(STDIN_FILENO)) {
        fputs("> ", stderr);
        fflush(stderr);
    }
    bool got = false, ended = false;
    while (!ended && fgets(part, sizeof(part), stdin)) {
        size_t n = strlen(part);
        got = true;
        ended = n > 0 && part[n - 1] == '\n';
        n -= ended;
        xm_strbuf_add_n(line, part, n > 0 && part[n - 1] == '\r' ? n - 1 : n);
    }
    return got;
}

/* One line: a command, or a message to answer. */
static enum xm_status
take_line(struct chat *c, const char *line, struct xm_error *err)
{
    if (strcmp(line, "/reset") == 0) {
        xm_json_end(&c->history);
        begin_history(c);
        return XM_OK;
    }
    if (strcmp(line, "/help") == 0) {
        fputs("/reset begins anew, /exit ends; all else goes to the model\n", stderr);
        return XM_OK;
    }
    if (!line[0])
        return XM_OK;
    add_message(c, "user", line, strlen(line));
    xm_cli_catch_interrupt(xm_generator_request(c->generator));
    enum xm_status s = answer(c, err);
    xm_cli_release_interrupt();
    xm_cli_forget_interrupt();
    return s;
}

static enum xm_status
converse(struct chat *c, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_OK;
    while (s == XM_OK && read_line(&line)) {
        if (!xm_strbuf_ok(&line))
            s = xm_fail(err, XM_NO_MEMORY, "out of memory for a line");
        else if (strcmp(xm_strbuf_text(&line), "/exit") == 0)
            break;
        else
            s = take_line(c, xm_strbuf_text(&line), err);
    }
    xm_strbuf_free(&line);
    if (s == XM_OK && c->args->generation.target.json)
        s = xm_json_print(&c->history, err);
    return s;
}

static enum xm_status
chat(struct chat *c, const struct xm_sampling *sampling, const char *folder,
     struct xm_error *err)
{
    XM_TRY(xm_chat_template_load(folder, &c->template, err));
    XM_TRY(xm_generator_create(c->model->compiled, sampling, &c->generator, err));
    begin_history(c);
    enum xm_status s = converse(c, err);
    xm_json_end(&c->history);
    return s;
}

static int
run_model(struct xm_cli_model *m, const struct args *a,
          const struct xm_sampling *sampling)
{
    struct xm_error err = {0};
    struct chat c = {.args = a, .model = m};
    struct xm_strbuf folder = {0};
    if (!m->tokenizer) {
        fputs("xemoe: there is no tokenizer.json beside the model: chat needs it, put "
              "the file there\n",
              stderr);
        return XM_EXIT_FILE;
    }
    xm_cli_model_folder(a->generation.target.model, &folder);
    enum xm_status s = chat(&c, sampling, xm_strbuf_text(&folder), &err);
    xm_generator_destroy(c.generator);
    xm_chat_template_free(c.template);
    xm_token_list_free(&c.cached);
    xm_strbuf_free(&folder);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

int
xm_cli_chat(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe chat -m PATH [-s TEXT] [-n N] [options]",
        .about =
            "A conversation: each line of standard input is a message, the answer is\n"
            "written as it comes. /reset begins anew, /exit or end of input ends; "
            "Ctrl-C\n"
            "stops an answer. With --json the conversation is printed at the end.\n",
        .common = xm_cli_generation_options,
        .n_common = XM_CLI_N_GENERATION_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {.generation = {.top_p = 1.0f, .seed = XM_CLI_RANDOM_SEED},
                     .tokens = 512};
    struct xm_compile_options compile = {.last_logits = true};
    struct xm_sampling sampling;
    struct xm_cli_model m;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = xm_cli_sampling(&a.generation, &sampling);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.generation.target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    code = run_model(&m, &a, &sampling);
    xm_cli_model_close(&m);
    return code;
}
