/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/readers/gguf.h"

#include <inttypes.h>

#include "plugin/readers/gguf_records.h"

/* ---- one part ------------------------------------------------------------------------ */

/* Opens one part. The caller releases the part, also after a failure. */
static enum xm_status
open_part(const char *path, struct xm_gguf_part *p, struct xm_arena *arena,
          struct xm_error *err)
{
    XM_TRY(xm_file_mapping_open(path, &p->mapping, err));
    const struct xm_mapped_file *file = &p->mapping->file->file;
    p->n_bytes = file->n_bytes;
    p->path = xm_arena_strdup(arena, path);
    if (!p->path)
        return xm_no_memory(err, "a path");
    const enum xm_status s = xm_gguf_parse(p, file->bytes, arena, err);
    if (s != XM_OK)
        xm_error_prefix(err, "%.150s", path);
    return s;
}

/* ---- all parts ----------------------------------------------------------------------- */

/* Fails unless part i agrees with the part that was opened first on the number of parts and
 * tensors. */
static enum xm_status
check_other(const struct xm_gguf_part *p, uint64_t i, const struct xm_gguf_split *split,
            struct xm_error *err)
{
    struct xm_gguf_split its = {0};
    XM_TRY(xm_gguf_find_split(p, &its, err));
    if (its.number != i || its.count != split->count)
        return xm_fail(err, XM_INVALID,
                       "expected part %" PRIu64 " of %" PRIu64 ", found part %" PRIu64
                       " of %" PRIu64,
                       i + 1, split->count, its.number + 1, its.count);
    if (its.n_tensors != split->n_tensors)
        return xm_fail(err, XM_INVALID,
                       "key 'split.tensors.count': its value differs between the parts");
    return XM_OK;
}

static enum xm_status
open_other(struct xm_gguf *g, const char *path, const struct xm_gguf_split *split,
           uint64_t i, struct xm_error *err)
{
    enum xm_status s = open_part(path, &g->parts[i], &g->arena, err);
    if (s == XM_NOT_FOUND)
        xm_error_prefix(err, "part %" PRIu64 " of %" PRIu64 " is missing", i + 1,
                        split->count);
    XM_TRY(s);
    s = check_other(&g->parts[i], i, split, err);
    if (s != XM_OK)
        xm_error_prefix(err, "%.150s", path);
    return s;
}

/* Opens the other parts. On entry, g->parts[0] is the part that was opened first. */
static enum xm_status
open_others(struct xm_gguf *g, const struct xm_gguf_split *split, struct xm_error *err)
{
    const struct xm_gguf_part asked_for = g->parts[0];
    struct xm_gguf_part *parts =
        xm_arena_alloc(&g->arena, (size_t)split->count * sizeof(*parts));
    if (!parts)
        return xm_no_memory(err, "%" PRIu64 " files", split->count);
    parts[split->number] = asked_for;
    g->parts = parts;
    g->n_parts = split->count;
    for (uint64_t i = 0; i < split->count; i++) {
        const char *path = NULL;
        if (i == split->number)
            continue;
        if (xm_gguf_part_path(asked_for.path, split, i, &g->arena, &path, err) != XM_OK) {
            xm_error_prefix(err, "%.150s", asked_for.path);
            return err->status;
        }
        XM_TRY(open_other(g, path, split, i, err));
    }
    return XM_OK;
}

static enum xm_status
join_tensors(struct xm_gguf *g, struct xm_error *err)
{
    struct xm_slice twice;
    uint64_t at = 0;
    for (uint64_t i = 0; i < g->n_parts; i++)
        g->n_tensors += g->parts[i].n_tensors;
    const size_t n = (size_t)g->n_tensors;
    g->tensors = xm_arena_alloc(&g->arena, n * sizeof(*g->tensors));
    g->tensors_by_name = xm_arena_alloc(&g->arena, n * sizeof(*g->tensors_by_name));
    if (!g->tensors || !g->tensors_by_name)
        return xm_no_memory(err, "%" PRIu64 " tensors", g->n_tensors);
    for (uint64_t i = 0; i < g->n_parts; i++) {
        for (uint64_t k = 0; k < g->parts[i].n_tensors; k++) {
            g->tensors[at] = &g->parts[i].tensors[k];
            g->tensors_by_name[at++] = &g->parts[i].tensors[k];
        }
    }
    xm_gguf_sort_names(g->tensors_by_name, g->n_tensors, &twice);
    if (twice.n)
        return xm_fail(err, XM_INVALID, "tensor '%.*s' occurs twice",
                       XM_GGUF_SHOW(twice));
    return XM_OK;
}

