/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_counters.h"

#include <stdio.h>
#include <stdlib.h>

#include "plugin/benchmark_app/benchmark_out.h"
#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/program_util/csv.h"
#include "plugin/program_util/json_out.h"
#include "runtime/util/json.h"
#include "runtime/util/new_file.h"

enum { NAME = 20 }; /* columns for a name, a status or a type */

struct counters {
    ov_profiling_info_list_t *lists; /* owned, one for each request */
    size_t n;
};

/* The line of a layer; its times, in milliseconds, may be averages. */
struct row {
    const ov_profiling_info_t *of;
    double real, cpu;
};

struct table {
    struct row *rows; /* owned */
    size_t n;
    double real, cpu; /* sums */
};

static void
free_counters(struct counters *c)
{
    for (size_t i = 0; i < c->n; i++)
        ov_profiling_info_list_free(&c->lists[i]);
    xm_free(c->lists);
    *c = (struct counters){0};
}

static enum xm_status
get_counters(const struct xm_benchmark_run *r, struct counters *out, struct xm_error *err)
{
    *out = (struct counters){0};
    out->lists = xm_calloc(r->n_requests + 1, sizeof(*out->lists));
    if (!out->lists)
        return xm_no_memory(err, "counters");
    for (; out->n < r->n_requests; out->n++)
        XM_TRY(xm_benchmark_api(
            ov_infer_request_get_profiling_info(xm_benchmark_run_request(r, out->n),
                                                &out->lists[out->n]),
            "-pc", err));
    return XM_OK;
}

/* ---- tables ------------------------------------------------------------------------ */

/* Returns the status as the output shows it, after "Status.". */
static const char *
status_of(const struct row *r)
{
    static const char *const names[] = {[NOT_RUN] = "Status.NOT_RUN",
                                        [OPTIMIZED_OUT] = "Status.OPTIMIZED_OUT",
                                        [EXECUTED] = "Status.EXECUTED"};
    return names[r->of->status];
}

static bool
has_run(const struct row *r)
{
    return r->of->status == EXECUTED;
}

/* Sorts the longest times first. */
static int
compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (has_run(x) != has_run(y))
        return has_run(y) - has_run(x);
    return (y->real > x->real) - (y->real < x->real);
}

static void
sum_up(struct table *t)
{
    t->real = t->cpu = 0.0;
    for (size_t i = 0; i < t->n; i++) {
        t->real += t->rows[i].real;
        t->cpu += t->rows[i].cpu;
    }
}

/* Makes a table of the averages of n lists, starting at `first`. All lists belong to one compiled
 * model, so that they have the same rows. Lists of requests that never ran have no times. */
static bool
make_table(const ov_profiling_info_list_t *first, size_t n, struct table *out)
{
    *out = (struct table){0};
    out->rows = xm_calloc(first->size + 1, sizeof(*out->rows));
    if (!out->rows)
        return false;
    for (out->n = 0; out->n < first->size; out->n++) {
        struct row *r = &out->rows[out->n];
        r->of = &first->profiling_infos[out->n];
        for (size_t k = 0; k < n && out->n < first[k].size; k++) {
            const ov_profiling_info_t *p = &first[k].profiling_infos[out->n];
            r->of = p->status == EXECUTED ? p : r->of;
            r->real += 1e-3 * (double)p->real_time / (double)n;
            r->cpu += 1e-3 * (double)p->cpu_time / (double)n;
        }
    }
    sum_up(out);
    return true;
}

static void
sort(struct table *t, const char *pcsort)
{
    if (strcmp(pcsort, "no_sort") == 0)
        return;
    qsort(t->rows, t->n, sizeof(*t->rows), compare);
    while (strcmp(pcsort, "simple_sort") == 0 && t->n && !has_run(&t->rows[t->n - 1]))
        t->n--;
}

static void
print_share(const struct table *t, const struct row *r, char text[16])
{
    if (has_run(r))
        snprintf(text, 16, "%.2f%%", t->real > 0.0 ? 100.0 * r->real / t->real : 0.0);
    else
        snprintf(text, 16, "N/A%%");
}

/* ---- on standard output ------------------------------------------------------------ */

static void
print_row(const struct table *t, const struct row *r, bool with_share)
{
    const char *dots = "...";
    const bool is_long = strlen(r->of->node_name) > NAME;
    char share[16];
    printf("%-*.*s%s ", is_long ? NAME - 3 : NAME, is_long ? NAME - 3 : NAME,
           r->of->node_name, is_long ? dots : "");
    printf("%-20s layerType: %-20s execType: %-20s realTime (ms): %-10.3f cpuTime (ms): "
           "%-10.3f",
           status_of(r), r->of->node_type, r->of->exec_type, r->real, r->cpu);
    print_share(t, r, share);
    if (with_share)
        printf("proportion: %-8s", share);
    putchar('\n');
}

