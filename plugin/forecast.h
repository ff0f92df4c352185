/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the duration of a model's runs from their work and from the rates of a device and its
 * links.
 *
 *     a run's seconds = sum over its steps of max(bytes / read, multiply-adds / multiply)
 *                       + launches * launch_s + exchanges
 *     an exchange     = latency * log2(ranks), rounded up + received bytes / rate
 *
 * The first formula is the roofline model for each step, the second one Hockney's alpha-beta model
 * of an all-gather. Both ignore caches, falling clocks, and other processes on the device.
 */
#ifndef XM_PLUGIN_FORECAST_H
#define XM_PLUGIN_FORECAST_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The work of a step in a run: bytes of weights and of the KV cache, each counted once. */
struct xm_work_step {
    uint64_t bytes, multiply_adds;
};

/* The work of a run on one device; zeros: not known. */
struct xm_run_work {
    uint64_t tokens, launches;  /* number of kernel launches in the run */
    struct xm_work_step *steps; /* [n_steps], owned: xm_run_work_free */
    uint32_t n_steps;
};
void xm_run_work_free(struct xm_run_work *w); /* the members, not *w */

/* The source of a device's rates. */
enum xm_rates_source {
    XM_RATES_UNKNOWN,
    XM_RATES_CARD,    /* a usual share of the card's specifications */
    XM_RATES_GIVEN,   /* given by the user */
    XM_RATES_MEASURED /* measured by `xemoe bench` on this device */
};

/* The rates that kernels reach on a device; 0: not known. */
struct xm_rates {
    double read;     /* bytes a second from the device's memory */
    double multiply; /* multiply-adds a second          */
    double launch_s; /* seconds between the ends of two launches of an empty kernel */
    enum xm_rates_source source;
    bool is_beside; /* reached while other ranks read the same memory, not alone */
};

/* The shares of a card's memory bandwidth and of its multiply peak that kernels are assumed to
 * reach if there is no measurement. */
extern const double xm_usual_read_share, xm_usual_multiply_share;

/* Sets *out to these shares of the card's specifications. XM_RATES_UNKNOWN: the bandwidth is not
 * known; multiply 0: the clock is not known. launch_s is always set. */
void xm_rates_of_card(const struct xm_device_info *info, struct xm_rates *out);
/* Returns the peak of 8-bit integer multiply-adds a second of all EUs; 0: not known. */
double xm_peak_of_card(const struct xm_device_info *info);

/* Returns the seconds of a run on the device; 0: the work or the bandwidth is not known. If the
 * multiply rate is not known, multiply-adds take no time. */
double xm_forecast_run(const struct xm_run_work *w, const struct xm_rates *rates);
/* Finds the rates that give runs their measured durations: `read` from the run of one token, then
 * `multiply` from the run of the prompt. launch_s is given. Returns false, with *rates unchanged,
 * if a run is shorter than its launches, or if reading alone takes as long as the prompt. */
bool xm_rates_fit(struct xm_rates *rates, const struct xm_run_work *token, double token_s,
                  const struct xm_run_work *prompt, double prompt_s);

/* A link between ranks; rate 0: the time does not depend on the number of bytes. */
struct xm_link {
    /* bytes a second that a rank receives; seconds of a message */
    double rate, latency_s;
};
/* Ranks of one node communicate over `local`, ranks of different nodes over `between`. */
struct xm_cluster {
    uint32_t nodes, ranks_of_node; /* > 0 */
    struct xm_link local, between;
};
/* What the ranks exchange in a run. A sum: every rank receives the summands of all others. A
 * gather: every rank receives the parts of all others. A pass: one rank sends a value to one other
 * rank. */
struct xm_exchange_work {
    uint64_t messages, passes;
    /* bytes of whole values: summed, gathered, passed */
    double sum_bytes, part_bytes, passed_bytes;
};
/* Seconds of a run, and the part of them spent in exchanges; 0: not known. */
struct xm_run_seconds {
    double all, exchanges;
};
/* Returns the seconds of the exchanges of a run. */
double xm_forecast_exchanges(const struct xm_exchange_work *w,
                             const struct xm_cluster *c);

#ifdef __cplusplus
}
#endif
#endif
