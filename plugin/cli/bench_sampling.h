/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe bench --sampling: measures the time to choose a token with each sampler.
 */
#ifndef XM_PLUGIN_CLI_BENCH_SAMPLING_H
#define XM_PLUGIN_CLI_BENCH_SAMPLING_H

/* Runs the command; the caller has removed --sampling from argv. */
int xm_cli_bench_sampling(int argc, char **argv);

#endif
