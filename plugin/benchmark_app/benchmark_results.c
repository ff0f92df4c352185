/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_results.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_out.h"
#include "runtime/util/number.h"

enum { MEDIAN = 50 }; /* the percentile that is called median */

static void
add(const struct xm_benchmark_results *r, const char *name, double value)
{
    xm_benchmark_report_add(r->report, XM_REPORT_RESULTS, name, "%.2f", value);
}

/* ---- latencies --------------------------------------------------------------------- */

/* Finds the latencies of a group's samples; group == n_groups: of all samples. */
static enum xm_status
find_latency(const struct xm_benchmark_results *r, size_t group,
             struct xm_benchmark_latency *out, size_t *count)
{
    const struct xm_benchmark_run *run = r->run;
    const size_t n_groups = r->inputs->n_groups;
    double *ms = xm_calloc(run->n + 1, sizeof(*ms));
    if (!ms)
        return xm_no_memory(r->err, "latencies");
    *count = 0;
    for (size_t i = 0; i < run->n; i++) {
        if (group == n_groups || run->samples[i].set % n_groups == group)
            ms[(*count)++] = run->samples[i].ms;
    }
    if (*count)
        *out = xm_benchmark_latency_of(ms, *count, r->args->percentile);
    xm_free(ms);
    return XM_OK;
}

/* ---- groups of shapes -------------------------------------------------------------- */

static void
report_latency(const struct xm_benchmark_results *r, const struct xm_benchmark_latency *l)
{
    add(r, "avg latency", l->average);
    add(r, "min latency", l->min);
    add(r, "max latency", l->max);
}

/* Adds the rows of a group; `l` NULL: the group had no inference. */
static void
report_group(const struct xm_benchmark_results *r, size_t group,
             const struct xm_benchmark_latency *l)
{
    struct xm_strbuf shapes = {0};
    xm_benchmark_group_print(r->inputs, group, &shapes);
    r->report->group = group + 1;
    xm_benchmark_report_add(r->report, XM_REPORT_RESULTS, "group", "%s",
                            xm_strbuf_text(&shapes));
    if (l)
        report_latency(r, l);
    r->report->group = 0;
    xm_strbuf_free(&shapes);
}

static void
say_group(const struct xm_benchmark_results *r, size_t group,
          const struct xm_benchmark_latency *l)
{
    struct xm_strbuf shapes = {0};
    xm_benchmark_group_print(r->inputs, group, &shapes);
    xm_benchmark_info("%zu. %s", group + 1, xm_strbuf_text(&shapes));
    xm_strbuf_free(&shapes);
    if (l)
        xm_benchmark_print_latency(l, r->args->percentile, XM_LATENCY_OF_GROUP);
    else
        xm_benchmark_info("   no iterations");
}

static enum xm_status
each_group(const struct xm_benchmark_results *r,
           void (*visit)(const struct xm_benchmark_results *r, size_t group,
                         const struct xm_benchmark_latency *l))
{
    for (size_t g = 0; g < r->inputs->n_groups; g++) {
        struct xm_benchmark_latency l;
        size_t n;
        XM_TRY(find_latency(r, g, &l, &n));
        visit(r, g, n ? &l : NULL);
    }
    return XM_OK;
}

static bool
has_groups(const struct xm_benchmark_results *r)
{
    return r->args->pcseq == XM_SWITCH_ON && r->inputs->n_groups > 1;
}

/* ---- all --------------------------------------------------------------------------- */

/* Prints the execution devices: ['CPU', 'GPU.0']. */
static void
say_execution_devices(const struct xm_benchmark_model *m)
{
    char *names = xm_benchmark_model_property(m, "EXECUTION_DEVICES");
    struct xm_strbuf list = {0};
    for (const char *at = names ? names : ""; *at; at += strspn(at, " ,")) {
        const size_t n = strcspn(at, " ,");
        xm_strbuf_add(&list, list.n ? ", '" : "'");
        xm_strbuf_add_n(&list, at, n);
        xm_strbuf_add(&list, "'");
        at += n;
    }
    xm_benchmark_info("Execution Devices:[%s]", xm_strbuf_text(&list));
    xm_strbuf_free(&list);
    ov_free(names);
}

static double
a_second(const struct xm_benchmark_results *r, uint64_t n)
{
    const double ms = r->run->duration_ms;
    return ms > 0.0 ? 1000.0 * (double)n / ms : 0.0;
}

static enum xm_status
find_all(const struct xm_benchmark_results *r, struct xm_benchmark_latency *out)
{
    size_t n;
    XM_TRY(find_latency(r, r->inputs->n_groups, out, &n));
    return n ? XM_OK : xm_fail(r->err, XM_DEVICE, "nothing was measured");
}

enum xm_status
xm_benchmark_results_report(const struct xm_benchmark_results *r)
{
    const uint64_t percent = r->args->percentile;
    char name[64] = "latency (ms)";
    struct xm_benchmark_latency l;
    XM_TRY(find_all(r, &l));
    if (percent != MEDIAN)
        snprintf(name, sizeof(name), "latency (%" PRIu64 " percentile) (ms)", percent);
    add(r, "total execution time (ms)", r->run->duration_ms);
    xm_benchmark_report_add(r->report, XM_REPORT_RESULTS, "total number of iterations",
                            "%zu", r->run->n);
    add(r, name, l.percentile);
    report_latency(r, &l);
    if (has_groups(r))
        XM_TRY(each_group(r, report_group));
    add(r, "throughput", a_second(r, r->run->frames));
    if (!r->inputs->is_language)
        return XM_OK;
    xm_benchmark_report_add(r->report, XM_REPORT_RESULTS, "tokens", "%" PRIu64,
                            r->run->tokens);
    add(r, "token throughput", a_second(r, r->run->tokens));
    return XM_OK;
}

/* Prints the throughput as the last line, where programs expect it. */
enum xm_status
xm_benchmark_results_say(const struct xm_benchmark_results *r)
{
    struct xm_benchmark_latency l;
    say_execution_devices(r->model);
    XM_TRY(find_all(r, &l));
    xm_benchmark_info("Count:            %zu iterations", r->run->n);
    xm_benchmark_info("Duration:         %.2f ms", r->run->duration_ms);
    xm_benchmark_info("Latency:");
    xm_benchmark_print_latency(&l, r->args->percentile, XM_LATENCY_OF_ALL);
    if (has_groups(r)) {
        xm_benchmark_info("Latency for each data shape group:");
        XM_TRY(each_group(r, say_group));
    }
    if (r->inputs->is_language) {
        xm_benchmark_info("Tokens:           %" PRIu64 " token%s", r->run->tokens,
                          xm_plural(r->run->tokens));
        xm_benchmark_info("Token throughput: %.2f tokens/s", a_second(r, r->run->tokens));
    }
    xm_benchmark_info("Throughput:   %.2f FPS", a_second(r, r->run->frames));
    return XM_OK;
}
