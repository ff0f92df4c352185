/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which PoCL keeps compiled code; and packing of its subfolders into one piece of
 * bytes.
 *
 * PoCL creates a folder for each program below POCL_CACHE_DIR:
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

/* What xm_driver_files_use allows this process to do in the folder of compiled kernels. */
enum xm_kept_kernels {
    XM_KEPT_KERNELS_NONE, /* nothing: there is no such folder, and none could be made */
    XM_KEPT_KERNELS_READ, /* load kernels                                             */
    XM_KEPT_KERNELS_WRITE /* load and store them                                      */
};
/* Sets the folder (CACHE_DIR) in which this process keeps compiled kernels and creates it (0700) if
 * it is missing. Call it before xm_engine_list. Returns what the process may do there. */
enum xm_kept_kernels xm_driver_files_use(const char *cache_dir);
/* Whether this process may store files in CACHE_DIR. False: xm_driver_files_use was given a
 * read-only folder. */
bool xm_driver_files_may_store(void);
/* Chooses the folder in which PoCL keeps its files (POCL_CACHE_DIR); ocl/ calls it before it opens
 * a driver. */
void xm_driver_files_open(void);
/* Call before exec: removes the folder that this process made for PoCL, and unsets POCL_CACHE_DIR
 * if this process set it, because the new program would take it for the user's setting. */
void xm_driver_files_leave(void);
/* Whether this process set POCL_CACHE_DIR, so that a program that it starts must not see it. */
bool xm_driver_files_set_folder(void);
/* Called before a driver with XM_CAP_DRIVER_FILES builds a program. The first call prints a warning
 * if xm_driver_files_open could not use PoCL's default folder. Any thread. */
void xm_driver_files_warn(void);

/* The present time of the file system's clock in nanoseconds, for the parameter `since` of the
 * functions below. */
int64_t xm_driver_files_now(void);
/* Writes to out[n] the name of the folder of the program that PoCL built or loaded last, at or
 * after `since`. `except` is a folder to ignore ("": none). False: there is none, or two have the
 * same time. If two threads build at once, or processes share POCL_CACHE_DIR, the result may belong
 * to another program: then a later load fails the check of xm_driver_files_used, and the program is
 * built again. */
bool xm_driver_files_find(int64_t since, const char *except, char *out, size_t n);
/* Whether PoCL built the program of folder `name`, or loaded it from there, at or after `since`. */
bool xm_driver_files_used(const char *name, int64_t since);
/* The kinds of LLVM bitcode in a program's folder. */
enum xm_bitcode {
    XM_BITCODE_RESULT, /* what PoCL compiled from the source                               */
    /* what the program was built from, a file that we write; absent: built from source */
    XM_BITCODE_INPUT
};
/* Appends the bitcode to out; false: there is none, or it is too large. */
bool xm_driver_files_read_bitcode(const char *name, enum xm_bitcode which,
                                  struct xm_strbuf *out);
/* Writes the bitcode XM_BITCODE_INPUT to the folder; false: it cannot be written. */
bool xm_driver_files_write_bitcode(const char *name, const struct xm_strbuf *bitcode);
/* Number of files below folder `name`, without PoCL's time stamps. */
uint64_t xm_driver_files_count(const char *name);

/* Appends the folder's name and its files as one piece of bytes; false: a file cannot be read, or
 * the whole is too large. */
bool xm_driver_files_pack(const char *name, struct xm_strbuf *out);
/* Unpacks bytes of xm_driver_files_pack: writes the files below PoCL's folder, replacing files with
 * other contents, and the packed folder's name to out[n]. False: the bytes are no packed folder, or
 * a write failed. */
bool xm_driver_files_unpack(const void *bytes, size_t n_bytes, char *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
