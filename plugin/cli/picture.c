/* SPDX-License-Identifier: Apache-2.0
 *
 * A block (the steps before the layers, a layer, the steps after them) is a cluster of graphviz.
 * Values that enter or leave it are rounded labels inside it, so that arrows do not cross blocks;
 * rotary tables, for example, would have an arrow to every layer.
 */
#include "plugin/cli/picture.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

enum { TEXT_COLUMNS = 40, NAME_COLUMNS = 44 };

/* ---- texts --------------------------------------------------------------------------- */

/* Appends text for HTML labels: markup is escaped, control characters and invalid UTF-8 are
 * replaced. */
static void
add_escaped(struct xm_strbuf *out, const char *s, size_t n)
{
    struct xm_strbuf clean = {0};
    xm_utf8_repair((struct xm_slice){s, n}, &clean);
    for (size_t i = 0; i < clean.n; i++) {
        char *c = &clean.text[i];
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
    xm_strbuf_add_markup(out, xm_strbuf_text(&clean), clean.n);
    out->failed |= !xm_strbuf_ok(&clean);
    xm_strbuf_free(&clean);
}

/* Appends words wrapped at TEXT_COLUMNS. */
static void
add_wrapped(struct xm_strbuf *out, const char *s)
{
    size_t column = 0;
    while (*s) {
        size_t n = strcspn(s, " ");
        if (column && column + 1 + n > TEXT_COLUMNS) {
            xm_strbuf_add(out, "<BR ALIGN=\"LEFT\"/>");
            column = 0;
        } else if (column) {
            xm_strbuf_add(out, " ");
            column++;
        }
        add_escaped(out, s, n);
        column += n;
        s += n;
        s += strspn(s, " ");
    }
    xm_strbuf_add(out, "<BR ALIGN=\"LEFT\"/>");
}

/* Appends a name. Of exporters' names like "__module.model.layers.0.mlp/aten::linear/MatMul", the
 * module is kept; of a long one its end. */
static void
add_name(struct xm_strbuf *out, const char *name)
{
    static const char prefix[] = "__module.";
    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0)
        name += sizeof(prefix) - 1;
    size_t n = strcspn(name, "/");
    if (n > NAME_COLUMNS) {
        name += n - NAME_COLUMNS;
        n = NAME_COLUMNS;
        /* not in the middle of a UTF-8 character */
        while (n && ((unsigned char)*name & 0xc0) == 0x80) {
            name++;
            n--;
        }
        xm_strbuf_add(out, "…");
    }
    add_escaped(out, name, n);
}

static void
add_type(struct xm_strbuf *out, const struct xm_program_view *v, uint32_t value)
{
    add_escaped(out, v->values[value].type, strlen(v->values[value].type));
}

/* ---- boxes --------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *op, *colour;
} colours[] = {
    { "attention", "#cfe2f3" },
    { "moe",       "#fce5cd" }, { "gather_matmul", "#fce5cd" },
    { "linear",    "#d9ead3" }, { "matmul", "#d9ead3" }, { "gather", "#d9ead3" },
    { "rms_norm",  "#eeeeee" }, { "row_chain", "#eeeeee" }, { "rope", "#eeeeee" },
};
/* clang-format on */

static const char *
colour_of(const struct xm_step_view *s)
{
    if (s->on_host)
        return "#f4cccc";
    for (size_t i = 0; i < XM_ARRAY_LEN(colours); i++) {
        if (strncmp(s->op, colours[i].op, strlen(colours[i].op)) == 0)
            return colours[i].colour;
    }
    return "#ffffff";
}

static void
add_line(struct xm_strbuf *out, const char *colour, const char *label, const char *text)
{
    xm_strbuf_add(out, "<TR><TD ALIGN=\"LEFT\" BALIGN=\"LEFT\">");
    xm_strbuf_printf(out, "<FONT POINT-SIZE=\"10\" COLOR=\"%s\">", colour);
    if (label)
        xm_strbuf_printf(out, "<I>%s</I><BR ALIGN=\"LEFT\"/>", label);
    add_wrapped(out, text);
    xm_strbuf_add(out, "</FONT></TD></TR>");
}

