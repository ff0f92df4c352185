/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

uint32_t
xm_schema_text(struct xm_schema *s, const char *text)
{
    return xm_tree_text(s->t, text, strlen(text));
}

uint32_t
xm_schema_all3(struct xm_schema *s, uint32_t a, uint32_t b, uint32_t c)
{
    return xm_tree_all(s->t, (uint32_t[]){a, b, c}, 3);
}

uint32_t
xm_schema_quoted(struct xm_schema *s, uint32_t contents)
{
    const uint32_t quote = xm_schema_text(s, "\"");
    return xm_schema_all3(s, quote, contents, quote);
}

uint32_t
xm_schema_member(struct xm_schema *s, uint32_t key, uint32_t value)
{
    return xm_schema_all3(s, key, s->colon, value);
}

/* ---- counts ----------------------------------------------------------------------- */

uint32_t
xm_schema_count(struct xm_schema *s, const struct xm_conjunction *c, const char *key,
                bool largest, uint32_t missing)
{
    uint32_t result = missing;
    for (size_t i = 0; i < c->n; i++) {
        yyjson_val *v = yyjson_obj_get(c->list[i].value, key);
        if (!v)
            continue;
        const double n = yyjson_is_num(v) ? yyjson_get_num(v) : -1.0;
        if (!(n >= 0.0) || n != trunc(n)) {
            xm_schema_expected(s, xm_schema_path(s, c->list[i].path, key),
                               "a whole number that is not negative", v);
            return missing;
        }
        if (n >= XM_GRAMMAR_MOST_COUNT) {
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, c->list[i].path, key),
                           "the number is larger than any that is supported");
            return missing;
        }
        const uint32_t count = (uint32_t)n;
        if (result == missing || (largest ? count > result : count < result))
            result = count;
    }
    return result;
}

/* ---- strings ---------------------------------------------------------------------- */

uint32_t
xm_schema_any_string(struct xm_schema *s, uint32_t least, uint32_t most)
{
    static const struct xm_class none;
    return xm_schema_quoted(
        s,
        xm_tree_repeat(s->t, xm_tree_class(s->t, &none, XM_SPELL_JSON_ANY), least, most));
}

static uint32_t
pattern_of(struct xm_schema *s, struct xm_slice pattern, enum xm_spelling spelling,
           char without, const char *path)
{
    struct xm_strbuf where = {0};
    if (s->failed != XM_OK)
        return 0;
    const struct xm_shown shown = xm_utf8_shown(xm_slice_of(path, strlen(path)));
    xm_strbuf_printf(&where, "JSON Schema, %s", shown.text);
    struct xm_error why = {0};
    const uint32_t node =
        xm_tree_pattern(s->t, pattern, spelling, without, xm_strbuf_text(&where), &why);
    if (why.status != XM_OK)
        s->failed = xm_fail(s->err, why.status, "%s", why.text);
    xm_strbuf_free(&where);
    return node;
}

uint32_t
xm_schema_pattern(struct xm_schema *s, struct xm_slice pattern, const char *path)
{
    return pattern_of(s, pattern, XM_SPELL_JSON, '\0', path);
}

/* Finds the one pattern or format of a string. Fails if there are several. */
static bool
find_pattern(struct xm_schema *s, const struct xm_conjunction *c, bool has_length,
             struct xm_slice *pattern, const char **path)
{
    for (size_t i = 0; i < c->n && s->failed == XM_OK; i++) {
        yyjson_val *own = yyjson_obj_get(c->list[i].value, "pattern");
        const char *format = xm_schema_format(s, &c->list[i], has_length);
        const char *key = own ? "pattern" : "format";
        if (!own && !format)
            continue;
        if (own && !yyjson_is_str(own))
            xm_schema_expected(s, xm_schema_path(s, c->list[i].path, key), "a string",
                               own);
        else if (pattern->text || (own && format))
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, c->list[i].path, key),
                           "of pattern and format only one is supported at a time");
        *path = xm_schema_path(s, c->list[i].path, key);
        *pattern = own ? xm_slice_of(yyjson_get_str(own), yyjson_get_len(own))
                       : xm_slice_of(format, strlen(format));
    }
    return s->failed == XM_OK && pattern->text;
}

