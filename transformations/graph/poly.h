/* SPDX-License-Identifier: Apache-2.0
 *
 * The representation of a polynomial, for dim.c and dim_text.c only: a sum of terms, each an
 * integer times symbols. Terms are in graded lexicographic order, which long division needs; the
 * factors of a term are ordered by name. So equal polynomials are equal term by term.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_POLY_H
#define XM_TRANSFORMATIONS_GRAPH_POLY_H

#include "transformations/graph/dim.h"

/* Most terms of a polynomial, most factors of a term. A longer result becomes a fresh symbol; the
 * shapes of models stay far below. */
enum { XM_POLY_TERMS = 16, XM_POLY_DEGREE = 6 };

struct xm_term {
    int64_t coefficient; /* not 0 */
    uint32_t degree;
    /* interned names, ascending, repeated for powers */
    const char *factor[XM_POLY_DEGREE];
};

struct xm_poly {
    uint32_t n;
    struct xm_term term[];
};

/* False: the result overflows. */
bool xm_i64_add(int64_t a, int64_t b, int64_t *out);
bool xm_i64_mul(int64_t a, int64_t b, int64_t *out);

#endif
