/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints graph text, one line for each node. The grammar is in docs/graph_text.md; parse.c and
 * parse_*.c read it.
 */
#include <string.h>

#include "transformations/graph/text.h"
#include "transformations/graph/text_files.h"
#include "transformations/graph/text_format.h"

void
xm_text_add_quoted(struct xm_strbuf *out, const char *s)
{
    xm_strbuf_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            xm_strbuf_printf(out, "\\%c", c);
        else if (c == '\n')
            xm_strbuf_add(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            xm_strbuf_printf(out, "\\x%02x", c);
        else
            xm_strbuf_add_n(out, s, 1);
    }
    xm_strbuf_add(out, "\"");
}

/* ---- attributes -------------------------------------------------------------------- */

/* Prints the attributes that differ from their defaults. */
static void
print_attrs(const struct xm_node *n, struct xm_strbuf *out)
{
    size_t n_attrs;
    const struct xm_attr_info *info = xm_op_attrs(n->op, &n_attrs);
    struct xm_strbuf value = {0}, normal = {0};
    for (size_t i = 0; i < n_attrs; i++) {
        xm_strbuf_clear(&value);
        xm_strbuf_clear(&normal);
        xm_attr_print(&n->attr, &info[i], &value);
        if (info[i].default_text && info[i].kind == XM_ATTR_STRING)
            xm_text_add_quoted(&normal, info[i].default_text);
        else if (info[i].default_text)
            xm_strbuf_add(&normal, info[i].default_text);
        if (!xm_strbuf_ok(&value) || !xm_strbuf_ok(&normal))
            out->failed = true;
        else if (!info[i].default_text ||
                 strcmp(xm_strbuf_text(&value), xm_strbuf_text(&normal)) != 0)
            xm_strbuf_printf(out, " %s=%s", info[i].text, xm_strbuf_text(&value));
    }
    xm_strbuf_free(&value);
    xm_strbuf_free(&normal);
}

/* Whether a constant is printed as a blob: it has too many elements, not the bytes of its type, or
 * a type that braces cannot show. Else *count is the number of elements. */
static bool
is_blob(const struct xm_node *n, uint64_t *count)
{
    const struct xm_type *t = &n->out[0].type;
    uint64_t bytes;
    if (n->op != XM_OP_CONST)
        return n->op == XM_OP_WEIGHT;
    return !xm_static_elements(&t->shape, count) || *count > XM_TEXT_INLINE ||
           !xm_text_is_inline(t->element) || !n->attr.data.bytes ||
           !xm_element_bytes(t->element, *count, &bytes) || bytes != n->attr.data.n_bytes;
}

bool
xm_node_is_blob(const struct xm_node *n)
{
    uint64_t count;
    return is_blob(n, &count);
}

static void
print_element(enum xm_element e, const uint8_t *bytes, uint64_t i, struct xm_strbuf *out)
{
    if (e == XM_F64) {
        double x;
        memcpy(&x, bytes + i * sizeof(x), sizeof(x));
        xm_strbuf_printf(out, "%.17g", x);
    } else if (xm_element_is_float(e)) {
        xm_strbuf_printf(out, "%.9g", (double)xm_load_float(e, bytes, i));
    } else {
        xm_strbuf_printf(out, "%lld", (long long)xm_load_int(e, bytes, i));
    }
}

static void
print_const(const struct xm_node *n, struct xm_strbuf *out)
{
    uint64_t count;
    if (is_blob(n, &count))
        return;
    xm_strbuf_add(out, " {");
    for (uint64_t i = 0; i < count; i++) {
        xm_strbuf_add(out, i ? ", " : "");
        print_element(n->out[0].type.element, n->attr.data.bytes, i, out);
    }
    xm_strbuf_add(out, "}");
}

static void
print_weight(const struct xm_node *n, struct xm_strbuf *out)
{
    const struct xm_weight *w = &n->attr.weight;
    xm_strbuf_printf(out, " %s", xm_weight_format_text(w));
    if (w->group) {
        xm_strbuf_printf(out, " group=%llu scale=%s", (unsigned long long)w->group,
                         xm_element_text(w->scale_element));
        if (w->order == XM_SCALE_GROUP_MAJOR)
            xm_strbuf_add(out, " order=group_major");
        if (w->zero_point.p)
            xm_strbuf_printf(out, " zp=%s", xm_element_text(w->zero_point_element));
        if (w->zero_point.p && w->zero_point_is_scalar)
            xm_strbuf_add(out, " zp_scalar=true");
    }
    if (w->factor.p)
        xm_strbuf_printf(out, " factors=%llu",
                         (unsigned long long)(w->factor.n / sizeof(float)));
}

