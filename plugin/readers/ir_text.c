/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the texts inside IR attributes: numbers, dimensions, shapes, lists of names.
 */
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "transformations/graph/bounds.h"

static bool
parse_digits(const char *text, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || !xm_mul_size(v, 10, &v) ||
            !xm_add_size(v, (uint64_t)(text[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool
xm_ir_parse_u64(const char *text, uint64_t *out)
{
    return parse_digits(text, strlen(text), out);
}

bool
xm_ir_parse_dim(const char *text, size_t n, int64_t *out)
{
    struct xm_bound b;
    if (!xm_bound_parse(text, n, &b))
        return false;
    *out = xm_bound_is_fixed(b) ? b.min : -1;
    return true;
}

const char *
xm_ir_parse_shape(const char *text, int64_t *dim, uint32_t *rank)
{
    struct xm_bound bounds[XM_MAX_RANK];
    const char *why = xm_bounds_parse(text, bounds, rank);
    for (uint32_t i = 0; !why && i < *rank; i++)
        dim[i] = xm_bound_is_fixed(bounds[i]) ? bounds[i].min : -1;
    return why;
}

/* Copies one name without its escapes; returns the position behind it. */
static const char *
copy_name(const char *text, char *to)
{
    for (; *text && *text != ','; text++) {
        if (text[0] == '\\' && (text[1] == ',' || text[1] == '\\'))
            text++;
        *to++ = *text;
    }
    *to = '\0';
    return text;
}

enum xm_status
xm_ir_split_names(struct xm_arena *arena, const char *text, const char *const **names,
                  uint32_t *n, struct xm_error *err)
{
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == ',';
    const char **list = xm_arena_alloc(arena, most * sizeof(*list));
    char *to = xm_arena_alloc(arena, strlen(text) + 1);
    if (!list || !to)
        return xm_no_memory(err, "tensor names");
    uint32_t count = 0;
    while (*text) {
        list[count++] = to;
        text = copy_name(text, to);
        to += strlen(to) + (*text == ',');
        text += *text == ',';
    }
    *names = list;
    *n = count;
    return XM_OK;
}

const char *
xm_ir_attr(const struct xm_ir_layer *l, const char *key)
{
    for (const struct xm_ir_text *a = l->data; a; a = a->next) {
        if (strcmp(a->key, key) == 0)
            return a->value;
    }
    return NULL;
}

enum xm_status
xm_ir_need(const struct xm_ir_layer *l, const char *key, const char **value,
           struct xm_error *err)
{
    *value = xm_ir_attr(l, key);
    return *value ? XM_OK
                  : xm_fail(err, XM_INVALID, "the attribute '%s' is missing", key);
}
