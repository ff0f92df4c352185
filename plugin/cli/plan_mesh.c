/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe plan for a model that several devices share: devices of this computer, or chips that need
 * not be in it.
 */
#include "plugin/cli/plan_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/kernels.h"
#include "plugin/cli/plan_forecast.h"
#include "plugin/cli/quantity.h"
#include "plugin/mesh/mesh_plan.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

struct planned {
    struct xm_mesh_plan mesh;
    struct xm_rates rates[XM_MOST_RANKS];
    /* The whole model on the rank that reads fastest, and its name; NULL: not planned, or it does
     * not fit there. */
    struct xm_plan alone;
    const char *alone_name;
    struct xm_run_seconds alone_prompt, alone_token;
    /* number of such devices on which the model would fit, if it does not; 0: not known */
    uint32_t enough;
};

/* ---- which devices ------------------------------------------------------------------- */

/* Moves *name from "2xbmg" to "bmg", and sets *times to 2. Returns false: there is no number before
 * it. */
static bool
has_times(const char **name, size_t *n, uint64_t *times)
{
    const size_t digits = strspn(*name, "0123456789");
    *times = 1;
    if (digits == 0 || digits >= *n || (*name)[digits] != 'x')
        return false;
    *times = 0;
    for (size_t i = 0; i < digits && *times <= XM_MOST_RANKS; i++)
        *times = 10 * *times + (uint64_t)((*name)[i] - '0');
    *name += digits + 1;
    *n -= digits + 1;
    return true;
}

bool
xm_plan_is_mesh(const struct xm_plan_args *a)
{
    const char *chips = a->chip.device_as;
    size_t n = chips ? strlen(chips) : 0;
    uint64_t times;
    return a->nodes > 1 || xm_mesh_list(a->chip.device) || xm_mesh_list(chips) ||
           (chips && (strchr(chips, '(') || has_times(&chips, &n, &times)));
}

/* Appends an item of a list: a name, or "2xNAME" as NAME,NAME. */
static enum xm_status
write_out_one(const char *text, size_t n, struct xm_strbuf *out, struct xm_error *err)
{
    const char *name = text;
    size_t n_name = n;
    uint64_t times;
    if (has_times(&name, &n_name, &times)) {
        const char *why = n_name == 0             ? "has no name after the x"
                          : times == 0            ? "is not a device"
                          : times > XM_MOST_RANKS ? "is more devices than a mesh can have"
                                                  : NULL;
        if (why)
            return xm_fail(err, XM_INVALID,
                           "'%.*s' %s: COUNTxNAME has a count from 1 to %d",
                           (int)(n < 60 ? n : 60), text, why, XM_MOST_RANKS);
    }
    for (uint64_t i = 0; i < times; i++)
        xm_strbuf_printf(out, "%s%.*s", i ? "," : "", (int)n_name, name);
    return XM_OK;
}

/* Appends the list, with each "2xNAME" as NAME,NAME. */
static enum xm_status
write_out(const char *list, struct xm_strbuf *out, struct xm_error *err)
{
    for (size_t n;; list += n + 1) {
        n = strcspn(list, ",(");
        XM_TRY(write_out_one(list, n, out, err));
        if (list[n] != ',') {
            xm_strbuf_add(out, list + n);
            return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a plan");
        }
        xm_strbuf_add(out, ",");
    }
}

/* Parses the devices of a node, which may be a single one. */
static enum xm_status
parse_devices(const struct xm_plan_args *a, const char *given,
              struct xm_mesh_devices *out, struct xm_error *err)
{
    struct xm_strbuf list = {0};
    enum xm_status s =
        write_out(xm_mesh_list(given) ? xm_mesh_list(given) : given, &list, err);
    const char *names = xm_strbuf_text(&list);
    const bool is_one = strcspn(names, ",(") == list.n && list.n > 0;
    if (s == XM_OK && is_one && a->nodes > 1 && list.n < XM_DEVICE_NAME) {
        *out = (struct xm_mesh_devices){.n = 1, .share = {1.0}};
        memcpy(out->name[0], names, list.n + 1);
    } else if (s == XM_OK)
        s = xm_mesh_parse(names, 0, out, err);
    if (s == XM_OK)
        xm_mesh_leave_out(out);
    xm_strbuf_free(&list);
    return s;
}

