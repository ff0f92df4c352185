/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's report: named values in three sections, written as benchmark_report.csv or .json.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_REPORT_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_benchmark_section {
    XM_REPORT_COMMAND, /* the given flags          */
    XM_REPORT_SETUP,   /* model, device, requests  */
    XM_REPORT_RESULTS, /* the measured figures     */
    XM_REPORT_SECTIONS
};

struct xm_benchmark_row {
    char *name, *value; /* owned */
    size_t group;       /* group of shapes, from 1; 0: the row belongs to all groups */
    bool is_switch;     /* written in JSON as true or false, not as a text */
};

/* Zero-initialise. A failure to allocate is reported by xm_benchmark_report_write. */
struct xm_benchmark_report {
    struct xm_benchmark_rows {
        struct xm_benchmark_row *list; /* owned */
        size_t n, capacity;
    } sections[XM_REPORT_SECTIONS];
    /* Rows added next belong to this group of shapes, from 1, an object in the JSON section's
     * "groups"; 0: to all groups. */
    size_t group;
    bool failed;
};

void xm_benchmark_report_add(struct xm_benchmark_report *r, enum xm_benchmark_section s,
                             const char *name, const char *fmt, ...) XM_PRINTF(4, 5);
/* Adds "True" or "False". */
void xm_benchmark_report_add_switch(struct xm_benchmark_report *r,
                                    enum xm_benchmark_section s, const char *name,
                                    bool is_on);
void xm_benchmark_report_free(struct xm_benchmark_report *r);
/* Writes the report into `folder` and prints its path. */
enum xm_status xm_benchmark_report_write(const struct xm_benchmark_report *r,
                                         const char *folder, bool as_json,
                                         struct xm_error *err);

/* "folder/name", which the caller frees with xm_free; NULL: out of memory. */
char *xm_benchmark_join(const char *folder, const char *name);

#ifdef __cplusplus
}
#endif
#endif
