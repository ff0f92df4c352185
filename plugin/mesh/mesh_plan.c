/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_plan.h"

#include <math.h>
#include <string.h>

#include "plugin/mesh/mesh_rates.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

/* Returns by how many bytes the ranks of a node that share the host's memory exceed it together.
 * Mapped weights count once, because the ranks map the same file. */
static uint64_t
excess_of_node(const struct xm_mesh_plan *p, uint32_t node)
{
    const uint32_t first = node * p->cluster.ranks_of_node;
    uint64_t needed = 0, mapped = 0, room = UINT64_MAX;
    for (uint32_t i = first; i < first + p->cluster.ranks_of_node; i++) {
        const struct xm_plan *rank = &p->rank[i];
        const struct xm_memory_need *need = &rank->need;
        if (!rank->room.known || !rank->room.host_is_device)
            continue;
        needed += need->kinds.total_peak;
        if (rank->room.is_for_mapped && need->mapped_weights > mapped)
            mapped = need->mapped_weights;
        room = rank->room.device < room ? rank->room.device : room;
    }
    needed += mapped;
    return needed > room ? needed - room : 0;
}

static void
find_shared_excess(struct xm_mesh_plan *p)
{
    p->shared_excess = 0;
    for (uint32_t i = 0; i < p->cluster.nodes; i++) {
        const uint64_t excess = excess_of_node(p, i);
        p->shared_excess = excess > p->shared_excess ? excess : p->shared_excess;
    }
}

bool
xm_mesh_plan_fits(const struct xm_mesh_plan *p)
{
    bool fits = p->shared_excess == 0;
    for (uint32_t i = 0; i < p->devices.n; i++)
        fits &= p->rank[i].excess == 0;
    return fits;
}

/* ---- advice -------------------------------------------------------------------------- */

/* Returns whether a asks for more of the same change than b: fewer bits of the KV cache, more
 * offload, or a smaller number. */
static bool
goes_further(const struct xm_plan_advice *a, const struct xm_plan_advice *b)
{
    uint64_t x = 0, y = 0;
    if (a->change == XM_PLAN_KV)
        return xm_element_bits(xm_element_parse(a->value)) <
               xm_element_bits(xm_element_parse(b->value));
    (void)xm_parse_whole(a->value, &x);
    (void)xm_parse_whole(b->value, &y);
    return a->change == XM_PLAN_OFFLOAD ? x > y : x < y;
}

static const struct xm_plan_advice *
advice_of(const struct xm_plan *rank, enum xm_plan_change change)
{
    for (size_t i = 0; i < rank->n_advice; i++)
        if (rank->advice[i].change == change)
            return &rank->advice[i];
    return NULL;
}

/* A change is enough for the mesh if it is enough for each rank that does not fit. The advice is
 * then the value for the rank that needs most of the change. */
static void
find_advice(struct xm_mesh_plan *p)
{
    for (int change = 0; change < XM_PLAN_N_CHANGES; change++) {
        const struct xm_plan_advice *furthest = NULL;
        bool is_enough = p->shared_excess == 0;
        for (uint32_t i = 0; i < p->devices.n; i++) {
            const struct xm_plan_advice *a =
                advice_of(&p->rank[i], (enum xm_plan_change)change);
            is_enough &= a != NULL || p->rank[i].excess == 0;
            if (a && (!furthest || goes_further(a, furthest)))
                furthest = a;
        }
        if (is_enough && furthest)
            p->advice[p->n_advice++] = *furthest;
    }
}

/* ---- rates --------------------------------------------------------------------------- */

void
xm_mesh_plan_rates(struct xm_mesh_plan *p, const char *cache_dir)
{
    const struct xm_device_info *info[XM_MOST_RANKS];
    for (uint32_t i = 0; i < p->devices.n; i++)
        info[i] = &p->rank[i].info;
    xm_mesh_take_rates(cache_dir, info, &p->wish);
    (void)xm_mesh_latency_load(cache_dir, info[0], p->devices.n,
                               &p->cluster.local.latency_s);
}

/* Returns whether the ranks of each node run at the same time and read one memory. */
static bool
are_together(const struct xm_mesh_plan *p)
{
    bool is_one = !p->wish.by_layer && p->cluster.ranks_of_node > 1 && p->n_exchanges > 0;
    for (uint32_t i = 0; i < p->devices.n; i++)
        is_one &= p->rank[i].room.host_is_device;
    return is_one;
}

