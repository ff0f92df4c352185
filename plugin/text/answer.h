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
 * The text of a call is held back until the call ends (tool_calls.h). A call that cannot be parsed
 * is returned as text, with its marks if it has any. A call that is still open at the end of the
 * answer is taken if it can be parsed as a whole; if the length limit ended the answer, it is
 * returned with is_cut set.
 *
 * A model has the format whose marks are in its tokenizer and in its chat template. The caller
 * passes the generated tokens in order: marks by id, the text between marks in pieces of any
 * length, as the detokenizer returns them. The characters of a mark are plain text unless they came
 * as the mark's token.
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
    XM_ANSWER_NOTHING, /* not shown, such as the header of a message */
    XM_ANSWER_THOUGHT,
    XM_ANSWER_TEXT,
    XM_ANSWER_CALL /* a call of a tool, as JSON text */
};

enum { XM_MAX_ANSWER_MARKS = 8 };

/* The state of one answer. Zero-initialised: every token is text. Used by one thread at a time. */
struct xm_answer {
    /* static; NULL: the model has no known marks */
    const struct xm_answer_format *format;
    const struct xm_tokenizer *tokenizer; /* not owned */
    /* the tools that calls may name, not owned; NULL: not known */
    const struct xm_tools *tools;
    /* Token ids of the format's marks; -1: the tokenizer lacks this mark. */
    int32_t ids[XM_MAX_ANSWER_MARKS];
    int state;               /* enum state in answer.c */
    struct xm_strbuf header; /* the header text of the current message so far */
    bool has_channel;        /* the header names a channel */
    /* the model, not the prompt, began the header: its first word is a role */
    bool has_role;
    bool replaying; /* xm_answer_begin is passing the prompt's tokens */
    bool seen_mark; /* the model has generated a mark */
    bool at_start;  /* the part has no text yet: newlines are dropped */
    /* The message to the user has ended, or a message to another recipient has begun: the tokens
     * that follow are not shown. */
    bool complete;
    /* Set by the caller before xm_answer_end: the length limit ended the answer, so the last call
     * may be incomplete. */
    bool is_cut;
    /* of the call in progress; XM_CALL_NONE: no call is in progress */
    enum xm_call_form form;
    int32_t call_mark; /* the mark that began the call; -1: none (NAMED) */
    /* the call's text so far; the tool's name from the message header */
    struct xm_strbuf call, tool;
    struct xm_tool_calls calls; /* owned; the complete calls so far */
};

/* Initialises *a and finds the model's format by its tokenizer and template. Keeps `tokenizer`,
 * which must outlive `a`. */
void xm_answer_init(struct xm_answer *a, const struct xm_tokenizer *tokenizer,
                    const struct xm_chat_template *tmpl);
void xm_answer_free(struct xm_answer *a);
/* Begins the answer to a prompt of `n` tokens. If the end of the prompt has opened a part, as a
 * template that ends with "<think>" does, the answer begins in that part. */
enum xm_status xm_answer_begin(struct xm_answer *a, const int32_t *prompt, size_t n,
                               struct xm_error *err);
/* Returns whether the token is one of the format's marks; else it is text. Before passing a mark to
 * xm_answer_take, pass to xm_answer_text all text that the detokenizer or stop strings still hold
 * back: it belongs to the part before the mark. */
bool xm_answer_is_mark(const struct xm_answer *a, int32_t id);
/* Takes a mark and appends to `out` the output that the mark completes. Returns its kind: CALL: the
 * JSON text of the last call of a->calls; TEXT: text that turned out not to be a call; NOTHING:
 * `out` is unchanged. */
enum xm_answer_part xm_answer_take(struct xm_answer *a, int32_t id,
                                   struct xm_strbuf *out);
/* Returns whether the token is a mark that begins a thought. */
bool xm_answer_begins_thought(const struct xm_answer *a, int32_t id);
/* Returns whether the token is a mark that ends a thought, so that text for the user begins. */
bool xm_answer_begins_text(const struct xm_answer *a, int32_t id);
/* Returns whether a token that is not a mark would now belong to a thought. */
bool xm_answer_is_in_thought(const struct xm_answer *a);
/* Returns the syntax of the model's calls; XM_CALL_NONE: its tokenizer has no marks for calls. */
enum xm_call_form xm_answer_call_form(const struct xm_answer *a);
/* Returns whether a token that is not a mark would now be text for the user. */
bool xm_answer_is_in_text(const struct xm_answer *a);
/* Takes text of the current part, appends to `out` the text to show and returns its part. */
enum xm_answer_part xm_answer_text(struct xm_answer *a, const char *text, size_t n,
                                   struct xm_strbuf *out);
/* Ends the answer. Appends to `out` an incomplete message header as text, or a call that is still
 * open as xm_answer_take does, and returns its kind. */
enum xm_answer_part xm_answer_end(struct xm_answer *a, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
