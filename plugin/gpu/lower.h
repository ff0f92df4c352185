/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside lowering: what lower.c and the per-family files share.
 */
#ifndef XM_PLUGIN_GPU_LOWER_H
#define XM_PLUGIN_GPU_LOWER_H

#include "plugin/gpu/program.h"

struct xm_lower {
    struct xm_program *p;
    struct xm_graph *g;
    struct xm_error *err;
    uint32_t *first_result; /* by node id: its first result, as a number */
    uint32_t *first_value;  /* by result: its program value, or XM_NO_VALUE */
    /* by node id: union-find over nodes whose sizes depend on data; XM_NO_VALUE outside */
    uint32_t *region;
    /* the nodes of a region as a list: first and last by the root's id, next by id */
    uint32_t *region_first, *region_next, *region_last;
    uint32_t inputs, outputs; /* ports so far, in the order of the graph */
    size_t values_capacity, steps_capacity, weights_capacity;
    struct xm_queue *queue; /* writes the constants; NULL: none yet                     */
    uint64_t expert_bytes, host_expert_bytes; /* so far: all experts, those on the host */
};

/* Lowers one node to steps. XM_UNSUPPORTED without a message in l->err means "no kernel
 * for this form": the caller falls back to a host step. */
typedef enum xm_status (*xm_lower_fn)(struct xm_lower *l, struct xm_node *n);

/* lower_values.c */
enum xm_status xm_lower_new_value(struct xm_lower *l, const struct xm_value *source,
                                  enum xm_element element, const struct xm_shape *shape,
                                  enum xm_place place, uint32_t *out);
/* The program value of a graph value (constants are uploaded on first use). */
enum xm_status xm_lower_value(struct xm_lower *l, struct xm_value *v, uint32_t *out);
/* The same converted to an element type, by a step if need be. */
enum xm_status xm_lower_value_as(struct xm_lower *l, struct xm_value *v,
                                 enum xm_element e, uint32_t *out);
/* Marks n operands of a step as absent. The next four functions each fill in one operand. */
void xm_lower_absent(struct xm_step_operand *operands, uint32_t n);
/* Input i of n, if present: as it is; converted to element type e; converted to the element type of
 * n's result 0. */
enum xm_status xm_lower_input(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                              struct xm_step_operand *out);
enum xm_status xm_lower_input_as(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                                 enum xm_element e, struct xm_step_operand *out);
enum xm_status xm_lower_like_result(struct xm_lower *l, const struct xm_node *n,
                                    uint32_t i, struct xm_step_operand *out);
/* A new activation for result i of n, of element type e; DYNAMIC: the type of the graph's value. */
enum xm_status xm_lower_result(struct xm_lower *l, struct xm_node *n, uint32_t i,
                               enum xm_element e, struct xm_step_operand *out);
/* The element type of an operand on the device; DYNAMIC: it is absent. */
enum xm_element xm_lower_element_of(const struct xm_lower *l,
                                    const struct xm_step_operand *o);
/* Makes result i of n an alias of program value `of`: both have the same bytes. */
enum xm_status xm_lower_alias(struct xm_lower *l, struct xm_node *n, uint32_t i,
                              uint32_t of);
/* A constant as an f32 device buffer (kept by the program); NULL for xm_none. */
enum xm_status xm_lower_f32_buffer(struct xm_lower *l, const struct xm_value *v,
                                   struct xm_buffer **out);
/* The device side of a WEIGHT node's value; NULL for xm_none. */
enum xm_status xm_lower_weight(struct xm_lower *l, const struct xm_value *v,
                               struct xm_device_weight **out);
/* The same for the n weights of one layer's experts, which all lie either on the device or in host
 * memory; *host_bytes: their bytes in host memory. */
enum xm_status xm_lower_experts(struct xm_lower *l, const struct xm_value *const *v,
                                uint32_t n, struct xm_device_weight **out,
                                uint64_t *host_bytes);
/* Whether the operand is f16 or f32. */
bool xm_lower_is_float(const struct xm_lower *l, const struct xm_step_operand *o);
/* Columns of activations that share a factor where node n multiplies them by its weights as 8-bit
 * integers (struct xm_product): what the user wants, else what suits these weights; 0: it does not,
 * because the user does not want it, or the processor would not gain with one of these weights. */
uint32_t xm_lower_factor_columns(const struct xm_lower *l, const struct xm_node *n);
/* The element type that a value of the graph has on the device: float types other than f16 become
 * f32. */
enum xm_element xm_lower_element(const struct xm_value *v);

/* lower_forms.c */
/* The form, other than plain rows, in which the largest weight that multiplies v's rows of `cols`
 * columns needs them. */
