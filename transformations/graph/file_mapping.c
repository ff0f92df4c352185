/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/folder.h"
#include "transformations/graph/graph.h"

static void
free_file(struct xm_mapping *m)
{
    struct xm_file_mapping *f = (struct xm_file_mapping *)m;
    xm_mapped_file_close(&f->file);
    xm_free(f->path);
    xm_free(f);
}

static void
forget_pages(struct xm_mapping *m, const void *bytes, uint64_t n)
{
    xm_mapped_file_forget(&((struct xm_file_mapping *)m)->file, bytes, n);
}

enum xm_status
xm_file_mapping_open(const char *path, struct xm_mapping **out, struct xm_error *err)
{
    struct xm_file_mapping *f = xm_calloc(1, sizeof(*f));
    *out = NULL;
    if (!f)
        return xm_no_memory(err, "a mapped file");
    f->base = (struct xm_mapping){
        .refs = 1, .file = f, .free = free_file, .forget = forget_pages};
    enum xm_status s = xm_mapped_file_open(path, &f->file, err);
    if (s == XM_OK)
        s = xm_path_absolute(path, &f->path, err);
    if (s != XM_OK) {
        free_file(&f->base);
        return s;
    }
    *out = &f->base;
    return XM_OK;
}
