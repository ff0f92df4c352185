/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts the text of a template into tokens.
 *
 *     text {%- name | op ... -%} text {{ ... }} text {# ... #} text
 *
 * White space around tags is removed here. "-" beside a delimiter removes all white space on that
 * side. Otherwise a block or a comment removes the newline behind it (trim_blocks) and the white
 * space before it back to the beginning of the line (lstrip_blocks); "+" beside the delimiter
 * prevents that.
 */
#include "plugin/text/jinja/node.h"

#include "plugin/text/jinja/run_state.h"
#include "runtime/util/utf8.h"

enum { MAX_BRACKETS = 128 };

struct lexer {
    struct xm_slice source;
    size_t pos;
    /* Lines are counted up to byte `counted`; the last of them begins at line_start. */
    size_t counted, line_start;
    uint32_t line;
    bool at_line_start; /* at the template's start, or the last tag removed a line end */
    char brackets[MAX_BRACKETS];
    size_t n_brackets;
    struct xm_jinja_token *tokens;
    size_t n, capacity;
    struct xm_arena *arena;
    struct xm_error *err;
};

static char
char_at(const struct lexer *l, size_t pos)
{
    return pos < l->source.n ? l->source.text[pos] : '\0';
}

static bool
looking_at(const struct lexer *l, size_t pos, const char *what)
{
    size_t n = strlen(what);
    return pos <= l->source.n && l->source.n - pos >= n &&
           memcmp(l->source.text + pos, what, n) == 0;
}

static void
count_lines(struct lexer *l, size_t pos)
{
    for (; l->counted < pos; l->counted++)
        if (l->source.text[l->counted] == '\n') {
            l->line++;
            l->line_start = l->counted + 1;
        }
}

/* Fails with an error at `pos`. If `pos` is before the counted lines (the start of a tag without
 * end), lines are counted again. */
static enum xm_status
fail(struct lexer *l, size_t pos, const char *sentence)
{
    if (pos < l->counted) {
        l->counted = l->line_start = 0;
        l->line = 1;
    }
    count_lines(l, pos);
    return xm_jinja_fail_at(l->err, l->line, (uint32_t)(pos - l->line_start + 1), "%s",
                            sentence);
}

/* Adds a token that begins at `pos`. Tokens are added in order of their positions. */
static enum xm_status
add(struct lexer *l, enum xm_jinja_token_kind kind, size_t pos, struct xm_slice text)
{
    struct xm_jinja_token *grown =
        xm_grow(l->tokens, &l->capacity, l->n + 1, sizeof(*l->tokens));
    if (!grown)
        return xm_no_memory(l->err, "the tokens of a template");
    l->tokens = grown;
    count_lines(l, pos);
    l->tokens[l->n++] =
        (struct xm_jinja_token){kind, l->line, (uint32_t)(pos - l->line_start + 1), text};
    return XM_OK;
}

static size_t
skip_space(const struct lexer *l, size_t pos)
{
    struct xm_slice rest = {l->source.text + pos, l->source.n - pos};
    return l->source.n - xm_jinja_strip(rest, NULL, XM_JINJA_LEFT).n;
}

/* Returns the position of the next "{{", "{%" or "{#" at or behind `pos`; the end of the text:
 * none. */
static size_t
find_tag(const struct lexer *l, size_t pos)
{
    for (; pos < l->source.n; pos++) {
        char next = char_at(l, pos + 1);
        if (char_at(l, pos) == '{' && (next == '{' || next == '%' || next == '#'))
            return pos;
    }
    return pos;
}

/* Returns the text before a block or comment without the white space between the line's start and
 * the tag. */
static struct xm_slice
strip_own_line(const struct lexer *l, struct xm_slice text)
{
    size_t line = text.n;
    while (line > 0 && text.text[line - 1] != '\n')
        line--;
    struct xm_slice last = {text.text + line, text.n - line};
    bool whole_line = line > 0 || l->at_line_start;
    if (whole_line && xm_jinja_strip(last, NULL, XM_JINJA_LEFT).n == 0)
        text.n = line;
    return text;
}

static bool
is_sign(char c)
{
    return c == '-' || c == '+';
}

/* Adds the text up to the tag at `end`. `kind` and `sign`: the two characters behind the tag's
 * "{". */
static enum xm_status
add_text(struct lexer *l, size_t end, char kind, char sign)
{
    struct xm_slice text = {l->source.text + l->pos, end - l->pos};
    if (sign == '-')
        text = xm_jinja_strip(text, NULL, XM_JINJA_RIGHT);
    else if (sign != '+' && kind != '{' && end < l->source.n)
        text = strip_own_line(l, text);
    return text.n > 0 ? add(l, XM_JINJA_TOKEN_TEXT, l->pos, text) : XM_OK;
}

/* Continues behind a closing delimiter that ends at `pos`, skipping white space as `sign` and
 * trims_newline say. */
static void
leave_tag(struct lexer *l, size_t pos, char sign, bool trims_newline)
{
    if (sign == '-')
        pos = skip_space(l, pos);
    else if (trims_newline && sign != '+' && char_at(l, pos) == '\n')
        pos++;
    l->pos = pos;
    l->at_line_start = char_at(l, pos - 1) == '\n';
}

static enum xm_status
lex_comment(struct lexer *l, size_t start, size_t body)
{
    for (size_t pos = body; pos < l->source.n; pos++)
        if (looking_at(l, pos, "#}")) {
            char sign = pos > body ? char_at(l, pos - 1) : '\0';
            leave_tag(l, pos + 2, sign, true);
            return XM_OK;
        }
    return fail(l, start, "this comment is not closed");
}

/* If a "{%" tag with only `name` in it is at `pos`, returns the position of its closing delimiter,
 * else 0. */
static size_t
find_plain_tag(const struct lexer *l, size_t pos, const char *name)
{
    if (!looking_at(l, pos, "{%"))
        return 0;
    pos += 2;
    pos = skip_space(l, is_sign(char_at(l, pos)) ? pos + 1 : pos);
    if (!looking_at(l, pos, name))
        return 0;
    pos = skip_space(l, pos + strlen(name));
    bool sign = is_sign(char_at(l, pos));
    return looking_at(l, sign ? pos + 1 : pos, "%}") ? pos : 0;
}

/* Reads {% raw %} text {% endraw %}; `close` is the position of the first tag's closing
 * delimiter. */
static enum xm_status
lex_raw(struct lexer *l, size_t start, size_t close)
{
    char sign = char_at(l, close);
    leave_tag(l, close + (is_sign(sign) ? 3 : 2), sign, false);
    for (size_t pos = l->pos; pos < l->source.n; pos++) {
        size_t end = find_plain_tag(l, pos, "endraw");
        if (!end)
            continue;
        XM_TRY(add_text(l, pos, '%', char_at(l, pos + 2)));
        sign = char_at(l, end);
        leave_tag(l, end + (is_sign(sign) ? 3 : 2), sign, true);
        return XM_OK;
    }
    return fail(l, start, "this raw block has no {% endraw %}");
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int
digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Returns the position behind a run of digits, which may have single underscores between them. */
static size_t
skip_digits(const struct lexer *l, size_t pos, int base)
{
    while (digit_value(char_at(l, pos)) < base ||
           (char_at(l, pos) == '_' && digit_value(char_at(l, pos + 1)) < base))
        pos++;
    return pos;
}

/* Reads an integer or a float. A float has digits on both sides of the dot, or an exponent. */
static enum xm_status
lex_number(struct lexer *l)
{
    const size_t start = l->pos;
    const char letter = (char)(char_at(l, start + 1) | 32);
    const int base = char_at(l, start) != '0' ? 10
                     : letter == 'x'          ? 16
                     : letter == 'o'          ? 8
                     : letter == 'b'          ? 2
                                              : 10;
    size_t pos = skip_digits(l, base == 10 ? start : start + 2, base);
    enum xm_jinja_token_kind kind = XM_JINJA_TOKEN_INT;
    const bool may_be_float =
        base == 10 && !(l->n > 0 && xm_jinja_is(l->tokens[l->n - 1].text, ".") &&
                        l->tokens[l->n - 1].kind == XM_JINJA_TOKEN_OPERATOR);
    if (may_be_float && char_at(l, pos) == '.' && is_digit(char_at(l, pos + 1))) {
        kind = XM_JINJA_TOKEN_FLOAT;
        pos = skip_digits(l, pos + 1, 10);
    }
    const size_t exponent = pos + 1 + is_sign(char_at(l, pos + 1));
    if (may_be_float && (char_at(l, pos) | 32) == 'e' && is_digit(char_at(l, exponent))) {
        kind = XM_JINJA_TOKEN_FLOAT;
        pos = skip_digits(l, exponent, 10);
    }
    l->pos = pos;
    return add(l, kind, start, xm_slice_of(l->source.text + start, pos - start));
}

/* Reads at most `max` digits of an escape and moves *pos behind them. Returns the code point;
 * U+FFFD: it is not a character. */
static int32_t
read_digits(const struct lexer *l, size_t *pos, int base, int max)
{
    int64_t code = 0;
    for (; max > 0 && digit_value(char_at(l, *pos)) < base; max--)
        code = code * base + digit_value(char_at(l, (*pos)++));
    return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? XM_UTF8_REPLACEMENT
                                                                : (int32_t)code;
}

/* Reads an escape; *pos is behind the backslash. Unknown escapes are kept as they are. */
static enum xm_status
lex_escape(struct lexer *l, size_t *pos, struct xm_strbuf *text)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    static const struct {
        char letter;
        int digits;
    } hex[] = {{'x', 2}, {'u', 4}, {'U', 8}};
    char c = char_at(l, *pos);
    for (size_t i = 0; i + 1 < sizeof(plain); i += 2)
        if (plain[i] == c) {
            xm_strbuf_add_n(text, &plain[i + 1], 1);
            ++*pos;
            return XM_OK;
        }
    for (size_t i = 0; i < XM_ARRAY_LEN(hex); i++)
        if (hex[i].letter == c) {
            size_t end = *pos + 1;
            xm_utf8_add(text, read_digits(l, &end, 16, hex[i].digits));
            if (end - *pos - 1 != (size_t)hex[i].digits)
                return fail(l, *pos - 1, "an escape has too few digits");
            *pos = end;
            return XM_OK;
        }
    if (digit_value(c) < 8)
        xm_utf8_add(text, read_digits(l, pos, 8, 3));
    else if (c == '\n')
        ++*pos;
    else
        xm_strbuf_add(text, "\\");
    return XM_OK;
}

static enum xm_status
lex_string(struct lexer *l)
{
    size_t start = l->pos, pos = start + 1;
    char quote = char_at(l, start);
    struct xm_strbuf text = {0};
    enum xm_status status = XM_OK;
    while (status == XM_OK && pos < l->source.n && char_at(l, pos) != quote) {
        if (char_at(l, pos++) != '\\')
            xm_strbuf_add_n(&text, l->source.text + pos - 1, 1);
        else
            status = lex_escape(l, &pos, &text);
    }
    if (status == XM_OK && pos >= l->source.n)
        status = fail(l, start, "this string is not closed");
    char *copy = NULL;
    if (status == XM_OK && xm_strbuf_ok(&text))
        copy = xm_arena_strndup(l->arena, xm_strbuf_text(&text), text.n);
    if (status == XM_OK && !copy)
        status = xm_no_memory(l->err, "a string of a template");
    size_t n = text.n;
    xm_strbuf_free(&text);
    l->pos = pos + 1;
    return status == XM_OK ? add(l, XM_JINJA_TOKEN_STRING, start, xm_slice_of(copy, n))
                           : status;
}

/* Updates the stack of open brackets, because "}}" and "%}" end a tag only outside of brackets. */
static enum xm_status
match_bracket(struct lexer *l, char c)
{
    static const char pairs[] = "()[]{}";
    const char *p = strchr(pairs, c);
    if (!p)
        return XM_OK;
    if ((p - pairs) % 2 == 0) {
        if (l->n_brackets == MAX_BRACKETS)
            return fail(l, l->pos, "brackets are nested too deeply");
        l->brackets[l->n_brackets++] = p[1];
        return XM_OK;
    }
    if (l->n_brackets == 0 || l->brackets[--l->n_brackets] != c)
        return fail(l, l->pos, "this closing bracket has no matching open bracket");
    return XM_OK;
}

static enum xm_status
lex_operator(struct lexer *l)
{
    static const char *const operators[] = {
        "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
        ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ".", ",", ":", "|"};
    size_t start = l->pos;
    for (size_t i = 0; i < XM_ARRAY_LEN(operators); i++)
        if (looking_at(l, start, operators[i])) {
            XM_TRY(match_bracket(l, operators[i][0]));
            l->pos += strlen(operators[i]);
            return add(l, XM_JINJA_TOKEN_OPERATOR, start,
                       xm_slice_of(operators[i], strlen(operators[i])));
        }
    return fail(l, start, "a character is not valid in the code of a template");
}

/* Returns the bytes of the letter, digit or "_" (of any script) at `pos`; 0: it is another
 * character. */
static size_t
word_bytes(const struct lexer *l, size_t pos)
{
    int32_t code;
    if (pos >= l->source.n)
        return 0;
    const size_t n =
        xm_utf8_next(xm_slice_of(l->source.text + pos, l->source.n - pos), &code);
    return code > 0 && xm_utf8_is_word(code) ? n : 0;
}

static enum xm_status
lex_name(struct lexer *l)
{
    const size_t start = l->pos;
    for (size_t n; (n = word_bytes(l, l->pos)) > 0;)
        l->pos += n;
    return add(l, XM_JINJA_TOKEN_NAME, start,
               xm_slice_of(l->source.text + start, l->pos - start));
}

/* Reads the inside of a tag, up to and including its closing delimiter. */
static enum xm_status
lex_code(struct lexer *l, size_t start, bool is_block)
{
    const char *closer = is_block ? "%}" : "}}";
    for (;;) {
        l->pos = skip_space(l, l->pos);
        char c = char_at(l, l->pos);
        if (l->pos >= l->source.n)
            return fail(l, start, "this tag is not closed");
        bool sign = c == '-' || (c == '+' && is_block);
        if (l->n_brackets == 0 && looking_at(l, l->pos + sign, closer)) {
            XM_TRY(add(l, is_block ? XM_JINJA_TOKEN_BLOCK_END : XM_JINJA_TOKEN_PRINT_END,
                       l->pos, (struct xm_slice){0}));
            leave_tag(l, l->pos + sign + 2, sign ? c : '\0', is_block);
            return XM_OK;
        }
        if (is_digit(c))
            XM_TRY(lex_number(l));
        else if (word_bytes(l, l->pos))
            XM_TRY(lex_name(l));
        else if (c == '\'' || c == '"')
            XM_TRY(lex_string(l));
        else
            XM_TRY(lex_operator(l));
    }
}

static enum xm_status
lex_tag(struct lexer *l, size_t start)
{
    char kind = char_at(l, start + 1), sign = char_at(l, start + 2);
    XM_TRY(add_text(l, start, kind, sign));
    l->pos = start + 2 + is_sign(sign);
    if (kind == '#')
        return lex_comment(l, start, l->pos);
    size_t raw = kind == '%' ? find_plain_tag(l, start, "raw") : 0;
    if (raw)
        return lex_raw(l, start, raw);
    XM_TRY(add(l, kind == '%' ? XM_JINJA_TOKEN_BLOCK_BEGIN : XM_JINJA_TOKEN_PRINT_BEGIN,
               start, (struct xm_slice){0}));
    return lex_code(l, start, kind == '%');
}

enum xm_status
xm_jinja_lex(struct xm_slice source, struct xm_arena *arena,
             struct xm_jinja_token **tokens, struct xm_error *err)
{
    struct lexer l = {
        .source = source, .line = 1, .at_line_start = true, .arena = arena, .err = err};
    enum xm_status status = XM_OK;
    while (status == XM_OK && l.pos < source.n) {
        size_t tag = find_tag(&l, l.pos);
        if (tag < source.n) {
            status = lex_tag(&l, tag);
        } else {
            status = add_text(&l, tag, '\0', '\0');
            l.pos = tag;
        }
    }
    if (status == XM_OK)
        status = add(&l, XM_JINJA_TOKEN_END, source.n, (struct xm_slice){0});
    if (status != XM_OK)
        xm_free(l.tokens);
    *tokens = status == XM_OK ? l.tokens : NULL;
    return status;
}
