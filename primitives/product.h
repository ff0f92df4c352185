/* SPDX-License-Identifier: Apache-2.0
 *
 * A product: rows of activations times a weight, in the form that the chosen row of a variant table
 * reads. Linear layers (one weight, siblings, gated units), experts (by few and by many tokens) and
 * gather_matmul are made of products. They have tables, launches and arguments of their own; what a
 * row is refused by, the form of its activations, its build options and the rows that are brought
 * into the form are the same for all.
 */
#ifndef XM_PRIMITIVES_PRODUCT_H
#define XM_PRIMITIVES_PRODUCT_H

#include "primitives/form.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the rows of a product's table are asked about; the `problem` of its xm_pick. */
struct xm_product {
    /* of one launch, or of launches that read the same activations: they can join
     * (xm_weight_cannot_join), so that the first decides on the form */
    struct xm_kernel_weights weights;
    enum xm_element src; /* precision of the activations: f16 or f32 */
    /* Columns that share a factor where activations are multiplied as 8-bit integers: 32 or 128;
     * 0: as 16-bit integers. */
    uint32_t factor;
    const void *of; /* whose product it is: what only rows of its own table look at */
};

/* Why a row cannot multiply one of the weights, as members `refuses` of variant tables: in planes;
 * in 32-bit words; as 16-bit integers; as 8-bit integers, for which there must be a factor; by
 * matrix engines, many tokens, many by halves that sub-groups share, or few. */
const char *xm_product_not_in_planes(const void *product);
const char *xm_product_not_in_words(const void *product);
const char *xm_product_not_in_shorts(const void *product);
const char *xm_product_not_in_bytes(const void *product);
const char *xm_product_not_in_steps(const void *product);
const char *xm_product_not_in_shares(const void *product);
const char *xm_product_not_in_lanes(const void *product);
/* The same for kernels that read `words` 32-bit words of a row at a time. */
const char *xm_product_not_in_runs(const void *product, uint32_t words);

/* Whether 8-bit activations with one factor each 128 columns are multiplied by w with fewer
 * instructions than with one each 32: integer scales of w, within blocks of 256 columns, then
 * multiply sums of integers (INTEGER_FACTORS, kernels/cl/include/block_shorts.h). AVX-512 without
 * VNNI has no such kernels. */
bool xm_product_wants_coarse(const struct xm_device_info *device,
                             const struct xm_weight *w);
/* Products of one format, size and precision. */
struct xm_problem_class xm_product_class(const struct xm_product *p);
/* A table's part in xm_variant_build. `p` must stay. */
struct xm_pick xm_product_pick(const struct xm_variant_table *table,
                               const struct xm_product *p);
/* The form in which the row of a table would read activations of type `src` to multiply them by w,
 * in 8 bits with `factor` (xm_product); plain rows where none is chosen. Creates nothing; XM_FORCE
 * counts. The rows must not look at xm_product.of. */
struct xm_rows_form xm_product_reads(struct xm_engine *engine,
                                     const struct xm_variant_table *table,
                                     const struct xm_weight *w, enum xm_element src,
                                     uint32_t factor);

/* The form in which a row reads the activations, which are rows of type `plain` first. */
struct xm_rows_form xm_product_form(const struct xm_product *p,
                                    const struct xm_variant *row, enum xm_element plain);
/* Builds the row's kernel of p for the weights of a launch, with further options (printf). */
enum xm_status xm_product_kernel(struct xm_engine *engine, const struct xm_product *p,
                                 const struct xm_variant *row,
                                 struct xm_kernel_weights weights, struct xm_kernel **out,
                                 struct xm_error *err, const char *fmt, ...)
    XM_PRINTF(7, 8);

/* Activations of a run. */
struct xm_activations {
    struct xm_buffer *plain; /* rows */
    uint64_t n;              /* how many */
    /* the first of them in another form, written by the maker of the rows; NULL: none */
    struct xm_buffer *prepared;
    struct xm_rows_form given; /* that form */
};
/* What makes the form that a row reads. */
struct xm_converter {
    struct xm_rows_form form;
    const struct xm_weight *weight;
    struct xm_kernel *kernel; /* the engine's; NULL: the row reads plain rows */
};
enum xm_status xm_converter_build(struct xm_engine *engine, const struct xm_product *p,
                                  const struct xm_variant *row, enum xm_element plain,
                                  struct xm_converter *out, struct xm_error *err);
/* Bytes of scratch of primitive `p` that converting `n` rows takes. */
uint64_t xm_converter_scratch(const struct xm_converter *c, const struct xm_primitive *p,
                              uint64_t n);
/* Room for `n` rows in the form, of that size. */
enum xm_status xm_converter_take(const struct xm_converter *c, uint64_t n,
                                 struct xm_scratch *s, struct xm_buffer **out,
                                 struct xm_error *err);
/* What the row reads: the rows as they are, as their maker prepared them, or as they are converted
 * here, into scratch. */
enum xm_status xm_converter_run(const struct xm_converter *c,
                                const struct xm_activations *x, struct xm_scratch *s,
                                struct xm_queue *queue, struct xm_buffer **out,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
