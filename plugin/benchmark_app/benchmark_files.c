/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/benchmark_app/benchmark_inputs.h"
#include "plugin/benchmark_app/benchmark_report.h"
#include "plugin/program_util/npy.h"
#include "runtime/util/element.h"
#include "runtime/util/mapped_file.h"

static void
free_list(struct xm_benchmark_file_list *l)
{
    for (size_t k = 0; k < l->n; k++)
        xm_free(l->paths[k]);
    xm_free(l->paths);
}

void
xm_benchmark_files_free(struct xm_benchmark_files *f)
{
    for (size_t i = 0; i < f->n_inputs; i++)
        free_list(&f->list[i]);
    xm_free(f->list);
    *f = (struct xm_benchmark_files){0};
}

/* ---- distributing files -------------------------------------------------------------------- */

/* Receives the files of a word: one input, or the inputs without a named file in turn. */
struct taker {
    struct xm_benchmark_files *files;
    const struct xm_benchmark_ports *inputs;
    size_t input; /* inputs->n: distribute to `nameless` */
    size_t *nameless, n_nameless, n_dealt;
    struct xm_error *err;
};

/* Appends a path, which the list owns from now on. `path` NULL: fails for lack of memory. */
static enum xm_status
push(struct xm_benchmark_file_list *l, char *path, struct xm_error *err)
{
    char **grown =
        path ? xm_grow(l->paths, &l->capacity, l->n + 1, sizeof(*grown)) : NULL;
    if (!grown) {
        xm_free(path);
        return xm_no_memory(err, "names of files");
    }
    l->paths = grown;
    l->paths[l->n++] = path;
    return XM_OK;
}

static enum xm_status
add_path(struct taker *t, const char *path)
{
    const size_t input =
        t->input < t->inputs->n ? t->input : t->nameless[t->n_dealt++ % t->n_nameless];
    return push(&t->files->list[input], xm_strdup(path), t->err);
}

/* ---- folders ----------------------------------------------------------------------- */

static bool
is_input_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (xm_same_but_case(dot, ".npy") || xm_same_but_case(dot, ".bin"));
}

static int
compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum xm_status
list_folder(const char *folder, struct xm_benchmark_file_list *out, struct xm_error *err)
{
    DIR *d = opendir(folder);
    enum xm_status s = XM_OK;
    if (!d)
        return xm_fail(err, XM_INVALID, "-i: folder '%.200s' cannot be read: %s", folder,
                       strerror(errno));
    for (struct dirent *e; s == XM_OK && (e = readdir(d));) {
        if (is_input_file(e->d_name))
            s = push(out, xm_benchmark_join(folder, e->d_name), err);
    }
    closedir(d);
    return s;
}

/* Adds the files of a folder, sorted by name. */
static enum xm_status
add_folder(struct taker *t, const char *folder)
{
    struct xm_benchmark_file_list l = {0};
    enum xm_status s = list_folder(folder, &l, t->err);
    if (s == XM_OK && l.n == 0)
        s = xm_fail(t->err, XM_INVALID,
                    "-i: folder '%.200s' has no file that ends in .npy or .bin", folder);
    if (l.n)
        qsort(l.paths, l.n, sizeof(*l.paths), compare_paths);
    for (size_t k = 0; s == XM_OK && k < l.n; k++)
        s = add_path(t, l.paths[k]);
    free_list(&l);
    return s;
}

static enum xm_status
add_part(struct taker *t, struct xm_slice part)
{
    struct xm_strbuf text = {0};
    struct stat st;
    xm_strbuf_add_n(&text, part.text, part.n);
    const char *path = xm_strbuf_text(&text);
    enum xm_status s;
    if (text.failed)
        s = xm_no_memory(t->err, "names of files");
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        s = add_folder(t, path);
    else
        s = add_path(t, path);
    xm_strbuf_free(&text);
    return s;
}

/* ---- words ------------------------------------------------------------------------- */

/* Returns the input whose name, followed by a colon, the text begins with, and the bytes of both in
 * *n; inputs->n: none. Names may have colons. */
