/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are being written, so that a program which ends in a signal's handler can remove them.
 * The library installs no handler: programs do, and call xm_unfinished_remove there.
 */
#ifndef XM_RUNTIME_UTIL_UNFINISHED_H
#define XM_RUNTIME_UTIL_UNFINISHED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Files written at a time that are remembered; a further one stays behind after a signal. */
enum { XM_MOST_UNFINISHED = 16 };

/* From now on the file at `path` is not whole. The text is the caller's and stays as it is until
 * xm_unfinished_drop. Any thread. */
void xm_unfinished_add(const char *path);
/* It is whole, or removed. When this returns, no handler reads the text any more. A path that was
 * not added is ignored. */
void xm_unfinished_drop(const char *path);
/* Removes all of them from the file system. Async-signal-safe; for a process that ends. */
void xm_unfinished_remove(void);

#ifdef __cplusplus
}
#endif
#endif
