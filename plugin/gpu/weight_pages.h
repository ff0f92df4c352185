/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of weights that kernels read where they lie in a mapped file. The first access to a page
 * costs a fault, and a disk's answer where the system has not read it yet: experts are met in no
 * order, in parts of some KiB. So a thread of the program's own touches all of them once, in the
 * order of the steps, while the first run is being prepared.
 */
#ifndef XM_PLUGIN_GPU_WEIGHT_PAGES_H
#define XM_PLUGIN_GPU_WEIGHT_PAGES_H

#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_weight_pages;

/* Starts the thread for the weights of `p`, which is complete and outlives it. *out is NULL where
 * there is nothing to touch, because the device has copies, or only counts, or has only parts of
 * the weights; where the host has not enough free memory for all of them; and where the system
 * refuses a thread. Kernels then meet the pages as they come. XM_NO_MEMORY. */
enum xm_status xm_weight_pages_start(const struct xm_program *p,
                                     struct xm_weight_pages **out, struct xm_error *err);
/* Ends the thread; returns when it has ended. NULL is allowed. */
void xm_weight_pages_stop(struct xm_weight_pages *pages);
/* Bytes that have not been touched yet; 0 for NULL. From any thread. */
uint64_t xm_weight_pages_left(const struct xm_weight_pages *pages);

#ifdef __cplusplus
}
#endif
#endif
