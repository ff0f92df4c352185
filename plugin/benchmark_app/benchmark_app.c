/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app, which 'xemoe benchmark_app' starts: the eleven steps of OpenVINO's program of that
 * name, with the same output lines, using OpenVINO's C API. Output goes to standard output, except
 * for Ctrl-C, wrong command lines, progress and the engine's log.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_check.h"
#include "plugin/benchmark_app/benchmark_counters.h"
#include "plugin/benchmark_app/benchmark_files.h"
#include "plugin/benchmark_app/benchmark_out.h"
#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/benchmark_app/benchmark_reshape.h"
#include "plugin/benchmark_app/benchmark_results.h"
#include "plugin/benchmark_app/benchmark_types.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/program_docs.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/number.h"

/* default durations: for CPU, GPU and NPU; for other devices */
enum { SECONDS = 60, SECONDS_OF_OTHERS = 120 };

struct app {
    struct xm_benchmark_args args;
    struct xm_benchmark_config config;
    struct xm_benchmark_model model;
    struct xm_benchmark_shapes layouts, shapes, data_shapes; /* values of flags */
    struct xm_benchmark_inputs inputs;
    struct xm_benchmark_job job;
    struct xm_benchmark_run run;
    struct xm_benchmark_report report;
    bool is_set_up;   /* the rows of the setup section are known */
    bool has_times;   /* the report has the times */
    bool is_reported; /* the report's file has been written */
    struct xm_error err;
};

/* ---- checks of the command line, independent of the model ---------------------------------- */

static enum xm_status
read_flags(struct app *a)
{
    const struct {
        const char *option, *text;
        enum xm_benchmark_brackets kind;
        struct xm_benchmark_shapes *out;
    } rows[] = {
        {"-layout", a->args.layout, XM_BRACKETS_LAYOUT, &a->layouts},
        {"-shape", a->args.shape, XM_BRACKETS_SHAPE, &a->shapes},
        {"-data_shape", a->args.data_shape, XM_BRACKETS_GROUPS, &a->data_shapes},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++)
        XM_TRY(xm_benchmark_shapes_read(rows[i].option, rows[i].text, rows[i].kind,
                                        rows[i].out, &a->err));
    XM_TRY(xm_benchmark_layouts_check(&a->layouts, &a->err));
    XM_TRY(xm_benchmark_types_read(&a->args, &a->err));
    return xm_benchmark_check_values(&a->args, &a->err);
}

static enum xm_status
read_command_line(struct app *a, int argc, char **argv)
{
    XM_TRY(xm_benchmark_args_read(argc, argv, &a->args, &a->err));
    return a->args.help == XM_SWITCH_ON ? XM_OK : read_flags(a);
}

/* ---- steps 1 to 3: flags and devices ------------------------------------------------------- */

static enum xm_status
step_args(struct app *a)
{
    xm_benchmark_step(1, NULL);
    xm_benchmark_info("Parsing input parameters");
    XM_TRY(xm_benchmark_check_paths(&a->args, &a->err));
    for (size_t i = 0; i < a->args.n_given; i++) {
        char flag[64];
        snprintf(flag, sizeof(flag), "-%s", a->args.given[i].flag);
        xm_benchmark_report_add(&a->report, XM_REPORT_COMMAND, flag, "%s",
                                a->args.given[i].value);
    }
    return xm_benchmark_config_make(&a->args, &a->config, &a->err);
}

static void
say_build(const char *build)
{
    xm_benchmark_info("Build ................................. %s", build);
    xm_benchmark_info("%s", "");
}

/* Adds each library of "one.so,two.so". */
static enum xm_status
add_extensions(struct app *a)
{
    enum xm_status s = XM_OK;
    struct xm_strbuf path = {0};
    for (const char *at = a->args.extensions; at && s == XM_OK;) {
        const size_t n = strcspn(at, ",");
        xm_strbuf_clear(&path);
        xm_strbuf_add_n(&path, at, n);
        s = xm_benchmark_api(ov_core_add_extension(a->model.core, xm_strbuf_text(&path)),
                             "-extensions", &a->err);
        if (s == XM_OK)
            xm_benchmark_info("Operations of %s are built in", xm_strbuf_text(&path));
        at = at[n] ? at + n + 1 : NULL;
    }
    xm_strbuf_free(&path);
    return s;
}

