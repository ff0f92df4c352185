/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe devices --properties: the tables of properties, as text or JSON.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/devices.h"
#include "plugin/property_rows.h"
#include "runtime/config.h"

struct list {
    const char *title, *key; /* in the text; in JSON */
};
static const struct list lists[] = {
    [XM_OPTIONS_ENGINE] = {"set, and kept while a device is open", "device"},
    [XM_OPTIONS_PROGRAM] = {"set, for each compiled model", "compiled_model"},
    [XM_OPTIONS_ACCEPTED] = {"set by habit", "accepted"},
};

/* ---- text ---------------------------------------------------------------------------- */

static void
print_rows(void)
{
    struct xm_property_row row;
    printf("read, of a device (D), of a compiled model (M):\n");
    for (size_t i = 0; xm_gpu_property_row(i, &row); i++)
        printf("  %c%c %s: %s\n", row.of_device ? 'D' : ' ', row.of_compiled ? 'M' : ' ',
               row.key, row.help);
}

static void
print_option(const struct xm_option_row *row, const char *value)
{
    if (row->list == XM_OPTIONS_ACCEPTED)
        printf("  %s = %s: accepted; has no effect here%s%s\n", row->name, value,
               row->help[0] ? ": " : "", row->help);
    else
        printf("  %s = %s: %s\n", row->name, value, row->help);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    xm_json_add_text(j, o, key, text, strlen(text));
}

static void
add_rows(struct xm_json_out *j)
{
    struct xm_property_row row;
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "read");
    for (size_t i = 0; xm_gpu_property_row(i, &row); i++) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        add_text(j, o, "name", row.key);
        xm_json_add_bool(j, o, "of_device", row.of_device);
        xm_json_add_bool(j, o, "of_compiled_model", row.of_compiled);
        add_text(j, o, "help", row.help);
    }
}

static void
add_option(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_option_row *row,
           const char *value)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    add_text(j, o, "name", row->name);
    add_text(j, o, "set_for", lists[row->list].key);
    add_text(j, o, "default", value);
    add_text(j, o, "help", row->help);
}

/* ---- both ---------------------------------------------------------------------------- */

/* The options with their defaults; as text where `j` is NULL. */
static enum xm_status
show_options(struct xm_json_out *j, struct xm_error *err)
{
    struct xm_config defaults;
    struct xm_strbuf value = {0};
    size_t n;
    const struct xm_option_row *rows = xm_option_rows(&n);
    yyjson_mut_val *list = j ? xm_json_add_array(j, NULL, "set") : NULL;
    enum xm_status s = XM_OK;
    xm_config_init(&defaults);
    for (size_t i = 0; i < n && s == XM_OK; i++) {
        if (!j && (i == 0 || rows[i].list != rows[i - 1].list))
            printf("%s:\n", lists[rows[i].list].title);
        xm_strbuf_clear(&value);
        s = xm_config_get(&defaults, rows[i].name, &value, err);
        if (s == XM_OK && j)
            add_option(j, list, &rows[i], xm_strbuf_text(&value));
        else if (s == XM_OK)
            print_option(&rows[i], xm_strbuf_text(&value));
    }
    xm_strbuf_free(&value);
    return s;
}

enum xm_status
xm_cli_print_properties(bool json, struct xm_error *err)
{
    struct xm_json_out j;
    if (!json) {
        print_rows();
        return show_options(NULL, err);
    }
    xm_json_begin(&j);
    add_rows(&j);
    enum xm_status s = show_options(&j, err);
    if (s == XM_OK)
        s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}
