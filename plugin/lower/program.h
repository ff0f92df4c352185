/* SPDX-License-Identifier: Apache-2.0
 *
 * A program: a graph compiled for one device. It has the steps in order with their primitives, the
 * values with symbolic sizes, and the weights on the device. plugin/gpu/compile.h makes it; then it
 * is immutable, except the expert caches and the sums of step times. Its requests, in any threads,
 * share it; it is refcounted.
 *
 * A step says which values it reads and which it writes. A value that only gives another value a
 * new shape (reshape) shares its storage. Sizes become numbers in a request, when its inputs give
 * the symbols values.
 */
#ifndef XM_PLUGIN_LOWER_PROGRAM_H
#define XM_PLUGIN_LOWER_PROGRAM_H

#include "plugin/caps.h"
#include "plugin/compile_options.h"
#include "plugin/kv/kv_pool.h"
#include "plugin/port.h"
#include "primitives/attention/attention.h"
#include "primitives/form.h"
#include "primitives/layout/layout.h"
#include "primitives/primitive.h"
#include "transformations/graph/graph.h"
#include "transformations/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_STEP_OPERANDS = 24, XM_NO_VALUE = UINT32_MAX };

/* Where a value's bytes are. */
enum xm_place {
    XM_PLACE_ACTIVATION, /* in a block of the request, at a planned offset */
    XM_PLACE_INPUT,  /* a buffer of the request that the host writes                    */
    XM_PLACE_OUTPUT, /* a buffer of the request that the host reads                     */
    XM_PLACE_CONST,  /* `buffer`, written at compile time                               */
    XM_PLACE_SHAPE, /* integers the request computes from the symbols and writes        */
    XM_PLACE_ALIAS  /* the bytes of value `alias`                                       */
};

struct xm_program_value {
    enum xm_place place;
    enum xm_element element;   /* on the device */
    struct xm_shape shape;     /* with dimensions of xm_program.dims */
    uint32_t alias;            /* place ALIAS: the value whose bytes it shares */
    struct xm_buffer *buffer;  /* place CONST: its bytes */
    const struct xm_dim *dims; /* place SHAPE: [n_dims] integers, terms of symbols */
    uint32_t n_dims;
    /* Lifetime of the value together with its aliases. `first`: the first step that writes it; for
     * an input or a constant, the first step that reads it. `last`: the last step that reads it;
     * n_steps: the host reads it after the last step. UINT32_MAX: no step does. */
    uint32_t first, last;
    /* Value `prepared` is a copy of this value's first rows, of prepared_cols columns, in another
     * form of activations (docs/execution.md). A plain `form`: there is no such copy. */
    struct xm_rows_form form;
    uint64_t prepared_cols;
    uint32_t prepared;
    bool is_form; /* this value is the `prepared` copy of another value */
    /* the value of the graph; NULL: the graph is not kept, or has no such value */
    const struct xm_value *source;
};

enum xm_step_kind {
    XM_STEP_PRIMITIVE, /* runs a primitive */
    XM_STEP_ATTENTION, /* runs a primitive on the KV pages of the run's sequences */
    XM_STEP_COPY, /* strided copies computed from the shapes                           */
    XM_STEP_HOST, /* has no kernel: the host reference evaluates it, in queue order */
    XM_STEP_COLLECTIVE /* waits for the other ranks of a mesh: runtime/collective.h */
};

/* How a copy step computes offsets and strides from its operands' shapes. */
enum xm_copy_kind {
    XM_COPY_TRANSPOSE, /* ints: for each axis of the result the axis of the operand */
    XM_COPY_SLICE,  /* ints: start, step for each axis; a negative start: from the end */
    XM_COPY_CONCAT, /* in: the parts; ints[0]: axis */
    XM_COPY_SPLIT,  /* out: the parts; ints[0]: axis */
    XM_COPY_BROADCAST,
    XM_COPY_TILE
};

