/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph: nodes in topological order, values with symbolic shapes, weights as views.
 *
 * All memory of a graph is in its arena and freed with it; nothing is freed alone. A reader builds
 * a graph with builder.h, passes rewrite it, compiling lowers it; one thread at a time. Builder
 * functions that fail return NULL and record the failure in graph->err.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_GRAPH_H
#define XM_TRANSFORMATIONS_GRAPH_GRAPH_H

#include "runtime/collective.h"
#include "runtime/operations/attention_operation.h"
#include "runtime/operations/linear_operation.h"
#include "runtime/operations/moe_operation.h"
#include "runtime/reference/reference.h"
#include "runtime/reference/reference_row_chain.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"
#include "runtime/util/status.h"
#include "runtime/weight.h"
#include "transformations/graph/type.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_CONTENT = 64 };

enum xm_op {
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    XM_OP_##id,
#include "transformations/graph/ops.def"
    XM_OP_COUNT
};

enum xm_op_flag {
    XM_OPF_COMMUTES = 1 << 0,
    XM_OPF_ELTWISE = 1 << 1,
    XM_OPF_SHAPE_ONLY = 1 << 2,
    XM_OPF_STATE = 1 << 3,
    XM_OPF_SOURCE = 1 << 4,
    XM_OPF_NAMED = 1 << 5,
    XM_OPF_FUSED = 1 << 6,
    XM_OPF_PRODUCT = 1 << 7,
    XM_OPF_CONVERTS = 1 << 8,
    XM_OPF_EXCHANGES = 1 << 9
};

struct xm_op_info {
    const char *text;    /* in graph text                                               */
    const char *ir_type; /* NULL: not in files                                          */
    const char *opsets;  /* "1,7,8"                                                     */
    int min_in, max_in;  /* max -1: any number                                          */
    int n_out;           /* -1: depends on attributes or operands                       */
    uint32_t flags;      /* enum xm_op_flag                                             */
};
const struct xm_op_info *xm_op_info(enum xm_op op); /* static; never NULL */
/* Find an op; XM_OP_COUNT: there is none. */
enum xm_op xm_op_by_text(const char *text);
enum xm_op xm_op_by_ir_type(const char *type);

/* The elements of a small integer value (rank 0 or 1, at most XM_MAX_CONTENT) if they are known, as
 * symbolic dimensions: for example what ShapeOf and arithmetic on it give. e == NULL: not known. */
struct xm_content {
    uint32_t n;
    const struct xm_dim *e;
};

/* A constant's bytes, in a mapped file or the arena, at any alignment. */
struct xm_data {
    const uint8_t *bytes;
    uint64_t n_bytes;
};

enum xm_broadcast_mode {
    XM_BROADCAST_NUMPY,
    XM_BROADCAST_BIDIRECTIONAL,
    XM_BROADCAST_EXPLICIT
};
enum xm_gelu { XM_GELU_ERF, XM_GELU_TANH };
enum xm_round { XM_ROUND_HALF_TO_EVEN, XM_ROUND_HALF_AWAY_FROM_ZERO };
enum xm_reduction {
    XM_REDUCTION_NONE,
    XM_REDUCTION_SUM,
    XM_REDUCTION_PROD,
    XM_REDUCTION_MIN,
    XM_REDUCTION_MAX,
    XM_REDUCTION_MEAN
};
enum xm_epsilon_mode { XM_EPSILON_INSIDE_SQRT, XM_EPSILON_OUTSIDE_SQRT };
enum xm_topk_sort { XM_SORT_NONE, XM_SORT_INDEX, XM_SORT_VALUE };

struct xm_attention_attr {
    float scale, soft_cap;
    bool causal;
    int64_t window; /* 0: none */
    const char *key_state, *value_state;
    float epsilon; /* epsilon of the norms of q, k and v */
};

