/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates Oniguruma's Ruby syntax to PCRE2's.
 *
 *     \s  [\s…]  ->  \p{White_Space}     PCRE2's own adds U+180E, which is no white space
 *     \w  [\w…]  ->  Unicode word        PCRE2's own leaves out marks and connectors
 *     \b  \B     ->  between \w and not  of the same \w
 *     \h         ->  a hexadecimal digit
 *     \uHHHH     ->  \x{HHHH}
 *     {,n}       ->  {0,n}
 *     [:alpha:]  ->  \p{Alphabetic}      PCRE2's own is \p{L}
 *     \p{Han}    ->  \p{sc:Han}          PCRE2's own also takes shared punctuation
 *     [a[^b]]    ->  (?:[a]|[^b])        a class in a class is a part of a union, as is [\W]
 *     [a&&b]     ->  (?:(?=[a])[b])      the characters of all operands
 *     [^a&&b]    ->  (?:(?!(?=[a])[b])(?s:.))
 *
 * Other escapes have no equivalent in PCRE2 and are refused. `^` and `$` match at line ends in
 * Ruby; that is a compile option, set in regex.c.
 */
#include "plugin/text/regex.h"

/* Oniguruma's \w, as measured: Alphabetic, marks, digits, connectors, and the numbers of
 * Latin-1. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define HEX  "0-9A-Fa-f"

static const struct escape {
    char letter;
    const char *outside; /* translation outside of a class [ ] */
    /* inside a class; NULL: nest `outside` if it is a class, else refuse */
    const char *inside;
} escapes[] = {
    /* clang-format off */
    { 's', "\\p{White_Space}", "\\p{White_Space}" },
    { 'S', "\\P{White_Space}", "\\P{White_Space}" },
    { 'b', "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))", "\\b" },
    { 'B', "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", NULL  },
    { 'w', "[" WORD "]",       WORD               },
    { 'W', "[^" WORD "]",      NULL               },
    { 'h', "[" HEX "]",        HEX                },
    { 'H', "[^" HEX "]",       NULL               },
    { 'v', "\\x0b",            "\\x0b"            },
    { 'd', "\\d", "\\d" }, { 'D', "\\D", "\\D" }, { 'n', "\\n", "\\n" },
    { 'r', "\\r", "\\r" }, { 't', "\\t", "\\t" }, { 'f', "\\f", "\\f" },
    { 'a', "\\a", "\\a" }, { 'e', "\\e", "\\e" }, { 'x', "\\x", "\\x" },
    { 'A', "\\A", NULL  }, { 'z', "\\z", NULL  }, { 'Z', "\\Z", NULL  },
    { 'G', "\\G", NULL  }, { 'K', "\\K", NULL  }, { 'R', "\\R", NULL  },
    { 'X', "\\X", NULL  },
    /* clang-format on */
};

enum { MAX_CLASS_DEPTH = 16 };

/* A class that is being read. Its operands, joined by &&, consist of characters and nested
 * classes. */
struct char_class {
    struct xm_strbuf all;   /* a lookahead for each complete operand */
    struct xm_strbuf plain; /* the current operand's characters, the contents of a [ ] */
    /* the current operand's nested classes, each with a | before it */
    struct xm_strbuf nested;
    size_t n_operands; /* complete operands */
};

struct reader {
    struct xm_slice pattern;
    size_t at;                   /* index of the next byte */
    struct char_class *in_class; /* innermost open class; NULL: none */
    int depth;                   /* nesting depth of classes */
};

