/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to json_schema*.c, tool_arguments.c and tool_calls.c.
 *
 *     json_schema.c          collects the schemas that apply together
 *     json_schema_keywords.c which keywords restrict instances, and which of them are refused
 *     json_schema_refs.c     resolves references within the schema
 *     json_schema_choices.c  anyOf, oneOf, not and if: one conjunction for each alternative
 *     json_schema_types.c    the texts of one type: strings, numbers, arrays
 *     json_schema_formats.c  regular expressions for the formats of strings
 *     json_schema_object.c   objects: which names may come, and what each name's value may be
 *     json_schema_values.c   values listed by a schema, and what is known of a schema's types
 */
#ifndef XM_PLUGIN_TEXT_JSON_SCHEMA_PARTS_H
#define XM_PLUGIN_TEXT_JSON_SCHEMA_PARTS_H

#include <yyjson.h>

#include "plugin/text/grammar_parts.h"

/* A set of types. A whole number is INTEGER, any other number FRACTION. */
enum {
    XM_JSON_NULL = 1,
    XM_JSON_BOOLEAN = 2,
    XM_JSON_INTEGER = 4,
    XM_JSON_FRACTION = 8,
    XM_JSON_STRING = 16,
    XM_JSON_ARRAY = 32,
    XM_JSON_OBJECT = 64,
    XM_JSON_NUMBER = XM_JSON_INTEGER | XM_JSON_FRACTION,
    XM_JSON_ANY = 127
};

/* A schema that applies to an instance. `path`: where it stands, a JSON pointer in the schema's
 * arena. `skips`: its keywords that are already handled (XM_SKIP_…). */
struct xm_applied {
    yyjson_val *value;
    const char *path;
    unsigned skips;
};
enum {
    XM_SKIP_REF = 1,
    XM_SKIP_ALL_OF = 2,
    XM_SKIP_ANY_OF = 4,
    XM_SKIP_ONE_OF = 8,
    XM_SKIP_NOT = 16,
    XM_SKIP_IF = 32,
    XM_SKIP_COUNTS = 64 /* minProperties and maxProperties */
};

/* Schemas that an instance must all satisfy. Zero-initialise. */
struct xm_conjunction {
    struct xm_applied *list; /* owned */
    size_t n, capacity;
};

/* A schema that is referred to, and the rule that is to be made for it. */
struct xm_wanted {
    yyjson_val *value;
    const char *path;
    uint32_t rule;
};

/* The grammar node of a schema, and the schema's JSON pointer. */
struct xm_schema_place {
    uint32_t node;
    const char *path;
};

/* A schema with a name. The root and each schema with $id have a URI; a schema with an anchor has
 * the anchor and the URI of the resource around it. The strings belong to the document or to the
 * schema's arena. */
struct xm_schema_name {
    yyjson_val *value;
    const char *uri;
    const char *anchor; /* NULL: the schema is a resource */
};

/* The negation of the schema `of`: an instance that does not satisfy `of` satisfies one of
 * `schemas`. */
struct xm_opposite {
    yyjson_val *of;
    yyjson_doc *schemas; /* owned, a list; NULL: the negation is not known */
};

struct xm_schema {
    struct xm_grammar_tree *t;
    yyjson_val *root;
    struct xm_arena arena; /* memory of paths and other strings */
    struct xm_wanted *wanted;
    size_t n_wanted, wanted_capacity;
    struct xm_hash_index wanted_index; /* indexes `wanted` by schema */
    /* in the order of their creation: inner schemas first */
    struct xm_schema_place *places;
    size_t n_places, places_capacity;
    /* the root first; empty: names were not collected yet */
    struct xm_schema_name *names;
    size_t n_names, names_capacity;
    struct xm_opposite *opposites;
    size_t n_opposites, opposites_capacity;
    uint32_t any_value;               /* rule for any JSON value; XM_NOWHERE: not made */
    uint32_t space, separator, colon; /* nodes for white space, comma and colon */
    /* True: objects whose schema declares properties have no others, unless additionalProperties or
     * patternProperties allow them. False: additional properties are allowed by default, as in the
     * standard. */
    bool closes;
    /* The schema that makes the schemas around it impossible to satisfy; .value NULL: none. */
    struct xm_applied impossible;
    unsigned work; /* work done so far (xm_schema_works) */
    int depth;
    struct xm_error *err;
    enum xm_status failed;
};

/* Initialises *s to read the schema `root` into the tree. Call xm_schema_close afterwards, also
 * after a failure. */
void xm_schema_open(struct xm_schema *s, struct xm_grammar_tree *t, yyjson_val *root,
                    struct xm_error *err);
