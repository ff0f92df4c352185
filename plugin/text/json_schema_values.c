/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "plugin/text/constraint.h"
#include "plugin/text/json_schema_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

/* ---- types ------------------------------------------------------------------------ */

unsigned
xm_json_type_of(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL:
        return XM_JSON_NULL;
    case YYJSON_TYPE_BOOL:
        return XM_JSON_BOOLEAN;
    case YYJSON_TYPE_NUM:
        return yyjson_is_int(value) ||
                       trunc(yyjson_get_real(value)) == yyjson_get_real(value)
                   ? XM_JSON_INTEGER
                   : XM_JSON_FRACTION;
    case YYJSON_TYPE_STR:
        return XM_JSON_STRING;
    case YYJSON_TYPE_ARR:
        return XM_JSON_ARRAY;
    case YYJSON_TYPE_OBJ:
        return XM_JSON_OBJECT;
    default:
        return 0;
    }
}

static unsigned
type_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } list[] = {{"null", XM_JSON_NULL},       {"boolean", XM_JSON_BOOLEAN},
                {"integer", XM_JSON_INTEGER}, {"number", XM_JSON_NUMBER},
                {"string", XM_JSON_STRING},   {"array", XM_JSON_ARRAY},
                {"object", XM_JSON_OBJECT}};
    for (size_t i = 0; name && i < XM_ARRAY_LEN(list); i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].types;
    return 0;
}

unsigned
xm_json_types_named(yyjson_val *type)
{
    unsigned types = 0;
    size_t i, n;
    yyjson_val *one;
    if (yyjson_is_str(type))
        return type_named(yyjson_get_str(type));
    yyjson_arr_foreach(type, i, n, one)
    {
        const unsigned named = type_named(yyjson_get_str(one));
        if (!named)
            return 0;
        types |= named;
    }
    return types;
}

unsigned
xm_schema_types(struct xm_schema *s, const struct xm_applied *a)
{
    yyjson_val *type = yyjson_obj_get(a->value, "type");
    if (!type)
        return XM_JSON_ANY;
    const unsigned types = xm_json_types_named(type);
    if (!types)
        xm_schema_expected(s, xm_schema_path(s, a->path, "type"),
                           "null, boolean, integer, number, string, array or object, or "
                           "a list of these",
                           type);
    return types;
}

/* ---- types that instances can have ------------------------------------------------- */

enum {
    MOST_REFERENCES = 16, /* references in a chain */
    LONGEST_POINTER = 1024,
    DEEPEST = 24,        /* nesting depth of schemas */
    STEPS_OF_SCHEMA = 64 /* plus one for each listed value */
};

/* Takes n steps. False: none are left. */
static bool
take_steps(unsigned *left, size_t n)
{
    *left -= n < *left ? (unsigned)n : *left;
    return *left > 0;
}

yyjson_val *
xm_json_target(yyjson_val *root, yyjson_val *ref, unsigned *left)
{
    const char *text = yyjson_get_str(ref);
    if (!take_steps(left, STEPS_OF_SCHEMA) || !text || text[0] != '#' ||
        yyjson_get_len(ref) > LONGEST_POINTER)
        return NULL;
    return text[1] ? yyjson_ptr_getn(root, text + 1, yyjson_get_len(ref) - 1) : root;
}

yyjson_val *
xm_json_refers_to(yyjson_val *root, yyjson_val *v, unsigned *left)
{
    for (int i = 0; i < MOST_REFERENCES; i++) {
        yyjson_val *ref = yyjson_obj_get(v, "$ref");
        if (!ref)
            return v;
        v = xm_json_target(root, ref, left);
    }
    return NULL;
}

static unsigned types_at(yyjson_val *root, yyjson_val *v, int depth, unsigned *left);

/* Returns the types of the alternatives of a list: those that all have (`all`), or those that any
 * has. */
static unsigned
types_of_choices(yyjson_val *root, yyjson_val *list, bool all, int depth, unsigned *left)
{
    unsigned types = all ? XM_JSON_ANY : 0;
    size_t i, n;
    yyjson_val *one;
    yyjson_arr_foreach(list, i, n, one)
    {
        const unsigned of_one = types_at(root, one, depth + 1, left);
        types = all ? types & of_one : types | of_one;
        if (*left == 0)
            return XM_JSON_ANY;
    }
    return types;
}

