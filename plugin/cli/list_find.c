/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the models below a folder, by names and first bytes:
 *
 *     GGUF       files with GGUF's first bytes or name; of a split model the first file
 *     OpenVINO   folders with openvino_model.xml; other .xml files with a .bin file of that name
 *     compiled   files with the first bytes of 'xemoe compile'
 *
 * Links are followed. Each folder is read once, and a file with several names is one row.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/cli/list.h"
#include "plugin/exported.h"
#include "plugin/program_util/progress.h"

enum { MOST_ENTRIES = 1 << 20, MOST_ROWS = 1 << 14, GLANCE_ENTRIES = 10000 };

struct folder {
    char *path; /* owned; relative to the root, which is "" */
    dev_t device;
    ino_t inode;
};

struct names {
    char **list; /* owned */
    size_t n, capacity;
};

struct finding {
    const char *root;
    struct folder *folders; /* owned; folders before `next` have been read */
    size_t n_folders, folders_capacity;
    uint64_t entries, most_entries;
    struct xm_list *out;
    struct xm_error *err;
};

/* Returns "folder/name"; either may be "". NULL: out of memory. */
static char *
join(const char *folder, const char *name)
{
    const size_t n = strlen(folder), m = strlen(name);
    const bool slash = n && m && folder[n - 1] != '/';
    char *path = xm_malloc(n + slash + m + 1);
    if (!path)
        return NULL;
    memcpy(path, folder, n);
    path[n] = '/';
    memcpy(path + n + slash, name, m + 1);
    return path;
}

/* ---- rows ---------------------------------------------------------------------------- */

/* Adds a row, which owns the path from now on. */
static struct xm_list_row *
add_row(struct finding *f, char *path, enum xm_list_kind kind, const struct stat *st)
{
    struct xm_list *l = f->out;
    struct xm_list_row *rows = xm_grow(l->rows, &l->capacity, l->n + 1, sizeof(*rows));
    if (rows)
        l->rows = rows;
    if (!rows || !path) {
        xm_free(path);
        xm_no_memory(f->err, "a list of models");
        return NULL;
    }
    l->rows[l->n] = (struct xm_list_row){.path = path, .kind = kind};
    if (st) {
        l->rows[l->n].device = st->st_dev;
        l->rows[l->n].inode = st->st_ino;
    }
    return &l->rows[l->n++];
}

static bool
ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name), e = strlen(ending);
    return n > e && strcmp(name + n - e, ending) == 0;
}

/* Returns the kind by a file's first bytes; XM_LIST_KINDS: not recognised. */
static enum xm_list_kind
kind_by_bytes(const char *path)
{
    char head[sizeof(XM_BLOB_MAGIC) - 1] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return XM_LIST_KINDS;
    const ssize_t n = read(fd, head, sizeof(head));
    close(fd);
    if (n >= 4 && memcmp(head, "GGUF", 4) == 0)
        return XM_LIST_GGUF;
    return n == (ssize_t)sizeof(head) && memcmp(head, XM_BLOB_MAGIC, sizeof(head)) == 0
               ? XM_LIST_COMPILED
               : XM_LIST_KINDS;
}

/* ---- one folder ---------------------------------------------------------------------- */

static bool
has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->list[i], name) == 0)
            return true;
    }
    return false;
}

/* Whether the file is a later part of a split model whose earlier part is in the folder. */
static bool
is_further_part(const struct names *names, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (xm_package_is_same_gguf(names->list[i], names->list[at]))
            return true;
    }
    return false;
}

/* Whether an .xml file is a model: not one of tokenizers, nor a part of a model that takes
 * images. */
static bool
is_ir(const struct names *names, const char *name)
{
    if (!ends_with(name, ".xml") || strncmp(name, "openvino_", 9) == 0)
        return false;
    const size_t n = strlen(name);
    char *weights = xm_malloc(n + 1);
    if (!weights)
        return false;
    memcpy(weights, name, n + 1);
    memcpy(weights + n - 3, "bin", 3);
    const bool is_one = has_name(names, weights);
    xm_free(weights);
    return is_one;
}

