/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of filters of the files that hold them; filters.c asks them one after the other.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FILTERS_H
#define XM_PLUGIN_TEXT_JINJA_FILTERS_H

#include "plugin/text/jinja/run_state.h"

const struct xm_jinja_builtin *xm_jinja_find_text_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_sequence_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_select_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_group_filter(struct xm_slice name);

/* Appends `s` with entities for what means something in HTML. */
void xm_jinja_add_escaped(const struct xm_jinja_run *r, struct xm_slice s,
                          struct xm_jinja_buffer *b);

/* Whether an argument is there and not none. */
static inline bool
xm_jinja_is_given(struct xm_jinja_value v)
{
    return v.kind != XM_JINJA_ABSENT && v.kind != XM_JINJA_NONE;
}

/* An indentation: a number of spaces (`none`: where it is no integer), or a text. */
enum xm_status xm_jinja_read_indentation(struct xm_jinja_run *r,
                                         struct xm_jinja_value width, int64_t none,
                                         struct xm_slice *out);

/* What items are sorted, grouped and compared by: the item or an attribute ("a,b": several, with
 * `many`), strings without their case unless `with_case`. `other` (may be NULL) stands for an
 * attribute that is not there. */
struct xm_jinja_key {
    struct xm_jinja_value attribute;
    const struct xm_jinja_value *other;
    bool with_case, many;
};
enum xm_status xm_jinja_key_of(struct xm_jinja_run *r, const struct xm_jinja_key *key,
                               struct xm_jinja_value item, struct xm_jinja_value *out);
/* A sorted copy; equal items keep their order. */
enum xm_status xm_jinja_sort(struct xm_jinja_run *r, const struct xm_jinja_list *items,
                             const struct xm_jinja_key *key, bool descending,
                             struct xm_jinja_list **out);

#endif
