/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe tune: finds the fastest kernel for each step of a model on this device.
 *
 * This file finds the steps, by compiling the model on an engine that only counts memory; another
 * program times their kernels (plugin/bench_kernels/tune.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/chip.h"
#include "plugin/cli/cli.h"
#include "plugin/cli/kernels.h"
#include "plugin/program_view.h"

struct args {
    const char *model, *device, *precision, *kv, *key_cache, *value_cache, *cache_dir;
    double seconds; /* 0: not given */
    bool json;
};

#define SECONDS 0.1

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The model and its device", "xemoe tune model.gguf -d GPU.1"),
    { 'm', "model",     XM_CLI_TEXT, AT(model),     "PATH", "the model; the first word without an option means the same; default: $XM_MODEL" },
    { 'd', "device",    XM_CLI_WORD, AT(device),    "NAME", "GPU (default), GPU.1; 'xemoe devices' lists them", "-dev", "GPU" },
    XM_CLI_PRECISION_ROW(AT),
    XM_CLI_CACHE_ROWS(AT),
    XM_CLI_GROUP("How kernels are timed", "xemoe tune model.gguf --seconds 0.5 --json"),
    { 0,   "seconds",   XM_CLI_RATE, AT(seconds),   "S",    "seconds of each measurement of a kernel; a kernel is measured one to three times (0.1)" },
    { 0,   "cache-dir", XM_CLI_WORD, AT(cache_dir), "DIR",  "folder where choices and compiled kernels are kept; default: ~/.cache/xemoe" },
    { 0,   "json",      XM_CLI_FLAG, AT(json),      NULL,   "print the result as one JSON object" },
};
#undef AT
/* clang-format on */

enum { N_SETTINGS = 4 };
static void
find_settings(const struct args *a, struct xm_cli_setting out[N_SETTINGS])
{
    const struct xm_cli_setting settings[N_SETTINGS] = {
        {"--precision", "INFERENCE_PRECISION_HINT", a->precision},
        {"--kv", "KV_CACHE_PRECISION", a->kv},
        {"--cache-type-k", "KEY_CACHE_PRECISION", a->key_cache},
        {"--cache-type-v", "VALUE_CACHE_PRECISION", a->value_cache},
    };
    memcpy(out, settings, sizeof(settings));
}

/* ---- the steps of the model -------------------------------------------------------------- */

/* Whether `lines` contains this line of n characters. */
static bool
has_line(const char *lines, const char *line, size_t n)
{
    while (*lines && (strncmp(lines, line, n) != 0 || lines[n] != '\n')) {
        lines += strcspn(lines, "\n");
        lines += *lines == '\n';
    }
    return *lines != '\0';
}

/* Appends each problem once, in order. */
static void
add_problems(const struct xm_program_view *v, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < v->n_steps; i++) {
        const char *line = v->steps[i].problems;
        for (size_t n; (n = strcspn(line, "\n")) > 0; line += n + 1) {
            if (!has_line(xm_strbuf_text(out), line, n))
                xm_strbuf_printf(out, "%.*s\n", (int)n, line);
        }
    }
}

static enum xm_status
view_problems(const struct args *a, const struct xm_device_info *info,
              const struct xm_graph *g, struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_cli_setting settings[N_SETTINGS];
    struct xm_config config;
    struct xm_program_view view;
    xm_config_init(&config);
    find_settings(a, settings);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].value)
            XM_TRY(xm_config_set(&config, settings[i].key, settings[i].value, err));
    }
    enum xm_status s = xm_program_view(info, &config, g, &view, err);
    if (s == XM_OK)
        add_problems(&view, out);
    xm_program_view_free(&view);
    if (s == XM_OK && !xm_strbuf_ok(out))
        return xm_no_memory(err, "the steps of a model");
    if (s == XM_OK && out->n == 0)
        return xm_fail(err, XM_UNSUPPORTED,
                       "'%.150s' has no step whose kernels can be timed", a->model);
    return s;
}