void
xm_mesh_plan_take_together(const struct xm_mesh_plan *p, const char *cache_dir,
                           struct xm_rates *rates)
{
    struct xm_mesh_together t;
    if (!are_together(p) || !p->rank[0].weight_format ||
        !xm_mesh_together_load(cache_dir, &p->rank[0].info, p->cluster.ranks_of_node,
                               p->rank[0].weight_format, &t))
        return;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        if (rates[i].source != XM_RATES_MEASURED)
            continue;
        rates[i].read *= t.read;
        rates[i].multiply *= t.multiply;
        rates[i].is_beside = true;
    }
}

/* ---- seconds ------------------------------------------------------------------------- */

/* Returns the seconds of a run of the whole mesh, the prompt's or the token's (xm_mesh_forecast);
 * zeros: a rank's time is not known. */
static struct xm_run_seconds
seconds_of(const struct xm_mesh_plan *p, const struct xm_rates *rates, bool is_prompt)
{
    const struct xm_run_work *first =
        is_prompt ? &p->rank[0].prompt_work : &p->rank[0].token_work;
    const double tokens = (double)first->tokens;
    const uint64_t chunk = p->rank[0].decided.ubatch ? p->rank[0].decided.ubatch : 1;
    const uint64_t chunks = (first->tokens + chunk - 1) / chunk;
    const struct xm_exchange_work work = {
        .messages = chunks * p->exchanged.messages + p->exchanged_chosen.messages,
        .passes = chunks * p->exchanged.passes + p->exchanged_chosen.passes,
        .passed_bytes =
            tokens * p->exchanged.passed_bytes + p->exchanged_chosen.passed_bytes,
        .sum_bytes = tokens * p->exchanged.sum_bytes + p->exchanged_chosen.sum_bytes,
        .part_bytes = tokens * p->exchanged.part_bytes + p->exchanged_chosen.part_bytes};
    struct xm_run_seconds out = {0};
    double sum = 0.0, slowest = 0.0;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        const struct xm_plan *rank = &p->rank[i];
        const double s = xm_forecast_run(
            is_prompt ? &rank->prompt_work : &rank->token_work, &rates[i]);
        if (!(s > 0.0))
            return (struct xm_run_seconds){0};
        sum += s;
        slowest = s > slowest ? s : slowest;
    }
    /* By layer, a rank works on a chunk while the next rank works on the chunk before it. So all
     * chunks take the time of one chunk on all ranks, and of every further chunk on the slowest. */
    out.all = p->wish.by_layer ? (sum + (double)(chunks - 1) * slowest) / (double)chunks
                               : slowest;
    out.exchanges = xm_forecast_exchanges(&work, &p->cluster);
    out.all += out.exchanges;
    return out;
}

void
xm_mesh_forecast(const struct xm_mesh_plan *p, const struct xm_rates *rates,
                 struct xm_run_seconds *prompt, struct xm_run_seconds *token)
{
    *prompt = seconds_of(p, rates, true);
    *token = seconds_of(p, rates, false);
}

/* Finds rates by which the slowest rank's work takes the measured time less that of exchanges, and
 * stores their ratios to the rates of the rank alone. Returns false, and stores nothing, if no
 * rates explain both times (xm_rates_fit). */
static bool
keep_together(const struct xm_mesh_plan *p, const struct xm_rates *rates,
              const char *cache_dir, double prompt_s, double token_s)
{
    struct xm_run_seconds prompt, token;
    uint32_t slowest = 0;
    xm_mesh_forecast(p, rates, &prompt, &token);
    for (uint32_t i = 1; i < p->devices.n; i++)
        if (xm_forecast_run(&p->rank[i].token_work, &rates[i]) >
            xm_forecast_run(&p->rank[slowest].token_work, &rates[slowest]))
            slowest = i;
    const struct xm_plan *rank = &p->rank[slowest];
    struct xm_rates found = rates[slowest];
    if (!rank->weight_format ||
        !xm_rates_fit(&found, &rank->token_work, token_s - token.exchanges,
                      &rank->prompt_work, prompt_s - prompt.exchanges))
        return false;
    const struct xm_mesh_together t = {found.read / rates[slowest].read,
                                       found.multiply / rates[slowest].multiply};
    xm_mesh_together_store(cache_dir, &p->rank[0].info, p->devices.n, rank->weight_format,
                           &t);
    return true;
}

/* Stores the latency of messages, at least 1 us: the token's time less the slowest rank's work and
 * less the time for the messages' bytes, divided by the number of messages. */
