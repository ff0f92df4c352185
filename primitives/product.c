/* SPDX-License-Identifier: Apache-2.0
 *
 * What all products share: see product.h.
 */
#include "primitives/product.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "primitives/matrix_engine.h"
#include "runtime/kernel_defines.h"

/* ---- what refuses a row -------------------------------------------------------------- */

/* Returns why the first weight that `refuse` refuses is refused; NULL: it refuses none. */
static const char *
first_refusal(const struct xm_product *p,
              const char *(*refuse)(const struct xm_weight *w, enum xm_element src))
{
    const char *why = NULL;
    for (uint32_t i = 0; i < p->weights.n && !why; i++)
        why = refuse(p->weights.w[i], p->src);
    return why;
}

static const char *
not_in_planes(const struct xm_weight *w, enum xm_element src)
{
    (void)src;
    return xm_weight_not_in_planes(w);
}

const char *
xm_product_not_in_planes(const void *product)
{
    return first_refusal(product, not_in_planes);
}

const char *
xm_product_not_in_runs(const void *product, uint32_t words)
{
    const struct xm_product *p = product;
    const char *why = NULL;
    for (uint32_t i = 0; i < p->weights.n && !why; i++)
        why = xm_weight_not_in_words(p->weights.w[i], words);
    return why;
}

const char *
xm_product_not_in_words(const void *product)
{
    return xm_product_not_in_runs(product, 1);
}

const char *
xm_product_not_in_shorts(const void *product)
{
    return first_refusal(product, xm_weight_not_in_shorts);
}

const char *
xm_product_not_in_bytes(const void *product)
{
    return ((const struct xm_product *)product)->factor
               ? first_refusal(product, xm_weight_not_in_bytes)
               : "activations are not quantised to 8 bits "
                 "(DYNAMIC_QUANTIZATION_GROUP_SIZE)";
}

const char *
xm_product_not_in_steps(const void *product)
{
    return first_refusal(product, xm_matrix_refuses);
}

const char *
xm_product_not_in_shares(const void *product)
{
    return first_refusal(product, xm_matrix_shares_refuse);
}

const char *
xm_product_not_in_lanes(const void *product)
{
    return first_refusal(product, xm_matrix_rows_refuse);
}

/* ---- choosing and building ----------------------------------------------------------- */

bool
xm_product_wants_coarse(const struct xm_device_info *device, const struct xm_weight *w)
{
    enum { SUPER_BLOCK = 256 };
    return (xm_device_has(device, XM_CAP_BYTE_PAIRS_ONLY) ||
            xm_device_has(device, XM_CAP_BYTE_DOTS)) &&
           xm_weight_info(w)->block_cols == SUPER_BLOCK &&
           (xm_weight_meets(w) & XM_MEETS_BYTES);
}

struct xm_problem_class
xm_product_class(const struct xm_product *p)
{
    const struct xm_weight *w = p->weights.w[0];
    struct xm_problem_class c;
    snprintf(c.text, sizeof(c.text),
             "%s g%" PRIu64 " %" PRIu64 "x%" PRIu64 "x%" PRIu64 " %s",
             xm_weight_format_text(w), w->group, w->experts, w->rows, w->cols,
             xm_element_text(p->src));
    return c;
}

struct xm_pick
xm_product_pick(const struct xm_variant_table *table, const struct xm_product *p)
{
    return (struct xm_pick){
        .table = table, .problem = p, .problems = xm_product_class(p)};
}

struct xm_rows_form
xm_product_reads(struct xm_engine *engine, const struct xm_variant_table *table,
                 const struct xm_weight *w, enum xm_element src, uint32_t factor)
{
    const struct xm_product p = {
        .weights = xm_one_weight(w), .src = src, .factor = factor};
    struct xm_pick pick = xm_product_pick(table, &p);
    size_t row = 0;
    const bool known =
        xm_variant_prepare(&pick, engine, NULL) == XM_OK &&
        xm_variant_pick(&pick, xm_engine_info(engine), &p, &row, NULL) == XM_OK;
    return known ? xm_product_form(&p, &table->rows[row], src)
                 : (struct xm_rows_form){.form = XM_FORM_ROWS};
}

struct xm_rows_form
xm_product_form(const struct xm_product *p, const struct xm_variant *row,
                enum xm_element plain)
{
    struct xm_rows_form f = xm_form_of(row->form, p->weights.w[0], plain);
    if (f.factor && p->factor)
        f.factor = p->factor;
    return f;
}

enum xm_status
xm_product_kernel(struct xm_engine *engine, const struct xm_product *p,
                  const struct xm_variant *row, struct xm_kernel_weights weights,
                  struct xm_kernel **out, struct xm_error *err, const char *fmt, ...)
{
    char options[XM_WEIGHT_DEFINES];
    va_list ap;
    va_start(ap, fmt);
    xm_defines_print_v(options, sizeof(options), fmt, ap);
    va_end(ap);
    const bool is_coarse = row->form == XM_FORM_BYTES && p->factor == XM_FACTOR_COARSE;
    return xm_weight_kernel(engine, xm_variant_kernel(row), weights, out, err, "%s%s%s",
                            options, xm_variant_defines(row, xm_engine_info(engine)).text,
                            is_coarse ? " -DX_COLUMNS=128" : "");
}

/* ---- the activations ----------------------------------------------------------------- */

enum xm_status
xm_converter_build(struct xm_engine *engine, const struct xm_product *p,
                   const struct xm_variant *row, enum xm_element plain,
                   struct xm_converter *out, struct xm_error *err)
{
    *out = (struct xm_converter){xm_product_form(p, row, plain), p->weights.w[0], NULL};
    return xm_form_kernel(engine, &out->form, plain, out->weight, &out->kernel, err);
}

uint64_t
xm_converter_scratch(const struct xm_converter *c, const struct xm_primitive *p,
                     uint64_t n)
{
    return xm_scratch_bytes(p, xm_form_bytes(&c->form, c->weight->cols, n));
}

enum xm_status
xm_converter_take(const struct xm_converter *c, uint64_t n, struct xm_scratch *s,
                  struct xm_buffer **out, struct xm_error *err)
{
    return xm_scratch_take(s, xm_form_bytes(&c->form, c->weight->cols, n), out, err);
}

enum xm_status
xm_converter_run(const struct xm_converter *c, const struct xm_activations *x,
                 struct xm_scratch *s, struct xm_queue *queue, struct xm_buffer **out,
                 struct xm_error *err)
{
    *out = x->plain;
    if (!c->kernel)
        return XM_OK;
    *out = x->prepared;
    if (xm_prepared_serves(&c->form, &x->given, c->weight->cols, x->n, x->prepared))
        return XM_OK;
    XM_TRY(xm_converter_take(c, x->n, s, out, err));
    return xm_form_make(c->form.form, c->kernel, c->weight, x->plain, x->n, *out, queue,
                        err);
}