static enum xm_status
step_runtime(struct app *a)
{
    ov_version_t version = {0};
    xm_benchmark_step(2, NULL);
    XM_TRY(xm_benchmark_api(ov_get_openvino_version(&version), NULL, &a->err));
    xm_benchmark_info("OpenVINO:");
    say_build(version.buildNumber);
    ov_version_free(&version);
    XM_TRY(xm_benchmark_api(ov_core_create(&a->model.core), NULL, &a->err));
    XM_TRY(add_extensions(a));
    xm_benchmark_info("Device info:");
    for (size_t i = 0; i < a->config.n_devices; i++) {
        ov_core_version_list_t list = {0};
        XM_TRY(xm_benchmark_api(ov_core_get_versions_by_device_name(
                                    a->model.core, a->config.devices[i], &list),
                                "-d", &a->err));
        for (size_t k = 0; k < list.size; k++) {
            xm_benchmark_info("%s", list.versions[k].device_name);
            say_build(list.versions[k].version.buildNumber);
        }
        ov_core_versions_free(&list);
    }
    xm_benchmark_info("%s", "");
    return XM_OK;
}

static bool
is_latency(const struct app *a)
{
    const char *hint =
        xm_benchmark_config_value(&a->config, a->config.devices[0], "PERFORMANCE_HINT");
    return hint && strcmp(hint, "LATENCY") == 0;
}

static enum xm_status
step_device(struct app *a)
{
    const struct xm_benchmark_args *args = &a->args;
    xm_benchmark_step(3, NULL);
    if (args->nstreams && args->hint && strcmp(args->hint, "none") != 0)
        xm_benchmark_warn("-nstreams is meant for -hint none; the hint is set as well");
    a->job.is_async = args->api ? strcmp(args->api, "async") == 0 : !is_latency(a);
    return xm_benchmark_model_configure(&a->model, &a->config, &a->err);
}

/* ---- steps 4 to 6: the model ------------------------------------------------------- */

static bool
is_read_first(const struct app *a)
{
    return !a->model.is_exported && a->args.lfile != XM_SWITCH_ON;
}

static enum xm_status
step_read(struct app *a)
{
    a->model.is_exported = xm_benchmark_model_is_exported(a->args.model);
    xm_benchmark_step(4, is_read_first(a) ? NULL : "skipped");
    if (!is_read_first(a))
        return a->args.niter == 0 ? XM_OK : xm_benchmark_files_check(&a->args, &a->err);
    xm_benchmark_info("Loading model files");
    XM_TRY(xm_benchmark_model_read(&a->model, a->args.model, &a->err));
    xm_benchmark_info("Read model took %.2f ms", a->model.read_ms);
    xm_benchmark_info("Original model I/O parameters:");
    xm_benchmark_model_print_ports(&a->model);
    return XM_OK;
}

/* Sets layouts, shapes and the batch of the ports. */
static enum xm_status
set_shapes(struct app *a)
{
    xm_benchmark_use_names(&a->model, &a->layouts);
    xm_benchmark_use_names(&a->model, &a->shapes);
    xm_benchmark_use_names(&a->model, &a->data_shapes);
    return xm_benchmark_reshape(&a->model, &a->layouts, &a->shapes, a->args.batch,
                                &a->err);
}

static enum xm_status
step_resize(struct app *a)
{
    xm_benchmark_step(5, is_read_first(a) ? NULL : "skipped");
    return is_read_first(a) ? set_shapes(a) : XM_OK;
}

static enum xm_status
step_configure(struct app *a)
{
    xm_benchmark_step(6, is_read_first(a) ? NULL : "skipped");
    if (!is_read_first(a))
        return XM_OK;
    XM_TRY(xm_benchmark_types_set(&a->model, &a->args, &a->err));
    xm_benchmark_model_print_ports(&a->model);
    if (a->args.niter == 0) /* no inference, so no inputs are made */
        return XM_OK;
    return xm_benchmark_inputs_check(&a->model, &a->args, &a->data_shapes, &a->err);
}

/* ---- steps 7 and 8: on the device -------------------------------------------------- */

static enum xm_status
compile(struct app *a)
{
    const bool is_shown = a->args.progress != XM_SWITCH_OFF;
    if (is_shown) {
        xm_progress_show("compiling %s", a->args.model);
        xm_benchmark_show_builds();
    }
    const enum xm_status s =
        xm_benchmark_model_compile(&a->model, a->args.model, a->args.device, &a->err);
    xm_benchmark_hide_builds();
    xm_progress_clear();
    return s;
}

