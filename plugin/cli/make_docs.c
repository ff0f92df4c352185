/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe make-docs KIND: writes shell completion or the reference to standard output, with the parts
 * of other programs from standard input. xemoe make-docs man FOLDER: writes a man page for each
 * command and one for the program.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/commands.h"
#include "plugin/program_util/program_docs.h"
#include "runtime/util/new_file.h"

struct collector {
    const char *kind, *folder; /* folder for man pages; NULL: everything goes to `out` */
    const struct xm_cli_command *command;
    struct xm_strbuf *out;
    struct xm_error err;
};

static void
write_page(struct collector *c, const char *name, const struct xm_strbuf *text)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/%s.1", c->folder, name);
    xm_write_text_file(xm_strbuf_text(&path), text, &c->err);
    xm_strbuf_free(&path);
}

static void
describe(const struct xm_cli_spec *spec, void *ctx)
{
    struct collector *c = ctx;
    const struct xm_cli_described d = {c->command->name, c->command->summary,
                                       c->command->example, spec};
    struct xm_strbuf page = {0}, name = {0};
    xm_describe(c->kind, &d, c->folder ? &page : c->out);
    if (c->folder) {
        xm_strbuf_printf(&name, "xemoe-%s", d.name);
        write_page(c, xm_strbuf_text(&name), &page);
    }
    xm_strbuf_free(&page);
    xm_strbuf_free(&name);
}

/* Describes all commands: each passes its table of options instead of parsing a command line.
 * benchmark_app is another program, which describes itself. */
static void
describe_all(struct collector *c)
{
    xm_cli_collect(describe, c);
    for (size_t i = 0; i < xm_cli_n_commands; i++) {
        c->command = &xm_cli_commands[i];
        char *argv[] = {(char *)c->command->name, NULL};
        if (c->command->run != xm_cli_benchmark_app)
            c->command->run(1, argv);
    }
    xm_cli_collect(NULL, NULL);
}

static void
add_names(struct xm_strbuf *out)
{
    for (size_t i = 0; i < xm_cli_n_commands; i++)
        xm_strbuf_printf(out, "%s ", xm_cli_commands[i].name);
    xm_strbuf_add(out, "help");
}

static void
add_stdin(struct xm_strbuf *out)
{
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), stdin)) > 0;)
        xm_strbuf_add_n(out, buffer, n);
}

/* ---- shells -------------------------------------------------------------------------- */

static void
bash_tail(struct xm_strbuf *out)
{
    xm_strbuf_add(out, "_xemoe_commands='");
    add_names(out);
    xm_strbuf_add(
        out,
        "'\n"
        "# _xemoe_reply OPTION ARGUMENT PREFIX WORD: what compgen prints, a line each\n"
        "_xemoe_reply() {\n"
        "    mapfile -t COMPREPLY < <(compgen \"${@:1:2}\" -P \"$3\" -- \"$4\")\n"
        "}\n"
        "_xemoe() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    local prefix=\n"
        "    # --option=value: three words, or one where '=' does not break words\n"
        "    if [ \"$word\" = = ]; then\n"
        "        word=\n"
        "    elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
        "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    elif [[ $word == -*=* ]]; then\n"
        "        before=${word%%=*} prefix=${word%%=*}= word=${word#*=}\n"
        "    fi\n"
        "    local name=${COMP_WORDS[1]//[^a-zA-Z0-9]/_}\n"
        "    [[ $name == bench && \" ${COMP_WORDS[*]:2} \" == *' --kernels '* ]] "
        "&&\n"
        "        name=bench___kernels\n"
        "    local options=_xemoe_options_$name values=_xemoe_values_$name "
        "paths=_xemoe_paths_$name\n"
        "    local choices=_xemoe_choices_$name operands=_xemoe_operands_$name\n"
        "    local folders=_xemoe_folders_$name\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"$name\" = help ]; then\n"
        "        _xemoe_reply -W \"$_xemoe_commands --help --version\" '' \"$word\"\n"
        "    elif [[ $word == -* ]]; then\n"
        "        _xemoe_reply -W \"${!options-}\" '' \"$word\"\n"
        "    elif [[ ${!choices-} =~ \" $before=\"([^ ]*) ]]; then\n"
        "        _xemoe_reply -W \"${BASH_REMATCH[1]//,/ }\" \"$prefix\" \"$word\"\n"
        "    elif [ \"$COMP_CWORD\" -eq 2 ] && [[ \"${!operands-/}\" != /* ]]; then\n"
        "        _xemoe_reply -W \"${!operands}\" '' \"$word\"\n"
        "    elif [[ \" ${!folders-} \" == *\" $before \"* ]] ||\n"
        "        [[ \"${!operands-}\" == / && \" ${!values-} \" != *\" $before \"* ]]; "
        "then\n"
        "        compopt -o filenames 2>/dev/null\n"
        "        _xemoe_reply -A directory \"$prefix\" \"$word\"\n"
        "    elif [[ \" ${!values-} \" != *\" $before \"* ]] ||\n"
        "        [[ \" ${!paths-} \" == *\" $before \"* ]]; then\n"
        "        compopt -o filenames 2>/dev/null\n"
        "        _xemoe_reply -A file \"$prefix\" \"$word\"\n"
        "    fi\n"
        "}\n"
        "complete -F _xemoe xemoe\n");
}

