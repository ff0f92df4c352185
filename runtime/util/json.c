/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/mapped_file.h"
#include "runtime/util/utf8.h"

/* The largest published tokenizer.json has 33 MiB. */
static const uint64_t MAX_FILE_BYTES = (uint64_t)512 << 20;

static void *
json_malloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return xm_malloc(bytes);
}

static void *
json_realloc(void *ctx, void *p, size_t old_bytes, size_t bytes)
{
    (void)ctx;
    (void)old_bytes;
    return xm_realloc(p, bytes);
}

static void
json_free(void *ctx, void *p)
{
    (void)ctx;
    xm_free(p);
}

const yyjson_alc xm_json_allocator = {json_malloc, json_realloc, json_free, NULL};

enum xm_status
xm_json_parse(const char *text, size_t n, yyjson_doc **out, struct xm_error *err)
{
    yyjson_read_err why;
    /* Without YYJSON_READ_INSITU the text is only read: the cast is yyjson's signature.
     */
    *out =
        yyjson_read_opts((char *)text, n, YYJSON_READ_NOFLAG, &xm_json_allocator, &why);
    if (*out)
        return XM_OK;
    if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return xm_no_memory(err, "%zu bytes of JSON", n);
    return xm_fail(err, XM_INVALID, "not valid JSON at byte %zu: %s", why.pos, why.msg);
}

/* Maps the file, as models are mapped: a pipe or a device is refused instead of waited for or read
 * without end. */
enum xm_status
xm_json_read(const char *path, yyjson_doc **out, struct xm_error *err)
{
    struct xm_mapped_file file;
    *out = NULL;
    XM_TRY(xm_mapped_file_open(path, &file, err));
    enum xm_status status =
        file.n_bytes > MAX_FILE_BYTES
            ? xm_fail(err, XM_INVALID,
                      "it has %" PRIu64 " bytes, at most %" PRIu64 " are supported",
                      file.n_bytes, MAX_FILE_BYTES)
            : xm_json_parse((const char *)file.bytes, (size_t)file.n_bytes, out, err);
    xm_mapped_file_close(&file);
    if (status != XM_OK)
        xm_error_prefix(err, "'%s'", path);
    return status;
}

/* Shows a key in a message. Keys may be tokens of a vocabulary, which are any text. */
static struct xm_shown
show(const char *key)
{
    return xm_utf8_shown(xm_slice_of(key, strlen(key)));
}

static enum xm_status
wrong_type(yyjson_val *value, const char *key, const char *expected, struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "'%s' is %s, expected %s", show(key).text,
                   value ? yyjson_get_type_desc(value) : "missing", expected);
}

/* The value of a member; NULL: absent, or null. */
static yyjson_val *
member(yyjson_val *object, const char *key)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    return yyjson_is_null(value) ? NULL : value;
}

enum xm_status
xm_json_bool(yyjson_val *object, const char *key, bool *out, struct xm_error *err)
{
    yyjson_val *value = member(object, key);
    if (!value)
        return XM_OK;
    if (!yyjson_is_bool(value))
        return wrong_type(value, key, "true or false", err);
    *out = yyjson_get_bool(value);
    return XM_OK;
}

enum xm_status
xm_json_text(yyjson_val *object, const char *key, struct xm_slice *out,
             struct xm_error *err)
{
    yyjson_val *value = member(object, key);
    if (!value)
        return XM_OK;
    if (!yyjson_is_str(value))
        return wrong_type(value, key, "a string", err);
    *out = xm_slice_of(yyjson_get_str(value), yyjson_get_len(value));
    return XM_OK;
}

enum xm_status
xm_json_count(yyjson_val *object, const char *key, uint32_t *out, struct xm_error *err)
{
    yyjson_val *value = member(object, key);
    if (!value)
        return XM_OK;
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) > INT32_MAX)
        return wrong_type(value, key, "a count", err);
    *out = (uint32_t)yyjson_get_uint(value);
    return XM_OK;
}

enum xm_status
xm_json_object(yyjson_val *object, const char *key, yyjson_val **out,
               struct xm_error *err)
{
    *out = member(object, key);
    return yyjson_is_obj(*out) ? XM_OK : wrong_type(*out, key, "an object", err);
}

enum xm_status
xm_json_array(yyjson_val *object, const char *key, yyjson_val **out, struct xm_error *err)
{
    *out = member(object, key);
    return yyjson_is_arr(*out) ? XM_OK : wrong_type(*out, key, "an array", err);
}

enum xm_status
xm_json_token_id(yyjson_val *value, const char *what, int32_t *out, struct xm_error *err)
{
    if (!yyjson_is_int(value))
        return wrong_type(value, what, "a token id", err);
    /* A negative integer read as unsigned is above every limit. */
    if (yyjson_get_uint(value) >= XM_MAX_TOKENS)
        return xm_fail(err, XM_INVALID, "'%s': token id %lld is not in 0..%d",
                       show(what).text, (long long)yyjson_get_sint(value),
                       XM_MAX_TOKENS - 1);
    *out = (int32_t)yyjson_get_uint(value);
    return XM_OK;
}

const char *
xm_json_what(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL:
        return "null";
    case YYJSON_TYPE_BOOL:
        return yyjson_get_bool(value) ? "true" : "false";
    case YYJSON_TYPE_NUM:
        return yyjson_is_int(value) ? "a whole number" : "a number with a fraction";
    case YYJSON_TYPE_RAW:
        return "a number";
    case YYJSON_TYPE_STR:
        return "a string";
    case YYJSON_TYPE_ARR:
        return "a list";
    case YYJSON_TYPE_OBJ:
        return "an object";
    default:
        return "missing";
    }
}

static void
show_string(yyjson_val *value, struct xm_shown *out)
{
    xm_utf8_show(xm_slice_of(yyjson_get_str(value), yyjson_get_len(value)), out->text + 1,
                 sizeof(out->text) - 2);
    const size_t n = strlen(out->text + 1);
    out->text[0] = out->text[n + 1] = '\'';
    out->text[n + 2] = '\0';
}

struct xm_shown
xm_json_shown(yyjson_val *value)
{
    struct xm_shown shown;
    const char *what = xm_json_what(value);
    const bool is_empty = yyjson_is_ctn(value) && yyjson_get_len(value) == 0;
    char *number = yyjson_is_num(value)
                       ? yyjson_val_write_opts(value, 0, &xm_json_allocator, NULL, NULL)
                       : NULL;
    if (yyjson_is_str(value))
        show_string(value, &shown);
    else
        snprintf(shown.text, sizeof(shown.text), "%s%s", is_empty ? "an empty" : "",
                 number     ? number
                 : is_empty ? strchr(what, ' ')
                            : what);
    xm_free(number);
    return shown;
}

enum xm_status
xm_json_type(yyjson_val *object, const char *component, const char **out,
             struct xm_error *err)
{
    *out = NULL;
    if (!yyjson_is_obj(object))
        return wrong_type(object, component, "an object", err);
    *out = yyjson_get_str(yyjson_obj_get(object, "type"));
    if (!*out)
        return xm_fail(err, XM_INVALID, "the %s has no 'type'", component);
    return XM_OK;
}
