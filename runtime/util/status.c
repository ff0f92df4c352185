/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/status.h"

#include <stdio.h>
#include <string.h>

enum xm_status
xm_fail_v(struct xm_error *err, enum xm_status status, const char *fmt, va_list ap)
{
    if (err && err->status == XM_OK) { /* the first failure is the cause */
        err->status = status;
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
    }
    return status;
}

enum xm_status
xm_fail(struct xm_error *err, enum xm_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    xm_fail_v(err, status, fmt, ap);
    va_end(ap);
    return status;
}

void
xm_error_prefix(struct xm_error *err, const char *fmt, ...)
{
    if (!err || err->status == XM_OK)
        return;
    char old[XM_ERROR_TEXT];
    memcpy(old, err->text, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
}

const char *
xm_status_text(enum xm_status status)
{
    static const char *const text[] = {
        [XM_OK] = "success",
        [XM_INVALID] = "invalid input",
        [XM_UNSUPPORTED] = "not supported",
        [XM_NO_MEMORY] = "out of memory",
        [XM_DEVICE] = "device error",
        [XM_IO] = "input/output error",
        [XM_NOT_FOUND] = "not found",
        [XM_CANCELLED] = "cancelled",
        [XM_BUSY] = "busy",
    };
    return (unsigned)status < XM_ARRAY_LEN(text) ? text[status] : "unknown status";
}
