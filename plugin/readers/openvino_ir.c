/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/readers/openvino_ir.h"

#include <string.h>

#include "plugin/exported.h"
#include "plugin/readers/ir_records.h"
#include "runtime/util/mapped_file.h"

static enum xm_status
read_net(struct xm_ir_net *net, const char *xml, size_t n,
         const struct xm_ir_weights *weights, struct xm_mapping *owner,
         struct xm_graph **out, struct xm_error *err)
{
    XM_TRY(xm_ir_parse(xml, n, net, err));
    XM_TRY(xm_ir_link(net, err));
    struct xm_graph *g = xm_graph_create(net->name ? net->name : "");
    if (!g)
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    enum xm_status status = XM_OK;
    if (owner && xm_graph_add_mapping(g, owner) != XM_OK)
        status = xm_fail(err, XM_NO_MEMORY, "out of memory");
    if (status == XM_OK)
        status = xm_ir_build(net, weights, NULL, g, err);
    if (status == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return status;
}

static enum xm_status
read_text(const char *xml, size_t n, const struct xm_ir_weights *weights,
          struct xm_mapping *owner, struct xm_graph **out, struct xm_error *err)
{
    struct xm_ir_net net = {0};
    enum xm_status status = read_net(&net, xml, n, weights, owner, out, err);
    xm_arena_free(&net.arena);
    return status;
}

/* Returns "dir/model.bin" for "dir/model.xml"; the caller frees it. */
static char *
default_bin_path(const char *xml_path)
{
    size_t n = strlen(xml_path);
    char *path = xm_malloc(n + sizeof(".bin"));
    if (!path)
        return NULL;
    if (n >= 4 && strcmp(xml_path + n - 4, ".xml") == 0)
        n -= 4;
    memcpy(path, xml_path, n);
    memcpy(path + n, ".bin", sizeof(".bin"));
    return path;
}

/* Maps the weights file. If it does not exist, *out is NULL unless the caller gave its path
 * (asked_for): that is a failure. */
static enum xm_status
open_weights(const char *path, bool asked_for, struct xm_mapping **out,
             struct xm_error *err)
{
    struct xm_error local = {0};
    enum xm_status status = xm_file_mapping_open(path, out, &local);
    if (status == XM_OK || (status == XM_NOT_FOUND && !asked_for))
        return XM_OK;
    return xm_fail(err, status, "%s", local.text);
}

static enum xm_status
read_files(const struct xm_mapped_file *xml, const char *bin_path, bool asked_for,
           struct xm_graph **out, struct xm_error *err)
{
    struct xm_mapping *m = NULL;
    XM_TRY(open_weights(bin_path, asked_for, &m, err));
    struct xm_ir_weights weights = {.name = bin_path};
    if (m) {
        weights.bytes = m->file->file.bytes;
        weights.n_bytes = m->file->file.n_bytes;
    }
    enum xm_status status =
        read_text((const char *)xml->bytes, (size_t)xml->n_bytes, &weights, m, out, err);
    xm_mapping_unref(m); /* the graph holds its own reference */
    return status;
}

/* Other kinds of files that users pass instead of an IR, by their first bytes. */
static const struct {
    const char *begin;
    size_t n;
    const char *what;
} others[] = {
    {"GGUF", 4, "a GGUF file"},
    {"tjgg", 4,
     "a llama.cpp model in a format older than GGUF, which must be converted again"},
    {"lmgg", 4,
     "a llama.cpp model in a format older than GGUF, which must be converted again"},
    {"fmgg", 4,
     "a llama.cpp model in a format older than GGUF, which must be converted again"},
    {"PK\3\4", 4, "a zip archive, as PyTorch writes it"},
    {"\x93NUMPY", 6, "a NumPy array"},
    {"{", 1, "JSON"},
    {XM_BLOB_MAGIC, sizeof(XM_BLOB_MAGIC) - 1, "a compiled model of xemoe"},
};

enum { MOST_SEEN = 512 }; /* bytes looked at to tell text from binary data */

/* Returns whether the file begins as safetensors do: the length of a header, 8 bytes, then the
 * header, JSON. */
static bool
is_safetensors(const struct xm_mapped_file *f)
{
    enum { LENGTH = 8 };
    return f->n_bytes > LENGTH + 2 && memcmp(f->bytes + LENGTH, "{\"", 2) == 0 &&
           memcmp(f->bytes + 4, "\0\0\0\0", 4) == 0;
}

/* Returns a description of a file that cannot be XML; NULL: it may be XML, in UTF-8 or UTF-16. */
static const char *
what_else(const struct xm_mapped_file *f)
{
    size_t at = f->n_bytes >= 3 && memcmp(f->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (f->n_bytes == 0)
        return "empty";
    for (size_t i = 0; i < XM_ARRAY_LEN(others); i++) {
        if (f->n_bytes >= others[i].n &&
            memcmp(f->bytes, others[i].begin, others[i].n) == 0)
            return others[i].what;
    }
    if (is_safetensors(f))
        return "a safetensors file, which has weights without a graph";
    while (at < f->n_bytes && memchr(" \t\r\n", f->bytes[at], 4))
        at++;
    if (at == f->n_bytes || f->bytes[at] == '<' || f->bytes[0] >= 0xfe)
        return NULL;
    const size_t n_seen = f->n_bytes < MOST_SEEN ? (size_t)f->n_bytes : MOST_SEEN;
    const bool is_text = f->bytes[at] >= 0x20 && f->bytes[at] < 0x7f;
    return is_text && !memchr(f->bytes, 0, n_seen) ? "text" : "binary data";
}

static enum xm_status
read_xml(const char *xml_path, const char *bin_path, bool asked_for,
         struct xm_graph **out, struct xm_error *err)
{
    struct xm_mapped_file xml = {0};
    XM_TRY(xm_mapped_file_open(xml_path, &xml, err));
    const char *other = what_else(&xml);
    enum xm_status status =
        other ? xm_fail(err, XM_UNSUPPORTED,
                        "it is %s; expected an OpenVINO IR (a file openvino_model.xml, "
                        "or a folder with one) or a GGUF file",
                        other)
              : read_files(&xml, bin_path, asked_for, out, err);
    xm_mapped_file_close(&xml);
    if (status != XM_OK)
        xm_error_prefix(err, "%.150s", xml_path);
    return status;
}

enum xm_status
xm_openvino_ir_read(const char *xml_path, const char *bin_path, struct xm_graph **out,
                    struct xm_error *err)
{
    struct xm_error local = {0}; /* gets the prefix even if the caller's err is NULL */
    bool asked_for = bin_path && bin_path[0];
    char *default_bin = asked_for ? NULL : default_bin_path(xml_path);
    *out = NULL;
    enum xm_status status = asked_for || default_bin
                                ? read_xml(xml_path, asked_for ? bin_path : default_bin,
                                           asked_for, out, &local)
                                : xm_fail(&local, XM_NO_MEMORY, "out of memory");
    xm_free(default_bin);
    return status == XM_OK ? XM_OK : xm_fail(err, status, "%s", local.text);
}

/* ---- several files ------------------------------------------------------------------- */

static enum xm_status
add_net(const struct xm_mapped_file *xml, const char *bin_path, struct xm_ir_joint *joint,
        struct xm_graph *g, struct xm_error *err)
{
    struct xm_ir_net net = {0};
    struct xm_mapping *m = NULL;
    struct xm_ir_weights weights = {.name = bin_path};
    XM_TRY(open_weights(bin_path, false, &m, err));
    if (m) {
        weights.bytes = m->file->file.bytes;
        weights.n_bytes = m->file->file.n_bytes;
    }
    enum xm_status s =
        xm_ir_parse((const char *)xml->bytes, (size_t)xml->n_bytes, &net, err);
    if (s == XM_OK)
        s = xm_ir_link(&net, err);
    if (s == XM_OK && m && xm_graph_add_mapping(g, m) != XM_OK)
        s = xm_fail(err, XM_NO_MEMORY, "out of memory");
    if (s == XM_OK)
        s = xm_ir_build(&net, &weights, joint, g, err);
    xm_mapping_unref(m);
    xm_arena_free(&net.arena);
    return s;
}

/* Adds one file of the folder to the graph. bin_path NULL or "": its weights have the file's name
 * with the ending .bin. */
static enum xm_status
add_file(const char *folder, const char *name, const char *bin_path,
         struct xm_ir_joint *joint, struct xm_graph *g, struct xm_error *err)
{
    struct xm_strbuf xml_path = {0}, own_bin = {0};
    struct xm_mapped_file xml = {0};
    xm_strbuf_printf(&xml_path, "%s/%s.xml", folder, name);
    xm_strbuf_printf(&own_bin, "%s/%s.bin", folder, name);
    enum xm_status s = xm_strbuf_ok(&xml_path) && xm_strbuf_ok(&own_bin)
                           ? xm_mapped_file_open(xm_strbuf_text(&xml_path), &xml, err)
                           : xm_no_memory(err, "a path");
    if (s == XM_OK) {
        s = add_net(&xml, bin_path && bin_path[0] ? bin_path : xm_strbuf_text(&own_bin),
                    joint, g, err);
        if (s != XM_OK)
            xm_error_prefix(err, "%.150s", xm_strbuf_text(&xml_path));
    }
    xm_mapped_file_close(&xml);
    xm_strbuf_free(&xml_path);
    xm_strbuf_free(&own_bin);
    return s;
}

static enum xm_status
add_embeddings(const char *folder, const char *name, struct xm_ir_joint *joint,
               struct xm_graph *g, struct xm_value **out, struct xm_error *err)
{
    joint->is_embeddings = true;
    joint->result = NULL;
    XM_TRY(add_file(folder, name, NULL, joint, g, err));
    joint->is_embeddings = false;
    *out = joint->result;
    return *out && joint->ids
               ? XM_OK
               : xm_fail(err, XM_INVALID, "%.150s/%s.xml: expected an input and a result",
                         folder, name);
}

static enum xm_status
add_files(const char *folder, const char *bin_path, struct xm_graph *g,
          struct xm_error *err)
{
    static const char per_layer[] = "openvino_text_embeddings_per_layer_model";
    struct xm_ir_joint joint = {0};
    struct xm_error why = {0};
    XM_TRY(add_embeddings(folder, "openvino_text_embeddings_model", &joint, g,
                          &joint.embeddings, err));
    if (add_embeddings(folder, per_layer, &joint, g, &joint.per_layer, &why) != XM_OK &&
        why.status != XM_NOT_FOUND)
        return xm_fail(err, why.status, "%s", why.text);
    joint.is_embeddings = false;
    return add_file(folder, "openvino_language_model", bin_path, &joint, g, err);
}

enum xm_status
xm_openvino_ir_read_joined(const char *folder, const char *bin_path,
                           struct xm_graph **out, struct xm_error *err)
{
    struct xm_error local = {0};
    struct xm_graph *g = xm_graph_create("openvino_language_model");
    *out = NULL;
    if (!g)
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    const enum xm_status s = add_files(folder, bin_path, g, &local);
    if (s == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", local.text);
}

enum xm_status
xm_openvino_ir_read_memory(const char *xml, size_t n, const void *weights,
                           uint64_t n_weights, struct xm_mapping *owner,
                           struct xm_graph **out, struct xm_error *err)
{
    struct xm_error local = {0};
    struct xm_ir_weights w = {weights, n_weights, "weights buffer"};
    *out = NULL;
    enum xm_status status = read_text(xml, n, &w, owner, out, &local);
    if (status != XM_OK)
        xm_fail(err, status, "IR in memory: %s", local.text);
    return status;
}