/* Sets *node to the contents that a pattern or a format allows, within minLength and maxLength.
 * False: there is neither, or s has failed. */
static bool
find_contents(struct xm_schema *s, const struct xm_conjunction *c,
              enum xm_spelling spelling, char without, uint32_t *node)
{
    const uint32_t least = xm_schema_count(s, c, "minLength", true, 0);
    const uint32_t most = xm_schema_count(s, c, "maxLength", false, XM_UNBOUNDED);
    struct xm_slice pattern = {0};
    const char *path = "";
    const bool has_length = least > 1 || most != XM_UNBOUNDED;
    if (!find_pattern(s, c, has_length, &pattern, &path))
        return false;
    const uint32_t any = pattern_of(s, pattern, spelling, without, path);
    *node = s->failed == XM_OK && s->t->failed == XM_OK
                ? xm_tree_of_length(s->t, any, least, most)
                : 0;
    if (*node == XM_NOWHERE)
        xm_schema_fail(s, XM_UNSUPPORTED, path,
                       "beside minLength or maxLength only patterns and formats "
                       "are supported in which one repetition of characters "
                       "makes the length");
    return s->failed == XM_OK;
}

uint32_t
xm_schema_string(struct xm_schema *s, const struct xm_conjunction *c)
{
    uint32_t node = 0;
    const uint32_t least = xm_schema_count(s, c, "minLength", true, 0);
    const uint32_t most = xm_schema_count(s, c, "maxLength", false, XM_UNBOUNDED);
    const bool has_contents = find_contents(s, c, XM_SPELL_JSON, '\0', &node);
    const bool is_any = !has_contents && least == 0 && most == XM_UNBOUNDED;
    struct xm_ruled_out at = {0};
    yyjson_val *out;
    do
        out = xm_schema_next_ruled_out(c, &at);
    while (out && !yyjson_is_str(out));
    if (out && !is_any)
        xm_schema_fail(s, XM_UNSUPPORTED,
                       xm_schema_path(s, c->list[at.schema].path, "not"),
                       "strings in the keyword 'not' are not supported beside lengths, "
                       "patterns and formats");
    if (s->failed != XM_OK)
        return 0;
    return out            ? xm_schema_other_string(s, c)
           : has_contents ? xm_schema_quoted(s, node)
                          : xm_schema_any_string(s, least, most);
}

bool
xm_schema_plain_string(struct xm_schema *s, const struct xm_conjunction *c, char without,
                       uint32_t *node)
{
    return find_contents(s, c, XM_SPELL_PLAIN, without, node);
}

/* ---- numbers ---------------------------------------------------------------------- */

static bool print(char *out, const char *fmt, ...) XM_PRINTF(2, 3);

/* False: `out` has no room for the text. */
static bool
print(char *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = xm_print_v(out, XM_SCHEMA_NUMBER, fmt, ap);
    va_end(ap);
    return n >= 0 && n < XM_SCHEMA_NUMBER;
}

bool
xm_schema_decimal(yyjson_val *v, char out[XM_SCHEMA_NUMBER])
{
    const double real = yyjson_get_num(v);
    bool ok = false;
    if (yyjson_is_uint(v))
        return print(out, "%" PRIu64, yyjson_get_uint(v));
    if (yyjson_is_sint(v))
        return print(out, "%" PRId64, yyjson_get_sint(v));
    for (int digits = 0; digits <= 30 && !ok; digits++)
        ok = print(out, "%.*f", digits, real) && xm_parse_double(out, NULL) == real;
    if (ok && out[0] == '-' && out[1 + strspn(out + 1, "0.")] == '\0')
        print(out, "0");
    return ok;
}

