/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that the filters safe and escape have marked as safe (Python's Markup).
 *
 * Chat templates do not escape automatically, but Markup does: a text that is added to a marked
 * text is escaped unless it is marked, too. Parts of a marked text and the results of its methods
 * are marked again. Not supported: escaping the arguments of its methods join, replace and format
 * and of its operator %.
 */
#include "plugin/text/jinja/filters.h"

typedef struct xm_jinja_value value;

/* Returns whether a filter or method of a marked text returns a marked text; all methods of strings
 * do. */
static bool
keeps_mark(const struct xm_jinja_builtin *builtin)
{
    static const char *const filters[] = {"capitalize", "center",   "indent", "lower",
                                          "random",     "reverse",  "string", "title",
                                          "trim",       "truncate", "upper"};
    const struct xm_slice name = {builtin->name, strlen(builtin->name)};
    if (xm_jinja_find_method(XM_JINJA_STRING, name) == builtin)
        return true;
    for (size_t i = 0; i < XM_ARRAY_LEN(filters); i++)
        if (xm_jinja_is(name, filters[i]))
            return true;
    return false;
}

enum xm_status
xm_jinja_keep_safe(struct xm_jinja_run *r, const struct xm_jinja_builtin *builtin,
                   value self, value *out)
{
    struct xm_jinja_list *parts = NULL;
    if (!self.is_safe || !keeps_mark(builtin))
        return XM_OK;
    if (out->kind == XM_JINJA_STRING)
        out->is_safe = true;
    if (!xm_jinja_is_list(*out))
        return XM_OK;
    XM_TRY(xm_jinja_new_list(r, out->list->n, &parts));
    for (size_t i = 0; i < parts->n; i++) {
        parts->items[i] = out->list->items[i];
        parts->items[i].is_safe = parts->items[i].kind == XM_JINJA_STRING;
    }
    out->list = parts;
    return XM_OK;
}

enum xm_status
xm_jinja_escape(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_jinja_buffer b = {0};
    struct xm_slice s;
    *out = v;
    if (v.is_safe)
        return XM_OK;
    XM_TRY(xm_jinja_to_text(r, v, &s));
    xm_jinja_add_escaped(r, s, &b);
    XM_TRY(xm_jinja_take_text(r, &b, out));
    out->is_safe = true;
    return XM_OK;
}
