/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices: the alternatives of a conjunction that has anyOf, oneOf, not or if.
 *
 *     anyOf  [A, B]       A            or B
 *     oneOf  [A, B]       A and not B  or B and not A
 *     not    A            not A
 *     if A then B else C  A and B      or not A and C
 *
 * The negation "not A" is known for some keywords, as a list of schemas one of which applies:
 *
 *     minimum 5           a number, exclusiveMaximum 5
 *     required [a, b]     an object without a            or an object without b
 *     const "a"           not const "a": values are excluded one by one
 *
 * Alternatives of oneOf that are known to exclude each other need no negation.
 */
#include <math.h>
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/json.h"

/* ---- not --------------------------------------------------------------------------- */

enum { DEEPEST = 6 }; /* nesting depth up to which a schema is negated */

/* A list of schemas under construction. `ok` false: a failure; it stays false. */
struct making {
    struct xm_schema *s;
    yyjson_mut_doc *doc;
    bool ok;
};

static yyjson_mut_val *
add_schema(struct making *m, yyjson_mut_val *list, const char *type)
{
    yyjson_mut_val *schema = yyjson_mut_arr_add_obj(m->doc, list);
    m->ok &= schema && (!type || yyjson_mut_obj_add_str(m->doc, schema, "type", type));
    return schema;
}

/* Returns a copy of a value. It counts as work, because references may lead to the same large value
 * many times. */
static yyjson_mut_val *
copy_of(struct making *m, yyjson_val *v)
{
    enum { BYTES_OF_VALUE = 16, BYTES_OF_WORK = 256 };
    size_t bytes = 0;
    for (yyjson_val *at = v; at < unsafe_yyjson_get_next(v); at++)
        bytes += BYTES_OF_VALUE + (yyjson_is_str(at) ? yyjson_get_len(at) : 0);
    return xm_schema_works(m->s, (unsigned)(bytes / BYTES_OF_WORK), "")
               ? yyjson_val_mut_copy(m->doc, v)
               : NULL;
}

static bool
is_count(yyjson_val *v)
{
    const double x = yyjson_get_num(v);
    return yyjson_is_num(v) && x >= 0.0 && x == trunc(x) && x < XM_GRAMMAR_MOST_COUNT;
}

/* Keywords with one number: the negation is another keyword for the same type, with the number plus
 * `step`. */
static const struct bound {
    const char *key, *opposite, *type;
    int step;
    bool is_count;
} bounds[] = {{"minimum", "exclusiveMaximum", "number", 0, false},
              {"maximum", "exclusiveMinimum", "number", 0, false},
              {"exclusiveMinimum", "maximum", "number", 0, false},
              {"exclusiveMaximum", "minimum", "number", 0, false},
              {"minLength", "maxLength", "string", -1, true},
              {"maxLength", "minLength", "string", 1, true},
              {"minItems", "maxItems", "array", -1, true},
              {"maxItems", "minItems", "array", 1, true}};

static bool
add_bound(struct making *m, yyjson_mut_val *list, const char *key, yyjson_val *value)
{
    const struct bound *b = bounds;
    while (b < bounds + XM_ARRAY_LEN(bounds) && strcmp(b->key, key) != 0)
        b++;
    if (b == bounds + XM_ARRAY_LEN(bounds) || !yyjson_is_num(value) ||
        (b->is_count && !is_count(value)))
        return false;
    if (b->is_count && yyjson_get_num(value) + b->step < 0.0)
        return true;
    yyjson_mut_val *schema = add_schema(m, list, b->type);
    yyjson_mut_val *number =
        b->is_count ? yyjson_mut_uint(m->doc, (uint64_t)(yyjson_get_num(value) + b->step))
                    : copy_of(m, value);
    m->ok = m->ok && yyjson_mut_obj_add_val(m->doc, schema, b->opposite, number);
    return true;
}

static bool
add_types(struct making *m, yyjson_mut_val *list, yyjson_val *type)
{
    static const struct {
        const char *name;
        unsigned types;
    } names[] = {{"null", XM_JSON_NULL},     {"boolean", XM_JSON_BOOLEAN},
                 {"number", XM_JSON_NUMBER}, {"string", XM_JSON_STRING},
                 {"array", XM_JSON_ARRAY},   {"object", XM_JSON_OBJECT}};
    const unsigned named = xm_json_types_named(type);
    /* its complement would need numbers that are not integers */
    if (!named || (named & XM_JSON_NUMBER) == XM_JSON_INTEGER)
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(names) && m->ok; i++)
        if (!(names[i].types & named))
            add_schema(m, list, names[i].name);
    return true;
}

