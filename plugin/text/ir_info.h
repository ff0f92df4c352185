/* SPDX-License-Identifier: Apache-2.0
 *
 * What exporters write into an IR besides the graph: net / rt_info. Of an IR of which nothing else
 * is wanted, as a tokenizer's, whose graph has operations of its own.
 */
#ifndef XM_PLUGIN_TEXT_IR_INFO_H
#define XM_PLUGIN_TEXT_IR_INFO_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the value of rt_info's element of that name. XM_NOT_FOUND: there is no such file, or no
 * such element in it. */
enum xm_status xm_ir_info_read(const char *path, const char *name, struct xm_strbuf *out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
