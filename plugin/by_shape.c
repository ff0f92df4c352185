/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/by_shape.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "plugin/bind.h"
#include "transformations/graph/reshape.h"

enum { MOST_PROGRAMS = 8 };

/* Shapes are compared as bytes; therefore the struct must not have padding. */
struct shape {
    int64_t rank;
    int64_t dim[XM_MAX_RANK];
};

struct entry {
    struct shape *shapes;   /* of all inputs; owned */
    struct xm_compiled *of; /* NULL: the entry is free */
    uint64_t last_use;
};

/* A program that a thread is compiling; on the stack of that thread. */
struct job {
    struct job *next;
    const struct shape *shapes;
};

struct by_shape {
    struct xm_compiled base;    /* first */
    struct xm_kept_graph *kept; /* referenced */
    struct xm_shape_compiler compiler;
    /* protects the members below; not held while a program is compiled */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* signals the end of a job */
    struct job *jobs;
    struct entry entries[MOST_PROGRAMS];
    uint64_t uses;
    struct xm_compiled *first; /* answers questions about the model; referenced */
};

struct request {
    struct xm_infer base; /* first */
    struct xm_host_tensor *inputs;
    struct xm_remote **remote_inputs, **remote_outputs; /* by port; owned by the caller */
    /* the request for the last shapes; NULL before the first run */
    _Atomic(struct xm_infer *) inner;
    struct shape *shapes; /* the input shapes of `inner` */
    /* For `cancel`, which may run in a signal handler and must not take a lock. */
    atomic_bool is_cancelled;
    atomic_int n_reaching; /* number of threads that use `inner` but do not run it */
};

static struct by_shape *
owner_of(const struct request *r)
{
    return (struct by_shape *)r->base.compiled;
}

/* ---- programs --------------------------------------------------------------------------- */

static void
shapes_of(const struct xm_host_tensor *inputs, uint32_t n, struct shape *out)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (struct shape){.rank = inputs[i].rank};
        memcpy(out[i].dim, inputs[i].dim, inputs[i].rank * sizeof(int64_t));
    }
}

static bool
same_shapes(const struct shape *a, const struct shape *b, uint32_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof(*a)) == 0;
}

