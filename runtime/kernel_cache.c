/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/checksum.h"
#include "runtime/util/compiler.h"
#include "runtime/util/folder.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "runtime/util/unfinished.h"

enum { MAX_PATH = 1280, MAX_BINARY = 256 * 1024 * 1024 };

struct header {
    char magic[8];
    uint64_t key[2];
    uint64_t n_bytes;
    uint64_t checksum;
};

static const char magic[8] = {'x', 'm', 'k', 'e', 'r', 'n', '0', '3'};

/* h = (h ^ byte) * (2^88 + 0x13b), modulo 2^128, in two words. */
static void
fnv128(uint64_t h[2], const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        uint64_t low = h[0] ^ p[i], high = h[1];
        uint64_t a = (low & 0xffffffffu) * 0x13b, b = (low >> 32) * 0x13b;
        uint64_t sum = a + (b << 32);
        uint64_t carry = (b >> 32) + (sum < a);
        h[0] = sum;
        h[1] = high * 0x13b + carry + (low << 24);
    }
}

struct xm_kernel_key
xm_kernel_cache_key(const char *device, const char *driver, const char *source,
                    const char *options)
{
    struct xm_kernel_key key = {{0x62b821756295c58du, 0x6c62272e07bb0142u}};
    const char *const parts[] = {device, driver, source, options};
    for (size_t i = 0; i < XM_ARRAY_LEN(parts); i++)
        /* the NUL separates the parts */
        fnv128(key.hash, parts[i], strlen(parts[i]) + 1);
    return key;
}

static char processor[8192];

static void
read_processor(void)
{
    static const char *const fields[] = {"vendor_id", "model name", "flags", "Features",
                                         "CPU part"};
    size_t used = 0;
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[4096];
    /* lines of the first core */
    while (f && fgets(line, sizeof(line), f) && line[0] != '\n')
        for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++) {
            const size_t n = strlen(line);
            if (strncmp(line, fields[i], strlen(fields[i])) != 0 ||
                n >= sizeof(processor) - used)
                continue;
            memcpy(processor + used, line, n + 1);
            used += n;
        }
    if (f)
        fclose(f);
}

const char *
xm_kernel_cache_processor(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_processor);
    return processor;
}

bool
xm_kernel_cache_path(const char *dir, const struct xm_kernel_key *key, char *out,
                     size_t n)
{
    int got = snprintf(out, n, "%s/%016" PRIx64 "%016" PRIx64 ".xmk", dir, key->hash[1],
                       key->hash[0]);
    return got > 0 && (size_t)got < n;
}

static bool
header_fits(const struct header *h, const struct xm_kernel_key *key)
{
    return memcmp(h->magic, magic, sizeof(magic)) == 0 && h->key[0] == key->hash[0] &&
           h->key[1] == key->hash[1] && h->n_bytes > 0 && h->n_bytes <= MAX_BINARY;
}

void *
xm_kernel_cache_load(const char *dir, const struct xm_kernel_key *key, size_t *n_bytes)
{
    char path[MAX_PATH];
    FILE *f =
        xm_kernel_cache_path(dir, key, path, sizeof(path)) ? fopen(path, "rb") : NULL;
    if (!f)
        return NULL;
    struct header h;
    void *bytes = NULL;
    struct stat st;
    if (fread(&h, sizeof(h), 1, f) == 1 && header_fits(&h, key) &&
        fstat(fileno(f), &st) == 0 && (uint64_t)st.st_size == sizeof(h) + h.n_bytes)
        bytes = xm_malloc(h.n_bytes);
    if (bytes && (fread(bytes, h.n_bytes, 1, f) != 1 ||
                  xm_checksum(bytes, h.n_bytes) != h.checksum)) {
        xm_free(bytes);
        bytes = NULL;
    }
    if (bytes)
        /* sets the time of last use; if that is not permitted, the file ages */
        futimens(fileno(f), NULL);
    fclose(f);
    if (bytes)
        *n_bytes = h.n_bytes;
    else
        xm_debug(XM_DEBUG_BUILD,
                 "compiled kernel '%s' of the cache is not usable and is built again",
                 path);
    return bytes;
}