static unsigned
types_of_values(yyjson_val *list, unsigned *left)
{
    unsigned types = 0;
    size_t i, n;
    yyjson_val *one;
    if (!take_steps(left, yyjson_arr_size(list)))
        return XM_JSON_ANY;
    yyjson_arr_foreach(list, i, n, one)
    {
        types |= xm_json_type_of(one);
    }
    return types;
}

static unsigned
types_at(yyjson_val *root, yyjson_val *v, int depth,
         unsigned *left) /* NOLINT(misc-no-recursion): bounded */
{
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    v = xm_json_refers_to(root, v, left);
    if (!v || depth > DEEPEST || !take_steps(left, STEPS_OF_SCHEMA))
        return XM_JSON_ANY;
    yyjson_val *type = yyjson_obj_get(v, "type"), *list = yyjson_obj_get(v, "enum");
    yyjson_val *constant = yyjson_obj_get(v, "const");
    unsigned types = type ? xm_json_types_named(type) : XM_JSON_ANY;
    if (constant)
        types &= xm_json_type_of(constant);
    if (list)
        types &= types_of_values(list, left);
    for (size_t i = 0; i < XM_ARRAY_LEN(choices); i++) {
        list = yyjson_obj_get(v, choices[i]);
        if (list)
            types &= types_of_choices(root, list, i == 2, depth, left);
    }
    return types;
}

unsigned
xm_json_types_in(yyjson_val *root, yyjson_val *v, unsigned *left)
{
    return types_at(root, v, 0, left);
}

/* ---- values ----------------------------------------------------------------------- */

static bool
equal_objects(yyjson_val *a, yyjson_val *b)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (yyjson_obj_size(a) != yyjson_obj_size(b))
        return false;
    yyjson_obj_foreach(a, i, n, key, value)
    {
        yyjson_val *other = yyjson_obj_getn(b, yyjson_get_str(key), yyjson_get_len(key));
        if (!other || !xm_json_equal(value, other))
            return false;
    }
    return true;
}

bool
xm_json_equal(yyjson_val *a, yyjson_val *b)
{
    if (xm_json_type_of(a) != xm_json_type_of(b))
        return false;
    if (yyjson_is_int(a) && yyjson_is_int(b))
        return yyjson_get_uint(a) == yyjson_get_uint(b) &&
               yyjson_is_sint(a) == yyjson_is_sint(b);
    if (yyjson_is_num(a))
        return yyjson_get_num(a) == yyjson_get_num(b);
    if (yyjson_is_obj(a))
        return equal_objects(a, b);
    if (!yyjson_is_arr(a))
        return yyjson_equals(a, b);
    if (yyjson_arr_size(a) != yyjson_arr_size(b))
        return false;
    size_t i, n;
    yyjson_val *x, *y = yyjson_arr_get_first(b);
    yyjson_arr_foreach(a, i, n, x)
    {
        if (!xm_json_equal(x, y))
            return false;
        y = unsafe_yyjson_get_next(y);
    }
    return true;
}

/* Rewrites a JSON text as JSON.stringify spells it: 2 for 2.0, \u000b for \u000B. Returns the new
 * length. (The writer appends .0 only to doubles that are integers.) */
static size_t
respell(char *text, size_t n)
{
    bool in_string = false;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_whole = !in_string && i + 1 < n && text[i] == '.' &&
                              text[i + 1] == '0' &&
                              (i + 2 == n || strchr(",]}", text[i + 2]));
        if (is_whole) {
            i++;
            continue;
        }
        in_string ^= text[i] == '"';
        text[kept++] = text[i];
        if (!in_string || text[i] != '\\')
            continue;
        text[kept++] = text[++i];
        for (int k = text[i] == 'u' ? 4 : 0; k > 0; k--) {
            const char c = text[++i];
            text[kept++] = c >= 'A' && c <= 'F' ? (char)(c | 32) : c;
        }
    }
    return kept;
}

char *
xm_schema_json(struct xm_schema *s, yyjson_val *value, size_t *n)
{
    char *text =
        yyjson_val_write_opts(value, YYJSON_WRITE_NOFLAG, &xm_json_allocator, n, NULL);
    if (text)
        *n = respell(text, *n);
    else
        xm_schema_no_memory(s);
    return text;
}

