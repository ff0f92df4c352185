/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/xml.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/util/memory.h"

enum { PIECE_BYTES = 64 * 1024 }; /* Expat takes lengths as int   */

enum xm_status
xm_xml_parser(void *ctx, XML_StartElementHandler on_open, XML_EndElementHandler on_close,
              XML_Parser *out, struct xm_error *err)
{
    static const XML_Memory_Handling_Suite memory = {xm_malloc, xm_realloc, xm_free};
    *out = XML_ParserCreate_MM(NULL, &memory, NULL);
    if (!*out)
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    XML_SetUserData(*out, ctx);
    XML_SetElementHandler(*out, on_open, on_close);
    return XM_OK;
}

/* Expat 2.9 has the same functions by other names. */
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
#define LINE   XML_GetCurrentLineNumber64
#define COLUMN XML_GetCurrentColumnNumber64
#else
#define LINE   XML_GetCurrentLineNumber
#define COLUMN XML_GetCurrentColumnNumber
#endif

unsigned long
xm_xml_line(XML_Parser p)
{
    return (unsigned long)LINE(p);
}

static enum xm_status
fail(XML_Parser p, struct xm_error *err)
{
    const enum XML_Error code = XML_GetErrorCode(p);
    if (code == XML_ERROR_ABORTED || err->status != XM_OK)
        return err->status;
    if (code == XML_ERROR_NO_MEMORY)
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    return xm_fail(err, XM_INVALID, "line %lu, column %lu: not valid XML: %s",
                   xm_xml_line(p), (unsigned long)COLUMN(p), XML_ErrorString(code));
}

/* Length of leading blanks, which are skipped: texts in programs' sources may begin with a line
 * break, but Expat wants the declaration to be first. */
static size_t
leading_blanks(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
        at++;
    return n - at >= 2 && memcmp(text + at, "<?", 2) == 0 ? at : 0;
}

enum xm_status
xm_xml_parse(XML_Parser p, const char *text, size_t n, struct xm_error *err)
{
    bool last = false;
    for (size_t at = leading_blanks(text, n); !last;) {
        const size_t piece = n - at < PIECE_BYTES ? n - at : PIECE_BYTES;
        last = at + piece == n;
        if (XML_Parse(p, text + at, (int)piece, last) != XML_STATUS_OK)
            return fail(p, err);
        at += piece;
    }
    return err->status;
}
