/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete memory plan: the memory that a model needs, and which options to change if it does not
 * fit. Each piece of advice is given only after a count with the changed option has fitted.
 */
#include <inttypes.h>
#include <stdio.h>

#include "plugin/gpu/planner.h"

enum { LEAST_CHUNK = 32, USUAL_CONTEXT = 4096 };

/* ---- counting ------------------------------------------------------------------------ */

static enum xm_status
compile(const struct xm_plan *p, const struct xm_graph *g, const struct xm_config *config,
        struct xm_program **out, struct xm_error *err)
{
    struct xm_graph *copy = NULL;
    XM_TRY(xm_graph_clone(g, NULL, &copy, err));
    const struct xm_compile_options options = {
        .sampled_logits = true, .replace = p->replace, .replace_ctx = p->replace_ctx};
    return xm_planner_compile_with(&p->info, config, copy, &options, out, err);
}

/* Sets *fits to whether the plan's wish fits with another config. */
static enum xm_status
try_config(const struct xm_plan *p, const struct xm_graph *g,
           const struct xm_config *config, bool *fits, struct xm_error *err)
{
    struct xm_program *program = NULL;
    struct xm_memory_need need;
    XM_TRY(compile(p, g, config, &program, err));
    enum xm_status s = xm_planner_count(program, &p->wish, &need, err);
    *fits = s == XM_OK && xm_planner_excess(&need, &p->room) == 0;
    xm_program_unref(program);
    return s;
}

static enum xm_status
set_number(struct xm_config *c, const char *key, uint64_t value, struct xm_error *err)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return xm_config_set(c, key, text, err);
}

/* ---- advice -------------------------------------------------------------------------- */

static void
advise(struct xm_plan *p, enum xm_plan_change change, const char *value)
{
    struct xm_plan_advice *a = &p->advice[p->n_advice++];
    a->change = change;
    snprintf(a->value, sizeof(a->value), "%s", value);
}

static void
advise_number(struct xm_plan *p, enum xm_plan_change change, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    advise(p, change, text);
}

static enum xm_status
try_context(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    (void)g; /* the plan has found the largest context already */
    (void)err;
    if (p->largest_context)
        advise_number(p, XM_PLAN_CONTEXT, p->largest_context);
    return XM_OK;
}

static enum xm_status
try_kv(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    static const char *const smaller[] = {"i8", "u4"}; /* the better one first */
    bool fits = false;
    if (xm_config_user_set(&p->config, XM_OPTION_key_cache_precision) ||
        xm_config_user_set(&p->config, XM_OPTION_value_cache_precision))
        return XM_OK; /* these options override KV_CACHE_PRECISION */
    for (size_t i = 0; i < XM_ARRAY_LEN(smaller) && !fits; i++) {
        struct xm_config c = p->config;
        struct xm_error why = {0};
        if (xm_element_bits(xm_element_parse(smaller[i])) >=
            xm_element_bits(p->decided.kv_cache_precision))
            continue;
        XM_TRY(xm_config_set(&c, "KV_CACHE_PRECISION", smaller[i], err));
        const enum xm_status s = try_config(p, g, &c, &fits, &why);
        if (s != XM_OK && s != XM_UNSUPPORTED) /* unsupported: heads of partial blocks */
            return xm_fail(err, s, "%s", why.text);
        if (fits)
            advise(p, XM_PLAN_KV, smaller[i]);
    }
    return XM_OK;
}

static enum xm_status
try_chunks(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    struct xm_config c = p->config;
    bool fits = false;
    for (uint64_t n = p->decided.ubatch / 2; n >= LEAST_CHUNK && !fits; n /= 2) {
        XM_TRY(set_number(&c, "XM_UBATCH", n, err));
        XM_TRY(try_config(p, g, &c, &fits, err));
        if (fits)
            advise_number(p, XM_PLAN_CHUNK, n);
    }
    return XM_OK;
}

static enum xm_status
try_offload(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    enum { STEP = 5 };
    struct xm_config c = p->config;
    bool fits = false;
    if (p->room.host_is_device || p->need.experts == 0)
        return XM_OK;
    uint64_t more = (uint64_t)(100.0 * (double)p->excess / (double)p->need.experts);
    uint64_t ratio = xm_align_up(p->decided.offload_ratio + more + 1, STEP);
    for (; ratio <= 100 && !fits; ratio += STEP) {
        XM_TRY(set_number(&c, "OFFLOAD_RATIO", ratio, err));
        XM_TRY(try_config(p, g, &c, &fits, err));
        if (fits)
            advise_number(p, XM_PLAN_OFFLOAD, ratio);
    }
    return XM_OK;
}

static enum xm_status
find_advice(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    static enum xm_status (*const tries[XM_PLAN_N_CHANGES])(
        struct xm_plan *, const struct xm_graph *, struct xm_error *) = {
        [XM_PLAN_CONTEXT] = try_context,
        [XM_PLAN_KV] = try_kv,
        [XM_PLAN_CHUNK] = try_chunks,
        [XM_PLAN_OFFLOAD] = try_offload,
    };
    for (int i = 0; i < XM_PLAN_N_CHANGES; i++)
        XM_TRY(tries[i](p, g, err));
    return XM_OK;
}