static void
add_lines(struct xm_strbuf *out, const char *colour, const char *lines)
{
    while (*lines) {
        struct xm_strbuf line = {0};
        size_t n = strcspn(lines, "\n");
        xm_strbuf_add_n(&line, lines, n);
        add_line(out, colour, NULL, xm_strbuf_text(&line));
        xm_strbuf_free(&line);
        lines += n + (lines[n] == '\n');
    }
}

static void
add_kernels(struct xm_strbuf *out, const struct xm_program_view *v, uint32_t step)
{
    const char *one = v->steps[step].token, *many = v->steps[step].prompt;
    char label[48];
    if (strcmp(one, many) == 0) {
        add_line(out, "#1155cc", NULL, one);
        return;
    }
    add_line(out, "#1155cc", "one token", one);
    snprintf(label, sizeof(label), "%u tokens", v->prompt_tokens);
    add_line(out, "#1155cc", label, many);
}

/* Returns the width of a box in points, assuming a wide sans-serif font, because the picture is
 * laid out with one machine's fonts and viewed with another's. */
static size_t
width_of(const struct xm_step_view *s)
{
    const char *const texts[] = {s->detail, s->weights, s->token, s->prompt};
    size_t most =
        NAME_COLUMNS < strcspn(s->name, "/") ? NAME_COLUMNS : strcspn(s->name, "/");
    for (size_t i = 0; i < XM_ARRAY_LEN(texts); i++) {
        for (const char *line = texts[i]; *line;) {
            size_t n = strcspn(line, "\n");
            most = n > most ? n : most;
            line += n + (line[n] == '\n');
        }
    }
    most = most < TEXT_COLUMNS ? most : TEXT_COLUMNS;
    size_t of_text = most * 63 / 10, of_op = (strlen(s->op) + 10) * 80 / 10;
    return 12 + (of_text > of_op ? of_text : of_op);
}

static void
print_step(const struct xm_program_view *v, uint32_t step, struct xm_strbuf *out)
{
    const struct xm_step_view *s = &v->steps[step];
    xm_strbuf_printf(out,
                     "    s%u [label=<<TABLE BORDER=\"1\" CELLBORDER=\"0\" "
                     "CELLSPACING=\"0\" CELLPADDING=\"2\" BGCOLOR=\"%s\" "
                     "STYLE=\"ROUNDED\" WIDTH=\"%zu\"><TR><TD ALIGN=\"LEFT\"><B>",
                     step, colour_of(s), width_of(s));
    add_escaped(out, s->op, strlen(s->op));
    xm_strbuf_printf(out, "</B>  <FONT POINT-SIZE=\"9\" COLOR=\"#777777\">%u", step);
    if (s->weight_bytes)
        xm_strbuf_printf(out, "   %.3g MiB", (double)s->weight_bytes / 1048576.0);
    xm_strbuf_add(out, s->on_host ? " on the host</FONT>" : "</FONT>");
    xm_strbuf_add(out, "</TD></TR><TR><TD ALIGN=\"LEFT\"><FONT POINT-SIZE=\"10\" "
                       "COLOR=\"#777777\">");
    add_name(out, s->name);
    xm_strbuf_add(out, " </FONT></TD></TR>");
    add_lines(out, "#222222", s->detail);
    add_lines(out, "#38761d", s->weights);
    add_kernels(out, v, step);
    xm_strbuf_add(out, "</TABLE>>];\n");
}

/* ---- values between blocks ----------------------------------------------------------------- */

/* Whether a value enters the first of several equal layers from the steps before, and the others
 * from the previous layer. */
static bool
goes_from_layer_to_layer(const struct xm_program_view *v, uint32_t root, uint32_t block)
{
    bool has_kin = false;
    for (uint32_t i = 1; i < v->n_layers; i++)
        has_kin |= v->layer_kind[i] == 0;
    for (uint32_t s = 0; s < v->n_steps; s++) {
        const struct xm_step_view *step = &v->steps[s];
        for (uint32_t i = 0; step->block > block && i < step->n_in; i++) {
            if (v->values[step->in[i]].root == root)
                return false;
        }
    }
    return has_kin && block == 1;
}

