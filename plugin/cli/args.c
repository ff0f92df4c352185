/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/args.h"

#include <math.h>
#include <string.h>

#include "runtime/util/compiler.h"
#include "runtime/util/number.h"

struct parse {
    const struct xm_cli_spec *spec;
    char *const *argv;
    int argc, at;
    char *out;
    bool has_operand;
    struct xm_error *err;
};

static const struct xm_cli_option *
row(const struct xm_cli_spec *s, size_t i)
{
    return i < s->n_common ? &s->common[i] : &s->own[i - s->n_common];
}

static const struct xm_cli_option *
find(const struct xm_cli_spec *s, char letter, const char *name, size_t n)
{
    for (size_t i = 0; i < s->n_common + s->n_own; i++) {
        const struct xm_cli_option *o = row(s, i);
        bool same_name = name && strlen(o->name) == n && memcmp(o->name, name, n) == 0;
        if (same_name || (letter && o->letter == letter))
            return o;
    }
    return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

bool
xm_cli_whole(const char *text, uint64_t *out)
{
    uint64_t n = 0;
    for (const char *p = text; *p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*p < '0' || *p > '9' || n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *out = n;
    return *text != '\0';
}

static bool
real(const char *text, float *out)
{
    char *end = NULL;
    *out = xm_parse_float(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && *out >= 0.0f;
}

static bool
add_text(struct xm_cli_texts *texts, const char *text)
{
    if (texts->n == XM_CLI_MAX_TEXTS)
        return false;
    texts->list[texts->n++] = text;
    return true;
}

static bool
store_whole(enum xm_cli_kind kind, const char *text, char *member)
{
    uint64_t n = 0;
    const bool unlimited = kind == XM_CLI_LIMIT && strcmp(text, "-1") == 0;
    if (unlimited)
        n = UINT64_MAX;
    else if (!xm_cli_whole(text, &n) || (n == 0 && kind != XM_CLI_WHOLE) ||
             (n > XM_CLI_MOST_TOKENS && kind == XM_CLI_LIMIT))
        return false;
    memcpy(member, &n, sizeof(n));
    return true;
}

/* False: the text is no value of this kind. */
static bool
store_value(enum xm_cli_kind kind, const char *text, char *member)
{
    const bool given = true;
    float f = 0.0f;
    switch (kind) {
    case XM_CLI_FLAG:
        memcpy(member, &given, sizeof(given));
        return true;
    case XM_CLI_TEXT:
        memcpy(member, &text, sizeof(text));
        return true;
    case XM_CLI_TEXTS:
        return add_text((struct xm_cli_texts *)(void *)member, text);
    case XM_CLI_COUNT:
    case XM_CLI_WHOLE:
    case XM_CLI_LIMIT:
        return store_whole(kind, text, member);
    case XM_CLI_REAL:
        if (!real(text, &f))
            return false;
        memcpy(member, &f, sizeof(f));
        return true;
    }
    return false;
}

static enum xm_status
store(struct parse *p, const struct xm_cli_option *o, const char *text)
{
    static const char *const expected[] = {
        [XM_CLI_FLAG] = "no value",
        [XM_CLI_TEXT] = "a text",
        [XM_CLI_TEXTS] = "at most 16 texts",
        [XM_CLI_COUNT] = "a whole number from 1",
        [XM_CLI_WHOLE] = "a whole number from 0",
        [XM_CLI_LIMIT] = "a whole number from 1 to 16777216, or -1 for no limit",
        [XM_CLI_REAL] = "a number from 0",
    };
    if (store_value(o->kind, text, p->out + o->offset))
        return XM_OK;
    return xm_fail(p->err, XM_INVALID, "option --%s takes %s, found '%s'", o->name,
                   expected[o->kind], text);
}

/* ---- words ------------------------------------------------------------------------- */

/* `attached` is what follows the option in the same word; NULL: nothing does. */
static enum xm_status
take_value(struct parse *p, const struct xm_cli_option *o, const char *attached)
{
    if (o->kind == XM_CLI_FLAG && attached)
        return xm_fail(p->err, XM_INVALID, "option --%s takes no value, found '%s'",
                       o->name, attached);
    if (o->kind == XM_CLI_FLAG)
        return store(p, o, "");
    if (attached)
        return store(p, o, attached);
    if (p->at + 1 >= p->argc)
        return xm_fail(p->err, XM_INVALID, "option --%s needs a value: %s", o->name,
                       o->value);
    return store(p, o, p->argv[++p->at]);
}

static enum xm_status
take_long(struct parse *p, const char *word)
{
    size_t n = strcspn(word + 2, "=");
    const struct xm_cli_option *o = find(p->spec, 0, word + 2, n);
    if (!o)
        return xm_fail(p->err, XM_INVALID, "there is no option %.*s", (int)(n + 2), word);
    return take_value(p, o, word[2 + n] == '=' ? word + 3 + n : NULL);
}

static enum xm_status
take_short(struct parse *p, const char *word)
{
    const struct xm_cli_option *o = find(p->spec, 0, word + 1, strlen(word + 1));
    if (o && o->letter == 0)
        return take_value(p, o, NULL);
    o = find(p->spec, word[1], NULL, 0);
    if (!o)
        return xm_fail(p->err, XM_INVALID, "there is no option -%c", word[1]);
    return take_value(p, o, word[2] ? word + 2 : NULL);
}

/* By an option of the same member: -m MODEL. */
static bool
is_operand_said(const struct parse *p)
{
    const char *word;
    memcpy(&word, p->out + p->spec->operand_offset, sizeof(word));
    return word != NULL;
}

static enum xm_status
take_operand(struct parse *p, const char *word)
{
    if (!p->spec->operand || p->has_operand)
        return xm_fail(p->err, XM_INVALID, "'%s' is one word too many", word);
    p->has_operand = true;
    memcpy(p->out + p->spec->operand_offset, &word, sizeof(word));
    return XM_OK;
}

/* What people know from llama.cpp's programs, where a command has no option of that name. */
#define OFFLOAD                                                                          \
    "all layers are on the device; --offload says how many percent of the experts are "  \
    "not"
static const struct {
    const char *word, *here;
} of_others[] = {
    {"-ngl", OFFLOAD},
    {"--n-gpu-layers", OFFLOAD},
    {"-fa", "attention is always one kernel"},
    {"--flash-attn", "attention is always one kernel"},
    {"-cnv", "'xemoe chat' holds conversations"},
    {"-sm", "a model runs on one device, -d"},
    {"-t", "kernels take what the device has"},
    {"--threads", "kernels take what the device has"},
    {"-b", "it is --ubatch"},
    {"-ub", "it is --ubatch"},
    {"--batch-size", "it is --ubatch"},
    {"--ubatch-size", "it is --ubatch"},
    {"--ctx-size", "it is --context"},
    {"--n-predict", "it is --tokens"},
};

static enum xm_status
check_of_others(const struct parse *p, const char *word)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(of_others); i++) {
        const char *name = word + strspn(word, "-");
        if (strcmp(word, of_others[i].word) == 0 &&
            !find(p->spec, name[1] ? '\0' : name[0], name, strlen(name)))
            return xm_fail(p->err, XM_INVALID, "there is no option %s: %s", word,
                           of_others[i].here);
    }
    return XM_OK;
}

enum xm_status
xm_cli_parse(const struct xm_cli_spec *spec, int argc, char *const *argv, void *out,
             bool *help, struct xm_error *err)
{
    struct parse p = {.spec = spec, .argv = argv, .argc = argc, .out = out, .err = err};
    bool only_operands = false;
    *help = false;
    for (p.at = 1; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        if (!only_operands && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *help = true;
            return XM_OK;
        }
        if (!only_operands)
            XM_TRY(check_of_others(&p, word));
        if (!only_operands && strcmp(word, "--") == 0)
            only_operands = true;
        else if (!only_operands && strncmp(word, "--", 2) == 0)
            XM_TRY(take_long(&p, word));
        else if (!only_operands && word[0] == '-' && word[1])
            XM_TRY(take_short(&p, word));
        else
            XM_TRY(take_operand(&p, word));
    }
    if (spec->operand && !p.has_operand && !is_operand_said(&p))
        return xm_fail(err, XM_INVALID, "%s is missing", spec->operand);
    return XM_OK;
}

/* ---- help -------------------------------------------------------------------------- */

enum { HELP_COLUMN = 26 };

static void
help_row(const struct xm_cli_option *o, struct xm_strbuf *out)
{
    struct xm_strbuf left = {0};
    if (!o->help)
        return;
    if (o->letter)
        xm_strbuf_printf(&left, "  -%c, --%s", o->letter, o->name);
    else
        xm_strbuf_printf(&left, "      --%s", o->name);
    if (o->value)
        xm_strbuf_printf(&left, " %s", o->value);
    xm_strbuf_printf(out, "%-*s", HELP_COLUMN, xm_strbuf_text(&left));
    if (left.n >= HELP_COLUMN) /* too long: the text goes below */
        xm_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
    for (const char *p = o->help; *p; p++) {
        if (*p == '\n')
            xm_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
        else
            xm_strbuf_add_n(out, p, 1);
    }
    xm_strbuf_add(out, "\n");
    xm_strbuf_free(&left);
}

void
xm_cli_help(const struct xm_cli_spec *spec, struct xm_strbuf *out)
{
    static const struct xm_cli_option help = {'h', "help", XM_CLI_FLAG,
                                              0,   NULL,   "this text"};
    xm_strbuf_printf(out, "usage: %s\n\n%s\n", spec->usage, spec->about);
    for (size_t i = 0; i < spec->n_own; i++)
        help_row(&spec->own[i], out);
    for (size_t i = 0; i < spec->n_common; i++)
        help_row(&spec->common[i], out);
    help_row(&help, out);
}
