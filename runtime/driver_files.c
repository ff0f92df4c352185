/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/folder.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum {
    PATH = 1280,
    /* folders are searched to this depth below a program's folder */
    DEPTH = 6,
    MOST = 256 << 20, /* most bytes of a packed folder */
    /* a folder younger than this may not have its lock yet */
    STALE_SECONDS = 10,
    ROOM = 256 << 20,     /* free bytes that a file system in memory must have … */
    LEAST_ROOM = 4 << 20, /* … and any other, unless the user has chosen it     */
};

static const char prefix[] = "xemoe-run-"; /* prefix of the names of processes' folders */
static char cache[PATH];                   /* CACHE_DIR, "": none            */
static char folder[PATH];                  /* PoCL's folder; "": not known   */
static char own[PATH];                     /* this process's own folder; "": none */
/* the process that made `own`: a forked child must not remove it */
static pid_t owner;
static bool is_read_only;      /* whether `cache` is read-only   */
static char warning[3 * PATH]; /* printed before the first build; "": none */

/* Writes "dir/name" to out; false: it is too long. */
static bool
join(char out[PATH], const char *dir, const char *name)
{
    int n = snprintf(out, PATH, "%s/%s", dir, name);
    return n > 0 && n < PATH;
}

/* ---- the files below a folder ------------------------------------------------------ */

/* Called for each file below a folder and, after the files in it, for each folder; false ends the
 * walk. */
typedef bool (*visit_fn)(void *ctx, const char *path, bool is_folder);

static bool
walk(const char *path, int depth, visit_fn visit, void *ctx)
{
    DIR *d = depth < DEPTH ? opendir(path) : NULL;
    bool ok = d != NULL;
    for (struct dirent *e; ok && (e = readdir(d));) {
        char inner[PATH];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!join(inner, path, e->d_name) || lstat(inner, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode))
            ok = walk(inner, depth + 1, visit, ctx) && visit(ctx, inner, true);
        else
            ok = visit(ctx, inner, false);
    }
    if (d)
        closedir(d);
    return ok;
}

static bool
remove_one(void *ctx, const char *path, bool is_folder)
{
    (void)ctx;
    if (is_folder)
        rmdir(path);
    else
        unlink(path);
    return true;
}

static void
remove_all(const char *path)
{
    /* the walk starts two levels above programs' folders */
    walk(path, -2, remove_one, NULL);
    rmdir(path);
}

static const char stamp[] =
    /* an empty file of PoCL; its modification time is that of the last use */
    "last_accessed";

static bool
is_stamp(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, stamp) == 0;
}

static bool
count_one(void *ctx, const char *path, bool is_folder)
{
    *(uint64_t *)ctx += !is_folder && !is_stamp(path);
    return true;
}

uint64_t
xm_driver_files_count(const char *name)
{
    char path[PATH];
    uint64_t n = 0;
    if (name[0] && join(path, folder, name))
        walk(path, 0, count_one, &n);
    return n;
}

/* ---- which folder ------------------------------------------------------------------ */

enum xm_kept_kernels
xm_driver_files_use(const char *cache_dir)
{
    char itself[PATH]; /* "dir/.": not readable if dir is a file or may not be entered */
    cache[0] = 0;
    if (strlen(cache_dir) >= sizeof(cache) / 2 || !join(itself, cache_dir, "."))
        return XM_KEPT_KERNELS_NONE;
    is_read_only = xm_folder_make(cache_dir) != 0;
    if (is_read_only && access(itself, R_OK) != 0)
        return XM_KEPT_KERNELS_NONE;
    snprintf(cache, sizeof(cache), "%s", cache_dir);
    return is_read_only ? XM_KEPT_KERNELS_READ : XM_KEPT_KERNELS_WRITE;
}

bool
xm_driver_files_may_store(void)
{
    return !cache[0] || !is_read_only;
}

static void
remove_own(void)
{
    if (own[0] && owner == getpid())
        remove_all(own);
    own[0] = 0;
}

bool
xm_driver_files_set_folder(void)
{
    return own[0] && owner == getpid();
}

