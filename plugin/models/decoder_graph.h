/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to decoder_*.c: the shared state of xm_decoder_build, and helper functions that build
 * nodes. As with all builders, a NULL operand gives NULL, and the first failure is kept in
 * graph->err.
 */
#ifndef XM_PLUGIN_MODELS_DECODER_GRAPH_H
#define XM_PLUGIN_MODELS_DECODER_GRAPH_H

#include "plugin/models/decoder.h"

struct xm_decoder_graph {
    const struct xm_decoder *d;
    const struct xm_decoder_weights *weights;
    enum xm_experts_form form;
    struct xm_graph *g;
    struct xm_builder b;
    /* the graph's inputs */
    struct xm_value *ids, *mask, *positions, *beams;
    struct xm_value *batch; /* batch size, i64 [1]            */
    struct xm_value *table; /* token embeddings               */
    struct xm_value *ple;   /* per-layer embeddings [B,T,L,P] */
    /* For each kind of attention, made when a layer first needs them: cosines and sines of the
     * rotary embedding [B,1,T,R], and the mask, f32 [B,1,T,S], which is added to the scores. */
    struct xm_value *cos[XM_ATTENTION_KINDS], *sin[XM_ATTENTION_KINDS];
    struct xm_value *seen[XM_ATTENTION_KINDS];
    /* [n_layers]: each layer's keys and values [B,Hkv,S,D]; NULL: it reads another layer's. */
    struct xm_value **keys, **values;
};

/* ---- decoder_ops.c: tensors, and operations in the spelling of exporters -------------- */

struct xm_value *xm_dg_tensor(struct xm_decoder_graph *s, enum xm_decoder_tensor t,
                              uint32_t layer);
struct xm_value *xm_dg_op3(struct xm_decoder_graph *s, enum xm_op op, struct xm_value *x,
                           struct xm_value *y, struct xm_value *z);
struct xm_value *xm_dg_int(struct xm_decoder_graph *s, int64_t v); /* i64 []  */
struct xm_value *xm_dg_one(struct xm_decoder_graph *s, int64_t v); /* i64 [1] */
struct xm_value *xm_dg_concat(struct xm_decoder_graph *s, int64_t axis,
                              struct xm_value *const *in, uint32_t n);
struct xm_value *xm_dg_shape_of(struct xm_decoder_graph *s, struct xm_value *x,
                                enum xm_element e);
/* Returns dimension `axis` of x as an i64 scalar. */
struct xm_value *xm_dg_dim_of(struct xm_decoder_graph *s, struct xm_value *x,
                              int64_t axis);
struct xm_value *xm_dg_as_vector(struct xm_decoder_graph *s, struct xm_value *scalar);
struct xm_value *xm_dg_reshape(struct xm_decoder_graph *s, struct xm_value *x,
                               bool special_zero, int n, const int64_t *target);
struct xm_value *xm_dg_unsqueeze(struct xm_decoder_graph *s, struct xm_value *x,
                                 int64_t axis);
struct xm_value *xm_dg_broadcast(struct xm_decoder_graph *s, struct xm_value *x,
                                 struct xm_value *target, int mode);
struct xm_value *xm_dg_reduce_sum(struct xm_decoder_graph *s, struct xm_value *x,
                                  int64_t axis, bool keep);
/* Returns x[from : to] on `axis`. */
struct xm_value *xm_dg_slice(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis,
                             int64_t from, int64_t to);
/* Transposes [B,T,heads,D] to [B,heads,T,D], or back. */
struct xm_value *xm_dg_swap_heads(struct xm_decoder_graph *s, struct xm_value *x);
/* Returns x times a number. */
struct xm_value *xm_dg_scale(struct xm_decoder_graph *s, struct xm_value *x,
                             float factor);
/* Return x w^T, and x w^T + bias if the layer has the bias. */
struct xm_value *xm_dg_product(struct xm_decoder_graph *s, enum xm_decoder_tensor w,
                               uint32_t layer, struct xm_value *x);
struct xm_value *xm_dg_biased(struct xm_decoder_graph *s, enum xm_decoder_tensor w,
                              enum xm_decoder_tensor bias, uint32_t layer,
                              struct xm_value *x);
/* xm_dg_unit returns x / sqrt(mean(x²) + epsilon), the mean over the last axis; xm_dg_norm returns
 * that times gamma. */
struct xm_value *xm_dg_unit(struct xm_decoder_graph *s, struct xm_value *x);
struct xm_value *xm_dg_norm(struct xm_decoder_graph *s, enum xm_decoder_tensor gamma,
                            uint32_t layer, struct xm_value *x);
/* Returns the activation function of feed-forwards, applied to x. */
struct xm_value *xm_dg_activation(struct xm_decoder_graph *s, struct xm_value *x);

/* ---- decoder_masks.c, decoder_rope.c: once for each kind of attention ----------------- */

/* Returns the mask: 0 if a query attends to a key, else -65504, the lowest f16. past_keys:
 * [B,Hkv,past,D] of any layer; only its shape is used. */
struct xm_value *xm_dg_mask(struct xm_decoder_graph *s, enum xm_attention_kind kind,
                            struct xm_value *past_keys);
/* Applies the rotary embedding to x [B,heads,T,columns], whose first R columns are rotated. */
struct xm_value *xm_dg_rotate(struct xm_decoder_graph *s, enum xm_attention_kind kind,
                              struct xm_value *x, uint32_t columns);

/* ---- decoder_mla.c: queries, keys and values of latent attention from x [B,T,H] ----- */

/* Returns the queries [B,Hq,T,D], rotated. */
struct xm_value *xm_dg_latent_queries(struct xm_decoder_graph *s, uint32_t layer,
                                      struct xm_value *x);
struct xm_dg_keys {
    struct xm_value *keys, *values; /* [B,Hkv,T,D], rotated; [B,Hkv,T,Dv] */
};
struct xm_dg_keys xm_dg_latent_keys(struct xm_decoder_graph *s, uint32_t layer,
                                    struct xm_value *x);
/* Returns the number by which attention scores are multiplied. */
float xm_dg_latent_scale(const struct xm_decoder_graph *s, uint32_t layer);

/* ---- decoder_attention.c, decoder_experts.c: [B,T,H] to [B,T,H] ----------------------- */

struct xm_value *xm_dg_attention(struct xm_decoder_graph *s, uint32_t layer,
                                 struct xm_value *x);
/* `scored`: the input of the router: x, or the residual stream behind another norm. */
struct xm_value *xm_dg_experts(struct xm_decoder_graph *s, uint32_t layer,
                               struct xm_value *x, struct xm_value *scored);

#endif
