/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings ("text.split()"). The table is in string_methods.c; the functions are in the
 * files named below.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_METHODS_H
#define XM_PLUGIN_TEXT_JINJA_METHODS_H

#include "plugin/text/jinja/run_state.h"

const struct xm_jinja_builtin *xm_jinja_find_string_method(struct xm_slice name);
/* Fails with the message that `v` is not a string. */
enum xm_status xm_jinja_fail_not_text(struct xm_jinja_run *r, struct xm_jinja_value v);
/* Reads an optional integer argument; *out keeps its value when `v` was not given. */
enum xm_status xm_jinja_read_size(struct xm_jinja_run *r, struct xm_jinja_value v,
                                  int64_t *out);

/* string_split.c */
xm_jinja_fn xm_jinja_string_split, xm_jinja_string_rsplit, xm_jinja_string_splitlines,
    xm_jinja_string_partition, xm_jinja_string_rpartition;

/* string_search.c */
xm_jinja_fn xm_jinja_string_find, xm_jinja_string_rfind, xm_jinja_string_index,
    xm_jinja_string_rindex, xm_jinja_string_count, xm_jinja_string_startswith,
    xm_jinja_string_endswith;

/* string_kinds.c */
xm_jinja_fn xm_jinja_string_isalnum, xm_jinja_string_isalpha, xm_jinja_string_isascii,
    xm_jinja_string_isdecimal, xm_jinja_string_isdigit, xm_jinja_string_isidentifier,
    xm_jinja_string_islower, xm_jinja_string_isnumeric, xm_jinja_string_isprintable,
    xm_jinja_string_isspace, xm_jinja_string_istitle, xm_jinja_string_isupper;

/* string_layout.c */
xm_jinja_fn xm_jinja_string_center, xm_jinja_string_ljust, xm_jinja_string_rjust,
    xm_jinja_string_zfill, xm_jinja_string_expandtabs, xm_jinja_string_maketrans,
    xm_jinja_string_translate;

#endif
