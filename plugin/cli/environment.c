/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks environment variables before a command runs, so that each wrong value ends every command
 * with the same exit code. xm_cli_start has checked XM_DEBUG already. Variables that name files are
 * checked when the files are opened.
 */
#include <sys/stat.h>

#include "plugin/cli/commands.h"
#include "runtime/config.h"
#include "runtime/device_info.h"
#include "runtime/util/log.h"
#include "transformations/pipeline.h"

/* Variables that set the property of the same name. */
static enum xm_status
check_properties(struct xm_error *err)
{
    static const char *const names[] = {"XM_NUMERICS", "XM_TUNED_KERNELS", "XM_AHEAD",
                                        "XM_REPLAY"};
    struct xm_config c;
    xm_config_init(&c);
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        const char *value = xm_env(names[i]);
        if (value)
            XM_TRY(xm_config_set(&c, names[i], value, err));
    }
    return XM_OK;
}

static enum xm_status
check_kernel_dir(struct xm_error *err)
{
    const char *dir = xm_env("XM_KERNEL_DIR");
    struct stat st;
    if (dir && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)))
        return xm_fail(err, XM_INVALID, "XM_KERNEL_DIR: there is no folder '%.150s'",
                       dir);
    return XM_OK;
}

int
xm_cli_check_environment(void)
{
    static enum xm_status (*const checks[])(struct xm_error *) = {
        xm_core_check_force,
        xm_pipeline_check_environment,
        xm_device_check_environment,
        check_properties,
        check_kernel_dir,
    };
    struct xm_error err = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(checks); i++) {
        if (checks[i](&err) != XM_OK)
            return xm_cli_usage("%s", err.text);
    }
    return XM_EXIT_OK;
}
