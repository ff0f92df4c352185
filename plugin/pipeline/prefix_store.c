/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of a file:
 *
 *     struct file_head
 *     tokens            int32 [n_tokens], padded to a multiple of 8 bytes
 *     state             [state_bytes], as the plugin writes it
 *     uint64            checksum of the state, chained block by block
 *
 * The head's checksum includes the tokens, so that files can be compared without reading their
 * state.
 */
#include "plugin/pipeline/prefix_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/text/token_list.h"
#include "runtime/dry_run.h"
#include "runtime/util/checksum.h"
#include "runtime/util/folder.h"
#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"
#include "runtime/util/new_file.h"
#include "runtime/util/strbuf.h"

enum {
    DIGITS = 16,               /* digits of a checksum in a file name */
    NAME = 2 * DIGITS + 1 + 3, /* <model>-<tokens>.kv            */
    IDENTITY = 64,             /* bytes of a model's identity */
    BLOCK = 1 << 20            /* bytes of the state in one checksum */
};

static const char magic[8] = "xmkv2\r\n";

struct file_head {
    char magic[8];
    char identity[IDENTITY];
    uint64_t n_tokens, state_bytes;
    /* the smallest number of positions that can be loaded: fewer lack pages of a sliding window */
    uint64_t least;
    uint64_t checksum; /* of the preceding members and the tokens */
};

struct xm_prefix_store {
    struct xm_compiled *compiled;
    char *folder; /* owned */
    uint64_t most_bytes;
    char identity[IDENTITY]; /* of the model, padded with zeros */
    bool has_warned; /* a failure to write was logged; reset when a file is written */
    bool has_warned_of_damage; /* about a damaged file that cannot be deleted */
    /* of the folder: the store created it; it is not writable */
    bool is_made, is_read_only;
    bool holds;
    struct xm_strbuf held; /* warnings, each with its NUL */
};

/* ---- warnings ------------------------------------------------------------------------------ */

enum { MOST_HELD = 1 << 14 }; /* bytes; later warnings are dropped */

static void
warn(struct xm_prefix_store *p, const char *fmt, ...)
{
    struct xm_strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    xm_strbuf_print_v(&text, fmt, ap);
    va_end(ap);
    if (!p->holds)
        xm_log(XM_LOG_WARNING, "%s", xm_strbuf_text(&text));
    else if (p->held.n + text.n < MOST_HELD)
        xm_strbuf_add_n(&p->held, xm_strbuf_text(&text), text.n + 1);
    xm_strbuf_free(&text);
}

void
xm_prefix_store_hold(struct xm_prefix_store *p)
{
    if (p)
        p->holds = true;
}

void
xm_prefix_store_say(struct xm_prefix_store *p)
{
    for (size_t at = 0; p && at < p->held.n; at += strlen(p->held.text + at) + 1)
        xm_log(XM_LOG_WARNING, "%s", p->held.text + at);
    if (p)
        xm_strbuf_clear(&p->held);
}

/* ---- life --------------------------------------------------------------------------------- */

static enum xm_status
identify(struct xm_prefix_store *p, struct xm_error *err)
{
    struct xm_sequence *s = NULL;
    struct xm_strbuf text = {0};
    struct xm_error why = {0};
    enum xm_status status = xm_compiled_create_sequence(p->compiled, &s, &why);
    if (status == XM_OK && !s->ops->file)
        status = XM_UNSUPPORTED;
    if (status == XM_OK)
        status = s->ops->file->identify(s, &text, &why);
    if (status == XM_UNSUPPORTED)
        xm_fail(err, status,
                "prefixes cannot be cached in files, because this device or model cannot "
                "save the KV cache of a sequence%s%s",
                why.text[0] ? ": " : "", why.text);
    else if (status != XM_OK)
        xm_fail(err, status, "%s", why.text);
    xm_compiled_destroy_sequence(s);
    const uint64_t hash = xm_checksum(xm_strbuf_text(&text), text.n);
    if (text.n < IDENTITY - DIGITS)
        memcpy(p->identity, xm_strbuf_text(&text), text.n);
    else
        snprintf(p->identity, sizeof(p->identity), "%016" PRIx64, hash);
    xm_strbuf_free(&text);
    return status;
}

