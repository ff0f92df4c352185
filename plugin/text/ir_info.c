/* SPDX-License-Identifier: Apache-2.0
 *
 * The path of open elements is counted, not kept. Document type declarations are refused, so that
 * no entity can be declared, let alone expanded.
 */
#include "plugin/text/ir_info.h"

#include <expat.h>
#include <string.h>

#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"

enum { PIECE_BYTES = 64 * 1024 };

struct scan {
    XML_Parser xml;
    const char *name;
    size_t depth, in_info; /* open elements; those of net / rt_info among them */
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
parse(struct scan *s, const struct xm_mapped_file *f, struct xm_error *err)
{
    enum XML_Status status = XML_STATUS_OK;
    for (uint64_t at = 0; status == XML_STATUS_OK && at < f->n_bytes; at += PIECE_BYTES) {
        const uint64_t left = f->n_bytes - at;
        const int n = left < PIECE_BYTES ? (int)left : PIECE_BYTES;
        status = XML_Parse(s->xml, (const char *)f->bytes + at, n, left <= PIECE_BYTES);
    }
    if (!xm_strbuf_ok(s->out) || XML_GetErrorCode(s->xml) == XML_ERROR_NO_MEMORY)
        return xm_fail(err, XM_NO_MEMORY, "no memory for '%s'", s->name);
    if (s->has_type)
        return xm_fail(err, XM_INVALID, "a document type is not allowed");
    if (s->is_found || status == XML_STATUS_OK)
        return s->is_found ? XM_OK
                           : xm_fail(err, XM_NOT_FOUND, "no '%s' in rt_info", s->name);
    return xm_fail(err, XM_INVALID, "line %lu: %s",
                   (unsigned long)XML_GetCurrentLineNumber(s->xml),
                   XML_ErrorString(XML_GetErrorCode(s->xml)));
}

static enum xm_status
scan_file(struct scan *s, const struct xm_mapped_file *f, struct xm_error *err)
{
    static const XML_Memory_Handling_Suite memory = {xm_malloc, xm_realloc, xm_free};
    s->xml = XML_ParserCreate_MM(NULL, &memory, NULL);
    if (!s->xml)
        return xm_fail(err, XM_NO_MEMORY, "no memory to read XML");
    XML_SetUserData(s->xml, s);
    XML_SetElementHandler(s->xml, on_open, on_close);
    XML_SetStartDoctypeDeclHandler(s->xml, on_doctype);
    const enum xm_status status = parse(s, f, err);
    XML_ParserFree(s->xml);
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
