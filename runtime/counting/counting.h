/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine that only counts.
 *
 * It says that it is any device, allocates nothing, builds no kernel and runs none; every
 * buffer has its size, its kind and a place in the statistics, as on the real device. What
 * compiles and plans on it learns what it would take there: no second formula to keep true.
 */
#ifndef XM_RUNTIME_COUNTING_COUNTING_H
#define XM_RUNTIME_COUNTING_COUNTING_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* config NULL: the defaults. Queues of it take every command and do nothing: what is read
 * back is left as it was. */
enum xm_status xm_counting_engine_create(const struct xm_device_info *info,
                                         const struct xm_config *config,
                                         struct xm_engine **out, struct xm_error *err);

/* The peaks of the statistics begin anew from what there is now. */
void xm_counting_forget_peaks(struct xm_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
