/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel variants (rows of variant tables) that were the fastest when they were measured on a
 * device. Their names are kept in CACHE_DIR, and xm_variant_pick prefers them. plugin/bench_kernels
 * measures.
 *
 * The order of a table's rows is our guess for all devices. A measured row comes before this order
 * only for what it was measured for: one step, one device with its driver and memory, this version
 * of xemoe, and one class of problems.
 *
 * A row that is being timed may crash its process or hang the device. Therefore a note on disk
 * names the row while it is built or timed; a later process that finds the note never times the row
 * again.
 *
 * A driver's compiler may turn a kernel into one that computes something else. A row whose results
 * are wrong where it is timed is noted, too, and xm_variant_pick passes over it.
 */
#ifndef XM_PRIMITIVES_MEASURED_ROWS_H
#define XM_PRIMITIVES_MEASURED_ROWS_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *row to the row that is kept for the table's step and a class of problems. False: none is
 * kept, the kept one is no longer in the table, the engine has no CACHE_DIR, or
 * XM_TUNED_KERNELS=NO. */
bool xm_measured_row(const struct xm_engine *engine, const struct xm_variant_table *table,
                     const struct xm_problem_class *problems, size_t *row);
/* Keeps a row, in place of one kept earlier. False: the class is empty, or there is no CACHE_DIR,
 * or it cannot be written. */
bool xm_measured_row_keep(const struct xm_engine *engine,
                          const struct xm_variant_table *table,
                          const struct xm_problem_class *problems, size_t row);
/* Keeps the fact that no row of the table can be timed, so that nobody tries again. */
bool xm_measured_row_keep_none(const struct xm_engine *engine,
                               const struct xm_variant_table *table,
                               const struct xm_problem_class *problems);
/* Returns whether nothing is to be measured: a row is kept, or the fact that none can be timed; or
 * nothing can be kept (an empty class, no CACHE_DIR, a folder that can only be read:
 * xm_driver_files_may_store); or XM_TUNED_KERNELS=NO. */
bool xm_measured_row_is_settled(const struct xm_engine *engine,
                                const struct xm_variant_table *table,
                                const struct xm_problem_class *problems);

enum { XM_TRIAL_PATH = 1280 };
/* A note on disk that a row is being built or timed. */
struct xm_row_trial {
    char path[XM_TRIAL_PATH]; /* of the note; "": there is no CACHE_DIR for one */
};
/* Writes the note. Only one process at a time may do so for a device and folder. A process that a
 * signal handler ends removes its note first (runtime/util/unfinished.h), because a user ended it,
 * not the row. `trial` must not move until xm_row_trial_end. */
void xm_row_trial_begin(const struct xm_engine *engine,
                        const struct xm_variant_table *table, size_t row,
                        struct xm_row_trial *trial);
/* Removes the note: the row has been timed, or was refused. */
void xm_row_trial_end(struct xm_row_trial *trial);
/* Call it before the first trial of a process: if an earlier process left a note, the row that it
 * names is lost from now on (xm_row_trial_is_lost). */
void xm_row_trials_open(const struct xm_engine *engine);
/* Returns whether an earlier process ended while it built or timed the row. Such a row is never
 * tried again, in no class of problems, with this device, driver and version of xemoe. */
bool xm_row_trial_is_lost(const struct xm_engine *engine,
                          const struct xm_variant_table *table, size_t row);

/* Notes that a row computes wrong results on the device, with its driver and this version of xemoe.
 * Returns whether the note is on disk. */
bool xm_row_keep_wrong(const struct xm_engine *engine,
                       const struct xm_variant_table *table, size_t row);
/* Returns whether there is such a note, for any class of problems. */
bool xm_row_is_wrong(const struct xm_engine *engine, const struct xm_variant_table *table,
                     size_t row);

#ifdef __cplusplus
}
#endif
#endif
