/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads properties from variadic arguments (key, value, …) or from an array of pairs.
 */
#include <string.h>

#include "plugin/api/api.h"
#include "plugin/cache_cipher.h"
#include "runtime/util/number.h"

/* Converts the value of CACHE_ENCRYPTION_CALLBACKS, a pair of functions and the only value that is
 * not text, to text. */
static ov_status_e
take_cipher(const void *value, char text[XM_CIPHER_TEXT])
{
    struct xm_error err = {0};
    const ov_encryption_callbacks *given = value;
    if (!given->encrypt_func || !given->decrypt_func)
        return xm_api_fail(GENERAL_ERROR,
                           XM_CACHE_CIPHER_KEY ": both functions must be set");
    const struct xm_cache_cipher c = {given->encrypt_func, given->decrypt_func};
    xm_cache_cipher_add(c, text, &err);
    return xm_api_error(&err);
}

ov_status_e
xm_api_properties_from_array(size_t n, const ov_property_t *properties,
                             struct xm_property **out)
{
    if (n > 0 && !properties)
        return xm_api_fail(INVALID_C_PARAM, "the list of %zu properties is NULL", n);
    for (size_t i = 0; i < n; i++) {
        if (!properties[i].key || !properties[i].value)
            return xm_api_fail(INVALID_C_PARAM, "property %zu of %zu: its %s is NULL", i,
                               n, properties[i].key ? "value" : "key");
    }
    /* followed by memory for the text of a cipher */
    struct xm_property *p = xm_calloc(1, n * sizeof(*p) + XM_CIPHER_TEXT);
    if (!p)
        return xm_api_fail(GENERAL_ERROR, "out of memory for %zu properties", n);
    ov_status_e s = OK;
    for (size_t i = 0; i < n && s == OK; i++) {
        p[i] = (struct xm_property){properties[i].key, properties[i].value};
        if (strcmp(p[i].key, XM_CACHE_CIPHER_KEY) == 0) {
            p[i].value = (char *)(p + n);
            s = take_cipher(properties[i].value, (char *)(p + n));
        }
    }
    if (s == OK)
        *out = p;
    else
        xm_free(p);
    return s;
}

ov_status_e
xm_api_check_args(size_t n)
{
    return n % 2 == 0 && n <= XM_API_MOST_ARGS
               ? OK
               : xm_api_fail(INVALID_C_PARAM,
                             "the arguments for properties must be pairs of a key and a "
                             "value, at most %d in all; found %zu",
                             XM_API_MOST_ARGS, n);
}

ov_status_e
xm_api_properties_from_args(size_t n, va_list args, struct xm_property **out)
{
    ov_status_e s = xm_api_check_args(n);
    if (s != OK)
        return s;
    ov_property_t *given = xm_calloc(n / 2, sizeof(*given));
    if (!given)
        return xm_api_fail(GENERAL_ERROR, "out of memory for %zu properties", n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        given[i].key = va_arg(args, const char *);
        given[i].value = va_arg(args, const void *);
    }
    s = xm_api_properties_from_array(n / 2, given, out);
    xm_free(given);
    return s;
}
