/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts that a request asks for, from its prompts to the answer, in the words of an API:
 *
 *     request ──► prompts and a wish ──► jobs of an engine ──► pieces, ends ──► dialect ──► answer
 *
 * A dialect is what tells the APIs apart: the events of a stream, and the answer in one. Its
 * functions are called with the exchange's lock, by the thread that steps the model, and append to
 * the exchange. What has begun and fails ends with an event that says so; what has not is answered
 * by HTTP's status. When a text fails, those beside it are cancelled.
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

/* Of an answer's part, that which became certain last. */
struct xm_text_part {
    enum xm_answer_part part;
    const char *text;
    size_t n;
    const struct xm_generation_result *so_far;
    const struct xm_tool_call
        *call; /* of XM_ANSWER_CALL, the last of so_far; else NULL */
};

struct xm_completion_text {
    struct xm_completion *of;
    size_t index; /* of the text in the answer */
    const struct xm_token_list *prompt;
    uint64_t job;
    struct xm_strbuf text, thought; /* so far */
    size_t echoed;                  /* bytes of the text that are the prompt's */
    /* Of its ids, the first whose probabilities have not been told, and those that were told of the
     * text, as numbers into the ids. */
    size_t n_told;
    struct xm_token_list told;
    size_t
        n_forced; /* of its ids, the first ones are the prompt's behind its first token */
    double last_token; /* when it came; 0: none has */
    bool is_over;
    /* As OpenAI has it: "stop", "length" or "tool_calls"; NULL: not over. */
    const char *finish;
    struct xm_generation_result result; /* once it is over */
    /* Of a stream. /v1/messages: the block that is open (anthropic.c). */
    int open_block;
    /* /v1/responses: the items that have begun, and the message's place among them, from 1; 0:
     * there is none. */
    int n_items, message_place;
    /* /v1/completions: bytes of the tokens whose probabilities were told, and whether the prompt's
     * first token was, which has none. */
    size_t told_bytes;
    bool has_told_first;
};

struct xm_dialect {
    bool is_chat; /* answers conversations: the model needs a chat template */
    /* Read what the body wishes of the texts, and its prompts. */
    bool (*read_wish)(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r);
    bool (*add_prompts)(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r);
    const char *prefix; /* of the answer's id */
    /* Of a stream, in this order; parts of several texts come as they are made. NULL: nothing. */
    void (*begin)(struct xm_completion *c);
    void (*part)(struct xm_completion_text *t, const struct xm_text_part *part);
    void (*end)(struct xm_completion_text *t);
    void (*finish)(struct xm_completion *c);
    void (*fail)(struct xm_completion *c, const struct xm_refusal *why);
    /* The whole answer, which is no stream, into the root. */
    void (*whole)(struct xm_completion *c, struct xm_json_out *j);
};

struct xm_completion {
    struct xm_exchange *x; /* owns it */
    struct xm_served *model;
    const struct xm_dialect *dialect;
    yyjson_doc *body; /* owned; the wish points into it */
    struct xm_wish wish;
    bool is_chat;                  /* thoughts are apart from the text */
    bool echo;                     /* the text begins with the prompt  */
    const char *where;             /* the member that has the prompts; static */
    struct xm_token_list *prompts; /* owned */
    size_t n_prompts;
    struct xm_completion_text *texts; /* owned; those of a prompt stand together */
    size_t n_texts, n_left;
    char id[48];
    int64_t created; /* seconds since 1970 */
    double start;
    bool has_begun; /* its stream */
    struct xm_refusal failure;
    int next; /* the dialect's: number of the next event or block */
};

/* Answers the exchange in this dialect: reads its body and begins the texts, or refuses it. The
 * completion belongs to the exchange. */
void xm_completion_answer(struct xm_exchange *x, const struct xm_dialect *dialect);
/* Adds a prompt, and refuses it where it has no room in the context. `where` names the member. */
bool xm_completion_add(struct xm_completion *c, const struct xm_prompt *prompt,
                       const char *where, struct xm_refusal *r);

/* ---- for dialects ---- */

/* Appends an event of a stream with this data; ends *j. event: its name; NULL: none. */
void xm_completion_event(struct xm_completion *c, const char *event,
                         struct xm_json_out *j);
/* Tokens of prompts, of them reused ones, and new ones. */
struct xm_usage {
    uint64_t prompt, reused, made;
};
struct xm_usage xm_completion_usage(const struct xm_completion *c);
/* Appends the id of the text's call of a tool with this number. */
void xm_completion_call_id(const struct xm_completion_text *t, size_t call,
                           struct xm_strbuf *out);
/* Appends the text of a single token; false: there is no memory. */
bool xm_completion_token(const struct xm_completion *c, int32_t id,
                         struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
