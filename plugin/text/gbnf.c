/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads GBNF:
 *
 *     grammar  = rule*
 *     rule     = name "::=" choices, ended by the end of the line
 *     choices  = sequence ("|" sequence)*
 *     sequence = (item suffix?)*
 *     item     = name | "text" | [class] | . | (choices) | <token> | <[id]>
 *     suffix   = * | + | ? | {n} | {n,} | {m,n}
 *
 * Within parentheses a line may end anywhere. Not supported: "!<token>" (all tokens but one).
 */
#include <string.h>

#include "plugin/text/grammar_parts.h"
#include "runtime/util/utf8.h"

struct gbnf {
    struct xm_grammar_tree *t;
    const char *text;
    size_t n, at;
    struct xm_hash_index names; /* indexes t->rules by name */
    struct xm_error *err;
};

/* ---- places ----------------------------------------------------------------------- */

struct place {
    uint32_t line, column; /* both from 1; columns count characters */
};

static struct place
place_of(const struct gbnf *g, size_t at)
{
    struct place p = {1, 1};
    for (size_t i = 0; i < at; i++) {
        if (g->text[i] == '\n')
            p = (struct place){p.line + 1, 1};
        else
            p.column += ((uint8_t)g->text[i] & 0xc0) != 0x80;
    }
    return p;
}

static enum xm_status
fail_at(const struct gbnf *g, size_t at, enum xm_status status, const char *what)
{
    const struct place p = place_of(g, at);
    return xm_fail(g->err, status, "grammar, line %u, column %u: %s", p.line, p.column,
                   what);
}

static enum xm_status
invalid(const struct gbnf *g, const char *what)
{
    return fail_at(g, g->at, XM_INVALID, what);
}

/* ---- characters ------------------------------------------------------------------- */

static char
peek(const struct gbnf *g)
{
    return g->at < g->n ? g->text[g->at] : '\0';
}

static bool
starts_with(const struct gbnf *g, const char *what)
{
    const size_t n = strlen(what);
    return g->n - g->at >= n && memcmp(g->text + g->at, what, n) == 0;
}

/* Skips blanks and comments and, with `lines`, line ends. */
static void
skip_blanks(struct gbnf *g, bool lines)
{
    while (g->at < g->n) {
        const char c = g->text[g->at];
        if (c == '#')
            while (g->at < g->n && g->text[g->at] != '\n' && g->text[g->at] != '\r')
                g->at++;
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            g->at++;
        else
            break;
    }
}

static bool
is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_';
}

static struct xm_slice
read_name(struct gbnf *g)
{
    const size_t from = g->at;
    while (g->at < g->n && is_name(g->text[g->at]))
        g->at++;
    return xm_slice_of(g->text + from, g->at - from);
}

static enum xm_status
read_hex(struct gbnf *g, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, g->at++) {
        const char c = peek(g);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return invalid(g, "expected a hexadecimal digit of an escape");
        *code = *code << 4 | (uint32_t)digit;
    }
    if (*code > XM_CODE_POINT_MOST || (*code >= 0xd800 && *code <= 0xdfff)) {
        g->at -= (size_t)digits;
        return invalid(g, "the escape is not a Unicode character");
    }
    return XM_OK;
}

/* Reads one character of a literal or a class, which may be an escape. */
static enum xm_status
read_character(struct gbnf *g, uint32_t *code)
{
    static const char letters[] = "nrt\\\"[]-^/'";
    static const char means[] = "\n\r\t\\\"[]-^/'";
    if (peek(g) == '\\') {
        g->at++;
        const char c = peek(g);
        const char *letter = c ? strchr(letters, c) : NULL;
        if (letter) {
            *code = (uint8_t)means[letter - letters];
            g->at++;
            return XM_OK;
        }
        if (c != 'x' && c != 'u' && c != 'U')
            return invalid(g,
                           "unknown escape; \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH "
                           "\\UHHHHHHHH are known");
        g->at++;
        return read_hex(g, c == 'x' ? 2 : c == 'u' ? 4 : 8, code);
    }
    int32_t next;
    const size_t n = xm_utf8_next(xm_slice_of(g->text + g->at, g->n - g->at), &next);
    if (next < 0)
        return invalid(g, "the bytes are not UTF-8 text");
    *code = (uint32_t)next;
    g->at += n;
    return XM_OK;
}

