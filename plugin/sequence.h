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

/* A sequence: positions 0 … past - 1 of a text. It is used by one thread at a time; different
 * sequences may be used by different threads. */
struct xm_sequence_ops {
    enum xm_status (*fork)(struct xm_sequence *s, struct xm_sequence **out,
                           struct xm_error *err);
    uint64_t (*past)(const struct xm_sequence *s);
    /* Truncates to `past` positions; or to 0 if a layer with a sliding window no longer has the
     * keys and values that the shorter sequence needs. */
    void (*truncate)(struct xm_sequence *s, uint64_t past);
    /* Prefix reuse: gives an empty sequence the cached pages of the longest beginning of these
     * tokens, but leaves at least one token to run. Then `past` returns the number of reused
     * tokens. */
    enum xm_status (*match)(struct xm_sequence *s, const int32_t *tokens, uint64_t n,
                            struct xm_error *err);
    void (*destroy)(struct xm_sequence *s);
    const struct xm_sequence_file_ops *file; /* NULL: the plugin cannot save sequences */
};

/* The cached positions of a sequence as bytes, in whole pages. No run of the sequence may be
 * enqueued. */
struct xm_sequence_file_ops {
    /* Appends a key, without newlines, for saved bytes: `load` may take only bytes saved under an
     * equal key. It depends on the model, options, device and version of xemoe. */
    enum xm_status (*identify)(const struct xm_sequence *s, struct xm_strbuf *out,
                               struct xm_error *err);
    uint64_t (*page)(const struct xm_sequence *s); /* positions in a page; > 0 */
    /* The number of bytes that `save` would write now. */
    uint64_t (*bytes)(const struct xm_sequence *s);
    /* The smallest number of positions, in whole pages, that `load` accepts from what `save` would
     * write now. */
    uint64_t (*least)(const struct xm_sequence *s);
    /* Writes the complete pages, in pieces and in order; waits for the device. */
    enum xm_status (*save)(const struct xm_sequence *s, const struct xm_export *to,
                           struct xm_error *err);
    /* Fills an empty sequence with the first n positions, whole pages of the tokens ids[n], of
     * bytes that `save` wrote; waits for the device. The sequence stays empty after a failure, and
     * if n is below the saved sequence's `least`, because then layers with a sliding window lack
     * pages. XM_INVALID: the bytes are not of such a sequence. */
    enum xm_status (*load)(struct xm_sequence *s, const int32_t *ids, uint64_t n,
                           const uint8_t *bytes, uint64_t n_bytes, struct xm_error *err);
};

struct xm_sequence {
    const struct xm_sequence_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
};

/* The next tokens of a sequence. A sequence occurs in a run at most once. */
struct xm_batch_row {
    struct xm_sequence *sequence; /* of the batch's compiled model             */
    const int32_t *ids;           /* tokens that continue it                   */
    uint64_t n;                   /* > 0                                       */
    uint64_t wanted; /* number of last tokens whose logits are wanted; <= n */
};

/* A token to be chosen on the device. */
struct xm_device_choice {
    struct xm_sequence *sequence;
    /* Both are read while no run of the sequence is enqueued. */
    struct xm_token_choice how;
    struct xm_seen_tokens seen;
    int32_t id; /* out: the chosen token; -1: the logits have NaN or infinity */
};

/* One choice for each sequence of a batch. */
struct xm_device_choices {
    struct xm_device_choice *list; /* [n], n > 0 */
    uint32_t n;
    /* The caller will run the chosen tokens together, unless one of them ends its text: the device
     * may enqueue that run at once. */
    bool more;
    /* out: the device has enqueued the run of the chosen tokens, and the choices after it */
    bool is_running;
};

/* A batch is used by one thread at a time. */
struct xm_batch_ops {
    /* A failure leaves every sequence unchanged. */
    enum xm_status (*run)(struct xm_batch *b, const struct xm_batch_row *rows, uint32_t n,
                          struct xm_error *err);
    /* Returns the wanted logits of row `i` < n_rows of the last run, rows x vocabulary; valid until
     * the next run. NULL: none were wanted. */
    const float *(*logits)(const struct xm_batch *b, uint32_t i, uint64_t *rows,
                           uint64_t *vocabulary);
    /* prepare, choose and stop: tokens that the device chooses. All three are NULL if the plugin
     * has no such choices. */
    /* Builds the kernels that choices of this kind need; without this call the first choice builds
     * them. Does nothing if the device cannot make such choices. */
    void (*prepare)(struct xm_batch *b, const struct xm_token_choice *how);
    /* Chooses the tokens after the last tokens of these sequences. The last tokens were either a
     * run of one token for each sequence in this order, with their logits wanted, or were chosen
     * with is_running set. In the second case the list has all sequences of that choice that were
     * not stopped; their positions, which were only reserved, are part of them when this returns.
     * Enqueues the run of the chosen tokens before it waits for their ids, if no sequence was
     * stopped. The logits are no longer valid afterwards.
     * XM_UNSUPPORTED: the batch has run something else, or the model or the device cannot choose;
     * nothing has changed. After another failure the enqueued run is not part of any sequence. */
    enum xm_status (*choose)(struct xm_batch *b, struct xm_device_choices *c,
                             struct xm_error *err);
    /* Waits for an enqueued run and removes its token from `s`, or from all sequences (NULL). Call
     * it before a sequence of the run is used otherwise; `run` does it for all sequences. */
    void (*stop)(struct xm_batch *b, const struct xm_sequence *s);
    void (*destroy)(struct xm_batch *b);
};

struct xm_batch {
    const struct xm_batch_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
    /* A request that can only cancel runs of the batch, return their statistics, and check them. */
    struct xm_infer *control;
    /* The maximum number of rows in one step of a run. UINT64_MAX: tokens attend to later tokens,
     * so that all tokens of a sequence must come in one run. */
    uint64_t chunk;
    uint64_t page;   /* positions in a page; forks share whole pages */
    uint32_t n_rows; /* number of rows of the last run; 0: it failed, or there was none */
    /* a run is in progress; threads that cancel read it with xm_flag_get */
    bool is_running;
};

#ifdef __cplusplus
}
#endif
#endif