static int
find_devices(const struct xm_plan_args *a, struct xm_mesh_plan *p)
{
    const bool is_imagined = a->chip.device_as != NULL;
    const char *given = is_imagined      ? a->chip.device_as
                        : a->chip.device ? a->chip.device
                                         : "GPU";
    const char *option = is_imagined ? "--device-as" : "-d";
    struct xm_error err = {0};
    if (a->chip.device_as && a->chip.device)
        return xm_cli_usage("give only one of -d and --device-as: devices of this "
                            "computer, or chips that need not be in it");
    const enum xm_status s = parse_devices(a, given, &p->devices, &err);
    if (s == XM_INVALID)
        return xm_cli_usage("option %s: %s%s", option, err.text,
                            is_imagined ? "; as in b580, 2xb580 or b580,b70(1,2)" : "");
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

/* ---- nodes and links ------------------------------------------------------------------ */

/* Repeats the devices of one node, and their rates, for each node. */
static int
repeat_devices(const struct xm_plan_args *a, struct xm_mesh_plan *p,
               struct xm_rates *rates)
{
    const uint32_t n = p->devices.n;
    const uint64_t nodes = a->nodes ? a->nodes : 1;
    if (nodes > XM_MOST_RANKS / n)
        return xm_cli_usage(
            "option --nodes takes at most %u machines of %u device%s each, found %" PRIu64
            ": a mesh has at most %d devices",
            XM_MOST_RANKS / n, n, xm_plural(n), nodes, XM_MOST_RANKS);
    p->cluster.nodes = (uint32_t)nodes;
    p->cluster.ranks_of_node = n;
    for (uint32_t i = n; i < nodes * n; i++) {
        memcpy(p->devices.name[i], p->devices.name[i % n], XM_DEVICE_NAME);
        p->devices.share[i] = p->devices.share[i % n];
        p->rank[i].info = p->rank[i % n].info;
        rates[i] = rates[i % n];
    }
    p->devices.n = (uint32_t)nodes * n;
    return XM_EXIT_OK;
}

/* Reads the links; --link is the one between nodes if there are several. */
static int
find_links(const struct xm_plan_args *a, struct xm_mesh_plan *p)
{
    const struct xm_link usual = {p->wish.link_rate, p->wish.link_latency_s};
    struct xm_link *outer =
        p->cluster.nodes > 1 ? &p->cluster.between : &p->cluster.local;
    p->cluster.local = p->cluster.between = usual;
    int code = a->link ? xm_plan_read_link("--link", a->link, outer) : XM_EXIT_OK;
    if (code == XM_EXIT_OK && a->local_link)
        code = xm_plan_read_link("--local-link", a->local_link, &p->cluster.local);
    return code;
}

/* ---- printing ------------------------------------------------------------------------------ */

static double
mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

static uint64_t
weights_of(const struct xm_memory_need *n)
{
    return n->weights + n->mapped_weights;
}

static bool
is_alike(const struct xm_mesh_plan *p, uint32_t a, uint32_t b)
{
    const struct xm_memory_need *x = &p->rank[a].need, *y = &p->rank[b].need;
    return strcmp(p->devices.name[a], p->devices.name[b]) == 0 &&
           p->rank[a].excess == p->rank[b].excess && weights_of(x) == weights_of(y) &&
           x->token_weights == y->token_weights && x->kv == y->kv &&
           x->kinds.total_peak == y->kinds.total_peak;
}

static const struct xm_table_column rank_columns[] = {
    {"ranks", -5},   {"device", -8}, {"weights", 9},    {"per token", 9},
    {"KV cache", 9}, {"needed", 9},  {"available", 10}, {"", 11}};
static const struct xm_table ranks_table = {rank_columns, XM_ARRAY_LEN(rank_columns)};

enum { MIB_TEXT = 32 };
static const char *
mib_text(uint64_t bytes, char out[MIB_TEXT])
{
    snprintf(out, MIB_TEXT, "%.1f", mib(bytes));
    return out;
}

/* Prints a line for rank i and the equal ranks after it; returns the first different rank. */
static uint32_t
print_ranks(struct xm_lines *o, const struct xm_mesh_plan *p, uint32_t i)
{
    const struct xm_plan *r = &p->rank[i];
    uint32_t end = i + 1;
    char ranks[24];
    while (end < p->devices.n && is_alike(p, i, end))
        end++;
    snprintf(ranks, sizeof(ranks), end == i + 1 ? "%u" : "%u-%u", i, end - 1);
    const uint64_t device = xm_planner_of_device(&r->need, &r->room);
    char room[32] = "not known";
    if (r->room.known)
        snprintf(room, sizeof(room), "%.1f", mib(r->room.device));
    char weights[MIB_TEXT], token[MIB_TEXT], kv[MIB_TEXT], all[MIB_TEXT];
    xm_table_row(o, &ranks_table,
                 (const char *const[]){
                     ranks, p->devices.name[i], mib_text(weights_of(&r->need), weights),
                     mib_text(r->need.token_weights, token), mib_text(r->need.kv, kv),
                     mib_text(device, all), room, r->excess ? "too small" : ""});
    return end;
}

static bool
is_known(const struct xm_mesh_plan *p)
{
    bool known = true;
    for (uint32_t i = 0; i < p->devices.n; i++)
        known &= p->rank[i].room.known;
    return known;
}

/* Prints the host memory that ranks share, if there is too little. */
static void
print_shared(struct xm_lines *o, const struct xm_mesh_plan *p)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < p->devices.n; i++)
        if (p->rank[i].room.host_is_device)
            room = p->rank[i].room.device;
    xm_lines_add(o,
                 "it does not fit: the host's memory, which several of the devices use, "
                 "is %.1f MiB too small\n  it would fit with %.0f MiB of host memory, a "
                 "smaller context or KV cache, or a model with smaller weights\n",
                 mib(p->shared_excess), ceil(mib(room + p->shared_excess)));
}

