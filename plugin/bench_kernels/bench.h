/* SPDX-License-Identifier: Apache-2.0
 *
 * The program bench_kernels, which `xemoe bench --kernels` and `xemoe tune` start. It times every
 * kernel variant of the steps that take most time, for given sizes, and relates the times to the
 * rates that the machine reaches in the same minute.
 *
 *   problems.c  the default problems
 *   problem.c   reads the lines of a file of problems, without comments
 *   limits.c    rates of streaming reads (host, device) and of multiply-adds (device)
 *   run.c       times the primitive of a problem with random weights
 *   results.c   compares results of variants
 *   attention.c attention, its operands and its cache
 *   device.c    opens the device and measures its limits
 *   main.c      options, the loop over problems and variants
 *   tuner.c     finds the fastest variant for each step of a problem
 *   tune.c      `xemoe tune`: all steps of a model, with a report
 *   tune_beside.c  steps without a stored choice, beside a process that runs the model
 *   report.c    prints results as lines or as JSON
 */
#ifndef XM_PLUGIN_BENCH_KERNELS_BENCH_H
#define XM_PLUGIN_BENCH_KERNELS_BENCH_H

#include <stdio.h>

#include "primitives/primitive.h"
#include "primitives/timed_problem.h"

extern const char *const xm_bench_problems[];
extern const size_t xm_bench_n_problems;
typedef enum xm_status (*xm_bench_line_fn)(void *ctx, const char *line,
                                           struct xm_error *err);
/* Calls `take` with each line, without its comment. A failure names the line. */
enum xm_status xm_bench_problems_read(FILE *file, const char *name, xm_bench_line_fn take,
                                      void *ctx, struct xm_error *err);
struct limits {
    double host_read, device_read; /* bytes a second */
    double multiply;               /* 2 x multiply-adds a second, f32 */
};
enum xm_status xm_bench_limits(struct xm_engine *engine, double seconds,
                               struct limits *out, struct xm_error *err);

struct bench_report;
/* Sets *index for a device's name: "GPU" (also NULL), "GPU.1", "CPU", "CPU.0". Returns false if
 * there is no such device, after printing a sentence; the exit code is then XM_EXIT_DEVICE. */
bool xm_bench_find_device(const char *name, size_t *index);
/* Opens the device, measures its limits for at least `seconds`, and begins a report with them. The
 * caller frees both results, also on failure. config NULL: the default. */
enum xm_status xm_bench_open(size_t index, const struct xm_config *config, double seconds,
                             bool json, struct xm_engine **engine,
                             struct bench_report **report, struct xm_error *err);
/* Begins a report with the device and its limits. If memory is missing, xm_bench_report_end returns
 * the failure. */
struct bench_report *xm_bench_report_begin(const struct xm_device_info *device,
                                           const struct limits *limits, bool json);
void xm_bench_report_problem(struct bench_report *r, const struct xm_timed_problem *p);
void xm_bench_report_result(struct bench_report *r, const struct xm_timed_problem *p,
                            const char *kernels, double seconds);
/* Reports the time of one variant of a step, and whether it is the stored choice. */
void xm_bench_report_row(struct bench_report *r, const struct xm_timed_problem *p,
                         const char *step, const char *row, double seconds, bool is_kept);
/* Reports why a family of kernels cannot run the problem. */
void xm_bench_report_refusal(struct bench_report *r, const char *family, const char *why);
/* Prints the rest of the report and frees it; `r` NULL: fails with XM_NO_MEMORY. */
enum xm_status xm_bench_report_end(struct bench_report *r, struct xm_error *err);

struct bench_attention;
/* Creates attention operands and cache; the caller destroys *out, also on failure. */
enum xm_status xm_bench_attention_create(struct xm_engine *engine, struct xm_queue *queue,
                                         const struct xm_timed_problem *p,
                                         struct bench_attention **out,
                                         struct xm_error *err);
enum xm_status xm_bench_attention_run(const struct bench_attention *a,
                                      struct xm_error *err);
void xm_bench_attention_describe(const struct bench_attention *a, char *out,
                                 size_t bytes);
void xm_bench_attention_destroy(struct bench_attention *a);

/* A problem with random weights and inputs on a device. One thread at a time. */
struct xm_bench;
struct xm_bench_result {
    double best;       /* seconds of one run                   */
    double spent;      /* seconds of all runs except the first, which may build kernels */
    char kernels[512]; /* kernel names, separated by spaces */
    /* the first run left its results as they were; the status is XM_DEVICE */
    bool wrote_nothing;
};
/* Creates a problem on the device. `p` must outlive it. The caller destroys *out, also on
 * failure. */
enum xm_status xm_bench_create(struct xm_engine *engine, const struct xm_timed_problem *p,
                               struct xm_bench **out, struct xm_error *err);
void xm_bench_destroy(struct xm_bench *b); /* NULL is allowed */
/* Builds the kernels that would be timed, and runs them once; for engines that only count memory.
 * Here and in the functions below, XM_FORCE selects the kernel variant. */
enum xm_status xm_bench_build(struct xm_bench *b, struct xm_error *err);
/* Returns the best time of one run, measured for about `seconds`. If the first run takes far longer
 * than `hopeless` seconds (0: no limit), its time is the result. */
enum xm_status xm_bench_time(struct xm_bench *b, double seconds, double hopeless,
                             struct xm_bench_result *out, struct xm_error *err);
/* As the first run of xm_bench_time, untimed. */
enum xm_status xm_bench_run(struct xm_bench *b, struct xm_error *err);
/* Returns the results of the last first run or of xm_bench_run, [*rows][*cols], of which only the
 * first rows are kept if there are many; valid until the next such run. NULL: there are none, or
 * the problem is attention, whose results are not kept. */
const float *xm_bench_results(const struct xm_bench *b, uint64_t *rows, uint64_t *cols);
/* Whether each row of got[rows][cols] is that of `want`, as kernels compute it in any precision:
 * the squared error is at most a thousandth of the row's squares. Rows of `want` that are not
 * finite are not compared. */
bool xm_bench_results_agree(const float *got, const float *want, uint64_t rows,
                            uint64_t cols);
/* Creates the problem, times it, and destroys it. */
enum xm_status xm_bench_problem_time(struct xm_engine *engine,
                                     const struct xm_timed_problem *p, double seconds,
                                     struct xm_bench_result *out, struct xm_error *err);

/* The program of `xemoe tune`; argv[0] is the word "tune". */
int xm_bench_tune(int argc, char **argv);
/* Times kernels beside a process that runs a model (tune_beside.c). `device` is a name as for
 * xm_bench_find_device. Returns an exit code. */
int xm_bench_tune_beside(const char *device, const char *cache_dir);

#endif
