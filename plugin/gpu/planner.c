/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/planner.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/bind.h"
#include "plugin/gpu/batcher.h"
#include "plugin/gpu/compile.h"
#include "plugin/gpu/request.h"
#include "plugin/gpu/request_profile.h"
#include "plugin/plugin.h"
#include "runtime/counting/counting.h"
#include "runtime/host_memory.h"
#include "runtime/levelzero/levelzero.h"
#include "runtime/util/log.h"
#include "transformations/graph/symbols.h"

enum {
    FIRST_CONTEXT = 256,  /* positions: start and precision of the largest's search */
    USUAL_CHUNK = 512,    /* tokens: this chunk fits the allocations of known devices */
    USUAL_CONTEXT = 4096, /* positions for which experts are moved to the host */
    MANY_TIMES = 4, /* fits without counting: a device with this many times the weights */
    LEFT_FREE = 8,  /* an expert cache leaves 1/8 of the free memory */
    MOST_FED = 16   /* of a context of at least this many chunks only some are run */
};

/* ---- compiling to count ------------------------------------------------------------- */

enum xm_status
xm_planner_compile_with(const struct xm_device_info *info, const struct xm_config *config,
                        struct xm_graph *g, const struct xm_compile_options *options,
                        struct xm_program **out, struct xm_error *err)
{
    struct xm_engine *engine = NULL;
    enum xm_status s = xm_counting_engine_create(info, config, &engine, err);
    if (s != XM_OK) {
        xm_graph_destroy(g);
        return s;
    }
    s = xm_program_create(engine, config, g, options, out, err);
    xm_engine_unref(engine); /* the program holds it */
    return s;
}

enum xm_status
xm_planner_compile(const struct xm_device_info *info, const struct xm_config *config,
                   struct xm_graph *g, struct xm_program **out, struct xm_error *err)
{
    const struct xm_compile_options options = {.sampled_logits = true};
    return xm_planner_compile_with(info, config, g, &options, out, err);
}

enum xm_status
xm_planner_compile_open(const struct xm_device_info *info, const struct xm_config *config,
                        struct xm_graph *g, struct xm_program **out, struct xm_error *err)
{
    const struct xm_compile_options options = {.sampled_logits = true,
                                               .keep_graph = true};
    return xm_planner_compile_with(info, config, g, &options, out, err);
}

enum xm_status
xm_planner_lower(const struct xm_program *p, struct xm_graph *g, struct xm_program **out,
                 struct xm_error *err)
{
    struct xm_program *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_no_memory(err, "a program");
    c->refs = 1;
    c->config = p->config;
    enum xm_status s = xm_counting_engine_create(
        xm_engine_info(p->engine), xm_engine_config(p->engine), &c->engine, err);
    if (s == XM_OK)
        s = xm_lower(c, g, err);
    if (s != XM_OK) {
        xm_program_unref(c);
        return s;
    }
    *out = c;
    return XM_OK;
}

/* ---- counting ------------------------------------------------------------------------ */

/* Sets *n to the size of a port's dimension under the bindings *b. Symbols that *b lacks are added
 * with the port's lower bound of the dimension, at least 1. */
static enum xm_status
size_of(const struct xm_port *port, uint32_t axis, struct xm_bindings *b, int64_t *n,
        struct xm_error *err)
{
    const struct xm_dim d = port->type.shape.dim[axis];
    const int64_t least = port->bound[axis].min > 1 ? port->bound[axis].min : 1;
    for (uint32_t i = 0; i < xm_dim_symbols(d); i++) {
        const char *symbol = xm_dim_symbol_name(d, i);
        if (!xm_bindings_find(b, symbol, n))
            XM_TRY(xm_bindings_set(b, symbol, least, err));
    }
    return xm_dim_eval(d, b->list, b->n, n, err);
}

/* Makes the tensor for an input with these sizes: zeros, or ones for the key mask, which then hides
 * no position. */
