/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_out.h"
#include "plugin/program_util/csv.h"
#include "runtime/util/json.h"
#include "runtime/util/new_file.h"
#include "runtime/util/number.h"

/* The sections' titles in CSV and their keys in JSON. */
static const char *const titles[XM_REPORT_SECTIONS][2] = {
    [XM_REPORT_COMMAND] = {"Command line parameters", "cmd_options"},
    [XM_REPORT_SETUP] = {"Configuration setup", "configuration_setup"},
    [XM_REPORT_RESULTS] = {"Execution results", "execution_results"},
};

void
xm_benchmark_report_add(struct xm_benchmark_report *r, enum xm_benchmark_section s,
                        const char *name, const char *fmt, ...)
{
    struct xm_benchmark_rows *rows = &r->sections[s];
    struct xm_benchmark_row row = {.name = xm_strdup(name), .group = r->group};
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = xm_print_v(NULL, 0, fmt, ap);
    row.value = n < 0 ? NULL : xm_malloc((size_t)n + 1);
    if (row.value)
        xm_print_v(row.value, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    struct xm_benchmark_row *grown =
        xm_grow(rows->list, &rows->capacity, rows->n + 1, sizeof(*grown));
    if (!row.name || !row.value || !grown) {
        xm_free(row.name);
        xm_free(row.value);
        r->failed = true;
        return;
    }
    rows->list = grown;
    rows->list[rows->n++] = row;
}

void
xm_benchmark_report_add_switch(struct xm_benchmark_report *r, enum xm_benchmark_section s,
                               const char *name, bool is_on)
{
    struct xm_benchmark_rows *rows = &r->sections[s];
    const size_t before = rows->n;
    xm_benchmark_report_add(r, s, name, "%s", is_on ? "True" : "False");
    if (rows->n > before)
        rows->list[before].is_switch = true;
}

void
xm_benchmark_report_free(struct xm_benchmark_report *r)
{
    for (size_t s = 0; s < XM_REPORT_SECTIONS; s++) {
        for (size_t i = 0; i < r->sections[s].n; i++) {
            xm_free(r->sections[s].list[i].name);
            xm_free(r->sections[s].list[i].value);
        }
        xm_free(r->sections[s].list);
    }
    *r = (struct xm_benchmark_report){0};
}

/* ---- files ------------------------------------------------------------------------- */

char *
xm_benchmark_join(const char *folder, const char *name)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    return xm_strbuf_take(&path);
}

static void
print_csv(const struct xm_benchmark_report *r, struct xm_strbuf *out)
{
    for (size_t s = 0; s < XM_REPORT_SECTIONS; s++) {
        xm_strbuf_printf(out, "%s\n", titles[s][0]);
        for (size_t i = 0; i < r->sections[s].n; i++) {
            xm_csv_cell(out, ';', true, r->sections[s].list[i].name);
            xm_csv_cell(out, ';', false, r->sections[s].list[i].value);
            xm_strbuf_add(out, "\n");
        }
        xm_strbuf_add(out, "\n");
    }
}

/* Returns the object for a row: the section's, or the last one in its "groups". */
static yyjson_mut_val *
object_of(yyjson_mut_doc *doc, yyjson_mut_val *section, size_t group)
{
    yyjson_mut_val *list = yyjson_mut_obj_get(section, "groups");
    if (group == 0)
        return section;
    if (!list)
        list = yyjson_mut_obj_add_arr(doc, section, "groups");
    return yyjson_mut_arr_size(list) < group ? yyjson_mut_arr_add_obj(doc, list)
                                             : yyjson_mut_arr_get_last(list);
}

static void
print_json(const struct xm_benchmark_report *r, struct xm_strbuf *out)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&xm_json_allocator);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    bool good = root != NULL;
    for (size_t s = 0; s < XM_REPORT_SECTIONS && good; s++) {
        yyjson_mut_val *section = yyjson_mut_obj(doc);
        good = yyjson_mut_obj_add_val(doc, root, titles[s][1], section);
        for (size_t i = 0; i < r->sections[s].n && good; i++) {
            const struct xm_benchmark_row *row = &r->sections[s].list[i];
            yyjson_mut_val *object = object_of(doc, section, row->group);
            good = row->is_switch
                       ? yyjson_mut_obj_add_bool(doc, object, row->name,
                                                 strcmp(row->value, "True") == 0)
                       : yyjson_mut_obj_add_str(doc, object, row->name, row->value);
        }
    }
    size_t n = 0;
    char *text = good
                     ? yyjson_mut_val_write_opts(
                           root, YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE,
                           &xm_json_allocator, &n, NULL)
                     : NULL;
    if (text)
        xm_strbuf_add_n(out, text, n);
    out->failed = out->failed || !text;
    xm_strbuf_add(out, "\n");
    xm_free(text);
    yyjson_mut_doc_free(doc);
}

enum xm_status
xm_benchmark_report_write(const struct xm_benchmark_report *r, const char *folder,
                          bool as_json, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    char *path = xm_benchmark_join(folder, as_json ? "benchmark_report.json"
                                                   : "benchmark_report.csv");
    if (as_json)
        print_json(r, &text);
    else
        print_csv(r, &text);
    const enum xm_status s = path && !r->failed ? xm_write_text_file(path, &text, err)
                                                : xm_no_memory(err, "a report");
    if (s == XM_OK)
        xm_benchmark_info("Statistics report is stored to %s", path);
    xm_strbuf_free(&text);
    xm_free(path);
    return s;
}
