/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of CSV files (RFC 4180, with any separator).
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_CSV_H
#define XM_PLUGIN_PROGRAM_UTIL_CSV_H

#include <stdbool.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends a cell behind `separator`, which the first cell of a line has not; in quotes where its
 * text has the separator, quotes or a newline. */
void xm_csv_cell(struct xm_strbuf *out, char separator, bool is_first, const char *text);

#ifdef __cplusplus
}
#endif
#endif
