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
    /* At most so many tokens of a product, or of each sequence in attention, are computed by the
     * kernels for decoding, which read the weights or the KV cache once for all these tokens. More
     * tokens are computed in tiles. */
    XM_FEW_TOKENS = 4,
    XM_TILE = 16 /* tokens */
};

struct xm_rows_form {
    enum xm_form form;
    /* weight elements in a 32-bit word: 8, 4, 2 (XM_FORM_STEPS, f16) or 1 */
    uint32_t planes;
    /* columns of each sum of activations: those of one weight scale; 0: no sums */
    uint64_t group;
    /* 16- or 8-bit integers in the order of kernels/cl/include/units.h */
    bool in_units;
    uint32_t factor; /* XM_FORM_BYTES: columns that share one scale; else 0 */
};

/* Returns the form in which a variant with member `form` reads activations of type `src` to
 * multiply them by w; plain rows if those have the needed layout already. 8-bit integers get one
 * scale per 32 columns; the caller may change that (member `factor`). */
struct xm_rows_form xm_form_of(enum xm_form form, const struct xm_weight *w,
                               enum xm_element src);
/* Returns whether the primitive that computes the rows can also write them in this form. */
bool xm_rows_are_prepared(const struct xm_rows_form *f);
/* Returns the 32-bit words of a prepared row of `cols` columns, like prepared_words of
 * kernels/cl/include/prepared.h. */
uint64_t xm_prepared_words(const struct xm_rows_form *f, uint64_t cols);
/* Returns the buffer of operand `o` if a primitive must write its `rows` rows of `cols` columns
 * there in form `f`. NULL: it need not, because the operand is absent or too small, `f` is no
 * prepared form, or there are more than XM_FEW_TOKENS rows. */
struct xm_buffer *xm_prepared_target(const struct xm_rows_form *f,
                                     const struct xm_operand *o, uint64_t cols,
                                     uint64_t rows);
/* Returns whether buffer b, into which another primitive wrote form `given`, holds the rows in form
 * `want`. */
bool xm_prepared_serves(const struct xm_rows_form *want, const struct xm_rows_form *given,
                        uint64_t cols, uint64_t rows, const struct xm_buffer *b);
/* Returns the fewest columns of a prepared row that can be written independently of the others: the
 * least common multiple of `run`, of a block (16 columns for each plane) and of a group. */
uint64_t xm_prepared_part(const struct xm_rows_form *f, uint64_t run);
/* Returns the bytes of a buffer for `tokens` rows in form `f`; 0 for plain rows, which need no
 * copy. */
uint64_t xm_form_bytes(const struct xm_rows_form *f, uint64_t cols, uint64_t tokens);
/* Returns the number that kernels have for this prepared form (FORM's third value in
 * kernels/cl/include/prepared.h). */
uint32_t xm_form_kind(const struct xm_rows_form *f);
/* Writes the build options of a kernel that writes this form under the macro name `name`, e.g.
 * FORM: " -DN_FORM=3 -DFORM=8,128,0" for prepared rows, " -DFORM_PLANES=4 -DFORM_SUMS=1" for
 * XM_FORM_STEPS, "" for every other form. Returns the characters written. */
size_t xm_form_defines(const struct xm_rows_form *f, const char *name, char *out,
                       size_t n);

/* Builds the kernel that converts plain rows of type `src` into form `f` for weight w. If `f` is
 * plain rows, *out is unchanged. */
enum xm_status xm_form_kernel(struct xm_engine *engine, const struct xm_rows_form *f,
                              enum xm_element src, const struct xm_weight *w,
                              struct xm_kernel **out, struct xm_error *err);
/* Enqueues the kernel of xm_form_kernel: converts x[tokens, w's columns] into `prepared`. */
enum xm_status xm_form_make(enum xm_form form, struct xm_kernel *kernel,
                            const struct xm_weight *w, const struct xm_buffer *x,
                            uint64_t tokens, struct xm_buffer *prepared,
                            struct xm_queue *queue, struct xm_error *err);
/* Returns launch sizes whose axes XM_COLS, XM_BLOCKS, XM_TOKENS and XM_SLOTS (tokens in whole
 * tiles) are set for weight w; the caller sets the other axes. */
struct xm_counts xm_counts_of(const struct xm_weight *w, uint64_t tokens);

#ifdef __cplusplus
}
#endif
#endif
