/* SPDX-License-Identifier: Apache-2.0
 *
 * An example of a device plugin: plain C on the processor. It includes only xemoe/plugin.h of
 * xemoe.
 *
 * It computes MatMul, Add and SoftMax of f32 itself. The host runs all other operations, and
 * those that its functions decline. Nodes that depend on no input are run once, when the model is
 * compiled; so packed weights of a file are unpacked there, which a faster device would avoid.
 * States belong to a request.
 */
#define _POSIX_C_SOURCE 200809L
#define XM_EXT_PLUGIN
#include <xemoe/plugin.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NO_STATE = -1 };

static const xm_ext_host *_Atomic host; /* set again for each device of the plugin */
/* whether new models measure unless told otherwise */
static atomic_int measures_first;

/* ---- memory ------------------------------------------------------------------------ */

/* Blocks that are freed together: of a compiled model, or of a run. */
struct memory {
    struct block *last;
};
struct block {
    struct block *before;
    double bytes[]; /* aligned for all numbers */
};

static void *
take(void *memory, uint64_t bytes)
{
    struct memory *m = memory;
    struct block *b = malloc(sizeof(*b) + (size_t)bytes);
    if (!b)
        return NULL;
    b->before = m->last;
    m->last = b;
    return b->bytes;
}

static void
release(struct memory *m)
{
    while (m->last) {
        struct block *before = m->last->before;
        free(m->last);
        m->last = before;
    }
}

/* ---- compiled models --------------------------------------------------------------- */

struct step;
/* Computes out[0]. XM_EXT_UNSUPPORTED: declines, and the host runs the node. */
typedef int32_t (*kernel_fn)(const struct step *s, const xm_ext_tensor *in,
                             xm_ext_tensor *out, struct memory *memory);

struct step {
    xm_ext_node node;
    const char *kernel_name;
    kernel_fn kernel; /* NULL: the host runs it                             */
    int transpose_a, transpose_b;
    long axis;            /* of SoftMax                                         */
    int is_fixed;         /* depends on no input: `values` has its results */
    int reads, writes;    /* the state's number; NO_STATE: none */
    uint32_t first_value; /* the index of its first result among all values */
};

struct compiled {
    const xm_ext_model *model;
    struct step *steps;
    xm_ext_tensor *values; /* the results of fixed steps; others are zero */
    uint32_t n_steps, n_values, n_states, n_inputs;
    atomic_int measures;
    struct memory memory;
};

struct state {
    xm_ext_tensor value; /* data NULL: empty; else allocated by malloc */
};

struct request {
    struct compiled *owner;
    xm_ext_tensor *inputs, *values;
    struct state *states;
    uint64_t *ns, *runs;  /* for each step */
    struct memory memory; /* memory of the last run */
    atomic_int cancelled;
};

static int32_t
fail(xm_ext_error *err, int32_t status, const char *text)
{
    snprintf(err->text, sizeof(err->text), "%s", text);
    return status;
}

static const char *
attribute(const struct compiled *c, uint32_t node, const char *wanted)
{
    for (uint32_t i = 0; i < c->steps[node].node.n_attributes; i++) {
        const char *key, *value;
        host->model_attribute(c->model, node, i, &key, &value);
        if (strcmp(key, wanted) == 0)
            return value;
    }
    return "";
}

/* ---- kernels ----------------------------------------------------------------------- */

/* Returns element i. Values of a file may be unaligned. */
static float
get(const xm_ext_tensor *t, uint64_t i)
{
    float f;
    memcpy(&f, (const char *)t->data + 4 * i, sizeof(f));
    return f;
}

static uint64_t
count(const xm_ext_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dim[i];
    return n;
}

/* Makes out an f32 result with the dimensions of `like`; returns its elements, NULL without
 * memory. */
static float *
make(xm_ext_tensor *out, const xm_ext_tensor *like, struct memory *memory)
{
    *out = *like;
    out->data = take(memory, out->bytes = 4 * count(out));
    return out->data;
}