static enum xm_status
step_load(struct app *a)
{
    const double before = 1024.0 * xm_cli_peak_rss();
    xm_benchmark_step(7, NULL);
    XM_TRY(compile(a));
    const double after = 1024.0 * xm_cli_peak_rss();
    xm_benchmark_info("%s model took %.2f ms",
                      a->model.is_exported ? "Import" : "Compile", a->model.compile_ms);
    xm_benchmark_info("Start of compilation memory usage: Peak %.0f KB", before);
    xm_benchmark_info("End of compilation memory usage: Peak %.0f KB", after);
    xm_benchmark_info("Compile model ram used %.0f KB", after - before);
    if (is_read_first(a))
        return XM_OK;
    xm_benchmark_model_print_ports(&a->model);
    XM_TRY(set_shapes(a));
    return xm_benchmark_types_set(&a->model, &a->args, &a->err);
}

static void
say_property(const struct app *a, const char *key)
{
    char *value = xm_benchmark_model_property(&a->model, key);
    if (value)
        xm_benchmark_info("  %s: %s", key, value);
    ov_free(value);
}

/* Prints all properties except lists of properties; then those that scripts search for, even if the
 * device neither uses nor lists them. */
static void
say_properties(const struct app *a)
{
    static const char lists[] = "SUPPORTED_PROPERTIES XM_ACCEPTED_PROPERTIES";
    static const char *const more[] = {"PERFORMANCE_HINT", "NUM_STREAMS",
                                       "INFERENCE_NUM_THREADS"};
    char *keys = xm_benchmark_model_property(&a->model, "SUPPORTED_PROPERTIES");
    struct xm_strbuf key = {0};
    xm_benchmark_info("Model:");
    for (const char *at = keys ? keys : ""; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        xm_strbuf_clear(&key);
        xm_strbuf_add_n(&key, at, n);
        if (!xm_list_has(lists, ' ', at, n))
            say_property(a, xm_strbuf_text(&key));
        at += n;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(more); i++) {
        if (!xm_list_has(keys ? keys : "", ' ', more[i], strlen(more[i])))
            say_property(a, more[i]);
    }
    xm_strbuf_free(&key);
    ov_free(keys);
}

/* Returns the number of requests: from -nireq or -load_config, else the device's optimal number. */
static uint64_t
find_requests(const struct app *a)
{
    uint64_t n = 0;
    const char *asked = xm_benchmark_config_value(&a->config, a->config.devices[0],
                                                  "PERFORMANCE_HINT_NUM_REQUESTS");
    if (asked && xm_parse_whole(asked, &n) && n > 0)
        return n;
    char *text =
        xm_benchmark_model_property(&a->model, "OPTIMAL_NUMBER_OF_INFER_REQUESTS");
    const bool good = text && xm_parse_whole(text, &n) && n > 0;
    ov_free(text);
    return good ? n : 1;
}

static enum xm_status
step_query(struct app *a)
{
    const uint64_t asked = a->args.nireq;
    xm_benchmark_step(8, NULL);
    say_properties(a);
    a->job.requests = a->job.is_async ? find_requests(a) : 1;
    if (!a->job.is_async && asked > 1)
        xm_benchmark_warn(
            "-nireq %" PRIu64 " has no effect: in sync mode there is one request", asked);
    return XM_OK;
}

/* ---- steps 9 and 10: the run ------------------------------------------------------- */

static bool
starts_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static void
find_limits(struct app *a)
{
    struct xm_benchmark_job *job = &a->job;
    const char *device = a->config.devices[0];
    const bool is_usual = starts_with(device, "CPU") || starts_with(device, "GPU") ||
                          starts_with(device, "NPU");
    job->niter = a->args.niter;
    job->seconds = a->args.seconds;
    if (job->niter == XM_BENCHMARK_UNSAID && job->seconds == XM_BENCHMARK_UNSAID)
        job->seconds = is_usual ? SECONDS : SECONDS_OF_OTHERS;
    const bool has_groups = a->inputs.n_groups > job->requests;
    job->round = !job->is_async ? 1 : has_groups ? a->inputs.n_groups : job->requests;
    if (job->niter == XM_BENCHMARK_UNSAID)
        return;
    job->niter = xm_benchmark_whole_rounds(job->niter, job->round);
    if (job->niter != a->args.niter)
        xm_benchmark_warn(
            "-niter %" PRIu64 " is rounded up to %" PRIu64 ", whole rounds of the %s",
            a->args.niter, job->niter, has_groups ? "groups of shapes" : "requests");
}