void
xm_driver_files_leave(void)
{
    if (own[0] && owner == getpid())
        unsetenv("POCL_CACHE_DIR");
    remove_own();
}

/* Whether `path` is a folder of this user (not a link) whose lock no process holds. */
static bool
is_abandoned(const char *path)
{
    char lock[PATH];
    struct stat st;
    if (!join(lock, path, "lock") || lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid() || time(NULL) - st.st_mtime < STALE_SECONDS)
        return false;
    int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool is_free = fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return is_free;
}

/* Removes the folders of processes that were killed from `dir`. */
static void
remove_abandoned(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[PATH];
        if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) == 0 &&
            join(path, dir, e->d_name) && is_abandoned(path))
            remove_all(path);
    }
    if (d)
        closedir(d);
}

/* Whether a file system has `bytes` free. PoCL writes each file to disk before it goes on, so a
 * file system in memory is faster if it has room. */
static bool
has_room(const char *dir, uint64_t bytes)
{
    struct statvfs fs;
    return dir && statvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= bytes;
}

/* Whether code may be run from the file system of this file. */
static bool
may_execute(int fd)
{
    void *p = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED)
        munmap(p, 1);
    return p != MAP_FAILED;
}

/* Makes a folder of this process below `dir` and sets POCL_CACHE_DIR to it. The lock file in it
 * stays open, so that it is locked as long as the process lives. */
static bool
make_own(const char *dir)
{
    char lock[PATH];
    int n = snprintf(own, sizeof(own), "%s/%sXXXXXX", dir, prefix);
    if (n < 0 || (size_t)n >= sizeof(own) || !mkdtemp(own)) {
        own[0] = 0;
        return false;
    }
    owner = getpid();
    int fd =
        join(lock, own, "lock") ? open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || !may_execute(fd) ||
        !join(folder, own, "pocl") || setenv("POCL_CACHE_DIR", folder, 1) != 0) {
        if (fd >= 0)
            close(fd);
        remove_own();
        return false;
    }
    atexit(remove_own);
    return true;
}

/* PoCL's default folder; false: HOME is not set, so PoCL would use /tmp, where other users may put
 * files. */
static bool
default_folder(char out[PATH])
{
    const char *home = xm_env("HOME"), *xdg = xm_env("XDG_CACHE_HOME");
    if (xdg)
        return snprintf(out, PATH, "%s/pocl/kcache", xdg) < PATH;
    return home && snprintf(out, PATH, "%s/.cache/pocl/kcache", home) < PATH;
}

/* Makes a folder for this process in a folder for temporary files, and a warning that says so. */
static void
take_temporary(const char *why)
{
    const char *const dirs[] = {xm_env("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    char wanted[PATH];
    snprintf(wanted, sizeof(wanted), "%s", folder);
    folder[0] = 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(dirs); i++) {
        if (dirs[i])
            remove_abandoned(dirs[i]);
        if (!dirs[i] || !make_own(dirs[i]))
            continue;
        snprintf(warning, sizeof(warning),
                 "%s%s: the OpenCL driver keeps its compiled code in the temporary "
                 "folder %s, which is removed when this process or a later one ends",
                 wanted[0] ? wanted : "HOME is not set", wanted[0] ? why : "", own);
        return;
    }
}

void
xm_driver_files_warn(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (warning[0] && !atomic_flag_test_and_set(&warned))
        xm_log(XM_LOG_WARNING, "%s", warning);
}

/* Makes a folder for this process for use with a kernel cache: in memory, else in the cache's
 * folder. */
static bool
make_beside_cache(void)
{
    const char *const dirs[] = {xm_env("XDG_RUNTIME_DIR"), "/dev/shm", cache};
    for (size_t i = 0; i < XM_ARRAY_LEN(dirs); i++) {
        if (dirs[i] != cache && !has_room(dirs[i], ROOM))
            continue;
        remove_abandoned(dirs[i]);
        if (make_own(dirs[i]))
            return true;
    }
    return false;
}

void
xm_driver_files_open(void)
{
    const char *set = xm_env("POCL_CACHE_DIR");
    if (set)
        snprintf(folder, sizeof(folder), "%s", set);
    else if (cache[0] && make_beside_cache())
        return;
    else if (!default_folder(folder))
        folder[0] = 0;
    if (xm_folder_make(folder) != 0)
        take_temporary(" cannot be created or written");
    else if (!has_room(folder, LEAST_ROOM))
        take_temporary(" has too little free space");
}

/* ---- the folder of a program --------------------------------------------------------- */

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t
xm_driver_files_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t); /* the clock of file times */
    return nanoseconds(t);
}