/* Adds schemas of objects without one of these names. False: not a list of names. */
static bool
add_missing(struct making *m, yyjson_mut_val *list, yyjson_val *names)
{
    size_t i, n;
    yyjson_val *name;
    bool are_names = yyjson_is_arr(names);
    yyjson_arr_foreach(names, i, n, name)
    {
        are_names &= yyjson_is_str(name);
        yyjson_mut_val *schema = add_schema(m, list, "object");
        yyjson_mut_val *all = yyjson_mut_obj_add_obj(m->doc, schema, "properties");
        m->ok = m->ok && all &&
                yyjson_mut_obj_add(all, copy_of(m, name), yyjson_mut_bool(m->doc, false));
    }
    return are_names;
}

/* Adds the schema {"not": {key: value}}, all values except some. False: enum is not a list. */
static bool
add_values(struct making *m, yyjson_mut_val *list, const char *key, yyjson_val *value)
{
    yyjson_mut_val *schema = add_schema(m, list, NULL);
    yyjson_mut_val *not = yyjson_mut_obj_add_obj(m->doc, schema, "not");
    m->ok = m->ok && not &&yyjson_mut_obj_add_val(m->doc, not, key, copy_of(m, value));
    return strcmp(key, "const") == 0 || yyjson_is_arr(value);
}

static bool add_opposite(struct making *m, yyjson_mut_val *list, yyjson_val *v,
                         int depth);

/* Adds schemas of objects that have one of the properties with a value that is not valid for its
 * schema. False: such a value's schema is not known. */
static bool
add_wrong(struct making *m, yyjson_mut_val *list, yyjson_val *properties, int depth)
{
    size_t i, n, k, count;
    yyjson_val *key, *value;
    bool is_known = yyjson_is_obj(properties);
    yyjson_obj_foreach(properties, i, n, key, value)
    {
        yyjson_mut_val *wrong = yyjson_mut_arr(m->doc), *one;
        is_known = is_known && wrong && add_opposite(m, wrong, value, depth + 1);
        yyjson_mut_arr_foreach(wrong, k, count, one)
        {
            yyjson_mut_val *schema = add_schema(m, list, "object");
            yyjson_mut_val *all = yyjson_mut_obj_add_obj(m->doc, schema, "properties");
            yyjson_mut_val *required = yyjson_mut_obj_add_arr(m->doc, schema, "required");
            m->ok = m->ok && all && required &&
                    yyjson_mut_arr_append(required, copy_of(m, key)) &&
                    yyjson_mut_obj_add(all, copy_of(m, key),
                                       yyjson_mut_val_mut_copy(m->doc, one));
        }
    }
    return is_known;
}

static bool
add_for_keyword(struct making *m, yyjson_mut_val *list, yyjson_val *schema,
                const char *key, yyjson_val *value, int depth)
{
    size_t i, n;
    yyjson_val *one;
    bool is_known = true;
    if (xm_schema_is_annotation(key))
        return true;
    if (strcmp(key, "type") == 0)
        return add_types(m, list, value);
    if (strcmp(key, "required") == 0)
        return add_missing(m, list, value);
    if (strcmp(key, "properties") == 0)
        return add_wrong(m, list, value, depth);
    if (strcmp(key, "const") == 0 || strcmp(key, "enum") == 0)
        return add_values(m, list, key, value);
    if (strcmp(key, "$ref") == 0) {
        const char *path = NULL;
        yyjson_val *target = xm_schema_find(m->s, value, "", &path);
        return target && target != schema && add_opposite(m, list, target, depth + 1);
    }
    if (strcmp(key, "allOf") != 0)
        return add_bound(m, list, key, value);
    yyjson_arr_foreach(value, i, n, one)
    {
        is_known = is_known && add_opposite(m, list, one, depth + 1);
    }
    return is_known && yyjson_is_arr(value);
}

/* Adds the negation of `v` to the list: an instance that does not satisfy `v` satisfies one of the
 * schemas. False: the negation is not known. */
static bool
add_opposite(struct making *m, yyjson_mut_val *list, yyjson_val *v,
             int depth) /* NOLINT(misc-no-recursion): bounded */
{
    size_t i, n;
    yyjson_val *key, *value;
    bool is_known = yyjson_is_bool(v) || yyjson_is_obj(v);
    if (depth > DEEPEST || !m->ok || !xm_schema_works(m->s, 1, ""))
        return false;
    if (yyjson_is_false(v))
        m->ok &= yyjson_mut_arr_add_bool(m->doc, list, true);
    yyjson_obj_foreach(v, i, n, key, value)
    {
        is_known =
            is_known && add_for_keyword(m, list, v, yyjson_get_str(key), value, depth);
    }
    return is_known;
}

/* Returns the negation of `v`, a list of schemas; it is kept in s->opposites. NULL: it is not
 * known, or s has failed. */
