/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators, as in Python. Integers that do not fit into 64 bits are an error.
 */
#include <math.h>

#include "plugin/text/jinja/format.h"

typedef struct xm_jinja_value value;

static enum xm_status
lists_equal(struct xm_jinja_run *r, const struct xm_jinja_list *a,
            const struct xm_jinja_list *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++)
        XM_TRY(xm_jinja_equal(r, a->items[i], b->items[i], out));
    return XM_OK;
}

static enum xm_status
dicts_equal(struct xm_jinja_run *r, const struct xm_jinja_dict *a,
            const struct xm_jinja_dict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) {
        const value *other = NULL;
        XM_TRY(xm_jinja_dict_find(r, b, a->keys[i], &other));
        *out = other != NULL;
        if (other)
            XM_TRY(xm_jinja_equal(r, a->values[i], *other, out));
    }
    return XM_OK;
}

static bool
numbers_equal(value a, value b)
{
    if (a.kind != XM_JINJA_FLOAT && b.kind != XM_JINJA_FLOAT)
        return xm_jinja_to_int(a) == xm_jinja_to_int(b);
    return xm_jinja_to_double(a) == xm_jinja_to_double(b);
}

static enum xm_status
same_kind_equal(struct xm_jinja_run *r, value a, value b, bool *out)
{
    switch (a.kind) {
    case XM_JINJA_STRING:
        *out = xm_slice_equal(a.text, b.text);
        return xm_jinja_charge_text(r, a.text.n == b.text.n ? a.text.n : 0);
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        return lists_equal(r, a.list, b.list, out);
    case XM_JINJA_DICT:
        return dicts_equal(r, a.dict, b.dict, out);
    case XM_JINJA_VIEW:
        *out = a.view == b.view;
        return *out || strcmp(a.view->name, "dict_values") == 0
                   ? XM_OK
                   : lists_equal(r, a.view->items, b.view->items, out);
    case XM_JINJA_RANGE:
        return lists_equal(r, a.range->items, b.range->items, out);
    case XM_JINJA_ITERATOR:
        *out = a.iterator == b.iterator;
        return XM_OK;
    case XM_JINJA_CYCLER:
        *out = a.cycler == b.cycler;
        return XM_OK;
    case XM_JINJA_NAMESPACE:
        *out = a.dict == b.dict;
        return XM_OK;
    case XM_JINJA_LOOP:
        *out = a.loop == b.loop;
        return XM_OK;
    case XM_JINJA_FUNCTION:
        *out = a.function == b.function;
        return XM_OK;
    default: /* none, undefined (numbers are compared elsewhere) */
        *out = true;
        return XM_OK;
    }
}

enum xm_status
xm_jinja_equal(struct xm_jinja_run *r, value a, value b, bool *out)
{
    if (xm_jinja_is_number(a) && xm_jinja_is_number(b)) {
        *out = numbers_equal(a, b);
        return XM_OK;
    }
    *out = false;
    if (a.kind != b.kind)
        return XM_OK;
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(same_kind_equal(r, a, b, out));
    r->depth--;
    return XM_OK;
}

