/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of the instances of a JSON Schema.
 *
 * A schema is expanded to a conjunction: the schema itself, the schemas that it refers to, the
 * members of allOf. anyOf and oneOf give one conjunction for each alternative. When nothing is left
 * to expand, the texts of each type that all schemas allow are made separately. A schema that is
 * only referred to, without other keywords beside the reference, becomes a rule, so that schemas
 * may be recursive.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

enum {
    MOST_WORK = 1 << 16, /* limit of steps: schemas in conjunctions, compared pairs */
    MOST_APPLIED = 256,  /* schemas in one conjunction */
    LONGEST_SHOWN = 200, /* bytes of a path in an error message */
    MOST_NESTED = 1024   /* depth of arrays and objects in a schema */
};

/* ---- failures and paths ----------------------------------------------------------- */

/* Returns the end of a path that is too long for an error message, starting at a name if
 * possible. */
static struct xm_slice
last_names(const char *path, size_t most)
{
    const size_t n = strlen(path);
    const char *from = n > most ? strchr(path + n - most, '/') : path;
    return from ? xm_slice_of(from, n - (size_t)(from - path))
                : xm_slice_of(path + n - most, most);
}

uint32_t
xm_schema_fail(struct xm_schema *s, enum xm_status status, const char *path,
               const char *fmt, ...)
{
    struct xm_strbuf text = {0};
    va_list ap;
    if (s->failed != XM_OK)
        return 0;
    va_start(ap, fmt);
    xm_strbuf_print_v(&text, fmt, ap);
    va_end(ap);
    char shown[LONGEST_SHOWN + 1];
    const struct xm_slice end = last_names(path, LONGEST_SHOWN);
    xm_utf8_show(end, shown, sizeof(shown));
    s->failed =
        xm_fail(s->err, status, "JSON Schema, %s%s: %s", end.n < strlen(path) ? "…" : "",
                *path ? shown : "at its root", xm_strbuf_text(&text));
    xm_strbuf_free(&text);
    return 0;
}

uint32_t
xm_schema_expected(struct xm_schema *s, const char *path, const char *what,
                   yyjson_val *found)
{
    enum { MOST = 40 };
    char shown[MOST + 1];
    size_t n = 0;
    char *json = xm_schema_json(s, found, &n);
    if (json)
        xm_utf8_show(xm_slice_of(json, n), shown, sizeof(shown));
    if (json)
        xm_schema_fail(s, XM_INVALID, path, "expected %s, found %s%s", what, shown,
                       n > MOST ? "…" : "");
    xm_free(json);
    return 0;
}

uint32_t
xm_schema_no_memory(struct xm_schema *s)
{
    if (s->failed == XM_OK)
        s->failed = xm_no_memory(s->err, "a JSON Schema");
    return 0;
}

const char *
xm_schema_path(struct xm_schema *s, const char *path, const char *key)
{
    struct xm_strbuf b = {0};
    xm_strbuf_add(&b, path);
    xm_strbuf_add(&b, "/");
    for (const char *c = key; *c; c++) {
        if (*c == '~' || *c == '/')
            xm_strbuf_add(&b, *c == '~' ? "~0" : "~1");
        else
            xm_strbuf_add_n(&b, c, 1);
    }
    const char *out = xm_strbuf_ok(&b) ? xm_arena_strdup(&s->arena, b.text) : NULL;
    xm_strbuf_free(&b);
    if (!out)
        xm_schema_no_memory(s);
    return out ? out : "";
}

const char *
xm_schema_path_at(struct xm_schema *s, const char *path, size_t i)
{
    const char *out = xm_arena_printf(&s->arena, "%s/%zu", path, i);
    if (!out)
        xm_schema_no_memory(s);
    return out ? out : "";
}

/* ---- conjunctions ----------------------------------------------------------------- */

void
xm_conjunction_add(struct xm_schema *s, struct xm_conjunction *c, yyjson_val *value,
                   const char *path, unsigned skips)
{
    if (c->n >= MOST_APPLIED) {
        xm_schema_fail(s, XM_UNSUPPORTED, path, "too many schemas apply together here");
        return;
    }
    struct xm_applied *grown = xm_grow(c->list, &c->capacity, c->n + 1, sizeof(*grown));
    if (!grown) {
        xm_schema_no_memory(s);
        return;
    }
    c->list = grown;
    c->list[c->n++] = (struct xm_applied){value, path, skips};
}

