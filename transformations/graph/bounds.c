/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/graph/bounds.h"

#include <string.h>

#include "transformations/graph/graph.h"

static bool
parse_digits(const char *text, size_t n, int64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || !xm_mul_size(v, 10, &v) ||
            !xm_add_size(v, (uint64_t)(text[i] - '0'), &v))
            return false;
    }
    *out = (int64_t)v;
    return n > 0 && v <= INT64_MAX;
}

/* Parses "low..high"; one of the two numbers may be missing. */
static bool
parse_range(const char *text, size_t n, struct xm_bound *out)
{
    size_t dots = 0;
    while (dots + 1 < n && memcmp(text + dots, "..", 2) != 0)
        dots++;
    if (dots + 1 >= n || n == 2)
        return false;
    const size_t n_high = n - dots - 2;
    *out = (struct xm_bound){0, -1};
    return (!dots || parse_digits(text, dots, &out->min)) &&
           (!n_high || parse_digits(text + dots + 2, n_high, &out->max)) &&
           (out->max < 0 || out->min <= out->max);
}

bool
xm_bound_parse(const char *text, size_t n, struct xm_bound *out)
{
    for (; n && text[0] == ' '; n--)
        text++;
    while (n && text[n - 1] == ' ')
        n--;
    if ((n == 1 && text[0] == '?') || (n == 2 && memcmp(text, "-1", 2) == 0)) {
        *out = (struct xm_bound){0, -1};
        return true;
    }
    if (!parse_digits(text, n, &out->min))
        return parse_range(text, n, out);
    out->max = out->min;
    return true;
}

const char *
xm_bounds_parse(const char *text, struct xm_bound *out, uint32_t *rank)
{
    *rank = 0;
    if (text[0] == '\0')
        return NULL;
    if (strcmp(text, "...") == 0)
        return "has no fixed rank";
    for (;;) {
        const size_t n = strcspn(text, ",");
        if (*rank == XM_MAX_RANK)
            return "has more than 8 dimensions";
        if (!xm_bound_parse(text, n, &out[(*rank)++]))
            return "is not a valid list of dimensions";
        if (text[n] == '\0')
            return NULL;
        text += n + 1;
    }
}

void
xm_bound_print(struct xm_bound b, struct xm_strbuf *out)
{
    if (xm_bound_is_fixed(b))
        xm_strbuf_printf(out, "%lld", (long long)b.min);
    else if (b.min == 0 && b.max < 0)
        xm_strbuf_add(out, "?");
    else if (b.max < 0)
        xm_strbuf_printf(out, "%lld..", (long long)b.min);
    else
        xm_strbuf_printf(out, "%lld..%lld", (long long)b.min, (long long)b.max);
}

void
xm_parameter_bounds(const struct xm_node *n, struct xm_bound *out)
{
    const struct xm_shape *shape = &n->out[0].type.shape;
    const char *text = n->attr.parameter.bounds;
    uint32_t rank = 0;
    const bool has_text =
        text && text[0] && !xm_bounds_parse(text, out, &rank) && rank == shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const struct xm_dim d = shape->dim[i];
        if (xm_dim_is_const(d))
            out[i] = (struct xm_bound){d.n, d.n};
        else if (!has_text)
            out[i] = (struct xm_bound){0, -1};
    }
}
