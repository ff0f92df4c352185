/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring kernels beside a model: a process of its own builds the kernels that could run the
 * steps for which nothing has been measured on the device, while the model answers, and times them
 * when the model is idle (plugin/bench_kernels/tune_beside.c has the words that they exchange). The
 * next start takes what was chosen.
 *
 * A process of its own, because a kernel that was never tried may crash its process or hang.
 */
#ifndef XM_PLUGIN_CLI_TUNER_PROCESS_H
#define XM_PLUGIN_CLI_TUNER_PROCESS_H

#include <stdbool.h>

struct xm_cli_model;
struct xm_cli_target;
struct xm_cli_tuner;

/* Starts it, for a command that allows that (xm_cli_target.tunes). NULL: there is nothing to
 * measure, no folder to keep it in, or nobody wants it: without --tune it starts on GPUs only, and
 * when a progress line is shown. With --tune a sentence on standard error says why nothing can be
 * measured, here and later; without, it is logged for -v. */
struct xm_cli_tuner *xm_cli_tuner_start(const struct xm_cli_model *m,
                                        const struct xm_cli_target *t,
                                        const char *cache_dir);
/* Call it while the model is idle: times kernels, once all are built, until their timed runs have
 * taken 2 s, and shows a progress line. With --tune, or `waits`, it waits until they are built.
 * Without effect once nothing is left to measure, and on NULL. A line that is typed on the terminal
 * `keys` (-1: none) ends it, and stays to be read. Ctrl-C ends it, too; xm_cli_interrupted says so
 * then, and the caller decides whether that ends the command. Returns whether a choice was kept. */
bool xm_cli_tuner_run(struct xm_cli_tuner *t, bool waits, int keys);
/* Ends the process; NULL is allowed. */
void xm_cli_tuner_end(struct xm_cli_tuner *t);

#endif
