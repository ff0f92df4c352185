/* SPDX-License-Identifier: Apache-2.0
 *
 * The keywords of JSON Schemas: which restrict instances, of which types, and which of those have
 * no grammar. Keywords that are not in the table are ignored, as the standard says, except for the
 * ones that json_schema.c expands: $ref, allOf, anyOf, oneOf, type, const and enum.
 */
#include <string.h>

#include "plugin/text/json_schema_parts.h"

enum support {
    ANNOTATION, /* restricts nothing */
    ALONE,      /* has a grammar, but not beside listed values */
    NONE        /* has no grammar */
};

/* When a keyword does not restrict anything: if its value is false, true (or {}) or 0, or without
 * the keyword "if" or "then" beside it. */
enum unless { ALWAYS, UNLESS_FALSE, UNLESS_TRUE, UNLESS_ZERO, WITHOUT_IF, WITHOUT_THEN };

/* `types`: the types of instances that the keyword restricts. `skip`: the bit of xm_applied.skips
 * that says that the keyword is handled; without the bit it has no grammar. 0: there is no such
 * bit. */
static const struct keyword {
    const char *key;
    enum support support;
    unsigned types;
    enum unless unless;
    unsigned skip;
} keywords[] = {
    /* clang-format off */
    { "minimum",               ALONE, XM_JSON_NUMBER, ALWAYS, 0 },
    { "maximum",               ALONE, XM_JSON_NUMBER, ALWAYS, 0 },
    { "exclusiveMinimum",      ALONE, XM_JSON_NUMBER, ALWAYS, 0 },
    { "exclusiveMaximum",      ALONE, XM_JSON_NUMBER, ALWAYS, 0 },
    { "multipleOf",            ALONE, XM_JSON_NUMBER, ALWAYS, 0 },
    { "divisibleBy",           NONE,  XM_JSON_NUMBER, ALWAYS, 0 },
    { "minLength",             ALONE, XM_JSON_STRING, ALWAYS, 0 },
    { "maxLength",             ALONE, XM_JSON_STRING, ALWAYS, 0 },
    { "pattern",               ALONE, XM_JSON_STRING, ALWAYS, 0 },
    { "format",                ALONE, XM_JSON_STRING, ALWAYS, 0 },
    { "items",                 ALONE, XM_JSON_ARRAY,  ALWAYS, 0 },
    { "prefixItems",           ALONE, XM_JSON_ARRAY,  ALWAYS, 0 },
    { "minItems",              ALONE, XM_JSON_ARRAY,  ALWAYS, 0 },
    { "maxItems",              ALONE, XM_JSON_ARRAY,  ALWAYS, 0 },
    { "uniqueItems",           NONE,  XM_JSON_ARRAY,  UNLESS_FALSE, 0 },
    { "contains",              NONE,  XM_JSON_ARRAY,  ALWAYS, 0 },
    { "unevaluatedItems",      NONE,  XM_JSON_ARRAY,  UNLESS_TRUE, 0 },
    { "additionalItems",       NONE,  XM_JSON_ARRAY,  ALWAYS, 0 },
    { "properties",            ALONE, XM_JSON_OBJECT, ALWAYS, 0 },
    { "patternProperties",     ALONE, XM_JSON_OBJECT, ALWAYS, 0 },
    { "additionalProperties",  ALONE, XM_JSON_OBJECT, ALWAYS, 0 },
    { "required",              ALONE, XM_JSON_OBJECT, ALWAYS, 0 },
    { "minProperties",         ALONE, XM_JSON_OBJECT, UNLESS_ZERO, XM_SKIP_COUNTS },
    { "maxProperties",         ALONE, XM_JSON_OBJECT, ALWAYS, XM_SKIP_COUNTS },
    { "unevaluatedProperties", NONE,  XM_JSON_OBJECT, UNLESS_TRUE, 0 },
    { "propertyNames",         NONE,  XM_JSON_OBJECT, UNLESS_TRUE, 0 },
    { "dependentRequired",     NONE,  XM_JSON_OBJECT, ALWAYS, 0 },
    { "dependentSchemas",      NONE,  XM_JSON_OBJECT, ALWAYS, 0 },
    { "dependencies",          NONE,  XM_JSON_OBJECT, ALWAYS, 0 },
    { "not",                   NONE,  XM_JSON_ANY,    UNLESS_FALSE, XM_SKIP_NOT },
    { "if",                    NONE,  XM_JSON_ANY,    WITHOUT_THEN, XM_SKIP_IF },
    { "then",                  NONE,  XM_JSON_ANY,    WITHOUT_IF, XM_SKIP_IF },
    { "else",                  NONE,  XM_JSON_ANY,    WITHOUT_IF, XM_SKIP_IF },
    { "$dynamicRef",           NONE,  XM_JSON_ANY,    ALWAYS, 0 },
    { "$recursiveRef",         NONE,  XM_JSON_ANY,    ALWAYS, 0 },
    { "disallow",              NONE,  XM_JSON_ANY,    ALWAYS, 0 },
    { "extends",               NONE,  XM_JSON_ANY,    ALWAYS, 0 },
    { "$schema",               ANNOTATION, 0, ALWAYS, 0 },
    { "$vocabulary",           ANNOTATION, 0, ALWAYS, 0 },
    { "$id",                   ANNOTATION, 0, ALWAYS, 0 },
    { "id",                    ANNOTATION, 0, ALWAYS, 0 },
    { "$anchor",               ANNOTATION, 0, ALWAYS, 0 },
    { "$dynamicAnchor",        ANNOTATION, 0, ALWAYS, 0 },
    { "$defs",                 ANNOTATION, 0, ALWAYS, 0 },
    { "definitions",           ANNOTATION, 0, ALWAYS, 0 },
    { "$comment",              ANNOTATION, 0, ALWAYS, 0 },
    { "title",                 ANNOTATION, 0, ALWAYS, 0 },
    { "description",           ANNOTATION, 0, ALWAYS, 0 },
    { "default",               ANNOTATION, 0, ALWAYS, 0 },
    { "examples",              ANNOTATION, 0, ALWAYS, 0 },
    { "deprecated",            ANNOTATION, 0, ALWAYS, 0 },
    { "readOnly",              ANNOTATION, 0, ALWAYS, 0 },
    { "writeOnly",             ANNOTATION, 0, ALWAYS, 0 },
    { "contentEncoding",       ANNOTATION, 0, ALWAYS, 0 },
    { "contentMediaType",      ANNOTATION, 0, ALWAYS, 0 },
    { "contentSchema",         ANNOTATION, 0, ALWAYS, 0 },
    /* clang-format on */
};

