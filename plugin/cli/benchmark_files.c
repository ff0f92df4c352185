/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/benchmark_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/benchmark_inputs.h"
#include "plugin/cli/npy.h"
#include "runtime/util/element.h"
#include "runtime/util/mapped_file.h"

void
xm_benchmark_files_free(struct xm_benchmark_files *f)
{
    for (size_t i = 0; i < f->n_inputs; i++) {
        for (size_t k = 0; k < f->list[i].n; k++)
            xm_free(f->list[i].paths[k]);
        xm_free(f->list[i].paths);
    }
    xm_free(f->list);
    *f = (struct xm_benchmark_files){0};
}

/* ---- which file is whose ----------------------------------------------------------- */

static enum xm_status
add_path(struct xm_benchmark_file_list *l, struct xm_slice path, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    char **grown = xm_grow(l->paths, &l->capacity, l->n + 1, sizeof(*grown));
    if (!grown)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for names of files");
    l->paths = grown;
    xm_strbuf_add_n(&text, path.text, path.n);
    char *copy = xm_strbuf_take(&text);
    if (!copy)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for names of files");
    l->paths[l->n++] = copy;
    return XM_OK;
}

/* The input whose name and a colon the text begins with; n: none. */
static size_t
find_named(const struct xm_benchmark_ports *inputs, const char *text)
{
    size_t i = 0;
    for (; i < inputs->n; i++) {
        const size_t n = strlen(inputs->list[i].name);
        if (strncmp(text, inputs->list[i].name, n) == 0 && text[n] == ':')
            return i;
    }
    return i;
}

static size_t
find_free(const struct xm_benchmark_files *f)
{
    size_t i = 0;
    while (i < f->n_inputs && f->list[i].n)
        i++;
    return i;
}

/* "name:file" where the model has no such input and there is no file of that whole name. */
static enum xm_status
check_part(struct xm_slice part, struct xm_error *err)
{
    const char *colon = memchr(part.text, ':', part.n);
    struct xm_strbuf path = {0};
    if (!colon)
        return XM_OK;
    xm_strbuf_add_n(&path, part.text, part.n);
    const bool is_there = access(xm_strbuf_text(&path), F_OK) == 0;
    xm_strbuf_free(&path);
    return is_there
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "-i: the model has no input '%.*s', and there is no file "
                         "'%.*s'",
                         (int)(colon - part.text), part.text, (int)part.n, part.text);
}

/* A word of -i. */
static enum xm_status
take_word(struct xm_benchmark_files *f, const struct xm_benchmark_ports *inputs,
          const char *word, struct xm_error *err)
{
    size_t input = inputs->n;
    for (const char *at = word;;) {
        const size_t named = find_named(inputs, at);
        if (named < inputs->n) {
            input = named;
            at += strlen(inputs->list[named].name) + 1;
        } else if (input == inputs->n) {
            input = find_free(f);
        }
        const size_t n = strcspn(at, ",");
        if (named == inputs->n)
            XM_TRY(check_part(xm_slice_of(at, n), err));
        if (input == inputs->n || n == 0)
            return xm_fail(err, XM_INVALID,
                           "-i: '%.200s' is for no input of the model, or names no file",
                           word);
        XM_TRY(add_path(&f->list[input], xm_slice_of(at, n), err));
        if (at[n] == '\0')
            return XM_OK;
        at += n + 1;
    }
}

enum xm_status
xm_benchmark_files_find(const struct xm_benchmark_args *a,
                        const struct xm_benchmark_ports *inputs,
                        struct xm_benchmark_files *out, struct xm_error *err)
{
    *out = (struct xm_benchmark_files){0};
    out->list = xm_calloc(inputs->n + 1, sizeof(*out->list));
    if (!out->list)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for names of files");
    out->n_inputs = inputs->n;
    for (size_t i = 0; i < a->n_files; i++)
        XM_TRY(take_word(out, inputs, a->files[i], err));
    return XM_OK;
}

bool
xm_benchmark_files_has(const struct xm_benchmark_files *f, size_t input)
{
    return f->list[input].n > 0;
}

size_t
xm_benchmark_files_most(const struct xm_benchmark_files *f)
{
    size_t most = 0;
    for (size_t i = 0; i < f->n_inputs; i++)
        most = f->list[i].n > most ? f->list[i].n : most;
    return most;
}

/* ---- what is in them --------------------------------------------------------------- */

static const char *
path_of(const struct xm_benchmark_files *f, size_t input, size_t set)
{
    const struct xm_benchmark_file_list *l = &f->list[input];
    return l->n ? l->paths[set % l->n] : NULL;
}

bool
xm_benchmark_files_shape(const struct xm_benchmark_files *f, size_t input, size_t set,
                         struct xm_benchmark_dims *out)
{
    const char *path = path_of(f, input, set);
    struct xm_mapped_file file = {0};
    struct xm_npy_view view = {0};
    if (!path || xm_mapped_file_open(path, &file, NULL) != XM_OK)
        return false;
    const bool is_npy = xm_npy_open(file.bytes, file.n_bytes, &view, NULL) == XM_OK;
    *out = (struct xm_benchmark_dims){.rank = is_npy ? view.rank : 0};
    for (uint32_t i = 0; i < out->rank; i++)
        out->min[i] = out->max[i] = (int64_t)view.dim[i];
    xm_mapped_file_close(&file);
    return is_npy;
}

