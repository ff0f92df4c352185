/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of activations: the layout in memory in which a kernel reads the activations that it
 * multiplies by a weight, and how rows are brought into it.
 *
 * The form follows from the variant that reads the activations and from the weight's format. Plain
 * rows are the default. Most other forms are made from plain rows by a conversion kernel. Prepared
 * rows (planes and shorts) of at most XM_FEW_TOKENS tokens can also be written directly, beside
 * the plain rows, by the primitive that computes these: a norm, a row chain, attention, gate and
 * up.
 */
#ifndef XM_PRIMITIVES_FORM_H
#define XM_PRIMITIVES_FORM_H

#include "primitives/args.h"
#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Up to so many tokens, of a product or of each sequence in attention, kernels for decoding
     * run, which read the weights or the KV cache once for all of them; more come in tiles. */
    XM_FEW_TOKENS = 4,
    XM_TILE = 16 /* tokens */
};

struct xm_rows_form {
    enum xm_form form;
    uint32_t planes; /* weight elements in a 32-bit word: 8, 4 or 1; 2 in steps  */
    uint64_t group;  /* columns of a sum: those that share a scale; 0: no sums   */
    bool in_units;   /* integers in the order of units.h (kernels)               */
    uint32_t factor; /* columns of 8-bit integers that share one; 0: no such form */
};

/* The form in which a variant that reads `form` needs activations of type `src` to multiply them by
 * w; plain rows if these have the needed layout. 8-bit integers have a factor each 32 columns,
 * unless the caller sets another. */
struct xm_rows_form xm_form_of(enum xm_form form, const struct xm_weight *w,
                               enum xm_element src);
/* Whether the primitive that computes the rows can write this form. */
bool xm_rows_are_prepared(const struct xm_rows_form *f);
/* 32-bit words of a prepared row of `cols` columns, as prepared_words of
 * kernels/cl/include/prepared.h. */
uint64_t xm_prepared_words(const struct xm_rows_form *f, uint64_t cols);
/* The buffer of operand `o`, into which a primitive writes its `rows` rows in form `f`; NULL: it
 * need not, because there are more than XM_FEW_TOKENS rows, or the operand is absent. */
struct xm_buffer *xm_prepared_target(const struct xm_rows_form *f,
                                     const struct xm_operand *o, uint64_t cols,
                                     uint64_t rows);
/* Whether buffer b, into which another primitive wrote form `given`, holds the rows in form
 * `want`. */
bool xm_prepared_serves(const struct xm_rows_form *want, const struct xm_rows_form *given,
                        uint64_t cols, uint64_t rows, const struct xm_buffer *b);
/* The smallest part of a prepared row, in columns, that can be written independently: a common
 * multiple of `run`, the blocks and the groups. */
uint64_t xm_prepared_part(const struct xm_rows_form *f, uint64_t run);
/* Bytes of a buffer for `tokens` rows in form `f`; 0 for plain rows, which need no copy. */
uint64_t xm_form_bytes(const struct xm_rows_form *f, uint64_t cols, uint64_t tokens);
/* The form's number in kernels (kernels/cl/include/prepared.h). */
uint32_t xm_form_kind(const struct xm_rows_form *f);
/* Writes the build options " -DFORM=8,128,0 …" for a kernel that writes this form; "" for plain
 * rows; " -DFORM_PLANES=4 -DFORM_SUMS=1" for tiles of steps. */
size_t xm_form_defines(const struct xm_rows_form *f, const char *name, char *out,
                       size_t n);

/* The kernel that converts plain rows of type `src` into form `f` for weight w; *out is unchanged
 * for plain rows. */
enum xm_status xm_form_kernel(struct xm_engine *engine, const struct xm_rows_form *f,
                              enum xm_element src, const struct xm_weight *w,
                              struct xm_kernel **out, struct xm_error *err);
/* Enqueues that kernel: x[tokens, w's cols] -> prepared. */
enum xm_status xm_form_make(enum xm_form form, struct xm_kernel *kernel,
                            const struct xm_weight *w, const struct xm_buffer *x,
                            uint64_t tokens, struct xm_buffer *prepared,
                            struct xm_queue *queue, struct xm_error *err);
/* The sizes of a launch along columns and tokens for weight w; the caller sets the other axes. */
struct xm_counts xm_counts_of(const struct xm_weight *w, uint64_t tokens);

#ifdef __cplusplus
}
#endif
#endif
