/* SPDX-License-Identifier: Apache-2.0
 *
 * The rate at which a device reads memory that is not in its caches: the bound for decoding. */
#ifndef XM_RUNTIME_READ_RATE_H
#define XM_RUNTIME_READ_RATE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the rate: *rate is bytes a second that all work-items together read. Reads repeatedly
 * for `seconds`, after one pass to warm up, and takes the fastest pass. A pass reads the first
 * bytes of the n buffers, at most 256 MiB or, if that is more, 4 times the size of the device's
 * caches. If the buffers have less than 4 times the caches' size, it reads a temporary buffer
 * instead. XM_UNSUPPORTED: that buffer cannot be large enough. */
enum xm_status xm_read_rate(struct xm_engine *engine, struct xm_buffer *const *buffers,
                            size_t n, double seconds, double *rate, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
