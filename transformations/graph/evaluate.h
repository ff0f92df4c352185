/* SPDX-License-Identifier: Apache-2.0
 *
 * The host reference of every op: runs a graph (before or after any pass) on concrete tensors.
 *
 * Floats of every type are held as f32, integers and booleans as int64; formulas come from
 * runtime/reference. Written for clarity, not speed; weights are dequantised row by row, never
 * whole. One thread; the graph is only read.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_EVALUATE_H
#define XM_TRANSFORMATIONS_GRAPH_EVALUATE_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A concrete tensor, which owns its data. */
struct xm_tensor {
    /* type of the elements; determines which of f and i is set */
    enum xm_element element;
    uint32_t rank;
    int64_t dim[XM_MAX_RANK];
    uint64_t n; /* number of elements */
    float *f;   /* float element types */
    int64_t *i; /* integer element types and boolean */
};

enum xm_status xm_tensor_create(struct xm_tensor **out, enum xm_element element,
                                uint32_t rank, const int64_t *dim, struct xm_error *err);
void xm_tensor_destroy(struct xm_tensor *t); /* NULL is allowed */
/* Convert between a tensor and packed bytes of its element type. */
enum xm_status xm_tensor_from_bytes(struct xm_tensor **out, enum xm_element element,
                                    uint32_t rank, const int64_t *dim, const void *bytes,
                                    struct xm_error *err);
void xm_tensor_to_bytes(const struct xm_tensor *t, void *bytes);

/* The values of states, by variable name. They outlive a run. Attention stores K and V as
 * [B,S,Hkv,D]. */
struct xm_state_store;
struct xm_state_store *xm_state_store_create(void); /* NULL: out of memory */
void xm_state_store_destroy(struct xm_state_store *s);
void xm_state_store_reset(struct xm_state_store *s); /* makes all states empty */
/* Returns the value of a state; NULL: it has not been written. */
const struct xm_tensor *xm_state_get(const struct xm_state_store *s,
                                     const char *variable);
enum xm_status xm_state_set(struct xm_state_store *s, const char *variable,
                            const struct xm_tensor *t, struct xm_error *err); /* copies */

/* Called after each node with its operands and results (n_out tensors); a result other than XM_OK
 * ends the run. */
typedef enum xm_status (*xm_eval_hook)(const struct xm_node *n,
                                       const struct xm_tensor *const *in,
                                       struct xm_tensor *const *out, void *ctx);

struct xm_eval {
    const struct xm_graph *graph;
    const char *const *input_names; /* friendly or tensor names of parameters */
    const struct xm_tensor *const *inputs;
    uint32_t n_inputs;
    struct xm_state_store *states; /* NULL: states start empty and are dropped */
    /* values of symbols that the shapes of inputs and states do not determine */
    const struct xm_binding *bindings;
    uint32_t n_bindings;
    xm_eval_hook hook; /* NULL: none */
    void *hook_ctx;
};

/* Runs all nodes that results and assigns depend on. outputs[i] is the value of the i-th result in
 * graph order; the caller destroys it. n_outputs is the number of results. Assigns take effect
 * after all nodes have run. Errors name the node. */
enum xm_status xm_evaluate(const struct xm_eval *e, struct xm_tensor **outputs,
                           uint32_t n_outputs, struct xm_error *err);

/* Runs only the nodes that `value` depends on, for passes. *out: its tensor, which the caller
 * destroys. */
enum xm_status xm_evaluate_value(const struct xm_eval *e, const struct xm_value *value,
                                 struct xm_tensor **out, struct xm_error *err);

/* Whether the reference of `op` reads a weight node at operand i itself, row by row: then its
 * tensor in in[] may be NULL. */
bool xm_eval_takes_weight(enum xm_op op, uint32_t i);
/* Whether operand i of `op` may be absent. */
bool xm_eval_may_lack(enum xm_op op, uint32_t i);

/* Runs one node on the operands in[n_in] (NULL: absent) and creates out[n_out]; for steps without a
 * kernel, and for the command `verify`. `bindings`: values of the symbols in shape_value nodes and
 * weights' shapes. */
enum xm_status xm_evaluate_node(const struct xm_node *n,
                                const struct xm_tensor *const *in, struct xm_tensor **out,
                                struct xm_state_store *states,
                                const struct xm_binding *bindings, uint32_t n_bindings,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
