/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns failures and texts to callers of the GenAI C API.
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
    xm_api_error(err);
    return UNKNOW_EXCEPTION;
}

bool
xm_genai_give(const struct xm_strbuf *text, char *output, size_t *output_size)
{
    const size_t room = *output_size;
    *output_size = text->n + 1;
    if (!output)
        return true;
    if (room < *output_size) {
        xm_api_fail(OUT_OF_BOUNDS, "the text needs %zu bytes, but the buffer has %zu",
                    *output_size, room);
        return false;
    }
    memcpy(output, xm_strbuf_text(text), *output_size);
    return true;
}
