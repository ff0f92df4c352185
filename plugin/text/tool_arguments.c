/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/tool_arguments.h"

#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

enum {
    ROOT_STEPS = 1 << 12, /* steps to find the types or the target of a schema */
    LONGEST_REST = 63,    /* longest rest of an undeclared name, in characters */
    DEEPEST = 24          /* nesting depth of schemas */
};

/* ---- types ----------------------------------------------------------------------------------- */

unsigned
xm_tool_argument_types(const struct xm_tool *tool, struct xm_slice key, unsigned *left)
{
    yyjson_val *root = tool ? tool->parameters : NULL;
    yyjson_val *of_all = xm_json_refers_to(root, root, left);
    yyjson_val *list = yyjson_obj_get(of_all, "properties");
    const size_t n = yyjson_obj_size(list);
    if (n >= *left || key.n == 0)
        return XM_JSON_ANY;
    *left -= (unsigned)n;
    yyjson_val *v = yyjson_obj_getn(list, key.text, key.n);
    if (!v)
        v = yyjson_obj_get(of_all, "additionalProperties");
    return v ? xm_json_types_in(root, v, left) : XM_JSON_ANY;
}

static const char no_target[] = "a schema that refers to itself or to a missing schema "
                                "is not supported in tool calls of this model";

/* ---- texts ----------------------------------------------------------------------------------- */

struct making {
    struct xm_schema s;
    struct xm_grammar_tree *t;
    enum xm_argument_form form;
    yyjson_doc *object; /* owned; the schema {"type": "object"} */
    uint32_t raw;       /* node: any text without a string's end mark */
    uint32_t value;     /* rule: any value of BRACES; XM_NOWHERE: not made */
    int depth;
};

static uint32_t
text(struct making *m, const char *what)
{
    return xm_tree_text(m->t, what, strlen(what));
}

static uint32_t
all3(struct making *m, uint32_t a, uint32_t b, uint32_t c)
{
    return xm_tree_all(m->t, (uint32_t[]){a, b, c}, 3);
}

/* Returns a node for one character that is none of the n in `list`. */
static uint32_t
none_of(struct xm_grammar_tree *t, const char *list, size_t n)
{
    struct xm_class c = {0};
    for (size_t i = 0; i < n; i++)
        xm_class_add(&c, (unsigned char)list[i], (unsigned char)list[i]);
    xm_class_normalise(&c);
    xm_class_negate(&c);
    const uint32_t node = xm_tree_class(t, &c, XM_SPELL_PLAIN);
    xm_class_free(&c);
    return node;
}

/* Returns a node for the texts that do not contain `word`, whose first character w occurs in it
 * once. Such a text consists of characters other than w and of failed matches: w, some further
 * characters of the word, then a character that does not continue it. If that character is a w, the
 * next match begins with it. The text may end within a match. */
static uint32_t
text_without(struct xm_grammar_tree *t, const char *word)
{
    const size_t n = strlen(word);
    struct xm_nodes begun = {0}, failed = {0};
    for (size_t k = 1; k < n; k++) {
        const uint32_t more = xm_tree_text(t, word + 1, k - 1);
        const char out[2] = {word[0], word[k]};
        xm_nodes_add(t, &begun, more);
        xm_nodes_add(t, &failed,
                     xm_tree_all(t, (uint32_t[]){more, none_of(t, out, 2)}, 2));
    }
    const uint32_t some = xm_tree_any(t, begun.list, begun.n);
    const uint32_t first = xm_tree_text(t, word, 1);
    const uint32_t again =
        xm_tree_repeat(t, xm_tree_all(t, (uint32_t[]){some, first}, 2), 0, XM_UNBOUNDED);
    const uint32_t try = xm_tree_all(
        t, (uint32_t[]){first, again, xm_tree_any(t, failed.list, failed.n)}, 3);
    const uint32_t last = xm_tree_all(t, (uint32_t[]){first, again, some}, 3);
    xm_nodes_free(&begun);
    xm_nodes_free(&failed);
    return xm_tree_all(
        t,
        (uint32_t[]){
            xm_tree_repeat(t, xm_tree_any(t, (uint32_t[]){none_of(t, word, 1), try}, 2),
                           0, XM_UNBOUNDED),
            xm_tree_repeat(t, last, 0, 1)},
        2);
}

