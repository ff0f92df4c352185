/* SPDX-License-Identifier: Apache-2.0
 *
 * The rate at which a device reads memory outside of its caches: the bound for decoding.
 */
#ifndef XM_RUNTIME_READ_RATE_H
#define XM_RUNTIME_READ_RATE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes a second that all work-items together read, in the fastest of the passes that fit in
 * `seconds`; one pass before them is not counted. A pass reads the first 256 MiB of the `n`
 * buffers, or a buffer of its own where these are less than several times the caches' size.
 * XM_UNSUPPORTED: there is no memory for that buffer. */
enum xm_status xm_read_rate(struct xm_engine *engine, struct xm_buffer *const *buffers,
                            size_t n, double seconds, double *rate, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