/* Returns the block of the step that makes a value; XM_VIEW_NONE: no step makes it. */
static uint32_t
maker_block(const struct xm_program_view *v, uint32_t value)
{
    const uint32_t maker = v->values[value].maker;
    return maker == XM_VIEW_NONE ? XM_VIEW_NONE : v->steps[maker].block;
}

/* Appends the origin of a value from another block. */
static void
add_origin(struct xm_strbuf *out, const struct xm_program_view *v, uint32_t root,
           uint32_t block)
{
    const uint32_t maker = v->values[root].maker;
    const char *input = v->values[root].input ? v->values[root].input : "input";
    if (maker != XM_VIEW_NONE && maker_block(v, root) + 1 == block && block > 1)
        xm_strbuf_add(out, "from the previous layer");
    else if (maker != XM_VIEW_NONE)
        xm_strbuf_printf(
            out, "%s  %u%s", v->steps[maker].op, maker,
            goes_from_layer_to_layer(v, root, block) ? ", then the previous layer" : "");
    else
        add_escaped(out, input, strlen(input));
}

static bool
comes_from_outside(const struct xm_program_view *v, uint32_t value, uint32_t block)
{
    const uint32_t from = maker_block(v, value);
    return v->values[value].is_input || (from != XM_VIEW_NONE && from != block);
}

/* Prints one label for a value from outside, however many steps of the block read it; `drawn` is
 * indexed by value. */
static void
print_incoming(const struct xm_program_view *v, uint32_t step, uint32_t *drawn,
               struct xm_strbuf *out)
{
    const struct xm_step_view *s = &v->steps[step];
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (!comes_from_outside(v, s->in[i], s->block))
            continue;
        const uint32_t root = v->values[s->in[i]].root;
        if (drawn[root] != 1 + s->block) {
            drawn[root] = 1 + s->block;
            xm_strbuf_printf(out,
                             "    i%u_%u [shape=box style=\"rounded,filled\" "
                             "fillcolor=white color=\"#999999\" fontsize=10 "
                             "label=<",
                             s->block, root);
            add_origin(out, v, root, s->block);
            xm_strbuf_add(out, "<BR/><FONT POINT-SIZE=\"9\" COLOR=\"#777777\">");
            add_type(out, v, root);
            xm_strbuf_add(out, "</FONT>>];\n");
        }
        xm_strbuf_printf(out, "    i%u_%u -> s%u [color=\"#999999\"];\n", s->block, root,
                         step);
    }
}

/* Prints the arrows from steps of the same block. */
static void
print_arrows(const struct xm_program_view *v, uint32_t step, struct xm_strbuf *out)
{
    const struct xm_step_view *s = &v->steps[step];
    for (uint32_t i = 0; i < s->n_in; i++) {
        const uint32_t maker = v->values[s->in[i]].maker;
        if (maker == XM_VIEW_NONE || maker >= step || v->steps[maker].block != s->block)
            continue;
        xm_strbuf_printf(out,
                         "    s%u -> s%u [label=<<FONT POINT-SIZE=\"9\" "
                         "COLOR=\"#777777\"> ",
                         maker, step);
        add_type(out, v, s->in[i]);
        xm_strbuf_add(out, "</FONT>>];\n");
    }
}

/* Finds the values that leave the block: another block or the host reads them. */
static void
find_leaving(const struct xm_program_view *v, uint32_t block, bool *leaves)
{
    for (uint32_t s = 0; s < v->n_steps; s++) {
        const struct xm_step_view *step = &v->steps[s];
        for (uint32_t i = 0; i < step->n_in; i++) {
            if (step->block != block && maker_block(v, step->in[i]) == block)
                leaves[v->values[step->in[i]].root] = true;
        }
    }
    for (uint32_t i = 0; i < v->n_values; i++)
        leaves[i] |= v->values[i].output && maker_block(v, i) == block;
}

