/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/number.h"

const char *
xm_mesh_list(const char *device)
{
    static const char prefix[] = "MESH:";
    if (!device)
        return NULL;
    if (strncmp(device, prefix, sizeof(prefix) - 1) == 0)
        return device + sizeof(prefix) - 1;
    return strchr(device, ',') && !strchr(device, ':') ? device : NULL;
}

static enum xm_status
add_device(struct xm_mesh_devices *d, const char *list, const char *name, size_t n,
           struct xm_error *err)
{
    if (n == 0 || n >= XM_DEVICE_NAME)
        return xm_fail(err, XM_INVALID,
                       "a mesh's list has an empty or too long name: '%.60s'", list);
    if (d->n == XM_MOST_RANKS)
        return xm_fail(err, XM_INVALID, "a mesh has %d devices at most", XM_MOST_RANKS);
    memcpy(d->name[d->n], name, n);
    d->name[d->n][n] = '\0';
    d->share[d->n++] = 1.0;
    return XM_OK;
}

/* "0.7,0.3)" */
static enum xm_status
parse_shares(struct xm_mesh_devices *d, const char *at, struct xm_error *err)
{
    const char *shares = at;
    for (uint32_t i = 0; i < d->n; i++) {
        char *end = NULL;
        d->share[i] = xm_parse_double(at, &end);
        const char wanted = i + 1 < d->n ? ',' : ')';
        if (end == at || !(d->share[i] > 0.0) || !isfinite(d->share[i]) || *end != wanted)
            return xm_fail(err, XM_INVALID,
                           "a mesh of %u devices takes as many shares above 0, as in "
                           "MESH:GPU.0,GPU.1(0.7,0.3); found '(%.60s'",
                           d->n, shares);
        at = end + 1;
    }
    return *at == '\0' ? XM_OK
                       : xm_fail(err, XM_INVALID, "a mesh's name ends behind its shares");
}

enum xm_status
xm_mesh_parse(const char *list, uint32_t ranks, struct xm_mesh_devices *out,
              struct xm_error *err)
{
    const char *at = list;
    *out = (struct xm_mesh_devices){0};
    do {
        const size_t n = strcspn(at, ",(");
        XM_TRY(add_device(out, list, at, n, err));
        at += n;
    } while (*at == ',' && at++);
    while (out->n < ranks && out->n > 0 && strcspn(list, ",(") == (size_t)(at - list))
        XM_TRY(add_device(out, list, list, (size_t)(at - list), err));
    if (ranks && out->n != ranks)
        return xm_fail(err, XM_INVALID,
                       "%u devices are named for %u processes: name one for all, or one "
                       "for each",
                       out->n, ranks);
    if (out->n < 2)
        return xm_fail(err, XM_INVALID,
                       "a mesh is of two devices or more, as MESH:GPU.0,GPU.1");
    return *at == '(' ? parse_shares(out, at + 1, err) : XM_OK;
}
