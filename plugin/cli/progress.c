/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Carriage return, and erase to the end of the line (ECMA-48). */
#define WIPE "\r\033[K"

static bool
is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void
xm_progress_show(const char *fmt, ...)
{
    va_list ap;
    if (!is_terminal())
        return;
    fputs(WIPE, stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fflush(stderr);
}

void
xm_progress_clear(void)
{
    if (is_terminal())
        fputs(WIPE, stderr);
}
