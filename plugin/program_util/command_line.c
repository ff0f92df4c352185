/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/command_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/program_util/suggest.h"
#include "runtime/util/compiler.h"
#include "runtime/util/element.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

struct parse {
    const struct xm_cli_spec *spec;
    char *const *argv;
    int argc, at;
    /* the option as the user wrote it, n_given characters: -n, --tokens */
    const char *given;
    int n_given;
    char *out;
    bool has_operand, wants_help;
    struct xm_error *err;
};

static const struct xm_cli_option *
row(const struct xm_cli_spec *s, size_t i)
{
    return i < s->n_common ? &s->common[i] : &s->own[i - s->n_common];
}

static bool
is_name(const char *name, const char *word, size_t n)
{
    return name && strlen(name) == n && memcmp(name, word, n) == 0;
}

bool
xm_cli_next_alias(const char **at, char word[XM_CLI_SPELLING])
{
    const char *name = *at ? *at + strspn(*at, " ") : "";
    const int n = (int)strcspn(name, " ");
    *at = name + n;
    snprintf(word, XM_CLI_SPELLING, "%s%.*s", *name == '-' ? "" : "--", n, name);
    return n > 0;
}

/* Whether the name is one of the option's aliases, with one dash or two. */
static bool
is_alias(const struct xm_cli_option *o, const char *name, size_t n)
{
    const char *at = o->aliases;
    char word[XM_CLI_SPELLING];
    while (xm_cli_next_alias(&at, word)) {
        if (is_name(word + strspn(word, "-"), name, n))
            return true;
    }
    return false;
}

