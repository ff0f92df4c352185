/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside JSON Schema, for json_schema*.c, tool_arguments.c and tool_calls.c only.
 *
 *     json_schema.c         which schemas apply together; keywords that are refused
 *     json_schema_refs.c    references within the schema
 *     json_schema_choices.c anyOf and oneOf, not and if: one conjunction of each alternative
 *     json_schema_types.c   the texts of one type: strings, numbers, arrays
 *     json_schema_formats.c what the formats of strings admit
 *     json_schema_object.c  objects: which names may come, and what each name's value may be
 *     json_schema_values.c  values that a schema lists, and what is known of a schema's type
 */
#ifndef XM_PLUGIN_TEXT_JSON_SCHEMA_PARTS_H
#define XM_PLUGIN_TEXT_JSON_SCHEMA_PARTS_H

#include <yyjson.h>

#include "plugin/text/grammar_parts.h"

/* A set of types; a number is INTEGER or FRACTION. */
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

/* A schema that applies, and where it stands: a JSON pointer, in the schema's arena. `skips`: these
 * of its keywords have been taken care of. */
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

/* A rule that is wanted for a schema that is referred to. */
struct xm_wanted {
    yyjson_val *value;
    const char *path;
    uint32_t rule;
};

/* The node of a schema. */
struct xm_schema_place {
    uint32_t node;
    const char *path;
};

/* A schema that has a name: the root and each with $id have a URI, those with an anchor beside that
 * of the resource that they are in. Strings are of the document or the schema's arena. */
struct xm_schema_name {
    yyjson_val *value;
    const char *uri;
    const char *anchor; /* NULL: it is a resource */
};

/* Schemas of which an instance satisfies one where it does not satisfy `of`. */
struct xm_opposite {
    yyjson_val *of;
    yyjson_doc *schemas; /* owned, a list; NULL: it is not known */
};

struct xm_schema {
    struct xm_grammar_tree *t;
    yyjson_val *root;
    struct xm_arena arena; /* of paths */
    struct xm_wanted *wanted;
    size_t n_wanted, wanted_capacity;
    struct xm_hash_index wanted_index; /* by value */
    struct xm_schema_place
        *places; /* in the order in which they were made: inner ones first */
    size_t n_places, places_capacity;
    struct xm_schema_name
        *names; /* the root first; none: they have not been looked for yet */
    size_t n_names, names_capacity;
    struct xm_opposite *opposites;
    size_t n_opposites, opposites_capacity;
    uint32_t any_value;               /* rule of all JSON values; XM_NOWHERE: not made */
    uint32_t space, separator, colon; /* nodes */
    /* Objects whose schemas declare properties have no others, unless these say otherwise; false:
     * as the standard has it. */
    bool closes;
    /* A schema without instances, for which those around it have none; .value NULL: none is. */
    struct xm_applied impossible;
    unsigned work; /* xm_schema_works: so far */
    int depth;
    struct xm_error *err;
    enum xm_status failed;
};

/* Begins to read the schema `root` into the tree; xm_schema_close afterwards, also after a
 * failure. */
void xm_schema_open(struct xm_schema *s, struct xm_grammar_tree *t, yyjson_val *root,
                    struct xm_error *err);
void xm_schema_close(struct xm_schema *s);
/* The number of the rule for a schema within it. */
uint32_t xm_schema_rule(struct xm_schema *s, yyjson_val *value, const char *path);
/* Notes a schema whose node has been made, where no text matches it; `before` is what `impossible`
 * was then. */
void xm_schema_note(struct xm_schema *s, uint32_t node, struct xm_applied before,
                    struct xm_applied schema);
/* Fails with what was noted last, or where nothing was, at the root. */
uint32_t xm_schema_fail_impossible(struct xm_schema *s);
/* Makes the rules that are wanted; nothing is read from the schema afterwards. */
enum xm_status xm_schema_make_rules(struct xm_schema *s);

/* "JSON Schema, /properties/a: …"; the first failure stays. */
uint32_t xm_schema_fail(struct xm_schema *s, enum xm_status status, const char *path,
                        const char *fmt, ...) XM_PRINTF(4, 5);
uint32_t xm_schema_no_memory(struct xm_schema *s);
/* path/key, path/i. */
const char *xm_schema_path(struct xm_schema *s, const char *path, const char *key);
const char *xm_schema_path_at(struct xm_schema *s, const char *path, size_t i);
void xm_conjunction_add(struct xm_schema *s, struct xm_conjunction *c, yyjson_val *value,
                        const char *path, unsigned skips);
void xm_conjunction_free(struct xm_conjunction *c);

/* Counts n steps of work, of which a schema may need so many: what refers to itself in several ways
 * needs more with each level. False: it failed. */
bool xm_schema_works(struct xm_schema *s, unsigned n, const char *path);

/* Refuses keywords that restrict instances of these types and have no grammar; keywords beside
 * others, `what`, that would have to be checked, too. */
void xm_schema_refuse(struct xm_schema *s, const struct xm_conjunction *c,
                      unsigned types);
void xm_schema_refuse_beside(struct xm_schema *s, const struct xm_conjunction *c,
                             unsigned types, const char *what);
/* Keywords that say nothing about instances. */
bool xm_schema_is_annotation(const char *key);
/* The first choice that is left in `c`: the texts of its alternatives. False: there is none. */
bool xm_schema_choose(struct xm_schema *s, const struct xm_conjunction *c,
                      uint32_t *node);