static enum xm_status
find_problems(const struct args *a, const struct xm_device_info *info,
              struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_package *package = NULL;
    struct xm_graph *g = NULL;
    enum xm_status s = xm_cli_open_package(a->model, &package, err);
    if (s == XM_OK)
        s = xm_package_read_graph(package, NULL, &g, err);
    if (s == XM_OK)
        s = view_problems(a, info, g, out, err);
    xm_graph_destroy(g);
    xm_package_close(package);
    return s;
}

/* ---- the program that times them --------------------------------------------------------- */

/* Makes the problems the program's standard input: an unnamed file, which can have any length. */
static enum xm_status
put_on_input(const struct xm_strbuf *problems, struct xm_error *err)
{
    FILE *file = tmpfile();
    const char *text = xm_strbuf_text(problems);
    bool good = file && fwrite(text, 1, problems->n, file) == problems->n &&
                fflush(file) == 0 && lseek(fileno(file), 0, SEEK_SET) == 0 &&
                dup2(fileno(file), STDIN_FILENO) == STDIN_FILENO;
    if (!good)
        xm_fail(err, XM_IO, "the steps of the model cannot be written: %s",
                strerror(errno));
    if (file && fileno(file) != STDIN_FILENO)
        fclose(file);
    return good ? XM_OK : XM_IO;
}

static int
start(const struct args *a, const char *cache_dir)
{
    enum { MOST = 12 };
    char *argv[MOST], milliseconds[XM_CLI_NUMBER];
    int n = 0;
    snprintf(milliseconds, sizeof(milliseconds), "%.0f", fmax(a->seconds * 1e3, 1.0));
    argv[n++] = "xemoe";
    argv[n++] = "tune";
    argv[n++] = "--milliseconds";
    argv[n++] = milliseconds;
    if (cache_dir[0]) {
        argv[n++] = "--cache-dir";
        argv[n++] = (char *)cache_dir;
    }
    if (a->device) {
        argv[n++] = "--device";
        argv[n++] = (char *)a->device;
    }
    if (a->json)
        argv[n++] = "--json";
    argv[n] = NULL;
    return xm_cli_start_program("bench_kernels", argv);
}

static int
check_options(const struct args *a)
{
    struct xm_cli_setting settings[N_SETTINGS];
    if (!(a->seconds > 0 && a->seconds <= 3600))
        return xm_cli_usage("option --seconds takes a number above 0, at most 3600");
    find_settings(a, settings);
    return xm_cli_check_settings(settings, N_SETTINGS);
}

int
xm_cli_tune(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe tune MODEL [options]",
        .about = "Times every kernel that the device can run for each matrix product and "
                 "attention\nstep of a model, with random weights of the model's formats "
                 "and sizes, and keeps\nthe name of the fastest beside the compiled "
                 "kernels. Commands that load the model\non this device then use it "
                 "(unless --no-tune is given). Without 'tune' they use\nthe kernels that "
                 "are usually the fastest on such devices.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(offsetof(struct args, model)),
    };
    struct args a = {.seconds = SECONDS};
    struct xm_error err = {0};
    struct xm_device_info info;
    struct xm_strbuf cache = {0}, problems = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = check_options(&a);
    if (done || code != XM_EXIT_OK)
        return code;
    enum xm_status s = xm_cli_cache_open(a.cache_dir, &cache, &err);
    if (s == XM_OK && xm_cli_find_chip(a.device, NULL, &info, &err) != XM_OK)
        code = xm_cli_no_device("-d", a.device, &err);
    if (s == XM_OK && code == XM_EXIT_OK)
        s = find_problems(&a, &info, &problems, &err);
    if (s == XM_OK && code == XM_EXIT_OK)
        s = put_on_input(&problems, &err);
    xm_strbuf_free(&problems);
    if (s != XM_OK)
        code = xm_cli_failed(&err);
    else if (code == XM_EXIT_OK)
        code = start(&a, xm_strbuf_text(&cache)); /* returns only after a failure */
    xm_strbuf_free(&cache);
    return code;
}