/* The part of the graph that a host step evaluates: its nodes in order, and the values of the graph
 * that are the step's operands. Shapes inside may depend on data. */
struct xm_region {
    const struct xm_node **nodes;
    uint32_t n_nodes;
    const struct xm_value **values;
};

/* The part of a step's work that does not follow from the shapes of its operands (step_work.h):
 * bytes read from weights, and multiply-adds. */
struct xm_step_cost {
    /* weight bytes read once a run; of routed experts: those that one token chooses */
    uint64_t bytes;
    uint64_t expert_bytes;     /* the part of `bytes` that is of routed experts     */
    uint64_t all_expert_bytes; /* of all routed experts, the most that a run reads */
    uint64_t row_bytes;        /* of a looked-up table, for each row of the result */
    uint64_t multiply_adds;    /* with weights, for each row of the result         */
    uint32_t result;           /* number of the operand that is the result         */
    /* 1 + the number of the gathered operand, of which only as many bytes are read as the result
     * has; 0: no operand is gathered */
    uint32_t picked;
    /* of a product of activations: the axis of operand 0 that is summed over, counted from the
     * last, which is 1; 0: no such product */
    uint32_t inner;
    /* of attention, for each position of the KV cache: */
    uint64_t key_bytes;         /* of K, V and their scales          */
    uint64_t key_multiply_adds; /* of a token that sees the position */
    uint64_t window;            /* most positions seen; 0: all       */
    bool causal;
};

struct xm_step_operand {
    /* number of a value of the program; XM_NO_VALUE: the operand is absent, or is a buffer of the
     * request (attention's tables) */
    uint32_t value;
    /* Which input or result of the node the operand is; XM_NO_VALUE: none. An input of the node for
     * which there is no operand is read on the host. */
    uint32_t input, result;
    uint8_t role; /* enum xm_role */
};

struct xm_step {
    uint32_t id; /* its index in the program */
    enum xm_step_kind kind;
    const char *name; /* friendly name of the node                              */
    const char *op;   /* name of the node's op                                  */
    struct xm_primitive *primitive;
    /* For a primitive: at most XM_STEP_OPERANDS operands, in the primitive's order. For copies and
     * host steps: any number of operands, those that are read before those that are written. */
    const struct xm_step_operand *operand;
    uint32_t n_operands;
    /* The values of the present operands: `in` those that the step reads, `out` those that it
     * writes. A value may be in both. */
    const uint32_t *in, *out;
    uint32_t n_in, n_out;
    enum xm_copy_kind copy;
    int64_t ints[2 * XM_MAX_RANK]; /* of a copy: see enum xm_copy_kind             */
    uint32_t layer;        /* of attention: index into xm_program.kv               */
    uint64_t host_experts; /* bytes of its routed experts that lie in host memory  */
    struct xm_expert_cache *experts; /* owned; cache of these experts; NULL: none  */
    /* the graph's node; NULL: the graph is not kept, or the step is a region of several nodes */
    const struct xm_node *node;
    const struct xm_region *region; /* of a host step; then the graph is always kept */
    /* The step's launches are the same in all runs whose symbols have the same values, except the
     * symbol `past`. A step with an expert cache has other launches in runs that use the cache. */
    bool is_steady;
    struct xm_step_cost cost; /* cost.bytes 0: reads no weight, or looks up a table */
};

/* One cached layer; layers that share a cache share an entry. */
struct xm_kv_layer {
    const char *key_state, *value_state;
    uint32_t heads, d, dv;
    enum xm_element k_element, v_element;
    uint64_t page_bytes;
    /* the largest sliding window of the layers that read the cache; 0: one of them sees all
     * positions */
    uint64_t window;
};

/* A ReadValue node that a host step evaluates; the program's list of them. */
struct xm_state_read {
    const struct xm_node *node;
    const struct xm_state_read *next;
};

