/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's two ways to format strings: "%-5s" % value and "{:>5}".format(value).
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FORMAT_H
#define XM_PLUGIN_TEXT_JINJA_FORMAT_H

#include "plugin/text/jinja/run_state.h"

/* Both functions fail with an error message where Python raises an exception. */

/* Computes format % v. `v` is a tuple with one value for each field, a mapping for %(name)s, or the
 * only value. */
enum xm_status xm_jinja_format_percent(struct xm_jinja_run *r, struct xm_slice format,
                                       struct xm_jinja_value v,
                                       struct xm_jinja_value *out);
/* Computes format.format(args). */
enum xm_status xm_jinja_format_braces(struct xm_jinja_run *r, struct xm_slice format,
                                      const struct xm_jinja_args *args,
                                      struct xm_jinja_value *out);

#endif
