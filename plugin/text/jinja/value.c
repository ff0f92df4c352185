/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties and conversions of values that need no state of a run.
 */
#include "plugin/text/jinja/value.h"

#include <math.h>
#include <yyjson.h>

#include "plugin/text/jinja/run_state.h"

enum { MAX_NUMBER = 400 }; /* longest number, in characters */

const char *
xm_jinja_kind_name(enum xm_jinja_kind kind)
{
    static const char *const names[] = {
        "nothing",     "undefined", "none",        "a boolean", "an integer", "a float",
        "a string",    "a list",    "a tuple",     "a mapping", "a view",     "a range",
        "an iterator", "a cycler",  "a namespace", "loop",      "a function",
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
    case XM_JINJA_VIEW:
        return v.view->items->n > 0;
    case XM_JINJA_RANGE:
        return v.range->items->n > 0;
    case XM_JINJA_ITERATOR:
    case XM_JINJA_CYCLER:
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

static unsigned
digit_of(char c)
{
    const char lower = (char)(c | 32);
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return lower >= 'a' && lower <= 'z' ? (unsigned)(lower - 'a') + 10 : 99;
}

/* Returns the position behind a prefix such as "0x". If *base is 0, sets it to the prefix's base or
 * to 10; it stays 0 for a number with leading zeros such as "007", which Python refuses. */
static size_t
read_prefix(struct xm_slice text, size_t i, int *base)
{
    static const struct {
        char letter;
        int base;
    } prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    if (i + 2 < text.n && text.text[i] == '0')
        for (size_t k = 0; k < XM_ARRAY_LEN(prefixes); k++)
            if ((text.text[i + 1] | 32) == prefixes[k].letter &&
                (*base == 0 || *base == prefixes[k].base)) {
                *base = prefixes[k].base;
                return i + 2 + (text.text[i + 2] == '_');
            }
    if (*base == 0) {
        size_t zeros = i;
        while (zeros < text.n && (text.text[zeros] == '0' || text.text[zeros] == '_'))
            zeros++;
        *base = text.text[i] != '0' || zeros == text.n ? 10 : 0;
    }
    return i;
}

bool
xm_jinja_read_int_of(struct xm_slice text, int base, int64_t *out)
{
    bool negative = text.n > 0 && text.text[0] == '-';
    size_t i = text.n > 0 && (negative || text.text[0] == '+');
    uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
    if (i == text.n)
        return false;
    i = read_prefix(text, i, &base);
    if (base < 2 || base > 36 || i == text.n)
        return false;
    for (bool behind_digit = false; i < text.n; i++) {
        const unsigned digit = digit_of(text.text[i]);
        if (text.text[i] == '_' && behind_digit && i + 1 < text.n) {
            behind_digit = false;
            continue;
        }
        if (digit >= (unsigned)base || value > (most - digit) / (unsigned)base)
            return false;
        value = value * (unsigned)base + digit;
        behind_digit = true;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool
xm_jinja_read_int(struct xm_slice text, int64_t *out)
{
    return xm_jinja_read_int_of(text, 10, out);
}

/* Reads "inf", "infinity" and "nan", in upper or lower case, with an optional sign. False: it is
 * none of them. */
static bool
read_special(struct xm_slice text, double *out)
{
    static const struct {
        const char *name;
        double value;
    } names[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    const bool sign = text.n > 0 && (text.text[0] == '-' || text.text[0] == '+');
    const struct xm_slice rest = {text.text + sign, text.n - sign};
    for (size_t k = 0; k < XM_ARRAY_LEN(names); k++) {
        bool same = rest.n == strlen(names[k].name);
        for (size_t i = 0; same && i < rest.n; i++)
            same = (rest.text[i] | 32) == names[k].name[i];
        if (same) {
            *out = sign && text.text[0] == '-' ? -names[k].value : names[k].value;
            return true;
        }
    }
    return false;
}

/* Copies a number without the underscores between its digits. False: an underscore is elsewhere, or
 * the number is too long. */
static bool
copy_number(struct xm_slice text, char *out, size_t room, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.text[i];
        if (c == '_') {
            if (i == 0 || i + 1 == text.n || digit_of(text.text[i - 1]) > 9 ||
                digit_of(text.text[i + 1]) > 9)
                return false;
            continue;
        }
        if (*n == room)
            return false;
        out[(*n)++] = c;
    }
    return true;
}

/* Reads a float with the JSON reader, which is exact and independent of the locale. Forms that
 * Python allows and JSON does not ("+1", ".5", "1.", "01") are converted first. */
bool
xm_jinja_read_float(struct xm_slice text, double *out)
{
    /* room for a digit added to each dot */
    char plain[MAX_NUMBER], number[2 * MAX_NUMBER + 4];
    size_t i = 0, n = 0, n_plain = 0;
    if (read_special(text, out))
        return true;
    if (text.n == 0 || !copy_number(text, plain, sizeof(plain), &n_plain))
        return false;
    text = xm_slice_of(plain, n_plain);
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
    const char *end =
        yyjson_read_number(number, &value, YYJSON_READ_ALLOW_INF_AND_NAN, NULL, NULL);
    if (end != number + n)
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