static size_t
find_named(const struct xm_benchmark_ports *inputs, const char *text, size_t *n)
{
    const size_t end = strcspn(text, ",");
    size_t i = inputs->n;
    for (*n = 0; i == inputs->n && *n < end;) {
        const size_t colon = *n + strcspn(text + *n, ":,");
        if (text[colon] != ':')
            break;
        i = xm_benchmark_ports_find(inputs, xm_slice_of(text, colon));
        *n = colon + 1;
    }
    return i;
}

static bool
is_named(const struct xm_benchmark_ports *inputs, const char *word)
{
    size_t n;
    return find_named(inputs, word, &n) < inputs->n;
}

/* Refuses "name:file" if the model has no such input and no file has the whole text as its name. */
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
                         "-i: there is neither an input '%.*s' of the model nor a file "
                         "'%.*s'",
                         (int)(colon - part.text), part.text, (int)part.n, part.text);
}

/* Whether a file has the text as its name, or the text after one of its colons. */
static bool
is_any_there(const char *text)
{
    while (text && access(text, F_OK) != 0) {
        text = strchr(text, ':');
        text = text ? text + 1 : NULL;
    }
    return text != NULL;
}

static enum xm_status
check_word(const char *word, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    for (const char *at = word; at && s == XM_OK;) {
        struct xm_strbuf part = {0};
        const size_t n = strcspn(at, ",");
        xm_strbuf_add_n(&part, at, n);
        if (!part.failed && !is_any_there(xm_strbuf_text(&part)))
            s = xm_fail(err, XM_INVALID, "-i: there is no file '%.200s'",
                        xm_strbuf_text(&part));
        xm_strbuf_free(&part);
        at = at[n] ? at + n + 1 : NULL;
    }
    return s;
}

enum xm_status
xm_benchmark_files_check(const struct xm_benchmark_args *a, struct xm_error *err)
{
    for (size_t i = 0; i < a->files.n; i++)
        XM_TRY(check_word(a->files.list[i], err));
    return XM_OK;
}

/* Adds the files of a word of -i. */
static enum xm_status
take_word(struct taker *t, const char *word)
{
    for (const char *at = word;;) {
        size_t n;
        const size_t named = find_named(t->inputs, at, &n);
        if (named < t->inputs->n) {
            t->input = named;
            at += n;
        }
        const struct xm_slice part = xm_slice_of(at, strcspn(at, ","));
        if (named == t->inputs->n)
            XM_TRY(check_part(part, t->err));
        if (part.n == 0 || (t->input == t->inputs->n && t->n_nameless == 0))
            return xm_fail(t->err, XM_INVALID,
                           "-i: '%.200s' names no input of the model, or no file", word);
        XM_TRY(add_part(t, part));
        if (at[part.n] == '\0')
            return XM_OK;
        at += part.n + 1;
    }
}

/* Finds the inputs without a file. If there is only one word without a name, its files are
 * distributed over all of them; otherwise each word is for the next input. */
static void
find_nameless(struct taker *t, bool is_only_word)
{
    t->input = t->inputs->n;
    t->n_nameless = t->n_dealt = 0;
    for (size_t i = 0; i < t->inputs->n; i++) {
        if (t->files->list[i].n == 0 && (is_only_word || t->n_nameless == 0))
            t->nameless[t->n_nameless++] = i;
    }
}

/* Takes words with names first, so that the remaining inputs are known. */
static enum xm_status
take_words(struct taker *t, const struct xm_benchmark_args *a)
{
    size_t n_nameless = 0;
    for (size_t i = 0; i < a->files.n; i++) {
        if (is_named(t->inputs, a->files.list[i]))
            XM_TRY(take_word(t, a->files.list[i]));
        else
            n_nameless++;
    }
    for (size_t i = 0; i < a->files.n; i++) {
        if (is_named(t->inputs, a->files.list[i]))
            continue;
        find_nameless(t, n_nameless == 1);
        XM_TRY(take_word(t, a->files.list[i]));
    }
    return XM_OK;
}

