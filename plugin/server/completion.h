/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of a request, from its prompts to the answer in the form of an API:
 *
 *     request ──► prompts and a wish ──► jobs of an engine ──► pieces, ends ──► dialect ──► answer
 *
 * A dialect writes an API's answers: the events of a stream, and an answer in one piece. The thread
 * that runs the model's steps calls its functions, which append to the exchange, with the
 * exchange's lock held. If an answer fails after it has begun, it ends with an event that says so;
 * before, the HTTP status says it. When one text fails, the other texts of the request are
 * cancelled.
 */
#ifndef XM_PLUGIN_SERVER_COMPLETION_H
#define XM_PLUGIN_SERVER_COMPLETION_H

#include "plugin/program_util/json_out.h"
#include "plugin/server/server.h"
#include "plugin/server/wish.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_completion;

/* The latest piece of a part of an answer. */
struct xm_text_part {
    enum xm_answer_part part;
    const char *text;
    size_t n;
    const struct xm_generation_result *so_far;
    /* of XM_ANSWER_CALL: the last of so_far's calls; else NULL */
    const struct xm_tool_call *call;
};

struct xm_completion_text {
    struct xm_completion *of;
    size_t index; /* of the text in the answer */
    const struct xm_token_list *prompt;
    uint64_t job;
    struct xm_strbuf text, thought; /* generated so far */
    size_t echoed; /* number of bytes of `text` that are the echoed prompt */
    /* n_told: number of ids whose probabilities have been handled. told: indices of the ids that
     * belong to the text, whose probabilities are in the answer. */
    size_t n_told;
    struct xm_token_list told;
    /* number of its first ids that are given: the prompt's after its first token */
    size_t n_forced;
    double last_token; /* time of the last token; 0: none yet */
    bool is_over;
    /* The reason in OpenAI's terms: "stop", "length" or "tool_calls"; NULL: not over. */
    const char *finish;
    struct xm_generation_result result; /* valid when the text is over */
    /* /v1/messages, streams: the open content block (anthropic.c). */
    int open_block;
    /* /v1/responses, streams: number of output items that have begun, and the message's number
     * among them, from 1; 0: there is no message. */
    int n_items, message_place;
    /* /v1/completions: number of bytes of the tokens whose probabilities have been sent, and
     * whether the prompt's first token, which has no probability, has been sent. */
    size_t told_bytes;
    bool has_told_first;
};

struct xm_dialect {
    bool is_chat; /* answers conversations: the model needs a chat template */
    /* Read the wish for the texts, and the prompts, from the body. */
    bool (*read_wish)(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r);
    bool (*add_prompts)(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r);
    const char *prefix; /* of the answer's id: "chatcmpl-" */
    /* Write a stream; called in this order. Parts of several texts alternate. NULL: writes
     * nothing. */
    void (*begin)(struct xm_completion *c);
    void (*part)(struct xm_completion_text *t, const struct xm_text_part *part);
    void (*end)(struct xm_completion_text *t);
    void (*finish)(struct xm_completion *c);
    void (*fail)(struct xm_completion *c, const struct xm_refusal *why);
    /* Writes an answer in one piece into the root object. */
    void (*whole)(struct xm_completion *c, struct xm_json_out *j);
};

struct xm_completion {
    struct xm_exchange *x; /* owns the completion */
    struct xm_served *model;
    const struct xm_dialect *dialect;
    yyjson_doc *body; /* owned; the wish refers to its strings */
    struct xm_wish wish;
    bool is_chat;                  /* thoughts are separated from the text */
    bool echo;                     /* the text begins with the prompt  */
    const char *where;             /* name of the member with the prompts; static */
    struct xm_token_list *prompts; /* owned */
    size_t n_prompts;
    struct xm_completion_text *texts; /* owned; texts of one prompt are adjacent */
    size_t n_texts, n_left;
    char id[48];
    int64_t created; /* seconds since 1970 */
    double start;
    bool has_begun; /* its stream has begun */
    struct xm_refusal failure;
    int next; /* the dialect's number of the next event or block */
};

/* Answers the exchange in this dialect: reads its body and begins the texts, or refuses it. The
 * exchange owns the completion. */
void xm_completion_answer(struct xm_exchange *x, const struct xm_dialect *dialect);
/* Adds a prompt. Refuses it if it has no room in the context; `where` names the member of the
 * body. */
bool xm_completion_add(struct xm_completion *c, const struct xm_prompt *prompt,
                       const char *where, struct xm_refusal *r);

/* ---- functions for dialects ---- */

/* Appends an event of a stream with this data, and frees *j. event: its name; NULL: none. */
void xm_completion_event(struct xm_completion *c, const char *event,
                         struct xm_json_out *j);
/* Numbers of tokens: of the prompts, of these the reused ones, and generated ones. */
struct xm_usage {
    uint64_t prompt, reused, made;
};
struct xm_usage xm_completion_usage(const struct xm_completion *c);
/* Appends the id of the text's tool call number `call`. */
void xm_completion_call_id(const struct xm_completion_text *t, size_t call,
                           struct xm_strbuf *out);
/* Appends the text of a single token. Returns false after a failure. */
bool xm_completion_token(const struct xm_completion *c, int32_t id,
                         struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
