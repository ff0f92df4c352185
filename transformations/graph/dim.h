/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbolic dimensions: constants, or polynomials with integer coefficients over named symbols
 * ("batch", "tokens", "past + tokens", "8*batch*tokens").
 *
 * Polynomials are interned in a pool: polynomials that are equal have the same address, so that
 * xm_dim_eq compares structs. Dimensions never come from example inputs. A size that is no
 * polynomial (a division with a remainder, a size that depends on data) becomes a new symbol "?n",
 * which equals only itself ("fresh").
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_DIM_H
#define XM_TRANSFORMATIONS_GRAPH_DIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/hash_index.h"
#include "runtime/util/memory.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_poly; /* interned; opaque */

struct xm_dim {
    int64_t n;                  /* the constant, when poly is NULL */
    const struct xm_poly *poly; /* else the polynomial (never constant) */
};

/* The owner of symbols and polynomials. Zero-initialise; free it with xm_dim_pool_free. If an
 * allocation fails, an operation sets `failed` and returns the constant 0. */
struct xm_dim_pool {
    struct xm_arena arena;
    const char **symbols; /* owned; names */
    size_t n_symbols, symbols_capacity;
    const struct xm_poly **polys; /* owned */
    size_t n_polys, polys_capacity;
    struct xm_hash_index symbol_index, poly_index;
    uint32_t n_fresh;
    bool failed;
};
void xm_dim_pool_free(struct xm_dim_pool *p);

static inline struct xm_dim
xm_dim_const(int64_t n)
{
    struct xm_dim d = {n, 0};
    return d;
}

static inline bool
xm_dim_is_const(struct xm_dim d)
{
    return d.poly == 0;
}

static inline bool
xm_dim_eq(struct xm_dim a, struct xm_dim b)
{
    return a.poly == b.poly && (a.poly || a.n == b.n);
}

static inline bool
xm_dim_is(struct xm_dim d, int64_t n)
{
    return d.poly == 0 && d.n == n;
}

/* The dimension that is the symbol of this name; equal names give equal dimensions. */
struct xm_dim xm_dim_symbol(struct xm_dim_pool *p, const char *name);
/* A new symbol that differs from all others: "?0", "?1", … */
struct xm_dim xm_dim_fresh(struct xm_dim_pool *p);
/* If `name` begins with a fresh symbol ("?7", read from graph text), makes sure that later fresh
 * symbols differ from it. */
void xm_dim_reserve_fresh(struct xm_dim_pool *p, const char *name);
struct xm_dim xm_dim_add(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b);
struct xm_dim xm_dim_sub(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b);
struct xm_dim xm_dim_mul(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b);
/* a / b. *exact: whether the quotient is an exact polynomial (found by long division); else the
 * result is a fresh symbol. */
struct xm_dim xm_dim_div(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b,
                         bool *exact);
/* Whether the dimension contains a fresh symbol ("?n"), so that it cannot be computed before a
 * run. */
bool xm_dim_is_unknown(struct xm_dim d);
/* The number of symbols of a dimension, repeated ones counted each time; and the name of the i-th,
 * which the pool owns. */
uint32_t xm_dim_symbols(struct xm_dim d);
const char *xm_dim_symbol_name(struct xm_dim d, uint32_t i);
bool xm_dim_has_symbol(struct xm_dim d, const char *name);
bool xm_dim_is_symbol(struct xm_dim d, const char *name); /* d is exactly this symbol */

/* Appends a dimension as text: "8*batch*tokens", "past + tokens", "42". */
void xm_dim_print(struct xm_dim d, struct xm_strbuf *out);
/* Parses text that xm_dim_print writes: sums of products of integers and names. *end: the first
 * character behind it. */
enum xm_status xm_dim_parse(struct xm_dim_pool *p, const char *text, const char **end,
                            struct xm_dim *out, struct xm_error *err);

/* The number that a symbol has in one run. */
struct xm_binding {
    const char *symbol;
    int64_t value;
};
/* Computes d from the values of its symbols. XM_NOT_FOUND: a symbol, which the error names, has no
 * value; XM_INVALID: the result is negative or does not fit. */
enum xm_status xm_dim_eval(struct xm_dim d, const struct xm_binding *bindings,
                           size_t n_bindings, int64_t *out, struct xm_error *err);

/* Replaces each occurrence of a symbol in d by `value`. */
struct xm_dim xm_dim_replace(struct xm_dim_pool *p, struct xm_dim d, const char *symbol,
                             struct xm_dim value);
/* The symbol "<owner>.<axis>" for an axis of an input or state. Characters of the owner's name that
 * graph text cannot read back are written as their code, "_x2f_". */
struct xm_dim xm_dim_own(struct xm_dim_pool *p, const char *owner, uint32_t axis);

/* Copies d to pool p; a program needs it to outlive its graph. */
struct xm_dim xm_dim_import(struct xm_dim_pool *p, struct xm_dim d);

#ifdef __cplusplus
}
#endif
#endif
