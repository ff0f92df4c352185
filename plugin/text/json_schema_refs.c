/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves references within a JSON Schema.
 *
 * A schema with $id is a resource: it has a URI, and references inside of it are relative to it. A
 * reference names a resource (by default the one in which it stands) and in it a JSON pointer or an
 * anchor:
 *
 *     #/$defs/a     #a     item     item#/$defs/a     https://example.com/item#a
 *
 * Other documents are not loaded.
 */
#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "runtime/util/utf8.h"

/* ---- URIs -------------------------------------------------------------------------- */

/* Returns the length of the scheme with its colon, as of "https:"; 0: there is none. */
static size_t
scheme_of(const char *uri)
{
    const size_t n = strcspn(uri, ":/?#");
    return uri[n] == ':' ? n + 1 : 0;
}

/* Returns the length of scheme and authority, as of "https://example.com". */
static size_t
authority_of(const char *uri)
{
    const size_t n = scheme_of(uri);
    return strncmp(uri + n, "//", 2) == 0 ? n + 2 + strcspn(uri + n + 2, "/?#") : n;
}

/* Resolves "." and ".." in a path, in place. */
static void
drop_dots(char *path)
{
    char *const begin = path + (*path == '/'), *to = begin;
    for (char *from = begin; *from;) {
        const size_t n = strcspn(from, "/?#"), whole = n + (from[n] == '/');
        if (from[n] && from[n] != '/') { /* query or fragment: the path has ended */
            memmove(to, from, strlen(from) + 1);
            return;
        }
        if (n == 2 && memcmp(from, "..", 2) == 0) {
            to -= to > begin;
            while (to > begin && to[-1] != '/')
                to--;
        } else if (n != 1 || *from != '.') {
            memmove(to, from, whole);
            to += whole;
        }
        from += whole;
    }
    *to = '\0';
}

/* Returns the URI of a reference without a fragment, relative to the URI `base`; in the schema's
 * arena. */
static const char *
resolve(struct xm_schema *s, const char *base, struct xm_slice ref)
{
    struct xm_strbuf b = {0};
    const char *text = ref.text;
    const size_t authority = authority_of(base);
    const bool is_rooted = ref.n > 0 && text[0] == '/';
    size_t kept = authority;
    char *out = NULL;
    if (scheme_of(text) > 0 && scheme_of(text) <= ref.n)
        kept = 0;
    else if (is_rooted && ref.n > 1 && text[1] == '/')
        kept = scheme_of(base);
    else if (!is_rooted)
        for (size_t i = authority; base[i] && base[i] != '?'; i++)
            kept = base[i] == '/' ? i + 1 : kept;
    xm_strbuf_add_n(&b, base, kept);
    if (kept > 0 && kept == authority && !is_rooted && base[kept - 1] != ':')
        xm_strbuf_add(&b, "/");
    xm_strbuf_add_n(&b, text, ref.n);
    if (xm_strbuf_ok(&b))
        out = xm_arena_strdup(&s->arena, xm_strbuf_text(&b));
    xm_strbuf_free(&b);
    if (!out) {
        xm_schema_no_memory(s);
        return "";
    }
    drop_dots(out + authority_of(out));
    return out;
}

/* ---- names of schemas -------------------------------------------------------------- */

static void
add_name(struct xm_schema *s, yyjson_val *value, const char *uri, const char *anchor)
{
    struct xm_schema_name *grown =
        xm_grow(s->names, &s->names_capacity, s->n_names + 1, sizeof(*grown));
    if (!grown) {
        xm_schema_no_memory(s);
        return;
    }
    s->names = grown;
    s->names[s->n_names++] = (struct xm_schema_name){value, uri, anchor};
}

/* Keywords whose value is a schema or a list of schemas or, with is_named, an object with a schema
 * for each name. */
static const struct applicator {
    const char *key;
    bool is_named;
} applicators[] = {{"additionalProperties", false},
                   {"items", false},
                   {"prefixItems", false},
                   {"contains", false},
                   {"allOf", false},
                   {"anyOf", false},
                   {"oneOf", false},
                   {"not", false},
                   {"if", false},
                   {"then", false},
                   {"else", false},
                   {"propertyNames", false},
                   {"unevaluatedItems", false},
                   {"unevaluatedProperties", false},
                   {"contentSchema", false},
                   {"properties", true},
                   {"patternProperties", true},
                   {"dependentSchemas", true},
                   {"$defs", true},
                   {"definitions", true}};

