/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/npy.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/element.h"
#include "runtime/util/memory.h"
#include "runtime/util/new_file.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MAX_HEADER = 4096, HEADER_ALIGN = 64, MAX_SHOWN = 40 };

bool
xm_npy_is(const void *bytes, uint64_t n)
{
    return n >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}

/* ---- the header: a Python dictionary ----------------------------------------------- */

enum { MOST_RANK = XM_NPY_MOST_RANK };

struct header {
    enum xm_element element;
    uint64_t dim[MOST_RANK], data; /* data: its offset in the file */
    int rank;
};

/* Returns the text after 'key':; NULL: there is no such key. */
static const char *
value_of(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    if (!p)
        return NULL;
    p += strlen(key);
    while (*p == ' ' || *p == ':')
        p++;
    return p;
}

/* Returns the number of characters of a value to show in a sentence: up to the next comma or
 * brace. */
static int
shown(const char *value)
{
    const char *end = *value == '(' ? strchr(value, ')') : NULL;
    size_t n = end ? (size_t)(end - value) + 1 : strcspn(value, ",}\n");
    return n < MAX_SHOWN ? (int)n : MAX_SHOWN;
}

/* Reads "()", "(3,)", "(3, 5)" or "(1, 3, 5)". */
static bool
read_shape(const char *p, struct header *h)
{
    if (*p++ != '(')
        return false;
    while (*p != ')') {
        uint64_t n = 0;
        if (h->rank == MOST_RANK || !isdigit((unsigned char)*p))
            return false;
        for (; isdigit((unsigned char)*p); p++) {
            if (!xm_mul_size(n, 10, &n) || !xm_add_size(n, (uint64_t)(*p - '0'), &n))
                return false;
        }
        h->dim[h->rank++] = n;
        while (*p == ',' || *p == ' ')
            p++;
    }
    return true;
}

/* The files that a reader accepts. */
struct wish {
    const char *types, *shapes; /* for sentences */
    int least, most; /* bounds of the rank; dimensions before a matrix must be 1 */
    bool (*takes)(enum xm_element e);
};

static bool
takes_ids(enum xm_element e)
{
    return e == XM_I32 || e == XM_I64;
}

static bool
takes_floats(enum xm_element e)
{
    return e == XM_F32;
}

static bool
takes_any(enum xm_element e)
{
    (void)e;
    return true;
}

static bool
is_wished(const struct header *h, const struct wish *w)
{
    const bool is_matrix = h->rank < 3 || h->dim[0] == 1;
    return h->rank >= w->least && h->rank <= w->most &&
           (is_matrix || w->most == MOST_RANK);
}

static bool
read_type(const char *descr, enum xm_element *out)
{
    static const struct {
        const char *text;
        enum xm_element element;
    } types[] = {{"'<i4'", XM_I32}, {"'<i8'", XM_I64}, {"'<f4'", XM_F32},
                 {"'<f2'", XM_F16}, {"'<f8'", XM_F64}, {"'|b1'", XM_BOOL},
                 {"'|i1'", XM_I8},  {"'|u1'", XM_U8},  {"'<i2'", XM_I16},
                 {"'<u2'", XM_U16}, {"'<u4'", XM_U32}, {"'<u8'", XM_U64}};
    for (size_t i = 0; i < XM_ARRAY_LEN(types); i++) {
        if (strncmp(descr, types[i].text, strlen(types[i].text)) == 0) {
            *out = types[i].element;
            return true;
        }
    }
    return false;
}

static enum xm_status
read_dictionary(const char *text, const struct wish *w, struct header *h,
                struct xm_error *err)
{
    const char *descr = value_of(text, "'descr'"), *shape = value_of(text, "'shape'");
    const char *order = value_of(text, "'fortran_order'");
    if (!descr || !shape || !order)
        return xm_fail(err, XM_INVALID,
                       "the header of the .npy file has no 'descr', 'fortran_order' or "
                       "'shape'");
    if (!read_type(descr, &h->element) || !w->takes(h->element))
        return xm_fail(err, XM_UNSUPPORTED,
                       "the .npy file has numbers of type %.*s, expected %s",
                       shown(descr), descr, w->types);
    if (strncmp(order, "False", 5) != 0)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the .npy file is in Fortran order, expected C order");
    if (!read_shape(shape, h) || !is_wished(h, w))
        return xm_fail(err, XM_UNSUPPORTED,
                       "the .npy file has the shape %.*s, expected %s", shown(shape),
                       shape, w->shapes);
    return XM_OK;
}

static enum xm_status
read_header(const uint8_t *bytes, uint64_t n, const struct wish *w, struct header *h,
            struct xm_error *err)
{
    char text[MAX_HEADER + 1];
    if (!xm_npy_is(bytes, n) || n < MAGIC + 4)
        return xm_fail(err, XM_INVALID, "not an .npy file");
    bool old = bytes[MAGIC] == 1;
    uint64_t begin = MAGIC + 2 + (old ? 2 : 4), length = 0;
    if (bytes[MAGIC] < 1 || bytes[MAGIC] > 3 || n < begin)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the .npy file has version %u, expected 1 to 3", bytes[MAGIC]);
    for (uint64_t i = begin; i-- > MAGIC + 2;)
        length = length << 8 | bytes[i];
    if (length > MAX_HEADER || begin + length > n)
        return xm_fail(err, XM_INVALID,
                       "the header of the .npy file has %" PRIu64
                       " bytes, expected at most %d and not more than the file has",
                       length, MAX_HEADER);
    memcpy(text, bytes + begin, (size_t)length);
    text[length] = '\0';
    h->data = begin + length;
    return read_dictionary(text, w, h, err);
}

/* Finds the matrix in a file: its size, and the offset of its elements, which the file has
 * completely. */
