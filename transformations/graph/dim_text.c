/* SPDX-License-Identifier: Apache-2.0
 *
 * Dimensions as text, and their values.
 *
 *     sum     = ["-"] product { ("+" | "-") product }
 *     product = factor { "*" factor }
 *     factor  = digits | name            name = [A-Za-z_?][A-Za-z0-9_.?]*
 */
#include "transformations/graph/poly.h"

#include <string.h>

enum { NAME_MAX_CHARS = 63 };

/* ---- printing ---------------------------------------------------------------------- */

static void
print_term(const struct xm_term *t, bool first, struct xm_strbuf *out)
{
    bool negative = t->coefficient < 0;
    uint64_t size = negative ? 0 - (uint64_t)t->coefficient : (uint64_t)t->coefficient;
    if (first)
        xm_strbuf_add(out, negative ? "-" : "");
    else
        xm_strbuf_add(out, negative ? " - " : " + ");
    if (size != 1 || t->degree == 0)
        xm_strbuf_printf(out, "%llu%s", (unsigned long long)size, t->degree ? "*" : "");
    for (uint32_t i = 0; i < t->degree; i++)
        xm_strbuf_printf(out, "%s%s", i ? "*" : "", t->factor[i]);
}

void
xm_dim_print(struct xm_dim d, struct xm_strbuf *out)
{
    if (!d.poly)
        xm_strbuf_printf(out, "%lld", (long long)d.n);
    for (uint32_t i = 0; d.poly && i < d.poly->n; i++)
        print_term(&d.poly->term[i], i == 0, out);
}

/* ---- parsing ----------------------------------------------------------------------- */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '?';
}

static const char *
skip_blanks(const char *s)
{
    while (*s == ' ')
        s++;
    return s;
}

static enum xm_status
parse_number(const char **at, struct xm_dim *out, struct xm_error *err)
{
    int64_t n = 0;
    for (; is_digit(**at); (*at)++)
        if (!xm_i64_mul(n, 10, &n) || !xm_i64_add(n, **at - '0', &n))
            return xm_fail(err, XM_INVALID, "a number in a dimension exceeds 64 bits");
    *out = xm_dim_const(n);
    return XM_OK;
}

static enum xm_status
parse_name(struct xm_dim_pool *p, const char **at, struct xm_dim *out,
           struct xm_error *err)
{
    char name[NAME_MAX_CHARS + 1];
    size_t n = 0;
    while (starts_name(**at) || is_digit(**at) || **at == '.') {
        if (n == NAME_MAX_CHARS)
            return xm_fail(err, XM_INVALID,
                           "the name of a dimension is longer than %d characters",
                           NAME_MAX_CHARS);
        name[n++] = *(*at)++;
    }
    name[n] = '\0';
    *out = xm_dim_symbol(p, name);
    return XM_OK;
}

static enum xm_status
parse_factor(struct xm_dim_pool *p, const char **at, struct xm_dim *out,
             struct xm_error *err)
{
    *at = skip_blanks(*at);
    if (is_digit(**at))
        return parse_number(at, out, err);
    if (starts_name(**at))
        return parse_name(p, at, out, err);
    return xm_fail(err, XM_INVALID, "a dimension needs a number or a name, found '%.10s'",
                   *at);
}

static enum xm_status
parse_product(struct xm_dim_pool *p, const char **at, struct xm_dim *out,
              struct xm_error *err)
{
    XM_TRY(parse_factor(p, at, out, err));
    for (;;) {
        const char *next = skip_blanks(*at);
        struct xm_dim factor;
        if (*next != '*')
            return XM_OK;
        *at = next + 1;
        XM_TRY(parse_factor(p, at, &factor, err));
        *out = xm_dim_mul(p, *out, factor);
    }
}

enum xm_status
xm_dim_parse(struct xm_dim_pool *p, const char *text, const char **end,
             struct xm_dim *out, struct xm_error *err)
{
    const char *at = skip_blanks(text);
    struct xm_dim product, sum = xm_dim_const(0);
    bool negative = *at == '-';
    at += negative;
    for (;;) {
        *end = at;
        XM_TRY(parse_product(p, &at, &product, err));
        sum = negative ? xm_dim_sub(p, sum, product) : xm_dim_add(p, sum, product);
        *end = at;
        at = skip_blanks(at);
        if (*at != '+' && *at != '-')
            break;
        negative = *at++ == '-';
    }
    *out = sum;
    return p->failed ? xm_fail(err, XM_NO_MEMORY, "out of memory in a dimension") : XM_OK;
}

/* ---- values ------------------------------------------------------------------------ */

static enum xm_status
lookup(const char *symbol, const struct xm_binding *bindings, size_t n, int64_t *out,
       struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(bindings[i].symbol, symbol) == 0) {
            *out = bindings[i].value;
            return XM_OK;
        }
    }
    return xm_fail(err, XM_NOT_FOUND, "the dimension '%s' has no value", symbol);
}

static enum xm_status
fail_value(struct xm_dim d, const char *what, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    xm_dim_print(d, &text);
    xm_fail(err, XM_INVALID, "the dimension %s %s", xm_strbuf_text(&text), what);
    xm_strbuf_free(&text);
    return XM_INVALID;
}

enum xm_status
xm_dim_eval(struct xm_dim d, const struct xm_binding *bindings, size_t n_bindings,
            int64_t *out, struct xm_error *err)
{
    int64_t sum = d.poly ? 0 : d.n;
    for (uint32_t i = 0; d.poly && i < d.poly->n; i++) {
        const struct xm_term *t = &d.poly->term[i];
        int64_t product = t->coefficient, value;
        for (uint32_t j = 0; j < t->degree; j++) {
            XM_TRY(lookup(t->factor[j], bindings, n_bindings, &value, err));
            if (!xm_i64_mul(product, value, &product))
                return fail_value(d, "exceeds 64 bits", err);
        }
        if (!xm_i64_add(sum, product, &sum))
            return fail_value(d, "exceeds 64 bits", err);
    }
    if (sum < 0)
        return fail_value(d, "is negative", err);
    *out = sum;
    return XM_OK;
}
