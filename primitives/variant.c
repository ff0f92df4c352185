/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a row of a variant table: the first that does not refuse, or what XM_FORCE says.
 */
#include "primitives/variant.h"

#include <string.h>

#include "runtime/util/compiler.h"
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

const char *
xm_variant_drawback(const struct xm_variant *row, const struct xm_device_info *device)
{
    if (device->kind != XM_DEVICE_CPU)
        return NULL;
    switch (row->family) {
    case XM_FAMILY_GEN:
        return "written for GPUs: a CPU emulates work-groups";
    case XM_FAMILY_SG:
        return "written for GPUs: a CPU emulates sub-groups";
    default:
        return NULL;
    }
}

/* ---- XM_FORCE ------------------------------------------------------------------------ */

/* What XM_FORCE says about a step. */
struct force {
    const char *name; /* of the row, up to `len`; NULL: not named */
    size_t len;
    const enum xm_family *family; /* NULL: none preferred */
};

static const struct {
    const char *name;
    enum xm_family family;
} families[] = {
    {"ref", XM_FAMILY_ANY}, {"vec", XM_FAMILY_VEC},   {"gen", XM_FAMILY_GEN},
    {"sg", XM_FAMILY_SG},   {"host", XM_FAMILY_HOST},
};

static const enum xm_family *
family_named(const char *name, size_t len)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(families); i++) {
        if (strlen(families[i].name) == len && strncmp(families[i].name, name, len) == 0)
            return &families[i].family;
    }
    return NULL;
}

static enum xm_status
parse_force(const char *step, struct force *out, struct xm_error *err)
{
    const char *at = xm_env("XM_FORCE");
    size_t n = strlen(step);
    *out = (struct force){NULL, 0, NULL};
    while (at && *at) {
        size_t len = strcspn(at, ",");
        if (!memchr(at, '=', len)) {
            out->family = family_named(at, len);
            if (!out->family)
                return xm_fail(
                    err, XM_INVALID,
                    "XM_FORCE: '%.*s' is neither <step>=<variant> nor a family "
                    "(ref vec gen sg host)",
                    (int)len, at);
        } else if (strncmp(at, step, n) == 0 && at[n] == '=') {
            out->name = at + n + 1;
            out->len = len - n - 1;
        }
        at += len + (at[len] == ',');
    }
    return XM_OK;
}

static enum xm_status
choose_named(const struct xm_variant *rows, size_t n, const struct force *force,
             const char *step, const struct xm_device_info *device, const void *problem,
             size_t *out, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(rows[i].name) != force->len ||
            strncmp(rows[i].name, force->name, force->len) != 0)
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
                   (int)force->len, force->name);
}

static bool
choose_of_family(const struct xm_variant *rows, size_t n, enum xm_family family,
                 const char *step, const struct xm_device_info *device,
                 const void *problem, size_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].family != family || xm_variant_refusal(&rows[i], device, problem))
            continue;
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s (its family is forced)", step, rows[i].name);
        *out = i;
        return true;
    }
    return false;
}

enum xm_status
xm_variant_choose(const struct xm_variant *rows, size_t n, const char *step,
                  const struct xm_device_info *device, const void *problem, size_t *out,
                  struct xm_error *err)
{
    struct force force;
    XM_TRY(parse_force(step, &force, err));
    if (force.name)
        return choose_named(rows, n, &force, step, device, problem, out, err);
    if (force.family &&
        choose_of_family(rows, n, *force.family, step, device, problem, out))
        return XM_OK;
    const char *why = "its table is empty";
    for (size_t i = 0; i < n; i++) {
        why = xm_variant_refusal(&rows[i], device, problem);
        if (!why)
            why = xm_variant_drawback(&rows[i], device);
        if (!why) {
            xm_debug(XM_DEBUG_DISPATCH, "%s: %s", step, rows[i].name);
            *out = i;
            return XM_OK;
        }
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s refused: %s", step, rows[i].name, why);
    }
    return xm_fail(err, XM_UNSUPPORTED, "%s: no kernel takes this: %s", step, why);
}
