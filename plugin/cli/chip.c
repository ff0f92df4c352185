/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/chip.h"

#include "plugin/plugin.h"

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
                    "%s is no OpenCL device; --device-as takes an Intel GPU that need "
                    "not be here",
                    device ? device : "GPU");
    if (s == XM_OK)
        *out = *plugin->ops->info(plugin, index);
    xm_core_destroy(core);
    return s;
}