static enum xm_status
find_matrix(const uint8_t *bytes, uint64_t n, const struct wish *w, struct header *h,
            uint64_t *rows, uint64_t *cols, struct xm_error *err)
{
    uint64_t count, size;
    XM_TRY(read_header(bytes, n, w, h, err));
    *cols = h->dim[h->rank - 1];
    *rows = h->rank > 1 ? h->dim[h->rank - 2] : 1;
    if (!xm_mul_size(*rows, *cols, &count) ||
        !xm_element_bytes(h->element, count, &size) || size > n - h->data)
        return xm_fail(err, XM_INVALID,
                       "the .npy file is truncated: it has %" PRIu64 " x %" PRIu64
                       " elements, but only %" PRIu64 " bytes of data",
                       *rows, *cols, n - h->data);
    return XM_OK;
}

enum xm_status
xm_npy_read(const void *content, uint64_t n, struct xm_npy *out, struct xm_error *err)
{
    static const struct wish wish = {.types = "int32 ('<i4') or int64 ('<i8')",
                                     .shapes = "one or two dimensions",
                                     .least = 1,
                                     .most = 2,
                                     .takes = takes_ids};
    const uint8_t *bytes = content;
    struct header h = {0};
    *out = (struct xm_npy){0};
    XM_TRY(find_matrix(bytes, n, &wish, &h, &out->rows, &out->cols, err));
    const uint64_t count = out->rows * out->cols;
    out->data = xm_calloc((size_t)count + 1, sizeof(*out->data));
    if (!out->data)
        return xm_no_memory(err, "an array");
    for (uint64_t i = 0; i < count; i++)
        out->data[i] = xm_load_int(h.element, bytes + h.data, i);
    return XM_OK;
}

enum xm_status
xm_npy_read_floats(const void *content, uint64_t n, struct xm_npy_floats *out,
                   struct xm_error *err)
{
    static const struct wish wish = {
        .types = "float32 ('<f4')",
        .shapes = "one or two dimensions, or three of which the first is 1",
        .least = 1,
        .most = 3,
        .takes = takes_floats};
    const uint8_t *bytes = content;
    struct header h = {0};
    *out = (struct xm_npy_floats){0};
    XM_TRY(find_matrix(bytes, n, &wish, &h, &out->rows, &out->cols, err));
    const uint64_t count = out->rows * out->cols;
    out->data = xm_calloc((size_t)count + 1, sizeof(*out->data));
    if (!out->data)
        return xm_no_memory(err, "an array");
    memcpy(out->data, bytes + h.data, (size_t)count * sizeof(*out->data));
    return XM_OK;
}

enum xm_status
xm_npy_open(const void *content, uint64_t n, struct xm_npy_view *out,
            struct xm_error *err)
{
    static const struct wish wish = {
        .types = "a boolean, an integer or a float, little-endian",
        .shapes = "at most 8 dimensions",
        .most = MOST_RANK,
        .takes = takes_any};
    struct header h = {0};
    uint64_t count = 1, size = 0;
    *out = (struct xm_npy_view){0};
    XM_TRY(read_header(content, n, &wish, &h, err));
    bool fits = true;
    for (int i = 0; i < h.rank; i++)
        fits = fits && xm_mul_size(count, h.dim[i], &count);
    if (!fits || !xm_element_bytes(h.element, count, &size) || size > n - h.data)
        return xm_fail(err, XM_INVALID,
                       "the .npy file is truncated: it has only %" PRIu64
                       " bytes of data",
                       n - h.data);
    *out = (struct xm_npy_view){.element = h.element,
                                .rank = (uint32_t)h.rank,
                                .n = count,
                                .data = (const uint8_t *)content + h.data};
    memcpy(out->dim, h.dim, sizeof(out->dim));
    return XM_OK;
}

void
xm_npy_floats_free(struct xm_npy_floats *a)
{
    xm_free(a->data);
    *a = (struct xm_npy_floats){0};
}

void
xm_npy_free(struct xm_npy *a)
{
    xm_free(a->data);
    *a = (struct xm_npy){0};
}

/* ---- writing ----------------------------------------------------------------------- */

static bool
write_all(FILE *f, const float *data, uint64_t rows, uint64_t cols)
{
    char text[2 * HEADER_ALIGN];
    int n = snprintf(text, sizeof(text),
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64
                     ", %" PRIu64 "), }",
                     rows, cols);
    uint64_t whole = xm_align_up(MAGIC + 4 + (uint64_t)n + 1, HEADER_ALIGN);
    unsigned length = (unsigned)(whole - MAGIC - 4);
    fwrite(magic, 1, MAGIC, f);
    fputc(1, f);
    fputc(0, f);
    fputc((int)(length & 0xff), f);
    fputc((int)(length >> 8), f);
    fprintf(f, "%-*s\n", (int)length - 1, text);
    for (uint64_t r = 0; r < rows; r++)
        fwrite(data + r * cols, sizeof(*data), (size_t)cols, f);
    return fflush(f) == 0 && !ferror(f);
}

enum xm_status
xm_npy_write(const char *path, const float *data, uint64_t rows, uint64_t cols,
             struct xm_error *err)
{
    struct xm_new_file at;
    if (strcmp(path, "-") == 0)
        return write_all(stdout, data, rows, cols)
                   ? XM_OK
                   : xm_fail(err, XM_IO, "%s could not be written: %s", path,
                             strerror(errno));
    XM_TRY(xm_new_file_begin(&at, path, err));
    FILE *f = fopen(xm_new_file_name(&at), "wbe");
    bool good = f && write_all(f, data, rows, cols);
    if (f)
        good = fclose(f) == 0 && good;
    return xm_new_file_end(&at, good ? XM_OK : xm_new_file_fail(&at, err), err);
}
