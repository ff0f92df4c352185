/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests, the functions behind "is".
 */
#include "plugin/text/jinja/run_state.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

/* Defines a test of the kind of a value. */
#define KIND_TEST(name, condition)                                                       \
    static enum xm_status test_##name(struct xm_jinja_run *r, value v, args *a,          \
                                      value *out)                                        \
    {                                                                                    \
        (void)r;                                                                         \
        (void)a;                                                                         \
        *out = xm_jinja_bool(condition);                                                 \
        return XM_OK;                                                                    \
    }

static bool
has_items(value v)
{
    return v.kind == XM_JINJA_STRING || v.kind == XM_JINJA_DICT || xm_jinja_is_list(v) ||
           v.kind == XM_JINJA_UNDEFINED || v.kind == XM_JINJA_RANGE;
}

static bool
can_be_iterated(value v)
{
    return has_items(v) || v.kind == XM_JINJA_VIEW || v.kind == XM_JINJA_ITERATOR ||
           v.kind == XM_JINJA_LOOP;
}

KIND_TEST(defined, v.kind != XM_JINJA_UNDEFINED)
KIND_TEST(undefined, v.kind == XM_JINJA_UNDEFINED)
KIND_TEST(none, v.kind == XM_JINJA_NONE)
KIND_TEST(string, v.kind == XM_JINJA_STRING)
KIND_TEST(number, xm_jinja_is_number(v))
KIND_TEST(integer, v.kind == XM_JINJA_INT)
KIND_TEST(float, v.kind == XM_JINJA_FLOAT)
KIND_TEST(boolean, v.kind == XM_JINJA_BOOL)
KIND_TEST(true, v.kind == XM_JINJA_BOOL && v.truth)
KIND_TEST(false, v.kind == XM_JINJA_BOOL && !v.truth)
KIND_TEST(mapping, v.kind == XM_JINJA_DICT)
KIND_TEST(iterable, can_be_iterated(v))
KIND_TEST(sequence, has_items(v))
KIND_TEST(callable, v.kind == XM_JINJA_FUNCTION || v.kind == XM_JINJA_LOOP ||
                        v.kind == XM_JINJA_UNDEFINED)
KIND_TEST(escaped, v.is_safe)

/* Defines a test whether a table has a row with this name. */
#define NAME_TEST(name, find)                                                            \
    static enum xm_status test_##name(struct xm_jinja_run *r, value v, args *a,          \
                                      value *out)                                        \
    {                                                                                    \
        (void)a;                                                                         \
        XM_TRY(xm_jinja_check_key(r, v));                                                \
        *out = xm_jinja_bool(v.kind == XM_JINJA_STRING && find(v.text) != NULL);         \
        return XM_OK;                                                                    \
    }

NAME_TEST(filter, xm_jinja_find_filter)
NAME_TEST(test, xm_jinja_find_test)

/* Defines a test that compares the value with the argument. */
#define COMPARE_TEST(name, op)                                                           \
    static enum xm_status test_##name(struct xm_jinja_run *r, value v, args *a,          \
                                      value *out)                                        \
    {                                                                                    \
        *out = xm_jinja_bool(false);                                                     \
        return xm_jinja_compare(r, xm_slice_of(op, sizeof(op) - 1), v, a->values[0],     \
                                &out->truth);                                            \
    }

COMPARE_TEST(eq, "==")
COMPARE_TEST(ne, "!=")
COMPARE_TEST(lt, "<")
COMPARE_TEST(le, "<=")
COMPARE_TEST(gt, ">")
COMPARE_TEST(ge, ">=")
COMPARE_TEST(in, "in")

/* The test sameas. Python compares identities of objects, which values here do not have: equal
 * values of the same kind count as the same. */
static enum xm_status
test_sameas(struct xm_jinja_run *r, value v, args *a, value *out)
{
    *out = xm_jinja_bool(false);
    if (v.kind != a->values[0].kind)
        return XM_OK;
    return xm_jinja_equal(r, v, a->values[0], &out->truth);
}

static enum xm_status
is_multiple(struct xm_jinja_run *r, value v, value of, int64_t rest, value *out)
{
    value remainder;
    XM_TRY(xm_jinja_binary(r, xm_slice_of("%", 1), v, of, &remainder));
    *out = xm_jinja_bool(false);
    return xm_jinja_equal(r, remainder, xm_jinja_int(rest), &out->truth);
}

static enum xm_status
test_divisibleby(struct xm_jinja_run *r, value v, args *a, value *out)
{
    return is_multiple(r, v, a->values[0], 0, out);
}