static enum xm_status
make_input(const struct xm_program *p, const struct xm_port *port,
           struct xm_bindings *sizes, struct xm_host_tensor *t, struct xm_error *err)
{
    const struct xm_shape *shape = &port->type.shape;
    uint64_t n = 1;
    *t = (struct xm_host_tensor){.element = port->type.element, .rank = shape->rank};
    for (uint32_t i = 0; i < shape->rank; i++) {
        enum xm_status s = size_of(port, i, sizes, &t->dim[i], err);
        if (s != XM_OK) {
            xm_error_prefix(err, "a plan for input '%s'", port->name);
            return s;
        }
        n *= (uint64_t)t->dim[i];
    }
    if (!xm_element_bytes(t->element, n, &t->bytes))
        return xm_fail(err, XM_UNSUPPORTED, "a plan for input '%s': %s has no size",
                       port->name, xm_element_text(t->element));
    t->data = xm_calloc(t->bytes + 1, 1);
    if (!t->data)
        return xm_no_memory(err, "a plan");
    for (uint64_t i = 0; i < n && p->key_mask && strcmp(port->name, p->key_mask) == 0;
         i++)
        xm_store_int(t->element, t->data, i, 1);
    return XM_OK;
}

enum xm_status
xm_planner_feed(struct xm_request *r, int64_t tokens, struct xm_error *err)
{
    const struct xm_program *p = xm_request_program(r);
    struct xm_bindings sizes = {.n = 4,
                                .list = {{XM_SYMBOL_BATCH, 1},
                                         {XM_SYMBOL_TOKENS, tokens},
                                         {XM_SYMBOL_PAST, (int64_t)xm_request_past(r)},
                                         {XM_SYMBOL_SAMPLES, 1}}};
    struct xm_host_tensor *in = xm_calloc(p->ports.n_inputs + 1, sizeof(*in));
    if (!in)
        return xm_no_memory(err, "a plan");
    enum xm_status s = XM_OK;
    for (uint32_t i = 0; i < p->ports.n_inputs && s == XM_OK; i++) {
        s = make_input(p, &p->ports.inputs[i], &sizes, &in[i], err);
        if (s == XM_OK)
            s = xm_request_set_input(r, i, &in[i], err);
    }
    if (s == XM_OK)
        s = xm_request_infer(r, err);
    for (uint32_t i = 0; i < p->ports.n_inputs; i++)
        xm_free(in[i].data);
    xm_free(in);
    return s;
}

/* A context as text generation uses it: a sequence in a batch of its own or, if the program has no
 * sequences, a request. */
struct context {
    struct xm_batcher *batcher; /* NULL: the program has no sequences */
    struct xm_kv_sequence *sequence;
    struct xm_request *request; /* the batch's; without a batch: the context's own */
};

static enum xm_status
open_context(struct xm_program *p, struct context *c, struct xm_error *err)
{
    struct xm_error why = {0};
    enum xm_status s = xm_batcher_create(p, &c->batcher, &why);
    if (s == XM_UNSUPPORTED)
        return xm_request_create(p, &c->request, err);
    if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    c->request = xm_batcher_request(c->batcher);
    return xm_kv_sequence_create(p->kv_pool, &c->sequence, err);
}

static void
close_context(struct context *c)
{
    if (c->batcher)
        xm_batcher_destroy(c->batcher);
    else
        xm_request_destroy(c->request);
    xm_kv_sequence_destroy(c->sequence);
}

/* Runs `tokens` tokens of id 0, one chunk a call, so that the list of ids has only one chunk. */
static enum xm_status
feed_sequence(struct context *c, uint64_t tokens, struct xm_error *err)
{
    const uint64_t chunk = xm_intake_chunk_tokens(xm_request_program(c->request));
    int32_t *ids = xm_calloc(tokens < chunk ? tokens : chunk, sizeof(*ids));
    enum xm_status s = ids ? XM_OK : xm_no_memory(err, "a plan");
    while (tokens && s == XM_OK) {
        const uint64_t n = tokens < chunk ? tokens : chunk;
        tokens -= n;
        s = xm_batcher_run(
            c->batcher, &(struct xm_batcher_entry){c->sequence, ids, n, tokens ? 0 : 1},
            1, err);
    }
    xm_free(ids);
    return s;
}

static enum xm_status
feed(struct context *c, uint64_t tokens, struct xm_error *err)
{
    return c->batcher ? feed_sequence(c, tokens, err)
                      : xm_planner_feed(c->request, (int64_t)tokens, err);
}