static enum xm_status
fail_to_create(const char *folder, int why, struct xm_error *err)
{
    return xm_fail(err, XM_IO,
                   "the folder '%.200s' for cached prefixes cannot be created: %s",
                   folder, strerror(why));
}

/* Checks that a missing folder can be created in its parent folder. */
static enum xm_status
check_parent(const char *folder, struct xm_error *err)
{
    struct xm_strbuf parent = {0};
    struct stat st;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    while (n > 0 && folder[n - 1] != '/')
        n--;
    xm_strbuf_add_n(&parent, n ? folder : ".", n ? n : 1);
    const char *path = xm_strbuf_text(&parent);
    const bool is_there = stat(path, &st) == 0;
    enum xm_status s = XM_OK;
    if (!is_there && errno == ENOENT)
        s = xm_fail(err, XM_NOT_FOUND,
                    "the folder '%.200s' for cached prefixes cannot be created, "
                    "because its parent folder is missing: create that first",
                    folder);
    else if (!is_there || faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
        s = fail_to_create(folder, errno, err);
    xm_strbuf_free(&parent);
    return s;
}

enum xm_status
xm_prefix_store_check(const char *folder, struct xm_error *err)
{
    struct stat st;
    if (stat(folder, &st) != 0)
        return check_parent(folder, err);
    if (!S_ISDIR(st.st_mode))
        return xm_fail(err, XM_IO, "'%.200s', for cached prefixes, is not a folder",
                       folder);
    if (faccessat(AT_FDCWD, folder, R_OK | X_OK, AT_EACCESS) != 0)
        return xm_fail(err, XM_IO,
                       "the folder '%.200s' for cached prefixes cannot be read: %s",
                       folder, strerror(errno));
    return XM_OK;
}

static enum xm_status
open_folder(struct xm_prefix_store *p, const char *folder, struct xm_error *err)
{
    XM_TRY(xm_prefix_store_check(folder, err));
    p->is_made = mkdir(folder, 0700) == 0;
    if (!p->is_made && errno != EEXIST)
        return fail_to_create(folder, errno, err);
    XM_TRY(xm_path_absolute(folder, &p->folder, err));
    p->is_read_only = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0;
    if (p->is_read_only)
        warn(p,
             "the folder '%s' for cached prefixes cannot be written: cached prefixes are "
             "used, but no new ones are kept",
             p->folder);
    return XM_OK;
}

const char *
xm_prefix_store_made(const struct xm_prefix_store *p)
{
    return p && p->is_made ? p->folder : NULL;
}

enum xm_status
xm_prefix_store_open(struct xm_compiled *compiled, const char *folder,
                     uint64_t most_bytes, struct xm_prefix_store **out,
                     struct xm_error *err)
{
    *out = NULL;
    struct xm_prefix_store *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_no_memory(err, "a store of prefixes");
    p->compiled = compiled;
    xm_compiled_ref(compiled);
    p->most_bytes = most_bytes;
    enum xm_status status = identify(p, err);
    if (status == XM_OK)
        status = open_folder(p, folder, err);
    if (status == XM_OK)
        *out = p;
    else
        xm_prefix_store_close(p);
    return status;
}

void
xm_prefix_store_close(struct xm_prefix_store *p)
{
    if (!p)
        return;
    xm_prefix_store_say(p);
    xm_compiled_unref(p->compiled);
    xm_strbuf_free(&p->held);
    xm_free(p->folder);
    xm_free(p);
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool
is_hex(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && strchr("0123456789abcdef", text[i]) && text[i])
        i++;
    return i == n;
}

/* Whether the name begins like a file of the store, <16 digits>-<16 digits>.kv. */
static bool
begins_as_name(const char *name)
{
    return strlen(name) >= NAME && is_hex(name, DIGITS) && name[DIGITS] == '-' &&
           is_hex(name + DIGITS + 1, DIGITS) &&
           strncmp(name + 2 * DIGITS + 1, ".kv", 3) == 0;
}

static bool
is_name(const char *name)
{
    return begins_as_name(name) && strlen(name) == NAME;
}

static uint64_t
model_hash(const struct xm_prefix_store *p)
{
    return xm_checksum(p->identity, sizeof(p->identity));
}

/* Returns the path of a file in the folder; NULL: no memory. */
static char *
path_of(const struct xm_prefix_store *p, const char *name)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/%s", p->folder, name);
    if (xm_strbuf_ok(&path))
        return xm_strbuf_take(&path);
    xm_strbuf_free(&path);
    return NULL;
}

