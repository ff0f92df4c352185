/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled kernels on disk (CACHE_DIR), one file each.
 *
 * The name of a file is a hash of everything that the binary depends on. The file repeats the hash
 * and has a checksum of its bytes: a damaged, truncated or foreign file counts as absent and is
 * written again. A file is written under another name and renamed, so that readers and other
 * processes find the whole file or none. No failure here fails a build: a full disk causes one
 * warning. The modification time of a file is that of its last use; trimming the cache keeps the
 * files that were used last.
 */
#ifndef XM_RUNTIME_KERNEL_CACHE_H
#define XM_RUNTIME_KERNEL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kernel_key {
    uint64_t hash[2]; /* FNV-1a, 128 bits, low word first */
};

/* Returns the key of a kernel: a hash of the device's name, the driver's version, the source and
 * the build options. */
struct xm_kernel_key xm_kernel_cache_key(const char *device, const char *driver,
                                         const char *source, const char *options);
/* Describes the host's processor (static): CPU drivers compile for it, so it is part of the key as
 * if it were part of their version. "": not known. */
const char *xm_kernel_cache_processor(void);
/* Loads the binary of a key; the caller frees it (xm_free). NULL: none is stored, or the file is
 * damaged. */
void *xm_kernel_cache_load(const char *dir, const struct xm_kernel_key *key,
                           size_t *n_bytes);
/* Stores a binary; returns whether it is on disk now. Creates `dir` and its missing parents with
 * mode 0700. */
bool xm_kernel_cache_store(const char *dir, const struct xm_kernel_key *key,
                           const void *bytes, size_t n_bytes);
/* Removes the least recently used files until the others have at most `most` bytes. */
void xm_kernel_cache_trim(const char *dir, uint64_t most);
/* An engine that stored a file trims the cache to this size, in MiB, when it is destroyed. */
enum { XM_KERNEL_CACHE_MIB = 512 };
/* Writes the path of a key's file to out[n]; false: it is too long. */
bool xm_kernel_cache_path(const char *dir, const struct xm_kernel_key *key, char *out,
                          size_t n);

#ifdef __cplusplus
}
#endif
#endif