static uint32_t
quoted(struct making *m, uint32_t inside)
{
    const size_t n = sizeof(XM_BRACES_QUOTE) - 1;
    return all3(m, xm_tree_token(m->t, XM_BRACES_QUOTE, n, 0), inside,
                xm_tree_token(m->t, XM_BRACES_QUOTE, n, 0));
}

static uint32_t
string(struct making *m, uint32_t inside)
{
    return m->form == XM_ARGUMENTS_BRACES ? quoted(m, inside) : inside;
}

/* Returns the mark that ends a string. The first character of either mark does not occur in it
 * again. */
static const char *
end_of_string(const struct making *m)
{
    return m->form == XM_ARGUMENTS_BRACES ? XM_BRACES_QUOTE : XM_PARAMETER_END;
}

/* Returns a node for the contents of a string with this schema. If a pattern or a format describes
 * it, it does not contain the first character of the end mark. */
static uint32_t
contents(struct making *m, yyjson_val *v, const char *path)
{
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    uint32_t node = m->raw;
    xm_schema_plain_string(&m->s, &c, end_of_string(m)[0], &node);
    return node;
}

/* Returns a node for a value that a schema lists. */
static uint32_t
literal(struct making *m, yyjson_val *v, const char *path)
{
    if (!yyjson_is_str(v))
        return m->form == XM_ARGUMENTS_BRACES && yyjson_is_ctn(v)
                   ? xm_schema_fail(&m->s, XM_UNSUPPORTED, path,
                                    "objects and lists as values are not supported in "
                                    "tool calls of this model")
                   : xm_schema_literal(&m->s, v);
    if (strstr(yyjson_get_str(v), end_of_string(m)))
        return xm_schema_fail(&m->s, XM_UNSUPPORTED, path,
                              "a value contains the characters that end a string in tool "
                              "calls of this model");
    return string(m, xm_tree_text(m->t, yyjson_get_str(v), yyjson_get_len(v)));
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t value(struct making *m, yyjson_val *v, const char *path);

static unsigned
types_in(struct making *m, yyjson_val *v, const char *path)
{
    unsigned left = ROOT_STEPS;
    const unsigned types = xm_json_types_in(m->s.root, v, &left);
    xm_schema_works(&m->s, (ROOT_STEPS - left) / 64, path);
    return types;
}

/* Returns the one keyword ($ref, const, enum, anyOf, oneOf, allOf) that determines the values;
 * NULL: there is none. */
static const char *
find_choice(struct making *m, yyjson_val *v, const char *path)
{
    static const char *const keys[] = {"$ref",  "const", "enum",
                                       "anyOf", "oneOf", "allOf"};
    const char *found = NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(keys); i++) {
        if (!yyjson_obj_get(v, keys[i]))
            continue;
        if (found)
            xm_schema_fail(
                &m->s, XM_UNSUPPORTED, xm_schema_path(&m->s, path, keys[i]),
                "the keyword '%s' is not supported beside %s in tool calls of this model",
                keys[i], found);
        found = keys[i];
    }
    return found;
}

/* Fails if a schema restricts values by other keywords beside `key` (those for strings are
 * ignored), or if the schema `one`, an alternative or a target, has types that the schema's "type"
 * excludes. */
static void
check_beside(struct making *m, yyjson_val *v, yyjson_val *one, const char *key,
             const char *path)
{
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    const unsigned types = xm_schema_types(&m->s, &applied);
    xm_schema_refuse_beside(&m->s, &c, XM_JSON_ANY & ~(unsigned)XM_JSON_STRING, key);
    if (m->s.failed == XM_OK && (types_in(m, one, path) & ~types))
        xm_schema_fail(
            &m->s, XM_UNSUPPORTED, xm_schema_path(&m->s, path, "type"),
            "the keyword 'type' is not supported beside %s in tool calls of this model",
            key);
}

/* Returns the schema that `v` refers to, following one reference; NULL: it failed. */
static yyjson_val *
target_of(struct making *m, yyjson_val *v, const char *path)
{
    unsigned left = ROOT_STEPS;
    yyjson_val *target = xm_json_target(m->s.root, yyjson_obj_get(v, "$ref"), &left);
    if (target)
        check_beside(m, v, target, "$ref", path);
    else
        xm_schema_fail(&m->s, XM_UNSUPPORTED, path, "%s", no_target);
    return m->s.failed == XM_OK ? target : NULL;
}

