/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrite rules as data: a pattern to find, and a pattern (or a function) that replaces it.
 *
 *     enum { X, WG, WU, GATE, UP };
 *     static const struct xm_rule rules[] = {
 *         { "gated unit",
 *           P(GLU, LINEAR_OF(GATE, VAR(X), VAR(WG), ABSENT),
 *               LINEAR_OF(UP, VAR(X), VAR(WU), ABSENT)),
 *           N(GATE, LINEAR, AT(XM_LINEAR_W + XM_LINEAR_SEGMENT, VAR(WU))),
 *           .attr = gated, .condition = same_format },
 *     };
 *
 * The engine guarantees: a slot that occurs twice is the same value. Commuting ops are tried in
 * both orders, until pattern and condition hold. Interior nodes have exactly one use, unless
 * SHARED, because else the fusion would compute them twice. A fused op is created only if an
 * implementation can run it. The replacement has the type of the value that it replaces. The
 * replaced root, and nodes that only it used, are removed at once. Tensor names and the friendly
 * name move to the replacement. Topological order is restored at the end. Patterns have no
 * alternatives (write two rows) and no repetition (write a pass that walks the graph).
 *
 * patterns.h has the macros for tables.
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
    XM_PAT_LINEAR,  /* x W^T (+ b), as a matmul or a linear node; in[]: x, W, b        */
    XM_PAT_THROUGH, /* in[0], perhaps after reshapes that have no other use            */
    XM_PAT_AT,      /* operand number `at` of a node is in[0]                          */
    XM_PAT_VAR,     /* any value                                                       */
    XM_PAT_MAYBE,   /* any value, or an absent operand: then the slot stays NULL       */
    XM_PAT_ABSENT,  /* an absent operand                                               */
    XM_PAT_CONST,   /* a const or weight node, of any size                             */
    XM_PAT_SCALAR,  /* a constant of one element with this value (relative 1e-6)       */
    XM_PAT_NUMBER,  /* a constant of one element with any value                        */
    XM_PAT_INTS, /* known integer content (const, shape_value, …)                   */
    /* in replacements only */
    XM_PAT_LIKE, /* in[0], reshaped to the shape of the slot's value                   */
    XM_PAT_FLAT, /* the slot's constant as f32[n]; absent stays absent                 */
    XM_PAT_MAKE  /* the result of a function                                           */
};

/* What applies to operands of a node that the pattern does not list. */
enum xm_pat_rest {
    XM_REST_NO_MORE, /* there are none: the node has exactly the listed operands        */
    XM_REST_FREE,    /* may be anything; a replacement keeps those of its slot's node   */
    XM_REST_ABSENT   /* must be absent                                                  */
};

struct xm_pat {
    enum xm_pat_kind kind;
    enum xm_op op; /* of XM_PAT_OP                                                */
    int slot;      /* the slot that stores the matched value; -1: none            */
    double number; /* of XM_PAT_SCALAR                                            */
    uint32_t out;  /* of XM_PAT_OP: which result of the node                      */
    uint32_t at;   /* of XM_PAT_AT: number of the operand                         */
    bool shared;   /* of XM_PAT_OP, _LINEAR: it may have other uses               */
    enum xm_pat_rest rest;          /* of XM_PAT_OP                          */
    const struct xm_pat *const *in; /* NULL-terminated; NULL: none           */
    /* of XM_PAT_MAKE */
    struct xm_value *(*make)(struct xm_builder *b, struct xm_match *m);
};

struct xm_match {
    struct xm_graph *graph;
    const struct xm_caps *caps;
    struct xm_node *root;
    struct xm_value *slot[XM_MAX_SLOTS];
    const char *why; /* reason of a condition that failed (static)               */
};

struct xm_rule {
    const char *name;
    const struct xm_pat *find; /* its root is an OP                                     */
    const struct xm_pat *replace; /* its root is an OP; NULL: apply makes the value     */
    /* Builds the value that replaces the root's, inserting new nodes before the root. NULL: the
     * rule declines and the root stays, or a failure is in graph->err. */
    struct xm_value *(*apply)(struct xm_builder *b, struct xm_match *m);
    /* Changes attributes of the replacement's root, which are those of its slot's node, or
     * defaults. NULL: changes none. */
    void (*attr)(const struct xm_match *m, union xm_attr *attr);
    /* An additional condition; NULL: none. It may match further patterns (xm_match_value). */
    bool (*condition)(struct xm_match *m);
    /* Makes further changes, before `value` replaces the root's value; NULL: none. */
    void (*then)(struct xm_builder *b, struct xm_match *m, struct xm_value *value);
    /* new nodes get the friendly name of the node in the slot of the replacement's root */
    bool keeps_name;
};

/* Facts of the device that rewrites may depend on. */
struct xm_caps {
    const struct xm_device_info *device; /* NULL in tests without one */
    /* Whether an implementation exists for a node with these attributes and operands; else *why_not
     * is a static sentence. It has no side effects. NULL: everything can run. */
    bool (*can_run)(const void *ctx, enum xm_op op, const union xm_attr *attr,
                    struct xm_value *const *in, uint32_t n_in, const char **why_not);
    const void *ctx;
    /* element type of inference: f16, f32; DYNAMIC: not decided yet */
    enum xm_element precision;
    /* whether the pass round_as_trained runs (XM_NUMERICS=bf16) */
    bool rounds_as_trained;
};

/* Calls caps->can_run; returns true if that is NULL. */
bool xm_can_run(const struct xm_caps *caps, enum xm_op op, const union xm_attr *attr,
                struct xm_value *const *in, uint32_t n_in, const char **why_not);
/* Builds a fused op if an implementation can run it; for passes that do not use rules. NULL: none
 * can, or a failure in graph->err. */
struct xm_node *xm_fused_build(struct xm_builder *b, const struct xm_caps *caps,
                               enum xm_op op, const union xm_attr *attr,
                               struct xm_value *const *in, uint32_t n_in);

/* Applies the rules, in order, at every node until nothing changes. `rules` ends with a rule
 * without name. Returns whether the graph changed; failures are in graph->err. */
bool xm_rewrite(struct xm_graph *g, const struct xm_caps *caps,
                const struct xm_rule *rules);

/* Matches a pattern at value v, outside of rules. Slots that are already set in m must match. The
 * root may have any number of uses. */
bool xm_match_value(struct xm_match *m, const struct xm_pat *find, struct xm_value *v);

/* Answers why no rule replaced the node `root`: the failure that came furthest, such as "rule
 * 'tiled': %17 matmul has 2 uses, must have 1". Returns "" if no rule begins with its op, or if a
 * rule applies to it. The text is in the graph's arena. */
const char *xm_rewrite_near_miss(const struct xm_rule *rules, struct xm_graph *g,
                                 const struct xm_caps *caps, struct xm_node *root);

#ifdef __cplusplus
}
#endif
#endif
