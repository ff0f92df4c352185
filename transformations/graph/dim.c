/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on interned polynomials.
 *
 *     (8*batch*tokens + 8*batch*past) / (past + tokens) = 8*batch
 *
 * Division is multivariate long division, so it finds every exact quotient. Not done:
 * greatest common divisors, factoring, inequalities.
 */
#include "transformations/graph/poly.h"

#include <stdio.h>
#include <string.h>

/* A polynomial under construction. */
struct sum {
    uint32_t n;
    bool failed; /* a coefficient overflowed, or a limit of poly.h was exceeded */
    struct xm_term term[XM_POLY_TERMS];
};

bool
xm_i64_add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

bool
xm_i64_mul(int64_t a, int64_t b, int64_t *out)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t xy;
    if (!xm_mul_size(x, y, &xy) || xy > INT64_MAX)
        return false; /* INT64_MIN is refused, too: no dimension has that value      */
    *out = (a < 0) != (b < 0) ? -(int64_t)xy : (int64_t)xy;
    return true;
}

void
xm_dim_pool_free(struct xm_dim_pool *p)
{
    xm_free(p->symbols);
    xm_free(p->polys);
    xm_hash_free(&p->symbol_index);
    xm_hash_free(&p->poly_index);
    xm_arena_free(&p->arena);
    memset(p, 0, sizeof(*p));
}

static struct xm_dim
failure(struct xm_dim_pool *p)
{
    p->failed = true;
    return xm_dim_const(0);
}

/* ---- symbols ----------------------------------------------------------------------- */

void
xm_dim_reserve_fresh(struct xm_dim_pool *p, const char *name)
{
    uint32_t n = 0;
    if (*name++ != '?')
        return;
    for (; *name >= '0' && *name <= '9' && n < 100000000; name++)
        n = n * 10 + (uint32_t)(*name - '0');
    if (n >= p->n_fresh)
        p->n_fresh = n + 1;
}

/* Interns a symbol's name; NULL: out of memory. */
static const char *
intern_symbol(struct xm_dim_pool *p, const char *name)
{
    const uint64_t hash = xm_hash_bytes(XM_HASH_SEED, name, strlen(name));
    struct xm_hash_probe at = xm_hash_begin(hash);
    while (xm_hash_next(&p->symbol_index, &at))
        if (strcmp(p->symbols[at.item], name) == 0)
            return p->symbols[at.item];
    const char **grown =
        xm_grow(p->symbols, &p->symbols_capacity, p->n_symbols + 1, sizeof(*grown));
    p->symbols = grown ? grown : p->symbols;
    const char *own = grown ? xm_arena_strdup(&p->arena, name) : NULL;
    if (!own || !xm_hash_add(&p->symbol_index, hash, (uint32_t)p->n_symbols))
        return NULL;
    p->symbols[p->n_symbols++] = own;
    xm_dim_reserve_fresh(p, name);
    return own;
}

/* ---- interned polynomials ---------------------------------------------------------- */

static bool
same_factors(const struct xm_term *a, const struct xm_term *b)
{
    if (a->degree != b->degree)
        return false;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->factor[i] != b->factor[i])
            return false;
    return true;
}

static bool
poly_is(const struct xm_poly *q, const struct xm_term *term, uint32_t n)
{
    if (q->n != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (q->term[i].coefficient != term[i].coefficient ||
            !same_factors(&q->term[i], &term[i]))
            return false;
    return true;
}

static uint64_t
hash_terms(const struct xm_term *term, uint32_t n)
{
    uint64_t h = XM_HASH_SEED;
    for (uint32_t i = 0; i < n; i++) {
        h = xm_hash_bytes(h, &term[i].coefficient, sizeof(term[i].coefficient));
        h = xm_hash_bytes(h, term[i].factor, term[i].degree * sizeof(term[i].factor[0]));
    }
    return h;
}

static struct xm_dim
intern(struct xm_dim_pool *p, const struct xm_term *term, uint32_t n)
{
    const uint64_t hash = hash_terms(term, n);
    struct xm_hash_probe at = xm_hash_begin(hash);
    while (xm_hash_next(&p->poly_index, &at))
        if (poly_is(p->polys[at.item], term, n))
            return (struct xm_dim){0, p->polys[at.item]};
    const struct xm_poly **grown =
        xm_grow(p->polys, &p->polys_capacity, p->n_polys + 1, sizeof(*grown));
    p->polys = grown ? grown : p->polys;
    struct xm_poly *q =
        grown ? xm_arena_alloc(&p->arena, sizeof(*q) + n * sizeof(*term)) : NULL;
    if (!q || !xm_hash_add(&p->poly_index, hash, (uint32_t)p->n_polys))
        return failure(p);
    q->n = n;
    memcpy(q->term, term, n * sizeof(*term));
    p->polys[p->n_polys++] = q;
    return (struct xm_dim){0, q};
}

struct xm_dim
xm_dim_symbol(struct xm_dim_pool *p, const char *name)
{
    struct xm_term t = {.coefficient = 1, .degree = 1};
    t.factor[0] = intern_symbol(p, name);
    return t.factor[0] ? intern(p, &t, 1) : failure(p);
}

struct xm_dim
xm_dim_fresh(struct xm_dim_pool *p)
{
    char name[16];
    snprintf(name, sizeof(name), "?%u", p->n_fresh);
    return xm_dim_symbol(p, name);
}

/* ---- sums -------------------------------------------------------------------------- */

/* Order of terms; < 0: a comes before b. */
static int
compare_factors(const struct xm_term *a, const struct xm_term *b)
{
    if (a->degree != b->degree)
        return a->degree > b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->factor[i] != b->factor[i])
            return strcmp(a->factor[i], b->factor[i]);
    return 0;
}