static void find_names(struct xm_schema *s, yyjson_val *v, const char *base);

static void
find_names_below(struct xm_schema *s, yyjson_val *v, bool is_named, const char *base)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (yyjson_is_obj(v) && !is_named)
        find_names(s, v, base);
    yyjson_arr_foreach(v, i, n, value)
    {
        find_names(s, value, base);
    }
    if (!is_named)
        return;
    yyjson_obj_foreach(v, i, n, key, value)
    {
        find_names(s, value, base);
    }
}

/* Adds the names of a schema and of all schemas inside it. */
static void
find_names(struct xm_schema *s, yyjson_val *v,
           const char *base) /* NOLINT(misc-no-recursion) */
{
    static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
    yyjson_val *id = yyjson_obj_get(v, "$id");
    const char *text = yyjson_get_str(id);
    size_t i, n;
    yyjson_val *key, *value;
    if (s->failed != XM_OK)
        return;
    if (text && text[0] == '#') /* older drafts write an anchor this way */
        add_name(s, v, base, text + 1);
    else if (text)
        base = resolve(s, base, xm_slice_of(text, strcspn(text, "#")));
    if (v == s->root || (text && text[0] != '#'))
        add_name(s, v, base, NULL);
    for (size_t k = 0; k < XM_ARRAY_LEN(anchors); k++) {
        text = yyjson_get_str(yyjson_obj_get(v, anchors[k]));
        if (text)
            add_name(s, v, base, text);
    }
    yyjson_obj_foreach(v, i, n, key, value)
    {
        for (size_t k = 0; yyjson_is_ctn(value) && k < XM_ARRAY_LEN(applicators); k++)
            if (yyjson_equals_str(key, applicators[k].key))
                find_names_below(s, value, applicators[k].is_named, base);
    }
}

/* Returns whether a value is inside another: yyjson stores a container directly before its
 * contents. */
static bool
is_in(yyjson_val *inner, yyjson_val *outer)
{
    return inner >= outer && inner < unsafe_yyjson_get_next(outer);
}

bool
xm_schema_has_resources(struct xm_schema *s)
{
    if (s->n_names == 0)
        find_names(s, s->root, "");
    for (size_t i = 1; i < s->n_names; i++)
        if (!s->names[i].anchor)
            return true;
    return false;
}

/* Returns the innermost resource around a value: s->names has outer resources before inner ones. */
static const struct xm_schema_name *
resource_of(const struct xm_schema *s, yyjson_val *v)
{
    for (size_t i = s->n_names; i-- > 1;)
        if (!s->names[i].anchor && is_in(v, s->names[i].value))
            return &s->names[i];
    return &s->names[0];
}

/* Returns the schema with this URI and anchor (NULL: a resource); NULL: there is none. */
static const struct xm_schema_name *
find_name(const struct xm_schema *s, const char *uri, const char *anchor)
{
    for (size_t i = 0; i < s->n_names; i++) {
        const struct xm_schema_name *name = &s->names[i];
        if (strcmp(name->uri, uri) == 0 && !name->anchor == !anchor &&
            (!anchor || strcmp(name->anchor, anchor) == 0))
            return name;
    }
    return NULL;
}

/* Returns the JSON pointer of a value. */
static const char *
path_of(struct xm_schema *s, yyjson_val *target)
{
    const char *path = "";
    yyjson_val *at = s->root, *next;
    for (; at && at != target && s->failed == XM_OK; at = next) {
        size_t i, n;
        yyjson_val *key, *value;
        next = NULL;
        yyjson_obj_foreach(at, i, n, key, value)
        {
            if (is_in(target, value)) {
                path = xm_schema_path(s, path, yyjson_get_str(key));
                next = value;
                break;
            }
        }
        yyjson_arr_foreach(at, i, n, value)
        {
            if (is_in(target, value)) {
                path = xm_schema_path_at(s, path, i);
                next = value;
                break;
            }
        }
    }
    return path;
}

/* ---- references -------------------------------------------------------------------- */

/* Unescapes a reference token of a JSON pointer in a URI fragment, in place: %XX, ~0, ~1. False: it
 * is malformed. */
