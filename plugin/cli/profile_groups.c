/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/profile_groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/program_util/lines.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

/* ---- groups -------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    const struct xm_profile_kernel *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int
kernel_by_time(const void *a, const void *b)
{
    const struct xm_profile_kernel *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static int
group_by_time(const void *a, const void *b)
{
    const struct xm_profile_group *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Whether two groups have the same operation and kernels. While rows are read, kernels are sorted
 * by name. */
static bool
is_same(const struct xm_profile_group *a, const struct xm_profile_group *b)
{
    bool same = strcmp(a->op, b->op) == 0 && a->n_kernels == b->n_kernels;
    for (size_t i = 0; same && i < a->n_kernels; i++)
        same = strcmp(a->kernels[i].name, b->kernels[i].name) == 0;
    return same;
}

static struct xm_profile_group *
group_of(struct xm_profile *p, const struct xm_profile_group *step)
{
    struct xm_profile_group *list = p->phases[p->phase].groups;
    const size_t n = p->phases[p->phase].n;
    for (size_t i = 0; i < n; i++) {
        if (is_same(&list[i], step))
            return &list[i];
    }
    list = xm_grow(list, &p->phases[p->phase].capacity, n + 1, sizeof(*list));
    if (!list) {
        xm_no_memory(&p->err, "a profile");
        return NULL;
    }
    p->phases[p->phase].groups = list;
    struct xm_profile_group *g = &list[p->phases[p->phase].n++];
    *g = *step;
    g->steps = g->runs = g->ns = g->steps_so_far = g->bytes = g->multiply_adds = 0;
    for (size_t k = 0; k < g->n_kernels; k++)
        g->kernels[k] = (struct xm_profile_kernel){.name = step->kernels[k].name};
    return g;
}

/* Adds a step whose rows are complete to its group. */
static void
end_step(struct xm_profile *p)
{
    struct xm_profile_group *step = &p->step;
    qsort(step->kernels, step->n_kernels, sizeof(*step->kernels), by_name);
    struct xm_profile_group *g = step->n_kernels ? group_of(p, step) : NULL;
    if (!g)
        return;
    g->steps_so_far++;
    g->steps = g->steps > g->steps_so_far ? g->steps : g->steps_so_far;
    g->runs += step->runs;
    g->ns += step->ns;
    g->bytes += step->bytes;
    g->multiply_adds += step->multiply_adds;
    for (size_t k = 0; k < g->n_kernels; k++) {
        g->kernels[k].runs += step->kernels[k].runs;
        g->kernels[k].ns += step->kernels[k].ns;
        g->kernels[k].unmeasured += step->kernels[k].unmeasured;
    }
}

static struct xm_profile_kernel *
kernel_of(struct xm_profile_group *step, const char *name)
{
    for (size_t i = 0; i < step->n_kernels; i++) {
        if (strcmp(step->kernels[i].name, name) == 0)
            return &step->kernels[i];
    }
    if (step->n_kernels == XM_PROFILE_KERNELS)
        return &step->kernels[XM_PROFILE_KERNELS - 1];
    step->kernels[step->n_kernels] = (struct xm_profile_kernel){.name = name};
    return &step->kernels[step->n_kernels++];
}

static void
add_row(void *ctx, const struct xm_profile_row *row)
{
    struct xm_profile *p = ctx;
    struct xm_profile_group *step = &p->step;
    if (!step->op || row->step != p->step_index) {
        if (step->op)
            end_step(p);
        *step = (struct xm_profile_group){
            .op = row->op, .runs = row->step_runs, .on_host = row->on_host};
        p->step_index = row->step;
    }
    step->bytes += row->bytes;
    step->multiply_adds += row->multiply_adds;
    if (row->runs == 0)
        return;
    struct xm_profile_kernel *k = kernel_of(step, row->kernel);
    k->runs += row->runs;
    k->ns += row->ns;
    k->unmeasured += row->unmeasured;
    step->ns += row->ns;
}

/* ---- taking -------------------------------------------------------------------------- */

enum xm_status
xm_profile_begin(struct xm_profile *p, struct xm_infer *r, bool traces,
                 struct xm_error *err)
{
    const struct xm_profile_ops *ops = r->ops->profile;
    if (!ops)
        return xm_fail(err, XM_UNSUPPORTED,
                       "option --profile: this device does not measure its steps");
    ops->reset(r);
    if (traces)
        XM_TRY(ops->begin_trace(r, err));
    p->request = r;
    return XM_OK;
}

void
xm_profile_take(struct xm_profile *p, enum xm_profile_phase phase)
{
    if (!p->request)
        return;
    const struct xm_profile_ops *ops = p->request->ops->profile;
    p->phase = phase;
    p->has_prompt |= phase == XM_PROFILE_PROMPT;
    for (size_t i = 0; i < p->phases[phase].n; i++)
        p->phases[phase].groups[i].steps_so_far = 0;
    ops->rows(p->request, add_row, p, &p->err);
    if (p->step.op)
        end_step(p);
    p->step = (struct xm_profile_group){0};
    ops->reset(p->request);
}

