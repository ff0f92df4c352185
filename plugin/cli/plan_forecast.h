/* SPDX-License-Identifier: Apache-2.0
 *
 * Forecasts the speed of a planned model, and reports the source of the rates it uses.
 */
#ifndef XM_PLUGIN_CLI_PLAN_FORECAST_H
#define XM_PLUGIN_CLI_PLAN_FORECAST_H

#include "plugin/cli/plan_command.h"
#include "plugin/program_util/lines.h"

/* Reads --bandwidth for n devices into the rates' read, with source XM_RATES_GIVEN; without the
 * option it leaves zeros. XM_EXIT_USAGE: the text is not valid, or has another number of rates. */
int xm_plan_read_bandwidths(const char *list, struct xm_rates *out, uint32_t n);
/* Reads "25,5": GB/s and microseconds, with or without units. `option` is the option's name for
 * errors. */
int xm_plan_read_link(const char *option, const char *text, struct xm_link *out);

/* Finds the rates of a planned device: those measured on it, else shares of its specifications.
 * Given rates replace both. */
void xm_plan_find_rates(const struct xm_plan *p, const char *cache_dir,
                        struct xm_rates *rates);
/* Stores the rates that a model's runs have reached on a device, for later forecasts: p->token_work
 * took token_s seconds, and p->prompt_work took prompt_s. Stores nothing if a run took less time
 * than its launches, if reading takes as long as the prompt, or if the format of the weights is not
 * known. */
void xm_plan_keep_rates(const struct xm_plan *p, const char *cache_dir, double token_s,
                        double prompt_s);

struct xm_plan_forecast {
    struct xm_run_seconds prompt, token;
    uint64_t prompt_tokens;
    /* experts are read over the bus, whose rate is not known: there are no times */
    bool has_host_experts;
    const struct xm_rates *rates; /* [n] one for each device; `names` likewise */
    const char *const *names;
    uint32_t n;
    /* For a mesh: its fastest device with the whole model; NULL: the model does not fit on one. */
    const char *alone;
    struct xm_run_seconds alone_prompt, alone_token;
};
void xm_plan_print_forecast(struct xm_lines *o, const struct xm_plan_forecast *f);
/* Prints the times of that device alone if they are below the mesh's. */
void xm_plan_print_alone(struct xm_lines *o, const struct xm_plan_forecast *f,
                         const char *prefix);
/* Adds the member "forecast". */
void xm_plan_add_forecast(struct xm_json_out *j, const struct xm_plan_forecast *f);

#endif