/* Returns the largest need of device memory among the ranks whose device has less. */
static uint64_t
most_needed(const struct xm_mesh_plan *p)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        const struct xm_plan *r = &p->rank[i];
        const uint64_t needed = xm_planner_of_device(&r->need, &r->room);
        if (needed > r->room.device && needed > most)
            most = needed;
    }
    return most;
}

static void
print_advice(struct xm_lines *o, const struct xm_plan_args *a, const struct planned *r)
{
    const struct xm_mesh_plan *p = &r->mesh;
    const uint64_t most = most_needed(p);
    xm_lines_add(o, "it does not fit\n");
    if (p->n_advice || !r->enough)
        xm_plan_print_advice(o, p->advice, p->n_advice);
    if (r->enough && a->chip.device_as)
        xm_lines_add(o, "  %s --device-as %ux%s\n",
                     p->n_advice ? "or" : "it would fit with", r->enough,
                     p->devices.name[0]);
    else if (r->enough)
        xm_lines_add(o, "  %s %u devices like these\n",
                     p->n_advice ? "or" : "it would fit with", r->enough);
    if (most)
        xm_lines_add(
            o,
            "  %s %.0f MiB of memory on each device, or a model with smaller weights\n",
            p->n_advice || r->enough ? "or" : "it would fit with", ceil(mib(most)));
}

static void
print_verdict(struct xm_lines *o, const struct xm_plan_args *a, const struct planned *r)
{
    const struct xm_mesh_plan *p = &r->mesh;
    char why[XM_CLI_WARNING];
    for (uint32_t i = 0; i < p->devices.n; i++) {
        if (!xm_plan_takes_this_memory(a, &p->rank[i]))
            continue;
        xm_lines_add(o, "the memory of this computer is assumed, because %s\n",
                     xm_plan_no_memory(p->devices.name[i], why));
        break;
    }
    if (!is_known(p))
        xm_lines_add(o,
                     "the memory of a device is not known; give it with --memory MIB\n");
    else if (xm_mesh_plan_fits(p))
        xm_lines_add(o, "it fits\n");
    else if (p->shared_excess)
        print_shared(o, p);
    else
        print_advice(o, a, r);
    xm_lines_add(o, "\n");
}

