/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a mesh, runs all its ranks, and answers questions about it (properties, statistics).
 */
#include "plugin/mesh/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/by_shape.h"
#include "plugin/mesh/mesh_part.h"
#include "plugin/mesh/mesh_rates.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/log.h"

/* ---- runs of all ranks -------------------------------------------------------------------- */

struct run {
    struct xm_mesh *mesh;
    enum xm_status (*fn)(uint32_t rank, void *ctx, struct xm_error *err);
    void *ctx;
    struct xm_error why; /* the first failure; in an MPI job this process's */
};

/* Ends a run whose status is s so far for the members of c: it fails in all if it fails in one. */
static enum xm_status
end_run(struct xm_collective *c, enum xm_status s, struct xm_error *err)
{
    if (s == XM_OK && c->ops->end_run)
        s = c->ops->end_run(c, err);
    if (s != XM_OK)
        c->ops->leave(c, err);
    return s;
}

static void
run_rank(size_t rank, size_t worker, void *ctx)
{
    struct run *r = ctx;
    struct xm_error err = {0};
    struct xm_collective *end = r->mesh->end[rank], *job = r->mesh->job;
    (void)worker;
    enum xm_status s = r->fn((uint32_t)rank, r->ctx, &err);
    if (end)
        s = end_run(end, s, &err);
    if (job && job != end) /* after the ranks, whose results the other processes get */
        s = end_run(job, s, &err);
    if (s != XM_OK && job)
        r->why = err;
}

enum xm_status
xm_mesh_run(struct xm_mesh *m,
            enum xm_status (*run)(uint32_t rank, void *ctx, struct xm_error *err),
            void *ctx, struct xm_error *err)
{
    struct run r = {.mesh = m, .fn = run, .ctx = ctx};
    pthread_mutex_lock(&m->lock);
    xm_workers_run(m->threads, m->n, run_rank, &r);
    if (m->group)
        xm_rank_group_reset(m->group, &r.why);
    pthread_mutex_unlock(&m->lock);
    return r.why.status == XM_OK ? XM_OK : xm_fail(err, r.why.status, "%s", r.why.text);
}

static enum xm_status
fail_rank(uint32_t rank, void *ctx, struct xm_error *err)
{
    const struct xm_error *why = ctx;
    (void)rank;
    return xm_fail(err, why->status, "%s", why->text);
}

enum xm_status
xm_mesh_fail_run(struct xm_mesh *m, const struct xm_error *why, struct xm_error *err)
{
    struct xm_error own = *why;
    return m->group ? fail_rank(0, &own, err) : xm_mesh_run(m, fail_rank, &own, err);
}

/* Lets all processes of a job exchange bytes between runs: all[r] becomes those of rank r. If a
 * process fails, the exchange is ended like a failed run, and the next run works again. */
static enum xm_status
meet_between_runs(struct xm_collective *job, struct xm_bytes mine, struct xm_bytes *all,
                  struct xm_error *err)
{
    struct xm_error why = {0};
    if (job->ops->meet(job, mine, all, &why) == XM_OK)
        return XM_OK;
    job->ops->leave(job, &why);
    return xm_fail(err, why.status, "%s", why.text);
}

/* Replaces *least and *most by the extremes over all processes of the job. They stay unchanged if
 * there is no job, or if the exchange fails. */
static void
find_extremes(struct xm_collective *job, uint64_t *least, uint64_t *most)
{
    const uint64_t own[] = {*least, *most};
    const struct xm_bytes mine = {(const uint8_t *)own, sizeof(own)};
    struct xm_bytes all[XM_MOST_RANKS];
    if (!job || meet_between_runs(job, mine, all, NULL) != XM_OK)
        return;
    for (uint32_t r = 0; r < job->ranks; r++) {
        uint64_t of[2] = {*least, *most};
        if (all[r].n == sizeof(of))
            memcpy(of, all[r].p, sizeof(of));
        *least = of[0] < *least ? of[0] : *least;
        *most = of[1] > *most ? of[1] : *most;
    }
}

