/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of mappings, lists, numbers and `loop`. Methods that would change a value in place are
 * hidden, as in Jinja's sandbox.
 */
#include "plugin/text/jinja/methods.h"

#include <math.h>

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

static enum xm_status
dict_items(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_list *pairs = NULL;
    XM_TRY(xm_jinja_new_list(r, self.dict->n, &pairs));
    for (size_t i = 0; i < pairs->n; i++)
        XM_TRY(xm_jinja_new_pair(r, self.dict->keys[i], self.dict->values[i],
                                 &pairs->items[i]));
    return xm_jinja_new_view(r, "dict_items", pairs, out);
}

static enum xm_status
dict_keys(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    const struct xm_jinja_list *keys = NULL;
    XM_TRY(xm_jinja_iterate(r, self, &keys));
    return xm_jinja_new_view(r, "dict_keys", keys, out);
}

static enum xm_status
dict_values(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_list *values = NULL;
    XM_TRY(xm_jinja_new_list(r, self.dict->n, &values));
    for (size_t i = 0; i < values->n; i++)
        values->items[i] = self.dict->values[i];
    return xm_jinja_new_view(r, "dict_values", values, out);
}

static enum xm_status
copy_self(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    *out = self; /* no copy is needed, because values are immutable */
    return XM_OK;
}

static enum xm_status
dict_fromkeys(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    const struct xm_jinja_list *keys = NULL;
    struct xm_jinja_dict *dict = NULL;
    const bool given = a->values[1].kind != XM_JINJA_ABSENT;
    XM_TRY(xm_jinja_iterate(r, a->values[0], &keys));
    XM_TRY(xm_jinja_new_dict(r, &dict));
    for (size_t i = 0; i < keys->n; i++)
        XM_TRY(xm_jinja_dict_put(r, dict, keys->items[i],
                                 given ? a->values[1] : xm_jinja_none()));
    *out = (value){.kind = XM_JINJA_DICT, .dict = dict};
    return XM_OK;
}

static enum xm_status
dict_get(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const value *found = NULL;
    XM_TRY(xm_jinja_check_key(r, a->values[0]));
    XM_TRY(xm_jinja_dict_find(r, self.dict, a->values[0], &found));
    if (found)
        *out = *found;
    else
        *out = a->values[1].kind == XM_JINJA_ABSENT ? xm_jinja_none() : a->values[1];
    return XM_OK;
}

/* Counts the items equal to `what` in [bounds[0], bounds[1]). *first is the index of the first one;
 * -1: none. */
static enum xm_status
count_items(struct xm_jinja_run *r, const struct xm_jinja_list *items, value what,
            const int64_t bounds[2], int64_t *first, int64_t *n)
{
    XM_TRY(xm_jinja_charge(r, items->n));
    *first = -1;
    *n = 0;
    for (int64_t i = bounds[0]; i < bounds[1]; i++) {
        bool equal = false;
        XM_TRY(xm_jinja_equal(r, items->items[i], what, &equal));
        *first = equal && *n == 0 ? i : *first;
        *n += equal;
    }
    return XM_OK;
}

static const struct xm_jinja_list *
items_of(value self)
{
    return self.kind == XM_JINJA_RANGE ? self.range->items : self.list;
}

static enum xm_status
list_index(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const struct xm_jinja_list *items = items_of(self);
    const int64_t size = (int64_t)items->n;
    int64_t first, n, bounds[2] = {0, size};
    for (int i = 0; i < 2; i++) {
        XM_TRY(xm_jinja_read_size(r, a->values[1 + i], &bounds[i]));
        bounds[i] += bounds[i] < 0 ? size : 0;
        bounds[i] = bounds[i] < 0 ? 0 : bounds[i] > size ? size : bounds[i];
    }
    XM_TRY(count_items(r, items, a->values[0], bounds, &first, &n));
    *out = xm_jinja_int(first);
    return n > 0 ? XM_OK
                 : xm_jinja_fail(r, "index: the list does not contain this value");
}

static enum xm_status
list_count(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const struct xm_jinja_list *items = items_of(self);
    const int64_t bounds[2] = {0, (int64_t)items->n};
    int64_t first, n;
    XM_TRY(count_items(r, items, a->values[0], bounds, &first, &n));
    *out = xm_jinja_int(n);
    return XM_OK;
}

