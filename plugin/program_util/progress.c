/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/program_util/lines.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/utf8.h"

static atomic_bool stands; /* read by signal handlers in any thread */

void
xm_progress_log(enum xm_log_level level, const char *line, void *ctx)
{
    (void)ctx;
    xm_progress_clear();
    if (level == XM_LOG_DEBUG)
        fprintf(stderr, "xemoe: %s%s\n", xm_log_prefix(level), line);
    else
        xm_say("%s%s", xm_log_prefix(level), line);
}

bool
xm_progress_is_shown(void)
{
    return xm_terminal_has_escapes(STDERR_FILENO);
}

void
xm_progress_show(const char *fmt, ...)
{
    char raw[1024], text[sizeof(raw)];
    va_list ap;
    if (!xm_progress_is_shown())
        return;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    /* texts may contain file names */
    xm_utf8_show(xm_slice_of(raw, strlen(raw)), text, sizeof(text));
    size_t n =
        xm_terminal_fit(text, strlen(text), xm_terminal_columns(STDERR_FILENO) - 1);
    xm_progress_clear();
    stands = true;
    fprintf(stderr, "%.*s", (int)n, text);
    fflush(stderr);
}

void
xm_progress_clear(void)
{
    if (!stands)
        return;
    fputs(XM_PROGRESS_WIPE, stderr);
    fflush(stderr);
    stands = false;
}

void
xm_progress_clear_typed(void)
{
    if (stands)
        fputs("\033[A", stderr);
    xm_progress_clear();
}

bool
xm_progress_stands(void)
{
    return stands;
}

void
xm_progress_build(void *ctx, const char *kernel, uint64_t k, uint64_t n)
{
    (void)ctx;
    if (n)
        xm_progress_show("building kernel %" PRIu64 " of %" PRIu64 ": %s", k, n, kernel);
    else
        xm_progress_show("building a kernel for a launch of a new size: %s", kernel);
}
