/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_shapes.h"

#include <inttypes.h>

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct xm_slice
trim(struct xm_slice s)
{
    for (; s.n && is_blank(s.text[0]); s.text++)
        s.n--;
    while (s.n && is_blank(s.text[s.n - 1]))
        s.n--;
    return s;
}

/* Cuts the part before `separator` off *rest. Returns whether there is one. */
static bool
cut(struct xm_slice *rest, char separator, struct xm_slice *part)
{
    const char *end = rest->n ? memchr(rest->text, separator, rest->n) : NULL;
    const size_t n = end ? (size_t)(end - rest->text) : rest->n;
    *part = trim(xm_slice_of(rest->text, n));
    rest->text += n + (end != NULL);
    rest->n -= n + (end != NULL);
    return end != NULL;
}

/* ---- dimensions -------------------------------------------------------------------- */

static bool
read_number(struct xm_slice s, int64_t *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const int64_t digit = s.text[i] - '0';
        if (digit < 0 || digit > 9 || n > (INT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *out = n;
    return s.n > 0;
}

/* Reads "8", "?", "-1", "1..8" or "1..". */
static bool
read_dim(struct xm_slice s, bool fixed, int64_t *min, int64_t *max)
{
    if (read_number(s, min)) {
        *max = *min;
        return true;
    }
    *min = 0;
    *max = -1;
    if (fixed)
        return false;
    if (xm_slice_equal(s, xm_slice_of("?", 1)) || xm_slice_equal(s, xm_slice_of("-1", 2)))
        return true;
    for (size_t i = 0; i + 1 < s.n; i++) {
        if (s.text[i] != '.' || s.text[i + 1] != '.')
            continue;
        const struct xm_slice low = xm_slice_of(s.text, i);
        const struct xm_slice high = xm_slice_of(s.text + i + 2, s.n - i - 2);
        return (low.n == 0 || read_number(low, min)) &&
               (high.n == 0 || (read_number(high, max) && *max >= *min)) &&
               low.n + high.n > 0;
    }
    return false;
}

static bool
read_dims(struct xm_slice text, bool fixed, struct xm_benchmark_dims *out)
{
    struct xm_slice rest = trim(text), part;
    bool more = rest.n > 0;
    out->rank = 0;
    while (more) {
        more = cut(&rest, ',', &part);
        if (out->rank == XM_BENCHMARK_RANK ||
            !read_dim(part, fixed, &out->min[out->rank], &out->max[out->rank]))
            return false;
        out->rank++;
    }
    return true;
}

void
xm_benchmark_dim_print(const struct xm_benchmark_dims *d, uint32_t i,
                       struct xm_strbuf *out)
{
    if (d->min[i] == d->max[i])
        xm_strbuf_printf(out, "%" PRId64, d->min[i]);
    else if (d->max[i] >= 0)
        xm_strbuf_printf(out, "%" PRId64 "..%" PRId64, d->min[i], d->max[i]);
    else if (d->min[i] > 0)
        xm_strbuf_printf(out, "%" PRId64 "..", d->min[i]);
    else
        xm_strbuf_add(out, "?");
}

void
xm_benchmark_dims_print(const struct xm_benchmark_dims *d, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "[");
    for (uint32_t i = 0; i < d->rank; i++) {
        xm_strbuf_add(out, i ? "," : "");
        xm_benchmark_dim_print(d, i, out);
    }
    xm_strbuf_add(out, "]");
}

bool
xm_benchmark_dims_equal(const struct xm_benchmark_dims *a,
                        const struct xm_benchmark_dims *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->min[i] == b->min[i] && a->max[i] == b->max[i];
    return same;
}

bool
xm_benchmark_dims_are_fixed(const struct xm_benchmark_dims *d)
{
    bool fixed = true;
    for (uint32_t i = 0; i < d->rank; i++)
        fixed = fixed && d->min[i] == d->max[i];
    return fixed;
}

bool
xm_benchmark_dims_take(const struct xm_benchmark_dims *d,
                       const struct xm_benchmark_dims *fixed)
{
    bool fits = d->rank == fixed->rank;
    for (uint32_t i = 0; fits && i < d->rank; i++)
        fits =
            fixed->min[i] >= d->min[i] && (d->max[i] < 0 || fixed->min[i] <= d->max[i]);
    return fits;
}

/* ---- brackets ---------------------------------------------------------------------- */

struct reader {
    const char *option, *text, *at;
    enum xm_benchmark_brackets kind;
    struct xm_benchmark_shapes *out;
    struct xm_error *err;
};

static enum xm_status
fail_text(const struct reader *r)
{
    static const char *const expected[] = {
        [XM_BRACKETS_SHAPE] = "shapes as in1[1,3],in2[?,1..8]",
        [XM_BRACKETS_GROUPS] = "shapes of numbers as in1[1,16][4,16],in2[1][4]",
        [XM_BRACKETS_LAYOUT] = "layouts as in1[NCHW],in2[NC]",
    };
    return xm_fail(r->err, XM_INVALID, "option %s takes %s, found '%.80s'", r->option,
                   expected[r->kind], r->text);
}

/* Reads "[…]". */
static enum xm_status
read_bracket(struct reader *r, struct xm_slice name)
{
    const char *end = strchr(r->at, ']');
    struct xm_benchmark_shapes *s = r->out;
    struct xm_benchmark_shape shape = {.name = name};
    if (!end)
        return fail_text(r);
    shape.text = trim(xm_slice_of(r->at + 1, (size_t)(end - r->at) - 1));
    if (r->kind == XM_BRACKETS_LAYOUT
            ? shape.text.n == 0
            : !read_dims(shape.text, r->kind == XM_BRACKETS_GROUPS, &shape.dims))
        return fail_text(r);
    struct xm_benchmark_shape *grown =
        xm_grow(s->list, &s->capacity, s->n + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(r->err, "shapes");
    s->list = grown;
    s->list[s->n++] = shape;
    r->at = end + 1;
    return XM_OK;
}

/* Reads "name[…][…]". */
static enum xm_status
read_item(struct reader *r)
{
    const size_t n = strcspn(r->at, "[],");
    const struct xm_slice name = trim(xm_slice_of(r->at, n));
    for (size_t i = 0; i < r->out->n; i++) {
        if (xm_slice_equal(r->out->list[i].name, name))
            return xm_fail(r->err, XM_INVALID, "option %s names '%.*s' twice", r->option,
                           (int)name.n, name.text);
    }
    size_t brackets = 0;
    for (r->at += n; *r->at == '['; brackets++)
        XM_TRY(read_bracket(r, name));
    return brackets == 1 || (brackets && r->kind == XM_BRACKETS_GROUPS) ? XM_OK
                                                                        : fail_text(r);
}

enum xm_status
xm_benchmark_shapes_read(const char *option, const char *text,
                         enum xm_benchmark_brackets kind, struct xm_benchmark_shapes *out,
                         struct xm_error *err)
{
    struct reader r = {option, text, text, kind, out, err};
    *out = (struct xm_benchmark_shapes){0};
    if (!text)
        return XM_OK;
    for (;;) {
        if (*r.at == '\0')
            return fail_text(&r);
        XM_TRY(read_item(&r));
        for (; is_blank(*r.at); r.at++)
            ;
        if (*r.at == '\0')
            return XM_OK;
        if (*r.at++ != ',')
            return fail_text(&r);
    }
}

void
xm_benchmark_shapes_free(struct xm_benchmark_shapes *s)
{
    xm_free(s->list);
    *s = (struct xm_benchmark_shapes){0};
}

/* Returns the name itself if it has brackets, else the empty name, which stands for all. */
static struct xm_slice
name_in(const struct xm_benchmark_shapes *s, const char *name)
{
    const struct xm_slice own = xm_slice_of(name, strlen(name));
    for (size_t i = 0; i < s->n; i++) {
        if (xm_slice_equal(s->list[i].name, own))
            return own;
    }
    return xm_slice_of("", 0);
}

const struct xm_benchmark_shape *
xm_benchmark_shapes_find(const struct xm_benchmark_shapes *s, const char *name, size_t i)
{
    const struct xm_slice wanted = name_in(s, name);
    for (size_t k = 0; k < s->n; k++) {
        if (xm_slice_equal(s->list[k].name, wanted) && i-- == 0)
            return &s->list[k];
    }
    return NULL;
}

size_t
xm_benchmark_shapes_count(const struct xm_benchmark_shapes *s, const char *name)
{
    size_t n = 0;
    while (xm_benchmark_shapes_find(s, name, n))
        n++;
    return n;
}

/* ---- layouts and values ------------------------------------------------------------ */

/* Indices of the items N and `...`; -1: none. */
struct layout_items {
    int n, batch, dots;
};

static struct layout_items
read_layout(const char *layout)
{
    struct layout_items found = {0, -1, -1};
    struct xm_slice rest = xm_slice_of(layout + 1, strlen(layout) - 2), item;
    for (bool more = rest.n > 0; more; found.n++) {
        more = cut(&rest, ',', &item);
        if (item.n == 1 && (item.text[0] == 'N' || item.text[0] == 'n'))
            found.batch = found.n;
        if (xm_slice_equal(item, xm_slice_of("...", 3)))
            found.dots = found.n;
    }
    return found;
}

int
xm_benchmark_layout_batch(const char *layout, uint32_t rank)
{
    const struct layout_items l =
        layout ? read_layout(layout) : (struct layout_items){0, -1, -1};
    const bool is_from_end = l.dots >= 0 && l.batch > l.dots;
    const int at = is_from_end ? (int)rank - (l.n - l.batch) : l.batch;
    return at < (int)rank ? at : -1;
}

bool
xm_benchmark_layout_fits(const char *layout, uint32_t rank)
{
    const struct layout_items l = read_layout(layout);
    return l.dots < 0 ? l.n == (int)rank : l.n - 1 <= (int)rank;
}

bool
xm_benchmark_next_item(struct xm_slice *rest, struct xm_slice *name,
                       struct xm_slice *value)
{
    struct xm_slice item;
    if (rest->n == 0)
        return false;
    cut(rest, ',', &item);
    size_t colon = item.n;
    while (colon && item.text[colon - 1] != ':')
        colon--; /* the last colon, because names may have colons, too */
    *name = trim(xm_slice_of(item.text, colon ? colon - 1 : 0));
    *value = trim(xm_slice_of(item.text + colon, item.n - colon));
    return true;
}

struct xm_slice
xm_benchmark_value_of(const char *text, const char *name)
{
    const struct xm_slice wanted = xm_slice_of(name, strlen(name));
    struct xm_slice rest = xm_slice_of(text, strlen(text)), nameless = {"", 0}, own,
                    value;
    while (xm_benchmark_next_item(&rest, &own, &value)) {
        if (own.n == 0)
            nameless = value;
        else if (xm_slice_equal(own, wanted))
            return value;
    }
    return nameless;
}
