/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a batch, as a model with states has them: sequences of equal length, which beam_idx
 * puts in another order, or continues several times. Of a row that begins with padding the sequence
 * holds what comes behind it.
 *
 * A run stands between begin and end, with an extend for each of its chunks and a commit between
 * them; a caller may also reserve and commit what each row gets. After a run that is not kept the
 * rows are those before it, in their order, with what they held.
 *
 * For that a run in chunks behind positions that there are keeps their pages until it ends, those
 * too that windows have left: twice a window and a chunk at most, whatever the prompt's length. To
 * give them back between chunks would save that, and leave a failed run with rows that are neither
 * what they were nor what was asked for; who wants less has shorter runs.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_ROWS_H
#define XM_PLUGIN_GPU_KV_KV_ROWS_H

#include "plugin/gpu/kv/kv_tables.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_rows {
    struct xm_kv_pool *pool; /* borrowed */
    struct xm_kv_sequence **list;
    uint32_t n;
    /* Those before the run, which may have been none; only while the run has others. */
    struct xm_kv_sequence **before;
    uint32_t n_before;
    bool has_others;
};

void xm_kv_rows_init(struct xm_kv_rows *r, struct xm_kv_pool *pool);
void xm_kv_rows_free(struct xm_kv_rows *r); /* of zeroed ones, too */

/* With the padding; the same of all rows. */
uint64_t xm_kv_rows_past(const struct xm_kv_rows *r);
void xm_kv_rows_reset(struct xm_kv_rows *r);
/* As xm_kv_sequence_truncate; where one row becomes empty, all do. */
void xm_kv_rows_truncate(struct xm_kv_rows *r, uint64_t past);

/* Row b of the run continues row beam_idx[b] (NULL: b); where there are no positions, rows are new.
 * in_parts: there will be several chunks, or rows that get padding. */
enum xm_status xm_kv_rows_begin(struct xm_kv_rows *r, uint32_t batch,
                                const int32_t *beam_idx, bool in_parts,
                                struct xm_error *err);
/* Makes room for `tokens` more positions of each row. */
enum xm_status xm_kv_rows_extend(struct xm_kv_rows *r, uint64_t tokens,
                                 struct xm_queue *q, struct xm_error *err);
void xm_kv_rows_commit(struct xm_kv_rows *r);
void xm_kv_rows_end(struct xm_kv_rows *r, bool keep);

#ifdef __cplusplus
}
#endif
#endif