/* y[.., M, N] = a[.., M, K] b[K, N], or b[N, K] if b is transposed. */
static int32_t
matmul(const struct step *s, const xm_ext_tensor *in, xm_ext_tensor *out,
       struct memory *memory)
{
    const xm_ext_tensor *a = &in[0], *b = &in[1];
    if (s->transpose_a || a->rank < 2 || b->rank != 2)
        return XM_EXT_UNSUPPORTED;
    const uint64_t k = (uint64_t)a->dim[a->rank - 1];
    const uint64_t n = (uint64_t)b->dim[s->transpose_b ? 0 : 1];
    if ((uint64_t)b->dim[s->transpose_b ? 1 : 0] != k || k == 0)
        return XM_EXT_UNSUPPORTED;
    const uint64_t rows = count(a) / k;
    xm_ext_tensor like = *a;
    like.dim[a->rank - 1] = (int64_t)n;
    float *y = make(out, &like, memory);
    if (!y)
        return XM_EXT_NO_MEMORY;
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < n; c++) {
            double sum = 0;
            for (uint64_t i = 0; i < k; i++)
                sum += (double)get(a, r * k + i) *
                       get(b, s->transpose_b ? c * k + i : i * n + c);
            y[r * n + c] = (float)sum;
        }
    }
    return XM_EXT_OK;
}

/* Adds tensors of equal shapes. */
static int32_t
add(const struct step *s, const xm_ext_tensor *in, xm_ext_tensor *out,
    struct memory *memory)
{
    (void)s;
    if (in[0].rank != in[1].rank || memcmp(in[0].dim, in[1].dim, sizeof(in[0].dim)) != 0)
        return XM_EXT_UNSUPPORTED;
    float *y = make(out, &in[0], memory);
    if (!y)
        return XM_EXT_NO_MEMORY;
    for (uint64_t i = 0; i < count(out); i++)
        y[i] = get(&in[0], i) + get(&in[1], i);
    return XM_EXT_OK;
}

/* Softmax over the last dimension. */
static int32_t
softmax(const struct step *s, const xm_ext_tensor *in, xm_ext_tensor *out,
        struct memory *memory)
{
    const xm_ext_tensor *x = &in[0];
    if (x->rank == 0 || (s->axis != -1 && s->axis != (long)x->rank - 1) || !count(x))
        return XM_EXT_UNSUPPORTED;
    const uint64_t n = (uint64_t)x->dim[x->rank - 1];
    float *y = make(out, x, memory);
    if (!y)
        return XM_EXT_NO_MEMORY;
    for (uint64_t first = 0; first < count(x); first += n) {
        float most = get(x, first);
        double sum = 0;
        for (uint64_t i = 1; i < n; i++)
            most = fmaxf(most, get(x, first + i));
        for (uint64_t i = 0; i < n; i++)
            sum += y[first + i] = expf(get(x, first + i) - most);
        for (uint64_t i = 0; i < n; i++)
            y[first + i] = (float)(y[first + i] / sum);
    }
    return XM_EXT_OK;
}

static const struct {
    const char *op, *name;
    kernel_fn run;
} kernels[] = {
    {"MatMul", "example_matmul", matmul},
    {"Add", "example_add", add},
    {"SoftMax", "example_softmax", softmax},
};
enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

/* ---- one step ---------------------------------------------------------------------- */

static int
are_f32(const xm_ext_tensor *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (in[i].element != XM_EXT_F32 || !in[i].data)
            return 0;
    }
    return 1;
}

/* Runs node i on the values so far; its results are allocated in `memory`. */
static int32_t
run_step(const struct compiled *c, uint32_t i, xm_ext_tensor *values,
         struct memory *memory, xm_ext_error *err)
{
    const struct step *s = &c->steps[i];
    int32_t status = XM_EXT_UNSUPPORTED;
    xm_ext_tensor *out = &values[s->first_value];
    xm_ext_tensor *in = calloc(s->node.n_in + 1u, sizeof(*in));
    if (!in)
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for operands");
    for (uint32_t k = 0; k < s->node.n_in; k++) {
        const xm_ext_value v = s->node.in[k];
        if (v.node != XM_EXT_NONE)
            in[k] = values[c->steps[v.node].first_value + v.output];
    }
    if (s->kernel && are_f32(in, s->node.n_in))
        status = s->kernel(s, in, out, memory);
    if (status == XM_EXT_UNSUPPORTED)
        status = host->run_node(c->model, i, in, out, take, memory, err);
    else if (status != XM_EXT_OK)
        fail(err, status, "out of memory for a result");
    free(in);
    return status;
}

/* ---- compiling --------------------------------------------------------------------- */

static int
is_op(const struct step *s, const char *op)
{
    return strcmp(s->node.op, op) == 0;
}

