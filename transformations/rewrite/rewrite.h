/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrite rules as data: a pattern to find, a pattern (or a function) to put in its
 * place.
 *
 *     enum { X, WG, WU };
 *     static const struct xm_rule rules[] = {
 *         { "glu",
 *           P(MULTIPLY, P(SWISH, P(MATMUL, VAR(X), WEIGHT(WG))),
 *                       P(MATMUL, VAR(X), WEIGHT(WU))),
 *           P(GLU, P(MATMUL, VAR(X), WEIGHT(WG)), P(MATMUL, VAR(X), WEIGHT(WU))),
 *           NULL, same_format },
 *     };
 *
 * The engine gives for free: a slot met twice is the same value; commuting ops are tried
 * both ways; interior nodes have exactly one use (else the fusion would duplicate work)
 * unless SHARED; the replaced root and what only it used are removed at once; tensor
 * names and the friendly name move to the replacement; topological order is restored at
 * the end. No alternation (write two rows),
 * no repetition (write a walk).
 *
 * Tables of patterns are C compound literals: they live in .c files, never in headers.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_REWRITE_H
#define XM_TRANSFORMATIONS_REWRITE_REWRITE_H

#include "transformations/graph/builder.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_SLOTS = 40, XM_PAT_IN = 6, XM_PAT_COMMUTING = 8 };

enum xm_pat_kind {
    XM_PAT_OP,  /* a node with these operands                                          */
    XM_PAT_VAR, /* any value                                                           */
    XM_PAT_CONST,  /* a const or weight node, of any size  */
    XM_PAT_SCALAR, /* a constant of one element with this value (relative 1e-6) */
    XM_PAT_NUMBER, /* a constant of one element with any value */
    XM_PAT_INTS /* known integer content (const, shape_value, …)                        */
};

struct xm_pat {
    enum xm_pat_kind kind;
    enum xm_op op; /* OP                                                          */
    int slot;      /* where the value goes; -1: nowhere (OP only)                  */
    double number; /* SCALAR                                                      */
    uint32_t out;  /* OP: which result of the node                                 */
    bool shared;   /* OP: may have other uses                                      */
    bool opaque;   /* OP: operands are not looked at                               */
    const struct xm_pat *in[XM_PAT_IN]; /* OP: all operands, in order; NULL-terminated */
};

/* clang-format off */
#define VAR(s)     (&(const struct xm_pat){ .kind = XM_PAT_VAR,    .slot = (s) })
#define WEIGHT(s)  (&(const struct xm_pat){ .kind = XM_PAT_CONST,  .slot = (s) })
#define SCALAR(v)  (&(const struct xm_pat){ .kind = XM_PAT_SCALAR, .slot = -1, .number = (v) })
#define NUMBER(s)  (&(const struct xm_pat){ .kind = XM_PAT_NUMBER, .slot = (s) })
#define INTS(s)    (&(const struct xm_pat){ .kind = XM_PAT_INTS,   .slot = (s) })
#define P(id, ...) (&(const struct xm_pat){ .kind = XM_PAT_OP, .op = XM_OP_##id, .slot = -1, .in = { __VA_ARGS__ } })
/* The same, with the node's value kept in a slot (to read its attributes). */
#define PN(s, id, ...) (&(const struct xm_pat){ .kind = XM_PAT_OP, .op = XM_OP_##id, .slot = (s), .in = { __VA_ARGS__ } })
/* A node that may have other uses. */
#define PS(s, id, ...) (&(const struct xm_pat){ .kind = XM_PAT_OP, .op = XM_OP_##id, .slot = (s), .shared = true, .in = { __VA_ARGS__ } })
/* Result o of a node with several, which may have other uses. */
#define PO(s, o, id, ...) (&(const struct xm_pat){ .kind = XM_PAT_OP, .op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .in = { __VA_ARGS__ } })
/* Result o of a node whose operands are not looked at; may have other uses. */
#define ANY(s, o, id) (&(const struct xm_pat){ .kind = XM_PAT_OP, .op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .opaque = true })
/* clang-format on */

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
    const struct xm_pat *replace; /* NULL: apply makes the value */
    /* Makes the value that replaces the root's; NULL: leave it (m->why) or graph->err. */
    struct xm_value *(*apply)(struct xm_builder *b, struct xm_match *m);
    /* Whether the rule holds; NULL: always. */
    bool (*condition)(struct xm_match *m);
};

/* What the machine below can do, as far as a rewrite may care. */
struct xm_caps {
    const struct xm_device_info *device; /* NULL in tests without one */
    /* Whether a node with these attributes and operands would have an implementation;
     * else *why_not is a static sentence. Pure. NULL: everything can run. */
    bool (*can_run)(const void *ctx, enum xm_op op, const union xm_attr *attr,
                    struct xm_value *const *in, uint32_t n_in, const char **why_not);
    const void *ctx;
};

bool xm_can_run(const struct xm_caps *caps, enum xm_op op, const union xm_attr *attr,
                struct xm_value *const *in, uint32_t n_in, const char **why_not);

/* Applies rules in order at every node until nothing changes. Returns whether anything
 * did; failures are in graph->err. */
bool xm_rewrite(struct xm_graph *g, const struct xm_caps *caps,
                const struct xm_rule *rules, size_t n_rules);

/* Matches one pattern at a value; for walkers that are not rules. Slots already set in m
 * are constraints. The root may have any number of uses. */
bool xm_match_value(struct xm_match *m, const struct xm_pat *find, struct xm_value *v);

/* The furthest a rule got before it was refused at nodes of `op`, for "why was this not
 * fused": "rule 'tiled': %17 matmul has 2 uses, must have 1". Empty when nothing was
 * tried. The text is kept per graph node id of the root and lives in the arena of the
 * graph. */
const char *xm_rewrite_near_miss(const struct xm_rule *rules, size_t n_rules,
                                 struct xm_graph *g, const struct xm_caps *caps,
                                 struct xm_node *root);

#ifdef __cplusplus
}
#endif
#endif
