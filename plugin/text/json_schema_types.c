/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

static uint32_t
text(struct xm_schema *s, const char *t)
{
    return xm_tree_text(s->t, t, strlen(t));
}

static uint32_t
all3(struct xm_schema *s, uint32_t a, uint32_t b, uint32_t c)
{
    return xm_tree_all(s->t, (uint32_t[]){a, b, c}, 3);
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
            xm_schema_fail(s, XM_INVALID, xm_schema_path(s, c->list[i].path, key),
                           "expected a whole number that is not negative");
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

#define YEAR "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define MONTHS                                                                           \
    "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[" \
    "1-9]|1[0-9]|2[0-8])"
#define DATE "(" YEAR "-(" MONTHS ")|" LEAP "-02-29)"
#define TIME                                                                             \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):" \
    "[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define GROUP "[0-9a-fA-F]{1,4}"

#define HEX   "[0-9a-fA-F]"
#define DAYS  "([0-9]+D|[0-9]+M([0-9]+D)?|[0-9]+Y([0-9]+M([0-9]+D)?)?)"
#define HOURS "T([0-9]+S|[0-9]+M([0-9]+S)?|[0-9]+H([0-9]+M([0-9]+S)?)?)"

/* What a format admits: perhaps less than the standard, never more. */
static const struct {
    const char *name, *pattern;
} formats[] = {
    /* clang-format off */
    { "date",      "^" DATE "$" },
    { "time",      "^" TIME "$" },
    { "date-time", "^" DATE "T" TIME "$" },
    { "uuid",      "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$" },
    { "ipv4",      "^" OCTET "(\\." OCTET "){3}$" },
    { "ipv6",      "^((" GROUP ":){7}" GROUP "|(" GROUP ":){1,7}:|(" GROUP ":){1,6}:" GROUP
                   "|(" GROUP ":){1,5}(:" GROUP "){1,2}|(" GROUP ":){1,4}(:" GROUP "){1,3}"
                   "|(" GROUP ":){1,3}(:" GROUP "){1,4}|(" GROUP ":){1,2}(:" GROUP "){1,5}"
                   "|" GROUP ":(:" GROUP "){1,6}|:((:" GROUP "){1,7}|:))$" },
    { "email",     "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@"
                   LABEL "(\\." LABEL ")*$" },
    { "hostname",  "^" LABEL "(\\." LABEL "){0,3}$" },
    { "uri",       "^https?://" LABEL "(\\." LABEL ")*(/[A-Za-z0-9._~-]*)*(\\?[A-Za-z0-9._~=&-]*)?$" },
    { "duration",  "^P([0-9]+W|" DAYS "(" HOURS ")?|" HOURS ")$" },
    /* clang-format on */
};

/* Formats of the standard that have no grammar here. Others are annotations. */
static const char *const refused_formats[] = {
    "idn-email",     "idn-hostname",          "iri",
    "iri-reference", "uri-reference",         "uri-template",
    "json-pointer",  "relative-json-pointer", "regex"};

static uint32_t
quoted(struct xm_schema *s, uint32_t contents)
{
    const uint32_t quote = text(s, "\"");
    return all3(s, quote, contents, quote);
}

uint32_t
xm_schema_any_string(struct xm_schema *s, uint32_t least, uint32_t most)
{
    static const struct xm_class none;
    return quoted(s, xm_tree_repeat(s->t, xm_tree_class(s->t, &none, XM_SPELL_JSON_ANY),
                                    least, most));
}

static const char *
format_pattern(struct xm_schema *s, const struct xm_applied *a)
{
    yyjson_val *format = yyjson_obj_get(a->value, "format");
    const char *name = yyjson_get_str(format);
    if (format && !name)
        xm_schema_fail(s, XM_INVALID, xm_schema_path(s, a->path, "format"),
                       "expected a string");
    for (size_t i = 0; name && i < XM_ARRAY_LEN(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].pattern;
    for (size_t i = 0; name && i < XM_ARRAY_LEN(refused_formats); i++)
        if (strcmp(refused_formats[i], name) == 0)
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, a->path, "format"),
                           "the format '%s' is not supported", name);
    return NULL;
}