void xm_schema_close(struct xm_schema *s);
/* Returns the index of the rule for a schema inside the root; xm_schema_make_rules makes its body
 * later. */
uint32_t xm_schema_rule(struct xm_schema *s, yyjson_val *value, const char *path);
/* Sets s->impossible to `schema` if its node, which has been made, matches nothing and no schema
 * inside it is to blame. `before` is s->impossible from before the node was made; it is restored if
 * the node matches something. */
void xm_schema_note(struct xm_schema *s, uint32_t node, struct xm_applied before,
                    struct xm_applied schema);
/* Fails with an error message about s->impossible or, if no schema was noted, about the root.
 * Returns 0. */
uint32_t xm_schema_fail_impossible(struct xm_schema *s);
/* Makes the bodies of all rules that are referred to. The schema is not read afterwards. */
enum xm_status xm_schema_make_rules(struct xm_schema *s);

/* Fails with the message "JSON Schema, PATH: …", unless an earlier failure is set. Returns 0. */
uint32_t xm_schema_fail(struct xm_schema *s, enum xm_status status, const char *path,
                        const char *fmt, ...) XM_PRINTF(4, 5);
/* Fails with "expected WHAT, found the value's JSON text". */
uint32_t xm_schema_expected(struct xm_schema *s, const char *path, const char *what,
                            yyjson_val *found);
uint32_t xm_schema_no_memory(struct xm_schema *s);
/* Return the path of a member or an element: path/key (with ~ and / escaped), path/i. */
const char *xm_schema_path(struct xm_schema *s, const char *path, const char *key);
const char *xm_schema_path_at(struct xm_schema *s, const char *path, size_t i);
void xm_conjunction_add(struct xm_schema *s, struct xm_conjunction *c, yyjson_val *value,
                        const char *path, unsigned skips);
void xm_conjunction_free(struct xm_conjunction *c);

/* Counts n steps of work. Fails above a limit, because a schema that refers to itself in several
 * ways takes exponential work. Returns whether s has not failed. */
bool xm_schema_works(struct xm_schema *s, unsigned n, const char *path);

/* xm_schema_refuse fails on a keyword of `c` that restricts instances of these types and has no
 * grammar. xm_schema_restricts returns whether a schema has a keyword with a grammar, except type,
 * enum, const, references and choices, that restricts these types; xm_schema_refuse_beside fails on
 * such a keyword, because it is not supported beside `what`, a text for the error message. */
void xm_schema_refuse(struct xm_schema *s, const struct xm_conjunction *c,
                      unsigned types);
bool xm_schema_restricts(const struct xm_applied *a, unsigned types);
void xm_schema_refuse_beside(struct xm_schema *s, const struct xm_conjunction *c,
                             unsigned types, const char *what);
/* Returns whether a keyword does not restrict instances, such as "title". */
bool xm_schema_is_annotation(const char *key);
/* Sets *node to the texts of the alternatives of the first unhandled choice keyword (oneOf, anyOf,
 * not, if) in `c`. False: there is none. */
bool xm_schema_choose(struct xm_schema *s, const struct xm_conjunction *c,
                      uint32_t *node);
/* Fails if two alternatives of a oneOf are not known to exclude each other. */
void xm_schema_check_one_of(struct xm_schema *s, yyjson_val *list, const char *path);

/* Returns a node for the texts of all instances that satisfy `c`. Changes `c`. */
uint32_t xm_schema_node(struct xm_schema *s, struct xm_conjunction *c);
/* Returns whether a schema inside the root has an $id. */
bool xm_schema_has_resources(struct xm_schema *s);
/* Returns the schema that a reference means, and its path. NULL: s->failed is set. */
yyjson_val *xm_schema_find(struct xm_schema *s, yyjson_val *ref, const char *path,
                           const char **target_path);

/* Return nodes for a literal text and for three parts in order. */
uint32_t xm_schema_text(struct xm_schema *s, const char *text);
uint32_t xm_schema_all3(struct xm_schema *s, uint32_t a, uint32_t b, uint32_t c);
/* Return nodes for any JSON value and for any string of `least` to `most` characters. */
uint32_t xm_schema_any_value(struct xm_schema *s);
uint32_t xm_schema_any_string(struct xm_schema *s, uint32_t least, uint32_t most);
/* Returns a node for the strings that satisfy the keywords of `c`. */
uint32_t xm_schema_string(struct xm_schema *s, const struct xm_conjunction *c);
/* Returns the regular expression of a schema's "format"; has_length: minLength or maxLength apply
 * as well, and a narrower expression may be returned. NULL: it has none. */
const char *xm_schema_format(struct xm_schema *s, const struct xm_applied *a,
                             bool has_length);
