/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a chat, and those of them that the model still sees.
 *
 *     [system] user assistant user assistant … user
 *
 * A turn is a message of the user and what follows it. When a conversation no longer fits, its
 * oldest turns are left out; the system's message stays. They are left out of what the model
 * sees only: the record keeps all. A turn that failed is taken back, and noted apart.
 */
#ifndef XM_PLUGIN_CLI_CONVERSATION_H
#define XM_PLUGIN_CLI_CONVERSATION_H

#include "plugin/program_util/json_out.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_message {
    const char *role;      /* static */
    struct xm_strbuf text; /* owned  */
};

/* A turn that failed; the texts are owned. */
struct xm_failed_turn {
    struct xm_strbuf text, answer; /* the user's; what came of the answer */
    struct xm_strbuf error;
    size_t behind; /* so many messages were there before it */
};

/* Zero-initialise. */
struct xm_conversation {
    struct xm_message *messages; /* owned */
    size_t n, first; /* first: of the messages that are seen, behind the system's */
    struct xm_failed_turn *failed; /* owned */
    size_t n_failed;
};

enum xm_status xm_conversation_add(struct xm_conversation *c, const char *role,
                                   const char *text, size_t n, struct xm_error *err);
/* Takes back the last message. */
void xm_conversation_pop(struct xm_conversation *c);
/* Takes back the last message, a user's, whose answer failed, and notes it with what had come of
 * the answer. Where there is no memory for the note, it is only taken back. */
void xm_conversation_fail(struct xm_conversation *c, const struct xm_strbuf *answer,
                          const char *error);
/* Takes back the last turn, or only what was answered; false: there is none. */
bool xm_conversation_undo(struct xm_conversation *c);
bool xm_conversation_undo_answer(struct xm_conversation *c);
/* All but the system's message. */
void xm_conversation_clear(struct xm_conversation *c);
/* Leaves out the oldest turn that is seen; false: only the last one is left. */
bool xm_conversation_leave_out(struct xm_conversation *c);
/* "messages": […], those that are seen, or all. */
yyjson_mut_val *xm_conversation_add_json(const struct xm_conversation *c, bool all,
                                         struct xm_json_out *j);
/* "failed": [{"content": …, "answer": …, "error": …, "behind": …}]; nothing where none has. */
void xm_conversation_add_failed_json(const struct xm_conversation *c,
                                     struct xm_json_out *j);
/* Those that are seen, as the text that a prompt takes; the caller frees it (xm_free). NULL: no
 * memory, err says so. */
char *xm_conversation_messages(const struct xm_conversation *c, struct xm_error *err);
void xm_conversation_free(struct xm_conversation *c);

#ifdef __cplusplus
}
#endif
#endif
