/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one value of an OpenVINO IR's metadata (element net / rt_info) without reading its graph.
 * It is used for openvino_tokenizer.xml, whose graph has operations that the IR reader does not
 * know.
 *
 * "rt_info" is "runtime information": names and values that exporters add.
 */
#ifndef XM_PLUGIN_TEXT_IR_INFO_H
#define XM_PLUGIN_TEXT_IR_INFO_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the value of the element `name` of rt_info in the IR at `path`. XM_NOT_FOUND: there is no
 * such file, or no such element in it. */
enum xm_status xm_ir_info_read(const char *path, const char *name, struct xm_strbuf *out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