static enum xm_status
use_device_memory(struct app *a)
{
    if (a->args.device_memory != XM_SWITCH_ON)
        return XM_OK;
    XM_TRY(xm_benchmark_api(
        ov_compiled_model_get_context(a->model.compiled, &a->job.context),
        "-use_device_mem", &a->err));
    xm_benchmark_info("Inputs are in host memory that the device reads; results of fixed "
                      "shapes are in device memory");
    return XM_OK;
}

/* Checks that requests can get several shapes in turn, which they get between inferences. */
static enum xm_status
check_groups(struct app *a)
{
    if (a->inputs.n_groups == 1 || a->inputs.groups_are_files)
        return XM_OK;
    if (!a->job.is_async)
        return xm_fail(
            &a->err, XM_INVALID,
            "Benchmarking of the model with dynamic shapes is available for async "
            "API only. Please use -api async -hint latency -nireq 1 to emulate "
            "sync behavior.");
    return a->args.inference_only != XM_SWITCH_ON
               ? XM_OK
               : xm_fail(&a->err, XM_INVALID,
                         "Benchmarking dynamic model available with input filling in "
                         "measurement loop only!");
}

static enum xm_status
step_requests(struct app *a)
{
    struct xm_benchmark_job *job = &a->job;
    xm_benchmark_step(9, NULL);
    XM_TRY(xm_benchmark_inputs_make(&a->model, &a->args, &a->data_shapes, &a->inputs,
                                    &a->err));
    XM_TRY(check_groups(a));
    XM_TRY(use_device_memory(a));
    job->compiled = a->model.compiled;
    job->outputs = &a->model.outputs;
    job->inputs = &a->inputs;
    job->max_irate = a->args.max_irate;
    job->fills_inside = a->args.inference_only == XM_SWITCH_UNSAID
                            ? xm_benchmark_model_is_dynamic(&a->model)
                            : a->args.inference_only == XM_SWITCH_OFF;
    job->warm_up = a->args.no_warmup != XM_SWITCH_ON;
    job->progress = a->args.progress != XM_SWITCH_OFF;
    find_limits(a);
    a->is_set_up = true;
    return xm_benchmark_run_prepare(job, &a->run, &a->err);
}

/* Appends "Start inference asynchronously, 2 inference requests, limits: 60000 ms duration". */
static void
print_limits(const struct xm_benchmark_job *job, struct xm_strbuf *out)
{
    const bool has_time = job->seconds != XM_BENCHMARK_UNSAID;
    xm_strbuf_printf(out, "Start inference %s, ",
                     job->is_async ? "asynchronously" : "synchronously");
    if (job->is_async)
        xm_strbuf_printf(out, "%" PRIu64 " inference requests, ", job->requests);
    xm_strbuf_add(out, "limits: ");
    if (has_time)
        xm_strbuf_printf(out, "%" PRIu64 " ms duration", 1000 * job->seconds);
    if (job->niter != XM_BENCHMARK_UNSAID)
        xm_strbuf_printf(out, "%s%" PRIu64 " iterations", has_time ? ", " : "",
                         job->niter);
}

static enum xm_status
step_measure(struct app *a)
{
    struct xm_strbuf limits = {0};
    print_limits(&a->job, &limits);
    xm_benchmark_step(10, xm_strbuf_text(&limits));
    xm_strbuf_free(&limits);
    xm_benchmark_info(a->job.fills_inside
                          ? "Benchmarking in full mode (inputs filling are included in "
                            "measurement loop)."
                          : "Benchmarking in inference only mode (inputs filling are not "
                            "included in measurement loop).");
    if (a->job.warm_up) {
        XM_TRY(xm_benchmark_run_first(&a->job, &a->run, &a->err));
        xm_benchmark_info("First inference took %.2f ms", a->run.first_ms);
    } else {
        xm_benchmark_info("Skipping warmup inference due to -no_warmup flag");
    }
    return xm_benchmark_run_all(&a->job, &a->run, &a->err);
}

/* ---- the report's file ------------------------------------------------------------- */

