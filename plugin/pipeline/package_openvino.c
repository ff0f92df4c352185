/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenVINO IR as optimum-intel exports it: a folder with openvino_model.xml and .bin, and the files
 * that Hugging Face's libraries write. The path is the folder, or an .xml file of any name. The
 * folder of a model that also takes images has openvino_language_model.xml, and its embeddings in
 * other files: its texts can be run, images cannot.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/pipeline/package.h"
#include "plugin/readers/openvino_ir.h"

bool
xm_package_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether the folder has the file. A file whose status cannot be read counts as present, so that
 * reading it reports why. */
static bool
has_file(const char *folder, const char *name)
{
    struct xm_strbuf file = {0};
    struct stat st;
    xm_strbuf_printf(&file, "%s/%s", folder, name);
    const bool is_there =
        !xm_strbuf_ok(&file) || stat(xm_strbuf_text(&file), &st) == 0 || errno != ENOENT;
    xm_strbuf_free(&file);
    return is_there;
}

static const char whole_model[] = "openvino_model.xml",
                  language_model[] = "openvino_language_model.xml";

/* Whether the folder has the language model of a model that also takes images. */
static bool
is_joined(const char *path)
{
    return xm_package_is_folder(path) && !has_file(path, whole_model) &&
           has_file(path, language_model);
}

/* Appends the path of the graph's file; the caller frees it. */
static enum xm_status
graph_path(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    xm_strbuf_add(out, path);
    if (xm_package_is_folder(path))
        xm_strbuf_printf(out, "/%s", is_joined(path) ? language_model : whole_model);
    if (xm_strbuf_ok(out))
        return XM_OK;
    xm_strbuf_free(out);
    return xm_no_memory(err, "a path");
}

enum xm_status
xm_package_folder(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    const char *slash = strrchr(path, '/');
    if (xm_package_is_folder(path))
        xm_strbuf_add(out, path);
    else if (slash)
        xm_strbuf_add_n(out, path, slash == path ? 1 : (size_t)(slash - path));
    else
        xm_strbuf_add(out, ".");
    if (xm_strbuf_ok(out))
        return XM_OK;
    xm_strbuf_free(out);
    return xm_no_memory(err, "a path");
}

/* Accepts any file, because the reader reports what is wrong with a file that is not OpenVINO
 * IR. */
static bool
recognises(const char *path)
{
    return !xm_package_is_folder(path) || has_file(path, whole_model) ||
           has_file(path, language_model);
}

static enum xm_status
read_graph(const char *path, const char *weights, struct xm_graph **out,
           struct xm_error *err)
{
    struct xm_strbuf file = {0};
    if (is_joined(path))
        return xm_openvino_ir_read_joined(path, weights, out, err);
    XM_TRY(graph_path(path, &file, err));
    enum xm_status s = xm_openvino_ir_read(xm_strbuf_text(&file), weights, out, err);
    xm_strbuf_free(&file);
    return s;
}

/* ---- the text side ------------------------------------------------------------------- */

static enum xm_status
load_tokenizer(const char *folder, struct xm_package *p, struct xm_error *err)
{
    struct xm_strbuf file = {0};
    xm_strbuf_printf(&file, "%s/tokenizer.json", folder);
    const enum xm_status s =
        xm_strbuf_ok(&file) ? xm_tokenizer_load(xm_strbuf_text(&file), &p->tokenizer, err)
                            : xm_no_memory(err, "a path");
    xm_strbuf_free(&file);
    return s;
}

static enum xm_status
load_chat_template(const char *folder, struct xm_package *p, struct xm_error *err)
{
    const struct xm_strbuf *other = &p->other_template;
    return other->n ? xm_chat_template_load_with(folder, xm_strbuf_text(other), other->n,
                                                 &p->chat_template, err)
                    : xm_chat_template_load(folder, &p->chat_template, err);
}

static enum xm_status
load_generation(const char *folder, struct xm_package *p, struct xm_error *err)
{
    return xm_generation_config_load(folder, &p->generation, err);
}

static enum xm_status
load_facts(const char *folder, struct xm_package *p, struct xm_error *err)
{
    return xm_hyper_parameters_load(folder, &p->facts, err);
}

static enum xm_status
load_pooling(const char *folder, struct xm_package *p, struct xm_error *err)
{
    return xm_pooling_load(folder, &p->pooling, err);
}

static enum xm_status
read_part(struct xm_package *p, enum xm_package_part part, struct xm_error *err)
{
    static enum xm_status (*const load[])(const char *folder, struct xm_package *p,
                                          struct xm_error *err) = {
        [XM_PACKAGE_TOKENIZER] = load_tokenizer,
        [XM_PACKAGE_CHAT_TEMPLATE] = load_chat_template,
        [XM_PACKAGE_GENERATION] = load_generation,
        [XM_PACKAGE_FACTS] = load_facts,
        [XM_PACKAGE_POOLING] = load_pooling};
    struct xm_strbuf folder = {0};
    XM_TRY(xm_package_folder(p->path, &folder, err));
    const enum xm_status s = load[part](xm_strbuf_text(&folder), p, err);
    xm_strbuf_free(&folder);
    return s;
}

/* ---- sizes --------------------------------------------------------------------------- */

static uint64_t
bytes_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* Returns the size of a graph's file and of the weights' file with the same name. */
static uint64_t
bytes_of_graph(const char *text)
{
    struct xm_strbuf bin = {0};
    const char *ending = strrchr(text, '.');
    uint64_t bytes = bytes_of(text);
    if (ending)
        xm_strbuf_add_n(&bin, text, (size_t)(ending - text));
    xm_strbuf_add(&bin, ".bin");
    if (ending && strcmp(ending, ".bin") != 0)
        bytes += bytes_of(xm_strbuf_text(&bin));
    xm_strbuf_free(&bin);
    return bytes;
}

static uint64_t
file_bytes(const char *path)
{
    static const char *const embeddings[] = {
        "openvino_text_embeddings_model.xml",
        "openvino_text_embeddings_per_layer_model.xml"};
    struct xm_strbuf xml = {0};
    if (graph_path(path, &xml, NULL) != XM_OK)
        return 0;
    uint64_t bytes = bytes_of_graph(xm_strbuf_text(&xml));
    for (size_t i = 0; i < XM_ARRAY_LEN(embeddings) && is_joined(path); i++) {
        xm_strbuf_clear(&xml);
        xm_strbuf_printf(&xml, "%s/%s", path, embeddings[i]);
        bytes += bytes_of_graph(xm_strbuf_text(&xml));
    }
    xm_strbuf_free(&xml);
    return bytes;
}

const struct xm_package_reader xm_package_openvino = {
    .name = "OpenVINO IR",
    .tokenizer = "tokenizer.json beside the model",
    .sampling = "generation_config.json",
    .recognises = recognises,
    .read_graph = read_graph,
    .read_part = read_part,
    .file_bytes = file_bytes,
};
