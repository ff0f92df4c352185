/* SPDX-License-Identifier: Apache-2.0
 *
 * Options, and the loop over problems and families of kernels.
 *
 * Families are selected one by one with XM_FORCE. Slow ones run only with --all: the reference
 * kernels, and on a processor the kernels for which it emulates a GPU. The machine's rates are
 * measured at the beginning of the same run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "plugin/program_util/command_line.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/program_docs.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"

struct options {
    const char *file, *filter, *device;
    bool list, json, all;
    double seconds;
};

/* clang-format off */
#define AT(member) offsetof(struct options, member)
static const struct xm_cli_option rows[] = {
    { 'd', "device",  XM_CLI_WORD, AT(device),  "NAME", "GPU (default), GPU.1; 'xemoe devices' lists them", "-dev", "GPU" },
    { 0,   "filter",  XM_CLI_WORD, AT(filter),  "TEXT", "time only problems whose line contains this text, such as 'moe' or 'q4_k'" },
    { 0,   "seconds", XM_CLI_RATE, AT(seconds), "S",    "seconds for each family of kernels (1)" },
    { 0,   "all",     XM_CLI_FLAG, AT(all),     NULL,   "also time kernels that take minutes: the reference kernels, and on a processor the kernels that are written for GPUs" },
    { 0,   "list",    XM_CLI_FLAG, AT(list),    NULL,   "list the problems and run none" },
    { 0,   "json",    XM_CLI_FLAG, AT(json),    NULL,   "print the results as one JSON object" },
    { 'f', "file",    XM_CLI_WORD, AT(file),    "FILE", "file with problems, one per line ('#' begins a comment); -: standard input; default: the problems of --list" },
};

static const struct xm_cli_spec spec = {
    .usage = "xemoe bench --kernels [options]",
    .about =
        "Times the kernels of single steps with random weights, for every family that the\ndevice supports, and compares them with the machine's read and multiply rates. A\nproblem is a line:\n\n  linear N=4096 K=2048 T=1 q4_k f16             rows, columns, tokens\n  moe E=128 K=8 H=2048 I=768 T=16 u4 g128 f16   experts, chosen, widths\n  attention Q=32 KV=4 D=128 P=2048 T=1 i8 f16   heads, head size, positions\n\nwith the type of the weight (and its group size) or of the KV cache, then the type\nof the activations.\n",
    .own = rows,
    .n_own = XM_ARRAY_LEN(rows),
};
#undef AT

/* Variants for many tokens that the family vec prefers if activations are not converted to 8-bit
 * integers; and variants without products of 16-bit integers. */
#define SHORTS                                                                           \
    "linear_many=linear_gemm_vnni,linear_long=linear_gemm_vnni,"                         \
    "moe_gather=moe_gather_vnni,moe_gemm_gate_up=moe_gemm_gate_up_vnni,"                 \
    "moe_gemm_down=moe_gemm_down_vnni"
#define FLOATS                                                                           \
    "linear_few=linear_gemv_vec,linear_many=linear_gemm_vec,"                            \
    "linear_long=linear_gemm_vec,moe_gate_up=moe_gate_up_vec,moe_down=moe_down_vec,"     \
    "moe_gather=moe_gather_vec,moe_gemm_gate_up=moe_gemm_gate_up_vec,"                   \
    "moe_gemm_down=moe_gemm_down_vec"
static const struct {
    const char *name, *force;
    bool is_for_gpus, is_slow;
} families[] = {
    { "default", "", false, false },
    { "host", "host", false, false },
    { "vec", "vec", false, false },
    { "vec, shorts", SHORTS, false, false },
    { "vec, floats", FLOATS, false, false },
    { "gen", "gen", true, false },
    { "sg", "sg", true, false },
    { "ref", "ref", false, true },
};
/* clang-format on */

struct run {
    struct options options;
    struct xm_engine *engine;    /* NULL: only lists the problems */
    struct bench_report *report; /* of an engine */
    size_t n;                    /* number of problems that match the filter */
};

static bool
is_wanted(const struct run *r, size_t family)
{
    const bool is_cpu = xm_engine_info(r->engine)->kind == XM_DEVICE_CPU;
    return r->options.all ||
           (!families[family].is_slow && !(is_cpu && families[family].is_for_gpus));
}

/* Removes the first occurrence of `part` from a sentence. */
static void
leave_out(char *sentence, const char *part)
{
    char *at = strstr(sentence, part);
    if (at)
        memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
}

/* Runs one problem with every family. A family that ends up with the same kernels as an earlier one
 * is not reported. */
static void
run_problem(const struct run *r, const struct xm_timed_problem *p)
{
    struct xm_bench_result seen[XM_ARRAY_LEN(families)] = {{.best = 0}};
    xm_bench_report_problem(r->report, p);
    for (size_t f = 0; f < XM_ARRAY_LEN(families); f++) {
        struct xm_error err = {0};
        bool again = false;
        if (!is_wanted(r, f))
            continue;
        xm_progress_show("timing %s: %s", p->text, families[f].name);
        setenv("XM_FORCE", families[f].force, 1);
        enum xm_status s =
            xm_bench_problem_time(r->engine, p, r->options.seconds, &seen[f], &err);
        xm_progress_clear();
        for (size_t i = 0; i < f; i++)
            again = again || strcmp(seen[i].kernels, seen[f].kernels) == 0;
        /* XM_FORCE was set here, not by the user */
        leave_out(err.text, "XM_FORCE asks for ");
        leave_out(err.text, ", which");
        if (s != XM_OK)
            xm_bench_report_refusal(r->report, families[f].name, err.text);
        else if (!again)
            xm_bench_report_result(r->report, p, seen[f].kernels, seen[f].best);
    }
}

