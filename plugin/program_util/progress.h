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
/* As xm_progress_clear, after the user typed a line while the progress line was shown: the newline
 * has moved the cursor below it. */
void xm_progress_clear_typed(void);
/* Shows that kernel k of n is being built; n = 0: the number is not known, because a driver builds
 * code at a launch. A callback for functions that report builds; ctx is not used. */
void xm_progress_build(void *ctx, const char *kernel, uint64_t k, uint64_t n);
/* The log sink of programs: erases the progress line first, and wraps lines to the terminal's
 * width, except debugging lines. */
void xm_progress_log(enum xm_log_level level, const char *line, void *ctx);
/* Whether the progress line can be shown. */
bool xm_progress_is_shown(void);
/* Whether the progress line is on the terminal now. A signal handler may call it. */
bool xm_progress_stands(void);

#ifdef __cplusplus
}
#endif
#endif
