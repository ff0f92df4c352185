/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a chat, and the range of them that still fits the model's context.
 *
 *     [system] user assistant user assistant … user
 *
 * A turn is a user's message and the answer to it. When the conversation exceeds the context, its
 * oldest turns are left out of the prompt; the system message stays. They remain in the record,
 * which is saved. A turn that failed is removed from the messages and kept in a list of its own.
 */
#ifndef XM_PLUGIN_CLI_CONVERSATION_H
#define XM_PLUGIN_CLI_CONVERSATION_H

#include "plugin/program_util/json_out.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_message {
    const char *role;      /* "system", "user" or "assistant"; static */
    struct xm_strbuf text; /* owned                                   */
};

/* A turn that failed; the texts are owned. */
struct xm_failed_turn {
    struct xm_strbuf text, answer; /* the user's message; the part of the answer so far */
    struct xm_strbuf error;        /* the sentence */
    size_t behind;                 /* number of messages before the failed turn */
};

/* Zero-initialise. Used by one thread at a time. */
struct xm_conversation {
    struct xm_message *messages; /* owned */
    size_t n;
    size_t first; /* the oldest message in the prompt, not counting the system message */
    struct xm_failed_turn *failed; /* owned */
    size_t n_failed;
};

/* Appends a message; copies `text` (n bytes). `role` is "system", "user" or "assistant", static. */
enum xm_status xm_conversation_add(struct xm_conversation *c, const char *role,
                                   const char *text, size_t n, struct xm_error *err);
/* Removes the last message. */
void xm_conversation_pop(struct xm_conversation *c);
/* Removes the last message, a user's, whose answer failed, and records it as a failed turn with the
 * part of the answer so far. Without memory for the record, the message is only removed. */
void xm_conversation_fail(struct xm_conversation *c, const struct xm_strbuf *answer,
                          const char *error);
/* Removes the last turn; removes only its answer. False: there is none. */
bool xm_conversation_undo(struct xm_conversation *c);
bool xm_conversation_undo_answer(struct xm_conversation *c);
/* Removes all messages except the system message. */
void xm_conversation_clear(struct xm_conversation *c);
/* Leaves the oldest turn out of the prompt; false: the prompt has only one turn. */
bool xm_conversation_leave_out(struct xm_conversation *c);
/* Adds "messages": […] to the result: `all`, or those of the prompt. */
yyjson_mut_val *xm_conversation_add_json(const struct xm_conversation *c, bool all,
                                         struct xm_json_out *j);
/* Adds "failed": [{"content": …, "answer": …, "error": …, "behind": …}], if any turn failed. */
void xm_conversation_add_failed_json(const struct xm_conversation *c,
                                     struct xm_json_out *j);
/* The prompt's messages as a JSON array for xm_chat_template_render, which the caller frees with
 * xm_free. NULL: no memory; err has a sentence. */
char *xm_conversation_messages(const struct xm_conversation *c, struct xm_error *err);
void xm_conversation_free(struct xm_conversation *c);

#ifdef __cplusplus
}
#endif
#endif
