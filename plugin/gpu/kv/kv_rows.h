/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of a model with states: one sequence for each row of the batch, all of equal length.
 * The model's input beam_idx reorders the rows or continues a row several times. The sequence of a
 * row that begins with padding holds only the positions behind the padding.
 *
 * A run calls begin, then extend and commit for each of its chunks, then end. (A caller may also
 * reserve and commit the positions of each row's sequence itself.) end(keep = false) restores the
 * rows as they were before the run.
 *
 * To be able to restore them, a run of several chunks keeps the pages of earlier positions until it
 * ends, also those that have left a sliding window: at most twice a window and a chunk, whatever
 * the length of the prompt. Freeing them between chunks would save that memory, but a failed run
 * could not be undone.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_ROWS_H
#define XM_PLUGIN_GPU_KV_KV_ROWS_H

#include "plugin/gpu/kv/kv_tables.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_rows {
    struct xm_kv_pool *pool;      /* not owned */
    struct xm_kv_sequence **list; /* owned, [n]; a sequence for each row */
    uint32_t n;
    /* if has_others: the rows before the run, which end(false) restores; n_before may be 0 */
    struct xm_kv_sequence **before;
    uint32_t n_before;
    bool has_others; /* the run works on other sequences than those before it */
};

/* No rows, in a pool that must outlive them. */
void xm_kv_rows_init(struct xm_kv_rows *r, struct xm_kv_pool *pool);
void xm_kv_rows_free(struct xm_kv_rows *r); /* also if zero-initialised */

/* Length of every row in positions, padding included. */
uint64_t xm_kv_rows_past(const struct xm_kv_rows *r);
void xm_kv_rows_reset(struct xm_kv_rows *r);
/* Truncates every row as xm_kv_sequence_truncate does; if one row becomes empty, all do. */
void xm_kv_rows_truncate(struct xm_kv_rows *r, uint64_t past);

/* Begins a run: its row b continues row beam_idx[b] (NULL: row b). If the rows are empty, the run
 * has `batch` new ones. `in_parts`: the run has several chunks, or rows with padding. */
enum xm_status xm_kv_rows_begin(struct xm_kv_rows *r, uint32_t batch,
                                const int32_t *beam_idx, bool in_parts,
                                struct xm_error *err);
/* Reserves pages for `tokens` more positions of each row. */
enum xm_status xm_kv_rows_extend(struct xm_kv_rows *r, uint64_t tokens,
                                 struct xm_queue *q, struct xm_error *err);
void xm_kv_rows_commit(struct xm_kv_rows *r);
void xm_kv_rows_end(struct xm_kv_rows *r, bool keep);

#ifdef __cplusplus
}
#endif
#endif