static void
print_dims(const struct xm_content *c, struct xm_strbuf *out)
{
    xm_strbuf_add(out, " {");
    for (uint32_t i = 0; i < c->n; i++) {
        xm_strbuf_add(out, i ? ", " : "");
        xm_dim_print(c->e[i], out);
    }
    xm_strbuf_add(out, "}");
}

static void
print_names(const struct xm_value *v, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < v->n_names; i++) {
        xm_strbuf_add(out, i ? "," : " names={");
        xm_text_add_quoted(out, v->names[i]);
    }
    xm_strbuf_add(out, v->n_names ? "}" : "");
}

/* ---- lines ------------------------------------------------------------------------- */

bool
xm_text_has_declared_type(enum xm_op op)
{
    switch (op) {
    case XM_OP_PARAMETER:
    case XM_OP_CONST:
    case XM_OP_WEIGHT:
    case XM_OP_SHAPE_VALUE:
    case XM_OP_READ_VALUE:
        return true;
    default:
        return false;
    }
}

bool
xm_text_is_inline(enum xm_element e)
{
    return xm_element_writable(e);
}

/* Prints what follows the operands: the data of a constant, and the attributes. */
static void
print_data(const struct xm_node *n, struct xm_strbuf *out)
{
    if (n->op == XM_OP_CONST)
        print_const(n, out);
    else if (n->op == XM_OP_WEIGHT)
        print_weight(n, out);
    else if (n->op == XM_OP_SHAPE_VALUE)
        print_dims(&n->attr.shape_value, out);
    print_attrs(n, out);
}

static void
print_operands(const struct xm_node *n, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_in(n, i);
        xm_strbuf_add(out, i ? ", " : " ");
        if (xm_is_none(v))
            xm_strbuf_add(out, "_");
        else
            xm_strbuf_printf(out, "%%%u", v->node->id + v->index);
    }
}

static void
print_types(const struct xm_node *n, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        xm_strbuf_add(out, i ? ", " : " : ");
        xm_value_print_type(&n->out[i], out);
        print_names(&n->out[i], out);
    }
}

/* Prints a node. `files`: the graph in whose files the places of blobs are searched; NULL: no
 * places are printed. */
static void
print_node(const struct xm_node *n, const struct xm_graph *files, struct xm_strbuf *out)
{
    bool declared = xm_text_has_declared_type(n->op);
    bool has_result = n->op != XM_OP_RESULT;
    for (uint32_t i = 0; has_result && i < n->n_out; i++)
        xm_strbuf_printf(out, "%s%%%u", i ? ", " : "", n->id + i);
    xm_strbuf_printf(out, "%s%s", has_result ? " = " : "", xm_op_info(n->op)->text);
    if (declared) {
        xm_strbuf_add(out, " ");
        xm_type_print(&n->out[0].type, out);
    }
    print_operands(n, out);
    print_data(n, out);
    if (xm_node_is_blob(n)) {
        xm_strbuf_printf(out, " @%u", n->id);
        if (files)
            xm_text_print_places(files, n, out);
    }
    if (has_result && !declared)
        print_types(n, out);
    else
        print_names(&n->out[0], out);
    if (*n->name) {
        xm_strbuf_add(out, " # ");
        xm_text_add_quoted(out, n->name);
    }
}

void
xm_node_print(const struct xm_node *n, struct xm_strbuf *out)
{
    print_node(n, NULL, out);
}

static void
print_graph(const struct xm_graph *g, bool with_places, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "graph ");
    xm_text_add_quoted(out, g->name);
    xm_strbuf_add(out, "\n");
    if (with_places)
        xm_text_print_files(g, out);
    for (uint32_t i = 0; i < g->n_properties; i++) {
        xm_strbuf_add(out, "property ");
        xm_text_add_quoted(out, g->properties[i].key);
        xm_strbuf_add(out, " = ");
        xm_text_add_quoted(out, g->properties[i].value);
        xm_strbuf_add(out, "\n");
    }
    xm_for_each_node(n, g)
    {
        print_node(n, with_places ? g : NULL, out);
        xm_strbuf_add(out, "\n");
    }
}

void
xm_graph_print(const struct xm_graph *g, struct xm_strbuf *out)
{
    print_graph(g, false, out);
}

void
xm_graph_print_dump(const struct xm_graph *g, uint64_t most, struct xm_strbuf *out)
{
    print_graph(g, xm_text_wants_places(g, most), out);
}
