/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which PoCL keeps what it compiles, and its files as one piece of bytes.
 *
 * PoCL puts a folder of its own for each program below POCL_CACHE_DIR:
 *
 *     NK/GHBAMNCDOK…/program.bc                                    the program
 *     NK/GHBAMNCDOK…/copy_bytes/1-1-1-goffs0-smallgrid/copy_bytes.so   a kernel for a local size
 *
 * and trusts the files in it: a truncated file makes PoCL abort. Therefore the cache of kernels
 * (kernel_cache.h) keeps copies of these folders with a checksum. A process that has a cache gives
 * PoCL an empty folder of its own, and copies a program's folder there before it builds the
 * program. Without a cache PoCL uses its default folder, or, where that cannot be written, a
 * folder for this process alone.
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

/* What this process may do in its folder of compiled kernels. */
enum xm_kept_kernels {
    XM_KEPT_KERNELS_NONE, /* nothing: there is no such folder, and none could be made */
    XM_KEPT_KERNELS_READ, /* load kernels                                             */
    XM_KEPT_KERNELS_WRITE /* load and store them                                      */
};
/* Sets the folder of compiled kernels that this process uses; call before xm_engine_list. Makes
 * the folder (0700) where it is missing. */
enum xm_kept_kernels xm_driver_files_use(const char *cache_dir);
/* False: xm_driver_files_use was given a folder that can only be read. */
bool xm_driver_files_may_store(void);
/* Chooses PoCL's folder; for ocl/, before a driver is opened. */
void xm_driver_files_open(void);
/* Call before exec: removes this process's own folder of PoCL's, and unsets POCL_CACHE_DIR if this
 * process set it; else the new program would take it for the user's setting. */
void xm_driver_files_leave(void);
/* Whether this process set POCL_CACHE_DIR, so that a program that it starts must not see it. */
bool xm_driver_files_set_folder(void);
/* Called before a driver with XM_CAP_DRIVER_FILES builds a program. The first call prints a warning
 * if xm_driver_files_open could not use PoCL's default folder. Any thread. */
void xm_driver_files_warn(void);

/* The present time for `since` below, in nanoseconds of the file system's clock. */
int64_t xm_driver_files_now(void);
/* The folder of the program that was built last since `since`, other than the folder `except` (""
 * for none); false: there is none, or two have the same time. Where two threads build at once, or
 * processes share POCL_CACHE_DIR, it may be another program's folder: then the entry fails the
 * check of xm_driver_files_used, and the program is built again. */
bool xm_driver_files_find(int64_t since, const char *except, char *out, size_t n);
/* Whether PoCL built the program of folder `name`, or loaded it from there, since `since`. */
bool xm_driver_files_used(const char *name, int64_t since);
/* LLVM bitcode that belongs to folder `name`. */
enum xm_bitcode {
    XM_BITCODE_RESULT, /* what PoCL made of the program                                    */
    XM_BITCODE_INPUT /* what the program was made of, a file of ours; absent: of its source */
};
/* Appends it; false: there is none, or it is too large. */
bool xm_driver_files_read_bitcode(const char *name, enum xm_bitcode which,
                                  struct xm_strbuf *out);
/* Puts the INPUT there; false: it cannot be written. */
bool xm_driver_files_write_bitcode(const char *name, const struct xm_strbuf *bitcode);
/* Number of files of machine code below folder `name`. */
uint64_t xm_driver_files_count(const char *name);

/* Appends the folder `name` with its files; false: it cannot be read, or is too large. */
bool xm_driver_files_pack(const char *name, struct xm_strbuf *out);
/* Writes the files of a packed folder below PoCL's folder, and the folder's name into out; replaces
 * files whose bytes differ. false: the bytes are no packed folder, or a write failed. */
bool xm_driver_files_unpack(const void *bytes, size_t n_bytes, char *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
