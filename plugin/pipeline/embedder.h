/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings: texts in, a vector of length 1 each out.
 *
 *     graph ──► xm_embedder_read_graph ──► compiled: ids in, hidden states out
 *     ids ──► hidden states of tokens ──► pooled ──► cut ──► length 1
 *
 * The compiled model is another program than that which generates text, over the same weights: what
 * it gives in place of logits is the operand of the last projection
 * (transformations/passes/gather_hidden_states.h). Nothing below this file knows of embeddings.
 *
 * Texts are run together, up to a chunk of tokens; a device without sequences runs one after the
 * other. A text's embedding does not depend on those beside it but for rounding, as texts of the
 * scheduler do not.
 */
#ifndef XM_PLUGIN_PIPELINE_EMBEDDER_H
#define XM_PLUGIN_PIPELINE_EMBEDDER_H

#include "plugin/pipeline/package.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_embedder; /* one thread at a time; cancelled from any */

/* As xm_package_read_graph, with hidden states in the place of logits; it is compiled without
 * sampled_logits. *vocabulary: ids are below it; UINT64_MAX: not known. XM_UNSUPPORTED: no hidden
 * states were found. */
enum xm_status xm_embedder_read_graph(const struct xm_package *p, struct xm_graph **out,
                                      uint64_t *vocabulary, struct xm_error *err);

/* `compiled`, of such a graph, is referenced. XM_UNSUPPORTED: it is of another. */
enum xm_status xm_embedder_create(struct xm_compiled *compiled, enum xm_pooling pooling,
                                  struct xm_embedder **out, struct xm_error *err);
void xm_embedder_destroy(struct xm_embedder *e); /* NULL is allowed */
/* Dimensions of an embedding. */
uint64_t xm_embedder_width(const struct xm_embedder *e);

/* Writes the embeddings of n texts, each of one id or more below the vocabulary, to
 * out[n][dimensions]: of each its first `dimensions` (1 to the width) components, scaled to length
 * 1. XM_NOT_FINITE: hidden states overflowed; XM_CANCELLED: by xm_embedder_cancel, at once. */
enum xm_status xm_embedder_run(struct xm_embedder *e, const struct xm_token_list *texts,
                               size_t n, uint64_t dimensions, float *out,
                               struct xm_error *err);
/* From any thread: makes the run in progress, and each until `resume`, return XM_CANCELLED. */
void xm_embedder_cancel(struct xm_embedder *e);
void xm_embedder_resume(struct xm_embedder *e);
/* For statistics and interrupts; owned by the embedder. */
struct xm_infer *xm_embedder_request(const struct xm_embedder *e);

#ifdef __cplusplus
}
#endif
#endif
