/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of values: attributes, items and slices.
 *
 * "a.b" looks for a method first and then for an item, "a['b']" for an item first. A missing part
 * is undefined; only using an undefined value is an error.
 */
#include "plugin/text/jinja/run_state.h"

typedef struct xm_jinja_value value;

static enum xm_status
fail_undefined(struct xm_jinja_run *r, struct xm_slice name)
{
    return xm_jinja_fail(r, "'%.*s' is undefined", (int)(name.n < 100 ? name.n : 100),
                         name.text);
}

static bool
loop_attribute(const struct xm_jinja_loop *loop, struct xm_slice name, value *out)
{
    int64_t n = (int64_t)loop->items->n, i = (int64_t)loop->index;
    const struct {
        const char *name;
        value value;
    } attributes[] = {
        {"index", xm_jinja_int(i + 1)},        {"index0", xm_jinja_int(i)},
        {"revindex", xm_jinja_int(n - i)},     {"revindex0", xm_jinja_int(n - i - 1)},
        {"first", xm_jinja_bool(i == 0)},      {"last", xm_jinja_bool(i == n - 1)},
        {"length", xm_jinja_int(n)},           {"depth", xm_jinja_int(loop->depth + 1)},
        {"depth0", xm_jinja_int(loop->depth)},
    };
    for (size_t k = 0; k < XM_ARRAY_LEN(attributes); k++)
        if (xm_jinja_is(name, attributes[k].name)) {
            *out = attributes[k].value;
            return true;
        }
    if (xm_jinja_is(name, "previtem") && i > 0)
        *out = loop->items->items[i - 1];
    else if (xm_jinja_is(name, "nextitem") && i + 1 < n)
        *out = loop->items->items[i + 1];
    else
        return false;
    return true;
}

/* Finds an attribute of a macro: its name, its arguments, or whether it uses an implicit
 * variable. */
static enum xm_status
macro_attribute(struct xm_jinja_run *r, const struct xm_jinja_node *macro,
                struct xm_slice name, bool *found, value *out)
{
    static const struct {
        const char *name;
        unsigned use;
    } uses[] = {{"caller", XM_JINJA_USES_CALLER},
                {"catch_kwargs", XM_JINJA_USES_KWARGS},
                {"catch_varargs", XM_JINJA_USES_VARARGS}};
    struct xm_jinja_list *names = NULL;
    size_t n = 0;
    *found = true;
    for (size_t k = 0; k < XM_ARRAY_LEN(uses); k++)
        if (xm_jinja_is(name, uses[k].name)) {
            *out = xm_jinja_bool(macro->uses & uses[k].use);
            return XM_OK;
        }
    if (xm_jinja_is(name, "name")) {
        *out = macro->name.n > 0 ? xm_jinja_text(macro->name) : xm_jinja_none();
        return XM_OK;
    }
    *found = xm_jinja_is(name, "arguments");
    if (!*found)
        return XM_OK;
    for (const struct xm_jinja_node *p = macro->args; p; p = p->next)
        n++;
    XM_TRY(xm_jinja_new_list(r, n, &names));
    n = 0;
    for (const struct xm_jinja_node *p = macro->args; p; p = p->next)
        names->items[n++] = xm_jinja_text(p->name);
    *out = (value){.kind = XM_JINJA_TUPLE, .list = names};
    return XM_OK;
}

/* Finds an attribute that is neither a method nor an item. */
static enum xm_status
own_attribute(struct xm_jinja_run *r, value v, struct xm_slice name, bool *found,
              value *out)
{
    *found = false;
    if (v.kind == XM_JINJA_LOOP)
        *found = loop_attribute(v.loop, name, out);
    else if (v.kind == XM_JINJA_FUNCTION && v.function->macro)
        return macro_attribute(r, v.function->macro, name, found, out);
    else if (v.kind == XM_JINJA_CYCLER && !v.cycler->stays &&
             xm_jinja_is(name, "current"))
        *found = true, *out = v.cycler->items->items[v.cycler->at];
    else if (v.kind == XM_JINJA_TUPLE && v.list->is_group)
        for (size_t i = 0; i < 2 && !*found; i++) {
            *found = xm_jinja_is(name, i ? "list" : "grouper");
            *out = v.list->items[i];
        }
    return XM_OK;
}