static void
name_of(const struct xm_prefix_store *p, const int32_t *ids, uint64_t n,
        char name[NAME + 1])
{
    snprintf(name, NAME + 1, "%016" PRIx64 "-%016" PRIx64 ".kv", model_hash(p),
             xm_checksum(ids, n * sizeof(*ids)));
}

static bool
delete_file(const struct xm_prefix_store *p, const char *name)
{
    char *path = path_of(p, name);
    const bool is_gone = path && unlink(path) == 0;
    xm_free(path);
    return is_gone;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* A file of the model, whose state has not been verified. */
struct entry {
    struct xm_mapped_file file;
    struct file_head head;
    const int32_t *ids;
    char name[NAME + 1];
};

static uint64_t
token_bytes(uint64_t n)
{
    return (n * sizeof(int32_t) + 7) / 8 * 8;
}

/* Returns the checksum of the bytes of `sum` followed by these bytes. */
static uint64_t
chain(uint64_t sum, const void *bytes, uint64_t n)
{
    const uint64_t parts[] = {sum, xm_checksum(bytes, n)};
    return xm_checksum(parts, sizeof(parts));
}

static uint64_t
checksum_of_head(const struct file_head *head, const int32_t *ids)
{
    return chain(xm_checksum(head, offsetof(struct file_head, checksum)), ids,
                 head->n_tokens * sizeof(*ids));
}

static bool
is_whole(struct entry *e)
{
    struct file_head *h = &e->head;
    uint64_t n = e->file.n_bytes;
    if (n < sizeof(*h))
        return false;
    memcpy(h, e->file.bytes, sizeof(*h));
    n -= sizeof(*h);
    if (memcmp(h->magic, magic, sizeof(magic)) != 0 || h->n_tokens > INT32_MAX ||
        token_bytes(h->n_tokens) > n)
        return false;
    n -= token_bytes(h->n_tokens);
    e->ids = (const int32_t *)(const void *)(e->file.bytes + sizeof(*h));
    return h->state_bytes <= n && n - h->state_bytes == sizeof(uint64_t) &&
           checksum_of_head(h, e->ids) == h->checksum;
}

static void
drop_damaged(struct xm_prefix_store *p, const char *name)
{
    const bool is_gone = delete_file(p, name);
    if (!is_gone && p->has_warned_of_damage) /* every search finds such a file again */
        return;
    p->has_warned_of_damage |= !is_gone;
    warn(p,
         "the cached prefix '%s/%s' is damaged: it %s, and its tokens are computed again",
         p->folder, name, is_gone ? "is deleted" : "cannot be deleted");
}

static const uint8_t *
state_of(const struct entry *e)
{
    return e->file.bytes + sizeof(e->head) + token_bytes(e->head.n_tokens);
}

static bool
is_state_whole(const struct entry *e)
{
    const uint8_t *state = state_of(e);
    const uint64_t n = e->head.state_bytes;
    uint64_t sum = 0, expected;
    for (uint64_t at = 0; at < n; at += BLOCK)
        sum = chain(sum, state + at, n - at < BLOCK ? n - at : BLOCK);
    memcpy(&expected, state + n, sizeof(expected));
    return sum == expected;
}

/* Opens a file. Returns false if it was deleted, belongs to another model, or is damaged. */
static bool
open_entry(struct xm_prefix_store *p, const char *name, struct entry *e)
{
    char *path = path_of(p, name);
    const enum xm_status s =
        path ? xm_mapped_file_open(path, &e->file, NULL) : XM_NO_MEMORY;
    xm_free(path);
    if (s != XM_OK)
        return false;
    memcpy(e->name, name, NAME + 1); /* it fits: is_name has checked its length */
    const bool is_ok = is_whole(e);
    if (is_ok && memcmp(e->head.identity, p->identity, IDENTITY) == 0)
        return true;
    xm_mapped_file_close(&e->file);
    if (!is_ok)
        drop_damaged(p, name);
    return false;
}

static uint64_t
same_tokens(const struct entry *e, const int32_t *ids, uint64_t n)
{
    return xm_same_tokens(e->ids, e->head.n_tokens, ids, n);
}

/* Called for each file of the model; it closes the file or keeps it. */
typedef void (*visit_fn)(struct xm_prefix_store *p, struct entry *e, void *ctx);

static void
for_each_file(struct xm_prefix_store *p, visit_fn visit, void *ctx)
{
    char mine[DIGITS + 1];
    snprintf(mine, sizeof(mine), "%016" PRIx64, model_hash(p));
    DIR *d = opendir(p->folder);
    for (const struct dirent *f; d && (f = readdir(d));) {
        struct entry e = {0};
        if (is_name(f->d_name) && strncmp(f->d_name, mine, DIGITS) == 0 &&
            open_entry(p, f->d_name, &e))
            visit(p, &e, ctx);
    }
    if (d)
        closedir(d);
}

/* Sets the file's time, by which the least recently used file is found. */
static void
touch(const struct xm_prefix_store *p, const char *name)
{
    char *path = path_of(p, name);
    if (path)
        utimensat(AT_FDCWD, path, NULL, 0);
    xm_free(path);
}

/* ---- finding a beginning ------------------------------------------------------------------ */

struct search {
    const int32_t *ids;
    uint64_t n, page;
    struct entry best;
    /* positions that `best` can serve, in whole pages; 0: no file was found */
    uint64_t found;
};

static void
compare(struct xm_prefix_store *p, struct entry *e, void *ctx)
{
    struct search *s = ctx;
    (void)p;
    uint64_t same = same_tokens(e, s->ids, s->n);
    same -= same % s->page;
    if (same <= s->found || same < e->head.least) {
        xm_mapped_file_close(&e->file);
        return;
    }
    xm_mapped_file_close(&s->best.file);
    s->best = *e;
    s->found = same;
}

/* Finds the file that shares the most whole pages with ids[n], more than `least` positions, and can
 * serve them. The caller closes out->best.file. */
static void
find_best(struct xm_prefix_store *p, uint64_t page, const int32_t *ids, uint64_t n,
          uint64_t least, struct search *out)
{
    *out = (struct search){.ids = ids, .n = n, .page = page, .found = least};
    for_each_file(p, compare, out);
    if (out->found == least)
        out->found = 0;
}

static bool
load(struct xm_prefix_store *p, struct xm_sequence *s, const struct search *found)
{
    struct xm_error why = {0};
    if (s->ops->past(s) > 0)
        s->ops->truncate(s, 0);
    const enum xm_status status =
        s->ops->file->load(s, found->ids, found->found, state_of(&found->best),
                           found->best.head.state_bytes, &why);
    if (status != XM_OK && status != XM_NO_MEMORY) /* a full cache is normal */
        warn(p, "a cached prefix cannot be used: %s", why.text);
    return s->ops->past(s) == found->found;
}

uint64_t
xm_prefix_store_load(struct xm_prefix_store *p, struct xm_sequence *s, const int32_t *ids,
                     uint64_t n)
{
    const uint64_t page = s->ops->file->page(s), past = s->ops->past(s);
    const uint64_t most = n ? (n - 1) / page * page : 0;
    struct search found = {0};
    bool is_loaded = false;
    if (xm_dry_run() || most <= past)
        return 0;
    find_best(p, page, ids, most, past, &found);
    if (found.found > 0 && !is_state_whole(&found.best))
        drop_damaged(p, found.best.name);
    else if (found.found > 0)
        is_loaded = load(p, s, &found);
    if (is_loaded)
        touch(p, found.best.name);
    xm_mapped_file_close(&found.best.file);
    if (!is_loaded && s->ops->past(s) < past)
        /* gets back the pages that it held before the failure */
        s->ops->match(s, ids, n, NULL);
    return is_loaded ? found.found : 0;
}

/* ---- the bound of the folder -------------------------------------------------------------- */

struct listed {
    char name[NAME + 1];
    uint64_t bytes;
    struct timespec used;
};

/* Deletes a temporary file that a killed process has left. */
static void
drop_abandoned(const struct xm_prefix_store *p, const char *name)
{
    char target[NAME + 1];
    snprintf(target, sizeof(target), "%.*s", NAME, name);
    char *path = path_of(p, target);
    if (path && xm_new_file_is_beside(name) && !xm_new_file_has_writer(path))
        delete_file(p, name);
    xm_free(path);
}

/* Lists all files of all models. Returns false: no memory. */
static bool
list_files(const struct xm_prefix_store *p, struct listed **list, size_t *n)
{
    size_t capacity = 0;
    bool ok = true;
    DIR *d = opendir(p->folder);
    for (const struct dirent *f; ok && d && (f = readdir(d));) {
        struct stat st;
        if (begins_as_name(f->d_name) && !is_name(f->d_name))
            drop_abandoned(p, f->d_name);
        if (!is_name(f->d_name) || fstatat(dirfd(d), f->d_name, &st, 0) != 0)
            continue;
        struct listed *grown = xm_grow(*list, &capacity, *n + 1, sizeof(*grown));
        ok = grown != NULL;
        if (!ok)
            break;
        *list = grown;
        grown[*n] = (struct listed){.bytes = (uint64_t)st.st_size, .used = st.st_mtim};
        memcpy(grown[(*n)++].name, f->d_name, NAME + 1);
    }
    if (d)
        closedir(d);
    return ok;
}

/* Sorts the least recently used files first. */
static int
compare_use(const void *a, const void *b)
{
    const struct timespec x = ((const struct listed *)a)->used;
    const struct timespec y = ((const struct listed *)b)->used;
    return x.tv_sec != y.tv_sec ? (x.tv_sec > y.tv_sec) - (x.tv_sec < y.tv_sec)
                                : (x.tv_nsec > y.tv_nsec) - (x.tv_nsec < y.tv_nsec);
}

/* Deletes the least recently used files until the bound is kept, but not `newest`. */
static void
evict(const struct xm_prefix_store *p, const char *newest)
{
    struct listed *list = NULL;
    size_t n = 0;
    uint64_t bytes = 0;
    const bool ok = list_files(p, &list, &n);
    for (size_t i = 0; i < n; i++)
        bytes += list[i].bytes;
    if (ok && n > 0)
        qsort(list, n, sizeof(*list), compare_use);
    for (size_t i = 0; ok && i < n && bytes > p->most_bytes; i++) {
        if (strcmp(list[i].name, newest) == 0)
            continue;
        delete_file(p, list[i].name);
        bytes -= list[i].bytes;
    }
    xm_free(list);
}

/* ---- writing ------------------------------------------------------------------------------- */

struct writer {
    FILE *file;
    const struct xm_new_file *at;
    uint8_t *block; /* [BLOCK] */
    uint64_t n;     /* bytes in `block` */
    uint64_t sum, bytes;
};

static enum xm_status
put(const struct writer *w, const void *bytes, uint64_t n, struct xm_error *err)
{
    return n == 0 || fwrite(bytes, 1, (size_t)n, w->file) == n
               ? XM_OK
               : xm_new_file_fail(w->at, err);
}

static enum xm_status
end_block(struct writer *w, struct xm_error *err)
{
    const uint64_t n = w->n;
    if (n == 0)
        return XM_OK;
    w->sum = chain(w->sum, w->block, n);
    w->bytes += n;
    w->n = 0;
    return put(w, w->block, n, err);
}

static enum xm_status
put_state(void *ctx, const void *bytes, uint64_t n, struct xm_error *err)
{
    struct writer *w = ctx;
    for (const uint8_t *from = bytes; n > 0;) {
        const uint64_t part = n < BLOCK - w->n ? n : BLOCK - w->n;
        memcpy(w->block + w->n, from, (size_t)part);
        w->n += part;
        from += part;
        n -= part;
        if (w->n == BLOCK)
            XM_TRY(end_block(w, err));
    }
    return XM_OK;
}

static enum xm_status
write_all(struct writer *w, const struct file_head *head, const struct xm_sequence *s,
          const int32_t *ids, struct xm_error *err)
{
    static const uint8_t zeros[8];
    const uint64_t n = head->n_tokens * sizeof(*ids);
    const struct xm_export to = {.write = put_state, .ctx = w};
    w->block = xm_malloc(BLOCK);
    if (!w->block)
        return xm_no_memory(err, "a file of a prefix");
    XM_TRY(put(w, head, sizeof(*head), err));
    XM_TRY(put(w, ids, n, err));
    XM_TRY(put(w, zeros, token_bytes(head->n_tokens) - n, err));
    XM_TRY(s->ops->file->save(s, &to, err));
    XM_TRY(end_block(w, err));
    XM_TRY(put(w, &w->sum, sizeof(w->sum), err));
    return w->bytes == head->state_bytes
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "the saved sequence has %" PRIu64 " bytes, expected %" PRIu64,
                         w->bytes, head->state_bytes);
}

