/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that group items: into rows (batch) or columns (slice) of equal size, and by an
 * attribute.
 */
#include "plugin/text/jinja/filters.h"
#include "plugin/text/jinja/methods.h"

enum { MAX_GROUPS = 100000 };

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;
typedef const struct xm_jinja_list list;

static enum xm_status
read_number(struct xm_jinja_run *r, value v, int64_t *out)
{
    XM_TRY(xm_jinja_read_size(r, v, out));
    return *out >= 1 && *out <= MAX_GROUPS
               ? XM_OK
               : xm_jinja_fail(r, "batch and slice need a number from 1 to %d",
                               MAX_GROUPS);
}

static enum xm_status
filter_batch(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *rows = NULL;
    int64_t size = 0;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(read_number(r, a->values[0], &size));
    size_t width = (size_t)size;
    XM_TRY(xm_jinja_new_list(r, (items->n + width - 1) / width, &rows));
    for (size_t i = 0; i < rows->n; i++) {
        struct xm_jinja_list *row = NULL;
        size_t left = items->n - i * width;
        size_t n = left < width && !xm_jinja_is_given(a->values[1]) ? left : width;
        XM_TRY(xm_jinja_new_list(r, n, &row));
        for (size_t k = 0; k < n; k++)
            row->items[k] = k < left ? items->items[i * width + k] : a->values[1];
        rows->items[i] = xm_jinja_list_value(row);
    }
    *out = xm_jinja_list_value(rows);
    return XM_OK;
}

/* The filter slice: makes columns whose sizes differ by at most one, the longer ones first. */
static enum xm_status
filter_slice(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *columns = NULL;
    int64_t number = 0;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(read_number(r, a->values[0], &number));
    const size_t n = (size_t)number, each = items->n / n, longer = items->n % n;
    XM_TRY(xm_jinja_new_list(r, n, &columns));
    for (size_t i = 0, at = 0; i < n; i++) {
        struct xm_jinja_list *column = NULL;
        const size_t size = each + (i < longer);
        const bool filled = i >= longer && xm_jinja_is_given(a->values[1]);
        XM_TRY(xm_jinja_new_list(r, size + filled, &column));
        for (size_t k = 0; k < size; k++)
            column->items[k] = items->items[at++];
        if (filled)
            column->items[size] = a->values[1];
        columns->items[i] = xm_jinja_list_value(column);
    }
    *out = xm_jinja_list_value(columns);
    return XM_OK;
}

/* Makes a group of the items [from, to), which have the same key. */
static enum xm_status
new_group(struct xm_jinja_run *r, list *items, size_t from, size_t to, value key,
          value *out)
{
    struct xm_jinja_list *members = NULL, *pair = NULL;
    XM_TRY(xm_jinja_new_list(r, to - from, &members));
    for (size_t i = from; i < to; i++)
        members->items[i - from] = items->items[i];
    XM_TRY(xm_jinja_new_list(r, 2, &pair));
    pair->items[0] = key;
    pair->items[1] = xm_jinja_list_value(members);
    pair->is_group = true;
    *out = (value){.kind = XM_JINJA_TUPLE, .list = pair};
    return XM_OK;
}

/* The filter groupby: groups are sorted by the attribute. A group's name is the attribute of its
 * first item. */
static enum xm_status
filter_groupby(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const struct xm_jinja_key key = {
        .attribute = a->values[0],
        .other = xm_jinja_is_given(a->values[1]) ? &a->values[1] : NULL,
        .with_case = xm_jinja_truth(a->values[2])};
    struct xm_jinja_key exact = key;
    list *items = NULL;
    struct xm_jinja_list *sorted = NULL, *groups = NULL;
    size_t n = 0;
    exact.with_case = true;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_sort(r, items, &key, false, &sorted));
    XM_TRY(xm_jinja_new_list(r, items->n, &groups));
    for (size_t from = 0, to; from < sorted->n; from = to) {
        value first, other, name;
        bool same = true;
        XM_TRY(xm_jinja_key_of(r, &key, sorted->items[from], &first));
        for (to = from + 1; to < sorted->n && same; to += same) {
            XM_TRY(xm_jinja_key_of(r, &key, sorted->items[to], &other));
            XM_TRY(xm_jinja_equal(r, first, other, &same));
        }
        XM_TRY(xm_jinja_key_of(r, &exact, sorted->items[from], &name));
        XM_TRY(new_group(r, sorted, from, to, name, &groups->items[n++]));
    }
    groups->n = n;
    *out = xm_jinja_list_value(groups);
    return XM_OK;
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"batch", filter_batch, {"linecount", "fill_with"}, 1, false, true},
    {"groupby", filter_groupby, {"attribute", "default", "case_sensitive"}, 1, false, false},
    {"slice", filter_slice, {"slices", "fill_with"}, 1, false, true},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_group_filter(struct xm_slice name)
{
    return xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
}
