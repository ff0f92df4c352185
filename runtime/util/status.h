/* SPDX-License-Identifier: Apache-2.0
 *
 * One status code and one sentence for every failure.
 *
 * A function that can fail returns enum xm_status and takes a struct xm_error (or works
 * on an object that holds one). The first failure is the cause and is kept; later ones do
 * not overwrite it. The sentence says what, where, expected and found.
 */
#ifndef XM_RUNTIME_UTIL_STATUS_H
#define XM_RUNTIME_UTIL_STATUS_H

#include <stdarg.h>

#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_status {
    XM_OK,
    XM_INVALID,     /* a file, a graph or an argument is wrong                          */
    XM_UNSUPPORTED, /* it is right, but this build or device cannot do it               */
    XM_NO_MEMORY, /* host or device memory is exhausted, or a budget does not allow it */
    XM_DEVICE,    /* a driver call failed                                             */
    XM_IO,        /* the operating system refused a file                              */
    XM_NOT_FOUND, /* no such device, file, property, tensor, …                        */
    XM_CANCELLED, /* the caller asked to stop                                         */
    XM_BUSY,      /* the request is running                                           */
    XM_NOT_BUILT, /* the device's compiler refuses a kernel                           */
    XM_LOST,      /* the device does not answer any more                              */
    XM_NOT_FINITE, /* a result is NaN or infinite                                     */
    XM_UNPLANNED   /* compiling needs a size that only the shapes of a run determine  */
};

#define XM_ERROR_TEXT 512

struct xm_error {
    enum xm_status status;
    char text[XM_ERROR_TEXT]; /* one sentence, no newline; empty while status is XM_OK */
};

/* Records the first failure in `err` (may be NULL: nothing is recorded) and returns
 * `status`. */
enum xm_status xm_fail(struct xm_error *err, enum xm_status status, const char *fmt, ...)
    XM_PRINTF(3, 4);
enum xm_status xm_fail_v(struct xm_error *err, enum xm_status status, const char *fmt,
                         va_list ap);

/* Fails with XM_NO_MEMORY; `fmt` names what the memory was for: "out of memory for <fmt>". */
enum xm_status xm_no_memory(struct xm_error *err, const char *fmt, ...) XM_PRINTF(2, 3);

/* Puts "context: " before the text of a failure already recorded; does nothing on XM_OK.
 */
void xm_error_prefix(struct xm_error *err, const char *fmt, ...) XM_PRINTF(2, 3);

/* "out of memory" and friends: the short name of a status, static. */
const char *xm_status_text(enum xm_status status);

#define XM_TRY(expr)                                                                     \
    do {                                                                                 \
        enum xm_status try_status_ = (expr);                                             \
        if (try_status_ != XM_OK)                                                        \
            return try_status_;                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
