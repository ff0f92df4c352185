/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/status.h"

#include <string.h>

#include "runtime/util/number.h"

enum xm_status
xm_fail_v(struct xm_error *err, enum xm_status status, const char *fmt, va_list ap)
{
    if (err && err->status == XM_OK) { /* the first failure is the cause */
        err->status = status;
        xm_print_v(err->text, sizeof(err->text), fmt, ap);
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

enum xm_status
xm_no_memory(struct xm_error *err, const char *fmt, ...)
{
    char what[XM_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(what, sizeof(what), fmt, ap);
    va_end(ap);
    return xm_fail(err, XM_NO_MEMORY, "out of memory for %s", what);
}

void
xm_error_prefix(struct xm_error *err, const char *fmt, ...)
{
    if (!err || err->status == XM_OK)
        return;
    char prefix[XM_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    int printed = xm_print_v(prefix, sizeof(prefix) - 2, fmt, ap);
    va_end(ap);
    if (printed < 0)
        return;
    memcpy(prefix + strlen(prefix), ": ", 3);
    size_t n = strlen(prefix), room = sizeof(err->text) - 1 - n, old = strlen(err->text);
    memmove(err->text + n, err->text, old < room ? old : room);
    err->text[n + (old < room ? old : room)] = '\0';
    memcpy(err->text, prefix, n);
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
        [XM_NOT_BUILT] = "kernel not built",
        [XM_LOST] = "device lost",
        [XM_NOT_FINITE] = "result not finite",
        [XM_UNPLANNED] = "size not known",
    };
    return (unsigned)status < XM_ARRAY_LEN(text) ? text[status] : "unknown status";
}
