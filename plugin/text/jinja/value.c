/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said of a value without a run.
 */
#include "plugin/text/jinja/value.h"

#include <yyjson.h>

#include "plugin/text/jinja/run.h"

const char *
xm_jinja_kind_name(enum xm_jinja_kind kind)
{
    static const char *const names[] = {
        "nothing",     "undefined", "none",       "a boolean", "an integer",
        "a float",     "a string",  "a list",     "a tuple",   "a mapping",
        "a namespace", "loop",      "a function",
    };
    return names[kind];
}

bool
xm_jinja_truth(struct xm_jinja_value v)
{
    switch (v.kind) {
    case XM_JINJA_ABSENT:
    case XM_JINJA_UNDEFINED:
    case XM_JINJA_NONE:
        return false;
    case XM_JINJA_BOOL:
        return v.truth;
    case XM_JINJA_INT:
        return v.integer != 0;
    case XM_JINJA_FLOAT:
        return v.real != 0.0;
    case XM_JINJA_STRING:
        return v.text.n > 0;
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        return v.list->n > 0;
    case XM_JINJA_DICT:
        return v.dict->n > 0;
    case XM_JINJA_NAMESPACE:
    case XM_JINJA_LOOP:
    case XM_JINJA_FUNCTION:
        break;
    }
    return true;
}

bool
xm_jinja_is_number(struct xm_jinja_value v)
{
    return v.kind == XM_JINJA_BOOL || v.kind == XM_JINJA_INT || v.kind == XM_JINJA_FLOAT;
}

bool
xm_jinja_is_list(struct xm_jinja_value v)
{
    return v.kind == XM_JINJA_LIST || v.kind == XM_JINJA_TUPLE;
}

int64_t
xm_jinja_to_int(struct xm_jinja_value v)
{
    return v.kind == XM_JINJA_BOOL ? v.truth : v.integer;
}

double
xm_jinja_to_double(struct xm_jinja_value v)
{
    return v.kind == XM_JINJA_FLOAT ? v.real : (double)xm_jinja_to_int(v);
}

bool
xm_jinja_read_int(struct xm_slice text, int64_t *out)
{
    bool negative = text.n > 0 && text.text[0] == '-';
    size_t i = text.n > 0 && (negative || text.text[0] == '+');
    uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
    if (i == text.n)
        return false;
    for (; i < text.n; i++) {
        unsigned digit = (unsigned)(text.text[i] - '0');
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* The JSON reader reads numbers exactly in any locale; what Python allows beyond JSON
 * ("+1", ".5", "1.", "01") is brought into its form first. */
bool
xm_jinja_read_float(struct xm_slice text, double *out)
{
    char number[64];
    size_t i = 0, n = 0;
    if (text.n == 0 || text.n > sizeof(number) - 4)
        return false;
    if (text.text[0] == '-')
        number[n++] = '-';
    i = text.text[0] == '-' || text.text[0] == '+';
    while (i + 1 < text.n && text.text[i] == '0' && text.text[i + 1] >= '0' &&
           text.text[i + 1] <= '9')
        i++;
    if (i + 1 < text.n && text.text[i] == '.')
        number[n++] = '0';
    for (; i < text.n; i++) {
        number[n++] = text.text[i];
        bool digit_follows =
            i + 1 < text.n && text.text[i + 1] >= '0' && text.text[i + 1] <= '9';
        if (text.text[i] == '.' && !digit_follows)
            number[n++] = '0';
    }
    number[n] = '\0';
    yyjson_val value;
    const char *end = yyjson_read_number(number, &value, 0, NULL, NULL);
    if (!end || *end)
        return false;
    *out = yyjson_get_num(&value);
    return true;
}

const struct xm_jinja_builtin *
xm_jinja_find(const struct xm_jinja_builtin *table, size_t n, struct xm_slice name)
{
    for (size_t i = 0; i < n; i++)
        if (xm_jinja_is(name, table[i].name))
            return &table[i];
    return NULL;
}
