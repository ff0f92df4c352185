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

/* Returns n / seconds. 0: not known, because n or the time is 0; then callers should print no
 * rate. */
double xm_rate(double n, double seconds);

/* Reads a number above 0, which the unit may follow, from the beginning of a list: "25" and
 * "25GB/s" of "25GB/s,5us". *text is moved to the comma or the end after it. */
enum xm_status xm_rate_read(const char **text, const char *unit, double *out,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
