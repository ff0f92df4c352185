/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/pooling.h"

#include <string.h>

#include "runtime/util/json.h"
#include "runtime/util/strbuf.h"

/* The pooling modes of sentence-transformers: boolean members or, since version 5.4, values of the
 * member "pooling_mode". is_done: supported here. */
static const struct mode {
    const char *member, *value;
    bool is_done;
    enum xm_pooling pooling;
} modes[] = {
    /* clang-format off */
    { "pooling_mode_lasttoken",             "lasttoken",            true,  XM_POOLING_LAST },
    { "pooling_mode_mean_tokens",           "mean",                 true,  XM_POOLING_MEAN },
    { "pooling_mode_cls_token",             "cls",                  false, 0 },
    { "pooling_mode_max_tokens",            "max",                  false, 0 },
    { "pooling_mode_mean_sqrt_len_tokens",  "mean_sqrt_len_tokens", false, 0 },
    { "pooling_mode_weightedmean_tokens",   "weightedmean",         false, 0 },
    /* clang-format on */
};

bool
xm_pooling_of(const char *name, enum xm_pooling *out)
{
    const bool is_mean = strcmp(name, "mean") == 0;
    *out = is_mean ? XM_POOLING_MEAN : XM_POOLING_LAST;
    return is_mean || strcmp(name, "last") == 0;
}

/* Reads a file of the folder; *out is NULL if it does not exist. */
static enum xm_status
read_json(const char *folder, const char *name, yyjson_doc **out, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    *out = NULL;
    xm_strbuf_printf(&path, "%s/%s", folder, name);
    const enum xm_status s = xm_strbuf_ok(&path)
                                 ? xm_json_read(xm_strbuf_text(&path), out, &why)
                                 : xm_no_memory(&why, "a path");
    xm_strbuf_free(&path);
    return s == XM_OK || s == XM_NOT_FOUND ? XM_OK : xm_fail(err, s, "%s", why.text);
}

static bool
says(yyjson_val *root, const struct mode *m)
{
    yyjson_val *value = yyjson_obj_get(root, "pooling_mode");
    return yyjson_is_true(yyjson_obj_get(root, m->member)) ||
           (yyjson_is_str(value) && strcmp(yyjson_get_str(value), m->value) == 0);
}

static enum xm_status
find_mode(yyjson_val *root, enum xm_pooling *out, struct xm_error *err)
{
    const struct mode *found = NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(modes); i++) {
        if (!says(root, &modes[i]))
            continue;
        if (found)
            return xm_fail(err, XM_UNSUPPORTED,
                           "1_Pooling/config.json: the poolings '%s' and '%s' together "
                           "are not supported; last or mean alone are supported",
                           found->value, modes[i].value);
        found = &modes[i];
    }
    if (!found)
        return xm_fail(err, XM_UNSUPPORTED,
                       "1_Pooling/config.json names no supported pooling; last and mean "
                       "are supported");
    *out = found->pooling;
    return found->is_done ? XM_OK
                          : xm_fail(err, XM_UNSUPPORTED,
                                    "1_Pooling/config.json: pooling '%s' is not "
                                    "supported; last and mean are supported",
                                    found->value);
}

/* Refuses modules that change embeddings after the pooling. "Normalize" is accepted because
 * embeddings are always normalised. */
static enum xm_status
check_modules(yyjson_val *list, struct xm_error *err)
{
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    yyjson_val *module;
    size_t i, n;
    yyjson_arr_foreach(list, i, n, module)
    {
        const char *type = yyjson_get_str(yyjson_obj_get(module, "type"));
        const char *dot = type ? strrchr(type, '.') : NULL;
        const char *name = dot ? dot + 1 : type;
        bool is_known = !name;
        for (size_t k = 0; k < XM_ARRAY_LEN(known) && !is_known; k++)
            is_known = strcmp(name, known[k]) == 0;
        if (!is_known)
            return xm_fail(err, XM_UNSUPPORTED,
                           "modules.json: the module '%.80s', which changes embeddings, "
                           "is not supported",
                           name);
    }
    return XM_OK;
}

enum xm_status
xm_pooling_load(const char *folder, enum xm_pooling *out, struct xm_error *err)
{
    yyjson_doc *modules = NULL, *pooling = NULL;
    *out = XM_POOLING_LAST;
    enum xm_status s = read_json(folder, "modules.json", &modules, err);
    if (s == XM_OK)
        s = check_modules(yyjson_doc_get_root(modules), err);
    if (s == XM_OK)
        s = read_json(folder, "1_Pooling/config.json", &pooling, err);
    if (s == XM_OK && pooling)
        s = find_mode(yyjson_doc_get_root(pooling), out, err);
    yyjson_doc_free(modules);
    yyjson_doc_free(pooling);
    return s;
}
