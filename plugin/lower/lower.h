/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside lowering: what lower.c and the per-family files share.
 */
#ifndef XM_PLUGIN_LOWER_LOWER_H
#define XM_PLUGIN_LOWER_LOWER_H

#include "plugin/lower/program.h"

struct xm_lower {
    struct xm_program *p;
    struct xm_graph *g;
    struct xm_error *err;
    /* [node id]: the number of the node's first result, counted over all nodes */
    uint32_t *first_result;
    uint32_t *first_value; /* [result number]: its program value, or XM_NO_VALUE */
    /* [node id]: the node's parent in a union-find forest; each tree is a region (lower_host.c).
     * XM_NO_VALUE: the node is in no region. */
    uint32_t *region;
    /* the nodes of a region as a linked list: first and last by the id of the region's root node,
     * next by node id */
    uint32_t *region_first, *region_next, *region_last;
    uint32_t inputs, outputs; /* number of ports lowered so far, in graph order */
    size_t values_capacity, steps_capacity, weights_capacity;
    struct xm_queue *queue; /* writes the constants; NULL: none yet                     */
    /* so far: bytes of all experts, bytes of the experts that stay in host memory */
    uint64_t expert_bytes, host_expert_bytes;
};

/* Lowers one node to steps. XM_UNSUPPORTED without a message in l->err: no kernel can run this
 * node, and the caller makes a host step of it. */
typedef enum xm_status (*xm_lower_fn)(struct xm_lower *l, struct xm_node *n);

/* lower_values.c */
/* Adds a value to the program; *out is its number. `source`: the value of the graph that it holds;
 * NULL: none. */
enum xm_status xm_lower_new_value(struct xm_lower *l, const struct xm_value *source,
                                  enum xm_element element, const struct xm_shape *shape,
                                  enum xm_place place, uint32_t *out);
/* Finds the program value of a graph value. Constants are uploaded on first use. */
enum xm_status xm_lower_value(struct xm_lower *l, struct xm_value *v, uint32_t *out);
/* Finds the program value of a graph value, converted to element type e. Adds a conversion step if
 * the value has another type. */
enum xm_status xm_lower_value_as(struct xm_lower *l, struct xm_value *v,
                                 enum xm_element e, uint32_t *out);
/* Marks n operands of a step as absent. The next four functions each fill in one operand. */
void xm_lower_absent(struct xm_step_operand *operands, uint32_t n);
/* Sets *out to input i of n: unconverted (xm_lower_input), converted to element type e (_as), or
 * converted to the element type of n's result 0 if that is a float type (xm_lower_like_result). An
 * absent input gives an absent operand. */
enum xm_status xm_lower_input(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                              struct xm_step_operand *out);
enum xm_status xm_lower_input_as(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                                 enum xm_element e, struct xm_step_operand *out);
enum xm_status xm_lower_like_result(struct xm_lower *l, const struct xm_node *n,
                                    uint32_t i, struct xm_step_operand *out);
/* Adds a new activation for result i of n, of element type e; XM_DYNAMIC: the element type that the
 * graph's value has on the device. */
enum xm_status xm_lower_result(struct xm_lower *l, struct xm_node *n, uint32_t i,
                               enum xm_element e, struct xm_step_operand *out);
/* Returns the element type of an operand on the device; XM_DYNAMIC: the operand is absent. */
enum xm_element xm_lower_element_of(const struct xm_lower *l,
                                    const struct xm_step_operand *o);
/* Makes result i of n an alias of program value `of`: both values share the same bytes. */
enum xm_status xm_lower_alias(struct xm_lower *l, struct xm_node *n, uint32_t i,
                              uint32_t of);
/* Sets *out to a device buffer with the constant as f32, which the program keeps; NULL for
 * xm_none. */
enum xm_status xm_lower_f32_buffer(struct xm_lower *l, const struct xm_value *v,
                                   struct xm_buffer **out);
/* Sets *out to the device's weight for the value of a WEIGHT node; NULL for xm_none. */
enum xm_status xm_lower_weight(struct xm_lower *l, const struct xm_value *v,
                               struct xm_device_weight **out);
/* Sets out[n] to the device's weights for the n WEIGHT values of one layer's experts; NULL for
 * xm_none. All of them lie on the device, or all in host memory; *host_bytes: their bytes there. */
enum xm_status xm_lower_experts(struct xm_lower *l, const struct xm_value *const *v,
                                uint32_t n, struct xm_device_weight **out,
                                uint64_t *host_bytes);
/* Returns whether the operand is f16 or f32. */
bool xm_lower_is_float(const struct xm_lower *l, const struct xm_step_operand *o);
/* Returns the number of columns of activations that share one scale when node n quantizes its
 * activations to 8-bit integers to multiply them by its weights (struct xm_product). The number is
 * the user's if the option is set, else the one that these weights profit from. 0: node n does not
 * quantize, because the user does not want it or the processor gains nothing with one of the
 * weights. */
uint32_t xm_lower_factor_columns(const struct xm_lower *l, const struct xm_node *n);
/* Returns the element type that a value of the graph has on the device: float types other than f16
 * become f32. */
enum xm_element xm_lower_element(const struct xm_value *v);

/* lower_forms.c */
/* Returns the form of activations that the readers of v want: of the weights that multiply v's rows
 * of `cols` columns in a form other than plain rows, the largest decides. Plain rows: there is no
 * such weight. */
