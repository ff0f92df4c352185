/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of the files that the process is writing. A program that ends inside a signal handler
 * calls xm_unfinished_remove there, so that no incomplete file stays behind. The library itself
 * installs no handler.
 */
#ifndef XM_RUNTIME_UTIL_UNFINISHED_H
#define XM_RUNTIME_UTIL_UNFINISHED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Capacity of the table. While it is full, further files are not entered, and a signal leaves
 * them. */
enum { XM_MOST_UNFINISHED = 16 };

/* Adds the incomplete file at `path`. The text is not copied: it must stay unchanged until
 * xm_unfinished_drop. Any thread. */
void xm_unfinished_add(const char *path);
/* Removes the entry of a file that is complete or deleted. After the return no signal handler reads
 * the text of the path. A path that is not in the table is ignored. Any thread. */
void xm_unfinished_drop(const char *path);
/* Deletes all files in the table. Async-signal-safe; for a process that is about to end. */
void xm_unfinished_remove(void);

#ifdef __cplusplus
}
#endif
#endif
