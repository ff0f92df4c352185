/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe devices --properties: the tables of properties, for people.
 */
#include <stdio.h>

#include "plugin/cli/devices.h"
#include "plugin/property_rows.h"
#include "runtime/config.h"

static void
print_rows(void)
{
    struct xm_property_row row;
    printf("read, of a device (D), of a compiled model (M):\n");
    for (size_t i = 0; xm_gpu_property_row(i, &row); i++)
        printf("  %c%c %s: %s\n", row.of_device ? 'D' : ' ', row.of_compiled ? 'M' : ' ',
               row.key, row.help);
}

/* With the defaults. */
static enum xm_status
print_option(const struct xm_option_row *row, struct xm_error *err)
{
    struct xm_config defaults;
    struct xm_strbuf value = {0};
    xm_config_init(&defaults);
    enum xm_status s = xm_config_get(&defaults, row->name, &value, err);
    if (s == XM_OK && row->list == XM_OPTIONS_ACCEPTED)
        printf("  %s = %s: accepted; has no effect here%s%s\n", row->name,
               xm_strbuf_text(&value), row->help[0] ? ": " : "", row->help);
    else if (s == XM_OK)
        printf("  %s = %s: %s\n", row->name, xm_strbuf_text(&value), row->help);
    xm_strbuf_free(&value);
    return s;
}

enum xm_status
xm_cli_print_properties(struct xm_error *err)
{
    static const char *const lists[] = {
        [XM_OPTIONS_ENGINE] = "set, and kept while a device is open",
        [XM_OPTIONS_PROGRAM] = "set, for each compiled model",
        [XM_OPTIONS_ACCEPTED] = "set by habit",
    };
    size_t n;
    const struct xm_option_row *rows = xm_option_rows(&n);
    print_rows();
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || rows[i].list != rows[i - 1].list)
            printf("%s:\n", lists[rows[i].list]);
        XM_TRY(print_option(&rows[i], err));
    }
    return XM_OK;
}
