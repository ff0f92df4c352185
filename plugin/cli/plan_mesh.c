/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe plan of a model that several devices share: devices of this computer, or chips that need
 * not be in it.
 */
#include "plugin/cli/plan_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/quantity.h"
#include "plugin/mesh/mesh_plan.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

/* ---- which devices ------------------------------------------------------------------- */

/* "2xbmg": two of them, and the name behind it; 1: the text is a name. */
static uint64_t
times_of(const char **name, size_t *n)
{
    const size_t digits = strspn(*name, "0123456789");
    uint64_t times = 0;
    if (digits == 0 || digits > 3 || digits + 1 >= *n || (*name)[digits] != 'x')
        return 1;
    for (size_t i = 0; i < digits; i++)
        times = 10 * times + (uint64_t)((*name)[i] - '0');
    *name += digits + 1;
    *n -= digits + 1;
    return times;
}

bool
xm_plan_is_mesh(const struct xm_plan_args *a)
{
    const char *chips = a->chip.device_as;
    size_t n = chips ? strlen(chips) : 0;
    return xm_mesh_list(a->chip.device) || xm_mesh_list(chips) ||
           (chips && times_of(&chips, &n) != 1);
}

/* The list with each "2xNAME" as NAME,NAME. */
static void
write_out(const char *list, struct xm_strbuf *out)
{
    for (size_t n; *list && *list != '('; list += n + (list[n] == ',')) {
        n = strcspn(list, ",(");
        const char *name = list;
        size_t n_name = n;
        for (uint64_t i = times_of(&name, &n_name); i > 0; i--)
            xm_strbuf_printf(out, "%s%.*s", out->n ? "," : "", (int)n_name, name);
    }
    xm_strbuf_add(out, list);
}

static int
find_devices(const struct xm_plan_args *a, struct xm_mesh_plan *p)
{
    const bool is_imagined = a->chip.device_as != NULL;
    const char *given = is_imagined ? a->chip.device_as : a->chip.device;
    const char *option = is_imagined ? "--device-as" : "-d";
    struct xm_strbuf list = {0};
    struct xm_error err = {0};
    if (a->chip.device_as && a->chip.device)
        return xm_cli_usage("give one of -d and --device-as: devices of this computer, "
                            "or chips that need not be in it");
    write_out(xm_mesh_list(given) ? xm_mesh_list(given) : given, &list);
    const enum xm_status s = xm_strbuf_ok(&list)
                                 ? xm_mesh_parse(list.text, 0, &p->devices, &err)
                                 : xm_no_memory(&err, "a plan");
    xm_strbuf_free(&list);
    if (s == XM_INVALID)
        return xm_cli_usage("option %s: %s", option, err.text);
    if (s != XM_OK)
        return xm_cli_failed(&err);
    for (uint32_t i = 0; i < p->devices.n; i++) {
        const char *name = p->devices.name[i];
        const struct xm_chip_args chip = {.device_as = is_imagined ? name : NULL};
        if (xm_cli_check_chip(&chip) != XM_EXIT_OK)
            return XM_EXIT_USAGE;
        if (xm_cli_find_chip(is_imagined ? NULL : name, chip.device_as, &p->rank[i].info,
                             &err) != XM_OK)
            return xm_cli_no_device(option, name, &err);
    }
    return XM_EXIT_OK;
}

/* ---- rates --------------------------------------------------------------------------- */

/* Reads a number above 0 and the unit that may stand behind it; NULL: there is none. */
static const char *
read_rate(const char *at, const char *unit, double *out)
{
    char *end = NULL;
    *out = xm_parse_double(at, &end);
    if (end == at || !(*out > 0.0) || !isfinite(*out))
        return NULL;
    return strncmp(end, unit, strlen(unit)) == 0 ? end + strlen(unit) : end;
}

static int
find_bandwidths(const char *list, struct xm_mesh_plan *p)
{
    const char *at = list;
    uint32_t n = 0;
    double rate;
    do {
        at = n < p->devices.n ? read_rate(at, "GB/s", &rate) : NULL;
        if (at)
            p->read_rate[n++] = 1e9 * rate;
    } while (at && *at == ',' && at++);
    if (!at || *at || (n != 1 && n != p->devices.n))
        return xm_cli_usage("option --bandwidth takes GB/s above 0, one number for all "
                            "devices or one for each of the %u; found '%.60s'",
                            p->devices.n, list);
    for (uint32_t i = n; i < p->devices.n; i++)
        p->read_rate[i] = p->read_rate[0];
    return XM_EXIT_OK;
}

