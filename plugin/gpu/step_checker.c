/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/step_checker.h"

#include <inttypes.h>
#include <math.h>

#include "plugin/gpu/verify_operands.h"

/* clang-format off */
/* The largest allowed error of a row. The first row of this table whose type an operand of the step
 * has counts, so the coarsest type does. Errors measured on the test models with PoCL: 3e-4 with
 * f16, which is one rounding, and 5e-7 with f32. The margin is for long sums in another order and
 * for devices that keep intermediates in f16. */
static const struct {
    enum xm_element element;
    double tolerance;
} tolerances[] = {
    { XM_F16, 2e-3 },
    { XM_F32, 2e-5 },
};
/* clang-format on */

enum {
    /* A row may be off by this many times the change that random rounding of the operands causes,
     * because the worst of many rows is compared. */
    ROUNDINGS = 4
};

/* Returns whether a step of attention reads a KV cache of this type. The cache is no operand of the
 * step. */
static bool
reads_cache_of(const struct xm_verify_step *v, enum xm_element e)
{
    if (v->step->kind != XM_STEP_ATTENTION)
        return false;
    const struct xm_kv_layer *kv = &xm_request_program(v->request)->kv[v->step->layer];
    return kv->k_element == e || kv->v_element == e;
}

static double
tolerance_of(const struct xm_verify_step *v)
{
    for (size_t t = 0; t < XM_ARRAY_LEN(tolerances); t++) {
        if (reads_cache_of(v, tolerances[t].element))
            return tolerances[t].tolerance;
        for (uint32_t i = 0; i < v->step->n_operands; i++) {
            if (v->operands[i].buffer && v->operands[i].element == tolerances[t].element)
                return tolerances[t].tolerance;
        }
    }
    return 0.0;
}

static double
element_at(const struct xm_tensor *t, uint64_t i, double limit)
{
    double x = t->f ? (double)t->f[i] : (double)t->i[i];
    return isnan(x) ? x : fmax(-limit, fmin(limit, x));
}

/* Returns whether the device has infinity where the reference has a finite number. References above
 * 1e38 are allowed to be infinite: masks have the largest f32 in place of infinity. */
static bool
has_overflowed(double device, double reference)
{
    return isinf(device) && fabs(reference) < 1e38;
}

/* Returns the relative error of the row of n elements at `at`. Both sides are clamped to the range
 * of the device's type. The divisor has a lower bound, so that a tiny number where the reference is
 * zero is no error. An overflow or NaN gives infinity. */
static double
row_error(const struct xm_tensor *device, const struct xm_tensor *reference, uint64_t at,
          uint64_t n, bool is_half)
{
    double limit = is_half ? 65504.0 : 3.402823466e38, tiny = is_half ? 6e-8 : 1e-30;
    double difference = 0.0, size = 0.0;
    for (uint64_t i = at; i < at + n; i++) {
        double r = element_at(reference, i, limit);
        double d = element_at(device, i, limit) - r;
        if (device->f &&
            has_overflowed(device->f[i], reference->f ? reference->f[i] : 0.0))
            return INFINITY;
        difference += d * d;
        size += r * r;
    }
    double error = sqrt(difference) / fmax(sqrt(size), tiny * sqrt((double)n) * 1e3);
    return isnan(error) ? INFINITY : error;
}

static const double MOST_ROUNDED =
    0.5; /* most that rounding may add to a tolerance; larger errors are always reported */

double
xm_step_check_severity(const struct xm_step_check *c)
{
    return c->tolerance > 0.0 ? c->error / c->tolerance : c->error > 0.0 ? INFINITY : 0.0;
}

/* Rows that the device has computed, and the reference's rows. */
struct comparison {
    const char *part; /* NULL: the step's result */
    enum xm_element element;
    const struct xm_tensor *device, *reference;
    /* [n_rounded] the reference's rows with random rounding errors. The error of a device's row may
     * be up to `roundings` times the largest error of these rows. */
    struct xm_tensor *const *rounded;
    uint32_t n_rounded;
    double roundings;
};

/* Compares all rows, and keeps the worst in *out: the row with the largest ratio of error to
 * tolerance. The tolerance is larger for a row that rounding alone changes much, as softmax of
 * steep logits does. */
static enum xm_status
compare(const struct comparison *c, double tolerance, struct xm_step_check *out,
        struct xm_error *err)
{
    const struct xm_tensor *t = c->reference;
    const bool is_half = c->element == XM_F16;
    const uint64_t cols = t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
    if (c->device->n != t->n)
        return xm_fail(err, XM_INVALID,
                       "the device has %" PRIu64
                       " elements, but the reference has %" PRIu64,
                       c->device->n, t->n);
    for (uint64_t r = 0; cols && r < t->n / cols; r++) {
        struct xm_step_check row = *out;
        double by = 0.0;
        row.row = r;
        row.part = c->part;
        row.compared = true;
        row.error = row_error(c->device, t, r * cols, cols, is_half);
        for (uint32_t i = 0; i < c->n_rounded && c->rounded[i]; i++)
            by = fmax(by, row_error(c->rounded[i], t, r * cols, cols, is_half));
        row.tolerance = tolerance + fmin(c->roundings * by, MOST_ROUNDED);
        if (!out->compared || xm_step_check_severity(&row) > xm_step_check_severity(out))
            *out = row;
    }
    out->compared = true;
    return XM_OK;
}