void
xm_mesh_level(struct xm_collective *job, uint32_t n,
              uint64_t (*past)(uint32_t rank, void *ctx),
              void (*shorten)(uint32_t rank, uint64_t past, void *ctx), void *ctx)
{
    uint64_t least, most;
    do {
        least = UINT64_MAX;
        most = 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t own = past(i, ctx);
            least = own < least ? own : least;
            most = own > most ? own : most;
        }
        find_extremes(job, &least, &most);
        for (uint32_t i = 0; i < n && most > least; i++)
            shorten(i, least, ctx);
    } while (most > least);
}

void
xm_mesh_level_all(struct xm_mesh *m, uint64_t (*past)(uint32_t rank, void *ctx),
                  void (*shorten)(uint32_t rank, uint64_t past, void *ctx), void *ctx)
{
    pthread_mutex_lock(&m->lock);
    xm_mesh_level(m->job, m->n, past, shorten, ctx);
    pthread_mutex_unlock(&m->lock);
}

/* ---- properties and statistics ------------------------------------------------------------ */

static enum xm_status
mesh_get_property(struct xm_compiled *c, const char *key, struct xm_strbuf *out,
                  struct xm_error *err)
{
    struct xm_mesh *m = xm_mesh_of(c);
    if (strcmp(key, "EXECUTION_DEVICES") != 0 && strcmp(key, "FULL_DEVICE_NAME") != 0)
        return m->rank[0]->ops->get_property(m->rank[0], key, out, err);
    for (uint32_t i = 0; i < m->n; i++) {
        struct xm_strbuf one = {0};
        const enum xm_status s =
            m->rank[i]->ops->get_property(m->rank[i], key, &one, err);
        if (s == XM_OK)
            xm_strbuf_printf(out, "%s%s", i ? "," : "", xm_strbuf_text(&one));
        xm_strbuf_free(&one);
        XM_TRY(s);
    }
    return XM_OK;
}

/* Returns the number of this process's i-th rank, by which messages name it: in an MPI job that of
 * the process. */
static uint32_t
number_of(const struct xm_mesh *m, uint32_t i)
{
    return m->job ? m->job->rank : m->end[i]->rank;
}

static void
mesh_print(struct xm_compiled *c, struct xm_strbuf *out)
{
    const struct xm_mesh *m = xm_mesh_of(c);
    xm_strbuf_printf(out, "split over %s:\n%s", m->devices, m->exchanges);
    for (uint32_t i = 0; i < m->n; i++) {
        struct xm_strbuf device = {0};
        (void)m->rank[i]->ops->get_property(m->rank[i], "EXECUTION_DEVICES", &device,
                                            NULL);
        xm_strbuf_printf(out, "rank %u, %s:\n", number_of(m, i), xm_strbuf_text(&device));
        xm_strbuf_free(&device);
        m->rank[i]->ops->print(m->rank[i], out);
    }
}

static void
mesh_expect(struct xm_compiled *c, const uint64_t *positions, size_t n)
{
    const struct xm_mesh *m = xm_mesh_of(c);
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->rank[i]->ops->expect)
            m->rank[i]->ops->expect(m->rank[i], positions, n);
    }
}

enum xm_status
xm_mesh_agree(struct xm_mesh *m, const struct xm_error *own, struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    struct xm_collective *c = m->job;
    const struct xm_bytes mine = {(const uint8_t *)own, sizeof(*own)};
    struct xm_error first = *own;
    pthread_mutex_lock(&m->lock);
    if (c && meet_between_runs(c, mine, all, &first) == XM_OK)
        for (uint32_t r = c->ranks; r-- > 0;) {
            struct xm_error of = *own;
            if (all[r].n == sizeof(of))
                memcpy(&of, all[r].p, sizeof(of));
            if (of.status != XM_OK)
                xm_error_prefix(&of, "rank %u", r);
            first = of.status != XM_OK ? of : first;
        }
    pthread_mutex_unlock(&m->lock);
    return first.status == XM_OK ? XM_OK : xm_fail(err, first.status, "%s", first.text);
}

/* Returns whether `own` is true in all processes of the job, which must get the same answer because
 * they must make the same calls; false if they cannot ask each other. Without a job, returns
 * `own`. */
