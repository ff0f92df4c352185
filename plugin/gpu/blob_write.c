/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a blob. First all sections except XM_BLOB_BYTES are made in memory, because they are
 * small. Then header and sections are written in order; the constants' bytes are written from where
 * they lie.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/gpu/batcher.h"
#include "plugin/gpu/blob.h"
#include "plugin/gpu/blob_format.h"
#include "plugin/gpu/planner.h"
#include "runtime/util/checksum.h"
#include "transformations/graph/text.h"

enum { ALIGN_BYTES = 64 }; /* alignment of constants in section XM_BLOB_BYTES */

/* Bytes of a constant that are written to section XM_BLOB_BYTES. */
struct piece {
    struct xm_bytes bytes;
    uint64_t offset; /* in section XM_BLOB_BYTES */
    uint64_t checksum;
};

struct writer {
    struct xm_program *p;
    const struct xm_export *to;
    struct xm_error *err;
    struct xm_strbuf sections[XM_BLOB_SECTIONS]; /* XM_BLOB_BYTES stays empty */
    struct piece *pieces;
    size_t n_pieces, pieces_capacity;
    uint64_t piece_bytes; /* the size of section XM_BLOB_BYTES so far */
    const struct xm_file_mapping **files;
    uint32_t n_files;
    uint64_t written;
};

/* ---- where constants are ------------------------------------------------------------ */

static bool
lies_in(const struct xm_bytes *b, const struct xm_mapped_file *f)
{
    const uintptr_t at = (uintptr_t)b->p, from = (uintptr_t)f->bytes;
    return b->n > 0 && at >= from && at - from <= f->n_bytes &&
           b->n <= f->n_bytes - (at - from);
}

/* Returns 1 + the index in w->files of the mapped file in which the bytes lie, so that the blob can
 * refer to it. 0: they lie in no file, or the blob is to contain all bytes. */
static uint32_t
find_file(struct writer *w, const struct xm_bytes *b)
{
    if (w->to->is_whole)
        return 0;
    for (uint32_t i = 0; i < w->n_files; i++) {
        if (lies_in(b, &w->files[i]->file))
            return i + 1;
    }
    for (uint32_t i = 0; i < w->p->n_mappings; i++) {
        const struct xm_file_mapping *f = w->p->mappings[i]->file;
        if (!f || !lies_in(b, &f->file))
            continue;
        w->files[w->n_files++] = f; /* the list has room for all mappings */
        return w->n_files;
    }
    return 0;
}

/* Finds or adds the piece for these bytes. Constants that share bytes share a piece, so that the
 * bytes are written once. */
