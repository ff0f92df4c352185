/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, limits and containers of a run, and rendering as a whole.
 */
#include "plugin/text/jinja/run_state.h"

#include <string.h>

#include "runtime/util/utf8.h"

const struct xm_jinja_limits xm_jinja_default_limits = {
    .steps = (uint64_t)16 << 20,
    .memory_bytes = (size_t)256 << 20,
    .output_bytes = (size_t)16 << 20,
    .depth = 500,
};

/* Makes an error message printable: it may contain names and texts from the template or the
 * conversation. */
static void
make_fit_to_show(char text[XM_ERROR_TEXT])
{
    char shown[XM_ERROR_TEXT];
    xm_utf8_show(xm_slice_of(text, strlen(text)), shown, sizeof(shown));
    memcpy(text, shown, strlen(shown) + 1);
}

enum xm_status
xm_jinja_fail(struct xm_jinja_run *r, const char *fmt, ...)
{
    if (r->err && r->err->status == XM_OK) {
        va_list ap;
        va_start(ap, fmt);
        xm_fail_v(r->err, XM_INVALID, fmt, ap);
        va_end(ap);
        make_fit_to_show(r->err->text);
        if (r->at)
            xm_error_prefix(r->err, "line %u, column %u", r->at->line, r->at->column);
    }
    return XM_INVALID;
}

enum xm_status
xm_jinja_charge(struct xm_jinja_run *r, uint64_t steps)
{
    uint64_t left = r->limits->steps - r->steps;
    if (steps > left)
        return xm_jinja_fail(r, "the template takes more than %llu steps",
                             (unsigned long long)r->limits->steps);
    r->steps += steps;
    return XM_OK;
}

enum xm_status
xm_jinja_charge_text(struct xm_jinja_run *r, uint64_t bytes)
{
    return xm_jinja_charge(r, bytes / 16);
}

enum xm_status
xm_jinja_enter(struct xm_jinja_run *r)
{
    if (r->depth >= r->limits->depth)
        return xm_jinja_fail(r, "calls or values are nested deeper than %u levels",
                             r->limits->depth);
    r->depth++;
    return xm_jinja_charge(r, 1);
}

enum xm_status
xm_jinja_alloc(struct xm_jinja_run *r, uint64_t n, size_t bytes, void *out)
{
    uint64_t size = 0;
    void *p = NULL;
    if (!xm_mul_size(n, bytes, &size) || size > r->limits->memory_bytes ||
        r->arena.bytes > r->limits->memory_bytes - size)
        return xm_jinja_fail(r, "the values of the template take more than %zu bytes",
                             r->limits->memory_bytes);
    p = xm_arena_alloc(&r->arena, (size_t)size);
    memcpy(out, &p, sizeof(p));
    return p ? XM_OK
             : xm_no_memory(r->err, "%llu bytes of a template's values",
                            (unsigned long long)size);
}

enum xm_status
xm_jinja_new_list(struct xm_jinja_run *r, uint64_t n, struct xm_jinja_list **out)
{
    XM_TRY(xm_jinja_charge(r, n));
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(**out), out));
    (*out)->n = (size_t)n;
    return xm_jinja_alloc(r, n, sizeof(*(*out)->items), &(*out)->items);
}

enum xm_status
xm_jinja_new_pair(struct xm_jinja_run *r, struct xm_jinja_value a,
                  struct xm_jinja_value b, struct xm_jinja_value *out)
{
    struct xm_jinja_list *pair = NULL;
    XM_TRY(xm_jinja_new_list(r, 2, &pair));
    pair->items[0] = a;
    pair->items[1] = b;
    *out = (struct xm_jinja_value){.kind = XM_JINJA_TUPLE, .list = pair};
    return XM_OK;
}

enum xm_status
xm_jinja_new_dict(struct xm_jinja_run *r, struct xm_jinja_dict **out)
{
    return xm_jinja_alloc(r, 1, sizeof(**out), out);
}

static enum xm_status
find_key(struct xm_jinja_run *r, const struct xm_jinja_dict *d, struct xm_jinja_value key,
         size_t *out)
{
    XM_TRY(xm_jinja_charge(r, d->n));
    for (size_t i = 0; i < d->n; i++) {
        bool equal = false;
        XM_TRY(xm_jinja_equal(r, d->keys[i], key, &equal));
        if (equal) {
            *out = i;
            return XM_OK;
        }
    }
    *out = SIZE_MAX;
    return XM_OK;
}

