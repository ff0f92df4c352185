/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/program_docs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugin/program_util/exit_codes.h"
#include "runtime/util/compiler.h"

static const struct xm_cli_option help_row = {'h', "help", XM_CLI_FLAG,
                                              0,   NULL,   "show this text"};

/* Returns row i of a command in the order of its help; NULL: there are no more. */
static const struct xm_cli_option *
row(const struct xm_cli_spec *s, size_t i)
{
    if (i < s->n_own)
        return &s->own[i];
    i -= s->n_own;
    if (i < s->n_common)
        return &s->common[i];
    return i == s->n_common && s->style == XM_CLI_TWO_DASHES ? &help_row : NULL;
}

/* Calls `print` with every spelling of an option, with its dashes. */
static void
each_spelling(const struct xm_cli_spec *s, const struct xm_cli_option *o,
              void (*print)(const char *word, void *ctx), void *ctx)
{
    char word[XM_CLI_SPELLING];
    const bool is_short = s->style == XM_CLI_ONE_DASH || !o->help;
    if (o->letter) {
        snprintf(word, sizeof(word), "-%c", o->letter);
        print(word, ctx);
    }
    snprintf(word, sizeof(word), "%s%s", is_short ? "-" : "--", o->name);
    print(word, ctx);
    for (const char *at = o->aliases; xm_cli_next_alias(&at, word);)
        print(word, ctx);
}

static bool
takes_value(const struct xm_cli_option *o)
{
    return o->kind != XM_CLI_FLAG && o->kind != XM_CLI_SWITCH;
}

static bool
is_folder(const char *value)
{
    return value && (strcmp(value, "DIR") == 0 || strcmp(value, "FOLDER") == 0);
}

static bool
takes_folder(const struct xm_cli_option *o)
{
    return is_folder(o->value);
}

/* Whether the option's value is the path of a file or folder, by the value's name. */
static bool
takes_path(const struct xm_cli_option *o)
{
    static const char *const names[] = {"PATH", "PATHS", "FILE", "FILES", "LIBS"};
    for (size_t i = 0; o->value && i < XM_ARRAY_LEN(names); i++) {
        if (strcmp(o->value, names[i]) == 0)
            return true;
    }
    return takes_folder(o);
}

/* Appends the values of an option that shells complete, separated by `separator`. Returns false: it
 * has none. */
static bool
add_values(const struct xm_cli_option *o, char separator, struct xm_strbuf *out)
{
    struct xm_strbuf values = {0};
    if (o->choices)
        xm_strbuf_add(&values, o->choices);
    else if (o->add_values)
        o->add_values(&values);
    const bool has_values = values.n > 0;
    if (has_values && values.text[values.n - 1] == ' ')
        values.n--;
    for (size_t i = 0; i < values.n; i++)
        xm_strbuf_printf(out, "%c", values.text[i] == ' ' ? separator : values.text[i]);
    xm_strbuf_free(&values);
    return has_values;
}

/* Returns the number of bytes up to the first newline or the end. */
static size_t
line_length(const char *text)
{
    return strcspn(text, "\n");
}

/* ---- bash --------------------------------------------------------------------------- */

static void
print_word(const char *word, void *ctx)
{
    xm_strbuf_printf(ctx, " %s", word);
}

static void
variable(const char *name, struct xm_strbuf *out)
{
    for (; *name; name++)
        xm_strbuf_printf(out, "%c", isalnum((unsigned char)*name) ? *name : '_');
}

struct choices_row {
    const struct xm_cli_option *option;
    struct xm_strbuf *out;
};

static void
print_choices(const char *word, void *ctx)
{
    const struct choices_row *r = ctx;
    xm_strbuf_printf(r->out, " %s=", word);
    add_values(r->option, ',', r->out);
}

/* Writes _xemoe_choices_COMMAND=' --kv=f32,f16 -o=md,csv '. */
static void
bash_choices(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "_xemoe_choices_");
    variable(c->name, out);
    xm_strbuf_add(out, "='");
    for (size_t i = 0; row(c->spec, i); i++) {
        struct choices_row r = {row(c->spec, i), out};
        if (r.option->name && (r.option->choices || r.option->add_values))
            each_spelling(c->spec, r.option, print_choices, &r);
    }
    xm_strbuf_add(out, " '\n");
    if (c->spec->add_operands) {
        xm_strbuf_add(out, "_xemoe_operands_");
        variable(c->name, out);
        xm_strbuf_add(out, "='");
        c->spec->add_operands(out);
        xm_strbuf_add(out, "'\n");
    } else if (is_folder(c->spec->operand)) {
        xm_strbuf_add(out, "_xemoe_operands_");
        variable(c->name, out);
        xm_strbuf_add(out, "='/'\n"); /* '/' stands for any folder */
    }
}