static const struct xm_cli_option *
find_option(const struct xm_cli_spec *s, char letter, const char *name, size_t n)
{
    for (size_t i = 0; i < s->n_common + s->n_own; i++) {
        const struct xm_cli_option *o = row(s, i);
        const bool same = name && (is_name(o->name, name, n) || is_alias(o, name, n));
        if (same || (letter && o->letter == letter))
            return o;
    }
    return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

static bool
real(const char *text, double *out)
{
    char *end = NULL;
    *out = xm_parse_double(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && *out >= 0.0;
}

static bool
read_switch(const char *text, enum xm_cli_switch *out)
{
    static const struct {
        const char *text;
        enum xm_cli_switch value;
    } words[] = {{"true", XM_SWITCH_ON}, {"false", XM_SWITCH_OFF}, {"yes", XM_SWITCH_ON},
                 {"no", XM_SWITCH_OFF},  {"1", XM_SWITCH_ON},      {"0", XM_SWITCH_OFF},
                 {"on", XM_SWITCH_ON},   {"off", XM_SWITCH_OFF}};
    for (size_t i = 0; i < XM_ARRAY_LEN(words); i++) {
        if (xm_same_but_case(text, words[i].text)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
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
    else if (!xm_parse_whole(text, &n) ||
             (n == 0 && (kind == XM_CLI_COUNT || kind == XM_CLI_LIMIT)) ||
             (n > XM_CLI_MOST_TOKENS && kind == XM_CLI_LIMIT) ||
             (n == UINT64_MAX && kind == XM_CLI_BOUND))
        return false;
    if (n == 0 && kind == XM_CLI_BOUND)
        n = UINT64_MAX;
    memcpy(member, &n, sizeof(n));
    return true;
}

/* Returns the limit of an option's kind if the text is a number beyond it; "" otherwise. */
static const char *
limit_of(const struct xm_cli_option *o, const char *text)
{
    double x;
    uint64_t n;
    const bool is_whole = text[0] && text[strspn(text, "0123456789")] == '\0';
    if (o->kind == XM_CLI_REAL)
        return real(text, &x) && !isfinite((float)x) ? " to 3.4e38" : "";
    if ((o->kind == XM_CLI_COUNT || o->kind == XM_CLI_WHOLE) && is_whole)
        return xm_parse_whole(text, &n) ? "" : " below 2^64";
    return o->kind == XM_CLI_BOUND && is_whole ? " below 2^64 - 1" : "";
}

static bool
store_real(enum xm_cli_kind kind, const char *text, char *member)
{
    double x = 0.0;
    if (!real(text, &x))
        return false;
    const float f = (float)x;
    if (kind == XM_CLI_RATE)
        memcpy(member, &x, sizeof(x));
    else
        memcpy(member, &f, sizeof(f));
    return kind == XM_CLI_RATE || isfinite(f);
}

/* Stores a value of the option's kind. Returns false if the text is not such a value. */
static bool
store_value(const struct xm_cli_option *o, const char *text, char *member)
{
    const bool given = true;
    enum xm_cli_switch on;
    switch (o->kind) {
    case XM_CLI_FLAG:
        memcpy(member, &given, sizeof(given));
        return true;
    case XM_CLI_SWITCH:
        if (!read_switch(text, &on))
            return false;
        memcpy(member, &on, sizeof(on));
        return true;
    case XM_CLI_SAID:
        text = text[0] ? text : NULL;
        memcpy(member, &text, sizeof(text));
        return true;
    case XM_CLI_TEXT:
    case XM_CLI_WORD:
    case XM_CLI_CHOICE:
        if (o->kind == XM_CLI_CHOICE && !xm_list_has(o->choices, ' ', text, strlen(text)))
            return false;
        memcpy(member, &text, sizeof(text));
        return true;
    case XM_CLI_TEXTS:
    case XM_CLI_WORDS:
        return add_text((struct xm_cli_texts *)(void *)member, text);
    case XM_CLI_COUNT:
    case XM_CLI_WHOLE:
    case XM_CLI_LIMIT:
    case XM_CLI_BOUND:
        return store_whole(o->kind, text, member);
    case XM_CLI_REAL:
    case XM_CLI_RATE:
        return store_real(o->kind, text, member);
    case XM_CLI_FILES:
        break;
    }
    return false;
}

/* Whether the option asks for help; -h=false does not. */
static bool
is_help_on(const struct parse *p, const struct xm_cli_option *o)
{
    enum xm_cli_switch on = XM_SWITCH_UNSAID;
    if (o->kind == XM_CLI_SWITCH && strcmp(o->name, "h") == 0)
        memcpy(&on, p->out + o->offset, sizeof(on));
    return on == XM_SWITCH_ON;
}

/* Returns the dashes that sentences write before the option's name. */
static const char *
dashes(const struct parse *p)
{
    return p->spec->style == XM_CLI_ONE_DASH ? "-" : "--";
}

static enum xm_status
tell(struct parse *p, const struct xm_cli_option *o, const char *value)
{
    return p->spec->given ? p->spec->given(p->out, o, value, p->err) : XM_OK;
}

static enum xm_status
store(struct parse *p, const struct xm_cli_option *o, const char *text)
{
    static const char *const expected[] = {
        [XM_CLI_FLAG] = "no value",
        [XM_CLI_TEXT] = "a text",
        [XM_CLI_TEXTS] = "at most 16 texts",
        [XM_CLI_WORDS] = "at most 16 texts",
        [XM_CLI_COUNT] = "a whole number from 1",
        [XM_CLI_WHOLE] = "a whole number from 0",
        [XM_CLI_LIMIT] = "a whole number from 1 to 16777216, or -1 for no limit",
        [XM_CLI_REAL] = "a number from 0",
        [XM_CLI_SWITCH] = "true or false",
        [XM_CLI_CHOICE] = "one of ",
        [XM_CLI_WORD] = "a text",
        [XM_CLI_SAID] = "a text",
        [XM_CLI_BOUND] = "a whole number from 0",
        [XM_CLI_RATE] = "a number from 0",
        [XM_CLI_FILES] = "files",
    };
    if (p->has_operand && o->offset == p->spec->operand_offset &&
        !p->spec->operands_are_many)
        return xm_fail(p->err, XM_INVALID, "option %.*s: %s is given already", p->n_given,
                       p->given, p->spec->operand);
    if (!text[0] && (o->kind == XM_CLI_WORD || o->kind == XM_CLI_WORDS))
        return xm_fail(p->err, XM_INVALID,
                       "option %.*s needs a value: %s, found an empty one", p->n_given,
                       p->given, o->value);
    if (store_value(o, text, p->out + o->offset))
        return XM_OK;
    const bool has_comma =
        (o->kind == XM_CLI_REAL || o->kind == XM_CLI_RATE) && strchr(text, ',');
    return xm_fail(p->err, XM_INVALID, "option %.*s takes %s%s, found '%.60s'%s",
                   p->n_given, p->given, expected[o->kind],
                   o->kind == XM_CLI_CHOICE ? o->choices : limit_of(o, text), text,
                   has_comma ? ": write '.' as the decimal point" : "");
}

/* Stores a value and passes it to spec->given. */
static enum xm_status
take(struct parse *p, const struct xm_cli_option *o, const char *text)
{
    XM_TRY(store(p, o, text));
    return tell(p, o, text);
}

/* ---- words ------------------------------------------------------------------------- */

/* Takes an option's value. `attached`: the text after the option in the same word; NULL: none. */
static enum xm_status
take_value(struct parse *p, const struct xm_cli_option *o, const char *attached)
{
    if (o->kind == XM_CLI_FLAG && attached)
        return xm_fail(p->err, XM_INVALID, "option %.*s takes no value, found '%s'",
                       p->n_given, p->given, attached);
    if (o->kind == XM_CLI_FLAG)
        return take(p, o, "");
    if (attached)
        return take(p, o, attached);
    if (p->at + 1 >= p->argc)
        return xm_fail(p->err, XM_INVALID, "option %.*s needs a value: %s", p->n_given,
                       p->given, o->kind == XM_CLI_CHOICE ? o->choices : o->value);
    return take(p, o, p->argv[++p->at]);
}

/* Fails with "there is no option --modle: did you mean --model?". */
static enum xm_status
fail_option(struct parse *p, const char *word)
{
    const char *name = word + strspn(word, "-");
    const size_t n = strcspn(name, "=");
    struct xm_suggestion near = xm_suggest_for(name, n);
    for (size_t i = 0; i < p->spec->n_common + p->spec->n_own; i++) {
        if (row(p->spec, i)->name) {
            xm_suggest(&near, row(p->spec, i)->name);
            xm_suggest_list(&near, row(p->spec, i)->aliases);
        }
    }
    const int shown = (int)(name - word + (ptrdiff_t)n);
    return near.best
               ? xm_fail(p->err, XM_INVALID,
                         "there is no option %.*s: did you mean %s%s?", shown, word,
                         near.best[0] == '-' ? "" : dashes(p), near.best)
               : xm_fail(p->err, XM_INVALID, "there is no option %.*s", shown, word);
}

/* Finds the option of -name, --name or -name=value. NULL: the word is not an option. *attached: the
 * text after '='. */
static const struct xm_cli_option *
find_one_dash(const struct parse *p, const char *word, const char **attached)
{
    *attached = NULL;
    if (word[0] != '-')
        return NULL;
    const char *name = word + 1 + (word[1] == '-');
    const size_t n = strcspn(name, "=");
    *attached = name[n] ? name + n + 1 : NULL;
    return find_option(p->spec, 0, name, n);
}

static bool
is_option(const struct parse *p, const char *word)
{
    const char *attached;
    return find_one_dash(p, word, &attached) != NULL;
}

static enum xm_status
take_files(struct parse *p, const struct xm_cli_option *o, const char *attached)
{
    struct xm_cli_files *files = (struct xm_cli_files *)(void *)(p->out + o->offset);
    struct xm_strbuf value = {0};
    files->one = attached;
    files->list = attached ? &files->one : (const char *const *)&p->argv[p->at + 1];
    files->n = attached ? 1 : 0;
    while (!attached && p->at + 1 < p->argc && !is_option(p, p->argv[p->at + 1])) {
        p->at++;
        files->n++;
    }
    if (files->n == 0)
        return xm_fail(p->err, XM_INVALID, "option %.*s needs a value: %s", p->n_given,
                       p->given, o->value);
    for (size_t i = 0; i < files->n; i++)
        xm_strbuf_printf(&value, "%s%s", i ? " " : "", files->list[i]);
    const enum xm_status s = xm_strbuf_ok(&value)
                                 ? tell(p, o, xm_strbuf_text(&value))
                                 : xm_no_memory(p->err, "the command line");
    xm_strbuf_free(&value);
    return s;
}

static enum xm_status
take_one_dash(struct parse *p, const char *word)
{
    const char *value, *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    const struct xm_cli_option *o = find_one_dash(p, word, &value);
    enum xm_cli_switch ignored;
    if (!o)
        return fail_option(p, word);
    if (o->kind == XM_CLI_FILES)
        return take_files(p, o, value);
    if (!value && o->kind == XM_CLI_SWITCH && !(next && read_switch(next, &ignored))) {
        XM_TRY(store(p, o, "true"));
        p->wants_help = is_help_on(p, o);
        return tell(p, o, "");
    }
    if (!value && (!next || is_option(p, next)))
        return xm_fail(p->err, XM_INVALID, "option %.*s needs a value: %s", p->n_given,
                       p->given, o->kind == XM_CLI_CHOICE ? o->choices : o->value);
    if (!value) {
        value = next;
        p->at++;
    }
    XM_TRY(store(p, o, value));
    p->wants_help = is_help_on(p, o);
    return tell(p, o, value);
}

static enum xm_status
take_long(struct parse *p, const char *word)
{
    size_t n = strcspn(word + 2, "=");
    const struct xm_cli_option *o = find_option(p->spec, 0, word + 2, n);
    if (!o)
        return fail_option(p, word);
    return take_value(p, o, word[2 + n] == '=' ? word + 3 + n : NULL);
}

static enum xm_status
take_short(struct parse *p, const char *word)
{
    const struct xm_cli_option *o = find_option(p->spec, 0, word + 1, strlen(word + 1));
    if (o && (o->letter == 0 || xm_list_has(o->aliases, ' ', word, strlen(word))))
        return take_value(p, o, NULL);
    o = find_option(p->spec, word[1], NULL, 0);
    p->n_given = 2;
    if (!o)
        return word[2] ? fail_option(p, word)
                       : xm_fail(p->err, XM_INVALID, "there is no option -%c", word[1]);
    return take_value(p, o, word[2] ? word + 2 : NULL);
}

/* Whether the operand was given, as a word or by an option for the same member: -m MODEL. */
static bool
is_operand_said(const struct parse *p)
{
    const char *member = p->out + p->spec->operand_offset, *word;
    if (p->spec->operands_are_many)
        return ((const struct xm_cli_texts *)(const void *)member)->n > 0;
    memcpy(&word, member, sizeof(word));
    return word != NULL;
}

static bool
is_operand_empty(const struct parse *p)
{
    const char *word;
    if (p->spec->operands_are_many)
        return false;
    memcpy(&word, p->out + p->spec->operand_offset, sizeof(word));
    return word[0] == '\0';
}

static enum xm_status
take_operand(struct parse *p, const char *word)
{
    const struct xm_cli_spec *spec = p->spec;
    char *member = p->out + spec->operand_offset;
    if (!spec->operand || (is_operand_said(p) && !spec->operands_are_many))
        return xm_fail(p->err, XM_INVALID, "'%.60s%s' is one word too many", word,
                       strlen(word) > 60 ? "…" : "");
    p->has_operand = true;
    if (!spec->operands_are_many)
        memcpy(member, &word, sizeof(word));
    else if (!add_text((struct xm_cli_texts *)(void *)member, word))
        return xm_fail(p->err, XM_INVALID, "at most %d of %s can be given",
                       XM_CLI_MAX_TEXTS, spec->operand);
    return XM_OK;
}

static enum xm_status
find_operand(struct parse *p)
{
    const struct xm_cli_spec *spec = p->spec;
    const char *usual = spec->operand_env ? xm_env(spec->operand_env) : NULL;
    if (!spec->operand)
        return XM_OK;
    if (is_operand_said(p))
        return is_operand_empty(p)
                   ? xm_fail(p->err, XM_INVALID, "%s is an empty word", spec->operand)
                   : XM_OK;
    if (usual && usual[0])
        return take_operand(p, usual);
    if (spec->operand_is_optional)
        return XM_OK;
    return spec->operand_env
               ? xm_fail(p->err, XM_INVALID,
                         "%s is missing: give it as the first word, with -m, or in the "
                         "environment variable %s",
                         spec->operand, spec->operand_env)
               : xm_fail(p->err, XM_INVALID, "%s is missing", spec->operand);
}

/* Options of llama.cpp's programs that xemoe lacks, with a hint for their users. */
#define OFFLOAD                                                                          \
    "all layers are on the device; --offload says which percentage of the experts is "   \
    "not"
#define EXPERTS "--offload says which percentage of the experts stays in host memory"
#define SEVERAL                                                                          \
    "-d names the device, or several with their shares, as MESH:GPU.0,GPU.1(3,1); "      \
    "--split says how these share the model"
static const struct {
    const char *word, *here;
} of_others[] = {
    {"-ngl", OFFLOAD},
    {"--n-gpu-layers", OFFLOAD},
    {"-fa", "attention is always one kernel"},
    {"--flash-attn", "attention is always one kernel"},
    {"-cnv", "'xemoe chat' holds conversations"},
    {"-sm", SEVERAL},
    {"-t", "kernels use the whole device"},
    {"--threads", "kernels use the whole device"},
    {"-b", "a prompt runs in chunks of --ubatch tokens"},
    {"--batch-size", "a prompt runs in chunks of --ubatch tokens"},
    {"-np",
     "use --parallel of 'xemoe generate' and 'xemoe bench', or --slots of 'xemoe serve'"},
    {"-ts", SEVERAL},
    {"-mg", SEVERAL},
    {"--split-mode", SEVERAL},
    {"--tensor-split", SEVERAL},
    {"--main-gpu", SEVERAL},
    {"--threads-batch", "kernels use the whole device"},
    {"-tb", "kernels use the whole device"},
    {"-cmoe", EXPERTS},
    {"--cpu-moe", EXPERTS},
    {"-ncmoe", EXPERTS},
    {"--n-cpu-moe", EXPERTS},
    {"-ot", EXPERTS},
    {"--override-tensor", EXPERTS},
    {"--mmap", "model files are always mapped"},
    {"--no-mmap", "model files are always mapped"},
    {"--mlock", "the system decides which pages of model files stay in memory"},
    {"--jinja", "'xemoe chat' always uses the model's chat template"},
    {"-hf", "models are local files: give a path with -m"},
    {"-hfr", "models are local files: give a path with -m"},
    {"--no-kv-offload", "the KV cache is on the device"},
    {"-nkvo", "the KV cache is on the device"},
    {"--interactive", "'xemoe chat' holds conversations"},
    {"--conversation", "'xemoe chat' holds conversations"},
};

static enum xm_status
check_of_others(const struct parse *p, const char *word)
{
    const size_t n = strcspn(word, "="); /* of --n-gpu-layers=99 */
    for (size_t i = 0; i < XM_ARRAY_LEN(of_others); i++) {
        const char *name = of_others[i].word + strspn(of_others[i].word, "-");
        if (is_name(of_others[i].word, word, n) &&
            !find_option(p->spec, name[1] ? '\0' : name[0], name, strlen(name)))
            return xm_fail(p->err, XM_INVALID, "there is no option %s: %s",
                           of_others[i].word, of_others[i].here);
    }
    return XM_OK;
}

static enum xm_status
take_word(struct parse *p, const char *word)
{
    p->given = word;
    p->n_given = (int)strcspn(word, "=");
    if (p->spec->style == XM_CLI_ONE_DASH)
        return word[0] == '-' ? take_one_dash(p, word) : take_operand(p, word);
    XM_TRY(check_of_others(p, word));
    if (strncmp(word, "--", 2) == 0)
        return take_long(p, word);
    return word[0] == '-' && word[1] ? take_short(p, word) : take_operand(p, word);
}

enum xm_status
xm_cli_parse(const struct xm_cli_spec *spec, int argc, char *const *argv, void *out,
             bool *help, struct xm_error *err)
{
    struct parse p = {.spec = spec, .argv = argv, .argc = argc, .out = out, .err = err};
    const bool two_dashes = spec->style == XM_CLI_TWO_DASHES;
    bool only_operands = false;
    for (p.at = 1; p.at < argc && !p.wants_help; p.at++) {
        const char *word = argv[p.at];
        if (only_operands)
            XM_TRY(take_operand(&p, word));
        else if (two_dashes && (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0))
            p.wants_help = true;
        else if (two_dashes && strcmp(word, "--") == 0)
            only_operands = true;
        else
            XM_TRY(take_word(&p, word));
    }
    *help = p.wants_help;
    return *help ? XM_OK : find_operand(&p);
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
    if (left.n + 2 > HELP_COLUMN) /* too long: the description begins on the next line */
        xm_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
    for (const char *p = o->help; *p; p++) {
        if (*p == '\n')
            xm_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
        else
            xm_strbuf_add_n(out, p, 1);
    }
    const char *at = o->aliases, *before = " (also ";
    for (char word[XM_CLI_SPELLING]; xm_cli_next_alias(&at, word); before = ", ")
        xm_strbuf_printf(out, "%s%s", before, word);
    xm_strbuf_add(out, o->aliases ? ")\n" : "\n");
    xm_strbuf_free(&left);
}

void
xm_cli_group_example(const struct xm_cli_option *group, const char *example,
                     struct xm_strbuf *out)
{
    if (group->value[0] == '-' && example)
        xm_strbuf_printf(out, "%s ", example);
    xm_strbuf_add(out, group->value);
}

static void
help_rows(const struct xm_cli_option *rows, size_t n, const char *heading,
          const char *example, struct xm_strbuf *out)
{
    if (n && rows[0].name)
        xm_strbuf_printf(out, "\n%s:\n", heading);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].name) {
            help_row(&rows[i], out);
            continue;
        }
        xm_strbuf_printf(out, "\n%s:\n  example: ", rows[i].help);
        xm_cli_group_example(&rows[i], example, out);
        xm_strbuf_add(out, "\n");
    }
}

void
xm_cli_help(const struct xm_cli_spec *spec, const char *example, struct xm_strbuf *out)
{
    static const struct xm_cli_option help = {'h', "help", XM_CLI_FLAG,
                                              0,   NULL,   "show this text"};
    xm_strbuf_printf(out, "usage: %s\n\n%s", spec->usage, spec->about);
    help_rows(spec->own, spec->n_own, "Options", example, out);
    help_rows(spec->common, spec->n_common, "Common options", example, out);
    help_row(&help, out);
}
