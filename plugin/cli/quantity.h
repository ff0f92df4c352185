/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats numbers with units, and names from files, for people.
 */
#ifndef XM_PLUGIN_CLI_QUANTITY_H
#define XM_PLUGIN_CLI_QUANTITY_H

#include <stdint.h>

#include "runtime/util/strbuf.h"

enum { XM_CLI_QUANTITY = 32 }; /* bytes of a quantity's text, with its NUL */

/* Three digits and a unit of 1000: "30.5 B", "512". Returns `out`. */
const char *xm_cli_count_text(uint64_t n, char out[XM_CLI_QUANTITY]);
/* Three digits and a unit of 1024: "17.3 GiB", "512 bytes". Returns `out`. */
const char *xm_cli_bytes_text(uint64_t n, char out[XM_CLI_QUANTITY]);
/* Appends a name from a file. Control characters become '?', because the text may go to a
 * terminal. */
void xm_cli_add_name(struct xm_strbuf *out, const char *name);

#endif