static enum xm_status
reshaped(const struct by_shape *c, const struct shape *shapes, struct xm_graph **out,
         struct xm_error *err)
{
    const uint32_t n = c->base.ports.n_inputs;
    struct xm_input_shape *wanted = xm_calloc(n + 1, sizeof(*wanted));
    if (!wanted)
        return xm_no_memory(err, "a program of these shapes");
    for (uint32_t i = 0; i < n; i++) {
        wanted[i].input = i;
        wanted[i].rank = (uint32_t)shapes[i].rank;
        for (int64_t d = 0; d < shapes[i].rank; d++)
            wanted[i].dim[d] = (struct xm_bound){shapes[i].dim[d], shapes[i].dim[d]};
    }
    struct xm_graph *g = NULL;
    enum xm_status s = xm_graph_clone(c->kept->graph, &c->kept->base, &g, err);
    if (s == XM_OK)
        s = xm_graph_reshape(g, wanted, n, err);
    xm_free(wanted);
    if (s == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return s;
}

/* Returns a free entry, or the least recently used one. */
static struct entry *
place_for_one(struct by_shape *c)
{
    struct entry *best = &c->entries[0];
    for (size_t i = 0; i < MOST_PROGRAMS; i++) {
        struct entry *e = &c->entries[i];
        if (!e->of)
            return e;
        if (e->last_use < best->last_use)
            best = e;
    }
    return best;
}

static struct entry *
find_program(struct by_shape *c, const struct shape *shapes)
{
    for (size_t i = 0; i < MOST_PROGRAMS; i++) {
        struct entry *e = &c->entries[i];
        if (e->of && same_shapes(e->shapes, shapes, c->base.ports.n_inputs))
            return e;
    }
    return NULL;
}

static bool
is_under_way(const struct by_shape *c, const struct shape *shapes)
{
    const struct job *j = c->jobs;
    while (j && !same_shapes(j->shapes, shapes, c->base.ports.n_inputs))
        j = j->next;
    return j != NULL;
}

static void
end_job(struct by_shape *c, const struct job *job)
{
    struct job **at = &c->jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    pthread_cond_broadcast(&c->ended);
}

/* Compiles a program and stores it. The caller holds the lock, which is released while
 * compiling. */
static enum xm_status
add_program(struct by_shape *c, const struct shape *shapes, struct entry **out,
            struct xm_error *err)
{
    const uint32_t n = c->base.ports.n_inputs;
    struct job job = {c->jobs, shapes};
    struct xm_graph *g = NULL;
    struct xm_compiled *made = NULL;
    c->jobs = &job;
    pthread_mutex_unlock(&c->lock);
    struct shape *copy = xm_calloc(n + 1, sizeof(*copy));
    enum xm_status s = copy ? reshaped(c, shapes, &g, err)
                            : xm_no_memory(err, "a program of these shapes");
    if (s == XM_OK)
        s = c->compiler.compile(c->compiler.ctx, g, &made, err);
    pthread_mutex_lock(&c->lock);
    end_job(c, &job);
    if (s != XM_OK) {
        xm_free(copy);
        return s;
    }
    memcpy(copy, shapes, n * sizeof(*copy));
    struct entry *e = place_for_one(c);
    xm_compiled_unref(e->of); /* requests hold their own references */
    xm_free(e->shapes);
    *e = (struct entry){.shapes = copy, .of = made};
    *out = e;
    return XM_OK;
}

/* Returns a new reference to the program for these shapes. If another thread is compiling it, waits
 * for that; if that thread failed, compiles it here. */
static enum xm_status
program_for(struct by_shape *c, const struct shape *shapes, struct xm_compiled **out,
            struct xm_error *err)
{
    struct entry *e = NULL;
    enum xm_status s = XM_OK;
    pthread_mutex_lock(&c->lock);
    while (!(e = find_program(c, shapes)) && is_under_way(c, shapes))
        pthread_cond_wait(&c->ended, &c->lock);
    if (!e)
        s = add_program(c, shapes, &e, err);
    if (s == XM_OK) {
        e->last_use = ++c->uses;
        *out = e->of;
        xm_compiled_ref(*out);
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

/* ---- requests --------------------------------------------------------------------------- */

static enum xm_status
set_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
          struct xm_error *err)
{
    struct request *r = (struct request *)base;
    const struct xm_ports *ports = &base->compiled->ports;
    if (input >= ports->n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    XM_TRY(xm_port_check(&ports->inputs[input], t, err));
    r->inputs[input] = *t;
    r->remote_inputs[input] = NULL;
    return XM_OK;
}

static enum xm_status
set_remote_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
                 struct xm_remote *m, struct xm_error *err)
{
    struct xm_host_tensor shape = *t;
    shape.data = m; /* not NULL, so that set_input accepts the tensor */
    XM_TRY(set_input(base, input, &shape, err));
    ((struct request *)base)->remote_inputs[input] = m;
    return XM_OK;
}

static enum xm_status
set_remote_output(struct xm_infer *base, uint32_t i, struct xm_remote *m,
                  struct xm_error *err)
{
    if (i >= base->compiled->ports.n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", i);
    ((struct request *)base)->remote_outputs[i] = m;
    return XM_OK;
}

/* Makes cancels reach the new request. The old one is destroyed when no other thread uses it any
 * more; such a use only sets its cancel flag, so that spinning is short. */
static void
take_inner(struct request *r, struct xm_infer *inner)
{
    struct xm_infer *old = atomic_exchange(&r->inner, inner);
    if (atomic_load(&r->is_cancelled))
        inner->ops->cancel(inner);
    while (atomic_load(&r->n_reaching))
        sched_yield();
    xm_infer_destroy(old);
}

static enum xm_status
choose_inner(struct request *r, struct xm_error *err)
{
    const uint32_t n = r->base.compiled->ports.n_inputs;
    struct xm_compiled *c = NULL;
    struct xm_infer *inner = NULL;
    struct shape *shapes = xm_calloc(n + 1, sizeof(*shapes));
    if (!shapes)
        return xm_no_memory(err, "a program of these shapes");
    shapes_of(r->inputs, n, shapes);
    if (r->inner && same_shapes(shapes, r->shapes, n)) {
        xm_free(shapes);
        return XM_OK;
    }
    enum xm_status s = program_for(owner_of(r), shapes, &c, err);
    if (s == XM_OK)
        s = xm_compiled_create_request(c, &inner, err);
    xm_compiled_unref(c);
    if (s != XM_OK) {
        xm_free(shapes);
        return s;
    }
    xm_free(r->shapes);
    r->shapes = shapes;
    take_inner(r, inner);
    return XM_OK;
}

/* Sets the inputs and remote memory on the request for these shapes. It fails for memory of another
 * context. */
static enum xm_status
hand_over(struct request *r, struct xm_error *err)
{
    const struct xm_ports *ports = &r->base.compiled->ports;
    struct xm_infer *inner = r->inner;
    const struct xm_infer_ops *ops = inner->ops;
    for (uint32_t i = 0; i < ports->n_inputs; i++) {
        struct xm_remote *m = r->remote_inputs[i];
        XM_TRY(m ? ops->set_remote_input(inner, i, &r->inputs[i], m, err)
                 : ops->set_input(inner, i, &r->inputs[i], err));
    }
    for (uint32_t i = 0; i < ports->n_outputs && ops->set_remote_output; i++)
        XM_TRY(ops->set_remote_output(inner, i, r->remote_outputs[i], err));
    return XM_OK;
}

static enum xm_status
infer(struct xm_infer *base, struct xm_error *err)
{
    struct request *r = (struct request *)base;
    const struct xm_ports *ports = &base->compiled->ports;
    for (uint32_t i = 0; i < ports->n_inputs; i++) {
        if (!r->inputs[i].data)
            return xm_fail(err, XM_INVALID, "input '%s' has not been set",
                           ports->inputs[i].name);
    }
    XM_TRY(choose_inner(r, err));
    XM_TRY(hand_over(r, err));
    struct xm_infer *inner = r->inner;
    return inner->ops->infer(inner, err);
}

static enum xm_status
output(struct xm_infer *base, uint32_t i, struct xm_host_tensor *t, struct xm_error *err)
{
    struct xm_infer *inner = ((struct request *)base)->inner;
    return inner ? inner->ops->output(inner, i, t, err)
                 : xm_fail(err, XM_INVALID,
                           "output %u has no value before a run that succeeds", i);
}

static enum xm_status
describe_output(struct xm_infer *base, uint32_t i, struct xm_host_tensor *t,
                struct xm_error *err)
{
    struct xm_infer *inner = ((struct request *)base)->inner;
    return inner ? inner->ops->describe_output(inner, i, t, err)
                 : xm_fail(err, XM_INVALID,
                           "output %u has no value before a run that succeeds", i);
}

/* Does nothing: these models have no states. */
static void
reset(struct xm_infer *base)
{
    (void)base;
}

static uint64_t
past(const struct xm_infer *base)
{
    (void)base;
    return 0;
}

static void
cancel(struct xm_infer *base)
{
    struct request *r = (struct request *)base;
    atomic_fetch_add(&r->n_reaching, 1);
    atomic_store(&r->is_cancelled, true);
    struct xm_infer *inner = r->inner;
    if (inner)
        inner->ops->cancel(inner);
    atomic_fetch_sub(&r->n_reaching, 1);
}

/* A cancel between the two stores must not be lost: it is repeated. */
static void
resume(struct xm_infer *base)
{
    struct request *r = (struct request *)base;
    atomic_fetch_add(&r->n_reaching, 1);
    atomic_store(&r->is_cancelled, false);
    struct xm_infer *inner = r->inner;
    if (inner)
        inner->ops->resume(inner);
    if (inner && atomic_load(&r->is_cancelled))
        inner->ops->cancel(inner);
    atomic_fetch_sub(&r->n_reaching, 1);
}

static void
destroy_request(struct xm_infer *base)
{
    struct request *r = (struct request *)base;
    xm_infer_destroy(r->inner);
    xm_free(r->inputs);
    xm_free(r->remote_inputs);
    xm_free(r->remote_outputs);
    xm_free(r->shapes);
    xm_free(r);
}

/* ---- measurements of the program that ran last ----------------------------------------------- */

static enum xm_status
profile_rows(struct xm_infer *base, xm_profile_row_fn fn, void *ctx, struct xm_error *err)
{
    struct xm_infer *inner = ((struct request *)base)->inner;
    return inner && inner->ops->profile
               ? inner->ops->profile->rows(inner, fn, ctx, err)
               : xm_fail(err, XM_INVALID, "no measured run has ended yet");
}

static void
profile_reset(struct xm_infer *base)
{
    struct xm_infer *inner = ((struct request *)base)->inner;
    if (inner && inner->ops->profile)
        inner->ops->profile->reset(inner);
}

static enum xm_status
begin_trace(struct xm_infer *base, struct xm_error *err)
{
    (void)base;
    return xm_fail(err, XM_UNSUPPORTED,
                   "a model that is compiled for each input shape offers no trace");
}

static enum xm_status
no_trace(struct xm_infer *base, xm_trace_row_fn fn, void *ctx, uint64_t *dropped,
         struct xm_error *err)
{
    (void)fn;
    (void)ctx;
    *dropped = 0;
    return begin_trace(base, err);
}

static const struct xm_profile_ops profile_ops = {
    .rows = profile_rows,
    .reset = profile_reset,
    .begin_trace = begin_trace,
    .trace = no_trace,
};

static const struct xm_infer_ops infer_ops = {
    .set_input = set_input,
    .infer = infer,
    .output = output,
    .set_remote_input = set_remote_input,
    .set_remote_output = set_remote_output,
    .describe_output = describe_output,
    .reset = reset,
    .past = past,
    .cancel = cancel,
    .resume = resume,
    .destroy = destroy_request,
    .profile = &profile_ops,
};

/* ---- the compiled model ------------------------------------------------------------------- */

static enum xm_status
create_request(struct xm_compiled *c, struct xm_infer **out, struct xm_error *err)
{
    struct request *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    r->base.ops = &infer_ops;
    r->inputs = xm_calloc(c->ports.n_inputs + 1, sizeof(*r->inputs));
    r->remote_inputs = xm_calloc(c->ports.n_inputs + 1, sizeof(struct xm_remote *));
    r->remote_outputs = xm_calloc(c->ports.n_outputs + 1, sizeof(struct xm_remote *));
    if (!r->inputs || !r->remote_inputs || !r->remote_outputs) {
        destroy_request(&r->base);
        return xm_no_memory(err, "a request");
    }
    *out = &r->base;
    return XM_OK;
}

static struct xm_compiled *
first_of(struct xm_compiled *c)
{
    return ((struct by_shape *)c)->first;
}

static enum xm_status
get_property(struct xm_compiled *c, const char *key, struct xm_strbuf *out,
             struct xm_error *err)
{
    struct xm_compiled *first = first_of(c);
    return first->ops->get_property(first, key, out, err);
}

static void
print(struct xm_compiled *c, struct xm_strbuf *out)
{
    xm_strbuf_add(
        out, "a program for each set of input shapes; the program for small shapes:\n");
    first_of(c)->ops->print(first_of(c), out);
}

/* Returns a new reference to the program that ran last, or the first one. */
static struct xm_compiled *
latest_of(struct xm_compiled *base)
{
    struct by_shape *c = (struct by_shape *)base;
    const struct entry *latest = NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < MOST_PROGRAMS; i++) {
        const struct entry *e = &c->entries[i];
        if (e->of && (!latest || e->last_use > latest->last_use))
            latest = e;
    }
    struct xm_compiled *found = latest ? latest->of : c->first;
    xm_compiled_ref(found);
    pthread_mutex_unlock(&c->lock);
    return found;
}

static enum xm_status
exec_graph(struct xm_compiled *c, struct xm_exec_graph *out, struct xm_error *err)
{
    struct xm_compiled *latest = latest_of(c);
    const enum xm_status s =
        latest->ops->exec_graph
            ? latest->ops->exec_graph(latest, out, err)
            : xm_fail(err, XM_UNSUPPORTED, "this device does not offer a runtime model");
    xm_compiled_unref(latest);
    return s;
}

static enum xm_status
get_context(struct xm_compiled *c, struct xm_context **out, struct xm_error *err)
{
    struct xm_compiled *first = first_of(c);
    return first->ops->get_context
               ? first->ops->get_context(first, out, err)
               : xm_fail(err, XM_UNSUPPORTED, "this device has no remote contexts");
}

static void
destroy(struct xm_compiled *base)
{
    struct by_shape *c = (struct by_shape *)base;
    for (size_t i = 0; i < MOST_PROGRAMS; i++) {
        xm_compiled_unref(c->entries[i].of);
        xm_free(c->entries[i].shapes);
    }
    xm_compiled_unref(c->first);
    xm_mapping_unref(&c->kept->base);
    c->compiler.destroy(c->compiler.ctx);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    xm_free(c);
}

static const struct xm_compiled_ops compiled_ops = {
    .create_request = create_request,
    .get_property = get_property,
    .print = print,
    .exec_graph = exec_graph,
    .get_context = get_context,
    .destroy = destroy,
};

/* ---- making ------------------------------------------------------------------------------- */

bool
xm_by_shape_is_for(const struct xm_graph *g)
{
    bool is_open = false;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_READ_VALUE || n->op == XM_OP_ASSIGN)
            return false;
        if (n->op == XM_OP_PARAMETER)
            is_open |= !xm_shape_is_static(&n->out[0].type.shape);
    }
    return is_open;
}

