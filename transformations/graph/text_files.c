/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/graph/text_files.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/util/checksum.h"
#include "transformations/graph/text.h"

/* Most files of a text. Bytes in further mappings of a graph are treated as if they were in no
 * file. */
enum { MAX_FILES = 1 << 12, VIEW_NUMBERS = 4 };

static const char *const part_keys[XM_TEXT_PARTS] = {"data", "scale", "zp", "codebook",
                                                     "factors"};

/* ---- printing ------------------------------------------------------------------------ */

static uint64_t
blob_bytes(const struct xm_node *n)
{
    return n->op == XM_OP_CONST ? n->attr.data.n_bytes : xm_weight_bytes(&n->attr.weight);
}

bool
xm_text_wants_places(const struct xm_graph *g, uint64_t most)
{
    uint64_t sum = 0;
    xm_for_each_node(n, g)
    {
        if (xm_node_is_blob(n) && !xm_add_size(sum, blob_bytes(n), &sum))
            return true;
    }
    return sum > most;
}

void
xm_text_print_files(const struct xm_graph *g, struct xm_strbuf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_mappings && n < MAX_FILES; i++) {
        const struct xm_file_mapping *f = g->mappings[i]->file;
        if (!f)
            continue;
        n++;
        xm_strbuf_add(out, "file ");
        xm_text_add_quoted(out, f->path);
        xm_strbuf_printf(out,
                         " bytes=%" PRIu64 " changed=%" PRIu64 " samples=%" PRIu64 "\n",
                         f->file.n_bytes, (uint64_t)f->file.mtime_ns,
                         xm_checksum_samples(f->file.bytes, f->file.n_bytes));
    }
}

static bool
lies_in(const struct xm_bytes *b, const struct xm_mapped_file *f)
{
    const uintptr_t at = (uintptr_t)b->p, from = (uintptr_t)f->bytes;
    return at >= from && at - from <= f->n_bytes && b->n <= f->n_bytes - (at - from);
}

static void
print_place(const struct xm_graph *g, enum xm_text_part part, const struct xm_bytes *b,
            struct xm_strbuf *out)
{
    uint32_t n = 0;
    if (!b->p || b->n == 0)
        return;
    xm_strbuf_printf(out, " %s={", part_keys[part]);
    for (uint32_t i = 0; i < g->n_mappings && n < MAX_FILES; i++) {
        const struct xm_file_mapping *f = g->mappings[i]->file;
        if (f && lies_in(b, &f->file)) {
            xm_strbuf_printf(out, "%u, %" PRIu64 ", ", n,
                             (uint64_t)(b->p - f->file.bytes));
            break;
        }
        n += f != NULL;
    }
    xm_strbuf_printf(out, "%" PRIu64 "}", b->n);
}

void
xm_text_print_places(const struct xm_graph *g, const struct xm_node *n,
                     struct xm_strbuf *out)
{
    const struct xm_weight *w = &n->attr.weight;
    const struct xm_weight_view *v = &w->view;
    if (n->op == XM_OP_CONST) {
        const struct xm_bytes b = {n->attr.data.bytes, n->attr.data.n_bytes};
        if (n->out[0].type.element != XM_STRING)
            print_place(g, XM_TEXT_DATA, &b, out);
        return;
    }
    print_place(g, XM_TEXT_DATA, &w->data, out);
    if (v->row_cols || v->expert_rows || v->first_row || v->first_col)
        xm_strbuf_printf(out,
                         " view={%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "}",
                         v->row_cols, v->expert_rows, v->first_row, v->first_col);
    print_place(g, XM_TEXT_SCALE, &w->scale, out);
    print_place(g, XM_TEXT_ZERO_POINT, &w->zero_point, out);
    print_place(g, XM_TEXT_CODEBOOK, &w->codebook, out);
    print_place(g, XM_TEXT_FACTOR, &w->factor, out);
}

/* ---- parsing ------------------------------------------------------------------------- */

/* Reads "key=" if it comes next. */
static bool
take_key(struct xm_lexer *l, const char *key)
{
    const size_t n = strlen(key);
    xm_lex_peek(l);
    if (strncmp(l->at, key, n) != 0 || l->at[n] != '=')
        return false;
    l->at += n + 1;
    return true;
}

static enum xm_status
parse_value(struct xm_lexer *l, const char *key, uint64_t *out)
{
    return take_key(l, key) ? xm_lex_number(l, UINT64_MAX, out)
                            : xm_lex_fail(l, "expected %s=", key);
}

