/* SPDX-License-Identifier: Apache-2.0
 *
 * Where log lines go. The setting is process-wide; change it before work begins.
 */
#ifndef OPENVINO_C_OV_UTIL_H
#define OPENVINO_C_OV_UTIL_H

#include "openvino/c/ov_common.h"

typedef void(OPENVINO_C_API_CALLBACK *ov_util_log_callback_func)(const char *line);

/* Passes each log line to the function; NULL switches the log off. */
OPENVINO_C_API(void) ov_util_set_log_callback(ov_util_log_callback_func func);
/* Writes log lines to the standard error stream again. */
OPENVINO_C_API(void) ov_util_reset_log_callback(void);

#endif
