/* SPDX-License-Identifier: Apache-2.0
 *
 * A row chain: a short list of row-wise steps that one kernel computes. All rows have one width.
 * A step computes a row from operands and from the rows of earlier steps. "out" marks steps whose
 * rows are results of the chain. A chain as text, and what it means:
 *
 *     rms_norm x1 c0 1e-06; out add x0 s0; out rms_norm s1 c1 1e-06
 *
 *     s0 = rms_norm(x1) c0        x  operands: one row for each row of the results
 *     s1 = x0 + s0       (y0)     c  constants: one row for all rows, or one number
 *     s2 = rms_norm(s1) c1 (y1)   s  rows of earlier steps
 *                                 y  results
 *
 * The step "round_bf16 s2 _" rounds to the nearest number of bf16, ties to even. The factors of a
 * norm may be absent (_). A constant can only be the second operand. Each x and c, from 0 to the
 * highest number, must be used by some step.
 */
#ifndef XM_RUNTIME_REFERENCE_REFERENCE_ROW_CHAIN_H
#define XM_RUNTIME_REFERENCE_REFERENCE_ROW_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of a chain; more steps become several chains. Kernels have a parameter for each x, c and
 * y. The largest chains of known decoders stand at the beginning and the end of the experts of
 * Gemma 4: 3 x, 5 c, 4 y and 7 steps, or 8 steps if results are rounded to bf16. */
enum { XM_CHAIN_XS = 4, XM_CHAIN_CS = 8, XM_CHAIN_YS = 4, XM_CHAIN_STEPS = 12 };

enum xm_chain_op {
    XM_CHAIN_RMS_NORM, /* a / sqrt(mean(a^2) + epsilon) b */
    XM_CHAIN_ADD,
    XM_CHAIN_MULTIPLY,
    XM_CHAIN_ROUND_BF16, /* rounds a; there is no b */
    XM_CHAIN_N_OPS
};

enum xm_chain_kind { XM_CHAIN_NONE, XM_CHAIN_X, XM_CHAIN_C, XM_CHAIN_S };
struct xm_chain_operand {
    enum xm_chain_kind kind;
    uint32_t i; /* which x, c or step */
};

struct xm_chain_step {
    enum xm_chain_op op;
    /* The operands. a is a row (x or s). b is NONE for a norm without factors and for a
     * rounding. */
    struct xm_chain_operand a, b;
    float epsilon; /* of a norm */
    bool is_result;
};

struct xm_row_chain {
    struct xm_chain_step step[XM_CHAIN_STEPS];
    uint32_t n_steps, n_x, n_c, n_y;
};

/* Parses a chain. XM_INVALID: the text is NULL or no chain; the message says which step is
 * wrong. */
enum xm_status xm_row_chain_parse(const char *text, struct xm_row_chain *out,
                                  struct xm_error *err);
/* Returns the number of results of a chain; 0: the text is no chain. */
uint32_t xm_row_chain_results(const char *text);
void xm_row_chain_print(const struct xm_row_chain *c, struct xm_strbuf *out);

/* Computes a chain: x[i] is [rows,n], constant[i] is [n] or, if is_number[i], one element; y[i] is
 * [rows,n]. */
enum xm_status xm_ref_row_chain(const struct xm_row_chain *c, const float *const *x,
                                const float *const *constant, const bool *is_number,
                                uint64_t rows, uint64_t n, float *const *y);

#ifdef __cplusplus
}
#endif
#endif