/* Returns whether the step gives the same results in every run. */
static int
is_fixed(const struct compiled *c, const struct step *s)
{
    static const char *const never[] = {"Parameter", "ReadValue", "Assign", "Result"};
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (is_op(s, never[i]))
            return 0;
    }
    for (uint32_t k = 0; k < s->node.n_in; k++) {
        const uint32_t node = s->node.in[k].node;
        if (node != XM_EXT_NONE && !c->steps[node].is_fixed)
            return 0;
    }
    return 1;
}

/* Returns the number of a variable's state, the one of the first step that uses it. */
static int
find_state(struct compiled *c, uint32_t node)
{
    const char *name = attribute(c, node, "variable_id");
    for (uint32_t i = 0; i < node; i++) {
        const struct step *s = &c->steps[i];
        if ((s->reads != NO_STATE || s->writes != NO_STATE) &&
            strcmp(attribute(c, i, "variable_id"), name) == 0)
            return s->reads != NO_STATE ? s->reads : s->writes;
    }
    return (int)c->n_states++;
}

static int32_t
compile_step(struct compiled *c, uint32_t i, xm_ext_error *err)
{
    struct step *s = &c->steps[i];
    for (int k = 0; k < N_KERNELS; k++) {
        if (is_op(s, kernels[k].op)) {
            s->kernel = kernels[k].run;
            s->kernel_name = kernels[k].name;
        }
    }
    s->transpose_a = strcmp(attribute(c, i, "transpose_a"), "true") == 0;
    s->transpose_b = strcmp(attribute(c, i, "transpose_b"), "true") == 0;
    s->axis = strtol(attribute(c, i, "axis"), NULL, 10);
    s->reads = s->writes = NO_STATE;
    if (is_op(s, "ReadValue"))
        s->reads = find_state(c, i);
    if (is_op(s, "Assign"))
        s->writes = find_state(c, i);
    s->is_fixed = is_fixed(c, s);
    if (!s->is_fixed)
        return XM_EXT_OK;
    if (is_op(s, "Const"))
        return host->model_constant(c->model, i, &c->values[s->first_value]);
    /* its format is known only to the host, which reads it itself */
    if (is_op(s, "weight"))
        return XM_EXT_OK;
    return run_step(c, i, c->values, &c->memory, err);
}

static int32_t
compile_steps(struct compiled *c, xm_ext_error *err)
{
    c->n_steps = host->model_nodes(c->model);
    c->n_inputs = host->model_ports(c->model, 0);
    c->steps = calloc(c->n_steps + 1u, sizeof(*c->steps));
    if (!c->steps)
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for the steps");
    for (uint32_t i = 0; i < c->n_steps; i++) {
        host->model_node(c->model, i, &c->steps[i].node);
        c->steps[i].kernel_name = "host";
        c->steps[i].first_value = c->n_values;
        c->n_values += c->steps[i].node.n_out;
    }
    c->values = calloc(c->n_values + 1u, sizeof(*c->values));
    if (!c->values)
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for the values");
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const int32_t status = compile_step(c, i, err);
        if (status != XM_EXT_OK)
            return status;
    }
    return XM_EXT_OK;
}

static void
destroy_compiled(void *compiled)
{
    struct compiled *c = compiled;
    host->model_release(c->model);
    release(&c->memory);
    free(c->values);
    free(c->steps);
    free(c);
}

static int32_t
compiled_property(void *compiled, const char *key, const xm_ext_sink *out,
                  xm_ext_error *err)
{
    const char *value = ((struct compiled *)compiled)->measures ? "YES" : "NO";
    (void)err;
    if (strcmp(key, "PERF_COUNT") != 0)
        return XM_EXT_NOT_FOUND; /* the host answers some of these keys */
    out->add(out->ctx, value, strlen(value));
    return XM_EXT_OK;
}

/* `measures` is that of a model, or the default for new models. */
static int32_t
set_option(atomic_int *measures, const char *key, const char *value, xm_ext_error *err)
{
    if (strcmp(key, "PERF_COUNT") == 0) {
        *measures = strcmp(value, "YES") == 0;
        return XM_EXT_OK;
    }
    snprintf(err->text, sizeof(err->text), "there is no property '%.200s'", key);
    return XM_EXT_NOT_FOUND;
}

