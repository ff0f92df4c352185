/* SPDX-License-Identifier: Apache-2.0
 *
 *     decompose each character  ->  order the marks  ->  compose (NFC, NFKC)
 *
 * utf8proc decomposes and composes. The combining marks are sorted here: utf8proc uses an insertion
 * sort, which takes quadratic time for a hostile run of a million marks; here a run is sorted by
 * counting.
 */
#include "plugin/text/unicode_form.h"

#include <utf8proc.h>

#include "runtime/util/utf8.h"

enum { N_CLASSES = 256 }; /* canonical combining classes; 0: a base character */

/* A list of code points; zero-initialise to use. */
struct codes {
    int32_t *items; /* owned */
    size_t n, capacity;
};

static const struct form {
    utf8proc_option_t decompose; /* options to decompose a character */
    utf8proc_option_t compose;   /* 0: not composed */
    int32_t first_changed;       /* smaller characters do not change in this form */
} forms[] = {
    /* clang-format off */
    [XM_NFC]  = { UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE, 0x300 },
    [XM_NFD]  = { UTF8PROC_DECOMPOSE, 0, 0xc0 },
    [XM_NFKC] = { UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, UTF8PROC_COMPOSE, 0xa0 },
    [XM_NFKD] = { UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0, 0xa0 },
    /* clang-format on */
};

static bool
is_unchanged(const struct form *form, struct xm_slice text)
{
    int32_t code;
    for (size_t i = 0; i < text.n;) {
        i += xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        if (code >= form->first_changed)
            return false;
    }
    return true;
}

static bool
decompose(const struct form *form, struct xm_slice text, struct codes *out)
{
    enum { MOST = 32 }; /* no character decomposes to more than 18 */
    utf8proc_option_t options = form->decompose | UTF8PROC_STABLE;
    int32_t code;
    int boundary = 0; /* grapheme state, unused with these options */
    for (size_t i = 0; i < text.n;) {
        i += xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        int32_t *grown =
            xm_grow(out->items, &out->capacity, out->n + MOST, sizeof(*grown));
        if (!grown)
            return false;
        out->items = grown;
        utf8proc_ssize_t n =
            utf8proc_decompose_char(code, out->items + out->n, MOST, options, &boundary);
        if (n < 0 || n > MOST) { /* a code point that utf8proc does not know is kept */
            out->items[out->n] = code;
            n = 1;
        }
        out->n += (size_t)n;
    }
    return true;
}

static size_t
class_of(int32_t code)
{
    utf8proc_propval_t class = utf8proc_get_property(code)->combining_class;
    return (size_t) class % N_CLASSES;
}

/* Sorts n marks by class, stably, by counting; `scratch` has room for n. */
static void
sort_run(int32_t *marks, size_t n, int32_t *scratch)
{
    size_t at[N_CLASSES] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[class_of(marks[i])]++;
    for (size_t c = 0; c < N_CLASSES; c++) {
        size_t count = at[c];
        at[c] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        scratch[at[class_of(marks[i])]++] = marks[i];
    memcpy(marks, scratch, n * sizeof(*marks));
}

static bool
order_marks(struct codes *codes)
{
    int32_t *scratch = xm_malloc(codes->n * sizeof(*scratch));
    if (!scratch)
        return false;
    for (size_t i = 0; i < codes->n; i++) {
        size_t start = i;
        while (i < codes->n && class_of(codes->items[i]) != 0)
            i++;
        if (i - start > 1)
            sort_run(codes->items + start, i - start, scratch);
    }
    xm_free(scratch);
    return true;
}

enum xm_status
xm_unicode_normalize(enum xm_unicode_form form, struct xm_slice text,
                     struct xm_strbuf *out, struct xm_error *err)
{
    const struct form *f = &forms[form];
    if (is_unchanged(f, text)) {
        xm_strbuf_add_n(out, text.text, text.n);
        return XM_OK;
    }
    struct codes codes = {0};
    bool ok = decompose(f, text, &codes) && order_marks(&codes);
    if (ok && f->compose) {
        utf8proc_ssize_t n = utf8proc_normalize_utf32(
            codes.items, (utf8proc_ssize_t)codes.n, f->compose | UTF8PROC_STABLE);
        codes.n = n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; ok && i < codes.n; i++)
        xm_utf8_add(out, codes.items[i]);
    xm_free(codes.items);
    return ok ? XM_OK
              : xm_fail(err, XM_NO_MEMORY, "out of memory to normalize %zu bytes",
                        text.n);
}

void
xm_unicode_add_lower(int32_t code, struct xm_strbuf *out)
{
    /* the only letter whose lower case is two code points: i and a dot above */
    if (code == 0x130)
        xm_strbuf_add(out, "i\xcc\x87");
    else
        xm_utf8_add(out, xm_utf8_lower(code));
}
