/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's GPU engine over our OpenCL context; see onednn.h. In builds with a oneDNN whose
 * GPU runtime is OpenCL.
 *
 * A matmul is built once for all steps of equal sizes and lives as long as one of these steps. The
 * number of matmuls is bounded by the sizes of pieces (onednn.h) times the weights' shapes.
 */
#include <dnnl_debug.h>
#include <dnnl_ocl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "primitives/onednn/onednn_grouped.h"
#include "primitives/onednn/onednn_guard.h"
#include "primitives/onednn/onednn_matmul.h"
#include "runtime/dry_run.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum { INTEL = 0x8086 };

/* oneDNN's answer for a problem, kept because some answers take long. */
struct answer {
    struct xm_onednn_problem problem;
    const char *why; /* NULL: it has an implementation */
    struct answer *next;
};

struct xm_onednn {
    struct xm_engine *engine; /* referenced */
    dnnl_engine_t dnnl;
    uint32_t refs;
    struct xm_onednn_matmul *matmuls;
    struct answer *answers;
    struct xm_onednn *next;
};

struct xm_onednn_matmul {
    struct xm_onednn *onednn; /* referenced */
    struct xm_onednn_problem problem;
    dnnl_primitive_t primitive;
    uint64_t scratch_bytes;
    uint32_t refs;
    struct xm_onednn_matmul *next;
};

struct xm_onednn_stream {
    struct xm_onednn *onednn; /* borrowed for the run */
    struct xm_queue *queue;   /* of the run           */
    dnnl_stream_t dnnl;
};

/* All open engines. `lock` guards the list, the engines' matmuls and all reference counts. */
static struct xm_onednn *opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static enum xm_status
fail(struct xm_error *err, dnnl_status_t status, const char *call, const char *what)
{
    return xm_fail(err, status == dnnl_out_of_memory ? XM_NO_MEMORY : XM_DEVICE,
                   "%s gave %s: %s", call, dnnl_status2str(status), what);
}

/* ---- engines ------------------------------------------------------------------------ */

/* Returns what the driver says, even if XM_DEVICE_AS pretends another chip. */
static bool
is_intel_gpu(const struct xm_engine *engine)
{
    cl_device_type type = 0;
    cl_uint vendor = 0;
    cl_device_id device = xm_engine_cl_device(engine);
    return device &&
           clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL) ==
               CL_SUCCESS &&
           clGetDeviceInfo(device, CL_DEVICE_VENDOR_ID, sizeof(vendor), &vendor, NULL) ==
               CL_SUCCESS &&
           (type & CL_DEVICE_TYPE_GPU) && vendor == INTEL;
}

const char *
xm_onednn_refuses(struct xm_engine *engine)
{
    if (!is_intel_gpu(engine))
        return "oneDNN's GPU engine needs an Intel GPU";
    xm_onednn_be_quiet();
    if (dnnl_engine_get_count(dnnl_gpu) == 0)
        return "oneDNN finds no GPU";
    if (xm_engine_config(engine)->queue_type == XM_QUEUE_OUT_OF_ORDER)
        return "oneDNN needs an in-order queue";
    return NULL;
}

bool
xm_onednn_could_open(const struct xm_device_info *device)
{
    return device->kind == XM_DEVICE_GPU && device->vendor_id == INTEL;
}

static struct xm_onednn *
find_open(const struct xm_engine *engine)
{
    struct xm_onednn *o = opened;
    while (o && o->engine != engine)
        o = o->next;
    return o;
}

struct xm_onednn *
xm_onednn_of(const struct xm_engine *engine)
{
    pthread_mutex_lock(&lock);
    struct xm_onednn *o = find_open(engine);
    if (o)
        o->refs++;
    pthread_mutex_unlock(&lock);
    return o;
}

