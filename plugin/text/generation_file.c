/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/generation_file.h"

enum xm_status
xm_generation_file_open(const char *path, yyjson_doc **out, struct xm_error *err)
{
    XM_TRY(xm_json_read(path, out, err));
    if (yyjson_is_obj(yyjson_doc_get_root(*out)))
        return XM_OK;
    yyjson_doc_free(*out);
    *out = NULL;
    return xm_fail(err, XM_INVALID, "'%s': not an object", path);
}

/* Returns the member `key`; NULL: it is absent or null. */
static yyjson_val *
member(yyjson_val *root, const char *key)
{
    yyjson_val *value = yyjson_obj_get(root, key);
    return yyjson_is_null(value) ? NULL : value;
}

static enum xm_status
wrong_type(yyjson_val *value, const char *key, const char *expected, struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "'%s' is %s, expected %s", key,
                   yyjson_get_type_desc(value), expected);
}

enum xm_status
xm_generation_file_count(yyjson_val *root, const char *key, uint64_t *out,
                         struct xm_error *err)
{
    yyjson_val *value = member(root, key);
    if (!value || (yyjson_is_sint(value) && yyjson_get_sint(value) == -1))
        return XM_OK;
    if (!yyjson_is_uint(value))
        return wrong_type(value, key, "a count", err);
    *out = yyjson_get_uint(value);
    return XM_OK;
}

enum xm_status
xm_generation_file_number(yyjson_val *root, const char *key, double *out,
                          struct xm_error *err)
{
    yyjson_val *value = member(root, key);
    if (!value)
        return XM_OK;
    if (!yyjson_is_num(value))
        return wrong_type(value, key, "a number", err);
    *out = yyjson_get_num(value);
    return XM_OK;
}

enum xm_status
xm_generation_file_ids(yyjson_val *root, const char *key, struct xm_token_list *out,
                       struct xm_error *err)
{
    yyjson_val *value = member(root, key);
    const bool is_list = yyjson_is_arr(value);
    const size_t n = is_list ? yyjson_arr_size(value) : value ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = 0;
        XM_TRY(
            xm_json_token_id(is_list ? yyjson_arr_get(value, i) : value, key, &id, err));
        if (!xm_token_list_add(out, id))
            return xm_no_memory(err, "'%s'", key);
    }
    return XM_OK;
}
