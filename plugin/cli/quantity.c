/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/quantity.h"

#include <stdio.h>

static const char *
with_unit(double x, double step, const char *const units[], char out[XM_CLI_QUANTITY])
{
    size_t i = 0;
    while (x >= 999.5 && units[i + 1]) {
        x /= step;
        i++;
    }
    snprintf(out, XM_CLI_QUANTITY, "%.*f%s",
             i == 0 || x >= 99.95 ? 0
             : x >= 9.995         ? 1
                                  : 2,
             x, units[i]);
    return out;
}

const char *
xm_cli_count_text(uint64_t n, char out[XM_CLI_QUANTITY])
{
    static const char *const units[] = {"", " K", " M", " B", " T", NULL};
    return with_unit((double)n, 1000.0, units, out);
}

const char *
xm_cli_bytes_text(uint64_t n, char out[XM_CLI_QUANTITY])
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", NULL};
    return with_unit((double)n, 1024.0, units, out);
}

void
xm_cli_add_name(struct xm_strbuf *out, const char *name)
{
    for (const char *c = name; *c; c++)
        xm_strbuf_add_n(out, (unsigned char)*c < ' ' || *c == 0x7f ? "?" : c, 1);
}
