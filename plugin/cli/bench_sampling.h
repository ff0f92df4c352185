/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe bench --sampling: what choosing a token costs, by sampler.
 */
#ifndef XM_PLUGIN_CLI_BENCH_SAMPLING_H
#define XM_PLUGIN_CLI_BENCH_SAMPLING_H

/* The command; --sampling has been taken out of argv. */
int xm_cli_bench_sampling(int argc, char **argv);

#endif
