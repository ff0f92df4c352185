/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a blob, in this order: header, checksums, identity (device, driver and version), files,
 * and then the graph's text, whose parser asks for the bytes of constants by node number.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/gpu/blob.h"
#include "plugin/gpu/blob_format.h"
#include "runtime/util/checksum.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"

struct reader {
    const struct xm_import *from;
    struct xm_blob_header h;
    struct xm_mapping **files; /* h.n_files, referenced */
    const struct xm_blob_view *views;
    uint64_t n_views;
    struct xm_error *err;
};

static enum xm_status
fail_damaged(struct reader *r, const char *what)
{
    return xm_fail(r->err, XM_INVALID, "the compiled model is damaged: %s", what);
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Returns whether n bytes at `offset` lie within `size` bytes. */
static bool
fits(uint64_t offset, uint64_t n, uint64_t size)
{
    return offset <= size && n <= size - offset;
}

bool
xm_blob_recognises(const struct xm_import *from)
{
    return from->n_bytes >= sizeof(((struct xm_blob_header *)0)->magic) &&
           memcmp(from->bytes, XM_BLOB_MAGIC, strlen(XM_BLOB_MAGIC)) == 0;
}

static enum xm_status
read_header(struct reader *r)
{
    const uint64_t n = r->from->n_bytes;
    if (!xm_blob_recognises(r->from))
        return xm_fail(r->err, XM_INVALID, "this is not a compiled model of xemoe");
    if (n < sizeof(r->h))
        return fail_damaged(r, "it is truncated within its header");
    memcpy(&r->h, r->from->bytes, sizeof(r->h));
    if (r->h.byte_order != XM_BLOB_BYTE_ORDER)
        return xm_fail(r->err, XM_UNSUPPORTED,
                       "the compiled model comes from a machine with another byte order");
    if (r->h.version != XM_BLOB_VERSION)
        return xm_fail(r->err, XM_UNSUPPORTED,
                       "the compiled model has format version %u, but this xemoe reads "
                       "version %d: compile the model again",
                       r->h.version, XM_BLOB_VERSION);
    if (xm_blob_header_checksum(&r->h) != r->h.checksum)
        return fail_damaged(r, "the checksum of its header is wrong");
    /* the caller's bytes may be longer than the blob: a NUL, the rest of a buffer */
    if (r->h.n_bytes > n)
        return xm_fail(r->err, XM_INVALID,
                       "the compiled model is damaged: it has %" PRIu64
                       " bytes, but was written with %" PRIu64,
                       n, r->h.n_bytes);
    return XM_OK;
}

static const uint8_t *
section(const struct reader *r, enum xm_blob_section i)
{
    return r->from->bytes + r->h.section[i].offset;
}

/* Returns the text of a section, for which check_section has checked that it ends with a NUL. */
static const char *
text(const struct reader *r, enum xm_blob_section i)
{
    return (const char *)section(r, i);
}

static enum xm_status
check_section(struct reader *r, enum xm_blob_section i)
{
    const struct xm_blob_range *s = &r->h.section[i];
    if (!fits(s->offset, s->n_bytes, r->h.n_bytes) || s->offset % XM_BLOB_ALIGN)
        return fail_damaged(r, "a section lies outside the file");
    if (i != XM_BLOB_BYTES && xm_checksum(section(r, i), s->n_bytes) != s->checksum)
        return fail_damaged(r, "the checksum of a section is wrong");
    if (i <= XM_BLOB_PASSES && (s->n_bytes == 0 || section(r, i)[s->n_bytes - 1] != 0))
        return fail_damaged(r, "a text is not terminated");
    return XM_OK;
}

/* ---- identity ------------------------------------------------------------------------- */

/* Fails with a message that shows the first line in which the blob's identity differs from that of
 * this device and xemoe. */
static enum xm_status
fail_identity(struct reader *r, const char *blob, const char *here)
{
    while (*blob && *here) {
        const size_t n = strcspn(blob, "\n"), m = strcspn(here, "\n");
        const size_t word = strcspn(here, " \n");
        if (n != m || memcmp(blob, here, n) != 0)
            return xm_fail(r->err, XM_UNSUPPORTED,
                           "the model was compiled for %.*s, but here it is %.*s: "
                           "compile the model again",
                           (int)(n < 200 ? n : 200), blob,
                           (int)(word < m ? m - word - 1 : 0), here + word + 1);
        blob += n + (blob[n] == '\n');
        here += m + (here[m] == '\n');
    }
    return fail_damaged(r, "it does not name its device");
}

static enum xm_status
check_identity(struct reader *r, const struct xm_device_info *device)
{
    struct xm_strbuf here = {0};
    xm_blob_identity(device, &here);
    enum xm_status s = XM_OK;
    if (!xm_strbuf_ok(&here))
        s = xm_fail(r->err, XM_NO_MEMORY, "out of memory to read a compiled model");
    else if (strcmp(text(r, XM_BLOB_IDENTITY), xm_strbuf_text(&here)) != 0)
        s = fail_identity(r, text(r, XM_BLOB_IDENTITY), xm_strbuf_text(&here));
    xm_strbuf_free(&here);
    return s;
}

/* ---- files ---------------------------------------------------------------------------- */

/* Returns the text at `offset` of section XM_BLOB_FILES; NULL: the offset is outside. */
static const char *
path_at(const struct reader *r, uint64_t offset)
{
    const struct xm_blob_range *s = &r->h.section[XM_BLOB_FILES];
    return offset < s->n_bytes && section(r, XM_BLOB_FILES)[s->n_bytes - 1] == 0
               ? (const char *)section(r, XM_BLOB_FILES) + offset
               : NULL;
}

/* Opens the file of weights that the importer has named. `weights` is a folder that has a file of
 * the same name as `absolute`, or else the path of the file itself. */
static enum xm_status
open_named(const char *weights, const char *absolute, struct xm_mapping **out)
{
    const char *slash = strrchr(absolute, '/');
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/%s", weights, slash ? slash + 1 : absolute);
    enum xm_status s = xm_file_mapping_open(xm_strbuf_text(&path), out, NULL);
    if (s != XM_OK)
        s = xm_file_mapping_open(weights, out, NULL);
    xm_strbuf_free(&path);
    return s;
}

/* Opens a file of constants at the first of these places where it exists: the place that the
 * importer has named, the relative path from the blob's folder, the absolute path at export. */
static enum xm_status
open_file(struct reader *r, const char *absolute, const char *relative,
          struct xm_mapping **out)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    enum xm_status s = XM_NOT_FOUND;
    if (r->from->weights)
        s = open_named(r->from->weights, absolute, out);
    if (s != XM_OK && relative && r->from->folder) {
        xm_strbuf_printf(&path, "%s/%s", r->from->folder, relative);
        s = xm_file_mapping_open(xm_strbuf_text(&path), out, NULL);
    }
    xm_strbuf_free(&path);
    if (s == XM_OK || xm_file_mapping_open(absolute, out, &why) == XM_OK)
        return XM_OK;
    return xm_fail(r->err, why.status,
                   "the compiled model reads its weights from another file: %s",
                   why.text);
}

