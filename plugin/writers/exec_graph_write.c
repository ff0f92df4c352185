/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/writers/exec_graph_write.h"

#include <string.h>

#include "runtime/util/new_file.h"

static void
add_attribute(struct xm_strbuf *out, const char *name, const char *value)
{
    xm_strbuf_printf(out, " %s=\"", name);
    xm_strbuf_add_markup(out, value, strlen(value));
    xm_strbuf_add(out, "\"");
}

/* ---- layers -------------------------------------------------------------------------- */

static void
add_precisions(struct xm_strbuf *out, const struct xm_exec_node *n)
{
    struct xm_strbuf list = {0};
    for (uint32_t i = 0; i < n->n_out; i++)
        xm_strbuf_printf(&list, "%s%s", i ? "," : "", xm_element_text(n->out[i].element));
    add_attribute(out, "outputPrecisions", xm_strbuf_text(&list));
    xm_strbuf_free(&list);
}

/* Writes the node's mean time in microseconds, the unit that programs expect. */
static void
add_time(struct xm_strbuf *out, const struct xm_exec_node *n)
{
    struct xm_strbuf text = {0};
    if (n->mean_ns)
        xm_strbuf_printf(&text, "%llu", (unsigned long long)(n->mean_ns + 500) / 1000);
    else
        xm_strbuf_add(&text, "not_executed");
    add_attribute(out, "execTimeMcs", xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

static void
add_data(struct xm_strbuf *out, const struct xm_exec_node *n, uint32_t order)
{
    struct xm_strbuf exec_type = {0};
    xm_strbuf_add(&exec_type, n->kernels[0] ? n->kernels : "undef");
    if (n->kernels[0])
        xm_strbuf_printf(&exec_type, "_%s", n->precision);
    xm_strbuf_printf(out, "\t\t\t<data execOrder=\"%u\"", order);
    add_time(out, n);
    add_attribute(out, "execType", xm_strbuf_text(&exec_type));
    add_attribute(out, "layerType", n->type);
    add_attribute(out, "originalLayersNames", n->layers);
    add_precisions(out, n);
    add_attribute(out, "primitiveType", n->kernels);
    add_attribute(out, "runsOnHost", n->on_host ? "true" : "false");
    add_attribute(out, "runtimePrecision", n->precision);
    xm_strbuf_add(out, " />\n");
    xm_strbuf_free(&exec_type);
}

static void
add_port(struct xm_strbuf *out, const struct xm_exec_port *p, uint32_t id)
{
    xm_strbuf_printf(out, "\t\t\t\t<port id=\"%u\" precision=\"%s\">\n", id,
                     xm_element_text(p->element));
    for (uint32_t i = 0; i < p->rank; i++)
        xm_strbuf_printf(out, "\t\t\t\t\t<dim>%lld</dim>\n", (long long)p->dim[i]);
    xm_strbuf_add(out, "\t\t\t\t</port>\n");
}

static void
add_layer(struct xm_strbuf *out, const struct xm_exec_graph *g, uint32_t i)
{
    const struct xm_exec_node *n = &g->nodes[i];
    xm_strbuf_printf(out, "\t\t<layer id=\"%u\"", i);
    add_attribute(out, "name", n->name[0] ? n->name : n->type);
    add_attribute(out, "type", n->type);
    xm_strbuf_add(out, ">\n");
    add_data(out, n, i);
    if (n->n_in)
        xm_strbuf_add(out, "\t\t\t<input>\n");
    for (uint32_t k = 0; k < n->n_in; k++)
        add_port(out, &g->nodes[n->in[k].node].out[n->in[k].result], k);
    if (n->n_in)
        xm_strbuf_add(out, "\t\t\t</input>\n");
    if (n->n_out)
        xm_strbuf_add(out, "\t\t\t<output>\n");
    for (uint32_t k = 0; k < n->n_out; k++)
        add_port(out, &n->out[k], n->n_in + k);
    if (n->n_out)
        xm_strbuf_add(out, "\t\t\t</output>\n");
    xm_strbuf_add(out, "\t\t</layer>\n");
}

static void
add_edges(struct xm_strbuf *out, const struct xm_exec_graph *g, uint32_t i)
{
    const struct xm_exec_node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->n_in; k++)
        xm_strbuf_printf(out,
                         "\t\t<edge from-layer=\"%u\" from-port=\"%u\" to-layer=\"%u\" "
                         "to-port=\"%u\" />\n",
                         n->in[k].node, g->nodes[n->in[k].node].n_in + n->in[k].result, i,
                         k);
}

/* ---- the file ------------------------------------------------------------------------ */

enum xm_status
xm_exec_graph_write(const struct xm_exec_graph *g, const char *name, const char *xml_path,
                    struct xm_error *err)
{
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text, "<?xml version=\"1.0\"?>\n<net");
    add_attribute(&text, "name", name);
    xm_strbuf_add(&text, " version=\"11\">\n\t<layers>\n");
    for (uint32_t i = 0; i < g->n; i++)
        add_layer(&text, g, i);
    xm_strbuf_add(&text, "\t</layers>\n\t<edges>\n");
    for (uint32_t i = 0; i < g->n; i++)
        add_edges(&text, g, i);
    xm_strbuf_add(&text, "\t</edges>\n</net>\n");
    const enum xm_status s = xm_write_text_file(xml_path, &text, err);
    xm_strbuf_free(&text);
    return s;
}