static yyjson_val *
opposite_of(struct xm_schema *s, yyjson_val *v)
{
    for (size_t i = 0; i < s->n_opposites; i++)
        if (s->opposites[i].of == v)
            return yyjson_doc_get_root(s->opposites[i].schemas);
    struct xm_opposite *grown =
        xm_grow(s->opposites, &s->opposites_capacity, s->n_opposites + 1, sizeof(*grown));
    struct making m = {.s = s, .doc = yyjson_mut_doc_new(&xm_json_allocator), .ok = true};
    yyjson_mut_val *list = yyjson_mut_arr(m.doc);
    s->opposites = grown ? grown : s->opposites;
    if (!grown || !list) {
        yyjson_mut_doc_free(m.doc);
        xm_schema_no_memory(s);
        return NULL;
    }
    yyjson_mut_doc_set_root(m.doc, list);
    const bool is_known = add_opposite(&m, list, v, 0);
    yyjson_doc *schemas =
        is_known && m.ok ? yyjson_mut_doc_imut_copy(m.doc, &xm_json_allocator) : NULL;
    if (!m.ok || (is_known && !schemas))
        xm_schema_no_memory(s);
    yyjson_mut_doc_free(m.doc);
    s->opposites[s->n_opposites++] = (struct xm_opposite){v, schemas};
    return yyjson_doc_get_root(schemas);
}

/* ---- oneOf ------------------------------------------------------------------------- */

static void
fail_one_of(struct xm_schema *s, const char *path, size_t i, size_t k)
{
    xm_schema_fail(
        s, XM_UNSUPPORTED, path,
        "the alternatives %zu and %zu are not known to exclude each other: use "
        "anyOf, or make them differ in type, const, enum, or a required property",
        i < k ? i : k, i < k ? k : i);
}

static bool
are_few(struct xm_schema *s, yyjson_val *list, const char *path)
{
    if (yyjson_arr_size(list) > 64)
        xm_schema_fail(s, XM_UNSUPPORTED, path, "oneOf has more than 64 alternatives");
    return s->failed == XM_OK;
}

void
xm_schema_check_one_of(struct xm_schema *s, yyjson_val *list, const char *path)
{
    size_t i, n, k, m;
    yyjson_val *a, *b;
    if (!are_few(s, list, path))
        return;
    yyjson_arr_foreach(list, i, n, a)
    {
        yyjson_arr_foreach(list, k, m, b)
        {
            if (k < i && s->failed == XM_OK && !xm_schema_exclude(s, a, b, 0))
                fail_one_of(s, path, i, k);
        }
    }
}

/* ---- alternatives ------------------------------------------------------------------ */

/* A choice keyword whose alternatives are being collected. */
struct choice {
    struct xm_conjunction base; /* owned; the schemas that apply as well */
    yyjson_val *list;           /* the value of the keyword */
    const char *path;
    struct xm_nodes nodes; /* owned; a node for each alternative */
};

static void
push(struct xm_schema *s, struct xm_conjunction *c, yyjson_val *schema, const char *path)
{
    if (s->failed == XM_OK && schema)
        xm_conjunction_add(s, c, schema, path, 0);
}

/* Adds the alternative that consists of the schemas in ch->base. */
static void
add_alternative(struct xm_schema *s, struct choice *ch)
{
    struct xm_conjunction one = {0};
    for (size_t i = 0; i < ch->base.n && s->failed == XM_OK; i++)
        xm_conjunction_add(s, &one, ch->base.list[i].value, ch->base.list[i].path,
                           ch->base.list[i].skips);
    if (s->failed == XM_OK)
        xm_nodes_add(s->t, &ch->nodes, xm_schema_node(s, &one));
    xm_conjunction_free(&one);
}

/* Adds an alternative for each schema of a list, together with the schema `beside` (NULL: none). */
static void
add_each(struct xm_schema *s, struct choice *ch, yyjson_val *list, const char *path,
         yyjson_val *beside, const char *beside_path)
{
    const size_t before = ch->base.n;
    size_t i, n;
    yyjson_val *part;
    yyjson_arr_foreach(list, i, n, part)
    {
        push(s, &ch->base, part, path);
        push(s, &ch->base, beside, beside_path);
        add_alternative(s, ch);
        ch->base.n = before;
    }
}

