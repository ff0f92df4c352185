/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of variant tables that were the fastest when they were measured on a device: their names are
 * kept in CACHE_DIR, and xm_variant_pick takes them. What measures is plugin/bench_kernels.
 *
 * The order of a table's rows is what we know of devices in general. A measured row is taken out of
 * this order where it was measured: for one step, one device with its driver and memory, this
 * version of xemoe, and one class of problems.
 *
 * A row that is being timed may end its process, or the device. Therefore it is noted before, and a
 * process that finds such a note knows that the row must not be timed again.
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
/* Keeps that there is no row to choose: none can be timed. */
bool xm_measured_row_keep_none(const struct xm_engine *engine,
                               const struct xm_variant_table *table,
                               const struct xm_problem_class *problems);
/* Whether a row is kept, or that there is none. True as well where nothing can be kept (no
 * CACHE_DIR, or a folder that can only be read: xm_driver_files_may_store), or kept rows are not
 * wanted: then nothing is to be measured. */
bool xm_measured_row_is_settled(const struct xm_engine *engine,
                                const struct xm_variant_table *table,
                                const struct xm_problem_class *problems);

enum { XM_TRIAL_PATH = 1280 };
/* A note on disk that a row is being built or timed. */
struct xm_row_trial {
    char path[XM_TRIAL_PATH]; /* "": nothing could be noted */
};
/* Notes it. One process at a time may do so with a device and folder. A process that a signal
 * handler ends removes its note (runtime/util/unfinished.h): somebody wanted it to end. `trial`
 * must not move until xm_row_trial_end. */
void xm_row_trial_begin(const struct xm_engine *engine,
                        const struct xm_variant_table *table, size_t row,
                        struct xm_row_trial *trial);
/* Removes the note: the row has been timed, or was refused. */
void xm_row_trial_end(struct xm_row_trial *trial);
/* Before the first trial of a process: if an earlier process has ended in the middle of a trial,
 * its row is lost from now on. */
void xm_row_trials_open(const struct xm_engine *engine);
/* Whether an earlier process ended while it built or timed the row: with this device, driver and
 * version of xemoe it is never tried again, in any class of problems. */
bool xm_row_trial_is_lost(const struct xm_engine *engine,
                          const struct xm_variant_table *table, size_t row);

#ifdef __cplusplus
}
#endif
#endif
