/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_args.h"

#include <string.h>

#include "runtime/util/compiler.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

/* clang-format off */
#define AT(member) offsetof(struct xm_benchmark_args, member)
static const struct xm_cli_option flags[] = {
    { 0, "h",               XM_CLI_SWITCH, AT(help),             NULL,     "show this text", "help" },
    { 0, "m",               XM_CLI_WORD,   AT(model),            "PATH",   "an .xml or .gguf file, a folder with one of them, or a file of 'xemoe compile'", "path_to_model" },
    { 0, "d",               XM_CLI_WORD,   AT(device),           "DEVICE", "CPU (default), GPU, GPU.1, AUTO:LIST, MULTI:LIST, HETERO:LIST", "target_device" },
    { 0, "hint",            XM_CLI_CHOICE, AT(hint),             "WORD",   "what the device optimises for; default: latency with -api sync, else throughput", "perf_hint", "throughput tput latency cumulative_throughput ctput none" },
    { 0, "niter",           XM_CLI_WHOLE,  AT(niter),            "N",      "iterations; in async mode rounded up to a multiple of the requests, or of the groups of -data_shape if these are more. -niter 0 only compiles the model", "number_iterations" },
    { 0, "t",               XM_CLI_BOUND,  AT(seconds),          "S",      "seconds (0: no limit); default without -niter: 60 on CPU and GPU, else 120. With both, the run ends when both are reached", "time" },
    { 0, "max_irate",       XM_CLI_RATE,   AT(max_irate),        "F",      "at most F inferences per second (0: no limit)", "maximum_inference_rate" },
    { 0, "api",             XM_CLI_CHOICE, AT(api),              "WORD",   "default: sync with -hint latency, else async", "api_type", "sync async" },
    { 0, "nireq",           XM_CLI_WHOLE,  AT(nireq),            "N",      "requests at once in async mode; default (0): the optimal number of the device. Also sets PERFORMANCE_HINT_NUM_REQUESTS", "number_infer_requests" },
    { 0, "nstreams",        XM_CLI_WORD,   AT(nstreams),         "N",      "NUM_STREAMS, or DEVICE:N,…; meant for -hint none", "number_streams" },
    { 0, "nthreads",        XM_CLI_BOUND,  AT(nthreads),         "N",      "INFERENCE_NUM_THREADS (0: the device chooses)", "number_threads" },
    { 0, "pin",             XM_CLI_CHOICE, AT(pin),              "WORD",   "ENABLE_CPU_PINNING", "infer_threads_pinning", "YES NO" },
    { 0, "b",               XM_CLI_WHOLE,  AT(batch),            "N",      "batch size (0: the model's own); -layout says which dimension is the batch", "batch_size" },
    { 0, "shape",           XM_CLI_SAID,   AT(shape),            "SHAPES", "other shapes for the model's inputs: in1[1,3],in2[?,1..8]", NULL },
    { 0, "data_shape",      XM_CLI_SAID,   AT(data_shape),       "SHAPES", "shapes of the tensors for dynamic inputs, one pair of brackets for each group: in1[1,16][4,16],in2[1][4]", NULL },
    { 0, "layout",          XM_CLI_SAID,   AT(layout),           "LAYOUTS", "in1[NCHW] or [N,...]; N is the batch", NULL },
    { 0, "i",               XM_CLI_FILES,  AT(files),            "FILES",  "input files: in1:f.npy in2:f.bin; several for one input are separated by commas; default: random values", "paths_to_input" },
    { 0, "ip",              XM_CLI_WORD,   AT(ip),               "TYPE",   "element type of the input tensors, from which values are converted; default: the model's", "input_precision" },
    { 0, "op",              XM_CLI_WORD,   AT(op),               "TYPE",   "element type of the output tensors", "output_precision" },
    { 0, "iop",             XM_CLI_WORD,   AT(iop),              "TYPES",  "element types of tensors by name: \"in:f16, out:f16\"", "input_output_precision" },
    { 0, "infer_precision", XM_CLI_WORD,   AT(infer_precision),  "TYPE",   "INFERENCE_PRECISION_HINT, or DEVICE:TYPE,…", NULL },
    { 0, "inference_only",  XM_CLI_SWITCH, AT(inference_only),   NULL,     "fill inputs before the measurement instead of during it; default: if no shape is dynamic", NULL },
    { 0, "no_warmup",       XM_CLI_SWITCH, AT(no_warmup),        NULL,     "Skip warmup inference before the measurement", NULL },
    { 0, "latency_percentile", XM_CLI_COUNT,  AT(percentile),       "P",      "percentile of the first latency line, 1 to 100 (50)", NULL },
    { 0, "pc",              XM_CLI_SWITCH, AT(pc),               NULL,     "print the times of the model's layers", "perf_counts" },
    { 0, "pcsort",          XM_CLI_CHOICE, AT(pcsort),           "WORD",   "print the times with shares: sorted by time, in order, or only layers that ran", "perf_counts_sort", "sort no_sort simple_sort" },
    { 0, "pcseq",           XM_CLI_SWITCH, AT(pcseq),            NULL,     "print the latency of each group of -data_shape", NULL },
    { 0, "report_type",     XM_CLI_CHOICE, AT(report_type),      "WORD",   "write reports", NULL, "no_counters average_counters detailed_counters" },
    { 0, "report_folder",   XM_CLI_SAID,   AT(report_folder),    "DIR",    "folder for the reports, which must exist (.)", NULL },
    { 0, "json_stats",      XM_CLI_SWITCH, AT(json_stats),       NULL,     "write reports as JSON instead of CSV", NULL },
    { 0, "dump_config",     XM_CLI_SAID,   AT(dump_config),      "FILE",   "write the properties of the devices to a file: {\"GPU\": {\"PERFORMANCE_HINT\": \"LATENCY\"}}", NULL },
    { 0, "load_config",     XM_CLI_SAID,   AT(load_config),      "FILE",   "read properties from such a file; flags override them", NULL },
    { 0, "cdir",            XM_CLI_SAID,   AT(cache_dir),        "DIR",    "CACHE_DIR", "cache_dir" },
    { 0, "lfile",           XM_CLI_SWITCH, AT(lfile),            NULL,     "compile the file directly, without reading the model first", "load_from_file" },
    { 0, "progress",        XM_CLI_SWITCH, AT(progress),         NULL,     "show progress on a terminal; default: yes", NULL },
    { 0, "exec_graph_path", XM_CLI_WORD,   AT(exec_graph),       "FILE",   "write the runtime model to an .xml file", NULL },
    { 0, "use_device_mem",  XM_CLI_SWITCH, AT(device_memory),    NULL,     "use USM host memory for inputs and device memory for results of fixed shapes; GPU only", "use_device_memory" },
    { 0, "extensions",      XM_CLI_WORD,   AT(extensions),       "LIBS",   "extension libraries, separated by commas; only those of openvino_tokenizers, whose operations are built in", NULL },
    { 0, "c",               XM_CLI_WORD,   AT(custom),           "FILE",   "not supported: all kernels are built in", "path_to_cldnn_config" },
    { 0, "mean_values",     XM_CLI_WORD,   AT(mean),             "VALUES", "not supported: for images", "imean" },
    { 0, "scale_values",    XM_CLI_WORD,   AT(scale),            "VALUES", "not supported: for images", "iscale" },
};
#undef AT

