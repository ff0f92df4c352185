/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/generation_config.h"

#include <math.h>
#include <string.h>

#include "plugin/text/generation_file.h"
#include "runtime/util/strbuf.h"

/* Reads the end-of-text ids, unless a file read earlier had some. */
static enum xm_status
load_eos(yyjson_val *root, struct xm_generation_config *out, struct xm_error *err)
{
    static const char key[] = "eos_token_id";
    struct xm_token_list ids = {0};
    if (out->n_eos > 0)
        return XM_OK;
    enum xm_status status = xm_generation_file_ids(root, key, &ids, err);
    if (status == XM_OK && ids.n > XM_MAX_EOS)
        status = xm_fail(err, XM_UNSUPPORTED,
                         "there are %zu values of '%s', at most %d are supported", ids.n,
                         key, XM_MAX_EOS);
    if (status == XM_OK && ids.n > 0) {
        memcpy(out->eos, ids.ids, ids.n * sizeof(*ids.ids));
        out->n_eos = ids.n;
    }
    xm_token_list_free(&ids);
    return status;
}

/* Reads one id, unless a file read earlier had it. -1 counts as absent: some models write it for
 * "none". */
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

/* Reads the ids that are never chosen. Negative ids are skipped: some models write -1. */
static enum xm_status
load_suppressed(yyjson_val *root, struct xm_token_list *out, struct xm_error *err)
{
    static const char key[] = "suppress_tokens";
    yyjson_val *list = yyjson_obj_get(root, key), *item;
    size_t i, n;
    int32_t id;
    if (!list || yyjson_is_null(list))
        return XM_OK;
    XM_TRY(xm_json_array(root, key, &list, err));
    yyjson_arr_foreach(list, i, n, item)
    {
        if (yyjson_is_sint(item) && yyjson_get_sint(item) < 0)
            continue;
        XM_TRY(xm_json_token_id(item, key, &id, err));
        if (!xm_token_list_add(out, id))
            return xm_no_memory(err, "'%s'", key);
    }
    return XM_OK;
}

static enum xm_status
load_ids(yyjson_val *root, struct xm_generation_config *out, struct xm_error *err)
{
    XM_TRY(load_eos(root, out, err));
    XM_TRY(load_one(root, "bos_token_id", &out->bos, err));
    return load_one(root, "pad_token_id", &out->pad, err);
}

/* ---- recommendations ----------------------------------------------------------------- */

static void
load_count(yyjson_val *root, const char *key, uint64_t *out)
{
    uint64_t count = 0;
    if (xm_generation_file_count(root, key, &count, NULL) == XM_OK && count <= INT32_MAX)
        *out = count;
}

/* Reads the sampling parameters. A member of a wrong type or out of its range counts as absent. */
static void
load_sampling(yyjson_val *root, struct xm_generation_config *out)
{
    bool samples = false;
    out->sampling.temperature = 1.0f;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        double x = NAN; /* outside of every range */
        if (row->file && xm_sampling_is_number(row))
            xm_generation_file_number(root, row->file, &x, NULL);
        xm_sampling_recommend(&out->sampling, row, x);
    }
    xm_json_bool(root, "do_sample", &samples, NULL);
    if (!samples)
        out->sampling.temperature = 0.0f; /* greedy, but penalties stay set */
    load_count(root, "max_new_tokens", &out->max_tokens);
}

/* ---- files --------------------------------------------------------------------------- */

static enum xm_status
load_file(const char *folder, const char *name, bool recommends,
          struct xm_generation_config *out, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    yyjson_doc *doc = NULL;
    xm_strbuf_printf(&path, "%s/%s", folder, name);
    enum xm_status status = xm_strbuf_ok(&path) ? XM_OK : XM_NO_MEMORY;
    if (status == XM_OK)
        status = xm_generation_file_open(xm_strbuf_text(&path), &doc, &why);
    else
        xm_fail(&why, status, "out of memory for a path");
    if (status == XM_OK) {
        status = load_ids(yyjson_doc_get_root(doc), out, &why);
        xm_error_prefix(&why, "'%s'", xm_strbuf_text(&path));
    }
    if (status == XM_OK && recommends) {
        load_sampling(yyjson_doc_get_root(doc), out);
        status = load_suppressed(yyjson_doc_get_root(doc), &out->suppressed, &why);
        xm_error_prefix(&why, "'%s'", xm_strbuf_text(&path));
    }
    yyjson_doc_free(doc);
    xm_strbuf_free(&path);
    if (status == XM_OK || status == XM_NOT_FOUND)
        return XM_OK;
    return xm_fail(err, status, "%s", why.text);
}

void
xm_generation_config_init(struct xm_generation_config *out)
{
    *out = (struct xm_generation_config){.bos = -1, .pad = -1};
    xm_sampling_init(&out->sampling);
}

void
xm_generation_config_free(struct xm_generation_config *c)
{
    xm_token_list_free(&c->suppressed);
}

enum xm_status
xm_generation_config_load(const char *folder, struct xm_generation_config *out,
                          struct xm_error *err)
{
    xm_generation_config_init(out);
    XM_TRY(load_file(folder, "generation_config.json", true, out, err));
    XM_TRY(load_file(folder, "config.json", false, out, err));
    out->n_said = out->n_eos;
    return XM_OK;
}

bool
xm_generation_config_is_eos(const struct xm_generation_config *c, int32_t id)
{
    for (size_t i = 0; i < c->n_eos; i++)
        if (c->eos[i] == id)
            return true;
    return false;
}