/* Writes the file with the permissions of private data, because its tokens are the conversation. */
static enum xm_status
write_file(const char *path, const struct file_head *head, const struct xm_sequence *s,
           const int32_t *ids, struct xm_error *err)
{
    struct xm_new_file f;
    XM_TRY(xm_new_file_begin(&f, path, err));
    struct writer w = {.at = &f};
    chmod(xm_new_file_name(&f), 0600);
    w.file = fopen(xm_new_file_name(&f), "wbe");
    enum xm_status status =
        w.file ? write_all(&w, head, s, ids, err) : xm_new_file_fail(&f, err);
    if (w.file && fclose(w.file) != 0 && status == XM_OK)
        status = xm_new_file_fail(&f, err);
    xm_free(w.block);
    return xm_new_file_end(&f, status, err);
}

/* A new file, which supersedes files whose tokens are a prefix of its tokens, if it can serve all
 * positions that they can. */
struct superseded {
    const int32_t *ids;
    uint64_t n, least;
};

static void
delete_beginning(struct xm_prefix_store *p, struct entry *e, void *ctx)
{
    const struct superseded *by = ctx;
    const bool is_beginning =
        e->head.n_tokens < by->n && same_tokens(e, by->ids, by->n) == e->head.n_tokens;
    const bool serves_more = e->head.least < by->least;
    xm_mapped_file_close(&e->file);
    if (is_beginning && !serves_more)
        delete_file(p, e->name);
}

