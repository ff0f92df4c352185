/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of plugins: opened once, reference counted, and kept without users until
 * xm_library_unload_idle. So a plugin that is created again is not loaded again, and a library is
 * not unloaded while a thread is leaving its code.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "plugin/external/external.h"

struct xm_library {
    struct xm_library *next;
    void *handle;
    xm_ext_entry_fn entry;
    int users;
};

/* Not held during calls of dlopen and dlclose, because these run the library's constructors and
 * destructors. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_library *libraries;

/* ---- checking the file --------------------------------------------------------------------- */

/* Returns the end of the file's last segment in bytes; 0: it is not an ELF file with this machine's
 * word size. */
static uint64_t
bytes_of_segments(const struct xm_mapped_file *f)
{
    ElfW(Ehdr) head;
    uint64_t end = 0;
    if (f->n_bytes < sizeof(head))
        return 0;
    memcpy(&head, f->bytes, sizeof(head));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof(ElfW(Phdr)))
        return 0;
    for (uint64_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) segment;
        uint64_t at, last;
        if (!xm_add_size(head.e_phoff, i * sizeof(segment), &at) ||
            !xm_add_size(at, sizeof(segment), &last) || last > f->n_bytes)
            return UINT64_MAX;
        memcpy(&segment, f->bytes + at, sizeof(segment));
        if (!xm_add_size(segment.p_offset, segment.p_filesz, &last))
            return UINT64_MAX;
        if (segment.p_type == PT_LOAD && last > end)
            end = last;
    }
    return end;
}

/* dlopen maps the sizes that the file's header states; if the file is shorter, the first access
 * ends the process with SIGBUS. */
static enum xm_status
check_whole(const char *path, struct xm_error *err)
{
    struct xm_mapped_file f;
    if (!strchr(path, '/') || xm_mapped_file_open(path, &f, NULL) != XM_OK)
        return XM_OK; /* dlopen finds it, or reports why not */
    const uint64_t n = f.n_bytes, needed = bytes_of_segments(&f);
    xm_mapped_file_close(&f);
    if (needed <= n)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "library '%.300s' is truncated: it has %llu bytes, and its segments "
                   "lie beyond them",
                   path, (unsigned long long)n);
}

/* ---- opening ----------------------------------------------------------------------- */

static struct xm_library *
find_library(void *handle)
{
    struct xm_library *l = libraries;
    while (l && l->handle != handle)
        l = l->next;
    return l;
}

/* Makes a record for a handle of dlopen, which is closed after a failure. */
static enum xm_status
make(void *handle, const char *path, struct xm_library **out, struct xm_error *err)
{
    xm_ext_entry_fn entry = NULL;
    void *symbol = dlsym(handle, XM_EXT_ENTRY);
    if (!symbol) {
        dlclose(handle);
        return xm_fail(err, XM_INVALID,
                       "library '%.300s' has no function " XM_EXT_ENTRY
                       ": it is not a plugin of xemoe",
                       path);
    }
    struct xm_library *l = xm_calloc(1, sizeof(*l));
    if (!l) {
        dlclose(handle);
        return xm_no_memory(err, "a library");
    }
    /* C has no cast from data to function pointers */
    memcpy(&entry, &symbol, sizeof(entry));
    *l = (struct xm_library){NULL, handle, entry, 0};
    *out = l;
    return XM_OK;
}

static void
free_library(struct xm_library *l)
{
    dlclose(l->handle);
    xm_free(l);
}

/* Returns the record in use: `made`, or an older one with the same handle, whose reference by
 * dlopen `made` gives back. Counts its user. */
static struct xm_library *
use(struct xm_library *made)
{
    pthread_mutex_lock(&lock);
    struct xm_library *l = find_library(made->handle);
    if (!l) {
        made->next = libraries;
        l = libraries = made;
    }
    l->users++;
    pthread_mutex_unlock(&lock);
    if (l != made)
        free_library(made);
    return l;
}

enum xm_status
xm_library_open(const char *path, struct xm_library **out, struct xm_error *err)
{
    if (!path[0]) /* dlopen would open the program itself */
        return xm_fail(err, XM_INVALID, "the plugin has no library name");
    XM_TRY(check_whole(path, err));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return xm_fail(err, XM_INVALID, "library '%.150s' cannot be loaded: %.300s", path,
                       dlerror());
    struct xm_library *made = NULL;
    XM_TRY(make(handle, path, &made, err));
    *out = use(made);
    return XM_OK;
}

void
xm_library_close(struct xm_library *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&lock);
    l->users--;
    pthread_mutex_unlock(&lock);
}

xm_ext_entry_fn
xm_library_entry(const struct xm_library *l)
{
    return l->entry;
}

void
xm_library_unload_idle(void)
{
    struct xm_library *idle = NULL;
    pthread_mutex_lock(&lock);
    for (struct xm_library **at = &libraries; *at;) {
        struct xm_library *l = *at;
        if (l->users) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = idle;
        idle = l;
    }
    pthread_mutex_unlock(&lock);
    while (idle) {
        struct xm_library *next = idle->next;
        free_library(idle);
        idle = next;
    }
}
