/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/writers/openvino_ir_write.h"

#include <ctype.h>
#include <string.h>

struct writer {
    struct xm_strbuf text;
    struct xm_bin_file *bin;
    struct xm_error *err;
};

static void
add_escaped(struct xm_strbuf *out, const char *s)
{
    xm_strbuf_add_markup(out, s, strlen(s));
}

/* ---- shapes ---- */

/* Writes an element type as ports have it: "FP32", "I64", "BOOL". */
static void
add_precision(struct xm_strbuf *out, enum xm_element e)
{
    if (e == XM_F16 || e == XM_F32 || e == XM_F64) {
        xm_strbuf_printf(out, "FP%u", xm_element_bits(e));
        return;
    }
    const char *text = e == XM_BOOL ? "bool" : xm_element_text(e);
    for (; *text; text++) {
        char c = (char)toupper((unsigned char)*text);
        xm_strbuf_add_n(out, &c, 1);
    }
}

static void
add_port(struct xm_strbuf *out, uint32_t id, const struct xm_value *v, bool is_output)
{
    xm_strbuf_printf(out, "\t\t\t\t<port id=\"%u\" precision=\"", id);
    add_precision(out, v->type.element);
    xm_strbuf_add(out, "\"");
    for (uint32_t i = 0; is_output && i < v->n_names; i++) {
        xm_strbuf_add(out, i ? "," : " names=\"");
        add_escaped(out, v->names[i]);
    }
    xm_strbuf_add(out, is_output && v->n_names ? "\">\n" : ">\n");
    for (uint32_t i = 0; i < v->type.shape.rank; i++) {
        struct xm_dim d = v->type.shape.dim[i];
        xm_strbuf_printf(out, "\t\t\t\t\t<dim>%lld</dim>\n",
                         xm_dim_is_const(d) ? (long long)d.n : -1LL);
    }
    xm_strbuf_add(out, "\t\t\t\t</port>\n");
}

/* Writes a shape, such as "?,2,?,64". */
static void
add_shape(struct xm_strbuf *out, const struct xm_shape *s)
{
    for (uint32_t i = 0; i < s->rank; i++) {
        xm_strbuf_add(out, i ? "," : "");
        if (xm_dim_is_const(s->dim[i]))
            xm_strbuf_printf(out, "%lld", (long long)s->dim[i].n);
        else
            xm_strbuf_add(out, "?");
    }
}

/* ---- data of layers ---- */

static enum xm_status
add_constant(struct writer *w, const struct xm_node *n)
{
    const struct xm_data *d = &n->attr.data;
    const uint8_t *p = d->bytes;
    bool inside = p >= w->bin->base && p < w->bin->base + w->bin->capacity;
    if (!inside) {
        uint8_t *copy = xm_bin_file_take(w->bin, d->n_bytes, 8, w->err);
        if (!copy)
            return w->err ? w->err->status : XM_IO;
        memcpy(copy, p, (size_t)d->n_bytes);
        p = copy;
    }
    xm_strbuf_printf(&w->text, " element_type=\"%s\" shape=\"",
                     xm_element_text(n->out[0].type.element));
    add_shape(&w->text, &n->out[0].type.shape);
    xm_strbuf_printf(&w->text, "\" offset=\"%llu\" size=\"%llu\"",
                     (unsigned long long)(p - w->bin->base),
                     (unsigned long long)d->n_bytes);
    return XM_OK;
}

static void
add_declared(struct writer *w, const struct xm_node *n)
{
    const struct xm_type *t = &n->out[0].type;
    bool is_state = n->op == XM_OP_READ_VALUE;
    xm_strbuf_printf(&w->text, " %s=\"%s\" %s=\"",
                     is_state ? "variable_type" : "element_type",
                     xm_element_text(t->element), is_state ? "variable_shape" : "shape");
    add_shape(&w->text, &t->shape);
    xm_strbuf_add(&w->text, "\"");
}