/* Returns a node for the JSON text of a value without `skip` bytes at either end. */
static uint32_t
write_value(struct xm_schema *s, yyjson_val *value, size_t skip)
{
    size_t n = 0;
    char *text = xm_schema_json(s, value, &n);
    const uint32_t node = text ? xm_tree_text(s->t, text + skip, n - 2 * skip) : 0;
    xm_free(text);
    return node;
}

uint32_t
xm_schema_literal(struct xm_schema *s, yyjson_val *value)
{
    return write_value(s, value, 0);
}

uint32_t
xm_schema_contents(struct xm_schema *s, yyjson_val *string)
{
    return write_value(s, string, 1);
}

/* Returns whether enum and const of a schema allow the value. */
static bool
lists(yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *constant = yyjson_obj_get(schema, "const");
    yyjson_val *list = yyjson_obj_get(schema, "enum"), *one;
    size_t i, n;
    bool found = !list;
    if (constant && !xm_json_equal(constant, value))
        return false;
    yyjson_arr_foreach(list, i, n, one)
    {
        found |= xm_json_equal(one, value);
    }
    return found;
}

/* ---- values beside other keywords -------------------------------------------------- */

struct xm_grammar *
xm_schema_compile(struct xm_schema *s, struct xm_grammar_tree *own, uint32_t node,
                  const char *path)
{
    struct xm_grammar *g = NULL;
    struct xm_error why = {0};
    const uint32_t rule = xm_tree_add_rule(own, "value", 5);
    enum xm_status status = xm_tree_check(own, &why);
    if (s->failed != XM_OK)
        return NULL;
    if (status == XM_OK) {
        own->rules[rule].node = node;
        status = xm_grammar_compile(own, rule, &g, &why);
    }
    if (status == XM_NO_MEMORY)
        xm_schema_no_memory(s);
    else if (status != XM_OK && status != XM_INVALID) /* XM_INVALID: no text matches */
        xm_schema_fail(s, status, path, "%s", why.text);
    return g;
}

bool
xm_schema_matches(struct xm_schema *s, const struct xm_grammar *g, const char *text,
                  size_t n)
{
    struct xm_error why = {0};
    bool is_matched = false;
    const enum xm_status status = xm_grammar_matches(g, text, n, &is_matched, &why);
    if (status == XM_NO_MEMORY)
        xm_schema_no_memory(s);
    else if (status != XM_OK)
        xm_schema_fail(s, status, "", "%s", why.text);
    return is_matched;
}

/* A grammar of the strings or numbers that the other keywords allow, to check listed values. */
struct judge {
    unsigned types;
    bool is_needed;       /* other keywords restrict the values */
    struct xm_grammar *g; /* owned; NULL: no value is valid     */
};

static struct judge
make_judge(struct xm_schema *s, const struct xm_conjunction *c, unsigned types)
{
    struct judge j = {.types = types};
    struct xm_grammar_tree own = {0}, *const outer = s->t;
    for (size_t i = 0; i < c->n && !j.is_needed; i++)
        j.is_needed = xm_schema_restricts(&c->list[i], types);
    if (!j.is_needed || !xm_schema_works(s, 16, c->list[0].path))
        return j;
    s->t = &own;
    const uint32_t node =
        types == XM_JSON_STRING ? xm_schema_string(s, c) : xm_schema_number(s, c, types);
    s->t = outer;
    j.g = xm_schema_compile(s, &own, node, c->list[0].path);
    xm_tree_free(&own);
    return j;
}

/* Returns whether the judge allows a value; values of other types always pass. */
static bool
passes(struct xm_schema *s, const struct judge *j, yyjson_val *value)
{
    char decimal[XM_SCHEMA_NUMBER];
    if (!j->is_needed || !(xm_json_type_of(value) & j->types) || s->failed != XM_OK)
        return true;
    if (!j->g)
        return false;
    /* because the grammar of bounded numbers has no exponents */
    if (yyjson_is_num(value))
        return xm_schema_decimal(value, decimal) &&
               xm_schema_matches(s, j->g, decimal, strlen(decimal));
    size_t n = 0;
    char *text = xm_schema_json(s, value, &n);
    const bool is_matched = text && xm_schema_matches(s, j->g, text, n);
    xm_free(text);
    return is_matched;
}