/* ---- items ------------------------------------------------------------------------ */

static enum xm_status
read_text(struct gbnf *g, uint32_t *node)
{
    struct xm_strbuf text = {0};
    const size_t start = g->at++;
    enum xm_status s = XM_OK;
    while (s == XM_OK && peek(g) != '"') {
        uint32_t code;
        if (g->at == g->n || peek(g) == '\n')
            s = fail_at(g, start, XM_INVALID, "this text has no closing \"");
        else if ((s = read_character(g, &code)) == XM_OK)
            xm_utf8_add(&text, (int32_t)code);
    }
    g->at++;
    if (s == XM_OK && !xm_strbuf_ok(&text))
        s = xm_no_memory(g->err, "a grammar");
    if (s == XM_OK)
        *node = xm_tree_text(g->t, xm_strbuf_text(&text), text.n);
    xm_strbuf_free(&text);
    return s;
}

static enum xm_status
read_range(struct gbnf *g, size_t start, struct xm_class *c)
{
    uint32_t low, high;
    if (g->at == g->n || peek(g) == '\n')
        return fail_at(g, start, XM_INVALID, "this character class has no closing ]");
    XM_TRY(read_character(g, &low));
    high = low;
    if (peek(g) == '-' && g->at + 1 < g->n && g->text[g->at + 1] != ']') {
        const size_t at = g->at++;
        XM_TRY(read_character(g, &high));
        if (high < low)
            return fail_at(g, at, XM_INVALID,
                           "the end of the range comes before its start");
    }
    xm_class_add(c, low, high);
    return c->failed ? xm_no_memory(g->err, "a grammar") : XM_OK;
}

static enum xm_status
read_class(struct gbnf *g, uint32_t *node)
{
    struct xm_class c = {0};
    const size_t start = g->at++;
    const bool negated = peek(g) == '^';
    enum xm_status s = XM_OK;
    g->at += negated;
    while (s == XM_OK && peek(g) != ']')
        s = read_range(g, start, &c);
    g->at++;
    xm_class_normalise(&c);
    if (negated)
        xm_class_negate(&c);
    if (s == XM_OK && c.n > XM_GRAMMAR_MOST_RANGES)
        s = fail_at(g, start, XM_UNSUPPORTED, "the character class has too many ranges");
    if (s == XM_OK)
        *node = xm_tree_class(g->t, &c, XM_SPELL_PLAIN);
    xm_class_free(&c);
    return s;
}

static enum xm_status
read_number(struct gbnf *g, uint32_t *number)
{
    const size_t start = g->at;
    *number = 0;
    while (peek(g) >= '0' && peek(g) <= '9') {
        if (*number > XM_GRAMMAR_MOST_COUNT / 10 - 1)
            return fail_at(g, start, XM_UNSUPPORTED, "the number is too large");
        *number = *number * 10 + (uint32_t)(peek(g) - '0');
        g->at++;
    }
    return g->at > start ? XM_OK : invalid(g, "expected a number");
}

/* Reads <[id]> or <name>. The spelling of a named token includes the angle brackets. */
static enum xm_status
read_token(struct gbnf *g, uint32_t *node)
{
    const size_t start = g->at++;
    if (peek(g) == '[') {
        uint32_t id;
        g->at++;
        XM_TRY(read_number(g, &id));
        if (!starts_with(g, "]>"))
            return invalid(g, "expected ]> after a token id");
        g->at += 2;
        *node = xm_tree_token(g->t, "", 0, id);
        return XM_OK;
    }
    while (g->at < g->n && peek(g) != '>' && peek(g) != '\n')
        g->at++;
    if (peek(g) != '>' || g->at == start + 1)
        return fail_at(g, start, XM_INVALID, "this token has no name or no closing >");
    g->at++;
    *node = xm_tree_token(g->t, g->text + start, g->at - start, 0);
    return XM_OK;
}

