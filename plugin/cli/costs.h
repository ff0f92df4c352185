/* SPDX-License-Identifier: Apache-2.0
 *
 * What a generation cost: times, memory, how the weights were read; as text and as JSON.
 */
#ifndef XM_PLUGIN_CLI_COSTS_H
#define XM_PLUGIN_CLI_COSTS_H

#include "plugin/cli/cli.h"
#include "plugin/pipeline/session.h"
#include "plugin/program_util/json_out.h"

struct xm_costs {
    double load_s;
    struct xm_generation_times times;
    uint64_t weights, host_weights, activations, scratch, kv, io;
    struct xm_memory_stats kinds;
    struct xm_build_stats builds;
    struct xm_expert_cache_stats experts; /* of their cache */
    double load_peak_rss, peak_rss;       /* MiB */
    double read_rate;     /* bytes a second that streaming reaches; 0: not known */
    double multiply_rate; /* multiply-adds a second in registers; 0: not known */
};

/* Of a request that has run; `times` is the caller's. */
void xm_costs_find(const struct xm_cli_model *m, const struct xm_infer *r,
                   struct xm_costs *c);
/* How fast streaming reads what every token reads. `is_anew`: measured now, which takes a quarter
 * of a second and more; else only where no rate of the device is kept. */
void xm_costs_measure_reading(const struct xm_cli_model *m, bool is_anew,
                              struct xm_costs *c);
/* How fast the device multiplies in the precision of inference: as long again. */
void xm_costs_measure_multiplying(const struct xm_cli_model *m, struct xm_costs *c);
void xm_costs_print(const struct xm_cli_model *m, const struct xm_costs *c);
void xm_costs_add_json(struct xm_json_out *j, const struct xm_cli_model *m,
                       const struct xm_costs *c);

#endif