static enum xm_status
check_results(const struct xm_verify_step *v, const struct xm_verify_results *r,
              struct xm_step_check *out, struct xm_error *err)
{
    for (uint32_t i = 0; i < xm_verify_n_results(v); i++) {
        const struct xm_operand *o = xm_verify_result(v, i);
        struct xm_tensor *device = NULL;
        enum xm_status s = xm_verify_read(v, o, &device, err);
        const struct comparison c = {.element = o->element,
                                     .device = device,
                                     .reference = r->reference[i],
                                     .rounded = r->rounded,
                                     .n_rounded = XM_VERIFY_ROUNDED,
                                     .roundings = ROUNDINGS};
        if (s == XM_OK)
            s = compare(&c, tolerance_of(v), out, err);
        xm_tensor_destroy(device);
        XM_TRY(s);
    }
    return XM_OK;
}

/* Compares all rows of the cache, not only the new ones: earlier rows must not have changed. */
static enum xm_status
check_cache(const struct xm_verify_step *v, const struct xm_verify_results *r,
            struct xm_step_check *out, struct xm_error *err)
{
    static const char *const parts[XM_VERIFY_CACHED] = {
        [XM_VERIFY_KEYS] = "cached keys", [XM_VERIFY_VALUES] = "cached values"};
    for (uint32_t i = 0; i < XM_VERIFY_CACHED; i++) {
        struct xm_verify_rows rows;
        XM_TRY(xm_verify_stored(v, i, &rows, err));
        const struct comparison c = {.part = parts[i],
                                     .element = rows.element,
                                     .device = r->cached[i],
                                     .reference = rows.exact,
                                     .rounded = &rows.rounded,
                                     .n_rounded = 1,
                                     .roundings = 1.0};
        enum xm_status s = compare(&c, tolerance_of(v), out, err);
        xm_tensor_destroy(rows.rounded);
        XM_TRY(s);
    }
    return XM_OK;
}

static enum xm_status
check_step(const struct xm_verify_step *v, struct xm_step_check *out,
           struct xm_error *err)
{
    struct xm_verify_results r = {0};
    enum xm_status s = xm_verify_reference(v, &r, err);
    if (s == XM_OK)
        s = check_results(v, &r, out, err);
    if (s == XM_OK && v->step->kind == XM_STEP_ATTENTION)
        s = check_cache(v, &r, out, err);
    xm_verify_free(v, &r);
    return s == XM_NOT_FOUND && (!err || err->status == XM_OK) ? XM_OK : s;
}

struct xm_step_checker {
    struct xm_request *request;
    xm_step_check_fn fn;
    void *ctx;
    struct xm_state_store *states; /* the reference's states */
};

static enum xm_status
on_step(struct xm_request *r, uint32_t step, const struct xm_operand *operands, void *ctx,
        struct xm_error *err)
{
    struct xm_step_checker *c = ctx;
    const struct xm_program *p = xm_request_program(r);
    const struct xm_verify_step one = {r, &p->steps[step], operands, c->states};
    struct xm_step_check check = {.step = step,
                                  .n_steps = p->n_steps,
                                  .op = p->steps[step].op,
                                  .name = p->steps[step].name};
    XM_TRY(check_step(&one, &check, err));
    if (p->steps[step].primitive)
        xm_primitive_describe(p->steps[step].primitive, operands, check.kernels,
                              sizeof(check.kernels));
    c->fn(&check, c->ctx);
    return XM_OK;
}

enum xm_status
xm_step_checker_create(struct xm_request *r, xm_step_check_fn fn, void *ctx,
                       struct xm_step_checker **out, struct xm_error *err)
{
    if (!xm_request_program(r)->graph)
        return xm_fail(err, XM_INVALID, "the compiled model has not kept its graph");
    struct xm_step_checker *c = xm_calloc(1, sizeof(*c));
    if (c)
        c->states = xm_state_store_create();
    if (!c || !c->states) {
        xm_free(c);
        return xm_no_memory(err, "the states of the reference");
    }
    c->request = r;
    c->fn = fn;
    c->ctx = ctx;
    xm_request_set_hook(r, on_step, c);
    *out = c;
    return XM_OK;
}

void
xm_step_checker_destroy(struct xm_step_checker *c)
{
    if (!c)
        return;
    xm_request_set_hook(c->request, NULL, NULL);
    xm_state_store_destroy(c->states);
    xm_free(c);
}
