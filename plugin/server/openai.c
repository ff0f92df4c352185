/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/openai.h"

#include <string.h>

#define FINGERPRINT "xemoe-" XM_VERSION
#define DONE        "data: [DONE]\n\n"

void
xm_openai_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key,
               const char *text)
{
    if (text)
        xm_json_add_text(j, o, key, text, strlen(text));
    else
        xm_json_add_null(j, o, key);
}

void
xm_openai_strbuf(struct xm_json_out *j, yyjson_mut_val *o, const char *key,
                 const struct xm_strbuf *text)
{
    xm_json_add_text(j, o, key, xm_strbuf_text(text), text->n);
}

void
xm_openai_head(const struct xm_completion *c, struct xm_json_out *j, const char *object)
{
    xm_openai_text(j, NULL, "id", c->id);
    xm_openai_text(j, NULL, "object", object);
    xm_json_add_whole(j, NULL, "created", (uint64_t)c->created);
    xm_openai_text(j, NULL, "model", c->model->name);
    xm_openai_text(j, NULL, "system_fingerprint", FINGERPRINT);
}

void
xm_openai_usage(const struct xm_completion *c, struct xm_json_out *j)
{
    const struct xm_usage u = xm_completion_usage(c);
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "usage");
    xm_json_add_whole(j, o, "prompt_tokens", u.prompt);
    xm_json_add_whole(j, o, "completion_tokens", u.made);
    xm_json_add_whole(j, o, "total_tokens", u.prompt + u.made);
    yyjson_mut_val *details = xm_json_add_object(j, o, "prompt_tokens_details");
    xm_json_add_whole(j, details, "cached_tokens", u.reused);
}

yyjson_mut_val *
xm_openai_chunk(const struct xm_completion_text *t, struct xm_json_out *j,
                const char *object)
{
    xm_json_begin(j);
    xm_openai_head(t->of, j, object);
    if (t->of->wish.wants_usage)
        xm_json_add_null(j, NULL, "usage");
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "choices");
    yyjson_mut_val *choice = xm_json_add_object(j, list, NULL);
    xm_json_add_whole(j, choice, "index", t->index);
    return choice;
}

void
xm_openai_finish(struct xm_completion *c, const char *object)
{
    struct xm_json_out j;
    if (c->wish.wants_usage) {
        xm_json_begin(&j);
        xm_openai_head(c, &j, object);
        xm_json_add_array(&j, NULL, "choices");
        xm_openai_usage(c, &j);
        xm_completion_event(c, NULL, &j);
    }
    xm_exchange_add(c->x, DONE, sizeof(DONE) - 1);
}

void
xm_openai_fail(struct xm_completion *c, const struct xm_refusal *why)
{
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text, "data: ");
    xm_refusal_print(why, XM_ERRORS_OPENAI, &text);
    xm_strbuf_add(&text, "\n\n" DONE);
    xm_exchange_add(c->x, xm_strbuf_text(&text), text.n);
    xm_strbuf_free(&text);
}

/* The characters may be a part of one, of which JSON can only have the bytes. */
void
xm_openai_token(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o,
                int32_t id, double log_prob)
{
    struct xm_strbuf text = {0};
    j->failed |= !xm_completion_token(c, id, &text);
    xm_openai_strbuf(j, o, "token", &text);
    xm_json_add_real(j, o, "logprob", log_prob > -9999.0 ? log_prob : -9999.0);
    yyjson_mut_val *bytes = xm_json_add_array(j, o, "bytes");
    for (size_t i = 0; i < text.n; i++)
        xm_json_add_whole(j, bytes, NULL, (unsigned char)text.text[i]);
    xm_strbuf_free(&text);
}