/* Sets variable dimensions to `size`, or to the bound nearest to it. */
static void
shapes_around(const struct xm_ports *ports, int64_t size, struct shape *out)
{
    for (uint32_t i = 0; i < ports->n_inputs; i++) {
        out[i].rank = ports->inputs[i].type.shape.rank;
        for (int64_t d = 0; d < out[i].rank; d++) {
            const struct xm_bound b = ports->inputs[i].bound[d];
            const int64_t most = b.max >= 0 && b.max < size ? b.max : size;
            out[i].dim[d] = most < b.min ? b.min : most;
        }
    }
}

/* Compiles a first program with 1 in all variable dimensions. Models that split a dimension in
 * equal parts, or need a certain size, fail with that: then powers of two and numbers with many
 * divisors are tried. If all fail, the error of the first attempt is returned. */
static enum xm_status
compile_first(struct by_shape *c, struct xm_error *err)
{
    static const int64_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 12, 60, 840};
    struct shape *shapes = xm_calloc(c->base.ports.n_inputs + 1, sizeof(*shapes));
    struct xm_error first = {0};
    if (!shapes)
        return xm_no_memory(err, "a program of these shapes");
    for (size_t i = 0; i < XM_ARRAY_LEN(sizes) && !c->first; i++) {
        shapes_around(&c->base.ports, sizes[i], shapes);
        if (program_for(c, shapes, &c->first, &first) == XM_NO_MEMORY)
            break;
    }
    xm_free(shapes);
    return c->first ? XM_OK : xm_fail(err, first.status, "%s", first.text);
}