/* When PoCL last built or loaded the program of a folder, in nanoseconds; 0: never. */
static int64_t
last_used(const char *path)
{
    char file[PATH];
    struct stat st;
    return join(file, path, stamp) && stat(file, &st) == 0 ? nanoseconds(st.st_mtim) : 0;
}

bool
xm_driver_files_used(const char *name, int64_t since)
{
    char path[PATH];
    return join(path, folder, name) && last_used(path) >= since;
}

struct search {
    int64_t newest;
    size_t n; /* folders with that time */
    const char *except;
    char *out;
    size_t out_bytes;
};

static void
search_group(struct search *s, const char *group)
{
    char path[PATH], inner[PATH];
    DIR *d = join(path, folder, group) ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !join(inner, path, e->d_name))
            continue;
        const int64_t used = last_used(inner);
        const bool is_other =
            strncmp(s->except, group, 2) != 0 || strcmp(s->except + 3, e->d_name) != 0;
        if (used < s->newest || used == 0 || !is_other)
            continue;
        s->n = used == s->newest ? s->n + 1 : 1;
        s->newest = used;
        int n = snprintf(s->out, s->out_bytes, "%s/%s", group, e->d_name);
        if (n < 0 || (size_t)n >= s->out_bytes)
            s->n = 2; /* too long for a name of PoCL: treated as not found */
    }
    if (d)
        closedir(d);
}

bool
xm_driver_files_find(int64_t since, const char *except, char *out, size_t n)
{
    struct search s = {.newest = since, .except = except, .out = out, .out_bytes = n};
    DIR *d = folder[0] ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && strlen(e->d_name) == 2)
            search_group(&s, e->d_name);
    if (d)
        closedir(d);
    if (s.n != 1)
        out[0] = 0;
    return s.n == 1;
}

/* ---- packing ------------------------------------------------------------------------- */

/* A packed folder: a record with the folder's name and no bytes, then for each file a record, its
 * path below the folder, and its bytes. */
struct record {
    uint64_t name_bytes, n_bytes;
};

struct packing {
    struct xm_strbuf *out;
    size_t skip; /* length of the part of a path that precedes the name in the folder */
};

/* Appends the contents of a file; false: it cannot be read, is no regular file, or is too large. */
static bool
add_file(const char *path, struct xm_strbuf *out)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    bool ok =
        f && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MOST;
    char *bytes = ok ? xm_malloc((size_t)st.st_size + 1) : NULL;
    ok = bytes && fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size;
    if (ok)
        xm_strbuf_add_n(out, bytes, (size_t)st.st_size);
    xm_free(bytes);
    if (f)
        fclose(f);
    return ok && xm_strbuf_ok(out);
}

static bool
pack_file(void *ctx, const char *path, bool is_folder)
{
    struct packing *p = ctx;
    const char *name = path + p->skip;
    struct xm_strbuf bytes = {0};
    if (is_folder || is_stamp(path))
        return true;
    const bool ok = add_file(path, &bytes) && p->out->n + bytes.n <= MOST;
    if (ok) {
        const struct record r = {strlen(name), bytes.n};
        xm_strbuf_add_n(p->out, (const char *)&r, sizeof(r));
        xm_strbuf_add_n(p->out, name, r.name_bytes);
        xm_strbuf_add_n(p->out, xm_strbuf_text(&bytes), bytes.n);
    }
    xm_strbuf_free(&bytes);
    return ok;
}