static int
find_link(const char *text, struct xm_mesh_plan *p)
{
    double rate = 0.0, us = 0.0;
    const char *at = read_rate(text, "GB/s", &rate);
    at = at && *at == ',' ? read_rate(at + 1, "us", &us) : NULL;
    if (!at || *at)
        return xm_cli_usage("option --link takes GB/s and microseconds above 0, as "
                            "25,5; found '%.60s'",
                            text);
    p->link_rate = 1e9 * rate;
    p->link_latency_s = 1e-6 * us;
    return XM_EXIT_OK;
}

static int
find_rates(const struct xm_plan_args *a, struct xm_mesh_plan *p)
{
    const int code = a->bandwidth ? find_bandwidths(a->bandwidth, p) : XM_EXIT_OK;
    p->link_rate = p->wish.link_rate;
    p->link_latency_s = p->wish.link_latency_s;
    return code == XM_EXIT_OK && a->link ? find_link(a->link, p) : code;
}

/* ---- what is found ------------------------------------------------------------------- */

static double
mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

static bool
fits(const struct xm_mesh_plan *p)
{
    bool fits = p->shared_excess == 0;
    for (uint32_t i = 0; i < p->devices.n; i++)
        fits &= p->rank[i].excess == 0;
    return fits;
}

static uint64_t
weights_of(const struct xm_memory_need *n)
{
    return n->weights + n->mapped_weights;
}

static void
print_rank(struct xm_lines *o, const struct xm_mesh_plan *p, uint32_t i)
{
    const struct xm_plan *r = &p->rank[i];
    const uint64_t device = xm_planner_of_device(&r->need, &r->room);
    char room[32] = "not known";
    if (r->room.known)
        snprintf(room, sizeof(room), "%.1f", mib(r->room.device));
    xm_lines_add(o, "%4u  %-8s %9.1f %9.1f %9.1f %9.1f %10s%s\n", i, p->devices.name[i],
                 mib(weights_of(&r->need)), mib(r->need.token_weights), mib(r->need.kv),
                 mib(device), room, r->excess ? "  too little" : "");
}

static bool
is_known(const struct xm_mesh_plan *p)
{
    bool known = true;
    for (uint32_t i = 0; i < p->devices.n; i++)
        known &= p->rank[i].room.known;
    return known;
}

static void
print_verdict(struct xm_lines *o, const struct xm_mesh_plan *p)
{
    if (p->shared_excess)
        xm_lines_add(o,
                     "the host's memory, which several of them take: %.1f MiB too much\n",
                     mib(p->shared_excess));
    if (!is_known(p))
        xm_lines_add(o, "--memory MIB tells how much a device has\n");
    else if (fits(p))
        xm_lines_add(o, "it fits\n");
    xm_lines_add(o, "\n");
}

static void
print_times(struct xm_lines *o, const struct xm_mesh_plan *p)
{
    if (p->n_exchanges == 0) {
        xm_lines_add(o,
                     "nothing is split: each device would run all of the model, because "
                     "messages would cost\nmore than they save; --split tensor cuts "
                     "it all the same\n");
        return;
    }
    xm_lines_add(o,
                 "a token exchanges %.1f KiB in %u messages, in %.2f ms at %.4g GB/s and "
                 "%.4g us each:\n%s",
                 (double)p->exchanged_bytes / 1024.0, p->n_exchanges, 1e3 * p->exchange_s,
                 p->link_rate / 1e9, 1e6 * p->link_latency_s, p->exchange_kinds);
    if (p->read_s > 0.0)
        xm_lines_add(o,
                     "at most %.1f tokens/s: %.2f ms to read weights, %.2f ms for "
                     "exchanges (%.0f %%)\n",
                     1.0 / (p->read_s + p->exchange_s), 1e3 * p->read_s,
                     1e3 * p->exchange_s,
                     100.0 * p->exchange_s / (p->read_s + p->exchange_s));
}

static void
print_text(const struct xm_plan_args *a, const struct xm_mesh_plan *p)
{
    struct xm_lines o = xm_lines_to(stdout);
    const struct xm_plan *first = &p->rank[0];
    struct xm_strbuf model = {0};
    char types[32];
    xm_cli_add_name(&model, a->model);
    xm_lines_add(&o,
                 "%s on %u devices: context %" PRIu64 ", chunk %u, KV cache %s, %" PRIu64
                 " request%s\n\nMiB:\nrank  device     weights  of token  KV cache   "
                 "at most   there is\n",
                 xm_strbuf_text(&model), p->devices.n, first->wish.context,
                 first->decided.ubatch, xm_plan_cache_types(&first->decided, types),
                 first->wish.requests, first->wish.requests == 1 ? "" : "s");
    xm_strbuf_free(&model);
    for (uint32_t i = 0; i < p->devices.n; i++)
        print_rank(&o, p, i);
    print_verdict(&o, p);
    print_times(&o, p);
    xm_lines_end(&o);
}

