/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/benchmark_app/benchmark_config.h"
#include "runtime/util/new_file.h"
#include "runtime/util/number.h"

/* Checks -nstreams: N, AUTO or NUMA, or a list of DEVICE:value. */
static enum xm_status
check_streams(const char *text, struct xm_error *err)
{
    uint64_t n;
    for (const char *at = text; at && *at; at += strspn(at, ",")) {
        char item[64];
        const size_t length = strcspn(at, ",");
        snprintf(item, sizeof(item), "%.*s", (int)length, at);
        const char *colon = strrchr(item, ':'), *value = colon ? colon + 1 : item;
        if (strcmp(value, "AUTO") != 0 && strcmp(value, "NUMA") != 0 &&
            (!xm_parse_whole(value, &n) || n == 0 || n > UINT32_MAX))
            return xm_fail(err, XM_INVALID,
                           "option -nstreams takes a whole number from 1, or DEVICE:N,…, "
                           "found '%.60s'",
                           text);
        at += length;
    }
    return XM_OK;
}

static enum xm_status
check_numbers(const struct xm_benchmark_args *a, struct xm_error *err)
{
    const struct {
        const char *option;
        uint64_t value;
    } numbers[] = {{"-nireq", a->nireq}, {"-nthreads", a->nthreads}};
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++) {
        const uint64_t n = numbers[i].value;
        if (n > UINT32_MAX && n != XM_BENCHMARK_UNSAID)
            return xm_fail(err, XM_INVALID,
                           "option %s takes a whole number up to %" PRIu32
                           ", found '%" PRIu64 "'",
                           numbers[i].option, UINT32_MAX, n);
    }
    return XM_OK;
}

/* Checks the properties by making them; they are made again when -load_config is read. */
static enum xm_status
check_properties(const struct xm_benchmark_args *a, struct xm_error *err)
{
    struct xm_benchmark_args flags = *a;
    struct xm_benchmark_config config;
    flags.load_config = NULL;
    const enum xm_status s = xm_benchmark_config_make(&flags, &config, err);
    xm_benchmark_config_free(&config);
    return s;
}

enum xm_status
xm_benchmark_check_values(const struct xm_benchmark_args *a, struct xm_error *err)
{
    XM_TRY(check_streams(a->nstreams, err));
    XM_TRY(check_numbers(a, err));
    return check_properties(a, err);
}

/* Checks that the files written at the end can be written, so that a failure is reported at the
 * beginning. */
static enum xm_status
check_outputs(const struct xm_benchmark_args *a, struct xm_error *err)
{
    const struct {
        const char *option, *path;
    } files[] = {{"-exec_graph_path", a->exec_graph}, {"-dump_config", a->dump_config}};
    for (size_t i = 0; i < XM_ARRAY_LEN(files); i++) {
        struct xm_new_file at;
        if (!files[i].path)
            continue;
        if (xm_new_file_begin(&at, files[i].path, err) != XM_OK) {
            xm_error_prefix(err, "%s", files[i].option);
            return err->status;
        }
        xm_new_file_end(&at, XM_CANCELLED, NULL); /* removes the temporary file */
    }
    return XM_OK;
}

enum xm_status
xm_benchmark_check_paths(const struct xm_benchmark_args *a, struct xm_error *err)
{
    struct stat folder;
    const char *path = a->report_folder;
    if (access(a->model, F_OK) != 0)
        return xm_fail(err, XM_NOT_FOUND, "-m: there is no file '%.200s'", a->model);
    if (path && (stat(path, &folder) != 0 || !S_ISDIR(folder.st_mode)))
        return xm_fail(err, XM_NOT_FOUND, "-report_folder: there is no folder '%.200s'",
                       path);
    return check_outputs(a, err);
}