/* clang-format off */
union xm_attr {
    /* parameter, result; id of the variable of states */
    struct { const char *name; } name;
    /* in the notation of bounds.h; "": only those of the type */
    struct { const char *name, *bounds; } parameter;
    struct xm_data data;               /* const */
    struct xm_weight weight;           /* weight */
    struct xm_content shape_value;     /* shape_value; the declared type has the rank */
    struct { bool python; } divide;
    struct { int approximation; } gelu;
    struct { float alpha; } elu;
    struct { int mode; } round;
    struct { double min, max; } clamp; /* f64: also bounds of integers */
    struct { enum xm_element element; } convert; /* convert, shape_of, range */
    struct { bool special_zero; } reshape;
    struct { int64_t axis; } axis;
    struct { int64_t n; } split;
    struct { const char *begin_mask, *end_mask, *new_axis_mask, *shrink_axis_mask, *ellipsis_mask; } strided_slice;
    struct { int mode; } broadcast;
    struct { int64_t batch_dims; } gather;
    struct { int reduction; bool use_init_val; } scatter;
    struct { bool exclusive, reverse; } cum_sum;
    struct { bool keep_dims; } reduce;
    struct { bool scaled; float epsilon; int epsilon_mode; } mvn;
    struct { bool transpose_a, transpose_b; } matmul;
    struct { int64_t axis; int smallest, sort; enum xm_element element; } topk;
    struct { bool causal; } sdpa;
    struct { float epsilon; } rms_norm;
    struct { float scale; bool twice; } rope_tables;
    struct { const char *steps; } row_chain; /* text of reference_row_chain.h */
    struct { int activation; } glu;
    /* activation, slice: of a gated unit */
    struct { bool glu; int activation; int64_t slice; } linear;
    struct xm_attention_attr attention;
    /* axis, size: of all_gather; peer: of send, receive; element: of receive, and of all_reduce's
     * messages (DYNAMIC: the operand's) */
    struct { struct xm_collective *of; int64_t axis, size, peer; enum xm_element element; }
        collective;
    struct xm_moe_routing router;
    struct xm_moe_attr moe;
};
/* clang-format on */

/* One operand of a node; also an entry in the list of uses of its value. */
struct xm_use {
    struct xm_value *value; /* never NULL; the value of xm_none if absent */
    struct xm_node *user;
    struct xm_use *next, *before; /* other uses of the same value */
};

struct xm_value {
    struct xm_node *node; /* the node that computes it */
    uint32_t index;       /* which output of that node */
    struct xm_type type;
    /* for float values, the element type in device memory; DYNAMIC: as in `type` */
    enum xm_element stored;
    struct xm_content content;
    const char *const *names; /* tensor names of the file; may be NULL */
    uint32_t n_names;
    struct xm_use *uses; /* list */
    uint32_t n_uses;
};

/* A node that a rewrite removed and whose work another node does now; entry in that node's list. */
struct xm_origin {
    const struct xm_node *node; /* may have origins, too   */
    const struct xm_origin *next;
};

struct xm_node {
    enum xm_op op;
    uint32_t id;      /* unique, for messages: %12 */
    const char *name; /* friendly name in the file, or that of the node it replaced; "" */
    union xm_attr attr;
    uint32_t n_in, n_out;
    struct xm_use *in;             /* n_in operands */
    struct xm_value *out;          /* n_out results */
    struct xm_node *next, *before; /* topological order of the graph */
    /* Rewrites record from which nodes of the file a node was made. */
    const struct xm_origin *origins; /* newest first */
    /* for a removed node: the node that does its work now; NULL: none */
    struct xm_node *heir;
};

/* The owner of the bytes of constants (such as a mapped file). Reference-counted by any thread;
 * freed with the last reference. */
struct xm_mapping {
    int refs;
    void (*free)(struct xm_mapping *m);
    /* Releases the memory of bytes that are no longer needed; a later access reads them from the
     * file again. NULL: not possible. */
    void (*forget)(struct xm_mapping *m, const void *bytes, uint64_t n);
    /* this mapping as a file, if it is one; else NULL */
    const struct xm_file_mapping *file;
};
void xm_mapping_ref(struct xm_mapping *m);
void xm_mapping_unref(struct xm_mapping *m); /* NULL is allowed */
/* Creates a mapping that owns bytes from xm_malloc, with one reference; takes ownership of them,
 * also on failure. NULL: no memory, or `bytes` is NULL. */
