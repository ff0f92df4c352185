/* SPDX-License-Identifier: Apache-2.0
 *
 * Status texts, the sentence of the last failure in the process, and strings that the caller
 * frees.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"
#include "runtime/util/number.h"

#include "plugin/api/api.h"

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_text[XM_ERROR_TEXT]; /* empty: no failure */

const char *
ov_get_error_info(ov_status_e status)
{
    static const char *const texts[] = {
        "success",
        "general error",
        "it's not implement",
        "failed to network",
        "input parameter mismatch",
        "cannot find the value",
        "out of bounds",
        "run with unexpected error",
        "request is busy",
        "result is not ready",
        "it is not allocated",
        "inference start with error",
        "network is not ready",
        "inference is canceled",
        "invalid c input parameters",
        "unknown c error",
        "not implement in c method",
        "unknown exception",
    };
    int64_t i = -(int64_t)status; /* callers may pass any value */
    return i >= 0 && i < (int64_t)XM_ARRAY_LEN(texts) ? texts[i] : "unknown exception";
}

void
ov_free(const char *content)
{
    xm_free((void *)content);
}

const char *
ov_get_last_err_msg(void)
{
    pthread_mutex_lock(&last_lock);
    char *copy = last_text[0] ? xm_strdup(last_text) : NULL;
    pthread_mutex_unlock(&last_lock);
    return copy;
}

static void
keep_text(const char *text)
{
    pthread_mutex_lock(&last_lock);
    snprintf(last_text, sizeof(last_text), "%s", text);
    pthread_mutex_unlock(&last_lock);
}

void
xm_api_clear_error(void)
{
    keep_text("");
}

ov_status_e
xm_api_error(const struct xm_error *err)
{
    if (err->status == XM_OK)
        return OK;
    keep_text(err->text[0] ? err->text : xm_status_text(err->status));
    switch (err->status) {
    case XM_BUSY:
        return REQUEST_BUSY;
    case XM_CANCELLED:
        return INFER_CANCELLED;
    default:
        return GENERAL_ERROR;
    }
}

ov_status_e
xm_api_fail(ov_status_e code, const char *fmt, ...)
{
    char text[XM_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(text, sizeof(text), fmt, ap);
    va_end(ap);
    /* as in OpenVINO, the text of an earlier failure stays stored */
    if (code == INVALID_C_PARAM)
        xm_log(XM_LOG_WARNING, "%s", text);
    else
        keep_text(text);
    return code;
}

ov_status_e
xm_api_refuse(const char *name)
{
    return xm_api_fail(INVALID_C_PARAM,
                       "%s: an argument is NULL, a number out of range, or not a live "
                       "handle of the expected kind",
                       name);
}

ov_status_e
xm_api_new_handle(const void *handle, enum xm_api_kind kind)
{
    return xm_api_handle_add(handle, kind)
               ? OK
               : xm_api_fail(GENERAL_ERROR, "out of memory for a handle");
}

ov_status_e
xm_api_give_text(struct xm_strbuf *b, char **out)
{
    char *text = xm_strbuf_take(b);
    if (!text)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a text");
    *out = text;
    return OK;
}
