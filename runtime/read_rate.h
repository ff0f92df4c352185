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

/* Bytes a second that the device's work-items stream together, in the fastest pass of those
 * that `seconds` have room for, behind one that does not count: out of `n` buffers, the first
 * 256 MiB of them; or, where these are not several times what the caches hold, out of a buffer
 * of its own. XM_UNSUPPORTED: there is no room for one. */
enum xm_status xm_read_rate(struct xm_engine *engine, struct xm_buffer *const *buffers,
                            size_t n, double seconds, double *rate, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
