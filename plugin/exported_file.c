/* SPDX-License-Identifier: Apache-2.0
 *
 * Exported models as files: written piece by piece, read in place.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"
#include "runtime/util/folder.h"
#include "transformations/graph/graph.h"

struct file {
    FILE *f;
    const char *path; /* as people know it */
};

static enum xm_status
fail_write(const char *path, struct xm_error *err)
{
    return xm_fail(err, XM_IO, "'%.300s' cannot be written: %s", path, strerror(errno));
}

static enum xm_status
write_piece(void *ctx, const void *bytes, uint64_t n, struct xm_error *err)
{
    const struct file *file = ctx;
    return n == 0 || fwrite(bytes, 1, (size_t)n, file->f) == n
               ? XM_OK
               : fail_write(file->path, err);
}

/* The folder of a file, absolute, for xm_free(); NULL: it is not known. */
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

/* To an open file, which is closed. */
static enum xm_status
export_to(struct xm_compiled *c, FILE *f, const char *path, struct xm_error *err)
{
    struct file file = {f, path};
    char *folder = folder_of(path);
    const struct xm_export to = {write_piece, &file, folder};
    enum xm_status s = c->ops->export_model(c, &to, err);
    xm_free(folder);
    if (fclose(f) != 0 && s == XM_OK)
        s = fail_write(path, err);
    return s;
}

/* Beside it and then in its place: who has the old file mapped keeps that. */
static enum xm_status
export_beside(struct xm_compiled *c, const char *path, const char *temporary,
              struct xm_error *err)
{
    FILE *f = fopen(temporary, "wb");
    if (!f)
        return fail_write(path, err);
    enum xm_status s = export_to(c, f, path, err);
    if (s == XM_OK && rename(temporary, path) != 0)
        s = fail_write(path, err);
    if (s != XM_OK)
        unlink(temporary);
    return s;
}

enum xm_status
xm_compiled_export_file(struct xm_compiled *c, const char *path, struct xm_error *err)
{
    static atomic_uint serial; /* threads of one process must not share a name */
    struct stat st;
    if (!c->ops->export_model)
        return xm_fail(err, XM_UNSUPPORTED,
                       "this device does not export compiled models");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a pipe, a device */
        FILE *f = fopen(path, "wb");
        return f ? export_to(c, f, path, err) : fail_write(path, err);
    }
    struct xm_strbuf temporary = {0};
    xm_strbuf_printf(&temporary, "%s.%ld.%u", path, (long)getpid(),
                     atomic_fetch_add(&serial, 1));
    enum xm_status s =
        xm_strbuf_ok(&temporary)
            ? export_beside(c, path, xm_strbuf_text(&temporary), err)
            : xm_fail(err, XM_NO_MEMORY, "out of memory for the name of a file");
    xm_strbuf_free(&temporary);
    return s;
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