static void
bash(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    static const struct {
        const char *variable;
        bool (*has)(const struct xm_cli_option *o);
    } lists[] = {{"options", NULL},
                 {"values", takes_value},
                 {"paths", takes_path},
                 {"folders", takes_folder}};
    for (size_t k = 0; k < XM_ARRAY_LEN(lists); k++) {
        xm_strbuf_printf(out, "_xemoe_%s_", lists[k].variable);
        variable(c->name, out);
        xm_strbuf_add(out, "='");
        for (size_t i = 0; row(c->spec, i); i++) {
            const struct xm_cli_option *o = row(c->spec, i);
            if (o->name && (!lists[k].has || lists[k].has(o)))
                each_spelling(c->spec, o, print_word, out);
        }
        xm_strbuf_add(out, " '\n");
    }
    bash_choices(c, out);
}

/* ---- zsh ---------------------------------------------------------------------------- */

struct zsh_row {
    const struct xm_cli_option *option;
    enum xm_cli_style style;
    struct xm_strbuf *out;
};

/* Writes '-n+[at most N new tokens]:N:_files' in single quotes. '+': the value is in the same word
 * or the next; '=': also after '=' in the same word. */
static void
zsh_option(const char *word, void *ctx)
{
    const struct zsh_row *r = ctx;
    const struct xm_cli_option *o = r->option;
    const char *help = o->help ? o->help : "the same";
    const bool is_letter = strlen(word) == 2 && r->style == XM_CLI_TWO_DASHES;
    xm_strbuf_printf(r->out, "        '*%s%s[", word,
                     !takes_value(o) ? ""
                     : is_letter     ? "+"
                                     : "=");
    for (size_t i = 0; i < line_length(help); i++) {
        if (help[i] == '\'')
            xm_strbuf_add(r->out, "'\\''");
        else
            xm_strbuf_printf(r->out, strchr("[]:\\", help[i]) ? "\\%c" : "%c", help[i]);
    }
    xm_strbuf_add(r->out, "]");
    if (takes_value(o)) {
        struct xm_strbuf values = {0};
        xm_strbuf_printf(r->out, ":%s:", o->value);
        if (add_values(o, ' ', &values))
            xm_strbuf_printf(r->out, "(%s)", xm_strbuf_text(&values));
        else
            xm_strbuf_add(r->out, takes_folder(o) ? "_files -/"
                                  : takes_path(o) ? "_files"
                                                  : " ");
        xm_strbuf_free(&values);
    }
    xm_strbuf_add(r->out, "' \\\n");
}

static void
zsh(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "_xemoe_");
    variable(c->name, out);
    xm_strbuf_add(out, "() {\n    _arguments \\\n");
    for (size_t i = 0; row(c->spec, i); i++) {
        struct zsh_row r = {row(c->spec, i), c->spec->style, out};
        if (r.option->name)
            each_spelling(c->spec, r.option, zsh_option, &r);
    }
    if (c->spec->add_operands) {
        xm_strbuf_add(out, "        '1:operand:(");
        c->spec->add_operands(out);
        xm_strbuf_add(out, ")'\n}\n");
    } else {
        xm_strbuf_printf(out, "        '*:file:_files%s'\n}\n",
                         is_folder(c->spec->operand) ? " -/" : "");
    }
}

/* ---- fish --------------------------------------------------------------------------- */

static void
fish_quoted(const char *text, size_t n, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "'");
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, strchr("'\\", text[i]) ? "\\%c" : "%c", text[i]);
    xm_strbuf_add(out, "'");
}

static void
fish_spelling(const char *word, void *ctx)
{
    const bool is_long = strncmp(word, "--", 2) == 0;
    xm_strbuf_printf(ctx, " -%c %s",
                     is_long   ? 'l'
                     : word[2] ? 'o'
                               : 's',
                     word + (is_long ? 2 : 1));
}

/* Writes a condition that is true if the command is on the line, and the flag in its name. */
static void
fish_condition(const char *name, struct xm_strbuf *out)
{
    const size_t n = strcspn(name, " ");
    xm_strbuf_printf(out, "__fish_seen_subcommand_from %.*s", (int)n, name);
    if (name[n])
        xm_strbuf_printf(out, "; and __fish_contains_opt %s",
                         name + n + strspn(name + n, " -"));
}

