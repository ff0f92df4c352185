/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat histories: a list of messages, each a JSON text.
 */
#include "plugin/genai/genai.h"
#include "runtime/util/json.h"

static bool
is(const ov_genai_json_container *c, char first)
{
    return xm_strbuf_text(&c->text)[0] == first;
}

/* Stores the sentence of a failure; returns `code`. */
static ov_genai_chat_history_status_e
fail(ov_genai_chat_history_status_e code, const char *sentence)
{
    xm_api_fail(GENERAL_ERROR, "%s", sentence);
    return code;
}

static ov_genai_chat_history_status_e
fail_memory(void)
{
    return fail(OV_GENAI_CHAT_HISTORY_ERROR, "out of memory for a chat");
}

/* Replaces *to by the text; unchanged if memory is missing. */
static ov_genai_chat_history_status_e
set_text(struct xm_strbuf *to, const char *text, size_t n)
{
    struct xm_strbuf copy = {0};
    xm_strbuf_add_n(&copy, text, n);
    if (!xm_strbuf_ok(&copy)) {
        xm_strbuf_free(&copy);
        return fail_memory();
    }
    xm_strbuf_free(to);
    *to = copy;
    return OV_GENAI_CHAT_HISTORY_OK;
}

static ov_genai_chat_history_status_e
give(struct xm_strbuf *text, ov_genai_json_container **out)
{
    ov_genai_json_container *c = xm_genai_json_take(text);
    if (!c)
        return fail_memory();
    *out = c;
    return OV_GENAI_CHAT_HISTORY_OK;
}

static ov_genai_chat_history_status_e
give_copy(const struct xm_strbuf *text, const char *if_empty,
          ov_genai_json_container **out)
{
    struct xm_strbuf copy = {0};
    xm_strbuf_add(&copy, text->n ? xm_strbuf_text(text) : if_empty);
    return give(&copy, out);
}

void
xm_genai_history_pop(ov_genai_chat_history *h)
{
    xm_strbuf_free(&h->messages[--h->n]);
}

void
xm_genai_history_clear(ov_genai_chat_history *h)
{
    while (h->n)
        xm_genai_history_pop(h);
}

/* ---- life ---------------------------------------------------------------------------- */

ov_genai_chat_history_status_e
ov_genai_chat_history_create(ov_genai_chat_history **history)
{
    if (!history)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    ov_genai_chat_history *h = xm_calloc(1, sizeof(*h));
    if (!h || !xm_api_handle_add(h, XM_API_HISTORY)) {
        xm_free(h);
        return fail_memory();
    }
    *history = h;
    return OV_GENAI_CHAT_HISTORY_OK;
}

void
ov_genai_chat_history_free(ov_genai_chat_history *history)
{
    if (!xm_api_handle_drop(history, XM_API_HISTORY))
        return;
    xm_genai_history_clear(history);
    xm_free(history->messages);
    xm_strbuf_free(&history->tools);
    xm_strbuf_free(&history->extra);
    xm_free(history);
}

static ov_genai_chat_history_status_e
push(ov_genai_chat_history *h, const char *text, size_t n)
{
    struct xm_strbuf *grown =
        xm_grow(h->messages, &h->capacity, h->n + 1, sizeof(*grown));
    if (!grown)
        return fail_memory();
    h->messages = grown;
    h->messages[h->n] = (struct xm_strbuf){0};
    const ov_genai_chat_history_status_e s = set_text(&h->messages[h->n], text, n);
    h->n += s == OV_GENAI_CHAT_HISTORY_OK;
    return s;
}

static ov_genai_chat_history_status_e
push_value(ov_genai_chat_history *h, yyjson_val *message)
{
    size_t n = 0;
    if (!yyjson_is_obj(message))
        return fail(OV_GENAI_CHAT_HISTORY_INVALID_JSON, "a message is not a JSON object");
    char *text =
        yyjson_val_write_opts(message, YYJSON_WRITE_NOFLAG, &xm_json_allocator, &n, NULL);
    const ov_genai_chat_history_status_e s = text ? push(h, text, n) : fail_memory();
    xm_free(text);
    return s;
}