struct xm_mapping *xm_mapping_of_heap(void *bytes);

/* A mapped file. */
struct xm_file_mapping {
    struct xm_mapping base;
    struct xm_mapped_file file;
    char *path; /* owned; absolute */
};
/* Opens a file as a mapping with one reference. XM_NOT_FOUND: there is no such file. */
enum xm_status xm_file_mapping_open(const char *path, struct xm_mapping **out,
                                    struct xm_error *err);

/* A property of the model file: rt_info, its nested keys joined with '/'. */
struct xm_property_text {
    const char *key, *value;
};

/* A message for the user about the work of a pass; in the graph's arena. */
struct xm_note {
    const char *text;
    struct xm_note *next;
};

struct xm_graph {
    struct xm_arena arena;
    struct xm_dim_pool dims;
    const char *name;
    struct xm_node *first, *last; /* topological order */
    uint32_t n_nodes, next_id;
    struct xm_node *none; /* the shared absent operand, created on first use */
    struct xm_mapping **mappings;
    uint32_t n_mappings;
    struct xm_property_text *properties;
    uint32_t n_properties;
    struct xm_note *notes; /* newest first */
    /* A compiled program keeps the length of contexts even if this graph has no state, because
     * another rank has the layers with the states. */
    bool counts_positions;
    uint32_t n_rounded;  /* values that round_as_trained rounds      */
    struct xm_error err; /* the first failure of a builder call */
};

struct xm_graph *xm_graph_create(const char *name); /* NULL: out of memory */
void xm_graph_destroy(struct xm_graph *g);          /* NULL is allowed     */
/* Copies a graph for rewriting, with the same ids. The copy shares the source's mappings, constants
 * and texts: it holds a reference to `owner`, which keeps the source alive (NULL: the caller
 * does). */
enum xm_status xm_graph_clone(const struct xm_graph *g, struct xm_mapping *owner,
                              struct xm_graph **out, struct xm_error *err);
/* Adds a reference to `m`, which the graph holds until it is destroyed. */
enum xm_status xm_graph_add_mapping(struct xm_graph *g, struct xm_mapping *m);
enum xm_status xm_graph_add_property(struct xm_graph *g, const char *key,
                                     const char *value);
const char *xm_graph_property(const struct xm_graph *g, const char *key); /* NULL: none */

/* The value that stands for an absent operand. */
struct xm_value *xm_none(struct xm_graph *g);

static inline bool
xm_is_none(const struct xm_value *v)
{
    return v->node->op == XM_OP_NONE;
}

/* Operand i of a node. */
static inline struct xm_value *
xm_in(const struct xm_node *n, uint32_t i)
{
    return n->in[i].value;
}

/* The element type of a value on the device. */
static inline enum xm_element
xm_value_stored(const struct xm_value *v)
{
    return v->stored != XM_DYNAMIC ? v->stored : v->type.element;
}