static enum xm_status
check_file(struct reader *r, const struct xm_blob_file *said,
           const struct xm_file_mapping *f)
{
    if (f->file.n_bytes == said->n_bytes && f->file.mtime_ns == said->mtime_ns &&
        xm_checksum_samples(f->file.bytes, f->file.n_bytes) == said->samples)
        return XM_OK;
    return xm_fail(
        r->err, XM_UNSUPPORTED,
        "'%.300s' has changed since the model was compiled, or is a copy with another "
        "modification time (cp -p keeps the time): compile the model again",
        f->path);
}

static enum xm_status
read_files(struct reader *r)
{
    const struct xm_blob_range *s = &r->h.section[XM_BLOB_FILES];
    const struct xm_blob_file *files =
        (const struct xm_blob_file *)section(r, XM_BLOB_FILES);
    if (r->h.n_files > s->n_bytes / sizeof(*files))
        return fail_damaged(r, "it names more files than its list of files can hold");
    r->files = xm_calloc(r->h.n_files + 1, sizeof(struct xm_mapping *));
    if (!r->files)
        return xm_no_memory(r->err, "a list of files");
    for (uint64_t i = 0; i < r->h.n_files; i++) {
        const char *absolute = path_at(r, files[i].absolute);
        if (!absolute)
            return fail_damaged(r, "a file has no path");
        XM_TRY(open_file(r, absolute, path_at(r, files[i].relative), &r->files[i]));
        XM_TRY(check_file(r, &files[i], r->files[i]->file));
    }
    return XM_OK;
}

