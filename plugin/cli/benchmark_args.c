/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/benchmark_args.h"

#include <math.h>
#include <string.h>

#include "plugin/cli/args.h"
#include "runtime/util/element.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

enum kind {
    SWITCH, /* enum xm_benchmark_switch: alone, or a value of `on` or `off` */
    TEXT,   /* const char *                                                 */
    OPTION, /* const char *: an empty one is as if the flag were not given  */
    CHOICE, /* const char *: one of `choices`                               */
    COUNT,  /* uint64_t: a whole number from 1                              */
    LIMIT,  /* uint64_t: from 0, which is XM_BENCHMARK_UNSAID               */
    WHOLE,  /* uint64_t: from 0                                             */
    RATE,   /* double: from 0                                               */
    FILES   /* -i                                                           */
};

struct flag {
    const char *name, *long_name; /* without dashes; long_name NULL: none */
    enum kind kind;
    size_t offset;     /* of the member                                        */
    const char *value; /* name of the value in the help; of a CHOICE its words */
    const char *help;
};

/* clang-format off */
#define AT(member) offsetof(struct xm_benchmark_args, member)
static const struct flag flags[] = {
    { "h",       "help",                  SWITCH, AT(help),            NULL,    "this text" },
    { "m",       "path_to_model",         TEXT,   AT(model),           "PATH",  "an .xml or .gguf file, a folder with one of them, or what 'xemoe compile' wrote" },
    { "d",       "target_device",         TEXT,   AT(device),          "DEVICE", "CPU (default), GPU, GPU.1, AUTO:LIST, MULTI:LIST, HETERO:LIST" },
    { "hint",    "perf_hint",             CHOICE, AT(hint),            "throughput tput latency cumulative_throughput ctput none", "what the device is to be fast at; default: latency with -api sync, else throughput" },
    { "niter",   "number_iterations",     WHOLE,  AT(niter),           "N",     "iterations; in async mode up to the next multiple of the requests, or of the groups of\n-data_shape where these are more. -niter 0 only compiles" },
    { "t",       "time",                  LIMIT,  AT(seconds),         "S",     "seconds (0: not said); default without -niter: 60 on CPU and GPU, else 120. With both, the run ends\nwhere both are reached" },
    { "max_irate", "maximum_inference_rate", RATE, AT(max_irate),      "F",     "at most F inferences a second (0: no cap)" },
    { "api",     "api_type",              CHOICE, AT(api),             "sync async", "default: sync with -hint latency, else async" },
    { "nireq",   "number_infer_requests", WHOLE,  AT(nireq),           "N",     "requests at once in async mode; default (0): as many as the device says. Also\nPERFORMANCE_HINT_NUM_REQUESTS" },
    { "nstreams", "number_streams",       TEXT,   AT(nstreams),        "N",     "NUM_STREAMS, or DEVICE:N,…; goes with -hint none" },
    { "nthreads", "number_threads",       LIMIT,  AT(nthreads),        "N",     "INFERENCE_NUM_THREADS (0: not said)" },
    { "pin",     "infer_threads_pinning", CHOICE, AT(pin),             "YES NO", "ENABLE_CPU_PINNING" },
    { "b",       "batch_size",            WHOLE,  AT(batch),           "N",     "the batch (0: as the model is); -layout says which dimension that is" },
    { "shape",   NULL,                    OPTION, AT(shape),           "SHAPES", "other shapes for the model's inputs: in1[1,3],in2[?,1..8]" },
    { "data_shape", NULL,                 OPTION, AT(data_shape),      "SHAPES", "shapes of tensors for dynamic inputs, a bracket for each group of them:\nin1[1,16][4,16],in2[1][4]" },
    { "layout",  NULL,                    OPTION, AT(layout),          "LAYOUTS", "in1[NCHW] or [N,...]; N is the batch" },
    { "i",       "paths_to_input",        FILES,  AT(files),           "FILES", "in1:f.npy in2:f.bin; several for an input with commas between; default: random values" },
    { "ip",      "input_precision",       TEXT,   AT(ip),              "TYPE",  "element type of the inputs' tensors: the model's" },
    { "op",      "output_precision",      TEXT,   AT(op),              "TYPE",  "the same of the outputs" },
    { "iop",     "input_output_precision", TEXT,  AT(iop),             "TYPES", "the same by name: \"in:f16, out:f16\"" },
    { "infer_precision", NULL,            TEXT,   AT(infer_precision), "TYPE",  "INFERENCE_PRECISION_HINT, or DEVICE:TYPE,…" },
    { "inference_only", NULL,             SWITCH, AT(inference_only),  NULL,    "inputs are filled before the measurement, not in it; default: where no shape is dynamic" },
    { "no_warmup", NULL,                  SWITCH, AT(no_warmup),       NULL,    "Skip warmup inference: none before those that are measured" },
    { "latency_percentile", NULL,         COUNT,  AT(percentile),      "P",     "1 to 100, of the first line on latency (50)" },
    { "pc",      "perf_counts",           SWITCH, AT(pc),              NULL,    "times of the model's layers" },
    { "pcsort",  "perf_counts_sort",      CHOICE, AT(pcsort),          "sort no_sort simple_sort", "the same with shares: by time, as they are, or only those that ran" },
    { "pcseq",   NULL,                    SWITCH, AT(pcseq),           NULL,    "latency of each group of -data_shape" },
    { "report_type", NULL,                CHOICE, AT(report_type),     "no_counters average_counters detailed_counters", "write reports" },
    { "report_folder", NULL,              OPTION, AT(report_folder),   "DIR",   "where to; it must be there (.)" },
    { "json_stats", NULL,                 SWITCH, AT(json_stats),      NULL,    "reports in JSON, not CSV" },
    { "dump_config", NULL,                OPTION, AT(dump_config),     "FILE",  "write the devices' properties: {\"GPU\": {\"PERFORMANCE_HINT\": \"LATENCY\"}}" },
    { "load_config", NULL,                OPTION, AT(load_config),     "FILE",  "read them; flags win" },
    { "cdir",    "cache_dir",             OPTION, AT(cache_dir),       "DIR",   "CACHE_DIR" },
    { "lfile",   "load_from_file",        SWITCH, AT(lfile),           NULL,    "compile the file at once, without a model in between" },
    { "progress", NULL,                   SWITCH, AT(progress),        NULL,    "how far the run is, on a terminal; default: yes" },
    { "exec_graph_path", NULL,            TEXT,   AT(exec_graph),      "FILE",  "write the graph that runs, an .xml file" },
    { "use_device_mem", "use_device_memory", SWITCH, AT(device_memory), NULL,   "inputs in USM host memory, results of fixed shapes in device memory; GPU only" },
    { "extensions", NULL,                 TEXT,   AT(extensions),      "LIBS",  "libraries, with commas between; only those of openvino_tokenizers, whose operations are\nbuilt in" },
    { "c",       "path_to_cldnn_config",  TEXT,   AT(custom),          "FILE",  "refused: kernels are built in" },
    { "mean_values", "imean",             TEXT,   AT(mean),            "VALUES", "refused: for images" },
    { "scale_values", "iscale",           TEXT,   AT(scale),           "VALUES", "refused: for images" },
};
#undef AT

