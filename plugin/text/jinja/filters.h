/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of filters of the two files that hold them.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FILTERS_H
#define XM_PLUGIN_TEXT_JINJA_FILTERS_H

#include "plugin/text/jinja/run.h"

const struct xm_jinja_builtin *xm_jinja_find_sequence_filter(struct xm_slice name);

#endif
