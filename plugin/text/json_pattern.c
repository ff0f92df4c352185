/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of the string contents that match a "pattern", an ECMA-262 regular expression.
 *
 * Supported are characters, classes, groups, alternatives, repetitions (also lazy ones), and ^ and
 * $ at the ends of an alternative outside of groups. Without ^ or $, any text may stand before or
 * behind the match. Refused: lookaround, \b, backreferences, \p.
 */
#include <string.h>

#include "plugin/text/grammar_parts.h"
#include "runtime/util/utf8.h"

struct pattern {
    struct xm_grammar_tree *t;
    const char *text;
    size_t n, at;
    enum xm_spelling spelling;
    char without; /* a character that no text may have; '\0': none */
    const char *where;
    struct xm_error *err;
    enum xm_status failed;
};

static uint32_t
fail(struct pattern *p, const char *what)
{
    if (p->failed == XM_OK)
        p->failed = xm_fail(p->err, XM_UNSUPPORTED, "%s: character %zu: %s", p->where,
                            p->at + 1, what);
    return xm_tree_never(p->t);
}

static char
peek(const struct pattern *p)
{
    return p->at < p->n ? p->text[p->at] : '\0';
}

static bool
takes(struct pattern *p, const char *what)
{
    const size_t n = strlen(what);
    if (p->n - p->at < n || memcmp(p->text + p->at, what, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* Returns a node for one character of the class, except p->without. Frees the class, which must be
 * normalised. */
static uint32_t
one_of(struct pattern *p, struct xm_class *c)
{
    if (p->without) {
        xm_class_negate(c);
        xm_class_add(c, (unsigned char)p->without, (unsigned char)p->without);
        xm_class_normalise(c);
        xm_class_negate(c);
    }
    const uint32_t node =
        p->failed == XM_OK ? xm_tree_class(p->t, c, p->spelling) : xm_tree_never(p->t);
    xm_class_free(c);
    return node;
}

static uint32_t
any_text(struct pattern *p)
{
    struct xm_class all = {0};
    uint32_t one;
    xm_class_negate(&all);
    if (p->spelling == XM_SPELL_JSON) {
        one = xm_tree_class(p->t, &all, XM_SPELL_JSON_ANY);
        xm_class_free(&all);
    } else {
        one = one_of(p, &all);
    }
    return xm_tree_repeat(p->t, one, 0, XM_UNBOUNDED);
}

/* ---- characters ------------------------------------------------------------------- */

static void
add_words(struct xm_class *c)
{
    xm_class_add(c, 'a', 'z');
    xm_class_add(c, 'A', 'Z');
    xm_class_add(c, '0', '9');
    xm_class_add(c, '_', '_');
}

static void
add_spaces(struct xm_class *c)
{
    static const struct xm_code_range list[] = {
        {9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
        {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    for (size_t i = 0; i < XM_ARRAY_LEN(list); i++)
        xm_class_add(c, list[i].low, list[i].high);
}

/* Adds the class of \d, \w, \s or their complements. False: it is another escape. */
static bool
add_kind(struct xm_class *c, char letter)
{
    struct xm_class k = {0};
    switch (letter) {
    case 'd':
    case 'D':
        xm_class_add(&k, '0', '9');
        break;
    case 'w':
    case 'W':
        add_words(&k);
        break;
    case 's':
    case 'S':
        add_spaces(&k);
        break;
    default:
        return false;
    }
    xm_class_normalise(&k);
    if (letter < 'a')
        xm_class_negate(&k);
    for (size_t i = 0; i < k.n; i++)
        xm_class_add(c, k.ranges[i].low, k.ranges[i].high);
    c->failed |= k.failed;
    xm_class_free(&k);
    return true;
}

static uint32_t
read_hex(struct pattern *p, size_t least, size_t most)
{
    uint32_t code = 0;
    size_t n = 0;
    for (; n < most; n++, p->at++) {
        const char c = peek(p);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            break;
        code = code << 4 | (uint32_t)digit;
    }
    if (n < least || code > XM_CODE_POINT_MOST || (code >= 0xd800 && code <= 0xdfff))
        fail(p, "the escape is not a Unicode character");
    return code;
}

/* Reads the character of an escape, behind the backslash. */
static uint32_t
read_escape(struct pattern *p, bool in_class)
{
    static const char letters[] = "nrtfv0", means[] = "\n\r\t\f\v\0";
    static const char signs[] = "^$\\.*+?()[]{}|/-\"'#&~!%,:;<=>@`_ ";
    const char c = peek(p);
    const char *letter = c ? strchr(letters, c) : NULL;
    p->at++;
    if (letter && !(c == '0' && peek(p) >= '0' && peek(p) <= '9'))
        return (uint8_t)means[letter - letters];
    if (c && strchr(signs, c))
        return (uint8_t)c;
    if (c == 'b' && in_class)
        return '\b';
    if (c == 'x')
        return read_hex(p, 2, 2);
    if (c == 'u' && takes(p, "{")) {
        const uint32_t code = read_hex(p, 1, 6);
        if (!takes(p, "}"))
            fail(p, "the escape has no closing }");
        return code;
    }
    if (c == 'u')
        return read_hex(p, 4, 4);
    if (c == 'c' && ((peek(p) | 32) >= 'a' && (peek(p) | 32) <= 'z'))
        return (uint32_t)(p->text[p->at++] & 31);
    p->at--;
    fail(p, "this escape is not supported");
    return 0;
}

static uint32_t
read_character(struct pattern *p, bool in_class)
{
    int32_t code;
    if (takes(p, "\\"))
        return read_escape(p, in_class);
    p->at += xm_utf8_next(xm_slice_of(p->text + p->at, p->n - p->at), &code);
    if (code < 0)
        fail(p, "the bytes are not UTF-8 text");
    return code < 0 ? 0 : (uint32_t)code;
}

static uint32_t
read_class(struct pattern *p)
{
    struct xm_class c = {0};
    const bool negated = takes(p, "^");
    while (p->failed == XM_OK && peek(p) != ']') {
        if (p->at >= p->n) {
            fail(p, "a character class has no closing ]");
            break;
        }
        if (peek(p) == '\\' && p->at + 1 < p->n && add_kind(&c, p->text[p->at + 1])) {
            p->at += 2;
            continue;
        }
        const uint32_t low = read_character(p, true);
        uint32_t high = low;
        if (peek(p) == '-' && p->at + 1 < p->n && p->text[p->at + 1] != ']') {
            p->at++;
            if (peek(p) == '\\' && p->at + 1 < p->n &&
                strchr("dDwWsS", p->text[p->at + 1]))
                fail(p, "a range cannot end with a class escape such as \\d");
            high = read_character(p, true);
        }
        if (high < low)
            fail(p, "the end of a range comes before its start");
        xm_class_add(&c, low, high);
    }
    p->at++;
    xm_class_normalise(&c);
    if (negated)
        xm_class_negate(&c);
    return one_of(p, &c);
}

/* ---- structure -------------------------------------------------------------------- */

static uint32_t read_choices(struct pattern *p, int depth);

static uint32_t
read_group(struct pattern *p, int depth)
{
    if (depth >= XM_GRAMMAR_DEPTH)
        return fail(p, "groups are nested too deeply");
    if (takes(p, "?:")) {
    } else if (peek(p) == '?' && p->at + 2 < p->n && p->text[p->at + 1] == '<' &&
               p->text[p->at + 2] != '=' && p->text[p->at + 2] != '!') {
        while (p->at < p->n && peek(p) != '>')
            p->at++;
        p->at++;
    } else if (peek(p) == '?') {
        return fail(p, "lookaround groups are not supported");
    }
    const uint32_t node = read_choices(p, depth + 1);
    if (p->failed == XM_OK && !takes(p, ")"))
        return fail(p, "a group has no closing )");
    return node;
}

static uint32_t
one_character(struct pattern *p, uint32_t code)
{
    struct xm_class c = {0};
    xm_class_add(&c, code, code);
    return one_of(p, &c);
}

static uint32_t
read_item(struct pattern *p, int depth)
{
    struct xm_class c = {0};
    switch (peek(p)) {
    case '(':
        p->at++;
        return read_group(p, depth);
    case '[':
        p->at++;
        return read_class(p);
    case '^':
    case '$':
        return fail(
            p,
            "^ and $ are supported only at the ends of an alternative outside of groups");
    case '*':
    case '+':
    case '?':
    case '{':
        return fail(p, "there is nothing to repeat");
    case '.':
        p->at++;
        xm_class_add(&c, '\n', '\n');
        xm_class_add(&c, '\r', '\r');
        xm_class_add(&c, 0x2028, 0x2029);
        xm_class_normalise(&c);
        xm_class_negate(&c);
        break;
    case '\\':
        if (p->at + 1 < p->n && add_kind(&c, p->text[p->at + 1])) {
            p->at += 2;
            xm_class_normalise(&c);
            break;
        }
        return one_character(p, read_character(p, false));
    default:
        return one_character(p, read_character(p, false));
    }
    return one_of(p, &c);
}

static uint32_t
read_number(struct pattern *p)
{
    uint32_t n = 0;
    const size_t start = p->at;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++)
        n = n < XM_GRAMMAR_MOST_COUNT / 10 ? n * 10 + (uint32_t)(peek(p) - '0')
                                           : XM_GRAMMAR_MOST_COUNT;
    if (p->at == start || n >= XM_GRAMMAR_MOST_COUNT)
        fail(p, "the bounds of a repetition are missing or too large");
    return n;
}

static uint32_t
read_suffix(struct pattern *p, uint32_t node)
{
    uint32_t least = 0, most = XM_UNBOUNDED;
    if (takes(p, "{")) {
        least = most = read_number(p);
        if (takes(p, ","))
            most = peek(p) == '}' ? XM_UNBOUNDED : read_number(p);
        if (!takes(p, "}"))
            fail(p, "a repetition has no closing }");
        if (most < least)
            fail(p, "the upper bound of a repetition is below its lower bound");
    } else if (takes(p, "?")) {
        most = 1;
    } else if (takes(p, "+")) {
        least = 1;
    } else if (!takes(p, "*")) {
        return node;
    }
    (void)takes(p, "?"); /* a lazy repetition matches the same texts */
    if (p->at < p->n && strchr("*+?{", peek(p)))
        fail(p, "a repetition of a repetition is not supported");
    return p->failed == XM_OK ? xm_tree_repeat(p->t, node, least, most)
                              : xm_tree_never(p->t);
}

/* Reads an alternative. Outside of groups, adds any text before it unless it begins with ^, and
 * behind it unless it ends with $. */
static uint32_t
read_sequence(struct pattern *p, int depth)
{
    struct xm_nodes items = {0};
    const bool begins = depth == 0 && takes(p, "^");
    bool ends = false;
    if (depth == 0 && !begins)
        xm_nodes_add(p->t, &items, any_text(p));
    while (p->failed == XM_OK && p->at < p->n && peek(p) != '|' && peek(p) != ')') {
        if (depth == 0 && peek(p) == '$' &&
            (p->at + 1 == p->n || p->text[p->at + 1] == '|')) {
            p->at++;
            ends = true;
            break;
        }
        const uint32_t item = read_item(p, depth);
        xm_nodes_add(p->t, &items, p->failed == XM_OK ? read_suffix(p, item) : item);
        if (p->t->failed != XM_OK)
            break;
    }
    if (depth == 0 && !ends)
        xm_nodes_add(p->t, &items, any_text(p));
    const uint32_t node = xm_tree_all(p->t, items.list, items.n);
    xm_nodes_free(&items);
    return node;
}

static uint32_t
read_choices(struct pattern *p, int depth)
{
    struct xm_nodes list = {0};
    do
        xm_nodes_add(p->t, &list, read_sequence(p, depth));
    while (p->failed == XM_OK && p->t->failed == XM_OK && takes(p, "|"));
    const uint32_t node = xm_tree_any(p->t, list.list, list.n);
    xm_nodes_free(&list);
    return node;
}

uint32_t
xm_tree_pattern(struct xm_grammar_tree *t, struct xm_slice pattern,
                enum xm_spelling spelling, char without, const char *where,
                struct xm_error *err)
{
    struct pattern p = {.t = t,
                        .text = pattern.text,
                        .n = pattern.n,
                        .spelling = spelling,
                        .without = without,
                        .where = where,
                        .err = err};
    const uint32_t node = read_choices(&p, 0);
    if (p.failed == XM_OK && t->failed == XM_OK && p.at < p.n)
        fail(&p, "a ) has no matching (");
    return p.failed == XM_OK ? node : xm_tree_never(t);
}
