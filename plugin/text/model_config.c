/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/model_config.h"

#include "plugin/text/json.h"
#include "runtime/util/strbuf.h"

static enum xm_status
load_eos(yyjson_val *root, struct xm_model_ids *out, struct xm_error *err)
{
    yyjson_val *value = yyjson_obj_get(root, "eos_token_id"), *item;
    size_t i, n;
    if (!value || yyjson_is_null(value) || out->n_eos > 0)
        return XM_OK;
    if (!yyjson_is_arr(value)) {
        XM_TRY(xm_json_token_id(value, "eos_token_id", &out->eos[0], err));
        out->n_eos = 1;
        return XM_OK;
    }
    if (yyjson_arr_size(value) > XM_MAX_EOS)
        return xm_fail(err, XM_UNSUPPORTED, "%zu values of 'eos_token_id', at most %d",
                       yyjson_arr_size(value), XM_MAX_EOS);
    yyjson_arr_foreach(value, i, n, item)
    {
        XM_TRY(xm_json_token_id(item, "eos_token_id", &out->eos[i], err));
        out->n_eos = i + 1;
    }
    return XM_OK;
}

/* Some models write -1 for "none". */
static enum xm_status
load_one(yyjson_val *root, const char *key, int32_t *out, struct xm_error *err)
{
    yyjson_val *value = yyjson_obj_get(root, key);
    if (!value || yyjson_is_null(value) || *out >= 0)
        return XM_OK;
    if (yyjson_is_sint(value) && yyjson_get_sint(value) == -1)
        return XM_OK;
    return xm_json_token_id(value, key, out, err);
}

static enum xm_status
load_ids(yyjson_val *root, struct xm_model_ids *out, struct xm_error *err)
{
    if (!yyjson_is_obj(root))
        return xm_fail(err, XM_INVALID, "not an object");
    XM_TRY(load_eos(root, out, err));
    XM_TRY(load_one(root, "bos_token_id", &out->bos, err));
    return load_one(root, "pad_token_id", &out->pad, err);
}

static enum xm_status
load_file(const char *folder, const char *name, struct xm_model_ids *out,
          struct xm_error *err)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    yyjson_doc *doc = NULL;
    xm_strbuf_printf(&path, "%s/%s", folder, name);
    enum xm_status status = xm_strbuf_ok(&path) ? XM_OK : XM_NO_MEMORY;
    if (status == XM_OK)
        status = xm_json_read(xm_strbuf_text(&path), &doc, &why);
    else
        xm_fail(&why, status, "no memory for a path");
    if (status == XM_OK) {
        status = load_ids(yyjson_doc_get_root(doc), out, &why);
        xm_error_prefix(&why, "'%s'", xm_strbuf_text(&path));
    }
    yyjson_doc_free(doc);
    xm_strbuf_free(&path);
    if (status == XM_OK || status == XM_NOT_FOUND)
        return XM_OK;
    return xm_fail(err, status, "%s", why.text);
}

enum xm_status
xm_model_ids_load(const char *folder, struct xm_model_ids *out, struct xm_error *err)
{
    *out = (struct xm_model_ids){.bos = -1, .pad = -1};
    XM_TRY(load_file(folder, "generation_config.json", out, err));
    return load_file(folder, "config.json", out, err);
}

bool
xm_model_ids_is_eos(const struct xm_model_ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->n_eos; i++)
        if (ids->eos[i] == id)
            return true;
    return false;
}
