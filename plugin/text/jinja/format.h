/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts with fields: Python's "format" % value and "format".format(values).
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FORMAT_H
#define XM_PLUGIN_TEXT_JINJA_FORMAT_H

#include "plugin/text/jinja/run_state.h"

/* `v`: a tuple of values, a mapping for %(name)s, or the one value. */
enum xm_status xm_jinja_format_percent(struct xm_jinja_run *r, struct xm_slice format,
                                       struct xm_jinja_value v,
                                       struct xm_jinja_value *out);
enum xm_status xm_jinja_format_braces(struct xm_jinja_run *r, struct xm_slice format,
                                      const struct xm_jinja_args *args,
                                      struct xm_jinja_value *out);

#endif
