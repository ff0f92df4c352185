/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of objects: first the properties with known names, in the order of the schema,
 * then those whose names match a pattern, then additional ones.
 *
 * Pattern names that are no known property, and names that are neither, must be told apart from the
 * others. That is possible if the pattern is a prefix, as ^x-: other patterns are supported only if
 * no names have to be told apart from theirs.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

/* ---- objects ---------------------------------------------------------------------- */

/* A property that a schema names, or a prefix of names. */
struct property {
    const char *name;
    size_t n;
    bool required;
    bool is_beginning; /* `name` is a prefix (only in lists of excluded names) */
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
                       "more than %d properties or values, or one of more than %d bytes",
                       MOST_PROPERTIES, LONGEST_NAME);
        return;
    }
    struct property *grown = xm_grow(p->list, &p->capacity, p->n + 1, sizeof(*grown));
    if (!grown) {
        xm_schema_no_memory(s);
        return;
    }
    p->list = grown;
    p->list[p->n++] = (struct property){name, yyjson_get_len(key), required, false};
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
            xm_schema_expected(s, path,
                               k < c->n ? "an object of schemas" : "a list of names", v);
        yyjson_obj_foreach(v, i, n, key, value)
        {
            if (s->failed == XM_OK)
                add_property(s, p, key, false, path);
        }
        yyjson_arr_foreach(v, i, n, value)
        {
            if (!yyjson_is_str(value))
                xm_schema_expected(s, path, "a list of names", v);
            if (s->failed == XM_OK)
                add_property(s, p, value, true, path);
        }
    }
}

/* ---- patterns ---- */

/* A member of patternProperties. */
struct pattern {
    struct xm_slice text;
    yyjson_val *value;
    const char *path;    /* JSON pointer of its schema */
    size_t applied;      /* index in the conjunction of the schema that has it */
    const char *literal; /* the text with which all matching names begin */
    size_t n_literal;
    bool is_beginning; /* every name that begins with it matches */
};

struct patterns {
    struct pattern *list; /* owned */
    size_t n, capacity;
};

enum { MOST_PATTERNS = 64 };

/* Finds the pattern's literal prefix: the plain characters behind ^. */
static void
find_literal(struct pattern *p)
{
    static const char special[] = "\\^$.*+?()[]{}|";
    const char *at = p->text.text + 1, *end = p->text.text + p->text.n;
    p->literal = at;
    if (p->text.n == 0 || p->text.text[0] != '^')
        return;
    while (at < end && *at && !strchr(special, *at))
        at++;
    p->n_literal = (size_t)(at - p->literal);
    p->is_beginning = at == end;
    for (const char *c = at; c < end; c++)
        if (*c == '|') /* an alternative: there is no common prefix */
            p->n_literal = 0;
    /* the last character is optional: it is removed with all its bytes */
    while (at < end && strchr("*?{", *at) && p->n_literal > 0 &&
           ((uint8_t)p->literal[--p->n_literal] & 0xc0) == 0x80) {
    }
}

static void
list_patterns(struct xm_schema *s, const struct xm_conjunction *c, struct patterns *p)
{
    size_t i, n;
    yyjson_val *key, *value;
    for (size_t k = 0; k < c->n && s->failed == XM_OK; k++) {
        yyjson_val *all = yyjson_obj_get(c->list[k].value, "patternProperties");
        if (!all)
            continue;
        const char *path = xm_schema_path(s, c->list[k].path, "patternProperties");
        if (!yyjson_is_obj(all))
            xm_schema_expected(s, path, "an object of schemas", all);
        yyjson_obj_foreach(all, i, n, key, value)
        {
            struct pattern *grown =
                xm_grow(p->list, &p->capacity, p->n + 1, sizeof(*grown));
            if (!grown) {
                xm_schema_no_memory(s);
                return;
            }
            p->list = grown;
            p->list[p->n] = (struct pattern){
                .text = xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)),
                .value = value,
                .path = xm_schema_path(s, path, yyjson_get_str(key)),
                .applied = k};
            find_literal(&p->list[p->n]);
            /* other_names recurses once for each byte */
            if (p->list[p->n++].n_literal > LONGEST_NAME)
                xm_schema_fail(s, XM_UNSUPPORTED, path,
                               "a pattern begins with more than %d bytes of plain text",
                               LONGEST_NAME);
            if (p->n > MOST_PATTERNS)
                xm_schema_fail(s, XM_UNSUPPORTED, path,
                               "more than %d patterns apply here", MOST_PATTERNS);
            if (s->failed != XM_OK)
                return;
        }
    }
}

