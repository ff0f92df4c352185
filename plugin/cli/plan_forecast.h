/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a plan says that a model will be, and by whose figures.
 */
#ifndef XM_PLUGIN_CLI_PLAN_FORECAST_H
#define XM_PLUGIN_CLI_PLAN_FORECAST_H

#include "plugin/cli/plan_command.h"
#include "plugin/program_util/lines.h"

/* Reads --bandwidth for n devices into the rates' read, with source XM_RATES_GIVEN; without the
 * option it leaves zeros. XM_EXIT_USAGE: it is none, or has another number of rates. */
int xm_plan_read_bandwidths(const char *list, struct xm_rates *out, uint32_t n);
/* Reads "25,5", GB/s and microseconds with or without units. `option` names it. */
int xm_plan_read_link(const char *option, const char *text, struct xm_link *out);

/* What a planned device reaches: what was measured on it, else shares of its specifications; over
 * both what was given. */
void xm_plan_find_rates(const struct xm_plan *p, const char *cache_dir,
                        struct xm_rates *rates);
/* Keeps what a model's runs have reached on a device, for later forecasts: p->token_work in token_s
 * seconds and p->prompt_work in prompt_s. Stores nothing if a run took less time than its launches,
 * reading takes as long as the prompt, or the format of the weights is not known. */
void xm_plan_keep_rates(const struct xm_plan *p, const char *cache_dir, double token_s,
                        double prompt_s);

struct xm_plan_forecast {
    struct xm_run_seconds prompt, token;
    uint64_t prompt_tokens;
    bool has_host_experts; /* read over the bus, which no rate is known of: no seconds */
    const struct xm_rates *rates; /* [n] of the devices, and their names */
    const char *const *names;
    uint32_t n;
    /* Of a mesh, its fastest device with all of the model; NULL: the model does not fit there. */
    const char *alone;
    struct xm_run_seconds alone_prompt, alone_token;
};
void xm_plan_print_forecast(struct xm_lines *o, const struct xm_plan_forecast *f);
/* Prints the times of one device alone where they are below the mesh's. */
void xm_plan_print_alone(struct xm_lines *o, const struct xm_plan_forecast *f,
                         const char *prefix);
/* Adds the member "forecast". */
void xm_plan_add_forecast(struct xm_json_out *j, const struct xm_plan_forecast *f);

#endif