static uint32_t
pattern_node(struct xm_schema *s, struct xm_slice pattern, const char *path)
{
    struct xm_strbuf where = {0};
    if (s->failed != XM_OK)
        return 0;
    const struct xm_shown shown = xm_utf8_shown(xm_slice_of(path, strlen(path)));
    xm_strbuf_printf(&where, "JSON Schema, %s", shown.text);
    struct xm_error why = {0};
    const uint32_t node = xm_tree_pattern(s->t, pattern, xm_strbuf_text(&where), &why);
    if (why.status != XM_OK)
        s->failed = xm_fail(s->err, why.status, "%s", why.text);
    xm_strbuf_free(&where);
    return node;
}

uint32_t
xm_schema_string(struct xm_schema *s, const struct xm_conjunction *c)
{
    const uint32_t least = xm_schema_count(s, c, "minLength", true, 0);
    const uint32_t most = xm_schema_count(s, c, "maxLength", false, XM_UNBOUNDED);
    struct xm_slice pattern = {0};
    const char *path = "";
    for (size_t i = 0; i < c->n && s->failed == XM_OK; i++) {
        yyjson_val *own = yyjson_obj_get(c->list[i].value, "pattern");
        const char *format = format_pattern(s, &c->list[i]);
        const char *key = own ? "pattern" : "format";
        if (!own && !format)
            continue;
        if (own && !yyjson_is_str(own))
            xm_schema_fail(s, XM_INVALID, xm_schema_path(s, c->list[i].path, key),
                           "expected a string");
        else if (pattern.text || (own && format) || least > 0 || most != XM_UNBOUNDED)
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, c->list[i].path, key),
                           "of pattern, format and the two lengths only one is supported "
                           "at a time, or both lengths");
        path = xm_schema_path(s, c->list[i].path, key);
        pattern = own ? xm_slice_of(yyjson_get_str(own), yyjson_get_len(own))
                      : xm_slice_of(format, strlen(format));
    }
    if (s->failed != XM_OK)
        return 0;
    return pattern.text ? quoted(s, pattern_node(s, pattern, path))
                        : xm_schema_any_string(s, least, most);
}

/* ---- numbers ---------------------------------------------------------------------- */

enum { NUMBER_TEXT = 400 };

/* A bound as a decimal without exponent; false: it needs more digits than there is room for. */
static bool
write_bound(yyjson_val *v, char out[NUMBER_TEXT])
{
    struct xm_strbuf b = {0};
    const double real = yyjson_get_num(v);
    bool ok = false;
    if (yyjson_is_uint(v))
        xm_strbuf_printf(&b, "%" PRIu64, yyjson_get_uint(v));
    else if (yyjson_is_sint(v))
        xm_strbuf_printf(&b, "%" PRId64, yyjson_get_sint(v));
    for (int digits = 0; !yyjson_is_int(v) && digits <= 30 && !ok; digits++) {
        xm_strbuf_clear(&b);
        xm_strbuf_printf(&b, "%.*f", digits, real);
        ok = xm_strbuf_ok(&b) && xm_parse_double(xm_strbuf_text(&b), NULL) == real;
    }
    ok |= yyjson_is_int(v);
    ok = ok && xm_strbuf_ok(&b) && b.n < NUMBER_TEXT;
    if (ok)
        snprintf(out, NUMBER_TEXT, "%s", xm_strbuf_text(&b));
    if (ok && out[0] == '-' && out[1 + strspn(out + 1, "0.")] == '\0')
        snprintf(out, NUMBER_TEXT, "0");
    xm_strbuf_free(&b);
    return ok;
}

/* The tightest of the bounds `key` and its exclusive form; NULL: there is none. */
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
            xm_schema_fail(s, XM_INVALID, xm_schema_path(s, a->path, keys[i % 2]),
                           "expected a number");
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

uint32_t
xm_schema_number(struct xm_schema *s, const struct xm_conjunction *c, unsigned types)
{
    char low[NUMBER_TEXT], high[NUMBER_TEXT];
    struct xm_number_range r = {.whole = !(types & XM_JSON_FRACTION)};
    yyjson_val *least = tightest(s, c, true, &r.low_is_out);
    yyjson_val *most = tightest(s, c, false, &r.high_is_out);
    if (s->failed != XM_OK)
        return 0;
    if ((least && !write_bound(least, low)) || (most && !write_bound(most, high)))
        return xm_schema_fail(
            s, XM_UNSUPPORTED, c->list[0].path,
            "a bound of numbers is too small or too large to be written "
            "without an exponent");
    r.low = least ? low : NULL;
    r.high = most ? high : NULL;
    if (least && most && yyjson_get_num(least) > yyjson_get_num(most))
        return xm_tree_never(s->t);
    return xm_tree_numbers(s->t, &r);
}