static bool
all_say(struct xm_mesh *m, bool own)
{
    const uint8_t byte = own;
    struct xm_bytes all[XM_MOST_RANKS];
    struct xm_collective *c = m->job;
    bool is_so = own;
    pthread_mutex_lock(&m->lock);
    if (c)
        is_so = meet_between_runs(c, (struct xm_bytes){&byte, 1}, all, NULL) == XM_OK;
    for (uint32_t r = 0; c && r < c->ranks && is_so; r++)
        is_so = all[r].n == 1 && all[r].p[0];
    pthread_mutex_unlock(&m->lock);
    return is_so;
}

static bool
mesh_has_room(struct xm_compiled *c, const uint64_t *positions, size_t n)
{
    struct xm_mesh *m = xm_mesh_of(c);
    bool has = true;
    for (uint32_t i = 0; i < m->n && has; i++)
        has = !m->rank[i]->ops->has_room ||
              m->rank[i]->ops->has_room(m->rank[i], positions, n);
    return all_say(m, has);
}

static void
add_memory(const struct xm_memory_stats *of, struct xm_memory_stats *out)
{
    for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
        out->now[k] += of->now[k];
        out->peak[k] += of->peak[k];
        out->buffers[k] += of->buffers[k];
    }
    out->allocations += of->allocations;
    out->total_now += of->total_now;
    out->total_peak += of->total_peak;
    out->largest = of->largest > out->largest ? of->largest : out->largest;
}

/* The seconds become the longest of all engines, because engines build at the same time. */
static void
add_builds(const struct xm_build_stats *of, struct xm_build_stats *out)
{
    out->built += of->built;
    out->loaded += of->loaded;
    out->launches += of->launches;
    out->cache_bytes += of->cache_bytes;
    out->seconds = of->seconds > out->seconds ? of->seconds : out->seconds;
}

/* Sums the statistics of the ranks. Memory and builds of kernels are counted once for each device,
 * because ranks on one device share an engine. */
static void
mesh_stats(struct xm_compiled *c, struct xm_compiled_stats *out)
{
    const struct xm_mesh *m = xm_mesh_of(c);
    *out = (struct xm_compiled_stats){0};
    for (uint32_t i = 0; i < m->n; i++) {
        struct xm_compiled_stats of = {0};
        if (!m->rank[i]->ops->stats)
            continue;
        m->rank[i]->ops->stats(m->rank[i], &of);
        out->weight_bytes += of.weight_bytes;
        out->host_weight_bytes += of.host_weight_bytes;
        out->weight_bytes_to_come += of.weight_bytes_to_come;
        out->kv_pages += of.kv_pages;
        out->kv_pages_used += of.kv_pages_used;
        out->kv_pages_cached += of.kv_pages_cached;
        if (m->is_again[i])
            continue;
        add_memory(&of.memory, &out->memory);
        add_builds(&of.builds, &out->builds);
    }
}

static void
mesh_steps(struct xm_compiled *c, xm_step_fact_fn fn, void *ctx)
{
    struct xm_compiled *first = xm_mesh_of(c)->rank[0];
    if (first->ops->steps)
        first->ops->steps(first, fn, ctx);
}

static enum xm_status
mesh_exec_graph(struct xm_compiled *c, struct xm_exec_graph *out, struct xm_error *err)
{
    struct xm_compiled *first = xm_mesh_of(c)->rank[0];
    return first->ops->exec_graph
               ? first->ops->exec_graph(first, out, err)
               : xm_fail(err, XM_UNSUPPORTED, "the device has no steps");
}

static void
mesh_destroy(struct xm_compiled *c)
{
    struct xm_mesh *m = xm_mesh_of(c);
    for (uint32_t i = 0; i < m->n; i++)
        xm_compiled_unref(m->rank[i]);
    xm_compiled_unref(m->whole);
    xm_workers_free(m->threads);
    if (!m->group && m->end[0] != m->job)
        xm_mpi_free(m->end[0]);
    xm_mpi_free(m->job);
    xm_rank_group_free(m->group);
    pthread_mutex_destroy(&m->lock);
    xm_free(m->devices);
    xm_free(m->exchanges);
    xm_free(m);
}

