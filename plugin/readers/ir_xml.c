/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the XML of an IR into records, without building a document tree. One table says where an
 * element may stand and what it means there:
 *
 *     net / layers / layer / data, input / port / dim, output / port / dim
 *     net / edges / edge
 *     net / rt_info / …                     (flattened to properties named "a/b/c")
 *
 * Elements without a row are skipped with their contents. Document type declarations are refused,
 * so that no entity can be declared or expanded.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "runtime/util/compiler.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/xml.h"

enum { DIM_TEXT = 32 };

enum place {
    DOCUMENT,
    NET,
    LAYERS,
    LAYER,
    DATA,
    INPUT,
    OUTPUT,
    PORT,
    DIM,
    EDGES,
    EDGE,
    RT_INFO,
    SKIPPED
};

struct level {
    enum place place;
    size_t path_n; /* length of the property path outside this element */
};

struct reader {
    XML_Parser xml;
    struct xm_ir_net *net;
    struct xm_error *err;
    struct level level[XM_IR_MAX_DEPTH];
    uint32_t depth;            /* number of open elements */
    struct xm_strbuf path;     /* keys of the open rt_info elements, joined by '/' */
    struct xm_ir_layer *layer; /* the open layer */
    struct xm_ir_ports *ports; /* the ports of the open input or output */
    struct xm_ir_port *port;   /* the open port */
    char text[DIM_TEXT];       /* the text of the open dim */
    size_t text_n;             /* its length; DIM_TEXT: too long */
};

XM_PRINTF(3, 4)
static void
refuse(struct reader *r, enum xm_status status, const char *fmt, ...)
{
    va_list ap;
    if (r->err->status != XM_OK)
        return; /* expat may call a few more handlers after XML_StopParser */
    va_start(ap, fmt);
    xm_fail_v(r->err, status, fmt, ap);
    va_end(ap);
    xm_error_prefix(r->err, "line %lu", xm_xml_line(r->xml));
    XML_StopParser(r->xml, XML_FALSE);
}

static void
refuse_memory(struct reader *r)
{
    refuse(r, XM_NO_MEMORY, "out of memory");
}

static void *
record(struct reader *r, size_t bytes)
{
    void *p = xm_arena_alloc(&r->net->arena, bytes);
    if (!p)
        refuse_memory(r);
    return p;
}

static const char *
keep(struct reader *r, const char *s)
{
    const char *copy = s ? xm_arena_strdup(&r->net->arena, s) : NULL;
    if (s && !copy)
        refuse_memory(r);
    return copy;
}

/* Returns the attribute's value; NULL: it is missing. */
static const char *
attribute(const char **attrs, const char *key)
{
    for (; attrs[0]; attrs += 2) {
        if (strcmp(attrs[0], key) == 0)
            return attrs[1];
    }
    return NULL;
}

static const char *
needed(struct reader *r, const char *tag, const char **attrs, const char *key)
{
    const char *value = attribute(attrs, key);
    if (!value)
        refuse(r, XM_INVALID, "<%s> has no attribute '%s'", tag, key);
    return value;
}

static uint64_t
number(struct reader *r, const char *tag, const char **attrs, const char *key)
{
    const char *value = needed(r, tag, attrs, key);
    uint64_t v = 0;
    if (value && !xm_ir_parse_u64(value, &v))
        refuse(r, XM_INVALID, "<%s> has %s=\"%.40s\", expected a number", tag, key,
               value);
    return v;
}

/* ---- what the elements mean ------------------------------------------------------ */

static void
open_net(struct reader *r, const char **attrs)
{
    uint64_t version = number(r, "net", attrs, "version");
    if (r->err->status == XM_OK && version != 10 && version != 11)
        refuse(r, XM_UNSUPPORTED,
               "the file has IR version %" PRIu64 ", expected 10 or 11", version);
    r->net->name = keep(r, attribute(attrs, "name"));
}

