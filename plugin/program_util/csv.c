/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/csv.h"

#include <string.h>

void
xm_csv_cell(struct xm_strbuf *out, char separator, bool is_first, const char *text)
{
    const char special[] = {separator, '"', '\n', '\r', '\0'};
    if (!is_first)
        xm_strbuf_add_n(out, &separator, 1);
    if (text[strcspn(text, special)] == '\0') {
        xm_strbuf_add(out, text);
        return;
    }
    xm_strbuf_add(out, "\"");
    for (; *text; text++)
        xm_strbuf_printf(out, *text == '"' ? "\"\"" : "%c", *text);
    xm_strbuf_add(out, "\"");
}
