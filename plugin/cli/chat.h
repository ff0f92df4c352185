/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe chat: the structs and functions shared by its loop (chat.c), its turns
 * (chat_turn.c), its slash commands (chat_commands.c) and its settings (chat_settings.c).
 */
#ifndef XM_PLUGIN_CLI_CHAT_H
#define XM_PLUGIN_CLI_CHAT_H

#include "plugin/cli/conversation.h"
#include "plugin/cli/costs.h"
#include "plugin/cli/prefix_cache.h"
#include "plugin/cli/text_out.h"

struct xm_chat_args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *system;
    uint64_t tokens;            /* maximum number of tokens of an answer */
    struct xm_grammar *grammar; /* from the common options; owned; NULL: none */
    bool show_thinking, no_history, verbose;
    struct xm_cli_prefix_cache prefixes;
};

/* ---- settings ------------------------------------------------------------------------ */

/* The source of a setting's value. */
enum xm_chat_source {
    XM_CHAT_DEFAULT,
    XM_CHAT_OPTION,
    XM_CHAT_MODEL, /* the model's files recommend it */
    XM_CHAT_SET    /* set with the command /set */
};

/* The settings: the numeric rows of sampling.def, and two more. */
#define XM_SETTING_REAL(member)  XM_SETTING_##member,
#define XM_SETTING_WHOLE(member) XM_SETTING_##member,
#define XM_SETTING_COUNT(member) XM_SETTING_##member,
#define XM_SETTING_SEED(member)  XM_SETTING_##member,
#define XM_SETTING_BIAS(member)
#define XM_SETTING_SET(member)
#define XM_SETTING_SEQUENCES(member)
enum {
#define SAMPLING(kind, member, ...) XM_SETTING_##kind(member)
#include "plugin/text/sampling.def"
    XM_SETTING_context,
    XM_SETTING_tokens,
    XM_CHAT_N_SETTINGS
};
enum { XM_CHAT_SEED = 24 };
struct xm_chat_settings {
    struct xm_sampling sampling; /* the settings as the sampler takes them */
    enum xm_chat_source source[XM_CHAT_N_SETTINGS];
    char seed[XM_CHAT_SEED]; /* the value of /set seed */
};

/* Sets all settings to "not given". Call it before the options are parsed. */
void xm_chat_settings_open(struct xm_chat_args *a);
/* Checks the options, before a model is read. XM_EXIT_USAGE: one is out of range. */
int xm_chat_settings_check(const struct xm_chat_args *a, struct xm_chat_settings *s);
/* Settings that were not given get the values that the package recommends, else the defaults;
 * *lists, which the caller frees, must outlive *s. */
int xm_chat_settings_settle(struct xm_chat_args *a, const struct xm_package *package,
                            struct xm_sampling_lists *lists, struct xm_chat_settings *s);
/* Adds "sampling": {"temp": …} to the result, and "seed" if tokens are sampled. */
void xm_chat_settings_add_json(const struct xm_chat_args *a,
                               const struct xm_chat_settings *s, struct xm_json_out *j);

/* ---- the chat ------------------------------------------------------------------------ */

struct xm_chat {
    struct xm_chat_args *args; /* /set changes them */
    struct xm_chat_settings settings;
    struct xm_sampling_lists lists; /* lists of the options; settings points to them */
    /* values at the start of the chat, which "/set NAME default" restores */
    struct xm_chat_args first_args;
    struct xm_chat_settings first_settings;
    struct xm_cli_model *model;
    struct xm_prefix_store *prefixes; /* of the session; NULL: none */
    struct xm_session *session;
    struct xm_conversation conversation;
    /* tokens that the KV cache has room for; 0: it was never full */
    uint64_t memory_tokens;
    struct xm_generation_times all, last; /* all: sums over all answers */
    double first_s;                       /* seconds to the last answer's first token */
    uint64_t n_answers;
    bool interactive; /* a person types on a terminal                           */
    /* a turn failed, or a command that did not come from a terminal; the exit code is then not 0 */
    bool failed;
    bool lost;    /* the device is lost: the conversation ends              */
    bool stopped; /* Ctrl-C ended a conversation that is not interactive    */
};

/* Returns the maximum number of tokens of prompt and answer together; 0: no bound. */
uint64_t xm_chat_context(const struct xm_chat *c);
/* Answers the conversation, whose last message is the user's. After a failure, prints the reason,
 * removes the message from the conversation and records it as failed (conversation.h). */
void xm_chat_take_turn(struct xm_chat *c);
/* Fills in the times and the memory of all turns. */
void xm_chat_find_costs(const struct xm_chat *c, struct xm_costs *costs);

/* ---- commands ------------------------------------------------------------------------ */

/* What the loop does next, after a line of input. */
enum xm_chat_next {
    XM_CHAT_READ,   /* read the next line                                      */
    XM_CHAT_FAILED, /* as READ; the command failed, and a sentence was printed */
    XM_CHAT_ANSWER, /* answer the conversation, whose last message is a user's */
    XM_CHAT_END     /* end the program                                         */
};

/* Whether `line` begins with "/" like a command, even if there is no such command. If so, runs the
 * command and sets *next. */
bool xm_chat_command(struct xm_chat *c, const char *line, enum xm_chat_next *next);

/* The command /set: `words` is empty, a setting's name, or a name and a value: a value of the
 * option with that name, a word that the list of settings shows for 0, or "default". Returns false
 * if it was refused, after printing a sentence. */
bool xm_chat_set(struct xm_chat *c, const char *words);

#endif
