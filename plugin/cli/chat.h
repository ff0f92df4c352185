/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop of xemoe chat (chat.c) and its commands (chat_commands.c) share.
 */
#ifndef XM_PLUGIN_CLI_CHAT_H
#define XM_PLUGIN_CLI_CHAT_H

#include "plugin/cli/conversation.h"

/* What to do after a line. */
enum xm_chat_next {
    XM_CHAT_READ,   /* the next line                                          */
    XM_CHAT_ANSWER, /* answer the conversation, whose last message is a user's */
    XM_CHAT_END
};

/* Whether a line is a command, or was meant as one: one word behind a slash. Then it is carried
 * out, and *next says what follows. */
bool xm_chat_command(struct xm_conversation *c, const char *line,
                     enum xm_chat_next *next);

#endif