/* Flags that have no value which could be heeded. */
static const struct {
    const char *name, *why;
} refused[] = {
    { "c",               "custom kernels cannot be loaded; all kernels are built in" },
    { "mean_values",     "inputs are taken as they are, without pre-processing" },
    { "scale_values",    "inputs are taken as they are, without pre-processing" },
};
/* clang-format on */

struct parse {
    char *const *argv;
    int argc, at;
    struct xm_benchmark_args *out;
    struct xm_error *err;
};

static bool
is_name(const char *name, const char *word, size_t n)
{
    return name && strlen(name) == n && memcmp(name, word, n) == 0;
}

/* The flag that a word names; NULL: none. *attached: what stands behind '='. */
static const struct flag *
find_flag(const char *word, const char **attached)
{
    *attached = NULL;
    if (word[0] != '-')
        return NULL;
    const char *name = word + 1 + (word[1] == '-');
    const size_t n = strcspn(name, "=");
    *attached = name[n] ? name + n + 1 : NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(flags); i++) {
        if (is_name(flags[i].name, name, n) || is_name(flags[i].long_name, name, n))
            return &flags[i];
    }
    return NULL;
}

static bool
is_flag(const char *word)
{
    const char *attached;
    return find_flag(word, &attached) != NULL;
}

/* ---- values ------------------------------------------------------------------------ */

