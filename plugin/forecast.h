/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a model's runs take, from what they do and what a device and its links reach.
 *
 *     a run's seconds = sum over its steps of max(bytes / read, multiply-adds / multiply)
 *                       + launches * launch_s + exchanges
 *     an exchange     = latency * log2(ranks), rounded up + received bytes / rate
 *
 * The first line is the roofline model, step for step; the second one Hockney's alpha-beta model
 * of an all-gather. Neither knows of caches, clocks that fall, or processes beside this one.
 */
#ifndef XM_PLUGIN_FORECAST_H
#define XM_PLUGIN_FORECAST_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step does in a run: bytes of weights and of the KV cache, each counted once. */
struct xm_work_step {
    uint64_t bytes, multiply_adds;
};

/* What a run does on one device; zeros: not known. */
struct xm_run_work {
    uint64_t tokens, launches;  /* launches: one for each run of a step on the device */
    struct xm_work_step *steps; /* [n_steps], owned: xm_run_work_free */
    uint32_t n_steps;
};
void xm_run_work_free(struct xm_run_work *w); /* the members, not *w */

/* Where a device's rates come from. */
enum xm_rates_source {
    XM_RATES_UNKNOWN,
    XM_RATES_CARD,    /* shares of a card's specifications */
    XM_RATES_GIVEN,   /* the user                          */
    XM_RATES_MEASURED /* `xemoe bench` on this device      */
};

/* What kernels reach on a device; 0: not known. */
struct xm_rates {
    double read;     /* bytes a second from its memory  */
    double multiply; /* multiply-adds a second          */
    double launch_s; /* between the ends of launches that do nothing */
    enum xm_rates_source source;
    bool is_beside; /* beside other ranks that read the same memory, not alone */
};

/* The shares of a card's bandwidth and of its multipliers' peak that a forecast takes kernels to
 * reach, without a measurement. */
extern const double xm_usual_read_share, xm_usual_multiply_share;

/* Of a card's specifications, of which kernels reach those shares; XM_RATES_UNKNOWN where the
 * device's have no bandwidth, multiply 0 where they have no clock. launch_s is set in any case. */
void xm_rates_of_card(const struct xm_device_info *info, struct xm_rates *out);
/* 8-bit integer multiply-adds a second of all EUs; 0: not known. */
double xm_peak_of_card(const struct xm_device_info *info);

/* Seconds on the device; 0: the work or the bandwidth is not known. An unknown multiply counts as
 * without bound. */
double xm_forecast_run(const struct xm_run_work *w, const struct xm_rates *rates);
/* Finds the rates with which runs take the seconds that they were measured to take: `read` by the
 * token, then `multiply` by the prompt. launch_s is given. False, and *rates is unchanged: a run is
 * shorter than its launches, or reading alone takes as long as the prompt. */
bool xm_rates_fit(struct xm_rates *rates, const struct xm_run_work *token, double token_s,
                  const struct xm_run_work *prompt, double prompt_s);

/* A link between ranks; rate 0: bytes cost nothing. */
struct xm_link {
    double rate, latency_s; /* bytes a second that a rank receives; of a message */
};
/* Ranks of one node reach each other by `local`, nodes by `between`. */
struct xm_cluster {
    uint32_t nodes, ranks_of_node; /* > 0 */
    struct xm_link local, between;
};
/* What a run exchanges: of sums every rank receives all others' summands, of parts it receives the
 * other parts; what is passed on goes from one rank to one other. */
struct xm_exchange_work {
    uint64_t messages, passes;
    double sum_bytes, part_bytes, passed_bytes; /* of whole values */
};
/* Seconds of a run: all, and of them in exchanges; 0: not known. */
struct xm_run_seconds {
    double all, exchanges;
};
double xm_forecast_exchanges(const struct xm_exchange_work *w,
                             const struct xm_cluster *c);

#ifdef __cplusplus
}
#endif
#endif
