/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a chat model's answer into the text for the user, the reasoning ("thought") before it, and
 * calls of tools.
 *
 * Some models delimit them with marks, tokens that exist for this purpose:
 *
 *     channels   <|channel|>analysis<|message|>thought<|end|>
 *                <|start|>assistant<|channel|>final<|message|>text<|return|>
 *     tags       <think>thought</think>text
 *     named tags <|channel>thought\nthought<channel|>text
 *     calls      <|channel|>commentary to=functions.f<|message|>{}<|call|>
 *                <tool_call>{"name": "f", "arguments": {}}</tool_call>
 *                <|tool_call>call:f{}<tool_call|>
 *
 * A call is held back until its end shows that it is one (tool_calls.h); what is none is text, with
 * its marks where it has them. One that the answer ends in is taken if it is whole, or is_cut.
 *
 * A model has the format whose marks are in its tokenizer and in its chat template. The caller
 * passes the generated tokens in order: marks by id, the text between them in pieces of any length,
 * as the detokenizer returns them. A mark's characters in plain text are text.
 */
#ifndef XM_PLUGIN_TEXT_ANSWER_H
#define XM_PLUGIN_TEXT_ANSWER_H

#include "plugin/text/chat_template.h"
#include "plugin/text/tokenizer.h"
#include "plugin/text/tool_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_answer_part {
    XM_ANSWER_NOTHING, /* headers of messages: not shown */
    XM_ANSWER_THOUGHT,
    XM_ANSWER_TEXT,
    XM_ANSWER_CALL /* of a tool */
};

enum { XM_MAX_ANSWER_MARKS = 8 };

/* The state of one answer. Zero-initialised: every token is text. Used by one thread at a time. */
struct xm_answer {
    const struct xm_answer_format *format; /* static; NULL: the model has no marks */
    const struct xm_tokenizer *tokenizer;  /* not owned */
    const struct xm_tools *tools; /* what calls may name, the caller's; NULL: not known */
    /* token ids of the format's marks; -1: the tokenizer lacks this mark */
    int32_t ids[XM_MAX_ANSWER_MARKS];
    int state;               /* enum state in answer.c */
    struct xm_strbuf header; /* the header text of the current message so far */
    bool has_channel;        /* the header names a channel */
    bool has_role;  /* the model wrote the header's start, so it begins with a role */
    bool replaying; /* the tokens passed now are the prompt's */
    bool seen_mark; /* the model has written a mark behind the prompt */
    bool at_start;  /* no text of this part yet: newlines are dropped */
    /* The message to the user has ended, or one for another recipient has begun: what follows is
     * not shown. */
    bool complete;
    /* The caller's, before xm_answer_end: the answer's length has ended it, so that a call may have
     * been broken off. */
    bool is_cut;
    enum xm_call_form form;      /* of the call that is being written; NONE: of none */
    int32_t call_mark;           /* which began it; -1: none did    */
    struct xm_strbuf call, tool; /* its text so far; of a header, the tool's name    */
    struct xm_tool_calls calls;  /* owned; those that have ended    */
};

/* Finds the model's format. Keeps `tokenizer`, which must outlive `a`. */
void xm_answer_init(struct xm_answer *a, const struct xm_tokenizer *tokenizer,
                    const struct xm_chat_template *tmpl);
void xm_answer_free(struct xm_answer *a);
/* Begins the answer to a prompt of `n` tokens. The end of the prompt may have opened a part
 * already, as a template that ends with "<think>" does. */
enum xm_status xm_answer_begin(struct xm_answer *a, const int32_t *prompt, size_t n,
                               struct xm_error *err);
/* False: the token is text. Before a mark is passed to xm_answer_take, pass the text that a
 * detokenizer or stop strings still hold back: it belongs to the part before the mark. */
bool xm_answer_is_mark(const struct xm_answer *a, int32_t id);
/* Appends to `out` what the mark makes certain and returns its part: CALL, the last one of
 * a->calls, as JSON text; TEXT, what was no call; or NOTHING. */
enum xm_answer_part xm_answer_take(struct xm_answer *a, int32_t id,
                                   struct xm_strbuf *out);
/* Whether a mark begins a thought. */
bool xm_answer_begins_thought(const struct xm_answer *a, int32_t id);
/* Whether a mark ends a thought, and text for the user begins. */
bool xm_answer_begins_text(const struct xm_answer *a, int32_t id);
/* Whether a token that is no mark is of a thought now. */
bool xm_answer_is_in_thought(const struct xm_answer *a);
/* How calls are written; XM_CALL_NONE: the model has no marks for calls. */
enum xm_call_form xm_answer_call_form(const struct xm_answer *a);
/* Whether a token that is no mark is text for the user now. */
bool xm_answer_is_in_text(const struct xm_answer *a);
/* Takes text of the current part: appends to `out` what is to be shown and returns its part. */
enum xm_answer_part xm_answer_text(struct xm_answer *a, const char *text, size_t n,
                                   struct xm_strbuf *out);
/* Ends the answer. A header that was begun but never completed is appended to `out` as text, and a
 * call as xm_answer_take does. */
enum xm_answer_part xm_answer_end(struct xm_answer *a, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