/* Returns the kind of a regular file; XM_LIST_KINDS: not a model. */
static enum xm_list_kind
kind_of_file(const struct names *names, size_t at, const char *path, bool *is_named)
{
    const char *name = names->list[at];
    *is_named = ends_with(name, ".gguf");
    if (*is_named)
        return strstr(name, "mmproj") || is_further_part(names, at) ? XM_LIST_KINDS
                                                                    : XM_LIST_GGUF;
    *is_named = is_ir(names, name);
    return *is_named ? XM_LIST_OPENVINO : kind_by_bytes(path);
}

static enum xm_status
add_folder(struct finding *f, char *path, const struct stat *st)
{
    if (!path)
        return xm_no_memory(f->err, "a list of models");
    for (size_t i = 0; i < f->n_folders; i++) {
        if (f->folders[i].device == st->st_dev && f->folders[i].inode == st->st_ino) {
            xm_free(path);
            return XM_OK;
        }
    }
    struct folder *grown =
        xm_grow(f->folders, &f->folders_capacity, f->n_folders + 1, sizeof(*grown));
    if (!grown) {
        xm_free(path);
        return xm_no_memory(f->err, "a list of models");
    }
    f->folders = grown;
    f->folders[f->n_folders++] = (struct folder){path, st->st_dev, st->st_ino};
    return XM_OK;
}

/* Handles an entry: a folder is remembered, a model becomes a row, others are ignored. */
static enum xm_status
look_at(struct finding *f, const char *folder, const struct names *names, size_t at)
{
    struct stat st;
    enum xm_status s = XM_OK;
    char *below = join(folder, names->list[at]);
    char *path = below ? join(f->root, below) : NULL;
    if (!path) {
        xm_free(below);
        return xm_no_memory(f->err, "a list of models");
    }
    if (stat(path, &st) != 0) {
        xm_free(below); /* deleted meanwhile, or a dangling link */
    } else if (S_ISDIR(st.st_mode)) {
        s = add_folder(f, below, &st);
    } else {
        bool is_named = false;
        const enum xm_list_kind kind = S_ISREG(st.st_mode)
                                           ? kind_of_file(names, at, path, &is_named)
                                           : XM_LIST_KINDS;
        struct xm_list_row *row = NULL;
        if (kind == XM_LIST_KINDS)
            xm_free(below);
        else if (!(row = add_row(f, below, kind, &st)))
            s = XM_NO_MEMORY;
        else
            row->is_named = is_named;
    }
    xm_free(path);
    return s;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        xm_free(names->list[i]);
    xm_free(names->list);
}

/* Reads the names in a folder and sorts them, so that results do not depend on the file system. */
static enum xm_status
read_names(struct finding *f, DIR *d, struct names *out)
{
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (f->entries++ >= f->most_entries) {
            f->out->is_cut = true;
            break;
        }
        char **grown = xm_grow(out->list, &out->capacity, out->n + 1, sizeof(*grown));
        if (!grown)
            return xm_no_memory(f->err, "a list of models");
        out->list = grown;
        out->list[out->n] = join("", e->d_name);
        if (!out->list[out->n])
            return xm_no_memory(f->err, "a list of models");
        out->n++;
    }
    if (out->n)
        qsort(out->list, out->n, sizeof(*out->list), compare_names);
    return XM_OK;
}

static enum xm_status
look_at_names(struct finding *f, const char *folder, const struct names *names)
{
    static const char *const graphs[] = {"openvino_model.xml",
                                         "openvino_language_model.xml"};
    enum xm_status s = XM_OK;
    bool is_model = false;
    for (size_t i = 0; i < XM_ARRAY_LEN(graphs); i++)
        is_model |= has_name(names, graphs[i]);
    if (is_model) {
        struct xm_list_row *row =
            add_row(f, join("", *folder ? folder : "."), XM_LIST_OPENVINO, NULL);
        if (!row)
            return XM_NO_MEMORY;
        row->is_named = true;
    }
    for (size_t i = 0; i < names->n && s == XM_OK; i++) {
        if (f->out->n >= MOST_ROWS)
            f->out->is_cut = true;
        else
            s = look_at(f, folder, names, i);
    }
    return s;
}

