/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of messages typed in chats: the file $XDG_STATE_HOME/xemoe/chat_history, by default
 * below ~/.local/state, readable by its owner only.
 *
 * Each message is one line of the file, in which "\\" stands for a backslash and "\012" for a
 * newline. Several chats may append at the same time, because each locks the file. A file that
 * grows beyond XM_HISTORY_MOST_BYTES loses its older half.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_INPUT_HISTORY_H
#define XM_PLUGIN_PROGRAM_UTIL_INPUT_HISTORY_H

#include <stdbool.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_HISTORY_MOST_BYTES = 1 << 20,
    XM_HISTORY_MOST_MESSAGES = 1000, /* number of messages that are read, the last ones */
    XM_HISTORY_MOST_MESSAGE = 1 << 16 /* bytes; a longer message is not kept */
};

/* Appends the file's path and creates its folder. Appends nothing if neither variable nor HOME is
 * set, or if the folder cannot be created. */
void xm_history_path(struct xm_strbuf *path);
/* Calls `take` for each of the last messages, the oldest first. */
void xm_history_read(const char *path, void (*take)(const char *message, void *ctx),
                     void *ctx);
/* Appends a message; returns false if it was not written. */
bool xm_history_add(const char *path, const char *message);

#ifdef __cplusplus
}
#endif
#endif
