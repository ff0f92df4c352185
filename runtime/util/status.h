/* SPDX-License-Identifier: Apache-2.0
 *
 * One status code and one sentence for every failure.
 *
 * A function that can fail returns enum xm_status and takes a struct xm_error (or works on an
 * object that holds one). The first failure is the cause and is kept; later ones do not overwrite
 * it. The message says what failed, where, what was expected and what was found.
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
    XM_UNSUPPORTED, /* the request is right, but this build or device cannot do it      */
    XM_NO_MEMORY, /* host or device memory is exhausted, or a budget does not allow it */
    XM_DEVICE,    /* a driver call failed                                             */
    XM_IO,        /* the operating system refused a file                              */
    XM_NOT_FOUND, /* no such device, file, property, tensor, …                        */
    XM_CANCELLED, /* the caller asked to stop                                         */
    XM_BUSY,      /* the request is still running                                     */
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

/* Records a failure in `err` unless it already holds one; NULL: records nothing. Returns
 * `status`. */
enum xm_status xm_fail(struct xm_error *err, enum xm_status status, const char *fmt, ...)
    XM_PRINTF(3, 4);
enum xm_status xm_fail_v(struct xm_error *err, enum xm_status status, const char *fmt,
                         va_list ap);

/* Fails with XM_NO_MEMORY and the message "out of memory for <fmt>": `fmt` says what the memory was
 * for. */
enum xm_status xm_no_memory(struct xm_error *err, const char *fmt, ...) XM_PRINTF(2, 3);

/* Puts the text and ": " before the message of a recorded failure; does nothing if err is XM_OK or
 * NULL. */
void xm_error_prefix(struct xm_error *err, const char *fmt, ...) XM_PRINTF(2, 3);

/* The short name of a status, such as "out of memory"; static. */
const char *xm_status_text(enum xm_status status);

/* Returns from the calling function with the status of `expr` if that is not XM_OK. */
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
