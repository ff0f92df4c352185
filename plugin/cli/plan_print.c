/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/plan_command.h"
#include "plugin/cli/plan_forecast.h"
#include "plugin/cli/quantity.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/number.h"

/* The options for each change, as generate and chat name them. */
static const char *const options[XM_PLAN_N_CHANGES] = {
    [XM_PLAN_CONTEXT] = "--context",
    [XM_PLAN_KV] = "--kv",
    [XM_PLAN_CHUNK] = "--ubatch",
    [XM_PLAN_OFFLOAD] = "--offload",
};

static double
mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* Returns the memory that no other line counts, such as block tables and a growing cache. */
static uint64_t
rest(const struct xm_memory_need *n)
{
    return n->kinds.total_peak - n->weights - n->expert_cache - n->kv - n->activations -
           n->scratch - n->io;
}

/* Prints the cache of one sequence by groups of layers: those with a sliding window keep fewer
 * positions. */
static void
print_kv_groups(struct xm_lines *o, const struct xm_plan *p)
{
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        const struct xm_plan_kv_group *g = &p->kv_groups[i];
        char sees[32] = "all positions";
        if (g->window)
            snprintf(sees, sizeof(sees), "window %" PRIu64, g->window);
        xm_lines_add(o,
                     "  %-14s %12.1f MiB  for each sequence: %u layer%s, %" PRIu64
                     " positions\n",
                     sees, mib(g->bytes), g->layers, xm_plural(g->layers), g->positions);
    }
}

static void
print_need(struct xm_lines *o, const struct xm_plan *p)
{
    const struct xm_memory_need *n = &p->need;
    const uint64_t device = xm_planner_of_device(n, &p->room);
    enum { KV_CACHE = 4 };
    const struct {
        const char *what;
        uint64_t bytes;
        const char *note;
    } rows[] = {
        {"weights", n->weights - n->host_weights, "copied to the device"},
        {"weights", n->host_weights, "in host memory, from which they are read"},
        {"weights", n->mapped_weights, "read in the mapped file"},
        {"expert cache", n->expert_cache, "for recently used experts"},
        [KV_CACHE] = {"KV cache", n->kv, ""},
        {"activations", n->activations, ""},
        {"scratch", n->scratch, "one buffer for each request"},
        {"inputs, results", n->io, ""},
        {"tables, growth", rest(n), ""},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (rows[i].bytes)
            xm_lines_add(o, "%-16s %12.1f MiB%s%s\n", rows[i].what, mib(rows[i].bytes),
                         rows[i].note[0] ? "  " : "", rows[i].note);
        if (i == KV_CACHE)
            print_kv_groups(o, p);
    }
    xm_lines_add(
        o, "%-16s %12.1f MiB  %slargest buffer %.1f MiB, the device allows %.1f MiB\n",
        "needed", mib(device), p->room.host_is_device ? "" : "on the device; ",
        mib(n->kinds.largest), mib(p->info.max_alloc_bytes));
}

/* Prints a larger context than the requested one that also fits; at most the trained one. */
static void
print_larger_context(struct xm_lines *o, const struct xm_plan *p, uint64_t trained)
{
    if (p->largest_context <= p->wish.context || (trained && trained <= p->wish.context))
        return;
    if (trained && trained <= p->largest_context)
        xm_lines_add(o,
                     "; so does a context of %" PRIu64
                     ", the largest for which the model was trained",
                     trained);
    else
        xm_lines_add(o, "; so does a context of %" PRIu64 "%s", p->largest_context,
                     p->largest_context == XM_PLAN_LARGEST_CONTEXT ? " and more" : "");
}

/* Prints how much each token reads from the disk if mapped weights exceed the memory. */
static void
print_disk(struct xm_lines *o, const struct xm_plan *p)
{
    const uint64_t disk = xm_planner_token_disk(&p->need, &p->room);
    if (disk)
        xm_lines_add(o,
                     "  weights that do not fit are read from the disk again and again: "
                     "about %.1f MiB\n  for each token, of the %.1f MiB that it reads\n",
                     mib(disk), mib(p->need.token_weights));
}

/* Prints how much memory of the kind that is short would be enough. */
static void
print_more(struct xm_lines *o, const struct xm_plan *p, uint64_t needed, uint64_t there,
           const char *whose)
{
    if (needed > there)
        xm_lines_add(o, "  %s %.0f MiB of %smemory, or a model with smaller weights\n",
                     p->n_advice ? "or" : "it would fit with", ceil(mib(needed)), whose);
}

void
xm_plan_print_advice(struct xm_lines *o, const struct xm_plan_advice *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        xm_lines_add(o, "  %s %s %s\n", i ? "or" : "it would fit with",
                     options[list[i].change], list[i].value);
    if (n == 0)
        xm_lines_add(o, "  a smaller context, KV cache type, chunk or share of experts "
                        "alone is not enough\n");
}

