/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs several sequences of a language model together: prompts and single tokens, of any lengths.
 *
 * The program is compiled with sampled_logits, so that only the rows whose logits are wanted are
 * multiplied by the vocabulary's matrix. The tokens of all sequences are concatenated along
 * `tokens`; more than XM_UBATCH tokens are run in several chunks. A program whose tokens cannot be
 * mixed (xm_program.is_ragged is false) runs its sequences one after the other, with the same
 * results. A program whose prompts cannot be cut (xm_program.can_chunk is false) runs each entry
 * whole.
 *
 * A batch is used by one thread at a time, and no sequence by two batches at once.
 */
#ifndef XM_PLUGIN_GPU_BATCHER_H
#define XM_PLUGIN_GPU_BATCHER_H

#include "plugin/kv/kv_sequence.h"
#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_batcher;
struct xm_device_choices;
struct xm_request;
struct xm_token_choice;

struct xm_batcher_entry {
    struct xm_kv_sequence *sequence; /* of the program's pool; at most once in a run */
    const int32_t *ids;              /* [n] tokens that continue it                  */
    uint64_t n;                      /* > 0                                          */
    uint64_t wanted; /* number of last tokens whose logits are wanted; <= n */
};

/* Creates a batch, which holds a reference to the program. XM_UNSUPPORTED: the program has inputs
 * that language models do not have, or states outside the KV pool; the message says which. */
enum xm_status xm_batcher_create(struct xm_program *p, struct xm_batcher **out,
                                 struct xm_error *err);
void xm_batcher_destroy(struct xm_batcher *b); /* NULL is allowed */
/* Runs the n entries and appends their tokens to the sequences. A failure leaves every sequence
 * unchanged. */
enum xm_status xm_batcher_run(struct xm_batcher *b, const struct xm_batcher_entry *list,
                              uint32_t n, struct xm_error *err);
/* Returns the wanted logits [*rows][*vocabulary] of an entry of the last run, valid until the next
 * run. NULL: the entry wants none, or the last run has failed. */
const float *xm_batcher_logits(const struct xm_batcher *b, uint32_t entry, uint64_t *rows,
                               uint64_t *vocabulary);
/* Called when a program is compiled: builds the kernels by which the device chooses the likeliest
 * token, if it can choose tokens of this program. */
enum xm_status xm_batcher_build_choices(struct xm_program *p, struct xm_error *err);
/* Implement prepare, choose and stop of xm_batch_ops (plugin/plugin.h), by which the device chooses
 * the next tokens of sequences. sequences[i] is the sequence of c->list[i]. */
enum xm_status xm_batcher_prepare(struct xm_batcher *b, const struct xm_token_choice *how,
                                  struct xm_error *err);
enum xm_status xm_batcher_choose(struct xm_batcher *b,
                                 struct xm_kv_sequence *const *sequences,
                                 struct xm_device_choices *c, struct xm_error *err);
void xm_batcher_stop(struct xm_batcher *b, const struct xm_kv_sequence *s);
/* Returns the batch's request, for cancelling, statistics and hooks; the batch owns it. */
struct xm_request *xm_batcher_request(struct xm_batcher *b);

#ifdef __cplusplus
}
#endif
#endif
