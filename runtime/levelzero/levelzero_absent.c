/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces levelzero.c in a build without Level Zero's headers: there is never a device.
 */
#include "runtime/levelzero/levelzero.h"

#include <assert.h>

enum xm_status
xm_ze_open(struct xm_ze **out, struct xm_error *err)
{
    *out = NULL;
    return xm_fail(err, XM_UNSUPPORTED, "this build has no Level Zero support");
}

void
xm_ze_close(struct xm_ze *ze)
{
    (void)ze;
}

size_t
xm_ze_count(const struct xm_ze *ze)
{
    (void)ze;
    return 0;
}

const struct xm_ze_facts *
xm_ze_facts_of(const struct xm_ze *ze, size_t i)
{
    (void)ze;
    (void)i;
    assert(!"there is no device");
    return NULL;
}

bool
xm_ze_find(const struct xm_ze *ze, const struct xm_device_info *d, size_t *i)
{
    (void)ze;
    (void)d;
    (void)i;
    return false;
}

void
xm_ze_measure(const struct xm_ze *ze, size_t i, struct xm_ze_telemetry *out)
{
    (void)ze;
    (void)i;
    *out = (struct xm_ze_telemetry){0};
}

bool
xm_ze_memory_free(const struct xm_device_info *d, uint64_t *bytes)
{
    (void)d;
    (void)bytes;
    return false;
}