void
xm_profile_free(struct xm_profile *p)
{
    for (int i = 0; i < XM_PROFILE_PHASES; i++)
        xm_free(p->phases[i].groups);
    *p = (struct xm_profile){0};
}

/* ---- figures ------------------------------------------------------------------------- */

static const char *const phase_names[] = {"prompt", "decode"};

/* The sums of a phase. */
struct total {
    double wall_s;
    /* ns: of all rows; host_ns: of rows on the host */
    uint64_t tokens, ns, host_ns, unmeasured;
    uint64_t bytes, multiply_adds;
};

/* Returns the sums of a phase, and sorts its groups. */
static struct total
total_of(struct xm_profile *p, int phase, const struct xm_generation_times *times)
{
    const bool is_prompt = phase == XM_PROFILE_PROMPT;
    struct total t = {.wall_s = is_prompt ? times->prompt_s : times->decode_s,
                      .tokens = is_prompt ? times->prompt_tokens : times->decode_tokens};
    struct xm_profile_group *groups = p->phases[phase].groups;
    const size_t n = p->phases[phase].n;
    if (n)
        qsort(groups, n, sizeof(*groups), group_by_time);
    for (size_t i = 0; i < n; i++) {
        struct xm_profile_group *g = &groups[i];
        qsort(g->kernels, g->n_kernels, sizeof(*g->kernels), kernel_by_time);
        t.ns += g->ns;
        t.host_ns += g->on_host ? g->ns : 0;
        t.bytes += g->bytes;
        t.multiply_adds += g->multiply_adds;
        for (size_t k = 0; k < g->n_kernels; k++)
            t.unmeasured += g->kernels[k].unmeasured;
    }
    return t;
}

static double
ms(uint64_t ns)
{
    return 1e-6 * (double)ns;
}

/* Converts a number per nanosecond to 1e9 a second. */
static double
per_ns(double n, uint64_t ns)
{
    return ns ? n / (double)ns : 0.0;
}

static double
gbps(uint64_t bytes, uint64_t ns)
{
    return per_ns((double)bytes, ns);
}

static double
gflops(uint64_t multiply_adds, uint64_t ns)
{
    return per_ns(2.0 * (double)multiply_adds, ns);
}

static double
percent_of(double part, double whole)
{
    return whole > 0.0 ? 100.0 * part / whole : 0.0;
}

/* ---- the table ------------------------------------------------------------------------ */

/* Whether rates are printed. A row has 36 columns of numbers, 36 of rates, and the names of
 * operation and kernels. On a narrow terminal rates, and then counts, are omitted. */
static bool
has_rates(const struct xm_lines *o)
{
    return o->columns >= 96;
}

static bool
has_counts(const struct xm_lines *o)
{
    return o->columns >= 60;
}

/* Prints "  12.3  45 %"; without the share if the limit is not known, blank for 0. */
static void
print_rate(struct xm_lines *o, double rate, double limit)
{
    if (rate <= 0.0)
        xm_lines_add(o, "                 ");
    else if (limit > 0.0)
        xm_lines_add(o, "  %9.2f %3.0f %%", rate, percent_of(rate, limit));
    else
        xm_lines_add(o, "  %9.2f      ", rate);
}

/* Prints a row up to its name. Steps or runs that are 0 are not shown, for rows of totals. */
static void
print_numbers(struct xm_lines *o, uint64_t steps, uint64_t runs, uint64_t ns,
              uint64_t all_ns)
{
    char counts[2][24] = {"", ""};
    if (steps)
        snprintf(counts[0], sizeof(counts[0]), "%" PRIu64, steps);
    if (runs)
        snprintf(counts[1], sizeof(counts[1]), "%" PRIu64, runs);
    if (has_counts(o))
        xm_lines_add(o, "%6s %8s ", counts[0], counts[1]);
    xm_lines_add(o, "%12.3f %5.1f %%", ms(ns), percent_of(ms(ns), ms(all_ns)));
}

static void
print_work(struct xm_lines *o, uint64_t bytes, uint64_t multiply_adds, uint64_t ns,
           const struct xm_costs *c)
{
    if (!has_rates(o))
        return;
    print_rate(o, gbps(bytes, ns), c->read_rate / 1e9);
    print_rate(o, gflops(multiply_adds, ns), 2.0 * c->multiply_rate / 1e9);
}

static void
print_group(struct xm_lines *o, const struct xm_profile_group *g, const struct total *t,
            const struct xm_costs *c)
{
    const bool is_one = g->n_kernels == 1;
    print_numbers(o, g->steps, g->runs, g->ns, t->ns);
    print_work(o, g->bytes, g->multiply_adds, g->ns, c);
    xm_lines_add(o, "  %s%s%s\n", g->op, is_one ? ": " : "",
                 is_one ? g->kernels[0].name : "");
    for (size_t k = 0; !is_one && k < g->n_kernels; k++) {
        print_numbers(o, 0, g->kernels[k].runs, g->kernels[k].ns, t->ns);
        xm_lines_add(o, "%*s%s\n", has_rates(o) ? 37 : 4, "", g->kernels[k].name);
    }
}