static void
print_table(const struct table *t, bool with_share)
{
    double shares = 0.0;
    for (size_t i = 0; i < t->n; i++) {
        print_row(t, &t->rows[i], with_share);
        shares += t->real > 0.0 ? 100.0 * t->rows[i].real / t->real : 0.0;
    }
    const int width = with_share ? 17 : 15;
    printf("%-*s %.3f milliseconds\n", width, "Total time:", t->real);
    printf("%-*s %.3f milliseconds\n", width, "Total CPU time:", t->cpu);
    if (with_share)
        printf("Total proportion: %.2f %% \n", shares);
    putchar('\n');
}

/* Prints the counters for -pc and -pcsort. */
static void
print_counters(const struct counters *c, const char *pcsort)
{
    bool has_times = false;
    for (size_t i = 0; i < c->n; i++) {
        struct table t;
        if (!make_table(&c->lists[i], 1, &t))
            continue;
        if (pcsort)
            sort(&t, pcsort);
        xm_benchmark_info("Performance counts %sfor %zu-th infer request",
                          pcsort ? "sorted " : "", i);
        print_table(&t, pcsort != NULL);
        has_times = has_times || t.real > 0.0;
        xm_free(t.rows);
    }
    if (c->n && !has_times)
        xm_benchmark_warn("The device reports no times: all are 0");
}

/* ---- files ------------------------------------------------------------------------- */

static void
add_times(struct xm_strbuf *out, char separator, double real, double cpu)
{
    xm_strbuf_printf(out, "%c%.3f%c%.3f", separator, real, separator, cpu);
}

static void
print_csv(const struct table *t, char separator, bool with_share, struct xm_strbuf *out)
{
    static const char *const heads[] = {"layerName", "execStatus",    "layerType",
                                        "execType",  "realTime (ms)", "cpuTime (ms)"};
    for (size_t k = 0; k < XM_ARRAY_LEN(heads); k++)
        xm_csv_cell(out, separator, k == 0, heads[k]);
    if (with_share)
        xm_csv_cell(out, separator, false, "proportion(%)");
    xm_strbuf_add(out, "\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        char share[16];
        const char *const cells[] = {r->of->node_name, status_of(r), r->of->node_type,
                                     r->of->exec_type};
        for (size_t k = 0; k < XM_ARRAY_LEN(cells); k++)
            xm_csv_cell(out, separator, k == 0, cells[k]);
        add_times(out, separator, r->real, r->cpu);
        print_share(t, r, share);
        if (with_share)
            xm_strbuf_printf(out, "%c%s", separator, share);
        xm_strbuf_add(out, "\n");
    }
    xm_strbuf_printf(out, "Total%c%c%c", separator, separator, separator);
    add_times(out, separator, t->real, t->cpu);
    xm_strbuf_add(out, "\n");
}

/* Adds a time as text in milliseconds, as in the CSV file. */
static void
add_json_time(struct xm_json_out *j, yyjson_mut_val *o, const char *key, double ms)
{
    struct xm_strbuf text = {0};
    xm_strbuf_printf(&text, "%.3f", ms);
    xm_json_add_text(j, o, key, xm_strbuf_text(&text), text.n);
    xm_strbuf_free(&text);
}

static void
add_json(struct xm_json_out *j, yyjson_mut_val *o, const struct table *t, bool with_share)
{
    yyjson_mut_val *nodes = xm_json_add_array(j, o, "nodes");
    for (size_t i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        const char *const cells[][2] = {{"name", r->of->node_name},
                                        {"node_type", r->of->node_type},
                                        {"status", status_of(r)}};
        yyjson_mut_val *node = xm_json_add_object(j, nodes, NULL);
        char share[16];
        for (size_t k = 0; k < XM_ARRAY_LEN(cells); k++)
            xm_json_add_text(j, node, cells[k][0], cells[k][1], strlen(cells[k][1]));
        add_json_time(j, node, "real_time", r->real);
        add_json_time(j, node, "cpu_time", r->cpu);
        xm_json_add_text(j, node, "exec_type", r->of->exec_type,
                         strlen(r->of->exec_type));
        print_share(t, r, share);
        if (with_share)
            xm_json_add_text(j, node, "%", share, strlen(share));
    }
    add_json_time(j, o, "total_real_time", t->real);
    add_json_time(j, o, "total_cpu_time", t->cpu);
}

/* The detailed report has a table for each request; the others have one table of averages. */
enum kind { AVERAGE, DETAILED, SORTED, N_KINDS };

struct report {
    const struct counters *counters;
    const struct xm_benchmark_args *args;
    enum kind kind;
    size_t n; /* number of tables */
};

