/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe chat: what its loop (chat.c), its turns (chat_turn.c), its commands
 * (chat_commands.c) and its settings (chat_settings.c) share.
 */
#ifndef XM_PLUGIN_CLI_CHAT_H
#define XM_PLUGIN_CLI_CHAT_H

#include "plugin/cli/conversation.h"
#include "plugin/cli/costs.h"
#include "plugin/cli/text_out.h"

struct xm_chat_args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *system;
    uint64_t tokens; /* of an answer, at most */
    bool show_thinking, no_history, verbose;
};

/* ---- settings ------------------------------------------------------------------------ */

/* Where a value comes from. */
enum xm_chat_source {
    XM_CHAT_DEFAULT,
    XM_CHAT_OPTION,
    XM_CHAT_MODEL, /* the model's files recommend it */
    XM_CHAT_SET    /* /set                           */
};

enum { XM_CHAT_N_SETTINGS = 11, XM_CHAT_SEED = 24 };
struct xm_chat_settings {
    struct xm_sampling sampling; /* what the settings come to */
    enum xm_chat_source source[XM_CHAT_N_SETTINGS];
    char seed[XM_CHAT_SEED]; /* the text that /set gave */
};

/* Before options are parsed: what is not given can be told from what is. */
void xm_chat_settings_open(struct xm_chat_args *a);
/* Options that are wrong: XM_EXIT_USAGE, before a model is read. */
int xm_chat_settings_check(const struct xm_chat_args *a, struct xm_chat_settings *s);
/* What is open becomes what the package recommends, or the default. */
int xm_chat_settings_settle(struct xm_chat_args *a, const struct xm_package *package,
                            struct xm_chat_settings *s);
/* "sampling": {"temp": …}, and "seed" where it is used. */
void xm_chat_settings_add_json(const struct xm_chat_args *a,
                               const struct xm_chat_settings *s, struct xm_json_out *j);

/* ---- the chat ------------------------------------------------------------------------ */

struct xm_chat {
    struct xm_chat_args *args; /* /set changes them */
    struct xm_chat_settings settings;
    struct xm_cli_model *model;
    struct xm_session *session;
    struct xm_conversation conversation;
    /* Tokens that memory has room for; 0: it was never full. */
    uint64_t memory_tokens;
    struct xm_generation_times all, last; /* of all answers; of the last one */
    double first_s;                       /* until the last one's first token */
    uint64_t n_answers;
    bool interactive; /* a person types                                  */
    bool failed;      /* a turn                                           */
    bool lost;        /* the device, and with it the rest of the messages */
    bool stopped;     /* by Ctrl-C, where nobody types                    */
};

/* What bounds prompt and answer together; 0: nothing. */
uint64_t xm_chat_context(const struct xm_chat *c);
/* Answers the conversation, whose last message is a user's. What fails is said, and noted in the
 * record; the message is taken back. */
void xm_chat_take_turn(struct xm_chat *c);
/* What all turns have cost. */
void xm_chat_find_costs(const struct xm_chat *c, struct xm_costs *costs);

/* ---- commands ------------------------------------------------------------------------ */

/* What to do after a line. */
enum xm_chat_next {
    XM_CHAT_READ,   /* the next line                                          */
    XM_CHAT_ANSWER, /* answer the conversation, whose last message is a user's */
    XM_CHAT_END
};

/* Whether a line is a command, or was meant as one. Then it is carried out, and *next says what
 * follows. */
bool xm_chat_command(struct xm_chat *c, const char *line, enum xm_chat_next *next);

/* /set without words, with a name, or with a name and a value. */
void xm_chat_set(struct xm_chat *c, const char *words);

#endif
