/* SPDX-License-Identifier: Apache-2.0
 *
 * Device plugins: sequences, and the batches that run them together. Part of plugin/plugin.h.
 */
#ifndef XM_PLUGIN_SEQUENCE_H
#define XM_PLUGIN_SEQUENCE_H

#include "plugin/exported.h"
#include "runtime/operations/token_choice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_compiled;
struct xm_infer;
struct xm_sequence;
struct xm_batch;

/* A context: positions 0 … past - 1 of a text. One thread at a time, different ones from any. */
struct xm_sequence_ops {
    enum xm_status (*fork)(struct xm_sequence *s, struct xm_sequence **out,
                           struct xm_error *err);
    uint64_t (*past)(const struct xm_sequence *s);
    /* Truncates to `past` positions; to 0 where a layer with a sliding window no longer has the
     * keys and values that the shorter sequence would need. */
    void (*truncate)(struct xm_sequence *s, uint64_t past);
    /* Prefix reuse: gives an empty sequence the cached pages of the longest beginning of these
     * tokens; at least one token is left to run. `past` is then the number taken. */
    enum xm_status (*match)(struct xm_sequence *s, const int32_t *tokens, uint64_t n,
                            struct xm_error *err);
    void (*destroy)(struct xm_sequence *s);
    const struct xm_sequence_file_ops *file; /* NULL: the plugin cannot save sequences */
};

/* The cached positions of a sequence as bytes, in whole pages. No run of the sequence may be
 * enqueued. */
struct xm_sequence_file_ops {
    /* Appends a text without newlines. It differs where the bytes of another sequence may mean
     * something else: by model, options, device, version of xemoe. */
    enum xm_status (*identify)(const struct xm_sequence *s, struct xm_strbuf *out,
                               struct xm_error *err);
    uint64_t (*page)(const struct xm_sequence *s); /* positions, > 0 */
    /* That `save` writes now. */
    uint64_t (*bytes)(const struct xm_sequence *s);
    /* The fewest positions, whole pages, that `load` can take from what `save` writes now. */
    uint64_t (*least)(const struct xm_sequence *s);
    /* Writes the pages that are whole, in pieces, in order; waits for the device. */
    enum xm_status (*save)(const struct xm_sequence *s, const struct xm_export *to,
                           struct xm_error *err);
    /* Fills an empty sequence with the first n positions of what `save` has written, whole pages of
     * the tokens ids[n]; waits for the device. The sequence stays empty where n is below `least`,
     * because layers with a sliding window lack the pages, and after a failure. XM_INVALID: the
     * bytes are not of such a sequence. */
    enum xm_status (*load)(struct xm_sequence *s, const int32_t *ids, uint64_t n,
                           const uint8_t *bytes, uint64_t n_bytes, struct xm_error *err);
};

struct xm_sequence {
    const struct xm_sequence_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
};

/* The next tokens of a sequence, which stands in a run once. */
struct xm_batch_row {
    struct xm_sequence *sequence; /* of the batch's compiled model             */
    const int32_t *ids;           /* tokens that continue it                   */
    uint64_t n;                   /* > 0                                       */
    uint64_t wanted; /* number of last tokens whose logits are wanted; <= n */
};

/* A token that the device chooses. */
struct xm_device_choice {
    struct xm_sequence *sequence;
    /* Both are read where no run of the sequence is enqueued. */
    struct xm_token_choice how;
    struct xm_seen_tokens seen;
    int32_t id; /* out; -1: the logits are no distribution */
};

/* One of each sequence of a batch. */
struct xm_device_choices {
    struct xm_device_choice *list; /* [n], n > 0 */
    uint32_t n;
    /* The caller will run these tokens together, unless one ends its text: the device may run them
     * at once. */
    bool more;
    bool is_running; /* out: their run is enqueued, and the choices behind it */
};

/* One thread at a time. */
struct xm_batch_ops {
    /* A failure leaves every sequence unchanged. */
    enum xm_status (*run)(struct xm_batch *b, const struct xm_batch_row *rows, uint32_t n,
                          struct xm_error *err);
    /* The wanted rows of row `i` < n_rows of the last run, rows x vocabulary; valid until the next
     * run. NULL: none were wanted. */
    const float *(*logits)(const struct xm_batch *b, uint32_t i, uint64_t *rows,
                           uint64_t *vocabulary);
    /* Tokens that the device chooses. All three NULL: the plugin has none. */
    /* Builds the kernels that choices of this kind need, if the plugin can make them; the first
     * choice would build them, too. */
    void (*prepare)(struct xm_batch *b, const struct xm_token_choice *how);
    /* Chooses the tokens behind the last ones of these sequences. The last ones were a run of one
     * token each and nothing else, in this order and with their logits wanted, or were chosen with
     * is_running set. In the second case the list has all sequences of that choice that have not
     * been stopped, and their positions, which were only reserved, are part of them when this
     * returns. Enqueues the run of the chosen tokens before it waits for their ids, if no sequence
     * was stopped. Logits are not valid any more.
     * XM_UNSUPPORTED: the batch has run something else, or the model or the device cannot; nothing
     * has changed. After another failure the enqueued run is not part of any sequence. */
    enum xm_status (*choose)(struct xm_batch *b, struct xm_device_choices *c,
                             struct xm_error *err);
    /* Waits for an enqueued run and drops the token of `s`, or those of all sequences (NULL). Call
     * it before a sequence of the run is used otherwise; `run` drops all. */
    void (*stop)(struct xm_batch *b, const struct xm_sequence *s);
    void (*destroy)(struct xm_batch *b);
};

struct xm_batch {
    const struct xm_batch_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
    /* To cancel it, to ask what it cost, to check it: it has no other functions. */
    struct xm_infer *control;
    /* Rows that a run takes in one step; UINT64_MAX: all that continues a sequence has to come in
     * one run, since its tokens see each other. */
    uint64_t chunk;
    uint64_t page;   /* positions that forks share as a whole, or not */
    uint32_t n_rows; /* of the last run; 0: it failed, or there was none */
    bool is_running; /* for those who cancel from other threads: xm_flag_get */
};

#ifdef __cplusplus
}
#endif
#endif