static char
byte_at(const struct reader *r, size_t i)
{
    return i < r->pattern.n ? r->pattern.text[i] : '\0';
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static enum xm_status
translate_code_point(struct reader *r, struct xm_strbuf *out, struct xm_error *err)
{
    for (size_t i = 1; i <= 4; i++)
        if (!is_hex(byte_at(r, r->at + i)))
            return xm_fail(err, XM_INVALID, "\\u at byte %zu needs 4 hexadecimal digits",
                           r->at);
    xm_strbuf_printf(out, "\\x{%.4s}", r->pattern.text + r->at + 1);
    r->at += 5;
    return XM_OK;
}

/* Properties that are not scripts, although their names are longer than those of categories. */
static const char *const binary_properties[] = {
    "Any",          "Alphabetic", "Uppercase",   "Lowercase",
    "White_Space",  "Emoji",      "Ideographic", "Extended_Pictographic",
    "Join_Control",
};

/* Translates \p{Name} or \P{^Name}; r->at is at the p. Unknown names are copied, so that PCRE2
 * reports them. */
static void
translate_property(struct reader *r, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "\\%c", byte_at(r, r->at++));
    if (byte_at(r, r->at) != '{')
        return;
    xm_strbuf_add_n(out, r->pattern.text + r->at++, 1);
    if (byte_at(r, r->at) == '^')
        xm_strbuf_add_n(out, r->pattern.text + r->at++, 1);
    size_t start = r->at;
    while (is_letter(byte_at(r, r->at)) || byte_at(r, r->at) == '_')
        r->at++;
    struct xm_slice name = xm_slice_of(r->pattern.text + start, r->at - start);
    bool is_script = name.n > 2 && byte_at(r, r->at) == '}';
    for (size_t i = 0; i < XM_ARRAY_LEN(binary_properties); i++) {
        const char *other = binary_properties[i];
        if (xm_slice_equal(name, xm_slice_of(other, strlen(other))))
            is_script = false;
    }
    if (is_script)
        xm_strbuf_add(out, "sc:");
    xm_strbuf_add_n(out, name.text, name.n);
}

/* Translates an escape; r->at is behind the backslash. */
static enum xm_status
translate_escape(struct reader *r, struct xm_strbuf *out, struct xm_error *err)
{
    char c = byte_at(r, r->at);
    if (r->at >= r->pattern.n)
        return xm_fail(err, XM_INVALID, "a backslash ends the pattern");
    if (c == 'u')
        return translate_code_point(r, out, err);
    if (c == 'p' || c == 'P') {
        translate_property(r, out);
        return XM_OK;
    }
    if (!is_letter(c)) {
        xm_strbuf_add_n(out, "\\", 1);
        xm_strbuf_add_n(out, &c, 1);
        r->at++;
        return XM_OK;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(escapes); i++) {
        const struct escape *e = &escapes[i];
        const char *text = r->in_class ? e->inside : e->outside;
        if (e->letter != c)
            continue;
        if (text)
            xm_strbuf_add(out, text);
        else if (e->outside[0] == '[')
            xm_strbuf_printf(&r->in_class->nested, "|%s", e->outside);
        else
            break;
        r->at++;
        return XM_OK;
    }
    return xm_fail(err, XM_UNSUPPORTED, "\\%c%s at byte %zu has no equivalent in PCRE2",
                   c, r->in_class ? " in a class" : "", r->at - 1);
}

/* Translates [:alpha:] and other POSIX classes; r->at is at the inner [. Names that are not in the
 * table mean the same in both syntaxes; PCRE2 reports an unknown name or a missing end. */
static void
translate_posix_class(struct reader *r, struct xm_strbuf *out)
{
    static const struct {
        const char *name, *inside;
    } names[] = {
        {"[:alpha:]", "\\p{Alphabetic}"},
        {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"},
        {"[:space:]", "\\p{White_Space}"},
        {"[:word:]", WORD},
    };
    size_t end = r->at + 2;
    while (end < r->pattern.n && byte_at(r, end) != ']')
        end++;
    end += end < r->pattern.n;
    struct xm_slice text = xm_slice_of(r->pattern.text + r->at, end - r->at);
    r->at = end;
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++)
        if (xm_slice_equal(text, xm_slice_of(names[i].name, strlen(names[i].name)))) {
            xm_strbuf_add(out, names[i].inside);
            return;
        }
    xm_strbuf_add_n(out, text.text, text.n);
}

static void
free_class(struct char_class *c)
{
    xm_strbuf_free(&c->all);
    xm_strbuf_free(&c->plain);
    xm_strbuf_free(&c->nested);
}

/* Appends an expression that matches one character of the operand, and begins the next operand. */
static void
end_operand(struct char_class *c, struct xm_strbuf *out)
{
    if (c->nested.n > 0) {
        xm_strbuf_add(out, "(?:");
        if (c->plain.n > 0)
            xm_strbuf_printf(out, "[%s]|", xm_strbuf_text(&c->plain));
        xm_strbuf_printf(out, "%s)", xm_strbuf_text(&c->nested) + 1);
    } else if (c->plain.n > 0) {
        xm_strbuf_printf(out, "[%s]", xm_strbuf_text(&c->plain));
    } else {
        xm_strbuf_add(out, "(?!)"); /* an empty operand matches no character */
    }
    xm_strbuf_clear(&c->plain);
    xm_strbuf_clear(&c->nested);
    c->n_operands++;
}

