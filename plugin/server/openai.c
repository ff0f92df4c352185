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

/* The text of a token may be an incomplete character, which JSON can express only as bytes. */
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

/* ---- prompts --------------------------------------------------------------------------------- */

static bool
read_ids(yyjson_val *list, const char *where, struct xm_token_list *ids,
         struct xm_refusal *r)
{
    yyjson_val *v;
    size_t i, n;
    yyjson_arr_foreach(list, i, n, v)
    {
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) > INT32_MAX)
            return xm_refuse_value(r, xm_place("%s[%zu]", where, i).text, v,
                                   "a token id");
        if (!xm_token_list_add(ids, (int32_t)yyjson_get_uint(v)))
            return xm_refuse(r, 503, NULL, NULL, "out of memory for the prompt");
    }
    return true;
}

static bool
read_list(const struct xm_openai_prompts *p, yyjson_val *list, const char *where,
          struct xm_refusal *r)
{
    struct xm_token_list ids = {0};
    bool good = read_ids(list, where, &ids, r);
    const struct xm_prompt prompt = {.kind = XM_PROMPT_IDS, .ids = ids.ids, .n = ids.n};
    good = good && p->add(p->ctx, &prompt, where, r);
    xm_token_list_free(&ids);
    return good;
}

static bool
read_prompt(const struct xm_openai_prompts *p, yyjson_val *v, const char *where,
            struct xm_refusal *r)
{
    const struct xm_prompt prompt = {
        .kind = XM_PROMPT_TEXT, .text = yyjson_get_str(v), .n = yyjson_get_len(v)};
    if (yyjson_is_arr(v))
        return read_list(p, v, where, r);
    if (!yyjson_is_str(v))
        return xm_refuse_value(r, where, v,
                               "a string, a list of token ids, or a list of these");
    if (!p->model->package || !p->model->package->tokenizer)
        return xm_refuse(r, 400, p->name, "invalid_value",
                         "the model has no tokenizer: '%s' must be token ids", p->name);
    return p->add(p->ctx, &prompt, where, r);
}

bool
xm_openai_read_prompts(const struct xm_openai_prompts *p, yyjson_val *body,
                       struct xm_refusal *r)
{
    yyjson_val *all = yyjson_obj_get(body, p->name), *v;
    const bool is_list = yyjson_is_arr(all) && !yyjson_is_num(yyjson_arr_get_first(all));
    const size_t count = yyjson_arr_size(all);
    size_t i, n;
    if (!is_list)
        return read_prompt(p, all, p->name, r);
    if (count == 0 || count > p->most)
        return xm_refuse(r, 400, p->name, "out_of_range",
                         "'%s' has %zu %s, expected 1 to %zu", p->name, count, p->plural,
                         p->most);
    yyjson_arr_foreach(all, i, n, v)
    {
        if (!read_prompt(p, v, xm_place("%s[%zu]", p->name, i).text, r))
            return false;
    }
    return true;
}
