/* SPDX-License-Identifier: Apache-2.0
 *
 * A product: rows of activations times a weight, in the form that the chosen row of a variant table
 * reads. Linear layers (one weight, siblings, gated units), experts (by few and by many tokens) and
 * gather_matmul are made of products. Each has its own tables, launches and arguments. This file is
 * what they share: why a row is refused, the form of its activations, its build options, and the
 * conversion of activations into that form.
 */
#ifndef XM_PRIMITIVES_PRODUCT_H
#define XM_PRIMITIVES_PRODUCT_H

#include "primitives/form.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The problem by which a row of a product's table accepts or refuses; the `problem` of its
 * xm_pick. */
struct xm_product {
    /* the weights of one launch, or of launches that read the same activations. They can join
     * (xm_weight_cannot_join returns NULL), so the form of the activations follows from the
     * first. */
    struct xm_kernel_weights weights;
    enum xm_element src; /* precision of the activations: f16 or f32 */
    /* Columns of activations that share a scale when they are multiplied as 8-bit integers: 32 or
     * 128; 0: the activations are multiplied as 16-bit integers instead. */
    uint32_t factor;
    /* the owner of the product, e.g. struct xm_linear; only rows of the owner's tables read it */
    const void *of;
};

/* Functions for member `refuses` of variant tables. Each returns NULL if a row can multiply all
 * weights of the product, else the reason, for rows that read weights in planes; in 32-bit words;
 * multiply by 16-bit integers; by 8-bit integers (if `factor` is not 0); or are for matrix engines:
 * many tokens, many tokens with shared decoded weights, few tokens. */
const char *xm_product_not_in_planes(const void *product);
const char *xm_product_not_in_words(const void *product);
const char *xm_product_not_in_shorts(const void *product);
const char *xm_product_not_in_bytes(const void *product);
const char *xm_product_not_in_steps(const void *product);
const char *xm_product_not_in_shares(const void *product);
const char *xm_product_not_in_lanes(const void *product);
/* Like xm_product_not_in_words, for kernels that read `words` 32-bit words of a row at a time. */
const char *xm_product_not_in_runs(const void *product, uint32_t words);

/* Returns whether 8-bit activations with one scale per 128 columns take fewer instructions to
 * multiply by w than with one per 32: if w's blocks of 256 columns have integer scales, which then
 * multiply sums of integers (INTEGER_FACTORS, kernels/cl/include/block_shorts.h). AVX-512 without
 * VNNI has no such kernels. */
bool xm_product_wants_coarse(const struct xm_device_info *device,
                             const struct xm_weight *w);
/* Returns the class of the product for measured rows: weight format, sizes and activation type. */
struct xm_problem_class xm_product_class(const struct xm_product *p);
/* Returns the pick of a table for product `p`, for xm_variant_build. `p` must outlive the pick. */
struct xm_pick xm_product_pick(const struct xm_variant_table *table,
                               const struct xm_product *p);
/* Returns the form in which the row that a table would choose reads activations of type `src` to
 * multiply them by w; `factor` as in xm_product. Plain rows if no row can be chosen. Builds
 * nothing; XM_FORCE applies. The table's rows must not read xm_product.of. */
struct xm_rows_form xm_product_reads(struct xm_engine *engine,
                                     const struct xm_variant_table *table,
                                     const struct xm_weight *w, enum xm_element src,
                                     uint32_t factor);

/* Returns the form in which a row reads the activations, which are first plain rows of type
 * `plain`. */
struct xm_rows_form xm_product_form(const struct xm_product *p,
                                    const struct xm_variant *row, enum xm_element plain);
/* Builds the row's kernel of p for the weights of a launch, with further options (printf). */
enum xm_status xm_product_kernel(struct xm_engine *engine, const struct xm_product *p,
                                 const struct xm_variant *row,
                                 struct xm_kernel_weights weights, struct xm_kernel **out,
                                 struct xm_error *err, const char *fmt, ...)
    XM_PRINTF(7, 8);

/* The activations of one run. */
struct xm_activations {
    struct xm_buffer *plain; /* rows */
    uint64_t n;              /* number of rows */
    /* the same rows in another form, written by the primitive that computed them; NULL: none */
    struct xm_buffer *prepared;
    struct xm_rows_form given; /* the form of `prepared` */
};
/* Converts activations into the form that a row reads. */
struct xm_converter {
    struct xm_rows_form form;
    const struct xm_weight *weight;
    struct xm_kernel *kernel; /* the engine's; NULL: the row reads plain rows */
};
enum xm_status xm_converter_build(struct xm_engine *engine, const struct xm_product *p,
                                  const struct xm_variant *row, enum xm_element plain,
                                  struct xm_converter *out, struct xm_error *err);
/* Returns the bytes of primitive p's scratch that converting `n` rows takes. */
uint64_t xm_converter_scratch(const struct xm_converter *c, const struct xm_primitive *p,
                              uint64_t n);
/* Takes a buffer for `n` rows in the converter's form from scratch. */
enum xm_status xm_converter_take(const struct xm_converter *c, uint64_t n,
                                 struct xm_scratch *s, struct xm_buffer **out,
                                 struct xm_error *err);
/* Sets *out to the buffer that the row reads: the plain rows, the prepared rows if their form fits,
 * or the rows that a kernel enqueued here converts into scratch. */
enum xm_status xm_converter_run(const struct xm_converter *c,
                                const struct xm_activations *x, struct xm_scratch *s,
                                struct xm_queue *queue, struct xm_buffer **out,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