static const struct xm_compiled_ops mesh_ops = {
    .create_request = xm_mesh_create_request,
    .create_sequence = xm_mesh_create_sequence,
    .create_batch = xm_mesh_create_batch,
    .get_property = mesh_get_property,
    .print = mesh_print,
    .expect = mesh_expect,
    .has_room = mesh_has_room,
    .stats = mesh_stats,
    .steps = mesh_steps,
    .exec_graph = mesh_exec_graph,
    .destroy = mesh_destroy,
};

/* ---- compiling ------------------------------------------------------------------------------ */

/* The data that the compiles of all ranks share. */
struct build {
    const struct xm_core *core;
    struct xm_kept_graph *kept; /* the whole model */
    const struct xm_property *properties;
    uint32_t n_properties;
    const struct xm_compile_options *options;
    struct xm_mesh *mesh;
    /* [number_of()]; of an MPI job those of all processes, also with the share 0 */
    const struct xm_mesh_devices *devices;
    struct xm_mesh_parts parts;
};

/* Returns the name of the device of this process's i-th rank. */
static const char *
device_of(const struct build *b, uint32_t i)
{
    return b->devices->name[number_of(b->mesh, i)];
}

/* Compiles for the device of this process's i-th rank: if out is &mesh->whole the whole model, else
 * the rank's part. */
static enum xm_status
compile_on(struct build *b, uint32_t i, struct xm_compiled **out, struct xm_error *err)
{
    struct xm_compile_options own =
        b->options ? *b->options : (struct xm_compile_options){0};
    struct xm_graph *g = NULL;
    own.for_api = false; /* no part is stored in CACHE_DIR: models there are whole */
    own.keep_graph = false;
    own.replace = out == &b->mesh->whole ? xm_mesh_take_whole : xm_mesh_take_part;
    own.replace_ctx = &b->parts;
    b->parts.end = b->mesh->end[i];
    XM_TRY(xm_graph_clone(b->kept->graph, &b->kept->base, &g, err));
    enum xm_status s = xm_core_compile(b->core, g, device_of(b, i), b->properties,
                                       b->n_properties, &own, out, err);
    if (s != XM_OK)
        xm_error_prefix(err, "rank %u", number_of(b->mesh, i));
    return s;
}

/* Sets up a mesh in one process: all ranks, each with a thread. */
static enum xm_status
make_threads(struct xm_mesh *m, const struct build *b, struct xm_error *err)
{
    const struct xm_mesh_devices *d = b->devices;
    m->group = b->options && b->options->connect ? b->options->connect(d->n)
                                                 : xm_shared_group_create(d->n);
    m->threads = xm_workers_create(d->n);
    if (!m->group || !m->threads || xm_workers_count(m->threads) != d->n)
        return xm_no_memory(err, "a mesh's threads");
    m->n = d->n;
    for (uint32_t i = 0; i < d->n; i++) {
        m->end[i] = xm_rank_group_rank(m->group, i);
        for (uint32_t k = 0; k < i; k++)
            m->is_again[i] |= strcmp(d->name[i], d->name[k]) == 0;
    }
    return XM_OK;
}

/* Sets up one process of an MPI job, which has one rank, or none if its share is 0. XM_UNSUPPORTED:
 * MPI counts other processes than the environment. */
static enum xm_status
join_processes(struct xm_mesh *m, struct build *b, struct xm_error *err)
{
    const struct xm_mesh_devices *d = b->devices;
    bool is_member[XM_MOST_RANKS];
    XM_TRY(xm_mpi_create(NULL, &m->job, err));
    if (m->job->ranks != d->n)
        return xm_fail(
            err, XM_UNSUPPORTED,
            "by the environment the job has %u processes, by MPI %u: is mpirun "
            "another MPI's?",
            d->n, m->job->ranks);
    for (uint32_t r = d->n; r-- > 0;) {
        is_member[r] = d->share[r] > 0.0;
        b->parts.is_idle[r] = !is_member[r];
        b->parts.first = is_member[r] ? r : b->parts.first;
    }
    if (b->parts.devices->n < d->n) {
        b->parts.job = m->job;
        XM_TRY(xm_mpi_create(is_member, &m->end[0], err));
    } else {
        m->end[0] = m->job;
    }
    m->n = 1;
    m->threads = xm_workers_create(1);
    return m->threads ? XM_OK : xm_no_memory(err, "a mesh's threads");
}