static void
print_leaving(const struct xm_program_view *v, uint32_t block, const bool *leaves,
              struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < v->n_values; i++) {
        if (!leaves[i])
            continue;
        const char *name = v->values[i].output;
        xm_strbuf_printf(out,
                         "    o%u_%u [shape=box style=\"rounded,filled\" "
                         "fillcolor=white color=\"#999999\" fontsize=10 label=<",
                         block, i);
        if (name)
            add_escaped(out, name, strlen(name));
        else
            xm_strbuf_add(out, block == 0             ? "to the layers"
                               : block == v->n_layers ? "out of the layers"
                                                      : "to the next layer");
        xm_strbuf_add(out, "<BR/><FONT POINT-SIZE=\"9\" COLOR=\"#777777\">");
        add_type(out, v, i);
        xm_strbuf_printf(out, "</FONT>>];\n    s%u -> o%u_%u [color=\"#999999\"];\n",
                         v->values[i].maker, block, i);
    }
}

/* ---- blocks -------------------------------------------------------------------------- */

/* Appends the layers of a kind: "0–4, 6". */
static void
add_layers(struct xm_strbuf *out, const struct xm_program_view *v, uint32_t kind)
{
    const char *comma = "";
    for (uint32_t i = 0; i < v->n_layers; i++) {
        uint32_t end = i;
        if (v->layer_kind[i] != kind)
            continue;
        while (end + 1 < v->n_layers && v->layer_kind[end + 1] == kind)
            end++;
        xm_strbuf_printf(out, "%s%u", comma, i);
        if (end > i)
            xm_strbuf_printf(out, "%s%u", end > i + 1 ? "–" : ", ", end);
        comma = ", ";
        i = end;
    }
}

static void
add_title(struct xm_strbuf *out, const struct xm_program_view *v, uint32_t block,
          bool alone)
{
    uint32_t alike = 0;
    if (v->n_layers == 0) {
        xm_strbuf_add(out, "all steps");
    } else if (block == 0) {
        xm_strbuf_add(out, "before the layers");
    } else if (block > v->n_layers) {
        xm_strbuf_add(out, "after the layers");
    } else {
        for (uint32_t i = 0; i < v->n_layers; i++)
            alike += v->layer_kind[i] == v->layer_kind[block - 1];
        xm_strbuf_printf(out,
                         alone        ? "layer %u"
                         : alike == 1 ? "layer "
                                      : "layers ",
                         block - 1);
        if (alone && alike > 1)
            xm_strbuf_add(out, " — alike are ");
        if (!alone || alike > 1)
            add_layers(out, v, v->layer_kind[block - 1]);
        if (!alone && alike > 1)
            xm_strbuf_printf(out, " — %u alike", alike);
    }
}

static void
print_block(const struct xm_program_view *v, uint32_t block, bool alone,
            struct xm_strbuf *out)
{
    uint32_t *drawn = xm_calloc(v->n_values + 1, sizeof(*drawn));
    bool *leaves = xm_calloc(v->n_values + 1, sizeof(*leaves));
    out->failed |= !drawn || !leaves;
    if (!out->failed) {
        xm_strbuf_printf(out, "  subgraph cluster_%u {\n    label=<<B>", block);
        add_title(out, v, block, alone);
        xm_strbuf_add(out, "</B>>;\n    style=\"rounded,filled\"; fillcolor=\"#fafafa\"; "
                           "color=\"#bbbbbb\"; fontsize=14; margin=12;\n");
        for (uint32_t s = 0; s < v->n_steps; s++) {
            if (v->steps[s].block != block)
                continue;
            print_step(v, s, out);
            print_incoming(v, s, drawn, out);
            print_arrows(v, s, out);
        }
        find_leaving(v, block, leaves);
        print_leaving(v, block, leaves, out);
        xm_strbuf_add(out, "  }\n");
    }
    xm_free(drawn);
    xm_free(leaves);
}

