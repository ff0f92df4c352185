/* SPDX-License-Identifier: Apache-2.0
 *
 * Exported models as files: written in pieces, read in place.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/plugin.h"
#include "runtime/util/folder.h"
#include "runtime/util/new_file.h"
#include "transformations/graph/graph.h"

struct file {
    FILE *f;
    const struct xm_new_file *at;
};

static enum xm_status
write_piece(void *ctx, const void *bytes, uint64_t n, struct xm_error *err)
{
    const struct file *file = ctx;
    return n == 0 || fwrite(bytes, 1, (size_t)n, file->f) == n
               ? XM_OK
               : xm_new_file_fail(file->at, err);
}

/* Returns the absolute path of the file's folder; the caller frees it with xm_free. NULL: not
 * known. */
static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    struct xm_strbuf text = {0};
    if (slash)
        xm_strbuf_add_n(&text, path, slash == path ? 1 : (size_t)(slash - path));
    else
        xm_strbuf_add(&text, ".");
    if (xm_strbuf_ok(&text))
        xm_path_absolute(xm_strbuf_text(&text), &folder, NULL);
    xm_strbuf_free(&text);
    return folder;
}

static enum xm_status
export_to(xm_exporter make, void *ctx, const struct xm_new_file *at, struct xm_error *err)
{
    struct file file = {fopen(xm_new_file_name(at), "wbe"), at};
    if (!file.f)
        return xm_new_file_fail(at, err);
    char *folder = folder_of(at->path);
    const struct xm_export to = {.write = write_piece, .ctx = &file, .folder = folder};
    enum xm_status s = make(ctx, &to, err);
    xm_free(folder);
    if (fclose(file.f) != 0 && s == XM_OK)
        s = xm_new_file_fail(at, err);
    return s;
}

enum xm_status
xm_export_file(xm_exporter make, void *ctx, const char *path, struct xm_error *err)
{
    struct xm_new_file f;
    XM_TRY(xm_new_file_begin(&f, path, err));
    return xm_new_file_end(&f, export_to(make, ctx, &f, err), err);
}

static enum xm_status
export_compiled(void *ctx, const struct xm_export *to, struct xm_error *err)
{
    struct xm_compiled *c = ctx;
    return c->ops->export_model(c, to, err);
}

enum xm_status
xm_compiled_export_file(struct xm_compiled *c, const char *path, struct xm_error *err)
{
    return c->ops->export_model ? xm_export_file(export_compiled, c, path, err)
                                : xm_fail(err, XM_UNSUPPORTED,
                                          "this device cannot export compiled models");
}

enum xm_status
xm_import_open(const char *path, struct xm_import *out, struct xm_error *err)
{
    struct xm_mapping *m = NULL;
    *out = (struct xm_import){0};
    XM_TRY(xm_file_mapping_open(path, &m, err));
    *out = (struct xm_import){m, m->file->file.bytes, m->file->file.n_bytes,
                              folder_of(m->file->path)};
    return XM_OK;
}

void
xm_import_close(struct xm_import *i)
{
    xm_free(i->folder);
    xm_mapping_unref(i->owner);
    *i = (struct xm_import){0};
}

enum xm_status
xm_core_import_file(const struct xm_core *c, const char *path, const char *device,
                    const struct xm_property *properties, uint32_t n_properties,
                    struct xm_compiled **out, struct xm_error *err)
{
    struct xm_import from;
    XM_TRY(xm_import_open(path, &from, err));
    enum xm_status s =
        xm_core_import(c, &from, device, properties, n_properties, out, err);
    xm_import_close(&from);
    if (s != XM_OK)
        xm_error_prefix(err, "'%.150s'", path);
    return s;
}