static void
sum_remove(struct sum *s, uint32_t at)
{
    s->n--;
    memmove(s->term + at, s->term + at + 1, (s->n - at) * sizeof(s->term[0]));
}

static void
sum_add(struct sum *s, const struct xm_term *t)
{
    uint32_t at = 0;
    int order = 1;
    while (at < s->n && (order = compare_factors(&s->term[at], t)) < 0)
        at++;
    if (at < s->n && order == 0) {
        struct xm_term *have = &s->term[at];
        if (!xm_i64_add(have->coefficient, t->coefficient, &have->coefficient))
            s->failed = true;
        else if (have->coefficient == 0)
            sum_remove(s, at);
    } else if (s->n == XM_POLY_TERMS) {
        s->failed = true;
    } else {
        memmove(s->term + at + 1, s->term + at, (s->n - at) * sizeof(s->term[0]));
        s->term[at] = *t;
        s->n++;
    }
}

/* The terms of a dimension. A constant is turned into a term in *room. */
static const struct xm_term *
terms_of(struct xm_dim d, struct xm_term *room, uint32_t *n)
{
    if (d.poly) {
        *n = d.poly->n;
        return d.poly->term;
    }
    *room = (struct xm_term){.coefficient = d.n};
    *n = d.n != 0;
    return room;
}

/* *out = a * b; false: a limit of poly.h is exceeded. */
static bool
term_mul(const struct xm_term *a, const struct xm_term *b, struct xm_term *out)
{
    struct xm_term t = {.degree = a->degree + b->degree};
    if (t.degree > XM_POLY_DEGREE ||
        !xm_i64_mul(a->coefficient, b->coefficient, &t.coefficient))
        return false;
    for (uint32_t i = 0, j = 0; i + j < t.degree;) {
        bool from_a =
            j == b->degree || (i < a->degree && strcmp(a->factor[i], b->factor[j]) <= 0);
        uint32_t at = i + j;
        t.factor[at] = from_a ? a->factor[i++] : b->factor[j++];
    }
    *out = t;
    return true;
}

/* *out = a / b; false: b does not divide a. */
static bool
term_div(const struct xm_term *a, const struct xm_term *b, struct xm_term *out)
{
    struct xm_term t = {0};
    uint32_t j = 0;
    if (b->coefficient == 0 || (a->coefficient == INT64_MIN && b->coefficient == -1) ||
        a->coefficient % b->coefficient != 0)
        return false;
    t.coefficient = a->coefficient / b->coefficient;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (j < b->degree && a->factor[i] == b->factor[j])
            j++;
        else
            t.factor[t.degree++] = a->factor[i];
    }
    *out = t;
    return j == b->degree;
}

static void
sum_add_product(struct sum *s, const struct xm_term *a, const struct xm_term *b, int sign)
{
    struct xm_term t;
    if (!term_mul(a, b, &t) || t.coefficient == INT64_MIN) {
        s->failed = true;
        return;
    }
    t.coefficient *= sign;
    sum_add(s, &t);
}

static struct xm_dim
sum_finish(struct xm_dim_pool *p, const struct sum *s)
{
    if (s->failed)
        return xm_dim_fresh(p);
    if (s->n == 0)
        return xm_dim_const(0);
    if (s->n == 1 && s->term[0].degree == 0)
        return xm_dim_const(s->term[0].coefficient);
    return intern(p, s->term, s->n);
}

/* ---- operations -------------------------------------------------------------------- */

/* a + sign * b */
static struct xm_dim
add(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b, int sign)
{
    static const struct xm_term one = {.coefficient = 1};
    struct sum s = {0};
    struct xm_term room_a, room_b;
    uint32_t na, nb;
    const struct xm_term *ta = terms_of(a, &room_a, &na);
    const struct xm_term *tb = terms_of(b, &room_b, &nb);
    for (uint32_t i = 0; i < na; i++)
        sum_add(&s, &ta[i]);
    for (uint32_t i = 0; i < nb; i++)
        sum_add_product(&s, &tb[i], &one, sign);
    return sum_finish(p, &s);
}

struct xm_dim
xm_dim_add(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b)
{
    return add(p, a, b, 1);
}

struct xm_dim
xm_dim_sub(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b)
{
    return add(p, a, b, -1);
}

