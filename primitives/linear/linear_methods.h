/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside linear: how each row of its variant tables is built, what scratch it wants, how it
 * runs. Adding a row: its kernel's file, its row in a variant table (linear.c), its method
 * (linear_methods.c), its line in the list of kernels; the tests walk the tables.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_METHODS_H
#define XM_PRIMITIVES_LINEAR_LINEAR_METHODS_H

#include "primitives/linear/linear.h"
#include "primitives/linear/onednn_gpu_linear.h"
#include "primitives/linear/onednn_linear.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_LINEAR_CLASSES = 3 }; /* by how many tokens there are: linear.c */

/* A method with its kernels: what runs one class. */
struct xm_linear_way {
    const struct xm_linear_method *method;
    struct xm_kernel *prepare; /* the engine's; NULL where there is none */
    /* One for all segments in [0]; or one for each, where they run one after the other. */
    struct xm_kernel *product[XM_LINEAR_SEGMENTS];
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
    struct xm_linear_way way[XM_LINEAR_CLASSES];
    struct xm_onednn_linear *onednn[XM_LINEAR_SEGMENTS];
    struct xm_onednn_gpu_linear *onednn_gpu[XM_LINEAR_SEGMENTS];
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

struct xm_linear_kernel {
    const char *name; /* NULL: none */
    uint32_t options; /* which build options it knows (linear_methods.c) */
    int rows, items;  /* its ROWS and ITEMS; 0: it has none */
};

struct xm_linear_method {
    const char *name;                         /* of the variant */
    struct xm_linear_kernel prepare, product; /* the first turns x for the second */
    bool adds, gates; /* the product adds the addend; makes a GLU */
    uint64_t (*scratch_bytes)(const struct xm_linear *l, uint64_t tokens);
    enum xm_status (*run)(const struct xm_linear_call *c, struct xm_error *err);
};

/* The method of a row of the variant tables, by its name; NULL: none has it. */
const struct xm_linear_method *xm_linear_method(const char *name);
/* Builds the kernels of way->method; may be called again. */
enum xm_status xm_linear_build(struct xm_linear *l, struct xm_linear_way *way,
                               struct xm_error *err);

/* Results: one of a GLU, else one a segment. */
static inline uint32_t
xm_linear_results(const struct xm_linear *l)
{
    return l->desc.is_glu ? 1 : l->desc.n;
}

/* What products may be rounded to; where they are added to something the sum's type is that's. */
static inline enum xm_element
xm_linear_product(const struct xm_linear_desc *d)
{
    return d->has_addend ? d->src : d->dst;
}

/* Segment 0 of a GLU as oneDNN's GPU engine multiplies it. */
static inline struct xm_onednn_gate
xm_linear_onednn_gate(const struct xm_linear_desc *d)
{
    uint64_t rows = d->segment[0].weight->host.rows;
    const struct xm_onednn_gate gate = {d->activation,
                                        d->n == 2 ? rows : d->slices * rows};
    return gate;
}

/* The rest, for methods that leave it. Scratch is counted besides the method's own. */
enum xm_status xm_linear_after_create(struct xm_linear *l, struct xm_error *err);
void xm_linear_after_destroy(struct xm_linear_after *a);
uint64_t xm_linear_after_bytes(const struct xm_linear *l, uint64_t tokens);
/* Runs the method of c and the rest. */
enum xm_status xm_linear_after_run(const struct xm_linear_call *c, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