/* Returns a node for the values of enum or const that have the schema's types. */
static uint32_t
listed(struct making *m, yyjson_val *v, yyjson_val *list, bool is_one, const char *path)
{
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    const unsigned types = xm_schema_types(&m->s, &applied);
    const size_t n = is_one ? 1 : yyjson_arr_size(list);
    struct xm_nodes nodes = {0};
    unsigned found = 0;
    yyjson_val *one = is_one ? list : yyjson_arr_get_first(list);
    path = xm_schema_path(&m->s, path, is_one ? "const" : "enum");
    if (!is_one && !yyjson_is_arr(list))
        xm_schema_fail(&m->s, XM_INVALID, path, "expected a list of values");
    for (size_t i = 0; i < n && m->s.failed == XM_OK; i++) {
        if (xm_json_type_of(one) & types)
            xm_nodes_add(m->t, &nodes, literal(m, one, path));
        found |= xm_json_type_of(one) & types;
        one = unsafe_yyjson_get_next(one);
    }
    xm_schema_refuse_beside(&m->s, &c, found, "enum and const");
    const uint32_t node = xm_tree_any(m->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    return node;
}

static uint32_t
alternatives(struct making *m, yyjson_val *v, const char *key, const char *path)
{
    yyjson_val *list = yyjson_obj_get(v, key), *one;
    const char *const of_list = xm_schema_path(&m->s, path, key);
    struct xm_nodes nodes = {0};
    size_t i, n;
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) == 0)
        xm_schema_fail(&m->s, XM_INVALID, of_list, "expected a list of schemas");
    if (strcmp(key, "allOf") == 0 && yyjson_arr_size(list) != 1)
        xm_schema_fail(&m->s, XM_UNSUPPORTED, of_list,
                       "'allOf' is not supported in tool calls of this model");
    if (strcmp(key, "oneOf") == 0)
        xm_schema_check_one_of(&m->s, list, of_list);
    yyjson_arr_foreach(list, i, n, one)
    {
        if (m->s.failed == XM_OK)
            check_beside(m, v, one, key, path);
        if (m->s.failed == XM_OK)
            xm_nodes_add(m->t, &nodes,
                         value(m, one, xm_schema_path_at(&m->s, of_list, i)));
    }
    const uint32_t node = xm_tree_any(m->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    return node;
}

/* Sets *node to the schema's alternatives, its listed values, or the schema that it refers to.
 * False: it has none of these. */
static bool
choose(struct making *m, yyjson_val *v, const char *path, uint32_t *node)
{
    const char *key = find_choice(m, v, path);
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    if (!key || m->s.failed != XM_OK)
        return false;
    const bool is_one = strcmp(key, "const") == 0;
    xm_schema_refuse(&m->s, &c, xm_schema_types(&m->s, &applied));
    if (strcmp(key, "$ref") == 0) {
        yyjson_val *target = target_of(m, v, path);
        *node = target ? value(m, target, path) : 0;
    } else if (is_one || strcmp(key, "enum") == 0) {
        *node = listed(m, v, yyjson_obj_get(v, key), is_one, path);
    } else {
        *node = alternatives(m, v, key, path);
    }
    return true;
}

/* Refuses keywords that restrict these types and are not supported in this form. */
static void
refuse(struct making *m, yyjson_val *v, unsigned types, const char *path)
{
    static const struct {
        const char *key;
        unsigned types;
    } list[] = {{"prefixItems", XM_JSON_ARRAY}, {"patternProperties", XM_JSON_OBJECT}};
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    xm_schema_refuse(&m->s, &c, types);
    for (size_t i = 0; i < XM_ARRAY_LEN(list); i++)
        if ((list[i].types & types) && yyjson_obj_get(v, list[i].key))
            xm_schema_fail(
                &m->s, XM_UNSUPPORTED, xm_schema_path(&m->s, path, list[i].key),
                "the keyword '%s' is not supported in tool calls of this model",
                list[i].key);
}

