/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a list of plugins with expat. A document type is refused, so that no entity can be
 * declared, and sizes are bounded.
 */
#include "plugin/external/plugins_file.h"

#include <string.h>
#include <unistd.h>

#include "runtime/util/folder.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/xml.h"

enum {
    MOST_BYTES = 1 << 20,
    MOST_DEPTH = 32,
    MOST_PLUGINS = 256,
    MOST_PROPERTIES = 256, /* of one plugin */
    MOST_TEXT = 4096
};

enum place { DOCUMENT, ROOT, PLUGINS, PLUGIN, PROPERTIES, PROPERTY, SKIPPED };

struct reader {
    XML_Parser xml;
    struct xm_plugins_file *file;
    struct xm_error *err;
    char *folder;                 /* absolute path of the list's folder */
    enum place place[MOST_DEPTH]; /* of each open element */
    uint32_t depth, n_plugins;
    struct xm_plugin_record *plugin; /* the last one of the list */
};

static void
refuse(struct reader *r, enum xm_status status, const char *sentence)
{
    if (r->err->status != XM_OK)
        return; /* expat may still call handlers after the stop */
    xm_fail(r->err, status, "line %lu: %s", xm_xml_line(r->xml), sentence);
    XML_StopParser(r->xml, XML_FALSE);
}

static void
refuse_memory(struct reader *r)
{
    refuse(r, XM_NO_MEMORY, "out of memory");
}

/* Returns a copy of the attribute's text in the arena; NULL: it was refused. */
static const char *
keep(struct reader *r, const char **attributes, const char *key, const char *missing)
{
    while (attributes[0] && strcmp(attributes[0], key) != 0)
        attributes += 2;
    if (!attributes[0]) {
        refuse(r, XM_INVALID, missing);
        return NULL;
    }
    if (strlen(attributes[1]) > MOST_TEXT) {
        refuse(r, XM_INVALID, "a text is longer than 4096 bytes");
        return NULL;
    }
    const char *copy = xm_arena_strdup(&r->file->arena, attributes[1]);
    if (!copy)
        refuse_memory(r);
    return copy;
}

/* Returns the path for dlopen; see the header. */
static const char *
find_location(struct reader *r, const char *location)
{
    struct xm_strbuf path = {0};
    if (location[0] == '/')
        return location;
    xm_strbuf_printf(&path, "%s/%s", r->folder, location);
    const bool is_beside =
        strchr(location, '/') || access(xm_strbuf_text(&path), F_OK) == 0;
    if (is_beside && xm_strbuf_ok(&path))
        location = xm_arena_strdup(&r->file->arena, xm_strbuf_text(&path));
    if (!location || !xm_strbuf_ok(&path))
        refuse_memory(r);
    xm_strbuf_free(&path);
    return location;
}

static void
open_plugin(struct reader *r, const char **attributes)
{
    const char *name = keep(r, attributes, "name", "<plugin> has no attribute 'name'");
    const char *location =
        name ? keep(r, attributes, "location", "<plugin> has no attribute 'location'")
             : NULL;
    if (!location)
        return;
    if (++r->n_plugins > MOST_PLUGINS) {
        refuse(r, XM_INVALID, "the list has more than 256 plugins");
        return;
    }
    struct xm_plugin_record *p = xm_arena_alloc(&r->file->arena, sizeof(*p));
    if (!p) {
        refuse_memory(r);
        return;
    }
    p->name = name;
    p->location = location[0] ? find_location(r, location) : "";
    *(r->plugin ? &r->plugin->next : &r->file->first) = p;
    r->plugin = p;
}

static void
open_property(struct reader *r, const char **attributes)
{
    struct xm_plugin_record *p = r->plugin;
    const char *key = keep(r, attributes, "key", "<property> has no attribute 'key'");
    const char *value =
        key ? keep(r, attributes, "value", "<property> has no attribute 'value'") : NULL;
    if (!value)
        return;
    if (p->n_properties == MOST_PROPERTIES) {
        refuse(r, XM_INVALID, "a plugin has more than 256 properties");
        return;
    }
    if (!p->properties)
        p->properties =
            xm_arena_alloc(&r->file->arena, MOST_PROPERTIES * sizeof(*p->properties));
    if (p->properties)
        p->properties[p->n_properties++] = (struct xm_property){key, value};
    else
        refuse_memory(r);
}