/* Builds the kernels by which the device chooses the likeliest token, if it can. */
static enum xm_status
prepare_choices(struct context *c, struct xm_error *err)
{
    const struct xm_token_choice likeliest = {.draws = false};
    struct xm_error why = {0};
    if (!c->batcher)
        return XM_OK;
    const enum xm_status s = xm_batcher_prepare(c->batcher, &likeliest, &why);
    return s == XM_OK || s == XM_UNSUPPORTED ? XM_OK : xm_fail(err, s, "%s", why.text);
}

/* Runs a prompt of `tokens` tokens; of a long one only the first and the last chunks. The last ones
 * run behind reserved pages that no run has written. The chunks in between are left out: they see
 * fewer positions, so they allocate no more than the last chunk. A multiple of both chunk and page
 * is left out, so that the last chunks have the same sizes as in the whole prompt. */
static enum xm_status
feed_ends(struct context *c, uint64_t tokens, struct xm_error *err)
{
    const struct xm_program *p = xm_request_program(c->request);
    const uint64_t chunk = xm_intake_chunk_tokens(p), page = p->config.kv_block_tokens;
    if (!c->batcher || tokens / MOST_FED < chunk)
        return feed(c, tokens, err);
    const uint64_t ends = MOST_FED / 2 * chunk;
    uint64_t unit = chunk;
    while (unit % page)
        unit += chunk;
    const uint64_t left_out = (tokens - ends) / unit * unit;
    if (left_out == 0)
        return feed(c, tokens, err);
    XM_TRY(feed(c, ends, err));
    xm_kv_sequence_truncate(c->sequence, 0);
    XM_TRY(xm_kv_sequence_reserve_pages(c->sequence, left_out / page, err));
    xm_kv_sequence_commit(c->sequence, NULL);
    return feed(c, tokens - left_out, err);
}

static enum xm_status
fill_context(struct context *c, uint64_t context, struct xm_error *err)
{
    if (context > INT64_MAX / 2)
        return xm_fail(err, XM_INVALID, "a context of %" PRIu64 " positions is too long",
                       context);
    if (context > 1)
        XM_TRY(feed_ends(c, context - 1, err));
    XM_TRY(feed(c, 1, err));
    return prepare_choices(c, err);
}

static void
add_request(const struct xm_request *r, struct xm_memory_need *need)
{
    struct xm_request_stats stats;
    xm_request_stats(r, &stats);
    need->kv = stats.kv_bytes; /* of the pool, which all requests share */
    need->activations += stats.activation_bytes;
    need->scratch += stats.scratch_bytes;
    need->io += stats.io_bytes;
}

static uint64_t
on_host(const uint64_t bytes[XM_MEMORY_KIND_COUNT])
{
    return bytes[XM_MEMORY_USM_HOST] + bytes[XM_MEMORY_CL_HOST];
}

static uint64_t
on_device(const uint64_t bytes[XM_MEMORY_KIND_COUNT])
{
    return bytes[XM_MEMORY_CL] + bytes[XM_MEMORY_USM_DEVICE] +
           bytes[XM_MEMORY_USM_SHARED];
}

/* Returns the number of rows of a step's result for one token: more than one for experts that are
 * not fused, which have a row for each chosen expert. */
static uint64_t
rows_of_token(const struct xm_program *p, const struct xm_step *s)
{
    const struct xm_shape *shape = &p->values[s->operand[s->cost.result].value].shape;
    uint64_t rows = 1;
    for (uint32_t i = 0; i + 1 < shape->rank; i++)
        rows *= xm_dim_is_const(shape->dim[i]) ? (uint64_t)shape->dim[i].n : 1;
    return rows;
}

static void
count_token(const struct xm_program *p, struct xm_memory_need *need)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_step *s = &p->steps[i];
        if (s->cost.bytes == 0)
            continue;
        uint64_t rows = rows_of_token(p, s);
        need->token_weights += rows * s->cost.bytes;
        need->token_experts += rows * s->cost.expert_bytes;
    }
}