/* Appends the translated class; c's current operand is the last one. */
static void
end_class(struct char_class *c, bool negated, struct xm_strbuf *out)
{
    if (c->n_operands == 0 && c->nested.n == 0) {
        xm_strbuf_printf(out, "[%s%s]", negated ? "^" : "", xm_strbuf_text(&c->plain));
        return;
    }
    xm_strbuf_add(out, negated ? "(?:(?!" : "(?:");
    xm_strbuf_add(out, xm_strbuf_text(&c->all));
    end_operand(c, out);
    xm_strbuf_add(out, negated ? ")(?s:.))" : ")");
}

static enum xm_status translate_class(struct reader *r, struct xm_strbuf *out,
                                      struct xm_error *err);

/* Translates the next element of a class: a character, an escape, a nested class or &&. */
static enum xm_status
translate_in_class(struct reader *r, struct char_class *c, struct xm_error *err)
{
    const char byte = byte_at(r, r->at), next = byte_at(r, r->at + 1);
    if (byte == '\\') {
        r->at++;
        return translate_escape(r, &c->plain, err);
    }
    if (byte == '[' && next == ':') {
        translate_posix_class(r, &c->plain);
        return XM_OK;
    }
    if (byte == '[') {
        xm_strbuf_add(&c->nested, "|");
        return translate_class(r, &c->nested, err);
    }
    if (byte == '&' && next == '&') {
        r->at += 2;
        xm_strbuf_add(&c->all, "(?=");
        end_operand(c, &c->all);
        xm_strbuf_add(&c->all, ")");
        return XM_OK;
    }
    xm_strbuf_add(&c->plain, byte == '^' ? "\\" : "");
    xm_strbuf_add_n(&c->plain, &byte, 1);
    r->at++;
    return XM_OK;
}

static enum xm_status
translate_operands(struct reader *r, struct char_class *c, struct xm_error *err)
{
    const size_t first = r->at; /* a ] at this place is a plain character */
    while (byte_at(r, r->at) != ']' || r->at == first) {
        if (r->at >= r->pattern.n)
            return xm_fail(err, XM_INVALID,
                           "the character class before byte %zu is not closed", first);
        XM_TRY(translate_in_class(r, c, err));
    }
    if (!xm_strbuf_ok(&c->all) || !xm_strbuf_ok(&c->plain) || !xm_strbuf_ok(&c->nested))
        return xm_no_memory(err, "a class of characters");
    r->at++;
    return XM_OK;
}

/* Translates a class; r->at is at its [. */
static enum xm_status
translate_class(struct reader *r, struct xm_strbuf *out, struct xm_error *err)
{
    struct char_class *around = r->in_class, c = {0};
    if (++r->depth > MAX_CLASS_DEPTH)
        return xm_fail(err, XM_UNSUPPORTED,
                       "character classes are nested deeper than %d levels at byte %zu",
                       r->depth, r->at);
    r->at++;
    const bool negated = byte_at(r, r->at) == '^';
    r->at += negated;
    r->in_class = &c;
    const enum xm_status s = translate_operands(r, &c, err);
    if (s == XM_OK)
        end_class(&c, negated, out);
    r->in_class = around;
    r->depth--;
    free_class(&c);
    return s;
}

static void
translate_plain(struct reader *r, struct xm_strbuf *out)
{
    char c = byte_at(r, r->at++);
    xm_strbuf_add_n(out, &c, 1);
    char after = byte_at(r, r->at + 1);
    if (c == '{' && byte_at(r, r->at) == ',' && after >= '0' && after <= '9')
        xm_strbuf_add(out, "0");
}

enum xm_status
xm_regex_translate(struct xm_slice pattern, struct xm_strbuf *out, struct xm_error *err)
{
    struct reader r = {.pattern = pattern};
    while (r.at < pattern.n) {
        if (byte_at(&r, r.at) == '\\') {
            r.at++;
            XM_TRY(translate_escape(&r, out, err));
        } else if (byte_at(&r, r.at) == '[') {
            XM_TRY(translate_class(&r, out, err));
        } else {
            translate_plain(&r, out);
        }
    }
    if (!xm_strbuf_ok(out))
        return xm_no_memory(err, "a pattern of %zu bytes", pattern.n);
    return XM_OK;
}
