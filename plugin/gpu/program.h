/* SPDX-License-Identifier: Apache-2.0
 *
 * A program: what compile makes of a graph for one device. Steps in order with chosen
 * primitives, values with symbolic sizes, weights on the device. Immutable after
 * xm_program_create, but for expert caches and sums of times; shared by its requests from any
 * thread; refcounted.
 *
 * A step says which values it reads and which it writes. Values that only re-label another
 * one (reshape) share its storage. Sizes become numbers in a request, when inputs give the
 * symbols values.
 */
#ifndef XM_PLUGIN_GPU_PROGRAM_H
#define XM_PLUGIN_GPU_PROGRAM_H

#include "plugin/caps.h"
#include "plugin/compile_options.h"
#include "plugin/gpu/kv/kv_pool.h"
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
    XM_PLACE_ACTIVATION, /* in the request's activation block, at a planned offset */
    XM_PLACE_INPUT,  /* a buffer of the request that the host writes                    */
    XM_PLACE_OUTPUT, /* a buffer of the request that the host reads                     */
    XM_PLACE_CONST,  /* `buffer`, written at compile time                               */
    XM_PLACE_SHAPE, /* integers the request computes from the symbols and writes        */
    XM_PLACE_ALIAS  /* the bytes of value `alias`                                       */
};

struct xm_program_value {
    enum xm_place place;
    enum xm_element element; /* on the device */
    struct xm_shape shape;   /* dims in the program's pool   */
    uint32_t alias; /* ALIAS                                                     */
    struct xm_buffer *buffer;  /* CONST  */
    const struct xm_dim *dims; /* SHAPE: the integers */
    uint32_t n_dims;
    /* Lifetime of the value together with its aliases: the first step that writes it (of an input
     * or a constant: that reads it), and the last step that reads it; n_steps: the host reads it
     * after the last step. UINT32_MAX: none. */
    uint32_t first, last;
    /* Value `prepared` is a copy of this value's first rows, of prepared_cols columns, in another
     * form of activations (docs/execution.md). A plain `form`: there is no such copy. */
    struct xm_rows_form form;
    uint64_t prepared_cols;
    uint32_t prepared;
    bool is_form;                  /* this is such a copy of another value */
    const struct xm_value *source; /* the graph's; NULL when that is not kept */
};

enum xm_step_kind {
    XM_STEP_PRIMITIVE, /* plan and run of the primitive */
    XM_STEP_ATTENTION, /* with the pages of the sequences of the run */
    XM_STEP_COPY, /* strided copies computed from the shapes                           */
    XM_STEP_HOST, /* no kernel for it: the host reference runs it in queue order        */
    XM_STEP_COLLECTIVE /* waits for the other ranks of a mesh: runtime/collective.h */
};

