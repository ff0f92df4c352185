/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text: with a decimal point, whatever LC_NUMERIC the program around us has set.
 * Everything of the library that takes a format (xm_strbuf_printf, xm_fail, xm_log, …) prints
 * through xm_print_v; tools/check_style refuses floats in printf's own functions there. The
 * program (plugin/cli) may use those: it never sets LC_NUMERIC, so its numbers have a point.
 */
#ifndef XM_RUNTIME_UTIL_NUMBER_H
#define XM_RUNTIME_UTIL_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As strtof, strtod and vsnprintf. */
float xm_parse_float(const char *text, char **end);
double xm_parse_double(const char *text, char **end);
int xm_print_v(char *out, size_t n, const char *fmt, va_list ap);
/* Reads a whole number of decimal digits; false: `text` has other characters or does not fit. */
bool xm_parse_whole(const char *text, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