static void
add_rank(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_mesh_plan *p,
         uint32_t i)
{
    const struct xm_plan *r = &p->rank[i];
    const char *name = p->devices.name[i];
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_text(j, o, "device", name, strlen(name));
    xm_json_add_real(j, o, "share", p->devices.share[i]);
    xm_plan_add_need(j, o, &r->need);
    if (r->room.known) {
        xm_json_add_whole(j, o, "room", r->room.device);
        xm_json_add_whole(j, o, "missing", r->excess);
    }
}

static enum xm_status
print_json(const struct xm_plan_args *a, const struct xm_mesh_plan *p,
           struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "model", a->model, strlen(a->model));
    xm_json_add_whole(&j, NULL, "context", p->rank[0].wish.context);
    xm_json_add_whole(&j, NULL, "requests", p->rank[0].wish.requests);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "ranks");
    for (uint32_t i = 0; i < p->devices.n; i++)
        add_rank(&j, list, p, i);
    xm_json_add_bool(&j, NULL, "fits", fits(p));
    xm_json_add_whole(&j, NULL, "missing_of_shared_memory", p->shared_excess);
    yyjson_mut_val *x = xm_json_add_object(&j, NULL, "exchanges");
    xm_json_add_whole(&j, x, "messages", p->n_exchanges);
    xm_json_add_whole(&j, x, "bytes", p->exchanged_bytes);
    xm_json_add_real(&j, x, "received_bytes", p->received_bytes);
    xm_json_add_real(&j, x, "seconds", p->exchange_s);
    xm_json_add_parts(&j, x, "kinds", p->exchange_kinds, "\n");
    if (p->read_s > 0.0) {
        xm_json_add_real(&j, NULL, "read_seconds", p->read_s);
        xm_json_add_real(&j, NULL, "tokens_per_second_at_most",
                         1.0 / (p->read_s + p->exchange_s));
    }
    const enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* ---- the command --------------------------------------------------------------------- */

static enum xm_status
plan_model(const struct xm_plan_args *a, struct xm_plan_result *model,
           struct xm_package *package, struct xm_mesh_plan *p, struct xm_error *err)
{
    struct xm_graph *g = NULL;
    xm_package_read(package, XM_PACKAGE_FACTS, NULL);
    XM_TRY(xm_plan_set_config(a, &model->plan.config, err));
    for (uint32_t i = 0; i < p->devices.n; i++) {
        p->rank[i].config = model->plan.config;
        xm_plan_set_wish(a, package->facts.context, &p->rank[i]);
    }
    xm_progress_show("counting %s", a->model);
    XM_TRY(xm_package_read_graph(package, NULL, &g, err));
    const enum xm_status s = xm_mesh_plan(p, g, err);
    xm_graph_destroy(g);
    xm_progress_clear();
    XM_TRY(s);
    if (a->json)
        return print_json(a, p, err);
    print_text(a, p);
    return XM_OK;
}

static int
run(const struct xm_plan_args *a, struct xm_mesh_plan *p, struct xm_plan_result *model)
{
    struct xm_package *package = NULL;
    struct xm_error err = {0};
    int code = find_devices(a, p);
    if (code != XM_EXIT_OK)
        return code;
    enum xm_status s =
        xm_mesh_wish(&p->devices, xm_cli_split_policy(a->split), &p->wish, &err);
    if (s == XM_OK)
        code = find_rates(a, p);
    if (code != XM_EXIT_OK)
        return code;
    if (s == XM_OK)
        s = xm_plan_open_model(a->model, model, &package, &err);
    if (s == XM_OK)
        s = plan_model(a, model, package, p, &err);
    xm_progress_clear();
    xm_package_close(package);
    if (s == XM_NO_MEMORY)
        xm_cli_print_failure(&err, "");
    else if (s != XM_OK)
        return xm_cli_failed(&err);
    else if (fits(p))
        return xm_cli_flush();
    else if ((code = xm_cli_flush()) != XM_EXIT_OK)
        return code;
    else
        fputs("xemoe: it does not fit on these devices\n", stderr);
    return XM_EXIT_DEVICE;
}

int
xm_plan_mesh(const struct xm_plan_args *a)
{
    struct xm_mesh_plan *p = xm_calloc(1, sizeof(*p));
    struct xm_plan_result *model = xm_calloc(1, sizeof(*model));
    struct xm_error err = {0};
    int code;
    if (p && model) {
        code = run(a, p, model);
        xm_mesh_free_plan(p);
        xm_strbuf_free(&model->compiled_from);
    } else {
        xm_no_memory(&err, "a plan");
        code = xm_cli_failed(&err);
    }
    xm_free(p);
    xm_free(model);
    return code;
}
