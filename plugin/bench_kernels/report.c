/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints results as lines when they are measured, or as one JSON object at the end.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/json_out.h"
#include "runtime/util/memory.h"

struct bench_report {
    struct limits limits;
    bool is_json;
    struct xm_json_out json;
    yyjson_mut_val *results; /* owned by json */
};

static void
begin_json(struct bench_report *r, const struct xm_device_info *device)
{
    struct xm_json_out *j = &r->json;
    xm_json_begin(j);
    xm_json_add_text(j, NULL, "device", device->name, strlen(device->name));
    xm_json_add_text(j, NULL, "driver", device->driver, strlen(device->driver));
    xm_json_add_real(j, NULL, "read_bytes_per_second", r->limits.device_read);
    xm_json_add_real(j, NULL, "host_read_bytes_per_second", r->limits.host_read);
    xm_json_add_real(j, NULL, "flops", r->limits.multiply);
    r->results = xm_json_add_array(j, NULL, "results");
}

struct bench_report *
xm_bench_report_begin(const struct xm_device_info *device, const struct limits *limits,
                      bool json)
{
    struct bench_report *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->limits = *limits;
    r->is_json = json;
    if (json)
        begin_json(r, device);
    else
        printf("%s: reads %.1f GB/s (host memory %.1f GB/s), multiplies %.1f GFLOP/s\n",
               device->name, limits->device_read / 1e9, limits->host_read / 1e9,
               limits->multiply / 1e9);
    return r;
}

void
xm_bench_report_problem(struct bench_report *r, const struct xm_timed_problem *p)
{
    if (!r->is_json)
        puts(p->text);
    fflush(stdout);
}

/* A problem's bytes and floating-point operations per second. */
struct rates {
    double bytes, flops;
};

static struct rates
rates_of(const struct xm_timed_problem *p, double seconds)
{
    return (struct rates){xm_timed_problem_bytes(p) / seconds,
                          xm_timed_problem_flops(p) / seconds};
}

static yyjson_mut_val *
add_result(struct bench_report *r, const struct xm_timed_problem *p, double seconds)
{
    const struct rates rates = rates_of(p, seconds);
    struct xm_json_out *j = &r->json;
    yyjson_mut_val *o = xm_json_add_object(j, r->results, NULL);
    xm_json_add_text(j, o, "problem", p->text, strlen(p->text));
    xm_json_add_real(j, o, "seconds", seconds);
    xm_json_add_real(j, o, "bytes_per_second", rates.bytes);
    xm_json_add_real(j, o, "flops", rates.flops);
    return o;
}

static void
print_result(const struct bench_report *r, const struct xm_timed_problem *p,
             double seconds, const char *what)
{
    const struct rates rates = rates_of(p, seconds);
    const double read = r->limits.host_read > r->limits.device_read
                            ? r->limits.host_read
                            : r->limits.device_read;
    printf("%10.1f us  %6.2f GB/s %3.0f %%  %8.1f GFLOP/s %3.0f %%  %s\n", seconds * 1e6,
           rates.bytes / 1e9, 100 * rates.bytes / read, rates.flops / 1e9,
           100 * rates.flops / r->limits.multiply, what);
    fflush(stdout);
}

void
xm_bench_report_result(struct bench_report *r, const struct xm_timed_problem *p,
                       const char *kernels, double seconds)
{
    if (!r->is_json)
        print_result(r, p, seconds, kernels);
    else
        xm_json_add_parts(&r->json, add_result(r, p, seconds), "kernels", kernels, " ");
}

void
xm_bench_report_row(struct bench_report *r, const struct xm_timed_problem *p,
                    const char *step, const char *row, double seconds, bool is_kept)
{
    char what[128];
    snprintf(what, sizeof(what), "%s%s", row, is_kept ? ", kept" : "");
    if (!r->is_json) {
        print_result(r, p, seconds, what);
        return;
    }
    yyjson_mut_val *o = add_result(r, p, seconds);
    xm_json_add_text(&r->json, o, "step", step, strlen(step));
    xm_json_add_text(&r->json, o, "row", row, strlen(row));
    xm_json_add_bool(&r->json, o, "kept", is_kept);
}

void
xm_bench_report_refusal(struct bench_report *r, const char *family, const char *why)
{
    if (!r->is_json)
        printf("  %s: %s\n", family, why);
}

enum xm_status
xm_bench_report_end(struct bench_report *r, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    if (!r)
        return xm_no_memory(err, "a report");
    if (r->is_json) {
        s = xm_json_print(&r->json, err);
        xm_json_end(&r->json);
    }
    xm_free(r);
    return s;
}
