/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader counts open elements instead of keeping their path. Document type declarations are
 * refused, so that no entity can be declared or expanded.
 */
#include "plugin/text/ir_info.h"

#include <string.h>

#include "runtime/util/mapped_file.h"
#include "runtime/util/xml.h"

struct scan {
    XML_Parser xml;
    const char *name;
    /* open elements; of these, the ones that match net / rt_info */
    size_t depth, in_info;
    struct xm_strbuf *out;
    bool is_found, has_type;
};

static const char *
value_of(const XML_Char **attributes)
{
    for (; attributes[0]; attributes += 2)
        if (strcmp(attributes[0], "value") == 0)
            return attributes[1];
    return NULL;
}

static void
on_open(void *ctx, const XML_Char *tag, const XML_Char **attributes)
{
    struct scan *s = ctx;
    const char *value = value_of(attributes);
    const bool is_info = s->depth == 1 && strcmp(tag, "rt_info") == 0;
    if (s->in_info == 1 && value && strcmp(tag, s->name) == 0) {
        xm_strbuf_add(s->out, value);
        s->is_found = true;
        XML_StopParser(s->xml, XML_FALSE);
    }
    s->in_info += s->in_info || is_info;
    s->depth++;
}

static void
on_close(void *ctx, const XML_Char *tag)
{
    struct scan *s = ctx;
    (void)tag;
    s->in_info -= s->in_info > 0;
    s->depth--;
}

static void
on_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
           const XML_Char *public, int has_subset)
{
    struct scan *s = ctx;
    (void)name, (void)system, (void)public, (void)has_subset;
    s->has_type = true;
    XML_StopParser(s->xml, XML_FALSE);
}

static enum xm_status
scan_file(struct scan *s, const struct xm_mapped_file *f, struct xm_error *err)
{
    XM_TRY(xm_xml_parser(s, on_open, on_close, &s->xml, err));
    XML_SetStartDoctypeDeclHandler(s->xml, on_doctype);
    enum xm_status status = xm_xml_parse(s->xml, (const char *)f->bytes, f->n_bytes, err);
    XML_ParserFree(s->xml);
    if (status == XM_OK && !xm_strbuf_ok(s->out))
        return xm_no_memory(err, "'%s'", s->name);
    if (status == XM_OK && s->has_type)
        return xm_fail(err, XM_INVALID, "a document type declaration is not allowed");
    if (status == XM_OK && !s->is_found)
        return xm_fail(err, XM_NOT_FOUND, "rt_info has no '%s'", s->name);
    return status;
}

enum xm_status
xm_ir_info_read(const char *path, const char *name, struct xm_strbuf *out,
                struct xm_error *err)
{
    struct scan s = {.name = name, .out = out};
    struct xm_mapped_file file;
    struct xm_error why = {0};
    XM_TRY(xm_mapped_file_open(path, &file, err));
    const enum xm_status status = scan_file(&s, &file, &why);
    xm_mapped_file_close(&file);
    if (status == XM_OK)
        return XM_OK;
    return xm_fail(err, status, "'%s': %s", path, why.text);
}
