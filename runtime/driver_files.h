/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which PoCL keeps what it compiles, and its files as one piece of bytes.
 *
 * PoCL puts a folder of its own for each program below POCL_CACHE_DIR:
 *
 *     NK/GHBAMNCDOK…/program.bc                                    the program
 *     NK/GHBAMNCDOK…/copy_bytes/1-1-1-goffs0-smallgrid/copy_bytes.so   a kernel for a local size
 *
 * and takes what it finds there as good: a file that was cut makes it abort. So the cache of
 * kernels (kernel_cache.h) keeps copies of these folders, with a checksum; a process that has a
 * cache gives PoCL an empty folder of its own, and puts copies there before it asks for a
 * program. Without a cache PoCL's folder is where PoCL would have it, or, where that cannot be
 * written, one for this process alone.
 *
 * Folders of one process ("xemoe-run-…", in memory or in the cache) are locked while it lives and
 * removed when it ends; a later process removes those of processes that were killed.
 */
#ifndef XM_RUNTIME_DRIVER_FILES_H
#define XM_RUNTIME_DRIVER_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first call of xm_engine_list: the folder of compiled kernels that this process is
 * going to use. It is made (0700) if it is not there; false: it cannot be written. */
bool xm_driver_files_use(const char *cache_dir);
/* Chooses PoCL's folder; for ocl/, before a driver is opened. */
void xm_driver_files_open(void);

/* The time to give to xm_driver_files_find; nanoseconds of the clock of files. */
int64_t xm_driver_files_now(void);
/* The folder of the program that has been built last since then, into out; false: there is none, or
 * two have the same time. Where two threads build at once, or processes share POCL_CACHE_DIR, it
 * may be the other's: then the entry does not serve its key (xm_driver_files_used), and the
 * program is built again. */
bool xm_driver_files_find(int64_t since, char *out, size_t n);
/* Whether the program of folder `name` has been built or taken from there since then. */
bool xm_driver_files_used(const char *name, int64_t since);
/* Files below folder `name` that were compiled. */
uint64_t xm_driver_files_count(const char *name);

/* Appends the folder `name` with its files; false: it cannot be read, or is too large. */
bool xm_driver_files_pack(const char *name, struct xm_strbuf *out);
/* Puts the files of a packed folder where they belong, and its name into out; a file that is there
 * with other bytes is replaced. false: this is no packed folder, or it cannot be written. */
bool xm_driver_files_unpack(const void *bytes, size_t n_bytes, char *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