void
xm_plan_add_advice(struct xm_json_out *j, const struct xm_plan_advice *advice, size_t n)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "advice");
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        const char *option = options[advice[i].change], *value = advice[i].value;
        xm_json_add_text(j, o, "option", option, strlen(option));
        xm_json_add_text(j, o, "value", value, strlen(value));
    }
}

static void
print_advice(struct xm_lines *o, const struct xm_plan *p)
{
    const bool shared = p->room.host_is_device;
    xm_plan_print_advice(o, p->advice, p->n_advice);
    print_more(o, p, xm_planner_of_device(&p->need, &p->room), p->room.device,
               shared ? "" : "the device's ");
    print_more(o, p, xm_planner_of_host(&p->need, &p->room), p->room.host, "the host's ");
    if (p->n_advice && !shared && p->need.experts &&
        !xm_config_user_set(&p->config, XM_OPTION_offload_ratio))
        xm_lines_add(o, "without --offload, generate leaves as many experts in host "
                        "memory as necessary\n");
}

bool
xm_plan_takes_this_memory(const struct xm_plan_args *a, const struct xm_plan *p)
{
    return a->chip.device_as && a->chip.memory == 0 && p->room.known &&
           p->room.host_is_device;
}

const char *
xm_plan_no_memory(const char *device, char out[XM_CLI_WARNING])
{
    snprintf(
        out, XM_CLI_WARNING,
        "%s has no memory of its own; give the memory of its computer with --memory MIB",
        device);
    return out;
}

void
xm_plan_add_room_of(struct xm_json_out *j, yyjson_mut_val *parent,
                    const struct xm_plan_args *a, const struct xm_plan *p)
{
    const char *whose = a->chip.memory                    ? "--memory"
                        : xm_plan_takes_this_memory(a, p) ? "this computer"
                                                          : "device";
    xm_json_add_text(j, parent, "room_of", whose, strlen(whose));
}

static void
print_verdict(struct xm_lines *o, const struct xm_plan_args *a, const struct xm_plan *p,
              uint64_t trained)
{
    const bool is_imagined = a->chip.device_as != NULL;
    char why[XM_CLI_WARNING], whose[XM_CLI_WARNING + 32];
    snprintf(whose, sizeof(whose), "  of this computer, because %s",
             xm_plan_no_memory(a->chip.device_as ? a->chip.device_as : "", why));
    if (!p->room.known) {
        xm_lines_add(o, "%-16s %12s      %s; give it with --memory MIB\n", "available",
                     "not known",
                     is_imagined ? "cards with this chip have different amounts"
                                 : "the device does not report it");
        return;
    }
    xm_lines_add(o, "%-16s %12.1f MiB%s\n", "available", mib(p->room.device),
                 xm_plan_takes_this_memory(a, p) ? whose
                 : p->room.host_is_device        ? "  shared with the host"
                                                 : "");
    if (p->excess) {
        xm_lines_add(o, "it does not fit: %.1f MiB are missing\n", mib(p->excess));
        print_disk(o, p);
        print_advice(o, p);
        return;
    }
    xm_lines_add(o, "it fits");
    print_larger_context(o, p, trained);
    xm_lines_add(o, "\n");
}

const char *
xm_plan_cache_types(const struct xm_config *c, char out[32])
{
    const char *k = xm_element_text(c->key_cache_precision),
               *v = xm_element_text(c->value_cache_precision);
    snprintf(out, 32, "%s%s%s", k, k == v ? "" : " and ", k == v ? "" : v);
    return out;
}

/* Makes the forecast; `rates` and `name` must outlive it. */
static struct xm_plan_forecast
forecast(const struct xm_plan_result *r, const char *const *name)
{
    struct xm_plan_forecast f = {.prompt_tokens = r->plan.wish.prompt,
                                 .rates = &r->rates,
                                 .names = name,
                                 .n = 1,
                                 .has_host_experts = r->plan.need.host_weights > 0};
    f.token.all = xm_forecast_run(&r->plan.token_work, &r->rates);
    if (r->rates.multiply > 0.0)
        f.prompt.all = xm_forecast_run(&r->plan.prompt_work, &r->rates);
    return f;
}