static enum xm_status
new_mesh(struct build *b, const char *list, bool is_job, struct xm_mesh **out,
         struct xm_error *err)
{
    struct xm_mesh *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_no_memory(err, "a mesh");
    pthread_mutex_init(&m->lock, NULL);
    m->base = (struct xm_compiled){.ops = &mesh_ops, .refs = 1};
    m->devices = xm_strdup(list);
    enum xm_status s = m->devices ? XM_OK : xm_no_memory(err, "a mesh");
    if (s == XM_OK)
        s = is_job ? join_processes(m, b, err) : make_threads(m, b, err);
    if (s == XM_OK)
        *out = m;
    else
        mesh_destroy(&m->base);
    return s;
}

static bool
are_alike(const struct xm_port *a, const struct xm_port *b, uint32_t n)
{
    bool alike = true;
    for (uint32_t i = 0; i < n; i++)
        alike &= a[i].type.element == b[i].type.element;
    return alike;
}

/* Refuses ranks whose inputs differ in number or type, because all ranks get the same tensors. */
static enum xm_status
check_ports(const struct build *b, struct xm_error *err)
{
    const struct xm_ports *first = &b->mesh->rank[0]->ports;
    for (uint32_t i = 1; i < b->mesh->n; i++) {
        const struct xm_ports *own = &b->mesh->rank[i]->ports;
        if (own->n_inputs != first->n_inputs ||
            !are_alike(own->inputs, first->inputs, first->n_inputs))
            return xm_fail(err, XM_UNSUPPORTED,
                           "devices %s and %s take inputs of different types",
                           device_of(b, 0), device_of(b, i));
    }
    return XM_OK;
}

/* Appends the number of tokens of a prompt that this process's i-th rank runs at once; nothing if
 * the device has no such number. A device with little memory reduces it (plugin/gpu/planner.h). */
static void
add_chunk(const struct build *b, uint32_t i, struct xm_strbuf *out)
{
    struct xm_compiled *c = b->mesh->rank[i];
    (void)c->ops->get_property(c, "XM_UBATCH", out, &(struct xm_error){0});
}

/* Refuses ranks that cut prompts differently, because they exchange values once for each chunk. */
static enum xm_status
check_chunks(const struct build *b, struct xm_error *err)
{
    struct xm_strbuf first = {0}, own = {0};
    enum xm_status s = XM_OK;
    add_chunk(b, 0, &first);
    for (uint32_t i = 1; i < b->mesh->n && s == XM_OK; i++) {
        xm_strbuf_clear(&own);
        add_chunk(b, i, &own);
        if (first.n && own.n && strcmp(first.text, own.text) != 0)
            s = xm_fail(err, XM_UNSUPPORTED,
                        "device %s runs at most %s tokens of a prompt at once, device %s "
                        "at most %s: set XM_UBATCH (--ubatch) to the smaller number",
                        device_of(b, 0), first.text, device_of(b, i), own.text);
    }
    xm_strbuf_free(&first);
    xm_strbuf_free(&own);
    return s;
}

/* Makes rank 0's ports and reports the mesh's; rank 0, which the mesh keeps, owns them. */
static void
take_facts(struct xm_mesh *m)
{
    const struct xm_compiled *first = m->rank[0];
    m->base.ports = first->ports;
    m->base.reports = first->reports;
    m->base.n_reports = first->n_reports;
    m->base.rules = first->rules;
    m->base.notes = first->notes;
    m->base.n_rounded = first->n_rounded;
}