void
xm_conjunction_free(struct xm_conjunction *c)
{
    xm_free(c->list);
    *c = (struct xm_conjunction){0};
}

/* ---- rules and errors -------------------------------------------------------------- */

/* Returns the rule of a schema that is referred to; its body is made later. */
static uint32_t
rule_of(struct xm_schema *s, yyjson_val *value, const char *path)
{
    const uint64_t hash = xm_hash_number((uint64_t)(uintptr_t)value);
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&s->wanted_index, &p))
        if (s->wanted[p.item].value == value)
            return s->wanted[p.item].rule;
    struct xm_wanted *grown =
        xm_grow(s->wanted, &s->wanted_capacity, s->n_wanted + 1, sizeof(*grown));
    s->wanted = grown ? grown : s->wanted;
    if (!grown || !xm_hash_add(&s->wanted_index, hash, (uint32_t)s->n_wanted))
        return xm_schema_no_memory(s);
    const uint32_t rule = xm_tree_add_rule(s->t, path, strlen(path));
    s->wanted[s->n_wanted++] = (struct xm_wanted){value, path, rule};
    return rule;
}

void
xm_schema_note(struct xm_schema *s, uint32_t node, struct xm_applied before,
               struct xm_applied schema)
{
    if (before.value || s->failed != XM_OK || s->t->failed != XM_OK ||
        !xm_tree_is_never(s->t, node))
        s->impossible = before;
    else if (!s->impossible.value)
        s->impossible = schema;
}

uint32_t
xm_schema_fail_impossible(struct xm_schema *s)
{
    const struct xm_applied *a = &s->impossible;
    struct xm_strbuf keys = {0};
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(a->value, i, n, key, value)
    {
        if (!xm_schema_is_annotation(yyjson_get_str(key)) && keys.n < LONGEST_SHOWN)
            xm_strbuf_printf(
                &keys, "%s'%s'", keys.n ? ", " : "",
                xm_utf8_shown(xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)))
                    .text);
    }
    if (!a->value)
        xm_schema_fail(s, XM_INVALID, "",
                       "no value is valid: it needs one of its own kind within each");
    else if (yyjson_is_false(a->value))
        xm_schema_fail(s, XM_INVALID, a->path,
                       "a value is needed here, and none is valid for false");
    else
        xm_schema_fail(s, XM_INVALID, a->path, "no value is valid for its keywords %s",
                       xm_strbuf_text(&keys));
    xm_strbuf_free(&keys);
    return 0;
}

/* Returns whether a schema is a reference without other keywords that restrict instances. */
static bool
is_plain_reference(const struct xm_applied *a)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(a->value) || a->skips || !yyjson_obj_get(a->value, "$ref"))
        return false;
    yyjson_obj_foreach(a->value, i, n, key, value)
    {
        if (strcmp(yyjson_get_str(key), "$ref") != 0 &&
            !xm_schema_is_annotation(yyjson_get_str(key)))
            return false;
    }
    return true;
}

/* ---- expanding -------------------------------------------------------------------- */

/* Adds to the conjunction the schema that schema `i` refers to, and the members of its allOf. */
static void
expand_one(struct xm_schema *s, struct xm_conjunction *c, size_t i)
{
    const struct xm_applied a = c->list[i];
    const char *target = NULL;
    size_t k, n;
    yyjson_val *part, *ref = yyjson_obj_get(a.value, "$ref");
    yyjson_val *all = yyjson_obj_get(a.value, "allOf");
    c->list[i].skips |= XM_SKIP_REF | XM_SKIP_ALL_OF;
    if (ref && !(a.skips & XM_SKIP_REF)) {
        yyjson_val *value = xm_schema_find(s, ref, a.path, &target);
        for (size_t j = 0; value && j < c->n; j++)
            if (c->list[j].value == value) {
                value = NULL; /* it is in the conjunction already */
                break;
            }
        if (value)
            xm_conjunction_add(s, c, value, target, 0);
    }
    if (!all || (a.skips & XM_SKIP_ALL_OF))
        return;
    const char *path = xm_schema_path(s, a.path, "allOf");
    if (!yyjson_is_arr(all))
        xm_schema_expected(s, path, "a list of schemas", all);
    yyjson_arr_foreach(all, k, n, part)
    {
        if (s->failed == XM_OK)
            xm_conjunction_add(s, c, part, xm_schema_path_at(s, path, k), 0);
    }
}