/* Sets *node to the unescaped contents of strings that a pattern or a format describes, without the
 * character `without`. False: neither is present, or s has failed. */
bool xm_schema_plain_string(struct xm_schema *s, const struct xm_conjunction *c,
                            char without, uint32_t *node);
uint32_t xm_schema_number(struct xm_schema *s, const struct xm_conjunction *c,
                          unsigned types);
/* Writes a number as a decimal without exponent. False: it does not fit. */
enum { XM_SCHEMA_NUMBER = 400 };
bool xm_schema_decimal(yyjson_val *v, char out[XM_SCHEMA_NUMBER]);
uint32_t xm_schema_array(struct xm_schema *s, const struct xm_conjunction *c);
uint32_t xm_schema_object(struct xm_schema *s, const struct xm_conjunction *c);
/* Returns a node for all strings except those that the keyword `not` of schemas in `c` names. */
uint32_t xm_schema_other_string(struct xm_schema *s, const struct xm_conjunction *c);
/* Return nodes: for the string contents that match a regular expression; for contents in quotes;
 * for a member, key and value. */
uint32_t xm_schema_pattern(struct xm_schema *s, struct xm_slice pattern,
                           const char *path);
uint32_t xm_schema_quoted(struct xm_schema *s, uint32_t contents);
uint32_t xm_schema_member(struct xm_schema *s, uint32_t key, uint32_t value);
/* Returns the strictest count of a keyword such as minItems (largest) or maxItems (not largest);
 * `missing`: no schema of `c` has it. */
uint32_t xm_schema_count(struct xm_schema *s, const struct xm_conjunction *c,
                         const char *key, bool largest, uint32_t missing);

/* Returns the types named by a string or a list of strings; 0: a name is not a type. */
unsigned xm_json_types_named(yyjson_val *type);
/* Returns the types that the keyword "type" of this schema allows. */
unsigned xm_schema_types(struct xm_schema *s, const struct xm_applied *a);
unsigned xm_json_type_of(yyjson_val *value);
/* Returns the types that instances of a schema inside `root` can have, as far as type, const, enum
 * and choices tell: possibly too many, never too few. *left is the number of steps left: 64 are
 * taken for a schema or a reference and one for a listed value. When none are left, all types are
 * returned. */
unsigned xm_json_types_in(yyjson_val *root, yyjson_val *v, unsigned *left);
/* xm_json_target returns the schema that a reference means; NULL: none. xm_json_refers_to follows
 * the references of a schema to the end: the schema itself if it has none; NULL: a target is
 * missing or there are too many. */
yyjson_val *xm_json_target(yyjson_val *root, yyjson_val *ref, unsigned *left);
yyjson_val *xm_json_refers_to(yyjson_val *root, yyjson_val *v, unsigned *left);
bool xm_json_equal(yyjson_val *a, yyjson_val *b);
/* Sets *node to the values that enum or const list and that satisfy all of `c`. False: `c` has
 * neither keyword. */
bool xm_schema_values(struct xm_schema *s, const struct xm_conjunction *c, unsigned types,
                      uint32_t *node);
/* Returns whether `not` of a schema only excludes values: it has const or enum and nothing else. */
bool xm_schema_rules_out(yyjson_val *schema);
/* Iterates over the values that such schemas of `c` exclude. Returns the next one; NULL: no more.
 * Zero-initialise the position *at. */
struct xm_ruled_out {
    size_t schema, value;
};
yyjson_val *xm_schema_next_ruled_out(const struct xm_conjunction *c,
                                     struct xm_ruled_out *at);
/* Returns whether no instance is valid for both schemas; false also if that is not known. */
bool xm_schema_exclude(struct xm_schema *s, yyjson_val *a, yyjson_val *b, int depth);
/* Returns the JSON text of a value, *n bytes; free it with xm_free. NULL: s has failed. */
char *xm_schema_json(struct xm_schema *s, yyjson_val *value, size_t *n);
/* Compiles `node` of the separate tree `own` (xm_tree_free frees the tree). NULL: the node matches
 * nothing, or s has failed. `path` is for error messages. */
struct xm_grammar *xm_schema_compile(struct xm_schema *s, struct xm_grammar_tree *own,
                                     uint32_t node, const char *path);
/* Returns whether a grammar of xm_schema_compile matches a text. */
bool xm_schema_matches(struct xm_schema *s, const struct xm_grammar *g, const char *text,
                       size_t n);
/* Return nodes for the JSON text of a value, and for a string's without its quotes. */
uint32_t xm_schema_literal(struct xm_schema *s, yyjson_val *value);
uint32_t xm_schema_contents(struct xm_schema *s, yyjson_val *string);

#endif
