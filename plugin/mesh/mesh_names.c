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
    if (n == 0)
        return xm_fail(err, XM_INVALID,
                       "the list of devices '%.60s' has an empty place: names stand "
                       "apart by single commas, as GPU.0,GPU.1",
                       list);
    if (n >= XM_DEVICE_NAME)
        return xm_fail(err, XM_INVALID,
                       "'%.*s' is no device: a name has at most %d characters",
                       (int)(n < 60 ? n : 60), name, XM_DEVICE_NAME - 1);
    if (d->n == XM_MOST_RANKS)
        return xm_fail(err, XM_INVALID,
                       "'%.60s' names more than %d devices, as many as a mesh has at "
                       "most",
                       list, XM_MOST_RANKS);
    memcpy(d->name[d->n], name, n);
    d->name[d->n][n] = '\0';
    d->share[d->n++] = 1.0;
    return XM_OK;
}

static enum xm_status
fail_shares(const struct xm_mesh_devices *d, const char *shares, const char *why,
            struct xm_error *err)
{
    return xm_fail(err, XM_INVALID,
                   "the shares '(%.60s' %s: a mesh of %u devices takes as many shares, "
                   "one of them above 0, as in GPU.0,GPU.1(0.7,0.3)",
                   shares, why, d->n);
}

/* Parses the shares behind the '(', such as "0.7,0.3)", one for each device. */
static enum xm_status
parse_shares(struct xm_mesh_devices *d, const char *shares, struct xm_error *err)
{
    const char *at = shares;
    double sum = 0.0;
    if (!strchr(shares, ')'))
        return fail_shares(d, shares, "lack the ')' at their end", err);
    for (uint32_t i = 0; i < d->n; i++, at++) {
        const char wanted = i + 1 < d->n ? ',' : ')';
        char *end = NULL;
        d->share[i] = xm_parse_double(at, &end);
        if (end == at || (*end != ',' && *end != ')'))
            return fail_shares(d, shares, "are no list of numbers", err);
        if (!(d->share[i] >= 0.0) || !isfinite(d->share[i]))
            return fail_shares(d, shares, "hold a number that is negative or not finite",
                               err);
        if (*end != wanted)
            return fail_shares(d, shares, "are too few or too many", err);
        sum += d->share[i];
        at = end;
    }
    if (*at != '\0')
        return fail_shares(d, shares, "have text behind their ')'", err);
    return sum > 0.0 ? XM_OK : fail_shares(d, shares, "are all 0", err);
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
                       "'%.60s' names one device, and a mesh is of two devices or more, "
                       "as MESH:GPU.0,GPU.1",
                       list);
    return *at == '(' ? parse_shares(out, at + 1, err) : XM_OK;
}

void
xm_mesh_leave_out(struct xm_mesh_devices *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->share[i] == 0.0)
            continue;
        memmove(d->name[n], d->name[i], XM_DEVICE_NAME);
        d->share[n++] = d->share[i];
    }
    d->n = n;
}
