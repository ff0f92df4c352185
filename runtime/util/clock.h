/* SPDX-License-Identifier: Apache-2.0
 *
 * The monotonic clock, which tests may replace.
 */
#ifndef XM_RUNTIME_UTIL_CLOCK_H
#define XM_RUNTIME_UTIL_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds since an arbitrary moment; never decreases. Any thread. */
double xm_now(void);

/* Makes xm_now() call `now`; NULL: read the system's clock again. Process-wide, for tests. */
void xm_clock_replace(double (*now)(void));

#ifdef __cplusplus
}
#endif
#endif