enum xm_status
xm_jinja_dict_find(struct xm_jinja_run *r, const struct xm_jinja_dict *d,
                   struct xm_jinja_value key, const struct xm_jinja_value **out)
{
    size_t at;
    XM_TRY(find_key(r, d, key, &at));
    *out = at == SIZE_MAX ? NULL : &d->values[at];
    return XM_OK;
}

enum xm_status
xm_jinja_check_key(struct xm_jinja_run *r, struct xm_jinja_value key)
{
    const bool is_view = key.kind == XM_JINJA_VIEW;
    if (key.kind == XM_JINJA_LIST || key.kind == XM_JINJA_DICT ||
        (is_view && strcmp(key.view->name, "dict_values") != 0))
        return xm_jinja_fail(r, "%s cannot be a key of a mapping",
                             xm_jinja_kind_name(key.kind));
    if (key.kind != XM_JINJA_TUPLE)
        return XM_OK;
    XM_TRY(xm_jinja_enter(r));
    for (size_t i = 0; i < key.list->n; i++)
        XM_TRY(xm_jinja_check_key(r, key.list->items[i]));
    r->depth--;
    return XM_OK;
}

static enum xm_status
grow_dict(struct xm_jinja_run *r, struct xm_jinja_dict *d)
{
    size_t capacity = d->capacity ? 2 * d->capacity : 4;
    struct xm_jinja_value *keys = NULL, *values = NULL;
    XM_TRY(xm_jinja_alloc(r, capacity, sizeof(*keys), &keys));
    XM_TRY(xm_jinja_alloc(r, capacity, sizeof(*values), &values));
    if (d->n > 0) {
        memcpy(keys, d->keys, d->n * sizeof(*keys));
        memcpy(values, d->values, d->n * sizeof(*values));
    }
    d->keys = keys;
    d->values = values;
    d->capacity = capacity;
    return XM_OK;
}

enum xm_status
xm_jinja_dict_put(struct xm_jinja_run *r, struct xm_jinja_dict *d,
                  struct xm_jinja_value key, struct xm_jinja_value value)
{
    size_t at;
    XM_TRY(xm_jinja_check_key(r, key));
    XM_TRY(find_key(r, d, key, &at));
    if (at == SIZE_MAX) {
        if (d->n == d->capacity)
            XM_TRY(grow_dict(r, d));
        at = d->n++;
        d->keys[at] = key;
    }
    d->values[at] = value;
    return XM_OK;
}

static enum xm_status
list_from_json(struct xm_jinja_run *r, yyjson_val *json, bool content,
               struct xm_jinja_value *out)
{
    struct xm_jinja_list *list = NULL;
    size_t i, n;
    yyjson_val *item;
    XM_TRY(xm_jinja_new_list(r, yyjson_arr_size(json), &list));
    yyjson_arr_foreach(json, i, n, item)
    {
        XM_TRY(xm_jinja_from_json(r, item, content, &list->items[i]));
    }
    *out = xm_jinja_list_value(list);
    return XM_OK;
}

/* Returns whether the member is the role of a message or the type of a content part, given as a
 * single word. Programs choose these, so a template may build control tokens from them: they are
 * not content. */
