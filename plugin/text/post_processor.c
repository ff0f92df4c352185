/* SPDX-License-Identifier: Apache-2.0
 *
 * Not supported: templates for pairs of texts, and templates in which the text occurs twice.
 */
#include "plugin/text/post_processor.h"

#include <string.h>

#include "plugin/text/component.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static enum xm_status
add_id(struct xm_token_list *list, yyjson_val *value, struct xm_error *err)
{
    int32_t id;
    XM_TRY(xm_json_token_id(value, "special token", &id, err));
    if (!xm_token_list_add(list, id))
        return xm_no_memory(err, "%zu special tokens", list->n);
    return XM_OK;
}

/* Appends the ids of {"SpecialToken": {"id": name}}: those that the member special_tokens lists for
 * the name. */
static enum xm_status
add_special(yyjson_val *token, yyjson_val *names, struct xm_token_list *list,
            struct xm_error *err)
{
    struct xm_slice name = {0};
    yyjson_val *ids, *id;
    size_t i, n;
    XM_TRY(xm_json_text(token, "id", &name, err));
    yyjson_val *entry = name.text ? yyjson_obj_getn(names, name.text, name.n) : NULL;
    if (!entry)
        return xm_fail(err, XM_INVALID, "special token '%s' has no ids",
                       xm_utf8_shown(name).text);
    XM_TRY(xm_json_array(entry, "ids", &ids, err));
    yyjson_arr_foreach(ids, i, n, id)
    {
        XM_TRY(add_id(list, id, err));
    }
    return XM_OK;
}

static enum xm_status
load_template(yyjson_val *value, struct xm_post_processor *out, struct xm_error *err)
{
    yyjson_val *items, *item, *names = yyjson_obj_get(value, "special_tokens");
    bool text_seen = false;
    size_t i, n;
    XM_TRY(xm_json_array(value, "single", &items, err));
    yyjson_arr_foreach(items, i, n, item)
    {
        yyjson_val *special = yyjson_obj_get(item, "SpecialToken");
        if (special) {
            XM_TRY(
                add_special(special, names, text_seen ? &out->after : &out->before, err));
            continue;
        }
        if (!yyjson_obj_get(item, "Sequence") || text_seen)
            return xm_fail(err, XM_UNSUPPORTED,
                           "item %zu is neither a SpecialToken nor the only Sequence", i);
        text_seen = true;
    }
    if (!text_seen)
        return xm_fail(err, XM_INVALID, "'single' has no Sequence");
    return XM_OK;
}

/* Appends the id of a pair such as ["<s>", 0]. */
static enum xm_status
add_named(yyjson_val *value, const char *key, struct xm_token_list *list,
          struct xm_error *err)
{
    yyjson_val *pair;
    XM_TRY(xm_json_array(value, key, &pair, err));
    return add_id(list, yyjson_arr_get(pair, 1), err);
}

static enum xm_status
load_cls_sep(yyjson_val *value, struct xm_post_processor *out, struct xm_error *err)
{
    XM_TRY(add_named(value, "cls", &out->before, err));
    return add_named(value, "sep", &out->after, err);
}

/* Does nothing: this processor only changes offsets into the text, which are not computed here. */
static enum xm_status
load_byte_level(yyjson_val *value, struct xm_post_processor *out, struct xm_error *err)
{
    (void)value, (void)out, (void)err;
    return XM_OK;
}

static const struct post_type {
    const char *name;
    enum xm_status (*load)(yyjson_val *value, struct xm_post_processor *out,
                           struct xm_error *err);
} types[] = {
    /* clang-format off */
    { "TemplateProcessing", load_template   },
    { "ByteLevel",          load_byte_level },
    { "RobertaProcessing",  load_cls_sep    },
    { "BertProcessing",     load_cls_sep    },
    /* clang-format on */
};

/* Puts the tokens of `outer`, a later processor of a sequence, around those of `out`. */
static bool
wrap(struct xm_post_processor *out, struct xm_post_processor *outer)
{
    bool ok = xm_token_list_add_n(&outer->before, out->before.ids, out->before.n) &&
              xm_token_list_add_n(&out->after, outer->after.ids, outer->after.n);
    struct xm_token_list swap = out->before;
    out->before = outer->before;
    outer->before = swap;
    return ok;
}

static enum xm_status
load_one(const void *type, yyjson_val *value, void *out, struct xm_error *err)
{
    struct xm_post_processor outer = {0};
    enum xm_status s = ((const struct post_type *)type)->load(value, &outer, err);
    if (s == XM_OK && !wrap(out, &outer))
        s = xm_no_memory(err, "special tokens");
    xm_post_processor_free(&outer);
    return s;
}

static const struct xm_component component = {
    .name = "post-processor",
    .list = "processors",
    .types = types,
    .n_types = XM_ARRAY_LEN(types),
    .type_bytes = sizeof(types[0]),
    .load = load_one,
};

enum xm_status
xm_post_processor_load(yyjson_val *value, struct xm_post_processor *out,
                       struct xm_error *err)
{
    return xm_component_load(&component, value, out, err);
}

void
xm_post_processor_free(struct xm_post_processor *post)
{
    xm_token_list_free(&post->before);
    xm_token_list_free(&post->after);
}