static bool
passes_filter(const struct run *r, const char *line)
{
    return !r->options.filter || strstr(line, r->options.filter);
}

/* Whether a problem matches the filter; checked before measuring the machine. The lines of a file
 * are not known yet. */
static bool
has_problems(const struct run *r)
{
    bool has = r->options.file != NULL;
    for (size_t i = 0; i < xm_bench_n_problems; i++)
        has |= passes_filter(r, xm_bench_problems[i]);
    return has;
}

static enum xm_status
take_line(void *ctx, const char *line, struct xm_error *err)
{
    struct run *r = ctx;
    struct xm_timed_problem p;
    if (line[strspn(line, " \t\r")] == 0 || !passes_filter(r, line))
        return XM_OK;
    XM_TRY(xm_timed_problem_parse(line, &p, err));
    r->n++;
    if (!r->engine)
        puts(p.text);
    else
        run_problem(r, &p);
    return XM_OK;
}

static enum xm_status
take_problems(struct run *r, struct xm_error *err)
{
    const char *name = r->options.file;
    if (!name) {
        for (size_t i = 0; i < xm_bench_n_problems; i++)
            XM_TRY(take_line(r, xm_bench_problems[i], err));
        return XM_OK;
    }
    if (strcmp(name, "-") == 0)
        return xm_bench_problems_read(stdin, "standard input", take_line, r, err);
    FILE *file = fopen(name, "r");
    if (!file)
        return xm_fail(err, XM_IO, "'%.150s' cannot be read: %s", name, strerror(errno));
    enum xm_status s = xm_bench_problems_read(file, name, take_line, r, err);
    fclose(file);
    return s;
}

static int
say_there_are_none(const struct run *r)
{
    return xm_cli_usage("option --filter: no problem contains '%.60s'; 'xemoe bench "
                        "--kernels --list' lists them",
                        r->options.filter ? r->options.filter : "");
}

static int
run(struct run *r)
{
    struct xm_error err = {0};
    size_t index = 0;
    if (!has_problems(r))
        return say_there_are_none(r);
    if (!r->options.list && !xm_bench_find_device(r->options.device, &index))
        return XM_EXIT_DEVICE;
    enum xm_status s = r->options.list
                           ? XM_OK
                           : xm_bench_open(index, NULL, r->options.seconds,
                                           r->options.json, &r->engine, &r->report, &err);
    if (s == XM_OK)
        s = take_problems(r, &err);
    const bool has_none = s == XM_OK && r->n == 0;
    if (r->report && s == XM_OK && !has_none)
        s = xm_bench_report_end(r->report, &err);
    else if (r->report)
        (void)xm_bench_report_end(r->report, NULL);
    xm_engine_unref(r->engine);
    const int flushed = xm_cli_flush();
    if (has_none)
        return say_there_are_none(r);
    if (s == XM_OK)
        return flushed;
    fprintf(stderr, "xemoe: %s\n", err.text);
    return xm_cli_exit_code(s);
}

static const char example[] = "xemoe bench --kernels --filter moe --seconds 0.3";

static int
print_help(void)
{
    struct xm_strbuf text = {0};
    xm_cli_help(&spec, example, &text);
    xm_strbuf_printf(&text, "\nexample: %s\n", example);
    xm_terminal_print(stdout, xm_strbuf_text(&text));
    xm_strbuf_free(&text);
    return xm_cli_flush();
}

/* Prints the program's part for `xemoe make-docs`, which joins the parts of all programs. */
static int
make_docs(const char *kind)
{
    const struct xm_cli_described c = {
        "bench --kernels", "measure the kernels of single steps", example, &spec};
    return xm_describe_print(kind, &c);
}

int
main(int argc, char **argv)
{
    struct run r = {.options = {.seconds = 1}};
    struct xm_error err = {0};
    bool help = false;
    int code = xm_cli_start();
    if (code != XM_EXIT_OK)
        return code;
    if (argc == 3 && strcmp(argv[1], "make-docs") == 0)
        return make_docs(argv[2]);
    if (argc >= 2 && strcmp(argv[1], "tune") == 0)
        return xm_bench_tune(argc - 1, argv + 1);
    if (xm_cli_parse(&spec, argc, argv, &r.options, &help, &err) != XM_OK)
        return xm_cli_usage_of(&err, "xemoe bench --kernels --help");
    if (help)
        return print_help();
    if (r.options.list && r.options.json)
        return xm_cli_usage("option --list cannot be combined with --json");
    if (!(r.options.seconds > 0))
        return xm_cli_usage("option --seconds takes a number above 0");
    xm_cli_watch_interrupt();
    return run(&r);
}