static void
print_link(struct xm_lines *o, const char *whose, const struct xm_link *l)
{
    xm_lines_add(o, "between the devices %s: %.4g GB/s, %.4g us per message\n", whose,
                 l->rate / 1e9, 1e6 * l->latency_s);
}

static void
print_exchanges(struct xm_lines *o, const struct xm_mesh_plan *p)
{
    if (p->devices.n == 1)
        xm_lines_add(o, "the only device with a share of the model runs all of it\n");
    else if (p->n_exchanges == 0)
        xm_lines_add(o, "nothing is split: each device would run the whole model, "
                        "because messages would cost\nmore time than they save; give "
                        "--split tensor to split the model anyway\n");
    else
        xm_lines_add(o, "a token exchanges %.1f KiB in %u messages:\n%s",
                     (double)p->exchanged_bytes / 1024.0, p->n_exchanges,
                     p->exchange_kinds);
    if (p->cluster.ranks_of_node > 1)
        print_link(o, "of a machine", &p->cluster.local);
    if (p->cluster.nodes > 1)
        print_link(o, "of several machines", &p->cluster.between);
}

static void
print_text(const struct xm_plan_args *a, const struct planned *r,
           const struct xm_plan_forecast *f)
{
    const struct xm_mesh_plan *p = &r->mesh;
    struct xm_lines o = xm_lines_to(stdout);
    const struct xm_plan *first = &p->rank[0];
    struct xm_strbuf model = {0};
    char types[32];
    xm_cli_add_name(&model, a->model);
    xm_lines_add(&o,
                 "%s on %u device%s: context %" PRIu64 ", chunk %u, KV cache %s, %" PRIu64
                 " request%s\n\nMiB:\n",
                 xm_strbuf_text(&model), p->devices.n, xm_plural(p->devices.n),
                 first->wish.context, first->decided.ubatch,
                 xm_plan_cache_types(&first->decided, types), first->wish.requests,
                 xm_plural(first->wish.requests));
    xm_strbuf_free(&model);
    xm_table_head(&o, &ranks_table);
    for (uint32_t i = 0; i < p->devices.n;)
        i = print_ranks(&o, p, i);
    print_verdict(&o, a, r);
    print_exchanges(&o, p);
    if (xm_mesh_plan_fits(p))
        xm_plan_print_forecast(&o, f);
    xm_lines_end(&o);
}

static void
add_rank(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_plan_args *a,
         const struct xm_mesh_plan *p, uint32_t i)
{
    const struct xm_plan *r = &p->rank[i];
    const char *name = p->devices.name[i];
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_text(j, o, "device", name, strlen(name));
    xm_json_add_real(j, o, "share", p->devices.share[i]);
    xm_plan_add_need(j, o, &r->need);
    if (r->room.known) {
        xm_json_add_whole(j, o, "room", r->room.device);
        xm_plan_add_room_of(j, o, a, r);
        xm_json_add_whole(j, o, "missing", r->excess);
    }
}

/* Returns the bytes that a rank receives from the others for a token. */
static double
received_bytes(const struct xm_mesh_plan *p)
{
    const double others = p->devices.n - 1;
    return others * (p->exchanged.sum_bytes + p->exchanged_chosen.sum_bytes) +
           others / p->devices.n *
               (p->exchanged.part_bytes + p->exchanged_chosen.part_bytes) +
           p->exchanged.passed_bytes + p->exchanged_chosen.passed_bytes;
}

static enum xm_status
print_json(const struct xm_plan_args *a, const struct planned *r,
           const struct xm_plan_forecast *f, struct xm_error *err)
{
    const struct xm_mesh_plan *p = &r->mesh;
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "model", a->model, strlen(a->model));
    xm_json_add_whole(&j, NULL, "context", p->rank[0].wish.context);
    xm_json_add_whole(&j, NULL, "requests", p->rank[0].wish.requests);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "ranks");
    for (uint32_t i = 0; i < p->devices.n; i++)
        add_rank(&j, list, a, p, i);
    xm_json_add_whole(&j, NULL, "nodes", p->cluster.nodes);
    xm_json_add_bool(&j, NULL, "fits", xm_mesh_plan_fits(p));
    xm_json_add_whole(&j, NULL, "missing_of_shared_memory", p->shared_excess);
    yyjson_mut_val *x = xm_json_add_object(&j, NULL, "exchanges");
    xm_json_add_whole(&j, x, "messages", p->n_exchanges);
    xm_json_add_whole(&j, x, "bytes", p->exchanged_bytes);
    xm_json_add_real(&j, x, "received_bytes", received_bytes(p));
    xm_json_add_parts(&j, x, "kinds", p->exchange_kinds, "\n");
    if (xm_mesh_plan_fits(p))
        xm_plan_add_forecast(&j, f);
    else
        xm_plan_add_advice(&j, p->advice, p->n_advice);
    if (r->enough)
        xm_json_add_whole(&j, NULL, "enough_devices", r->enough);
    const enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* ---- rates that were measured --------------------------------------------------------- */

