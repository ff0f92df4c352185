/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/prefix_cache.h"

#include <stdio.h>

#include "plugin/cli/cli.h"

enum { DEFAULT_MIB = 4096 };

int
xm_cli_prefix_cache_check(const struct xm_cli_prefix_cache *a, const char *device)
{
    if (a->mib && !a->folder)
        return xm_cli_usage("option --prefix-cache-size needs --prefix-cache DIR");
    struct xm_error err = {0};
    if (!a->folder)
        return XM_EXIT_OK;
    const int code = xm_cli_refuse_reference(device, "--prefix-cache",
                                             "cannot save the KV cache of a text");
    if (code != XM_EXIT_OK || xm_prefix_store_check(a->folder, &err) == XM_OK)
        return code;
    xm_error_prefix(&err, "option --prefix-cache");
    return xm_cli_failed(&err);
}

enum xm_status
xm_cli_prefix_cache_open(const struct xm_cli_prefix_cache *a,
                         struct xm_compiled *compiled, struct xm_prefix_store **out,
                         struct xm_error *err)
{
    const uint64_t mib = a->mib ? a->mib : DEFAULT_MIB;
    const uint64_t bytes = mib < UINT64_MAX >> 20 ? mib << 20 : UINT64_MAX;
    *out = NULL;
    if (!a->folder)
        return XM_OK;
    const enum xm_status s = xm_prefix_store_open(compiled, a->folder, bytes, out, err);
    if (s != XM_OK)
        xm_error_prefix(err, "option --prefix-cache");
    else if (xm_prefix_store_made(*out))
        fprintf(stderr, "xemoe: created the folder '%s' for cached prefixes\n",
                xm_prefix_store_made(*out));
    return s;
}