static void
report_setup(struct app *a)
{
    struct xm_benchmark_report *r = &a->report;
    const struct xm_benchmark_job *job = &a->job;
    const enum xm_benchmark_section s = XM_REPORT_SETUP;
    char *name = xm_benchmark_model_property(&a->model, "NETWORK_NAME");
    char *precision = xm_benchmark_model_property(&a->model, "INFERENCE_PRECISION_HINT");
    const bool has_time = job->seconds != XM_BENCHMARK_UNSAID;
    const struct xm_benchmark_shapes none = {0};
    const int64_t batch =
        xm_benchmark_batch(&a->model, a->inputs.n_groups > 1 ? &none : &a->data_shapes);
    xm_benchmark_report_add(r, s, "topology", "%s", name ? name : a->args.model);
    xm_benchmark_report_add(r, s, "target device", "%s", a->args.device);
    xm_benchmark_report_add(r, s, "API", "%s", job->is_async ? "async" : "sync");
    xm_benchmark_report_add_switch(r, s, "inference_only", !job->fills_inside);
    xm_benchmark_report_add(r, s, "precision", "%s",
                            precision ? precision : "UNSPECIFIED");
    if (batch < 0)
        xm_benchmark_report_add(r, s, "batch size", "?");
    else
        xm_benchmark_report_add(r, s, "batch size", "%" PRId64, batch);
    xm_benchmark_report_add(r, s, "number of iterations", "%zu", a->run.n);
    xm_benchmark_report_add(r, s, "number of parallel infer requests", "%" PRIu64,
                            job->requests);
    xm_benchmark_report_add(r, s, "duration (ms)", "%" PRIu64,
                            has_time ? 1000 * job->seconds : 0);
    ov_free(name);
    ov_free(precision);
}

/* Adds the times of reading, reshaping and compiling to the report, once; the results of the run
 * follow them. */
static void
report_times(struct app *a)
{
    if (a->has_times)
        return;
    a->has_times = true;
    struct xm_benchmark_report *r = &a->report;
    const enum xm_benchmark_section s = XM_REPORT_RESULTS;
    if (a->model.model)
        xm_benchmark_report_add(r, s, "read model time (ms)", "%.2f", a->model.read_ms);
    if (a->model.reshape_ms > 0.0)
        xm_benchmark_report_add(r, s, "reshape model time (ms)", "%.2f",
                                a->model.reshape_ms);
    if (a->model.compiled)
        xm_benchmark_report_add(r, s,
                                a->model.is_exported ? "import model time (ms)"
                                                     : "compile model time (ms)",
                                "%.2f", a->model.compile_ms);
    if (a->run.requests && a->run.first_ms >= 0.0)
        xm_benchmark_report_add(r, s, "first inference time (ms)", "%.2f",
                                a->run.first_ms);
}

/* Writes the report with the rows so far. */
static enum xm_status
write_report(struct app *a, struct xm_error *err)
{
    a->is_reported = true;
    if (!a->args.report_type)
        return XM_OK;
    if (a->is_set_up)
        report_setup(a);
    return xm_benchmark_report_write(&a->report, a->args.report_folder,
                                     a->args.json_stats == XM_SWITCH_ON, err);
}

/* Writes the report after a failure; a failure to write it is not reported. */
static void
report_failure(struct app *a)
{
    struct xm_error second = {0};
    report_times(a);
    xm_benchmark_report_add(&a->report, XM_REPORT_RESULTS, "error", "%s", a->err.text);
    write_report(a, &second);
}

/* ---- step 11: the results ------------------------------------------------------------------ */

/* Prints the results, even if the report cannot be written. */
static enum xm_status
say_results(struct app *a)
{
    struct xm_error failure = {0};
    const struct xm_benchmark_results r = {&a->args, &a->model,  &a->inputs,
                                           &a->run,  &a->report, &a->err};
    XM_TRY(xm_benchmark_results_report(&r));
    const enum xm_status written = write_report(a, &failure);
    XM_TRY(xm_benchmark_results_say(&r));
    if (written != XM_OK)
        a->err = failure;
    return written;
}

static enum xm_status
step_report(struct app *a)
{
    xm_benchmark_step(11, NULL);
    report_times(a);
    if (a->args.exec_graph) {
        XM_TRY(xm_benchmark_model_write_graph(&a->model, a->args.exec_graph, &a->err));
        xm_benchmark_info("The runtime model is stored to %s", a->args.exec_graph);
    }
    if (a->args.niter == 0)
        return write_report(a, &a->err);
    if (xm_benchmark_args_have_counters(&a->args))
        XM_TRY(xm_benchmark_counters_say(&a->model, &a->run, &a->args, &a->err));
    return say_results(a);
}

/* ---- all of it --------------------------------------------------------------------- */