static enum xm_status
find_piece(struct writer *w, const struct xm_bytes *b, const struct piece **out)
{
    for (size_t i = 0; i < w->n_pieces; i++) {
        *out = &w->pieces[i];
        if ((*out)->bytes.p == b->p && (*out)->bytes.n == b->n)
            return XM_OK;
    }
    struct piece *grown =
        xm_grow(w->pieces, &w->pieces_capacity, w->n_pieces + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(w->err, "exporting a compiled model");
    w->pieces = grown;
    w->pieces[w->n_pieces] = (struct piece){*b, w->piece_bytes, xm_checksum(b->p, b->n)};
    *out = &w->pieces[w->n_pieces++];
    w->piece_bytes = xm_align_up(w->piece_bytes + b->n, ALIGN_BYTES);
    return XM_OK;
}

static enum xm_status
add_view(struct writer *w, const struct xm_node *n, enum xm_blob_part part,
         const struct xm_bytes *b, const struct xm_weight_view *view)
{
    struct xm_blob_view v = {.node = n->id, .part = part, .n_bytes = b->n};
    if (part != XM_BLOB_DATA && !b->p)
        return XM_OK;
    if (view)
        v.view = *view;
    v.file = find_file(w, b);
    if (v.file) {
        v.offset = (uint64_t)(b->p - w->files[v.file - 1]->file.bytes);
    } else {
        const struct piece *piece = NULL;
        XM_TRY(find_piece(w, b, &piece));
        v.offset = piece->offset;
        v.checksum = piece->checksum;
    }
    xm_strbuf_add_n(&w->sections[XM_BLOB_VIEWS], (const char *)&v, sizeof(v));
    return XM_OK;
}

static enum xm_status
add_node(struct writer *w, const struct xm_node *n)
{
    const struct xm_weight *weight = &n->attr.weight;
    if (n->op == XM_OP_CONST) {
        const struct xm_bytes b = {n->attr.data.bytes, n->attr.data.n_bytes};
        return add_view(w, n, XM_BLOB_DATA, &b, NULL);
    }
    XM_TRY(add_view(w, n, XM_BLOB_DATA, &weight->data, &weight->view));
    XM_TRY(add_view(w, n, XM_BLOB_SCALE, &weight->scale, NULL));
    XM_TRY(add_view(w, n, XM_BLOB_ZERO_POINT, &weight->zero_point, NULL));
    XM_TRY(add_view(w, n, XM_BLOB_CODEBOOK, &weight->codebook, NULL));
    return add_view(w, n, XM_BLOB_FACTOR, &weight->factor, NULL);
}

static enum xm_status
add_views(struct writer *w)
{
    w->files = xm_calloc(w->p->n_mappings + 1, sizeof(*w->files));
    if (!w->files)
        return xm_no_memory(w->err, "exporting a compiled model");
    xm_for_each_node(n, w->p->graph)
    {
        if (xm_node_is_blob(n))
            XM_TRY(add_node(w, n));
    }
    struct xm_strbuf *views = &w->sections[XM_BLOB_VIEWS];
    if (views->n)
        qsort(views->text, views->n / sizeof(struct xm_blob_view),
              sizeof(struct xm_blob_view), xm_blob_view_order);
    return XM_OK;
}

/* ---- files ---------------------------------------------------------------------------- */

/* Appends the path from `folder` to `path`, both absolute: "../model/openvino_model.bin". */
static void
add_relative(struct xm_strbuf *out, const char *path, const char *folder)
{
    size_t shared = 0; /* bytes of the common folders, with the last slash */
    for (size_t i = 0; path[i] && path[i] == folder[i]; i++) {
        if (path[i] == '/')
            shared = i + 1;
    }
    const size_t n = strlen(folder);
    if (strncmp(path, folder, n) == 0 && path[n] == '/')
        shared = n + 1;
    for (const char *s = folder + (shared < n ? shared : n); *s; s++) {
        if (s[0] != '/' && (s[1] == '/' || s[1] == '\0'))
            xm_strbuf_add(out, "../");
    }
    xm_strbuf_add(out, path + shared);
}

static void
add_files(struct writer *w)
{
    struct xm_strbuf *out = &w->sections[XM_BLOB_FILES], paths = {0};
    const uint64_t before = w->n_files * sizeof(struct xm_blob_file);
    for (uint32_t i = 0; i < w->n_files; i++) {
        const struct xm_file_mapping *f = w->files[i];
        struct xm_blob_file file = {
            .n_bytes = f->file.n_bytes,
            .mtime_ns = f->file.mtime_ns,
            .samples = xm_checksum_samples(f->file.bytes, f->file.n_bytes),
            .absolute = before + paths.n,
            .relative = UINT64_MAX};
        xm_strbuf_add_n(&paths, f->path, strlen(f->path) + 1);
        if (w->to->folder) {
            file.relative = before + paths.n;
            add_relative(&paths, f->path, w->to->folder);
            xm_strbuf_add_n(&paths, "", 1);
        }
        xm_strbuf_add_n(out, (const char *)&file, sizeof(file));
    }
    xm_strbuf_add_n(out, xm_strbuf_text(&paths), paths.n);
    out->failed |= !xm_strbuf_ok(&paths);
    xm_strbuf_free(&paths);
}

/* ---- the rest ------------------------------------------------------------------------- */

static enum xm_status
add_config(struct writer *w)
{
    size_t n;
    const struct xm_option_row *rows = xm_option_rows(&n);
    struct xm_strbuf *out = &w->sections[XM_BLOB_CONFIG];
    for (size_t i = 0; i < n; i++) {
        const enum xm_option o = (enum xm_option)i;
        if (!xm_blob_has_option(o) ||
            !(xm_config_user_set(&w->p->config, o) || xm_blob_decides_graph(o)))
            continue;
        xm_strbuf_printf(out, "%s ", rows[i].name);
        XM_TRY(xm_config_get(&w->p->config, rows[i].name, out, w->err));
        xm_strbuf_add(out, "\n");
    }
    return XM_OK;
}

static void
add_reports(struct writer *w)
{
    for (size_t i = 0; i < w->p->n_reports; i++) {
        const struct xm_pass_report *r = &w->p->reports[i];
        xm_strbuf_printf(&w->sections[XM_BLOB_PASSES], "%s %d %d %u\n", r->pass->name,
                         r->skipped, r->progress, r->nodes_after);
    }
}

static enum xm_status
add_kernel(void *ctx, const struct xm_kernel_key *key, const void *bytes, size_t n,
           struct xm_error *err)
{
    static const char zeros[8];
    struct xm_strbuf *out = ctx;
    const struct xm_blob_kernel_head head = {*key, n};
    (void)err;
    xm_strbuf_add_n(out, (const char *)&head, sizeof(head));
    xm_strbuf_add_n(out, bytes, n);
    xm_strbuf_add_n(out, zeros, (size_t)(xm_align_up(n, 8) - n));
    return XM_OK;
}

/* Adds the binaries of the program's kernels. The engine may have kernels of other programs, too:
 * the program is lowered again on a counting engine, which then knows the kernels it needs. */
static enum xm_status
add_kernels(struct writer *w)
{
    struct xm_program *like = NULL;
    XM_TRY(xm_planner_lower(w->p, w->p->graph, &like, w->err));
    enum xm_status s = xm_batcher_build_choices(like, w->err);
    if (s == XM_OK)
        s = xm_engine_kernel_bytes(w->p->engine, like->engine, add_kernel,
                                   &w->sections[XM_BLOB_KERNELS], w->err);
    xm_program_unref(like);
    return s;
}

static enum xm_status
fill_sections(struct writer *w)
{
    static const enum xm_blob_section texts[] = {
        XM_BLOB_IDENTITY, XM_BLOB_CONFIG, XM_BLOB_GRAPH, XM_BLOB_NOTES, XM_BLOB_PASSES};
    xm_blob_identity(xm_engine_info(w->p->engine), &w->sections[XM_BLOB_IDENTITY]);
    XM_TRY(add_config(w));
    xm_graph_print(w->p->graph, &w->sections[XM_BLOB_GRAPH]);
    xm_strbuf_add(&w->sections[XM_BLOB_NOTES], w->p->notes_text);
    add_reports(w);
    XM_TRY(add_views(w));
    add_files(w);
    XM_TRY(add_kernels(w));
    for (size_t i = 0; i < XM_ARRAY_LEN(texts); i++)
        xm_strbuf_add_n(&w->sections[texts[i]], "", 1);
    for (size_t i = 0; i < XM_BLOB_SECTIONS; i++) {
        if (!xm_strbuf_ok(&w->sections[i]))
            return xm_no_memory(w->err, "exporting a compiled model");
    }
    return XM_OK;
}

/* ---- writing -------------------------------------------------------------------------- */

static enum xm_status
put(struct writer *w, const void *bytes, uint64_t n)
{
    XM_TRY(w->to->write(w->to->ctx, bytes, n, w->err));
    w->written += n;
    return XM_OK;
}

/* Writes zeros up to `offset` of the blob. */
static enum xm_status
skip_to(struct writer *w, uint64_t offset)
{
    static const char zeros[XM_BLOB_ALIGN];
    return put(w, zeros, offset - w->written);
}

static struct xm_blob_header
make_header(const struct writer *w)
{
    struct xm_blob_header h = {.magic = XM_BLOB_MAGIC,
                               .byte_order = XM_BLOB_BYTE_ORDER,
                               .version = XM_BLOB_VERSION,
                               .n_files = w->n_files};
    uint64_t at = sizeof(h);
    for (int i = 0; i < XM_BLOB_SECTIONS; i++) {
        const struct xm_strbuf *b = &w->sections[i];
        struct xm_blob_range *r = &h.section[i];
        r->offset = xm_align_up(at, XM_BLOB_ALIGN);
        r->n_bytes = i == XM_BLOB_BYTES ? w->piece_bytes : b->n;
        r->checksum = i == XM_BLOB_BYTES ? 0 : xm_checksum(xm_strbuf_text(b), b->n);
        at = r->offset + r->n_bytes;
    }
    h.n_bytes = at;
    h.checksum = xm_blob_header_checksum(&h);
    return h;
}

static enum xm_status
write_all(struct writer *w)
{
    const struct xm_blob_header h = make_header(w);
    XM_TRY(put(w, &h, sizeof(h)));
    for (int i = 0; i < XM_BLOB_BYTES; i++) {
        XM_TRY(skip_to(w, h.section[i].offset));
        XM_TRY(put(w, xm_strbuf_text(&w->sections[i]), w->sections[i].n));
    }
    const uint64_t bytes = h.section[XM_BLOB_BYTES].offset;
    for (size_t i = 0; i < w->n_pieces; i++) {
        XM_TRY(skip_to(w, bytes + w->pieces[i].offset));
        XM_TRY(put(w, w->pieces[i].bytes.p, w->pieces[i].bytes.n));
    }
    return skip_to(w, h.n_bytes);
}

enum xm_status
xm_blob_write(struct xm_program *p, const struct xm_export *to, struct xm_error *err)
{
    struct xm_error why = {0};
    struct writer w = {.p = p, .to = to, .err = &why};
    enum xm_status s = fill_sections(&w);
    if (s == XM_OK)
        s = write_all(&w);
    for (int i = 0; i < XM_BLOB_SECTIONS; i++)
        xm_strbuf_free(&w.sections[i]);
    xm_free(w.pieces);
    xm_free(w.files);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}