static int32_t
compile(void *plugin, uint32_t device, const xm_ext_model *m,
        const xm_ext_property *properties, uint32_t n, void **compiled, xm_ext_error *err)
{
    int32_t status = XM_EXT_OK;
    struct compiled *c = calloc(1, sizeof(*c));
    (void)plugin;
    (void)device;
    if (!c)
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for a model");
    c->model = host->model_retain(m);
    c->measures = measures_first;
    for (uint32_t i = 0; i < n && status == XM_EXT_OK; i++)
        status = set_option(&c->measures, properties[i].key, properties[i].value, err);
    if (status == XM_EXT_OK)
        status = compile_steps(c, err);
    if (status == XM_EXT_OK)
        *compiled = c;
    else
        destroy_compiled(c);
    return status;
}

/* ---- requests ---------------------------------------------------------------------- */

static void
reset(void *request)
{
    struct request *r = request;
    for (uint32_t i = 0; i < r->owner->n_states; i++) {
        free(r->states[i].value.data);
        r->states[i].value.data = NULL;
    }
}

static void
destroy_request(void *request)
{
    struct request *r = request;
    if (r->states)
        reset(r);
    release(&r->memory);
    free(r->inputs);
    free(r->values);
    free(r->states);
    free(r->ns);
    free(r->runs);
    free(r);
}

static int32_t
create_request(void *compiled, void **request, xm_ext_error *err)
{
    struct compiled *c = compiled;
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for a request");
    r->owner = c;
    r->inputs = calloc(c->n_inputs + 1u, sizeof(*r->inputs));
    r->values = calloc(c->n_values + 1u, sizeof(*r->values));
    r->states = calloc(c->n_states + 1u, sizeof(*r->states));
    r->ns = calloc(c->n_steps + 1u, sizeof(*r->ns));
    r->runs = calloc(c->n_steps + 1u, sizeof(*r->runs));
    if (!r->inputs || !r->values || !r->states || !r->ns || !r->runs) {
        destroy_request(r);
        return fail(err, XM_EXT_NO_MEMORY, "out of memory for a request");
    }
    *request = r;
    return XM_EXT_OK;
}

static int32_t
set_input(void *request, uint32_t i, const xm_ext_tensor *t, xm_ext_error *err)
{
    (void)err;
    ((struct request *)request)->inputs[i] = *t;
    return XM_EXT_OK;
}

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs step i; for ReadValue a state that was written replaces the node's own result. */
static int32_t
run_one(struct request *r, uint32_t i, xm_ext_error *err)
{
    const struct step *s = &r->owner->steps[i];
    if (s->reads == NO_STATE || !r->states[s->reads].value.data)
        return run_step(r->owner, i, r->values, &r->memory, err);
    r->values[s->first_value] = r->states[s->reads].value;
    return XM_EXT_OK;
}

/* Copies all states first, so that either all states change or none. */
static int32_t
keep_states(struct request *r, xm_ext_error *err)
{
    const struct compiled *c = r->owner;
    struct state *fresh = calloc(c->n_states + 1u, sizeof(*fresh));
    int32_t status = fresh ? XM_EXT_OK : XM_EXT_NO_MEMORY;
    for (uint32_t i = 0; i < c->n_steps && status == XM_EXT_OK; i++) {
        if (c->steps[i].writes == NO_STATE)
            continue;
        xm_ext_tensor *to = &fresh[c->steps[i].writes].value;
        *to = r->values[c->steps[i].first_value];
        const void *from = to->data;
        to->data = malloc((size_t)to->bytes + 1);
        if (to->data)
            memcpy(to->data, from, (size_t)to->bytes);
        else
            status = XM_EXT_NO_MEMORY;
    }
    for (uint32_t i = 0; fresh && i < c->n_states; i++) {
        struct state *old = &r->states[i];
        if (!fresh[i].value.data)
            continue;
        free(status == XM_EXT_OK ? old->value.data : fresh[i].value.data);
        if (status == XM_EXT_OK)
            *old = fresh[i];
    }
    free(fresh);
    return status == XM_EXT_OK ? status
                               : fail(err, status, "out of memory for the states");
}

static int32_t
infer(void *request, xm_ext_error *err)
{
    struct request *r = request;
    const struct compiled *c = r->owner;
    release(&r->memory);
    memcpy(r->values, c->values, c->n_values * sizeof(*r->values));
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        xm_ext_port port;
        host->model_port(c->model, 0, i, &port);
        r->values[c->steps[port.node].first_value] = r->inputs[i];
    }
    for (uint32_t i = 0; i < c->n_steps; i++) {
        if (c->steps[i].is_fixed || is_op(&c->steps[i], "Parameter"))
            continue;
        if (r->cancelled)
            return fail(err, XM_EXT_CANCELLED, "cancelled between two operations");
        const uint64_t start = c->measures ? now_ns() : 0;
        const int32_t status = run_one(r, i, err);
        if (status != XM_EXT_OK)
            return status;
        r->ns[i] += c->measures ? now_ns() - start : 0;
        r->runs[i]++;
    }
    return keep_states(r, err);
}