/* Finds item `key` of `v`. *found is false if there is none. */
static enum xm_status
find_item(struct xm_jinja_run *r, value v, value key, bool *found, value *out)
{
    const value *item = NULL;
    int64_t n = 0, i = 0;
    *found = false;
    if (v.kind == XM_JINJA_DICT || v.kind == XM_JINJA_NAMESPACE) {
        if (key.kind == XM_JINJA_LIST || key.kind == XM_JINJA_DICT)
            return XM_OK;
        XM_TRY(xm_jinja_dict_find(r, v.dict, key, &item));
        *found = item != NULL;
        if (item)
            *out = *item;
        return XM_OK;
    }
    if (v.kind == XM_JINJA_RANGE)
        v = xm_jinja_list_value(v.range->items);
    bool indexed = xm_jinja_is_list(v) || v.kind == XM_JINJA_STRING;
    if (!indexed || (key.kind != XM_JINJA_INT && key.kind != XM_JINJA_BOOL))
        return XM_OK;
    const bool is_safe = v.is_safe;
    XM_TRY(xm_jinja_length(r, v, &n));
    i = xm_jinja_to_int(key);
    i += i < 0 ? n : 0;
    *found = i >= 0 && i < n;
    if (!*found)
        return XM_OK;
    if (v.kind != XM_JINJA_STRING) {
        *out = v.list->items[i];
        return XM_OK;
    }
    size_t at = xm_jinja_offset(v.text, (size_t)i);
    struct xm_slice rest = {v.text.text + at, v.text.n - at};
    *out = xm_jinja_text(xm_slice_of(rest.text, xm_jinja_offset(rest, 1)));
    out->is_safe = is_safe;
    return XM_OK;
}

static enum xm_status
find_method(struct xm_jinja_run *r, value v, struct xm_slice name, bool *found,
            value *out)
{
    struct xm_jinja_function *method = NULL;
    const struct xm_jinja_builtin *builtin = xm_jinja_find_method(v.kind, name);
    *found = builtin != NULL;
    if (!builtin)
        return XM_OK;
    /* The method would change the value: Jinja's sandbox hides it, and an item of this name. */
    if (!builtin->run) {
        *out = xm_jinja_undefined(name);
        return XM_OK;
    }
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*method), &method));
    method->builtin = builtin;
    method->self = v;
    *out = (value){.kind = XM_JINJA_FUNCTION, .function = method};
    return XM_OK;
}

enum xm_status
xm_jinja_attribute(struct xm_jinja_run *r, value v, struct xm_slice name, value *out)
{
    bool found = false;
    if (v.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, v.text);
    XM_TRY(own_attribute(r, v, name, &found, out));
    if (!found)
        XM_TRY(find_method(r, v, name, &found, out));
    if (!found)
        XM_TRY(find_item(r, v, xm_jinja_text(name), &found, out));
    if (!found)
        *out = xm_jinja_undefined(name);
    return XM_OK;
}

enum xm_status
xm_jinja_item(struct xm_jinja_run *r, value v, value key, value *out)
{
    bool found = false;
    if (v.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, v.text);
    XM_TRY(find_item(r, v, key, &found, out));
    if (found)
        return XM_OK;
    if (key.kind == XM_JINJA_STRING && v.kind != XM_JINJA_NAMESPACE)
        return xm_jinja_attribute(r, v, key.text, out);
    struct xm_slice name;
    XM_TRY(xm_jinja_to_text(r, key, &name));
    *out = xm_jinja_undefined(name);
    return XM_OK;
}

enum xm_status
xm_jinja_path(struct xm_jinja_run *r, value v, value path, const value *other, value *out)
{
    const bool one = path.kind == XM_JINJA_INT;
    struct xm_slice rest = path.text;
    *out = v;
    if (!one && path.kind != XM_JINJA_STRING)
        return xm_jinja_fail(r, "the name of an attribute is %s, expected a string",
                             xm_jinja_kind_name(path.kind));
    for (bool more = true; more;) {
        const char *dot = !one && rest.n > 0 ? memchr(rest.text, '.', rest.n) : NULL;
        value key = path;
        if (!one) {
            const struct xm_slice part = {rest.text,
                                          dot ? (size_t)(dot - rest.text) : rest.n};
            int64_t number;
            const bool digits = part.n > 0 && part.text[0] >= '0' && part.text[0] <= '9';
            key = digits && xm_jinja_read_int(part, &number) ? xm_jinja_int(number)
                                                             : xm_jinja_text(part);
            if (dot)
                rest = xm_slice_of(dot + 1, rest.n - part.n - 1);
        }
        XM_TRY(xm_jinja_item(r, *out, key, out));
        if (other && out->kind == XM_JINJA_UNDEFINED)
            *out = *other;
        more = dot != NULL;
    }
    return XM_OK;
}

struct range {
    int64_t start, stop, step, n;
};

