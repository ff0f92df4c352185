/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/exit_codes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/log.h"
#include "runtime/util/new_file.h"
#include "runtime/util/status.h"

int
xm_cli_exit_code(enum xm_status status)
{
    static const enum xm_exit codes[] = {
        [XM_OK] = XM_EXIT_OK,
        [XM_INVALID] = XM_EXIT_FILE,
        [XM_UNSUPPORTED] = XM_EXIT_FILE,
        [XM_NO_MEMORY] = XM_EXIT_DEVICE,
        [XM_DEVICE] = XM_EXIT_DEVICE,
        [XM_IO] = XM_EXIT_FILE,
        [XM_NOT_FOUND] = XM_EXIT_FILE,
        [XM_CANCELLED] = XM_EXIT_CANCELLED,
        [XM_BUSY] = XM_EXIT_FAILED,
        [XM_NOT_BUILT] = XM_EXIT_DEVICE,
        [XM_LOST] = XM_EXIT_DEVICE,
        [XM_NOT_FINITE] = XM_EXIT_FAILED,
        [XM_UNPLANNED] = XM_EXIT_FILE,
    };
    return (size_t)status < XM_ARRAY_LEN(codes) ? (int)codes[status] : XM_EXIT_FAILED;
}

/* Opens /dev/null for closed standard streams; otherwise a file opened later would get their
 * descriptor, and be read or written as a standard stream. Reads find nothing, and writes fail, as
 * on a closed stream. */
static void
fill_closed_streams(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY);
    if (fd > STDERR_FILENO)
        close(fd);
}

int
xm_cli_start(void)
{
    struct xm_error err = {0};
    fill_closed_streams();
    xm_log_set_sink(xm_progress_log, NULL);
    xm_new_file_spare_inputs(true);
    return xm_debug_check(&err) == XM_OK ? XM_EXIT_OK : xm_cli_usage("%s", err.text);
}

int
xm_cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    xm_say_v(fmt, ap);
    va_end(ap);
    return XM_EXIT_USAGE;
}

int
xm_cli_usage_of(const struct xm_error *err, const char *help)
{
    const size_t n = strlen(err->text);
    const bool asks = n && err->text[n - 1] == '?';
    return xm_cli_usage("%s%s '%s'", err->text, asks ? " See" : "; see", help);
}

int
xm_cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return XM_EXIT_OK;
    xm_say("standard output: %s",
           errno ? strerror(errno) : "not all of it could be written");
    return XM_EXIT_FILE;
}

/* Not from getrusage, whose value starts with that of the parent process. */
double
xm_cli_peak_rss(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %llu", &kib) != 1)
        continue;
    if (f)
        fclose(f);
    return (double)kib / 1024.0;
}
