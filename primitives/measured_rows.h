/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of variant tables that were the fastest when they were measured on a device: `xemoe tune`
 * keeps their names in CACHE_DIR, and xm_variant_pick takes them.
 *
 * The order of a table's rows is what we know of devices in general. A measured row is taken out of
 * this order where it was measured: for one step, one device with its driver and memory, this
 * version of xemoe, and one class of problems.
 */
#ifndef XM_PRIMITIVES_MEASURED_ROWS_H
#define XM_PRIMITIVES_MEASURED_ROWS_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The row that is kept for a step and a class of problems. False: none is, or it is no longer in
 * the table, or the engine has no CACHE_DIR, or XM_TUNED_KERNELS=NO. */
bool xm_measured_row(const struct xm_engine *engine, const struct xm_variant_table *table,
                     const struct xm_problem_class *problems, size_t *row);
/* Keeps a row in place of an earlier one; false: the folder cannot be written, or there is none. */
bool xm_measured_row_keep(const struct xm_engine *engine,
                          const struct xm_variant_table *table,
                          const struct xm_problem_class *problems, size_t row);

#ifdef __cplusplus
}
#endif
#endif
