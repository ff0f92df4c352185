/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates: how many tokens, bytes, … a second.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_RATE_H
#define XM_PLUGIN_PROGRAM_UTIL_RATE_H

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0: not known, because there was nothing or its time was not measured. Whoever prints a rate
 * leaves out one that is not known. */
double xm_rate(double n, double seconds);

/* Reads a number above 0 from the beginning of a list, and the unit that may stand behind it: "25"
 * and "25GB/s" of "25GB/s,5us". *text is moved behind it, onto the comma or the end. */
enum xm_status xm_rate_read(const char **text, const char *unit, double *out,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