static void
count_weights(const struct xm_program *p, struct xm_memory_need *need)
{
    xm_counting_forget_peaks(p->engine);
    xm_engine_memory_stats(p->engine, &need->kinds);
    need->expert_cache = p->expert_cache_bytes;
    need->weights = need->kinds.total_now - need->expert_cache;
    need->host_weights = on_host(need->kinds.now);
    need->mapped_weights = need->kinds.now[XM_MEMORY_MAPPED];
    for (uint32_t i = 0; i < p->n_weights; i++) {
        if (p->weights[i]->host.experts > 1)
            need->experts += xm_weight_bytes(&p->weights[i]->host);
    }
    count_token(p, need);
}

enum xm_status
xm_planner_count(struct xm_program *p, const struct xm_plan_wish *wish,
                 struct xm_memory_need *out, struct xm_error *err)
{
    *out = (struct xm_memory_need){0};
    struct context *list = xm_calloc(wish->requests + 1, sizeof(*list));
    if (!list)
        return xm_no_memory(err, "a plan of %" PRIu64 " requests", wish->requests);
    if (p->kv_pool)
        xm_kv_pool_trim(p->kv_pool); /* frees the pages of an earlier count */
    count_weights(p, out);
    if (p->kv_pool)
        xm_kv_pool_expect(p->kv_pool, wish->requests, wish->context);
    enum xm_status s = XM_OK;
    for (uint64_t i = 0; i < wish->requests && s == XM_OK; i++) {
        s = open_context(p, &list[i], err);
        if (s == XM_OK)
            s = fill_context(&list[i], wish->context, err);
        if (s == XM_OK)
            add_request(list[i].request, out);
    }
    if (s == XM_OK)
        xm_engine_memory_stats(p->engine, &out->kinds);
    for (uint64_t i = 0; i < wish->requests; i++)
        close_context(&list[i]);
    xm_free(list);
    return s;
}

/* Runs `tokens` tokens, chunk by chunk, and sets *out to their work; the caller frees it. */
static enum xm_status
take_work(struct context *c, uint64_t tokens, struct xm_run_work *out,
          struct xm_error *err)
{
    const struct xm_program *p = xm_request_program(c->request);
    const uint64_t chunk = xm_intake_chunk_tokens(p);
    *out = (struct xm_run_work){.tokens = tokens, .n_steps = p->n_steps};
    out->steps = xm_calloc(p->n_steps + 1, sizeof(*out->steps));
    if (!out->steps)
        return xm_no_memory(err, "a forecast");
    xm_request_reset_profile(c->request);
    for (uint64_t n; tokens; tokens -= n) {
        n = tokens < chunk ? tokens : chunk;
        XM_TRY(feed(c, n, err));
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_step_sum *sum = xm_request_step_sum(c->request, i);
        out->steps[i] = (struct xm_work_step){sum->stored_bytes, sum->multiply_adds};
        out->launches += p->steps[i].kind == XM_STEP_HOST ? 0 : sum->runs;
    }
    return XM_OK;
}

/* Sets *out to the work of a run of `tokens` tokens behind `past` positions, in a new context. */
static enum xm_status
count_run(struct xm_program *p, uint64_t past, uint64_t tokens, struct xm_run_work *out,
          struct xm_error *err)
{
    struct context c = {0};
    enum xm_status s = open_context(p, &c, err);
    if (s == XM_OK && c.batcher) {
        if (past)
            s = feed(&c, past, err);
        if (s == XM_OK)
            s = xm_request_count_work(c.request, err);
        if (s == XM_OK)
            s = take_work(&c, tokens, out, err);
    }
    close_context(&c);
    return s;
}

enum xm_status
xm_planner_count_work(struct xm_program *p, const struct xm_plan_wish *wish,
                      struct xm_run_work *prompt, struct xm_run_work *token,
                      struct xm_error *err)
{
    const uint64_t past = wish->past ? wish->past : wish->prompt;
    if (!p->kv_pool || wish->prompt == 0)
        return XM_OK;
    XM_TRY(count_run(p, 0, wish->prompt, prompt, err));
    return count_run(p, past, 1, token, err);
}

const char *
xm_planner_weight_format(const struct xm_program *p)
{
    struct xm_weight_tally tally = {0};
    for (uint32_t i = 0; i < p->n_weights; i++)
        xm_weight_tally_add(&tally, &p->weights[i]->host);
    return xm_weight_tally_most(&tally);
}

