/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the rows of linear: converts x into the form that the row reads, then multiplies it by all
 * segments in one launch, or by one segment after another.
 */
#include "primitives/linear/linear_rows.h"

#include "primitives/args.h"
#include "runtime/kernel_defines.h"

/* Returns the number of results: one for a GLU, else one for each segment. */
static uint32_t
results_of(const struct xm_linear_desc *d)
{
    return d->is_glu ? 1 : d->n;
}

/* ---- creation --------------------------------------------------------------------- */

static enum xm_status
build_product(const struct xm_linear *l, const struct xm_variant *row,
              struct xm_kernel_weights weights, struct xm_kernel **out,
              struct xm_error *err)
{
    const struct xm_linear_desc *d = &l->desc;
    const char *src = xm_element_text(d->src);
    char joined[64] = "";
    if (row->joins)
        xm_defines_print(joined, sizeof(joined), " -DSEGMENTS=%u -DGLU=%d -DACT=%d", d->n,
                         d->is_glu, d->is_glu ? (int)d->activation : 0);
    return xm_product_kernel(l->base.engine, &l->product, row, weights, out, err,
                             "-DSRC=%s -DTILE=%s -DDST=%s%s", src, src,
                             xm_element_text(d->dst), joined);
}

enum xm_status
xm_linear_build(struct xm_linear *l, struct xm_linear_way *way, struct xm_error *err)
{
    /* Destroys what was made for a row that did not build. */
    xm_linear_library_release(way);
    way->library = xm_linear_library(way->row);
    if (way->library)
        return xm_linear_library_build(l, way, err);
    XM_TRY(xm_converter_build(l->base.engine, &l->product, way->row, l->desc.src, &way->x,
                              err));
    if (way->row->joins)
        return build_product(l, way->row, l->product.weights, &way->kernel[0], err);
    for (uint32_t i = 0; i < l->desc.n; i++)
        XM_TRY(build_product(l, way->row, xm_one_weight(xm_linear_weight(l, i)),
                             &way->kernel[i], err));
    return XM_OK;
}

uint64_t
xm_linear_scratch(const struct xm_linear *l, const struct xm_linear_way *way,
                  uint64_t tokens)
{
    return way->library ? xm_linear_library_scratch(l, way, tokens)
                        : xm_converter_scratch(&way->x, &l->base, tokens);
}

/* ---- runs ------------------------------------------------------------------------- */

/* Multiplies by all segments in one launch (ALL_SEGMENT_PARAMETERS of
 * kernels/cl/include/segments.h). */
static enum xm_status
multiply_joined(const struct xm_linear_call *c, const struct xm_buffer *x,
                struct xm_error *err)
{
    static const char *const w[] = {"w0", "w1", "w2"}, *const y[] = {"y0", "y1", "y2"},
                             *const bias[] = {"bias0", "bias1", "bias2"},
                             *const rows[] = {"rows0", "rows1", "rows2"};
    const struct xm_linear_desc *d = &c->l->desc;
    const uint64_t n = xm_linear_weight(c->l, 0)->rows;
    struct xm_counts counts = xm_counts_of(xm_linear_weight(c->l, 0), c->tokens);
    struct xm_args a = {.n = 0};
    for (uint32_t i = 0; i < d->n; i++) {
        const struct xm_linear_segment *s = &d->segment[i];
        xm_put_weight(&a, w[i], s->weight);
        xm_put_buffer(&a, bias[i], s->bias);
        xm_put_buffer(&a, y[i], c->operands[XM_LINEAR_Y + i].buffer);
        xm_put_uint(&a, rows[i], s->weight->host.rows);
    }
    xm_put_buffer(&a, "x", x);
    xm_put_buffer(&a, "other", c->operands[XM_LINEAR_ADDEND].buffer);
    xm_put_uint(&a, "other_step", n * (d->slices ? d->slices : 1));
    xm_put_uint(&a, "other_first", n * d->slice);
    xm_put_uint(&a, "k_count", xm_linear_weight(c->l, 0)->cols);
    /* such a unit computes all tokens, so that the kernel needs their number */
    if (!c->way->row->launch.y.per)
        xm_put_uint(&a, "t_count", c->tokens);
    counts.n_parts = results_of(d);
    for (uint32_t i = 0; i < counts.n_parts; i++) {
        counts.part[i] = xm_linear_weight(c->l, i)->rows;
        counts.n[XM_ROWS] += counts.part[i];
    }
    return xm_launch(&c->way->row->launch, c->way->kernel[0], &counts, &a, c->run->queue,
                     err);
}

static enum xm_status
multiply_one(const struct xm_linear_call *c, uint32_t i, const struct xm_buffer *x,
             struct xm_error *err)
{
    const struct xm_linear_segment *s = &c->l->desc.segment[i];
    struct xm_counts counts = xm_counts_of(&s->weight->host, c->tokens);
    struct xm_args a = {.n = 0};
    xm_put_weight(&a, "w", s->weight);
    xm_put_buffer(&a, "x", x);
    xm_put_buffer(&a, "bias", s->bias);
    xm_put_buffer(&a, "y", c->operands[XM_LINEAR_Y + i].buffer);
    xm_put_uint(&a, "n_count", s->weight->host.rows);
    xm_put_uint(&a, "k_count", s->weight->host.cols);
    xm_put_uint(&a, "t_count", c->tokens);
    counts.n[XM_ROWS] = s->weight->host.rows;
    return xm_launch(&c->way->row->launch, c->way->kernel[i], &counts, &a, c->run->queue,
                     err);
}

enum xm_status
xm_linear_multiply(const struct xm_linear_call *c, struct xm_error *err)
{
    const struct xm_activations given = {c->operands[XM_LINEAR_X].buffer, c->tokens,
                                         c->operands[XM_LINEAR_PREPARED].buffer,
                                         c->l->desc.prepared};
    struct xm_buffer *x;
    if (c->way->library)
        return xm_linear_library_run(c, err);
    XM_TRY(xm_converter_run(&c->way->x, &given, c->scratch, c->run->queue, &x, err));
    if (c->way->row->joins)
        return multiply_joined(c, x, err);
    for (uint32_t i = 0; i < c->l->desc.n; i++)
        XM_TRY(multiply_one(c, i, x, err));
    return XM_OK;
}
