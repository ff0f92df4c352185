/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures kernels beside a model, in a process of its own. While the model answers, the process
 * builds the kernels for steps that have not been measured on the device; when the model is idle,
 * it times them (plugin/bench_kernels/tune_beside.c describes the messages). The next start of the
 * program uses the choices.
 *
 * A separate process is used because a kernel that was never tried may crash its process or
 * hang.
 */
#ifndef XM_PLUGIN_CLI_TUNER_PROCESS_H
#define XM_PLUGIN_CLI_TUNER_PROCESS_H

#include <stdbool.h>

struct xm_cli_model;
struct xm_cli_target;
struct xm_cli_tuner;

/* Starts the process, for commands that allow it (xm_cli_target.tunes). NULL: there is nothing to
 * measure, no folder for the choices, or measuring is not wanted: without --tune it starts only on
 * GPUs, and only if progress lines are shown. With --tune a sentence on standard error says why
 * nothing can be measured, here and later; without it the sentence is logged for -v. */
struct xm_cli_tuner *xm_cli_tuner_start(const struct xm_cli_model *m,
                                        const struct xm_cli_target *t,
                                        const char *cache_dir);
/* Call it while the model is idle: once all kernels are built, times them until timed runs have
 * taken 2 s, and shows a progress line. With --tune, or `waits`, it waits until they are built. No
 * effect if nothing is left to measure, or on NULL. A line typed on the terminal `keys` (-1: none)
 * ends it, and can still be read afterwards. Ctrl-C ends it too; then xm_cli_interrupted returns
 * true, and the caller decides whether to end the command. Returns whether a choice was stored. */
bool xm_cli_tuner_run(struct xm_cli_tuner *t, bool waits, int keys);
/* Ends the process; NULL is allowed. */
void xm_cli_tuner_end(struct xm_cli_tuner *t);

#endif