/* Returns the tightest lower or upper bound, inclusive or exclusive (*is_out); NULL: there is
 * none. */
static yyjson_val *
tightest(struct xm_schema *s, const struct xm_conjunction *c, bool low, bool *is_out)
{
    const char *const keys[2] = {low ? "minimum" : "maximum",
                                 low ? "exclusiveMinimum" : "exclusiveMaximum"};
    yyjson_val *best = NULL;
    for (size_t i = 0; i < 2 * c->n; i++) {
        const struct xm_applied *a = &c->list[i / 2];
        yyjson_val *v = yyjson_obj_get(a->value, keys[i % 2]);
        if (!v)
            continue;
        if (!yyjson_is_num(v)) {
            xm_schema_expected(s, xm_schema_path(s, a->path, keys[i % 2]), "a number", v);
            return NULL;
        }
        const double x = yyjson_get_num(v), y = best ? yyjson_get_num(best) : 0.0;
        const bool out = i % 2 == 1;
        if (best && x == y)
            *is_out |= out;
        else if (!best || (low ? x > y : x < y))
            best = v, *is_out = out;
    }
    return best;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A number > 0 as the fraction of / 10^places. */
struct factor {
    uint64_t of; /* 0: no factor */
    uint32_t places;
};

static uint64_t
power_of_ten(uint32_t n)
{
    uint64_t power = 1;
    while (n-- > 0)
        power *= 10;
    return power;
}

/* Reads a factor. False: it has too many digits. */
static bool
read_factor(yyjson_val *v, struct factor *f)
{
    char text[XM_SCHEMA_NUMBER];
    *f = (struct factor){0};
    if (!xm_schema_decimal(v, text))
        return false;
    const char *point = strchr(text, '.');
    f->places = point ? (uint32_t)strlen(point + 1) : 0;
    for (const char *c = text; *c; c++) {
        if (*c == '.')
            continue;
        if (f->of > XM_MOST_REMAINDERS * power_of_ten(10) || f->places > XM_MOST_PLACES)
            return false;
        f->of = f->of * 10 + (uint64_t)(*c - '0');
    }
    return true;
}

/* Sets *all to the least common multiple of two factors. False: it is larger than any supported
 * factor. */
static bool
combine(struct factor *all, struct factor one)
{
    struct factor *const shorter = all->places < one.places ? all : &one;
    const uint32_t places = all->places > one.places ? all->places : one.places;
    if (all->of == 0) {
        *all = one;
        return true;
    }
    for (; shorter->places < places; shorter->places++)
        if (!xm_mul_size(shorter->of, 10, &shorter->of))
            return false;
    return xm_mul_size(all->of / common_divisor(all->of, one.of), one.of, &all->of);
}

/* Returns a factor without decimal places whose multiples are the integer multiples of `f`. */
static struct factor
whole_factor(struct factor f)
{
    for (; f.places > 0; f.places--) {
        /* cancels the common factors 2 and 5 of f.of and 10^places */
        f.of /= f.of % 2 == 0 ? 2 : 1;
        f.of /= f.of % 5 == 0 ? 5 : 1;
    }
    return f;
}

/* Returns the least common multiple of all multipleOf keywords. `digits`: the number of digits of
 * the longer bound. */
static struct factor
common_multiple(struct xm_schema *s, const struct xm_conjunction *c, bool whole,
                size_t digits)
{
    struct factor all = {0}, one;
    for (size_t i = 0; i < c->n && s->failed == XM_OK; i++) {
        yyjson_val *v = yyjson_obj_get(c->list[i].value, "multipleOf");
        if (!v)
            continue;
        const char *path = xm_schema_path(s, c->list[i].path, "multipleOf");
        if (!yyjson_is_num(v) || !(yyjson_get_num(v) > 0.0)) {
            xm_schema_expected(s, path, "a number above 0", v);
            return all;
        }
        bool fits = read_factor(v, &one) && combine(&all, one);
        all = whole ? whole_factor(all) : all;
        for (; all.places > 0 && all.of % 10 == 0; all.places--)
            all.of /= 10;
        const uint64_t most = XM_MOST_REMAINDERS / (digits + all.places + 1);
        fits &= all.of <= most;
        if (!fits)
            xm_schema_fail(
                s, XM_UNSUPPORTED, path,
                "the keyword 'multipleOf' is supported for whole numbers, here up to "
                "%" PRIu64 ", and for decimals with the digits of such a number",
                most);
    }
    return all;
}

static size_t
digits_of(const char *bound)
{
    return bound ? strcspn(bound + (*bound == '-'), ".") : 0;
}

uint32_t
xm_schema_number(struct xm_schema *s, const struct xm_conjunction *c, unsigned types)
{
    char low[XM_SCHEMA_NUMBER], high[XM_SCHEMA_NUMBER];
    struct xm_number_range r = {.whole = !(types & XM_JSON_FRACTION)};
    yyjson_val *least = tightest(s, c, true, &r.low_is_out);
    yyjson_val *most = tightest(s, c, false, &r.high_is_out);
    if (s->failed != XM_OK)
        return 0;
    if ((least && !xm_schema_decimal(least, low)) ||
        (most && !xm_schema_decimal(most, high)))
        return xm_schema_fail(
            s, XM_UNSUPPORTED, c->list[0].path,
            "a bound of numbers is too small or too large to be written "
            "without an exponent");
    r.low = least ? low : NULL;
    r.high = most ? high : NULL;
    const size_t n_low = digits_of(r.low), n_high = digits_of(r.high);
    /* excluding an exclusive bound may make it one digit longer */
    const struct factor f =
        common_multiple(s, c, r.whole, 1 + (n_low > n_high ? n_low : n_high));
    r.multiple_of = (uint32_t)f.of;
    r.places = f.places;
    r.whole |= f.of > 0 && f.places == 0;
    if (s->failed != XM_OK)
        return 0;
    if (least && most && yyjson_get_num(least) > yyjson_get_num(most))
        return xm_tree_never(s->t);
    return xm_tree_numbers(s->t, &r);
}

/* ---- arrays ----------------------------------------------------------------------- */

/* Returns a node for element i of an array; i = XM_NOWHERE: any element behind all prefixes. */
static uint32_t
element_node(struct xm_schema *s, const struct xm_conjunction *c, size_t i)
{
    struct xm_conjunction one = {0};
    for (size_t k = 0; k < c->n && s->failed == XM_OK; k++) {
        const struct xm_applied *a = &c->list[k];
        yyjson_val *prefix = yyjson_obj_get(a->value, "prefixItems");
        yyjson_val *items = yyjson_obj_get(a->value, "items");
        if (i < yyjson_arr_size(prefix))
            xm_conjunction_add(
                s, &one, yyjson_arr_get(prefix, i),
                xm_schema_path_at(s, xm_schema_path(s, a->path, "prefixItems"), i), 0);
        else if (items)
            xm_conjunction_add(s, &one, items, xm_schema_path(s, a->path, "items"), 0);
    }
    const uint32_t node = one.n > 0 ? xm_schema_node(s, &one) : xm_schema_any_value(s);
    xm_conjunction_free(&one);
    return node;
}

static size_t
count_prefix(struct xm_schema *s, const struct xm_conjunction *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct xm_applied *a = &c->list[i];
        yyjson_val *prefix = yyjson_obj_get(a->value, "prefixItems");
        if (prefix && !yyjson_is_arr(prefix))
            xm_schema_expected(s, xm_schema_path(s, a->path, "prefixItems"),
                               "a list of schemas", prefix);
        if (yyjson_is_arr(yyjson_obj_get(a->value, "items")))
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, a->path, "items"),
                           "a list of schemas is prefixItems since draft 2020-12");
        n = yyjson_arr_size(prefix) > n ? yyjson_arr_size(prefix) : n;
        if (n > XM_GRAMMAR_DEPTH)
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, a->path, "prefixItems"),
                           "more than %d schemas", XM_GRAMMAR_DEPTH);
    }
    return n;
}