static enum xm_status
join(struct xm_gguf *g, const struct xm_gguf_split *split, struct xm_error *err)
{
    XM_TRY(join_tensors(g, err));
    if (split->n_tensors == UINT64_MAX || split->n_tensors == g->n_tensors)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "key 'split.tensors.count': expected %" PRIu64
                   ", the tensors of %" PRIu64 " files, found %" PRIu64,
                   g->n_tensors, g->n_parts, split->n_tensors);
}

static enum xm_status
create(struct xm_gguf **out, struct xm_error *err)
{
    struct xm_gguf *g = xm_calloc(1, sizeof(*g));
    if (!g)
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    g->parts = xm_arena_alloc(&g->arena, sizeof(*g->parts));
    if (!g->parts) {
        xm_free(g);
        return xm_fail(err, XM_NO_MEMORY, "out of memory");
    }
    g->n_parts = 1;
    *out = g;
    return XM_OK;
}

/* Opens all parts. Error messages about one part already have its path; the others get `path`. */
static enum xm_status
open_all(struct xm_gguf *g, const char *path, struct xm_error *err)
{
    struct xm_gguf_split split = {0};
    XM_TRY(open_part(path, &g->parts[0], &g->arena, err));
    struct xm_error local = {0};
    enum xm_status s = xm_gguf_find_split(&g->parts[0], &split, &local);
    if (s == XM_OK && split.count > 1)
        XM_TRY(open_others(g, &split, err));
    if (s == XM_OK)
        s = join(g, &split, &local);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%.150s: %s", path, local.text);
}

static enum xm_status
finish(struct xm_gguf *g, const struct xm_error *why, struct xm_gguf **out,
       struct xm_error *err)
{
    if (why->status == XM_OK) {
        *out = g;
        return XM_OK;
    }
    xm_gguf_close(g);
    return xm_fail(err, why->status, "%s", why->text);
}

enum xm_status
xm_gguf_open(const char *path, struct xm_gguf **out, struct xm_error *err)
{
    struct xm_gguf *g = NULL;
    struct xm_error local = {0};
    *out = NULL;
    if (create(&g, &local) == XM_OK)
        open_all(g, path, &local);
    return finish(g, &local, out, err);
}

static enum xm_status
read_memory(struct xm_gguf *g, const void *bytes, uint64_t n, struct xm_mapping *owner,
            struct xm_error *err)
{
    struct xm_gguf_part *p = &g->parts[0];
    struct xm_gguf_split split = {0};
    if (owner)
        xm_mapping_ref(owner);
    p->path = "";
    p->mapping = owner;
    p->n_bytes = n;
    XM_TRY(xm_gguf_parse(p, bytes, &g->arena, err));
    XM_TRY(xm_gguf_find_split(p, &split, err));
    if (split.count > 1)
        return xm_fail(err, XM_UNSUPPORTED,
                       "it is one of %" PRIu64
                       " parts, which cannot be read from memory: open the files",
                       split.count);
    return join(g, &split, err);
}

enum xm_status
xm_gguf_read_memory(const void *bytes, uint64_t n, struct xm_mapping *owner,
                    struct xm_gguf **out, struct xm_error *err)
{
    struct xm_gguf *g = NULL;
    struct xm_error local = {0};
    *out = NULL;
    if (create(&g, &local) == XM_OK && read_memory(g, bytes, n, owner, &local) != XM_OK)
        xm_error_prefix(&local, "GGUF in memory");
    return finish(g, &local, out, err);
}

void
xm_gguf_close(struct xm_gguf *g)
{
    if (!g)
        return;
    for (uint64_t i = 0; i < g->n_parts; i++)
        xm_mapping_unref(g->parts[i].mapping);
    xm_arena_free(&g->arena);
    xm_free(g);
}