static int32_t
output(void *request, uint32_t i, xm_ext_tensor *out, xm_ext_error *err)
{
    const struct request *r = request;
    xm_ext_port port;
    (void)err;
    host->model_port(r->owner->model, 1, i, &port);
    *out = r->values[r->owner->steps[port.node].first_value];
    return XM_EXT_OK;
}

static void
cancel(void *request)
{
    ((struct request *)request)->cancelled = 1;
}

static void
resume(void *request)
{
    ((struct request *)request)->cancelled = 0;
}

static int32_t
profile(void *request, void (*row)(void *ctx, const xm_ext_step *step), void *ctx,
        xm_ext_error *err)
{
    const struct request *r = request;
    const struct compiled *c = r->owner;
    if (!c->measures)
        return fail(err, XM_EXT_INVALID, "the model was compiled without PERF_COUNT=YES");
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const struct step *s = &c->steps[i];
        const xm_ext_step told = {.name = s->node.name,
                                  .type = s->node.op,
                                  .precision = "f32",
                                  .kernel = s->kernel_name,
                                  .runs = r->runs[i],
                                  .ns = r->ns[i],
                                  .on_host = s->kernel == NULL};
        if (!s->is_fixed)
            row(ctx, &told);
    }
    return XM_EXT_OK;
}

static void
profile_reset(void *request)
{
    struct request *r = request;
    memset(r->ns, 0, r->owner->n_steps * sizeof(*r->ns));
    memset(r->runs, 0, r->owner->n_steps * sizeof(*r->runs));
}

/* ---- the plugin -------------------------------------------------------------------- */

static int32_t
get_property(void *plugin, uint32_t device, const char *key, const xm_ext_sink *out,
             xm_ext_error *err)
{
    const char *const rows[][2] = {
        {"PERF_COUNT", measures_first ? "YES" : "NO"},
        {"FULL_DEVICE_NAME", "plain C on the processor"},
        {"OPTIMIZATION_CAPABILITIES", "FP32"},
        {"SUPPORTED_PROPERTIES",
         "SUPPORTED_PROPERTIES AVAILABLE_DEVICES FULL_DEVICE_NAME DEVICE_TYPE "
         "OPTIMIZATION_CAPABILITIES PERF_COUNT"},
    };
    (void)plugin;
    (void)device;
    (void)err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i][0], key) == 0) {
            out->add(out->ctx, rows[i][1], strlen(rows[i][1]));
            return XM_EXT_OK;
        }
    }
    return XM_EXT_NOT_FOUND;
}

static int32_t
set_property(void *plugin, const char *key, const char *value, xm_ext_error *err)
{
    (void)plugin;
    return set_option(&measures_first, key, value, err);
}

static int32_t
query_model(void *plugin, uint32_t device, const xm_ext_model *m,
            void (*supported)(void *ctx, uint32_t node), void *ctx, xm_ext_error *err)
{
    (void)plugin;
    (void)device;
    (void)err;
    for (uint32_t i = 0; i < host->model_nodes(m); i++)
        supported(ctx, i);
    return XM_EXT_OK;
}

static const xm_ext_ops ops = {
    .version = XM_EXT_VERSION,
    .bytes = sizeof(xm_ext_ops),
    .description = "example plugin 1.0",
    .get_property = get_property,
    .set_property = set_property,
    .query_model = query_model,
    .compile = compile,
    .compiled_property = compiled_property,
    .create_request = create_request,
    .destroy_compiled = destroy_compiled,
    .set_input = set_input,
    .infer = infer,
    .output = output,
    .reset = reset,
    .cancel = cancel,
    .resume = resume,
    .profile = profile,
    .profile_reset = profile_reset,
    .destroy_request = destroy_request,
};

int32_t
xm_ext_entry(uint32_t version, const xm_ext_host *the_host, const xm_ext_ops **table,
             void **plugin, xm_ext_error *err)
{
    *table = &ops;
    *plugin = NULL; /* one device without data of its own */
    if (version != XM_EXT_VERSION)
        return fail(err, XM_EXT_UNSUPPORTED,
                    "made for another version of xemoe/plugin.h");
    host = the_host;
    return XM_EXT_OK;
}