static enum xm_status
compile_ranks(struct build *b, struct xm_graph *g, struct xm_error *err)
{
    XM_TRY(xm_graph_keep(&g, &b->kept, err));
    xm_graph_destroy(g); /* each rank has a copy of its own */
    enum xm_status s = XM_OK;
    for (uint32_t i = 0; i < b->mesh->n && s == XM_OK; i++)
        s = compile_on(b, i, &b->mesh->rank[i], err);
    if (s == XM_OK && b->parts.wish.shows_exchanges)
        s = compile_on(b, 0, &b->mesh->whole, err);
    xm_mapping_unref(&b->kept->base);
    return s;
}

/* Returns the last value given for a property; NULL: none is given. */
static const char *
value_of(const struct xm_property *properties, uint32_t n, const char *key)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < n; i++)
        value = strcmp(properties[i].key, key) == 0 ? properties[i].value : value;
    return value;
}

/* Sets *out to how the model is split. In one process it depends on rates measured on the devices;
 * not in an MPI job, whose processes must split alike although each may have measured other
 * rates. */
static enum xm_status
find_wish(const struct xm_core *c, const struct xm_mesh_devices *d, bool is_job,
          const struct xm_property *properties, uint32_t n_properties,
          struct xm_split_wish *out, struct xm_error *err)
{
    const struct xm_device_info *info[XM_MOST_RANKS];
    const char *cache_dir = value_of(properties, n_properties, "CACHE_DIR");
    XM_TRY(xm_mesh_wish(
        d, value_of(properties, n_properties, "MODEL_DISTRIBUTION_POLICY"), out, err));
    out->halves_sums =
        xm_mesh_halves_sums(value_of(properties, n_properties, "XM_MESSAGE_PRECISION"));
    for (uint32_t i = 0; i < d->n; i++) {
        struct xm_plugin *plugin = NULL;
        uint32_t index = 0;
        if (is_job || xm_core_find(c, d->name[i], &plugin, &index, NULL) != XM_OK ||
            !plugin->ops->info)
            return XM_OK; /* compiling for a wrong name fails later, with the reason */
        info[i] = plugin->ops->info(plugin, index);
    }
    xm_mesh_take_rates(cache_dir ? cache_dir : "", info, out);
    return XM_OK;
}

/* Adds a number to a device name that has none, so that the processes on one machine use different
 * devices of this kind. If there are fewer devices than processes, some share one. */
static void
take_own_device(const struct xm_core *c, char name[XM_DEVICE_NAME])
{
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    if (strchr(name, '.') ||
        xm_core_find(c, name, &plugin, &index, &(struct xm_error){0}) != XM_OK)
        return; /* compiling for a wrong name fails later, with the reason */
    const uint32_t n = plugin->ops->count(plugin), own = xm_mpi_local_rank();
    if (n > 1)
        snprintf(name, XM_DEVICE_NAME, "%.40s.%u", plugin->ops->name, own % n);
}

/* Checks that all processes of the job have the same model, exchanges and version of xemoe, inputs
 * of the same types, and chunks of the same size. */
static enum xm_status
check_processes(const struct build *b, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    const struct xm_ports *ports = &b->mesh->rank[0]->ports;
    xm_strbuf_printf(&text, "%s %016" PRIx64 "\n%s", XM_VERSION, b->parts.fingerprint,
                     b->mesh->exchanges);
    for (uint32_t i = 0; i < ports->n_inputs; i++)
        xm_strbuf_printf(&text, "%s ", xm_element_text(ports->inputs[i].type.element));
    add_chunk(b, 0, &text);
    struct xm_error lost = {0};
    if (!xm_strbuf_ok(&text)) {
        xm_no_memory(&lost, "a mesh");
        b->mesh->job->ops->leave(b->mesh->job, &lost);
    }
    const enum xm_status s =
        xm_strbuf_ok(&text)
            ? xm_collective_agree(
                  b->mesh->job, (struct xm_bytes){(const uint8_t *)text.text, text.n},
                  "model, kind of device, version of xemoe, way to split it, "
                  "type of messages or --ubatch",
                  err)
            : xm_no_memory(err, "a mesh");
    xm_strbuf_free(&text);
    return s;
}