static void
print_phase(struct xm_lines *o, struct xm_profile *p, int phase, const struct xm_costs *c)
{
    const struct total t = total_of(p, phase, &c->times);
    const double device_ms = ms(t.ns - t.host_ns);
    xm_lines_add(
        o, "profile of %s: %" PRIu64 " token%s, %.3f ms: %.3f ms on the device, ",
        phase_names[phase], t.tokens, xm_plural(t.tokens), 1e3 * t.wall_s, device_ms);
    if (t.host_ns)
        xm_lines_add(o, "%.3f ms in host steps, ", ms(t.host_ns));
    xm_lines_add(o, "%.3f ms elsewhere\n", 1e3 * t.wall_s - ms(t.ns));
    xm_lines_add(o, "%s          ms   share%s  op: kernel\n",
                 has_counts(o) ? " steps     runs " : "",
                 has_rates(o) ? "       GB/s             GFLOP/s      " : "");
    for (size_t i = 0; i < p->phases[phase].n; i++)
        print_group(o, &p->phases[phase].groups[i], &t, c);
    print_numbers(o, 0, 0, t.ns, t.ns);
    print_work(o, t.bytes, t.multiply_adds, t.ns, c);
    xm_lines_add(o, "  all\n");
    if (t.unmeasured)
        xm_lines_add(o, "not measured: %" PRIu64 " launch%s\n", t.unmeasured,
                     t.unmeasured == 1 ? "" : "es");
}

static void
print_limits(struct xm_lines *o, const struct xm_costs *c)
{
    if (c->read_rate > 0.0)
        xm_lines_add(o, "shares of GB/s refer to the device's read rate, %.2f GB/s\n",
                     c->read_rate / 1e9);
    if (c->multiply_rate > 0.0)
        xm_lines_add(o,
                     "shares of GFLOP/s refer to the device's rate of multiply-adds, "
                     "%.2f GFLOP/s\n",
                     2.0 * c->multiply_rate / 1e9);
}

void
xm_profile_print(struct xm_profile *p, const struct xm_costs *c)
{
    struct xm_lines o = xm_lines_to(stderr);
    for (int i = 0; i < XM_PROFILE_PHASES; i++) {
        if (p->phases[i].n)
            print_phase(&o, p, i, c);
    }
    print_limits(&o, c);
    xm_lines_end(&o);
    if (p->err.status != XM_OK)
        xm_log(XM_LOG_WARNING, "the profile is incomplete: %s", p->err.text);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void
add_share(struct xm_json_out *j, yyjson_mut_val *o, const char *key, double part,
          double whole)
{
    if (whole > 0.0)
        xm_json_add_real(j, o, key, part / whole);
}

static void
add_group(const struct xm_profile_group *g, const char *phase, const struct total *t,
          const struct xm_costs *c, struct xm_json_out *j, yyjson_mut_val *list)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    uint64_t unmeasured = 0;
    xm_json_add_text(j, o, "phase", phase, strlen(phase));
    xm_json_add_text(j, o, "op", g->op, strlen(g->op));
    yyjson_mut_val *kernels = xm_json_add_array(j, o, "kernels");
    for (size_t k = 0; k < g->n_kernels; k++) {
        const struct xm_profile_kernel *kernel = &g->kernels[k];
        yyjson_mut_val *one = xm_json_add_object(j, kernels, NULL);
        xm_json_add_text(j, one, "kernel", kernel->name, strlen(kernel->name));
        xm_json_add_whole(j, one, "runs", kernel->runs);
        xm_json_add_real(j, one, "ms", ms(kernel->ns));
        unmeasured += kernel->unmeasured;
    }
    xm_json_add_whole(j, o, "steps", g->steps);
    xm_json_add_whole(j, o, "runs", g->runs);
    xm_json_add_real(j, o, "ms", ms(g->ns));
    add_share(j, o, "share", ms(g->ns), ms(t->ns));
    xm_json_add_bool(j, o, "on_host", g->on_host);
    xm_json_add_whole(j, o, "unmeasured", unmeasured);
    xm_json_add_whole(j, o, "bytes", g->bytes);
    xm_json_add_whole(j, o, "multiply_adds", g->multiply_adds);
    if (g->ns) {
        xm_json_add_real(j, o, "gbps", gbps(g->bytes, g->ns));
        xm_json_add_real(j, o, "gflops", gflops(g->multiply_adds, g->ns));
    }
    add_share(j, o, "share_of_streaming", gbps(g->bytes, g->ns), c->read_rate / 1e9);
    add_share(j, o, "share_of_multiplying", gflops(g->multiply_adds, g->ns),
              2.0 * c->multiply_rate / 1e9);
}

void
xm_profile_add_json(struct xm_profile *p, const struct xm_costs *c, struct xm_json_out *j)
{
    if (!p->request)
        return;
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "profile");
    for (int i = 0; i < XM_PROFILE_PHASES; i++) {
        const struct total t = total_of(p, i, &c->times);
        for (size_t g = 0; g < p->phases[i].n; g++)
            add_group(&p->phases[i].groups[g], phase_names[i], &t, c, j, list);
    }
}
