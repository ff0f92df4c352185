/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a device reads memory that no cache holds: what decoding is measured against.
 */
#ifndef XM_RUNTIME_READ_RATE_H
#define XM_RUNTIME_READ_RATE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes a second that the device's work-items stream together, on average over about `seconds`;
 * what comes before (memory of at most 256 MiB, a pass that does not count) takes as long again.
 * XM_UNSUPPORTED: there is no room for more than the caches hold. */
enum xm_status xm_read_rate(struct xm_engine *engine, double seconds, double *rate,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
