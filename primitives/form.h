/* SPDX-License-Identifier: Apache-2.0
 *
 * How activations lie that a kernel multiplies, and who makes them so.
 *
 * A form follows from the row that reads it and from the format of the weight: planes (numbers in a
 * 32-bit word of it) and group. Most are made from plain rows by a kernel of their own. Prepared
 * rows (planes and shorts) of few tokens are also written by whoever makes the plain rows, beside
 * them: a norm, a row chain, attention, gate and up. The reader takes those where there are no
 * more than XM_PREPARED_ROWS rows.
 */
#ifndef XM_PRIMITIVES_FORM_H
#define XM_PRIMITIVES_FORM_H

#include "primitives/args.h"
#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_PREPARED_ROWS = 4, XM_TILE = 16 /* tokens */ };

struct xm_rows_form {
    enum xm_form form;
    uint32_t planes;
    uint64_t group; /* 0: none */
    bool
        in_units; /* integers that meet weights in blocks (kernels/cl/include/block_units.h) */
};

/* What a row that reads `form` wants of activations of type `src` to meet w: plain rows where they
 * already lie so. */
struct xm_rows_form xm_form_of(enum xm_form form, const struct xm_weight *w,
                               enum xm_element src);
/* Whether whoever makes the rows can write them so. */
bool xm_rows_are_prepared(const struct xm_rows_form *f);
/* 32-bit words of a row, as prepared_words of kernels/cl/include/prepared.h. */
uint64_t xm_prepared_words(const struct xm_rows_form *f, uint64_t cols);
/* Where a maker writes its `rows` rows in that form: o's buffer, which has room for them; NULL
 * where they are more than are read, or not wanted. */
struct xm_buffer *xm_prepared_target(const struct xm_rows_form *f,
                                     const struct xm_operand *o, uint64_t cols,
                                     uint64_t rows);
/* Whether b, in which a maker wrote form `given`, has the rows that a reader wants. */
bool xm_prepared_serves(const struct xm_rows_form *want, const struct xm_rows_form *given,
                        uint64_t cols, uint64_t rows, const struct xm_buffer *b);
/* Columns that are whole runs of `run`, blocks and groups, the fewest: what part of a prepared row
 * can be written by itself. */
uint64_t xm_prepared_part(const struct xm_rows_form *f, uint64_t run);
/* Bytes of `tokens` rows in any form but plain ones, which take none of their own: 0. */
uint64_t xm_form_bytes(const struct xm_rows_form *f, uint64_t cols, uint64_t tokens);
/* What kernels call it (kernels/cl/include/prepared.h). */
uint32_t xm_form_kind(const struct xm_rows_form *f);
/* " -DFORM=8,128,0 …" of a kernel that writes such rows; "" where it does not. */
size_t xm_form_defines(const struct xm_rows_form *f, const char *name, char *out,
                       size_t n);

/* The kernel that makes a form of plain rows of type `src`, to meet w; *out stays as it is where
 * they are read as they are. */
enum xm_status xm_form_kernel(struct xm_engine *engine, const struct xm_rows_form *f,
                              enum xm_element src, const struct xm_weight *w,
                              struct xm_kernel **out, struct xm_error *err);
/* Enqueues it: x[tokens, cols] of w -> prepared. */
enum xm_status xm_form_make(enum xm_form form, struct xm_kernel *kernel,
                            const struct xm_weight *w, const struct xm_buffer *x,
                            uint64_t tokens, struct xm_buffer *prepared,
                            struct xm_queue *queue, struct xm_error *err);
/* What runs of w have of columns and tokens; the caller adds the rest. */
struct xm_counts xm_counts_of(const struct xm_weight *w, uint64_t tokens);

#ifdef __cplusplus
}
#endif
#endif
