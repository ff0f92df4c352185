/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/package.h"

#include <assert.h>
#include <string.h>

#include "plugin/text/end_tokens.h"
#include "transformations/passes/keep_past.h"

/* The first reader that recognises a path reads it. Readers that look into files come before the
 * reader that accepts any file. */
static const struct xm_package_reader *const readers[] = {
    &xm_package_gguf,
    &xm_package_openvino,
};

static const struct xm_package_reader *
reader_of(const char *path)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(readers); i++) {
        if (readers[i]->recognises(path))
            return readers[i];
    }
    return NULL;
}

enum xm_status
xm_package_open(const char *path, struct xm_package **out, struct xm_error *err)
{
    const struct xm_package_reader *reader = reader_of(path);
    *out = NULL;
    if (!reader)
        return xm_fail(err, XM_NOT_FOUND,
                       "the folder '%.250s' holds neither openvino_model.xml nor a .gguf "
                       "file: give the file itself, or export the model to OpenVINO IR",
                       path);
    struct xm_package *p = xm_calloc(1, sizeof(*p));
    if (p)
        p->path = xm_strdup(path);
    if (!p || !p->path) {
        xm_free(p);
        return xm_no_memory(err, "a model package");
    }
    p->reader = reader;
    xm_generation_config_init(&p->generation);
    *out = p;
    return XM_OK;
}

void
xm_package_close(struct xm_package *p)
{
    if (!p)
        return;
    xm_generation_config_free(&p->generation);
    xm_tokenizer_free(p->tokenizer);
    xm_chat_template_free(p->chat_template);
    xm_strbuf_free(&p->other_template);
    xm_free(p->path);
    xm_free(p);
}

enum xm_status
xm_package_read_graph(const struct xm_package *p, const char *weights,
                      struct xm_graph **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(p->reader->read_graph(p->path, weights, out, err));
    xm_pass_keep_past(*out);
    if ((*out)->err.status == XM_OK)
        return XM_OK;
    enum xm_status s = xm_fail(err, (*out)->err.status, "%s", (*out)->err.text);
    xm_graph_destroy(*out);
    *out = NULL;
    return s;
}

enum xm_status
xm_package_read(struct xm_package *p, enum xm_package_part part, struct xm_error *err)
{
    struct xm_package_outcome *o = &p->outcome[part];
    if (!o->tried || o->why.status == XM_NO_MEMORY) {
        *o = (struct xm_package_outcome){.tried = true};
        if (part == XM_PACKAGE_GENERATION)
            xm_generation_config_free(&p->generation);
        p->reader->read_part(p, part, &o->why);
        if (part == XM_PACKAGE_GENERATION &&
            xm_package_read(p, XM_PACKAGE_TOKENIZER, NULL) == XM_OK)
            xm_generation_config_add_ends(&p->generation, p->tokenizer);
    }
    return o->why.status == XM_OK ? XM_OK
                                  : xm_fail(err, o->why.status, "%s", o->why.text);
}

enum xm_status
xm_package_use_chat_template(struct xm_package *p, const char *text, size_t n,
                             struct xm_error *err)
{
    assert(!p->outcome[XM_PACKAGE_CHAT_TEMPLATE].tried);
    if (n == 0)
        return xm_fail(err, XM_INVALID, "the chat template is empty");
    xm_strbuf_add_n(&p->other_template, text, n);
    if (!xm_strbuf_ok(&p->other_template))
        return xm_no_memory(err, "a chat template");
    return xm_package_read(p, XM_PACKAGE_CHAT_TEMPLATE, err);
}

uint64_t
xm_package_file_bytes(const struct xm_package *p)
{
    return p->reader->file_bytes(p->path);
}

enum xm_status
xm_package_graph_of(const char *path, const char *weights, struct xm_graph **out,
                    struct xm_error *err)
{
    struct xm_package *p = NULL;
    *out = NULL;
    XM_TRY(xm_package_open(path, &p, err));
    enum xm_status s = p->reader->read_graph(p->path, weights, out, err);
    xm_package_close(p);
    return s;
}
