/* SPDX-License-Identifier: Apache-2.0
 *
 * The paged KV cache of one request: pages, who uses them, and a block table per
 * sequence.
 *
 * A page holds `page_tokens` positions of every layer: page p of a sequence has the same
 * number in all layers' buffers, each of which is attention's first slab. Sequences share pages
 * after a beam reorder; a shared page is copied before it is written (only the last, partly filled
 * page ever is). Buffers grow by doubling, contents kept.
 *
 * All sequences of a run are of one length.
 *
 * A run stands between begin and end. One that fails gives back the positions and rows there were
 * before it: it never writes below `past`, and pages that only the old rows use are not taken
 * until it has ended.
 */
#ifndef XM_PLUGIN_KV_CACHE_H
#define XM_PLUGIN_KV_CACHE_H

#include "plugin/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state at begin; the table only when a reorder has replaced it. */
struct xm_kv_before {
    bool is_running, is_replaced;
    int32_t *table;
    uint32_t n_sequences, table_width;
    uint64_t past;
};

/* What attention is told of a run's sequences beside the block table: past_lens,
 * subsequence_begins, block_indices_begins, one behind the other in a buffer. */
enum { XM_KV_LENGTHS = 3 };
struct xm_kv_lengths {
    uint32_t n_sequences, each; /* each: numbers that one of them has room for */
    int32_t *host;              /* [XM_KV_LENGTHS][each]                       */
    struct xm_buffer *buffer, *view[XM_KV_LENGTHS];
};

#define XM_KV_KEPT 0x80000000u /* a bit of page_users */

struct xm_kv_cache {
    const struct xm_program *program; /* borrowed */
    uint32_t page_tokens;
    uint32_t n_pages;     /* capacity of the buffers                            */
    uint32_t *page_users; /* sequences that have the page in their table, and
                             XM_KV_KEPT for the rows before the run; 0 free    */
    uint32_t first_free;  /* no page before it is free                         */
    uint32_t n_sequences, table_width; /* rows of the table, entries of a row */
    int32_t *table;           /* [n_sequences][table_width]                         */
    uint64_t past;            /* positions held                                     */
    struct xm_buffer **slabs; /* [layer][XM_KV_SLABS], the first of them            */
    struct xm_buffer *device_table;
    bool table_changed; /* since it was last written to the device            */
    struct xm_kv_lengths lengths;
    struct xm_kv_before before;
};

enum xm_status xm_kv_cache_init(struct xm_kv_cache *c, const struct xm_program *p,
                                struct xm_error *err);
void xm_kv_cache_free(struct xm_kv_cache *c);
void xm_kv_cache_reset(struct xm_kv_cache *c); /* past = 0, all pages free, memory kept */
/* Forgets positions >= past (prefix reuse). */
void xm_kv_cache_truncate(struct xm_kv_cache *c, uint64_t past);

void xm_kv_cache_begin(struct xm_kv_cache *c);
/* keep: the run has succeeded. Else all is as it was at begin. */
void xm_kv_cache_end(struct xm_kv_cache *c, bool keep);

/* Makes room for `tokens` more positions of `batch` sequences; sequence b continues row
 * beam_idx[b] (NULL: b). Enqueues copies of shared pages and of the tables, which are those of a
 * run of these tokens. */
enum xm_status xm_kv_cache_extend(struct xm_kv_cache *c, uint32_t batch,
                                  const int32_t *beam_idx, uint64_t tokens,
                                  struct xm_queue *q, struct xm_error *err);
/* The operands of the attention primitive, and its run of a layer. */
void xm_kv_cache_operands(const struct xm_kv_cache *c,
                          struct xm_operand operands[XM_ATTENTION_N_OPERANDS]);
struct xm_attention_run xm_kv_cache_run(const struct xm_kv_cache *c, uint32_t layer);
uint64_t xm_kv_cache_bytes(const struct xm_kv_cache *c);

#ifdef __cplusplus
}
#endif
#endif
