/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"

enum xm_status
xm_bench_problems_read(FILE *file, const char *name, xm_bench_line_fn take, void *ctx,
                       struct xm_error *err)
{
    struct xm_timed_problem p;
    char line[sizeof(p.text) + 128];
    for (size_t number = 1; fgets(line, sizeof(line), file); number++) {
        const bool whole = strchr(line, '\n') || feof(file);
        line[strcspn(line, "#\r\n")] = 0;
        enum xm_status s =
            whole && strlen(line) < sizeof(p.text)
                ? take(ctx, line, err)
                : xm_fail(err, XM_INVALID, "the line has more than %zu bytes",
                          sizeof(p.text) - 1);
        if (s != XM_OK) {
            xm_error_prefix(err, "'%.150s', line %zu", name, number);
            return s;
        }
    }
    return ferror(file)
               ? xm_fail(err, XM_IO, "'%.150s' cannot be read: %s", name, strerror(errno))
               : XM_OK;
}