/* ---- arrays ----------------------------------------------------------------------- */

/* What an array's element i must satisfy; XM_NOWHERE: any behind all prefixes. */
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
            xm_schema_fail(s, XM_INVALID, xm_schema_path(s, a->path, "prefixItems"),
                           "expected a list of schemas");
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

/* Element i and those behind it, with a comma before each but the first: some, or none where
 * enough have come. */
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
        some = all3(s, comma, element, elements(s, c, i + 1, n_prefix, least, most));
    } else {
        /* all that are left are alike */
        const uint32_t more = xm_tree_all(s->t, (uint32_t[]){s->separator, element}, 2);
        const uint32_t left =
            most == XM_UNBOUNDED ? XM_UNBOUNDED : most - (uint32_t)i - 1;
        const uint32_t needed = least > i + 1 ? least - (uint32_t)i - 1 : 0;
        some = all3(s, comma, element, xm_tree_repeat(s->t, more, needed, left));
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
        all3(s, s->space, elements(s, c, 0, n_prefix, least, most), s->space);
    return all3(s, text(s, "["), inside, text(s, "]"));
}

/* ---- objects ---------------------------------------------------------------------- */

/* A property that some schema names. */
struct property {
    const char *name;
    size_t n;
    bool required;
};

struct properties {
    struct property *list; /* owned */
    size_t n, capacity;
};

enum { MOST_PROPERTIES = 4096, LONGEST_NAME = 256 };

static struct property *
find_property(struct properties *p, const char *name, size_t n)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].n == n && memcmp(p->list[i].name, name, n) == 0)
            return &p->list[i];
    return NULL;
}

static void
add_property(struct xm_schema *s, struct properties *p, yyjson_val *key, bool required,
             const char *path)
{
    const char *name = yyjson_get_str(key);
    struct property *found = find_property(p, name, yyjson_get_len(key));
    if (found) {
        found->required |= required;
        return;
    }
    if (p->n >= MOST_PROPERTIES || yyjson_get_len(key) > LONGEST_NAME) {
        xm_schema_fail(s, XM_UNSUPPORTED, path,
                       "more than %d properties, or a name of more than %d bytes",
                       MOST_PROPERTIES, LONGEST_NAME);
        return;
    }
    struct property *grown = xm_grow(p->list, &p->capacity, p->n + 1, sizeof(*grown));
    if (!grown) {
        xm_schema_no_memory(s);
        return;
    }
    p->list = grown;
    p->list[p->n++] = (struct property){name, yyjson_get_len(key), required};
}

static void
list_properties(struct xm_schema *s, const struct xm_conjunction *c, struct properties *p)
{
    size_t i, n;
    yyjson_val *key, *value;
    for (size_t k = 0; k < 2 * c->n && s->failed == XM_OK; k++) {
        const struct xm_applied *a = &c->list[k % c->n];
        const char *what = k < c->n ? "properties" : "required";
        yyjson_val *v = yyjson_obj_get(a->value, what);
        if (!v)
            continue;
        const char *path = xm_schema_path(s, a->path, what);
        if (k < c->n ? !yyjson_is_obj(v) : !yyjson_is_arr(v))
            xm_schema_fail(s, XM_INVALID, path, "expected %s",
                           k < c->n ? "an object of schemas" : "a list of names");
        yyjson_obj_foreach(v, i, n, key, value)
        {
            if (s->failed == XM_OK)
                add_property(s, p, key, false, path);
        }
        yyjson_arr_foreach(v, i, n, value)
        {
            if (!yyjson_is_str(value))
                xm_schema_fail(s, XM_INVALID, path, "expected a list of names");
            if (s->failed == XM_OK)
                add_property(s, p, value, true, path);
        }
    }
}