bool
xm_schema_is_annotation(const char *key)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(keywords); i++)
        if (keywords[i].support == ANNOTATION && strcmp(keywords[i].key, key) == 0)
            return true;
    return false;
}

static bool
restricts_nothing(yyjson_val *schema, yyjson_val *v, enum unless unless)
{
    switch (unless) {
    case ALWAYS:
        return false;
    case UNLESS_FALSE:
        return yyjson_is_false(v);
    case UNLESS_TRUE:
        return yyjson_is_true(v) || (yyjson_is_obj(v) && yyjson_obj_size(v) == 0);
    case UNLESS_ZERO:
        return yyjson_is_num(v) && yyjson_get_num(v) == 0.0;
    case WITHOUT_IF:
        return !yyjson_obj_get(schema, "if");
    case WITHOUT_THEN:
        return !yyjson_obj_get(schema, "then") && !yyjson_obj_get(schema, "else");
    }
    return false;
}

static bool
lacks_grammar(const struct xm_applied *a, const struct keyword *k)
{
    yyjson_val *v = yyjson_obj_get(a->value, k->key);
    return v && (k->support == NONE || k->skip) && !(a->skips & k->skip) &&
           !restricts_nothing(a->value, v, k->unless);
}

void
xm_schema_refuse(struct xm_schema *s, const struct xm_conjunction *c, unsigned types)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < XM_ARRAY_LEN(keywords); k++)
            if ((keywords[k].types & types) && lacks_grammar(&c->list[i], &keywords[k]))
                xm_schema_fail(s, XM_UNSUPPORTED,
                               xm_schema_path(s, c->list[i].path, keywords[k].key),
                               "the keyword '%s' is not supported", keywords[k].key);
}

static bool
restricts(const struct xm_applied *a, const struct keyword *k, unsigned types)
{
    return k->support == ALONE && (k->types & types) && yyjson_obj_get(a->value, k->key);
}

bool
xm_schema_restricts(const struct xm_applied *a, unsigned types)
{
    size_t k = 0;
    while (k < XM_ARRAY_LEN(keywords) && !restricts(a, &keywords[k], types))
        k++;
    return k < XM_ARRAY_LEN(keywords);
}

void
xm_schema_refuse_beside(struct xm_schema *s, const struct xm_conjunction *c,
                        unsigned types, const char *what)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < XM_ARRAY_LEN(keywords); k++)
            if (restricts(&c->list[i], &keywords[k], types))
                xm_schema_fail(s, XM_UNSUPPORTED,
                               xm_schema_path(s, c->list[i].path, keywords[k].key),
                               "the keyword '%s' is not supported beside %s",
                               keywords[k].key, what);
}
