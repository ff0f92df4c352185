/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the pages of those weights ahead that kernels read directly from a mapped file. The first
 * access to a page costs a page fault, and a read of the disk if the system has not read the page
 * yet. Kernels read experts in random order, in parts of some KiB, which is slow on a disk. So a
 * thread of the program touches all pages once, in the order of the steps, while the first run is
 * being prepared.
 */
#ifndef XM_PLUGIN_LOWER_WEIGHT_PAGES_H
#define XM_PLUGIN_LOWER_WEIGHT_PAGES_H

#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_weight_pages;

/* Starts the thread for the weights of `p`, which is complete and outlives the thread. *out is
 * NULL, and kernels take the page faults, in these cases: no weight is read from its file, because
 * the device has copies; the engine only counts; the program is one part of a split model; the
 * weights do not fit in the host's free memory; the system refuses a thread. XM_NO_MEMORY: no
 * memory for the list of weights. */
enum xm_status xm_weight_pages_start(const struct xm_program *p,
                                     struct xm_weight_pages **out, struct xm_error *err);
/* Stops the thread, waits until it has ended, and frees `pages`; NULL is allowed. */
void xm_weight_pages_stop(struct xm_weight_pages *pages);
/* Returns the number of bytes that have not been touched yet; 0 for NULL. For any thread. */
uint64_t xm_weight_pages_left(const struct xm_weight_pages *pages);

#ifdef __cplusplus
}
#endif
#endif