static int
order_text(struct xm_slice a, struct xm_slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n > 0 ? memcmp(a.text, b.text, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static enum xm_status
order_lists(struct xm_jinja_run *r, const struct xm_jinja_list *a,
            const struct xm_jinja_list *b, int *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal = false;
        XM_TRY(xm_jinja_equal(r, a->items[i], b->items[i], &equal));
        if (!equal)
            return xm_jinja_order(r, a->items[i], b->items[i], out);
    }
    *out = (a->n > b->n) - (a->n < b->n);
    return XM_OK;
}

static int
order_numbers(value a, value b)
{
    if (a.kind != XM_JINJA_FLOAT && b.kind != XM_JINJA_FLOAT) {
        int64_t x = xm_jinja_to_int(a), y = xm_jinja_to_int(b);
        return (x > y) - (x < y);
    }
    double x = xm_jinja_to_double(a), y = xm_jinja_to_double(b);
    return (x > y) - (x < y);
}

static enum xm_status
fail_undefined(struct xm_jinja_run *r, struct xm_slice name)
{
    return xm_jinja_fail(r, "'%.*s' is undefined", (int)(name.n < 100 ? name.n : 100),
                         name.text);
}

enum xm_status
xm_jinja_order(struct xm_jinja_run *r, value a, value b, int *out)
{
    *out = 0;
    if (xm_jinja_is_number(a) && xm_jinja_is_number(b)) {
        *out = order_numbers(a, b);
        return XM_OK;
    }
    if (a.kind == XM_JINJA_STRING && b.kind == XM_JINJA_STRING) {
        *out = order_text(a.text, b.text);
        return xm_jinja_charge_text(r, a.text.n < b.text.n ? a.text.n : b.text.n);
    }
    if (a.kind == b.kind && xm_jinja_is_list(a)) {
        XM_TRY(xm_jinja_enter(r));
        XM_TRY(order_lists(r, a.list, b.list, out));
        r->depth--;
        return XM_OK;
    }
    if (a.kind == XM_JINJA_UNDEFINED || b.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, a.kind == XM_JINJA_UNDEFINED ? a.text : b.text);
    return xm_jinja_fail(r, "%s and %s cannot be compared", xm_jinja_kind_name(a.kind),
                         xm_jinja_kind_name(b.kind));
}

enum xm_status
xm_jinja_contains(struct xm_jinja_run *r, value container, value item, bool *out)
{
    const struct xm_jinja_list *items = NULL;
    const value *found = NULL;
    size_t at;
    *out = false;
    if (container.kind == XM_JINJA_DICT) {
        XM_TRY(xm_jinja_check_key(r, item));
        XM_TRY(xm_jinja_dict_find(r, container.dict, item, &found));
        *out = found != NULL;
        return XM_OK;
    }
    if (container.kind == XM_JINJA_STRING) {
        if (item.kind != XM_JINJA_STRING)
            return xm_jinja_fail(r, "'in' searches a string for %s, expected a string",
                                 xm_jinja_kind_name(item.kind));
        XM_TRY(xm_jinja_charge_text(r, container.text.n));
        XM_TRY(xm_jinja_find_text(r, container.text, item.text, 0, &at));
        *out = at != SIZE_MAX;
        return XM_OK;
    }
    XM_TRY(xm_jinja_iterate(r, container, &items));
    XM_TRY(xm_jinja_charge(r, items->n));
    for (size_t i = 0; i < items->n && !*out; i++)
        XM_TRY(xm_jinja_equal(r, items->items[i], item, out));
    return XM_OK;
}

enum xm_status
xm_jinja_compare(struct xm_jinja_run *r, struct xm_slice op, value a, value b, bool *out)
{
    bool equal = xm_jinja_is(op, "==");
    if (equal || xm_jinja_is(op, "!=")) {
        XM_TRY(xm_jinja_equal(r, a, b, out));
        *out = *out == equal;
        return XM_OK;
    }
    bool in = xm_jinja_is(op, "in");
    if (in || xm_jinja_is(op, "not in")) {
        XM_TRY(xm_jinja_contains(r, b, a, out));
        *out = *out == in;
        return XM_OK;
    }
    bool unordered = (a.kind == XM_JINJA_FLOAT && isnan(a.real)) ||
                     (b.kind == XM_JINJA_FLOAT && isnan(b.real));
    int order = 0;
    XM_TRY(xm_jinja_order(r, a, b, &order));
    bool or_equal = op.n == 2 && order == 0;
    *out = !unordered && (or_equal || (op.text[0] == '<' ? order < 0 : order > 0));
    return XM_OK;
}

static enum xm_status
fail_operands(struct xm_jinja_run *r, struct xm_slice op, value a, value b)
{
    if (a.kind == XM_JINJA_UNDEFINED || b.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, a.kind == XM_JINJA_UNDEFINED ? a.text : b.text);
    return xm_jinja_fail(r, "'%.*s' cannot be applied to %s and %s", (int)op.n, op.text,
                         xm_jinja_kind_name(a.kind), xm_jinja_kind_name(b.kind));
}

enum xm_status
xm_jinja_unary(struct xm_jinja_run *r, struct xm_slice op, value a, value *out)
{
    bool minus = op.text[0] == '-';
    if (a.kind == XM_JINJA_UNDEFINED)
        return fail_undefined(r, a.text);
    if (!xm_jinja_is_number(a))
        return xm_jinja_fail(r, "'%.*s' cannot be applied to %s", (int)op.n, op.text,
                             xm_jinja_kind_name(a.kind));
    if (a.kind == XM_JINJA_FLOAT) {
        *out = xm_jinja_float(minus ? -a.real : a.real);
        return XM_OK;
    }
    int64_t i = xm_jinja_to_int(a);
    if (minus && i == INT64_MIN)
        return xm_jinja_fail(r, "an integer has more than 64 bits");
    *out = xm_jinja_int(minus ? -i : i);
    return XM_OK;
}

static bool
multiply(int64_t a, int64_t b, int64_t *out)
{
    if (a != 0 && b != 0) {
        if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN))
            return false;
        if (b > 0 ? a > INT64_MAX / b || a < INT64_MIN / b
                  : b < -1 && (a > INT64_MIN / b || a < INT64_MAX / b))
            return false;
    }
    *out = a * b;
    return true;
}

