/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/prompt.h"

#include <inttypes.h>

#include "runtime/util/slice.h"

static enum xm_status
encode_text(struct xm_package *p, struct xm_slice text, const char *marks,
            bool add_special, struct xm_generation_clock *clock,
            struct xm_token_list *out, struct xm_error *err)
{
    XM_TRY(xm_package_read(p, XM_PACKAGE_TOKENIZER, err));
    const double start = xm_clock_start(clock);
    const enum xm_status s = xm_tokenizer_encode_marked(p->tokenizer, text.text, marks,
                                                        text.n, add_special, out, err);
    if (clock)
        xm_clock_add(clock, &clock->tokenise_s, start);
    return s;
}

/* Encodes the rendered messages. The template writes the special tokens; their spelling in contents
 * is plain text. */
static enum xm_status
encode_messages(struct xm_package *p, const struct xm_prompt *prompt,
                struct xm_token_list *out, struct xm_error *err)
{
    struct xm_strbuf text = {0}, marks = {0};
    XM_TRY(xm_package_read(p, XM_PACKAGE_CHAT_TEMPLATE, err));
    const double start = xm_clock_start(prompt->clock);
    enum xm_status s = xm_chat_template_render_marked(
        p->chat_template, prompt->text, true, prompt->variables, &text, &marks, err);
    if (prompt->clock) {
        xm_clock_add(prompt->clock, &prompt->clock->template_s, start);
        prompt->clock->has_template = true;
    }
    if (s == XM_OK && text.n == 0)
        s = xm_fail(
            err, XM_INVALID,
            "the model's chat template renders the conversation as an empty text");
    xm_strbuf_add_n(&text, prompt->begun, prompt->n_begun);
    for (size_t i = 0; i < prompt->n_begun; i++)
        xm_strbuf_add_n(&marks, "\1", 1);
    if (s == XM_OK && !(xm_strbuf_ok(&text) && xm_strbuf_ok(&marks)))
        s = xm_no_memory(err, "the prompt");
    if (s == XM_OK)
        s = encode_text(p, xm_slice_of(xm_strbuf_text(&text), text.n),
                        xm_strbuf_text(&marks), false, prompt->clock, out, err);
    xm_strbuf_free(&text);
    xm_strbuf_free(&marks);
    return s;
}

static enum xm_status
encode(struct xm_package *p, const struct xm_prompt *prompt, struct xm_token_list *out,
       struct xm_error *err)
{
    if (prompt->kind == XM_PROMPT_IDS)
        return xm_token_list_add_n(out, prompt->ids, prompt->n)
                   ? XM_OK
                   : xm_no_memory(err, "token ids");
    if (!p)
        return xm_fail(err, XM_INVALID, "a text prompt needs a model with a tokenizer");
    return prompt->kind == XM_PROMPT_TEXT
               ? encode_text(p, xm_slice_of(prompt->text, prompt->n), NULL, true,
                             prompt->clock, out, err)
               : encode_messages(p, prompt, out, err);
}

enum xm_status
xm_prompt_encode(struct xm_package *p, const struct xm_prompt *prompt,
                 uint64_t vocabulary, struct xm_token_list *out, struct xm_error *err)
{
    const size_t first = out->n;
    XM_TRY(encode(p, prompt, out, err));
    for (size_t i = first; i < out->n; i++) {
        const int32_t id = out->ids[i];
        if (id >= 0 && (uint64_t)id < vocabulary)
            continue;
        if (prompt->kind == XM_PROMPT_IDS)
            return xm_fail(err, XM_INVALID,
                           "token id %d is not in the vocabulary of %" PRIu64, id,
                           vocabulary);
        return xm_fail(err, XM_INVALID,
                       "the %s gives the token id %d, but the model has %" PRIu64
                       " tokens: the tokenizer belongs to another model",
                       p->reader->tokenizer, id, vocabulary);
    }
    return XM_OK;
}