/* ---- free memory --------------------------------------------------------------------- */

static uint64_t
less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void
xm_planner_room(const struct xm_device_info *info, const struct xm_memory_stats *in_use,
                struct xm_memory_room *out)
{
    uint64_t host = xm_host_memory_free(), free_bytes;
    bool is_cpu = xm_device_has(info, XM_CAP_HOST_VISIBLE);
    *out = (struct xm_memory_room){.host = host ? host : UINT64_MAX,
                                   .host_is_device =
                                       is_cpu || xm_device_has(info, XM_CAP_UNIFIED)};
    out->device = less(info->global_bytes, in_use ? on_device(in_use->now) : 0);
    /* Other processes use some of the device's memory, too. */
    if (!out->host_is_device && xm_ze_memory_free(info, &free_bytes) &&
        free_bytes < out->device)
        out->device = free_bytes;
    /* The driver of a CPU device may report the memory of only one NUMA node. */
    if (is_cpu || (out->host_is_device && out->host < out->device))
        out->device = out->host;
    out->known = is_cpu ? host > 0 : info->global_bytes > 0;
}

/* Returns the bytes of mapped weights that must stay in host memory. */
static uint64_t
mapped(const struct xm_memory_need *need, const struct xm_memory_room *room)
{
    return room->is_for_mapped ? need->mapped_weights : 0;
}

uint64_t
xm_planner_of_device(const struct xm_memory_need *need, const struct xm_memory_room *room)
{
    return room->host_is_device ? need->kinds.total_peak + mapped(need, room)
                                : on_device(need->kinds.peak);
}

uint64_t
xm_planner_of_host(const struct xm_memory_need *need, const struct xm_memory_room *room)
{
    return room->host_is_device ? 0 : on_host(need->kinds.peak) + mapped(need, room);
}

uint64_t
xm_planner_excess(const struct xm_memory_need *need, const struct xm_memory_room *room)
{
    uint64_t device = less(xm_planner_of_device(need, room), room->device);
    uint64_t host = less(xm_planner_of_host(need, room), room->host);
    return room->known ? device + host : 0;
}

uint64_t
xm_planner_token_disk(const struct xm_memory_need *need,
                      const struct xm_memory_room *room)
{
    const uint64_t others =
        room->host_is_device ? need->kinds.total_peak : on_host(need->kinds.peak);
    const uint64_t held = less(room->host, others);
    const uint64_t dense = less(need->token_weights, need->token_experts);
    if (!room->known || need->mapped_weights <= held)
        return 0;
    if (need->mapped_weights < need->experts) /* only experts are mapped */
        return (uint64_t)((double)need->token_experts *
                          (double)(need->mapped_weights - held) / (double)need->experts);
    if (held <= dense || need->experts == 0)
        return need->token_weights;
    double missing = 1.0 - (double)(held - dense) / (double)need->experts;
    return missing > 0.0 ? (uint64_t)(missing * (double)need->token_experts) : 0;
}

uint32_t
xm_planner_expert_cache(const struct xm_memory_need *need,
                        const struct xm_memory_room *room)
{
    /* The cache's tables and biases need 1/64 and 1 MiB more. Part of the room is left for longer
     * contexts and for the driver. */
    const uint64_t all = need->host_weights + need->host_weights / 64 + (1 << 20);
    uint64_t left = less(room->device, on_device(need->kinds.peak));
    if (!room->known || room->host_is_device || !need->host_weights)
        return 0;
    left -= left / LEFT_FREE;
    left = (left < all ? left : all) >> 20;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

/* Sets *fits to whether the wish fits into `room`. A buffer that the device cannot allocate means
 * that it does not fit; it is no failure of the call. */
static enum xm_status
wish_fits(struct xm_program *p, const struct xm_plan_wish *wish,
          const struct xm_memory_room *room, bool *fits, struct xm_error *err)
{
    struct xm_memory_need need;
    struct xm_error why = {0};
    enum xm_status s = xm_planner_count(p, wish, &need, &why);
    *fits = s == XM_OK && xm_planner_excess(&need, room) == 0;
    if (s == XM_OK || s == XM_NO_MEMORY)
        return XM_OK;
    return xm_fail(err, s, "%s", why.text);
}

enum xm_status
xm_planner_largest_context(struct xm_program *p, const struct xm_memory_room *room,
                           uint64_t requests, uint64_t most, uint64_t *out,
                           struct xm_error *err)
{
    struct xm_plan_wish wish = {FIRST_CONTEXT, requests};
    uint64_t fits = 0, too_much = most + 1;
    bool good;
    *out = 0;
    while (too_much - fits > (fits ? FIRST_CONTEXT : 1)) {
        if (wish.context > most)
            wish.context = most;
        XM_TRY(wish_fits(p, &wish, room, &good, err));
        if (good)
            fits = wish.context;
        else
            too_much = wish.context;
        if (too_much > most && fits < most)
            wish.context = 2 * fits; /* all contexts so far have fitted */
        else
            wish.context = fits + (too_much - fits) / 2;
    }
    *out = fits;
    return XM_OK;
}

/* ---- fitting a program ---------------------------------------------------------------- */

static uint64_t
weight_bytes(const struct xm_graph *g)
{
    uint64_t bytes = 0;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_WEIGHT)
            bytes += xm_weight_bytes(&n->attr.weight);
    }
    return bytes;
}