/* ---- constants ------------------------------------------------------------------------ */

/* Returns the view of a part of a constant node; NULL: there is none, or the views, which may be
 * damaged, are not sorted. */
static const struct xm_blob_view *
find_view(const struct reader *r, uint32_t node, enum xm_blob_part part)
{
    const struct xm_blob_view key = {.node = node, .part = part};
    return r->n_views
               ? bsearch(&key, r->views, r->n_views, sizeof(key), xm_blob_view_order)
               : NULL;
}

/* Sets *out to the bytes of a view. Refuses bytes outside their file or section, and bytes of the
 * blob with a wrong checksum. */
static enum xm_status
resolve(struct reader *r, const struct xm_blob_view *v, struct xm_bytes *out,
        struct xm_error *err)
{
    const struct xm_blob_range *own = &r->h.section[XM_BLOB_BYTES];
    const struct xm_mapped_file *f =
        v->file && v->file <= r->h.n_files ? &r->files[v->file - 1]->file->file : NULL;
    if ((v->file && !f) || !fits(v->offset, v->n_bytes, f ? f->n_bytes : own->n_bytes))
        return xm_fail(err, XM_INVALID, "its bytes lie outside the file");
    out->p = (f ? f->bytes : section(r, XM_BLOB_BYTES)) + v->offset;
    out->n = v->n_bytes;
    return f || xm_checksum(out->p, out->n) == v->checksum
               ? XM_OK
               : xm_fail(err, XM_INVALID, "its checksum is wrong");
}

static enum xm_status
find_bytes(struct reader *r, uint32_t node, enum xm_blob_part part, struct xm_bytes *out,
           struct xm_error *err)
{
    const struct xm_blob_view *v = find_view(r, node, part);
    return v ? resolve(r, v, out, err)
             : xm_fail(err, XM_INVALID, "constant @%u has no bytes", node);
}

static enum xm_status
give_constant(void *ctx, uint32_t number, uint64_t n_bytes, struct xm_data *out,
              struct xm_error *err)
{
    struct xm_bytes b = {0};
    (void)n_bytes;
    XM_TRY(find_bytes(ctx, number, XM_BLOB_DATA, &b, err));
    *out = (struct xm_data){b.p, b.n};
    return XM_OK;
}

/* Sets the bytes of those parts of w that its types require; the parser checks their sizes. A
 * callback of the parser (struct xm_text_blobs). */
static enum xm_status
give_weight(void *ctx, uint32_t number, struct xm_weight *w, struct xm_error *err)
{
    struct reader *r = ctx;
    XM_TRY(find_bytes(r, number, XM_BLOB_DATA, &w->data, err));
    w->view = find_view(r, number, XM_BLOB_DATA)->view;
    if (w->group)
        XM_TRY(find_bytes(r, number, XM_BLOB_SCALE, &w->scale, err));
    if (w->group && w->zero_point_element != XM_DYNAMIC)
        XM_TRY(find_bytes(r, number, XM_BLOB_ZERO_POINT, &w->zero_point, err));
    if (w->codebook.n)
        XM_TRY(find_bytes(r, number, XM_BLOB_CODEBOOK, &w->codebook, err));
    if (w->factor.n)
        XM_TRY(find_bytes(r, number, XM_BLOB_FACTOR, &w->factor, err));
    return XM_OK;
}

