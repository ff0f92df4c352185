/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/forecast.h"

#include <math.h>

#include "runtime/util/memory.h"

const double xm_usual_read_share = 0.75, xm_usual_multiply_share = 0.25;

void
xm_run_work_free(struct xm_run_work *w)
{
    xm_free(w->steps);
    *w = (struct xm_run_work){0};
}

/* ---- devices ------------------------------------------------------------------------- */

/* 8-bit multiply-adds per EU and clock, depending on the unit that multiplies. */
static double
multiplies_of_eu(const struct xm_device_info *info)
{
    if (xm_device_has(info, XM_CAP_DPAS))
        return info->arch == XM_ARCH_XE_HPC ? 512 : info->arch >= XM_ARCH_XE2 ? 256 : 128;
    return xm_device_has(info, XM_CAP_DP4A) ? 32 : 8;
}

double
xm_peak_of_card(const struct xm_device_info *info)
{
    return multiplies_of_eu(info) * info->compute_units * 1e6 * info->clock_mhz;
}

void
xm_rates_of_card(const struct xm_device_info *info, struct xm_rates *out)
{
    const double launch_s = info->kind == XM_DEVICE_CPU ? 10e-6 : 4e-6;
    *out = (struct xm_rates){.launch_s = launch_s};
    if (!(info->memory_rate > 0.0))
        return;
    out->source = XM_RATES_CARD;
    out->read = xm_usual_read_share * info->memory_rate;
    out->multiply = xm_usual_multiply_share * xm_peak_of_card(info);
}

/* ---- runs ---------------------------------------------------------------------------- */

static double
seconds_of(const struct xm_run_work *w, double read, double multiply)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < w->n_steps; i++) {
        const double reading = (double)w->steps[i].bytes / read;
        const double multiplying =
            multiply > 0.0 ? (double)w->steps[i].multiply_adds / multiply : 0.0;
        sum += fmax(reading, multiplying);
    }
    return sum;
}

double
xm_forecast_run(const struct xm_run_work *w, const struct xm_rates *rates)
{
    if (w->n_steps == 0 || !(rates->read > 0.0))
        return 0.0;
    return seconds_of(w, rates->read, rates->multiply) +
           (double)w->launches * rates->launch_s;
}

bool
xm_rates_fit(struct xm_rates *rates, const struct xm_run_work *token, double token_s,
             const struct xm_run_work *prompt, double prompt_s)
{
    enum { HALVINGS = 60 };
    const double reading = token_s - (double)token->launches * rates->launch_s;
    const double running = prompt_s - (double)prompt->launches * rates->launch_s;
    const double bytes = seconds_of(token, 1.0, 0.0);
    if (!(reading > 0.0) || !(running > 0.0) || !(bytes > 0.0))
        return false;
    const double read = bytes / reading;
    if (seconds_of(prompt, read, 0.0) >= running)
        return false;
    /* The seconds fall as the rate rises. Bisects the exponent of the rate between 2^0 and 2^60 a
     * second. */
    double low = 0.0, high = HALVINGS;
    for (int i = 0; i < HALVINGS; i++) {
        const double mid = 0.5 * (low + high);
        if (seconds_of(prompt, read, exp2(mid)) > running)
            low = mid;
        else
            high = mid;
    }
    rates->read = read;
    rates->multiply = exp2(high);
    return true;
}

/* ---- exchanges ----------------------------------------------------------------------- */

static double
time_on(const struct xm_link *l, uint32_t ends, uint64_t messages, double bytes)
{
    if (ends <= 1)
        return 0.0;
    return (double)messages * ceil(log2(ends)) * l->latency_s +
           (l->rate > 0.0 ? bytes / l->rate : 0.0);
}

double
xm_forecast_exchanges(const struct xm_exchange_work *w, const struct xm_cluster *c)
{
    const double ranks = (double)c->nodes * c->ranks_of_node;
    const double from_node = c->ranks_of_node - 1, from_others = ranks - c->ranks_of_node;
    /* bytes that each rank sends to each other one */
    const double each = w->sum_bytes + w->part_bytes / ranks;
    const struct xm_link *passing = c->nodes > 1 ? &c->between : &c->local;
    const double passed = (double)w->passes * passing->latency_s +
                          (passing->rate > 0.0 ? w->passed_bytes / passing->rate : 0.0);
    return passed + time_on(&c->local, c->ranks_of_node, w->messages, each * from_node) +
           time_on(&c->between, c->nodes, w->messages, each * from_others);
}
