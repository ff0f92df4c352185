/* SPDX-License-Identifier: Apache-2.0
 *
 * What has been typed in earlier chats: $XDG_STATE_HOME/xemoe/chat_history, by default below
 * ~/.local/state, readable by its owner only.
 *
 * A message is a line of the file; in it "\\" stands for a backslash and "\012" for the end of a
 * line. Several chats may add at the same time: each does so under a lock and behind what is there.
 * A file that grows beyond XM_HISTORY_MOST_BYTES loses its older half.
 */
#ifndef XM_PLUGIN_CLI_INPUT_HISTORY_H
#define XM_PLUGIN_CLI_INPUT_HISTORY_H

#include <stdbool.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_HISTORY_MOST_BYTES = 1 << 20,
    XM_HISTORY_MOST_MESSAGES = 1000,  /* that are read                  */
    XM_HISTORY_MOST_MESSAGE = 1 << 16 /* bytes; a longer one is not kept */
};

/* The file's path; its folder is made. Empty: there is no place for it. */
void xm_history_path(struct xm_strbuf *path);
/* Calls `take` for the last messages, the oldest first. */
void xm_history_read(const char *path, void (*take)(const char *message, void *ctx),
                     void *ctx);
/* False: it is not kept. */
bool xm_history_add(const char *path, const char *message);

#ifdef __cplusplus
}
#endif
#endif
