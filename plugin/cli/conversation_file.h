/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation as a file: {"messages": [{"role": "user", "content": "…"}, …]}, as xemoe chat
 * --json prints it.
 *
 * What is read may come from anybody: it is bounded, and has the form that templates want.
 */
#ifndef XM_PLUGIN_CLI_CONVERSATION_FILE_H
#define XM_PLUGIN_CLI_CONVERSATION_FILE_H

#include "plugin/cli/conversation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No file is longer. */
enum { XM_CONVERSATION_MOST_MIB = 64 };

/* For its owner alone. XM_INVALID: the file is there, and must not be replaced; or the path is a
 * folder, a pipe or a device. A failure leaves an old file as it was. */
enum xm_status xm_conversation_save(const struct xm_conversation *c, const char *path,
                                    bool replace, struct xm_error *err);
/* Takes the place of all messages; on failure they stay. Of the file's object other members are not
 * looked at. The first message may be the system's; then a user's and an assistant's take turns,
 * and the last one is an assistant's. */
enum xm_status xm_conversation_load(struct xm_conversation *c, const char *path,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