static bool
read_switch(const char *text, enum xm_benchmark_switch *out)
{
    static const struct {
        const char *text;
        enum xm_benchmark_switch value;
    } words[] = {{"true", XM_SWITCH_ON}, {"false", XM_SWITCH_OFF}, {"yes", XM_SWITCH_ON},
                 {"no", XM_SWITCH_OFF},  {"1", XM_SWITCH_ON},      {"0", XM_SWITCH_OFF},
                 {"on", XM_SWITCH_ON},   {"off", XM_SWITCH_OFF}};
    for (size_t i = 0; i < XM_ARRAY_LEN(words); i++) {
        if (xm_same_but_case(text, words[i].text)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

static bool
read_rate(const char *text, double *out)
{
    char *end = NULL;
    *out = xm_parse_double(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && *out >= 0.0;
}

static bool
store_whole(const struct flag *f, const char *text, void *member)
{
    uint64_t n = 0;
    if (!xm_cli_whole(text, &n) || n == XM_BENCHMARK_UNSAID ||
        (n == 0 && f->kind == COUNT))
        return false;
    if (n == 0 && f->kind == LIMIT)
        n = XM_BENCHMARK_UNSAID;
    memcpy(member, &n, sizeof(n));
    return true;
}

/* False: the text is no value of this kind. */
static bool
store_value(struct xm_benchmark_args *a, const struct flag *f, const char *text)
{
    void *member = (char *)a + f->offset;
    enum xm_benchmark_switch on;
    double rate;
    switch (f->kind) {
    case SWITCH:
        if (!read_switch(text, &on))
            return false;
        memcpy(member, &on, sizeof(on));
        return true;
    case CHOICE:
        if (!xm_list_has(f->value, ' ', text, strlen(text)))
            return false;
        memcpy(member, &text, sizeof(text));
        return true;
    case OPTION:
        text = text[0] ? text : NULL;
        memcpy(member, &text, sizeof(text));
        return true;
    case TEXT:
        memcpy(member, &text, sizeof(text));
        return text[0] != '\0';
    case COUNT:
    case LIMIT:
    case WHOLE:
        return store_whole(f, text, member);
    case RATE:
        if (!read_rate(text, &rate))
            return false;
        memcpy(member, &rate, sizeof(rate));
        return true;
    case FILES:
        break;
    }
    return false;
}

static enum xm_status
fail_value(struct parse *p, const struct flag *f, const char *text)
{
    static const char *const expected[] = {
        [SWITCH] = "true or false",
        [TEXT] = "a text",
        [OPTION] = "a text",
        [CHOICE] = "one of",
        [COUNT] = "a whole number from 1",
        [LIMIT] = "a whole number from 0",
        [WHOLE] = "a whole number from 0",
        [RATE] = "a number from 0",
        [FILES] = "files",
    };
    return xm_fail(p->err, XM_INVALID, "option -%s takes %s%s%s, found '%.60s'", f->name,
                   expected[f->kind], f->kind == CHOICE ? " " : "",
                   f->kind == CHOICE ? f->value : "", text);
}

/* ---- words ------------------------------------------------------------------------- */

/* Remembers what was given, as it was; a flag's last value counts. */
static enum xm_status
keep(struct parse *p, const struct flag *f, struct xm_strbuf *value)
{
    struct xm_benchmark_args *a = p->out;
    char *text = xm_strbuf_take(value);
    size_t i = 0;
    if (!text)
        return xm_fail(p->err, XM_NO_MEMORY, "out of memory for the command line");
    while (i < a->n_given && strcmp(a->given[i].flag, f->name) != 0)
        i++;
    a->n_given += i == a->n_given;
    xm_free(a->given[i].value);
    a->given[i] = (struct xm_benchmark_given){f->name, text};
    return XM_OK;
}

static enum xm_status
take_files(struct parse *p, const struct flag *f, const char *attached)
{
    struct xm_benchmark_args *a = p->out;
    struct xm_strbuf value = {0};
    a->one_file = attached;
    a->files = attached ? &a->one_file : (const char *const *)&p->argv[p->at + 1];
    a->n_files = attached ? 1 : 0;
    while (!attached && p->at + 1 < p->argc && !is_flag(p->argv[p->at + 1])) {
        p->at++;
        a->n_files++;
    }
    if (a->n_files == 0)
        return xm_fail(p->err, XM_INVALID, "option -i needs a value: FILES");
    for (size_t i = 0; i < a->n_files; i++)
        xm_strbuf_printf(&value, "%s%s", i ? " " : "", a->files[i]);
    return keep(p, f, &value);
}

static enum xm_status
take_flag(struct parse *p, const struct flag *f, const char *attached)
{
    struct xm_strbuf kept = {0};
    enum xm_benchmark_switch ignored;
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    const char *value = attached;
    if (f->kind == FILES)
        return take_files(p, f, attached);
    const bool stands_alone =
        !value && f->kind == SWITCH && !(next && read_switch(next, &ignored));
    if (stands_alone) {
        value = "true";
    } else if (!value) {
        if (!next || is_flag(next))
            return xm_fail(p->err, XM_INVALID, "option -%s needs a value: %s", f->name,
                           f->value);
        value = next;
        p->at++;
    }
    if (!store_value(p->out, f, value))
        return fail_value(p, f, value);
    xm_strbuf_add(&kept, stands_alone ? "" : value);
    return keep(p, f, &kept);
}

static enum xm_status
check(const struct xm_benchmark_args *a, struct xm_error *err)
{
    if (!a->model)
        return xm_fail(err, XM_INVALID, "which model? Give -m PATH");
    if (a->seconds != XM_BENCHMARK_UNSAID && a->seconds > UINT64_MAX / 1000)
        return xm_fail(err, XM_INVALID, "option -t takes fewer seconds than %llu",
                       (unsigned long long)a->seconds); /* they are told in ms */
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
    struct parse p = {.argv = argv, .argc = argc, .out = out, .err = err};
    *out = (struct xm_benchmark_args){.device = "CPU",
                                      .niter = XM_BENCHMARK_UNSAID,
                                      .seconds = XM_BENCHMARK_UNSAID,
                                      .nthreads = XM_BENCHMARK_UNSAID,
                                      .percentile = 50};
    out->given = xm_calloc(XM_ARRAY_LEN(flags), sizeof(*out->given));
    if (!out->given)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the command line");
    for (p.at = 1; p.at < argc && out->help != XM_SWITCH_ON; p.at++) {
        const char *attached, *word = argv[p.at];
        const struct flag *f = find_flag(word, &attached);
        if (!f && word[0] == '-')
            return xm_fail(err, XM_INVALID, "there is no option %.60s", word);
        if (!f)
            return xm_fail(err, XM_INVALID, "'%.60s' is one word too many", word);
        XM_TRY(take_flag(&p, f, attached));
    }
    return out->help == XM_SWITCH_ON ? XM_OK : check(out, err);
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
help_row(const struct flag *f, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "  -%s", f->name);
    if (f->long_name)
        xm_strbuf_printf(out, ", --%s", f->long_name);
    if (f->kind == SWITCH)
        xm_strbuf_add(out, " [true|false]");
    else
        xm_strbuf_printf(out, " %s", f->kind == CHOICE ? "WORD" : f->value);
    xm_strbuf_add(out, "\n        ");
    for (const char *at = f->help; *at; at++)
        xm_strbuf_printf(out, *at == '\n' ? "\n        " : "%c", *at);
    if (f->kind == CHOICE)
        xm_strbuf_printf(out, " (%s)", f->value);
    xm_strbuf_add(out, "\n");
}

void
xm_benchmark_args_help(struct xm_strbuf *out)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(flags); i++)
        help_row(&flags[i], out);
}