/* Counts one request with `context` positions of the program that g is lowered to: its memory, and
 * the bytes by which it exceeds `room`. */
static enum xm_status
excess_of(const struct xm_program *p, struct xm_graph *g, uint64_t context,
          const struct xm_memory_room *room, struct xm_memory_need *need,
          uint64_t *excess, struct xm_error *err)
{
    const struct xm_plan_wish wish = {context, 1};
    struct xm_program *c = NULL;
    XM_TRY(xm_planner_lower(p, g, &c, err));
    enum xm_status s = xm_planner_count(c, &wish, need, err);
    if (s == XM_OK)
        *excess = xm_planner_excess(need, room);
    xm_program_unref(c);
    return s;
}

/* Runs a prompt, a token after it and the choice of the next token, so that the counting engine
 * sees their launches. Failures are ignored. */
static void
count_launches(struct context *c)
{
    struct xm_device_choice likeliest = {.id = 0};
    struct xm_device_choices choices = {.list = &likeliest, .n = 1};
    xm_request_enqueue_counted(c->request);
    if (feed(c, XM_WARM_UP_TOKENS, NULL) == XM_OK && feed(c, 1, NULL) == XM_OK &&
        c->batcher)
        xm_batcher_choose(c->batcher, &c->sequence, &choices, NULL);
}

struct xm_program *
xm_planner_count_builds(const struct xm_program *p, struct xm_graph *g)
{
    struct xm_program *c = NULL;
    struct context context = {0};
    if (xm_planner_lower(p, g, &c, NULL) != XM_OK)
        return NULL;
    (void)xm_batcher_build_choices(c, NULL);
    if (c->kv_pool && xm_device_has(xm_engine_info(p->engine), XM_CAP_DRIVER_FILES) &&
        open_context(c, &context, NULL) == XM_OK) {
        count_launches(&context);
        close_context(&context);
    }
    return c;
}

/* Returns the percentage of the experts that must move to the host to free `excess` bytes. */
static uint32_t
ratio_for(uint64_t excess, uint64_t experts)
{
    double percent = experts ? 100.0 * (double)excess / (double)experts : 100.0;
    return percent >= 99.0 ? 100 : (uint32_t)percent + 1;
}

static enum xm_status
refuse(const struct xm_program *p, const struct xm_memory_need *need,
       const struct xm_memory_room *room, uint64_t excess, struct xm_error *err)
{
    const double mib = 1048576.0;
    const char *help =
        p->config.offload_ratio < 100 && need->experts && !room->host_is_device
            ? "set a larger OFFLOAD_RATIO, which leaves more experts in host memory"
            : "use a model with smaller weights";
    return xm_fail(err, XM_NO_MEMORY,
                   "the model does not fit on %s: weights of %.0f MiB and %.0f MiB for "
                   "one token exceed its memory by %.0f MiB; %s",
                   xm_engine_info(p->engine)->name, (double)need->weights / mib,
                   (double)(need->kinds.total_peak - need->weights) / mib,
                   (double)excess / mib + 1, help);
}