/* ---- the plan ------------------------------------------------------------------------ */

static enum xm_status
find_largest_context(struct xm_plan *p, struct xm_program *program, struct xm_error *err)
{
    if (!p->room.known)
        return XM_OK;
    return xm_planner_largest_context(program, &p->room, p->wish.requests,
                                      XM_PLAN_LARGEST_CONTEXT, &p->largest_context, err);
}

/* The count of the wish has failed for lack of memory, as *err says. Fails with a message that also
 * says which context would fit. */
static enum xm_status
say_what_would_fit(struct xm_plan *p, struct xm_program *program, struct xm_error *err)
{
    const struct xm_error cause = *err;
    char smaller[48] = "";
    *err = (struct xm_error){0};
    XM_TRY(find_largest_context(p, program, err));
    p->is_beyond_counting = p->largest_context > 0;
    if (p->largest_context)
        snprintf(smaller, sizeof(smaller), "; a context of %" PRIu64 " fits",
                 p->largest_context);
    return xm_fail(err, XM_NO_MEMORY, "a context of %" PRIu64 " does not fit: %.200s%s",
                   p->wish.context, cause.text, smaller);
}

/* If the user has not set the size of the expert cache, sets it from the memory that the plan
 * leaves free, as when a model is loaded, and counts again. */
static enum xm_status
add_expert_cache(struct xm_plan *p, const struct xm_graph *g, struct xm_program **program,
                 struct xm_error *err)
{
    uint32_t mib = xm_planner_expert_cache(&p->need, &p->room);
    if (xm_config_user_set(&p->config, XM_OPTION_expert_cache) || mib == 0)
        return XM_OK;
    XM_TRY(set_number(&p->config, "XM_EXPERT_CACHE", mib, err));
    xm_program_unref(*program);
    *program = NULL;
    XM_TRY(compile(p, g, &p->config, program, err));
    return xm_planner_count(*program, &p->wish, &p->need, err);
}

static struct xm_plan_kv_group
kv_group(struct xm_kv_pool *pool, uint32_t group, uint32_t page_tokens, uint64_t context)
{
    struct xm_kv_group_stats stats;
    xm_kv_pool_stats(pool, group, &stats);
    const uint64_t pages = xm_kv_pool_pages_for(pool, group, context);
    return (struct xm_plan_kv_group){.window = stats.window,
                                     .layers = stats.layers,
                                     .positions = pages * page_tokens,
                                     .bytes = pages * stats.page_bytes};
}

static enum xm_status
find_kv_groups(struct xm_plan *p, const struct xm_program *program, struct xm_error *err)
{
    struct xm_kv_pool *pool = program->kv_pool;
    const uint32_t n = pool ? xm_kv_pool_groups(pool) : 0;
    if (n == 0)
        return XM_OK;
    p->kv_groups = xm_calloc(n, sizeof(*p->kv_groups));
    if (!p->kv_groups)
        return xm_no_memory(err, "a plan");
    for (uint32_t i = 0; i < n; i++)
        p->kv_groups[i] =
            kv_group(pool, i, program->config.kv_block_tokens, p->wish.context);
    p->n_kv_groups = n;
    return XM_OK;
}

void
xm_planner_free_plan(struct xm_plan *p)
{
    xm_run_work_free(&p->prompt_work);
    xm_run_work_free(&p->token_work);
    xm_free(p->kv_groups);
    p->kv_groups = NULL;
    p->n_kv_groups = 0;
}

enum xm_status
xm_planner_plan(struct xm_plan *p, const struct xm_graph *g, struct xm_error *err)
{
    struct xm_program *program = NULL;
    XM_TRY(compile(p, g, &p->config, &program, err));
    p->decided = program->config;
    enum xm_status s = xm_planner_count(program, &p->wish, &p->need, err);
    if (s == XM_OK)
        s = add_expert_cache(p, g, &program, err);
    p->excess = xm_planner_excess(&p->need, &p->room);
    if (s == XM_NO_MEMORY && program)
        s = say_what_would_fit(p, program, err);
    else if (s == XM_OK && !p->only_this)
        s = find_largest_context(p, program, err);
    if (s == XM_OK)
        s = find_kv_groups(p, program, err);
    if (s == XM_OK)
        s = xm_planner_count_work(program, &p->wish, &p->prompt_work, &p->token_work,
                                  err);
    if (s == XM_OK)
        p->weight_format = xm_planner_weight_format(program);
    xm_program_unref(program);
    if (s == XM_OK && p->excess && !p->only_this)
        s = find_advice(p, g, err);
    return s;
}

uint64_t
xm_planner_usual_context(uint64_t trained)
{
    return trained && trained < USUAL_CONTEXT ? trained : USUAL_CONTEXT;
}