static ov_genai_chat_history_status_e
push_all(ov_genai_chat_history *h, const struct xm_strbuf *array)
{
    ov_genai_chat_history_status_e s = OV_GENAI_CHAT_HISTORY_OK;
    size_t i, n;
    yyjson_val *message;
    yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)xm_strbuf_text(array), array->n,
                         YYJSON_READ_NUMBER_AS_RAW, &xm_json_allocator, NULL);
    if (!doc)
        return fail_memory();
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, message)
    {
        if (s == OV_GENAI_CHAT_HISTORY_OK)
            s = push_value(h, message);
    }
    yyjson_doc_free(doc);
    return s;
}

ov_genai_chat_history_status_e
ov_genai_chat_history_create_from_json_container(ov_genai_chat_history **history,
                                                 const ov_genai_json_container *messages)
{
    ov_genai_chat_history *h = NULL;
    if (!history || !xm_api_is(messages, XM_API_JSON))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (!is(messages, '['))
        return fail(OV_GENAI_CHAT_HISTORY_INVALID_JSON,
                    "the messages are not a JSON array");
    ov_genai_chat_history_status_e s = ov_genai_chat_history_create(&h);
    if (s == OV_GENAI_CHAT_HISTORY_OK)
        s = push_all(h, &messages->text);
    if (s == OV_GENAI_CHAT_HISTORY_OK)
        *history = h;
    else
        ov_genai_chat_history_free(h);
    return s;
}

static bool
set_message(yyjson_mut_doc *doc, const char *role, const char *text, size_t n)
{
    yyjson_mut_val *message = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, message);
    return yyjson_mut_obj_add_str(doc, message, "role", role) &&
           yyjson_mut_obj_add_strn(doc, message, "content", text, n);
}

enum xm_status
xm_genai_history_say(ov_genai_chat_history *h, const char *role, const char *text,
                     size_t n, struct xm_error *err)
{
    yyjson_write_err why = {0};
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&xm_json_allocator);
    size_t bytes = 0;
    char *json = doc && set_message(doc, role, text, n)
                     ? yyjson_mut_write_opts(doc, YYJSON_WRITE_NOFLAG, &xm_json_allocator,
                                             &bytes, &why)
                     : NULL;
    yyjson_mut_doc_free(doc);
    const ov_genai_chat_history_status_e s =
        json ? push(h, json, bytes) : OV_GENAI_CHAT_HISTORY_ERROR;
    xm_free(json);
    if (s == OV_GENAI_CHAT_HISTORY_OK)
        return XM_OK;
    return why.code == YYJSON_WRITE_ERROR_INVALID_STRING
               ? xm_fail(err, XM_INVALID, "a message of a chat is not UTF-8")
               : xm_no_memory(err, "a chat");
}

/* ---- messages ------------------------------------------------------------------------ */

ov_genai_chat_history_status_e
ov_genai_chat_history_push_back(ov_genai_chat_history *history,
                                const ov_genai_json_container *message)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !xm_api_is(message, XM_API_JSON))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (!is(message, '{'))
        return fail(OV_GENAI_CHAT_HISTORY_INVALID_JSON, "a message is not a JSON object");
    return push(history, xm_strbuf_text(&message->text), message->text.n);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_pop_back(ov_genai_chat_history *history)
{
    if (!xm_api_is(history, XM_API_HISTORY))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (history->n == 0)
        return fail(OV_GENAI_CHAT_HISTORY_EMPTY, "the history has no messages");
    xm_genai_history_pop(history);
    return OV_GENAI_CHAT_HISTORY_OK;
}

void
xm_genai_history_messages(const ov_genai_chat_history *h, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "[");
    for (size_t i = 0; i < h->n; i++) {
        xm_strbuf_add(out, i ? "," : "");
        xm_strbuf_add(out, xm_strbuf_text(&h->messages[i]));
    }
    xm_strbuf_add(out, "]");
}