static void
keep_latency(struct xm_mesh_plan *p, const struct xm_rates *rates, const char *cache_dir,
             double token_s)
{
    const double least = 1e-6, steps = ceil(log2(p->devices.n));
    struct xm_run_seconds prompt, token;
    struct xm_rates own[XM_MOST_RANKS];
    memcpy(own, rates, p->devices.n * sizeof(*own));
    xm_mesh_plan_take_together(p, cache_dir, own); /* the rates of a later forecast */
    p->cluster.local.latency_s = 0.0;
    xm_mesh_forecast(p, own, &prompt, &token);
    const double latency_s = (token_s - token.all) / (p->n_exchanges * steps);
    xm_mesh_latency_store(cache_dir, &p->rank[0].info, p->devices.n,
                          latency_s > least ? latency_s : least);
}

void
xm_mesh_plan_keep(struct xm_mesh_plan *p, const struct xm_rates *rates,
                  const char *cache_dir, double prompt_s, double token_s)
{
    bool is_measured =
        p->n_exchanges > 0 && !p->wish.by_layer; /* by layer, ranks only pass values on */
    for (uint32_t i = 0; i < p->devices.n; i++)
        is_measured &= rates[i].source == XM_RATES_MEASURED;
    if (is_measured &&
        !(are_together(p) && keep_together(p, rates, cache_dir, prompt_s, token_s)))
        keep_latency(p, rates, cache_dir, token_s);
}

static enum xm_status
copy_work(struct xm_run_work *w, struct xm_error *err)
{
    const struct xm_work_step *steps = w->steps;
    if (w->n_steps == 0)
        return XM_OK;
    w->steps = xm_malloc(w->n_steps * sizeof(*steps));
    if (!w->steps)
        return xm_no_memory(err, "a plan");
    memcpy(w->steps, steps, w->n_steps * sizeof(*steps));
    return XM_OK;
}

/* Copies the plan of a rank whose part is equally large and whose device is the same. */
static enum xm_status
copy_plan(struct xm_plan *to, const struct xm_plan *from, struct xm_error *err)
{
    *to = *from;
    to->kv_groups = NULL; /* owned by `from`; the plan of a mesh does not use them */
    to->n_kv_groups = 0;
    const enum xm_status s = copy_work(&to->prompt_work, err);
    if (s != XM_OK)
        to->token_work = (struct xm_run_work){0};
    return s == XM_OK ? copy_work(&to->token_work, err) : s;
}

/* Returns an earlier rank that has the same device and as many bytes of weights as rank i by the
 * last split; i: there is none. By layer always i, because such ranks differ in more than their
 * weights: in embeddings and attention windows. */
static uint32_t
find_alike(const struct xm_mesh_plan *p, const struct xm_mesh_parts *parts, uint32_t i)
{
    uint32_t k = p->wish.by_layer ? i : 0;
    while (k < i && (strcmp(p->devices.name[k], p->devices.name[i]) != 0 ||
                     parts->weight_bytes[k] != parts->weight_bytes[i]))
        k++;
    return k;
}

enum xm_status
xm_mesh_plan(struct xm_mesh_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    const uint32_t n = p->devices.n;
    struct xm_mesh_parts parts = {.devices = &p->devices, .wish = p->wish};
    struct xm_rank_group *group = xm_shared_group_create(n);
    enum xm_status s = group ? XM_OK : xm_no_memory(err, "a plan");
    for (uint32_t i = 0; i < n && s == XM_OK; i++) {
        struct xm_plan *rank = &p->rank[i];
        const uint32_t alike = find_alike(p, &parts, i);
        if (alike < i) {
            s = copy_plan(rank, &p->rank[alike], err);
            continue;
        }
        parts.end = xm_rank_group_rank(group, i);
        rank->replace = xm_mesh_take_part;
        rank->replace_ctx = &parts;
        rank->only_this = !p->wants_advice;
        s = xm_planner_plan(rank, g, err);
        rank->weight_format = parts.weight_format; /* the whole model's, not the part's */
        rank->replace = NULL;
        rank->replace_ctx = NULL;
        if (s != XM_OK)
            xm_error_prefix(err, "rank %u", i);
    }
    p->exchange_kinds = parts.exchange_kinds;
    p->n_exchanges = parts.n_exchanges;
    p->exchanged_bytes = parts.exchanged_bytes;
    p->exchanged = parts.exchanged;
    p->exchanged_chosen = parts.exchanged_chosen;
    xm_free(parts.exchanges);
    xm_rank_group_free(group);
    if (s == XM_OK) {
        find_shared_excess(p);
        find_advice(p);
    }
    return s;
}

void
xm_mesh_free_plan(struct xm_mesh_plan *p)
{
    xm_free(p->exchange_kinds);
    p->exchange_kinds = NULL;
    for (uint32_t i = 0; i < p->devices.n; i++)
        xm_planner_free_plan(&p->rank[i]);
}