static void
warn_of_writing(struct xm_prefix_store *p, const char *why)
{
    if (!p->has_warned)
        warn(p, "a prefix is not cached: %s", why);
    p->has_warned = true;
}

static void
write_new(struct xm_prefix_store *p, const struct xm_sequence *s, const int32_t *ids,
          uint64_t n)
{
    struct file_head head = {.n_tokens = n,
                             .state_bytes = s->ops->file->bytes(s),
                             .least = s->ops->file->least(s)};
    struct superseded by = {ids, n, head.least};
    struct xm_error why = {0};
    char name[NAME + 1];
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.identity, p->identity, sizeof(head.identity));
    head.checksum = checksum_of_head(&head, ids);
    if (head.state_bytes > p->most_bytes) {
        xm_fail(&why, XM_NO_MEMORY,
                "its %" PRIu64 " MiB exceed the limit of %" PRIu64 " MiB",
                head.state_bytes >> 20, p->most_bytes >> 20);
        warn_of_writing(p, why.text);
        return;
    }
    name_of(p, ids, n, name);
    char *path = path_of(p, name);
    const enum xm_status status = path ? write_file(path, &head, s, ids, &why)
                                       : xm_no_memory(&why, "the name of a file");
    xm_free(path);
    if (status != XM_OK) {
        warn_of_writing(p, why.text);
        return;
    }
    p->has_warned = false;
    for_each_file(p, delete_beginning, &by);
    evict(p, name);
}

void
xm_prefix_store_save(struct xm_prefix_store *p, struct xm_sequence *s, const int32_t *ids,
                     uint64_t n)
{
    const uint64_t page = s->ops->file->page(s), past = s->ops->past(s);
    const uint64_t whole = (past < n ? past : n) / page * page;
    struct search found;
    if (xm_dry_run() || p->is_read_only || whole == 0 || past > n)
        return;
    find_best(p, page, ids, whole, whole - page, &found);
    if (found.found == whole)
        touch(p, found.best.name);
    else
        write_new(p, s, ids, whole);
    xm_mapped_file_close(&found.best.file);
}