uint64_t
xm_benchmark_files_count(const struct xm_benchmark_files *f, size_t input, size_t set,
                         ov_element_type_e type)
{
    const char *path = path_of(f, input, set);
    const uint64_t bits = xm_element_bits((enum xm_element)type);
    struct xm_mapped_file file = {0};
    if (!path || !bits || xm_mapped_file_open(path, &file, NULL) != XM_OK)
        return 0;
    const uint64_t n = xm_npy_is(file.bytes, file.n_bytes) ? 0 : file.n_bytes * 8 / bits;
    xm_mapped_file_close(&file);
    return n;
}

static bool
is_picture(const char *path)
{
    static const char *const ends[] = {".bmp", ".png", ".jpg", ".jpeg", ".gif", ".tiff"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < XM_ARRAY_LEN(ends); i++) {
        if (xm_same_but_case(dot, ends[i]))
            return true;
    }
    return false;
}

/* Whether the element can be read back. Of 64 bits a negative number and a large one are the same
 * until it is said which of them it is. */
static bool
store_whole(const struct xm_npy_view *v, uint64_t i, enum xm_element to, void *data)
{
    const int64_t value = xm_load_int(v->element, v->data, i);
    xm_store_int(to, data, i, value);
    const bool keeps_sign = value >= 0 || (v->element != XM_U64 && to != XM_U64);
    return keeps_sign && xm_load_int(to, data, i) == value;
}

static enum xm_status
fail_number(const struct xm_npy_view *v, uint64_t i, enum xm_element to, const char *name,
            struct xm_error *err)
{
    char text[24];
    const int64_t value = xm_load_int(v->element, v->data, i);
    snprintf(text, sizeof(text), v->element == XM_U64 ? "%" PRIu64 : "%" PRId64, value);
    return xm_fail(err, XM_INVALID,
                   "its number %" PRIu64 " is %s, and input '%s' takes %s", i, text, name,
                   xm_element_text(to));
}

/* Numbers of the file's type become the input's, floats only floats and integers only integers. */
static enum xm_status
convert(const struct xm_npy_view *v, enum xm_element to, const char *name,
        struct xm_benchmark_tensor *t, struct xm_error *err)
{
    if (v->element == to) {
        memcpy(t->data, v->data, (size_t)t->bytes);
        return XM_OK;
    }
    const bool is_float = xm_element_is_float(to);
    if (is_float != xm_element_is_float(v->element) || xm_element_bits(to) < 8 ||
        !xm_element_readable(to) || !xm_element_readable(v->element))
        return xm_fail(err, XM_INVALID, "it holds %s, and input '%s' takes %s",
                       xm_element_text(v->element), name, xm_element_text(to));
    for (uint64_t i = 0; i < v->n; i++) {
        if (is_float)
            xm_store_float(to, t->data, i, xm_load_float(v->element, v->data, i));
        else if (!store_whole(v, i, to, t->data))
            return fail_number(v, i, to, name, err);
    }
    return XM_OK;
}

static enum xm_status
load_npy(const struct xm_mapped_file *file, const struct xm_benchmark_port *port,
         struct xm_benchmark_tensor *t, struct xm_error *err)
{
    struct xm_npy_view v;
    uint64_t n = 1;
    XM_TRY(xm_npy_open(file->bytes, file->n_bytes, &v, err));
    for (uint32_t i = 0; i < t->dims.rank; i++)
        n *= (uint64_t)t->dims.min[i]; /* fits: the tensor has been made */
    if (v.n != n)
        return xm_fail(err, XM_INVALID,
                       "it holds %" PRIu64 " numbers, and input '%s' takes %" PRIu64, v.n,
                       port->name, n);
    return convert(&v, (enum xm_element)port->type, port->name, t, err);
}

static enum xm_status
load_bytes(const struct xm_mapped_file *file, const char *name,
           struct xm_benchmark_tensor *t, struct xm_error *err)
{
    if (file->n_bytes != t->bytes)
        return xm_fail(err, XM_INVALID,
                       "it has %" PRIu64 " bytes, and input '%s' takes %" PRIu64,
                       file->n_bytes, name, t->bytes);
    memcpy(t->data, file->bytes, (size_t)t->bytes);
    return XM_OK;
}

enum xm_status
xm_benchmark_files_load(const struct xm_benchmark_files *f, size_t input, size_t set,
                        const struct xm_benchmark_port *port,
                        struct xm_benchmark_tensor *t, struct xm_error *err)
{
    const char *path = path_of(f, input, set);
    struct xm_mapped_file file = {0};
    struct xm_error local = {0};
    enum xm_status s = XM_OK;
    if (is_picture(path))
        return xm_fail(err, XM_UNSUPPORTED,
                       "-i: '%.200s' is a picture; .npy files and bytes are read", path);
    s = xm_mapped_file_open(path, &file, &local);
    if (s == XM_OK && xm_npy_is(file.bytes, file.n_bytes))
        s = load_npy(&file, port, t, &local);
    else if (s == XM_OK)
        s = load_bytes(&file, port->name, t, &local);
    xm_mapped_file_close(&file);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "-i: '%.200s': %s", path, local.text);
}
