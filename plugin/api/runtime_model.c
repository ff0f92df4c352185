/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime models: the steps of a compiled model, as a model that can only be queried and written.
 * Also writes models that were read.
 */
#include <string.h>
#include <sys/stat.h>

#include "plugin/api/api.h"
#include "plugin/writers/exec_graph_write.h"
#include "plugin/writers/openvino_ir_write.h"
#include "xemoe/xemoe.h"

ov_status_e
xm_api_model_check(const ov_model_t *m, const char *what)
{
    if (!m->runtime_of)
        return OK;
    return xm_api_fail(GENERAL_ERROR,
                       "a runtime model only describes a compiled model; it cannot be %s",
                       what);
}

/* ---- making ------------------------------------------------------------------------ */

/* Makes a graph without nodes, with the model's name. */
static enum xm_status
name_graph(struct xm_compiled *c, struct xm_graph **out, struct xm_error *err)
{
    struct xm_strbuf name = {0};
    enum xm_status s = c->ops->get_property(c, "NETWORK_NAME", &name, err);
    if (s == XM_OK) {
        *out = xm_graph_create(xm_strbuf_text(&name));
        if (!*out || !xm_strbuf_ok(&name))
            s = xm_no_memory(err, "a runtime model");
    }
    xm_strbuf_free(&name);
    return s;
}

static enum xm_status
describe(struct xm_compiled *c, ov_model_t *m, struct xm_error *err)
{
    if (!c->ops->exec_graph)
        return xm_fail(err, XM_UNSUPPORTED, "this device does not offer a runtime model");
    return c->ops->exec_graph(c, &m->exec, err);
}

ov_status_e
ov_compiled_model_get_runtime_model(const ov_compiled_model_t *compiled_model,
                                    ov_model_t **model)
{
    struct xm_error err = {0};
    struct xm_graph *g = NULL;
    ov_model_t *m = NULL;
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !model)
        return xm_api_refuse(__func__);
    struct xm_compiled *c = compiled_model->compiled;
    if (name_graph(c, &g, &err) != XM_OK) {
        xm_graph_destroy(g);
        return xm_api_error(&err);
    }
    ov_status_e s = xm_api_model_create(g, &m);
    if (s != OK)
        return s;
    m->runtime_of = c;
    m->ports = c->ports;
    xm_compiled_ref(c);
    if (describe(c, m, &err) != XM_OK) {
        ov_model_free(m);
        return xm_api_error(&err);
    }
    *model = m;
    return OK;
}

/* ---- writing ----------------------------------------------------------------------- */

/* Returns the size of all constants, each padded to a multiple of 8 bytes. */
static uint64_t
constant_bytes(const struct xm_graph *g)
{
    uint64_t n = 8;
    xm_for_each_node(node, g)
    {
        if (node->op == XM_OP_CONST)
            n += xm_align_up(node->attr.data.n_bytes, 8);
    }
    return n;
}

/* Returns "a.bin" for "a.xml". */
static char *
bin_path(const char *xml_path)
{
    size_t n = strlen(xml_path);
    if (n > 4 && strcmp(xml_path + n - 4, ".xml") == 0)
        n -= 4;
    struct xm_strbuf text = {0};
    xm_strbuf_add_n(&text, xml_path, n);
    xm_strbuf_add(&text, ".bin");
    return xm_strbuf_take(&text);
}

/* Refuses to overwrite a file that the model's weights are mapped from, because the mapped weights
 * would change. */
static enum xm_status
check_target(const struct xm_graph *g, const char *path, struct xm_error *err)
{
    struct stat to, from;
    if (stat(path, &to) != 0)
        return XM_OK;
    for (uint32_t i = 0; i < g->n_mappings; i++) {
        const struct xm_file_mapping *file = g->mappings[i]->file;
        if (file && stat(file->path, &from) == 0 && from.st_dev == to.st_dev &&
            from.st_ino == to.st_ino)
            return xm_fail(
                err, XM_INVALID,
                "cannot write '%.300s': this file holds the weights of the model", path);
    }
    return XM_OK;
}

static enum xm_status
write_both(const struct xm_graph *g, const struct xm_new_file *xml,
           const struct xm_new_file *weights, struct xm_error *err)
{
    struct xm_bin_file bin;
    XM_TRY(xm_bin_file_create(&bin, weights, constant_bytes(g), err));
    const enum xm_status s = xm_openvino_ir_write(g, xml, &bin, err);
    const enum xm_status closed = xm_bin_file_close(&bin, s == XM_OK ? err : NULL);
    return s == XM_OK ? closed : s;
}

static enum xm_status
save_graph(const struct xm_graph *g, const char *xml_path, struct xm_error *err)
{
    struct xm_new_file xml = {0}, bin = {0};
    char *path = bin_path(xml_path);
    enum xm_status s =
        path ? check_target(g, xml_path, err) : xm_no_memory(err, "the path of a model");
    if (s == XM_OK)
        s = check_target(g, path, err);
    if (s == XM_OK)
        s = xm_new_file_begin(&xml, xml_path, err);
    if (s == XM_OK)
        s = xm_new_file_begin(&bin, path, err);
    if (s == XM_OK)
        s = write_both(g, &xml, &bin, err);
    s = xm_new_file_end(&bin, s, err);
    s = xm_new_file_end(&xml, s, err);
    xm_free(path);
    return s;
}

ov_status_e
xm_model_save(const ov_model_t *model, const char *xml_path)
{
    struct xm_error err = {0};
    if (!xm_api_is(model, XM_API_MODEL) || !xml_path)
        return xm_api_refuse(__func__);
    if (model->runtime_of)
        xm_exec_graph_write(&model->exec, model->graph->name, xml_path, &err);
    else
        save_graph(model->graph, xml_path, &err);
    return xm_api_error(&err);
}
