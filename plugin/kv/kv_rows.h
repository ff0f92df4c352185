/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of a model with states: one sequence for each row of the batch, all of equal length.
 * The model's input beam_idx reorders the rows or continues a row several times. The sequence of a
 * row that begins with padding holds only the positions behind the padding.
 *
 * A run calls begin, which may put other sequences in the place of the rows, and end. A run that
 * fails first undoes what it has done to the sequences (plugin/gpu/intake.h); end(keep = false)
 * then restores the rows as they were.
 */
#ifndef XM_PLUGIN_KV_KV_ROWS_H
#define XM_PLUGIN_KV_KV_ROWS_H

#include "plugin/kv/kv_tables.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_rows {
    struct xm_kv_pool *pool;      /* not owned */
    struct xm_kv_sequence **list; /* owned, [n]; a sequence for each row */
    uint32_t n;
    /* if has_others: [n_before] the rows before the run, which end(false) restores; owned */
    struct xm_kv_sequence **before;
    uint32_t n_before;
    bool has_others; /* begin has replaced the rows; `before` has the earlier ones */
};

/* Sets *r to no rows in `pool`, which must outlive the rows. */
void xm_kv_rows_init(struct xm_kv_rows *r, struct xm_kv_pool *pool);
void xm_kv_rows_free(struct xm_kv_rows *r); /* also if zero-initialised */

/* Returns the number of positions of every row, padding included. */
uint64_t xm_kv_rows_past(const struct xm_kv_rows *r);
/* Drops all positions and all rows. */
void xm_kv_rows_reset(struct xm_kv_rows *r);
/* Truncates every row as xm_kv_sequence_truncate does; if one row becomes empty, all do. */
void xm_kv_rows_truncate(struct xm_kv_rows *r, uint64_t past);

/* Begins a run of `batch` rows: row b of the run continues row beam_idx[b] (NULL: row b). If there
 * are no positions yet, the run has `batch` new rows. */
enum xm_status xm_kv_rows_begin(struct xm_kv_rows *r, uint32_t batch,
                                const int32_t *beam_idx, struct xm_error *err);
/* Ends the run; keep: it has succeeded; otherwise the rows from before the run are restored. */
void xm_kv_rows_end(struct xm_kv_rows *r, bool keep);

#ifdef __cplusplus
}
#endif
#endif
