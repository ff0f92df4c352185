/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes cells of CSV files (RFC 4180, with any separator).
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_CSV_H
#define XM_PLUGIN_PROGRAM_UTIL_CSV_H

#include <stdbool.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends a cell, with `separator` before it unless is_first. A text that contains the separator, a
 * quote or a newline is quoted. */
void xm_csv_cell(struct xm_strbuf *out, char separator, bool is_first, const char *text);

#ifdef __cplusplus
}
#endif
#endif
