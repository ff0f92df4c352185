/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "plugin/program_util/progress.h"

static const char *const titles[] = {
    "Parsing and validating input arguments",
    "Loading OpenVINO Runtime",
    "Setting device configuration",
    "Reading model files",
    "Resizing model to match image sizes and given batch",
    "Configuring input of the model",
    "Loading the model to the device",
    "Querying optimal runtime parameters",
    "Creating infer requests and preparing input tensors",
    "Measuring performance",
    "Dumping statistics report",
};
enum { STEPS = XM_ARRAY_LEN(titles) };

/* Ends a line and flushes, so that readers of a pipe get it at once. */
static void
end_line(void)
{
    fputc('\n', stdout);
    fflush(stdout);
}

void
xm_benchmark_step(int number, const char *remark)
{
    xm_progress_clear();
    printf("[Step %d/%d] %s", number, STEPS, titles[number - 1]);
    if (remark)
        printf(" (%s)", remark);
    end_line();
}

static void
print_line(const char *level, const char *fmt, va_list ap)
{
    xm_progress_clear();
    printf("[ %s ] ", level);
    vprintf(fmt, ap);
    end_line();
}

void
xm_benchmark_info(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line("INFO", fmt, ap);
    va_end(ap);
}

void
xm_benchmark_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line("WARNING", fmt, ap);
    va_end(ap);
}

void
xm_benchmark_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line("ERROR", fmt, ap);
    va_end(ap);
}

void
xm_benchmark_print_latency(const struct xm_benchmark_latency *l, uint64_t percent,
                           enum xm_benchmark_latency_labels labels)
{
    const bool small = l->average < 1.0;
    const double factor = small ? 1000.0 : 1.0;
    const char *unit = small ? "us" : "ms";
    /* columns of the label with its colon */
    const int width = labels == XM_LATENCY_OF_GROUP ? 11 : 14;
    const struct {
        const char *label;
        double ms;
    } lines[] = {{"Average:", l->average}, {"Min:", l->min}, {"Max:", l->max}};
    if (percent == 50)
        xm_benchmark_info("   %-*s %.2f %s", width, "Median:", factor * l->percentile,
                          unit);
    else
        xm_benchmark_info("   %" PRIu64 " percentile:     %.2f %s", percent,
                          factor * l->percentile, unit);
    for (size_t i = 0; i < XM_ARRAY_LEN(lines); i++)
        xm_benchmark_info("   %-*s %.2f %s", width, lines[i].label, factor * lines[i].ms,
                          unit);
}
