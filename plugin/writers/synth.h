/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the synthetic models: what synthetic.c and its parts share.
 */
#ifndef XM_PLUGIN_WRITERS_SYNTH_H
#define XM_PLUGIN_WRITERS_SYNTH_H

#include "plugin/writers/bin_file.h"
#include "plugin/writers/synthetic.h"
#include "transformations/graph/builder.h"

struct xm_synth {
    const struct xm_synthetic *m;
    struct xm_graph *g;
    struct xm_builder b;
    struct xm_bin_file bin;
    uint64_t random; /* state of the generator, never 0 */
    uint64_t all_bytes;
    void (*progress)(uint64_t done, uint64_t all, void *ctx);
    void *ctx;
    struct xm_error *err;
};

/* synth_weights.c: constants in the file. NULL on failure, like every builder. */
/* A weight [n,k] (experts == 0) or [experts,n,k] as exporters spell it, ending in f32. */
struct xm_value *xm_synth_weight(struct xm_synth *s, const char *name, uint32_t experts,
                                 uint32_t n, uint32_t k, enum xm_element e,
                                 uint32_t group);
/* f32 constant of rank `rank`: all ones but the last dimension, filled with `value`. */
struct xm_value *xm_synth_filled(struct xm_synth *s, uint32_t rank, uint32_t n,
                                 float value);
/* Integer constants, as xm_const_ints, by values. */
struct xm_value *xm_synth_int(struct xm_synth *s, enum xm_element e,
                              int64_t v); /* scalar */
struct xm_value *xm_synth_ints(struct xm_synth *s, enum xm_element e, int n,
                               const int64_t *v);

/* synth_layers.c: pieces of the graph. */
struct xm_synth_inputs {
    struct xm_value *ids, *mask, *positions, *beams;
    struct xm_value *batch;     /* i64 [1]                                              */
    struct xm_value *cos, *sin; /* [B,1,T,D]                                            */
    /* f32 [B,1,T,S], made by the first layer */
    struct xm_value *attention_mask;
    /* i64 [3], of the first norm's result */
    struct xm_value *hidden_shape;
};
struct xm_value *xm_synth_op(struct xm_synth *s, enum xm_op op, const union xm_attr *attr,
                             struct xm_value *const *in, uint32_t n);
struct xm_value *xm_synth_concat(struct xm_synth *s, int64_t axis,
                                 struct xm_value *const *in, uint32_t n);
struct xm_value *xm_synth_shape_of(struct xm_synth *s, struct xm_value *x,
                                   enum xm_element e);
struct xm_value *xm_synth_reshape(struct xm_synth *s, struct xm_value *x,
                                  bool special_zero, int n, const int64_t *target);
struct xm_value *xm_synth_norm(struct xm_synth *s, struct xm_value *x, uint32_t n);
struct xm_value *xm_synth_attention(struct xm_synth *s, struct xm_synth_inputs *in,
                                    uint32_t layer, struct xm_value *x);
/* synth_moe.c: the expert block, [B,T,H] to [B,T,H]. */
struct xm_value *xm_synth_moe(struct xm_synth *s, struct xm_synth_inputs *in,
                              uint32_t layer, struct xm_value *x);

#endif
