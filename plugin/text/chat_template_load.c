/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a model folder's chat template: tries each place in turn and takes the first template.
 */
#include "plugin/text/chat_template.h"

#include <string.h>

#include "plugin/text/ir_info.h"
#include "runtime/util/json.h"
#include "runtime/util/mapped_file.h"

static const char key[] = "chat_template";

/* Returns the template in a configuration file: a string, or the entry "default" of a list of named
 * templates. NULL: there is none. */
static yyjson_val *
find_template(yyjson_val *config)
{
    yyjson_val *value = yyjson_obj_get(config, key), *item;
    size_t i, n;
    if (!yyjson_is_arr(value))
        return yyjson_is_str(value) ? value : NULL;
    yyjson_arr_foreach(value, i, n, item)
    {
        yyjson_val *text = yyjson_obj_get(item, "template");
        if (yyjson_equals_str(yyjson_obj_get(item, "name"), "default") &&
            yyjson_is_str(text))
            return text;
    }
    return NULL;
}

/* ---- each kind of place; XM_NOT_FOUND: it has none -------------------------------- */

/* Reads the template from openvino_tokenizer.xml. A template that cannot be parsed counts as not
 * found, because exporters may write one in a form that only their own reader understands: the next
 * place may have the original. */
static enum xm_status
read_ir(const char *path, struct xm_chat_template **out, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    struct xm_error why = {0};
    enum xm_status s = xm_ir_info_read(path, key, &text, &why);
    if (s == XM_OK && text.n > 0)
        s = xm_chat_template_parse(xm_strbuf_text(&text), text.n, out, &why);
    else if (s == XM_OK)
        s = XM_NOT_FOUND;
    xm_strbuf_free(&text);
    if (s == XM_OK || s == XM_NO_MEMORY)
        return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
    return xm_fail(err, XM_NOT_FOUND, "'%s': %s", path, why.text);
}

static enum xm_status
read_text(const char *path, struct xm_chat_template **out, struct xm_error *err)
{
    struct xm_mapped_file file;
    XM_TRY(xm_mapped_file_open(path, &file, err));
    enum xm_status status =
        xm_chat_template_parse((const char *)file.bytes, (size_t)file.n_bytes, out, err);
    if (status != XM_OK)
        xm_error_prefix(err, "'%s'", path);
    xm_mapped_file_close(&file);
    return status;
}

static enum xm_status
read_json(const char *path, struct xm_chat_template **out, struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    XM_TRY(xm_json_read(path, &doc, err));
    yyjson_val *text = find_template(yyjson_doc_get_root(doc));
    enum xm_status status =
        text
            ? xm_chat_template_parse(yyjson_get_str(text), yyjson_get_len(text), out, err)
            : xm_fail(err, XM_NOT_FOUND, "the file has no text '%s'", key);
    yyjson_doc_free(doc);
    if (status != XM_OK)
        xm_error_prefix(err, "'%s' of '%s'", key, path);
    return status;
}

/* ---- the places ------------------------------------------------------------------- */

typedef enum xm_status (*read_place)(const char *path, struct xm_chat_template **out,
                                     struct xm_error *err);

/* clang-format off */
static const struct {
    const char *file;
    read_place read;
} places[] = {
    { "openvino_tokenizer.xml", read_ir   },
    { "chat_template.jinja",    read_text },
    { "chat_template.json",     read_json },
    { "tokenizer_config.json",  read_json },
    { "processor_config.json",  read_json },
};
/* clang-format on */

/* Writes the path of a file of the folder to *out, which the caller frees. */
static enum xm_status
path_of(const char *folder, const char *file, struct xm_strbuf *out, struct xm_error *err)
{
    xm_strbuf_printf(out, "%s/%s", folder, file);
    if (xm_strbuf_ok(out))
        return XM_OK;
    xm_strbuf_free(out);
    return xm_no_memory(err, "a path");
}

static enum xm_status
load_from_folder(const char *folder, struct xm_chat_template **out, struct xm_error *err)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(places); i++) {
        struct xm_strbuf path = {0};
        struct xm_error why = {0};
        XM_TRY(path_of(folder, places[i].file, &path, err));
        const enum xm_status s = places[i].read(xm_strbuf_text(&path), out, &why);
        xm_strbuf_free(&path);
        if (s != XM_NOT_FOUND)
            return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
    }
    return xm_fail(err, XM_NOT_FOUND,
                   "there is no chat template in '%.200s': neither a file "
                   "chat_template.jinja nor a text '%s' in openvino_tokenizer.xml, "
                   "chat_template.json, tokenizer_config.json or processor_config.json",
                   folder, key);
}

/* Reads the special tokens from tokenizer_config.json. A missing file is not an error: *out is NULL
 * then. */
static enum xm_status
read_tokens(const char *folder, yyjson_doc **out, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    XM_TRY(path_of(folder, "tokenizer_config.json", &path, err));
    const enum xm_status s = xm_json_read(xm_strbuf_text(&path), out, &why);
    xm_strbuf_free(&path);
    return s == XM_OK || s == XM_NOT_FOUND ? XM_OK : xm_fail(err, s, "%s", why.text);
}

/* Adds the folder's special tokens to *tmpl, unless `found`, the result of loading it, is a
 * failure. Frees *tmpl if they cannot be read. */
static enum xm_status
add_tokens(const char *folder, enum xm_status found, struct xm_chat_template **tmpl,
           struct xm_error *err)
{
    yyjson_doc *tokens = NULL;
    if (found != XM_OK)
        return found;
    const enum xm_status s = read_tokens(folder, &tokens, err);
    if (s == XM_OK) {
        xm_chat_template_set_tokens(*tmpl, tokens);
        return XM_OK;
    }
    xm_chat_template_free(*tmpl);
    *tmpl = NULL;
    return s;
}

enum xm_status
xm_chat_template_load(const char *model_folder, struct xm_chat_template **out,
                      struct xm_error *err)
{
    *out = NULL;
    return add_tokens(model_folder, load_from_folder(model_folder, out, err), out, err);
}

enum xm_status
xm_chat_template_load_with(const char *model_folder, const char *text, size_t n,
                           struct xm_chat_template **out, struct xm_error *err)
{
    return add_tokens(model_folder, xm_chat_template_parse(text, n, out, err), out, err);
}