static void
zsh_tail(struct xm_strbuf *out)
{
    xm_strbuf_add(out, "_xemoe() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < xm_cli_n_commands; i++) {
        xm_strbuf_printf(out, "        \"%s:%s\"\n", xm_cli_commands[i].name,
                         xm_cli_commands[i].summary);
    }
    xm_strbuf_add(out, "        \"help:what a command does, with its options\"\n"
                       "    )\n"
                       "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
                       "        _describe command commands\n"
                       "        return\n"
                       "    fi\n"
                       "    local part=_xemoe_${words[2]//[^a-zA-Z0-9]/_}\n"
                       "    [[ $part == _xemoe_bench ]] && (( ${words[(I)--kernels]} )) "
                       "&&\n"
                       "        part=_xemoe_bench___kernels\n"
                       "    shift words\n"
                       "    (( CURRENT-- ))\n"
                       "    (( $+functions[$part] )) && $part || _files\n"
                       "}\n"
                       "_xemoe \"$@\"\n");
}

static void
fish_tail(struct xm_strbuf *out)
{
    for (size_t i = 0; i < xm_cli_n_commands; i++) {
        xm_strbuf_printf(
            out, "complete -c xemoe -f -n __fish_use_subcommand -a '%s' -d \"%s\"\n",
            xm_cli_commands[i].name, xm_cli_commands[i].summary);
    }
    xm_strbuf_add(out, "complete -c xemoe -f -n __fish_use_subcommand -a help -d 'what a "
                       "command does'\n"
                       "complete -c xemoe -f -n '__fish_seen_subcommand_from help' -a '");
    add_names(out);
    xm_strbuf_add(out, "'\n");
}

/* ---- the program's page, and the head of the reference ------------------------------------ */

static void
roff_facts(const char *title, const struct xm_cli_fact *facts, size_t n,
           struct xm_strbuf *out)
{
    xm_strbuf_printf(out, ".SH %s\n", title);
    for (size_t i = 0; i < n; i++) {
        xm_strbuf_printf(out, ".TP\n.B %s\n", facts[i].name);
        xm_describe_roff(facts[i].text, out);
        xm_strbuf_add(out, "\n");
    }
}

