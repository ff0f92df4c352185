/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/chip.h"

#include "plugin/cli/cli.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/mesh/mesh_plan.h"
#include "plugin/program_util/suggest.h"

enum { MOST_MIB = 1 << 30 };

void
xm_cli_add_chips(struct xm_strbuf *out)
{
    size_t n;
    const struct xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s ", rows[i].name);
    const struct xm_card_row *cards = xm_card_rows(&n);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s ", cards[i].name);
}

/* Fails with "there is no chip or card 'bgm': did you mean bmg?", or with all names if none is
 * similar. */
static int
no_chip(const char *name)
{
    size_t n;
    const struct xm_device_row *rows = xm_device_rows(&n);
    struct xm_suggestion near = xm_suggest_for(name, strlen(name));
    for (size_t i = 0; i < n; i++)
        xm_suggest(&near, rows[i].name);
    const struct xm_card_row *cards = xm_card_rows(&n);
    for (size_t i = 0; i < n; i++)
        xm_suggest(&near, cards[i].name);
    if (near.best)
        return xm_cli_usage("option --device-as: there is no chip or card '%.60s': did "
                            "you mean %s?",
                            name, near.best);
    struct xm_strbuf all = {0};
    xm_cli_add_chips(&all); /* ends with a space */
    const int code = xm_cli_usage(
        "option --device-as: there is no chip or card '%.60s'; known are %.*s", name,
        (int)(all.n ? all.n - 1 : 0), xm_strbuf_text(&all));
    xm_strbuf_free(&all);
    return code;
}

/* Whether the names are of several devices, as plan accepts them: "GPU.0,GPU.1" or "2xb580". */
static bool
names_several(const char *device, const char *device_as)
{
    const size_t digits = device_as ? strspn(device_as, "0123456789") : 0;
    return xm_mesh_list(device) || (device_as && (strpbrk(device_as, ",(") ||
                                                  (digits && device_as[digits] == 'x')));
}

int
xm_cli_check_chip(const struct xm_chip_args *a)
{
    struct xm_device_info chip;
    struct xm_error err = {0};
    if (xm_cli_check_context(a->context, &err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    if (a->memory > MOST_MIB)
        return xm_cli_usage("option --memory takes at most %d MiB, found %" PRIu64,
                            MOST_MIB, a->memory);
    if (a->device_as && a->device)
        return xm_cli_usage("give only one of -d and --device-as: a device of this "
                            "computer, or a chip that need not be in it");
    if (names_several(a->device, a->device_as))
        return xm_cli_usage("option %s: '%.60s' names several devices, expected one; "
                            "'xemoe plan' accepts several",
                            a->device_as ? "--device-as" : "-d",
                            a->device_as ? a->device_as : a->device);
    if (a->device_as && xm_device_imagine(a->device_as, &chip, &err) != XM_OK)
        return no_chip(a->device_as);
    return XM_EXIT_OK;
}

enum xm_status
xm_cli_find_chip(const char *device, const char *device_as, struct xm_device_info *out,
                 struct xm_error *err)
{
    struct xm_core *core = NULL;
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    if (device_as)
        return xm_device_imagine(device_as, out, err);
    XM_TRY(xm_core_create(&core, err));
    enum xm_status s = xm_core_find(core, device, &plugin, &index, err);
    if (s == XM_OK && !plugin->ops->info)
        s = xm_fail(err, XM_NOT_FOUND,
                    "%s is not an OpenCL device; 'xemoe devices' lists the devices",
                    device ? device : "GPU");
    if (s == XM_OK)
        *out = *plugin->ops->info(plugin, index);
    xm_core_destroy(core);
    return s;
}