struct xm_rows_form xm_lower_form_wanted(struct xm_lower *l, const struct xm_value *v,
                                         uint64_t cols);
/* Adds a program value that holds the first rows (XM_FEW_TOKENS) of value `of` in `form`; *out is
 * its operand. The step that writes `of` must write it as well. */
enum xm_status xm_lower_prepared(struct xm_lower *l, uint32_t of,
                                 const struct xm_rows_form *form, uint64_t cols,
                                 struct xm_step_operand *out);
/* As xm_lower_prepared, for a `primitive` that writes operand `of` and its first rows in `form`.
 * Destroys `primitive` on failure. */
enum xm_status xm_lower_emit(struct xm_lower *l, struct xm_primitive *primitive,
                             const struct xm_step_operand *of,
                             const struct xm_rows_form *form, uint64_t cols,
                             struct xm_step_operand *out);
/* Returns the value that xm_lower_prepared added for value `id` with `cols` columns, and sets *form
 * to its form; XM_NO_VALUE: there is none. */
uint32_t xm_lower_prepared_of(const struct xm_lower *l, uint32_t id, uint64_t cols,
                              struct xm_rows_form *form);

/* lower.c: adds a step of node n with the operands of its primitive. The program owns the primitive
 * from now on, also on failure. */
enum xm_status xm_lower_step(struct xm_lower *l, struct xm_node *n,
                             enum xm_step_kind kind, struct xm_primitive *primitive,
                             struct xm_step_operand *operands, struct xm_step **out);
/* Adds a step of kind XM_STEP_PRIMITIVE, as xm_lower_step does, and sets its cost, for statistics
 * of work; NULL: no cost. */
enum xm_status xm_lower_finish(struct xm_lower *l, struct xm_node *n,
                               struct xm_primitive *primitive,
                               struct xm_step_operand *operands,
                               const struct xm_step_cost *cost);
/* Adds to *cost the weight bytes and multiply-adds of a token that chooses `times` of the model's
 * `of` experts. `w` may have only the experts of one rank of a mesh: then the number of them that a
 * token chooses is an average. */
void xm_lower_add_cost(struct xm_step_cost *cost, const struct xm_weight *w,
                       uint64_t times, uint64_t of);
/* As xm_lower_step, for a step whose first n_in operands are read and whose next n_out operands are
 * written. */
enum xm_status xm_lower_list_step(struct xm_lower *l, struct xm_node *n,
                                  enum xm_step_kind kind, struct xm_primitive *primitive,
                                  struct xm_step_operand *operands, uint32_t n_in,
                                  uint32_t n_out, struct xm_step **out);

/* lower_host.c */
/* Divides the nodes that have to run on the host because their sizes depend on data into regions. A
 * region is a set of nodes that one host step evaluates (struct xm_region). */
enum xm_status xm_lower_find_regions(struct xm_lower *l);
void xm_lower_free_regions(struct xm_lower *l);
/* Returns whether n belongs to a region. xm_lower_region makes the region's step when n is its last
 * node. xm_lower_region_before makes the step earlier, given any node of the region, when another
 * node needs one of its results before. */
bool xm_lower_is_in_region(const struct xm_lower *l, const struct xm_node *n);
enum xm_status xm_lower_region(struct xm_lower *l, struct xm_node *n);
enum xm_status xm_lower_region_before(struct xm_lower *l, struct xm_node *n);
/* Adds a host step for one node. */
enum xm_status xm_lower_to_host(struct xm_lower *l, struct xm_node *n);

/* A question that a pass asks (xm_caps.can_run): can the device run a node with these attributes
 * and operands? */
struct xm_lower_question {
    const struct xm_device_info *device;
    const union xm_attr *attr; /* NULL: defaults */
    struct xm_value *const *in;
    uint32_t n_in;
};
/* lower_values.c: facts about an operand of such a question. xm_asked_weight: its weight; NULL: it
 * is no weight. xm_asked_type: its element type, XM_F32 for all float types, because primitives
 * take f16 and f32 alike. xm_asked_size: dimension i; xm_asked_last_size: the last dimension; 0:
 * the dimension is not constant. */
const struct xm_weight *xm_asked_weight(const struct xm_value *v);
enum xm_element xm_asked_type(const struct xm_value *v);
uint32_t xm_asked_size(const struct xm_value *v, uint32_t i);
uint32_t xm_asked_last_size(const struct xm_value *v);

/* How an op of the graph is lowered to a step with kernels. */
struct xm_lower_op {
    enum xm_op op;
    xm_lower_fn lower;
    /* For fused ops; passes call it before they fuse. Returns a static text that says why the
     * device cannot run the op; NULL: it can. */
    const char *(*why_not)(const struct xm_lower_question *q);
};
/* Tables of lower_products.c, lower_rows.c, lower_attention.c, lower_experts.c and lower_light.c;
 * the last row of each has op XM_OP_NONE. */
extern const struct xm_lower_op xm_lower_product_ops[], xm_lower_row_ops[],
    xm_lower_attention_ops[], xm_lower_expert_ops[], xm_lower_light_ops[];
/* Returns the row of an op in these tables; NULL: no table has it. */
const struct xm_lower_op *xm_lower_op(enum xm_op op);
/* lower_light.c: lowers an elementwise op. Elementwise ops have no rows in the tables. */
enum xm_status xm_lower_eltwise(struct xm_lower *l, struct xm_node *n);

#endif
