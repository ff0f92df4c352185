/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to transformations/split: the decisions that split_plan.c makes and split_part.c carries
 * out.
 */
#ifndef XM_TRANSFORMATIONS_SPLIT_SPLIT_PLAN_H
#define XM_TRANSFORMATIONS_SPLIT_SPLIT_PLAN_H

#include "transformations/graph/algebra.h"
#include "transformations/split/split.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_builder;

enum { XM_NO_CLASS = UINT32_MAX, XM_EVERY_RANK = UINT32_MAX };

/* The layout in which a value is computed; for split values, along which dimension and with which
 * class it is cut. */
struct xm_split_value {
    enum xm_layout_kind kind;
    uint32_t dim, class_;
    bool is_made_whole; /* an exchange also gives the whole value to every rank */
};

/* A class: dimensions that are cut at the same fractions. Classes that were joined form a tree; the
 * members of the root apply to all. */
struct xm_split_class {
    uint32_t parent; /* number of a class; its own: this is the root */
    uint64_t units;  /* number of equal pieces between which it can be cut */
};

struct xm_split_node {
    uint32_t assignment; /* number k for xm_node_layouts */
    uint32_t class_;     /* class of the dimension that it splits; XM_NO_CLASS: none */
    bool is_whole;       /* decided in advance: every rank does the whole node */
};

struct xm_split {
    const struct xm_graph *g;
    struct xm_split_wish wish;
    double *shares; /* owned; they add up to 1 */
    double largest; /* the largest share */
    /* by the id of the node plus the number of the result */
    struct xm_split_value *values;
    struct xm_split_node *nodes; /* by the id of the node */
    struct xm_split_class *classes;
    size_t n_classes, classes_capacity;
    struct xm_exchange *exchanges;
    size_t n_exchanges, exchanges_capacity;
    /* Split by layer: for each node, by its id, the rank that runs it, or XM_EVERY_RANK; NULL: not
     * split by layer. */
    uint32_t *stage;
    double seconds; /* estimated time to read weights and to exchange values */
};

/* The root of a class. */
uint32_t xm_split_root(const struct xm_split *s, uint32_t c);
/* Computes the part [first, first + n) of rank `rank` of `size` elements that are split with class
 * c. */
void xm_split_range(const struct xm_split *s, uint32_t c, uint64_t size, uint32_t rank,
                    uint64_t *first, uint64_t *n);
/* Gets the layouts of operands, in[n_in], and results, out[n_out], of a node in its chosen
 * assignment. */
void xm_split_layouts(const struct xm_split *s, const struct xm_node *n,
                      struct xm_layout *in, struct xm_layout *out);

/* split_layers.c: decides `stage` and the exchanges; makes the graph of a rank; counts the bytes of
 * its weights. */
enum xm_status xm_split_plan_layers(struct xm_split *s, struct xm_error *err);
enum xm_status xm_split_layers_part(const struct xm_split *s, struct xm_collective *c,
                                    struct xm_mapping *owner, struct xm_graph **out,
                                    struct xm_error *err);
uint64_t xm_split_layers_bytes(const struct xm_split *s, uint32_t rank);
/* Adds an exchange to the list. */
enum xm_status xm_split_note(struct xm_split *s, const struct xm_exchange *e,
                             struct xm_error *err);
/* Returns the value that corresponds to v in a part or a copy of the graph. NULL: there is none, or
 * the call failed; then *err, which the caller zeroes before, has a status. */
typedef struct xm_value *(*xm_split_copy_fn)(const struct xm_value *v, void *ctx,
                                             struct xm_error *err);
/* An xm_split_copy_fn that finds the value by its node's id, which copies keep; `ctx` is the graph
 * of the copies. It does not fail. */
struct xm_value *xm_split_copied(const struct xm_value *v, void *ctx,
                                 struct xm_error *err);
/* If the wish asks for it: adds results for exchanged values and for inner values, in the order of
 * the graph. `exchanged` and `inner` find the value of `part` that a result shows. */
enum xm_status xm_split_show(const struct xm_split *s, struct xm_graph *part,
                             xm_split_copy_fn exchanged, xm_split_copy_fn inner,
                             void *ctx, struct xm_error *err);
/* split_results.c: add a node that sends value x to a rank, or one that receives a value like v
 * from a rank, as ranks are numbered in c. */
enum xm_status xm_split_add_send(struct xm_builder *b, struct xm_collective *c,
                                 struct xm_value *x, uint32_t rank, struct xm_error *err);
enum xm_status xm_split_add_receive(struct xm_builder *b, struct xm_collective *c,
                                    const struct xm_value *v, uint32_t rank,
                                    struct xm_value **out, struct xm_error *err);
bool xm_split_has_state(const struct xm_graph *g);
/* Bytes of a value for one token, as f32. */
uint64_t xm_split_token_bytes(const struct xm_value *v);

/* Allocates layouts for any node of g: *in and *out are the halves of the returned array, which the
 * caller frees; NULL: no memory. */
struct xm_layout *xm_split_new_layouts(const struct xm_graph *g, struct xm_layout **in,
                                       struct xm_layout **out);

static inline bool
xm_split_has_experts(const struct xm_node *n)
{
    return n->op == XM_OP_MOE || n->op == XM_OP_MOE_COMPRESSED ||
           n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
}

/* Whether layout l of operand i splits between experts. */
static inline bool
xm_split_cuts_experts(const struct xm_node *n, uint32_t i, const struct xm_layout *l)
{
    return l->kind == XM_SPLIT && l->dim == 0 && xm_split_has_experts(n) &&
           (i == XM_MOE_W_GATE || i == XM_MOE_W_UP || i == XM_MOE_W_DOWN);
}

static inline struct xm_split_value *
xm_split_value(const struct xm_split *s, const struct xm_value *v)
{
    return &s->values[v->node->id + v->index];
}

/* Whether the elements of v are known before a run, so that every rank can take its part of
 * them. */
static inline bool
xm_split_is_source(const struct xm_value *v)
{
    const enum xm_op op = v->node->op;
    return op == XM_OP_CONST || op == XM_OP_WEIGHT || op == XM_OP_SHAPE_VALUE;
}

#ifdef __cplusplus
}
#endif

#endif
