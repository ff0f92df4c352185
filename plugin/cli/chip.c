/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/chip.h"

#include <stdio.h>
#include <string.h>

#include "plugin/plugin.h"

static enum xm_status
imagine(const char *row, struct xm_device_info *info, struct xm_error *err)
{
    *info = (struct xm_device_info){
        .kind = XM_DEVICE_GPU,
        .caps = XM_CAP_FP16 | XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | XM_CAP_SG_SHORT |
                XM_CAP_SG_CHAR | XM_CAP_USM_HOST | XM_CAP_USM_DEVICE | XM_CAP_USM_SHARED,
        .compute_units = 64,
        .max_work_group = 512,
        .local_bytes = 64 << 10,
        .max_alloc_bytes = (uint64_t)4 << 30,
        .base_align = 128,
        .sub_group_sizes = {8, 16, 32},
    };
    snprintf(info->name, sizeof(info->name), "%s", row);
    XM_TRY(xm_device_pretend(info, row, err));
    info->pretended = 0;
    if (info->integrated)
        info->global_bytes = UINT64_MAX; /* the host's, which is known */
    return XM_OK;
}

enum xm_status
xm_cli_check_chip(const char *device_as, struct xm_error *err)
{
    struct xm_device_info info;
    return imagine(device_as, &info, err);
}

enum xm_status
xm_cli_find_chip(const char *device, const char *device_as, struct xm_device_info *out,
                 struct xm_error *err)
{
    const struct xm_device_info *infos = NULL;
    struct xm_core *core = NULL;
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    size_t n = 0;
    if (device_as)
        return imagine(device_as, out, err);
    XM_TRY(xm_core_create(&core, err));
    enum xm_status s = xm_core_find(core, device, &plugin, &index, err);
    if (s == XM_OK)
        s = xm_engine_list(&infos, &n, err);
    if (s == XM_OK && (index >= n || strcmp(plugin->ops->name, "GPU") != 0))
        s = xm_fail(err, XM_NOT_FOUND,
                    "%s is no OpenCL device; --device-as takes an Intel GPU that need "
                    "not be here",
                    device ? device : "GPU");
    if (s == XM_OK)
        *out = infos[index];
    xm_core_destroy(core);
    return s;
}
