/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of a chat: lines that begin with a slash.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/chat.h"
#include "plugin/cli/conversation_file.h"
#include "plugin/cli/job.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/home.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/suggest.h"
#include "runtime/util/number.h"

static enum xm_chat_next
run_set(struct xm_chat *c, const char *words)
{
    return xm_chat_set(c, words) ? XM_CHAT_READ : XM_CHAT_FAILED;
}

/* Appends the path; "~/" at its beginning stands for the home folder, as in shells. */
static enum xm_status
find_path(const char *typed, struct xm_strbuf *out, struct xm_error *err)
{
    const char *home = strncmp(typed, "~/", 2) == 0 ? xm_home_folder() : NULL;
    xm_strbuf_add(out, home ? home : "");
    xm_strbuf_add(out, home ? typed + 1 : typed);
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a path");
}

static enum xm_chat_next
save(struct xm_chat *c, const char *typed, bool replace)
{
    struct xm_strbuf path = {0};
    struct xm_error err = {0};
    if (!xm_mpi_job_is_first())
        return XM_CHAT_READ; /* the job's first process writes the file and prints the result */
    enum xm_status s = find_path(typed, &path, &err);
    if (s == XM_OK)
        s = xm_conversation_save(&c->conversation, xm_strbuf_text(&path), replace, &err);
    xm_strbuf_free(&path);
    if (s != XM_OK)
        xm_say("%s%s", err.text,
               s == XM_INVALID && !replace ? ": /save! replaces a file" : "");
    else
        fprintf(stderr, "%zu message%s saved\n", c->conversation.n,
                c->conversation.n == 1 ? " is" : "s are");
    return s == XM_OK ? XM_CHAT_READ : XM_CHAT_FAILED;
}

static enum xm_chat_next
run_save(struct xm_chat *c, const char *path)
{
    return save(c, path, false);
}

static enum xm_chat_next
run_save_over(struct xm_chat *c, const char *path)
{
    return save(c, path, true);
}

static enum xm_chat_next
run_load(struct xm_chat *c, const char *typed)
{
    struct xm_strbuf path = {0};
    struct xm_error err = {0};
    enum xm_status s = find_path(typed, &path, &err);
    if (s == XM_OK)
        s = xm_conversation_load(&c->conversation, xm_strbuf_text(&path), &err);
    xm_strbuf_free(&path);
    if (s != XM_OK)
        xm_say("%s", err.text);
    else
        fprintf(stderr, "the conversation of the file is loaded, %zu message%s\n",
                c->conversation.n, xm_plural(c->conversation.n));
    return s == XM_OK ? XM_CHAT_READ : XM_CHAT_FAILED;
}

static void
print_rate(struct xm_lines *o, const char *what, const struct xm_generation_times *t)
{
    const double rate = xm_costs_decode_rate(t);
    xm_lines_add(o, "  %-13s%" PRIu64 " token%s read in %.2f s", what, t->prompt_tokens,
                 xm_plural(t->prompt_tokens), t->prompt_s);
    if (t->reused_tokens)
        xm_lines_add(o, ", %" PRIu64 " more from the KV cache", t->reused_tokens);
    xm_lines_add(o, ", %" PRIu64 " decoded", t->decode_tokens);
    if (rate > 0.0)
        xm_lines_add(o, " at %.1f tokens/s", rate);
}

static enum xm_chat_next
run_stats(struct xm_chat *c, const char *nothing)
{
    struct xm_costs costs = {0};
    struct xm_lines o = xm_lines_to(stderr);
    const uint64_t held = xm_session_held(c->session);
    (void)nothing;
    xm_chat_find_costs(c, &costs);
    xm_lines_add(&o, "  conversation %zu message%s", c->conversation.n,
                 xm_plural(c->conversation.n));
    if (xm_chat_context(c))
        xm_lines_add(&o, ", context of %" PRIu64 " tokens", xm_chat_context(c));
    xm_lines_add(&o, "\n  KV cache     %" PRIu64 " token%s, %.1f MiB\n", held,
                 xm_plural(held), (double)costs.kv / 1048576.0);
    if (c->n_answers) {
        print_rate(&o, "last answer", &c->last);
        xm_lines_add(&o, ", first token after %.2f s\n", c->first_s);
        print_rate(&o, "all answers", &c->all);
        xm_lines_add(&o, ", %" PRIu64 " answer%s\n", c->n_answers,
                     xm_plural(c->n_answers));
    }
    xm_lines_end(&o);
    return XM_CHAT_READ;
}

static enum xm_chat_next
run_reset(struct xm_chat *c, const char *nothing)
{
    (void)nothing;
    xm_conversation_clear(&c->conversation);
    fputs("the conversation is cleared\n", stderr);
    return XM_CHAT_READ;
}

static enum xm_chat_next
run_undo(struct xm_chat *c, const char *nothing)
{
    (void)nothing;
    const bool is_back = xm_conversation_undo(&c->conversation);
    fputs(is_back ? "the last message is removed\n" : "there is no message to remove\n",
          stderr);
    return is_back ? XM_CHAT_READ : XM_CHAT_FAILED;
}