static enum xm_status
count_model(const struct xm_plan_args *a, const struct xm_config *config,
            struct xm_package *package, struct xm_mesh_plan *p, struct xm_graph **g,
            struct xm_error *err)
{
    xm_package_read(package, XM_PACKAGE_FACTS, NULL);
    for (uint32_t i = 0; i < p->devices.n; i++) {
        p->rank[i].config = *config;
        xm_plan_set_wish(a, package->facts.context, &p->rank[i]);
    }
    XM_TRY(xm_package_read_graph(package, NULL, g, err));
    return xm_mesh_plan(p, *g, err);
}

/* ---- more devices, and fewer ----------------------------------------------------------- */

/* Whether the model fits on n devices like p's, which are all equal. */
static bool
fits_on(const struct xm_mesh_plan *p, uint32_t n, const struct xm_graph *g)
{
    struct xm_mesh_plan *q = xm_calloc(1, sizeof(*q));
    if (!q)
        return false;
    q->devices.n = n;
    q->cluster = p->cluster;
    q->cluster.ranks_of_node = n;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(q->devices.name[i], p->devices.name[0], XM_DEVICE_NAME);
        q->devices.share[i] = 1.0;
        q->rank[i] = (struct xm_plan){.info = p->rank[0].info,
                                      .config = p->rank[0].config,
                                      .wish = p->rank[0].wish,
                                      .room = p->rank[0].room};
    }
    q->wish = p->wish;
    q->wish.ranks = n;
    q->wish.shares = q->devices.share;
    const bool fits = xm_mesh_plan(q, g, NULL) == XM_OK && xm_mesh_plan_fits(q);
    xm_mesh_free_plan(q);
    xm_free(q);
    return fits;
}

/* Returns the number of devices on which the model fits. More devices share weights and cache; so
 * the number is estimated from the missing bytes and then verified by planning. 0: not found, or
 * the devices differ. */
static uint32_t
find_enough(const struct xm_mesh_plan *p, const struct xm_graph *g)
{
    enum { TRIES = 3 };
    const uint32_t n = p->devices.n;
    double missing = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const struct xm_plan *r = &p->rank[i];
        if (strcmp(p->devices.name[i], p->devices.name[0]) != 0 ||
            p->devices.share[i] != p->devices.share[0] || p->cluster.nodes > 1 ||
            p->shared_excess || p->n_exchanges == 0 || r->room.device == 0)
            return 0;
        missing += (double)r->excess / (double)r->room.device;
    }
    const double least = ceil(missing) + n;
    for (uint32_t i = 0; i < TRIES && least + i <= XM_MOST_RANKS; i++) {
        if (fits_on(p, (uint32_t)least + i, g))
            return (uint32_t)least + i;
    }
    return 0;
}

/* Plans the whole model on the rank that reads fastest. */
static void
plan_alone(struct planned *r, const char *cache_dir, const struct xm_graph *g)
{
    const struct xm_mesh_plan *p = &r->mesh;
    uint32_t best = 0;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        if (!(r->rates[i].read > 0.0) || p->rank[i].need.host_weights)
            return;
        best = r->rates[i].read > r->rates[best].read ? i : best;
    }
    const struct xm_plan *rank = &p->rank[best];
    struct xm_rates rates = r->rates[best];
    r->alone = (struct xm_plan){.info = rank->info,
                                .config = rank->config,
                                .wish = rank->wish,
                                .room = rank->room,
                                .only_this = true};
    if (xm_planner_plan(&r->alone, g, NULL) != XM_OK || r->alone.excess ||
        r->alone.need.host_weights)
        return;
    xm_plan_find_rates(&r->alone, cache_dir, &rates);
    r->alone_name = p->devices.name[best];
    r->alone_token.all = xm_forecast_run(&r->alone.token_work, &rates);
    if (rates.multiply > 0.0)
        r->alone_prompt.all = xm_forecast_run(&r->alone.prompt_work, &rates);
}