/* Expands references and allOf of all schemas, and removes schemas that are `true`. False: a schema
 * is `false`, so nothing is valid. */
static bool
expand(struct xm_schema *s, struct xm_conjunction *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n && s->failed == XM_OK; i++) {
        const struct xm_applied *a = &c->list[i];
        if (yyjson_is_false(a->value))
            return false;
        if (yyjson_is_obj(a->value))
            expand_one(s, c, i);
        else if (!yyjson_is_true(a->value))
            xm_schema_expected(s, a->path, "a schema: an object, true or false",
                               a->value);
    }
    for (size_t i = 0; i < c->n; i++) {
        c->list[kept] = c->list[i];
        kept += yyjson_is_obj(c->list[i].value);
    }
    c->n = kept;
    return true;
}

/* ---- types ------------------------------------------------------------------------ */

/* Removes null from `types` and sets is_out[value] for booleans, if the keyword `not` excludes them
 * by value. Excluded strings are handled by xm_schema_other_string. */
static unsigned
rule_out(struct xm_schema *s, const struct xm_conjunction *c, unsigned types,
         bool is_out[2])
{
    struct xm_ruled_out at = {0};
    yyjson_val *v;
    while ((v = xm_schema_next_ruled_out(c, &at)) != NULL) {
        const unsigned type = xm_json_type_of(v);
        if (type == XM_JSON_NULL)
            types &= ~type;
        else if (type == XM_JSON_BOOLEAN)
            is_out[yyjson_is_true(v)] = true;
        else if (type != XM_JSON_STRING && (types & type))
            xm_schema_fail(s, XM_UNSUPPORTED,
                           xm_schema_path(s, c->list[at.schema].path, "not"),
                           "numbers, arrays and objects in the keyword 'not' are "
                           "supported only beside const and enum");
    }
    return types;
}

static uint32_t
types_node(struct xm_schema *s, const struct xm_conjunction *c, unsigned types)
{
    struct xm_nodes list = {0};
    bool is_out[2] = {false, false};
    types = rule_out(s, c, types, is_out);
    if (types & XM_JSON_NULL)
        xm_nodes_add(s->t, &list, xm_tree_text(s->t, "null", 4));
    if ((types & XM_JSON_BOOLEAN) && !is_out[1])
        xm_nodes_add(s->t, &list, xm_tree_text(s->t, "true", 4));
    if ((types & XM_JSON_BOOLEAN) && !is_out[0])
        xm_nodes_add(s->t, &list, xm_tree_text(s->t, "false", 5));
    if (types & XM_JSON_NUMBER)
        xm_nodes_add(s->t, &list, xm_schema_number(s, c, types));
    if (types & XM_JSON_STRING)
        xm_nodes_add(s->t, &list, xm_schema_string(s, c));
    if (types & XM_JSON_ARRAY)
        xm_nodes_add(s->t, &list, xm_schema_array(s, c));
    if (types & XM_JSON_OBJECT)
        xm_nodes_add(s->t, &list, xm_schema_object(s, c));
    const uint32_t node = xm_tree_any(s->t, list.list, list.n);
    xm_nodes_free(&list);
    return node;
}

static uint32_t
make_node(struct xm_schema *s, struct xm_conjunction *c)
{
    unsigned types = XM_JSON_ANY;
    uint32_t node = 0;
    const char *target = NULL;
    if (c->n == 1 && is_plain_reference(&c->list[0])) {
        yyjson_val *ref = yyjson_obj_get(c->list[0].value, "$ref");
        yyjson_val *value = xm_schema_find(s, ref, c->list[0].path, &target);
        return value ? xm_tree_rule_ref(s->t, rule_of(s, value, target)) : 0;
    }
    if (!expand(s, c))
        return xm_tree_never(s->t);
    if (s->failed != XM_OK || xm_schema_choose(s, c, &node))
        return node;
    for (size_t i = 0; i < c->n; i++) {
        types &= xm_schema_types(s, &c->list[i]);
        /* handled by xm_schema_object and xm_schema_values */
        c->list[i].skips |= XM_SKIP_COUNTS;
        if (xm_schema_rules_out(c->list[i].value))
            c->list[i].skips |= XM_SKIP_NOT;
    }
    xm_schema_refuse(s, c, types);
    if (s->failed != XM_OK || xm_schema_values(s, c, types, &node))
        return node;
    return c->n == 0 ? xm_schema_any_value(s) : types_node(s, c, types);
}

