/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a GGUF file, which has all parts of a model. The path is any file of a split model, or a
 * folder with one GGUF model. Each read of a part opens and closes the file, because keys are views
 * of its mapping, and reading them takes only milliseconds.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/models/gguf_graph.h"
#include "plugin/pipeline/package.h"
#include "plugin/text/gguf/gguf_text.h"

enum { NAME_BYTES = 256 }; /* of a file name in a folder, with its NUL */

static const char ending[] = ".gguf";

/* ---- which file ---------------------------------------------------------------------- */

/* The models of a folder: the first two by name, each with one of its files, because any file of a
 * split model opens all. */
struct candidates {
    char names[2][NAME_BYTES];
    size_t n;
};

/* Returns the end of a split file's name, "-00001-of-00003.gguf"; NULL: it has no such end. */
static const char *
part_of(const char *name)
{
    static const char pattern[] = "-ddddd-of-ddddd";
    const size_t n = strlen(name), n_end = sizeof(pattern) - 1 + sizeof(ending) - 1;
    if (n < n_end)
        return NULL;
    const char *end = name + n - n_end;
    for (size_t i = 0; pattern[i]; i++)
        if (pattern[i] == 'd' ? end[i] < '0' || end[i] > '9' : end[i] != pattern[i])
            return NULL;
    return end;
}

/* Whether the name is that of a model; "mmproj" files, which project images, are not models. */
static bool
is_model_name(const char *name)
{
    const size_t n = strlen(name), e = sizeof(ending) - 1;
    return n > e && n < NAME_BYTES && strcmp(name + n - e, ending) == 0 &&
           !strstr(name, "mmproj");
}

bool
xm_package_is_same_gguf(const char *a, const char *b)
{
    enum { NUMBER = 6 }; /* bytes of "-00001" */
    const char *of_a = part_of(a), *of_b = part_of(b);
    return of_a && of_b && of_a - a == of_b - b &&
           memcmp(a, b, (size_t)(of_a - a)) == 0 &&
           strcmp(of_a + NUMBER, of_b + NUMBER) == 0;
}

static void
add_candidate(struct candidates *c, const char *name)
{
    size_t at = 0;
    while (at < c->n && !xm_package_is_same_gguf(c->names[at], name) &&
           strcmp(c->names[at], name) < 0)
        at++;
    if (at == XM_ARRAY_LEN(c->names) ||
        (at < c->n && xm_package_is_same_gguf(c->names[at], name)))
        return;
    for (size_t i = XM_ARRAY_LEN(c->names) - 1; i > at; i--)
        memcpy(c->names[i], c->names[i - 1], NAME_BYTES);
    memcpy(c->names[at], name, strlen(name) + 1);
    c->n += c->n < XM_ARRAY_LEN(c->names);
}

static void
find_candidates(const char *folder, struct candidates *out)
{
    DIR *d = opendir(folder);
    *out = (struct candidates){0};
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (is_model_name(e->d_name))
            add_candidate(out, e->d_name);
    if (d)
        closedir(d);
}

/* Appends the path of the file that the path means; the caller frees it. */
static enum xm_status
find_file(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    struct candidates c;
    xm_strbuf_add(out, path);
    if (xm_package_is_folder(path)) {
        find_candidates(path, &c);
        if (c.n > 1)
            return xm_fail(err, XM_INVALID,
                           "the folder '%.150s' holds more than one model, '%.80s' and "
                           "'%.80s': give the file",
                           path, c.names[0], c.names[1]);
        if (c.n == 0)
            return xm_fail(err, XM_NOT_FOUND, "the folder '%.300s' holds no .gguf file",
                           path);
        xm_strbuf_printf(out, "/%s", c.names[0]);
    }
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a path");
}

static bool
begins_as_gguf(const char *path)
{
    char magic[4];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    FILE *f = fopen(path, "rb");
    const bool is_one = f && fread(magic, 1, sizeof(magic), f) == sizeof(magic) &&
                        memcmp(magic, "GGUF", sizeof(magic)) == 0;
    if (f)
        fclose(f);
    return is_one;
}

static bool
recognises(const char *path)
{
    struct candidates c;
    if (!xm_package_is_folder(path))
        return begins_as_gguf(path);
    find_candidates(path, &c);
    return c.n > 0 &&
           /* its reader reports what is ambiguous */
           !xm_package_openvino.recognises(path);
}

