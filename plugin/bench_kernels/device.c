/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

/* Seconds to measure each limit. Less time gives rates so low on a busy machine that shares exceed
 * 100 %. */
#define LIMITS_S 1.0

/* As the core: "GPU" counts all OpenCL devices, "CPU" only those that are processors. */
bool
xm_bench_find_device(const char *name, size_t *index)
{
    const struct xm_device_info *infos = NULL;
    size_t n = 0;
    uint64_t number = 0;
    const char *at = name ? name : "GPU";
    const bool is_cpu = strncmp(at, "CPU", 3) == 0;
    const bool is_known = (is_cpu || strncmp(at, "GPU", 3) == 0) &&
                          (!at[3] || (at[3] == '.' && xm_parse_whole(at + 4, &number)));
    /* creating the engine reports what is wrong */
    (void)xm_engine_list(&infos, &n, NULL);
    for (*index = 0; is_known && *index < n; (*index)++) {
        if ((!is_cpu || infos[*index].kind == XM_DEVICE_CPU) && number-- == 0)
            return true;
    }
    if (is_known && n == 0)
        return true;
    xm_cli_usage("option --device: there is no device '%.40s' whose kernels can be "
                 "timed; 'xemoe devices' lists the devices",
                 name);
    return false;
}

enum xm_status
xm_bench_open(size_t index, const struct xm_config *config, double seconds, bool json,
              struct xm_engine **engine, struct bench_report **report,
              struct xm_error *err)
{
    struct limits limits = {0};
    enum xm_status s = xm_engine_create(index, config, engine, err);
    if (s != XM_OK)
        return s == XM_NOT_FOUND ? XM_DEVICE : s; /* the computer has no such device */
    xm_progress_show("measuring the rates of the machine");
    s = xm_bench_limits(*engine, fmax(seconds, LIMITS_S), &limits, err);
    xm_progress_clear();
    XM_TRY(s);
    *report = xm_bench_report_begin(xm_engine_info(*engine), &limits, json);
    return *report ? XM_OK : xm_no_memory(err, "a report");
}
