/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the fastest row of a variant table by timing: which rows are worth it, in which order,
 * and when a difference counts. What is timed is the caller's.
 */
#ifndef XM_PRIMITIVES_TUNING_H
#define XM_PRIMITIVES_TUNING_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_TABLE_ROWS = 32 };

/* The time of the table's step, run by this row. A time above `hopeless` (0: none is yet) need not
 * be exact. XM_UNSUPPORTED and XM_NOT_BUILT: the row cannot run; others end the search. */
typedef enum xm_status (*xm_row_time_fn)(void *ctx, const struct xm_variant_table *table,
                                         size_t row, double hopeless, double *seconds,
                                         struct xm_error *err);

struct xm_timed_rows {
    double seconds[XM_TABLE_ROWS]; /* by row; 0: not timed, or it cannot run */
    size_t usual;                  /* what is taken without measurements      */
    size_t best;
};

/* Whether the row of a table is timed on a device, whatever the problem: the device can run it, and
 * well. */
bool xm_tuning_takes(const struct xm_variant *row, const struct xm_device_info *device);

/* Times the rows that the device takes, in turn, and takes the least of each row's times: machines
 * change their pace. Rows that take 1.5 times as long as the fastest are timed once, the others
 * twice. If another row than the usual one is ahead, these two are timed a third time. The
 * reference is timed only where nothing else runs.
 *
 * A row is better than the usual one if it takes at most 97 % of its time: less may not be there
 * tomorrow. XM_UNSUPPORTED: no row can run. */
enum xm_status xm_tune_table(const struct xm_variant_table *table,
                             const struct xm_device_info *device, xm_row_time_fn time,
                             void *ctx, struct xm_timed_rows *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