/* Returns a node for element i and those behind it, with a comma before each but element 0; they
 * may be absent if the array already has `least` elements. */
static uint32_t
elements(struct xm_schema *s, const struct xm_conjunction *c, size_t i, size_t n_prefix,
         uint32_t least, uint32_t most)
{
    const uint32_t comma = i > 0 ? s->separator : xm_tree_empty(s->t);
    if (s->failed != XM_OK || i >= most)
        return xm_tree_empty(s->t);
    const uint32_t element = element_node(s, c, i);
    uint32_t some;
    if (i < n_prefix) {
        some = xm_schema_all3(s, comma, element,
                              elements(s, c, i + 1, n_prefix, least, most));
    } else {
        /* all further elements have the same schema */
        const uint32_t more = xm_tree_all(s->t, (uint32_t[]){s->separator, element}, 2);
        const uint32_t left =
            most == XM_UNBOUNDED ? XM_UNBOUNDED : most - (uint32_t)i - 1;
        const uint32_t needed = least > i + 1 ? least - (uint32_t)i - 1 : 0;
        some =
            xm_schema_all3(s, comma, element, xm_tree_repeat(s->t, more, needed, left));
    }
    return i < least ? some : xm_tree_repeat(s->t, some, 0, 1);
}

uint32_t
xm_schema_array(struct xm_schema *s, const struct xm_conjunction *c)
{
    const uint32_t least = xm_schema_count(s, c, "minItems", true, 0);
    const uint32_t most = xm_schema_count(s, c, "maxItems", false, XM_UNBOUNDED);
    const size_t n_prefix = count_prefix(s, c);
    if (s->failed != XM_OK)
        return 0;
    if (least > most)
        return xm_tree_never(s->t);
    const uint32_t inside =
        xm_schema_all3(s, s->space, elements(s, c, 0, n_prefix, least, most), s->space);
    return xm_schema_all3(s, xm_schema_text(s, "["), inside, xm_schema_text(s, "]"));
}

