/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text: with a decimal point, whatever LC_NUMERIC the program around us has set.
 * xm_strbuf_printf writes them so, too.
 */
#ifndef XM_RUNTIME_UTIL_NUMBER_H
#define XM_RUNTIME_UTIL_NUMBER_H

#include <locale.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As strtof and strtod. */
float xm_parse_float(const char *text, char **end);
double xm_parse_double(const char *text, char **end);

/* From begin to end this thread reads and writes numbers in the C locale. Pairs may nest. */
locale_t xm_number_locale_begin(void);
void xm_number_locale_end(locale_t before);

#ifdef __cplusplus
}
#endif
#endif
