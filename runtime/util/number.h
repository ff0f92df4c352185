/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text, with a decimal point whatever LC_NUMERIC the program has set. All functions of
 * the library that take a format (xm_strbuf_printf, xm_fail, xm_log, …) print through xm_print_v;
 * tools/check_style refuses floats in printf's own functions there. The program (plugin/cli) may
 * use those: it never sets LC_NUMERIC, so that its numbers have a point.
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

/* As strtof, strtod and vsnprintf, but always in the C locale. */
float xm_parse_float(const char *text, char **end);
double xm_parse_double(const char *text, char **end);
int xm_print_v(char *out, size_t n, const char *fmt, va_list ap);
/* Reads a non-negative integer of decimal digits; false: `text` is empty, has other characters, or
 * the number does not fit into 64 bits. */
bool xm_parse_whole(const char *text, uint64_t *out);
/* The ending of a noun that is counted: "1 token", "2 tokens". */
static inline const char *
xm_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#ifdef __cplusplus
}
#endif
#endif
