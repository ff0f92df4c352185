/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a row of a variant table: the first that does not refuse, or the one XM_FORCE
 * names.
 */
#include "primitives/variant.h"

#include <string.h>

#include "runtime/util/log.h"

static const char *
family_refusal(enum xm_family family, const struct xm_device_info *device)
{
    switch (family) {
    case XM_FAMILY_VEC:
        return device->kind == XM_DEVICE_CPU ? NULL : "written for CPU devices";
    case XM_FAMILY_SG:
        return xm_device_really_has(device, XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE)
                   ? NULL
                   : "the device has no sub-groups of a required size";
    case XM_FAMILY_HOST:
        return xm_device_really_has(device, XM_CAP_HOST_VISIBLE)
                   ? NULL
                   : "the host cannot read the device's memory";
    default:
        return NULL;
    }
}

const char *
xm_variant_refusal(const struct xm_variant *row, const struct xm_device_info *device,
                   const void *problem)
{
    const char *why = family_refusal(row->family, device);
    if (why)
        return why;
    if (!xm_device_really_has(device, row->caps))
        return "the device lacks a capability that the kernel needs";
    return row->refuses ? row->refuses(problem) : NULL;
}

/* The value of `step` in "step=value,step=value" and its length; NULL: not named. */
static const char *
forced_name(const char *step, size_t *len)
{
    const char *at = xm_env("XM_FORCE");
    size_t n = strlen(step);
    while (at) {
        if (strncmp(at, step, n) == 0 && at[n] == '=') {
            *len = strcspn(at + n + 1, ",");
            return at + n + 1;
        }
        at = strchr(at, ',');
        if (at)
            at++;
    }
    return NULL;
}

static enum xm_status
choose_forced(const struct xm_variant *rows, size_t n, const char *name, size_t len,
              const char *step, const struct xm_device_info *device, const void *problem,
              size_t *out, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(rows[i].name) != len || strncmp(rows[i].name, name, len) != 0)
            continue;
        const char *why = xm_variant_refusal(&rows[i], device, problem);
        if (why)
            return xm_fail(err, XM_UNSUPPORTED,
                           "%s: XM_FORCE asks for %s, which refuses: %s", step,
                           rows[i].name, why);
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s (forced)", step, rows[i].name);
        *out = i;
        return XM_OK;
    }
    return xm_fail(err, XM_NOT_FOUND,
                   "%s: XM_FORCE asks for %.*s, which is not in its table", step,
                   (int)len, name);
}

enum xm_status
xm_variant_choose(const struct xm_variant *rows, size_t n, const char *step,
                  const struct xm_device_info *device, const void *problem, size_t *out,
                  struct xm_error *err)
{
    size_t len = 0;
    const char *forced = forced_name(step, &len);
    if (forced)
        return choose_forced(rows, n, forced, len, step, device, problem, out, err);
    const char *why = "its table is empty";
    for (size_t i = 0; i < n; i++) {
        why = xm_variant_refusal(&rows[i], device, problem);
        if (!why) {
            xm_debug(XM_DEBUG_DISPATCH, "%s: %s", step, rows[i].name);
            *out = i;
            return XM_OK;
        }
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s refused: %s", step, rows[i].name, why);
    }
    return xm_fail(err, XM_UNSUPPORTED, "%s: no kernel takes this: %s", step, why);
}