void
xm_plan_print_text(const struct xm_plan_args *a, const struct xm_plan_result *r)
{
    struct xm_lines o = xm_lines_to(stdout);
    const struct xm_plan *p = &r->plan;
    char warning[XM_CLI_WARNING], types[32];
    struct xm_strbuf model = {0}, from = {0};
    xm_cli_add_name(&model, a->model);
    xm_cli_add_name(&from, xm_strbuf_text(&r->compiled_from));
    xm_lines_add(&o, "%s", xm_strbuf_text(&model));
    if (from.n)
        xm_lines_add(&o, " (compiled from %s)", xm_strbuf_text(&from));
    xm_strbuf_free(&model);
    xm_strbuf_free(&from);
    xm_lines_add(&o,
                 " on %s: context %" PRIu64 ", chunk %u, KV cache %s, %" PRIu64
                 " request%s\n\n",
                 p->info.name, p->wish.context, p->decided.ubatch,
                 xm_plan_cache_types(&p->decided, types), p->wish.requests,
                 xm_plural(p->wish.requests));
    print_need(&o, p);
    print_verdict(&o, a, p, r->trained_context);
    if (xm_cli_beyond_training(p->wish.context, r->trained_context, warning))
        xm_lines_add(&o, "%s\n", warning);
    const char *name = p->info.name;
    const struct xm_plan_forecast f = forecast(r, &name);
    if (!p->excess)
        xm_plan_print_forecast(&o, &f);
    xm_lines_end(&o);
}

void
xm_plan_add_need(struct xm_json_out *j, yyjson_mut_val *parent,
                 const struct xm_memory_need *n)
{
    yyjson_mut_val *o = xm_json_add_object(j, parent, "memory");
    xm_json_add_whole(j, o, "weights", n->weights);
    xm_json_add_whole(j, o, "host_weights", n->host_weights);
    xm_json_add_whole(j, o, "mapped_weights", n->mapped_weights);
    xm_json_add_whole(j, o, "experts", n->experts);
    xm_json_add_whole(j, o, "token_weights", n->token_weights);
    xm_json_add_whole(j, o, "expert_cache", n->expert_cache);
    xm_json_add_whole(j, o, "kv_cache", n->kv);
    xm_json_add_whole(j, o, "activations", n->activations);
    xm_json_add_whole(j, o, "scratch", n->scratch);
    xm_json_add_whole(j, o, "inputs_and_results", n->io);
    xm_json_add_whole(j, o, "allocated", n->kinds.total_now);
    xm_json_add_whole(j, o, "allocated_peak", n->kinds.total_peak);
    xm_json_add_whole(j, o, "largest_buffer", n->kinds.largest);
    xm_cli_add_memory_kinds(j, xm_json_add_object(j, o, "kinds"), &n->kinds);
}

static void
add_kv_groups(struct xm_json_out *j, const struct xm_plan *p)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "kv_groups");
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        const struct xm_plan_kv_group *g = &p->kv_groups[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, o, "window", g->window);
        xm_json_add_whole(j, o, "layers", g->layers);
        xm_json_add_whole(j, o, "positions", g->positions);
        xm_json_add_whole(j, o, "sequence_bytes", g->bytes);
    }
}

enum xm_status
xm_plan_print_json(const struct xm_plan_args *a, const struct xm_plan_result *r,
                   struct xm_error *err)
{
    const struct xm_plan *p = &r->plan;
    struct xm_json_out j;
    char warning[XM_CLI_WARNING], types[32];
    const char *kv = xm_plan_cache_types(&p->decided, types);
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "model", a->model, strlen(a->model));
    if (r->compiled_from.n)
        xm_json_add_text(&j, NULL, "compiled_from", r->compiled_from.text,
                         r->compiled_from.n);
    xm_json_add_text(&j, NULL, "device", p->info.name, strlen(p->info.name));
    xm_json_add_whole(&j, NULL, "context", p->wish.context);
    xm_json_add_whole(&j, NULL, "chunk", p->decided.ubatch);
    xm_json_add_text(&j, NULL, "kv_cache", kv, strlen(kv));
    xm_json_add_whole(&j, NULL, "requests", p->wish.requests);
    xm_json_add_whole(&j, NULL, "offload", p->decided.offload_ratio);
    xm_plan_add_need(&j, NULL, &p->need);
    add_kv_groups(&j, p);
    if (p->room.known) {
        xm_json_add_whole(&j, NULL, "room", p->room.device);
        xm_plan_add_room_of(&j, NULL, a, p);
        xm_json_add_bool(&j, NULL, "fits", p->excess == 0);
        xm_json_add_whole(&j, NULL, "missing", p->excess);
        xm_json_add_whole(&j, NULL, "needed", xm_planner_of_device(&p->need, &p->room));
        xm_json_add_whole(&j, NULL, "needed_of_host",
                          xm_planner_of_host(&p->need, &p->room));
        xm_json_add_whole(&j, NULL, "disk_per_token",
                          xm_planner_token_disk(&p->need, &p->room));
        xm_json_add_whole(&j, NULL, "largest_context", p->largest_context);
    }
    if (r->trained_context) {
        xm_json_add_whole(&j, NULL, "trained_context", r->trained_context);
        xm_json_add_bool(
            &j, NULL, "beyond_training",
            xm_cli_beyond_training(p->wish.context, r->trained_context, warning));
    }
    const char *name = p->info.name;
    const struct xm_plan_forecast f = forecast(r, &name);
    if (!p->excess)
        xm_plan_add_forecast(&j, &f);
    xm_plan_add_advice(&j, p->advice, p->n_advice);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}