static uint32_t
key_node(struct making *m, yyjson_val *key, const char *path)
{
    const struct xm_slice name = xm_slice_of(yyjson_get_str(key), yyjson_get_len(key));
    if (!xm_tool_name_is_good(name) || memchr(name.text, ':', name.n))
        return xm_schema_fail(&m->s, XM_UNSUPPORTED, path,
                              "a name with blanks, quotes, brackets or colons is not "
                              "supported in tool calls of this model");
    return xm_tree_text(m->t, name.text, name.n);
}

/* Returns a node for a member: `key` with the value `of_key`. */
static uint32_t
member(struct making *m, uint32_t key, uint32_t of_key)
{
    return m->form == XM_ARGUMENTS_BRACES
               ? all3(m, key, text(m, ":"), of_key)
               : xm_tree_all(m->t,
                             (uint32_t[]){text(m, XM_PARAMETER), key, text(m, ">\n"),
                                          of_key, text(m, "\n" XM_PARAMETER_END "\n")},
                             5);
}

static bool
is_required(yyjson_val *object, yyjson_val *key)
{
    yyjson_val *one;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(object, "required"), i, n, one)
    {
        if (yyjson_equals_strn(one, yyjson_get_str(key), yyjson_get_len(key)))
            return true;
    }
    return false;
}

static void
check_required(struct making *m, yyjson_val *object, yyjson_val *properties,
               const char *path)
{
    yyjson_val *one;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(object, "required"), i, n, one)
    {
        if (!yyjson_is_str(one) ||
            !yyjson_obj_getn(properties, yyjson_get_str(one), yyjson_get_len(one)))
            xm_schema_fail(&m->s, XM_UNSUPPORTED, xm_schema_path(&m->s, path, "required"),
                           "a required property is not declared in 'properties'");
    }
}

static const char not_in_names[] = " \t\r\n\"\\<>{}():,[]";

/* Returns a node for a character of names that is not in `taken`. Changes `taken`. */
static uint32_t
name_character(struct making *m, struct xm_class *taken)
{
    for (const char *c = not_in_names; *c; c++)
        xm_class_add(taken, (unsigned char)*c, (unsigned char)*c);
    xm_class_normalise(taken);
    xm_class_negate(taken);
    return xm_tree_class(m->t, taken, XM_SPELL_PLAIN);
}

static uint32_t
rest_of_name(struct making *m, uint32_t most)
{
    struct xm_class none = {0};
    const uint32_t one = name_character(m, &none);
    xm_class_free(&none);
    return xm_tree_repeat(m->t, one, 0, most);
}

/* Returns a node for what may follow `begin` to make a name that is not a declared property. The
 * recursion is bounded, because names of properties are checked to be short. */
static uint32_t
other_names(struct making *m, yyjson_val *properties,
            struct xm_slice begin) /* NOLINT(misc-no-recursion): bounded */
{
    struct xm_nodes nodes = {0};
    struct xm_class taken = {0};
    bool is_name = begin.n > 0;
    yyjson_val *key, *v;
    size_t i, n;
    if (!xm_schema_works(&m->s, 1 + (unsigned)(yyjson_obj_size(properties) / 256), ""))
        return 0;
    yyjson_obj_foreach(properties, i, n, key, v)
    {
        const struct xm_slice name =
            xm_slice_of(yyjson_get_str(key), yyjson_get_len(key));
        int32_t code;
        if (m->s.failed != XM_OK || !xm_slice_starts_with(name, begin))
            continue;
        is_name &= name.n > begin.n;
        if (name.n == begin.n)
            continue;
        const char *next = name.text + begin.n;
        const size_t bytes = xm_utf8_next(xm_slice_of(next, name.n - begin.n), &code);
        if (xm_class_has(&taken, (uint32_t)code))
            continue;
        xm_class_add(&taken, (uint32_t)code, (uint32_t)code);
        const uint32_t more =
            other_names(m, properties, xm_slice_of(name.text, begin.n + bytes));
        const uint32_t first = xm_tree_text(m->t, next, bytes);
        xm_nodes_add(m->t, &nodes, xm_tree_all(m->t, (uint32_t[]){first, more}, 2));
    }
    const uint32_t other = name_character(m, &taken);
    xm_nodes_add(
        m->t, &nodes,
        xm_tree_all(m->t, (uint32_t[]){other, rest_of_name(m, LONGEST_REST)}, 2));
    if (is_name)
        xm_nodes_add(m->t, &nodes, xm_tree_empty(m->t));
    const uint32_t node = xm_tree_any(m->t, nodes.list, nodes.n);
    xm_class_free(&taken);
    xm_nodes_free(&nodes);
    return node;
}