bool
xm_schema_rules_out(yyjson_val *schema)
{
    yyjson_val *not = yyjson_obj_get(schema, "not"), *key, *value;
    bool names_values = false, is_more = false;
    size_t i, n;
    if (!not ) /* yyjson_obj_foreach needs an object, not NULL */
        return false;
    yyjson_obj_foreach(not, i, n, key, value)
    {
        const bool is_list = yyjson_equals_str(key, "enum") && yyjson_is_arr(value);
        const bool is_value = is_list || yyjson_equals_str(key, "const");
        names_values |= is_value;
        is_more |= !is_value && !xm_schema_is_annotation(yyjson_get_str(key));
    }
    return names_values && !is_more;
}

yyjson_val *
xm_schema_next_ruled_out(const struct xm_conjunction *c, struct xm_ruled_out *at)
{
    for (; at->schema < c->n; at->schema++, at->value = 0) {
        yyjson_val *schema = c->list[at->schema].value;
        yyjson_val *not = yyjson_obj_get(schema, "not");
        yyjson_val *list = yyjson_obj_get(not, "enum");
        yyjson_val *constant = yyjson_obj_get(not, "const");
        const size_t n = constant ? 1 : yyjson_arr_size(list);
        if (!xm_schema_rules_out(schema))
            continue;
        while (at->value < n) {
            yyjson_val *v = constant ? constant : yyjson_arr_get(list, at->value);
            at->value++;
            if (lists(not, v))
                return v;
        }
    }
    return NULL;
}

/* Returns whether a value of the schema `from` is also allowed by the enum, const and not of all
 * others. */
static bool
is_listed(struct xm_schema *s, const struct xm_conjunction *c,
          const struct xm_applied *from, unsigned types, yyjson_val *value)
{
    enum { COMPARED_AT_ONCE = 16 };
    if (!(xm_json_type_of(value) & types))
        return false;
    for (size_t i = 0; i < c->n; i++) {
        const struct xm_applied *a = &c->list[i];
        yyjson_val *not = yyjson_obj_get(a->value, "not");
        const size_t n = yyjson_arr_size(yyjson_obj_get(a->value, "enum")) +
                         yyjson_arr_size(yyjson_obj_get(not, "enum"));
        const bool has_const = yyjson_obj_get(a->value, "const") != NULL;
        if (xm_schema_rules_out(a->value) && lists(not, value))
            return false;
        if (a == from && !has_const)
            continue;
        if (!xm_schema_works(s, (unsigned)(n / COMPARED_AT_ONCE), a->path) ||
            !lists(a->value, value))
            return false;
    }
    return true;
}

/* Returns a node for the values of enum or const of `from` that are valid for the whole
 * conjunction. */
static uint32_t
valid_values(struct xm_schema *s, const struct xm_conjunction *c,
             const struct xm_applied *from, unsigned types)
{
    yyjson_val *list = yyjson_obj_get(from->value, "enum");
    yyjson_val *one = yyjson_obj_get(from->value, "const");
    const size_t n = one ? 1 : yyjson_arr_size(list);
    struct judge judges[] = {make_judge(s, c, types & XM_JSON_STRING),
                             make_judge(s, c, types & XM_JSON_NUMBER)};
    struct xm_nodes nodes = {0};
    unsigned found = 0;
    one = one ? one : yyjson_arr_get_first(list);
    for (size_t i = 0; i < n && s->failed == XM_OK; i++) {
        if (is_listed(s, c, from, types, one)) {
            found |= xm_json_type_of(one);
            if (passes(s, &judges[0], one) && passes(s, &judges[1], one))
                xm_nodes_add(s->t, &nodes, xm_schema_literal(s, one));
        }
        one = unsafe_yyjson_get_next(one);
    }
    xm_schema_refuse_beside(s, c, found & (XM_JSON_ARRAY | XM_JSON_OBJECT),
                            "arrays and objects of enum and const");
    const uint32_t node = xm_tree_any(s->t, nodes.list, nodes.n);
    xm_grammar_free(judges[0].g);
    xm_grammar_free(judges[1].g);
    xm_nodes_free(&nodes);
    return node;
}

