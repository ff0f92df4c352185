/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of xemoe benchmark_app, with the flags of OpenVINO's benchmark_app.
 *
 * A flag has one dash or two; most have a second, longer name. A switch may be given alone or with
 * a value ("-pc", "-pc true"). -i takes all words up to the next flag.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_ARGS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/program_util/command_line.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number that was not given. */
#define XM_BENCHMARK_UNSAID UINT64_MAX

/* A given flag with its value, for the report. */
struct xm_benchmark_given {
    const char *flag; /* "-niter", static */
    char *value;      /* owned            */
};

struct xm_benchmark_args {
    const char *model, *device, *hint, *api, *nstreams, *pin, *infer_precision;
    const char *shape, *data_shape, *layout, *ip, *op, *iop;
    const char *pcsort, *report_type, *report_folder, *exec_graph;
    const char *dump_config, *load_config, *cache_dir;
    const char *extensions, *custom, *mean, *scale; /* not supported: refused if given */
    uint64_t niter, seconds, nireq, nthreads, batch, percentile;
    double max_irate; /* 0: no cap */
    enum xm_cli_switch inference_only, no_warmup, pc, pcseq, json_stats, lfile;
    enum xm_cli_switch device_memory, progress, help;
    struct xm_cli_files files;
    struct xm_benchmark_given *given; /* owned */
    size_t n_given;
};

/* Parses the command line. XM_INVALID: the sentence names the flag. *out must be freed in any case;
 * it keeps pointers into argv. */
enum xm_status xm_benchmark_args_read(int argc, char *const *argv,
                                      struct xm_benchmark_args *out,
                                      struct xm_error *err);
void xm_benchmark_args_free(struct xm_benchmark_args *a);
/* Whether -pc, -pcsort or -report_type is given, which need the times of layers (PERF_COUNT). */
bool xm_benchmark_args_have_counters(const struct xm_benchmark_args *a);
/* The table of flags, with usage line and description. */
extern const struct xm_cli_spec xm_benchmark_spec;
/* Appends the help text. */
void xm_benchmark_args_help(struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
