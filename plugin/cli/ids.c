/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads token ids from the command line and from files.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/program_util/npy.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/number.h"

void
xm_cli_ids_free(struct xm_cli_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++)
        xm_token_list_free(&ids->rows[i]);
    xm_free(ids->rows);
    *ids = (struct xm_cli_ids){0};
}

static struct xm_token_list *
add_row(struct xm_cli_ids *ids, struct xm_error *err)
{
    struct xm_token_list *rows = xm_realloc(ids->rows, (ids->n + 1) * sizeof(*rows));
    if (!rows) {
        xm_no_memory(err, "token ids");
        return NULL;
    }
    ids->rows = rows;
    rows[ids->n] = (struct xm_token_list){0};
    return &rows[ids->n++];
}

static enum xm_status
add_id(struct xm_token_list *row, int64_t id, uint64_t vocabulary, struct xm_error *err)
{
    if (id < 0 || (uint64_t)id >= vocabulary || id > INT32_MAX)
        return xm_fail(err, XM_INVALID,
                       "token id %" PRId64 " is not in the vocabulary of %" PRIu64
                       " tokens",
                       id, vocabulary);
    return xm_token_list_add(row, (int32_t)id) ? XM_OK : xm_no_memory(err, "token ids");
}

/* ---- text -------------------------------------------------------------------------- */

static bool
separates(char c)
{
    return c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t';
}

static enum xm_status
add_word(struct xm_token_list *row, const char *text, size_t n, uint64_t vocabulary,
         struct xm_error *err)
{
    char word[24];
    uint64_t id = 0;
    snprintf(word, sizeof(word), "%.*s", (int)(n < 23 ? n : 23), text);
    if (n >= sizeof(word) || !xm_parse_whole(word, &id) || id > INT64_MAX)
        return xm_fail(err, XM_INVALID, "'%s' is not a token id", word);
    return add_id(row, (int64_t)id, vocabulary, err);
}

static enum xm_status
read_text(const char *text, size_t n, uint64_t vocabulary, struct xm_cli_ids *out,
          struct xm_error *err)
{
    struct xm_token_list *row = add_row(out, err);
    size_t comma =
        0; /* position, from 1, of a comma that no id has followed yet; 0: none */
    if (!row)
        return XM_NO_MEMORY;
    for (size_t at = 0, length; at < n; at += length ? length : 1) {
        for (length = 0; at + length < n && !separates(text[at + length]); length++)
            ;
        if (length > 0) {
            XM_TRY(add_word(row, text + at, length, vocabulary, err));
            comma = 0;
        } else if (text[at] == ',') {
            if (comma || row->n == 0)
                return xm_fail(err, XM_INVALID,
                               "there is no token id before the comma at character %zu",
                               at + 1);
            comma = at + 1;
        }
    }
    return comma == 0
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "there is no token id after the comma at character %zu", comma);
}

/* ---- files ------------------------------------------------------------------------- */

static enum xm_status
take_rows(const struct xm_npy *a, int64_t chosen, uint64_t vocabulary,
          struct xm_cli_ids *out, struct xm_error *err)
{
    if (chosen >= 0 && (uint64_t)chosen >= a->rows)
        return xm_fail(err, XM_INVALID,
                       "there is no row %" PRId64 ": the file has %" PRIu64, chosen,
                       a->rows);
    for (uint64_t r = 0; r < a->rows; r++) {
        if (chosen >= 0 && r != (uint64_t)chosen)
            continue;
        struct xm_token_list *row = add_row(out, err);
        if (!row)
            return XM_NO_MEMORY;
        for (uint64_t c = 0; c < a->cols; c++)
            XM_TRY(add_id(row, a->data[r * a->cols + c], vocabulary, err));
    }
    return XM_OK;
}

static enum xm_status
read_content(const struct xm_mapped_file *f, int64_t row, uint64_t vocabulary,
             struct xm_cli_ids *out, struct xm_error *err)
{
    if (!xm_npy_is(f->bytes, f->n_bytes)) {
        if (row > 0)
            return xm_fail(err, XM_INVALID, "a text file has only one row, row 0");
        return read_text((const char *)f->bytes, (size_t)f->n_bytes, vocabulary, out,
                         err);
    }
    struct xm_npy a;
    XM_TRY(xm_npy_read(f->bytes, f->n_bytes, &a, err));
    enum xm_status s = take_rows(&a, row, vocabulary, out, err);
    xm_npy_free(&a);
    return s;
}