static bool
begins_with(const char *text, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(text, with, n_with) == 0;
}

/* Returns whether the pattern matches a name, given in JSON spelling. */
static bool
matches(struct xm_schema *s, const struct pattern *p, const char *name, size_t n)
{
    struct xm_grammar_tree own = {0};
    struct xm_error why = {0};
    yyjson_val value = {0};
    size_t n_text = 0;
    if (p->is_beginning || !begins_with(name, n, p->literal, p->n_literal))
        return begins_with(name, n, p->literal, p->n_literal);
    if (!xm_schema_works(s, 16, p->path))
        return false;
    unsafe_yyjson_set_strn(&value, name, n);
    char *json = xm_schema_json(s, &value, &n_text);
    const uint32_t node =
        xm_tree_pattern(&own, p->text, XM_SPELL_JSON, '\0', "the pattern", &why);
    if (why.status != XM_OK)
        xm_schema_fail(s, why.status, p->path, "%s", why.text);
    struct xm_grammar *g = xm_schema_compile(s, &own, node, p->path);
    const bool is_matched = g && xm_schema_matches(s, g, json + 1, n_text - 2);
    xm_grammar_free(g);
    xm_tree_free(&own);
    xm_free(json);
    return is_matched;
}

/* Returns whether no name can match both, because their prefixes differ. */
static bool
are_apart(const struct pattern *a, const struct pattern *b)
{
    const size_t n = a->n_literal < b->n_literal ? a->n_literal : b->n_literal;
    return memcmp(a->literal, b->literal, n) != 0;
}

/* ---- values ---- */

static bool
declares_properties(const struct xm_conjunction *c)
{
    bool declares = false;
    for (size_t i = 0; i < c->n; i++)
        declares |= yyjson_obj_get(c->list[i].value, "properties") != NULL;
    return declares;
}

/* Returns a node for the value of a property: of property `p`, or (p NULL) of a name that only
 * `pattern` matches, or (both NULL) of an additional property. */
