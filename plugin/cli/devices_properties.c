/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe devices --properties: the tables of properties, as text or JSON.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/devices.h"
#include "plugin/program_util/lines.h"
#include "plugin/property_rows.h"
#include "runtime/config.h"

struct list {
    const char *title, *key; /* in the text; in JSON */
};
static const struct list lists[] = {
    [XM_OPTIONS_ENGINE] = {"set, and kept while a device is open", "device"},
    [XM_OPTIONS_PROGRAM] = {"set, for each compiled model", "compiled_model"},
    [XM_OPTIONS_ACCEPTED] = {"accepted without effect", "accepted"},
};

/* ---- text ---------------------------------------------------------------------------- */

static void
print_rows(struct xm_lines *o)
{
    struct xm_property_row row;
    xm_lines_add(o, "read-only, of a device (D), of a compiled model (M):\n");
    for (size_t i = 0; xm_gpu_property_row(i, &row); i++)
        xm_lines_add(o, "  %c%c %s: %s\n", row.of_device ? 'D' : ' ',
                     row.of_compiled ? 'M' : ' ', row.key, row.help);
}

static void
print_option(struct xm_lines *o, const struct xm_option_row *row, const char *value)
{
    if (row->list == XM_OPTIONS_ACCEPTED)
        xm_lines_add(o, "  %s = %s: accepted, but has no effect%s%s\n", row->name, value,
                     row->help[0] ? ": " : "", row->help);
    else
        xm_lines_add(o, "  %s = %s: %s\n", row->name, value, row->help);
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

/* Adds the settable properties with their defaults; `j` NULL: prints them as text. */
static enum xm_status
show_options(struct xm_lines *o, struct xm_json_out *j, struct xm_error *err)
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
            xm_lines_add(o, "%s:\n", lists[rows[i].list].title);
        xm_strbuf_clear(&value);
        s = xm_config_get(&defaults, rows[i].name, &value, err);
        if (s == XM_OK && j)
            add_option(j, list, &rows[i], xm_strbuf_text(&value));
        else if (s == XM_OK)
            print_option(o, &rows[i], xm_strbuf_text(&value));
    }
    xm_strbuf_free(&value);
    return s;
}

enum xm_status
xm_cli_print_properties(bool json, struct xm_error *err)
{
    struct xm_json_out j;
    if (!json) {
        struct xm_lines o = xm_lines_to(stdout);
        print_rows(&o);
        const enum xm_status shown = show_options(&o, NULL, err);
        xm_lines_end(&o);
        return shown;
    }
    xm_json_begin(&j);
    add_rows(&j);
    enum xm_status s = show_options(NULL, &j, err);
    if (s == XM_OK)
        s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}