static void
fish(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    static const char fish_folders[] = " -x -a '(__fish_complete_directories)'";
    for (size_t i = 0; row(c->spec, i); i++) {
        const struct xm_cli_option *o = row(c->spec, i);
        const char *help = o->help ? o->help : "the same";
        if (!o->name)
            continue;
        xm_strbuf_add(out, "complete -c xemoe -n '");
        fish_condition(c->name, out);
        xm_strbuf_add(out, "'");
        each_spelling(c->spec, o, fish_spelling, out);
        if (takes_value(o))
            xm_strbuf_add(out, takes_folder(o) ? fish_folders
                               : takes_path(o) ? " -r -F"
                                               : " -x");
        if (o->choices || o->add_values) {
            xm_strbuf_add(out, " -a '");
            add_values(o, ' ', out);
            xm_strbuf_add(out, "'");
        }
        xm_strbuf_add(out, " -d ");
        fish_quoted(help, line_length(help), out);
        xm_strbuf_add(out, "\n");
    }
    if (c->spec->add_operands) {
        xm_strbuf_add(out, "complete -c xemoe -f -n '");
        fish_condition(c->name, out);
        xm_strbuf_add(out, "' -a '");
        c->spec->add_operands(out);
        xm_strbuf_add(out, "'\n");
    } else if (is_folder(c->spec->operand)) {
        xm_strbuf_add(out, "complete -c xemoe -f -n '");
        fish_condition(c->name, out);
        xm_strbuf_add(out, "' -a '(__fish_complete_directories)'\n");
    }
}

/* ---- man pages ---------------------------------------------------------------------- */

void
xm_describe_roff(const char *text, struct xm_strbuf *out)
{
    bool begins_line = true;
    for (; *text; text++) {
        if (begins_line && (*text == '.' || *text == '\''))
            xm_strbuf_add(out, "\\&");
        if (*text == '\\')
            xm_strbuf_add(out, "\\e");
        else
            xm_strbuf_printf(out, *text == '-' ? "\\%c" : "%c", *text);
        begins_line = *text == '\n';
    }
}

/* Writes paragraphs, which empty lines separate. */
static void
roff_paragraphs(const char *text, struct xm_strbuf *out)
{
    struct xm_strbuf line = {0};
    for (; *text; text += line_length(text), text += *text == '\n') {
        const size_t n = line_length(text);
        xm_strbuf_clear(&line);
        xm_strbuf_add_n(&line, text, n);
        if (n == 0)
            xm_strbuf_add(out, ".PP");
        else
            xm_describe_roff(xm_strbuf_text(&line), out);
        xm_strbuf_add(out, "\n");
    }
    xm_strbuf_free(&line);
}

static void
roff_spelling(const char *word, void *ctx)
{
    struct xm_strbuf *out = ctx;
    if (out->n && xm_strbuf_text(out)[out->n - 1] == 'R') /* after another spelling */
        xm_strbuf_add(out, ", ");
    xm_strbuf_add(out, "\\fB");
    xm_describe_roff(word, out);
    xm_strbuf_add(out, "\\fR");
}

static void
roff_option(const struct xm_cli_spec *spec, const struct xm_cli_option *o,
            struct xm_strbuf *out)
{
    xm_strbuf_add(out, ".TP\n");
    each_spelling(spec, o, roff_spelling, out);
    if (o->value)
        xm_strbuf_printf(out, " \\fI%s\\fR", o->value);
    else if (o->kind == XM_CLI_SWITCH)
        xm_strbuf_add(out, " [\\fItrue\\fR|\\fIfalse\\fR]");
    xm_strbuf_add(out, "\n");
    xm_describe_roff(o->help ? o->help : "the same", out);
    if (o->kind == XM_CLI_CHOICE)
        xm_strbuf_printf(out, " (%s)", o->choices);
    xm_strbuf_add(out, "\n");
}

static void
roff_group(const struct xm_cli_option *o, const char *example, struct xm_strbuf *out)
{
    struct xm_strbuf line = {0};
    xm_cli_group_example(o, example, &line);
    xm_strbuf_printf(out, ".SS %s\n.nf\n", o->help);
    xm_describe_roff(xm_strbuf_text(&line), out);
    xm_strbuf_add(out, "\n.fi\n");
    xm_strbuf_free(&line);
}