/* What the value of a property must satisfy; p NULL: of one that no schema names. */
static uint32_t
value_node(struct xm_schema *s, const struct xm_conjunction *c, const struct property *p)
{
    struct xm_conjunction one = {0};
    for (size_t k = 0; k < c->n && s->failed == XM_OK; k++) {
        const struct xm_applied *a = &c->list[k];
        yyjson_val *own =
            p ? yyjson_obj_getn(yyjson_obj_get(a->value, "properties"), p->name, p->n)
              : NULL;
        yyjson_val *other = yyjson_obj_get(a->value, "additionalProperties");
        if (own)
            xm_conjunction_add(
                s, &one, own,
                xm_schema_path(s, xm_schema_path(s, a->path, "properties"), p->name), 0);
        else if (other)
            xm_conjunction_add(s, &one, other,
                               xm_schema_path(s, a->path, "additionalProperties"), 0);
    }
    const bool is_closed =
        !p && s->closed && c->n == 1 && c->list[0].value == s->closed && one.n == 0;
    const uint32_t node = one.n > 0   ? xm_schema_node(s, &one)
                          : is_closed ? xm_tree_never(s->t)
                                      : xm_schema_any_value(s);
    xm_conjunction_free(&one);
    return node;
}

static uint32_t
member(struct xm_schema *s, uint32_t key, uint32_t value)
{
    return all3(s, key, s->colon, value);
}

static uint32_t
name_node(struct xm_schema *s, const struct property *p)
{
    yyjson_val name = {0};
    unsafe_yyjson_set_strn(&name, p->name, p->n);
    return xm_schema_literal(s, &name);
}

/* ---- names that are none of a list ---- */

static int
compare_properties(const void *a, const void *b)
{
    const struct property *x = a, *y = b;
    const size_t n = x->n < y->n ? x->n : y->n;
    const int order = memcmp(x->name, y->name, n);
    return order ? order : x->n < y->n ? -1 : x->n > y->n;
}

/* The rest of a name that is none of list[n], which are sorted and agree in their first `at`
 * bytes. Each character is spelled in one way: so no escape makes a name of them. */
static uint32_t
other_names(struct xm_schema *s, const struct property *list, size_t n, size_t at)
{
    struct xm_grammar_tree *t = s->t;
    struct xm_nodes nodes = {0};
    struct xm_class rest = {0}, every = {0};
    xm_class_negate(&every);
    bool may_end = true;
    for (size_t i = 0, end; i < n && s->failed == XM_OK && t->failed == XM_OK; i = end) {
        int32_t code;
        end = i + 1;
        if (list[i].n == at) {
            may_end = false;
            continue;
        }
        const size_t bytes =
            xm_utf8_next(xm_slice_of(list[i].name + at, list[i].n - at), &code);
        while (end < n && list[end].n >= at + bytes &&
               memcmp(list[end].name + at, list[i].name + at, bytes) == 0)
            end++;
        struct xm_class one = {0};
        xm_class_add(&one, (uint32_t)code, (uint32_t)code);
        xm_class_add(&rest, (uint32_t)code, (uint32_t)code);
        xm_nodes_add(
            t, &nodes,
            xm_tree_all(t,
                        (uint32_t[]){xm_tree_class(t, &one, XM_SPELL_JSON),
                                     other_names(s, list + i, end - i, at + bytes)},
                        2));
        xm_class_free(&one);
    }
    xm_class_normalise(&rest);
    xm_class_negate(&rest);
    const uint32_t any =
        xm_tree_repeat(t, xm_tree_class(t, &every, XM_SPELL_JSON), 0, XM_UNBOUNDED);
    xm_nodes_add(
        t, &nodes,
        xm_tree_all(t, (uint32_t[]){xm_tree_class(t, &rest, XM_SPELL_JSON), any}, 2));
    if (may_end)
        xm_nodes_add(t, &nodes, xm_tree_empty(t));
    const uint32_t node = xm_tree_any(t, nodes.list, nodes.n);
    xm_class_free(&rest);
    xm_class_free(&every);
    xm_nodes_free(&nodes);
    return node;
}

static uint32_t
other_name(struct xm_schema *s, const struct properties *p)
{
    if (p->n == 0)
        return xm_schema_any_string(s, 0, XM_UNBOUNDED);
    struct property *sorted = xm_malloc(p->n * sizeof(*sorted));
    if (!sorted)
        return xm_schema_no_memory(s);
    memcpy(sorted, p->list, p->n * sizeof(*sorted));
    qsort(sorted, p->n, sizeof(*sorted), compare_properties);
    const uint32_t node = quoted(s, other_names(s, sorted, p->n, 0));
    xm_free(sorted);
    return node;
}

/* ---- patternProperties ---- */

