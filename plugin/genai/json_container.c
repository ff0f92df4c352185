/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON values: checked and compacted when they are created, and stored as text. Numbers keep their
 * spelling.
 */
#include <string.h>

#include "plugin/genai/genai.h"
#include "runtime/util/json.h"

static void
destroy(ov_genai_json_container *c)
{
    xm_strbuf_free(&c->text);
    xm_free(c);
}

ov_genai_json_container *
xm_genai_json_take(struct xm_strbuf *text)
{
    ov_genai_json_container *c = xm_strbuf_ok(text) ? xm_calloc(1, sizeof(*c)) : NULL;
    if (c) {
        c->text = *text;
        *text = (struct xm_strbuf){0};
    }
    xm_strbuf_free(text);
    if (!c || xm_api_handle_add(c, XM_API_JSON))
        return c;
    destroy(c);
    return NULL;
}

static ov_genai_json_container_status_e
fail_memory(void)
{
    xm_api_fail(GENERAL_ERROR, "out of memory for JSON");
    return OV_GENAI_JSON_CONTAINER_ERROR;
}

static ov_genai_json_container_status_e
create(const char *json, size_t n, ov_genai_json_container **out)
{
    struct xm_strbuf text = {0};
    if (!out)
        return OV_GENAI_JSON_CONTAINER_INVALID_PARAM;
    xm_strbuf_add_n(&text, json, n);
    ov_genai_json_container *c = xm_genai_json_take(&text);
    if (!c)
        return fail_memory();
    *out = c;
    return OV_GENAI_JSON_CONTAINER_OK;
}

ov_genai_json_container_status_e
ov_genai_json_container_create(ov_genai_json_container **container)
{
    return ov_genai_json_container_create_object(container);
}

ov_genai_json_container_status_e
ov_genai_json_container_create_object(ov_genai_json_container **container)
{
    return create("{}", 2, container);
}

ov_genai_json_container_status_e
ov_genai_json_container_create_array(ov_genai_json_container **container)
{
    return create("[]", 2, container);
}

/* Parses JSON. Numbers must fit in a double, but keep their spelling. */
static enum xm_status
parse(const char *json, yyjson_doc **out, struct xm_error *err)
{
    const size_t n = strlen(json);
    XM_TRY(xm_json_parse(json, n, out, err));
    yyjson_doc_free(*out);
    /* yyjson's parameter is not const, but the text is only read */
    *out = yyjson_read_opts((char *)(uintptr_t)json, n, YYJSON_READ_NUMBER_AS_RAW,
                            &xm_json_allocator, NULL);
    return *out ? XM_OK : xm_no_memory(err, "%zu bytes of JSON", n);
}

ov_genai_json_container_status_e
ov_genai_json_container_create_from_json_string(ov_genai_json_container **container,
                                                const char *json_str)
{
    struct xm_error err = {0};
    yyjson_doc *doc = NULL;
    size_t n = 0;
    if (!container || !json_str)
        return OV_GENAI_JSON_CONTAINER_INVALID_PARAM;
    if (parse(json_str, &doc, &err) != XM_OK) {
        xm_genai_status(&err);
        return err.status == XM_NO_MEMORY ? OV_GENAI_JSON_CONTAINER_ERROR
                                          : OV_GENAI_JSON_CONTAINER_INVALID_JSON;
    }
    char *text =
        yyjson_write_opts(doc, YYJSON_WRITE_NOFLAG, &xm_json_allocator, &n, NULL);
    yyjson_doc_free(doc);
    const ov_genai_json_container_status_e s =
        text ? create(text, n, container) : fail_memory();
    xm_free(text);
    return s;
}

void
ov_genai_json_container_free(ov_genai_json_container *container)
{
    if (xm_api_handle_drop(container, XM_API_JSON))
        destroy(container);
}

ov_genai_json_container_status_e
ov_genai_json_container_to_json_string(const ov_genai_json_container *container,
                                       char *output, size_t *output_size)
{
    if (!xm_api_is(container, XM_API_JSON) || !output_size)
        return OV_GENAI_JSON_CONTAINER_INVALID_PARAM;
    return xm_genai_give(&container->text, output, output_size)
               ? OV_GENAI_JSON_CONTAINER_OK
               : OV_GENAI_JSON_CONTAINER_OUT_OF_BOUNDS;
}

ov_genai_json_container_status_e
ov_genai_json_container_copy(const ov_genai_json_container *source,
                             ov_genai_json_container **target)
{
    if (!xm_api_is(source, XM_API_JSON))
        return OV_GENAI_JSON_CONTAINER_INVALID_PARAM;
    return create(xm_strbuf_text(&source->text), source->text.n, target);
}