static const struct rule {
    enum place parent;
    const char *tag;
    enum place place;
    void (*open)(struct reader *r, const char **attributes); /* NULL: nothing to do */
} rules[] = {
    {DOCUMENT, "ie", ROOT, NULL},
    {ROOT, "plugins", PLUGINS, NULL},
    {PLUGINS, "plugin", PLUGIN, open_plugin},
    {PLUGIN, "properties", PROPERTIES, NULL},
    {PROPERTIES, "property", PROPERTY, open_property},
};

static void XMLCALL
on_open(void *ctx, const XML_Char *tag, const XML_Char **attributes)
{
    struct reader *r = ctx;
    if (r->err->status != XM_OK)
        return;
    if (r->depth == MOST_DEPTH) {
        refuse(r, XM_INVALID, "elements are nested deeper than 32 levels");
        return;
    }
    const enum place parent = r->depth ? r->place[r->depth - 1] : DOCUMENT;
    const struct rule *rule = NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(rules) && !rule; i++) {
        if (rules[i].parent == parent && strcmp(rules[i].tag, tag) == 0)
            rule = &rules[i];
    }
    if (parent == DOCUMENT && !rule)
        refuse(r, XM_INVALID, "the root element is not <ie>");
    r->place[r->depth++] = rule ? rule->place : SKIPPED;
    if (rule && rule->open)
        rule->open(r, attributes);
}

static void XMLCALL
on_close(void *ctx, const XML_Char *tag)
{
    struct reader *r = ctx;
    (void)tag;
    if (r->err->status == XM_OK)
        r->depth--;
}

static void XMLCALL
on_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
           const XML_Char *public, int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    refuse(ctx, XM_INVALID,
           "the file declares a document type, which such lists never do");
}

/* Finds the folder that relative locations refer to; the caller frees it with xm_free(). */
static enum xm_status
find_folder(const char *path, char **folder, struct xm_error *err)
{
    XM_TRY(xm_path_absolute(path, folder, err));
    *strrchr(*folder, '/') = '\0';
    return XM_OK;
}

static enum xm_status
parse(struct reader *r, const struct xm_mapped_file *f)
{
    if (f->n_bytes > MOST_BYTES)
        return xm_fail(r->err, XM_INVALID, "it has %llu bytes, at most %d are supported",
                       (unsigned long long)f->n_bytes, MOST_BYTES);
    XM_TRY(xm_xml_parser(r, on_open, on_close, &r->xml, r->err));
    XML_SetStartDoctypeDeclHandler(r->xml, on_doctype);
    enum xm_status s = xm_xml_parse(r->xml, (const char *)f->bytes, f->n_bytes, r->err);
    XML_ParserFree(r->xml);
    return s;
}

static enum xm_status
read_mapped(const char *path, const struct xm_mapped_file *f, struct xm_plugins_file *out,
            struct xm_error *err)
{
    struct reader r = {.file = out, .err = err};
    XM_TRY(find_folder(path, &r.folder, err));
    enum xm_status s = parse(&r, f);
    xm_free(r.folder);
    return s;
}

enum xm_status
xm_plugins_file_read(const char *path, struct xm_plugins_file *out, struct xm_error *err)
{
    struct xm_mapped_file f;
    *out = (struct xm_plugins_file){.first = NULL};
    XM_TRY(xm_mapped_file_open(path, &f, err));
    struct xm_error why = {0};
    enum xm_status s = read_mapped(path, &f, out, &why);
    xm_mapped_file_close(&f);
    return s == XM_OK
               ? XM_OK
               : xm_fail(err, s, "'%.150s' is not a list of plugins: %s", path, why.text);
}

void
xm_plugins_file_free(struct xm_plugins_file *f)
{
    xm_arena_free(&f->arena);
    *f = (struct xm_plugins_file){.first = NULL};
}