/* One pattern, beside no names and "additionalProperties": false, is the pattern of all names. */
static uint32_t
pattern_member(struct xm_schema *s, const struct xm_conjunction *c,
               const struct properties *p, bool *is_there)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct xm_applied *a = &c->list[i];
        yyjson_val *patterns = yyjson_obj_get(a->value, "patternProperties");
        if (!patterns || (yyjson_is_obj(patterns) && yyjson_obj_size(patterns) == 0))
            continue;
        const char *path = xm_schema_path(s, a->path, "patternProperties");
        *is_there = true;
        if (!yyjson_is_obj(patterns) || c->n > 1 || p->n > 0 ||
            yyjson_obj_size(patterns) != 1 ||
            !yyjson_is_false(yyjson_obj_get(a->value, "additionalProperties")))
            return xm_schema_fail(
                s, XM_UNSUPPORTED, path,
                "only one pattern is supported, with "
                "\"additionalProperties\": false and without properties, "
                "required and allOf");
        yyjson_obj_iter it = yyjson_obj_iter_with(patterns);
        yyjson_val *key = yyjson_obj_iter_next(&it);
        struct xm_conjunction one = {0};
        xm_conjunction_add(s, &one, yyjson_obj_iter_get_val(key),
                           xm_schema_path(s, path, yyjson_get_str(key)), 0);
        const struct xm_slice pattern = {yyjson_get_str(key), yyjson_get_len(key)};
        const uint32_t name = quoted(s, pattern_node(s, pattern, path));
        const uint32_t value = s->failed == XM_OK ? xm_schema_node(s, &one) : 0;
        xm_conjunction_free(&one);
        return member(s, name, value);
    }
    return 0;
}

uint32_t
xm_schema_object(struct xm_schema *s, const struct xm_conjunction *c)
{
    struct properties p = {0};
    struct xm_nodes nodes = {0};
    uint8_t *flags = NULL;
    uint32_t inside = 0;
    bool has_pattern = false;
    if (c->n > 0)
        list_properties(s, c, &p);
    for (size_t i = 0; i < p.n && s->failed == XM_OK; i++)
        xm_nodes_add(s->t, &nodes,
                     member(s, name_node(s, &p.list[i]), value_node(s, c, &p.list[i])));
    uint32_t more = s->failed == XM_OK ? pattern_member(s, c, &p, &has_pattern) : 0;
    if (!has_pattern && s->failed == XM_OK) {
        const uint32_t value = value_node(s, c, NULL);
        more =
            xm_tree_is_never(s->t, value) ? value : member(s, other_name(s, &p), value);
    }
    if (s->failed == XM_OK)
        xm_nodes_add(s->t, &nodes, more);
    flags = s->failed == XM_OK ? xm_malloc(p.n + 1) : NULL;
    for (size_t i = 0; flags && i < p.n; i++)
        flags[i] = p.list[i].required ? 0 : XM_LIST_OPTIONAL;
    if (flags && nodes.n == p.n + 1) {
        flags[p.n] = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
        inside = xm_tree_list(s->t, s->separator, nodes.list, flags, nodes.n);
    } else if (s->failed == XM_OK) {
        xm_schema_no_memory(s);
    }
    xm_free(flags);
    xm_nodes_free(&nodes);
    xm_free(p.list);
    if (s->failed != XM_OK)
        return 0;
    return all3(s, text(s, "{"), all3(s, s->space, inside, s->space), text(s, "}"));
}

/* ---- any value -------------------------------------------------------------------- */

static uint32_t
any_of_everything(struct xm_schema *s, uint32_t value)
{
    const struct xm_number_range all = {0};
    const uint32_t string = xm_schema_any_string(s, 0, XM_UNBOUNDED);
    const uint32_t pair = member(s, string, value);
    const uint8_t flags = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
    const uint32_t items = xm_tree_list(s->t, s->separator, &value, &flags, 1);
    const uint32_t members = xm_tree_list(s->t, s->separator, &pair, &flags, 1);
    return xm_tree_any(
        s->t,
        (uint32_t[]){
            string, xm_tree_numbers(s->t, &all), text(s, "true"), text(s, "false"),
            text(s, "null"),
            all3(s, text(s, "["), all3(s, s->space, items, s->space), text(s, "]")),
            all3(s, text(s, "{"), all3(s, s->space, members, s->space), text(s, "}"))},
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
