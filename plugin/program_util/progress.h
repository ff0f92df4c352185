/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on standard error that says what is being waited for, when that is a terminal with
 * escape codes; it is wiped away when the work is done, or before anything else is written. To
 * a file, a pipe or a dumb terminal nothing is written.
 *
 * Standard output may be the same terminal: the line is wiped only while it stands, since what
 * stands there otherwise is somebody else's. It never fills the terminal's width, because a
 * wrapped line cannot be wiped.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_PROGRESS_H
#define XM_PLUGIN_PROGRAM_UTIL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Carriage return, and erase to the end of the line (ECMA-48). */
#define XM_PROGRESS_WIPE "\r\033[K"

void xm_progress_show(const char *fmt, ...) XM_PRINTF(1, 2);
void xm_progress_clear(void);
/* The line of the k-th kernel that is built, of n; n 0: one that nobody has announced, where a
 * launch needs code of its own. As a function that builds are watched with. */
void xm_progress_build(void *ctx, const char *kernel, uint64_t k, uint64_t n);
/* Whether lines are shown at all. */
bool xm_progress_is_shown(void);
/* Whether a line stands; a signal handler may ask. */
bool xm_progress_stands(void);

#ifdef __cplusplus
}
#endif
#endif
