/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of a language model, run together: prompts and single tokens, of any lengths.
 *
 * The program is compiled with sampled_logits, so that only rows that somebody wants go through the
 * vocabulary's matrix. Rows of all sequences stand side by side along `tokens`; a run of more rows
 * than XM_UBATCH goes in several steps. A program whose tokens cannot be mixed (xm_program,
 * is_ragged) takes its sequences one after the other; results are the same. One whose prompts
 * cannot be cut (can_chunk) takes each entry whole.
 *
 * A batch is used by one thread at a time, and no sequence by two batches at once.
 */
#ifndef XM_PLUGIN_GPU_BATCHER_H
#define XM_PLUGIN_GPU_BATCHER_H

#include "plugin/gpu/kv/kv_sequence.h"
#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_batcher;
struct xm_request;

struct xm_batcher_entry {
    struct xm_kv_sequence *sequence; /* of the program's pool; once in a run */
    const int32_t *ids;              /* tokens that continue it */
    uint64_t n;                      /* > 0 */
    uint64_t wanted;                 /* of the last so many the logits are wanted; <= n */
};

/* XM_UNSUPPORTED: the program has other inputs than a language model's, or states elsewhere than in
 * the pool; the sentence says which. */
enum xm_status xm_batcher_create(struct xm_program *p, struct xm_batcher **out,
                                 struct xm_error *err);
void xm_batcher_destroy(struct xm_batcher *b); /* NULL is allowed */
/* Rows of a step; UINT64_MAX: any, since tokens of a sequence may see those behind them. */
uint64_t xm_batcher_chunk(const struct xm_program *p);
/* After a failure every sequence is as it was. */
enum xm_status xm_batcher_run(struct xm_batcher *b, const struct xm_batcher_entry *list,
                              uint32_t n, struct xm_error *err);
/* The wanted rows of an entry of the last run, rows x vocabulary; valid until the next run. */
const float *xm_batcher_logits(const struct xm_batcher *b, uint32_t entry, uint64_t *rows,
                               uint64_t *vocabulary);
/* For cancelling, statistics and hooks; the batch's own. */
struct xm_request *xm_batcher_request(struct xm_batcher *b);

#ifdef __cplusplus
}
#endif
#endif
