/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_reshape.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_out.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

/* ---- names --------------------------------------------------------------------------------- */

void
xm_benchmark_use_names(const struct xm_benchmark_model *m,
                       struct xm_benchmark_shapes *said)
{
    for (size_t k = 0; k < said->n; k++) {
        struct xm_slice *name = &said->list[k].name;
        const size_t i =
            name->n ? xm_benchmark_ports_find(&m->inputs, *name) : m->inputs.n;
        if (i < m->inputs.n)
            *name = xm_slice_of(m->inputs.list[i].name, strlen(m->inputs.list[i].name));
    }
}

static enum xm_status
check_inputs(const struct xm_benchmark_model *m, const char *option,
             const struct xm_benchmark_shapes *said, struct xm_error *err)
{
    for (size_t k = 0; k < said->n; k++) {
        const struct xm_slice name = said->list[k].name;
        if (name.n && xm_benchmark_ports_find(&m->inputs, name) == m->inputs.n)
            return xm_fail(err, XM_INVALID, "%s: the model has no input '%.*s'", option,
                           (int)name.n, name.text);
    }
    return XM_OK;
}

/* ---- layouts ----------------------------------------------------------------------- */

/* Converts a flag's layout, "NC" or "N,C" between brackets, to OpenVINO's text "[N,C]". */
static enum xm_status
make_layout(struct xm_slice said, const char **out, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    ov_layout_t *layout = NULL;
    const bool is_list = memchr(said.text, ',', said.n) != NULL;
    xm_strbuf_printf(&text, is_list ? "[%.*s]" : "%.*s", (int)said.n, said.text);
    const enum xm_status s = xm_benchmark_api(
        ov_layout_create(xm_strbuf_text(&text), &layout), "option -layout", err);
    *out = layout ? ov_layout_to_string(layout) : NULL;
    ov_layout_free(layout);
    xm_strbuf_free(&text);
    return s != XM_OK || *out ? s : xm_no_memory(err, "a layout");
}

enum xm_status
xm_benchmark_layouts_check(const struct xm_benchmark_shapes *layouts,
                           struct xm_error *err)
{
    for (size_t i = 0; i < layouts->n; i++) {
        const char *layout = NULL;
        XM_TRY(make_layout(layouts->list[i].text, &layout, err));
        ov_free(layout);
    }
    return XM_OK;
}

static enum xm_status
set_layout(struct xm_benchmark_port *p, struct xm_slice said, struct xm_error *err)
{
    XM_TRY(make_layout(said, &p->layout, err));
    if (xm_benchmark_layout_fits(p->layout, p->dims.rank))
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "-layout: '%s' has %u dimensions, which does not match %s", p->name,
                   p->dims.rank, p->layout);
}

static enum xm_status
set_layouts(struct xm_benchmark_model *m, const struct xm_benchmark_shapes *layouts,
            struct xm_error *err)
{
    for (size_t i = 0; i < m->inputs.n; i++) {
        struct xm_benchmark_port *p = &m->inputs.list[i];
        const struct xm_benchmark_shape *l =
            xm_benchmark_shapes_find(layouts, p->name, 0);
        if (l && !p->layout)
            XM_TRY(set_layout(p, l->text, err));
    }
    return check_inputs(m, "-layout", layouts, err);
}

/* For -b without a layout: names the first dimension of each input N. */
static enum xm_status
guess_layouts(struct xm_benchmark_model *m, struct xm_error *err)
{
    static const char first[] = "N...";
    for (size_t i = 0; i < m->inputs.n; i++) {
        struct xm_benchmark_port *p = &m->inputs.list[i];
        if (p->layout || p->dims.rank == 0)
            continue;
        xm_benchmark_warn("-b: no layout says which dimension of input '%s' is the "
                          "batch: the first one is used",
                          p->name);
        XM_TRY(make_layout(xm_slice_of(first, sizeof(first) - 1), &p->layout, err));
    }
    return XM_OK;
}

static int
batch_at(const struct xm_benchmark_port *p)
{
    return xm_benchmark_layout_batch(p->layout, p->dims.rank);
}

/* Returns the first input with a dimension N, and the dimension's index; inputs->n: none. */
static size_t
find_batch(const struct xm_benchmark_ports *inputs, int *at)
{
    size_t i = 0;
    while (i < inputs->n && (*at = batch_at(&inputs->list[i])) < 0)
        i++;
    return i;
}

int64_t
xm_benchmark_batch(const struct xm_benchmark_model *m,
                   const struct xm_benchmark_shapes *data)
{
    int at = 0;
    const size_t i = find_batch(&m->inputs, &at);
    if (i == m->inputs.n)
        return 1;
    const struct xm_benchmark_port *p = &m->inputs.list[i];
    const struct xm_benchmark_shape *said = xm_benchmark_shapes_find(data, p->name, 0);
    const bool is_said =
        said && said->dims.rank == p->dims.rank && !xm_benchmark_dims_are_fixed(&p->dims);
    const struct xm_benchmark_dims *d = is_said ? &said->dims : &p->dims;
    return d->min[at] == d->max[at] ? d->min[at] : -1;
}

/* ---- shapes ------------------------------------------------------------------------ */

struct wish {
    struct xm_benchmark_model *model;
    struct xm_benchmark_dims *dims; /* owned; one for each input */
    uint64_t batch;                 /* 0: not given */
    bool changes;                   /* some shape differs from the model's */
    struct xm_error *err;
};

