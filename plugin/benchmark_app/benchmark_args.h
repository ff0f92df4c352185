/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of xemoe benchmark_app: OpenVINO's, by table.
 *
 * A flag has one dash or two, and most have a second, longer name. A flag that is on or off may
 * stand alone or take a value; -i takes all words up to the next flag.
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

/* A flag as it was given: for the reports. */
struct xm_benchmark_given {
    const char *flag; /* "-niter", static */
    char *value;      /* owned            */
};

struct xm_benchmark_args {
    const char *model, *device, *hint, *api, *nstreams, *pin, *infer_precision;
    const char *shape, *data_shape, *layout, *ip, *op, *iop;
    const char *pcsort, *report_type, *report_folder, *exec_graph;
    const char *dump_config, *load_config, *cache_dir;
    const char *extensions, *custom, *mean, *scale; /* no others than NULL are taken */
    uint64_t niter, seconds, nireq, nthreads, batch, percentile;
    double max_irate; /* 0: no cap */
    enum xm_cli_switch inference_only, no_warmup, pc, pcseq, json_stats, lfile;
    enum xm_cli_switch device_memory, progress, help;
    struct xm_cli_files files;
    struct xm_benchmark_given *given; /* owned */
    size_t n_given;
};

/* XM_INVALID: the sentence names the flag. *out is to be freed in any case, and keeps pointers into
 * argv. */
enum xm_status xm_benchmark_args_read(int argc, char *const *argv,
                                      struct xm_benchmark_args *out,
                                      struct xm_error *err);
void xm_benchmark_args_free(struct xm_benchmark_args *a);
/* Whether -pc, -pcsort or -report_type need the times of layers. */
bool xm_benchmark_args_have_counters(const struct xm_benchmark_args *a);
/* The table of flags, with usage and about. */
extern const struct xm_cli_spec xm_benchmark_spec;
/* The list of flags. */
void xm_benchmark_args_help(struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