enum xm_status
xm_benchmark_files_find(const struct xm_benchmark_args *a,
                        const struct xm_benchmark_ports *inputs,
                        struct xm_benchmark_files *out, struct xm_error *err)
{
    struct taker t = {.files = out, .inputs = inputs, .err = err};
    *out = (struct xm_benchmark_files){0};
    out->list = xm_calloc(inputs->n + 1, sizeof(*out->list));
    t.nameless = xm_calloc(inputs->n + 1, sizeof(*t.nameless));
    out->n_inputs = out->list ? inputs->n : 0;
    const enum xm_status s =
        out->list && t.nameless ? take_words(&t, a) : xm_no_memory(err, "names of files");
    xm_free(t.nameless);
    return s;
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

/* ---- contents of files --------------------------------------------------------------------- */

static const char *
path_of(const struct xm_benchmark_files *f, size_t input, size_t set)
{
    const struct xm_benchmark_file_list *l = &f->list[input];
    return l->n ? l->paths[set % l->n] : NULL;
}

static void
set_dims(const struct xm_npy_view *v, struct xm_benchmark_dims *out)
{
    *out = (struct xm_benchmark_dims){.rank = v->rank};
    for (uint32_t i = 0; i < out->rank; i++)
        out->min[i] = out->max[i] = (int64_t)v->dim[i];
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
    set_dims(&view, out); /* without an .npy header: no dimensions */
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

/* Stores an integer. Returns false if the input's type cannot represent it. A negative 64-bit
 * number and a large unsigned one have the same bits; therefore the signs are compared, too. */
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
                   "its element %" PRIu64 " is %s, but input '%s' takes %s", i, text,
                   name, xm_element_text(to));
}

/* Converts numbers of the file's type to the input's type: floats to floats, integers to
 * integers. */
static enum xm_status
convert(const struct xm_npy_view *v, enum xm_element to, const char *name,
        struct xm_benchmark_tensor *t, struct xm_error *err)
{
    if (v->element == to) {
        memcpy(t->data, v->data, (size_t)t->bytes);
        return XM_OK;
    }
    const bool is_float = xm_element_is_float(to);
    if (is_float != xm_element_is_float(v->element) || !xm_element_writable(to) ||
        !xm_element_readable(v->element))
        return xm_fail(err, XM_INVALID, "it holds %s, but input '%s' takes %s",
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
fail_shape(const struct xm_benchmark_dims *found, const char *name,
           const struct xm_benchmark_dims *wanted, struct xm_error *err)
{
    struct xm_strbuf is = {0}, takes = {0};
    xm_benchmark_dims_print(found, &is);
    xm_benchmark_dims_print(wanted, &takes);
    xm_fail(err, XM_INVALID, "its shape is %s, but input '%s' takes %s",
            xm_strbuf_text(&is), name, xm_strbuf_text(&takes));
    xm_strbuf_free(&is);
    xm_strbuf_free(&takes);
    return err->status;
}

static enum xm_status
load_npy(const struct xm_mapped_file *file, const struct xm_benchmark_port *port,
         struct xm_benchmark_tensor *t, struct xm_error *err)
{
    struct xm_npy_view v;
    struct xm_benchmark_dims dims;
    XM_TRY(xm_npy_open(file->bytes, file->n_bytes, &v, err));
    set_dims(&v, &dims);
    if (!xm_benchmark_dims_equal(&dims, &t->dims))
        return fail_shape(&dims, port->name, &t->dims, err);
    return convert(&v, (enum xm_element)port->type, port->name, t, err);
}

static enum xm_status
load_bytes(const struct xm_mapped_file *file, const char *name,
           struct xm_benchmark_tensor *t, struct xm_error *err)
{
    if (file->n_bytes != t->bytes)
        return xm_fail(err, XM_INVALID,
                       "it has %" PRIu64 " bytes, but input '%s' takes %" PRIu64,
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
        return xm_fail(
            err, XM_UNSUPPORTED,
            "-i: '%.200s' is a picture; only .npy files and raw bytes are supported",
            path);
    s = xm_mapped_file_open(path, &file, &local);
    if (s == XM_OK && xm_npy_is(file.bytes, file.n_bytes))
        s = load_npy(&file, port, t, &local);
    else if (s == XM_OK)
        s = load_bytes(&file, port->name, t, &local);
    xm_mapped_file_close(&file);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "-i: '%.200s': %s", path, local.text);
}