/* One message a line: a message has a limited length. */
static void
debug_exchanges(const struct xm_mesh *m)
{
    xm_debug(XM_DEBUG_DISPATCH, "split over %s:", m->devices);
    for (const char *line = m->exchanges; *line;) {
        const size_t n = strcspn(line, "\n");
        xm_debug(XM_DEBUG_DISPATCH, "%.*s", (int)n, line);
        line += n + (line[n] != '\0');
    }
}

/* Reads the names of the devices and leaves out those with the share 0: in a mesh of one process as
 * if they were not named, in an MPI job only of `ranks`, because each process has one. */
static enum xm_status
find_devices(const struct xm_core *c, const char *list, struct xm_mesh_devices *all,
             struct xm_mesh_devices *ranks, struct xm_error *err)
{
    uint32_t own;
    const uint32_t processes = xm_mpi_ranks(&own);
    const bool is_job = processes > 1;
    XM_TRY(xm_mesh_parse(list, is_job ? processes : 0, all, err));
    if (is_job) {
        take_own_device(c, all->name[own]);
        xm_debug(XM_DEBUG_DISPATCH, "rank %u has device %s", own, all->name[own]);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->share[i] == 0.0 && (!is_job || i == own))
            xm_log(XM_LOG_INFO, "%s has the share 0 of the model: it is not used",
                   all->name[i]);
    }
    *ranks = *all;
    xm_mesh_leave_out(ranks);
    if (!is_job)
        *all = *ranks;
    return XM_OK;
}

/* Compiles the ranks of this process, and checks that they, and all processes of a job, agree. */
static enum xm_status
build_mesh(struct build *b, struct xm_graph *g, struct xm_error *err)
{
    struct xm_mesh *m = b->mesh;
    enum xm_status s = compile_ranks(b, g, err);
    if (s == XM_OK)
        s = check_ports(b, err);
    if (s == XM_OK)
        s = check_chunks(b, err);
    m->exchanges = b->parts.exchanges;
    xm_free(b->parts.exchange_kinds);
    if (s == XM_OK && m->job)
        s = check_processes(b, err);
    else if (m->job)
        m->job->ops->leave(m->job, err); /* check_processes of the others fails */
    if (s == XM_OK) {
        take_facts(m);
        debug_exchanges(m);
    }
    return s;
}

static enum xm_status
compile_for(struct build *b, struct xm_graph *g, const char *list, bool is_job,
            struct xm_compiled **out, struct xm_error *err)
{
    enum xm_status s = find_wish(b->core, b->parts.devices, is_job, b->properties,
                                 b->n_properties, &b->parts.wish, err);
    b->parts.wish.shows_exchanges = b->options && b->options->keep_graph;
    b->parts.wish.shows_inner = b->options && b->options->shows_inner;
    if (s == XM_OK)
        s = new_mesh(b, list, is_job, &b->mesh, err);
    if (s != XM_OK) {
        xm_graph_destroy(g);
        return s;
    }
    s = build_mesh(b, g, err);
    if (s == XM_OK)
        *out = &b->mesh->base;
    else
        mesh_destroy(&b->mesh->base);
    return s;
}

enum xm_status
xm_mesh_compile(const struct xm_core *c, struct xm_graph *g, const char *list,
                const struct xm_property *properties, uint32_t n_properties,
                const struct xm_compile_options *options, struct xm_compiled **out,
                struct xm_error *err)
{
    struct xm_mesh_devices *devices = xm_calloc(2, sizeof(*devices));
    struct build b = {.core = c,
                      .properties = properties,
                      .n_properties = n_properties,
                      .options = options,
                      .devices = devices,
                      .parts.devices = devices + 1};
    uint32_t own;
    const bool is_job = xm_mpi_ranks(&own) > 1;
    enum xm_status s = devices ? find_devices(c, list, devices, devices + 1, err)
                               : xm_no_memory(err, "a mesh");
    if (s != XM_OK)
        xm_graph_destroy(g);
    else if (devices->n == 1)
        s = xm_core_compile(c, g, devices->name[0], properties, n_properties, options,
                            out, err);
    else
        s = compile_for(&b, g, list, is_job, out, err);
    xm_free(devices);
    return s;
}
