/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the models, written as OpenVINO IR text, and their expected results.
 */
#include "functional_tests/api/conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text --------------------------------------------------------------------------- */

enum { MODEL_BYTES = 1 << 16 };

struct writer {
    char *text;
    size_t n, layers, edges;
    char *edge_text;
    size_t n_edges;
};

static void
add(char *text, size_t *n, const char *fmt, const char *a, const char *b, const char *c)
{
    const int more = snprintf(text + *n, MODEL_BYTES - *n, fmt, a, b, c);
    *n += more > 0 ? (size_t)more : 0;
}

static void
begin(struct writer *w, const char *name)
{
    *w = (struct writer){.text = calloc(MODEL_BYTES, 1),
                         .edge_text = calloc(MODEL_BYTES, 1)};
    if (!w->text || !w->edge_text)
        exit(EXIT_FAILURE);
    add(w->text, &w->n,
        "<?xml version=\"1.0\"?><net name=\"%s\" version=\"11\"><layers>%s%s", name, "",
        "");
}

static void
print_dims(char out[160], const int64_t *dims)
{
    snprintf(out, 160, "<dim>%lld</dim><dim>%lld</dim>", (long long)dims[0],
             (long long)dims[1]);
}

/* Writes port `id` of a layer: f32, two dimensions. */
static void
add_port(struct writer *w, int id, const char *name, const int64_t *dims)
{
    char head[200], text[160];
    print_dims(text, dims);
    snprintf(head, sizeof(head), "<port id=\"%d\" precision=\"FP32\"%s%s%s>", id,
             name ? " names=\"" : "", name ? name : "", name ? "\"" : "");
    add(w->text, &w->n, "%s%s%s", head, text, "</port>");
}

static void
add_edge(struct writer *w, int from, int port, int to, int input)
{
    char text[160];
    snprintf(text, sizeof(text),
             "<edge from-layer=\"%d\" from-port=\"%d\" to-layer=\"%d\" to-port=\"%d\"/>",
             from, port, to, input);
    add(w->edge_text, &w->n_edges, "%s%s%s", text, "", "");
}

struct value {
    int layer, port;
    int64_t dims[2];
};

/* Writes a layer with n inputs and an output of this name; NULL: without a name. */
static struct value
add_layer(struct writer *w, const char *type, const char *data, const char *name,
          const struct value *in, int n, const int64_t *dims)
{
    const int id = (int)w->layers++;
    char head[300];
    struct value v = {id, n, {dims[0], dims[1]}};
    snprintf(head, sizeof(head),
             "<layer id=\"%d\" name=\"%s_node\" type=\"%s\" version=\"opset1\"><data ",
             id, name ? name : "sink", type);
    add(w->text, &w->n, "%s%s/>%s", head, data, n ? "<input>" : "");
    for (int i = 0; i < n; i++) {
        add_port(w, i, NULL, in[i].dims);
        add_edge(w, in[i].layer, in[i].port, id, i);
    }
    add(w->text, &w->n, "%s%s%s", n ? "</input>" : "", name ? "<output>" : "", "");
    if (name)
        add_port(w, n, name, dims);
    add(w->text, &w->n, "%s%s%s", name ? "</output>" : "", "</layer>", "");
    return v;
}

static struct value
add_parameter(struct writer *w, const char *name, int64_t rows, int64_t columns)
{
    const int64_t dims[] = {rows, columns};
    char number[24], data[120];
    snprintf(number, sizeof(number), "%lld", (long long)rows);
    snprintf(data, sizeof(data), "shape=\"%s,%lld\" element_type=\"f32\"",
             rows < 0 ? "?" : number, (long long)columns);
    return add_layer(w, "Parameter", data, name, NULL, 0, dims);
}

/* Writes a constant that consists of all weights. */
static struct value
add_constant(struct writer *w, int64_t rows, int64_t columns)
{
    const int64_t dims[] = {rows, columns};
    char data[160];
    snprintf(data, sizeof(data),
             "element_type=\"f32\" shape=\"%lld,%lld\" offset=\"0\" size=\"%lld\"",
             (long long)rows, (long long)columns, (long long)(4 * rows * columns));
    return add_layer(w, "Const", data, "weight", NULL, 0, dims);
}

/* Writes a product of a and b, or of a and b transposed. */
static struct value
add_product(struct writer *w, const char *name, struct value a, struct value b,
            bool transposed)
{
    const struct value in[] = {a, b};
    const int64_t dims[] = {a.dims[0], b.dims[transposed ? 0 : 1]};
    const char *data = transposed ? "transpose_a=\"false\" transpose_b=\"true\""
                                  : "transpose_a=\"false\" transpose_b=\"false\"";
    return add_layer(w, "MatMul", data, name, in, 2, dims);
}

