/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside linear: what a row of its variant tables becomes. Rows of ours differ in what their rows
 * say and are all built and run in one way; those of a library are linear_library.c's.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_ROWS_H
#define XM_PRIMITIVES_LINEAR_LINEAR_ROWS_H

#include "primitives/linear/linear.h"
#include "primitives/linear/linear_library.h"
#include "primitives/product.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_LINEAR_CLASSES = 3 }; /* by how many tokens there are: linear.c */

/* A row with its kernels: what runs one class. */
struct xm_linear_way {
    const struct xm_variant *row;
    struct xm_converter x;
    /* One for all segments in [0], of a row that joins; else one for each. */
    struct xm_kernel *kernel[XM_LINEAR_SEGMENTS];
    const struct xm_linear_library *library; /* NULL: the row is ours */
    void *made[XM_LINEAR_SEGMENTS];          /* by it, of each weight */
};

/* What is left to do behind products that only multiply (linear_after.c); NULL: nothing. */
struct xm_linear_after {
    struct xm_primitive *add;   /* y += addend */
    struct xm_primitive *glu;   /* y = act(y) up */
    struct xm_primitive *slice; /* the copy of a factor's slice */
};

struct xm_linear {
    struct xm_primitive base;
    struct xm_linear_desc desc; /* its weights and biases are referenced */
    struct xm_product product;  /* of all segments                        */
    struct xm_linear_way way[XM_LINEAR_CLASSES];
    struct xm_linear_after after;
};

/* One run. */
struct xm_linear_call {
    const struct xm_linear *l;
    const struct xm_linear_way *way;
    const struct xm_operand *operands;
    uint64_t tokens;
    const struct xm_run *run;
    struct xm_scratch *scratch;
};

/* linear_library.c: which a row is of, NULL where it is ours; how its rows are built, what
 * scratch they want, how they run. */
const struct xm_linear_library *xm_linear_library(const struct xm_variant *row);
enum xm_status xm_linear_library_build(const struct xm_linear *l,
                                       struct xm_linear_way *way, struct xm_error *err);
void xm_linear_library_release(struct xm_linear_way *way);
uint64_t xm_linear_library_scratch(const struct xm_linear *l,
                                   const struct xm_linear_way *way, uint64_t tokens);
enum xm_status xm_linear_library_run(const struct xm_linear_call *c,
                                     struct xm_error *err);

/* linear_rows.c: any row; build may be called again. */
enum xm_status xm_linear_build(struct xm_linear *l, struct xm_linear_way *way,
                               struct xm_error *err);
uint64_t xm_linear_scratch(const struct xm_linear *l, const struct xm_linear_way *way,
                           uint64_t tokens);
enum xm_status xm_linear_multiply(const struct xm_linear_call *c, struct xm_error *err);

static inline const struct xm_weight *
xm_linear_weight(const struct xm_linear *l, uint32_t i)
{
    return &l->desc.segment[i].weight->host;
}

/* Bytes of the result of segment 0. */
static inline uint64_t
xm_linear_y_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return tokens * xm_linear_weight(l, 0)->rows * (xm_element_bits(l->desc.dst) / 8);
}

/* Whether a row's products add the addend, and make a gated unit. */
static inline bool
xm_linear_adds(const struct xm_variant *row)
{
    return row->joins;
}

static inline bool
xm_linear_gates(const struct xm_variant *row)
{
    return row->joins || row->family == XM_FAMILY_ONEDNN;
}

/* Segment 0 of a GLU as a library multiplies it. */
static inline struct xm_library_gate
xm_linear_gate(const struct xm_linear_desc *d)
{
    uint64_t rows = d->segment[0].weight->host.rows;
    const struct xm_library_gate gate = {d->activation,
                                         d->n == 2 ? rows : d->slices * rows};
    return gate;
}

/* The rest, for rows that leave it. Scratch is counted besides the row's own. */
enum xm_status xm_linear_after_create(struct xm_linear *l, struct xm_error *err);
void xm_linear_after_destroy(struct xm_linear_after *a);
uint64_t xm_linear_after_bytes(const struct xm_linear *l, uint64_t tokens);
/* Multiplies and does the rest. */
enum xm_status xm_linear_after_run(const struct xm_linear_call *c, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
