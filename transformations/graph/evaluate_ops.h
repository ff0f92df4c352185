/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to evaluate*.c and tensor.c: the arguments of the reference of an op, and the walk over
 * indices that references share.
 *
 * When a reference xm_eval_<eval> (ops.def) is called, its results exist, zeroed, with the types
 * that the shape function gave for these operands. If the shape function could not tell a size,
 * out[i] is NULL and the reference creates it. References do not check again what shape functions
 * check (axes, ranks, sizes) nor the classes of operands.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_EVALUATE_OPS_H
#define XM_TRANSFORMATIONS_GRAPH_EVALUATE_OPS_H

#include "transformations/graph/evaluate.h"

struct xm_eval_call {
    const struct xm_node *node;
    const struct xm_tensor *const *in; /* in[i] NULL: absent, or a weight, not decoded */
    struct xm_tensor **out;
    struct xm_infer *infer;         /* shape inference for these operands */
    struct xm_state_store *states;  /* values before the run        */
    struct xm_state_store *pending; /* values that this run writes */
    const struct xm_binding *bindings;
    uint32_t n_bindings;
    struct xm_error *err;
};

typedef enum xm_status (*xm_eval_fn)(struct xm_eval_call *c);
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    enum xm_status xm_eval_##eval(struct xm_eval_call *c);
#include "transformations/graph/ops.def"

/* Checks that the operands have the types that `classes` allows (ops.def). */
enum xm_status xm_eval_operands(const struct xm_eval_call *c, const char *classes);

/* Fails with XM_NO_MEMORY. */
enum xm_status xm_eval_no_memory(struct xm_error *err);

/* ---- tensors (tensor.c) ------------------------------------------------------------ */

/* Bytes of an element in memory: 4 (f32) or 8 (int64). */
uint64_t xm_tensor_width(const struct xm_tensor *t);
uint8_t *xm_tensor_raw(const struct xm_tensor *t);
enum xm_status xm_tensor_copy(struct xm_tensor **out, const struct xm_tensor *t,
                              struct xm_error *err);
/* Copies n elements of x from index `from` to index `to` of `out`, which has the same storage
 * type. */
void xm_tensor_move(struct xm_tensor *out, uint64_t to, const struct xm_tensor *x,
                    uint64_t from, uint64_t n);
/* Sets all elements from packed bytes of the tensor's type, which must be readable. */
void xm_tensor_fill(struct xm_tensor *t, const void *bytes);
/* Row-major strides in elements. */
void xm_tensor_strides(const struct xm_tensor *t, int64_t *stride);
/* The product of dim[first … last-1]; any number if the tensor is empty. */
uint64_t xm_tensor_size(const struct xm_tensor *t, uint32_t first, uint32_t last);
/* Wraps integers around at the width of the tensor's type, as storing them would. */
void xm_tensor_wrap(struct xm_tensor *t);
/* Writes the type, such as "i64[2,3]", to buffer; returns it. */
const char *xm_tensor_text(const struct xm_tensor *t, char *buffer, size_t n);

/* Sets a state to t and takes ownership of t, also on failure. */
enum xm_status xm_state_put(struct xm_state_store *s, const char *variable,
                            struct xm_tensor *t, struct xm_error *err);
/* Moves all states of `from` into `to`, or none on failure. */
enum xm_status xm_state_commit(struct xm_state_store *to, struct xm_state_store *from,
                               struct xm_error *err);

/* ---- walking (evaluate_walk.c) ----------------------------------------------------- */

enum { XM_WALK_MAX = 5, XM_WALK_RANK = 2 * XM_MAX_RANK };

/* A walk through an index space. at[k] is the offset of the present index in array k, of up to
 * five. xm_walk_next goes from element to element; xm_walk_row from row to row, a row being `inner`
 * elements that are step[k] apart in array k:
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

/* Starts a walk over the index space dim[rank], without arrays. */
void xm_walk_begin(struct xm_walk *w, uint32_t rank, const int64_t *dim);
/* Adds an array: the offset of its first element, and a stride for every dimension. */
void xm_walk_add(struct xm_walk *w, int64_t offset, const int64_t *stride);
/* Adds tensor t, broadcast to the walk's dimensions (aligned at the last one). False: t cannot be
 * broadcast. */
bool xm_walk_add_broadcast(struct xm_walk *w, const struct xm_tensor *t);
/* Go to the next element, or to the next row; false: there is none. */
bool xm_walk_next(struct xm_walk *w);
bool xm_walk_row(struct xm_walk *w);

/* Starts a walk over result 0 with operands 0 … n-1 broadcast to it as arrays. */
void xm_walk_operands(struct xm_walk *w, const struct xm_eval_call *c, uint32_t n);
/* Copies out[index] = src[offset + index . stride] for all indices; the walk has src as its only
 * array. */
void xm_walk_copy(struct xm_walk *w, const struct xm_tensor *src, struct xm_tensor *out);

/* Combines the present element (a) of a scatter or a reduction with the next value (b). For a mean
 * it adds; the caller divides. */
double xm_eval_combine_floats(int reduction, double a, double b);
int64_t xm_eval_combine_ints(int reduction, int64_t a, int64_t b);
/* Combines element `at` of out with element `from` of `updates`. */
void xm_eval_land(int reduction, struct xm_tensor *out, uint64_t at,
                  const struct xm_tensor *updates, uint64_t from);

/* Makes an axis in -rank … rank-1 non-negative. */
static inline uint32_t
xm_eval_axis(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}

/* Makes an index in -n … n-1 non-negative; XM_INVALID: it is outside. */
enum xm_status xm_eval_index(const struct xm_eval_call *c, int64_t index, int64_t n,
                             int64_t *out);

/* out = x [B,T,H,D] rotated by tables [B or 1,T,R] (evaluate_fused.c). */
void xm_eval_rotate(const struct xm_tensor *x, const struct xm_tensor *cos,
                    const struct xm_tensor *sin, struct xm_tensor *out);

/* ---- weights (evaluate_heavy.c) ---------------------------------------------------- */

/* Makes *w operand i as a weight: a weight node's, or a view of a float tensor of rank 1 to 3.
 * False: the operand is absent. */
bool xm_eval_weight_of(const struct xm_eval_call *c, uint32_t i, struct xm_weight *w);
/* Converts operand i (integers) to int32 in 0 … limit-1; the caller frees *out (xm_free). */
enum xm_status xm_eval_ids(const struct xm_eval_call *c, uint32_t i, uint64_t limit,
                           int32_t **out);

#endif