static uint32_t
value_node(struct xm_schema *s, const struct xm_conjunction *c,
           const struct patterns *patterns, const struct property *p,
           const struct pattern *pattern)
{
    struct xm_conjunction one = {0};
    for (size_t k = 0; k < c->n && s->failed == XM_OK; k++) {
        const struct xm_applied *a = &c->list[k];
        yyjson_val *own =
            p ? yyjson_obj_getn(yyjson_obj_get(a->value, "properties"), p->name, p->n)
              : NULL;
        yyjson_val *other = yyjson_obj_get(a->value, "additionalProperties");
        bool is_known = own != NULL;
        if (own)
            xm_conjunction_add(
                s, &one, own,
                xm_schema_path(s, xm_schema_path(s, a->path, "properties"), p->name), 0);
        for (size_t i = 0; i < patterns->n && s->failed == XM_OK; i++) {
            const struct pattern *q = &patterns->list[i];
            const bool applies = p         ? matches(s, q, p->name, p->n)
                                 : pattern ? xm_slice_equal(q->text, pattern->text)
                                           : false;
            if (q->applied != k || !applies)
                continue;
            xm_conjunction_add(s, &one, q->value, q->path, 0);
            is_known = true;
        }
        if (!is_known && other)
            xm_conjunction_add(s, &one, other,
                               xm_schema_path(s, a->path, "additionalProperties"), 0);
    }
    const bool is_closed = !p && !pattern && s->closes && declares_properties(c);
    const uint32_t node = one.n > 0   ? xm_schema_node(s, &one)
                          : is_closed ? xm_tree_never(s->t)
                                      : xm_schema_any_value(s);
    xm_conjunction_free(&one);
    return node;
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

/* Returns a node for the rest of a name that is none of list[n], which are sorted and agree in
 * their first `at` bytes. Each character has only one spelling, so no escape can spell an excluded
 * name. */
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
        if (list[i].n == at && list[i].is_beginning) {
            xm_nodes_free(&nodes);
            xm_class_free(&rest);
            xm_class_free(&every);
            return xm_tree_never(t);
        }
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
names_besides(struct xm_schema *s, struct property *list, size_t n, size_t at)
{
    static const struct xm_class none;
    if (n == 0)
        return xm_tree_repeat(s->t, xm_tree_class(s->t, &none, XM_SPELL_JSON_ANY), 0,
                              XM_UNBOUNDED);
    qsort(list, n, sizeof(*list), compare_properties);
    return other_names(s, list, n, at);
}

uint32_t
xm_schema_other_string(struct xm_schema *s, const struct xm_conjunction *c)
{
    struct properties p = {0};
    struct xm_ruled_out at = {0};
    yyjson_val *v;
    uint32_t node = 0;
    while ((v = xm_schema_next_ruled_out(c, &at)) != NULL)
        if (yyjson_is_str(v))
            add_property(s, &p, v, false, c->list[at.schema].path);
    if (s->failed == XM_OK)
        node = xm_schema_quoted(s, names_besides(s, p.list, p.n, 0));
    xm_free(p.list);
    return node;
}

/* Returns a node for the names of additional properties: neither a known property nor matched by a
 * pattern. */
static uint32_t
other_name(struct xm_schema *s, const struct properties *p,
           const struct patterns *patterns)
{
    const size_t n = p->n + patterns->n;
    struct property *list = xm_malloc((n + 1) * sizeof(*list));
    if (!list)
        return xm_schema_no_memory(s);
    if (p->n > 0)
        memcpy(list, p->list, p->n * sizeof(*list));
    for (size_t i = 0; i < patterns->n; i++) {
        const struct pattern *q = &patterns->list[i];
        list[p->n + i] = (struct property){q->literal, q->n_literal, false, true};
        if (!q->is_beginning)
            xm_schema_fail(s, XM_UNSUPPORTED, q->path,
                           "beside additional properties only patterns are supported "
                           "that are the beginning of a name, as ^x-");
    }
    const uint32_t node =
        s->failed == XM_OK ? xm_schema_quoted(s, names_besides(s, list, n, 0)) : 0;
    xm_free(list);
    return node;
}

/* Returns a node for the names that pattern `q` matches and that are no known property. */
static uint32_t
pattern_name(struct xm_schema *s, const struct properties *p, const struct pattern *q)
{
    size_t n = 0;
    struct property *list = xm_malloc((p->n + 1) * sizeof(*list));
    if (!list)
        return xm_schema_no_memory(s);
    for (size_t i = 0; i < p->n; i++)
        if (matches(s, q, p->list[i].name, p->list[i].n))
            list[n++] = p->list[i];
    uint32_t node = 0;
    if (q->is_beginning && s->failed == XM_OK) {
        yyjson_val name = {0};
        unsafe_yyjson_set_strn(&name, q->literal, q->n_literal);
        node = xm_tree_all(s->t,
                           (uint32_t[]){xm_schema_contents(s, &name),
                                        names_besides(s, list, n, q->n_literal)},
                           2);
    } else if (n > 0) {
        xm_schema_fail(s, XM_UNSUPPORTED, q->path,
                       "it matches a property with a name of its own: that is supported "
                       "for patterns that are the beginning of a name, as ^x-");
    } else if (s->failed == XM_OK) {
        node = xm_schema_pattern(s, q->text, q->path);
    }
    xm_free(list);
    return s->failed == XM_OK ? xm_schema_quoted(s, node) : 0;
}

/* Returns whether an earlier pattern of the list has the same text, so that its members are added
 * already. */
static bool
is_repeated(const struct patterns *p, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (xm_slice_equal(p->list[k].text, p->list[i].text))
            return true;
    return false;
}

/* Adds the members whose names match a pattern. If several schemas have the same pattern, it is
 * added once, and its values satisfy all of them. */
static void
add_pattern_members(struct xm_schema *s, const struct xm_conjunction *c,
                    const struct properties *p, const struct patterns *patterns,
                    struct xm_nodes *nodes)
{
    for (size_t i = 0; i < patterns->n && s->failed == XM_OK; i++) {
        const struct pattern *q = &patterns->list[i];
        if (is_repeated(patterns, i))
            continue;
        for (size_t k = 0; k < i && s->failed == XM_OK; k++)
            if (!xm_slice_equal(q->text, patterns->list[k].text) &&
                !are_apart(q, &patterns->list[k]))
                xm_schema_fail(s, XM_UNSUPPORTED, q->path,
                               "patterns that a name may match together are not "
                               "supported: let each begin with another text, as ^a- and "
                               "^b-");
        if (s->failed != XM_OK)
            return;
        const uint32_t value = value_node(s, c, patterns, NULL, q);
        if (s->failed != XM_OK || xm_tree_is_never(s->t, value))
            continue;
        const uint32_t name = pattern_name(s, p, q);
        if (s->failed == XM_OK)
            xm_nodes_add(s->t, nodes, xm_schema_member(s, name, value));
    }
}

/* ---- all of it ---- */

/* Returns a node for one member whose name matches a pattern or is additional; such members follow
 * the known properties in any order. */
static uint32_t
more_members(struct xm_schema *s, const struct xm_conjunction *c,
             const struct properties *p, const struct patterns *patterns)
{
    struct xm_nodes nodes = {0};
    uint32_t node = 0;
    add_pattern_members(s, c, p, patterns, &nodes);
    const uint32_t value =
        s->failed == XM_OK ? value_node(s, c, patterns, NULL, NULL) : 0;
    if (s->failed == XM_OK && !xm_tree_is_never(s->t, value)) {
        const uint32_t name = other_name(s, p, patterns);
        if (s->failed == XM_OK)
            xm_nodes_add(s->t, &nodes, xm_schema_member(s, name, value));
    }
    if (s->failed == XM_OK)
        node = xm_tree_any(s->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    return node;
}

/* Members in order, separated by commas: the known properties, then any number of others. */
struct members {
    struct xm_nodes nodes; /* owned; the last is the node for other members */
    uint8_t *flags;        /* owned */
    size_t n_required;
};

static uint32_t
refuse_count(struct xm_schema *s, const struct xm_conjunction *c, const char *key)
{
    static const char *const when[] = {
        "as 1, or up to the number of required properties",
        "as 0, or where all properties with names of their own are required"};
    for (size_t i = 0; i < c->n; i++)
        if (yyjson_obj_get(c->list[i].value, key))
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, c->list[i].path, key),
                           "the keyword '%s' is supported here %s", key,
                           when[key[1] == 'a']);
    return 0;
}

