/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/device_list.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/compiler.h"

static const char *const names[] = {"AUTO", "HETERO", "MULTI", "BATCH"};

const char *
xm_device_list(const char *device)
{
    const size_t n = strcspn(device, ":");
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        if (strlen(names[i]) == n && memcmp(names[i], device, n) == 0)
            return device + n + (device[n] == ':');
    }
    return NULL;
}

bool
xm_device_list_next(const char **list, char name[XM_DEVICE_NAME])
{
    const char *at = *list + strspn(*list, ",");
    if (!*at)
        return false;
    snprintf(name, XM_DEVICE_NAME, "%.*s", (int)strcspn(at, ",("), at);
    *list = at + strcspn(at, ",");
    return true;
}
