/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to evaluate*.c and tensor.c: the arguments of an op's reference, and the walk over
 * indices that references share.
 *
 * A reference xm_eval_<eval> (ops.def) finds its results created with the types that the
 * op's shape function gave for the concrete operands, zeroed. Where that could not tell a
 * size, out[i] is NULL and the reference creates it. What shape functions refuse (axes,
 * ranks, sizes that do not agree) and the classes of operands are not checked again.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_EVALUATE_OPS_H
#define XM_TRANSFORMATIONS_GRAPH_EVALUATE_OPS_H

#include "transformations/graph/evaluate.h"

struct xm_eval_call {
    const struct xm_node *node;
    const struct xm_tensor *const
        *in; /* NULL: absent, or a weight that is not expanded  */
    struct xm_tensor **out;
    struct xm_infer *infer;         /* of the concrete operands */
    struct xm_state_store *states;  /* as they were before the run  */
    struct xm_state_store *pending; /* what this run writes */
    const struct xm_binding *bindings;
    uint32_t n_bindings;
    struct xm_error *err;
};

typedef enum xm_status (*xm_eval_fn)(struct xm_eval_call *c);
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    enum xm_status xm_eval_##eval(struct xm_eval_call *c);
#include "transformations/graph/ops.def"

/* Checks the operands' classes (ops.def). */
enum xm_status xm_eval_operands(const struct xm_eval_call *c, const char *classes);

/* The sentence for an allocation that failed. */
enum xm_status xm_eval_no_memory(struct xm_error *err);

/* ---- tensors (tensor.c) ------------------------------------------------------------ */

/* Bytes of one element as held: 4 or 8. */
uint64_t xm_tensor_width(const struct xm_tensor *t);
uint8_t *xm_tensor_raw(const struct xm_tensor *t);
enum xm_status xm_tensor_copy(struct xm_tensor **out, const struct xm_tensor *t,
                              struct xm_error *err);
/* Copies n elements of x to out, which has the same storage type. */
void xm_tensor_move(struct xm_tensor *out, uint64_t to, const struct xm_tensor *x,
                    uint64_t from, uint64_t n);
/* Reads all elements from packed bytes of the tensor's type, a readable one. */
void xm_tensor_fill(struct xm_tensor *t, const void *bytes);
/* Row-major strides in elements. */
void xm_tensor_strides(const struct xm_tensor *t, int64_t *stride);
/* Product of dim[first … last-1]; may be anything when the tensor is empty. */
uint64_t xm_tensor_size(const struct xm_tensor *t, uint32_t first, uint32_t last);
/* Integers wrap around at the tensor's own width, as they do where they are stored. */
void xm_tensor_wrap(struct xm_tensor *t);
/* "i64[2,3]" */
const char *xm_tensor_text(const struct xm_tensor *t, char *buffer, size_t n);

/* Takes ownership of t, also on failure. */
enum xm_status xm_state_put(struct xm_state_store *s, const char *variable,
                            struct xm_tensor *t, struct xm_error *err);
/* Moves all states of `from` into `to`, or none on failure. */
enum xm_status xm_state_commit(struct xm_state_store *to, struct xm_state_store *from,
                               struct xm_error *err);

/* ---- walking (evaluate_walk.c) ----------------------------------------------------- */

enum { XM_WALK_MAX = 5, XM_WALK_RANK = 2 * XM_MAX_RANK };

/* Steps through an index space, keeping where it is in up to five arrays, element by element, or
 * row by row of `inner` elements, `step` apart:
 *
 *     while (xm_walk_next(&w))
 *         … a[w.at[0]] … b[w.at[1]] …
 */
struct xm_walk {
    uint32_t rank, n; /* dimensions, arrays */
    int64_t dim[XM_WALK_RANK], index[XM_WALK_RANK];
    int64_t stride[XM_WALK_MAX][XM_WALK_RANK];
    int64_t at[XM_WALK_MAX];
    int64_t step[XM_WALK_MAX];
    int64_t inner;
    bool started;
};

/* Starts a walk over dim[rank] with no arrays. */
void xm_walk_begin(struct xm_walk *w, uint32_t rank, const int64_t *dim);
/* Adds an array with a stride for every dimension. */
void xm_walk_add(struct xm_walk *w, int64_t offset, const int64_t *stride);
/* Adds t broadcast to the walk's dimensions, aligned at the last one. False: it does not
 * fit. */
bool xm_walk_add_broadcast(struct xm_walk *w, const struct xm_tensor *t);
bool xm_walk_next(struct xm_walk *w);
bool xm_walk_row(struct xm_walk *w);

/* Walk over result 0 with operands 0 … n-1 broadcast to it. */
void xm_walk_operands(struct xm_walk *w, const struct xm_eval_call *c, uint32_t n);
/* out[index] = src[offset + index . stride]; the walk has src as its only array. */
void xm_walk_copy(struct xm_walk *w, const struct xm_tensor *src, struct xm_tensor *out);

/* Combines the present element (a) and the next one (b) of a scatter or a reduction. Mean adds; the
 * caller divides. */
double xm_eval_combine_floats(int reduction, double a, double b);
int64_t xm_eval_combine_ints(int reduction, int64_t a, int64_t b);
/* Combines element `at` of out with element `from` of the updates. */
void xm_eval_land(int reduction, struct xm_tensor *out, uint64_t at,
                  const struct xm_tensor *updates, uint64_t from);

/* An axis in -rank … rank-1, made positive. */
static inline uint32_t
xm_eval_axis(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}

/* An index in -n … n-1, made positive. */
enum xm_status xm_eval_index(const struct xm_eval_call *c, int64_t index, int64_t n,
                             int64_t *out);

/* x [B,T,H,D] rotated by tables [B or 1,T,R] (evaluate_fused.c). */
void xm_eval_rotate(const struct xm_tensor *x, const struct xm_tensor *cos,
                    const struct xm_tensor *sin, struct xm_tensor *out);

/* ---- weights (evaluate_heavy.c) ---------------------------------------------------- */

/* Operand i as a weight: the one stored in its node, or a view of a float tensor of rank 1 to 3.
 * False when it is absent. */
bool xm_eval_weight_of(const struct xm_eval_call *c, uint32_t i, struct xm_weight *w);
/* Operand i (integers) as int32 in 0 … limit-1; xm_free. */
enum xm_status xm_eval_ids(const struct xm_eval_call *c, uint32_t i, uint64_t limit,
                           int32_t **out);

#endif
