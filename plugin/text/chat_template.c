/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/chat_template.h"

#include "plugin/text/jinja/jinja.h"
#include "runtime/util/json.h"

struct xm_chat_template {
    struct xm_jinja_template *jinja; /* owned */
    struct xm_strbuf text;           /* the template's source */
    yyjson_doc *config;              /* owned; members with special tokens; NULL: none */
};

/* --- life --- */

enum xm_status
xm_chat_template_parse(const char *text, size_t n, struct xm_chat_template **out,
                       struct xm_error *err)
{
    *out = NULL;
    struct xm_chat_template *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "a chat template");
    enum xm_status status = xm_jinja_parse(text, n, &t->jinja, err);
    xm_strbuf_add_n(&t->text, text, n);
    if (status == XM_OK && !xm_strbuf_ok(&t->text))
        status = xm_no_memory(err, "a chat template");
    if (status == XM_OK)
        *out = t;
    else
        xm_chat_template_free(t);
    return status;
}

void
xm_chat_template_free(struct xm_chat_template *tmpl)
{
    if (!tmpl)
        return;
    xm_jinja_free(tmpl->jinja);
    xm_strbuf_free(&tmpl->text);
    yyjson_doc_free(tmpl->config);
    xm_free(tmpl);
}

void
xm_chat_template_set_tokens(struct xm_chat_template *tmpl, yyjson_doc *tokens)
{
    yyjson_doc_free(tmpl->config);
    tmpl->config = tokens;
}

bool
xm_chat_template_mentions(const struct xm_chat_template *tmpl, const char *text)
{
    return strstr(xm_strbuf_text(&tmpl->text), text) != NULL;
}

/* --- rendering --- */

struct variables {
    struct xm_jinja_variable *items; /* owned */
    size_t n;
};

static void
add(struct variables *v, struct xm_slice name, yyjson_val *value, bool is_content)
{
    v->items[v->n++] = (struct xm_jinja_variable){name, value, is_content};
}

static void
add_named(struct variables *v, const char *name, yyjson_val *value, bool is_content)
{
    add(v, xm_slice_of(name, strlen(name)), value, is_content);
}

static bool
names_a_token(struct xm_slice name)
{
    static const char suffix[] = "_token";
    const size_t n = sizeof(suffix) - 1;
    return name.n > n && memcmp(name.text + name.n - n, suffix, n) == 0;
}

/* Adds the variables "bos_token", "eos_token" and so on. In the file each is a string, or an object
 * whose member "content" is the string. */
static void
add_special_tokens(struct variables *v, yyjson_val *config)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!config)
        return;
    yyjson_obj_foreach(config, i, n, key, value)
    {
        struct xm_slice name = {yyjson_get_str(key), yyjson_get_len(key)};
        yyjson_val *text =
            yyjson_is_obj(value) ? yyjson_obj_get(value, "content") : value;
        if (yyjson_is_str(text) && names_a_token(name))
            add(v, name, text, false);
    }
}

static void
add_members(struct variables *v, yyjson_val *object)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!object)
        return;
    yyjson_obj_foreach(object, i, n, key, value)
    {
        struct xm_slice name = {yyjson_get_str(key), yyjson_get_len(key)};
        add(v, name, value, !names_a_token(name));
    }
}

/* Renders with all variables. Of variables with the same name the last one counts, so those of
 * `extra` are added last. */
static enum xm_status
render(const struct xm_chat_template *tmpl, yyjson_val *messages,
       bool add_generation_prompt, yyjson_val *extra, struct xm_strbuf *out,
       struct xm_strbuf *marks, struct xm_error *err)
{
    yyjson_val prompt = {0}, none = {0}, *config = yyjson_doc_get_root(tmpl->config);
    struct variables v = {0};
    yyjson_set_bool(&prompt, add_generation_prompt);
    yyjson_set_null(&none);
    v.items =
        xm_calloc(4 + yyjson_obj_size(config) + yyjson_obj_size(extra), sizeof(*v.items));
    if (!v.items)
        return xm_no_memory(err, "a chat template's variables");
    add_named(&v, "messages", messages, true);
    add_named(&v, "add_generation_prompt", &prompt, false);
    add_named(&v, "tools", &none, false);
    add_named(&v, "documents", &none, false);
    add_special_tokens(&v, config);
    add_members(&v, extra);
    enum xm_status status =
        xm_jinja_render(tmpl->jinja, v.items, v.n, NULL, out, marks, err);
    xm_free(v.items);
    if (status != XM_OK)
        xm_error_prefix(err, "chat template");
    return status;
}

static enum xm_status
parse_input(const char *what, const char *json, yyjson_doc **out, struct xm_error *err)
{
    enum xm_status status = xm_json_parse(json, strlen(json), out, err);
    if (status != XM_OK)
        xm_error_prefix(err, "%s of a chat", what);
    return status;
}

enum xm_status
xm_chat_template_render_marked(const struct xm_chat_template *tmpl,
                               const char *messages_json, bool add_generation_prompt,
                               const char *extra_json, struct xm_strbuf *out,
                               struct xm_strbuf *marks, struct xm_error *err)
{
    yyjson_doc *messages = NULL, *extra = NULL;
    enum xm_status status = parse_input("messages", messages_json, &messages, err);
    if (status == XM_OK && !yyjson_is_arr(yyjson_doc_get_root(messages)))
        status = xm_fail(err, XM_INVALID, "messages of a chat: expected an array");
    if (status == XM_OK && extra_json)
        status = parse_input("variables", extra_json, &extra, err);
    if (status == XM_OK && extra && !yyjson_is_obj(yyjson_doc_get_root(extra)))
        status = xm_fail(err, XM_INVALID, "variables of a chat: expected an object");
    if (status == XM_OK)
        status = render(tmpl, yyjson_doc_get_root(messages), add_generation_prompt,
                        yyjson_doc_get_root(extra), out, marks, err);
    yyjson_doc_free(messages);
    yyjson_doc_free(extra);
    return status;
}

enum xm_status
xm_chat_template_render(const struct xm_chat_template *tmpl, const char *messages_json,
                        bool add_generation_prompt, const char *extra_json,
                        struct xm_strbuf *out, struct xm_error *err)
{
    return xm_chat_template_render_marked(tmpl, messages_json, add_generation_prompt,
                                          extra_json, out, NULL, err);
}
