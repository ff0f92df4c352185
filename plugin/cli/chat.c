/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe chat: a conversation on the terminal, or line by line through a pipe.
 *
 * Each turn passes the conversation to the session; answers are included without their thoughts, as
 * chat templates expect. The session feeds only the tokens that it does not hold yet. A failed turn
 * does not end the conversation (chat_turn.c).
 */
#include "plugin/cli/chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/grammar_option.h"
#include "plugin/cli/job.h"
#include "plugin/program_util/line_input.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/log.h"

/* clang-format off */
#define AT(member) offsetof(struct xm_chat_args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The conversation", "xemoe chat model.gguf -s 'Answer in one sentence.' -n 256"),
    { 's', "system", XM_CLI_TEXT,  AT(system), "TEXT", "the system message: instructions to the model before the conversation", "system-prompt -sys" },
    { 0,   "chat-template", XM_CLI_WORD, AT(generation.target.chat_template), "FILE", "a file with a Jinja template to use instead of the model's", "chat-template-file" },
    { 'n', "tokens", XM_CLI_LIMIT, AT(tokens), "N",    "at most N tokens in an answer (512); -1: as many as the context holds", "n-predict predict" },
    XM_CLI_PREFIX_CACHE_ROWS(AT(prefixes)),
    { 0,   "show-thinking", XM_CLI_FLAG, AT(show_thinking), NULL, "show the model's reasoning before its answer" },
    { 0,   "no-history",    XM_CLI_FLAG, AT(no_history),    NULL, "neither read nor keep the history of typed lines" },
    { 'v', "verbose",       XM_CLI_FLAG, AT(verbose),       NULL, "print times, passes and memory on standard error at the end" },
};
#undef AT
/* clang-format on */

/* Handles one line: a command, or a message to answer. */
static enum xm_status
take_line(struct xm_chat *c, const struct xm_strbuf *line, bool *end,
          struct xm_error *err)
{
    enum xm_chat_next next = XM_CHAT_ANSWER;
    if (xm_strbuf_is_blank(line))
        return XM_OK;
    if (!xm_chat_command(c, xm_strbuf_text(line), &next))
        XM_TRY(xm_conversation_add(&c->conversation, "user", xm_strbuf_text(line),
                                   line->n, err));
    if (next == XM_CHAT_ANSWER)
        xm_chat_take_turn(c);
    c->failed |= next == XM_CHAT_FAILED && !xm_terminal_is(STDIN_FILENO);
    *end = next == XM_CHAT_END || c->stopped || c->lost;
    return XM_OK;
}

/* Whether Ctrl-C ends the chat. It only clears typed text, if the text is known. *again: Ctrl-C was
 * pressed without typed text; the second one in a row ends the chat. */
static bool
is_enough(const struct xm_strbuf *line, bool *again)
{
    const bool is_second = *again && !line->n;
    xm_cli_forget_interrupt();
    *again = !line->n;
    if (*again && !is_second)
        fputs("(Ctrl-C again or Ctrl-D ends the chat)\n", stderr);
    return is_second;
}

/* Reads a line. In an MPI job the first process reads it, and all processes use it. */
static enum xm_line
read_line(struct xm_line_input *in, struct xm_strbuf *line, struct xm_error *err)
{
    struct xm_strbuf shared = {0};
    enum xm_line kind = XM_LINE_END;
    if (xm_mpi_job_is_first()) {
        kind = xm_line_input_read(in, line, err);
        xm_strbuf_printf(&shared, "%c%s", 'a' + (int)kind, xm_strbuf_text(line));
    }
    enum xm_status s = kind == XM_LINE_FAILED ? err->status : XM_OK;
    s = xm_mpi_job_share(s, &shared, err);
    if (s == XM_OK && !xm_mpi_job_is_first()) {
        kind = (enum xm_line)(shared.text[0] - 'a');
        xm_strbuf_clear(line);
        xm_strbuf_add(line, shared.text + 1);
    }
    xm_strbuf_free(&shared);
    return s == XM_OK ? kind : XM_LINE_FAILED;
}