/* Adds alternative i of oneOf, and excludes the others from number k on. */
static void
add_one_of(struct xm_schema *s, struct choice *ch, size_t i, size_t k)
{
    yyjson_val *own = yyjson_arr_get(ch->list, i), *other = NULL, *part;
    const size_t before = ch->base.n;
    size_t at, n;
    for (; s->failed == XM_OK && k < yyjson_arr_size(ch->list); k++) {
        other = yyjson_arr_get(ch->list, k);
        if (k != i && !xm_schema_exclude(s, own, other, 0))
            break;
    }
    if (k >= yyjson_arr_size(ch->list)) {
        add_alternative(s, ch);
        return;
    }
    yyjson_val *opposite = s->failed == XM_OK ? opposite_of(s, other) : NULL;
    if (!opposite) {
        fail_one_of(s, ch->path, i, k);
        return;
    }
    yyjson_arr_foreach(opposite, at, n, part)
    {
        push(s, &ch->base, part, xm_schema_path_at(s, ch->path, k));
        if (s->failed == XM_OK)
            add_one_of(s, ch, i, k + 1);
        ch->base.n = before;
    }
}

static void
choose_one_of(struct xm_schema *s, struct choice *ch)
{
    const size_t before = ch->base.n, n = yyjson_arr_size(ch->list);
    for (size_t i = 0; i < n && are_few(s, ch->list, ch->path); i++) {
        push(s, &ch->base, yyjson_arr_get(ch->list, i),
             xm_schema_path_at(s, ch->path, i));
        add_one_of(s, ch, i, 0);
        ch->base.n = before;
    }
}

/* Adds the alternatives of if, then and else. False: the negation of the condition is not known. */
static bool
choose_if(struct xm_schema *s, struct choice *ch, const struct xm_applied *a)
{
    yyjson_val *condition = yyjson_obj_get(a->value, "if");
    yyjson_val *then = yyjson_obj_get(a->value, "then");
    yyjson_val *other = yyjson_obj_get(a->value, "else");
    yyjson_val *opposite = then || other ? opposite_of(s, condition) : NULL;
    const size_t before = ch->base.n;
    if (!opposite)
        return false;
    push(s, &ch->base, condition, ch->path);
    push(s, &ch->base, then, xm_schema_path(s, a->path, "then"));
    add_alternative(s, ch);
    ch->base.n = before;
    add_each(s, ch, opposite, ch->path, other, xm_schema_path(s, a->path, "else"));
    return true;
}

/* Adds the alternatives of one keyword. False: they are not known. */
static bool
choose_of(struct xm_schema *s, struct choice *ch, const struct xm_applied *a,
          const char *key)
{
    yyjson_val *v = yyjson_obj_get(a->value, key), *part, *opposite;
    const size_t before = ch->base.n;
    size_t i, n;
    if (strcmp(key, "if") == 0)
        return choose_if(s, ch, a);
    if (strcmp(key, "not") == 0) {
        if (xm_schema_rules_out(a->value))
            return false;
        opposite = opposite_of(s, v);
        add_each(s, ch, opposite, ch->path, NULL, "");
        return opposite != NULL;
    }
    ch->list = v;
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) == 0)
        xm_schema_expected(s, ch->path, "a list of schemas", v);
    else if (strcmp(key, "oneOf") == 0)
        choose_one_of(s, ch);
    else
        yyjson_arr_foreach(v, i, n, part)
        {
            push(s, &ch->base, part, xm_schema_path_at(s, ch->path, i));
            add_alternative(s, ch);
            ch->base.n = before;
        }
    return true;
}

bool
xm_schema_choose(struct xm_schema *s, const struct xm_conjunction *c, uint32_t *node)
{
    static const struct {
        const char *key;
        unsigned skip;
    } kinds[] = {{"oneOf", XM_SKIP_ONE_OF},
                 {"anyOf", XM_SKIP_ANY_OF},
                 {"not", XM_SKIP_NOT},
                 {"if", XM_SKIP_IF}};
    const size_t n_kinds = XM_ARRAY_LEN(kinds);
    bool is_chosen = false;
    for (size_t at = 0; at < n_kinds * c->n && !is_chosen; at++) {
        const struct xm_applied *a = &c->list[at / n_kinds];
        const char *key = kinds[at % n_kinds].key;
        const unsigned skip = kinds[at % n_kinds].skip;
        struct choice ch = {0};
        if (!yyjson_obj_get(a->value, key) || (a->skips & skip) || s->failed != XM_OK)
            continue;
        ch.path = xm_schema_path(s, a->path, key);
        for (size_t k = 0; k < c->n && s->failed == XM_OK; k++)
            xm_conjunction_add(s, &ch.base, c->list[k].value, c->list[k].path,
                               c->list[k].skips | (&c->list[k] == a ? skip : 0u));
        is_chosen = s->failed == XM_OK && choose_of(s, &ch, a, key);
        if (is_chosen)
            *node = xm_tree_any(s->t, ch.nodes.list, ch.nodes.n);
        xm_conjunction_free(&ch.base);
        xm_nodes_free(&ch.nodes);
    }
    return is_chosen || s->failed != XM_OK;
}
