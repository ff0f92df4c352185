/* SPDX-License-Identifier: Apache-2.0
 *
 * How failures and texts leave the GenAI C API.
 */
#include <string.h>

#include "plugin/genai/genai.h"
#include "runtime/util/log.h"

ov_status_e
xm_genai_status(const struct xm_error *err)
{
    if (err->status == XM_OK)
        return OK;
    xm_log(XM_LOG_ERROR, "%s", err->text[0] ? err->text : xm_status_text(err->status));
    return UNKNOW_EXCEPTION;
}

bool
xm_genai_give(const struct xm_strbuf *text, char *output, size_t *output_size)
{
    if (!output) {
        *output_size = text->n + 1;
        return true;
    }
    if (*output_size <= text->n)
        return false;
    memcpy(output, xm_strbuf_text(text), text->n + 1);
    return true;
}