/* Reads the model that was written; `weights` may be NULL. */
static ov_model_t *
finish(struct writer *w, const struct conformance *c, struct value result, float *weights,
       size_t bytes)
{
    ov_model_t *m = NULL;
    ov_tensor_t *t = NULL;
    int64_t size = (int64_t)bytes;
    const ov_shape_t shape = {1, &size};
    add_layer(w, "Result", "", NULL, &result, 1, result.dims);
    add(w->text, &w->n, "</layers><edges>%s</edges>%s%s", w->edge_text, "</net>", "");
    if (weights)
        GOOD(ov_tensor_create_from_host_ptr(U8, shape, weights, &t));
    GOOD(ov_core_read_model_from_memory_buffer(c->core, w->text, w->n, t, &m));
    ov_tensor_free(t);
    free(w->text);
    free(w->edge_text);
    return m;
}

/* ---- models ------------------------------------------------------------------------- */

/* The models use these arrays while the program runs. */
static float weight[MLP_IN * MLP_OUT], *heavy_weight;

static float
weight_at(int i)
{
    return 0.05f * (float)(i * 7 % 23) - 0.5f;
}

const float *
mlp_weight(void)
{
    for (int i = 0; i < MLP_IN * MLP_OUT; i++)
        weight[i] = weight_at(i);
    return weight;
}

void
mlp_expected(const float *data, float *prob)
{
    double sum = 0.0, z[MLP_OUT];
    for (int k = 0; k < MLP_OUT; k++) {
        z[k] = 0.0;
        for (int i = 0; i < MLP_IN; i++)
            z[k] += (double)data[i] * (double)weight_at(i * MLP_OUT + k);
        z[k] = exp(z[k]);
        sum += z[k];
    }
    for (int k = 0; k < MLP_OUT; k++)
        prob[k] = (float)(z[k] / sum);
}

ov_model_t *
make_mlp(const struct conformance *c, int rows)
{
    struct writer w;
    const int64_t dims[] = {rows, MLP_OUT};
    begin(&w, "mlp");
    const struct value data = add_parameter(&w, "data", rows, MLP_IN);
    const struct value product =
        add_product(&w, "product", data, add_constant(&w, MLP_IN, MLP_OUT), false);
    const struct value prob =
        add_layer(&w, "SoftMax", "axis=\"1\"", "prob", &product, 1, dims);
    mlp_weight();
    return finish(&w, c, prob, weight, sizeof(weight));
}

ov_model_t *
make_adder(const struct conformance *c, int rows)
{
    struct writer w;
    const int64_t dims[] = {rows, 2};
    begin(&w, "adder");
    const struct value in[] = {add_parameter(&w, "a", rows, 2),
                               add_parameter(&w, "b", rows, 2)};
    return finish(&w, c,
                  add_layer(&w, "Add", "auto_broadcast=\"numpy\"", "y", in, 2, dims),
                  NULL, 0);
}

ov_model_t *
make_heavy(const struct conformance *c)
{
    enum { PRODUCTS = 12 };
    const size_t bytes = sizeof(float) * HEAVY_SIZE * HEAVY_SIZE;
    struct writer w;
    begin(&w, "heavy");
    if (!heavy_weight)
        heavy_weight = calloc(HEAVY_SIZE * HEAVY_SIZE, sizeof(float));
    if (!heavy_weight)
        exit(EXIT_FAILURE);
    for (int i = 0; i < HEAVY_SIZE; i++)
        heavy_weight[i * HEAVY_SIZE + i] = 1.0f;
    struct value v = add_parameter(&w, "x", HEAVY_ROWS, HEAVY_SIZE);
    const struct value matrix = add_constant(&w, HEAVY_SIZE, HEAVY_SIZE);
    for (int i = 0; i < PRODUCTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "y%d", i);
        v = add_product(&w, name, v, matrix, true);
    }
    return finish(&w, c, v, heavy_weight, bytes);
}

/* ---- objects ------------------------------------------------------------------------ */

ov_compiled_model_t *
compile_model(const struct conformance *c, const ov_model_t *m)
{
    ov_compiled_model_t *compiled = NULL;
    GOOD(ov_core_compile_model(c->core, m, c->device, 2, &compiled,
                               "INFERENCE_PRECISION_HINT", "f32"));
    return compiled;
}

ov_infer_request_t *
make_request(const ov_compiled_model_t *m)
{
    ov_infer_request_t *r = NULL;
    GOOD(ov_compiled_model_create_infer_request(m, &r));
    return r;
}

ov_tensor_t *
wrap_floats(float *data, int64_t rows, int64_t columns)
{
    int64_t dims[] = {rows, columns};
    const ov_shape_t shape = {2, dims};
    ov_tensor_t *t = NULL;
    GOOD(ov_tensor_create_from_host_ptr(F32, shape, data, &t));
    return t;
}

bool
are_within(const float *a, const float *b, size_t n, float most)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(a[i] - b[i]) <= most))
            return false;
    }
    return true;
}

bool
are_near(const float *a, const float *b, size_t n)
{
    return are_within(a, b, n, 1e-5f);
}