/* Fails where alternatives of oneOf are not known to exclude each other. */
void xm_schema_check_one_of(struct xm_schema *s, yyjson_val *list, const char *path);

/* The texts of all instances that satisfy `c`, which may be changed. */
uint32_t xm_schema_node(struct xm_schema *s, struct xm_conjunction *c);
/* Whether there are schemas with $id in the root. */
bool xm_schema_has_resources(struct xm_schema *s);
/* What a reference means; NULL: s->failed says why. */
yyjson_val *xm_schema_find(struct xm_schema *s, yyjson_val *ref, const char *path,
                           const char **target_path);

/* A text as it stands; three parts in order. */
uint32_t xm_schema_text(struct xm_schema *s, const char *text);
uint32_t xm_schema_all3(struct xm_schema *s, uint32_t a, uint32_t b, uint32_t c);
/* All JSON values; all strings. */
uint32_t xm_schema_any_value(struct xm_schema *s);
uint32_t xm_schema_any_string(struct xm_schema *s, uint32_t least, uint32_t most);
/* The texts of one type (of numbers: a set), whose keywords are in `c`. */
uint32_t xm_schema_string(struct xm_schema *s, const struct xm_conjunction *c);
/* The pattern of a schema's format, perhaps a narrower one beside lengths; NULL: it has none. */
const char *xm_schema_format(struct xm_schema *s, const struct xm_applied *a,
                             bool has_length);
/* The contents of strings that stand as they are, where a pattern or a format says what they are:
 * those `without` a character. False: nothing does, or it failed. */
bool xm_schema_plain_string(struct xm_schema *s, const struct xm_conjunction *c,
                            char without, uint32_t *node);
uint32_t xm_schema_number(struct xm_schema *s, const struct xm_conjunction *c,
                          unsigned types);
/* A number as a decimal without exponent; false: it needs more digits than there is room for. */
enum { XM_SCHEMA_NUMBER = 400 };
bool xm_schema_decimal(yyjson_val *v, char out[XM_SCHEMA_NUMBER]);
uint32_t xm_schema_array(struct xm_schema *s, const struct xm_conjunction *c);
uint32_t xm_schema_object(struct xm_schema *s, const struct xm_conjunction *c);
/* The strings that are none of those that `not` names in `c`. */
uint32_t xm_schema_other_string(struct xm_schema *s, const struct xm_conjunction *c);
/* What a string holds that a regular expression matches; contents in quotes; a key and a value. */
uint32_t xm_schema_pattern(struct xm_schema *s, struct xm_slice pattern,
                           const char *path);
uint32_t xm_schema_quoted(struct xm_schema *s, uint32_t contents);
uint32_t xm_schema_member(struct xm_schema *s, uint32_t key, uint32_t value);
/* A count such as minItems; `missing` where there is none. */
uint32_t xm_schema_count(struct xm_schema *s, const struct xm_conjunction *c,
                         const char *key, bool largest, uint32_t missing);

/* The types that are named by a string or a list of them; 0: one is no type. */
unsigned xm_json_types_named(yyjson_val *type);
/* The types that "type" of this schema allows. */
unsigned xm_schema_types(struct xm_schema *s, const struct xm_applied *a);
unsigned xm_json_type_of(yyjson_val *value);
/* The types that instances of a schema within `root` can have, as far as type, const, enum and
 * choices say: perhaps more than they have, never less. *left: the steps that may still be taken,
 * 64 for a schema or a reference and one for a listed value; without any all types are possible. */
unsigned xm_json_types_in(yyjson_val *root, yyjson_val *v, unsigned *left);
/* What a reference means; NULL: nothing. The schema itself, or what it refers to in the end; NULL:
 * nothing, or too often. */
yyjson_val *xm_json_target(yyjson_val *root, yyjson_val *ref, unsigned *left);
yyjson_val *xm_json_refers_to(yyjson_val *root, yyjson_val *v, unsigned *left);
bool xm_json_equal(yyjson_val *a, yyjson_val *b);
/* enum and const; false: `c` has neither. */
bool xm_schema_values(struct xm_schema *s, const struct xm_conjunction *c, unsigned types,
                      uint32_t *node);
/* Whether `not` of a schema names values: const and enum, and nothing else. */
bool xm_schema_rules_out(yyjson_val *schema);
/* The values that such schemas of `c` name, one after the other; NULL: no more. Zero-initialise the
 * place. */
struct xm_ruled_out {
    size_t schema, value;
};
yyjson_val *xm_schema_next_ruled_out(const struct xm_conjunction *c,
                                     struct xm_ruled_out *at);
/* Whether no instance is valid for both; false: that is not known. */
bool xm_schema_exclude(struct xm_schema *s, yyjson_val *a, yyjson_val *b, int depth);
/* The JSON text of a value, to be freed; NULL: it failed. */
char *xm_schema_json(struct xm_schema *s, yyjson_val *value, size_t *n);
/* The grammar of a node of a tree of its own; NULL: nothing matches it, or it failed. */
struct xm_grammar *xm_schema_compile(struct xm_schema *s, struct xm_grammar_tree *own,
                                     uint32_t node, const char *path);
/* Whether a grammar of xm_schema_compile matches a text. */
bool xm_schema_matches(struct xm_schema *s, const struct xm_grammar *g, const char *text,
                       size_t n);
/* A node for that JSON text; of a string without its quotes. */
uint32_t xm_schema_literal(struct xm_schema *s, yyjson_val *value);
uint32_t xm_schema_contents(struct xm_schema *s, yyjson_val *string);

#endif