/* Opens oneDNN's engine and adds it to `opened`, with no reference. The lock is held. */
static enum xm_status
add(struct xm_engine *engine, struct xm_onednn **out, struct xm_error *err)
{
    const char *name = xm_engine_info(engine)->name;
    struct xm_onednn *o = xm_calloc(1, sizeof(*o));
    if (!o)
        return xm_no_memory(err, "oneDNN's engine");
    dnnl_status_t status = xm_onednn_try_open(&o->dnnl, xm_engine_cl_device(engine),
                                              xm_engine_cl_context(engine));
    if (status != dnnl_success) {
        xm_free(o);
        return fail(err, status, "dnnl_ocl_interop_engine_create", name);
    }
    const dnnl_version_t *version = dnnl_version();
    xm_log(XM_LOG_INFO, "oneDNN %d.%d.%d: GPU engine on %s", version->major,
           version->minor, version->patch, name);
    o->engine = engine;
    xm_engine_ref(engine);
    o->next = opened;
    opened = o;
    *out = o;
    return XM_OK;
}

enum xm_status
xm_onednn_open(struct xm_engine *engine, struct xm_onednn **out, struct xm_error *err)
{
    const char *why = xm_onednn_refuses(engine);
    *out = NULL;
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "%s", why);
    enum xm_status status = XM_OK;
    pthread_mutex_lock(&lock);
    *out = find_open(engine);
    if (!*out)
        status = add(engine, out, err);
    if (*out)
        (*out)->refs++;
    pthread_mutex_unlock(&lock);
    return status;
}

static void
destroy(struct xm_onednn *o)
{
    while (o->answers) {
        struct answer *first = o->answers;
        o->answers = first->next;
        xm_free(first);
    }
    dnnl_engine_destroy(o->dnnl);
    xm_engine_unref(o->engine);
    xm_free(o);
}

void
xm_onednn_unref(struct xm_onednn *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&lock);
    bool last = --o->refs == 0;
    if (last) {
        struct xm_onednn **at = &opened;
        while (*at != o)
            at = &(*at)->next;
        *at = o->next;
    }
    pthread_mutex_unlock(&lock);
    if (last)
        destroy(o);
}

/* ---- matmuls ------------------------------------------------------------------------ */

static void
print_problem(const struct xm_onednn_problem *p, char *out, size_t out_bytes)
{
    int used = 0;
    if (p->groups)
        used = snprintf(out, out_bytes, "%" PRIu64 " of ", p->groups);
    snprintf(out + used, out_bytes - (size_t)used,
             "%" PRIu64 "x%" PRIu64 "x%" PRIu64 " %s x %s -> %s", p->m, p->n, p->k,
             xm_element_text(p->x), xm_element_text(p->w), xm_element_text(p->y));
}

/* Returns whether oneDNN 3.13 would round the group size up to a power of two, and so use wrong
 * scales (grouped_gemm:micro). */
static bool
rounds_group(const struct xm_onednn_problem *p)
{
    return p->group && p->group != p->k && (p->group & (p->group - 1)) != 0;
}

static const char *
ask(struct xm_onednn *o, const struct xm_onednn_problem *p)
{
    char what[96];
    const char *why = NULL;
    dnnl_primitive_desc_t pd = xm_onednn_describe(o->dnnl, p);
    print_problem(p, what, sizeof(what));
    if (p->groups && !xm_onednn_has_grouped_memory())
        why = "this oneDNN was built without grouped memory";
    else if (p->groups && rounds_group(p))
        why = "oneDNN's grouped matmul needs a group size that is a power of two";
    else if (!pd)
        why = "oneDNN does not implement this matmul";
    else if (xm_onednn_is_reference(xm_onednn_implementation(pd)) && !xm_dry_run())
        why = "oneDNN has only reference code for this matmul";
    xm_debug(XM_DEBUG_DISPATCH, "oneDNN: %s: %s", what,
             pd ? xm_onednn_implementation(pd) : "nothing");
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return why;
}

