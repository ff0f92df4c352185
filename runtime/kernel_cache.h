/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled kernels on disk (CACHE_DIR), one file each.
 *
 * The name of a file is a hash of everything that the binary depends on; the file repeats
 * the hash and has a checksum of its bytes, so that a damaged, truncated or foreign file counts as
 * absent and is written again. A file is written under another name and renamed, so that readers
 * and other processes find all of it or nothing. No failure here fails a build: a full disk causes
 * one warning. The time of a file is that of its last use; those used last are kept.
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

/* The key of a device's name, a driver's version, a kernel's text and its build options. */
struct xm_kernel_key xm_kernel_cache_key(const char *device, const char *driver,
                                         const char *source, const char *options);
/* The host's processor as the system describes it, static: CPU drivers compile for it, so it is
 * part of their version. "": not known. */
const char *xm_kernel_cache_processor(void);
/* The stored binary, which the caller frees (xm_free); NULL: none, or not usable. */
void *xm_kernel_cache_load(const char *dir, const struct xm_kernel_key *key,
                           size_t *n_bytes);
/* Stores it; returns whether it is on disk now. Creates the last folder of `dir`, for the user
 * alone. */
bool xm_kernel_cache_store(const char *dir, const struct xm_kernel_key *key,
                           const void *bytes, size_t n_bytes);
/* Removes the entries that were used least recently until the rest has at most `most` bytes. */
void xm_kernel_cache_trim(const char *dir, uint64_t most);
/* A process that stored an entry trims the cache to this many MiB when it ends. */
enum { XM_KERNEL_CACHE_MIB = 512 };
/* The file of a key, at most n - 1 bytes, into out; false: too long. */
bool xm_kernel_cache_path(const char *dir, const struct xm_kernel_key *key, char *out,
                          size_t n);

#ifdef __cplusplus
}
#endif
#endif
