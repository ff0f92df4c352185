/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/bert_normalizer.h"

#include <utf8proc.h>

#include "plugin/text/unicode_form.h"
#include "runtime/util/utf8.h"

/* The ranges of Chinese characters. Extension E begins at U+2B820, but as in the reference its
 * first 256 characters are missing here. */
static const struct range {
    int32_t first, last;
} chinese[] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
    {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
};

static bool
is_chinese(int32_t code)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(chinese); i++)
        if (code >= chinese[i].first && code <= chinese[i].last)
            return true;
    return false;
}

/* Returns whether clean_text drops the character: control, format and private-use characters and
 * U+FFFD, but not tabs, LF and CR, which count as white space. */
static bool
is_dropped(int32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r')
        return false;
    const utf8proc_category_t category = utf8proc_category(code);
    return code == XM_UTF8_REPLACEMENT || category == UTF8PROC_CATEGORY_CC ||
           category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

static void
add_cleaned(const struct xm_bert_normalizer *options, struct xm_slice text,
            struct xm_strbuf *out)
{
    int32_t code;
    for (size_t i = 0, n; i < text.n; i += n) {
        n = xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        const bool spaced = options->spaces_chinese && is_chinese(code);
        if (options->clean_text && is_dropped(code))
            continue;
        if (spaced)
            xm_strbuf_add(out, " ");
        if (options->clean_text && xm_utf8_is_space(code))
            xm_strbuf_add(out, " ");
        else
            xm_strbuf_add_n(out, text.text + i, n);
        if (spaced)
            xm_strbuf_add(out, " ");
    }
}

static void
add_folded(const struct xm_bert_normalizer *options, struct xm_slice text,
           struct xm_strbuf *out)
{
    int32_t code;
    for (size_t i = 0, n; i < text.n; i += n) {
        n = xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        if (options->strip_accents && utf8proc_category(code) == UTF8PROC_CATEGORY_MN)
            continue;
        if (options->lowercase)
            xm_unicode_add_lower(code, out);
        else
            xm_strbuf_add_n(out, text.text + i, n);
    }
}

enum xm_status
xm_bert_normalize(const struct xm_bert_normalizer *options, struct xm_slice text,
                  struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf cleaned = {0}, decomposed = {0};
    enum xm_status status = XM_OK;
    add_cleaned(options, text, &cleaned);
    text = xm_slice_of(xm_strbuf_text(&cleaned), cleaned.n);
    if (options->strip_accents) {
        status = xm_unicode_normalize(XM_NFD, text, &decomposed, err);
        text = xm_slice_of(xm_strbuf_text(&decomposed), decomposed.n);
    }
    if (status == XM_OK && !(xm_strbuf_ok(&cleaned) && xm_strbuf_ok(&decomposed)))
        status = xm_no_memory(err, "a normalized text");
    if (status == XM_OK)
        add_folded(options, text, out);
    xm_strbuf_free(&cleaned);
    xm_strbuf_free(&decomposed);
    return status;
}