/* Flags that are refused if they have a value, because xemoe cannot apply it. */
static const struct {
    const char *name, *why;
} refused[] = {
    { "c",               "custom kernels are not supported; all kernels are built in" },
    { "mean_values",     "preprocessing of inputs is not supported" },
    { "scale_values",    "preprocessing of inputs is not supported" },
};
/* clang-format on */

/* Remembers the given flags as they were written; the last value of a flag counts. */
static enum xm_status
keep(void *out, const struct xm_cli_option *o, const char *value, struct xm_error *err)
{
    struct xm_benchmark_args *a = out;
    uint64_t n = 0;
    if (o->kind == XM_CLI_WHOLE && xm_parse_whole(value, &n) && n == XM_BENCHMARK_UNSAID)
        return xm_fail(err, XM_INVALID,
                       "option -%s takes a whole number from 0 below 2^64 - 1, "
                       "found '%s'",
                       o->name, value);
    char *text = xm_strdup(value);
    size_t i = 0;
    if (!text)
        return xm_no_memory(err, "the command line");
    while (i < a->n_given && strcmp(a->given[i].flag, o->name) != 0)
        i++;
    a->n_given += i == a->n_given;
    xm_free(a->given[i].value);
    a->given[i] = (struct xm_benchmark_given){o->name, text};
    return XM_OK;
}

