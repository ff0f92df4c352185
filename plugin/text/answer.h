/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a chat model's answer: what it says, and what it thinks before that.
 *
 * Some models wrap their answers into marks, tokens of their own:
 *
 *     channels   <|channel|>analysis<|message|>thought<|end|>
 *                <|start|>assistant<|channel|>final<|message|>text<|return|>
 *     tags       <think>thought</think>text
 *     named tags <|channel>thought\nthought<channel|>text
 *
 * Which of them a model speaks is told by its tokenizer, which has the marks, and its chat
 * template, which writes them. The caller passes tokens in order: marks by id, the text between
 * them in parts as the detokenizer gives them; where that text was cut does not matter. Marks
 * that are spelt out as plain text are text.
 */
#ifndef XM_PLUGIN_TEXT_ANSWER_H
#define XM_PLUGIN_TEXT_ANSWER_H

#include "plugin/text/chat_template.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_answer_part {
    XM_ANSWER_NOTHING, /* headers and the like: for nobody */
    XM_ANSWER_THOUGHT,
    XM_ANSWER_TEXT
};

enum { XM_MAX_ANSWER_MARKS = 8 };

/* Zero-initialised: all is text. */
struct xm_answer {
    const struct xm_answer_format *format; /* NULL: no marks */
    const struct xm_tokenizer *tokenizer;
    /* of the format's marks; -1: the tokenizer has none */
    int32_t ids[XM_MAX_ANSWER_MARKS];
    int state;               /* enum state in answer.c                            */
    struct xm_strbuf header; /* of the message that begins, as far as it has come */
    bool has_channel;        /* the header names one */
    bool has_role;           /* the model has begun the header: it names who speaks */
    bool replaying;          /* the prompt */
    bool seen_mark;          /* since the prompt */
    bool at_start;           /* of a part: newlines are left out */
    /* A message to the user has ended, or somebody else's has begun: there is no more. */
    bool complete;
};

/* Finds the format of a model. */
void xm_answer_init(struct xm_answer *a, const struct xm_tokenizer *tokenizer,
                    const struct xm_chat_template *tmpl);
void xm_answer_free(struct xm_answer *a);
/* Begins the answer to this prompt, whose end may have opened a part already. */
enum xm_status xm_answer_begin(struct xm_answer *a, const int32_t *prompt, size_t n,
                               struct xm_error *err);
/* False: this id is no mark but text. Text that is still held back elsewhere belongs to the
 * part before a mark: bring it before xm_answer_take. */
bool xm_answer_is_mark(const struct xm_answer *a, int32_t id);
void xm_answer_take(struct xm_answer *a, int32_t id);
/* Text of the part that is open: appends to `out` what is to be shown, and says as what. */
enum xm_answer_part xm_answer_text(struct xm_answer *a, const char *text, size_t n,
                                   struct xm_strbuf *out);
/* The answer has ended. What it began as a header and never went on with was text. */
enum xm_answer_part xm_answer_end(struct xm_answer *a, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