static bool
add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

/* Computes base^exponent for exponent >= 0. Returns false on overflow. Bases other than 0, 1 and -1
 * overflow after at most 63 multiplications. */
static bool
power(int64_t base, int64_t exponent, int64_t *out)
{
    *out = 1;
    if (base == 0 || base == 1 || base == -1) {
        *out = exponent == 0 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : base;
        return true;
    }
    while (exponent-- > 0)
        if (!multiply(*out, base, out))
            return false;
    return true;
}

/* Computes an operation on integers. Division rounds down, so the remainder has the divisor's
 * sign. */
static bool
integer_operation(char op, bool twice, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case '+':
        return add(a, b, out);
    case '-':
        if (b == INT64_MIN)
            return a < 0 ? add(a + 1, INT64_MAX, out) : false;
        return add(a, -b, out);
    case '*':
        return twice ? power(a, b, out) : multiply(a, b, out);
    default:
        break;
    }
    if (b == -1) { /* INT64_MIN / -1 does not fit into 64 bits */
        *out = 0;
        return op == '%' || multiply(a, -1, out);
    }
    int64_t rest = a % b;
    bool down = rest != 0 && (rest < 0) != (b < 0);
    *out = op == '%' ? rest + (down ? b : 0) : a / b - down;
    return true;
}

/* Computes a // b from the exact remainder: 2 // 0.1 is 19, because the float 0.1 is a little more
 * than a tenth. */
static double
floor_division(double a, double b)
{
    double rest = fmod(a, b), quotient = rint((a - rest) / b);
    return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? quotient - 1.0 : quotient;
}

static double
real_operation(char op, bool twice, double a, double b)
{
    switch (op) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return twice ? pow(a, b) : a * b;
    case '/':
        return twice ? floor_division(a, b) : a / b;
    default:
        break;
    }
    double rest = fmod(a, b);
    if (rest == 0.0)
        return copysign(0.0, b);
    return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

static enum xm_status
operate_on_numbers(struct xm_jinja_run *r, struct xm_slice op, value a, value b,
                   value *out)
{
    bool integers = a.kind != XM_JINJA_FLOAT && b.kind != XM_JINJA_FLOAT;
    bool twice = op.n == 2;
    if ((op.text[0] == '/' || op.text[0] == '%') && xm_jinja_to_double(b) == 0.0)
        return xm_jinja_fail(r, "division by zero");
    bool real_result = (op.text[0] == '/' && !twice) ||
                       (integers && op.text[0] == '*' && twice && xm_jinja_to_int(b) < 0);
    if (!integers || real_result) {
        double x = xm_jinja_to_double(a), y = xm_jinja_to_double(b);
        double result = real_operation(op.text[0], twice, x, y);
        if (!isfinite(result) && isfinite(x) && isfinite(y))
            return xm_jinja_fail(r, "the result of '%.*s' is not a finite number",
                                 (int)op.n, op.text);
        *out = xm_jinja_float(result);
        return XM_OK;
    }
    int64_t result = 0;
    if (!integer_operation(op.text[0], twice, xm_jinja_to_int(a), xm_jinja_to_int(b),
                           &result))
        return xm_jinja_fail(r, "an integer has more than 64 bits");
    *out = xm_jinja_int(result);
    return XM_OK;
}

