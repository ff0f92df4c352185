/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrite rules as data: a pattern to find, a pattern (or a function) to put in its
 * place.
 *
 *     enum { X, WG, WU, GATE, UP };
 *     static const struct xm_rule rules[] = {
 *         { "gated unit",
 *           P(GLU, LINEAR_OF(GATE, VAR(X), VAR(WG), ABSENT),
                  LINEAR_OF(UP, VAR(X), VAR(WU), ABSENT)),
 *           N(GATE, LINEAR, AT(XM_LINEAR_W + XM_LINEAR_SEGMENT, VAR(WU))),
 *           .attr = gated, .condition = same_format },
 *     };
 *
 * The engine guarantees: a slot met twice is the same value; commuting ops are tried
 * both ways, until pattern and condition hold; interior nodes have exactly one use (else the
 * fusion would duplicate work) unless SHARED; a fused op that nobody can run is not made; the
 * replacement gets the type of what it replaces; the replaced root and what only it used are
 * removed at once; tensor names and the friendly name move to the replacement; topological
 * order is restored at the end. No alternation (write two rows), no repetition (write a walk).
 *
 * The macros that tables are made of are those of patterns.h.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_REWRITE_H
#define XM_TRANSFORMATIONS_REWRITE_REWRITE_H

#include "transformations/graph/builder.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_SLOTS = 40, XM_PAT_COMMUTING = 8 };

struct xm_match;

enum xm_pat_kind {
    XM_PAT_OP,      /* a node with these operands                                      */
    XM_PAT_LINEAR,  /* x W^T (+ b), a matmul or a linear: its x, W and b               */
    XM_PAT_THROUGH, /* in[0], perhaps through reshapes that have no other use          */
    XM_PAT_AT,      /* operand `at` of a node is in[0]                                 */
    XM_PAT_VAR,     /* any value                                                       */
    XM_PAT_MAYBE,   /* any value or none: then the slot stays NULL                     */
    XM_PAT_ABSENT,  /* none                                                            */
    XM_PAT_CONST,   /* a const or weight node, of any size                             */
    XM_PAT_SCALAR,  /* a constant of one element with this value (relative 1e-6)       */
    XM_PAT_NUMBER,  /* a constant of one element with any value                        */
    XM_PAT_INTS, /* known integer content (const, shape_value, …)                   */
    /* in replacements only */
    XM_PAT_LIKE, /* in[0], reshaped as the slot's value                                */
    XM_PAT_FLAT, /* the slot's constant as f32[n]; an absent operand stays absent      */
    XM_PAT_MAKE  /* the result of a function                                           */
};

/* The operands of a node that the pattern does not name. */
enum xm_pat_rest {
    XM_REST_NO_MORE, /* there are none: the node has as many operands as the pattern    */
    XM_REST_FREE,    /* match anything; a replacement keeps those of the slot's node    */
    XM_REST_ABSENT   /* must be absent                                                  */
};

struct xm_pat {
    enum xm_pat_kind kind;
    enum xm_op op; /* OP                                                          */
    int slot;      /* the slot that stores the matched value; -1: none            */
    double number; /* SCALAR                                                      */
    uint32_t out;  /* OP: which result of the node                                */
    uint32_t at;   /* AT                                                          */
    bool shared;   /* OP, LINEAR: may have other uses                             */
    enum xm_pat_rest rest;          /* OP                                    */
    const struct xm_pat *const *in; /* NULL-terminated; NULL: none           */
    struct xm_value *(*make)(struct xm_builder *b, struct xm_match *m); /* MAKE   */
};

struct xm_match {
    struct xm_graph *graph;
    const struct xm_caps *caps;
    struct xm_node *root;
    struct xm_value *slot[XM_MAX_SLOTS];
    const char *why; /* a condition that refuses puts its sentence here (static) */
};

struct xm_rule {
    const char *name;
    const struct xm_pat *find; /* its root is an OP                                     */
    const struct xm_pat *replace; /* its root is an OP; NULL: apply makes the value     */
    /* Builds the value that replaces the root's, with new nodes before the root. NULL: the root
     * stays, or a failure in graph->err. */
    struct xm_value *(*apply)(struct xm_builder *b, struct xm_match *m);
    /* Sets attributes of the replacement's root, which has those of its slot's node, or
     * defaults; NULL: they stay. */
    void (*attr)(const struct xm_match *m, union xm_attr *attr);
    /* Whether the rule holds; NULL: always. It may match further patterns (xm_match_value). */
    bool (*condition)(struct xm_match *m);
    /* Further changes, called before `value` replaces the root's; NULL: none. */
    void (*then)(struct xm_builder *b, struct xm_match *m, struct xm_value *value);
    /* new nodes get the friendly name of the node in the slot of the replacement's root */
    bool keeps_name;
};

/* Facts of the device that rewrites may depend on. */
struct xm_caps {
    const struct xm_device_info *device; /* NULL in tests without one */
    /* Whether a node with these attributes and operands would have an implementation;
     * else *why_not is a static sentence. Pure. NULL: everything can run. */
    bool (*can_run)(const void *ctx, enum xm_op op, const union xm_attr *attr,
                    struct xm_value *const *in, uint32_t n_in, const char **why_not);
    const void *ctx;
    enum xm_element precision; /* of inference: f16, f32; DYNAMIC: not decided here */
    bool rounds_as_trained; /* the pass round_as_trained is to run (XM_NUMERICS=bf16) */
};

/* Asks caps->can_run; true if that is NULL. */
bool xm_can_run(const struct xm_caps *caps, enum xm_op op, const union xm_attr *attr,
                struct xm_value *const *in, uint32_t n_in, const char **why_not);
/* For passes that walk: builds a fused op that can be run. NULL: it cannot (or graph->err). */
struct xm_node *xm_fused_build(struct xm_builder *b, const struct xm_caps *caps,
                               enum xm_op op, const union xm_attr *attr,
                               struct xm_value *const *in, uint32_t n_in);

/* Applies rules (the last has no name) in order at every node until nothing changes. Returns
 * whether anything did; failures are in graph->err. */
bool xm_rewrite(struct xm_graph *g, const struct xm_caps *caps,
                const struct xm_rule *rules);

/* Matches one pattern at a value; for walkers that are not rules. Slots already set in m
 * are constraints. The root may have any number of uses. */
bool xm_match_value(struct xm_match *m, const struct xm_pat *find, struct xm_value *v);

/* The furthest failure of a rule at nodes of `op`, as the answer to "why was this not
 * fused": "rule 'tiled': %17 matmul has 2 uses, must have 1". Empty when nothing was
 * tried. The text is kept per graph node id of the root and lives in the arena of the
 * graph. */
const char *xm_rewrite_near_miss(const struct xm_rule *rules, struct xm_graph *g,
                                 const struct xm_caps *caps, struct xm_node *root);

#ifdef __cplusplus
}
#endif
#endif
