/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/json_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/json.h"
#include "runtime/util/memory.h"
#include "runtime/util/utf8.h"

void
xm_json_begin(struct xm_json_out *j)
{
    *j = (struct xm_json_out){.doc = yyjson_mut_doc_new(&xm_json_allocator)};
    j->root = j->doc ? yyjson_mut_obj(j->doc) : NULL;
    j->failed = j->root == NULL;
    if (j->root)
        yyjson_mut_doc_set_root(j->doc, j->root);
}

void
xm_json_end(struct xm_json_out *j)
{
    yyjson_mut_doc_free(j->doc);
    *j = (struct xm_json_out){0};
}

/* Adds a value. yyjson's functions refuse NULL values and parents, so that one failure makes the
 * following ones fail. */
static void
add(struct xm_json_out *j, yyjson_mut_val *parent, const char *key, yyjson_mut_val *value)
{
    bool good;
    if (key)
        good = yyjson_mut_obj_add(parent ? parent : j->root,
                                  yyjson_mut_strcpy(j->doc, key), value);
    else
        good = yyjson_mut_arr_append(parent, value);
    j->failed |= !good;
}

yyjson_mut_val *
xm_json_add_object(struct xm_json_out *j, yyjson_mut_val *parent, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj(j->doc);
    add(j, parent, key, v);
    return v;
}

yyjson_mut_val *
xm_json_add_array(struct xm_json_out *j, yyjson_mut_val *parent, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_arr(j->doc);
    add(j, parent, key, v);
    return v;
}

void
xm_json_add_text(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                 const char *text, size_t n)
{
    struct xm_strbuf clean = {0};
    xm_utf8_repair((struct xm_slice){text, n}, &clean);
    j->failed |= !xm_strbuf_ok(&clean);
    add(j, parent, key, yyjson_mut_strncpy(j->doc, xm_strbuf_text(&clean), clean.n));
    xm_strbuf_free(&clean);
}

void
xm_json_add_whole(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                  uint64_t n)
{
    add(j, parent, key, yyjson_mut_uint(j->doc, n));
}

void
xm_json_add_real(struct xm_json_out *j, yyjson_mut_val *parent, const char *key, double x)
{
    add(j, parent, key,
        isfinite(x) ? yyjson_mut_real(j->doc, x) : yyjson_mut_null(j->doc));
}

void
xm_json_add_bool(struct xm_json_out *j, yyjson_mut_val *parent, const char *key, bool b)
{
    add(j, parent, key, yyjson_mut_bool(j->doc, b));
}

void
xm_json_add_null(struct xm_json_out *j, yyjson_mut_val *parent, const char *key)
{
    add(j, parent, key, yyjson_mut_null(j->doc));
}

void
xm_json_add_value(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                  yyjson_mut_val *v)
{
    add(j, parent, key, v);
}

void
xm_json_add_ids(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                const int32_t *ids, size_t n)
{
    yyjson_mut_val *list = xm_json_add_array(j, parent, key);
    for (size_t i = 0; i < n; i++)
        add(j, list, NULL, yyjson_mut_sint(j->doc, ids[i]));
}

void
xm_json_add_parts(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                  const char *text, const char *separator)
{
    yyjson_mut_val *list = xm_json_add_array(j, parent, key);
    for (const char *end; *text; text = *end ? end + strlen(separator) : end) {
        end = strstr(text, separator);
        if (!end)
            end = text + strlen(text);
        if (end > text)
            xm_json_add_text(j, list, NULL, text, (size_t)(end - text));
    }
}

char *
xm_json_value_text(const yyjson_mut_val *v)
{
    return yyjson_mut_val_write_opts(v, 0, &xm_json_allocator, NULL, NULL);
}

bool
xm_json_write(const struct xm_json_out *j, struct xm_strbuf *out)
{
    size_t n = 0;
    char *text =
        j->failed ? NULL : yyjson_mut_write_opts(j->doc, 0, &xm_json_allocator, &n, NULL);
    if (text)
        xm_strbuf_add_n(out, text, n);
    xm_free(text);
    return text && xm_strbuf_ok(out);
}

enum xm_status
xm_json_print(struct xm_json_out *j, struct xm_error *err)
{
    size_t n = 0;
    char *text = j->failed ? NULL
                           : yyjson_mut_write_opts(j->doc, YYJSON_WRITE_PRETTY_TWO_SPACES,
                                                   &xm_json_allocator, &n, NULL);
    if (!text)
        return xm_no_memory(err, "the JSON output");
    fwrite(text, 1, n, stdout);
    fputc('\n', stdout);
    xm_free(text);
    return XM_OK;
}