/* Halves the chunk (ubatch) while it needs a value or a scratch that the device cannot allocate in
 * one piece, down to USUAL_CHUNK tokens. */
static enum xm_status
fit_chunk(struct xm_program *p, struct xm_graph *g, struct xm_error *err)
{
    const struct xm_memory_room any = {0};
    const uint32_t asked = p->config.ubatch;
    enum xm_status s = XM_NO_MEMORY;
    while (p->config.ubatch > USUAL_CHUNK && s == XM_NO_MEMORY) {
        struct xm_memory_need need;
        struct xm_error why = {0};
        uint64_t excess;
        s = excess_of(p, g, (uint64_t)p->config.ubatch + 1, &any, &need, &excess, &why);
        if (s == XM_NO_MEMORY)
            p->config.ubatch /= 2;
        else if (s != XM_OK)
            return xm_fail(err, s, "%s", why.text);
    }
    if (p->config.ubatch != asked && !xm_engine_only_counts(p->engine))
        xm_log(XM_LOG_WARNING,
               "prompts run in chunks of %u tokens instead of %u, because %s allocates "
               "at most %.0f MiB at once",
               p->config.ubatch, asked, xm_engine_info(p->engine)->name,
               (double)xm_engine_info(p->engine)->max_alloc_bytes / 1048576.0);
    return XM_OK;
}

/* Chooses which part of the experts moves to the host, and the size of their cache, where the user
 * has not set these options. If the cache's size is open, twice as many experts move as must: a
 * cache for half of them is faster than fewer experts on the host and no cache. */
static enum xm_status
share_memory(struct xm_program *p, struct xm_graph *g, const struct xm_memory_room *room,
             uint32_t *chosen, struct xm_error *err)
{
    struct xm_config *c = &p->config;
    struct xm_memory_need need;
    uint64_t excess = 0;
    bool open_cache = !xm_config_user_set(c, XM_OPTION_expert_cache);
    if (!xm_config_user_set(c, XM_OPTION_offload_ratio)) {
        XM_TRY(excess_of(p, g, USUAL_CONTEXT, room, &need, &excess, err));
        if (excess)
            excess += open_cache ? excess : (uint64_t)c->expert_cache << 20;
        *chosen = excess ? ratio_for(excess, need.experts) : 0;
        c->offload_ratio = *chosen;
    }
    if (open_cache && c->offload_ratio) {
        XM_TRY(excess_of(p, g, USUAL_CONTEXT, room, &need, &excess, err));
        c->expert_cache = xm_planner_expert_cache(&need, room);
    }
    return XM_OK;
}

/* Moves experts to the host if that is needed, and refuses a program that does not fit then. */
static enum xm_status
fit_weights(struct xm_program *p, struct xm_graph *g, const struct xm_memory_room *room,
            struct xm_error *err)
{
    struct xm_memory_need need;
    uint64_t excess = 0;
    uint32_t chosen = 0;
    if (!room->host_is_device)
        XM_TRY(share_memory(p, g, room, &chosen, err));
    XM_TRY(excess_of(p, g, 1, room, &need, &excess, err));
    if (excess)
        return refuse(p, &need, room, excess, err);
    if (chosen)
        xm_log(XM_LOG_WARNING,
               "%u %% of the experts stay in host memory and are read from there, "
               "because the whole model does not fit on %s",
               chosen, xm_engine_info(p->engine)->name);
    return XM_OK;
}

enum xm_status
xm_planner_fit(struct xm_program *p, struct xm_graph *g, struct xm_error *err)
{
    struct xm_memory_stats in_use;
    struct xm_memory_room room;
    if (p->config.ubatch > USUAL_CHUNK)
        XM_TRY(fit_chunk(p, g, err));
    if (xm_engine_only_counts(p->engine))
        return XM_OK; /* a plan reports what does not fit, and does not fail */
    xm_engine_memory_stats(p->engine, &in_use);
    xm_planner_room(xm_engine_info(p->engine), &in_use, &room);
    bool offloads = p->config.offload_ratio && !room.host_is_device;
    if (!room.known || (!offloads && weight_bytes(g) < room.device / MANY_TIMES))
        return XM_OK;
    return fit_weights(p, g, &room, err);
}
