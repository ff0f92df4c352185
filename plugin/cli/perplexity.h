/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe perplexity: a text in chunks through a model.
 */
#ifndef XM_PLUGIN_CLI_PERPLEXITY_H
#define XM_PLUGIN_CLI_PERPLEXITY_H

#include "plugin/cli/cli.h"
#include "plugin/cli/kld_base.h"

/* Chunks of tokens, the first of each replaced by what texts begin with. */
struct xm_chunks {
    const int32_t *tokens; /* n x context */
    uint32_t context, n;
    bool has_first;
    int32_t first;
};

/* Who is told of the positions in a chunk's second half but the last, in order. */
struct xm_scorer {
    /* Position i of those that are scored, its logits, the token that follows. */
    enum xm_status (*position)(void *ctx, uint32_t chunk, uint32_t i, const float *logits,
                               uint64_t vocabulary, int32_t next, struct xm_error *err);
    /* Chunks that are complete; prints. NULL: nothing is printed as it goes. */
    void (*chunk)(void *ctx, uint32_t n);
    bool leaves_line_open; /* what it prints is no whole line */
    void *ctx;
};

enum xm_status xm_chunks_run(const struct xm_cli_model *m, const struct xm_chunks *chunks,
                             const struct xm_scorer *scorer, struct xm_error *err);

#endif