const struct xm_cli_spec xm_benchmark_spec = {
    .usage = "xemoe benchmark_app -m PATH [-d DEVICE] [flags]",
    .about = "Measures inferences as OpenVINO's benchmark_app does, with the same flags "
             "and\noutput.\n",
    .own = flags,
    .n_own = XM_ARRAY_LEN(flags),
    .style = XM_CLI_ONE_DASH,
    .given = keep,
};

static enum xm_status
check(const struct xm_benchmark_args *a, struct xm_error *err)
{
    if (!a->model)
        return xm_fail(err, XM_INVALID, "which model? Give -m PATH");
    if (a->seconds != XM_BENCHMARK_UNSAID && a->seconds > UINT64_MAX / 1000)
        return xm_fail(err, XM_INVALID, "option -t takes fewer seconds than %llu",
                       /* the time is printed in milliseconds */
                       (unsigned long long)a->seconds);
    if (a->percentile > 100)
        return xm_fail(
            err, XM_INVALID,
            "option -latency_percentile takes a number from 1 to 100, found %llu",
            (unsigned long long)a->percentile);
    for (size_t k = 0; k < a->n_given; k++) {
        for (size_t i = 0; i < XM_ARRAY_LEN(refused); i++) {
            if (strcmp(a->given[k].flag, refused[i].name) == 0)
                return xm_fail(err, XM_INVALID, "option -%s: %s", refused[i].name,
                               refused[i].why);
        }
    }
    return XM_OK;
}

enum xm_status
xm_benchmark_args_read(int argc, char *const *argv, struct xm_benchmark_args *out,
                       struct xm_error *err)
{
    bool help = false;
    *out = (struct xm_benchmark_args){.device = "CPU",
                                      .niter = XM_BENCHMARK_UNSAID,
                                      .seconds = XM_BENCHMARK_UNSAID,
                                      .nthreads = XM_BENCHMARK_UNSAID,
                                      .percentile = 50};
    out->given = xm_calloc(XM_ARRAY_LEN(flags), sizeof(*out->given));
    if (!out->given)
        return xm_no_memory(err, "the command line");
    XM_TRY(xm_cli_parse(&xm_benchmark_spec, argc, argv, out, &help, err));
    return help ? XM_OK : check(out, err);
}

void
xm_benchmark_args_free(struct xm_benchmark_args *a)
{
    for (size_t i = 0; i < a->n_given; i++)
        xm_free(a->given[i].value);
    xm_free(a->given);
    a->given = NULL;
    a->n_given = 0;
}

bool
xm_benchmark_args_have_counters(const struct xm_benchmark_args *a)
{
    return a->pc == XM_SWITCH_ON || a->pcsort ||
           (a->report_type && strcmp(a->report_type, "no_counters") != 0);
}

/* ---- help -------------------------------------------------------------------------- */

static void
help_row(const struct xm_cli_option *f, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "  -%s", f->name);
    char word[XM_CLI_SPELLING];
    for (const char *at = f->aliases; xm_cli_next_alias(&at, word);)
        xm_strbuf_printf(out, ", %s", word);
    xm_strbuf_printf(out, " %s", f->value ? f->value : "[true|false]");
    xm_strbuf_add(out, "\n        ");
    for (const char *at = f->help; *at; at++)
        xm_strbuf_printf(out, *at == '\n' ? "\n        " : "%c", *at);
    if (f->choices)
        xm_strbuf_printf(out, " (%s)", f->choices);
    xm_strbuf_add(out, "\n");
}

void
xm_benchmark_args_help(struct xm_strbuf *out)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(flags); i++)
        help_row(&flags[i], out);
}