static enum xm_chat_next
run_retry(struct xm_chat *c, const char *nothing)
{
    (void)nothing;
    if (xm_conversation_undo_answer(&c->conversation))
        return XM_CHAT_ANSWER;
    fputs("there is no message to answer again\n", stderr);
    return XM_CHAT_FAILED;
}

static enum xm_chat_next
run_exit(struct xm_chat *c, const char *nothing)
{
    (void)c;
    (void)nothing;
    return XM_CHAT_END;
}

static enum xm_chat_next run_help(struct xm_chat *c, const char *nothing);

enum words { NONE, MAY_HAVE, ONE };

/* clang-format off */
static const struct command {
    const char *name, *other; /* other: another name that users type; NULL: none */
    enum words words; /* what follows the name */
    const char *shown; /* the words as the help shows them */
    enum xm_chat_next (*run)(struct xm_chat *c, const char *words);
    const char *help;
} commands[] = {
    { "/help",  "/?",     NONE,     "",             run_help,  "show this list" },
    { "/set",   NULL,     MAY_HAVE, "[NAME VALUE]", run_set,   "list the settings, or change one: /set temp 0.7; VALUE default restores the initial value" },
    { "/stats", NULL,     NONE,     "",             run_stats, "show tokens, memory of the KV cache and speeds" },
    { "/reset", "/clear", NONE,     "",             run_reset, "clear the conversation; the text of --system stays" },
    { "/undo",  NULL,     NONE,     "",             run_undo,  "remove the last message and its answer" },
    { "/retry", "/regen", NONE,     "",             run_retry, "answer the last message again" },
    { "/save",  NULL,     ONE,      "FILE",         run_save,  "write the conversation to a new file, as JSON" },
    { "/save!", NULL,     ONE,      "FILE",         run_save_over, "the same, but replace an existing file" },
    { "/load",  NULL,     ONE,      "FILE",         run_load,  "continue the conversation of such a file" },
    { "/exit",  "/quit",  NONE,     "",             run_exit,  "end the chat, as Ctrl-D does" },
};
/* clang-format on */

static enum xm_chat_next
run_help(struct xm_chat *c, const char *nothing)
{
    struct xm_lines o = xm_lines_to(stderr);
    (void)c;
    (void)nothing;
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++)
        xm_lines_add(&o, "  %-7s%-14s%s\n", commands[i].name, commands[i].shown,
                     commands[i].help);
    xm_lines_add(&o, "End a line with a backslash to continue the message in the next "
                     "line. Ctrl-C stops an answer or clears the line.\n");
    xm_lines_end(&o);
    return XM_CHAT_READ;
}

static bool
is_word(const char *name, const char *line, size_t n)
{
    return name && strlen(name) == n && memcmp(name, line, n) == 0;
}

static enum xm_chat_next
run_command(struct xm_chat *c, const struct command *command, const char *words)
{
    if (command->words == NONE && *words) {
        fprintf(stderr, "%s takes no arguments\n", command->name);
        return XM_CHAT_FAILED;
    }
    if (command->words == ONE && !*words) {
        fprintf(stderr, "%s needs a file: %s %s\n", command->name, command->name,
                command->shown);
        return XM_CHAT_FAILED;
    }
    return command->run(c, words);
}

/* Whether the line was meant as a command: one word after a slash, or several words of which the
 * first is similar to a command. "/usr/bin holds what?" is a message. */
static bool
was_meant(const char *line, size_t n, const char *words)
{
    struct xm_suggestion near = xm_suggest_for(line, n);
    if (line[0] != '/' || memchr(line + 1, '/', n - 1))
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++) {
        xm_suggest(&near, commands[i].name);
        xm_suggest(&near, commands[i].other);
    }
    if (*words && !near.best)
        return false;
    if (near.best)
        fprintf(stderr, "there is no command %.*s: did you mean %s? /help lists them\n",
                (int)n, line, near.best);
    else
        fprintf(stderr, "there is no command %.*s; /help lists them\n", (int)n, line);
    return true;
}

/* Runs the command of a line, without blanks at its end. */
static bool
carry_out(struct xm_chat *c, const char *line, enum xm_chat_next *next)
{
    static const char blanks[] = " \t\n";
    const size_t n = strcspn(line, blanks);
    const char *words = line + n + strspn(line + n, blanks);
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++) {
        if (!is_word(commands[i].name, line, n) && !is_word(commands[i].other, line, n))
            continue;
        *next = run_command(c, &commands[i], words);
        return true;
    }
    if (!was_meant(line, n, words))
        return false;
    *next = XM_CHAT_FAILED;
    return true;
}

bool
xm_chat_command(struct xm_chat *c, const char *line, enum xm_chat_next *next)
{
    struct xm_strbuf trimmed = {0};
    size_t n = strlen(line);
    if (line[0] != '/')
        return false;
    while (n && strchr(" \t\n", line[n - 1]))
        n--;
    xm_strbuf_add_n(&trimmed, line, n);
    const bool is_one =
        xm_strbuf_ok(&trimmed) && carry_out(c, xm_strbuf_text(&trimmed), next);
    xm_strbuf_free(&trimmed);
    return is_one;
}