static void
open_layer(struct reader *r, const char **attrs)
{
    struct xm_ir_layer *l = record(r, sizeof(*l));
    r->layer = l;
    if (!l)
        return;
    l->id = number(r, "layer", attrs, "id");
    l->name = keep(r, needed(r, "layer", attrs, "name"));
    l->type = keep(r, needed(r, "layer", attrs, "type"));
    l->version = keep(r, attribute(attrs, "version"));
    l->output_names = keep(r, attribute(attrs, "output_names"));
    *(r->net->last_layer ? &r->net->last_layer->next : &r->net->first_layer) = l;
    r->net->last_layer = l;
    r->net->n_layers++;
}

static void
open_data(struct reader *r, const char **attrs)
{
    for (; attrs[0] && r->err->status == XM_OK; attrs += 2) {
        struct xm_ir_text *a = record(r, sizeof(*a));
        if (!a)
            return;
        a->key = keep(r, attrs[0]);
        a->value = keep(r, attrs[1]);
        a->next = r->layer->data;
        r->layer->data = a;
    }
}

static void
open_input(struct reader *r, const char **attrs)
{
    (void)attrs;
    r->ports = &r->layer->in;
}

static void
open_output(struct reader *r, const char **attrs)
{
    (void)attrs;
    r->ports = &r->layer->out;
}

static void
open_port(struct reader *r, const char **attrs)
{
    struct xm_ir_port *p = record(r, sizeof(*p));
    r->port = p;
    if (!p)
        return;
    p->id = number(r, "port", attrs, "id");
    p->precision = keep(r, attribute(attrs, "precision"));
    p->names = keep(r, attribute(attrs, "names"));
    *(r->ports->last ? &r->ports->last->next : &r->ports->first) = p;
    r->ports->last = p;
    if (++r->ports->n > XM_IR_MAX_PORTS)
        refuse(r, XM_UNSUPPORTED, "layer '%.80s' has more than %d ports", r->layer->name,
               (int)XM_IR_MAX_PORTS);
}

static void
open_dim(struct reader *r, const char **attrs)
{
    (void)attrs;
    r->text_n = 0;
}

static void
close_dim(struct reader *r)
{
    struct xm_ir_port *p = r->port;
    if (p->rank == XM_MAX_RANK)
        refuse(r, XM_UNSUPPORTED,
               "port %" PRIu64 " of layer '%.80s' has more than %d dimensions", p->id,
               r->layer->name, (int)XM_MAX_RANK);
    else if (r->text_n == DIM_TEXT ||
             !xm_ir_parse_dim(r->text, r->text_n, &p->dim[p->rank++]))
        refuse(r, XM_INVALID,
               "port %" PRIu64
               " of layer '%.80s' has dimension '%.*s', expected a number",
               p->id, r->layer->name, (int)r->text_n, r->text);
}

static void
open_edge(struct reader *r, const char **attrs)
{
    struct xm_ir_edge *e = record(r, sizeof(*e));
    if (!e)
        return;
    e->from_layer = number(r, "edge", attrs, "from-layer");
    e->from_port = number(r, "edge", attrs, "from-port");
    e->to_layer = number(r, "edge", attrs, "to-layer");
    e->to_port = number(r, "edge", attrs, "to-port");
    *(r->net->last_edge ? &r->net->last_edge->next : &r->net->first_edge) = e;
    r->net->last_edge = e;
}

/* Reads a property <key value="…"/>. A key that is not a valid XML name is written <info name="key"
 * value="…"/>. */
static void
open_property(struct reader *r, const char *tag, const char **attrs)
{
    const char *name = strcmp(tag, "info") == 0 ? attribute(attrs, "name") : NULL;
    const char *value = attribute(attrs, "value");
    xm_strbuf_printf(&r->path, "%s%s", r->path.n ? "/" : "", name ? name : tag);
    if (!xm_strbuf_ok(&r->path)) {
        refuse_memory(r);
        return;
    }
    struct xm_ir_text *p = value ? record(r, sizeof(*p)) : NULL;
    if (!p)
        return;
    p->key = keep(r, xm_strbuf_text(&r->path));
    p->value = keep(r, value);
    *(r->net->last_property ? &r->net->last_property->next : &r->net->first_property) = p;
    r->net->last_property = p;
}

