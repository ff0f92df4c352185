/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the tokens that a grammar allows take to find, for places in texts of some grammars:
 * the first time in a text ("cold"), and where the mask is kept ("warm").
 */
#ifndef XM_TOOLS_BENCH_SAMPLING_GRAMMAR_H
#define XM_TOOLS_BENCH_SAMPLING_GRAMMAR_H

#include <stddef.h>

#include "runtime/util/status.h"

/* Prints a table for a made-up vocabulary of n tokens: words, characters of several scripts,
 * code. */
enum xm_status xm_bench_grammars(size_t n, struct xm_error *err);

#endif
