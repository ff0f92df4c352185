/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line: one line on standard error that names the work in progress. It is written only
 * to a terminal that understands escape codes, and erased when the work is done or before anything
 * else is written.
 *
 * Standard output may be the same terminal, so the line is erased only if this module wrote it. It
 * is always shorter than the terminal is wide, because a wrapped line cannot be erased.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_PROGRESS_H
#define XM_PLUGIN_PROGRAM_UTIL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/compiler.h"
#include "runtime/util/log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Carriage return, and erase to the end of the line (ECMA-48). */
#define XM_PROGRESS_WIPE "\r\033[K"

void xm_progress_show(const char *fmt, ...) XM_PRINTF(1, 2);
void xm_progress_clear(void);
/* The same after a line was typed while it stood: the line break has moved the cursor below it. */
void xm_progress_clear_typed(void);
/* Shows kernel k of n that is being built; n = 0: the number is not known, because a driver builds
 * code for a launch. A callback for functions that report builds; ctx is not used. */
void xm_progress_build(void *ctx, const char *kernel, uint64_t k, uint64_t n);
/* The programs' sink of log lines: the progress line makes room for them, and they fit the
 * terminal; those for debugging are as they are. */
void xm_progress_log(enum xm_log_level level, const char *line, void *ctx);
/* Whether lines are shown at all. */
bool xm_progress_is_shown(void);
/* Whether the progress line is on the terminal now; callable from a signal handler. */
bool xm_progress_stands(void);

#ifdef __cplusplus
}
#endif
#endif