/* Plans the mesh, and, if that is useful to know, more devices and a single one. */
static enum xm_status
count_all(const struct xm_plan_args *a, const struct xm_config *config,
          struct xm_package *package, const char *cache_dir, struct planned *r,
          struct xm_error *err)
{
    struct xm_mesh_plan *p = &r->mesh;
    struct xm_graph *g = NULL;
    const enum xm_status s = count_model(a, config, package, p, &g, err);
    for (uint32_t i = 0; i < p->devices.n && s == XM_OK; i++)
        xm_plan_find_rates(&p->rank[i], cache_dir, &r->rates[i]);
    if (s == XM_OK)
        xm_mesh_plan_take_together(p, cache_dir, r->rates);
    if (s == XM_OK && !xm_mesh_plan_fits(p))
        r->enough = p->wants_advice ? find_enough(p, g) : 0;
    else if (s == XM_OK)
        plan_alone(r, cache_dir, g);
    xm_graph_destroy(g);
    return s;
}

void
xm_plan_keep_mesh(const struct xm_plan_args *a, const struct xm_config *config,
                  struct xm_package *package, const char *cache_dir, double prompt_s,
                  double token_s)
{
    struct xm_mesh_plan *p = xm_calloc(1, sizeof(*p));
    struct xm_rates rates[XM_MOST_RANKS] = {0};
    struct xm_graph *g = NULL;
    if (p && find_devices(a, p) == XM_EXIT_OK &&
        repeat_devices(a, p, rates) == XM_EXIT_OK &&
        xm_mesh_wish(&p->devices, xm_cli_split_policy(a->split), &p->wish, NULL) ==
            XM_OK &&
        find_links(a, p) == XM_EXIT_OK) {
        xm_mesh_plan_rates(p, cache_dir);
        const bool is_counted = count_model(a, config, package, p, &g, NULL) == XM_OK;
        for (uint32_t i = 0; i < p->devices.n && is_counted; i++)
            xm_plan_find_rates(&p->rank[i], cache_dir, &rates[i]);
        if (is_counted)
            xm_mesh_plan_keep(p, rates, cache_dir, prompt_s, token_s);
        xm_graph_destroy(g);
    }
    if (p)
        xm_mesh_free_plan(p);
    xm_free(p);
}

/* ---- the command --------------------------------------------------------------------- */

/* Makes the forecast; `names` must outlive it. */
static struct xm_plan_forecast
forecast(const struct planned *r, const char *names[XM_MOST_RANKS])
{
    const struct xm_mesh_plan *p = &r->mesh;
    struct xm_plan_forecast f = {.prompt_tokens = p->rank[0].wish.prompt,
                                 .rates = r->rates,
                                 .names = names,
                                 .n = p->devices.n,
                                 .alone = r->alone_name,
                                 .alone_prompt = r->alone_prompt,
                                 .alone_token = r->alone_token};
    bool knows_prompts = true;
    for (uint32_t i = 0; i < p->devices.n; i++) {
        names[i] = p->devices.name[i];
        knows_prompts &= r->rates[i].multiply > 0.0;
        f.has_host_experts |= p->rank[i].need.host_weights > 0;
    }
    xm_mesh_forecast(p, r->rates, &f.prompt, &f.token);
    if (!knows_prompts)
        f.prompt = f.alone_prompt = (struct xm_run_seconds){0};
    return f;
}