static bool
same_problem(const struct xm_onednn_problem *a, const struct xm_onednn_problem *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->groups == b->groups &&
           a->y_step == b->y_step && a->times_step == b->times_step && a->x == b->x &&
           a->w == b->w && a->y == b->y && a->group == b->group && a->scale == b->scale &&
           a->zero_point == b->zero_point && a->one_zero_point == b->one_zero_point &&
           a->bias == b->bias && a->times == b->times && a->activated == b->activated &&
           a->activation == b->activation && a->beta == b->beta;
}

/* Asks oneDNN about a problem only once, because every layer asks the same and some answers take
 * oneDNN long. The lock is held. */
static const char *
ask_once(struct xm_onednn *o, const struct xm_onednn_problem *p)
{
    struct answer *a = o->answers;
    while (a && !same_problem(&a->problem, p))
        a = a->next;
    if (a)
        return a->why;
    const char *why = ask(o, p);
    a = xm_calloc(1, sizeof(*a));
    if (!a)
        return why; /* without memory the answer is not kept */
    *a = (struct answer){*p, why, o->answers};
    o->answers = a;
    return why;
}

const char *
xm_onednn_declines(struct xm_onednn *o, const struct xm_onednn_problem *p)
{
    pthread_mutex_lock(&lock);
    const char *why = ask_once(o, p);
    pthread_mutex_unlock(&lock);
    return why;
}

/* Builds m->primitive. */
static enum xm_status
build(struct xm_onednn_matmul *m, struct xm_error *err)
{
    char what[96];
    print_problem(&m->problem, what, sizeof(what));
    dnnl_primitive_desc_t pd = xm_onednn_describe(m->onednn->dnnl, &m->problem);
    if (!pd)
        return xm_fail(err, XM_NOT_BUILT, "oneDNN has no matmul %s", what);
    dnnl_status_t status = xm_onednn_try_create(&m->primitive, pd);
    m->scratch_bytes = xm_onednn_scratchpad_bytes(pd);
    xm_debug(XM_DEBUG_DISPATCH, "oneDNN: built %s: %s", what,
             xm_onednn_implementation(pd));
    dnnl_primitive_desc_destroy(pd);
    if (status == dnnl_success)
        return XM_OK;
    return xm_fail(err, XM_NOT_BUILT, "oneDNN did not build matmul %s: %s", what,
                   dnnl_status2str(status));
}

/* Builds a matmul and adds it to the engine's list, with no reference. The lock is held. */
static enum xm_status
add_matmul(struct xm_onednn *o, const struct xm_onednn_problem *p,
           struct xm_onednn_matmul **out, struct xm_error *err)
{
    struct xm_onednn_matmul *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_no_memory(err, "a matmul of oneDNN");
    m->onednn = o;
    m->problem = *p;
    enum xm_status status = build(m, err);
    if (status != XM_OK) {
        xm_free(m);
        return status;
    }
    o->refs++;
    m->next = o->matmuls;
    o->matmuls = m;
    *out = m;
    return XM_OK;
}

enum xm_status
xm_onednn_matmul_get(struct xm_onednn *o, const struct xm_onednn_problem *p,
                     struct xm_onednn_matmul **out, struct xm_error *err)
{
    enum xm_status status = XM_OK;
    pthread_mutex_lock(&lock);
    struct xm_onednn_matmul *m = o->matmuls;
    while (m && !same_problem(&m->problem, p))
        m = m->next;
    if (!m)
        status = add_matmul(o, p, &m, err);
    if (m)
        m->refs++;
    pthread_mutex_unlock(&lock);
    *out = m;
    return status;
}

void
xm_onednn_matmul_put(struct xm_onednn_matmul *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&lock);
    bool last = --m->refs == 0;
    if (last) {
        struct xm_onednn_matmul **at = &m->onednn->matmuls;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    dnnl_primitive_destroy(m->primitive);
    xm_onednn_unref(m->onednn);
    xm_free(m);
}

