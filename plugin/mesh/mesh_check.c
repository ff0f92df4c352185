/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "transformations/split/split.h"

/* clang-format off */
/* The largest error that a row may have, by the type of activations. Measured on the test models:
 * 1.4e-3 with f16 and 2e-6 with f32, because all layers before add in another order. The error is
 * larger if a router with two almost equal logits chooses another expert. */
static const struct {
    enum xm_element activations;
    double tolerance;
} tolerances[] = {
    { XM_F16, 5e-2 },
    { XM_F32, 1e-4 },
};
/* clang-format on */

enum xm_status
xm_mesh_check_open(struct xm_mesh_check *c, struct xm_compiled *whole,
                   xm_step_check_fn fn, void *ctx, struct xm_error *err)
{
    xm_mesh_check_close(c);
    *c = (struct xm_mesh_check){.fn = fn, .ctx = ctx};
    return xm_compiled_create_request(whole, &c->whole, err);
}

void
xm_mesh_check_close(struct xm_mesh_check *c)
{
    xm_infer_destroy(c->whole);
    c->whole = NULL;
}

/* ---- a result ---------------------------------------------------------------------------- */

/* Returns the error of the n values from index `at` on (see mesh_check.h); infinity if it is
 * NaN. */
static double
row_error(const struct xm_host_tensor *x, const struct xm_host_tensor *whole, uint64_t at,
          uint64_t n)
{
    double difference = 0.0, size = 0.0;
    for (uint64_t i = at; i < at + n; i++) {
        const double w = xm_load_float(whole->element, whole->data, i);
        const double d = xm_load_float(x->element, x->data, i) - w;
        difference += d * d;
        size += w * w;
    }
    const double error = sqrt(difference) / fmax(sqrt(size), 1e-30);
    return isnan(error) ? INFINITY : error;
}

static enum xm_status
compare(const struct xm_host_tensor *x, const struct xm_host_tensor *whole,
        struct xm_step_check *out, struct xm_error *err)
{
    uint64_t all = 1, cols = whole->rank ? (uint64_t)whole->dim[whole->rank - 1] : 1;
    bool is_alike = x->rank == whole->rank;
    for (uint32_t d = 0; d < whole->rank && is_alike; d++) {
        is_alike = x->dim[d] == whole->dim[d];
        all *= (uint64_t)whole->dim[d];
    }
    if (!is_alike)
        return xm_fail(err, XM_INVALID, "%s: a rank has it in another shape", out->name);
    for (uint64_t at = 0; cols && at < all; at += cols) {
        const double error = row_error(x, whole, at, cols);
        if (out->compared && !(error > out->error))
            continue;
        out->compared = true;
        out->error = error;
        out->row = at / cols;
    }
    return XM_OK;
}

static uint32_t
output_named(const struct xm_ports *ports, const char *name)
{
    uint32_t i = 0;
    while (i < ports->n_outputs && strcmp(ports->outputs[i].name, name) != 0)
        i++;
    return i;
}

/* ---- all results -------------------------------------------------------------------------- */

static enum xm_status
check_result(const struct xm_mesh_check *c, uint32_t output, struct xm_infer *const *rank,
             uint32_t n, struct xm_step_check *out, struct xm_error *err)
{
    const char *name = c->whole->compiled->ports.outputs[output].name;
    struct xm_host_tensor whole, own;
    XM_TRY(c->whole->ops->output(c->whole, output, &whole, err));
    const char *label = strstr(name, XM_SHOWN_BEHIND);
    out->name = label ? label + strlen(XM_SHOWN_BEHIND) : name;
    for (uint32_t i = 0; i < n && xm_element_is_float(whole.element); i++) {
        const uint32_t at = output_named(&rank[i]->compiled->ports, name);
        if (at == rank[i]->compiled->ports.n_outputs)
            continue;
        XM_TRY(rank[i]->ops->output(rank[i], at, &own, err));
        XM_TRY(compare(&own, &whole, out, err));
    }
    return XM_OK;
}

static double
tolerance_of(struct xm_compiled *whole)
{
    struct xm_strbuf precision = {0};
    (void)whole->ops->get_property(whole, "INFERENCE_PRECISION_HINT", &precision, NULL);
    const enum xm_element e = xm_element_parse(xm_strbuf_text(&precision));
    xm_strbuf_free(&precision);
    size_t i = 0;
    while (i + 1 < XM_ARRAY_LEN(tolerances) && tolerances[i].activations != e)
        i++;
    return tolerances[i].tolerance;
}

/* Returns the kind of an output by its name: "exchange", "inner" or, for a result of the model,
 * "result". */
static const char *
kind_of(const struct xm_ports *ports, uint32_t output)
{
    static const char *const kinds[][2] = {{XM_SHOWN_EXCHANGE, "exchange"},
                                           {XM_SHOWN_INNER, "inner"}};
    for (size_t i = 0; i < XM_ARRAY_LEN(kinds); i++) {
        if (strncmp(ports->outputs[output].name, kinds[i][0], strlen(kinds[i][0])) == 0)
            return kinds[i][1];
    }
    return "result";
}

/* Starts with the exchanged and inner values, which are listed after the model's own results but
 * are computed before them. */
enum xm_status
xm_mesh_check_run(struct xm_mesh_check *c, struct xm_infer *const *rank, uint32_t n,
                  struct xm_error *err)
{
    if (c->is_apart)
        return xm_fail(err, XM_INVALID,
                       "nothing to compare with: a run before this one has failed");
    const struct xm_ports *ports = &c->whole->compiled->ports;
    const double tolerance = tolerance_of(c->whole->compiled);
    uint32_t n_own = 0;
    while (n_own < ports->n_outputs && strcmp(kind_of(ports, n_own), "result") == 0)
        n_own++;
    XM_TRY(c->whole->ops->infer(c->whole, err));
    for (uint32_t i = 0; i < ports->n_outputs; i++) {
        const uint32_t output = (i + n_own) % ports->n_outputs;
        struct xm_step_check check = {.step = i,
                                      .n_steps = ports->n_outputs,
                                      .op = kind_of(ports, output),
                                      .tolerance = tolerance,
                                      .accumulates = true};
        XM_TRY(check_result(c, output, rank, n, &check, err));
        c->fn(&check, c->ctx);
    }
    return XM_OK;
}