/* ---- contents ------------------------------------------------------------------------- */

static enum xm_status
load_tokenizer(const struct xm_gguf *g, struct xm_package *p, struct xm_error *err)
{
    return xm_gguf_tokenizer(g, &p->tokenizer, err);
}

static enum xm_status
load_chat_template(const struct xm_gguf *g, struct xm_package *p, struct xm_error *err)
{
    const struct xm_strbuf *other = &p->other_template;
    return other->n ? xm_gguf_chat_template_with(g, xm_strbuf_text(other), other->n,
                                                 &p->chat_template, err)
                    : xm_gguf_chat_template(g, &p->chat_template, err);
}

static enum xm_status
load_generation(const struct xm_gguf *g, struct xm_package *p, struct xm_error *err)
{
    return xm_gguf_generation(g, &p->generation, err);
}

static enum xm_status
load_facts(const struct xm_gguf *g, struct xm_package *p, struct xm_error *err)
{
    (void)err;
    xm_gguf_facts(g, &p->facts);
    return XM_OK;
}

static enum xm_status
load_pooling(const struct xm_gguf *g, struct xm_package *p, struct xm_error *err)
{
    return xm_gguf_pooling(g, &p->pooling, err);
}

/* Opens the file and reads a part; an error names the file. */
static enum xm_status
read_part(struct xm_package *p, enum xm_package_part part, struct xm_error *err)
{
    static enum xm_status (*const load[])(const struct xm_gguf *g, struct xm_package *p,
                                          struct xm_error *err) = {
        [XM_PACKAGE_TOKENIZER] = load_tokenizer,
        [XM_PACKAGE_CHAT_TEMPLATE] = load_chat_template,
        [XM_PACKAGE_GENERATION] = load_generation,
        [XM_PACKAGE_FACTS] = load_facts,
        [XM_PACKAGE_POOLING] = load_pooling};
    struct xm_strbuf file = {0};
    struct xm_gguf *g = NULL;
    struct xm_error why = {0};
    enum xm_status s = find_file(p->path, &file, err);
    if (s == XM_OK)
        s = xm_gguf_open(xm_strbuf_text(&file), &g, err);
    if (s == XM_OK) {
        s = load[part](g, p, &why);
        if (s != XM_OK)
            xm_fail(err, s, "'%.200s': %s", xm_strbuf_text(&file), why.text);
    }
    xm_gguf_close(g);
    xm_strbuf_free(&file);
    return s;
}

static enum xm_status
read_graph(const char *path, const char *weights, struct xm_graph **out,
           struct xm_error *err)
{
    struct xm_strbuf file = {0};
    struct xm_gguf *g = NULL;
    *out = NULL;
    enum xm_status s = find_file(path, &file, err);
    if (s == XM_OK && weights && weights[0])
        s = xm_fail(err, XM_INVALID,
                    "'%.200s' contains its weights and cannot be combined with the "
                    "weights file '%.200s'",
                    xm_strbuf_text(&file), weights);
    if (s == XM_OK)
        s = xm_gguf_open(xm_strbuf_text(&file), &g, err);
    if (s == XM_OK)
        s = xm_gguf_graph(g, xm_strbuf_text(&file), out, err);
    xm_gguf_close(g);
    xm_strbuf_free(&file);
    return s;
}

/* Returns the size of all files of a split model. */
static uint64_t
file_bytes(const char *path)
{
    struct xm_strbuf file = {0};
    struct xm_gguf *g = NULL;
    uint64_t bytes = 0;
    if (find_file(path, &file, NULL) == XM_OK &&
        xm_gguf_open(xm_strbuf_text(&file), &g, NULL) == XM_OK)
        for (uint64_t i = 0; i < g->n_parts; i++)
            bytes += g->parts[i].n_bytes;
    xm_gguf_close(g);
    xm_strbuf_free(&file);
    return bytes;
}

const struct xm_package_reader xm_package_gguf = {
    .name = "GGUF",
    .tokenizer = "tokenizer in the GGUF file",
    .sampling = "general.sampling of the GGUF file",
    .recognises = recognises,
    .read_graph = read_graph,
    .read_part = read_part,
    .file_bytes = file_bytes,
};
