/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of external plugin libraries (xemoe/plugin.h), in `xemoe devices`.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/devices.h"
#include "plugin/plugin.h"
#include "plugin/program_util/lines.h"

/* ---- one device -------------------------------------------------------------------- */

struct device {
    const struct xm_strbuf *name, *full_name;
    const char *description, *library;
};

static void
print_text(const struct device *d)
{
    struct xm_lines o = xm_lines_to(stdout);
    xm_lines_add(&o, "%s: %s\n  %s; library %s\n", xm_strbuf_text(d->name),
                 xm_strbuf_text(d->full_name), d->description, d->library);
    xm_lines_end(&o);
}

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    xm_json_add_text(j, o, key, text, strlen(text));
}

static void
add_json(const struct device *d, struct xm_json_out *j, yyjson_mut_val *list)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    add_text(j, o, "device", xm_strbuf_text(d->name));
    add_text(j, o, "name", xm_strbuf_text(d->full_name));
    add_text(j, o, "description", d->description);
    add_text(j, o, "library", d->library);
}

/* ---- all of them ------------------------------------------------------------------- */

static void
show_device(struct xm_plugin *p, uint32_t index, uint32_t n, const char *library,
            struct xm_json_out *j, yyjson_mut_val *list)
{
    struct xm_strbuf name = {0}, full_name = {0};
    xm_strbuf_add(&name, p->ops->name);
    if (n > 1)
        xm_strbuf_printf(&name, ".%u", index);
    if (p->ops->get_property(p, index, "FULL_DEVICE_NAME", &full_name, NULL) != XM_OK)
        xm_strbuf_add(&full_name, p->ops->name);
    const struct device d = {&name, &full_name, p->ops->description, library};
    if (j)
        add_json(&d, j, list);
    else
        print_text(&d);
    xm_strbuf_free(&name);
    xm_strbuf_free(&full_name);
}

void
xm_cli_devices_of_plugins(const struct xm_core *core, struct xm_json_out *j,
                          yyjson_mut_val *list)
{
    struct xm_plugin *const *plugins;
    const uint32_t n = xm_core_plugins(core, &plugins);
    for (uint32_t i = 0; i < n; i++) {
        const char *library = xm_core_library_of(core, plugins[i]);
        const uint32_t count = library ? plugins[i]->ops->count(plugins[i]) : 0;
        for (uint32_t d = 0; d < count; d++)
            show_device(plugins[i], d, count, library, j, list);
    }
}
