/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: parsed into their text in brackets, the only thing that the API returns.
 */
#include <string.h>

#include "plugin/api/api.h"

enum { MAX_NAMES = 64 };

struct ov_layout {
    char *text; /* "[N,C,H,W]" */
};

/* ---- from a text to names ---------------------------------------------------------- */

struct name {
    const char *text;
    size_t n;
};

struct names {
    struct name list[MAX_NAMES];
    size_t n;
};

static bool
is(struct name s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.text, text, s.n) == 0;
}

/* Converts names to capitals, because letter case is ignored; only ASCII, in every locale. */
static void
capitalise(char *text)
{
    for (; *text; text++) {
        if (*text >= 'a' && *text <= 'z')
            *text = (char)(*text - 'a' + 'A');
    }
}

static bool
is_legal(struct name s)
{
    bool is_name = is(s, "?") || is(s, "...");
    for (size_t i = 0; i < s.n && !is_name; i++) {
        const char c = s.text[i];
        if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    for (size_t i = 0; i < s.n && !is_name; i++)
        is_name = s.text[i] != '_';
    return is_name;
}

/* Returns the letter for words such as "BATCH" and "CHANNELS". */
static struct name
short_name(struct name s)
{
    static const char *const same[][2] = {
        {"B", "N"},       {"BATCH", "N"}, {"DEPTH", "D"}, {"CHANNELS", "C"},
        {"CHANNEL", "C"}, {"WIDTH", "W"}, {"HEIGHT", "H"}};
    for (size_t i = 0; i < XM_ARRAY_LEN(same); i++) {
        if (is(s, same[i][0]))
            return (struct name){same[i][1], 1};
    }
    return s;
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct name
trim(struct name s)
{
    for (; s.n > 0 && is_space(s.text[0]); s.n--)
        s.text++;
    while (s.n > 0 && is_space(s.text[s.n - 1]))
        s.n--;
    return s;
}

static enum xm_status
add_name(struct names *l, struct name s, struct xm_error *err)
{
    /* maximum number of bytes shown in an error */
    const int n = s.n < 50 ? (int)s.n : 50;
    if (!is_legal(s))
        return xm_fail(err, XM_INVALID, "layout: '%.*s' is not the name of a dimension",
                       n, s.text);
    s = short_name(s);
    for (size_t i = 0; i < l->n && !is(s, "?"); i++) {
        if (l->list[i].n == s.n && memcmp(l->list[i].text, s.text, s.n) == 0)
            return xm_fail(err, XM_INVALID, "layout: the dimension '%.*s' occurs twice",
                           n, s.text);
    }
    if (l->n == MAX_NAMES)
        return xm_fail(err, XM_INVALID, "layout: it has more than %d dimensions",
                       (int)MAX_NAMES);
    l->list[l->n++] = s;
    return XM_OK;
}

/* Reads "NCHW" or "N...": each letter is a name. */
static enum xm_status
read_letters(struct names *l, struct name s, struct xm_error *err)
{
    for (size_t at = 0, n; at < s.n; at += n) {
        n = s.n - at >= 3 && memcmp(s.text + at, "...", 3) == 0 ? 3 : 1;
        XM_TRY(add_name(l, (struct name){s.text + at, n}, err));
    }
    return XM_OK;
}

/* Reads the contents of brackets, "N, height, ?": names separated by commas; a comma may also end
 * the list. */
static enum xm_status
read_list(struct names *l, const char *text, size_t n, struct xm_error *err)
{
    const char *const end = text + n;
    do {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        XM_TRY(add_name(l, trim((struct name){text, (size_t)(stop - text)}), err));
        text = stop + (comma != NULL);
    } while (text < end);
    return XM_OK;
}

static enum xm_status
read_layout(struct names *l, const char *text, struct xm_error *err)
{
    const struct name all = {text, strlen(text)}, s = trim(all);
    if (all.n == 0) /* an empty layout allows anything */
        return add_name(l, (struct name){"...", 3}, err);
    if (s.n == 0)
        return xm_fail(err, XM_INVALID, "layout: it contains only spaces");
    if (s.text[0] == '[' && s.text[s.n - 1] == ']')
        return read_list(l, s.text + 1, s.n - 2, err);
    return read_letters(l, s, err);
}

static char *
print_names(const struct names *l)
{
    struct xm_strbuf b = {0};
    for (size_t i = 0; i < l->n; i++) {
        xm_strbuf_add(&b, i ? "," : "[");
        xm_strbuf_add_n(&b, l->list[i].text, l->list[i].n);
    }
    xm_strbuf_add(&b, "]");
    return xm_strbuf_take(&b);
}

/* ---- the functions ----------------------------------------------------------------- */

static void
destroy_layout(ov_layout_t *l)
{
    if (l)
        xm_free(l->text);
    xm_free(l);
}

ov_status_e
ov_layout_create(const char *layout_desc, ov_layout_t **layout)
{
    struct xm_error err = {0};
    struct names names = {.n = 0};
    if (!layout_desc || !layout)
        return xm_api_refuse(__func__);
    char *desc = xm_strdup(layout_desc);
    ov_layout_t *l = xm_calloc(1, sizeof(*l));
    if (desc && l) {
        capitalise(desc);
        if (read_layout(&names, desc, &err) == XM_OK)
            l->text = print_names(&names);
    }
    xm_free(desc);
    if ((!l || !l->text) && err.status == XM_OK)
        xm_no_memory(&err, "a layout");
    ov_status_e s =
        err.status == XM_OK ? xm_api_new_handle(l, XM_API_LAYOUT) : xm_api_error(&err);
    if (s == OK)
        *layout = l;
    else
        destroy_layout(l);
    return s;
}

void
ov_layout_free(ov_layout_t *layout)
{
    if (xm_api_handle_drop(layout, XM_API_LAYOUT))
        destroy_layout(layout);
}

const char *
ov_layout_to_string(const ov_layout_t *layout)
{
    return xm_api_is(layout, XM_API_LAYOUT) ? xm_strdup(layout->text) : NULL;
}