static enum xm_status
read_folder(struct finding *f, const char *folder, bool is_root)
{
    struct names names = {0};
    char *path = join(f->root, folder);
    if (!path)
        return xm_no_memory(f->err, "a list of models");
    xm_progress_show("searching %s", path);
    DIR *d = opendir(path);
    const int why = errno;
    xm_free(path);
    if (!d && is_root)
        return xm_fail(f->err, why == ENOENT ? XM_NOT_FOUND : XM_IO,
                       "cannot read the folder '%.250s': %s", f->root, strerror(why));
    if (!d) {
        struct xm_list_row *row = add_row(f, join("", folder), XM_LIST_FOLDER, NULL);
        if (row)
            xm_fail(&row->why, XM_IO, "cannot read the folder: %s", strerror(why));
        return row ? XM_OK : XM_NO_MEMORY;
    }
    enum xm_status s = read_names(f, d, &names);
    closedir(d);
    if (s == XM_OK)
        s = look_at_names(f, folder, &names);
    free_names(&names);
    return s;
}

/* ---- all of it ----------------------------------------------------------------------- */

static int
compare_rows(const void *a, const void *b)
{
    return strcmp(((const struct xm_list_row *)a)->path,
                  ((const struct xm_list_row *)b)->path);
}

/* Whether another row is the same file with a better name, or comes earlier. */
static bool
is_again(const struct xm_list *l, size_t at)
{
    const struct xm_list_row *r = &l->rows[at];
    for (size_t i = 0; r->inode && i < l->n; i++) {
        const struct xm_list_row *o = &l->rows[i];
        if (i != at && o->inode == r->inode && o->device == r->device &&
            (o->is_named != r->is_named ? o->is_named : i < at))
            return true;
    }
    return false;
}

static void
drop_again(struct xm_list *l)
{
    size_t n = 0;
    bool *again = xm_calloc(l->n + 1, sizeof(*again));
    for (size_t i = 0; again && i < l->n; i++)
        again[i] = is_again(l, i);
    for (size_t i = 0; again && i < l->n; i++) {
        if (again[i])
            xm_free(l->rows[i].path);
        else
            l->rows[n++] = l->rows[i];
    }
    if (again)
        l->n = n;
    xm_free(again);
}

static bool
has_model(const struct xm_list *l)
{
    size_t i = 0;
    while (i < l->n && l->rows[i].kind == XM_LIST_FOLDER)
        i++;
    return i < l->n;
}

/* Searches folder by folder, breadth first; `is_glance`: stops at the first model. */
static enum xm_status
search(struct finding *f, bool is_glance)
{
    struct stat st;
    *f->out = (struct xm_list){0};
    if (stat(f->root, &st) != 0)
        return xm_fail(f->err, errno == ENOENT ? XM_NOT_FOUND : XM_IO,
                       "cannot read the folder '%.250s': %s", f->root, strerror(errno));
    if (S_ISREG(st.st_mode))
        return xm_fail(f->err, XM_INVALID,
                       "'%.250s' is a file, not a folder: 'xemoe info' describes a model",
                       f->root);
    enum xm_status s = add_folder(f, join("", ""), &st);
    for (size_t i = 0;
         i < f->n_folders && s == XM_OK && !(is_glance && has_model(f->out)); i++)
        s = read_folder(f, f->folders[i].path, i == 0);
    for (size_t i = 0; i < f->n_folders; i++)
        xm_free(f->folders[i].path);
    xm_free(f->folders);
    return s;
}

bool
xm_list_has_any(const char *folder)
{
    struct xm_list list;
    struct xm_error err = {0};
    struct finding f = {
        .root = folder, .most_entries = GLANCE_ENTRIES, .out = &list, .err = &err};
    search(&f, true);
    xm_progress_clear();
    const bool any = has_model(&list);
    xm_list_free(&list);
    return any;
}

enum xm_status
xm_list_find(const char *folder, struct xm_list *out, struct xm_error *err)
{
    struct finding f = {
        .root = folder, .most_entries = MOST_ENTRIES, .out = out, .err = err};
    const enum xm_status s = search(&f, false);
    if (out->n)
        qsort(out->rows, out->n, sizeof(*out->rows), compare_rows);
    drop_again(out);
    return s;
}

void
xm_list_free(struct xm_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        xm_free(l->rows[i].path);
    xm_free(l->rows);
    *l = (struct xm_list){0};
}