static enum xm_status
read_graph(struct reader *r, struct xm_blob *out)
{
    const struct xm_blob_range *s = &r->h.section[XM_BLOB_VIEWS];
    const struct xm_text_blobs blobs = {give_constant, give_weight, r};
    r->views = (const struct xm_blob_view *)section(r, XM_BLOB_VIEWS);
    r->n_views = s->n_bytes / sizeof(*r->views);
    if (xm_graph_parse_with(text(r, XM_BLOB_GRAPH), &blobs, &out->graph, r->err) !=
        XM_OK) {
        xm_error_prefix(r->err, "the compiled model is damaged");
        return r->err->status;
    }
    XM_TRY(xm_graph_validate(out->graph, NULL, r->err));
    if (xm_graph_add_mapping(out->graph, r->from->owner) != XM_OK)
        return xm_no_memory(r->err, "a mapping");
    for (uint64_t i = 0; i < r->h.n_files; i++) {
        if (xm_graph_add_mapping(out->graph, r->files[i]) != XM_OK)
            return xm_no_memory(r->err, "a mapping");
    }
    return XM_OK;
}

/* ---- the passes' reports -------------------------------------------------------------- */

/* Reads the report of a pass from a line of n bytes: its name, 0 or 1 for `skipped` and `progress`,
 * and the number of nodes after it. False: the line is damaged, or no pass has this name. */
static bool
read_report(const char *line, size_t n, struct xm_pass_report *out)
{
    char name[64];
    const size_t word = strcspn(line, " \n");
    if (word >= sizeof(name) || n < word + 6)
        return false;
    memcpy(name, line, word);
    name[word] = '\0';
    out->pass = xm_pass_find(name);
    out->skipped = line[word + 1] == '1';
    out->progress = line[word + 3] == '1';
    out->nodes_after = (uint32_t)strtoul(line + word + 5, NULL, 10);
    return out->pass != NULL;
}

static enum xm_status
read_reports(struct reader *r, struct xm_blob *out)
{
    size_t most = 0;
    xm_passes(&most);
    out->reports = xm_calloc(most, sizeof(*out->reports));
    if (!out->reports)
        return xm_no_memory(r->err, "the passes' reports");
    for (const char *line = text(r, XM_BLOB_PASSES); *line;) {
        const size_t n = strcspn(line, "\n");
        if (out->n_reports == most ||
            !read_report(line, n, &out->reports[out->n_reports++]))
            return fail_damaged(r, "it names an unknown pass");
        line += n + (line[n] == '\n');
    }
    return XM_OK;
}

/* ---- all of it ------------------------------------------------------------------------ */

static enum xm_status
check_whole(struct reader *r)
{
    XM_TRY(read_header(r));
    for (int i = 0; i < XM_BLOB_SECTIONS; i++)
        XM_TRY(check_section(r, (enum xm_blob_section)i));
    return XM_OK;
}

enum xm_status
xm_blob_check(const struct xm_import *from, struct xm_blob_header *out,
              struct xm_error *err)
{
    struct reader r = {.from = from, .err = err};
    XM_TRY(check_whole(&r));
    *out = r.h;
    return XM_OK;
}

static void
close_files(struct reader *r)
{
    for (uint64_t i = 0; r->files && i < r->h.n_files; i++)
        xm_mapping_unref(r->files[i]); /* a graph has its own reference */
    xm_free(r->files);
}

static enum xm_status
read_all(struct reader *r, const struct xm_device_info *device, struct xm_blob *out)
{
    XM_TRY(check_whole(r));
    XM_TRY(check_identity(r, device));
    XM_TRY(read_reports(r, out));
    XM_TRY(read_files(r));
    XM_TRY(read_graph(r, out));
    out->notes = text(r, XM_BLOB_NOTES);
    out->config = text(r, XM_BLOB_CONFIG);
    out->kernels = section(r, XM_BLOB_KERNELS);
    out->n_kernel_bytes = r->h.section[XM_BLOB_KERNELS].n_bytes;
    return XM_OK;
}