/* Returns a node for objects with at least one member, where none is required: one alternative for
 * each member that can be the first present. */
static uint32_t
some_members(struct xm_schema *s, struct members *m, const char *path)
{
    struct xm_nodes nodes = {0};
    for (size_t i = 0; i < m->nodes.n && s->failed == XM_OK; i++) {
        if (!xm_schema_works(s, (unsigned)((m->nodes.n - i) / 16), path))
            break;
        m->flags[i] &= (uint8_t)~XM_LIST_OPTIONAL; /* each list begins behind it */
        xm_nodes_add(s->t, &nodes,
                     xm_tree_list(s->t, s->separator, m->nodes.list + i, m->flags + i,
                                  m->nodes.n - i));
    }
    const uint32_t node = xm_tree_any(s->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    return node;
}

/* Returns a node for the required members and `least` to `most` others. Names may repeat, so an
 * object has at most as many properties as members. */
static uint32_t
bounded_members(struct xm_schema *s, const struct members *m, uint32_t least,
                uint32_t most)
{
    const size_t n = m->nodes.n - 1;
    const uint32_t more = m->nodes.list[n];
    const uint32_t next = xm_tree_all(s->t, (uint32_t[]){s->separator, more}, 2);
    if (n > 0)
        return xm_tree_all(
            s->t,
            (uint32_t[]){xm_tree_list(s->t, s->separator, m->nodes.list, m->flags, n),
                         xm_tree_repeat(s->t, next, least, most)},
            2);
    const uint32_t some =
        most > 0
            ? xm_tree_all(s->t,
                          (uint32_t[]){more, xm_tree_repeat(s->t, next, 0, most - 1)}, 2)
            : xm_tree_never(s->t);
    return least > 0 ? some
                     : xm_tree_any(s->t, (uint32_t[]){xm_tree_empty(s->t), some}, 2);
}

/* Returns a node for the members within minProperties and maxProperties. */
static uint32_t
counted_members(struct xm_schema *s, const struct xm_conjunction *c, struct members *m)
{
    const uint32_t least = xm_schema_count(s, c, "minProperties", true, 0);
    const uint32_t most = xm_schema_count(s, c, "maxProperties", false, XM_UNBOUNDED);
    const size_t n = m->nodes.n - 1;
    const bool has_more = s->failed == XM_OK && !xm_tree_is_never(s->t, m->nodes.list[n]);
    const bool is_free = most == XM_UNBOUNDED || (!has_more && most >= n);
    const bool needs_one = least == 1 && m->n_required == 0;
    if (s->failed != XM_OK)
        return 0;
    if (least > most || m->n_required > most)
        return xm_tree_never(s->t);
    if (least > m->n_required && !needs_one)
        return refuse_count(s, c, "minProperties");
    if (is_free && needs_one)
        return some_members(s, m, c->list[0].path);
    if (is_free)
        return xm_tree_list(s->t, s->separator, m->nodes.list, m->flags, m->nodes.n);
    if (most == 0)
        return xm_tree_empty(s->t);
    return m->n_required == n
               ? bounded_members(s, m, needs_one, most - (uint32_t)m->n_required)
               : refuse_count(s, c, "maxProperties");
}

uint32_t
xm_schema_object(struct xm_schema *s, const struct xm_conjunction *c)
{
    struct properties p = {0};
    struct patterns patterns = {0};
    struct members m = {0};
    uint32_t inside = 0;
    if (c->n > 0)
        list_properties(s, c, &p);
    list_patterns(s, c, &patterns);
    for (size_t i = 0; i < p.n && s->failed == XM_OK; i++) {
        const struct xm_applied before = s->impossible;
        xm_nodes_add(s->t, &m.nodes,
                     xm_schema_member(s, name_node(s, &p.list[i]),
                                      value_node(s, c, &patterns, &p.list[i], NULL)));
        m.n_required += p.list[i].required;
        if (!p.list[i].required)
            s->impossible = before; /* an impossible optional property is left out */
    }
    const struct xm_applied before = s->impossible;
    if (s->failed == XM_OK)
        xm_nodes_add(s->t, &m.nodes, more_members(s, c, &p, &patterns));
    s->impossible = before;
    m.flags = s->failed == XM_OK ? xm_malloc(p.n + 1) : NULL;
    for (size_t i = 0; m.flags && i < p.n; i++)
        m.flags[i] = p.list[i].required ? 0 : XM_LIST_OPTIONAL;
    if (m.flags && m.nodes.n == p.n + 1) {
        m.flags[p.n] = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
        inside = counted_members(s, c, &m);
    } else if (s->failed == XM_OK) {
        xm_schema_no_memory(s);
    }
    xm_free(m.flags);
    xm_nodes_free(&m.nodes);
    xm_free(p.list);
    xm_free(patterns.list);
    if (s->failed != XM_OK)
        return 0;
    return xm_schema_all3(s, xm_schema_text(s, "{"),
                          xm_schema_all3(s, s->space, inside, s->space),
                          xm_schema_text(s, "}"));
}