struct xm_program {
    int refs;
    struct xm_engine *engine;
    struct xm_config config;
    struct xm_arena arena;
    struct xm_dim_pool dims;
    /* The rewritten graph, for host steps, verify and export. NULL on a counting engine, unless a
     * step runs on the host or keep_graph is set. Weights stay in their files. The graph's own
     * bytes are constants made by passes: folded constants (at most 64 KiB each), gammas, and the
     * scales of weights with one scale for several rows, 4 bytes a row. Measured with 15 GiB of
     * weights in 48 layers: 0.8 MiB of constants, and 14 MiB of nodes. */
    struct xm_graph *graph;
    struct xm_mapping **mappings; /* the graph's mapped files, in which the weights lie */
    uint32_t n_mappings;
    struct xm_program_value *values;
    uint32_t n_values;
    struct xm_step *steps;
    uint32_t n_steps;
    struct xm_ports ports;                  /* in the arena, with dimensions of `dims` */
    uint32_t *input_values, *output_values; /* by port */
    struct xm_kv_layer *kv;
    uint32_t n_kv;
    struct xm_kv_pool *kv_pool; /* of all requests; NULL: no positions are kept */
    const char *beam_idx;       /* name of the input that reorders states; NULL: none */
    /* name of the input that says which positions attention sees; NULL: none */
    const char *key_mask;
    bool host_states; /* some states are in the store of the host reference */
    const struct xm_state_read *state_reads; /* reads of these states; in the arena */
    struct xm_device_weight **weights;
    uint32_t n_weights;
    struct xm_weight_pages *weight_pages; /* NULL: no thread reads pages ahead */
    uint64_t weight_bytes;
    uint64_t host_weight_bytes; /* the part of it that is of experts in host memory */
    struct xm_expert_caches *expert_caches; /* who may use them; NULL: no caches */
    uint64_t expert_cache_bytes;            /* of all steps' caches              */
    bool can_chunk; /* prompts may be cut along `tokens`                     */
    /* The value of the input that lists the rows, of a whole run, for which results are computed;
     * XM_NO_VALUE: results are computed for all rows. */
    uint32_t chosen_rows;
    /* tokens of several sequences may be concatenated along `tokens`, because only attention
     * combines rows */
    bool is_ragged;
    struct xm_pass_report *reports;
    size_t n_reports;
    uint32_t n_host_steps;
    /* one part of a model split over devices: only this part of weights is copied */
    bool is_part;
    struct xm_onednn *onednn;          /* open while the program lives; NULL: not used */
    struct xm_label_times *step_times; /* of all requests; NULL: without PERF_COUNT */
    char *rules_text;   /* the config rules that applied, one a line             */
    char *notes_text;   /* the notes of the passes, one a line                   */
    uint32_t n_rounded; /* values that are rounded to bf16 as in training (XM_NUMERICS) */
    bool is_imported;   /* made from a blob: no pass has run in this process     */
    bool is_stateless;  /* the graph had no states when it was read (xm_program_facts) */
};

/* Returns the value whose bytes `value` shares: `value` itself if it is no alias. */
uint32_t xm_program_root(const struct xm_program *p, uint32_t value);
void xm_program_ref(struct xm_program *p);
void xm_program_unref(struct xm_program *p); /* NULL is allowed */

/* kv_budget.c: creates the pool of KV pages for the layers p->kv. A program without states gets a
 * pool only if `counts_positions`, which is the member of struct xm_graph. */
enum xm_status xm_program_create_kv_pool(struct xm_program *p, bool counts_positions,
                                         struct xm_error *err);

/* lower.c: fills the program's steps and values from a rewritten graph, and creates its KV pool and
 * expert caches. */
enum xm_status xm_lower(struct xm_program *p, struct xm_graph *g, struct xm_error *err);

/* Appends the steps as text, one a line: "number  values written = op values read  node's name". */
void xm_program_print(const struct xm_program *p, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