static enum xm_status
find_rule(struct gbnf *g, struct xm_slice name, size_t at, uint32_t *rule)
{
    const uint64_t hash = xm_hash_bytes(XM_HASH_SEED, name.text, name.n);
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&g->names, &p)) {
        const struct xm_tree_rule *r = &g->t->rules[p.item];
        if (xm_slice_equal(name, xm_slice_of(g->t->bytes.text + r->name, r->n))) {
            *rule = p.item;
            return XM_OK;
        }
    }
    *rule = xm_tree_add_rule(g->t, name.text, name.n);
    XM_TRY(xm_tree_check(g->t, g->err));
    g->t->rules[*rule].at = at;
    return xm_hash_add(&g->names, hash, *rule) ? XM_OK
                                               : xm_no_memory(g->err, "a grammar");
}

static enum xm_status read_choices(struct gbnf *g, int depth, uint32_t *node);

static enum xm_status
read_group(struct gbnf *g, int depth, uint32_t *node)
{
    const size_t start = g->at++;
    if (depth >= XM_GRAMMAR_DEPTH)
        return fail_at(g, start, XM_UNSUPPORTED, "groups are nested too deeply");
    XM_TRY(read_choices(g, depth + 1, node));
    if (peek(g) != ')')
        return fail_at(g, start, XM_INVALID, "this group has no closing )");
    g->at++;
    return XM_OK;
}

static enum xm_status
read_item(struct gbnf *g, int depth, uint32_t *node)
{
    const size_t start = g->at;
    struct xm_class any = {0};
    uint32_t rule;
    switch (peek(g)) {
    case '"':
        return read_text(g, node);
    case '[':
        return read_class(g, node);
    case '<':
        return read_token(g, node);
    case '(':
        return read_group(g, depth, node);
    case '!':
        return fail_at(g, start, XM_UNSUPPORTED,
                       "the negation of a token is not supported");
    case '.':
        g->at++;
        xm_class_negate(&any);
        *node = xm_tree_class(g->t, &any, XM_SPELL_PLAIN);
        xm_class_free(&any);
        return XM_OK;
    default:
        break;
    }
    XM_TRY(find_rule(g, read_name(g), start, &rule));
    *node = xm_tree_rule_ref(g->t, rule);
    return XM_OK;
}

static bool
begins_item(const struct gbnf *g)
{
    const char c = peek(g);
    return c && (is_name(c) || strchr("\"[<(!.", c));
}

static enum xm_status
read_braces(struct gbnf *g, uint32_t *least, uint32_t *most)
{
    const size_t start = g->at++;
    skip_blanks(g, false);
    XM_TRY(read_number(g, least));
    *most = *least;
    skip_blanks(g, false);
    if (peek(g) == ',') {
        g->at++;
        skip_blanks(g, false);
        *most = XM_UNBOUNDED;
        if (peek(g) != '}')
            XM_TRY(read_number(g, most));
        skip_blanks(g, false);
    }
    if (peek(g) != '}')
        return fail_at(g, start, XM_INVALID, "this repetition has no closing }");
    g->at++;
    return *most >= *least
               ? XM_OK
               : fail_at(g, start, XM_INVALID,
                         "the upper bound of the repetition is below its lower bound");
}

static enum xm_status
read_suffixes(struct gbnf *g, bool nested, uint32_t *node)
{
    for (int n = 0;; n++) {
        uint32_t least = 0, most = XM_UNBOUNDED;
        skip_blanks(g, nested);
        const char c = peek(g);
        if (!c || !strchr("*+?{", c))
            return XM_OK;
        if (n >= 8)
            return fail_at(g, g->at, XM_UNSUPPORTED, "one item has too many repetitions");
        if (c == '{') {
            XM_TRY(read_braces(g, &least, &most));
        } else {
            least = c == '+';
            most = c == '?' ? 1 : XM_UNBOUNDED;
            g->at++;
        }
        *node = xm_tree_repeat(g->t, *node, least, most);
    }
}

static enum xm_status
read_sequence(struct gbnf *g, int depth, uint32_t *node)
{
    struct xm_nodes items = {0};
    enum xm_status s = XM_OK;
    skip_blanks(g, depth > 0);
    while (s == XM_OK && begins_item(g)) {
        uint32_t item = 0;
        s = read_item(g, depth, &item);
        if (s == XM_OK)
            s = read_suffixes(g, depth > 0, &item);
        if (s == XM_OK)
            s = xm_tree_check(g->t, g->err);
        if (s == XM_OK)
            xm_nodes_add(g->t, &items, item);
    }
    if (s == XM_OK)
        *node = xm_tree_all(g->t, items.list, items.n);
    xm_nodes_free(&items);
    return s;
}