bool
xm_schema_works(struct xm_schema *s, unsigned n, const char *path)
{
    s->work += n;
    if (s->work > MOST_WORK)
        xm_schema_fail(s, XM_UNSUPPORTED, path,
                       "the schema has too many combinations of alternatives");
    return s->failed == XM_OK;
}

/* Fails if the tree has become too large, and blames the schema at `path`, which is being read. */
static void
check_tree(struct xm_schema *s, const char *path)
{
    struct xm_error why = {0};
    if (s->failed != XM_OK || xm_tree_check(s->t, &why) == XM_OK)
        return;
    if (why.status == XM_NO_MEMORY)
        xm_schema_no_memory(s);
    else
        xm_schema_fail(s, why.status, path, "%s", why.text);
}

static void
note_place(struct xm_schema *s, uint32_t node, const char *path)
{
    struct xm_schema_place *grown =
        xm_grow(s->places, &s->places_capacity, s->n_places + 1, sizeof(*grown));
    if (!grown) {
        xm_schema_no_memory(s);
        return;
    }
    s->places = grown;
    s->places[s->n_places++] = (struct xm_schema_place){node, path};
    xm_tree_mark(s->t, node);
}

/* Returns the path of the innermost schema during whose compilation a limit was reached. */
static const char *
too_large_at(const struct xm_schema *s)
{
    for (size_t i = 0; s->t->too_large_at != 0 && i < s->n_places; i++)
        if (s->places[i].node == s->t->too_large_at)
            return s->places[i].path;
    return "";
}

uint32_t
xm_schema_node(struct xm_schema *s, struct xm_conjunction *c)
{
    if (s->failed != XM_OK)
        return 0;
    if (!xm_schema_works(s, (unsigned)c->n + 1, c->list[0].path))
        return 0;
    if (s->depth >= XM_GRAMMAR_DEPTH)
        return xm_schema_fail(s, XM_UNSUPPORTED, c->list[0].path,
                              "schemas are nested too deeply, or refer to themselves "
                              "beside other keywords");
    const struct xm_applied before = s->impossible, schema = c->list[c->n - 1];
    s->impossible.value = NULL;
    s->depth++;
    const uint32_t node = make_node(s, c);
    s->depth--;
    xm_schema_note(s, node, before, schema);
    check_tree(s, schema.path);
    if (s->failed == XM_OK)
        note_place(s, node, schema.path);
    return s->failed == XM_OK ? node : 0;
}

/* ---- the schema ------------------------------------------------------------------- */

/* Makes the nodes for white space: where JSON allows any white space, the grammar allows one blank,
 * or one or two line ends followed by at most 40 blanks. It is bounded so that every text ends. */
static void
make_spaces(struct xm_schema *s)
{
    struct xm_grammar_tree *t = s->t;
    struct xm_class blank = {0};
    xm_class_add(&blank, ' ', ' ');
    xm_class_add(&blank, '\t', '\t');
    xm_class_normalise(&blank);
    const uint32_t lines = xm_tree_all(
        t,
        (uint32_t[]){xm_tree_repeat(t, xm_tree_text(t, "\n", 1), 1, 2),
                     xm_tree_repeat(t, xm_tree_class(t, &blank, XM_SPELL_PLAIN), 0, 40)},
        2);
    xm_class_free(&blank);
    s->space =
        xm_tree_any(t, (uint32_t[]){xm_tree_empty(t), xm_tree_text(t, " ", 1), lines}, 3);
    s->separator = xm_tree_all(t, (uint32_t[]){xm_tree_text(t, ",", 1), s->space}, 2);
    s->colon = xm_tree_all(t, (uint32_t[]){xm_tree_text(t, ":", 1), s->space}, 2);
}

