/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and loads a conversation: {"messages": [{"role": "user", "content": "…"}, …]}, as xemoe
 * chat --json prints it.
 *
 * A file may come from anybody: its size is bounded, and its roles are checked.
 */
#ifndef XM_PLUGIN_CLI_CONVERSATION_FILE_H
#define XM_PLUGIN_CLI_CONVERSATION_FILE_H

#include "plugin/cli/conversation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest file, in MiB. */
enum { XM_CONVERSATION_MOST_MIB = 64 };

/* Writes a file that only its owner can read. XM_INVALID: the file exists and `replace` is false,
 * or the path is a folder, a pipe or a device. After a failure an old file is unchanged. */
enum xm_status xm_conversation_save(const struct xm_conversation *c, const char *path,
                                    bool replace, struct xm_error *err);
/* Replaces all messages by the file's; on failure they are unchanged. Other members of the file are
 * ignored. The first message may be the system's; the following messages must alternate between
 * user and assistant, and the last one must be the assistant's. */
enum xm_status xm_conversation_load(struct xm_conversation *c, const char *path,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