/* How a copy step computes offsets and strides from its operands' shapes. */
enum xm_copy_kind {
    XM_COPY_TRANSPOSE, /* ints: the order */
    XM_COPY_SLICE,  /* ints: start, step for each axis; a negative start: from the end */
    XM_COPY_CONCAT, /* in: the parts; ints: axis */
    XM_COPY_SPLIT,  /* out: the parts; ints: axis */
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

/* The work of a step that does not follow from the shapes of its operands (step_work.h). Bytes are
 * read from weights. */
struct xm_step_cost {
    uint64_t bytes;            /* once a run; of experts, those that one token uses */
    uint64_t expert_bytes;     /* part of `bytes`: of routed experts             */
    uint64_t all_expert_bytes; /* of all routed experts, the most that a run reads */
    uint64_t row_bytes;        /* of a looked-up table, for each row of the result */
    uint64_t multiply_adds;    /* with a weight, for each row of the result      */
    uint32_t result;           /* number of the operand that is the result       */
    /* 1 + the gathered operand: only as many of its bytes are read as the result has; 0: none */
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
    /* XM_NO_VALUE: absent, or a buffer of the request (attention's tables) */
    uint32_t value;
    /* The number of the node's input or result, or XM_NO_VALUE. An input of the node that no
     * operand has is read on the host. */
    uint32_t input, result;
    uint8_t role; /* enum xm_role */
};

struct xm_step {
    uint32_t id; /* its index in the program */
    enum xm_step_kind kind;
    const char *name; /* friendly name of the node                              */
    const char *op;   /* its op's text                                         */
    struct xm_primitive *primitive;
    /* For a primitive: its operands in its order, at most XM_STEP_OPERANDS. For copies and host
     * steps: any number of operands that are read, then those that are written. */
    const struct xm_step_operand *operand;
    uint32_t n_operands;
    /* The values of the present operands that are read and written, in that order; a value may be
     * in both. */
    const uint32_t *in, *out;
    uint32_t n_in, n_out;
    enum xm_copy_kind copy;
    int64_t ints[2 * XM_MAX_RANK];
    uint32_t layer;        /* of attention: index into the program's kv layers     */
    uint64_t host_experts; /* bytes of its routed experts that lie in host memory  */
    struct xm_expert_cache *experts; /* owned; cache of these experts; NULL: none  */
    /* the node, only while the graph is kept; NULL: a region of several nodes */
    const struct xm_node *node;
    const struct xm_region *region; /* of a host step; then the graph is always kept */
    /* Its launches are the same in all runs whose symbols have the same values, whatever `past` is,
     * but for an expert cache. */
    bool is_steady;
    struct xm_step_cost cost; /* bytes 0: reads no weight, or looks up a table */
};

/* One cached layer; layers that share a cache share an entry. */
struct xm_kv_layer {
    const char *key_state, *value_state;
    uint32_t heads, d, dv;
    enum xm_element k_element, v_element;
    uint64_t page_bytes;
    /* the largest window of the layers that read it; 0: one sees all positions */
    uint64_t window;
};

/* A ReadValue of a step on the host. */
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
    struct xm_mapping **mappings; /* of the graph: what weights lie in */
    uint32_t n_mappings;
    struct xm_program_value *values;
    uint32_t n_values;
    struct xm_step *steps;
    uint32_t n_steps;
    struct xm_ports ports;                  /* in the arena, with dimensions of `dims` */
    uint32_t *input_values, *output_values; /* by port */
    struct xm_kv_layer *kv;
    uint32_t n_kv;
    struct xm_kv_pool *kv_pool; /* of all requests; NULL: there is no context */
    const char *beam_idx; /* the input that reorders states; NULL: none            */
    const char *key_mask; /* the input that says which positions are seen; NULL    */
    bool host_states;     /* some states are in the store of the host reference     */
    const struct xm_state_read *state_reads; /* where those are read; in the arena */
    struct xm_device_weight **weights;
    uint32_t n_weights;
    struct xm_weight_pages *weight_pages; /* NULL: nobody touches them beforehand */
    uint64_t weight_bytes;
    uint64_t host_weight_bytes; /* of them: experts that stay in host memory */
    struct xm_expert_caches *expert_caches; /* their reservation; NULL: no caches */
    uint64_t expert_cache_bytes;            /* of all steps' caches              */
    bool can_chunk; /* prompts may be cut along `tokens`                     */
    /* The input with the numbers of the rows, of a whole run, that results are computed for;
     * XM_NO_VALUE: all rows. */
    uint32_t chosen_rows;
    /* sequences may be mixed along `tokens`: nothing but attention joins them */
    bool is_ragged;
    struct xm_pass_report *reports;
    size_t n_reports;
    uint32_t n_host_steps;
    bool
        is_part; /* of a model that is split over devices: only its parts of weights are copied */
    struct xm_onednn *onednn;          /* open while the program lives; NULL: not used */
    struct xm_label_times *step_times; /* of all requests; NULL: without PERF_COUNT */
    char *rules_text;   /* the config rules that applied, one a line             */
    char *notes_text;   /* the notes of the passes, a sentence a line            */
    uint32_t n_rounded; /* places that are rounded as in training                */
    bool is_imported;   /* from a blob: no pass has run here                     */
    bool is_stateless;  /* the graph that was read has no states (xm_program_facts) */
};

/* Rewrites `g` (which it owns from now on, also on failure) for the engine's device and
 * lowers it. */
enum xm_status xm_program_create(struct xm_engine *engine, const struct xm_config *config,
                                 struct xm_graph *g,
                                 const struct xm_compile_options *options,
                                 struct xm_program **out, struct xm_error *err);
/* A graph that another process has rewritten for such a device, and the reports and notes of its
 * passes, which xm_program_import copies. */
struct xm_rewritten {
    struct xm_graph *graph; /* taken over, also on failure */
    const struct xm_pass_report *reports;
    size_t n_reports;
    const char *notes;
};
/* As xm_program_create without passes: lowers the rewritten graph. */
enum xm_status xm_program_import(struct xm_engine *engine, const struct xm_config *config,
                                 const struct xm_rewritten *rewritten,
                                 struct xm_program **out, struct xm_error *err);
/* The value whose bytes `value` shares: itself when it is no alias. */
uint32_t xm_program_root(const struct xm_program *p, uint32_t value);
void xm_program_ref(struct xm_program *p);
void xm_program_unref(struct xm_program *p); /* NULL is allowed */

/* kv_budget.c: makes the pool of KV pages of a program whose layers are known; one without states
 * gets a pool only if counts_positions (struct xm_graph). */
enum xm_status xm_program_create_kv_pool(struct xm_program *p, bool counts_positions,
                                         struct xm_error *err);

/* lower.c: steps and values from a rewritten graph. */
enum xm_status xm_lower(struct xm_program *p, struct xm_graph *g, struct xm_error *err);

/* Steps as text, one a line: number, what it writes = op what it reads, name of the node. */
void xm_program_print(const struct xm_program *p, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