static bool
unescape(char *s)
{
    char *to = s;
    for (char *c = s; *c; c++) {
        unsigned code;
        if (*c == '%') {
            const char hex[3] = {c[1], c[1] ? c[2] : '\0', '\0'};
            if (strspn(hex, "0123456789abcdefABCDEF") != 2)
                return false;
            code = 0;
            for (int i = 0; i < 2; i++)
                code = code * 16 + (unsigned)(hex[i] <= '9' ? hex[i] - '0'
                                                            : (hex[i] | 32) - 'a' + 10);
            if (code == 0)
                return false;
            *to++ = (char)code;
            c += 2;
        } else {
            *to++ = *c;
        }
    }
    *to = '\0';
    to = s;
    for (char *c = s; *c; c++) {
        if (*c == '~' && c[1] != '0' && c[1] != '1')
            return false;
        const bool is_escape = *c == '~';
        *to++ = !is_escape ? *c : c[1] == '0' ? '~' : '/';
        c += is_escape;
    }
    *to = '\0';
    return true;
}

/* Returns the element of an array that a JSON pointer's token names; NULL: none. */
static yyjson_val *
element(yyjson_val *array, const char *token)
{
    size_t i = 0;
    if (!*token || strspn(token, "0123456789") != strlen(token) || strlen(token) > 8)
        return NULL;
    for (; *token; token++)
        i = i * 10 + (size_t)(*token - '0');
    return yyjson_arr_get(array, i);
}

static yyjson_val *
follow(yyjson_val *at, char *pointer)
{
    for (char *token = pointer; at && token;) {
        char *next = strchr(token, '/');
        if (next)
            *next++ = '\0';
        if (!unescape(token))
            return NULL;
        at = yyjson_is_obj(at) ? yyjson_obj_get(at, token) : element(at, token);
        token = next;
    }
    return at;
}

/* Returns the resource that a reference names; NULL: no schema of this document has this URI. */
static const struct xm_schema_name *
resource_named(struct xm_schema *s, yyjson_val *ref, const char *where)
{
    const char *text = yyjson_get_str(ref);
    const size_t n = strcspn(text, "#");
    if (s->n_names == 0)
        find_names(s, s->root, "");
    if (s->failed != XM_OK || !xm_schema_works(s, (unsigned)(s->n_names / 64), where))
        return NULL;
    const struct xm_schema_name *here = resource_of(s, ref);
    if (n == 0)
        return here;
    const char *uri = resolve(s, here->uri, xm_slice_of(text, n));
    const struct xm_schema_name *found = find_name(s, uri, NULL);
    if (!found)
        xm_schema_fail(
            s, XM_UNSUPPORTED, where,
            "only references within the schema are supported (#/…), found '%s'",
            xm_utf8_shown(xm_slice_of(text, strlen(text))).text);
    return found;
}

yyjson_val *
xm_schema_find(struct xm_schema *s, yyjson_val *ref, const char *path,
               const char **target_path)
{
    const char *text = yyjson_get_str(ref);
    const char *where = xm_schema_path(s, path, "$ref");
    if (!text) {
        xm_schema_fail(s, XM_INVALID, where, "a reference is a string");
        return NULL;
    }
    /* counted as work, because each time a reference is followed its text is copied */
    if (!xm_schema_works(s, (unsigned)(strlen(text) / 256), where))
        return NULL;
    const struct xm_schema_name *resource = resource_named(s, ref, where);
    char *fragment = xm_arena_strdup(&s->arena, text + strcspn(text, "#"));
    if (!fragment)
        xm_schema_no_memory(s);
    if (s->failed != XM_OK)
        return NULL;
    fragment += *fragment == '#';
    yyjson_val *found = resource->value;
    if (*fragment == '/') {
        found = follow(found, fragment + 1);
    } else if (*fragment) {
        const struct xm_schema_name *name = find_name(s, resource->uri, fragment);
        found = name ? name->value : NULL;
    }
    if (!yyjson_is_obj(found) && !yyjson_is_bool(found)) {
        xm_schema_fail(s, XM_INVALID, where, "there is no schema '%s'",
                       xm_utf8_shown(xm_slice_of(text, strlen(text))).text);
        return NULL;
    }
    const bool is_pointer =
        resource->value == s->root && text[0] == '#' && text[1] == '/';
    *target_path = is_pointer ? xm_arena_strdup(&s->arena, text + 1) : path_of(s, found);
    if (!*target_path)
        xm_schema_no_memory(s);
    return s->failed == XM_OK ? found : NULL;
}
