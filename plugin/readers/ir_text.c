/* SPDX-License-Identifier: Apache-2.0
 *
 * The small languages inside IR attributes: numbers, dimensions, shapes, lists of names.
 */
#include <string.h>

#include "plugin/readers/ir_records.h"

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

static void
trim(const char **text, size_t *n)
{
    while (*n && (*text)[0] == ' ') {
        (*text)++;
        (*n)--;
    }
    while (*n && (*text)[*n - 1] == ' ')
        (*n)--;
}

/* "1..10", "2..", "..7": a range is dynamic unless both ends are the same. */
static bool
parse_range(const char *text, size_t n, int64_t *out)
{
    size_t dots = 0;
    while (dots + 1 < n && memcmp(text + dots, "..", 2) != 0)
        dots++;
    if (dots + 1 >= n || n == 2)
        return false;
    const char *high_text = text + dots + 2;
    size_t n_high = n - dots - 2;
    uint64_t low = 0, high = INT64_MAX;
    if ((dots && !parse_digits(text, dots, &low)) ||
        (n_high && !parse_digits(high_text, n_high, &high)) || low > high ||
        high > INT64_MAX)
        return false;
    *out = low == high ? (int64_t)low : -1;
    return true;
}

bool
xm_ir_parse_dim(const char *text, size_t n, int64_t *out)
{
    uint64_t v;
    trim(&text, &n);
    if ((n == 1 && text[0] == '?') || (n == 2 && memcmp(text, "-1", 2) == 0)) {
        *out = -1;
        return true;
    }
    if (!parse_digits(text, n, &v))
        return parse_range(text, n, out);
    if (v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

const char *
xm_ir_parse_shape(const char *text, int64_t *dim, uint32_t *rank)
{
    *rank = 0;
    if (text[0] == '\0')
        return NULL;
    if (strcmp(text, "...") == 0)
        return "has no fixed rank";
    for (;;) {
        size_t n = strcspn(text, ",");
        if (*rank == XM_MAX_RANK)
            return "has more than 8 dimensions";
        if (!xm_ir_parse_dim(text, n, &dim[(*rank)++]))
            return "is not a list of dimensions";
        if (text[n] == '\0')
            return NULL;
        text += n + 1;
    }
}

/* Copies one name without its escapes; returns the place behind it. */
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
        return xm_fail(err, XM_NO_MEMORY, "out of memory for tensor names");
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
