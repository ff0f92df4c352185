/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties as callers give them: key and value arguments, or an array of pairs.
 */
#include <string.h>

#include "plugin/api/api.h"

/* More than anyone gives: a count that is none would walk over the caller's stack. */
enum { MAX_ARGS = 256 };

/* The only key whose value is not text. */
static ov_status_e
check_key(const char *key)
{
    if (strcmp(key, "CACHE_ENCRYPTION_CALLBACKS") != 0)
        return OK;
    return xm_api_fail(GENERAL_ERROR, "%s: kernels in the cache are not encrypted", key);
}

ov_status_e
xm_api_properties_from_array(size_t n, const ov_property_t *properties,
                             struct xm_property **out)
{
    if (n > 0 && !properties)
        return INVALID_C_PARAM;
    for (size_t i = 0; i < n; i++) {
        if (!properties[i].key || !properties[i].value)
            return INVALID_C_PARAM;
        ov_status_e s = check_key(properties[i].key);
        if (s != OK)
            return s;
    }
    struct xm_property *p = xm_calloc(n, sizeof(*p));
    if (!p)
        return xm_api_fail(GENERAL_ERROR, "out of memory for %zu properties", n);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct xm_property){properties[i].key, properties[i].value};
    *out = p;
    return OK;
}

ov_status_e
xm_api_properties_from_args(size_t n, va_list args, struct xm_property **out)
{
    if (n % 2 != 0 || n > MAX_ARGS)
        return INVALID_C_PARAM;
    ov_property_t *given = xm_calloc(n / 2, sizeof(*given));
    if (!given)
        return xm_api_fail(GENERAL_ERROR, "out of memory for %zu properties", n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        given[i].key = va_arg(args, const char *);
        given[i].value = va_arg(args, const void *);
    }
    ov_status_e s = xm_api_properties_from_array(n / 2, given, out);
    xm_free(given);
    return s;
}