static enum xm_status
loop_cycle(struct xm_jinja_run *r, value self, args *a, value *out)
{
    if (a->n == 0)
        return xm_jinja_fail(r, "loop.cycle needs values");
    *out = a->values[self.loop->index % a->n];
    return XM_OK;
}

/* loop.changed(): returns whether the arguments differ from those of the previous call, or there
 * was none. */
static enum xm_status
loop_changed(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_list *now = NULL;
    bool same = false;
    XM_TRY(xm_jinja_new_list(r, a->n, &now));
    if (a->n > 0)
        memcpy(now->items, a->values, a->n * sizeof(*now->items));
    if (self.loop->asked)
        XM_TRY(xm_jinja_equal(r, xm_jinja_list_value(self.loop->asked),
                              xm_jinja_list_value(now), &same));
    self.loop->asked = now;
    *out = xm_jinja_bool(!same);
    return XM_OK;
}

static enum xm_status
float_is_integer(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    *out = xm_jinja_bool(isfinite(self.real) && self.real == floor(self.real));
    return XM_OK;
}

static enum xm_status
int_bit_length(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    int64_t i = xm_jinja_to_int(self), n = 0;
    for (uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i; u; u >>= 1)
        n++;
    *out = xm_jinja_int(n);
    return XM_OK;
}

/* clang-format off */
/* a row without a function hides the name */
static const struct xm_jinja_builtin dict_methods[] = {
    {"clear", NULL, {NULL}, 0, false, false},
    {"copy", copy_self, {NULL}, 0, false, false},
    {"fromkeys", dict_fromkeys, {"iterable", "value"}, 1, false, false},
    {"get", dict_get, {"key", "default"}, 1, false, false},
    {"items", dict_items, {NULL}, 0, false, false},
    {"keys", dict_keys, {NULL}, 0, false, false},
    {"pop", NULL, {NULL}, 0, false, false},
    {"popitem", NULL, {NULL}, 0, false, false},
    {"setdefault", NULL, {NULL}, 0, false, false},
    {"update", NULL, {NULL}, 0, false, false},
    {"values", dict_values, {NULL}, 0, false, false},
};
static const struct xm_jinja_builtin list_methods[] = {
    {"copy", copy_self, {NULL}, 0, false, false},
    {"count", list_count, {"value"}, 1, false, false},
    {"index", list_index, {"value", "start", "stop"}, 1, false, false},
};
static const struct xm_jinja_builtin tuple_methods[] = {
    {"count", list_count, {"value"}, 1, false, false},
    {"index", list_index, {"value", "start", "stop"}, 1, false, false},
};
static const struct xm_jinja_builtin loop_methods[] = {
    {"changed", loop_changed, {NULL}, 0, true, false},
    {"cycle", loop_cycle, {NULL}, 0, true, false},
};
static const struct xm_jinja_builtin float_methods[] = {
    {"is_integer", float_is_integer, {NULL}, 0, false, false},
};
static const struct xm_jinja_builtin int_methods[] = {
    {"bit_length", int_bit_length, {NULL}, 0, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_method(enum xm_jinja_kind kind, struct xm_slice name)
{
    switch (kind) {
    case XM_JINJA_STRING:
        return xm_jinja_find_string_method(name);
    case XM_JINJA_DICT:
        return xm_jinja_find(dict_methods, XM_ARRAY_LEN(dict_methods), name);
    case XM_JINJA_LIST:
        return xm_jinja_find(list_methods, XM_ARRAY_LEN(list_methods), name);
    case XM_JINJA_TUPLE:
    case XM_JINJA_RANGE:
        return xm_jinja_find(tuple_methods, XM_ARRAY_LEN(tuple_methods), name);
    case XM_JINJA_LOOP:
        return xm_jinja_find(loop_methods, XM_ARRAY_LEN(loop_methods), name);
    case XM_JINJA_CYCLER:
        return xm_jinja_find_cycler_method(name);
    case XM_JINJA_FLOAT:
        return xm_jinja_find(float_methods, XM_ARRAY_LEN(float_methods), name);
    case XM_JINJA_INT:
    case XM_JINJA_BOOL:
        return xm_jinja_find(int_methods, XM_ARRAY_LEN(int_methods), name);
    default:
        return NULL;
    }
}