uint64_t
xm_onednn_matmul_scratch(const struct xm_onednn_matmul *m)
{
    return m->scratch_bytes;
}

/* ---- runs --------------------------------------------------------------------------- */

enum xm_status
xm_onednn_begin(struct xm_onednn *o, struct xm_queue *queue,
                struct xm_onednn_stream **out, struct xm_error *err)
{
    struct xm_onednn_stream *s = xm_calloc(1, sizeof(*s));
    *out = NULL;
    if (!s)
        return xm_no_memory(err, "a stream of oneDNN");
    s->onednn = o;
    s->queue = queue;
    dnnl_status_t status =
        dnnl_ocl_interop_stream_create(&s->dnnl, o->dnnl, xm_queue_native(queue));
    if (status != dnnl_success) {
        xm_free(s);
        return fail(err, status, "dnnl_ocl_interop_stream_create",
                    xm_engine_info(o->engine)->name);
    }
    *out = s;
    return XM_OK;
}

void
xm_onednn_end(struct xm_onednn_stream *s)
{
    if (!s)
        return;
    dnnl_stream_destroy(s->dnnl);
    xm_free(s);
}

static dnnl_status_t
make_memory(dnnl_memory_t *out, const_dnnl_memory_desc_t desc, dnnl_engine_t engine,
            const struct xm_onednn_handle *handle)
{
    return dnnl_ocl_interop_memory_create(
        out, desc, engine,
        handle->kind == XM_ONEDNN_CL ? dnnl_ocl_interop_buffer : dnnl_ocl_interop_usm,
        handle->at);
}

/* Converts a span to a handle: an offset is added to a USM pointer; for a cl_mem a view
 * (sub-buffer) is created, which the caller releases. */
static enum xm_status
resolve(const struct xm_onednn_span *span, struct xm_onednn_handle *out,
        struct xm_buffer **view, struct xm_error *err)
{
    struct xm_buffer *b = span->buffer;
    if (!b)
        return XM_OK;
    enum xm_memory_kind kind = xm_buffer_kind(b);
    bool is_cl = kind == XM_MEMORY_CL || kind == XM_MEMORY_MAPPED;
    out->kind = is_cl ? XM_ONEDNN_CL : XM_ONEDNN_USM;
    out->at = xm_buffer_native(b);
    if (span->offset == 0)
        return XM_OK;
    if (!is_cl) {
        out->at = (char *)out->at + span->offset;
        return XM_OK;
    }
    XM_TRY(xm_buffer_view(b, span->offset, xm_buffer_bytes(b) - span->offset, view, err));
    out->at = xm_buffer_native(*view);
    return XM_OK;
}

enum xm_status
xm_onednn_matmul_run(struct xm_onednn_matmul *m, struct xm_onednn_stream *stream,
                     const struct xm_onednn_spans *spans, struct xm_error *err)
{
    struct xm_onednn_handles handles = {.most_rows = spans->most_rows};
    struct xm_buffer *views[XM_ONEDNN_ARG_COUNT] = {NULL};
    enum xm_status status = XM_OK;
    for (int a = 0; a < XM_ONEDNN_ARG_COUNT && status == XM_OK; a++)
        status = resolve(&spans->arg[a], &handles.arg[a], &views[a], err);
    if (status == XM_OK) {
        if (spans->name)
            xm_queue_begin_native(stream->queue);
        dnnl_status_t code =
            xm_onednn_execute(m->primitive, m->onednn->dnnl, stream->dnnl, &m->problem,
                              &handles, make_memory);
        if (spans->name)
            xm_queue_end_native(stream->queue, spans->name);
        char what[96];
        print_problem(&m->problem, what, sizeof(what));
        if (code != dnnl_success)
            status = fail(err, code, "dnnl_primitive_execute", what);
    }
    for (int a = 0; a < XM_ONEDNN_ARG_COUNT; a++)
        /* enqueued work keeps a reference to its cl_mem */
        xm_buffer_unref(views[a]);
    return status;
}