static enum xm_status
join_text(struct xm_jinja_run *r, struct xm_slice a, struct xm_slice b, value *out)
{
    struct xm_jinja_space space;
    bool content = xm_jinja_marks_of(r, a) || xm_jinja_marks_of(r, b);
    XM_TRY(xm_jinja_new_space(r, (uint64_t)a.n + b.n, content, &space));
    xm_jinja_put(r, &space, a);
    xm_jinja_put(r, &space, b);
    *out = xm_jinja_text(xm_slice_of(space.text, space.used));
    return XM_OK;
}

/* Concatenates two texts. If one is marked as safe, the other is escaped first. */
static enum xm_status
add_texts(struct xm_jinja_run *r, value a, value b, value *out)
{
    const bool safe = a.is_safe || b.is_safe;
    if (safe) {
        XM_TRY(xm_jinja_escape(r, a, &a));
        XM_TRY(xm_jinja_escape(r, b, &b));
    }
    XM_TRY(join_text(r, a.text, b.text, out));
    out->is_safe = safe;
    return XM_OK;
}

static enum xm_status
join_lists(struct xm_jinja_run *r, value a, value b, value *out)
{
    struct xm_jinja_list *list = NULL;
    XM_TRY(xm_jinja_new_list(r, (uint64_t)a.list->n + b.list->n, &list));
    for (size_t i = 0; i < list->n; i++)
        list->items[i] = i < a.list->n ? a.list->items[i] : b.list->items[i - a.list->n];
    *out = (value){.kind = a.kind, .list = list};
    return XM_OK;
}

/* Repeats a text or a list `count` times. */
static enum xm_status
repeat(struct xm_jinja_run *r, value v, int64_t count, value *out)
{
    bool text = v.kind == XM_JINJA_STRING;
    uint64_t n = text ? v.text.n : v.list->n, total = 0;
    if (!xm_mul_size(n, count > 0 ? (uint64_t)count : 0, &total))
        return xm_jinja_fail(r, "a value repeated %lld times is too large",
                             (long long)count);
    if (text) {
        struct xm_jinja_space space;
        bool content = xm_jinja_marks_of(r, v.text) != NULL;
        XM_TRY(xm_jinja_new_space(r, total, content, &space));
        while (space.used < total)
            xm_jinja_put(r, &space, v.text);
        *out = xm_jinja_text(xm_slice_of(space.text, space.used));
        out->is_safe = v.is_safe;
        return XM_OK;
    }
    struct xm_jinja_list *list = NULL;
    XM_TRY(xm_jinja_new_list(r, total, &list));
    for (size_t i = 0; i < list->n; i++)
        list->items[i] = v.list->items[i % n];
    *out = (value){.kind = v.kind, .list = list};
    return XM_OK;
}

static bool
is_count(value v)
{
    return v.kind == XM_JINJA_INT || v.kind == XM_JINJA_BOOL;
}

static bool
can_repeat(value v)
{
    return v.kind == XM_JINJA_STRING || xm_jinja_is_list(v);
}

enum xm_status
xm_jinja_binary(struct xm_jinja_run *r, struct xm_slice op, value a, value b, value *out)
{
    if (xm_jinja_is(op, "~")) {
        struct xm_slice x, y;
        XM_TRY(xm_jinja_to_text(r, a, &x));
        XM_TRY(xm_jinja_to_text(r, b, &y));
        return join_text(r, x, y, out);
    }
    if (xm_jinja_is_number(a) && xm_jinja_is_number(b))
        return operate_on_numbers(r, op, a, b, out);
    if (xm_jinja_is(op, "+") && a.kind == b.kind && can_repeat(a))
        return a.kind == XM_JINJA_STRING ? add_texts(r, a, b, out)
                                         : join_lists(r, a, b, out);
    if (xm_jinja_is(op, "%") && a.kind == XM_JINJA_STRING)
        return xm_jinja_format_percent(r, a.text, b, out);
    if (xm_jinja_is(op, "*") && can_repeat(a) && is_count(b))
        return repeat(r, a, xm_jinja_to_int(b), out);
    if (xm_jinja_is(op, "*") && can_repeat(b) && is_count(a))
        return repeat(r, b, xm_jinja_to_int(a), out);
    return fail_operands(r, op, a, b);
}
