/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_kernels [--list] [--filter WORD] [--json] [--seconds S] [--ref] [FILE]
 *
 * Runs the problems of FILE (problems.txt beside the source) with each family of kernels that
 * the device takes, and prints
 *
 *     time   GB/s of weights and its share of the streaming limit
 *            GFLOP/s and its share of the f32 multiply-add limit
 *
 * Limits are measured in the same run, before. The families are forced one by one through
 * XM_FORCE; the reference kernels only with --ref: they take minutes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"
#include "tools/bench_kernels/bench.h"

struct options {
    const char *file, *filter;
    bool list, json, ref;
    double seconds;
};

static int
usage(void)
{
    fputs("usage: bench_kernels [--list] [--filter WORD] [--json] [--seconds S] [--ref] "
          "[FILE]\n",
          stderr);
    return 2;
}

static bool
parse_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.file = BENCH_PROBLEMS, .filter = "", .seconds = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[i], "--ref") == 0)
            o->ref = true;
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            o->filter = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            o->seconds = xm_parse_double(argv[++i], NULL);
        else if (argv[i][0] != '-')
            o->file = argv[i];
        else
            return false;
    }
    return o->seconds > 0;
}

static void
print_result(const struct options *o, const struct problem *p, const char *kernels,
             double t, const struct limits *limits)
{
    double gbs = xm_bench_problem_bytes(p) / t, flops = xm_bench_problem_flops(p) / t;
    double read =
        limits->host_read > limits->device_read ? limits->host_read : limits->device_read;
    if (o->json) {
        printf("{\"problem\": \"%s\", \"kernels\": \"%s\", \"seconds\": %.9f, "
               "\"bytes_per_second\": %.4g, \"read_limit\": %.4g, "
               "\"flops\": %.4g, \"multiply_limit\": %.4g}\n",
               p->text, kernels, t, gbs, read, flops, limits->multiply);
        return;
    }
    printf("%10.1f us  %6.2f GB/s %3.0f %%  %8.1f GFLOP/s %3.0f %%  %s\n", t * 1e6,
           gbs / 1e9, 100 * gbs / read, flops / 1e9, 100 * flops / limits->multiply,
           kernels);
}

/* What vec prefers without products of 16-bit integers. */
#define FLOATS                                                                           \
    "linear_few=linear_gemv_vec,linear_many=linear_gemm_vec,"                            \
    "linear_long=linear_gemm_vec,moe_gate_up=moe_gate_up_vec,moe_down=moe_down_vec,"     \
    "moe_gather=moe_gather_vec,moe_gemm_gate_up=moe_gemm_gate_up_vec,"                   \
    "moe_gemm_down=moe_gemm_down_vec"

/* One problem with every family; one that ends in the same kernels as an earlier one is not
 * run again. */
static void
run_problem(const struct options *o, struct xm_engine *engine, const struct problem *p,
            const struct limits *limits)
{
    static const char *const families[] = {"", "host", "vec", FLOATS, "gen", "sg", "ref"};
    char seen[XM_ARRAY_LEN(families)][512] = {{0}};
    if (!o->json)
        printf("%s\n", p->text);
    for (size_t f = 0; f < XM_ARRAY_LEN(families) - !o->ref; f++) {
        struct xm_error err = {0};
        double best = 0;
        bool again = false;
        setenv("XM_FORCE", families[f], 1);
        enum xm_status s = xm_bench_problem_time(engine, p, o->seconds, &best, seen[f],
                                                 sizeof(seen[f]), &err);
        for (size_t i = 0; i < f; i++)
            again = again || strcmp(seen[i], seen[f]) == 0;
        if (s != XM_OK && !o->json)
            printf("  %s: %s\n", families[f], err.text);
        else if (s == XM_OK && !again)
            print_result(o, p, seen[f], best, limits);
        fflush(stdout);
    }
}

static int
run_file(const struct options *o, FILE *file, struct xm_engine *engine,
         const struct limits *limits)
{
    char line[128];
    while (fgets(line, sizeof(line), file)) {
        struct problem p;
        struct xm_error err = {0};
        line[strcspn(line, "#\n")] = 0;
        if (line[strspn(line, " \t")] == 0 || !strstr(line, o->filter))
            continue;
        if (xm_bench_problem_parse(line, &p, &err) != XM_OK) {
            fprintf(stderr, "bench_kernels: %s\n", err.text);
            return 1;
        }
        if (o->list)
            puts(p.text);
        else
            run_problem(o, engine, &p, limits);
    }
    return 0;
}

static enum xm_status
open_device(const struct options *o, struct xm_engine **engine, struct limits *limits,
            struct xm_error *err)
{
    XM_TRY(xm_engine_create(0, NULL, engine, err));
    XM_TRY(xm_bench_limits(*engine, o->seconds, limits, err));
    if (!o->json)
        printf("%s: reads %.1f GB/s (host %.1f), multiplies %.1f GFLOP/s\n",
               xm_engine_info(*engine)->name, limits->device_read / 1e9,
               limits->host_read / 1e9, limits->multiply / 1e9);
    return XM_OK;
}

int
main(int argc, char **argv)
{
    struct options o;
    struct xm_error err = {0};
    struct xm_engine *engine = NULL;
    struct limits limits = {0};
    if (!parse_options(argc, argv, &o))
        return usage();
    FILE *file = fopen(o.file, "r");
    if (!file) {
        perror(o.file);
        return 1;
    }
    int code = 1;
    if (!o.list && open_device(&o, &engine, &limits, &err) != XM_OK)
        fprintf(stderr, "bench_kernels: %s\n", err.text);
    else
        code = run_file(&o, file, engine, &limits);
    fclose(file);
    xm_engine_unref(engine);
    return code;
}