/* Returns a node for a member with an undeclared name and the value `of_key`. */
static uint32_t
other_member(struct making *m, yyjson_val *properties, uint32_t of_key)
{
    return member(m, other_names(m, properties, xm_slice_of("", 0)), of_key);
}

static uint32_t
any_value(struct making *m)
{
    return m->form == XM_ARGUMENTS_BRACES ? xm_tree_rule_ref(m->t, m->value) : m->raw;
}

/* Adds the members with undeclared names, in any number, if additionalProperties allows them. */
static void
add_additional(struct making *m, yyjson_val *object, const char *path,
               struct xm_nodes *nodes, struct xm_strbuf *flags)
{
    yyjson_val *properties = yyjson_obj_get(object, "properties");
    yyjson_val *other = yyjson_obj_get(object, "additionalProperties");
    const char flag = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
    path = xm_schema_path(&m->s, path, "additionalProperties");
    if (m->s.failed != XM_OK || yyjson_is_false(other) || (properties && !other))
        return;
    const bool is_any = !other || yyjson_is_true(other) ||
                        (yyjson_is_obj(other) && yyjson_obj_size(other) == 0);
    const uint32_t of_key = is_any ? any_value(m) : value(m, other, path);
    if (m->s.failed != XM_OK || xm_tree_is_never(m->t, of_key))
        return;
    xm_nodes_add(m->t, nodes, other_member(m, properties, of_key));
    xm_strbuf_add_n(flags, &flag, 1);
}

static void
add_declared(struct making *m, yyjson_val *object, const char *path,
             struct xm_nodes *nodes, struct xm_strbuf *flags)
{
    yyjson_val *properties = yyjson_obj_get(object, "properties"), *key, *v;
    size_t i, n;
    path = xm_schema_path(&m->s, path, "properties");
    if (properties && !yyjson_is_obj(properties))
        xm_schema_fail(&m->s, XM_INVALID, path, "expected an object of schemas");
    yyjson_obj_foreach(properties, i, n, key, v)
    {
        const char *at = xm_schema_path(&m->s, path, yyjson_get_str(key));
        const char flag = is_required(object, key) ? 0 : XM_LIST_OPTIONAL;
        if (m->s.failed != XM_OK)
            break;
        const uint32_t name = key_node(m, key, at);
        xm_nodes_add(m->t, nodes, member(m, name, value(m, v, at)));
        xm_strbuf_add_n(flags, &flag, 1);
    }
}

static uint32_t
members(struct making *m, yyjson_val *object, const char *path)
{
    const char *between = m->form == XM_ARGUMENTS_BRACES ? "," : "";
    struct xm_nodes nodes = {0};
    struct xm_strbuf flags = {0};
    uint32_t node = 0;
    check_required(m, object, yyjson_obj_get(object, "properties"), path);
    add_declared(m, object, path, &nodes, &flags);
    add_additional(m, object, path, &nodes, &flags);
    if (!xm_strbuf_ok(&flags))
        xm_schema_no_memory(&m->s);
    else if (m->s.failed == XM_OK && nodes.n == flags.n)
        node = xm_tree_list(m->t, text(m, between), nodes.list,
                            (const uint8_t *)flags.text, nodes.n);
    xm_nodes_free(&nodes);
    xm_strbuf_free(&flags);
    return node;
}

/* ---- values of BRACES ------------------------------------------------------------------------ */

static uint32_t
braces_list(struct making *m, yyjson_val *v, const char *path)
{
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    yyjson_val *items = yyjson_obj_get(v, "items");
    const uint32_t least = xm_schema_count(&m->s, &c, "minItems", true, 0);
    const uint32_t most = xm_schema_count(&m->s, &c, "maxItems", false, XM_UNBOUNDED);
    const uint32_t one = items ? value(m, items, xm_schema_path(&m->s, path, "items"))
                               : xm_tree_rule_ref(m->t, m->value);
    if (m->s.failed != XM_OK)
        return 0;
    if (least > most)
        return xm_tree_never(m->t);
    const uint32_t next = xm_tree_all(m->t, (uint32_t[]){text(m, ","), one}, 2);
    const uint32_t some = xm_tree_all(
        m->t,
        (uint32_t[]){one,
                     xm_tree_repeat(m->t, next, least ? least - 1 : 0,
                                    most == XM_UNBOUNDED ? most : most - (most > 0))},
        2);
    const uint32_t inside = most == 0   ? xm_tree_empty(m->t)
                            : least > 0 ? some
                                        : xm_tree_repeat(m->t, some, 0, 1);
    return all3(m, text(m, "["), inside, text(m, "]"));
}