/* Opens "FILE" or "FILE:R". A file whose own name ends like "…:R" is opened by its full name. */
static enum xm_status
open_file(const char *name, struct xm_mapped_file *f, int64_t *row, struct xm_error *err)
{
    const char *colon = strrchr(name, ':');
    uint64_t r = 0;
    struct xm_strbuf path = {0};
    *row = -1;
    if (xm_mapped_file_open(name, f, NULL) == XM_OK)
        return XM_OK;
    if (!colon || !xm_parse_whole(colon + 1, &r) || r > INT32_MAX)
        return xm_mapped_file_open(name, f, err);
    *row = (int64_t)r;
    xm_strbuf_add_n(&path, name, (size_t)(colon - name));
    enum xm_status s = xm_mapped_file_open(xm_strbuf_text(&path), f, err);
    xm_strbuf_free(&path);
    return s;
}

static enum xm_status
read_file(const char *name, uint64_t vocabulary, struct xm_cli_ids *out,
          struct xm_error *err)
{
    struct xm_mapped_file f = {0};
    int64_t row;
    XM_TRY(open_file(name, &f, &row, err));
    enum xm_status s = read_content(&f, row, vocabulary, out, err);
    xm_mapped_file_close(&f);
    if (s != XM_OK)
        xm_error_prefix(err, "%s", name);
    return s;
}

int
xm_cli_ids_read(const char *arg, uint64_t vocabulary, struct xm_cli_ids *out)
{
    struct xm_error err = {0};
    bool is_file = arg[0] == '@';
    if (strcmp(arg, "@") == 0)
        return xm_cli_usage("option --ids: there is no file name after '@'");
    enum xm_status s = is_file ? read_file(arg + 1, vocabulary, out, &err)
                               : read_text(arg, strlen(arg), vocabulary, out, &err);
    if (!is_file && s != XM_OK)
        xm_error_prefix(&err, "option --ids");
    for (size_t i = 0; i < out->n && s == XM_OK; i++) {
        if (out->rows[i].n == 0)
            s = xm_fail(&err, XM_INVALID, "option --ids: '%s' holds no token ids", arg);
    }
    if (s == XM_OK && out->n == 0)
        s = xm_fail(&err, XM_INVALID, "option --ids: '%s' holds no token ids", arg);
    if (s == XM_OK)
        return XM_EXIT_OK;
    xm_cli_ids_free(out);
    return is_file || s != XM_INVALID ? xm_cli_failed(&err)
                                      : xm_cli_usage("%s", err.text);
}

int
xm_cli_ids_read_row(const char *arg, uint64_t vocabulary, struct xm_token_list *out)
{
    struct xm_cli_ids ids = {0};
    int code = xm_cli_ids_read(arg, vocabulary, &ids);
    if (code == XM_EXIT_OK && ids.n > 1)
        code = xm_cli_usage("%s has %zu rows: choose one with %s:ROW", arg, ids.n, arg);
    if (code == XM_EXIT_OK) {
        *out = ids.rows[0];
        ids.rows[0] = (struct xm_token_list){0};
    }
    xm_cli_ids_free(&ids);
    return code;
}

int
xm_cli_ids_check(const char *arg, bool one_row)
{
    struct xm_cli_ids ids = {0};
    struct xm_token_list row = {0};
    int code = one_row ? xm_cli_ids_read_row(arg, UINT64_MAX, &row)
                       : xm_cli_ids_read(arg, UINT64_MAX, &ids);
    xm_token_list_free(&row);
    xm_cli_ids_free(&ids);
    return code;
}

int
xm_cli_ids_check_vocabulary(const struct xm_cli_model *m, const void *arg)
{
    struct xm_cli_ids ids = {0};
    const int code = arg ? xm_cli_ids_read(arg, xm_cli_vocabulary(m), &ids) : XM_EXIT_OK;
    xm_cli_ids_free(&ids);
    return code;
}