static enum xm_status
wish_batch(struct wish *w)
{
    size_t n = 0;
    if (w->batch > INT64_MAX)
        return xm_fail(w->err, XM_INVALID, "-b %" PRIu64 " is too large", w->batch);
    for (size_t i = 0; i < w->model->inputs.n; i++) {
        const int at = batch_at(&w->model->inputs.list[i]);
        if (at < 0)
            continue;
        w->dims[i].min[at] = w->dims[i].max[at] = (int64_t)w->batch;
        n++;
    }
    return n ? XM_OK
             : xm_fail(w->err, XM_INVALID,
                       "-b %" PRIu64 " needs a layout with N: -layout in1[NC] says which "
                       "dimension the batch is",
                       w->batch);
}

static enum xm_status
wish_shapes(struct wish *w, const struct xm_benchmark_shapes *shapes)
{
    const struct xm_benchmark_ports *inputs = &w->model->inputs;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct xm_benchmark_port *p = &inputs->list[i];
        const struct xm_benchmark_shape *said =
            xm_benchmark_shapes_find(shapes, p->name, 0);
        w->dims[i] = said ? said->dims : p->dims;
        if (w->dims[i].rank != p->dims.rank)
            return xm_fail(w->err, XM_INVALID,
                           "-shape: input '%s' has %u dimension%s, found %u", p->name,
                           p->dims.rank, xm_plural(p->dims.rank), w->dims[i].rank);
    }
    XM_TRY(check_inputs(w->model, "-shape", shapes, w->err));
    if (w->batch)
        XM_TRY(wish_batch(w));
    for (size_t i = 0; i < inputs->n; i++)
        w->changes =
            w->changes || !xm_benchmark_dims_equal(&w->dims[i], &inputs->list[i].dims);
    return XM_OK;
}

/* Prints the batch size of the wished shapes. */
static void
say_batch(const struct wish *w)
{
    struct xm_strbuf text = {0};
    int at = 0;
    const size_t i = find_batch(&w->model->inputs, &at);
    if (i < w->model->inputs.n)
        xm_benchmark_dim_print(&w->dims[i], (uint32_t)at, &text);
    xm_benchmark_info("Model batch size: %s", text.n ? xm_strbuf_text(&text) : "1");
    xm_strbuf_free(&text);
}

/* Prints "'data': [?,16], 'mask': [?]". */
static void
say_shapes(const struct wish *w)
{
    struct xm_strbuf text = {0};
    for (size_t i = 0; i < w->model->inputs.n; i++) {
        xm_strbuf_printf(&text, "%s'%s': ", i ? ", " : "", w->model->inputs.list[i].name);
        xm_benchmark_dims_print(&w->dims[i], &text);
    }
    xm_benchmark_info("Reshaping model: %s", xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

static enum xm_status
reshape(const struct wish *w)
{
    const size_t n = w->model->inputs.n;
    ov_partial_shape_t *shapes = xm_calloc(n, sizeof(*shapes));
    ov_dimension_t(*dims)[XM_BENCHMARK_RANK] = xm_calloc(n, sizeof(*dims));
    size_t *indexes = xm_calloc(n, sizeof(*indexes));
    const bool has_memory = shapes && dims && indexes;
    for (size_t i = 0; has_memory && i < n; i++) {
        const int64_t rank = w->dims[i].rank;
        for (int64_t k = 0; k < rank; k++)
            dims[i][k] = (ov_dimension_t){w->dims[i].min[k], w->dims[i].max[k]};
        shapes[i] = (ov_partial_shape_t){{rank, rank}, dims[i]};
        indexes[i] = i;
    }
    const enum xm_status s =
        has_memory ? xm_benchmark_api(ov_model_reshape_by_port_indexes(
                                          w->model->model, indexes, shapes, n),
                                      "the model cannot be reshaped", w->err)
                   : xm_no_memory(w->err, "shapes");
    xm_free(shapes);
    xm_free(dims);
    xm_free(indexes);
    return s;
}

static enum xm_status
meet(const struct wish *w)
{
    if (!w->changes)
        return XM_OK;
    if (!w->model->model)
        return xm_fail(w->err, XM_UNSUPPORTED,
                       "-shape and -b: a model that is compiled directly or imported "
                       "keeps its shapes");
    say_shapes(w);
    const double then = xm_now();
    XM_TRY(reshape(w));
    w->model->reshape_ms = 1e3 * (xm_now() - then);
    xm_benchmark_info("Reshape model took %.2f ms", w->model->reshape_ms);
    return xm_benchmark_model_update_ports(w->model, w->err);
}

enum xm_status
xm_benchmark_reshape(struct xm_benchmark_model *m,
                     const struct xm_benchmark_shapes *layouts,
                     const struct xm_benchmark_shapes *shapes, uint64_t batch,
                     struct xm_error *err)
{
    struct wish w = {.model = m, .batch = batch, .err = err};
    XM_TRY(set_layouts(m, layouts, err));
    if (batch)
        XM_TRY(guess_layouts(m, err));
    w.dims = xm_calloc(m->inputs.n + 1, sizeof(*w.dims));
    if (!w.dims)
        return xm_no_memory(err, "shapes");
    enum xm_status s = wish_shapes(&w, shapes);
    if (s == XM_OK) {
        say_batch(&w);
        s = meet(&w);
    }
    xm_free(w.dims);
    return s;
}