static enum xm_status
add_data(struct writer *w, const struct xm_node *n)
{
    size_t n_attrs = 0;
    const struct xm_attr_info *attrs = xm_op_attrs(n->op, &n_attrs);
    xm_strbuf_add(&w->text, "\t\t\t<data");
    if (n->op == XM_OP_CONST)
        XM_TRY(add_constant(w, n));
    if (n->op == XM_OP_PARAMETER || n->op == XM_OP_READ_VALUE)
        add_declared(w, n);
    for (size_t i = 0; i < n_attrs; i++) {
        struct xm_strbuf value = {0};
        if (!attrs[i].ir_name)
            continue;
        if (attrs[i].kind == XM_ATTR_STRING)
            xm_strbuf_add(
                &value, *(const char *const *)((const char *)&n->attr + attrs[i].offset));
        else
            xm_attr_print(&n->attr, &attrs[i], &value);
        xm_strbuf_printf(&w->text, " %s=\"", attrs[i].ir_name);
        add_escaped(&w->text, xm_strbuf_text(&value));
        xm_strbuf_add(&w->text, "\"");
        xm_strbuf_free(&value);
    }
    xm_strbuf_add(&w->text, " />\n");
    return XM_OK;
}

/* Returns the newest opset in the operation's list. */
static int
opset_of(const struct xm_op_info *info)
{
    int newest = 1, n = 0;
    for (const char *p = info->opsets; *p; p++) {
        n = *p == ',' ? 0 : 10 * n + (*p - '0');
        newest = n > newest ? n : newest;
    }
    return newest;
}

static enum xm_status
add_layer(struct writer *w, const struct xm_node *n)
{
    const struct xm_op_info *info = xm_op_info(n->op);
    uint32_t port = 0;
    if (!info->ir_type)
        return xm_fail(w->err, XM_UNSUPPORTED,
                       "%s '%s' is not an operation of OpenVINO IR and cannot be written",
                       info->text, n->name);
    xm_strbuf_printf(&w->text, "\t\t<layer id=\"%u\" name=\"", n->id);
    add_escaped(&w->text, n->name[0] ? n->name : info->text);
    xm_strbuf_printf(&w->text, "\" type=\"%s\" version=\"opset%d\">\n", info->ir_type,
                     opset_of(info));
    XM_TRY(add_data(w, n));
    if (n->n_in)
        xm_strbuf_add(&w->text, "\t\t\t<input>\n");
    for (uint32_t i = 0; i < n->n_in; i++)
        add_port(&w->text, port++, xm_in(n, i), false);
    if (n->n_in)
        xm_strbuf_add(&w->text, "\t\t\t</input>\n");
    bool has_output = n->op != XM_OP_RESULT;
    if (has_output)
        xm_strbuf_add(&w->text, "\t\t\t<output>\n");
    for (uint32_t i = 0; has_output && i < n->n_out; i++)
        add_port(&w->text, port++, &n->out[i], true);
    if (has_output)
        xm_strbuf_add(&w->text, "\t\t\t</output>\n");
    xm_strbuf_add(&w->text, "\t\t</layer>\n");
    return XM_OK;
}

static void
add_edges(struct writer *w, const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_in(n, i);
        xm_strbuf_printf(&w->text,
                         "\t\t<edge from-layer=\"%u\" from-port=\"%u\" to-layer=\"%u\" "
                         "to-port=\"%u\" />\n",
                         v->node->id, v->node->n_in + v->index, n->id, i);
    }
}

enum xm_status
xm_openvino_ir_write(const struct xm_graph *g, const struct xm_new_file *xml,
                     struct xm_bin_file *bin, struct xm_error *err)
{
    struct writer w = {.bin = bin, .err = err};
    enum xm_status s = XM_OK;
    xm_strbuf_add(&w.text, "<?xml version=\"1.0\"?>\n<net name=\"");
    add_escaped(&w.text, g->name);
    xm_strbuf_add(&w.text, "\" version=\"11\">\n\t<layers>\n");
    for (const struct xm_node *n = g->first; n && s == XM_OK; n = n->next)
        s = add_layer(&w, n);
    xm_strbuf_add(&w.text, "\t</layers>\n\t<edges>\n");
    for (const struct xm_node *n = g->first; n; n = n->next)
        add_edges(&w, n);
    xm_strbuf_add(&w.text, "\t</edges>\n</net>\n");
    if (s == XM_OK)
        s = xm_new_file_write(xml, &w.text, err);
    xm_strbuf_free(&w.text);
    return s;
}