static void
free_kept(struct xm_mapping *m)
{
    struct xm_kept_graph *k = (struct xm_kept_graph *)m;
    xm_graph_destroy(k->graph);
    xm_free(k);
}

enum xm_status
xm_graph_keep(struct xm_graph **g, struct xm_kept_graph **out, struct xm_error *err)
{
    struct xm_kept_graph *k = xm_calloc(1, sizeof(*k));
    if (!k) {
        xm_graph_destroy(*g);
        *g = NULL;
        return xm_no_memory(err, "a program of these shapes");
    }
    *k = (struct xm_kept_graph){{.refs = 1, .free = free_kept}, *g};
    *g = NULL;
    enum xm_status s = xm_graph_clone(k->graph, &k->base, g, err);
    if (s == XM_OK)
        *out = k;
    else
        xm_mapping_unref(&k->base);
    return s;
}

enum xm_status
xm_by_shape_create(struct xm_kept_graph *kept, struct xm_shape_compiler compiler,
                   struct xm_compiled **out, struct xm_error *err)
{
    struct by_shape *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        compiler.destroy(compiler.ctx);
        return xm_no_memory(err, "a program of these shapes");
    }
    c->base.ops = &compiled_ops;
    c->base.refs = 1;
    c->kept = kept;
    xm_mapping_ref(&kept->base);
    c->compiler = compiler;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
    enum xm_status s = xm_ports_from_graph(kept->graph, &kept->graph->arena,
                                           &kept->graph->dims, &c->base.ports, err);
    if (s == XM_OK)
        s = compile_first(c, err);
    /* A device may return results of another type than the graph's: f64 as f32. */
    for (uint32_t i = 0; s == XM_OK && i < c->first->ports.n_outputs; i++)
        c->base.ports.outputs[i].type.element = c->first->ports.outputs[i].type.element;
    if (s == XM_OK)
        *out = &c->base;
    else
        destroy(&c->base);
    return s;
}