/* wraps around for an index without item */
static int64_t
number_at(const struct xm_jinja_range *of, int64_t i)
{
    return (int64_t)((uint64_t)of->start + (uint64_t)i * (uint64_t)of->step);
}

static int64_t
clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0)
        i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

/* Computes the range of x[start:stop:step] by Python's rules. */
static enum xm_status
find_range(struct xm_jinja_run *r, const value bounds[3], int64_t n, struct range *out)
{
    for (int i = 0; i < 3; i++) {
        bool given = bounds[i].kind != XM_JINJA_ABSENT && bounds[i].kind != XM_JINJA_NONE;
        if (given && bounds[i].kind != XM_JINJA_INT && bounds[i].kind != XM_JINJA_BOOL)
            return xm_jinja_fail(r, "the bound of a slice is %s, expected an integer",
                                 xm_jinja_kind_name(bounds[i].kind));
    }
    bool has_start = xm_jinja_is_number(bounds[0]);
    bool has_stop = xm_jinja_is_number(bounds[1]);
    int64_t step = xm_jinja_is_number(bounds[2]) ? xm_jinja_to_int(bounds[2]) : 1;
    if (step == 0)
        return xm_jinja_fail(r, "the step of a slice is 0");
    step = clamp(step, 0, step, INT32_MAX); /* any step this long takes one item */
    step = step < -INT32_MAX ? -INT32_MAX : step;
    bool up = step > 0;
    int64_t low = up ? 0 : -1, high = up ? n : n - 1;
    int64_t start = up ? low : high, stop = up ? high : low;
    if (has_start)
        start = clamp(xm_jinja_to_int(bounds[0]), n, low, high);
    if (has_stop)
        stop = clamp(xm_jinja_to_int(bounds[1]), n, low, high);
    int64_t distance = up ? stop - start : start - stop, size = up ? step : -step;
    *out = (struct range){start, stop, step,
                          distance > 0 ? (distance + size - 1) / size : 0};
    return XM_OK;
}

static enum xm_status
join_characters(struct xm_jinja_run *r, const struct xm_jinja_list *list, value *out)
{
    uint64_t n = 0;
    bool content = false;
    struct xm_jinja_space space;
    for (size_t i = 0; i < list->n; i++) {
        n += list->items[i].text.n;
        content = content || xm_jinja_marks_of(r, list->items[i].text);
    }
    XM_TRY(xm_jinja_new_space(r, n, content, &space));
    for (size_t i = 0; i < list->n; i++)
        xm_jinja_put(r, &space, list->items[i].text);
    *out = xm_jinja_text(xm_slice_of(space.text, space.used));
    return XM_OK;
}

enum xm_status
xm_jinja_slice(struct xm_jinja_run *r, value v, const value bounds[3], value *out)
{
    const struct xm_jinja_list *items = NULL;
    struct xm_jinja_list *list = NULL;
    struct range range = {0};
    int64_t n = 0;
    if (v.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, v.text);
    if (!xm_jinja_is_list(v) && v.kind != XM_JINJA_STRING && v.kind != XM_JINJA_RANGE)
        return xm_jinja_fail(r, "%s cannot be sliced", xm_jinja_kind_name(v.kind));
    XM_TRY(xm_jinja_length(r, v, &n));
    XM_TRY(find_range(r, bounds, n, &range));
    if (v.kind == XM_JINJA_RANGE) {
        const struct xm_jinja_range *of = v.range;
        const uint64_t step = (uint64_t)range.step * (uint64_t)of->step;
        return xm_jinja_new_range(r, number_at(of, range.start),
                                  number_at(of, range.stop), (int64_t)step, out);
    }
    if (v.kind == XM_JINJA_STRING && range.step == 1) { /* the usual case needs no copy */
        size_t from = xm_jinja_offset(v.text, (size_t)range.start);
        struct xm_slice rest = {v.text.text + from, v.text.n - from};
        *out =
            xm_jinja_text(xm_slice_of(rest.text, xm_jinja_offset(rest, (size_t)range.n)));
        out->is_safe = v.is_safe;
        return XM_OK;
    }
    XM_TRY(xm_jinja_iterate(r, v, &items));
    XM_TRY(xm_jinja_new_list(r, (uint64_t)range.n, &list));
    for (int64_t i = 0; i < range.n; i++)
        list->items[i] = items->items[range.start + i * range.step];
    if (v.kind == XM_JINJA_STRING) {
        XM_TRY(join_characters(r, list, out));
        out->is_safe = v.is_safe;
        return XM_OK;
    }
    *out = (value){.kind = v.kind, .list = list};
    return XM_OK;
}