static bool
names_a_part(yyjson_val *key, yyjson_val *value)
{
    const char *text = yyjson_get_str(value);
    if (!text || (!yyjson_equals_str(key, "role") && !yyjson_equals_str(key, "type")))
        return false;
    for (size_t i = 0; i < yyjson_get_len(value); i++) {
        const char c = text[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return true;
}

static enum xm_status
dict_from_json(struct xm_jinja_run *r, yyjson_val *json, bool content,
               struct xm_jinja_value *out)
{
    struct xm_jinja_dict *dict = NULL;
    size_t i, n;
    yyjson_val *key, *item;
    XM_TRY(xm_jinja_new_dict(r, &dict));
    yyjson_obj_foreach(json, i, n, key, item)
    {
        struct xm_jinja_value name, value;
        XM_TRY(xm_jinja_from_json(r, key, content, &name));
        XM_TRY(xm_jinja_from_json(r, item, content && !names_a_part(key, item), &value));
        XM_TRY(xm_jinja_dict_put(r, dict, name, value));
    }
    *out = (struct xm_jinja_value){.kind = XM_JINJA_DICT, .dict = dict};
    return XM_OK;
}

static enum xm_status
value_from_json(struct xm_jinja_run *r, yyjson_val *json, bool content,
                struct xm_jinja_value *out)
{
    switch (yyjson_get_type(json)) {
    case YYJSON_TYPE_BOOL:
        *out = xm_jinja_bool(yyjson_get_bool(json));
        return XM_OK;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_real(json))
            *out = xm_jinja_float(yyjson_get_real(json));
        else if (yyjson_is_uint(json) && yyjson_get_uint(json) > INT64_MAX)
            return xm_jinja_fail(r, "an integer in the input has more than 64 bits");
        else
            *out = xm_jinja_int(yyjson_get_sint(json));
        return XM_OK;
    case YYJSON_TYPE_STR:
        return (content ? xm_jinja_copy_content : xm_jinja_copy_text)(
            r, xm_slice_of(yyjson_get_str(json), yyjson_get_len(json)), out);
    case YYJSON_TYPE_ARR:
        return list_from_json(r, json, content, out);
    case YYJSON_TYPE_OBJ:
        return dict_from_json(r, json, content, out);
    default:
        *out = xm_jinja_none();
        return XM_OK;
    }
}

enum xm_status
xm_jinja_from_json(struct xm_jinja_run *r, yyjson_val *json, bool content,
                   struct xm_jinja_value *out)
{
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(value_from_json(r, json, content, out));
    r->depth--;
    return XM_OK;
}

enum xm_status
xm_jinja_bind(struct xm_jinja_run *r, struct xm_slice name, struct xm_jinja_value value)
{
    for (struct xm_jinja_binding *b = r->frame->bindings; b; b = b->next)
        if (xm_slice_equal(b->name, name)) {
            b->value = value;
            return XM_OK;
        }
    struct xm_jinja_binding *binding = NULL;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*binding), &binding));
    *binding = (struct xm_jinja_binding){name, value, r->frame->bindings};
    r->frame->bindings = binding;
    return XM_OK;
}

static enum xm_status
bind_variables(struct xm_jinja_run *r, const struct xm_jinja_variable *variables,
               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct xm_jinja_value name, value;
        XM_TRY(xm_jinja_copy_text(r, variables[i].name, &name));
        XM_TRY(
            xm_jinja_from_json(r, variables[i].value, variables[i].is_content, &value));
        XM_TRY(xm_jinja_bind(r, name.text, value));
    }
    return XM_OK;
}

/* Appends the text to `out`, and one mark for each of its bytes to `marks`. */
static void
add_result(const struct xm_jinja_buffer *text, struct xm_strbuf *out,
           struct xm_strbuf *marks)
{
    xm_strbuf_add_n(out, xm_strbuf_text(&text->text), text->text.n);
    if (!marks)
        return;
    xm_strbuf_add_n(marks, xm_strbuf_text(&text->marks), text->marks.n);
    for (size_t i = text->marks.n; i < text->text.n; i++)
        xm_strbuf_add_n(marks, "", 1);
}

enum xm_status
xm_jinja_render(const struct xm_jinja_template *tmpl,
                const struct xm_jinja_variable *variables, size_t n_variables,
                const struct xm_jinja_limits *limits, struct xm_strbuf *out,
                struct xm_strbuf *marks, struct xm_error *err)
{
    struct xm_jinja_frame root = {0};
    struct xm_jinja_buffer text = {0};
    struct xm_jinja_run r = {.limits = limits ? limits : &xm_jinja_default_limits,
                             .out = &text,
                             .frame = &root,
                             .err = err};
    enum xm_status status = bind_variables(&r, variables, n_variables);
    if (status == XM_OK)
        status = xm_jinja_execute(&r, tmpl->body);
    add_result(&text, out, marks);
    if (status == XM_OK && (!xm_strbuf_ok(out) || (marks && !xm_strbuf_ok(marks))))
        status = xm_no_memory(err, "a template's output");
    xm_jinja_buffer_free(&text);
    xm_arena_free(&r.arena);
    return status;
}