static enum xm_status
prepare(struct app *a)
{
    enum xm_status (*const steps[])(struct app *) = {
        step_args,   step_runtime,   step_device, step_read,
        step_resize, step_configure, step_load};
    for (size_t i = 0; i < XM_ARRAY_LEN(steps); i++)
        XM_TRY(steps[i](a));
    return a->args.dump_config
               ? xm_benchmark_config_dump(&a->config, a->args.dump_config, &a->err)
               : XM_OK;
}

static enum xm_status
measure(struct app *a)
{
    if (a->args.niter == 0) {
        xm_benchmark_info("Model compiled successfully. "
                          "Skipping inference due to -niter 0.");
        for (int i = 8; i <= 10; i++)
            xm_benchmark_step(i, "skipped");
        a->is_set_up = true;
        return step_report(a);
    }
    XM_TRY(step_query(a));
    XM_TRY(step_requests(a));
    XM_TRY(step_measure(a));
    return step_report(a);
}

/* Flushes the output. All failures have the same exit code, as in OpenVINO's program. */
static int
flush(void)
{
    return xm_cli_flush() == XM_EXIT_OK ? XM_EXIT_OK : XM_EXIT_FAILED;
}

static int
finish(struct app *a, enum xm_status s)
{
    if (s == XM_OK)
        return flush();
    if (s == XM_CANCELLED && xm_cli_interrupted()) {
        xm_cli_flush();
        xm_cli_say_interrupted();
        return XM_EXIT_CANCELLED;
    }
    xm_benchmark_error("%s", a->err.text);
    xm_cli_flush();
    return XM_EXIT_FAILED;
}

static int
run(struct app *a)
{
    enum xm_status s = prepare(a);
    if (s == XM_OK)
        s = measure(a);
    if (s != XM_OK && !a->is_reported)
        report_failure(a);
    return finish(a, s);
}

static int
print_help(void)
{
    struct xm_strbuf flags = {0}, text = {0};
    ov_core_t *core = NULL;
    ov_available_devices_t devices = {0};
    xm_benchmark_args_help(&flags);
    xm_strbuf_printf(&text,
                     "usage: %s\n\n%s\n%s\nexit codes: 0 ok; 1 failure; 2 command line; "
                     "130 stopped by Ctrl-C\n\n",
                     xm_benchmark_spec.usage, xm_benchmark_spec.about,
                     xm_strbuf_text(&flags));
    xm_terminal_print(stdout, xm_strbuf_text(&text));
    printf("Available target devices: ");
    if (ov_core_create(&core) == OK &&
        ov_core_get_available_devices(core, &devices) == OK) {
        for (size_t i = 0; i < devices.size; i++)
            printf("  %s", devices.devices[i]);
        ov_available_devices_free(&devices);
    }
    putchar('\n');
    ov_core_free(core);
    xm_strbuf_free(&flags);
    xm_strbuf_free(&text);
    return flush();
}

/* Prints the program's part of man pages, completion and the reference. */
static int
make_docs(const char *kind)
{
    const struct xm_cli_described c = {
        "benchmark_app",
        "measure inferences per second, as OpenVINO's benchmark_app does",
        "xemoe benchmark_app -m model.xml -d GPU -hint latency -niter 100",
        &xm_benchmark_spec};
    return xm_describe_print(kind, &c);
}

int
main(int argc, char **argv)
{
    struct app a = {0};
    int code = xm_cli_start();
    if (code != XM_EXIT_OK)
        return code;
    if (argc == 3 && strcmp(argv[1], "make-docs") == 0)
        return make_docs(argv[2]);
    if (read_command_line(&a, argc, argv) != XM_OK) {
        code = xm_cli_usage_of(&a.err, "xemoe benchmark_app -h");
    } else if (a.args.help == XM_SWITCH_ON) {
        code = print_help();
    } else {
        xm_cli_watch_interrupt();
        code = run(&a);
    }
    xm_benchmark_run_free(&a.run);
    ov_remote_context_free(a.job.context);
    xm_benchmark_inputs_free(&a.inputs);
    xm_benchmark_shapes_free(&a.layouts);
    xm_benchmark_shapes_free(&a.shapes);
    xm_benchmark_shapes_free(&a.data_shapes);
    xm_benchmark_model_free(&a.model);
    xm_benchmark_config_free(&a.config);
    xm_benchmark_report_free(&a.report);
    xm_benchmark_args_free(&a.args);
    return code;
}
