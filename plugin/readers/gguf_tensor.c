/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of ggml's types, and conversion of tensors to the project's weights.
 */
#include <inttypes.h>

#include "plugin/readers/gguf_records.h"

static const struct xm_gguf_type types[] = {
#define TYPE(number, text, columns, bytes) {number, #text, columns, bytes},
#include "plugin/readers/gguf_types.def"
};

const struct xm_gguf_type *
xm_gguf_find_type(uint32_t number)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(types); i++) {
        if (types[i].number == number)
            return &types[i];
    }
    return NULL;
}

const struct xm_gguf_tensor *
xm_gguf_find_tensor(const struct xm_gguf *g, const char *name)
{
    return xm_gguf_find_name(g->tensors_by_name, g->n_tensors, name);
}

void
xm_gguf_tensor_dims(const struct xm_gguf_tensor *t, uint64_t dim[XM_GGUF_MAX_RANK])
{
    for (uint32_t i = 0; i < t->rank; i++)
        dim[i] = t->ne[t->rank - 1 - i];
}

/* Sets the weight format or (ELEMENTS) the element type that has the type's name. False: there is
 * none. */
static bool
find_format(const struct xm_gguf_type *t, struct xm_weight *out)
{
    out->format = XM_WEIGHT_ELEMENTS;
    if (t->columns == 1) {
        out->element = xm_element_parse(t->text);
        return out->element != XM_ELEMENT_COUNT;
    }
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++) {
        if (strcmp(xm_weight_formats[f].text, t->text) == 0) {
            out->format = (enum xm_weight_format)f;
            return true;
        }
    }
    return false;
}

enum xm_status
xm_gguf_weight(const struct xm_gguf_tensor *t, struct xm_weight *out,
               struct xm_error *err)
{
    struct xm_weight w = {
        .rank = t->rank == 0  ? 1
                : t->rank < 3 ? t->rank
                              : 3,
        .experts = t->ne[2],
        .rows = t->ne[1],
        .cols = t->ne[0],
        .data = t->data,
    };
    if (!find_format(t->type, &w))
        return xm_fail(err, XM_UNSUPPORTED,
                       "tensor '%.*s': weights of type %s are not supported",
                       XM_GGUF_SHOW(t->name), t->type->text);
    if (t->ne[3] != 1)
        return xm_fail(err, XM_UNSUPPORTED,
                       "tensor '%.*s': expected a weight of at most 3 dimensions, found "
                       "4 with an outermost dimension of %" PRIu64,
                       XM_GGUF_SHOW(t->name), t->ne[3]);
    const char *wrong = xm_weight_check(&w);
    if (wrong)
        return xm_fail(err, XM_INVALID, "tensor '%.*s': %s", XM_GGUF_SHOW(t->name),
                       wrong);
    *out = w;
    return XM_OK;
}
