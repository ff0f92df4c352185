/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plugin/gpu/blob_format.h"
#include "runtime/util/memory.h"

struct looking {
    const struct xm_import *from;
    struct xm_blob_header h;
};

static const uint8_t *
section(const struct looking *l, enum xm_blob_section i)
{
    return l->from->bytes + l->h.section[i].offset;
}

/* Returns the text of a section, for which xm_blob_check has checked that it ends with a NUL. */
static const char *
text(const struct looking *l, enum xm_blob_section i)
{
    return (const char *)section(l, i);
}

static enum xm_status
fail_damaged(struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "the compiled model is damaged: a file has no path");
}

static enum xm_status
find_files(const struct looking *l, struct xm_blob_facts *out, struct xm_error *err)
{
    const struct xm_blob_range *s = &l->h.section[XM_BLOB_FILES];
    const uint8_t *bytes = section(l, XM_BLOB_FILES);
    const struct xm_blob_file *files = (const struct xm_blob_file *)(const void *)bytes;
    if (l->h.n_files == 0)
        return XM_OK;
    if (l->h.n_files > s->n_bytes / sizeof(*files) || bytes[s->n_bytes - 1] != 0)
        return fail_damaged(err);
    out->files = xm_calloc(l->h.n_files, sizeof(*out->files));
    if (!out->files)
        return xm_no_memory(err, "a list of files");
    for (; out->n_files < l->h.n_files; out->n_files++) {
        const struct xm_blob_file *f = &files[out->n_files];
        if (f->absolute >= s->n_bytes)
            return fail_damaged(err);
        out->files[out->n_files] =
            (struct xm_blob_file_fact){(const char *)bytes + f->absolute, f->n_bytes};
    }
    return XM_OK;
}

static void
count_kernels(const struct looking *l, struct xm_blob_facts *out)
{
    const uint64_t n = out->kernel_bytes = l->h.section[XM_BLOB_KERNELS].n_bytes;
    const uint8_t *bytes = section(l, XM_BLOB_KERNELS);
    struct xm_blob_kernel_head head;
    for (uint64_t at = 0; at <= n && n - at >= sizeof(head);) {
        memcpy(&head, bytes + at, sizeof(head));
        at += sizeof(head);
        if (head.n_bytes > n - at)
            return;
        out->kernels++;
        at = xm_align_up(at + head.n_bytes, 8);
    }
}

enum xm_status
xm_blob_facts(const struct xm_import *from, struct xm_blob_facts *out,
              struct xm_error *err)
{
    struct looking l = {.from = from};
    *out = (struct xm_blob_facts){0};
    XM_TRY(xm_blob_check(from, &l.h, err));
    out->identity = text(&l, XM_BLOB_IDENTITY);
    out->config = text(&l, XM_BLOB_CONFIG);
    out->notes = text(&l, XM_BLOB_NOTES);
    out->passes = text(&l, XM_BLOB_PASSES);
    out->n_bytes = l.h.n_bytes;
    out->constant_bytes = l.h.section[XM_BLOB_BYTES].n_bytes;
    count_kernels(&l, out);
    return find_files(&l, out, err);
}

void
xm_blob_facts_free(struct xm_blob_facts *f)
{
    xm_free(f->files);
    *f = (struct xm_blob_facts){0};
}