static enum xm_status
plan_model(const struct xm_plan_args *a, struct xm_plan_result *model,
           struct xm_package *package, struct planned *r, struct xm_error *err)
{
    struct xm_mesh_plan *p = &r->mesh;
    struct xm_strbuf cache = {0};
    const char *names[XM_MOST_RANKS];
    XM_TRY(xm_plan_set_config(a, &model->plan.config, err));
    XM_TRY(xm_cli_cache_open(NULL, &cache, err));
    if (p->cluster.nodes == 1 &&
        /* with other nodes or a given link, the forecast is not for this machine */
        !a->link)
        xm_mesh_plan_rates(p, xm_strbuf_text(&cache));
    p->wants_advice = true;
    xm_progress_show("planning %s", a->model);
    enum xm_status s =
        count_all(a, &model->plan.config, package, xm_strbuf_text(&cache), r, err);
    xm_progress_clear();
    xm_strbuf_free(&cache);
    XM_TRY(s);
    const struct xm_plan_forecast f = forecast(r, names);
    if (a->json)
        return print_json(a, r, &f, err);
    print_text(a, r, &f);
    return XM_OK;
}

/* Finds the devices, links and rates of the options. */
static int
find_mesh(const struct xm_plan_args *a, struct planned *r, struct xm_error *err)
{
    struct xm_mesh_plan *p = &r->mesh;
    int code = find_devices(a, p);
    if (code == XM_EXIT_OK)
        code = xm_plan_read_bandwidths(a->bandwidth, r->rates, p->devices.n);
    if (code == XM_EXIT_OK)
        code = repeat_devices(a, p, r->rates);
    if (code == XM_EXIT_OK && xm_mesh_wish(&p->devices, xm_cli_split_policy(a->split),
                                           &p->wish, err) == XM_OK) {
        p->wish.halves_sums = xm_mesh_halves_sums(a->messages);
        code = find_links(a, p);
    }
    return code;
}

static int
run(const struct xm_plan_args *a, struct planned *r, struct xm_plan_result *model)
{
    struct xm_package *package = NULL;
    struct xm_error err = {0};
    int code = find_mesh(a, r, &err);
    if (code != XM_EXIT_OK)
        return code;
    enum xm_status s = err.status;
    if (s == XM_OK)
        s = xm_plan_open_model(a->model, model, &package, &err);
    if (s == XM_OK)
        s = plan_model(a, model, package, r, &err);
    xm_progress_clear();
    xm_package_close(package);
    if (s == XM_NO_MEMORY)
        xm_cli_print_failure(&err, "");
    else if (s != XM_OK)
        return xm_cli_failed(&err);
    else if (xm_mesh_plan_fits(&r->mesh))
        return xm_cli_flush();
    else if ((code = xm_cli_flush()) != XM_EXIT_OK)
        return code;
    else
        xm_say("the model does not fit on these devices");
    return XM_EXIT_DEVICE;
}

static void
free_planned(struct planned *r)
{
    if (r) {
        xm_mesh_free_plan(&r->mesh);
        xm_planner_free_plan(&r->alone);
    }
    xm_free(r);
}

int
xm_plan_mesh(const struct xm_plan_args *a)
{
    struct planned *r = xm_calloc(1, sizeof(*r));
    struct xm_plan_result *model = xm_calloc(1, sizeof(*model));
    struct xm_error err = {0};
    int code;
    if (r && model) {
        code = run(a, r, model);
        xm_strbuf_free(&model->compiled_from);
    } else {
        xm_no_memory(&err, "a plan");
        code = xm_cli_failed(&err);
    }
    free_planned(r);
    xm_free(model);
    return code;
}

void
xm_plan_say_alone(const struct xm_plan_args *a, const struct xm_config *config,
                  struct xm_package *package, const char *cache_dir)
{
    struct planned *r = xm_calloc(1, sizeof(*r));
    struct xm_error err = {0};
    const char *names[XM_MOST_RANKS];
    if (r && find_mesh(a, r, &err) == XM_EXIT_OK && err.status == XM_OK) {
        xm_mesh_plan_rates(&r->mesh, cache_dir);
        if (count_all(a, config, package, cache_dir, r, &err) == XM_OK) {
            struct xm_lines o = xm_lines_to(stderr);
            const struct xm_plan_forecast f = forecast(r, names);
            xm_plan_print_alone(&o, &f, "mesh:    ");
            xm_lines_end(&o);
        }
    }
    free_planned(r);
}
