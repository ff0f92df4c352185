/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic replacement of files: a temporary file is written in the folder of the target, and then
 * renamed to it. Readers see the old file or the complete new one. A failure leaves the old file.
 * Processes that have the old file mapped, and its other hard links, keep the old contents. The new
 * file gets the owner and the mode of the old one. Symbolic links are followed.
 *
 * Written in place instead: pipes and devices, the missing target of a symbolic link, and an
 * existing file whose folder does not permit new files.
 *
 * The temporary file is NAME.PID.N. A program that ends by a signal removes it (unfinished.h); the
 * next writer of NAME removes the temporary files of processes that were killed.
 */
#ifndef XM_RUNTIME_UTIL_NEW_FILE_H
#define XM_RUNTIME_UTIL_NEW_FILE_H

#include <stdbool.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True: xm_new_file_begin refuses files that this process has read (xm_mapped_file_was_read),
 * because a user may name the model as the output by mistake. Process-wide; initially false. */
void xm_new_file_spare_inputs(bool spare);

/* Whether a file's name is that of a temporary file, of whatever target. */
bool xm_new_file_is_beside(const char *name);

/* Whether another writer of `path`, of this process or of another, is between begin and end. Only
 * locks tell: false on a file system without them. A begin that runs at the same time may be
 * missed. */
bool xm_new_file_has_writer(const char *path);

struct xm_new_file {
    const char *path; /* path as the caller gave it; not owned  */
    char *place;      /* the target, links resolved; owned      */
    char *beside;     /* the temporary file, owned; NULL: written in place */
    bool is_locked;   /* `lock` is an open descriptor           */
    /* descriptor of `beside` with a lock that shows that the process lives */
    int lock;
};

/* Creates the temporary file for the target `path`; the text of the path is borrowed. End it with
 * xm_new_file_end; after a failure that is not needed. */
enum xm_status xm_new_file_begin(struct xm_new_file *f, const char *path,
                                 struct xm_error *err);
/* The path to write to: the temporary file, or the target if it is written in place. Valid until
 * xm_new_file_end. */
const char *xm_new_file_name(const struct xm_new_file *f);
/* Fails with XM_IO: "'path' cannot be written", with the text of errno. */
enum xm_status xm_new_file_fail(const struct xm_new_file *f, struct xm_error *err);
/* Writes `text` as the whole contents of the file. */
enum xm_status xm_new_file_write(const struct xm_new_file *f,
                                 const struct xm_strbuf *text, struct xm_error *err);
/* If `s` is XM_OK, renames the temporary file to the target, else deletes it. Returns `s`, or the
 * failure of the rename. A zeroed struct is allowed. */
enum xm_status xm_new_file_end(struct xm_new_file *f, enum xm_status s,
                               struct xm_error *err);

/* Begin, write and end in one call. */
enum xm_status xm_write_text_file(const char *path, const struct xm_strbuf *text,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