enum xm_status
xm_blob_read(const struct xm_import *from, const struct xm_device_info *device,
             struct xm_blob *out, struct xm_error *err)
{
    struct xm_error why = {0};
    struct reader r = {.from = from, .err = &why};
    *out = (struct xm_blob){.from = from};
    enum xm_status s = read_all(&r, device, out);
    close_files(&r);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

enum xm_status
xm_blob_model_file(const struct xm_import *from, struct xm_strbuf *out,
                   struct xm_error *err)
{
    struct xm_error why = {0};
    struct reader r = {.from = from, .err = &why};
    enum xm_status s = check_whole(&r);
    if (s == XM_OK)
        s = read_files(&r);
    if (s == XM_OK && r.h.n_files == 0)
        s = xm_fail(&why, XM_NOT_FOUND, "the compiled model does not refer to any file");
    if (s == XM_OK)
        xm_strbuf_add(out, r.files[0]->file->path);
    close_files(&r);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

void
xm_blob_free(struct xm_blob *b)
{
    xm_graph_destroy(b->graph);
    xm_free(b->reports);
    *b = (struct xm_blob){0};
}

/* ---- options and kernels -------------------------------------------------------------- */

/* Refuses an import if the process has set option `o` to another value than the blob has. */
static enum xm_status
check_option(const struct xm_config *blob, const struct xm_config *process,
             enum xm_option o, struct xm_error *err)
{
    size_t n;
    const char *name = xm_option_rows(&n)[o].name;
    struct xm_strbuf a = {0}, b = {0};
    enum xm_status s = xm_config_get(blob, name, &a, err);
    if (s == XM_OK)
        s = xm_config_get(process, name, &b, err);
    if (s == XM_OK && strcmp(xm_strbuf_text(&a), xm_strbuf_text(&b)) != 0)
        s = xm_fail(err, XM_INVALID,
                    "the model was compiled with %s=%s: it cannot be imported with %s",
                    name, xm_strbuf_text(&a), xm_strbuf_text(&b));
    xm_strbuf_free(&a);
    xm_strbuf_free(&b);
    return s;
}

/* Sets an option of the config from a line of n bytes, "KEY value". */
static enum xm_status
set_line(struct xm_config *c, const char *line, size_t n, struct xm_error *err)
{
    char buffer[XM_OPTION_TEXT + 64];
    const size_t key = strcspn(line, " \n");
    if (n >= sizeof(buffer) || key >= n)
        return xm_fail(err, XM_INVALID,
                       "the compiled model is damaged: an option is malformed");
    memcpy(buffer, line, n);
    buffer[key] = buffer[n] = '\0';
    return xm_config_set(c, buffer, buffer + key + 1, err);
}

static enum xm_status
read_config(const struct xm_blob *b, struct xm_config *out, struct xm_error *err)
{
    xm_config_init(out);
    for (const char *line = b->config; *line;) {
        const size_t n = strcspn(line, "\n");
        XM_TRY(set_line(out, line, n, err));
        line += n + (line[n] == '\n');
    }
    return XM_OK;
}

enum xm_status
xm_blob_config(const struct xm_blob *b, struct xm_config *c, struct xm_error *err)
{
    struct xm_config own;
    XM_TRY(read_config(b, &own, err));
    for (int i = 0; i < XM_OPTION_COUNT; i++) {
        const enum xm_option o = (enum xm_option)i;
        if (!xm_blob_has_option(o))
            continue;
        if (xm_config_user_set(c, o) && xm_blob_decides_graph(o))
            XM_TRY(check_option(&own, c, o, err));
        if (!xm_config_user_set(c, o) || xm_blob_decides_graph(o))
            xm_config_copy(c, &own, o);
    }
    return XM_OK;
}

const void *
xm_blob_kernel(void *ctx, const struct xm_kernel_key *key, size_t *n)
{
    const struct xm_blob *b = ctx;
    struct xm_blob_kernel_head head;
    uint64_t at = 0;
    while (fits(at, sizeof(head), b->n_kernel_bytes)) {
        memcpy(&head, b->kernels + at, sizeof(head));
        at += sizeof(head);
        if (!fits(at, head.n_bytes, b->n_kernel_bytes))
            return NULL;
        if (memcmp(&head.key, key, sizeof(*key)) == 0) {
            *n = (size_t)head.n_bytes;
            return b->kernels + at;
        }
        at = xm_align_up(at + head.n_bytes, 8);
    }
    return NULL;
}
