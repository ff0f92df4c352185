/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine that counts memory and runs nothing.
 *
 * It reports the facts of any device, allocates no memory, builds no kernel and launches none.
 * Each buffer has a size, a kind and a place in the statistics, as on the real device. A plan
 * compiles a model on this engine and reads the statistics, so there is no second formula for
 * memory that would have to follow the compiler.
 */
#ifndef XM_RUNTIME_COUNTING_COUNTING_H
#define XM_RUNTIME_COUNTING_COUNTING_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a counting engine; config NULL: the defaults. Its queues accept every command and do
 * nothing; a read leaves the caller's memory unchanged. */
enum xm_status xm_counting_engine_create(const struct xm_device_info *info,
                                         const struct xm_config *config,
                                         struct xm_engine **out, struct xm_error *err);

/* Builds on `engine`, an engine of the same device, all kernels that were asked for on `counted`.
 * XM_NOT_BUILT: the compiler refuses one. */
enum xm_status xm_counting_build(const struct xm_engine *counted,
                                 struct xm_engine *engine, struct xm_error *err);

/* Resets the peaks of the statistics to the present values. */
void xm_counting_forget_peaks(struct xm_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