static uint32_t
make_rule(struct xm_schema *s, yyjson_val *value, const char *path)
{
    struct xm_conjunction c = {0};
    xm_conjunction_add(s, &c, value, path, 0);
    const uint32_t node = xm_schema_node(s, &c);
    xm_conjunction_free(&c);
    return node;
}

/* Returns whether arrays and objects are nested more than `most` deep. */
static bool
is_deeper(yyjson_val *v, int most) /* NOLINT(misc-no-recursion): bounded */
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_is_ctn(v))
        return false;
    if (most == 0)
        return true;
    yyjson_arr_foreach(v, i, n, value)
    {
        if (is_deeper(value, most - 1))
            return true;
    }
    yyjson_obj_foreach(v, i, n, key, value)
    {
        if (is_deeper(value, most - 1))
            return true;
    }
    return false;
}

void
xm_schema_open(struct xm_schema *s, struct xm_grammar_tree *t, yyjson_val *root,
               struct xm_error *err)
{
    *s = (struct xm_schema){.t = t, .root = root, .err = err, .any_value = XM_NOWHERE};
    make_spaces(s);
    if (is_deeper(root, MOST_NESTED))
        xm_schema_fail(s, XM_UNSUPPORTED, "",
                       "its arrays and objects are nested more than %d deep",
                       MOST_NESTED);
}

void
xm_schema_close(struct xm_schema *s)
{
    xm_free(s->wanted);
    xm_free(s->places);
    xm_free(s->names);
    for (size_t i = 0; i < s->n_opposites; i++)
        yyjson_doc_free(s->opposites[i].schemas);
    xm_free(s->opposites);
    xm_hash_free(&s->wanted_index);
    xm_arena_free(&s->arena);
}

uint32_t
xm_schema_rule(struct xm_schema *s, yyjson_val *value, const char *path)
{
    return rule_of(s, value, path);
}

enum xm_status
xm_schema_make_rules(struct xm_schema *s)
{
    for (size_t i = 0; i < s->n_wanted && s->failed == XM_OK; i++) {
        const uint32_t node = make_rule(s, s->wanted[i].value, s->wanted[i].path);
        if (s->failed == XM_OK && s->t->failed == XM_OK)
            s->t->rules[s->wanted[i].rule].node = node;
        if (s->t->failed != XM_OK)
            break;
    }
    XM_TRY(s->failed);
    return xm_tree_check(s->t, s->err);
}

static enum xm_status
read_schema(struct xm_schema *s, struct xm_grammar **out)
{
    const uint32_t root = rule_of(s, s->root, "");
    struct xm_error why = {0};
    XM_TRY(xm_schema_make_rules(s));
    const enum xm_status status = xm_grammar_compile(s->t, root, out, &why);
    if (status == XM_INVALID) { /* no text matches */
        xm_schema_fail_impossible(s);
        return s->failed;
    }
    if (status != XM_OK && status != XM_NO_MEMORY) {
        xm_schema_fail(s, status, too_large_at(s), "%s", why.text);
        return s->failed;
    }
    return status == XM_OK ? XM_OK : xm_fail(s->err, status, "%s", why.text);
}

enum xm_status
xm_grammar_from_schema(const char *json, size_t n, struct xm_grammar **out,
                       struct xm_error *err)
{
    struct xm_grammar_tree t = {0};
    struct xm_schema s;
    yyjson_doc *doc = NULL;
    *out = NULL;
    if (n > XM_GRAMMAR_MOST_BYTES)
        return xm_fail(err, XM_UNSUPPORTED, "JSON Schema: it has %zu bytes, at most %d",
                       n, XM_GRAMMAR_MOST_BYTES);
    enum xm_status status = xm_json_parse(json, n, &doc, err);
    if (status != XM_OK) {
        xm_error_prefix(err, "JSON Schema");
        return status;
    }
    xm_schema_open(&s, &t, yyjson_doc_get_root(doc), err);
    status = read_schema(&s, out);
    yyjson_doc_free(doc);
    xm_schema_close(&s);
    xm_tree_free(&t);
    return status;
}