/* Skips a following "|", also if it stands on a later line. Returns whether there was one; else
 * nothing is skipped. */
static bool
takes_bar(struct gbnf *g)
{
    const size_t at = g->at;
    skip_blanks(g, true);
    if (peek(g) == '|') {
        g->at++;
        skip_blanks(g, true);
        return true;
    }
    g->at = at;
    return false;
}

static enum xm_status
read_choices(struct gbnf *g, int depth, uint32_t *node)
{
    struct xm_nodes list = {0};
    enum xm_status s = XM_OK;
    skip_blanks(g, true);
    do {
        uint32_t sequence = 0;
        s = read_sequence(g, depth, &sequence);
        xm_nodes_add(g->t, &list, sequence);
    } while (s == XM_OK && takes_bar(g));
    if (s == XM_OK)
        s = xm_tree_check(g->t, g->err);
    if (s == XM_OK)
        *node = xm_tree_any(g->t, list.list, list.n);
    xm_nodes_free(&list);
    skip_blanks(g, depth > 0);
    return s;
}

/* ---- rules ------------------------------------------------------------------------ */

static enum xm_status
read_rule(struct gbnf *g)
{
    const size_t start = g->at;
    const struct xm_slice name = read_name(g);
    uint32_t rule, node = 0;
    if (name.n == 0)
        return invalid(g, "expected the name of a rule");
    XM_TRY(find_rule(g, name, start, &rule));
    skip_blanks(g, false);
    if (!starts_with(g, "::="))
        return invalid(g, "expected ::= after the name of a rule");
    if (g->t->rules[rule].node != XM_NOWHERE)
        return fail_at(g, start, XM_INVALID, "a rule with this name is defined already");
    g->at += 3;
    XM_TRY(read_choices(g, 0, &node));
    g->t->rules[rule].node = node;
    if (g->at < g->n && peek(g) != '\n' && peek(g) != '\r')
        return invalid(g, "expected the end of the rule");
    return XM_OK;
}

static enum xm_status
read_rules(struct gbnf *g, uint32_t *root)
{
    if (memchr(g->text, '\0', g->n))
        return xm_fail(g->err, XM_INVALID, "grammar: it contains a NUL character");
    for (skip_blanks(g, true); g->at < g->n; skip_blanks(g, true))
        XM_TRY(read_rule(g));
    XM_TRY(xm_tree_check(g->t, g->err));
    for (size_t i = 0; i < g->t->n_rules; i++) {
        const struct xm_tree_rule *r = &g->t->rules[i];
        const struct xm_slice name = {g->t->bytes.text + r->name, r->n};
        const struct place p =
            r->node == XM_NOWHERE ? place_of(g, r->at) : (struct place){0};
        if (r->node == XM_NOWHERE)
            return xm_fail(g->err, XM_INVALID,
                           "grammar, line %u, column %u: there is no rule '%s'", p.line,
                           p.column, xm_utf8_shown(name).text);
        if (xm_slice_equal(name, xm_slice_of("root", 4)))
            *root = (uint32_t)i;
    }
    return *root != XM_NOWHERE ? XM_OK
                               : xm_fail(g->err, XM_INVALID,
                                         "grammar: there is no rule 'root', which must "
                                         "describe the whole text");
}

enum xm_status
xm_grammar_parse(const char *gbnf, size_t n, struct xm_grammar **out,
                 struct xm_error *err)
{
    struct xm_grammar_tree t = {0};
    struct gbnf g = {.t = &t, .text = gbnf, .n = n, .err = err};
    uint32_t root = XM_NOWHERE;
    *out = NULL;
    if (n > XM_GRAMMAR_MOST_BYTES)
        return xm_fail(err, XM_UNSUPPORTED,
                       "grammar: it has %zu bytes, at most %d are supported", n,
                       XM_GRAMMAR_MOST_BYTES);
    enum xm_status s = read_rules(&g, &root);
    if (s == XM_OK)
        s = xm_grammar_compile(&t, root, out, err);
    xm_hash_free(&g.names);
    xm_tree_free(&t);
    return s;
}
