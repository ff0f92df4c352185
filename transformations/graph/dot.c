/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the graph in the language of Graphviz; constants are small grey boxes.
 */
#include "transformations/graph/text.h"

static void
print_node(const struct xm_node *n, struct xm_strbuf *out)
{
    struct xm_strbuf label = {0};
    xm_strbuf_printf(&label, "%%%u %s", n->id, xm_op_info(n->op)->text);
    for (uint32_t i = 0; i < n->n_out; i++) {
        xm_strbuf_add(&label, "\n");
        xm_value_print_type(&n->out[i], &label);
    }
    if (*n->name)
        xm_strbuf_printf(&label, "\n%s", n->name);
    xm_strbuf_printf(out, "  n%u [label=", n->id);
    xm_text_add_quoted(out, xm_strbuf_text(&label));
    if (xm_value_is_const(&n->out[0]))
        xm_strbuf_add(out, " color=grey fontcolor=grey");
    xm_strbuf_add(out, "];\n");
    out->failed = out->failed || !xm_strbuf_ok(&label);
    xm_strbuf_free(&label);
}

void
xm_graph_print_dot(const struct xm_graph *g, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "digraph ");
    xm_text_add_quoted(out, g->name);
    xm_strbuf_add(out, " {\n  node [shape=box fontname=\"monospace\"];\n");
    xm_for_each_node(n, g)
    {
        print_node(n, out);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (!xm_is_none(xm_in(n, i)))
                xm_strbuf_printf(out, "  n%u -> n%u [label=\"%u\"];\n",
                                 xm_in(n, i)->node->id, n->id, i);
    }
    xm_strbuf_add(out, "}\n");
}