/* ---- any value -------------------------------------------------------------------- */

static uint32_t
any_of_everything(struct xm_schema *s, uint32_t value)
{
    const struct xm_number_range all = {0};
    const uint32_t string = xm_schema_any_string(s, 0, XM_UNBOUNDED);
    const uint32_t pair = xm_schema_member(s, string, value);
    const uint8_t flags = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
    const uint32_t items = xm_tree_list(s->t, s->separator, &value, &flags, 1);
    const uint32_t members = xm_tree_list(s->t, s->separator, &pair, &flags, 1);
    return xm_tree_any(
        s->t,
        (uint32_t[]){string, xm_tree_numbers(s->t, &all), xm_schema_text(s, "true"),
                     xm_schema_text(s, "false"), xm_schema_text(s, "null"),
                     xm_schema_all3(s, xm_schema_text(s, "["),
                                    xm_schema_all3(s, s->space, items, s->space),
                                    xm_schema_text(s, "]")),
                     xm_schema_all3(s, xm_schema_text(s, "{"),
                                    xm_schema_all3(s, s->space, members, s->space),
                                    xm_schema_text(s, "}"))},
        7);
}

uint32_t
xm_schema_any_value(struct xm_schema *s)
{
    if (s->any_value == XM_NOWHERE) {
        s->any_value = xm_tree_add_rule(s->t, "any value", 9);
        const uint32_t node = any_of_everything(s, xm_tree_rule_ref(s->t, s->any_value));
        if (s->t->failed == XM_OK)
            s->t->rules[s->any_value].node = node;
    }
    return s->t->failed == XM_OK ? xm_tree_rule_ref(s->t, s->any_value) : 0;
}