bool
xm_schema_values(struct xm_schema *s, const struct xm_conjunction *c, unsigned types,
                 uint32_t *node)
{
    const struct xm_applied *from = NULL;
    for (size_t i = 0; i < c->n && !from; i++)
        if (yyjson_obj_get(c->list[i].value, "const") ||
            yyjson_obj_get(c->list[i].value, "enum"))
            from = &c->list[i];
    if (!from)
        return false;
    yyjson_val *list = yyjson_obj_get(from->value, "enum");
    if (list && !yyjson_is_arr(list))
        xm_schema_expected(s, xm_schema_path(s, from->path, "enum"), "a list of values",
                           list);
    *node = s->failed == XM_OK ? valid_values(s, c, from, types) : 0;
    return true;
}

/* ---- alternatives that exclude each other ----------------------------------------- */

enum {
    MOST_LOOKS = 6,
    MOST_STEPS = 1 << 16,   /* steps of one xm_json_types_in */
    STEPS_OF_WORK = 1 << 10 /* such steps for one step of xm_schema_works */
};

static yyjson_val *
follow(struct xm_schema *s, yyjson_val *v)
{
    const char *path = NULL;
    for (int i = 0; i < MOST_LOOKS && v; i++) {
        yyjson_val *ref = yyjson_obj_get(v, "$ref");
        if (!ref)
            return v;
        v = xm_schema_find(s, ref, "", &path);
    }
    return v;
}

static unsigned
types_of(struct xm_schema *s, yyjson_val *v)
{
    unsigned left = MOST_STEPS;
    /* If there are resources, "#" does not mean the root: without a root, a reference has any
     * type. */
    yyjson_val *root = xm_schema_has_resources(s) ? NULL : s->root;
    const unsigned types = xm_json_types_in(root, v, &left);
    xm_schema_works(s, (MOST_STEPS - left) / STEPS_OF_WORK, "");
    return types;
}

/* Returns whether `a` and `b` list values and `b` lists none of those of `a`. */
static bool
lists_differ(yyjson_val *a, yyjson_val *b)
{
    yyjson_val *constant = yyjson_obj_get(a, "const"), *list = yyjson_obj_get(a, "enum");
    yyjson_val *one;
    size_t i, n;
    bool differs = true;
    if (!yyjson_obj_get(b, "const") && !yyjson_obj_get(b, "enum"))
        return false;
    if (constant)
        return !lists(b, constant);
    yyjson_arr_foreach(list, i, n, one)
    {
        differs &= !lists(b, one);
    }
    return list && differs;
}

/* Returns whether no object is valid for both: `a` requires a property that `b` does not allow, or
 * allows only with values that `a` does not. */
static bool
objects_exclude(struct xm_schema *s, yyjson_val *a, yyjson_val *b, int depth)
{
    yyjson_val *key, *of_a = yyjson_obj_get(a, "properties");
    yyjson_val *of_b = yyjson_obj_get(b, "properties");
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(a, "required"), i, n, key)
    {
        const char *name = yyjson_get_str(key);
        if (!name)
            continue;
        yyjson_val *x = yyjson_obj_getn(of_a, name, yyjson_get_len(key));
        yyjson_val *y = yyjson_obj_getn(of_b, name, yyjson_get_len(key));
        if (!y && yyjson_is_false(yyjson_obj_get(b, "additionalProperties")) &&
            !yyjson_obj_get(b, "patternProperties"))
            return true;
        if (y && (yyjson_is_false(y) || (x && xm_schema_exclude(s, x, y, depth + 1))))
            return true;
    }
    return false;
}

bool
xm_schema_exclude(struct xm_schema *s, yyjson_val *a, yyjson_val *b, int depth)
{
    if (depth > MOST_LOOKS || !xm_schema_works(s, 1, ""))
        return false;
    a = follow(s, a);
    b = follow(s, b);
    if (s->failed != XM_OK)
        return false;
    if (yyjson_is_false(a) || yyjson_is_false(b))
        return true;
    const unsigned types = types_of(s, a) & types_of(s, b);
    if (!types || lists_differ(a, b) || lists_differ(b, a))
        return true;
    if (types != XM_JSON_OBJECT)
        return false;
    return objects_exclude(s, a, b, depth) || objects_exclude(s, b, a, depth);
}