struct xm_rows_form xm_lower_form_wanted(struct xm_lower *l, const struct xm_value *v,
                                         uint64_t cols);
/* Adds a value of the program for the first rows of value `of` in that form; the step that writes
 * `of` writes it as well. *out is its operand. */
enum xm_status xm_lower_prepared(struct xm_lower *l, uint32_t of,
                                 const struct xm_rows_form *form, uint64_t cols,
                                 struct xm_step_operand *out);
/* The same; destroys `primitive`, which writes beside `of`, on failure. */
enum xm_status xm_lower_emit(struct xm_lower *l, struct xm_primitive *primitive,
                             const struct xm_step_operand *of,
                             const struct xm_rows_form *form, uint64_t cols,
                             struct xm_step_operand *out);
/* The value that xm_lower_prepared added for value `id`, and its form; XM_NO_VALUE: there is
 * none. */
uint32_t xm_lower_prepared_of(const struct xm_lower *l, uint32_t id, uint64_t cols,
                              struct xm_rows_form *form);

/* lower.c: adds a step with the operands of its primitive, and owns the primitive from now on, also
 * on failure. */
enum xm_status xm_lower_step(struct xm_lower *l, struct xm_node *n,
                             enum xm_step_kind kind, struct xm_primitive *primitive,
                             struct xm_step_operand *operands, struct xm_step **out);
/* The same with what the step costs; NULL: nothing is counted. */
enum xm_status xm_lower_finish(struct xm_lower *l, struct xm_node *n,
                               struct xm_primitive *primitive,
                               struct xm_step_operand *operands,
                               const struct xm_step_cost *cost);
/* Adds what a token costs that chooses `times` of `of` experts, on average: a rank's weight has a
 * part of them. */
void xm_lower_add_cost(struct xm_step_cost *cost, const struct xm_weight *w,
                       uint64_t times, uint64_t of);
/* The same for a step that reads its first n_in operands and writes the n_out operands behind
 * them. */
enum xm_status xm_lower_list_step(struct xm_lower *l, struct xm_node *n,
                                  enum xm_step_kind kind, struct xm_primitive *primitive,
                                  struct xm_step_operand *operands, uint32_t n_in,
                                  uint32_t n_out, struct xm_step **out);

/* lower_host.c */
/* A region is a set of nodes that one host step evaluates (struct xm_region). */
enum xm_status xm_lower_find_regions(struct xm_lower *l);
void xm_lower_free_regions(struct xm_lower *l);
/* Whether n belongs to a region. xm_lower_region makes the region's step when n is its last node;
 * xm_lower_region_before makes it earlier, from any node, when a result is needed before. */
bool xm_lower_is_in_region(const struct xm_lower *l, const struct xm_node *n);
enum xm_status xm_lower_region(struct xm_lower *l, struct xm_node *n);
enum xm_status xm_lower_region_before(struct xm_lower *l, struct xm_node *n);
/* A host step for one node. */
enum xm_status xm_lower_to_host(struct xm_lower *l, struct xm_node *n);

/* The question of a pass (xm_caps.can_run): can a node with these attributes and operands run? */
struct xm_lower_question {
    const struct xm_device_info *device;
    const union xm_attr *attr; /* NULL: defaults */
    struct xm_value *const *in;
    uint32_t n_in;
};
/* lower_values.c: of an operand: its weight, NULL if it is none; the element type that it has on a
 * device, as far as primitives care, which take f16 and f32 alike; a dimension, 0 where it is not
 * constant. */
const struct xm_weight *xm_asked_weight(const struct xm_value *v);
enum xm_element xm_asked_type(const struct xm_value *v);
uint32_t xm_asked_size(const struct xm_value *v, uint32_t i);
uint32_t xm_asked_last_size(const struct xm_value *v);

/* An op with kernels. */
struct xm_lower_op {
    enum xm_op op;
    xm_lower_fn lower;
    /* For fused ops: why the device cannot run it, a static sentence; NULL: it can. Passes ask it
     * before they fuse. */
    const char *(*why_not)(const struct xm_lower_question *q);
};
/* Each ends with XM_OP_NONE: of lower_products.c, lower_rows.c, … */
extern const struct xm_lower_op xm_lower_product_ops[], xm_lower_row_ops[],
    xm_lower_attention_ops[], xm_lower_expert_ops[], xm_lower_light_ops[];
/* The row of an op; NULL: it has none. */
const struct xm_lower_op *xm_lower_op(enum xm_op op);
/* lower_light.c: lowers an elementwise op; these have no rows in the tables. */
enum xm_status xm_lower_eltwise(struct xm_lower *l, struct xm_node *n);

#endif
