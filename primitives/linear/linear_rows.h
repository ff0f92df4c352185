/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside linear: building and running the rows of its variant tables. linear_rows.c builds and runs
 * all rows that are our kernels, linear_library.c those of libraries.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_ROWS_H
#define XM_PRIMITIVES_LINEAR_LINEAR_ROWS_H

#include "primitives/linear/linear.h"
#include "primitives/linear/linear_library.h"
#include "primitives/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* classes of runs by number of tokens: few, many, long (linear.c) */
enum { XM_LINEAR_CLASSES = 3 };

/* The row that runs one class, with its kernels. */
struct xm_linear_way {
    const struct xm_variant *row;
    struct xm_converter x;
    /* a row that joins: [0] multiplies by all segments; else one kernel for each segment */
    struct xm_kernel *kernel[XM_LINEAR_SEGMENTS];
    const struct xm_linear_library *library; /* NULL: the row is ours */
    /* the library's object for each segment */
    void *made[XM_LINEAR_SEGMENTS];
};

/* The primitives that finish a row whose products only multiply (linear_after.c); NULL: not
 * needed. */
struct xm_linear_after {
    struct xm_primitive *add;   /* y += addend */
    struct xm_primitive *glu;   /* y = act(y) up */
    struct xm_primitive *slice; /* copies one slice of operand `factor` */
};

struct xm_linear {
    struct xm_primitive base;
    struct xm_linear_desc desc; /* its weights and biases are referenced */
    struct xm_product product;  /* of all segments */
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

/* linear_library.c. Returns the library of a row; NULL: the row is one of our kernels. The
 * functions below build a library's row, return the scratch bytes that it needs, and run it. */
const struct xm_linear_library *xm_linear_library(const struct xm_variant *row);
enum xm_status xm_linear_library_build(const struct xm_linear *l,
                                       struct xm_linear_way *way, struct xm_error *err);
void xm_linear_library_release(struct xm_linear_way *way);
uint64_t xm_linear_library_scratch(const struct xm_linear *l,
                                   const struct xm_linear_way *way, uint64_t tokens);
enum xm_status xm_linear_library_run(const struct xm_linear_call *c,
                                     struct xm_error *err);

/* linear_rows.c: the same for any row. xm_linear_build may be called again, after way->row
 * changed. */
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

/* Returns the bytes of the result of segment 0. */
static inline uint64_t
xm_linear_y_bytes(const struct xm_linear *l, uint64_t tokens)
{
    return tokens * xm_linear_weight(l, 0)->rows * (xm_element_bits(l->desc.dst) / 8);
}

/* Returns whether the row's own kernel adds the addend; the next function, whether it computes a
 * GLU. */
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

/* Returns the gate of a GLU's segment 0, for a library. */
static inline struct xm_library_gate
xm_linear_gate(const struct xm_linear_desc *d)
{
    uint64_t rows = d->segment[0].weight->host.rows;
    const struct xm_library_gate gate = {d->activation,
                                         d->n == 2 ? rows : d->slices * rows};
    return gate;
}

/* Creates the primitives of xm_linear_after that some class's row needs. xm_linear_after_bytes:
 * scratch in addition to the row's own. */
enum xm_status xm_linear_after_create(struct xm_linear *l, struct xm_error *err);
void xm_linear_after_destroy(struct xm_linear_after *a);
uint64_t xm_linear_after_bytes(const struct xm_linear *l, uint64_t tokens);
/* Multiplies, then runs the primitives of xm_linear_after that this row needs. */
enum xm_status xm_linear_after_run(const struct xm_linear_call *c, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