void
xm_genai_history_variables(const ov_genai_chat_history *h, struct xm_strbuf *out)
{
    const bool has_tools = h->tools.n > 2, has_extra = h->extra.n > 2;
    xm_strbuf_add(out, "{");
    if (has_tools)
        xm_strbuf_printf(out, "\"tools\":%s", xm_strbuf_text(&h->tools));
    xm_strbuf_add(out, has_tools && has_extra ? "," : "");
    xm_strbuf_add(out, has_extra ? xm_strbuf_text(&h->extra) + 1 : "}");
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_messages(const ov_genai_chat_history *history,
                                   ov_genai_json_container **messages)
{
    struct xm_strbuf all = {0};
    if (!xm_api_is(history, XM_API_HISTORY) || !messages)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    xm_genai_history_messages(history, &all);
    return give(&all, messages);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_message(const ov_genai_chat_history *history, size_t index,
                                  ov_genai_json_container **message)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !message)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (index >= history->n)
        return fail(OV_GENAI_CHAT_HISTORY_OUT_OF_BOUNDS,
                    "the history has fewer messages than the index requires");
    return give_copy(&history->messages[index], "", message);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_first(const ov_genai_chat_history *history,
                                ov_genai_json_container **message)
{
    if (xm_api_is(history, XM_API_HISTORY) && message && history->n == 0)
        return fail(OV_GENAI_CHAT_HISTORY_EMPTY, "the history has no messages");
    return ov_genai_chat_history_get_message(history, 0, message);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_last(const ov_genai_chat_history *history,
                               ov_genai_json_container **message)
{
    const bool is_history = xm_api_is(history, XM_API_HISTORY);
    if (is_history && message && history->n == 0)
        return fail(OV_GENAI_CHAT_HISTORY_EMPTY, "the history has no messages");
    return ov_genai_chat_history_get_message(history, is_history ? history->n - 1 : 0,
                                             message);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_clear(ov_genai_chat_history *history)
{
    if (!xm_api_is(history, XM_API_HISTORY))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    xm_genai_history_clear(history);
    return OV_GENAI_CHAT_HISTORY_OK;
}

ov_genai_chat_history_status_e
ov_genai_chat_history_size(const ov_genai_chat_history *history, size_t *size)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !size)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    *size = history->n;
    return OV_GENAI_CHAT_HISTORY_OK;
}

ov_genai_chat_history_status_e
ov_genai_chat_history_empty(const ov_genai_chat_history *history, int *empty)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !empty)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    *empty = history->n == 0;
    return OV_GENAI_CHAT_HISTORY_OK;
}

/* ---- other variables of the chat template -------------------------------------------------- */

ov_genai_chat_history_status_e
ov_genai_chat_history_set_tools(ov_genai_chat_history *history,
                                const ov_genai_json_container *tools)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !xm_api_is(tools, XM_API_JSON))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (!is(tools, '['))
        return fail(OV_GENAI_CHAT_HISTORY_INVALID_JSON, "the tools are not a JSON array");
    return set_text(&history->tools, xm_strbuf_text(&tools->text), tools->text.n);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_tools(const ov_genai_chat_history *history,
                                ov_genai_json_container **tools)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !tools)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    return give_copy(&history->tools, "[]", tools);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_set_extra_context(ov_genai_chat_history *history,
                                        const ov_genai_json_container *extra_context)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !xm_api_is(extra_context, XM_API_JSON))
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    if (!is(extra_context, '{'))
        return fail(OV_GENAI_CHAT_HISTORY_INVALID_JSON,
                    "the extra context is not a JSON object");
    return set_text(&history->extra, xm_strbuf_text(&extra_context->text),
                    extra_context->text.n);
}

ov_genai_chat_history_status_e
ov_genai_chat_history_get_extra_context(const ov_genai_chat_history *history,
                                        ov_genai_json_container **extra_context)
{
    if (!xm_api_is(history, XM_API_HISTORY) || !extra_context)
        return OV_GENAI_CHAT_HISTORY_INVALID_PARAM;
    return give_copy(&history->extra, "{}", extra_context);
}
