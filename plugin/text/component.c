/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/component.h"

#include <string.h>

#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

enum { MOST_NESTING = 8 };

const void *
xm_component_type(const struct xm_component *c, const char *name)
{
    const char *row = c->types;
    for (size_t i = 0; i < c->n_types; i++, row += c->type_bytes)
        if (strcmp(*(const char *const *)row, name) == 0)
            return row;
    return NULL;
}

static enum xm_status
load(const struct xm_component *c, yyjson_val *value, int depth, void *out,
     struct xm_error *err)
{
    const char *name;
    yyjson_val *list, *item;
    size_t i, n;
    XM_TRY(xm_json_type(value, c->name, &name, err));
    if (strcmp(name, "Sequence") != 0) {
        const void *type = xm_component_type(c, name);
        if (!type)
            return xm_fail(err, XM_UNSUPPORTED, "%s '%s' is not supported", c->name,
                           xm_utf8_shown(xm_slice_of(name, strlen(name))).text);
        const enum xm_status s = c->load(type, value, out, err);
        xm_error_prefix(err, "%s '%s'", c->name, name);
        return s;
    }
    XM_TRY(xm_json_array(value, c->list, &list, err));
    if (depth == MOST_NESTING)
        return xm_fail(err, XM_UNSUPPORTED, "sequences are nested deeper than %d levels",
                       depth);
    yyjson_arr_foreach(list, i, n, item)
    {
        XM_TRY(load(c, item, depth + 1, out, err));
    }
    return XM_OK;
}

enum xm_status
xm_component_load(const struct xm_component *c, yyjson_val *value, void *out,
                  struct xm_error *err)
{
    return !value || yyjson_is_null(value) ? XM_OK : load(c, value, 0, out, err);
}
