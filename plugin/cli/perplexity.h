/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe perplexity: runs a model over a text in chunks and passes the logits to a scorer.
 */
#ifndef XM_PLUGIN_CLI_PERPLEXITY_H
#define XM_PLUGIN_CLI_PERPLEXITY_H

#include "plugin/cli/cli.h"
#include "plugin/logits/kld_base.h"

/* A text as chunks of tokens. */
struct xm_chunks {
    const int32_t *tokens; /* n x context */
    uint32_t context, n;
    bool has_first; /* `first` replaces the first token of each chunk */
    int32_t first;  /* the begin-of-text token */
};

/* Receives the scored positions of each chunk, in order: those of its second half except the last,
 * whose following token is not in the chunk. */
struct xm_scorer {
    /* Called with the i-th scored position of a chunk: its logits and the token that follows. */
    enum xm_status (*position)(void *ctx, uint32_t chunk, uint32_t i, const float *logits,
                               uint64_t vocabulary, int32_t next, struct xm_error *err);
    /* Called when the first n chunks are complete, to print results; NULL: not called. */
    void (*chunk)(void *ctx, uint32_t n);
    bool leaves_line_open; /* `chunk` prints parts of one line, not whole lines */
    void *ctx;
};

/* Runs all chunks. Stops at the first failure of the model or of the scorer. */
enum xm_status xm_chunks_run(const struct xm_cli_model *m, const struct xm_chunks *chunks,
                             const struct xm_scorer *scorer, struct xm_error *err);

#endif