/* Refuses a file whose size, mtime or sampled checksum differs from the text's, because its bytes
 * would no longer be the weights of the graph that was dumped. */
static enum xm_status
check_file(struct xm_lexer *l, const struct xm_file_mapping *f)
{
    uint64_t bytes, changed, samples;
    XM_TRY(parse_value(l, "bytes", &bytes));
    XM_TRY(parse_value(l, "changed", &changed));
    XM_TRY(parse_value(l, "samples", &samples));
    if (f->file.n_bytes == bytes && (uint64_t)f->file.mtime_ns == changed &&
        xm_checksum_samples(f->file.bytes, f->file.n_bytes) == samples)
        return XM_OK;
    struct xm_error why = {0};
    xm_fail(&why, XM_UNSUPPORTED,
            "'%.300s' has changed since this graph text was written: write the text "
            "again with XM_DUMP",
            f->path);
    return xm_lex_pass_on(l, &why);
}

enum xm_status
xm_text_parse_file(struct xm_lexer *l, struct xm_graph *g)
{
    struct xm_mapping *m = NULL;
    struct xm_error why = {0};
    const char *path;
    if (g->n_mappings == MAX_FILES)
        return xm_lex_fail(l, "the text names more than %d files", MAX_FILES);
    XM_TRY(xm_lex_string(l, &g->arena, &path));
    if (xm_file_mapping_open(path, &m, &why) != XM_OK) {
        xm_error_prefix(&why, "a file that has the text's constants");
        return xm_lex_pass_on(l, &why);
    }
    enum xm_status s = check_file(l, m->file);
    if (s == XM_OK && xm_graph_add_mapping(g, m) != XM_OK)
        s = xm_no_memory(l->err, "a mapping");
    xm_mapping_unref(m);
    return s;
}

bool
xm_text_places_follow(struct xm_lexer *l)
{
    const struct xm_lexer at = *l;
    const bool follow = take_key(l, part_keys[XM_TEXT_DATA]);
    *l = at;
    return follow;
}

/* Reads "{1, 2, 3}": *n numbers, at most `most`. */
static enum xm_status
parse_numbers(struct xm_lexer *l, uint64_t *out, uint32_t most, uint32_t *n)
{
    XM_TRY(xm_lex_expect(l, '{'));
    *n = 0;
    do {
        if (*n == most)
            return xm_lex_fail(l, "more than %u numbers", most);
        XM_TRY(xm_lex_number(l, UINT64_MAX, &out[(*n)++]));
    } while (xm_lex_take(l, ','));
    return xm_lex_expect(l, '}');
}

static enum xm_status
parse_place(struct xm_lexer *l, const struct xm_graph *g, struct xm_bytes *out)
{
    uint64_t number[3];
    uint32_t n;
    XM_TRY(parse_numbers(l, number, XM_ARRAY_LEN(number), &n));
    out->n = number[n - 1];
    if (n == 1)
        return XM_OK;
    if (n != XM_ARRAY_LEN(number))
        return xm_lex_fail(l, "expected {file, offset, bytes} or {bytes}");
    if (number[0] >= g->n_mappings)
        return xm_lex_fail(l, "no file with the number %" PRIu64 " is named above",
                           number[0]);
    const struct xm_mapped_file *f = &g->mappings[number[0]]->file->file;
    if (number[1] > f->n_bytes || out->n > f->n_bytes - number[1])
        return xm_lex_fail(l, "these bytes lie beyond the end of file %" PRIu64,
                           number[0]);
    out->p = f->bytes + number[1];
    return XM_OK;
}

enum xm_status
xm_text_parse_places(struct xm_lexer *l, const struct xm_graph *g,
                     struct xm_text_places *out)
{
    uint64_t view[VIEW_NUMBERS] = {0};
    uint32_t n;
    *out = (struct xm_text_places){0};
    for (int i = 0; i < XM_TEXT_PARTS; i++) {
        if (take_key(l, part_keys[i]))
            XM_TRY(parse_place(l, g, &out->part[i]));
        if (i == XM_TEXT_DATA && take_key(l, "view"))
            XM_TRY(parse_numbers(l, view, VIEW_NUMBERS, &n));
    }
    out->view = (struct xm_weight_view){view[0], view[1], view[2], view[3]};
    return XM_OK;
}