bool
xm_driver_files_pack(const char *name, struct xm_strbuf *out)
{
    char path[PATH];
    const struct record head = {strlen(name), 0};
    if (!name[0] || !join(path, folder, name))
        return false;
    struct packing p = {out, strlen(path) + 1};
    xm_strbuf_add_n(out, (const char *)&head, sizeof(head));
    xm_strbuf_add_n(out, name, head.name_bytes);
    return walk(path, 0, pack_file, &p) && xm_strbuf_ok(out);
}

struct unpacking {
    const char *at;
    size_t left;
};

/* Reads the next record: copies its name to `name` and sets *bytes, *n. False: it is truncated, or
 * the name leads out of the folder. */
static bool
next_record(struct unpacking *u, char *name, size_t name_size, const char **bytes,
            size_t *n)
{
    struct record r;
    if (u->left < sizeof(r))
        return false;
    memcpy(&r, u->at, sizeof(r));
    u->at += sizeof(r);
    u->left -= sizeof(r);
    if (r.name_bytes == 0 || r.name_bytes >= name_size || r.name_bytes > u->left ||
        r.n_bytes > u->left - r.name_bytes)
        return false;
    memcpy(name, u->at, r.name_bytes);
    name[r.name_bytes] = 0;
    *bytes = u->at + r.name_bytes;
    *n = r.n_bytes;
    u->at += r.name_bytes + r.n_bytes;
    u->left -= r.name_bytes + r.n_bytes;
    return name[0] != '/' && !strstr(name, "..") && strlen(name) == r.name_bytes;
}

static bool
file_is(const char *path, const char *bytes, size_t n)
{
    char block[4096];
    size_t at = 0, got;
    FILE *f = fopen(path, "rb");
    while (f && (got = fread(block, 1, sizeof(block), f)) > 0) {
        if (got > n - at || memcmp(block, bytes + at, got) != 0)
            break;
        at += got;
    }
    bool same = f && feof(f) && at == n;
    if (f)
        fclose(f);
    return same;
}

/* Writes a file under another name and renames it: another process that shares the folder sees the
 * whole file or none. */
static bool
put_file(const char *path, const char *bytes, size_t n)
{
    char temporary[PATH], dir[PATH];
    if (file_is(path, bytes, n))
        return true;
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
    int got = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    if (got < 0 || (size_t)got >= sizeof(temporary) || xm_folder_make(dir) != 0)
        return false;
    int fd = mkstemp(temporary);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool ok = f && fwrite(bytes, 1, n, f) == n;
    if (f)
        ok = fclose(f) == 0 && ok;
    else if (fd >= 0)
        close(fd);
    ok = ok && rename(temporary, path) == 0;
    if (!ok && fd >= 0)
        unlink(temporary);
    return ok;
}

bool
xm_driver_files_unpack(const void *bytes, size_t n_bytes, char *out, size_t n)
{
    struct unpacking u = {bytes, n_bytes};
    char base[PATH], path[PATH], name[PATH / 2];
    const char *data;
    size_t n_data;
    if (!folder[0] || !next_record(&u, out, n, &data, &n_data) || n_data != 0 ||
        !join(base, folder, out))
        return false;
    while (u.left > 0) {
        if (!next_record(&u, name, sizeof(name), &data, &n_data) ||
            !join(path, base, name) || !put_file(path, data, n_data))
            return false;
    }
    return true;
}

/* ---- bitcode ------------------------------------------------------------------------- */

/* File names, indexed by enum xm_bitcode. */
static const char *const bitcode_files[] = {"program.bc", "input.bc"};

static bool
bitcode_path(const char *name, enum xm_bitcode which, char out[PATH])
{
    char path[PATH];
    return name[0] && join(path, folder, name) && join(out, path, bitcode_files[which]);
}

bool
xm_driver_files_read_bitcode(const char *name, enum xm_bitcode which,
                             struct xm_strbuf *out)
{
    char path[PATH];
    return bitcode_path(name, which, path) && add_file(path, out);
}

bool
xm_driver_files_write_bitcode(const char *name, const struct xm_strbuf *bitcode)
{
    char path[PATH];
    return bitcode_path(name, XM_BITCODE_INPUT, path) &&
           put_file(path, xm_strbuf_text(bitcode), bitcode->n);
}