#define xm_for_each_node(n, g) for (struct xm_node *n = (g)->first; n; n = n->next)
/* As xm_for_each_node, but the body of the loop may remove `n`. */
#define xm_for_each_node_safe(n, g)                                                      \
    for (struct xm_node *n = (g)->first, *n##_next = n ? n->next : 0; n;                 \
         n = n##_next, n##_next = n ? n->next : 0)

/* ---- editing ----------------------------------------------------------------------- */

/* Makes every use of `from` use `to` instead, and moves the tensor names if `to` has none. Types of
 * later nodes are not recomputed, because a rewrite must keep types; the validator checks that. */
void xm_value_replace(struct xm_graph *g, struct xm_value *from, struct xm_value *to);
/* Sets operand i of n to v. */
void xm_node_set_in(struct xm_node *n, uint32_t i, struct xm_value *v);
/* Removes a node whose results have no uses. */
void xm_node_remove(struct xm_graph *g, struct xm_node *n);
/* Removes n if it has no uses (and is no result, assign or parameter), then likewise the nodes of
 * its operands. Returns whether a node was removed. */
bool xm_node_remove_dead(struct xm_graph *g, struct xm_node *n);
/* Removes all nodes on which no result and no assign depends. Returns whether a node was
 * removed. */
bool xm_graph_remove_dead(struct xm_graph *g);
/* Moves n directly before `place` in the order; the nodes of its operands must already precede
 * that. */
void xm_node_move_before(struct xm_graph *g, struct xm_node *n, struct xm_node *place);
/* Sorts the nodes into topological order after edits; the sort is stable. XM_INVALID: there is a
 * cycle; the message names a node of it. */
enum xm_status xm_graph_sort(struct xm_graph *g, struct xm_error *err);
/* Recomputes all types and contents in order, after declared types have changed. */
enum xm_status xm_graph_infer(struct xm_graph *g);

struct xm_node *xm_graph_parameter(const struct xm_graph *g,
                                   const char *name); /* NULL: none */
/* Finds a parameter or result by any of its tensor names or its friendly name; NULL: none. */
struct xm_value *xm_graph_find_value(const struct xm_graph *g, const char *tensor_name);

/* ---- types ------------------------------------------------------------------------- */

/* Whether all dimensions are provably equal; whether all are constants. */
bool xm_shape_eq(const struct xm_shape *a, const struct xm_shape *b);
bool xm_shape_is_static(const struct xm_shape *s);
/* Sets *n to the product of the dimensions; false: a dimension is symbolic, or the product
 * overflows. */
bool xm_static_elements(const struct xm_shape *s, uint64_t *n);
/* The product of all dimensions. */
struct xm_dim xm_shape_elements(struct xm_dim_pool *p, const struct xm_shape *s);
/* Append a type, "f32[batch,tokens,256]"; that of a value is followed by " as f16" if the device
 * stores it as f16. */
void xm_type_print(const struct xm_type *t, struct xm_strbuf *out);
void xm_value_print_type(const struct xm_value *v, struct xm_strbuf *out);

static inline bool
xm_content_known(const struct xm_content *c)
{
    return c->e != 0;
}

/* ---- constants --------------------------------------------------------------------- */

/* Sets *out to the number if v comes directly from a const of one element; false: it does not. */
bool xm_value_is_scalar_const(const struct xm_value *v, float *out);
/* Copies the integers of v, a constant or a value with known content, if they are at most `max`;
 * returns their number, or -1. */
int xm_value_const_ints(const struct xm_value *v, int64_t *out, int max);
/* Whether v is the result of a const or weight node. */
bool xm_value_is_const(const struct xm_value *v);

/* ---- attributes as data ------------------------------------------------------------ */

enum xm_attr_kind {
    XM_ATTR_BOOL,
    XM_ATTR_I64,
    XM_ATTR_F32,
    XM_ATTR_F64,
    XM_ATTR_STRING,
    XM_ATTR_ELEMENT,
    XM_ATTR_ENUM
};
struct xm_attr_info {
    enum xm_op op;
    enum xm_attr_kind kind;
    size_t offset;              /* in union xm_attr */
    const char *text, *ir_name; /* ir_name NULL: not in files */
    const char *default_text;   /* NULL: required */
    /* ENUM: its words, NULL-terminated; matched ignoring case */
    const char *const *names;
};
/* The attributes of one op, contiguous. */
const struct xm_attr_info *xm_op_attrs(enum xm_op op, size_t *n);
/* Sets one attribute from text; strings are copied to the arena. XM_INVALID: bad value; the message
 * lists what is accepted. */
enum xm_status xm_attr_set(struct xm_graph *g, union xm_attr *attr,
                           const struct xm_attr_info *info, const char *value,
                           struct xm_error *err);
void xm_attr_print(const union xm_attr *attr, const struct xm_attr_info *info,
                   struct xm_strbuf *out);
/* Sets all attributes of an op to their defaults; required ones become zero. */
enum xm_status xm_attr_defaults(struct xm_graph *g, enum xm_op op, union xm_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