/* clang-format off */
static const struct rule {
    enum place parent;
    const char *tag;
    enum place place;
    /* called at the start tag; NULL: nothing to do */
    void (*open)(struct reader *r, const char **attrs);
} rules[] = {
    { DOCUMENT, "net",     NET,     open_net    },
    { NET,      "layers",  LAYERS,  NULL        },
    { LAYERS,   "layer",   LAYER,   open_layer  },
    { LAYER,    "data",    DATA,    open_data   },
    { LAYER,    "input",   INPUT,   open_input  },
    { INPUT,    "port",    PORT,    open_port   },
    { LAYER,    "output",  OUTPUT,  open_output },
    { OUTPUT,   "port",    PORT,    open_port   },
    { PORT,     "dim",     DIM,     open_dim    },
    { NET,      "edges",   EDGES,   NULL        },
    { EDGES,    "edge",    EDGE,    open_edge   },
    { NET,      "rt_info", RT_INFO, NULL        },
};
/* clang-format on */

static const struct rule *
find_rule(enum place parent, const char *tag)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        if (rules[i].parent == parent && strcmp(rules[i].tag, tag) == 0)
            return &rules[i];
    }
    return NULL;
}

/* ---- expat's handlers ------------------------------------------------------------ */

static enum place
place_of(const struct reader *r)
{
    return r->depth ? r->level[r->depth - 1].place : DOCUMENT;
}

static void XMLCALL
on_open(void *ctx, const XML_Char *tag, const XML_Char **attrs)
{
    struct reader *r = ctx;
    if (r->err->status != XM_OK)
        return;
    if (r->depth == XM_IR_MAX_DEPTH) {
        refuse(r, XM_INVALID, "elements are nested deeper than %d levels",
               (int)XM_IR_MAX_DEPTH);
        return;
    }
    enum place parent = place_of(r);
    const struct rule *rule = find_rule(parent, tag);
    if (parent == DOCUMENT && !rule) {
        refuse(r, XM_INVALID, "the root element is <%.80s>, expected <net>", tag);
        return;
    }
    struct level *level = &r->level[r->depth++];
    level->path_n = r->path.n;
    level->place = rule ? rule->place : parent == RT_INFO ? RT_INFO : SKIPPED;
    if (rule && rule->open)
        rule->open(r, attrs);
    else if (parent == RT_INFO)
        open_property(r, tag, attrs);
}

static void XMLCALL
on_close(void *ctx, const XML_Char *tag)
{
    struct reader *r = ctx;
    (void)tag;
    if (r->err->status != XM_OK)
        return;
    if (place_of(r) == DIM)
        close_dim(r);
    const struct level *level = &r->level[--r->depth];
    if (r->path.n > level->path_n) {
        r->path.n = level->path_n;
        r->path.text[r->path.n] = '\0';
    }
}

static void XMLCALL
on_text(void *ctx, const XML_Char *text, int n)
{
    struct reader *r = ctx;
    if (r->err->status != XM_OK || place_of(r) != DIM || r->text_n == DIM_TEXT)
        return;
    if ((size_t)n >= DIM_TEXT - r->text_n) {
        r->text_n = DIM_TEXT;
        return;
    }
    memcpy(r->text + r->text_n, text, (size_t)n);
    r->text_n += (size_t)n;
}

static void XMLCALL
on_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
           const XML_Char *public, int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    refuse(ctx, XM_INVALID, "the file declares a document type, which IR files never do");
}

/* ---- the whole ------------------------------------------------------------------- */

enum xm_status
xm_ir_parse(const char *xml, size_t n, struct xm_ir_net *net, struct xm_error *err)
{
    struct reader r = {.net = net, .err = err};
    XM_TRY(xm_xml_parser(&r, on_open, on_close, &r.xml, err));
    XML_SetCharacterDataHandler(r.xml, on_text);
    XML_SetStartDoctypeDeclHandler(r.xml, on_doctype);
    enum xm_status status = xm_xml_parse(r.xml, xml, n, err);
    XML_ParserFree(r.xml);
    xm_strbuf_free(&r.path);
    if (status == XM_OK && net->n_layers == 0)
        return xm_fail(err, XM_INVALID, "the file has no layers");
    return status;
}