/* Returns the block's main input: the first value that it reads from a step of another block. */
static uint32_t
entry_of(const struct xm_program_view *v, uint32_t block)
{
    for (uint32_t s = 0; s < v->n_steps; s++) {
        const struct xm_step_view *step = &v->steps[s];
        for (uint32_t i = 0; step->block == block && i < step->n_in; i++) {
            if (comes_from_outside(v, step->in[i], block) &&
                v->values[step->in[i]].maker != XM_VIEW_NONE)
                return v->values[step->in[i]].root;
        }
    }
    return XM_VIEW_NONE;
}

/* Returns the last value that other blocks read from this one. */
static uint32_t
exit_of(const struct xm_program_view *v, uint32_t block)
{
    uint32_t found = XM_VIEW_NONE;
    for (uint32_t s = 0; s < v->n_steps; s++) {
        const struct xm_step_view *step = &v->steps[s];
        for (uint32_t i = 0; step->block != block && i < step->n_in; i++) {
            const struct xm_value_view *value = &v->values[step->in[i]];
            if (maker_block(v, step->in[i]) != block)
                continue;
            if (found == XM_VIEW_NONE || value->maker > v->values[found].maker)
                found = value->root;
        }
    }
    return found;
}

/* Prints an arrow between whole blocks, which are drawn below each other. */
static void
print_way(const struct xm_program_view *v, uint32_t from, uint32_t to,
          struct xm_strbuf *out)
{
    const uint32_t in = entry_of(v, to);
    uint32_t leaving = exit_of(v, from);
    if (in != XM_VIEW_NONE && maker_block(v, in) == from)
        leaving = in;
    if (in != XM_VIEW_NONE && leaving != XM_VIEW_NONE)
        xm_strbuf_printf(out,
                         "  o%u_%u -> i%u_%u [ltail=cluster_%u lhead=cluster_%u "
                         "penwidth=3 color=\"#999999\" minlen=2 weight=10];\n",
                         from, leaving, to, in, from, to);
}

static void
print_all(const struct xm_program_view *v, struct xm_strbuf *out)
{
    uint32_t before = 0;
    print_block(v, 0, false, out);
    for (uint32_t i = 0; i < v->n_layers; i++) {
        if (v->layer_kind[i] != i)
            continue;
        print_block(v, 1 + i, false, out);
        print_way(v, before, 1 + i, out);
        before = 1 + i;
    }
    if (v->n_layers) {
        print_block(v, 1 + v->n_layers, false, out);
        print_way(v, before, 1 + v->n_layers, out);
    }
}

void
xm_picture_print(const struct xm_program_view *v, const char *title, uint64_t layer,
                 struct xm_strbuf *out)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < v->n_layers; i++)
        kinds += v->layer_kind[i] == i;
    xm_strbuf_add(out, "digraph xemoe {\n"
                       "  graph [compound=true labelloc=t fontname=\"Helvetica\" "
                       "fontsize=16 ranksep=0.35 nodesep=0.3 bgcolor=white];\n"
                       "  node [shape=plain fontname=\"Helvetica\" fontsize=12];\n"
                       "  edge [arrowsize=0.7 fontname=\"Helvetica\"];\n  label=<");
    add_escaped(out, title, strlen(title));
    xm_strbuf_add(out, "<BR/><FONT POINT-SIZE=\"5\"> </FONT><BR/>"
                       "<FONT POINT-SIZE=\"11\">on ");
    add_escaped(out, v->device, strlen(v->device));
    xm_strbuf_printf(out, "; %u steps, %u layers of %u kind%s%s</FONT><BR/> >;\n",
                     v->n_steps, v->n_layers, kinds, xm_plural(kinds),
                     layer == XM_PICTURE_OF_ALL && v->n_layers ? "; one of each is drawn"
                                                               : "");
    if (layer == XM_PICTURE_OF_ALL)
        print_all(v, out);
    else
        print_block(v, 1 + (uint32_t)layer, true, out);
    xm_strbuf_add(out, "}\n");
}
