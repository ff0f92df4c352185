/* SPDX-License-Identifier: Apache-2.0
 *
 * The costs of a generation (times, memory, rate of reading the weights), as text and as JSON.
 */
#ifndef XM_PLUGIN_CLI_COSTS_H
#define XM_PLUGIN_CLI_COSTS_H

#include "plugin/cli/cli.h"
#include "plugin/pipeline/session.h"
#include "plugin/program_util/json_out.h"

struct xm_costs {
    double load_s;
    struct xm_generation_times times;
    uint64_t weights, host_weights, activations, scratch, kv, io; /* bytes */
    uint64_t launches, waits;     /* of the last run, a decoded token; 0: not counted */
    struct xm_memory_stats kinds; /* memory by the driver's kinds of buffers */
    struct xm_build_stats builds; /* of kernels                              */
    struct xm_expert_cache_stats experts; /* of the expert cache                     */
    double load_peak_rss, peak_rss;       /* MiB */
    double read_rate;     /* bytes a second that streaming reaches; 0: not known */
    double multiply_rate; /* multiply-adds a second in registers; 0: not known */
};

/* Returns the tokens per second of decoding; 0: not known. If only one token was decoded, it is not
 * known, because the device may have run it during the prompt's time (plugin/gpu/ahead.h). */
double xm_costs_decode_rate(const struct xm_generation_times *t);
/* Fills in all members for a request that has run, except `times` and the two rates. */
void xm_costs_find(const struct xm_cli_model *m, const struct xm_infer *r,
                   struct xm_costs *c);
/* Sets read_rate. `is_anew`: measures it, which takes at least a quarter of a second; else takes
 * the device's rate from the kernel cache, and measures only if there is none. */
void xm_costs_measure_reading(const struct xm_cli_model *m, bool is_anew,
                              struct xm_costs *c);
/* Sets multiply_rate, measured in the precision of inference; takes about as long as measuring
 * read_rate. */
void xm_costs_measure_multiplying(const struct xm_cli_model *m, struct xm_costs *c);
void xm_costs_print(const struct xm_cli_model *m, const struct xm_costs *c);
void xm_costs_add_json(struct xm_json_out *j, const struct xm_cli_model *m,
                       const struct xm_costs *c);

#endif
