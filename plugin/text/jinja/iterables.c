/* SPDX-License-Identifier: Apache-2.0
 *
 * Iteration over lists, characters of strings, views of mappings, ranges and iterators.
 *
 * In Python an iterator computes its items one by one. Here all items are computed at once, but
 * only when the first is asked for. Until then the computation cannot fail, and the iterator counts
 * as true even if it has no items.
 */
#include "plugin/text/jinja/run_state.h"

enum { MAX_RANGE = 100000 }; /* as in Jinja's sandbox */

typedef struct xm_jinja_value value;

/* ---- making ---- */

enum xm_status
xm_jinja_new_iterator(struct xm_jinja_run *r, const struct xm_jinja_list *items,
                      value *out)
{
    struct xm_jinja_iterator *iterator = NULL;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*iterator), &iterator));
    iterator->items = items;
    *out = (value){.kind = XM_JINJA_ITERATOR, .iterator = iterator};
    return XM_OK;
}

enum xm_status
xm_jinja_defer(struct xm_jinja_run *r, const struct xm_jinja_builtin *builtin, value self,
               const struct xm_jinja_args *args, value *out)
{
    struct xm_jinja_args *kept = NULL;
    XM_TRY(xm_jinja_new_iterator(r, NULL, out));
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*kept), &kept));
    *kept = *args;
    XM_TRY(xm_jinja_alloc(r, args->n, sizeof(*kept->values), &kept->values));
    if (args->n > 0)
        memcpy(kept->values, args->values, args->n * sizeof(*kept->values));
    out->iterator->builtin = builtin;
    out->iterator->self = self;
    out->iterator->args = kept;
    return XM_OK;
}

enum xm_status
xm_jinja_new_view(struct xm_jinja_run *r, const char *name,
                  const struct xm_jinja_list *items, value *out)
{
    struct xm_jinja_view *view = NULL;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*view), &view));
    *view = (struct xm_jinja_view){name, items};
    *out = (value){.kind = XM_JINJA_VIEW, .view = view};
    return XM_OK;
}

enum xm_status
xm_jinja_new_range(struct xm_jinja_run *r, int64_t start, int64_t stop, int64_t step,
                   value *out)
{
    struct xm_jinja_list *list = NULL;
    struct xm_jinja_range *range = NULL;
    if (step == 0)
        return xm_jinja_fail(r, "the step of range is 0");
    const bool up = step > 0, empty = up ? start >= stop : start <= stop;
    const uint64_t distance = empty ? 0
                              : up  ? (uint64_t)stop - (uint64_t)start
                                    : (uint64_t)start - (uint64_t)stop;
    const uint64_t size = up ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t n = distance / size + (distance % size != 0);
    if (n > MAX_RANGE)
        return xm_jinja_fail(r, "a range has %llu numbers, at most %d are supported",
                             (unsigned long long)n, MAX_RANGE);
    XM_TRY(xm_jinja_new_list(r, n, &list));
    for (size_t i = 0; i < list->n; i++)
        list->items[i] = xm_jinja_int(start + (int64_t)i * step);
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*range), &range));
    *range = (struct xm_jinja_range){start, stop, step, list};
    *out = (value){.kind = XM_JINJA_RANGE, .range = range};
    return XM_OK;
}

/* ---- going through ---- */

/* Computes the items of an iterator, unless that is done already. */
static enum xm_status
make_items(struct xm_jinja_run *r, struct xm_jinja_iterator *iterator)
{
    const struct xm_jinja_builtin *builtin = iterator->builtin;
    struct xm_jinja_list *none = NULL;
    value made = {0};
    if (!builtin)
        return XM_OK;
    /* it is empty if the computation asks for the same iterator */
    iterator->builtin = NULL;
    XM_TRY(xm_jinja_new_list(r, 0, &none));
    iterator->items = none;
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(builtin->run(r, iterator->self, iterator->args, &made));
    r->depth--;
    iterator->items = made.list;
    return XM_OK;
}

enum xm_status
xm_jinja_take(struct xm_jinja_run *r, value v, value *out)
{
    XM_TRY(make_items(r, v.iterator));
    *out = v.iterator->used < v.iterator->items->n
               ? v.iterator->items->items[v.iterator->used++]
               : xm_jinja_undefined(xm_slice_of("an item of nothing", 18));
    return XM_OK;
}

static enum xm_status
take_all(struct xm_jinja_run *r, struct xm_jinja_iterator *iterator,
         const struct xm_jinja_list **out)
{
    struct xm_jinja_list *rest = NULL;
    XM_TRY(make_items(r, iterator));
    if (iterator->used == 0) {
        *out = iterator->items;
        iterator->used = iterator->items->n;
        return XM_OK;
    }
    XM_TRY(xm_jinja_new_list(r, iterator->items->n - iterator->used, &rest));
    for (size_t i = 0; i < rest->n; i++)
        rest->items[i] = iterator->items->items[iterator->used + i];
    iterator->used = iterator->items->n;
    *out = rest;
    return XM_OK;
}

static enum xm_status
split_characters(struct xm_jinja_run *r, struct xm_slice s,
                 const struct xm_jinja_list **out)
{
    struct xm_jinja_list *list = NULL;
    XM_TRY(xm_jinja_new_list(r, xm_jinja_count(s), &list));
    for (size_t i = 0; i < list->n; i++) {
        size_t n = xm_jinja_offset(s, 1);
        list->items[i] = xm_jinja_text(xm_slice_of(s.text, n));
        s = xm_slice_of(s.text + n, s.n - n);
    }
    *out = list;
    return XM_OK;
}

enum xm_status
xm_jinja_iterate(struct xm_jinja_run *r, value v, const struct xm_jinja_list **out)
{
    struct xm_jinja_list *list = NULL;
    switch (v.kind) {
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        *out = v.list;
        return XM_OK;
    case XM_JINJA_VIEW:
        *out = v.view->items;
        return XM_OK;
    case XM_JINJA_RANGE:
        *out = v.range->items;
        return XM_OK;
    case XM_JINJA_ITERATOR:
        return take_all(r, v.iterator, out);
    case XM_JINJA_STRING:
        return split_characters(r, v.text, out);
    case XM_JINJA_UNDEFINED:
    case XM_JINJA_DICT:
        XM_TRY(xm_jinja_new_list(r, v.kind == XM_JINJA_DICT ? v.dict->n : 0, &list));
        if (list->n > 0)
            memcpy(list->items, v.dict->keys, list->n * sizeof(*list->items));
        *out = list;
        return XM_OK;
    default:
        return xm_jinja_fail(r, "%s cannot be iterated over", xm_jinja_kind_name(v.kind));
    }
}

enum xm_status
xm_jinja_length(struct xm_jinja_run *r, value v, int64_t *out)
{
    switch (v.kind) {
    case XM_JINJA_UNDEFINED:
        *out = 0;
        return XM_OK;
    case XM_JINJA_STRING:
        *out = (int64_t)xm_jinja_count(v.text);
        return xm_jinja_charge_text(r, v.text.n);
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        *out = (int64_t)v.list->n;
        return XM_OK;
    case XM_JINJA_DICT:
        *out = (int64_t)v.dict->n;
        return XM_OK;
    case XM_JINJA_VIEW:
        *out = (int64_t)v.view->items->n;
        return XM_OK;
    case XM_JINJA_RANGE:
        *out = (int64_t)v.range->items->n;
        return XM_OK;
    case XM_JINJA_LOOP:
        *out = (int64_t)v.loop->items->n;
        return XM_OK;
    default:
        return xm_jinja_fail(r, "%s has no length", xm_jinja_kind_name(v.kind));
    }
}
