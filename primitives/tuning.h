/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the fastest row of a variant table by timing: which rows are timed, in which order, and
 * when a difference counts. The caller's function runs and times a row.
 */
#ifndef XM_PRIMITIVES_TUNING_H
#define XM_PRIMITIVES_TUNING_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_TABLE_ROWS = 32 };

/* Sets the seconds that the table's step takes when this row runs it. A time above `hopeless` (0:
 * no limit yet) need not be exact. XM_UNSUPPORTED and XM_NOT_BUILT: the row cannot run; other
 * failures end the search. */
typedef enum xm_status (*xm_row_time_fn)(void *ctx, const struct xm_variant_table *table,
                                         size_t row, double hopeless, double *seconds,
                                         struct xm_error *err);

struct xm_timed_rows {
    double seconds[XM_TABLE_ROWS]; /* of each row; 0: not timed, or it cannot run */
    size_t usual;                  /* the row that runs without measurements */
    size_t best;
};

/* Returns whether a row is timed on a device, whatever the problem: the device can run it, and not
 * by emulation. */
bool xm_tuning_takes(const struct xm_variant *row, const struct xm_device_info *device);

/* Times the rows that xm_tuning_takes accepts and keeps the least time of each, because machines
 * change their clock. Rows that take more than 1.5 times as long as the fastest are timed once, the
 * others twice. If another row than the usual one is ahead, these two are timed a third time. The
 * reference is timed only if no other row can run. A row is better than the usual one if it takes
 * at most 97 % of its time: a smaller lead may be noise. XM_UNSUPPORTED: no row can run. */
enum xm_status xm_tune_table(const struct xm_variant_table *table,
                             const struct xm_device_info *device, xm_row_time_fn time,
                             void *ctx, struct xm_timed_rows *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