static enum xm_status
test_even(struct xm_jinja_run *r, value v, args *a, value *out)
{
    (void)a;
    return is_multiple(r, v, xm_jinja_int(2), 0, out);
}

static enum xm_status
test_odd(struct xm_jinja_run *r, value v, args *a, value *out)
{
    (void)a;
    return is_multiple(r, v, xm_jinja_int(2), 1, out);
}

static enum xm_status
has_case(struct xm_jinja_run *r, value v, enum xm_jinja_case to, value *out)
{
    struct xm_jinja_buffer same = {0}, lower = {0}, upper = {0};
    struct xm_slice s;
    XM_TRY(xm_jinja_to_text(r, v, &s));
    xm_jinja_change_case(r, s, to, &same);
    xm_jinja_change_case(r, s, XM_JINJA_LOWER, &lower);
    xm_jinja_change_case(r, s, XM_JINJA_UPPER, &upper);
    bool ok = xm_strbuf_ok(&same.text) && xm_strbuf_ok(&lower.text) &&
              xm_strbuf_ok(&upper.text);
    bool unchanged =
        ok && xm_slice_equal(s, xm_slice_of(xm_strbuf_text(&same.text), same.text.n));
    bool cased =
        ok && !xm_slice_equal(xm_slice_of(xm_strbuf_text(&lower.text), lower.text.n),
                              xm_slice_of(xm_strbuf_text(&upper.text), upper.text.n));
    xm_jinja_buffer_free(&same);
    xm_jinja_buffer_free(&lower);
    xm_jinja_buffer_free(&upper);
    *out = xm_jinja_bool(unchanged && cased);
    return ok ? XM_OK : xm_no_memory(r->err, "a template's values");
}

static enum xm_status
test_lower(struct xm_jinja_run *r, value v, args *a, value *out)
{
    (void)a;
    return has_case(r, v, XM_JINJA_LOWER, out);
}

static enum xm_status
test_upper(struct xm_jinja_run *r, value v, args *a, value *out)
{
    (void)a;
    return has_case(r, v, XM_JINJA_UPPER, out);
}

/* clang-format off */
static const struct xm_jinja_builtin tests[] = {
    {"boolean", test_boolean, {NULL}, 0, false, false},
    {"callable", test_callable, {NULL}, 0, false, false},
    {"defined", test_defined, {NULL}, 0, false, false},
    {"divisibleby", test_divisibleby, {"num"}, 1, false, false},
    {"eq", test_eq, {"other"}, 1, false, false},
    {"==", test_eq, {"other"}, 1, false, false},
    {"equalto", test_eq, {"other"}, 1, false, false},
    {"escaped", test_escaped, {NULL}, 0, false, false},
    {"even", test_even, {NULL}, 0, false, false},
    {"false", test_false, {NULL}, 0, false, false},
    {"filter", test_filter, {NULL}, 0, false, false},
    {"float", test_float, {NULL}, 0, false, false},
    {"ge", test_ge, {"other"}, 1, false, false},
    {">=", test_ge, {"other"}, 1, false, false},
    {"greaterthan", test_gt, {"other"}, 1, false, false},
    {"gt", test_gt, {"other"}, 1, false, false},
    {">", test_gt, {"other"}, 1, false, false},
    {"in", test_in, {"seq"}, 1, false, false},
    {"integer", test_integer, {NULL}, 0, false, false},
    {"iterable", test_iterable, {NULL}, 0, false, false},
    {"le", test_le, {"other"}, 1, false, false},
    {"<=", test_le, {"other"}, 1, false, false},
    {"lessthan", test_lt, {"other"}, 1, false, false},
    {"lower", test_lower, {NULL}, 0, false, false},
    {"lt", test_lt, {"other"}, 1, false, false},
    {"<", test_lt, {"other"}, 1, false, false},
    {"mapping", test_mapping, {NULL}, 0, false, false},
    {"ne", test_ne, {"other"}, 1, false, false},
    {"!=", test_ne, {"other"}, 1, false, false},
    {"none", test_none, {NULL}, 0, false, false},
    {"number", test_number, {NULL}, 0, false, false},
    {"odd", test_odd, {NULL}, 0, false, false},
    {"sameas", test_sameas, {"other"}, 1, false, false},
    {"sequence", test_sequence, {NULL}, 0, false, false},
    {"string", test_string, {NULL}, 0, false, false},
    {"test", test_test, {NULL}, 0, false, false},
    {"true", test_true, {NULL}, 0, false, false},
    {"undefined", test_undefined, {NULL}, 0, false, false},
    {"upper", test_upper, {NULL}, 0, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_test(struct xm_slice name)
{
    return xm_jinja_find(tests, XM_ARRAY_LEN(tests), name);
}
