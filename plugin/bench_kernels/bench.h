/* SPDX-License-Identifier: Apache-2.0
 *
 * The program bench_kernels, which `xemoe bench --kernels` and `xemoe tune` start: every variant of
 * the steps that cost most, on given sizes, as a share of what the machine can do in the same
 * minute.
 *
 *   problems.c  the problems that are run where no file is given
 *   problem.c   the lines of a file, without their comments
 *   limits.c    streaming reads (host, device) and multiply-adds (device)
 *   run.c       a problem's primitive with random weights, timed
 *   attention.c attention, its operands and its cache
 *   device.c    the device, opened, with its limits
 *   main.c      options, the loop over problems and variants
 *   tuner.c     the fastest row of each step of a problem
 *   tune.c      `xemoe tune`: all steps of a model, with a report
 *   tune_beside.c  the steps for which nothing is kept, beside a process that runs the model
 *   report.c    a result as a line or as JSON
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
/* Calls `take` with each line, without its comment; a failure names the line. */
enum xm_status xm_bench_problems_read(FILE *file, const char *name, xm_bench_line_fn take,
                                      void *ctx, struct xm_error *err);
struct limits {
    double host_read, device_read; /* bytes a second */
    double multiply;               /* 2 x multiply-adds a second, f32 */
};
enum xm_status xm_bench_limits(struct xm_engine *engine, double seconds,
                               struct limits *out, struct xm_error *err);

struct bench_report;
/* Sets *index for a device's name: "GPU" (also NULL), "GPU.1", "CPU", "CPU.0". False: there is no
 * such device; a sentence has been printed, and the exit code is XM_EXIT_DEVICE. */
bool xm_bench_find_device(const char *name, size_t *index);
/* Opens the device, measures its limits for at least `seconds` and begins a report with them. Both
 * results are the caller's, also on failure. config: NULL is the default. */
enum xm_status xm_bench_open(size_t index, const struct xm_config *config, double seconds,
                             bool json, struct xm_engine **engine,
                             struct bench_report **report, struct xm_error *err);
/* Begins with the device and its limits. Out of memory is told by xm_bench_report_end. */
struct bench_report *xm_bench_report_begin(const struct xm_device_info *device,
                                           const struct limits *limits, bool json);
void xm_bench_report_problem(struct bench_report *r, const struct xm_timed_problem *p);
void xm_bench_report_result(struct bench_report *r, const struct xm_timed_problem *p,
                            const char *kernels, double seconds);
/* A row of a step's table, and whether it is the one that is kept. */
void xm_bench_report_row(struct bench_report *r, const struct xm_timed_problem *p,
                         const char *step, const char *row, double seconds, bool is_kept);
/* That a family of kernels cannot run the problem, and why. */
void xm_bench_report_refusal(struct bench_report *r, const char *family, const char *why);
/* Prints what is left to print, and frees; NULL is out of memory. */
enum xm_status xm_bench_report_end(struct bench_report *r, struct xm_error *err);

struct bench_attention;
/* *out is to be destroyed, also on failure. */
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
    double spent;      /* seconds of all runs but the first, which may build */
    char kernels[512]; /* names, separated by spaces      */
};
/* `p` must outlive it. *out is to be destroyed, also on failure. */
enum xm_status xm_bench_create(struct xm_engine *engine, const struct xm_timed_problem *p,
                               struct xm_bench **out, struct xm_error *err);
void xm_bench_destroy(struct xm_bench *b); /* NULL is allowed */
/* Builds the kernels that would be timed, and runs them once; for engines that only count.
 * XM_FORCE, as it is then, decides on the variant here and below. */
enum xm_status xm_bench_build(struct xm_bench *b, struct xm_error *err);
/* The best time of one run in about `seconds`. A time that is far above `hopeless` (0: there is no
 * such limit) comes of one run alone. */
enum xm_status xm_bench_time(struct xm_bench *b, double seconds, double hopeless,
                             struct xm_bench_result *out, struct xm_error *err);
/* All of that for one time. */
enum xm_status xm_bench_problem_time(struct xm_engine *engine,
                                     const struct xm_timed_problem *p, double seconds,
                                     struct xm_bench_result *out, struct xm_error *err);

/* The program behind `xemoe tune`; argv[0] is a word. */
int xm_bench_tune(int argc, char **argv);
/* The same for a process that runs a model (tune_beside.c). `device` is a
 * name, as for xm_bench_find_device. Returns an exit code. */
int xm_bench_tune_beside(const char *device, const char *cache_dir);

#endif