static void
man(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    xm_strbuf_add(out, ".TH XEMOE\\-");
    for (const char *at = c->name; *at; at++)
        xm_strbuf_printf(out, *at == '-' ? "\\%c" : "%c", toupper((unsigned char)*at));
    xm_strbuf_add(out, " 1 \"\" xemoe\n.SH NAME\nxemoe\\-");
    xm_describe_roff(c->name, out);
    xm_strbuf_add(out, " \\- ");
    xm_describe_roff(c->summary, out);
    xm_strbuf_add(out, "\n.SH SYNOPSIS\n.nf\n");
    xm_describe_roff(c->spec->usage, out);
    xm_strbuf_add(out, "\n.fi\n.SH DESCRIPTION\n");
    roff_paragraphs(c->spec->about, out);
    xm_strbuf_add(out, ".SH OPTIONS\n");
    for (size_t i = 0; row(c->spec, i); i++) {
        const struct xm_cli_option *o = row(c->spec, i);
        if (!o->name)
            roff_group(o, c->example, out);
        else
            roff_option(c->spec, o, out);
    }
    if (c->example) {
        xm_strbuf_add(out, ".SH EXAMPLES\n.nf\n");
        xm_describe_roff(c->example, out);
        xm_strbuf_add(out, "\n.fi\n");
    }
    xm_strbuf_add(out, ".SH SEE ALSO\n.BR xemoe (1)\n");
}

/* ---- the reference ------------------------------------------------------------------- */

/* A cell of a table in Markdown. */
static void
cell(const char *text, struct xm_strbuf *out)
{
    for (; *text; text++) {
        if (strchr("|*_<", *text))
            xm_strbuf_add(out, "\\");
        xm_strbuf_printf(out, "%c", *text == '\n' ? ' ' : *text);
    }
}

struct spellings {
    const struct xm_cli_option *option;
    struct xm_strbuf *out;
    size_t n;
};

static void
code_spelling(const char *word, void *ctx)
{
    struct spellings *s = ctx;
    xm_strbuf_printf(s->out, "%s`%s%s%s`", s->n++ ? ", " : "", word,
                     s->option->value ? " " : "",
                     s->option->value ? s->option->value : "");
}

static void
reference_row(const struct xm_cli_spec *spec, const struct xm_cli_option *o,
              struct xm_strbuf *out)
{
    struct spellings s = {o, out, 0};
    xm_strbuf_add(out, "| ");
    each_spelling(spec, o, code_spelling, &s);
    xm_strbuf_add(out, " | ");
    cell(o->help ? o->help : "the same", out);
    if (o->kind == XM_CLI_CHOICE) {
        xm_strbuf_add(out, " (");
        cell(o->choices, out);
        xm_strbuf_add(out, ")");
    }
    xm_strbuf_add(out, " |\n");
}

static void
reference(const struct xm_cli_described *c, struct xm_strbuf *out)
{
    static const char table[] = "\n| option | does |\n|---|---|\n";
    xm_strbuf_printf(out, "\n## %s\n\n```\nusage: %s\n```\n\n%s", c->name, c->spec->usage,
                     c->spec->about);
    if (c->example)
        xm_strbuf_printf(out, "\n```\n%s\n```\n", c->example);
    for (size_t i = 0; row(c->spec, i); i++) {
        const struct xm_cli_option *o = row(c->spec, i);
        if (!o->name) {
            xm_strbuf_printf(out, "\n**%s**\n\n    ", o->help);
            xm_cli_group_example(o, c->example, out);
            xm_strbuf_printf(out, "\n%s", table);
        } else if (i == 0) {
            xm_strbuf_add(out, table);
        }
        if (o->name)
            reference_row(c->spec, o, out);
    }
}

/* ---- all kinds ----------------------------------------------------------------------- */

bool
xm_describe(const char *kind, const struct xm_cli_described *c, struct xm_strbuf *out)
{
    static const struct {
        const char *kind;
        void (*print)(const struct xm_cli_described *c, struct xm_strbuf *out);
    } kinds[] = {{"bash", bash},
                 {"zsh", zsh},
                 {"fish", fish},
                 {"man", man},
                 {"reference", reference}};
    for (size_t i = 0; i < XM_ARRAY_LEN(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) == 0) {
            kinds[i].print(c, out);
            return true;
        }
    }
    return false;
}

int
xm_describe_print(const char *kind, const struct xm_cli_described *c)
{
    struct xm_strbuf text = {0};
    if (!xm_describe(kind, c, &text))
        return xm_cli_usage(
            "make-docs takes bash, zsh, fish, man or reference, found '%s'", kind);
    fputs(xm_strbuf_text(&text), stdout);
    xm_strbuf_free(&text);
    return xm_cli_flush();
}
