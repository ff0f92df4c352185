/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings: computes a vector of length 1 for each text.
 *
 *     graph ──► xm_embedder_read_graph ──► compiled: ids in, hidden states out
 *     ids ──► hidden states of tokens ──► pooled ──► cut ──► length 1
 *
 * The compiled model is not the program that generates text, but uses the same weights: instead of
 * logits it returns the input of the last projection
 * (transformations/passes/gather_hidden_states.h).
 *
 * Texts run together, up to a chunk of tokens; a device without sequences runs them one after the
 * other. A text's embedding does not depend on the texts that run with it, except for rounding.
 */
#ifndef XM_PLUGIN_PIPELINE_EMBEDDER_H
#define XM_PLUGIN_PIPELINE_EMBEDDER_H

#include "plugin/pipeline/package.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_embedder; /* used by one thread at a time, cancelled from any */

/* Reads the package's graph so that it returns hidden states instead of logits; compile it without
 * sampled_logits. *vocabulary: ids must be below it; UINT64_MAX: not known. XM_UNSUPPORTED: no
 * hidden states were found. */
enum xm_status xm_embedder_read_graph(const struct xm_package *p, struct xm_graph **out,
                                      uint64_t *vocabulary, struct xm_error *err);

/* Creates an embedder for a compiled graph of xm_embedder_read_graph; adds a reference to it.
 * XM_UNSUPPORTED: `compiled` was made from another graph. */
enum xm_status xm_embedder_create(struct xm_compiled *compiled, enum xm_pooling pooling,
                                  struct xm_embedder **out, struct xm_error *err);
void xm_embedder_destroy(struct xm_embedder *e); /* NULL is allowed */
/* Returns the number of dimensions of an embedding. */
uint64_t xm_embedder_width(const struct xm_embedder *e);

/* Writes the embeddings of n texts to out[n][dimensions]. Each text has at least one id, and ids
 * are below the vocabulary. Each embedding is the first `dimensions` (1 to the width) components of
 * the vector, scaled to length 1. XM_NOT_FINITE: hidden states overflowed. XM_CANCELLED:
 * xm_embedder_cancel was called. */
enum xm_status xm_embedder_run(struct xm_embedder *e, const struct xm_token_list *texts,
                               size_t n, uint64_t dimensions, float *out,
                               struct xm_error *err);
/* cancel makes the run in progress, and each run that begins before resume, return XM_CANCELLED.
 * Any thread may call both. */
void xm_embedder_cancel(struct xm_embedder *e);
void xm_embedder_resume(struct xm_embedder *e);
/* Returns the infer request for statistics and interrupts; the embedder owns it. */
struct xm_infer *xm_embedder_request(const struct xm_embedder *e);

#ifdef __cplusplus
}
#endif
#endif