static enum xm_status
converse(struct xm_chat *c, struct xm_line_input *in, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_OK;
    bool end = false, again = false;
    if (c->interactive) {
        xm_cli_note_interrupt();
        fputs("Type a message; /help lists commands, Ctrl-D ends the chat.\n", stderr);
    }
    while (s == XM_OK && !end) {
        switch (read_line(in, &line, err)) {
        case XM_LINE_TEXT:
            s = take_line(c, &line, &end, err);
            again = false;
            break;
        case XM_LINE_INTERRUPTED:
            end = is_enough(&line, &again);
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

/* Prints the whole conversation, even if it ended early. */
static enum xm_status
print_json(const struct xm_chat *c, struct xm_error *err)
{
    struct xm_json_out j;
    struct xm_costs costs = {0};
    xm_chat_find_costs(c, &costs);
    xm_json_begin(&j);
    xm_conversation_add_json(&c->conversation, true, &j);
    xm_conversation_add_failed_json(&c->conversation, &j);
    xm_chat_settings_add_json(c->args, &c->settings, &j);
    xm_costs_add_json(&j, c->model, &costs);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static void
print_costs(const struct xm_chat *c)
{
    struct xm_costs costs = {0};
    xm_chat_find_costs(c, &costs);
    xm_costs_measure_reading(c->model, false, &costs);
    xm_costs_print(c->model, &costs);
    if (c->settings.sampling.temperature > 0.0f)
        fprintf(stderr, "seed:    %" PRIu64 "\n", c->settings.sampling.seed);
}

static enum xm_status
begin(struct xm_chat *c, struct xm_error *err)
{
    char warning[XM_CLI_WARNING];
    const char *system = c->args->system;
    XM_TRY(xm_cli_prefix_cache_open(&c->args->prefixes, c->model->compiled, &c->prefixes,
                                    err));
    XM_TRY(xm_session_create(c->model->compiled, c->model->package, &c->session, err));
    xm_session_set_prefix_store(c->session, c->prefixes);
    xm_prefix_store_hold(c->prefixes);
    xm_session_set_sampling(c->session, &c->settings.sampling);
    if (xm_cli_beyond_training(xm_chat_context(c), c->model->package->facts.context,
                               warning))
        xm_log(XM_LOG_WARNING, "%s", warning);
    return system ? xm_conversation_add(&c->conversation, "system", system,
                                        strlen(system), err)
                  : XM_OK;
}

static enum xm_status
chat(struct xm_chat *c, struct xm_error *err)
{
    struct xm_line_input *in = NULL;
    XM_TRY(begin(c, err));
    XM_TRY(xm_line_input_create(c->interactive, !c->args->no_history, &in, err));
    enum xm_status s = converse(c, in, err);
    xm_line_input_free(in);
    if (c->args->generation.target.json) {
        const enum xm_status printed = print_json(c, err);
        s = s == XM_OK ? printed : s;
    }
    if (c->args->verbose)
        print_costs(c);
    return s;
}

static int
exit_code(const struct xm_chat *c)
{
    int code = xm_cli_flush();
    if (code == XM_EXIT_OK && c->stopped) {
        xm_cli_say_interrupted();
        return XM_EXIT_CANCELLED;
    }
    if (code == XM_EXIT_OK && c->lost)
        return XM_EXIT_DEVICE;
    return code == XM_EXIT_OK && c->failed ? XM_EXIT_FAILED : code;
}

static int
run_model(struct xm_chat *c)
{
    struct xm_error err = {0};
    c->interactive = xm_terminal_is(STDIN_FILENO) && xm_terminal_is(STDERR_FILENO);
    enum xm_status s = chat(c, &err);
    xm_session_destroy(c->session);
    xm_prefix_store_close(c->prefixes);
    xm_conversation_free(&c->conversation);
    if (s == XM_OK)
        return exit_code(c);
    xm_cli_flush();
    return xm_cli_failed(&err);
}

int
xm_cli_chat(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe chat MODEL [-s TEXT] [-n N] [options]",
        .about = "Holds a conversation: each line of standard input is a message (a "
                 "backslash at\nits end continues the message in the next line), and the "
                 "answer is written while\nit is generated. /help lists commands; /exit "
                 "or the end of input ends the chat;\nCtrl-C stops an answer. If the "
                 "context is full, the oldest messages are left out.\nSampling follows "
                 "the recommendation of the model's files, unless options "
                 "say\notherwise. With --json the conversation is printed at the end.\n",
        .common = xm_cli_generation_options,
        .n_common = XM_CLI_N_GENERATION_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
    };
    struct xm_chat_args a = {.tokens = 0};
    struct xm_compile_options compile = {.sampled_logits = true};
    struct xm_cli_model m;
    struct xm_chat c = {.args = &a, .model = &m};
    bool done;
    xm_chat_settings_open(&a);
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = xm_cli_prefix_cache_check(&a.prefixes, a.generation.target.device);
    if (code == XM_EXIT_OK)
        code = xm_chat_settings_check(&a, &c.settings);
    if (code == XM_EXIT_OK)
        code = xm_cli_grammar(&a.generation, &a.grammar);
    a.generation.target.warm_up = XM_CLI_WARM_UP_PROMPT;
    a.generation.target.tunes = true;
    a.generation.target.needs_tokenizer =
        "chat needs it, so put the file beside the model";
    a.generation.target.needs_chat_template = true;
    a.generation.target.check = xm_cli_check_biased;
    a.generation.target.check_ctx = &a.generation;
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.generation.target, &compile);
    if (code != XM_EXIT_OK) {
        xm_grammar_free(a.grammar);
        return code;
    }
    code = xm_chat_settings_settle(&a, m.package, &c.lists, &c.settings);
    c.first_args = a;
    c.first_settings = c.settings;
    if (code == XM_EXIT_OK)
        code = run_model(&c);
    xm_sampling_lists_free(&c.lists);
    xm_cli_model_close(&m);
    xm_grammar_free(c.first_args.grammar);
    return code;
}
