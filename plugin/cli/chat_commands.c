/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of a chat: lines that begin with a slash.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/chat.h"
#include "runtime/util/compiler.h"

static enum xm_chat_next run_help(struct xm_conversation *c);

static enum xm_chat_next
run_reset(struct xm_conversation *c)
{
    xm_conversation_clear(c);
    fputs("the conversation begins anew\n", stderr);
    return XM_CHAT_READ;
}

static enum xm_chat_next
run_undo(struct xm_conversation *c)
{
    fputs(xm_conversation_undo(c) ? "the last message is taken back\n"
                                  : "there is nothing to take back\n",
          stderr);
    return XM_CHAT_READ;
}

static enum xm_chat_next
run_retry(struct xm_conversation *c)
{
    if (xm_conversation_undo_answer(c))
        return XM_CHAT_ANSWER;
    fputs("there is nothing to answer again\n", stderr);
    return XM_CHAT_READ;
}

static enum xm_chat_next
run_exit(struct xm_conversation *c)
{
    (void)c;
    return XM_CHAT_END;
}

/* clang-format off */
static const struct {
    const char *name, *other; /* other: what people type as well; NULL: nothing */
    enum xm_chat_next (*run)(struct xm_conversation *c);
    const char *help;
} commands[] = {
    { "/help",  "/?",     run_help,  "this list" },
    { "/reset", "/clear", run_reset, "begin anew; what --system says stays" },
    { "/undo",  NULL,     run_undo,  "take back the last message and its answer" },
    { "/retry", "/regen", run_retry, "answer the last message again" },
    { "/exit",  "/quit",  run_exit,  "end, as Ctrl-D does" },
};
/* clang-format on */

static enum xm_chat_next
run_help(struct xm_conversation *c)
{
    (void)c;
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++)
        fprintf(stderr, "  %-8s%s\n", commands[i].name, commands[i].help);
    fputs("A backslash at the end of a line goes on in the next one. Ctrl-C stops an "
          "answer,\nor clears the line.\n",
          stderr);
    return XM_CHAT_READ;
}

/* "/usr/bin holds what?" is a message. */
static bool
looks_like_a_command(const char *line)
{
    return line[0] == '/' && line[1 + strcspn(line + 1, "/ \t\n")] == '\0';
}

bool
xm_chat_command(struct xm_conversation *c, const char *line, enum xm_chat_next *next)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(commands); i++) {
        const char *other = commands[i].other;
        if (strcmp(line, commands[i].name) != 0 && !(other && strcmp(line, other) == 0))
            continue;
        *next = commands[i].run(c);
        return true;
    }
    if (!looks_like_a_command(line))
        return false;
    fprintf(stderr, "there is no command %s; /help lists them\n", line);
    *next = XM_CHAT_READ;
    return true;
}