static const struct {
    /* -report_type; `key` in JSON: of the object, or of the list of objects */
    const char *type, *key;
    const char *file; /* name of the file without its extension */
    const char *says; /* what the file has, for messages */
    char separator;   /* separator of CSV cells */
} kinds[N_KINDS] = {
    [AVERAGE] = {"average", "avg_performance", "benchmark_average_counters_report",
                 "Performance counters report", ';'},
    [DETAILED] = {"detailed", "detailed_performance",
                  "benchmark_detailed_counters_report", "Performance counters report",
                  ';'},
    [SORTED] = {"sorted", "avg_performance", "benchmark_sorted_report",
                "Sorted performance counters report", ','},
};

static bool
report_table(const struct report *r, size_t i, struct table *out)
{
    const bool made =
        make_table(&r->counters->lists[i], r->kind == DETAILED ? 1 : r->counters->n, out);
    if (made && r->kind == SORTED)
        sort(out, r->args->pcsort);
    return made;
}

static void
report_csv(const struct report *r, struct xm_strbuf *out)
{
    for (size_t i = 0; i < r->n; i++) {
        struct table t;
        if (report_table(r, i, &t))
            print_csv(&t, kinds[r->kind].separator, r->kind == SORTED, out);
        else
            out->failed = true;
        xm_strbuf_add(out, "\n");
        xm_free(t.rows);
    }
}

static void
report_json(const struct report *r, struct xm_strbuf *out)
{
    struct xm_json_out j;
    struct table t;
    const char *type = kinds[r->kind].type, *key = kinds[r->kind].key;
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "report_type", type, strlen(type));
    const bool is_object = r->kind != DETAILED;
    yyjson_mut_val *list = is_object ? NULL : xm_json_add_array(&j, NULL, key);
    for (size_t i = 0; i < r->n; i++) {
        yyjson_mut_val *o = xm_json_add_object(&j, list, is_object ? key : NULL);
        if (report_table(r, i, &t))
            add_json(&j, o, &t, r->kind == SORTED);
        else
            j.failed = true;
        xm_free(t.rows);
    }
    char *text = j.failed ? NULL : xm_json_value_text(j.root);
    xm_strbuf_add(out, text ? text : "");
    out->failed = out->failed || !text;
    xm_strbuf_add(out, "\n");
    xm_free(text);
    xm_json_end(&j);
}

static enum xm_status
write_report(const struct counters *c, const struct xm_benchmark_args *a, enum kind kind,
             struct xm_error *err)
{
    const bool as_json = a->json_stats == XM_SWITCH_ON;
    const struct report r = {c, a, kind, kind == DETAILED ? c->n : 1};
    struct xm_strbuf text = {0};
    char name[64];
    snprintf(name, sizeof(name), "%s.%s", kinds[kind].file, as_json ? "json" : "csv");
    char *path = xm_benchmark_join(a->report_folder, name);
    if (as_json)
        report_json(&r, &text);
    else
        report_csv(&r, &text);
    const enum xm_status s =
        path ? xm_write_text_file(path, &text, err) : xm_no_memory(err, "a report");
    if (s == XM_OK)
        xm_benchmark_info("%s is stored to %s", kinds[kind].says, path);
    xm_free(path);
    xm_strbuf_free(&text);
    return s;
}

/* Writes the files of -report_type, and a sorted one with -pcsort. */
static enum xm_status
write_files(const struct counters *c, const struct xm_benchmark_args *a,
            struct xm_error *err)
{
    if (a->pcsort && a->report_type)
        XM_TRY(write_report(c, a, SORTED, err));
    if (!a->report_type || strcmp(a->report_type, "no_counters") == 0)
        return XM_OK;
    return write_report(
        c, a, strcmp(a->report_type, "average_counters") == 0 ? AVERAGE : DETAILED, err);
}

/* Whether the device measures its steps. */
static bool
is_measured(const struct xm_benchmark_model *m)
{
    char *value = xm_benchmark_model_property(m, "PERF_COUNT");
    const bool is = value && strcmp(value, "YES") == 0;
    ov_free(value);
    return is;
}

enum xm_status
xm_benchmark_counters_say(const struct xm_benchmark_model *m,
                          const struct xm_benchmark_run *r,
                          const struct xm_benchmark_args *a, struct xm_error *err)
{
    struct counters c = {0};
    if (!is_measured(m)) {
        xm_benchmark_warn(
            "There are no performance counters: device %s does not measure its steps",
            a->device);
        return XM_OK;
    }
    enum xm_status s = get_counters(r, &c, err);
    if (s == XM_OK && (a->pc == XM_SWITCH_ON || a->pcsort))
        print_counters(&c, a->pcsort);
    if (s == XM_OK)
        s = write_files(&c, a, err);
    free_counters(&c);
    return s;
}