static void
write_program_page(struct collector *c)
{
    struct xm_strbuf page = {0};
    xm_strbuf_add(
        &page,
        ".TH XEMOE 1 \"\" xemoe\n"
        ".SH NAME\nxemoe \\- run Mixture-of-Experts language models through OpenCL\n"
        ".SH SYNOPSIS\n.B xemoe\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n.br\n"
        ".B xemoe help\n[\\fICOMMAND\\fR]\n"
        ".SH DESCRIPTION\n"
        "Models are GGUF files and OpenVINO IR. Text goes to standard output, "
        "messages to\nstandard error.\n"
        ".SH COMMANDS\n");
    for (size_t i = 0; i < xm_cli_n_commands; i++) {
        xm_strbuf_add(&page, ".TP\n.BR xemoe\\-");
        xm_describe_roff(xm_cli_commands[i].name, &page);
        xm_strbuf_add(&page, " (1)\n");
        xm_describe_roff(xm_cli_commands[i].summary, &page);
        xm_strbuf_add(&page, "\n");
    }
    roff_facts("EXIT STATUS", xm_cli_exit_codes, xm_cli_n_exit_codes, &page);
    roff_facts("ENVIRONMENT", xm_cli_environment, xm_cli_n_environment, &page);
    write_page(c, "xemoe", &page);
    xm_strbuf_free(&page);
}

static void
reference_facts(const char *title, const char *what, const struct xm_cli_fact *facts,
                size_t n, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "\n## %s\n\n| %s | means |\n|---|---|\n", title, what);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "| `%s` | %s |\n", facts[i].name, facts[i].text);
}

static void
reference_head(struct xm_strbuf *out)
{
    xm_strbuf_add(out, "# Reference of the program\n\n"
                       "Made from the program's tables by `xemoe make-docs reference`; "
                       "[program.md](program.md) tells what\nthe commands are for.\n\n"
                       "| command | does |\n|---|---|\n");
    for (size_t i = 0; i < xm_cli_n_commands; i++)
        xm_strbuf_printf(out, "| [%s](#%s) | %s |\n", xm_cli_commands[i].name,
                         xm_cli_commands[i].name, xm_cli_commands[i].summary);
    reference_facts("Exit codes", "code", xm_cli_exit_codes, xm_cli_n_exit_codes, out);
    xm_strbuf_add(out,
                  "\n`benchmark_app` ends with 1 for every failure but a wrong command "
                  "line, as OpenVINO's program does.\n");
    reference_facts("Environment", "variable", xm_cli_environment, xm_cli_n_environment,
                    out);
}

static void
zsh_head(struct xm_strbuf *out)
{
    xm_strbuf_add(out, "#compdef xemoe\n");
}

static int
finish(const struct collector *c)
{
    if (c->err.status != XM_OK)
        return xm_cli_failed(&c->err);
    fputs(xm_strbuf_text(c->out), stdout);
    return xm_cli_flush();
}

int
xm_cli_make_docs(int argc, char **argv)
{
    static const struct {
        const char *kind;
        void (*head)(struct xm_strbuf *out), (*tail)(struct xm_strbuf *out);
    } kinds[] = {{"bash", NULL, bash_tail},
                 {"zsh", zsh_head, zsh_tail},
                 {"fish", NULL, fish_tail},
                 {"reference", reference_head, NULL}};
    struct xm_strbuf out = {0};
    struct collector c = {.kind = argc > 1 ? argv[1] : "", .out = &out};
    int code = -1;
    if (argc == 3 && strcmp(c.kind, "man") == 0) {
        c.folder = argv[2];
        describe_all(&c);
        write_program_page(&c);
        code = finish(&c);
    }
    for (size_t i = 0; argc == 2 && i < XM_ARRAY_LEN(kinds); i++) {
        if (strcmp(c.kind, kinds[i].kind) != 0)
            continue;
        if (kinds[i].head)
            kinds[i].head(&out);
        describe_all(&c);
        add_stdin(&out);
        if (kinds[i].tail)
            kinds[i].tail(&out);
        code = finish(&c);
    }
    xm_strbuf_free(&out);
    return code >= 0
               ? code
               : xm_cli_usage("make-docs takes bash, zsh, fish or reference, or man "
                              "and a folder");
}
