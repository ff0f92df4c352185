/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe opt: runs single passes on a graph in text form, as XM_DUMP writes it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/caps.h"
#include "plugin/cli/cli.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/suggest.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"

/* the graph of a model with 100 layers has about 20 MiB */
enum { MOST_MIB = 256 };

struct args {
    const char *passes;
    bool dot, list;
};

static void
add_passes(struct xm_strbuf *out)
{
    size_t n;
    const struct xm_pass *passes = xm_passes(&n);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s ", passes[i].name);
}

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("Passes and the result", "xemoe opt --list"),
    { 0,   "passes", XM_CLI_WORD, AT(passes), "NAMES", "passes to run, separated by commas; the first word without an option means the same", NULL, NULL, add_passes },
    { 0,   "dot",    XM_CLI_FLAG, AT(dot),    NULL,    "print the result for Graphviz" },
    { 'l', "list",   XM_CLI_FLAG, AT(list),   NULL,    "list the passes in their order, with the reason for each place" },
};
#undef AT
/* clang-format on */

static void
print_list(void)
{
    struct xm_lines o = xm_lines_to(stdout);
    size_t n;
    const struct xm_pass *passes = xm_passes(&n);
    for (size_t i = 0; i < n; i++)
        xm_lines_add(&o, "%-28s %-26s %s\n", passes[i].name, passes[i].public_name,
                     passes[i].why_here);
    xm_lines_end(&o);
}

static enum xm_status
run_pass(struct xm_graph *g, const struct xm_pass *pass, struct xm_error *err)
{
    struct xm_device_info device = {.name = "any"};
    struct xm_strbuf report = {0};
    struct xm_config config;
    xm_config_init(&config);
    struct xm_caps caps = xm_program_caps(&device, &config, NULL);
    /* so that the pass that rounds as in training runs if it is named */
    caps.rounds_as_trained = true;
    bool progress = pass->run(g, &caps);
    fprintf(stderr, "%s: %s\n", pass->public_name, progress ? "changed" : "no change");
    if (g->err.status != XM_OK)
        return xm_fail(err, g->err.status, "%s: %s", pass->public_name, g->err.text);
    enum xm_status s = xm_graph_validate(g, &report, err);
    if (s != XM_OK)
        fputs(xm_strbuf_text(&report), stderr);
    xm_strbuf_free(&report);
    return s == XM_OK && pass->ensures ? pass->ensures(g, err) : s;
}

static int
no_pass(const char *name)
{
    struct xm_strbuf names = {0};
    struct xm_suggestion near = xm_suggest_for(name, strlen(name));
    size_t n;
    const struct xm_pass *passes = xm_passes(&n);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(&names, "%s %s ", passes[i].name, passes[i].public_name);
    xm_suggest_list(&near, xm_strbuf_text(&names));
    xm_strbuf_free(&names);
    return near.best
               ? xm_cli_usage("there is no pass '%s': did you mean %s?", name, near.best)
               : xm_cli_usage("there is no pass '%s'; 'xemoe opt --list' lists the "
                              "passes",
                              name);
}

/* Finds all passes by their names before any of them runs. */
static int
find_passes(const char *names, struct xm_graph *g, struct xm_error *err)
{
    for (const char *p = names; *p;) {
        char name[64];
        size_t n = strcspn(p, ",");
        snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), p);
        const struct xm_pass *pass = xm_pass_find(name);
        if (!pass)
            return no_pass(name);
        if (g && run_pass(g, pass, err) != XM_OK)
            return xm_cli_failed(err);
        p += n + (p[n] == ',');
    }
    return XM_EXIT_OK;
}

static int
run_passes(const struct args *a)
{
    struct xm_error err = {0};
    struct xm_strbuf text = {0}, out = {0};
    struct xm_graph *g = NULL;
    int code = find_passes(a->passes, NULL, &err);
    if (code != XM_EXIT_OK)
        return code;
    enum xm_status s = xm_file_read_all(STDIN_FILENO, "standard input",
                                        "the text of a graph", MOST_MIB, &text, &err);
    if (s == XM_OK && text.n == 0) {
        xm_strbuf_free(&text);
        xm_say("standard input is empty: write the text of a graph to it, as in 'xemoe "
               "opt %s < graph.xmg'",
               a->passes);
        return XM_EXIT_FILE;
    }
    if (s == XM_OK)
        s = xm_graph_parse_dump(xm_strbuf_text(&text), &g, &err);
    code = s == XM_OK ? find_passes(a->passes, g, &err) : xm_cli_failed(&err);
    if (code == XM_EXIT_OK) {
        if (a->dot)
            xm_graph_print_dot(g, &out);
        else
            xm_graph_print_dump(g, XM_TEXT_MOST_DATA, &out);
        fwrite(xm_strbuf_text(&out), 1, out.n, stdout);
        code = xm_cli_flush();
    }
    xm_graph_destroy(g);
    xm_strbuf_free(&text);
    xm_strbuf_free(&out);
    return code;
}

int
xm_cli_opt(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe opt PASS[,PASS…] [--dot] < graph.xmg",
        .about = "Runs passes on a graph in text form (XM_DUMP=folder writes such files) "
                 "and\nprints the result. Constants whose bytes are not in the text are "
                 "filled with a\npattern; in the dump of a large model they are read "
                 "from the model's file, which\nmust not have changed.\n",
        .own = options,
        .add_operands = add_passes,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {0};
    bool done;
    bool by_word = argc > 1 && argv[1][0] != '-';
    if (by_word) { /* an optional word, so it cannot be the table's operand */
        a.passes = argv[1];
        argv[1] = argv[0];
    }
    int code = xm_cli_begin(&spec, argc - by_word, argv + by_word, &a, &done);
    if (done)
        return code;
    if (a.list) {
        print_list();
        return xm_cli_flush();
    }
    if (!a.passes || !a.passes[0])
        return xm_cli_usage("which passes? Name them, separated by commas; 'xemoe opt "
                            "--list' lists them");
    return run_passes(&a);
}
