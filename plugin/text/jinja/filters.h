/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters ("value | name") are implemented in several files, each with a table of its own.
 * filters.c looks a name up in these tables in turn.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FILTERS_H
#define XM_PLUGIN_TEXT_JINJA_FILTERS_H

#include "plugin/text/jinja/run_state.h"

const struct xm_jinja_builtin *xm_jinja_find_text_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_sequence_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_select_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_group_filter(struct xm_slice name);

/* Each of these filters has its own file, filters_NAME.c. */
xm_jinja_fn xm_jinja_filter_pprint, xm_jinja_filter_urlize, xm_jinja_filter_wordwrap;

/* Appends `s` with & < > " ' as HTML entities. */
void xm_jinja_add_escaped(const struct xm_jinja_run *r, struct xm_slice s,
                          struct xm_jinja_buffer *b);

/* Returns whether an argument was given and is not none. */
static inline bool
xm_jinja_is_given(struct xm_jinja_value v)
{
    return v.kind != XM_JINJA_ABSENT && v.kind != XM_JINJA_NONE;
}

/* Reads an indentation: an integer is a number of spaces, a string is used as it is, any other
 * value means `none` spaces. */
enum xm_status xm_jinja_read_indentation(struct xm_jinja_run *r,
                                         struct xm_jinja_value width, int64_t none,
                                         struct xm_slice *out);

/* How to get the key by which items are sorted, grouped and compared: the item itself, or an
 * attribute of it. */
struct xm_jinja_key {
    /* a path that xm_jinja_path reads; none: the item itself */
    struct xm_jinja_value attribute;
    /* value for a missing attribute; NULL: undefined */
    const struct xm_jinja_value *other;
    bool with_case; /* false: strings are compared without case         */
    bool many;      /* `attribute` is a list of paths, "a,b"            */
};
/* Computes the key of one item. */
enum xm_status xm_jinja_key_of(struct xm_jinja_run *r, const struct xm_jinja_key *key,
                               struct xm_jinja_value item, struct xm_jinja_value *out);
/* Makes a sorted copy; equal items keep their order. */
enum xm_status xm_jinja_sort(struct xm_jinja_run *r, const struct xm_jinja_list *items,
                             const struct xm_jinja_key *key, bool descending,
                             struct xm_jinja_list **out);

#endif