struct xm_dim
xm_dim_mul(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b)
{
    struct sum s = {0};
    struct xm_term room_a, room_b;
    uint32_t na, nb;
    const struct xm_term *ta = terms_of(a, &room_a, &na);
    const struct xm_term *tb = terms_of(b, &room_b, &nb);
    if (xm_dim_is(a, 1) || xm_dim_is(b, 1))
        return xm_dim_is(a, 1) ? b : a;
    for (uint32_t i = 0; i < na; i++)
        for (uint32_t j = 0; j < nb; j++)
            sum_add_product(&s, &ta[i], &tb[j], 1);
    return sum_finish(p, &s);
}

/* Long division: as long as a rest is left, its leading term must be divisible by that of b. */
struct xm_dim
xm_dim_div(struct xm_dim_pool *p, struct xm_dim a, struct xm_dim b, bool *exact)
{
    struct sum rest = {0}, quotient = {0};
    struct xm_term room_a, room_b, q;
    uint32_t na, nb;
    const struct xm_term *ta = terms_of(a, &room_a, &na);
    const struct xm_term *tb = terms_of(b, &room_b, &nb);
    for (uint32_t i = 0; i < na; i++)
        sum_add(&rest, &ta[i]);
    *exact = nb > 0;
    while (*exact && rest.n > 0) {
        *exact = term_div(&rest.term[0], &tb[0], &q);
        if (!*exact)
            break;
        sum_add(&quotient, &q);
        for (uint32_t j = 0; j < nb; j++)
            sum_add_product(&rest, &q, &tb[j], -1);
        *exact = !rest.failed && !quotient.failed;
    }
    return *exact ? sum_finish(p, &quotient) : xm_dim_fresh(p);
}

bool
xm_dim_is_unknown(struct xm_dim d)
{
    for (uint32_t i = 0; d.poly && i < d.poly->n; i++)
        for (uint32_t j = 0; j < d.poly->term[i].degree; j++)
            if (d.poly->term[i].factor[j][0] == '?')
                return true;
    return false;
}

uint32_t
xm_dim_symbols(struct xm_dim d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; d.poly && i < d.poly->n; i++)
        n += d.poly->term[i].degree;
    return n;
}

const char *
xm_dim_symbol_name(struct xm_dim d, uint32_t i)
{
    for (uint32_t t = 0; d.poly && t < d.poly->n; t++) {
        if (i < d.poly->term[t].degree)
            return d.poly->term[t].factor[i];
        i -= d.poly->term[t].degree;
    }
    return "";
}

bool
xm_dim_has_symbol(struct xm_dim d, const char *name)
{
    for (uint32_t i = 0; i < xm_dim_symbols(d); i++) {
        if (strcmp(xm_dim_symbol_name(d, i), name) == 0)
            return true;
    }
    return false;
}

bool
xm_dim_is_symbol(struct xm_dim d, const char *name)
{
    return d.poly && d.poly->n == 1 && d.poly->term[0].degree == 1 &&
           d.poly->term[0].coefficient == 1 &&
           strcmp(d.poly->term[0].factor[0], name) == 0;
}

/* Builds d again in pool p with `value` in place of `symbol`; symbol NULL: copies it. */
static struct xm_dim
rebuild(struct xm_dim_pool *p, struct xm_dim d, const char *symbol, struct xm_dim value)
{
    struct xm_dim sum = xm_dim_const(0);
    if (!d.poly)
        return d;
    for (uint32_t i = 0; i < d.poly->n; i++) {
        const struct xm_term *t = &d.poly->term[i];
        struct xm_dim product = xm_dim_const(t->coefficient);
        for (uint32_t j = 0; j < t->degree; j++) {
            const bool is_it = symbol && strcmp(t->factor[j], symbol) == 0;
            product =
                xm_dim_mul(p, product, is_it ? value : xm_dim_symbol(p, t->factor[j]));
        }
        sum = xm_dim_add(p, sum, product);
    }
    return sum;
}

struct xm_dim
xm_dim_import(struct xm_dim_pool *p, struct xm_dim d)
{
    return rebuild(p, d, NULL, d);
}

struct xm_dim
xm_dim_replace(struct xm_dim_pool *p, struct xm_dim d, const char *symbol,
               struct xm_dim value)
{
    return rebuild(p, d, symbol, value);
}

static bool
fits_symbol(char c, bool first)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

struct xm_dim
xm_dim_own(struct xm_dim_pool *p, const char *owner, uint32_t axis)
{
    struct xm_strbuf name = {0};
    for (const char *c = owner; *c; c++) {
        if (fits_symbol(*c, c == owner))
            xm_strbuf_add_n(&name, c, 1);
        else
            xm_strbuf_printf(&name, "_x%02x_", (unsigned char)*c);
    }
    xm_strbuf_printf(&name, ".%u", axis);
    struct xm_dim d = xm_dim_const(0);
    if (xm_strbuf_ok(&name))
        d = xm_dim_symbol(p, xm_strbuf_text(&name));
    else
        p->failed = true;
    xm_strbuf_free(&name);
    return d;
}