static void
warn_once(const char *path, int code)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        xm_log(XM_LOG_WARNING,
               "the kernel cache cannot write %s: %s; compiled kernels are not kept",
               path, strerror(code));
}

static bool
write_file(const char *path, const struct header *h, const void *bytes)
{
    FILE *f = fopen(path, "wbe");
    if (!f)
        return false;
    bool ok = fwrite(h, sizeof(*h), 1, f) == 1 && fwrite(bytes, h->n_bytes, 1, f) == 1;
    int code = errno;
    if (fclose(f) != 0) {
        ok = false;
        code = errno;
    }
    if (!ok) {
        unlink(path);
        errno = code;
    }
    return ok;
}

bool
xm_kernel_cache_store(const char *dir, const struct xm_kernel_key *key, const void *bytes,
                      size_t n_bytes)
{
    static atomic_uint serial; /* threads of one process must not share a name */
    char path[MAX_PATH], temporary[MAX_PATH + 64];
    if (n_bytes == 0 || n_bytes > MAX_BINARY ||
        !xm_kernel_cache_path(dir, key, path, sizeof(path)))
        return false;
    snprintf(temporary, sizeof(temporary), "%s.%ld.%u", path, (long)getpid(),
             atomic_fetch_add(&serial, 1));
    struct header h = {.key = {key->hash[0], key->hash[1]},
                       .n_bytes = n_bytes,
                       .checksum = xm_checksum(bytes, n_bytes)};
    memcpy(h.magic, magic, sizeof(magic));
    const int why = xm_folder_make(dir);
    if (why != 0) {
        warn_once(dir, why);
        return false;
    }
    xm_unfinished_add(temporary);
    const bool good = write_file(temporary, &h, bytes) && rename(temporary, path) == 0;
    if (!good) {
        warn_once(path, errno);
        unlink(temporary);
    }
    xm_unfinished_drop(temporary);
    return good;
}

/* ---- the size of the whole ----------------------------------------------------------- */

struct entry {
    struct timespec used;
    uint64_t bytes;
    char name[40];
};

static int
by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used;
    const struct timespec *y = &((const struct entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Removes an incomplete file of a process that was killed while it stored. */
static void
remove_left_over(int dir, const char *name, const struct stat *st)
{
    enum { HOUR = 3600 };
    if (strstr(name, ".xmk.") && time(NULL) - st->st_mtime > HOUR)
        unlinkat(dir, name, 0);
}

/* Lists the files of a cache; the caller frees the list (xm_free). NULL: there are none, or there
 * is no memory. */
static struct entry *
list_entries(const char *dir, size_t *n, uint64_t *total)
{
    struct entry *list = NULL;
    size_t capacity = 0;
    DIR *d = opendir(dir);
    *n = *total = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        struct entry found;
        const size_t length = strlen(e->d_name);
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        remove_left_over(dirfd(d), e->d_name, &st);
        if (length < 4 || length >= sizeof(found.name) ||
            strcmp(e->d_name + length - 4, ".xmk") != 0)
            continue;
        struct entry *grown = xm_grow(list, &capacity, *n + 1, sizeof(*grown));
        if (!grown)
            break;
        list = grown;
        found = (struct entry){.used = st.st_mtim, .bytes = (uint64_t)st.st_size};
        memcpy(found.name, e->d_name, length + 1);
        list[(*n)++] = found;
        *total += found.bytes;
    }
    if (d)
        closedir(d);
    return list;
}

void
xm_kernel_cache_trim(const char *dir, uint64_t most)
{
    size_t n;
    uint64_t total;
    struct entry *list = list_entries(dir, &n, &total);
    if (list && total > most)
        qsort(list, n, sizeof(*list), by_age);
    for (size_t i = 0; list && i < n && total > most; i++) {
        char path[MAX_PATH];
        int got = snprintf(path, sizeof(path), "%s/%s", dir, list[i].name);
        if (got > 0 && got < MAX_PATH && unlink(path) == 0)
            total -= list[i].bytes;
    }
    xm_free(list);
}
