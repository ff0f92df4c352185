/* SPDX-License-Identifier: Apache-2.0
 *
 * Endpoints that need no device: POST /tokenize, /detokenize and /apply-template.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/server/messages.h"
#include "plugin/server/openai.h"
#include "plugin/server/tools.h"

/* A body and the model that it names; free the document. */
struct asked {
    yyjson_doc *doc;
    yyjson_val *body;
    struct xm_served *model;
};

static bool
open_body(const struct xm_exchange *x, struct asked *a, struct xm_refusal *r)
{
    *a = (struct asked){NULL, NULL, NULL};
    if (!xm_body_read(x, &a->doc, r))
        return false;
    a->body = yyjson_doc_get_root(a->doc);
    a->model = xm_body_model(x, a->body, r);
    if (!a->model)
        return false;
    return (a->model->package && a->model->package->tokenizer) ||
           xm_refuse(r, 400, "model", "unsupported_parameter",
                     "the model has no tokenizer");
}

static bool
failed(struct xm_refusal *r, const char *param, const struct xm_error *why)
{
    return xm_refuse_at(r, param, "invalid_value", why);
}

/* ---- /tokenize ------------------------------------------------------------------------------- */

static bool
tokenize(const struct asked *a, struct xm_json_out *j, struct xm_refusal *r)
{
    yyjson_val *text = yyjson_obj_get(a->body, "content");
    bool with_special = false, with_pieces = false, knows_special = true;
    struct xm_token_list ids = {0};
    struct xm_error why = {0};
    if (!yyjson_is_str(text))
        return xm_refuse_value(r, "content", text, "a string");
    if (!xm_wish_flag(a->body, "add_special", &with_special, r) ||
        !xm_wish_flag(a->body, "with_pieces", &with_pieces, r) ||
        !xm_wish_flag(a->body, "parse_special", &knows_special, r))
        return false;
    const struct xm_tokenizer *t = a->model->package->tokenizer;
    const size_t n = yyjson_get_len(text);
    char *marks = knows_special || n == 0 ? NULL : xm_malloc(n);
    if (!knows_special && n > 0 && !marks)
        return xm_refuse(r, 503, NULL, NULL, "out of memory for the text");
    if (marks)
        memset(marks, 1, n);
    const bool good = xm_tokenizer_encode_marked(t, yyjson_get_str(text), marks, n,
                                                 with_special, &ids, &why) == XM_OK;
    xm_free(marks);
    if (good && !with_pieces)
        xm_json_add_ids(j, NULL, "tokens", ids.ids, ids.n);
    yyjson_mut_val *list =
        good && with_pieces ? xm_json_add_array(j, NULL, "tokens") : NULL;
    for (size_t i = 0; list && i < ids.n; i++) {
        struct xm_strbuf piece = {0};
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        j->failed |= xm_tokenizer_decode(t, &ids.ids[i], 1, false, &piece, NULL) != XM_OK;
        xm_json_add_whole(j, o, "id", (uint64_t)ids.ids[i]);
        xm_openai_strbuf(j, o, "piece", &piece);
        xm_strbuf_free(&piece);
    }
    xm_token_list_free(&ids);
    return good || failed(r, "content", &why);
}

/* ---- /detokenize ----------------------------------------------------------------------------- */

static bool
read_ids(yyjson_val *list, uint64_t vocabulary, struct xm_token_list *ids,
         struct xm_refusal *r)
{
    const uint64_t n_ids = vocabulary < INT32_MAX ? vocabulary : (uint64_t)INT32_MAX + 1;
    yyjson_val *v;
    size_t i, n;
    if (!yyjson_is_arr(list))
        return xm_refuse_value(r, "tokens", list, "a list of token ids");
    yyjson_arr_foreach(list, i, n, v)
    {
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) >= n_ids)
            return xm_refuse_value(r, xm_place("tokens[%zu]", i).text, v,
                                   xm_place("a token id below %" PRIu64, n_ids).text);
        if (!xm_token_list_add(ids, (int32_t)yyjson_get_uint(v)))
            return xm_refuse(r, 503, NULL, NULL, "out of memory for the tokens");
    }
    return true;
}

static bool
detokenize(const struct asked *a, struct xm_json_out *j, struct xm_refusal *r)
{
    struct xm_token_list ids = {0};
    struct xm_strbuf text = {0};
    struct xm_error why = {0};
    bool good =
        read_ids(yyjson_obj_get(a->body, "tokens"), a->model->vocabulary, &ids, r);
    if (good && xm_tokenizer_decode(a->model->package->tokenizer, ids.ids, ids.n, false,
                                    &text, &why) != XM_OK)
        good = failed(r, "tokens", &why);
    if (good)
        xm_openai_strbuf(j, NULL, "content", &text);
    xm_strbuf_free(&text);
    xm_token_list_free(&ids);
    return good;
}

/* ---- /apply-template ------------------------------------------------------------------------- */

static bool
apply_template(const struct asked *a, struct xm_json_out *j, struct xm_refusal *r)
{
    struct xm_messages m = {NULL, NULL, {0}};
    struct xm_strbuf text = {0};
    struct xm_error why = {0};
    const struct xm_chat_template *t = a->model->package->chat_template;
    if (!t)
        return xm_refuse(r, 400, "model", "unsupported_parameter",
                         "the model has no chat template");
    struct xm_wish w;
    xm_wish_init(&w, a->model);
    bool good = xm_tools_read(&w, XM_TOOLS_CHAT, a->body, r) &&
                xm_messages_read(a->body, &w, &m, r);
    xm_wish_free(&w);
    if (good &&
        xm_chat_template_render(t, m.text, true, m.variables, &text, &why) != XM_OK)
        good = failed(r, "messages", &why);
    xm_strbuf_add_n(&text, xm_strbuf_text(&m.begun), m.begun.n);
    if (good)
        xm_openai_strbuf(j, NULL, "prompt", &text);
    xm_strbuf_free(&text);
    xm_messages_free(&m);
    return good;
}

/* ---- the endpoints ------------------------------------------------------------------------- */

static void
answer(struct xm_exchange *x,
       bool (*make)(const struct asked *a, struct xm_json_out *j, struct xm_refusal *r))
{
    struct asked a;
    struct xm_json_out j;
    struct xm_refusal r = {0};
    xm_json_begin(&j);
    const bool good = open_body(x, &a, &r) && make(&a, &j, &r);
    yyjson_doc_free(a.doc);
    if (good) {
        xm_answer_json(x, &j);
        return;
    }
    xm_json_end(&j);
    xm_refusal_answer(&r, x);
}

void
xm_answer_tokenize(struct xm_exchange *x)
{
    answer(x, tokenize);
}

void
xm_answer_detokenize(struct xm_exchange *x)
{
    answer(x, detokenize);
}

void
xm_answer_apply_template(struct xm_exchange *x)
{
    answer(x, apply_template);
}