static uint32_t
braces_types(struct making *m, yyjson_val *v, const char *path)
{
    struct xm_applied applied = {v, path, 0};
    const struct xm_conjunction c = {&applied, 1, 1};
    const unsigned types = xm_schema_types(&m->s, &applied);
    struct xm_nodes nodes = {0};
    refuse(m, v, types, path);
    if (m->s.failed == XM_OK && (types & XM_JSON_STRING))
        xm_nodes_add(m->t, &nodes, quoted(m, contents(m, v, path)));
    if (m->s.failed == XM_OK && (types & XM_JSON_NUMBER))
        xm_nodes_add(m->t, &nodes, xm_schema_number(&m->s, &c, types & XM_JSON_NUMBER));
    if (types & XM_JSON_BOOLEAN)
        xm_nodes_add(
            m->t, &nodes,
            xm_tree_any(m->t, (uint32_t[]){text(m, "true"), text(m, "false")}, 2));
    if (types & XM_JSON_NULL)
        xm_nodes_add(m->t, &nodes, text(m, "null"));
    if (m->s.failed == XM_OK && (types & XM_JSON_ARRAY))
        xm_nodes_add(m->t, &nodes, braces_list(m, v, path));
    if (m->s.failed == XM_OK && (types & XM_JSON_OBJECT))
        xm_nodes_add(m->t, &nodes,
                     all3(m, text(m, "{"), members(m, v, path), text(m, "}")));
    const uint32_t node = xm_tree_any(m->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    return m->s.failed == XM_OK ? node : 0;
}

/* Makes the recursive rule for any value of BRACES. */
static void
make_any(struct making *m)
{
    const struct xm_number_range all = {0};
    const uint8_t flags = XM_LIST_OPTIONAL | XM_LIST_REPEATS;
    m->value = xm_tree_add_rule(m->t, "any value", 9);
    const uint32_t one = xm_tree_rule_ref(m->t, m->value);
    const uint32_t list = xm_tree_list(m->t, text(m, ","), &one, &flags, 1);
    const uint32_t node = xm_tree_any(
        m->t,
        (uint32_t[]){quoted(m, m->raw), xm_tree_numbers(m->t, &all), text(m, "true"),
                     text(m, "false"), text(m, "null"),
                     all3(m, text(m, "["), list, text(m, "]")),
                     all3(m, text(m, "{"), members(m, NULL, ""), text(m, "}"))},
        7);
    if (m->t->failed == XM_OK)
        m->t->rules[m->value].node = node;
}

/* ---- any of them ----------------------------------------------------------------------------- */

/* Returns a node for a value of PARAMETERS that may be a string, which is not escaped. If it may
 * also have other types, any text is allowed, because the types cannot be told apart. */
static uint32_t
parameter_types(struct making *m, yyjson_val *v, const char *path)
{
    const struct xm_applied applied = {v, path, 0};
    const unsigned types = xm_schema_types(&m->s, &applied);
    refuse(m, v, types, path);
    return types == XM_JSON_STRING && m->s.failed == XM_OK ? contents(m, v, path)
                                                           : m->raw;
}

static uint32_t
value(struct making *m, yyjson_val *v, const char *path) /* NOLINT(misc-no-recursion) */
{
    const bool is_braces = m->form == XM_ARGUMENTS_BRACES;
    uint32_t node = 0;
    if (m->s.failed != XM_OK || !xm_schema_works(&m->s, 1, path))
        return 0;
    if (m->depth >= DEEPEST)
        return xm_schema_fail(&m->s, XM_UNSUPPORTED, path, "%s", no_target);
    if (!yyjson_is_obj(v) && !yyjson_is_bool(v))
        return xm_schema_fail(&m->s, XM_INVALID, path,
                              "expected a schema: an object, true or false");
    if (!is_braces && !yyjson_is_false(v) && !(types_in(m, v, path) & XM_JSON_STRING))
        return xm_tree_rule_ref(m->t, xm_schema_rule(&m->s, v, path));
    const struct xm_applied before = m->s.impossible, schema = {v, path, 0};
    m->s.impossible.value = NULL;
    m->depth++;
    if (yyjson_is_false(v))
        node = xm_tree_never(m->t);
    else if (!choose(m, v, path, &node))
        node = is_braces ? braces_types(m, v, path) : parameter_types(m, v, path);
    m->depth--;
    xm_schema_note(&m->s, node, before, schema);
    return m->s.failed == XM_OK ? node : 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Returns a node for the JSON objects that the schema allows. */
static uint32_t
json_arguments(struct making *m, yyjson_val *root)
{
    struct xm_conjunction c = {0};
    if (!root)
        return xm_schema_object(&m->s, &c);
    xm_conjunction_add(&m->s, &c, yyjson_doc_get_root(m->object), "", 0);
    xm_conjunction_add(&m->s, &c, root, "", 0);
    const uint32_t node = m->s.failed == XM_OK ? xm_schema_node(&m->s, &c) : 0;
    xm_conjunction_free(&c);
    return node;
}

static uint32_t
other_arguments(struct making *m, yyjson_val *root)
{
    static const char *const refused[] = {"anyOf", "oneOf", "allOf", "const", "enum"};
    const bool is_braces = m->form == XM_ARGUMENTS_BRACES;
    yyjson_val *v = root;
    for (int i = 0; i < DEEPEST && yyjson_obj_get(v, "$ref"); i++)
        v = target_of(m, v, "");
    if (yyjson_obj_get(v, "$ref"))
        xm_schema_fail(&m->s, XM_UNSUPPORTED, "", "%s", no_target);
    refuse(m, v, XM_JSON_OBJECT, "");
    for (size_t i = 0; i < XM_ARRAY_LEN(refused); i++)
        if (yyjson_obj_get(v, refused[i]))
            xm_schema_fail(&m->s, XM_UNSUPPORTED, "",
                           "'%s' is not supported for the whole arguments in tool calls "
                           "of this model",
                           refused[i]);
    m->raw = text_without(m->t, is_braces ? XM_BRACES_QUOTE : XM_PARAMETER_END);
    if (is_braces)
        make_any(m);
    const uint32_t node = members(m, v, "");
    return is_braces ? all3(m, text(m, "{"), node, text(m, "}")) : node;
}

static uint32_t
no_arguments(struct making *m)
{
    return text(m, m->form == XM_ARGUMENTS_PARAMETERS ? "" : "{}");
}

enum xm_status
xm_tool_arguments(struct xm_grammar_tree *t, enum xm_argument_form form,
                  const struct xm_tool *tool, bool by_schema, uint32_t *node,
                  struct xm_error *err)
{
    static const char object[] = "{\"type\":\"object\"}";
    struct making m = {.t = t, .form = form, .value = XM_NOWHERE};
    yyjson_val *root = by_schema ? tool->parameters : NULL;
    XM_TRY(xm_json_parse(object, sizeof(object) - 1, &m.object, err));
    xm_schema_open(&m.s, t, root, err);
    m.s.closes = by_schema;
    unsigned left = ROOT_STEPS;
    if (root && !(xm_json_types_in(root, root, &left) & XM_JSON_OBJECT))
        xm_schema_fail(&m.s, XM_INVALID, "",
                       "the arguments of a tool are an object, but this schema does not "
                       "allow objects");
    *node = by_schema && !root          ? no_arguments(&m)
            : form == XM_ARGUMENTS_JSON ? json_arguments(&m, root)
                                        : other_arguments(&m, root);
    if (m.s.failed == XM_OK && t->failed == XM_OK && xm_tree_is_never(t, *node))
        xm_schema_fail_impossible(&m.s);
    const enum xm_status s = xm_schema_make_rules(&m.s);
    xm_schema_close(&m.s);
    yyjson_doc_free(m.object);
    if (s != XM_OK && s != XM_NO_MEMORY) {
        const struct xm_shown name = xm_utf8_shown(tool->name);
        xm_error_prefix(err, "the arguments of '%s'", name.text);
    }
    return s;
}
