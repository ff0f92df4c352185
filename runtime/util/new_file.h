/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are written beside their place and then put there: readers see the old one or all of
 * the new one, a failure leaves the old one, and who has it mapped keeps it, as its other names do.
 * Owner and mode are the old one's. Links are followed. A pipe or a device has no place to be put
 * in, and is written as it is; so is what a link leads to that is not there yet, and a file in a
 * folder that takes no new ones.
 *
 * Beside its place a file is called NAME.PID.N. A program that is ended by a signal removes it
 * (unfinished.h); the next writer of NAME removes those of processes that were killed.
 */
#ifndef XM_RUNTIME_UTIL_NEW_FILE_H
#define XM_RUNTIME_UTIL_NEW_FILE_H

#include <stdbool.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on files that this process has read (xm_mapped_file_was_read) are not written, or are:
 * for programs, whose users may name one by mistake. At first they are. */
void xm_new_file_spare_inputs(bool spare);

struct xm_new_file {
    const char *path; /* as people know it; the caller's */
    char *place;      /* what the file will be           */
    char *beside;     /* NULL: nothing is to be put      */
    bool is_locked;   /* `lock` is open                  */
    int lock;         /* a descriptor of `beside`        */
};

enum xm_status xm_new_file_begin(struct xm_new_file *f, const char *path,
                                 struct xm_error *err);
/* The name to write to until the end. */
const char *xm_new_file_name(const struct xm_new_file *f);
/* "'path' cannot be written", with errno's reason. */
enum xm_status xm_new_file_fail(const struct xm_new_file *f, struct xm_error *err);
/* All that is in it. */
enum xm_status xm_new_file_write(const struct xm_new_file *f,
                                 const struct xm_strbuf *text, struct xm_error *err);
/* Puts it in its place if `s` is XM_OK, else nothing is left of it. Returns what came of it all;
 * a zeroed struct is allowed. */
enum xm_status xm_new_file_end(struct xm_new_file *f, enum xm_status s,
                               struct xm_error *err);

/* The three at once. */
enum xm_status xm_write_text_file(const char *path, const struct xm_strbuf *text,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
